"""Scores of a child against its parents, distances from a model, and merges beside their column, at the door."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.errors import TranscriptError, UsageError
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import marginal_law, score_law, score_units
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import ChoiceRequest, MarginalRequest, PublicTables, ScoreKind, ScoreRequest
from margent.privacy.scores import distance, independence_distance, indif, mutual_information, total_variation
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Merge
from margent.transcript import CliqueTree, Network, Node, Structure, Transcript
from tests.collectors.test_dense import dependent, schema
from tests.privacy.all_tables import AllTables

MOST = 6
SIZES = (4, 2, 3)
ALL: Clique = ("c0", "c1", "c2")
NEIGHBORS = [Neighbors(), Neighbors("replace"), *(Neighbors("add-remove", rows) for rows in (1, 2, 3))]
BESIDE = {"c0": Merge("c0", (0, 0, 1, 2)), "c0@halves": Merge("c0", (0, 0, 1, 1))}


def silent_noise(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


def door(relation: str = "add-remove") -> tuple[DataCurator, NDArray[np.int64]]:
    columns = dependent(500, SIZES, seed=2)
    counts = CodedCounts([column.astype(np.uint8) for column in columns], Codec(schema(*SIZES)).domain)
    budget = Budget(epsilon=5, delta="1e-9", relation=relation)
    exact = np.zeros(SIZES, dtype=np.int64)
    np.add.at(exact, tuple(columns), 1)
    return DataCurator(schema(*SIZES), counts, Ledger(budget), noise=silent_noise), exact


def law_for(kind: ScoreKind, curator: DataCurator, count: int, tables: PublicTables | None = None):  # type: ignore[no-untyped-def]
    return score_law(kind, count, Fraction(1, 100), curator.neighbors, curator.account, tables)


# -- the sensitivity of a distance from a model --------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", NEIGHBORS, ids=str)
def test_a_distance_from_any_model_moves_by_exactly_its_sensitivity(neighbors: Neighbors) -> None:
    every = AllTables((2, 3), MOST)
    rng, largest = np.random.default_rng(5), 0
    for _ in range(6):
        model = rng.random((2, 3)) ** 4 * 9 - 1  # negative cells and cells far below one record among them
        largest = max(largest, every.largest(every.values(lambda table, m=model: distance(table, m)), neighbors))
    assert (
        largest == score_units("distance", neighbors) == (2 if neighbors.relation == "replace" else neighbors.unit_rows)
    )


def test_a_planted_float_score_passes_the_registered_sensitivity() -> None:
    """Rounding the model to records first, a tempting short cut, loses cells and still moves by one; scaling the table
    to the model's total does not: the brute force sees it."""
    every = AllTables((2, 3), MOST)
    model = np.full((2, 3), 2.0)

    def scaled(table: NDArray[np.int64]) -> int:
        return int(np.abs(table * 12.0 / max(int(table.sum()), 1) - model).sum())

    assert every.largest(every.values(scaled), Neighbors()) > score_units("distance", Neighbors())


def test_the_distance_from_a_product_is_the_distance_from_independence() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        table = rng.integers(0, 9, (3, 4))
        rows, columns = rng.random(3) * 9, rng.random(4) * 9
        total = float(rows.sum())
        other = independence_distance(table, rows, columns, total)
        assert abs(distance(table, np.outer(rows, columns) / total) - other) <= 1  # the last bit of the expectation


def test_a_model_beyond_64_bits_is_scaled_down_and_does_not_wrap() -> None:
    table = np.array([[70_000_000_000_000, 0], [0, 0]], dtype=np.int64)
    one_more = table.copy()
    one_more[1, 1] += 1
    model = np.array([[0.0, 0.0], [0.0, 1e99]])
    assert abs(distance(one_more, model) - distance(table, model)) <= 1


