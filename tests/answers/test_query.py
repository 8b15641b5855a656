"""Queries: what is measured and what is modelled, error bars that hold what they say, groups, errors in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import margent
from margent import Budget, Category, Identifier, Integer, PlanError, Schema, UsageError
from margent.answers import query as module
from margent.answers.answer import QueryAnswer
from margent.answers.tables import half_width
from margent.methods import METHODS
from margent.privacy.interactions import interaction_of
from margent.privacy.noise import discrete_gaussian, discrete_laplace
from margent.privacy.queries import marginal_law
from margent.privacy.requests import MarginalRequest
from margent.release.release import Release
from margent.schema.domain import Merge
from margent.synthesizers.blocks import HeldRecords
from margent.transcript import NoisyMarginal, Transcript
from tests.collectors.test_dense import dependent
from tests.collectors.test_pure import door, pure
from tests.synthesizers.made import counts_of, transcript

Query = Callable[[Release, Sequence[str]], QueryAnswer]
SIZES = {"a": 3, "b": 4, "c": 2, "d": 3}


def released(record: Transcript, budget: Budget | None = None) -> Release:
    return Release(record, budget or Budget(epsilon=1), "descent", HeldRecords(np.zeros((0, 0), np.int32), 1), 1, "csv")


def population(rows: int = 5_000) -> np.ndarray:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 3, rows)
    b = (a + (rng.random(rows) < 0.3)) % 4
    c = ((b > 1) ^ (rng.random(rows) < 0.1)).astype(int)
    return np.stack([a, b, c, (a + c) % 3], axis=1)


REAL = population()


def exact(*cliques: tuple[str, ...], variance: int = 1) -> Release:
    tables = [(names, counts_of(REAL, SIZES, names)) for names in cliques]
    return released(transcript(SIZES, tables, variance=variance))


def test_axes_come_in_the_order_asked_and_labels_are_the_schemas() -> None:
    answer = margent.query(exact(("a", "b", "c")), ["c", "a"])
    assert answer.columns == ("c", "a")
    assert answer.labels == (("c0", "c1"), ("a0", "a1", "a2"))
    np.testing.assert_allclose(answer.counts, counts_of(REAL, SIZES, ("c", "a")))
    assert answer.measured
    assert answer.sources == (("a", "b", "c"),)
    # A cell over (c, a) sums 4 cells of variance 1: 1.96 x 2, rounded up.
    np.testing.assert_allclose(answer.errors, 4.0)
    cells = list(answer.cells(2))
    assert [cell.count for cell in cells] == sorted(answer.counts.ravel(), reverse=True)[:2]
    assert cells[0].low == cells[0].count - 4.0
    assert margent.query(exact(("a",)), "a").columns == ("a",)


def test_answers_to_different_queries_agree_where_all_is_measured() -> None:
    rng = np.random.default_rng(0)
    tables = [
        (names, counts_of(REAL, SIZES, names) + rng.integers(-40, 40, [SIZES[name] for name in names]))
        for names in [("a", "b"), ("a", "b", "c"), ("b", "c"), ("a",), ("c", "d"), ("a", "c")]
    ]
    release = released(transcript(SIZES, tables, variance=500))
    whole = margent.query(release, ["a", "b", "c"])
    for kept, axis in ((["b", "c"], 0), (["a", "c"], 1), (["a", "b"], 2)):
        np.testing.assert_allclose(margent.query(release, kept).counts, whole.counts.sum(axis=axis), atol=1e-8)
    np.testing.assert_allclose(margent.query(release, ["b"]).counts, whole.counts.sum(axis=(0, 2)), atol=1e-8)


def test_what_was_never_counted_together_is_the_table_of_most_entropy() -> None:
    """a, b, c form a chain here: the model is ab bc / b."""
    answer = margent.query(exact(("a", "b"), ("b", "c"), ("c", "d")), ["a", "b", "c"])
    assert not answer.measured
    assert answer.sources == (("a", "b"), ("b", "c"))
    ab, bc = counts_of(REAL, SIZES, ("a", "b")), counts_of(REAL, SIZES, ("b", "c"))
    np.testing.assert_allclose(answer.counts, ab[:, :, None] * bc[None] / ab.sum(0)[None, :, None], atol=15)
    assert answer.counts.sum() == pytest.approx(5000, abs=5)
    assert any("beyond the margins" in sentence for sentence in answer.words)
    again = margent.query(exact(("a", "b"), ("b", "c"), ("c", "d")), ["a", "b", "c"])
    assert again.errors.tobytes() == answer.errors.tobytes()


def test_columns_that_nothing_joins_are_independent() -> None:
    answer = margent.query(exact(("a", "b"), ("c", "d")), ["a", "d"])
    product = np.outer(counts_of(REAL, SIZES, ("a",)), counts_of(REAL, SIZES, ("d",))) / 5000
    np.testing.assert_allclose(answer.counts, product, atol=8)


def bars(query: Query, laplace: bool, asked: Sequence[str], releases: int = 300) -> float:
    """Share of measured cells whose true count lies within the bar, over releases of exact noise."""
    columns = dependent(2_000, (4, 5, 6, 3))
    budget = pure(1) if laplace else Budget(epsilon=1)
    shape, hit, cells = {"x0": 4, "x1": 5, "x2": 6, "x3": 3}, 0, 0
    for _ in range(releases):
        curator = door(columns, budget)
        law = marginal_law(budget.total / 4, budget.neighbors, budget.account)
        names = curator.domain.names
        cliques = [(names[0], names[1]), (names[0], names[1], names[2]), (names[1], names[2]), (names[0],)]
        record = Transcript(
            curator.schema,
            curator.domain,
            "made",
            (),
            curator.measure([MarginalRequest(c, law) for c in cliques], label=""),
        )
        answer = query(released(replace(record, charges=curator.charges), budget), [names[int(n[1])] for n in asked])
        real = np.stack(columns, axis=1)
        true = counts_of(real, dict(zip(names, shape.values(), strict=True)), answer.columns)
        hit += int((np.abs(true - answer.counts) <= answer.errors).sum())
        cells += true.size
    return hit / cells


BARS = pytest.mark.parametrize(
    ("laplace", "asked"), [(False, ["x1", "x0"]), (True, ["x1", "x0"]), (True, ["x2"]), (False, ["x0", "x1", "x2"])]
)


@BARS
def test_bars_hold_the_true_count_in_95_of_100_measured_cells(laplace: bool, asked: list[str]) -> None:
    """300 releases: the share is within 1.9 points of .95.

    Cells of one release are nearly uncorrelated; the spread of the share is at most sqrt(.95 x .05 / 1,800) = .5 points
    for the six cells of x2, so an alarm is below 4 sd, 1e-4 a case.
    """
    assert 0.931 <= bars(margent.query, laplace, asked) <= 0.971


def test_a_wrong_variance_is_caught() -> None:
    """Planted: bars that forget that a projection sums several cells' noise, and bars a fifth too short.

    As measured, such short bars hold .895 for the five cells of x1 (Laplace; standard deviation .007 over 400 releases)
    and .891 for the twenty of x1 and x0 (Gaussian; .008 over 100): 5 sd below .931. Over x1 and x0 Laplace bars hold
    .965 as they are, and a fifth less is .928: near the limit.
    """

    def of_one_cell(release: Release, columns: Sequence[str]) -> QueryAnswer:
        least = min(float(answer.variance) for answer in release.transcript.marginals)
        answer = margent.query(release, columns)
        return replace(answer, errors=np.full(answer.errors.shape, half_width(least**0.5, 0.0, whole=False)))

    def short(release: Release, columns: Sequence[str]) -> QueryAnswer:
        answer = margent.query(release, columns)
        return replace(answer, errors=0.8 * answer.errors)

    assert not 0.931 <= bars(of_one_cell, False, ["x2"], 100) <= 0.971
    assert not 0.931 <= bars(short, True, ["x1"], 400) <= 0.971
    assert not 0.931 <= bars(short, False, ["x1", "x0"], 100) <= 0.971


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0, 60.0])
@pytest.mark.parametrize("cells", [1, 4])
def test_widths_hold_95_percent_of_laplace_and_gaussian_noise(scale: float, cells: int) -> None:
    """40,000 draws of sums of so many cells: at least .94 inside; at most .96 without the outermost whole number, where
    noise is not a few whole numbers. One whole number is .008 of Laplace noise of scale 5, for which the share without
    it is .9552, 4.6 standard errors from .96: alarm below 1e-5."""
    share = Fraction(scale).limit_denominator(100)
    q = np.exp(-1 / scale)
    excess = (1 + 4 * q + q * q) / (2 * q)
    for draws, deviation, kurtosis in (
        (discrete_laplace(40_000 * cells, share), (2 * q) ** 0.5 / (1 - q), excess),
        (discrete_gaussian(40_000 * cells, share**2), scale, 0.0),
    ):
        width = half_width(cells**0.5 * deviation, kurtosis / cells, whole=True)
        sums = np.abs(draws.reshape(-1, cells).sum(axis=1))
        assert float((sums <= width).mean()) > 0.94
        assert scale < 5 or float((sums < np.floor(width)).mean()) < 0.96


def test_bars_of_a_model_hold_the_noise_around_the_models_own_mean() -> None:
    """40 releases: the model of exact margins lies in .80 to 1 of the bars (shrinkage moves it, the 1 is rounding)."""
    columns = dependent(20_000, (4, 5, 6, 3))
    budget, inside = Budget(epsilon=2), []
    real = np.stack(columns, axis=1)
    law = marginal_law(budget.total / 3, budget.neighbors, budget.account)
    for _ in range(40):
        curator = door(columns, budget)
        names = curator.domain.names
        sizes = dict(zip(names, (4, 5, 6, 3), strict=True))
        cliques = [(names[0], names[1]), (names[1], names[2])]
        answers = curator.measure([MarginalRequest(each, law) for each in cliques], label="")
        record = Transcript(curator.schema, curator.domain, "made", curator.charges, answers)
        ab, bc = (counts_of(real, sizes, each) for each in cliques)
        expected = ab[:, :, None] * bc[None] / np.maximum(ab.sum(0), 1)[None, :, None]
        answer = margent.query(released(record), list(names[:3]))
        inside.append((np.abs(answer.counts - expected) <= answer.errors + 1.0).mean())
    assert 0.80 <= np.mean(inside) <= 1.0


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True), st.integers(0, 10**6))
@settings(deadline=None, max_examples=25)
def test_any_columns_of_any_tables_have_a_finite_answer(asked: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    cliques = {tuple(sorted(rng.choice(list(SIZES), rng.integers(1, 4), replace=False))) for _ in range(3)}
    tables = [(names, rng.integers(-30, 60, [SIZES[name] for name in names])) for names in sorted(cliques)]
    answer = margent.query(released(transcript(SIZES, tables, variance=300)), asked)
    assert answer.counts.shape == tuple(SIZES[name] for name in asked)
    assert np.isfinite(answer.counts).all()
    assert np.isfinite(answer.errors).all()
    assert answer.errors.min() >= 0
    assert answer.measured == any(set(asked) <= set(names) for names in cliques)
    assert len(answer.to_pandas()) == answer.counts.size


def test_codes_counted_together_stay_together_but_not_where_they_were_counted_apart() -> None:
    sizes = {"a": 5, "b": 2}
    merges = {"a": Merge("a", (0, 1, 1, 1, 1))}
    one_way, pair = np.array([700, 12, -3, 6, 0]), np.array([[350, 350], [10, 5]])
    record = transcript(sizes, [(("a",), one_way), (("a", "b"), pair)], merges=merges, variance=4)
    both = margent.query(released(record), ["b", "a"])
    assert both.measured
    assert both.labels == (("b0", "b1"), ("a0", "a1, a2, a3 or 1 more"))
    assert both.counts.shape == (2, 2)
    alone = margent.query(released(record), "a")
    assert alone.labels == (("a0", "a1", "a2", "a3", "a4"),)
    # The one-way is the only answer about single codes; the pair adds to the total.
    assert np.abs(alone.counts - one_way).max() < 2
    lone = transcript(sizes, [(("a", "b"), pair)], merges=merges, variance=4)
    assert margent.query(released(lone), "a").labels == (("a0", "a1, a2, a3 or 1 more"),)


def test_tables_with_a_merge_beside_its_column_tell_about_the_other_columns() -> None:
    sizes = {"a": 4, "b": 2, "c": 3}
    merges = {"a@half": Merge("a", (0, 0, 1, 1))}
    record = transcript(sizes, [(("b", "c"), np.full((2, 3), 10))], merges=merges)
    beside = replace(record.marginals[0], clique=("a@half", "b", "c"), counts=np.full((2, 2, 3), 5), merged=True)
    answer = margent.query(released(replace(record, answers=(beside,))), ["b", "c"])
    assert answer.measured
    np.testing.assert_allclose(answer.counts, 10.0)
    modelled = margent.query(released(replace(record, answers=(beside,))), ["a", "b"])
    assert not modelled.measured


SCHEMA = Schema(
    [
        Category("sex", ["F", "M"], required=True),
        Integer("age", 0, 99, bins={"width": 10}),
        Category("only", ["x"], required=True, unlisted={"to": "x"}),
        Identifier("id"),
    ],
    unit="row",
)
TABLE = pa.table({"sex": ["F", "M", "M", "F"] * 200, "age": [1, 20, 33, 99] * 200, "only": ["x"] * 800,
                  "id": [str(place) for place in range(800)]})  # fmt: skip


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("pure_epsilon", [False, True])
def test_every_methods_release_answers(method: object, pure_epsilon: bool) -> None:
    budget = pure(4) if pure_epsilon else Budget(epsilon=4)
    release = margent.synthesize(TABLE, SCHEMA, budget=budget, method=method.name)  # type: ignore[attr-defined]
    answer = margent.query(release, ["age", "only", "sex"])
    assert answer.counts.shape[1:] == (1, 3)
    assert answer.counts.sum() == pytest.approx(800, abs=150)
    assert answer.labels[1] == ("x",)
    assert margent.query(release, ["only"]).counts == pytest.approx([800], abs=150)


def test_persons_are_named_in_the_words() -> None:
    schema = Schema(SCHEMA.fields, unit=margent.PersonUnit("id", 2))
    answer = margent.query(margent.synthesize(TABLE, schema, budget=Budget(epsilon=4), method="priview"), "sex")
    assert "at most 2 of each person" in answer.words[0]
    assert answer.person_rows == 2


def test_wrong_columns_are_named_with_the_right_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    release = margent.synthesize(TABLE, SCHEMA, budget=Budget(epsilon=1), method="independent")
    with pytest.raises(UsageError, match=r"no column 'salary'; 'id' is not modeled .role identifier.; .*'sex', 'age'"):
        margent.query(release, ["salary", "id", "sex"])
    with pytest.raises(UsageError, match="'sex' is named twice"):
        margent.query(release, ["sex", "age", "sex"])
    with pytest.raises(UsageError, match="1 to 8 columns, not 0"):
        margent.query(release, [])
    monkeypatch.setattr(module, "MOST_CELLS", 20)
    with pytest.raises(PlanError, match=r"'age' .11 codes.* has 33 cells.*fewer columns"):
        margent.query(release, ["sex", "age"])


def test_a_pair_bought_beyond_its_margins_is_answered_with_bars_that_hold() -> None:
    """From one-ways of variance 4 and an interaction: unbiased, and the bars hold 95 % of 400 x 12 cells (5 deviations:
    92.5 to 97.5 %, cells of one draw counted as one)."""
    names, shape = ("a", "b"), (3, 4)
    pair = counts_of(REAL, SIZES, names)
    singles = [(name,) for name in names]
    rng = np.random.default_rng(8)
    held, errors = [], []
    for _ in range(400):
        answers = [
            NoisyMarginal(single, counts_of(REAL, SIZES, single) + np.rint(rng.normal(0, 6, SIZES[single[0]])), 36, 0)
            for single in singles
        ]
        noise = np.rint(rng.normal(0, 60, shape)).astype(np.int64)
        answers.append(NoisyMarginal(names, interaction_of(pair) + noise, Fraction(3600), 0, interaction=True))
        base = transcript(SIZES, [])
        answer = margent.query(released(replace(base, answers=tuple(answers))), names)
        assert answer.measured
        assert answer.sources == (names,)
        held.append(float((np.abs(answer.counts - pair) <= answer.errors).mean()))
        errors.append(answer.counts - pair)
    assert 0.925 < np.mean(held) < 0.975
    assert np.abs(np.mean(errors, axis=0)).max() < 5 * np.std(errors, axis=0).max() / 20
    # Three columns of which no two others were counted together are modeled, pairs beyond margins among the margins.
    three = margent.query(released(replace(base, answers=tuple(answers))), ("a", "b", "c"))
    assert not three.measured
    assert ("a", "b") in three.sources
