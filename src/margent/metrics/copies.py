"""How many synthetic rows are copies of a real row, and how many would be by the single columns alone?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import CodedTable, Column
from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study


@dataclass(frozen=True)
class CopiedRows:
    """Share of the rows whose codes are those of some real row, and of one that occurs once in the real table."""

    key: str = "copies"
    title: str = "Rows that equal a real row"
    better: Better = "nearer"
    paragraph: str = (
        "The share of synthetic rows that equal some real row in every column (compared as codes: bins, categories, "
        "missing). It is no measure of privacy: the promise is. Where rows have few possible values, equal rows are "
        "inevitable, and the independent table, which knows no row, shows how many there would be by the single "
        "columns alone. The resample is made of real rows, so its share is 1. The details count the synthetic rows "
        "that equal a real row which occurs only once."
    )

    def measure(self, study: Study) -> list[Score]:
        """One share a table."""
        if not study.columns:
            raise NotComputableError("the tables share no column")
        real, times = np.unique(row_words(study.real, study.columns), return_counts=True)
        scores = []
        for table in study.tables:
            words = row_words(table, study.columns)
            if not words.size:
                scores.append(Score(None, {"reason": "the table has no rows"}))
                continue
            details = {
                "ofUniqueRealRows": float(np.isin(words, real[times == 1]).mean()),
                "distinct": float(np.unique(words).size / words.size),
            }
            scores.append(Score(float(np.isin(words, real).mean()), details))
        return scores


def row_words(table: CodedTable, columns: Sequence[Column]) -> NDArray[np.uint64]:
    """One 64-bit word a row: equal rows have equal words, and others differ but for a chance of 2^-64 a pair.

    Where all combinations of codes fit in 64 bits the word is the combination itself.
    """
    words = np.zeros(table.rows, dtype=np.uint64)
    reach = 1
    for one in columns:
        reach *= one.size
    for place, one in enumerate(columns):
        words = (
            words * np.uint64(one.size) + table.codes[place].astype(np.uint64)
            if reach < 2**64
            else _mixed(words ^ (table.codes[place].astype(np.uint64) + np.uint64(1)))
        )
    return words


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words that spreads every bit (the finalizer of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = words ^ (words >> np.uint64(31))
    return mixed
