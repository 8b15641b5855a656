"""The release page: one self-contained HTML file that shows only what may be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.privacy.budget import Budget
from margent.release.counts import SyntheticCounts
from margent.release.pairs import SHOWN, pair_distances
from margent.release.promise import IF_NOT_GOOD_ENOUGH, purposes, schema_warnings
from margent.release.summary import noisy_records, one_way_answers, records_variance, shares
from margent.report.pages import page, percent
from margent.schema.codec import Codec
from margent.schema.label_runs import label_runs
from margent.schema.labels import has_bin_labels
from margent.schema.layout import Layout
from margent.transcript import NoisyMarginal, Transcript

MAX_BARS = 40
"""Bars in one chart; columns with more codes are drawn as sums over neighboring codes."""


def release_page(transcript: Transcript, budget: Budget, summary: Mapping[str, Any], counts: SyntheticCounts) -> str:
    """The page as HTML: promise, spend, and noisy against synthetic one-way and two-way tables with error bars.

    Self-contained: inline SVG, no script, no request; everything is escaped.
    Privacy: a function of schema, options, charges and noisy answers.
    """
    codec = Codec(transcript.schema)
    layouts = {layout.field.name: layout for layout in codec.layouts}
    distances = {entry["column"]: entry for entry in summary["oneWays"]["columns"]}
    records = (noisy_records(transcript), records_variance(transcript))
    charts = [
        _chart(layouts[name], answer, counts.columns[name], codec.labels[name], distances[name], records)
        for name, answer in one_way_answers(transcript).items()
        if name in distances
    ]
    pairs = [] if summary["where"] else pair_distances(transcript, counts)
    return page(
        "release.html",
        title=transcript.schema.name or "Synthetic table",
        summary=summary,
        charts=charts,
        pairs=[_pair_bar(pair, pairs) for pair in pairs[:SHOWN]],
        pairs_bought=len(pairs),
        pairs_drowned=any(pair["noise"] > 1 for pair in pairs[:SHOWN]),
        purposes=[(each, float(each.cost / budget.total)) for each in purposes(transcript)],
        warnings=schema_warnings(summary),
        next_steps=IF_NOT_GOOD_ENOUGH,
    )


def _chart(
    layout: Layout,
    answer: NoisyMarginal,
    counts: NDArray[np.int64],
    labels: tuple[str, ...],
    distance: Mapping[str, Any],
    records: tuple[float, float],
) -> dict[str, Any]:
    """Bars (synthetic share), marks (noisy share) and error bars (two noise deviations) of one column.

    Shares x / N are of the noisy number of ``records``, given with its variance: the sum of a column's noisy cells
    without the negative ones would be too large, in columns of many codes several times. To first order the deviation
    of x / N is that of x - r N over N, r the share; x counts towards N, which only makes it smaller, and is left out.
    """
    starts, names = label_runs(labels, MAX_BARS, inner=layout.values, binned=has_bin_labels(layout))
    noisy = np.add.reduceat(answer.counts.astype(np.float64), starts)
    synthetic = np.add.reduceat(counts.astype(np.float64), starts)
    members = np.diff(np.append(starts, answer.counts.size))
    number, variance = records
    noisy_share, synthetic_share = np.clip(noisy / number, 0, 1), shares(synthetic)
    deviation = np.sqrt(members * float(answer.variance) + noisy_share**2 * variance) / number
    reach = np.minimum(2 * deviation, 1)  # no share is above one, however wide the noise
    low, high = np.clip(noisy / number - reach, 0, 1), np.clip(noisy / number + reach, 0, 1)
    top = max(float(np.max(np.maximum(high, synthetic_share))), 1e-9)
    bars = []
    for place, label in enumerate(names):
        bars.append(
            {
                "label": label,
                "synthetic": percent(synthetic_share[place]),
                "noisy": percent(noisy_share[place]),
                "plusminus": percent(reach[place]),
                "length": 100 * synthetic_share[place] / top,
                "mark": 100 * noisy_share[place] / top,
                "low": 100 * low[place] / top,
                "high": 100 * high[place] / top,
            }
        )
    grouped = len(names) < len(labels)
    return {"name": layout.field.name, "bars": bars, "grouped": grouped, "distance": distance}


def _pair_bar(pair: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A bar (distance), a mark (what the noise alone gives) and its range (two deviations) of one pair."""
    top = max(max(each["distance"], each["noise"] + each["plusminus"]) for each in pairs)
    low = max(pair["noise"] - pair["plusminus"], 0.0)
    return dict(pair) | {
        "length": 100 * pair["distance"] / top,
        "mark": 100 * pair["noise"] / top,
        "low": 100 * low / top,
        "high": 100 * (pair["noise"] + pair["plusminus"]) / top,
    }
