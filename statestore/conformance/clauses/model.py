"""The model: random operations by several handles on several logs, beside a plain dict of bytes.

The oracle knows the contract and nothing of any backend. Hypothesis makes the operations and shrinks what fails;
without it the clause is not run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from statestore.conformance.case import Case, NotRun
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import Conflict, Exists, NotFound
from statestore.store import NEW, Store, Tail

_LOGS = ("a", "ab", "a/b", "a.b", "B", "a/b/c")
_HANDLES = 3


@dataclass
class _Log:
    """What the oracle knows of one log: its bytes, its run, and where its appends began."""

    data: bytes
    run: str
    starts: set[int] = field(default_factory=lambda: {0})


class Oracle:
    """The contract over a dict, one step at a time: it makes a call and checks the answer against what is due."""

    def __init__(self, case: Case, place: str) -> None:
        self.case = case
        self.place = place
        self.logs: dict[str, _Log] = {}
        self.sent: list[tuple[str, bytes, Tail]] = []
        self.runs: set[tuple[str, str]] = set()
        self.can = case.store.capabilities
        self.handles: list[Store] = [case.store]
        if case.harness.reopen is not None:
            self.handles += [case.other() for _ in range(_HANDLES - 1)]

    def tail(self, log: str) -> Tail:
        """Return where the log ends."""
        found = self.logs.get(log)
        return NEW if found is None else Tail(len(found.data), found.run)

    def _new(self, log: str, data: bytes, run: str) -> None:
        self.logs[log] = _Log(data, run)
        if self.can.runs:
            that((log, run) not in self.runs and run, f"the run {run!r} of {log!r} is not a new one")
            self.runs.add((log, run))

    def append(self, store: Store, log: str, data: bytes, at: Tail) -> None:
        """Append, and check what came of it."""
        name = self.place + log
        found = self.logs.get(log)
        self.sent.append((log, data, at))
        if found is None and at == NEW:
            tail = store.append(name, data, at=at)
            equal(tail.size, len(data), "the size after a creation")
            self._new(log, data, tail.run)
        elif found is None:
            refused(NotFound, store.append, name, data, at=at)
        elif at == self.tail(log):
            tail = store.append(name, data, at=at)
            found.starts.add(len(found.data))
            found.data += data
            equal(tail, self.tail(log), "the tail after an append")
        elif (at.size == 0 or at.run == found.run) and found.data[at.size : at.size + len(data)] == data:
            equal(store.append(name, data, at=at), Tail(at.size + len(data), found.run), "the tail of a repetition")
        else:
            error = refused(Conflict, store.append, name, data, at=at)
            equal(error.found, self.tail(log), "the tail that a conflict carries")

    def copy(self, store: Store, source: str, target: str, stop: int | None) -> None:
        """Copy, and check what came of it."""
        names = (self.place + source, self.place + target)
        if source not in self.logs and target in self.logs:
            refused((NotFound, Exists), store.copy, *names, stop=stop)
        elif source not in self.logs:
            refused(NotFound, store.copy, *names, stop=stop)
        elif target in self.logs:
            refused(Exists, store.copy, *names, stop=stop)
        else:
            data = self.logs[source].data[:stop]
            tail = store.copy(*names, stop=stop)
            equal(tail.size, len(data), "the size of a copy")
            self._new(target, data, tail.run)
            # A copy may begin anew with one append, or remember those of its source.
            self.logs[target].starts |= {start for start in self.logs[source].starts if start < len(data)}

    def delete(self, store: Store, log: str, at: Tail | None) -> None:
        """Delete, and check what came of it."""
        name = self.place + log
        if log not in self.logs:
            refused(NotFound, store.delete, name, at=at)
        elif at is not None and at != self.tail(log):
            equal(refused(Conflict, store.delete, name, at=at).found, self.tail(log), "the tail of a conflict")
        else:
            store.delete(name, at=at)
            del self.logs[log]

    def cut(self, store: Store, log: str, size: int, at: Tail) -> None:
        """Cut, and check what came of it."""
        name = self.place + log
        found = self.logs.get(log)
        size = min(size, at.size)
        if found is None:
            refused(NotFound, store.cut, name, size, at=at)
        elif at != self.tail(log):
            equal(refused(Conflict, store.cut, name, size, at=at).found, self.tail(log), "the tail of a conflict")
        else:
            equal(store.cut(name, size, at=at), found.data[size:], "the bytes that were cut")
            found.data = found.data[:size]
            found.starts = {start for start in found.starts if start < size}
            if not size:
                del self.logs[log]

    def look(self, store: Store, log: str, start: int, stop: int | None) -> None:
        """Read by every way, and compare."""
        name = self.place + log
        found = self.logs.get(log)
        if found is None:
            refused(NotFound, store.read, name, start, stop)
            refused(NotFound, store.tail, name)
            return
        equal(store.read(name, start, stop), found.data[start:stop], f"read of [{start}, {stop})")
        equal(b"".join(store.stream(name, start, stop)), found.data[start:stop], f"stream of [{start}, {stop})")
        equal(store.tail(name), self.tail(log), "tail()")
        place = store.boundary(name, start)
        that(place <= start and place in found.starts, f"boundary({start}) is {place}, where no append began")

    def listing(self, store: Store, prefix: str, after: str) -> None:
        """List with tails, and compare."""
        rows = store.list(self.place + prefix, after=self.place + after if after else "", tails=True)
        expected = [log for log in sorted(self.logs) if log.startswith(prefix) and log > after]
        got = [(row.name, row.tail) for row in rows]
        equal(got, [(self.place + log, self.tail(log)) for log in expected], f"list({prefix!r}, after={after!r})")

    def reopen(self, number: int, crash: bool) -> None:
        """Close a handle, or crash it, and open another in its place; a store of one handle only goes on."""
        if self.case.harness.reopen is None:
            return
        if crash and self.case.harness.crash is not None:
            self.case.crash(self.handles[number])
        else:
            self.handles[number].close()
        self.handles[number] = self.case.other()

    def end(self) -> None:
        """Compare everything, through every handle."""
        for store in self.handles:
            self.listing(store, "", "")
            for log in _LOGS:
                self.look(store, log, 0, None)


@clause("model")
def random_operations_agree_with_the_model(case: Case) -> None:
    """A rare order of ordinary steps loses, doubles or mixes what people have said."""
    try:
        from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
        from hypothesis import strategies as st
        from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
    except ImportError as error:
        raise NotRun("hypothesis is missing") from error

    logs = st.sampled_from(_LOGS)
    number = st.integers(0, _HANDLES - 1)
    bodies = st.one_of(st.sampled_from([b"x", b"xx", b"\n", b"\r\n", b"\x00"]), st.binary(min_size=1, max_size=12))
    offsets = st.integers(0, 30)
    seldom = st.sampled_from([False, False, False, True])
    places = iter(range(1 << 30))

    class Machine(RuleBasedStateMachine):
        """Hypothesis's view of the oracle; each example has a folder of its own."""

        def __init__(self) -> None:
            super().__init__()
            case.trace.clear()
            case.calls = 0
            self.oracle = Oracle(case, f"m{next(places)}/")

        def handle(self, n: int) -> Store:
            return self.oracle.handles[n % len(self.oracle.handles)]

        def there(self, log: str) -> str:
            """Return a log that is there, if there is one: of one that is not, there is little to find out."""
            return self.near(log, [name for name in _LOGS if name in self.oracle.logs])

        def free(self, log: str) -> str:
            """Return a log that is not there, if there is one."""
            return self.near(log, [name for name in _LOGS if name not in self.oracle.logs])

        def near(self, log: str, some: list[str]) -> str:
            return some[_LOGS.index(log) % len(some)] if some and log not in some else log

        @initialize(some=st.lists(bodies, min_size=2, max_size=6))
        def plant(self, some: list[bytes]) -> None:
            for place, data in enumerate(some):
                self.append(0, _LOGS[place % 3], data)

        @rule(n=number, log=logs, data=bodies)
        def append(self, n: int, log: str, data: bytes) -> None:
            self.oracle.append(self.handle(n), log, data, self.oracle.tail(log))

        @rule(n=number, log=logs, data=bodies, size=offsets)
        def append_somewhere(self, n: int, log: str, data: bytes, size: int) -> None:
            run = self.oracle.tail(log).run if size else ""
            self.oracle.append(self.handle(n), log, data, Tail(size, run))

        @precondition(lambda self: self.oracle.sent)
        @rule(n=number, which=st.integers(0, 1000))
        def append_again(self, n: int, which: int) -> None:
            log, data, at = self.oracle.sent[which % len(self.oracle.sent)]
            self.oracle.append(self.handle(n), log, data, at)

        @rule(n=number, source=logs, to=logs, stop=st.none() | st.integers(1, 30), as_is=seldom)
        def copy(self, n: int, source: str, to: str, stop: int | None, as_is: bool) -> None:
            names = (source, to) if as_is else (self.there(source), self.free(to))
            self.oracle.copy(self.handle(n), *names, stop)

        @precondition(lambda self: self.oracle.can.deletes)
        @rule(n=number, log=logs, at=st.sampled_from(["any", "tail", "old"]), which=st.integers(0, 1000))
        def delete(self, n: int, log: str, at: str, which: int) -> None:
            tail: Tail | None = None if at == "any" else self.oracle.tail(log)
            if at == "old" and self.oracle.sent:
                tail = self.oracle.sent[which % len(self.oracle.sent)][2]
            self.oracle.delete(self.handle(n), log, tail)

        @precondition(lambda self: self.oracle.can.cuts)
        @rule(n=number, log=logs, size=offsets, away=seldom, all_of_it=seldom)
        def cut(self, n: int, log: str, size: int, away: bool, all_of_it: bool) -> None:
            log = self.there(log)
            tail = self.oracle.tail(log)
            if tail.size:
                size = 0 if all_of_it else 1 + size % tail.size
                self.oracle.cut(self.handle(n), log, size, Tail(tail.size + away, tail.run))

        @rule(n=number, log=logs, start=offsets, stop=st.none() | offsets)
        def look(self, n: int, log: str, start: int, stop: int | None) -> None:
            self.oracle.look(self.handle(n), log, start, stop)

        @rule(n=number, prefix=st.sampled_from(["", "a", "a/", "ab", "B", "z"]), after=st.just("") | logs)
        def list(self, n: int, prefix: str, after: str) -> None:
            self.oracle.listing(self.handle(n), prefix, after)

        @rule(n=st.integers(1, _HANDLES - 1), crash=st.booleans())
        def reopen(self, n: int, crash: bool) -> None:
            self.oracle.reopen(n, crash)

        def teardown(self) -> None:
            self.oracle.end()
            for store in self.oracle.handles[1:]:
                store.close()

    profile: Any = settings(
        max_examples=case.sized(120, 10),
        stateful_step_count=30,
        deadline=None,
        database=None,
        derandomize=True,  # a report that nobody can repeat is worth little
        print_blob=False,
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine if case.seed is None else seed(case.seed)(Machine), settings=profile)
