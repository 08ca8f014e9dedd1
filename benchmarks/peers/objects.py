"""Raw puts to S3 by obstore: the floor of an append there. No session, no order, no check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.peer import Kind, Place, Threads, read, spell

__all__ = ["KINDS"]


class Objects(Threads):
    """An object a message."""

    def __init__(self, place: Place) -> None:
        from obstore.store import S3Store

        server = place.there
        self._counts: Counter[str] = Counter()
        self._store: Any = S3Store(
            place.bucket,
            prefix=place.prefix,
            endpoint=server.endpoint,
            region=server.region,
            access_key_id=server.access_key,
            secret_access_key=server.secret_key,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True},
        )

    def append(self, session: str, texts: Sequence[str]) -> None:
        for words in texts:
            self._store.put(f"{session}/{self._counts[session]:08}", spell(words), use_multipart=False)
            self._counts[session] += 1

    def load(self, session: str) -> list[str]:
        keys = sorted(row["path"] for page in self._store.list(f"{session}/") for row in page)
        return [read(bytes(self._store.get(key).bytes())) for key in keys]

    def close(self) -> None:
        """There is nothing to let go."""


_FLOOR = "a floor of appends alone: there are no sessions"

KINDS = [
    Kind(
        "obstore puts, S3",
        "bucket",
        Objects,
        needs={"obstore": "obstore"},
        cannot=dict.fromkeys(("load", "last", "fork", "list"), _FLOOR),
        items=1000,
        note="raw puts of the same bytes, by a client in Rust",
    )
]
