"""Sealed records: the header stays readable, the body is encrypted, and two members at the header's end say how.

A record is sealed by AES-256-GCM. The body keeps its length, and the header line gets two more members::

    {"n":1,"kind":"message",…,"len":5}  →  {"n":1,"kind":"message",…,"len":5,"key":"<key id>","seal":"<nonce and tag>"}

``docs/encryption.md`` is the normative description, and says why it is so. Needs the package ``cryptography``.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from statestore.errors import Corrupt, Unavailable

__all__ = ["GROWTH", "MOST", "Keyring", "Sealed", "key_id", "unseal_line"]

_KEY: Final = 32  # bytes of a key
_NONCE: Final = 12
_TAG: Final = 16
_ID: Final = 8  # bytes of a key's id, which is told as twice as many hexadecimal digits
_PURPOSE: Final = b"statestore sealed records 1"
_MEMBERS: Final = b',"key":"%s","seal":"%s"}'
_SEALED: Final = re.compile(rb',"key":"([0-9a-f]{16})","seal":"([0-9a-f]{56})"\}')
_PLACE: Final = struct.Struct(">QQ")

GROWTH: Final = len(_MEMBERS % (b"0" * 2 * _ID, b"0" * 2 * (_NONCE + _TAG))) - 1
"""How many bytes longer a sealed record is than the plain one, whatever it holds."""

MOST: Final = (1 << 31) - 1 - _TAG
"""The largest number of bytes in a body: the cipher takes no more at once."""


class Sealed(NamedTuple):
    """What the line of a sealed record says.

    Attributes:
        line: the plain header line.
        key: the id of the key.
        seal: the nonce and the tag.
    """

    line: bytes
    key: str
    seal: bytes


def unseal_line(line: bytes) -> Sealed | None:
    """Return what the header line of a sealed record says; None where it is not sealed."""
    match = _SEALED.fullmatch(line, len(line) - GROWTH - 1) if len(line) > GROWTH else None
    if match is None:
        return None
    return Sealed(line[: -GROWTH - 1] + b"}", match[1].decode(), bytes.fromhex(match[2].decode()))


class _Key:
    """What is derived of one key: one key for the cipher, one for nonces, and the id."""

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes):
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        if len(key) != _KEY:
            raise ValueError(f"a key has {_KEY} random bytes, and this one has {len(key)}")
        derived = HKDF(SHA256(), 2 * _KEY + _ID, salt=None, info=_PURPOSE).derive(key)
        self.cipher = AESGCM(derived[:_KEY])
        self.nonces = hmac.new(derived[_KEY : 2 * _KEY], digestmod=hashlib.sha256)
        self.id = derived[2 * _KEY :].hex()


def key_id(key: bytes) -> str:
    """Return the id of a key: 16 hexadecimal digits, which stand in the header of every record that it has sealed.

    Raises:
        TypeError: it is not bytes.
        ValueError: it has not 32 bytes.
    """
    return _Key(key).id


class Keyring:
    """The keys that open records; the first one seals them.

    Args:
        keys: 32 random bytes each, at least one.

    Raises:
        TypeError: one is not bytes.
        ValueError: there is none, or one has not 32 bytes.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        made = [_Key(key) for key in keys]
        if not made:
            raise ValueError("there is no key to seal with: give at least one")
        self._current = made[0]
        self._keys = {key.id: key for key in made}

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    @property
    def current(self) -> str:
        """The id of the key that seals."""
        return self._current.id

    def seal(self, line: bytes, body: bytes, *, offset: int, origin: bytes) -> tuple[bytes, bytes]:
        """Return a record's sealed bytes, and its seal. The same arguments give the same bytes.

        Args:
            line: the plain header line.
            body: the plain body.
            offset: where the plain record begins in its log.
            origin: the seal of the log's first record; empty for the first one.
        """
        key = self._current
        bound = _bound(line, offset, origin)
        # Two records share a nonce only if all of this is the same, or 96 bits of a keyed digest are.
        digest = key.nonces.copy()
        digest.update(bound)
        digest.update(body)
        nonce = digest.digest()[:_NONCE]
        sealed = key.cipher.encrypt(nonce, body, bound)
        seal = nonce + sealed[-_TAG:]
        members = _MEMBERS % (key.id.encode(), seal.hex().encode())
        return b"".join((line[:-1], members, b"\n", sealed[:-_TAG], b"\n")), seal

    def open(self, sealed: Sealed, body: bytes, *, offset: int, origin: bytes, log: str, record: int) -> bytes:
        """Return a record's plain bytes.

        Args:
            sealed: what its line says.
            body: the sealed body.
            offset: where the plain record begins in its log.
            origin: the seal of the log's first record; empty for the first one.
            log: the log's name, for errors.
            record: the record's number, for errors.

        Raises:
            Unavailable: no key has the record's key id.
            Corrupt: the record is not as it was sealed, or stood elsewhere.
        """
        facts: dict[str, Any] = {"log": log, "record": record, "offset": offset, "key": sealed.key}
        key = self._keys.get(sealed.key)
        if key is None:
            raise self.missing(**facts)
        bound = _bound(sealed.line, offset, origin)
        try:
            plain = key.cipher.decrypt(sealed.seal[:_NONCE], body + sealed.seal[_NONCE:], bound)
        except InvalidTag:
            raise Corrupt("this record is not what was sealed at this place: it was changed", **facts) from None
        return b"\n".join((sealed.line, plain, b""))

    def missing(self, **facts: Any) -> Unavailable:
        """Return the error for a record whose key is not here."""
        message = "the log is sealed with a key that is not here: give the key with this id"
        return Unavailable(message, retry=False, effect_unknown=False, **facts)


def _bound(line: bytes, offset: int, origin: bytes) -> bytes:
    """Return what a body is bound to: its header, its place, and the log that it was written to or forked from."""
    return b"".join((_PURPOSE, origin.ljust(_NONCE + _TAG, b"\0"), _PLACE.pack(offset, len(line)), line))
