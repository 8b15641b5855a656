"""The ``margent`` block of a field: bins, special codes and policies, from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from margent.schema.hierarchy import read_hierarchy
from margent.schema.parts import (
    DEFAULT_SPELLING,
    MAX_CODES,
    PERIODS,
    QUANTILE_CELLS,
    Bins,
    CalendarBins,
    CodeFile,
    Decode,
    EdgeBins,
    EqualBins,
    Hierarchy,
    MissingToken,
    OpenSet,
    QuantileBins,
    RelativeTo,
    Scalar,
    SpecialCode,
    Tail,
    WidthBins,
)
from margent.schema.positions import declared_scalar
from margent.schema.strict_json import Members, kind_of

Kept = TypeVar("Kept")
ReadScalar = Callable[[Members, str | int, Any], Scalar | None]


def choice_of(members: Members, key: str, choices: tuple[Kept, ...], default: Kept) -> Kept:
    """One of a few words, ``default`` where absent or (with a fault) another."""
    if key not in members:
        return default
    for choice in choices:
        if members.get(key) == choice:
            return choice
    members.fault(key, f"must be one of {', '.join(repr(choice) for choice in choices)}")
    return default


def read_bins(block: Members, read_scalar: ReadScalar) -> Bins | None:
    """``bins``: a count, a list of edges, a width, a calendar period or a number of quantiles."""
    key = "bins"
    if key not in block:
        return None
    given = block.get(key)
    if isinstance(given, str):
        return CalendarBins(choice_of(block, key, PERIODS, "year"))
    if isinstance(given, int) and not isinstance(given, bool):
        count = block.whole(key, 1, MAX_CODES)
        return None if count is None else EqualBins(count)
    if isinstance(given, list | tuple):
        inner = block.inner(key, {})
        edges = [read_scalar(inner, place, edge) for place, edge in enumerate(given)]
        block.adopt(inner)
        return EdgeBins(tuple(edge for edge in edges if edge is not None))
    if isinstance(given, Mapping) and set(given) in ({"width"}, {"quantiles"}, {"quantiles", "grid"}):
        inner = block.inner(key, given)
        found = _quantiles(inner) if "quantiles" in given else _width(inner)
        block.adopt(inner)
        return found
    periods = ", ".join(f'"{period}"' for period in PERIODS)
    block.fault(key, f'expected a count, a list of edges, {{"width": w}}, {{"quantiles": k}} or one of {periods}')
    return None


def _quantiles(inner: Members) -> Bins | None:
    count = inner.whole("quantiles", 1, MAX_CODES)
    cells = inner.whole("grid", 2, MAX_CODES) if "grid" in inner else QUANTILE_CELLS
    return None if count is None or cells is None else QuantileBins(count, cells)


def _width(inner: Members) -> Bins | None:
    width = _number(inner, "width")
    return None if width is None else WidthBins(width)


def _number(inner: Members, key: str) -> Decimal | None:
    try:
        number = declared_scalar("number", inner.get(key), DEFAULT_SPELLING)
    except ValueError as error:
        inner.fault(key, str(error))
        return None
    assert isinstance(number, Decimal)
    return number


def read_decode(block: Members) -> Decode | None:
    """``decode``: how a value is drawn inside its bin."""
    key = "decode"
    if key not in block:
        return None
    given = block.get(key)
    if given == "uniform":
        return None
    if given in ("midpoint", "integer"):
        return "midpoint" if given == "midpoint" else "integer"
    if given == "tail":
        return Tail()
    if isinstance(given, Mapping) and set(given) == {"tail"}:
        inner = block.inner(key, given)
        half = _number(inner, "tail")
        block.adopt(inner)
        return None if half is None else Tail(half)
    block.fault(key, 'expected "uniform", "midpoint", "integer", "tail" or {"tail": h}')
    return None


def read_spikes(block: Members, read_scalar: ReadScalar) -> tuple[Scalar, ...]:
    """``spikes``: single values, each of which has a code of its own."""
    given = block.items("spikes")
    if given is None:
        return ()
    inner = block.inner("spikes", {})
    values = [read_scalar(inner, place, value) for place, value in enumerate(given)]
    block.adopt(inner)
    return tuple(value for value in values if value is not None)


def read_special(block: Members) -> tuple[SpecialCode, ...]:
    """``special``: texts, objects ``{value, label}``, or one object text -> label."""
    key = "special"
    if key not in block:
        return ()
    given = block.get(key)
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list | tuple):
        inner, pairs = block.inner(key, {}), []
        for place, item in enumerate(given):
            if isinstance(item, Mapping):
                inner.inner(place, item).refuse_unknown(("value", "label"), {})
                pairs.append((item.get("value"), item.get("label")))
            else:
                pairs.append((item, None))
    else:
        block.fault(key, f"expected a list of texts, or an object text -> label, found {kind_of(given)}")
        return ()
    codes = []
    for place, (text, label) in enumerate(pairs):
        if isinstance(text, str) and (label is None or isinstance(label, str)):
            codes.append(SpecialCode(text, label or None))
        else:
            block.fault(key, f"entry {place}: code and label must be texts; write them in quotes")
    return tuple(codes)


def read_unlisted(block: Members) -> str | None:
    """``unlisted``: ``{"to": text}``."""
    if "unlisted" not in block:
        return None
    given = block.get("unlisted")
    if isinstance(given, Mapping) and set(given) == {"to"} and isinstance(given["to"], str):
        return str(given["to"])
    block.fault("unlisted", 'expected {"to": "a category or special code, as text"}')
    return None


def read_block_hierarchy(block: Members, subject: str) -> Hierarchy | None:
    """``hierarchy``: levels and parents (`margent.schema.hierarchy`)."""
    if "hierarchy" not in block:
        return None
    found = read_hierarchy(block.get("hierarchy"), block.inner("hierarchy", {}).pointer, block.faults, subject)
    block.sound = block.sound and found is not None
    return found


def read_open_set(block: Members) -> OpenSet | None:
    """``openSet``: true, or ``{"maxCategories": k}``."""
    if "openSet" not in block:
        return None
    if block.get("openSet") is True:
        return OpenSet()
    inner = block.inner("openSet", block.get("openSet"))
    inner.refuse_unknown(("maxCategories",), {})
    most = inner.whole("maxCategories", 1, MAX_CODES)
    block.adopt(inner)
    return OpenSet(most)


def read_relative_to(block: Members) -> RelativeTo | None:
    """``relativeTo``: ``{"field", "unit", "minimum", "maximum"}``."""
    if "relativeTo" not in block:
        return None
    inner = block.inner("relativeTo", block.get("relativeTo"))
    inner.refuse_unknown(("field", "unit", "minimum", "maximum"), {})
    other, low, high = inner.text("field"), inner.whole("minimum"), inner.whole("maximum")
    unit = choice_of(inner, "unit", PERIODS, "day")
    if inner.sound and (other is None or low is None or high is None):
        inner.fault(None, "needs field, unit, minimum and maximum")
    block.adopt(inner)
    return None if other is None or low is None or high is None else RelativeTo(other, unit, low, high)


def read_code_file_record(block: Members) -> CodeFile | None:
    """``categoriesFile``: the record of the file that written-out categories came from."""
    if "categoriesFile" not in block:
        return None
    entry = block.inner("categoriesFile", block.get("categoriesFile"))
    entry.refuse_unknown(("file", "sha256"), {})
    file, digest = entry.text("file"), entry.text("sha256")
    if entry.sound and (file is None or digest is None):
        entry.fault(None, "needs file and sha256: the record of where the categories came from")
    block.adopt(entry)
    return None if file is None or digest is None else CodeFile(file, digest)


def read_missing(members: Members, key: str) -> tuple[MissingToken, ...] | None:
    """Missing tokens: texts share one cell, objects ``{value, label}`` have one each; None where absent."""
    given = members.items(key)
    if given is None:
        return None
    tokens = []
    for place, item in enumerate(given):
        if isinstance(item, str):
            tokens.append(MissingToken(item))
        elif isinstance(item, Mapping) and isinstance(item.get("value"), str) and set(item) <= {"value", "label"}:
            label = item.get("label")
            if label is not None and not isinstance(label, str):
                members.fault(key, f"entry {place}: the label must be a text")
            tokens.append(MissingToken(item["value"], label if isinstance(label, str) else None, alone=True))
        else:
            members.fault(key, f'entry {place}: expected a text, or an object {{"value": "...", "label": "..."}}')
    return tuple(tokens)


def read_texts(members: Members, key: str) -> tuple[str, ...] | None:
    """A list of texts, or None where absent."""
    given = members.items(key)
    if given is None:
        return None
    for place, item in enumerate(given):
        if not isinstance(item, str):
            members.fault(key, f"entry {place}: expected a text, found {kind_of(item)}; write it in quotes")
    return tuple(item for item in given if isinstance(item, str))
