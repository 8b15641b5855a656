"""What a release says of beliefs is true of the noise that is drawn, and no figure of it is rounded in its favor."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from margent import Budget, PersonUnit
from margent.privacy.neighbors import Relation
from margent.release.beliefs import (
    belief_after,
    belief_words,
    chance_of_any,
    chance_of_more,
    chance_words,
    factor_words,
    number,
    questions,
)
from margent.release.promise import what_epsilon_means
from tests.docs.stage import ROOT

BUDGETS = [
    Budget(epsilon, delta, accountant)
    for epsilon, delta, accountant in (
        ("0.2", "1e-9", "gdp"),
        (1, "1e-9", "gdp"),
        (5, "1e-9", "gdp"),
        (1, "1e-5", "gdp"),
        (1, "1e-9", "zcdp"),
        (5, "1e-5", "zcdp"),
    )
]


def chance_in_truth(budget: Budget, shift: int) -> float:
    """Pr[|loss| > shift epsilon] where all of the budget buys one count, which differs by ``shift`` in the two tables.

    The loss at x is (2 shift x + shift^2) / (2 s^2) with x the noise: summed over the law.
    """
    scale_squared = float(budget.account.gaussian_scale(Fraction(1), budget.total))
    reach = range(-math.ceil(60 * scale_squared**0.5), math.ceil(60 * scale_squared**0.5) + 1)
    weights = [math.exp(-x * x / (2 * scale_squared)) for x in reach]
    bound = shift * float(budget.epsilon)
    beyond = [
        weight
        for x, weight in zip(reach, weights, strict=True)
        if abs(2 * shift * x + shift**2) / (2 * scale_squared) > bound
    ]
    return math.fsum(beyond) / math.fsum(weights)


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: f"{budget.epsilon} {budget.delta} {budget.accountant}")
@pytest.mark.parametrize("steps", [1, 2])
def test_the_stated_chance_is_above_the_true_one_and_not_far(budget: Budget, steps: int) -> None:
    """Not far: of the normal law that many charges together come near to. One count's noise has a coarse law at large
    epsilon, and the zCDP account knows less."""
    stated = chance_of_more(budget, steps)
    assert chance_in_truth(budget, steps) < stated
    mu = steps * math.sqrt(2 * float(budget.total))
    middle = steps * float(budget.epsilon) / mu
    normal = float(stats.norm.sf(middle - mu / 2) + stats.norm.sf(middle + mu / 2))
    assert budget.accountant != "gdp" or normal < stated < 5 * normal


def test_delta_is_not_that_chance() -> None:
    """The words that stood here once, "except with probability delta", were false by a factor above 30."""
    assert chance_in_truth(Budget(1), 1) > 30e-9


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: f"{budget.epsilon} {budget.delta} {budget.accountant}")
def test_one_figure_covers_every_factor_that_stands_beside_it(budget: Budget) -> None:
    """Two questions, one of each kind, are passed as often as either: the sum, and not the larger one."""
    either = chance_of_more(budget, 1) + chance_of_more(budget, 2)
    assert either <= chance_of_any(budget, questions("row", budget)) < either * (1 + 1e-9)
    said = what_epsilon_means("row", budget)
    assert "For one question of each kind, fixed beforehand, a release that lets them change more is made" in said
    assert f"with a probability of at most {chance_words(either)}. " in said
    replaced = Budget(budget.epsilon, budget.delta, budget.accountant, "replace")
    said = what_epsilon_means("row", replaced)
    assert "For any one question fixed beforehand, a release that lets them change more is made" in said
    assert f"with a probability of at most {chance_words(chance_of_more(replaced, 1))}. " in said


def test_a_question_found_in_the_release_has_no_such_figure() -> None:
    """Of the rows of a table, each in a cell of its own, a reader takes the one whose noise fell out worst."""
    some = -math.expm1(20_000 * math.log1p(-chance_in_truth(Budget(1), 1)))
    assert some > 1000 * chance_of_any(Budget(1), questions("row", Budget(1)))


@pytest.mark.parametrize("weights", [(0.5, 0.5), (0.999, 0.001)])
@pytest.mark.parametrize("budget", BUDGETS[:4], ids=lambda budget: f"{budget.epsilon} {budget.delta}")
def test_what_a_question_leaves_open_needs_no_weights(budget: Budget, weights: tuple[float, float]) -> None:
    """Was the row there, saying a or b? Its odds rise as seldom whichever it said, however unlikely that seemed."""
    scale_squared = float(budget.account.gaussian_scale(Fraction(1), budget.total))
    reach = np.arange(-math.ceil(12 * scale_squared**0.5), math.ceil(12 * scale_squared**0.5) + 1)
    law = np.exp(-(reach**2) / (2 * scale_squared))
    law /= law.sum()
    for truth in np.eye(2):
        losses = [(2 * (reach + moved) - 1) / (2 * scale_squared) for moved in truth]
        odds = weights[0] * np.exp(losses[0])[:, None] + weights[1] * np.exp(losses[1])[None, :]
        more = float((np.outer(law, law) * (odds > math.exp(budget.epsilon))).sum())
        assert more < chance_of_more(budget)


@pytest.mark.parametrize("page", ["README.md", "docs/privacy-promise.md"])
def test_pages_state_the_figure_that_is_computed(page: str) -> None:
    """Once in so many million releases, at epsilon 1 and the default delta, rounded against the promise."""
    said = " ".join((ROOT / page).read_text().split())
    (sentence,) = [each for each in re.split(r"(?<=[a-z)])\. ", said) if re.search(r"once in [\d.]+ million", each)]
    assert "one question of each kind" in sentence
    (millions,) = re.findall(r"once in ([\d.]+) million", sentence)
    chance = chance_of_any(Budget(1), questions("row", Budget(1)))
    assert 0.9 < chance * float(millions) * 1e6 <= 1


def test_what_a_row_said_is_two_steps_away() -> None:
    """One marginal of two cells, all of a pure budget: a row that said the other thing moves both cells."""
    budget = Budget(1, accountant="pure")
    scale = float(budget.account.law(budget.total, Fraction(1), Fraction(1)).scale_squared) ** 0.5
    losses = [(abs(x) - abs(x + 1) + abs(y) - abs(y - 1)) / scale for x in range(-9, 9) for y in range(-9, 9)]
    assert max(losses) > 1.9 * float(budget.epsilon)
    assert max(losses) <= questions("row", budget)[1].steps * float(budget.epsilon)
    assert chance_of_more(budget, 2) == 0


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_sentence_names_what_is_protected(relation: Relation) -> None:
    said = what_epsilon_means("row", Budget(1, relation=relation))
    assert ("at most 7.39 on what it said" in said) == (relation == "add-remove")
    assert ("2.72 on what it said" in said) == (relation == "replace")
    assert ("whether it was in the table" in said) == (relation == "add-remove")
    assert "(1, 1e-09)-differential privacy" in said
    assert "2.72 times as likely, and 1e-09 more," in said


def test_a_person_and_a_pure_budget_are_told_so() -> None:
    said = what_epsilon_means(PersonUnit("id", 4), Budget(1, accountant="pure"))
    assert "on whether they were in the table, and at most 7.39 on what all of their rows said" in said
    assert "No release lets them change more" in said
    assert "e-09" not in said


def test_atoms_count_in_full() -> None:
    plain, atoms = Budget(1, "1e-9"), Budget(1, "2e-9", delta_for_atoms="1e-9")
    assert chance_of_more(atoms) > chance_of_more(plain) + 1e-9
    assert chance_of_more(atoms, 2) > chance_of_more(plain, 2)


@given(st.fractions(Fraction(1, 10**6), 13))
def test_factors_are_rounded_up(epsilon: Fraction) -> None:
    said = float(factor_words(epsilon).replace(",", ""))
    assert math.exp(epsilon) <= said <= 1.011 * math.exp(epsilon)


@given(st.floats(1e-6, 0.999))
def test_beliefs_are_rounded_up(share: float) -> None:
    said = float(belief_words(share).removesuffix(" %")) / 100
    assert share <= said * (1 + 1e-9)
    assert said <= 1.11 * share


@given(st.floats(1e-300, 1))
def test_chances_are_rounded_up(chance: float) -> None:
    assert chance <= float(chance_words(chance)) * (1 + 1e-9)
    assert float(chance_words(chance)) <= 1.11 * chance


@given(st.fractions(Fraction(1, 10**12), 10**4))
def test_numbers_are_rounded_up(value: Fraction) -> None:
    said = Fraction(Decimal(number(value)))
    assert value <= said <= value * (1 + Fraction(1, 10**4))


def test_beliefs() -> None:
    assert belief_after(Fraction(1, 2), Fraction(10**6)) == 1
    assert belief_after(Fraction(1, 100), Fraction(1)) == pytest.approx(0.0267, abs=5e-5)
    assert [belief_words(share) for share in (0.01, 0.5, 0.731, 0.996, 0.9999)] == [
        "1 %", "50 %", "74 %", "99.6 %", "above 99.9 %",
    ]  # fmt: skip
    assert re.fullmatch(r"e\^20 \(above 400,000\)", factor_words(Fraction(20)))
