"""A store that is only read passes on all that looks, and nothing that changes reaches the storage."""

from __future__ import annotations

from unittest.mock import create_autospec

import pytest

from statestore import RecordLog, open_store
from statestore.errors import Closed, InvalidName, NotSupported
from statestore.store import NEW, Capabilities, Maintenance, Store, Tail
from statestore.wrappers import ReadOnly
from statestore_local import LocalStore
from statestore_memory import MemoryStore

ALL = Capabilities(
    flushes=True, shared=True, atomic_append=True, runs=True, holds=True, deletes=True, cuts=True, boundaries=True
)
CHANGES = {
    "append": lambda store, log: store.append(log, b"x", at=NEW),
    "copy": lambda store, log: store.copy("source", log),
    "copy from": lambda store, log: store.copy(log, "target"),
    "delete": lambda store, log: store.delete(log, at=Tail(1, "r")),
    "hold": lambda store, log: store.hold(log),
    "holder": lambda store, log: store.holder(log),
    "flush": lambda store, log: store.flush(log),
    "cut": lambda store, log: store.cut(log, 0, at=Tail(1, "r")),
    "compact": lambda store, log: store.maintenance.compact(log),
}
ELSE = {
    "collect": lambda store: store.maintenance.collect("a", dry_run=False),
    "examine": lambda store: store.maintenance.examine(),
    "probe": lambda store: store.maintenance.probe(),
}


@pytest.fixture
def inner():
    store = create_autospec(Store, instance=True)
    store.capabilities = ALL
    store.maintenance = create_autospec(Maintenance, instance=True)
    return store


def untouched(inner):
    return inner.mock_calls == [] and inner.maintenance.mock_calls == []


@pytest.mark.parametrize("call", CHANGES)
def test_a_call_that_changes_something_is_refused_and_the_storage_is_not_asked(inner, call):
    with pytest.raises(NotSupported, match="this store is only read: open it without ReadOnly") as caught:
        CHANGES[call](ReadOnly(inner), "log")
    assert caught.value.facts["call"] == call.split()[0]
    assert untouched(inner)


@pytest.mark.parametrize("call", ELSE)
def test_maintenance_that_writes_is_refused_and_the_storage_is_not_asked(inner, call):
    with pytest.raises(NotSupported):
        ELSE[call](ReadOnly(inner))
    assert untouched(inner)


@pytest.mark.parametrize("call", CHANGES)
def test_a_name_is_checked_before_a_call_is_refused(inner, call):
    with pytest.raises(InvalidName):
        CHANGES[call](ReadOnly(inner), "../up")
    assert untouched(inner)


@pytest.mark.parametrize("call", CHANGES)
def test_a_closed_store_says_so(call):
    store = ReadOnly(MemoryStore())
    maintenance = ReadOnly(create_autospec(Store, instance=True, capabilities=ALL))
    store.close()
    maintenance.close()
    with pytest.raises(Closed):
        CHANGES[call](maintenance if call == "compact" else store, "log")


def test_the_capabilities_say_what_is_left():
    inner = MemoryStore()
    truth = ReadOnly(inner).capabilities
    assert (truth.holds, truth.deletes, truth.cuts, truth.flushes) == (False,) * 4
    assert (truth.runs, truth.atomic_append, truth.cheap_tails) == (True,) * 3
    assert inner.capabilities.deletes


def test_a_flush_of_a_durable_store_only_looks_that_the_log_is_there(inner):
    inner.capabilities = Capabilities(durable=True, flushes=True)
    ReadOnly(inner).flush("log")
    assert [name for name, *_ in inner.mock_calls] == ["tail"]


def test_a_snapshot_is_read_and_not_copied():
    inner = MemoryStore()
    inner.append("log", b"data", at=NEW)
    snapshot = ReadOnly(inner).snapshot("log")
    assert (snapshot.read(1), b"".join(snapshot.stream(0, 2))) == (b"ata", b"da")
    with pytest.raises(NotSupported):
        snapshot.copy("copy")
    with pytest.raises(InvalidName):
        snapshot.copy("../up")
    assert [row.name for row in inner.list()] == ["log"]


def test_maintenance_that_looks_is_passed_on(inner):
    maintenance = ReadOnly(inner).maintenance
    assert maintenance.collect("a") is inner.maintenance.collect.return_value
    assert maintenance.check("b") is inner.maintenance.check.return_value
    inner.maintenance.collect.assert_called_once_with("a")
    inner.maintenance.check.assert_called_once_with("b")
    assert ReadOnly(MemoryStore()).maintenance is None


def test_a_torn_log_is_read_and_left_as_it_is(tmp_path):
    whole = RecordLog(LocalStore(tmp_path), "log")
    whole.append("message", b"one", expect=1)
    whole.append("message", b"two")
    file = tmp_path / "log.state"
    torn = file.read_bytes()[:-3]
    file.write_bytes(torn)
    log = RecordLog(open_store(f"readonly::{tmp_path}"), "log")
    assert [record.body for record in log] == [b"one"]
    assert [record.body for record in log.last(1)] == [b"one"]
    assert log.count() == 1
    for change in (lambda: log.append("message", b"two"), log.recover, lambda: log.copy("copy")):
        with pytest.raises(NotSupported):
            change()
    assert file.read_bytes() == torn
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".state") == ["log.state"]
