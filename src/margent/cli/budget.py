"""`margent budget init`, `show` and `verify`: one budget for all releases about the same people."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from margent.cli.console import say, say_json
from margent.cli.options import json_option

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.privacy.budget_chain import Balance
    from margent.privacy.budget_file import BudgetFile
    from margent.privacy.neighbors import Relation
    from margent.schema.fields import Unit

SO_FAR = "informational only: where one stops because of earlier releases, it is no guarantee; the cap is"

_path = click.argument("path", type=click.Path(path_type=Path), metavar="FILE")


@click.group(short_help="Keep one budget for all releases about the same people.")
def budget() -> None:
    """Keep one budget for all releases about the same people, in a file.

    \b
    margent budget init people.budget --data-set people --epsilon 3 --delta 1e-9
    margent synthesize people.csv --schema schema.json --epsilon 1 --budget people.budget -o OUT/
    margent budget show people.budget
    margent budget verify people.budget OUT/
    """


@budget.command(short_help="Declare a data set and the most it may ever lose.")
@_path
@click.option("--data-set", required=True, metavar="NAME", help="A name for the people in it, whatever the version.")
@click.option("--epsilon", default=None, metavar="E", help="The cap: all releases together keep it. Never defaulted.")
@click.option("--delta", default=None, metavar="D", help="The cap's delta (default: 1e-9, or 0 with pure).")
@click.option("--accountant", default="gdp", show_default=True, metavar="A", help="gdp, zcdp or pure, for all runs.")
@click.option(
    "--relation",
    default="add-remove",
    show_default=True,
    metavar="R",
    help="add-remove (one row more or less) or replace (one row changed; the number of rows is public, unless a "
    "condition or query chose them).",
)
@click.option(
    "--unit", default="row", show_default=True, metavar="U", help="Who is protected: row, or person:k (k rows at most)."
)
@click.option(
    "--delta-for-atoms",
    default="0",
    show_default=True,
    metavar="D",
    help="The part of delta set apart for values that runs select from the data (openSet).",
)
@json_option
def init(
    path: Path,
    data_set: str,
    epsilon: str | None,
    delta: str | None,
    accountant: str,
    relation: str,
    unit: str,
    delta_for_atoms: str,
    as_json: bool,
) -> None:
    """Declare a data set in FILE, which is made, or added to. What is declared holds for ever.

    \b
    margent budget init people.budget --data-set people --epsilon 3 --delta 1e-9
    """
    from margent.errors import UsageError
    from margent.privacy.budget import Budget
    from margent.privacy.budget_file import BudgetFile
    from margent.privacy.budget_terms import declaration_faults

    try:
        cap = Budget(epsilon, delta, accountant, cast("Relation", relation), delta_for_atoms=delta_for_atoms)
    except UsageError as fault:
        raise UsageError("\n".join([str(fault), *declaration_faults(data_set, unit, None, relation)])) from None
    file = BudgetFile(path, data_set)
    file.init(cap, unit=unit)
    balance = file.balance()
    if as_json:
        say_json(balance_json(balance))
    else:
        say(f"{path}: {promise(balance)}")
        say(
            "Keep the file: whoever deletes it, or puts an older copy back, spends again what was spent. "
            f"Use it: margent synthesize ... --budget {path}"
        )


@budget.command(short_help="What was spent and what is left.")
@_path
@json_option
def show(path: Path, as_json: bool) -> None:
    """Show every data set of FILE: what it promises, what was spent and what is left.

    \b
    margent budget show people.budget
    """
    from margent.privacy.budget_store import read
    from margent.release.beliefs import number

    balances, hashes = read(path)
    if as_json:
        document = {"dataSets": [balance_json(balance) for balance in balances.values()], "head": hashes[-1]}
        say_json(document)
        return
    for balance in balances.values():
        say(promise(balance))
        say(rest_text(balance))
        if balance.spent:
            say(f"Epsilon so far: {number(so_far(balance))} ({SO_FAR}).")
        places: dict[str, int] = {}
        for entry in balance.reservations:
            place = places.setdefault(entry.run, len(places) + 1)
            again = " again, for answers that an interruption lost: in all" if entry.kind == "again" else ""
            say(
                f"  run {place}, {entry.when}:{again} epsilon {number(entry.epsilon)}, delta {number(entry.delta)}, "
                f"{percent_of(entry.cost, balance)} % of the cap, run id {entry.run}"
            )
    entries = _counted(len(hashes), "entries", "entry")
    say(f"{entries}; the last one's hash (note it to prove later that none is missing): {hashes[-1]}")


@budget.command(short_help="Check the file, and that it accounts for releases.")
@_path
@click.argument("releases", nargs=-1, type=click.Path(path_type=Path), metavar="[OUT]...")
@click.option("--head", default=None, metavar="HASH", help="A hash that `budget show` once gave: it must be there.")
@json_option
def verify(path: Path, releases: tuple[Path, ...], head: str | None, as_json: bool) -> None:
    """Check every entry of FILE, and that it holds the run of every release OUT at its price or more.

    An older copy of the file, put back, lacks the runs made since: give all your releases. Those of one run (resample)
    must be drawn from the same noisy answers.

    \b
    margent budget verify people.budget OUT/ OUT2/
    """
    from margent.errors import BudgetError
    from margent.privacy.accounting import account_named
    from margent.privacy.budget_releases import Released, require_complete
    from margent.privacy.budget_store import read
    from margent.release.measurements import digest_of
    from margent.release.reading import read_release

    balances, hashes = read(path)
    for name, balance in balances.items():
        terms = balance.declaration
        if terms.total > account_named(terms.accountant).total(terms.epsilon, terms.delta - terms.delta_for_atoms):
            raise BudgetError(f"{path}: the cap of {name!r} is above what its epsilon and delta amount to")
    if head is not None and head not in hashes:
        raise BudgetError(f"{path}: no entry has the hash {head[:64]!r}: this is an older copy, or another file")
    released = {}
    for out in releases:
        transcript, budget, _ = read_release(out)
        digest, priced = digest_of(transcript), (budget.accountant, budget.relation)
        released[str(out)] = Released(transcript.run, transcript.spent, transcript.delta_spent, digest, priced)
    require_complete(balances, released)
    if as_json:
        say_json({"ok": True, "entries": len(hashes), "releases": len(released), "head": hashes[-1]})
    else:
        runs = sum(balance.runs for balance in balances.values())
        say(
            f"{path}: sound. {_counted(len(hashes), 'entries', 'entry')}, each as it was written: "
            f"{_counted(len(balances), 'data sets')}, {_counted(runs, 'runs')}, none above its cap."
        )
        if released:
            say(f"It accounts for {_counted(len(released), 'releases')}: all that were given.")
        else:
            say("No release was given; give those that were made, to see that the file accounts for each.")


def promise(balance: Balance) -> str:
    """What a declaration promises, in words.

    Privacy: none: options.
    """
    from margent.release.beliefs import number

    terms = balance.declaration
    atoms = f", of which {number(terms.delta_for_atoms)} for atoms" if terms.delta_for_atoms else ""
    apart = "" if balance.unit_field is None else f", told apart by the column {balance.unit_field!r}"
    return (
        f"Data set {terms.data_set!r}: all releases under it together are (epsilon {number(terms.epsilon)}, "
        f"delta {number(terms.delta)}{atoms})-differentially private; protected: {terms.unit}{apart}; neighbors: "
        f"{terms.relation}; accountant {terms.accountant}."
    )


def rest_text(balance: Balance) -> str:
    """How much of a cap is used and which epsilon would still fit.

    Privacy: none: options.
    """
    from margent.privacy.budget_rest import percent, what_fits

    terms = balance.declaration
    fits = what_fits(balance, terms.delta - terms.delta_for_atoms)
    used = percent_of(balance.spent, balance)
    atoms = ""
    if terms.delta_for_atoms:
        atoms = f" Of the part of delta for atoms {percent(balance.delta_spent, terms.delta_for_atoms)} % is used."
    by = _counted(balance.runs, "runs")
    return f"Budget of {terms.data_set!r}: {used} % used by {by}; for a further run {fits}.{atoms}"


def rest_after(file: BudgetFile) -> str:
    """What a finished run left; the release is written by now, so that a file out of reach ends nothing.

    Privacy: none: options.
    """
    from margent.errors import BudgetError

    try:
        return rest_text(file.balance())
    except BudgetError as fault:
        return f"Budget: this run is charged; what is left cannot be told now ({fault})."


def after_text(balance: Balance, planned: Budget, unit: Unit) -> str:
    """What a planned run would leave, or why it would be refused.

    Privacy: none: options.
    """
    from margent.errors import BudgetError
    from margent.privacy.budget_rest import refused
    from margent.privacy.budget_terms import require_same_terms

    name = balance.declaration.data_set
    try:
        require_same_terms(balance, planned, unit)
    except BudgetError as fault:
        return f"Budget of {name!r}: `margent synthesize` would refuse: {fault}"
    if not balance.covers(planned.total, planned.delta_for_atoms):
        return f"Budget of {name!r}: `margent synthesize` would refuse: {refused(balance, planned)}."
    used, cost, left = (
        percent_of(part, balance) for part in (balance.spent, planned.total, balance.left - planned.total)
    )
    return f"Budget of {name!r}: {used} % used; this run takes {cost} %, and {left} % would be left."


def after_json(balance: Balance, planned: Budget) -> dict[str, Any]:
    """What a planned run would leave, for a program; shares of the cap."""
    total = balance.declaration.total
    return {
        "dataSet": balance.declaration.data_set,
        "used": float(balance.spent / total),
        "cost": float(planned.total / total),
        "fits": balance.covers(planned.total, planned.delta_for_atoms),
        "deltaForAtoms": str(planned.delta_for_atoms),
        "deltaForAtomsLeft": str(balance.delta_left),
    }


def balance_json(balance: Balance) -> dict[str, Any]:
    """A balance for a program: exact figures as text, shares of the cap as numbers."""
    from margent.privacy.budget_rest import fitting_epsilon

    terms = balance.declaration
    fits = fitting_epsilon(balance, terms.delta - terms.delta_for_atoms)
    return {
        "dataSet": terms.data_set,
        "relation": terms.relation,
        "unit": terms.unit,
        "unitField": balance.unit_field,
        "accountant": terms.accountant,
        "epsilon": str(terms.epsilon),
        "delta": str(terms.delta),
        "deltaForAtoms": str(terms.delta_for_atoms),
        "cap": str(terms.total),
        "spent": str(balance.spent),
        "deltaSpentOnAtoms": str(balance.delta_spent),
        "used": float(balance.spent / terms.total),
        "epsilonThatFits": None if fits is None else str(fits),
        "epsilonSoFar": {"informationalOnly": float(so_far(balance))},
        "runs": [
            {
                "run": entry.run,
                "kind": entry.kind,
                "when": entry.when,
                "epsilon": str(entry.epsilon),
                "delta": str(entry.delta),
                "deltaForAtoms": str(entry.delta_for_atoms),
                "cost": str(entry.cost),
                "margent": entry.margent,
            }
            for entry in balance.reservations
        ],
    }


def so_far(balance: Balance) -> Fraction:
    """The epsilon that what was reserved amounts to, at the delta that atoms leave; informational only."""
    from margent.privacy.accounting import account_named

    terms = balance.declaration
    return account_named(terms.accountant).epsilon(balance.spent, terms.delta - terms.delta_for_atoms)


def percent_of(part: Fraction, balance: Balance) -> str:
    """A share of a data set's cap."""
    from margent.privacy.budget_rest import percent

    return percent(part, balance.declaration.total)


def _counted(number: int, many: str, one: str = "") -> str:
    """A number of things in words: 1 run, 2 runs."""
    return f"{number} {many if number != 1 else one or many[:-1]}"
