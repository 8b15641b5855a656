"""What cells of a schema look like, so that a person can compare them with the table before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from margent.schema.codec import Codec
from margent.schema.layout import Layout


def example_cells(codec: Codec, count: int = 3) -> Mapping[str, tuple[str, ...]]:
    """At most ``count`` (two or more) different values of each modeled column, spelled as a text file spells them.

    A table whose cells are spelled otherwise (another date format, yes for true) would be read as missing or
    unlisted throughout, which nobody may look up in the rows: only the person who knows the table can tell.

    Privacy: none: a function of the schema.

    >>> from margent.schema.fields import Boolean, Category, Date, Schema
    >>> fields = [Category("sex", ["F", "M"]), Date("on", "2020-01-01", "2020-12-31", format="%d/%m/%y", bins="year")]
    >>> cells = example_cells(Codec(Schema([*fields, Boolean("smoker")], unit="row")))
    >>> cells["sex"], cells["on"][0][-3:], cells["smoker"]
    (('F', 'M'), '/20', ('false', 'true'))
    """
    if not codec.layouts:
        return {}
    codes = np.stack([_spread(layout, count) for layout in codec.layouts], axis=1)
    # Spellings are of single columns: rules between columns have no say in them.
    table = Codec(replace(codec.schema, rules=())).decode_text(codes, seed=1).to_pydict()
    return {name: tuple(dict.fromkeys(table[name])) for name in codec.domain.names}


def _spread(layout: Layout, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Value codes from the first to the last, evenly spread; the last again and again where they are few."""
    if layout.values <= count:
        return np.minimum(np.arange(count), layout.values - 1)
    return np.arange(count) * (layout.values - 1) // (count - 1)
