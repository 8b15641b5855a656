"""Whoever read standard error has gone away: that costs no answer."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
from pathlib import Path

import pytest

from margent.cli.console import logged_steps
from margent.cli.interrupts import soft_stops
from margent.resume.state import RunState


class Unread(io.StringIO):
    """A pipe whose other end is closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_an_interrupt_waits_for_the_answer_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, answered = RunState(tmp_path / "state"), False
    monkeypatch.setattr(sys, "stderr", Unread())
    with pytest.raises(KeyboardInterrupt), soft_stops(state), state.pause.held():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        answered = True
    assert answered


def test_a_line_of_the_log_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Unread())
    with logged_steps(wanted=True):
        logging.getLogger("margent").warning("one of nobody's lines")
