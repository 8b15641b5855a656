"""How well tables of three columns are answered: by `margent query`, by PriView's reconstruction, by counting records.

    python bench/query.py FOLDER [--method priview] [--epsilon .2,1,5] [--triples 30] [--max-codes 300]

FOLDER holds a table and schema.json. Mean total variation from the real tables over a seeded choice of triples of at
most 300,000 cells that were not counted together, by one release each.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from pathlib import Path

import numpy as np

from margent.answers.modelled import margins_of
from margent.answers.query import query
from margent.counts.source import CodedCounts
from margent.methods import method_named
from margent.postprocessing.max_entropy import max_entropy
from margent.postprocessing.ripple import RippledAgreement
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.release.release import Release
from margent.schema.domain import clique
from margent.synthesizers.blocks import HeldRecords
from quality import load


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--method", default="priview")
    arguments.add_argument("--epsilon", default=".2,1,5")
    arguments.add_argument("--triples", type=int, default=30)
    arguments.add_argument("--max-codes", type=int, default=300)
    options = arguments.parse_args()
    schema, domain, columns, _ = load(options.folder, options.max_codes)
    method = method_named(options.method)
    triples = list(itertools.combinations(domain.names, 3))
    chosen = np.random.default_rng(20261127).permutation(len(triples))[: options.triples]
    asked = [clique(triples[place]) for place in chosen if domain.cells(triples[place]) <= 300_000]
    for epsilon in options.epsilon.split(","):
        budget = Budget(epsilon=epsilon, delta="1e-9")
        curator = DataCurator(schema, CodedCounts(columns, domain), Ledger(budget))
        transcript = method.collector.collect(curator, budget)
        model = method.synthesizer.build(transcript, silent)
        codes = model.sample(model.total, 1, silent)
        release = Release(transcript, budget, method.synthesizer.name, HeldRecords(codes, 1), 1, "csv")
        found: dict[str, list[float]] = {"query": [], "priview": [], "records": [], "CPU": []}
        for names in asked:
            places = [domain.position[name] for name in names]
            merged = not any(set(names) <= set(answer.clique) for answer in transcript.marginals)
            groups = [
                np.asarray(transcript.merges[name].groups)
                if merged and name in transcript.merges
                else np.arange(domain.size(name))
                for name in names
            ]
            sizes = tuple(int(group.max()) + 1 for group in groups)

            def counted(
                table: list[np.ndarray], groups: list[np.ndarray] = groups, sizes: tuple[int, ...] = sizes
            ) -> np.ndarray:
                flat = np.ravel_multi_index([group[own] for group, own in zip(groups, table, strict=True)], sizes)
                return np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes) / max(flat.size, 1)

            real = counted([columns[place].astype(np.int64) for place in places])
            cpu = time.process_time()
            answer = query(release, names)
            cpu = time.process_time() - cpu
            if answer.measured or answer.counts.shape != sizes:
                continue
            found["CPU"].append(cpu)
            known = margins_of(transcript, names, merged)
            agreed = RippledAgreement().apply(known.tables, known.total)
            targets = {tuple(names.index(name) for name in each.clique): each.values for each in agreed}
            plain = max_entropy(sizes, targets, known.total).values
            made = counted([codes[:, place].astype(np.int64) for place in places])
            for name, table in (("query", answer.counts / known.total), ("priview", plain / known.total)):
                found[name].append(0.5 * float(np.abs(table - real).sum()))
            found["records"].append(0.5 * float(np.abs(made - real).sum()))
        if not found["query"]:
            print(f"{options.folder.name} {method.name} eps {epsilon}: every triple was counted together", flush=True)
            continue
        means = " ".join(f"{name} {np.mean(values):.4f}" for name, values in found.items())
        print(f"{options.folder.name} {method.name} eps {epsilon}: {means} ({len(found['query'])} triples)", flush=True)


if __name__ == "__main__":
    main()
