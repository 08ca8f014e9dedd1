"""Answering a request: nothing is written that does not fit, and nothing that comes too late."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from statestore import RecordLog
from statestore.errors import AlreadyAborted, Held, InvalidAnswer, NotFound, NotSupported
from statestore.ops import Request, SessionsSource, SyncOperator, request_input
from statestore.ops._answers import check_answer
from statestore.sessions import Sessions
from statestore_memory import MemoryStore

from .places import Place
from .test_cases import SCHEMA, A, open_ids


def test_b71_an_answer_that_fits_closes_the_request_or_says_how(place: Place) -> None:
    place.create(A)
    place.raise_input(A, "a", schema=SCHEMA)
    place.raise_input(A, "b")
    answer = place.operator.resume(A, "a", {"approved": True})
    assert answer.content
    json.dumps(answer.content)
    if answer.written:
        assert open_ids(place) == ["b"]
        with pytest.raises(NotFound, match=r"answered already.* open=b"):
            place.operator.resume(A, "a", {"approved": True})


@pytest.mark.parametrize(
    ("response", "path"),
    [({"approved": "yes"}, "$.approved"), ({}, "$"), ("yes", "$"), (None, "$"), ({"approved": float("nan")}, None)],
    ids=str,
)
def test_b71_and_e16_an_answer_that_does_not_fit_is_refused_with_its_path(
    place: Place, response: Any, path: str | None
) -> None:
    place.create(A)
    place.raise_input(A, "a", schema=SCHEMA)
    before = place.operator.get(A)
    with pytest.raises(InvalidAnswer, match="interrupt=a") as caught:
        place.operator.resume(A, "a", response)
    assert caught.value.facts.get("path") == path
    assert place.operator.get(A) == before


def test_b71_a_schema_that_cannot_be_used_is_refused_unless_nobody_asks(place: Place) -> None:
    place.create(A)
    for name, schema in {
        "a": {"pattern": "("},
        "b": {"$ref": "http://127.0.0.1:9/schema"},
        "c": {"$ref": "#"},
    }.items():
        place.raise_input(A, name, schema=schema)
        with pytest.raises(InvalidAnswer, match="cannot be used"):
            place.operator.resume(A, name, {})
    for response in ("\ud800", object(), {1: 2}, [float("inf")]):
        with pytest.raises(InvalidAnswer, match="an answer is JSON"):
            place.operator.resume(A, "a", response, check=False)
    assert place.operator.resume(A, "a", {}, check=False).content


def test_a_schema_from_a_store_makes_nobody_ask_the_network() -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            request = Request(interrupt_id="a", response_schema={"$ref": f"http://127.0.0.1:{server.server_port}/s"})
            with pytest.raises(InvalidAnswer, match="cannot be used"):
                check_answer(request, {}, schema=True)
        finally:
            server.shutdown()
            thread.join()
    assert asked == []


def test_b71_an_aborted_session_and_an_unknown_request_take_no_answer(place: Place) -> None:
    place.create(A)
    place.raise_input(A, "a")
    with pytest.raises(NotFound, match="interrupt=b"):
        place.operator.resume(A, "b", None)
    place.operator.abort(A, "enough")
    with pytest.raises(AlreadyAborted, match="reason=enough"):
        place.operator.resume(A, "a", None)


def test_without_the_package_that_checks_only_what_has_no_schema_is_answered(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "jsonschema":
            raise ImportError(name)
        return real(name, *args, **more)

    place.create(A)
    place.raise_input(A, "a", schema=SCHEMA)
    place.raise_input(A, "b", schema={})
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotSupported, match=r"statestore\[ops\]"):
        place.operator.resume(A, "a", {"approved": True})
    assert place.operator.resume(A, "b", 1).content


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_session_is_answered_by_a_record_and_a_call_by_its_result(tmp_path: Path) -> None:
    store, runners = MemoryStore(str(tmp_path)), MemoryStore(str(tmp_path))
    with Sessions(runners, "app").start(id=A) as session, SyncOperator(SessionsSource(store, "app")) as operator:
        session.append_many([request_input("a", response_schema={"type": "array"})])
        session.append("call", b'{"name": "ask", "arguments": {}}', id="c1", step="s1")
        session.append("step", id="s1", model="m")
        with pytest.raises(Held):
            operator.resume(A, "a", [1])
        session.close()
        assert operator.resume(A, "a", [1]).content == {
            "kind": "input.answered",
            "for": "a",
            "type": "application/json",
            "body": "[1]",
        }
        RecordLog(store, f"app/{A}").append("input.requested", b'{"interrupt_id": "odd", "response_schema": [1]}')
        with pytest.raises(InvalidAnswer, match="cannot be used"):
            operator.resume(A, "odd", 1)
        assert [each.id for each in Sessions(store, "app").load(A).waiting()] == ["c1"]
        operator.resume(A, "c1", "forty-two")
        transcript = Sessions(store, "app").load(A)
        assert transcript.waiting() == []
        assert (transcript.records[-1].kind, transcript.records[-1].body) == ("result", b"forty-two")
        assert operator.get(A).event_count == 6


def test_what_comes_between_the_look_and_the_answer_is_looked_at(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sessions(store).start(id=A).close()
    with SyncOperator(SessionsSource(store)) as operator, Sessions(store).open(A) as session:
        session.append_many([request_input("a"), request_input("b")])
        session.close()
        source = operator._operator.source
        real = source.answer

        async def meanwhile(*args: Any) -> Any:
            monkeypatch.undo()
            session.log.append("input.answered", b"1", for_="a")
            return await real(*args)

        monkeypatch.setattr(source, "answer", meanwhile)
        with pytest.raises(NotFound, match="answered already"):
            operator.resume(A, "a", 2)
        assert [record.body for record in session.log if record.kind == "input.answered"] == [b"1"]


@pytest.mark.parametrize("wrong", [("", {}), ("a", {"payload": float("inf")}), ("a", {"payload": object()})])
def test_a_request_that_cannot_be_written_is_refused(wrong: tuple[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        request_input(wrong[0], **wrong[1])


def test_what_checks_answers_is_loaded_when_one_is_checked() -> None:
    code = """
import sys
from statestore.ops import Request, SessionsSource, SyncOperator, request_input
from statestore.ops._answers import check_answer
from statestore.sessions import Sessions
from statestore_memory import MemoryStore

store = MemoryStore()
with Sessions(store).start(id="00000001") as session:
    session.append_many([request_input("a", response_schema={"type": "integer"})])
with SyncOperator(SessionsSource(store)) as operator:
    operator.get("00000001")
    assert "jsonschema" not in sys.modules
    operator.resume("00000001", "a", 1)
    assert "jsonschema" in sys.modules
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
