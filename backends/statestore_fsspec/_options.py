"""What can be said about a store on each of the file systems."""

from __future__ import annotations

import json
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, Secret, SecretStr, field_validator

from statestore_fsspec._settings import DEFAULT, Settings

__all__ = ["AnyOptions", "AzureOptions", "BucketOptions", "GcsOptions", "S3Options", "SftpOptions"]

_SHARED: Final = ("grace", "windows")


class BucketOptions(BaseModel):
    """What can be said about a store on any object storage."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    storage_options: Secret[dict[str, Any]] = Field(
        Secret({}), description="arguments for the fsspec file system; in a URL or variable as JSON"
    )
    timeout: float = Field(20.0, gt=0, description="seconds after which a request counts as unanswered")
    parallel: int = Field(
        224,  # under the 256 files that a process may have open on macOS
        ge=1,
        le=256,
        description="requests that may be under way at once to read; to copy and to remove, at most 16",
    )
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

    def told(self, *names: str) -> dict[str, Any]:
        """Return those of the named options that were given, the secret ones in plain words."""
        given = {name: getattr(self, name) for name in names}
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in given.items()
            if value is not None
        }


def _address(value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise ValueError("it begins with http:// or https://")
    if value is not None and "@" in value:
        raise ValueError("no credentials belong into it: they have options of their own")
    return value


class S3Options(BucketOptions):
    """What can be said about a store on S3. Whatever is left out is found as by any AWS tool."""

    endpoint_url: str | None = Field(None, description="the server, where it is not Amazon's")
    region: str | None = Field(None, description="the bucket's region")
    profile: str | None = Field(None, description="a profile of the AWS configuration")
    key: SecretStr | None = Field(None, description="access key id")
    secret: SecretStr | None = Field(None, description="secret access key")
    token: SecretStr | None = Field(None, description="session token")

    _checked = field_validator("endpoint_url")(_address)


class GcsOptions(BucketOptions):
    """What can be said about a store on Google Cloud Storage. Credentials are found as by any Google tool."""

    token: SecretStr | None = Field(
        None, description="a file with a key, an access token, or one of google_default, cloud, anon"
    )
    project: str | None = Field(None, description="the project that requests are counted for")
    endpoint_url: str | None = Field(None, description="the server, where it is not Google's")

    _checked = field_validator("endpoint_url")(_address)


class AzureOptions(BucketOptions):
    """What can be said about a store on Azure Blob Storage. Whatever is left out is found as by any Azure tool."""

    account_name: str | None = Field(None, description="the storage account")
    account_key: SecretStr | None = Field(None, description="the account's key")
    connection_string: SecretStr | None = Field(None, description="account, key and address in one")
    sas_token: SecretStr | None = Field(None, description="a shared access signature")
    tenant_id: str | None = Field(None, description="the tenant of a service principal")
    client_id: str | None = Field(None, description="the id of a service principal")
    client_secret: SecretStr | None = Field(None, description="the secret of a service principal")
    account_host: str | None = Field(None, description="the host, where it is not <account>.blob.core.windows.net")


class SftpOptions(BucketOptions):
    """What can be said about a store on an SFTP server. Keys are found as by ssh, in its agent and in ``~/.ssh``."""

    username: str | None = Field(None, description="who logs in; in the URL as sftp://user@host")
    port: int | None = Field(None, ge=1, le=65535, description="the server's port")
    password: SecretStr | None = Field(None, description="the password")
    key_filename: str | None = Field(None, description="a file with a private key")
    passphrase: SecretStr | None = Field(None, description="what that file is encrypted with")
    look_for_keys: bool = Field(True, description="look for keys in the agent and in ~/.ssh")
    known_hosts: str = Field(
        "~/.ssh/known_hosts", description="the file with the servers' keys; any: believe every server"
    )
    parallel: int = Field(4, ge=1, le=64, description="connections; each carries one request at a time")


class AnyOptions(BucketOptions):
    """What can be said about a store on any other file system of fsspec."""

    parallel: int = Field(16, ge=1, le=256, description="threads, each for one request at a time")
    single_writer: bool = Field(
        False, description="write, though two writers would overwrite each other: there is never more than one process"
    )
