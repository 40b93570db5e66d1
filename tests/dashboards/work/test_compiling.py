"""Compiling is a named phase: neither the seconds of a method nor its progress are the compiler's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.dashboards.work import jobs
from anonflow.dashboards.work.fair_queue import FairQueue
from anonflow.engine import attempt, background
from tests import ROOT
from tests.cases.drafts import put_at
from tests.dashboards.conftest import Hand

SCRIPT = """
import json
from anonflow.dashboards import Workspace
from anonflow.engine import background
from anonflow.kernels.jit import ready_here

ready, start = [], background.start

def noted(*args, **settings):
    ready.append(ready_here())
    return start(*args, **settings)

background.start = noted
one = Workspace()
words = set()
one.starts.param.watch(lambda event: words.update(event.new.values()), "doing")
one.opener.open_dataset("census_like", n=600, seed=3)
one.draft.set_algorithms(["mondrian"])
for _ in range(2):
    one.start()
    one.wait(300)
ready.append(ready_here())
print(json.dumps({"ready": ready, "words": sorted(words)}))
one.close()
"""


@pytest.mark.slow
def test_the_first_run_makes_no_more_ready_than_the_second() -> None:
    """A few records are worked on before it, so that its seconds are those of its method: nothing is compiled or read from disk."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, cwd=ROOT, check=True
    )
    document = json.loads(done.stdout.splitlines()[-1])
    before, first, second, end = document["ready"]
    assert before < first == second == end, document
    assert any("compiling" in words for words in document["words"]), document


def test_compiling_is_said_and_done_once(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PAUSE", 0.0)  # every change of the progress is told
    monkeypatch.setattr(attempt, "_compiled", set())
    sizes: list[int] = []
    start = background.start

    def noted(flow: Any, **settings: Any) -> Any:
        sizes.append(flow.table.n)
        return start(flow, **settings)

    monkeypatch.setattr(background, "start", noted)
    workspace = Workspace()
    words: list[str] = []
    statuses: list[str] = []
    workspace.starts.param.watch(lambda event: words.extend(event.new.values()), "doing")
    workspace.starts.param.watch(lambda event: statuses.append(event.new), "status")
    workspace.opener.open_dataset("census_like", n=200, seed=3)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.start()
    hand.do_all()
    assert any("compiling" in word for word in words)
    assert any("compiling" in status for status in statuses)
    few, many = sizes  # a few records first, then all
    assert few < many == 200
    assert workspace.runs.finished[0].ok
    workspace.start()
    hand.do_all()
    assert len(sizes) == 3, "compiled once"
    workspace.close()


def test_progress_moves_without_an_event(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PAUSE", 0.0)
    workspace = Workspace(line=FairQueue(1))
    workspace.opener.open_dataset("census_like", n=60, seed=3)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.start()
    group = workspace.starts.batch
    (job,) = group.jobs
    ticks = iter([False, False, True])
    monkeypatch.setattr(group, "_over", SimpleNamespace(wait=lambda seconds: next(ticks)))
    shown: list[str] = []
    workspace.starts.param.watch(
        lambda event: shown.append(event.new["mondrian k=10"]), "doing", onlychanged=False
    )
    group._tick()
    assert shown == [], "a run that waits has nothing to show"
    job.stage = attempt.Stage.RUNNING
    ticks = iter([False, False, True])
    group._tick()
    assert len(shown) == 2
    monkeypatch.undo()
    workspace.close()


def test_a_cancelled_run_is_not_late() -> None:
    unknown: Any = None
    run = attempt.Attempt(unknown, unknown, unknown, 0, seconds=1.0)
    assert (run.stage, run.stop) == (attempt.Stage.WAITING, None)
    handle: Any = SimpleNamespace(cancel=lambda: None)
    run._handle = handle
    run._stop_late()
    assert run.stop is attempt.StopReason.LATE
    assert not run.cancelled
    run.cancel()  # whoever cancels wants no result, not even that it took too long
    run._stop_late()
    assert run.cancelled
    assert run.result(lambda event: None) is None
    assert run.stage is attempt.Stage.WAITING, "it never began"


@pytest.mark.slow
def test_a_method_with_a_time_limit_is_compiled_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "_compiled", set())
    limits: list[Any] = []
    start = background.start

    def watched(flow: Any, **settings: Any) -> Any:
        limits.append(flow.runs[0].anonymize.options.get("time_limit"))
        return start(flow, **settings)

    monkeypatch.setattr(background, "start", watched)
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=1_200, seed=3)  # more than the method takes at once
    workspace.draft.set_algorithms(["optimal"])
    put_at(workspace.draft, ("partition",), None)
    workspace.start()
    workspace.wait(300)
    assert limits == [attempt.BRIEF, None]
    assert "too many" in str(workspace.runs.finished[0].result.problem)
    workspace.close()
