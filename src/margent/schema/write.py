"""`Schema` -> canonical JSON that reads back as an equal schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from margent.schema.fields import DEFAULT_MISSING, Schema
from margent.schema.hierarchy import hierarchy_to_json
from margent.schema.parts import (
    DEFAULT_SPELLING,
    QUANTILE_CELLS,
    Bins,
    CalendarBins,
    Decode,
    EdgeBins,
    EqualBins,
    Field,
    ListedValue,
    MissingToken,
    QuantileBins,
    Scalar,
    Tail,
)


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """The schema as a JSON document: keys in one order, defaults left out, categories written out in full.

    Orders that matter are lists, so the document may be written with its keys in any order.

    Privacy: none: a schema is public.
    """
    block: dict[str, Any] = {"unit": "row"}
    if schema.unit != "row":
        block["unit"] = {"field": schema.unit.field, "maxRows": schema.unit.max_rows}
        block["unit"] |= {"sizes": True} if schema.unit.sizes else {}
    if schema.rules:
        block["rules"] = [dict(rule) for rule in schema.rules]
    if schema.provenance is not None:
        block["provenance"] = schema.provenance
    document: dict[str, Any] = {} if schema.name is None else {"name": schema.name}
    document |= schema.carried
    if tuple(schema.missing) != DEFAULT_MISSING:
        document["missingValues"] = _missing(schema.missing)
    document["fields"] = [_field_to_json(field) for field in schema.fields]
    document["margent"] = block
    return document


def schema_text(schema: Schema) -> str:
    """The schema file's text: UTF-8 JSON, one space of indent, a final newline.

    >>> from margent.schema.fields import Integer
    >>> schema_text(Schema([Integer("age", 0, 110)], unit="row")).splitlines()[:4]
    ['{', ' "fields": [', '  {', '   "name": "age",']
    """
    return json.dumps(schema_to_json(schema), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _field_to_json(field: Field) -> dict[str, Any]:
    """One field as JSON."""
    raw: dict[str, Any] = {"name": field.name, "type": field.type}
    constraints: dict[str, Any] = {}
    for pointer, value in field.carried.items():
        inside, _, key = pointer.rpartition("/")
        (constraints if inside else raw)[key] = value
    raw |= _spelling(field)
    if field.missing is not None:
        raw["missingValues"] = _missing(field.missing)
    if field.required:
        constraints["required"] = True
    for key, bound in (("minimum", field.minimum), ("maximum", field.maximum)):
        if bound is not None:
            constraints[key] = json_scalar(bound)
    if field.listed is not None:
        listed = [_listed(item) for item in field.listed]
        if field.type in ("string", "integer"):
            raw["categories"] = listed
        else:
            constraints["enum"] = listed
    if field.ordered:
        raw["categoriesOrdered"] = True
    if constraints:
        raw["constraints"] = constraints
    if block := _block(field):
        raw["margent"] = block
    return raw


def _spelling(field: Field) -> dict[str, Any]:
    spelling, plain = field.spelling, DEFAULT_SPELLING
    written = {
        "format": (spelling.format, plain.format),
        "trueValues": (list(spelling.true_values), list(plain.true_values)),
        "falseValues": (list(spelling.false_values), list(plain.false_values)),
        "decimalChar": (spelling.decimal_char, plain.decimal_char),
        "groupChar": (spelling.group_char, plain.group_char),
        "bareNumber": (spelling.bare_number, plain.bare_number),
    }
    return {key: value for key, (value, default) in written.items() if value != default}


def _block(field: Field) -> dict[str, Any]:
    block: dict[str, Any] = {}
    if field.role != "model":
        block["role"] = field.role
    if field.bins is not None:
        block["bins"] = _bins(field.bins)
    if field.special:
        block["special"] = [
            {"value": special.text} | ({"label": special.label} if special.label is not None else {})
            for special in field.special
        ]
    if field.spikes:
        block["spikes"] = [json_scalar(value) for value in field.spikes]
    if field.decode is not None:
        block["decode"] = _decode(field.decode)
    if field.unlisted_to is not None:
        block["unlisted"] = {"to": field.unlisted_to}
    if field.decimals is not None:
        block["decimals"] = field.decimals
    if field.time_zone is not None:
        block["timeZone"] = field.time_zone
    if field.open_set is not None:
        most = field.open_set.max_categories
        block["openSet"] = True if most is None else {"maxCategories": most}
    if field.hierarchy is not None:
        block["hierarchy"] = hierarchy_to_json(field.hierarchy)
    if field.relative_to is not None:
        other = field.relative_to
        block["relativeTo"] = {
            "field": other.field,
            "unit": other.unit,
            "minimum": other.minimum,
            "maximum": other.maximum,
        }
    if field.listed_file is not None:
        block["categoriesFile"] = {"file": field.listed_file.file, "sha256": field.listed_file.sha256}
    return block


def _bins(bins: Bins) -> Any:
    if isinstance(bins, EqualBins):
        return bins.count
    if isinstance(bins, EdgeBins):
        return [json_scalar(edge) for edge in bins.edges]
    if isinstance(bins, CalendarBins):
        return bins.period
    if isinstance(bins, QuantileBins):
        return {"quantiles": bins.count} | ({"grid": bins.grid} if bins.grid != QUANTILE_CELLS else {})
    return {"width": json_scalar(bins.width)}


def _decode(rule: Decode) -> Any:
    if not isinstance(rule, Tail):
        return rule
    return "tail" if rule.half is None else {"tail": json_scalar(rule.half)}


def json_scalar(value: Scalar) -> Any:
    """A JSON value that reads back exactly: a number where the float's shortest text is the decimal's.

    >>> json_scalar(Decimal("0.1")), json_scalar(Decimal("0.1000000000000000055"))
    (0.1, '0.1000000000000000055')
    """
    if not isinstance(value, Decimal):
        return value
    exact = Fraction(value)
    if exact.denominator == 1:
        return int(exact)
    return float(value) if Fraction(repr(float(value))) == exact else str(value)


def _listed(item: ListedValue) -> Any:
    value = json_scalar(item.value)
    return value if item.label is None else {"value": value, "label": item.label}


def _missing(tokens: Sequence[MissingToken]) -> list[Any]:
    return [
        token.text
        if not token.alone
        else {"value": token.text} | ({"label": token.label} if token.label is not None else {})
        for token in tokens
    ]
