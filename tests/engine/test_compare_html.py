"""The page of a comparison: from the shell, and in reports with several runs."""

from __future__ import annotations

import importlib
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms.registry import look_of
from anonflow.cli import main
from anonflow.drawing.frontier import risk_and_loss
from anonflow.engine.compare import compared
from anonflow.engine.execution import tasks
from anonflow.engine.report.report import comparison

CITIES = ["Reykjavik", "Ouagadougou", "Ljubljana", "Kathmandu", "Montevideo"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A file of 60 people, and its schema beside it."""
    frame = pd.DataFrame(
        {
            "age": [20 + at % 13 for at in range(60)],
            "city": [CITIES[at % 5] for at in range(60)],
            "illness": [["influenza", "sciatica", "migraine"][at % 3] for at in range(60)],
        }
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text(
        "columns:\n"
        "  age: {role: quasi-identifier, kind: numeric}\n"
        "  city: {role: quasi-identifier, kind: categorical}\n"
        "  illness: {role: sensitive}\n",
        encoding="utf-8",
    )
    return tmp_path


def shell(folder: Path, *more: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["compare", str(folder / "people.csv"), "--schema", str(folder / "schema.yaml"), *more])
    return int(left.value.code or 0)


class _Tags(HTMLParser):
    """Every tag that is opened is closed, and nothing is loaded from anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.marks = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        assert "src" not in attributes
        assert not (attributes.get("href") or "#").startswith(("http", "//"))
        self.marks += tag == "path" and "translate" in (attributes.get("transform") or "")
        if tag not in ("meta", "br", "link", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_has_every_run_and_no_value(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, csv = people / "runs.html", people / "runs.csv"
    status = shell(
        people, "--k", "2,4", "--algorithms", "greedy,mondrian", "--html", str(page), "--csv", str(csv)
    )
    out = capsys.readouterr().out
    assert status == 0
    text = page.read_text(encoding="utf-8")
    runs = pd.read_csv(csv)
    assert len(runs) == 4
    for row in runs.to_dict("records"):
        assert f"{row['algorithm']} k={row['k']}" in text
        assert f"{row['gcp']:.4f}" in text
    for value in (*CITIES, "influenza", "sciatica", "migraine"):
        assert value not in text + out
    for column in ("age", "city", "illness"):
        assert column in text
    tags = _Tags()
    tags.feed(text)
    assert tags.open == []
    # a mark for each run in either figure, and two in each legend
    assert tags.marks == 2 * (4 + 2)
    assert "Risk and utility" in text
    assert "Information loss against k" in text


def test_one_k_has_the_frontier_alone(people: Path) -> None:
    page = people / "runs.html"
    assert shell(people, "--k", "3", "--algorithms", "greedy,mondrian", "--html", str(page)) == 0
    text = page.read_text(encoding="utf-8")
    assert "Risk and utility" in text
    assert "Information loss against k" not in text


def test_a_method_that_promises_no_probability_is_named_beside_the_frontier(people: Path) -> None:
    page = people / "runs.html"
    assert (
        shell(people, "--k", "3", "--algorithms", "greedy,mondrian,k-concealment", "--html", str(page)) == 0
    )
    text = page.read_text(encoding="utf-8")
    assert "Not drawn: k-concealment k=3. What they guarantee is no probability." in text
    tags = _Tags()
    tags.feed(text)
    assert tags.marks == 2 + 2  # of the two others, and their legend


def test_a_page_that_cannot_be_written_is_refused_before_the_work(
    people: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from anonflow import engine

    def never(*args: object, **more: object) -> None:
        raise AssertionError("the work was begun")

    monkeypatch.setattr(engine, "compared", never)
    status = shell(people, "--html", str(people))
    output = capsys.readouterr()
    assert status == 2
    assert output.err.count("\n") == 1
    assert "is a folder" in output.err


def test_runs_without_a_result_are_in_the_table_and_in_no_figure(people: Path) -> None:
    table = af.Table.read(people / "people.csv", people / "schema.yaml")
    report = compared(table, ["greedy", "mondrian"], [3, 61])
    text = comparison(table, report)
    assert text.count("infeasible") == 2
    tags = _Tags()
    tags.feed(text)
    assert tags.marks == 2 + 2


LOOKS = {name: look_of(name) for name in ("greedy", "nh")}


def test_the_line_goes_through_the_best_alone() -> None:
    points = [("greedy", "a", 0.1, 0.4), ("nh", "b", 0.2, 0.1), ("nh", "<c>", 0.3, 0.3)]
    drawn = risk_and_loss(points, [0, 1], "risk", "GCP", LOOKS)
    line = drawn.split('stroke-dasharray="6 4"')[0].rsplit('<path d="', 1)[1]
    assert line.split('"')[0].count("H") == 2
    assert "&lt;c&gt;" in drawn
    assert "<c>" not in drawn
    assert "stroke-dasharray" not in risk_and_loss(points, [], "risk", "GCP", LOOKS)


def test_the_seconds_of_a_method_are_without_the_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("anonflow.engine.compare")
    compiled, calls, real = [0], [], module.run
    now, solve = [0.0], tasks.solve

    def first_compiles(*args: object, **more: object) -> object:
        calls.append(args[0].name)
        compiled[0] += len(calls) == 1
        return real(*args, **more)

    def solving(*args: object, **settings: object) -> object:
        now[0] += 60.25 if len(calls) == 1 else 0.25
        return solve(*args, **settings)

    monkeypatch.setattr(module, "compiled_here", lambda: compiled[0])
    monkeypatch.setattr(module, "run", first_compiles)
    monkeypatch.setattr(tasks, "solve", solving)
    monkeypatch.setattr(tasks, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    table = af.Table(af.datasets.census_like(60), af.datasets.schema("census_like"))
    rows = af.compare(table, ["mondrian"], k=[5, 6], workers=1)
    assert calls == ["comparison"] * 2
    assert rows["seconds"].tolist() == [0.25, 0.25]


def test_what_is_said_twice_is_compared_once(people: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell(people, "--k", "3,3", "--algorithms", "mondrian, mondrian") == 0
    assert capsys.readouterr().out.count("mondrian") == 1
