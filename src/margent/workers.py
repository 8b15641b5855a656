"""Pieces of work done at the same time on a few cores, their results in order, few of them held at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from margent.progress import Progress, silent

Result = TypeVar("Result")


class StoppedError(Exception):
    """Ends a piece of work whose result nobody waits for any more; never seen outside of its thread."""


def in_order(job: Callable[[int, Progress], Result], count: int, workers: int) -> Generator[Result, None, None]:
    """Yield job(0), job(1), .., job(count - 1): ``workers`` of them are done at the same time, in threads.

    At most one result more than there are workers is done or in work before it is asked for. Where the caller stops
    early, or is interrupted, jobs that have begun end at their next call of the progress that they are given.

    Privacy: none: what the jobs do is theirs.
    """
    if min(workers, count) <= 1:
        for index in range(count):
            yield job(index, silent)
        return
    stopped = threading.Event()

    def note(step: str, share: float | None) -> None:
        if stopped.is_set():
            raise StoppedError

    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="margent")
    waiting: deque[Future[Result]] = deque()
    try:
        for index in range(count):
            waiting.append(pool.submit(job, index, note))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)
