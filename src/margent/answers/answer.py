"""What a query returns: counts with error bars, and in words where they come from and what the bars cover."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.schema.domain import Clique

CONFIDENCE = 0.95
"""Share of the noise that an error bar holds: of measured cells, so many have the true count within their bar."""

TOGETHER = 3
"""Codes counted together are named one by one up to so many."""


@dataclass(frozen=True, slots=True)
class AnsweredCell:
    """One cell: the columns' labels, the estimated count and the half-width of its error bar, in records."""

    labels: tuple[str, ...]
    count: float
    error: float

    @property
    def low(self) -> float:
        """The lower end of the bar; a count is at least 0."""
        return max(0.0, self.count - self.error)

    @property
    def high(self) -> float:
        """The upper end of the bar; a count is at least 0."""
        return max(0.0, self.count + self.error)


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """A table over some columns, from noisy answers alone: each cell's count and the half-width of its 95 % error bar.

    ``measured``: the columns (and perhaps others with them) were counted together with noise, and the bar holds the
    whole error of a cell in 95 of 100 cells. Otherwise the table is a model, the one of most entropy with the margins
    that were measured (``sources``); its bars hold only what the noise does, not what the model gets wrong.

    Shapes: ``counts`` and ``errors`` have one axis a column, in the order of ``columns``; ``labels[i]`` names the
    entries of axis i. An entry may stand for several codes that were counted together.
    Units: records. A measured count may be below 0 where noise is larger than the cell; sums are then right.
    ``gap`` of a model: the largest L1 distance from a margin, as a share of the records; 0 where measured.
    Privacy: none: post-processing of a release.
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    counts: NDArray[np.float64]
    errors: NDArray[np.float64]
    measured: bool
    sources: tuple[Clique, ...]
    method: str
    gap: float = 0.0
    person_rows: int | None = None

    def cells(self, most: int | None = None) -> Iterator[AnsweredCell]:
        """The cells by falling count, the ``most`` largest or all of them."""
        flat = self.counts.ravel()
        order = np.argsort(-flat, kind="stable")[:most]
        places = np.unravel_index(order, self.counts.shape)
        for number, place in enumerate(zip(*places, strict=True) if places else [()] * len(order)):
            named = tuple(labels[code] for labels, code in zip(self.labels, place, strict=True))
            at = order[number]
            yield AnsweredCell(named, float(flat[at]), float(self.errors.ravel()[at]))

    @property
    def kind(self) -> str:
        """'measured' or 'modelled'."""
        return "measured" if self.measured else "modelled"

    @property
    def words(self) -> tuple[str, ...]:
        """Where the counts come from, and what the bars cover and do not."""
        named = ", ".join(self.columns)
        units = "records" if self.person_rows is None else f"kept records (at most {self.person_rows} of each person)"
        if self.measured:
            said = [
                f"Measured: {named} {'was counted' if len(self.columns) == 1 else 'were counted together'} in "
                f"{_tables(len(self.sources))} of this release; counts are {units}.",
                "Each bar holds the true count of the private table in 95 of 100 cells; in a long table some cells lie "
                "outside. How the private table differs from the population it came from is in no bar.",
            ]
            if bool((self.counts < -0.5).any()):
                said.append("Counts below 0 are noise around small cells; they make sums of cells right.")
            return tuple(said)
        margins = "; ".join(" x ".join(source) for source in self.sources[:6])
        more = f"; and {len(self.sources) - 6} more" if len(self.sources) > 6 else ""
        said = [
            f"Modelled: {named} were never counted together; this is the table of most entropy with the measured "
            f"margins ({margins}{more}); counts are {units}."
            if self.sources
            else f"Modelled: nothing was measured about {named}; the table is even.",
            "Each bar holds only what the noise does to the model's counts. What the model cannot know, dependence "
            "among these columns beyond the margins, is in no bar and may be larger.",
        ]
        if self.gap > 0.001:
            said.append(
                f"No table has exactly these noisy margins: the model misses the worst by {100 * self.gap:.1f} % of "
                "the records."
            )
        return tuple(said)

    def to_pandas(self) -> Any:
        """The cells as a pandas DataFrame, in the order of the codes: labels, count, error, low, high, kind."""
        import pandas as pd

        places = np.unravel_index(np.arange(self.counts.size), self.counts.shape) if self.columns else ()
        frame = pd.DataFrame(
            {
                name: [labels[code] for code in codes]
                for name, labels, codes in zip(self.columns, self.labels, places, strict=True)
            }
        )
        frame["count"], frame["error"] = self.counts.ravel(), self.errors.ravel()
        frame["low"] = (frame["count"] - frame["error"]).clip(lower=0.0)
        frame["high"] = (frame["count"] + frame["error"]).clip(lower=0.0)
        frame["kind"] = self.kind
        return frame

    def to_json(self, most: int | None = None) -> dict[str, Any]:
        """The answer as JSON, for a program; cells by falling count."""
        shown = list(self.cells(most))
        return {
            "columns": list(self.columns),
            "kind": self.kind,
            "confidence": CONFIDENCE,
            "cells": [
                {"labels": list(cell.labels), "count": cell.count, "error": cell.error, "low": cell.low,
                 "high": cell.high}
                for cell in shown
            ],
            "cellsLeftOut": self.counts.size - len(shown),
            "sources": [list(source) for source in self.sources],
            "gap": self.gap,
            "method": self.method,
            "words": list(self.words),
        }  # fmt: skip


def _tables(count: int) -> str:
    return "one table" if count == 1 else f"{count} tables"


def group_label(members: tuple[str, ...]) -> str:
    """The name of codes that were counted together.

    >>> group_label(("a",)), group_label(("a", "b")), group_label(("a", "b", "c", "d"))
    ('a', 'a or b', 'a, b, c or 1 more')
    """
    if len(members) == 1:
        return members[0]
    shown = members[:TOGETHER]
    if len(members) > TOGETHER:
        return f"{', '.join(shown)} or {len(members) - TOGETHER:,} more"
    return f"{', '.join(shown[:-1])} or {shown[-1]}"
