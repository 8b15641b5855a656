"""The mixture of products: its gradient, its tables, its records, and what it fits."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from margent.postprocessing.latent_classes import LatentClasses, LatentSettings, fit_latent_classes
from margent.postprocessing.latent_steps import adam_step, logit_gradient, pair_gradient, softmax
from margent.postprocessing.tables import Table
from margent.schema.domain import Clique, Domain
from margent.stream import Stream

Array = NDArray[np.float64]

FALSE_ALARM = 1e-6
DOMAIN = Domain(("a", "b", "c"), (4, 2, 3))
STARTS = np.array([0, 4, 6, 9])


def law(classes: int = 3, seed: int = 0) -> LatentClasses:
    rng = np.random.default_rng(seed)
    shares = np.concatenate([rng.dirichlet(np.ones(size), classes).T for size in DOMAIN.sizes])
    return LatentClasses(DOMAIN, STARTS, rng.dirichlet(np.full(classes, 3.0)), shares)


def joint_of(made: LatentClasses) -> Array:
    """Pr[x] of every record, one class and one record after the other."""
    joint = np.zeros(DOMAIN.sizes)
    for latent, weight in enumerate(made.weights):
        for record in itertools.product(*map(range, DOMAIN.sizes)):
            codes = [made.shares[STARTS[place] + code, latent] for place, code in enumerate(record)]
            joint[record] += weight * np.prod(codes)
    return joint


@pytest.mark.parametrize("names", [("a",), ("b",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")])
def test_tables_are_the_sums_over_classes(names: Clique) -> None:
    made = law()
    away = tuple(place for place, name in enumerate(DOMAIN.names) if name not in names)
    np.testing.assert_allclose(made.table(names, 250.0), 250 * joint_of(made).sum(axis=away), rtol=1e-12)


def record_pvalue(made: LatentClasses, expected: Array, rows: int = 20_000) -> float:
    records = made.records(rows, Stream(3, "records"))
    flat = np.ravel_multi_index(tuple(records.T), DOMAIN.sizes)
    return float(stats.chisquare(np.bincount(flat, minlength=expected.size), rows * expected.ravel()).pvalue)


def test_records_follow_the_law() -> None:
    """Chi-square of 24 cells, false alarm 1e-6; with classes that mix up two columns' shares it rejects."""
    made = law()
    assert record_pvalue(made, joint_of(made)) > FALSE_ALARM
    crossed = LatentClasses(DOMAIN, STARTS, made.weights, np.concatenate([made.shares[:4], made.shares[4:, ::-1]]))
    assert record_pvalue(crossed, joint_of(made)) < FALSE_ALARM


def test_codes_without_a_share_are_never_drawn() -> None:
    shares = np.array([[0.0, 1], [0.5, 0], [0.5, 0], [0, 0], [1, 0], [0, 1], [0, 0.5], [1, 0], [0, 0.5]])
    made = LatentClasses(DOMAIN, STARTS, np.array([0.5, 0.5]), shares)
    records = made.records(5_000, Stream(1, "records"))
    assert {tuple(record) for record in records.tolist()} == {(1, 0, 1), (2, 0, 1), (0, 1, 0), (0, 1, 2)}


def test_no_records() -> None:
    assert law().records(0, Stream(1, "records")).shape == (0, 3)


# The objective as the modules state it, in 64 bits and without a compiled loop.


def objective(
    logits: Array,
    weight_logits: Array,
    pairs: Sequence[tuple[int, int, float, Array]],
    singles: tuple[Array, Array],
    base: Array,
    penalties: tuple[float, float],
) -> float:
    """sum w |P - y|^2 / 2 over pairs and one-ways + spread sum pi KL(p || q) + pull (-sum q ln p)."""
    blocks = [slice(STARTS[place], STARTS[place + 1]) for place in range(3)]
    logs = np.concatenate([logits[block] - np.log(np.exp(logits[block]).sum(axis=0)) for block in blocks])
    shares, weights = np.exp(logs), np.exp(weight_logits) / np.exp(weight_logits).sum()
    value = 0.0
    for first, second, precision, target in pairs:
        table = (shares[blocks[first]] * weights) @ shares[blocks[second]].T
        value += 0.5 * precision * np.square(table - target).sum()
    value += 0.5 * (singles[0] * np.square(shares @ weights - singles[1])).sum()
    value += penalties[0] * (weights * (shares * (logs - np.log(base)[:, np.newaxis]))).sum()
    return float(value - penalties[1] * (base[:, np.newaxis] * logs).sum())


