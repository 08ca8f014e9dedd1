"""Runs one server for a test run, and ends it when the last process of that run has ended, however it ended.

    python supervisor.py NAME FOLDER

prints one line of JSON as soon as the server answers: where it is and its keys, or {"error": ...}. Every process of the
run holds a shared lock on FOLDER/users, which the kernel lets go when the process dies. The supervisor waits for the
exclusive lock; having it, it kills the daemons and removes the folder. Should it be killed itself, the kernel kills
the daemons, which were started to die with it; only the folder stays.
"""

from __future__ import annotations

import base64
import fcntl
import getpass
import json
import os
import platform
import random
import secrets
import shutil
import socket
import string
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
START_SECONDS = 120  # a bound for a machine that is busy with other tests, not an expectation
INSTALL = "run: bash tests/services/install.sh"


class CannotStart(Exception):
    """The server can't be had here; the text says why."""


def home() -> Path:
    """Return the environment that install.sh made for the servers that come from PyPI and npm."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("STATESTORE_SERVERS_HOME") or Path(cache) / "statestore" / "servers")


def program(name: str) -> str:
    ours = [str(home() / "bin"), str(home() / "npm/node_modules/.bin")]
    path = os.pathsep.join([*ours, os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    if found := shutil.which(name, path=path):
        return found
    raise CannotStart(f"{name} is not installed; {INSTALL}")


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, below those that the kernel gives to outgoing connections."""
    chosen: list[int] = []
    for port in random.SystemRandom().sample(range(15000, 32000), 1000):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise CannotStart("no free ports on 127.0.0.1")


def speaks_http(port: int) -> bool:
    """Say whether there is an answer to a request for /, whatever it is, that is no failure."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500


def speaks_ssh(port: int) -> bool:
    """Say whether an SSH server greets."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        return connection.recv(4) == b"SSH-"


class Server:
    """The daemons of one server, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.access_key, self.secret_key = "test" + secrets.token_hex(8), secrets.token_hex(20)
        self.daemons: list[subprocess.Popen[bytes]] = []

    def run(self, *command: str) -> None:
        """Run a command that prepares something."""
        done = subprocess.run(
            [program(command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=START_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise CannotStart(f"{command[0]} failed: {done.stdout.decode(errors='replace')[-2000:]}")

    def daemon(self, *command: str, environ: dict[str, str] | None = None) -> None:
        """Start a program that stays in the foreground and is killed when this process ends."""
        with open(self.folder / "daemons.out", "ab") as out:
            argv = [program("setpriv"), "--pdeathsig", "KILL", program(command[0]), *command[1:]]
            env = os.environ | (environ or {})
            self.daemons.append(
                subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder, env=env)
            )

    def wait_for(self, port: int, answers: Callable[[int], bool] | None = None) -> None:
        """Return when something that speaks HTTP, or what `answers` looks for, is at the port."""
        answers = answers or speaks_http
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for daemon in self.daemons:
                if daemon.poll() is not None:
                    said = (self.folder / "daemons.out").read_text(errors="replace")[-2000:]
                    raise CannotStart(f"a daemon ended with {daemon.returncode}: {said}")
            with suppress(OSError):
                if answers(port):
                    return
            time.sleep(0.02)
        raise CannotStart(f"no answer at port {port} within {START_SECONDS} s")

    def stop(self) -> None:
        """Kill the daemons, which have nothing to keep."""
        for daemon in reversed(self.daemons):
            daemon.kill()
        for daemon in self.daemons:
            daemon.wait()


def rgw(server: Server) -> dict[str, str]:
    """Start a Ceph cluster in memory and its S3 gateway."""
    folder, conf = server.folder, str(server.folder / "ceph.conf")
    for name in ("ceph-mon", "ceph-osd", "monmaptool", "osdmaptool", "radosgw", "radosgw-admin"):
        program(name)
    port, mon_port = free_ports(2)
    fsid = str(uuid.uuid4())
    loud = "auth bdev finisher mon monc ms objclass objecter optracker osd paxos rados rgw rocksdb throttle timer"
    template = string.Template((HERE / "ceph.conf").read_text())
    quiet = "\n".join(f"debug {part} = 0/0" for part in loud.split())
    Path(conf).write_text(template.substitute(fsid=fsid, folder=folder, port=port, mon_port=mon_port, quiet=quiet))
    (folder / "mon").mkdir()
    (folder / "osd").mkdir()
    monmap, osdmap = str(folder / "monmap"), str(folder / "osdmap")
    address = f"[v2:127.0.0.1:{mon_port}]"
    server.run("monmaptool", "-c", conf, "--create", "--fsid", fsid, "--addv", "a", address, monmap)
    server.run("osdmaptool", "-c", conf, "--createsimple", "1", osdmap)  # the monitor knows its osd from the start
    server.run("ceph-mon", "-c", conf, "-i", "a", "--mkfs", "--monmap", monmap, "--osdmap", osdmap)
    server.daemon("ceph-mon", "-c", conf, "-i", "a", "-f")
    uid = str(uuid.uuid4())
    server.run("ceph-osd", "-c", conf, "--no-mon-config", "-i", "0", "--mkfs", "--osd-uuid", uid)
    server.daemon("ceph-osd", "-c", conf, "--no-mon-config", "-i", "0", "-f")
    user = ("--uid", "test", "--display-name", "test", "--max-buckets", "0")
    keys = ("--access-key", server.access_key, "--secret-key", server.secret_key)
    server.run("radosgw-admin", "-c", conf, "--no-mon-config", "user", "create", *user, *keys)
    server.daemon("radosgw", "-c", conf, "--no-mon-config", "-n", "client.rgw", "-f")
    server.wait_for(port)
    return {"endpoint": f"http://127.0.0.1:{port}", "conf": conf}


def seaweedfs(server: Server) -> dict[str, str]:
    """Start SeaweedFS: its master, one volume server, the filer and the S3 gateway in one process."""
    program("weed")
    ports = free_ports(8)
    named = zip(("s3", "master", "volume", "filer"), ports[::2], ports[1::2], strict=True)
    data, config = server.folder / "data", server.folder / "s3.json"
    data.mkdir()
    credentials = [{"accessKey": server.access_key, "secretKey": server.secret_key}]
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    config.write_text(json.dumps({"identities": [{"name": "test", "credentials": credentials, "actions": actions}]}))
    server.daemon(
        *("weed", "-logtostderr=true", "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *(f"-{part}.port{kind}={n}" for part, http, grpc in named for kind, n in (("", http), (".grpc", grpc))),
        *("-filer", "-s3", f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        "-master.telemetry=false",  # it would call out of this machine
        *("-master.volumeSizeLimitMB=64", "-volume.max=60", "-volume.minFreeSpace=1"),
    )
    server.wait_for(ports[0])
    return {"endpoint": f"http://127.0.0.1:{ports[0]}"}


def rclone(server: Server) -> dict[str, str]:
    """Start rclone's S3 server over a folder: it takes a conditional write and ignores the condition."""
    program("rclone")
    [port] = free_ports(1)
    data = server.folder / "data"
    data.mkdir()
    server.daemon(
        *("rclone", "serve", "s3", str(data), "--addr", f"127.0.0.1:{port}", "--config", "", "--vfs-cache-mode", "off"),
        environ={"RCLONE_AUTH_KEY": f'"{server.access_key},{server.secret_key}"'},
    )
    server.wait_for(port)
    return {"endpoint": f"http://127.0.0.1:{port}"}


