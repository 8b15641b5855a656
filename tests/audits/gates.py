"""Gates: each looks at the door from one side and raises AssertionError where the promise is seen to be broken.

A statistical gate fails on a correct door with probability `ALPHA` at most. Every gate reaches the code through
its modules, so that a planted bug is met where a real one would be.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray

from margent import pipeline
from margent.audits.attacks import cell_by_cell, many_runs, mu_of, one_run
from margent.audits.doors import one_marginal
from margent.audits.laws import limit, misfit, scale_misfit
from margent.cli import run
from margent.collectors.jtree import JTree
from margent.collectors.privbayes import PrivBayes
from margent.counts.source import CodedCounts
from margent.errors import BudgetError, MargentError, UsageError
from margent.privacy import curator as door
from margent.privacy import exponential
from margent.privacy.accounting import account_named
from margent.privacy.brackets import discrete_gaussian_law
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.laws import Gaussian
from margent.privacy.ledger import Ledger
from margent.privacy.replay import ReplayCurator
from margent.privacy.requests import MarginalRequest, PublicTables, ScoreRequest
from margent.schema.domain import Clique, Domain, Merge
from margent.schema.fields import Category, Integer, Schema
from margent.transcript import NoisyMarginal

ALPHA = 1e-8
CELLS = 1_000_000
ROOMY = Budget(10_000, "0.001", accountant="zcdp")
"""Room for any noise scale that a gate wants to look at."""

PAIR = Schema([Category("a", ["0", "1", "2", "3"]), Category("b", ["0", "1", "2", "3"])], unit="row")
DOMAIN = Domain(("a", "b"), (4, 4))


def counted(table: NDArray[np.int64] | list[list[int]], domain: Domain = DOMAIN) -> CodedCounts:
    """A count source of a made-up table with these exact counts."""
    exact = np.asarray(table)
    places = np.repeat(np.arange(exact.size), exact.ravel())
    codes = np.unravel_index(places, exact.shape)
    return CodedCounts([np.asarray(code, dtype=np.uint32) for code in codes], domain)


def measured(
    exact: NDArray[np.int64],
    scales: Sequence[Fraction],
    cliques: Sequence[Clique],
    domain: Domain,
    schema: Schema = PAIR,
) -> tuple[NoisyMarginal, ...]:
    """The curator's answers about ``exact``, in a ledger with room enough."""
    ledger = Ledger(ROOMY)
    asked = [MarginalRequest(names, Gaussian(scale)) for names, scale in zip(cliques, scales, strict=True)]
    return door.DataCurator(schema, counted(exact, domain), ledger).measure(asked, label="gate")


def residuals(scale_squared: Fraction) -> NDArray[np.int64]:
    """What the curator added to a million cells, of which two in three are empty."""
    exact = np.arange(CELLS, dtype=np.int64) % 3 // 2 * (np.arange(CELLS) % 7)
    schema = Schema([Integer("cell", 0, CELLS - 1, bins=CELLS)], unit="row")
    (answer,) = measured(exact, [scale_squared], [("cell",)], Domain(("cell",), (CELLS,)), schema)
    assert np.issubdtype(answer.counts.dtype, np.integer)
    assert answer.variance == scale_squared
    return answer.counts - exact


def the_noise_has_the_charged_law() -> None:
    for scale in (Fraction(1, 2), Fraction(179, 10), Fraction(10_000)):
        law, most = discrete_gaussian_law(scale), limit(ALPHA / 20)
        noise = residuals(scale)
        assert abs(misfit(noise, law)) < most
        assert abs(scale_misfit(noise, law)) < most
        assert abs(noise.mean()) / float(scale) ** 0.5 * CELLS**0.5 < most
        # Pearson's cells are too coarse for the far tail: 63 draws are expected beyond four scales.
        far = int(np.count_nonzero(np.abs(noise) > 4 * float(scale) ** 0.5))
        assert far > 15 or scale < 1
        empty = np.arange(CELLS) % 3 // 2 * (np.arange(CELLS) % 7) == 0
        for part in (noise[empty], noise[~empty]):
            assert abs(scale_misfit(part, law)) < most


