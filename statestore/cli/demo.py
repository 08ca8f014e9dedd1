"""``demo``: what statestore promises, done for real in front of whoever watches."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from statestore.cli.screen import Screen, describe, emit, plural
from statestore.cli.targets import Json

if TYPE_CHECKING:
    from statestore.sessions import Sessions

__all__ = ["demo"]

_TRIES: Final = 8  # how often a kill may come when the write is over already


def demo(
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Leave everything in this directory, new or empty.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """See it work: a session, a crash, a fork, a race.

    Everything is done on a real store in a temporary directory, without a network: a process is killed while it
    writes, and two writers race for one place.

    \b
    Examples:
      statestore demo
      statestore demo --keep ./demo
    """
    from statestore.plugins import open_store
    from statestore.sessions import Sessions

    with _directory(keep) as root, open_store(root) as store:
        facts = _Demo(root, Sessions(store), None if json else Screen()).run(kept=keep is not None)
    if json:
        emit(facts)


@contextlib.contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="statestore-demo-") as root:
            yield Path(root)
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise typer.BadParameter("the directory to keep it in must be new or empty")
    yield keep


class _Demo:
    """The acts, one after another; each leaves in `facts` what it found."""

    def __init__(self, root: Path, sessions: Sessions, screen: Screen | None) -> None:
        self.root = root
        self.sessions = sessions
        self.store = sessions.store
        self.screen = screen
        self.facts: dict[str, Any] = {"store": os.fspath(root)}
        self.act = 0
        self.holder: object = None

    def run(self, *, kept: bool) -> dict[str, Any]:
        """Play all acts, and return the facts."""
        id_ = self.begin()
        self.crash(id_)
        self.recover(id_)
        fork = self.fork(id_)
        self.race(fork)
        self.verify()
        self.look(id_)
        self.farewell(id_, kept=kept)
        return self.facts

    def begin(self) -> str:
        from statestore.records import MESSAGE
        from statestore.sessions import Conf

        self.title("A session is a file that only grows")
        conf = Conf(model="demo-model", tools="default", workers=None, context=200_000, input=None)
        with self.sessions.start(conf) as session:
            session.append(MESSAGE, b"Which sessions are there on this machine?", via="cli", type="text/plain")
        self.facts["session"] = session.id
        self.say(self.sessions.path(session.id), "dim")
        self.tell(session.id)
        return session.id

    def crash(self, id_: str) -> None:
        """Have another process take the agent's turn, and kill it while it appends."""
        from statestore.cli.crash import OUTPUT_SIZE
        from statestore.store import NEW

        self.title("Its process is killed in the middle of an append")
        before = self.store.read(id_)
        tries = 1
        while not self.kill_writer(id_) and tries < _TRIES:
            # The write was over before the kill came: lay the session out as it was, and try again.
            self.store.delete(id_)
            self.store.append(id_, before, at=NEW)
            tries += 1
        facts = self.facts
        facts["kills"] = tries
        numbers = ", ".join(map(str, facts["acknowledged"]))
        self.say(f"Process {facts['pid']} opened the session, and the model called a tool.")
        self.say(f"Meanwhile this process wanted to append and was refused: {self.holder} holds it.")
        self.say(f"Acknowledged to the process: the records {numbers}.")
        self.say(f"Then it began to append the tool's output, {plural(OUTPUT_SIZE, 'byte')}, and got SIGKILL.")
        if facts["torn"]:
            late = f" ({plural(tries - 1, 'kill')} before came too late.)" if tries > 1 else ""
            self.say(f"It left {plural(facts['torn'], 'byte')} of a record without an end.{late}", "yellow")
        else:
            self.say(f"The write was faster than {_TRIES} kills: this time nothing is torn.", "yellow")

    def kill_writer(self, id_: str) -> int:
        """Start the writer, kill it as soon as its last record begins to show, and return how much that tore."""
        from statestore.errors import Held, Unavailable
        from statestore.records import verify

        file = self.sessions.path(id_)
        command = [sys.executable, "-P", "-m", "statestore.cli.crash", self.root.absolute().as_uri(), id_]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            try:
                answer = writer.stdout.readline().decode("ascii").split()
                if not answer:
                    raise Unavailable("the demo's other process did not start: see what it says above")
                try:
                    self.sessions.open(id_).close()
                except Held as error:
                    self.facts["refused"] = describe(error)
                    self.holder = error.holder
                size = os.stat(file).st_size
                writer.stdin.write(b"go on\n")
                writer.stdin.flush()
                # The kernel shows the file growing while the write goes on.
                while os.stat(file).st_size == size and writer.poll() is None:
                    pass
            finally:
                writer.kill()
        acknowledged = {int(number): digest for number, _, digest in (word.partition(":") for word in answer)}
        torn = verify(self.store, id_).torn
        self.facts |= {"pid": writer.pid, "status": writer.returncode, "acknowledged": acknowledged, "torn": torn}
        return torn

    def recover(self, id_: str) -> None:
        from statestore.records import STEP, TEXT, RecordLog, Usage

        self.title("It is opened again, and nothing acknowledged is lost")
        with self.sessions.open(id_) as session:
            found = {record.n: hashlib.sha256(record.raw).hexdigest() for record in RecordLog(self.store, id_)}
            lost = [n for n, digest in self.facts["acknowledged"].items() if found.get(n) != digest]
            aside = sorted(name for name in os.listdir(self.root) if name.startswith(f".{id_}.cut-"))
            self.facts |= {"lost": lost, "aside": aside}
            self.say(
                f"Lost: {', '.join(map(str, lost))}!" if lost else "Every acknowledged record is there, byte for byte.",
                "bold red" if lost else "green",
            )
            for name in aside:
                size = os.stat(self.root / name).st_size
                self.say(f"The torn end was cut, and kept aside: {name}, {plural(size, 'byte')}")
            first = len(found) + 1
            closed = session.close_waiting("the process died before the tool was done")
            self.facts["closed"] = [record.n for record in closed]
            self.say("The call that waits for its result gets one, once, and the agent ends its turn:")
            session.append(TEXT, b"The search was cut short. Shall I try again?", step="5eed0002", type="text/plain")
            session.append(
                STEP,
                b'{"stop_reason":"end_turn"}',
                id="5eed0002",
                upto=first,
                model="demo-model",
                usage=Usage(input=431, output=18, cache_read=412),
            )
        self.tell(id_, 4)
        self.facts["session_status"] = str(self.sessions.status(id_))
        self.say(f"status: {self.facts['session_status']}")

    def fork(self, id_: str) -> str:
        """Go back to before the model's answer, and go another way."""
        from statestore.records import MESSAGE

        self.title("Going back is a fork")
        before = self.store.read(id_)
        fork = self.sessions.fork(id_, before=4)
        with self.sessions.open(fork) as session:
            session.append(MESSAGE, b"Look in /srv/sessions only.", via="cli", type="text/plain")
        unchanged = self.store.read(id_) == before
        self.facts |= {"fork": fork, "parent_unchanged": unchanged}
        self.say(f"{fork} is made of the records in front of number 4, byte for byte, and goes another way:")
        self.tell(fork, 3)
        self.say(f"{id_}, which it came from, is {'as it was' if unchanged else 'changed!'}.")
        return fork

    def race(self, log: str) -> None:
        """Let two writers, each with a store of its own, append to one place at the same time."""
        from statestore.errors import Conflict
        from statestore.plugins import open_store
        from statestore.records import MESSAGE, Record, RecordLog

        self.title("Two writers race for one place: one wins, the other is told")
        place = RecordLog(self.store, log).count() + 1
        start = threading.Barrier(2)
        results: dict[str, Record | Conflict] = {}

        def write(writer: str) -> None:
            with open_store(self.root) as store:
                mine = RecordLog(store, log)
                start.wait()
                try:
                    results[writer] = mine.append(MESSAGE, f"{writer} was here".encode(), via=writer, expect=place)
                except Conflict as error:
                    results[writer] = error
                    mine.append(MESSAGE, f"{writer} comes second".encode(), via=writer)

        writers = [threading.Thread(target=write, args=(name,)) for name in ("alice", "bob")]
        for thread in writers:
            thread.start()
        for thread in writers:
            thread.join()
        winners = [name for name, result in results.items() if isinstance(result, Record)]
        told = {name: describe(result) for name, result in results.items() if isinstance(result, Conflict)}
        self.facts["race"] = {"place": place, "winners": winners, "told": told}
        for name, error in told.items():
            self.say(f"alice and bob append record {place}. {' and '.join(winners)} wins; {name} is told:")
            self.say(f"  {error['message']}", "yellow")
            self.say(f"{name} does, and appends behind it:")
        self.tell(log, place)

    def verify(self) -> None:
        from statestore.records import verify

        self.title("Everything is read, and whole")
        rows = []
        for info in self.store.list():
            verdict = verify(self.store, info.name)
            rows.append({"log": info.name, "records": verdict.records, "size": verdict.size, "ok": verdict.ok})
            self.say(
                f"{'ok' if verdict.ok else 'corrupt'}  {info.name}  "
                f"{plural(verdict.records, 'record')}, {plural(verdict.size, 'byte')}"
            )
        self.facts["verify"] = rows

    def look(self, id_: str) -> None:
        """Show a record as it is on the disk."""
        self.title("What is on the disk is what was said: a header, a body, a newline")
        record = self.sessions.load(id_, before=4).records[2]
        with open(self.sessions.path(id_), "rb") as file:
            file.seek(record.offset)
            data = file.read(record.end - record.offset)
        self.facts["bytes"] = data.decode()
        for line in data.decode().removesuffix("\n").split("\n"):
            self.say(line, "cyan")

    def farewell(self, id_: str, *, kept: bool) -> None:
        if self.screen is None:
            return
        self.screen.put()
        store = os.fspath(self.root) if kept else "./demo"
        if kept:
            self.screen.put(("Try next:", "bold"))
            self.screen.put(f"   statestore show {store} {id_}")
        else:
            self.screen.put(("All of it is gone again. Keep it, and look around:", "bold"))
            self.screen.put(f"   statestore demo --keep {store}")
        self.screen.put(f"   statestore ls {store} --long")
        self.screen.put(f"   statestore verify {store}")

    def title(self, text: str) -> None:
        self.act += 1
        if self.screen:
            if self.act > 1:
                self.screen.put()
            self.screen.put((f"{self.act}  ", "bold cyan"), (text, "bold"))

    def say(self, text: str, style: str = "") -> None:
        if self.screen:
            self.screen.put((text, style), lead=["   "])

    def tell(self, id_: str, first: int = 1) -> None:
        """Show a session's records, from one on."""
        if self.screen is None:
            return
        from statestore.cli.story import Story

        story = Story()
        for record in self.sessions.load(id_):
            lines = story.tell(record, record.n)
            for line in lines if record.n >= first else ():
                if line.text:
                    self.screen.put(*line.text, lead=line.lead)
