"""What every synthesizer promises, whatever it does: any transcript, any rows, the same bytes, legal codes."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from margent import Budget
from margent.collectors.collector import Collector
from margent.collectors.dense import Dense
from margent.collectors.independent import Independent
from margent.collectors.jtree import JTree
from margent.collectors.privbayes import PrivBayes
from margent.collectors.priview import PriView
from margent.collectors.privsyn import PrivSyn
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.machine import THREADS_VARIABLE
from margent.methods import SYNTHESIZERS, synthesizer_named
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.domain import Merge
from margent.synthesizers.model import Model, Synthesizer
from margent.transcript import Transcript
from tests.synthesizers.made import CHOOSY, TAKING_ANY, counts_of, schema_of, transcript, variation

ROOT = Path(__file__).resolve().parents[2]
CYCLE = {"a": 3, "b": 4, "c": 2, "d": 3}
PAIRS = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]

every = pytest.mark.parametrize("synthesizer", TAKING_ANY, ids=lambda each: each.name)
related = pytest.mark.parametrize(
    "synthesizer", [each for each in TAKING_ANY if each.name != "independent"], ids=lambda each: each.name
)


def cycle_model(synthesizer: Synthesizer) -> tuple[Model, np.ndarray]:
    """Exact tables of a dependent population around a cycle of four columns."""
    rng = np.random.default_rng(0)
    rows = 6000
    a = rng.integers(0, 3, rows)
    b = (a + (rng.random(rows) < 0.3)) % 4
    c = ((b > 1) ^ (rng.random(rows) < 0.1)).astype(int)
    d = (a + c) % 3
    real = np.stack([a, b, c, d], axis=1)
    singles = [(name,) for name in CYCLE]
    record = transcript(CYCLE, [(names, counts_of(real, CYCLE, names)) for names in [*singles, *PAIRS]])
    return synthesizer.build(record, silent), real


def digest(synthesizer: Synthesizer, rows: int) -> str:
    return hashlib.sha256(cycle_model(synthesizer)[0].sample(rows, 7, silent).tobytes()).hexdigest()


def test_there_is_one_synthesizer_a_name() -> None:
    names = [each.name for each in SYNTHESIZERS]
    assert len(set(names)) == len(names)
    assert {"descent", "gum", "mcf", "independent"} <= set(names)
    assert [synthesizer_named(name) for name in names] == list(SYNTHESIZERS)


@pytest.mark.parametrize("name", CHOOSY)
def test_those_that_need_more_than_tables_say_so(name: str) -> None:
    with pytest.raises(UsageError, match=CHOOSY[name]) as caught:
        cycle_model(synthesizer_named(name))
    assert "any answers will do for 'descent'" in str(caught.value)


@related
def test_exact_tables_come_back(synthesizer: Synthesizer) -> None:
    """Closer than a resample of 6,000 records is (.015)."""
    model, real = cycle_model(synthesizer)
    assert model.total == 6000
    made = model.sample(model.total, 1, silent)
    assert made.shape == (6000, 4)
    assert made.dtype == np.int32
    for names in PAIRS:
        assert variation(counts_of(made, CYCLE, names), counts_of(real, CYCLE, names)) < 0.01


@every
def test_exact_shares_come_back(synthesizer: Synthesizer) -> None:
    model, real = cycle_model(synthesizer)
    made = model.sample(model.total, 1, silent)
    for name in CYCLE:
        assert variation(counts_of(made, CYCLE, (name,)), counts_of(real, CYCLE, (name,))) < 0.01


@every
def test_the_same_seed_gives_the_same_bytes_and_another_other_ones(synthesizer: Synthesizer) -> None:
    model, _ = cycle_model(synthesizer)
    first = model.sample(500, 7, silent)
    assert first.tobytes() == model.sample(500, 7, silent).tobytes()
    assert first.tobytes() == cycle_model(synthesizer)[0].sample(500, 7, silent).tobytes()
    assert first.tobytes() != model.sample(500, 8, silent).tobytes()


def test_bytes_depend_neither_on_hash_order_nor_on_the_number_of_threads() -> None:
    """Enough rows for shards fitted on several threads; the other process has one, and another hash order."""
    program = (
        "import json\n"
        "from tests.synthesizers.test_contract import TAKING_ANY, digest\n"
        "print(json.dumps({each.name: digest(each, 150_000) for each in TAKING_ANY}))"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = os.environ | {"PYTHONHASHSEED": "4242", "PYTHONPATH": path, THREADS_VARIABLE: "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(done.stdout) == {each.name: digest(each, 150_000) for each in TAKING_ANY}


@every
@pytest.mark.parametrize("rows", [0, 1, 2, 37, 50_000])
def test_any_number_of_rows(synthesizer: Synthesizer, rows: int) -> None:
    model, real = cycle_model(synthesizer)
    made = model.sample(rows, 3, silent)
    assert made.shape == (rows, 4)
    assert made.dtype == np.int32
    if rows:
        assert made.min() >= 0
        assert np.all(made.max(axis=0) < list(CYCLE.values()))
    if rows > 10_000:
        for name in CYCLE:
            assert variation(counts_of(made, CYCLE, (name,)), counts_of(real, CYCLE, (name,))) < 0.01
        if synthesizer.name != "independent":
            assert variation(counts_of(made, CYCLE, ("a", "b")), counts_of(real, CYCLE, ("a", "b"))) < 0.01


@related
def test_few_rows_still_follow_the_tables(synthesizer: Synthesizer) -> None:
    """d = (a + c) mod 3 holds in nearly all of 100 tables of 5 rows, though a table's cells expect .8 rows each."""
    model, _ = cycle_model(synthesizer)
    made = np.concatenate([model.sample(5, seed, silent) for seed in range(100)])
    a, d = made[:, 0], made[:, 3]
    assert np.mean((d == a) | (d == (a + 1) % 3)) > 0.97


