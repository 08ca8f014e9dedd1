"""The proxy for streams does what its faults say, seen by a plain socket before a server that shouts back."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.servers import eventually
from tests.tcpproxy import Fault, TcpProxy


@dataclass
class Shouter:
    """A server that keeps what it is sent, and answers each piece with it in capitals."""

    listener: socket.socket
    heard: list[bytes] = field(default_factory=list)

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,)).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            while piece := connection.recv(1000):
                self.heard.append(piece)
                connection.sendall(piece.upper())


@pytest.fixture
def server() -> Iterator[Shouter]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Shouter(listener)
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.fixture
def proxy(server: Shouter) -> Iterator[TcpProxy]:
    with TcpProxy(f"tcp://127.0.0.1:{server.listener.getsockname()[1]}") as proxy:
        yield proxy


def dial(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=60)


def ask(client: socket.socket, piece: bytes) -> bytes:
    client.sendall(piece)
    return client.recv(1000)


def hear(client: socket.socket, got: bytearray) -> None:
    while piece := client.recv(1000):
        got += piece


def test_what_is_not_harmed_passes_both_ways(server: Shouter, proxy: TcpProxy) -> None:
    with dial(proxy) as client:
        assert [ask(client, piece) for piece in (b"one", b"two")] == [b"ONE", b"TWO"]
    assert server.heard == [b"one", b"two"]
    assert [request.sent for request in proxy.requests] == [3, 3]


@pytest.mark.parametrize(
    ("fault", "heard"),
    [(Fault.RESET, [b"one"]), (Fault.REPLY_LOST, [b"one", b"two"]), (Fault.LATE, [b"one"])],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_connection_that_is_reset(server: Shouter, proxy: TcpProxy, fault: Fault, heard: list[bytes]) -> None:
    proxy.inject(fault, nth=2)
    with dial(proxy) as client:
        assert ask(client, b"one") == b"ONE"
        with pytest.raises(ConnectionResetError):
            ask(client, b"two")
    assert server.heard == heard


def test_a_late_piece_outlives_its_connection(server: Shouter, proxy: TcpProxy) -> None:
    proxy.inject(Fault.LATE)
    with dial(proxy) as client, pytest.raises(ConnectionResetError):
        ask(client, b"late")
    with dial(proxy) as client:
        assert ask(client, b"in time") == b"IN TIME"
    assert [request.sent for request in proxy.release()] == [4]
    assert server.heard == [b"in time", b"late"]


def test_a_stalled_piece_is_answered_when_it_is_released(server: Shouter, proxy: TcpProxy) -> None:
    proxy.inject(Fault.STALLED)
    with dial(proxy) as client:
        client.sendall(b"stalled")
        proxy.wait_held()
        assert server.heard == []
        proxy.release()
        assert client.recv(1000) == b"STALLED"


def test_half_an_answer(server: Shouter, proxy: TcpProxy) -> None:
    proxy.inject(Fault.TRUNCATED)
    with dial(proxy) as client:
        client.sendall(b"whole")
        got = bytearray()
        with pytest.raises(ConnectionResetError):
            hear(client, got)
    assert b"WHOLE".startswith(got)
    assert len(got) <= 2
    assert server.heard == [b"whole"]


@pytest.mark.parametrize(
    ("fault", "heard"), [(Fault.HANG_BEFORE, []), (Fault.HANG_AFTER, [b"one"])], ids=["before", "after"]
)
def test_no_answer(server: Shouter, proxy: TcpProxy, fault: Fault, heard: list[bytes]) -> None:
    proxy.inject(fault)
    with dial(proxy) as client:
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            ask(client, b"one")
    eventually(lambda: server.heard == heard)


def test_a_process_that_serves_is_killed() -> None:
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True);"
        "c, _ = s.accept(); s.close(); c.recv(1000); c.sendall(b'ready'); c.recv(1000); c.recv(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout
        port = int(child.stdout.readline())
        with TcpProxy(f"tcp://127.0.0.1:{port}") as proxy, dial(proxy) as client:
            assert ask(client, b"hello") == b"ready"
            proxy.inject(Fault.KILLED)
            assert ask(client, b"die") == b""
        assert child.wait(60) == -signal.SIGKILL


def test_whoever_waits_for_other_connections_is_not_killed() -> None:
    """In a process of its own, where nothing else waits."""
    code = """
import os, socket
from tests.tcpproxy import processes
with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
    served, address = listener.accept()
    with served:
        assert client.getsockname() == address
        assert processes(*address) == []
        listener.close()
        assert processes(*address) == [os.getpid()]
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])


def test_a_stream_has_no_requests_to_be_doubled(proxy: TcpProxy) -> None:
    with pytest.raises(ValueError, match="DOUBLED"):
        proxy.inject(Fault.DOUBLED)
