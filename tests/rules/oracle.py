"""What rules mean for rows of text, read off the schema's JSON alone: nothing of the package is used here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

MISSING = ("", "NA")

Row = Mapping[str, str]


class Reader:
    """The cells of a table whose fields are strings, integers, numbers and dates, with the tokens of `MISSING`."""

    def __init__(self, fields: Sequence[Mapping[str, Any]]) -> None:
        self.types = {field["name"]: field["type"] for field in fields}
        self.special = {field["name"]: set(field.get("margent", {}).get("special", [])) for field in fields}

    def missing(self, row: Row, name: str) -> bool:
        return row[name] in MISSING

    def value(self, row: Row, name: str) -> Any:
        """The value, or None for a missing cell or special code."""
        text = row[name]
        if text in MISSING or text in self.special[name]:
            return None
        return self.parsed(name, text)

    def parsed(self, name: str, raw: Any) -> Any:
        kind = self.types[name]
        if kind == "string":
            return raw
        return date.fromisoformat(raw) if kind == "date" else Decimal(str(raw))

    def meets(self, row: Row, name: str, condition: Any) -> bool:
        if condition is None:
            return self.missing(row, name)
        if isinstance(condition, list):
            return any(self.meets(row, name, each) for each in condition)
        if not isinstance(condition, dict):
            if row[name] in self.special[name]:
                return row[name] == condition
            own = self.value(row, name)
            return own is not None and own == self.parsed(name, condition)
        if "missing" in condition:
            return self.missing(row, name) == condition["missing"]
        if "not" in condition:
            return not self.meets(row, name, condition["not"])
        own = self.value(row, name)
        if own is None:
            return False
        edges = {bound: self.parsed(name, edge) for bound, edge in condition.items()}
        return (
            ("below" not in edges or own < edges["below"])
            and ("atMost" not in edges or own <= edges["atMost"])
            and ("above" not in edges or own > edges["above"])
            and ("atLeast" not in edges or own >= edges["atLeast"])
        )

    def obeys(self, row: Row, rule: Mapping[str, Any]) -> bool:
        """Whether a row of texts obeys a rule."""
        if "if" in rule:
            when = all(self.meets(row, name, condition) for name, condition in rule["if"].items())
            return not when or all(self.meets(row, name, condition) for name, condition in rule["then"].items())
        if "never" in rule:
            return not all(self.meets(row, name, condition) for name, condition in rule["never"].items())
        if "equal" in rule:
            return len({self._same(row, name) for name in rule["equal"]}) == 1
        if "order" in rule:
            values = [own for own in (self.value(row, name) for name in rule["order"]) if own is not None]
            strict = rule.get("strict", False)
            return all(one < other or (one == other and not strict) for one, other in pairwise(values))
        if "sum" in rule:
            parts = [self.value(row, name) for name in rule["sum"]]
            total = self.value(row, rule["equals"])
            return total is None or None in parts or sum(parts) == total
        return self._determined(row, rule)

    def _same(self, row: Row, name: str) -> tuple[str, Any]:
        if self.missing(row, name):
            return "missing", None
        own = self.value(row, name)
        return ("special", row[name]) if own is None else ("value", own)

    def _determined(self, row: Row, rule: Mapping[str, Any]) -> bool:
        mapping = rule["mapping"]
        lines = [[key, value] for key, value in mapping.items()] if isinstance(mapping, dict) else mapping
        named = False
        for line in lines:
            if all(self.meets(row, name, cell) for name, cell in zip(rule["determines"], line[:-1], strict=True)):
                named = True
                if self.meets(row, rule["column"], line[-1]):
                    return True
        return not named and any(self.value(row, name) is None for name in rule["determines"])

    def broken(self, rows: Sequence[Row], rules: Sequence[Mapping[str, Any]]) -> list[int]:
        """Places of the rules that some row breaks."""
        return [place for place, rule in enumerate(rules) if not all(self.obeys(row, rule) for row in rows)]
