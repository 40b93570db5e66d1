"""A first run is over sooner: while its method's kernels are compiled, another process compiles those that a release and its card need."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pandas as pd

from anonflow.algorithms import anonymize, diversify
from anonflow.table import Table


@contextmanager
def second_compiler() -> Iterator[None]:
    """Compile in a second process, which ends with the run if it is still at work.

    Kernels go to the folder where all processes look for them, and none is compiled twice
    (:meth:`anonflow.kernels.cache.KernelCache.by_one_process`). Without a second core or a new process, the run compiles alone.
    """
    process = None
    if (os.cpu_count() or 1) > 1:
        with suppress(OSError):
            process = subprocess.Popen(
                [sys.executable, "-P", "-W", "ignore", "-m", __name__],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    try:
        yield
    finally:
        if process is not None:
            process.terminate()
            process.wait()


def main() -> None:
    """Draw a release of forty people, and make it diverse: what the card of every release does, too."""
    people = pd.DataFrame(
        {"age": [at % 7 for at in range(40)], "town": ["a", "b"] * 20, "illness": ["x", "x", "x", "y"] * 10}
    )
    roles = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
        "illness": {"role": "sensitive"},
    }
    anonymization = anonymize(Table(people, roles), "nh", k=2, seed=1)
    anonymization.release(seed=bytes(16))
    diversify(anonymization, "p-sensitivity", p=2)


if __name__ == "__main__":
    main()
