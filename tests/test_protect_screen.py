"""The page Protect without a browser: k and who is at risk, methods and options, patterns, diversity, limits."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from anonflow.algorithms.anonymize import anonymize
from anonflow.algorithms.patterns import pattern_grid
from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import ParameterError
from anonflow.table import Table
from tests.naive.uniqueness import at_risk

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.diversity_choice import NONE, DiversityChoice
from anonflow.dashboards.limit_choice import LimitChoice
from anonflow.dashboards.markup import methods_list
from anonflow.dashboards.method_options import NOT_ASKED, options_of
from anonflow.dashboards.pattern_board import PatternBoard, board
from anonflow.dashboards.pattern_choice import METHODS, PatternChoice
from anonflow.dashboards.protect_screen import ProtectScreen
from anonflow.dashboards.protection import Protection, share
from anonflow.dashboards.workspace import Workspace

PEOPLE = pd.DataFrame(
    {
        "age": [str(20 + i % 5) for i in range(80)],
        "city": ["Athens", "Volos", "Patras", "Chania"] * 20,
        "job": [("cook", "driver", "nurse")[i % 3] for i in range(80)],
        "illness": [("flu", "flu", "flu", "cough", "rash")[(i * 7) % 5] for i in range(80)],
    }
)


@pytest.fixture
def workspace(tmp_path: object) -> Workspace:
    one = Workspace()
    path = one.folder / "given.csv"
    PEOPLE.to_csv(path, index=False)
    one.open_file("people.csv", path)
    one.set_column("illness", role="sensitive")
    for name, kind in (("age", "numeric"), ("city", "categorical"), ("job", "categorical")):
        one.set_column(name, role="quasi-identifier", kind=kind)
    assert one.problems == ()
    return one


def steps_back(workspace: Workspace) -> int:
    """How many edits can be undone."""
    return len(workspace.draft.past)


# ------------------------------------------------------------------------------------------- k, risk


def test_records_at_risk_are_those_of_the_definition(workspace: Workspace) -> None:
    choice = Protection(workspace)
    rows = [tuple(row) for row in PEOPLE[["age", "city", "job"]].itertuples(index=False)]
    for k in (2, 3, 5, 8, 40):
        assert choice.at_risk(k) == (at_risk(rows, k), 80)
    assert "of 80 records" in choice.sentence(3)
    assert "fewer than 1 other:" in choice.sentence(2)


def test_the_count_follows_the_roles(workspace: Workspace) -> None:
    choice = Protection(workspace)
    all_three = choice.at_risk(5)[0]
    workspace.set_column("age", role="insensitive")
    assert choice.at_risk(5)[0] < all_three
    for name in ("city", "job"):
        workspace.set_column(name, role="insensitive")
    assert choice.at_risk(5) == (0, 0)
    assert "quasi-identifiers" in choice.sentence(5)


def test_k_is_one_step_and_is_undone(workspace: Workspace) -> None:
    choice = Protection(workspace)
    before = steps_back(workspace)
    first = choice.k
    choice.k = 4
    assert workspace.ks == [4]
    assert steps_back(workspace) == before + 1
    choice.more = [3, 8]
    assert workspace.ks == [3, 4, 8]
    choice.k = 5  # the other ks stay
    assert workspace.ks == [3, 5, 8]
    assert choice.more == [3, 8]
    workspace.draft.undo()
    assert (choice.k, choice.more) == (4, [3, 8])
    workspace.draft.undo()
    workspace.draft.undo()
    assert (choice.k, choice.more) == (first, [])
    with pytest.raises(ValueError, match="k"):
        choice.k = 1


def test_more_than_there_are_is_said_before_run(workspace: Workspace) -> None:
    choice = Protection(workspace)
    choice.k = 81
    assert any("80" in problem for problem in workspace.problems)
    choice.k = 4
    assert workspace.problems == ()


def test_a_slider_change_answers_within_200_ms_on_30_000_records() -> None:
    one = Workspace()
    screen = ProtectScreen(workspace=one)
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"q{a}": rng.integers(0, 12, 30_000).astype(str) for a in range(6)})
    path = one.folder / "given.csv"
    frame.to_csv(path, index=False)
    one.open_file("many.csv", path)
    screen.k.value = 11  # the table's classes are counted once
    for k in (12, 13, 14, 15, 16):
        began = time.thread_time()
        screen.k.value = k
        assert f"fewer than {k - 1} others" in screen.risk.object
        screen._set_k(k)  # and let go: the draft and what follows from it
        assert one.ks == [k]
        assert time.thread_time() - began < 0.2


def test_shares_in_words() -> None:
    assert [share(0, 9), share(9, 9), share(1, 3), share(1, 5000), share(4999, 5000), share(0, 0)] == [
        "0%", "100%", "33.3%", "below 0.1%", "above 99.9%", "0%",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ methods


def test_methods_are_those_of_the_registry_with_guidance_and_promise() -> None:
    made = methods_list(["greedy", "mondrian"])
    for name, method in REGISTRY.items():
        assert f'data-key="{name}"' in made
        said = Protection.guidance(name)
        assert said["summary"] == method.summary
        assert said["promise"]
    assert made.count('aria-checked="true"') == 2
    assert "probability exactly 1/k" in made
    assert "Every original could be matched" not in made  # nobody chose k-concealment
    with pytest.raises(ParameterError):
        Protection.guidance("nobody")


def test_methods_are_toggled_and_the_last_one_stays(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    screen._toggle("mondrian")
    assert workspace.algorithms == ["greedy", "mondrian"]
    screen._toggle("greedy")
    assert workspace.algorithms == ["mondrian"]
    screen._toggle("mondrian")
    assert workspace.algorithms == ["mondrian"]
    workspace.draft.undo()
    assert workspace.algorithms == ["greedy", "mondrian"]
    assert screen.methods.html.count('aria-checked="true"') == 2


def test_every_option_of_every_method_is_asked_for_in_words() -> None:
    for name, method in REGISTRY.items():
        asked = options_of(name)
        assert {option.name for option in asked} == set(method.options) - set(NOT_ASKED)
        for option in asked:
            assert option.told, (name, option.name)
            if isinstance(option.default, str):
                assert option.default in option.choices, (name, option.name)


@pytest.mark.parametrize(
    ("method", "option", "word"),
    [(o.method, o.name, w) for name in REGISTRY for o in options_of(name) for w in o.choices],
)
def test_every_choice_of_an_option_is_one_that_the_method_takes(method: str, option: str, word: str) -> None:
    table = Table(
        PEOPLE.head(12),
        {name: {"role": "quasi-identifier", "kind": "suppression"} for name in ("city", "job")},
    )
    anonymize(table, method, 2, seed=1, **{option: word})


def test_options_go_for_their_method_alone(workspace: Workspace) -> None:
    choice = Protection(workspace)
    choice.algorithms = ["greedy", "mondrian", "k-concealment"]
    before = steps_back(workspace)
    choice.set_option("greedy", "reciprocal", True)
    choice.set_option("k-concealment", "randomized", False)
    assert steps_back(workspace) == before + 2
    assert workspace.problems == ()
    runs = {run.anonymize.algorithm: run.anonymize.options for run in workspace.draft.flow().runs}
    assert runs == {"greedy": {"reciprocal": True}, "mondrian": {}, "k-concealment": {"randomized": False}}
    found = {o.name: choice.value_of(o) for o in options_of("greedy")}
    assert found["reciprocal"] is True
    choice.set_option("greedy", "reciprocal", False)
    choice.set_option("k-concealment", "randomized", True)
    assert workspace.draft.get(("steps", "anonymize", "options")) is None  # defaults are not written
    with pytest.raises(KeyError):
        choice.set_option("greedy", "colour", "red")


def test_an_option_of_a_loaded_flow_is_seen_and_overruled(workspace: Workspace) -> None:
    workspace.draft.set(("steps", "anonymize", "reciprocal"), True)
    choice = Protection(workspace)
    (option,) = (o for o in options_of("greedy") if o.name == "reciprocal")
    assert choice.value_of(option) is True
    choice.set_option("greedy", "reciprocal", False)
    assert choice.value_of(option) is False
    assert workspace.draft.flow().runs[0].anonymize.options["reciprocal"] is False


def test_fields_of_options_follow_the_draft(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    field = screen._fields["greedy", "reciprocal"]
    field.value = True
    assert workspace.draft.get(("steps", "anonymize", "options")) == {"greedy": {"reciprocal": True}}
    workspace.draft.undo()
    assert field.value is False
    screen._toggle("k-concealment")
    assert ("k-concealment", "q") in screen._fields


def test_partitions_loss_and_boundaries(workspace: Workspace) -> None:
    choice = Protection(workspace)
    choice.cut = "size"
    choice.size = 40
    assert workspace.draft.get(("partition",)) == {"order": "lexicographic", "size": 40}
    choice.cut = "time"
    choice.seconds = 5.0
    assert workspace.draft.get(("partition",)) == {"order": "lexicographic", "size": "auto", "budget": 5.0}
    assert workspace.problems == ()
    choice.cut = "whole"
    assert workspace.draft.get(("partition",)) is None
    choice.loss = "entropy"
    choice.boundaries = False
    assert workspace.draft.get(("steps", "anonymize"))["loss"] == "entropy"
    assert workspace.draft.get(("steps", "anonymize"))["boundaries"] is False
    choice.cut, choice.size = "size", 5
    assert any("smaller than k" in problem for problem in workspace.problems)
    for _ in range(2):
        workspace.draft.undo()
    assert choice.cut == "whole"


def test_reading_never_writes(workspace: Workspace) -> None:
    before = workspace.draft.document
    screen = ProtectScreen(workspace=workspace)
    screen.__panel__()
    assert workspace.draft.document is before


# ----------------------------------------------------------------------------------------- patterns


def patterns_of(workspace: Workspace) -> object:
    return workspace.draft.get(("steps", "anonymize", "options", "pattern-guided", "patterns"))


def test_the_grid_is_that_of_the_library(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    assert choice.grid.equals(pattern_grid(workspace.table, "all"))
    choice.param.update(form="predicates", at_most=1, never=["age"])
    assert choice.grid.equals(pattern_grid(workspace.table, {"at-most": 1, "never": ["age"]}))
    assert patterns_of(workspace) == {"at-most": 1, "never": ["age"]}
    choice.together = [["city", "job"]]
    assert "go together" in choice.problem
    assert choice.grid is None
    choice.at_most = 2
    choice.fallback = True
    assert choice.problem == ""
    wanted = {"at-most": 2, "never": ["age"], "together": [["city", "job"]], "fallback": "all"}
    assert patterns_of(workspace) == wanted
    choice.param.update(together=[], at_most_one_of=[["city", "job"]])
    assert patterns_of(workspace)["at-most-one-of"] == [["city", "job"]]
    workspace.draft.undo()
    assert (choice.together, choice.at_most_one_of) == ([["city", "job"]], [])


def test_contradictory_patterns_are_said_before_run(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    workspace.set_algorithms(["pattern-guided"])
    choice.param.update(form="predicates", together=[["city", "job"]], never=["city"])
    assert any("contradictory" in problem for problem in workspace.problems)


def test_cells_are_clicked(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    view = PatternBoard(choice=choice)
    choice.start_list()
    assert patterns_of(workspace) == [[]]
    before = steps_back(workspace)
    view._click("cell:0:1")
    assert patterns_of(workspace) == [["city"]]
    assert steps_back(workspace) == before + 1
    choice.add()
    view._click("cell:1:0")
    view._click("cell:1:2")
    assert patterns_of(workspace) == [["city"], ["age", "job"]]
    view._click("cell:1:2")
    assert choice.rows == [("city",), ("age",)]
    view._click("drop:0")
    assert patterns_of(workspace) == [["age"]]
    view._click("drop:0")  # the last one stays
    assert patterns_of(workspace) == [["age"]]
    for key in ("cell:9:0", "cell:0:9", "cell:a:b", "nonsense", "drop:x"):
        view._click(key)
    assert patterns_of(workspace) == [["age"]]
    workspace.draft.undo()
    assert choice.rows == [("city",), ("age",)]
    assert view.grid.html.count('aria-pressed="true"') == 2


def test_a_list_begins_with_each_column_alone(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    choice.form = "list"
    assert patterns_of(workspace) == [[], ["age"], ["city"], ["job"]]
    assert len(choice.grid) == 4
    choice.form = "all"
    assert patterns_of(workspace) is None
    workspace.draft.undo()
    assert choice.form == "list"


def test_a_click_on_predicates_makes_a_list_of_them(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    choice.param.update(form="predicates", at_most=1)
    choice.toggle(0, "job")
    assert choice.form == "list"
    assert choice.rows[0] == ("job",)
    assert len(choice.rows) == 4
    assert patterns_of(workspace) == [["job"], ["city"], ["age"]]  # twice the same is said once


def test_weights_and_patterns_run(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    choice.weights = {"age": 3, "job": 1}
    assert workspace.draft.get(("steps", "anonymize", "options", "pattern-guided", "weights")) == {"age": 3}
    assert choice.grid["cost"].max() == 5
    choice.param.update(form="predicates", at_most=2, fallback=True)
    workspace.set_algorithms(["pattern-guided", "pattern-guided-optimal"])
    workspace.set_ks([3])
    assert workspace.problems == ()
    for run in workspace.draft.flow().runs:
        assert run.anonymize.options["weights"] == {"age": 3}
        assert run.anonymize.options["patterns"]["at-most"] == 2
    choice.weights = {"age": -1}
    assert "above 0" in choice.problem


def test_patterns_of_a_flow_are_read(workspace: Workspace) -> None:
    workspace.draft.set(
        ("steps", "anonymize", "options"), {METHODS[0]: {"patterns": ["010", ["age"], {"at-most": 0}]}}
    )
    choice = PatternChoice(workspace)
    assert choice.form == "list"
    assert set(choice.rows) == {(), ("city",), ("age",)}
    workspace.draft.set(("steps", "anonymize", "options"), {METHODS[0]: {"patterns": "junk"}})
    assert choice.form in ("all", "list")


def test_too_many_patterns_are_said() -> None:
    one = Workspace()
    frame = pd.DataFrame({f"q{a}": list("abab") * 5 for a in range(14)})
    path = one.folder / "given.csv"
    frame.to_csv(path, index=False)
    one.open_file("wide.csv", path)
    choice = PatternChoice(one)
    assert "too many to show" in choice.problem
    assert board(choice) == ""
    choice.param.update(form="predicates", at_most=4)
    assert choice.problem == ""
    choice.toggle(0, "q0")
    assert "too many to click" in choice.problem
    assert choice.form == "predicates"


def test_the_board_escapes_headers(tmp_path: object) -> None:
    one = Workspace()
    path = one.folder / "given.csv"
    path.write_text('"<img src=x>",b\n' + "".join(f"{'xy'[i % 2]},{i % 3}\n" for i in range(30)))
    one.open_file("x.csv", path)
    assert "<img" not in board(PatternChoice(one))


# ---------------------------------------------------------------------------------------- diversity


@pytest.mark.parametrize(
    ("criterion", "name", "large", "good", "largest"),
    [
        ("p-sensitivity", "p", 4, 3, "p is 3"),
        ("l-diversity", "l", 2.5, 1.5, "l is 1.6666"),
        ("entropy-l-diversity", "l", 3.0, 2.0, "l is 2.5"),
        ("recursive-l-diversity", "l", 9.0, 2.0, "l is"),
    ],
)
def test_infeasible_diversity_is_refused_with_the_largest_value(
    workspace: Workspace, criterion: str, name: str, large: float, good: float, largest: str
) -> None:
    choice = DiversityChoice(workspace)
    choice.criterion = criterion
    setattr(choice, name, large)
    assert largest in choice.problem
    assert any(largest in problem for problem in workspace.problems)
    setattr(choice, name, good)
    assert choice.problem == ""
    assert largest in choice.feasible
    assert workspace.problems == ()


def test_the_step_stands_where_the_loader_wants_it_and_goes_again(workspace: Workspace) -> None:
    choice = DiversityChoice(workspace)
    before = workspace.draft.document
    choice.param.update(criterion="t-closeness", t=0.3)
    assert [next(iter(step)) for step in workspace.draft.document["steps"]][:3] == [
        "anonymize", "diversify", "draw",
    ]  # fmt: skip
    assert workspace.draft.get(("steps", "diversify")) == {
        "criterion": "t-closeness", "column": "illness", "t": 0.3,
    }  # fmt: skip
    choice.column = "nobody"
    assert workspace.problems != ()
    workspace.draft.undo()
    workspace.draft.undo()
    assert workspace.draft.document == before
    assert choice.criterion == NONE
    choice.criterion = "l-diversity"
    choice.criterion = NONE
    assert workspace.draft.get(("steps", "diversify")) is None


def test_without_a_sensitive_column_diversity_is_a_problem(workspace: Workspace) -> None:
    workspace.set_column("illness", role="identifier")
    choice = DiversityChoice(workspace)
    assert choice.columns == []
    choice.criterion = "l-diversity"
    assert workspace.problems != ()


# ------------------------------------------------------------------------------------------- limits


def test_limits_are_typed_and_taken_away(workspace: Workspace) -> None:
    choice = LimitChoice(workspace)
    assert list(choice.rows["column"]) == ["age", "city", "job"]
    assert choice.choose("age", "weight", 2.5)
    assert choice.choose("age", "max-width", "3")
    assert choice.choose("city", "max-set", 2.0)
    assert workspace.draft.get(("table", "columns", "age")) == {
        "role": "quasi-identifier", "kind": "numeric", "weight": 2.5, "max-width": 3,
    }  # fmt: skip
    assert workspace.draft.get(("table", "columns", "city", "max-set")) == 2
    assert workspace.problems == ()
    assert choice.choose("age", "interval", 5)
    assert workspace.table.schema["age"].boundary == 5.0
    assert choice.choose("age", "interval", "")
    assert choice.choose("age", "weight", None)
    assert choice.choose("age", "max-width", float("nan"))
    assert workspace.draft.get(("table", "columns", "age")) == {"role": "quasi-identifier", "kind": "numeric"}
    workspace.draft.undo()
    assert choice.rows.set_index("column").loc["age", "max-width"] == 3


@pytest.mark.parametrize(
    ("column", "field", "value", "says"),
    [
        ("age", "weight", 0, "above 0"),
        ("age", "weight", "heavy", "is a number"),
        ("age", "interval", -1, "above 0"),
        ("age", "max-set", 3, "goes with kind categorical"),
        ("city", "max-width", 3, "goes with kind numeric"),
        ("city", "max-set", 0, "1 or more"),
        ("city", "weight", float("inf"), "finite"),
        ("illness", "weight", 2, "of quasi-identifiers"),
        ("age", "kind", 2, "of quasi-identifiers"),
    ],
)
def test_limits_that_are_none_change_nothing(
    workspace: Workspace, column: str, field: str, value: object, says: str
) -> None:
    choice = LimitChoice(workspace)
    before = workspace.draft.document
    assert not choice.choose(column, field, value)
    assert says in choice.said
    assert workspace.draft.document == before


# --------------------------------------------------------------------------------------- the screen


def test_what_cannot_work_is_said_on_the_page(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    screen.__panel__()
    assert "Ready to run" in screen.verdict.object
    screen.protection.k = 81
    assert "cannot run yet" in screen.verdict.object
    screen.protection.k = 4
    screen.protection.more = [5]
    screen._toggle("mondrian")
    assert "2 methods × 2 values of k: 4 runs" in screen.verdict.object
    screen.diversity.param.update(criterion="l-diversity", l=9.0)
    assert "largest feasible" in screen.verdict.object
    assert "cannot work" in screen.feasible.object
    screen._limited(SimpleNamespace(row=0, column="weight", value=3))
    assert workspace.draft.get(("table", "columns", "age", "weight")) == 3
    assert list(screen.table.value["weight"]) == [3, 1, 1]


def test_a_page_before_any_table() -> None:
    one = Workspace()
    screen = ProtectScreen(workspace=one)
    screen.__panel__()
    assert "No table is open" in screen.verdict.object
    assert "Open a table" in screen.risk.object
    screen.k.value = 20
    screen._toggle("mondrian")
    assert one.draft.document == {}


def test_what_was_chosen_runs(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    screen.protection.k = 3
    screen.diversity.param.update(criterion="p-sensitivity", p=2)
    screen.limits.choose("age", "weight", 2)
    assert workspace.problems == ()
    workspace.start()
    workspace.wait(120)
    (run,) = workspace.runs
    assert run.ok
    assert run.result.anonymization.facts["diversity"] == "p-sensitivity"
