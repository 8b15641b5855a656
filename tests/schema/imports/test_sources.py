"""Formats are told by their content where that is clear; whatever a file holds, a draft or a clear error comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError, UsageError
from margent.schema.imports.sources import FORMATS, import_schema
from tests.schema.imports.drafts import holds_together
from tests.schema.imports.test_nist import COLUMNS
from tests.schema.imports.test_pandera import schema_of
from tests.schema.imports.test_postgresql import DUMP
from tests.schema.imports.test_redcap import API, LINES, WEB
from tests.schema.imports.test_sdnist import DICTIONARY
from tests.schema.imports.test_sdv import GUESTS

EXAMPLES = {
    "nist": json.dumps({"schema": COLUMNS}),
    "sdnist": json.dumps({name: said for name, said in DICTIONARY.items() if name != "ODD"}),
    "sdv": json.dumps(GUESTS),
    "redcap": WEB + LINES,
    "pandera": json.dumps(schema_of(age={"dtype": "int64"})),
    "postgresql": DUMP.replace("CREATE TABLE public.other", "DROP TABLE"),
    "sheet": "name,type\nage,int\n",
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats_are_told_by_content(name: str, tmp_path: Path) -> None:
    path = tmp_path / "some.file"
    path.write_text("\ufeff" + EXAMPLES[name], encoding="utf-8")
    told, said = import_schema(path), import_schema(path, file_format=name)
    assert told == said
    holds_together(told)
    assert told.taken.count("column") >= 1


def test_api_headers_are_told_too(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(API + LINES)
    assert import_schema(path).source == "a REDCap data dictionary"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "say which with --format"),
        (b"a,b\n1,2\n", "say which with --format"),
        (b"", "say which with --format"),
        (b'{"fields": [{"name": "a"}]}', "Table Schema already"),
        (b"schema_type: dataframe\ncolumns:\n", "schema.to_json()"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1, "a": 2}', "more than once"),
        (b"\xff\xfe", "UTF-8"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_what_is_not_clear_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises((UsageError, SchemaError)) as caught:
        import_schema(path)
    assert said in str(caught.value)
    if "--format" in said:
        assert all(name in str(caught.value) for name in FORMATS)


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(EXAMPLES["redcap"])
    with pytest.raises(UsageError, match="not one of"):
        import_schema(path, file_format="excel")
    with pytest.raises(UsageError, match="leave it out"):
        import_schema(path, table="t")
    with pytest.raises(SchemaError, match="no such file"):
        import_schema(tmp_path / "none")


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=5), st.sampled_from(["int64", "str", "categorical", "N",
          "2020-01-01"]),
)  # fmt: skip
words = st.sampled_from(
    ["schema", "dtype", "kind", "values", "min", "max", "bins", "names", "null_value", "has_null", "runs",
          "description",
     "tables", "columns", "fields", "sdtype", "type", "subtype", "order", "pii", "primary_key", "alternate_keys",
     "datetime_format", "isin", "in_range", "min_value", "max_value", "ge", "lt", "checks", "options", "check_name",
     "nullable", "unique", "schema_type", "step_size", "max_records_per_individual", "a", "N", "501"]
)  # fmt: skip
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(words, inner, max_size=5)),
    max_leaves=25,
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([name for name in FORMATS if FORMATS[name].holds == "json"]), documents, documents)
def test_any_json_gives_a_draft_or_a_clear_error(tmp_path: Path, name: str, whole: Any, part: Any) -> None:
    path = tmp_path / "x.json"
    shells = [
        whole,
        {"schema": {"a": part, "b": {"dtype": "int", "values": part}}},
        {"columns": {"a": part}},
        {"a": part},
    ]
    for document in shells:
        path.write_text(json.dumps(document))
        attempt(path, name)


def attempt(path: Path, name: str | None) -> None:
    try:
        made = import_schema(path, file_format=name)
    except (SchemaError, UsageError):
        return
    holds_together(made)


cell = st.one_of(
    st.sampled_from(["", "radio", "checkbox", "text", "integer", "date_ymd", "1, a | 2, b", "y", "0", "9",
                     "1, a | 1, b", "todo", "string", "number", "x|y", "0|5|9", "width 2", "month", "yes", "id",
                     "table", "{}", '{"margent": {"bins": 2}}']),
    st.text(st.characters(codec="utf-8"), max_size=5),
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["redcap", "sheet"]), st.lists(st.lists(cell, max_size=13), max_size=5), st.text(max_size=20))
def test_any_csv_gives_a_draft_or_a_clear_error(tmp_path: Path, name: str, rows: list[list[str]], tail: str) -> None:
    header = (
        API
        if name == "redcap"
        else "name,type,minimum,maximum,values,bins,missing,special,unit,maxRows,more,role,labels\n"
    )
    quoted = "\n".join(",".join('"' + each.replace('"', '""') + '"' for each in row) for row in rows)
    path = tmp_path / "x.csv"
    path.write_text(header + quoted + "\n" + tail, encoding="utf-8", errors="replace")
    attempt(path, name)


PIECES = ("CREATE TABLE t (a int, ", "b text", "CHECK (", "a > 5", "AND", "OR", "NOT", "(", ")", ",", ";",
          "IN ('x')", "::", "'q'",
          "PRIMARY KEY (a)", "c numeric(4,", "2)", "ARRAY[", "]", "BETWEEN 1 AND 2",
          "COMMENT ON COLUMN t.a IS 'x'", "$$", "--", "/*",
          "CREATE TYPE m AS ENUM ('a','a')", "m m", "\n", "COPY t FROM stdin;", "GENERATED ALWAYS AS IDENTITY",
          '"', "'", "IS NULL")  # fmt: skip


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=25), st.booleans())
def test_any_sql_gives_a_draft_or_a_clear_error(tmp_path: Path, pieces: list[str], begun: bool) -> None:
    path = tmp_path / "x.sql"
    path.write_text(
        ("CREATE TABLE t (a int, d date, " if begun else "") + " ".join(pieces), encoding="utf-8", errors="replace"
    )
    attempt(path, "postgresql")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60), st.sampled_from([None, *FORMATS]))
def test_any_bytes_give_a_draft_or_a_clear_error(tmp_path: Path, content: bytes, name: str | None) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    attempt(path, name)
