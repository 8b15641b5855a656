"""What the page "Choosing epsilon, delta, bins and the unit" shows, measured again.

    python bench/choosing.py                    epsilon and bins, on the table of the tutorial (a minute or two)
    python bench/choosing.py --stays FOLDER     maxRows; FOLDER holds a table and a schema.json that names a person

Figures are written to docs/assets/measured/*.csv, from which the build of the site draws; noise is exact and has no
seed, so they differ a little every time. Both tables are public.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from margent import Budget, Schema, synthesize
from margent.internal.evaluation import evaluate
from margent.metrics.marginals import MarginalDistance
from margent.schema.read import schema_from_json
from margent.tables.source import open_table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "assets" / "measured"
EPSILONS = ["0.1", "0.2", "0.5", "1", "2", "5"]
BINS = [3, 6, 12, 30, 60, 120, 300, 600]
METRICS = (MarginalDistance(1, "tvd"), MarginalDistance(2, "tvd"), MarginalDistance(3, "tvd"))


def tutorial() -> tuple[pa.Table, dict[str, Any]]:
    """The table and schema of docs/start-here.md, made by the page's own code."""
    page = (ROOT / "docs" / "start-here.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    names: dict[str, Any] = {}
    exec(code.replace('table.to_csv("visits.csv", index=False)', ""), names)
    document = json.loads(re.findall(r"```json\n(.*?)```", page, re.DOTALL)[0])
    return pa.Table.from_pandas(names["table"], preserve_index=False), document


def scored(table: Any, tables: dict[str, Any], schema: Schema) -> dict[str, tuple[float, float, float]]:
    """Of each metric the tables' mean, and the two yardsticks."""
    document = evaluate(table, tables, schema, learning=False, metrics=METRICS).document
    values = {each["key"]: [score["value"] for score in each["scores"]] for each in document["metrics"]}
    return {key: (float(np.mean(rest)), resample, shuffled) for key, (resample, shuffled, *rest) in values.items()}


def written(name: str, head: list[str], rows: list[list[Any]]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
    print(name)
    for row in [head, *rows]:
        print("  ", *(f"{each:>12}" for each in row))


def by_epsilon(draws: int) -> None:
    table, document = tutorial()
    schema, rows = schema_from_json(document), []
    for epsilon in EPSILONS:
        tables = {f"{draw}": synthesize(table, schema, budget=Budget(epsilon=epsilon)).table for draw in range(draws)}
        scores = scored(table, tables, schema)
        rows += [[epsilon, key[-1], *(f"{value:.4f}" for value in scores[key])] for key in ("tvd-1", "tvd-2", "tvd-3")]
    written("epsilon.csv", ["epsilon", "columns", "margent", "resample", "independent"], rows)


def area(real: np.ndarray, made: np.ndarray) -> float:
    """Mean distance of two samples' distributions, in the column's unit: the area between their cumulative curves."""
    grid = np.linspace(0, 60, 2001)
    curves = [np.searchsorted(np.sort(each), grid, side="right") / max(len(each), 1) for each in (real, made)]
    return float(np.abs(curves[0] - curves[1]).mean() * 60)


def by_bins(draws: int) -> None:
    table, document = tutorial()
    place = [field["name"] for field in document["fields"]].index("chronic")
    real = table.to_pandas()
    rows = []
    for bins in BINS:
        document["fields"][place]["margent"]["bins"] = bins
        schema = schema_from_json(document)
        for epsilon in ("0.2", "1"):
            errors = []
            for _ in range(draws):
                made = synthesize(table, schema, budget=Budget(epsilon=epsilon)).to_pandas()
                errors.append(
                    np.mean(
                        [
                            area(real.chronic[real.health == each], made.chronic[made.health == each])
                            for each in ("poor", "fair", "good", "excellent")
                        ]
                    )
                )
            rows.append([bins, f"{60 / bins:g}", epsilon, f"{np.mean(errors):.3f}", f"{np.std(errors):.3f}"])
    written("bins.csv", ["bins", "width", "epsilon", "error", "spread"], rows)


def by_rows(folder: Path, most_codes: int, chosen: list[int]) -> None:
    from margent.schema.codec import Codec

    document = json.loads((folder / "schema.json").read_text())
    codec = Codec(schema_from_json(document))
    wide = {name for name, size in zip(codec.domain.names, codec.domain.sizes, strict=True) if size > most_codes}
    for field in document["fields"]:
        if field["name"] in wide:
            field.setdefault("margent", {})["role"] = "drop"
    (path,) = [each for each in folder.iterdir() if each.suffix in {".parquet", ".csv", ".gz"}]
    person = document["margent"]["unit"]["field"]
    rows = []
    for most in chosen:
        document["margent"]["unit"] = {"field": person, "maxRows": most}
        schema = schema_from_json(document)
        ids = column_of(path, schema, person)
        counts = np.unique(ids, return_counts=True)[1]
        start = time.process_time()
        release = synthesize(path, schema, budget=Budget(epsilon=1))
        spent = time.process_time() - start
        scores = scored(path, {"made": release.table}, schema)
        rows.append(
            [most, f"{np.minimum(counts, most).sum() / counts.sum():.3f}"]
            + [f"{value:.4f}" for key in ("tvd-1", "tvd-2") for value in scores[key]]
            + [f"{spent:.0f}"]
        )
        print(rows[-1], flush=True)
    heads = [
        "maxRows",
        "rows counted",
        "tvd1",
        "tvd1 resample",
        "tvd1 independent",
        "tvd2",
        "tvd2 resample",
        "tvd2 independent",
        "CPU s",
    ]
    written("max-rows.csv", heads, rows)


def column_of(path: Path, schema: Schema, name: str) -> np.ndarray:
    with open_table(path, schema) as source:
        return np.concatenate(
            [np.asarray(batch.column(name).to_pylist(), dtype=object) for batch in source.batches()]
        ).astype(str)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--stays", type=Path)
    parser.add_argument("--most-codes", type=int, default=64)
    parser.add_argument("--max-rows", default="1,2,4,8")
    parser.add_argument("--only", choices=["epsilon", "bins"])
    options = parser.parse_args()
    if options.stays:
        by_rows(options.stays, options.most_codes, [int(each) for each in options.max_rows.split(",")])
        return
    if options.only != "bins":
        by_epsilon(options.draws)
    if options.only != "epsilon":
        by_bins(options.draws)


if __name__ == "__main__":
    main()
