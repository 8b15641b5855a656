"""The demonstration: the RAND Health Insurance Experiment, a real public table of 20,190 person-years.

The table ships inside the statsmodels package (public domain). Its schema below is written from the study's
published documentation, as an operator would write one: bounds and categories are stated, not read from rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from margent.errors import UsageError

_FLAG: list[dict[str, str]] = [{"value": "0", "label": "no"}, {"value": "1", "label": "yes"}]
_REQUIRED = {"required": True}


def _flag(name: str, title: str) -> dict[str, Any]:
    return {"name": name, "title": title, "type": "string", "categories": _FLAG, "constraints": _REQUIRED}


def _number(name: str, title: str, maximum: int, bins: Any, special: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "type": "number",
        "constraints": {"required": True, "minimum": 0, "maximum": maximum},
        "margent": {"bins": bins, "special": special, "decimals": 4},
    }


SCHEMA: dict[str, Any] = {
    "name": "rand-health-insurance-experiment",
    "title": "RAND Health Insurance Experiment: visits to a doctor per person and year",
    "missingValues": [""],
    "fields": [
        {
            "name": "mdvis",
            "title": "Outpatient visits to a physician in the year",
            "type": "integer",
            "constraints": {"required": True, "minimum": 0, "maximum": 100},
            "margent": {"bins": [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50, 100]},
        },
        {
            "name": "lncoins",
            "title": "Coinsurance rate of the plan, as ln(rate + 1)",
            "type": "string",
            "categoriesOrdered": True,
            "categories": [
                {"value": "0.0", "label": "0 %"},
                {"value": "3.258096", "label": "25 %"},
                {"value": "3.931826", "label": "50 %"},
                {"value": "4.564348", "label": "95 %"},
                {"value": "4.61512", "label": "100 %"},
            ],
            "constraints": _REQUIRED,
        },
        _flag("idp", "Individual deductible plan"),
        _number("lpi", "Participation incentive payment, ln(max(1, dollars))", 8, {"width": 0.5}, ["0.0"]),
        _number("fmde", "Maximum dollar expenditure, ln(max(1, dollars / rate))", 9, {"width": 0.5}, ["0.0"]),
        _number("physlm", "Physical limitation (imputed values lie between 0 and 1)", 1, 5, ["0.0", "1.0"]),
        _number("disea", "Index of chronic diseases", 60, {"width": 5}, ["0.0"]),
        _flag("hlthg", "Self-rated health: good"),
        _flag("hlthf", "Self-rated health: fair"),
        _flag("hlthp", "Self-rated health: poor"),
    ],
    "margent": {
        "unit": "row",
        "provenance": "the study's published documentation; the unit is a person-year, as the table has no person id",
    },
}


def write_demonstration_table(path: Path) -> int:
    """Write the study's table as CSV and return its number of rows (a public table: the number may be told).

    Privacy: none: the table is in the public domain.
    Raises: UsageError when the package that carries it is not installed.
    """
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        raise UsageError(
            "the demonstration's table ships inside the statsmodels package, which is not installed: "
            "pip install 'margent[demo]'"
        ) from None
    frame = randhie.load_pandas().data
    frame.to_csv(path, index=False)
    return len(frame)
