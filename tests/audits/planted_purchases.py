"""Bugs in selling names of values, each with the gate that must catch it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from margent.privacy import merchant, partitions, purchases
from margent.privacy.laws import Law
from margent.privacy.neighbors import Neighbors
from margent.transcript import OpenValues
from tests.audits import gates_purchases as gates

Plant = Callable[[pytest.MonkeyPatch], None]
Gate = Callable[..., None]


def bar(rule: Callable[[Law, Fraction, Neighbors], int]) -> Plant:
    return lambda patch: patch.setattr(merchant, "threshold", rule)


def one_sided_deviations(law: Law, delta: Fraction, neighbors: Neighbors) -> int:
    return 1 + int(1.64 * float(law.variance) ** 0.5)


def without_delta(patch: pytest.MonkeyPatch) -> None:
    genuine = purchases.purchase_charge
    patch.setattr(merchant, "purchase_charge", lambda *given: replace(genuine(*given), delta=Fraction(0)))


def heaviest_first(told: Sequence[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    return sorted(told, key=lambda value: -value[1])[:most]


def as_they_came(told: Sequence[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    return list(told)[:most]


def with_the_number_of_all(patch: pytest.MonkeyPatch) -> None:
    genuine = merchant.DataMerchant.open_sets

    def open_sets(self: merchant.DataMerchant, requests: Any, *, label: str) -> tuple[OpenValues, ...]:
        found = []
        for request, answer in zip(requests, genuine(self, requests, label=label), strict=True):
            distinct = sum(len(names) for names, _ in self.texts.texts(request.column))
            found.append(replace(answer, counts=np.append(answer.counts, distinct)))
        return tuple(found)

    patch.setattr(merchant.DataMerchant, "open_sets", open_sets)


def others_together(patch: pytest.MonkeyPatch) -> None:
    """What was not told is told as one sum, without noise of its own."""
    genuine = merchant.DataMerchant.open_sets

    def open_sets(self: merchant.DataMerchant, requests: Any, *, label: str) -> tuple[OpenValues, ...]:
        (answer,) = genuine(self, requests, label=label)
        rest = sum(
            int(count)
            for names, counts in self.texts.texts(answer.column)
            for name, count in zip(names, counts, strict=True)
            if name not in answer.values
        )
        return (replace(answer, variance=answer.variance + rest),)

    patch.setattr(merchant.DataMerchant, "open_sets", open_sets)


def ignoring_persons(law: Law, delta: Fraction, neighbors: Neighbors) -> int:
    return partitions.threshold(law, delta, Neighbors())


def all_rows_in_one(law: Law, delta: Fraction, neighbors: Neighbors) -> int:
    """Not every split: a person's rows may also be in as many values."""
    return neighbors.unit_rows - 1 + partitions.threshold(law, 3 * delta, Neighbors())


BUGS: tuple[tuple[str, Gate, Plant], ...] = (
    ("the threshold is a round number of deviations", gates.names_of_one_are_seldom_told,
     bar(one_sided_deviations)),
    ("the threshold is for one row of a person of four", gates.names_of_one_are_seldom_told,
     bar(ignoring_persons)),
    ("the threshold lets three times delta through", gates.names_of_one_are_seldom_told,
     bar(all_rows_in_one)),
    ("delta is not charged", gates.names_are_paid_for_with_delta, without_delta),
    ("names stand in the order of their counts", gates.their_order_says_nothing,
     lambda patch: patch.setattr(merchant, "heaviest", heaviest_first)),
    ("names stand in the order of the rows", gates.their_order_says_nothing,
     lambda patch: patch.setattr(merchant, "heaviest", as_they_came)),
    ("the number of all values is told", gates.what_is_not_told_leaves_no_trace, with_the_number_of_all),
    ("what was not told is told as a sum", gates.what_is_not_told_leaves_no_trace, others_together),
)  # fmt: skip
