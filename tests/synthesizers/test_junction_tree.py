"""What junction-tree sampling promises beside the contract of every synthesizer."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from margent.errors import UsageError
from margent.postprocessing.consistency import Thresholded
from margent.progress import silent
from margent.schema.domain import Merge
from margent.synthesizers.junction_tree import JunctionTreeSampling
from margent.transcript import CliqueTree
from tests.synthesizers.made import counts_of, transcript, variation

SIZES = {"a": 3, "b": 4, "c": 2, "d": 3}


def chained(rows: int, seed: int = 0) -> np.ndarray:
    """a -> b -> c -> d: independent of what came earlier, given the column before."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 3, rows)]
    for size in list(SIZES.values())[1:]:
        columns.append(np.where(rng.random(rows) < 0.3, rng.integers(0, size, rows), columns[-1] % size))
    return np.stack(columns, axis=1)


def test_triples_follow_from_pairs_along_a_chain() -> None:
    """120,000 rows: a triple of the law is within .01 of the table's, whose own error is near .003."""
    real = chained(120_000)
    tables = [(names, counts_of(real, SIZES, names)) for names in pairwise(SIZES)]
    model = JunctionTreeSampling().build(transcript(SIZES, tables), silent)
    triples = list(combinations(SIZES, 3))
    for names, table in zip(triples, model.marginals(triples, 0), strict=True):
        assert variation(table, counts_of(real, SIZES, names)) < 0.01
    made = model.sample(model.total, 1, silent)
    for names in triples:
        assert variation(counts_of(made, SIZES, names), counts_of(real, SIZES, names)) < 0.01


def test_records_meet_the_tables_up_to_rounding() -> None:
    """A root's cells are off by less than one record, others by less than one a cell of their separator."""
    real = chained(20_000)
    tables = [(names, counts_of(real, SIZES, names)) for names in pairwise(SIZES)]
    made = JunctionTreeSampling().build(transcript(SIZES, tables), silent).sample(20_000, 3, silent)
    assert np.abs(counts_of(made, SIZES, ("a", "b")) - tables[0][1]).max() <= 1
    for names, counts in tables[1:]:
        assert np.abs(counts_of(made, SIZES, names) - counts).max() <= 3


def test_marginals_are_the_mean_of_samples() -> None:
    """Over 400 samples of 50 rows a cell's mean count has an error below .2 records; seven of them (odds < 1e-9)."""
    real = chained(50, 5)
    tables = [(names, counts_of(real, SIZES, names)) for names in pairwise(SIZES)]
    model = JunctionTreeSampling().build(transcript(SIZES, tables, variance=4), silent)
    (expected,) = model.marginals([("a", "d")], 0)
    total = np.zeros((3, 3))
    for seed in range(400):
        total += counts_of(model.sample(50, seed, silent), SIZES, ("a", "d"))
    assert np.abs(total / 400 - expected * 50 / model.total).max() < 7 * 0.2


def test_a_found_tree_is_taken_and_a_cluster_covers_its_cliques() -> None:
    """The cluster of a, b, c has a triangle's dependence; the tree says a and c meet only through b, and that rules."""
    real = chained(30_000)
    tables = [(names, counts_of(real, SIZES, names)) for names in (("a", "b", "c"), ("c", "d"))]
    record = transcript(SIZES, tables)
    model = JunctionTreeSampling().build(
        replace(record, structure=CliqueTree((("a", "b"), ("b", "c"), ("c", "d")))), silent
    )
    assert model.law.tree.cliques == (("a", "b"), ("b", "c"), ("c", "d"))
    for names in pairwise(SIZES):
        assert variation(model.marginals([names], 0)[0], counts_of(real, SIZES, names)) < 1e-3
    assert JunctionTreeSampling().build(record, silent).law.tree.cliques == (("a", "b", "c"), ("c", "d"))


def test_a_tree_of_too_many_cells_is_refused_with_what_to_do() -> None:
    names = [f"c{number}" for number in range(10)]
    sizes = dict.fromkeys(names, 6)
    record = transcript(sizes, [(pair, np.ones((6, 6), np.int64)) for pair in combinations(names, 2)])
    with pytest.raises(UsageError, match=r"60,466,176 cells.*'descent' or 'gum'"):
        JunctionTreeSampling().build(record, silent)


def test_what_is_too_large_for_elimination_is_counted_in_records() -> None:
    real = chained(3_000)
    tables = [(names, counts_of(real, SIZES, names)) for names in pairwise(SIZES)]
    model = JunctionTreeSampling(most_cells=26).build(transcript(SIZES, tables), silent)
    (table,) = model.marginals([tuple(SIZES)], 7)
    assert np.array_equal(table, counts_of(model.sample(model.total, 7, silent), SIZES, tuple(SIZES)))


def test_the_paper_s_threshold_gives_records_too() -> None:
    """Thresholded tables contradict each other on what they share, by little where the noise is little."""
    real = chained(20_000)
    rng = np.random.default_rng(9)
    tables = [(names, counts_of(real, SIZES, names)) for names in pairwise(SIZES)]
    tables = [(names, counts + np.rint(rng.normal(0, 30, counts.shape)).astype(np.int64)) for names, counts in tables]
    made = JunctionTreeSampling(consistency=Thresholded()).build(transcript(SIZES, tables, variance=900), silent)
    records = made.sample(20_000, 1, silent)
    for names in pairwise(SIZES):
        assert variation(counts_of(records, SIZES, names), counts_of(real, SIZES, names)) < 0.02


def test_merged_and_unwritten_codes_have_their_shares_in_marginals() -> None:
    """The expectation agrees with a million records up to rounding."""
    sizes = {"a": 5, "b": 3}
    merges = {"a": Merge("a", (0, 1, 1, 1, 1))}
    one_way = np.array([700, 12, 0, 6, 2])
    pair = np.array([[300, 400, 0], [10, 10, 0]])
    record = transcript(sizes, [(("a",), one_way), (("a", "b"), pair)], merges=merges, never=("b",))
    model = JunctionTreeSampling().build(record, silent)
    (table,) = model.marginals([("a", "b")], 0)
    assert table.sum() == pytest.approx(model.total)
    assert not table[:, 2].any()
    made = model.sample(1_000_000, 1, silent)
    assert variation(table, counts_of(made, sizes, ("a", "b"))) < 0.002
