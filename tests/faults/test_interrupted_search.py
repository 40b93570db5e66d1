"""A search that is interrupted: it ends, what was tried is kept and recorded, nothing else is written, and the record can be run."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

import anonflow as af
from anonflow import strict_yaml
from anonflow.cli import commands
from anonflow.cli.interrupts import INTERRUPTS
from anonflow.errors import FlowError
from tests.cases.flow_files import CENSUS_COLUMNS, flow_text
from tests.cases.runs import shell

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_it_ends_keeps_what_was_tried_and_writes_nothing_else(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    """Fault: a signal after the first trial. Said: that it was stopped, and the trials. On disk: the picked flow, whole."""
    people = af.datasets.census_like(60, seed=1)[["Age", "Gender", "Education"]]
    people.to_csv(tmp_path / "people.csv", index=False)
    flow = tmp_path / "wanted.yaml"
    flow.write_text(FLOW.replace("K", ", ".join(map(str, range(2, 31)))))
    say = commands.say
    trials: list[str] = []

    def signalled(text: str, **where: Any) -> None:
        say(text, **where)
        if "mondrian k=" in text:
            trials.append(text)
            if len(trials) == 1:
                INTERRUPTS._handle(number, None)

    monkeypatch.setattr(commands, "say", signalled)
    status, out, err = shell(
        capsys, "search", flow, "--output", tmp_path / "picked.yaml", "--csv", tmp_path / "t.csv", "--json"
    )
    assert status == 1, err  # the target is not met
    assert err.startswith("timing methods on some of the 60 records, for about "), (
        "it says at once what it does"
    )
    answer = json.loads(out)
    assert answer["ended"] == "it was stopped"
    tried = len(answer["trials"])
    assert 1 <= tried <= 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"people.csv", "wanted.yaml", "picked.yaml", "t.csv"}
    document = strict_yaml.read(tmp_path / "picked.yaml", error=FlowError).data
    assert len(document["target"]["tried"]) == tried
    # a search that found something is no run: that comes now, and again with the same seed
    assert shell(capsys, "run", tmp_path / "picked.yaml", "--quiet")[0] == 0
    release = (tmp_path / "out" / "release.csv").read_bytes()
    again = ("run", tmp_path / "picked.yaml", "--replay", tmp_path / "owner" / "wanted", "--quiet")
    assert shell(capsys, *again)[0] == 0
    assert (tmp_path / "out" / "release.csv").read_bytes() == release
