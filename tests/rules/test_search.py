"""The search for contradictions against brute force, and that all searches of a schema together have one limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import SchemaError
from margent.schema.allowed import Factor, Truth
from margent.schema.read import schema_from_json
from margent.schema.rule_check import contradictions
from margent.schema.rule_search import MOST_WORK, UndecidedError, Work, narrowed, refuted, solution
from margent.schema.rule_tables import Placed
from margent.schema.rules import Never


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Factor], dict[str, Truth]]:
    """Up to five columns of up to four codes, and tables over one to three of them, many of them over the same ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    names = [f"c{place}" for place in range(int(rng.integers(2, 6)))]
    sizes = {name: int(rng.integers(1, 5)) for name in names}
    factors = []
    for rule in range(int(rng.integers(1, 13))):
        columns = [str(name) for name in rng.permutation(names)[: int(rng.integers(1, 4))]]
        if rng.random() < 0.4 and len(names) > 2:
            pair = sorted(str(name) for name in rng.permutation(names)[:2])
            table = ~np.eye(sizes[pair[0]], sizes[pair[1]], dtype=np.bool_)
            factors.append(Factor((rule,), tuple(pair), tuple(np.arange(sizes[name]) for name in pair), table))
            continue
        classes = tuple(rng.integers(0, 2, sizes[name]) for name in columns)
        factors.append(Factor((rule,), tuple(columns), classes, rng.random((2,) * len(columns)) < 0.7))
    domains = {name: rng.random(size) < 0.9 for name, size in sizes.items()}
    return factors, domains


def rows(factors: Sequence[Factor], domains: dict[str, Truth]) -> list[dict[str, int]]:
    """Every row of codes that obeys."""
    found = []
    for codes in product(*(np.flatnonzero(own).tolist() for own in domains.values())):
        row = dict(zip(domains, codes, strict=True))
        if all(factor.holds([np.array([row[name]]) for name in factor.columns]).all() for factor in factors):
            found.append(row)
    return found


@settings(max_examples=300, deadline=None)
@given(network=networks(), preferring=st.booleans())
def test_a_row_is_found_exactly_where_one_obeys(
    network: tuple[list[Factor], dict[str, Truth]], preferring: bool
) -> None:
    factors, domains = network
    good = rows(factors, domains)
    preferred = good[-1] if preferring and good else None
    found = solution(factors, domains, preferred)
    assert (found in good) if good else found is None
    if preferred is not None:
        assert found == preferred
    left = narrowed(factors, domains)
    assert not good or left is not None
    assert left is None or all(left[name][row[name]] for row in good for name in row)
    assert not (good and refuted(factors, domains, Work()))


@settings(max_examples=200, deadline=None)
@given(network=networks())
def test_the_rules_of_a_contradiction_can_do_without_none_of_them(
    network: tuple[list[Factor], dict[str, Truth]],
) -> None:
    factors, domains = network
    domains = {name: np.ones_like(own) for name, own in domains.items()}
    placed = [Placed(place, Never(())) for place in range(13)]
    faults, row = contradictions(placed, factors, domains, dict.fromkeys(domains, 0))
    if rows(factors, domains):
        assert not faults
        assert row in rows(factors, domains)
        return
    for fault in faults:
        words = [fault.pointer, *fault.message.replace(",", "").replace(";", "").split()]
        told = {int(word.rsplit("/", 1)[1]) for word in words if "rules/" in word}
        own = [factor for factor in factors if factor.rules[0] in told]
        assert not rows(own, domains)
        for fewer in combinations(sorted(told), len(told) - 1):
            assert rows([factor for factor in own if factor.rules[0] in fewer], domains)


def alike(columns: int, categories: int) -> dict[str, Any]:
    """Columns of which no two may have the same category."""
    texts = [f"c{place}" for place in range(categories)]
    fields = [
        {"name": f"p{place}", "type": "string", "categories": texts, "constraints": {"required": True}}
        for place in range(columns)
    ]
    rules = [
        {"never": {f"p{one}": text, f"p{other}": text}}
        for one in range(columns)
        for other in range(one)
        for text in texts
    ]
    return {"fields": fields, "margent": {"unit": "row", "rules": rules}}


def message(document: dict[str, Any]) -> str:
    with pytest.raises(SchemaError) as caught:
        schema_from_json(document)
    assert len(caught.value.faults) == 1
    return caught.value.faults[0].message


def test_columns_that_must_all_differ_are_decided() -> None:
    started = time.process_time()
    assert "no row can obey this rule and /margent/rules/0, " in message(alike(9, 8))
    assert "/margent/rules/15, /margent/rules/16 together; correct" in message(alike(4, 3))
    schema_from_json(alike(9, 9))
    assert time.process_time() - started < 60


def test_a_few_rules_of_a_thousand_are_found() -> None:
    rng = np.random.default_rng(5)
    texts = [f"c{place}" for place in range(20)]
    fields = [{"name": f"p{place}", "type": "string", "categories": texts} for place in range(100)]
    rules: list[dict[str, Any]] = []
    for _ in range(997):
        one, other = rng.permutation(100)[:2].tolist()
        rules.append({"never": {f"p{one}": texts[int(rng.integers(20))], f"p{other}": texts[int(rng.integers(20))]}})
    rules.insert(100, {"if": {"p0": texts[:10]}, "then": {"p2": texts[:10]}})
    rules.insert(500, {"if": {"p0": {"not": texts[:10]}}, "then": {"p2": texts[:10]}})
    rules.insert(700, {"never": {"p2": texts[:10]}})
    document = {"fields": fields, "margent": {"unit": "row", "rules": rules}}
    assert message(document).startswith(
        "no row can obey this rule and /margent/rules/100, /margent/rules/500 together;"
    )


def test_all_searches_of_a_schema_have_one_limit() -> None:
    rng = np.random.default_rng(1)
    names = [f"b{place}" for place in range(120)]
    factors = []
    for rule in range(511):  # where about half of such systems have a solution, and search is hardest
        columns = tuple(names[place] for place in rng.permutation(120)[:3].tolist())
        table = np.ones((2, 2, 2), dtype=np.bool_)
        table[tuple(rng.integers(0, 2, 3))] = False
        factors.append(Factor((rule,), columns, (np.arange(2),) * 3, table))
    domains = {name: np.ones(2, dtype=np.bool_) for name in names}
    placed = [Placed(place, Never(())) for place in range(511)]
    work = Work(MOST_WORK // 10)
    faults, _ = contradictions(placed, factors, domains, dict.fromkeys(names, 2), work)
    assert work.left < 0
    assert [str(fault)[:54] for fault in faults] == ["/margent/rules: it could not be decided whether any ro"]
    with pytest.raises(UndecidedError):
        solution(factors, domains, work=Work(1000))


def test_a_set_that_could_not_be_made_smallest_is_told_as_such() -> None:
    names = [f"p{place}" for place in range(6)]
    factors = [
        Factor((rule,), pair, (np.arange(5), np.arange(5)), ~np.eye(5, dtype=np.bool_))
        for rule, pair in enumerate(combinations(names, 2))
    ]
    domains = {name: np.ones(5, dtype=np.bool_) for name in names}
    placed = [Placed(place, Never(())) for place in range(len(factors))]
    told = []
    for most in (2_000_000, MOST_WORK):
        faults, _ = contradictions(placed, factors, domains, dict.fromkeys(names, 5), Work(most))
        told.append("(fewer of them may do)" in faults[0].message)
    assert told == [True, False]
