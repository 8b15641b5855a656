"""The released table's description as a Data Package: schema, labels and provenance, for other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from margent.schema.fields import Schema
from margent.schema.write import schema_to_json

_MEDIA_TYPES = {
    "csv": "text/csv",
    "csv.gz": "application/gzip",
    "csv.zst": "application/zstd",
    "tsv": "text/tab-separated-values",
    "tsv.gz": "application/gzip",
    "tsv.zst": "application/zstd",
    "parquet": "application/vnd.apache.parquet",
    "feather": "application/vnd.apache.arrow.file",
    "arrow": "application/vnd.apache.arrow.file",
}


def data_package(
    schema: Schema, paths: Sequence[str], kind: str, summary: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """A Data Package descriptor of the synthetic table; dropped columns are left out of its schema.

    A table in parts is described as the list of its files.

    Privacy: none: a function of schema and options.
    """
    description = schema_to_json(schema)
    written = set(schema.output_columns)
    description["fields"] = [field for field in description["fields"] if field["name"] in written]
    resource: dict[str, Any] = {
        "name": "synthetic",
        "title": "Synthetic table",
        "path": paths[0] if len(paths) == 1 else list(paths),
        "mediatype": _MEDIA_TYPES[kind],
        "schema": description,
    }
    if dialect := facts.get("dialect"):
        resource["dialect"] = {
            "delimiter": dialect["delimiter"],
            "quoteChar": dialect["quote"],
            "header": dialect["header"],
        }
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": "synthetic-table",
        "title": schema.name or "Synthetic table",
        "description": " ".join(summary["promise"]),
        "resources": [resource],
    }
