"""The random field against brute force: the least squared error over all laws, and among those most entropy."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np
import pytest

pytest.importorskip("mbi", reason="the package mbi is not installed (pip install 'margent[pgm]')")

from margent.errors import PlanError, UsageError
from margent.postprocessing.tables import evidence, working_domain
from margent.progress import silent
from margent.schema.domain import Clique
from margent.synthesizers.pgm import Pgm, fitting
from margent.synthesizers.random_field import FieldSettings
from tests.synthesizers.made import counts_of, transcript, variation

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2}
PATIENT = Pgm(settings=FieldSettings(steps=30_000, tolerance=1e-12))
ZOO: dict[str, list[Clique]] = {
    "singletons": [("a",), ("b",), ("c",), ("d",)],
    "a tree": [("a", "b"), ("b", "c"), ("b", "d"), ("c",)],
    "a cycle": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")],
    "missing columns": [("a", "b"), ("b",)],
    "the full table": [("a", "b", "c", "d"), ("a", "c")],
    "duplicates": [("a", "b"), ("a", "b"), ("b", "c"), ("a",), ("a",)],
    "overlapping triples": [("a", "b", "c"), ("b", "c", "d"), ("a", "d")],
}


def zoo_tables(cliques: Sequence[Clique], noise: float) -> list[tuple[Clique, np.ndarray]]:
    rng = np.random.default_rng(len(cliques))
    joint = rng.dirichlet(np.full(24, 0.7)).reshape(tuple(SIZES.values())) * 2000
    tables = []
    for names in cliques:
        others = tuple(axis for axis, name in enumerate(SIZES) if name not in names)
        exact = joint.sum(axis=others)
        tables.append((names, np.rint(exact + rng.normal(0, noise, exact.shape)).astype(np.int64)))
    return tables


def design(names: Clique) -> np.ndarray:
    """0/1 matrix from the 24 joint cells to the cells of a clique's table."""
    cells = list(itertools.product(*(range(size) for size in SIZES.values())))
    shape = [SIZES[name] for name in names]
    matrix = np.zeros((math.prod(shape), len(cells)))
    for place, cell in enumerate(cells):
        own = dict(zip(SIZES, cell, strict=True))
        matrix[np.ravel_multi_index([own[name] for name in names], shape), place] = 1
    return matrix


@pytest.mark.parametrize("noise", [1.0, 60.0])
@pytest.mark.parametrize("shape", ZOO, ids=lambda name: name.replace(" ", "-"))
def test_the_field_is_the_optimum_of_brute_force(shape: str, noise: float) -> None:
    """A dense solve over the joint simplex gives the measured tables, iterative scaling the law of most entropy."""
    from scipy.optimize import nnls

    tables = zoo_tables(ZOO[shape], noise)
    record = transcript(SIZES, tables, variance=round(noise**2))
    model = PATIENT.build(record, silent)
    total = model.law.total
    stacked = np.concatenate([design(names) for names, _ in tables]) / noise
    wanted = np.concatenate([counts.ravel() for _, counts in tables]) / noise
    heavy = 1e5 / total  # the one equation that must hold: all cells together are the total
    best, _ = nnls(np.vstack([stacked, np.full(24, heavy)]), np.append(wanted, heavy * total), maxiter=10_000)

    joint = model.marginals([tuple(SIZES)], 0)[0].ravel() * (total / model.total)
    assert joint.sum() == pytest.approx(total)
    error, least = ((0.5 * (stacked @ each - wanted) ** 2).sum() for each in (joint, best))
    assert least - 1e-3 <= error <= least * 1.001 + 0.02
    for names, _ in tables:
        assert design(names) @ joint == pytest.approx(design(names) @ best, abs=0.003 * total)

    scaled = np.full(24, total / 24)  # iterative scaling of the uniform law to the field's own measured tables
    for _ in range(3000):
        for names, _ in tables:
            matrix = design(names)
            now = matrix @ scaled
            scaled *= matrix.T @ np.divide(matrix @ joint, now, out=np.zeros_like(now), where=now > 0)
    assert joint == pytest.approx(scaled, abs=0.002 * total)


