"""Work side by side: results in order, few at once, and an end when nobody waits."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing

import pytest

from margent.progress import Progress
from margent.workers import in_order


@pytest.mark.parametrize("workers", [1, 2, 5, 40])
@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_results_come_in_order(workers: int, count: int) -> None:
    def job(index: int, progress: Progress) -> int:
        time.sleep(0.001 * (index * 7 % 3))
        return index * index

    assert list(in_order(job, count, workers)) == [index * index for index in range(count)]


def test_no_more_is_begun_than_is_soon_wanted() -> None:
    begun: list[int] = []

    def job(index: int, progress: Progress) -> int:
        begun.append(index)
        return index

    with closing(in_order(job, 50, 2)) as results:
        assert next(results) == 0
        time.sleep(0.05)
        assert len(begun) <= 3
    assert len(begun) <= 4


def test_a_failure_is_raised_and_the_others_end() -> None:
    ended = threading.Event()

    def job(index: int, progress: Progress) -> int:
        if index == 0:
            raise OSError(28, "No space left on device")
        try:
            while True:
                progress("records", 0.5)
                time.sleep(0.002)
        finally:
            ended.set()

    with pytest.raises(OSError, match="No space left"):
        list(in_order(job, 3, 3))
    assert ended.is_set()
    assert not any(thread.name.startswith("margent") for thread in threading.enumerate())


def test_an_interrupt_ends_jobs_that_would_go_on_for_ever() -> None:
    def job(index: int, progress: Progress) -> int:
        if index == 1:
            os.kill(os.getpid(), signal.SIGINT)
        while True:
            progress("records", 0.5)
            time.sleep(0.002)

    with pytest.raises(KeyboardInterrupt):
        list(in_order(job, 4, 2))
    # An interrupt may come while a thread is being started: that one is not waited for, and ends all the same.
    for thread in threading.enumerate():
        if thread.name.startswith("margent"):
            thread.join(10)
            assert not thread.is_alive()
