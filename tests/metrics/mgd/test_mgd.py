"""MGD against its own definition: the linear program over all plans, solved by HiGHS, and values done by hand."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from margent import Category, Integer, Schema
from margent.errors import UsageError
from margent.metrics.mgd import Attribute, attributes_from_schema, mgd
from margent.metrics.mgd.certificate import feasible
from margent.metrics.mgd.costs import axes_of, whole_costs
from margent.schema.codec import Codec
from margent.schema.parts import Hierarchy


def semantic(one: Attribute, i: int, j: int, table1: bool) -> float:
    """The definition's distance between two codes, from scratch."""
    if i == j:
        return 0.0
    if one.kind == "order":
        if max(i, j) >= one.values:
            return math.inf
        return abs(i - j) / (1 if table1 else one.values - 1)
    depth = len(one.levels) + 1
    for height, groups in enumerate(one.groups, start=1):
        if max(i, j) < one.values and groups[i] == groups[j]:
            return height / depth
    return 1.0


def program(
    synthetic: NDArray[Any], real: NDArray[Any], attributes: list[Attribute], weights: list[float], delta: float,
    table1: bool = False,
) -> float:  # fmt: skip
    """min sum X M + sum max(|received - real| - delta, 0), unscaled, with every pair of cells a variable."""
    cells = list(itertools.product(*(range(one.size) for one in attributes)))
    p, q = synthetic.ravel().astype(float), real.ravel().astype(float)
    pairs, costs = [], []
    for a, i in enumerate(cells):
        for b, j in enumerate(cells):
            distance = 0.0
            for one, weight, x, y in zip(attributes, weights, i, j, strict=True):
                apart = semantic(one, x, y, table1)
                distance += 0.0 if apart == 0 else weight * apart
            if math.isfinite(distance):
                pairs.append((a, b))
                costs.append(distance)
    n, m = len(cells), len(pairs)
    # Variables: X, over, short and, with the convention's negative lower bounds, what a cell gives for free.
    keep, receive = np.zeros((n, m)), np.zeros((n, m))
    for place, (a, b) in enumerate(pairs):
        keep[a, place] = receive[b, place] = 1
    if table1:
        # Free records: a cell may send delta - real more than it has, and then receives that many less.
        free = np.maximum(delta - q, 0)
        eye, none = np.eye(n), np.zeros((n, n))
        a_eq = np.hstack([keep, none, none, -eye])
        a_ub = np.vstack([np.hstack([receive, -eye, none, -eye]), np.hstack([-receive, none, -eye, eye])])
        b_ub = np.concatenate([q + delta, -(q - delta)])
        bounds = [(0, None)] * (m + 2 * n) + [(0, bound) for bound in free]
        c = np.concatenate([costs, np.ones(2 * n), np.zeros(n)])
        return float(linprog(c, a_ub, b_ub, a_eq, p, bounds=bounds).fun)
    eye, none = np.eye(n), np.zeros((n, n))
    a_ub = np.vstack([np.hstack([receive, -eye]), np.hstack([-receive, -eye])])
    b_ub = np.concatenate([q + delta, -(q - delta)])
    a_eq = np.hstack([keep, none])
    return float(linprog(np.concatenate([costs, np.ones(n)]), a_ub, b_ub, a_eq, p, bounds=(0, None)).fun)


@st.composite
def attribute(draw: st.DrawFn, name: str) -> Attribute:
    values = draw(st.integers(1, 5))
    size = values + draw(st.integers(0, 1))
    if draw(st.booleans()):
        return Attribute(name, size, values, "order")
    if draw(st.booleans()):
        return Attribute(name, size, values, "tree")
    fine = tuple(draw(st.lists(st.integers(0, 2), min_size=values, max_size=values)))
    coarse = tuple(min(group, 1) for group in fine)
    depth = draw(st.integers(1, 2))
    return Attribute(name, size, values, "tree", ("l1", "l2")[:depth], (fine, coarse)[:depth])


