"""Every metric on counts against the plainest possible computation of the same thing."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margent.metrics import queries
from margent.metrics.classifiers import area_under_curve
from margent.metrics.copies import CopiedRows, row_words
from margent.metrics.dependence import ConditionalEntropy, Correlation
from margent.metrics.marginals import JTreeL2, MarginalDistance
from margent.metrics.missingness import Missingness
from margent.metrics.nist_density import KMarginal, KMarginalByGroup, NistDensity, capped_differences
from margent.metrics.nist_range import NistRange
from margent.metrics.pay_gap import PayGap, gini
from margent.metrics.pie_chart import PieChart, jensen_shannon, pie_rows
from margent.metrics.ranges import RangeQueries
from margent.metrics.study import FLAT_CELLS, Choices
from tests.metrics.made import column, random_rows, study, table

SIZES = (3, 2, 4)
COLUMNS = [column("a", 3), column("b", 2, ordinal=False), column("c", 4, missing=True)]
ROW = st.tuples(*(st.integers(0, size - 1) for size in SIZES))
ROWS = st.lists(ROW, min_size=1, max_size=30)


def shares(rows: list[tuple[int, ...]], places: tuple[int, ...]) -> Counter[tuple[int, ...]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        counts[tuple(row[place] for place in places)] += 1 / len(rows)  # type: ignore[assignment]
    return counts


def gaps(real: list[tuple[int, ...]], other: list[tuple[int, ...]], places: tuple[int, ...]) -> list[float]:
    one, two = shares(real, places), shares(other, places)
    return [one[cell] - two[cell] for cell in one | two]


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_distances_of_all_marginals(real: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    made = study(COLUMNS, real, other)
    l2 = {}
    for k in (1, 2, 3):
        cliques = list(itertools.combinations(range(3), k))
        l1 = float(np.mean([sum(map(abs, gaps(real, other, each))) for each in cliques]))
        l2[k] = float(np.mean([math.sqrt(sum(gap**2 for gap in gaps(real, other, each))) for each in cliques]))
        assert MarginalDistance(k, "l1").measure(made)[0].value == pytest.approx(l1, abs=1e-12)
        assert MarginalDistance(k, "tvd").measure(made)[0].value == pytest.approx(l1 / 2, abs=1e-12)
        assert MarginalDistance(k, "l2").measure(made)[0].value == pytest.approx(l2[k], abs=1e-12)
        if k == 2:
            assert KMarginal().measure(made)[0].value == pytest.approx(500 * (2 - l1), abs=1e-9)
        if k == 3:
            assert NistDensity().measure(made)[0].value == pytest.approx(1 - l1 / 2, abs=1e-12)
    assert JTreeL2().measure(made)[0].value == pytest.approx((l2[2] + l2[3]) / 2, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_conditional_entropy(real: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    def bits(rows: list[tuple[int, ...]], places: tuple[int, ...]) -> float:
        return -sum(share * math.log2(share) for share in shares(rows, places).values())

    pairs = list(itertools.permutations(range(3), 2))
    found = [abs((bits(real, (a, b)) - bits(real, (a,))) - (bits(other, (a, b)) - bits(other, (a,)))) for a, b in pairs]
    score = ConditionalEntropy().measure(study(COLUMNS, real, other))[0]
    assert score.value == pytest.approx(float(np.mean(found)), abs=1e-9)
    worst = score.details["worst"][0]
    a, b = "abc".index(worst["given"]), "abc".index(worst["column"])
    assert worst["real"] == pytest.approx(bits(real, (a, b)) - bits(real, (a,)), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_association_is_pearson_or_cramer(real: list[tuple[int, ...]]) -> None:
    from scipy.stats.contingency import association

    found = study(COLUMNS, real).summaries(2)
    by_pair = dict(zip(found.cliques, found.association[0].tolist(), strict=True))
    on_axis = [(row[0], row[2]) for row in real if row[2] < 3]
    x, y = np.array(on_axis, dtype=float).reshape(-1, 2).T
    defined = len(x) > 1 and x.std() > 0 and y.std() > 0
    assert by_pair["a", "c"] == pytest.approx(np.corrcoef(x, y)[0, 1] if defined else 0.0, abs=1e-9)
    counts = np.zeros((3, 2), dtype=int)
    for row in real:
        counts[row[0], row[1]] += 1
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    cramer = association(counts, method="cramer") if min(counts.shape) > 1 else 0.0
    assert by_pair["a", "b"] == pytest.approx(cramer, abs=1e-9)


def test_correlation_of_a_known_pair() -> None:
    both = [column("x", 2), column("y", 2)]
    score = Correlation().measure(study(both, [(0, 0), (1, 1)], [(0, 1), (1, 0)]))[0]
    assert score.value == pytest.approx(2.0)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(0, 2**32))
def test_queries_count_rows(rows: list[tuple[int, ...]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    asked = []
    for _ in range(130):  # more than two batches of 64
        places = rng.choice(3, int(rng.integers(0, 4)), replace=False).tolist()
        asked.append(queries.Query({place: rng.random(SIZES[place]) < 0.5 for place in places}))
    expected = [sum(all(mask[row[place]] for place, mask in query.masks.items()) for row in rows) for query in asked]
    assert queries.answers(table(rows, 3), asked).tolist() == expected


def test_masks_are_intervals_of_ordered_columns_and_have_the_asked_width() -> None:
    rng = np.random.default_rng(1)
    ordered, plain = column("o", 11, missing=True), column("p", 10, ordinal=False)
    for _ in range(200):
        places = np.flatnonzero(queries.interval(ordered, rng))
        assert (np.diff(places) == 1).all()
        assert places.max() < ordered.inner
        assert queries.covering(ordered, 0.3, rng, contiguous=True).sum() == 3
        assert queries.covering(plain, 0.3, rng, contiguous=False).sum() == 3
    assert queries.covering(plain, 0.001, rng, contiguous=False).sum() == 1


def test_relative_error_counts_from_ten_records() -> None:
    """By hand: every query of a one-column, one-code table counts all rows."""
    one = [column("x", 1)]
    made = study(one, [(0,)] * 4, [(0,)] * 8)
    for form in ("contiguous", "subset"):
        assert RangeQueries(form, "relative").measure(made)[0].value == 0.0  # type: ignore[arg-type]
    two = [column("x", 2, ordinal=False)]
    far = study(two, [(0,)] * 4, [(1,)] * 4)
    # Subset queries of 30 % of two codes hold one code: 4 records off, reckoned from ten.
    assert RangeQueries("subset", "relative").measure(far)[0].value == pytest.approx(0.4)
    assert RangeQueries("subset", "absolute").measure(far)[0].value == pytest.approx(1.0)


def test_log_error_of_rules_by_hand() -> None:
    one = [column("x", 2, ordinal=False)]
    made = study(one, [(0,)] * 100, [(0,)] * 50 + [(1,)] * 50)
    score = NistRange().measure(made)[0]
    # A rule holds code 0 alone (off by ln 2), both codes (right), or no real row (left out).
    assert score.value is not None
    rules = score.details["rules"]
    wrong = round(score.value**2 * rules / math.log(2) ** 2)
    assert score.value == pytest.approx(math.log(2) * math.sqrt(wrong / rules))
    assert 0 < wrong < rules < 300


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(0, 99))
def test_gini_is_the_mean_difference(counts: list[list[int]], seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 50, 3).astype(float)
    for row, found in zip(counts, gini(np.array(counts), values).tolist(), strict=True):
        people = np.repeat(values, row)
        if people.size == 0 or people.sum() == 0:
            assert math.isnan(found)
        else:
            apart = np.abs(people[:, None] - people).sum()
            assert found == pytest.approx(apart / (2 * people.size**2 * people.mean()), abs=1e-9)


def test_rank_of_places_by_pay_gap() -> None:
    columns = [column("place", 3), column("income", 5), column("sex", 2, ordinal=False)]
    real = [(p, income, sex) for p, gap in enumerate((0, 1, 2)) for income, sex in ((2 + gap, 0), (2, 1))]
    turned = [(2 - p, income, sex) for p, income, sex in real]
    choices = Choices(pay_gap=("place", "income", "sex"))
    same, reverse = PayGap("rank").measure(study(columns, real, real, turned, choices=choices))
    assert same.value == 0.0
    assert reverse.value == pytest.approx((2 + 0 + 2) / 3 / 2)
    assert [score.value for score in PayGap("gini").measure(study(columns, real, real, choices=choices))] == [0.0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 900), min_size=4, max_size=4), min_size=2, max_size=2),
    st.sampled_from(["each", "total"]),
)
def test_pie_rows_by_the_letter(counts: list[list[int]], rule: str) -> None:
    truth, other = counts
    found = pie_rows(np.array([truth], dtype=float), np.array([other], dtype=float), bias_rule=rule)  # type: ignore[arg-type]
    if not sum(truth) and not sum(other):
        assert found.size == 0
        return

    def shown(row: list[int]) -> list[float]:
        return [count / sum(row) if sum(row) and count >= 0.05 * sum(row) else 0.0 for count in row]

    p, q = shown(truth), shown(other)
    distance = float(jensen_shannon(np.array([p]) + 1e-9, np.array([q]) + 1e-9)[0])
    misleading = 0.2 * sum(t == 0 and d > 0 for t, d in zip(p, q, strict=True))
    each = sum(abs(t - o) for t, o in zip(truth, other, strict=True)) > 500
    off = each if rule == "each" else abs(sum(truth) - sum(other)) > 500
    expected = 1.0 if truth == other else min(1.0, max(0.0, 1 - distance - misleading - 0.25 * off))
    assert found[0] == pytest.approx(expected, abs=1e-9)


def test_pies_are_off_by_the_sum_of_their_slices_and_mislead_by_what_is_shown() -> None:
    """Four slices off by 300 each are off by 1,200, though none by 500; a slice of 4 % is not shown, one of 6 % is."""
    truth, other = np.array([[9_700.0] * 4]), np.array([[10_000.0, 9_400.0, 10_000.0, 9_400.0]])
    assert 0.7 < pie_rows(truth, other)[0] < 0.75
    assert pie_rows(truth, other, bias_rule="total")[0] > 0.95
    assert pie_rows(np.array([[96.0, 4.0]]), np.array([[94.0, 6.0]]))[0] < 1 - 0.2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), st.lists(st.floats(0.01, 1), min_size=4, max_size=4))
def test_jensen_shannon_is_scipys(first: list[float], second: list[float]) -> None:
    from scipy.spatial.distance import jensenshannon

    found = jensen_shannon(np.array([first]), np.array([second]))[0]
    assert found == pytest.approx(float(np.nan_to_num(jensenshannon(first, second, base=2))), abs=1e-6)


def test_pies_of_a_copy_are_right_and_of_a_shuffle_are_not() -> None:
    columns = [column("place", 4), column("kind", 4, ordinal=False)]
    rows = [(code, code) for code in range(4)] * 10
    turned = [(code, (code + 1) % 4) for code in range(4)] * 10
    copy, wrong = PieChart().measure(study(columns, rows, rows, turned))
    assert copy.value == 1.0
    assert wrong.value == 0.0


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS)
def test_capped_differences_of_groups(real: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    choices = Choices(group="b")
    score = KMarginalByGroup().measure(study(COLUMNS, real, other, choices=choices))[0]
    one, two = shares(real, (0, 1, 2)), shares(other, (0, 1, 2))
    expected = []
    for group in (0, 1):
        mass = sum(share for cell, share in one.items() if cell[1] == group)
        if mass:
            apart = sum(abs(one[cell] - two[cell]) for cell in one | two if cell[1] == group)
            expected.append(1000 * (1 - min(apart, mass) / mass))
    assert score.value == pytest.approx(float(np.mean(expected)), abs=1e-6)
    assert capped_differences(np.zeros((2, 2), dtype=int), np.ones((2, 2), dtype=int)).tolist() == [0.0, 0.0]


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_copied_rows(real: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    score = CopiedRows().measure(study(COLUMNS, real, other))[0]
    times = Counter(real)
    assert score.value == pytest.approx(sum(row in times for row in other) / len(other))
    assert score.details["ofUniqueRealRows"] == pytest.approx(sum(times[row] == 1 for row in other) / len(other))
    assert score.details["distinct"] == pytest.approx(len(set(other)) / len(other))


def test_row_words_tell_rows_apart_where_64_bits_do_not_hold_them() -> None:
    wide = [column(f"c{place}", 200, ordinal=False) for place in range(12)]
    rows = np.random.default_rng(3).integers(0, 200, (3000, 12))
    rows[1500:] = rows[:1500]
    rows[1500:, 11] = (rows[:1500, 11] + 1) % 200
    words = row_words(table(rows.tolist(), 12), wide)
    assert np.unique(words).size == len(np.unique(rows, axis=0))


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_missingness_patterns(real: list[tuple[int, ...]], other: list[tuple[int, ...]]) -> None:
    columns = [column("a", 3, missing=True), column("b", 2, missing=True), column("c", 4)]

    def patterns(rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return [(int(row[0] == 2), int(row[1] == 1)) for row in rows]

    expected = sum(map(abs, gaps(patterns(real), patterns(other), (0, 1)))) / 2
    assert Missingness().measure(study(columns, real, other))[0].value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_area_under_curve_counts_pairs(scored: list[tuple[int, bool]]) -> None:
    scores, labels = np.array([float(s) for s, _ in scored]), np.array([int(b) for _, b in scored])
    pairs = [(p, n) for p in scores[labels == 1] for n in scores[labels == 0]]
    expected = float(np.mean([(p > n) + 0.5 * (p == n) for p, n in pairs])) if pairs else None
    assert area_under_curve(scores, labels) == (None if expected is None else pytest.approx(expected))


def test_large_tables_are_counted_over_the_cells_that_occur() -> None:
    wide = [column(name, 200, ordinal=False) for name in "xyz"]
    real, other = random_rows((200, 200, 200), 500, 1), random_rows((200, 200, 200), 300, 2)
    assert FLAT_CELLS < 200**3
    found = study(wide, real, other).summaries(3)
    expected = sum(map(abs, gaps([tuple(r) for r in real], [tuple(r) for r in other], (0, 1, 2))))
    assert found.l1[0, 0] == pytest.approx(expected, abs=1e-12)


def test_cliques_are_all_or_a_seeded_choice() -> None:
    many = [column(f"c{place}", 2) for place in range(30)]
    made = study(many, random_rows([2] * 30, 10, 1), choices=Choices(pairs=50, triples=40))
    assert len(made.cliques(1)) == 30
    assert len(set(made.cliques(2))) == 50
    assert made.cliques(3) == made.cliques(3)
    assert all(list(each) == sorted(each, key=lambda name: made.place[name]) for each in made.cliques(3))