# -- children ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "score"), [("r", total_variation), ("indif", indif), ("mutual-information", mutual_information)]
)
def test_a_child_is_scored_against_its_parents_taken_as_one_column(kind: ScoreKind, score) -> None:  # type: ignore[no-untyped-def]
    curator, exact = door("replace")
    tables = PublicTables(500) if kind == "mutual-information" else None
    law = law_for(kind, curator, 3, tables)
    answer = curator.scores(ScoreRequest(kind, (ALL,) * 3, law, tables=tables, children=ALL), label="scores")
    flat = [np.moveaxis(exact, axis, 0).reshape(exact.shape[axis], -1) for axis in range(3)]
    assert answer.values.tolist() == [score(table) for table in flat]
    assert len(set(answer.values.tolist())) == 3
    assert curator.charges[0].children == answer.children == ALL


def test_a_choice_names_the_clique_and_its_child() -> None:
    curator, exact = door()
    request = ChoiceRequest("r", (ALL,) * 3, Fraction(200), choices=2, children=ALL)
    with pytest.raises(UsageError, match="each once"):
        replace(request, children=("c0", "c0", "c1"))
    curator = replace(curator, ledger=Ledger(Budget(epsilon=3000, delta=0, accountant="pure")))
    chosen = curator.choose(request, label="choice")
    scores = {
        name: total_variation(np.moveaxis(exact, axis, 0).reshape(exact.shape[axis], -1))
        for axis, name in enumerate(ALL)
    }
    assert chosen.children == tuple(sorted(scores, key=lambda name: -scores[name]))[:2]
    assert chosen.cliques == (ALL, ALL)


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (ScoreRequest("independence", (ALL,), None, children=("c0",), expected={}), "leave them out"),  # type: ignore[arg-type]
        (ScoreRequest("distance", (ALL,), None, children=("c0",), model={}), "leave them out"),  # type: ignore[arg-type]
        (ScoreRequest("r", (ALL, ALL), None, children=("c0",)), "leave them out"),  # type: ignore[arg-type]
        (ScoreRequest("r", (ALL,), None, children=("c9",)), "at least one other column"),  # type: ignore[arg-type]
        (ScoreRequest("r", (("c0",),), None, children=("c0",)), "at least one other column"),  # type: ignore[arg-type]
        (ScoreRequest("r", (("c0", "c9"),), None, children=("c0",)), "at least one other column"),  # type: ignore[arg-type]
        (ScoreRequest("r", (ALL,), None), "ask for pairs"),  # type: ignore[arg-type]
        (ScoreRequest("distance", (ALL,), None), "one finite count a cell"),  # type: ignore[arg-type]
        (ScoreRequest("distance", (ALL,), None, model={ALL: np.zeros((4, 2, 2))}), "one finite count a cell"),  # type: ignore[arg-type]
        (ScoreRequest("distance", (ALL,), None, model={ALL: np.full(SIZES, np.nan)}), "one finite count a cell"),  # type: ignore[arg-type]
        (ScoreRequest("distance", ((),), None, model={(): np.zeros(())}), "one or more columns"),  # type: ignore[arg-type]
        (
            ScoreRequest("mutual-information", (ALL,), None, tables=PublicTables(500, binary=True), children=("c0",)),  # type: ignore[arg-type]
            "at most two codes",
        ),
    ],
)
def test_what_no_sensitivity_is_proved_for_is_refused_before_the_charge(request_: ScoreRequest, match: str) -> None:
    curator, _ = door("replace")
    with pytest.raises(UsageError, match=match):
        curator.scores(replace(request_, law=law_for("r", curator, 1)), label="scores")
    assert curator.charges == ()


# -- merges beside their column ---------------------------------------------------------------------------------------


