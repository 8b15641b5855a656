"""Pages for everybody: headings in order, names for pictures, numbers beside them, a keyboard's way, and contrast."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margent
from margent import Budget, Category, Integer, Schema
from margent.internal.evaluation import evaluate
from margent.internal.inspection import inspect
from margent.internal.sweep import sweep
from margent.pipeline import synthesize
from margent.release.officer import statement
from margent.release.page import release_page
from margent.report.evaluation import evaluation_page
from margent.report.inspection import inspection_page
from margent.report.sweep import sweep_page

TEMPLATES = Path(margent.__file__).parent / "report" / "templates"
VOID = {
    "meta",
    "link",
    "br",
    "hr",
    "img",
    "input",
    "path",
    "rect",
    "line",
    "circle",
    "polyline",
    "wbr",
    "source",
    "col",
}
Attributes = Mapping[str, str | None]


class Reading(HTMLParser):
    """What somebody meets who reads a page by ear or walks it with a keyboard."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.headings: list[int] = []
        self.links: list[Attributes] = []
        self.ids: list[str] = []
        self.tags: dict[str, int] = {}
        self.open: list[tuple[str, Attributes]] = []
        self.pictures: list[str] = []
        self.heads = 0
        self.language = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag == "html":
            self.language = attributes.get("lang") or ""
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "a" and "href" in attributes:
            self.links.append(attributes)
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        if int(attributes.get("tabindex") or 0) > 0:
            self.faults.append(f"{tag} jumps the order of the keyboard")
        if tag == "img" and not (attributes.get("alt") or "").strip():
            self.faults.append(f"img {attributes.get('src')} has no words")
        if tag == "svg" and not self.hidden(attributes):
            self.picture(attributes)
        if tag == "th":
            self.heads += 1
            if attributes.get("scope") not in ("col", "row", "rowgroup"):
                self.faults.append("th without a scope")
        if "scroll" in (attributes.get("class") or "").split() and not (
            attributes.get("tabindex") == "0" and attributes.get("aria-label") and attributes.get("role")
        ):
            self.faults.append("a part that scrolls cannot be reached by the keyboard, or has no name")
        if tag not in VOID:
            self.open.append((tag, attributes))

    def hidden(self, attributes: Attributes) -> bool:
        """Whether the picture, or what it stands in, is for the eye alone."""
        if attributes.get("aria-hidden") == "true" or "display: none" in (attributes.get("style") or ""):
            return True
        named = ("button", "a", "label", "span", "div")
        return any(
            tag == "symbol" or each.get("aria-hidden") == "true" or (tag in named and each.get("aria-label"))
            for tag, each in self.open
        )

    def picture(self, attributes: Attributes) -> None:
        words = (attributes.get("aria-label") or "").strip()
        if attributes.get("role") != "img" or not words:
            self.faults.append(f"svg without role or words: {dict(attributes)}")
        self.pictures.append(words)

    def handle_endtag(self, tag: str) -> None:
        while self.open:
            if self.open.pop()[0] == tag:
                return


def read(page: str, *, theme: bool = False) -> Reading:
    """The page read, with all its faults; the site's ``theme`` has no element `main`, but a role."""
    reading = Reading()
    reading.feed(page)
    if reading.language != "en":
        reading.faults.append("no language")
    if reading.tags.get("title") is None or (reading.tags.get("main", 0) != 1 and not theme):
        reading.faults.append("no title, or not one main part")
    if reading.headings.count(1) != 1 or reading.headings[0] != 1:
        reading.faults.append(f"not one heading above all others: {reading.headings}")
    for one, other in zip(reading.headings, reading.headings[1:], strict=False):
        if other > one + 1:
            reading.faults.append(f"a heading of level {other} under one of level {one}")
    doubled = {each for each in reading.ids if reading.ids.count(each) > 1}
    if doubled:
        reading.faults.append(f"ids twice: {doubled}")
    first = reading.links[0].get("href", "") if reading.links else ""
    if not str(first).startswith("#") or str(first)[1:] not in reading.ids:
        reading.faults.append("the first link does not lead to the content")
    if reading.tags.get("table", 0) and reading.heads == 0:
        reading.faults.append("tables without heads")
    return reading


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """One of each, of a table with dependence, so that every section is there."""
    rng = np.random.default_rng(7)
    age = rng.integers(0, 100, 1500)
    table = pa.table(
        {"age": age, "sex": rng.choice(["F", "M"], 1500), "ill": np.where(rng.random(1500) < age / 150, "yes", "no")}
    )
    fields = [Integer("age", 0, 99, bins=10), Category("sex", ["F", "M"]), Category("ill", ["no", "yes"])]
    schema = Schema(fields, unit="row", name="people")
    release = synthesize(table, schema, budget=Budget(epsilon=8), seed=1)
    made = evaluate(table, {"one": release.table, "two": table}, schema, learning=False)
    swept = sweep(table, schema, epsilons=["1", "4"], methods=["independent"], on_public_data=True)
    return {
        "release": release_page(release.transcript, release.budget, release.summary, release.counts),
        "evaluation": evaluation_page(made.document),
        "inspection": inspection_page(inspect(table, schema).document),
        "sweep": sweep_page(swept.document),
        "statement": statement(release.transcript, release.budget, release.summary),
    }


