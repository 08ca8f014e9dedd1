"""From a path or a URL to a backend's open."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statestore.errors import Closed, NotFound, PluginError, StateStoreError
from statestore.plugins import open_store, redact
from statestore.plugins._urls import parse
from statestore.store import NEW

ODD = ["a b", "a?b", "a#b", "a%41", "ünï", "a&b=c", "\udcff", "-", "a\nb", "{x}", "a;b", "a+b", "[x]", "C:", "\\"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def directory(where: str | os.PathLike[str]) -> str:
    """Return the directory that a backend of the scheme file would open."""
    scheme, url, options, _ = parse(where)
    assert (scheme, options) == ("file", {})
    assert url.startswith("file:///")
    assert not set(url) & set("?#")
    return unquote(url.removeprefix("file://"), errors="surrogateescape")


@pytest.mark.parametrize("where", ["state", "./state", "x/../state", Path("state"), "{here}/state"])
def test_a_plain_path_is_a_directory(here, where):
    where = where.format(here=here) if isinstance(where, str) else where
    assert os.path.normpath(directory(where)) == str(here / "state")


@pytest.mark.parametrize("name", ODD)
def test_a_directory_may_have_any_name(here, name):
    for where in (f"./{name}", f"{here}/{name}", Path(name), here / name):
        assert directory(where) == f"{here}/{name}"
        with open_store(where, sync="never") as store:
            store.append("log", name.encode("utf-8", "surrogateescape"), at=NEW)
    assert (here / name / "log.state").read_bytes() == os.fsencode(name)
    assert os.listdir(here) == [name]


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(lambda text: text[0] != "~"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_path_object_is_taken_as_it_is(text):
    assert directory(Path(text)) == str(Path.cwd() / text)


def test_a_path_object_that_looks_like_a_url_is_a_path(here):
    assert directory(Path("s3:/x")) == f"{here}/s3:/x"
    assert directory(Path("x?sync=never")) == f"{here}/x?sync=never"


@pytest.mark.parametrize("where", ["~/state", "~", "~someone/x", Path("~/state")])
def test_a_tilde_is_refused_and_never_made_a_directory(here, where):
    with pytest.raises(PluginError, match="not expanded"):
        open_store(where)
    assert list(here.iterdir()) == []
    assert directory("./~") == f"{here}/~"


@pytest.mark.parametrize("where", ["", "a\0b"])
def test_what_is_no_path_is_refused(where):
    with pytest.raises(PluginError, match="not a path"):
        open_store(where)


@pytest.mark.parametrize("where", [None, 3, b"state", object()])
def test_what_is_no_text_and_no_path_object_is_a_type_error(where):
    with pytest.raises(TypeError):
        open_store(where)


def test_a_relative_path_in_a_directory_that_is_gone_is_refused(here):
    gone = here / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with pytest.raises(PluginError, match="working directory"):
        open_store("state")


@pytest.mark.parametrize(
    "url", ["file:///srv/st%20ate", "FILE:///srv/st%20ate", "file://localhost/srv/st%20ate", "file:///srv/st%20ate?"]
)
def test_a_file_url_is_an_absolute_path_with_its_escapes(url):
    assert parse(url)[:3] == ("file", "file:///srv/st%20ate", {})


@pytest.mark.parametrize("url", ["file://server/share", "file://state", "file://", "file://./state", "file://~/x"])
def test_a_file_url_with_a_host_is_refused(url):
    with pytest.raises(PluginError, match="no host"):
        open_store(url)


@pytest.mark.parametrize("url", ["file:///srv/a#b", "memory://a#b", "memory://a?b=c#d"])
def test_a_fragment_is_refused(url):
    with pytest.raises(PluginError, match="%23"):
        open_store(url)


def test_a_plain_path_with_options_is_refused_and_never_made_a_directory(here):
    with pytest.raises(PluginError, match="plain path has no options"):
        open_store("./state?sync=never")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("url", ["c:/state", "C:\\state", "c:state"])
def test_a_drive_letter_is_no_scheme(url):
    with pytest.raises(PluginError) as caught:
        open_store(url)
    assert "write ./" in str(caught.value)
    assert "memory" in caught.value.facts["known"].split(",")


@pytest.mark.parametrize("url", ["memory:name", "memory:/name"])
def test_a_known_scheme_without_its_slashes_is_refused(url):
    with pytest.raises(PluginError, match="has // after its scheme"):
        open_store(url)


@pytest.mark.parametrize(
    ("scheme", "extra"), [("gs", "gcs"), ("gcs", "gcs"), ("az", "azure"), ("abfs", "azure"), ("sftp", "sftp")]
)
def test_a_scheme_that_nobody_serves_says_which_extra_to_install(monkeypatch, scheme, extra):
    from statestore.plugins import _open, discover

    monkeypatch.setattr(_open, "discover", lambda: tuple(p for p in discover() if p.name == "memory"))
    monkeypatch.setattr(_open, "_offered", lambda: ["gcs", "azure", "sftp"])
    with pytest.raises(PluginError, match=rf"pip install 'statestore\[{extra}\]'") as caught:
        open_store(f"{scheme}://bucket")
    assert caught.value.facts["scheme"] == scheme


def test_a_scheme_that_nobody_knows_shows_the_known_ones_and_the_plugins_that_failed(install):
    install("dist-broken", "raise RuntimeError", point="broken")
    with pytest.raises(PluginError) as caught:
        open_store("nosuch://x")
    assert "memory" in caught.value.facts["known"].split(",")
    assert "dist-broken:broken" in caught.value.facts["failed"]


def test_a_backend_gets_the_url_without_its_query(backend):
    opened = backend("shelf")
    open_store("SHELF://user:word@Oak/a%20b?side=right&depth=2").close()
    ((url, options),) = opened
    assert url == "shelf://user:word@Oak/a%20b"
    assert (options.side, options.depth) == ("right", 2)


def test_a_refusal_of_the_backend_passes_as_it_is(backend):
    backend("shelf", before="from statestore.errors import NotFound; raise NotFound('no shelf', shelf=url)")
    with pytest.raises(NotFound, match="no shelf shelf=shelf://x"):
        open_store("shelf://x")


def test_any_other_exception_of_the_backend_is_the_cause_of_ours(backend):
    backend("shelf", before="raise OSError(5, 'u:pw@oak')")
    with pytest.raises(PluginError) as caught:
        open_store("shelf://u:pw@oak?side=left")
    assert isinstance(caught.value.__cause__, OSError)
    assert "pw" not in str(caught.value)
    assert caught.value.facts["url"] == "shelf://***@oak?side=***"


def test_an_extra_that_this_version_does_not_offer_is_not_advised(monkeypatch):
    from statestore.plugins import _open

    assert "dev" in _open._offered()
    monkeypatch.setattr(_open, "_EXTRAS", {"nosuch": "an-extra-that-is-not"})
    with pytest.raises(PluginError, match="this version of statestore has no backend for it") as caught:
        open_store("nosuch://bucket")
    assert "pip install" not in str(caught.value)


def test_a_package_that_the_backend_misses_is_named(backend, monkeypatch):
    from statestore.plugins import _open

    monkeypatch.setattr(_open, "_EXTRAS", {"wood": "carpenter"})
    monkeypatch.setattr(_open, "_offered", lambda: ["carpenter"])
    backend("shelf", schemes=("shelf", "wood"), before="import a_module_that_nobody_has")
    with pytest.raises(PluginError, match="missing=a_module_that_nobody_has"):
        open_store("shelf://")
    with pytest.raises(PluginError, match=r"pip install 'statestore\[carpenter\]'"):
        open_store("wood://")


def test_a_backend_that_opens_no_store_is_refused(backend):
    backend("shelf", before="return 3")
    with pytest.raises(PluginError, match="got=int"):
        open_store("shelf://")


def test_memory_stores_share_by_name_and_never_without_one():
    one, two = open_store("memory://test-open"), open_store("memory://test-open")
    one.append("log", b"x", at=NEW)
    assert two.read("log") == b"x"
    one.close()
    with pytest.raises(Closed):
        one.read("log")
    assert open_store("memory://test-open").read("log") == b"x"
    open_store("memory://").append("log", b"x", at=NEW)
    with pytest.raises(StateStoreError):
        open_store("memory://").read("log")


REDACTED = {
    "s3://bucket/a@b": "s3://bucket/a@b",
    "s3://key:word@bucket/x": "s3://***@bucket/x",
    "s3://key@bucket": "s3://***@bucket",
    "sftp://u:pa/word@host/x": "sftp://***@host/x",
    "sftp://u:pa?word@host/x": "sftp://***",
    "sftp://u:pa#word@host/x": "sftp://***@host/x",
    "sftp://u:pa@word@host/x": "sftp://***@host/x",
    "s3:key:word@bucket": "s3:***@bucket",
    "cache::s3://key:word@bucket": "cache::s3://***@bucket",
    "a::b-c::s3://key:word@bucket/x?a_key=word&b=word": "a::b-c::s3://***@bucket/x?a_key=***&b=***",
    "cache::s3:key:word@bucket": "cache:***@bucket",
    "cache::key:word@bucket": "cache:***@bucket",
    "cache::word@bucket": "cache:***@bucket",
    "cache::./state?key=word": "cache::./state?key=***",
    "cache::./state": "cache::./state",
    "s3://host:9000/x?user=me@word": "s3://***",
    "s3://b?key=word&other=word&word": "s3://b?key=***&other=***&***",
    "s3://b?": "s3://b?",
    "s3://b#word": "s3://b#***",
    "./state": "./state",
    "./a@b:c": "./a@b:c",
    "./state?key=word": "./state?key=***",
}


@pytest.mark.parametrize(("url", "shown"), REDACTED.items())
def test_a_url_in_a_message_shows_no_password_and_no_value(url, shown):
    assert redact(url) == shown
    assert "word" not in redact(url)


@given(st.text("ab@:/?#=&%\n ", max_size=12), st.text("ab@:/?#=&%\n ", max_size=12))
def test_no_password_survives_redaction(before, after):
    assert "SECRET" not in redact(f"s3://user:{before}SECRET{after}@host/path?x=y")
    assert "SECRET" not in redact(f"s3://host/path?x={before}SECRET".replace("&", ""))
    assert "SECRET" not in redact(f"a::b::s3://user:{before}SECRET{after}@host/path?x=y")
