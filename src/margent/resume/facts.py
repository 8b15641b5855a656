"""What a run is, in public facts: runs of the same facts ask the same questions as long as they get equal answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from margent.errors import BudgetError, UsageError
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.statement import EPSILON_LIMITS
from margent.schema.fields import Schema
from margent.schema.write import schema_to_json
from margent.settings import Settings
from margent.tables.options import ReadOptions
from margent.version import VERSION

MOST_TOLD = 30
"""Differences that a message lists."""
_LONGEST = 60


class Selected(Protocol):
    """Whether the rows of a table are those of a query, or were chosen by a condition."""

    @property
    def from_query(self) -> bool:
        """A query's, a view's or those that row-level security shows."""
        ...

    @property
    def filtered(self) -> bool:
        """Chosen by a condition."""
        ...


def facts_of(
    schema: Schema,
    budget: Budget,
    method: str,
    settings: Settings,
    read: ReadOptions,
    data_set: str | None,
    source: Selected,
) -> dict[str, Any]:
    """All that decides which questions a run asks and what they mean; rows, seed and format only shape the table.

    ``data_set``: the one of the budget file that keeps the budget, None where none does. ``source``: the open table,
    for what the release tells of which rows were meant; none is looked at.

    Privacy: none: schema and options.
    """
    return {
        "version of Margent": ".".join(VERSION.split(".")[:2]),
        "method": method,
        "settings": dict(settings),
        "budget": {
            "epsilon": str(budget.epsilon),
            "delta": str(budget.delta),
            "delta for atoms": str(budget.delta_for_atoms),
            "accountant": budget.accountant,
            "relation": budget.relation,
            "data set of the budget file": data_set,
        },
        "reading": {
            name: getattr(read, name)
            for name in (
                "delimiter",
                "quote",
                "encoding",
                "header",
                "max_record_bytes",
                "kind",
                "container_types",
                "query_is_row_wise",
            )
        },
        "rows": {"of a query or view": source.from_query, "that meet a condition": source.filtered},
        "schema": json.loads(json.dumps(schema_to_json(schema))),
    }


def require_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any], further: Sequence[str] = ()) -> None:
    """Refuse to go on with a run as another one; ``further`` are differences in words.

    Privacy: none: public facts.
    Raises: UsageError listing all differences, each with what it was and what it is.
    """
    found = [*_differences("", before, now), *further]
    if not found:
        return
    told = [f"  {line}" for line in found[:MOST_TOLD]]
    if len(found) > MOST_TOLD:
        told.append(f"  and {len(found) - MOST_TOLD} more")
    raise UsageError(
        f"{folder}: the interrupted run was another one; nothing was charged. Give the same command and schema, or "
        "delete the folder to start anew (what it charged stays spent):\n" + "\n".join(told)
    )


def covering(budget: Budget, lost: Sequence[Charge]) -> Budget:
    """A budget for ``budget`` and the charges of ``lost`` answers together: what is then promised.

    Epsilon is rounded up to six digits.

    Privacy: its total is at least that of ``budget`` and what they cost, at what atoms leave of delta.
    Raises: BudgetError where there is no such epsilon.
    """
    cost = sum((charge.cost for charge in lost), Fraction(0))
    delta = sum((charge.delta for charge in lost), Fraction(0))
    if cost == 0 and delta == 0:
        return budget
    wanted, noise = budget.total + cost, budget.delta - budget.delta_for_atoms
    epsilon = max(budget.account.epsilon(wanted, noise), budget.epsilon)
    digit = Fraction(10) ** (len(str(int(epsilon))) - 6)
    while epsilon < 10**5 * digit:
        digit /= 10
    rounded = -(-epsilon // digit) * digit
    while budget.account.total(rounded, noise) < wanted:
        rounded += digit
        if rounded > EPSILON_LIMITS[1]:
            raise BudgetError("to buy the lost answers anew takes a larger epsilon than there is: start a new run")
    return Budget(
        rounded,
        budget.delta + delta,
        budget.accountant,
        budget.relation,
        delta_for_atoms=budget.delta_for_atoms + delta,
        person_rows=budget.person_rows,
    )


def _differences(place: str, before: Any, now: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in [*before, *(name for name in now if name not in before)]:
            yield from _differences(f"{place}/{name}" if place else name, before.get(name), now.get(name))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for position, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from _differences(f"{place}/{position}", one, other)
    elif before != now:
        yield f"{place}: was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    try:
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
    except RecursionError:  # an altered state can hold what no run writes
        return "something endlessly nested"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
