"""A flow's steps, told before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonflow import cli, engine
from anonflow.engine.execution import events
from tests.cases.flow_files import write_flow

STEPS = (
    "  - diversify: {criterion: l-diversity, l: 1.2}\n  - draw: {}\n  - verify: [covers, guarantee]\n"
    "  - attack: [prosecutor, {insider: {c: 2}}]\n  - measure: [query-error]\n"
)


def test_the_plan_names_every_step_in_its_order(tmp_path: Path) -> None:
    flow = engine.load_flow(write_flow(tmp_path, steps=STEPS, source="{csv: people.csv, pieces: 30}"))
    page = flow._repr_html_()
    heard: list[events.Event] = []
    report = engine.run(flow, on_event=heard.append)
    assert report.ok
    first = heard[0]
    assert isinstance(first, events.FlowStarted)
    assert [step for step, _ in first.plan] == [
        "load", "cut", "match", "diversify", "verify", "measure", "draw", "verify", "attack", "publish",
    ]  # fmt: skip
    plan = dict(first.plan)
    assert plan["load"] == "people.csv, in pieces of 30 rows"
    assert plan["cut"] == "lexicographic order, partitions of 20"
    assert plan["measure"] == "each partition: gcp, query-error, usefulness"
    assert plan["diversify"] == "each partition: l-diversity(l=1.2)"
    assert plan["attack"] == "prosecutor, insider(c=2)"
    for step, sentence in first.plan:
        assert step in page
        assert sentence in page
    # what was planned is what was done, and timed
    done = {event.step for event in heard if isinstance(event, events.StepDone)}
    assert {"load", "cut", "anonymize", "draw", "attack", "publish"} <= done


def test_the_plan_says_no_value_of_a_column(tmp_path: Path) -> None:
    """The labels of a criterion's hierarchy are values: the plan goes to logs."""
    tree = "{nested: {'*': {ill: [influenza], well: [none]}}}"
    steps = (
        f"  - draw: {{}}\n  - verify: [covers, {{t-closeness: {{t: 0.9, column: income, hierarchy: {tree}}}}}, "
        "{key-sets: {sets: [[city, income], [zip]]}}]\n"
    )
    flow = engine.load_flow(write_flow(tmp_path, anonymize="{algorithm: mondrian, k: 3}", steps=steps))
    messages = [sentence for step, sentence in flow.outline() if step == "verify"]
    assert messages[0] == (
        "each partition: covers, t-closeness(t=0.9, column=income, hierarchy=...), key-sets(sets=[['city', 'income'], ['zip']])"
    )


def test_the_shell_prints_the_plan_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_flow(tmp_path, data=b"age,city,zip,income\nold,Volos,1,rich\n")
    with pytest.raises(SystemExit):
        cli.main(["run", str(path)])
    text = capsys.readouterr().err
    assert "  match     each partition: greedy k=3" in text
    assert text.index("  publish   ") < text.index("not numbers" if "not numbers" in text else "column")
