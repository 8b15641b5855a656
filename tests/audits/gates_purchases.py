"""Gates for what is bought before the codes are fixed: names of values, their order and price, and all the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from margent.counts.texts import CountedTexts
from margent.errors import BudgetError
from margent.privacy import merchant as door
from margent.privacy.budget import Budget
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.purchases import OpenSetRequest
from margent.transcript import OpenValues

ALPHA = 1e-8
DELTA = Fraction(2, 100)
LAW = Gaussian(Fraction(100))
HEAVY = ["zinc"] * 300 + ["alder"] * 300 + ["moss"] * 300


@dataclass(frozen=True)
class Rows:
    """A column in memory."""

    cells: Sequence[str]

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_arrays([pa.array(self.cells, pa.string())], names=["x"])


def _silent(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


def _sold(
    cells: Sequence[str], *, rows: int | None = None, quiet: bool = True, most: int = 10**6
) -> tuple[OpenValues, Ledger]:
    budget = Budget(10_000, "0.1", accountant="zcdp", delta_for_atoms="0.05", person_rows=rows)
    ledger, texts = Ledger(budget), CountedTexts(Rows(cells), {"x": []})
    noise = {"noise": _silent} if quiet else {}
    seller = door.DataMerchant(None, texts, ledger, **noise)  # type: ignore[arg-type]
    (told,) = seller.open_sets([OpenSetRequest("x", LAW, DELTA, most)], label="gate")
    return told, ledger


def names_of_one_are_seldom_told() -> None:
    """Values that one unit alone has are told with probability delta at most, however its rows are split."""
    trials = 20_000
    for rows, each in ((None, 1), (4, 4), (4, 2), (4, 1)):
        told, _ = _sold([f"{i}" for i in range(trials) for _ in range(each)], rows=rows, quiet=False)
        allowed = DELTA / ((rows or 1) // each)  # so many of them may be one person's
        most = stats.binom.isf(ALPHA / 4, trials, float(allowed))
        assert len(told.values) <= most, (rows, each, len(told.values))


def names_are_paid_for_with_delta() -> None:
    """What is told uses up the delta it was told at, and no more than is set apart."""
    _, ledger = _sold(HEAVY)
    assert ledger.delta_spent == DELTA
    texts = CountedTexts(Rows(HEAVY), {"x": []})
    try:
        door.DataMerchant(None, texts, Ledger(Budget(10_000, "0.1", accountant="zcdp"))).open_sets(
            [OpenSetRequest("x", LAW, DELTA, 5)], label="gate"
        )
    except BudgetError:
        return
    raise AssertionError("names were told although no delta was set apart")


def their_order_says_nothing() -> None:
    """The same rows in any order, and values of any weight, are told in the order of their names."""
    one, _ = _sold(HEAVY)
    other, _ = _sold(HEAVY[::-1] + ["moss"] * 50)
    assert one.values == other.values == tuple(sorted(one.values))
    assert _sold(HEAVY[::-1], most=2)[0].values == _sold(HEAVY, most=2)[0].values


def what_is_not_told_leaves_no_trace() -> None:
    """With or without many rare values, the answer is the same."""
    plain, _ = _sold(HEAVY)
    crowded, _ = _sold([f"rare {i}" for i in range(700)] + HEAVY)
    assert plain.values == crowded.values
    assert plain.counts.tolist() == crowded.counts.tolist()
    assert (plain.variance, plain.charge, plain.column) == (crowded.variance, crowded.charge, crowded.column)
