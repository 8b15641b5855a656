"""No number that can be set ends a run after its charge: each is refused before it, or the run ends well."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pyarrow as pa
import pytest

import margent
from margent import Budget, BudgetFile, Category, Schema
from margent.errors import PlanError, UsageError
from margent.methods import METHODS, SYNTHESIZERS, Method, method_named
from margent.settings import configured, settings_of

SCHEMA = Schema(
    [Category("only", ["x"], required=True, unlisted={"to": "x"})]
    + [Category(name, list(letters), required=True) for name, letters in (("a", "pqrst"), ("b", "xy"), ("c", "uvw"))],
    unit="row",
)


def table(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(4)
    a = rng.integers(0, 5, rows)
    columns = {"only": np.zeros(rows, int), "a": a, "b": a % 2, "c": rng.integers(0, 3, rows)}
    letters = {"only": "x", "a": "pqrst", "b": "xy", "c": "uvw"}
    return pa.table({name: [letters[name][code] for code in codes] for name, codes in columns.items()})


def numbers(half: object) -> list[str]:
    """The settings of one half that are numbers."""
    hints = get_type_hints(type(half))
    return [name for name in settings_of(half) if hints[name] in (int, float, Fraction, int | None)]


TRIED = (
    "1000000",
    "0.000001",
    "0",
    "-1",
    "1",
    "2",
    "1e18",
    "1000000000000000000",
    "-1e308",
    "1e308",
    "1.7e308",
    "1e-300",
    "nan",
    "inf",
)
CASES = [
    (method, name, value)
    for method in METHODS
    for name in dict.fromkeys([*numbers(method.collector), *numbers(method.synthesizer)])
    for value in TRIED
]


def accepted(method: Method, settings: dict[str, str]) -> bool:
    try:
        method.configured(settings)
    except UsageError:
        return False
    return True


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [case for case in CASES if not case[0].package and accepted(case[0], {case[1]: case[2]})],
    ids=lambda case: getattr(case, "name", case),
)
def test_what_is_not_refused_ends_well_or_before_the_charge(
    method: Method, name: str, value: str, tmp_path: Path
) -> None:
    for account in ("gdp", "pure"):
        file = BudgetFile(tmp_path / f"{account}.budget", "people")
        budget = Budget(3, accountant=account)
        file.init(budget, unit="row")
        ready = {"budget": budget, "budget_file": file, "method": method.name, "settings": {name: value}, "seed": 1}
        try:
            made = margent.synthesize(table(), SCHEMA, **ready)  # type: ignore[arg-type]
        except (UsageError, PlanError):
            assert file.balance().spent == 0
        else:
            assert made.rows >= 0
            assert made.transcript.spent <= budget.total


def test_other_synthesizers_take_what_they_do_not_refuse() -> None:
    transcript = margent.synthesize(table(), SCHEMA, budget=Budget(2), rows=5).transcript
    for synthesizer in (each for each in SYNTHESIZERS if each.name in ("mcf", "gum", "junction-tree")):
        for name in numbers(synthesizer):
            for value in TRIED:
                settings = {name: value}
                try:
                    configured(synthesizer, settings)
                except UsageError:
                    continue
                ready = {"budget": Budget(2), "synthesizer": synthesizer.name, "settings": settings}
                if name != "most_cells":  # a cap on free answers is refused when it is met
                    margent.from_transcript(transcript, rows=20, seed=1, **ready)  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "name", "value"), [case for case in CASES if case[2] in ("-1", "1e308", "nan")])
def test_no_setting_takes_a_number_below_its_limits_or_none_at_all(method: Method, name: str, value: str) -> None:
    with pytest.raises(UsageError):
        method.configured({name: value})


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("dense", {"max_pair_cells": "-1", "merge_above": "0"}, "merge_above must be from 1 to .*; max_pair_cells"),
        ("dense", {"one_way_weight": "1.7e308"}, "dense: one_way_weight must be from 0 to 1e[+]06"),
        ("jtree", {"cramer": "-0.1"}, "jtree: cramer must be from 0 to 1"),
        ("pgm", {"most_cells": "0"}, "pgm: most_cells must be from 1 to 1,000,000,000,000"),
    ],
)
def test_the_limits_are_named_all_at_once(method: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        method_named(method).configured(settings)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("pgm", {"most_cells": "12"}, r"single columns have 14 codes together.*at most 12 cells .--set most_cells=14"),
        ("mst", {"most_cells": "3"}, "single columns"),
        ("aim", {"most_cells": "3"}, "single columns"),
        ("privmrf", {"most_cells": "3"}, "single columns"),
        ("jtree", {"most_cells": "25"}, "a junction tree of up to 216 cells may be bought.*lower max_tree_cells, or"),
    ],
)
def test_what_a_synthesizer_would_refuse_is_refused_before_the_charge(
    method: str, settings: dict[str, str], words: str, tmp_path: Path
) -> None:
    file = BudgetFile(tmp_path / "people.budget", "people")
    file.init(Budget(9), unit="row")
    ready = {"budget": Budget(2), "method": method, "settings": settings, "budget_file": file}
    with pytest.raises(PlanError, match=words):
        margent.synthesize(table(), SCHEMA, **ready)  # type: ignore[arg-type]
    assert file.balance().spent == 0


@pytest.mark.parametrize("cap", ["14", "16", "20", "30", "72"])
def test_a_junction_tree_bought_under_its_cap_can_be_built(cap: str) -> None:
    """With a constant column, which takes no room of the tree."""
    settings = {"max_tree_cells": cap, "most_cells": cap, "cramer": "0", "table_noise": "100"}
    made = margent.synthesize(table(), SCHEMA, budget=Budget(50), method="jtree", settings=settings, rows=50, seed=1)
    assert made.rows == 50


def test_what_a_collector_builds_on_the_way_has_the_room_that_was_set() -> None:
    for name in ("aim", "privmrf"):
        assert method_named(name).configured({"most_cells": "77"}).collector.builder.most_cells == 77  # type: ignore[attr-defined]
