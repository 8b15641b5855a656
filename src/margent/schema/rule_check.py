"""Contradictions among rules, found from the schema alone: by arc consistency, and by search where that is not enough.

Source: generalized arc consistency (Mackworth 1977) maintained in a depth-first search (Sabin and Freuder 1994).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from margent.errors import Fault
from margent.schema.allowed import Factor, Truth
from margent.schema.rule_tables import Placed
from margent.schema.rules import Equal, Order, Sum, columns_of_rule

MOST_NODES = 20_000
"""Nodes of one search; rules that it does not settle are refused."""
MOST_FAULTS = 20

Domains = dict[str, Truth]


class UndecidedError(Exception):
    """A search that came to its limit."""


def narrowed(factors: Sequence[Factor], domains: Mapping[str, Truth]) -> Domains | None:
    """The codes that every rule, by itself, leaves something to go with; None where a column has none left.

    Shapes: one entry a code in each of ``domains``.

    >>> same = Factor((0,), ("a", "b"), (np.array([0, 1]), np.array([0, 1])), np.eye(2, dtype=bool))
    >>> found = narrowed([same], {"a": np.array([True, False]), "b": np.array([True, True])})
    >>> found["b"].tolist()
    [True, False]
    """
    left = dict(domains)
    if any(not own.any() for own in left.values()):
        return None
    holding: dict[str, list[int]] = {}
    for number, factor in enumerate(factors):
        for name in factor.columns:
            holding.setdefault(name, []).append(number)
    todo = dict.fromkeys(range(len(factors)))
    while todo:
        number = next(iter(todo))
        del todo[number]
        factor = factors[number]
        present = []
        for axis, name in enumerate(factor.columns):
            own = np.zeros(factor.allowed.shape[axis], dtype=np.bool_)
            own[factor.classes[axis][left[name]]] = True
            present.append(own)
        table = factor.allowed
        for axis, own in enumerate(present):
            table = table & own.reshape([-1 if other == axis else 1 for other in range(table.ndim)])
        for axis, name in enumerate(factor.columns):
            others = tuple(other for other in range(table.ndim) if other != axis)
            supported = table.any(axis=others)
            if (present[axis] & ~supported).any():
                kept = left[name] & supported[factor.classes[axis]]
                if not kept.any():
                    return None
                left[name] = kept
                todo |= dict.fromkeys(other for other in holding[name] if other != number)
    return left


def solution(
    factors: Sequence[Factor],
    domains: Mapping[str, Truth],
    preferred: Mapping[str, int] | None = None,
) -> dict[str, int] | None:
    """One row of codes that obeys every rule, with the ``preferred`` codes where they are tried first; or None.

    Raises: UndecidedError after `MOST_NODES` nodes.
    """
    first = narrowed(factors, domains)
    if first is None:
        return None
    stack, nodes = [first], 0
    while stack:
        left = stack.pop()
        nodes += 1
        if nodes > MOST_NODES:
            raise UndecidedError
        open_columns = [name for name, own in left.items() if int(own.sum()) > 1]
        if not open_columns:
            return {name: int(own.argmax()) for name, own in left.items()}
        wanted = preferred or {}
        name = min(
            open_columns, key=lambda each: (each not in wanted or not left[each][wanted[each]], left[each].sum())
        )
        code = int(left[name].argmax())
        if name in wanted and left[name][wanted[name]]:
            code = wanted[name]
        one = np.zeros_like(left[name])
        one[code] = True
        # Tried last first: the rest of the codes waits below.
        for own in (left[name] & ~one, one):
            tried = narrowed(factors, left | {name: own})
            if tried is not None:
                stack.append(tried)
    return None


def possible_codes(factors: Sequence[Factor], domains: Mapping[str, Truth]) -> Domains:
    """The codes that no rule excludes by arc consistency, column by column."""
    found = narrowed(factors, domains)
    assert found is not None
    return found


def contradictions(
    rules: Sequence[Placed], factors: Sequence[Factor], domains: Mapping[str, Truth], values: Mapping[str, int]
) -> tuple[list[Fault], dict[str, int]]:
    """Every smallest set of rules (of each kind of contradiction) that cannot hold together, and else a row that obeys.

    Contradictory are rules that no row obeys, rules that leave a column no value but missing cells and special codes,
    and orderings, sums and equalities that can only hold because a cell is missing.

    Shapes: ``values[name]`` is the number of a column's value codes, which come first.
    """
    faults: list[Fault] = []
    pointers = {placed.place: placed.pointer for placed in rules}
    try:
        removed: set[int] = set()
        while len(faults) < MOST_FAULTS:
            kept = [factor for factor in factors if not removed & set(factor.rules)]
            if solution(kept, domains) is not None:
                break
            core = _core(kept, domains)
            faults.append(_fault(core, pointers, "no row can obey"))
            removed.add(core[-1])
        goals: list[tuple[tuple[str, ...], str]] = [
            ((name,), f"no value of {name!r} is left by") for name in domains if values[name]
        ]
        for placed in rules:
            if isinstance(placed.rule, Order | Sum | Equal):
                goals.append((columns_of_rule(placed.rule), "unless a cell is missing, no row can obey"))
        for names, words in goals:
            kept = [factor for factor in factors if not removed & set(factor.rules)]
            wanted = dict(domains)
            for name in names:
                wanted[name] = domains[name] & (np.arange(domains[name].size) < values[name])
            if all(own.any() for own in wanted.values()) and solution(kept, wanted) is None:
                core = _core(kept, wanted)
                faults.append(_fault(core, pointers, words))
                removed.add(core[-1])
        if faults:
            return sorted(faults, key=lambda fault: int(fault.pointer.rsplit("/", 1)[1])), {}
        witness = solution(factors, domains)
    except UndecidedError:
        message = "it could not be decided whether any row obeys all rules; use fewer rules, or rules on fewer columns"
        return [Fault("/margent/rules", message)], {}
    assert witness is not None
    return [], witness


def _core(factors: Sequence[Factor], domains: Mapping[str, Truth]) -> list[int]:
    """A smallest set of rules that cannot hold together: none can be left out. Places in the schema, ascending.

    Rules that share a table, because their values are drawn together, are left out together.
    """
    places = sorted({place for factor in factors for place in factor.rules})
    needed = set(places)
    for place in places:
        fewer = [factor for factor in factors if set(factor.rules) <= needed - {place}]
        if solution(fewer, domains) is None:
            needed.discard(place)
    return sorted(needed)


def _fault(core: Sequence[int], pointers: Mapping[int, str], words: str) -> Fault:
    """The fault at the last rule of a contradictory set, which names the others."""
    others = [pointers[place] for place in core[:-1]]
    together = f"this rule and {', '.join(others)} together" if others else "this rule"
    return Fault(pointers[core[-1]], f"{words} {together}; correct the rule, or the values and bounds of its columns")
