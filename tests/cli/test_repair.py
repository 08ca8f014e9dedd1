"""``repair``: what it shows, when it asks, what it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore.records import scan

from .conftest import Run, on_a_terminal, plain


def files(root: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in root.iterdir() if not file.name.startswith(".")}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory where the kept bytes go by default."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_damage_is_cut_and_kept_and_the_log_is_whole_again(run: Run, damaged: Path, here: Path) -> None:
    data = (damaged / "corrupt.state").read_bytes()
    ran = run("repair", damaged, "corrupt", "--yes")
    assert ran.status == 0
    (kept,) = here.iterdir()
    assert (damaged / "corrupt.state").read_bytes() + kept.read_bytes() == data
    assert kept.name in ran.out
    assert kept.name.startswith("corrupt.cut-1121-")
    assert len(list(scan((damaged / "corrupt.state").read_bytes()))) == 5
    assert run("verify", damaged, "corrupt").status == 0


def test_as_json_it_says_what_was_whole_and_what_was_done(run: Run, damaged: Path, here: Path) -> None:
    (row,) = run("repair", damaged / "corrupt.state", "--keep", here / "kept", "--yes", "--json").lines
    reason = "this is no record and no crash explains it: not JSON at byte 0; what stands before it can be read"
    assert row == {
        "log": "corrupt",
        "state": "corrupt",
        "records": 5,
        "size": 1121,
        "torn": 0,
        "corrupt": {"record": 6, "offset": 1121, "reason": reason},
        "following": 6,
        "misnumbered": None,
        "surplus": 1436,
        "kept": str(here / "kept"),
        "to": None,
        "done": True,
    }
    (row,) = run("repair", damaged, "corrupt", "--yes", "--json").lines
    assert (row["state"], row["surplus"], row["kept"], row["done"]) == ("ok", 0, None, False)


def test_a_dry_run_changes_nothing(run: Run, damaged: Path, here: Path) -> None:
    before = files(damaged)
    for log in ("corrupt", "torn", "other", "whole"):
        for more in ([], ["--json"]):
            assert run("repair", damaged, log, "--dry-run", *more).status == 0
    assert files(damaged) == before
    assert list(here.iterdir()) == []


def test_a_copy_leaves_the_damaged_log_as_it_is(run: Run, damaged: Path, here: Path) -> None:
    before = files(damaged)
    (row,) = run("repair", damaged, "corrupt", "--to", "saved", "--yes", "--json").lines
    assert (row["to"], row["kept"], row["done"]) == ("saved", None, True)
    assert files(damaged) == before | {"saved.state": before["corrupt.state"][:1121]}
    assert run("repair", damaged, "torn", "--to", "saved", "--yes").status == 1
    ran = run("repair", damaged, "other", "--to", "new", "--yes", "--json")
    assert (ran.status, ran.error["error"]) == (1, "NotFound")
    assert list(here.iterdir()) == []


def test_where_nobody_can_be_asked_it_is_wrong_usage_and_nothing_happens(run: Run, damaged: Path, here: Path) -> None:
    before = files(damaged)
    for more in ([], ["--json"], ["--to", "new"]):
        ran = run("repair", damaged, "corrupt", *more, stdin=b"y\n")
        assert (ran.status, ran.out) == (2, "")
        assert "--yes" in ran.err
    assert files(damaged) == before
    assert list(here.iterdir()) == []


def test_wrong_usage(run: Run, damaged: Path) -> None:
    before = files(damaged)
    assert run("repair", damaged, "corrupt", "--yes", "--keep", "a", "--to", "b").status == 2
    assert run("repair", damaged, "corrupt", "--yes", "--to", "../b").status == 1
    assert run("repair", damaged, "--yes").status == 2
    assert files(damaged) == before


def test_on_a_terminal_it_shows_what_it_will_do_and_asks(damaged: Path, here: Path) -> None:
    before = files(damaged)
    shown = plain(on_a_terminal("repair", damaged, "corrupt", "--keep", "kept", typed=b"n\n", status=1))
    assert "cut         1,436 bytes behind byte 1121\nkept in     kept\n" in shown
    assert "Do it? [y/N]" in shown
    assert files(damaged) == before
    assert list(here.iterdir()) == []
    shown = plain(on_a_terminal("repair", damaged, "corrupt", "--keep", "kept", typed=b"y\n"))
    assert shown.endswith("repaired    corrupt  5 records, 1,121 bytes\n")
    assert (here / "kept").read_bytes() == before["corrupt.state"][1121:]


def test_a_file_that_is_there_is_not_written_to(run: Run, damaged: Path, here: Path) -> None:
    before = files(damaged)
    (here / "kept").write_bytes(b"precious")
    ran = run("repair", damaged, "corrupt", "--keep", "kept", "--yes")
    assert ran.status == 1
    assert "nothing was cut: file exists" in ran.err
    assert (here / "kept").read_bytes() == b"precious"
    assert files(damaged) == before


def test_a_store_that_cannot_cut_says_what_can_be_done(
    run: Run, damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from statestore.store import NEW
    from statestore_memory import MemoryStore

    store = MemoryStore()
    store.append("a", (damaged / "corrupt.state").read_bytes(), at=NEW)
    monkeypatch.setattr("statestore.plugins.open_store", lambda *_, **__: store)
    monkeypatch.setattr(MemoryStore, "close", lambda self: None)
    ran = run("repair", "memory://", "a", "--yes", "--json")
    assert (ran.status, ran.error["error"]) == (1, "NotSupported")
    assert "--to copies what is whole to a new one" in ran.err
    assert run("repair", "memory://", "a", "--to", "b", "--yes").status == 0
    assert store.read("b") == store.read("a")[:1121]


def test_a_log_that_is_not_there_fails(run: Run, damaged: Path) -> None:
    assert run("repair", damaged, "nope", "--yes").status == 1
    assert run("repair", damaged / "nope", "a", "--yes").status == 1
    assert not (damaged / "nope").exists()


def test_the_name_of_a_deep_log_is_a_file_s(run: Run, damaged: Path, here: Path) -> None:
    (damaged / "a").mkdir()
    (damaged / "a" / "b.state").write_bytes((damaged / "torn.state").read_bytes())
    assert run("repair", damaged, "a/b", "--yes").status == 0
    (kept,) = here.iterdir()
    assert kept.name.startswith("b.cut-2419-")
