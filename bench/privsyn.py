"""PrivSyn on Adult: mean total variation over single columns, all pairs and 100 triples, and seconds.

    python bench/privsyn.py [EPSILON ...] [--runs 3] [--data FOLDER]

FOLDER holds adult.csv.gz (14 columns of codes) and schema.json. Noise is the exact discrete Gaussian of the
package; delta 1e-9. Times are of a warm second run in the same process (the first one compiles).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

from margent.collectors.independent import Independent
from margent.collectors.privsyn import PrivSyn
from margent.counts.source import CodedCounts
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.read import read_schema
from margent.synthesizers.gum import Gum
from margent.synthesizers.independent import IndependentColumns

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult-discrete"


def variation(real: NDArray[np.int64], made: NDArray[np.int64], domain: Domain, names: Sequence[str]) -> float:
    """Total variation between two tables of codes, shape (d, n), on some columns."""
    shares = []
    for codes in (real, made):
        flat = np.zeros(codes.shape[1], dtype=np.int64)
        for name in names:
            flat = flat * domain.size(name) + codes[domain.position[name]]
        shares.append(np.bincount(flat, minlength=domain.cells(names)) / codes.shape[1])
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def main() -> None:
    """Print one line a method and epsilon: means over the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("epsilon", nargs="*", type=float, default=[0.2, 1.0, 5.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()

    schema = read_schema(options.data / "schema.json")
    domain = Codec(schema).domain
    table = csv.read_csv(options.data / "adult.csv.gz")
    codes = np.array([table.column(name).to_numpy() for name in domain.names], dtype=np.int64)
    source = CodedCounts([column.astype(np.uint16) for column in codes], domain)
    triples = list(combinations(domain.names, 3))
    picked = np.random.default_rng(0).choice(len(triples), min(100, len(triples)), replace=False)
    groups = [
        [(name,) for name in domain.names],
        list(combinations(domain.names, 2)),
        [triples[number] for number in picked],
    ]
    print("method       epsilon  tvd1   tvd2   tvd3   tables distinct spent  collect  build  sample (CPU s)")
    for name, collector, synthesizer in (
        ("privsyn", PrivSyn(), Gum()),
        ("independent", Independent(), IndependentColumns()),
    ):
        for epsilon in options.epsilon:
            lines = []
            for run in range(options.runs + 1):
                budget = Budget(epsilon=epsilon)
                ledger = Ledger(budget)
                marks = [time.process_time()]
                transcript = collector.collect(DataCurator(schema, source, ledger), budget)
                marks.append(time.process_time())
                model = synthesizer.build(transcript, silent)
                marks.append(time.process_time())
                made = model.sample(model.total, run, silent)
                marks.append(time.process_time())
                if run == 0:
                    continue
                scores = [np.mean([variation(codes, made.T, domain, names) for names in group]) for group in groups]
                tables = sum(len(answer.clique) > 1 for answer in transcript.marginals)
                distinct = len(np.unique(made, axis=0)) / len(made)
                lines.append([*scores, tables, distinct, float(ledger.spent / budget.total), *np.diff(marks)])
            mean = np.mean(lines, axis=0)
            print(
                f"{name:12s} {epsilon:6g}  " + " ".join(f"{value:.4f}" for value in mean[:3]) + f" {mean[3]:6.1f}"
                f"   {mean[4]:.3f}   {mean[5]:.4f} {mean[6]:7.2f} {mean[7]:6.2f} {mean[8]:6.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
