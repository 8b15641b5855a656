"""JSON without surprises: no NaN, no duplicate keys, no deep nesting; every fault with its JSON pointer."""

from __future__ import annotations

import difflib
import json
import math
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from margent.errors import Fault, SchemaError

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 32
_MAX_DIGITS = 1000
MOST_GUESSED = 100
"""Unknown keys of an object for which it is guessed what they may have meant."""
MOST_STRICT = 1000
"""Faults of strict JSON after which no more are looked for."""


_HOLDERS = (Mapping, list, tuple)


class _Members(dict[str, Any]):
    """A JSON object that remembers which of its keys were given twice."""

    repeated: tuple[str, ...] = ()


def _members(pairs: list[tuple[str, Any]]) -> _Members:
    members = _Members(pairs)
    if len(members) != len(pairs):
        times = Counter(key for key, _ in pairs)
        members.repeated = tuple(key for key in members if times[key] > 1)
    return members


def _whole(digits: str) -> int | float:
    # Python refuses to convert absurdly long numbers; infinity is refused with its pointer later on.
    return int(digits) if len(digits) <= _MAX_DIGITS else math.inf


def step(pointer: str, key: str | int) -> str:
    """The JSON pointer (RFC 6901) of a member.

    >>> step("/fields/0", "a/b~c")
    '/fields/0/a~1b~0c'
    """
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def load_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes.

    Raises: SchemaError naming the file.
    """
    try:
        # Before it is opened: opening a pipe waits for somebody who writes to it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise SchemaError([Fault("", "not a regular file; give the path of a file")], str(path))
        with path.open("rb") as stream:
            content = stream.read(limit + 1)
    except FileNotFoundError:
        raise SchemaError([Fault("", "there is no such file; check the path")], str(path)) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SchemaError([Fault("", f"cannot be read: {reason}")], str(path)) from None
    if len(content) > limit:
        raise SchemaError([Fault("", f"is larger than {limit:,} bytes, the most that is read")], str(path))
    return content


def parse_strict(content: bytes, subject: str) -> Any:
    """The value of strict JSON text.

    Privacy: none: schemas are public.
    Raises: SchemaError with every fault: syntax, NaN, infinity, duplicate keys, deep nesting, broken Unicode.
    """
    try:
        value = json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=_members,
            parse_int=_whole,
            parse_constant=float,
        )
    except UnicodeDecodeError:
        raise SchemaError([Fault("", "not UTF-8 text; save it as UTF-8")], subject) from None
    except RecursionError:
        raise SchemaError([Fault("", f"nested deeper than {MAX_DEPTH} levels")], subject) from None
    except json.JSONDecodeError as error:
        where = f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise SchemaError([Fault("", where)], subject) from None
    if faults := strict_faults(value):
        raise SchemaError(faults, subject)
    return value


def strict_faults(value: Any) -> list[Fault]:
    """What strict JSON forbids in a parsed value, with pointers; the walk itself needs no deep stack.

    >>> [str(fault) for fault in strict_faults({"a": [1.5, float("nan")]})]
    ['/a/1: NaN and infinite numbers are not allowed']
    """
    faults: list[Fault] = []
    # Places are keys from the inside out, and pointers are made of them for faults only: a long key above many values
    # would else be written out for each of them.
    todo: list[tuple[_Place, Any, int]] = [(None, value, 1)]
    while todo and len(faults) < MOST_STRICT:
        place, item, depth = todo.pop()
        if isinstance(item, str):
            if not _sound(item):
                faults.append(Fault(_pointer(place), "not valid Unicode text"))
        elif isinstance(item, _HOLDERS):
            if depth > MAX_DEPTH:
                faults.append(Fault(_pointer(place), f"nested deeper than {MAX_DEPTH} levels"))
                continue
            named = isinstance(item, Mapping)
            for key, member in item.items() if isinstance(item, Mapping) else enumerate(item):
                if named and not _sound(key):
                    faults.append(Fault(_pointer(place), "a key here is not valid Unicode text"))
                    continue
                todo.append(((place, key), member, depth + 1))
            faults += [
                Fault(_pointer((place, key)), "the key is given more than once; keep one")
                for key in getattr(item, "repeated", ())[:MOST_STRICT]
                if _sound(key)
            ]
        elif isinstance(item, float) and not math.isfinite(item):
            faults.append(Fault(_pointer(place), "NaN and infinite numbers are not allowed"))
        elif item is not None and not isinstance(item, int | float):
            faults.append(Fault(_pointer(place), f"a {type(item).__name__} is not JSON"))
    return sorted(faults, key=lambda fault: fault.pointer)


_Place = tuple["_Place", Any] | None


def _pointer(place: _Place) -> str:
    """The JSON pointer of a place."""
    keys = []
    while place is not None:
        place, key = place
        keys.append(key)
    pointer = ""
    for key in reversed(keys):
        pointer = step(pointer, key)
    return pointer


def _sound(text: Any) -> bool:
    if not isinstance(text, str):
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Members:
    """A reader of one JSON object that collects faults instead of stopping at the first.

    ``sound`` turns False when a value could not be understood; unknown keys leave it True, because what was
    understood can then still be checked further.
    """

    def __init__(self, value: Any, pointer: str, faults: list[Fault], subject: str = "") -> None:
        """Read ``value``, which stands at ``pointer``; ``subject`` begins every message."""
        self.pointer = pointer
        self.faults = faults
        self.subject = subject
        self.sound = True
        self.members: Mapping[str, Any] = {}
        if isinstance(value, Mapping):
            self.members = value
        else:
            self.fault(None, f"expected an object, found {kind_of(value)}")

    def fault(self, key: str | int | None, message: str) -> None:
        """Write down a fault of a member (or of the object itself) that leaves its value unknown."""
        pointer = self.pointer if key is None else step(self.pointer, key)
        self.faults.append(Fault(pointer, self.said(message)))
        self.sound = False

    def said(self, message: str) -> str:
        """The message with the subject before it."""
        return f"{self.subject}: {message}" if self.subject else message

    def inner(self, key: str | int, value: Any) -> Members:
        """A reader of what stands under a key; see `adopt`."""
        return Members(value, step(self.pointer, key), self.faults, self.subject)

    def adopt(self, inner: Members) -> None:
        """What an inner reader did not understand, this one did not either."""
        self.sound = self.sound and inner.sound

    def __contains__(self, key: str) -> bool:
        """Whether the key is given."""
        return key in self.members

    def get(self, key: str) -> Any:
        """The raw value, or None where it is absent."""
        return self.members.get(key)

    def text(self, key: str) -> str | None:
        """A text, or None where absent or (with a fault) of another kind."""
        value = self.members.get(key)
        if value is None and key not in self.members:
            return None
        if isinstance(value, str):
            return value
        self.fault(key, f"expected a text, found {kind_of(value)}")
        return None

    def flag(self, key: str, default: bool = False) -> bool:
        """A true or false, ``default`` where absent."""
        value = self.members.get(key, default)
        if isinstance(value, bool):
            return value
        self.fault(key, f"expected true or false, found {kind_of(value)}")
        return default

    def whole(self, key: str, least: int | None = None, most: int | None = None) -> int | None:
        """A whole number in [least, most], or None where absent or (with a fault) of another kind."""
        if key not in self.members:
            return None
        value = self.members[key]
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(key, f"expected a whole number, found {kind_of(value)}")
        elif (least is not None and value < least) or (most is not None and value > most):
            limits = [f"at least {least:,}"] * (least is not None) + [f"at most {most:,}"] * (most is not None)
            self.fault(key, f"must be {' and '.join(limits)}")
        else:
            return value
        return None

    def items(self, key: str) -> list[Any] | None:
        """A list, or None where absent or (with a fault) of another kind."""
        value = self.members.get(key)
        if value is None and key not in self.members:
            return None
        if isinstance(value, list | tuple):
            return list(value)
        self.fault(key, f"expected a list, found {kind_of(value)}")
        return None

    def refuse_unknown(self, known: Iterable[str], elsewhere: Mapping[str, str]) -> None:
        """Refuse every other key, with a hint where it belongs or what it may have meant."""
        names = list(known)
        unknown = [key for key in self.members if isinstance(key, str) and key not in names]
        for place, key in enumerate(unknown):
            near = difflib.get_close_matches(key, [*names, *elsewhere], n=1) if place < MOST_GUESSED else []
            if key in elsewhere:
                hint = elsewhere[key]
            elif near and near[0] in names:
                hint = f"did you mean {near[0]!r}?"
            elif near:
                hint = f"did you mean {near[0]!r}? ({elsewhere[near[0]]})"
            else:
                hint = f"known here: {', '.join(names)}"
            self.faults.append(Fault(step(self.pointer, key), self.said(f"this key is not known; {hint}")))


def kind_of(value: Any) -> str:
    """A JSON value's kind in words.

    >>> kind_of([]), kind_of(None), kind_of(True)
    ('a list', 'null', 'true or false')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list | tuple) else "an object"
