"""Margent: differentially private synthetic tables from noisy marginals.

A release is a function of a public schema and a list of noisy answers; privacy is spent only to make that list.

    import margent
    release = margent.synthesize("people.csv", margent.read_schema("schema.json"),
                                 budget=margent.Budget(epsilon=1, delta=1e-9))
    release.save("OUT")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margent.answers.answer import QueryAnswer
    from margent.answers.query import query
    from margent.errors import (
        BudgetError,
        MargentError,
        PlanError,
        SchemaError,
        TableError,
        TranscriptError,
        UsageError,
    )
    from margent.pipeline import from_transcript, synthesize
    from margent.plan import make_plan
    from margent.privacy.budget import Budget
    from margent.privacy.budget_file import BudgetFile
    from margent.release.reading import read_release
    from margent.release.release import Release
    from margent.resume.state import RunState
    from margent.schema.fields import (
        Boolean,
        Category,
        Date,
        DateTime,
        Dropped,
        Identifier,
        Integer,
        Number,
        PersonUnit,
        Schema,
        Time,
        Year,
        YearMonth,
    )
    from margent.schema.read import read_schema
    from margent.table_synthesizer import TableSynthesizer
    from margent.tables.options import ReadOptions
    from margent.version import VERSION as __version__  # noqa: N811

# Public name -> the module that defines it; imported on first use, so that `import margent` is cheap.
_PUBLIC = {
    "Boolean": "margent.schema.fields",
    "Budget": "margent.privacy.budget",
    "BudgetError": "margent.errors",
    "BudgetFile": "margent.privacy.budget_file",
    "Category": "margent.schema.fields",
    "Date": "margent.schema.fields",
    "DateTime": "margent.schema.fields",
    "Dropped": "margent.schema.fields",
    "Identifier": "margent.schema.fields",
    "Integer": "margent.schema.fields",
    "MargentError": "margent.errors",
    "Number": "margent.schema.fields",
    "PersonUnit": "margent.schema.fields",
    "PlanError": "margent.errors",
    "QueryAnswer": "margent.answers.answer",
    "ReadOptions": "margent.tables.options",
    "Release": "margent.release.release",
    "RunState": "margent.resume.state",
    "Schema": "margent.schema.fields",
    "SchemaError": "margent.errors",
    "TableError": "margent.errors",
    "TableSynthesizer": "margent.table_synthesizer",
    "Time": "margent.schema.fields",
    "TranscriptError": "margent.errors",
    "UsageError": "margent.errors",
    "Year": "margent.schema.fields",
    "YearMonth": "margent.schema.fields",
    "from_transcript": "margent.pipeline",
    "make_plan": "margent.plan",
    "query": "margent.answers.query",
    "read_release": "margent.release.reading",
    "read_schema": "margent.schema.read",
    "synthesize": "margent.pipeline",
}

__all__ = [
    "Boolean",
    "Budget",
    "BudgetError",
    "BudgetFile",
    "Category",
    "Date",
    "DateTime",
    "Dropped",
    "Identifier",
    "Integer",
    "MargentError",
    "Number",
    "PersonUnit",
    "PlanError",
    "QueryAnswer",
    "ReadOptions",
    "Release",
    "RunState",
    "Schema",
    "SchemaError",
    "TableError",
    "TableSynthesizer",
    "Time",
    "TranscriptError",
    "UsageError",
    "Year",
    "YearMonth",
    "__version__",
    "from_transcript",
    "make_plan",
    "query",
    "read_release",
    "read_schema",
    "synthesize",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from margent.version import VERSION

        return VERSION
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'margent' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
