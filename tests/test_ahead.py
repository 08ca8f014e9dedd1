"""Results come in the order of the work, whichever is done first."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import count
from threading import Event

import pytest

from statestore.ahead import in_order, read_ahead


def done(result: str | None) -> Future[str | None]:
    future: Future[str | None] = Future()
    future.set_result(result)
    return future


def test_results_and_futures_come_in_order_and_what_brings_none_does_not() -> None:
    first: Future[str | None] = Future()

    def work() -> Iterator[str | Future[str | None]]:
        yield first
        yield "second"
        yield done(None)
        first.set_result("first")
        yield done("fourth")

    assert [*in_order(work(), 10)] == ["first", "second", "fourth"]


def test_what_is_ready_is_given_before_more_is_asked_for() -> None:
    asked: list[int] = []

    def work() -> Iterator[str]:
        for number in range(3):
            asked.append(number)
            yield str(number)

    results = in_order(work(), 10)
    assert next(results) == "0"
    assert asked == [0]


def test_no_more_is_asked_for_than_may_wait() -> None:
    slow: list[Future[str | None]] = []

    def work() -> Iterator[Future[str | None]]:
        for number in range(10):
            slow.append(Future())
            if number == 3:
                slow[0].set_result("0")  # else it would be waited for without end
            yield slow[-1]

    results = in_order(work(), 3)
    assert next(results) == "0"
    assert len(slow) == 4


def test_an_error_of_a_future_is_raised_in_its_place() -> None:
    failed: Future[str | None] = Future()
    failed.set_exception(ValueError("broken"))
    results = in_order(["first", failed, "third"], 10)
    assert next(results) == "first"
    with pytest.raises(ValueError, match="broken"):
        next(results)


def test_streams_come_in_order_with_all_that_they_hold() -> None:
    sources = (range(size) for size in (5, 0, 3, 100, 1))
    assert [[*stream] for stream in read_ahead(sources, workers=2, limit=3)] == [
        [*range(size)] for size in (5, 0, 3, 100, 1)
    ]


def test_the_next_streams_are_read_while_the_first_one_is_not_done_yet() -> None:
    second = Event()

    def one() -> Iterator[str]:
        assert second.wait(10)
        yield "one"

    def two() -> Iterator[str]:
        second.set()
        yield "two"

    assert [[*stream] for stream in read_ahead(iter([one(), two()]), workers=2, limit=1)] == [["one"], ["two"]]


def test_no_more_is_read_ahead_than_there_is_room_for() -> None:
    read = []

    def source() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    streams = read_ahead([source()], workers=1, limit=2)
    stream = iter(next(streams))
    for number in range(50):
        assert next(stream) == number
        assert len(read) <= number + 1 + 2 + 2  # waiting; in the hand of the reader; on its way
    streams.close()
    assert len(read) < 60


def test_an_error_comes_where_it_happened_and_the_other_streams_go_on() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("gone")

    seen: list[int] = []
    streams = read_ahead([broken(), iter([7])], workers=2, limit=5)
    stream = iter(next(streams))
    seen.append(next(stream))
    with pytest.raises(ValueError, match="gone"):
        seen.append(next(stream))
    assert (seen, [*next(streams)], [*streams]) == ([1], [7], [])


def test_a_stream_that_is_left_in_the_middle_ends_its_thread_and_the_rest_come() -> None:
    ended = []

    def endless() -> Iterator[int]:
        try:
            yield from count()
        finally:
            ended.append(True)

    sources = [endless() for _ in range(5)]
    assert [next(iter(stream)) for stream in read_ahead(iter(sources), workers=2, limit=1)] == [0] * 5
    # All threads have ended by now, or this would not have.
    del sources
    gc.collect()
    assert ended == [True] * 5
