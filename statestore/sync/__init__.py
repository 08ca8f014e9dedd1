"""Copying one store to another: what is new is appended, what is there is compared, and nothing is overwritten.

A target is a copy of its source as long as each of its logs is a beginning of the source's log of that name. So
a copy is taken up where it stands, whatever ended the last one, and a log that is no beginning is left as it is.
"""

from __future__ import annotations

from statestore.sync._known import Equal, Known
from statestore.sync._log import Row, State
from statestore.sync._sync import sync

__all__ = ["Equal", "Known", "Row", "State", "sync"]
