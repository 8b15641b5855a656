"""One reader, several threads: blocks of rows are read in order by the caller and worked on wherever there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import TypeVar

Item = TypeVar("Item")

_WAITING = 1
"""Blocks that are read ahead, beside the one that each thread works on."""


def spread(items: Iterable[Item], work: Callable[[Item], None], threads: int) -> None:
    """Call ``work`` once for every item, on so many threads; ``items`` are drawn by the calling thread alone, in order.

    A single item is worked on by the calling thread: to start another takes longer than a small table.

    At most ``threads`` + 1 items are held at a time. Whatever is raised, by the items, by the work or by an interrupt
    of the calling thread, ends all threads after the item they are at, and is raised here: of several faults of the
    work, that of the first item.

    Privacy: none of its own: no item is shown or kept.
    """
    items = iter(items)
    if threads > 1:
        ahead = list(islice(items, 2))
        threads = threads if len(ahead) == 2 else 1
        items = _behind(ahead, items)
        del ahead
    if threads == 1:
        for item in items:
            work(item)
        return
    crew = _Crew(threads)
    try:
        for item in items:
            if not crew.take(partial(work, item)):
                break
    except BaseException:
        crew.end_before(0)
        raise
    finally:
        crew.finish()
    if crew.fault is not None:
        raise crew.fault


def _behind(ahead: list[Item], items: Iterator[Item]) -> Iterator[Item]:
    """Those drawn ahead and then the others; none is held once it was given out."""
    while ahead:
        yield ahead.pop(0)
    yield from items


class _Crew:
    """Threads that take numbered tasks from one queue; none is started before there is a task for it."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._threads: list[Thread] = []
        self._queue: SimpleQueue[tuple[int, Callable[[], None]] | None] = SimpleQueue()
        self._room = Semaphore(threads + _WAITING)
        self._taken = 0
        self._end: int | None = None
        self._ending = Lock()
        self.fault: BaseException | None = None

    def take(self, task: Callable[[], None]) -> bool:
        """Wait until there is room for one more task; False where a fault ended the work."""
        self._room.acquire()
        if self._end is not None:
            return False
        self._queue.put((self._taken, task))
        self._taken += 1
        if len(self._threads) < self._most:
            # A daemon: a second interrupt may end the program while a thread is at its last task.
            self._threads.append(Thread(target=self._serve, name="margent-counting", daemon=True))
            self._threads[-1].start()
        return True

    def end_before(self, number: int, fault: BaseException | None = None) -> None:
        """Begin no task from this one on; of several faults keep that of the first task."""
        with self._ending:
            if self._end is None or number < self._end:
                self._end, self.fault = number, fault

    def finish(self) -> None:
        """Let every thread end, and wait for it."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while (taken := self._queue.get()) is not None:
            number, task = taken
            try:
                if self._end is None or number < self._end:
                    task()
            except BaseException as fault:
                self.end_before(number, fault)
            finally:
                del taken, task  # the rows are given back before there is room for others
                self._room.release()
