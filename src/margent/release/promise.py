"""What a release may say in words: who is protected, what was spent, what may be published, what to do next.

Built from schema, budget and charges alone, so the same sentences stand in the terminal, on the page and in
``summary.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from margent.privacy.budget import Budget
from margent.release.beliefs import chance_of_any, chance_words, factor_words, number, questions
from margent.schema.fields import PersonUnit, Schema, Unit
from margent.schema.formulas import formula_warnings
from margent.transcript import Transcript


def who_is_protected(schema: Schema, budget: Budget, selected: bool = False) -> str:
    """A few words naming the protected unit and the neighbor relation.

    ``selected``: a condition, a query or a policy chose the rows (`margent.transcript.Transcript.selected`). A row that
    is replaced may then come in or drop out, which is priced too: no registered sensitivity to a replacement is below
    that to one row more or less.

    Privacy: none: a function of schema and options.
    """
    unit = schema.unit
    if isinstance(unit, PersonUnit):
        rows = "1 row of each is" if unit.max_rows == 1 else f"{unit.max_rows} rows of each are"
        return (
            f"Protected: every person, as told apart by the column {unit.field!r}: whether they were in the table, and "
            f"what all of their rows said. At most {rows} counted, drawn at random; rows without an id are left out."
        )
    if budget.relation == "replace" and selected:
        return (
            "Protected: what every single row said, and with it whether it was among the rows that were chosen for "
            "this release. Not protected: how many rows there were to choose from, which counts as public; how many "
            "were chosen does not."
        )
    if budget.relation == "replace":
        return (
            "Protected: what every single row said. Not protected: how many rows the table has, which counts as public."
        )
    return "Protected: every single row: whether it was in the table, and what it said."


def promise_words(transcript: Transcript, budget: Budget, where: Sequence[str]) -> list[str]:
    """The whole promise, a sentence or two each: what ``summary.json`` says, and what a reader of it can work out anew.

    Privacy: none: a function of schema, options and charges.
    """
    return [
        who_is_protected(transcript.schema, budget, transcript.selected),
        *what_a_row_is(transcript),
        what_epsilon_means(transcript.schema.unit, budget),
        what_was_spent(transcript, budget),
        SINGLE_RELEASE,
        *what_was_asked_for(where),
    ]


FROM_QUERY = (
    "The table was the result of a query or view in a database, or of a table's row-level security, which its operator "
    "declared to be row-wise: each of its rows comes from one record, or from the records of one person. What is "
    "protected is a row (or a person) of this result; where the declaration is wrong, the promise says nothing about "
    "the records behind it."
)


def what_a_row_is(transcript: Transcript) -> list[str]:
    """Two sentences where the rows were those of a query, a view or row-level security; none where a table's.

    Privacy: none: an option; the query itself is not told.
    """
    return [FROM_QUERY] if transcript.from_query else []


def what_epsilon_means(unit: Unit, budget: Budget) -> str:
    """What (epsilon, delta) promises, as a change of odds, and how often that is passed on questions fixed beforehand.

    Privacy: none: options.
    Source: ``proofs/beliefs.md``.
    """
    one, others = ("person", "all other persons' rows") if isinstance(unit, PersonUnit) else ("row", "every other row")
    asked = questions(unit, budget)
    factors = ", and ".join(f"at most {factor_words(each.steps * budget.epsilon)} on {each.words}" for each in asked)
    chance = chance_of_any(budget, asked)
    fixed = "one question of each kind, fixed" if len(asked) > 1 else "any one question fixed"
    more = (
        "No release lets them change more"
        if chance == 0
        else f"For {fixed} beforehand, a release that lets them change more is made, by their own reckoning, with a "
        f"probability of at most {chance_words(chance)}"
    )
    added = "" if budget.delta == 0 else f", and {number(budget.delta)} more,"
    instead = "said something else" if budget.relation == "replace" else "not been in the table"
    return (
        f"A reader who knows {others} can change their odds about one {one} by a factor of {factors} (epsilon "
        f"{number(budget.epsilon)}). {more}. This is ({number(budget.epsilon)}, {number(budget.delta)})-differential "
        f"privacy: whatever anybody concludes is at most {factor_words(budget.epsilon)} times as likely{added} as it "
        f"would be had that {one} {instead}."
    )


def what_was_spent(transcript: Transcript, budget: Budget) -> str:
    """How much of the budget the charges took.

    Privacy: none: charges are public.
    """
    share, count = float(transcript.spent / budget.total), len(transcript.charges)
    return (
        f"Spent: {spelled(budget)} "
        f"({count} noisy answer{'s' * (count != 1)}, {100 * share:.2f} % of the budget in the "
        f"{budget.accountant} account; what is left over is gone).{_what_was_lost(transcript, budget)}"
    )


def _what_was_lost(transcript: Transcript, budget: Budget) -> str:
    """A further sentence where answers were charged and lost, and are counted with the others."""
    answered = {answer.charge for answer in transcript.answers}
    lost = [charge for place, charge in enumerate(transcript.charges) if place not in answered]
    if not lost:
        return ""
    share = 100 * float(sum((charge.cost for charge in lost), Fraction(0)) / budget.total)
    return (
        f" Of these an interruption lost {len(lost)}, {share:.2f} % of the budget: never used, spent all the same, and "
        "bought anew."
    )


@dataclass(frozen=True, slots=True)
class Purpose:
    """What one label's charges bought: so many charges, for so many tables, scores or choices, at this cost."""

    label: str
    charges: int
    answers: int
    cost: Fraction


