"""Sessions against vectors that the Go package made: ``tests/vectors/statefile``, every line of them."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from statestore.errors import InvalidName, NotFound
from statestore.records import Header, encode, scan
from statestore.sessions import Conf, Sessions, Transcript, valid_id
from statestore.store import NEW
from statestore_local import LocalStore
from statestore_memory import MemoryStore

VECTORS = Path(__file__).parents[1] / "vectors" / "statefile"

# What the Go package does with names that are no ids. Here such an id is refused, and such a file is not listed.
OTHERWISE = {
    "path: an id that is no id is joined to the directory": {
        *(f"path-{number:02d}" for number in (6, 7, 8, 9, 11, 12, 13, 14, 19, 20, 21, 23)),
    },
    "list: files whose names are no ids are listed": {"list-invalid-ids-kept", "list-order-is-by-file-name"},
    "list: a directory with a file's name is listed": {"list-directories-kept"},
}


def vectors(name: str, beginning: str = "") -> list[Any]:
    lines = (VECTORS / name).read_bytes().split(b"\n")[:-1]
    cases = [json.loads(line) for line in lines]
    chosen = [case for case in cases if case.get("name", "").startswith(beginning)]
    return [pytest.param(case, id=case.get("name") or case.get("file")) for case in chosen]


def bytes_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record["header"]).encode() + b"\n" + base64.b64decode(record["body_b64"]) + b"\n"


def agree(transcript: Transcript, case: dict[str, Any]) -> None:
    waiting, step = transcript.waiting(), transcript.last_step()
    assert ([call.id for call in waiting], [call.n for call in waiting]) == (case["waiting_ids"], case["waiting_ns"])
    assert (step and step.id, step and step.n) == (case["last_step_id"], case["last_step_n"])
    assert transcript.prompt_tokens() == case["prompt"]
    if case.get("build") == "panic":
        assert case["derive"] == "panic"
        for ask in (transcript.context, transcript.status, lambda: transcript.upto):
            with pytest.raises(ValueError, match="without a record"):
                ask()
        return
    context = transcript.context(unpaired="keep")
    assert ([record.id for record in context], [record.n for record in context]) == (
        case["build_ids"],
        case["build_ns"],
    )
    assert transcript.upto == case["build_upto"]
    assert transcript.status() == case["derive"]


@pytest.mark.parametrize("case", vectors("context.jsonl"))
def test_a_transcript_comes_to_what_the_go_package_makes_of_it(case: dict[str, Any]) -> None:
    agree(Transcript(scan(b"".join(map(bytes_of, case["records"])))), case)


@pytest.mark.parametrize("case", vectors("files.jsonl"))
def test_a_session_file_of_the_go_package_comes_to_the_same(case: dict[str, Any]) -> None:
    with MemoryStore() as store:
        store.append("0a1b2c3d", (VECTORS / case["file"]).read_bytes(), at=NEW)
        sessions = Sessions(store)
        transcript = sessions.load("0a1b2c3d")
        assert len(transcript) == case["records"]
        agree(transcript, case)
        assert sessions.status("0a1b2c3d") == case["derive"]


@pytest.mark.parametrize("case", vectors("conf.jsonl", "encode-"))
def test_a_configuration_is_written_as_go_writes_it(case: dict[str, Any]) -> None:
    conf = msgspec.convert(case["conf"], Conf)
    assert conf.encode() == base64.b64decode(case["body_b64"])


@pytest.mark.parametrize("case", vectors("conf.jsonl", "decode-"))
def test_a_configuration_is_read_as_go_reads_it(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["input_b64"])
    if case.get("error"):
        with pytest.raises(ValueError):
            Conf.decode(body)
    else:
        assert Conf.decode(body).encode() == base64.b64decode(case["reencoded_b64"])


@pytest.mark.parametrize("case", vectors("ids.jsonl"))
def test_an_id_is_valid_where_it_is_for_the_go_package(case: dict[str, Any]) -> None:
    assert valid_id(base64.b64decode(case["id_b64"]).decode("utf-8", "surrogateescape")) is case["valid"]


@pytest.mark.parametrize("case", vectors("sessions.jsonl", "path-"))
def test_a_valid_id_has_the_go_packages_path_and_any_other_is_refused(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = case["name"] in OTHERWISE["path: an id that is no id is joined to the directory"]
    assert valid_id(case["id"]) is not refused
    monkeypatch.chdir(tmp_path)

    def here(path: str) -> str:
        return os.path.abspath(f"{tmp_path}/{path}")

    with LocalStore(here("d" if refused else case["dir"])) as store:
        sessions = Sessions(store)
        if refused:
            with pytest.raises(InvalidName):
                sessions.path(case["id"])
        else:
            assert sessions.path(case["id"]) == here(case["path"])


@pytest.mark.parametrize("case", vectors("sessions.jsonl", "list-"))
def test_a_listing_shows_what_the_go_package_shows_as_far_as_it_is_a_session(
    case: dict[str, Any], tmp_path: Path
) -> None:
    record = encode(Header(n=1, kind="start"), b"")
    for name in case["files"]:
        (tmp_path / name).write_bytes(record)
    for name in case["dirs"]:
        (tmp_path / name).mkdir()
    with LocalStore(tmp_path) as store:
        shown = list(Sessions(store).list())
    loadable = [id_ for id_ in case["ids"] if valid_id(id_) and f"{id_}.state" in case["files"]]
    assert shown == loadable
    differs = {name for category, names in OTHERWISE.items() if category.startswith("list") for name in names}
    assert (shown != case["ids"]) is (case["name"] in differs)


@pytest.mark.parametrize("case", vectors("sessions.jsonl", "load-"))
def test_a_session_loads_as_many_records_as_in_the_go_package(case: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / f"{case['id']}.state").write_bytes(base64.b64decode(case["file_b64"]))
    with LocalStore(tmp_path) as store:
        sessions = Sessions(store)
        if "message" in case:
            with pytest.raises(NotFound, match="has no records"):
                sessions.load(case["id"])
        else:
            assert len(sessions.load(case["id"])) == case["records"]


def test_every_vector_that_differs_is_one_of_the_vectors() -> None:
    names = {case.values[0]["name"] for case in vectors("sessions.jsonl")}  # type: ignore[index, call-overload]
    assert set().union(*OTHERWISE.values()) <= names


@pytest.mark.parametrize(
    ("body", "meaning"),
    [
        # What lies behind a list's end comes back with a longer list, until a null or an empty list takes it away.
        (b'{"input":["a","b"],"input":["c"],"input":[null,null]}', b'"input":["c","b"]'),
        (b'{"input":["a","b"],"input":[],"input":[null,null]}', b'"input":["",""]'),
        (b'{"input":["a","b"],"input":null,"input":[null]}', b'"input":[""]'),
    ],
)
def test_a_list_that_comes_several_times_is_read_into_the_elements_that_are_there(body: bytes, meaning: bytes) -> None:
    assert meaning in Conf.decode(body).encode()


@pytest.mark.parametrize("text", [b"", b"{", b'{"workers":{}}', b'{"workers":[1]}', b'{"input":"a"}', b'{"model":1}'])
def test_what_is_no_configuration_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        Conf.decode(text)


@pytest.mark.parametrize("context", [2**63, -(2**63) - 1, 1.0, True])
def test_a_context_that_json_would_hold_otherwise_is_not_written(context: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="context"):
        Conf(context=context).encode()


def test_a_null_in_the_place_of_a_configuration_is_an_empty_one() -> None:
    assert Conf.decode(b"null") == Conf()
