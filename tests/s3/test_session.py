"""Sessions of the S3 client library: quick to make, and each with its own credentials."""

from __future__ import annotations

from cProfile import Profile
from pstats import Stats

import pytest
from botocore.utils import parse_timestamp
from fsspec.asyn import sync

from statestore_fsspec import _session
from statestore_fsspec._s3 import S3Drive
from statestore_fsspec._session import new_session
from tests.s3.raw import Place, connection


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-09-28T12:00:00Z",
        "2026-09-28T12:00:00.000Z",
        "2026-09-28T12:00:00.123456789Z",
        "Mon, 28 Sep 2026 12:00:00 GMT",
        "Monday, 28-Sep-26 12:00:00 GMT",
        "28 September 2026 12:00 GMT",
        "20260928T120000Z",
        "2026-09-28T14:00:00+02:00",
        "20260928",
        "1790000000",
        1790000000,
    ],
)
def test_a_time_is_what_the_library_takes_it_for(stamp):
    assert _session._time(stamp) == parse_timestamp(stamp)
    assert _session._time(stamp).utcoffset() == parse_timestamp(stamp).utcoffset()


def test_a_time_that_is_none_is_refused_as_by_the_library():
    with pytest.raises(ValueError, match="nonsense"):
        _session._time("2026-nonsense-12:00:00Z")


def test_sessions_share_descriptions_and_nothing_else(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    first = new_session()
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    other = new_session()
    monkeypatch.delenv("AWS_DATA_PATH")
    again = new_session()
    loaders = [session.get_component("data_loader") for session in (first, again, other)]
    assert loaders[0] is loaders[1]
    assert loaders[0] is not loaders[2]
    assert str(tmp_path) in loaders[2].search_paths
    assert first.get_component("credential_provider") is not again.get_component("credential_provider")


def test_each_session_finds_the_credentials_of_its_moment(monkeypatch, rgw, place):
    """A store that is opened after the keys were changed uses the new ones."""
    from statestore import NEW, open_store
    from statestore.errors import Unavailable

    where = {"endpoint_url": rgw.endpoint, "region": rgw.region}
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with open_store(f"s3://{place}", **where) as store, pytest.raises(Unavailable, match="credentials"):
        store.append("log", b"data", at=NEW)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", rgw.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", rgw.secret_key)
    with open_store(f"s3://{place}", **where) as store:
        assert store.append("log", b"data", at=NEW).size == 4


@pytest.fixture
def headers(monkeypatch):
    """The headers of each request that is sent, by method."""
    from aiobotocore.httpsession import AIOHTTPSession

    send, sent = AIOHTTPSession.send, []

    async def noted(self, request):
        sent.append((request.method, {name.lower(): text(value) for name, value in request.headers.items()}))
        return await send(self, request)

    def text(value):
        return value.decode() if isinstance(value, bytes) else value

    monkeypatch.setattr(AIOHTTPSession, "send", noted)
    return sent


def test_what_is_sent_is_protected_by_the_library_and_what_is_read_by_the_log_alone(rgw, place, headers):
    from statestore import NEW

    with Place(rgw, place).open() as store:
        store.append("log", b"data", at=NEW)
        store.read("log")
    puts = [given for method, given in headers if method == "PUT"]
    gets = [given for method, given in headers if method == "GET"]
    assert puts
    assert gets
    assert all("x-amz-checksum-crc32" in given for given in puts)
    assert not any("x-amz-checksum-mode" in given for given in gets)


@pytest.mark.parametrize("appid", [None, "their-app"])
def test_who_sends_is_spelled_once_for_all_requests_unless_it_names_an_application(
    rgw, place, headers, monkeypatch, appid
):
    from botocore import useragent

    from statestore import NEW

    if appid:
        monkeypatch.setenv("AWS_SDK_UA_APP_ID", appid)
    with Place(rgw, place).open() as store:
        tail = store.append("log", b"data", at=NEW)
        spelled = []
        plain = useragent.sanitize_user_agent_string_component
        monkeypatch.setattr(
            useragent, "sanitize_user_agent_string_component", lambda *a, **k: spelled.append(a) or plain(*a, **k)
        )
        headers.clear()
        store.append("log", b"more", at=tail)
    ((_, given),) = headers
    assert bool(spelled) == bool(appid)
    assert ("app/their-app" in given["user-agent"]) == bool(appid)
    assert "botocore/" in given["user-agent"]


def test_a_listing_is_read_as_by_the_library_with_a_quarter_of_its_calls(rgw, place):
    """The calls are those of Python functions: they are counted, and no time is."""
    spot = Place(rgw, place)
    for name in ("a", "b c&d", "é%2F+"):
        spot.put(f"list/{name}", name.encode())
    for number in range(100):
        spot.put(f"many/{number}", b"x")
    plain = new_session()
    plain.unregister("before-parse.s3.ListObjectsV2", _session._read_rows)
    ours, theirs = (S3Drive(connection(rgw, **more), place) for more in ({}, {"storage_options": {"session": plain}}))
    for prefix in ("list/", "none/", "many/"):
        assert ours.page(prefix, "") == theirs.page(prefix, "")
    assert [entry.key for entry in ours.page("list/", "").entries] == ["list/a", "list/b c&d", "list/é%2F+"]
    rows = [calls(drive, "many/") - calls(drive, "none/") for drive in (ours, theirs)]
    assert rows[0] * 3 < rows[1]


def calls(drive, prefix):
    """Return how many calls the event loop's thread makes for one page."""

    async def ask():
        profile = Profile()
        with profile:
            await drive.files._call_s3("list_objects_v2", Bucket=drive.bucket, Prefix=drive.name(prefix))
        return Stats(profile).total_calls

    return sync(drive.files.loop, ask)


def test_a_listing_that_is_cut_is_refused_in_the_library_s_words():
    given = {"status_code": 200, "body": b"<ListBucketResult><Contents>"}
    _session._read_rows(given, added := {})
    assert (given["body"], added) == (b"<ListBucketResult><Contents>", {})
