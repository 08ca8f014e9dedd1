"""OpenTelemetry is told of every call, by its conventions; never of what a log holds, and never of a credential."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from statestore import RecordLog, open_store
from statestore.errors import Conflict, InvalidName, NotFound, Unavailable
from statestore.store import NEW, Tail
from statestore.wrappers import Faulty, Instrumented, Step, Wrapper
from statestore_memory import MemoryStore


class Told:
    """What was told to OpenTelemetry so far."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))

    def store(self, inner: Any = None, namespace: str = "") -> Instrumented:
        return Instrumented(
            MemoryStore() if inner is None else inner,
            namespace=namespace,
            tracer_provider=self.tracers,
            meter_provider=self.meters,
        )

    def spans(self) -> list[Any]:
        """The spans that have ended since the last call."""
        spans = list(self.exporter.get_finished_spans())
        self.exporter.clear()
        return spans

    def names(self) -> list[str]:
        return [span.name for span in self.spans()]

    def points(self, metric: str) -> Iterator[Any]:
        data = self.reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for each in scope.metrics:
                    if each.name == metric:
                        yield from each.data.data_points

    def counts(self, metric: str, *by: str) -> dict[Any, int]:
        return {
            tuple(point.attributes.get(name) for name in by): getattr(point, "count", None) or point.value
            for point in self.points(metric)
        }


@pytest.fixture
def told() -> Iterator[Told]:
    told = Told()
    yield told
    told.tracers.shutdown()
    told.meters.shutdown()


def use(store: Any) -> None:
    """Make every call that there is, once."""
    tail = store.append("log", b"one", at=NEW)
    store.append("log", b"three", at=tail)
    store.read("log", 1, 4)
    store.copy("log", "copy")
    list(store.list(tails=True))
    store.tail("log")
    snapshot = store.snapshot("log")
    snapshot.read(2)
    list(snapshot.stream(1))
    snapshot.boundary(3)
    snapshot.copy("other")
    list(store.stream("log"))
    store.boundary("log", 2)
    with store.hold("log"):
        store.holder("log")
    store.delete("log")


CALLS = (
    "append", "append", "read", "copy", "list", "tail", "snapshot", "read", "stream", "boundary", "copy", "stream",
    "boundary", "hold", "holder", "delete",
)  # fmt: skip


def test_each_call_is_a_span_and_a_duration(told):
    use(told.store(namespace="memory://x"))
    assert told.names() == [f"{call} memory://x" for call in CALLS]
    assert told.counts("db.client.operation.duration", "db.operation.name") == {
        (call,): CALLS.count(call) for call in CALLS
    }
    (point, *_) = told.points("db.client.operation.duration")
    assert point.explicit_bounds[0] == 0.001, "seconds"


def test_spans_and_metrics_have_the_attributes_of_the_conventions(told):
    told.store(namespace="memory://x").append("a/log", b"data", at=NEW)
    (span,) = told.spans()
    common = {"db.system.name": "statestore", "db.namespace": "memory://x", "db.operation.name": "append"}
    assert dict(span.attributes) == {**common, "statestore.log": "a/log", "statestore.write.bytes": 4}
    assert (span.kind, span.status.status_code, span.events) == (SpanKind.CLIENT, StatusCode.UNSET, ())
    assert [dict(point.attributes) for point in told.points("db.client.operation.duration")] == [common]
    assert [dict(point.attributes) for point in told.points("statestore.io")] == [
        {**common, "statestore.io.direction": "write"}
    ]


def test_a_logs_name_is_in_no_metric_and_what_it_holds_nowhere(told):
    store = told.store(Faulty(MemoryStore(), plan={2: "error"}))
    store.append("LOGNAME", b"SWORDFISH", at=NEW)
    for kind, call in (
        (Unavailable, lambda: store.append("LOGNAME", b"SWORDFISH!", at=NEW)),
        (Conflict, lambda: store.append("LOGNAME", b"SWORDFISH!", at=NEW)),
        (InvalidName, lambda: store.tail("../SWORDFISH")),
    ):
        with pytest.raises(kind):
            call()
    assert store.read("LOGNAME") == store.snapshot("LOGNAME").read() == b"".join(store.stream("LOGNAME"))
    metrics = told.reader.get_metrics_data().to_json()
    spans = "".join(span.to_json() for span in told.spans())
    assert "LOGNAME" in spans
    assert "LOGNAME" not in metrics
    assert "SWORDFISH" not in spans + metrics


def test_bytes_are_counted_however_they_are_read(told):
    use(told.store())
    read, stream = 3 + 6, 7 + 8
    assert told.counts("statestore.io", "db.operation.name", "statestore.io.direction") == {
        ("append", "write"): 8,
        ("read", "read"): read,
        ("stream", "read"): stream,
    }


def test_bytes_of_an_append_that_was_refused_are_not_counted(told):
    store = told.store()
    tail = store.append("log", b"one", at=NEW)
    with pytest.raises(Conflict):
        store.append("log", b"two", at=NEW)
    with pytest.raises(NotFound):
        store.append("none", b"two", at=tail)
    assert told.counts("statestore.io") == {(): 3}


def test_a_stream_or_listing_that_nobody_asks_for_more_ends_without_an_error(told):
    store = told.store()
    for log in "abc":
        store.append(log, b"data", at=NEW)
    told.spans()
    rows = store.list()
    assert next(rows).name == "a"
    rows.close()
    untouched = store.stream("a")
    untouched.close()
    (span,) = told.spans()
    assert (span.name, "error.type" in span.attributes) == ("list", False)


