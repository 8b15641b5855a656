"""A method's settings by name: the fields of its collector and synthesizer, given as text and checked all at once.

Settings are public options: they are recorded in a release, and no table is read to choose them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from margent.errors import UsageError

Settings = Mapping[str, str]
NO_SETTINGS: Settings = types.MappingProxyType({})
MOST_CELLS = 10**12
"""Highest cap on cells that can be set: caps are compared as floats too."""
LEAST_SHARE = Fraction(1, 10**6)
"""Least share of a budget that can be set: below it there is nothing to buy."""
_NOT_SETTINGS = ("name", "builder")
_PLAIN = (bool, int, float, str, Fraction)

_hints_of: Callable[[Any], Mapping[str, Any]] = cache(get_type_hints)

Half = TypeVar("Half")


def settings_of(half: object) -> dict[str, str]:
    """The settings that a collector or synthesizer has, with their values as text.

    Privacy: none.

    >>> from margent.synthesizers.mcf import MinCostFlow
    >>> settings_of(MinCostFlow())
    {'passes': '20', 'still': '0.0005', 'enough': '20000', 'spread': 'projected'}
    """
    assert is_dataclass(half)
    hints = _hints_of(type(half))
    return {
        each.name: _text(getattr(half, each.name))
        for each in fields(half)
        if each.name not in _NOT_SETTINGS and _readable(hints[each.name])
    }


def configured(half: Half, settings: Settings) -> Half:
    """The collector or synthesizer with those of the settings that it has.

    Privacy: none.
    Raises: UsageError naming every value that is of another kind, or what the half itself says against one.

    >>> from margent.synthesizers.mcf import MinCostFlow
    >>> configured(MinCostFlow(), {"passes": "3", "alpha": "1"}).passes
    3
    """
    known, hints = settings_of(half), _hints_of(type(half))
    values, faults = {}, []
    for name, text in settings.items():
        if name not in known:
            continue
        try:
            values[name] = _value(hints[name], text)
        except (ValueError, ZeroDivisionError):
            faults.append(f"{name} must be {_words(hints[name])}, such as {known[name] or 'empty'}")
    if faults:
        raise UsageError("settings that cannot be read: " + "; ".join(faults))
    return replace(half, **values) if values else half  # type: ignore[type-var]


def require_known(settings: Settings, halves: Sequence[tuple[str, object]]) -> None:
    """Refuse settings that none of the halves (each with its name) has, listing those there are.

    Privacy: none. Raises: UsageError.
    """
    known = [(name, settings_of(half)) for name, half in halves]
    unknown = [name for name in settings if not any(name in each for _, each in known)]
    if unknown:
        there = "; ".join(f"{half}: {', '.join(each) or 'none'}" for half, each in known)
        raise UsageError(f"there is no setting {', '.join(map(repr, unknown))}; there are, of {there}")


def require_between(half: object, **limits: tuple[float | Fraction, float | Fraction]) -> None:
    """Refuse numbers outside their limits (the lowest and the highest that are allowed), all of them at once.

    A setting that is None has no number. So no run meets one, after its charge, that it cannot reckon with.

    Privacy: none. Raises: UsageError naming half, settings and limits.

    >>> from margent.synthesizers.pgm import Pgm
    >>> Pgm(most_cells=0)
    Traceback (most recent call last):
    ...
    margent.errors.UsageError: pgm: most_cells must be from 1 to 1,000,000,000,000
    """
    given = {name: getattr(half, name) for name in limits}
    off = [name for name, (low, high) in limits.items() if given[name] is not None and not low <= given[name] <= high]
    if off:
        said = (f"{name} must be from {_number(limits[name][0])} to {_number(limits[name][1])}" for name in off)
        raise UsageError(f"{getattr(half, 'name', type(half).__name__)}: {'; '.join(said)}")


def _number(limit: float | Fraction) -> str:
    return f"{limit:,}" if isinstance(limit, int) else str(limit) if isinstance(limit, Fraction) else f"{limit:g}"


def _readable(hint: Any) -> bool:
    parts = [part for part in get_args(hint) if part is not types.NoneType] if _optional(hint) else [hint]
    return len(parts) == 1 and (parts[0] in _PLAIN or get_origin(parts[0]) is Literal)


def _optional(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType) and types.NoneType in get_args(hint)


def _value(hint: Any, text: str) -> Any:
    if _optional(hint):
        (inner,) = [part for part in get_args(hint) if part is not types.NoneType]
        return None if text == "" else _value(inner, text)
    if get_origin(hint) is Literal:
        found = [choice for choice in get_args(hint) if _text(choice) == text]
        return found[0] if found else _refuse()
    if hint is bool:
        return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse()
    if hint is float and not abs(float(text)) < float("inf"):
        return _refuse()
    return hint(text)


def _refuse() -> Any:
    raise ValueError


def _choices(hint: Any) -> list[str]:
    return [_text(choice) for choice in get_args(hint)]


def _words(hint: Any) -> str:
    if _optional(hint):
        (inner,) = [part for part in get_args(hint) if part is not types.NoneType]
        return f"{_words(inner)} or empty"
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(_choices(hint))
    return {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}.get(hint, "a fraction")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
