"""Rows that a condition, a query or a view chose: their number is private under every relation."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import margent
from margent import Budget, BudgetFile, Category, Integer, ReadOptions, Schema
from margent.counts.source import CodedCounts
from margent.errors import UsageError
from margent.pipeline import measure
from margent.privacy.curator import DataCurator
from margent.privacy.interactions import interaction_sensitivity_squared
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.neighbors import Neighbors
from margent.privacy.partitions import threshold
from margent.privacy.queries import marginal_sensitivity_l1, marginal_sensitivity_squared, score_law, score_units
from margent.privacy.requests import PublicTables, ScoreRequest
from margent.release import officer
from margent.release.measurements import measurement_files, read_measurements
from margent.schema.codec import Codec
from margent.schema.parts import Field

SCHEMA = Schema(
    [*(Category(name, ["x", "y"], required=True) for name in "abc"), Field("age", "integer", role="drop")], unit="row"
)
REPLACE = Budget(20, relation="replace")
NUMBER = {"privbayes": {"score": "mutual-information", "records": "30"}, "jtree": {"score": "r", "records": "30"}}


def database(folder: Path, last_age: int) -> Path:
    """A table of 31 rows, 30 of them of full age whatever the last one says."""
    path = folder / f"people{last_age}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (a VARCHAR, b VARCHAR, c VARCHAR, age INTEGER)")
        rows = [("xy"[i % 2], "xy"[i % 3 % 2], "x", 40) for i in range(30)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [*rows, ("x", "x", "y", last_age)])
        connection.execute("CREATE VIEW grown AS SELECT * FROM people WHERE age >= 18")
    return path


@pytest.mark.parametrize("method", NUMBER)
@pytest.mark.parametrize("rows", ["table=people&where=age >= 18", "table=grown", "query=SELECT * FROM grown"])
@pytest.mark.parametrize("last_age", [17, 30])
def test_a_stated_number_of_chosen_rows_is_refused_before_the_charge(
    method: str, rows: str, last_age: int, tmp_path: Path
) -> None:
    """Both neighbors end alike: with 17 the selection has the stated 30 rows, with 30 it has one more."""
    file = BudgetFile(tmp_path / "people.budget", "people")
    file.init(Budget(30, relation="replace"), unit="row")
    with pytest.raises(UsageError, match=r"setting records: the number of records is not public.*where=.*whole table"):
        margent.synthesize(
            f"duckdb:{database(tmp_path, last_age)}?{rows}",
            SCHEMA,
            budget=REPLACE,
            budget_file=file,
            method=method,
            settings=NUMBER[method],
            rows=5,
            read=ReadOptions(query_is_row_wise=True),
        )
    assert file.balance().spent == 0


def test_the_whole_table_may_have_its_number_stated(tmp_path: Path) -> None:
    settings = {**NUMBER["privbayes"], "records": "31"}
    address = f"duckdb:{database(tmp_path, 17)}?table=people"
    made = margent.synthesize(address, SCHEMA, budget=REPLACE, method="privbayes", settings=settings, rows=5)
    assert not made.transcript.selected
    said = officer.statement(made.transcript, made.budget, made.summary)
    assert "differ in what one unit said; the number of records is public." in said
    assert "So is the number of records." in said
    assert "how many rows the table has, which counts as public" in made.summary["promise"][0]


@pytest.mark.parametrize("rows", ["table=people&where=age >= 18", "table=grown"])
def test_the_promise_does_not_call_the_number_of_chosen_rows_public(rows: str, tmp_path: Path) -> None:
    address, read = f"duckdb:{database(tmp_path, 17)}?{rows}", ReadOptions(query_is_row_wise=True)
    made = margent.synthesize(address, SCHEMA, budget=REPLACE, method="independent", rows=5, read=read)
    said = made.summary["promise"][0]
    assert "how many rows the table has" not in said
    assert "how many were chosen does not" in said
    page = officer.statement(made.transcript, made.budget, made.summary)
    assert "How many there were to choose from is public; how many were chosen is not." in page
    assert "number of records" not in page
    assert "None can stop a run or change its shape, unless a query" in page
    kept = measure(address, SCHEMA, budget=REPLACE, method="independent", read=read).transcript
    assert (kept.filtered, kept.from_query) == ("where" in rows, "where" not in rows)
    for name, blob in measurement_files(kept).items():
        (tmp_path / name).write_bytes(blob)
    assert read_measurements(tmp_path).filtered == kept.filtered
    added = margent.synthesize(address, SCHEMA, budget=Budget(2), method="independent", rows=5, read=read)
    assert added.summary["promise"][0] == "Protected: every single row: whether it was in the table, and what it said."


@pytest.mark.parametrize("kind", ["indif", "independence", "distance", "r", "f"])
def test_a_replacement_is_priced_no_lower_than_one_row_more_or_less(kind: str) -> None:
    """So that a row that comes into a selection, or drops out of it, has been paid for."""
    replaced, added = Neighbors("replace"), Neighbors()
    assert score_units(kind, replaced) >= score_units(kind, added)
    assert marginal_sensitivity_squared(replaced) >= marginal_sensitivity_squared(added)
    assert marginal_sensitivity_l1(replaced) >= marginal_sensitivity_l1(added)
    for sizes in ((2,), (2, 2), (5, 7), (2, 3, 4)):
        of = [interaction_sensitivity_squared(sizes, each) for each in (replaced, added)]
        assert of[0] >= of[1]
    law, delta = Gaussian(Fraction(81)), Fraction(1, 10**6)
    assert threshold(law, delta, replaced) >= threshold(law, delta, added)


def test_the_door_prices_no_public_number_of_chosen_rows() -> None:
    """Behind the pipeline's refusal: nothing is charged, so that no exact count can end the run."""
    schema = Schema([Integer("a", 0, 1, required=True), Integer("b", 0, 1, required=True)], unit="row")
    counts = CodedCounts([np.zeros(8, dtype=np.int32)] * 2, Codec(schema).domain)
    tables, budget = PublicTables(7), Budget(5, relation="replace")
    law = score_law("mutual-information", 1, budget.total, Neighbors("replace"), budget.account, tables)
    request = ScoreRequest("mutual-information", (("a", "b"),), law, tables=tables)
    curator = DataCurator(schema, counts, Ledger(budget), selected=True)
    with pytest.raises(UsageError, match="not public"):
        curator.scores(request, label="")
    assert curator.charges == ()
