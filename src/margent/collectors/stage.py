"""What one stage of a collector would buy, from public facts alone: the lines of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from margent.collectors.allocation import weight
from margent.privacy.budget import Budget
from margent.privacy.laws import Law
from margent.privacy.queries import SCORE_LATTICE, marginal_law
from margent.schema.domain import Domain
from margent.settings import LEAST_SHARE

SLIVER = Fraction(1, 10**6)
"""The least part of a stage's budget that any method gives to one of its tables, whatever noisy answers say."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A named part of the budget and the questions it buys.

    Units: ``share`` of the run's budget; ``questions`` tables or scores at most; ``largest`` and ``cells`` are
    the worst-case cells of one table and of all of them; ``law`` is the noise of a cell
    (or score) in records if everything that may be asked is asked, the largest where questions differ; None where
    nothing is asked. ``scores``: one number a table is answered, not its cells. ``columns``: the noise of
    each single column, where the stage asks for those or tells of them. ``total``: the variance, in records squared,
    of the number of records that the stage's answers tell; None where they are one-ways of ``columns``. ``parts``:
    noise may be drawn in so many parts of a record. ``looks``: how often the stage asks at most, ``new`` how many of
    these ask for tables that were not asked for before in the run.
    Privacy: none: a function of schema and options.
    """

    name: str
    share: Fraction
    questions: int
    largest: int
    cells: int
    law: Law | None
    note: str = ""
    scores: bool = False
    columns: tuple[tuple[str, Law], ...] = ()
    total: float | None = None
    parts: int = 1
    looks: int = 1
    new: int = 1


def score_stage(
    name: str,
    share: Fraction,
    cells: Sequence[int],
    law: Law,
    note: str,
    questions: int | None = None,
    looks: int = 1,
) -> Stage:
    """The stage that asks one number a table, of tables of so many ``cells``; ``questions`` where fewer are answered.

    Units: ``law`` in records. Privacy: none: public facts only.

    >>> from margent.privacy.laws import Laplace
    >>> stage = score_stage("dependence", Fraction(1, 20), [6, 10], Laplace(Fraction(2)), "")
    >>> stage.questions, stage.largest, stage.cells, stage.scores
    (2, 10, 16, True)
    """
    asked = len(cells) if questions is None else questions
    return Stage(name, share, asked, max(cells), sum(cells), law, note, scores=True, looks=looks)


def shares_leave_a_rest(*shares: Fraction) -> bool:
    """Whether parts of a budget are at least `LEAST_SHARE` and leave as much of it. Privacy: none.

    >>> shares_leave_a_rest(Fraction(1, 4), Fraction(1, 2)), shares_leave_a_rest(Fraction(1, 2), Fraction(1, 2))
    (True, False)
    """
    return min(shares) >= LEAST_SHARE and sum(shares) <= 1 - LEAST_SHARE


def widest_law(stage: Stage, budget: Budget) -> Law | None:
    """The widest noise that a stage could ever have to draw, in the unit it is drawn in; None where it draws none.

    How a stage's share is divided may follow from noisy answers. Its tables are at most ``questions`` and have at most
    ``largest`` cells, so that the least part of a division by c^(p/(p + 1)) is that of one cell among the largest
    tables; other divisions keep above `SLIVER`. Half of the smaller of the two is below either, rounded or not. Scores
    are drawn on a lattice finer than the records that a plan speaks of.

    Privacy: none: public facts only.
    """
    if stage.law is None or stage.questions == 0:
        return None
    if stage.scores:
        return stage.law.in_parts_of(max(SCORE_LATTICE.values()))
    power = budget.account.scale_power
    evenly = Fraction(weight(1, power), stage.questions * weight(max(stage.largest, 1), power))
    least = marginal_law(budget.total * stage.share * min(evenly, SLIVER) / 2, budget.neighbors, budget.account)
    # An interaction of c cells moves by less than c times its table, in parts of which c make a record.
    return max(stage.law, least, key=lambda law: law.scale_squared).in_parts_of(stage.parts)


def candidates_note(cells: Sequence[int], cap: int) -> str:
    """How many pairs are candidates and how many are over the cap (merging rare codes may bring some under it).

    Privacy: none: public facts only.

    >>> candidates_note([10, 2000], 1000)
    'one score a pair; candidates: 1 of 2 pairs, 1 is over the cap of 1,000 cells unless rare codes are merged'
    """
    over = sum(count > cap for count in cells)
    if not over:
        return f"one score a pair; candidates: all {len(cells):,} pairs, each under the cap of {cap:,} cells"
    return (
        f"one score a pair; candidates: {len(cells) - over:,} of {len(cells):,} pairs, {over:,} "
        f"{'is' if over == 1 else 'are'} over the cap of {cap:,} cells unless rare codes are merged"
    )


def coarsening_note(domain: Domain, above: int, cap: int) -> str:
    """How many pairs are candidates, and in which columns codes are counted together to make pairs affordable.

    Privacy: none: public facts only; which codes those are is read off noisy counts, during the run.

    >>> domain = Domain(("zip", "job", "sex"), (40_000, 400, 2))
    >>> for part in coarsening_note(domain, 300, 1_000_000).split("; "):
    ...     print(part)
    one score a pair
    candidates: all 3 pairs
    counted together in pairs: low codes of job (400), zip (40,000), and more until no table is over 1,000,000 cells
    """
    sizes = {name: domain.size(name) for name in domain.names if domain.size(name) > 1}
    pairs = list(combinations(sizes, 2))
    note = f"one score a pair; candidates: all {len(pairs):,} pairs"
    over = sum(sizes[one] * sizes[two] > cap for one, two in pairs)
    wide = sorted((size, name) for name, size in sizes.items() if size > above)
    if wide:
        shown = ", ".join(f"{name} ({size:,})" for size, name in wide[:5])
        more = f" and {len(wide) - 5:,} more columns" if len(wide) > 5 else ""
        note += f"; counted together in pairs: low codes of {shown}{more}"
    if not over:
        return f"{note}, each under the cap of {cap:,} cells" if not wide else note
    return f"{note}{', and more' if wide else '; codes are counted together'} until no table is over {cap:,} cells"
