"""`python -m tests.papers [--small] [--only PLACE] [PAPER ...]`: measure, store, and run the workbooks anew.

Without a number all five. The full run takes a quarter of an hour of processor time for the first (Doka 2015), four
hours for the second (Murakami 2018), an hour for the fourth (Tassa 2012), and some minutes for the third and fifth; numbers and the machine's description go to `notebooks/papers/results`.
`--only "Figure 8"` measures that place alone, keeps the others, and leaves the workbook to `--small`.
`--small` leaves the full numbers as they are: it renews what the small run on real data gives, and the workbooks.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

import nbformat
from nbclient import NotebookClient

import anonflow
from tests.benchmarks import measuring
from tests.papers.figures import TIMES, Figure, Numbers, Run
from tests.papers.workbook import FOLDER, PAPERS, Workbook

BETWEEN = 60.0
"""Seconds after which what was measured of a place is stored, so that a run that is ended keeps it."""


def main() -> int:
    """Measure the papers asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.papers", description="The papers' tables and figures."
    )
    parser.add_argument("papers", nargs="*", type=int, metavar="PAPER", help="1 to 5; all if none")
    parser.add_argument("--small", action="store_true", help="keep the full numbers, renew the small ones")
    parser.add_argument("--only", action="append", default=[], metavar="PLACE", help='such as "Figure 8"')
    arguments = parser.parse_args()
    for number in arguments.papers or PAPERS:
        if number not in PAPERS:
            parser.error(f"no paper {number}; there are {', '.join(map(str, PAPERS))}")
        book = Workbook(number)
        unknown = sorted(set(arguments.only) - set(book.paper.PARTS))
        if unknown:
            parser.error(f"paper {number} has no {', '.join(unknown)}; it has {', '.join(book.paper.PARTS)}")
        store(book, small=arguments.small, only=arguments.only)
        if not arguments.only:
            execute(book)
    return 0


def store(book: Workbook, small: bool, only: list[str]) -> None:
    """Measure a paper and write its numbers, place by place: another process may measure another place."""
    real = measuring.data_folder() is not None
    if not real:
        print("ANONFLOW_DATA names no folder: what needs it is left out", file=sys.stderr)
    for place in () if small else only or book.paper.PARTS:
        begin, last = time.process_time(), time.monotonic()
        figures: list[Figure] = []
        for figure in book.paper.PARTS[place](Run(full=True, real=real)):
            figures.append(figure)
            if time.monotonic() - last > BETWEEN:
                _keep(book, place, figures, whole=False)
                last = time.monotonic()
        taken = round(time.process_time() - begin, 1)
        print(f"paper {book.number}, {place}: {len(figures)} numbers, {taken} s", file=sys.stderr)
        _keep(book, place, figures, whole=True)
        stored = book.stored()
        stored["processor seconds"] = stored.get("processor seconds", {}) | {place: taken}
        _write(book, stored)
    if real and not only:
        figures = book.measured(Run(full=False, built_in=False, real=True))
        kept = [figure.to_json() for figure in figures if figure.key.quantity not in TIMES]
        _write(book, book.stored() | {"small, real data": kept})


def _keep(book: Workbook, place: str, figures: list[Figure], whole: bool) -> None:
    """Store the figures of a place: all of them, or so far as they are measured beside those of an earlier run."""
    stored = book.stored()
    renewed = {figure.key for figure in figures}
    kept = [
        figure
        for figure in map(Figure.from_json, stored.get("full", []))
        if figure.key.place != place or not (whole or figure.key in renewed)
    ]
    places = list(book.paper.PARTS)
    ordered = sorted(Numbers([*kept, *figures]), key=lambda figure: places.index(figure.key.place))
    _write(book, stored | {"machine": machine(), "full": [figure.to_json() for figure in ordered]})


def _write(book: Workbook, stored: dict[str, Any]) -> None:
    names = ("machine", "processor seconds", "full", "small, real data")
    document = {"paper": book.number} | {name: stored.get(name, []) for name in names}
    book.results.parent.mkdir(exist_ok=True)
    book.results.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """Processor, cores, memory and versions; nothing that names one computer."""
    known = measuring.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kept = {name: known[name] for name in ("cpu", "cores")}
    kept["memory"] = f"{memory:.0f} GiB"
    kept["anonflow"] = anonflow.__version__
    return kept | {name: known[name] for name in ("python", "numpy", "scipy", "pandas", "numba")}


def execute(book: Workbook) -> None:
    """Run a workbook and keep what it shows."""
    path = FOLDER / f"{book.name}.ipynb"
    if not path.exists():
        return
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran is of no use
    # which Python ran it is of no use either
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    nbformat.write(notebook, path)


if __name__ == "__main__":
    sys.exit(main())
