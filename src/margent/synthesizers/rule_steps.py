"""The compiled loops of rules: which codes a column may take in a record, and the repair of records that break rules.

Rules come as factors (`margent.schema.allowed`): the cell of factor f that a record lies in is the sum of one entry of
``shift`` for each of the factor's axes, and ``allowed[cell_start[f] + cell]`` says whether it may lie there. Axis j
belongs to column ``axis_column[j]`` (its place among the records'), and its entries begin at ``shift_start[j]``,
one a code. Integers only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margent.compiled import compiled
from margent.synthesizers.gum_rounds import below

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Truth = NDArray[np.bool_]
Words = NDArray[np.uint64]


class Factors(NamedTuple):
    """Factors as flat arrays; ``column_factors`` lists, column by column, the factors that speak of it.

    Shapes: d columns of ``sizes`` codes; ``weights`` one entry a code of every column, from ``weight_start`` on.
    """

    axis_start: Int64
    axis_column: Int64
    shift_start: Int64
    shift: Int64
    cell_start: Int64
    allowed: Truth
    column_factors: Int64
    column_factor_start: Int64
    sizes: Int64
    weights: Int64
    weight_start: Int64


@compiled
def obeys(record: Int32, factor: int, rules: Factors) -> bool:
    """Whether a record lies in an allowed cell of a factor."""
    cell = rules.cell_start[factor]
    for axis in range(rules.axis_start[factor], rules.axis_start[factor + 1]):
        cell += rules.shift[rules.shift_start[axis] + record[rules.axis_column[axis]]]
    return bool(rules.allowed[cell])


@compiled
def restrict(record: Int32, factor: int, column: int, rules: Factors, good: Truth) -> None:
    """Cross out the codes of a column with which the record would break a factor, its other columns as they are."""
    cell, own = rules.cell_start[factor], -1
    for axis in range(rules.axis_start[factor], rules.axis_start[factor + 1]):
        if rules.axis_column[axis] == column:
            own = axis
        else:
            cell += rules.shift[rules.shift_start[axis] + record[rules.axis_column[axis]]]
    start = rules.shift_start[own]
    for code in range(rules.sizes[column]):
        if good[code] and not rules.allowed[cell + rules.shift[start + code]]:
            good[code] = False


@compiled
def good_codes(record: Int32, column: int, rules: Factors, good: Truth) -> int:
    """Mark the codes of a column with which the record obeys all factors that speak of it; returns how many."""
    for code in range(rules.sizes[column]):
        good[code] = True
    for place in range(rules.column_factor_start[column], rules.column_factor_start[column + 1]):
        restrict(record, rules.column_factors[place], column, rules, good)
    count = 0
    for code in range(rules.sizes[column]):
        count += good[code]
    return count


@compiled
def first_broken(record: Int32, rules: Factors) -> int:
    """The first factor that a record breaks, -1 where it obeys all."""
    for factor in range(rules.axis_start.size - 1):
        if not obeys(record, factor, rules):
            return factor
    return -1


@compiled
def draw_code(column: int, rules: Factors, good: Truth, state: Words) -> int:
    """One of the good codes at random, by weight; at least one must be good."""
    start, total = rules.weight_start[column], 0
    for code in range(rules.sizes[column]):
        if good[code]:
            total += rules.weights[start + code]
    left = below(state, total)
    for code in range(rules.sizes[column]):
        if good[code]:
            left -= rules.weights[start + code]
            if left < 0:
                return code
    return 0


@compiled
def mark(record: Int32, factor: int, column: int, rules: Factors, groups: Int64, good: Truth) -> int:
    """Mark the codes that a column may take for a factor (-1: for all of its factors) and that are in its code's group.

    Returns the sum of their weights.
    """
    start, mass = rules.weight_start[column], 0
    if factor < 0:
        good_codes(record, column, rules, good)
    else:
        good[: rules.sizes[column]] = True
        restrict(record, factor, column, rules, good)
    group = groups[start + record[column]]
    for code in range(rules.sizes[column]):
        good[code] = good[code] and groups[start + code] == group
        if good[code]:
            mass += rules.weights[start + code]
    return mass


@compiled
def mend(record: Int32, locked: Truth, rules: Factors, groups: Int64, good: Truth, state: Words) -> bool:
    """Change unlocked columns of one record until it obeys every factor; False where no way was found.

    No code leaves its group: ``groups`` has one entry a code of every column, like the weights. A column that can make
    all its factors hold by itself is changed rather than one that only mends the factor that is broken; among such
    columns one is drawn by the weight of its good codes. A changed column stays as it is then.
    """
    fixed = locked.copy()
    while True:
        factor = first_broken(record, rules)
        if factor < 0:
            return True
        chosen, mass, of_all = -1, 0, False
        for axis in range(rules.axis_start[factor], rules.axis_start[factor + 1]):
            column = rules.axis_column[axis]
            if fixed[column]:
                continue
            own = mark(record, -1, column, rules, groups, good)
            whole = own > 0
            if not whole and not of_all:
                own = mark(record, factor, column, rules, groups, good)
            if own == 0:
                continue
            if whole and not of_all:
                chosen, mass, of_all = -1, 0, True
            mass += own
            if below(state, mass) < own:
                chosen = column
        if chosen < 0:
            return False
        mark(record, -1 if of_all else factor, chosen, rules, groups, good)
        record[chosen] = draw_code(chosen, rules, good, state)
        fixed[chosen] = True


@compiled
def mend_all(records: Int32, rules: Factors, groups: Int64, state: Words, broken: Truth) -> int:
    """Mend every record that breaks a factor, in place; those that could not be are as before and marked ``broken``.

    Shapes: ``records`` (n, d); ``broken`` (n,).
    """
    good, failed = np.zeros(rules.sizes.max(), np.bool_), 0
    locked = np.zeros(rules.sizes.size, np.bool_)
    for row in range(records.shape[0]):
        record = records[row]
        if first_broken(record, rules) < 0:
            continue
        before = record.copy()
        if not mend(record, locked, rules, groups, good, state):
            record[:] = before
            broken[row] = True
            failed += 1
    return failed


@compiled
def adapt(records: Int32, before: Int32, codes: Int32, cells: int, locked: Truth, rules: Factors, state: Words) -> int:
    """After a step that moved records to cells of a table: bring those that now break rules back, in place.

    Such a record takes the columns that rules speak of from a random record of its cell that obeys. Where there is
    none, its unlocked columns are mended; where there is no way to do that, it is as it was before the step. Returns
    how many are.

    Shapes: ``records`` and ``before`` (n, d); ``codes`` the cell of each record after the step, all below ``cells``;
    ``locked`` the table's own columns.
    """
    rows, columns = records.shape
    broken = np.empty(rows, np.bool_)
    starts = np.zeros(cells + 1, np.int64)
    any_broken = False
    for row in range(rows):
        broken[row] = first_broken(records[row], rules) >= 0
        any_broken = any_broken or broken[row]
        if not broken[row]:
            starts[codes[row] + 1] += 1
    if not any_broken:
        return 0
    for cell in range(cells):
        starts[cell + 1] += starts[cell]
    donors, filled = np.empty(starts[cells], np.int64), starts[:-1].copy()
    for row in range(rows):
        if not broken[row]:
            donors[filled[codes[row]]] = row
            filled[codes[row]] += 1
    good, failed = np.zeros(rules.sizes.max(), np.bool_), 0
    groups = np.zeros_like(rules.weights)
    for row in range(rows):
        if not broken[row]:
            continue
        start, stop = starts[codes[row]], starts[codes[row] + 1]
        if start < stop:
            donor = donors[start + below(state, stop - start)]
            for column in range(columns):
                if rules.column_factor_start[column] < rules.column_factor_start[column + 1]:
                    records[row, column] = records[donor, column]
        elif not mend(records[row], locked, rules, groups, good, state):
            records[row, :] = before[row, :]
            failed += 1
    return failed
