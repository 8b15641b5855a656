"""Memory and cells are planned before the first private read: what does not fit is refused, and what fits is true."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import margent
from margent.errors import PlanError
from margent.methods import METHODS, Method
from margent.plan import Plan, machine_memory, make_plan
from margent.privacy.budget import Budget
from tests.peaks import alone
from tests.sizes import rounds

LIGHT = [method for method in METHODS if not method.package]
MOST_BINS = 1_000_000
RUN = """
import json, sys
import margent
facts = json.loads(sys.argv[1])
schema = margent.Schema(
    [margent.Category(name, [f"v{code}" for code in range(size)]) for name, size in facts["sizes"].items()], unit="row"
)
budget = margent.Budget(epsilon=1)
margent.synthesize(facts["table"], schema, budget=budget, method=facts["method"], rows=500, seed=1)
"""


def random_sizes(rng: np.random.Generator) -> dict[str, int]:
    """Up to 60 columns of 2 codes to two thousand millions; together far beyond 2^80 cells."""
    widths = rng.choice([2, 5, 9, 12], int(rng.integers(1, 61))).astype(float)
    widths[0] = rng.choice([5.0, 16.0, 31.0])  # one long list is enough, and ten take minutes to declare
    return {f"c{place}": int(2 ** rng.uniform(1, width)) for place, width in enumerate(widths)}


def planned(sizes: dict[str, int], method: Method, budget: Budget) -> Plan:
    fields = [
        margent.Category(name, [f"v{code}" for code in range(size)])
        if size <= 300
        else margent.Integer(name, 0, size - 1, bins={"width": 1})
        for name, size in sizes.items()
    ]
    return make_plan(margent.Schema(fields, unit="row"), budget, method)


def outcome(sizes: dict[str, int], method: Method, budget: Budget) -> Plan | str:
    """A plan that fits, or the words in which it is refused."""
    try:
        plan = planned(sizes, method, budget)
        plan.require_fits()
    except PlanError as refusal:
        return str(refusal)
    return plan


def test_random_schemas_run_or_are_refused_by_the_plan() -> None:
    """Nothing dies: every plan either fits into this machine's memory or says with sizes why it does not."""
    rng = np.random.default_rng(14)
    fit, refused = 0, 0
    for number in range(rounds(40, 1000)):
        sizes = random_sizes(rng)
        budget = Budget(epsilon=Fraction(int(rng.integers(1, 50)), 10))
        if max(sizes.values()) > MOST_BINS:  # refused where it is declared
            with pytest.raises(margent.SchemaError, match="bins"):
                planned(sizes, METHODS[number % len(METHODS)], budget)
            refused += 1
            continue
        found = outcome(sizes, METHODS[number % len(METHODS)], budget)
        if isinstance(found, str):
            assert re.search(r"cells|codes|memory", found), found
            refused += 1
            continue
        fit += 1
        have = machine_memory()
        assert have is None or found.memory <= have
    assert fit > 5
    assert refused > 5


CASES = [
    ("dense", {"a": 2, "b": 3, "c": 5}),
    ("dense", {f"c{place}": 40 for place in range(12)}),
    ("dense", {"zip": 20_000, "job": 400, "sex": 2}),
    ("privsyn", {f"c{place}": 60 for place in range(10)}),
    ("independent", {"wide": 50_000, "sex": 2}),
    ("laplace", {"a": 100, "b": 100, "c": 60}),
    ("jtree", {f"c{place}": 30 for place in range(10)}),
    ("priview", {f"c{place}": 12 for place in range(8)}),
    ("privbayes", {f"c{place}": 8 for place in range(8)}),
]


@pytest.mark.parametrize(("method", "sizes"), CASES[: rounds(5, len(CASES))], ids=lambda value: str(value)[:30])
def test_a_run_takes_no_more_memory_than_planned(method: str, sizes: dict[str, int], tmp_path: Path) -> None:
    """Measured in a process of its own, compiled code included; a tenth above the plan is allowed."""
    rng = np.random.default_rng(3)
    rows = [",".join(f"v{rng.integers(size)}" for size in sizes.values()) for _ in range(2000)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join([",".join(sizes), *rows]) + "\n")
    facts = json.dumps({"sizes": sizes, "table": str(table), "method": method})
    measured = alone(RUN, facts).peak
    (chosen,) = [each for each in LIGHT if each.name == method]
    schema = margent.Schema(
        [margent.Category(name, [f"v{code}" for code in range(size)]) for name, size in sizes.items()], unit="row"
    )
    plan = make_plan(schema, Budget(epsilon=1), chosen, rows=500)
    print(f"{method} {len(sizes)} columns: planned {plan.memory / 2**20:.0f} MiB, measured {measured / 2**20:.0f} MiB")
    assert measured <= 1.1 * plan.memory
