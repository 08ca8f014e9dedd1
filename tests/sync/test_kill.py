"""The command, killed without a warning at random moments: all that it said is there, and the next one goes on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from statestore import RecordLog, draft
from statestore_local import LocalStore

from .stores import contents

KILLS = int(os.environ.get("STATESTORE_SYNC_KILLS", "10"))


def test_a_sync_killed_at_random_moments_loses_nothing_and_is_taken_up(tmp_path: Path) -> None:
    source = LocalStore(tmp_path / "source", sync="never")
    draws = random.Random(5)
    for number in range(60):
        bodies = [draws.randbytes(draws.choice([10, 1000, 50_000])) for _ in range(5)]
        # Names and sizes in random order, some of several pieces.
        name = f"{draws.randrange(16**4):04x}/{number}"
        RecordLog(source, name).append_many([draft("message", body) for body in bodies], expect=1)
    RecordLog(source, "8/large").append_many([draft("message", draws.randbytes(9 << 20))] * 2, expect=1)
    whole = contents(source)
    sizes = sum(map(len, whole.values()))
    command = [sys.executable, "-P", "-m", "statestore", "sync", str(tmp_path / "source"), str(tmp_path / "target")]
    command += ["--json", "--workers", "4", "--state", str(tmp_path / "state")]
    env = os.environ | {"PYTHONUNBUFFERED": "1"}

    amid = 0
    for kill in range(KILLS):
        if kill % 10 == 0:
            subprocess.run(["rm", "-rf", tmp_path / "target", tmp_path / "state"], check=True)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
            assert process.stdout is not None
            told = [process.stdout.readline() for _ in range(draws.randrange(12))]
            # Where nothing was awaited, it is killed as soon as it has begun to write.
            while not told and process.poll() is None and not (tmp_path / "target").is_dir():
                pass
            process.kill()
            told += process.stdout.readlines()
        # With its tails, since an append to a new log that is killed may leave an empty file, which is no log.
        target = LocalStore(tmp_path / "target")
        found = {info.name: target.read(info.name) for info in target.list(tails=True)}
        assert all(whole[log].startswith(data) for log, data in found.items())
        rows = [json.loads(line) for line in told if line.endswith(b"\n")]
        for row in rows:
            if "log" in row:
                assert row["state"] in ("copied", "equal")
                assert found[row["log"]] == whole[row["log"]]
        amid += sum(map(len, found.values())) < sizes
    assert amid >= KILLS // 3
    ran = subprocess.run(command, capture_output=True)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert contents(LocalStore(tmp_path / "target")) == whole
    ran = subprocess.run(command, capture_output=True)
    assert json.loads(ran.stdout.splitlines()[-1])["summary"]["equal"] == len(whole)
