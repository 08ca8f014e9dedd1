"""What the protocol needs of a storage, by way of one fsspec file system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from statestore.errors import PluginError, StateStoreError, Unavailable
from statestore_fsspec._steps import Outcome, Page

__all__ = ["Answer", "Drive", "PAGE", "bucket_and_prefix", "guarded"]

PAGE: Final = 1000
"""The most keys on one page of a listing."""


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
    """

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
            right: which right the request needs, as ``list``, ``get``, ``put`` or ``delete``.
            key: the object that the request was about.
        """

    @abstractmethod
    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage; return whether it was there."""

    def fetch(self, key: str, start: int = 0, stop: int | None = None) -> bytes | None:
        """Return the bytes of ``[start, stop)`` of an object; None where there is no such object."""
        try:
            limits = {} if start == 0 and stop is None else {"start": start, "end": stop}
            data = self.files.cat_file(self.path(key), **limits)
        except Exception as error:
            answer = self.judged(error, "get", key)
            return None if answer is Answer.MISSING else b""
        return bytes(data)

    def create(self, key: str, data: bytes) -> tuple[Outcome, Exception | None]:
        """Create an object, if there is none at that key; return what came of it, and the error where that is unknown.

        Raises:
            Unavailable: the storage refused the request; it had no effect.
        """
        try:
            self.files.pipe_file(self.path(key), data, mode="create")
        except Exception as error:
            answer = self.judge(error, "put", key)
            if answer is Answer.REFUSED:
                return Outcome.REFUSED, None
            if isinstance(answer, Unavailable) and not answer.retry:
                raise answer from error
            return Outcome.UNKNOWN, error
        return Outcome.CREATED, None

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
            raise Unavailable("the file system can't be opened: see the cause", cause=type(error).__name__) from error

    return connect