def instance(
    seed: int,
) -> tuple[Array, Array, list[tuple[int, int, float, Array]], tuple[Array, Array], Array, tuple[float, float]]:
    rng = np.random.default_rng(seed)
    pairs = [
        (first, second, precision, rng.dirichlet(np.ones(rows * columns)).reshape(rows, columns))
        for first, second, precision, rows, columns in [(0, 2, 7.0, 4, 3), (1, 2, 5.0, 2, 3), (0, 1, 3.0, 4, 2)]
    ]
    base = np.concatenate([rng.dirichlet(np.full(size, 3.0)) for size in DOMAIN.sizes])
    singles = rng.uniform(0, 8, 9), rng.random(9) / 3
    return rng.normal(size=(9, 3)), rng.normal(size=3), pairs, singles, base, (0.7, 0.4)


def stated_gradient(seed: int) -> tuple[Array, Array]:
    """Both gradients from the compiled loops."""
    logits, weight_logits, pairs, singles, base, penalties = instance(seed)
    small = logits.astype(np.float32)
    shares, logs, gradient = np.empty_like(small), np.empty_like(small), np.zeros_like(small)
    softmax(small, STARTS, shares, logs)
    weights = (np.exp(weight_logits) / np.exp(weight_logits).sum()).astype(np.float32)
    offsets = np.cumsum([0, *(pair[3].size for pair in pairs)])[:-1]
    pair_gradient(
        shares,
        shares.T.copy(),
        weights,
        np.array([[STARTS[first], STARTS[second]] for first, second, _, _ in pairs]),
        np.array([pair[3].shape for pair in pairs]),
        offsets,
        np.array([pair[2] for pair in pairs], dtype=np.float32),
        np.concatenate([pair[3].ravel() for pair in pairs]).astype(np.float32),
        gradient,
    )
    single = (singles[0] * (shares @ weights - singles[1])).astype(np.float32)
    by_weights = np.zeros((1, 3), dtype=np.float32)
    logit_gradient(
        shares, logs, weights, STARTS, base.astype(np.float32), np.log(base).astype(np.float32), single,
        penalties[0], penalties[1], gradient, by_weights,
    )  # fmt: skip
    return gradient.astype(np.float64), by_weights[0].astype(np.float64)


def slopes(seed: int, omit: int | None = None) -> tuple[Array, Array]:
    """Central differences of the objective; ``omit`` leaves a pair out."""
    logits, weight_logits, pairs, *rest = instance(seed)
    pairs = [pair for place, pair in enumerate(pairs) if place != omit]
    step = 1e-5
    by_logits, by_weights = np.zeros_like(logits), np.zeros_like(weight_logits)
    for place in np.ndindex(logits.shape):
        move = np.zeros_like(logits)
        move[place] = step
        up, down = (objective(logits + sign * move, weight_logits, pairs, *rest) for sign in (1, -1))
        by_logits[place] = (up - down) / (2 * step)
    for place in range(weight_logits.size):
        move = np.zeros_like(weight_logits)
        move[place] = step
        up, down = (objective(logits, weight_logits + sign * move, pairs, *rest) for sign in (1, -1))
        by_weights[place] = (up - down) / (2 * step)
    return by_logits, by_weights


@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_that_of_the_objective(seed: int) -> None:
    """To 1e-5 of the largest entry, the accuracy of 32 bits; one forgotten pair is far outside of that."""
    stated, numeric, planted = stated_gradient(seed), slopes(seed), slopes(seed, omit=1)
    for mine, theirs, wrong in zip(stated, numeric, planted, strict=True):
        largest = float(np.abs(theirs).max())
        assert float(np.abs(mine - theirs).max()) < 1e-5 * largest
        assert float(np.abs(wrong - theirs).max()) > 1e-3 * largest


def test_softmax_adds_up_in_every_class_and_column() -> None:
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 30, (9, 4)).astype(np.float32)
    shares, logs = np.empty_like(logits), np.empty_like(logits)
    softmax(logits, STARTS, shares, logs)
    for first, last in itertools.pairwise(STARTS):
        np.testing.assert_allclose(shares[first:last].sum(axis=0), 1, rtol=1e-6)
        own = logits[first:last].astype(np.float64)
        exact = own - np.logaddexp.reduce(own, axis=0)
        np.testing.assert_allclose(logs[first:last], exact, atol=1e-4)
        np.testing.assert_allclose(shares[first:last], np.exp(exact), rtol=1e-4, atol=1e-7)