def test_levels_of_one_column_stand_in_one_request() -> None:
    curator, exact = door()
    law = marginal_law(Fraction(1, 100), curator.neighbors, curator.account)
    names = ("c0@halves", "c1")
    both = ("c0", "c0@halves")
    requests = [MarginalRequest(clique, law, merged=True) for clique in (names, both)]
    halves, levels = curator.measure(requests, label="levels", merges=BESIDE)
    pairs = exact.sum(axis=2)
    assert halves.counts.tolist() == [(pairs[0] + pairs[1]).tolist(), (pairs[2] + pairs[3]).tolist()]
    lone = exact.sum(axis=(1, 2))
    assert levels.counts.tolist() == [[lone[0] + lone[1], 0], [0, lone[2]], [0, lone[3]]]


def test_a_merge_must_fit_its_column() -> None:
    curator, _ = door()
    law = marginal_law(Fraction(1, 100), curator.neighbors, curator.account)
    request = MarginalRequest(("c1", "x"), law, merged=True)
    with pytest.raises(Exception, match="could not be counted") as caught:
        curator.measure([request], label="x", merges={"x": Merge("c0", (0, 1))})
    assert "c0" not in str(caught.value.__cause__ or "")


# -- on disk ----------------------------------------------------------------------------------------------------------


def transcript(structure: Structure | None) -> Transcript:
    curator, exact = door()
    law = marginal_law(Fraction(1, 100), curator.neighbors, curator.account)
    model = {ALL: exact * 0.5, ("c1",): exact.sum(axis=(0, 2)) + 1.0}
    scores = curator.scores(
        ScoreRequest("distance", (ALL, ("c1",)), law_for("distance", curator, 2), model=model), label="d"
    )
    assert scores.values.tolist() == [250, 2]
    request = ScoreRequest("r", (("c0@halves", "c1"),), law_for("r", curator, 1), merged=True, children=("c1",))
    child = curator.scores(request, label="s", merges=BESIDE)
    tables = curator.measure([MarginalRequest(("c0@halves", "c1"), law, merged=True)], label="t", merges=BESIDE)
    answers = (scores, child, *tables)
    return Transcript(curator.schema, curator.domain, "m", curator.charges, answers, BESIDE, structure=structure)


NETWORK = Network((Node("c1"), Node("c0", ("c1",)), Node("c2", ("c0@halves", "c1"))))


@pytest.mark.parametrize(
    "structure", [None, NETWORK, CliqueTree((("c0", "c1"), ("c1", "c2")))], ids=["no", "network", "tree"]
)
def test_structure_children_and_levels_survive_the_disk(structure: Structure | None, tmp_path: Path) -> None:
    written = transcript(structure)
    for name, content in measurement_files(written).items():
        (tmp_path / name).write_bytes(content)
    read = read_measurements(tmp_path)
    assert read.structure == structure
    assert dict(read.merges) == BESIDE
    assert read.charges == written.charges
    assert [getattr(answer, "children", ()) for answer in read.answers] == [(), ("c1",), ()]
    again = ReplayCurator(read)
    request = ScoreRequest("distance", (ALL, ("c1",)), law_for("distance", again, 2), model={})  # type: ignore[arg-type]
    again.scores(request, label="d")
    other = ScoreRequest("r", (("c0@halves", "c1"),), law_for("r", again, 1), merged=True, children=("c0@halves",))  # type: ignore[arg-type]
    with pytest.raises(TranscriptError, match="differs from the recorded one"):
        again.scores(other, label="s", merges=BESIDE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"c0@halves": "c0"', '"c0@halves": "c9"'),
        ('"child": "c1"', '"child": "c0"'),
        ('"child": "c1"', '"child": "c9"'),
        ('"children": [\n    "c1"\n   ]', '"children": [\n    "c2"\n   ]'),
    ],
)
def test_a_damaged_structure_is_refused(old: str, new: str, tmp_path: Path) -> None:
    for name, content in measurement_files(transcript(NETWORK)).items():
        (tmp_path / name).write_bytes(content)
    path = tmp_path / "transcript.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(TranscriptError, match="damaged"):
        read_measurements(tmp_path)
