"""Results come in the order of the work, whichever is done first."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from statestore.ahead import in_order


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
