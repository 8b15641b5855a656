"""What a run finds out before it reserves its price, and what no row can make it find out."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import margent
from margent import Budget, BudgetFile, Category, Identifier, PersonUnit, ReadOptions, Schema, TableError
from margent.counts import contribution
from margent.counts.capacity import LEAST_PEOPLE, contribution_bytes, slots_for

BY_ROW = Schema([Category("a", ["x", "y"])], unit="row")
BY_PERSON = Schema([Identifier("id"), Category("a", ["x", "y"])], unit=PersonUnit("id", 2))


def declared(folder: Path, unit: str = "row") -> BudgetFile:
    file = BudgetFile(folder / "people.budget", "people")
    file.init(Budget(3), unit=unit)
    return file


@pytest.mark.parametrize("cell", ["1", "not a number"])
def test_a_query_that_fails_on_a_row_is_charged_as_one_that_does_not(cell: str, tmp_path: Path) -> None:
    file, connection = declared(tmp_path), duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT ?::VARCHAR AS n", [cell])
    relation = connection.sql("SELECT CASE WHEN CAST(n AS INT) > 0 THEN 'x' ELSE 'y' END AS a FROM t")
    if cell == "1":
        margent.synthesize(relation, BY_ROW, budget=Budget(1), budget_file=file, rows=1)
    else:
        with pytest.raises(TableError, match="could not be read to its end"):
            margent.synthesize(relation, BY_ROW, budget=Budget(1), budget_file=file, rows=1)
    assert len(file.balance().reservations) == 1


def test_persons_without_a_folder_for_pseudonyms_are_refused_however_few(tmp_path: Path) -> None:
    """Otherwise the run would end well up to a number of rows, and fail from one row more on."""
    file = declared(tmp_path, "person:2")
    table = pa.table({"id": ["p", "q"], "a": ["x", "y"]})
    with pytest.raises(TableError, match="nothing was charged"):
        margent.synthesize(
            table,
            BY_PERSON,
            budget=Budget(1),
            budget_file=file,
            read=ReadOptions(spool_folder=tmp_path / "none"),
            rows=1,
        )
    assert file.balance().reservations == ()


def test_many_persons_where_one_was_expected_are_not_done_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: list[int] = []
    original = contribution.PersonTable.empty
    monkeypatch.setattr(
        contribution.PersonTable, "empty", staticmethod(lambda slots: tables.append(slots) or original(slots))
    )
    table = pa.table({"id": np.arange(20_000).astype(str), "a": ["x", "y"] * 10_000})
    margent.synthesize(table, BY_PERSON, budget=Budget(1), method="independent", rows=1, expect_people=1)
    assert tables == [slots_for(LEAST_PEOPLE)]
    assert contribution_bytes(1) == contribution_bytes(LEAST_PEOPLE), "and the plan reckons with it"
