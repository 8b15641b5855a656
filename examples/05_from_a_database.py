"""From a database to a release, and back: DuckDB in memory stands for yours.

    python examples/05_from_a_database.py

The join and the sum to one row per person are the database's work; Margent reads the finished relation.
"""

from __future__ import annotations

import duckdb

import margent
from margent import Budget, Category, Integer, Schema

TABLES = """
SELECT setseed(0.5);
CREATE TABLE person AS
  SELECT range AS id, 20 + (random() * 60)::INTEGER AS age, CASE WHEN random() < .5 THEN 'F' ELSE 'M' END AS sex
  FROM range(5000);
CREATE TABLE visit AS
  SELECT (random() * 4999)::INTEGER AS person, CASE WHEN random() < .2 THEN 'emergency' ELSE 'planned' END AS kind
  FROM range(9000);
"""

# One row per person, and each person's row from that person's visits alone: that is what makes the unit a row.
PEOPLE = """
SELECT sex, age, least(count(visit.person), 10)::INTEGER AS visits,
       CASE WHEN bool_or(kind = 'emergency') THEN 'yes' ELSE 'no' END AS emergency
FROM person LEFT JOIN visit ON visit.person = person.id
GROUP BY id, sex, age
"""


def main() -> None:
    database = duckdb.connect()
    database.execute(TABLES)
    schema = Schema(
        [
            Category("sex", ["F", "M"], required=True),
            Integer("age", 18, 90, bins={"width": 10}, required=True),
            Integer("visits", 0, 10, required=True),
            Category("emergency", ["no", "yes"], required=True),
        ],
        unit="row",
        provenance="the database's own definitions",
    )
    release = margent.synthesize(database.sql(PEOPLE), schema, budget=Budget(epsilon=1))
    release.save("people-release", file_format="parquet")

    database.execute("CREATE TABLE synthetic AS SELECT * FROM 'people-release/synthetic.parquet'")
    for name, source in (("real", f"({PEOPLE})"), ("synthetic", "synthetic")):
        question = f"SELECT count(*), avg(visits), avg((emergency = 'yes')::INTEGER) FROM {source}"
        rows, visits, emergency = database.execute(question).fetchone() or (0, 0, 0)
        print(f"{name}: {rows:,} people, {visits:.2f} visits each, {emergency:.1%} with an emergency")


if __name__ == "__main__":
    main()
