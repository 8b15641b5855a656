"""The self test: what a user can check about the noise, the charges and the randomness of this very machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from margent.audits.attacks import Door, cell_by_cell
from margent.audits.doors import one_marginal
from margent.audits.laws import checked_brackets, limit, misfit, scale_misfit
from margent.errors import BudgetError
from margent.privacy.brackets import discrete_gaussian_law, discrete_laplace_law
from margent.privacy.budget import Budget
from margent.privacy.charge import Charge
from margent.privacy.ledger import Ledger
from margent.privacy.noise import discrete_gaussian, discrete_laplace
from margent.progress import Progress, silent

ALPHA = 1e-6
"""Chance that the whole self test fails on a machine where nothing is wrong."""

SCALES = (Fraction(1, 2), Fraction(179, 10), Fraction(1000), Fraction(10_000), Fraction(4_000_000))
LAPLACE_SCALES = (Fraction(1, 3), Fraction(7, 3), Fraction(40))
DRAWS = 200_000
CANARIES = 1_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what it asked, whether it held, what was seen; words that anybody can read."""

    name: str
    passed: bool
    seen: str
    seconds: float


def self_test(*, door: Door = one_marginal, progress: Progress = silent) -> tuple[Finding, ...]:
    """Check the noise, the charges and the randomness here and now; no table of the user's is read.

    ``door``: what answers for the made-up table of the one-run audit.

    Privacy: none: every table is made up.
    """
    checks: tuple[tuple[str, Callable[[], tuple[bool, str]]], ...] = (
        ("noise tables are exact", _brackets),
        ("noise has the promised law", _draws),
        ("an attack on one run finds no more than was promised", lambda: _attack(door)),
        ("charges come first and never pass the budget", _ledger),
        ("two processes never share their noise", _processes),
    )
    findings = []
    for place, (name, check) in enumerate(checks):
        progress(name, place / len(checks))
        started = time.perf_counter()
        try:
            passed, seen = check()
        except Exception as fault:  # a check that cannot run is a check that failed
            passed, seen = False, f"the check could not run ({type(fault).__name__})"
        findings.append(Finding(name, passed, seen, time.perf_counter() - started))
    progress("done", 1.0)
    return tuple(findings)


def _brackets() -> tuple[bool, str]:
    laws = [discrete_gaussian_law(scale) for scale in SCALES[:4]] + [discrete_laplace_law(t) for t in LAPLACE_SCALES]
    checked = wrong = 0
    for law in laws:
        for bits in (64, 128, 192):
            listed, off = checked_brackets(law, bits)
            checked, wrong = checked + listed, wrong + off
    return wrong == 0, f"{checked:,} integer brackets of {len(laws)} laws against 600-bit arithmetic, {wrong} wrong"


def _draws() -> tuple[bool, str]:
    tests = 2 * (len(SCALES) + len(LAPLACE_SCALES))
    most = limit(ALPHA / 4 / tests)
    samples = [(discrete_gaussian_law(scale), discrete_gaussian(DRAWS, scale)) for scale in SCALES]
    samples += [(discrete_laplace_law(scale), discrete_laplace(DRAWS, scale)) for scale in LAPLACE_SCALES]
    worst = max(max(abs(misfit(draws, law)), abs(scale_misfit(draws, law))) for law, draws in samples)
    return worst <= most, (
        f"{DRAWS:,} draws at each of {tests // 2} scales; the worst is {worst:.1f} standard errors off, "
        f"{most:.1f} would be a failure"
    )


def _attack(door: Door) -> tuple[bool, str]:
    budget = Budget(1, "1e-6")
    coins = np.frombuffer(os.urandom(CANARIES), dtype=np.uint8) < 128
    bound = cell_by_cell(door, budget, coins, ALPHA / 4)
    # The loss that was shown, at the same delta: mu^2 / 2 priced as the account prices what is spent.
    shown = budget.account.epsilon(Fraction(bound.found**2 / 2), budget.delta) if bound.found else Fraction(0)
    return not bound.broken, (
        f"{bound.trials:,} records guessed at in one run: the guesses prove epsilon to be at least {float(shown):.2f}; "
        f"{float(budget.epsilon):.2f} was promised"
    )


def _ledger() -> tuple[bool, str]:
    budget = Budget(1)
    ledger = Ledger(budget)
    scale = budget.account.gaussian_scale(Fraction(1), budget.total / 100)
    cost = budget.account.gaussian_cost(Fraction(1), scale)
    charge = Charge("self test", "marginal", (("cell",),), "discrete-gaussian", budget.relation,
                    Fraction(1), scale, budget.accountant, cost)  # fmt: skip
    most = int(budget.total / cost)

    def spend(_: int) -> bool:
        try:
            ledger.spend([charge])
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        granted = sum(threads.map(spend, range(3 * most)))
    held = granted == most and ledger.spent == most * cost <= budget.total
    return held, f"{3 * most} requests at once for what {most} may have: {granted} were granted"


_CHILD = "import sys; from margent.privacy.randomness import random_bytes; sys.stdout.write(random_bytes(32).hex())"


def _processes() -> tuple[bool, str]:
    started = [
        subprocess.Popen([sys.executable, "-c", _CHILD], stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(4)
    ]
    streams = [process.communicate(timeout=60)[0] for process in started]
    distinct = len(set(streams)) == len(streams) and all(len(stream) == 64 for stream in streams)
    return distinct, f"{len(streams)} processes, {len(set(streams))} different streams of secret bits"
