"""``grep``: the records whose bodies match a pattern."""

from __future__ import annotations

import re
import signal
import sys
import warnings
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from statestore.cli.progress import progress
from statestore.cli.safe import decode
from statestore.cli.screen import Part, Screen, columns, complain, emit
from statestore.cli.targets import Json, LogArgument, StoreArgument, find, is_file, open_for

if TYPE_CHECKING:
    from statestore.records import Record
    from statestore.store import Store

__all__ = ["grep"]

_AROUND: Final = 60  # bytes that are shown in front of a match
_EXCERPT: Final = 200  # bytes that are shown from there on
_WORKERS: Final = 8  # logs that are read at once
_BATCH: Final = 1 << 20  # bytes of bodies that are searched at once: each worker holds three of these
_MOST: Final = 256  # records of them
_PATIENCE: Final = 10.0  # seconds that one body may take, and one more for each 10 MB of it


def grep(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="A regular expression, as Python has them.")],
    store: StoreArgument,
    log: LogArgument = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Only logs whose names begin so.", show_default=False)] = "",
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only records of this kind; again for each.")] = None,
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Take a-z and A-Z for the same.")] = False,
    fixed: Annotated[bool, typer.Option("--fixed", "-F", help="Take PATTERN for text.")] = False,
    logs: Annotated[bool, typer.Option("--logs", "-l", help="Only the names of logs with a match.")] = False,
    number: Annotated[bool, typer.Option("--count", "-c", help="Only how many records match in each log.")] = False,
    json: Json = False,
) -> None:
    """Find records by what their bodies hold.

    One log is read, or all of a store. A body is bytes: . stands for one of them, ^ and $ for the ends of a line, and
    a letter in PATTERN for its UTF-8. Elsewhere than on a terminal a match is the log, the record's number, its kind
    and the line, each behind a tab.

    The status is 0 where something matches, and 1 where nothing does or a log cannot be read; the others still are.

    \b
    Examples:
      statestore grep 'refund|chargeback' ./sessions
      statestore grep -i timeout ./sessions 1a2b3c4d --kind result
      statestore grep -F 'a.b()' s3://bucket/agents --prefix teams/a/ -l
    """
    if logs and number:
        raise typer.BadParameter("give --logs or --count, not both")
    expression = _compile(pattern, fixed=fixed, ignore_case=ignore_case)
    one = find(store, log) if log is not None or is_file(store) else None
    if one and prefix:
        raise typer.BadParameter("--prefix chooses among all logs: leave LOG out")

    from statestore.errors import NotFound, StateStoreError

    screen = Screen()
    found = failed = False
    with (
        open_for(one.store if one else store) as opened,
        closing(_read(opened, [one.log] if one else None, prefix, frozenset(kind or ()))) as read,
    ):
        for name, batches in progress(read, "grep"):
            matching, error = 0, None
            try:
                for batch in batches:
                    for match in _search(expression, name, batch, all_of_them=not (logs or number)):
                        matching += 1
                        if not logs and not number:
                            _tell(screen, match, json=json)
                    if logs and matching:
                        break
            except StateStoreError as failure:
                error = failure
            if matching and (logs or number):
                _name(name, None if logs else matching, json=json)
            found = found or matching > 0
            if error and one:
                raise error
            if error and not isinstance(error, NotFound):  # it was deleted meanwhile
                failed = True
                complain(f"error: {error}")
    if not found and not json and sys.stdout.isatty():
        screen.put(("no match", "dim"))
    if failed or not found:
        raise typer.Exit(1)


class _Match(NamedTuple):
    """A record with a match: the first one in its body, and how many there are."""

    log: str
    number: int
    record: Record
    start: int
    end: int
    matches: int