def moto(server: Server) -> dict[str, str]:
    """Start moto's server."""
    program("moto_server")
    [port] = free_ports(1)
    server.daemon("moto_server", "-H", "127.0.0.1", "-p", str(port))
    server.wait_for(port)
    return {"endpoint": f"http://127.0.0.1:{port}"}


def sftp(server: Server) -> dict[str, str]:
    """Start OpenSSH's server, which knows one key, lets in who runs the tests, and serves files alone."""
    folder = server.folder
    [port] = free_ports(1)
    for key in ("host", "client", "stranger"):
        server.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
    kind, public, *_ = (folder / "host.pub").read_text().split()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {public}\n")
    (folder / "data").mkdir()
    user = getpass.getuser()
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": folder / "host",
        "PidFile": "none",
        "AuthorizedKeysFile": folder / "client.pub",
        "AllowUsers": user,
        "PasswordAuthentication": "no",
        "KbdInteractiveAuthentication": "no",
        "UsePAM": "no",
        "StrictModes": "no",  # the folder of a run lies below one that all may write to
        "DisableForwarding": "yes",
        "MaxStartups": 200,
        "Subsystem": "sftp internal-sftp",
        "ForceCommand": "internal-sftp",
    }
    (folder / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd insists
    server.daemon("sshd", "-D", "-e", "-f", str(folder / "sshd_config"))
    server.wait_for(port, speaks_ssh)
    return {"host": "127.0.0.1", "port": str(port), "username": user, "folder": str(folder)}


def azure(server: Server) -> dict[str, str]:
    """Start Azurite's blob service, in memory."""
    program("node")
    [port] = free_ports(1)
    account, key = server.access_key, base64.b64encode(secrets.token_bytes(48)).decode()
    server.daemon(
        *("azurite-blob", "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent"),
        *("--skipApiVersionCheck", "--disableTelemetry"),
        environ={"AZURITE_ACCOUNTS": f"{account}:{key}"},
    )
    server.wait_for(port)
    return {"endpoint": f"http://127.0.0.1:{port}", "account": account, "key": key}


def gcs(server: Server) -> dict[str, str]:
    """Start fake-gcs-server, in memory. It asks for no credentials."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    binary = next(home().glob(f"lib/python*/site-packages/*/vendor/*/bin/fake-gcs-server-linux-{machine}"), None)
    if binary is None:
        raise CannotStart(f"fake-gcs-server is not installed; {INSTALL}")
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    server.daemon(
        *(str(binary), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"),
        *("-external-url", url, "-public-host", f"127.0.0.1:{port}", "-log-level", "warn"),
    )
    server.wait_for(port)
    return {"endpoint": url}


STARTERS = {
    "azure": azure,
    "gcs": gcs,
    "moto": moto,
    "rclone": rclone,
    "rgw": rgw,
    "seaweedfs": seaweedfs,
    "sftp": sftp,
}


def main(argv: Iterable[str]) -> None:
    """Start the server, tell of it, wait until nobody needs it, and leave nothing behind."""
    name, folder = argv
    server = Server(Path(folder))
    try:
        try:
            told = STARTERS[name](server) | {"access_key": server.access_key, "secret_key": server.secret_key}
        except (CannotStart, OSError, subprocess.SubprocessError) as error:
            told = {"error": str(error)}
        with suppress(BrokenPipeError):  # who asked may be dead by now, and others may have come
            print(json.dumps(told), flush=True)
        with open(Path(folder) / "users", "wb") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            server.stop()
            gone = f"{folder}.gone"
            os.rename(folder, gone)  # in one step, so that a process that comes now makes a new one
            shutil.rmtree(gone)
    finally:
        server.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
