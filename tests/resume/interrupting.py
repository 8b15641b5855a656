"""Runs that are cut off at every step that matters, with noise that depends on the question alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from margent import Budget, BudgetFile, Release, RunState, Schema, synthesize
from margent.counts.source import StreamedCounts
from margent.methods import Method, method_named
from margent.privacy import budget_store, curator, merchant
from margent.privacy.ledger import Ledger
from margent.release.charge_json import charge_to_json
from margent.resume.journal import FILE, Journal
from margent.tables.opened import OpenTable
from tests.conftest import quick


class Cut(BaseException):
    """Where a run is cut off; nothing handles it."""


def pinned_noise(count: int, scale_squared: Fraction) -> NDArray[np.int64]:
    rng = np.random.default_rng(count)
    return np.rint(rng.normal(0, float(scale_squared) ** 0.5, count)).astype(np.int64)


def pinned_choice(scores: list[int], epsilon: Fraction, sensitivity: Fraction) -> int:
    return max(range(len(scores)), key=lambda place: (scores[place], -place))


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every curator and merchant draws `pinned_noise`; what is slow and does not matter here is quick."""
    laplace = {"laplace_noise": lambda count, scale: pinned_noise(count, 2 * scale**2)}
    fixed = {"noise": pinned_noise, **laplace}
    for module, options in ((curator, {**fixed, "chooser": pinned_choice}), (merchant, fixed)):
        name = "DataCurator" if module is curator else "DataMerchant"
        genuine = getattr(module, name)
        monkeypatch.setattr(
            f"margent.pipeline.{name}",
            lambda *given, genuine=genuine, options=options, **more: genuine(*given, **(more | options)),
        )
    monkeypatch.setattr("margent.pipeline.method_named", quick_named)


def quick_named(name: str) -> Method:
    return quick(method_named(name))


STEPS: tuple[tuple[Any, str], ...] = (
    (Journal, "charged"),
    (Journal, "answered"),
    (budget_store, "reserve"),
    (budget_store, "look"),
    (Release, "save"),
    (RunState, "remove"),
)
IN_PROCESSES_OF_THEIR_OWN = ((Journal, "made"), *STEPS)
"""A cut that ends no process would leave the journal held."""


def raise_cut() -> None:
    raise Cut


@contextmanager
def cut_at(
    step: int | None,
    monkeypatch: pytest.MonkeyPatch,
    cut: Callable[[], None] = raise_cut,
    steps: tuple[tuple[Any, str], ...] = STEPS,
) -> Iterator[list[str]]:
    """Cut the run off at its ``step``-th step, each of which is a moment before or after a call that matters."""
    passed: list[str] = []

    def moment(name: str) -> None:
        if len(passed) == step:
            cut()
        passed.append(name)

    def around(genuine: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            moment(f"before {name}")
            outcome = genuine(*given, **options)
            moment(f"after {name}")
            return outcome

        return call

    with monkeypatch.context() as patch:
        for owner, name in steps:
            wrapped = around(getattr(owner, name), name)
            patch.setattr(owner, name, staticmethod(wrapped) if name == "made" else wrapped)
        yield passed


EARLY = "rows were looked at before their charges were on disk"


@contextmanager
def looks_watched(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Hold a state's file against the ledger at each look at rows, through a connection of its own.

    All charges of the ledger must be in the file, and one at least without its answer. Gives the number of charges at
    each look.

    Raises: AssertionError with `EARLY` at the end, since what is raised within a look loses its text.
    """
    charged, looks, early = [()], list[int](), list[int]()
    spend = Ledger.spend

    def spent(self: Ledger, charges: Any) -> range:
        places = spend(self, charges)
        charged[0] = self.charges
        return places

    def watched(genuine: Callable[..., Any]) -> Callable[..., Any]:
        def look(*given: Any, **options: Any) -> Any:
            looks.append(len(charged[0]))
            on_disk, waiting = durable(state)
            if on_disk != [charge_to_json(charge) for charge in charged[0]] or not waiting:
                early.append(len(looks))
            return genuine(*given, **options)

        return look

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "spend", spent)
        for owner, name in ((OpenTable, "batches"), (StreamedCounts, "count")):
            patch.setattr(owner, name, watched(getattr(owner, name)))
        try:
            yield looks
        finally:
            assert not early, EARLY


def durable(state: Path) -> tuple[list[Any], int]:
    """The charges in a state's file as it is on disk at this moment, and how many of their calls have no answers.

    The run holds the file's lock, so it is read as one that nobody writes to: between transactions that is so.
    """
    file = sqlite3.connect(f"{(state / FILE).as_uri()}?immutable=1", uri=True)
    try:
        bodies = file.execute("SELECT body FROM charges ORDER BY number").fetchall()
        (waiting,) = file.execute(
            "SELECT count(DISTINCT call) FROM charges WHERE call NOT IN (SELECT call FROM calls)"
        ).fetchone()
        return [json.loads(body) for (body,) in bodies], waiting
    finally:
        file.close()


def made(
    table: Any, schema: Schema, out: Path, budget: Budget, method: str, file: BudgetFile | None, **state: bool
) -> Release:
    """One run, saved."""
    kept = RunState(out.parent / f".{out.name}.state", **state)
    release = synthesize(
        table, schema, budget=budget, budget_file=file, method=method, rows=60, seed=3, state=kept
    )  # fmt: skip
    release.save(out, file_format="csv")
    return release


def content(out: Path, *, charges: bool) -> dict[str, Any]:
    """All bytes of a release but for its random run id; without ``charges`` what does not hang on lost ones."""
    run = json.loads((out / "measurements/transcript.json").read_text())["run"]
    found: dict[str, Any] = {
        str(path.relative_to(out)): path.read_bytes().replace(run.encode(), b"RUN")
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }
    if charges:
        return found
    document = json.loads(found["measurements/transcript.json"])
    answers = [(answer, document["charges"][answer.pop("charge")]) for answer in document["answers"]]
    kept = {name: found[name] for name in ("synthetic.csv", "measurements/answers.i64")}
    return kept | {"answers": answers, "schema": document["schema"], "merges": document["merges"]}


def paid_again(release: Release) -> Fraction:
    """What charges without an answer cost."""
    answered = {answer.charge for answer in release.transcript.answers}
    charges = release.transcript.charges
    return sum((charge.cost for place, charge in enumerate(charges) if place not in answered), Fraction(0))
