"""The settings that errors name: in the words of flow files by default, and in those of the screens in the dashboards."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
import anonflow as af
from anonflow import engine
from anonflow.dashboards import Workspace
from anonflow.dashboards.data.column_form import ColumnChoice, reasons_of
from anonflow.dashboards.session.screen_words import WORDS, on_screen
from anonflow.errors import AnonflowError, setting
from anonflow.table import Schema, Table
from anonflow.table.infer import advise
from tests import ROOT
from tests.cases.drafts import put_at

AGE = {"role": "quasi-identifier", "kind": "numeric"}
AGES = pd.DataFrame({"age": [30.0, None, 31.0, 40.0] * 5})
CODES = {**AGE, "codes": ["N"]}

IN_FILES_ALONE = re.compile(
    r"\bmissing: |'missing'|in the source|of the source|and quotes|hierarchy:|kind: |under `?prepare|partition_size|exact=|time_limit"
    r"|^diversify|in the schema|in Python|in a flow|af\.|anonflow [a-z]+ --"
)
"""Phrases that send a person to a flow file, or to Python."""


@cache
def modules() -> list[list[ast.AST]]:
    """The nodes of each module of the package that has the word setting."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "anonflow").rglob("*.py"))]
    return [list(ast.walk(ast.parse(text))) for text in texts if "setting" in text]


def settings() -> dict[str, set[int]]:
    """The settings that a sentence of the package names -> how many values their words have."""
    names: dict[str, set[int]] = {}
    for nodes in modules():
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setting":
                name = node.args[0]
                if isinstance(name, ast.Constant):
                    names.setdefault(name.value, set()).add(len(node.args) - 2)
    return names


def test_every_setting_that_an_error_names_has_words_on_the_screens() -> None:
    named = settings()
    assert len(named) > 10
    assert named.keys() == WORDS.keys() - {"diversify"}  # the subject of an error, which is a setting, too
    for name, counts in named.items():
        places = {field for _, field, _, _ in Formatter().parse(WORDS[name]) if field is not None}
        assert counts == {len(places)}, name


def test_no_setting_is_put_into_an_f_string_which_would_keep_its_default_words_alone() -> None:
    lost, imported = [], 0
    for nodes in modules():
        settings_of_module = {
            alias.name
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if node.module == "anonflow.table.named_settings" or alias.name == "setting"
        }
        imported += len(settings_of_module)
        inside = (node for text in nodes if isinstance(text, ast.JoinedStr) for node in ast.walk(text))
        lost += [
            f"line {node.lineno}: {node.id}"
            for node in inside
            if isinstance(node, ast.Name) and node.id in settings_of_module
        ]
    assert imported > 10
    assert lost == []


def test_no_words_of_the_screens_are_those_of_a_file() -> None:
    assert [words for words in WORDS.values() if IN_FILES_ALONE.search(words)] == []


def columns(**entries: Any) -> Callable[[Path], Any]:
    return lambda folder: Schema({"age": {**AGE, **entries}})


def of_file(text: bytes) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        (folder / "x.csv").write_bytes(text)
        return af.Table.read(folder / "x.csv", Schema({"age": AGE}), encoding="utf-8")

    return read


def flow_of(kind: str, partition: str, anonymize: str) -> Callable[[Path], Any]:
    def load(folder: Path) -> Any:
        (folder / "x.csv").write_text("age\n1\n")
        (folder / "x.yaml").write_text(
            "flow: small\nversion: 1\ntable:\n  source: {csv: x.csv}\n  columns:\n"
            f"    age: {{role: quasi-identifier, kind: {kind}}}\n"
            f"partition: {partition}\nsteps:\n  - anonymize: {anonymize}\n"
        )
        return engine.load_flow(folder / "x.yaml")

    return load


def anonymized(
    method: str, frame: pd.DataFrame, entries: dict[str, Any], k: int = 2, **options: Any
) -> Callable[[Path], Any]:
    return lambda folder: af.anonymize(frame, method, k=k, schema=Schema(entries), **options)


def diversified(folder: Path) -> Any:
    anon = af.anonymize(af.datasets.zip_example(), "mondrian", k=2, schema=af.datasets.schema("zip_example"))
    return af.diversify(anon, "l-diversity", l=2, way="sideways")


NUMBERS = pd.DataFrame({"age": np.arange(1_200)})
WITH_CODES = pd.DataFrame({"age": ["30", "31", "N", "33"]})

