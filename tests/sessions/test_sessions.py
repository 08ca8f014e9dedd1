"""Starting, opening, loading, listing and forking sessions, on both stores."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statestore.errors import Closed, Conflict, Corrupt, Exists, Held, NotFound
from statestore.records import Header, RecordLog, draft, encode
from statestore.sessions import Conf, Session, Sessions, Worker, valid_id
from statestore.store import NEW, Store, Tail
from statestore_local import LocalStore
from statestore_memory import MemoryStore

ID = "0a1b2c3d"
CONF = Conf(model="m", tools="default", workers=[Worker("laptop", ["/data"])], context=200_000)


class Unheld(MemoryStore):
    """A store that cannot hold, as those over buckets cannot."""

    capabilities = replace(MemoryStore.capabilities, holds=False)

    def hold(self, log: str) -> Any:
        raise AssertionError("asked for a hold")

    def holder(self, log: str) -> Any:
        raise AssertionError("asked for a holder")


def story(session: Session) -> None:
    session.append("message", b"hello")
    session.append("text", b"hi", step="s1")
    session.append("step", id="s1", upto=session.transcript().upto - 1)


def test_a_session_starts_with_an_empty_start_and_its_configuration(store: Store) -> None:
    with Sessions(store).start(CONF) as session:
        start, config = session.transcript()
    assert valid_id(session.id)
    assert session.id == session.id.lower()
    assert (start.n, start.kind, start.body) == (1, "start", b"")
    assert (config.n, config.kind, config.body, config.header.type) == (2, "config", CONF.encode(), "application/json")
    assert Sessions(store).load(session.id).conf() == CONF


def test_a_session_without_a_configuration_has_a_start_only(store: Store) -> None:
    with Sessions(store).start() as session:
        assert [record.kind for record in session.transcript()] == ["start"]
        assert session.transcript().conf() is None


def test_a_session_starts_in_one_append(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    appended: list[bytes] = []
    append = store.append

    def counted(log: str, data: bytes, *, at: Tail) -> Tail:
        appended.append(data)
        return append(log, data, at=at)

    monkeypatch.setattr(store, "append", counted)
    Sessions(store).start(CONF, id=ID).close()
    assert appended == [store.read(ID)]


def test_an_id_that_is_taken_is_refused(open_store: Callable[[], Store]) -> None:
    store = open_store()
    sessions = Sessions(store)
    sessions.start(CONF, id=ID).close()
    before = store.read(ID)
    with pytest.raises(Exists, match=f"session={ID}"):
        sessions.start(id=ID)
    with sessions.open(ID) as session:
        with pytest.raises(Exists) as caught:
            Sessions(open_store()).start(id=ID)
        assert caught.value.facts["holder"] is not None
        session.append("message")
    assert store.read(ID)[: len(before)] == before


def test_an_id_whose_log_is_damaged_is_taken(store: Store) -> None:
    store.append(ID, b"no record\nat all\n", at=NEW)
    with pytest.raises(Exists):
        Sessions(store).start(id=ID)
    assert store.read(ID) == b"no record\nat all\n"


def test_a_generated_id_that_is_taken_is_not_used(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(store)
    sessions.start(id="00000000").close()
    offered = iter(["00000000", "00000001", "00000000", "00000001", "00000002"])
    monkeypatch.setattr("statestore.sessions.sessions.new_id", lambda: next(offered))
    sessions.start().close()
    assert sessions.fork("00000000") == "00000002"
    assert list(sessions.list()) == ["00000000", "00000001", "00000002"]


def test_generated_ids_that_are_all_taken_end_in_an_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    Sessions(store).start(id=ID).close()
    monkeypatch.setattr("statestore.sessions.sessions.new_id", lambda: ID)
    with pytest.raises(Exists):
        Sessions(store).start()


def test_of_many_that_start_one_id_at_once_one_wins(open_store: Callable[[], Store]) -> None:
    stores = [open_store() for _ in range(8)]
    gate = threading.Barrier(len(stores))

    def start(store: Store) -> Session | None:
        gate.wait()
        try:
            return Sessions(store).start(CONF, id=ID)
        except Exists:
            return None

    with ThreadPoolExecutor(len(stores)) as pool:
        started = [session for session in pool.map(start, stores) if session]
    assert len(started) == 1
    assert len(started[0].transcript()) == 2
    started[0].close()


def test_a_session_that_is_not_there_is_not_found_and_nothing_is_made(store: Store) -> None:
    sessions = Sessions(store, "teams/a")
    for ask in (sessions.load, sessions.open, sessions.status, sessions.fork):
        with pytest.raises(NotFound):
            ask(ID)
    assert list(store.list()) == []


def test_a_session_that_is_not_there_leaves_no_file_behind(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(NotFound):
            Sessions(store, "teams/a").open(ID)
        assert sorted(tmp_path.rglob("*")) == before


def test_a_session_without_one_whole_record_has_no_records(store: Store) -> None:
    torn = encode(Header(n=1, kind="start"), b"")[:-1]
    store.append(ID, torn, at=NEW)
    for ask in (Sessions(store).load, Sessions(store).open, Sessions(store).status):
        with pytest.raises(NotFound, match="has no records"):
            ask(ID)
    assert store.read(ID) == torn


def test_an_open_session_is_held_and_everybody_reads_it(open_store: Callable[[], Store]) -> None:
    mine, theirs = Sessions(open_store()), Sessions(open_store())
    with mine.start(CONF, id=ID) as session:
        story(session)
        for sessions in (mine, theirs):
            with pytest.raises(Held) as caught:
                sessions.open(ID)
            assert caught.value.holder is not None
            assert sessions.status(ID) == "stepping"
            assert len(sessions.load(ID)) == 5
            assert len(sessions.load(sessions.fork(ID, before=4))) == 3
        with pytest.raises(Held):
            RecordLog(theirs.store, ID).append("message")
        session.append("message")
    assert theirs.status(ID) == "open"
    with theirs.open(ID) as session:
        assert session.append("message").n == 7


def test_an_opening_that_fails_holds_nothing(store: Store) -> None:
    sessions = Sessions(store)
    with sessions.start(id=ID) as session:
        story(session)
    end = store.tail(ID)
    store.append(ID, b"damage\n" * 99, at=end)
    for ask in (lambda: sessions.open(ID), lambda: sessions.start(id=ID)):
        with pytest.raises((Corrupt, Exists)):
            ask()
        assert store.holder(ID) is None


def test_a_store_that_cannot_hold_has_sessions_all_the_same() -> None:
    with Unheld() as store:
        sessions = Sessions(store)
        with sessions.start(CONF, id=ID) as one, sessions.open(ID) as other:
            assert sessions.status(ID) == "closed"
            assert [one.append("message").n, other.append("message").n, one.append("message").n] == [3, 4, 5]
            assert one.transcript().records == other.transcript().records
            assert sessions.status(ID) == "open"


def test_a_closed_session_refuses_everything_and_closing_twice_is_nothing(store: Store) -> None:
    session = Sessions(store).start()
    session.close()
    session.close()
    for ask in (
        lambda: session.append("message"),
        lambda: session.append_many([draft("message")]),
        lambda: session.append_many([]),
        session.transcript,
        lambda: session.close_waiting("no"),
    ):
        with pytest.raises(Closed, match=f"session={session.id}"):
            ask()
    assert len(Sessions(store).load(session.id)) == 1


def test_a_session_may_be_closed_after_its_store(open_store: Callable[[], Store]) -> None:
    store = open_store()
    session = Sessions(store).start(id=ID)
    store.close()
    session.close()
    Sessions(open_store()).open(ID).close()


def test_a_transcript_is_read_once_and_then_only_what_is_new() -> None:
    class Counting(Unheld):
        read_bytes = 0

        def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
            data = super().read(log, start, stop)
            self.read_bytes += len(data)
            return data

    with Counting() as store:
        session = Sessions(store).start()
        session.append("message", bytes(100_000))
        first = session.transcript()
        store.read_bytes = 0
        assert session.transcript() is first
        assert store.read_bytes == 0
        RecordLog(store, session.id).append("message", b"from elsewhere")
        store.read_bytes = 0
        assert [record.body for record in session.transcript()][-1] == b"from elsewhere"
        assert store.read_bytes < 1_000
        assert len(first) == 2


def test_a_session_whose_log_was_made_again_is_noticed() -> None:
    with Unheld() as store:
        session = Sessions(store).start(CONF, id=ID)
        session.transcript()
        store.delete(ID)
        with pytest.raises(NotFound):
            session.transcript()
        Sessions(store).start(CONF, id=ID).append("message", bytes(999))
        for ask in (session.transcript, lambda: session.append("message"), lambda: session.close_waiting("no")):
            with pytest.raises(Conflict, match="open"):
                ask()


def test_a_fork_leaves_its_parent_listed_and_unchanged(store: Store) -> None:
    sessions = Sessions(store)
    with sessions.start(CONF, id=ID) as session:
        story(session)
    before, tail = store.read(ID), store.tail(ID)

    child = sessions.fork(ID, before=4, to="00000001")
    whole = sessions.fork(ID)
    with sessions.open(child) as session:
        session.append("message", b"another turn")

    assert list(sessions.list()) == sorted([child, whole, ID])
    assert (store.read(ID), store.tail(ID)) == (before, tail)
    assert store.read(whole) == before
    assert [record.raw for record in sessions.load(child)][:3] == [record.raw for record in sessions.load(ID)][:3]
    assert [record.n for record in sessions.load(child)] == [1, 2, 3, 4]


def test_a_fork_is_one_copy_inside_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    with MemoryStore() as store:
        sessions = Sessions(store)
        with sessions.start(CONF, id=ID) as session:
            story(session)
        copies: list[tuple[str, str]] = []
        copy = store.copy

        def counted(source: str, target: str, *, stop: int | None = None) -> Tail:
            copies.append((source, target))
            return copy(source, target, stop=stop)

        monkeypatch.setattr(store, "copy", counted)
        monkeypatch.setattr(store, "append", None)
        monkeypatch.setattr(store, "hold", None)
        sessions.fork(ID, before=3, to="00000001")
        assert copies == [(ID, "00000001")]


def test_a_fork_to_an_id_that_is_taken_is_refused(open_store: Callable[[], Store]) -> None:
    store = open_store()
    sessions = Sessions(store)
    sessions.start(CONF, id=ID).close()
    other = sessions.start(id="00000001")
    before = store.read("00000001")
    with pytest.raises(Exists):
        Sessions(open_store()).fork(ID, to="00000001")
    other.close()
    for target in ("00000001", ID):
        with pytest.raises(Exists):
            sessions.fork(ID, to=target)
    assert store.read("00000001") == before


def test_a_fork_of_more_than_there_is_is_not_found(store: Store) -> None:
    sessions = Sessions(store)
    sessions.start(CONF, id=ID).close()
    assert len(sessions.load(sessions.fork(ID, before=3))) == 2
    with pytest.raises(NotFound):
        sessions.fork(ID, before=4)
    for nothing in (1, 0, -1):
        with pytest.raises(ValueError, match="at least one record"):
            sessions.fork(ID, before=nothing)
        with pytest.raises(ValueError, match="at least one record"):
            sessions.load(ID, before=nothing)
    assert [record.n for record in sessions.load(ID, before=2)] == [1]
    assert [record.n for record in sessions.load(ID, before=99)] == [1, 2]


def test_a_torn_session_loads_up_to_the_tear_and_opens_without_it(tmp_path: Path) -> None:
    with LocalStore(tmp_path, sync="never") as store:
        sessions = Sessions(store)
        with sessions.start(CONF, id=ID) as session:
            story(session)
        whole = store.read(ID)
        last = encode(Header(n=6, kind="message"), b"body")
        for kept in range(1, len(last)):
            (tmp_path / f"{ID}.state").write_bytes(whole + last[:kept])
            assert len(sessions.load(ID)) == 5
            assert sessions.status(ID) == "closed"
            assert store.read(sessions.fork(ID)) == whole
            with sessions.open(ID) as session:
                assert store.read(ID) == whole
                assert session.append("message").n == 6


def test_a_corrupt_session_says_where_and_what_stands_before_is_read(store: Store) -> None:
    sessions = Sessions(store)
    pieces = [encode(Header(n=n, kind="message"), b"body") for n in range(1, 6)]
    pieces[2] = pieces[2].replace(b"body", b"bo\0\0XX")
    store.append(ID, b"".join(pieces), at=NEW)
    before = store.read(ID)
    for ask in (sessions.load, sessions.open, sessions.status, sessions.fork):
        with pytest.raises(Corrupt) as caught:
            ask(ID)
        assert (caught.value.record, caught.value.offset) == (3, len(pieces[0]) + len(pieces[1]))
    assert [record.n for record in sessions.load(ID, before=3)] == [1, 2]
    with sessions.open(sessions.fork(ID, before=3)) as session:
        assert session.append("message").n == 3
    assert store.read(ID) == before
    assert store.holder(ID) is None


def test_records_keep_their_order_when_the_clock_stands_still(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_790_000_000_000_000_000)
    with Sessions(store).start() as session:
        for number in range(1_000):
            session.append("message", b"%d" % number)
        loaded = Sessions(store).load(session.id)
    assert [record.body for record in loaded][1:] == [b"%d" % number for number in range(1_000)]
    assert len({record.header.time for record in loaded}) == 1
    assert [record.n for record in loaded.context()] == list(range(2, 1_002))


def test_records_with_one_time_or_times_that_run_backwards_keep_their_order(store: Store) -> None:
    times = ["2026-09-28T12:00:00Z"] * 3 + [f"20{year:02d}-01-01T00:00:00Z" for year in range(30, 20, -1)]
    with Sessions(store).start() as session:
        for number, time in enumerate(times):
            session.append("message", b"%d" % number, time=time)
        context = session.transcript().context()
    assert [record.body for record in context] == [b"%d" % number for number in range(len(times))]


AWKWARD = [
    b"null",
    b"0",
    b'""',
    b"[]",
    b"{}",
    b'{"":{"":[null,[],{}]}}',
    b'{"big":123456789012345678901234567890,"small":1e-400,"float":1.0}',
    '{"é":"日本語 \U0001f600","n":"\\u0000"}'.encode(),
    b"[" * 100 + b"]" * 100,
]


@pytest.mark.parametrize("value", AWKWARD)
def test_awkward_metadata_comes_back_as_they_were(store: Store, value: bytes) -> None:
    words = ["", "日本語", "\u2028\u2029\x85", "\x00\x1f\x7f", '"\\/<>&', "a" * 10_000]
    with Sessions(store).start() as session:
        for word in words:
            session.append("message", word.encode(), via=word, source=word, cache=value)
    loaded = Sessions(store).load(session.id)
    assert [record.header.via for record in loaded][1:] == words
    assert [record.header.source for record in loaded][1:] == words
    assert {bytes(record.header.cache) for record in list(loaded)[1:]} == {value}


@pytest.fixture
def huge(tmp_path: Path) -> Iterator[Sessions]:
    """A session of 64 MiB: two records of 24 MiB of nothing, and 16,000 of 1 KiB."""
    with (tmp_path / f"{ID}.state").open("wb") as file:
        file.write(encode(Header(n=1, kind="start"), b""))
        for n in (2, 3):
            file.write(encode(Header(n=n, kind="message"), bytes(24 << 20)))
        for n in range(4, 16_004):
            file.write(encode(Header(n=n, kind="message"), bytes(1024)))
    with LocalStore(tmp_path, sync="never") as store:
        yield Sessions(store)


@pytest.mark.parametrize("what", ["status", "fork", "list", "open"])
def test_a_huge_session_is_not_held_in_memory(huge: Sessions, what: str) -> None:
    calls: dict[str, Callable[[], Any]] = {
        "status": lambda: huge.status(ID),
        "fork": lambda: huge.fork(ID, before=16_000),
        "list": lambda: list(huge.list()),
        "open": lambda: huge.open(ID).append("message"),
    }
    tracemalloc.start()
    try:
        calls[what]()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_starting_a_session_that_is_there_cuts_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, sync="never")
    with Sessions(store).start(CONF, id=ID):
        pass
    file = tmp_path / f"{ID}.state"
    file.write_bytes(file.read_bytes()[:-5])
    before = file.read_bytes()
    with pytest.raises(Exists):
        Sessions(store).start(id=ID)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
