"""What a cluster writes down: exception texts, keys of tasks, logs of schedulers and workers, and what is thrown at the user.

Figure: a bug in a method raised `KeyError: 'Athens'`; its words reached the client's error as a note. Of 4 marked things (a quasi-identifier's
value, a sensitive value, a column that is never published, the seed) 0 may be found in any key, log, event or error, with
Dask's own logging at `debug`, whether the run succeeds or a task breaks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow import engine
from anonflow.engine.execution import tasks
from anonflow.engine.execution.schedulers import Call, raised
from anonflow.errors import AnonflowError
from tests import ROOT
from tests.cases.flow_files import flow_text
from tests.cases.runs import shell

TOWN, ILLNESS, NAME = "Zanzibar-7731", "quinsy-9913", "Ermintrude-4407"
SEED = 0x5EC2E75EC2E75EC2E75EC2E75EC2E711
MARKED = (TOWN, ILLNESS, NAME, f"{SEED:x}", str(SEED))

BREAK = """
from anonflow.engine.execution import tasks

real = getattr(tasks.solve, "real", tasks.solve)  # a preload may be loaded twice

def broken(method, records, k, *more, **settings):
    if k == 4:
        raise KeyError([domain.labels for domain in records.domains])
    return real(method, records, k, *more, **settings)

broken.real = real
tasks.solve = broken
"""


def words(text: str) -> list[str]:
    """Which marked things a text has."""
    return [mark for mark in MARKED if mark in text]


def broken(*args: Any) -> None:
    raise KeyError(TOWN)


def test_the_words_of_a_bug_do_not_travel() -> None:
    failed = Call(broken, (TOWN,))()
    assert isinstance(failed, tasks.Failed)
    error = raised(failed, "partition 3")
    shown = "".join(traceback.format_exception(error))
    assert "test_cluster_words.py" in shown  # where it was
    assert "KeyError" in shown
    assert words(shown) == []
    assert words(repr(failed)) == []


def test_what_a_call_says_of_itself() -> None:
    """Dask logs, keeps and shows the text of what it is given."""
    call = Call(broken, (TOWN, SEED), "match-verify", (TOWN, 1))
    assert words(repr(call)) == []
    assert words(str(call)) == []


def write_marked_flow(folder: Path, k: int) -> Path:
    rng = np.random.default_rng(1)
    n = 200
    pd.DataFrame(
        {
            "name": [f"{NAME}{i}" for i in range(n)],
            "age": rng.integers(18, 80, n),
            "town": rng.choice([TOWN, "Athens", "Patras"], n),
            "ill": rng.choice([ILLNESS, "flu", "none"], n),
        }
    ).to_csv(folder / "people.csv", index=False)
    path = folder / "flow.yaml"
    path.write_text(
        flow_text(
            "marked",
            "    name: {role: identifier}\n    age: {role: quasi-identifier, kind: numeric}\n"
            "    town: {role: quasi-identifier, kind: categorical}\n    ill: {role: sensitive}\n",
            f"partition: {{size: 50}}\nsteps:\n  - anonymize: {{algorithm: mondrian, k: {k}}}\n  - draw: {{}}\n"
            "  - verify: [covers, guarantee]\npublish: {table: out/release.csv}\n",
        )
    )
    return path


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[tuple[str, list[Path]]]:
    """A scheduler and a worker that log all that they can; the address, and their logs."""
    home = tmp_path / "cluster"
    home.mkdir()
    (home / "breaking.py").write_text(BREAK)
    file = home / "scheduler.json"
    env = {
        **os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "false",
        "DASK_LOGGING__DISTRIBUTED": "debug", "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "100000",
    }  # fmt: skip
    logs = [home / "scheduler.log", home / "worker.log"]
    commands = [
        ["dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)],
        [
            "dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--preload", str(home / "breaking.py"),
        ],
    ]  # fmt: skip
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as stream:
                started.append(
                    subprocess.Popen(
                        [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]],
                        env=env,
                        cwd=home,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                    )
                )
            until = time.monotonic() + 60
            while not (file.exists() and file.stat().st_size) and time.monotonic() < until:
                time.sleep(0.1)
        yield json.loads(file.read_text())["address"], logs
    finally:
        for process in started:
            process.kill()
            process.wait(20)


def remembered(dask_scheduler: Any) -> str:
    """All that a scheduler still knows of what it did: transitions of tasks, events, erred tasks."""
    tasks = dask_scheduler.tasks.values()
    return repr(
        [
            list(dask_scheduler.transition_log),
            {topic: list(events) for topic, events in dask_scheduler.get_events().items()},
            [(task.key, task.exception_text, task.traceback_text) for task in tasks],
        ]
    )


@pytest.mark.machine
@pytest.mark.slow
def test_a_cluster_knows_no_value(
    tmp_path: Path, logged: tuple[str, list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    from distributed import Client

    address, logs = logged
    messages: list[str] = []
    assert engine.run(write_marked_flow(tmp_path, 5), seed=SEED, scheduler=address, fresh=True).ok
    with pytest.raises(AnonflowError, match="KeyError") as caught:
        engine.run(write_marked_flow(tmp_path, 4), seed=SEED, scheduler=address, fresh=True)
    messages.append("".join(traceback.format_exception(caught.value)))
    status, out, err = shell(capsys, "run", tmp_path / "flow.yaml", "--scheduler", address)
    assert status == 3, err
    messages.append(out + err)
    with Client(address, timeout=300, set_as_default=False) as client:
        kept = client.run_on_scheduler(remembered)
    assert "match" in kept or "verify" in kept  # keys are there
    messages += [kept, *(log.read_text(errors="replace") for log in logs)]
    assert sum(map(len, messages)) > 2000
    assert [words(text) for text in messages] == [[]] * len(messages)
