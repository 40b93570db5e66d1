"""How long the screens take on 320,000 records: opened, an edit, Explore filled in and searched, a release drawn."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.measuring import row

PEOPLE, FEW = 320_000, 2_000
FILL, SEARCH = 3.0, 1.0
"""Seconds that Explore may take."""


def run(small: bool) -> list[dict[str, Any]]:
    """One run of mondrian with k = 10 in partitions of 250, on census-like people; wall time, first uses included."""
    from anonflow.dashboards import Workspace
    from anonflow.dashboards.app import extension
    from anonflow.dashboards.explore.screen import ExploreScreen
    from anonflow.dashboards.work.user_limits import local_limits

    extension()
    workspace = Workspace(limits=local_limits(), aside=True)
    figures = []

    def timed(name: str, work: Callable[[], None], most: float | None = None) -> None:
        began = time.perf_counter()
        work()
        figures.append(row(f"screens: {name}", time.perf_counter() - began, "s", most=most))

    def opened() -> None:
        workspace.opener.open_dataset("census_like", n=FEW if small else PEOPLE, seed=1)
        workspace.wait()

    def edited() -> None:
        workspace.data.set_column("Education", role="insensitive")
        workspace.wait()

    timed("a table is opened and coded", opened)
    timed("an edit of a column is coded", edited)
    workspace.draft.undo()
    workspace.wait()
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([10])
    for _ in range(2):
        workspace.start()
        workspace.wait()
    screen = ExploreScreen(workspace=workspace)

    def filled() -> None:
        screen.model.aside.wait()
        screen.model.searching.wait()

    def searched() -> None:
        screen.search.value = "Female"
        screen.model.searching.wait()

    filled()
    other = next(run.id for run in workspace.runs.finished if run.id != workspace.runs.chosen)

    def chosen() -> None:
        workspace.runs.choose(other)
        filled()

    timed("another run is explored", chosen, most=FILL)
    timed("its records are searched", searched, most=SEARCH)

    def drawn() -> None:
        workspace.publish(other)

    timed("a release is drawn, checked, attacked and reported", drawn)
    workspace.close()
    return figures
