"""Accounts: golden values, conversions against 600-bit interval arithmetic, scales, refusals."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.errors import BudgetError, UsageError
from margent.privacy import gdp, zcdp
from margent.privacy.accounting import ACCOUNT_NAMES, account_named
from margent.privacy.gdp import GdpAccount
from margent.privacy.grid import index_above, on_grid, point
from margent.privacy.pure import PureAccount
from margent.privacy.zcdp import ZcdpAccount
from tests.sizes import rounds

BITS = 600
GAP = Fraction(1, 10**9)
SLACK = 4 * gdp.ETA
# Two tests of this many pairs and one of half as many: 2,000 at every commit, 100,000 in an audit.
PAIRS = rounds(800, 40_000)

# rho (tight zCDP) and mu^2/2 (exact Gaussian) at five significant digits.
GOLDEN = """
0.1 1e-9 1.7714e-4 1.9833e-4
0.2 1e-9 6.7527e-4 7.5328e-4
1   1e-9 .014973   .016557
2   1e-9 .056131   .061794
5   1e-9 .31169    .34054
0.1 1e-5 4.3299e-4 5.2880e-4
0.2 1e-5 1.5588e-3 1.8809e-3
1   1e-5 .030557   .035926
2   1e-5 .10826    .12578
5   1e-5 .55097    .62859
"""


def exactly(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def normal_tail(x: arb) -> arb:
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(epsilon: arb, cost: arb) -> arb:
    """delta(epsilon) of a Gaussian mechanism with mu^2/2 = cost."""
    mu = (2 * cost).sqrt()
    return normal_tail(epsilon / mu - mu / 2) - epsilon.exp() * normal_tail(epsilon / mu + mu / 2)


def zcdp_epsilon(rho: arb, delta: arb) -> arb:
    """The infimum over x > 0 of (1 + x) rho + (ln(1/delta) - ln(1 + x))/x - ln(1 + 1/x), enclosed.

    The derivative has the sign of rho x^2 + ln(1 + x) - ln(1/delta), which rises. Newton's method finds where it
    vanishes, and its signs on both sides are then decided, so that the minimum lies between them.
    """
    goal = -delta.log()
    x = (goal / rho).sqrt().min(1 / delta).mid()
    for _ in range(100):
        log1p = (1 + x).log()
        step = ((rho * x**2 + log1p - goal) / (2 * rho * x + 1 / (1 + x))).mid()
        x = (x - step if step < x else x / 2).mid()
        if abs(step) < x * arb(2) ** (-BITS // 2 - 20):
            break
    low, high = x * (1 - arb(2) ** (60 - BITS)), x * (1 + arb(2) ** (60 - BITS))
    assert rho * low**2 + (1 + low).log() < goal < rho * high**2 + (1 + high).log()
    best = low.union(high)
    return ((1 + best) * rho + (goal - (1 + best).log()) / best - (1 + 1 / best).log()).max(arb(0))


def random_pairs(count: int, seed: int) -> list[tuple[Fraction, Fraction]]:
    """(epsilon, delta) spread over the ranges in use on a log scale, the extremes included."""
    rng = random.Random(seed)
    wide = [(rng.uniform(-12, 4), rng.uniform(-300, -1)) for _ in range(count // 3)]
    usual = [(rng.uniform(-3, 1.5), rng.uniform(-15, -2)) for _ in range(count - len(wide))]
    corners = [(Fraction(e), Fraction(d)) for e in ("1e-12", "1", "1e4") for d in ("1e-300", "1e-9", "0.1")]
    return corners + [(Fraction(f"{10**e:.17g}"), Fraction(f"{10**d:.17g}")) for e, d in wide + usual]


@pytest.mark.parametrize("row", GOLDEN.split("\n")[1:-1])
def test_golden_totals(row: str) -> None:
    epsilon, delta, rho, half_mu_squared = row.split()
    for account, expected in ((ZcdpAccount(), rho), (GdpAccount(), half_mu_squared)):
        found = float(account.total(Fraction(epsilon), Fraction(delta)))
        assert f"{found:.4e}" == f"{float(expected):.4e}"


@pytest.mark.parametrize("seed", [1])
def test_gdp_conversions_are_safe_and_tight(seed: int) -> None:
    account = GdpAccount()
    with ctx.workprec(BITS):
        for epsilon, delta in random_pairs(PAIRS, seed):
            total = account.total(epsilon, delta)
            eps, goal = exactly(epsilon), exactly(delta)
            assert gaussian_delta(eps - 2 * exactly(gdp.ETA), exactly(total)) <= goal * (1 - exactly(gdp.ETA))
            assert gaussian_delta(eps - exactly(SLACK), exactly(total * (1 + GAP))) > goal
            stated = account.epsilon(total, delta)
            assert epsilon * (1 - GAP) - SLACK < stated <= epsilon


@pytest.mark.parametrize("seed", [2])
def test_stated_gdp_epsilon_is_above_the_true_one_by_less_than_a_billionth(seed: int) -> None:
    account = GdpAccount()
    rng = random.Random(seed)
    with ctx.workprec(BITS):
        for _, delta in random_pairs(PAIRS, seed):
            spent = Fraction(f"{10 ** rng.uniform(-9, 4):.17g}")
            stated = account.epsilon(spent, delta)
            cost, goal = exactly(spent), exactly(delta)
            assert gaussian_delta(exactly(stated), cost) <= goal
            least = stated * (1 - GAP) - SLACK
            assert least < 0 or gaussian_delta(exactly(least), cost) > goal


@pytest.mark.parametrize("seed", [3])
def test_zcdp_conversions_are_safe_and_tight(seed: int) -> None:
    account = ZcdpAccount()
    with ctx.workprec(BITS):
        for epsilon, delta in random_pairs(PAIRS // 2, seed):
            total = account.total(epsilon, delta)
            eps, goal = exactly(epsilon), exactly(delta)
            assert zcdp_epsilon(exactly(total), goal) <= eps
            assert zcdp_epsilon(exactly(total * (1 + GAP)), goal) > eps
            stated = account.epsilon(total, delta)
            assert epsilon * (1 - GAP) < stated <= epsilon
            true = zcdp_epsilon(exactly(total), goal)
            assert true <= exactly(stated) < true * (1 + exactly(GAP))


def test_zcdp_conversion_is_the_published_one() -> None:
    """delta = inf over alpha of exp((alpha - 1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha / (alpha - 1)."""
    rho, delta = Fraction("0.02"), Fraction("1e-7")
    epsilon = float(ZcdpAccount().epsilon(rho, delta))
    published = min(
        mpmath.exp((a - 1) * (a * float(rho) - epsilon)) * (1 - 1 / a) ** a / (a - 1)
        for a in (1.01 + k / 100 for k in range(10_000))
    )
    assert published == pytest.approx(1e-7, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.fractions("1/1000000", "100"), st.fractions("1/1000000", "100"), st.sampled_from(["gdp", "zcdp"]))
def test_more_spent_is_more_stated(first: Fraction, second: Fraction, name: str) -> None:
    account, delta = account_named(name), Fraction(1, 10**6)
    low, high = sorted((first, second))
    assert account.epsilon(low, delta) <= account.epsilon(high, delta)
    assert account.epsilon(high, delta) <= account.epsilon(high, delta / 10)


def test_gdp_saves_over_zcdp_and_both_start_at_zero() -> None:
    delta = Fraction(1, 10**9)
    for account in (GdpAccount(), ZcdpAccount()):
        assert account.epsilon(Fraction(0), delta) == 0
    saved = 1 - ZcdpAccount().total(Fraction(1), delta) / GdpAccount().total(Fraction(1), delta)
    assert 0.09 < saved < 0.1


def test_a_nearly_empty_account_states_nearly_nothing() -> None:
    for name in ("gdp", "zcdp"):
        stated = account_named(name).epsilon(Fraction(1, 10**90), Fraction(1, 10**9))
        assert 0 <= stated < Fraction(1, 10**20)
    # delta alone covers it: Pr of any difference is below delta
    assert account_named("gdp").epsilon(Fraction(1, 10**4), Fraction(1, 10)) == 2 * gdp.ETA


@pytest.mark.parametrize("name", ["gdp", "zcdp"])
@pytest.mark.parametrize("sensitivity_squared", [Fraction(1), Fraction(2), Fraction(91 * 1024**2), Fraction(7, 3)])
@pytest.mark.parametrize("share", ["3", "0.5", "0.02", "1.22e-4", "1.2e-4", "1e-7", "1e-30"])
def test_scale_is_the_smallest_affordable(name: str, sensitivity_squared: Fraction, share: str) -> None:
    account, affordable = account_named(name), Fraction(share)
    scale = account.gaussian_scale(sensitivity_squared, affordable)
    assert on_grid(scale)
    assert account.gaussian_cost(sensitivity_squared, scale) <= affordable
    if scale > point(0):
        assert account.gaussian_cost(sensitivity_squared, point(index_above(scale) - 1)) > affordable


def test_ample_share_still_buys_no_finer_noise_than_the_floor() -> None:
    assert GdpAccount().gaussian_scale(Fraction(1), Fraction(10**6)) == Fraction(1, 16)
    assert ZcdpAccount().gaussian_scale(Fraction(1), Fraction(10**6)) == Fraction(1, 16)


def test_costs_scale_with_squared_sensitivity_exactly() -> None:
    for account in (GdpAccount(), ZcdpAccount()):
        one = account.gaussian_cost(Fraction(1), Fraction(25))
        assert account.gaussian_cost(Fraction(7, 2), Fraction(25)) == one * Fraction(7, 2)
    assert ZcdpAccount().gaussian_cost(Fraction(2), Fraction(25)) == Fraction(1, 25)


def test_price_of_noise_off_the_grid() -> None:
    with pytest.raises(UsageError, match=r"not on the public grid.*round_up"):
        GdpAccount().gaussian_cost(Fraction(1), Fraction("25.001"))
    wide = Fraction("5000.0001")
    assert GdpAccount().gaussian_cost(Fraction(1), wide) >= 1 / (2 * (wide - 4))
    assert ZcdpAccount().gaussian_cost(Fraction(1), Fraction("25.001")) == 1 / (2 * Fraction("25.001"))


@pytest.mark.parametrize("epsilon", ["1e-30", "1e-6", "0.1", "1", "5", "40", "2000"])
def test_pure_charges_in_a_gdp_account(epsilon: str) -> None:
    """mu = 2 Phi^-1(e^epsilon/(1 + e^epsilon)) is the least mu that covers randomized response."""
    stated = GdpAccount().laplace_cost(Fraction(epsilon), Fraction(1))
    assert GdpAccount().exponential_cost(Fraction(epsilon)) == stated
    with ctx.workprec(BITS):
        half_mu = (exactly(stated) / 2).sqrt()
        tail = 1 / (1 + exactly(Fraction(epsilon)).exp())
        assert normal_tail(half_mu) < tail
        if Fraction(epsilon) > Fraction(1, 10**20):
            assert normal_tail(half_mu * (1 - arb(2) ** -70)) > tail


def test_pure_charges_in_the_other_accounts() -> None:
    assert ZcdpAccount().laplace_cost(Fraction(1), Fraction(10)) == Fraction(1, 200)
    assert ZcdpAccount().exponential_cost(Fraction(1, 10)) == Fraction(1, 800)
    assert PureAccount().laplace_cost(Fraction(2), Fraction(10)) == Fraction(1, 5)
    assert PureAccount().exponential_cost(Fraction(1, 10)) == Fraction(1, 10)
    ratio = GdpAccount().laplace_cost(Fraction(1), Fraction(10**6)) / ZcdpAccount().laplace_cost(
        Fraction(1), Fraction(10**6)
    )
    assert 1.57 < ratio < 1.571


def test_pure_account_is_exact_and_refuses_gaussians_and_delta() -> None:
    account = PureAccount()
    assert account.total(Fraction(1, 3), Fraction(0)) == Fraction(1, 3)
    assert account.epsilon(Fraction(1, 3), Fraction(0)) == Fraction(1, 3)
    assert account.epsilon(Fraction(0), Fraction(0)) == 0
    for gaussian in (account.gaussian_cost, account.gaussian_scale):
        with pytest.raises(BudgetError, match=r"delta 0.*choose accountant 'gdp'.*or a method with Laplace noise"):
            gaussian(Fraction(1), Fraction(1))
    with pytest.raises(UsageError, match="delta must be 0"):
        account.total(Fraction(1), Fraction(1, 10**9))


@pytest.mark.parametrize("name", ["gdp", "zcdp"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "field"),
    [
        ("1e-13", "1e-9", "epsilon"),
        ("10001", "1e-9", "epsilon"),
        ("1", "1e-301", "delta"),
        ("1", "0.2", "delta"),
    ],
)
def test_statements_beyond_the_limits_are_refused(name: str, epsilon: str, delta: str, field: str) -> None:
    with pytest.raises(UsageError, match=f"^{field} must be above 0, from"):
        account_named(name).total(Fraction(epsilon), Fraction(delta))


BAD_CALLS: list[Callable[..., object]] = [
    lambda account: account.total(1.0, Fraction(1, 100)),
    lambda account: account.gaussian_cost(1, 8192),
    lambda account: account.total(Fraction(1), 0.01),
    lambda account: account.total(True, Fraction(1, 100)),
    lambda account: account.gaussian_cost(Fraction(0), Fraction(1)),
    lambda account: account.gaussian_cost(Fraction(1), Fraction(-1)),
    lambda account: account.gaussian_cost(1.0, Fraction(1)),
    lambda account: account.gaussian_cost(Fraction(1), True),
    lambda account: account.gaussian_scale(Fraction(1), Fraction(0)),
    lambda account: account.gaussian_scale(Fraction(1), float("nan")),
    lambda account: account.laplace_cost(Fraction(1), Fraction(0)),
    lambda account: account.exponential_cost(Fraction(-1)),
    lambda account: account.epsilon(Fraction(-1), Fraction(1, 100)),
    lambda account: account.epsilon(0.5, Fraction(1, 100)),
]


@pytest.mark.parametrize("name", ["gdp", "zcdp"])
@pytest.mark.parametrize("call", BAD_CALLS)
def test_only_exact_positive_numbers_are_priced(name: str, call: Callable[..., object]) -> None:
    with pytest.raises(UsageError, match="exact Fraction above 0"):
        call(account_named(name))


def test_account_names() -> None:
    assert ACCOUNT_NAMES == ("gdp", "zcdp", "pure")
    assert all(account_named(name).name == name for name in ACCOUNT_NAMES)
    with pytest.raises(UsageError, match="no accountant 'rdp': choose one of gdp, zcdp, pure"):
        account_named("rdp")


def test_nothing_depends_on_the_global_precision_nor_on_threads() -> None:
    statements = [(Fraction(step, 7), Fraction(1, 10**9)) for step in range(1, 13)]

    def figures() -> list[Fraction]:
        for cache in (gdp._total, gdp._epsilon, gdp.squared_price, zcdp._total, zcdp._epsilon):
            cache.cache_clear()
        return [
            figure
            for account in (GdpAccount(), ZcdpAccount())
            for epsilon, delta in statements
            for figure in (account.total(epsilon, delta), account.epsilon(epsilon, delta))
        ] + [GdpAccount().gaussian_cost(Fraction(1), point(index)) for index in range(0, 9000, 977)]

    alone = figures()
    before = mpmath.mp.prec
    try:
        mpmath.mp.prec = 20
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(figures) for _ in range(4)]
        assert all(run.result() == alone for run in runs)
        assert mpmath.mp.prec == 20
    finally:
        mpmath.mp.prec = before


def test_importing_accounts_loads_no_mathematics_yet() -> None:
    """The command line's --help imports this module; mpmath comes with the first price."""
    script = "import sys, margent.privacy.ledger; assert 'mpmath' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