@st.composite
def instance(draw: st.DrawFn) -> tuple[list[Attribute], list[Any], NDArray[Any], NDArray[Any], Fraction]:
    attributes = [draw(attribute(name)) for name in "abc"[: draw(st.integers(1, 3))]]
    while math.prod(one.size for one in attributes) > 40:
        attributes.pop()
    weights = [draw(st.sampled_from([1, 2, Fraction(1, 3), math.inf])) for _ in attributes]
    shape = tuple(one.size for one in attributes)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    top = draw(st.sampled_from([2, 5, 20]))
    real, synthetic = rng.integers(0, top, shape), rng.integers(0, draw(st.sampled_from([2, 5, 20])), shape)
    real *= rng.random(shape) < 0.6
    return (
        attributes,
        weights,
        real,
        synthetic,
        draw(st.sampled_from([Fraction(0), Fraction(1), Fraction(2), Fraction(3, 2)])),
    )


@settings(max_examples=250, deadline=None)
@given(instance())
def test_equals_the_linear_program(drawn: Any) -> None:
    attributes, weights, real, synthetic, delta = drawn
    clique = tuple(one.name for one in attributes)
    result = mgd(
        {clique: real}, {clique: synthetic}, {one.name: one for one in attributes},
        tolerance=delta, weights=dict(zip(clique, weights, strict=True)),
    )  # fmt: skip
    finite = sum(float(weight) for weight in weights if weight != math.inf)
    scaled = [weight if weight == math.inf else float(weight) / finite for weight in weights]
    expected = program(synthetic, real, attributes, scaled, float(delta))
    (one,) = result.marginals
    assert one.exact
    assert one.certificate.primal == one.certificate.dual
    assert float(one.certificate.primal) == pytest.approx(expected, abs=1e-7)
    assert sum(one.moved.values()) + one.left == pytest.approx(one.value, abs=1e-12)
    detail = one.cells()
    total = real.sum() or synthetic.sum() or 1
    assert detail.priced.sum() / total == pytest.approx(one.value, abs=1e-9)
    # The plan is one: no record appears or is lost, and every cell keeps at least none.
    assert detail.moved.sum() == pytest.approx(0)
    assert (detail.moved <= synthetic + 1e-12).all()
    over = np.maximum(np.abs(synthetic - detail.moved - real) - float(delta), 0)
    assert np.abs(detail.left) == pytest.approx(over)


@settings(max_examples=60, deadline=None)
@given(instance())
def test_the_table_1_convention_equals_its_program(drawn: Any) -> None:
    attributes, _, real, synthetic, delta = drawn
    clique = tuple(one.name for one in attributes)
    result = mgd(
        {clique: real}, {clique: synthetic}, {one.name: one for one in attributes}, tolerance=delta,
        convention="table1",
    )  # fmt: skip
    each = {1: 1.0, 2: 0.5, 3: 0.33}[len(clique)]
    # There a place in an order costs the whole weight; the definition's levels are kept.
    expected = program(synthetic, real, attributes, [each] * len(clique), float(delta), table1=True)
    assert result.exact
    assert float(result.marginals[0].certificate.primal) == pytest.approx(expected, abs=1e-7)


def one_way(real: list[int], synthetic: list[int], one: Attribute, **options: Any) -> float:
    return mgd({(one.name,): np.array(real)}, {(one.name,): np.array(synthetic)}, {one.name: one}, **options).value


def test_values_done_by_hand() -> None:
    three = Attribute("x", 3, 3, "order")
    flat = Attribute("x", 3, 3, "tree")
    assert one_way([5, 4, 1], [4, 5, 1], three, tolerance=0) == 0.05
    assert one_way([5, 4, 1], [4, 4, 2], three, tolerance=0) == 0.1
    # Nothing may move and nothing is tolerated: the L1 distance over the real total.
    assert one_way([5, 4, 1], [4, 4, 2], flat, tolerance=0) == 0.2
    assert one_way([0, 6, 0], [6, 0, 0], flat, tolerance=2) == (4 + 4) / 6
    assert one_way([0, 6, 0], [6, 0, 0], flat, tolerance=2, weights={"x": 1}) == 4 / 6


