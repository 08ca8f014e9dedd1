"""Listings: every log that was made, each once, in one order, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statestore.conformance.case import Case, names_of
from statestore.conformance.check import equal, refused, that
from statestore.conformance.registry import clause
from statestore.errors import InvalidName
from statestore.store import LogInfo

# Written in the order of their code points: what a tree walk, a locale or a folded case would sort otherwise.
_TREE = sorted(
    [
        "%2F",
        "-a",
        "0",
        "10",
        "2",
        "A",
        "B/c",
        "_",
        "a",
        "a%20b",
        "a-b",
        "a.b",
        "a/b",
        "a/b.c",
        "a/b/c",
        "a0",
        "aB",
        "a_b",
        "ab",
        "axb",
        "a~",
        "b",
        "b.state",
        "b/a",
        "b/a/a/a/a",
        "b0",
        "z",
        "~",
    ]
)


def _plant(case: Case) -> None:
    for name in sorted(_TREE, key=lambda name: name[::-1]):  # made in another order than they are listed
        case.put(name, name.encode())


@clause("core")
def an_empty_store_lists_nothing(case: Case) -> None:
    """A fresh start shows sessions of somebody else."""
    equal(case.names(), [], "the listing of an empty store")
    equal(case.names("a"), [], "the listing of a prefix in an empty store")


@clause("core")
def a_listing_shows_every_log_once(case: Case) -> None:
    """A session is lost from sight, or is worked on twice."""
    _plant(case)
    got = case.names()
    equal(sorted(got), _TREE, "the names of a listing, sorted")
    that(all(isinstance(row, LogInfo) for row in case.store.list()), "every row of a listing is a LogInfo")


@clause("core")
def a_listing_is_in_code_point_order(case: Case) -> None:
    """A reader that goes on behind the last name that it saw skips sessions or meets them again."""
    _plant(case)
    equal(case.names(), _TREE, "the names of a listing")
    some = case.names("a")
    equal(some, sorted(some), "the names of a listing of `a`")


@clause("core")
def a_prefix_is_text_and_no_folder(case: Case) -> None:
    """A search for sessions that begin with `a` misses `ab`, or misses `a/b`."""
    _plant(case)
    for prefix in ("a", "a/", "a/b", "a/b/", "b", "b/a", "A", "0", "zz", "a-", "b.", "B", "a/b/c/d"):
        equal(case.names(prefix), [name for name in _TREE if name.startswith(prefix)], f"list({prefix!r})")


@clause("core")
def a_prefix_is_no_pattern(case: Case) -> None:
    """One tenant's prefix matches another's sessions."""
    _plant(case)
    for prefix in ("a_", "a.", "a%20", "%2F", "_", "a~", "a-"):
        equal(case.names(prefix), [name for name in _TREE if name.startswith(prefix)], f"list({prefix!r})")


@clause("core")
def a_listing_continues_after_a_name(case: Case) -> None:
    """The second page of sessions begins with one of the first, or leaves one out."""
    _plant(case)
    for after in [*_TREE, "a/", "a0b", "B", "a.a", "~~"]:
        equal(case.names(after=after), [name for name in _TREE if name > after], f"list(after={after!r})")
    for prefix, after in (
        ("a", "a"),
        ("a", "a/b"),
        ("a/", "a-b"),
        ("a", "0"),
        ("a", "b"),
        ("b", "a~"),
        ("a/", "a/b/c"),
    ):
        expected = [name for name in _TREE if name.startswith(prefix) and name > after]
        equal(case.names(prefix, after=after), expected, f"list({prefix!r}, after={after!r})")


@clause("core")
def pages_joined_are_the_whole_listing(case: Case) -> None:
    """Somebody who pages through their sessions never sees one of them."""
    _plant(case)
    got: list[str] = []
    while True:
        rows = case.store.list(after=got[-1] if got else "")
        page = [row.name for row, _ in zip(rows, range(3), strict=False)]
        if not page:
            break
        got += page
        that(len(got) <= len(_TREE), f"paging does not come to an end: {got[-6:]}")
    equal(got, _TREE, "pages of three, joined")


@clause("core")
def a_listing_with_tails_tells_where_each_log_ends(case: Case) -> None:
    """A summary that is kept fresh by tails shows an old state, or reads what has not changed."""
    _plant(case)
    case.store.append("a/b", b"more", at=case.store.tail("a/b"))
    for prefix, after in (("", ""), ("a", ""), ("", "a/b")):
        rows = list(case.store.list(prefix, after=after, tails=True))
        expected = [name for name in _TREE if name.startswith(prefix) and name > after]
        equal(names_of(rows), expected, "the names of a listing with tails")
        for row in rows:
            equal(row.tail, case.store.tail(row.name), f"the listed tail of {row.name!r}")


@clause("core")
def a_listing_is_lazy(case: Case) -> None:
    """The first row of a million sessions takes as long as all of them."""
    _plant(case)
    rows = case.store.list()
    that(isinstance(rows, Iterator), f"list returns an iterator, not {type(rows).__name__}")
    equal(next(rows).name, _TREE[0], "the first row")
    equal(names_of(rows), _TREE[1:], "the rows after the first")


@clause("core")
def two_listings_do_not_disturb_each_other(case: Case) -> None:
    """Two people who look at the sessions at the same time each see half of them."""
    _plant(case)
    first, second = case.store.list(), case.store.list("a")
    got: tuple[list[str], list[str]] = ([], [])
    for row in first:
        got[0].append(row.name)
        got[1].extend(name.name for name in [next(second, None)] if name)
    equal(got, (_TREE, [name for name in _TREE if name[0] == "a"]), "two listings, row by row in turn")


@clause("core")
def a_listing_shows_what_was_just_made(case: Case) -> None:
    """A session that was just begun is not in the list."""
    made: list[str] = []
    for name in ("m", "a", "z", "m/n"):
        case.put(name, b"x")
        made.append(name)
        equal(case.names(), sorted(made), f"the listing right after {name!r} was made")
    case.store.copy("m", "copy")
    equal(case.names(), sorted([*made, "copy"]), "the listing right after a copy")


@clause("core")
def a_listing_keeps_what_was_there_throughout(case: Case) -> None:
    """A session is missing from a list because another one was begun while the list was read."""
    _plant(case)
    rows = case.store.list()
    got = [next(rows).name for _ in range(5)]
    for name in ("%21", "a-a", "a/b/b", "zz", "~~"):
        case.put(name, b"new")
    got += names_of(rows)
    equal(sorted(set(got) & set(_TREE)), _TREE, "logs that were there from the first row to the last")
    equal(len(set(got)), len(got), "the number of different rows")
    equal(got, sorted(got), "the rows of a listing while logs were made")


@clause("core", capability="deletes")
def a_listing_survives_deletions_meanwhile(case: Case) -> None:
    """Cleaning up old sessions while listing them skips every other one, or breaks off."""
    _plant(case)
    seen = []
    for row in case.store.list("a"):
        seen.append(row.name)
        case.store.delete(row.name)
    equal(seen, [name for name in _TREE if name[0] == "a"], "a listing whose rows were deleted one by one")
    equal(case.names(), [name for name in _TREE if name[0] != "a"], "the listing afterwards")


@clause("core")
def a_bad_prefix_is_refused_by_the_call(case: Case) -> None:
    """A wrong prefix lists nothing, and a person believes that their sessions are gone."""
    _plant(case)
    for prefix in ("*", "/", "a//", ".", "a/.", "a b", "é", "a\0", "%2f", "%zz", "..", "a" * 201, "\n"):
        refused(InvalidName, case.store.list, prefix)
    no_text: list[Any] = [None, b"a", 7]
    for other in no_text:
        refused(TypeError, case.store.list, other)


@clause("core", needs=("reopen",))
def a_listing_shows_what_another_store_object_made(case: Case) -> None:
    """A session begun elsewhere is hidden by a listing that was kept from before."""
    other = case.other()
    for name in ("b", "a", "c"):
        before = case.names(store=other)
        case.put(name, name.encode())
        equal(case.names(store=other), sorted([*before, name]), "the listing of another store object")
        equal(other.read(name), name.encode(), f"read({name!r}) by another store object")
    for _ in range(2):
        case.store.append("a", b"+", at=case.store.tail("a"))
        equal([row.tail for row in other.list("a", tails=True)], [case.store.tail("a")], "the tail listed elsewhere")


@clause("scale", capability="cheap_tails", needs=("requests",))
def listed_tails_cost_no_further_requests(case: Case) -> None:
    """Finding the sessions that have changed costs a request for each one that has not."""
    requests = case.harness.requests
    for number in range(case.sized(200, 20)):
        case.put(f"log-{number:04}", b"x")
    counts = []
    for tails in (False, True):
        before = requests() if requests else 0
        list(case.store.list(tails=tails))
        counts.append((requests() if requests else 0) - before)
    that(counts[1] <= 2 * counts[0] + 2, f"a listing takes {counts[0]} requests, and with tails {counts[1]}")
