"""The page Protect without a browser: k and who is at risk, methods and options, diversity, limits."""

from __future__ import annotations

import html
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.algorithms.anonymize import anonymize
from anonflow.algorithms.budget import Choice
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.registry import promise_of
from anonflow.engine.execution import budgets
from anonflow.table import Table
from tests.naive.uniqueness import at_risk

pytest.importorskip("panel", reason="the dashboards are an extra")
import panel as pn

from anonflow.algorithms.diversity.target import PRICE
from anonflow.dashboards.components.markup import methods_list
from anonflow.dashboards.protect.column_limits import LimitTable
from anonflow.dashboards.protect.diversity import NONE, DiversityChoice
from anonflow.dashboards.protect.screen import KS, ProtectScreen
from anonflow.dashboards.protect.settings import Protection, share
from anonflow.dashboards.session import open_table
from anonflow.dashboards.session.draft_spec import NO_FLOW
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work import screen_work
from anonflow.table.identification import uniqueness
from tests.cases.drafts import put_at, value_at
from tests.cases.protect import PEOPLE, people, steps_back
from tests.dashboards.conftest import Hand


@pytest.fixture
def workspace() -> Workspace:
    return people()


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
    workspace.data.set_column("age", role="insensitive")
    assert choice.at_risk(5)[0] < all_three
    for name in ("city", "job"):
        workspace.data.set_column(name, role="insensitive")
    assert choice.at_risk(5) == (0, 0)
    assert "quasi-identifiers" in choice.sentence(5)


def test_k_is_one_step_and_is_undone(workspace: Workspace) -> None:
    choice = Protection(workspace)
    before = steps_back(workspace)
    first = choice.k
    choice.k = 4
    assert workspace.data.ks == [4]
    assert steps_back(workspace) == before + 1
    choice.more = [3, 8]
    assert workspace.data.ks == [3, 4, 8]
    choice.k = 5  # the other ks stay
    assert workspace.data.ks == [3, 5, 8]
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
    assert any("80" in problem for problem in workspace.data.problems)
    choice.k = 4
    assert workspace.data.problems == ()


