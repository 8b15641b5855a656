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


Runs = dict[tuple[str, str], list[dict[str, Any]]]
"""The runs of a table by method and epsilon."""


def markdown(results: list[dict[str, Any]]) -> str:
    """A table for every data set, methods from the smallest TVD2 at the middle budget on; then the classifiers'."""
    made = [each for each in results if "TVD2" in each]
    parts = []
    for table in dict.fromkeys(each["table"] for each in made):
        runs: Runs = {}
        for each in made:
            if each["table"] == table:
                runs.setdefault((each["method"], each["epsilon"]), []).append(each)
        parts += [f"**{table.replace(':', ', ')}**", _scores(runs)]
        if any("svm" in run for found in runs.values() for run in found):
            parts += [
                f"**{table}**, wrong answers about a man / a degree / over 50K / never married",
                _classifiers(runs),
            ]
    failed = [
        f"{each['table']}, {each['method']}, {each['epsilon']}: {each['failed']}"
        for each in results
        if "failed" in each
    ]
    return "\n\n".join([*parts, *failed])


def _ordered(runs: Runs) -> tuple[list[str], list[str]]:
    budgets = sorted({epsilon for _, epsilon in runs}, key=float)
    middle = budgets[len(budgets) // 2]
    methods = dict.fromkeys(method for method, _ in runs)
    return sorted(methods, key=lambda name: mean_of(runs.get((name, middle), []), "TVD2") or 1), budgets


def mean_of(runs: list[dict[str, Any]], key: str) -> float | None:
    return statistics.fmean(each[key] for each in runs) if runs else None


def _scores(runs: Runs) -> str:
    methods, budgets = _ordered(runs)
    heads = [f"ε = {epsilon}" for epsilon in budgets]
    lines = [f"| method | {' | '.join(heads)} | draws | CPU s | GiB |", "|---" * (len(budgets) + 4) + "|"]
    for method in methods:
        found = [runs.get((method, epsilon), []) for epsilon in budgets]
        cells = [", ".join(_short(mean_of(each, key), 4) for key in ("TVD2", "TVD3", "range")) for each in found]
        seconds = [statistics.median(run["cpu"] for run in each) for each in found if each]
        memory = max(run["memory"] for each in found for run in each)
        draws = min(len(each) for each in found if each)
        took = (
            f"{min(seconds):.0f}"
            if round(min(seconds)) == round(max(seconds))
            else f"{min(seconds):.0f}–{max(seconds):.0f}"
        )
        lines.append(f"| `{method}` | {' | '.join(cells)} | {draws} | {took} | {memory:.1f} |")
    return "\n".join(lines)


def _classifiers(runs: Runs) -> str:
    methods, budgets = _ordered(runs)
    lines = [f"| method | {' | '.join(f'ε = {epsilon}' for epsilon in budgets)} |", "|---" * (len(budgets) + 1) + "|"]
    for method in methods:
        found = [[run["svm"] for run in runs.get((method, epsilon), [])] for epsilon in budgets]
        cells = [" / ".join(_short(mean_of(each, question), 3) for question in TASKS) for each in found]
        lines.append(f"| `{method}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _short(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}".lstrip("0")


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
