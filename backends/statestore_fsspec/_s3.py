"""S3, by s3fs: which calls are one request, and what each error code means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from statestore.errors import Unavailable
from statestore_fsspec._drive import PAGE, Answer, BucketDrive, bucket_and_prefix, guarded
from statestore_fsspec._layout import Entry
from statestore_fsspec._session import new_session, user_agent
from statestore_fsspec._steps import Page
from statestore_fsspec._store import FsspecStore

if TYPE_CHECKING:
    from statestore_fsspec._options import S3Options

__all__ = ["S3Drive", "open_s3", "s3_settings"]

_RIGHTS: Final = {
    "list": "s3:ListBucket",
    "get": "s3:GetObject",
    "put": "s3:PutObject",
    "copy": "s3:GetObject and s3:PutObject",
    "delete": "s3:DeleteObject",
}

# https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
_ANSWERS: Final = {
    "NoSuchKey": Answer.MISSING,
    "PreconditionFailed": Answer.REFUSED,
    "412": Answer.REFUSED,
    "InvalidRange": Answer.SHORT,
    "416": Answer.SHORT,
}
_REFUSALS: Final = {
    "there is no such bucket: create it, or correct the URL": {"NoSuchBucket", "404"},
    "the credentials lack a right": {"AccessDenied", "AllAccessDisabled", "403"},
    "the credentials are not accepted: renew or correct them": {
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "NotSignedUp",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    },
    "the machine's clock is wrong": {"RequestTimeTooSkewed"},
    "the bucket is in another region, or behind another endpoint: set region or endpoint_url": {
        "301",
        "307",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
        "Redirect",
        "TemporaryRedirect",
    },
}

_CONNECTIONS: Final = 256  # at most; each is made when it is needed
_LONGEST: Final = 60.0  # seconds to wait for a connection, or an answer, of whoever has set no limit


def _without_credentials() -> tuple[type[Exception], ...]:
    """Return the exceptions that are raised where no credentials are found; nothing was sent."""
    from botocore import exceptions as of

    return (
        of.CredentialRetrievalError,
        of.NoCredentialsError,
        of.PartialCredentialsError,
        of.ProfileNotFound,
        of.SSOError,
        of.TokenRetrievalError,
    )


def _unsent() -> tuple[type[Exception], ...]:
    """Return the other exceptions that are raised before anything is sent; of all others that is not sure."""
    from botocore import exceptions as of

    return (
        of.BaseEndpointResolverError,
        of.ConfigNotFound,
        of.ConfigParseError,
        of.EndpointProviderError,
        of.MissingDependencyException,
        of.ParamValidationError,
        of.UnsupportedS3ConfigurationError,
        of.ValidationError,
    )


def open_s3(url: str, options: S3Options) -> FsspecStore:
    """Open a store in a bucket; nothing is asked of it yet."""
    from s3fs import S3FileSystem

    root = bucket_and_prefix(url)
    settings = s3_settings(
        storage_options=options.storage_options.get_secret_value(),
        timeout=options.timeout,
        parallel=options.parallel,
        **options.told("endpoint_url", "region", "profile", "key", "secret", "token"),
    )

    def connect() -> S3Drive:
        return S3Drive(S3FileSystem(**settings, skip_instance_cache=True, use_listings_cache=False), root)

    return FsspecStore(guarded(connect), f"s3://{root}", **options.root())


def s3_settings(*, storage_options: dict[str, Any], timeout: float, parallel: int, **given: Any) -> dict[str, Any]:
    """Return the arguments for s3fs: the caller's, with one request for one call, and a time limit on each."""
    settings = dict(storage_options)
    client = {"region_name": given.pop("region", None), **settings.pop("client_kwargs", {})}
    config = {
        "connect_timeout": timeout,
        "read_timeout": timeout,
        "max_pool_connections": max(parallel, _CONNECTIONS),  # `parallel` is of one call, and many threads may call
        "retries": {"total_max_attempts": 1},
        # What is read has a checksum of our own, which is always compared. What is sent keeps the library's, since the
        # storage refuses damage by it before anything is acknowledged; ours would tell of that only at the next read.
        "response_checksum_validation": "when_required",
        **settings.pop("config_kwargs", {}),
    }
    settings |= {name: value for name, value in given.items() if value is not None}
    settings |= {"client_kwargs": {name: value for name, value in client.items() if value is not None}}
    # With more than one transfer a file, each read asks for the size first.
    return {**settings, "config_kwargs": config, "max_concurrency": 1}


class S3Drive(BucketDrive):
    """A prefix of a bucket."""

    rights = _RIGHTS
    answers = _ANSWERS
    refusals = _REFUSALS

    def __init__(self, files: Any, root: str) -> None:
        super().__init__(files, root)
        config = files.config_kwargs
        self.patience = sum(config[name] or _LONGEST for name in ("connect_timeout", "read_timeout"))
        files.retries = 1  # s3fs would send a request up to five times
        if files.session is None:
            files.session = new_session(**files.kwargs)
        files.config_kwargs = {**user_agent(files.session), **config}

    def listed(self, prefix: str, after: str) -> Page:
        """Return a page, or raise what s3fs raises."""
        ask = {"StartAfter": self.name(after)} if after else {}
        while True:
            said = self.files.call_s3(
                "list_objects_v2", Bucket=self.bucket, Prefix=self.name(prefix), MaxKeys=PAGE, **ask
            )
            entries = tuple(
                Entry(self.key(row["Key"]), row["Size"], row["LastModified"].timestamp())
                for row in said.get("Contents", ())
            )
            # A page may be empty and yet not the last: then only the server's own mark goes on behind it.
            if entries or not said["IsTruncated"]:
                return Page(entries, said["IsTruncated"])
            ask["ContinuationToken"] = said["NextContinuationToken"]

    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage; return whether it was there."""
        try:
            self.files.call_s3(
                "copy_object",
                Bucket=self.bucket,
                Key=self.name(target),
                CopySource={"Bucket": self.bucket, "Key": self.name(source)},
            )
        except Exception as error:
            return self.judged(error, "copy", target) is not Answer.MISSING
        return True

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of s3fs, or of the libraries under it, means."""
        if isinstance(error, FileExistsError):
            return Answer.REFUSED
        response = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
        if not isinstance(response, dict):
            if isinstance(error, _without_credentials()):
                return Unavailable(
                    "no credentials are found, or they cannot be renewed: see the cause", **self.facts(key)
                )
            return self.unsent(key) if isinstance(error, _unsent()) else self.unanswered(key)
        code = str(response.get("Error", {}).get("Code"))
        return self.verdict(code, response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0), right, key)

    def closing(self) -> Callable[[], Awaitable[Any]] | None:
        """Return what closes the connections; None where there are none."""
        client = getattr(self.files, "_s3", None)
        return None if client is None else client.close
