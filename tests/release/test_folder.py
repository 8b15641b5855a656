"""Output folders appear whole or not at all, whatever fails while they are written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from margent.errors import TableError, UsageError
from margent.release.folder import whole_folder


def test_success_leaves_the_folder_and_nothing_else(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "OUT") as draft:
        (draft / "sub").mkdir()
        (draft / "sub" / "a.txt").write_text("a")
        assert not (tmp_path / "OUT").exists()
    assert (tmp_path / "OUT" / "sub" / "a.txt").read_text() == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["OUT"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError()])
def test_any_failure_leaves_nothing(failure: BaseException, tmp_path: Path) -> None:
    told = TableError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(told) as caught, whole_folder(tmp_path / "OUT") as draft:  # noqa: PT012
        (draft / "a.txt").write_text("a")
        raise failure
    assert told is not TableError or "OUT: cannot be written: No space left on device" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_flush_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(TableError, match="Input/output"), whole_folder(tmp_path / "OUT") as draft:
        (draft / "a.txt").write_text("a")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "OUT").mkdir()
    with pytest.raises(UsageError, match="exists already"), whole_folder(tmp_path / "OUT"):
        raise AssertionError("entered")
    with pytest.raises(UsageError, match="not a folder"), whole_folder(tmp_path / "no" / "OUT"):
        raise AssertionError("entered")


def test_a_folder_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists already"), whole_folder(tmp_path / "OUT") as draft:  # noqa: PT012
        (draft / "a.txt").write_text("a")
        (tmp_path / "OUT").mkdir()
    assert list((tmp_path / "OUT").iterdir()) == []
