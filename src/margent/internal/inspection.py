"""How a real table meets its schema, column by column; exact, so INTERNAL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.errors import sealed
from margent.internal.figures import MAX_BARS
from margent.internal.label import LABEL, WHAT_IT_MEANS, save_internal
from margent.internal.reading import given, shared_schema
from margent.progress import Progress, silent
from margent.release.measurements import canonical_json
from margent.report.inspection import inspection_page
from margent.schema.cells import is_text, plain
from margent.schema.codec import Codec
from margent.schema.codec_bins import BinnedValues
from margent.schema.fields import Schema
from margent.schema.label_runs import label_runs
from margent.schema.labels import has_bin_labels
from margent.schema.layout import Layout
from margent.schema.ruler import Ruler
from margent.strict import unlisted_apart
from margent.tables.options import ReadOptions
from margent.tables.source import open_table
from margent.version import VERSION

JSON_FILE = "INTERNAL-inspection.json"
PAGE_FILE = "INTERNAL-inspection.html"
MUCH = 0.05
"""Share of unlisted or clipped cells above which a column deserves a remark."""
NEARLY_ALL = 0.98


class _ColumnTally:
    """Counts of one column over batches: codes (unlisted ones apart), and values outside of the bounds."""

    def __init__(self, layout: Layout, codec: Codec) -> None:
        self.layout = unlisted_apart(layout)
        self.codec = codec
        self.counts = np.zeros(self.layout.size, dtype=np.int64)
        self.below = self.above = 0
        # A date alone is neither inside nor outside of the bounds of a difference.
        bounded = layout.cuts is not None and layout.differences is None
        self._axis = BinnedValues(layout).axis if bounded else None

    def add(self, batch: Any) -> None:
        """Count one batch."""
        column, codes = batch.column(self.layout.field.name), self.codec.codes_of(self.layout, batch)
        self.counts += np.bincount(codes, minlength=self.layout.size)
        if self._axis is not None and self.layout.cuts is not None and len(column):
            regions = self._regions(plain(column))
            own = codes < self.layout.values
            self.below += int(np.count_nonzero(own & (regions == 0)))
            self.above += int(np.count_nonzero(own & (regions == 4)))

    def _regions(self, column: Any) -> NDArray[np.int64]:
        """0 below the bounds, 4 above them; cells without a region get a negative one or any."""
        import pyarrow as pa
        import pyarrow.compute as pc

        assert self._axis is not None
        assert self.layout.cuts is not None
        ruler = Ruler((self.layout.cuts.starts[0], self.layout.cuts.maximum))
        if ruler.marks[0] == ruler.marks[1]:
            ruler = Ruler((ruler.marks[0], ruler.marks[1] + Fraction(1, 10**9)))
        nowhere = np.full(len(column), -1, dtype=np.int64)
        if pa.types.is_null(column.type):
            return nowhere
        if pa.types.is_dictionary(column.type):
            if not len(column.dictionary):
                return nowhere
            # Not spelled out: a long text may stand in many rows.
            distinct = np.append(self._regions(plain(column.dictionary)), -1)
            places = pc.fill_null(column.indices.cast(pa.int64()), distinct.size - 1)
            return np.asarray(distinct[places.to_numpy(zero_copy_only=False)])
        if not is_text(column.type):
            found = self._axis.regions_of_typed(column, ruler)
            return nowhere if found is None else np.asarray(found)
        known = np.asarray(pc.is_valid(column))
        encoded = pc.drop_null(column).dictionary_encode()
        if len(encoded):
            regions = self._axis.regions_of_texts(encoded.dictionary, ruler)
            nowhere[known] = regions[encoded.indices.to_numpy(zero_copy_only=False)]
        return nowhere


@dataclass(frozen=True, eq=False)
class Inspection:
    """How each modeled column of a real table meets the schema.

    Privacy: INTERNAL: exact figures of real rows.
    """

    document: dict[str, Any] = field(repr=False)

    def save(self, out: str | Path) -> Path:
        """Write INTERNAL-inspection.json and INTERNAL-inspection.html into a new folder outside of any release.

        Raises: UsageError when the folder exists or lies inside a release.
        """
        page = inspection_page(self.document).encode()
        return save_internal(Path(out), {JSON_FILE: canonical_json(self.document), PAGE_FILE: page})


def inspect(table: Any, schema: Schema, *, read: ReadOptions | None = None, progress: Progress = silent) -> Inspection:
    """Count, column by column, what the schema cannot read, clips, or calls missing, and which codes occur.

    Privacy: none is spent and none is kept: INTERNAL and not differentially private.
    Raises: SchemaError or TableError where the table cannot be read by the schema.
    """
    one = given(table, read or ReadOptions(), "real")
    cut = shared_schema(schema, [()])
    codec = Codec(cut)
    tallies = [_ColumnTally(layout, codec) for layout in codec.layouts]
    rows = 0
    progress("reading", None)
    with open_table(one.table, cut, one.read) as source:
        for batch in source.batches():
            rows += batch.num_rows
            for tally in tallies:
                sealed("a column could not be coded", partial(tally.add, batch))
    columns = [_column(tally, codec.labels[tally.layout.field.name], rows) for tally in tallies]
    return Inspection(
        {
            "label": LABEL,
            "meaning": WHAT_IT_MEANS,
            "margent": VERSION,
            "title": schema.name or "The real table",
            "rows": rows,
            "columns": columns,
            "notModeled": [each.name for each in schema.fields if each.role != "model"],
        }
    )


def _column(tally: _ColumnTally, labels: Sequence[str], rows: int) -> dict[str, Any]:
    layout, counts = tally.layout, tally.counts
    first = layout.values + len(layout.special)
    unlisted = layout.size - 1
    own = counts[: layout.values]
    names = [*labels[:unlisted], "(unlisted)"]
    starts, groups = label_runs(names, MAX_BARS, inner=layout.values, binned=has_bin_labels(layout))
    facts: dict[str, Any] = {
        "column": layout.field.name,
        "codes": layout.values,
        "used": int(np.count_nonzero(own)),
        "below5": int(np.count_nonzero((own > 0) & (own < 5))),
        "missing": int(counts[first:unlisted].sum()),
        "special": int(counts[layout.values : first].sum()),
        "unlisted": int(counts[unlisted]),
        "clippedBelow": tally.below,
        "clippedAbove": tally.above,
        "required": layout.field.required,
        "labels": groups,
        "shares": [round(float(each), 6) for each in np.add.reduceat(counts, starts) / max(rows, 1)],
        "largest": round(float(counts.max() / max(rows, 1)), 6),
    }
    return facts | {"remarks": _remarks(facts, rows)}


def _remarks(facts: dict[str, Any], rows: int) -> list[str]:
    """What a person should look at, in plain sentences that say the share."""
    if rows == 0:
        return []
    remarks = []

    def remark(count: int, text: str, least: float = MUCH) -> None:
        if count / rows > least:
            remarks.append(f"{100 * count / rows:.1f} % {text}")

    remark(
        facts["unlisted"],
        "of the cells are not in the schema's list or cannot be read: check spelling, type, format and missing tokens",
        0.0,
    )
    remark(facts["clippedBelow"], "of the cells lie below the minimum and are counted in the first bin", 0.0)
    remark(facts["clippedAbove"], "of the cells lie above the maximum and are counted in the last bin", 0.0)
    if facts["missing"] == rows:
        remarks.append("every cell is missing")
    elif facts["used"] <= 1 and facts["special"] == 0 and facts["unlisted"] == 0 and facts["missing"] == 0:
        remarks.append("every cell has the same code")
    elif facts["largest"] > NEARLY_ALL:
        remarks.append(f"{100 * facts['largest']:.1f} % of the cells have the same code")
    if facts["used"] < facts["codes"] / 2:
        remarks.append(f"{facts['used']:,} of {facts['codes']:,} codes occur: those that do not get noise all the same")
    return remarks
