"""Schemas of a megabyte: work that follows their length, and errors that somebody can read."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest

from margent.errors import Fault, SchemaError
from margent.schema.check import MOST_CODES
from margent.schema.fields import Dropped
from margent.schema.read import schema_from_json
from margent.schema.strict_json import strict_faults

FLAG = {"name": "a", "type": "boolean"}
DAY = {"name": "d0", "type": "date", "constraints": {"minimum": "2000-01-01", "maximum": "2000-02-01"}}


def document(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"fields": list(fields), "margent": {"unit": "row"}} | more


def error_of(given: dict[str, Any]) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(given)
    return caught.value


@pytest.mark.parametrize(
    "given",
    [
        document(FLAG, missingValues=[f"t{place}" for place in range(80_000)]),
        document(
            {
                "name": "n",
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 9},
                "margent": {"special": [f"s{place}" for place in range(80_000)]},
            }
        ),
        document(FLAG, *[{"name": f"x{n}", "type": "string", "margent": {"role": "drop"}} for n in range(30_000)]),
    ],
    ids=["missing tokens", "special codes", "fields"],
)
def test_long_lists_take_work_by_their_length(given: dict[str, Any]) -> None:
    started = time.process_time()
    schema_from_json(given)
    assert time.process_time() - started < 20  # a second or two; by the square of the length it was a minute


def test_conditions_on_columns_of_many_codes_look_up_each_value_once() -> None:
    many = {"name": "n", "type": "integer", "constraints": {"minimum": 0, "maximum": 8_999, "required": True}}
    many["margent"] = {"bins": 9_000}
    rules = [{"never": {"n": list(range(8_000)), "a": True}}, {"never": {"n": {"atLeast": 8_500}, "a": False}}]
    given = document(FLAG, many)
    given["margent"]["rules"] = rules
    started = time.process_time()
    schema = schema_from_json(given)
    assert time.process_time() - started < 20
    assert schema.rulebook is not None
    classes = [factor.classes[factor.columns.index("n")] for factor in schema.rulebook.zeros.factors]
    assert [int(own.sum()) for own in classes] == [8_000, 500]


MILLION = {"type": "integer", "constraints": {"minimum": 0, "maximum": 999_999}, "margent": {"bins": {"width": 1}}}
UNWRITABLE = {
    "type": "number",
    "constraints": {"minimum": 0, "maximum": 9},
    "margent": {"bins": 9_000, "decimals": 0},
}
CENTURIES = {
    "type": "datetime",
    "constraints": {"minimum": "1800-01-01T00:00:00", "maximum": "2200-01-01T00:00:00"},
    "margent": {"bins": "hour", "timeZone": "naive"},
}


@pytest.mark.parametrize(
    ("field", "most", "last"),
    [(MILLION, 4_000_000, 4), (UNWRITABLE, 40_000, 4), (CENTURIES, 4_000_000, 3)],
    ids=["good", "empty", "many"],
)
def test_codes_are_counted_over_all_columns_faulty_ones_included(
    monkeypatch: pytest.MonkeyPatch, field: dict[str, Any], most: int, last: int
) -> None:
    """A few kilobytes may ask for a thousand columns of a million bins: minutes of work, and of memory a hundred GB."""
    assert MOST_CODES == 4_000_000
    monkeypatch.setattr("margent.schema.check.MOST_CODES", most)
    error = error_of(document(*[{"name": f"c{place}", **field} for place in range(1_000)]))
    stopped = {fault.pointer: fault.message for fault in error.faults}[f"/fields/{last}"]
    assert f"codes or more in all, and at most {most:,}" in stopped
    assert {fault.pointer.split("/")[2] for fault in error.faults} <= {str(place) for place in range(last + 1)}


def test_as_many_codes_as_the_limit_says_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is the number said: seen at a smaller one, since four million codes take seconds."""
    small = {"type": "integer", "constraints": {"minimum": 0, "maximum": 8, "required": True}}
    monkeypatch.setattr("margent.schema.check.MOST_CODES", 40)
    four = [{"name": f"c{place}", **small} for place in range(4)]  # ten codes each: nine values, and unreadable cells
    assert len(schema_from_json(document(*four)).fields) == 4
    one = {"name": "one", "type": "integer", "constraints": {"minimum": 1, "maximum": 1, "required": True}}
    assert "41 codes" in str(error_of(document(*four, one)))


def test_the_text_of_an_error_lists_the_first_faults_and_counts_the_others() -> None:
    error = error_of(document({"name": "a", "type": "string", "categories": ["x"] * 50_000}))
    assert len(error.faults) == 49_999
    lines = str(error).splitlines()
    assert lines[0] == "the schema has 49999 faults:"
    assert lines[-1] == "  and 49,899 more; correct these first"
    assert len(lines) == 102
    assert len(str(SchemaError([Fault("", "x")] * 100)).splitlines()) == 101


def test_long_texts_in_faults_lose_their_middle() -> None:
    error = error_of(document({"name": "a", "type": "string", "categories": ["y" * 100_000] * 9}))
    assert len(str(error)) < 20_000
    assert str(error).endswith("y is also entry 0; keep one")
    assert "field 'a': yyy" in str(error)
    long = error_of(document({"name": "a" * 100_000, "type": "boolean"} | {f"key{place}": 1 for place in range(1000)}))
    assert Fault("/fields/0/name", "has 100,000 letters; a name has at most 1,000") in long.faults
    assert sum(len(str(fault)) for fault in long.faults) < 1_000_000


def test_keys_are_guessed_for_the_first_unknown_ones_of_an_object() -> None:
    error = error_of(document(FLAG | {f"mininum{place}": 1 for place in range(5_000)}))
    guessed = [fault for fault in error.faults if "did you mean" in fault.message]
    assert (len(error.faults), len(guessed)) == (5_000, 100)


def test_dates_that_follow_one_another_end_somewhere() -> None:
    def follows(place: int) -> dict[str, Any]:
        apart = {"field": f"d{place - 1}", "unit": "day", "minimum": 0, "maximum": 1}
        return {"name": f"d{place}", "type": "date", "margent": {"relativeTo": apart}}

    base = DAY | {"margent": {"bins": "month"}}
    schema_from_json(document(base, *[follows(place) for place in range(1, 17)]))
    error = error_of(document(base, *[follows(place) for place in range(1, 4_000)]))
    assert error.faults[0].pointer == "/fields/17/margent/relativeTo/field"
    assert "follows more than 16 dates" in error.faults[0].message


def test_a_long_key_above_many_values_is_written_out_for_faults_only() -> None:
    tracemalloc.start()
    try:
        assert strict_faults({"k" * 100_000: [1] * 5_000}) == []
        assert len(strict_faults({"k": [float("nan")] * 5_000})) == 1_000
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_missing_tokens_of_many_columns_are_counted_together() -> None:
    flags = [FLAG | {"name": f"f{place}"} for place in range(2_000)]
    error = error_of(document(*flags, missingValues=[f"t{place}" for place in range(200)]))
    assert [fault.pointer for fault in error.faults] == ["/missingValues"]
    assert "are 400,000 in all, and at most 250,000 are possible" in error.faults[0].message


def test_fields_made_in_python_have_the_same_limits() -> None:
    with pytest.raises(SchemaError, match="a name has at most 1,000"):
        Dropped("a" * 1_001)
