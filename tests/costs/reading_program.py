"""Reads a log of a local store in one way, and prints the most memory that this process had, in KiB.

``python -m tests.costs.reading_program WAY ROOT LOG``; without arguments it does nothing, as a bare interpreter.
"""

from __future__ import annotations

import sys

if len(sys.argv) > 1:
    from collections import deque
    from contextlib import suppress

    from statestore import RecordLog
    from statestore.cli import main
    from statestore.records import verify
    from statestore.records.jsonl import encode_line
    from statestore.sync import sync
    from statestore_local import LocalStore

    way, root, log = sys.argv[1:]
    with LocalStore(root) as store, LocalStore(f"{root}-copy", sync="never") as target:
        match way:
            case "stream":
                found = store.stream(log)
            case "records":
                found = RecordLog(store, log)
            case "lines":
                found = map(encode_line, RecordLog(store, log))
            case "sync":
                found = sync(store, target)
            case "verify":
                found = [verify(store, log)]
            case "command: verify":
                found, sys.argv[1:] = [], ["verify", root, log]
        deque(found, maxlen=0)
    if way.startswith("command"):
        with suppress(SystemExit):
            main()

with open("/proc/self/status") as status:
    [most] = [line.split()[1] for line in status if line.startswith("VmHWM:")]
print(most)