@every
def test_model_marginals_are_those_of_its_records(synthesizer: Synthesizer) -> None:
    """Counts of the very records where there is no closed form, expectations otherwise (a resample is .01 off)."""
    model, _ = cycle_model(synthesizer)
    cliques = [("a", "b"), ("d",), ("a", "b", "c")]
    made = model.sample(model.total, 5, silent)
    for names, table in zip(cliques, model.marginals(cliques, seed=5), strict=True):
        assert table.shape == tuple(CYCLE[name] for name in names)
        assert table.sum() == pytest.approx(model.total)
        counted = counts_of(made, CYCLE, names)
        if synthesizer.name in ("independent", "junction-tree", "pgm"):
            assert variation(table, counted) < (0.01 if synthesizer.name == "pgm" else 0.03)
        else:
            assert np.array_equal(table, counted)


@every
def test_progress_is_reported_in_order(synthesizer: Synthesizer) -> None:
    seen: dict[str, list[float]] = {}

    def note(step: str, share: float | None) -> None:
        assert share is not None
        seen.setdefault(step, []).append(share)

    real = np.random.default_rng(1).integers(0, 2, (50, 4))
    ring = [("a", "b"), ("b", "c"), ("a", "c")]
    record = transcript(CYCLE, [(names, counts_of(real, CYCLE, names)) for names in ring])
    synthesizer.build(record, note).sample(100, 1, note)
    assert list(seen) in (["consistency", "records"], ["model", "records"])
    for shares in seen.values():
        assert shares == sorted(shares)
        assert shares[0] >= 0
        assert shares[-1] == 1.0


SHAPES = {
    "one column": ({"a": 4}, [("a",)]),
    "two columns": ({"a": 4, "b": 3}, [("a",), ("a", "b")]),
    "two components": ({"a": 2, "b": 3, "x": 2, "y": 4}, [("a", "b"), ("x", "y")]),
    "a triple": ({"a": 2, "b": 3, "c": 4}, [("a", "b", "c"), ("a",)]),
    "triples in a ring": (dict.fromkeys("abcdef", 3), [("a", "b", "c"), ("c", "d", "e"), ("a", "e", "f")]),
    "a table of four": (dict.fromkeys("abcd", 2), [("a", "b", "c", "d")]),
    "a column nobody asked for": ({"a": 2, "b": 3, "z": 5}, [("a", "b")]),
    "constant columns": ({"a": 3, "k": 1, "b": 2, "l": 1}, [("a",), ("b",), ("a", "b"), ("a", "k")]),
    "only constant columns": ({"k": 1, "l": 1}, [("k",)]),
    "no answers": ({"a": 3, "b": 2}, []),
}


