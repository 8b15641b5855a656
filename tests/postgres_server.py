"""A throwaway PostgreSQL on loopback: started for a test session where one is installed, and gone with it."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Server:
    """A running server of our own: where it listens, and who may ask it."""

    port: int
    password: str
    folder: Path
    programs: Path
    names: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The address without a table."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def table(self, name: str, more: str = "") -> str:
        """The address of a table."""
        return f"{self.place}?table={name}{more}"

    def run(self, *statements: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """Run statements, each committed; the rows of the last."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.place, autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})  # SHOW and EXPLAIN take none
                cursor.execute(statement, values)
            return list(cursor.fetchall()) if cursor.description else []

    @contextmanager
    def reading(self, query: str) -> Iterator[None]:
        """A client that has begun to read a query's rows and stopped halfway."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.place, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": "65536"})
            cursor.execute(query)
            with cursor.fetch_record_batch() as reader:
                reader.read_next_batch()
                yield

    def ingest(self, name: str, table: Any) -> None:
        """Write an Arrow table as a new table of the server."""
        from adbc_driver_postgresql import dbapi

        self.run(f'DROP TABLE IF EXISTS "{name}"')
        with dbapi.connect(self.place) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="create")
            connection.commit()

    def log(self) -> str:
        """Everything that was asked of the server so far."""
        return (self.folder / "log").read_text(errors="replace")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it, as if the machine had failed."""
        _as_owner(self.programs / "pg_ctl", "-D", self.folder / "data", "-m", mode, "-w", "stop")

    def start(self) -> None:
        """Start it, again or for the first time."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off "
            "-c shared_buffers=16MB -c log_statement=all -c max_connections=20 -c autovacuum=off"
        )
        _as_owner(
            *(self.programs / "pg_ctl", "-D", self.folder / "data", "-o", options, "-l", self.folder / "log"),
            *("-w", "start"),
        )


def remade(server: Server, name: str, columns: str, *rows: str) -> str:
    """A table of the server with these rows, and its address."""
    server.run(f"DROP TABLE IF EXISTS {name} CASCADE", f"CREATE TABLE {name} ({columns})")
    if rows:
        server.run(f"INSERT INTO {name} VALUES {', '.join(rows)}")
    return server.table(name)


def why_not() -> str | None:
    """Why no server can be started here, or None."""
    if find_spec("adbc_driver_postgresql") is None:
        return "the package adbc-driver-postgresql is not installed"
    if _programs() is None:
        return "no PostgreSQL server is installed (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and (_owner() is None or shutil.which("runuser") is None):
        return "PostgreSQL does not run as root, and there is no user postgres to run it as"
    return None


@contextmanager
def running_server() -> Iterator[Server]:
    """A server with its own data, port and password; the password stands in a file that PGPASSFILE names."""
    programs = _programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="margent-postgres-"))
    owner = _owner()
    if os.geteuid() == 0 and owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    folder.chmod(0o755)
    password = secrets.token_hex(16)
    (folder / "password").write_text(password)
    (folder / "password").chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Server(port, password, folder, programs)
    before = os.environ.get("PGPASSFILE")
    try:
        _as_owner(
            *(programs / "initdb", "-D", folder / "data", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C"),
            *("-U", "postgres", "--no-sync", f"--pwfile={folder / 'password'}"),
        )
        server.start()
        entry = folder / "pgpass"
        entry.write_text(f"127.0.0.1:{port}:*:postgres:{password}\n")
        entry.chmod(0o600)
        os.environ["PGPASSFILE"] = str(entry)
        yield server
    finally:
        if before is None:
            os.environ.pop("PGPASSFILE", None)
        else:
            os.environ["PGPASSFILE"] = before
        try:
            server.stop()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_or_skip() -> Iterator[Server]:
    """A running server, or a skipped test with the reason."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_server() as server:
        yield server


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    program = found[-1] if found else None if on_path is None else Path(on_path)
    return None if program is None else program.parent


def _owner() -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


def _as_owner(*command: object) -> None:
    words = [str(word) for word in command]
    if os.geteuid() == 0:
        words = ["runuser", "-u", "postgres", "--", *words]
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd="/tmp"
    )
