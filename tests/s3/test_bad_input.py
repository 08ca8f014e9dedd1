"""What is wrong with the bucket, the rights or the objects is told in our words, with the object's name; nothing is
guessed and nothing is written."""

from __future__ import annotations

import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from statestore import NEW, Store, Tail, open_store
from statestore.errors import Corrupt, PluginError, StateStoreError, Unavailable
from statestore.store import Problem
from statestore_fsspec import Settings, _maintenance
from statestore_fsspec import _layout as layout
from tests.faultproxy import Fault, FaultProxy
from tests.s3.harness import options
from tests.s3.raw import Place, connection
from tests.servers import Rgw

SMALL = Settings(windows=(20, 40))
CALLS: dict[str, Callable[[Store], Any]] = {
    "read": lambda store: store.read("a"),
    "tail": lambda store: store.tail("a"),
    "stream": lambda store: b"".join(store.stream("a")),
    "snapshot": lambda store: store.snapshot("a").read(),
    "append": lambda store: store.append("a", b"more", at=Tail(50, "0000000003.0123456789abcdef")),
    "create": lambda store: store.append("a", b"new", at=NEW),
    "copy": lambda store: store.copy("a", "to"),
    "delete": lambda store: store.delete("a"),
    "list": lambda store: list(store.list()),
    "list with tails": lambda store: list(store.list(tails=True)),
    "compact": lambda store: store.maintenance.compact("a"),
    "collect": lambda store: list(store.maintenance.collect()),
}


@pytest.fixture(scope="session")
def files(rgw: Rgw) -> Any:
    return connection(rgw)


@pytest.fixture
def spot(rgw: Rgw, place: str) -> Place:
    """A place with settings."""
    spot = Place(rgw, place)
    spot.put("statestore.json", SMALL.spell())
    return spot


def refused(server: Rgw, caplog: pytest.LogCaptureFixture, call: Callable[[], Any]) -> Unavailable:
    """Return the error that a call raises for the storage's sake; no word about it has a credential in it."""
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as caught:
        call()
    error: BaseException | None = caught.value
    assert caught.value.__cause__ is not None
    words = [record.getMessage() for record in caplog.records if not record.name.startswith("botocore.auth")]
    while error is not None:
        words += [str(error), repr(error), repr(getattr(error, "facts", ""))]
        error = error.__cause__ or error.__context__
    assert not [word for word in words if server.secret_key in word]
    return caught.value


# ---- who may do what ----


def test_a_bucket_that_is_not_there_is_named(rgw, caplog):
    store = open_store("s3://there-is-none-of-that-name/x", **options(rgw))
    for call in (store.tail, store.read, store.delete, lambda log: list(store.list(log))):
        error = refused(rgw, caplog, lambda call=call: call("a"))
        assert "there is no such bucket" in error.message
        assert (error.facts["bucket"], error.retry) == ("there-is-none-of-that-name", False)
    error = refused(rgw, caplog, lambda: store.append("a", b"x", at=NEW))
    assert "there is no such bucket" in error.message
    assert not error.effect_unknown


RIGHTS = {
    "s3:ListBucket": (
        lambda store, tail: store.read("a"),
        lambda store, tail: list(store.list()),
        lambda store, tail: store.append("b", b"x", at=NEW),
        lambda store, tail: store.delete("a"),
    ),
    "s3:GetObject": (
        lambda store, tail: store.read("a"),
        lambda store, tail: list(store.list()),
        lambda store, tail: store.append("a", b"x", at=tail),
    ),
    "s3:PutObject": (
        lambda store, tail: store.append("a", b"x", at=tail),
        lambda store, tail: store.append("b", b"x", at=NEW),
        lambda store, tail: store.copy("a", "b"),
        lambda store, tail: store.delete("a"),
        lambda store, tail: list(store.maintenance.collect(dry_run=False)),
    ),
    "s3:DeleteObject": (lambda store, tail: list(store.maintenance.collect(dry_run=False)),),
}


