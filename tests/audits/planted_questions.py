"""Bugs in adaptive collectors, each as somebody once wrote it, with the gate that must catch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.collectors import aim, capped_pairs, mst, privmrf
from margent.collectors.first_tables import FirstTables
from margent.schema.domain import Clique
from margent.transcript import Scores
from tests.audits import gates_questions as gates

Plant = Callable[[pytest.MonkeyPatch], None]
Gate = Callable[[], None]


def _tables(curator: Any, first: FirstTables, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
    return list(curator.source.count(list(cliques), first.merges))


def errors_from_the_table(patch: pytest.MonkeyPatch) -> None:
    """The model's errors are read off the table: no charge, no noise."""

    def exact(
        curator: Any, first: FirstTables, model: Mapping[Clique, NDArray[np.float64]], share: Fraction, label: str
    ) -> Scores:
        counted = _tables(curator, first, tuple(model))
        off = [int(np.abs(table - model[names]).sum()) for names, table in zip(model, counted, strict=True)]
        return Scores("distance", tuple(model), np.array(off), 1, Fraction(1), 0, bool(first.merges))

    patch.setattr(aim, "gaps", exact)


def noisy_errors_sorted_by_exact_ones(patch: pytest.MonkeyPatch) -> None:
    """The errors are bought as they should be, and the true ones decide."""
    genuine = aim._Run._refresh

    def refresh(self: Any, cliques: Sequence[Clique], share: Fraction, label: str) -> Any:
        model = genuine(self, cliques, share, label)
        counted = _tables(self.curator, self.first, cliques)
        for names, table in zip(cliques, counted, strict=True):
            self.errors[names] = float(np.abs(table - model[names]).sum())
        return model

    patch.setattr(aim._Run, "_refresh", refresh)


def tree_of_exact_scores(patch: pytest.MonkeyPatch) -> None:
    """The spanning tree is that of the table; the scores are bought, for show."""
    genuine = mst.Mst._scored

    def scored(self: Any, curator: Any, first: FirstTables, pairs: tuple[Clique, ...], share: Fraction) -> Any:
        answers, _ = genuine(self, curator, first, pairs, share)
        apart = {}
        for pair, table in zip(pairs, _tables(curator, first, pairs), strict=True):
            product = np.outer(table.sum(axis=1), table.sum(axis=0)) / max(table.sum(), 1)
            apart[pair] = float(np.abs(table - product).sum())
        forest = mst._Forest(first.domain, self.most_tree_cells)
        for pair in sorted(pairs, key=lambda pair: -apart[pair]):
            if forest.takes(pair):
                forest.join(pair)
        return answers, tuple(forest.edges)

    patch.setattr(mst.Mst, "_scored", scored)


def pairs_by_the_exact_total(patch: pytest.MonkeyPatch) -> None:
    """Only the number of records is exact: pairs of many records for their cells are bought."""
    genuine = capped_pairs.CappedPairs._choose

    def choose(self: Any, curator: Any, first: FirstTables, pairs: Any, apart: Any, share: Fraction) -> list[Clique]:
        (table,) = _tables(curator, first, [pairs[0]])
        chosen = genuine(self, curator, first, pairs, apart, share)
        return [pair for pair in chosen if first.domain.cells(pair) * 20 < table.sum()]

    patch.setattr(capped_pairs.CappedPairs, "_choose", choose)


def usefulness_by_the_exact_total(patch: pytest.MonkeyPatch) -> None:
    """PrivMRF's rule with n as it is in the table."""

    def useful(self: Any, curator: Any, first: FirstTables, part: Fraction) -> float:
        (table,) = _tables(curator, first, [first.pairs(10**6)[0]])
        return float(table.sum()) / 20

    patch.setattr(privmrf.PrivMrf, "_useful", useful)


def told_again(patch: pytest.MonkeyPatch) -> None:
    """The errors of an earlier round are told once more, under the same charge."""
    genuine = aim._Run._refresh

    def refresh(self: Any, cliques: Sequence[Clique], share: Fraction, label: str) -> Any:
        model = genuine(self, cliques, share, label)
        self.answers.append(self.answers[-1])
        return model

    patch.setattr(aim._Run, "_refresh", refresh)


BUGS: tuple[tuple[str, Gate, Plant], ...] = (
    ("errors read off the table without a charge", gates.questions_follow_from_noisy_answers, errors_from_the_table),
    ("errors bought, and chosen by the true ones", gates.questions_follow_from_noisy_answers,
     noisy_errors_sorted_by_exact_ones),
    ("the spanning tree of the table itself", gates.questions_follow_from_noisy_answers, tree_of_exact_scores),
    ("pairs chosen by the exact number of records", gates.questions_follow_from_noisy_answers,
     pairs_by_the_exact_total),
    ("useful by the exact number of records", gates.questions_follow_from_noisy_answers,
     usefulness_by_the_exact_total),
    ("errors read off the table, charged to the first table", gates.every_answer_is_paid_for, errors_from_the_table),
    ("errors told twice for one charge", gates.every_answer_is_paid_for, told_again),
)  # fmt: skip
