"""A catalog of a bucket: the HTTP requests of a listing, and three for each log that has grown."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from statestore import Store, open_store
from statestore.catalog import Catalog
from tests.catalog.parts import Chain, add, scanned, shown
from tests.faultproxy import FaultProxy
from tests.s3.harness import options
from tests.s3.raw import asked
from tests.servers import Rgw

LOGS = 60
GROWN = range(0, LOGS, 12)


def test_a_refresh_costs_the_listing_and_three_requests_for_each_log_that_has_grown(
    rgw: Rgw, place: str, tmp_path: Path
) -> None:
    def ask(what: Store, steps: int) -> list[str]:
        """Answer as a new process does, and return what was asked for, in no order that means anything."""
        fold = Chain()
        asked(proxy)
        with Catalog(what, fold, path=tmp_path / "file") as catalog:
            found = shown(catalog)
        names = sorted(asked(proxy))
        assert fold.steps == steps
        assert found == scanned(writer)
        return names

    writer = open_store(f"s3://{place}", **options(rgw))
    for number in range(LOGS):
        add(writer, f"log-{number:02}", b"x")
    with FaultProxy(rgw.endpoint) as proxy, open_store(f"s3://{place}", **options(rgw.through(proxy))) as store:
        list(store.list(tails=True))
        asked(proxy)
        list(store.list(tails=True))
        listing = sorted(asked(proxy))
        each = ["get data", "list data", "list heads"]

        assert ask(store, LOGS) == sorted([*listing, *each * LOGS])
        assert ask(store, 0) == listing
        for number in GROWN:
            add(writer, f"log-{number:02}", b"y", b"z")
        # Each of the new appends is an object of its own.
        assert Counter(ask(store, 10)) - Counter(listing) == Counter([*each, "get data"] * len(GROWN))
        writer.delete("log-00")
        add(writer, "log-00", b"x")
        assert Counter(ask(store, 1)) - Counter(listing) == Counter(each)
        assert ask(store, 0) == listing
