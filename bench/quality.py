"""Quality and time of a method on a real table: TVD1, TVD2, TVD3, range error, distinct rows.

    python bench/quality.py FOLDER [--method dense] [--epsilon .2,1,5] [--draws 3] [--max-codes 300] [--accountant gdp]

FOLDER holds a table and schema.json. TVDk is the mean total variation over all (or a seeded choice of) k-way
tables; range error the mean absolute error of 1,000 seeded random 3-column queries (intervals on ordinal columns,
random subsets on others) as a share of the rows. Columns of more than --max-codes codes are left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.methods import method_named
from margent.privacy.accounting import ACCOUNT_NAMES
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.fields import Schema
from margent.schema.read import schema_from_json
from margent.tables.source import open_table


def load(folder: Path, max_codes: int) -> tuple[Schema, Domain, list[NDArray[Any]], list[bool]]:
    document = json.loads((folder / "schema.json").read_text())
    document["margent"]["unit"] = "row"
    schema = schema_from_json(document)
    sizes = dict(zip(Codec(schema).domain.names, Codec(schema).domain.sizes, strict=True))
    kept = []
    for field in document["fields"]:
        if field["name"] in sizes and sizes[field["name"]] > max_codes:
            field.setdefault("margent", {})["role"] = "drop"
        kept.append(field)
    schema = schema_from_json(document | {"fields": kept})
    codec = Codec(schema)
    (table,) = [path for path in folder.iterdir() if path.suffix in {".gz", ".parquet", ".csv"}]
    with open_table(table, schema) as source:
        batches = [codec.encode(batch) for batch in source.batches()]
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    ordinal = []
    by_name = {field["name"]: field for field in document["fields"]}
    for name in codec.domain.names:
        field = by_name[name]
        ordinal.append("categories" not in field or bool(field.get("categoriesOrdered")))
    return schema, codec.domain, columns, ordinal


class Scorer:
    """Distances between a real and a synthetic coded table; queries and triples are seeded."""

    def __init__(self, real: list[NDArray[Any]], sizes: tuple[int, ...], ordinal: list[bool]) -> None:
        self.real, self.sizes = [np.asarray(column, dtype=np.int64) for column in real], sizes
        rng = np.random.default_rng(20261127)
        places = range(len(sizes))
        pairs, triples = list(itertools.combinations(places, 2)), list(itertools.combinations(places, 3))
        pick = lambda of, most: of if len(of) <= most else [of[i] for i in rng.choice(len(of), most, replace=False)]  # noqa: E731
        self.pairs, self.triples = pick(pairs, 6000), pick(triples, 400)
        self.queries = []
        for _ in range(1000):
            chosen = rng.choice(len(sizes), min(3, len(sizes)), replace=False)
            keeps = []
            for place in chosen:
                if ordinal[place]:
                    low, high = np.sort(rng.integers(0, sizes[place], 2))
                    keeps.append((np.arange(sizes[place]) >= low) & (np.arange(sizes[place]) <= high))
                else:
                    keeps.append(rng.random(sizes[place]) < 0.5)
            self.queries.append((chosen, keeps))

    def distance(self, other: list[NDArray[Any]], places: tuple[int, ...]) -> float:
        n, m = self.real[0].size, max(other[0].size, 1)
        left, right = np.zeros(n, np.int64), np.zeros(other[0].size, np.int64)
        for place in places:
            left = left * self.sizes[place] + self.real[place]
            right = right * self.sizes[place] + other[place]
        cells = int(np.prod([self.sizes[place] for place in places]))
        if cells > 4_000_000:
            _, inverse = np.unique(np.concatenate([left, right]), return_inverse=True)
            left, right, cells = inverse[:n], inverse[n:], int(inverse.max()) + 1
        counts = np.bincount(left, minlength=cells) / n, np.bincount(right, minlength=cells) / m
        return 0.5 * float(np.abs(counts[0] - counts[1]).sum())

    def scores(self, codes: NDArray[np.int32]) -> dict[str, float]:
        other = [codes[:, place].astype(np.int64) for place in range(len(self.sizes))]
        errors = []
        for chosen, keeps in self.queries:
            shares = []
            for table in (self.real, other):
                inside = np.ones(table[0].size, dtype=bool)
                for place, keep in zip(chosen, keeps, strict=True):
                    inside &= keep[table[place]]
                shares.append(inside.mean())
            errors.append(abs(shares[0] - shares[1]))
        return {
            "TVD1": float(np.mean([self.distance(other, (place,)) for place in range(len(self.sizes))])),
            "TVD2": float(np.mean([self.distance(other, pair) for pair in self.pairs])),
            "TVD3": float(np.mean([self.distance(other, triple) for triple in self.triples])),
            "range": float(np.mean(errors)),
            "distinct": len(np.unique(codes, axis=0)) / max(codes.shape[0], 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--method", default="dense")
    parser.add_argument("--epsilon", default=".2,1,5")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--max-codes", type=int, default=300)
    parser.add_argument("--accountant", choices=ACCOUNT_NAMES, default="gdp")
    options = parser.parse_args()
    schema, domain, columns, ordinal = load(options.folder, options.max_codes)
    print(f"{options.folder.name}: {columns[0].size} rows, {len(domain.names)} columns, {sum(domain.sizes)} codes")
    scorer = Scorer(columns, domain.sizes, ordinal)
    method = method_named(options.method)
    for epsilon in options.epsilon.split(","):
        made = []
        for draw in range(options.draws):
            budget = Budget(epsilon, 0 if options.accountant == "pure" else "1e-9", accountant=options.accountant)
            cpu, clock = time.process_time(), time.perf_counter()
            curator = DataCurator(schema, CodedCounts(columns, domain), Ledger(budget))
            transcript = method.collector.collect(curator, budget)
            collected = time.perf_counter()
            model = method.synthesizer.build(transcript, silent)
            built = time.perf_counter()
            codes = model.sample(model.total, draw, silent)
            done = time.perf_counter()
            facts = {
                "tables": float(len(transcript.marginals) + len(transcript.interactions)),
                "collect": collected - clock,
                "build": built - collected,
                "sample": done - built,
                "CPU": time.process_time() - cpu,
            }
            made.append(scorer.scores(codes) | facts)
        means = {key: np.mean([each[key] for each in made]) for key in made[0]}
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{method.name} eps {epsilon}: "
            + " ".join(f"{key} {value:.4f}" if value < 10 else f"{key} {value:.0f}" for key, value in means.items())
            + f" | peak {memory:.1f} GiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
