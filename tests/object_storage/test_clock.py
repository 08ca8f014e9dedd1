"""The clock by which a listing is too old: it may go too fast, never too slowly."""

from __future__ import annotations

import pytest

from statestore_fsspec import _engine
from statestore_fsspec._engine import Engine


def test_the_clock_that_has_gone_further_since_the_last_look_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = [100.0, 1_000_000.0]
    monkeypatch.setattr(_engine, "_read_clocks", lambda: tuple(clocks))
    engine = Engine(lambda: pytest.fail("nothing is asked"), parallel=1, tries=1, backoff=0)

    def passed(up: float, day: float) -> float:
        before = engine.now()
        clocks[:] = clocks[0] + up, clocks[1] + day
        return engine.now() - before

    assert passed(5, 5) == 5
    assert passed(1, 86_400) == 86_400  # restored from a snapshot of yesterday
    assert passed(7, -3_600) == 7  # the clock of the day was set back
    assert passed(86_400, 0) == 86_400
    assert passed(2, 2) == 2
    engine.close()


def test_the_clocks_go_on() -> None:
    engine = Engine(lambda: pytest.fail("nothing is asked"), parallel=1, tries=1, backoff=0)
    looks = [engine.now() for _ in range(1000)]
    assert looks == sorted(looks)
    assert 0 <= looks[0] <= looks[-1] < 60
    engine.close()
