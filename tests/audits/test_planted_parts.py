"""Correct merchants and collectors pass every gate; each planted bug is caught by the gate that is meant to."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from tests.audits import (
    gates_noise,
    gates_purchases,
    gates_questions,
    planted_noise,
    planted_purchases,
    planted_questions,
)
from tests.audits.planted_purchases import Gate, Plant

PARTS = [
    (gates_purchases, planted_purchases.BUGS),
    (gates_questions, planted_questions.BUGS),
    (gates_noise, planted_noise.BUGS),
]
BUGS = [bug for _, bugs in PARTS for bug in bugs]
GATES = tuple(dict.fromkeys(gate for _, gate, _ in BUGS))


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_the_correct_code_passes(gate: Gate) -> None:
    gate()


@pytest.mark.parametrize(("gate", "plant"), [bug[1:] for bug in BUGS], ids=[bug[0] for bug in BUGS])
def test_a_planted_bug_is_caught(gate: Gate, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        gate()


@pytest.mark.parametrize("module", [module for module, _ in PARTS], ids=lambda module: module.__name__)
def test_every_gate_is_needed(module: ModuleType) -> None:
    written = {
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert written == {gate for gate in GATES if gate.__module__ == module.__name__}
