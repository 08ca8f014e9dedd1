"""The file systems: one row each says what serves it and what its promise of exclusive creation rests on.

A storage is here only if it creates exclusively on the wire, by one atomic act of the server. fsspec's own
``mode="create"`` is no such thing in most of its file systems: they look first and write then, or ignore the mode.
``docs/object-storage.md`` shows the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

__all__ = ["OTHERS", "ROWS", "Row", "load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One file system.

    Attributes:
        name: what its backend is called.
        title: the storage, as people call it.
        schemes: the URL schemes.
        extra: the extra of this package that installs what it needs; "" where the user brings it.
        files: the class of fsspec's file system, as ``module:name``; the only one that this row ever uses.
        options: the class of its options, in ``_options``.
        opens: what opens a store there, from URL and options, as ``module:name``.
        creates: how an object is created exclusively.
        pages: how a listing goes on behind a key.
        reads: how a part of an object is read.
        limits: what it may not do, or what must be so.
    """

    name: str
    title: str
    schemes: tuple[str, ...]
    extra: str
    files: str
    options: str
    opens: str
    creates: str
    pages: str
    reads: str
    limits: str


def load(where: str) -> Any:
    """Return what ``module:name`` names."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


ROWS: Final = (
    Row(
        name="s3",
        title="S3, and servers that speak it",
        schemes=("s3", "s3a"),
        extra="s3",
        files="s3fs:S3FileSystem",
        options="S3Options",
        opens="statestore_fsspec._s3:open_s3",
        creates="`If-None-Match: *` on one PUT",
        pages="`start-after`",
        reads="`Range`",
        limits="a server that ignores the condition is refused by the probe",
    ),
    Row(
        name="gcs",
        title="Google Cloud Storage",
        schemes=("gs", "gcs"),
        extra="gcs",
        files="gcsfs.core:GCSFileSystem",
        options="GcsOptions",
        opens="statestore_fsspec._gcs:open_gcs",
        creates="`ifGenerationMatch=0` on one multipart insert, framed by a boundary of its own",
        pages="`startOffset`",
        reads="`Range`",
        limits="zonal buckets are refused",
    ),
    Row(
        name="azure",
        title="Azure Blob Storage",
        schemes=("az", "abfs", "abfss"),
        extra="azure",
        files="adlfs:AzureBlobFileSystem",
        options="AzureOptions",
        opens="statestore_fsspec._azure:open_azure",
        creates="`If-None-Match: *` on one Put Blob",
        pages="the marker of the page before; `list(after=…)` reads what comes before",
        reads="`x-ms-range`",
        limits="only accounts without a hierarchical namespace",
    ),
    Row(
        name="sftp",
        title="SFTP",
        schemes=("sftp", "ssh"),
        extra="sftp",
        files="fsspec.implementations.sftp:SFTPFileSystem",
        options="SftpOptions",
        opens="statestore_fsspec._sftp:open_sftp",
        creates="a temporary file, synced, then a hard link of it to the name, or a rename that does not replace",
        pages="folders are read whole, and sorted here",
        reads="seek and read",
        limits="several round trips a call; copies go through the client; the server's file system needs hard links",
    ),
)
"""The file systems that may be written to by many."""

OTHERS: Final = Row(
    name="fsspec",
    title="any other file system of fsspec",
    schemes=("fsspec",),
    extra="",
    files="fsspec:AbstractFileSystem",
    options="AnyOptions",
    opens="statestore_fsspec._other:open_other",
    creates="not: a look and then a write, under a lock of the process",
    pages="a listing of everything below, sorted here",
    reads="as the file system does",
    limits="read only; `single_writer=True` lets one process write",
)
"""All others, chained ones too: ``fsspec://simplecache::ftp://host/agents``."""
