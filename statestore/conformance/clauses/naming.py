"""Names: every valid name is a log of its own, and nothing else ever reaches the storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statestore import names
from statestore.conformance.case import Case
from statestore.conformance.check import Failure, equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import InvalidName, NotFound, NotSupported
from statestore.store import NEW, Store, Tail

_HOSTILE = (
    "", ".", "..", "../up", "a/../b", "a/..", "/a", "a/", "a//b", "/", ".hidden", "a/.b", "a b", " a", "a\n", "a\0b",
    "a\\b", "é", "\uff0e\uff0e", "a:b", "a*", "a?", "a%", "a%2f", "%zz", "%2", "a!b", "~/a b", "x" * 201,
    "/".join(["x" * 199] * 4), "C:\\a", "a\u2028b", "\ud800", "con\r",
)  # fmt: skip


def _calls(store: Store) -> dict[str, Callable[[Any], object]]:
    """Return every call that names a log, as a function of the name."""
    return {
        "append": lambda log: store.append(log, b"x", at=NEW),
        "read": store.read,
        "copy from": lambda log: store.copy(log, "target"),
        "copy to": lambda log: store.copy("source", log),
        "tail": store.tail,
        "snapshot": store.snapshot,
        "stream": store.stream,
        "wait": lambda log: store.wait(log, NEW, 0),
        "boundary": lambda log: store.boundary(log, 0),
        "delete": store.delete,
        "hold": store.hold,
        "holder": store.holder,
        "flush": store.flush,
        "cut": lambda log: store.cut(log, 0, at=Tail(1, "")),
    }


@clause("core")
def a_bad_name_is_refused_by_every_call(case: Case) -> None:
    """An id from outside reads or writes a file that is none of the store's."""
    case.put("source", b"x")
    for name in _HOSTILE:
        for what, call in _calls(case.store).items():
            try:
                call(name)
            except InvalidName:
                continue
            except Exception as error:
                raise Failure(f"{what} of {name[:40]!r} raised {type(error).__name__}, not InvalidName") from error
            raise Failure(f"{what} of {name[:40]!r} was taken")
    equal(case.names(), ["source"], "the listing after refusals")


@clause("core")
def a_name_that_is_no_text_is_refused_by_every_call(case: Case) -> None:
    """A None that slipped through becomes a session called None."""
    case.put("source", b"x")
    no_text: list[Any] = [None, b"log", 7, ("log",)]
    for name in no_text:
        for call in _calls(case.store).values():
            refused(TypeError, call, name)
    equal(case.names(), ["source"], "the listing after refusals")


def _apart(case: Case, twins: tuple[str, ...]) -> None:
    """Fail unless each name is a log of its own, or refused outright beside the ones before it.

    In a sample all logs are looked at when the last one was written, and not after each: that is quadratic.
    """
    made: dict[str, bytes] = {}
    for name in twins:
        data = f"<{name}>".encode()
        try:
            case.store.append(name, data, at=NEW)
        except (InvalidName, NotSupported):
            refused((InvalidName, NotFound, NotSupported), case.store.read, name)
        else:
            made[name] = data
        if case.sample == 1 or name == twins[-1]:
            for other, expected in made.items():
                equal(case.store.read(other), expected, f"read({other!r}) after {name!r} was made")
    order = list(made)
    for name in order:
        made[name] += b"+"
        case.store.append(name, b"+", at=case.store.tail(name))
        if case.sample == 1 or name == order[-1]:
            for other, expected in made.items():
                case.holds(other, expected)
    equal(case.names(), sorted(made), "the listing")
    that(len(made) > len(twins) // 2, f"of {len(twins)} valid names only {len(made)} can be used: {sorted(made)}")


@clause("core")
def names_that_begin_alike_are_logs_apart(case: Case) -> None:
    """A session hides in or behind another one whose id it begins with."""
    _apart(case, ("a", "ab", "a/b", "a/b/c", "a.b", "a-", "a/bc", "a0", "a~", "ab/c"))


@clause("core")
def a_log_may_lie_beside_a_folder_of_its_name(case: Case) -> None:
    """A session cannot be begun, or is lost, because another tenant's folder has its name."""
    _apart(case, ("x", "x.state/y", "x/y", "x.state", "x.state.state", "x/y.state/z", "y.lock", "y", "y.tmp", "y.json"))


@clause("core")
def case_twins_are_logs_apart(case: Case) -> None:
    """Two customers whose ids differ only in case read each other's sessions."""
    _apart(case, ("log", "LOG", "Log", "a/b", "A/b", "a/B", "%C3%A9", "straSSe", "strasse"))


@clause("core")
def an_escape_in_a_name_stands_for_nothing(case: Case) -> None:
    """Two ids that differ only by an escape share a session."""
    _apart(case, ("a%2Fb", "a/b", "A", "%41", "a%20b", "a%2520b", "%2E%2E", "%00", "%FF", "a%0Ab"))


@clause("core")
def quoted_ids_from_outside_are_logs_apart(case: Case) -> None:
    """A user id with a slash, a blank or an accent gets somebody else's session, or none."""
    ids = ("", " ", "..", "a/b", "a b", "é", "e\u0301", "\0", "\n", "\ud800", "😀", "a%2Fb", "Straße", "*", "~", ".a")
    twins = tuple(names.quote(text) for text in ids)
    equal(len(set(twins)), len(ids), "the number of different quoted ids")
    _apart(case, twins)


@clause("core")
def the_longest_names_are_names(case: Case) -> None:
    """A deep or long id works on one backend and is refused by the next."""
    longest = "/".join(["d" * 199, "e" * 200, "f" * 200, "g" * 98])
    equal(len(longest), 700, "the length of the longest name")
    _apart(case, ("s" * 200, "s" * 199, longest, longest[:-1], "%C3" * 66, "a/" * 349 + "aa"))


@clause("core")
def names_that_other_systems_reserve_are_names(case: Case) -> None:
    """A session called `con` or `-rf` works on one backend and breaks the next."""
    _apart(
        case, ("con", "nul", "-rf", "--", "~", "~root", "a.", "a..", "a..b", "_", "0", "-1", "index", "log", "__init__")
    )
