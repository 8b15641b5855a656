"""DuckDB files that a test makes."""

from __future__ import annotations

from pathlib import Path

import duckdb


def file_with(folder: Path, *statements: str, name: str = "t.duckdb") -> Path:
    with duckdb.connect(str(folder / name)) as connection:
        for statement in statements:
            connection.execute(statement)
    return folder / name
