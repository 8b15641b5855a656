"""Fresh ids that group synthetic rows: as many rows each as noisy counts say that persons have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margent.stream import Stream


def person_ids(sizes: NDArray[np.int64], rows: int, seed: int) -> NDArray[np.int64]:
    """One id a row, 1, 2, ...: persons of 1, 2, ... k rows in the proportions of ``sizes``, in a random order.

    Shapes: ``sizes`` has k noisy numbers of persons; ``rows`` ids, those of one person side by side.
    Privacy: none: post-processing of noisy counts and a public seed.

    >>> np.bincount(np.bincount(person_ids(np.array([50, -3, 25]), 25, 1))[1:]).tolist()
    [0, 10, 0, 5]
    """
    persons = apportioned([max(int(count), 0) for count in sizes.tolist()], rows)
    each = np.repeat(np.arange(1, len(persons) + 1), persons)
    each = each[Stream(seed, "persons").permutation(each.size)] if each.size else each
    return np.repeat(np.arange(1, each.size + 1), each).astype(np.int64)


def persons_in(sizes: NDArray[np.int64], rows: int) -> int:
    """How many persons `person_ids` makes of so many rows.

    Privacy: none: post-processing of noisy counts.

    >>> persons_in(np.array([50, -3, 25]), 25), int(person_ids(np.array([50, -3, 25]), 25, 1).max())
    (15, 15)
    """
    return sum(apportioned([max(int(count), 0) for count in sizes.tolist()], rows))


def apportioned(counts: list[int], rows: int) -> list[int]:
    """Numbers of persons of 1, 2, ... k rows, in the proportions of ``counts``, that have ``rows`` rows together.

    Each number is the exact share rounded down; the rows that are left go to persons whose share lost most, and where
    that does not come out even, to persons of as many rows as are left. Without counts, everybody has one row.

    Privacy: none: post-processing.

    >>> apportioned([2, 1], 9), apportioned([0, 0, 5], 7), apportioned([0, 0], 3)
    ([5, 2], [1, 0, 2], [3, 0])
    """
    weight = sum(size * count for size, count in enumerate(counts, start=1))
    if weight == 0:
        return [rows, *[0] * (len(counts) - 1)]
    persons = [rows * count // weight for count in counts]
    left = rows - sum(size * number for size, number in enumerate(persons, start=1))
    by_loss = sorted(range(len(counts)), key=lambda place: (-(rows * counts[place] % weight), place))
    for place in by_loss:
        if rows * counts[place] % weight and place + 1 <= left:
            persons[place] += 1
            left -= place + 1
    while left:
        size = min(left, len(counts))
        persons[size - 1] += 1
        left -= size
    return persons
