"""Conditions on columns, such as ``sex=F`` or ``age=30..39``: read against the schema, and records drawn under them.

A condition is on codes, because that is what a model holds: a range must end where bins end. Everything here is free:
it needs noisy answers only.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margent.errors import UsageError
from margent.progress import Progress
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.labels import UNLISTED_LABEL, code_labels
from margent.schema.layout import Layout, spike_positions
from margent.schema.positions import cell_position
from margent.stream import Stream
from margent.synthesizers.blocks import DrawnRecords, workers_for
from margent.synthesizers.model import Model
from margent.workers import in_order

MOST_DRAWN = 50_000_000
"""Records drawn in all before a condition is given up as too rare."""
SHOWN = 6
RANGE = ".."


@dataclass(frozen=True, eq=False)
class Conditions:
    """Which codes of which columns a record may have, and the words in which that was asked.

    Each of ``words``, given to `read_conditions`, is read as the one condition that it is: quoted where it must be.

    Shapes: ``allowed[name]`` has one entry a code of the column.
    Privacy: none: public options.
    """

    words: tuple[str, ...]
    allowed: Mapping[str, NDArray[np.bool_]]

    def met(self, codes: NDArray[np.int32], domain: Domain) -> NDArray[np.bool_]:
        """Which records meet all of them: shape (rows,). Privacy: none: post-processing."""
        met = np.ones(codes.shape[0], dtype=np.bool_)
        for name, allowed in self.allowed.items():
            met &= allowed[codes[:, domain.position[name]]]
        return met


def read_conditions(given: Sequence[str], codec: Codec) -> Conditions | None:
    """The conditions ``NAME=VALUE``, several in one text where commas part them (quoted as in CSV), None where none.

    VALUE is a value as it is written, a label, ``(missing)``, or ``LOW..HIGH`` in columns with an order. Conditions on
    one column add up to "either"; on different columns all must hold.

    Privacy: none: schema and options only.
    Raises: UsageError naming every column, value and range that the schema does not know, with those there are.

    >>> from margent import Category, Integer, Schema
    >>> codec = Codec(Schema([Category("sex", ["F", "M"]), Integer("age", 0, 59, bins=6)], unit="row"))
    >>> made = read_conditions(["sex=F,age=20..39"], codec)
    >>> made.words, made.allowed["age"].nonzero()[0].tolist()
    (('sex=F', 'age=20..39'), [2, 3])
    """
    words = [part for text in given for part in _parts(text)]
    layouts = {layout.field.name: layout for layout in codec.layouts}
    allowed: dict[str, NDArray[np.bool_]] = {}
    faults = []
    for word in words:
        name, equals, value = _split(word, layouts)
        if not equals:
            faults.append(f"{word!r} is not NAME=VALUE")
        elif name not in layouts:
            faults.append(f"{name!r} is not a modeled column; there are {_listed(tuple(layouts))}")
        else:
            codes = _codes(layouts[name], value, codec.sampleable[name])
            if isinstance(codes, str):
                faults.append(codes)
            else:
                allowed[name] = allowed.get(name, np.zeros(layouts[name].size, dtype=np.bool_)) | codes
    if faults:
        raise UsageError("conditions that cannot be met: " + "; ".join(faults))
    return Conditions(tuple(map(_quoted, words)), allowed) if words else None


def drawn_under(
    conditions: Conditions, model: Model, rows: int | None, seed: int, progress: Progress
) -> NDArray[np.int32]:
    """``rows`` records of the model that meet the conditions; by default as many as one table of its total holds.

    Whole tables are drawn, block by block and with seeds of their own, and the records that meet the conditions kept,
    so the records follow the model's law given the conditions exactly. They are held in memory.

    Shapes: (rows, d). Privacy: none: post-processing.
    Raises: UsageError where the model holds no such record, or so few that too many would have to be drawn.
    """
    size = min(max(model.total, 20_000), MOST_DRAWN // 10)
    kept, found, drawn, number = list[NDArray[np.int32]](), 0, 0, 0
    while True:
        part = seed if number == 0 else Stream(seed, "condition", str(number)).seed64() >> 1
        table = DrawnRecords(model, min(model.total, MOST_DRAWN) if rows is None else size, part)

        def meeting(index: int, step: Progress, table: DrawnRecords = table) -> NDArray[np.int32]:
            codes = table.block(index, step)
            return codes[conditions.met(codes, model.domain)]

        blocks = table.blocks.count
        workers = workers_for(table.blocks, len(model.domain.names))
        made = [meeting(0, progress)] if blocks == 1 else in_order(meeting, blocks, workers)
        kept.append(np.concatenate(list(made)))
        found, drawn, number = found + kept[-1].shape[0], drawn + table.rows, number + 1
        if rows is None and found:
            return kept[0]
        if rows is not None and found >= rows:
            # Any rows of a table are a random subset of it: records come in random order.
            return np.concatenate(kept)[:rows]
        needed = drawn * rows // found if rows is not None and found else 0
        if max(drawn + size, needed) > MOST_DRAWN or (not found and number >= 5) or (rows is None and not found):
            raise UsageError(_too_rare(conditions, rows, found, drawn))


def _too_rare(conditions: Conditions, rows: int | None, found: int, drawn: int) -> str:
    asked = " and ".join(conditions.words)
    if not found:
        return (
            f"the model holds no record with {asked}: none among {drawn:,} drawn; the noisy answers do not tell of "
            "any, or of too few to stand out of the noise. Ask for a wider condition"
        )
    return (
        f"only about {found / drawn:.2g} of the model's records have {asked}: {rows:,} of them would take more than "
        f"{MOST_DRAWN:,} draws; ask for at most {MOST_DRAWN * found // drawn:,} rows, or for a wider condition"
    )


def _parts(text: str) -> list[str]:
    try:
        lines = list(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        raise UsageError(
            f"a condition cannot be read: {text[:60]!r}; put a name or value that holds line breaks in double quotes, "
            "and write at most 131,072 characters"
        ) from None
    return [part.strip() for line in lines for part in line if part.strip()]


def _quoted(word: str) -> str:
    """A condition as `_parts` reads it back: in double quotes where it holds what would part or quote it."""
    plain = not any(mark in word for mark in ',"\r\n')
    return word if plain else '"' + word.replace('"', '""') + '"'


def _split(word: str, known: Mapping[str, object]) -> tuple[str, str, str]:
    """Column and value; names may hold an equals sign, and the longest known one counts."""
    places = [place for place, letter in enumerate(word) if letter == "="]
    for place in reversed(places):
        if word[:place].strip() in known:
            return word[:place].strip(), "=", word[place + 1 :].strip()
    return word.partition("=")


def _codes(layout: Layout, value: str, sampleable: NDArray[np.bool_]) -> NDArray[np.bool_] | str:
    """The codes that a value or range stands for, or what is wrong with it."""
    labels, name = code_labels(layout), layout.field.name
    found = np.array([label == value and label != UNLISTED_LABEL for label in labels])
    code = layout.code_of(value)
    if code is None and layout.differences is not None:
        code = layout.differences.code_of(value)  # so many units from its base
    if code is not None and not found.any():
        if layout.cuts is not None and code < layout.values and layout.cuts.count[code] != 1:
            inside = labels[code]
            return f"{name!r} is held in bins, and {value!r} lies inside {inside!r}: ask for that, or for several bins"
        found[code] = True
    elif not found.any() and RANGE in value and layout.cuts is not None:
        ranged = _range(layout, *value.split(RANGE, 1))
        if isinstance(ranged, str):
            return f"{name!r}: {ranged}; its bins are {_listed(labels[: layout.values])}"
        found = ranged
    if not found.any():
        written = [label for label in labels if label != UNLISTED_LABEL]
        return f"{value!r} is not a value of {name!r}; there are {_listed(written)}"
    if not (found & sampleable).any():
        return f"{value!r} of {name!r} is never written, so no record has it"
    return found


def _range(layout: Layout, low: str, high: str) -> NDArray[np.bool_] | str:
    field, cuts = (layout.differences or layout).field, layout.cuts
    assert cuts is not None
    ends = [*cuts.starts[1:], cuts.maximum]
    lowest = cuts.starts[0] if not low.strip() else cell_position(field.type, low, field.spelling, field.time_zone)
    highest = cuts.maximum if not high.strip() else cell_position(field.type, high, field.spelling, field.time_zone)
    if lowest is None or highest is None or lowest > highest:
        return f"{low + RANGE + high!r} is not a range of it"
    # The last value of a bin, or the edge itself; the maximum ends the last bin.
    closing = [
        {end} if field.type == "number" or place == len(ends) - 1 else {end - 1} for place, end in enumerate(ends)
    ]
    first = [place for place, start in enumerate(cuts.starts) if start == lowest]
    last = [place for place, end in enumerate(closing) if highest in end]
    if not first or not last:
        return f"{low + RANGE + high!r} does not begin and end where bins do"
    found = np.zeros(layout.size, dtype=np.bool_)
    found[first[0] : last[-1] + 1] = True
    stop, final = ends[last[-1]], last[-1] == len(ends) - 1
    for code, position in enumerate(spike_positions(field), start=layout.values + len(field.special)):
        found[code] = lowest <= position < stop or (final and position == stop)
    return found


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
