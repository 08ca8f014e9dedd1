"""S3, by s3fs: which calls are one request, and what each error code means."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from statestore.errors import Unavailable
from statestore_fsspec._drive import PAGE, Answer, Drive, bucket_and_prefix, guarded
from statestore_fsspec._layout import Entry
from statestore_fsspec._session import new_session
from statestore_fsspec._steps import Page
from statestore_fsspec._store import FsspecStore

if TYPE_CHECKING:
    from statestore_fsspec._options import S3Options

__all__ = ["S3Drive", "open_s3", "s3_settings"]

_RIGHTS: Final = {"list": "s3:ListBucket", "get": "s3:GetObject", "put": "s3:PutObject", "delete": "s3:DeleteObject"}

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


def _unsent() -> tuple[type[Exception], ...]:
    """Return the exceptions that are raised before anything is sent; of all others that is not sure."""
    from botocore import exceptions as of

    return (
        of.BaseEndpointResolverError,
        of.ConfigNotFound,
        of.ConfigParseError,
        of.CredentialRetrievalError,
        of.EndpointProviderError,
        of.MissingDependencyException,
        of.NoCredentialsError,
        of.ParamValidationError,
        of.PartialCredentialsError,
        of.ProfileNotFound,
        of.SSOError,
        of.TokenRetrievalError,
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
        "max_pool_connections": parallel,
        "retries": {"total_max_attempts": 1},
        **settings.pop("config_kwargs", {}),
    }
    settings |= {name: value for name, value in given.items() if value is not None}
    settings |= {"client_kwargs": {name: value for name, value in client.items() if value is not None}}
    # With more than one transfer a file, each read asks for the size first.
    return {**settings, "config_kwargs": config, "max_concurrency": 1}


class S3Drive(Drive):
    """A prefix of a bucket."""

    def __init__(self, files: Any, root: str) -> None:
        super().__init__(files, root)
        files.retries = 1  # s3fs would send a request up to five times
        if files.session is None:
            files.session = new_session(**files.kwargs)
        self.bucket, _, prefix = self.root.partition("/")
        self._prefix = prefix + "/" if prefix else ""

    def page(self, prefix: str, after: str) -> Page:
        """Return the first keys that begin with `prefix` and come after `after`, in the storage's order."""
        start = {"StartAfter": self._prefix + after} if after else {}
        try:
            said = self.files.call_s3(
                "list_objects_v2", Bucket=self.bucket, Prefix=self._prefix + prefix, MaxKeys=PAGE, **start
            )
        except Exception as error:
            failure = self.judge(error, "list", prefix)
            if isinstance(failure, Answer):
                failure = Unavailable(f"the storage answered a listing with: {failure.value}", key=prefix)
            raise failure from error
        skip = len(self._prefix)
        return Page(
            tuple(
                Entry(row["Key"][skip:], row["Size"], row["LastModified"].timestamp())
                for row in said.get("Contents", ())
            ),
            said["IsTruncated"],
        )

    def copy(self, source: str, target: str) -> bool:
        """Copy an object on the storage; return whether it was there."""
        try:
            self.files.call_s3(
                "copy_object",
                Bucket=self.bucket,
                Key=self._prefix + target,
                CopySource={"Bucket": self.bucket, "Key": self._prefix + source},
            )
        except Exception as error:
            return self.judged(error, "put", target) is not Answer.MISSING
        return True

    def judge(self, error: Exception, right: str, key: str) -> Answer | Unavailable:
        """Return what an exception of s3fs, or of the libraries under it, means."""
        if isinstance(error, FileExistsError):
            return Answer.REFUSED
        facts: dict[str, Any] = {"bucket": self.bucket, "key": self._prefix + key}
        response = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
        if not isinstance(response, dict):
            if isinstance(error, _unsent()):
                return Unavailable("the request could not be made: see the cause", **facts)
            return Unavailable("the storage does not answer: see the cause", retry=True, **facts)
        code = str(response.get("Error", {}).get("Code"))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if code in _ANSWERS:
            return _ANSWERS[code]
        for words, codes in _REFUSALS.items():
            if code in codes:
                needs = _RIGHTS[right] if "right" in words else None
                return Unavailable(words, code=code, needs=needs, **facts)
        retry = status >= 500 or status in (0, 408, 409, 425, 429)
        return Unavailable("the storage failed: see the cause", retry=retry, code=code, **facts)

    def close(self) -> None:
        """Let go of connections."""
        from fsspec.asyn import sync

        client = getattr(self.files, "_s3", None)
        if client is not None:
            with suppress(Exception):
                sync(self.files.loop, client.close, timeout=5)
