"""What somebody who has not seen a long conversation in a bucket asks of it, with several distances of snapshots.

Requests are asserted for the distance that is used, and only shown, with the bytes, for the others.
STATESTORE_SCALE=full in the environment takes the sizes of docs/performance.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest

from benchmarks.s3 import Traffic, sized, watched
from statestore import NEW, Tail
from statestore.conversations import Conversations, ConversationState, Summary, _log
from statestore.wrappers import Wrapper
from statestore_fsspec import Settings
from statestore_fsspec import _layout as layout
from statestore_memory import MemoryStore
from tests.s3.raw import Place
from tests.servers import Rgw

MANY = sized(2000, 250)
PLACES = sized(15, 1)  # how many lengths of the log are looked at
DISTANCES = [10, 25, 50, 100, 200, 400, 800] if sized(1, 0) else [_log.INTERVAL]
LOG = "conversations/c"

CALLS: dict[str, Callable[[Conversations], Any]] = {
    "load_recent_messages(5)": lambda talks: talks.load_recent_messages("c", 5),
    "message_count": lambda talks: talks.message_count("c"),
}


class Recording(Wrapper):
    """Keeps what is appended."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.pieces: list[tuple[int, bytes]] = []

    def append(self, log: str, data: bytes, *, at: Tail) -> Tail:
        self.pieces.append((at.size, data))
        return super().append(log, data, at=at)


def message(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"{number:0400}"}


def appends(distance: int) -> list[tuple[int, bytes]]:
    """Return the appends of a conversation of one message each, and their offsets."""
    store = Recording()
    with pytest.MonkeyPatch.context() as patch, Conversations(store) as talks:
        patch.setattr(_log, "INTERVAL", distance)
        talks.save(ConversationState(id="c", metadata={"k": "m" * 1024}, summaries=[Summary(content="s" * 900)]))
        for number in range(1, MANY):
            talks.append_messages("c", [message(number)])
    assert store.pieces[0][0] == NEW.size
    return store.pieces


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Iterator[Callable[[str], None]]:
    """Keep lines for the end of the test."""
    lines: list[str] = []
    yield lines.append
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print("\n" + "\n".join(lines))


def row(what: str, found: list[Traffic]) -> str:
    requests = [one.requests.total() for one in found]
    appends = [one.requests["get data"] for one in found]
    sizes = [one.got for one in found]
    figures = (f"{median(each):11,.0f} {max(each):9,}" for each in (requests, appends, sizes))
    return f"{what:60} {' '.join(figures)}"


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_bounded_end_is_read_by_who_has_not_seen_a_conversation(
    rgw: Rgw, distance: int, tell: Callable[[str], None]
) -> None:
    spot = Place(rgw, f"{rgw.new_bucket()}/root")
    spot.put("statestore.json", Settings().spell())
    run = layout.new_run(1, "0" * 16)
    spot.put_all([(layout.head_key(LOG, 1), layout.spell_live(run))])
    pieces = appends(distance)
    found: dict[str, list[Traffic]] = {name: [] for name in CALLS}
    # The places differ in how far behind them the last snapshot is.
    places = [MANY * number // PLACES - 37 * number % (MANY // PLACES // 2) for number in range(1, PLACES + 1)]
    done = 0
    for place in places:
        spot.put_all(
            [(layout.single_key(LOG, run, at), layout.segment_object(data)) for at, data in pieces[done:place]]
        )
        done = place
        for name, call in CALLS.items():
            with spot.open() as store, Conversations(store) as talks, watched() as traffic:
                said = call(talks)
            assert said == place - 1 or [one.content for one in said] == [
                message(number)["content"] for number in range(place - 5, place)
            ]
            found[name].append(traffic)
    for name, traffics in found.items():
        tell(row(f"{name}, a snapshot every {distance} records", traffics))
    if distance != _log.INTERVAL:
        return
    for traffics in found.values():
        assert max(traffic.requests["get data"] for traffic in traffics) < 140  # each one append; the rest are listings
    with spot.open() as store, Conversations(store) as talks:
        state = talks.load("c")
    state.messages.append(state.messages[-1])
    with spot.open() as store, Conversations(store) as talks, watched() as traffic:
        talks.save(state)
    tell(row("save with one message more", [traffic]))
    spot.open().maintenance.compact(LOG)
    for name, call in {**CALLS, "save with one message more": lambda talks: talks.save(state)}.items():
        state.messages.append(state.messages[-1])
        with spot.open() as store, Conversations(store) as talks, watched() as traffic:
            call(talks)
        tell(row(f"{name}, compacted", [traffic]))
        assert traffic.requests.total() < 40
