"""What the operating system refuses, said so that a person knows what to do: the one place where errno is read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from statestore.errors import StateStoreError, Unavailable

__all__ = ["failing", "unavailable"]

# For each error: what to do about it, and whether the same call may succeed later without a change of the call.
_ADVICE: Final[dict[int, tuple[str, bool]]] = {
    errno.EACCES: ("give this user access to the path", False),
    errno.EPERM: ("give this user access to the path, and look whether the file is immutable or append-only", False),
    errno.EROFS: ("the file system is mounted read-only: mount it writable, or only read", False),
    errno.ENOSPC: ("the disk is full: make space, then try again", True),
    errno.EDQUOT: ("the disk quota is used up: make space, then try again", True),
    errno.EFBIG: ("the file would pass the largest size allowed here: look at the file-size limit", False),
    errno.EIO: ("the disk failed: look at the kernel's log before anything is written again", False),
    errno.EMFILE: ("this process has too many open files: close some or raise the limit (ulimit -n)", True),
    errno.ENFILE: ("this machine has too many open files: close some", True),
    errno.ENOMEM: ("there is no memory left", True),
    errno.ENOLCK: ("the file system gave no lock: store the logs where flock works", True),
    errno.ENAMETOOLONG: ("the path is longer than the file system takes: use a shorter root or name", False),
    errno.ELOOP: ("a symbolic link is in the way and is not followed: put the file itself there", False),
    errno.ENOTDIR: ("a directory is needed here, and something else is in its place: move it away", False),
    errno.EISDIR: ("a directory is in the log's place: move it away", False),
    errno.ENXIO: ("a FIFO, socket or device without a partner is in the log's place: move it away", False),
    errno.ENODEV: ("a device that does not answer is in the log's place: move it away", False),
    errno.ENOENT: ("a directory on the way is gone: make it again, or open the store anew", True),
    errno.ESTALE: ("the network file system lost the file: try again", True),
    errno.EINTR: ("a signal came in between: try again", True),
    errno.EBUSY: ("the path is in use: try again", True),
    errno.ETIMEDOUT: ("the file system did not answer in time: try again", True),
}


def unavailable(error: OSError, doing: str, /, *, effect_unknown: bool = False, **facts: Any) -> Unavailable:
    """Return the error to raise from `error`: what was being done, why it failed, and what to do.

    Args:
        error: what the operating system raised.
        doing: what was being done, as in "cannot append".
        effect_unknown: whether the call may have taken effect all the same.
        facts: what it is about, such as ``log`` and ``path``.
    """
    number = error.errno or 0
    advice, retry = _ADVICE.get(number, ((error.strerror or str(error)).lower(), False))
    code = errno.errorcode.get(number)
    path = facts.pop("path", None)
    if path is not None:
        path = os.fsdecode(path)
    return Unavailable(f"{doing}: {advice}", retry=retry, effect_unknown=effect_unknown, **facts, path=path, errno=code)


@contextmanager
def failing(doing: str, /, *, effect_unknown: bool = False, **facts: Any) -> Iterator[None]:
    """Turn what the operating system raises inside the context into our own error, as `unavailable` does."""
    try:
        yield
    except StateStoreError:
        raise  # Exists is an OSError too
    except OSError as error:
        raise unavailable(error, doing, effect_unknown=effect_unknown, **facts) from error
