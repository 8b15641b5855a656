"""Tables of one to four columns, asked of a curator, through every synthesizer, file and replay."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent import Budget
from margent.counts.source import CodedCounts
from margent.postprocessing.latent_classes import LatentSettings
from margent.postprocessing.posterior import PosteriorSettings
from margent.privacy.curator import DataCurator
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.queries import marginal_sensitivity_squared
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import MarginalRequest
from margent.progress import silent
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.codec import Codec
from margent.schema.domain import Clique, Merge
from margent.synthesizers.descent import Descent
from margent.synthesizers.gum import Gum
from margent.synthesizers.independent import IndependentColumns
from margent.synthesizers.model import Synthesizer
from margent.transcript import Transcript
from tests.synthesizers.made import counts_of, schema_of, variation

Records = NDArray[np.int64]

SIZES = {"a": 3, "b": 4, "c": 2, "k": 1, "w": 5}
ALL_CLIQUES = [names for size in (1, 2, 3, 4) for names in itertools.combinations(SIZES, size)]
MERGES = {"w": Merge("w", (0, 1, 2, 2, 3))}
QUICK = Descent(prior=PosteriorSettings(latent=LatentSettings(steps=10)))
BITS = dict.fromkeys("abcd", 2)
SYNTHESIZERS: list[Synthesizer] = [Descent(), Gum()]


def requests_of(cliques: Sequence[Clique], budget: Budget, merged: bool = False) -> list[MarginalRequest]:
    """Every table for the same part of the budget."""
    unit = marginal_sensitivity_squared(budget.neighbors)
    scale_squared = budget.account.gaussian_scale(unit, budget.total / len(cliques))
    return [MarginalRequest(names, Gaussian(scale_squared), merged=merged and len(names) > 1) for names in cliques]


def bought(
    real: Records,
    sizes: Mapping[str, int],
    cliques: Sequence[Clique],
    epsilon: str = "4",
    merges: Mapping[str, Merge] | None = None,
    never: Sequence[str] = (),
) -> Transcript:
    """The noisy tables over these cliques, counted, charged and perturbed by the curator."""
    schema, budget = schema_of(sizes, never), Budget(epsilon=epsilon)
    source = CodedCounts([column.astype(np.uint16) for column in real.T], Codec(schema).domain)
    curator = DataCurator(schema, source, Ledger(budget))
    asked = requests_of(cliques, budget, bool(merges))
    answers = curator.measure(asked, label="tables", merges=merges or {})
    assert sum((charge.cost for charge in curator.charges), Fraction(0)) <= budget.total
    return Transcript(schema, curator.domain, "made", curator.charges, answers, merges or {})


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(ALL_CLIQUES), min_size=1, max_size=6, unique=True),
    st.sampled_from([0, 1, 40, 600]),
    st.sampled_from(["0.05", "8"]),
    st.booleans(),
    st.booleans(),
)
def test_any_tables_of_one_to_four_columns_give_records_of_the_schema(
    seed: int, cliques: list[Clique], rows: int, epsilon: str, merged: bool, never: bool
) -> None:
    """Also without rows, with a constant column, a merged one, and a code that is never written."""
    rng = np.random.default_rng(seed)
    real = np.stack([rng.integers(0, size, rows) for size in SIZES.values()], axis=1)
    record = bought(real, SIZES, cliques, epsilon, MERGES if merged else None, ("w",) if never else ())
    for answer in record.marginals:
        shape = (record.merged_domain if answer.merged else record.domain).shape(answer.clique)
        assert answer.counts.shape == shape
    synthesizers: list[Synthesizer] = [QUICK, Gum(rounds=8), IndependentColumns()]
    for synthesizer in synthesizers:
        model = synthesizer.build(record, silent)
        made = model.sample(70, 1, silent)
        assert made.shape == (70, len(SIZES))
        assert np.all((made >= 0) & (made < list(SIZES.values())))
        assert not never or made[:, -1].max() < SIZES["w"] - 1
        assert made.tobytes() == synthesizer.build(record, silent).sample(70, 1, silent).tobytes()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from(ALL_CLIQUES), min_size=1, max_size=5, unique=True),
    st.booleans(),
)
def test_tables_of_any_size_are_read_back_and_replayed(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cliques: list[Clique], merged: bool
) -> None:
    rng = np.random.default_rng(seed)
    real = np.stack([rng.integers(0, size, 50) for size in SIZES.values()], axis=1)
    record = bought(real, SIZES, cliques, "2", MERGES if merged else None)
    folder: Path = tmp_path_factory.mktemp("measurements")
    for name, data in measurement_files(record).items():
        (folder / name).write_bytes(data)
    read = read_measurements(folder)
    assert read.charges == record.charges
    curator = ReplayCurator(read)
    again = curator.measure(requests_of(cliques, Budget(epsilon=2), merged), label="tables", merges=read.merges)
    for one, other in zip(again, record.marginals, strict=True):
        assert (one.clique, one.variance, one.merged) == (other.clique, other.variance, other.merged)
        assert np.array_equal(one.counts, other.counts)
    assert curator.charges == record.charges


def parity(columns: int, rows: int = 8_000) -> Records:
    """Fair bits of which the last is the sum of the others modulo two: any fewer columns are independent."""
    bits = np.random.default_rng(3).integers(0, 2, (rows, columns - 1))
    rest = np.random.default_rng(4).integers(0, 2, (rows, len(BITS) - columns))
    return np.concatenate([bits, bits.sum(axis=1, keepdims=True) % 2, rest], axis=1)


@pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=lambda synthesizer: synthesizer.name)
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_what_no_smaller_table_shows_comes_back_from_the_table_that_holds_it(
    synthesizer: Synthesizer, columns: int
) -> None:
    real, whole = parity(columns), tuple("abcd"[:columns])
    smaller = list(itertools.combinations("abcd", columns - 1))
    held = []
    for cliques in ([*smaller, whole], smaller):
        made = synthesizer.build(bought(real, BITS, cliques, "2"), silent).sample(8_000, 1, silent)
        held.append(float(np.mean(made[:, :columns].sum(axis=1) % 2 == 0)))
    assert held[0] > 0.97
    assert held[1] < 0.6


@pytest.mark.parametrize("synthesizer", SYNTHESIZERS, ids=lambda synthesizer: synthesizer.name)
def test_tables_of_one_to_four_columns_are_met_together(synthesizer: Synthesizer) -> None:
    """A ring of pairs, a triple and a table of four over six columns: each within .02, as are all pairs inside.

    Columns shuffled apart miss every one of them by more than .1.
    """
    sizes = {"a": 3, "b": 4, "c": 2, "d": 3, "e": 5, "f": 6}
    rng = np.random.default_rng(5)
    hidden, free = rng.integers(0, 7, 20_000), [rng.integers(0, size, 20_000) for size in sizes.values()]
    pairs = zip(free, sizes.values(), strict=True)
    real = np.stack([np.where(rng.random(20_000) < 0.2, own, hidden % size) for own, size in pairs], axis=1)
    several: list[Clique] = [("a", "b", "c", "d"), ("c", "d", "e"), ("e", "f"), ("a", "f")]
    cliques = [*((name,) for name in sizes), *several]
    made = synthesizer.build(bought(real, sizes, cliques), silent).sample(20_000, 1, silent)
    for names in cliques:
        for each in {names, *itertools.combinations(names, min(2, len(names)))}:
            assert variation(counts_of(made, sizes, each), counts_of(real, sizes, each)) < 0.02
    flat = np.stack([rng.permutation(column) for column in real.T], axis=1)
    for names in several:
        assert variation(counts_of(flat, sizes, names), counts_of(real, sizes, names)) > 0.1
