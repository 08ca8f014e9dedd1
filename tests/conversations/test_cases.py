"""Every acceptance case of the conversations has a test, and is tried on memory, on local files and on a bucket."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Numbers that are missing were merged into others.
CASES = {
    *range(1, 11), 13, 14, 16, *range(18, 23), 24, 25, 26, *range(28, 36), 37, 38, 39, *range(41, 46), 47, 49, 50, 51,
    52, 54, 55, 56, 57, 63, 64, 65, 67, 68, 69, 72, 73, 74, 76, 77, 79, 81, 88, 89, 91, 92, 93, 95, 96, 100, 102,
}  # fmt: skip
FILES_ALONE = {96}  # which calls of the system make a file durable


def cases() -> Iterator[tuple[int, Any, Callable[..., None]]]:
    """Yield the number of each case with the module and the test that try it."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"tests.conversations.{path.stem}")
        for name, test in vars(module).items():
            if numbers := re.match(r"test((_A\d+)+)_", name):
                for number in numbers[1].split("_A")[1:]:
                    yield int(number), module, test


def test_A102_every_case_is_tried_on_every_kind_of_storage() -> None:
    found = list(cases())
    assert {number for number, _, _ in found} >= CASES
    everywhere = {
        number
        for number, module, test in found
        # `place` and `talks` are there for each kind of storage, where a module does not say otherwise.
        if not hasattr(module, "place") and {"place", "talks"} & inspect.signature(test).parameters.keys()
    }
    assert CASES - everywhere - FILES_ALONE == {102}  # this one