def test_the_table_1_convention_by_hand() -> None:
    """An empty real cell may there give records it does not have, and a month costs 1 however many there are."""
    months = Attribute("x", 3, 3, "order")
    # Short by 3 beyond the tolerance of 2: the two empty cells give two each for nothing but the way.
    assert one_way([5, 0, 0], [0, 0, 0], months, tolerance=2, convention="definition") == 3 / 5
    assert one_way([5, 0, 0], [0, 0, 0], months, tolerance=2, convention="table1") == 3 / 5
    codes = Attribute("y", 2, 2, "tree")
    assert mgd(
        {("x", "y"): np.array([[5, 0], [0, 0], [0, 0]])}, {("x", "y"): np.zeros((3, 2), int)},
        {"x": months, "y": codes}, tolerance=2, convention="table1",
    ).value == (2 * 0.5 + 1 * 0.5) / 5  # fmt: skip
    assert one_way([0, 8, 0], [4, 0, 4], months, tolerance=0, convention="definition") == 0.5
    assert one_way([0, 8, 0], [4, 0, 4], months, tolerance=0, convention="table1") == 1.0
    # Without lower bounds of 0 the two sides play the same part.
    assert one_way([9, 0, 0], [0, 0, 4], months, convention="table1") * 9 == one_way(
        [0, 0, 4], [9, 0, 0], months, convention="table1"
    ) * 4  # fmt: skip


def test_distances_of_a_hierarchy() -> None:
    cities = Attribute("c", 4, 4, "tree", ("state",), ((0, 0, 1, 1),))
    moved = [one_way([8, 0, 0, 0], there, cities, tolerance=0, weights={"c": 1}) for there in
             ([0, 8, 0, 0], [0, 0, 8, 0])]  # fmt: skip
    assert moved == [0.5, 1.0]


def test_a_coarser_level_compares_groups() -> None:
    grades = Attribute("g", 5, 4, "order", ("school",), ((0, 0, 1, 1),))
    tables = {("g",): np.array([3, 0, 0, 1, 2])}, {("g",): np.array([0, 3, 1, 0, 2])}
    assert mgd(*tables, {"g": grades}, tolerance=0).value > 0
    assert mgd(*tables, {"g": grades}, tolerance=0, levels={"g": "school"}).value == 0
    broken = Attribute("g", 4, 4, "order", ("parity",), ((0, 1, 0, 1),))
    with pytest.raises(UsageError, match="does not group neighbors"):
        broken.coarsened("parity")


@pytest.mark.parametrize("size", [1, 2, 3000])
def test_a_long_path_is_certified(size: int) -> None:
    rng = np.random.default_rng(size)
    one = Attribute("x", size, size, "order")
    real, synthetic = rng.poisson(5, size), rng.poisson(5, size)
    result = mgd({("x",): real}, {("x",): synthetic}, {"x": one}, tolerance=0)
    assert result.exact
    if size == 3000:
        # With equal totals and no tolerance it is the area between the two cumulative curves, if nothing is cheaper.
        other = rng.permutation(real)
        gap = np.abs(np.cumsum(real - other)).sum() / (size - 1) / real.sum()
        value = mgd({("x",): real}, {("x",): other}, {"x": one}, tolerance=0).value
        assert value == pytest.approx(gap, rel=1e-12)


def test_a_larger_flow_is_certified_and_needs_all_three_axes() -> None:
    rng = np.random.default_rng(7)
    shape, names = (12, 20, 15), ("m", "n", "t")
    kinds = {
        "m": Attribute("m", 12, 12, "order"),
        "n": Attribute("n", 20, 20, "tree"),
        "t": Attribute("t", 15, 15, "tree"),
    }
    mean = rng.gamma(0.3, 5, shape)
    real, synthetic = rng.poisson(mean), rng.poisson(mean * rng.gamma(2, 0.5, shape))
    result = mgd({names: real}, {names: synthetic}, kinds, weights=dict.fromkeys(names, 1))
    assert result.exact
    assert all(cost > 0 for cost in result.attributes.values())
    apart = mgd({names: real}, {names: synthetic}, kinds)
    assert apart.exact
    assert apart.value > result.value


def test_what_is_too_large_is_bounded() -> None:
    one = {"n": Attribute("n", 3, 3, "tree")}
    tables = {("n",): np.array([9, 0, 5])}, {("n",): np.array([0, 20, 5])}
    exact = mgd(*tables, one, weights={"n": 1})
    rough = mgd(*tables, one, weights={"n": 1}, largest=2)
    assert not rough.exact
    assert 0 < rough.lower <= exact.value <= rough.upper
    assert rough.value == rough.upper


