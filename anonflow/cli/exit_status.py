"""The command ``anonflow``: what ends with which exit status."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer

import anonflow.cli.dashboard
import anonflow.cli.init  # noqa: F401  (importing puts a command among the others)
from anonflow.cli import streams
from anonflow.cli.commands import app
from anonflow.cli.interrupts import INTERRUPTED, INTERRUPTS
from anonflow.cli.streams import say
from anonflow.errors import AnonflowError, unforeseen

__all__ = ["leave"]

COMMAND_LINE: type[Exception] = typer.BadParameter.__mro__[-4]
"""What all errors of a command line are: the class under Exception, which is typer's own, or click's under a typer that uses it."""

ISSUES = "please report it with the output of 'anonflow --debug ...'"


def leave(arguments: Sequence[str] | None) -> NoReturn:
    """Run the command and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str or None
        Those of the process without it.

    Raises
    ------
    SystemExit
        Always.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    output = streams.watched() if arguments is None else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names of columns and files may hold what the terminal's encoding has not
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in given
    with streams.warnings_told(lambda text: say(f"warning: {text}", err=True), others=debug):
        status = _guarded(given, debug)
    if output is not None:
        status = _told(output, status)
    INTERRUPTS.over(status)
    if status == INTERRUPTED:
        # a kernel that still runs on a thread would keep the process alive
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _guarded(given: list[str], debug: bool) -> int:
    try:
        status = int(app(given, standalone_mode=False, prog_name="anonflow") or 0)
        if status == 0 and INTERRUPTS.came:
            return _said("interrupted too late to be stopped: everything is done and published", 0)
        return _interrupted() if status == INTERRUPTED else status
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except Exception as error:  # whatever it is, a process ends with a sentence and a status
        # what was interrupted may say so in other words
        if INTERRUPTS.came and not INTERRUPTS.too_late:
            return _interrupted()
        return _failed(error, debug)
    except SystemExit as left:
        # typer leaves by it when a completion is shown, and when nobody reads any more: then no verdict may be lost as a success
        return 3 if left.code else 0


def _failed(failure: Exception, debug: bool) -> int:
    """Return what is said of an error, and the status."""
    try:
        os.getcwd()
    except FileNotFoundError:
        # no relative path can be found, and whatever looked for one failed in its own way
        if isinstance(failure, AnonflowError):
            _error(failure, debug)
        return _said("the working folder has been deleted; go to another one with 'cd' and run again", 2)
    return _error(failure, debug)


def _error(failure: Exception, debug: bool) -> int:
    try:
        raise failure
    except AnonflowError as error:
        if debug:
            traceback.print_exc()
        return _said(str(error), error.exit_status)
    except COMMAND_LINE as error:
        return _usage(error)
    except BrokenPipeError:
        return 3
    except MemoryError:
        return _said("out of memory; use smaller partitions or fewer workers", 3)
    except OSError as error:
        if debug:
            traceback.print_exc()
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return _said(f"{where}{error.strerror or type(error).__name__}", 3)
    except Exception as error:  # nobody raised it on purpose
        if debug:
            traceback.print_exc()
        return _said(f"a bug in anonflow: {unforeseen(error)}; {ISSUES}", 3)


def _usage(error: Exception) -> int:
    """Return a wrong command line: what is wrong, and how to go on."""
    context = getattr(error, "ctx", None)
    message = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        say(message)
        return 0
    command = context.command_path if context is not None else "anonflow"
    return _said(f"{message.rstrip('.')}; try '{command} --help'", 2)


def _interrupted() -> int:
    return _said("interrupted; nothing was published", INTERRUPTED)


def _said(message: str, status: int) -> int:
    say(f"anonflow: {message}", err=True)
    return status


def _told(output: streams.Output, status: int) -> int:
    """Return the status, 3 where all is done and what there was to read did not arrive."""
    sys.stdout.flush()
    if output.problem is None or status != 0:
        return status
    if output.problem == errno.EPIPE:  # the reader has left, as `head` does: it knows
        return 3
    return _said(
        f"the standard output cannot be written ({os.strerror(output.problem)}); the work itself is done, "
        "and what it published is there",
        3,
    )
