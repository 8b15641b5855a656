"""Work on several threads: all of it once, in no order that matters, and ended by the first fault or interrupt."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from margent.counts.spreading import spread

THREADS = [1, 2, 3, 8]


def counting_threads() -> int:
    return sum(thread.name == "margent-counting" for thread in threading.enumerate())


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("items", [0, 1, 2, 100])
def test_every_item_is_worked_on_once(threads: int, items: int) -> None:
    done: list[int] = []
    spread(range(items), done.append, threads)
    assert sorted(done) == list(range(items))
    assert counting_threads() == 0


def test_a_single_item_is_worked_on_where_it_was_asked_for() -> None:
    seen: list[str] = []
    spread([0], lambda _: seen.append(threading.current_thread().name), 4)
    spread([0, 1], lambda _: seen.append(threading.current_thread().name), 4)
    assert seen == [threading.current_thread().name, "margent-counting", "margent-counting"]


@pytest.mark.parametrize("threads", THREADS)
def test_no_item_is_kept_once_it_is_done(threads: int) -> None:
    class Rows:
        """Something that can be watched."""

    watched: list[weakref.ref[Rows]] = []
    alive: list[int] = []

    def items() -> Iterator[Rows]:
        for _ in range(40):
            alive.append(sum(each() is not None for each in watched))
            rows = Rows()
            watched.append(weakref.ref(rows))
            yield rows
            del rows

    spread(items(), lambda _: time.sleep(0.001), threads)
    assert max(alive) <= threads + 2


@pytest.mark.parametrize("threads", THREADS)
def test_no_more_items_are_held_than_promised(threads: int) -> None:
    lock, held, most = threading.Lock(), 0, 0

    def items() -> Iterator[int]:
        nonlocal held, most
        for item in range(50):
            with lock:
                held += 1
                most = max(most, held)
            yield item

    def work(_: int) -> None:
        nonlocal held
        time.sleep(0.001)
        with lock:
            held -= 1

    spread(items(), work, threads)
    # One more is drawn, and waits for room.
    assert most <= threads + 2


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_fault_of_the_work_is_raised_and_ends_it(threads: int) -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for item in range(10_000):
            drawn.append(item)
            yield item

    def work(item: int) -> None:
        if item >= 5:
            raise ValueError(str(item))

    with pytest.raises(ValueError, match=r"^5$"):
        spread(items(), work, threads)
    assert len(drawn) < 5 + 3 * threads + 3
    assert counting_threads() == 0


@pytest.mark.parametrize("threads", THREADS)
def test_a_fault_of_the_items_is_raised_after_the_threads_have_ended(threads: int) -> None:
    def items() -> Iterator[int]:
        yield from range(20)
        raise KeyError("broken off")

    done: list[int] = []
    with pytest.raises(KeyError):
        spread(items(), done.append, threads)
    assert counting_threads() == 0
    ended = len(done)
    time.sleep(0.01)
    assert len(done) == ended


@pytest.mark.parametrize("threads", THREADS)
def test_an_interrupt_ends_the_work_at_once(threads: int) -> None:
    """The calling thread waits for room: the signal must reach it there, and no waiting item is begun."""
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            signal.raise_signal(signal.SIGINT) if threads == 1 else signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.05)

    main = threading.main_thread().ident
    assert main is not None
    with pytest.raises(KeyboardInterrupt):
        spread(range(10_000), work, threads)
    assert len(begun) <= 2 * threads + 2
    assert counting_threads() == 0
