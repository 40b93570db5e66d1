"""The two questions of the page Protect: candidates, the best of them, and the four numbers above every screen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.algorithms.budget import AUTO
from anonflow.dashboards.app import App
from anonflow.dashboards.compare.screen import CompareScreen
from anonflow.dashboards.protect import two_questions
from anonflow.dashboards.protect.screen import ProtectScreen
from anonflow.dashboards.protect.settings import Protection
from anonflow.dashboards.protect.two_questions import TwoQuestions
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work import jobs
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.engine.first_questions import BESIDE, STRENGTHS, TIMES

WAIT = 300


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    space = Workspace()
    space.opener.open_dataset("census_like", n=120, seed=1)
    yield space
    space.close()


def test_the_answer_sets_k_for_all_screens(workspace: Workspace) -> None:
    questions = TwoQuestions(Protection(workspace))
    for k in STRENGTHS.values():
        questions.strength.value = k
        assert workspace.data.ks == [k]
    workspace.draft.set_ks([7])
    assert questions.strength.value is None  # of no answer
    assert "hides among 7" in questions.without_answer.object
    workspace.draft.set_ks([5, 25])
    assert questions.strength.value == 5
    assert not questions.without_answer.visible
    assert workspace.data.ks == [5, 25], "what follows the draft writes nothing"


def test_candidates_contrast_and_keep_all_other_settings(workspace: Workspace) -> None:
    workspace.draft.put(workspace.draft.spec.with_method(loss="entropy").sweeping("k", [4, 6]))
    questions = TwoQuestions(Protection(workspace))
    specs = questions.specs(workspace.draft.spec)
    assert [spec.method.algorithm for spec in specs] == [AUTO, *BESIDE]
    assert all(spec.method.loss == "entropy" and spec.matrix == {} for spec in specs)
    assert all(spec.columns == workspace.draft.spec.columns for spec in specs)
    assert {spec.method.budget or spec.partition.budget for spec in specs} == {questions.time.value}


def test_the_best_candidate_loses_least_is_chosen_and_has_its_reason(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(two_questions, "TIMES", {"a second": 1.0})
    app = App(workspace=workspace)
    (people, _), *others = [number[:2] for number in app.bar.numbers]
    assert int(people) == Protection(workspace).at_risk(workspace.data.ks[0])[0]
    assert [value for value, _ in others] == ["–"] * 3
    questions = TwoQuestions(Protection(workspace))
    questions.find()
    assert questions.start.disabled
    workspace.wait(WAIT)
    assert len(questions.candidates) == 3
    best = questions.best
    losses = {run.id: float(run.result.measures["gcp"]) for run in questions.candidates}
    assert losses[best.id] == min(losses.values())
    assert workspace.runs.chosen == best.id
    assert workspace.data.algorithms == [AUTO]
    assert "Best for you: " in questions.answer.object
    assert all(run.result.algorithm in questions.answer.object for run in questions.candidates)
    assert [number[0] for number in app.bar.numbers] == [
        f"{people} → 0", f"{losses[best.id]:.3f}", "0", f"{best.result.seconds:.1f} s"
    ]  # fmt: skip
    assert "Each person hides among" in questions.answer.object
    table = SimpleNamespace(unit=np.zeros(1, np.int64))
    result = SimpleNamespace(
        k=7, problem=None, anonymization=SimpleNamespace(table=table), measures={"gcp": 0.1}
    )
    of_units = SimpleNamespace(id=0, ok=True, result=result)
    assert "Each record hides among 7" in questions.reason(cast("FinishedRun", of_units))
    questions.candidates = (best, replace(best, id=max(losses) + 1))
    assert "no other loses less" in questions.reason(best), "a tie is told as a tie"
    in_lists, in_classes = (
        replace(best, id=number, result=replace(best.result, guarantee=guarantee))
        for number, guarantee in enumerate(("k-regular", "k-anonymity"), max(losses) + 2)
    )
    for candidates in ((in_lists, in_classes), (in_classes, in_lists)):
        questions.candidates = candidates
        assert questions.best is in_classes, "of equal losses that of equal rows, which promise more"


def test_seconds_of_the_compiler_are_told_wherever_the_runs_are(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first visit took minutes for seconds of work, and nothing said why."""
    monkeypatch.setattr(two_questions, "TIMES", {"a second": 1.0})
    monkeypatch.setattr(jobs, "CompileTimer", lambda: SimpleNamespace(seconds=180.25))
    questions, comparison = TwoQuestions(Protection(workspace)), CompareScreen(workspace)
    questions.find()
    workspace.wait(WAIT)
    assert workspace.starts.status.startswith("Done: 3 runs in ")
    assert "s of them to compile methods, once on this machine." in workspace.starts.status
    for shown in (questions.answer, comparison.compiled):
        assert workspace.starts.status in shown.object
    monkeypatch.setattr(jobs, "CompileTimer", lambda: SimpleNamespace(seconds=0.0))
    questions.find()
    workspace.wait(WAIT)
    for text in (workspace.starts.status, questions.answer.object, comparison.compiled.object):
        assert "compile" not in text


