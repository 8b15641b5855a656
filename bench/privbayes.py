"""PrivBayes on a real table, choice by choice: what each departure from the paper, and each of its constants, is worth.

    python bench/privbayes.py FOLDER [--epsilon .2,1,5] [--draws 5] [--relation add-remove] [--only NAME,NAME]

FOLDER holds a table and schema.json. For budgets with delta 1e-9 and with delta 0: TVD1, TVD2, TVD3 as in
``quality.py``, how many tables the network has, their mean number of columns and cells, and the CPU seconds of buying.
Where records are replaced, score I is tried too.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from margent.collectors.privbayes import PrivBayes
from margent.counts.source import CodedCounts
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.synthesizers.ancestral import Ancestral
from margent.synthesizers.descent import Descent
from margent.synthesizers.model import Synthesizer
from quality import Scorer, load

PLAIN = PrivBayes()
VARIANTS: dict[str, tuple[PrivBayes, tuple[Synthesizer, ...]]] = {
    "as is": (PLAIN, (Ancestral(), Ancestral(tables="noisy"), Descent())),
    "split by cells": (replace(PLAIN, split="cells"), (Ancestral(),)),
    "most codes first": (replace(PLAIN, first="most"), (Ancestral(),)),
    "one-ways 5 %": (replace(PLAIN, one_way_share=Fraction(1, 20)), (Ancestral(),)),
    "one-ways 20 %": (replace(PLAIN, one_way_share=Fraction(1, 5)), (Ancestral(),)),
    "theta 2": (replace(PLAIN, theta=2.0), (Ancestral(),)),
    "theta 8": (replace(PLAIN, theta=8.0), (Ancestral(),)),
    "network 15 %": (replace(PLAIN, network_share=Fraction(15, 100)), (Ancestral(),)),
    "network 50 %": (replace(PLAIN, network_share=Fraction(1, 2)), (Ancestral(),)),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilon", default=".2,1,5")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--relation", default="add-remove")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    schema, domain, columns, ordinal = load(options.folder, 300)
    scorer = Scorer(columns, domain.sizes, ordinal)
    variants = dict(VARIANTS)
    if options.relation == "replace":
        known = replace(PLAIN, score="mutual-information", records=columns[0].size)
        variants["score I"] = (known, (Ancestral(),))
    chosen = options.only.split(",") if options.only else list(variants)
    for accountant in ("gdp", "pure"):
        for epsilon in options.epsilon.split(","):
            for name in chosen:
                collector, synthesizers = variants[name]
                made: list[list[list[float]]] = [[] for _ in synthesizers]
                facts = []
                for draw in range(options.draws):
                    budget = Budget(epsilon=epsilon, accountant=accountant, relation=options.relation)
                    curator = DataCurator(schema, CodedCounts(columns, domain), Ledger(budget))
                    start = time.process_time()
                    transcript = collector.collect(curator, budget)
                    spent = time.process_time() - start
                    tables = [answer for answer in transcript.marginals if len(answer.clique) > 1]
                    sizes = [(len(answer.clique), answer.counts.size) for answer in tables] or [(0, 0)]
                    facts.append([len(tables), *np.mean(sizes, axis=0), spent])
                    for place, synthesizer in enumerate(synthesizers):
                        model = synthesizer.build(transcript, silent)
                        found = scorer.scores(model.sample(model.total, draw, silent))
                        made[place].append([found["TVD1"], found["TVD2"], found["TVD3"]])
                count, width, cells, cpu = np.mean(facts, axis=0)
                for place, synthesizer in enumerate(synthesizers):
                    one, two, three = np.mean(made[place], axis=0)
                    how = getattr(synthesizer, "tables", "")
                    print(
                        f"{accountant:<5}{epsilon:>3}  {name:<17}{synthesizer.name:<10}{how:<11}"
                        f"TVD1 {one:.4f} TVD2 {two:.4f} TVD3 {three:.4f}   "
                        f"{count:.1f} tables of {width:.2f} columns, {cells:.0f} cells; CPU {cpu:.2f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
