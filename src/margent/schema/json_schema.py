"""The JSON Schema of schema files: what an editor can check and complete while somebody types.

It refuses nothing that Margent reads; what keys mean together only `margent.schema.read` can say.
"""

from __future__ import annotations

from importlib.resources import files


def schema_file_text() -> str:
    """The JSON Schema (draft 2020-12), as text."""
    return files("margent.schema").joinpath("schema-file.json").read_text(encoding="utf-8")
