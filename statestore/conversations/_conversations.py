"""Whole conversations: load, save, fork, delete, list and sweep them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, Final

from statestore.catalog import Catalog, Row
from statestore.companions import companion
from statestore.conversations import _brief, _ids
from statestore.conversations._brief import Brief, BriefFold
from statestore.conversations._changes import MEDIA_TYPE, Change, Forked, Saved, encode, kind_of
from statestore.conversations._details import Details
from statestore.conversations._fold import State, raw_dict, raw_list
from statestore.conversations._history import History
from statestore.conversations._messages import message_json, read_messages, read_summaries, same, summary_json
from statestore.conversations._model import ConversationState, ListOptions
from statestore.conversations._place import CACHE, encoded, there, values
from statestore.errors import Conflict, Corrupt, Exists, InvalidName, NotFound, NotSupported, StateStoreError
from statestore.records import RecordLog
from statestore.store import Store

__all__ = ["Conversations"]

_NOBODY: Final[dict[str, Any]] = {"user_id": "", "system_prompt": "", "token_count": 0}
_DAMAGED: Final = "0001-01-01T00:00:00Z"


class Conversations(History, Details):
    """The conversations of a store, or of one scope in it. Making one touches nothing.

    A conversation is the log ``<prefix>/<id>``, its id quoted. Every change is one record, so it happens whole or not
    at all; everybody else sees it at once, and any number of processes may change the same conversation at the same
    time. Use one object for all threads: what it has read it does not read again.

    Any text is an id, but the empty one and those whose log would have too long a name. A wrong argument is refused
    first, then a closed object. The store is not closed with this object.

    Args:
        store: the store that holds the logs.
        prefix: the scope, a name such as ``teams/a``; make one of any text with :func:`statestore.names.quote`.
        cache: about how many bytes of conversations are kept in memory.
        catalog: the local file in which is kept what `list` and `sweep` ask of each conversation; by default one in the
            user's directory of caches. See :class:`statestore.catalog.Catalog`.

    Raises:
        InvalidName: `prefix` is no name, or is reserved for companions.
    """

    def __init__(
        self,
        store: Store,
        prefix: str = "conversations",
        *,
        cache: int = CACHE,
        catalog: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(store, prefix, cache=cache)
        self._path = catalog
        self._kept: Catalog[Brief] | None = None
        self._making = Lock()

    def close(self) -> None:
        """Refuse every later call but this one with ``Closed``; the store stays open, it is the caller's."""
        super().close()
        with self._making:
            if self._kept is not None:
                self._kept.close()

    def load(self, id: str) -> ConversationState:  # noqa: A002 - what it is called everywhere
        """Return a whole conversation.

        Raises:
            InvalidName: `id` is empty or too long.
            NotFound: there is no such conversation.
            Corrupt: a record is damaged.
        """
        log = self._log(id)
        with self._use(log) as known:
            state = there(known.refresh(None), id, log)
            profile, metadata, updated = state.profile, dict(state.metadata), state.updated
            history, summed = list(state.messages), list(state.summaries)
        try:
            return ConversationState(
                id=id,
                messages=read_messages(history, log),
                summaries=read_summaries(summed, log),
                last_accessed_at=_brief.read_time(updated),
                metadata=values(metadata),
                **_NOBODY | values(profile),
            )
        except ValueError as error:
            raise Corrupt(f"a record holds something else than it should: {error}", log=log) from error

    def save(self, state: ConversationState) -> None:
        """Make a conversation what `state` says: messages, summaries, metadata, prompt, user and token count.

        Lists stay as they are, and `state` is not changed. Only what is new behind the messages that are stored
        already is written, where they are the first ones given. It is one record; where the store makes things
        durable on demand only, this makes all of the conversation so.

        Raises:
            InvalidName: the state's id is empty or too long.
            TypeError: `state` is none, or holds what JSON has not.
            ValueError: it holds NaN, an infinity or a lone surrogate.
            Conflict: others append all the time.
            NotSupported: what is new is more than one append of the store takes; nothing was written.
        """
        if not isinstance(state, ConversationState):
            raise TypeError(f"what is saved is a ConversationState, not {type(state).__name__}")
        _ids.check_id(state.id)
        history = [message_json(message) for message in state.messages]
        summed = [summary_json(summary) for summary in state.summaries]
        metadata = encoded(state.metadata)
        profile = encoded({name: getattr(state, name) for name in _NOBODY})
        log = self._log(state.id)

        def decide(known: State | None) -> Change:
            keep = _shared(known.messages if known else [], history)
            keep_summaries = _shared(known.summaries if known else [], summed)
            return Saved(
                profile,
                metadata,
                keep,
                raw_list(history[keep:]),
                keep_summaries,
                raw_list(summed[keep_summaries:]),
            )

        advice = "add the messages in parts with append_messages, then save; to replace a history, delete it before"
        with self._use(log) as kept, _small_enough(state.id, advice):
            kept.change(decide, count=None)
        if self.store.capabilities.flushes and not self.store.capabilities.durable:
            self.store.flush(log)

    def fork(self, source: str, target: str, *, overwrite: bool = True) -> None:
        """Make `target` a conversation equal to `source`, its lists too; each goes on alone from there.

        A new target is made by one copy in the store, and one record that says so. One that is there already is
        replaced whole, by one record. A fork onto itself changes nothing.

        Args:
            source: the conversation to copy.
            target: the new one's id.
            overwrite: whether a target that is there already is replaced.

        Raises:
            InvalidName: an id is empty or too long.
            NotFound: there is no `source`; no target was made.
            Exists: there is a `target` already, and it is not to be overwritten.
            NotSupported: the target is there already, and what replaces it is more than one append of the store takes;
                nothing was written.
        """
        log, new = self._log(source), self._log(target)
        with self._use(log) as known:
            there(known.refresh(), source, log)
            if log == new:
                if not overwrite:
                    raise Exists("a conversation cannot be forked onto itself: take another id", id=target, log=new)
                return
            try:
                copied, number = known.copy(new)
            except NotFound:
                there(None, source, log)
            except Exists:
                copied = None
        if copied is None:
            self._replace(source, target, overwrite=overwrite)
            return
        record = RecordLog(self.store, new)
        record.resume(copied, number)
        # Somebody may have gone on with it or deleted it by now. That says the same: it was not left alone for long.
        with suppress(Conflict, NotFound):
            record.append(kind_of(Forked), encode(Forked(source)), expect=number, type=MEDIA_TYPE)

    def _replace(self, source: str, target: str, *, overwrite: bool) -> None:
        """Replace a whole conversation by what another one is now."""
        log = self._log(source)
        with self._use(log) as known:
            state = there(known.refresh(None), source, log)
            whole = Saved(
                profile=raw_dict(state.profile),
                metadata=raw_dict(state.metadata),
                messages=raw_list(state.messages),
                summaries=raw_list(state.summaries),
                lists={name: list(items) for name, items in state.lists.items()},
                created=state.created,
            )

        def decide(old: State | None) -> Change:
            if old is not None and not overwrite:
                raise Exists("there is such a conversation already: overwrite it, or take another id", id=target)
            return whole

        with self._use(self._log(target)) as kept, _small_enough(target, "delete the target, then fork"):
            kept.change(decide)

    def delete(self, id: str, *, missing_ok: bool = True) -> None:  # noqa: A002
        """Remove a conversation with all that belongs to it.

        Args:
            id: the conversation.
            missing_ok: whether it is in order that there is none.

        Raises:
            InvalidName: `id` is empty or too long.
            NotFound: there is no such conversation, and that is not in order.
            NotSupported: the store cannot delete.
        """
        log = self._log(id)
        with self._use(log) as known:
            try:
                self.store.delete(log)
                self._forget_markers(log)
            except NotFound as error:
                if not missing_ok:
                    raise NotFound("there is no such conversation", id=id, log=log) from error
            finally:
                known.forget()

    def list(self, options: ListOptions | None = None, **fields: Any) -> list[str]:
        """Return the ids of conversations: filtered, then sorted, then a page of them.

        Args:
            options: what to show; by default the first 100 by id.
            fields: the same by name, as ``user_id="u"``, instead of `options`.

        Raises:
            ValueError: a limit or offset is below zero, or an order or a name is unknown.
        """
        if options is None:
            options = ListOptions(**fields)
        elif fields:
            raise TypeError("give the options, or their fields, not both")
        self._check_open()
        return _brief.choose(((id_, brief) for id_, brief, _ in self._briefs()), options)

    def rebuild(self) -> Iterator[tuple[str, StateStoreError | None]]:
        """Yield each conversation as soon as what the catalog says of it was made anew, from its first record on.

        `list` and `sweep` notice by themselves what has changed, and a file that is lost or damaged: this is for
        whoever doubts what they say. The work is done as the conversations are taken.

        Yields:
            The id, and what is damaged in it; None where nothing is.
        """
        self._check_open()
        return ((id_, row.error) for id_, _, row in self._briefs(anew=True))

    def sweep(
        self, ttl: timedelta | float, *, dry_run: bool = True, now: datetime | None = None
    ) -> Iterator[tuple[str, datetime]]:
        """Yield the conversations that nobody has written for longer than `ttl`, and remove them.

        Any write counts; reading does not. A conversation that is written while this goes on stays.

        Args:
            ttl: how long, in seconds or as a timedelta; 0 and below keeps all.
            dry_run: whether they are only named.
            now: the time to count from; by default this machine's.

        Yields:
            The id, and when it was last written.
        """
        self._check_open()
        span = ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)
        limit = (now or datetime.now(UTC)) - span
        return self._sweep(limit, dry_run=dry_run) if span > timedelta(0) else iter(())

    def _sweep(self, limit: datetime, *, dry_run: bool) -> Iterator[tuple[str, datetime]]:
        for id_, brief, row in self._briefs():
            updated = brief.updated_at()
            if row.error or row.tail is None or updated >= limit:
                continue
            if not dry_run:
                try:
                    self.store.delete(self._log(id_), at=row.tail)
                except (Conflict, NotFound):
                    continue
                self._forget_markers(self._log(id_))
            yield id_, updated

    def _forget_markers(self, log: str) -> None:
        """Remove what operators have said of a conversation that is gone; nobody has where the name is too long."""
        with suppress(NotFound, InvalidName):
            self.store.delete(companion(log))

    def _briefs(self, *, anew: bool = False) -> Iterator[tuple[str, Brief, Row[Brief]]]:
        """Yield all conversations, in no order that means anything; one that is damaged says nothing."""
        catalog, prefix = self._catalog(), f"{self.prefix}/"
        for row in catalog.rebuild(prefix) if anew else catalog.refresh(prefix):
            id_ = _ids.unquote(row.log[len(self.prefix) + 1 :])
            if id_ is None:
                continue
            if row.error is not None and not isinstance(row.error, Corrupt):
                raise row.error
            brief = row.value if row.value is not None else Brief(created=_DAMAGED)
            if brief.created:  # what has no whole record is no conversation
                yield id_, brief, row

    def _catalog(self) -> Catalog[Brief]:
        with self._making:
            if self._kept is None:
                self._kept = Catalog(self.store, BriefFold(), path=self._path)
            return self._kept


@contextmanager
def _small_enough(id_: str, advice: str) -> Iterator[None]:
    """Say what to do where a change is larger than one append of the store."""
    try:
        yield
    except NotSupported as error:
        raise NotSupported(f"too large to be written at once: {advice}", **error.facts, id=id_) from error


def _shared(stored: list[bytes], given: list[bytes]) -> int:
    """Return how many of the first ones are the same."""
    pairs = enumerate(zip(stored, given, strict=False))
    return next((place for place, (old, new) in pairs if not same(old, new)), min(len(stored), len(given)))
