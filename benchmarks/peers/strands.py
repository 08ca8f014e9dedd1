"""The session managers of Strands Agents: an object a message, in a folder or in a bucket."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from benchmarks.peers.peer import Kind, Peer, Place, Threads, message

__all__ = ["KINDS"]

AGENT = "agent"


class Strands(Threads):
    """One manager's repository for all sessions, so that one client serves them; each has one agent."""

    def __init__(self, manager: Any) -> None:
        self._repository = manager
        self._counts: dict[str, int] = {}
        self._lock = Lock()

    def append(self, session: str, texts: Sequence[str]) -> None:
        from strands.types.session import SessionMessage

        with self._lock:
            if session not in self._counts:
                self._counts[session] = self._begin(session)
        for words in texts:
            said: Any = message(words) | {"content": [{"text": words}]}
            self._repository.create_message(session, AGENT, SessionMessage.from_message(said, self._counts[session]))
            self._counts[session] += 1

    def load(self, session: str) -> list[str]:
        return [each.message["content"][0]["text"] for each in self._repository.list_messages(session, AGENT)]

    def close(self) -> None:
        if (client := getattr(self._repository, "client", None)) is not None:
            client.close()

    def _begin(self, session: str) -> int:
        from strands.types.session import Session, SessionAgent, SessionType

        if self._repository.read_session(session) is not None:
            return len(self._repository.list_messages(session, AGENT))
        self._repository.create_session(Session(session, SessionType.AGENT))
        self._repository.create_agent(session, SessionAgent(AGENT, {}, {}))
        return 0


def _file(place: Place) -> Peer:
    from strands.session.file_session_manager import FileSessionManager

    return Strands(FileSessionManager("manager", storage_dir=str(place.folder)))


def _s3(place: Place) -> Peer:
    import boto3
    from botocore.config import Config
    from strands.session.s3_session_manager import S3SessionManager

    keys = boto3.Session(place.there.access_key, place.there.secret_key, region_name=place.there.region)
    config = Config(s3={"addressing_style": "path"}, max_pool_connections=32)
    where = {"endpoint_url": place.there.endpoint, "prefix": place.prefix}
    return Strands(S3SessionManager("manager", place.bucket, boto_session=keys, boto_client_config=config, **where))


_CANNOT = {
    "last": "messages are asked for from the beginning, and no call tells how many there are",
    "fork": "no call copies a session: each message would be appended again",
    "list": "no call lists the sessions",
}
_NEEDS = {"strands-agents": "strands"}

KINDS = [
    Kind("Strands FileSessionManager", "never", _file, needs=_NEEDS, cannot=_CANNOT, note="a file a message, renamed"),
    Kind(
        "Strands S3SessionManager",
        "bucket",
        _s3,
        needs=_NEEDS | {"boto3": "boto3"},
        cannot=_CANNOT,
        items=1000,
        note="an object a message",
    ),
]
