"""The application: its commands, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from statestore.cli.completion import VARIABLE as COMPLETE
from statestore.cli.progress import end
from statestore.cli.screen import complain, emit, fail
from statestore.errors import StateStoreError

__all__ = ["app"]

# What a shell reports of a program that died of SIGINT and of SIGPIPE.
_INTERRUPTED: Final = 130
_READER_GONE: Final = 141

_FIRST_STEPS: Final = """\
statestore keeps the state of AI agents as append-only logs.

See it work, in a temporary directory and without a network:
  statestore demo

Look at what you have:
  statestore ls ./sessions               the logs of a store, which is a directory or a URL
  statestore show ./sessions 1a2b3c4d    a session told as a story
  statestore verify ./sessions           whether everything is whole

Bring in what Claude Code or Codex has kept, and search it:
  statestore import claude-code ~/.claude/projects ./sessions
  statestore grep 'some words' ./sessions

Everything else:
  statestore --help
"""


class _Commands(TyperGroup):
    """The group of all commands, which turns whatever goes wrong into a message and a status."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit with the status."""
        given = list(sys.argv[1:] if args is None else args)
        for stream in (sys.stdout, sys.stderr):
            # A terminal that cannot show a character gets its escape.
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        if COMPLETE in os.environ:
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
            complete_var = COMPLETE
        status: object = 1
        try:
            status = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
            sys.stdout.flush()
        except BrokenPipeError:
            status = _READER_GONE
        except StateStoreError as error:
            # The operator's commands name themselves: what they print is often kept in a log of many programs.
            label = f"statestore sessions {given[1]}" if given[:1] == ["sessions"] else "error"
            fail(error, as_json="--json" in given, label=label)
        except typer.Abort:
            status = _INTERRUPTED
        except OSError as error:
            _fail_otherwise(error, as_json="--json" in given)
        except Exception as error:
            if hasattr(error, "format_message"):
                status = _refuse(error, as_json="--json" in given)
            else:
                _break_down()
        try:
            sys.stdout.flush()
        except OSError:
            _let_go_of_stdout()
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            raise typer.Exit(_READER_GONE) from None
        finally:
            end()
        return result


def _refuse(error: Any, *, as_json: bool) -> int:
    """Report wrong usage, in the parser's words."""
    message = error.format_message().removeprefix("Invalid value: ")
    command = getattr(getattr(error, "ctx", None), "command_path", "statestore")
    told = message if message[:2].isupper() else message[:1].lower() + message[1:]
    complain(f"error: {told.rstrip('.')}; {command} --help shows what it takes")
    if as_json:
        emit({"error": "Usage", "message": message, "facts": {"command": command}}, sys.stderr)
    return int(error.exit_code)


def _fail_otherwise(error: OSError, *, as_json: bool) -> None:
    """Report what the system refused outside of any store: a file to read from, a full disk behind the output."""
    message = error.strerror or str(error)
    facts = {"path": str(error.filename)} if error.filename is not None else {}
    complain(" ".join([f"error: {message.lower()}", *(f"{key}={value}" for key, value in facts.items())]))
    if as_json:
        emit({"error": type(error).__name__, "message": message, "facts": facts}, sys.stderr)


def _break_down() -> None:
    """Print the traceback of a fault of ours, line by line: it may quote what a log holds."""
    for line in traceback.format_exc().split("\n"):
        complain(line)
    complain("error: this is a fault of statestore or of a plugin: please report it, with the lines above")


def _let_go_of_stdout() -> None:
    """Keep the interpreter from writing, as it ends, what could not be written."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


app = typer.Typer(
    name="statestore",
    cls=_Commands,
    help="The state of AI agents as append-only logs: look at it, check it, fork it, add to it.",
    add_completion=False,
    no_args_is_help=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from statestore import __version__

        sys.stdout.write(f"statestore {__version__}\n")
        raise typer.Exit


@app.callback()
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        sys.stdout.write(_FIRST_STEPS)


def _add_commands() -> None:
    from statestore.cli import (
        bench,
        completion,
        conform,
        conversations,
        demo,
        diff,
        doctor,
        grep,
        moving,
        new_backend,
        plugins,
        reading,
        repair,
        sessions,
        show,
        stats,
        sync,
        tail,
        upkeep,
        verify,
        writing,
    )

    for command in (
        demo.demo,
        reading.ls,
        show.show,
        tail.tail,
        reading.cat,
        grep.grep,
        writing.append,
        writing.fork,
        diff.diff,
        verify.verify,
        repair.repair,
        stats.stats,
        upkeep.compact,
        upkeep.gc,
        sync.sync,
        doctor.doctor,
        plugins.plugins,
        conform.conform,
        bench.bench,
        new_backend.new_backend,
    ):
        app.command()(command)
    app.command("import")(moving.import_)
    app.command()(moving.export)
    app.command()(completion.completion)
    app.add_typer(conversations.app, name="conversations")
    app.add_typer(sessions.app, name="sessions")


_add_commands()
