"""What each provider's errors mean: named in our words, with the place, the provider's own exception as the cause.

fake-gcs-server knows neither credentials nor rights: Google's answers are given by a server of a few lines, as they are
documented. Azurite says of a wrong key what Azure says of a missing right, and knows rights by signatures alone.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from statestore import NEW, Store, open_store
from statestore.errors import PluginError, StateStoreError, Unavailable
from statestore_fsspec._steps import Outcome
from tests.buckets.places import AzurePlace, SftpPlace
from tests.servers import Azure, Gcs, Sftp

CALLS: dict[str, Callable[[Store], Any]] = {
    "list": lambda store: list(store.list()),
    "get": lambda store: store.read("a"),
    "put": lambda store: store.append("b", b"x", at=NEW),
}


def refusal(store: Store, call: str, secret: str = "") -> Unavailable:
    """Return the error of a call that is refused for good; nothing that is said of it holds the secret."""
    with pytest.raises(Unavailable) as refused:
        CALLS[call](store)
    error: BaseException | None = refused.value
    assert error
    assert (refused.value.retry, refused.value.effect_unknown) == (False, False)
    assert refused.value.__cause__ is not None
    while error is not None:
        assert not secret or secret not in f"{error} {error!r} {getattr(error, 'facts', '')}"
        error = error.__cause__ or error.__context__
    return refused.value


@pytest.mark.parametrize(("url", "package"), [("az://container/x", "adlfs"), ("gs://bucket/x", "gcsfs")])
@pytest.mark.parametrize("call", CALLS)
def test_an_endpoint_where_nobody_listens_is_told_and_may_be_tried_again(url: str, package: str, call: str) -> None:
    pytest.importorskip(package)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}"
        options = {"adlfs": Azure(endpoint, "some", "c2VjcmV0IGtleQ=="), "gcsfs": Gcs(endpoint)}[package].options()
        with (
            open_store(url, **{**options, "tries": 2, "backoff": 0}) as store,
            pytest.raises(Unavailable, match="the storage does not answer") as failed,
        ):
            CALLS[call](store)
    assert (failed.value.retry, failed.value.effect_unknown) == (True, False)
    assert endpoint.rpartition(":")[2] in f"{failed.value.__cause__}"
    assert "c2VjcmV0IGtleQ==" not in f"{failed.value} {failed.value.__cause__!r}"


# ---- Azure ----


@pytest.mark.parametrize("call", ["get", "list", "put"])
def test_azure_a_container_that_is_not_there(azure: Azure, call: str) -> None:
    with open_store("az://nobody-made-this/x", **azure.options()) as store:
        error = refusal(store, call)
    assert "there is no such container" in error.message
    assert error.facts["container"] == "nobody-made-this"


@pytest.mark.parametrize("call", ["get", "list", "put"])
def test_azure_a_wrong_key(azure: Azure, call: str) -> None:
    wrong = replace(azure, key="d3Jvbmcga2V5IHdyb25nIGtleQ==")
    with open_store("az://container/x", **wrong.options()) as store:
        error = refusal(store, call, wrong.key)
    assert "credentials" in error.message
    assert error.facts["code"] in ("AuthorizationFailure", "AuthenticationFailed")


RIGHTS = {"List": ("rcwd", "list"), "Read": ("lcwd", "get"), "Write": ("rl", "put"), "Delete": ("rlcw", "delete")}


@pytest.mark.parametrize("right", RIGHTS)
def test_azure_a_right_that_is_missing_is_named(azure: Azure, right: str) -> None:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    place = AzurePlace(azure)
    with open_store(place.url, **place.options) as store:
        store.append("a", b"data", at=NEW)
    letters, call = RIGHTS[right]
    sas = generate_container_sas(
        azure.account,
        place.container,
        azure.key,
        permission=ContainerSasPermissions.from_string(letters),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    joined = f"BlobEndpoint={azure.endpoint}/{azure.account};SharedAccessSignature={sas}"
    with open_store(place.url, connection_string=joined, backoff=0.01) as store:
        drive: Any = store._engine.drive  # type: ignore[attr-defined]
        with pytest.raises(Unavailable) as refused:
            drive.remove("statestore.json") if call == "delete" else CALLS[call](store)
    assert refused.value.facts["needs"] == right
    assert not refused.value.retry
    signature = sas.partition("sig=")[2]
    assert signature not in str(refused.value)


def test_azure_names_the_account_in_one_kind_of_url_and_takes_no_password() -> None:
    pytest.importorskip("adlfs")
    with open_store("abfs://box@some.dfs.core.windows.net/x", account_key="a2V5") as store:
        assert store.location("a") == "az://box/x/data/a!"
        assert store._engine.drive.files.account_name == "some"  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match="no credentials belong into this URL"):
        open_store("az://box:word@some.dfs.core.windows.net/x")


# ---- Google ----


@contextmanager
def saying(status: int, body: dict[str, Any]) -> Iterator[str]:
    """Run a server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            text = json.dumps(body).encode()
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815 - named by the server's class

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def said(status: int, message: str, reason: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"code": status, "message": message, "errors": [{"message": message, "reason": reason}]}}


