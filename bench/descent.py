"""How close record descent comes to tables without noise, and how fast; GUM and MCF beside it where asked.

    python bench/descent.py [FOLDER] [--rounds]

Adult (48,842 records), 40 and 91 pairs drawn with a fixed seed, targets exact, start from independent columns: mean
total variation per measured pair and CPU seconds of the warm descent (median of five). With --rounds the error after
every sweep of descent, and after every round of GUM and pass of MCF, as CSV.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.progress import silent
from margent.schema.domain import Clique, Domain
from margent.stream import Stream
from margent.synthesizers.descending import DescentSettings, descend
from margent.synthesizers.gum import Gum
from margent.synthesizers.mcf import MinCostFlow
from quality import load
from synthesizers import ADULT, drawn_pairs, exact_table, without_noise


def start_of(domain: Domain, columns: list[Any]) -> NDArray[np.int32]:
    """Independent columns with the right counts: every column in an order of its own."""
    order = [Stream(1, "bench", name).permutation(columns[0].size) for name in domain.names]
    return np.stack([np.asarray(column)[places] for column, places in zip(columns, order, strict=True)], axis=1).astype(
        np.int32
    )


def error(records: NDArray[np.int32], domain: Domain, targets: dict[Clique, NDArray[np.float64]]) -> float:
    made = list(records.astype(np.int64).T)
    each = [
        0.5 * np.abs(exact_table(made, domain, names) / len(records) - table / table.sum()).sum()
        for names, table in targets.items()
        if len(names) > 1
    ]
    return float(np.mean(each))


def targets_of(domain: Domain, columns: list[Any], count: int) -> dict[Clique, NDArray[np.float64]]:
    cliques = [*((name,) for name in domain.names), *drawn_pairs(domain, count)]
    return {names: exact_table(columns, domain, names).astype(np.float64) for names in cliques}


def fitted(
    domain: Domain, columns: list[Any], targets: dict[Clique, NDArray[np.float64]], settings: DescentSettings
) -> NDArray[np.int32]:
    start = start_of(domain, columns)
    return descend(start, targets, domain.names, domain.sizes, Stream(1, "bench"), silent, settings)


def rounds(schema: Any, domain: Domain, columns: list[Any], most: int = 20) -> dict[str, list[float]]:
    """Mean error per measured pair after 1 .. ``most`` sweeps, rounds or passes, 40 pairs."""
    targets = targets_of(domain, columns, 40)
    transcript = without_noise(schema, domain, columns, 40)
    found: dict[str, list[float]] = {"descent": [], "gum": [], "mcf": []}
    for number in range(1, most + 1):
        settings = replace(DescentSettings(), most_sweeps=number, still=0.0)
        found["descent"].append(error(fitted(domain, columns, targets, settings), domain, targets))
        for synthesizer in (Gum(rounds=number), MinCostFlow(passes=number, still=0.0)):
            model = synthesizer.build(transcript, silent)
            found[synthesizer.name].append(error(model.sample(model.total, 1, silent), domain, targets))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=ADULT)
    parser.add_argument("--rounds", action="store_true")
    options = parser.parse_args()
    schema, domain, columns, _ = load(options.folder, 300)
    if options.rounds:
        print("round,descent,gum,mcf")
        for number, row in enumerate(zip(*rounds(schema, domain, columns).values(), strict=True), start=1):
            print(number, *(f"{value:.5f}" for value in row), sep=",")
        return
    fitted(domain, columns, targets_of(domain, columns, 12), DescentSettings())  # compile
    for count in (40, len(domain.names) * (len(domain.names) - 1) // 2):
        targets = targets_of(domain, columns, count)
        times = []
        for _ in range(5):
            begin = time.process_time()
            records = fitted(domain, columns, targets, DescentSettings())
            times.append(time.process_time() - begin)
        print(
            f"{count} pairs: {error(records, domain, targets):.5f} mean total variation per measured pair, "
            f"{np.median(times):.2f} CPU s"
        )


if __name__ == "__main__":
    main()
