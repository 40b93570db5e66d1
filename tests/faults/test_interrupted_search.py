"""A search that is interrupted: it ends, what was tried is kept and recorded, nothing else is written, and the record can be run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

import anonflow as af
from anonflow import strict_yaml
from anonflow.errors import FlowError
from tests.cases.flow_files import CENSUS_COLUMNS, flow_text
from tests.faults.processes import anonflow, started

FLOW = flow_text(
    "wanted",
    CENSUS_COLUMNS + "    Education: {role: quasi-identifier, kind: numeric}\n",
    """\
steps:
  - anonymize: {loss: ncp}
  - draw: {}
target: {loss: 0.0001, time: 30m}
matrix:
  anonymize.algorithm: [mondrian]
  anonymize.k: [K]
publish: {table: out/release.csv}
""",
)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_it_ends_keeps_what_was_tried_and_writes_nothing_else(tmp_path: Path, number: signal.Signals) -> None:
    """Fault: a signal after the first trial. Said: that it was stopped, and the trials. On disk: the picked flow, whole."""
    people = af.datasets.census_like(400, seed=1)[["Age", "Gender", "Education"]]
    people.to_csv(tmp_path / "people.csv", index=False)
    flow = tmp_path / "wanted.yaml"
    # more ks than anybody's machine runs before the signal comes
    flow.write_text(FLOW.replace("K", ", ".join(map(str, range(2, 201)))))
    running = started(
        "search", flow, "--output", tmp_path / "picked.yaml", "--csv", tmp_path / "t.csv", "--json"
    )
    assert running.stderr is not None
    assert "mondrian k=" in running.stderr.readline()
    running.send_signal(number)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 1, err  # the target is not met
    answer = json.loads(out)
    assert answer["ended"] == "it was stopped"
    tried = len(answer["trials"])
    assert 1 <= tried < 199
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"people.csv", "wanted.yaml", "picked.yaml", "t.csv"}
    document = strict_yaml.read(tmp_path / "picked.yaml", error=FlowError).data
    assert len(document["target"]["tried"]) == tried
    # a search that found something is no run: that comes now, and again with the same seed
    assert anonflow("run", tmp_path / "picked.yaml", "--quiet").returncode == 0
    release = (tmp_path / "out" / "release.csv").read_bytes()
    done = anonflow("run", tmp_path / "picked.yaml", "--replay", tmp_path / "owner" / "wanted", "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "release.csv").read_bytes() == release
