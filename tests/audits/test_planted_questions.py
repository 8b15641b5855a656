"""Correct collectors pass every gate; each planted bug is caught by the gate that is meant to."""

from __future__ import annotations

import inspect

import pytest

from tests.audits import gates_questions
from tests.audits.planted_questions import BUGS, Gate, Plant

GATES = tuple(dict.fromkeys(gate for _, gate, _ in BUGS))


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_the_correct_collectors_pass(gate: Gate) -> None:
    gate()


@pytest.mark.parametrize(("gate", "plant"), [bug[1:] for bug in BUGS], ids=[bug[0] for bug in BUGS])
def test_a_planted_bug_is_caught(gate: Gate, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        gate()


def test_every_gate_is_needed() -> None:
    written = {
        value
        for name, value in vars(gates_questions).items()
        if inspect.isfunction(value) and value.__module__ == gates_questions.__name__ and not name.startswith("_")
    }
    assert written == set(GATES)