ANSWERS = [
    (said(404, "The specified bucket does not exist.", "notFound"), "get", "there is no such bucket", False),
    (said(404, "The specified bucket does not exist.", "notFound"), "list", "there is no such bucket", False),
    (said(404, "Not Found", "notFound"), "put", "there is no such bucket", False),
    (said(401, "Invalid Credentials", "authError"), "get", "the credentials are not accepted", False),
    (said(403, "x does not have storage.objects.list access", "forbidden"), "list", "lack a right", False),
    (said(403, "x does not have storage.objects.create access", "forbidden"), "put", "lack a right", False),
    (said(400, "Invalid argument.", "invalid"), "put", "does not take the request", False),
    (said(403, "The rate limit is exceeded", "rateLimitExceeded"), "get", "the storage failed", True),
    (said(429, "Too many", "rateLimitExceeded"), "put", "the storage failed", True),
    (said(503, "Backend Error", "backendError"), "list", "the storage failed", True),
]


@pytest.mark.parametrize(("answer", "right", "words", "retry"), ANSWERS)
def test_google_an_answer_means(answer: tuple[int, dict[str, Any]], right: str, words: str, retry: bool) -> None:
    pytest.importorskip("gcsfs")
    with saying(*answer) as url, open_store("gs://bucket/x", **Gcs(url).options()) as store:
        drive: Any = store._engine.drive  # type: ignore[attr-defined]
        calls = {
            "get": lambda: drive.fetch("k"),
            "list": lambda: drive.page("", ""),
            "put": lambda: drive.create("k", b""),
        }
        if right == "put" and retry:
            outcome, failure = calls["put"]()
            assert outcome is Outcome.UNKNOWN
            assert failure is not None
            return
        with pytest.raises(Unavailable, match=words) as refused:
            calls[right]()
    assert refused.value.retry is retry
    assert refused.value.facts["bucket"] == "bucket"
    assert refused.value.__cause__ is not None
    if "lack" in words:
        assert refused.value.facts["needs"] == {"list": "storage.objects.list", "put": "storage.objects.create"}[right]


