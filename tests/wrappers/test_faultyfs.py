"""The faulty file system over fsspec's own memory: each fault does what it says, and comes again."""

from __future__ import annotations

import pytest
from fsspec.exceptions import FSTimeoutError
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from statestore.wrappers import Step
from statestore.wrappers.faultyfs import FAULTS, FaultyFileSystem

ALL = dict.fromkeys(FAULTS, 0.08)

LOOKS = {
    "info": lambda fs: fs.info("/d/a"),
    "exists": lambda fs: fs.exists("/d/a"),
    "isfile": lambda fs: fs.isfile("/d/a"),
    "isdir": lambda fs: fs.isdir("/d"),
    "created": lambda fs: fs.created("/d/a"),
    "modified": lambda fs: fs.modified("/d/a"),
    "cat_file": lambda fs: fs.cat_file("/d/a"),
    "ls": lambda fs: fs.ls("/d", detail=False),
    "find": lambda fs: fs.find("/"),
    "open": lambda fs: fs.open("/d/a").read(),
}
CHANGES = {
    "pipe_file": lambda fs: fs.pipe_file("/d/new", b"x"),
    "put_file": lambda fs: fs.put_file(__file__, "/d/new"),
    "cp_file": lambda fs: fs.cp_file("/d/a", "/d/new"),
    "mv": lambda fs: fs.mv("/d/a", "/d/new"),
    "rm_file": lambda fs: fs.rm_file("/d/a"),
    "rm": lambda fs: fs.rm("/d", recursive=True),
    "mkdir": lambda fs: fs.mkdir("/d/new"),
    "makedirs": lambda fs: fs.makedirs("/d/new/er"),
    "rmdir": lambda fs: fs.rmdir("/e"),
}


def fresh() -> MemoryFileSystem:
    """A file system of its own, with a file /d/a and an empty directory /e."""
    fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    fs.pipe_file("/d/a", b"0123456789")
    fs.mkdir("/e")
    return fs


def state(fs: MemoryFileSystem) -> dict[str, object]:
    return {name: fs.cat_file(name) for name in fs.find("/")} | dict.fromkeys(fs.pseudo_dirs)


def play(fs: FaultyFileSystem, program: list[str]) -> list[str]:
    told = []
    for call in program:
        try:
            result = str((LOOKS | CHANGES)[call](fs))
            told.append(result if call not in ("created", "info", "modified") else "")  # which tell the time
        except OSError as error:
            told.append(f"{type(error).__name__} {error}")
    return told


programs = st.lists(st.sampled_from(sorted(LOOKS | CHANGES)), max_size=50)


@given(seed=st.integers(0, 1 << 40), program=programs)
def test_the_same_seed_or_its_trace_and_the_same_calls_give_the_same_faults(seed, program):
    first, second = (FaultyFileSystem(fresh(), seed=seed, rates=ALL) for _ in "12")
    told = play(first, program)
    again = FaultyFileSystem.replay(fresh(), first.trace, seed=seed)
    assert play(second, program) == told == play(again, program)
    assert second.trace == first.trace == again.trace


@given(program=programs)
def test_without_faults_it_is_the_inner_file_system(program):
    inner, faulty = fresh(), FaultyFileSystem(fresh())
    assert play(faulty, program) == play(inner, program)
    assert state(faulty.fs) == state(inner)
    assert faulty.trace == ()


@pytest.mark.parametrize("call", [*LOOKS, *CHANGES])
@pytest.mark.parametrize(("fault", "kind"), [("throttled", OSError), ("timeout", FSTimeoutError)])
def test_an_error_before_the_effect_comes_to_any_call(call, fault, kind):
    fs = FaultyFileSystem(fresh(), seed=7, plan=[Step(1, fault, amount=int(fault == "throttled"))])
    with pytest.raises(kind, match=rf"\(injected\) path=\S+ fault={fault} seed=7 call=1$"):
        (LOOKS | CHANGES)[call](fs)
    assert state(fs.fs) == state(fresh())
    assert [step[:3] for step in fs.trace] == [(1, fault, call)]


@pytest.mark.parametrize("call", CHANGES)
@pytest.mark.parametrize(("fault", "kind"), [("lost", ConnectionResetError), ("timeout", FSTimeoutError)])
def test_a_lost_answer_leaves_the_effect(call, fault, kind):
    fs, meant = FaultyFileSystem(fresh(), plan=[Step(1, fault, amount=int(fault == "timeout"))]), fresh()
    CHANGES[call](meant)
    assert state(meant) != state(fresh())
    with pytest.raises(kind, match=r"seed=0 call=1$"):
        CHANGES[call](fs)
    assert state(fs.fs) == state(meant)


def test_throttling_comes_in_bursts():
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "throttled", amount=2)])
    for _ in range(2):
        with pytest.raises(OSError, match="503"):
            fs.cat_file("/d/a")
    assert fs.cat_file("/d/a") == b"0123456789"


