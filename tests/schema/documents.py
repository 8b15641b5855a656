"""Schema documents of our own making, and the faults found in them by JSON pointer."""

from __future__ import annotations

from typing import Any

import pytest

from margent.errors import SchemaError
from margent.schema.read import schema_from_json

SEX: dict[str, Any] = {"name": "sex", "type": "string", "categories": ["F", "M"]}


def document(*fields: dict[str, Any], **top: Any) -> dict[str, Any]:
    return {"fields": list(fields), "margent": {"unit": "row"}} | top


def faults_of(value: Any) -> dict[str, str]:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(value)
    return {fault.pointer: fault.message for fault in caught.value.faults}


def field_faults(**field: Any) -> dict[str, str]:
    base = {"name": "x", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}
    found = faults_of(document(base | field))
    return {pointer.removeprefix("/fields/0"): message for pointer, message in found.items()}
