"""What reading takes of memory follows the batch, not the table: peaks of processes of their own, by number of rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from table_schemas import names_only
from tests.peaks import STEADY, alone

from margent.tables.address import read_address
from margent.tables.database import connected
from margent.tables.options import ReadOptions
from margent.tables.source import open_table

COLUMNS = ("a", "b", "c", "d")
FEW, MANY = 500_000, 6_000_000
DATA_MIB = MANY * len(COLUMNS) * 8 // 2**20

CHILD = """
import sys
sys.path.insert(0, {folder!r})
from table_schemas import names_only
from margent.tables import duckdb_rows
from margent.tables.source import open_table
# DuckDB keeps blocks of the file up to its limit: here one that both files exceed, or nearly.
duckdb_rows._MEMORY_MIB, duckdb_rows._COLUMN_MIB = 10, 1
with open_table(sys.argv[1], names_only(*{columns!r})) as source:
    print(sum(batch.num_rows for batch in source.batches()))
"""


def made(rows: int) -> pa.Table:
    rng = np.random.default_rng(rows)
    return pa.table({name: rng.integers(0, 10**9, rows) for name in COLUMNS})


def as_parquet_of_one_row_group(path: Path, table: pa.Table) -> str:
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=len(table), use_dictionary=False)
    return str(path.with_suffix(".parquet"))


def as_folder(path: Path, table: pa.Table) -> str:
    path.mkdir()
    for part, start in enumerate(range(0, len(table), FEW)):
        pq.write_table(table.slice(start, FEW), path / f"{part:03}.parquet")
    return str(path)


def as_feather(path: Path, table: pa.Table) -> str:
    pyarrow.feather.write_feather(table, path.with_suffix(".feather"), compression="lz4")
    return str(path.with_suffix(".feather"))


def as_csv(path: Path, table: pa.Table) -> str:
    pyarrow.csv.write_csv(table, path.with_suffix(".csv"))
    return str(path.with_suffix(".csv"))


def as_duckdb(path: Path, table: pa.Table) -> str:
    with duckdb.connect(str(path.with_suffix(".duckdb"))) as connection:
        connection.register("made", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM made")
    return f"duckdb:{path.with_suffix('.duckdb')}?table=t"


def as_feather_of_one_batch(path: Path, table: pa.Table) -> str:
    pyarrow.feather.write_feather(table, path.with_suffix(".feather"), compression="lz4", chunksize=len(table))
    return str(path.with_suffix(".feather"))


def peak(table: str, rows: int) -> int:
    """MiB that a process had at most while it read the table once."""
    code = CHILD.format(folder=str(Path(__file__).parent), columns=COLUMNS)
    done = alone(code, table, allocators=STEADY)
    assert int(done.printed) == rows
    return done.peak // 2**20


@pytest.mark.parametrize("listed", [(), ("e",)])
def test_a_long_text_of_many_rows_in_a_database_comes_a_few_rows_at_a_time(
    listed: tuple[str, ...], tmp_path: Path
) -> None:
    """65,536 rows of 32 KiB, which the file holds once a row group, are 2 GiB; also beside a short list of values."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        beside = ", 'M'::ENUM ('F', 'M') AS e" if listed else ""
        connection.execute(f"CREATE TABLE t AS SELECT repeat('F', 32768) AS x{beside} FROM range(65536)")
    with_room = "\n".join(line for line in CHILD.splitlines() if "_MEMORY_MIB" not in line)
    code = with_room.format(folder=str(Path(__file__).parent), columns=("x", *listed))
    done = alone(code, f"duckdb:{tmp_path / 't.duckdb'}?table=t", allocators=STEADY)
    assert int(done.printed) == 65_536
    assert done.peak < 2**29


def test_no_row_of_a_database_is_too_long_for_a_batch(tmp_path: Path) -> None:
    """With offsets of 32 bits a batch of over two gigabytes of text is an error, after the charge."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'F' AS x, 'M'::ENUM ('F', 'M') AS e, 'b'::BLOB AS b")
    with closing(connected(read_address(f"duckdb:{tmp_path / 't.duckdb'}?table=t"), ReadOptions())) as rows:
        text, listed, content = rows.declared.types
        assert (text, content) == (pa.string(), pa.binary())
        assert rows.described(rows.columns).types == [pa.large_string(), listed, pa.large_binary()]
    with open_table(f"duckdb:{tmp_path / 't.duckdb'}?table=t", names_only("b", "e", "x")) as source:
        assert [batch.to_pylist() for batch in source.batches()] == [[{"b": "b", "e": "M", "x": "F"}]]


WAYS = [as_parquet_of_one_row_group, as_folder, as_feather, as_csv, as_duckdb]


@pytest.mark.parametrize("write", WAYS)
def test_twelve_times_the_rows_take_no_more_memory(write: Callable[[Path, Any], str], tmp_path: Path) -> None:
    """The table is 168 MiB larger; of its size a third is left to the allocators' and a database's own caches."""
    few = peak(write(tmp_path / "few", made(FEW)), FEW)
    many = peak(write(tmp_path / "many", made(MANY)), MANY)
    assert many - few < DATA_MIB / 3


def test_the_measure_sees_what_is_held(tmp_path: Path) -> None:
    """An Arrow file of one batch is the case in which it must grow: a batch is the least that can be read of it."""
    few = peak(as_feather_of_one_batch(tmp_path / "few", made(FEW)), FEW)
    many = peak(as_feather_of_one_batch(tmp_path / "many", made(MANY)), MANY)
    assert many - few > DATA_MIB / 2
