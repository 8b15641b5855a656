"""What is publicly known of an attribute's meaning: an order of its codes, or a tree above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.schema.hierarchy import groups_at
from margent.schema.labels import scalar_text
from margent.schema.layout import Layout, listed_values

Kind = Literal["order", "tree"]


@dataclass(frozen=True)
class Attribute:
    """Codes with an order (neighbors are close) or a tree (siblings are close; without levels all are equally far).

    The first ``values`` codes are values; those after them (special codes, missing, unlisted) are apart: in an
    order nothing is moved between them and the values, in a tree they hang below the root alone.

    Shapes: ``groups`` has one entry a level, finest first: the group of each value.
    Privacy: none: a function of the schema.

    >>> grade = Attribute("grade", 4, 4, "tree", levels=("school",), groups=((0, 0, 1, 1),))
    >>> grade.coarsened("school")[0].size
    2
    """

    name: str
    size: int
    values: int
    kind: Kind
    levels: tuple[str, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no order or tree."""
        if not 0 <= self.values <= self.size or self.size < 1:
            raise ValueError(f"attribute {self.name!r}: needs at least one code, and no more values than codes")
        if len(self.levels) != len(self.groups) or any(len(level) != self.values for level in self.groups):
            raise ValueError(f"attribute {self.name!r}: needs one group for each value at each level")
        for finer, coarser in pairwise(self.groups):
            if len(set(zip(finer, coarser, strict=True))) != len(set(finer)):
                raise ValueError(f"attribute {self.name!r}: a group of one level lies in two groups of the next")

    def coarsened(self, level: str) -> tuple[Attribute, NDArray[np.intp]]:
        """The attribute as it is at a level of its hierarchy, and the new code of each code.

        Raises: UsageError where there is no such level, or where its groups are no runs of an order.
        """
        if level not in self.levels:
            known = ", ".join(self.levels) or "none"
            raise UsageError(f"attribute {self.name!r} has no level {level!r}; it has: {known}")
        place = self.levels.index(level)
        of_value = {group: new for new, group in enumerate(dict.fromkeys(self.groups[place]))}
        codes = [of_value[group] for group in self.groups[place]]
        if self.kind == "order" and codes != sorted(codes):
            raise UsageError(f"level {level!r} of {self.name!r} does not group neighbors; its order is lost there")
        kept = len(of_value)
        above = tuple(
            tuple(dict(zip(codes, coarser, strict=True))[code] for code in range(kept))
            for coarser in self.groups[place + 1 :]
        )
        coarse = replace(
            self,
            size=self.size - self.values + kept,
            values=kept,
            levels=self.levels[place + 1 :],
            groups=above,
        )
        return coarse, np.array([*codes, *range(kept, coarse.size)], dtype=np.intp)


class LaidOut(Protocol):
    """What is needed of a codec: the layout of each modeled column."""

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """One layout a column."""
        ...


def attributes_from_schema(codec: LaidOut) -> Mapping[str, Attribute]:
    """Numbers, dates, times and ordered lists have an order, by the rank of value or bin; others a tree.

    Privacy: none: a function of the schema.
    """
    return {layout.field.name: _attribute(layout) for layout in codec.layouts}


def _attribute(layout: Layout) -> Attribute:
    field = layout.field
    listed = listed_values(field)
    levels: tuple[str, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    if field.hierarchy is not None and listed is not None:
        texts = [scalar_text(item.value) for item in listed]
        levels = field.hierarchy.levels
        groups = tuple(groups_at(field.hierarchy, texts, place)[1] for place in range(len(levels)))
    kind: Kind = "order" if listed is None or field.ordered else "tree"
    return Attribute(field.name, layout.size, layout.values, kind, levels, groups)
