"""Values that rules link, drawn together: what is written in a row obeys every rule exactly, inside bins too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Domain
from margent.schema.rulebook import Rulebook

UNSET = -(2**63)
"""Stands for "no rule says which value": it is drawn from its bin alone."""

Codes = NDArray[np.int64]
Words = Callable[[str, int], NDArray[np.uint64]]


@dataclass(frozen=True, eq=False)
class JointValues:
    """Grid indices of the columns that an ordering, sum or equality links, and of those that others determine.

    Privacy: none: post-processing of a public seed and sampled codes.
    """

    rulebook: Rulebook
    domain: Domain

    def indices(self, codes: Codes, words: Words) -> Mapping[str, Codes]:
        """One grid index a row (`UNSET` or meaningless where the code stands for no value) for each of these columns.

        ``words(column, attempt)``: one word of public randomness a row.

        Shapes: ``codes`` (n, d), as they are decoded; n indices a column.
        Raises: ValueError where a row's codes break a rule: no synthesizer may make such rows.
        """
        place = self.domain.position
        self._require_allowed(codes)
        found: dict[str, Codes] = {}
        for joint in self.rulebook.joints:
            own = np.stack([codes[:, place[name]] for name in joint.columns])

            def drawn(column: int, attempt: int, names: tuple[str, ...] = joint.columns) -> NDArray[np.uint64]:
                return words(names[column], attempt)

            values, present = joint.system.draw(own, drawn)
            if not joint.system.holds(values, present).all():
                raise ValueError(f"rows break the rules between {', '.join(map(repr, joint.columns))}")
            for number, name in enumerate(joint.columns):
                found[name] = joint.indices(values[number], number)
        for written in self.rulebook.written:
            keys = tuple(codes[:, place[name]] for name in written.determinants)
            bound = written.bound[keys]
            if bound.any():
                free = found.get(written.column, np.full(codes.shape[0], UNSET))
                found[written.column] = np.where(bound, written.values[keys], free)
        return found

    def _require_allowed(self, codes: Codes) -> None:
        place = self.domain.position
        for factor in self.rulebook.zeros.factors:
            if not factor.holds([codes[:, place[name]] for name in factor.columns]).all():
                raise ValueError(f"rows break the rules between {', '.join(map(repr, factor.columns))}")
