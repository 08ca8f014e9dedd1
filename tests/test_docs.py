"""The pages are held to the code: what they list is what there is, what they run prints what they show, links lead
somewhere, and the site has all of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from statestore import errors
from tests.cli import reference
from tests.pages import DOCS, PAGES, ROOT, RUN, Page, Stand, run

SITE = (ROOT / "mkdocs.yml").read_text()
EVERYWHERE = [*PAGES, Page(ROOT / "README.md"), Page(ROOT / "CONTRIBUTING.md")]

# Pages, or sections of pages, that another test runs, with what it needs.
ELSEWHERE: dict[str, tuple[str, tuple[str, ...]]] = {
    "docs/bench.md": ("tests/bench/test_traffic.py", ("On a bucket",)),
    "docs/plugins.md": ("tests/plugins/test_installed.py", ("A plugin in twelve lines",)),
    "docs/sync.md": ("tests/guides/test_run.py", ("From a laptop to a bucket", "Backups")),
    "docs/wrappers.md": ("tests/plugins/test_wrappers.py", ("Writing one",)),
}
WHOLE = {"docs/tutorial.md": "tests/cli/test_new_backend.py"} | {
    page.name: "tests/guides/test_run.py" for page in PAGES if page.path.parent.name == "guides"
}

# What is neither run nor shown by what is run, and the test that holds it to the code.
OTHERS = {
    ("docs/commands.md", "console"): "tests/cli/test_commands_page.py",
    ("docs/commands.md", "terminal"): "tests/cli/test_commands_page.py",
    ("docs/object-storage-traces.md", "diff"): "tests/object_storage/test_rules.py",
    ("docs/object-storage.md", ""): "tests/object_storage",  # the spelling of objects
    ("docs/plugins.md", "toml"): "tests/plugins/test_installed.py",
    ("docs/reference/commands.md", "console"): "tests/test_docs.py",  # what is in the help
}

# Modules with public names that are for our own packages, or for no program.
INSIDE = {"statestore.ahead", "statestore.caches", "statestore.cli", "statestore.companions", "statestore.snapshot"}

HERE = [
    page
    for page in PAGES
    if page.name not in WHOLE
    and any(block.is_run and block.section not in ELSEWHERE.get(page.name, ("", ()))[1] for block in page.blocks)
]


def each(pages: list[Page]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", pages, ids=[page.name for page in pages])


def test_the_page_of_errors_lists_the_tree() -> None:
    listed = re.findall(r"^\| `(\w+)` \|(?: `(\w+)`)? \|", (DOCS / "errors.md").read_text(), re.MULTILINE)
    tree = {
        name: next((base.__name__ for base in kind.__bases__ if base.__module__ == "builtins"), "")
        for name in errors.__all__
        if issubclass(kind := getattr(errors, name), errors.StateStoreError) and kind is not errors.StateStoreError
    }
    assert dict(listed) == tree


@each(HERE)
def test_what_a_page_runs_prints_what_it_shows(page: Page, tmp_path: Path) -> None:
    run(page, Stand(), tmp_path, without=ELSEWHERE.get(page.name, ("", ()))[1])


@each([page for page in PAGES if page.name not in WHOLE])
def test_every_block_is_run_or_shown_or_held_by_another_test(page: Page) -> None:
    shown = False
    for block in page.blocks:
        if block.language in RUN:
            shown = True
            assert block.is_run or block.title.startswith('title="not run: ')
        else:
            assert (block.language == "text" and shown) or (page.name, block.language) in OTHERS, block
    assert len(page.blocks) == len(re.findall(r"^ *```", page.text, re.MULTILINE)) / 2, (
        "a block is indented or not closed"
    )


def test_the_tests_that_run_pages_and_the_sections_that_they_run_are_there() -> None:
    for test in {*WHOLE.values(), *OTHERS.values(), *(test for test, _ in ELSEWHERE.values())}:
        assert (ROOT / test).exists(), test
    for name, (test, sections) in ELSEWHERE.items():
        assert Path(name).name in (ROOT / test).read_text(), name
        assert set(sections) <= {block.section for block in Page(ROOT / name).blocks}, name
    assert {name for name, _ in OTHERS} <= {page.name for page in PAGES}


@each(EVERYWHERE)
def test_every_link_leads_somewhere(page: Page) -> None:
    for path, anchor in page.links():
        there = Page((page.path.parent / path).resolve()) if path else page
        assert there.path.is_file(), path
        assert page.path.parent == ROOT or there.path.is_relative_to(DOCS), f"{path} is not part of the site"
        assert not anchor or anchor in there.anchors, f"{path}#{anchor}"


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r"^ +- (?:[\w .-]+: )?([\w/-]+\.md)$", SITE, re.MULTILINE)
    assert sorted(listed) == sorted(page.path.relative_to(DOCS).as_posix() for page in PAGES)


def public() -> set[str]:
    """Return the modules whose ``__all__`` is for everybody: packages, and what lies directly in ``statestore``."""
    found = set()
    for root in (ROOT, ROOT / "backends"):
        paths = {*root.glob("statestore*/**/__init__.py"), *(ROOT / "statestore").glob("*.py")}
        for path in paths if root == ROOT else root.glob("*/__init__.py"):
            module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            assigned = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
            if any(ast.unparse(node.targets[0]) == "__all__" for node in assigned) and "._" not in module:
                found.add(module)
    return found


def test_every_package_has_its_place_in_the_reference() -> None:
    """That each name of it is there is checked on the site itself, by ``.ci/site.py``."""
    made = {name for page in PAGES for name in re.findall(r"^::: ([\w.]+)$", page.text, re.MULTILINE)}
    assert public() - INSIDE - {"statestore"} <= made
    index = Page(DOCS / "reference" / "index.md").text
    import statestore

    assert [name for name in statestore.__all__ if f"[`{name}`][" not in index] == []


def test_the_commands_one_by_one_are_those_of_the_help() -> None:
    remake = "python -m tests.cli.reference > docs/reference/commands.md"
    assert (DOCS / "reference" / "commands.md").read_text() == reference.page(), remake
