"""Google's dp-accounting as a second opinion, in an environment of its own.

Set MARGENT_DP_ACCOUNTING_PYTHON to a Python that has it (``python -m venv X; X/bin/pip install
dp-accounting``); its pins are not ours, so it is never installed beside Margent.
"""

from __future__ import annotations

import json
import os
import subprocess
from fractions import Fraction

import pytest

from margent.privacy.accounting import account_named

PYTHON = os.environ.get("MARGENT_DP_ACCOUNTING_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="set MARGENT_DP_ACCOUNTING_PYTHON to a Python with dp-accounting")

# Releases of discrete Gaussian answers, (s, how many), each of sensitivity one; s^2 is on the grid.
RELEASES = [[(1, 1)], [(2, 3)], [(5, 4)], [(20, 30)], [(2, 2), (8, 10)], [(100, 400)]]
DELTA = 1e-6

SCRIPT = """
import json, sys
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from dp_accounting.rdp import rdp_privacy_accountant
from dp_accounting import dp_event
releases, delta, gaussians = json.load(sys.stdin)
discrete = []
for release in releases:
    whole = None
    for s, count in release:
        one = pld.from_discrete_gaussian_mechanism(s, value_discretization_interval=2e-5).self_compose(count)
        whole = one if whole is None else whole.compose(one)
    discrete.append(whole.get_epsilon_for_delta(delta))
curves = [GaussianPrivacyLoss(standard_deviation=1 / mu).get_delta_for_epsilon(eps) for eps, mu in gaussians]
json.dump([discrete, curves], sys.stdout)
"""


@pytest.fixture(scope="module")
def answers() -> tuple[list[float], list[float], list[tuple[float, float]]]:
    account = account_named("gdp")
    delta = Fraction(repr(DELTA))
    gaussians = [(eps, float(2 * account.total(Fraction(repr(eps)), delta)) ** 0.5) for eps in (0.1, 0.5, 1.0, 3.0)]
    run = subprocess.run(
        [PYTHON, "-c", SCRIPT],
        input=json.dumps([RELEASES, DELTA, gaussians]),
        capture_output=True,
        text=True,
        check=True,
    )
    discrete, curves = json.loads(run.stdout)
    return discrete, curves, gaussians


def test_stated_epsilon_is_above_the_privacy_loss_distribution(
    answers: tuple[list[float], list[float], list[tuple[float, float]]],
) -> None:
    """Their figures are pessimistic by up to 2e-5 a composed answer; ours must be above theirs less that."""
    for name in ("gdp", "zcdp"):
        account = account_named(name)
        for release, theirs in zip(RELEASES, answers[0], strict=True):
            spent = sum(
                (count * account.gaussian_cost(Fraction(1), Fraction(s * s)) for s, count in release),
                Fraction(0),
            )
            stated = float(account.epsilon(spent, Fraction(repr(DELTA))))
            discretization = 2e-5 * sum(count for _, count in release)
            assert theirs - discretization < stated, (name, release)
            # Both accounts are loose for one answer at s = 1, where the noise is far from continuous.
            looseness = 1.2 if release == [(1, 1)] else {"gdp": 1.03, "zcdp": 1.1}[name]
            assert stated < theirs * looseness, (name, release)


def test_totals_meet_their_gaussian_curve(
    answers: tuple[list[float], list[float], list[tuple[float, float]]],
) -> None:
    assert answers[1] == pytest.approx([DELTA] * len(answers[2]), rel=1e-9)