NAMES = ["release", "evaluation", "inspection", "sweep", "statement"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_can_be_read_by_ear_and_walked_by_keyboard(name: str, pages: dict[str, str]) -> None:
    reading = read(pages[name])
    assert reading.faults == []
    assert reading.tags["table"] >= 1


def test_pictures_have_their_numbers_in_a_table(pages: dict[str, str]) -> None:
    page = pages["evaluation"]
    assert page.count("<summary>Numbers of ") == page.count('<svg class="wide"') == 3
    assert "<summary>Numbers: the 3 pairs with the largest error</summary>" in page
    widths = page[page.index("Range queries by width") : page.index("Learning<")]
    assert widths.count("<svg") == 1
    assert widths.count('<th scope="row">') >= 3
    assert pages["inspection"].count("<summary>Numbers of ") == pages["inspection"].count("<svg") == 3
    # In release pages each bar stands in a row of a table that has its numbers; sweeps have a table under each chart.
    for row in re.findall(r"<tr>.*?</tr>", pages["release"]):
        assert "<svg" not in row or row.count('class="number"') == 2
    assert pages["sweep"].count("<svg") == pages["sweep"].count("<table>")


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("<h4>deep</h4>", "a heading of level 4"),
        ("<svg><path/></svg>", "svg without role"),
        ('<img src="data:,">', "has no words"),
        ("<table><tr><th>x</th></tr></table>", "th without a scope"),
        ('<a href="#content" tabindex="3">x</a>', "jumps"),
        ('<div class="scroll">x</div>', "cannot be reached"),
        ('<p id="content">x</p>', "ids twice"),
    ],
)
def test_the_reader_is_not_blind(planted: str, fault: str, pages: dict[str, str]) -> None:
    spoiled = pages["statement"].replace("</main>", planted + "</main>")
    assert any(fault in each for each in read(spoiled).faults)


def luminance(color: str) -> float:
    """Relative luminance (WCAG 2.2) of #rrggbb."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Between 1 and 21.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mixed(color: str, paper: str, opacity: float) -> str:
    """What a color of some opacity looks like on paper."""
    parts = [
        round(opacity * int(color[place : place + 2], 16) + (1 - opacity) * int(paper[place : place + 2], 16))
        for place in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


def palettes() -> Iterator[tuple[str, dict[str, str]]]:
    """Every set of colors of the templates: light and dark."""
    for name in ("style.html", "release.html"):
        text = (TEMPLATES / name).read_text()
        blocks = re.findall(r":root \{([^}]*)\}", text)
        assert len(blocks) == 2
        for kind, block in zip(("light", "dark"), blocks, strict=True):
            yield f"{name} {kind}", dict(re.findall(r"--([\w]+): (#[0-9a-f]{6})", block))


PALETTES = dict(palettes())


@pytest.mark.parametrize("name", PALETTES)
def test_colors_can_be_told_apart(name: str) -> None:
    """WCAG 2.2 AA: 4.5 for text, 3 for what must be seen of a picture or a focus."""
    color = PALETTES[name]
    paper = color["paper"]
    assert contrast(color["ink"], paper) >= 7
    assert contrast(color["ink"], color["soft"]) >= 4.5
    assert contrast(mixed(color["ink"], paper, 0.8), paper) >= 4.5, "the ends of an axis"
    assert contrast(color["bar"], paper) >= 3
    assert contrast(color["mark"], paper) >= 3
    assert contrast(color["mark"], color["bar"]) >= 3, "a mark across its bar"
    for key, value in color.items():
        if re.fullmatch(r"s\d|alarm", key):
            assert contrast(value, paper) >= 4.5, key


def test_a_pale_palette_would_be_noticed() -> None:
    assert contrast("#9fb4cb", "#ffffff") < 3
    assert contrast("#777777", "#ffffff") < 4.5 < contrast("#767676", "#ffffff")


def test_what_differs_by_color_differs_otherwise_too(pages: dict[str, Any]) -> None:
    """Warm and cold cells are also named in words; lines of yardsticks are dotted and dashed."""
    assert re.search(r"most wrong: [^<]*(too many|too few)", pages["evaluation"])
    assert "stroke-dasharray: 2 3" in pages["evaluation"]
    assert "stroke-dasharray: 7 4" in pages["evaluation"]
