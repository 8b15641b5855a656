"""Bugs of sensitivities: answers that move more than was charged, each as somebody once wrote it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.counts import source
from margent.privacy import queries, scores
from margent.privacy.neighbors import Neighbors
from margent.privacy.requests import PublicTables
from tests.audits import gates_sensitivity as gates
from tests.audits.planting import Bug, Plant, setting


def score_sensitivity(rule: Callable[[str, int, Neighbors, PublicTables | None], Fraction]) -> Plant:
    return lambda patch: patch.setattr(queries, "score_sensitivity_squared", rule)


def mutual_information_price(rule: Callable[[Neighbors, PublicTables], Fraction]) -> Plant:
    return lambda patch: patch.setattr(queries, "mutual_information_sensitivity", rule)


def f_for_half_a_record(patch: pytest.MonkeyPatch) -> None:
    for relation in ("add-remove", "replace"):
        patch.setitem(queries._SCORE_SENSITIVITY, ("f", relation), Fraction(1, 2))  # type: ignore[arg-type]


genuine_scores = queries.score_sensitivity_squared
genuine_information = queries.mutual_information_sensitivity
genuine_interaction = queries.interaction_sensitivity_squared


def own_margins(table: NDArray[np.int64], rows: Any, columns: Any, total: float) -> int:
    """Distance from the product of the table's own margins: another sensitivity altogether."""
    return scores_indif(table) // 256


scores_indif = scores.indif


def rounded_half_even(table: NDArray[np.int64], rows: Any, columns: Any, total: float) -> int:
    expected = np.outer(rows, columns) / total
    return round(float(np.abs(table - np.rint(expected * 2) / 2).sum()))


def counted_twice(patch: pytest.MonkeyPatch) -> None:
    genuine = source.CodedCounts.count

    def count(self: Any, cliques: Any, *merges: Any) -> Any:
        return [
            table * 2 if len(names) > 1 else table
            for names, table in zip(cliques, genuine(self, cliques, *merges), strict=True)
        ]

    patch.setattr(source.CodedCounts, "count", count)


BUGS: tuple[Bug, ...] = (
    Bug(
        "replacing a record taken for one change",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.marginal_sensitivity_squared", lambda neighbors: Fraction(neighbors.unit_rows**2)
        ),
    ),
    Bug(
        "PrivSyn's constant under replacement",
        gates.answers_move_no_more_than_registered,
        score_sensitivity(
            lambda kind, count, neighbors, _: genuine_scores(
                kind, count, Neighbors("add-remove", neighbors.person_rows)
            )
        ),
    ),
    Bug(
        "a person's rows taken for one row",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.marginal_sensitivity_squared",
            lambda neighbors: Fraction(2 if neighbors.relation == "replace" else 1),
        ),
    ),
    Bug(
        "a person's rows taken for as many persons",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.marginal_sensitivity_squared",
            lambda neighbors: Fraction(2 if neighbors.relation == "replace" else neighbors.unit_rows),
        ),
    ),
    Bug(
        "an interaction taken for a table",
        gates.answers_move_no_more_than_registered,
        setting("margent.privacy.queries.interaction_sensitivity_squared", lambda sizes, neighbors: Fraction(1)),
    ),
    Bug(
        "an interaction under replacement taken for two that do not overlap",
        gates.answers_move_no_more_than_registered,
        setting(
            "margent.privacy.queries.interaction_sensitivity_squared",
            lambda sizes, neighbors: (
                genuine_interaction(sizes, Neighbors("add-remove", neighbors.person_rows))
                * (2 if neighbors.relation == "replace" else 1)
            ),
        ),
    ),
    Bug(
        "scores: the root of m forgotten",
        gates.answers_move_no_more_than_registered,
        score_sensitivity(lambda kind, count, neighbors, _: genuine_scores(kind, 1, neighbors)),
    ),
    Bug(
        "InDif taken for a sensitivity of one",
        gates.answers_move_no_more_than_registered,
        score_sensitivity(lambda kind, count, neighbors, _: genuine_scores(kind, count, neighbors) / 16),
    ),
    Bug(
        "expectations from the exact margins",
        gates.answers_move_no_more_than_registered,
        setting("margent.privacy.scores.independence_distance", own_margins),
    ),
    Bug(
        "mutual information of all columns priced as that of binary ones",
        gates.mutual_information_moves_no_more_than_registered,
        mutual_information_price(
            lambda neighbors, tables: genuine_information(neighbors, replace(tables, binary=True)),
        ),
    ),
    Bug(
        "mutual information sold where the number of records is private",
        gates.mutual_information_moves_no_more_than_registered,
        mutual_information_price(lambda neighbors, tables: genuine_information(Neighbors("replace"), tables)),
    ),
    Bug("F priced at half a record", gates.f_moves_no_more_than_registered, f_for_half_a_record),
    Bug("a record counted twice in pairs", gates.answers_move_no_more_than_registered, counted_twice),
    Bug(
        "scores rounded half to even",
        gates.scores_are_rounded_without_a_second_step,
        setting("margent.privacy.scores.independence_distance", rounded_half_even),
    ),
)
