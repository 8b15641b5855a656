"""What is believed of every table: competing models, targets for what was not bought."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.postprocessing.latent_classes import LatentSettings
from margent.postprocessing.posterior import (
    Posterior,
    PosteriorSettings,
    posterior,
)
from margent.postprocessing.tables import Evidence
from margent.schema.domain import Clique, Domain
from margent.stream import Stream
from tests.postprocessing.noisy_tables import Array, known, table

QUICK = LatentSettings(steps=10)


def believed(
    evidence: Evidence,
    distances: Mapping[Clique, float] | None = None,
    options: PosteriorSettings | None = None,
    seed: int = 0,
    most: Mapping[Clique, float] | None = None,
) -> Posterior:
    stream = Stream(seed, "posterior")
    return posterior(evidence, distances or {}, most or {}, options or PosteriorSettings(), stream, lambda share: None)


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
