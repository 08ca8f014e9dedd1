"""The process that ``statestore demo`` kills: an agent in the middle of its turn."""

from __future__ import annotations

import hashlib
import json
import sys

from statestore.plugins import open_store
from statestore.records import CALL, RESULT, STEP, TEXT, Record, Usage
from statestore.sessions import Session, Sessions

__all__ = ["OUTPUT_SIZE", "take_turn"]

OUTPUT_SIZE = 16 << 20
"""How many bytes the tool's output has: enough for a kill to come while they are written."""


def take_turn(session: Session) -> list[Record]:
    """Answer with a tool call, as a model does, and return the records that say so."""
    call = {"name": "run", "arguments": {"command": "find / -name '*.state'"}}
    usage = Usage(input=412, output=57)
    return [
        session.append(TEXT, b"I shall look on this machine.", step="5eed0001", type="text/plain"),
        session.append(CALL, json.dumps(call).encode(), id="call_01", step="5eed0001", type="application/json"),
        session.append(STEP, b'{"stop_reason":"tool_use"}', id="5eed0001", upto=3, model="demo-model", usage=usage),
    ]


def main(url: str, id_: str) -> None:
    """Take a turn, report the records that were acknowledged, wait to be told, and append the tool's output."""
    with open_store(url) as store, Sessions(store).open(id_) as session:
        print(*(f"{record.n}:{hashlib.sha256(record.raw).hexdigest()}" for record in take_turn(session)), flush=True)
        sys.stdin.readline()
        line = b"/somewhere/sessions/1a2b3c4d.state\n"
        session.append(RESULT, line * (OUTPUT_SIZE // len(line)), for_="call_01", exit=0, type="text/plain")


if __name__ == "__main__":
    main(*sys.argv[1:])
