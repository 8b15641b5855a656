"""Partition selection: the threshold against exact laws and every split; texts, order and charges of what is told."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp
from numpy.typing import NDArray

from margent import Budget, Integer, Schema
from margent.counts.source import CodedCounts, StreamedCounts
from margent.counts.texts import CountedTexts
from margent.errors import BudgetError, MargentError, PlanError, UsageError
from margent.privacy.brackets import discrete_gaussian_law
from margent.privacy.laws import Gaussian, Laplace
from margent.privacy.ledger import Ledger
from margent.privacy.merchant import DataMerchant
from margent.privacy.neighbors import Neighbors
from margent.privacy.partitions import delta_used, tail, threshold
from margent.privacy.purchases import OpenSetRequest, QuantilesRequest, purchase_charge
from margent.privacy.queries import marginal_law, marginal_sensitivity_squared
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.open_values import admissible
from margent.schema.settled import grid_schema
from tests.privacy.exact_laws import exact_masses

SCALES = [Fraction(1), Fraction(9), Fraction(400), Fraction(22_500)]


def exact_tail(scale_squared: Fraction, start: int) -> mp.mpf:
    first, masses = exact_masses(discrete_gaussian_law(scale_squared))
    with mp.workprec(600):
        return mp.fsum(masses[max(0, start - first) :])


def splits(rows: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Every way to write ``rows`` as a sum of whole numbers."""
    if rows == 0:
        yield ()
        return
    for each in range(min(rows, largest or rows), 0, -1):
        for rest in splits(rows - each, each):
            yield (each, *rest)


@pytest.mark.parametrize("scale_squared", SCALES, ids=str)
def test_the_tail_is_bounded_closely(scale_squared: Fraction) -> None:
    spread = math.isqrt(int(scale_squared))
    for start in (1, 2, spread, 3 * spread, 6 * spread, 10 * spread):
        exact, bound = exact_tail(scale_squared, start), tail(scale_squared, start)
        assert float(bound) >= float(exact) * (1 - 1e-12)
        if start >= 6 * spread:
            assert float(bound) <= 1.06 * float(exact)


@pytest.mark.parametrize("scale_squared", SCALES, ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**10)], ids=str)
def test_the_threshold_covers_every_split_and_is_hardly_higher_than_it_must_be(
    scale_squared: Fraction, rows: int, delta: Fraction
) -> None:
    neighbors = Neighbors("add-remove", rows)
    least = threshold(Gaussian(scale_squared), delta, neighbors)

    def told(at: int) -> float:
        """The chance that some new value is told, in the worst split."""
        return max(
            1 - math.prod(1 - float(exact_tail(scale_squared, at - each)) for each in split) for split in splits(rows)
        )

    if delta > 1e-4:  # below, 1 - p is 1 in floating point
        assert told(least) <= float(delta)
    worst = max(sum(float(exact_tail(scale_squared, least - each)) for each in split) for split in splits(rows))
    assert worst <= float(delta)
    slack = 1 + math.isqrt(int(scale_squared)) // 4
    below = max(
        sum(float(exact_tail(scale_squared, least - slack - 1 - each)) for each in split) for split in splits(rows)
    )
    assert below > float(delta)
    assert delta_used(scale_squared, least, rows) <= delta < delta_used(scale_squared, least - 1, rows)


def test_more_rows_of_a_person_raise_it() -> None:
    law, delta = Gaussian(Fraction(100)), Fraction(1, 10**9)
    bars = [threshold(law, delta, Neighbors("add-remove", rows)) for rows in (1, 2, 4, 8)]
    assert bars == sorted(bars)
    assert bars[-1] >= bars[0] + 7
    assert bars[0] == threshold(law, delta, Neighbors()) == threshold(law, delta, Neighbors("replace"))


def test_at_delta_0_nothing_can_be_told() -> None:
    with pytest.raises(UsageError, match="one person's alone"):
        threshold(Gaussian(Fraction(100)), Fraction(0), Neighbors())
    with pytest.raises(UsageError, match="delta above 0"):
        threshold(Laplace(Fraction(10)), Fraction(1, 10), Neighbors())


