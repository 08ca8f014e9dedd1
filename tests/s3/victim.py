"""A process that writes until it is killed, and tells on its standard output what was acknowledged.

python victim.py '{"url": …, "options": {…}, "what": "records" | "bytes" | "creations", "name": …}'
"""

from __future__ import annotations

import json
import sys
from typing import Any

from statestore import NEW, RecordLog, Store, open_store


def tell(*words: object) -> None:
    print(*words, flush=True)


def add_records(store: Store, name: str) -> None:
    log = RecordLog(store, name)
    log.append("note", b"first", expect=1)
    tell("ready")
    while True:
        record = log.append("note", b"x" * 100)
        tell(record.n, record.id)


def add_bytes(store: Store, name: str) -> None:
    tail = store.append(name, b"first;", at=NEW)
    tell("ready")
    number = 0
    while True:
        data = b"%s %d;" % (name.encode(), number)
        tail = store.append(name, data, at=tail)
        tell(tail.size, data.decode())
        number += 1


def create_logs(store: Store, name: str) -> None:
    store.append(f"{name}/first", b"x", at=NEW)
    tell("ready")
    number = 0
    while True:
        log = f"{name}/{number}"
        store.append(log, log.encode(), at=NEW)
        tell(log)
        number += 1


def main(asked: dict[str, Any]) -> None:
    what = {"records": add_records, "bytes": add_bytes, "creations": create_logs}[asked["what"]]
    with open_store(asked["url"], **asked["options"]) as store:
        what(store, asked["name"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
