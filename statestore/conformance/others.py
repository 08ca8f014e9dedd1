"""Others that work at the same time as a clause: threads, forked children, and processes of their own."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TypeVar, cast

from statestore.conformance.case import Case, NotRun
from statestore.conformance.check import Failure
from statestore.store import Store

__all__ = ["Process", "forked", "process", "together", "watched"]

_T = TypeVar("_T")
_START = "from statestore.conformance.others import _main; _main()"


def together(count: int, work: Callable[[int], _T], *, seconds: float = 120) -> list[_T]:
    """Run ``work(0)`` to ``work(count - 1)`` in threads that begin at the same moment; return what they returned.

    Raises:
        Failure: one of them raised, or has not come to an end after `seconds`.
    """
    gate = threading.Barrier(count)
    results: list[Any] = [None] * count
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            gate.wait()
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    # Threads that change places as often as they can find what a store forgot to lock.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
            if thread.is_alive():
                raise Failure(f"one of {count} threads does not come to an end")
    finally:
        sys.setswitchinterval(interval)
    if errors:
        told = errors[0]
        what = str(told) if isinstance(told, Failure) else f"{type(told).__name__}: {told}"
        raise Failure(f"in one of {count} threads: {what}") from told
    return cast("list[_T]", results)


def watched(write: Callable[[], object], *looks: Callable[[], object]) -> None:
    """Call `write` once in a thread, and meanwhile each of `looks` again and again in one of its own.

    Every look is taken once more when all is written.

    Raises:
        Failure: one of them raised, or does not come to an end.
    """
    done = threading.Event()

    def work(number: int) -> None:
        if number == len(looks):
            try:
                write()
            finally:
                done.set()
            return
        last = False
        while not last:
            last = done.is_set()
            looks[number]()

    together(len(looks) + 1, work)


def forked(work: Callable[[], object]) -> None:
    """Run `work` in a forked child and wait for it.

    Raises:
        Failure: it raised in the child, or the child died.
        NotRun: this platform cannot fork.
    """
    if not hasattr(os, "fork"):
        raise NotRun("this platform cannot fork")
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        # That this process has threads is what makes the clause worth its name.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(ours)
            work()
            code = 0
        except BaseException:
            os.write(theirs, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(code)
    os.close(theirs)
    try:
        with os.fdopen(ours, "rb") as told:
            text = told.read().decode(errors="replace")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(child, 0)
    if status:
        last = text.strip().rpartition("\n")[2]
        raise Failure(f"in a forked child: {last or f'it died with status {status}'}")


class Process:
    """A process of its own with a store of its own on the same place, which does some work and talks about it."""

    def __init__(self, opener: Callable[[], Store], work: Callable[..., object], args: tuple[object, ...]) -> None:
        self._popen = subprocess.Popen([sys.executable, "-c", _START], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self._popen.pid
        self.say(sys.path)
        self.say(pickle.dumps((opener, work, args)))

    def say(self, thing: object) -> None:
        """Send something that the work gets from ``talk.hear()``."""
        pipe = cast("IO[bytes]", self._popen.stdin)
        pickle.dump(thing, pipe)
        pipe.flush()

    def hear(self) -> Any:
        """Return what the work has said next.

        Raises:
            EOFError: the process is dead.
            Failure: the work raised.
        """
        kind, thing = pickle.load(cast("IO[bytes]", self._popen.stdout))  # noqa: S301 - said by our own child
        if kind == "raised":
            raise Failure(f"in another process: {thing}")
        return thing

    def signal(self, number: int) -> None:
        """Send a signal, such as ``SIGSTOP``."""
        self._popen.send_signal(number)

    def stopped(self) -> None:
        """Wait until the process has been stopped by a signal."""
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def kill(self) -> None:
        """Kill the process without a chance to clean up, and wait until it is dead."""
        self._popen.kill()
        self._popen.wait()

    def end(self) -> None:
        """Let go of the process, killing it where it has not ended."""
        self.kill()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


@contextmanager
def process(case: Case, work: Callable[..., object], *args: object) -> Iterator[Process]:
    """Run ``work(store, talk, *args)`` in another process until the block ends; `work` is a function of a module."""
    spawn = case.harness.spawn
    if spawn is None:
        raise NotRun("the harness has no spawn")
    _ = case.store
    other = Process(spawn, work, args)
    case.note(f"process {work.__name__}({', '.join(map(repr, args))})")
    try:
        yield other
    finally:
        other.end()


class Talk:
    """The other end of a `Process`, given to its work."""

    def __init__(self, source: IO[bytes], target: IO[bytes]) -> None:
        self._source = source
        self._target = target

    def say(self, thing: object, kind: str = "said") -> None:
        """Tell the clause something."""
        pickle.dump((kind, thing), self._target)
        self._target.flush()

    def hear(self) -> Any:
        """Return what the clause has said next."""
        return pickle.load(self._source)  # noqa: S301 - said by the process that started this one


def _main() -> None:
    # What a backend prints must not get between the two.
    talk = Talk(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    try:
        sys.path[:] = talk.hear()
        opener, work, args = pickle.loads(talk.hear())  # noqa: S301 - as above
        with opener() as store:
            talk.say(work(store, talk, *args))
    except BrokenPipeError:
        pass
    except BaseException as error:
        talk.say(f"{type(error).__name__}: {error}", kind="raised")
