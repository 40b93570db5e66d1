"""A small table of people in a workspace, for the tests of the page Protect."""

from __future__ import annotations

import pandas as pd

from anonflow.dashboards.session.workspace import Workspace

PEOPLE = pd.DataFrame(
    {
        "age": [str(20 + i % 5) for i in range(80)],
        "city": ["Athens", "Volos", "Patras", "Chania"] * 20,
        "job": [("cook", "driver", "nurse")[i % 3] for i in range(80)],
        "illness": [("flu", "flu", "flu", "cough", "rash")[(i * 7) % 5] for i in range(80)],
    }
)


def people() -> Workspace:
    """A workspace over the table, its columns declared."""
    workspace = Workspace()
    path = workspace.folder / "given.csv"
    PEOPLE.to_csv(path, index=False)
    workspace.opener.open_file("people.csv", path)
    workspace.data.set_column("illness", role="sensitive")
    for name, kind in (("age", "numeric"), ("city", "categorical"), ("job", "categorical")):
        workspace.data.set_column(name, role="quasi-identifier", kind=kind)
    assert workspace.data.problems == ()
    return workspace


def steps_back(workspace: Workspace) -> int:
    """How many edits can be undone."""
    return len(workspace.draft.past)
