"""The servers that the tests start: they are what they should be, and they end with the run, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.servers import Rgw, S3Server, eventually

pytest.importorskip("botocore", reason="botocore is not installed: pip install s3fs")
from botocore.exceptions import ClientError

ROOT = Path(__file__).parents[1]


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def create(client: Any, bucket: str, key: str, body: bytes) -> bool:
    """Tell whether the server took a write on the condition that there is no such object."""
    try:
        client.put_object(Bucket=bucket, Key=key, Body=body, IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] != "PreconditionFailed":
            raise
        return False
    return True


@pytest.mark.parametrize("name", ["moto", "rclone", "rgw", "seaweedfs"])
def test_a_server_keeps_an_object(name: str, request: pytest.FixtureRequest) -> None:
    server: S3Server = request.getfixturevalue(name)
    bucket, client = server.new_bucket(), server.client()
    client.put_object(Bucket=bucket, Key="a/b c", Body=b"body")
    assert client.get_object(Bucket=bucket, Key="a/b c")["Body"].read() == b"body"
    assert [found["Key"] for found in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["a/b c"]
    assert server.new_bucket() != bucket


@pytest.mark.parametrize("name", ["rclone", "rgw", "seaweedfs"])
def test_a_server_refuses_a_wrong_secret(name: str, request: pytest.FixtureRequest) -> None:
    server: S3Server = request.getfixturevalue(name)
    with pytest.raises(ClientError) as refused:
        replace(server, secret_key="wrong").new_bucket()
    assert code(refused) == "SignatureDoesNotMatch"


@pytest.mark.parametrize("name", ["moto", "rgw", "seaweedfs"])
def test_an_object_is_created_once(name: str, request: pytest.FixtureRequest) -> None:
    server: S3Server = request.getfixturevalue(name)
    bucket, client = server.new_bucket(), server.client()
    assert create(client, bucket, "k", b"first")
    assert not create(client, bucket, "k", b"second")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"first"


def test_of_16_racing_creations_one_wins(rgw: Rgw) -> None:
    bucket = rgw.new_bucket()
    clients = [rgw.client() for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        for number in range(5):
            key = f"round-{number}"
            won = list(pool.map(lambda n, key=key: create(clients[n], bucket, key, b"%d" % n), range(16)))
            assert Counter(won) == {True: 1, False: 15}
            assert clients[0].get_object(Bucket=bucket, Key=key)["Body"].read() == b"%d" % won.index(True)


def test_rclone_takes_the_condition_and_ignores_it(rclone: S3Server) -> None:
    bucket, client = rclone.new_bucket(), rclone.client()
    assert create(client, bucket, "k", b"first")
    assert create(client, bucket, "k", b"second")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"second"


ACTIONS: dict[str, Callable[[Any, str], Any]] = {
    "s3:ListBucket": lambda client, bucket: client.list_objects_v2(Bucket=bucket),
    "s3:GetObject": lambda client, bucket: client.get_object(Bucket=bucket, Key="k")["Body"].read(),
    "s3:PutObject": lambda client, bucket: client.put_object(Bucket=bucket, Key="other", Body=b""),
    "s3:DeleteObject": lambda client, bucket: client.delete_object(Bucket=bucket, Key="k"),
}


@pytest.mark.parametrize("denied", ACTIONS)
def test_a_limited_user_may_do_all_but_what_is_denied(rgw: Rgw, denied: str) -> None:
    bucket = rgw.new_bucket()
    rgw.client().put_object(Bucket=bucket, Key="k", Body=b"")
    limited = rgw.limited(bucket, denied).client()
    for action, call in ACTIONS.items():
        if action == denied:
            with pytest.raises(ClientError) as refused:
                call(limited, bucket)
            assert code(refused) == "AccessDenied"
        else:
            call(limited, bucket)


def test_limited_users_of_one_bucket_differ(rgw: Rgw) -> None:
    bucket = rgw.new_bucket()
    reader, writer = rgw.limited(bucket, "s3:PutObject"), rgw.limited(bucket, "s3:GetObject")
    writer.client().put_object(Bucket=bucket, Key="k", Body=b"body")
    assert reader.client().get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"
    for user, call in ((reader, ACTIONS["s3:PutObject"]), (writer, ACTIONS["s3:GetObject"])):
        with pytest.raises(ClientError) as refused:
            call(user.client(), bucket)
        assert code(refused) == "AccessDenied"


def test_revoked_keys_are_refused_in_mid_use(rgw: Rgw) -> None:
    bucket = rgw.new_bucket()
    limited, other = rgw.limited(bucket), rgw.limited(bucket)
    client = limited.client()
    client.put_object(Bucket=bucket, Key="k", Body=b"")
    rgw.revoke(limited)
    with pytest.raises(ClientError) as refused:
        client.put_object(Bucket=bucket, Key="k", Body=b"")
    assert code(refused) == "InvalidAccessKeyId"
    other.client().get_object(Bucket=bucket, Key="k")
    rgw.client().get_object(Bucket=bucket, Key="k")


# How the servers begin and end, in test runs of their own.


@contextmanager
def run(folder: Path, test: str, *options: str, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """Start pytest on a test, in a process group of its own, with its servers under the folder."""
    (folder / "test_it.py").write_text(textwrap.dedent(test))
    (folder / "tmp").mkdir()
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "STATESTORE_SERVERS"))}
    clean |= {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), **environ}
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "tests.servers", "-p", "no:cacheprovider", *options]
    with subprocess.Popen(
        command, cwd=folder, env=clean, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as pytest_run:
        try:
            yield pytest_run
        finally:
            if pytest_run.poll() is None:
                os.killpg(pytest_run.pid, signal.SIGKILL)


def processes_of(folder: Path) -> dict[int, str]:
    """Return the processes that name the folder or one below it in their command line."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if any(word.startswith(f"{folder}/") for word in words):
            found[int(process.name)] = " ".join(words)
    return found


