"""The shell's door: commands, exit statuses, progress to stderr, results to stdout."""

from __future__ import annotations

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
        Always: 0 all done and every check passed; 1 a check failed or the request is infeasible; 2 the input
        is wrong; 3 anything else; 130 interrupted.
    """
    from anonflow.cli.interrupts import INTERRUPTS

    with INTERRUPTS.handled(to_the_end=arguments is None):
        from anonflow.cli.exit_status import leave

        leave(arguments)