def test_errors_are_told_by_kind_and_only_those_of_the_storage_fail_the_span(told):
    store = told.store(Faulty(MemoryStore(), plan={2: "error", 4: "error"}))
    tail = store.append("log", b"one", at=NEW)
    for kind, call in (
        (Unavailable, lambda: store.read("log")),
        (Conflict, lambda: store.append("log", b"x", at=Tail(1, tail.run))),
        (Unavailable, lambda: list(store.stream("log"))),
        (NotFound, lambda: store.tail("none")),
        (TypeError, lambda: store.append("log", "text", at=tail)),
    ):
        told.spans()
        with pytest.raises(kind):
            call()
        (span,) = told.spans()
        assert span.attributes["error.type"] == kind.__name__
        assert (span.status.status_code is StatusCode.ERROR) == (kind in (Unavailable, TypeError))
        assert (span.status.description, span.events) == (None, ())
    counts = told.counts("db.client.operation.duration", "db.operation.name", "error.type")
    assert counts == {
        ("append", None): 1,
        ("read", "Unavailable"): 1,
        ("append", "Conflict"): 1,
        ("stream", "Unavailable"): 1,
        ("tail", "NotFound"): 1,
        ("append", "TypeError"): 1,
    }
    assert told.counts("statestore.conflicts", "db.operation.name") == {("append",): 1}


def test_a_retry_is_the_same_call_again_after_the_storage_failed(told):
    store = told.store(Faulty(MemoryStore(), plan={1: "lost", 2: "error", 5: "error"}))
    for _ in range(2):
        with pytest.raises(Unavailable):
            store.append("log", b"one", at=NEW)
    tail = store.append("log", b"one", at=NEW)
    assert told.counts("statestore.retries", "db.operation.name") == {("append",): 2}
    store.append("log", b"one", at=NEW)
    with pytest.raises(Unavailable):
        store.append("log", b"two", at=tail)
    store.append("log", b"other", at=tail)
    store.read("log")
    assert told.counts("statestore.retries", "db.operation.name") == {("append",): 2}


def test_so_a_record_log_that_repeats_an_append_is_counted(told):
    log = RecordLog(told.store(Faulty(MemoryStore(), plan=[Step(1, "timeout"), Step(2, "error")])), "log")
    log.append("message", b"one", expect=1)
    assert told.counts("statestore.retries") == {(): 2}


def test_spans_that_the_inner_store_begins_are_children(told):
    class Inner(Wrapper):
        def read(self, log: str, start: int = 0, stop: int | None = None) -> bytes:
            with trace.get_tracer("x", tracer_provider=told.tracers).start_as_current_span("request"):
                return super().read(log, start, stop)

        def _stream(self, log: str, start: int, stop: int | None) -> Iterator[bytes]:
            yield self.read(log, start, stop)

        def stream(self, log: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
            return self._stream(log, start, stop)

    store = told.store(Inner(MemoryStore()))
    store.append("log", b"data", at=NEW)
    told.spans()
    store.read("log")
    for _ in store.stream("log"):
        with trace.get_tracer("x", tracer_provider=told.tracers).start_as_current_span("of the reader"):
            pass
    request, read, again, readers, stream = told.spans()
    assert [each.name for each in (request, read, again, readers, stream)] == [
        "request", "read", "request", "of the reader", "stream",
    ]  # fmt: skip
    assert (request.parent.span_id, again.parent.span_id) == (read.context.span_id, stream.context.span_id)
    assert readers.parent is None, "what a reader does between two pieces is not the store's"


def test_a_hold_is_as_long_as_entering_takes(told):
    store = told.store()
    with store.hold("log"):
        assert told.names() == ["hold"]
    assert told.names() == []


def test_by_url_the_namespace_is_the_url_without_credentials(told, monkeypatch):
    monkeypatch.setattr(trace, "get_tracer", lambda *_: told.tracers.get_tracer("statestore"))
    for url, more in (
        ("instrumented::memory://u:SWORDFISH@oak/x", {}),
        ("instrumented::memory://oak", {"instrumented_namespace": "mine"}),
        ("instrumented::memory://oak?instrumented_namespace=", {}),
    ):
        with pytest.raises(NotFound):
            open_store(url, **more).tail("log")
    spans = told.spans()
    assert [span.attributes.get("db.namespace") for span in spans] == ["memory://oak/x", "mine", None]
    assert "SWORDFISH" not in "".join(span.to_json() for span in spans)


def test_without_the_package_it_is_the_inner_store(tmp_path):
    code = """
import sys
sys.modules["opentelemetry"] = None
from statestore import NEW, open_store
store = open_store("instrumented::memory://")
tail = store.append("log", b"one", at=NEW)
assert store.append("log", b"two", at=tail) == store.tail("log")
assert store.read("log") == store.snapshot("log").read() == b"".join(store.stream("log")) == b"onetwo"
assert [row.name for row in store.list()] == ["log"]
with store.hold("log"):
    assert store.holder("log")
store.delete("log")
print(type(store).__name__, [name for name, module in sys.modules.items() if "opentelemetry" in name and module])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (ran.stdout, ran.stderr) == ("Instrumented []\n", "")


def test_a_package_that_is_broken_is_not_taken_for_one_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "statestore.wrappers._telemetry", None)
    with pytest.raises(ModuleNotFoundError, match="statestore"):
        Instrumented(MemoryStore())