def test_costs_without_a_common_unit_are_bounded_closely() -> None:
    rng = np.random.default_rng(3)
    kinds = {"a": Attribute("a", 4, 4, "order"), "b": Attribute("b", 4, 4, "order")}
    tables = {("a", "b"): rng.integers(0, 9, (4, 4))}, {("a", "b"): rng.integers(0, 9, (4, 4))}
    result = mgd(*tables, kinds, weights={"a": 0.123456789, "b": math.pi}, tolerance=0)
    assert result.lower <= result.value == result.upper
    assert result.upper - result.lower < 1e-5
    truth = program(tables[1][("a", "b")], tables[0][("a", "b")], list(kinds.values()),
                    [0.123456789 / (0.123456789 + math.pi), math.pi / (0.123456789 + math.pi)], 0)  # fmt: skip
    total = tables[0][("a", "b")].sum()
    assert result.lower - 1e-9 <= truth / total <= result.upper + 1e-9


def test_broken_prices_are_seen() -> None:
    """The check of certificates must fail for prices that are too far apart along any axis."""
    order, tree = Attribute("a", 3, 3, "order"), Attribute("b", 4, 4, "tree", ("l",), ((0, 0, 1, 1),))
    axes = axes_of([order, tree], {"a": 1, "b": 1}, "definition")
    unit, steps = whole_costs(axes)
    assert (unit, steps) == (4, (1, 1))
    price = np.zeros((3, 4), dtype=np.int64)
    assert feasible(price, axes, unit, steps)
    for where, value in ((np.s_[0, :], 2), (np.s_[:, :1], 2), (np.s_[:, :2], 3)):
        wrong = price.copy()
        wrong[where] = value
        assert not feasible(wrong, axes, unit, steps)
    assert not feasible(price + 5, axes, unit, steps)
    fine = price.copy()
    fine[:, :2] = 2
    assert feasible(fine, axes, unit, steps)


def test_empty_tables_have_values() -> None:
    one = Attribute("x", 3, 3, "order")
    assert one_way([0, 0, 0], [0, 0, 0], one) == 0
    assert one_way([0, 0, 0], [9, 0, 0], one, tolerance=0) == 1
    assert one_way([9, 0, 0], [0, 0, 0], one, tolerance=0) == 1


def test_the_result_is_a_weighted_mean() -> None:
    kinds = {"x": Attribute("x", 2, 2, "order"), "y": Attribute("y", 2, 2, "order")}
    real = {("x",): np.array([4, 0]), ("y",): np.array([2, 2])}
    synthetic = {("x",): np.array([0, 4]), ("y",): np.array([2, 2])}
    assert mgd(real, synthetic, kinds, tolerance=0).value == 0.5
    assert mgd(real, synthetic, kinds, tolerance=0, marginal_weights={("x",): 3}).value == 0.75


def test_everything_that_does_not_fit_is_listed() -> None:
    kinds = {"x": Attribute("x", 2, 2, "order")}
    with pytest.raises(UsageError) as caught:
        mgd({("x",): np.array([1.5, 0])}, {("x",): np.array([1, 2, 3])}, kinds, tolerance=-1, weights={"z": 1})
    said = str(caught.value)
    assert all(word in said for word in ("whole counts", "shape", "tolerance", "'z'"))
    with pytest.raises(UsageError, match="above 0"):
        mgd({("x",): np.array([1, 0])}, {("x",): np.array([1, 0])}, kinds, weights={"x": 0})
    for tolerance in (math.nan, math.inf):
        with pytest.raises(UsageError, match="tolerance"):
            mgd({("x",): np.array([1, 0])}, {("x",): np.array([1, 0])}, kinds, tolerance=tolerance)


def test_attributes_come_from_the_schema() -> None:
    tree = Hierarchy(("side",), ((("a", "l"), ("b", "l"), ("c", "r")),))
    schema = Schema(
        [Integer("age", 0, 9), Category("size", ["s", "m", "l"], ordered=True), Category("sex", ["F", "M"])],
        unit="row",
    )
    found = attributes_from_schema(Codec(schema))
    assert [found[name].kind for name in ("age", "size", "sex")] == ["order", "order", "tree"]
    assert (found["age"].values, found["age"].size) == (10, 11)
    placed = Category("place", ["a", "b", "c"], hierarchy={"levels": ["side"], "parents": [dict(tree.parents[0])]})
    place = attributes_from_schema(Codec(Schema([placed], unit="row")))["place"]
    assert (place.levels, place.groups) == (("side",), ((0, 0, 1),))
