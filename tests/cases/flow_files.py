"""Flow files for tests: a small table of people and a flow over it, in a folder of the test's own."""

from __future__ import annotations

import random
from pathlib import Path

CITIES = ("Athens", "Patras", "Volos", "Chania")
HEADER = "age,city,zip,income"

COLUMNS = """\
    age: {role: quasi-identifier, kind: numeric}
    city: {role: quasi-identifier, kind: categorical}
    income: {role: sensitive}
"""

REPORTED = "{table: out/release.csv, report: out/report.html}"
"""A release and its report, with a card: three times the work of a release alone."""

CENSUS_COLUMNS = """\
    Age: {role: quasi-identifier, kind: numeric}
    Gender: {role: quasi-identifier, kind: categorical}
"""


def people(n: int = 60, seed: int = 4) -> list[str]:
    """Lines of a CSV file, the header first."""
    rng = random.Random(seed)
    rows = [
        f"{rng.randint(18, 80)},{rng.choice(CITIES)},{rng.choice(['10431', '26221', '73100'])},"
        f"{rng.choice(['poor', 'modest', 'rich'])}"
        for _ in range(n)
    ]
    return [HEADER, *rows]


def flow_text(name: str, columns: str, rest: str, source: str = "{csv: people.csv}") -> str:
    """A flow of a name, with its columns and whatever follows its table, as they stand in a file."""
    return f"flow: {name}\nversion: 1\ntable:\n  source: {source}\n  columns:\n{columns}{rest}"


def write_flow(
    folder: Path,
    *,
    n: int = 60,
    source: str = "{csv: people.csv}",
    columns: str = COLUMNS,
    partition: str = "{size: 20}",
    anonymize: str = "{algorithm: greedy, k: 3}",
    steps: str = "",
    publish: str = "{table: out/release.csv}",
    more: str = "",
    data: bytes | None = None,
) -> Path:
    """Write ``people.csv`` and ``flow.yaml`` into a folder; the flow's path."""
    raw = "\n".join(people(n)).encode() + b"\n" if data is None else data
    (folder / "people.csv").write_bytes(raw)
    path = folder / "flow.yaml"
    path.write_text(
        flow_text(
            "test",
            columns,
            f"partition: {partition}\nsteps:\n  - anonymize: {anonymize}\n{steps}"
            + (f"publish: {publish}\n" if publish else "")
            + more,
            source,
        ),
        encoding="utf-8",
    )
    return path


def everything_in(folder: Path) -> set[str]:
    """Relative names of all files and folders below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
