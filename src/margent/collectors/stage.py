"""What one stage of a collector would buy, from public facts alone: the lines of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Stage:
    """A named part of the budget and the questions it buys.

    Units: ``share`` of the run's budget; ``questions`` tables or scores at most; ``largest`` and ``cells`` are
    the worst-case cells of one table and of all of them; ``scale_squared`` is the noise parameter s^2 of a cell
    (records squared) if everything that may be asked is asked, the largest where questions differ; None where
    nothing is asked. ``scores``: one number a table is answered, not its cells. ``columns``: the s^2 of each
    single column, where the stage asks for those.
    Privacy: none: a function of schema and options.
    """

    name: str
    share: Fraction
    questions: int
    largest: int
    cells: int
    scale_squared: Fraction | None
    note: str = ""
    scores: bool = False
    columns: tuple[tuple[str, Fraction], ...] = ()
