"""What is believed of every table: limits of the shrinkage, competing models, targets for what was not bought."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.postprocessing.latent_classes import LatentSettings
from margent.postprocessing.posterior import (
    Posterior,
    PosteriorSettings,
    improved_one_ways,
    pair_tables,
    posterior,
    raked,
    shrunk,
)
from margent.postprocessing.tables import Evidence, Table, WorkingDomain
from margent.schema.domain import Clique, Domain
from margent.stream import Stream

Array = NDArray[np.float64]

QUICK = LatentSettings(steps=10)


def known(tables: list[Table], domain: Domain, total: float) -> Evidence:
    groups = {name: np.arange(size) for name, size in zip(domain.names, domain.sizes, strict=True)}
    return Evidence(WorkingDomain(domain, groups), tuple(tables), total)


def believed(
    evidence: Evidence,
    distances: Mapping[Clique, float] | None = None,
    options: PosteriorSettings | None = None,
    seed: int = 0,
    most: Mapping[Clique, float] | None = None,
) -> Posterior:
    stream = Stream(seed, "posterior")
    return posterior(evidence, distances or {}, most or {}, options or PosteriorSettings(), stream, lambda share: None)


def table(names: Clique, values: Array, deviation: float) -> Table:
    return Table(names, values, np.full_like(values, deviation**2))


# Shrinkage.

RNG = np.random.default_rng(1)
PRIOR = 10_000 * RNG.dirichlet(np.full(40, 2.0)).reshape(5, 8)


def test_without_noise_the_table_is_believed() -> None:
    values = 10_000 * np.random.default_rng(2).dirichlet(np.ones(40)).reshape(5, 8)
    np.testing.assert_allclose(shrunk(table(("a", "b"), values, 1e-5), PRIOR, 10_000.0), values, atol=1e-4)


@pytest.mark.parametrize("deviation", [5.0, 50.0, 500.0])
def test_pure_noise_is_mostly_dropped(deviation: float) -> None:
    """Over 300 tables that are the prior plus noise, at most a tenth of the squared noise is kept on average."""
    rng = np.random.default_rng(3)
    kept = []
    for _ in range(300):
        values = PRIOR + rng.normal(0, deviation, PRIOR.shape)
        result = shrunk(table(("a", "b"), values, deviation), PRIOR, 10_000.0)
        kept.append(np.square(result - PRIOR).sum() / np.square(values - PRIOR).sum())
    assert np.mean(kept) < 0.1


@pytest.mark.parametrize(("factor", "deviation"), [(5.0, 20.0), (5.0, 50.0), (50.0, 50.0), (50.0, 150.0)])
def test_shrinkage_beats_both_the_table_and_the_prior(factor: float, deviation: float) -> None:
    """Tables that depart from the prior with variance kappa m a cell: near the best of all who know kappa."""
    rng = np.random.default_rng(4)
    errors = []
    for _ in range(200):
        true = PRIOR + rng.normal(0, 1, PRIOR.shape) * np.sqrt(factor * PRIOR)
        values = true + rng.normal(0, deviation, PRIOR.shape)
        best = PRIOR + factor * PRIOR / (factor * PRIOR + deviation**2) * (values - PRIOR)
        candidates = (shrunk(table(("a", "b"), values, deviation), PRIOR, 10_000.0), values, PRIOR, best)
        errors.append([np.square(each - true).sum() for each in candidates])
    mine, noisy, prior, oracle = np.mean(errors, axis=0)
    assert mine < min(noisy, prior)
    assert mine < 1.3 * oracle


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e4), st.floats(0.01, 10))
def test_every_cell_lies_between_the_prior_and_the_table(seed: int, deviation: float, spread: float) -> None:
    rng = np.random.default_rng(seed)
    prior = 100 * rng.dirichlet(np.full(12, 0.3)) * (rng.random(12) < 0.8)
    values = prior + rng.normal(0, spread * deviation, 12)
    result = shrunk(table(("a",), values, deviation), prior, 100.0)
    low, high = np.minimum(prior, values), np.maximum(prior, values)
    assert np.all(result >= low - 1e-9 * (1 + np.abs(low)))
    assert np.all(result <= high + 1e-9 * (1 + np.abs(high)))


# Raking.


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_raked_tables_have_the_best_one_ways_as_their_margins(seed: int, negative: bool) -> None:
    """Exactly that of the last column; all of them where no cell is empty. Never negative."""
    rng = np.random.default_rng(seed)
    singles = {name: 500 * rng.dirichlet(np.full(size, 5.0)) for name, size in [("a", 3), ("b", 4)]}
    values = 500 * rng.dirichlet(np.full(12, 5.0)).reshape(3, 4) + negative * rng.normal(0, 30, (3, 4))
    made = raked(("a", "b"), values, singles, 500.0, rounds=60)
    assert made.min() >= 0
    np.testing.assert_allclose(made.sum(axis=0)[made.sum(axis=0) > 0], singles["b"][made.sum(axis=0) > 0])
    if not negative:
        np.testing.assert_allclose(made.sum(axis=1), singles["a"], atol=0.5)
        np.testing.assert_allclose(made.sum(axis=0), singles["b"])


def test_raking_keeps_what_fits_and_the_odds_of_what_does_not() -> None:
    values = np.array([[30.0, 10.0], [20.0, 40.0]])
    same = {"a": np.array([40.0, 60.0]), "b": np.array([50.0, 50.0])}
    np.testing.assert_allclose(raked(("a", "b"), values, same, 100.0), values)
    other = raked(("a", "b"), values, {"a": np.array([70.0, 30.0]), "b": np.array([20.0, 80.0])}, 100.0)
    assert other[0, 0] * other[1, 1] / (other[0, 1] * other[1, 0]) == pytest.approx(6)


def test_a_slice_without_mass_takes_that_of_independence() -> None:
    singles = {"a": np.array([60.0, 40.0]), "b": np.array([75.0, 25.0])}
    made = raked(("a", "b"), np.array([[75.0, 25.0], [-30.0, -9.0]]), singles, 100.0)
    np.testing.assert_allclose(made, np.outer(singles["a"], singles["b"]) / 100)


# Projections.


def test_pairs_inside_larger_tables_are_averaged_by_precision() -> None:
    rng = np.random.default_rng(5)
    triple, pair = rng.normal(50, 9, (2, 3, 4)), rng.normal(200, 9, (2, 3))
    found = pair_tables([table(("a", "b", "c"), triple, 3.0), table(("a", "b"), pair, 5.0)])
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    # Each cell of the projection on (a, b) sums 4 cells of variance 9; the pair's own have variance 25.
    np.testing.assert_allclose(found["a", "b"].values, (triple.sum(axis=2) / 36 + pair / 25) / (1 / 36 + 1 / 25))
    np.testing.assert_allclose(found["a", "b"].variance, 1 / (1 / 36 + 1 / 25))
    np.testing.assert_allclose(found["a", "c"].values, triple.sum(axis=1))
    np.testing.assert_allclose(found["b", "c"].variance, 18)
    assert pair_tables([table(("a",), np.ones(2), 1.0)]) == {}


def test_one_ways_are_improved_by_every_table_of_their_column() -> None:
    domain = Domain(("a", "b", "z"), (3, 4, 2))
    one_way, pair = np.array([50.0, 30, 20]), np.arange(12.0).reshape(3, 4)
    evidence = known([table(("a",), one_way, 2.0), table(("a", "b"), pair, 3.0)], domain, 100.0)
    made = improved_one_ways(evidence, 100.0)
    singles, means = made.counts, made.noisy
    np.testing.assert_allclose(means["a"].values, (one_way / 4 + pair.sum(axis=1) / 36) / (1 / 4 + 1 / 36))
    np.testing.assert_allclose(means["a"].variance, 1 / (1 / 4 + 1 / 36))
    np.testing.assert_allclose(means["b"].values, pair.sum(axis=0))
    assert "z" not in means
    assert singles["z"].tolist() == [50.0, 50.0]
    for name, size in zip(domain.names, domain.sizes, strict=True):
        assert singles[name].shape == (size,)
        assert singles[name].min() >= 0
        assert singles[name].sum() == pytest.approx(100)
    # Columns of few codes keep their noise; in codes above it there are as many unknown ones as codes.
    np.testing.assert_allclose(made.deviations["a"], np.sqrt(means["a"].variance))
    assert made.cells("a") == pytest.approx(3)


def test_improved_one_ways_have_the_smaller_error_that_they_state() -> None:
    """Over 400 noises the mean square error is 1 / (sum of precisions), within 15 percent, below each alone."""
    rng = np.random.default_rng(6)
    domain, true = Domain(("a", "b", "c"), (3, 4, 2)), 9_000 * rng.dirichlet(np.full(24, 5.0)).reshape(3, 4, 2)
    cliques: list[tuple[Clique, float]] = [(("a",), 20.0), (("a", "b"), 15.0), (("a", "c"), 10.0), (("b", "c"), 1.0)]
    squares, stated = [], 0.0
    for _ in range(400):
        tables = []
        for names, deviation in cliques:
            exact = true.sum(axis=tuple(axis for axis, name in enumerate(domain.names) if name not in names))
            tables.append(table(names, exact + rng.normal(0, deviation, exact.shape), deviation))
        means = improved_one_ways(known(tables, domain, 9_000.0), 9_000.0).noisy
        squares.append(np.square(means["a"].values - true.sum(axis=(1, 2))).mean())
        stated = float(means["a"].variance[0])
    assert stated == pytest.approx(1 / (1 / 20**2 + 1 / (4 * 15**2) + 1 / (2 * 10**2)))
    assert float(np.mean(squares)) == pytest.approx(stated, rel=0.15)
    assert stated < min(20**2, 4 * 15**2, 2 * 10**2)


# Targets.


def assert_targets(made: Posterior, evidence: Evidence) -> None:
    domain, total = evidence.working.domain, max(evidence.total, 1.0)
    assert {(name,) for name in domain.names} <= set(made.targets)
    assert {each.clique for each in evidence.tables} <= set(made.targets)
    for names, target in made.targets.items():
        assert target.shape == domain.shape(names)
        assert np.isfinite(target).all()
        assert target.min() >= 0
        assert target.sum() == pytest.approx(total, rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sets(st.sampled_from("abcd"), min_size=1, max_size=4), max_size=6),
    st.sampled_from([1e-3, 1.0, 30.0, 1e5]),
    st.sampled_from([0.0, 1.0, 500.0]),
    st.booleans(),
)
def test_targets_are_tables_of_the_total_whatever_was_bought(
    seed: int, cliques: list[set[str]], deviation: float, total: float, scored: bool
) -> None:
    """Any cliques of one to four columns, one of them constant, with negative counts and totals of nothing."""
    rng = np.random.default_rng(seed)
    domain = Domain(("a", "b", "c", "d"), (3, 1, 2, 4))
    tables = []
    for names in sorted({tuple(sorted(names)) for names in cliques}):
        exact = total * rng.dirichlet(np.full(domain.cells(names), 0.5)).reshape(domain.shape(names))
        tables.append(table(names, exact + rng.normal(0, deviation, exact.shape), deviation))
    pairs = [("a", "c"), ("a", "d"), ("c", "d")]
    distances = {pair: float(rng.uniform(0, 2 * max(total, 1))) for pair in pairs} if scored else {}
    evidence = known(tables, domain, total)
    made = believed(evidence, distances, PosteriorSettings(latent=QUICK))
    assert_targets(made, evidence)
    for pair in pairs:
        assert any(set(pair) <= set(names) for names in made.targets)
    for rows in (0, 3):
        records = made.records(rows, Stream(1, "records"))
        assert records.shape == (rows, 4)
        assert np.all(records < domain.sizes)


def population(strength: float = 0.8) -> tuple[Domain, dict[Clique, Array], float]:
    """All one-ways and pairs of a chain a - b - c - d - e of eight codes each, exact counts of 20,000 records."""
    rng = np.random.default_rng(7)
    names, size, total = tuple("abcde"), 8, 20_000.0
    joints = {("a",): total * rng.dirichlet(np.full(size, 8.0))}
    steps = [
        (1 - strength) * rng.dirichlet(np.full(size, 8.0)) + strength * np.eye(size)[rng.permutation(size)]
        for _ in range(4)
    ]
    for place, name in enumerate(names[1:]):
        joints[(name,)] = joints[(names[place],)] @ steps[place]
    for first, second in itertools.combinations(range(5), 2):
        step = np.eye(size)
        for place in range(first, second):
            step = step @ steps[place]
        joints[names[first], names[second]] = joints[(names[first],)][:, np.newaxis] * step
    return Domain(names, (size,) * 5), joints, total


def scores_of(joints: Mapping[Clique, Array], total: float) -> dict[Clique, float]:
    pairs = [names for names in joints if len(names) == 2]
    return {
        pair: float(np.abs(joints[pair] - np.outer(joints[pair[:1]], joints[pair[1:]]) / total).sum()) for pair in pairs
    }


CHAIN: list[Clique] = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]


def chain_evidence(deviation: float) -> tuple[Evidence, dict[Clique, Array], dict[Clique, float]]:
    """The one-ways and the four neighboring pairs of the chain with noise; the truth; scores without noise."""
    rng = np.random.default_rng(8)
    domain, joints, total = population()
    bought = [(name,) for name in domain.names] + CHAIN
    noisy = [joints[names] + rng.normal(0, deviation, joints[names].shape) for names in bought]
    tables = [table(names, values, deviation) for names, values in zip(bought, noisy, strict=True)]
    return known(tables, domain, total), joints, scores_of(joints, total)


def distance(left: Array, right: Array) -> float:
    """Total variation between two tables of counts."""
    return 0.5 * float(np.abs(left / left.sum() - right / right.sum()).sum())


def test_pairs_that_were_not_bought_follow_from_those_that_were() -> None:
    """Pairs two to four steps apart on a chain: filled from a model, at half the error of independence or less."""
    evidence, joints, scores = chain_evidence(20.0)
    made = believed(evidence, scores)
    assert_targets(made, evidence)
    assert made.forest.edges == set(CHAIN)
    assert made.start == "forest"
    far = [pair for pair in scores if pair not in CHAIN]
    assert set(far) <= set(made.targets)
    mine = np.mean([distance(made.targets[pair], joints[pair]) for pair in far])
    flat = np.mean([scores[pair] / (2 * evidence.total) for pair in far])
    assert mine < 0.5 * flat


def test_bought_tables_end_nearer_to_the_truth() -> None:
    evidence, joints, scores = chain_evidence(60.0)
    made = believed(evidence, scores)
    pairs = [each for each in evidence.tables if len(each.clique) == 2]
    for each in pairs:
        true = joints[each.clique]
        assert np.abs(made.targets[each.clique] - true).sum() < np.abs(each.values - true).sum()
    before = np.mean([np.abs(each.values - joints[each.clique]).sum() for each in pairs])
    after = np.mean([np.abs(made.targets[each.clique] - joints[each.clique]).sum() for each in pairs])
    assert after < 0.7 * before


def test_the_forest_is_the_prior_of_pairs_that_follow_from_it() -> None:
    """(a, d), three edges apart, is bought with so much noise that its own target comes from the prior."""
    evidence, joints, scores = chain_evidence(5.0)
    noise = np.random.default_rng(12).normal(0, 300, (8, 8))
    known_badly = table(("a", "d"), joints["a", "d"] + noise, 300.0)
    made = believed(known([*evidence.tables, known_badly], evidence.working.domain, evidence.total), scores)
    flat = scores["a", "d"] / (2 * evidence.total)
    assert distance(made.targets["a", "d"], joints["a", "d"]) < 0.1 * flat
    assert distance(np.maximum(known_badly.values, 0), joints["a", "d"]) > 0.5 * flat


def test_a_common_cause_is_left_to_the_mixture() -> None:
    """Six columns given one of two classes: the start is drawn from the mixture, and a triple follows too."""
    rng = np.random.default_rng(9)
    names, total = tuple("abcdef"), 20_000.0
    weights, shares = np.array([0.4, 0.6]), rng.dirichlet(np.ones(4), (6, 2))
    joints: dict[Clique, Array] = {(name,): total * weights @ shares[place] for place, name in enumerate(names)}
    for (i, first), (j, second) in itertools.combinations(enumerate(names), 2):
        joints[first, second] = total * np.einsum("k,ki,kj->ij", weights, shares[i], shares[j])
    domain = Domain(names, (4,) * 6)
    tables = [table(key, values + rng.normal(0, 15, values.shape), 15.0) for key, values in joints.items()]
    for scores in (scores_of(joints, total), {}):
        assert believed(known(tables, domain, total), scores).start == "latent"


def test_a_noisy_pair_of_unrelated_columns_makes_no_others_dependent() -> None:
    """Unrelated triangles a, b, c and x, y, z; (c, x) is bought with much noise since its score was too high.

    Its own target is flat, as it should be; those of the other pairs across, taken from the forest, must be too.
    """
    rng = np.random.default_rng(11)
    total, size, names = 20_000.0, 5, ("a", "b", "c", "x", "y", "z")
    domain, near = Domain(names, (size,) * 6), total / size * (0.95 * np.eye(size) + 0.05 / size)
    flat = np.full((size, size), total / size**2)
    inside = [*itertools.combinations("abc", 2), *itertools.combinations("xyz", 2)]
    across = list(itertools.product("abc", "xyz"))
    tables = [table((name,), total / size + rng.normal(0, 60, size), 60.0) for name in names]
    tables += [table(pair, near + rng.normal(0, 100, near.shape), 100.0) for pair in inside]
    tables.append(table(("c", "x"), flat + rng.normal(0, 300, flat.shape), 300.0))
    scores = dict.fromkeys(inside, float(np.abs(near - flat).sum()))
    scores |= {pair: 0.045 * 2 * total * (pair == ("c", "x")) for pair in across}
    made = believed(known(tables, domain, total), scores)
    assert distance(made.targets["c", "x"], flat) < 0.03
    assert max(distance(made.targets[pair], flat) for pair in across) < 0.05


def test_a_pair_that_scores_as_independent_is_not_made_dependent_by_what_both_explain() -> None:
    """Two fair coins and their "or": the pairs with the third are bought, and any model of those ties the coins."""
    first, second = np.indices((2, 2)).reshape(2, 4)
    joint = np.zeros((2, 2, 2))
    joint[first, second, first | second] = 10_000.0
    names = ("a", "b", "either")
    tables = [table((names[axis],), joint.sum(axis=tuple({0, 1, 2} - {axis})), 1.0) for axis in range(3)]
    tables += [table(("a", "either"), joint.sum(axis=1), 1.0), table(("b", "either"), joint.sum(axis=0), 1.0)]
    evidence = known(tables, Domain(names, (2, 2, 2)), 40_000.0)
    scores = {("a", "b"): 0.0, ("a", "either"): 20_000.0, ("b", "either"): 20_000.0}
    tied = believed(evidence, scores)
    limited = believed(evidence, scores, most={("a", "b"): 100.0})

    def apart(made: Posterior) -> float:
        return float(np.abs(made.targets["a", "b"] - 10_000.0).sum())

    assert tied.filled == limited.filled == {("a", "b")}
    assert apart(tied) > 1000
    assert apart(limited) == pytest.approx(100.0, rel=0.01)


def test_without_any_noise_the_targets_are_the_tables() -> None:
    evidence, joints, scores = chain_evidence(1e-3)
    made = believed(evidence, scores)
    for pair in CHAIN:
        assert distance(made.targets[pair], joints[pair]) < 1e-4


def test_tables_of_three_columns_are_targets_and_their_pairs_are_known() -> None:
    rng = np.random.default_rng(10)
    domain, total = Domain(("a", "b", "c", "z"), (3, 2, 4, 2)), 5_000.0
    joint = total * rng.dirichlet(np.full(24, 0.6)).reshape(3, 2, 4)
    evidence = known([table(("a", "b", "c"), joint + rng.normal(0, 3, joint.shape), 3.0)], domain, total)
    made = believed(evidence)
    assert distance(made.targets["a", "b", "c"], joint) < 0.02
    assert distance(made.targets[("a",)], joint.sum(axis=(1, 2))) < 0.02
    # Pairs inside the triple are bought; those with z are filled in.
    assert {pair for pair in made.targets if len(pair) == 2} == {("a", "z"), ("b", "z"), ("c", "z")}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (PosteriorSettings(latent=QUICK, fill_cells=0), 0),
        (PosteriorSettings(latent=QUICK, fill_cells=64), 1),
        (PosteriorSettings(latent=QUICK, fill_cells=3 * 64 + 63), 3),
        (PosteriorSettings(latent=QUICK), 6),
    ],
)
def test_filling_stays_under_its_cap_and_takes_the_most_dependent_first(
    options: PosteriorSettings, expected: int
) -> None:
    evidence, _, scores = chain_evidence(20.0)
    far = sorted((pair for pair in scores if pair not in CHAIN), key=lambda pair: -scores[pair])
    made = believed(evidence, scores, options)
    assert {pair for pair in made.targets if len(pair) == 2} == set(CHAIN) | set(far[:expected])


def test_the_same_stream_gives_the_same_targets() -> None:
    evidence, _, scores = chain_evidence(20.0)
    runs = [believed(evidence, scores, PosteriorSettings(latent=QUICK), seed) for seed in (1, 1, 2)]
    texts = [b"".join(run.targets[names].tobytes() for names in sorted(run.targets)) for run in runs]
    assert texts[0] == texts[1] != texts[2]
    records = [run.records(30, Stream(4, "records")).tobytes() for run in runs[:2]]
    assert records[0] == records[1]
