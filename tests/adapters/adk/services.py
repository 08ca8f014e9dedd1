"""google-adk's session services: ours on two stores, and those that it comes with."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.genai import types

from statestore.adapters.adk import StateStoreSessionService
from statestore_local import LocalStore
from statestore_memory import MemoryStore

APP, USER = "app", "alice"


def on_memory(directory: Path, name: str = "") -> StateStoreSessionService:
    return StateStoreSessionService(
        MemoryStore(name or uuid.uuid4().hex), catalog=directory / f"{uuid.uuid4().hex}.sqlite3", patience=0.05
    )


def on_local(directory: Path) -> StateStoreSessionService:
    store = LocalStore(directory / "store", sync="never")
    return StateStoreSessionService(store, catalog=directory / f"{uuid.uuid4().hex}.sqlite3", patience=0.05)


OURS: dict[str, Callable[[Path], BaseSessionService]] = {"memory": on_memory, "local": on_local}
ALL = {**OURS, "control": lambda directory: InMemorySessionService()}


def said(text: str, author: str = "agent", **more: object) -> Event:
    """An event of text; `delta` is the state that it sets."""
    delta = more.pop("delta", {})
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    actions = EventActions(state_delta=delta)
    return Event(invocation_id="turn", author=author, content=content, actions=actions, **more)


def texts(session: object) -> list[str]:
    return [event.content.parts[0].text for event in session.events]  # type: ignore[attr-defined]
