"""Compiling is a named phase: neither the seconds of a method nor its progress are the compiler's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.dashboards.session import job_group, jobs
from tests import ROOT

SCRIPT = """
import json
from anonflow.dashboards import Workspace
from anonflow.dashboards.session import jobs
from anonflow.kernels.jit import compiled_here

compiled, start = [], jobs.engine.start

def noted(*args, **settings):
    compiled.append(compiled_here())
    return start(*args, **settings)

jobs.engine.start = noted
one = Workspace()
words = set()
one.param.watch(lambda event: words.update(event.new.values()), "doing")
one.open_dataset("census_like", n=600, seed=3)
one.set_algorithms(["mondrian"])
for _ in range(2):
    one.start()
    one.wait(300)
compiled.append(compiled_here())
print(json.dumps({"compiled": compiled, "words": sorted(words)}))
one.close()
"""


@pytest.mark.slow
def test_the_first_run_compiles_no_more_than_the_second(tmp_path: Path) -> None:
    """A few records are worked on before it, so that its seconds are those of its method."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, cwd=ROOT, check=True
    )
    document = json.loads(done.stdout.splitlines()[-1])
    before, first, second, end = document["compiled"]
    assert before < first == second == end, document
    assert any("compiling" in words for words in document["words"]), document


def test_compiling_is_said_and_progress_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_group, "TICK", 0.02)
    monkeypatch.setattr(jobs, "_compiled", set())
    go = threading.Event()
    started: list[Any] = []
    start = jobs.engine.start

    def slow(*args: Any, **settings: Any) -> Any:
        started.append(args)
        handle = start(*args, **settings)
        result = handle.result

        def late(timeout: float | None = None) -> Any:
            if len(started) == 1:
                assert go.wait(300)
            return result(timeout)

        handle.result = late  # type: ignore[method-assign]
        return handle

    monkeypatch.setattr(jobs.engine, "start", slow)
    workspace = Workspace()
    words: list[str] = []
    enough = threading.Event()

    def look(event: Any) -> None:
        words.extend(event.new.values())
        if any("compiling" in word for word in words):
            enough.set()

    workspace.param.watch(look, "doing")
    workspace.open_dataset("census_like", n=200, seed=3)
    workspace.set_algorithms(["mondrian"])
    workspace.start()
    assert enough.wait(300)
    assert "compiling" in workspace.status
    go.set()
    workspace.wait(300)
    assert len(started) == 2, "a few records first, then all"
    assert started[0][0].table.n < started[1][0].table.n == 200
    assert workspace.runs[0].ok
    workspace.start()
    workspace.wait(300)
    assert len(started) == 3, "compiled once"
    workspace.close()


@pytest.mark.slow
def test_a_method_with_a_time_limit_is_compiled_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_compiled", set())
    limits: list[Any] = []
    start = jobs.engine.start

    def watched(flow: Any, **settings: Any) -> Any:
        limits.append(flow.runs[0].anonymize.options.get("time_limit"))
        return start(flow, **settings)

    monkeypatch.setattr(jobs.engine, "start", watched)
    workspace = Workspace()
    workspace.open_dataset("census_like", n=1_200, seed=3)  # more than the method takes at once
    workspace.set_algorithms(["optimal"])
    workspace.draft.set(("partition",), None)
    workspace.start()
    workspace.wait(300)
    assert limits == [jobs.BRIEF, None]
    assert "too many" in str(workspace.runs[0].result.problem)
    workspace.close()