def test_adam_takes_its_published_step() -> None:
    """Two steps against Algorithm 1 of Kingma and Ba with decays .9 and .99."""
    values, mean, square = (np.zeros((1, 2), dtype=np.float32) for _ in range(3))
    expected, m, v = np.zeros(2), np.zeros(2), np.zeros(2)
    for step, slope in enumerate(([3.0, -0.5], [1.0, 0.25]), start=1):
        adam_step(values, np.array([slope], np.float32), mean, square, 0.1, 1 / (1 - 0.9**step), 1 / (1 - 0.99**step))
        m, v = 0.9 * m + 0.1 * np.array(slope), 0.99 * v + 0.01 * np.square(slope)
        expected -= 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.99**step)) + 1e-8)
    np.testing.assert_allclose(values[0], expected, rtol=1e-5)


# What is fitted.


def fitted(
    tables: Mapping[Clique, Array],
    domain: Domain,
    total: float,
    *,
    variance: float = 1.0,
    settings: LatentSettings | None = None,
    stream: Stream | None = None,
) -> LatentClasses:
    known = [Table(names, values, np.full_like(values, variance)) for names, values in tables.items()]
    one_ways = {table.clique[0]: table for table in known if len(table.clique) == 1}
    base = {
        name: np.maximum(one_ways[name].values, 0) if name in one_ways else np.full(size, total / size)
        for name, size in zip(domain.names, domain.sizes, strict=True)
    }
    pairs = [table for table in known if len(table.clique) == 2]
    settings, stream = settings or LatentSettings(), stream or Stream(5, "fit")
    return fit_latent_classes(one_ways, base, pairs, domain, total, settings, stream, lambda share: None)


def apart(left: Array, right: Array) -> float:
    """Total variation between two tables of counts."""
    return 0.5 * float(np.abs(left / left.sum() - right / right.sum()).sum())


def product_of(left: Array, right: Array) -> Array:
    return np.outer(left, right) / left.sum()


def test_without_a_pair_columns_are_independent() -> None:
    tables: dict[Clique, Array] = {("a",): np.array([30.0, 60, 0, 10]), ("b",): np.array([25.0, 75])}
    made = fitted(tables, DOMAIN, 100.0)
    np.testing.assert_allclose(made.table(("a", "b"), 100.0), product_of(tables[("a",)], tables[("b",)]), atol=0.7)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_rank_two_is_fitted_closely(seed: int) -> None:
    """Noise-free tables of a law of two classes: within .01 of each, far closer than independence is."""
    true, total = law(2, seed), 50_000.0
    cliques: list[Clique] = [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]
    tables = {names: true.table(names, total) for names in cliques}
    made = fitted(tables, DOMAIN, total)
    distances = [apart(made.table(names, total), tables[names]) for names in cliques]
    assert max(distances) < 0.01
    flat = [apart(product_of(tables[(a,)], tables[(b,)]), tables[a, b]) for a, b in cliques[3:]]
    assert max(flat) > 10 * max(distances)
    # The triple, which no table shows, is far nearer to the truth than that of independent columns.
    everything = true.table(DOMAIN.names, total)
    away = np.einsum("i,j,k->ijk", *(tables[(name,)] for name in DOMAIN.names))
    assert apart(made.table(DOMAIN.names, total), everything) < 0.5 * apart(away, everything)


def test_noise_is_averaged_out() -> None:
    """Six columns of a common cause, all pairs with much noise: every pair is nearer to the truth than measured."""
    rng = np.random.default_rng(4)
    domain, total, deviation = Domain(tuple("abcdef"), (5,) * 6), 4_000.0, 40.0
    weights, shares = np.array([0.3, 0.7]), rng.dirichlet(np.ones(5), (6, 2))
    true = {
        (first, second): total * np.einsum("k,ki,kj->ij", weights, shares[i], shares[j])
        for (i, first), (j, second) in itertools.combinations(enumerate(domain.names), 2)
    }
    noisy: dict[Clique, Array] = {
        (name,): total * weights @ shares[place] + rng.normal(0, deviation, 5)
        for place, name in enumerate(domain.names)
    }
    noisy |= {pair: table + rng.normal(0, deviation, (5, 5)) for pair, table in true.items()}
    made = fitted(noisy, domain, total, variance=deviation**2)
    before = [float(np.abs(noisy[pair] - table).sum()) for pair, table in true.items()]
    after = [float(np.abs(made.table(pair, total) - table).sum()) for pair, table in true.items()]
    assert np.mean(after) < 0.5 * np.mean(before)
    assert np.max(after) < np.min(before)


