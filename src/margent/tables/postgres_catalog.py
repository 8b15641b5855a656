"""What PostgreSQL's catalog tells of a relation: which one is meant, and whether its rows come in one order.

In one order come the rows of a plain table only: of one heap, scanned by itself. What has children (partitions, tables
that inherit) is read through them, and others may attach one while a run goes on, a foreign table too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from margent.errors import TableError
from margent.tables.address import Name, quoted_name
from margent.tables.database import VIEWED

# Before PostgreSQL 12 a table names no access method: it is a heap.
_RELATIONS = (
    "SELECT CAST(c.oid AS pg_catalog.text), CAST(n.nspname AS pg_catalog.text), CAST(c.relname AS pg_catalog.text), "
    "CAST(c.relkind AS pg_catalog.text), c.relkind = 'r' "
    "AND (c.relam = 0 OR EXISTS (SELECT FROM pg_catalog.pg_am a WHERE a.oid = c.relam AND a.amname = 'heap')) "
    "AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid), "
    "pg_catalog.row_security_active(c.oid) FROM pg_catalog.pg_class c "
    "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND "
)
_COLUMNS = (
    "SELECT CAST(attname AS pg_catalog.text), attnotnull, pg_catalog.format_type(atttypid, -1) "
    "FROM pg_catalog.pg_attribute WHERE CAST(attrelid AS pg_catalog.text) = $1 AND attnum > 0 AND NOT attisdropped"
)
_VIEWS = ("v", "m")
_SHOWN = "what row-level security shows this user of the table (a role with BYPASSRLS reads it as a plain table)"


class Catalog(Protocol):
    """A session in which the catalog can be asked, and what messages call its address."""

    label: str

    def told(self, sql: str, values: Sequence[str] = (), *, copied: bool = True) -> list[tuple[Any, ...]]:
        """The rows of a statement; with ``copied`` false, one that COPY does not take."""
        ...


@dataclass(frozen=True)
class Relation:
    """A table or view: ``alone`` is a plain table without children, ``filtered`` what policies hide rows of.

    A policy is a condition that may look at other rows, or at the clock, so what it leaves is a query's result. With
    children it is the policies of the relation that is named, and no others, by which PostgreSQL goes.

    Privacy: none: the catalog.
    """

    oid: str
    name: Name
    kind: str
    alone: bool
    filtered: bool

    @property
    def derived(self) -> bool:
        """Whether its rows are those of a query, which the operator must declare to be row-wise."""
        return self.filtered or self.kind in _VIEWS

    @property
    def called(self) -> str:
        """What the question for that declaration calls it."""
        return _SHOWN if self.filtered else VIEWED

    @property
    def plain(self) -> bool:
        """Whether its rows are those of one heap: they come in one order where the server scans it as it stands."""
        return self.alone and not self.derived

    @property
    def source(self) -> str:
        """Its name as SQL; of a plain table those children are left out that it is given later."""
        return f"ONLY {quoted_name(self.name)}" if self.plain else quoted_name(self.name)


def relation_named(catalog: Catalog, name: Name) -> Relation:
    """The table or view that is meant: by its schema, or the first on the search path.

    Privacy: none: the catalog.
    Raises: TableError where there is none, naming those whose names differ in capitals only.
    """
    *schema, table = name
    if schema:
        found = catalog.told(f"{_RELATIONS} c.relname = $1 AND n.nspname = $2", [table, *schema])
    else:
        found = catalog.told(f"{_RELATIONS} c.relname = $1 AND pg_catalog.pg_table_is_visible(c.oid)", [table])
    if len(found) == 1:
        oid, space, own, kind, alone, filtered = found[0]
        return Relation(oid, (space, own), kind, alone, filtered)
    near = catalog.told(f"{_RELATIONS} pg_catalog.lower(c.relname) = pg_catalog.lower($1)", [table])
    shown = sorted(quoted_name((space, own)) for _, space, own, *_ in near)
    hint = f"; it has {', '.join(shown)}" if shown else ""
    raise TableError(
        f"{catalog.label}: the database has no such table or view{hint}: names are taken letter by letter, and "
        "without SCHEMA. before it a table is looked for on the user's search path"
    )


def columns_of(catalog: Catalog, relation: Relation) -> list[tuple[str, bool, str]]:
    """Name, whether NULL is ruled out, and type of each column.

    Privacy: none: the catalog.
    """
    return [(name, required, kind) for name, required, kind in catalog.told(_COLUMNS, [relation.oid])]


def scans_plainly(catalog: Catalog, source: str, condition: str) -> bool:
    """Whether the server's plan is one scan of the stored rows and nothing else; an extension may have other plans.

    Citus, say, keeps the rows of what looks like a plain table on other servers, and takes them as they come.

    Privacy: none: the statement is planned and not run.
    """
    sql = f"EXPLAIN (FORMAT JSON, COSTS OFF) SELECT NULL FROM {source}{condition}"  # noqa: S608 (see quoted)
    ((text,),) = catalog.told(sql, copied=False)
    (plan,) = json.loads(text)
    return plan["Plan"].get("Node Type") == "Seq Scan" and "Plans" not in plan["Plan"]
