"""The command line: ``statestore …``. Importing it loads neither the commands nor a backend."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command that the process's arguments name, and exit with its status.

    The status is 0, 1 on a failure, 2 on wrong usage, 130 when interrupted, and 141 where the reader of the output
    has gone.
    """
    from statestore.cli.app import app

    app(prog_name="statestore")
