"""For what must be refused: a ledger in which any charge is an error."""

from __future__ import annotations

import pytest

from margent.privacy import ledger


@pytest.fixture
def no_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a charge was made")

    monkeypatch.setattr(ledger.Ledger, "spend", spend)
