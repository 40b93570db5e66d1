"""The shell interface: commands, exit statuses, progress on stderr, results on stdout."""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes a while to load, and until the handlers are there Ctrl-C is a traceback
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process without it.

    Raises
    ------
    SystemExit
        Always, with status 0: everything done and every check passed; 1: a check failed or the request is infeasible;
        2: the input is wrong; 3: any other error; 130: interrupted.
    """
    from anonflow.cli.interrupts import INTERRUPTS

    INTERRUPTS.begin(to_the_end=arguments is None)
    try:
        from anonflow.cli.exit_status import leave

        leave(arguments)
    finally:
        INTERRUPTS.end()
