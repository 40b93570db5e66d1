"""Many sessions at once on one server's workers: each is served or told where it stands, and none starves.

What is driven are the sessions' workspaces, the server's line and its worker processes, as the pages drive them; the
browsers are not there.
"""

from __future__ import annotations

import re
import threading

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards import Limits, Workspace
from anonflow.dashboards.server.workers import SharedCluster
from anonflow.dashboards.work.fair_queue import FairQueue
from tests.cases.drafts import put_at
from tests.dashboards.work.held_slots import held_slots

pytestmark = [pytest.mark.slow, pytest.mark.machine]

SESSIONS = 12


def test_many_sessions_with_a_run_each_are_all_served() -> None:
    workers = 2
    cluster = SharedCluster(workers)
    line = FairQueue(workers)
    users = [
        Workspace(line=line, scheduler=cluster.address, freed=cluster.sweep, limits=Limits(seconds=300.0))
        for _ in range(SESSIONS)
    ]
    lists: list[list[str]] = [[] for _ in users]
    try:
        for number, user in enumerate(users):
            user.opener.open_dataset("census_like", n=300, seed=number)
            user.starts.param.watch(lambda event, number=number: lists[number].append(event.new), "status")
        with held_slots(line):  # everybody comes before anybody is served
            for user in users:
                user.start()
        for user in users:
            user.wait(900)
        assert [len(user.runs.finished) for user in users] == [1] * SESSIONS
        assert all(item.runs.finished[0].ok for item in users), [
            element.runs.finished[0].result.problem for element in users
        ]
        # everybody who had to wait was told so; who came first was served first
        waited = [
            number for number in range(SESSIONS) if any("in the queue" in text for text in lists[number])
        ]
        assert len(waited) >= SESSIONS - 2 * workers
        served = [line._served[id(user.turns)] for user in users]
        assert served == sorted(served)
        # their results are their own: each has the data of its own seed
        assert len({entry.data.frame.to_csv() for entry in users}) == SESSIONS
        assert all(user.runs.finished[0].result.anonymization.table is user.data.table for user in users)
    finally:
        for user in users:
            user.close()
        cluster.close()


def test_a_cancelled_run_gives_its_worker_back() -> None:
    cluster = SharedCluster(1)
    line = FairQueue(1)
    slow, quick = (Workspace(line=line, scheduler=cluster.address, freed=cluster.sweep) for _ in range(2))
    try:
        slow.opener.open_dataset("census_like", n=20_000, seed=1)
        put_at(slow.draft, ("partition",), None)
        slow.draft.set_algorithms(["hungarian"])  # one partition of 20,000 records: minutes in one kernel
        slow.draft.set_ks([50])
        quick.opener.open_dataset("census_like", n=300, seed=2)
        at_work = threading.Event()
        slow.starts.param.watch(
            lambda event: re.search("at work for [3-9]", event.new) and at_work.set(), "status"
        )
        slow.start()
        assert at_work.wait(240)
        slow.starts.cancel()
        slow.wait(5)  # at once
        quick.start()
        quick.wait(240)
        assert quick.runs.finished[0].ok, quick.runs.finished[0].result.problem
    finally:
        slow.close()
        quick.close()
        cluster.close()
