"""Ancestral sampling: exact conditionals come back, gaps, levels, seeds, exact marginals, what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.errors import TranscriptError, UsageError
from margent.progress import silent
from margent.schema.domain import Merge
from margent.stream import Stream
from margent.synthesizers.ancestral import Ancestral, AncestralModel
from margent.synthesizers.apportion import apportion
from margent.synthesizers.conditionals import apportioned_within, without_gaps
from margent.transcript import Network, Node, NoisyMarginal, Transcript
from tests.synthesizers.made import counts_of, transcript, variation

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"a": 3, "b": 4, "c": 2, "d": 3}
NETWORK = Network((Node("a"), Node("b", ("a",)), Node("c", ("b",)), Node("d", ("a", "c"))))


def population(rows: int = 6000) -> NDArray[np.int64]:
    """Drawn along the network, so that its tables tell all there is."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, rows)
    b = (a + (rng.random(rows) < 0.3)) % 4
    c = ((b > 1) ^ (rng.random(rows) < 0.1)).astype(int)
    d = (a + c + (rng.random(rows) < 0.2)) % 3
    return np.stack([a, b, c, d], axis=1)


def exact(
    real: NDArray[np.int64], sizes: Mapping[str, int] = SIZES, network: Network = NETWORK, never: Sequence[str] = ()
) -> Transcript:
    """The exact tables of a network's nodes as answers."""
    cliques = [node.clique for node in network.nodes]
    made = transcript(sizes, [(names, counts_of(real, sizes, names)) for names in cliques], never=never)
    return replace(made, structure=network)


def build(record: Transcript, tables: str = "consistent") -> AncestralModel:
    return Ancestral(tables).build(record, silent)  # type: ignore[arg-type]


@pytest.mark.parametrize("tables", ["consistent", "noisy"])
def test_exact_tables_come_back(tables: str) -> None:
    """Every table of the network, and those it implies; a resample of 6,000 records is .01 to .03 off."""
    real = population()
    model = build(exact(real), tables)
    assert model.total == 6000
    made = model.sample(6000, 1, silent)
    assert (made.shape, made.dtype) == ((6000, 4), np.int32)
    for node in NETWORK.nodes:
        assert variation(counts_of(made, SIZES, node.clique), counts_of(real, SIZES, node.clique)) < 0.01
    for names in (("a", "d"), ("b", "d"), ("a", "b", "c", "d")):
        assert variation(counts_of(made, SIZES, names), counts_of(real, SIZES, names)) < 0.05


@pytest.mark.parametrize("rows", [0, 1, 37, 20_000])
def test_any_rows_the_same_bytes_for_a_seed(rows: int) -> None:
    record = exact(population())
    made = build(record).sample(rows, 7, silent)
    assert made.shape == (rows, 4)
    assert made.tobytes() == build(record).sample(rows, 7, silent).tobytes()
    if rows > 1:
        assert made.tobytes() != build(record).sample(rows, 8, silent).tobytes()


def test_bytes_do_not_depend_on_hash_order() -> None:
    program = (
        "import hashlib\nfrom tests.synthesizers.test_ancestral import *\n"
        "print(hashlib.sha256(build(exact(population())).sample(500, 7, silent).tobytes()).hexdigest())"
    )
    seen = set()
    for order in ("1", "4242"):
        environment = os.environ | {
            "PYTHONHASHSEED": order,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        }
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
        )
        seen.add(done.stdout)
    assert len(seen) == 1


@given(
    st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), max_size=60),
)
def test_codes_are_apportioned_in_every_group(rows: list[list[int]], chosen: list[int]) -> None:
    weights = np.array(rows, dtype=np.float64)
    weights[weights.sum(axis=1) == 0] = 1.0
    groups = np.array(chosen, dtype=np.int64) % len(rows)
    codes = apportioned_within(weights, groups, Stream(1, "test"))
    for group, weight in enumerate(weights):
        counts = np.bincount(codes[groups == group], minlength=3)
        expected = counts.sum() * weight / weight.sum()
        assert np.all(np.abs(counts - expected) < 1 + 1e-9)
        assert np.all(counts[weight == 0] == 0)


def test_one_group_is_apportioned_as_elsewhere() -> None:
    weights, stream = np.array([[2.0, 5.0, 0.0, 1.5]]), Stream(3, "x")
    codes = apportioned_within(weights, np.zeros(101, dtype=np.int64), stream)
    again = Stream(3, "x")
    again.words(101)
    assert np.bincount(codes, minlength=4).tolist() == apportion(weights[0], 101, float(again.unit(1)[0])).tolist()


def test_codes_within_a_group_are_in_random_order() -> None:
    """The first half of a group has as many of a code as the second, within five deviations (alarm below 1e-6)."""
    codes = apportioned_within(np.ones((2, 2)), np.arange(40_000) % 2, Stream(5, "order"))
    halves = codes.reshape(2, -1).sum(axis=1)
    assert codes.sum() == 20_000
    assert abs(int(halves[0]) - int(halves[1])) < 5 * 200


