"""Connections over SSH: time limits, known hosts, what a server offers, and writes whose errors are told."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import paramiko
from fsspec.implementations.sftp import SFTPFileSystem
from paramiko.message import Message
from paramiko.sftp import CMD_EXTENDED, CMD_INIT, CMD_VERSION, CMD_WRITE, int64

__all__ = ["CHUNK", "Client", "Files", "Stranger"]

CHUNK: Final = 32768
"""The bytes that every server takes, and gives, in one message."""


class Stranger(paramiko.SSHException):  # type: ignore[misc]
    """A server whose key is not known."""


class Lost(paramiko.SSHException):  # type: ignore[misc]
    """A connection that failed while the client was about to log in."""


class _Reject(paramiko.MissingHostKeyPolicy):  # type: ignore[misc]
    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
        raise Stranger(f"the key of {hostname} is not in the file of known hosts: {key.get_name()} {key.get_base64()}")


class Client(paramiko.SFTPClient):  # type: ignore[misc]
    """An SFTP client that knows what its server offers beyond the protocol."""

    offers: frozenset[str] = frozenset()

    def _send_version(self) -> int:
        hello = Message()
        hello.add_int(3)
        self._send_packet(CMD_INIT, hello)
        kind, data = self._read_packet()
        if kind != CMD_VERSION:
            raise paramiko.SFTPError("the server does not greet as the protocol says")
        told = Message(data)
        version = int(told.get_int())
        words = []
        while len(told.get_remainder()) >= struct.calcsize(">I"):
            words.append(told.get_text())
        self.offers = frozenset(words[::2])
        return version

    def write(self, handle: bytes, data: bytes) -> None:
        """Write all bytes of a file, each message without waiting for the answer to the one before."""
        answers = _Answers(self)
        for start in range(0, len(data), CHUNK):
            self._async_request(answers, CMD_WRITE, handle, int64(start), data[start : start + CHUNK])
        self._finish_responses(answers)

    def extended(self, *words: Any) -> None:
        """Send a request that is not of the protocol itself, and wait for the answer."""
        self._request(CMD_EXTENDED, *words)


class _Answers:
    """The answers to messages that were sent ahead; paramiko's own file forgets errors among them.

    The names are those by which paramiko calls.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._failure: Exception | None = None

    def _async_response(self, kind: int, message: Any, number: int) -> None:
        try:
            self._client._convert_status(message)
        except Exception as error:
            self._failure = self._failure or error

    def _check_exception(self) -> None:
        if self._failure is not None:
            raise self._failure


class Files(SFTPFileSystem):  # type: ignore[misc]
    """fsspec's file system, with time limits, and with the keys of servers looked up as ssh does."""

    def _connect(self) -> None:
        given = dict(self.ssh_kwargs)
        known, timeout = given.pop("known_hosts"), given["timeout"]
        self.client = paramiko.SSHClient()
        if known == "any":
            self.client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
        else:
            self.client.set_missing_host_key_policy(_Reject())
            with suppress(FileNotFoundError):
                self.client.load_system_host_keys(str(Path(known).expanduser()))
        try:
            self.client.connect(self.host, **given)
            self.ftp = Client.from_transport(self.client.get_transport())
            self.ftp.get_channel().settimeout(timeout)
        except BaseException as error:
            lost = isinstance(error, paramiko.AuthenticationException) and _unanswered(self.client, error)
            self.client.close()
            if lost:
                raise Lost("the connection failed before the server had said who may log in") from error
            raise


def _unanswered(client: Any, error: Exception) -> bool:
    """Say whether an error that paramiko calls one of authentication is none: nobody refused anything."""
    return not client.get_transport().is_active() or "timeout" in str(error)