def test_a_budget_that_no_method_keeps_is_told_where_it_was_asked_for(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell warned of it, and no screen did."""
    monkeypatch.setitem(TIMES, "at once", 1e-6)
    questions, comparison = TwoQuestions(Protection(workspace)), CompareScreen(workspace)
    questions.time.param.update(options=TIMES, value=1e-6)
    questions.find()
    workspace.wait(WAIT)
    late = [run.result for run in questions.candidates if run.result.over_budget]
    assert late
    assert {job.over_budget for job in workspace.starts.batch.jobs} >= {
        f"{run.name}: {run.over_budget}" for run in late
    }, "it is told while the run is at work, too"
    for result in late:
        assert result.over_budget.startswith("no method keeps the budget of 1e-06 s; ")
        assert result.over_budget in questions.answer.object
        assert result.over_budget in comparison.late.object
    workspace.draft.set_algorithms(["greedy"])
    workspace.start()
    workspace.wait(WAIT)
    assert not workspace.runs.finished[-1].result.over_budget


def test_candidates_are_cancelled_where_they_were_asked_for(workspace: Workspace) -> None:
    questions = TwoQuestions(Protection(workspace))
    assert not questions.cancel.visible
    questions.find()
    assert questions.cancel.visible
    questions.cancel.clicks += 1
    workspace.wait(WAIT)
    assert all(job.cancelled or job.ended for job in workspace.starts.batch.jobs)
    assert any(job.cancelled for job in workspace.starts.batch.jobs)
    assert not questions.cancel.visible
    assert not questions.start.disabled


def test_the_numbers_follow_each_choice(workspace: Workspace) -> None:
    app = App(workspace=workspace)
    workspace.draft.set_ks([3, 8])
    workspace.start()
    workspace.wait(WAIT)
    shown = set()
    for run in workspace.runs.finished:
        workspace.runs.choose(run.id)
        assert app.bar.numbers[1][0] == f"{run.result.measures['gcp']:.3f}"
        shown.add(tuple(app.bar.numbers))
    assert len(shown) == 2


def test_what_cannot_run_is_said(workspace: Workspace) -> None:
    questions = TwoQuestions(Protection(workspace))
    for name in workspace.draft.spec.columns:
        workspace.data.set_column(name, role="insensitive")
    assert questions.start.disabled
    assert f"These questions wait: {workspace.data.problems[0]}" in questions.answer.object
    questions.find()
    assert questions.problem
    assert workspace.runs.finished == []


def test_k_and_methods_are_a_click_further(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    page = screen.__panel__()
    place = page[-1]
    root = page.get_root()
    assert root.children[-1].children == []
    screen.unfold.clicks += 1
    assert place.visible
    assert len(root.children[-1].children) == len(place)
