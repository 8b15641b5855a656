"""A first synthetic table in Python: schema, plan, run, look.

    python examples/01_first_table.py

Makes a small table of its own, so that nothing has to be downloaded, and writes the folder first-release/.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import margent
from margent import Budget, Category, Integer, Schema


def people(count: int = 6000) -> pd.DataFrame:
    """A made-up table: who works depends on age, and some did not say."""
    rng = np.random.default_rng(1)
    age = rng.integers(16, 91, count)
    working = np.where(age < 65, rng.random(count) < 0.8, rng.random(count) < 0.1)
    work = np.where(working, "yes", "no").astype(object)
    work[rng.random(count) < 0.03] = None
    return pd.DataFrame({"age": age, "sex": rng.choice(["F", "M"], count), "work": work})


def main() -> None:
    # Everything in the schema is public: it comes from the questionnaire, not from the table.
    schema = Schema(
        [
            Integer("age", 16, 110, bins=[16, 25, 35, 45, 55, 65, 75, 110], required=True),
            Category("sex", ["F", "M"], required=True),
            Category("work", ["yes", "no"]),
        ],
        unit="row",
        provenance="the questionnaire",
    )
    budget = Budget(epsilon=1)

    plan = margent.make_plan(schema, budget)  # reads no data
    print(f"verdict: {plan.verdict(6000).words}")

    table = people()
    release = margent.synthesize(table, schema, budget=budget)
    release.save("first-release")

    synthetic = release.to_pandas()
    for name, each in (("real", table), ("synthetic", synthetic)):
        share = (each[each["age"] >= 65]["work"] == "yes").mean()
        print(f"{name}: {len(each):,} rows; {share:.1%} of those over 65 work")


if __name__ == "__main__":
    main()
