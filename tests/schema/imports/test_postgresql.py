"""PostgreSQL definitions: types, enums, CHECKs as people and pg_dump write them; rows and statements are not read."""

from __future__ import annotations

import pytest

from margent.errors import SchemaError, UsageError
from margent.schema.imports.postgresql import from_postgresql
from margent.schema.imports.sql_checks import MAX_DEPTH, read_check
from margent.schema.imports.sql_tokens import sql_statements
from tests.schema.imports.drafts import by_name

DUMP = """
-- made up
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
\\connect somewhere
/* a comment /* in a comment ; */ ; */
CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'it''s');
CREATE FUNCTION f() RETURNS int AS $body$ SELECT 1; CREATE TABLE trap (x int); $body$ LANGUAGE sql;
CREATE TABLE public.people (
    id bigint NOT NULL,
    "Sex" character varying(1) NOT NULL CHECK ("Sex" IN ('F', 'M')),
    age integer DEFAULT 3 CHECK (age >= 0 AND age < 111),
    pay numeric(8,2) DEFAULT NULL,
    whole numeric(5) CHECK (whole BETWEEN -5 AND 5),
    feels public.mood DEFAULT 'ok'::public.mood NOT NULL,
    born date CHECK (born BETWEEN DATE '1900-01-01' AND '2020-12-31'::date),
    at timestamp(6) with time zone,
    local timestamp without time zone,
    ok boolean,
    u uuid,
    extra jsonb,
    tags text[],
    st text,
    k integer CHECK (k IS NULL OR (5 < k AND k <= 9)),
    half integer CHECK (half IS NOT NULL AND (half = 1 OR half = 2 OR half = 4)),
    r smallint REFERENCES other(a) ON DELETE CASCADE,
    area geometry,
    CONSTRAINT pay_check CHECK (((pay >= (0)::numeric) AND (pay <= 1000.5))),
    CONSTRAINT st_check CHECK (((st)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))),
    CHECK (age <= id), UNIQUE (age)
);
CREATE TABLE public.other (a int);
COPY public.people (id, "Sex") FROM stdin;
1\tsecret'; DROP "x
\\.
ALTER TABLE ONLY public.people ADD CONSTRAINT pk PRIMARY KEY (id);
ALTER TABLE public.people ALTER COLUMN st SET NOT NULL;
COMMENT ON COLUMN public.people.age IS 'Age in years';
COMMENT ON TABLE public.people IS 'Everybody';
INSERT INTO people VALUES (1, 'secret');
"""


def test_a_dump() -> None:
    made = from_postgresql(DUMP, "dump.sql", "people")
    fields = by_name(made)
    document = made.draft.document
    assert (document["name"], document["description"]) == ("people", "Everybody")
    assert fields["id"] == {"type": "integer", "margent": {"role": "identifier"}}
    assert fields["Sex"] == {"type": "string", "categories": ["F", "M"], "constraints": {"required": True}}
    assert fields["age"]["constraints"] == {"minimum": 0, "maximum": 110}
    assert fields["age"]["description"] == "Age in years"
    assert fields["pay"]["constraints"] == {"minimum": 0, "maximum": 1000.5}
    assert fields["pay"]["margent"] == {"bins": "todo", "decimals": 2}
    assert fields["whole"] == {"type": "integer", "constraints": {"minimum": -5, "maximum": 5}}
    assert fields["feels"]["categories"] == ["sad", "ok", "it's"]
    assert fields["feels"]["constraints"] == {"required": True}
    assert fields["born"]["constraints"] == {"minimum": "1900-01-01", "maximum": "2020-12-31"}
    assert [fields[name]["margent"]["timeZone"] for name in ("at", "local")] == ["UTC", "naive"]
    assert fields["ok"]["trueValues"][0] == "t"
    assert fields["u"]["margent"] == {"role": "identifier"}
    assert {name for name in fields if fields[name].get("margent") == {"role": "drop"}} == {"extra", "tags"}
    assert fields["st"] == {"type": "string", "categories": ["a", "b"], "constraints": {"required": True}}
    assert fields["k"]["constraints"] == {"minimum": 6, "maximum": 9}
    assert fields["half"] == {"type": "integer", "categories": [1, 2, 4], "constraints": {"required": True}}
    assert fields["r"]["type"] == "integer"
    assert fields["area"]["type"] == "todo"
    told = "\n".join(map(str, made.left_out))
    assert "secret" not in told + made.draft.text
    for words in (
        "SET: not read",
        "COPY: not read",
        "INSERT: not read",
        "CREATE FUNCTION",
        "a CHECK is not read",
        "'r'",
    ):
        assert words in told
    assert "SELECT" in told
    assert "trap" not in told


def test_tables_are_chosen_by_name() -> None:
    with pytest.raises(UsageError, match=r"2 tables.*'public.people', 'public.other'"):
        from_postgresql(DUMP, "dump.sql")
    assert set(by_name(from_postgresql(DUMP, "dump.sql", "public.other"))) == {"a"}
    with pytest.raises(UsageError, match="no such table"):
        from_postgresql(DUMP, "dump.sql", "trap")


@pytest.mark.parametrize(
    ("check", "low", "high"),
    [
        ("0 <= a AND a <= 9", 0, 9),
        ("a > 0 and a < 9", 1, 8),
        ("(a)::integer BETWEEN (-3) AND 4", -3, 4),
        ("a BETWEEN 0 AND 9 AND a BETWEEN 2 AND 20", 2, 9),
        ("NOT (a > 5)", "todo", "todo"),
        ("a > 5 OR a < 3", "todo", "todo"),
        ("a + 1 > 5", "todo", "todo"),
        ("f(a) > 5", "todo", "todo"),
        ("b > 5", "todo", "todo"),
        ("a <> 5", "todo", "todo"),
        ("a >= 3 AND f(a, (b)) < 3 AND length(b) IN (1)", 3, "todo"),
        ("a >= 3 AND (a < b)", 3, "todo"),
        ("a >= E'\\x41'", "todo", "todo"),
        ("a >= 9 AND a <= 3", "todo", "todo"),
    ],
)
def test_checks(check: str, low: object, high: object) -> None:
    fields = by_name(from_postgresql(f"CREATE TABLE t (a int, b int, CHECK ({check}))", "t.sql"))
    assert fields["a"]["constraints"] == {"minimum": low, "maximum": high}


def test_deep_and_broken_texts_are_refused_or_left() -> None:
    for bad in ("CREATE TABLE t (a int) /* ", "CREATE TABLE t (a text DEFAULT 'x", 'CREATE TABLE "t (a int)', "$a$ x"):
        with pytest.raises(SchemaError, match="does not end"):
            from_postgresql(bad, "t.sql")
    for none in ("", ";;;", "CREATE TABLE t", "CREATE TABLE t (", "CREATE TABLE t AS SELECT 1", "DROP TABLE t"):
        with pytest.raises(SchemaError):
            from_postgresql(none, "t.sql")
    with pytest.raises(SchemaError, match="twice"):
        from_postgresql("CREATE TABLE t (a int, A text)", "t.sql")
    for deep in ("(" * (MAX_DEPTH + 5) + "a" + ")" * (MAX_DEPTH + 5), "NOT " * 100_000 + "a", "(" * 100_000):
        (tokens,) = sql_statements(deep, "t.sql")
        assert read_check(tokens) == ([], False)