class Rows:
    """A table in memory, cut into batches."""

    def __init__(self, cells: Sequence[bytes | str | None], batch: int = 7) -> None:
        self.column, self.batch, self.passes = pa.array(cells), batch, 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.passes += 1
        for start in range(0, len(self.column), self.batch):
            part = self.column.slice(start, self.batch)
            yield pa.RecordBatch.from_arrays([part], names=["x"])


def no_noise(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


BUDGET = Budget(1, "1e-6", delta_for_atoms="1e-7")


def merchant(cells: Sequence[bytes | str | None], budget: Budget = BUDGET, room: int = 2**20) -> DataMerchant:
    texts = CountedTexts(Rows(cells), {"x": ["", "NA"]}, room)
    return DataMerchant(None, texts, Ledger(budget), noise=no_noise)


def asked(most: int = 100, budget: Budget = BUDGET) -> OpenSetRequest:
    law = budget.account.law(budget.total / 2, Fraction(1), marginal_sensitivity_squared(budget.neighbors))
    return OpenSetRequest("x", law, budget.delta_for_atoms, most)


BAR = threshold(asked().law, BUDGET.delta_for_atoms, Neighbors())


def test_told_are_names_at_the_threshold_sorted_and_nothing_of_the_others() -> None:
    cells = ["z"] * (BAR + 2) + ["a"] * BAR + ["m"] * (BAR - 1) + [f"one {i}" for i in range(500)]
    cells += ["NA"] * 900 + [""] * 900
    (told,) = merchant(cells[::-1]).open_sets([asked()], label="x")
    assert told.values == ("a", "z")
    assert told.counts.tolist() == [BAR, BAR + 2]


def test_too_many_are_cut_to_the_heaviest_ties_by_name() -> None:
    cells = [name for name, extra in zip("edcba", (5, 1, 1, 0, 9), strict=True) for _ in range(BAR + extra)]
    (told,) = merchant(cells).open_sets([asked(3)], label="x")
    assert told.values == ("a", "c", "e")


@given(st.lists(st.sampled_from(["a", "b", "dd", "é" * 100, "f" * 300, " "]), max_size=60), st.integers(1, 4))
def test_counting_in_ranges_of_hashes_gives_every_text_once(cells: list[str], room: int) -> None:
    parts = list(CountedTexts(Rows(cells), {"x": []}, room).texts("x"))
    names = [name for part, _ in parts for name in part]
    counts = {name: int(count) for part, found in parts for name, count in zip(part, found, strict=True)}
    assert len(names) == len(set(names))
    assert counts == {text: cells.count(text) for text in set(cells) if text in ("a", "b", "dd", "é" * 100)}
    assert all(len(part) <= max(room, 1) for part, _ in parts)


def test_cells_of_every_kind_are_counted_as_the_codec_reads_them() -> None:
    for cells, kept in (
        ([b"\xff\xfe", b"ok", None, b"a\x00b", b"tab\t"], {"ok": 1}),
        ([12, 7, 7, None], {"12": 1, "7": 2}),
        ([True, False, True], {"true": 2, "false": 1}),
        ([0.5, float("nan"), 12.0], {"0.5": 1, "12": 1}),
    ):
        source = CountedTexts(Rows(cells), {"x": []})  # type: ignore[arg-type]
        found = {
            name: int(count) for part, counts in source.texts("x") for name, count in zip(part, counts, strict=True)
        }
        assert found == kept
    coded = pa.array(["u", "v", "u", None]).dictionary_encode()
    rows = Rows([])
    rows.column = coded
    (names, counts), *_ = CountedTexts(rows, {"x": []}).texts("x")
    assert dict(zip(names, counts.tolist(), strict=True)) == {"u": 2, "v": 1}


@given(st.binary(max_size=1100))
def test_whether_a_text_may_be_kept_depends_on_it_alone(raw: bytes) -> None:
    found = admissible(raw, ["NA"])
    assert found is None or (
        found.encode() == raw and found.isprintable() and found.strip() and len(found) <= 256 and found != "NA"
    )


def test_nothing_is_looked_at_before_it_is_paid_for() -> None:
    for budget in (Budget(1, "1e-6"), Budget(1, "1e-6", delta_for_atoms="1e-9")):
        rows = Rows(["a"] * 1000)
        seller = DataMerchant(None, CountedTexts(rows, {"x": []}), Ledger(budget), noise=no_noise)
        with pytest.raises(BudgetError):
            seller.open_sets([asked()], label="x")
        assert rows.passes == 0
        assert seller.charges == ()
    with pytest.raises(UsageError, match="delta"):
        merchant(["a"]).open_sets([OpenSetRequest("x", asked().law, Fraction(0), 5)], label="x")


class Quoting:
    """A source with a bug: it fails and quotes a cell."""

    def texts(self, column: str) -> Iterator[tuple[Sequence[str], NDArray[np.int64]]]:
        yield ["a"], np.array([BAR])
        raise ValueError("could not count 'Zoë'")


def test_a_fault_of_a_source_of_texts_keeps_its_text() -> None:
    seller = DataMerchant(None, Quoting(), Ledger(BUDGET), noise=no_noise)
    with pytest.raises(MargentError, match=r"^internal fault: the texts could not be counted \(ValueError\)") as caught:
        seller.open_sets([asked()], label="x")
    assert caught.value.__context__ is None


def test_noise_that_cannot_be_drawn_is_refused_before_the_charge() -> None:
    domain = Domain(("x",), (3,))
    seller = DataMerchant(CodedCounts([np.zeros(4, np.uint8)], domain), Quoting(), Ledger(BUDGET))
    with pytest.raises(PlanError, match="64 bits"):
        seller.quantiles([QuantilesRequest("x", Gaussian(Fraction(2**101)))], label="x")
    assert seller.charges == ()


@pytest.mark.parametrize(
    "neighbors", [Neighbors(), Neighbors("replace"), *(Neighbors("add-remove", k) for k in (2, 4))]
)
def test_registered_sensitivities_are_reached_and_never_passed(neighbors: Neighbors) -> None:
    """Counts of three texts (or cells of a grid) over all small tables: the largest change between neighbors."""
    budget = Budget(1, "1e-6", relation=neighbors.relation, delta_for_atoms="1e-7", person_rows=neighbors.person_rows)
    charges = [
        purchase_charge(request, "x", neighbors, budget.account)
        for request in (QuantilesRequest("x", asked(budget=budget).law), asked(budget=budget))
    ]
    assert [charge.query for charge in charges] == ["quantiles", "open-set"]
    assert [charge.delta for charge in charges] == [0, budget.delta_for_atoms]
    largest = 0
    for table in itertools.product(range(3), repeat=3):
        for change in itertools.product(range(-neighbors.unit_rows, neighbors.unit_rows + 1), repeat=3):
            moved = sum(change) == 0 and sum(map(abs, change)) == 2
            added = min(change) >= 0 and sum(change) <= neighbors.unit_rows
            ok = moved if neighbors.relation == "replace" else added
            if ok and min(np.add(table, change)) >= 0:
                largest = max(largest, sum(step**2 for step in change))
    assert {charge.sensitivity_squared for charge in charges} == {largest}


def test_quantiles_are_the_counts_of_the_grid() -> None:
    schema = Schema([Integer("x", 0, 99, bins={"quantiles": 3, "grid": 10})], unit="row")
    rows, ledger = Rows(["5", "15", "15", "99", "", "200", "?"]), Ledger(BUDGET)
    source = StreamedCounts(rows, Codec(grid_schema(schema)))
    seller = DataMerchant(source, CountedTexts(Rows([]), {}), ledger, noise=no_noise)
    louder = marginal_law(BUDGET.total / 4, BUDGET.neighbors, BUDGET.account)
    answers = seller.quantiles([QuantilesRequest("x", louder)] * 2, label="bins")
    assert [answer.counts.tolist() for answer in answers] == [[1, 2, 0, 0, 0, 0, 0, 0, 0, 2, 2]] * 2
    assert [charge.query for charge in ledger.charges] == ["quantiles"] * 2
    assert rows.passes == 1
