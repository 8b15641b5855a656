"""The law over records of largest entropy with given tables, on a junction tree: fitted, counted, and taken apart.

Pr[x] = prod over cliques Pr[x_C] / prod over separators Pr[x_S]. Where every clique has its table, that is already it;
where a clique has only tables of some of its columns, it is found by iterative proportional fitting: beliefs of the
cliques are multiplied, one table after another, by what is wanted over what they say, and what changes is carried along
the tree, so that no table larger than a clique is ever made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from margent.postprocessing.junction import JunctionTree, maximal
from margent.schema.allowed import StructuralZeros
from margent.schema.domain import Clique, Domain, clique

Shares = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TreeLaw:
    """A law over records, told by one table of shares a clique of a junction tree.

    Shapes: ``beliefs[i]`` has one axis a column of ``tree.cliques[i]`` and sums to one.
    Privacy: none: post-processing.
    """

    domain: Domain
    tree: JunctionTree
    beliefs: tuple[Shares, ...]

    @cached_property
    def fresh(self) -> tuple[Clique, ...]:
        """The columns of each clique that no clique before it has."""
        pairs = zip(self.tree.cliques, self.tree.separators, strict=True)
        return tuple(clique(set(names) - set(separator)) for names, separator in pairs)

    def conditional(self, place: int) -> Shares:
        """Pr[fresh columns | separator] of a clique; given what has no share, the fresh columns' own law.

        Shapes: (cells of the separator, cells of the fresh columns); rows sum to one.
        """
        names, separator, fresh = self.tree.cliques[place], self.tree.separators[place], self.fresh[place]
        moved = np.transpose(self.beliefs[place], [names.index(name) for name in (*separator, *fresh)])
        table = moved.reshape(self.domain.cells(separator), self.domain.cells(fresh))
        mass = table.sum(axis=1, keepdims=True)
        alone = table.sum(axis=0)
        given: Shares = np.where(mass > 0, table / np.where(mass > 0, mass, 1.0), alone / alone.sum())
        return given

    def table(self, names: Clique, most_cells: int) -> Shares | None:
        """Shares of a clique of any columns, by elimination towards the roots; None where that takes too large a table.

        Shapes: one axis a column, in clique order.
        Privacy: none: post-processing. Source: Lauritzen and Spiegelhalter 1988.
        """
        asked = set(names)
        messages: dict[int, list[tuple[Clique, Shares]]] = {}
        roots: list[tuple[Clique, Shares]] = []
        for place in range(len(self.tree.cliques) - 1, -1, -1):
            received = messages.pop(place, [])
            if not received and not asked & set(self.fresh[place]):
                continue  # sums to one whatever the separator is
            parent = self.tree.parents[place]
            around = clique({*self.tree.cliques[place], *(name for over, _ in received for name in over)})
            if self.domain.cells(around) > most_cells:
                return None
            joint = self._spread((*self.tree.separators[place], *self.fresh[place]), self._given(place), around)
            for over, message in received:
                joint = joint * self._spread(over, message, around)
            kept = tuple(name for name in around if name in asked or name in self.tree.separators[place])
            found = joint.sum(axis=tuple(axis for axis, name in enumerate(around) if name not in kept))
            (roots if parent is None else messages.setdefault(parent, [])).append((kept, np.asarray(found)))
        if self.domain.cells(names) > most_cells:
            return None
        product: Shares = np.ones((1,) * len(names))
        for over, found in roots:
            product = product * self._spread(over, found, names)
        return product

    def _given(self, place: int) -> Shares:
        shape = self.domain.shape((*self.tree.separators[place], *self.fresh[place]))
        return self.conditional(place).reshape(shape)

    def _spread(self, over: Sequence[str], values: Shares, names: Clique) -> Shares:
        """The values with axes in clique order, and axes of length one for the columns that they do not have."""
        order = sorted(range(len(over)), key=lambda axis: over[axis])
        shape = [self.domain.size(name) if name in over else 1 for name in names]
        return np.transpose(values, order).reshape(shape)


def fitted(
    tree: JunctionTree,
    domain: Domain,
    targets: Mapping[Clique, Shares],
    *,
    zeros: StructuralZeros | None = None,
    rounds: int = 200,
    tolerance: float = 1e-5,
) -> TreeLaw:
    """The law of largest entropy on the tree whose tables are the targets, as nearly as they agree.

    A target counts for every clique as far as it lies in it: one over more columns than any clique has is cut to what
    each clique shares with it. What ``zeros`` forbid within a clique has no share. Rounds end once no table moves by
    more than ``tolerance`` in total variation.

    Shapes: ``targets[names]`` one axis a column, of at least 0, not all 0. ``tree`` covers all their columns.
    Privacy: none: post-processing.
    Source: Deming and Stephan 1940; along the tree: Jirousek and Preucil 1995.
    """
    wanted = [_within(names, targets) for names in tree.cliques]
    beliefs = [np.full(domain.shape(names), 1.0 / domain.cells(names)) for names in tree.cliques]
    near = list(zip(tree.parents, tree.separators, strict=True))
    for number in range(rounds):
        moved = 0.0
        for origin, place in _walk(tree):
            if origin is not None:
                # One of the two hangs from the other, and their separator is stored with that one.
                separator = near[place][1] if near[place][0] == origin else near[origin][1]
                _carry(tree, beliefs, origin, place, separator)
                if near[place][0] != origin:
                    continue  # on the way back: its tables had their turn
            mask = zeros.mask(tree.cliques[place]) if zeros is not None and number == 0 else None
            if mask is not None:
                _scale(beliefs, place, mask.astype(np.float64), np.ones_like(mask, dtype=np.float64))
            for names, target in wanted[place]:
                moved = max(moved, _impose(tree.cliques[place], beliefs, place, names, target))
        # Zeros change tables that had their turn before them.
        if moved <= tolerance and (zeros is None or number > 0):
            break
    for place, (parent, separator) in enumerate(near):
        if parent is not None:
            _carry(tree, beliefs, parent, place, separator)
    return TreeLaw(domain, tree, tuple(beliefs))


def _within(names: Clique, targets: Mapping[Clique, Shares]) -> list[tuple[Clique, Shares]]:
    """What the targets say of a clique: on each largest set of columns that one of them shares with it."""
    shared: dict[Clique, Clique] = {}
    for over in sorted(targets, key=lambda over: (targets[over].size, over)):
        shared.setdefault(clique(set(over) & set(names)), over)
    kept = []
    for inside in maximal(inside for inside in shared if inside):
        over = shared[inside]
        summed = targets[over].sum(axis=tuple(axis for axis, name in enumerate(over) if name not in inside))
        kept.append((inside, np.asarray(summed / summed.sum())))
    return kept


def _walk(tree: JunctionTree) -> Iterator[tuple[int | None, int]]:
    """Steps (from, to) along the edges of every tree and back again; (None, root) first."""
    children: dict[int, list[int]] = {}
    for place, parent in enumerate(tree.parents):
        if parent is not None:
            children.setdefault(parent, []).append(place)
    for root in (place for place, parent in enumerate(tree.parents) if parent is None):
        yield None, root
        stack = [(root, iter(children.get(root, [])))]
        while stack:
            here, rest = stack[-1]
            below = next(rest, None)
            if below is not None:
                yield here, below
                stack.append((below, iter(children.get(below, []))))
                continue
            stack.pop()
            if stack:
                yield here, stack[-1][0]


def _over(names: Clique, values: Shares, kept: Clique) -> Shares:
    """The table summed onto some of its columns, with axes of length one for the others."""
    summed: Shares = values.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in kept), keepdims=True)
    return summed


def _carry(tree: JunctionTree, beliefs: list[Shares], origin: int, place: int, separator: Clique) -> None:
    """Bring a clique's belief to what its neighbor says of the columns that they share."""
    said = _over(tree.cliques[origin], beliefs[origin], separator)
    said = said.reshape(
        [beliefs[place].shape[axis] if name in separator else 1 for axis, name in enumerate(tree.cliques[place])]
    )
    _scale(beliefs, place, said, _over(tree.cliques[place], beliefs[place], separator))


def _impose(names: Clique, beliefs: list[Shares], place: int, inside: Clique, target: Shares) -> float:
    """Bring a belief to the target; returns how far it was, in total variation."""
    shape = [beliefs[place].shape[axis] if name in inside else 1 for axis, name in enumerate(names)]
    wanted, said = target.reshape(shape), _over(names, beliefs[place], inside)
    _scale(beliefs, place, wanted, said)
    return 0.5 * float(np.abs(wanted - said).sum())


def _scale(beliefs: list[Shares], place: int, wanted: Shares, said: Shares) -> None:
    """Multiply by wanted over said; where nothing was said, nothing can be put."""
    scaled = beliefs[place] * np.where(said > 0, wanted / np.where(said > 0, said, 1.0), 0.0)
    mass = float(scaled.sum())
    if mass > 0:
        beliefs[place] = scaled / mass
