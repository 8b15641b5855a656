"""The public first stage: what a schema asks to buy before its codes are fixed, and what that takes of the budget.

Each column whose bins or values are bought takes a twentieth of the budget, and so does the table of how many rows
persons have, up to a fifth in all; the method has the rest. Open sets share the part of delta that is set apart
equally.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from margent.collectors.stage import Stage
from margent.errors import UsageError
from margent.privacy.budget import Budget
from margent.privacy.partitions import threshold
from margent.privacy.purchases import ONE_PERSON, Merchant, OpenSetRequest, QuantilesRequest, SizesRequest
from margent.privacy.queries import marginal_law
from margent.schema.codec import Codec
from margent.schema.fields import PersonUnit, Schema
from margent.schema.settled import columns_on_grids, grid_schema, open_columns
from margent.transcript import Bought

SHARE_EACH = Fraction(1, 20)
SHARE_AT_MOST = Fraction(1, 5)
_LEFT_OUT = Fraction(1, 2**20)


@dataclass(frozen=True)
class Purchases:
    """What is asked for, with its noise; a function of schema and budget.

    ``share``: of the run's budget. ``stage``: the plan's line, None where nothing is bought.

    Privacy: none: public facts only.
    """

    quantiles: tuple[QuantilesRequest, ...] = ()
    open_sets: tuple[OpenSetRequest, ...] = ()
    sizes: SizesRequest | None = None
    share: Fraction = Fraction(0)
    stage: Stage | None = None

    def buy(self, merchant: Merchant) -> tuple[Bought, ...]:
        """The answers, quantiles first; each kind paid for before the first look at it."""
        found: tuple[Bought, ...] = ()
        if self.quantiles:
            found += merchant.quantiles(self.quantiles, label="bins from quantiles")
        if self.open_sets:
            found += merchant.open_sets(self.open_sets, label="values of open sets")
        if self.sizes is not None:
            found += (merchant.sizes(self.sizes, label="rows of persons"),)
        return found


def purchases_of(schema: Schema, budget: Budget) -> Purchases:
    """What ``schema`` asks to buy, priced for ``budget``.

    Privacy: none: public facts only.
    Raises: UsageError where an open set is asked for and no delta is set apart, in plain words.
    """
    grids, opens = columns_on_grids(schema), open_columns(schema)
    person = schema.unit.field if isinstance(schema.unit, PersonUnit) and schema.unit.sizes else None
    count = len(grids) + len(opens) + (person is not None)
    if count == 0:
        return Purchases()
    share = min(count * SHARE_EACH, SHARE_AT_MOST)
    law = marginal_law(budget.total * share / count, budget.neighbors, budget.account)
    opened = []
    for field in opens:
        assert field.open_set is not None
        opened.append(OpenSetRequest(field.name, law, _delta(field.name, budget) / len(opens), field.open_set.most))
    sizes = []
    if grids:
        domain = Codec(grid_schema(schema)).domain
        sizes = [domain.size(field.name) for field in grids]
    sizes_law = budget.account.law(budget.total * share / count, ONE_PERSON, ONE_PERSON)
    parts = ["bins"] * bool(grids) + ["values"] * bool(opens) + ["rows of persons"] * (person is not None)
    note = "; ".join(_notes(len(grids), opened, schema.person_rows if person is not None else None, budget))
    stage = Stage(
        name=" and ".join(parts),
        share=share,
        questions=count,
        largest=max(sizes, default=1),
        cells=sum(sizes)
        + sum(request.most for request in opened)
        + ((schema.person_rows or 0) if person is not None else 0),
        law=law if grids or opens else sizes_law,
        note=note,
        looks=count,
        new=count,
    )
    return Purchases(
        tuple(QuantilesRequest(field.name, law) for field in grids),
        tuple(opened),
        None if person is None else SizesRequest(person, sizes_law),
        share,
        stage,
    )


def rest_of(budget: Budget, share: Fraction) -> Budget:
    """A budget whose total is at most what ``share`` leaves of this one's, and less by about a millionth of it.

    Units: totals in the account's unit.
    Privacy: none: public facts only.
    """
    if share == 0:
        return budget
    left, account = budget.total * (1 - share), budget.account
    wanted = left * (1 - _LEFT_OUT)
    while True:
        epsilon = account.epsilon(wanted, budget.delta - budget.delta_for_atoms)
        part = replace(budget, epsilon=epsilon)
        if part.total <= left:
            return part
        wanted *= 1 - _LEFT_OUT


def shared_out(stages: tuple[Stage, ...], purchases: Purchases) -> tuple[Stage, ...]:
    """A run's stages: the purchases, then the method's, whose shares are of what is left.

    Privacy: none: public facts only.
    """
    if purchases.stage is None:
        return stages
    return (purchases.stage, *(replace(stage, share=stage.share * (1 - purchases.share)) for stage in stages))


def _delta(name: str, budget: Budget) -> Fraction:
    if budget.delta == 0:
        raise UsageError(
            f"field {name!r}: values of an open set cannot be bought at delta 0: any value might be one person's "
            "alone, and a chance of delta that its name is told is what delta is for. List the values as categories, "
            "or choose accountant 'gdp' with a delta"
        )
    if budget.delta_for_atoms == 0:
        raise UsageError(
            f"field {name!r}: buying the values of an open set uses up delta itself, and none is set apart for that: "
            "give delta_for_atoms (--delta-for-atoms), a tenth of delta is a common choice"
        )
    return budget.delta_for_atoms


def _notes(grids: int, opened: list[OpenSetRequest], rows: int | None, budget: Budget) -> Iterator[str]:
    if grids:
        yield f"{grids} column{'s' * (grids > 1)} counted on a public grid for quantiles"
    for request in opened:
        bar = threshold(request.law, request.delta, budget.neighbors)
        yield f"of {request.column}, at most {request.most:,} values that about {bar:,} records or more hold"
    if rows is not None:
        yield f"persons counted by their rows, 1 to {rows:,}, for ids that group rows (noise in persons)"
