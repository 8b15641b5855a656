"""The compiled loops of rules: which codes a column may take in a record, and the repair of records that break rules.

Rules come as factors (`margent.schema.allowed`): the cell of factor f that a record lies in is the sum of one entry of
``shift`` for each of the factor's axes, and ``allowed[cell_start[f] + cell]`` says whether it may lie there. Axis j
belongs to column ``axis_column[j]`` (its place among the records' columns, -1 for columns that are not there), and its
entries begin at ``shift_start[j]``, one a code. Integers only.
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
def mend(record: Int32, locked: Truth, rules: Factors, good: Truth, state: Words) -> bool:
    """Change unlocked columns of one record until it obeys every factor; False where no way was found.

    A column that can make all its factors hold by itself is changed rather than one that only mends the factor that
    is broken; among such columns one is drawn by the weight of its good codes. A changed column stays as it is then.
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
            whole = good_codes(record, column, rules, good) > 0
            if not whole:
                if of_all:
                    continue
                good[: rules.sizes[column]] = True
                restrict(record, factor, column, rules, good)
            start, own = rules.weight_start[column], 0
            for code in range(rules.sizes[column]):
                if good[code]:
                    own += rules.weights[start + code]
            if own == 0:
                continue
            if whole and not of_all:
                chosen, mass, of_all = -1, 0, True
            mass += own
            if below(state, mass) < own:
                chosen = column
        if chosen < 0:
            return False
        if of_all:
            good_codes(record, chosen, rules, good)
        else:
            good[: rules.sizes[chosen]] = True
            restrict(record, factor, chosen, rules, good)
        record[chosen] = draw_code(chosen, rules, good, state)
        fixed[chosen] = True


@compiled
def mend_all(records: Int32, locked: Truth, rules: Factors, state: Words, broken: Truth) -> int:
    """Mend every record that breaks a factor, in place; those that could not be are as before and marked ``broken``.

    Shapes: ``records`` (n, d); ``broken`` (n,).
    """
    good, failed = np.zeros(rules.sizes.max(), np.bool_), 0
    for row in range(records.shape[0]):
        record = records[row]
        if first_broken(record, rules) < 0:
            continue
        before = record.copy()
        if not mend(record, locked, rules, good, state):
            record[:] = before
            broken[row] = True
            failed += 1
    return failed