def nothing_left(folder: Path) -> bool:
    return not processes_of(folder) and not any((folder / "tmp").glob("statestore-*"))


TELL_AND_WAIT = """
    import json, os, time
    def test_it({name}):
        told = {{"pid": os.getpid(), "endpoint": {name}.endpoint}}
        with open(f"{{os.getpid()}}.new", "w") as file:
            json.dump(told, file)
        os.rename(f"{{os.getpid()}}.new", f"{{os.getpid()}}.json")
        while {wait} and not os.path.exists("go on"):
            time.sleep(0.01)
    test_that = test_it
"""


def test_workers_share_one_server_and_no_daemon_outlives_them_when_they_are_killed(rgw: Rgw, tmp_path: Path) -> None:
    with run(tmp_path, TELL_AND_WAIT.format(name="rgw", wait=True), "-n", "2") as tests:
        eventually(lambda: len(list(tmp_path.glob("*.json"))) == 2)
        one, other = (json.loads(file.read_bytes()) for file in tmp_path.glob("*.json"))
        assert one["pid"] != other["pid"]
        assert one["endpoint"] == other["endpoint"] != rgw.endpoint
        assert sum("ceph-" in command for command in processes_of(tmp_path / "tmp").values()) == 2
        os.killpg(tests.pid, signal.SIGKILL)
    eventually(lambda: nothing_left(tmp_path))


def test_no_daemon_outlives_a_run_that_ends(rclone: S3Server, tmp_path: Path) -> None:
    with run(tmp_path, TELL_AND_WAIT.format(name="rclone", wait=True)) as tests:
        eventually(lambda: any(tmp_path.glob("*.json")))
        assert len(processes_of(tmp_path / "tmp")) == 2
        (tmp_path / "go on").touch()
        assert tests.wait() == 0
    eventually(lambda: nothing_left(tmp_path))


def test_no_daemon_outlives_its_killed_supervisor(rgw: Rgw, tmp_path: Path) -> None:
    with run(tmp_path, TELL_AND_WAIT.format(name="rgw", wait=True)):
        eventually(lambda: any(tmp_path.glob("*.json")))
        running = processes_of(tmp_path / "tmp")
        [supervisor] = [pid for pid, command in running.items() if "supervisor.py" in command]
        assert len(running) == 4
        os.kill(supervisor, signal.SIGKILL)
        eventually(lambda: not processes_of(tmp_path / "tmp"))


def test_a_run_that_is_killed_while_a_server_starts_leaves_nothing(rgw: Rgw, tmp_path: Path) -> None:
    with run(tmp_path, TELL_AND_WAIT.format(name="rgw", wait=True)) as tests:
        eventually(lambda: any("supervisor.py" in command for command in processes_of(tmp_path / "tmp").values()))
        os.killpg(tests.pid, signal.SIGKILL)
    eventually(lambda: nothing_left(tmp_path))


def test_a_server_that_cannot_be_had_is_skipped_with_the_reason(tmp_path: Path) -> None:
    test = TELL_AND_WAIT.format(name="seaweedfs", wait=False)
    with run(tmp_path, test, STATESTORE_SERVERS_HOME=str(tmp_path)) as tests:
        said, _ = tests.communicate()
    reason = "no seaweedfs server: weed is not installed; run: bash tests/services/install.sh"
    assert (tests.returncode, said.count(reason)) == (0, 1), said
    assert "SKIPPED [2]" in said
    eventually(lambda: nothing_left(tmp_path))


def test_a_server_that_cannot_be_had_fails_where_all_are_required(tmp_path: Path) -> None:
    test = TELL_AND_WAIT.format(name="seaweedfs", wait=False)
    with run(tmp_path, test, STATESTORE_SERVERS_HOME=str(tmp_path), STATESTORE_SERVERS="required") as tests:
        said, _ = tests.communicate()
    assert tests.returncode == 1, said
    assert "no seaweedfs server: weed is not installed" in said


def test_importing_the_servers_needs_no_client() -> None:
    program = "import sys, tests.servers; sys.exit('botocore' in sys.modules or 's3fs' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
