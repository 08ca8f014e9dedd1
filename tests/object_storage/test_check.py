"""What a check says of a storage that changes while it looks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from statestore.errors import Unavailable
from statestore.store import Problem
from statestore_fsspec import _layout as layout
from statestore_fsspec._check import check
from statestore_fsspec._finding import Finder
from statestore_fsspec._layout import Entry
from statestore_fsspec._steps import NOW, Fetch, List, Page

GRACE = 10.0
RUN = layout.new_run(1, "a" * 16)
HEAD = layout.head_key("x", 1)
MERGE = layout.merge_key("x", RUN, 0, 2)


def single(start: int) -> str:
    return layout.single_key("x", RUN, start)


class Scene:
    """A storage in memory, and what somebody else does in it whenever a check begins to list, and for which time."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.now = 0.0
        self.looks = 0
        self.unreadable: set[str] = set()
        self.meanwhile: Callable[[int], object] = lambda look: None
        self.put(HEAD, layout.spell_live(RUN))
        for start, byte in enumerate((b"a", b"b", b"c")):
            self.put(single(start), layout.segment_object(byte))

    def put(self, key: str, raw: bytes) -> None:
        self.objects[key] = raw, self.now

    def damage(self, key: str) -> None:
        """Change a byte of an object, and not when it was made."""
        raw, modified = self.objects[key]
        self.objects[key] = raw[:-1] + bytes([raw[-1] ^ 1]), modified

    def check(self) -> list[Problem]:
        steps = check(Finder(GRACE), "x")
        reply: object = None
        while True:
            try:
                request = steps.send(reply)
            except StopIteration as end:
                found: list[Problem] = end.value
                return found
            reply = self.answer(request)

    def answer(self, request: object) -> object:
        if isinstance(request, List):
            if request.prefix.startswith("heads/"):
                self.looks += 1
                self.meanwhile(self.looks)
            keys = sorted(key for key in self.objects if key.startswith(request.prefix) and key > request.after)
            return Page(tuple(Entry(key, len(self.objects[key][0]), self.objects[key][1]) for key in keys), False)
        if isinstance(request, Fetch):
            return [self.fetch(span.key) for span in request.spans]
        return self.now if request is NOW else None

    def fetch(self, key: str) -> bytes | None:
        return self.objects[key][0] if key in self.objects and key not in self.unreadable else None


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_whole_log_is_listed_once(scene: Scene) -> None:
    assert scene.check() == []
    assert scene.looks == 1


def test_a_problem_is_told_after_a_second_listing(scene: Scene) -> None:
    scene.damage(single(1))
    (problem,) = scene.check()
    assert problem.object == single(1)
    assert scene.looks == 2


def test_all_that_is_wrong_is_told(scene: Scene) -> None:
    scene.now = 1.0
    scene.put(MERGE, layout.segment_object(b"xy", merged=True))
    scene.damage(single(2))
    assert [problem.object for problem in scene.check()] == [single(2), single(1), single(0)]


def test_damage_is_told_beside_something_that_has_gone_meanwhile(scene: Scene) -> None:
    scene.put(MERGE, layout.segment_object(b"xy", merged=True))
    scene.damage(single(2))
    scene.meanwhile = lambda look: look == 2 and scene.objects.pop(MERGE)
    (problem,) = scene.check()
    assert problem.object == single(2)
    assert scene.looks == 4


def test_a_log_that_was_made_again_meanwhile_is_looked_at_anew(scene: Scene) -> None:
    def replace(look: int) -> None:
        if look == 2:
            other = layout.new_run(3, "b" * 16)
            scene.put(layout.head_key("x", 2), layout.spell_dead(layout.Dead(RUN, 3, "c" * 16)))
            scene.put(layout.head_key("x", 3), layout.spell_live(other))
            scene.put(layout.single_key("x", other, 0), layout.segment_object(b"n"))

    scene.damage(single(1))
    scene.meanwhile = replace
    assert scene.check() == []
    assert scene.looks == 3


def test_an_object_that_is_listed_and_cannot_be_read_is_told(scene: Scene) -> None:
    scene.unreadable.add(single(1))
    (problem,) = scene.check()
    assert problem.object == single(1)


def test_a_storage_that_is_too_slow_is_not_believed(scene: Scene) -> None:
    def wait(look: int) -> None:
        scene.now += GRACE

    scene.meanwhile = wait
    with pytest.raises(Unavailable) as caught:
        scene.check()
    assert (caught.value.retry, caught.value.facts["log"]) == (True, "x")
    assert scene.looks == 4


def test_a_log_whose_objects_change_each_time_is_not_judged(scene: Scene) -> None:
    def remake(look: int) -> None:
        scene.now += 1
        scene.objects[single(1)] = scene.objects[single(1)][0], scene.now

    scene.damage(single(1))
    scene.meanwhile = remake
    with pytest.raises(Unavailable):
        scene.check()
