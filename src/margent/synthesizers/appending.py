"""Attribute appending: columns in a single marginal need no iteration; they are drawn given the rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Clique, clique, outermost
from margent.stream import Stream
from margent.synthesizers.shares import WHOLE, Share


@dataclass(frozen=True, slots=True)
class Append:
    """Draw ``column`` given the columns ``given`` from the table over both."""

    column: str
    given: Clique


@dataclass(frozen=True, slots=True)
class Layout:
    """How records are built: cores by iteration, one per connected component, then appends in order.

    ``cores`` holds the cliques of each component; columns in neither a core nor an append are drawn alone.
    """

    cores: tuple[tuple[Clique, ...], ...]
    appends: tuple[Append, ...]


def layout(cliques: Sequence[Clique], linked: Sequence[Clique] = ()) -> Layout:
    """Strip columns that lie in one clique only, drop cliques inside others, repeat; split what is left.

    Columns that are ``linked``, by rules, are in cores and never stripped; those of one link are in one core.

    Nothing is left of an acyclic set of cliques (a tree of pairs, say): its records need no iteration.

    Privacy: none: names are public.
    Source: PrivSyn 2021 section 5 ("attribute appending", "separate and join"), here for cliques of any size
    (Graham's reduction).

    >>> layout([("a", "b"), ("b", "c"), ("c", "d"), ("b", "d")]).appends
    (Append(column='a', given=('b',)),)
    """
    left = sorted({names for names in cliques if len(names) > 1})
    kept = {name for names in linked for name in names}
    stripped: list[Append] = []
    while True:
        left = outermost(left)
        holders: dict[str, list[Clique]] = {}
        for names in left:
            for name in names:
                holders.setdefault(name, []).append(names)
        alone = sorted(name for name, where in holders.items() if len(where) == 1 and name not in kept)
        if not alone:
            break
        (names,) = holders[alone[0]]
        rest = tuple(name for name in names if name != alone[0])
        stripped.append(Append(alone[0], rest))
        left.remove(names)
        if len(rest) > 1 and rest not in left:
            left = sorted([*left, rest])
    return Layout(_components(left, linked), tuple(reversed(stripped)))


def _components(cliques: Sequence[Clique], linked: Sequence[Clique] = ()) -> tuple[tuple[Clique, ...], ...]:
    """The cliques of each component that cliques and links connect, components in order of their first column."""
    groups: list[tuple[set[str], list[Clique]]] = []
    for names in [*cliques, *linked]:
        joined, members = set(names), [names] if names in cliques else []
        apart = []
        for columns, others in groups:
            if columns & joined:
                joined |= columns
                members = [*others, *members]
            else:
                apart.append((columns, others))
        groups = [*apart, (joined, members)]
    return tuple(tuple(sorted(members)) for _, members in sorted(groups, key=lambda group: clique(group[0])) if members)


def reached(names: Collection[str], links: Sequence[Clique]) -> set[str]:
    """The names, and all that links lead to from them.

    >>> sorted(reached({"a"}, [("b", "c"), ("a", "b"), ("d", "e")]))
    ['a', 'b', 'c']
    """
    found = set(names)
    while more := {name for link in links if found & set(link) for name in link} - found:
        found |= more
    return found


def draw_given(
    table: NDArray[np.float64],
    fallback: NDArray[np.float64],
    given: NDArray[np.int64],
    stream: Stream,
    share: Share = WHOLE,
    *labels: str,
) -> NDArray[np.int32]:
    """A column whose counts within each group of records follow the group's row of ``table``, rounded.

    Within a group each code's count is the floor or ceiling of its expectation, without bias, in random
    order; groups with an empty row follow ``fallback``. In blocks, ``labels`` name the column.

    Shapes: ``table`` (groups, codes), ``fallback`` (codes,), ``given`` (n,) group numbers; n codes.
    Privacy: none: post-processing.
    """
    groups, codes = table.shape
    sizes = np.bincount(given, minlength=groups)
    default = fallback if fallback.sum() > 0 else np.ones_like(fallback)
    rows = np.where(table.sum(axis=1, keepdims=True) > 0, table, default)
    cuts = np.cumsum(rows, axis=1)
    starts = share.starts(stream.unit(groups), *labels)
    ends = np.floor(cuts * (sizes[:, None] / cuts[:, -1:]) + starts[:, None]).astype(np.int64)
    # Rounding in the line above must not leave the last records to codes of weight 0 at the end.
    ends = np.where(cuts == cuts[:, -1:], sizes[:, None], np.minimum(ends, sizes[:, None]))
    counts = np.diff(ends, axis=1, prepend=0)
    drawn = np.repeat(np.tile(np.arange(codes, dtype=np.int32), groups), counts.ravel())
    order = stream.permutation(given.size)
    column = np.empty(given.size, dtype=np.int32)
    column[order[np.argsort(given[order], kind="stable")]] = drawn
    return column
