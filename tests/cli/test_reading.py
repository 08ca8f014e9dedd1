"""``ls`` and ``cat``."""

from __future__ import annotations

import base64
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from statestore.records import RecordLog, scan
from statestore.store import NEW
from statestore_local import LocalStore

from .conftest import Run


def test_ls_shows_each_log_with_its_size(run: Run, vectors: Path) -> None:
    sizes = {file.stem: file.stat().st_size for file in vectors.glob("*.state")}
    rows = [line.split() for line in run("ls", vectors).out.splitlines()]
    assert rows == [["SIZE", "LOG"], *([f"{sizes[name]:,}", name] for name in sorted(sizes))]


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
    assert "closed, torn" in run("ls", damaged, "--long").out


def test_ls_goes_on_where_a_page_ended(run: Run, vectors: Path) -> None:
    first = run("ls", vectors, "--limit", 2)
    assert first.out.splitlines()[-1] == "there are more: --after session-200"
    assert [row["log"] for row in run("ls", vectors, "--after", "session-200", "--json").lines] == ["session-2000"]
    assert "there are more" not in run("ls", vectors, "--limit", 3).out


def test_ls_takes_a_prefix_as_text_and_not_as_a_folder(run: Run, vectors: Path) -> None:
    assert [row["log"] for row in run("ls", vectors, "--prefix", "session-2", "--json").lines] == [
        "session-200",
        "session-2000",
    ]


def test_ls_of_a_store_without_logs_says_so(run: Run, tmp_path: Path) -> None:
    assert run("ls", tmp_path).out == "no logs\n"
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


def on_a_terminal(*args: object) -> bytes:
    """Run a command whose standard output is a terminal, and return what it was sent."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "statestore", *map(str, args)]
    with subprocess.Popen(command, stdout=theirs, env=os.environ | {"TERM": "xterm", "COLUMNS": "80"}) as process:
        os.close(theirs)
        shown = b""
        # A terminal whose other side has been closed is at its end with EIO.
        while piece := _read(ours):
            shown += piece
    os.close(ours)
    assert process.returncode == 0
    return shown.replace(b"\r\n", b"\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


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