def test_a_delayed_put_arrives_some_calls_later_over_whatever_is_there():
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "delayed", amount=3)])
    with pytest.raises(FSTimeoutError, match=r"fault=delayed seed=0 call=1$"):
        fs.pipe_file("/d/a", b"late")
    fs.pipe_file("/d/a", b"later", mode="overwrite")  # 2
    assert fs.cat_file("/d/a") == b"later"  # 3
    assert fs.cat_file("/d/a") == b"late"  # 4


def test_a_delayed_put_that_creates_finds_what_was_made_meanwhile():
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "delayed", amount=2), Step(4, "delayed", amount=8)])
    with pytest.raises(FSTimeoutError):
        fs.pipe_file("/d/new", b"late", mode="create")
    fs.pipe_file("/d/new", b"first", mode="create")
    assert fs.cat_file("/d/new") == b"first"
    with pytest.raises(FSTimeoutError):
        fs.pipe_file("/d/newer", b"late", mode="create")
    assert not fs.exists("/d/newer")
    fs.settle()
    assert fs.cat_file("/d/newer") == b"late"


def test_a_put_that_is_doubled_at_once_meets_its_own_object():
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "doubled", amount=0)])
    with pytest.raises(FileExistsError):
        fs.pipe_file("/d/new", b"mine", mode="create")
    assert fs.cat_file("/d/new") == b"mine"


def test_a_put_that_is_doubled_late_brings_back_what_was_removed():
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "doubled", amount=3)])
    fs.pipe_file("/d/new", b"mine", mode="create")
    fs.rm_file("/d/new")
    assert not fs.exists("/d/new")
    assert fs.exists("/d/new")


@pytest.mark.parametrize(("amount", "kept"), [(0, b""), (500, b"234"), (999, b"23456")])
def test_a_truncated_body_is_the_beginning_of_what_was_asked_for(amount, kept):
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "truncated", amount=amount)])
    assert fs.cat_file("/d/a", start=2, end=8) == kept
    assert fs.cat_file("/d/a", start=2, end=8) == b"234567"


def test_a_stale_listing_shows_what_was_there_some_calls_ago():
    fs = FaultyFileSystem(fresh(), plan=[Step(number, "stale", amount=number - 1) for number in range(4, 9)])
    fs.pipe_file("/d/b", b"1")  # 1
    fs.pipe_file("/d/a", b"1")  # 2
    fs.rm_file("/d/b")  # 3
    assert fs.ls("/d", detail=False) == ["/d/a"]  # 4: as before 1
    assert [row["size"] for row in fs.ls("/d")] == [10]  # 5
    assert fs.find("/d") == ["/d/a"]  # 6
    assert fs.find("/", detail=True)["/d/a"]["size"] == 10  # 7
    assert fs.find("/e") == []  # 8
    assert [row["size"] for row in fs.ls("/d")] == [1]


def test_a_stale_listing_shows_what_was_removed_even_where_nothing_is_left():
    plan = [Step(2, "stale", amount=1), Step(3, "stale", amount=2), Step(4, "stale", amount=1)]
    fs = FaultyFileSystem(fresh(), plan=plan)
    fs.rm_file("/d/a")
    assert fs.ls("memory://d/", detail=False) == ["/d/a"]
    assert fs.find("memory://") == ["/d/a"]
    with pytest.raises(FileNotFoundError):
        fs.ls("/d")


def test_slowness_is_asked_of_the_sleep_that_was_given():
    slept: list[float] = []
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "slow", amount=125)], sleep=slept.append)
    assert fs.cat_file("/d/a") == b"0123456789"
    assert slept == [0.125]


def test_what_is_made_of_these_calls_meets_their_faults():
    fs = FaultyFileSystem(fresh(), plan=[Step(1, "throttled", amount=1), Step(3, "lost", "pipe_file")])
    with pytest.raises(OSError, match="503"):
        fs.cat("/d/a")
    assert fs.read_bytes("memory://d/a") == b"0123456789"
    with pytest.raises(ConnectionResetError):
        fs.pipe({"/d/x": b"1"})
    assert fs.cat_ranges(["/d/a", "/d/x"], [0, 0], [2, 1]) == [b"01", b"1"]
    assert fs.glob("/d/*") == ["/d/a", "/d/x"]


def test_each_has_its_own_count_of_calls():
    inner = fresh()
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            FaultyFileSystem(inner, plan={1: "lost"}).pipe_file("/d/b", b"1")


@pytest.mark.parametrize("wrong", [{"plan": {1: "torn"}}, {"rates": {"paused": 0.1}}, {"rates": {"lost": 2}}])
def test_faults_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match=r"torn|paused|probabilities"):
        FaultyFileSystem(fresh(), **wrong)


def test_an_asynchronous_file_system_is_refused():
    inner = fresh()
    inner.asynchronous = True
    with pytest.raises(ValueError, match="asynchronous"):
        FaultyFileSystem(inner)
