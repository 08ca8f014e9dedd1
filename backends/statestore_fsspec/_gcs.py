"""Google Cloud Storage, by gcsfs: which calls are one request, and what each answer means.

gcsfs frames what it uploads in one request with a boundary that is always the same, so that data which hold it are cut.
Its other way, in several requests, is no single act of the server. So an object is created by a request of our own
making, sent through gcsfs: one insert with ``ifGenerationMatch=0``, framed by a boundary that is drawn anew for each
object and is seen not to be in it. Any bytes are data, and the condition stands on the one request there is.

The plain class of gcsfs is used. The one that it gives by default asks what kind of bucket it is, over another
protocol, before each call, and on zonal buckets it writes without the condition. Those are refused.
"""

from __future__ import annotations

import io
import json
import secrets
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from gcsfs.core import GCSFileSystem
from gcsfs.retry import validate_response

from statestore.errors import Unavailable
from statestore_fsspec._drive import PAGE, Answer, Drive, bucket_and_prefix, guarded
from statestore_fsspec._layout import Entry
from statestore_fsspec._steps import Outcome, Page
from statestore_fsspec._store import FsspecStore

if TYPE_CHECKING:
    from statestore_fsspec._options import GcsOptions

__all__ = ["GcsDrive", "open_gcs"]

_RIGHTS: Final = {
    "list": "storage.objects.list",
    "get": "storage.objects.get",
    "put": "storage.objects.create",
    "delete": "storage.objects.delete",
}
_ZONAL: Final = "RAPID"  # the storage class of all objects in zonal buckets, and of no others

# https://cloud.google.com/storage/docs/json_api/v1/status-codes
_ANSWERS: Final = {404: Answer.MISSING, 412: Answer.REFUSED, 416: Answer.SHORT}
_REFUSALS: Final = {
    400: "the storage does not take the request: see the cause",
    401: "the credentials are not accepted: renew or correct them",
    403: "the credentials lack a right",
    405: "the storage does not take the request: see the cause",
}
# Reasons that stand for themselves, whatever the status is.
_LATER: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "backendError"})


class _Files(GCSFileSystem):  # type: ignore[misc]
    """gcsfs, but each request is sent once, and an error keeps what the storage said."""

    async def _request(self, method: str, path: str, *args: Any, **given: Any) -> Any:
        headers, body, sent = given.pop("headers", None), given.pop("json", None), given.pop("data", None)
        await self._set_session()
        async with self.session.request(
            method=method,
            url=self._format_path(path, args),
            params=self._get_params(given),
            json=body,
            headers=self._get_headers(headers),
            data=sent,
            timeout=self.requests_timeout,
        ) as answer:
            contents = await answer.read()
            try:
                validate_response(answer.status, contents, path, args)
            except Exception as error:
                error.said = (answer.status, contents)  # type: ignore[attr-defined]
                raise
            return answer.status, answer.headers, answer.request_info, contents


def open_gcs(url: str, options: GcsOptions) -> FsspecStore:
    """Open a store in a bucket; nothing is asked of it yet."""
    root = bucket_and_prefix(url)
    limits = aiohttp.ClientTimeout(sock_connect=options.timeout, sock_read=options.timeout)
    given = {
        **options.told("token", "project", "endpoint_url"),
        "requests_timeout": limits,
        **options.storage_options.get_secret_value(),
    }

    def connect() -> GcsDrive:
        return GcsDrive(_Files(**given, skip_instance_cache=True, use_listings_cache=False), root)

    return FsspecStore(guarded(connect), f"gs://{root}", **options.root())


