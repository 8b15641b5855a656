"""Gates for whole collectors and runs: what is asked, written and said follows from noisy answers alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from margent import pipeline
from margent.audits.attacks import cell_by_cell, mu_of
from margent.audits.doors import one_marginal
from margent.cli import run
from margent.collectors.jtree import JTree
from margent.collectors.privbayes import PrivBayes
from margent.counts.source import CodedCounts
from margent.errors import MargentError
from margent.privacy import curator as door
from margent.privacy.budget import Budget
from margent.privacy.ledger import Ledger
from margent.privacy.replay import ReplayCurator
from margent.schema.domain import Domain
from margent.schema.fields import Category, Schema
from tests.audits.adversaries import many_runs, one_run
from tests.audits.small_table import ALPHA, CELLS, PAIR


def questions_follow_from_answers_alone() -> None:
    """With answers and choices pinned, a network is asked for alike in tables of 60 and of 60,000 records."""
    schema = Schema([Category(name, list("0123")) for name in "abcd"], unit="row")
    domain = Domain(tuple("abcd"), (4,) * 4)
    genuine = door._checked_sum
    door._checked_sum = lambda exact, noise: np.full(exact.shape, 6000 // exact.size)
    try:
        asked = []
        for rows in (60, 60_000):
            codes = [np.full(rows, place % 4, dtype=np.uint32) for place in range(4)]
            budget = Budget(1)
            curator = door.DataCurator(
                schema,
                CodedCounts(codes, domain),
                Ledger(budget),
                chooser=lambda scores, epsilon, sensitivity: 0,
            )
            made = PrivBayes().collect(curator, budget)
            asked.append((made.charges, made.structure))
    finally:
        door._checked_sum = genuine
    assert asked[0] == asked[1]


def pairs_are_picked_by_noisy_answers_alone() -> None:
    """A dependency graph must follow from what was answered: whoever asks again, without data, gets the same tables.

    Twelve independent columns at a small budget: the order of 66 scores by their noise is not that of the scores
    themselves, but once in far more than 1e8 runs; what the noise says is the same in the replay, always.
    """
    names = tuple(f"c{number:02d}" for number in range(12))
    schema = Schema(
        [Category(name, ["0", "1", "2"], required=True, unlisted={"to": "0"}) for name in names], unit="row"
    )
    rng = np.random.default_rng(17)
    codes = [rng.integers(0, 3, 3000).astype(np.uint32) for _ in names]
    exact = CodedCounts(codes, Domain(names, (3,) * 12))
    for budget in (Budget(1), Budget(4, 0, accountant="pure")):
        collector = JTree(cramer=0.001, table_noise=10)
        made = collector.collect(door.DataCurator(schema, exact, Ledger(budget)), budget)
        try:
            again = collector.collect(ReplayCurator(made), budget)
        except MargentError as fault:
            raise AssertionError("without the data the same answers lead to other questions") from fault
        assert again.structure == made.structure


def _synthesize(folder: Path, rows: list[list[str]], *options: str) -> tuple[int, dict[str, bytes]]:
    folder.mkdir()
    table, schema, out = folder / "t.csv", folder / "s.json", folder / "OUT"
    table.write_text("\n".join(",".join(row) for row in [["a", "b"], *rows]) + "\n")
    fields = [{"name": name, "type": "string", "categories": list("0123")} for name in "ab"]
    schema.write_text(json.dumps({"fields": fields, "margent": {"unit": "row"}}))
    code = run(["synthesize", str(table), "--schema", str(schema), "--epsilon", "1", "--single-release", "--seed", "3",
                "-o", str(out), *options])  # fmt: skip
    return code, {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def nothing_but_the_answers_depends_on_the_data(folder: Path) -> None:
    """With the noisy answers pinned, neighbors, and even strangers, give the same files byte for byte."""
    plain = [[str(place % 4), str(place // 4 % 4)] for place in range(160)]
    tables = {
        "plain": plain,
        "one less": plain[1:],
        "one odd": [*plain, ["9", "secretvalue"]],
        "constant": [["0", "0"]] * 160,
        "torn": [*plain, ["0"], ["1", "2", "3"]],
    }
    genuine = door._checked_sum

    def pinned(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
        # What a bug adds to the noise stays; the exact counts go, and the noise becomes a pinned one.
        shape = genuine(exact, noise).shape
        return np.random.default_rng(int(np.prod(shape))).integers(5, 60, shape)

    door._checked_sum = pinned
    try:
        outcomes = {name: _synthesize(folder / str(place), rows) for place, (name, rows) in enumerate(tables.items())}
    finally:
        door._checked_sum = genuine
    for name, (code, _) in outcomes.items():
        assert code == 0, name
    # Each run has a random number of its own: the one thing that may differ.
    numbers = {number for _, files in outcomes.values() for number in _numbers(files)}
    assert len(numbers) == len(tables)
    for name, (_, files) in outcomes.items():
        assert files == outcomes["plain"][1], name


def the_whole_run_keeps_its_promise(tiny_runs: int) -> None:
    """Through `synthesize`: two columns of four values, one canary record in an otherwise empty cell."""
    budget = Budget(2, "1e-3")
    without = [("0", "0")] * 4
    within = [*without, ("3", "3")]
    assert not many_runs(_canaries(without, budget), _canaries(within, budget), trials=tiny_runs, mu=mu_of(budget),
                         alpha=ALPHA).broken  # fmt: skip


def _canaries(rows: list[tuple[str, str]], budget: Budget) -> Callable[[], float]:
    import pyarrow as pa

    table = pa.table({"a": [one for one, _ in rows], "b": [other for _, other in rows]})

    def statistic() -> float:
        release = pipeline.synthesize(table, PAIR, budget=budget, method="independent", rows=0, seed=1)
        # The adversary sees the noisy answers: the canary's cells in both one-ways.
        return float(sum(np.asarray(answer.counts)[3] for answer in release.transcript.answers))

    return statistic


def one_run_shows_no_more_than_promised() -> None:
    budget = Budget(1, "1e-6")
    coins = np.random.default_rng(int(time.time_ns())).random(CELLS) < 0.5
    assert not cell_by_cell(one_marginal, budget, coins, ALPHA).broken
    # This bound assumes nothing; at .01 a correct door, far below its promise, is refused once in 10^4 runs less.
    assert not one_run(one_marginal, budget, 100_000, coins[:100_000], 1e-4).broken


def _numbers(files: dict[str, bytes]) -> set[str]:
    """The run's random number, taken out of the files that hold it."""
    found = set()
    for name in ("summary.json", "measurements/transcript.json"):
        document = json.loads(files[name])
        found.add(document["run"])
        files[name] = files[name].replace(document["run"].encode(), b"")
    assert len(found) == 1
    return found
