"""Limits of containers, as the kernel writes them, in folders made for the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from margent.machine import THREADS_VARIABLE, block_rows, machine_memory, memory_limits, processor_limits, threads


def written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_version_two_takes_the_least_of_all_groups_around(tmp_path: Path) -> None:
    groups = written(
        tmp_path,
        {
            "a/b/memory.max": "max\n",
            "a/memory.max": "1073741824\n",
            "memory.max": "4294967296\n",
            "a/b/cpu.max": "150000 100000\n",
            "a/cpu.max": "max 100000\n",
        },
    )
    assert sorted(memory_limits("0::/a/b\n", groups)) == [2**30, 2**32]
    assert list(processor_limits("0::/a/b\n", groups)) == [2]


def test_version_one_and_a_path_that_is_not_there(tmp_path: Path) -> None:
    groups = written(
        tmp_path,
        {
            "memory/memory.limit_in_bytes": "536870912\n",
            "cpu/box/cpu.cfs_quota_us": "-1\n",
            "cpu/box/cpu.cfs_period_us": "100000\n",
            "cpu/cpu.cfs_quota_us": "50000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    membership = "5:cpu,cpuacct:/box\n4:memory:/docker/0123/../..\n1:name=systemd:/\n"
    assert list(memory_limits(membership, groups)) == [2**29]
    assert list(processor_limits(membership, groups)) == [1]


@pytest.mark.parametrize("membership", ["", "nonsense", "0:", "::", "0::\n", "7:memory\n"])
def test_what_cannot_be_read_limits_nothing(membership: str, tmp_path: Path) -> None:
    assert list(memory_limits(membership, tmp_path)) == []
    assert list(processor_limits(membership, tmp_path)) == []


def test_threads_are_the_cores_or_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(THREADS_VARIABLE, raising=False)
    assert 1 <= threads() <= 64
    for text, expected in (("3", 3), ("1", 1), ("1000", 64)):
        monkeypatch.setenv(THREADS_VARIABLE, text)
        assert threads() == expected
    for text in ("0", "-2", "many", "²"):
        monkeypatch.setenv(THREADS_VARIABLE, text)
        assert 1 <= threads() <= 64
    have = machine_memory()
    assert have is None or have > 2**20


def test_blocks_hold_fewer_rows_of_more_columns() -> None:
    rows = [block_rows(columns) for columns in (0, 1, 64, 65, 1000, 10**6)]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] == rows[2] == 65_536
    assert rows[-1] == 1024
