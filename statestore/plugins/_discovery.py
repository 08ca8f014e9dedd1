"""Discovery: every entry point loaded by itself, so that no plugin can stop another."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import pluggy

from statestore.errors import PluginError
from statestore.plugins import hookspecs
from statestore.plugins._backend import Backend
from statestore.plugins._wrapping import Wrapping

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["DISABLE", "GROUP", "Plugin", "discover"]

Offer = TypeVar("Offer", Backend, Wrapping)

GROUP: Final = "statestore"
"""The entry-point group."""

DISABLE: Final = "STATESTORE_PLUGINS_DISABLE"
"""The environment variable that switches plugins off: their names, or ``distribution:name``, between commas."""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What discovery found at one entry point.

    Attributes:
        name: the entry point's name.
        distribution: the distribution that it belongs to.
        version: that distribution's version.
        backends: the backends that it offers; none where it failed or is disabled.
        wrappers: the wrappers that it offers, likewise.
        error: the exception that it failed with, else None.
        disabled: whether ``STATESTORE_PLUGINS_DISABLE`` names it; it was not loaded.
        contested: those of its schemes, and names of backends and wrappers, that another plugin claims too. They cannot
            be opened until one of the two is disabled.
    """

    name: str
    distribution: str
    version: str
    backends: tuple[Backend, ...] = ()
    wrappers: tuple[Wrapping, ...] = ()
    error: BaseException | None = None
    disabled: bool = False
    contested: tuple[str, ...] = ()

    @property
    def switch(self) -> str:
        """The word for this plugin alone in ``STATESTORE_PLUGINS_DISABLE``."""
        return f"{self.distribution}:{self.name}"


class _Cache:
    """What was found last, and the setting of DISABLE that it was found with."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.busy = False
        self.setting: str | None = None
        self.plugins: tuple[Plugin, ...] | None = None


_cache = _Cache()


def _forget() -> None:
    # Another thread of the parent may have been at it: in the child nobody would ever let go of the lock.
    global _cache
    _cache = _Cache()


os.register_at_fork(after_in_child=_forget)


def discover(*, refresh: bool = False) -> tuple[Plugin, ...]:
    """Return every plugin that is installed, working or not, sorted by distribution and name.

    The answer is remembered until ``STATESTORE_PLUGINS_DISABLE`` changes.

    Args:
        refresh: look again, at what was installed meanwhile.

    Raises:
        PluginError: a plugin called this while it was being loaded.
    """
    cache = _cache
    with cache.lock:
        if cache.busy:
            raise PluginError("a plugin must not look for plugins or open a store while it is being loaded")
        setting = os.environ.get(DISABLE, "")
        if cache.plugins is None or refresh or setting != cache.setting:
            cache.busy = True
            try:
                cache.plugins = _find({word.strip() for word in setting.split(",")})
                cache.setting = setting
            finally:
                cache.busy = False
        return cache.plugins


def _find(disabled: set[str]) -> tuple[Plugin, ...]:
    from importlib.metadata import entry_points

    damaged: list[Plugin] = []
    try:
        points = list(entry_points(group=GROUP))
    except Exception:
        points, damaged = _points_one_by_one()
    found = sorted([*damaged, *(_look(point, disabled) for point in points)], key=lambda plugin: plugin.switch)
    claims = Counter(claim for plugin in found for claim in _claims(plugin))
    return tuple(
        replace(plugin, contested=tuple(sorted(claim for claim in _claims(plugin) if claims[claim] > 1)))
        for plugin in found
    )


def _points_one_by_one() -> tuple[list[EntryPoint], list[Plugin]]:
    """Return our entry points, and the distributions whose files cannot be read: one of them stops the common way."""
    from importlib.metadata import distributions

    points: list[EntryPoint] = []
    damaged: list[Plugin] = []
    seen: set[str] = set()
    for distribution in distributions():
        name = "unknown"
        try:
            name = distribution.name or name
            # Of two copies the first on the path is the one that is imported.
            if (key := re.sub(r"[-_.]+", "-", name).lower()) not in seen:
                seen.add(key)
                points += distribution.entry_points.select(group=GROUP)
        except Exception as error:
            damaged.append(Plugin(name="entry_points.txt", distribution=name, version="unknown", error=error))
    return points, damaged


def _claims(plugin: Plugin) -> list[str]:
    """Return what only one plugin may have. Variables begin with the names of backends and of wrappers alike."""
    schemes = [f"{scheme}://" for backend in plugin.backends for scheme in backend.schemes]
    return [backend.name for backend in plugin.backends] + [wrapper.name for wrapper in plugin.wrappers] + schemes


def _look(point: EntryPoint, disabled: set[str]) -> Plugin:
    distribution = version = "unknown"
    try:
        if point.dist is not None:
            distribution, version = point.dist.name or distribution, point.dist.version or version
        plugin = Plugin(name=point.name, distribution=distribution, version=version)
        if not disabled.isdisjoint((plugin.name, plugin.switch)):
            return replace(plugin, disabled=True)
        return _load(point, plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that calls sys.exit stops nothing else either
        return Plugin(name=point.name, distribution=distribution, version=version, error=error)


def _load(point: EntryPoint, plugin: Plugin) -> Plugin:
    """Import the plugin, check its hooks, and ask it for what it offers."""
    # A manager for each plugin: an error of one is never seen by another.
    manager = pluggy.PluginManager("statestore")
    manager.add_hookspecs(hookspecs)
    module = point.load()
    manager.register(module, name=point.name)
    manager.check_pending()
    if not manager.get_hookcallers(module):
        raise PluginError(
            "the plugin has no hook: mark its function statestore_backends or statestore_wrappers with hookimpl",
            plugin=point.name,
        )
    backends = _ask(manager.hook.statestore_backends, Backend, point.name)
    wrappers = _ask(manager.hook.statestore_wrappers, Wrapping, point.name)
    loaded = replace(plugin, backends=backends, wrappers=wrappers)
    if twice := [claim for claim, times in Counter(_claims(loaded)).items() if times > 1]:
        raise PluginError(
            "the plugin offers the same name or scheme twice", plugin=point.name, twice=twice[0].removesuffix("://")
        )
    return loaded


def _ask(hook: pluggy.HookCaller, kind: type[Offer], plugin: str) -> tuple[Offer, ...]:
    """Return what a hook answers; nothing where the plugin has it not."""
    if not hook.get_hookimpls():
        return ()
    answers = hook()
    offers = answers[0] if answers else None
    if not isinstance(offers, list) or not all(isinstance(offer, kind) for offer in offers):
        raise PluginError(f"{hook.name} returns a list of {kind.__name__}", plugin=plugin, returned=repr(offers)[:200])
    return tuple(offers)
