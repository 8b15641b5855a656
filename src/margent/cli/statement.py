"""`margent statement`: two printable pages for whoever must answer for a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from margent.cli.console import say, shown_progress
from margent.cli.options import new_output
from margent.errors import UsageError

if TYPE_CHECKING:
    from margent.privacy.budget import Budget
    from margent.release.officer import Account, Verdict
    from margent.transcript import Transcript


@click.command(short_help="Two printable pages about a release, for a privacy officer.")
@click.argument("release_folder", type=click.Path(path_type=Path), metavar="RELEASE")
@click.option("--budget", "budget_file", default=None, type=click.Path(path_type=Path), metavar="FILE",
              help="The budget file: lists earlier releases about the same people.")  # fmt: skip
@click.option("--no-selftest", is_flag=True, help="Do not check this machine first (under a minute).")
@new_output("PAGE.html", "The page to make")
def statement(release_folder: Path, budget_file: Path | None, no_selftest: bool, out: Path) -> None:
    """Make a page that says who is protected by RELEASE, against whom, what epsilon means and what was spent.

    No table is read and nothing is spent. Open PAGE.html in a browser and print it: two sheets, with a line to sign on.

    \b
    margent statement OUT/ --budget people.budget -o statement.html
    """
    from margent.internal.label import release_of
    from margent.release.folder import refuse_existing, whole_file
    from margent.release.officer import statement as page
    from margent.release.reading import read_release

    refuse_existing(out)
    if out.resolve().is_relative_to(release_folder.resolve()) or release_of(out.parent) is not None:
        raise UsageError(
            f"{out} is inside a release: other releases and this machine are no part of it; write beside it"
        )
    transcript, budget, summary = read_release(release_folder)
    account = None if budget_file is None else _account(budget_file, release_folder, transcript, budget)
    verdict = None if no_selftest else _verdict()
    whole_file(out, page(transcript, budget, summary, account=account, verdict=verdict).encode())
    say(f"The statement is in {out}; open it in a browser and print it.")
    if verdict is not None and not verdict.passed:
        say("The self test FAILED on this machine: do not publish; run `margent selftest`.")
        raise click.exceptions.Exit(1)


def _verdict() -> Verdict:
    from margent.audits.selftest import self_test
    from margent.release.officer import Verdict

    with shown_progress() as progress:
        findings = self_test(progress=progress)
    lines = [f"{each.name}: {'passed' if each.passed else 'FAILED'} ({each.seen})" for each in findings]
    return Verdict(all(each.passed for each in findings), lines)


def _account(path: Path, release_folder: Path, transcript: Transcript, budget: Budget) -> Account:
    """The data set of the budget file in which the release's run is, at its price or more and on its terms."""
    from margent.errors import BudgetError
    from margent.privacy.budget_releases import Released, require_complete
    from margent.privacy.budget_store import read
    from margent.release.officer import Account, EarlierRun

    (balances, _), run = read(path), transcript.run
    taken = Released(run, transcript.spent, transcript.delta_spent, terms=(budget.accountant, budget.relation))
    for name, balance in balances.items():
        if balance.of_run(run):
            require_complete(balances, {str(release_folder): taken})
            terms = balance.declaration
            paid = [
                EarlierRun(each.when, each.epsilon, each.delta, each.run, each.kind == "again")
                for each in balance.reservations
            ]
            return Account(name, terms.epsilon, terms.delta, float(balance.spent / terms.total), balance.runs, paid)
    raise BudgetError(
        f"{path}: it holds no run of {release_folder}: this is another budget's file, or an older copy of it; "
        f"see `margent budget verify {path} {release_folder}`"
    )