def no_draw_is_used_twice() -> None:
    noise = residuals(Fraction(179, 10)).astype(np.float64)
    again = residuals(Fraction(179, 10)).astype(np.float64)
    most = limit(ALPHA / CELLS / 3)
    for left, right in ((noise, noise), (noise, again)):
        spectrum = np.fft.rfft(left, 2 * CELLS) * np.conj(np.fft.rfft(right, 2 * CELLS))
        lags = np.fft.irfft(spectrum) / (17.9 * CELLS**0.5)
        assert np.abs(lags[1 if left is right else 0 : CELLS]).max() < most
    # Tables of one call, and scores, have draws of their own.
    exact = np.zeros((4, 4), dtype=np.int64)
    scale = Fraction(179, 10)
    tables = np.array(
        [
            [answer.counts.ravel() for answer in measured(exact, [scale] * 2, [("a", "b")] * 2, DOMAIN)]
            for _ in range(400)
        ]
    ).astype(np.float64)
    correlation = (tables[:, 0] * tables[:, 1]).mean() / 17.9
    assert abs(correlation) * tables[:, 0].size ** 0.5 < limit(ALPHA)


def no_run_goes_without_noise() -> None:
    exact = np.full((4, 4), 5, dtype=np.int64)
    for _ in range(2500):
        (answer,) = measured(exact, [Fraction(179, 10)], [("a", "b")], DOMAIN)
        # All sixteen draws are zero with probability 10^-16.
        assert not np.array_equal(answer.counts, exact)


def no_seed_reaches_the_noise() -> None:
    def drawn() -> bytes:
        np.random.seed(1)
        random.seed(1)
        (answer,) = measured(np.zeros((4, 4), dtype=np.int64), [Fraction(10_000)], [("a", "b")], DOMAIN)
        return answer.counts.tobytes()

    first, second = drawn(), drawn()
    assert first != second
    # Forked children draw at the same moment from copies of one memory.
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe(duplex=False) for _ in range(4)]
    children = [context.Process(target=lambda end=end: end.send(drawn())) for _, end in ends]
    for child in children:
        child.start()
    streams = {receive.recv() for receive, _ in ends}
    for child in children:
        child.join()
    assert len(streams) == 4


def _silent(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    return np.zeros(count, dtype=np.int64)


def answers_move_no_more_than_registered() -> None:
    """Exact answers (noise switched off) of neighbors: at most the sensitivity that was charged."""
    heavy = np.zeros((4, 4), dtype=np.int64)
    heavy[0, 0] = 16
    mixed = np.array([[3, 0, 1, 0], [0, 2, 0, 0], [1, 1, 4, 0], [0, 0, 0, 0]], dtype=np.int64)
    twisted = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=np.int64)
    units = ({}, {"relation": "replace"}, {"person_rows": 3})
    for unit, start in product(units, (heavy, mixed, twisted)):
        budget = Budget(10_000, "0.001", accountant="zcdp", **unit)
        for cell in range(16):
            changed = start.copy()
            changed.ravel()[cell] += budget.person_rows or 1
            if budget.relation == "replace":
                changed.ravel()[int(np.argmax(start))] -= 1
            for charge, moved in zip(*_answers(start, changed, budget), strict=True):
                assert moved <= charge.sensitivity_squared, charge.query


def _answers(start: NDArray[np.int64], changed: NDArray[np.int64], budget: Budget) -> tuple[list[Charge], list[float]]:
    vectors = []
    charges: tuple[Charge, ...] = ()
    flat = {name: np.array([7.3, 4.0, 1.9, 0.05]) for name in "ab"}
    pairs = (("a", "b"),) * 3
    for exact in (start, changed):
        ledger = Ledger(budget)
        curator = door.DataCurator(PAIR, counted(exact), ledger, noise=_silent)
        wanted = [MarginalRequest(names, Gaussian(Fraction(9))) for names in (("a",), ("b",), ("a", "b"))]
        wanted += [MarginalRequest(names, Gaussian(Fraction(900)), interaction=True) for names in (("a",), ("a", "b"))]
        stack = [answer.counts.ravel() for answer in curator.measure(wanted, label="gate")]
        for request in (
            ScoreRequest("indif", pairs, Gaussian(Fraction(10**7))),
            ScoreRequest("r", pairs, Gaussian(Fraction(10**7))),
            ScoreRequest("independence", pairs, Gaussian(Fraction(9)), expected=flat),
        ):
            stack.append(curator.scores(request, label="gate").values)
        vectors.append(stack)
        charges = ledger.charges
    assert len(charges) == len(vectors[0])
    moved = [float(((one - other) ** 2).sum()) for one, other in zip(*vectors, strict=True)]
    return list(charges), moved


