"""The history in words: no key of a flow file, no bracket."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.dashboards.session.diff import changes, differences
from anonflow.dashboards.session.draft_spec import NO_FLOW
from tests.cases.drafts import put_at

TREE = {"nested": {"*": ["Male", {"other": ["Female"]}]}}


def edit(workspace: Workspace, at: int) -> None:
    edits: list[Any] = [
        lambda: workspace.draft.set_ks([5, 10]),
        lambda: workspace.draft.set_algorithms(["greedy", "mondrian"]),
        lambda: workspace.data.set_column("Age", missing="suppress"),
        lambda: workspace.data.set_column("Age", boundary={"width": 5}),
        lambda: workspace.data.set_column("Gender", kind="hierarchy", hierarchy=TREE),
        lambda: workspace.data.set_column("Gender", role=None, kind=None),
        lambda: put_at(workspace.draft, ("partition",), {"size": "auto", "budget": 10.0}),
        lambda: put_at(
            workspace.draft,
            ("steps", "diversify"),
            {"criterion": "p-sensitivity", "p": 2, "column": "Salary-class"},
        ),
        lambda: put_at(workspace.draft, ("steps", "anonymize", "options"), {"mondrian": {"mode": "relaxed"}}),
        lambda: put_at(workspace.draft, ("steps", "anonymize", "boundaries"), False),
        lambda: put_at(workspace.draft, ("table", "prepare"), [{"top-code": {"column": "Age", "at": 80}}]),
    ]
    edits[at]()


WORDS = [
    "k: 10 → 5, 10",
    "methods: greedy → greedy, mondrian",
    "Age without a value: suppress",
    "Age stays in intervals of 5",
    "kind of Gender: categorical → hierarchy; Gender has a hierarchy",
    "Gender is not published any more",
    "works on the largest partitions that fit 10 s, before on the whole table at once",
    "diversity: none → p-sensitivity of Salary-class with p = 2",
    "Cuts of mondrian: relaxed",
    "boundaries: yes → no",
    "steps before: none → top-code",
]


def test_every_edit_is_told_in_words() -> None:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    before = workspace.draft.spec
    for at, words in enumerate(WORDS):
        edit(workspace, at)
        assert changes(before, workspace.draft.spec) == words
        assert not set("{}[]'") & set(words)
        assert changes(before, before) == "nothing that runs differently"
        workspace.draft.undo()
        assert workspace.draft.spec == before
    workspace.close()


def test_what_a_search_wanted_and_tried_is_no_difference() -> None:
    first = NO_FLOW.changed([(("target",), {"loss": 0.1, "tried": [{"algorithm": "nh", "k": 5}]})])
    second = NO_FLOW.with_method(k=6).changed([(("flow",), "b"), (("target",), {"loss": 0.1})])
    first = first.with_method(k=5)
    assert differences(first, second) == [("k", "5", "6")]
