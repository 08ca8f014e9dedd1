"""From a chained URL to a store in a store."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from statestore.errors import Closed, NotSupported, PluginError
from statestore.plugins import Wrapping, discover, open_store
from statestore.store import NEW
from statestore.wrappers import Cached, Wrapper
from statestore_local import LocalStore
from statestore_memory import MemoryStore


def failure(url: Any, **options: object) -> PluginError:
    with pytest.raises(PluginError) as caught:
        open_store(url, **options)
    return caught.value


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_a_wrapper_is_put_around_the_store_of_the_url(wrapper):
    wrapped = wrapper("loud")
    store = open_store("LOUD::memory://test-wrappers")
    assert isinstance(store, Wrapper)
    assert isinstance(store.inner, MemoryStore)
    ((inner, options, origin),) = wrapped
    assert (inner, options.depth, origin) == (store.inner, 1, "memory://test-wrappers")
    store.append("log", b"data", at=NEW)
    assert open_store("memory://test-wrappers").read("log") == b"data"


def test_several_are_told_from_the_outside_to_the_inside(wrapper):
    wrapped = wrapper("one", "two")
    store = open_store("one::two::memory://", one_depth=1, two_depth=2)
    assert [options.depth for _, options, _ in wrapped] == [2, 1]
    assert (wrapped[0][0], wrapped[1][0]) == (store.inner.inner, store.inner)


@pytest.mark.parametrize(
    "where", ["one::two::./state", "one::two::state", "one::two::{here}/state", "one::two::file://{here}/state"]
)
def test_a_path_is_wrapped_too(wrapper, here, where):
    wrapper("one", "two")
    store = open_store(where.format(here=here), sync="never")
    assert isinstance(store.inner.inner, LocalStore)
    store.append("log", b"data", at=NEW)
    assert (here / "state" / "log.state").read_bytes() == b"data"
    assert os.listdir(here) == ["state"]


@pytest.mark.parametrize("where", ["./one::x", "{here}/one::x", Path("one::x"), Path("one::memory:"), "./a::b"])
def test_what_is_a_path_stays_one(wrapper, here, where):
    wrapper("one")
    where = where.format(here=here) if isinstance(where, str) else where
    store = open_store(where, sync="never")
    assert isinstance(store, LocalStore)
    store.append("log", b"data", at=NEW)
    assert os.listdir(here) == [Path(where).name]


def test_an_option_comes_from_a_keyword_or_the_url_or_the_environment_with_the_wrappers_name_before_it(
    wrapper, backend, monkeypatch
):
    wrapped = wrapper("my-loud")
    opened = backend("shelf")
    monkeypatch.setenv("STATESTORE_MY_LOUD_DEPTH", "7")
    open_store("my-loud::shelf://?side=right&depth=2")
    open_store("my-loud::shelf://?my_loud_depth=8", depth=3)
    open_store("my-loud::shelf://?my_loud_depth=8", my_loud_depth=9)
    assert [options.depth for _, options, _ in wrapped] == [7, 8, 9]
    assert [(options.side, options.depth) for _, options in opened] == [("right", 2), ("left", 3), ("left", 1)]


def test_of_two_names_that_an_option_begins_with_the_longer_one_is_meant(wrapper):
    wrapped = wrapper("a", "a-b")
    assert "it has a_b_depth, a_b_key" in str(failure("a::a-b::memory://?a_b_deep=3"))
    open_store("a::a-b::memory://?a_b_depth=3&a_depth=4")
    assert [options.depth for _, options, _ in wrapped] == [3, 4]


def test_an_option_that_the_wrapper_has_not_is_refused_with_those_that_it_has(wrapper, monkeypatch):
    wrapped = wrapper("loud")
    error = failure("loud::memory://?loud_dept=3")
    assert error.facts == {"wrapper": "loud", "option": "loud_dept", "source": "URL"}
    assert "this wrapper has no such option: it has loud_depth, loud_key" in str(error)
    assert failure("loud::memory://", loud_="").facts["option"] == "loud_"
    monkeypatch.setenv("STATESTORE_LOUD_DEPHT", "3")
    assert failure("loud::memory://").facts["source"] == "STATESTORE_LOUD_DEPHT"
    open_store("memory://")
    assert wrapped == []


def test_a_wrappers_option_without_the_wrapper_is_the_backends_and_refused(wrapper):
    wrapper("loud")
    assert failure("memory://?loud_depth=3").facts["backend"] == "memory"


def test_a_wrong_value_is_told_before_anything_is_opened(wrapper, backend):
    wrapped, opened = wrapper("loud"), backend("shelf")
    error = failure("loud::shelf://?loud_depth=high&loud_key=SWORDFISH")
    assert error.facts == {"wrapper": "loud", "option": "loud_depth", "given": "high", "source": "URL"}
    assert "the wrapper does not take" in str(error)
    assert "SWORDFISH" not in f"{error}{error.__cause__}"
    assert failure("loud::shelf://?depth=high").facts["backend"] == "shelf"
    assert (wrapped, opened) == ([], [])


@pytest.mark.parametrize("url", ["nosuch::memory://x", "nosuch::./x", "loud::nosuch::memory://x", "nosuch::x"])
def test_an_unknown_wrapper_is_refused_with_the_known_ones(wrapper, install, url):
    wrapper("loud")
    install("dist-broken", "raise RuntimeError", point="broken")
    error = failure(url)
    assert "no plugin offers this wrapper" in str(error)
    assert error.facts["wrapper"] == "nosuch"
    assert {"cached", "loud"} <= set(error.facts["known"].split(","))
    assert error.facts["failed"] == "dist-broken:broken"


def test_a_wrapper_around_nothing_is_refused(wrapper):
    wrapper("loud")
    assert "not a path" in str(failure("loud::"))


def test_a_wrapper_twice_is_refused_since_its_options_could_not_be_told_apart(wrapper):
    wrapper("one", "two")
    assert failure("one::two::one::memory://").facts["wrapper"] == "one"


def test_a_name_that_two_plugins_claim_is_refused_until_one_is_disabled(wrapper, backend, monkeypatch):
    wrapper("loud")
    wrapper("loud", distribution="dist-other")
    backend("shelf")
    wrapper("shelf", distribution="dist-shelves")
    error = failure("loud::memory://")
    assert error.facts["plugins"] == "dist-other:dist_other,dist-wrapper:dist_wrapper"
    assert failure("shelf::memory://").facts["claim"] == failure("shelf://").facts["claim"] == "shelf"
    monkeypatch.setenv("STATESTORE_PLUGINS_DISABLE", "dist-other:dist_other,dist_shelves")
    assert isinstance(open_store("loud::memory://"), Wrapper)
    open_store("shelf://")


def test_a_plugin_that_offers_one_name_twice_is_shown_as_failed(wrapper):
    wrapper("loud", "loud")
    (plugin,) = [plugin for plugin in discover() if plugin.name == "dist_wrapper"]
    assert "twice=loud" in str(plugin.error)


@pytest.mark.parametrize("answer", ["None", "['loud']", "Wrapping"])
def test_a_plugin_that_answers_something_else_is_shown_as_failed(install, answer):
    code = "from statestore.plugins import Wrapping, hookimpl\n@hookimpl\ndef statestore_wrappers(): return "
    install("dist-bad", code + answer, point="bad")
    (plugin,) = [plugin for plugin in discover() if plugin.name == "bad"]
    assert "statestore_wrappers returns a list of Wrapping" in str(plugin.error)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("raise NotSupported('not that one', origin=origin)", NotSupported),
        ("raise OSError(5, 'pw@oak')", PluginError),
        ("import a_module_that_nobody_has", PluginError),
        ("return 3", PluginError),
        ("raise KeyboardInterrupt", KeyboardInterrupt),
    ],
)
def test_where_wrapping_fails_the_inner_store_is_closed_and_no_credential_told(wrapper, backend, before, expected):
    wrapped = wrapper("loud", before=f"from statestore.errors import NotSupported; {before}")
    backend("shelf")
    with pytest.raises(expected) as caught:
        open_store("loud::shelf://u:pw@oak?side=left")
    if expected is PluginError:
        assert caught.value.facts["wrapper"] == "loud"
    assert "pw" not in str(caught.value)
    with pytest.raises(Closed):
        wrapped[0][0].read("log")


def test_an_origin_is_the_url_without_credentials_and_query(wrapper, backend, tmp_path):
    wrapped = wrapper("loud")
    backend("shelf", fields="user: str = ''")
    for url in ("shelf://Oak/x", "shelf://u:pa/word@Oak/x?side=right", "SHELF://u@Oak/x?user=u"):
        open_store(f"loud::{url}")
    open_store(f"loud::{tmp_path}/a b")
    assert [origin for *_, origin in wrapped] == ["shelf://Oak/x"] * 3 + [f"file://{tmp_path}/a%20b"]


def test_an_origin_tells_inner_wrappers_with_other_options_apart(wrapper):
    wrapped = wrapper("outer", "inner")
    for depth in (1, 2, 1):
        open_store(f"outer::inner::memory://x?inner_depth={depth}&inner_key=SWORDFISH")
    one, two, again = (origin for *_, origin in wrapped[1::2])
    assert one == again != two
    assert one.startswith("inner(")
    assert one.endswith(")::memory://x")
    assert "SWORDFISH" not in one


def test_cached_is_there_and_has_a_directory_and_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("STATESTORE_CACHED_DIRECTORY", str(tmp_path / "cache"))
    with open_store("cached::memory://?cached_limit=1MiB") as store:
        assert isinstance(store, Cached)
        store.append("log", b"data", at=NEW)
        assert store.read("log") == store.read("log") == b"data"
    assert len(list((tmp_path / "cache" / "v1").iterdir())) == 1
    for wrong in ("cached_limit=0", "cached_limit=much", "cached_directory=~/cache"):
        assert failure(f"cached::memory://?{wrong}").facts["wrapper"] == "cached"


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_without_a_directory_the_cache_is_where_the_users_caches_are(tmp_path, monkeypatch, variable):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    store = open_store("cached::memory://")
    store.append("log", b"data", at=NEW)
    store.read("log")
    below = "statestore" if variable == "XDG_CACHE_HOME" else ".cache/statestore"
    assert len(list((tmp_path / below / "v1").iterdir())) == 1


def test_a_local_store_is_not_cached(tmp_path):
    with pytest.raises(NotSupported, match="capability=atomic_append"):
        open_store(f"cached::{tmp_path}", cached_directory=tmp_path / "cache")


GOOD: dict[str, Any] = {"name": "x", "options": BaseModel, "wrap": print, "summary": "one line"}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", 3, TypeError),
        ("name", "", ValueError),
        ("name", "Loud", ValueError),
        ("name", "plugins", ValueError),
        ("name", "a_b", ValueError),
        ("options", {}, TypeError),
        ("options", int, TypeError),
        ("wrap", None, TypeError),
        ("summary", b"", TypeError),
        ("summary", "", ValueError),
        ("summary", "two\nlines", ValueError),
    ],
)
def test_a_wrapping_is_checked_when_it_is_made(field, value, expected):
    Wrapping(**GOOD)
    with pytest.raises(expected, match="a wrapper's"):
        Wrapping(**{**GOOD, field: value})


def test_the_wrapper_of_the_page_works_as_the_page_says(install, capsys):
    page = (Path(__file__).parents[2] / "docs" / "wrappers.md").read_text()
    plugin, use = re.findall(r"^```python\n(.*?)^```$", page.split("## Writing one")[1], re.MULTILINE | re.DOTALL)
    install("statestore-loud", plugin, point="loud")
    exec(use, {})
    assert f"this prints `{capsys.readouterr().out.rstrip()}`:" in page


def test_the_page_lists_the_wrappers_and_the_options_of_each():
    page = (Path(__file__).parents[2] / "docs" / "wrappers.md").read_text()
    (plugin,) = [plugin for plugin in discover() if plugin.distribution == "statestore" and plugin.wrappers]
    for wrapper in plugin.wrappers:
        assert f"| `{wrapper.name}::` |" in page
        for option in wrapper.options.model_fields:
            assert f"| `{option}` | `{wrapper.prefix}{option}` |" in page
