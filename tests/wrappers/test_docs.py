"""The page of faults has every fault of both wrappers, and every call that only a faulty one has."""

from __future__ import annotations

import re
from pathlib import Path

from fsspec import AbstractFileSystem

from statestore.wrappers import Faulty, Wrapper, faulty, faultyfs

PAGE = (Path(__file__).parents[2] / "docs" / "faulty.md").read_text()


def test_the_page_lists_the_faults() -> None:
    store, file_system = PAGE.split("## A faulty file system")
    assert sorted(re.findall(r"^\| `(\w+)` \|", store, re.MULTILINE)) == sorted(faulty.FAULTS)
    assert sorted(re.findall(r"^\| `(\w+)` \|", file_system, re.MULTILINE)) == sorted(faultyfs.FAULTS)


def test_so_do_the_docstrings() -> None:
    for kind, faults in ((Faulty, faulty.FAULTS), (faultyfs.FaultyFileSystem, faultyfs.FAULTS)):
        assert set(re.findall(r"^    ``(\w+)`` ", kind.__doc__, re.MULTILINE)) == set(faults)


def test_the_page_tells_what_only_a_faulty_store_or_file_system_can_do() -> None:
    own = (set(vars(Faulty)) - set(vars(Wrapper))) | (
        set(vars(faultyfs.FaultyFileSystem)) - set(vars(AbstractFileSystem))
    )
    told = {name for name in own if name[0] != "_" and re.search(rf"\b{name}\b", PAGE)}
    assert {name for name in own if name[0] != "_"} == told
