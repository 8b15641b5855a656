"""What the charts of an evaluation show: one-way tables, the matrix of pair errors, and the worst pairs opened."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.metrics.coded import Column
from margent.metrics.metric import NotComputableError
from margent.metrics.study import Study
from margent.schema.label_runs import label_runs

MAX_BARS = 40
"""Bars of one chart; columns with more codes are shown as sums over neighboring codes."""
MAX_SIDE = 24
"""Cells along one side of an opened pair; more codes are summed over neighbors."""
WORST_PAIRS = 6


def figures(study: Study) -> dict[str, Any]:
    """Everything the page draws, in shares of the rows, ready for JSON; a figure that fails is left out.

    Privacy: exact figures of real rows: INTERNAL.
    """
    found: dict[str, Any] = {}
    for name, find in (("oneWays", _one_ways), ("pairs", _pairs), ("worstPairs", _worst_pairs)):
        try:
            found[name] = find(study)
        except NotComputableError as sentence:
            found[name] = {"reason": str(sentence)}
        except Exception as fault:
            found[name] = {"reason": f"this figure failed ({type(fault).__name__})"}
    return found


def _one_ways(study: Study) -> list[dict[str, Any]]:
    distances = study.summaries(1).l1 / 2
    entries = []
    for place, ((name,), real, others) in enumerate(study.counted(study.cliques(1))):
        column = study.by_name[name]
        starts, labels = _runs(column, MAX_BARS)
        entries.append(
            {
                "column": name,
                "labels": labels,
                "grouped": len(labels) < column.size,
                "real": _shares(real, starts),
                "tables": [_shares(other, starts) for other in others],
                "distances": [round(float(each), 6) for each in distances[:, place]],
            }
        )
    return entries


def _pairs(study: Study) -> dict[str, Any]:
    found = study.summaries(2)
    return {
        "cliques": [[study.place[name] for name in pair] for pair in found.cliques],
        "possible": found.possible,
        "distances": [[round(float(value), 5) for value in each / 2] for each in found.l1],
    }


def _worst_pairs(study: Study) -> list[dict[str, Any]]:
    """The pairs whose error is most above that of the resample, by the worst synthetic table, with signed cells."""
    found = study.summaries(2)
    synthetic = [place for place, table in enumerate(study.tables) if table.kind == "synthetic"]
    excess = found.l1[synthetic].max(axis=0) - found.l1[0]
    worst = [int(place) for place in np.argsort(-excess, kind="stable")[:WORST_PAIRS]]
    entries = []
    cliques = [found.cliques[place] for place in worst]
    for place, (pair, real, others) in zip(worst, study.counted(cliques), strict=True):
        if real.ndim != 2:
            continue
        sides = [_runs(study.by_name[name], MAX_SIDE) for name in pair]
        tables = [_summed(each, sides[0][0], sides[1][0]) for each in (real, *others)]
        entries.append(
            {
                "columns": list(pair),
                "labels": [labels for _, labels in sides],
                "distances": [round(float(each) / 2, 5) for each in found.l1[:, place]],
                "real": tables[0],
                "tables": [tables[1 + number] for number in synthetic],
            }
        )
    return entries


def _runs(column: Column, most: int) -> tuple[NDArray[np.int64], list[str]]:
    return label_runs(column.labels, most, inner=column.inner, binned=column.binned)


def _shares(counts: NDArray[np.int64], starts: NDArray[np.int64]) -> list[float]:
    summed = np.add.reduceat(counts.astype(np.float64), starts) / max(int(counts.sum()), 1)
    return [round(float(each), 6) for each in summed]


def _summed(counts: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> list[list[float]]:
    summed = np.add.reduceat(np.add.reduceat(counts.astype(np.float64), rows, axis=0), columns, axis=1)
    summed /= max(int(counts.sum()), 1)
    return [[round(float(value), 6) for value in row] for row in summed]
