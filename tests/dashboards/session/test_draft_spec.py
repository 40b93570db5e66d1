"""The flow of a draft as a typed model: its file's form, its parts, and what a run hands over."""

from __future__ import annotations

from typing import Any

import pytest

from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import FlowError
from anonflow.table.schema import COLUMN_KEYS

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.dashboards.session import draft_spec
from anonflow.dashboards.session.draft_spec import NO_FLOW, ColumnSpec, DraftSpec

FLOW: dict[str, Any] = {
    "flow": "people",
    "version": 1,
    "table": {"source": {"csv": "people.csv"}, "columns": {"age": {"role": "quasi-identifier", "max-width": 5}}},
    "steps": [{"anonymize": {"algorithm": "nh", "k": 5, "time-limit": None}}, {"draw": {}}, {"verify": ["covers"]}],
}  # fmt: skip


def test_a_column_has_a_field_for_each_key_of_a_schema() -> None:
    assert set(COLUMN_KEYS) == {field.alias for field in ColumnSpec.model_fields.values()}


def test_a_flow_is_written_as_its_file_has_it_without_defaults() -> None:
    spec = DraftSpec.of(FLOW)
    assert spec.columns["age"].max_width == 5
    assert spec.method.options == {"time_limit": None}
    assert spec.single(spec_run(spec)).method.options == {"time_limit": None}  # None is a value of an option
    document = spec.document
    assert document["table"] == FLOW["table"]
    assert document["steps"][0] == {"anonymize": {"algorithm": "nh", "k": 5, "time_limit": None}}
    assert document["steps"][1:] == FLOW["steps"][1:]
    usual = {**FLOW, "partition": {"order": "lexicographic"}, "table": {**FLOW["table"], "prepare": []}}
    assert DraftSpec.of(usual) == spec
    assert DraftSpec.of(usual).document == document


def spec_run(spec: DraftSpec) -> Any:
    from anonflow.engine import Run

    return Run(0, "nh k=5", spec.method, spec.partition)


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (("steps", "anonymize", "k"), "five", "steps.anonymize.k"),
        (("table", "columns", "age", "colour"), "red", "table.columns.age.colour"),
        (("matrix",), {"anonymize.k": [5, "six"]}, "k"),
        (("steps",), [{"draw": {}}, {"draw": {}}], "steps"),
    ],
)
def test_what_is_no_flow_is_refused_with_its_place_and_without_its_value(
    path: tuple[str, ...], value: Any, place: str
) -> None:
    with pytest.raises(FlowError) as error:
        DraftSpec.of(FLOW).changed([(path, value)])
    text = " ".join(error.value.problems)
    assert place in text
    assert not {"five", "red", "six"} & set(text.split())


def test_methods_and_ks_stand_in_the_step_and_in_the_matrix() -> None:
    spec = NO_FLOW.sweeping("algorithm", ["nh", "greedy"]).sweeping("k", [3])
    assert (spec.algorithms, spec.ks, spec.method.algorithm) == (("nh", "greedy"), (3,), "nh")
    assert spec.sweeping("algorithm", ["nh"]).matrix == {}


def test_options_of_a_method_go_over_those_of_the_step() -> None:
    option = REGISTRY["greedy"].options["reciprocal"]
    step = DraftSpec.of(FLOW).changed([(("steps", "anonymize", "reciprocal"), True)]).method
    assert step.option("greedy", option) is True
    assert step.with_option("greedy", option, False).of_methods == {"greedy": {"reciprocal": False}}
    assert step.without("reciprocal").option("greedy", option) is option.default
    assert step.without("reciprocal").with_option("greedy", option, option.default).of_methods == {}


def test_a_click_on_run_loads_no_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    item = Workspace()
    item.opener.open_dataset("census_like", n=60, seed=1)
    item.draft.set_ks([3, 4])
    monkeypatch.setattr(draft_spec, "flow_from", lambda *_, **__: pytest.fail("the flow is loaded again"))
    item.start()
    item.wait(300)
    assert [run.ok for run in item.runs.finished] == [True, True]
    item.close()