class GcsDrive(Drive):
    """A prefix of a bucket."""

    def __init__(self, files: Any, root: str) -> None:
        super().__init__(files, root)
        self.bucket, _, prefix = self.root.partition("/")
        self._prefix = prefix + "/" if prefix else ""

    def page(self, prefix: str, after: str) -> Page:
        """Return the first keys that begin with `prefix` and come after `after`, in the storage's order."""
        skip = len(self._prefix)
        ask = {
            "prefix": self._prefix + prefix,
            "maxResults": PAGE,
            "fields": "items(name,size,timeCreated),nextPageToken",
        }
        if after:
            ask["startOffset"] = self._prefix + after  # the first one, not the one before it
        while True:
            try:
                said = self.files.call("GET", "b/{}/o", self.bucket, json_out=True, **ask)
            except Exception as error:
                failure = self.judge(error, "list", prefix)
                if isinstance(failure, Answer):
                    failure = self._no_bucket(prefix)
                raise failure from error
            entries = tuple(
                Entry(row["name"][skip:], int(row["size"]), datetime.fromisoformat(row["timeCreated"]).timestamp())
                for row in said.get("items", ())
                if row["name"][skip:] > after
            )
            token = said.get("nextPageToken")
            if entries or not token:
                return Page(entries, bool(token))
            ask["pageToken"] = token

    def create(self, key: str, data: bytes) -> tuple[Outcome, Exception | None]:
        """Create an object, if there is none at that key; return what came of it, and the error where that is unknown.

        Raises:
            Unavailable: the storage refused the request, and it had no effect; or the bucket is a zonal one.
        """
        boundary = secrets.token_hex(16).encode()
        while boundary in data:
            boundary = secrets.token_hex(16).encode()
        facts = json.dumps({"name": self._prefix + key}).encode()
        framed = b"".join(
            (
                b"--%b\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%b\r\n" % (boundary, facts),
                b"--%b\r\nContent-Type: application/octet-stream\r\n\r\n" % boundary,
                data,
                b"\r\n--%b--\r\n" % boundary,
            )
        )
        try:
            said = self.files.call(
                "POST",
                f"{self.files._location}/upload/storage/v1/b/{{}}/o",
                self.bucket,
                uploadType="multipart",
                ifGenerationMatch="0",
                headers={"Content-Type": f'multipart/related; boundary="{boundary.decode()}"'},
                data=io.BytesIO(framed),  # of large bytes as such the HTTP library warns
                json_out=True,
            )
        except Exception as error:
            answer = self.judge(error, "put", key)
            if answer is Answer.REFUSED:
                return Outcome.REFUSED, None
            if answer is Answer.MISSING:
                answer = self._no_bucket(key)
            if isinstance(answer, Unavailable) and not answer.retry:
                raise answer from error
            return Outcome.UNKNOWN, error
        if said.get("storageClass") == _ZONAL:
            raise Unavailable(
                "this bucket is a zonal one, where nothing has shown that objects are created exclusively: use another",
                bucket=self.bucket,
                key=self._prefix + key,
            )
        return Outcome.CREATED, None

    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage; return whether it was there."""
        more: dict[str, Any] = {}
        try:
            while True:
                said = self.files.call(
                    "POST",
                    "b/{}/o/{}/rewriteTo/b/{}/o/{}",
                    self.bucket,
                    self._prefix + source,
                    self.bucket,
                    self._prefix + target,
                    headers={"Content-Type": "application/json"},
                    json_out=True,
                    **more,
                )
                if said["done"]:
                    return True
                more["rewriteToken"] = said["rewriteToken"]
        except Exception as error:
            return self.judged(error, "put", target) is not Answer.MISSING

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of gcsfs, or of the libraries under it, means."""
        from google.auth.exceptions import GoogleAuthError, TransportError

        facts: dict[str, Any] = {"bucket": self.bucket, "key": self._prefix + key}
        status, contents = getattr(error, "said", (0, b""))
        if not status:
            if isinstance(error, GoogleAuthError) and not isinstance(error, TransportError):
                return Unavailable("no credentials are found, or they are not accepted: see the cause", **facts)
            if isinstance(error, (TypeError, ValueError)) and not isinstance(error, json.JSONDecodeError):
                return Unavailable("the request could not be made: see the cause", **facts)
            return Unavailable("the storage does not answer: see the cause", retry=True, **facts)
        if status == 404 and b"bucket" in contents and b"No such object" not in contents:
            return self._no_bucket(key)
        if status == 403 and right == "put" and b"storage.objects.delete" in contents:
            return Answer.REFUSED  # said of an object that is there, to whoever may create and not replace
        if status in _ANSWERS:
            return _ANSWERS[status]
        reason = _reason(contents)
        if status in _REFUSALS and reason not in _LATER:
            needs = _RIGHTS[right] if status == 403 else None
            return Unavailable(_REFUSALS[status], status=status, reason=reason, needs=needs, **facts)
        retry = status >= 500 or status in (408, 409, 429) or reason in _LATER
        return Unavailable("the storage failed: see the cause", retry=retry, status=status, reason=reason, **facts)

    def _no_bucket(self, key: str) -> Unavailable:
        return Unavailable(
            "there is no such bucket: create it, or correct the URL", bucket=self.bucket, key=self._prefix + key
        )

    def close(self) -> None:
        """Let go of connections."""
        from fsspec.asyn import sync

        session = self.files._session
        if session is not None:
            with suppress(Exception):
                sync(self.files.loop, session.close, timeout=5)


def _reason(contents: bytes) -> str | None:
    """Return the word by which the storage says why, where it says so."""
    try:
        return str(json.loads(contents)["error"]["errors"][0]["reason"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