def test_the_same_stream_gives_the_same_bytes() -> None:
    true = law(2)
    tables = {names: true.table(names, 900.0) for names in [("a",), ("b",), ("c",), ("a", "b")]}
    few = LatentSettings(steps=20)
    runs = [fitted(tables, DOMAIN, 900.0, settings=few, stream=Stream(seed, "fit")) for seed in (1, 1, 2)]
    shares = [run.shares.tobytes() + run.weights.tobytes() for run in runs]
    assert shares[0] == shares[1] != shares[2]
    records = [run.records(50, Stream(1, "records")).tobytes() for run in runs]
    assert records[0] == records[1]


def test_less_noise_supports_more_classes_within_bounds() -> None:
    true = law(2)
    tables = {names: true.table(names, 5_000.0) for names in [("a",), ("b",), ("c",), ("a", "b")]}
    few = LatentSettings(steps=1, classes=(3, 40), fits=1)
    made = [fitted(tables, DOMAIN, 5_000.0, variance=variance, settings=few) for variance in (1e9, 2500.0, 1e-4)]
    counts = [each.weights.size for each in made]
    assert counts[0] == 3
    assert 3 < counts[1] < 40
    assert counts[2] == 40


def test_several_fits_are_averaged() -> None:
    """The tables of three fits are the mean of those of each, and the first fit is the one alone."""
    true = law(3, 4)
    tables = {names: true.table(names, 900.0) for names in [("a",), ("b",), ("c",), ("a", "b"), ("b", "c")]}
    one, three = (
        fitted(tables, DOMAIN, 900.0, settings=LatentSettings(steps=20, fits=fits), stream=Stream(4, "fit"))
        for fits in (1, 3)
    )
    size = one.weights.size
    assert three.weights.size == 3 * size
    parts = [
        LatentClasses(DOMAIN, STARTS, 3 * three.weights[start : start + size], three.shares[:, start : start + size])
        for start in (0, size, 2 * size)
    ]
    np.testing.assert_array_equal(parts[0].shares, one.shares)
    np.testing.assert_allclose(parts[0].weights, one.weights)
    assert not np.allclose(parts[1].shares, parts[0].shares)
    assert not np.allclose(parts[2].shares, parts[1].shares)
    for names in [("a", "b"), ("a", "c"), ("a", "b", "c")]:
        mean = np.mean([part.table(names, 900.0) for part in parts], axis=0)
        np.testing.assert_allclose(three.table(names, 900.0), mean, rtol=1e-9)


SHAPES: dict[str, tuple[Domain, dict[Clique, Array], float]] = {
    "no pairs": (Domain(("a", "b"), (2, 3)), {("a",): np.array([30.0, 70]), ("b",): np.array([10.0, 60, 30])}, 100),
    "one column": (Domain(("a",), (3,)), {("a",): np.array([10.0, 0, 90])}, 100),
    "constant columns": (
        Domain(("a", "k", "l"), (2, 1, 1)),
        {("a",): np.array([30.0, 70]), ("a", "k"): np.array([[30.0], [70]]), ("k", "l"): np.array([[100.0]])},
        100,
    ),
    "nothing bought": (Domain(("a", "b"), (4, 2)), {}, 100),
    "a column nobody asked for": (Domain(("a", "z"), (2, 5)), {("a",): np.array([30.0, 70])}, 100),
    "a total of one": (Domain(("a", "b"), (2, 2)), {("a",): np.array([-3.0, 2]), ("a", "b"): np.full((2, 2), -4.0)}, 1),
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda name: name.replace(" ", "-"))
def test_shapes(shape: str) -> None:
    domain, tables, total = SHAPES[shape]
    made = fitted(tables, domain, total)
    assert made.weights.sum() == pytest.approx(1, abs=1e-5)
    assert np.isfinite(made.shares).all()
    for names in [(name,) for name in domain.names] + list(itertools.combinations(domain.names, 2)):
        table = made.table(names, total)
        assert table.shape == domain.shape(names)
        assert table.min() >= 0
        assert table.sum() == pytest.approx(total, rel=1e-4)
        if names in tables and total > 1:
            assert apart(table, tables[names]) < 0.03
    records = made.records(40, Stream(1, "records"))
    assert records.min() >= 0
    assert np.all(records.max(axis=0) < list(domain.sizes))


def test_progress_goes_from_the_first_step_to_one() -> None:
    seen: list[float] = []
    pair = Table(("a", "b"), np.full((4, 2), 5.0), np.ones((4, 2)))
    base = {"a": np.full(4, 10.0), "b": np.full(2, 20.0), "c": np.full(3, 13.0)}
    fit_latent_classes({}, base, [pair], DOMAIN, 40.0, LatentSettings(steps=7), Stream(1, "fit"), seen.append)
    assert seen == sorted(seen)
    assert len(seen) == 7
    assert seen[-1] == 1.0
