"""The policies, signatures and settings under Rights are enough for whom they are meant, and not more than enough.

Google's emulator knows no rights, and Azurite no roles: what those say is only compared with the rights that are
needed, in test_text.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from statestore import NEW, Store, open_store
from statestore.errors import Unavailable
from tests.guides.guide import Guide
from tests.s3.harness import options
from tests.servers import Azure, Rgw, Sftp

ROLES = ("reader", "writer", "gc")


def failing(store: Store) -> set[str]:
    """Return what the doctor finds to be missing."""
    upkeep = store.maintenance
    assert upkeep is not None
    return {finding.check for finding in upkeep.examine() if not finding.ok}


def try_roles(stores: Mapping[str, Store], put: str) -> None:
    """Let each role do what it is for, and nothing else."""
    reader, writer, collector = (stores[role] for role in ROLES)
    tail = writer.append("notes", b"data", at=NEW)
    assert failing(writer) == {"right to delete"}
    assert reader.read("notes") == b"data"
    assert [info.name for info in reader.list(tails=True)] == ["notes"]
    assert reader.snapshot("notes").tail == tail
    with pytest.raises(Unavailable) as refused:
        reader.append("notes", b"more", at=tail)
    assert refused.value.facts["needs"] == put
    assert failing(collector) == set()
    writer.append("notes", b"more", at=tail)


def user(rgw: Rgw, bucket: str) -> tuple[Rgw, str, str]:
    """Return the keys of a new user, and how a policy names the bucket's owner and him."""
    keys = rgw.limited(bucket)
    policy = json.loads(rgw.client().get_bucket_policy(Bucket=bucket)["Policy"])
    owner, name = policy["Statement"][-1]["Principal"]["AWS"]
    return keys, owner, name


def put_policy(rgw: Rgw, bucket: str, owner: str, statements: list[dict[str, Any]]) -> None:
    """Put a policy on a bucket in which the owner, too, may read what others have written."""
    what = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
    ours = {"Effect": "Allow", "Principal": {"AWS": [owner]}, "Action": ["s3:*"], "Resource": what}
    policy = {"Version": "2012-10-17", "Statement": [*statements, ours]}
    rgw.client().put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def try_s3(bucket: str, keys: Mapping[str, Rgw]) -> None:
    stores = {role: open_store(f"s3://{bucket}/agents", **options(keys[role])) for role in ROLES}
    try:
        try_roles(stores, "s3:PutObject")
    finally:
        for store in stores.values():
            store.close()


def test_s3_the_statements_of_the_policy_make_three_roles(rgw: Rgw) -> None:
    bucket = rgw.new_bucket()
    said = json.loads(Guide("s3").block("json").replace("my-bucket", bucket))["Statement"]
    users = {role: user(rgw, bucket) for role in ROLES}
    statements = [
        # A policy that hangs on a user is, on a bucket, one that names him.
        {**statement, "Principal": {"AWS": [name]}, "Sid": f"{statement['Sid']}{role}"}
        for (role, (_, _, name)), count in zip(users.items(), (2, 3, 4), strict=True)
        for statement in said[:count]
    ]
    put_policy(rgw, bucket, users["reader"][1], statements)
    try_s3(bucket, {role: keys for role, (keys, *_) in users.items()})


def test_ceph_the_policy_of_the_bucket_makes_three_roles(rgw: Rgw) -> None:
    bucket = rgw.new_bucket()
    users = {role: user(rgw, bucket) for role in ROLES}
    text = Guide("s3-compatible").block("json").replace("my-bucket", bucket)
    for role, shown in zip(ROLES, ("reader", "agent", "collector"), strict=True):
        text = text.replace(f"arn:aws:iam:::user/{shown}", users[role][2])
    put_policy(rgw, bucket, users["reader"][1], json.loads(text)["Statement"])
    try_s3(bucket, {role: keys for role, (keys, *_) in users.items()})


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_azure_the_signatures_make_three_roles(azure: Azure) -> None:
    from azure.storage.blob import ContainerSasPermissions, generate_container_sas

    container = azure.new_container()
    stores = {}
    for who, _, letters, _ in Guide("azure").table("Rights"):
        sas = generate_container_sas(
            azure.account,
            container,
            azure.key,
            permission=ContainerSasPermissions.from_string(letters.strip("`")),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        joined = f"BlobEndpoint={azure.endpoint}/{azure.account};SharedAccessSignature={sas}"
        stores[who.strip("`")] = open_store(f"az://{container}/agents", connection_string=joined, backoff=0.01)
    try:
        try_roles(stores, "Write")
    finally:
        for store in stores.values():
            store.close()


def test_sftp_the_server_takes_the_settings(sftp: Sftp, tmp_path: Path) -> None:
    sshd = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin:/usr/local/sbin")
    assert sshd, "the fixture has started one"
    settings = tmp_path / "sshd_config"
    settings.write_text(f"HostKey {sftp.folder}/host\n{Guide('sftp').block('sshd')}")
    for name, command in (("reader", "internal-sftp -R"), ("agents", "internal-sftp -u 0007")):
        facts = f"user={name},host=files.example.com,addr=192.0.2.1"
        ran = subprocess.run([sshd, "-T", "-f", str(settings), "-C", facts], capture_output=True, text=True)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert {f"forcecommand {command}", "disableforwarding yes"} <= set(ran.stdout.splitlines())
