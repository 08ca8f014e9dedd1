"""Each class for asyncio offers what the one that it stands for does: the same calls, arguments and first sentences."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from statestore import aio, catalog, conversations, records, sessions, snapshot, store
from tests.catalog.parts import Chain

from .conftest import go

FACES: list[tuple[type, type, dict[str, str]]] = [
    (aio.Store, store.Store, {"close": "aclose", "wait": "", "sidecar": ""}),  # for `RecordLog`, and nobody else
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


def parameters_of_making(kind: type) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(kind).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


@pytest.mark.parametrize("name", ["RecordLog", "Sessions", "Conversations", "Catalog"])
def test_each_is_made_of_the_same(name: str) -> None:
    face, kind = next((face, kind) for face, kind, _ in FACES if face.__name__ == name)
    assert parameters_of_making(face) == parameters_of_making(kind)


def test_each_has_the_same_attributes(tmp_path: Path) -> None:
    async def main() -> None:
        async with await aio.open_store(tmp_path / "logs", sync="never") as opened:
            session = await aio.Sessions(opened).start()
            faces: list[Any] = [
                opened,
                await opened.snapshot(session.log.name),
                session,
                session.log,
                aio.Sessions(opened),
                aio.Conversations(opened),
                aio.Catalog(opened, Chain(), path=tmp_path / "catalog"),
            ]
            for face in faces:
                missing = [name for name in vars(face.sync) if not name.startswith("_") and not hasattr(face, name)]
                assert not missing, face
                assert repr(face) == f"aio.{face.sync!r}"
            assert await session.log.append("note") == (await session.log.last(1))[0]
            assert session.log.end == session.sync.log.end
            await session.aclose()

    go(main())


def test_every_call_is_looked_at() -> None:
    assert len(CALLS) > 60
    assert {"append", "list", "follow", "merge_metadata", "close_waiting"} <= {case.values[2] for case in CALLS}