@pytest.mark.parametrize("right", RIGHTS)
def test_a_right_that_is_missing_is_named_and_nothing_is_written(rgw, bucket, spot, files, caplog, right):
    tail = spot.quick(files).append("a", b"data", at=NEW)
    few = rgw.limited(bucket, right)
    store = spot.open(few)
    before = spot.tags()
    for call in RIGHTS[right]:
        error = refused(few, caplog, lambda call=call: call(store, tail))
        assert error.facts["needs"] == right
        assert error.facts["bucket"] == bucket
        assert (error.retry, error.effect_unknown) == (False, False)
    assert {key: tag for key, tag in spot.tags().items() if not key.startswith("clock/")} == before


def test_a_reader_needs_no_right_to_write(rgw, bucket, spot, files):
    spot.quick(files).append("a", b"data", at=NEW)
    reader = spot.open(rgw.limited(bucket, "s3:PutObject", "s3:DeleteObject"))
    assert reader.read("a") == b"data"
    assert [info.name for info in reader.list(tails=True)] == ["a"]
    assert list(reader.maintenance.check()) == []


def test_a_writer_needs_no_right_to_remove(rgw, bucket, place):
    spot = Place(rgw, place)
    writer = spot.open(rgw.limited(bucket, "s3:DeleteObject"))
    tail = writer.append("a", b"data", at=NEW)
    assert spot.keys("probe/") != []
    writer.delete("a", at=tail)
    assert list(writer.list()) == []


def test_a_wrong_secret_and_an_unknown_key_are_told(rgw, spot, caplog):
    for wrong in ({"secret": "not-the-secret"}, {"key": "nobody"}):
        store = spot.open(**wrong)
        error = refused(rgw, caplog, lambda store=store: store.append("a", b"x", at=NEW))
        assert "the credentials are not accepted" in error.message
        assert not error.retry
        assert "not-the-secret" not in repr(error) + str(error)
    assert spot.keys() == ["statestore.json"]


def test_credentials_that_nobody_gave_are_missed_without_a_request(rgw, spot, caplog, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    with FaultProxy(rgw.endpoint) as proxy:
        store = open_store(spot.url, endpoint_url=proxy.endpoint, region=rgw.region)
        error = refused(rgw, caplog, lambda: store.append("a", b"x", at=NEW))
        assert "no credentials are found" in error.message
        assert (error.retry, error.effect_unknown) == (False, False)
        assert proxy.requests == []


def test_credentials_that_are_taken_away_between_two_appends_end_in_a_sure_refusal(rgw, bucket, spot, caplog):
    writer = rgw.limited(bucket)
    store = spot.open(writer)
    tail = store.append("a", b"data", at=NEW)
    rgw.revoke(writer)
    before = spot.tags()
    error = refused(writer, caplog, lambda: store.append("a", b"more", at=tail))
    assert "the credentials are not accepted" in error.message
    assert (error.retry, error.effect_unknown) == (False, False)
    assert spot.tags() == before


def test_credentials_that_are_taken_away_in_mid_append_leave_the_outcome_open(rgw, bucket, spot, caplog):
    writer = rgw.limited(bucket)
    with FaultProxy(rgw.endpoint) as proxy, ThreadPoolExecutor(1) as pool:
        store = spot.open(writer.through(proxy))
        tail = store.append("a", b"data", at=NEW)
        proxy.inject(Fault.REPLY_LOST, method="PUT", target="/data/")
        proxy.inject(Fault.STALLED, method="GET", target="list-type=2")
        appending = pool.submit(store.append, "a", b"more", at=tail)
        proxy.wait_held()
        rgw.revoke(writer)
        proxy.release()
        error = refused(writer, caplog, lambda: appending.result(60))
    assert "the credentials are not accepted" in error.message
    assert (error.retry, error.effect_unknown) == (False, True)
    assert spot.open().append("a", b"more", at=tail).size == 8


# ---- where the bucket is ----


@contextmanager
def answering(status: int, code: str, **headers: str) -> Iterator[str]:
    """Yield the address of a server that gives every request the same answer."""
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>no</Message></Error>'.encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = answer  # noqa: N815 - the names that are called

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (301, "PermanentRedirect", "the bucket is in another region"),
        (307, "TemporaryRedirect", "the bucket is in another region"),
        (400, "AuthorizationHeaderMalformed", "the bucket is in another region"),
        (400, "IllegalLocationConstraintException", "the bucket is in another region"),
        (400, "ExpiredToken", "the credentials are not accepted"),
        (400, "InvalidToken", "the credentials are not accepted"),
        (403, "RequestTimeTooSkewed", "the machine's clock is wrong"),
        (403, "AllAccessDisabled", "the credentials lack a right"),
        (501, "NotImplemented", "the storage failed"),
    ],
)
def test_what_a_server_refuses_is_told_with_what_to_do(rgw, caplog, status, code, words):
    with answering(status, code, x_amz_bucket_region="elsewhere") as endpoint:
        store = open_store("s3://bucket/x", **{**options(rgw), "endpoint_url": endpoint, "tries": 2})
        error = refused(rgw, caplog, lambda: store.append("a", b"x", at=NEW))
    assert words in error.message
    assert error.facts["code"] in (code, str(status))
    assert not error.effect_unknown


