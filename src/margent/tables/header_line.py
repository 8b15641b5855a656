"""The first record of a text file, which names its columns, parted from the rows behind it.

The grammar is that of the records, but a quoted name ends on the line on which it begins: otherwise a quote that is
never closed would make names of rows. Only a name that the schema has goes over several lines, as it does there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

_LINE_ENDS = "\r\n"


@dataclass(frozen=True)
class FirstRecord:
    """The names that a text begins with, one character a byte, and how many bytes there are up to the end of its line.

    ``fault`` says why it is no header: a name is "open" where its line ends, there are letters behind a name's closing
    quote ("behind"), or there is no name at all ("none"). ``names`` are then those up to there.

    Privacy: nothing behind the header is looked at, except to compare it with a name of the schema.
    """

    names: tuple[str, ...]
    length: int
    fault: Literal["", "open", "behind", "none"] = ""


def first_record(text: str, delimiter: str, quote: str | None, listed: Collection[str] = ()) -> FirstRecord:
    """The first record that is not empty; ``listed`` are the schema's names, all with one character a byte.

    Privacy: as `FirstRecord`.

    >>> first_record('a,"b, c"' + chr(10) + "1,2", ",", '"').names
    ('a', 'b, c')
    >>> first_record('a,"b, c' + chr(10) + '1,"2"', ",", '"')
    FirstRecord(names=('a', 'b, c'), length=7, fault='open')
    """
    place = sum(1 for _ in takewhile(lambda letter: letter in _LINE_ENDS, text))
    if place == len(text):
        return FirstRecord((), place, "none")
    ends = re.compile(f"[{re.escape(delimiter)}\r\n]")
    names: list[str] = []
    stray = False
    while True:
        if quote is not None and text.startswith(quote, place):
            name, place, closed = _quoted(text, place + 1, quote, delimiter, listed)
            if not closed:
                return FirstRecord((*names, name), place, "open")
            stop = _found(ends, text, place)
            name += text[place:stop]
            stray = stray or (stop > place and name not in listed)
        else:
            stop = _found(ends, text, place)
            name = text[place:stop]
        names.append(name)
        if stop == len(text) or text[stop] in _LINE_ENDS:
            length = stop + (2 if text.startswith("\r\n", stop) else 1 if stop < len(text) else 0)
            return FirstRecord(tuple(names), length, "behind" if stray else "")
        place = stop + 1


def _found(sign: re.Pattern[str], text: str, place: int) -> int:
    match = sign.search(text, place)
    return len(text) if match is None else match.start()


def _quoted(text: str, start: int, quote: str, delimiter: str, listed: Collection[str]) -> tuple[str, int, bool]:
    """From behind an opening quote: the name, the place behind its closing quote, and whether it is closed.

    A line end is a letter of the name only where a name of the schema goes on so; otherwise the name and the place are
    those at the end of the first line, whatever stands behind it.
    """
    signs = re.compile(f"[{re.escape(quote)}\r\n]")
    name, place, first = "", start, None
    while (stop := _found(signs, text, place)) < len(text):
        name += text[place:stop]
        if text[stop] != quote:
            first = (name, stop) if first is None else first
            name, place = name + text[stop], stop + 1
            if not any(other.startswith(name) for other in listed):
                break
        elif text.startswith(quote, stop + 1):
            name, place = name + quote, stop + 2
        elif first is None or (name in listed and text[stop + 1 : stop + 2] in ("", delimiter, *_LINE_ENDS)):
            return name, stop + 1, True
        else:
            break
    return (*(first or (name + text[place:], len(text))), False)


def one_byte_a_letter(names: Sequence[str]) -> frozenset[str]:
    """Names as `first_record` compares them: each byte of their UTF-8 is a character.

    >>> sorted(one_byte_a_letter(["\u00e9"]))
    ['Ã©']
    """
    return frozenset(name.encode("utf-8", "surrogatepass").decode("latin-1") for name in names)
