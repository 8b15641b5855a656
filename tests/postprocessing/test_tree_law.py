"""The law on a junction tree against the whole joint table: fitted by brute force, summed by brute force."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from margent.postprocessing.junction import junction_tree, maximal, triangulated
from margent.postprocessing.tree_law import TreeLaw, fitted
from margent.schema.domain import Clique, Domain

Joint = NDArray[np.float64]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Domain, list[Clique], Joint]:
    """A dependent joint law over at most six columns, and cliques over all of them."""
    names = tuple("abcdef"[: draw(st.integers(1, 6))])
    domain = Domain(names, tuple(draw(st.integers(1, 3)) for _ in names))
    subsets = [pair for count in (1, 2, 3) for pair in combinations(names, count)]
    cliques = draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=6)) + [(name,) for name in names]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    joint = rng.gamma(0.5, size=domain.sizes) + 1e-3
    return domain, cliques, joint / joint.sum()


def margin(joint: Joint, domain: Domain, names: Clique) -> Joint:
    """Axes in clique order; the domain's names are in order too."""
    return np.asarray(joint.sum(axis=tuple(domain.position[name] for name in domain.names if name not in names)))


def brute_force(domain: Domain, targets: dict[Clique, Joint]) -> Joint:
    """Iterative proportional fitting on the whole joint table."""
    joint = np.full(domain.sizes, 1 / np.prod(domain.sizes))
    for _ in range(400):
        for names, target in targets.items():
            shape = [domain.size(name) if name in names else 1 for name in domain.names]
            joint = joint * (target / margin(joint, domain, names)).reshape(shape)
    return joint


def joint_of(law: TreeLaw) -> Joint:
    product = np.ones((1,) * len(law.domain.names))
    for place, separator in enumerate(law.tree.separators):
        over = (*separator, *law.fresh[place])
        values = law.conditional(place).reshape(law.domain.shape(over))
        values = np.transpose(values, sorted(range(len(over)), key=lambda axis: over[axis]))
        shape = [law.domain.size(name) if name in over else 1 for name in law.domain.names]
        product = product * values.reshape(shape)
    return product


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_law_is_that_of_largest_entropy_and_its_tables_are_its_sums(
    case: tuple[Domain, list[Clique], Joint],
) -> None:
    domain, cliques, truth = case
    targets = {names: margin(truth, domain, names) for names in maximal(cliques)}
    law = fitted(junction_tree(triangulated(cliques, domain)), domain, targets, rounds=400, tolerance=1e-12)
    joint = joint_of(law)
    np.testing.assert_allclose(joint, brute_force(domain, targets), atol=1e-7)
    for count in range(1, len(domain.names) + 1):
        for names in combinations(domain.names, count):
            table = law.table(names, 10**6)
            assert table is not None
            np.testing.assert_allclose(table, margin(joint, domain, names), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_one_round_is_enough_where_every_clique_has_its_table(case: tuple[Domain, list[Clique], Joint]) -> None:
    domain, cliques, truth = case
    tree = junction_tree(triangulated(cliques, domain))
    law = fitted(tree, domain, {names: margin(truth, domain, names) for names in tree.cliques}, rounds=1)
    for names, belief in zip(tree.cliques, law.beliefs, strict=True):
        np.testing.assert_allclose(belief, margin(truth, domain, names), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(cases())
def test_a_table_wider_than_any_clique_counts_as_far_as_cliques_go(case: tuple[Domain, list[Clique], Joint]) -> None:
    domain, cliques, truth = case
    tree = junction_tree(triangulated(cliques, domain))
    whole = fitted(tree, domain, {domain.names: truth}, rounds=3)
    apart = fitted(tree, domain, {names: margin(truth, domain, names) for names in tree.cliques}, rounds=3)
    for one, other in zip(whole.beliefs, apart.beliefs, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


class Forbidden:
    """Structural zeros as the fit asks for them: of one pair of columns, wherever both lie in a clique."""

    def __init__(self, pair: Clique, allowed: NDArray[np.bool_]) -> None:
        self.pair, self.allowed = pair, allowed

    def mask(self, names: Clique) -> NDArray[np.bool_] | None:
        if not set(self.pair) <= set(names):
            return None
        return self.allowed.reshape([3 if name in self.pair else 1 for name in names])


def test_forbidden_cells_get_nothing_and_the_rest_is_of_largest_entropy() -> None:
    """b and c may not differ by two; only (a, b) and (c, d) are told, and the cell is forbidden in a third table."""
    domain = Domain(("a", "b", "c", "d"), (3, 3, 3, 3))
    rng = np.random.default_rng(3)
    targets: dict[Clique, Joint] = {}
    for names in (("a", "b"), ("c", "d")):
        table = rng.random((3, 3)) + 0.5
        targets[names] = table / table.sum()
    zeros = Forbidden(("b", "c"), np.abs(np.subtract.outer(np.arange(3), np.arange(3))) < 2)
    tree = junction_tree([("a", "b"), ("b", "c"), ("c", "d")])
    law = fitted(tree, domain, targets, zeros=zeros, rounds=2000, tolerance=1e-12)  # type: ignore[arg-type]
    joint = np.broadcast_to(zeros.allowed[np.newaxis, :, :, np.newaxis], domain.sizes) / 1.0
    for _ in range(2000):
        for names, target in targets.items():
            shape = [3 if name in names else 1 for name in domain.names]
            joint = joint * (target / margin(joint, domain, names)).reshape(shape)
    np.testing.assert_allclose(joint_of(law), joint, atol=1e-9)
    assert not joint_of(law)[:, 0, 2, :].any()


def test_a_table_over_the_cap_is_not_made() -> None:
    domain = Domain(("a", "b", "c", "d"), (5, 5, 5, 5))
    chain: list[Clique] = [("a", "b"), ("b", "c"), ("c", "d")]
    rng = np.random.default_rng(1)
    law = fitted(junction_tree(chain), domain, {names: rng.random((5, 5)) for names in chain[:1]})
    assert law.table(("a", "d"), 125) is not None
    assert law.table(("a", "d"), 124) is None
    assert law.table(("a", "b", "c", "d"), 624) is None
    assert law.table(("a",), 25) is not None


def test_a_long_chain_carries_dependence_from_end_to_end() -> None:
    """c0 = c1 = ... = c299: the ends agree, and no step of it needs more than three columns."""
    names = tuple(f"c{number:03d}" for number in range(300))
    chain = [(one, other) for one, other in pairwise(names)]
    domain = Domain(names, (2,) * 300)
    law = fitted(junction_tree(chain), domain, dict.fromkeys(chain, np.array([[0.3, 0.0], [0.0, 0.7]])))
    ends = law.table((names[0], names[-1]), 8)
    assert ends is not None
    assert ends == pytest.approx(np.array([[0.3, 0.0], [0.0, 0.7]]))


def test_what_cannot_be_met_leaves_a_law() -> None:
    """Two tables that contradict each other about b: the last word is one of theirs, and shares add up to one."""
    domain = Domain(("a", "b", "c"), (2, 2, 2))
    targets = {("a", "b"): np.array([[1.0, 0.0], [1.0, 0.0]]), ("b", "c"): np.array([[0.0, 0.0], [1.0, 1.0]])}
    law = fitted(junction_tree([("a", "b"), ("b", "c")]), domain, targets, rounds=5)
    for belief in law.beliefs:
        assert belief.sum() == pytest.approx(1)
    for place in range(2):
        assert law.conditional(place).sum(axis=1) == pytest.approx(1)
    assert law.table(("a", "c"), 100).sum() == pytest.approx(1)  # type: ignore[union-attr]
