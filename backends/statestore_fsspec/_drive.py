"""What the protocol needs of a storage, by way of one fsspec file system."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, ClassVar, Final

from statestore.errors import PluginError, StateStoreError, Unavailable
from statestore_fsspec._steps import Outcome, Page, Span

__all__ = ["Answer", "BucketDrive", "Drive", "PAGE", "bucket_and_prefix", "guarded", "upload_limit"]

PAGE: Final = 1000
"""The most keys on one page of a listing."""

_LATER: Final = frozenset({0, 408, 409, 425, 429})  # statuses below 500 after which the same request may do; 0: none
_CLOSING: Final = 5  # seconds that closing a connection may take
_SLOWEST: Final = 64 << 10  # bytes a second; an upload that is slower than this counts as unanswered


class Answer(Enum):
    """What a file system's exception says, where that is an answer and no failure."""

    MISSING = "there is no such object"
    REFUSED = "there is such an object already"
    SHORT = "the object ends before the range that was asked for"


class Drive(ABC):
    """One place on one storage. Each call is one request, sent once; whoever calls repeats it.

    Every call raises `Unavailable` when the storage fails. ``error.retry`` says whether the request may be sent
    again; where it is False the storage has refused the request, and it had no effect.

    Args:
        files: the file system, an instance that nobody else uses.
        root: the place, as the file system spells paths.

    Attributes:
        threads: how many may wait for requests at once, where each thread waits for one.
    """

    threads: ClassVar[int] = 256

    def __init__(self, files: Any, root: str) -> None:
        self.files = files
        self.root = root.strip("/")

    def path(self, key: str) -> str:
        """Return how the file system spells the object at a key."""
        return f"{self.root}/{key}"

    @abstractmethod
    def page(self, prefix: str, after: str) -> Page:
        """Return the first keys that begin with `prefix` and come after `after`, in the storage's order."""

    @abstractmethod
    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of the file system means.

        Args:
            error: the exception.
            right: which right the request needs, as ``list``, ``get``, ``put``, ``copy`` or ``delete``.
            key: the object that the request was about.
        """

    @abstractmethod
    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage; return whether it was there."""

    def fetch(self, key: str, start: int = 0, stop: int | None = None) -> bytes | None:
        """Return the bytes of ``[start, stop)`` of an object; None where there is no such object."""
        try:
            data = self.files.cat_file(self.path(key), **Span(key, start, stop).limits)
        except Exception as error:
            return self.unfetched(error, key)
        return bytes(data)

    def unfetched(self, error: Exception, key: str) -> bytes | None:
        """Return what an exception says of a part of an object, or raise it as a failure."""
        return None if self.judged(error, "get", key) is Answer.MISSING else b""

    def create(self, key: str, data: bytes) -> tuple[Outcome, Exception | None]:
        """Create an object, if there is none at that key; return what came of it, and the error where that is unknown.

        Raises:
            Unavailable: the storage refused the request; it had no effect.
        """
        try:
            created = self.put(key, data)
        except StateStoreError:
            raise
        except Exception as error:
            answer = self.judge(error, "put", key)
            if answer is Answer.REFUSED:
                return Outcome.REFUSED, None
            if isinstance(answer, Unavailable) and not answer.retry:
                raise answer from error
            return Outcome.UNKNOWN, error
        return (Outcome.CREATED if created else Outcome.REFUSED), None

    @abstractmethod
    def put(self, key: str, data: bytes) -> bool:
        """Create an object by one atomic act of the storage; return whether it is the one that is there now."""

    def remove(self, key: str) -> None:
        """Remove an object; one that is not there does not count."""
        try:
            self.files.rm_file(self.path(key))
        except Exception as error:
            self.judged(error, "delete", key)

    def judged(self, error: Exception, right: str, key: str) -> Answer:
        """Return what an exception says, or raise it as a failure."""
        answer = self.judge(error, right, key)
        if isinstance(answer, Unavailable):
            raise answer from error
        return answer

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""


