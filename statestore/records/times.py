"""How times are spelled in a header: as Go reads and writes RFC 3339."""

from __future__ import annotations

import re
import time as clock
from datetime import date, timedelta
from typing import Final

__all__ = ["COMMON", "now", "spell_time", "time_is_valid", "utc_day"]

# Reading takes what Go's parser takes: one digit for the hour, a comma before the fraction, any number of digits
# behind it, offsets up to +24:60. Writing takes years and offsets that Go can hold but RFC 3339 cannot spell, to
# refuse them by name.
_READ = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"T(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2}):(?P<minutes>[0-9]{2}))"
)
_WRITE = re.compile(
    _READ.pattern.replace("(?P<year>[0-9]{4})", "(?P<year>-?[0-9]{4,9})").replace(
        "(?P<minutes>[0-9]{2}))", "(?P<minutes>[0-9]{2})(?::(?P<seconds>[0-9]{2}))?)"
    )
)
# The times that nearly every record has: all days but the 29th of February.
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_DAY_AND_TIME = rf"[0-9]{{4}}-{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
COMMON = _DAY_AND_TIME + r"(?:\.[0-9]{1,9})?Z"
_is_common = re.compile(COMMON).fullmatch
# Those of them that are spelled as Go writes them already.
_WRITTEN = re.compile(_DAY_AND_TIME + r"(?:\.[0-9]{0,8}[1-9])?Z")
_MILLISECONDS = [f".{ms:03d}".rstrip("0").rstrip(".") + "Z" for ms in range(1000)]
_MS: Final = 1_000_000  # both in nanoseconds
_SECOND: Final = 1000 * _MS
_last: tuple[int, int, str] = (0, 0, "1970-01-01T00:00:00Z")


def now() -> str:
    """Return the present time in UTC, to the millisecond."""
    global _last
    present = clock.time_ns()
    begin, end, text = _last
    if not begin <= present < end:
        second, ms = divmod(present // _MS, 1000)
        # A new second is spelled by the library, a new millisecond only changes the end.
        head = text[:19] if second == begin // _SECOND else clock.strftime("%Y-%m-%dT%H:%M:%S", clock.gmtime(second))
        text = head + _MILLISECONDS[ms]
        begin = present - present % _MS
        _last = (begin, begin + _MS, text)
    return text


def time_is_valid(text: str) -> bool:
    """Say whether Go reads `text` as a time."""
    return _is_common(text) is not None or _is_real(_READ.fullmatch(text))


def spell_time(text: str) -> str:
    """Return a time as Go writes it: the fraction without trailing zeros, no offset as ``Z``.

    Raises:
        ValueError: it is no time, its year is outside 0 to 9999, or its offset is 24 hours or more.
    """
    if text is _last[2] or _WRITTEN.fullmatch(text) is not None:
        return text
    match = _WRITE.fullmatch(text)
    if not _is_real(match):
        raise ValueError(f"not a time such as 2026-09-28T12:00:00.5Z: {text[:60]!a}")
    assert match is not None
    part = match.groupdict(default="")
    if part["year"].startswith("-") or len(part["year"]) > 4:
        raise ValueError(f"the year must lie between 0 and 9999: {part['year']}")
    fraction = part["fraction"][:9].rstrip("0")
    offset = (int(part["hours"] or 0) * 60 + int(part["minutes"] or 0)) * 60 + int(part["seconds"] or 0)
    hours, minutes = divmod(offset // 60, 60)
    if hours > 23:
        raise ValueError(f"the offset must be less than 24 hours: {text[-9:]}")
    # An offset of less than a minute is still not UTC; its sign is lost with its seconds.
    sign = part["sign"] if offset >= 60 else "+"
    return (
        f"{part['year']}-{part['month']}-{part['day']}T{int(part['hour']):02d}:{part['minute']}:{part['second']}"
        + (f".{fraction}" if fraction else "")
        + (f"{sign}{hours:02d}:{minutes:02d}" if offset else "Z")
    )


def utc_day(text: str) -> str:
    """Return the day in UTC, as ``2026-09-28``, of a time that is valid."""
    match = None if text.endswith("Z") else _READ.fullmatch(text)
    if match is None:
        return text[:10]
    hour, minute, hours, minutes = (int(match[name]) for name in ("hour", "minute", "hours", "minutes"))
    ahead = hours * 60 + minutes
    days = (hour * 60 + minute + (ahead if match["sign"] == "-" else -ahead)) // (24 * 60)
    try:
        return (date.fromisoformat(text[:10]) + timedelta(days)).isoformat()
    except (ValueError, OverflowError):  # the year 0, or the day behind the year 9999
        return text[:10]


def _is_real(match: re.Match[str] | None) -> bool:
    """Say whether the numbers of a matched time are a day and a time of day."""
    if match is None:
        return False
    year, month, day = (int(match[name]) for name in ("year", "month", "day"))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return (
        1 <= month <= 12
        and 1 <= day <= days[month - 1]
        and int(match["hour"]) < 24
        and int(match["minute"]) < 60
        and int(match["second"]) < 60
        and int(match["hours"] or 0) <= 24
        and int(match["minutes"] or 0) <= 60
    )
