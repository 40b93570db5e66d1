"""Flow files: what loads, what does not, and that every problem is told at once with its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import anonflow as af
from anonflow.algorithms.patterns.language import pattern_set
from anonflow.algorithms.recoding.lattice import column_levels, fixed_levels
from anonflow.algorithms.registry import REGISTRY
from anonflow.engine import Flow, flow_from, load_flow, search_flow
from anonflow.engine.flows import spec
from anonflow.engine.flows.references import column_problems, stand_ins
from anonflow.errors import FlowError, ParameterError
from anonflow.strict_yaml import loads
from tests import ROOT
from tests.cases.flow_files import write_flow

HERE = ROOT / "tests" / "engine" / "flows"
VALID = sorted((HERE / "valid").glob("*.yaml"))
INVALID = sorted((HERE / "invalid").glob("*.yaml"))


def test_valid_flows_load(subtests: pytest.Subtests) -> None:
    for path in VALID:
        with subtests.test(path.stem):
            flow = load_flow(path)
            assert isinstance(flow, Flow)
            assert flow.name.split(".")[0] == path.stem
            assert flow.runs


def test_a_path_is_a_text_that_a_file_system_takes(tmp_path: Path) -> None:
    """Neither empty, nor with a null byte, nor longer than any system allows."""
    for text in ("", "a\\0b.csv", "x" * 5000 + ".csv"):
        with pytest.raises(FlowError, match="is not a usable path"):
            load_flow(write_flow(tmp_path, source=f'{{csv: "{text}"}}'))


def test_invalid_flows_say_where_and_why(subtests: pytest.Subtests) -> None:
    for path in INVALID:
        with subtests.test(path.stem):
            expected = re.findall(r"^# expect (\d+:\d+): (.*)$", path.read_text(encoding="utf-8"), re.M)
            assert expected
            with pytest.raises(FlowError) as caught:
                load_flow(path)
            assert len(caught.value.problems) == len(expected)
            for (place, text), problem in zip(expected, caught.value.problems, strict=True):
                assert problem.startswith(f"{path}:{place}: ")
                assert text in problem
                assert "\n" not in problem


def test_the_examples_are_many() -> None:
    assert len(VALID) >= 4
    assert len(INVALID) >= 30


def test_all_problems_in_one_go(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        source="{csv: nobody.csv, delimeter: ','}",
        anonymize="{algorithm: gredy, k: 1}",
        partition="{sise: 20}",
        steps="  - verify: [coverz]\n",
        publish="{table: x.xls}",
    )
    with pytest.raises(FlowError) as caught:
        load_flow(path)
    text = "\n".join(caught.value.problems)
    for part in ("delimeter", "gredy", "'k'", "sise", "coverz", "'table'"):
        assert part in text
    lines = [int(re.match(r".*?:(\d+):", problem)[1]) for problem in caught.value.problems]  # type: ignore[index]
    assert lines == sorted(lines)


def test_yaml_is_read_as_written() -> None:
    document = loads("a: NO\nb: 01234\n")
    assert document.data == {"a": "NO", "b": "01234"}


def test_a_matrix_is_every_combination(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        publish="",
        more="matrix:\n  anonymize.k: [2, 3]\n  partition.size: [10, 20, 30]\n",
    )
    flow = load_flow(path)
    assert len(flow.runs) == 6
    assert [(run.anonymize.k, run.partition.size) for run in flow.runs[:3]] == [(2, 10), (2, 20), (2, 30)]
    assert flow.runs[0].name == "greedy k=2 size=10"
    assert flow.published is None


def test_a_matrix_gives_what_the_step_leaves_out(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path, publish="", anonymize="{algorithm: greedy}", more="matrix: {anonymize.k: [2, 3]}\n"
    )
    assert [run.anonymize.k for run in load_flow(path).runs] == [2, 3]


def test_options_of_one_method_go_for_it_alone(tmp_path: Path) -> None:
    own = "{greedy: {reciprocal: true}, k-concealment: {randomized: false}}"
    path = write_flow(
        tmp_path,
        publish="",
        anonymize=f"{{algorithm: greedy, k: 3, options: {own}}}",
        more="matrix: {anonymize.algorithm: [greedy, mondrian, k-concealment]}\n",
    )
    runs = load_flow(path).runs
    assert [run.anonymize.options for run in runs] == [{"reciprocal": True}, {}, {"randomized": False}]
    swept = path.read_text().replace(
        "matrix: {anonymize.algorithm: [greedy, mondrian, k-concealment]}",
        "matrix: {anonymize.reciprocal: [false, true]}",
    )
    path.write_text(swept)
    assert [item.anonymize.options["reciprocal"] for item in load_flow(path).runs] == [False, True]


def test_a_problem_of_several_runs_is_said_once_at_its_place(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        publish="",
        anonymize="{algorithm: greedy, k: 3, speed: 9}",
        more="matrix: {anonymize.k: [2, 1, 5]}\n",
    )
    with pytest.raises(FlowError) as refused:
        load_flow(path)
    speed, least = refused.value.problems
    lines = path.read_text().splitlines()
    for problem, word in ((speed, "speed"), (least, "matrix")):
        assert word in lines[int(problem.split(":")[1]) - 1]
    assert "unknown option of greedy 'speed'" in speed
    assert "'k' must be a number of at least 2" in least


def test_a_matrix_has_a_limit(tmp_path: Path) -> None:
    ks = ", ".join(str(k) for k in range(2, 1100))
    path = write_flow(tmp_path, publish="", partition="{}", more=f"matrix: {{anonymize.k: [{ks}]}}\n")
    with pytest.raises(FlowError, match="1098 combinations"):
        load_flow(path)


def test_publishing_names_one_run(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        publish="{table: out/x.csv, run: {anonymize.k: 3}}",
        more="matrix: {anonymize.k: [2, 3], partition.size: [10, 20]}\n",
    )
    with pytest.raises(FlowError, match="picks 2 runs"):
        load_flow(path)


def test_paths_are_relative_to_the_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    write_flow(inner, publish="{report: ../out/r.html}")
    monkeypatch.chdir(tmp_path)
    flow = load_flow("inner/flow.yaml")
    assert flow.owner_folder == inner / "owner" / "test"
    assert flow.report_path is not None
    assert flow.report_path.resolve() == tmp_path / "out" / "r.html"
    assert flow.source_path == inner / "people.csv"


def test_a_link_to_the_owners_folder_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "owner").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "owner")
    with pytest.raises(FlowError, match="owner's folder"):
        load_flow(write_flow(tmp_path))


def test_nothing_is_published_unverified(tmp_path: Path) -> None:
    assert load_flow(write_flow(tmp_path)).criteria == ("covers", "guarantee")


def test_a_flow_without_a_file() -> None:
    text = (
        "flow: made\nversion: 1\ntable:\n  source: {dataset: freeform_example}\n  columns:\n"
        "    Age: {role: quasi-identifier, kind: numeric}\nsteps:\n  - anonymize: {algorithm: greedy, k: 2}\n"
    )
    flow = flow_from(loads(text, "made"))
    assert flow.path is None
    assert flow.runs[0].anonymize.k == 2


def test_specs_are_frozen_and_strict() -> None:
    models = {name: model for name, model in vars(spec).items() if name.endswith("Spec") and name[0] != "_"}
    assert len(models) > 10
    for name, model in models.items():
        assert issubclass(model, BaseModel)
        assert model.model_config["frozen"]
        assert model.model_config["extra"] == ("allow" if name == "AnonymizeSpec" else "forbid")


def test_a_columns_problem_stands_where_its_key_does(tmp_path: Path) -> None:
    """Whatever the column is called: the place comes with the problem, and is not read off its sentence."""
    name = "unknown key 'role'"
    path = write_flow(tmp_path)
    text = path.read_text(encoding="utf-8")
    entry = f'    "{name}": {{role: quasi-identifier, kind: numeric, weight: 0}}\n'
    path.write_text(text.replace("  columns:\n", "  columns:\n" + entry, 1), encoding="utf-8")
    line = path.read_text(encoding="utf-8").splitlines().index(entry.rstrip("\n")) + 1
    with pytest.raises(FlowError) as caught:
        load_flow(path)
    column = entry.index("weight") + 1
    assert any(f"flow.yaml:{line}:{column}: " in problem for problem in caught.value.problems)
    assert ("table", "columns", name, "weight") in [item for item, _ in caught.value.found]


LEVELS_TRIED = ("values", "level 1", "level 2", "width 10", "1 hidden", "*", "nothing")
ENTRIES = st.one_of(
    st.sampled_from(["all", "-*-", "*-**", "****", "----", "-*x-"]),
    st.lists(st.sampled_from([*"abcde"]), max_size=3),
    st.builds(
        dict,
        levels=st.dictionaries(st.sampled_from([*"abcde"]), st.sampled_from(LEVELS_TRIED), min_size=1),
    ),
    st.fixed_dictionaries(
        {"at-most": st.integers(0, 4)},
        optional={
            "never": st.lists(st.sampled_from([*"abcde"]), min_size=1, max_size=2),
            "together": st.lists(st.sampled_from([*"abcde"]), min_size=2, max_size=3, unique=True),
            "fallback": st.sampled_from(["none", "all", "strict"]),
        },
    ),
)


@given(
    st.one_of(ENTRIES, st.lists(ENTRIES, max_size=2)),
    st.none() | st.dictionaries(st.sampled_from([*"abcde"]), st.sampled_from([1, 0.5, -1]), max_size=2),
    st.sampled_from([None, "none", "all", "strict"]),
)
def test_options_are_refused_before_the_table_is_read_as_they_are_after(
    patterns: Any, weights: Any, fallback: str | None
) -> None:
    """Of numbers, two categories and a tree: the same options are refused, with the same words."""
    tree = {"nested": {"*": {"north": {"cold": ["u", "v"]}, "south": {"warm": ["w"], "hot": ["x", "y"]}}}}
    schema = af.Schema(
        {
            "a": {"role": "quasi-identifier", "kind": "numeric"},
            "b": {"role": "quasi-identifier", "kind": "categorical"},
            "c": {"role": "quasi-identifier", "kind": "suppression"},
            "d": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": tree},
        }
    )
    frame = pd.DataFrame({"a": range(50, 54), "b": [*"pqrq"], "c": [*"1231"], "d": [*"uwxy"]})
    table = af.Table(frame, schema)
    options = {"patterns": patterns, "weights": weights, "fallback": fallback}
    problems = [text for _, text in column_problems(REGISTRY["pattern-guided"], options, stand_ins(schema))]
    refused = refusal(lambda: pattern_set(table.domains, patterns, weights, fallback))
    assert bool(problems) == bool(refused)
    assert refused in ["", *problems] or "fallback" in problems[0]  # which is looked at first


@given(
    st.none() | st.dictionaries(st.sampled_from([*"abcd"]), st.sampled_from(LEVELS_TRIED), max_size=3),
    st.none()
    | st.dictionaries(st.sampled_from([*"abcd"]), st.sampled_from([[10], [5, 10], [3, 4]]), max_size=2),
)
def test_levels_that_a_table_has_are_never_refused_before_it_is_read(levels: Any, widths: Any) -> None:
    """Those of numbers depend on the table; those of the others are refused as they are after."""
    tree = {"nested": {"*": {"north": {"cold": ["u", "v"]}, "south": {"warm": ["w"], "hot": ["x", "y"]}}}}
    schema = af.Schema(
        {
            "a": {"role": "quasi-identifier", "kind": "numeric"},
            "b": {"role": "quasi-identifier", "kind": "suppression"},
            "c": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": tree},
        }
    )
    frame = pd.DataFrame({"a": [3, 50, 51, 52], "b": [*"1231"], "c": [*"uwxy"]})
    options = {"levels": levels, "widths": widths}
    problems = column_problems(REGISTRY["full-domain"], options, stand_ins(schema))
    refused = refusal(lambda: fixed_levels(column_levels(af.Table(frame, schema).records, widths), levels))
    assert bool(problems) == bool(refused) or "column 'a' has no level" in refused


@pytest.mark.parametrize(
    "settings",
    [
        "algorithm: full-domain, widths: {age: [5.0e-324, 1.0e+308]}",
        "algorithm: full-domain, widths: {age: [1, 1" + 398 * "0" + "]}",
        "algorithm: local-recoding, widths: {age: 1" + 398 * "0" + "}",
        "algorithm: pattern-guided, patterns: [{levels: {city: level " + 5000 * "9" + "}}]",
        "algorithm: pattern-guided, patterns: [{levels: {age: width 1e-320}}]",
        "algorithm: pattern-guided, patterns: [{levels: {age: width 1e400}}]",
    ],
)
def test_numbers_beyond_all_tables_are_refused(settings: str, tmp_path: Path) -> None:
    with pytest.raises(FlowError) as caught:
        load_flow(with_tree(tmp_path, f"{{{settings}, k: 3}}"))
    (problem,) = caught.value.problems
    assert re.match(r".*flow\.yaml:\d+:\d+: ", problem)


def test_a_root_above_one_node_is_a_level_where_values_are_missing(tmp_path: Path) -> None:
    """The missing value is another child of the root."""
    path = with_tree(tmp_path, "{algorithm: full-domain, k: 3, levels: {city: '*'}}")
    (tmp_path / "people.csv").write_text("age,city\n" + "31,Oslo\n32,Rome\n33,\n" * 5)
    assert load_flow(path)
    report = af.run(path)
    assert report.results[0].problem is None


def test_a_search_goes_on_without_a_method_that_refuses_the_columns(tmp_path: Path) -> None:
    path = with_tree(tmp_path, "{algorithm: mondrian, k: 3}")
    target = "target: {loss: 0.9, time: 10m}\nmatrix: {anonymize.algorithm: [mondrian, pattern-guided]}\n"
    path.write_text(
        path.read_text().replace(
            "{algorithm: mondrian, k: 3}",
            "{algorithm: mondrian, k: 3, options: {pattern-guided: {patterns: [[nobody]]}}}",
        )
        + target
    )
    (tmp_path / "people.csv").write_text("age,city\n" + "31,Oslo\n32,Rome\n33,Oslo\n" * 9)
    assert load_flow(path)
    _, report = search_flow(path, seed=2**127)
    assert report.best is not None
    assert any("nobody" in (trial.problem or "") for trial in report.trials)


def with_tree(folder: Path, anonymize: str) -> Path:
    """A flow of two quasi-identifiers, a number and a tree whose root has one child."""
    path = folder / "flow.yaml"
    path.write_text(
        f"""flow: f
version: 1
table:
  source: {{csv: people.csv}}
  columns:
    age: {{role: quasi-identifier, kind: numeric}}
    city: {{role: quasi-identifier, kind: hierarchy, missing: value, hierarchy: {{nested: {{any: {{Europe: [Oslo, Rome]}}}}}}}}
steps:
  - anonymize: {anonymize}
"""
    )
    (folder / "people.csv").touch()
    return path


def refusal(work: Callable[[], Any]) -> str:
    """What a ParameterError says, without its subject; empty without one."""
    try:
        work()
    except ParameterError as error:
        return error.text
    return ""
