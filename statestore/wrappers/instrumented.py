"""A store that tells OpenTelemetry what it is asked: a span and a duration of every call, and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from statestore.store import LogInfo, Snapshot, Store, Tail
from statestore.wrappers._wrapper import WrappedSnapshot, Wrapper

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from statestore.wrappers._telemetry import Call, Telemetry

__all__ = ["Instrumented"]

T = TypeVar("T")


class Instrumented(Wrapper):
    """A store whose calls are told to OpenTelemetry, as a client's calls of a database.

    Each call is a span ``<call> <namespace>``, and counts in the histogram of durations, with its kind of error. Bytes
    read and appended, conflicts and repeated calls are counted. What a log holds is told to nobody, nor is the text of
    an error; a log's name is an attribute of spans alone. Where the package ``opentelemetry-api`` is not installed,
    this is the inner store and nothing more.

    Not told are `location` and `close`, which ask the storage nothing, and `maintenance`.

    Args:
        store: the inner store.
        namespace: which store it is, in spans and metrics, such as its URL without a password. Few different ones.
        tracer_provider: whom spans are told, by default the global one.
        meter_provider: whom metrics are told, by default the global one.
    """

    def __init__(
        self,
        store: Store,
        *,
        namespace: str = "",
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        super().__init__(store)
        self._telemetry: Telemetry | None = None
        try:
            from statestore.wrappers._telemetry import Telemetry
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "opentelemetry":
                raise
        else:
            self._telemetry = Telemetry(namespace, tracer_provider, meter_provider)

    def _run(self, call: str, log: str, act: Callable[[], T]) -> T:
        return self._tell(call, log, (), lambda _: act())

    def _tell(self, call: str, log: str, details: tuple[object, ...], act: Callable[[Call | None], T]) -> T:
        """Do one call of the inner store and tell of it; `details` are its other arguments, which tell calls apart."""
        if self._telemetry is None:
            return act(None)
        with self._telemetry.call(call, log, details) as told, told.working():
            return act(told)

    def _each(self, call: str, log: str, items: Iterator[T], size: Callable[[T], int]) -> Iterator[T]:
        """Pass on what comes piece by piece: one call, from the first that is asked for, as long as the store works."""
        if self._telemetry is None:
            yield from items
            return
        with self._telemetry.call(call, log, ()) as told:
            while True:
                with told.working():
                    item = next(items, None)
                if item is None:
                    return
                told.read(size(item))
                yield item

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        """Add `data` to the end of `log`, if the log ends exactly at `at`; return the new tail."""

        def act(told: Call | None) -> Tail:
            tail = self.inner.append(log, data, at=at)
            if told is not None:
                told.written(len(data))
            return tail

        return self._tell("append", log, (data, at), act)

    def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the log's end as slices are."""
        return self._read(log, start, stop, lambda: self.inner.read(log, start, stop))

    def _read(self, log: str, start: int, stop: int | None, read: Callable[[], bytes]) -> bytes:
        def act(told: Call | None) -> bytes:
            data = read()
            if told is not None:
                told.read(len(data))
            return data

        return self._tell("read", log, (start, stop), act)

    def list(self, prefix: str = "", *, after: str = "", tails: bool = False) -> Iterator[LogInfo]:
        """Yield the logs whose names begin with `prefix` and come after `after`, in code-point order."""
        return self._each("list", "", self.inner.list(prefix, after=after, tails=tails), lambda row: 0)

    def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        return self._each("stream", log, self.inner.stream(log, start, stop), len)

    def snapshot(self, log: str) -> Snapshot:
        """Return the log as it ends now; taking it is a call, and so is all that it is asked."""
        return _InstrumentedSnapshot(self, log, super().snapshot(log))

    def hold(self, log: str) -> AbstractContextManager[None]:
        """Keep everybody else from appending to the log; entering is the call, however long it is held."""
        return self._hold(log, self.inner.hold(log))

    @contextmanager
    def _hold(self, log: str, inner: AbstractContextManager[None]) -> Iterator[None]:
        with ExitStack() as held:
            self._run("hold", log, lambda: held.enter_context(inner))
            yield


class _InstrumentedSnapshot(WrappedSnapshot):
    """A snapshot whose reads are told as those of the store."""

    store: Instrumented

    def read(self, start: int = 0, stop: int | None = None) -> bytes:
        """Return the bytes of ``[start, stop)``, cut at the snapshot's end as slices are."""
        return self.store._read(self.log, start, stop, lambda: self.inner.read(start, stop))

    def stream(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of ``[start, stop)`` in pieces, in bounded memory."""
        return self.store._each("stream", self.log, iter(self.inner.stream(start, stop)), len)

    def boundary(self, before: int) -> int:
        """Return an offset, at most `before`, where an append began."""
        return self.store._run("boundary", self.log, lambda: self.inner.boundary(before))

    def copy(self, target: str, *, stop: int | None = None) -> Tail:
        """Make `target` a new log equal to the snapshot's ``[0, stop)``."""
        return self.store._run("copy", target, lambda: self.inner.copy(target, stop=stop))
