"""`python -m tests.mutants [--number N] [--rooms ROOM,...] [--jobs N] [--save] [--only NAME]`: which faults do the tests notice?

Each fault of the sample (`faults.py`) is put into a copy of the checkout, and the quick tests of its room that enter its function run
until one fails. Faults that no test notices are compared with `survivors.txt`: a new one ends the run with status 1. `--save` writes
that file anew, and keeps what it says of each.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from tests import ROOT
from tests.mutants.faults import ROOMS, Fault, sample
from tests.mutants.one_run import FAILING, LIBRARIES, run_tests

processes = multiprocessing.get_context("forkserver")

SURVIVORS = Path(__file__).with_name("survivors.txt")


def main() -> int:
    """Run the sample's faults and print which ones the tests do not notice."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[2])
    parser.add_argument("--number", type=int, default=300, help="faults in the sample")
    parser.add_argument("--rooms", default=",".join(ROOMS), help="rooms of the package, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="faults at the same time")
    parser.add_argument("--only", default="", metavar="TEXT", help="faults with this text in their name")
    parser.add_argument("--save", action="store_true", help="write survivors.txt")
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout, whose tests run")
    parser.add_argument(
        "--records",
        type=Path,
        help="a folder for what tests enter, which another run of the same checkout uses again",
    )
    parser.add_argument("--survivors", type=Path, default=SURVIVORS, help="another file for survivors")
    arguments = parser.parse_args()
    rooms = arguments.rooms.split(",")
    faults = [
        fault
        for fault in sample(arguments.root, arguments.number)
        if fault.room in rooms and arguments.only in fault.name
    ]
    survivors = run(arguments.root, faults, arguments.jobs, arguments.records)
    notes = _notes(arguments.survivors)
    new = [fault for fault in survivors if fault.name not in notes]
    print(
        f"{len(faults)} faults, {len(faults) - len(survivors)} noticed, {len(survivors)} not, {len(new)} of them new"
    )
    for fault in new:
        print(f"new survivor: line {fault.line} of {fault.name}")
    for name in sorted(set(notes) & {fault.name for fault in faults} - {fault.name for fault in survivors}):
        print(f"noticed now: {name}")
    if arguments.save:
        tried = {fault.name for fault in faults}
        names = {fault.name for fault in survivors} | {name for name in notes if name not in tried}
        text = "".join(f"{name}\t{notes.get(name, '')}\n" for name in sorted(names))
        arguments.survivors.write_text(text, encoding="utf-8")
    return 1 if new and not arguments.save else 0


def run(root: Path, faults: list[Fault], jobs: int, records: Path | None) -> list[Fault]:
    """Return the faults that no test notices; several run at a time, each in a copy of the checkout.

    Raises
    ------
    SystemExit
        If the tests of a room cannot be run without any fault.
    """
    processes.set_forkserver_preload(LIBRARIES)
    free: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory(prefix="anonflow-mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for job in range(jobs):
            home = Path(folder, f"checkout-{job}")
            _copy(root, home)
            free.put(home)

        records = records or Path(folder)
        records.mkdir(exist_ok=True)

        def status(fault: Fault | None, room: str) -> int:
            home = free.get()
            try:
                start = time.monotonic()
                ended = _status(home, fault, room, records / f"{room}.json")
                noticed = home / "noticed"
                test = noticed.read_text(encoding="utf-8") if noticed.exists() else ""
                noticed.unlink(missing_ok=True)
                about = f"{fault.name} | {test}" if fault else f"{room}, no fault {test}"
                seconds = time.monotonic() - start
                print(
                    f"{'survived' if ended == 0 else 'noticed'} {ended} {seconds:6.1f} s | {about}",
                    flush=True,
                )
                return ended
            finally:
                free.put(home)

        rooms = sorted({fault.room for fault in faults} - {path.stem for path in records.glob("*.json")})
        broken = [
            room for room, ended in zip(rooms, pool.map(lambda room: status(None, room), rooms)) if ended
        ]
        if broken:
            raise SystemExit(f"without any fault, tests cannot be run in: {', '.join(broken)}")
        for path in sorted(records.glob("*.json")):
            for test in json.loads(path.read_text())[FAILING]:
                print(f"fails without any fault: {test}")
        ends = pool.map(lambda fault: status(fault, fault.room), faults)
        return [fault for fault, ended in zip(faults, ends, strict=True) if ended == 0]


def _copy(root: Path, home: Path) -> None:
    """Copy the files of a checkout that git tracks, and new ones that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split(
        "\0"
    ):
        if name and (root / name).is_file():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, home / name)


def _status(home: Path, fault: Fault | None, room: str, record: Path) -> int:
    """Run a room's tests in a copy of the checkout, with a fault in it; return how they ended: 0 if nothing failed."""
    environment = {"NUMBA_CACHE_DIR": str(home.parent / "kernels"), "PYTHONHASHSEED": "0"}
    near = fault.path if fault else f"anonflow/{room}/__init__.py"
    function = ""
    if fault is not None and room != "kernels":  # calls of compiled code are not seen
        function = fault.entered((home / fault.path).read_bytes())
    with _put_in(home, fault):
        child = processes.Process(
            target=run_tests, args=(str(home), near, function, record, f"tests/{room}", environment)
        )
        child.start()
        child.join()
        with contextlib.suppress(ProcessLookupError):  # what tests left running goes, too
            os.killpg(child.pid, signal.SIGKILL)
        return child.exitcode if child.exitcode is not None else -1


@contextmanager
def _put_in(home: Path, fault: Fault | None) -> Iterator[None]:
    """Put a fault into a copy of the checkout and take it out again."""
    shutil.rmtree(home / ".hypothesis", ignore_errors=True)  # examples that another fault failed on
    if fault is None:
        yield
        return
    path = home / fault.path
    source, before = path.read_bytes(), path.stat().st_mtime_ns
    compiled = None
    path.write_bytes(fault.put_into(source))
    _set_time(path, before + next(_SERIAL) * 10**9)
    try:
        if fault.room == "kernels":
            compiled = _share_kernels(home, fault.path)
        yield
    finally:
        path.write_bytes(source)
        _set_time(path, before)
        if compiled is not None:
            shutil.rmtree(compiled, ignore_errors=True)


_SERIAL = itertools.count(1)


def _set_time(path: Path, time_ns: int) -> None:
    """Set when a file was changed, to the second: Python knows by it which compiled module is old."""
    os.utime(path, ns=(time_ns, time_ns))


def _share_kernels(home: Path, path: str) -> Path | None:
    """Give a copy with a changed file of kernels what is compiled of all others that do not import it; return the folder."""
    command = [sys.executable, "-c", "from anonflow.kernels import cache; print(cache.folder())"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(home.parent / "kernels"), "PYTHONPATH": str(home)}
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return None  # the fault is noticed at the import
    fresh = Path(done.stdout.strip())
    changed = _importers(home / "anonflow" / "kernels", Path(path).relative_to("anonflow/kernels").as_posix())
    complete = max(
        fresh.parent.iterdir(), key=lambda folder: len(list(folder.iterdir()))
    )  # that of the run without a fault
    for kernel in complete.glob("*.kernel"):
        key, _ = pickle.loads(kernel.read_bytes()[hashlib.sha256().digest_size :])
        _, (place, *_), *_ = key
        if place not in changed:
            shutil.copy2(kernel, fresh)
    return fresh


def _importers(kernels: Path, changed: str) -> set[str]:
    """Return a file of kernels and all that import it, directly or not."""
    names = {
        path.relative_to(kernels).as_posix(): path.read_text(encoding="utf-8")
        for path in kernels.rglob("*.py")
    }
    importers, waiting = {changed}, [changed]
    while waiting:
        module = "anonflow.kernels." + waiting.pop().removesuffix(".py").replace("/", ".").removesuffix(
            ".__init__"
        )
        for name, text in names.items():
            if name not in importers and re.search(rf"\b{re.escape(module)}\b", text):
                importers.add(name)
                waiting.append(name)
    return importers


def _notes(path: Path) -> dict[str, str]:
    """Return the survivors of a file, each with what it says of them."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: note for name, _, note in (line.partition("\t") for line in lines) if name}


if __name__ == "__main__":
    sys.exit(main())
