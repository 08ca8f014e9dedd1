"""``ls`` and ``cat``."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from statestore.records import RecordLog, scan
from statestore.store import NEW
from statestore_local import LocalStore

from .conftest import Run, on_a_terminal, plain


def test_ls_shows_each_log_with_its_size_on_a_terminal(vectors: Path) -> None:
    sizes = {file.stem: file.stat().st_size for file in vectors.glob("*.state")}
    rows = [line.split() for line in plain(on_a_terminal("ls", vectors)).splitlines()]
    assert rows == [["SIZE", "LOG"], *([f"{sizes[name]:,}", name] for name in sorted(sizes))]


def test_ls_gives_a_script_the_names_and_nothing_else(run: Run, vectors: Path) -> None:
    (vectors / "empty.state").touch()  # a creation that died, and no log
    assert run("ls", vectors).out == "session-12\nsession-200\nsession-2000\n"
    assert run("ls", vectors, "--limit", 2).out == "session-12\nsession-200\n"
    assert run("ls", vectors, "--prefix", "nothing").out == ""


def test_a_shell_goes_through_the_logs_that_ls_gives_it(vectors: Path) -> None:
    script = 'for log in $("$0" -P -m statestore ls "$1"); do "$0" -P -m statestore verify "$1" "$log"; done'
    ran = subprocess.run(["sh", "-c", script, sys.executable, vectors], capture_output=True, check=True)
    assert ran.stderr == b""
    assert [line.split()[:2] for line in ran.stdout.decode().splitlines()] == [
        ["ok", name] for name in ("session-12", "session-200", "session-2000")
    ]


def test_ls_long_gives_a_script_columns_behind_tabs_that_hold_no_blank(run: Run, damaged: Path) -> None:
    with LocalStore(damaged) as store:
        RecordLog(store, "zero").append("note", expect=1, id="1", time="2026-09-28T12:00:00Z")
        size = store.tail("zero").size
    assert [line.split("\t") for line in run("ls", damaged, "--long").out.splitlines()] == [
        ["corrupt", "2557", "5", "corrupt"],
        ["other", "11", "0", "corrupt"],
        ["torn", "2547", "11", "closed,torn"],
        ["whole", "2557", "12", "failed"],
        ["zero", str(size), "1", "-"],
    ]


def test_ls_long_reads_records_and_status(run: Run, vectors: Path) -> None:
    assert run("ls", vectors, "--long", "--json").lines == [
        {"log": "session-12", "size": 2557, "records": 12, "torn": 0, "status": "failed"},
        {"log": "session-200", "size": 77999, "records": 200, "torn": 0, "status": "open"},
        {"log": "session-2000", "size": 782242, "records": 2000, "torn": 0, "status": "open"},
    ]


def test_ls_long_shows_damage_and_a_torn_end_and_still_lists_all(run: Run, damaged: Path) -> None:
    ran = run("ls", damaged, "--long", "--json")
    assert ran.status == 0
    assert [(row["log"], row["status"], row["torn"]) for row in ran.lines] == [
        ("corrupt", "corrupt", 0),
        ("other", "corrupt", 0),
        ("torn", "closed", 128),
        ("whole", "failed", 0),
    ]
    assert b"closed, torn" in on_a_terminal("ls", damaged, "--long")


def test_ls_goes_on_where_a_page_ended(run: Run, vectors: Path) -> None:
    first = plain(on_a_terminal("ls", vectors, "--limit", 2))
    assert first.endswith("\nthere are more: --after session-200\n")
    assert [row["log"] for row in run("ls", vectors, "--after", "session-200", "--json").lines] == ["session-2000"]
    assert b"there are more" not in on_a_terminal("ls", vectors, "--limit", 3)


def test_ls_takes_a_prefix_as_text_and_not_as_a_folder(run: Run, vectors: Path) -> None:
    assert [row["log"] for row in run("ls", vectors, "--prefix", "session-2", "--json").lines] == [
        "session-200",
        "session-2000",
    ]


def test_ls_of_a_store_without_logs_says_so_to_a_person(run: Run, tmp_path: Path) -> None:
    assert on_a_terminal("ls", tmp_path) == b"no logs\n"
    assert run("ls", tmp_path).out == ""
    assert run("ls", tmp_path, "--json").out == ""


def test_ls_never_makes_a_store_that_is_not_there(run: Run, tmp_path: Path) -> None:
    for store in (tmp_path / "typo", (tmp_path / "typo").as_uri()):
        ran = run("ls", store)
        assert ran.status == 1
        assert ran.err.startswith("error: ")
    assert not (tmp_path / "typo").exists()


def test_ls_prints_a_row_before_it_has_seen_them_all(run: Run, vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from statestore.errors import Unavailable
    from statestore.store import LogInfo, Tail

    def rows(*_: object, **__: object) -> object:
        yield LogInfo("first", Tail(1, ""))
        raise Unavailable("the network is gone")

    monkeypatch.setattr(LocalStore, "list", rows)
    ran = run("ls", vectors, "--json")
    assert ran.lines == [{"log": "first", "size": 1}]
    assert ran.status == 1


@pytest.mark.parametrize("name", ["session-12", "session-200", "session-2000"])
def test_cat_gives_the_exact_bytes_of_a_log(run: Run, vectors: Path, name: str) -> None:
    expected = (vectors / f"{name}.state").read_bytes()
    assert run("cat", vectors, name).data == expected
    assert run("cat", vectors / f"{name}.state").data == expected


def test_cat_gives_the_exact_bytes_of_each_record_and_of_its_body(run: Run, vectors: Path) -> None:
    for number, record in enumerate(scan((vectors / "session-12.state").read_bytes()), 1):
        assert run("cat", vectors, "session-12", "--record", number).data == record.raw
        assert run("cat", vectors, "session-12", "--record", number, "--body").data == record.body


def test_cat_gives_a_torn_end_too(run: Run, damaged: Path) -> None:
    assert run("cat", damaged, "torn").data == (damaged / "torn.state").read_bytes()


def test_cat_gives_records_that_stand_before_damage(run: Run, damaged: Path) -> None:
    assert run("cat", damaged, "corrupt", "--record", 5).status == 0
    ran = run("cat", damaged, "corrupt", "--record", 6)
    assert (ran.status, ran.data) == (1, b"")
    assert "record=6" in ran.err


def test_cat_of_a_record_that_is_not_there_fails(run: Run, vectors: Path) -> None:
    ran = run("cat", vectors, "session-12", "--record", 13, "--json")
    assert (ran.status, ran.data) == (1, b"")
    assert ran.error == {
        "error": "NotFound",
        "message": "the log has no such record",
        "facts": {"log": "session-12", "record": 13, "records": 12},
    }


def test_cat_as_json_gives_pieces_with_their_offsets(run: Run, vectors: Path) -> None:
    data = b""
    for line in run("cat", vectors, "session-200", "--json").lines:
        assert line["offset"] == len(data)
        data += base64.b64decode(line["base64"])
    assert data == (vectors / "session-200.state").read_bytes()
    record = list(scan(data))[9]
    (line,) = run("cat", vectors, "session-200", "--record", 10, "--body", "--json").lines
    assert line == {
        "offset": record.offset + len(record.line) + 1,
        "base64": base64.b64encode(record.body).decode(),
    }


def test_cat_passes_a_large_body_in_bounded_memory(tmp_path: Path) -> None:
    size = 300 << 20
    header = b'{"n":1,"kind":"note","id":"1","time":"2026-09-28T12:00:00Z","len":%d}\n' % size
    with open(tmp_path / "big.state", "wb") as file:
        file.write(header)
        file.truncate(len(header) + size)
        file.seek(0, os.SEEK_END)
        file.write(b"\n")
    code = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({size}, {size}))
sys.argv[1:] = ["cat", {str(tmp_path)!r}, "big", "--record", "1", "--body"]
from statestore.cli import main
main()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        count = 0
        while piece := process.stdout.read(1 << 20):
            count += len(piece)
    assert process.returncode == 0
    assert count == size


def test_cat_shows_control_characters_as_escapes_on_a_terminal_unless_raw(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        store.append("log", "one\ntwo \x1b[31m é \x07".encode() + b"\xff\n", at=NEW)
    assert on_a_terminal("cat", tmp_path, "log") == "one\ntwo \\x1b[31m é \\x07\\xff\n".encode()
    assert on_a_terminal("cat", tmp_path, "log", "--raw") == "one\ntwo \x1b[31m é \x07".encode() + b"\xff\n"


def test_a_character_that_is_split_between_two_pieces_is_shown_whole(tmp_path: Path) -> None:
    with LocalStore(tmp_path) as store:
        RecordLog(store, "log").append("note", b"x" + "é".encode() * (3 << 20), expect=1)
    shown = on_a_terminal("cat", tmp_path, "log", "--record", 1, "--body")
    assert shown == b"x" + "é".encode() * (3 << 20)


def test_cat_says_that_a_body_belongs_to_a_record(run: Run, vectors: Path) -> None:
    assert run("cat", vectors, "session-12", "--body").status == 2
