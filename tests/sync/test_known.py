"""The file that remembers what is equal: it may be lost, damaged or shared, and a sync is right all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore.sync import Equal, Known

LOGS = {"a": Equal("1", "2", 3), "b/c": Equal("1.a", "2.b", 10**15), "d": Equal("x", "y", 7)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state"


def write(file: Path, pair: str = "pair") -> None:
    known = Known(file, pair)
    assert known.problem is None
    for log, equal in LOGS.items():
        known.remember(log, equal)
    known.close()


def read(file: Path, pair: str = "pair") -> tuple[dict[str, Equal], str | None]:
    known = Known(file, pair)
    known.close()
    return {log: found for log in LOGS if (found := known.get(log))}, known.problem


def test_what_was_remembered_is_there_the_next_time(file: Path) -> None:
    write(file)
    assert read(file) == (LOGS, None)
    known = Known(file, "pair")
    known.remember("a", Equal("1", "2", 4))
    known.close()
    assert read(file)[0] == LOGS | {"a": Equal("1", "2", 4)}
    assert file.stat().st_mode & 0o777 == 0o600


def test_each_line_is_there_before_the_end_of_a_sync(file: Path) -> None:
    known = Known(file, "pair")
    known.remember("a", LOGS["a"])
    assert read(file)[0] == {"a": LOGS["a"]}
    known.close()


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_file_never_says_what_was_not_remembered(data: st.DataObject) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "state"
        write(file)
        whole = file.read_bytes()
        kind = data.draw(st.sampled_from(["flip", "cut", "insert"]))
        at = data.draw(st.integers(0, len(whole) - 1))
        byte = data.draw(st.binary(min_size=1, max_size=1))
        damaged = {
            "flip": whole[:at] + byte + whole[at + 1 :],
            "cut": whole[:at],
            "insert": whole[:at] + byte + whole[at:],
        }
        file.write_bytes(damaged[kind])
        found, problem = read(file)
        assert found.items() <= LOGS.items()
        # A file that is not ours by its first line is not written to.
        assert problem is None or file.read_bytes() == damaged[kind]


def test_what_is_remembered_behind_a_line_that_a_crash_cut_short_is_kept(file: Path) -> None:
    write(file)
    file.write_bytes(file.read_bytes()[:-5])
    known = Known(file, "pair")
    assert known.get("d") is None
    known.remember("d", LOGS["d"])
    known.close()
    assert read(file)[0] == LOGS


def test_a_file_that_is_something_else_is_left_as_it_is(file: Path) -> None:
    for text in (b"dear diary\n", b"\n", b'{"statestore_sync": 2, "pair": "pair"}'):
        file.write_bytes(text)
        known = Known(file, "pair")
        assert known.problem is not None
        known.remember("a", LOGS["a"])
        known.close()
        assert file.read_bytes() == text
        assert known.get("a") == LOGS["a"]


def test_the_file_of_other_stores_says_nothing(file: Path) -> None:
    write(file, "others")
    found, problem = read(file)
    assert found == {}
    assert problem is not None
    assert read(file, "others") == (LOGS, None)


def test_where_no_file_can_be_kept_the_sync_goes_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "missing" / "state", tmp_path / "fifo"):
        known = Known(path, "pair")
        assert known.problem is not None
        known.remember("a", LOGS["a"])
        known.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
def test_a_full_disk_under_the_file_is_no_failure(file: Path) -> None:
    known = Known(file, "pair")
    full = os.open("/dev/full", os.O_WRONLY)
    known.close()
    known._fd = full
    known.remember("a", LOGS["a"])
    assert known.problem == "No space left on device"
    known.remember("d", LOGS["d"])
    assert known.get("d") == LOGS["d"]


def test_two_syncs_may_use_one_file_at_once(file: Path) -> None:
    one, two = Known(file, "pair"), Known(file, "pair")
    one.remember("a", LOGS["a"])
    two.remember("d", LOGS["d"])
    one.remember("b/c", LOGS["b/c"])
    one.close()
    two.close()
    assert read(file) == (LOGS, None)


def test_a_file_of_many_old_lines_is_written_anew(file: Path) -> None:
    known = Known(file, "pair")
    for size in range(1, 2000):
        known.remember("a", Equal("1", "2", size))
    known.close()
    large = file.stat().st_size
    known = Known(file, "pair")
    known.remember("d", LOGS["d"])
    known.close()
    assert file.stat().st_size < large / 100
    assert read(file)[0] == {"a": Equal("1", "2", 1999), "d": LOGS["d"]}
    assert [path.name for path in file.parent.iterdir()] == ["state"]