class BucketDrive(Drive):
    """A prefix of a bucket.

    Args:
        files: the file system, an instance that nobody else uses.
        root: the bucket, and perhaps a prefix in it.

    Attributes:
        kind: what the storage calls a bucket.
        rights: what it calls the rights.
        patience: seconds after which a request without a body counts as unanswered, all told.
        answers: the error codes that are answers.
        refusals: what the error codes mean by which it refuses a request for good.
    """

    threads = 16
    kind: ClassVar[str] = "bucket"
    rights: ClassVar[Mapping[str, str]]
    patience: float
    answers: ClassVar[Mapping[str, Answer]]
    refusals: ClassVar[Mapping[str, Collection[str]]]

    def __init__(self, files: Any, root: str) -> None:
        super().__init__(files, root)
        self.bucket, _, prefix = self.root.partition("/")
        self._prefix = prefix + "/" if prefix else ""

    def name(self, key: str) -> str:
        """Return the name of the object at a key, as the storage has it."""
        return self._prefix + key

    def key(self, name: str) -> str:
        """Return the key of the object of that name."""
        return name[len(self._prefix) :]

    def put(self, key: str, data: bytes) -> bool:
        """Create an object by one atomic act of the storage; return whether it is the one that is there now."""
        from fsspec.asyn import sync

        # The client libraries count the seconds until an answer only from when all has been sent: whoever takes a
        # connection and reads nothing would be waited for without end.
        sync(
            self.files.loop,
            self.files._pipe_file,
            self.path(key),
            data,
            mode="create",
            timeout=upload_limit(self.patience, len(data)),
        )
        return True

    def fetch_each(self, spans: Sequence[Span], gate: asyncio.Semaphore) -> list[bytes | Unavailable | None]:
        """Return what `fetch` would return, or raise, for each part of an object; all are asked for at once.

        One thread waits for them all, where hundreds would, and each request costs a fifth less processor time.

        Args:
            spans: the parts.
            gate: bounds how many requests of all callers are under way.
        """
        from fsspec.asyn import sync

        async def ask(span: Span) -> bytes:
            async with gate:
                return bytes(await self.files._cat_file(self.path(span.key), **span.limits))

        async def ask_all() -> list[bytes | BaseException]:
            return await asyncio.gather(*map(ask, spans), return_exceptions=True)

        answers = sync(self.files.loop, ask_all)
        return [self._answered(answer, span.key) for span, answer in zip(spans, answers, strict=True)]

    def _answered(self, answer: bytes | BaseException, key: str) -> bytes | Unavailable | None:
        if not isinstance(answer, BaseException):
            return answer
        if not isinstance(answer, Exception):
            raise answer
        try:
            return self.unfetched(answer, key)
        except Unavailable as failure:
            return failure

    def page(self, prefix: str, after: str) -> Page:
        """Return the first keys that begin with `prefix` and come after `after`, in the storage's order."""
        try:
            return self.listed(prefix, after)
        except Exception as error:
            failure = self.judge(error, "list", prefix)
            if isinstance(failure, Answer):
                failure = Unavailable(f"the storage answered a listing with: {failure.value}", **self.facts(prefix))
            raise failure from error

    @abstractmethod
    def listed(self, prefix: str, after: str) -> Page:
        """Return a page, or raise what the file system raises."""

    def facts(self, key: str) -> dict[str, Any]:
        """Return what an error about a key tells."""
        return {self.kind: self.bucket, "key": self.name(key)}

    def unanswered(self, key: str) -> Unavailable:
        """Return the failure of a request to which no answer came."""
        return Unavailable("the storage does not answer: see the cause", retry=True, **self.facts(key))

    def unsent(self, key: str) -> Unavailable:
        """Return the failure of a request that was never sent."""
        return Unavailable("the request could not be made: see the cause", **self.facts(key))

    def verdict(self, code: str, status: int, right: str, key: str, **more: Any) -> Answer | Unavailable:
        """Return what an error code means, and the HTTP status where the code is none of those that are known."""
        if code in self.answers:
            return self.answers[code]
        for words, codes in self.refusals.items():
            if code in codes:
                needs = self.rights[right] if "right" in words else None
                return Unavailable(words, code=code, needs=needs, **more, **self.facts(key))
        retry = status >= 500 or status in _LATER
        return Unavailable("the storage failed: see the cause", retry=retry, code=code, **more, **self.facts(key))

    @abstractmethod
    def closing(self) -> Callable[[], Awaitable[Any]] | None:
        """Return what closes the connections; None where there are none."""

    def close(self) -> None:
        """Let go of connections."""
        from fsspec.asyn import sync

        closing = self.closing()
        if closing is not None:
            with suppress(Exception):
                sync(self.files.loop, closing, timeout=_CLOSING)


def upload_limit(patience: float, size: int) -> float:
    """Return after how many seconds an upload counts as unanswered.

    Args:
        patience: seconds that a request without a body may take.
        size: of the upload, in bytes.
    """
    return patience + size / _SLOWEST


def bucket_and_prefix(url: str) -> str:
    """Return what a URL names: a bucket, and perhaps a prefix in it.

    Raises:
        PluginError: it names none, or has credentials in it.
    """
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("/")[0]:
        raise PluginError("no credentials belong into this URL: give them as options, or by the environment")
    root = rest.strip("/")
    if not root or any(part in ("", ".", "..") for part in root.split("/")):
        raise PluginError(f"a bucket, and a prefix where you want one: {scheme}://bucket/prefix", url=url)
    return root


def guarded(make: Callable[[], Drive]) -> Callable[[], Drive]:
    """Return what makes a drive, and tells in our words that it can't be made.

    Raises:
        Unavailable: the file system does not take its arguments, or does not find its credentials.
    """

    def connect() -> Drive:
        try:
            return make()
        except StateStoreError:
            raise
        except Exception as error:
            raise Unavailable(
                "the file system can't be opened: it finds no credentials, or does not take an option; see the cause",
                cause=type(error).__name__,
            ) from error

    return connect
