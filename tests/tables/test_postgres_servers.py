"""PostgreSQL servers that are not there, go away or store bytes, and secrets that no message repeats."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from table_schemas import CANARY, names_only, read_rows
from tests.postgres_server import Server, remade, server_or_skip

from margent.errors import MargentError, TableError, UsageError
from margent.tables.database import BROKEN
from margent.tables.source import open_table


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://nobody@127.0.0.1:{port}/postgres",
        "postgresql://postgres@127.0.0.1:{port}/nowhere",
        "postgresql://postgres@127.0.0.1:1/postgres",
        "postgresql://postgres@no.such.host.invalid/postgres",
        "postgresql:?service=nosuchservice",
    ],
)
def test_a_server_that_cannot_be_reached_is_told_of_in_one_sentence(postgres: Server, place: str) -> None:
    address = place.format(port=postgres.port)
    more = "&" if "?" in address else "?"
    with pytest.raises(TableError, match="cannot connect to the server") as caught:
        open_table(f"{address}{more}table=t&connect_timeout=5", names_only("a"))
    assert caught.value.__context__ is None
    for secret in ("nobody", "nowhere", "invalid", "nosuchservice", postgres.password, str(postgres.port)):
        assert secret not in str(caught.value)


def test_a_service_file_holds_what_the_address_does_not(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remade(postgres, "served", "a int", "(1)")
    services = tmp_path / "services.conf"
    services.write_text(
        f"[ward]\nhost=127.0.0.1\nport={postgres.port}\nuser=postgres\ndbname=postgres\npassword={postgres.password}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.delenv("PGPASSFILE")
    assert read_rows("postgresql:?service=ward&table=served", "a") == [(1,)]
    monkeypatch.setenv("PGSERVICE", "ward")
    assert read_rows("postgresql:?table=public.served", "a") == [(1,)]


def test_a_table_that_is_not_there_is_told_by_its_nearest_name(postgres: Server) -> None:
    remade(postgres, "lower_case", "a int")
    with pytest.raises(TableError, match=r'no such table or view; it has "public"."lower_case"'):
        open_table(postgres.table("Lower_Case"), names_only("a"))


def test_an_encoding_in_which_a_cell_could_stop_the_run_is_refused(postgres: Server) -> None:
    postgres.run("DROP DATABASE IF EXISTS old", "CREATE DATABASE old ENCODING 'WIN1252' TEMPLATE template0")
    with pytest.raises(TableError, match="encoding is WIN1252"):
        open_table(postgres.table("t").replace("/postgres?", "/old?"), names_only("a"))


def test_bytes_that_are_no_text_are_cells_like_others(postgres: Server) -> None:
    postgres.run("DROP DATABASE IF EXISTS raw", "CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0")
    raw = Server(postgres.port, postgres.password, postgres.folder, postgres.programs)
    psql = [str(postgres.programs / "psql"), "-q", "-h", "127.0.0.1", "-p", str(raw.port), "-U", "postgres", "raw"]
    script = b"SET client_encoding TO SQL_ASCII; CREATE TABLE t (a text); INSERT INTO t VALUES ('x'), ('caf\xe9');"
    subprocess.run(psql, input=script, check=True)
    address = postgres.table("t").replace("/postgres?", "/raw?")
    with open_table(address, names_only("a")) as source:
        (batch,) = source.batches()
        assert batch.column("a").cast(pa.large_binary()).to_pylist() == [b"x", b"caf\xe9"]


@pytest.fixture
def doomed() -> Iterator[Server]:
    with server_or_skip() as server:
        yield server


def test_a_server_that_is_killed_halfway_ends_in_fixed_text_with_no_cell(doomed: Server, tmp_path: Path) -> None:
    address = remade(doomed, "t", "a text")
    doomed.run(f"INSERT INTO t SELECT '{CANARY}' || n FROM generate_series(1, 1000000) g(n)")
    with open_table(address, names_only("a")) as source:
        batches = source.batches()
        next(batches)
        os.kill(int((doomed.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        for attempt in (batches, source.batches()):
            with pytest.raises(TableError) as caught:
                list(attempt)
            assert str(caught.value) == BROKEN
            assert CANARY not in f"{caught.value!r} {caught.value.__context__!r} {caught.value.__cause__!r}"
    doomed.start()  # so that it can be stopped


def test_a_package_that_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(UsageError, match=r"pip install 'margent\[postgres\]'"):
        open_table("postgresql://h/d?table=t", names_only("a"))


def test_a_path_made_of_an_address_is_refused_without_repeating_it() -> None:
    with pytest.raises(MargentError, match="not as a Path") as caught:
        open_table(Path(f"postgresql://ann:{CANARY}@h/d?table=t"), names_only("a"))
    assert CANARY not in str(caught.value)