ERRORS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "missing values": (
        lambda folder: Table(AGES, Schema({"age": AGE})),
        "column 'age': 5 missing values; say missing: suppress, drop or value in the schema",
        "column 'age': 5 missing values; choose suppress, drop or value under Without a value, on the screen Data",
    ),
    "no record left": (
        lambda folder: Table(AGES[1:2], Schema({"age": {**AGE, "missing": "drop"}})),
        "every record has a missing value that the schema drops; say missing: value or suppress",
        "every record has a missing value that the schema drops; choose value or suppress under Without a value, on the screen Data",
    ),
    "codes and a rule": (
        columns(codes=["N"], missing="suppress"),
        "column 'age': missing: suppress does not go with codes; say missing: value, drop or refuse",
        "column 'age': suppress under Without a value does not go with codes; choose value, drop or refuse under Without a value, "
        "on the screen Data",
    ),
    "codes and a boundary": (
        columns(codes=["N"], boundary={"width": 5}),
        "column 'age': a boundary or max-width does not go with codes or missing: value; leave one of them out",
        "column 'age': a boundary or max-width does not go with codes or value under Without a value; leave one of them out",
    ),
    "a blank code": (
        columns(codes=[" "]),
        "column 'age': a code is a text without outer spaces, and not empty; for blank cells say missing: value",
        "column 'age': a code is a text without outer spaces, and not empty; for blank cells choose value under Without a value, "
        "on the screen Data",
    ),
    "a number as a code": (
        columns(codes=["5"]),
        "column 'age': a code is a number, which a range would cover; recode it to a text first, with a step under prepare",
        "column 'age': a code is a number, which a range would cover; recode it to a text first, with a step on the screen Prepare",
    ),
    "no numbers": (
        lambda folder: Table(pd.DataFrame({"age": ["?", "3"]}), Schema({"age": AGE})),
        "column 'age': 1 value is no number; use kind categorical, or name them under 'missing' of the source",
        "column 'age': 1 value is no number; use kind categorical, or name them under Texts that stand for a missing value, on "
        "the screen Data",
    ),
    "another encoding": (
        of_file("age\nä\n".encode("latin-1")),
        "{folder}/x.csv: is not utf-8; name its encoding in the source",
        "{folder}/x.csv: is not utf-8; type its encoding under How the CSV file is written, such as latin-1, and read the file again",
    ),
    "ragged rows": (
        of_file(b"age,sex\n1,2\n1\n"),
        "{folder}/x.csv: 1 row has more or fewer than 2 cells (line 3); check the delimiter and quotes",
        "{folder}/x.csv: 1 row has more or fewer than 2 cells (line 3); check the delimiter, under How the CSV file is written",
    ),
    "no levels": (
        anonymized("full-domain", pd.DataFrame({"job": list("aabb")}), {"job": {**AGE, "kind": "categorical"}}),
        "full-domain: no hierarchy for 'job'; give each one under `hierarchy:`, or declare `kind: suppression`, which publishes a "
        "value or hides it",
        "full-domain: no hierarchy for 'job'; give each one on the screen Protect, under Hierarchies, or choose the kind suppression "
        "on the screen Data, which publishes a value or hides it",
    ),
    "too many records": (
        anonymized("optimal", NUMBERS, {"age": AGE}),
        "optimal: 1200 records are too many at once; use a partition_size of 1000 at most (14 to 60 for a proof), or the method "
        "two-phase",
        "optimal: 1200 records are too many at once; use partitions of 1000 records at most (14 to 60 for a proof), or the method "
        "two-phase",
    ),
    "too many choices": (
        anonymized("k-concealment", NUMBERS, {"age": AGE}, k=4, exact=True),
        "exact: 1200 records have too many choices of 3 others; use smaller partitions, or exact=False",
        "exact: 1200 records have too many choices of 3 others; use smaller partitions, or do not ask for the best start of all",
    ),
    "no time": (
        anonymized("k-concealment", NUMBERS[:40], {"age": AGE}, k=3, exact=True, time_limit=0.0),
        "exact: 0 of 40 records were done in 0 seconds; raise time_limit, use smaller partitions, or exact=False",
        "exact: 0 of 40 records were done in 0 seconds; raise its time limit, use smaller partitions, or do not ask for the best "
        "start of all",
    ),
    "partitions below k": (
        flow_of("numeric", "{size: 20}", "{algorithm: mondrian, k: 30}"),
        "{folder}/x.yaml:7:19: partitions of 20 are smaller than k = 30; use at least 30",
        "{folder}/x.yaml:7:19: partitions of 20 records are smaller than k = 30; choose partitions of at least 30 records, or the whole table",
    ),
    "a flow without levels": (
        flow_of("categorical", "{size: 20}", "{algorithm: full-domain, k: 3}"),
        "{folder}/x.yaml:6:35: full-domain: no hierarchy for 'age'; give it one under `hierarchy:`, or declare `kind: suppression`, "
        "which publishes a value or hides it",
        "{folder}/x.yaml:6:35: full-domain: no hierarchy for 'age'; give it one on the screen Protect, under Hierarchies, or choose "
        "the kind suppression on the screen Data, which publishes a value or hides it",
    ),
    "a subject": (
        diversified,
        "diversify: way is classes or blind",
        "diversity: way is classes or blind",
    ),
}  # fmt: skip
"""An error that names a setting -> what raises it, its sentence as it always was, and the one on the screens."""


