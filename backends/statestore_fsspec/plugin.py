"""The plugin that gives statestore its object-store backends, for URLs such as ``s3://bucket/agents``."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, Secret, SecretStr, field_validator

from statestore.errors import PluginError
from statestore.plugins import Backend, hookimpl
from statestore.store import Store
from statestore_fsspec._settings import CAPABILITIES, DEFAULT, Settings

__all__ = ["BucketOptions", "S3Options", "statestore_backends"]

_SHARED: Final = ("grace", "windows")


class BucketOptions(BaseModel):
    """What can be said about a store on any object storage."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    storage_options: Secret[dict[str, Any]] = Field(
        Secret({}), description="arguments for the fsspec file system; in a URL or variable as JSON"
    )
    timeout: float = Field(20.0, gt=0, description="seconds after which a request counts as unanswered")
    parallel: int = Field(16, ge=1, le=256, description="requests that one call may have under way at once")
    tries: int = Field(6, ge=1, description="how often a request that failed is sent")
    backoff: float = Field(0.1, ge=0, description="seconds before the second try; each later wait is twice as long")
    probe: bool = Field(True, description="try whether the storage creates exclusively, before the first write")
    grace: float | None = Field(
        None,
        ge=60,
        allow_inf_nan=False,
        description=f"seconds to keep what is superseded; fixed with the root, {DEFAULT.grace:.0f} there",
    )
    windows: tuple[int, ...] | None = Field(
        None, description="lengths of the windows of merges in bytes; fixed with the root"
    )

    @field_validator("storage_options", mode="before")
    @classmethod
    def _from_json(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    @field_validator("windows", mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return value.split(",") if isinstance(value, str) else value

    @field_validator("windows")
    @classmethod
    def _nested(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None:
            Settings(windows=value).check()
        return value

    def root(self) -> dict[str, Any]:
        """Return what the store takes of these options."""
        shared = {name: getattr(self, name) for name in _SHARED if getattr(self, name) is not None}
        return {
            "settings": Settings(**shared),
            "insist": tuple(shared),
            "probe": self.probe,
            "parallel": self.parallel,
            "tries": self.tries,
            "backoff": self.backoff,
        }


class S3Options(BucketOptions):
    """What can be said about a store on S3. Whatever is left out is found as by any AWS tool."""

    endpoint_url: str | None = Field(None, description="the server, where it is not Amazon's")
    region: str | None = Field(None, description="the bucket's region")
    profile: str | None = Field(None, description="a profile of the AWS configuration")
    key: SecretStr | None = Field(None, description="access key id")
    secret: SecretStr | None = Field(None, description="secret access key")
    token: SecretStr | None = Field(None, description="session token")

    @field_validator("endpoint_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("it begins with http:// or https://")
        return value


def _open_s3(url: str, options: Any) -> Store:
    # Plugins are imported by whoever opens any store: what only a bucket needs comes with the first one.
    from s3fs import S3FileSystem

    from statestore_fsspec._s3 import S3Drive, s3_settings
    from statestore_fsspec._store import FsspecStore

    root = _root(url)
    secrets = {name: getattr(options, name) for name in ("key", "secret", "token")}
    settings = s3_settings(
        storage_options=options.storage_options.get_secret_value(),
        timeout=options.timeout,
        parallel=options.parallel,
        endpoint_url=options.endpoint_url,
        region=options.region,
        profile=options.profile,
        **{name: value.get_secret_value() for name, value in secrets.items() if value is not None},
    )

    def connect() -> S3Drive:
        return S3Drive(S3FileSystem(**settings, skip_instance_cache=True, use_listings_cache=False), root)

    return FsspecStore(connect, f"s3://{root}", **options.root())


def _root(url: str) -> str:
    """Return bucket and prefix of a URL."""
    scheme, _, rest = url.partition("://")
    if "@" in rest.partition("/")[0]:
        raise PluginError("no credentials belong into this URL: give key and secret as options, or by the environment")
    root = rest.strip("/")
    if not root or any(part in ("", ".", "..") for part in root.split("/")):
        raise PluginError(f"a bucket, and a prefix where you want one: {scheme}://bucket/prefix", url=url)
    return root


@hookimpl
def statestore_backends() -> list[Backend]:
    """Return the object-store backends."""
    return [
        Backend(
            name="s3",
            schemes=("s3", "s3a"),
            options=S3Options,
            open=_open_s3,
            summary="logs in a bucket of S3, or of a server that speaks S3",
            capabilities=CAPABILITIES,
        )
    ]
