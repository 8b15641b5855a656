"""Plain SVG for the documentation's pictures: axes, lines, bars and text, in colors for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

STYLE = """
  svg { --page: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0; --panel: #f6f8fa;
        --blue: #0969da; --orange: #bc4c00; --green: #1a7f37; --violet: #8250df; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #0d1117; --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --panel: #161b22;
          --blue: #58a6ff; --orange: #f0883e; --green: #3fb950; --violet: #bc8cff; } }
  text { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
  .soft { fill: var(--soft); } .small { font-size: 12px; } .bold { font-weight: 600; }
"""


@dataclass
class Picture:
    """An SVG of fixed size; shapes are added in drawing order."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def add(self, part: str) -> None:
        self.parts.append(part)

    def text(self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = "", color: str = "") -> None:
        look = f' style="fill: var(--{color})"' if color else ""
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}"{look}>{escape(words)}</text>')

    def line(self, points: Sequence[tuple[float, float]], color: str, *, width: float = 2, dash: str = "") -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(
            f'<polyline points="{path}" fill="none" style="stroke: var(--{color})" stroke-width="{width}" '
            f'stroke-linejoin="round"{dashed}/>'
        )

    def dot(self, x: float, y: float, color: str, radius: float = 3.5, *, hollow: bool = False) -> None:
        fill = "page" if hollow else color
        self.add(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" stroke-width="2" '
            f'style="fill: var(--{fill}); stroke: var(--{color})"/>'
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, edge: str = "", round_: float = 0
    ) -> None:
        stroke = f"; stroke: var(--{edge})" if edge else ""
        self.add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_}" '
            f'style="fill: var(--{fill}){stroke}"/>'
        )

    def arrow(self, points: Sequence[tuple[float, float]], color: str = "soft") -> None:
        self.line(points, color, width=1.5)
        (x0, y0), (x1, y1) = points[-2], points[-1]
        angle = math.atan2(y1 - y0, x1 - x0)
        tips = [(x1 - 8 * math.cos(angle + turn), y1 - 8 * math.sin(angle + turn)) for turn in (0.45, -0.45)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(x1, y1), *tips])
        self.add(f'<polygon points="{path}" style="fill: var(--{color})"/>')

    def svg(self) -> str:
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img">\n<title>{escape(self.title)}</title>\n'
            f'<style>{STYLE}</style>\n<rect width="100%" height="100%" style="fill: var(--page)"/>\n{body}\n</svg>\n'
        )


@dataclass(frozen=True)
class Frame:
    """Axes inside a picture: ``x`` and ``y`` map values to places."""

    picture: Picture
    left: float
    top: float
    right: float
    bottom: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    log_x: bool = False
    log_y: bool = False

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * _share(value, self.x_range, self.log_x)

    def y(self, value: float) -> float:
        return self.bottom - (self.bottom - self.top) * _share(value, self.y_range, self.log_y)

    def axes(
        self,
        x_ticks: Sequence[float],
        y_ticks: Sequence[float],
        x_name: str,
        y_name: str,
        shown: Callable[[float], str] = "{:g}".format,
    ) -> None:
        for tick in y_ticks:
            self.picture.line([(self.left, self.y(tick)), (self.right, self.y(tick))], "line", width=1)
            self.picture.text(self.left - 8, self.y(tick) + 4, shown(tick), anchor="end", kind="soft small")
        for tick in x_ticks:
            self.picture.text(self.x(tick), self.bottom + 18, shown(tick), anchor="middle", kind="soft small")
        self.picture.line([(self.left, self.bottom), (self.right, self.bottom)], "soft", width=1)
        self.picture.text((self.left + self.right) / 2, self.bottom + 38, x_name, anchor="middle", kind="soft")
        self.picture.text(self.left - 44, self.top - 12, y_name, kind="soft")

    def curve(self, xs: Sequence[float], ys: Sequence[float], color: str, name: str, *, shift: float = 4) -> None:
        points = [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)]
        self.picture.line(points, color)
        for x, y in points:
            self.picture.dot(x, y, color, 2.5)
        self.picture.text(points[-1][0] + 9, points[-1][1] + shift, name, color=color, kind="bold")


def _share(value: float, span: tuple[float, float], log: bool) -> float:
    if log:
        return math.log(value / span[0]) / math.log(span[1] / span[0])
    return (value - span[0]) / (span[1] - span[0])