@pytest.mark.parametrize(
    "answer",
    [
        said(412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet"),
        # Who may create, and not replace, is told of the right before the condition is looked at.
        said(403, "x does not have storage.objects.delete access to the Google Cloud Storage object.", "forbidden"),
    ],
)
def test_google_says_that_there_is_such_an_object(answer: tuple[int, dict[str, Any]]) -> None:
    pytest.importorskip("gcsfs")
    with saying(*answer) as url, open_store("gs://bucket/x", **Gcs(url).options()) as store:
        assert store._engine.drive.create("k", b"") == (Outcome.REFUSED, None)  # type: ignore[attr-defined]


def test_google_a_zonal_bucket_is_refused() -> None:
    pytest.importorskip("gcsfs")
    with (
        saying(200, {"name": "x/k", "storageClass": "RAPID"}) as url,
        open_store("gs://bucket/x", **Gcs(url).options()) as store,
        pytest.raises(Unavailable, match="zonal"),
    ):
        store._engine.drive.create("k", b"")  # type: ignore[attr-defined]


def test_google_a_bucket_that_is_not_there(gcs: Gcs) -> None:
    with open_store("gs://nobody-made-this/x", **gcs.options()) as store:
        for call in ("list", "put"):
            assert "there is no such bucket" in refusal(store, call).message


def test_google_a_token_that_is_no_file_is_told_and_not_shown() -> None:
    pytest.importorskip("gcsfs")
    with open_store("gs://bucket/x", token="/nowhere/hidden-key.json") as store:
        error = refusal(store, "list")
    assert "can't be opened" in error.message
    assert "hidden-key" not in str(error)


# ---- SFTP ----


def test_sftp_a_key_that_the_server_does_not_know(sftp: Sftp) -> None:
    options = sftp.options(key_filename=f"{sftp.folder}/stranger")
    with open_store(sftp.url("x"), **options) as store:
        for call in CALLS:
            assert "the credentials are not accepted" in refusal(store, call).message


def test_sftp_a_server_whose_key_is_not_known(sftp: Sftp, tmp_path: Any) -> None:
    with open_store(sftp.url("x"), **sftp.options(known_hosts=str(tmp_path / "none"))) as store:
        assert "the server's key is not known" in refusal(store, "get").message
    with open_store(sftp.url("x"), **sftp.options(known_hosts="any")) as store:
        assert list(store.list()) == []


def test_sftp_a_server_that_has_another_key_than_before(sftp: Sftp, tmp_path: Any) -> None:
    kind, public, *_ = Path(sftp.folder, "stranger.pub").read_text().split()
    (tmp_path / "known").write_text(f"[{sftp.host}]:{sftp.port} {kind} {public}\n")
    with open_store(sftp.url("x"), **sftp.options(known_hosts=str(tmp_path / "known"))) as store:
        assert "has another key" in refusal(store, "get").message


def test_sftp_no_server_may_come_back() -> None:
    pytest.importorskip("paramiko")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        url = f"sftp://127.0.0.1:{port}/x"
        with (
            open_store(url, tries=2, backoff=0, look_for_keys=False) as store,
            pytest.raises(Unavailable, match="does not answer") as failed,
        ):
            store.read("a")
    assert failed.value.retry


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_sftp_a_folder_that_may_not_be_written(sftp: Sftp) -> None:
    place = SftpPlace(sftp)
    place.folder.mkdir(mode=0o500)
    with open_store(place.url, **place.options) as store:
        assert refusal(store, "put").facts["needs"] == "put"


@pytest.mark.parametrize("path", ["/sys/kernel", "/sys/agents", "/sys/agents/below"])
def test_sftp_a_right_to_write_or_to_make_a_folder_that_is_missing_is_named(sftp: Sftp, path: str) -> None:
    try:
        os.mkdir("/sys/agents")  # nobody may, root neither
    except OSError as error:
        if not isinstance(error, PermissionError):
            pytest.skip(f"no folder is known here in which nobody may make one: {error}")
    with open_store(f"sftp://{sftp.username}@{sftp.host}:{sftp.port}{path}", **sftp.options()) as store:
        error = refusal(store, "put")
    assert error.facts["needs"] == "put"
    assert error.facts["path"].startswith(path)


def test_sftp_a_connection_that_broke_is_made_anew(sftp: Sftp) -> None:
    place = SftpPlace(sftp)
    with open_store(place.url, **place.options) as store:
        tail = store.append("a", b"one,", at=NEW)
        drive: Any = store._engine.drive  # type: ignore[attr-defined]
        for files in drive._idle:
            files.client.close()
        assert store.append("a", b"two", at=tail).size == 7
        assert store.read("a") == b"one,two"


def test_sftp_there_are_never_more_connections_than_were_allowed(sftp: Sftp) -> None:
    from concurrent.futures import ThreadPoolExecutor

    place = SftpPlace(sftp)
    drive: Any = place.drive(parallel=2)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: drive.create(f"k{n}", b"x"), range(16)))
    assert 1 <= len(drive._idle) <= 2
    drive.close()


def test_sftp_what_a_crash_left_is_not_seen_and_goes_after_a_day(sftp: Sftp) -> None:
    place = SftpPlace(sftp)
    new = place.folder / ".new"
    new.mkdir(parents=True)
    for name in ("old", "young"):
        (new / name).write_bytes(b"half")
    os.utime(new / "old", (0, 0))
    with open_store(place.url, **place.options) as store:
        store.append("a", b"data", at=NEW)
        assert [entry.name for entry in new.iterdir()] == ["young"]
        assert list(store.maintenance.check()) == []


def test_sftp_a_server_without_hard_links_renames_and_replaces_nothing(
    sftp: Sftp, monkeypatch: pytest.MonkeyPatch
) -> None:
    from statestore_fsspec import _sftp, _ssh

    place = SftpPlace(sftp)
    asked = []
    monkeypatch.setattr(_ssh.Client, "extended", lambda self, *words: asked.append(words))
    monkeypatch.setattr(_sftp, "_LINK", "nobody offers this")
    monkeypatch.setattr(_sftp, "_SYNC", "nor this")
    drive = place.drive()
    assert drive.create("k", b"first") == (Outcome.CREATED, None)
    assert drive.create("k", b"second") == (Outcome.REFUSED, None)
    assert drive.fetch("k") == b"first"
    assert not asked
    drive.close()


def test_sftp_a_write_that_failed_among_others_is_not_forgotten(sftp: Sftp) -> None:
    place = SftpPlace(sftp)
    drive: Any = place.drive()
    drive.create("k", b"x")
    with (
        drive._connection() as ftp,
        ftp.open(drive.path("k"), "rb") as file,
        pytest.raises(OSError, match=r"[Ff]ail|[Pp]ermission|[Bb]ad|[Nn]o"),
    ):
        ftp.write(file.handle, bytes(100_000))  # it is open to be read alone
    drive.close()


def test_sftp_a_url_without_a_folder_or_with_a_password_is_refused() -> None:
    pytest.importorskip("paramiko")
    for url in ("sftp://host", "sftp://host/", "sftp://host/a/../b", f"sftp://me:{uuid.uuid4().hex}@host/x"):
        with pytest.raises(PluginError) as refused:
            open_store(url)
        assert "me:" not in str(refused.value)
    assert issubclass(Unavailable, StateStoreError)
