"""All synthesizers on the same transcripts: error per measured table, over all pairs and triples, distinct rows, time.

    python bench/synthesizers.py [FOLDER] [--epsilon .2,1,5] [--draws 3] [--only descent,mcf] [--skip-noise-free]

FOLDER (default: Adult, 14 columns) holds a table and schema.json; --draws transcripts of `dense` and of `privsyn` at
each epsilon (delta 1e-9, exact noise), and transcripts without noise of 40 and of all pairs (drawn with a seed). All
errors are total variations from the real table; CPU seconds are of `build` and `sample` in a warm process.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.collectors.dense import Dense
from margent.collectors.privsyn import PrivSyn
from margent.counts.source import CodedCounts
from margent.methods import SYNTHESIZERS
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.domain import Clique, Domain, clique
from margent.schema.fields import Schema
from margent.transcript import NoisyMarginal, Transcript
from quality import Scorer, load

ADULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult-discrete"
SEED = 20261127


def drawn_pairs(domain: Domain, count: int) -> list[Clique]:
    """So many pairs of columns, drawn with the seed of all figures without noise; all of them if there are fewer."""
    pairs = [clique(pair) for pair in itertools.combinations(domain.names, 2)]
    order = np.random.default_rng(SEED).permutation(len(pairs))
    return [pairs[place] for place in order[:count]]


def exact_table(columns: Sequence[NDArray[Any]], domain: Domain, names: Clique) -> NDArray[np.int64]:
    flat = np.zeros(columns[0].size, dtype=np.int64)
    for name in names:
        flat = flat * domain.size(name) + columns[domain.position[name]]
    return np.bincount(flat, minlength=domain.cells(names)).reshape(domain.shape(names))


def without_noise(schema: Schema, domain: Domain, columns: Sequence[NDArray[Any]], count: int) -> Transcript:
    """One-ways and drawn pairs as if they had been answered with next to no noise."""
    cliques = [*((name,) for name in domain.names), *drawn_pairs(domain, count)]
    answers = [NoisyMarginal(names, exact_table(columns, domain, names), Fraction(1, 10**6), 0) for names in cliques]
    return Transcript(schema, domain, "exact", (), tuple(answers))


def collected(method: Dense | PrivSyn, schema: Schema, domain: Domain, columns: list[Any], epsilon: str) -> Transcript:
    budget = Budget(epsilon=epsilon, delta="1e-9")
    return method.collect(DataCurator(schema, CodedCounts(columns, domain), Ledger(budget)), budget)


def measured(transcript: Transcript, scorer: Scorer, codes: NDArray[np.int32]) -> float:
    """Mean distance of the measured tables of several columns from the real ones."""
    position = transcript.domain.position
    tables = {answer.clique for answer in transcript.marginals if len(answer.clique) > 1}
    other = [codes[:, place].astype(np.int64) for place in range(codes.shape[1])]
    each = [scorer.distance(other, tuple(position[name] for name in names)) for names in sorted(tables)]
    return float(np.mean(each)) if each else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=ADULT)
    parser.add_argument("--epsilon", default=".2,1,5")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip-noise-free", action="store_true")
    options = parser.parse_args()
    schema, domain, columns, ordinal = load(options.folder, 300)
    scorer = Scorer(columns, domain.sizes, ordinal)
    chosen = [each for each in SYNTHESIZERS if not options.only or each.name in options.only.split(",")]
    for synthesizer in chosen:  # compile
        synthesizer.build(without_noise(schema, domain, columns, 12), silent).sample(1000, 0, silent)
    sources: list[tuple[str, list[Transcript]]] = []
    if not options.skip_noise_free:
        many = len(domain.names) * (len(domain.names) - 1) // 2
        sources += [
            (f"no noise, {count} pairs", [without_noise(schema, domain, columns, count)])
            for count in dict.fromkeys((min(40, many), many))
        ]
    for epsilon in options.epsilon.split(",") if options.epsilon else ():
        for method in (Dense(), PrivSyn()):
            draws = [collected(method, schema, domain, columns, epsilon) for _ in range(options.draws)]
            sources.append((f"{method.name}, ε = {epsilon}", draws))
    print("| transcript | synthesizer | measured tables | TVD1 | TVD2 | TVD3 | distinct rows | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for label, transcripts in sources:
        for synthesizer in chosen:
            rows = []
            for draw, transcript in enumerate(transcripts):
                start = time.process_time()
                model = synthesizer.build(transcript, silent)
                codes = model.sample(model.total, draw, silent)
                spent = time.process_time() - start
                scores = scorer.scores(codes)
                shown = [scores[key] for key in ("TVD1", "TVD2", "TVD3", "distinct")]
                rows.append([measured(transcript, scorer, codes), *shown, spent])
            mean = np.mean(rows, axis=0)
            cells = [f"{value:.4f}" for value in mean[:4]] + [f"{mean[4]:.2f}", f"{mean[5]:.1f}"]
            print(f"| {label} | {synthesizer.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
