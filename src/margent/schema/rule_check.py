"""Contradictions among rules, found from the schema alone (`rule_search`), and the rules that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from margent.errors import Fault
from margent.schema.allowed import Factor, Truth
from margent.schema.rule_search import Domains, UndecidedError, Work, narrowed, refuted, solution
from margent.schema.rule_tables import Placed
from margent.schema.rules import Equal, Order, Sum, columns_of_rule

MOST_FAULTS = 20
MOST_NAMED = 20
"""Rules that a fault names one by one."""


def possible_codes(factors: Sequence[Factor], domains: Mapping[str, Truth]) -> Domains:
    """The codes that no rule excludes by arc consistency, column by column; all, where that is too much work."""
    try:
        found = narrowed(factors, domains)
    except UndecidedError:
        return dict(domains)
    assert found is not None
    return found


def contradictions(
    rules: Sequence[Placed],
    factors: Sequence[Factor],
    domains: Mapping[str, Truth],
    values: Mapping[str, int],
    work: Work | None = None,
) -> tuple[list[Fault], dict[str, int]]:
    """A smallest set of rules for each contradiction among them (of each kind), and else a row that obeys all rules.

    Contradictory are rules that no row obeys, rules that leave a column no value but missing cells and special codes,
    and orderings, sums and equalities that can only hold because a cell is missing. All searches together have
    ``work``: what was found until it is used up is told, with sets that may not be smallest.

    Shapes: ``values[name]`` is the number of a column's value codes, which come first.
    """
    work = work or Work()
    pointers = {placed.place: placed.pointer for placed in rules}
    faults: list[Fault] = []
    row: dict[str, int] | None = None
    try:
        removed: set[int] = set()
        while len(faults) < MOST_FAULTS:
            kept = _without(factors, removed)
            row = solution(kept, domains, work=work)
            if row is not None:
                break
            core, smallest = _core(kept, domains, work)
            faults.append(_fault(core, smallest, pointers, "no row can obey"))
            removed.add(core[-1])
        goals: list[tuple[tuple[str, ...], str]] = [
            ((name,), f"no value of {name!r} is left by") for name in domains if values[name]
        ]
        for placed in rules:
            if isinstance(placed.rule, Order | Sum | Equal):
                goals.append((columns_of_rule(placed.rule), "unless a cell is missing, no row can obey"))
        known = [] if row is None else [row]
        for names, words in goals:
            if any(all(own[name] < values[name] for name in names) for own in known):
                continue
            wanted = dict(domains)
            for name in names:
                wanted[name] = domains[name] & (np.arange(domains[name].size) < values[name])
            if not all(own.any() for own in wanted.values()):
                continue
            kept = _without(factors, removed)
            found = solution(kept, wanted, work=work)
            if found is not None:
                known.append(found)
                continue
            core, smallest = _core(kept, wanted, work)
            faults.append(_fault(core, smallest, pointers, words))
            removed.add(core[-1])
    except UndecidedError:
        if not faults:
            message = (
                "it could not be decided whether any row obeys all rules; use fewer rules, or rules on fewer columns"
            )
            return [Fault("/margent/rules", message)], {}
    if faults:
        return sorted(faults, key=lambda fault: int(fault.pointer.rsplit("/", 1)[1])), {}
    assert row is not None
    return [], row


def _without(factors: Sequence[Factor], removed: set[int]) -> list[Factor]:
    """The tables of no removed rule: rules that share a table are left out together."""
    return [factor for factor in factors if removed.isdisjoint(factor.rules)]


def _core(factors: Sequence[Factor], domains: Mapping[str, Truth], work: Work) -> tuple[list[int], bool]:
    """Rules that cannot hold together, ascending places in the schema; and whether none of them can be left out.

    Rules are left out from the first on, many at once where that goes well, so that a few of a thousand are found soon.
    """
    needed = sorted({place for factor in factors for place in factor.rules})
    try:
        if refuted(factors, domains, work):
            needed = _fewer(factors, needed, lambda kept: refuted(kept, domains, work))
        needed = _fewer(factors, needed, lambda kept: solution(kept, domains, work=work) is None)
    except _StoppedError as stopped:
        return stopped.needed, False
    except UndecidedError:
        return needed, False
    return needed, True


class _StoppedError(Exception):
    """No work is left; ``needed`` are the rules that were not left out until then."""

    def __init__(self, needed: list[int]) -> None:
        super().__init__()
        self.needed = needed


def _fewer(
    factors: Sequence[Factor], places: Sequence[int], contradictory: Callable[[list[Factor]], bool]
) -> list[int]:
    """Those of the rules at ``places`` that are left when as many as can be are left out, from the first on."""
    everything = {place for factor in factors for place in factor.rules}
    needed, start, size = set(places), 0, len(places)
    while start < len(places):
        few = set(places[start : start + size])
        try:
            left_out = contradictory(_without(factors, everything - needed | few))
        except UndecidedError:
            raise _StoppedError(sorted(needed)) from None
        if left_out:
            needed -= few
            start, size = start + size, size * 2
        elif size > 1:
            size //= 2
        else:
            start += 1
    return sorted(needed)


def _fault(core: Sequence[int], smallest: bool, pointers: Mapping[int, str], words: str) -> Fault:
    """The fault at the last rule of a contradictory set, which names the others."""
    others = [pointers[place] for place in core[:-1]]
    named = ", ".join(others[:MOST_NAMED])
    if len(others) > MOST_NAMED:
        named += f" and {len(others) - MOST_NAMED:,} more"
    together = f"this rule and {named} together" if others else "this rule"
    perhaps = "" if smallest else " (fewer of them may do)"
    return Fault(
        pointers[core[-1]], f"{words} {together}{perhaps}; correct the rule, or the values and bounds of its columns"
    )
