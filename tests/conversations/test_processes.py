"""Two processes on one conversation: nothing is lost, and each sees at once what the other has written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from statestore import open_store
from statestore.conversations import Conversations, ConversationState
from statestore_local import LocalStore
from tests.conversations.places import contents, user
from tests.s3.harness import options, prepared

WORKER = """
import json, sys
from statestore import open_store
from statestore.conversations import Conversations, ConversationState
from statestore.errors import NotFound
url, options, catalog, name, times = json.loads(sys.argv[1])
talks = Conversations(open_store(url, **options), catalog=catalog)
print("ready", flush=True)
sys.stdin.readline()
for number in range(times):
    talks.merge_metadata("shared", {f"{name}{number}": number})
    talks.append_messages("shared", [{"role": "user", "content": f"{name}{number}"}])
    talks.append_list("shared", "l", [f"{name}{number}".encode()])
    talks.log_append("once", number, [{"role": "user", "content": str(number)}])
    mine = talks.load_metadata("shared")
    assert all(mine[f"{name}{earlier}"] == earlier for earlier in range(number + 1))
    if number % 3 == 0:
        talks.save(ConversationState(id="churned", user_id=name, messages=[{"role": "user", "content": name}] * 3))
        try:
            whole = talks.load("churned")
            assert {message.content for message in whole.messages} == {whole.user_id}, whole
            talks.fork("churned", "copy")
        except NotFound:
            pass
        talks.delete("churned")
"""


@pytest.mark.parametrize("where", ["files", "a bucket"])
def test_A98_processes_that_merge_append_save_and_delete_lose_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, where: str
) -> None:
    if where == "files":
        url, given, times = str(tmp_path / "state"), {"sync": "never"}, 40
    else:
        rgw = request.getfixturevalue("rgw")
        url, given, times = prepared(rgw, request.getfixturevalue("bucket")), options(rgw), 4

    def start(name: str) -> subprocess.Popen[str]:
        told = json.dumps([url, given, str(tmp_path / f"{name}.sqlite3"), name, times])
        command = [sys.executable, "-c", WORKER, told]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    workers = [start(name) for name in "ab"]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=300)
        assert worker.returncode == 0
    talks = Conversations(open_store(url, **given), catalog=tmp_path / "catalog")
    expected = {f"{name}{number}": number for name in "ab" for number in range(times)}
    found = talks.load("shared")
    assert found.metadata == expected
    assert sorted(contents(found.messages)) == sorted(expected)
    items = [item.decode() for item in talks.load_list("shared", "l")]
    assert sorted(items) == sorted(expected)
    for name in "ab":
        for order in (items, contents(found.messages)):
            assert [one for one in order if one[0] == name] == [f"{name}{number}" for number in range(times)]
    assert contents(talks.load("once").messages) == [str(number) for number in range(times)]
    assert len({*contents(talks.load("copy").messages), talks.load("copy").user_id}) == 1


def test_A99_a_forked_process_goes_on_beside_its_parent_whose_threads_are_busy(tmp_path: Path) -> None:
    talks = Conversations(LocalStore(tmp_path, sync="never"), catalog=tmp_path / "catalog")
    talks.append_messages("c", [user("before")])
    stop: list[bool] = []

    def busy() -> None:
        while not stop:
            talks.message_count("c")

    thread = Thread(target=busy)
    thread.start()
    children = []
    for number in range(3):
        child = os.fork()
        if child == 0:
            try:
                talks.append_messages("c", [user(f"child {number}")])
                talks.save(ConversationState(id=f"d{number}"))
                os._exit(0 if talks.message_count("c") >= 2 else 1)
            except BaseException:
                os._exit(2)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    stop.append(True)
    thread.join()
    assert codes == [0, 0, 0]
    assert sorted(contents(talks.load("c").messages)) == ["before", "child 0", "child 1", "child 2"]
    assert talks.list() == ["c", "d0", "d1", "d2"]
