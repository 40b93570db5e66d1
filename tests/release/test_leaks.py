"""A table of unique markers goes through every command and error case: where do they come out?

Only in the release's own cells, and in the owner's folder and views.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import anonflow as af
from anonflow import cli, engine
from anonflow.algorithms import REGISTRY
from anonflow.engine.execution import schedulers, tasks
from anonflow.engine.execution.events import EventStream
from anonflow.errors import AnonflowError
from tests import ROOT
from tests.cases.flow_files import everything_in

N = 24
MARK = re.compile(r"[qrstu]xz\d\d|(?<![\d.])7300[0-3]\d\d|Qxz|19\d\d-07-\d\d|leafxz", re.IGNORECASE)
"""What every cell of the table looks like, and what no output may hold; digits of a random hash rarely do."""

COLUMNS = """\
    town: {role: quasi-identifier, kind: categorical}
    number: {role: quasi-identifier, kind: numeric}
    code: {role: quasi-identifier, kind: positions}
    field: {role: quasi-identifier, kind: hierarchy, hierarchy: tree.csv}
    born: {role: quasi-identifier, kind: numeric}
    flag: {role: quasi-identifier, kind: suppression}
    illness: {role: sensitive}
    person: {role: identifier}
"""


def marked() -> pd.DataFrame:
    """No two cells are equal, and each is a marker."""
    return pd.DataFrame(
        {
            "town": [f"qxz{i:02d}" for i in range(N)],
            "number": [7300001 + 17 * i for i in range(N)],
            "code": [f"rxz{i:02d}" for i in range(N)],
            "field": [f"leafxz{i:02d}" for i in range(N)],
            "born": [f"19{50 + i}-07-{1 + i:02d}" for i in range(N)],
            "flag": [f"txz{i:02d}" for i in range(N)],
            "illness": [f"sxz{i:02d}" for i in range(N)],
            "person": [f"uxz{i:02d}" for i in range(N)],
            "unnamed": [f"uxz{i:02d}" for i in range(N)],
        }
    )


def flow_in(
    folder: Path, *, columns: str = COLUMNS, anonymize: str = "{algorithm: greedy, k: 3}", more: str = ""
) -> Path:
    marked().to_csv(folder / "people.csv", index=False)
    lines = [f"leafxz{i:02d};Qxz{i // 6};*" for i in range(N)]
    (folder / "tree.csv").write_text("\n".join(lines) + "\n")
    (folder / "flow.yaml").write_text(
        f"flow: marked\nversion: 1\ntable:\n  source: {{csv: people.csv}}\n  columns:\n{columns}"
        f"partition: {{size: 8}}\nsteps:\n  - anonymize: {anonymize}\n  - draw: {{}}\n  - verify: [covers, guarantee]\n"
        "  - attack: [prosecutor, marketer, linker, insider, order, homogeneity]\n"
        f"publish: {{table: out/r.parquet, report: out/r.html}}\n{more}"
    )
    return folder / "flow.yaml"


def clean(text: str, where: str) -> None:
    report = MARK.search(text)
    assert report is None, f"{report.group() if report else ''} in {where}"


def shell(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "anonflow", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip


# --------------------------------------------------------------------------------------- what goes well


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_run_and_all_it_writes(tmp_path: Path, scheduler: str) -> None:
    flow_in(tmp_path)
    # a seed: by chance a file of a few thousand bytes has any three in one of some thousand draws
    (tmp_path / "seed").write_text("5eed" * 8)
    done = shell(tmp_path, "run", "flow.yaml", "--seed-file", "seed", "--scheduler", scheduler)
    assert done.returncode == 0, done.stderr
    clean(done.stdout + done.stderr, "the shell")
    clean((tmp_path / "out" / "r.html").read_text(), "the report")
    for name in everything_in(tmp_path):
        clean(name, "a file's name")
    file = pq.ParquetFile(tmp_path / "out" / "r.parquet")
    assert file.metadata.metadata is None
    clean(str(file.schema), "the schema of the file")
    clean(str(file.metadata), "the metadata of the file")
    for column in range(file.metadata.num_columns):
        assert not file.metadata.row_group(0).column(column).is_stats_set
    assert {"person", "unnamed"}.isdisjoint(file.schema_arrow.names)
    raw = (tmp_path / "out" / "r.parquet").read_bytes()
    assert b"uxz" not in raw
    # besides certificate, seed and record nothing is kept, and the record says no value either
    record = (tmp_path / "owner" / "marked" / "record.json").read_text()
    clean(record, "the run record")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a flow that has run."""
    folder = tmp_path_factory.mktemp("published")
    engine.run(flow_in(folder), seed=2**127)
    return folder


