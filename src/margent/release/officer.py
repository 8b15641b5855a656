"""The facts of a privacy officer's statement: two printable pages made from a release, for a person who signs.

Every figure comes from the release (and, for earlier releases, from the operator's budget file); no row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margent.privacy.budget import Budget
from margent.release.beliefs import BEFORE, Question, belief_after, belief_words, number, questions
from margent.release.promise import (
    purposes,
    what_a_row_is,
    what_epsilon_means,
    what_was_spent,
    who_is_protected,
)
from margent.report.pages import page
from margent.schema.fields import PersonUnit, Unit
from margent.transcript import Quantiles, Sizes, Transcript

QUESTIONS = (
    ("Definition", "What is the privacy unit?", "unit"),
    ("Definition", "What are the privacy parameters, and what do they mean?", "parameters"),
    ("Definition", "Which neighboring tables are protected against each other?", "relation"),
    ("Trust", "Who is trusted with the raw data?", "trust"),
    ("Mechanism", "Which mechanisms add the noise, and are they exact?", "mechanism"),
    ("Mechanism", "Where does the randomness come from?", "randomness"),
    ("Composition", "How are several answers, and several releases, added up?", "composition"),
    ("Data", "What was treated as public?", "public"),
    ("Data", "What happens to outliers, missing and malformed values?", "cells"),
    ("Utility", "How can a reader see how accurate the table is?", "utility"),
    ("Exposure", "What else could reveal rows: time, memory, evaluation?", "exposure"),
)
"""Questions that NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees) tells a buyer to ask."""

_MECHANISMS = {
    "discrete-gaussian": "Discrete Gaussian noise",
    "discrete-laplace": "Discrete Laplace noise",
    "exponential": "Exponential mechanism",
}


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What a run paid, by the operator's budget file; ``again`` for answers that an interruption lost.

    Units: ``epsilon`` and ``delta`` in all, as they were asked for.
    """

    when: str
    epsilon: Fraction
    delta: Fraction
    run: str
    again: bool


@dataclass(frozen=True, slots=True)
class Account:
    """What the operator's budget file says of the data set that a release belongs to."""

    data_set: str
    epsilon: Fraction
    delta: Fraction
    share_spent: float
    runs: int
    paid: Sequence[EarlierRun]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of the self test on the machine that printed the statement."""

    passed: bool
    lines: Sequence[str]


def statement(
    transcript: Transcript,
    budget: Budget,
    summary: dict[str, Any],
    *,
    account: Account | None = None,
    verdict: Verdict | None = None,
) -> str:
    """The statement as one self-contained HTML page that prints on two sheets.

    Privacy: a function of the release and, where given, of the operator's budget file: keep it out of a release
    folder then, since the file's other runs are no part of the promise.
    """
    epsilons = sorted({Fraction(1, 2), Fraction(1), budget.epsilon, 2 * budget.epsilon})
    return page(
        "statement.html",
        title=transcript.schema.name or "Synthetic table",
        summary=summary,
        protected=who_is_protected(transcript.schema, budget, transcript.selected),
        meaning=what_epsilon_means(transcript.schema.unit, budget),
        worlds="in one its row says one thing, in the other another"
        if budget.relation == "replace"
        else "in one it is in the table, in the other it is not",
        because="what its row said" if budget.relation == "replace" else "its having taken part",
        spent=what_was_spent(transcript, budget),
        provenance=transcript.schema.provenance or "",
        epsilons=[number(epsilon) for epsilon in epsilons],
        own=number(budget.epsilon),
        exact=budget.delta == 0,
        beliefs=[
            (_heading(asked, transcript.schema.unit), _beliefs(asked, epsilons))
            for asked in questions(transcript.schema.unit, budget)
        ],
        purposes=[(each, float(each.cost / budget.total)) for each in purposes(transcript)],
        questions=_questions(transcript, budget, bool(summary.get("where"))),
        account=account,
        number=number,
        verdict=verdict,
    )


def _heading(asked: Question, unit: Unit) -> str:
    """A question as a heading, with what its reader knows beforehand."""
    if asked.steps == 1:
        return asked.words
    return (
        f"{asked.words}, to a reader who knows that {'they were' if isinstance(unit, PersonUnit) else 'it was'} in it"
    )


def _beliefs(asked: Question, epsilons: Sequence[Fraction]) -> list[tuple[str, list[str]]]:
    """Beliefs before, and at most after a release, by epsilon."""
    return [
        (belief_words(before), [belief_words(belief_after(before, asked.steps * epsilon)) for epsilon in epsilons])
        for before in BEFORE
    ]


def _bought(transcript: Transcript) -> str:
    """Which of the schema's facts came from the table after all, through noisy answers; empty where none did."""
    parts = [
        (f"the bins of {answer.column!r}" if isinstance(answer, Quantiles) else f"the values of {answer.column!r}")
        for answer in transcript.bought
        if not isinstance(answer, Sizes)
    ]
    if not parts:
        return ""
    told = ""
    if transcript.delta_spent:
        told = (
            " A value is told where its noisy count reached a threshold, so high that the chance to tell any of those "
            f"that one unit alone held was at most {number(transcript.delta_spent)}."
        )
    return f" But {', '.join(parts)} were found from the table through noisy answers, which are charged.{told}"


