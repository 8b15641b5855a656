"""Marginals of a law on a junction tree against the sum over its whole joint table."""

from __future__ import annotations

import itertools
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.postprocessing.calibrated import CalibratedTree
from margent.postprocessing.junction import junction_tree, triangulated
from margent.schema.domain import Clique, Domain

NAMES = "abcdef"


def joint_of(rng: np.random.Generator, domain: Domain, cliques: tuple[Clique, ...], zeros: bool) -> np.ndarray:
    """A law whose dependence runs along the cliques: the product of one positive (or partly zero) table each."""
    letters = dict(zip(domain.names, string.ascii_letters, strict=False))
    joint = np.ones(domain.sizes)
    for names in cliques:
        table = rng.random(domain.shape(names)) + (0.0 if zeros else 0.05)
        if zeros:
            table[rng.random(table.shape) < 0.2] = 0.0
            table.flat[0] = 1.0  # the first cell of all stays possible
        own = "".join(letters[name] for name in names)
        whole = "".join(letters[name] for name in domain.names)
        joint = np.einsum(f"{whole},{own}->{whole}", joint, table)
    return joint * (1000 / joint.sum())


def summed(joint: np.ndarray, domain: Domain, names: Clique) -> np.ndarray:
    others = tuple(axis for axis, name in enumerate(domain.names) if name not in names)
    table = joint.sum(axis=others)
    left = [name for name in domain.names if name in names]
    return np.transpose(table, [left.index(name) for name in names])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_marginal_is_that_of_the_joint_table(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    domain = Domain(tuple(NAMES), tuple(data.draw(st.integers(1, 3)) for _ in NAMES))
    pairs = data.draw(st.lists(st.sampled_from(list(itertools.combinations(NAMES, 2))), max_size=7, unique=True))
    cliques = triangulated([*((name,) for name in NAMES), *pairs], domain)
    joint = joint_of(rng, domain, cliques, data.draw(st.booleans()))
    tree = junction_tree(cliques)
    law = CalibratedTree(domain, tree, tuple(summed(joint, domain, names) for names in tree.cliques), 1000.0)
    for count in (1, 2, 3, 6):
        for names in itertools.combinations(NAMES, count):
            order = tuple(rng.permutation(list(names)).tolist())
            assert law.marginal(order) == pytest.approx(summed(joint, domain, order), abs=1e-8)


def test_a_wide_tree_needs_no_wide_table() -> None:
    """The two ends of a chain of 60 columns: 2^60 joint cells, answered through tables of four."""
    names = tuple(f"c{place:02d}" for place in range(60))
    domain = Domain(names, (2,) * 60)
    stay = np.array([[40.0, 10.0], [10.0, 40.0]])
    tree = junction_tree(triangulated(list(itertools.pairwise(names)), domain))
    law = CalibratedTree(domain, tree, (stay,) * 59, 100.0)
    step = stay / stay.sum(axis=1, keepdims=True)
    ends = 50.0 * np.linalg.matrix_power(step, 59)
    assert law.marginal(("c00", "c59")) == pytest.approx(ends, abs=1e-9)
    assert law.marginal(("c03", "c05", "c04"))[1, 1, 1] == pytest.approx(50 * 0.8 * 0.8)
