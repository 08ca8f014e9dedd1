"""Each guide does what it says, run from its first block to its last on the server that stands for the provider."""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from statestore import NEW, Sessions, open_store
from statestore.errors import Unavailable
from tests.guides.guide import Guide, Stand, run
from tests.pages import DOCS, Page
from tests.s3.harness import options
from tests.servers import Azure, Gcs, Rgw, S3Server, Sftp


def keys(server: S3Server) -> dict[str, str]:
    return {
        "my-bucket": server.new_bucket(),
        "your-access-key": server.access_key,
        "your-secret-key": server.secret_key,
    }


def credentials(server: S3Server) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def test_s3(rgw: Rgw, tmp_path: Path) -> None:
    run(Guide("s3"), Stand(keys(rgw), {"AWS_ENDPOINT_URL": rgw.endpoint}), tmp_path)


@pytest.mark.parametrize("name", ["rgw", *(["seaweedfs"] if os.environ.get("STATESTORE_CONFORM") else [])])
def test_s3_compatible_servers(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: S3Server = request.getfixturevalue(name)
    run(Guide("s3-compatible"), Stand(keys(server) | {"https://s3.example.com": server.endpoint}), tmp_path)


def test_the_commands_of_sync_md(rgw: Rgw, tmp_path: Path) -> None:
    """From a laptop to a bucket, and a backup of the bucket."""
    with Sessions(open_store(tmp_path / "sessions")).start() as session:
        session.append("message", b"hello")
    names = {
        "s3://bucket/": f"s3://{rgw.new_bucket()}/",
        "/backup/": f"{tmp_path}/backup/",
        "/var/log/": f"{tmp_path}/",
    }
    run(Page(DOCS / "sync.md"), Stand(names, credentials(rgw)), tmp_path)
    assert [path.name for path in (tmp_path / "backup" / "agents").iterdir()] == [f"{session.id}.state"]


def test_a_server_that_ignores_the_condition_is_told_in_the_words_of_the_guide(rclone: S3Server) -> None:
    with (
        open_store(f"s3://{rclone.new_bucket()}/agents", **options(rclone)) as store,
        pytest.raises(Unavailable) as refused,
    ):
        store.append("notes", b"x", at=NEW)
    words = "takes the condition of an exclusive create and ignores it"
    assert words in refused.value.message
    assert f"*{words}*" in Guide("s3-compatible").text.replace("\n  ", " ")


@contextmanager
def tokens(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Run a server that gives a token to whoever asks; yield a key file that names it, and what was asked for."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            body = json.dumps({"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        facts = {
            "type": "service_account",
            "project_id": "test",
            "private_key_id": "1",
            "private_key": key.decode(),
            "client_email": "agents@test.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"http://127.0.0.1:{server.server_port}/token",
        }
        path = folder / "key.json"
        path.write_text(json.dumps(facts))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield path, asked
        finally:
            server.shutdown()
            thread.join()


def test_gcs(gcs: Gcs, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with tokens(tmp_path) as (key, asked):
        stand = Stand(
            {"my-bucket": gcs.new_bucket(), "your-key.json": str(key)}, {"STORAGE_EMULATOR_HOST": gcs.endpoint}
        )
        run(Guide("gcs"), stand, home)
    assert len(asked) == 3, "each command asks once for a token, with the key that the guide names"


def test_azure(azure: Azure, tmp_path: Path) -> None:
    names = {
        "my-container": azure.new_container(),
        "AccountName=youraccount;AccountKey=your-key": f"AccountName={azure.account};AccountKey={azure.key}",
        "Protocol=https;": "Protocol=http;",
        "EndpointSuffix=core.windows.net": f"BlobEndpoint={azure.endpoint}/{azure.account}",
    }
    run(Guide("azure"), Stand(names), tmp_path)


def test_sftp(sftp: Sftp, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    shutil.copy(Path(sftp.folder, "client"), home / ".ssh" / "id_ed25519")
    shutil.copy(Path(sftp.folder, "known_hosts"), home / ".ssh" / "known_hosts")
    theirs = "sftp://agents@files.example.com/srv/agents"
    run(Guide("sftp"), Stand({theirs: sftp.url(uuid.uuid4().hex)}), home)
