"""A modelled storage, and the exploration of everything that clients, network and clock can do on it.

The storage is strongly consistent, lists in small pages, creates exclusively, and answers one request at a time.
Between any two requests anything else can happen: another client's request, the clock's next tick, the arrival of a
request that was sent long before. A client that dies needs no event of its own: that it never goes on is one of the
orders, and whatever the others do then is among those explored.
"""

from __future__ import annotations

import gc
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any
from unittest.mock import patch

from statestore_fsspec import _copying
from statestore_fsspec._layout import Entry
from statestore_fsspec._steps import NOW, Copy, Fetch, List, Outcome, Page, Put, Remove
from tests.object_storage.clients import DONE, WARM, Node, Nodes, Raised
from tests.object_storage.scene import (
    DOUBLED,
    FAILED,
    GRACE,
    LATE,
    LOST,
    NEVER,
    PART,
    RETRIED,
    Flying,
    Scenario,
    State,
    Step,
)
from tests.object_storage.scripts import script
from tests.object_storage.truth import Stored, Truth, Violation

__all__ = ["Model", "Report"]

Next = tuple[Step, State | Violation]


@dataclass
class Report:
    """What an exploration has found."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    complete: bool = False
    seconds: float = 0.0
    violation: Violation | None = None
    trace: list[Step] = field(default_factory=list)


class Model:
    """One scenario's states and what leads from each to the next.

    Args:
        scenario: who does what.
        joined: whether client histories that leave the client the same are one.
        strict: whether broken invariants count that no caller has noticed yet.
    """

    def __init__(self, scenario: Scenario, *, joined: bool = True, strict: bool = True) -> None:
        self.scenario = scenario
        self._strict = strict
        self.names = tuple(scenario.scripts)
        self._nodes = [
            Nodes(script(words), number, GRACE, joined=joined) for number, words in enumerate(scenario.scripts.values())
        ]
        self._collectors = scenario.doers("collect", "verify", *(("delete",) if scenario.passing else ()))
        self._turners = scenario.doers("create", "delete", "copy")
        self._times = [float(sum(scenario.ticks[:count])) for count in range(len(scenario.ticks) + 1)]
        self._storages: dict[Any, dict[str, Stored]] = {}
        self._truths: dict[Any, Truth] = {}

    def storages(self) -> set[Any]:
        """Return what the storage has held in any state so far."""
        return set(self._storages)

    def explore(self, *, limit: int | None = None, breadth: bool = False) -> Report:
        """Go through all states.

        Args:
            limit: stop after so many states.
            breadth: the nearest states first, so that the trace of what is found is as short as any.
        """
        gc.disable()  # nothing here refers to itself, and looking for what does costs a fifth of the time
        try:
            with patch.object(_copying, "_PART", PART):
                return self._explored(limit, breadth)
        finally:
            gc.enable()

    def _explored(self, limit: int | None, breadth: bool) -> Report:
        report, began = Report(), time.process_time()
        start = self.start()
        parents, ordinals = array("q", [-1]), array("q", [0])
        seen = {self._key(start)}
        todo: deque[tuple[int, State]] = deque([(0, start)])
        while todo and (limit is None or len(parents) < limit):
            index, state = todo.popleft() if breadth else todo.pop()
            last = True
            for ordinal, (step, after) in enumerate(self.successors(state)):
                last = False
                report.transitions += 1
                if isinstance(after, Violation):
                    report.violation, report.trace = after, [*self._trace(parents, ordinals, index), step]
                    todo.clear()
                    break
                key = self._key(after)
                if key not in seen:
                    seen.add(key)
                    parents.append(index)
                    ordinals.append(ordinal)
                    todo.append((len(parents) - 1, after))
            report.ends += last
        report.states, report.seconds = len(parents), time.process_time() - began
        report.complete = not todo
        return report

    def _trace(self, parents: array[int], ordinals: array[int], index: int) -> list[Step]:
        path = []
        while parents[index] >= 0:
            path.append(ordinals[index])
            index = parents[index]
        state, steps = self.start(), []
        for ordinal in reversed(path):
            step, after = list(self.successors(state))[ordinal]
            assert isinstance(after, State)
            steps.append(step)
            state = after
        return steps

    def _key(self, state: State) -> Any:
        """Return what is the same for two states only if the same can follow from both."""
        return (
            id(state.objects),
            id(state.truth),
            state.flying,
            state.clock,
            state.faults,
            *map(self._shape, range(len(self.names)), state.nodes, repeat(self._times[state.clock])),
            state.parts,
            state.asleep,
        )

    def _shape(self, client: int, node: Node, now: float) -> int:
        return node.number if client in self._collectors else self._nodes[client].shape(node, now)

    def _one(self, objects: dict[str, Stored]) -> dict[str, Stored]:
        """Return the one dictionary that stands for all with this content."""
        return self._storages.setdefault(frozenset(objects.items()), objects)

    def _told(self, state: State, truth: Truth) -> State:
        """Return a state in which the truth is another: the one object that stands for all alike."""
        return state if truth is state.truth else state._replace(truth=self._truths.setdefault(truth.key(), truth))

    def start(self) -> State:
        """Return the first state: each script that prepares its scene has done so, one after the other."""
        count = len(self.names)
        state = State(
            objects={},
            flying=(),
            clock=0,
            faults=0,
            nodes=tuple(nodes.start for nodes in self._nodes),
            parts=((),) * count,
            asleep=frozenset(),
            truth=Truth({}, {}, frozenset(), frozenset(), (None,) * count, self._strict),
        )
        for client in range(count):
            if "|" not in self.scenario.scripts[self.names[client]]:
                continue
            while state.nodes[client].request is not WARM:
                _, after = next(iter(self._requested(state, client, still=True)))
                assert isinstance(after, State), after
                state = after
            _, after = next(iter(self._answered(state, client, None, None, still=True)))
            assert isinstance(after, State), after
            state = after
        return state._replace(faults=self.scenario.faults)

    def successors(self, state: State) -> Iterator[Next]:
        """Yield whatever can happen next.

        Where a client asks for what nobody can change any more, when it is answered makes no difference to anybody:
        then that is the only thing that happens next.
        """
        for client, node in enumerate(state.nodes):
            if client not in state.asleep and self._steady(state, node.request):
                yield from self._requested(state, client)
                return
        for client, node in enumerate(state.nodes):
            if node.request is not DONE and client not in state.asleep:
                yield from self._requested(state, client)
        for flying in dict.fromkeys(state.flying):
            key, what = flying
            rest = list(state.flying)
            rest.remove(flying)
            landed = state._replace(flying=tuple(rest))
            if isinstance(what, bytes) and key not in state.objects:
                step = Step(None, Put(key, what), Outcome.CREATED, LATE)
                yield from self._after(step, lambda s=landed, k=key, raw=what: self._put(s, k, raw))
            elif isinstance(what, str) and what in state.objects:
                step = Step(None, Copy(((what, key),)), (True,), LATE)
                raw = state.objects[what].data
                yield from self._after(step, lambda s=landed, k=key, raw=raw: self._put(s, k, raw))
        if state.clock < len(self.scenario.ticks):
            later = state._replace(clock=state.clock + 1, asleep=frozenset())
            yield from self._awake(Step(None, NOW, self._times[later.clock]), later, sorted(state.asleep))

    def _awake(self, step: Step, state: State, sleepers: list[int]) -> Iterator[Next]:
        if not sleepers:
            yield step, state
            return
        for more, after in self._looked(step, state, sleepers[0]):
            if isinstance(after, State):
                yield from self._awake(more, after, sleepers[1:])
            else:
                yield more, after

    def _steady(self, state: State, request: Any) -> bool:
        """Say whether the answer to a request is the same at any later time."""
        if self.scenario.passing:
            return False
        if isinstance(request, List):
            return request.prefix.startswith("heads/") and not self._may_turn(state)
        if isinstance(request, Fetch):
            passing = self._may_collect(state)
            return all(
                span.key in state.objects and not (passing and span.key.startswith("data/")) for span in request.spans
            )
        return False

    def _may_turn(self, state: State) -> bool:
        """Say whether another head can appear."""
        return (
            any(state.nodes[client].request is not DONE for client in self._turners)
            or any(key.startswith("heads/") or raw[:6] == b"sts1 s" for key, raw in state.flying)
            or state.truth.sealed()
        )

    def _may_collect(self, state: State) -> bool:
        return any(state.nodes[client].request is not DONE for client in self._collectors)

    def _requested(self, state: State, client: int, *, still: bool = False) -> Iterator[Next]:
        """Yield what can come of a client's next request, or of the next part of it."""
        node = state.nodes[client]
        request = node.request
        if (
            request is NOW
        ):  # at the very beginning, and while the scene is prepared; all others look when they come to it
            step, now = Step(client, NOW, self._times[state.clock]), self._times[state.clock]
            yield from self._sent(step, state, client, now, still=True) if still else self._looked(step, state, client)
            return
        if state.truth.calls[client] is None and node.begin is not None and not self._steady(state, request):
            state = self._told(state, state.truth.begun(client, node.begin))
        if isinstance(request, List):
            yield from self._answered(state, client, None, self._page(state, client, request), still=still)
        elif isinstance(request, Put):
            yield from self._put_by(state, client, request, still)
        else:
            yield from self._part(state, client, request, still)
            # Where nothing is ever removed, the double of a copy finds just what the first one did.
            if state.faults and DOUBLED in self.scenario.kinds and isinstance(request, Copy):
                yield from self._copied_twice(state, client, request)
        if state.faults and FAILED in self.scenario.kinds and not isinstance(request, Put):
            spent = state._replace(faults=state.faults - 1)
            yield from self._answered(spent, client, FAILED, Raised("the storage does not answer"))

    def _page(self, state: State, client: int, request: List) -> Page:
        keys = sorted(key for key in state.objects if key.startswith(request.prefix) and key > request.after)
        size = self.scenario.page
        # Only collectors look at times: to all others, pages that differ in nothing else are the same.
        timed = client in self._collectors
        rows = ((key, state.objects[key]) for key in keys[:size])
        entries = tuple(Entry(key, len(row.data), row.modified if timed else 0.0) for key, row in rows)
        return Page(entries, len(keys) > size)

    def _put_by(self, state: State, client: int, request: Put, still: bool) -> Iterator[Next]:
        free, head = request.key not in state.objects, request.key.startswith("heads/")
        plain = Outcome.CREATED if free else Outcome.REFUSED

        def sent(effect: bool, fault: str | None, answer: Outcome) -> Iterator[Next]:
            before = state if fault is None else state._replace(faults=state.faults - 1)
            if fault in (LATE, DOUBLED):
                before = before._replace(flying=_with(state.flying, request.key, request.data))
            try:
                after = self._put(before, request.key, request.data) if effect else before
            except Violation as violation:
                yield Step(client, request, answer, fault), violation
                return
            yield from self._answered(after, client, fault, answer, still=still)

        try:
            state.truth.asked(state.objects, client, request.key, request.data)
        except Violation as violation:
            yield Step(client, request, plain), violation
            return
        yield from sent(free, None, plain)
        if not state.faults:
            return
        kinds = self.scenario.kinds
        if free and LOST in kinds:
            yield from sent(True, LOST, Outcome.UNKNOWN)
        if free and RETRIED in kinds:
            yield from sent(True, RETRIED, Outcome.REFUSED)
        # What is stuck before a key that is taken can only have an effect once a collector has been there.
        again = self._may_collect(state) and (self.scenario.passing or not head)
        if LATE in kinds and (free or again):
            yield from sent(False, LATE, Outcome.UNKNOWN)
        elif NEVER in kinds:  # else that is what is late for ever
            yield from sent(False, NEVER, Outcome.UNKNOWN)
        if DOUBLED in kinds and again:
            yield from sent(free, DOUBLED, plain)

    def _put(self, state: State, key: str, data: bytes) -> State:
        """Return the state when an object was created."""
        # Only collectors look at times.
        now = self._times[state.clock] if self._may_collect(state) else 0.0
        objects = self._one({**state.objects, key: Stored(data, now)})
        return self._told(state._replace(objects=objects), state.truth.created(objects, key))

    def _copied_twice(self, state: State, client: int, request: Copy) -> Iterator[Next]:
        """Do one part of a copy, whose double is stuck: it then overwrites, with what the source is by then."""
        if self._may_collect(state):
            source, target = request.pairs[len(state.parts[client])]
            spent = state._replace(faults=state.faults - 1, flying=_with(state.flying, target, source))
            yield from self._part(spent, client, request, False, DOUBLED)

    def _part(self, state: State, client: int, request: Any, still: bool, fault: str | None = None) -> Iterator[Next]:
        """Do one part of a request that has several, each at a moment of its own."""
        done = state.parts[client]
        try:
            if isinstance(request, Fetch):
                span, whole = request.spans[len(done)], len(request.spans)
                stored = state.objects.get(span.key)
                done += (None if stored is None else stored.data[span.start : span.stop],)
            elif isinstance(request, Copy):
                (source, target), whole = request.pairs[len(done)], len(request.pairs)
                done += (source in state.objects,)
                if done[-1]:
                    state = self._put(state, target, state.objects[source].data)
            else:
                assert isinstance(request, Remove)
                key, whole = request.keys[len(done)], len(request.keys)
                done += (key,)
                objects = dict(state.objects)
                if objects.pop(key, None) is not None:
                    objects = self._one(objects)
                    state = self._told(state._replace(objects=objects), state.truth.removed(objects, key))
        except Violation as violation:
            yield Step(client, request, done, fault), violation
            return
        if len(done) < whole:
            parts = (*state.parts[:client], done, *state.parts[client + 1 :])
            yield Step(client, request, done, fault), state._replace(parts=parts)
            return
        answer: Any = done if isinstance(request, Fetch) else all(done) if isinstance(request, Copy) else None
        yield from self._answered(state, client, fault, answer, still=still)

    def _answered(
        self, state: State, client: int, fault: str | None, reply: Any, *, still: bool = False
    ) -> Iterator[Next]:
        """Send a client a reply; yield where it goes on from there."""
        node = state.nodes[client]
        step = Step(client, node.request, reply, fault)
        yield from self._sent(step, state, client, reply, still=still)

    def _sent(self, step: Step, state: State, client: int, reply: Any, *, still: bool = False) -> Iterator[Next]:
        ends, node = self._nodes[client].send(state.nodes[client], reply)
        step = step._replace(ends=step.ends + ends)
        truth = state.truth
        if ends and truth.calls[client] is None:
            begin = state.nodes[client].begin
            assert begin is not None
            truth = truth.begun(client, begin)
        try:
            for end in ends:
                truth = truth.ended(client, end)
        except Violation as violation:
            yield step, violation
            return
        nodes = (*state.nodes[:client], node, *state.nodes[client + 1 :])
        parts = (*state.parts[:client], (), *state.parts[client + 1 :])
        state = self._told(state._replace(nodes=nodes, parts=parts), truth)
        if node.request is DONE and client in self._collectors and not self._may_collect(state):
            timeless = {key: Stored(stored.data, 0.0) for key, stored in state.objects.items()}
            state = state._replace(objects=self._one(timeless))
        state = self._settled(state)
        if node.request is NOW and not still:
            yield from self._looked(step, state, client)
        else:
            yield step, state

    def _looked(self, step: Step, state: State, client: int) -> Iterator[Next]:
        """Let a client look at the clock: now, or after a later tick. Between two ticks every moment is the same."""
        yield from self._sent(step, state, client, self._times[state.clock])
        if (self.scenario.slow or state.nodes[client].first) and state.clock < len(self.scenario.ticks):
            yield step._replace(slow=True), state._replace(asleep=state.asleep | {client})

    def _settled(self, state: State) -> State:
        """Forget the requests on their way that can never have an effect."""
        if not state.flying:
            return state
        collected = self._may_collect(state)
        rest = tuple(
            item
            for item in state.flying
            if item[0] not in state.objects or (collected and (self.scenario.passing or item[0].startswith("data/")))
        )  # without collectors a copy finds what it has found before
        return state if len(rest) == len(state.flying) else state._replace(flying=rest)

    def _after(self, step: Step, change: Callable[[], State]) -> Iterator[Next]:
        try:
            yield step, change()
        except Violation as violation:
            yield step, violation


def _with(flying: tuple[Flying, ...], key: str, what: bytes | str) -> tuple[Flying, ...]:
    """Return the requests on their way when there is one more, always in the same order."""
    return tuple(sorted((*flying, (key, what)), key=lambda item: (item[0], isinstance(item[1], str), item[1])))
