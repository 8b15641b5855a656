"""What a foreign description says of one column, and the field that can be drafted from it.

Whatever the source says, the field drafted is one that can be read as soon as its open questions are answered: what
does not hold together (a minimum above the maximum, a value listed twice) is left out, asked for, and told.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from margent.errors import Fault
from margent.schema.bins import VALUE_CODES
from margent.schema.draft import bounded_field
from margent.schema.fields import DEFAULT_MISSING
from margent.schema.open_fields import open_faults
from margent.schema.parts import DEFAULT_SPELLING, FieldType
from margent.schema.positions import declared_scalar, scalar_position
from margent.schema.todos import TODO
from margent.schema.write import json_scalar

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_BINNED = ("number", "date", "datetime", "time")
_UNBOUNDED = ("string", "boolean")


@dataclass(frozen=True)
class ColumnFacts:
    """What a source says of one column; None and empty stand for "it does not say".

    ``values`` are pairs of a value and its label; a source that lists codes as texts gives them as texts.
    """

    name: str
    type: FieldType | None = None
    role: Literal["identifier", "drop"] | None = None
    values: Sequence[tuple[Any, str | None]] | None = None
    ordered: bool = False
    minimum: Any = None
    maximum: Any = None
    bins: Any = None
    decimals: int | Literal["todo"] | None = None
    special: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str | None] = field(default_factory=dict)
    required: bool = False
    spelling: Mapping[str, Any] = field(default_factory=dict)
    time_zone: str | None = None
    title: str | None = None
    description: str | None = None


def draft_field(facts: ColumnFacts, place: str, notes: list[Fault]) -> dict[str, Any]:
    """The drafted field; ``notes`` get what the source says and the field cannot hold, at its place in the source.

    Privacy: none: public descriptions only.

    >>> draft_field(ColumnFacts("age", "integer", minimum=0), "/age", [])
    {'name': 'age', 'type': 'integer', 'constraints': {'minimum': 0, 'maximum': 'todo'}}
    """
    made = _drafted(facts)
    for _ in range(len(_RETREATS) + 1):
        faults = open_faults(made, DEFAULT_MISSING)
        if not faults:
            return made
        for fault in faults[:3]:
            notes.append(Fault(place, f"{fault.message.removeprefix(f'field {facts.name!r}: ')}; left out"))
        made = _without(made, faults[0].pointer)
    return _question(facts.name)


def _code_kind(codes: Sequence[str]) -> FieldType:
    """The type of a list of codes: integer where all of them are plainly whole numbers, else string.

    >>> _code_kind(["1", "-2", "0"]), _code_kind(["01", "02"]), _code_kind(["1", "N"])
    ('integer', 'string', 'string')
    """
    return "integer" if codes and all(_WHOLE.fullmatch(code) for code in codes) else "string"


def _drafted(facts: ColumnFacts) -> dict[str, Any]:
    kind = facts.type
    if facts.role is not None:
        made: dict[str, Any] = {"name": facts.name, "type": kind if kind in ("string", "integer") else "string"}
        return _described(made | {"margent": {"role": facts.role}}, facts)
    if kind is None and facts.values:
        kind = _code_kind([value if isinstance(value, str) else repr(value) for value, _ in facts.values])
    if kind is None:
        return _described(_question(facts.name), facts)
    if facts.values:
        made = _listed(kind, facts)
    elif kind == "string":
        made = {"name": facts.name, "type": kind, "categories": TODO}
    elif kind == "boolean":
        made = {"name": facts.name, "type": kind}
    else:
        made = bounded_field(facts.name, kind, _scalar(kind, facts.minimum), _scalar(kind, facts.maximum))
        block = {"bins": facts.bins if facts.bins is not None else wanted_bins(kind, made), "decimals": facts.decimals}
        block |= {"special": dict(facts.special) or None}
        made |= {"margent": block}
    block = made.setdefault("margent", {})
    block["timeZone"] = (facts.time_zone or "naive") if kind == "datetime" else None
    made["margent"] = {key: value for key, value in block.items() if value is not None}
    if not made["margent"]:
        del made["margent"]
    if facts.required:
        made.setdefault("constraints", {})["required"] = True
    if facts.missing:
        made["missingValues"] = ["", *(_token(text, label) for text, label in facts.missing.items() if text)]
    return _described(made | dict(facts.spelling), facts)


def _question(name: str) -> dict[str, Any]:
    return {"name": name, "type": TODO}


def _described(made: dict[str, Any], facts: ColumnFacts) -> dict[str, Any]:
    texts = {"title": facts.title, "description": facts.description}
    return made | {key: text.strip() for key, text in texts.items() if text and text.strip()}


def _token(text: str, label: str | None) -> Any:
    return {"value": text, "label": label} if label else text


def _listed(kind: FieldType, facts: ColumnFacts) -> dict[str, Any]:
    items: list[Any] = []
    for raw, label in facts.values or ():
        value = _scalar(kind, raw)
        items.append({"value": value, "label": label} if label else value)
    if kind in ("string", "integer"):
        made: dict[str, Any] = {"name": facts.name, "type": kind, "categories": items}
    else:
        made = {"name": facts.name, "type": kind, "constraints": {"enum": items}}
    return made | ({"categoriesOrdered": True} if facts.ordered else {})


def _scalar(kind: FieldType, raw: Any) -> Any:
    """The value as a schema spells it, a question where there is none; what cannot be read stays as it is."""
    if raw is None:
        return TODO
    if kind == "string" and isinstance(raw, int | float) and not isinstance(raw, bool):
        return repr(raw)
    try:
        return json_scalar(declared_scalar(kind, raw, DEFAULT_SPELLING))
    except ValueError:
        return raw


def wanted_bins(kind: FieldType, made: Mapping[str, Any]) -> str | None:
    """A question where the bins have to be asked for: always for numbers and moments, and for many whole numbers."""
    if kind in _BINNED:
        return TODO
    bounds = [made["constraints"][key] for key in ("minimum", "maximum")]
    try:
        low, high = (scalar_position(kind, declared_scalar(kind, bound, DEFAULT_SPELLING), None) for bound in bounds)
    except ValueError:
        return None
    return TODO if high - low >= VALUE_CODES else None


def _without(made: dict[str, Any], pointer: str) -> dict[str, Any]:
    """The field without what a fault is about; the whole type is asked for where nothing else is left to give up."""
    for prefix in (*_RETREATS, ""):
        if pointer.startswith(prefix):
            less: dict[str, Any] = _RETREATS.get(prefix, _everything)(copy.deepcopy(made))
            if less != made:
                return less
    return _everything(made)


def _everything(made: dict[str, Any]) -> dict[str, Any]:
    return {"name": made["name"], "type": TODO} | {key: made[key] for key in ("title", "description") if key in made}


def _no_values(made: dict[str, Any]) -> dict[str, Any]:
    made.pop("categoriesOrdered", None)
    if "categories" in made:
        return made | {"categories": TODO}
    return _everything(made)


def _no_bounds(made: dict[str, Any]) -> dict[str, Any]:
    if "enum" in made.get("constraints", {}):
        return _no_values(made)
    if made["type"] not in _UNBOUNDED:
        made.setdefault("constraints", {}).update(minimum=TODO, maximum=TODO)
        if isinstance(made.get("margent", {}).get("bins"), list):
            made["margent"]["bins"] = TODO
    return made


def _no_key(*path: str) -> Any:
    def without(made: dict[str, Any]) -> dict[str, Any]:
        inner = made.get("margent", {}) if path[0] == "margent" else made
        inner.pop(path[-1], None)
        return made

    return without


def _no_bins(made: dict[str, Any]) -> dict[str, Any]:
    if made.get("margent", {}).get("bins") not in (None, TODO):
        made["margent"]["bins"] = TODO
        return made
    return _no_bounds(made)


def _naive(made: dict[str, Any]) -> dict[str, Any]:
    if "timeZone" in made.get("margent", {}):
        made["margent"]["timeZone"] = "naive"
    return made


_RETREATS: Mapping[str, Any] = {
    "/categories": _no_values,
    "/constraints": _no_bounds,
    "/missingValues": _no_key("missingValues"),
    "/format": _no_key("format"),
    "/decimalChar": _no_key("decimalChar"),
    "/trueValues": _no_key("trueValues"),
    "/falseValues": _no_key("falseValues"),
    "/margent/special": _no_key("margent", "special"),
    "/margent/decimals": _no_key("margent", "decimals"),
    "/margent/timeZone": _naive,
    "/margent/bins": _no_bins,
}
"""What is given up when a fault points there."""
