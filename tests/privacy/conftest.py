"""A budget file that has been declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from margent.privacy.budget import Budget
from margent.privacy.budget_file import BudgetFile


@pytest.fixture
def people(tmp_path: Path) -> BudgetFile:
    file = BudgetFile(tmp_path / "people.budget", "people")
    file.init(Budget(3))
    return file