def test_a_slider_change_counts_no_record_again(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes of a table are counted once, aside where they are many; each k after that is looked up."""
    item = Workspace()
    screen = ProtectScreen(workspace=item)
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"q{a}": rng.integers(0, 12, 90).astype(str) for a in range(6)})
    path = item.folder / "given.csv"
    frame.to_csv(path, index=False)
    monkeypatch.setattr(screen_work, "FEW", 50)
    counts: list[bool] = []
    count, code = uniqueness.class_labels, open_table.code

    def counted(*args: Any) -> Any:
        counts.append(hand.is_working)
        return count(*args)

    monkeypatch.setattr(uniqueness, "class_labels", counted)
    item.opener.open_file("many.csv", path)
    screen.k.value = 11
    hand.do_all()
    assert counts
    assert all(counts)
    counts.clear()
    monkeypatch.setattr(open_table, "code", lambda *args: counts.append(False) or code(*args))
    for k in (12, 13, 14, 15, 16):
        screen.k.value = k
        assert f"fewer than {k - 1} others" in screen.risk.object
        screen._set_k(k)  # and let go: the draft and what follows from it
        assert item.data.ks == [k]
    assert counts == hand.works == []
    item.close()


def test_shares_in_words() -> None:
    assert [share(0, 9), share(9, 9), share(1, 3), share(1, 5000), share(4999, 5000), share(0, 0)] == [
        "0%", "100%", "33.3%", "below 0.1%", "above 99.9%", "0%",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ methods


def test_methods_are_those_of_the_registry_with_guidance_and_promise() -> None:
    markup = methods_list(["greedy", "mondrian"])
    for name, method in REGISTRY.items():
        assert f'data-key="{name}"' in markup
        assert method.summary[1:] in html.unescape(markup)
        assert promise_of(method.guarantee)
    assert markup.count('aria-checked="true"') == 2
    assert "probability exactly 1/k" in markup
    assert "Every original could be matched" not in markup  # nobody chose k-concealment


def test_methods_are_toggled_and_the_last_one_stays(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    screen._toggle("mondrian")
    assert workspace.data.algorithms == ["greedy", "mondrian"]
    screen._toggle("greedy")
    assert workspace.data.algorithms == ["mondrian"]
    screen._toggle("mondrian")
    assert workspace.data.algorithms == ["mondrian"]
    workspace.draft.undo()
    assert workspace.data.algorithms == ["greedy", "mondrian"]
    assert screen.methods.html.count('aria-checked="true"') == 2


def test_every_option_of_every_method_is_asked_for_in_words() -> None:
    for name, method in REGISTRY.items():
        for option in method.options.values():
            assert option.sentence, (name, option.name)
            assert option.label, (name, option.name)
            assert option.problem(option.default) is None, (name, option.name)
            if isinstance(option.default, str) and option.in_form:
                assert option.default in option.choices, (name, option.name)


@pytest.mark.parametrize("method", [name for name in REGISTRY if REGISTRY[name].options])
def test_every_choice_of_an_option_is_one_that_the_method_takes(method: str) -> None:
    table = Table(
        PEOPLE.head(12),
        {name: {"role": "quasi-identifier", "kind": "suppression"} for name in ("city", "job")},
    )
    for option in REGISTRY[method].options.values():
        for word in option.choices:
            anonymize(table, method, 2, seed=1, **{option.name: word})


def test_options_go_for_their_method_alone(workspace: Workspace) -> None:
    choice = Protection(workspace)
    choice.algorithms = ["greedy", "mondrian", "k-concealment"]
    before = steps_back(workspace)
    choice.set_option("greedy", "reciprocal", True)
    choice.set_option("k-concealment", "randomized", False)
    assert steps_back(workspace) == before + 2
    assert workspace.data.problems == ()
    runs = {run.anonymize.algorithm: run.anonymize.options for run in workspace.draft.flow().runs}
    assert runs == {"greedy": {"reciprocal": True}, "mondrian": {}, "k-concealment": {"randomized": False}}
    results = {o.name: choice.value_of("greedy", o) for o in choice.asked_options()["greedy"]}
    assert results["reciprocal"] is True
    choice.set_option("greedy", "reciprocal", False)
    choice.set_option("k-concealment", "randomized", True)
    assert value_at(workspace.draft, ("steps", "anonymize", "options")) is None  # defaults are not written
    with pytest.raises(KeyError):
        choice.set_option("greedy", "colour", "red")


def test_an_option_of_a_loaded_flow_is_seen_and_overruled(workspace: Workspace) -> None:
    put_at(workspace.draft, ("steps", "anonymize", "reciprocal"), True)
    choice = Protection(workspace)
    option = REGISTRY["greedy"].options["reciprocal"]
    assert choice.value_of("greedy", option) is True
    choice.set_option("greedy", "reciprocal", False)
    assert choice.value_of("greedy", option) is False
    assert workspace.draft.flow().runs[0].anonymize.options["reciprocal"] is False


def test_levels_and_widths_are_typed(workspace: Workspace) -> None:
    """Mappings of columns, as a flow has them; what cannot be is said where all problems are."""
    for column in ("city", "job"):
        workspace.data.set_column(column, kind="suppression")
    workspace.draft.set_algorithms(["full-domain"])
    screen = ProtectScreen(workspace=workspace)
    screen.__panel__()
    levels, widths = (screen._fields["full-domain", name] for name in ("levels", "widths"))
    assert (levels.value, widths.value) == ("", "")
    levels.value, widths.value = "city: *, job: values", "age: [5, 20]"
    place = ("steps", "anonymize", "options")
    mine = {"levels": {"city": "*", "job": "values"}, "widths": {"age": [5, 20]}}
    assert value_at(workspace.draft, place) == {"full-domain": mine}
    assert workspace.data.problems == ()
    assert levels.value == 'city: "*", job: values'
    workspace.start()
    workspace.wait(300)
    (run,) = workspace.runs.finished
    levels_of_run = run.result.anonymization.facts["levels"]
    assert (levels_of_run["city"], levels_of_run["job"]) == ("*", "values")
    assert levels_of_run["age"] in ("values", "width 5", "width 20", "*")
    for text, words in (
        ("job: level 7", "has no level 'level 7'"),
        ("job", "no level"),
        ("job: [", "is a mapping of columns"),
        ("jib: values", "names 'jib'"),
    ):
        levels.value = text
        assert any(words in problem for problem in workspace.data.problems), (text, workspace.data.problems)
    levels.value = ""
    widths.value = "age: [5, 7]"
    assert any("widths" in problem or "multiple" in problem for problem in workspace.data.problems)
    widths.value = ""
    assert value_at(workspace.draft, place) is None


def test_sets_of_columns_are_typed(workspace: Workspace) -> None:
    """Lists of columns, as a flow has them; the run promises what they say, and the screens print it."""
    workspace.draft.set_algorithms(["local-suppression"])
    screen = ProtectScreen(workspace=workspace)
    screen.__panel__()
    sets, of, importance, generalize = (
        screen._fields["local-suppression", name] for name in ("sets", "of", "importance", "generalize")
    )
    assert (sets.value, of.value, importance.value, generalize.value) == ("", None, "", False)
    sets.value, importance.value, generalize.value = "[age, city], [job]", "city: 2", True
    assert value_at(workspace.draft, ("steps", "anonymize", "options")) == {
        "local-suppression": {
            "sets": [["age", "city"], ["job"]], "importance": {"city": 2}, "generalize": True,
        }
    }  # fmt: skip
    assert workspace.data.problems == ()
    workspace.start()
    workspace.wait(300)
    (run,) = workspace.runs.finished
    assert run.result.guarantee == "key-sets(sets=[age+city|job], hidden=any, rows=matches)"
    assert all(finding.holds for finding in run.result.findings)
    assert "every person is compatible with at least k published rows" in promise_of(run.result.guarantee)
    assert sets.value == "[age, city], [job]"
    for text, words in (
        ("[age, cty]", "'cty' in a set is no quasi-identifier"),
        ("[age", "sets is a list of lists of columns"),
        ("age, city", "sets is a list of lists of columns"),
    ):
        sets.value = text
        assert any(words in problem for problem in workspace.data.problems), (text, workspace.data.problems)
    sets.value, of.value = "", 4
    assert any("of is 4, and there are 3 quasi-identifiers" in problem for problem in workspace.data.problems)
    put_at(workspace.draft, ("steps", "diversify"), {"criterion": "l-diversity", "l": 2})
    of.value = 2
    assert any("cannot be made diverse" in problem for problem in workspace.data.problems), (
        workspace.data.problems
    )


def test_sets_of_columns_are_typed_for_methods_of_classes(workspace: Workspace) -> None:
    workspace.draft.set_algorithms(["k-member"])
    screen = ProtectScreen(workspace=workspace)
    screen.__panel__()
    of, importance = (screen._fields["k-member", name] for name in ("of", "importance"))
    importance.value = "city: 2"
    assert any("importance goes with sets or of" in problem for problem in workspace.data.problems)
    of.value = 2
    assert workspace.data.problems == ()
    workspace.start()
    workspace.wait(300)
    (run,) = workspace.runs.finished
    assert run.result.guarantee == "key-sets(of=2, hidden=any, rows=matches)"
    assert all(finding.holds for finding in run.result.findings)


def test_fields_of_options_follow_the_draft(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    field = screen._fields["greedy", "reciprocal"]
    field.value = True
    assert value_at(workspace.draft, ("steps", "anonymize", "options")) == {"greedy": {"reciprocal": True}}
    workspace.draft.undo()
    assert field.value is False
    screen._toggle("k-concealment")
    assert ("k-concealment", "q") in screen._fields


def test_partitions_loss_and_boundaries(workspace: Workspace) -> None:
    choice = Protection(workspace)
    choice.cut = "size"
    choice.size = 40
    assert value_at(workspace.draft, ("partition",)) == {"size": 40}
    choice.cut = "time"
    choice.seconds = 5.0
    assert value_at(workspace.draft, ("partition",)) == {"size": "auto", "budget": 5.0}
    assert workspace.data.problems == ()
    choice.cut = "whole"
    assert value_at(workspace.draft, ("partition",)) is None
    choice.loss = "entropy"
    choice.boundaries = False
    assert value_at(workspace.draft, ("steps", "anonymize"))["loss"] == "entropy"
    assert value_at(workspace.draft, ("steps", "anonymize"))["boundaries"] is False
    choice.cut, choice.size = "size", 5
    assert any("smaller than k" in problem for problem in workspace.data.problems)
    for _ in range(2):
        workspace.draft.undo()
    assert choice.cut == "whole"


def test_the_best_method_for_a_time(workspace: Workspace) -> None:
    choice = Protection(workspace)
    choice.algorithms = ["greedy", "mondrian"]
    before = workspace.draft.document
    choice.seconds = 2.0
    choice.cut = "auto"
    choice.guarantee = "k-anonymity"
    step = value_at(workspace.draft, ("steps", "anonymize"))
    assert step == {"algorithm": "auto", "k": 10, "guarantee": "k-anonymity", "budget": 2.0}
    assert workspace.data.algorithms == ["auto"]
    assert workspace.draft.flow().runs[0].name == "auto k=10"
    assert (choice.cut, choice.seconds, choice.algorithms) == ("auto", 2.0, [])
    workspace.draft.undo()
    workspace.draft.undo()
    assert workspace.draft.document == before
    assert choice.cut == "whole"
    choice.cut = "auto"
    choice.algorithms = ["nh"]
    assert value_at(workspace.draft, ("steps", "anonymize")) == {"algorithm": "nh", "k": 10}
    choice.cut = "auto"
    choice.cut = "size"
    assert value_at(workspace.draft, ("steps", "anonymize")) == {"algorithm": "two-phase", "k": 10}
    assert value_at(workspace.draft, ("partition",))["size"] == choice.size


def test_reading_never_writes(workspace: Workspace) -> None:
    before = workspace.draft.spec
    screen = ProtectScreen(workspace=workspace)
    screen.__panel__()
    assert workspace.draft.spec is before


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
    assert any(largest in problem for problem in workspace.data.problems)
    setattr(choice, name, good)
    assert choice.problem == ""
    assert largest in choice.feasible
    assert workspace.data.problems == ()


def test_numbers_that_say_nothing_are_not_taken(workspace: Workspace) -> None:
    choice = DiversityChoice(workspace)
    for name, least, most in (("p", 1, None), ("l", 1, None), ("c", 0, None), ("t", 0, 1), ("beta", 0, None),
                              ("delta", 0, None), ("alpha", 0, 1)):  # fmt: skip
        assert choice.param[name].bounds == (least, most)
    choice.criterion = "t-closeness"
    with pytest.raises(ValueError, match="at most 1"):  # every distance is below 1
        choice.t = 1.5


def test_the_step_stands_where_the_loader_wants_it_and_goes_again(workspace: Workspace) -> None:
    choice = DiversityChoice(workspace)
    before = workspace.draft.document
    choice.param.update(criterion="t-closeness", t=0.3)
    assert [next(iter(step)) for step in workspace.draft.document["steps"]][:3] == [
        "anonymize", "diversify", "draw",
    ]  # fmt: skip
    assert value_at(workspace.draft, ("steps", "diversify")) == {
        "criterion": "t-closeness", "column": "illness", "t": 0.3,
    }  # fmt: skip
    choice.column = "nobody"
    assert workspace.data.problems != ()
    workspace.draft.undo()
    workspace.draft.undo()
    assert workspace.draft.document == before
    assert choice.criterion == NONE
    choice.criterion = "l-diversity"
    choice.criterion = NONE
    assert value_at(workspace.draft, ("steps", "diversify")) is None


def test_without_a_sensitive_column_diversity_is_a_problem(workspace: Workspace) -> None:
    workspace.data.set_column("illness", role="identifier")
    choice = DiversityChoice(workspace)
    assert choice.columns == []
    choice.criterion = "l-diversity"
    assert workspace.data.problems != ()


# ------------------------------------------------------------------------------------------- limits


def test_limits_are_typed_and_taken_away(workspace: Workspace) -> None:
    choice = LimitTable(workspace)
    assert list(choice.rows["column"]) == ["age", "city", "job"]
    assert choice.choose("age", "weight", 2.5)
    assert choice.choose("age", "max-width", "3")
    assert choice.choose("city", "max-set", 2.0)
    assert value_at(workspace.draft, ("table", "columns", "age")) == {
        "role": "quasi-identifier", "kind": "numeric", "weight": 2.5, "max-width": 3,
    }  # fmt: skip
    assert value_at(workspace.draft, ("table", "columns", "city", "max-set")) == 2
    assert workspace.data.problems == ()
    assert choice.choose("age", "interval", 5)
    assert workspace.data.table.schema["age"].boundary == 5.0
    assert choice.choose("age", "interval", "")
    assert choice.choose("age", "weight", None)
    assert choice.choose("age", "max-width", float("nan"))
    assert value_at(workspace.draft, ("table", "columns", "age")) == {
        "role": "quasi-identifier",
        "kind": "numeric",
    }
    workspace.draft.undo()
    assert choice.rows.set_index("column").loc["age", "max-width"] == 3


NO_LIMITS: list[tuple[str, str, object, str]] = [
    ("age", "weight", 0, "above 0"),
    ("age", "weight", "heavy", "is a number"),
    ("age", "interval", -1, "above 0"),
    ("age", "max-set", 3, "goes with kind categorical"),
    ("city", "max-width", 3, "goes with kind numeric"),
    ("city", "interval", 3, "it is categorical"),
    ("city", "max-set", 0, "1 or more"),
    ("city", "weight", float("inf"), "finite"),
    ("illness", "weight", 2, "of quasi-identifiers"),
    ("age", "kind", 2, "of quasi-identifiers"),
]


def test_limits_that_are_none_change_nothing(workspace: Workspace) -> None:
    choice = LimitTable(workspace)
    before = workspace.draft.document
    for column, field, value, says in NO_LIMITS:
        assert not choice.choose(column, field, value), (column, field, value)
        assert says in choice.refusal, (column, field, value)
        assert workspace.draft.document == before


# --------------------------------------------------------------------------------------- the screen


def test_no_k_is_offered_that_is_above_the_number_of_records(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    n = len(workspace.data.frame)
    assert n < max(KS)
    assert screen.more.options == [k for k in KS if k <= n]
    screen.protection.more = [100]  # of a flow that was loaded
    assert screen.more.options[-1] == 100


def test_what_cannot_work_is_said_on_the_page(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    page = screen.__panel__()
    screen.unfold.clicks += 1
    tabs = page.select(pn.Tabs)[0]
    assert "Ready to run" in screen.verdict.object
    screen.protection.k = 81
    assert "cannot run yet" in screen.verdict.object
    screen.protection.k = 4
    screen.protection.more = [5]
    screen._toggle("mondrian")
    assert "2 methods × 2 values of k: 4 runs" in screen.verdict.object
    screen.diversity.param.update(criterion="l-diversity", l=9.0)
    assert "largest feasible" in screen.verdict.object
    tabs.active = 4
    assert "cannot work" in screen.diverse.feasible.object
    assert PRICE in screen.diverse.meaning.object
    screen.diversity.criterion = NONE
    assert PRICE not in screen.diverse.meaning.object
    tabs.active = 5
    screen.limit_table.edited(SimpleNamespace(row=0, column="weight", value=3))
    assert value_at(workspace.draft, ("table", "columns", "age", "weight")) == 3
    assert list(screen.limit_table.table.value["weight"]) == [3, 1, 1]


def test_a_page_before_any_table() -> None:
    item = Workspace()
    screen = ProtectScreen(workspace=item)
    screen.__panel__()
    assert "No table is open" in screen.verdict.object
    assert "Open a table" in screen.risk.object
    screen.k.value = 20
    screen._toggle("mondrian")
    assert item.draft.spec == NO_FLOW


def test_what_was_chosen_runs(workspace: Workspace) -> None:
    screen = ProtectScreen(workspace=workspace)
    screen.protection.k = 3
    screen.diversity.param.update(criterion="p-sensitivity", p=2)
    LimitTable(workspace).choose("age", "weight", 2)
    assert workspace.data.problems == ()
    workspace.start()
    workspace.wait(300)
    (run,) = workspace.runs.finished
    assert run.ok
    assert run.result.anonymization.facts["diversity"] == "p-sensitivity"


def test_the_flow_of_a_run_by_auto_names_what_was_picked(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Choice("k-member", 20, {"improve": "chains", "kicks": 2}, 5.0, 1.0, ((32, 0, 0.01),))
    monkeypatch.setattr(budgets, "choose_method", lambda *a, **b: result)
    choice = Protection(workspace)
    choice.k = 3
    choice.guarantee = "k-anonymity"
    choice.cut = "auto"
    workspace.start()
    workspace.wait(300)
    (run,) = workspace.runs.finished
    assert run.ok
    assert run.result.algorithm == "k-member"
    document = run.spec.document
    assert document["steps"][0]["anonymize"] == {
        "algorithm": "k-member",
        "k": 3,
        "improve": "chains",
        "kicks": 2,
    }
    assert document["partition"] == {"size": 20}
