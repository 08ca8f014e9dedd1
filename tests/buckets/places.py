"""One empty place on each file system of the table, and what lies there, seen without the store."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from statestore import open_store
from statestore.conformance import Harness
from statestore_fsspec import Settings
from statestore_fsspec._drive import Drive
from statestore_fsspec._layout import SETTINGS
from tests import dialects, servers
from tests.faultproxy import FaultProxy
from tests.proxy import Proxy
from tests.storms.aim import AZURE, GCS, SFTP, Aim
from tests.tcpproxy import TcpProxy


class Place(ABC):
    """An empty place on a storage.

    Attributes:
        url: where it is.
        options: what opens it.
        secrets: what must never show.
        fill: fills the storage for a while, where that can be done.
        aim: what can be done to requests there.
        server: the storage's server.
    """

    url: str
    options: dict[str, Any]
    secrets: tuple[str, ...] = ()
    fill: Callable[[], AbstractContextManager[None]] | None = None
    aim: Aim
    server: Any

    def __init__(self, server: Any) -> None:
        self.server = server

    def drive(self, **more: Any) -> Drive:
        """Return a new drive there."""
        store: Any = open_store(self.url, **{**self.options, **more})
        drive: Drive = store._engine.drive
        return drive

    @abstractmethod
    def objects(self, begin: str = "") -> dict[str, bytes]:
        """Return what lies there under keys that begin so, by key, as another client sees it."""

    @abstractmethod
    def proxy(self) -> Proxy:
        """Return a proxy to the storage, which speaks as that does."""

    @abstractmethod
    def through(self, proxy: Any) -> dict[str, Any]:
        """Return the options by which a store goes through the proxy."""

    @abstractmethod
    def put(self, key: str, data: bytes) -> None:
        """Put an object there, as another client does."""

    def harness(self) -> Iterator[Harness]:
        """Yield the kit's harness for this place, which is a root already: the probe has tests of its own."""
        self.put(SETTINGS, Settings().spell())
        again = partial(open_store, self.url, **self.options)
        yield Harness(
            open=again, reopen=again, spawn=again, raw_read=self.raw_read, fill=self.fill, secrets=self.secrets
        )

    def raw_read(self, log: str) -> bytes:
        """Concatenate the appends of the newest run, as a person with a browser would."""
        objects = self.objects()
        head = objects[max(key for key in objects if key.startswith(f"heads/{log}!"))]
        singles = f"data/{log}!{head.split()[1].decode()}/t/"
        keys = sorted((key for key in objects if key.startswith(singles)), reverse=True)
        return b"".join(objects[key].partition(b"\n")[2] for key in keys)


class SftpPlace(Place):
    """A folder on OpenSSH's server; the tests look at it as the server does."""

    aim = SFTP

    def __init__(self, server: servers.Sftp) -> None:
        name = uuid.uuid4().hex
        self.server, self.folder = server, server.path(name)
        self.url, self.options = server.url(name), server.options()
        if os.geteuid() == 0 and shutil.which("mount"):
            self.fill = self._fill

    @contextmanager
    def _fill(self) -> Iterator[None]:
        """Let all of the folder lie on a small file system for a while; to mount it takes root."""
        folder = os.open(self.folder, os.O_RDONLY)
        below = f"/proc/self/fd/{folder}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(self.folder)], check=True)
        try:
            shutil.copytree(below, self.folder, dirs_exist_ok=True)
            yield
            shutil.copytree(self.folder, below, dirs_exist_ok=True)
        finally:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
            os.close(folder)

    def proxy(self) -> TcpProxy:
        return TcpProxy(f"ssh://{self.server.host}:{self.server.port}")

    def through(self, proxy: TcpProxy) -> dict[str, Any]:
        return {"port": proxy.port, "known_hosts": "any"}

    def objects(self, begin: str = "") -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        found = {str(path.relative_to(self.folder)).replace("!/", "!"): path.read_bytes() for path in files}
        return {key: data for key, data in found.items() if key.startswith(begin) and key[0] != "."}

    def put(self, key: str, data: bytes) -> None:
        path = self.folder / key.replace("!", "!/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


class AzurePlace(Place):
    """A prefix of a container."""

    aim = AZURE

    def __init__(self, server: servers.Azure) -> None:
        self.server, self.container, self.prefix = server, _bucket(server, server.new_container), uuid.uuid4().hex
        self.url, self.options = f"az://{self.container}/{self.prefix}", server.options()
        self.secrets = (server.key,)

    def proxy(self) -> FaultProxy:
        return FaultProxy(self.server.endpoint, dialect=dialects.AZURE)

    def through(self, proxy: FaultProxy) -> dict[str, Any]:
        return self.server.through(proxy).options()

    def objects(self, begin: str = "") -> dict[str, bytes]:
        with self.server.client() as client, client.get_container_client(self.container) as container:
            names = [str(row.name) for row in container.list_blobs(name_starts_with=f"{self.prefix}/{begin}")]
            return {name.partition("/")[2]: container.download_blob(name).readall() for name in names}

    def put(self, key: str, data: bytes) -> None:
        with self.server.client() as client, client.get_container_client(self.container) as container:
            container.upload_blob(f"{self.prefix}/{key}", data, overwrite=True)


class GcsPlace(Place):
    """A prefix of a bucket."""

    aim = GCS

    def __init__(self, server: servers.Gcs) -> None:
        self.server, self.bucket, self.prefix = server, _bucket(server, server.new_bucket), uuid.uuid4().hex
        self.url, self.options = f"gs://{self.bucket}/{self.prefix}", server.options()

    def proxy(self) -> FaultProxy:
        return FaultProxy(self.server.endpoint, dialect=dialects.GCS)

    def through(self, proxy: FaultProxy) -> dict[str, Any]:
        return self.server.through(proxy).options()

    def objects(self, begin: str = "") -> dict[str, bytes]:
        listed = json.loads(
            self.server.ask("GET", f"/storage/v1/b/{self.bucket}/o?prefix={quote(f'{self.prefix}/{begin}')}")
        )
        names = [row["name"] for row in listed.get("items", ())]
        path = f"/storage/v1/b/{self.bucket}/o/"
        return {
            name.partition("/")[2]: self.server.ask("GET", f"{path}{quote(name, safe='')}?alt=media") for name in names
        }

    def put(self, key: str, data: bytes) -> None:
        name = quote(f"{self.prefix}/{key}", safe="")
        kind = "application/octet-stream"
        self.server.ask("POST", f"/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={name}", data, kind)


_buckets: dict[object, str] = {}


def _bucket(server: object, make: Callable[[], str]) -> str:
    """Return a bucket of this process; each test has a prefix of its own in it."""
    return _buckets.get(server) or _buckets.setdefault(server, make())


@cache
def _server(name: str) -> Any:
    kinds: dict[str, type[Any]] = {"azure": servers.Azure, "gcs": servers.Gcs, "sftp": servers.Sftp}
    facts = servers.running(name)
    return kinds[name](**{key: value for key, value in facts.items() if key not in ("access_key", "secret_key")})


PLACES: dict[str, type[Any]] = {"azure": AzurePlace, "gcs": GcsPlace, "sftp": SftpPlace}


def harness(name: str, _: Path) -> Iterator[Harness]:
    """Yield the kit's harness on a storage, in a process that has no fixtures."""
    yield from PLACES[name](_server(name)).harness()
