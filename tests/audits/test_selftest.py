"""The self test passes here, and fails, in words, where something is wrong."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from margent.audits import selftest
from margent.audits.doors import one_marginal
from margent.cli import run
from margent.privacy.budget import Budget
from margent.privacy.noise import discrete_gaussian


@pytest.fixture(autouse=True)
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks in small: the same code, fewer laws and draws."""
    monkeypatch.setattr(selftest, "SCALES", (Fraction(1, 2), Fraction(179, 10), Fraction(4_000_000)))
    monkeypatch.setattr(selftest, "LAPLACE_SCALES", (Fraction(7, 3),))
    monkeypatch.setattr(selftest, "CANARIES", 300_000)


def test_a_sound_machine_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["selftest"]) == 0
    said = capsys.readouterr().out
    assert said.count("passed") == 5
    assert "FAILED" not in said
    assert run(["selftest", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is True
    assert len(found["findings"]) == 5


def test_half_the_noise_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(selftest, "discrete_gaussian", lambda count, s2: discrete_gaussian(count, s2 / 4))
    assert run(["selftest"]) == 1
    said = capsys.readouterr().out
    assert "FAILED  noise has the promised law" in said
    assert "Do not publish" in said


def test_a_door_with_half_the_noise_fails_the_attack() -> None:
    def weak(table: NDArray[np.int64], budget: Budget) -> NDArray[np.int64]:
        honest = one_marginal(table, budget)
        scale = budget.account.gaussian_scale(Fraction(1), budget.total)
        assert honest.shape == table.shape
        return table + discrete_gaussian(table.size, scale / 4)

    findings = {finding.name: finding for finding in selftest.self_test(door=weak)}
    attack = findings["an attack on one run finds no more than was promised"]
    assert not attack.passed
    assert sum(not finding.passed for finding in findings.values()) == 1


def test_a_check_that_cannot_run_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> bytes:
        raise OSError("no randomness")

    monkeypatch.setattr(selftest.os, "urandom", broken)
    findings = selftest.self_test()
    failed = [finding for finding in findings if not finding.passed]
    assert len(failed) == 1
    assert failed[0].seen == "the check could not run (OSError)"


def test_shared_randomness_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_CHILD", "import sys; sys.stdout.write('ab' * 32)")
    (finding,) = [finding for finding in selftest.self_test() if "processes" in finding.name]
    assert not finding.passed
