"""The page of an inspection, from its JSON document alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margent.report import charts
from margent.report.pages import page


def inspection_page(document: Mapping[str, Any]) -> str:
    """How the real table meets the schema, as one self-contained page marked INTERNAL.

    Privacy: shows exact figures of real rows.
    """
    columns = [
        column | {"svg": charts.overlay(column["shares"], [], f"{column['column']}: shares of its codes")}
        for column in document["columns"]
    ]
    return page(
        "inspection.html",
        label=document["label"],
        meaning=document["meaning"],
        title=document["title"],
        rows=document["rows"],
        columns=columns,
        not_modeled=document["notModeled"],
    )