def test_a_combination_without_records_takes_the_shares_of_fewer_parents() -> None:
    table = np.zeros((2, 2, 3))
    table[0, 0], table[1, 0] = [1, 0, 3], [0, 2, 0]
    filled = without_gaps(table)
    assert filled[0, 1].tolist() == [1, 0, 3]
    assert filled[1, 1].tolist() == [0, 2, 0]
    table[1] = 0
    assert without_gaps(table)[1, 0].tolist() == [1, 0, 3]
    assert without_gaps(np.zeros((2, 3))).tolist() == [[1, 1, 1]] * 2
    assert without_gaps(np.zeros(3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize("counts", [np.zeros((3, 4)), np.full((3, 4), -40)])
def test_tables_of_noise_alone_still_give_records(counts: NDArray[np.float64]) -> None:
    sizes = {"a": 3, "b": 4}
    network = Network((Node("a"), Node("b", ("a",))))
    record = replace(transcript(sizes, [(("a", "b"), counts.astype(np.int64))], variance=25), structure=network)
    for tables in ("consistent", "noisy"):
        model = build(record, tables)
        assert model.total == 0
        assert model.sample(10, 1, silent).shape == (10, 2)
        assert model.marginals([("a", "b")], 1)[0].sum() == 0


def test_columns_that_nobody_asked_for_are_uniform() -> None:
    sizes = {"a": 2, "z": 5, "k": 1}
    real = np.stack([np.arange(1000) % 2, np.zeros(1000), np.zeros(1000)], axis=1).astype(np.int64)
    record = replace(
        transcript(sizes, [(("a",), counts_of(real, sizes, ("a",)))]),
        structure=Network((Node("a"), Node("z"), Node("k"))),
    )
    made = build(record).sample(1000, 1, silent)
    assert np.bincount(made[:, 1]).tolist() == [200] * 5


def test_codes_that_are_never_written_get_no_records() -> None:
    sizes = {"a": 4, "b": 3}
    network = Network((Node("a"), Node("b", ("a",))))
    counts = np.array([[50, 10, 20], [30, 30, 0], [5, 50, 5], [90, 90, 90]])
    record = replace(
        transcript(sizes, [(("a", "b"), counts), (("a",), counts.sum(axis=1))], never=("a",)), structure=network
    )
    model = build(record)
    made = model.sample(1000, 1, silent)
    assert made[:, 0].max() <= 2
    assert model.marginals([("a",)], 1)[0][3] == 0
    assert variation(counts_of(made, sizes, ("a", "b"))[:3], counts[:3]) < 0.02


# -- levels -----------------------------------------------------------------------------------------------------------


def leveled() -> Transcript:
    """b follows a's group; the group stands beside a. One code of a, in a group of its own, is never written."""
    sizes = {"a": 5, "b": 2}
    merges = {"a@pair": Merge("a", (0, 0, 1, 1, 2))}
    made = transcript(sizes, [(("a",), np.array([300, 100, 150, 450, 0]))], merges=merges, never=("a",))
    table = NoisyMarginal(("a@pair", "b"), np.array([[380, 20], [60, 540], [0, 0]]), Fraction(1), 0, merged=True)
    network = Network((Node("a"), Node("b", ("a@pair",))))
    return replace(made, answers=(*made.answers, table), structure=network)


@pytest.mark.parametrize("tables", ["consistent", "noisy"])
def test_parents_are_seen_at_their_level(tables: str) -> None:
    model = build(leveled(), tables)
    made = model.sample(100_000, 2, silent)
    assert np.bincount(made[:, 0], minlength=5)[4] == 0
    for code, share in ((0, 0.05), (1, 0.05), (2, 0.9), (3, 0.9)):
        assert made[made[:, 0] == code, 1].mean() == pytest.approx(share, abs=0.02)
    (joint,) = model.marginals([("a", "b")], 1)
    assert joint.shape == (5, 2)
    assert joint[2, 1] / joint[2].sum() == pytest.approx(0.9, abs=0.01)


# -- marginals --------------------------------------------------------------------------------------------------------


def test_marginals_are_the_expectations_of_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact ones against brute force over the joint law; counted ones are those of the records themselves."""
    model = build(exact(population()))
    law = model.law._normalized
    joint = np.zeros([SIZES[name] for name in "abcd"])
    for cell in np.ndindex(joint.shape):
        a, b, c, d = cell
        joint[cell] = law["a"][a] * law["b"][a, b] * law["c"][b, c] * law["d"][a, c, d]
    cliques = [("a", "b"), ("d",), ("a", "b", "d"), ("a", "b", "c", "d"), ()]
    for names, table in zip(cliques, model.marginals(cliques, 3), strict=True):
        others = tuple(place for place, name in enumerate("abcd") if name not in names)
        assert np.allclose(table, joint.sum(axis=others) * model.total)
    monkeypatch.setattr("margent.synthesizers.ancestral.MOST_EXACT_CELLS", 20)
    made = model.sample(model.total, 3, silent)
    exact_one, counted_one = model.marginals([("a", "b"), ("a", "b", "d")], 3)
    assert np.allclose(exact_one, joint.sum(axis=(2, 3)) * model.total)
    assert np.array_equal(counted_one, counts_of(made, SIZES, ("a", "b", "d")))


def test_progress_is_reported_in_order() -> None:
    seen: list[tuple[str, float | None]] = []
    Ancestral().build(exact(population()), lambda step, share: seen.append((step, share))).sample(
        9, 1, lambda step, share: seen.append((step, share))
    )
    assert seen == [("consistency", 0.0), ("consistency", 1.0), ("records", 1.0)]


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_answers_without_a_network_are_refused() -> None:
    with pytest.raises(UsageError, match=r"needs a Bayesian network.*method 'privbayes' makes one"):
        build(replace(exact(population()), structure=None))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([Node("b", ("a",)), Node("a"), Node("c"), Node("d")], "before it is drawn"),
        ([Node("a"), Node("b"), Node("c")], "every column of the table once"),
        ([Node("a"), Node("b"), Node("c"), Node("d"), Node("d")], "every column of the table once"),
        ([Node("a"), Node("b", ("b",)), Node("c"), Node("d")], "before it is drawn"),
    ],
)
def test_a_network_that_is_none_is_refused(nodes: list[Node], message: str) -> None:
    with pytest.raises(TranscriptError, match=message):
        build(replace(exact(population()), structure=Network(tuple(nodes))))
