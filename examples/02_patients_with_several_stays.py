"""Rows of stays, patients protected: the person as the unit.

    python examples/02_patients_with_several_stays.py

What to see: at most two stays of a patient are counted, whole patients are protected, and the synthetic stays come
grouped under ids that belong to nobody.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

import margent
from margent import Budget, Category, Date, Identifier, Integer, PersonUnit, Schema

MOST_STAYS = 2


def stays(patients: int = 4000) -> pd.DataFrame:
    """Made-up stays: most patients come once, some often."""
    rng = np.random.default_rng(2)
    patient = np.repeat(np.arange(patients), np.minimum(rng.geometric(0.6, patients), 10))
    count = len(patient)
    ward = rng.choice(["surgery", "medicine", "heart"], count, p=[0.4, 0.4, 0.2])
    nights = rng.poisson(np.where(ward == "heart", 7, 3))
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, count), unit="D")
    return pd.DataFrame({"patient": patient, "ward": ward, "admitted": day, "nights": nights})


def main() -> None:
    schema = Schema(
        [
            Identifier("patient"),
            Category("ward", ["surgery", "medicine", "heart"], required=True),
            Date("admitted", "2024-01-01", "2024-12-31", bins="quarter", required=True),
            Integer("nights", 0, 60, bins=[0, 1, 2, 3, 4, 6, 8, 12, 20, 60], required=True),
        ],
        unit=PersonUnit("patient", MOST_STAYS, sizes=True),
        provenance="the admission form",
    )
    table = stays()
    release = margent.synthesize(table, schema, budget=Budget(epsilon=1), expect_people=4000)
    print(release.summary["promise"][0])

    synthetic = release.to_pandas()
    counted = table.groupby("patient").size().clip(upper=MOST_STAYS).sum()
    print(f"real: {len(table):,} stays, of which {counted:,} may be counted; synthetic: {len(synthetic):,} stays")
    per_id = synthetic.groupby("patient").size()
    print(f"stays under one id: {per_id.min()} to {per_id.max()}")
    for name, each in (("real", table), ("synthetic", synthetic)):
        means = each.groupby("ward")["nights"].mean()
        print(f"{name}: nights in heart {means['heart']:.1f}, in surgery {means['surgery']:.1f}")


if __name__ == "__main__":
    main()
