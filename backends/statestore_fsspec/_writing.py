"""Writing: append, create and delete, each committed by one exclusive create, and settled when the answer is not sure.

An append goes out as one request only under a proof: an offset that this client has seen to be the tail of that
run, in a walk or by its own request that was answered "created". Whatever else is answered, and whatever comes too
late, is settled by fresh heads, then a fresh walk, then the bytes; never by asking for the contested object.
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from statestore.errors import Conflict, Corrupt, NotFound, NotSupported, Unavailable
from statestore.store import NEW, Tail
from statestore_fsspec import _layout as layout
from statestore_fsspec._finding import Finder, Found
from statestore_fsspec._layout import Dead
from statestore_fsspec._reading import Gone, fetch_fresh
from statestore_fsspec._steps import NOW, TOKEN, Fetch, Outcome, Pause, Put, Span, Steps

__all__ = ["Writer"]

_TRIES: Final = 6  # how often one call sends a request that creates something
_REMEMBERED: Final = 100_000  # logs whose tails are remembered
_UNSETTLED: Final = "the storage gave no answer that settles it: call again with the same arguments"


class _Proof(NamedTuple):
    """That a run ended at an offset, and was alive, at some moment after `sent`."""

    run: str
    size: int
    sent: float


class Writer:
    """Appends, creates and deletes. It remembers, for each log, the tail that it has seen last.

    Args:
        finder: how a log is found.
    """

    def __init__(self, finder: Finder) -> None:
        self.finder = finder
        self._proofs: dict[str, _Proof] = {}

    def note(self, log: str, found: Found) -> None:
        """Remember the tail that a walk has shown: an append there goes out as one request."""
        if found.walk is not None and found.walk.seal is None:
            self._prove(log, _Proof(found.tail.run, found.tail.size, found.sent))

    def append(self, log: str, data: bytes, at: Tail) -> Steps[Tail]:
        """Add `data` where the log ends, if that is `at`; see `Store.append`."""
        if at == NEW:
            return (yield from self.create(log, data))
        tried = False  # whether a request of this call may have, or get, an effect
        proof = self._proofs.get(log)
        try:
            for attempt in range(_TRIES):
                if attempt:
                    yield Pause(attempt)
                if proof is None or (proof.run, proof.size) != (at.run, at.size):
                    found = yield from self.finder.find(log)
                    if found.run != at.run:
                        yield from self._refuse_other_run(log, at, found, tried)
                    try:
                        there = yield from self._settle(log, data, at, found)
                    except Gone:
                        continue
                    if there:
                        return Tail(at.size + len(data), at.run)
                    if at.size + len(data) > layout.MAX_OFFSET:
                        raise NotSupported("the log is full: go on in another one", log=log, limit=layout.MAX_OFFSET)
                    proof = _Proof(at.run, at.size, found.sent)
                sent = yield NOW
                outcome = yield Put(layout.single_key(log, at.run, at.size), layout.segment_object(data))
                if outcome is Outcome.CREATED and self.finder.is_fresh(proof.sent, (yield NOW)):
                    tail = Tail(at.size + len(data), at.run)
                    # Nothing but the log's tail could be created there: the proof begins anew with this request.
                    self._prove(log, _Proof(tail.run, tail.size, sent))
                    return tail
                tried, proof = True, None
                self._proofs.pop(log, None)
        except Unavailable as error:
            error.effect_unknown = error.effect_unknown or tried
            raise
        raise _unavailable(_UNSETTLED, True, log, at.size)

    def _prove(self, log: str, proof: _Proof) -> None:
        if len(self._proofs) >= _REMEMBERED:
            self._proofs.clear()  # each is found again at the cost of two requests
        self._proofs[log] = proof

    def _settle(self, log: str, data: bytes, at: Tail, found: Found) -> Steps[bool]:
        """Say whether the run holds `data` at an offset; False where it ends there.

        Raises:
            Conflict: it holds something else there, or ends before.
            NotFound: a deletion has begun there; it was completed.
            Gone: the listing has become too old meanwhile.
        """
        assert found.walk is not None
        if found.walk.size == at.size:
            if found.walk.seal is None:
                return False
            yield from self._complete(log, found)
            raise NotFound("the log was deleted", log=log, expected=at)
        if not (yield from self._holds(found, at.size, data)):
            raise Conflict("the log does not end there: read on from there", log=log, expected=at, found=found.tail)
        return True

    def _holds(self, found: Found, start: int, data: bytes) -> Steps[bool]:
        """Say whether what was found holds `data` at an offset."""
        assert found.walk is not None
        stop = start + len(data)
        if stop > found.walk.size:
            return False
        covering = found.walk.covering(start, stop)
        return bool((yield from fetch_fresh(self.finder, found.sent, covering, start, stop)) == data)

    def _refuse_other_run(self, log: str, at: Tail, found: Found, tried: bool) -> Steps[NoReturn]:
        """Refuse an append to a run that is not the current one.

        A request that went out in it can have had its effect only if the run went on behind it.
        """
        if tried:
            generation = layout.run_generation(at.run)
            dead = yield from self.finder.dead(log, generation + 1)
            if dead is None or dead.run != at.run or dead.end > at.size:
                raise Unavailable(
                    "the log was deleted while this append was under way: it may have been added before",
                    effect_unknown=True,
                    log=log,
                    offset=at.size,
                )
        if found.run is None:
            raise NotFound("no such log: only an append at NEW creates one", log=log, expected=at)
        raise Conflict("the log was deleted and made again: open it anew", log=log, expected=at, found=found.tail)

    def create(self, log: str, data: bytes) -> Steps[Tail]:
        """Create the log, or find that it begins with `data`; see `Store.append` at ``NEW``."""
        for attempt in range(_TRIES):
            if attempt:
                yield Pause(attempt)
            try:
                generation, found = yield from self.vacancy(log)
                if found is not None:
                    if (yield from self._holds(found, 0, data)):
                        return Tail(len(data), found.tail.run)
                    raise Conflict("there is such a log: read it first", log=log, expected=NEW, found=found.tail)
            except Gone:
                continue
            run = layout.new_run(generation, (yield TOKEN))
            outcome = yield Put(layout.single_key(log, run, 0), layout.segment_object(data))
            # In any other case with another run: whatever becomes of that request, nobody will look there.
            if outcome is Outcome.CREATED:
                sent = yield NOW
                if (yield from self.publish(log, run)):
                    self._prove(log, _Proof(run, len(data), sent))
                    return Tail(len(data), run)
        raise _unavailable("the storage does not say that it has stored the log's first bytes", False, log, 0)

    def vacancy(self, log: str) -> Steps[tuple[int, Found | None]]:
        """Return the generation that a new log of that name gets, or else what is there.

        A deletion that has begun is completed.

        Raises:
            Gone: what was listed has become too old meanwhile.
        """
        generation = yield from self.finder.generation(log)
        if generation % 2 == 0:
            return generation + 1, None
        found = yield from self.finder.find(log)
        if found.walk is None:
            return found.generation + 1, None
        if found.walk.seal is not None:
            yield from self._complete(log, found)
            return found.generation + 2, None
        return found.generation, found

    def publish(self, log: str, run: str) -> Steps[bool]:
        """Create the head that makes a run the log; return False where another run has got it.

        Raises:
            Unavailable: it is not known whether the head is there, or will be.
        """
        key = layout.head_key(log, layout.run_generation(run))
        tried = False
        try:
            for attempt in range(_TRIES):
                if attempt:
                    yield Pause(attempt)
                outcome = yield Put(key, layout.spell_live(run))
                if outcome is Outcome.CREATED:
                    return True
                tried = True
                # A head never changes: what it says settles it, whoever asks and whenever.
                (raw,) = yield Fetch((Span(key),))
                if raw is not None:
                    return layout.read_live(raw, key) == run
        except Unavailable as error:
            error.effect_unknown = error.effect_unknown or tried
            raise
        raise _unavailable(_UNSETTLED, True, log)

    def delete(self, log: str, at: Tail | None) -> Steps[None]:
        """Delete the log, if it ends at `at` or that is None; see `Store.delete`."""
        token = yield TOKEN
        tried: str | None = None  # the run that a seal of ours may close, or have closed
        try:
            for attempt in range(_TRIES):
                if attempt:
                    yield Pause(attempt)
                found = yield from self.finder.find(log)
                try:
                    winner = yield from self._winner(log, found, tried)
                except Gone:
                    continue
                if winner is not None:
                    if winner == token:
                        return
                    raise NotFound("somebody else deleted the log", log=log)
                if at is not None and at != found.tail:
                    raise Conflict("the log does not end there: not deleted", log=log, expected=at, found=found.tail)
                dead = Dead(found.tail.run, found.tail.size, token)
                outcome = yield Put(layout.single_key(log, dead.run, dead.end), layout.seal_object(token))
                tried = dead.run
                self._proofs.pop(log, None)
                if outcome is Outcome.CREATED and self.finder.is_fresh(found.sent, (yield NOW)):
                    yield from self._bury(log, dead)
                    return
        except Unavailable as error:
            error.effect_unknown = error.effect_unknown or tried is not None
            raise
        raise _unavailable(_UNSETTLED, True, log)

    def _winner(self, log: str, found: Found, tried: str | None) -> Steps[str | None]:
        """Return the token of whoever deleted the log, which is completed; None where nobody has begun to.

        Args:
            log: the log's name.
            found: what it is now.
            tried: the run that the caller meant, and tried to close before.

        Raises:
            NotFound: there is no such log, and the caller closed none.
            Gone: what was found has become too old meanwhile.
        """
        if tried is not None and found.run != tried:
            dead = yield from self.finder.dead(log, layout.run_generation(tried) + 1)
            return dead.token if dead is not None else None
        if found.walk is None:
            raise NotFound("no such log", log=log)
        return (yield from self._complete(log, found)) if found.walk.seal is not None else None

    def complete(self, log: str) -> Steps[bool]:
        """Complete a deletion that was begun and left; return whether there was one."""
        for attempt in range(_TRIES):
            if attempt:
                yield Pause(attempt)
            found = yield from self.finder.find(log)
            if found.walk is None or found.walk.seal is None:
                return False
            try:
                yield from self._complete(log, found)
            except Gone:
                continue
            return True
        raise _unavailable("the log's objects are collected faster than it can be read", False, log)

    def _complete(self, log: str, found: Found) -> Steps[str]:
        """Complete a deletion that a seal has begun, whoever began it; return the token of whoever did.

        Raises:
            Gone: the seal was collected, so the even head is there; or it may have been, and a late request may
                have put something else in its place.
        """
        assert found.walk is not None
        assert found.walk.seal is not None
        (raw,) = yield Fetch((Span(found.walk.seal.key),))
        if raw is None or not self.finder.is_fresh(found.sent, (yield NOW)):
            raise Gone
        token = layout.open_seal(raw, found.walk.seal)
        yield from self._bury(log, Dead(found.tail.run, found.tail.size, token))
        return token

    def _bury(self, log: str, dead: Dead) -> Steps[None]:
        """Create the even head that says how a run ended."""
        generation = layout.run_generation(dead.run) + 1
        key = layout.head_key(log, generation)
        for attempt in range(_TRIES):
            if attempt:
                yield Pause(attempt)
            outcome = yield Put(key, layout.spell_dead(dead))
            if outcome is Outcome.CREATED:
                return
            said = yield from self.finder.dead(log, generation)
            if said is None:
                continue
            if said != dead:
                raise Corrupt("a head tells of another deletion than the seal does", log=log, object=key)
            return
        raise _unavailable(_UNSETTLED, False, log, dead.end)


def _unavailable(message: str, effect_unknown: bool, log: str, offset: int | None = None) -> Unavailable:
    return Unavailable(message, retry=True, effect_unknown=effect_unknown, log=log, offset=offset)
