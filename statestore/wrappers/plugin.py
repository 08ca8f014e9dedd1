"""Tell statestore about the wrappers: the module that the entry point names."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ByteSize, ConfigDict, Field, SecretStr, field_validator, model_validator

from statestore.caches import cache_directory
from statestore.errors import PluginError
from statestore.names import check, check_prefix
from statestore.plugins import Wrapping, hookimpl
from statestore.store import Store

__all__ = [
    "CachedOptions",
    "EncryptedOptions",
    "InstrumentedOptions",
    "PrefixedOptions",
    "ReadOnlyOptions",
    "statestore_wrappers",
]


class CachedOptions(BaseModel):
    """Where a cache keeps what it has read, and how much of it."""

    model_config = ConfigDict(extra="forbid")

    directory: Path | None = None
    """By default ``statestore`` in the user's directory of caches."""
    limit: ByteSize = Field(default=ByteSize(1 << 30), ge=1)
    """The most bytes, or a text such as ``10GiB``."""

    @field_validator("directory")
    @classmethod
    def _is_whole(cls, directory: Path | None) -> Path | None:
        if directory is not None and directory.parts[:1] and directory.parts[0].startswith("~"):
            raise ValueError("~ is not expanded: write the whole path")
        return directory


class EncryptedOptions(BaseModel):
    """The keys, or the file that has them: 32 bytes each, in base64. The first one seals, and all of them open."""

    model_config = ConfigDict(extra="forbid")

    keys: SecretStr | None = None
    """Separated by commas."""
    key_file: Path | None = None
    """A file with one key a line."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.keys is None) == (self.key_file is None):
            raise ValueError("give either keys or a key_file")
        return self


class ReadOnlyOptions(BaseModel):
    """A store that is only read has no options."""

    model_config = ConfigDict(extra="forbid")


class InstrumentedOptions(BaseModel):
    """What the store is called in spans and metrics."""

    model_config = ConfigDict(extra="forbid")

    namespace: str | None = None
    """By default the URL, without user, password and query."""


class PrefixedOptions(BaseModel):
    """Below which prefix the logs lie."""

    model_config = ConfigDict(extra="forbid")

    prefix: str
    """One or more segments of a log's name, such as ``tenants/acme``."""

    @field_validator("prefix")
    @classmethod
    def _is_name(cls, prefix: str) -> str:
        return check_prefix(f"{check(prefix)}/").removesuffix("/")


def _cached(store: Store, options: CachedOptions, origin: str) -> Store:
    from statestore.wrappers.cached import Cached

    return Cached(store, options.directory or cache_directory(), origin=origin, limit=options.limit)


def _read_only(store: Store, options: ReadOnlyOptions, origin: str) -> Store:
    from statestore.wrappers.readonly import ReadOnly

    return ReadOnly(store)


def _encrypted(store: Store, options: EncryptedOptions, origin: str) -> Store:
    try:
        from statestore.wrappers.encrypted import Encrypted
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise PluginError(
            "this wrapper needs a package that is not installed: pip install 'statestore[crypto]'",
            wrapper="encrypted",
            missing="cryptography",
        ) from error
    try:
        if options.keys is not None:
            words = options.keys.get_secret_value().split(",")
        else:
            assert options.key_file is not None
            words = options.key_file.read_bytes().decode("ascii").split()
        keys = [b64decode(word.strip(), validate=True) for word in words]
        return Encrypted(store, keys)
    except ValueError:  # its text may hold what was given
        pass
    except OSError as error:
        raise PluginError(
            f"the file of the keys cannot be read: {(error.strerror or 'it failed').lower()}",
            wrapper="encrypted",
            option="encrypted_key_file",
        ) from error
    raise PluginError(
        "a key is 32 random bytes in base64, such as `openssl rand -base64 32` prints",
        wrapper="encrypted",
        option="encrypted_keys" if options.keys is not None else "encrypted_key_file",
    )


def _instrumented(store: Store, options: InstrumentedOptions, origin: str) -> Store:
    from statestore.wrappers.instrumented import Instrumented

    return Instrumented(store, namespace=origin if options.namespace is None else options.namespace)


def _prefixed(store: Store, options: PrefixedOptions, origin: str) -> Store:
    from statestore.wrappers.prefixed import Prefixed

    return Prefixed(store, options.prefix)


@hookimpl
def statestore_wrappers() -> list[Wrapping]:
    """Offer the wrappers that come with statestore."""
    return [
        Wrapping(
            name="cached",
            options=CachedOptions,
            wrap=_cached,
            summary="keeps what was read in a local directory, so that known logs are not fetched again",
        ),
        Wrapping(
            name="encrypted",
            options=EncryptedOptions,
            wrap=_encrypted,
            summary="seals the bodies of records with AES-GCM; headers stay readable",
        ),
        Wrapping(
            name="instrumented",
            options=InstrumentedOptions,
            wrap=_instrumented,
            summary="tells OpenTelemetry of every call, where that is installed",
        ),
        Wrapping(
            name="prefixed",
            options=PrefixedOptions,
            wrap=_prefixed,
            summary="the logs below a prefix of another store's names, as a store of their own",
        ),
        Wrapping(
            name="readonly",
            options=ReadOnlyOptions,
            wrap=_read_only,
            summary="refuses whatever would change a log or the storage",
        ),
    ]
