"""What a plan offers where it does not fit, applied to the schema and tried; and how often a run really reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margent import Budget, Category, Dropped, Integer, Schema
from margent.counts.source import StreamedCounts
from margent.errors import PlanError
from margent.methods import METHODS, Method, method_named
from margent.plan import MEMORY_SHARE, Plan, make_plan
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.schema.codec import Codec
from tests.conftest import quick

BUDGET = Budget(1)


def schema_of(sizes: dict[str, int]) -> Schema:
    fields = [Integer(name, 0, size - 1, required=True, bins=size) for name, size in sizes.items()]
    return Schema(fields, unit="row")


SIZES = {"zip": 9000, "job": 3000, "town": 800, "age": 90, "sex": 2}


def with_memory(monkeypatch: pytest.MonkeyPatch, have: int) -> None:
    monkeypatch.setattr("margent.plan.machine_memory", lambda: have)


def refused(plan: Plan) -> str:
    with pytest.raises(PlanError) as caught:
        plan.require_fits()
    return str(caught.value)


@pytest.mark.parametrize("name", ["dense", "privsyn", "jtree", "privbayes"])
@pytest.mark.parametrize("part", [0.35, 0.6, 0.9])
def test_every_remedy_fits_when_it_is_applied(name: str, part: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has only a part of what the plan needs beyond the least of any plan."""
    method, rows = method_named(name), 40_000_000
    whole = make_plan(schema_of(SIZES), BUDGET, method, rows)
    least = make_plan(schema_of({"sex": 2, "old": 2}), BUDGET, method_named("independent"), 1)
    with_memory(monkeypatch, int((least.memory + part * (whole.memory - least.memory)) / MEMORY_SHARE))
    said = refused(whole)
    assert "any one of these would fit: (1) " in said
    tried = []
    if found := re.search(r"--rows (\d+)", said):
        tried.append(make_plan(schema_of(SIZES), BUDGET, method, int(found[1])))
        assert int(found[1]) > 0
    if found := re.search(r"--set (\w+)=(\d+)", said):
        tried.append(make_plan(schema_of(SIZES), BUDGET, method.configured({found[1]: found[2]}), rows))
    if found := re.search(r"at most ([\d,]+) codes", said):
        codes = int(found[1].replace(",", ""))
        coarse = {each: min(size, codes - 1) for each, size in SIZES.items()}  # one code is that of unlisted cells
        tried.append(make_plan(schema_of(coarse), BUDGET, method, rows))
        assert all((f"'{each}' ({size + 1:,})" in said) == (size >= codes) for each, size in SIZES.items())
    if found := re.search(r"role drop for ([^;]*)", said):
        gone = re.findall(r"'(\w+)'", found[1])
        fields = [each if each.name not in gone else Dropped(each.name) for each in schema_of(SIZES).fields]
        tried.append(make_plan(Schema(fields, unit="row"), BUDGET, method, rows))
    if found := re.search(r"--method ([a-z]+(?: or [a-z]+)*)", said):
        tried += [make_plan(schema_of(SIZES), BUDGET, method_named(each), rows) for each in found[1].split(" or ")]
    assert tried
    for plan in tried:
        plan.require_fits()


def test_the_number_of_rows_offered_is_nearly_the_most_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(schema_of({"a": 5, "b": 5}), BUDGET, method_named("dense"), 10**9)
    few = make_plan(schema_of({"a": 5, "b": 5}), BUDGET, method_named("dense"), 10)
    with_memory(monkeypatch, int((few.memory + plan.memory) / 2 / 0.9))  # memory follows a block: below it rows count
    found = re.search(r"--rows (\d+)", refused(plan))
    assert found is not None
    assert make_plan(schema_of({"a": 5, "b": 5}), BUDGET, method_named("dense"), int(found[1])).refusal() is None
    more = make_plan(schema_of({"a": 5, "b": 5}), BUDGET, method_named("dense"), int(1.12 * int(found[1])))
    assert more.refusal() is not None


def test_a_method_whose_package_is_not_installed_is_no_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = replace(method_named("independent"), name="absent", package="no_such_package")
    monkeypatch.setattr("margent.fitting.METHODS", (absent, method_named("independent")))
    plan = make_plan(schema_of(SIZES), BUDGET, method_named("dense"), 1000)
    with_memory(monkeypatch, int(0.98 * plan.memory / MEMORY_SHARE))
    said = refused(plan)
    assert "--method independent" in said
    assert "absent" not in said


def test_where_nothing_would_fit_the_refusal_says_what_helps_in_general(monkeypatch: pytest.MonkeyPatch) -> None:
    with_memory(monkeypatch, 2**20)
    said = refused(make_plan(schema_of(SIZES), BUDGET, method_named("dense"), 10))
    assert said.endswith("give the widest columns fewer codes, or role drop")
    assert "any one of these" not in said


@dataclass
class Passes:
    """A table in memory; counts how often it is read."""

    table: pa.Table
    count: int = field(default=0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        self.count += 1
        yield from self.table.to_batches()


LISTS = {f"c{place}": [f"v{code}" for code in range(size)] for place, size in enumerate((2, 3, 4, 7, 3))}
TABLE = Schema([Category(name, values, required=True) for name, values in LISTS.items()], unit="row")
LIGHT = [quick(each) for each in METHODS if not each.package]


def made_table(rows: int = 3000) -> pa.Table:
    rng = np.random.default_rng(8)
    base = rng.integers(0, 2, rows)
    columns: dict[str, Any] = {}
    for name, values in LISTS.items():
        columns[name] = pa.array(np.array(values)[(base + rng.integers(0, len(values), rows)) % len(values)])
    return pa.table(columns)


@pytest.mark.parametrize("method", LIGHT, ids=lambda method: method.name)
@pytest.mark.parametrize("kept", [0, 2**25])
def test_a_run_reads_the_table_at_most_as_often_as_planned(
    method: Method, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("margent.cost.KEPT_CELLS", kept)
    source, codec = Passes(made_table()), Codec(TABLE)
    plan = make_plan(TABLE, BUDGET, method)
    counts = StreamedCounts(source, codec, kept_cells=kept)
    method.collector.collect(DataCurator(TABLE, counts, Ledger(BUDGET)), BUDGET)
    assert 1 <= source.count <= plan.passes
    if method.name == "dense":
        assert source.count == plan.passes == (2 if kept else 3)


def test_predicted_time_grows_with_rows() -> None:
    plan = make_plan(TABLE, BUDGET, method_named("dense"))
    times = [plan.counting_seconds(rows) for rows in (0, 10**6, 10**9, 2 * 10**9)]
    assert times == sorted(times)
    assert times[3] == pytest.approx(2 * times[2], rel=0.01)
