"""What one stage of a collector would buy, from public facts alone: the lines of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from margent.privacy.laws import Law


@dataclass(frozen=True, slots=True)
class Stage:
    """A named part of the budget and the questions it buys.

    Units: ``share`` of the run's budget; ``questions`` tables or scores at most; ``largest`` and ``cells`` are
    the worst-case cells of one table and of all of them; ``law`` is the noise of a cell
    (or score) in records if everything that may be asked is asked, the largest where questions differ; None where
    nothing is asked. ``scores``: one number a table is answered, not its cells. ``columns``: the noise of
    each single column, where the stage asks for those.
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
