"""The requests that the guides tell are those that storages get; tests/s3/test_requests.py counts all calls on S3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from statestore import NEW, open_store
from tests.buckets.places import PLACES, Place, SftpPlace
from tests.faultproxy import FaultProxy
from tests.guides.guide import Guide
from tests.servers import Sftp

N = 12


@pytest.mark.parametrize("name", ["azure", "gcs"])
def test_n_appends_are_n_and_2_requests_and_so_is_reading_them(name: str, request: pytest.FixtureRequest) -> None:
    place: Place = PLACES[name](request.getfixturevalue(name))
    assert "N + 2" in Guide(name).sections["What it costs"]
    with place.proxy() as proxy, open_store(place.url, **{**place.options, **place.through(proxy)}) as store:
        assert isinstance(proxy, FaultProxy)

        def sent(call: Callable[[], Any]) -> int:
            proxy.clear()
            call()
            return len(proxy.requests)

        store.append("warm", b"x", at=NEW)
        tails = [NEW]
        costs = [sent(lambda: tails.append(store.append("a", b"data", at=tails[-1]))) for _ in range(N)]
        assert costs == [3] + [1] * (N - 1)
        assert sent(lambda: store.read("a")) == 2 + N


def test_sftp_a_small_object_is_created_by_as_many_messages_as_the_guide_says(
    sftp: Sftp, monkeypatch: pytest.MonkeyPatch
) -> None:
    import paramiko

    place = SftpPlace(sftp)
    with open_store(place.url, **place.options) as store:
        tail = store.append("a", b"data", at=NEW)
        messages = []
        send = paramiko.SFTPClient._send_packet

        def count(self: Any, kind: int, packet: Any) -> Any:
            messages.append(kind)
            return send(self, kind, packet)

        monkeypatch.setattr(paramiko.SFTPClient, "_send_packet", count)
        store.append("a", b"more", at=tail)
        monkeypatch.undo()
    assert f"created by {len(messages)} (" in Guide("sftp").text
