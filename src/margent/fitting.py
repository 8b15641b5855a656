"""What would fit where a plan does not: changes of schema or options, each of them tried before it is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from margent.errors import PlanError, UsageError
from margent.methods import METHODS, Method
from margent.schema.domain import Domain
from margent.settings import settings_of

if TYPE_CHECKING:
    from margent.plan import Plan

CAPS = ("max_pair_cells", "max_table_cells", "max_cells")
"""Settings of collectors that cap the cells of one table; what is over the cap is merged or left out."""

LEAST_CAP = 64
SHOWN = 5

MakePlan = Callable[[Domain, Method, int | None], "Plan"]
"""A plan of the same run on another domain, by another method, with another number of rows."""


@dataclass(frozen=True)
class Fitting:
    """Looks for changes that make a run fit: ``planned`` plans it again, without reading anything.

    Privacy: none: public facts.
    """

    domain: Domain
    method: Method
    rows: int | None
    planned: MakePlan

    def remedies(self) -> tuple[str, ...]:
        """Changes that each make the plan fit on its own, in words, those that lose least first."""
        found = (self._fewer_rows(), self._lower_cap(), self._coarser(), self._dropped(), self._other_methods())
        return tuple(words for words in found if words)

    def _fits(self, *, domain: Domain | None = None, method: Method | None = None, rows: int | None = None) -> bool:
        try:
            plan = self.planned(domain or self.domain, method or self.method, self.rows if rows is None else rows)
            return plan.refusal() is None
        except (PlanError, UsageError):
            return False

    def _capped(self, codes: int) -> Domain:
        return Domain(self.domain.names, tuple(min(size, codes) for size in self.domain.sizes))

    def _fewer_rows(self) -> str:
        if not self.rows:
            return ""
        most = self._largest(1, self.rows - 1, lambda rows: self._fits(rows=rows))
        return "" if most is None else f"--rows {_two_digits(most)}"

    def _lower_cap(self) -> str:
        settings = settings_of(self.method.collector)
        for name in CAPS:
            if name not in settings:
                continue
            cap = int(settings[name]) // 2
            while cap >= LEAST_CAP:
                if self._fits(method=self.method.configured({name: str(cap)})):
                    return f"--set {name}={cap} (larger tables are merged or left out)"
                cap //= 2
        return ""

    def _coarser(self) -> str:
        most = self._largest(2, max(self.domain.sizes), lambda codes: self._fits(domain=self._capped(codes)))
        if most is None:
            return ""
        codes = _two_digits(most)
        wide = [(name, size) for name, size in self._widest_first() if size > codes]
        words = "codes (bins or categories, and one for each kind of other cells)"
        return f"at most {codes:,} {words} a column: {_listed(wide)}"

    def _dropped(self) -> str:
        order = self._widest_first()

        def fits(kept: int) -> bool:
            narrow = {name for name, _ in order[len(order) - kept :]}
            names = [name for name in self.domain.names if name in narrow]
            return self._fits(domain=Domain(tuple(names), self.domain.shape(names)))

        kept = self._largest(1, len(order) - 1, fits)
        return "" if kept is None else f"role drop for {_listed(order[: len(order) - kept])}"

    def _other_methods(self) -> str:
        others = [method for method in METHODS if method.name != self.method.name and method.installed]
        names = [method.name for method in others if self._fits(method=method)]
        return f"--method {' or '.join(names)}" if names else ""

    def _widest_first(self) -> list[tuple[str, int]]:
        sizes = zip(self.domain.names, self.domain.sizes, strict=True)
        return sorted(sizes, key=lambda column: (-column[1], column[0]))

    @staticmethod
    def _largest(low: int, high: int, fits: Callable[[int], bool]) -> int | None:
        """The largest whole number in a range that fits, where smaller ones do if it does; None where none does."""
        if high < low or not fits(low):
            return None
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits(middle) else (low, middle - 1)
        return low


def listed(remedies: tuple[str, ...]) -> str:
    """Remedies as one sentence.

    >>> listed(("--rows 100", "--method independent"))
    'any one of these would fit: (1) --rows 100; (2) --method independent'
    """
    words = [f"({number}) {words}" for number, words in enumerate(remedies, start=1)]
    return f"any one of these would fit: {'; '.join(words)}" if words else ""


def _two_digits(number: int) -> int:
    """Rounded down to two digits.

    >>> _two_digits(1987), _two_digits(42)
    (1900, 42)
    """
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return number // unit * unit


def _listed(columns: list[tuple[str, int]]) -> str:
    shown = ", ".join(f"{name!r} ({size:,})" for name, size in columns[:SHOWN])
    more = f" and {len(columns) - SHOWN:,} more" if len(columns) > SHOWN else ""
    return shown + more