def _compile(pattern: str, *, fixed: bool, ignore_case: bool) -> re.Pattern[bytes]:
    text = pattern.encode("utf-8", "surrogateescape")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what may mean something else in a later Python
            return re.compile(re.escape(text) if fixed else text, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise typer.BadParameter(f"the pattern is no regular expression: {error}; --fixed takes it for text") from error


def _read(
    store: Store, names: Sequence[str] | None, prefix: str, kinds: Collection[str]
) -> Generator[tuple[str, Iterable[list[tuple[int, Record]]]]]:
    """Yield each log's name and its records in batches, in order; threads read ahead, in bounded memory."""
    from statestore.ahead import read_ahead

    logs = iter(names) if names is not None else (info.name for info in store.list(prefix))
    asked: deque[str] = deque()

    def sources() -> Iterator[Iterator[list[tuple[int, Record]]]]:
        for name in logs:
            asked.append(name)
            yield _batches(store, name, kinds)

    with closing(read_ahead(sources(), workers=_WORKERS, limit=1)) as streams:
        for stream in streams:
            yield asked.popleft(), stream


def _batches(store: Store, name: str, kinds: Collection[str]) -> Iterator[list[tuple[int, Record]]]:
    from statestore.errors import StateStoreError
    from statestore.records import RecordLog

    batch: list[tuple[int, Record]] = []
    size = 0
    try:
        for number, record in enumerate(RecordLog(store, name), 1):
            if kinds and record.kind not in kinds:
                continue
            batch.append((number, record))
            size += len(record.body)
            if size >= _BATCH or len(batch) == _MOST:
                yield batch
                batch, size = [], 0
    except StateStoreError:
        yield batch
        raise
    yield batch


def _search(
    expression: re.Pattern[bytes], log: str, batch: list[tuple[int, Record]], *, all_of_them: bool
) -> list[_Match]:
    """Return what matches in a batch; a pattern that never comes to an end is given up."""
    found: list[_Match] = []
    number = 0
    with _patience(sum(len(record.body) for _, record in batch)) as out_of_patience:
        try:
            for number, record in batch:
                first = expression.search(record.body)
                if first is not None:
                    rest = sum(1 for _ in expression.finditer(record.body, first.start())) if all_of_them else 1
                    found.append(_Match(log, number, record, first.start(), first.end(), rest))
        except out_of_patience:
            raise typer.BadParameter(
                f"the pattern takes too long on record {number} of {log}: let no repetition stand in another one"
            ) from None
    return found


@contextmanager
def _patience(size: int) -> Iterator[type[BaseException]]:
    """Raise the exception that is given where the time for so many bytes has run out: nothing else ends a match."""

    class OutOfPatience(BaseException):
        pass

    def give_up(*_: object) -> None:
        raise OutOfPatience

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE + size / 10e6)
    try:
        yield OutOfPatience
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _tell(screen: Screen, match: _Match, *, json: bool) -> None:
    record = match.record
    before, matched, after = _excerpt(record.body, match.start, match.end)
    if json:
        row = {"log": match.log, "n": match.number, "offset": record.offset, "kind": record.kind, "id": record.id}
        emit(row | {"matches": match.matches, "at": match.start, "line": before + matched + after})
    elif sys.stdout.isatty():
        from statestore.cli.story import STYLES

        lead: list[Part] = [(match.log, "magenta"), (f" {match.number:>5}  ", "dim")]
        lead.append((f"{record.kind:<8}  ", STYLES.get(record.kind, "yellow")))
        more = f"  (+{match.matches - 1:,})" if match.matches > 1 else ""
        screen.put(before, (matched, "bold red"), after, (more, "dim"), lead=lead)
    else:
        columns(match.log, str(match.number), record.kind, before + matched + after)


def _excerpt(body: bytes, start: int, end: int) -> tuple[str, str, str]:
    """Return the line of a match as text: what stands in front of it, the match, and what stands behind it."""
    left = max(body.rfind(b"\n", 0, start) + 1, start - _AROUND)
    newline = body.find(b"\n", end)
    line = len(body) if newline < 0 else newline
    right = min(line, max(end, left + _EXCERPT))
    match_end = min(end, start + _EXCERPT)
    # A character is not cut in the middle.
    while left < start and body[left] & 0xC0 == 0x80:
        left += 1
    while end < right < line and body[right] & 0xC0 == 0x80:
        right -= 1
    more = "…" if match_end < end or right < line else ""
    return (
        decode(body[left:start]),
        decode(body[start:match_end]),
        decode(body[match_end:right] if match_end == end else b"") + more,
    )


def _name(log: str, count: int | None, *, json: bool) -> None:
    if json:
        emit({"log": log} | ({} if count is None else {"count": count}))
    else:
        columns(log, *([] if count is None else [str(count)]))
