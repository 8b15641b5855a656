"""Three releases about the same people, under one budget that refuses the fourth.

    python examples/06_budget_across_releases.py

The file people.budget keeps the sum. It is written before a run looks at a row, and nothing is ever given back.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import margent
from margent import Budget, BudgetError, BudgetFile, Category, Integer, Schema


def registry(year: int) -> pd.DataFrame:
    """The registry as it stands in a year: the same people, one year on."""
    rng = np.random.default_rng(year)
    age = np.minimum(np.random.default_rng(0).integers(0, 90, 5000) + year - 2021, 99)
    return pd.DataFrame({"age": age, "ill": np.where(rng.random(5000) < age / 300, "yes", "no")})


def main() -> None:
    schema = Schema(
        [Integer("age", 0, 99, bins={"width": 10}, required=True), Category("ill", ["no", "yes"], required=True)],
        unit="row",
        provenance="the registry's form",
    )
    account = BudgetFile("people.budget", "registry")
    account.init(Budget(epsilon=2, delta="1e-9"))

    for year in (2021, 2022, 2023, 2024):
        try:
            budget = account.budget(epsilon=1.1)
            release = margent.synthesize(registry(year), schema, budget=budget, budget_file=account)
        except BudgetError as refused:
            print(f"{year}: refused")
            print(f"  {refused}")
            break
        release.save(f"registry-{year}")
        print(f"{year}: {release.rows:,} rows")

    balance = account.balance()
    print(f"of the cap, {float(balance.left / balance.declaration.total):.1%} is left")


if __name__ == "__main__":
    main()
