"""The comparison as Markdown, and its place in a page. Standard library only."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contenders import CONTENDERS

OPENS, CLOSES = "<!-- peers -->", "<!-- /peers -->"
SCORES = ("TVD1", "TVD2", "TVD3", "range")
Result = dict[str, Any]


def results_in(path: Path) -> list[Result]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def figure(value: float) -> str:
    """Three digits: .0034, .083, 2.6, 118."""
    if value == 0:
        return "0"
    if value < 1:
        places = 4 if value < 0.01 else 3
        return f"{value:.{places}f}".removeprefix("0")
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def table(results: Sequence[Result]) -> str:
    """A row a contender, the closest to the real pairs first, those without a table last; means over its draws."""
    scored, unscored = [], []
    for contender in CONTENDERS:
        made = [each for each in results if each["name"] == contender.name]
        if not made:
            continue
        version = "" if made[0].get("version") is None else f" {made[0]['version']}"
        package, _, method = contender.label.partition(",")
        label = f"{package}{version}{',' if method else ''}{method}"
        label = f"**{label}**" if contender.package == "margent" else label
        label = label if contender.private else f"*{label} (not private)*"
        good = [each for each in made if not each.get("failed")]
        if good:
            means = {score: statistics.fmean(each[score] for each in good) for score in (*SCORES, "invalid")}
            cells = [figure(means[score]) for score in SCORES] + [share(means["invalid"])]
            cells += ["", ""] if not contender.private else [spent(good, "cpu"), memory(good)]
            missing = len(made) - len(good)
            label += f" ({missing} of {len(made)} draws failed)" if missing else ""
            scored.append((means["TVD2"], f"| {label} | {' | '.join(cells)} |"))
        else:
            # What a package that failed says of itself is words, not cells.
            reason = made[0]["failed"].replace("|", "\\|").replace("\n", " ")
            spent_so_far = [spent(made, "cpu"), memory(made)] if made[0].get("cpu") else ["", ""]
            unscored.append(f"| {label}: {reason} | | | | | | {' | '.join(spent_so_far)} |")
    head = ["| package, method | TVD1 | TVD2 | TVD3 | range | invalid cells | CPU s | peak MB |", "|---|" + "--:|" * 7]
    return "\n".join([*head, *(row for _, row in sorted(scored)), *unscored])


def share(value: float) -> str:
    return "0" if value == 0 else f"{100 * value:.2g} %"


def spent(made: Sequence[Result], what: str) -> str:
    return figure(statistics.median(each[what] for each in made))


def memory(made: Sequence[Result]) -> str:
    return f"{statistics.median(each['memory'] for each in made) / 1e6:,.0f}"


def caption(results: Sequence[Result], facts: Result, title: str, limit: float) -> str:
    """What was measured, on what, when."""
    days = sorted({each["date"] for each in results})
    draws = len({each["draw"] for each in results})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    loads = [each["load"] for each in results]
    return (
        f"{title}: {facts['rows']:,} rows, {facts['columns']} columns, {facts['codes']:,} codes; epsilon "
        f"{results[0]['epsilon']}, delta {results[0]['delta']}, {'one draw' if draws == 1 else f'{draws} draws'} each, "
        f"at most {limit:g} s. Measured {when} with {results[0]['machine']}, under a load of {min(loads):.0f} to "
        f"{max(loads):.0f} from other work: compare CPU seconds, not clocks."
    )


def between_markers(page: str, text: str) -> str:
    """``page`` with ``text`` in the place of whatever stands between the two markers."""
    if page.count(OPENS) != 1 or page.count(CLOSES) != 1 or page.index(OPENS) > page.index(CLOSES):
        raise SystemExit(f"the page needs {OPENS} once and {CLOSES} once after it, with the table's place between them")
    before, after = page[: page.index(OPENS) + len(OPENS)], page[page.index(CLOSES) :]
    return f"{before}\n{text.strip()}\n{after}"


def latest(results: Iterable[Result], digest: str, epsilon: str, delta: str) -> list[Result]:
    """Results of this very table and budget; of a contender's draw that was run again, the last."""
    kept: dict[tuple[str, int], Result] = {}
    for each in results:
        if (each["digest"], each["epsilon"], each["delta"]) == (digest, epsilon, delta):
            kept[each["name"], each["draw"]] = each
    return list(kept.values())
