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
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from gcsfs.core import GCSFileSystem
from gcsfs.retry import validate_response

from statestore.errors import Unavailable
from statestore_fsspec._drive import PAGE, Answer, BucketDrive, bucket_and_prefix, guarded, upload_limit
from statestore_fsspec._layout import Entry
from statestore_fsspec._settings import MAX_APPEND
from statestore_fsspec._steps import Page
from statestore_fsspec._store import FsspecStore

if TYPE_CHECKING:
    from statestore_fsspec._options import GcsOptions

__all__ = ["GcsDrive", "open_gcs"]

_RIGHTS: Final = {
    "list": "storage.objects.list",
    "get": "storage.objects.get",
    "put": "storage.objects.create",
    "copy": "storage.objects.get and storage.objects.create",
    "delete": "storage.objects.delete",
}
_ZONAL: Final = "RAPID"  # the storage class of all objects in zonal buckets, and of no others

# https://cloud.google.com/storage/docs/json_api/v1/status-codes
_ANSWERS: Final = {"404": Answer.MISSING, "412": Answer.REFUSED, "416": Answer.SHORT}
_REFUSALS: Final = {
    "the storage does not take the request: see the cause": {"400", "405"},
    "the credentials are not accepted: renew or correct them": {"401"},
    "the credentials lack a right": {"403"},
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
    limits = aiohttp.ClientTimeout(
        upload_limit(2 * options.timeout, MAX_APPEND), sock_connect=options.timeout, sock_read=options.timeout
    )
    given = {
        **options.told("token", "project", "endpoint_url"),
        "requests_timeout": limits,
        **options.storage_options.get_secret_value(),
    }

    def connect() -> GcsDrive:
        return GcsDrive(_Files(**given, skip_instance_cache=True, use_listings_cache=False), root)

    return FsspecStore(guarded(connect), f"gs://{root}", **options.root())


class GcsDrive(BucketDrive):
    """A prefix of a bucket."""

    rights = _RIGHTS
    answers = _ANSWERS
    refusals = _REFUSALS

    def listed(self, prefix: str, after: str) -> Page:
        """Return a page, or raise what gcsfs raises."""
        ask = {
            "prefix": self.name(prefix),
            "maxResults": PAGE,
            "fields": "items(name,size,timeCreated),nextPageToken",
        }
        if after:
            ask["startOffset"] = self.name(after)  # the first one, not the one before it
        while True:
            said = self.files.call("GET", "b/{}/o", self.bucket, json_out=True, **ask)
            entries = tuple(
                Entry(self.key(row["name"]), int(row["size"]), datetime.fromisoformat(row["timeCreated"]).timestamp())
                for row in said.get("items", ())
                if self.key(row["name"]) > after
            )
            token = said.get("nextPageToken")
            if entries or not token:
                return Page(entries, bool(token))
            ask["pageToken"] = token

    def put(self, key: str, data: bytes) -> bool:
        """Create an object by one insert; return True.

        Raises:
            Unavailable: the bucket is a zonal one.
        """
        boundary = secrets.token_hex(16).encode()
        while boundary in data:
            boundary = secrets.token_hex(16).encode()
        facts = json.dumps({"name": self.name(key)}).encode()
        framed = b"".join(
            (
                b"--%b\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%b\r\n" % (boundary, facts),
                b"--%b\r\nContent-Type: application/octet-stream\r\n\r\n" % boundary,
                data,
                b"\r\n--%b--\r\n" % boundary,
            )
        )
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
        if said.get("storageClass") == _ZONAL:
            raise Unavailable(
                "this bucket is a zonal one, where nothing has shown that objects are created exclusively: use another",
                **self.facts(key),
            )
        return True

    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage; return whether it was there."""
        more: dict[str, Any] = {}
        try:
            while True:
                said = self.files.call(
                    "POST",
                    "b/{}/o/{}/rewriteTo/b/{}/o/{}",
                    self.bucket,
                    self.name(source),
                    self.bucket,
                    self.name(target),
                    headers={"Content-Type": "application/json"},
                    json_out=True,
                    **more,
                )
                if said["done"]:
                    return True
                more["rewriteToken"] = said["rewriteToken"]
        except Exception as error:
            return self.judged(error, "copy", target) is not Answer.MISSING

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of gcsfs, or of the libraries under it, means."""
        from google.auth.exceptions import GoogleAuthError, TransportError

        status, contents = getattr(error, "said", (0, b""))
        if not status:
            if isinstance(error, GoogleAuthError) and not isinstance(error, TransportError):
                words = "no credentials are found, or they are not accepted: see the cause"
                return Unavailable(words, **self.facts(key))
            mine = isinstance(error, (TypeError, ValueError)) and not isinstance(error, json.JSONDecodeError)
            return self.unsent(key) if mine else self.unanswered(key)
        if status == 404 and (
            right in ("list", "put") or (b"bucket" in contents and b"No such object" not in contents)
        ):
            return Unavailable("there is no such bucket: create it, or correct the URL", **self.facts(key))
        if status == 403 and right == "put" and b"storage.objects.delete" in contents:
            return Answer.REFUSED  # said of an object that is there, to whoever may create and not replace
        reason = _reason(contents)
        if reason is not None and reason in _LATER:
            return self.verdict(reason, 503, right, key, said=status)
        return self.verdict(str(status), status, right, key, reason=reason)

    def closing(self) -> Callable[[], Awaitable[Any]] | None:
        """Return what closes the connections; None where there are none."""
        session = self.files._session
        return None if session is None else session.close


def _reason(contents: bytes) -> str | None:
    """Return the word by which the storage says why, where it says so."""
    try:
        return str(json.loads(contents)["error"]["errors"][0]["reason"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
