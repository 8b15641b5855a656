"""One row of codes that obeys every rule, or that there is none: arc consistency in a search, with its work counted.

Tables over the same columns are one table in a search; parts that share no column are searched one by one; the column
with the fewest codes left for the weight of its tables comes first, and tables that fail weigh more. Columns that must
all differ fail as soon as their codes cannot be handed out, each to one of them.

Source: generalized arc consistency (Mackworth 1977) maintained in a depth-first search (Sabin and Freuder 1994);
weighted degrees (Boussemart, Hemery, Lecoutre and Sais 2004); differing columns as a matching (Régin 1994).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from margent.schema.allowed import Factor, Truth

MOST_WORK = 4_000_000_000
"""Work of all searches of a schema, about a third of a nanosecond each; what is not settled by then is not settled."""
STEP = 20_000
"""Work of looking at a table once, beside one for each of its cells and axes."""
MOST_JOINED = 2**14
"""Cells of a table that tables over the same columns are put together to."""

Domains = dict[str, Truth]


class UndecidedError(Exception):
    """A search that came to its limit."""


class Work:
    """What searches may still do; counted and not timed, so that the answer is the same on every machine."""

    def __init__(self, most: int = MOST_WORK) -> None:
        """Allow ``most`` in all."""
        self.left = most

    def spend(self, amount: int) -> None:
        """Count some work. Raises: UndecidedError where none is left."""
        self.left -= amount
        if self.left < 0:
            raise UndecidedError


def narrowed(factors: Sequence[Factor], domains: Mapping[str, Truth], work: Work | None = None) -> Domains | None:
    """The codes that every rule, by itself, leaves something to go with; None where a column has none left.

    Shapes: one entry a code in each of ``domains``.
    Raises: UndecidedError where ``work`` does not suffice.

    >>> same = Factor((0,), ("a", "b"), (np.array([0, 1]), np.array([0, 1])), np.eye(2, dtype=bool))
    >>> found = narrowed([same], {"a": np.array([True, False]), "b": np.array([True, True])})
    >>> found["b"].tolist()
    [True, False]
    """
    return _Network(factors, domains, work or Work()).narrowed(dict(domains))


def solution(
    factors: Sequence[Factor],
    domains: Mapping[str, Truth],
    preferred: Mapping[str, int] | None = None,
    work: Work | None = None,
) -> dict[str, int] | None:
    """One row of codes that obeys every rule, with the ``preferred`` codes where they are tried first; or None.

    Raises: UndecidedError where ``work`` does not suffice.
    """
    work = work or Work()
    tables = _joined(factors, work)
    found: dict[str, int] = {}
    for names in _parts(tables, domains):
        own = {name: domains[name] for name in names}
        network = _Network([table for table in tables if table.columns[0] in own], own, work)
        network.find_differing(own)
        row = network.searched(own, preferred or {})
        if row is None:
            return None
        found |= row
    return found


def refuted(factors: Sequence[Factor], domains: Mapping[str, Truth], work: Work) -> bool:
    """Whether narrowing alone, without a search, finds that no row obeys.

    Raises: UndecidedError where ``work`` does not suffice.
    """
    network = _Network(_joined(factors, work), domains, work)
    network.find_differing(domains)
    return network.narrowed(dict(domains)) is None


def _joined(factors: Sequence[Factor], work: Work) -> list[Factor]:
    """The same rules with one table for each set of columns, where that is a small one over codes."""
    groups: dict[tuple[str, ...], list[Factor]] = {}
    for factor in factors:
        groups.setdefault(tuple(sorted(factor.columns)), []).append(factor)
    tables = []
    for names, members in groups.items():
        sizes = dict(zip(members[0].columns, (own.size for own in members[0].classes), strict=True))
        shape = [sizes[name] for name in names]
        if len(members) == 1 or math.prod(shape) > MOST_JOINED:
            tables += members
            continue
        allowed = np.ones(shape, dtype=np.bool_)
        for factor in members:
            work.spend(STEP + allowed.size)
            axes = [factor.columns.index(name) for name in names]
            allowed &= factor.allowed[np.ix_(*factor.classes)].transpose(axes)
        rules = tuple(dict.fromkeys(rule for factor in members for rule in factor.rules))
        tables.append(Factor(rules, names, tuple(np.arange(size) for size in shape), allowed))
    return tables


def _parts(tables: Sequence[Factor], domains: Mapping[str, Truth]) -> list[list[str]]:
    """The columns, in groups that no table links."""
    linked: dict[str, set[str]] = {name: set() for name in domains}
    for table in tables:
        for name in table.columns[1:]:
            linked[table.columns[0]].add(name)
            linked[name].add(table.columns[0])
    parts, seen = [], set[str]()
    for name in domains:
        todo, part = [name], list[str]()
        while todo:
            own = todo.pop()
            if own not in seen:
                seen.add(own)
                part.append(own)
                todo += sorted(linked[own])
        if part:
            parts.append(part)
    return parts


class _Network:
    """Tables and the columns they link, with the weight that a search gives each column."""

    def __init__(self, tables: Sequence[Factor], domains: Mapping[str, Truth], work: Work) -> None:
        self.tables, self.work = tables, work
        self.holding: dict[str, list[int]] = {name: [] for name in domains}
        for number, table in enumerate(tables):
            for name in table.columns:
                self.holding[name].append(number)
        self.weight = {name: 1 + len(own) for name, own in self.holding.items()}
        self.differing: list[tuple[str, ...]] = []

    def find_differing(self, domains: Mapping[str, Truth]) -> None:
        """Find groups of at least three columns of which no two can have the same code."""
        unlike: dict[str, set[str]] = {}
        for table in self.tables:
            if len(table.columns) != 2:
                continue
            size = min(own.size for own in table.classes)
            self.work.spend(STEP + size)
            both = np.flatnonzero(domains[table.columns[0]][:size] & domains[table.columns[1]][:size])
            if not table.allowed[table.classes[0][both], table.classes[1][both]].any():
                for one, other in (table.columns, table.columns[::-1]):
                    unlike.setdefault(one, set()).add(other)
        found: dict[tuple[str, ...], None] = {}
        for name, others in unlike.items():
            group, fitting = [name], others
            while fitting:
                self.work.spend(len(fitting) * 100)
                most = max(sorted(fitting), key=lambda each: len(unlike[each]))
                group.append(most)
                fitting = fitting & unlike[most]
            if len(group) > 2:
                found[tuple(sorted(group))] = None
        self.differing = list(found)

    def narrowed(self, left: Domains, changed: Iterable[str] | None = None) -> Domains | None:
        """``left`` as far as single tables narrow it, in place; where ``changed`` is given, the rest is narrow already.

        None where a column has no code left, whose tables weigh more from then on.
        """
        if any(not left[name].any() for name in (left if changed is None else changed)):
            return None
        moved = set(left if changed is None else changed)
        todo = dict.fromkeys(
            range(len(self.tables))
            if changed is None
            else (number for name in changed for number in self.holding[name])
        )
        while todo:
            number = next(iter(todo))
            del todo[number]
            table = self.tables[number]
            for name, kept in self._looked_at(table, left):
                if not kept.any():
                    self._failed(table.columns)
                    return None
                left[name] = kept
                moved.add(name)
                todo |= dict.fromkeys(other for other in self.holding[name] if other != number)
        for group in self.differing:
            if not moved.isdisjoint(group) and not self._can_differ(group, left):
                self._failed(group)
                return None
        return left

    def _looked_at(self, table: Factor, left: Mapping[str, Truth]) -> list[tuple[str, Truth]]:
        """The columns of a table that it narrows, with what is left of them."""
        cells, axes = table.allowed, table.allowed.ndim
        self.work.spend(STEP * axes)
        present = []
        for axis, name in enumerate(table.columns):
            own = np.zeros(cells.shape[axis], dtype=np.bool_)
            own[table.classes[axis][left[name]]] = True
            present.append(np.flatnonzero(own))
        for axis in sorted(range(axes), key=lambda each: present[each].size / cells.shape[each]):
            if present[axis].size < cells.shape[axis]:
                cells = cells.take(present[axis], axis=axis)
                self.work.spend(cells.size)
        self.work.spend(cells.size)
        if cells.all():
            return []
        self.work.spend(cells.size * axes)
        found = []
        for axis, name in enumerate(table.columns):
            live = cells.any(axis=tuple(other for other in range(axes) if other != axis))
            if not live.all():
                supported = np.zeros(table.allowed.shape[axis], dtype=np.bool_)
                supported[present[axis][live]] = True
                found.append((name, left[name] & supported[table.classes[axis]]))
        return found

    def _failed(self, names: Iterable[str]) -> None:
        for name in names:
            self.weight[name] += 1

    def _can_differ(self, group: Sequence[str], left: Mapping[str, Truth]) -> bool:
        """Whether each column of the group can have a code of its own: a matching, by augmenting paths."""
        owner: dict[int, str] = {}
        codes = {name: np.flatnonzero(left[name]).tolist() for name in group}
        self.work.spend(STEP * len(group))

        def placed(name: str, tried: set[int]) -> bool:
            for code in codes[name]:
                if code not in tried:
                    tried.add(code)
                    if code not in owner or placed(owner[code], tried):
                        owner[code] = name
                        return True
            return False

        for name in sorted(group, key=lambda each: len(codes[each])):
            if len(codes[name]) < len(group):
                tried: set[int] = set()
                good = placed(name, tried)
                self.work.spend(len(tried) * 300)
                if not good:
                    return False
        return True

    def searched(self, domains: Mapping[str, Truth], preferred: Mapping[str, int]) -> dict[str, int] | None:
        """A row that obeys, depth first, or None."""
        stack: list[tuple[Domains, str | None]] = [(dict(domains), None)]
        while stack:
            waiting, last = stack.pop()
            left = self.narrowed(waiting, None if last is None else [last])
            if left is None:
                continue
            self.work.spend(STEP // 10 * len(left))
            sizes = {name: int(np.count_nonzero(own)) for name, own in left.items()}
            choices = [name for name, size in sizes.items() if size > 1]
            if not choices:
                return {name: int(own.argmax()) for name, own in left.items()}
            wanted = [name for name in choices if name in preferred and left[name][preferred[name]]]
            name = min(wanted or choices, key=lambda each: sizes[each] / self.weight[each])
            code = preferred[name] if wanted else int(left[name].argmax())
            one = np.zeros_like(left[name])
            one[code] = True
            # Looked at last first: the rest of the codes waits below.
            stack += [(left | {name: left[name] & ~one}, name), (left | {name: one}, name)]
        return None
