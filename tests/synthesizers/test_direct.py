"""The Laplace baseline: one table over all columns, and records straight from it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from margent import Budget
from margent.collectors.full_table import FullTable
from margent.counts.source import CodedCounts
from margent.errors import PlanError, UsageError
from margent.postprocessing.simplex import norm_sub
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.codec import Codec
from margent.synthesizers.direct import Direct
from tests.collectors.test_dense import dependent, schema
from tests.synthesizers.made import counts_of, transcript, variation

SIZES = {"a": 3, "b": 2, "k": 1}


def test_records_are_the_projected_table_to_the_record() -> None:
    noisy = np.array([[120, -7], [3, 900], [-20, 11]])
    record = transcript(SIZES, [(("a", "b"), noisy), (("a",), noisy.sum(axis=1))], variance=9)
    model = Direct().build(record, silent)
    expected = norm_sub(noisy.astype(float), float(noisy.sum()))
    made = model.sample(model.total, 1, silent)
    assert model.total == noisy.sum()
    counts = counts_of(made, SIZES, ("a", "b"))
    # Not the one-ways but the table itself, each cell rounded up or down.
    assert np.all(np.abs(counts - expected) < 1)
    assert made.tobytes() == Direct().build(record, silent).sample(model.total, 1, silent).tobytes()
    assert made.tobytes() != model.sample(model.total, 2, silent).tobytes()
    assert np.array_equal(model.marginals([("a", "b")], 1)[0], counts)


@pytest.mark.parametrize("rows", [0, 1, 5000])
def test_any_number_of_rows(rows: int) -> None:
    noisy = np.array([[-1, -1], [-5, -1], [-2, -9]])
    model = Direct().build(transcript(SIZES, [(("a", "b"), noisy)]), silent)
    assert model.total == 0
    assert model.sample(rows, 1, silent).shape == (rows, 3)


def test_codes_that_are_never_written_get_no_records() -> None:
    sizes = {"a": 4, "b": 3}
    counts = np.array([[50, 10, 20], [30, 30, 0], [5, 50, 5], [90, 90, 90]])
    model = Direct().build(transcript(sizes, [(("a", "b"), counts)], never=("a",)), silent)
    made = model.sample(1000, 1, silent)
    assert made[:, 0].max() <= 2
    assert variation(counts_of(made, sizes, ("a", "b"))[:3], counts[:3]) < 0.02


def test_only_constant_columns_and_no_answers() -> None:
    model = Direct().build(transcript({"k": 1, "l": 1}, [(("k",), np.array([40]))]), silent)
    assert model.total == 40
    assert model.sample(40, 1, silent).tolist() == [[0, 0]] * 40
    assert Direct().build(transcript({"k": 1}, []), silent).sample(3, 1, silent).tolist() == [[0]] * 3


def test_tables_of_some_columns_will_not_do() -> None:
    record = transcript({"a": 3, "b": 2, "c": 2}, [(("a", "b"), np.ones((3, 2))), (("c",), np.ones(2))])
    with pytest.raises(UsageError, match=r"needs one noisy table over all columns.*'laplace' buys one"):
        Direct().build(record, silent)


@pytest.mark.parametrize("accountant", ["gdp", "zcdp", "pure"])
def test_one_table_for_the_whole_budget(accountant: str) -> None:
    budget = Budget(2, 0 if accountant == "pure" else "1e-9", accountant=accountant)
    about, columns = schema(4, 5, 1, 3), dependent(4_000, (4, 5, 1, 3))
    source = CodedCounts([codes.astype(np.uint16) for codes in columns], Codec(about).domain)
    made = FullTable().collect(DataCurator(about, source, Ledger(budget)), budget)
    (answer,) = made.marginals
    (charge,) = made.charges
    assert answer.clique == ("c0", "c1", "c3")
    assert charge.mechanism == ("discrete-laplace" if accountant == "pure" else "discrete-gaussian")
    assert Fraction(99, 100) * budget.total < charge.cost <= budget.total
    (stage,) = FullTable().stages(source.domain, budget)
    assert (stage.cells, stage.largest, stage.questions, stage.share) == (60, 60, 1, 1)
    model = Direct().build(made, silent)
    real = np.stack(columns, axis=1)
    sizes = dict(zip(source.domain.names, source.domain.sizes, strict=True))
    records = model.sample(model.total, 3, silent)
    # Sixty cells, each off by at most 7 of 4,000 records on average.
    assert variation(counts_of(records, sizes, answer.clique), counts_of(real, sizes, answer.clique)) < 0.06


def test_a_table_over_the_cap_is_refused_with_the_sizes_before_anything_is_charged() -> None:
    about = schema(*(40,) * 9)
    source = CodedCounts([np.zeros(5, dtype=np.uint16)] * 9, Codec(about).domain)
    curator = DataCurator(about, source, Ledger(Budget(1)))
    for ask in (
        lambda: FullTable().stages(source.domain, Budget(1)),
        lambda: FullTable().collect(curator, Budget(1)),
    ):
        with pytest.raises(PlanError, match=r"262,?144,?000,?000,?000 cells|2\.6e\+14 cells") as caught:
            ask()
        assert "'c0' (40)" in str(caught.value)
        assert "1 more columns" in str(caught.value)
        assert "10,000,000" in str(caught.value)
    assert curator.charges == ()
