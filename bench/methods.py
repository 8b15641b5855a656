"""Every method on the same tables at the same budgets: TVD1-3, range error, misclassification, time, memory.

    python bench/methods.py FOLDER... --results FILE.jsonl [--methods dense,privsyn] [--epsilon .2,1,5] [--draws 1]
    python bench/methods.py --results FILE.jsonl --table          the figures so far, as a Markdown table

FOLDER holds a table and schema.json. `FOLDER:binary` makes of it one column of two codes for every category that
between 8 and 92 % of the rows have. Each run is a process of its own, so that its peak memory is its own; finished
ones are in FILE and are not run again. Columns of more than 300 codes are left out, as in `bench/quality.py`, whose
scores these are. `subsample` (a share of the real rows as large as epsilon / 10) and `resample` (a bootstrap of the
rows) are no methods: they are not private, and stand here as yardsticks only.

Misclassification: for the four questions of JTree and PrivBayes on Adult (a man? a degree? over 50K? never married?) a
linear support vector machine learns from a synthetic table of four fifths of the rows and is tried on the last fifth.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margent.counts.source import CodedCounts
from margent.methods import METHODS, method_named
from margent.metrics.classifiers import error_of, fitted_scores
from margent.privacy.budget import Budget
from margent.privacy.curator import DataCurator
from margent.privacy.ledger import Ledger
from margent.progress import silent
from margent.schema.codec import Codec
from margent.schema.domain import Domain
from margent.schema.fields import Category, Schema
from quality import Scorer, load

YARDSTICKS = ("subsample", "resample")
SHARES = (0.08, 0.92)
TASKS = {
    "a man": ("sex", 1),
    "a degree": ("education-num", 11),
    "over 50K": ("income>50K", 1),
    "never married": ("marital-status", 2),
}
"""Column and code of Adult's questions; a degree is every code from 11 on (an associate's)."""
Codes = list[NDArray[Any]]


def table_of(name: str) -> tuple[Schema, Domain, Codes, list[bool]]:
    folder, _, kind = name.partition(":")
    schema, domain, columns, ordinal = load(Path(folder), 300)
    if kind != "binary":
        return schema, domain, columns, ordinal
    made: dict[str, NDArray[Any]] = {}
    for column, size, codes in zip(domain.names, domain.sizes, columns, strict=True):
        for code in range(size):
            has = codes == code
            other = any(np.array_equal(has, each == 0) for each in made.values())
            if SHARES[0] <= has.mean() <= SHARES[1] and not other:
                made[f"{column} {code}"] = has.astype(np.uint8)
    fields = [Category(column, ["no", "yes"], required=True, unlisted={"to": "no"}) for column in made]
    schema = Schema(fields, unit="row")
    domain = Codec(schema).domain
    assert set(domain.sizes) == {2}
    return schema, domain, list(made.values()), [False] * len(made)


def synthesized(
    method: str, schema: Schema, domain: Domain, columns: Codes, epsilon: str, draw: int, pure: bool
) -> NDArray[Any]:
    rng, rows = np.random.default_rng(draw), columns[0].size
    if method in YARDSTICKS:
        count = rows if method == "resample" else int(rows * float(epsilon) / 10)
        return np.stack(columns, axis=1)[rng.integers(0, rows, count)]
    chosen = method_named(method)
    budget = Budget(epsilon=epsilon, delta=0, accountant="pure") if pure else Budget(epsilon=epsilon, delta="1e-9")
    curator = DataCurator(schema, CodedCounts(columns, domain), Ledger(budget))
    model = chosen.synthesizer.build(chosen.collector.collect(curator, budget), silent)
    return model.sample(model.total, draw, silent)


def misclassified(train: NDArray[Any], test: NDArray[Any], domain: Domain) -> dict[str, float]:
    """Share of the test rows that a linear machine learned from ``train`` gets wrong, a question each."""
    errors = {}
    for question, (column, code) in TASKS.items():
        place = domain.position[column]
        sides = []
        for table in (train, test):
            others = [other for other in range(len(domain.names)) if other != place]
            hot = [
                np.eye(min(domain.sizes[other], 40))[table[:, other] % 40]
                for other in others
                if domain.sizes[other] <= 40
            ]
            scaled = [table[:, other, None] / (domain.sizes[other] - 1) for other in others if domain.sizes[other] > 40]
            labels = table[:, place] >= code if column == "education-num" else table[:, place] == code
            sides.append((np.concatenate([*hot, *scaled], axis=1), labels.astype(np.int64)))
        (features, labels), (judged, truth) = sides
        errors[question] = error_of(fitted_scores("svm", features, labels, judged), truth)
    return errors


def one(name: str, method: str, epsilon: str, draw: int, pure: bool) -> dict[str, Any]:
    schema, domain, columns, ordinal = table_of(name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cpu, clock = time.process_time(), time.perf_counter()
    codes = synthesized(method, schema, domain, columns, epsilon, draw, pure)
    facts: dict[str, Any] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - clock}
    facts["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    facts["before"] = before / 2**20
    facts |= Scorer(columns, domain.sizes, ordinal).scores(codes)
    if {column for column, _ in TASKS.values()} <= set(domain.names):
        order = np.random.default_rng(7).permutation(columns[0].size)
        fifth = order.size // 5
        kept = [column[order[fifth:]] for column in columns]
        held = np.stack([column[order[:fifth]] for column in columns], axis=1)
        train = synthesized(method, schema, domain, kept, epsilon, draw, pure)
        facts["svm"] = misclassified(train, held, domain)
        if method == "resample":
            facts["majority"] = {
                question: float(min(share, 1 - share))
                for question, share in misclassified_by_nobody(held, domain).items()
            }
    return facts


def misclassified_by_nobody(test: NDArray[Any], domain: Domain) -> dict[str, float]:
    """Share of the rows that a question is answered yes for."""
    return {
        question: float((test[:, domain.position[column]] >= code).mean())
        if column == "education-num"
        else float((test[:, domain.position[column]] == code).mean())
        for question, (column, code) in TASKS.items()
    }


def markdown(results: list[dict[str, Any]]) -> str:
    """One row a table, method and budget; means over draws (n of them), medians of CPU seconds and memory."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for each in results:
        if "TVD2" in each:
            groups.setdefault((each["table"], each["epsilon"], each["method"]), []).append(each)
    lines = [
        "| table | epsilon | method | draws | TVD2 | TVD3 | range | SVM man / degree / 50K / unmarried | CPU s | GiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (table, epsilon, method), made in sorted(
        groups.items(), key=lambda item: (item[0][0], float(item[0][1]), item[1][0]["TVD2"])
    ):
        mean = {key: statistics.fmean(each[key] for each in made) for key in ("TVD2", "TVD3", "range")}
        svm = ""
        if "svm" in made[0]:
            svm = " / ".join(f"{statistics.fmean(each['svm'][question] for each in made):.3f}" for question in TASKS)
        cpu, memory = (statistics.median(each[key] for each in made) for key in ("cpu", "memory"))
        lines.append(
            f"| {table} | {epsilon} | {method} | {len(made)} | {mean['TVD2']:.4f} | {mean['TVD3']:.4f} | "
            f"{mean['range']:.4f} | {svm} | {cpu:.1f} | {memory:.2f} |"
        )
    for each in results:
        if "failed" in each:
            lines.append(
                f"| {each['table']} | {each['epsilon']} | {each['method']} | failed: {each['failed']} | | | | | | |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--methods", default=",".join(method.name for method in METHODS))
    parser.add_argument("--epsilon", default=".2,1,5")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--pure", action="store_true", help="delta 0, under the methods' names with +pure")
    parser.add_argument("--limit", type=int, default=1800, help="seconds after which a run is given up")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", default="")
    options = parser.parse_args()
    if options.one:
        facts = json.loads(options.one)
        print(json.dumps(one(facts["folder"], facts["run"], facts["epsilon"], facts["draw"], facts["pure"])))
        return
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    results = [json.loads(line) for line in lines]
    if options.table:
        print(markdown(results))
        return
    done = {(each["table"], each["method"], each["epsilon"], each["draw"]) for each in results}
    for folder in options.folders:
        for draw in range(options.draws):
            for epsilon in options.epsilon.split(","):
                for method in options.methods.split(","):
                    facts = {
                        "table": Path(folder).name,
                        "method": method + "+pure" * options.pure,
                        "epsilon": epsilon,
                        "draw": draw,
                    }
                    if tuple(facts.values()) in done:
                        continue
                    asked = json.dumps(facts | {"folder": folder, "run": method, "pure": options.pure})
                    command = [sys.executable, __file__, "--results", str(options.results), "--one", asked]
                    try:
                        ran = subprocess.run(command, capture_output=True, text=True, timeout=options.limit, check=True)
                        facts |= json.loads(ran.stdout.splitlines()[-1])
                    except subprocess.TimeoutExpired:
                        facts["failed"] = f"over {options.limit} s"
                    except subprocess.CalledProcessError as fault:
                        facts["failed"] = (fault.stderr.strip().splitlines() or ["no word"])[-1][:300]
                    with options.results.open("a") as out:
                        out.write(json.dumps(facts) + "\n")
                    print(facts, flush=True)


if __name__ == "__main__":
    main()
