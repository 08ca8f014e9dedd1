"""Azure Blob Storage, by adlfs: which calls are one request, and what each error code means.

adlfs sends ``If-None-Match: *`` with an upload of one request, which all of ours are. Its listing and its copy are not
used: the one is kept in a cache, the other is not waited for.

Nothing of Azure's listing begins behind a key, but where a page ended can be told by the marker that came with it. So
a listing that goes on costs one request a page, and one that begins in the midst reads the pages before.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from statestore.errors import Unavailable
from statestore_fsspec._drive import PAGE, Answer, BucketDrive, bucket_and_prefix, guarded
from statestore_fsspec._layout import Entry
from statestore_fsspec._steps import Page
from statestore_fsspec._store import FsspecStore

if TYPE_CHECKING:
    from statestore_fsspec._options import AzureOptions

__all__ = ["AzureDrive", "open_azure"]

Result = TypeVar("Result")
_MARKERS: Final = 1000  # ends of pages that are remembered
_LARGEST_PAGE: Final = 5000
_COPYING: Final = 0.05  # seconds between two looks at a copy that is not done at once

_RIGHTS: Final = {"list": "List", "get": "Read", "put": "Write", "copy": "Read and Write", "delete": "Delete"}

# https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes, and the common ones
_ANSWERS: Final = {
    "BlobNotFound": Answer.MISSING,
    "CannotVerifyCopySource": Answer.MISSING,
    "BlobAlreadyExists": Answer.REFUSED,
    "ConditionNotMet": Answer.REFUSED,
    "UnauthorizedBlobOverwrite": Answer.REFUSED,  # by whoever may create, and not write
    "InvalidRange": Answer.SHORT,
}
_REFUSALS: Final = {
    "there is no such container: create it, or correct the URL": {
        "ContainerDisabled",
        "ContainerNotFound",
        "ResourceNotFound",
    },
    "the credentials lack a right, or are wrong": {"AuthorizationFailure"},
    "the credentials lack a right": {
        "AuthorizationPermissionMismatch",
        "AuthorizationResourceTypeMismatch",
        "AuthorizationServiceMismatch",
        "InsufficientAccountPermissions",
        "PublicAccessNotPermitted",
    },
    "the credentials are not accepted: renew or correct them": {
        "AccountIsDisabled",
        "AuthenticationFailed",
        "InvalidAuthenticationInfo",
        "NoAuthenticationInformation",
    },
    "the account does not take requests from here, or over this protocol": {
        "AuthorizationProtocolMismatch",
        "AuthorizationSourceIPMismatch",
        "InsecureBearerTokenNotAllowed",
    },
}


def open_azure(url: str, options: AzureOptions) -> FsspecStore:
    """Open a store in a container; nothing is asked of it yet."""
    from adlfs import AzureBlobFileSystem

    # abfs://container@account.dfs.core.windows.net/prefix names the account too.
    scheme, _, rest = url.partition("://")
    place, slash, prefix = rest.partition("/")
    container, at, host = place.partition("@")
    account = {}
    if at and ":" not in place and host.endswith(("dfs.core.windows.net", "blob.core.windows.net")):
        url, account = f"{scheme}://{container}{slash}{prefix}", {"account_name": host.partition(".")[0]}
    root = bucket_and_prefix(url)
    given = {
        **account,
        **options.told("account_name", "account_key", "connection_string", "sas_token", "account_host"),
        **options.told("tenant_id", "client_id", "client_secret"),
        "connection_timeout": options.timeout,
        "read_timeout": options.timeout,
        **options.storage_options.get_secret_value(),
    }

    def connect() -> AzureDrive:
        return AzureDrive(AzureBlobFileSystem(**given, skip_instance_cache=True, use_listings_cache=False), root)

    return FsspecStore(guarded(connect), f"az://{root}", **options.root())


class AzureDrive(BucketDrive):
    """A prefix of a container."""

    kind = "container"
    rights = _RIGHTS
    answers = _ANSWERS
    refusals = _REFUSALS

    def __init__(self, files: Any, root: str) -> None:
        super().__init__(files, root)
        # Azure's own library would send a request up to four times, and wait 15 seconds and more in between.
        files.service_client._config.retry_policy.total_retries = 0
        self._limits = {name: files._timeout_kwargs[name] for name in ("connection_timeout", "read_timeout")}
        self.patience = sum(self._limits.values())
        self._lock = threading.Lock()
        self._markers: OrderedDict[tuple[str, str], str] = OrderedDict()

    def _run(self, make: Callable[[], Awaitable[Result]]) -> Result:
        from fsspec.asyn import sync

        result: Result = sync(self.files.loop, make)
        return result

    def listed(self, prefix: str, after: str) -> Page:
        """Return a page, or raise what Azure's library raises."""
        with self._lock:
            marker = self._markers.get((prefix, after)) if after else None
        size = PAGE if marker or not after else _LARGEST_PAGE  # those before `after` are only skipped
        while True:
            rows, marker = self._list(prefix, marker, size)
            entries = tuple(entry for entry in rows if entry.key > after)
            if entries or not marker:
                break
        if marker:
            with self._lock:
                self._markers[prefix, entries[-1].key] = marker
                if len(self._markers) > _MARKERS:
                    self._markers.popitem(last=False)
        return Page(entries, bool(marker))

    def _list(self, prefix: str, marker: str | None, size: int) -> tuple[list[Entry], str | None]:
        """Return one page of the storage's, and the marker of the next one."""

        async def ask() -> tuple[list[Entry], str | None]:
            async with self.files.service_client.get_container_client(self.bucket) as container:
                pages = container.list_blobs(
                    name_starts_with=self.name(prefix), results_per_page=size, **self._limits
                ).by_page(marker)
                async for page in pages:
                    rows = [Entry(self.key(row.name), row.size, row.last_modified.timestamp()) async for row in page]
                    return rows, pages.continuation_token or None
            return [], None

        return self._run(ask)

    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage, unless there is one at `target`; return whether it was there.

        A copy that is asked for again, and so found at its target, may still be under way there.
        """
        from azure.core import MatchConditions

        async def begin() -> str:
            client = self.files.service_client
            async with (
                client.get_blob_client(self.bucket, self.name(source)) as old,
                client.get_blob_client(self.bucket, self.name(target)) as new,
            ):
                condition = MatchConditions.IfMissing
                said = await new.start_copy_from_url(old.url, match_condition=condition, **self._limits)
                return str(said["copy_status"])

        try:
            found = self._run(begin)
        except Exception as error:
            if self.judged(error, "copy", target) is Answer.MISSING:
                return False
            found = self._copying(target)
        while found == "pending":
            time.sleep(_COPYING)
            found = self._copying(target)
        if found != "success":
            raise Unavailable("the storage gave a copy up", retry=True, key=target, status=found)
        return True

    def _copying(self, target: str) -> str:
        """Return how far the copy is that an object was made by; one that was put there is done."""

        async def look() -> str:
            async with self.files.service_client.get_blob_client(self.bucket, self.name(target)) as new:
                return str((await new.get_blob_properties(**self._limits)).copy.status or "success")

        try:
            return self._run(look)
        except Exception as error:
            return self.judged(error, "get", target).value

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of adlfs, or of Azure's library under it, means."""
        from azure.core import exceptions as of

        for said in (error, error.__cause__, error.__context__):
            if isinstance(said, of.HttpResponseError) and said.status_code is not None:
                code = getattr(said, "error_code", None) or said.status_code
                return self.verdict(str(getattr(code, "value", code)), int(said.status_code), right, key)
        if isinstance(error, FileExistsError):
            return Answer.REFUSED
        if isinstance(error, of.ClientAuthenticationError):
            return Unavailable("no credentials are found, or they are not accepted: see the cause", **self.facts(key))
        return self.unsent(key) if isinstance(error, (ValueError, TypeError)) else self.unanswered(key)

    def closing(self) -> Callable[[], Awaitable[Any]]:
        """Return what closes the connections."""
        return self.files.service_client.close  # type: ignore[no-any-return]