def _questions(transcript: Transcript, budget: Budget, part: bool) -> list[tuple[str, str, str]]:
    """The questions of SP 800-226 with this release's answers; ``part``: of its records only those under conditions."""
    laws = sorted({_MECHANISMS[charge.mechanism] for charge in transcript.charges})
    unit = transcript.schema.unit
    said = {
        "unit": f"One person, named by the column {unit.field!r}."
        if isinstance(unit, PersonUnit)
        else "One row of the table. Where a person has several rows, each row is protected, not the person.",
        "parameters": f"Epsilon {number(budget.epsilon)}, delta {number(budget.delta)}: the table of beliefs above.",
        "relation": {
            "add-remove": "Tables that differ by one unit more or less; the number of records is protected too.",
            "replace": "Tables that differ in what one unit said, and with it in whether it was among the rows that "
            "were chosen. How many there were to choose from is public; how many were chosen is not."
            if transcript.selected
            else "Tables that differ in what one unit said; the number of records is public.",
        }[budget.relation],
        "trust": "The operator, and the machines that held the table or ran Margent, with what else runs on them (the "
        "central model). No reader of the release.",
        "mechanism": f"{' and '.join(laws)}: exact draws in whole numbers, no rounding of real numbers. "
        "Proofs come with the program's source.",
        "randomness": "The operating system, through AES-256 in counter mode. The published seed governs sampling of "
        "rows from noisy answers only.",
        "composition": f"By the {budget.accountant} account, every charge written before the look at the data that "
        "it pays for; releases under one budget file add up to its cap at most.",
        "public": "The schema: names, types, categories, bounds and bins; its author answers for where they come from."
        + (" So is the number of records." if budget.relation == "replace" and not transcript.selected else "")
        + _bought(transcript),
        "cells": "Out of bounds: counted in the nearest bin. Missing: a value of its own. Malformed or unlisted: "
        "counted where the schema says, else as missing; in a column that has no missing cells, as a value that no row "
        "is written with. None can stop a run or change its shape, unless a query, or a column that a database "
        "computes as it is read, fails on it.",
        "utility": (
            "Not on release.html: the table holds only some of the records, and the noisy answers tell of all"
            if part
            else "release.html holds the synthetic table against the noisy answers about single columns and the pairs "
            "that differ most, with their errors"
        )
        + "; all answers are in measurements/. What is computed from the real "
        "rows is marked INTERNAL and is no part of the release.",
        "exposure": "Running time and memory depend on the rows and are not published. Choosing among releases by "
        "comparing them with the real table is outside the promise.",
    }  # fmt: skip
    said["unit"] = " ".join([said["unit"], *what_a_row_is(transcript)])
    return [(topic, question, said[key]) for topic, question, key in QUESTIONS]
