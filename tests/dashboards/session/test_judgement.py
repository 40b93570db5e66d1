"""What can run of a draft, and what is said of the rest: in the words of the screens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.errors import AnonflowError
from anonflow.partition import too_few
from anonflow.table import Schema, Table
from tests.cases.drafts import put_at


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    item = Workspace()
    item.opener.open_dataset("census_like", n=120, seed=3)
    yield item
    item.close()


def test_whoever_looks_never_sees_a_frame_without_its_columns() -> None:
    item = Workspace()
    seen: list[tuple[Any, ...]] = []

    def look(*events: Any) -> None:
        seen.append(
            (item.data.frame is None, item.data.table is None, len(item.data.algorithms), item.data.problems)
        )

    for owner, names in (
        (item.data, ["frame", "table", "problems", "algorithms", "ks"]),
        (item.draft, ["spec"]),
    ):
        owner.param.watch(look, names)
    item.opener.open_dataset("census_like", n=60, seed=1)
    item.opener.open_dataset("patients_example")  # other columns than those of the table before
    assert seen
    assert [state for state in seen if not state[0] and (state[1] or state[2] == 0 or state[3])] == []
    item.close()


def test_an_impossible_run_does_not_keep_the_others_from_theirs(workspace: Workspace) -> None:
    put_at(workspace.draft, ("partition",), {"size": 20})
    workspace.draft.set_algorithms(["mondrian", "greedy"])
    workspace.draft.set_ks([4, 30])
    assert workspace.data.problems == ()
    assert list(workspace.data.impossible) == ["mondrian k=30, greedy k=30"]
    assert (
        "at least 30 records, or the whole table" in workspace.data.impossible["mondrian k=30, greedy k=30"]
    )
    assert workspace.starts.possible == workspace.starts.missing == 2
    workspace.start()
    workspace.wait(300)
    assert {run.result.name for run in workspace.runs.finished} == {"mondrian k=4", "greedy k=4"}
    assert all(run.ok for run in workspace.runs.finished)
    workspace.draft.set_ks([30])
    assert workspace.data.impossible == {}
    assert len(workspace.data.problems) == 1


def test_an_option_that_one_method_cannot_take_is_that_methods(workspace: Workspace) -> None:
    workspace.draft.set_algorithms(["mondrian", "k-concealment"])
    workspace.draft.set_ks([4])
    step = ("steps", "anonymize", "options")
    put_at(workspace.draft, step, {"k-concealment": {"start": "even", "randomized": False}})
    problem = "; ".join([*workspace.data.problems, *workspace.data.impossible.values()])
    if problem:  # where it is found before it runs, it is found for that method alone
        assert workspace.starts.possible == 1
        assert workspace.data.problems == ()


@pytest.mark.parametrize("size", [20, None])
def test_a_k_that_the_table_does_not_have_is_said_as_the_shell_says_it(
    workspace: Workspace, size: int | None
) -> None:
    put_at(workspace.draft, ("partition",), None if size is None else {"size": size})
    workspace.draft.set_ks([40_000])
    assert workspace.data.problems == (too_few(120, 40_000).message,)
    workspace.draft.set_ks([4, 40_000])
    assert workspace.data.problems == ()
    assert list(workspace.data.impossible.values()) == [too_few(120, 40_000).message]


def test_blanks_in_numbers_are_said_in_the_words_of_the_screen() -> None:
    frame = pd.DataFrame({"age": [30.0, None, 31.0, 40.0] * 5})
    columns = {"age": {"role": "quasi-identifier", "kind": "numeric", "missing": "refuse"}}
    with pytest.raises(AnonflowError, match="say missing:"):
        Table(frame, Schema(columns))
    item = Workspace()
    item.opener.open_frame(frame, columns)
    assert "under Without a value" in item.data.problems[0]
    assert "missing: " not in item.data.problems[0]
    item.close()
