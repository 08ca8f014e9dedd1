"""Servers for tests: real ones, on loopback, one of each for the whole run, gone when the run ends.

Ask for the fixture `rgw` (Ceph's gateway, in memory: the S3 server of every run), `seaweedfs` (honours conditions on
every call, but is slow in races and lists in another order), `rclone` (takes the condition and ignores it) or `moto`
(for speed; never for atomicity or rights):

    def test_something(rgw: Rgw) -> None:
        bucket = rgw.new_bucket()
        files = s3fs.S3FileSystem(**rgw.storage_options())      # or open_store(f"s3://{bucket}/x", ...)
        rgw.client().put_object(Bucket=bucket, Key="k", Body=b"")   # botocore, synchronous, never sends anything twice

    reader = rgw.limited(bucket, "s3:PutObject", "s3:DeleteObject")  # a user who may do all but this in the bucket
    rgw.revoke(reader)                                           # from now on its keys are refused with 403

    with FaultProxy(rgw.endpoint) as proxy:                      # tests/faultproxy.py
        rgw.through(proxy).storage_options()                     # the same server and keys, through the proxy

`rgw.limited` and `rgw.revoke` take about a tenth of a second each.

Beside them are `sftp` (OpenSSH), `azure` (Azurite) and `gcs` (fake-gcs-server, which knows no credentials).

Where a server can't be had (install them with tests/services/install.sh) the fixture skips and says why; with
STATESTORE_SERVERS=required in the environment it fails instead. All workers of a pytest-xdist run share one server.
"""

from __future__ import annotations

import fcntl
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Protocol, Self

import pytest

SUPERVISOR = Path(__file__).parent / "services" / "supervisor.py"
ALONE = uuid.uuid4().hex  # names this run when there are no workers


class HasEndpoint(Protocol):
    """What stands between a client and a server."""

    @property
    def endpoint(self) -> str: ...


@dataclass(frozen=True)
class S3Server:
    """An S3 server, and one key pair for it."""

    name: str
    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"

    def storage_options(self, **more: Any) -> dict[str, Any]:
        """Return what s3fs takes to talk to this server."""
        where = {"endpoint_url": self.endpoint, "region_name": self.region}
        return {"key": self.access_key, "secret": self.secret_key, "client_kwargs": where, **more}

    def client(self, **config: Any) -> Any:
        """Return a new botocore client that sends each request once; `config` goes to botocore's Config."""
        from botocore.config import Config

        return _botocore().create_client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            config=Config(**{"retries": {"total_max_attempts": 1}, "s3": {"addressing_style": "path"}, **config}),
        )

    def new_bucket(self) -> str:
        """Return the name of a bucket that was made just now."""
        bucket = f"test-{uuid.uuid4().hex}"
        self.client().create_bucket(Bucket=bucket)
        return bucket

    def through(self, proxy: HasEndpoint) -> Self:
        """Return the same server as seen through a proxy."""
        return replace(self, endpoint=proxy.endpoint)


