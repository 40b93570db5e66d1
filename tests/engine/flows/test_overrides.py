"""Keys of a flow that are set from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonflow import strict_yaml
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.flows.overrides import overridden
from anonflow.errors import AnonflowError, FlowError, ParameterError
from tests.cases.flow_files import write_flow


def test_a_key_is_set_and_the_file_is_not(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    text = path.read_text()
    flow = load_flow(path, ["steps.anonymize.k=7", "publish.table=out/other.csv", "run.workers=1"])
    assert flow.runs[0].anonymize.k == 7
    assert flow.table_path is not None
    assert flow.table_path.name == "other.csv"
    assert flow.spec.run.workers == 1
    assert path.read_text() == text
    assert load_flow(path).runs[0].anonymize.k != 7
    assert len({load_flow(path, ["steps.anonymize.k=7"]).digest, load_flow(path).digest, flow.digest}) == 3


def test_an_environment_variable_is_read_where_it_is_named() -> None:
    document = strict_yaml.loads("steps:\n- anonymize: {k: 5, algorithm: greedy}\n- verify: [covers]\n")
    changed = overridden(
        document, ["steps.anonymize.k=${env:K}", "steps.1.verify=[covers, guarantee]"], {"K": "20"}
    )
    assert changed.data["steps"] == [
        {"anonymize": {"k": 20, "algorithm": "greedy"}},
        {"verify": ["covers", "guarantee"]},
    ]
    plain = overridden(document, ["steps.anonymize.algorithm=$K", "flow=x-${env:K}"], {"K": "20"})
    assert plain.data["steps"][0]["anonymize"]["algorithm"] == "$K"
    assert plain.data["flow"] == "x-${env:K}"
    assert document.data["steps"][0]["anonymize"]["k"] == 5


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("k", "takes KEY=VALUE"),
        ("=5", "takes KEY=VALUE"),
        ("a..b=5", "takes KEY=VALUE"),
        ("steps.\x1b[2J=5", "takes KEY=VALUE"),
        ("steps.draw.seed=5", "the flow has no 'steps.draw'"),
        ("steps.9=5", "no step or entry '9'"),
        ("flow.name=5", "is not a key of this flow"),
        ("flow.name.more=5", "the flow has no 'flow.name'"),
        ("flow=${env:NOT_THERE}", "no environment variable NOT_THERE"),
        ("flow=[1", "--set flow"),
        ("flow=&a b", "--set flow"),
    ],
)
def test_what_cannot_be_set_is_said_in_a_sentence(setting: str, text: str) -> None:
    document = strict_yaml.loads("flow: test\nsteps:\n- anonymize: {k: 5}\n")
    with pytest.raises(ParameterError) as caught:
        overridden(document, [setting], {})
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_key_is_set_once() -> None:
    with pytest.raises(ParameterError, match="is given twice"):
        overridden(strict_yaml.loads("flow: test\n"), ["flow=a", "flow=b"], {})


def test_what_is_set_is_checked_as_the_file_is(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    for setting in ("steps.anonymize.k=no", "steps.anonymize.kk=5", "stepz.k=5", "version=99"):
        with pytest.raises(AnonflowError) as caught:
            load_flow(path, [setting])
        assert caught.value.exit_status == 2


def test_a_variable_in_the_file_itself_is_sent_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes a variable into a flow reads which option takes it, and that option does."""
    (tmp_path / "people.csv").write_text("age\n30\n31\n32\n33\n")
    path = tmp_path / "flow.yaml"
    path.write_text(
        'flow: f\nversion: 1\ntable:\n  source: {csv: "${env:INPUT}"}\n'
        "  columns: {age: {role: quasi-identifier, kind: numeric}}\nsteps:\n  - anonymize: {algorithm: mondrian, k: 2}\n"
    )
    with pytest.raises(FlowError, match="no such file") as refused:
        load_flow(path)
    setting = "table.source.csv='${env:INPUT}'"
    assert f"but --set {setting} does" in refused.value.message
    monkeypatch.setenv("INPUT", "people.csv")
    assert load_flow(path, [setting.replace("'", "")]).source_path == tmp_path / "people.csv"
