"""From a schema that asks to buy bins or values, and what was bought, to the schema whose codes are fixed.

All of it is post-processing: the same declared schema and the same answers give the same settled schema everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margent.schema.fields import PersonUnit, Schema
from margent.schema.parts import Field, ListedValue, MissingToken, QuantileBins
from margent.schema.quantile_grid import cells_of, gridded, with_bins
from margent.transcript import Bought, OpenValues, Quantiles, Sizes

NOTHING_KEPT = ("other", "other values", "no value was kept")
"""The one value of an open set of which nothing was kept and that names none itself: the first that is no token."""


def asks_to_buy(field: Field) -> bool:
    """Whether a modeled field's values or bins are to be bought. Privacy: none: a function of the schema."""
    return field.role == "model" and (field.open_set is not None or isinstance(field.bins, QuantileBins))


def columns_on_grids(schema: Schema) -> tuple[Field, ...]:
    """The modeled fields whose quantiles are asked for. Privacy: none: a function of the schema."""
    return tuple(field for field in schema.modelled if isinstance(field.bins, QuantileBins))


def open_columns(schema: Schema) -> tuple[Field, ...]:
    """The modeled fields whose values are asked for. Privacy: none: a function of the schema."""
    return tuple(field for field in schema.modelled if field.open_set is not None)


def grid_schema(schema: Schema) -> Schema:
    """The schema in which quantiles are counted: their columns on their grids, open sets left out.

    Privacy: none: a function of the schema.
    """
    fields = []
    for field in schema.fields:
        if field.role == "model" and field.open_set is not None:
            fields.append(Field(field.name, "string", role="drop"))
        elif field.role == "model" and isinstance(field.bins, QuantileBins):
            fields.append(gridded(field, schema.missing_of(field)))
        else:
            fields.append(field)
    return replace(schema, fields=fields, rules=())


def readable(schema: Schema) -> Schema:
    """The columns that have codes, or a grid, before anything is bought, for checking how cells are spelled.

    Privacy: none: a function of the schema.
    """
    if all(field.open_set is not None for field in schema.modelled):
        return planned(schema)  # there is nothing else to check; any text may be a value
    return grid_schema(schema)


def settled(schema: Schema, bought: Sequence[Bought]) -> Schema:
    """The schema with closed lists for open sets, and edges for quantiles, as the answers say.

    An open set's list is what was kept, sorted, and the value that ``unlisted`` names; where that is empty, a stand-in.
    Quantiles become at most so many bins of whole grid cells that hold about equal noisy numbers of records.

    Privacy: none: post-processing of noisy answers.
    Raises: ValueError where the answers are not those that the schema asks for.
    """
    sizes = [answer for answer in bought if isinstance(answer, Sizes)]
    wanted = isinstance(schema.unit, PersonUnit) and schema.unit.sizes
    if len(sizes) != wanted or any(answer.counts.size != schema.person_rows for answer in sizes):
        raise ValueError("the answers are not those that the schema asks for")
    answers: Mapping[str, Bought] = {answer.column: answer for answer in bought if not isinstance(answer, Sizes)}
    asked = [field.name for field in schema.modelled if asks_to_buy(field)]
    if len(answers) != len(bought) - len(sizes) or set(answers) != set(asked):
        raise ValueError("the answers are not those that the schema asks for")
    if not asked:
        return schema
    fields = [_settled(field, schema.missing_of(field), answers) for field in schema.fields]
    return replace(schema, fields=fields)


def planned(schema: Schema) -> Schema:
    """The schema as if everything bought had its most codes: a plan's stand-in, of the largest sizes there can be.

    Privacy: none: a function of the schema.
    """
    answers: list[Bought] = []
    one = {"variance": 1, "charge": 0}
    for field in columns_on_grids(schema):
        grid = gridded(field, schema.missing_of(field))
        answers.append(Quantiles(field.name, np.ones(cells_of(grid), dtype=np.int64), **one))  # type: ignore[arg-type]
    for field in open_columns(schema):
        assert field.open_set is not None
        taken = {token.text for token in schema.missing_of(field)} | {field.unlisted_to}
        names = [f"value {number}" for number in range(1, field.open_set.most + len(taken) + 1)]
        free = tuple(name for name in names if name not in taken)[: field.open_set.most]
        answers.append(OpenValues(field.name, free, np.zeros(len(free), dtype=np.int64), **one))  # type: ignore[arg-type]
    if isinstance(schema.unit, PersonUnit) and schema.unit.sizes:
        answers.append(Sizes(schema.unit.field, np.zeros(schema.unit.max_rows, dtype=np.int64), **one))  # type: ignore[arg-type]
    return settled(schema, answers)


def quantile_starts(counts: NDArray[np.int64], bins: int) -> list[int]:
    """The first cells of at most ``bins`` runs of cells that hold about equal shares of noisy counts; 0 comes first.

    Noisy cumulative counts need not grow: each is replaced by the mean of the largest up to it and the smallest from it
    on, which do. Each of the shares 1/bins, 2/bins, ... is reached inside a cell: a run begins with that cell or after
    it, whichever is nearer. So a cell that holds more than a share is a run of its own.

    Privacy: none: post-processing, in integers.

    >>> quantile_starts(np.array([5, 5, -2, 12, 0, 20]), 4)
    [0, 3, 4, 5]
    """
    sums = np.cumsum(counts)
    rising = np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]  # twice the count
    rising = np.clip(rising, 0, None)
    total, starts = int(rising[-1]), [0]
    if total == 0:  # nothing but noise: cells are as good as records
        rising, total = np.arange(1, counts.size + 1), counts.size
    for share in range(1, bins):
        wanted = share * total
        place = int(np.searchsorted(rising[:-1], -(-wanted // bins)))
        if place == rising.size - 1 or (
            place > 0 and wanted - bins * int(rising[place - 1]) <= bins * int(rising[place]) - wanted
        ):
            place -= 1
        if place >= 0 and place + 1 > starts[-1]:
            starts.append(place + 1)
    return starts


def _settled(field: Field, tokens: Sequence[MissingToken], answers: Mapping[str, Bought]) -> Field:
    if not asks_to_buy(field):
        return field
    answer = answers[field.name]
    if isinstance(field.bins, QuantileBins):
        grid = gridded(field, tokens)
        cells = cells_of(grid)
        if not isinstance(answer, Quantiles) or answer.counts.size < cells:
            raise ValueError("the answer is no count of the grid's cells")
        return with_bins(grid, quantile_starts(answer.counts[:cells], field.bins.count))
    if not isinstance(answer, OpenValues):
        raise ValueError("the answer holds no values")
    values = set(answer.values) | ({field.unlisted_to} if field.unlisted_to is not None else set())
    if not values:
        texts = {token.text for token in tokens}
        values = {next(text for text in NOTHING_KEPT if text not in texts)}
    return replace(field, open_set=None, listed=tuple(ListedValue(value) for value in sorted(values)))