def test_an_endpoint_where_nobody_listens_is_told(rgw, caplog):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        store = open_store("s3://bucket/x", **{**options(rgw), "endpoint_url": endpoint, "tries": 2})
        error = refused(rgw, caplog, lambda: store.append("a", b"x", at=NEW))
        assert "does not answer" in error.message
        assert (error.retry, error.effect_unknown) == (True, False)


def test_an_endpoint_that_is_no_url_is_told_at_once(rgw):
    with pytest.raises(PluginError, match=r"begins with http:// .* option=endpoint_url"):
        open_store("s3://bucket/x", **{**options(rgw), "endpoint_url": "127.0.0.1:9000"})


@pytest.mark.parametrize("endpoint", ["http://user:SWORDFISH@host", "user:SWORDFISH@host"])
def test_an_endpoint_with_a_password_is_refused_and_not_shown(endpoint):
    for url, given in [("s3://bucket/x", {"endpoint_url": endpoint}), (f"s3://bucket/x?endpoint_url={endpoint}", {})]:
        with pytest.raises(PluginError, match="option=endpoint_url given=\\*\\*\\*@host") as caught:
            open_store(url, **given)
        assert "SWORDFISH" not in f"{caught.value!r} {caught.value.__cause__}"


def test_a_package_that_is_missing_is_named_with_the_command_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(PluginError, match=r"pip install 'statestore\[s3\]'") as caught:
        open_store("s3://bucket/x")
    assert caught.value.facts["missing"] == "s3fs"


# ---- what lies there ----


def fill(spot: Place, files: Any, merged: bool = False) -> None:
    """Make a log of its second life, of five appends, and a neighbour."""
    store = spot.quick(files)
    store.append("a", b"of an earlier life", at=NEW)
    store.delete("a")
    store.append("b", b"neighbour", at=NEW)
    store.append("a-", b"neighbour", at=NEW)
    run = "0000000003.0123456789abcdef"
    whole = b"".join(b"append-%d.\n" % number for number in range(5))
    for start in range(0, len(whole), 10):
        spot.put(layout.single_key("a", run, start), layout.segment_object(whole[start : start + 10]))
    spot.put(layout.head_key("a", 3), layout.spell_live(run))
    for start, stop in ((0, 20), (20, 40), (0, 40)) if merged else ():
        data = layout.segment_object(whole[start:stop], merged=True)
        spot.put(layout.merge_key("a", run, start, stop), data)


HEAD = "heads/a!0000000003"
RUN = "data/a!0000000003.0123456789abcdef/"
OTHER = "0000000003.fedcba9876543210"
EARLIER = "0000000001.0123456789abcdef"
FIND = set(CALLS) - {"list", "list with tails", "collect"}
ALL = set(CALLS)
READ = {"read", "stream", "snapshot"}


def single(number: int) -> str:
    return layout.single_key("a", RUN[7:-1], 10 * number)


def merge(start: int, stop: int) -> str:
    return layout.merge_key("a", RUN[7:-1], start, stop)


def cut(by: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:-by]


