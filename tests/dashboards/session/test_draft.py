"""The flow behind the screens, and the counts its hints show: no browser, no server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow import datasets
from anonflow.errors import FlowError, SchemaError
from anonflow.table.identification.uniqueness import Uniqueness, unique_as_added

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Draft
from tests import ROOT
from tests.cases.drafts import problems_of, put_at, read_draft, value_at

COLUMNS = {
    "parents": {"role": "quasi-identifier", "kind": "categorical"},
    "finance": {"role": "quasi-identifier", "kind": "categorical"},
    "health": {"role": "sensitive"},
}
EXAMPLES = sorted((ROOT / "flows").glob("*.yaml"))


def draft() -> Draft:
    return Draft.start({"dataset": "nursery"}, COLUMNS, k=5)


def test_a_first_draft_is_a_valid_flow_and_reads_back() -> None:
    first = draft()
    assert problems_of(first) == ()
    assert first.flow().runs[0].anonymize.k == 5
    again = read_draft(first.text())
    assert again.document == first.document


@pytest.mark.parametrize("matrix", [{}, {"anonymize.k": [5, 7]}])
@pytest.mark.parametrize("draw", [[], [{"draw": {}}]])
def test_attackers_wait_for_the_run_that_is_chosen(matrix: dict[str, list[int]], draw: list[object]) -> None:
    """Which run is published, and so attacked, is chosen after the runs: no reason to refuse the flow."""
    first = draft()
    steps = [{"anonymize": {"algorithm": "greedy", "k": 5}}, *draw, {"attack": ["prosecutor"]}]
    put_at(first, ("steps",), steps)
    put_at(first, ("matrix",), matrix or None)
    assert problems_of(first) == ()
    assert len(first.flow().runs) == max(1, sum(map(len, matrix.values())))
    again = read_draft(first.text())
    assert again.document == first.document
    assert "publish" not in again.document
    put_at(first, ("steps", "attack"), ["prosecuter"])
    assert any("prosecuter" in problem for problem in problems_of(first))
    with pytest.raises(FlowError, match="must be a list"):
        put_at(first, ("matrix",), {"anonymize.k": 5})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_flow_goes_through_a_draft_unchanged(path: Path) -> None:
    first = read_draft(path.read_text(encoding="utf-8"), folder=path.parent)
    again = read_draft(first.text(), folder=path.parent)
    assert again.document == first.document
    assert [run.name for run in again.flow().runs] == [run.name for run in first.flow().runs]


def test_edits_are_told_to_watchers_and_undone() -> None:
    item = draft()
    messages = []
    item.param.watch(lambda event: messages.append(event.new), "spec")
    before = item.spec
    put_at(item, ("steps", "anonymize", "k"), 25)
    put_at(item, ("steps", "anonymize", "k"), 25)  # nothing changed: no step
    put_at(item, ("table", "columns", "finance", "role"), "insensitive")
    assert len(messages) == 2
    assert before.method.k == 5  # an edit never changes what others hold
    item.undo()
    assert value_at(item, ("table", "columns", "finance", "role")) == "quasi-identifier"
    assert value_at(item, ("steps", "anonymize", "k")) == 25
    item.undo()
    assert item.spec == before
    assert not item.can_undo
    item.redo()
    assert value_at(item, ("steps", "anonymize", "k")) == 25
    put_at(item, ("steps", "anonymize", "k"), 7)
    assert not item.can_redo


def test_steps_and_matrix_are_added_and_taken_away() -> None:
    item = draft()
    put_at(item, ("matrix", "anonymize.k"), [5, 10])
    assert [run.anonymize.k for run in item.flow().runs] == [5, 10]
    put_at(item, ("matrix",), None)
    put_at(item, ("steps", "draw"), None)
    assert value_at(item, ("steps", "draw")) is None
    assert problems_of(item) == ()
    assert value_at(item, ("no", "such", "place"), "x") == "x"


def test_what_cannot_run_is_said() -> None:
    item = draft()
    put_at(item, ("steps", "anonymize", "algorithm"), "gredy")
    assert any("greedy" in problem for problem in problems_of(item))
    with pytest.raises(FlowError):
        item.flow()
    with pytest.raises(FlowError, match="must be"):
        put_at(item, ("steps", "anonymize", "k"), 1)
    with pytest.raises(FlowError):
        read_draft("flow: x\n")


@given(
    rows=st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3)), max_size=30),
    k=st.integers(1, 6),
)
def test_records_at_risk_are_those_in_small_classes(rows: list[tuple[object, int]], k: int) -> None:
    frame = pd.DataFrame({"x": [x for x, _ in rows], "y": [y for _, y in rows]}, dtype=object)
    counts = Uniqueness(frame, ["x", "y"])
    assert counts.at_risk(k) == sum(rows.count(row) < k for row in rows)
    assert counts.unique == sum(rows.count(row) == 1 for row in rows)
    assert counts.classes == len(set(rows))


def test_uniqueness_grows_as_columns_are_added() -> None:
    frame = datasets.nursery()
    names = list(frame.columns[:8])
    grown = unique_as_added(frame, names)
    assert grown == sorted(grown)
    assert grown[-1] == len(frame)  # nursery's attributes are a full product
    assert Uniqueness(frame, []).at_risk(len(frame)) == 0
    with pytest.raises(SchemaError, match="no column"):
        Uniqueness(frame, ["nobody"])
    assert Uniqueness(frame.head(0), names).at_risk(5) == 0
    assert np.all(np.diff([Uniqueness(frame, names[:3]).at_risk(k) for k in (2, 10, 100, 1000)]) >= 0)
