"""Structural zeros and contradictions against brute force: every combination of cells of small tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.codec import Codec
from margent.schema.layout import layout_of
from margent.schema.read import schema_from_json
from tests.rules.oracle import Reader
from tests.rules.strategies import document, narrow_fields, obeying, rules_for


def cells_of(field: Mapping[str, Any]) -> list[str]:
    """All texts that the codes of a narrow field stand for, in the order of its codes (missing cells as empty)."""
    bounds = field["constraints"]
    values = field.get("categories") or [str(i) for i in range(bounds["minimum"], bounds["maximum"] + 1)]
    special = field.get("margent", {}).get("special", [])
    return [*values, *special, *[""] * (not bounds.get("required"))]


def rows_of(fields: list[dict[str, Any]]) -> Iterator[tuple[tuple[int, ...], dict[str, str]]]:
    cells = [list(enumerate(cells_of(field))) for field in fields]
    names = [field["name"] for field in fields]
    for combination in product(*cells):
        yield (
            tuple(code for code, _ in combination),
            dict(zip(names, (text for _, text in combination), strict=True)),
        )


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_zeros_and_contradictions_are_those_of_enumeration(data: st.DataObject) -> None:
    fields = data.draw(narrow_fields())
    rules = data.draw(rules_for(fields))
    reader = Reader(fields)
    good = [(codes, row) for codes, row in rows_of(fields) if all(reader.obeys(row, rule) for rule in rules)]
    speaks = {name for rule in rules for name in spoken(rule)}
    contradictory = not good or any(all(reader.value(row, name) is None for _, row in good) for name in speaks)
    for rule in rules:
        if rule.keys() & {"order", "sum", "equal"}:
            names = spoken(rule)
            contradictory |= all(any(reader.value(row, name) is None for name in names) for _, row in good)
    if contradictory:
        assert all(pointer.startswith("/margent/rules/") for pointer in faults_of(fields, rules))
        return
    schema = schema_from_json(document(fields, rules))
    assert schema.rulebook is not None
    codec, zeros = Codec(schema), schema.rulebook.zeros
    everything = np.array([codes for codes, _ in rows_of(fields)])
    columns = {name: everything[:, place] for place, name in enumerate(codec.domain.names)}
    allowed = {tuple(codes) for codes in everything[obeying(zeros, columns, len(everything))].tolist()}
    assert allowed == {codes for codes, _ in good}
    for place, name in enumerate(codec.domain.names):
        if name in zeros.possible:
            assert {codes[place] for codes, _ in good} <= set(np.flatnonzero(zeros.possible[name]).tolist())


def spoken(rule: Mapping[str, Any]) -> list[str]:
    """The columns of a rule, from its JSON."""
    if "if" in rule:
        return [*rule["if"], *rule["then"]]
    if "never" in rule:
        return list(rule["never"])
    if "sum" in rule:
        return [*rule["sum"], rule["equals"]]
    return list(rule.get("equal") or rule.get("order") or [*rule["determines"], rule["column"]])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_combinations_of_bins_are_allowed_exactly_where_some_values_obey(data: st.DataObject) -> None:
    names = ("i", "j", "k")
    fields: list[dict[str, Any]] = []
    for name in names:
        low = data.draw(st.integers(-3, 3))
        high = low + data.draw(st.integers(1, 7))
        count = data.draw(st.integers(1, min(3, high - low + 1)))
        block: dict[str, Any] = {"bins": count}
        field = {"name": name, "type": "integer", "constraints": {"minimum": low, "maximum": high, "required": True}}
        fields.append(field | {"margent": block})
    pair = st.permutations(names).map(lambda order: list(order[:2]))
    kinds = st.one_of(
        st.builds(lambda order, strict: {"order": order, "strict": strict}, pair, st.booleans()),
        st.builds(
            lambda order, strict: {"order": list(order), "strict": strict}, st.permutations(names), st.booleans()
        ),
        st.permutations(names).map(lambda order: {"sum": list(order[:2]), "equals": order[2]}),
        pair.map(lambda order: {"equal": order}),
    )
    rules = data.draw(st.lists(kinds, min_size=1, max_size=3))
    reader = Reader(fields)
    bare = schema_from_json(document(fields, []))
    layouts = [layout_of(field, bare.missing_of(field)) for field in bare.modelled]
    expected = set()
    ranges = [range(field["constraints"]["minimum"], field["constraints"]["maximum"] + 1) for field in fields]
    for values in product(*ranges):
        row = {name: str(value) for name, value in zip(names, values, strict=True)}
        if all(reader.obeys(row, rule) for rule in rules):
            expected.add(tuple(layout.code_of(row[name]) for layout, name in zip(layouts, names, strict=True)))
    try:
        schema = schema_from_json(document(fields, rules))
    except SchemaError:
        assert not expected
        return
    assert schema.rulebook is not None
    codes = np.array(list(product(*(range(layout.values) for layout in layouts))))
    columns = {name: codes[:, place] for place, name in enumerate(names)}
    held = obeying(schema.rulebook.zeros, columns, len(codes))
    assert {tuple(each) for each in codes[held].tolist()} == expected


def faults_of(fields: list[dict[str, Any]], rules: list[Any]) -> dict[str, str]:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(document(fields, rules))
    return {fault.pointer: fault.message for fault in caught.value.faults}


AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}}
STATUS = {"name": "status", "type": "string", "categories": ["never", "married"]}
BINNED = {"name": "income", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}, "margent": {"bins": 10}}
OTHER = BINNED | {"name": "wages"}
DAY = {
    "name": "day",
    "type": "date",
    "constraints": {"minimum": "2020-01-01", "maximum": "2020-03-01"},
    "margent": {"bins": "month"},
}


def test_every_misunderstood_rule_is_named_at_once() -> None:
    rules = [
        3,
        {"when": {}},
        {"if": {"age": 3}},
        {"if": {"age": {"under": 3}}, "then": {"status": "never"}},
        {"never": {"nobody": 1}},
        {"order": ["age", "day"]},
        {"order": ["age"]},
        {"sum": ["age"], "equals": "status"},
        {"equal": ["age", "status"]},
        {"never": {"status": "divorced"}},
        {"never": {"income": {"below": 15}}},
        {"determines": ["status"], "column": "age", "mapping": {"never": 3}},
        {"determines": ["status"], "column": "age", "mapping": {"never": 3, "married": "x"}},
        {"order": ["age", "income"], "strikt": True},
    ]
    faults = faults_of([AGE, STATUS, BINNED, DAY], rules)
    places = {pointer.split("/")[3] for pointer in faults}
    assert places == {str(place) for place in range(len(rules))}
    assert "inside the bin '10 to 19'" in faults["/margent/rules/10/never/income/below"]
    assert "lacks lines" in faults["/margent/rules/11/mapping"]
    assert "did you mean 'strict'" in faults["/margent/rules/13/strikt"]


def test_contradictions_name_the_rules_that_make_them_and_no_others() -> None:
    rules = [
        {"if": {"age": {"below": 15}}, "then": {"status": "never"}},
        {"order": ["wages", "income"]},
        {"if": {"age": {"below": 15}}, "then": {"status": "married"}},
        {"never": {"age": {"atLeast": 15}}},
        {"order": ["income", "wages"], "strict": True},
        {"never": {"job": ["never", "married"]}},
    ]
    faults = faults_of([AGE, STATUS, STATUS | {"name": "job"}, BINNED, OTHER], rules)
    assert set(faults) == {"/margent/rules/3", "/margent/rules/4", "/margent/rules/5"}
    assert "/margent/rules/0, /margent/rules/2" in faults["/margent/rules/3"]
    assert "/margent/rules/1 together" in faults["/margent/rules/4"]
    assert "no value of 'job'" in faults["/margent/rules/5"]


def test_tables_above_the_cap_are_refused_with_their_size() -> None:
    wide = [
        {"name": name, "type": "integer", "constraints": {"minimum": 0, "maximum": 9999}, "margent": {"bins": 500}}
        for name in ("a", "b", "c")
    ]
    message = faults_of(wide, [{"sum": ["a", "b"], "equals": "c"}])["/margent/rules/0"]
    assert "501 ('a') x 501 ('b') x 501 ('c') = 125,751,501" in message
    assert "fewer bins" in message


def chain(columns: int, *, required: bool = True, bins: int = 1) -> tuple[list[dict[str, Any]], list[str]]:
    names = [f"x{place}" for place in range(columns)]
    fields = [
        {
            "name": name,
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 999, "required": required},
            "margent": {"bins": bins},
        }
        for name in names
    ]
    return fields, names


def test_rules_over_more_columns_than_a_table_can_have_are_refused() -> None:
    fields, names = chain(65)
    fields.append(STATUS)
    pairs = [{"order": [one, other], "strict": True} for one, other in pairwise(names)]
    mapping = [[*[None] * 64, 0]]
    for rules in (
        [{"order": names, "strict": True}],
        [{"order": names}],
        [{"sum": names[1:], "equals": names[0]}],
        [{"equal": names}],
        pairs,
        [{"determines": names[1:], "column": names[0], "mapping": mapping}],
    ):
        message = faults_of(fields, rules)[f"/margent/rules/{len(rules) - 1}"]
        assert message == "links 65 columns at once, and one table can have 64; split the rule into smaller ones"
    conditions = {name: {"atMost": 999} for name in names[:23]}
    assert (
        "links 23 columns at once, and one table can have 22"
        in faults_of(fields, [{"never": conditions}])["/margent/rules/0"]
    )
    # What follows takes a table for each column, and texts one for each pair.
    schema_from_json(document(fields, [{"if": {"status": "never"}, "then": {name: {"atMost": 999} for name in names}}]))
    texts = [STATUS | {"name": f"t{place}"} for place in range(70)]
    schema_from_json(document(texts, [{"equal": [field["name"] for field in texts]}]))


def test_chains_of_as_many_columns_as_can_be_are_narrowed_to_their_end() -> None:
    fields, names = chain(64)
    pairs = [{"order": [one, other], "strict": True} for one, other in pairwise(names)]
    for rules in ([{"order": names, "strict": True}], pairs, pairs[::-1]):
        for last, good in ((63, True), (62, False)):
            fields[-1]["constraints"]["maximum"] = last
            if good:
                schema_from_json(document(fields, rules))
            else:
                assert faults_of(fields, rules)


def test_all_tables_of_a_schema_have_one_room() -> None:
    fields, names = chain(21, required=False)
    message = faults_of(fields, [{"order": names, "strict": True}])["/margent/rules/0"]
    assert "together can have 33,554,432 combinations of codes, and this rule's does not fit any more" in message
    flags = [{"name": f"q{place}", "type": "boolean"} for place in range(42)]
    rules = [{"never": {f"q{place + first}": True for place in range(21)}} for first in range(21)]
    assert list(faults_of(flags, rules)) == ["/margent/rules/15"]
