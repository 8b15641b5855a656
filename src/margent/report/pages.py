"""Templates to pages: everything is escaped, nothing is loaded."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import jinja2


def page(template: str, **facts: Any) -> str:
    """One self-contained HTML page: a template of this package filled with facts, every value escaped.

    Raises: jinja2.UndefinedError (a fault of this program) where a template uses a fact that is not given.
    """
    return environment().get_template(template).render(**facts)


@cache
def environment() -> jinja2.Environment:
    """What compiles the templates, each of them once."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("margent.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "figure": figure, "capped": capped, "count": lambda value: f"{value:,}"}
    return made


def percent(share: float) -> str:
    """A share as a percentage with the digits it needs.

    >>> percent(0.1234), percent(0.00004)
    ('12.3 %', '0.0040 %')
    """
    if share != 0 and abs(share) < 0.0005:
        digits = min(6, 1 - math.floor(math.log10(abs(share) * 100)))
        return f"{100 * share:.{max(digits, 1)}f} %"
    return f"{100 * share:.1f} %"


def capped(share: float) -> str:
    """A share that noise alone can carry beyond the whole: as a percentage up to 100.

    >>> capped(0.5), capped(10.246)
    ('50.0 %', 'over 100 %')
    """
    return "over 100 %" if share > 1 else percent(share)


def figure(value: float | None) -> str:
    """A score with three significant digits, as people write numbers.

    >>> figure(0.0345678), figure(983.21), figure(0.0), figure(None)
    ('0.0346', '983', '0', '–')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    digits = min(7, 2 - math.floor(math.log10(size)))
    return f"{value:.{max(digits, 0)}f}"
