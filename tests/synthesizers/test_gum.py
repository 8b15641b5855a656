"""GUM beyond the common contract: settings, groups told apart either way, its mark on a real table."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from margent import Budget
from margent.collectors.privsyn import PrivSyn
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.domain import Merge
from margent.schema.read import read_schema
from margent.synthesizers.gum import Gum
from margent.synthesizers.model import Synthesizer
from tests.synthesizers.made import counts_of, schema_of, transcript, variation

SHARED = Path(__file__).resolve().parents[3] / "shared"


def test_merged_codes_are_told_apart_by_their_noisy_counts() -> None:
    sizes = {"a": 5, "b": 2}
    merges = {"a": Merge("a", (0, 1, 1, 1, 1))}
    one_way = np.array([700, 12, -3, 6, 0])
    pair = np.array([[350, 350], [10, 5]])
    record = transcript(sizes, [(("a",), one_way), (("b",), np.array([360, 355])), (("a", "b"), pair)], merges=merges)
    made = Gum().build(record, silent).sample(7150, 1, silent)
    codes = np.bincount(made[:, 0], minlength=5)
    assert codes[2] == 0
    assert codes[1] > codes[3] > 20
    evenly = Gum(spread="uniform").build(record, silent).sample(7150, 1, silent)
    assert np.ptp(np.bincount(evenly[:, 0], minlength=5)[1:]) <= 1


def test_diagonal_pairs_stay_diagonal_and_independent_columns_independent() -> None:
    """b = 10 a with five values, c independent; epsilon 5; P(b = 10 a) > .99, mutual information of a and c tiny."""
    rows = np.arange(10_000)
    real = np.stack([rows % 5, rows % 5, rows // 5 % 3], axis=1)
    schema = schema_of({"a": 5, "b": 5, "c": 3})
    budget = Budget(epsilon=5)
    source = CodedCounts([column.astype(np.uint8) for column in real.T], Codec(schema).domain)
    made = Gum().build(PrivSyn().collect(DataCurator(schema, source, Ledger(budget)), budget), silent)
    for rows_made in (made.total, 100_000):
        codes = made.sample(rows_made, 11, silent)
        assert np.mean(codes[:, 0] == codes[:, 1]) > 0.99
        joint = counts_of(codes, {"a": 5, "b": 5, "c": 3}, ("a", "c")) / rows_made
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        assert (joint * np.log(np.maximum(joint, 1e-12) / product)).sum() < 1e-3


@pytest.mark.skipif(not (SHARED / "data" / "adult-discrete").exists(), reason="the shared real tables are not here")
def test_adult_at_epsilon_1_stays_under_its_mark() -> None:
    """Mean total variation over all 91 pairs; .041 measured, .055 allowed (one run, its spread is .001)."""
    from pyarrow import csv

    folder = SHARED / "data" / "adult-discrete"
    schema = read_schema(folder / "schema.json")
    domain = Codec(schema).domain
    table = csv.read_csv(folder / "adult.csv.gz")
    real = np.stack([table.column(name).to_numpy() for name in domain.names], axis=1)
    budget = Budget(epsilon=1)
    source = CodedCounts([column.astype(np.uint16) for column in real.T], domain)
    record = PrivSyn().collect(DataCurator(schema, source, Ledger(budget)), budget)
    model = Gum().build(record, silent)
    made = model.sample(model.total, 1, silent)
    sizes = dict(zip(domain.names, domain.sizes, strict=True))
    pairs = list(combinations(domain.names, 2))
    distances = [variation(counts_of(made, sizes, pair), counts_of(real, sizes, pair)) for pair in pairs]
    assert np.mean(distances) < 0.055
    for place, name in enumerate(domain.names):
        assert Codec(schema).sampleable[name][np.unique(made[:, place])].all()


@pytest.mark.parametrize(
    "settings", [{"rounds": -1}, {"alpha": 0.0}, {"decay": 1.5}, {"every": 0}, {"duplicate": ()}, {"duplicate": (2.0,)}]
)
def test_impossible_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="gum"):
        Gum(**settings)


def test_gum_is_a_synthesizer() -> None:
    synthesizer: Synthesizer = Gum()
    assert synthesizer.name == "gum"