@every
@pytest.mark.parametrize("shape", SHAPES, ids=lambda name: name.replace(" ", "-"))
def test_shapes(synthesizer: Synthesizer, shape: str) -> None:
    sizes, cliques = SHAPES[shape]
    rng = np.random.default_rng(8)
    base = rng.integers(0, 60, 3000)
    real = np.stack([(base // (place + 1)) % size for place, size in enumerate(sizes.values())], axis=1)
    record = transcript(sizes, [(names, counts_of(real, sizes, names)) for names in cliques])
    model = synthesizer.build(record, silent)
    assert model.domain == record.domain
    assert model.total == (3000 if cliques else 0)
    made = model.sample(3000, 2, silent)
    assert made.shape == (3000, len(sizes))
    assert np.all((made >= 0) & (made < list(sizes.values())))
    together = 1 if synthesizer.name == "independent" else 4
    for names in cliques:
        for many in range(1, min(together, len(names)) + 1):
            for each in itertools.combinations(names, many):
                assert variation(counts_of(made, sizes, each), counts_of(real, sizes, each)) < 0.03


@every
def test_unrelated_components_are_joined_at_random(synthesizer: Synthesizer) -> None:
    """Two unrelated pairs: the mixed pairs have no more than the chi-square of independence (alarm below 1e-6)."""
    sizes = {"a": 2, "b": 2, "x": 2, "y": 2}
    same = np.array([[500, 0], [0, 500]])
    made = synthesizer.build(transcript(sizes, [(("a", "b"), same), (("x", "y"), same)]), silent).sample(
        1000, 4, silent
    )
    assert synthesizer.name == "independent" or np.mean(made[:, 0] == made[:, 1]) > 0.99
    crossed = counts_of(made, sizes, ("a", "x"))
    assert ((crossed - 250) ** 2 / 250).sum() < 25


@every
def test_codes_that_are_never_written_get_no_records(synthesizer: Synthesizer) -> None:
    sizes = {"a": 4, "b": 3}
    counts = np.array([[50, 10, 20], [30, 30, 0], [5, 50, 5], [90, 90, 90]])
    record = transcript(sizes, [(("a", "b"), counts), (("a",), counts.sum(axis=1))], never=("a",))
    model = synthesizer.build(record, silent)
    made = model.sample(1000, 1, silent)
    assert made[:, 0].max() <= 2
    assert model.marginals([("a",)], 1)[0][3] == 0
    assert variation(counts_of(made, sizes, ("a",))[:3], counts[:3].sum(axis=1)) < 0.02
    if synthesizer.name != "independent":
        assert variation(counts_of(made, sizes, ("a", "b"))[:3], counts[:3]) < 0.02


@every
def test_merged_codes_are_told_apart_by_their_noisy_counts(synthesizer: Synthesizer) -> None:
    sizes = {"a": 5, "b": 2}
    merges = {"a": Merge("a", (0, 1, 1, 1, 1))}
    one_way = np.array([700, 12, -3, 6, 0])
    pair = np.array([[350, 350], [10, 5]])
    record = transcript(sizes, [(("a",), one_way), (("b",), np.array([360, 355])), (("a", "b"), pair)], merges=merges)
    codes = np.bincount(synthesizer.build(record, silent).sample(7150, 1, silent)[:, 0], minlength=5)
    assert codes[2] == 0
    assert codes[1] > codes[3] > 20


@every
@pytest.mark.parametrize("counts", [np.zeros((3, 2)), np.full((3, 2), -40), np.array([[-9, -9], [-9, 3], [-9, -9]])])
def test_an_empty_table_gives_no_rows_but_can_give_some(synthesizer: Synthesizer, counts: np.ndarray) -> None:
    sizes = {"a": 3, "b": 2}
    model = synthesizer.build(transcript(sizes, [(("a", "b"), counts.astype(np.int64))], variance=25), silent)
    assert model.total == 0
    assert model.sample(0, 1, silent).shape == (0, 2)
    assert model.sample(10, 1, silent).shape == (10, 2)
    assert model.marginals([("a", "b"), ("b",)], 0)[0].sum() == 0


def following(rows: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 5, rows)
    b = np.where(rng.random(rows) < 0.1, rng.integers(0, 5, rows), a)
    return np.stack([a, b, rng.integers(0, 3, rows)], axis=1)


FOLLOWING = {"a": 5, "b": 5, "c": 3}


def collected(collector: Collector, real: np.ndarray, sizes: dict[str, int], epsilon: str = "2") -> Transcript:
    schema, budget = schema_of(sizes), Budget(epsilon=epsilon)
    source = CodedCounts([column.astype(np.uint16) for column in real.T], Codec(schema).domain)
    return collector.collect(DataCurator(schema, source, Ledger(budget)), budget)


@every
@pytest.mark.parametrize(
    "collector",
    [Dense(), PrivSyn(), PrivBayes(), PriView(), JTree(), Independent()],
    ids=lambda collector: collector.name,
)
def test_the_transcript_of_any_method_will_do(synthesizer: Synthesizer, collector: Collector) -> None:
    real = following(20_000)
    model = synthesizer.build(collected(collector, real, FOLLOWING), silent)
    made = model.sample(model.total, 1, silent)
    for name in FOLLOWING:
        assert variation(counts_of(made, FOLLOWING, (name,)), counts_of(real, FOLLOWING, (name,))) < 0.01
    pair = variation(counts_of(made, FOLLOWING, ("a", "b")), counts_of(real, FOLLOWING, ("a", "b")))
    if "independent" in (collector.name, synthesizer.name):
        assert pair == pytest.approx(0.72, abs=0.03)
    else:
        assert pair < 0.02
    assert variation(counts_of(made, FOLLOWING, ("a", "c")), counts_of(real, FOLLOWING, ("a", "c"))) < 0.03


def test_a_synthesizer_that_breaks_the_contract_would_be_caught() -> None:
    """Planted: bytes from the process's own randomness, and pairs drawn without their dependence."""

    class Loose:
        name = "loose"

        def build(self, record: Transcript, progress: object) -> object:
            class Drawn:
                total = 6000

                def sample(self, rows: int, seed: int, progress: object) -> np.ndarray:
                    return np.random.default_rng().integers(0, 2, (rows, 4)).astype(np.int32)

            return Drawn()

    for check in (
        test_the_same_seed_gives_the_same_bytes_and_another_other_ones,
        test_exact_tables_come_back,
        test_exact_shares_come_back,
    ):
        with pytest.raises(AssertionError):
            check(Loose())
