"""The fault proxy does what its faults say, seen by a client that never sends twice and by looking past the proxy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faultproxy import Fault, FaultProxy
from tests.servers import Rgw, eventually

pytest.importorskip("botocore", reason="botocore is not installed: pip install s3fs")
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ReadTimeoutError,
    ResponseStreamingError,
)


@dataclass
class Way:
    """A bucket, and the way to it through a proxy."""

    server: Rgw
    proxy: FaultProxy
    bucket: str

    def client(self, **config: Any) -> Any:
        return self.server.through(self.proxy).client(**config)

    def put(self, key: str, body: bytes = b"new", client: Any = None, **more: Any) -> None:
        (client or self.client()).put_object(Bucket=self.bucket, Key=key, Body=body, **more)

    def stored(self, key: str) -> bytes | None:
        """Return the object that the server has, looking past the proxy."""
        client = self.server.client()
        try:
            return bytes(client.get_object(Bucket=self.bucket, Key=key)["Body"].read())
        except client.exceptions.NoSuchKey:
            return None


@pytest.fixture
def way(rgw: Rgw) -> Iterator[Way]:
    with FaultProxy(rgw.endpoint, secret_key=rgw.secret_key) as proxy:
        yield Way(rgw, proxy, rgw.new_bucket())


def code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


def test_requests_pass_and_are_told_apart(way: Way) -> None:
    client = way.client()
    way.put("k", b"0123456789", client=client, IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        way.put("k", b"other", client=client, IfNoneMatch="*")
    assert client.get_object(Bucket=way.bucket, Key="k", Range="bytes=2-4")["Body"].read() == b"234"
    assert client.head_object(Bucket=way.bucket, Key="k")["ContentLength"] == 10
    client.delete_object(Bucket=way.bucket, Key="k")
    seen = [(r.method, r.target, r.condition, r.range, r.sent, r.status, r.answers) for r in way.proxy.requests]
    key = f"/{way.bucket}/k"
    assert seen == [
        ("PUT", key, "if-none-match: *", "", 10, 200, [200]),
        ("PUT", key, "if-none-match: *", "", 5, 412, [412]),
        ("GET", key, "", "bytes=2-4", 0, 206, [206]),
        ("HEAD", key, "", "", 0, 200, [200]),
        ("DELETE", key, "", "", 0, 204, [204]),
    ]
    way.proxy.clear()
    client.list_objects_v2(Bucket=way.bucket)
    assert [(r.method, r.target) for r in way.proxy.requests] == [
        ("GET", f"/{way.bucket}?list-type=2&encoding-type=url")
    ]


def test_a_client_keeps_its_connection(way: Way) -> None:
    client = way.client()
    for n in range(20):
        way.put(f"k{n}", client=client)
    assert (len(way.proxy.requests), way.proxy.connections) == (20, 1)


def test_a_connection_is_kept_after_an_injected_error(way: Way) -> None:
    client = way.client()
    way.proxy.inject(Fault.SLOW_DOWN)
    with pytest.raises(ClientError, match="SlowDown"):
        way.put("k", client=client)
    way.put("k", client=client)
    assert way.proxy.connections == 1


@pytest.mark.parametrize(
    ("fault", "status", "name"),
    [
        (Fault.SLOW_DOWN, 503, "SlowDown"),
        (Fault.CONFLICT, 409, "ConditionalRequestConflict"),
        (Fault.ERROR_BEFORE, 500, "InternalError"),
    ],
)
def test_an_error_without_effect(way: Way, fault: Fault, status: int, name: str) -> None:
    way.proxy.inject(fault)
    with pytest.raises(ClientError) as refused:
        way.put("k")
    assert (code(refused.value), refused.value.response["ResponseMetadata"]["HTTPStatusCode"]) == (name, status)
    assert way.stored("k") is None
    assert [(r.fault, r.status, r.answers) for r in way.proxy.requests] == [(fault, status, [])]


def test_an_error_after_the_effect(way: Way) -> None:
    way.proxy.inject(Fault.ERROR_AFTER)
    with pytest.raises(ClientError, match="InternalError"):
        way.put("k")
    assert way.stored("k") == b"new"
    assert [(r.status, r.answers) for r in way.proxy.requests] == [(500, [200])]


@pytest.mark.parametrize(("fault", "effect"), [(Fault.RESET, None), (Fault.REPLY_LOST, b"new")])
def test_a_reset_connection(way: Way, fault: Fault, effect: bytes | None) -> None:
    way.proxy.inject(fault)
    with pytest.raises(ConnectionClosedError):
        way.put("k")
    assert way.stored("k") == effect
    assert [(r.status, r.answers) for r in way.proxy.requests] == [(None, [200] if effect else [])]


@pytest.mark.parametrize(("fault", "effect"), [(Fault.HANG_BEFORE, None), (Fault.HANG_AFTER, b"new")])
def test_no_answer(way: Way, fault: Fault, effect: bytes | None) -> None:
    way.proxy.inject(fault)
    with pytest.raises(ReadTimeoutError):
        way.put("k", client=way.client(read_timeout=0.5))
    eventually(lambda: way.stored("k") == effect)
    assert [r.status for r in way.proxy.requests] == [None]


def test_half_a_body(way: Way) -> None:
    way.put("k", b"x" * 1000)
    way.proxy.inject(Fault.TRUNCATED, method="GET")
    answer = way.client().get_object(Bucket=way.bucket, Key="k")
    assert answer["ContentLength"] == 1000
    with pytest.raises(ResponseStreamingError, match="500 bytes read, 500 more expected"):
        answer["Body"].read()


def test_half_of_nothing_is_a_lost_reply(way: Way) -> None:
    way.proxy.inject(Fault.TRUNCATED)
    with pytest.raises(ConnectionClosedError):
        way.put("k")
    assert way.stored("k") == b"new"


def test_a_request_delivered_twice_is_answered_as_the_first_time(way: Way) -> None:
    way.proxy.inject(Fault.DOUBLED)
    way.put("k", IfNoneMatch="*")
    assert [(r.status, r.answers) for r in way.proxy.requests] == [(200, [200, 412])]


def test_a_request_delivered_twice_is_answered_as_the_second_time(way: Way) -> None:
    way.proxy.inject(Fault.DOUBLED_SECOND)
    with pytest.raises(ClientError, match="PreconditionFailed"):
        way.put("k", IfNoneMatch="*")
    assert way.stored("k") == b"new"
    assert [(r.status, r.answers) for r in way.proxy.requests] == [(412, [200, 412])]


def test_a_stalled_request_arrives_after_another_writer(way: Way) -> None:
    way.proxy.inject(Fault.STALLED)
    with ThreadPoolExecutor(1) as pool:
        stale = pool.submit(way.put, "k", b"stale")
        way.proxy.wait_held()
        way.put("k", b"newer")
        assert way.stored("k") == b"newer"
        assert [r.answers for r in way.proxy.release()] == [[200]]
        stale.result()
    assert way.stored("k") == b"stale"
    assert way.proxy.release() == []


def test_a_late_request_outlives_its_connection(way: Way) -> None:
    way.proxy.inject(Fault.LATE, times=2)
    for key in ("first", "second"):
        with pytest.raises(ConnectionClosedError):
            way.put(key, IfNoneMatch="*")
    way.put("second", b"other")
    assert way.stored("first") is None
    assert [(r.target, r.status, r.answers) for r in way.proxy.release()] == [
        (f"/{way.bucket}/first", None, [200]),
        (f"/{way.bucket}/second", None, [412]),
    ]
    assert (way.stored("first"), way.stored("second")) == (b"new", b"other")


def test_what_is_held_back_when_the_proxy_ends_is_never_delivered(rgw: Rgw) -> None:
    with FaultProxy(rgw.endpoint) as proxy:
        way = Way(rgw, proxy, rgw.new_bucket())
        proxy.inject(Fault.LATE)
        with suppress(ConnectionClosedError):
            way.put("k")
    assert way.stored("k") is None


def test_a_delayed_request_outlasts_an_impatient_client(way: Way) -> None:
    way.proxy.inject(Fault.DELAYED, times=2, delay=0.5)
    way.put("patient")
    with pytest.raises(ReadTimeoutError):
        way.put("impatient", client=way.client(read_timeout=0.1))
    eventually(lambda: way.stored("impatient") == b"new")


def test_a_server_that_ignores_conditions(way: Way) -> None:
    way.put("k k", b"old")
    way.proxy.inject(Fault.UNCONDITIONAL, times=None)
    way.put("k k", b"newer", IfNoneMatch="*")
    assert way.stored("k k") == b"newer"
    way.put("k k", b"newest", IfMatch='"0"')
    assert way.stored("k k") == b"newest"
    assert [r.condition for r in way.proxy.requests] == ["", "if-none-match: *", 'if-match: "0"']


def test_a_rule_chooses_by_method_key_and_number(way: Way) -> None:
    client = way.client()
    way.proxy.inject(Fault.SLOW_DOWN, method="PUT", target=r"/b\d$", nth=2, times=2)
    for key in ("a1", "b1", "b2", "b3", "b4"):
        with suppress(ClientError):
            way.put(key, client=client)
        with suppress(ClientError):
            client.get_object(Bucket=way.bucket, Key=key)["Body"].read()
    assert [r.target[-2:] for r in way.proxy.requests if r.fault] == ["b2", "b3"]
    assert {r.method for r in way.proxy.requests if r.fault} == {"PUT"}


def test_of_two_rules_the_first_that_strikes_counts(way: Way) -> None:
    way.proxy.inject(Fault.SLOW_DOWN)
    way.proxy.inject(Fault.CONFLICT, times=None)
    for name in ("SlowDown", "ConditionalRequestConflict", "ConditionalRequestConflict"):
        with pytest.raises(ClientError, match=name):
            way.put("k")
    way.proxy.heal()
    way.put("k")


def test_the_same_seed_strikes_the_same_requests(rgw: Rgw) -> None:
    bucket = rgw.new_bucket()

    def struck(seed: int) -> list[Fault | None]:
        with FaultProxy(rgw.endpoint, seed=seed) as proxy:
            way, client = Way(rgw, proxy, bucket), rgw.through(proxy).client()
            proxy.inject(Fault.SLOW_DOWN, probability=0.3, times=None)
            proxy.inject(Fault.REPLY_LOST, probability=0.3, times=10)
            for n in range(60):
                with suppress(ClientError, BotoCoreError):
                    way.put(f"k{n}", client=client)
            return [request.fault for request in proxy.requests]

    once, again, other = struck(1), struck(1), struck(2)
    assert once == again != other
    assert (len(once), once.count(Fault.REPLY_LOST)) == (60, 10)
    assert {None, Fault.SLOW_DOWN} < set(once)


def test_a_large_body_passes_unchanged(way: Way) -> None:
    body = bytes(range(256)) * (1 << 18)  # 64 MiB
    way.put("k", body)
    assert way.client().get_object(Bucket=way.bucket, Key="k")["Body"].read() == body
    assert way.proxy.requests[0].sent == len(body)


def raw(way: Way, key: str) -> tuple[socket.socket, str]:
    """Open a connection to the proxy, and return it with the path of a signed URL that puts an object."""
    url = way.client().generate_presigned_url("put_object", Params={"Bucket": way.bucket, "Key": key})
    host, port = way.proxy.endpoint.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60), url.removeprefix(way.proxy.endpoint)


def test_bodies_in_chunks_pass_byte_for_byte() -> None:
    sent = b"3;note=x\r\nnew\r\n5\r\n\r\nbody\r\n0\r\nchecksum: 1\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\n\r\n"
    got: list[bytes] = []

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as request:
            while request.readline() != b"\r\n":
                pass
            got.append(request.read(len(sent)))
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve)
        with FaultProxy(f"http://127.0.0.1:{listener.getsockname()[1]}") as proxy:
            port = int(proxy.endpoint.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
                client.sendall(b"PUT /k HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + sent)
                with client.makefile("rb") as answers:
                    assert answers.read(len(answer)) == answer
        served.result()
    assert got == [sent]


def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(way: Way) -> None:
    connection, path = raw(way, "k")
    with connection, connection.makefile("rb") as answers:
        head = f"PUT {path} HTTP/1.1\r\nHost: {way.proxy.endpoint.removeprefix('http://')}\r\n"
        connection.sendall(f"{head}Content-Length: 3\r\nExpect: 100-continue\r\n\r\n".encode())
        assert answers.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert answers.readline() == b"\r\n"
        connection.sendall(b"new")
        assert answers.readline().startswith(b"HTTP/1.1 200 ")
    assert way.stored("k") == b"new"


def test_a_request_that_was_sent_in_part_has_no_effect(way: Way) -> None:
    connection, path = raw(way, "k")
    with connection:
        head = f"PUT {path} HTTP/1.1\r\nHost: {way.proxy.endpoint.removeprefix('http://')}\r\n"
        connection.sendall(f"{head}Content-Length: 10\r\n\r\nhalf".encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    assert way.stored("k") is None
    assert way.proxy.requests == []


def test_a_server_that_is_away_is_a_connection_that_ends() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        server = Rgw("none", f"http://127.0.0.1:{nobody.getsockname()[1]}", "key", "secret")
        with FaultProxy(server.endpoint) as proxy, pytest.raises(ConnectionClosedError):
            server.through(proxy).client().list_buckets()
    assert [(r.status, r.answers) for r in proxy.requests] == [(None, [])]
