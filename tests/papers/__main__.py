"""`python -m tests.papers [--small] [--missing] [--only PLACE] [PAPER ...]`: measure, store, and run the workbooks anew.

Without a number all five. Numbers and the machine's description go to `notebooks/papers/results`; `--help` says how much
processor time the stored full runs took.
`--only "Figure 8"` measures that place alone, keeps the others, and leaves the workbook to `--small`.
`--missing` keeps what is stored of a place and measures the rest, where the paper's module can tell (1 and 2); its seconds
are added to those stored, and the machine to those of the place.
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
from tests.papers.workbook import FOLDER, PAPERS, PLACES, Workbook, efforts, machines

BETWEEN = 60.0
"""Seconds after which what was measured of a place is stored, so that a run that is ended keeps it."""


def main() -> int:
    """Measure the papers asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.papers",
        description="The papers' tables and figures.",
        epilog=f"Processor time of the stored full runs: {efforts()}.",
    )
    parser.add_argument("papers", nargs="*", type=int, metavar="PAPER", help="1 to 5; all if none")
    parser.add_argument("--small", action="store_true", help="keep the full numbers, renew the small ones")
    parser.add_argument(
        "--missing", action="store_true", help="measure what is not stored yet (papers 1 and 2)"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PLACE", help='such as "Figure 8"')
    arguments = parser.parse_args()
    for number in arguments.papers or PAPERS:
        if number not in PAPERS:
            parser.error(f"no paper {number}; there are {', '.join(map(str, PAPERS))}")
        book = Workbook(number)
        unknown = sorted(set(arguments.only) - set(book.paper.PARTS))
        if unknown:
            parser.error(f"paper {number} has no {', '.join(unknown)}; it has {', '.join(book.paper.PARTS)}")
        store(book, small=arguments.small, only=arguments.only, missing=arguments.missing)
        if not arguments.only:
            execute(book)
    return 0


def store(book: Workbook, small: bool, only: list[str], missing: bool = False) -> None:
    """Measure a paper and write its numbers, place by place: another process may measure another place."""
    real = measuring.data_folder() is not None
    run = Run(full=True, real=real, stored=book.full if missing else Numbers([]))
    if not real:
        print("ANONFLOW_DATA names no folder: what needs it is left out", file=sys.stderr)
    for place in () if small else only or book.paper.PARTS:
        begin, last = time.process_time(), time.monotonic()
        earlier = book.stored().get("processor seconds", {}).get(place, 0.0)
        figures: list[Figure] = []
        for figure in book.paper.PARTS[place](run):
            figures.append(figure)
            if time.monotonic() - last > BETWEEN:
                _keep(book, place, figures, earlier + time.process_time() - begin, whole=False)
                last = time.monotonic()
        taken = time.process_time() - begin
        print(f"paper {book.number}, {place}: {len(figures)} numbers, {taken:.1f} s", file=sys.stderr)
        # what is kept of earlier runs took their seconds
        _keep(book, place, figures, taken + (earlier if _kept(book, figures) else 0.0), whole=True)
    if real and not only:
        figures = book.measured(Run(full=False, built_in=False, real=True))
        kept = [figure.to_json() for figure in figures if figure.key.quantity not in TIMES]
        _write(book, book.stored() | {"small, real data": kept})


def _kept(book: Workbook, figures: list[Figure]) -> list[Figure]:
    """Which figures are those that the book had stored before."""
    return [figure for figure in figures if book.full.by_key.get(figure.key) is figure]


def _keep(book: Workbook, place: str, figures: list[Figure], seconds: float, whole: bool) -> None:
    """Store the figures of a place: all of them, or so far as they are measured beside those of an earlier run.

    `seconds` are what all that is stored of the place took.
    """
    stored = book.stored()
    renewed = {figure.key for figure in figures}
    others = [
        figure
        for figure in map(Figure.from_json, stored.get("full", []))
        if figure.key.place != place or not (whole or figure.key in renewed)
    ]
    places = list(book.paper.PARTS)
    ordered = sorted(Numbers([*others, *figures]), key=lambda figure: places.index(figure.key.place))
    kept = _kept(book, figures)
    results: dict[str, Any] = {
        "full": [figure.to_json() for figure in ordered],
        "machines": machines(stored),
        "processor seconds": stored.get("processor seconds", {}) | {place: round(seconds, 1)},
    }
    if len(kept) < len(figures):
        results["machines"] = _measured_on(machine(), place, machines(stored), again=whole and not kept)
    stored.pop("machine", None)
    _write(book, stored | results)


def _measured_on(
    current: dict[str, Any], place: str, earlier: list[dict[str, Any]], again: bool
) -> list[dict[str, Any]]:
    """The machines with their places after a place was measured on the current one: in part, or all of it again."""
    results = [
        entry | {PLACES: [name for name in entry[PLACES] if name != place or not again]} for entry in earlier
    ]
    same = [entry for entry in results if {name: entry[name] for name in entry if name != PLACES} == current]
    if not same:
        same = [current | {PLACES: []}]
        results += same
    same[0][PLACES] = list(dict.fromkeys([*same[0][PLACES], place]))
    return [entry for entry in results if entry[PLACES]]


def _write(book: Workbook, stored: dict[str, Any]) -> None:
    # a file of one machine for all places stays one until a place is measured
    machine_or_machines = "machine" if "machine" in stored else "machines"
    names = (machine_or_machines, "processor seconds", "full", "small, real data")
    document = {"paper": book.number} | {name: stored.get(name, []) for name in names}
    book.results.parent.mkdir(exist_ok=True)
    # another process that stores another place never reads half a file
    unfinished = book.results.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.replace(book.results)


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