def mutual_information_moves_no_more_than_registered() -> None:
    """One of seven records replaced, where the score moves most; refused where their number is private."""
    start, changed = (np.zeros((4, 4), dtype=np.int64) for _ in range(2))
    start[0, 1] = start[1, 0] = changed[0, 1] = changed[1, 0] = 3
    start[0, 0] = changed[2, 2] = 1
    request = ScoreRequest("mutual-information", (("a", "b"),), Gaussian(Fraction(10**7)), tables=PublicTables(7))
    values = []
    for exact in (start, changed):
        ledger = Ledger(Budget(10_000, "0.001", accountant="zcdp", relation="replace"))
        curator = door.DataCurator(PAIR, counted(exact), ledger, noise=_silent)
        values.append(int(curator.scores(request, label="gate").values[0]))
    (charge,) = ledger.charges
    assert (values[0] - values[1]) ** 2 <= charge.sensitivity_squared
    curator = door.DataCurator(PAIR, counted(start), Ledger(ROOMY))
    with contextlib.suppress(UsageError):
        curator.scores(request, label="gate")
        raise AssertionError("mutual information was sold where the number of records is private")


def f_moves_no_more_than_registered() -> None:
    """A child that its parent tells, where F moves most: a record more, three more, one replaced."""
    domain, start = Domain(("a", "b"), (2, 2)), np.array([[9, 0], [0, 9]])
    request = ScoreRequest("f", (("a", "b"),), Gaussian(Fraction(10**4)), children=("a",))
    for unit, changed in (
        ({}, [[9, 0], [1, 9]]),
        ({"person_rows": 3}, [[9, 0], [3, 9]]),
        ({"relation": "replace"}, [[8, 0], [1, 9]]),
    ):
        values = []
        for exact in (start, np.array(changed)):
            ledger = Ledger(Budget(10_000, "0.001", accountant="zcdp", **unit))  # type: ignore[arg-type]
            curator = door.DataCurator(PAIR, counted(exact, domain), ledger, noise=_silent)
            values.append(int(curator.scores(request, label="gate").values[0]))
        (charge,) = ledger.charges
        assert (values[0] - values[1]) ** 2 <= charge.sensitivity_squared, unit


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


def scores_are_rounded_without_a_second_step() -> None:
    """Small tables against awkward expectations: rounding must not let one record move a score by two."""
    rng = np.random.default_rng(3)
    rows = [rng.random(2) * 9 for _ in range(40)]
    for expected in zip(rows[::2], rows[1::2], strict=True):
        total = max(float(expected[0].sum()), 1.0)
        for cells in product(range(3), repeat=4):
            table = np.array(cells, dtype=np.int64).reshape(2, 2)
            value = door.exact_scores.independence_distance(table, *expected, total)
            for cell in range(4):
                more = table.copy()
                more.ravel()[cell] += 1
                assert abs(door.exact_scores.independence_distance(more, *expected, total) - value) <= 1


def every_answer_is_charged_at_its_price() -> None:
    """Each answer has its charge, and each charge is priced again, in 200-bit arithmetic."""
    exact = np.array([[3, 0, 1, 0], [0, 2, 0, 0], [1, 1, 4, 0], [0, 0, 0, 0]], dtype=np.int64)
    for name in ("gdp", "zcdp"):
        ledger = Ledger(Budget(3, "1e-3", accountant=name))
        curator = door.DataCurator(PAIR, counted(exact), ledger)
        scale = curator.account.gaussian_scale(Fraction(1), ledger.budget.total / 4)
        answers = curator.measure(
            [MarginalRequest(("a",), Gaussian(scale)), MarginalRequest(("b",), Gaussian(scale))], label="gate"
        )
        assert len(ledger.charges) == len(answers) == 2
        least = sum(_least_price(charge) for charge in ledger.charges)
        assert ledger.spent >= least * (1 - mpf(2) ** -100)
    small = Fraction(1, 2)
    assert account_named("gdp").gaussian_cost(Fraction(1), small) >= _mu_of(small) ** 2 / 2 * (1 - mpf(2) ** -80)


def _least_price(charge: Charge) -> mpf:
    assert charge.scale_squared is not None
    sensitivity = mpf(charge.sensitivity_squared.numerator) / charge.sensitivity_squared.denominator
    if charge.account == "zcdp":
        return sensitivity / 2 / (mpf(charge.scale_squared.numerator) / charge.scale_squared.denominator)
    return sensitivity * _mu_of(charge.scale_squared) ** 2 / 2


