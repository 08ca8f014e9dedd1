"""The surfaces of statestore for asyncio: stores, records, sessions, conversations and catalogs, awaited.

Every call is that of the same name in :mod:`statestore`, made by a thread of a bounded :class:`Pool`. A task that is
cancelled waits for its call to end, and learns what came of it from :func:`outcome`. The operator's surface,
:mod:`statestore.ops`, is asynchronous by itself.
"""

from __future__ import annotations

from statestore.aio._calls import Outcome, outcome
from statestore.aio._catalog import Catalog
from statestore.aio._conversations import Conversations
from statestore.aio._pool import SIZE, WAITERS, Pool
from statestore.aio._records import RecordLog
from statestore.aio._sessions import Session, Sessions
from statestore.aio._stores import Maintenance, Snapshot, Store, open_store

__all__ = [
    "Catalog",
    "Conversations",
    "Maintenance",
    "Outcome",
    "Pool",
    "RecordLog",
    "SIZE",
    "Session",
    "Sessions",
    "Snapshot",
    "Store",
    "WAITERS",
    "open_store",
    "outcome",
]
