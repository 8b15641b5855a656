"""The correct door passes every gate; each planted bug is caught, by the gate that is meant to."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audits import (
    gates_charges,
    gates_draws,
    gates_runs,
    gates_sensitivity,
    planted_charges,
    planted_draws,
    planted_runs,
    planted_sensitivity,
)
from tests.audits.planting import Bug
from tests.sizes import rounds

MODULES = (gates_charges, gates_draws, gates_runs, gates_sensitivity)
BUGS = (*planted_charges.BUGS, *planted_draws.BUGS, *planted_runs.BUGS, *planted_sensitivity.BUGS)
GATES = tuple(dict.fromkeys(bug.gate for bug in BUGS))


def through(gate: Callable[..., None], folder: Path, *, thorough: bool = False) -> None:
    """Run a gate; thorough where the correct door goes through, since few runs would let a weak bug pass too."""
    taken = inspect.signature(gate).parameters
    options = {"folder": folder, "tiny_runs": rounds(10_000, 20_000) if thorough else 5000}
    gate(**{name: value for name, value in options.items() if name in taken})


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_the_correct_door_passes(gate: Callable[..., None], tmp_path: Path) -> None:
    through(gate, tmp_path, thorough=True)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bug.plant(monkeypatch)
    with pytest.raises(AssertionError):
        through(bug.gate, tmp_path)


def test_there_are_enough_of_them_and_every_gate_is_needed() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 40
    written = {
        value
        for module in MODULES
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and value.__annotations__.get("return") == "None"
        and not name.startswith("_")
    }
    assert written == set(GATES), "a gate that no planted bug needs proves nothing"