def flip(at: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def forged(start: int, stop: int) -> bytes:
    return layout.segment_object(b"*" * (stop - start), merged=True)


# What is done; which calls tell of it; in which object; whether merges are there; and what `check` says of it.
DAMAGES: dict[str, tuple[Callable[[Place], object], set[str], str, bool, str]] = {
    "a head that is cut": (lambda spot: spot.change(HEAD, cut(1)), ALL, HEAD, False, "damaged"),
    "a head that is empty": (lambda spot: spot.put(HEAD, b""), ALL, HEAD, False, "damaged"),
    "a head with a wrong checksum": (lambda spot: spot.change(HEAD, flip(-3)), {"collect"}, HEAD, False, "damaged"),
    "a head with a wrong run": (lambda spot: spot.change(HEAD, flip(20)), {"collect"}, HEAD, False, "damaged"),
    "a head with a wrong checksum beside another run": (
        lambda spot: (
            spot.change(HEAD, flip(-3)),
            spot.put(f"data/a!{OTHER}/t/{'9' * 15}", layout.segment_object(b"x")),
        ),
        FIND | {"list with tails", "collect"},
        HEAD,
        False,
        "damaged",
    ),
    "a head that names another generation": (
        lambda spot: (
            spot.put(HEAD, layout.spell_live(EARLIER)),
            spot.put(f"data/a!{OTHER}/t/{'9' * 15}", layout.segment_object(b"x")),
        ),
        FIND | {"list with tails", "collect"},
        HEAD,
        False,
        "another generation",
    ),
    "a head that is no head": (lambda spot: spot.put(HEAD, b"x" * 42), {"collect"}, HEAD, False, "damaged"),
    "an even head that is damaged": (
        lambda spot: spot.change("heads/a!0000000002", flip(9)),
        set(),
        "heads/a!0000000002",
        False,
        "damaged",
    ),
    "an even head that tells of another run": (
        lambda spot: spot.put("heads/a!0000000002", layout.spell_dead(layout.Dead(EARLIER, 18, "0" * 16))),
        set(),
        "heads/a!0000000002",
        False,
        "another run",
    ),
    "a head that is missing in the middle": (
        lambda spot: spot.remove("heads/a!0000000002"),
        ALL,
        "heads/a!0000000002",
        False,
        "a head is missing",
    ),
    "a first head that is missing": (
        lambda spot: spot.remove("heads/a!0000000001"),
        ALL,
        "heads/a!0000000001",
        False,
        "a head is missing",
    ),
    "a segment that is cut": (
        lambda spot: spot.change(single(2), cut(3)),
        FIND | {"list with tails"},
        "",
        False,
        "missing|cut",
    ),
    "a last segment that is cut": (lambda spot: spot.change(single(4), cut(3)), READ, single(4), False, "cut"),
    "a segment shorter than its first line": (
        lambda spot: spot.put(single(2), b"sts1 a"),
        FIND | {"list with tails", "collect"},
        single(2),
        False,
        "another size",
    ),
    "a segment with a wrong byte": (lambda spot: spot.change(single(2), flip(30)), READ, single(2), False, "checksum"),
    "a segment with a wrong checksum": (
        lambda spot: spot.change(single(2), flip(8)),
        READ,
        single(2),
        False,
        "checksum|damaged",
    ),
    "a segment that is none": (lambda spot: spot.put(single(2), b"x" * 34), READ, single(2), False, "damaged"),
    "a merge in a single's place": (
        lambda spot: spot.put(single(2), forged(20, 30)),
        READ,
        single(2),
        False,
        "damaged",
    ),
    "a gap": (lambda spot: spot.remove(single(2)), FIND | {"list with tails"}, single(4), False, "byte 20 .* missing"),
    "a first segment that is missing": (
        lambda spot: spot.remove(single(0)),
        FIND | {"list with tails"},
        single(4),
        False,
        "byte 0 .* missing",
    ),
    "no segment at all": (
        lambda spot: spot.remove(*spot.keys(RUN)),
        FIND | {"list with tails"},
        "",
        False,
        "byte 0 .* missing",
    ),
    "an empty segment that is no seal": (
        lambda spot: spot.put(single(5), layout.segment_object(b"")),
        {"append", "create", "delete"},
        single(5),
        False,
        "no seal",
    ),
    "a merge with a wrong byte": (
        lambda spot: spot.change(merge(0, 40), flip(30)),
        READ,
        merge(0, 40),
        True,
        "checksum",
    ),
    "a merge that is cut": (
        lambda spot: spot.change(merge(0, 40), cut(1)),
        FIND | {"list with tails", "collect"},
        merge(0, 40),
        True,
        "another size",
    ),
    "a merge that disagrees with what it covers": (
        lambda spot: spot.put(merge(0, 40), forged(0, 40)),
        set(),
        "",
        True,
        "disagrees with",
    ),
    "two merges that disagree": (
        lambda spot: spot.put(merge(20, 40), forged(20, 40)),
        set(),
        merge(20, 40),
        True,
        "disagrees with",
    ),
    "two merges that overlap": (
        lambda spot: spot.put(merge(30, 50), layout.segment_object(b"append-3.\nappend-4.\n", merged=True)),
        set(),
        merge(30, 50),
        True,
        "overlaps",
    ),
    "a key below the log's heads that is not ours": (
        lambda spot: spot.put(HEAD + ".bak", b"x"),
        ALL,
        HEAD + ".bak",
        False,
        "no store made",
    ),
    "a key below the log's data that is not ours": (
        lambda spot: spot.put(RUN + "t/notes.txt", b"x"),
        FIND | {"list with tails", "collect"},
        RUN + "t/notes.txt",
        False,
        "no store made",
    ),
    "a key below the heads that is not ours": (
        lambda spot: spot.put("heads/notes.txt", b"x"),
        {"list", "list with tails", "collect"},
        "heads/notes.txt",
        False,
        "no store made",
    ),
    "a head of a name that no log has": (
        lambda spot: spot.put("heads/.hidden!0000000001", layout.spell_live(EARLIER)),
        {"list", "list with tails", "collect"},
        "heads/.hidden!0000000001",
        False,
        "no store made",
    ),
    "a key below the data that is not ours": (
        lambda spot: spot.put("data/notes.txt", b"x"),
        {"list with tails", "collect"},
        "data/notes.txt",
        False,
        "no store made",
    ),
    "a key at the root that is not ours": (
        lambda spot: spot.put("notes.txt", b"x"),
        set(),
        "notes.txt",
        False,
        "no store made",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_by_whoever_meets_it_and_found_by_a_check(spot, files, damage):
    spoil, tell, key, merged, words = DAMAGES[damage]
    fill(spot, files, merged)
    assert list(spot.quick(files).maintenance.check()) == []
    spoil(spot)
    before = spot.tags()

    for name in sorted(tell):
        with pytest.raises(Corrupt) as caught:
            CALLS[name](spot.quick(files))
        assert spot.tags() == before, name
        assert key in (caught.value.facts.get("object", key), caught.value.facts.get("found")), name
        assert "object" in caught.value.facts or "run" in caught.value.facts, name
        assert "\n" not in str(caught.value)

    problems = list(spot.quick(files).maintenance.check())
    assert [problem for problem in problems if re.search(words, problem.message)], problems
    assert all(problem.object for problem in problems)
    assert not key or key in {problem.object for problem in problems}, problems
    assert {problem.log for problem in problems} <= {"a", ""}
    assert spot.tags() == before
    store = spot.quick(files)
    assert (store.read("b"), store.read("a-")) == (b"neighbour", b"neighbour")
    for name in sorted(READ - tell) if merged else ():
        assert CALLS[name](store) != b"", name


def test_a_check_of_a_healthy_store_finds_nothing(spot, files):
    fill(spot, files, merged=True)
    store = spot.quick(files)
    store.copy("a", "copied")
    store.delete("b")
    assert list(store.maintenance.check()) == []
    assert list(store.maintenance.check("a")) == []


def test_a_check_looks_only_at_the_logs_that_were_asked_for(spot, files):
    fill(spot, files)
    spot.change(single(2), flip(30))
    store = spot.quick(files)
    assert list(store.maintenance.check("b")) == []
    assert [problem.log for problem in store.maintenance.check("a")] == ["a"]


def test_a_check_looks_at_several_logs_at_once_and_tells_of_them_in_order(spot, files, monkeypatch):
    names = [f"log{number}" for number in range(8)]
    store = spot.quick(files)
    for name in names:
        store.append(name, b"data", at=NEW)
    together = threading.Barrier(len(names))

    def check(_, log):
        together.wait(60)  # fails where fewer are at work at the same time
        yield from ()
        return [Problem(log, "", "found")]

    monkeypatch.setattr(_maintenance, "check", check)
    assert [problem.log for problem in store.maintenance.check()] == names


SETTINGS = {
    "no settings": b"hello",
    "nothing": b"",
    "a list": b"[1, 2]",
    "a field that is missing": b'{"format": 1, "grace": 60, "sorted": true}',
    "a grace of nothing": b'{"format": 1, "grace": 0, "windows": [10], "sorted": true}',
    "a grace that is no number": b'{"format": 1, "grace": NaN, "windows": [10], "sorted": true}',
    "a grace without end": b'{"format": 1, "grace": Infinity, "windows": [10], "sorted": true}',
    "windows that do not nest": b'{"format": 1, "grace": 60, "windows": [10, 15], "sorted": true}',
    "another format": b'{"format": 2, "grace": 60, "windows": [10], "sorted": true}',
    "another format with other fields": b'{"format": 2, "patience": 60}',
}


@pytest.mark.parametrize("settings", SETTINGS)
def test_settings_that_are_wrong_stop_everything(spot, files, settings):
    spot.quick(files).append("a", b"data", at=NEW)
    spot.put("statestore.json", SETTINGS[settings])
    before = spot.tags()
    for name, call in CALLS.items():
        with pytest.raises(Corrupt) as caught:
            call(spot.quick(files))
        assert caught.value.facts["object"] == "statestore.json", name
        assert "format" not in settings or caught.value.facts["format"] == 2, name
    with pytest.raises(Corrupt):
        list(spot.quick(files).maintenance.check())
    assert spot.tags() == before


def test_an_option_that_disagrees_with_the_settings_is_refused(spot, files):
    spot.quick(files).append("a", b"data", at=NEW)
    before = spot.tags()
    for option, value in {"grace": 3600.0, "windows": (10, 20)}.items():
        store = spot.open(**{option: value})
        for call in (store.read, store.delete):
            with pytest.raises(PluginError) as caught:
                call("a")
            assert caught.value.facts["option"] == option
    assert spot.open(grace=SMALL.grace, windows="20,40").read("a") == b"data"
    assert spot.tags() == before


def test_an_even_head_that_tells_of_another_deletion_than_the_seal_is_told(spot, files):
    store = spot.quick(files)
    tail = store.append("a", b"data", at=NEW)
    spot.put(layout.single_key("a", tail.run, 4), layout.seal_object("1" * 16))
    with FaultProxy(spot.server.endpoint) as proxy:
        proxy.inject(Fault.STALLED, method="PUT", target="/heads/")
        with ThreadPoolExecutor(1) as pool:
            deleting = pool.submit(spot.open(spot.server.through(proxy)).delete, "a")
            proxy.wait_held()
            dead = layout.Dead(tail.run, 4, "2" * 16)
            spot.put(layout.head_key("a", 2), layout.spell_dead(dead))
            proxy.release()
            with pytest.raises(Corrupt, match="another deletion") as caught:
                deleting.result(60)
    assert caught.value.facts["object"] == layout.head_key("a", 2)


def test_every_error_of_a_damaged_store_is_of_the_tree(spot, files):
    """Whatever bytes the objects hold: no call fails in a way that is not ours."""
    fill(spot, files, merged=True)
    for key in spot.tags():
        held = spot.get(key)
        for junk in (b"\xff" * len(held), held[: len(held) // 2], held.upper()):
            spot.put(key, junk)
            for name in ("read", "append", "list with tails"):
                try:
                    CALLS[name](spot.quick(files, tries=1))
                except StateStoreError as error:
                    assert not isinstance(error, Unavailable)  # noqa: PT017
            spot.put(key, held)
