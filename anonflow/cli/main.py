"""The command ``anonflow``: what ends with which exit status."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer
from typer.exceptions import TyperException

import anonflow.cli.dashboard  # noqa: F401  (the command puts itself among the others)
from anonflow.cli.commands import app
from anonflow.errors import AnonflowError, unforeseen

__all__ = ["main"]

ISSUES = "please report it with the output of 'anonflow --debug ...'"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process without it.

    Raises
    ------
    SystemExit
        Always: 0 all done and every check passed; 1 a check failed or the request is infeasible; 2 the input
        is wrong; 3 anything else; 130 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names of columns and files may hold what the terminal's encoding has not
            stream.reconfigure(errors="backslashreplace")
    status = _guarded(given)
    if sys.stdout is not None:  # None where it was closed before we began
        try:
            sys.stdout.flush()
        except OSError:
            _drop_stdout()
    if status == 130:
        # a kernel that still runs on a thread would keep the process alive
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _guarded(given: list[str]) -> int:
    debug = "--debug" in given
    try:
        status = int(app(given, standalone_mode=False, prog_name="anonflow") or 0)
        return _interrupted() if status == 130 else status
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except AnonflowError as error:
        if debug:
            traceback.print_exc()
        return _said(str(error), error.exit_status)
    except TyperException as error:
        return _usage(error)
    except (BrokenPipeError, SystemExit):
        # typer leaves by SystemExit when nobody reads any more: no check's verdict may be lost as a success
        _drop_stdout()
        return 3
    except MemoryError:
        return _said("out of memory; use smaller partitions or fewer workers", 3)
    except OSError as error:
        if debug:
            traceback.print_exc()
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return _said(f"{where}{error.strerror or type(error).__name__}", 3)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return _said(f"a bug in anonflow: {unforeseen(error)}; {ISSUES}", 3)


def _usage(error: TyperException) -> int:
    """A wrong command line: what is wrong, and how to go on."""
    context = getattr(error, "ctx", None)
    message = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(message)
        return 0
    command = context.command_path if context is not None else "anonflow"
    return _said(f"{message.rstrip('.')}; try '{command} --help'", 2)


def _interrupted() -> int:
    return _said("interrupted; nothing was published", 130)


def _said(message: str, status: int) -> int:
    try:
        typer.echo(f"anonflow: {message}", err=True)
    except OSError:
        return status
    return status


def _drop_stdout() -> None:
    """Nobody reads any more: what is left in the buffer must not fail again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
