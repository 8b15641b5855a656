"""Hierarchies over a closed list: are they trees in which every value reaches the root at the same depth?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from margent.errors import Fault
from margent.schema.parts import Hierarchy
from margent.schema.strict_json import Members, kind_of, step


def read_hierarchy(raw: Any, pointer: str, faults: list[Fault], subject: str) -> Hierarchy | None:
    """A hierarchy from JSON: ``{"levels": ["district"], "parents": [{"101": "North", "102": "South"}]}``.

    >>> read_hierarchy({"levels": ["d"], "parents": [{"a": "x", "b": "x"}]}, "", [], "").parents
    ((('a', 'x'), ('b', 'x')),)
    """
    members = Members(raw, pointer, faults, subject)
    members.refuse_unknown(("levels", "parents"), {})
    levels, parents = members.items("levels"), members.items("parents")
    if not members.sound or levels is None or parents is None:
        if members.sound:
            members.fault(None, 'needs "levels" (names, finest first) and "parents" (one object a level)')
        return None
    for place, level in enumerate(levels):
        if not isinstance(level, str):
            faults.append(Fault(step(f"{pointer}/levels", place), f"expected a text, found {kind_of(level)}"))
            members.sound = False
    for place, mapping in enumerate(parents):
        if not isinstance(mapping, Mapping) or not all(isinstance(group, str) for group in mapping.values()):
            where = step(f"{pointer}/parents", place)
            faults.append(Fault(where, "expected an object that maps each value's text to its group's name"))
            members.sound = False
    if not members.sound:
        return None
    return Hierarchy(tuple(levels), tuple(tuple(sorted(mapping.items())) for mapping in parents))


def hierarchy_to_json(hierarchy: Hierarchy) -> dict[str, Any]:
    """The JSON that reads back as this hierarchy."""
    return {"levels": list(hierarchy.levels), "parents": [dict(pairs) for pairs in hierarchy.parents]}


def hierarchy_faults(hierarchy: Hierarchy, values: Sequence[str], pointer: str) -> Iterator[Fault]:
    """What keeps a hierarchy from being a tree of equal depth over the values.

    >>> flawed = Hierarchy(("district",), ((("a", "x"),),))
    >>> [str(fault) for fault in hierarchy_faults(flawed, ["a", "b"], "/h")]
    ["/h/parents/0: not every value reaches the root: 1 of them (first 'b') has no group; give each one"]
    """
    if not hierarchy.levels:
        yield Fault(f"{pointer}/levels", "a hierarchy needs at least one level; leave it out instead")
    if len(set(hierarchy.levels)) != len(hierarchy.levels):
        yield Fault(f"{pointer}/levels", "level names must differ from one another")
    if len(hierarchy.levels) != len(hierarchy.parents):
        yield Fault(
            f"{pointer}/parents",
            f"needs one object a level: {len(hierarchy.levels)} levels, {len(hierarchy.parents)} objects",
        )
        return
    below, what = list(dict.fromkeys(values)), "value"
    for place, pairs in enumerate(hierarchy.parents):
        group_of = dict(pairs)
        where = step(f"{pointer}/parents", place)
        if lost := [node for node in below if node not in group_of]:
            yield Fault(
                where,
                f"not every {what} reaches the root: {len(lost)} of them (first {lost[0]!r}) "
                f"ha{'ve' if len(lost) > 1 else 's'} no group; give each one",
            )
        known = set(below)
        for node in group_of:
            if node not in known:
                yield Fault(step(where, node), f"is not a {what} of the level below; take it out or correct it")
        below, what = list(dict.fromkeys(group_of[node] for node in below if node in group_of)), "group"


def groups_at(hierarchy: Hierarchy, values: Sequence[str], level: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The group names of a level in order of first use, and for each value the place of its group among them.

    >>> tree = Hierarchy(("district",), ((("a", "x"), ("b", "y"), ("c", "x")),))
    >>> groups_at(tree, ["a", "b", "c"], 0)
    (('x', 'y'), (0, 1, 0))
    """
    nodes = list(values)
    for pairs in hierarchy.parents[: level + 1]:
        group_of = dict(pairs)
        nodes = [group_of[node] for node in nodes]
    names = tuple(dict.fromkeys(nodes))
    place = {name: index for index, name in enumerate(names)}
    return names, tuple(place[node] for node in nodes)