def purposes(transcript: Transcript) -> list[Purpose]:
    """Charges summed by what they were for, in the order they were made.

    Privacy: none: charges are public.
    """
    by_label: dict[str, Purpose] = {}
    for charge in transcript.charges:
        answers = charge.choices if charge.mechanism == "exponential" else len(charge.cliques)
        so_far = by_label.get(charge.label, Purpose(charge.label, 0, 0, Fraction(0)))
        by_label[charge.label] = Purpose(
            charge.label, so_far.charges + 1, so_far.answers + answers, so_far.cost + charge.cost
        )
    return list(by_label.values())


def what_may_be_published(out: str) -> str:
    """Which files may be given away.

    Privacy: none.
    """
    return f"May be published: the folder {out}, whole. Nothing else: not the input, and no comparison with it."


def unlisted_warning(column: str, noisy_share: float) -> str:
    """What to do about a column with many cells that the schema does not list.

    Privacy: none: a noisy answer, which was paid for.
    """
    return (
        f"column {column!r}: about {100 * noisy_share:.0f} % of its cells (a noisy answer) are not in the schema's "
        f"list or cannot be read, and are left out of the synthetic table: check spelling, case and spaces of its "
        f"categories, its type and its format"
    )


def missing_warning(column: str, noisy_share: float) -> str:
    """What to do about a column whose cells are nearly all missing, or so it seems.

    Privacy: none: a noisy answer, which was paid for.
    """
    return (
        f"column {column!r}: about {100 * noisy_share:.0f} % of its cells (a noisy answer) are missing or could not "
        f"be read: if that is not so in your table, check how the schema spells its values (format of dates and "
        f"numbers, words of booleans, categories); `margent schema check` shows it"
    )


def crowded_warning(column: str, label: str, bins: int, noisy_share: float) -> str:
    """What to do about a column most of whose records are in one bin.

    Privacy: none: a noisy answer, which was paid for.
    """
    return (
        f"column {column!r}: about {100 * noisy_share:.0f} % of its cells (a noisy answer) are in one of its {bins} "
        f"bins, {label}, and what differs inside of it is not in the synthetic table: where that matters, give it "
        f'edges that lie close there ("bins": [0, 10, 100, ...]), or have them bought ("bins": {{"quantiles": 8}})'
    )


def what_was_asked_for(where: Sequence[str]) -> list[str]:
    """One sentence about a table that holds only records that meet conditions; none where there are no conditions.

    Privacy: none: public options.

    >>> what_was_asked_for(("sex=F", "age=30..39"))[0].split(":")[0]
    'This table holds only records with sex=F and age=30..39'
    """
    if not where:
        return []
    return [
        f"This table holds only records with {' and '.join(where)}: it is one part of the synthetic table, and its "
        "columns are not compared with the noisy answers, which tell of all records."
    ]


def schema_warnings(summary: Mapping[str, Any]) -> list[str]:
    """Everything in a release's summary that says the schema may not fit the table, or a spreadsheet may run it.

    Privacy: none: noisy answers and the schema.
    """
    unlisted = [unlisted_warning(entry["column"], entry["noisyShare"]) for entry in summary["unlisted"]]
    missing = [missing_warning(entry["column"], entry["noisyShare"]) for entry in summary["mostlyMissing"]]
    crowded = [
        crowded_warning(entry["column"], entry["bin"], entry["bins"], entry["noisyShare"])
        for entry in summary["crowded"]
    ]
    return unlisted + missing + crowded + formula_warnings(summary["formulas"])


def what_was_coarsened(summary: Mapping[str, Any]) -> str:
    """In which columns codes were counted together, and how many pairs had no table to hope for; empty where none.

    Privacy: none: read off noisy answers.

    >>> columns = [{"column": "zip", "codes": 50_000, "groups": 310}]
    >>> what_was_coarsened({"coarsened": columns, "pairsLeftOut": 2})
    'Rare codes were counted together in tables of several columns: zip (50,000 as 310). 2 pairs were no candidates.'
    """
    columns = summary["coarsened"]
    parts = []
    if columns:
        shown = ", ".join(f"{each['column']} ({each['codes']:,} as {each['groups']:,})" for each in columns[:5])
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        parts.append(f"Rare codes were counted together in tables of several columns: {shown}{more}.")
    left_out = summary["pairsLeftOut"] or 0
    if left_out:
        parts.append(f"{left_out:,} {'pair was no candidate' if left_out == 1 else 'pairs were no candidates'}.")
    return " ".join(parts)


SINGLE_RELEASE = (
    "Single release: this promise counts this release alone. A second run on the same people adds to what is known "
    "about them; whoever holds the table keeps count of that."
)
"""The same whether a budget file keeps that count or nobody does: a release tells nothing of either."""

IF_NOT_GOOD_ENOUGH = (
    "If the table is not good enough, cheapest first: "
    "(1) free: `margent resample` draws again, with other rows, seed or synthesizer, from the same noisy answers; "
    "(2) design: fewer or coarser columns in the schema give less noise per cell at the same epsilon; "
    "(3) budget: a larger epsilon, which weakens the promise. "
    "Steps 2 and 3 are new runs and spend again."
)


def spelled(budget: Budget) -> str:
    """The budget as a person reads it; a pure one has no delta to speak of.

    Privacy: none.

    >>> spelled(Budget(epsilon=1)), spelled(Budget(epsilon=1, accountant="pure"))
    ('epsilon 1, delta 1e-09', 'pure epsilon 1')
    """
    pure = budget.delta == 0
    return (
        f"pure epsilon {number(budget.epsilon)}"
        if pure
        else (f"epsilon {number(budget.epsilon)}, delta {number(budget.delta)}")
    )
