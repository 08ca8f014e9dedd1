"""``python -m statestore`` is the command ``statestore``."""

from __future__ import annotations

from statestore.cli import main

main()
