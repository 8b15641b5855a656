"""Charts as inline SVG: a few paths each, colored by the page's own classes, sized by the page.

Every text goes through `escape`; numbers are formatted by us.
"""

# ruff: noqa: S704  (Markup is made here and nowhere else, of our own numbers and escaped texts)

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

LEVELS = 9
"""Shades of a heat map, from nothing to the largest."""
SERIES = 6
"""Colors of tables; further ones begin again."""


def overlay(real: Sequence[float], tables: Sequence[Sequence[float]], words: str) -> Markup:
    """Bars of the real shares, and a tick a table across each bar.

    Units: shares; the highest fills the chart.
    """
    top = max([1e-12, *real, *(value for each in tables for value in each)])
    step = 400 / max(len(real), 1)
    bars = "".join(
        f"M{_n(place * step + step * 0.08)} 100v{_n(-98 * value / top)}h{_n(step * 0.84)}V100z"
        for place, value in enumerate(real)
        if value > 0
    )
    ticks = [
        f'<path class="t{number % SERIES}" d="'
        + "".join(f"M{_n(place * step)} {_n(100 - 98 * value / top)}h{_n(step)}" for place, value in enumerate(each))
        + '"/>'
        for number, each in enumerate(tables)
    ]
    return Markup(
        f'<svg class="wide" viewBox="0 0 400 101" preserveAspectRatio="none" role="img" aria-label="{escape(words)}">'
        f'<path class="real" d="{bars}"/>{"".join(ticks)}</svg>'
    )


def triangle(cells: Sequence[tuple[int, int, float]], side: int, top: float, words: str) -> Markup:
    """A lower triangle of shaded squares, one a pair of columns (row, column, value).

    Units: any; ``top`` and above get the darkest shade.
    """
    paths: dict[int, list[str]] = {}
    for row, column, value in cells:
        paths.setdefault(shade(value, top), []).append(f"M{column} {row}h1v1h-1z")
    return _map(paths, "h", f"0 0 {side} {side}", words)


def signed(cells: Sequence[Sequence[float]], top: float, words: str) -> Markup:
    """A grid of squares, one color for too many and one for too few, the darker the more.

    Units: any; differences of ``top`` and above get the darkest shades.
    """
    paths: dict[int, list[str]] = {}
    for row, values in enumerate(cells):
        for column, value in enumerate(values):
            level = shade(abs(value), top)
            paths.setdefault(level if value >= 0 else -level, []).append(f"M{column} {row}h1v1h-1z")
    width = max((len(values) for values in cells), default=1)
    return _map(paths, "d", f"0 0 {width} {max(len(cells), 1)}", words)


def shade(value: float, top: float) -> int:
    """Which of the shades 0 .. `LEVELS` a value gets; 0 only for (nearly) nothing.

    >>> shade(0.0, 1.0), shade(0.01, 1.0), shade(0.5, 1.0), shade(2.0, 1.0)
    (0, 1, 5, 9)
    """
    if top <= 0 or value <= top * 1e-3:
        return 0
    return min(LEVELS, 1 + int(value / top * (LEVELS - 1)))


def scale(resample: float, independent: float, values: Sequence[float | None]) -> Markup:
    """A line from the resample's score (left mark) to the independent table's (right mark), and a dot a table.

    A dot at the left end cannot be told from another sample; one past the right end is worse than independence.
    """
    span = independent - resample
    dots = []
    for number, value in enumerate(values):
        if value is None or span == 0:
            continue
        place = 20 + 70 * min(max((value - resample) / span, -0.2), 1.35)
        dots.append(f'<circle class="c{number % SERIES}" cx="{_n(place)}" cy="8" r="4"/>')
    return Markup(
        '<svg class="scale" viewBox="0 0 120 16" aria-hidden="true"><path class="axis" d="M6 8H116M20 3V13M90 3V13"/>'
        f"{''.join(dots)}</svg>"
    )


def lines(
    series: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    ticks: Sequence[tuple[float, str]],
    words: str,
    *,
    labels: Sequence[str] = (),
) -> Markup:
    """One line a series, (class, points), over a horizontal axis with named ticks; the vertical axis begins at 0.

    Units: x in [0, 1], y any.
    """
    top = max([1e-12, *(y for _, points in series for _, y in points)])
    drawn = []
    for name, points in series:
        path = "M" + "L".join(f"{_n(54 + 336 * x)} {_n(150 - 140 * y / top)}" for x, y in points)
        drawn.append(f'<path class="line {name}" d="{path}"/>')
        drawn += [
            f'<circle class="dot {name}" cx="{_n(54 + 336 * x)}" cy="{_n(150 - 140 * y / top)}" r="2.5"/>'
            for x, y in points
        ]
    texts = [f'<text x="{_n(54 + 336 * x)}" y="166" text-anchor="middle">{escape(label)}</text>' for x, label in ticks]
    texts += [
        f'<text x="50" y="{_n(154 - 140 * share)}" text-anchor="end">{escape(label)}</text>'
        for share, label in zip((1.0, 0.5, 0.0), labels, strict=False)
    ]
    return Markup(
        f'<svg class="lines" viewBox="0 0 400 172" role="img" aria-label="{escape(words)}">'
        f'<path class="axis" d="M54 8V150H392M54 80H392M54 10H392"/>{"".join(drawn)}{"".join(texts)}</svg>'
    )


def bar(share: float, mark: float | None = None) -> Markup:
    """One horizontal bar in [0, 1], with an upright mark where there is something to compare it with."""
    upright = "" if mark is None else f'<path class="mark" d="M{_n(100 * min(max(mark, 0), 1))} 0V10"/>'
    return Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="real" d="M0 1H{_n(100 * min(max(share, 0), 1))}V9H0z"/>{upright}</svg>'
    )


def _map(paths: dict[int, list[str]], name: str, box: str, words: str) -> Markup:
    drawn = [
        f'<path class="{name}{"m" if level < 0 else ""}{abs(level)}" d="{"".join(parts)}"/>'
        for level, parts in sorted(paths.items())
    ]
    return Markup(
        f'<svg class="map" viewBox="{box}" preserveAspectRatio="none" shape-rendering="crispEdges" role="img" '
        f'aria-label="{escape(words)}">{"".join(drawn)}</svg>'
    )


def _n(value: float) -> str:
    text = f"{value:.1f}"
    return text.removesuffix(".0")
