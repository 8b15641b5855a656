"""PostgreSQL: which relations come in one order, and which are queries in truth; against a real server."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from table_schemas import DECLARED, names_only, read_rows, rows_of
from tests.postgres_server import Server, remade

import margent
from margent import Budget, BudgetFile, Category, Identifier, PersonUnit, Schema
from margent.counts.contribution import KeptRows
from margent.counts.identity import Identity
from margent.errors import TableError, UsageError
from margent.tables.database import BROKEN
from margent.tables.options import ReadOptions
from margent.tables.postgres_catalog import scans_plainly
from margent.tables.source import open_table

PERSONS = Schema([Identifier("id"), Category("a", ["x", "y"])], unit=PersonUnit("id", 1))
ROWS = "SELECT 'p' || n % 100 AS id, substr('xy', 1 + n % 2, 1) AS a FROM generate_series(1, 1000) g(n)"


@pytest.fixture
def elsewhere(postgres: Server) -> Iterator[str]:
    """The end of a statement that makes a foreign table: 1000 rows of 100 persons, in another order each time."""
    if not postgres.run("SELECT name FROM pg_available_extensions WHERE name = 'postgres_fdw'"):
        pytest.skip("the server comes without postgres_fdw (in Debian it is in the package of the server)")
    place, user = f"host '127.0.0.1', port '{postgres.port}', dbname 'postgres'", "postgres"
    postgres.run(
        "CREATE EXTENSION IF NOT EXISTS postgres_fdw",
        "DROP SERVER IF EXISTS elsewhere CASCADE",
        "DROP TABLE IF EXISTS whole CASCADE",
        f"CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({place})",
        f"CREATE USER MAPPING FOR {user} SERVER elsewhere OPTIONS (user '{user}', password '{postgres.password}')",
        f"CREATE OR REPLACE VIEW shuffled AS SELECT * FROM ({ROWS}) rows ORDER BY random()",
    )
    yield "SERVER elsewhere OPTIONS (table_name 'shuffled')"
    postgres.run("DROP SERVER elsewhere CASCADE", "DROP TABLE IF EXISTS whole CASCADE", "DROP VIEW shuffled")


FOREIGN = {
    "itself": ("CREATE FOREIGN TABLE whole (id text, a text) {}",),
    "child": ("CREATE TABLE whole (id text, a text)", "CREATE FOREIGN TABLE part () INHERITS (whole) {}"),
    "grandchild": (
        "CREATE TABLE whole (id text, a text)",
        "CREATE TABLE half () INHERITS (whole)",
        "CREATE FOREIGN TABLE part () INHERITS (half) {}",
    ),
    "partition of a partition": (
        "CREATE TABLE whole (id text, a text) PARTITION BY LIST (a)",
        "CREATE TABLE half PARTITION OF whole DEFAULT PARTITION BY LIST (id)",
        "CREATE FOREIGN TABLE part PARTITION OF half DEFAULT {}",
    ),
}


def require_one_row_a_person(source: Any, persons: int) -> None:
    kept = KeptRows(source, Identity.of(PERSONS, PERSONS.unit), 1)  # type: ignore[arg-type]
    for _ in range(3):
        rows = Counter(name for batch in kept.batches() for name in batch.column("id").to_pylist())
        assert set(rows.values()) == {1}, "at most k rows of a person, in every pass"
        assert len(rows) == persons


@pytest.mark.parametrize("place", FOREIGN)
def test_a_part_on_another_server_does_not_loosen_the_bound_of_a_person(
    postgres: Server, elsewhere: str, place: str
) -> None:
    postgres.run(*(made.format(elsewhere) for made in FOREIGN[place]))
    assert read_rows(f"{postgres.place}?query=SELECT * FROM whole", "id", "a", query_is_row_wise=True) != read_rows(
        f"{postgres.place}?query=SELECT * FROM whole", "id", "a", query_is_row_wise=True
    ), "otherwise this test shows nothing"
    with open_table(postgres.table("whole"), PERSONS) as source:
        assert not source.from_query
        require_one_row_a_person(source, 100)
    with pytest.raises(UsageError, match="temporary copy"):
        open_table(postgres.table("whole"), PERSONS, ReadOptions(spool=False))


def test_a_foreign_partition_that_is_attached_during_a_run_does_not_either(postgres: Server, elsewhere: str) -> None:
    """Attaching waits for no reader, and a later statement sees the partition whatever the transaction's snapshot."""
    postgres.run(
        "CREATE TABLE whole (id text, a text) PARTITION BY LIST (a)",
        "CREATE TABLE part PARTITION OF whole FOR VALUES IN ('z')",
        f"CREATE FOREIGN TABLE late (id text, a text) {elsewhere}",
    )
    with open_table(postgres.table("whole"), PERSONS) as source:
        postgres.run("ALTER TABLE whole ATTACH PARTITION late DEFAULT")
        require_one_row_a_person(source, 100)


def test_children_that_a_plain_table_is_given_during_a_run_do_not_count(postgres: Server) -> None:
    address = remade(postgres, "alone", "a int", "(1)", "(2)")
    remade(postgres, "adopted", "a int", "(3)")
    with open_table(address, names_only("a"), ReadOptions(spool=False)) as source:
        assert rows_of(source) == [(1,), (2,)]
        postgres.run("ALTER TABLE adopted INHERIT alone")
        assert rows_of(source) == [(1,), (2,)]
    assert read_rows(address, "a") == [(1,), (2,), (3,)], "and from the next run on they do"


