"""What OpenTelemetry is told of a call, by its conventions for clients of databases. Needs ``opentelemetry-api``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Final

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from statestore import __version__, names
from statestore.errors import Conflict, Corrupt, StateStoreError, Unavailable

__all__ = ["Call", "Telemetry"]

_SCOPE: Final = "statestore"
_SECONDS: Final = (
    0.001,
    0.005,
    0.01,
    0.05,
    0.1,
    0.5,
    1,
    5,
    10,
)  # bounds of the histogram, as the conventions have them
_MOST_FAILED: Final = 1024  # calls that failed and may be repeated: how many are remembered


class Telemetry:
    """The tracer and the instruments of one store.

    Args:
        namespace: which store it is.
        tracer_provider: whom spans are told; None: the global one.
        meter_provider: whom metrics are told; None: the global one.
    """

    def __init__(
        self,
        namespace: str,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
    ) -> None:
        self._namespace = namespace
        self._common = {"db.system.name": _SCOPE, **({"db.namespace": namespace} if namespace else {})}
        self._tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)
        meter = metrics.get_meter(_SCOPE, __version__, meter_provider)
        self.duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of calls of a store.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self.io = meter.create_counter("statestore.io", unit="By", description="Bytes of logs read and appended.")
        self.conflicts = meter.create_counter(
            "statestore.conflicts", unit="{conflict}", description="Calls that found the log to end elsewhere."
        )
        self.retries = meter.create_counter(
            "statestore.retries", unit="{call}", description="Calls that repeat one to which the storage failed."
        )
        self._failed: dict[int, None] = {}

    @contextmanager
    def call(self, name: str, log: object, details: tuple[object, ...]) -> Iterator[Call]:
        """Tell of one call: enter before it and leave behind it, or with its error."""
        attributes = {"db.operation.name": name, **self._common}
        title = f"{name} {self._namespace}".rstrip()
        span = self._tracer.start_span(title, kind=SpanKind.CLIENT, attributes=attributes)
        if span.is_recording() and isinstance(log, str) and names.is_name(log):
            span.set_attribute("statestore.log", log)
        told = Call(self, span, attributes)
        if self._failed and self._failed.pop(_fingerprint(name, log, details), self) is None:
            self.retries.add(1, attributes)
        try:
            yield told
        except GeneratorExit:  # a listing or stream that nobody asks for more
            told.end(None)
            raise
        except BaseException as error:
            if isinstance(error, Unavailable):
                self._remember(_fingerprint(name, log, details))
            told.end(error)
            raise
        else:
            told.end(None)

    def _remember(self, failed: int) -> None:
        if len(self._failed) >= _MOST_FAILED:
            self._failed.clear()
        self._failed[failed] = None


class Call:
    """One call that is under way."""

    def __init__(self, telemetry: Telemetry, span: Span, attributes: dict[str, str]) -> None:
        self._telemetry = telemetry
        self._span = span
        self._attributes = attributes
        self._seconds = 0.0
        self._read = 0

    @contextmanager
    def working(self) -> Iterator[None]:
        """Measure what the inner store does, and let spans that it begins be this one's children."""
        began = perf_counter()
        try:
            with trace.use_span(self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
                yield
        finally:
            self._seconds += perf_counter() - began

    def read(self, size: int) -> None:
        """Count bytes that were read."""
        self._read += size

    def written(self, size: int) -> None:
        """Count bytes that were appended."""
        self._io("write", size)

    def _io(self, direction: str, size: int) -> None:
        self._telemetry.io.add(size, {**self._attributes, "statestore.io.direction": direction})
        self._span.set_attribute(f"statestore.{direction}.bytes", size)

    def end(self, error: BaseException | None) -> None:
        """Tell how the call ended. An error's text may name anything, and so only its kind is told."""
        if self._read:
            self._io("read", self._read)
        attributes = self._attributes
        if error is not None:
            attributes = {**attributes, "error.type": type(error).__qualname__}
            self._span.set_attribute("error.type", type(error).__qualname__)
            # A refusal that the contract has is an answer: only what the storage did wrong fails the span.
            if isinstance(error, Unavailable | Corrupt) or not isinstance(error, StateStoreError):
                self._span.set_status(Status(StatusCode.ERROR))
            if isinstance(error, Conflict):
                self._telemetry.conflicts.add(1, self._attributes)
        self._telemetry.duration.record(self._seconds, attributes)
        self._span.end()


def _fingerprint(name: str, log: object, details: tuple[object, ...]) -> int:
    """Return a number that stands for a call and its arguments, in this process."""
    try:
        return hash((name, log, details))
    except TypeError:  # an argument that no call takes, as the store will say
        return 0
