"""Boundaries and patterns in a flow: the same as af.anonymize."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.engine.execution import tasks
from anonflow.engine.execution.schedulers import Executor
from anonflow.engine.execution.tasks import Failed
from anonflow.errors import AnonflowError, InfeasibleError
from tests.cases.boundaries import people
from tests.cases.workers import Workers

FLOW = """
flow: bounded
version: 1
table:
  source: {csv: people.csv}
  columns:
    age: {role: quasi-identifier, kind: numeric, boundary: {width: 25}, missing: suppress}
    place:
      role: quasi-identifier
      kind: hierarchy
      hierarchy:
        nested:
          United States:
            West Coast: {California: [San Diego, Los Angeles]}
            Midwest: {Kansas: [Wichita, Kansas City], Nebraska: [Lincoln]}
      boundary: [California, Kansas, Midwest]
    job: {role: quasi-identifier, kind: categorical}
    pay: {role: sensitive}
partition: {size: 60}
steps:
  - anonymize: {algorithm: METHOD, k: 4}
  - verify: [covers, guarantee, boundary]
matrix: MATRIX
"""


def written(folder: Path, method: str, matrix: str) -> Path:
    people().frame.to_csv(folder / "people.csv", index=False)
    path = folder / "bounded.yaml"
    text = FLOW.replace("METHOD", method)
    path.write_text(text.replace("matrix: MATRIX\n", "" if not matrix else f"matrix: {matrix}\n"))
    return path


@pytest.mark.parametrize("method", ["mondrian", "greedy", "greedy-cka"])
def test_a_flow_keeps_boundaries(method: str, tmp_path: Path) -> None:
    report = af.run(written(tmp_path, method, "{anonymize.k: [4, 60]}"))
    first, second = report.results
    assert first.problem is None or first.problem == ""
    assert all(finding.holds for finding in first.findings), first.findings
    assert first.suppressed > 0
    assert "boundaries" in str(second.problem)
    table = people()
    anon = af.anonymize(table, method, k=4, partition_size=60, seed=1)
    assert first.anonymization is not None
    assert np.array_equal(first.anonymization.suppressed, anon.suppressed)
    if method == "mondrian":
        assert first.anonymization.frame().equals(anon.frame())


def test_a_flow_without_boundaries_counts_violations(tmp_path: Path) -> None:
    report = af.run(written(tmp_path, "mondrian", "{anonymize.boundaries: [true, false]}"))
    held = [{finding.criterion: finding.holds for finding in result.findings} for result in report.results]
    assert [results["boundary"] for results in held] == [True, False]
    assert [result.suppressed > 0 for result in report.results] == [True, False]


def test_nothing_within_the_boundaries(tmp_path: Path) -> None:
    path = written(tmp_path, "mondrian", "")
    path.write_text(path.read_text().replace("k: 4", "k: 60"))
    with pytest.raises(AnonflowError, match="boundaries"):
        af.run(path)


PATTERNS = """
flow: patterns
version: 1
table:
  source: {dataset: nursery}
  columns:
    parents: {role: quasi-identifier, kind: categorical}
    has_nurs: {role: quasi-identifier, kind: categorical}
    form: {role: quasi-identifier, kind: categorical}
    health: {role: quasi-identifier, kind: categorical}
steps:
  - anonymize:
      algorithm: METHOD
      k: 100
      patterns: {at-most: 2, never: [parents], fallback: all}
      weights: {form: 2}
  - verify: [covers, guarantee, pattern]
"""


@pytest.mark.parametrize("method", ["pattern-guided", "pattern-guided-optimal"])
def test_a_flow_takes_predicates_and_weights(method: str, tmp_path: Path) -> None:
    path = tmp_path / "patterns.yaml"
    path.write_text(PATTERNS.replace("METHOD", method))
    report = af.run(path)
    assert report.ok, report.results[0].findings
    anon = report.results[0].anonymization
    assert anon is not None
    assert 0 < anon.facts["suppressed_entries"] <= anon.facts["cost"]
    path.write_text(PATTERNS.replace("METHOD", method).replace("never: [parents]", "never: [parent]"))
    with pytest.raises(AnonflowError, match="did you mean 'parents'"):
        af.run(path)


def test_a_flow_says_what_becomes_of_rows_that_no_pattern_can_take(tmp_path: Path) -> None:
    path = tmp_path / "patterns.yaml"
    path.write_text(
        PATTERNS.replace("METHOD", "pattern-guided")
        .replace("fallback: all}", "fallback: FALLBACK}")
        .replace("at-most: 2", "at-most: 0")
        + "publish: {report: out/page.html}\n"
    )
    text = path.read_text()
    path.write_text(text.replace("FALLBACK", "none"))
    report = af.run(path)
    anon = report.results[0].anonymization
    assert report.ok
    assert anon is not None
    rows = anon.facts["rows_without_pattern"]
    assert rows == anon.suppressed.sum() > 0
    assert f"{rows:,} rows follow no pattern" in (tmp_path / "out" / "page.html").read_text()
    assert f"{rows:,} rows are hidden whole and follow no pattern" in report.results[0].findings[-1].detail
    path.write_text(text.replace(", fallback: FALLBACK}", "}\n      fallback: strict"))
    with pytest.raises(InfeasibleError, match="follow"):
        af.run(path)
    path.write_text(text.replace("at-most: 0", "at-most: 2").replace("FALLBACK", "strict"))
    report = af.run(path)
    assert report.ok, report.results[0].findings
    assert report.results[0].suppressed == 0


STRICT = """
flow: strict
version: 1
table:
  source: {csv: codes.csv}
  columns:
    a: {role: quasi-identifier, kind: suppression}
    b: {role: quasi-identifier, kind: suppression}