@dataclass(frozen=True)
class Rgw(S3Server):
    """Ceph's gateway, where a test can make users with few rights and take their keys away."""

    conf: str = ""

    def limited(self, bucket: str, *denied: str) -> Rgw:
        """Return the key pair of a new user, who may do everything with the bucket but the denied actions.

        An action is a name as "s3:GetObject". The bucket must belong to this key pair. Make one user at a time.
        """
        user = f"limited-{uuid.uuid4().hex}"
        made = json.loads(self._admin("user", "create", "--uid", user, "--display-name", user))
        keys = made["keys"][0]
        owner, other = "arn:aws:iam:::user/test", f"arn:aws:iam:::user/{user}"  # an object belongs to who wrote it
        what = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
        rules = [{"Effect": "Allow", "Principal": {"AWS": [owner, other]}, "Action": ["s3:*"], "Resource": what}]
        if denied:
            rules.append({"Effect": "Deny", "Principal": {"AWS": [other]}, "Action": list(denied), "Resource": what})
        client = self.client()
        try:
            earlier = json.loads(client.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"]
        except client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucketPolicy":
                raise
            earlier = []
        policy = json.dumps({"Version": "2012-10-17", "Statement": earlier + rules})
        client.put_bucket_policy(Bucket=bucket, Policy=policy)
        return replace(self, access_key=keys["access_key"], secret_key=keys["secret_key"])

    def revoke(self, limited: S3Server) -> None:
        """Remove the key pair of a user that `limited` made: every later request with it is refused."""
        self._admin("key", "rm", "--key-type", "s3", "--access-key", limited.access_key)

    def _admin(self, *words: str) -> str:
        command = ["radosgw-admin", "-c", self.conf, "--no-mon-config", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


@dataclass(frozen=True)
class Sftp:
    """OpenSSH's server, and the key that it lets in."""

    host: str
    port: str
    username: str
    folder: str

    def url(self, place: str) -> str:
        """Return the URL of a folder, which need not be there yet, below the one of this run."""
        return f"sftp://{self.username}@{self.host}:{self.port}{self.folder}/data/{place}"

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the options that open a store there."""
        keys = {"key_filename": f"{self.folder}/client", "known_hosts": f"{self.folder}/known_hosts"}
        return {**keys, "look_for_keys": False, "backoff": 0.01, **more}

    def path(self, place: str) -> Path:
        """Return that folder, as the server sees it."""
        return Path(self.folder, "data", place)


@dataclass(frozen=True)
class Azure:
    """Azurite, and the key of its one account."""

    endpoint: str
    account: str
    key: str

    @property
    def connection_string(self) -> str:
        """What the clients of Azure take."""
        where = f"DefaultEndpointsProtocol=http;BlobEndpoint={self.endpoint}/{self.account}"
        return f"{where};AccountName={self.account};AccountKey={self.key};"

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the options that open a store there."""
        return {"connection_string": self.connection_string, "backoff": 0.01, **more}

    def client(self) -> Any:
        """Return a client of the whole account, from Azure's own library."""
        from azure.storage.blob import BlobServiceClient

        return BlobServiceClient.from_connection_string(self.connection_string, retry_total=0)

    def new_container(self) -> str:
        """Return the name of a container that was made just now."""
        container = f"test-{uuid.uuid4().hex}"
        with self.client() as client:
            client.create_container(container)
        return container

    def through(self, proxy: HasEndpoint) -> Azure:
        """Return the same server as seen through a proxy."""
        return replace(self, endpoint=proxy.endpoint)


@dataclass(frozen=True)
class Gcs:
    """fake-gcs-server, which asks nobody who he is."""

    endpoint: str

    def options(self, **more: Any) -> dict[str, Any]:
        """Return the options that open a store there."""
        return {"endpoint_url": self.endpoint, "token": "anon", "backoff": 0.01, **more}

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        """Send one request to the JSON API and return what it answers."""
        request = urllib.request.Request(self.endpoint + path, body, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def new_bucket(self) -> str:
        """Return the name of a bucket that was made just now."""
        bucket = f"test-{uuid.uuid4().hex}"
        self.ask("POST", "/storage/v1/b?project=test", json.dumps({"name": bucket}).encode())
        return bucket

    def through(self, proxy: HasEndpoint) -> Gcs:
        """Return the same server as seen through a proxy."""
        return replace(self, endpoint=proxy.endpoint)


@pytest.fixture(scope="session")
def rgw() -> Rgw:
    """Ceph's gateway, in memory."""
    return Rgw(name="rgw", **_obtain("rgw"))


@pytest.fixture(scope="session")
def seaweedfs() -> S3Server:
    """SeaweedFS: conditions on every call; slow in races; not in byte order when it lists."""
    return S3Server(name="seaweedfs", **_obtain("seaweedfs"))


@pytest.fixture(scope="session")
def rclone() -> S3Server:
    """The server of rclone, which ignores the condition of a conditional write."""
    return S3Server(name="rclone", **_obtain("rclone"))


@pytest.fixture(scope="session")
def moto() -> S3Server:
    """The server of moto: quick, but neither atomic nor strict about rights."""
    return S3Server(name="moto", **_obtain("moto"))


@pytest.fixture(scope="session")
def sftp() -> Sftp:
    """OpenSSH's server, for files alone."""
    return Sftp(**_facts("sftp", "paramiko"))


@pytest.fixture(scope="session")
def azure() -> Azure:
    """Azurite, in memory."""
    return Azure(**_facts("azure", "adlfs"))


@pytest.fixture(scope="session")
def gcs() -> Gcs:
    """fake-gcs-server, in memory."""
    return Gcs(**_facts("gcs", "gcsfs"))


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait for what another process does without telling."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it never became so"
        time.sleep(0.02)


def _facts(name: str, client: str) -> dict[str, str]:
    """Return the facts of a server that makes its keys itself, or skip."""
    return {fact: value for fact, value in _obtain(name, client).items() if fact not in ("access_key", "secret_key")}


def _obtain(name: str, client: str = "s3fs") -> dict[str, str]:
    """Return the facts of the run's server, or skip."""
    found = importlib.util.find_spec(client)
    told = running(name) if found else {"error": f"{client} is not installed; run: pip install {client}"}
    if "error" not in told:
        return told
    reason = f"no {name} server: {told['error']}"
    if os.environ.get("STATESTORE_SERVERS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def running(name: str) -> dict[str, str]:
    """Return the facts of this run's server, which the first process of the run that asks for it starts."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", ALONE)
    folder = Path(tempfile.gettempdir()) / f"statestore-{run}-{name}"
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError), open(folder / "start", "wb") as start:
            fcntl.flock(start, fcntl.LOCK_EX)  # one process at a time looks and starts
            users = open(folder / "users", "wb")  # noqa: SIM115 - held until this process ends
            fcntl.flock(users, fcntl.LOCK_SH)
            if not (_is_at(start, folder / "start") and _is_at(users, folder / "users")):
                users.close()  # the last user left at this moment, and the supervisor removed the folder
                continue
            os.register_at_fork(after_in_child=users.close)  # a child that is left behind keeps no server
            facts = folder / "facts.json"
            if not facts.exists():
                facts.write_bytes(_start(name, folder))
            return dict(json.loads(facts.read_bytes()))


def _start(name: str, folder: Path) -> bytes:
    """Start the supervisor, which outlives this process if others still use the server, and return what it tells."""
    with open(folder / "supervisor.err", "w+b") as said:
        command = [sys.executable, str(SUPERVISOR), name, str(folder)]
        supervisor = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, cwd="/", start_new_session=True
        )
        assert supervisor.stdout
        with supervisor.stdout as out:
            told = out.readline()
        supervisor.returncode = 0  # it is not waited for: it ends after this process
        said.seek(0)
        return told or json.dumps({"error": said.read().decode(errors="replace")[-2000:]}).encode()


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


@functools.cache
def _botocore() -> Any:
    from botocore.session import Session

    return Session()
