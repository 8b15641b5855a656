"""Runs of codes in charts: every code in one run, no more runs than bars, missing cells by themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from margent.schema.label_runs import label_runs


@given(st.integers(1, 500), st.integers(0, 60), st.integers(2, 60), st.booleans())
def test_every_code_stands_in_one_run(own: int, others: int, most: int, binned: bool) -> None:
    labels = [f"{code} to {code + 1}" for code in range(own)] + [f"(special {code})" for code in range(others)]
    starts, names = label_runs(labels, most, inner=own, binned=binned)
    assert len(names) == len(starts) <= most
    assert starts[0] == 0
    assert sorted(set(starts.tolist())) == starts.tolist()
    assert starts[-1] < len(labels)


def test_missing_cells_are_not_lumped_with_the_largest_values() -> None:
    labels = [str(code) for code in range(30, 221)] + ["(missing)", "(unlisted)"]
    starts, names = label_runs(labels, 40, inner=191, binned=True)
    assert names[:2] == ["30 to 35", "36 to 41"]
    assert names[-3:] == ["216 to 220", "(missing)", "(unlisted)"]
    assert starts[-2:].tolist() == [191, 192]


def test_runs_of_words_are_not_mixed() -> None:
    labels = ["go to school", "stay at home", "come to work", "rest"]
    assert label_runs(labels, 2, inner=4, binned=False)[1] == ["go to school – stay at home", "come to work – rest"]