partition: {size: 8}
steps:
  - anonymize: {algorithm: METHOD, k: 4, patterns: {at-most: 0}, fallback: strict}
  - verify: [covers, pattern]
"""


@pytest.mark.parametrize("method", ["pattern-guided", "pattern-guided-optimal"])
def test_the_first_partition_without_a_solution_is_told(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: Workers
) -> None:
    """Whichever ends first; as af.anonymize says it, with the number of partitions."""
    # along the lexicographic order: one that can be done, then 1 row alone, then 2
    rows = [*["1,1"] * 8, *["2,1"] * 7, "2,2", *["3,1"] * 6, "3,3", "3,4"]
    (tmp_path / "codes.csv").write_text("\n".join(["a,b", *rows]))
    path = tmp_path / "strict.yaml"
    text = STRICT.replace("METHOD", method)
    arriving_backwards(monkeypatch)
    messages = []
    for scheduler in ("threads", "processes"):
        path.write_text(f"{text}run: {{scheduler: {scheduler}, workers: 2}}\n")
        with pytest.raises(InfeasibleError) as caught:
            af.run(path)
        messages.append(caught.value.message)
    assert sum(map(len, workers.sent)) == 3
    kind = {"role": "quasi-identifier", "kind": "suppression"}
    table = af.Table(pd.read_csv(tmp_path / "codes.csv", dtype=str), {"a": kind, "b": kind})
    with pytest.raises(InfeasibleError) as expected:
        af.anonymize(
            table, method, 4, partition_size=8, patterns={"at-most": 0}, fallback="strict", workers=2
        )
    assert messages == [expected.value.message] * 2
    assert messages[0].endswith("(in one of 3 partitions)")
    if method == "pattern-guided":
        assert "1 row agrees" in messages[0]


def arriving_backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the results of partitions arrive last first."""
    stream = Executor.stream

    def backwards(self: Executor, *args: Any, **kws: Any) -> Iterator[Any]:
        yield from reversed(list(stream(self, *args, **kws)))

    monkeypatch.setattr(Executor, "stream", backwards)


@pytest.mark.parametrize("broken", [{0, 2}, {1}, {0, 1, 2}])
def test_the_first_partition_that_breaks_is_told(
    broken: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before one that has no solution, the third, and after it."""
    rows = [*["1,1"] * 8, *["2,1"] * 8, *["3,1"] * 7, "3,3"]
    (tmp_path / "codes.csv").write_text("\n".join(["a,b", *rows]))
    path = tmp_path / "strict.yaml"
    path.write_text(STRICT.replace("METHOD", "pattern-guided"))
    match = tasks.match

    def breaking(settings: Any, records: Any, partition: int) -> Any:
        return (
            Failed(None, f"number {partition}")
            if partition in broken
            else match(settings, records, partition)
        )

    monkeypatch.setattr(tasks, "match", breaking)
    arriving_backwards(monkeypatch)
    with pytest.raises(
        AnonflowError, match=rf"partition {min(broken)} of run 'pattern-guided.*number {min(broken)}"
    ):
        af.run(path)


def test_the_report_shows_the_patterns_as_a_grid(tmp_path: Path) -> None:
    path = tmp_path / "patterns.yaml"
    path.write_text(PATTERNS.replace("METHOD", "pattern-guided") + "publish: {report: out/page.html}\n")
    report = af.run(path)
    page = (tmp_path / "out" / "page.html").read_text()
    assert "<h2>Patterns" in page
    anon = report.results[0].anonymization
    assert anon is not None
    for hidden in np.unique(anon.generalization.whole().T, axis=0).tolist():
        marks = "".join(f"<td>{'*' if item else '·'}</td>" for item in hidden)
        assert f"<tr>{marks}<td" in page
    grid = af.pattern_grid(anon.table, {"at-most": 2, "never": ["parents"], "fallback": "all"})
    assert len(grid) == 1 + 3 + 3 + 1
    assert set(grid["parents"][:-1]) == {"-"}


def test_a_flow_keeps_limits(tmp_path: Path) -> None:
    path = written(tmp_path, "greedy", "")
    path.write_text(
        path.read_text()
        .replace("boundary: {width: 25}", "max-width: 15")
        .replace("kind: categorical}", "kind: categorical, max-set: 2}")
    )
    report = af.run(path)
    assert report.ok, report.results[0].findings
    assert 0 < report.results[0].suppressed < 60
