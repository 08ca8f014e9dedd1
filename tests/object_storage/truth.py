"""What truly happened: a history beside the storage, by which every answer of the protocol is judged.

It knows of no walk, listing or grace. A run that a head has made visible is a chain of appends. A request that
creates the object at the chain's end lengthens it, unless a seal did so before; one below the end leaves garbage that
no reader may ever see; one above would be a gap. Each client's call remembers which runs were the log while it was
under way, and how long the log was when its first request arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from statestore.errors import Conflict, Corrupt, Exists, NotFound, StateStoreError, Unavailable
from statestore.store import NEW, Tail
from statestore_fsspec import _layout as layout
from tests.object_storage.clients import Begin, End

__all__ = ["Call", "Run", "Stored", "Truth", "Violation"]


class Violation(Exception):
    """A promise was broken."""


class Stored(NamedTuple):
    """An object of the storage."""

    data: bytes
    modified: float


class Run(NamedTuple):
    """A run that has had a head: its appends, and the token of the seal that closed it."""

    pieces: tuple[bytes, ...]
    seal: str | None

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    def offsets(self) -> Iterator[int]:
        """Yield the offsets at which an append ended."""
        offset = 0
        for piece in self.pieces:
            offset += len(piece)
            yield offset


class Call(NamedTuple):
    """A call that is under way.

    Attributes:
        begin: what was called.
        floors: the run that each log was when it began, and how long it was.
        seen: each run, or None, that each log was at some moment since.
    """

    begin: Begin
    floors: tuple[tuple[str, str, int], ...]
    seen: frozenset[tuple[str, str | None]]


class Truth(NamedTuple):
    """What truly happened.

    Attributes:
        heads: for each log, what its heads say, in order: a run, or "" for a deletion.
        runs: all runs that have, or had, a head.
        unsure: data of appends that were answered "this may have had an effect".
        denied: data and tokens of calls that were answered "this has no effect, and will have none".
        calls: for each client, the call that is under way.
        strict: whether a broken invariant that no caller has noticed yet is a violation.
    """

    heads: Mapping[str, tuple[str, ...]]
    runs: Mapping[tuple[str, str], Run]
    unsure: frozenset[bytes]
    denied: frozenset[bytes | str]
    calls: tuple[Call | None, ...]
    strict: bool = True

    def key(self) -> Any:
        """Return this as something hashable."""
        return frozenset(self.heads.items()), frozenset(self.runs.items()), self.unsure, self.denied, self.calls

    def live(self, log: str) -> str | None:
        """Return the run that the log is."""
        heads = self.heads.get(log, ())
        return heads[-1] if len(heads) % 2 else None

    def sealed(self) -> bool:
        """Say whether a deletion has begun that anybody may complete, or may begin with a request on its way."""
        return any(run.seal is not None and self.live(log) == name for (log, name), run in self.runs.items())

    def begun(self, client: int, begin: Begin) -> Truth:
        """Return the truth when a client's call has begun."""
        floors, seen = [], set()
        for log in (begin.log, begin.args[0]) if begin.kind == "copy" else (begin.log,):
            run = self.live(log)
            seen.add((log, run))
            if run is not None:
                floors.append((log, run, len(self.runs[log, run].data)))
        return self._with(client, Call(begin, tuple(floors), frozenset(seen)))

    def _with(self, client: int, call: Call | None) -> Truth:
        return self._replace(calls=(*self.calls[:client], call, *self.calls[client + 1 :]))

    # What requests do.

    def asked(self, objects: Mapping[str, Stored], client: int, key: str, raw: bytes) -> None:
        """Refuse the head of a copy that is not whole, whatever becomes of that request."""
        call = self.calls[client]
        if call is None or call.begin.kind != "copy" or key in objects or not key.startswith("heads/"):
            return
        log, generation = layout.parse_head(key)
        if generation % 2:
            self.check_copied(call, _whole(objects, log, layout.read_live(raw, key)))

    def created(self, objects: Mapping[str, Stored], key: str) -> Truth:
        """Return the truth when an object has been created."""
        raw = objects[key].data
        if key.startswith("heads/"):
            return self._headed(objects, key, raw)
        log, run, segment = layout.parse_data(layout.Entry(key, len(raw), 0))
        known = self.runs.get((log, run))
        if known is None:
            return self
        data = raw[layout.PREAMBLE :]
        size = len(known.data)
        if segment.merged:
            if data != known.data[segment.start : segment.stop]:
                self._within("a merge does not hold the bytes that it covers")
            self._check_nested(objects, log, run, segment)
        elif segment.start == size and known.seal is None:
            known = (
                known._replace(seal=layout.open_seal(raw, segment)) if segment.seal else self._longer(log, known, data)
            )
            if known.seal in self.denied:
                raise Violation("a deletion that was refused has begun")
            return self._replace(runs={**self.runs, (log, run): known})._checked(objects, log)
        elif segment.start > size:
            self._within("an object was created behind the end of the log")
        return self._checked(objects, log)

    def _longer(self, log: str, known: Run, data: bytes) -> Run:
        if data in self.denied:
            raise Violation(f"{_quote(data)} was refused, and is in the log all the same")
        self._check_once(log, data)
        return known._replace(pieces=(*known.pieces, data))

    def _within(self, message: str) -> None:
        if self.strict:
            raise Violation(message)

    def _check_once(self, log: str, data: bytes) -> None:
        if any(of == log and data in run.pieces for (of, _), run in self.runs.items()):
            raise Violation(f"{_quote(data)} is in the log twice, or in two incarnations of it")

    def _check_nested(self, objects: Mapping[str, Stored], log: str, run: str, new: layout.Segment) -> None:
        for key, stored in objects.items():
            if key.startswith(layout.run_prefix(log, run) + "m/"):
                old = layout.parse_data(layout.Entry(key, len(stored.data), 0))[2]
                if old.start < new.start < old.stop < new.stop or new.start < old.start < new.stop < old.stop:
                    self._within("two merges overlap")

    def _headed(self, objects: Mapping[str, Stored], key: str, raw: bytes) -> Truth:
        log, generation = layout.parse_head(key)
        heads = self.heads.get(log, ())
        if generation != len(heads) + 1:
            self._within("a head was created out of order")
        runs = self.runs
        if generation % 2:
            said = layout.read_live(raw, key)
            found = _whole(objects, log, said)
            if not found:
                raise Violation("a log was created whose bytes are not there")
            if said[11:] in self.denied or found in self.denied:
                raise Violation("a creation that was refused has its effect")
            if (log, said) in runs:
                raise Violation("a log that was deleted is there again")
            self._check_once(log, found)
            runs = {**runs, (log, said): Run((found,), None)}
        else:
            dead, said = layout.read_dead(raw, key), ""
            if runs[log, dead.run] != Run(runs[log, dead.run].pieces, dead.token):
                self._within("a head tells of a deletion that never began")
            if dead.run != heads[-1] or dead.end != len(runs[log, dead.run].data):
                self._within("a head tells of another run, or end, than was closed")
            runs = {**runs, (log, dead.run): runs[log, dead.run]._replace(seal=dead.token)}
        return self._replace(runs=runs)._turned(log, (*heads, said))._checked(objects, log)

    def _turned(self, log: str, heads: tuple[str, ...]) -> Truth:
        """Return the truth when a log has become, or is no longer, a run."""
        truth = self._replace(heads={**self.heads, log: heads})
        now = log, truth.live(log)
        calls = (
            call and (call._replace(seen=call.seen | {now}) if any(of == log for of, _ in call.seen) else call)
            for call in self.calls
        )
        return truth._replace(calls=tuple(calls))

    def removed(self, objects: Mapping[str, Stored], key: str) -> Truth:
        """Return the truth when an object has been removed."""
        if key.startswith("heads/"):
            log, generation = layout.parse_head(key)
            return self._turned(log, self.heads[log][: generation - 1])
        log, run, _ = layout.parse_data(layout.Entry(key, layout.PREAMBLE, 0) if "/t/" in key else _sized(key))
        if layout.run_generation(run) > len(self.heads.get(log, ())):
            self._within("an object was removed from a run whose creator may only be slow")
        return self._checked(objects, log)

    def _checked(self, objects: Mapping[str, Stored], log: str) -> Truth:
        run = self.live(log)
        if run is not None:
            true = self.runs[log, run]
            found = _whole(objects, log, run)
            if found != true.data:
                raise Violation(f"whoever reads the log finds {_quote(found)}; it holds {_quote(true.data)}")
            if true.seal is not None and layout.single_key(log, run, len(found)) not in objects:
                self._within("the seal of a deletion that has begun is gone")
        return self

    # What calls answer.

    def ended(self, client: int, end: End) -> Truth:
        """Return the truth when a client's call has returned, or has raised.

        Raises:
            Violation: the answer is not true.
        """
        call = self.calls[client]
        assert call is not None
        kind, log, args = call.begin
        truth = self._with(client, None)
        if end.error is None:
            getattr(self, f"_check_{kind}", _anything)(call, end)
            return truth
        if isinstance(end.error, Corrupt) or not isinstance(end.error, StateStoreError):
            raise Violation(f"{kind} raises {type(end.error).__name__}: {end.error}")
        if kind == "verify" and "grace" in end.error.facts:
            raise Violation("verify gives up, though all that has changed is what there is in the scenario")
        if isinstance(end.error, NotFound) and (log, None) not in call.seen:
            raise Violation(f"{kind} says that there is no log, though there was one all the time")
        if isinstance(end.error, Exists) and not any(of == args[0] and run for of, run in call.seen):
            raise Violation(f"{kind} says that there is a log, though there was none all the time")
        if isinstance(end.error, Conflict):
            self._check_tail_seen(call, end.error.found)
            if end.error.found == end.error.expected:
                raise Violation(f"{kind} says that the log does not end where it ends")
        if kind not in ("append", "delete", "copy"):
            return truth
        if isinstance(end.error, Unavailable) and end.error.effect_unknown:
            return truth._replace(unsure=truth.unsure | {args[0]}) if kind == "append" else truth
        if kind != "append":
            return truth._denied(end.tokens)
        if args[0] in truth.unsure and (isinstance(end.error, Unavailable) or truth.live(log) != args[1].run):
            # This call has had no effect, but one before may have, or have had one in a run that is no more.
            return truth
        return truth._denied((args[0], *end.tokens))

    def _denied(self, effects: tuple[bytes | str, ...]) -> Truth:
        for (_, name), run in self.runs.items():
            for effect in effects:
                if effect in run.pieces or effect == run.seal or effect == name[11:]:
                    raise Violation(f"a call was refused, and has had its effect all the same: {_quote(effect)}")
        return self._replace(denied=self.denied | set(effects))

    def _check_append(self, call: Call, end: End) -> None:
        data, at = call.begin.args
        tail = end.result
        if at != NEW and tail.run != at.run:
            raise Violation("an append was acknowledged in another run than the one that it named")
        if tail.size != at.size + len(data):
            raise Violation("an append was acknowledged at another offset than the one that it named")
        if (call.begin.log, tail.run) not in call.seen:
            raise Violation("an append was acknowledged in a run that was not the log")
        if self.runs[call.begin.log, tail.run].data[at.size : tail.size] != data:
            raise Violation(f"{_quote(data)} was acknowledged and is not in the log")

    def _check_delete(self, call: Call, end: End) -> None:
        for log, name in call.seen:
            run = self.runs[log, name] if name else None
            if run is not None and run.seal in end.tokens:
                if (log, None) not in call.seen:
                    raise Violation("a deletion was acknowledged and the log is still there")
                if call.begin.args[0] not in (None, Tail(len(run.data), name)):
                    raise Violation("a log was deleted that went on behind the tail that was named")
                return
        raise Violation("a deletion was acknowledged to somebody who did not delete the log")

    def _check_read(self, call: Call, end: End) -> None:
        start, stop = call.begin.args
        if not any(data[start:stop] == end.result for data in self._states(call, call.begin.log)):
            raise Violation(f"read returns {_quote(end.result)}, which the log never held while it was under way")

    def _check_verify(self, call: Call, end: End) -> None:
        if end.result:
            raise Violation(f"verify finds something wrong with a log that is whole: {end.result[0].message}")

    def _check_snapshot(self, call: Call, end: End) -> None:
        if end.result is None:
            return self._check_tail(call, end)
        if end.result not in self._states(call, call.begin.log):
            raise Violation(f"a snapshot holds {_quote(end.result)}, which the log never held meanwhile")
        return None

    def _check_tail(self, call: Call, end: End) -> None:
        if end.result is not None:
            self._check_tail_seen(call, end.result)
        elif (call.begin.log, None) not in call.seen:
            raise Violation("tail finds no log, though there was one all the time")

    def _check_copy(self, call: Call, end: End) -> None:
        target, _ = call.begin.args
        if (target, end.result.run) not in call.seen:
            raise Violation("a copy was acknowledged that is not there")
        self.check_copied(call, self.runs[target, end.result.run].data[: end.result.size])

    def check_copied(self, call: Call, copied: bytes) -> None:
        """Refuse a copy that is not what the source held, up to `stop`, while it was copied."""
        if not any(data[: call.begin.args[1]] == copied for data in self._states(call, call.begin.log)):
            raise Violation(f"a copy holds {_quote(copied)}, which its source never held while it was copied")

    def _check_tail_seen(self, call: Call, tail: Tail) -> None:
        states = self._states(call, call.begin.log, tail.run)
        if not any(len(data) == tail.size for data in states):
            raise Violation(f"{call.begin.kind} finds the tail {tail.size}, which the log never had meanwhile")

    def _states(self, call: Call, log: str, only: str | None = None) -> Iterator[bytes]:
        """Yield all that a log has held since a call began."""
        floors = {run: floor for of, run, floor in call.floors if of == log}
        for of, name in call.seen:
            if of == log and name is not None and only in (None, name):
                run = self.runs[log, name]
                for offset in run.offsets():
                    if offset >= floors.get(name, 0):
                        yield run.data[:offset]


def _whole(objects: Mapping[str, Stored], log: str, run: str) -> bytes:
    """Return what somebody reads who has the layout's description before him, and a moment without any change."""
    prefix = layout.run_prefix(log, run)
    singles, merges = {}, {}
    for key in sorted(key for key in objects if key.startswith(prefix)):
        segment = layout.parse_data(layout.Entry(key, len(objects[key].data), 0))[2]
        (merges if segment.merged else singles)[segment.start] = objects[key].data[layout.PREAMBLE :]
    data = b""
    while piece := merges.get(len(data)) or singles.get(len(data)):
        data += piece
    return data


def _sized(key: str) -> layout.Entry:
    start, stop = key.rpartition("/")[2].split("-")
    return layout.Entry(key, layout.PREAMBLE + int(stop) - int(start), 0)


def _anything(call: Call, end: End) -> None:
    """Accept whatever a call returns that promises nothing about what it returns."""


def _quote(data: bytes | str) -> str:
    return repr(data.decode() if isinstance(data, bytes) else data)
