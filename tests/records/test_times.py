"""The day in UTC of a time as a header spells it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore.records.times import time_is_valid, utc_day


@pytest.mark.parametrize(
    ("time", "day"),
    [
        ("2026-09-28T23:59:59.999Z", "2026-09-28"),
        ("2026-09-28T00:00:00+00:00", "2026-09-28"),
        ("2026-09-28T01:59:59+02:00", "2026-09-27"),
        ("2026-09-28T02:00:00+02:00", "2026-09-28"),
        ("2026-09-28T22:00:00-02:00", "2026-09-29"),
        ("2026-09-28T21:59:59-02:00", "2026-09-28"),
        ("2026-12-31T20:00:00-05:30", "2027-01-01"),
        ("2024-03-01T00:30:00+01:00", "2024-02-29"),
        ("2026-09-28T1:00:00,5+02:00", "2026-09-27"),
        ("2026-09-28T00:00:00+24:60", "2026-09-26"),
        ("2026-09-28T23:00:00-24:60", "2026-09-30"),
        ("0000-01-01T00:00:00+01:00", "0000-01-01"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01"),
        ("9999-12-31T23:00:00-01:00", "9999-12-31"),
        ("0001-01-01T00:00:00Z", "0001-01-01"),
    ],
)
def test_a_day_is_one_in_utc(time: str, day: str) -> None:
    assert time_is_valid(time)
    assert utc_day(time) == day


@given(
    st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)),
    st.integers(-23 * 60 - 59, 23 * 60 + 59).filter(bool),
)
def test_it_is_what_the_library_says(moment: datetime, minutes: int) -> None:
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert utc_day(there.isoformat()) == there.astimezone(UTC).date().isoformat()
