"""The root: its settings, whether its storage can be trusted, and who reads and writes there."""

from __future__ import annotations

from dataclasses import replace

from statestore.errors import PluginError, Unavailable
from statestore_fsspec._engine import Engine
from statestore_fsspec._finding import Finder
from statestore_fsspec._layout import SETTINGS
from statestore_fsspec._probe import check_condition, probe
from statestore_fsspec._settings import Settings
from statestore_fsspec._steps import Outcome
from statestore_fsspec._writing import Writer

__all__ = ["Root"]

_TRIES = 6


class Root:
    """One place on a storage. Nothing is asked of it before it is needed, and then once.

    Args:
        engine: what sends requests.
        settings: what the root is made with, if it is made here.
        insist: names of settings that the root must have as they are given.
        probes: whether the storage is tried before the first write.
    """

    writing: Writer
    """What writes, and remembers tails; `writer` gives it to those who are about to write."""

    def __init__(self, engine: Engine, settings: Settings, insist: tuple[str, ...], probes: bool) -> None:
        self.engine = engine
        self.settings = settings
        self._insist = insist
        self._probes = probes
        self._held: bytes | None = None  # the settings as they lie there
        self._trusted = not probes
        self.writing = Writer(Finder(settings.grace))

    def finder(self) -> Finder:
        """Return what finds logs."""
        if self._held is None:
            self._learn()
        return self.writing.finder

    def writer(self) -> Writer:
        """Return what writes, once the storage has shown that it keeps the promise of exclusive creation.

        Raises:
            Unavailable: the storage fails, or does not keep it.
        """
        if self._held is None and not self._learn():
            self._found()
        if not self._trusted:
            assert self._held is not None
            check_condition(self.engine.drive, SETTINGS, self._held)
            self._trusted = True
        return self.writing

    def _learn(self) -> bool:
        """Look for the settings; return whether they are there."""
        (held,) = self.engine.each(self.engine.drive.fetch, [(SETTINGS,)])
        if held is None:
            return False
        settings = Settings.parse(held)
        for name in self._insist:
            given, found = getattr(self.settings, name), getattr(settings, name)
            if given != found:
                raise PluginError(
                    "the root was made with another setting, which all its clients share: leave the option out",
                    option=name,
                    given=given,
                    found=found,
                )
        self.writing = Writer(Finder(settings.grace))
        self.settings, self._held = settings, held
        return True

    def _found(self) -> None:
        """Make the root: try the storage, then write the settings, unless somebody else does."""
        drive = self.engine.drive
        settings = replace(self.settings, sorted=probe(self.engine)) if self._probes else self.settings
        for _ in range(_TRIES):
            outcome, failure = drive.create(SETTINGS, settings.spell())
            if self._learn():
                self._trusted = self._trusted or outcome is Outcome.CREATED
                return
        raise Unavailable("the storage does not take the root's settings", retry=True, object=SETTINGS) from failure
