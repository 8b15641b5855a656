"""Interactions: sensitivities against brute force, what may be asked, and that whole tables come back from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from margent import Budget, Schema
from margent.counts.source import CodedCounts
from margent.errors import TranscriptError, UsageError
from margent.postprocessing.tables import centered, evidence, with_margins, working_domain
from margent.privacy.curator import DataCurator
from margent.privacy.interactions import interaction_gain, interaction_of, interaction_sensitivity_squared
from margent.privacy.laws import Gaussian, Laplace
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.queries import interaction_law, marginal_law
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import MarginalRequest
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.codec import Codec
from margent.schema.domain import Merge
from margent.transcript import NoisyMarginal, Transcript
from tests.privacy.all_tables import compositions
from tests.synthesizers.made import schema_of

SHAPES = [(2,), (4,), (2, 2), (2, 3), (3, 3), (2, 2, 2), (3, 2, 3)]
ALL = [Neighbors(), Neighbors("replace"), *(Neighbors("add-remove", rows) for rows in (1, 2, 3))]


def neighbors_of(table: NDArray[np.int64], neighbors: Neighbors) -> Iterator[NDArray[np.int64]]:
    """Every table that is a neighbor of a flat one by more records, or by one replaced."""
    unit = np.eye(table.size, dtype=np.int64)
    if neighbors.relation == "replace":
        for take, give in itertools.permutations(range(table.size), 2):
            if table[take]:
                yield table - unit[take] + unit[give]
        return
    for count in range(1, neighbors.unit_rows + 1):
        for group in itertools.combinations_with_replacement(range(table.size), count):
            yield table + unit[list(group)].sum(axis=0)


@pytest.mark.parametrize("neighbors", ALL, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_change_passes_what_is_registered_and_one_reaches_it(shape: tuple[int, ...], neighbors: Neighbors) -> None:
    registered = interaction_sensitivity_squared(shape, neighbors)
    cells, largest = math.prod(shape), 0
    most = 3 if cells <= 9 and neighbors.unit_rows < 3 else 1
    tables = np.concatenate([compositions(records, cells) for records in range(most + 1)])
    for table in tables:
        exact = interaction_of(table.reshape(shape))
        for other in neighbors_of(table, neighbors):
            change = interaction_of(other.reshape(shape)) - exact
            largest = max(largest, int(np.square(change).sum()))
    assert largest == registered  # neither more nor a part less: no noise is wasted


small = arrays.arrays(
    np.int64, st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple), elements=st.integers(0, 50)
)


@given(small)
def test_it_is_the_table_without_its_margins_times_its_cells(table: NDArray[np.int64]) -> None:
    interaction = interaction_of(table)
    for axis in range(table.ndim):
        assert not interaction.sum(axis=axis).any()
    np.testing.assert_allclose(interaction / table.size, centered(table.astype(np.float64)), atol=1e-9)
    np.testing.assert_array_equal(interaction_of(interaction), table.size * interaction)


@given(arrays.arrays(np.int64, st.tuples(st.integers(2, 5), st.integers(2, 5)), elements=st.integers(0, 99)))
def test_a_pair_is_its_one_ways_and_its_interaction(table: NDArray[np.int64]) -> None:
    values = table.astype(np.float64)
    singles = {"a": values.sum(axis=1), "b": values.sum(axis=0)}
    again = with_margins(("a", "b"), interaction_of(table) / table.size, singles, float(values.sum()))
    np.testing.assert_allclose(again, values, atol=1e-8)


SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA: Schema = schema_of(SIZES)


def door(budget: Budget, rows: int = 2_000) -> tuple[DataCurator, NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, rows)
    b = (a + (rng.random(rows) < 0.2)) % 3
    records = np.stack([a, b, rng.integers(0, 4, rows)], axis=1)
    source = CodedCounts([records[:, place].astype(np.uint16) for place in range(3)], Codec(SCHEMA).domain)
    return DataCurator(SCHEMA, source, Ledger(budget)), records


def asked(curator: DataCurator, names: tuple[str, ...], share: Fraction) -> MarginalRequest:
    law = interaction_law(share, [curator.domain.size(name) for name in names], curator.neighbors, curator.account)
    return MarginalRequest(names, law, interaction=True)


def bought(budget: Budget | None = None) -> tuple[Transcript, NDArray[np.int64]]:
    budget = budget or Budget(epsilon=1)
    curator, records = door(budget)
    part = budget.total / 5
    law = marginal_law(part, curator.neighbors, curator.account)
    requests = [MarginalRequest((name,), law) for name in SIZES]
    requests += [asked(curator, ("a", "b"), part), asked(curator, ("b", "c"), part)]
    answers = curator.measure(requests, label="all")
    return Transcript(SCHEMA, curator.domain, "test", curator.charges, answers), records


@pytest.mark.parametrize("options", [{}, {"relation": "replace"}, {"accountant": "zcdp"}, {"person_rows": 3}])
def test_charges_are_of_the_registered_sensitivity(options: dict[str, object]) -> None:
    budget = Budget(epsilon=1, **options)
    record, _ = bought(budget)
    for answer in record.interactions:
        charge = record.charges[answer.charge]
        assert charge.query == "interaction"
        shape = record.domain.shape(answer.clique)
        assert charge.sensitivity_squared == interaction_sensitivity_squared(shape, budget.neighbors)
        assert charge.cost >= charge.sensitivity_squared / (2 * charge.scale_squared)
        assert budget.total / 5 * Fraction(99, 100) < charge.cost <= budget.total / 5
    assert [answer.clique for answer in record.interactions] == [("a", "b"), ("b", "c")]
    assert len(record.marginals) == 3


def test_what_has_no_price_is_refused_before_the_charge() -> None:
    curator, _ = door(Budget(epsilon=1))
    law = Gaussian(Fraction(100))
    lone = schema_of({"a": 1, "b": 3})
    single = DataCurator(
        lone, CodedCounts([np.zeros(5, np.uint8), np.ones(5, np.uint8)], Codec(lone).domain), Ledger(Budget(epsilon=1))
    )
    for whose, request, words in (
        (curator, MarginalRequest((), law, interaction=True), "one or more columns"),
        (curator, MarginalRequest(("a", "z"), law, interaction=True), "one or more columns"),
        (curator, MarginalRequest(("a", "a"), law, interaction=True), "one or more columns"),
        (curator, MarginalRequest(("a", "b"), Laplace(Fraction(5)), interaction=True), "Gaussian"),
        (single, MarginalRequest(("a", "b"), law, interaction=True), "one code"),
    ):
        with pytest.raises(UsageError, match=words):
            whose.measure([request], label="x")
        assert not whose.charges
    pure, _ = door(Budget(epsilon=1, delta=0, accountant="pure"))
    with pytest.raises(UsageError, match="delta 0"):
        asked(pure, ("a", "b"), Fraction(1, 2))
    with pytest.raises(UsageError, match="delta 0"):
        pure.measure([MarginalRequest(("a", "b"), law, interaction=True)], label="x")
    assert not pure.charges


def test_a_merged_interaction_is_priced_by_its_groups() -> None:
    curator, _ = door(Budget(epsilon=1))
    merges = {"c": Merge("c", (0, 1, 1, 1))}
    law = interaction_law(Fraction(1, 1000), (2, 2), curator.neighbors, curator.account)
    (answer,) = curator.measure([MarginalRequest(("a", "c"), law, True, True)], label="x", merges=merges)
    assert answer.counts.shape == (2, 2)
    assert curator.charges[0].sensitivity_squared == 4
    record = Transcript(SCHEMA, curator.domain, "test", curator.charges, (answer,), merges)
    (table,) = evidence(record, working_domain(record)).tables
    assert table.values.shape == (2, 2)
    assert table.interaction


def test_replay_gives_them_back_and_insists_on_the_same_questions() -> None:
    record, _ = bought()
    again = ReplayCurator(record)
    requests = [
        MarginalRequest(each.clique, Gaussian(each.variance), interaction=each.interaction)
        for each in record.answers
        if isinstance(each, NoisyMarginal)
    ]
    assert again.measure(requests, label="all") == record.answers
    whole = [MarginalRequest(each.clique, each.law) for each in requests]
    with pytest.raises(TranscriptError, match="question 4"):
        ReplayCurator(record).measure(whole, label="all")


def test_they_are_written_and_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    record, _ = bought()
    for name, content in measurement_files(record).items():
        (tmp_path / name).write_bytes(content)
    read = read_measurements(tmp_path)
    assert measurement_files(read) == measurement_files(record)
    assert [answer.interaction for answer in read.answers] == [False] * 3 + [True] * 2
    # An answer may not claim to be what its charge did not buy.
    told = (tmp_path / "transcript.json").read_text()
    (tmp_path / "transcript.json").write_text(told.replace('"kind": "interaction"', '"kind": "marginal"', 1))
    with pytest.raises(TranscriptError, match="damaged"):
        read_measurements(tmp_path)


def test_a_completed_table_has_the_noisy_one_ways_and_less_noise_than_a_bought_one() -> None:
    """Variance a cell: (prod (k - 1)/k)^2 of a whole table's. 4,000 draws of 6 free numbers have a mean square within
    5 % of it, 5.5 deviations, in all but 4 of 10^8 runs."""
    record, records = bought()
    known = evidence(record, working_domain(record))
    (table,) = [table for table in known.tables if table.clique == ("b", "c")]
    one_way = {table.clique: table for table in known.tables if len(table.clique) == 1}
    np.testing.assert_allclose(
        table.values.sum(axis=1) - table.values.sum() / 3, one_way["b",].values - one_way["b",].values.mean(), atol=1e-6
    )
    assert table.interaction
    assert known.total == pytest.approx(2_000, abs=400)
    law = marginal_law(Budget(epsilon=1).total / 5, Neighbors(), Budget(epsilon=1).account)
    assert float(law.variance) / table.variance[0, 0] == pytest.approx(interaction_gain((3, 4)), rel=0.01)
    # The noise itself.
    exact = np.zeros((3, 4), dtype=np.int64)
    np.add.at(exact, (records[:, 1], records[:, 2]), 1)
    curator, _ = door(Budget(epsilon=10_000, delta="0.01", accountant="zcdp"))
    request = MarginalRequest(("b", "c"), Gaussian(Fraction(10_000)), interaction=True)
    drawn = curator.measure([request] * 4_000, label="x")
    errors = np.stack([centered(each.counts / 12.0) - centered(exact.astype(float)) for each in drawn])
    assert np.square(errors).mean() == pytest.approx(10_000 / 144 * (2 / 3) * (3 / 4), rel=0.05)
