"""A second reading of the schema file, one cell at a time, that shares no code with the package.

It covers what the real tables use: categories, whole numbers, numbers, months of datetimes, special codes, missing.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo


def edges(field: dict[str, Any]) -> list[Fraction]:
    """Lower edges of the bins of a number or whole number."""
    low, high = (Fraction(str(field["constraints"][key])) for key in ("minimum", "maximum"))
    bins = field.get("margent", {}).get("bins")
    if bins is None:
        special = {Fraction(code) for code in field.get("margent", {}).get("special", {})}
        values = [low + i for i in range(int(high - low) + 1)]
        return [value for value in values if value not in special]
    if isinstance(bins, list):
        return [Fraction(str(edge)) for edge in bins[:-1]]
    if field["type"] == "integer":
        return [low + Fraction(i * (int(high - low) + 1) // bins) for i in range(bins)]
    return [low + i * (high - low) / bins for i in range(bins)]


def months(field: dict[str, Any]) -> tuple[int, int, ZoneInfo]:
    """First and last month (counted from year 0) of a datetime's bounds, and its zone."""
    low, high = (datetime.fromisoformat(field["constraints"][key]) for key in ("minimum", "maximum"))
    zone = ZoneInfo(field["margent"]["timeZone"])
    return low.year * 12 + low.month, high.year * 12 + high.month, zone


class SlowField:
    """What each cell of one field is, by the words of the schema file."""

    def __init__(self, field: dict[str, Any], missing: list[str]) -> None:
        self.field = field
        self.missing = field.get("missingValues", missing)
        self.required = field.get("constraints", {}).get("required", False)
        self.special = list(field.get("margent", {}).get("special", {}))
        if "categories" in field:
            self.values = [c["value"] if isinstance(c, dict) else c for c in field["categories"]]
            self.size = len(self.values)
        elif field["type"] == "datetime":
            self.first, last, self.zone = months(field)
            self.size = last - self.first + 1
        else:
            self.edges = edges(field)
            self.size = len(self.edges)

    def code(self, cell: str | None) -> int:
        """The code of a cell's text; None is a missing typed cell."""
        missing = self.size + len(self.special)
        if not self.required and (cell is None or cell in self.missing):
            return missing
        value = None if cell is None else self.value(cell)
        if value is not None:
            return value
        constant = self.required and missing == 1
        return 0 if constant else missing

    def value(self, cell: str) -> int | None:
        """The value code of a text, or None where it has none."""
        if self.field["type"] == "string":
            return self.values.index(cell) if cell in self.values else None
        if self.field["type"] == "datetime":
            moment = datetime.fromisoformat(cell.replace("Z", "+00:00"))
            here = moment.astimezone(self.zone) if moment.tzinfo else moment
            return min(max(here.year * 12 + here.month - self.first, 0), self.size - 1)
        try:
            number = Fraction(cell.strip())
        except ValueError:
            return None
        for place, code in enumerate(self.special):
            if number == Fraction(code):
                return self.size + place
        if "categories" in self.field:
            return self.values.index(number) if number in self.values else None
        return max(0, sum(edge <= number for edge in self.edges) - 1)