ORIGINAL = "--original people.csv --schema flow.yaml --k 3"
RELEASE = "--release out/r.parquet"


@pytest.mark.parametrize(
    "line",
    [
        "validate flow.yaml",
        "schema people.csv",
        "schema --flow",
        f"verify {ORIGINAL} {RELEASE}",
        f"verify {ORIGINAL} {RELEASE} --json",
        f"verify {ORIGINAL} {RELEASE} --certificate owner/marked/certificate.npz",
        f"verify {ORIGINAL} {RELEASE} --criterion k-anonymity",
        f"verify {ORIGINAL} --release people.csv",
        "compare people.csv --schema flow.yaml --k 3 --algorithms greedy --partition-size 0 --bounds --csv compared.csv",
        pytest.param(
            "compare people.csv --schema flow.yaml --k 3,5 --algorithms greedy,mondrian --partition-size 0 --bounds --csv compared.csv",
            marks=pytest.mark.slow,
        ),
        "run flow.yaml --replay owner/marked",
        "run flow.yaml --replay owner/marked --json",
        "algorithms",
        "datasets",
    ],
)
def test_other_commands(
    published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    monkeypatch.chdir(published)
    arguments = line.split()
    with pytest.raises(SystemExit):
        cli.main(arguments)
    out, err = capsys.readouterr()
    clean(out + err, f"anonflow {arguments[0]}")
    if arguments[0] == "compare":
        clean((published / "compared.csv").read_text(), "the comparison")


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_reprs_and_frames_for_everybody(tmp_path: Path) -> None:
    flow = engine.load_flow(flow_in(tmp_path))
    table = af.Table.read(tmp_path / "people.csv", flow.schema)
    anon = af.anonymize(table, "greedy", k=3, seed=1)
    release = anon.release(seed=2**127)
    check = af.verify(table, release, k=3)
    report = engine.run(flow.path)
    attacks = af.attack(table, release, seed=1)
    shown: dict[str, Any] = {
        "table": table, "schema": flow.schema, "records": table.records, "domain": table.domains[0],
        "hierarchy": table.schema["field"].hierarchy, "flow": flow, "run": flow.runs[0], "anonymization": anon,
        "generalization": anon.generalization, "release": release, "certificate": release.certificate,
        "verification": check, "findings": check.findings, "report": report, "result": report.results[0],
        "outcome": anon.facts,
    }  # fmt: skip
    for name, value in shown.items():
        clean(repr(value), f"repr of the {name}")
        clean(str(value), f"str of the {name}")
    clean(check.frame().to_string() + check.to_json(), "the verification's frame")
    clean(report.runs.to_string() + report._repr_html_(), "the report's frame")
    clean(attacks.to_string(), "the attacks")
    clean(
        str(af.measure(table, anon, ["gcp", "usefulness", "row-types", "c-avg", "discernibility"])),
        "the measures",
    )


def test_names_of_tasks_are_numbers_and_words_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[schedulers.Call] = []
    real = schedulers.Executor.stream

    def noted(own: Any, calls: Any, *shared: Any, **more: Any) -> Any:
        listed = list(calls)
        seen.extend(listed)
        return real(own, listed, *shared, **more)

    monkeypatch.setattr(schedulers.Executor, "stream", noted)
    flow = flow_in(tmp_path)
    text = flow.read_text()
    engine.run(flow, seed=2**127)
    text = re.sub("  - attack.*\n", "", text).replace("{csv: people.csv}", "{csv: people.csv, pieces: 9}")
    flow.write_text(text)
    engine.run(flow, seed=2**127)
    assert {call.function.__name__ for call in seen} == {"solve_batch"}
    for call in seen:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*(-\d+-\d+)?", call.label), call.label
        clean(repr(call), "a task")
        assert str(2**127) not in repr(call)


def test_events_and_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    items: list[Any] = []
    engine.run(flow_in(tmp_path), on_event=items.append, events=EventStream())
    assert items
    for event in items:
        clean(str(event.to_mapping()), f"the event {event.kind}")
    clean(caplog.text, "the log")


# -------------------------------------------------------------------------------------- what goes wrong


def edited(old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / "flow.yaml").read_text()
        assert old in text
        (folder / "flow.yaml").write_text(text.replace(old, new))

    return edit


def cells(line: int, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        lines = (folder / "people.csv").read_text().splitlines()
        assert old in lines[line]
        lines[line] = lines[line].replace(old, new)
        (folder / "people.csv").write_text("\n".join(lines) + "\n")

    return edit


WRONG: dict[str, Callable[[Path], None]] = {
    "text in a numeric column": cells(5, "7300069", "qxz99"),
    "a blank in a numeric column": cells(5, "7300069", ""),
    "a value outside the hierarchy": cells(5, "leafxz04", "leafxz77"),
    "a code of another length": cells(5, "rxz04", "rxz0444"),
    "a date that is none": cells(5, "1954-07-05", "1954-07-55"),
    "a short row": cells(5, "rxz04,", ""),
    "a long row": cells(5, "rxz04,", "rxz04,rxz05,"),
    "an open quote": cells(5, "qxz04", '"qxz04'),
    "no such column": edited("    flag:", "    flags:"),
    "no such method": edited("greedy", "gredy"),
    "a k that is too large": edited("k: 3", "k: 25"),
    "a boundary that is no node": edited("hierarchy: tree.csv", "hierarchy: tree.csv, boundary: [Elsewhere]"),
    "a criterion that is none": edited("verify: [covers", "verify: [coverss"),
    "a diversity that no release has": edited(
        "  - draw", "  - diversify: {criterion: l-diversity, l: 25.0, column: illness}\n  - draw"
    ),
    "a diversity of no column": edited(
        "  - draw", "  - diversify: {criterion: p-sensitivity, p: 2, column: illnes}\n  - draw"
    ),
    "an attacker that is none": edited("prosecutor", "prosecuter"),
    "two sensitive columns": edited("person: {role: identifier}", "person: {role: sensitive}"),
    "a numeric column of text": edited(
        "town: {role: quasi-identifier, kind: categorical}", "town: {role: quasi-identifier, kind: numeric}"
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_errors_say_no_value(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    flow_in(tmp_path)
    WRONG[fault](tmp_path)
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", str(tmp_path / "flow.yaml")])
    out, err = capsys.readouterr()
    assert caught.value.code in (1, 2), err
    clean(out + err + caplog.text, fault)
    assert not (tmp_path / "out").exists()
    for name in everything_in(tmp_path):
        clean(name, "a file's name")


@pytest.mark.parametrize("place", ["solve", "verify"])
def test_a_bug_says_no_value(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **more: Any) -> Any:
        raise KeyError("qxz01", 7300001)

    monkeypatch.setattr(tasks, place, broken)
    flow_in(tmp_path)
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", str(tmp_path / "flow.yaml")])
    assert caught.value.code == 3
    out, err = capsys.readouterr()
    clean(out + err, "a bug")
    assert "partition 0" in err


@pytest.mark.parametrize("algorithm", sorted(REGISTRY))
def test_errors_and_facts_of_methods_show_no_value(algorithm: str, tmp_path: Path) -> None:
    flow = engine.load_flow(flow_in(tmp_path))
    table = af.Table.read(tmp_path / "people.csv", flow.schema)
    for k in (3, N, N + 1):
        try:
            anon = af.anonymize(table, algorithm, k=k, seed=1)
        except AnonflowError as error:
            clean(str(error) + str(error.problems), f"{algorithm}, k = {k}")
        else:
            clean(str(anon.facts) + repr(anon), f"{algorithm}'s facts")


def test_the_scan_finds_what_is_there() -> None:
    """The scan itself: every cell of the table, and a published set, would be found."""
    for value in marked().to_numpy().ravel():
        assert MARK.search(str(value)), value
    for text in (
        "{qxz01|qxz02}",
        "7300001-7300018",
        "rxz**".replace("*", "0"),
        "QXZ3",
        "1950-07-01/1951-07-02",
    ):
        with pytest.raises(AssertionError):
            clean(text, "here")
    clean(np.array2string(np.arange(50)), "numbers")
