"""What a schema's field is made of: frozen records of public facts, with no behavior of their own.

Everything here is declared by people who know the table, never learned from its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

FieldType = Literal["string", "integer", "number", "boolean", "date", "datetime", "time", "year", "yearmonth"]
FIELD_TYPES: tuple[FieldType, ...] = (
    "string",
    "integer",
    "number",
    "boolean",
    "date",
    "datetime",
    "time",
    "year",
    "yearmonth",
)

NUMERIC: tuple[FieldType, ...] = ("integer", "number", "year")
ORDERED: tuple[FieldType, ...] = (*NUMERIC, "date", "datetime", "time", "yearmonth")
"""The types whose values lie on an axis, between bounds."""

TYPE_WORDS: Mapping[str, FieldType] = {kind: kind for kind in FIELD_TYPES} | {
    "text": "string",
    "str": "string",
    "char": "string",
    "varchar": "string",
    "category": "string",
    "categorical": "string",
    "factor": "string",
    "int": "integer",
    "bigint": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "numeric": "number",
    "real": "number",
    "bool": "boolean",
    "logical": "boolean",
    "timestamp": "datetime",
}
"""The types, and the usual words for them elsewhere."""

Role = Literal["model", "identifier", "drop"]
ROLES: tuple[Role, ...] = ("model", "identifier", "drop")

Period = Literal["hour", "day", "week", "month", "quarter", "year"]
PERIODS: tuple[Period, ...] = ("hour", "day", "week", "month", "quarter", "year")

Scalar = str | int | Decimal | bool
"""A declared value: int (integer, year), Decimal (number), bool (boolean), else text (dates in ISO 8601)."""

MAX_CODES = 1_000_000
"""The most codes one column may have; more would never hold a useful count."""
QUANTILE_CELLS = 1024
"""Cells of the grid that quantiles are bought on, where the schema does not say."""
MAX_CATEGORIES = 256
"""Values of an open set that are kept at most, where the schema does not say."""


@dataclass(frozen=True, slots=True)
class ListedValue:
    """One value of a closed list, with the label that reports show for it."""

    value: Scalar
    label: str | None = None


@dataclass(frozen=True, slots=True)
class SpecialCode:
    """A cell text inside a numeric column that is a value of its own, such as "501" or "<5"."""

    text: str
    label: str | None = None


@dataclass(frozen=True, slots=True)
class MissingToken:
    """A cell text that means "no value"; ``alone`` gives it a code of its own, else tokens share one."""

    text: str
    label: str | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True)
class CodeFile:
    """Where a closed list was read from: a name beside the schema file, and the SHA-256 of its bytes."""

    file: str
    sha256: str


@dataclass(frozen=True, slots=True)
class EqualBins:
    """``count`` bins of equal width from minimum to maximum."""

    count: int


@dataclass(frozen=True, slots=True)
class EdgeBins:
    """Bins [e_i, e_(i+1)), the last one closed; the first edge is the minimum, the last the maximum."""

    edges: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class WidthBins:
    """Bins of one width from the minimum on, in days (date), seconds (time, datetime), months or units."""

    width: Decimal


@dataclass(frozen=True, slots=True)
class CalendarBins:
    """One bin for each hour, day, week (from Monday), month, quarter or year, in the field's time zone."""

    period: Period


@dataclass(frozen=True, slots=True)
class QuantileBins:
    """``count`` bins of about equal numbers of records, bought on a public grid of at most ``grid`` cells."""

    count: int
    grid: int = QUANTILE_CELLS


Bins = EqualBins | EdgeBins | WidthBins | CalendarBins | QuantileBins


@dataclass(frozen=True, slots=True)
class Tail:
    """The last bin is open-ended: half as likely every ``half`` (units of a bin's width) from its start on.

    None: a quarter of the last bin's width.
    """

    half: Decimal | None = None


Decode = Literal["midpoint", "integer"] | Tail
"""How a value is drawn inside its bin, where that is not uniformly."""


@dataclass(frozen=True, slots=True)
class RelativeTo:
    """The difference to another date is what is modeled, so that lengths of stay survive."""

    field: str
    unit: Period
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class OpenSet:
    """The values are not known in advance: those that many records share are bought, at most ``most`` of them."""

    max_categories: int | None = None

    @property
    def most(self) -> int:
        """Values that are kept at most."""
        return MAX_CATEGORIES if self.max_categories is None else self.max_categories


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Coarser and coarser groups of a closed list; above the last level stands the root, "anything".

    ``levels[0]`` names the first coarsening; ``parents[0]`` maps each value (as text) to its group there,
    ``parents[1]`` each of those groups to the next level's, and so on. Pairs are sorted by name.
    """

    levels: tuple[str, ...]
    parents: tuple[tuple[tuple[str, str], ...], ...]


DEFAULT_TRUE = ("true", "True", "TRUE", "1")
DEFAULT_FALSE = ("false", "False", "FALSE", "0")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a text table spells the field's values; the first true and false value are the ones written."""

    format: str | None = None
    true_values: tuple[str, ...] = DEFAULT_TRUE
    false_values: tuple[str, ...] = DEFAULT_FALSE
    decimal_char: str = "."
    group_char: str | None = None
    bare_number: bool = True


DEFAULT_SPELLING = Spelling()


@dataclass(frozen=True, slots=True)
class Field:
    """One column of the table, as the schema declares it.

    ``listed`` is the closed list of its values, if it has one; otherwise values lie in [minimum, maximum] and
    are cut by ``bins``, except that each of ``spikes`` is a value of its own. ``decode`` says how values are drawn
    inside bins: uniformly, where it is None. ``missing`` is None where the table's missing tokens hold. ``carried`` are
    keys without effect by their place in the field, such as ``title`` or ``constraints/pattern``.
    """

    name: str
    type: FieldType
    role: Role = "model"
    required: bool = False

    listed: tuple[ListedValue, ...] | None = None
    ordered: bool = False
    listed_file: CodeFile | None = None
    hierarchy: Hierarchy | None = None

    minimum: Scalar | None = None
    maximum: Scalar | None = None
    bins: Bins | None = None
    decimals: int | None = None
    special: tuple[SpecialCode, ...] = ()
    spikes: tuple[Scalar, ...] = ()
    decode: Decode | None = None

    missing: tuple[MissingToken, ...] | None = None
    unlisted_to: str | None = None

    spelling: Spelling = DEFAULT_SPELLING
    time_zone: str | None = None

    relative_to: RelativeTo | None = None
    open_set: OpenSet | None = None
    carried: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nullable(self) -> bool:
        """Whether a cell may be missing: everything that is not required."""
        return not self.required
