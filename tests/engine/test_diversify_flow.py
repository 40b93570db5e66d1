"""The step diversify in flows: verified from the published files, refused before work, the same on any scheduler."""

from __future__ import annotations

import html
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import anonflow as af
from anonflow import cli, engine
from anonflow.dashboards.publish.model import PublishModel
from anonflow.errors import InfeasibleError
from tests.cases.flow_files import write_flow
from tests.cases.runs import shell
from tests.cases.workers import Workers

SEED = 2**128 - 159


def flow(folder: Path, algorithm: str, diversify: str, size: int = 20) -> Path:
    return write_flow(
        folder,
        anonymize=f"{{algorithm: {algorithm}, k: 3}}",
        partition=f"{{size: {size}}}",
        steps=f"  - diversify: {diversify}\n  - draw: {{}}\n  - verify: [covers, guarantee]\n",
        publish="{table: out/table.csv, report: out/report.html}",
    )


@pytest.mark.parametrize("algorithm", ["k-concealment", "agglomerative", "greedy"])
def test_a_flow_publishes_a_diverse_table(algorithm: str, tmp_path: Path) -> None:
    path = flow(tmp_path, algorithm, "{criterion: l-diversity, l: 1.5, column: income}")
    report = engine.run(path, seed=SEED)
    assert report.ok
    criteria = [finding.criterion for finding in report.results[0].findings]
    assert "l-diversity" in criteria
    loaded = engine.load_flow(path)
    table = af.Table.read(loaded.source_path, loaded.schema)
    check = af.verify(table, loaded.table_path, ["l-diversity(l=1.5, column=income)"], k=3)
    assert check


def test_threads_and_processes_agree(tmp_path: Path, workers: Workers) -> None:
    frames = []
    for scheduler in ("threads", "processes"):
        folder = tmp_path / scheduler
        folder.mkdir()
        path = flow(folder, "k-concealment", "{criterion: p-sensitivity, p: 2}")
        engine.run(path, seed=SEED, scheduler=scheduler, workers=2)
        frames.append(pd.read_csv(folder / "out" / "table.csv", dtype=str))
    assert workers.sent
    assert frames[0].equals(frames[1])


@pytest.mark.parametrize("algorithm", ["greedy", "pattern-guided", "greedy-cka, distinct_first: true"])
def test_the_promise_is_said_wherever_a_result_is_shown(
    algorithm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = flow(tmp_path, algorithm, "{criterion: p-sensitivity, p: 2, column: income}", size=60)
    status, _, errors = shell(capsys, "run", path)
    assert status == 0
    report = engine.run(path, seed=SEED, again=True)
    (promise,) = report.results[0].promises
    leaks = "it may be higher" if algorithm == "greedy" else "may know values for certain"
    assert leaks in promise
    assert promise in errors
    assert promise in repr(report)
    assert promise in html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    run = SimpleNamespace(result=report.results[0])
    assert promise in PublishModel.promise(SimpleNamespace(run=run))
    anonymization = report.results[0].anonymization
    assert anonymization is not None
    assert promise in anonymization.summary()


def test_the_shell_checks_the_criterion(tmp_path: Path) -> None:
    path = flow(tmp_path, "k-concealment", "{criterion: l-diversity, l: 1.5}")
    assert engine.run(path, seed=SEED).ok
    loaded = engine.load_flow(path)
    schema = tmp_path / "schema.yaml"
    text = path.read_text(encoding="utf-8")
    columns = text[text.index("  columns:") : text.index("partition:")]
    schema.write_text("\n".join(line[2:] for line in columns.splitlines()) + "\n", encoding="utf-8")
    requests = ["verify", "--original", str(loaded.source_path), "--release", str(loaded.table_path)]
    requests += ["--schema", str(schema), "--k", "3", "--criterion"]
    for l, status in ((1.5, 0), (50, 1)):
        with pytest.raises(SystemExit) as left:
            cli.main([*requests, f"l-diversity(l={l}, column=income)"])
        assert left.value.code == status


def test_what_the_table_does_not_have_is_refused_before_work(tmp_path: Path) -> None:
    path = flow(tmp_path, "agglomerative", "{criterion: p-sensitivity, p: 500}")
    steps: list[str] = []
    with pytest.raises(InfeasibleError, match="the largest feasible p is"):
        engine.run(path, seed=SEED, on_event=lambda event: steps.append(getattr(event, "step", "")))
    assert "anonymize" not in steps
    assert not (tmp_path / "out").exists()


def test_a_matrix_diversifies_every_run(tmp_path: Path) -> None:
    path = flow(tmp_path, "agglomerative", "{criterion: l-diversity, l: 1.5}")
    text = path.read_text(encoding="utf-8").replace("publish: {table: out/table.csv, ", "publish: {")
    path.write_text(
        text + "matrix:\n  anonymize.algorithm: [agglomerative, k-concealment, greedy]\n", encoding="utf-8"
    )
    report = engine.run(path, seed=SEED)
    assert report.ok
    for result in report.results:
        names = [finding.criterion for finding in result.findings]
        assert ("l-diversity" in names) == (
            result.algorithm != "greedy"
        )  # of greedy it is known after a draw
