"""Each class for asyncio offers what the one that it stands for does: the same calls, arguments and first sentences."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from statestore import aio, catalog, conversations, records, sessions, snapshot, store

FACES: list[tuple[type, type, dict[str, str]]] = [
    (aio.Store, store.Store, {"close": "aclose", "wait": ""}),  # `follow` waits, and nobody else
    (aio.Snapshot, snapshot.Snapshot, {}),
    (aio.Maintenance, store.Maintenance, {}),
    (aio.RecordLog, records.RecordLog, {}),
    (aio.Sessions, sessions.Sessions, {}),
    (aio.Session, sessions.Session, {"close": "aclose"}),
    (aio.Conversations, conversations.Conversations, {"close": "aclose"}),
    (aio.Catalog, catalog.Catalog, {"close": "aclose"}),
]
AT_ONCE = {"location", "path", "resume"}  # ask the storage nothing
NOT_OURS = {("RecordLog", "follow", "stop")}  # its task is cancelled instead


def public(face: type) -> dict[str, Any]:
    return {
        name: value
        for base in reversed(face.__mro__[:-1])
        for name, value in vars(base).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }


CALLS = [
    pytest.param(face, kind, name, renamed.get(name, name), id=f"{face.__name__}.{name}")
    for face, kind, renamed in FACES
    for name in public(kind)
    if renamed.get(name, name)
]


@pytest.mark.parametrize(("face", "kind", "name", "ours"), CALLS)
def test_a_call_is_the_one_of_its_name(face: type, kind: type, name: str, ours: str) -> None:
    theirs, mine = public(kind)[name], public(face)[ours]
    if isinstance(theirs, property):
        assert isinstance(mine, property)
        return

    def parameters(call: Any) -> list[tuple[str, Any, Any, str]]:
        found = inspect.signature(call).parameters.values()
        return [
            (each.name, each.kind, each.default, str(each.annotation))
            for each in found
            if (face.__name__, name, each.name) not in NOT_OURS
        ]

    assert parameters(mine) == parameters(theirs)

    def sentence(call: Any) -> str:
        return (inspect.getdoc(call) or "").partition("\n")[0]

    assert ours == "aclose" or sentence(mine) == sentence(theirs)
    gives = str(inspect.signature(theirs).return_annotation)
    if name in AT_ONCE:
        assert not inspect.iscoroutinefunction(mine)
    elif gives.startswith("Iterator["):
        assert str(inspect.signature(mine).return_annotation) == f"AsyncGenerator[{gives[9:]}"
    elif name != "hold":
        assert inspect.iscoroutinefunction(mine)


def test_every_call_is_looked_at() -> None:
    assert len(CALLS) > 60
    assert {"append", "list", "follow", "merge_metadata", "close_waiting"} <= {case.values[2] for case in CALLS}
