"""Names that try something: markup, SQL, formulas, terminal escapes, reversed text, paths, formats; from a seed."""

from __future__ import annotations

from itertools import islice

import numpy as np

MARKUP = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</title></style><svg/onload=alert(1)>", "' onx='1",
    "]]><!--", "&lt;b&gt;", "{{ 7*7 }}", "{% raw %}", "javascript:alert(1)//", "</td></table><iframe src=//x>",
    "`${1}`",
)  # fmt: skip
SQL = (
    "'; DROP TABLE entries; --", '" OR 1=1 --', "x'); DELETE FROM entries; --", "(select content from read_text('/x'))",
    "[entries]", ";ATTACH DATABASE 'x' AS y", "entries UNION SELECT 1,2,3,4", "?1", ":name", "\\'",
)  # fmt: skip
FORMULAS = (
    "=1+1", "=cmd|' /C calc'!A0", "+SUM(A1:A9)", "-2+3+cmd|'x'!A0", "@SUM(1)", "\t=1", "\r=1", "＝1+1",
    '=HYPERLINK("x")',
)  # fmt: skip
TERMINAL = (
    "\x1b[2J", "\x1b]0;title\x07", "\x1b[31mred", "\x9b31m", "\x08\x08\x08", "\r", "\nmargent: forged", "\x00", "\x7f",
    "\x1bPq\x1b\\", "\u2028", "\u2029", "\x85",
)  # fmt: skip
UNSEEN = ("\u202e", "\u202d", "\u2066", "\u2069", "\u200b", "\u200f", "\ufeff", "\u061c", "\U000e0041", "\u00ad")
PATHS = (
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\x",
    "..\\..",
    "~",
    "CON",
    "x/../y",
    "file:///x",
    "%2e%2e%2f",
    "-rf",
    ".",
)
FORMATS = ("%s%n", "{0}", "{}", "%(x)s", "$(id)", "`id`", "${x}", "{self}", "[bold]", "\\u0041", "\\x1b", "%d" * 9)
QUOTES = ('"', "'", ",", ";", "\n", "\r\n", " ", '""', "\\", "漢", "é", "e\u0301", "0", "null", "NaN")
FAMILIES = (MARKUP, SQL, FORMULAS, TERMINAL, UNSEEN, PATHS, FORMATS, QUOTES)


def hostile_names(count: int, seed: int = 1) -> list[str]:
    """``count`` different names: every trick by itself, then one to three of any family together, with plain letters.

    None is empty or ends with a blank, since a reader of cells may take blanks off.
    """
    rng = np.random.default_rng(seed)
    alone = [trick for family in FAMILIES for trick in family]
    found = dict.fromkeys(name for name in alone if name == name.strip())

    while len(found) < count:
        parts = []
        for _ in range(int(rng.integers(1, 4))):
            family = FAMILIES[int(rng.integers(0, len(FAMILIES)))]
            parts.append(family[int(rng.integers(0, len(family)))])
        parts.insert(int(rng.integers(0, len(parts) + 1)), f"n{rng.integers(0, 10**6)}")
        name = "".join(parts)
        if name == name.strip():
            found[name] = None
    return list(islice(found, count))