def test_precise_tables_weigh_more() -> None:
    """Two answers about one column, variances 1 and 9: nine parts of the first and one of the second."""
    from dataclasses import replace
    from fractions import Fraction

    record = transcript({"a": 2, "b": 2}, [(("a",), np.array([600, 400])), (("a", "b"), np.array([[350, 350]] * 2))])
    vague = replace(record.answers[1], variance=Fraction(9 // 2))
    model = PATIENT.build(replace(record, answers=(record.answers[0], vague)), silent)
    first = model.marginals([("a",)], 0)[0][0] / model.total
    # The pair says 700 of 1,400 with variance 2 * 4.5 a row; the total is the precision-weighted mean of the sums.
    total = (1000 / 2 + 1400 / (4 * 4)) / (1 / 2 + 1 / 16)
    slope = [(600, 400, 1.0), (700, 700, 8.0)]
    best = sum((one - other + total) / 2 / v for one, other, v in slope) / sum(1 / v for *_, v in slope) / total
    assert first == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("shape", ["a tree", "a cycle", "overlapping triples"], ids=lambda name: name.replace(" ", "-"))
def test_answers_as_large_as_integers_can_be_leave_tables_with_their_sum(shape: str) -> None:
    """Logarithms so large that they are rounded by more than 1: what neighbors say of a sum must not be believed."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        odd = rng.choice([0, 1, 2**31, 2**53, 2**62, -(2**62), 2**63 - 1, -(2**63)], 4)
        tables = [(names, rng.choice(odd, counts.shape)) for names, counts in zoo_tables(ZOO[shape], 1.0)]
        law = Pgm().build(transcript(SIZES, tables), silent).law
        for belief in law.beliefs:
            assert belief.min() >= 0
            assert belief.sum() == pytest.approx(law.total)


def test_over_the_cap_the_weakest_tables_keep_only_their_single_columns() -> None:
    sizes = dict.fromkeys("abcd", 4)
    rng = np.random.default_rng(3)
    a = rng.integers(0, 4, 4000)
    weak = np.where(rng.random(4000) < 0.4, a, rng.integers(0, 4, 4000))
    real = np.stack([a, a, weak, (a + weak) % 4], axis=1)
    cliques = list(itertools.combinations("abcd", 2))
    record = transcript(sizes, [(names, counts_of(real, sizes, names)) for names in cliques])
    working = working_domain(record)
    known = evidence(record, working)
    assert {table.clique for table in fitting(known, known.total, 256)} == set(cliques)
    kept = {table.clique for table in fitting(known, known.total, 80) if len(table.clique) > 1}
    assert ("a", "b") in kept
    assert len(kept) < 6
    with pytest.raises(PlanError, match=r"16 cells together and the model's cap is 15"):
        fitting(known, known.total, 15)
    made = Pgm(most_cells=80).build(record, silent).sample(4000, 1, silent)
    assert variation(counts_of(made, sizes, ("a", "b")), counts_of(real, sizes, ("a", "b"))) < 0.01
    for name in sizes:
        assert variation(counts_of(made, sizes, (name,)), counts_of(real, sizes, (name,))) < 0.01


def test_the_process_keeps_its_own_settings_of_jax() -> None:
    import jax

    before = jax.numpy.zeros(1).dtype
    PATIENT.build(transcript({"a": 2}, [(("a",), np.array([5, 7]))]), silent)
    assert jax.numpy.zeros(1).dtype == before


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margent.synthesizers.random_field.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'margent\[pgm\]'"):
        Pgm().build(transcript({"a": 2}, [(("a",), np.array([5, 7]))]), silent)


def test_naming_the_methods_does_not_import_jax() -> None:
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", "import sys, margent.methods; print('jax' in sys.modules, 'mbi' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "False"]
