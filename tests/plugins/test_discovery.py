"""One plugin can fail in many ways, and never stops another."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from statestore.errors import PluginError
from statestore.plugins import Plugin, discover, open_store

HOOK = """
from statestore.plugins import Backend, hookimpl
from pydantic import BaseModel
class Options(BaseModel): pass
def backend(name, **changes):
    return Backend(**{"name": name, "schemes": (name,), "options": Options, "open": print, "summary": "x"} | changes)
@hookimpl
"""

BROKEN = {
    "raises while it is imported": ("raise RuntimeError('no shelf today')", RuntimeError, "no shelf today"),
    "needs a missing module": ("import a_module_that_nobody_has", ModuleNotFoundError, "a_module_that_nobody_has"),
    "is no Python": ("def (", SyntaxError, "invalid syntax"),
    "exits": ("import sys; sys.exit('bye')", SystemExit, "bye"),
    "has no hook": ("", PluginError, "hookimpl"),
    "marks an unknown hook": (
        HOOK + "def statestore_backends(): return []\n@hookimpl\ndef statestore_shelves(): return []",
        Exception,
        "unknown hook 'statestore_shelves'",
    ),
    "takes an unknown argument": (HOOK + "def statestore_backends(config): return []", Exception, "config"),
    "raises in its hook": (HOOK + "def statestore_backends(): return 1 / 0", ZeroDivisionError, "division"),
    "exits in its hook": (HOOK + "def statestore_backends(): raise SystemExit('bye')", SystemExit, "bye"),
    "returns None": (HOOK + "def statestore_backends(): pass", PluginError, "list of Backend"),
    "returns a Backend alone": (HOOK + "def statestore_backends(): return backend('bad')", PluginError, "list"),
    "returns something else": (HOOK + "def statestore_backends(): return ['bad']", PluginError, "list of Backend"),
    "offers a scheme twice": (
        HOOK + "def statestore_backends(): return [backend('bad'), backend('worse', schemes=('bad',))]",
        PluginError,
        "twice=bad",
    ),
    "offers a name twice": (
        HOOK + "def statestore_backends(): return [backend('bad'), backend('bad', schemes=('worse',))]",
        PluginError,
        "twice=bad",
    ),
    "opens a store while it is imported": (
        "from statestore.plugins import open_store; open_store('memory://')",
        PluginError,
        "must not",
    ),
}


def found(name: str) -> Plugin:
    (plugin,) = [plugin for plugin in discover() if plugin.name == name]
    return plugin


@pytest.mark.parametrize(("code", "kind", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_plugin_that_fails_keeps_its_exception_and_stops_nothing(install, backend, code, kind, says):
    install("aaa-broken", code, point="broken")
    backend("zzz")
    broken = found("broken")
    assert isinstance(broken.error, kind)
    assert says in str(broken.error)
    assert (broken.distribution, broken.version, broken.backends) == ("aaa-broken", "1.0", ())
    assert found("dist_zzz").error is None
    open_store("zzz://").close()
    open_store("memory://").close()


@pytest.mark.parametrize("text", [b"[statestore]\nno equals sign\n", b"[statestore]\n\xff = x\n"])
def test_a_distribution_whose_files_are_damaged_stops_nothing_either(install, backend, tmp_path, text):
    install("aaa-damaged", "")
    backend("zzz")
    # A copy further down the path is not imported, and does not count.
    copy = tmp_path / "copy" / "Dist.ZZZ-0.9.dist-info"
    copy.mkdir(parents=True)
    (copy / "METADATA").write_text("Metadata-Version: 2.1\nName: Dist.ZZZ\nVersion: 0.9\n")
    (copy / "entry_points.txt").write_text("[statestore]\nold = dist_zzz\n")
    sys.path.append(str(tmp_path / "copy"))
    try:
        (tmp_path / "site" / "aaa_damaged-1.0.dist-info" / "entry_points.txt").write_bytes(text)
        discover(refresh=True)
    finally:
        sys.path.remove(str(tmp_path / "copy"))
    (damaged,) = [plugin for plugin in discover() if plugin.distribution == "aaa-damaged"]
    assert damaged.error is not None
    assert "old" not in [plugin.name for plugin in discover()]
    assert found("dist_zzz").error is None
    open_store("zzz://").close()
    open_store("memory://").close()


def test_a_distribution_without_metadata_is_shown_and_stops_nothing(install, tmp_path):
    install("aaa-bare", "raise RuntimeError", point="bare")
    (tmp_path / "site" / "aaa_bare-1.0.dist-info" / "METADATA").unlink()
    discover(refresh=True)
    assert (found("bare").distribution, found("bare").version) == ("unknown", "unknown")
    assert found("bare").error is not None  # where warnings are errors, that of Python itself comes first
    open_store("memory://").close()


def test_an_interrupt_from_the_keyboard_is_no_fault_of_a_plugin(install):
    with pytest.raises(KeyboardInterrupt):
        install("aaa-slow", "raise KeyboardInterrupt")
    sys.modules.pop("aaa_slow", None)
    with pytest.raises(KeyboardInterrupt):  # and not "called while it was being loaded"
        discover(refresh=True)


def test_an_entry_point_may_name_an_object(install, tmp_path):
    code = HOOK.replace("@hookimpl", "class plugin:\n @hookimpl\n @staticmethod")
    install("dist-object", code + " def statestore_backends(): return [backend('object')]")
    assert isinstance(found("dist_object").error, PluginError)  # the module alone has no hook
    (points,) = (tmp_path / "site").glob("*/entry_points.txt")
    points.write_text("[statestore]\ndist_object = dist_object:plugin\n")
    discover(refresh=True)
    assert [backend.name for backend in found("dist_object").backends] == ["object"]


def test_the_built_in_backends_come_through_entry_points_like_all_others():
    memory = found("memory")
    assert (memory.distribution, memory.error) == ("statestore", None)
    assert [(backend.name, backend.schemes) for backend in memory.backends] == [("memory", ("memory",))]


def test_plugins_are_sorted_and_found_once(backend):
    backend("bbb")
    backend("aaa")
    switches = [plugin.switch for plugin in discover()]
    assert switches == sorted(switches)
    assert len(set(switches)) == len(switches)
    assert discover() is discover()


def test_a_refresh_finds_what_was_installed_meanwhile(backend, tmp_path):
    before = discover()
    backend("fresh")
    assert len(discover()) == len(before) + 1
    for file in (tmp_path / "site").glob("*.dist-info/*"):
        file.unlink()
    assert len(discover()) == len(before) + 1
    assert len(discover(refresh=True)) == len(before)


@pytest.mark.parametrize("words", ["off", " x , off ", "dist-shelf:off", "off,memory"])
def test_a_disabled_plugin_is_shown_and_not_imported(install, monkeypatch, words):
    monkeypatch.setenv("STATESTORE_PLUGINS_DISABLE", words)
    install("dist-shelf", "raise RuntimeError", point="off")
    assert found("off").disabled
    assert found("off").error is None
    assert "dist_shelf" not in sys.modules
    monkeypatch.delenv("STATESTORE_PLUGINS_DISABLE")
    assert not found("off").disabled
    assert isinstance(found("off").error, RuntimeError)


def test_a_scheme_of_a_disabled_plugin_is_refused_and_the_error_shows_it(monkeypatch):
    monkeypatch.setenv("STATESTORE_PLUGINS_DISABLE", "memory")
    with pytest.raises(PluginError, match="disabled=statestore:memory"):
        open_store("memory://")


def test_a_scheme_that_two_claim_names_both_and_opens_when_one_is_disabled(backend, monkeypatch):
    opened = backend("rival", schemes=("memory", "rival"), distribution="dist-rival", point="memory")
    with pytest.raises(PluginError) as caught:
        open_store("memory://x")
    assert caught.value.facts["plugins"] == "dist-rival:memory,statestore:memory"
    assert "STATESTORE_PLUGINS_DISABLE" in str(caught.value)
    assert [plugin.contested for plugin in discover() if plugin.name == "memory"] == [("memory://",)] * 2
    open_store("rival://").close()
    monkeypatch.setenv("STATESTORE_PLUGINS_DISABLE", "statestore:memory")
    open_store("memory://x").close()
    assert [url for url, _ in opened] == ["rival://", "memory://x"]


def test_a_name_that_two_claim_is_contested_too_since_its_variables_would_be(backend):
    backend("shelf")
    backend("shelf", schemes=("other",), distribution="dist-other")
    for url in ("shelf://", "other://"):
        with pytest.raises(PluginError, match="dist-other:dist_other,dist-shelf:dist_shelf"):
            open_store(url)


def test_many_threads_discover_once(install):
    install("dist-count", "import builtins; builtins.counted = getattr(builtins, 'counted', 0) + 1")
    import builtins

    builtins.counted = 0
    sys.modules.pop("dist_count")
    barrier = threading.Barrier(8)
    answers = []

    def look() -> None:
        barrier.wait()
        answers.append(discover(refresh=True))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert builtins.counted == 1
    del builtins.counted
    assert {tuple(plugin.switch for plugin in answer) for answer in answers} == {
        tuple(plugin.switch for plugin in discover())
    }


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_another_thread_discovers_is_not_locked_out():
    from statestore.plugins import _discovery

    taken, done = threading.Event(), threading.Event()

    def keep() -> None:
        with _discovery._cache.lock:
            taken.set()
            done.wait()

    thread = threading.Thread(target=keep)
    thread.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(30)  # a child that waits for ever is killed, and the test fails
            os._exit(0 if discover() else 1)
        finally:
            os._exit(2)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


FIELDS = {
    "a list of schemes": ({"schemes": ["shelf"]}, TypeError, "tuple"),
    "a scheme alone": ({"schemes": "shelf"}, TypeError, "tuple"),
    "no scheme": ({"schemes": ()}, ValueError, "at least one"),
    "a drive letter": ({"schemes": ("c",)}, ValueError, "two or more"),
    "an upper-case scheme": ({"schemes": ("Shelf",)}, ValueError, "a-z"),
    "a scheme with its slashes": ({"schemes": ("shelf://",)}, ValueError, "a-z"),
    "an empty name": ({"name": ""}, ValueError, "word"),
    "a name with an underscore": ({"name": "my_shelf"}, ValueError, "word"),
    "the reserved name": ({"name": "plugins"}, ValueError, "plugins"),
    "a name that is no text": ({"name": 3}, TypeError, "str"),
    "options that are no model": ({"options": dict}, TypeError, "BaseModel"),
    "options that are no class": ({"options": None}, TypeError, "BaseModel"),
    "an open that cannot be called": ({"open": "x"}, TypeError, "called"),
    "two lines of summary": ({"summary": "x\ny"}, ValueError, "one line"),
    "no summary": ({"summary": ""}, ValueError, "one line"),
    "capabilities that are none": ({"capabilities": {"durable": True}}, TypeError, "Capabilities"),
}


@pytest.mark.parametrize(("change", "kind", "says"), FIELDS.values(), ids=FIELDS.keys())
def test_a_backend_with_a_wrong_field_is_refused_when_it_is_made(install, change, kind, says):
    arguments = repr({"name": "shelf"} | change).replace("<class 'dict'>", "dict")
    install("dist-wrong", f"{HOOK}def statestore_backends(): return [backend(**{arguments})]", point="wrong")
    assert type(found("wrong").error) is kind
    assert says in str(found("wrong").error)


def test_an_option_with_an_alias_is_refused(install):
    code = "from pydantic import Field\n" + HOOK.replace("pass", "x: int = Field(1, alias='y')")
    install("dist-alias", code + "def statestore_backends(): return [backend('alias')]", point="wrong")
    assert "without an alias" in str(found("wrong").error)
