"""What a run finds out before it reserves its price, and what no row can make it find out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import margent
from margent import (
    Budget,
    BudgetFile,
    Category,
    Identifier,
    Integer,
    Number,
    PersonUnit,
    ReadOptions,
    Schema,
    SchemaError,
    TableError,
)
from margent.counts import contribution
from margent.counts.capacity import LEAST_PEOPLE, contribution_bytes, slots_for
from margent.pipeline import measure
from margent.tables.write import write_table

BY_ROW = Schema([Identifier("id"), Category("a", ["x", "y"])], unit="row")
BY_PERSON = Schema([Identifier("id"), Category("a", ["x", "y"])], unit=PersonUnit("id", 2))


def declared(folder: Path, unit: str = "row") -> BudgetFile:
    file = BudgetFile(folder / "people.budget", "people")
    file.init(Budget(3), unit=unit)
    return file


@pytest.mark.parametrize("cell", ["1", "not a number"])
def test_a_query_that_fails_on_a_row_is_charged_as_one_that_does_not(cell: str, tmp_path: Path) -> None:
    file, connection = declared(tmp_path), duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT ?::VARCHAR AS n", [cell])
    relation = connection.sql("SELECT CASE WHEN CAST(n AS INT) > 0 THEN 'x' ELSE 'y' END AS a, n AS id FROM t")
    if cell == "1":
        margent.synthesize(relation, BY_ROW, budget=Budget(1), budget_file=file, rows=1)
    else:
        with pytest.raises(TableError, match="could not be read to its end"):
            margent.synthesize(relation, BY_ROW, budget=Budget(1), budget_file=file, rows=1)
    assert len(file.balance().reservations) == 1


class Query:
    """A stream that computes its rows when it is taken, and tells its schema before that: a lazy frame's manner."""

    def __init__(self, take: Callable[[], pa.Table]) -> None:
        self.take = take

    def __arrow_c_schema__(self) -> object:
        return STREAM.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.take().__arrow_c_stream__(requested_schema)


class Wrapped:
    """Nothing but the stream of another object."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.inner.__arrow_c_stream__(requested_schema)


STREAM = pa.schema([("id", pa.string()), ("a", pa.string())])


@pytest.mark.parametrize("run", [margent.synthesize, measure])
@pytest.mark.parametrize("kind", ["reader", "wrapped reader", "query"])
@pytest.mark.parametrize("schema", [BY_ROW, BY_PERSON], ids=["row", "person"])
@pytest.mark.parametrize("fails", [False, True])
def test_no_batch_of_a_stream_is_pulled_before_the_price_is_written(
    run: Any, kind: str, schema: Schema, fails: bool, tmp_path: Path
) -> None:
    file, pulled = declared(tmp_path, "row" if schema is BY_ROW else "person:2"), list[int]()

    def batches() -> Iterator[pa.RecordBatch]:
        pulled.append(len(file.balance().reservations))
        if fails:
            raise ArithmeticError("row 7 holds a secret")
        yield pa.record_batch([["p", "q"], ["x", "y"]], schema=STREAM)

    reader = pa.RecordBatchReader.from_batches(STREAM, batches())
    table = {"reader": reader, "wrapped reader": Wrapped(reader), "query": Query(reader.read_all)}[kind]
    ready = {"budget": Budget(1), "budget_file": file, "method": "independent", "rows": 1}
    if fails:
        with pytest.raises(TableError, match="could not be read to its end") as caught:
            run(table, schema, **ready)
        assert "secret" not in str(caught.value)
    else:
        run(table, schema, **ready)
    assert pulled == [1]


def test_a_header_that_differs_is_refused_with_no_batch_pulled_and_nothing_charged(tmp_path: Path) -> None:
    file, pulled = declared(tmp_path), list[int]()
    other = Schema([Category("elsewhere", ["x"])], unit="row")

    def batches() -> Iterator[pa.RecordBatch]:
        pulled.append(1)
        yield pa.record_batch([["p"], ["x"]], schema=STREAM)

    reader = pa.RecordBatchReader.from_batches(STREAM, batches())
    for table in (Query(reader.read_all), Wrapped(reader)):
        with pytest.raises(SchemaError, match="elsewhere"):
            margent.synthesize(table, other, budget=Budget(1), budget_file=file, rows=1)
    assert (pulled, file.balance().spent) == ([], 0)


def test_a_stream_that_is_not_of_the_schema_it_told_ends_the_run_in_fixed_text(tmp_path: Path) -> None:
    file = declared(tmp_path)
    changed = pa.table({"id": ["p"], "b": ["a secret"]})
    with pytest.raises(TableError, match="could not be read to its end"):
        margent.synthesize(Query(lambda: changed), BY_ROW, budget=Budget(1), budget_file=file, rows=1)
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


def test_decimals_of_any_digits_are_written_after_the_charge(tmp_path: Path) -> None:
    kinds = [pa.decimal256(76, 58), pa.decimal256(76, 75), pa.decimal128(2, 5), pa.decimal128(38, 38)]
    fields = [Integer("a", -5, 9), Integer("b", 0, 9), Integer("c", 0, 0), Number("d", 0, "0.5", bins=5, decimals=1)]
    cells = [pa.nulls(4, kind) for kind in kinds]
    write_table(tmp_path / "t.arrow", "arrow", iter([pa.table(cells, names=["a", "b", "c", "d"])]))
    made = margent.synthesize(tmp_path / "t.arrow", Schema(fields, unit="row"), budget=Budget(1), rows=9)
    assert pa.ipc.open_file(made.save(tmp_path / "A") / "synthetic.arrow").schema.types == [
        *kinds[:2],
        pa.int64(),
        kinds[3],
    ]
    made.save(tmp_path / "B", file_format="parquet")
