"""The pictures and tables of "Choosing epsilon, delta, bins and the unit", from formulas and measured figures.

    python docs/extensions/choosing.py     writes the tables of the pages again, after bench/choosing.py

The build draws the pictures each time, the same bytes from the same figures; a test holds page and figures together.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE.parent / "bench"), str(HERE.parent / "src")]

from drawing import Frame, Picture  # noqa: E402

PAGE = HERE / "choosing.md"
PICTURES = HERE / "assets" / "pictures"
MEASURED = HERE / "assets" / "measured"
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
BEFORE = (0.01, 0.1, 0.5)
SHARES = ((1.0, "all of it", "blue"), (0.1, "a tenth of it", "green"), (0.01, "a hundredth of it", "orange"))
COLORS = ("blue", "green", "orange")
COUNTED = ("single columns", "pairs", "sets of three")
Row = list[str]
Line = tuple[str, str, list[tuple[float, float]]]


def whole(share: float) -> str:
    """A share as a whole percentage.

    >>> whole(0.25)
    '25%'
    """
    return f"{share:.0%}"


@dataclass(frozen=True)
class Axis:
    """One side of a picture."""

    name: str
    ticks: tuple[float, ...]
    log: bool = False
    shown: Callable[[float], str] = "{:g}".format


def belief(before: float, epsilon: float) -> float:
    """The most that a belief of having been in the table can become."""
    from margent.release.beliefs import belief_after

    return belief_after(Fraction(str(before)), Fraction(str(epsilon)))


def plus_minus(epsilon: float, share: float, delta: str = "1e-9", rows: int = 1) -> float:
    """Two standard deviations of the noise in one count, in records."""
    from margent import Budget

    budget = (
        Budget(epsilon=epsilon, delta=0, accountant="pure") if delta == "0" else Budget(epsilon=epsilon, delta=delta)
    )
    law = budget.account.law(
        budget.total * Fraction(share).limit_denominator(1000), Fraction(rows), Fraction(rows * rows)
    )
    return 2 * float(law.variance) ** 0.5


def records(value: float) -> str:
    """A number of records as people say it.

    >>> records(10.93), records(1093.2)
    ('11', '1,090')
    """
    digits = max(0, 2 - len(str(round(value)))) if value < 100 else 3 - len(str(round(value)))
    return f"{round(value, digits):,.0f}" if value >= 10 else f"{value:.1f}"


def measured(name: str) -> list[dict[str, str]]:
    """A file that bench/choosing.py wrote."""
    with (MEASURED / name).open() as file:
        return list(csv.DictReader(file))


def percent(text: str) -> str:
    """A share, as measured, in percent."""
    return f"{100 * float(text):.1f} %"


def belief_table() -> tuple[Row, list[Row]]:
    """Belief after, by belief before and epsilon; rounded up, as the statement does."""
    from margent.release.beliefs import belief_words

    rows = [[f"{before:.0%}", *(belief_words(belief(before, each)) for each in EPSILONS)] for before in BEFORE]
    return ["thought likely before", *(f"epsilon {each:g}" for each in EPSILONS)], rows


def noise_table() -> tuple[Row, list[Row]]:
    """Noise of a count, by epsilon and share of the budget."""
    rows = [[f"{each:g}", *(f"± {records(plus_minus(each, share))}" for share, _, _ in SHARES)] for each in EPSILONS]
    return ["epsilon", *(f"a table on which {name} is spent" for _, name, _ in SHARES)], rows


def _one_in(chance: float) -> str:
    """A small chance as people say it, rounded against us: to two digits.

    >>> _one_in(1.6e-7)
    'by at most 1 release in 6,200,000'
    """
    times = math.floor(1 / chance)
    unit = 10 ** max(len(str(times)) - 2, 0)
    return f"by at most 1 release in {times // unit * unit:,}"


def delta_table() -> tuple[Row, list[Row]]:
    """Noise of a count at epsilon 1, and how often more is told than epsilon says on questions fixed beforehand."""
    from margent import Budget
    from margent.release.beliefs import chance_of_any, questions

    shown = [
        ("1e-6", "one in a million"),
        ("1e-9", "one in a thousand million (the default)"),
        ("1e-12", "one in a million million"),
    ]
    rows = []
    for delta, words in shown:
        chance = chance_of_any(Budget(1, delta), questions("row", Budget(1, delta)))
        rows.append([f"{delta} ({words})", f"± {records(plus_minus(1, 0.1, delta))}", _one_in(chance)])
    rows.append(["0 (`--accountant pure`)", f"± {records(plus_minus(1, 0.1, '0'))}", "never"])
    return ["delta at epsilon 1", "a count in a table on which a tenth is spent", "a belief is moved further"], rows


def error_table() -> tuple[Row, list[Row]]:
    """Measured error by epsilon."""
    table = measured("epsilon.csv")
    by = {(each["epsilon"], each["columns"]): each for each in table}
    rows = [
        [epsilon, *(percent(by[epsilon, columns]["margent"]) for columns in "123")]
        for epsilon in dict.fromkeys(each["epsilon"] for each in table)
    ]
    for name, words in (("resample", "another sample of the same people"), ("independent", "no dependence at all")):
        rows.append([words, *(percent(by[table[0]["epsilon"], columns][name]) for columns in "123")])
    return ["epsilon", *COUNTED], rows


def bins_table() -> tuple[Row, list[Row]]:
    """Measured error by number of bins."""
    table = measured("bins.csv")
    by = {(each["bins"], each["epsilon"]): each["error"] for each in table}
    rows = [
        [bins, f"{60 / int(bins):g}", by[bins, "0.2"], by[bins, "1"]]
        for bins in dict.fromkeys(each["bins"] for each in table)
    ]
    return ["bins", "width of one", "error at epsilon 0.2", "error at epsilon 1"], rows


def rows_table() -> tuple[Row, list[Row]]:
    """Measured error by maxRows."""
    table = measured("max-rows.csv")
    rows = [
        [
            each["maxRows"],
            percent(each["rows counted"]),
            f"× {each['maxRows']}",
            percent(each["tvd1"]),
            percent(each["tvd2"]),
        ]
        for each in table
    ]
    return ["maxRows", "rows counted", "noise", "error of single columns", "error of pairs"], rows


def curves(
    title: str,
    axes: tuple[Axis, Axis],
    lines: Sequence[Line],
    flat: Sequence[tuple[str, float]] = (),
) -> Picture:
    """A picture of a few curves; ``flat`` are dashed levels to compare with."""
    picture = Picture(720, 340, title)
    x_axis, y_axis = axes
    spans = [(axis.ticks[0], axis.ticks[-1]) for axis in axes]
    frame = Frame(picture, 70, 50, 540, 280, spans[0], spans[1], log_x=x_axis.log, log_y=y_axis.log)
    frame.axes(x_axis.ticks, y_axis.ticks, x_axis.name, y_axis.name, y_axis.shown)
    ends = []
    for words, color, points in lines:
        for x, y in points:
            if len(points) < 20 or x in EPSILONS:
                picture.dot(frame.x(x), frame.y(y), color, 2.5)
        picture.line([(frame.x(x), frame.y(y)) for x, y in points], color)
        ends.append((frame.y(points[-1][1]), words, color))
    for words, level in flat:
        picture.line([(frame.left, frame.y(level)), (frame.right, frame.y(level))], "soft", width=1.5, dash="6 4")
        ends.append((frame.y(level), words, "soft"))
    below = -math.inf
    for y, words, color in sorted(ends):
        below = max(y, below + 16)
        picture.text(frame.right + 9, below + 4, words, color=color, kind="bold" if color != "soft" else "")
    return picture


def pictures() -> Iterator[tuple[str, Picture]]:
    """Every picture of the pages, by file name."""
    by_epsilon = Axis("epsilon", (0.1, 0.2, 0.5, 1, 2, 5), log=True)
    fine = [each / 10 for each in range(51)]
    yield (
        "belief",
        curves(
            "How far a release can move the belief that somebody was in the table, by epsilon",
            (Axis("epsilon", (0, 1, 2, 3, 4, 5)), Axis("belief after, at most", (0, 0.25, 0.5, 0.75, 1), shown=whole)),
            [
                (f"{before:.0%} before", color, [(each, belief(before, each)) for each in fine])
                for before, color in zip(BEFORE, COLORS, strict=True)
            ],
        ),
    )
    yield (
        "noise",
        curves(
            "Noise of one count, by epsilon and share of the budget",
            (by_epsilon, Axis("± records in one count (two standard deviations)", (1, 10, 100, 1000), log=True)),
            [(words, color, [(each, plus_minus(each, share)) for each in EPSILONS]) for share, words, color in SHARES],
        ),
    )
    table = measured("epsilon.csv")
    (pair,) = [each for each in table if each["columns"] == "2" and each["epsilon"] == "1"]
    yield (
        "error",
        curves(
            "Measured error of the tutorial's table, by epsilon",
            (
                by_epsilon,
                Axis("rows that would have to move for the tables to agree", (0, 0.02, 0.04, 0.06, 0.08), shown=whole),
            ),
            [
                (words, color, _points(table, "columns", columns, "epsilon", "margent"))
                for words, color, columns in zip(COUNTED, COLORS, "123", strict=True)
            ],
            [("pairs, another sample", float(pair["resample"])), ("pairs, independent", float(pair["independent"]))],
        ),
    )
    table = measured("bins.csv")
    most = math.ceil(max(float(each["error"]) for each in table) * 5) / 5
    yield (
        "bins",
        curves(
            "Measured error of one column within groups, by its number of bins",
            (
                Axis("bins", tuple(dict.fromkeys(float(each["bins"]) for each in table)), log=True),
                Axis("error, in units of the column (0 to 60)", tuple(round(most * step / 4, 3) for step in range(5))),
            ),
            [
                (f"epsilon {epsilon}", color, _points(table, "epsilon", epsilon, "bins", "error"))
                for epsilon, color in (("0.2", "orange"), ("1", "blue"))
            ],
        ),
    )


def _points(table: list[dict[str, str]], key: str, value: str, x: str, y: str) -> list[tuple[float, float]]:
    return [(float(each[x]), float(each[y])) for each in table if each[key] == value]


TABLES = {
    "belief": belief_table,
    "noise": noise_table,
    "delta": delta_table,
    "error": error_table,
    "bins": bins_table,
    "max-rows": rows_table,
}


def markdown(head: Row, rows: list[Row]) -> str:
    """A table as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def with_tables(page: str) -> str:
    """The page with every table between its two comments made anew."""

    def turned(match: re.Match[str]) -> str:
        return f"<!-- figures: {match[1]} -->\n\n{markdown(*TABLES[match[1]]())}\n\n<!-- end -->"

    return re.sub(r"<!-- figures: (\S+) -->\n.*?<!-- end -->", turned, page, flags=re.DOTALL)


def drawn() -> None:
    """Write the pictures, leaving alone those that stand there already."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures():
        file, text = PICTURES / f"{name}.svg", picture.svg()
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx's entry."""
    app.connect("config-inited", lambda app, config: drawn())
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    drawn()
    for page in (PAGE, HERE / "one-row-per-patient.md"):
        page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