def test_each_door_has_its_own_words(tmp_path: Path) -> None:
    for case, (work, text, shown) in ERRORS.items():
        folder = tmp_path / case
        folder.mkdir()
        with pytest.raises(AnonflowError) as caught:
            work(folder)
        for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):  # as it comes from a worker
            assert {str(error), error.message, *error.problems} == {text.format(folder=folder)}
            assert [on_screen(problem) for problem in error.problems] == [on_screen(error.message)]
            assert on_screen(error.message) == shown.format(folder=folder)
            assert not IN_FILES_ALONE.search(on_screen(error.message))


def test_each_of_several_problems_keeps_its_settings() -> None:
    frame = AGES.assign(size=AGES["age"])
    item = Workspace()
    item.opener.open_frame(frame, {"age": AGE, "size": AGE})
    shown = "5 missing values; choose suppress, drop or value under Without a value, on the screen Data"
    assert item.data.problems == (f"column 'age': {shown}", f"column 'size': {shown}")
    item.close()
    with pytest.raises(AnonflowError) as caught:
        Table(frame, Schema({"age": AGE, "size": AGE}))
    in_file = pickle.loads(pickle.dumps(caught.value.in_file("uploads/17.csv"))).renamed(
        "uploads/17.csv", "people.csv"
    )
    assert in_file.problems[1] == (
        "people.csv: column 'size': 5 missing values; say missing: suppress, drop or value in the schema"
    )
    assert on_screen(in_file.problems[1]) == f"people.csv: column 'size': {shown}"


def test_a_run_that_fails_says_why_in_the_words_of_the_screens() -> None:
    item = Workspace()
    item.opener.open_frame(NUMBERS, {"age": AGE})
    put_at(item.draft, ("partition",), None)
    item.draft.set_algorithms(["optimal"])
    put_at(item.draft, ("steps", "anonymize", "options"), {"optimal": {"time_limit": 0.0}})
    item.start()
    item.wait(300)
    assert [run.result.problem for run in item.runs.finished] == [ERRORS["too many records"][2]]
    item.close()


def test_the_form_of_columns_refuses_in_the_words_of_the_screens() -> None:
    item = Workspace()
    item.opener.open_frame(WITH_CODES, {"age": {**CODES, "missing": "drop"}})
    form = ColumnChoice(item)
    assert not form.choose("age", "codes", "5")
    assert form.refusal == ERRORS["a number as a code"][2]
    item.close()


def test_reasons_are_shown_in_the_words_of_the_screens() -> None:
    for codes in ([-999], [-8, -9]):
        (advice,) = advise(pd.DataFrame({"age": [*range(20, 60), *codes]}))
        assert "name them under 'missing' of the source" in "; ".join(advice.reasons)
        shown = reasons_of(advice, str(advice.entry["role"]))
        assert "name them under Texts that stand for a missing value" in shown, codes
        assert not IN_FILES_ALONE.search(shown)
    # of another file than a CSV file no text is read as missing, whatever is typed there
    item = Workspace()
    item.opener.open_frame(pd.DataFrame({"mood": ["None", "Mild", "Severe"] * 8}), None)
    (why,) = ColumnChoice(item).rows["why"]
    assert "add a step recode" in why
    assert "Texts that stand" not in why
    item.draft.put(
        item.draft.spec.with_table(prepare=({"recode": {"column": "mood", "values": {"None": None}}},))
    )
    assert item.data.table.frame["mood"].isna().sum() == 8
    item.close()


def test_a_control_character_beside_a_setting_is_escaped() -> None:
    error = AnonflowError("column \x1b: " + setting("missing", "missing: value", "value"))
    assert error.message == "column \\x1b: missing: value"
    assert on_screen(error.message) == "column \\x1b: value under Without a value"
