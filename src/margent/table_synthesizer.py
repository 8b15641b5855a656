"""The fit-and-sample habit of other libraries, on top of `margent.pipeline`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from threading import Lock
from typing import Any, Self

from margent.errors import BudgetError, UsageError
from margent.methods import DEFAULT_METHOD, method_named
from margent.pipeline import Measured, from_transcript, measure
from margent.privacy.budget import Budget
from margent.privacy.budget_file import BudgetFile
from margent.resume.state import Spending
from margent.schema.fields import Schema
from margent.settings import NO_SETTINGS, Settings
from margent.transcript import Transcript

_STARTS = Lock()
"""Held while a synthesizer settles whether it may fit: of two threads one does."""


class TableSynthesizer:
    """`fit` spends the budget once; `sample` is free and may be called as often as one likes.

    >>> from margent import Category, Integer, Schema
    >>> schema = Schema([Category("sex", ["F", "M"]), Integer("age", 0, 110)], unit="row")
    >>> synthesizer = TableSynthesizer(schema, epsilon=1)

    Privacy: one fit is (epsilon, delta)-differentially private for the schema's unit; a second fit is refused,
    also where the first was interrupted or failed, unless it had not begun to spend.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        epsilon: float | str | Fraction,
        delta: float | str | Fraction = "1e-9",
        method: str = DEFAULT_METHOD,
        settings: Settings = NO_SETTINGS,
        budget_file: BudgetFile | None = None,
        expect_people: int | None = None,
    ) -> None:
        self.schema = schema
        self.budget_file = budget_file
        self.budget = Budget(epsilon=epsilon, delta=delta)
        self.expect_people = expect_people
        self.method = method_named(method).configured(settings).name
        self.settings = settings
        self._spending: Spending | None = None
        self._measured: Measured | None = None

    @property
    def transcript_(self) -> Transcript:
        """The noisy answers that were bought; may be published."""
        return self._fitted().transcript

    def fit(self, table: str | Path | object) -> Self:
        """Spend the budget on noisy answers about ``table``.

        Privacy: (epsilon, delta) as given.
        Raises: BudgetError on a second fit: the budget is spent; otherwise as `margent.synthesize`. After one that
            raised before anything was reserved or charged, `fit` may be called again.
        """
        with _STARTS:
            if self._spending is not None:
                raise BudgetError(self._spent())
            spending = self._spending = Spending()
        try:
            self._measured = measure(
                table,
                self.schema,
                budget=self.budget,
                budget_file=self.budget_file,
                method=self.method,
                settings=self.settings,
                expect_people=self.expect_people,
                spending=spending,
            )
        except BaseException:
            if not spending.begun:
                self._spending = None
            raise
        return self

    def sample(self, rows: int | None = None, *, seed: int | None = None) -> Any:
        """Draw synthetic rows (default: the noisy number of records) in the kind of frame that was fitted.

        Shapes: ``rows`` records, every output column of the schema.
        Privacy: none: post-processing.
        Raises: UsageError before `fit`.
        """
        measured = self._fitted()
        release = from_transcript(
            measured.transcript,
            budget=self.budget,
            synthesizer=method_named(self.method).synthesizer.name,
            settings=self.settings,
            rows=rows,
            seed=seed,
            kind=measured.kind,
        )
        frames = ("pandas", "polars", "pyarrow", "duckdb")
        return release.to_kind(measured.kind if measured.kind in frames else "pyarrow")

    def _fitted(self) -> Measured:
        if self._measured is None:
            raise UsageError("call fit(table) first" if self._spending is None else self._spent())
        return self._measured

    def _spent(self) -> str:
        if self._measured is None:
            return (
                "this synthesizer is being fitted, or its fit was interrupted or failed after it had begun to spend: "
                "what was charged stays spent, and no answer of it was kept. Make a new one, which adds its epsilon to "
                "what has been spent on these people; margent.synthesize(..., state=...) keeps a run to go on with"
            )
        return (
            "this synthesizer was fitted before and its budget is spent; sample from it as often as you "
            "like, or make a new one, which adds its epsilon to what has been spent on these people"
        )