def _mu_of(scale_squared: Fraction) -> mpf:
    """g(s) = 2 Phi^-1((1 + p_0) / 2), straight from its definition."""
    with mp.workprec(200):
        top, bottom = scale_squared.numerator, scale_squared.denominator
        total = 1 + 2 * mp.nsum(lambda x: mp.exp(-(x**2) * bottom / (2 * mpf(top))), [1, mp.inf])
        return 2 * mp.sqrt(2) * mp.erfinv(1 / total)


def the_stated_epsilon_is_true() -> None:
    """Totals and epsilons of the accounts against the textbook formula in 200 bits."""
    with mp.workprec(200):
        for epsilon, delta in product(
            (Fraction(1, 5), Fraction(1), Fraction(5)), (Fraction(1, 10**9), Fraction(1, 1000))
        ):
            total = account_named("gdp").total(epsilon, delta)
            mu = mp.sqrt(2 * mpf(total.numerator) / total.denominator)
            eps = mpf(epsilon.numerator) / epsilon.denominator
            loss = mp.ncdf(-eps / mu + mu / 2) - mp.exp(eps) * mp.ncdf(-eps / mu - mu / 2)
            assert loss <= mpf(delta.numerator) / delta.denominator
            assert account_named("gdp").epsilon(total, delta) <= epsilon * (1 + Fraction(1, 10**9))
            assert Budget(epsilon, delta).total == total


class Watched:
    """A count source that notes how many charges were written when it is looked at, and may fail."""

    def __init__(self, inner: CodedCounts, ledger: Ledger, broken: bool = False) -> None:
        self.inner, self.ledger, self.broken = inner, ledger, broken
        self.looks: list[int] = []

    @property
    def domain(self) -> Domain:
        return self.inner.domain

    def count(self, cliques: Sequence[Clique], merges: Mapping[str, Merge] | None = None) -> list[NDArray[np.int64]]:
        self.looks.append(len(self.ledger.charges))
        if self.broken:
            raise OSError("the disk is gone")
        return self.inner.count(cliques, merges or {})


def charges_come_before_looks_and_stay() -> None:
    exact = np.ones((4, 4), dtype=np.int64)
    for broken in (False, True):
        ledger = Ledger(ROOMY)
        watched = Watched(counted(exact), ledger, broken)
        with contextlib.suppress(MargentError):
            door.DataCurator(PAIR, watched, ledger).measure(
                [MarginalRequest(("a",), Gaussian(Fraction(9))), MarginalRequest(("b",), Gaussian(Fraction(9)))],
                label="gate",
            )
        assert watched.looks
        assert all(charged == 2 for charged in watched.looks)
        assert len(ledger.charges) == 2


def the_budget_is_never_passed() -> None:
    budget = Budget(1)
    scale = budget.account.gaussian_scale(Fraction(1), budget.total / 7)
    cost = budget.account.gaussian_cost(Fraction(1), scale)
    charge = Charge(
        "gate", "marginal", (("a",),), "discrete-gaussian", budget.relation, Fraction(1), scale, "gdp", cost
    )

    def spend(ledger: Ledger, charge: Charge) -> bool:
        try:
            ledger.spend([charge])
        except BudgetError:
            return False
        return True

    ledger = Ledger(budget)
    with ThreadPoolExecutor(8) as threads:
        granted = sum(threads.map(lambda _: spend(ledger, charge), range(40)))
    assert granted == 7
    assert ledger.spent <= budget.total
    for least in (Fraction(0), Fraction(-1)):
        chosen = Charge("gate", "choice", (("a",),), "exponential", budget.relation, Fraction(1), None, "gdp", least)
        assert not spend(Ledger(budget), chosen)
    for least in (Fraction(0), Fraction(-1), cost / 10**9):
        cheap = Charge(
            "gate", "marginal", (("a",),), "discrete-gaussian", budget.relation, Fraction(1), scale, "gdp", least
        )
        assert not spend(Ledger(budget), cheap)


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


def choices_have_the_exponential_law() -> None:
    """Draws against exp(epsilon score / 2 sensitivity), and the law's whole profile on neighboring scores."""
    epsilon, sensitivity = Fraction(2), Fraction(3)
    for scores in ([0, 0, 0], [5, 0, 2], [9, 8, 7]):
        weights = np.exp(float(epsilon / (2 * sensitivity)) * np.array(scores, dtype=float))
        chances = weights / weights.sum()
        draws = [exponential.exponential_choice(scores, epsilon, sensitivity) for _ in range(6000)]
        seen = np.bincount(draws, minlength=3) / len(draws)
        assert (np.abs(seen - chances) * len(draws) ** 0.5 < limit(ALPHA / 9) * (chances * (1 - chances)) ** 0.5).all()


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
