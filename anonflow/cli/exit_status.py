"""The command ``anonflow``: exit statuses of results and errors."""

from __future__ import annotations

import contextlib
import errno
import inspect
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import typer

from anonflow.cli import streams
from anonflow.cli.command_line import COMMANDS, app
from anonflow.cli.interrupts import INTERRUPTED, INTERRUPTS
from anonflow.cli.streams import say
from anonflow.errors import AnonflowError, DataError, unforeseen

COMMAND_LINE: type[Exception] = typer.BadParameter.__mro__[-4]
"""What all errors of a command line are: the class under Exception, which is typer's own, or click's under a typer that uses it."""

SOURCE_WORDS = {
    "comment": "give --source comment={}",
    "encoding": "give --encoding NAME, such as cp1251 or latin-1",
    "footer": "give --source footer=1 to leave it out, or footer=0 to read it",
    "header": "give --source header=false, or header=true if it has the names",
    "index": "give --source index=drop to leave it out, or index=NAME to name it",
    "skip": "give --source skip={}",
}
"""What commands with ``--source`` call each key of a source that an error names (:class:`anonflow.errors.Setting`), with its values."""

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
    words = list(sys.argv[1:] if arguments is None else arguments)
    output = streams.watched() if arguments is None else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names of columns and files may have characters that the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in words
    with streams.warnings_told(lambda text: say(f"warning: {text}", err=True), others=debug):
        status = _guarded(words, debug)
    if output is not None:
        status = _delivered(output, status)
    INTERRUPTS.over(status)
    # a server's sessions have ended, but not what they computed
    if status == INTERRUPTED or (status == 0 and arguments is None and "dashboard" in words[:1]):
        # a kernel that still runs on a thread would keep the process alive
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status)
    sys.exit(status)


def _guarded(words: list[str], debug: bool) -> int:
    try:
        status = int(app(words, standalone_mode=False, prog_name="anonflow") or 0)
        if status == 0 and INTERRUPTS.came:
            return _report("interrupted too late to be stopped: everything is done and published", 0)
        return _interrupted() if status == INTERRUPTED else status
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except Exception as error:  # every error ends the process with a sentence and a status
        # an interruption may appear as another exception
        if INTERRUPTS.came and not INTERRUPTS.too_late:
            return _interrupted()
        if isinstance(error, AnonflowError) and _takes_source(words):
            error = error.in_words(SOURCE_WORDS).with_traceback(error.__traceback__)
        return _failed(error, debug)
    except SystemExit as left:
        # typer raises it after a completion, and when the reader has closed the pipe: a verdict must not be lost as a success
        return 3 if left.code else 0


def _takes_source(words: list[str]) -> bool:
    """Return whether the command of a line reads the file of a table, which no flow describes."""
    name = next((word for word in words if not word.startswith("-")), "")
    options = [inspect.signature(command).parameters for command in COMMANDS if command.__name__ == name]
    return any(option.annotation == "SourceKeys" for named in options for option in named.values())


def _failed(failure: Exception, debug: bool) -> int:
    """Return the message of an error, and the status."""
    try:
        os.getcwd()
    except FileNotFoundError:
        # relative paths cannot be resolved, and each user of one failed with its own error
        if isinstance(failure, AnonflowError):
            _error(failure, debug)
        return _report("the working folder has been deleted; go to another one with 'cd' and run again", 2)
    return _error(failure, debug)


def _error(failure: Exception, debug: bool) -> int:
    try:
        raise failure
    except AnonflowError as error:
        if debug:
            traceback.print_exc()
        return _report(str(error), error.exit_status)
    except COMMAND_LINE as error:
        return _usage(error)
    except BrokenPipeError:
        return 3
    except MemoryError:
        return _report("out of memory; use smaller partitions or fewer workers", 3)
    except OSError as error:
        if debug:
            traceback.print_exc()
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        kind = DataError if error.errno == errno.ENAMETOOLONG else AnonflowError
        problem = kind(f"{where}{error.strerror or type(error).__name__}")
        return _report(str(problem), problem.exit_status)
    except Exception as error:  # an unexpected error
        if debug:
            traceback.print_exc()
        return _report(f"a bug in anonflow: {unforeseen(error)}; {ISSUES}", 3)


def _usage(error: Exception) -> int:
    """Return the message about a wrong command line: the problem, and what to do."""
    context = getattr(error, "ctx", None)
    message = getattr(error, "format_message", lambda: str(error))()
    if type(error).__name__ == "NoArgsIsHelpError":
        say(message)
        return 0
    command = context.command_path if context is not None else "anonflow"
    return _report(f"{message.rstrip('.')}; try '{command} --help'", 2)


def _interrupted() -> int:
    return _report("interrupted; nothing was published", INTERRUPTED)


def _report(message: str, status: int) -> int:
    say(f"anonflow: {message}", err=True)
    return status


def _delivered(output: streams.Output, status: int) -> int:
    """Return the status; 3 if everything is done but the output could not be written."""
    sys.stdout.flush()
    if output.problem is None or status != 0:
        return status
    if output.problem == errno.EPIPE:  # the reader has closed the pipe, as `head` does, on purpose
        return 3
    return _report(
        f"the standard output cannot be written ({os.strerror(output.problem)}); the work itself is done, "
        "and its files are published",
        3,
    )
