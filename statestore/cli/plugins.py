"""``plugins``: every backend and wrapper that is installed, and why one does not work."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from statestore.cli.screen import Screen, emit
from statestore.cli.targets import Json

if TYPE_CHECKING:
    from statestore.plugins import Backend, Plugin, Wrapping

__all__ = ["plugins"]

_SHARE = "it shares these with another plugin, and neither can open them until one is disabled: "


def plugins(
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 where a plugin does not work.")] = False,
    json: Json = False,
) -> None:
    """Show the backends and wrappers, and what they can do.

    Each with its schemes, its options and where it comes from; or why it does not work.
    The environment variable STATESTORE_PLUGINS_DISABLE switches plugins off, by the names that stand here.

    \b
    Examples:
      statestore plugins
      statestore plugins --json --strict
    """
    from statestore.plugins import discover

    found = discover()
    screen = Screen()
    for place, plugin in enumerate(found):
        if json:
            emit(_describe(plugin))
            continue
        if place:
            screen.put()
        _tell(screen, plugin)
    if not found and not json:
        screen.put("no plugins, and so no backends: install statestore again")
    if strict and (not found or any(plugin.error or plugin.contested for plugin in found)):
        raise typer.Exit(1)


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _describe(plugin: Plugin) -> dict[str, Any]:
    return {
        "plugin": plugin.name,
        "distribution": plugin.distribution,
        "version": plugin.version,
        "error": _why(plugin.error) if plugin.error else None,
        "disabled": plugin.disabled,
        "contested": list(plugin.contested),
        "backends": [
            {
                "name": backend.name,
                "schemes": list(backend.schemes),
                "summary": backend.summary,
                "options": list(backend.options.model_fields),
                "capabilities": asdict(backend.capabilities) if backend.capabilities else None,
            }
            for backend in plugin.backends
        ],
        "wrappers": [
            {"name": wrapper.name, "summary": wrapper.summary, "options": _options(wrapper)}
            for wrapper in plugin.wrappers
        ],
    }


def _tell(screen: Screen, plugin: Plugin) -> None:
    origin = f"{plugin.distribution} {plugin.version}"
    if plugin.error or plugin.disabled:
        state = ("failed to load", "bold red") if plugin.error else ("disabled", "yellow")
        screen.put((plugin.name, "bold"), "  ", state)
        screen.put(origin, lead=["  from     "])
        if plugin.error:
            screen.put(_why(plugin.error), lead=["  why      "])
    for backend in plugin.backends:
        _tell_backend(screen, backend, origin, plugin)
    for wrapper in plugin.wrappers:
        screen.put((wrapper.name, "bold"), "  ", (f"{wrapper.name}::", "cyan"))
        _tell_offer(screen, wrapper, origin, plugin, _options(wrapper))
    if plugin.contested:
        screen.put((_SHARE + ", ".join(plugin.contested), "red"), lead=["  "])


def _tell_backend(screen: Screen, backend: Backend, origin: str, plugin: Plugin) -> None:
    schemes = "  ".join(f"{scheme}://" for scheme in backend.schemes)
    screen.put((backend.name, "bold"), "  ", (schemes, "cyan"))
    _tell_offer(screen, backend, origin, plugin, list(backend.options.model_fields))
    if backend.capabilities is None:
        screen.put("depends on the storage: known when a store is open", lead=["  can      "])
        return
    flags = asdict(backend.capabilities)
    limit = flags.pop("max_append")
    can = [name for name, able in flags.items() if able]
    screen.put(", ".join(can) or "nothing beyond the four calls", lead=["  can      "])
    screen.put(", ".join(name for name in flags if name not in can) or "-", lead=["  cannot   "])
    if limit is not None:
        screen.put(f"{limit:,} bytes in one append", lead=["  limit    "])


def _tell_offer(screen: Screen, offer: Backend | Wrapping, origin: str, plugin: Plugin, options: list[str]) -> None:
    screen.put(offer.summary, lead=["  "])
    screen.put(origin + (f", plugin {plugin.name}" if plugin.name != offer.name else ""), lead=["  from     "])
    screen.put(", ".join(options) or "none", lead=["  options  "])


def _options(wrapper: Wrapping) -> list[str]:
    """Return the options as a caller spells them."""
    return [wrapper.prefix + option for option in wrapper.options.model_fields]
