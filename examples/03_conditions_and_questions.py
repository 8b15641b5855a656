"""From one release, for free: other tables, records under a condition, and counts with error bars.

    python examples/03_conditions_and_questions.py

The table is the RAND Health Insurance Experiment, which ships with statsmodels (pip install 'margent[demo]').
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import margent
from margent import Budget
from margent.demonstration import SCHEMA, write_demonstration_table
from margent.schema.read import schema_from_json


def main() -> None:
    schema = schema_from_json(SCHEMA)
    with TemporaryDirectory() as folder:
        table = Path(folder) / "visits.csv"
        write_demonstration_table(table)
        margent.synthesize(table, schema, budget=Budget(epsilon=1), method="priview").save("visits-release")

    # From here on no real row is needed; whoever has the folder can do this.
    transcript, budget, _ = margent.read_release("visits-release")

    answer = margent.query("visits-release", ["hlthp", "physlm"])
    print(f"health poor by limitation: {answer.kind}")
    for cell in answer.cells(3):
        print(f"  {cell.labels}: {cell.count:,.0f} ± {cell.error:.0f}")

    sick = margent.from_transcript(
        transcript, budget=budget, synthesizer="descent", where=["hlthp=yes"], rows=500, seed=7
    )
    print(f"{sick.rows} records of people in poor health, all of them: {set(sick.to_pandas()['hlthp'])}")

    again = margent.from_transcript(
        transcript, budget=budget, synthesizer="descent", where=["hlthp=yes"], rows=500, seed=7
    )
    print(f"the same seed gives the same table: {sick.table.equals(again.table)}")


if __name__ == "__main__":
    main()