def test_a_table_that_is_not_a_heap_is_read_once(postgres: Server) -> None:
    postgres.run(
        "DROP TABLE IF EXISTS other_store",
        "DROP ACCESS METHOD IF EXISTS other",
        "CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler",
        "CREATE TABLE other_store (a int) USING other",
        "INSERT INTO other_store VALUES (1), (2)",
    )
    assert read_rows(postgres.table("other_store"), "a") == [(1,), (2,)]
    with pytest.raises(UsageError, match="temporary copy"):
        open_table(postgres.table("other_store"), names_only("a"), ReadOptions(spool=False))


PLANS = {
    '[{"Plan": {"Node Type": "Seq Scan", "Relation Name": "t"}}]': True,
    '[{"Plan": {"Node Type": "Seq Scan", "Plans": [{"Node Type": "Result"}]}}]': False,
    '[{"Plan": {"Node Type": "Custom Scan", "Custom Plan Provider": "Citus Adaptive"}}]': False,
    '[{"Plan": {"Node Type": "Append", "Plans": [{"Node Type": "Seq Scan"}]}}]': False,
    '[{"Plan": {}}]': False,
}


@pytest.mark.parametrize("plan", PLANS)
def test_only_one_plain_scan_is_believed_to_keep_its_order(plan: str) -> None:
    class Told:
        label = "postgresql:"

        def told(self, sql: str, values: Any = (), *, copied: bool = True) -> list[tuple[Any, ...]]:
            assert sql == "EXPLAIN (FORMAT JSON, COSTS OFF) SELECT NULL FROM t WHERE a = 1"
            assert not copied
            return [(plan,)]

    assert scans_plainly(Told(), "t", " WHERE a = 1") is PLANS[plan]


# --- row-level security


@pytest.fixture
def guarded(postgres: Server) -> str:
    """The address of a table whose policy looks at another table, for a role that it holds for."""
    remade(postgres, "guarded", "id text, a text")
    remade(postgres, "flagged", "id text")
    postgres.run(
        f"INSERT INTO guarded {ROWS}",
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'limited') THEN "
        f"CREATE ROLE limited LOGIN PASSWORD '{postgres.password}'; END IF; END $$",
        "ALTER ROLE limited NOBYPASSRLS",
        "GRANT SELECT ON guarded, flagged TO limited",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY unless_flagged ON guarded USING (NOT EXISTS (SELECT FROM flagged))",
    )
    entry, line = Path(os.environ["PGPASSFILE"]), f"127.0.0.1:{postgres.port}:*:limited:{postgres.password}\n"
    if line not in entry.read_text():
        entry.write_text(entry.read_text() + line)
    return f"postgresql://limited@127.0.0.1:{postgres.port}/postgres?table=guarded"


def test_what_policies_show_is_refused_before_the_charge_until_it_is_declared_and_then_recorded(
    guarded: str, tmp_path: Path
) -> None:
    file = BudgetFile(tmp_path / "people.budget", "people")
    file.init(Budget(3), unit="person:1")
    asked: dict[str, Any] = {"budget": Budget(1), "budget_file": file, "method": "independent", "rows": 1}
    with pytest.raises(UsageError, match=r"what row-level security shows .* --query-is-row-wise"):
        margent.synthesize(guarded, PERSONS, **asked)
    assert not file.balance().reservations
    release = margent.synthesize(guarded, PERSONS, read=DECLARED, **asked)
    assert len(file.balance().reservations) == 1
    assert release.transcript.from_query
    release.save(tmp_path / "OUT")
    assert "row-level security" in (tmp_path / "OUT" / "release.html").read_text()


def test_what_policies_show_is_read_once(postgres: Server, guarded: str) -> None:
    postgres.run("DROP POLICY unless_flagged ON guarded", "CREATE POLICY drawn ON guarded USING (random() < 0.5)")
    with open_table(guarded, PERSONS, DECLARED) as source:
        assert source.from_query
        rows = rows_of(source)
        assert rows == rows_of(source)
        assert 300 < len(rows) < 700


def test_a_table_is_plain_for_those_whom_no_policy_holds_for(postgres: Server, guarded: str) -> None:
    postgres.run("INSERT INTO flagged VALUES ('p1')")
    with open_table(postgres.table("guarded"), PERSONS, ReadOptions(spool=False)) as source:
        assert not source.from_query
        assert len(rows_of(source)) == 1000


def test_policies_that_begin_to_hold_during_a_run_end_it(postgres: Server, guarded: str) -> None:
    postgres.run("INSERT INTO flagged VALUES ('p1')", "ALTER ROLE limited BYPASSRLS")
    with open_table(guarded, PERSONS) as source:
        assert len(rows_of(source)) == 1000
        postgres.run("ALTER ROLE limited NOBYPASSRLS")
        with pytest.raises(TableError) as caught:
            rows_of(source)
        assert str(caught.value) == BROKEN


@pytest.mark.parametrize(("named", "asked"), [("family", True), ("kin", False)])
def test_the_policies_are_those_of_the_table_that_is_named(
    postgres: Server, guarded: str, named: str, asked: bool
) -> None:
    """``guarded`` becomes a child; PostgreSQL goes by its parent's policies alone, and so must the question."""
    postgres.run(
        "DROP TABLE IF EXISTS family, kin CASCADE",
        f"CREATE TABLE {named} (id text, a text)",
        f"ALTER TABLE guarded INHERIT {named}",
        f"GRANT SELECT ON {named} TO limited",
        "INSERT INTO flagged VALUES ('p1')",
        *([f"ALTER TABLE {named} ENABLE ROW LEVEL SECURITY"] * asked),
    )
    address = guarded.replace("table=guarded", f"table={named}")
    if asked:
        with pytest.raises(UsageError, match="row-level security"):
            open_table(address, PERSONS)
    with open_table(address, PERSONS, DECLARED) as source:
        assert source.from_query is asked
        assert len(rows_of(source)) == (0 if asked else 1000)
