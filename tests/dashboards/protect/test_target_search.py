"""The tab Target: a search whose trials become runs, that is stopped at will, and whose flows repeat what it found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import anonflow as af
from anonflow import strict_yaml
from anonflow.dashboards.compare.model import CompareModel
from anonflow.dashboards.protect.target_search import TargetCard, TargetChoice
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.fair_queue import FairQueue
from anonflow.dashboards.work.user_limits import Limits
from tests.cases.drafts import read_draft
from tests.dashboards.conftest import Hand


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    workspace = Workspace(line=FairQueue(1))
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 90),
            "sex": rng.choice(["f", "m"], 90),
            "ill": rng.choice(["yes", "no"], 90),
        }
    )
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "sex": {"role": "quasi-identifier", "kind": "categorical"},
        "ill": {"role": "sensitive"},
    }
    workspace.opener.open_frame(frame, columns, "people")
    workspace.draft.set_algorithms(["mondrian"])
    yield workspace
    workspace.close()


def test_trials_become_runs_and_the_flow_of_the_picked_one_repeats_it(
    workspace: Workspace, hand: Hand
) -> None:
    choice = TargetChoice(workspace, percent=20.0, loss=None, seconds=600.0, chosen_only=True)
    card = TargetCard(choice=choice)
    before = workspace.draft.document
    choice.start()
    assert choice.busy
    assert card.start.disabled
    assert card.stop.visible
    hand.do_all()
    assert not choice.busy
    assert choice.problem == ""
    report = choice.report
    assert report.ok
    assert workspace.draft.document == before
    assert len(workspace.runs.finished) == sum(trial.result is not None for trial in report.trials)
    assert report.sentence() in card.state.object
    assert "meets the target" in card.tried.object
    shown = [run for run in workspace.runs.finished if run.result.anonymization is not None]
    assert len(shown) == len({id(trial) for trial in (*report.frontier, report.best)})
    assert set(CompareModel(workspace).best()) <= {run.id for run in workspace.runs.finished}
    best = report.best
    (run,) = [run for run in shown if run.result.anonymization is best.result.anonymization]
    assert workspace.runs.chosen == run.id
    assert run.spec.document["target"]["risk"] == 0.2
    (entry,) = [entry for entry in run.spec.document["target"]["tried"] if entry.get("picked")]
    assert (entry["algorithm"], entry["k"]) == (best.candidate.setup.algorithm, best.candidate.k)
    flow = read_draft(strict_yaml.dumps(run.spec.document), folder=workspace.folder).flow()
    assert flow.space is None
    again = af.run(flow, seed=run.seed).results[0].anonymization
    assert again is not None
    np.testing.assert_array_equal(again.generalization.lo, run.result.anonymization.generalization.lo)
    files = workspace.publish(run.id)
    assert files.release is not None
    CompareModel(workspace).take_up(run.id)
    assert "target" not in workspace.draft.document
    assert workspace.data.ks == [best.candidate.k]


def test_it_is_stopped_at_will_and_a_new_table_forgets_it(
    workspace: Workspace, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = TargetChoice(workspace, percent=50.0, loss=0.0001, seconds=600.0)
    choice.start()
    choice.stop()
    hand.do_all()
    assert not choice.busy
    assert choice.report.ended == "it was stopped"
    heard = TargetChoice._show
    late: list[bool] = []

    def hear(*args: Any) -> None:  # a trial is over while the other table is opened
        if not late:
            workspace.opener.open_dataset("patients_example")
        heard(*args)
        late.append(True)

    monkeypatch.setattr(TargetChoice, "_show", hear)
    choice.start()
    hand.do_all()
    assert late
    assert not choice.busy
    assert choice.trials == ()
    assert choice.report is None
    assert workspace.runs.finished == []


def test_what_cannot_be_searched_is_a_sentence(workspace: Workspace) -> None:
    choice = TargetChoice(workspace, percent=None, loss=None)
    choice.start()
    assert "says nothing to reach" in choice.sentence()
    choice = TargetChoice(workspace, signs="ill ~ nobody")
    choice.start()
    assert not choice.busy
    assert choice.problem
    choice = TargetChoice(Workspace(), percent=9.0)
    choice.start()
    assert "no table is open" in choice.problem
    choice.workspace.close()
    limited = Workspace(limits=Limits(seconds=30.0))
    assert TargetChoice(limited, seconds=600.0).target.seconds == 30.0
    limited.close()
