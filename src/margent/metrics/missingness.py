"""Are cells missing where and together as they are in the real table?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import CodedTable
from margent.metrics.metric import Better, NotComputableError, Score
from margent.metrics.study import Study
from margent.metrics.summaries import distances

MOST_COLUMNS = 60
"""Columns whose joint pattern is one bit each of a 64-bit word; the ones with most missing cells are taken."""
SHOWN = 12


@dataclass(frozen=True)
class Missingness:
    """Total variation between the real and synthetic tables of missingness patterns (which cells of a row are missing).

    Shapes: at most 60 columns, the ones with most missing cells in the real table.
    """

    key: str = "missingness"
    title: str = "Missingness patterns"
    better: Better = "lower"
    paragraph: str = (
        "Which cells of a row are missing together? Each row has a pattern of missing cells; the score is the share "
        "of the rows that would have to change for the patterns to be as frequent as in the real table (0 is a copy, "
        "1 no overlap). Cells that cannot be read count as missing. The resample shows what chance alone makes of "
        "it; the independent table keeps every column's share of missing cells and shows what is lost when columns "
        "go missing on their own."
    )

    def measure(self, study: Study) -> list[Score]:
        """One total variation a table, with the shares of missing cells and the most frequent patterns."""
        able = [one for one in study.columns if one.missing]
        if not able:
            raise NotComputableError("no column may have missing cells")
        places = [study.place[one.name] for one in able]
        missing = [one.missing[0] for one in able]
        every = (study.real, *study.tables)
        shares = np.array([_shares(table, places, missing) for table in every])
        kept = np.sort(np.argsort(-shares[0], kind="stable")[:MOST_COLUMNS])
        words = [_patterns(table, [places[i] for i in kept], [missing[i] for i in kept]) for table in every]
        found, codes = np.unique(np.concatenate(words), return_inverse=True)
        ends = np.cumsum([0, *(word.size for word in words)])
        counts = [
            np.bincount(codes[start:stop], minlength=found.size) for start, stop in itertools.pairwise(ends.tolist())
        ]
        common = np.argsort(-counts[0], kind="stable")[:SHOWN]
        scores = []
        for number, other in enumerate(counts[1:], start=1):
            apart = np.abs(shares[number] - shares[0])
            details = {
                "columns": len(able),
                "patterns": int((counts[0] > 0).sum()),
                "meanShareDifference": float(apart.mean()),
                "shares": [
                    {"column": able[i].name, "real": float(shares[0, i]), "synthetic": float(shares[number, i])}
                    for i in np.argsort(-apart, kind="stable")[:SHOWN]
                ],
                "common": [
                    {
                        "missing": [able[i].name for bit, i in enumerate(kept) if int(found[place]) >> bit & 1],
                        "real": float(counts[0][place] / max(study.real.rows, 1)),
                        "synthetic": float(other[place] / max(every[number].rows, 1)),
                    }
                    for place in common
                ],
            }
            scores.append(Score(distances(counts[0], other)[0] / 2, details))
        return scores


def _shares(table: CodedTable, places: Sequence[int], missing: Sequence[int]) -> list[float]:
    """Share of missing cells of each column; missing codes are the last ones of a column."""
    pairs = zip(places, missing, strict=True)
    return [float((table.codes[place] >= first).mean()) if table.rows else 0.0 for place, first in pairs]


def _patterns(table: CodedTable, places: Sequence[int], missing: Sequence[int]) -> NDArray[np.int64]:
    words = np.zeros(table.rows, dtype=np.int64)
    for bit, (place, first) in enumerate(zip(places, missing, strict=True)):
        words |= (table.codes[place] >= first).astype(np.int64) << bit
    return words
