"""Random fields as JSON, and random cells for them: plausible, odd and hostile ones."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

HOSTILE_TEXTS = (
    "",
    " ",
    "\n",
    "a,b",
    'x"y',
    "<b>pay</b>",
    "=1+1",
    "naïve é",
    "\x00",
    "\x1f",
    "/~0",
    "'; DROP TABLE t; --",
    "NaN",
    "null",
    "todo",
    "١٢",  # Arabic-Indic digits: digits to Python's int(), not to us
    "12e400",
    "-",
    "1_000",
    "0x10",
    "é" * 600,
    "9" * 1500,
)

names = st.one_of(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), st.sampled_from(HOSTILE_TEXTS))
texts = st.one_of(st.text(st.characters(codec="utf-8"), max_size=6), st.sampled_from(HOSTILE_TEXTS))
tokens = st.one_of(st.sampled_from(["", "?", "NA", "-9", "-99", "999", "unknown", " ", "2000-01-01"]), texts)


def _missing() -> st.SearchStrategy[Any]:
    alone = st.fixed_dictionaries({"value": tokens}, optional={"label": st.text(max_size=3)})
    return st.lists(st.one_of(tokens, alone), max_size=3)


@st.composite
def string_fields(draw: st.DrawFn) -> dict[str, Any]:
    values = draw(st.lists(texts, min_size=1, max_size=5, unique=True))
    return {"type": "string", "categories": values, "categoriesOrdered": draw(st.booleans())}


@st.composite
def boolean_fields(draw: st.DrawFn) -> dict[str, Any]:
    pair = draw(st.sampled_from([(["T"], ["F"]), (["yes", "y"], ["no"]), (["1"], ["0"]), None]))
    field: dict[str, Any] = {"type": "boolean"}
    return field if pair is None else field | {"trueValues": pair[0], "falseValues": pair[1]}


def _bins(draw: st.DrawFn, low: int, high: int, scale: int = 1) -> Any:
    kinds = ["count", "width", "edges"]
    kind = draw(st.sampled_from(kinds))
    if kind == "count":
        return draw(st.integers(1, 12))
    if kind == "width":
        return {"width": draw(st.integers(1, 40)) / scale if scale > 1 else draw(st.integers(1, 40))}
    inner = draw(st.lists(st.integers(low + 1, max(low + 1, high - 1)), max_size=4, unique=True))
    edges = sorted({low, *(edge for edge in inner if edge < high), high})
    return [edge / scale for edge in edges] if scale > 1 else edges


@st.composite
def integer_fields(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        values = st.one_of(st.integers(-5, 5), st.sampled_from([2**53 + 1, 2**53 + 3, -(2**63), 2**63 - 1]))
        return {"type": "integer", "categories": draw(st.lists(values, min_size=1, max_size=5, unique=True))}
    low = draw(st.sampled_from([-(2**63), -1000, -40, 0, 1, 17, 1_700_000_000_000_000_000]))
    high = low + draw(st.sampled_from([0, 1, 9, 100, 255, 256, 10_000]))
    block: dict[str, Any] = {}
    if high - low >= 256 or draw(st.booleans()):
        block["bins"] = _bins(draw, low, high)
    special = draw(st.lists(st.sampled_from(["-9", "<5", "trace", "999999", "0", "501"]), max_size=2, unique=True))
    if special:
        block["special"] = special
    field = {"type": "integer", "constraints": {"minimum": low, "maximum": high}, "margent": block}
    return field | draw(st.sampled_from([{}, {"groupChar": ","}, {"bareNumber": False}]))


@st.composite
def number_fields(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.integers(0, 3)) == 0:
        return {"type": "number", "constraints": {"enum": draw(st.sampled_from([[0.1, 0.2, 0.3], [5], [-1.5, 2]]))}}
    scale = draw(st.sampled_from([1, 10, 100]))
    low = draw(st.integers(-500, 500))
    high = low + draw(st.sampled_from([1, 7, 100, 1000]))
    block: dict[str, Any] = {"bins": _bins(draw, low, high, scale)}
    decimals = draw(st.sampled_from([None, 1, 2, 4]))
    if decimals is not None:
        block["decimals"] = decimals
    special = draw(st.lists(st.sampled_from(["-9", "<5", "0.3", "1"]), max_size=2, unique=True))
    if special:
        block["special"] = special
    field = {"type": "number", "constraints": {"minimum": low / scale, "maximum": high / scale}, "margent": block}
    return field | draw(st.sampled_from([{}, {"decimalChar": ","}, {"decimalChar": ",", "groupChar": "."}]))


@st.composite
def date_fields(draw: st.DrawFn) -> dict[str, Any]:
    first = draw(st.dates(date(1900, 1, 1), date(2100, 1, 1)))
    last = first + timedelta(days=draw(st.sampled_from([0, 3, 40, 800])))
    constraints = {"minimum": first.isoformat(), "maximum": last.isoformat()}
    bins = draw(st.sampled_from(["week", "month", "quarter", "year", 1, {"width": 7}]))
    field = {"type": "date", "constraints": constraints, "margent": {"bins": bins}}
    return field | draw(st.sampled_from([{}, {"format": "%d%m%Y"}, {"format": "%m/%d/%Y"}, {"format": "%d %b %Y"}]))


@st.composite
def datetime_fields(draw: st.DrawFn) -> dict[str, Any]:
    first = draw(st.datetimes(datetime(1950, 1, 1), datetime(2040, 1, 1))).replace(microsecond=0)
    last = first + timedelta(seconds=draw(st.sampled_from([0, 59, 90_000, 86_400 * 100])))
    zones = ["UTC", "Europe/Berlin", "America/Chicago", "Australia/Lord_Howe", "naive", None]
    zone = draw(st.sampled_from(zones))
    bins = draw(st.sampled_from(["hour", "day", "week", "month", "year", 1, {"width": 86_400}]))
    block: dict[str, Any] = {"bins": bins} | ({"timeZone": zone} if zone else {})
    constraints = {"minimum": first.isoformat(), "maximum": last.isoformat()}
    field = {"type": "datetime", "constraints": constraints, "margent": block}
    if zone in ("naive", None):
        return field | draw(st.sampled_from([{}, {"format": "%d.%m.%Y %H:%M:%S"}, {"format": "%Y%m%d %I.%M.%S %p"}]))
    return field | draw(st.sampled_from([{}, {"format": "%Y-%m-%d %H:%M:%S %z"}]))


@st.composite
def other_fields(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.sampled_from(
            [
                {
                    "type": "time",
                    "constraints": {"minimum": "00:00:00", "maximum": "23:59:59"},
                    "margent": {"bins": "hour"},
                },
                {
                    "type": "time",
                    "format": "%H:%M",
                    "constraints": {"minimum": "08:00:00", "maximum": "17:30:00"},
                    "margent": {"bins": 5},
                },
                {"type": "year", "constraints": {"minimum": 1990, "maximum": 2020}},
                {"type": "yearmonth", "constraints": {"minimum": "1999-11", "maximum": "2004-02"}},
                {
                    "type": "yearmonth",
                    "constraints": {"minimum": "1999-11", "maximum": "2004-02"},
                    "margent": {"bins": "quarter"},
                },
            ]
        )
    )


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:
    """One modeled field as JSON; now and then its parts contradict one another and it is refused."""
    kinds = [
        string_fields(),
        boolean_fields(),
        integer_fields(),
        number_fields(),
        date_fields(),
        datetime_fields(),
        other_fields(),
    ]
    field = {"name": draw(names)} | draw(st.one_of(kinds))
    if draw(st.booleans()):
        field["constraints"] = field.get("constraints", {}) | {"required": True}
    if draw(st.booleans()):
        field["missingValues"] = draw(_missing())
    return field


def plausible(field: dict[str, Any]) -> list[str]:
    """Texts that mean something to the field: its values, bounds, edges, special codes and tokens, and neighbors."""
    constraints, block = field.get("constraints", {}), field.get("margent", {})
    found = [*field.get("categories", []), *constraints.get("enum", [])]
    found += [constraints[key] for key in ("minimum", "maximum") if key in constraints]
    bins = block.get("bins")
    found += bins if isinstance(bins, list) else []
    numbers = [value for value in found if isinstance(value, int | float)]
    found += [value + shift for value in numbers for shift in (-1, 1, 0.5, 1e-9)]
    found += [*block.get("special", []), *field.get("trueValues", []), *field.get("falseValues", [])]
    found += [token if isinstance(token, str) else token["value"] for token in field.get("missingValues", [])]
    found += [f"{text}.0" for text in found if isinstance(text, str) and text.lstrip("-").isdigit()]
    spelled = [str(value) for value in found] + [f" {value} " for value in found] + ["true", "FALSE", "1.0", "2,5"]
    spelled += ["2001-05-11", "2023-03-26T02:30:00", "2023-03-26T02:30:00Z", "2023-10-29 02:30:00+02:00", "05112001"]
    return [*spelled, "12/31/1999", "3 Mar 2020", "01.02.2003 04:05:06", "23:59:59", "12:30", "2000-02", "1995"]


def cells(field: dict[str, Any]) -> st.SearchStrategy[bytes | None]:
    """Raw cells of a text file: plausible, numeric, odd, undecodable or absent."""
    known = st.sampled_from([text.encode() for text in plausible(field)])
    numeric = st.one_of(st.integers().map(str), st.floats().map(repr), st.decimals(allow_nan=False).map(str))
    moments = st.one_of(st.datetimes().map(datetime.isoformat), st.dates().map(date.isoformat))
    odd = st.one_of(texts, numeric, moments).map(str.encode)
    return st.one_of(known, known, odd, st.binary(max_size=6), st.none())
