"""A synthesizer that fits once: a fit that was cut off after it had begun to spend is not followed by another."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from margent import Budget, BudgetFile, TableSynthesizer
from margent.counts.source import StreamedCounts
from margent.errors import BudgetError, MargentError, UsageError
from margent.privacy import budget_store
from margent.resume.state import Spending
from margent.schema.read import schema_from_json
from tests.conftest import SCHEMA, people_rows, write_csv
from tests.resume.interrupting import Cut

PEOPLE = schema_from_json(SCHEMA)


@pytest.fixture
def table(scratch: Path) -> Path:
    return write_csv(scratch / "t.csv", people_rows(300))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """One entry for each look at rows, which raises what stands there; None where there is nothing to raise."""
    genuine, seen = StreamedCounts.count, list[BaseException | None]()

    def count(*given: Any, **options: Any) -> Any:
        waiting = seen[0] if len(seen) == 1 and seen[0] is not None else None
        seen.append(None)
        if waiting is not None:
            raise waiting
        return genuine(*given, **options)

    monkeypatch.setattr(StreamedCounts, "count", count)
    return seen


def synthesizer(file: BudgetFile | None = None) -> TableSynthesizer:
    return TableSynthesizer(PEOPLE, epsilon=1, method="independent", budget_file=file)


def declared(folder: Path) -> BudgetFile:
    file = BudgetFile(folder / "people.budget", "people")
    file.init(Budget(9))
    return file


@pytest.mark.parametrize("with_file", [False, True], ids=["single", "budget"])
@pytest.mark.parametrize(
    "fault", [Cut(), KeyboardInterrupt(), OSError(), MemoryError()], ids=lambda each: type(each).__name__
)
def test_a_fit_that_was_cut_off_inside_its_look_is_the_only_one(
    table: Path, scratch: Path, looks: list[BaseException | None], fault: BaseException, *, with_file: bool
) -> None:
    file = declared(scratch) if with_file else None
    fitted = synthesizer(file)
    looks.append(fault)
    with pytest.raises((type(fault), MargentError)):
        fitted.fit(table)
    assert len(looks) == 2, "it looked once"
    for _ in range(2):
        with pytest.raises(BudgetError, match="what was charged stays spent, and no answer of it was kept"):
            fitted.fit(table)
    with pytest.raises(UsageError, match="Make a new one, which adds its epsilon"):
        fitted.sample(3)
    assert len(looks) == 2, "and never again"
    assert file is None or len(file.balance().reservations) == 1


def test_a_fit_that_was_cut_off_between_reservation_and_charge_reserves_once(
    table: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, looks: list[BaseException | None]
) -> None:
    file = declared(scratch)
    fitted, genuine = synthesizer(file), budget_store.reserve

    def reserve(*given: Any) -> Any:
        genuine(*given)
        raise Cut

    monkeypatch.setattr(budget_store, "reserve", reserve)
    with pytest.raises(Cut):
        fitted.fit(table)
    monkeypatch.setattr(budget_store, "reserve", genuine)
    with pytest.raises(BudgetError, match="stays spent"):
        fitted.fit(table)
    assert not looks
    assert len(file.balance().reservations) == 1


def test_a_fit_that_had_not_begun_to_spend_may_be_tried_again(table: Path, scratch: Path) -> None:
    file = BudgetFile(scratch / "tight.budget", "people")
    file.init(Budget("0.5"))
    for no_table in (scratch / "absent.csv", object()):
        fitted = synthesizer()
        with pytest.raises(MargentError):
            fitted.fit(no_table)
        assert fitted.fit(table).sample(3, seed=1).num_rows == 3
    capped = synthesizer(file)
    for _ in range(2):
        with pytest.raises(BudgetError, match="nothing was charged"):
            capped.fit(table)
    with pytest.raises(UsageError, match="call fit"):
        capped.sample(3)


def test_of_two_fits_at_once_one_looks(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted, refused, looked = synthesizer(), list[BudgetError](), list[int]()
    genuine = StreamedCounts.count

    def count(*given: Any, **options: Any) -> Any:
        looked.append(1)
        other = threading.Thread(target=second)
        other.start()
        other.join()
        return genuine(*given, **options)

    def second() -> None:
        try:
            fitted.fit(table)
        except BudgetError as refusal:
            refused.append(refusal)

    monkeypatch.setattr(StreamedCounts, "count", count)
    fitted.fit(table)
    assert len(refused) == len(looked) == 1
    assert "is being fitted" in str(refused[0])


def test_of_two_fits_that_begin_together_one_looks(
    table: Path, monkeypatch: pytest.MonkeyPatch, looks: list[BaseException | None]
) -> None:
    """The first waits for the second where it has settled that it may, and has not said so: the second never comes."""
    fitted, refused, both = synthesizer(), list[BudgetError](), threading.Barrier(2)

    def spending() -> Spending:
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return Spending()

    def fit() -> None:
        try:
            fitted.fit(table)
        except BudgetError as refusal:
            refused.append(refusal)

    monkeypatch.setattr("margent.table_synthesizer.Spending", spending)
    threads = [threading.Thread(target=fit) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert both.broken
    assert len(refused) == 1
    assert looks


def test_planted_bug_a_run_that_does_not_say_it_has_begun_is_caught(
    table: Path, monkeypatch: pytest.MonkeyPatch, looks: list[BaseException | None]
) -> None:
    deaf = type("Deaf", (), {"begun": property(lambda _: False, lambda *_: None)})
    monkeypatch.setattr("margent.table_synthesizer.Spending", deaf)
    fitted = synthesizer()
    looks.append(Cut())
    with pytest.raises(Cut):
        fitted.fit(table)
    fitted.fit(table)
    assert len(looks) == 3, "the bug looks twice, which the tests above count"
