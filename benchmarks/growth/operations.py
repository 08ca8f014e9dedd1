"""What is measured: operations, each on storages of growing size, and checked.

An operation is a generator. It opens what it needs, yields the call that is measured, is sent its result, and checks
it. Each measurement begins with a store that knows nothing, unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from benchmarks.growth.places import Place
from statestore import NEW, Sessions, Store
from statestore.conversations import Conversations, ConversationState
from statestore.records import RecordLog

__all__ = ["Act", "BODY", "OPERATIONS", "Operation"]

BODY = b"b" * 1024
LOG = "00000000"  # the name of a log, and a session's id
FORK = "ffffffff"

Act = Generator[Callable[[], Any], Any, None]


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: what it is called in the rows.
        fill: puts so many records, logs or messages into a store.
        act: does it once.
        must: how its cost must grow with that number, as a power of it.
    """

    name: str
    fill: Callable[[Store, int], None]
    act: Callable[[Place, int], Act]
    must: float = 0.0

    @property
    def of(self) -> str:
        """What there are so and so many of."""
        return {records: "records", logs: "logs", conversation: "messages"}[self.fill]


def records(store: Store, size: int) -> None:
    """A session of one append a record, each with a body of 1 KiB."""
    log = RecordLog(store, LOG)
    with log.hold():
        log.append("start", BODY, expect=1)
        for _ in range(1, size):
            log.append("message", BODY)


def logs(store: Store, size: int) -> None:
    """Sessions of one small record."""
    data = RecordLog(store, LOG).append("start", expect=1).raw
    for number in range(1, size):
        store.append(f"{number:08x}", data, at=NEW)


def conversation(store: Store, size: int) -> None:
    """A conversation of one append a message of 400 characters."""
    with Conversations(store) as talks:
        talks.save(ConversationState(id="c", user_id="u", metadata={"topic": "trains"}))
        for number in range(size):
            talks.log_append("c", number, [message(number)])


def message(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"{number:0400}"}


def append(place: Place, size: int) -> Act:
    """By somebody who has appended to the log before."""
    with place.open() as store:
        log = RecordLog(store, LOG)
        before = log.append("message", BODY).n
        record = yield partial(log.append, "message", BODY)
        assert size < before < record.n == before + 1


def open_to_append(place: Place, size: int) -> Act:
    with place.open() as store:
        number = yield RecordLog(store, LOG).recover
        assert number > size


def open_session(place: Place, size: int) -> Act:
    with place.open() as store, (yield partial(Sessions(store).open, LOG)) as session:
        assert session.log.end[1] > size


def last_ten(place: Place, size: int) -> Act:
    with place.open() as store:
        found = yield partial(RecordLog(store, LOG).last, 10)
        assert [record.n - found[0].n for record in found] == list(range(10))
        assert found[-1].n >= size
        assert all(record.body == BODY for record in found)


def fork(place: Place, size: int) -> Act:
    with place.open() as store:
        middle = size // 2
        copy = yield partial(RecordLog(store, LOG).copy, FORK, before=middle + 1)
        assert copy.end[1] == middle + 1
        assert store.tail(FORK).size == copy.end[0].size
        store.delete(FORK)


def load(place: Place, size: int) -> Act:
    with place.open() as store:
        transcript = yield partial(Sessions(store).load, LOG)
        assert len(transcript) >= size


def list_all(place: Place, size: int) -> Act:
    with place.open() as store:
        rows = yield lambda: list(store.list())
        assert len(rows) == size


def list_page(place: Place, size: int) -> Act:
    """A hundred ids from the middle on."""
    with place.open() as store:
        ids = yield lambda: list(islice(Sessions(store).list(after=f"{size // 2:08x}"), 100))
        assert len(ids) == min(100, size - size // 2 - 1)


def list_tails(place: Place, size: int) -> Act:
    with place.open() as store:
        rows = yield lambda: list(store.list(tails=True))
        assert len(rows) == size
        assert all(row.tail.size > 0 for row in rows)


def start(place: Place, size: int) -> Act:
    with place.open() as store:
        with (yield partial(Sessions(store).start, id=FORK)) as session:
            assert session.log.end[1] == 2
        store.delete(FORK)


def recent(place: Place, size: int) -> Act:
    with place.open() as store, Conversations(store) as talks:
        found = yield partial(talks.load_recent_messages, "c", 5)
        assert [one.content for one in found] == [one["content"] for one in map(message, range(size - 5, size))]


def load_conversation(place: Place, size: int) -> Act:
    with place.open() as store, Conversations(store) as talks:
        state = yield partial(talks.load, "c")
        assert len(state.messages) == size


def change(place: Place, size: int) -> Act:
    with place.open() as store, Conversations(store) as talks:
        yield partial(talks.merge_metadata, "c", {"topic": "boats"})
        assert talks.load_metadata("c") == {"topic": "boats"}


def change_again(place: Place, size: int) -> Act:
    """By somebody who has changed the conversation before."""
    with place.open() as store, Conversations(store) as talks:
        talks.merge_metadata("c", {"topic": "planes"})
        yield partial(talks.merge_metadata, "c", {"topic": "boats"})
        assert talks.load_metadata("c") == {"topic": "boats"}


OPERATIONS = (
    Operation("open to append", records, open_to_append),
    Operation("open a session", records, open_session),
    Operation("last(10)", records, last_ten),
    Operation("fork at the middle", records, fork, must=1),
    Operation("load a session", records, load, must=1),
    Operation("append a record", records, append),
    Operation("start a session", logs, start),
    Operation("list", logs, list_all, must=1),
    Operation("list with tails", logs, list_tails, must=1),
    Operation("list a page of 100", logs, list_page),
    Operation("recent 5 messages", conversation, recent),
    Operation("load a conversation", conversation, load_conversation, must=1),
    Operation("change a conversation", conversation, change),
    Operation("change it again", conversation, change_again),
)
