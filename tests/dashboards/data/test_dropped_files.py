"""Many files dropped together: a table, its hierarchies and its flow, whatever their order."""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.dashboards.data.screen import OWN, RULES, DataScreen
from anonflow.dashboards.hierarchies.editor import HierarchyBuilder
from anonflow.dashboards.hierarchies.form import HierarchyChoice
from anonflow.dashboards.session.files import waiting_files
from anonflow.dashboards.session.files.hierarchy_files import is_hierarchy_name, matched_column
from anonflow.dashboards.work.user_limits import local_limits
from anonflow.engine.flows.spec import SourceSpec
from anonflow.hierarchy import Hierarchy
from anonflow.table.schema import MISSING_RULES
from tests.cases.drafts import value_at
from tests.dashboards.data.uploading import send

PEOPLE = "age,town,home-town,income\n" + "".join(
    f"{20 + i % 4},{('Volos', 'Patras')[i % 2]},{('Volos', 'Patras')[i % 3 == 0]},{('low', 'high')[i % 2]}\n"
    for i in range(40)
)
AGE = "20;20-21;*\n21;20-21;*\n22;22-23;*\n23;22-23;*\n"
TOWN = "Volos,*\nPatras,*\n"
FLOW = """flow: dropped
version: 1
table:
  source: {csv: data/people.csv}
  columns:
    age: {role: quasi-identifier, kind: hierarchy, hierarchy: hierarchies/age.csv}
    income: {role: sensitive}
steps:
  - anonymize: {algorithm: mondrian, k: 3}
  - draw: {}
  - verify: [covers, guarantee]
"""
FILES = {"people.csv": PEOPLE, "people_hierarchy_age.csv": AGE, "town.csv": TOWN}


@pytest.fixture(autouse=True)
def dropped_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of one drop, however long the machine takes from one to the next."""
    monkeypatch.setattr(waiting_files, "TOGETHER", 3600.0)


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    item = Workspace()
    yield item
    item.close()


def drop(workspace: Workspace, files: dict[str, str]) -> DataScreen:
    screen = DataScreen(workspace=workspace)
    screen.way.value = OWN
    for name, text in files.items():
        send(screen.dropper, name, text.encode(), size=100_000)
        screen.reading.wait(300)
    return screen


def test_files_wait_for_their_table(tmp_path: Path) -> None:
    now = [5.0]
    waiting = waiting_files.WaitingFiles(tmp_path / "private", lambda: now[0])
    (tmp_path / "private").mkdir()
    assert not waiting.arrive()
    places = {}
    for name, use in (("../a b.yaml", "flow"), ("age.csv", "perhaps a hierarchy")):
        (tmp_path / "upload").write_text(name)
        places[name] = waiting.put(name, tmp_path / "upload", use, copied=use != "flow")
        assert (tmp_path / "upload").exists() == (use != "flow")
        assert places[name].parent == tmp_path / "private"
        assert places[name].read_text() == name
    assert waiting.files() == places
    assert waiting.files("flow") == {"../a b.yaml": places["../a b.yaml"]}
    assert waiting.files("hierarchy") == {}
    waiting.use_as(places["age.csv"], "hierarchy")
    assert waiting.files("hierarchy") == {"age.csv": places["age.csv"]}
    now[0] += waiting_files.TOGETHER - 1
    assert waiting.arrive()
    now[0] += 2
    assert waiting.arrive(), "it came shortly after the one before"
    assert waiting.is_old(places["age.csv"])
    waiting.wait_anew()
    assert not waiting.is_old(places["age.csv"])
    now[0] += 2 * waiting_files.TOGETHER
    assert not waiting.arrive()
    for place in places.values():
        waiting.forget(place)
        waiting.forget(place)  # once more is no error
        assert not place.exists()
    assert waiting.files() == {}


@pytest.mark.parametrize("first", ["people.csv", "income.csv"])
def test_a_codebook_finds_its_column_by_its_name(
    workspace: Workspace, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PEOPLE.replace("low", "1").replace("high", "9")
    files = {"people.csv": table, "income.csv": "value,label\n1,below 2000\n9,refused\n"}
    screen = drop(workspace, {name: files[name] for name in sorted(files, key=lambda name: name != first)})
    assert workspace.data.table_name == "people.csv"
    labels = {"1": "below 2000", "9": "refused"}
    assert value_at(workspace.draft, ("table", "prepare")) == [
        {"recode": {"column": "income", "values": labels}}
    ]
    assert set(workspace.data.table.frame["income"]) == set(labels.values())
    assert "Labels stand in place of codes: income" in screen.dropped.object
    assert not workspace.has_work

    # one that comes later is no table, and one that cannot be read changes nothing
    monkeypatch.setattr(waiting_files, "TOGETHER", 0.0)
    send(screen.dropper, "codebook-age.csv", b"value,label\n20,twenty\n20,twenty\n", size=100_000)
    assert workspace.data.table_name == "people.csv"
    assert "codebook-age.csv" in screen.dropped.object
    assert "line 3" in screen.dropped.object
    assert len(workspace.draft.spec.table.prepare) == 1


@pytest.mark.parametrize(
    "names", [tuple(FILES), tuple(reversed(FILES)), ("people_hierarchy_age.csv", "town.csv", "people.csv")]
)
def test_table_and_hierarchies_find_each_other_in_any_order(
    workspace: Workspace, names: tuple[str, ...]
) -> None:
    screen = drop(workspace, {name: FILES[name] for name in names})
    assert workspace.data.table_name == "people.csv"
    assert workspace.data.problems == ()
    columns = value_at(workspace.draft, ("table", "columns"))
    assert columns["age"] == {
        "role": "quasi-identifier", "kind": "hierarchy", "hierarchy": "people_hierarchy_age.csv"
    }  # fmt: skip
    assert columns["town"]["hierarchy"] == {"csv": "town.csv", "delimiter": ","}
    assert "hierarchy" not in columns["home-town"], "the file is named for another column"
    assert "attached" in screen.dropped.object
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    assert workspace.runs.finished[0].ok


@pytest.mark.parametrize(
    "names", list(itertools.permutations(["people.csv", "age-hierarchy.csv", "flow.yaml"]))
)
def test_a_flow_comes_with_its_table(workspace: Workspace, names: tuple[str, ...]) -> None:
    files = {"people.csv": PEOPLE, "age-hierarchy.csv": AGE,
             "flow.yaml": FLOW.replace("hierarchies/age.csv", "hierarchies/age-hierarchy.csv")}  # fmt: skip
    screen = drop(workspace, {name: files[name] for name in names})
    assert not screen.wrong.visible or "age-hierarchy.csv" in screen.wrong.object
    assert workspace.data.table_name == "people.csv"
    assert value_at(workspace.draft, ("flow",)) == "dropped"
    assert workspace.data.problems == ()
    assert workspace.data.table is not None
    assert workspace.data.table.domains[0].kind == "hierarchy"


def test_files_that_fit_nothing_are_told(workspace: Workspace) -> None:
    screen = drop(
        workspace,
        {
            "people.csv": PEOPLE,
            "hierarchy_shoe.csv": AGE,
            "hierarchy_income.csv": TOWN,
            "hierarchy_town.csv": "Volos;*\n",
        },
    )
    text = screen.dropped.object
    assert "hierarchy_shoe.csv: no column has its name" in text
    assert "hierarchy_income.csv: column &#39;income&#39;" in text, "its values are no leaves"
    assert "hierarchy_town.csv: " in text
    assert "attached" not in text
    assert workspace.data.problems == ()
    assert not list(workspace.folder.glob("*shoe*"))


def test_names_of_hierarchy_files() -> None:
    columns = ["age", "country", "native-country", "sex"]
    assert matched_column("adult_hierarchy_native-country.csv", columns) == "native-country"
    assert matched_column("country.csv", columns) == "country"
    assert matched_column("age-hierarchy.csv", columns) == "age"
    assert matched_column("Age.CSV", columns) == "age"
    assert matched_column("essex.csv", columns) is None
    assert is_hierarchy_name("hierarchies_age.csv")
    assert not is_hierarchy_name("age.csv")


def test_several_columns_are_given_a_role_and_a_kind_in_one_edit(workspace: Workspace) -> None:
    screen = drop(workspace, {"people.csv": PEOPLE})
    steps = len(workspace.draft.past)
    names = list(screen.choice.rows["column"])
    screen.columns.selection = [names.index("town"), names.index("home-town"), names.index("income")]
    screen.many_roles.value = "insensitive"
    roles = {name: entry["role"] for name, entry in value_at(workspace.draft, ("table", "columns")).items()}
    assert [roles[name] for name in ("town", "home-town", "income")] == ["insensitive"] * 3
    assert len(workspace.draft.past) == steps + 1
    assert screen.columns.selection == []
    assert screen.many_roles.value == ""
    both = [names.index("town"), names.index("home-town")]
    screen.columns.selection = both
    screen.many_answers.value = "acquaintances"
    screen.columns.selection = both
    screen.many_kinds.value = "suppression"
    columns = value_at(workspace.draft, ("table", "columns"))
    assert {columns[name]["kind"] for name in ("town", "home-town")} == {"suppression"}
    assert len(workspace.draft.past) == steps + 3
    screen.many_roles.value = "sensitive"
    assert "tick" in screen.choice.refusal
    assert len(workspace.draft.past) == steps + 3


def test_what_is_done_without_a_value_is_explained(workspace: Workspace) -> None:
    assert set(RULES) == {rule for rules in MISSING_RULES.values() for rule in rules}
    screen = drop(workspace, {"people.csv": PEOPLE})
    assert not screen._blanks_card.visible
    drop(workspace, {"blank.csv": PEOPLE.replace("20,", ",")})
    screen = DataScreen(workspace=workspace)
    assert screen._blanks_card.visible
    assert all(words in screen.rules.object.replace("&#39;", "'") for words in RULES.values())


def test_a_workbook_is_read_where_its_reader_is(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks are an extra")
    book = openpyxl.Workbook()
    for row in [line.split(",") for line in PEOPLE.splitlines()]:
        book.active.append([int(cell) if cell.isdecimal() else cell for cell in row])
    book.save(tmp_path / "people.xlsx")
    data = (tmp_path / "people.xlsx").read_bytes()
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "people.xlsx", data, size=100_000)
    screen.reading.wait(300)
    assert not screen.wrong.visible, screen.wrong.object
    assert workspace.data.source == SourceSpec(excel="people.xlsx")
    assert workspace.data.table_name == "people.xlsx"
    assert len(workspace.data.frame) == 40
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    assert workspace.publish(workspace.runs.finished[0].id).ok
    kept = workspace.save_project(with_table=True)
    (tmp_path / "p.zip").write_bytes(kept)
    assert any("people.xlsx" in name for name in zipfile.ZipFile(tmp_path / "p.zip").namelist())
    send(screen.dropper, "people.csv", data, size=100_000)
    screen.replace.clicks += 1  # the run is given up
    screen.reading.wait(300)
    assert "let its name end in .xlsx" in screen.wrong.object
    assert "people.xlsx</b> is still open" in screen.wrong.object
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    send(screen.dropper, "other.xlsx", data, size=100_000)
    screen.replace.clicks += 1
    screen.reading.wait(300)
    assert "save its sheet as CSV" in screen.wrong.object


def test_a_sheet_of_a_workbook_is_named_before_the_file_is_read_or_after(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A cover page came first, and no screen took the name of another sheet."""
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks are an extra")
    book = openpyxl.Workbook()
    book.active.title = "Cover"
    book.active.append([None, "Survey of 2024"])
    for title in ("Adults", "Children"):
        sheet = book.create_sheet(title)
        for row in [line.split(",") for line in PEOPLE.splitlines()]:
            sheet.append([int(cell) if cell.isdecimal() else f"{cell}" for cell in row])
    book["Children"].delete_rows(2, 10)
    book.save(tmp_path / "people.xlsx")
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "people.xlsx", (tmp_path / "people.xlsx").read_bytes(), size=100_000)
    screen.reading.wait(300)
    assert "the workbook has 3 sheets" in screen.wrong.object
    assert "type its name under How the CSV file is written, and how others are read" in screen.wrong.object
    for name, records in (("Adults", 40), ("Children", 30)):
        assert screen.again.visible
        screen.sheet.value = name
        screen.again.clicks += 1
        screen.reading.wait(300)
        assert not screen.wrong.visible, screen.wrong.object
        assert len(workspace.data.frame) == records
        assert workspace.data.source == SourceSpec(excel="people.xlsx", sheet=name)
        assert f"those of the sheet {name}; if the table is in another one" in workspace.starts.status
    book["Cover"]["A1"], book["Cover"]["A2"] = "Made by", "the survey's team"
    book.save(tmp_path / "other.xlsx")
    assert screen.sheet.value == "", "it is of one file alone"
    send(screen.dropper, "other.xlsx", (tmp_path / "other.xlsx").read_bytes(), size=100_000)
    screen.reading.wait(300)
    assert len(workspace.data.frame) == 1, "the cover page is a table by its form"
    assert (
        "those of the sheet Cover; if the table is in another one, type its name" in workspace.starts.status
    )


def test_rows_above_the_header_of_a_sheet_are_counted_on_the_screen(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A workbook with a title above its table had to be changed by hand."""
    book = pytest.importorskip("openpyxl", reason="workbooks are an extra").Workbook()
    book.active.append(["Survey of 2024"])
    for row in [line.split(",") for line in PEOPLE.splitlines()]:
        book.active.append([int(cell) if cell.isdecimal() else f"{cell}" for cell in row])
    book.save(tmp_path / "people.xlsx")
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "people.xlsx", (tmp_path / "people.xlsx").read_bytes(), size=100_000)
    screen.reading.wait(300)
    assert "type 1 as Lines above the header" in screen.wrong.object
    screen.skip.value = 1
    screen.again.clicks += 1
    screen.reading.wait(300)
    assert not screen.wrong.visible, screen.wrong.object
    assert len(workspace.data.frame) == 40
    assert workspace.data.source == SourceSpec(excel="people.xlsx", skip=1)
    # a project has it, and its table is read again so
    (tmp_path / "p.zip").write_bytes(workspace.save_project(with_table=True))
    workspace.opener.read_project_file(tmp_path / "p.zip")()
    assert len(workspace.data.frame) == 40


def test_lines_above_a_header_are_counted_on_the_screen(workspace: Workspace) -> None:
    """Who could not change the file could not open it."""
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "people.csv", f"Survey of 2024\n\n{PEOPLE}".encode(), size=100_000)
    screen.reading.wait(300)
    assert "type 2 as Lines above the header under How the CSV file is written" in screen.wrong.object
    for again in range(2):  # what was said of the file holds when it is read in another encoding
        screen.skip.value = 0 if again else 2
        screen.encoding.value = "utf-8"
        screen.again.clicks += 1
        screen.reading.wait(300)
        assert not screen.wrong.visible, screen.wrong.object
        assert (len(workspace.data.frame), workspace.data.source.skip) == (40, 2)
    send(screen.dropper, "others.csv", PEOPLE.encode(), size=100_000)
    screen.reading.wait(300)
    assert (workspace.data.source.csv, workspace.data.source.skip) == ("others.csv", 0)


def stats_file(path: Path) -> bytes:
    """A file of SPSS with labels of values, and a code that it declares to be missing."""
    stats = pytest.importorskip("pyreadstat", reason="files of SPSS are an extra")
    frame = pd.DataFrame({"sex": [1.0, 2.0] * 20, "age": [20.0, 31.0, 42.0, 99.0] * 10})
    labels = {"sex": {1: "male", 2: "female"}, "age": {99: "refused"}}
    stats.write_sav(frame, path, variable_value_labels=labels, missing_ranges={"age": [99]})
    return path.read_bytes()


def test_a_file_of_spss_opens_on_ones_own_machine(tmp_path: Path) -> None:
    """Its users were told to rename or convert it."""
    data, workspace = stats_file(tmp_path / "people.sav"), Workspace(limits=local_limits())
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "people.sav", data, size=100_000)
    screen.reading.wait(300)
    assert not screen.wrong.visible, screen.wrong.object
    frame = workspace.data.frame
    assert set(frame["sex"]) == {"male", "female"}
    assert frame["age"].isna().sum() == 10
    screen.codes.value = True
    screen.again.clicks += 1
    screen.reading.wait(300)
    assert workspace.data.source == SourceSpec(stats="people.sav", codes="values")
    assert workspace.data.frame["age"].max() == 99
    (tmp_path / "p.zip").write_bytes(workspace.save_project(with_table=True))
    other = Workspace(limits=local_limits())
    other.opener.read_project_file(tmp_path / "p.zip")()
    assert other.data.frame["age"].max() == 99, "a project reads it as it was read"
    for space in (workspace, other):
        space.close()


def test_a_shared_server_reads_no_file_of_spss(workspace: Workspace, tmp_path: Path) -> None:
    """Its reader is C: what a stranger damages may end the process, with the sessions of all users."""
    screen = DataScreen(workspace=workspace)
    assert not screen.codes.visible
    send(screen.dropper, "people.sav", stats_file(tmp_path / "people.sav"), size=100_000)
    screen.reading.wait(300)
    assert "are not read on this server" in screen.wrong.object
    assert "SPSS" not in screen.dropper.label
    assert workspace.data.frame is None


def test_utf_16_is_recognized(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "people.csv", PEOPLE.encode("utf-16"), size=100_000)
    screen.reading.wait(300)
    assert len(workspace.data.frame) == 40
    assert workspace.data.source.encoding.startswith("utf-16")


def test_a_hierarchy_is_exported_and_copied_between_columns(workspace: Workspace, tmp_path: Path) -> None:
    drop(workspace, {"people.csv": PEOPLE, "hierarchy_town.csv": "Volos;Greece;*\nPatras;Greece;*\n"})
    choice = HierarchyChoice(workspace)
    builder = HierarchyBuilder(choice=choice)
    choice.column = "town"
    assert choice.used
    content = builder.export.callback()
    assert builder.export.filename == "town-hierarchy.csv"
    (tmp_path / "town.csv").write_bytes(content.getvalue())
    assert Hierarchy.from_csv(tmp_path / "town.csv").labels == choice.tree.labels
    assert "home-town" in builder.to.options
    assert "town" not in builder.to.options
    builder.to.value = "age"
    builder.copy.clicks += 1
    assert "age" in choice.problem, "the values of another column"
    steps = len(workspace.draft.past)
    builder.to.value = "home-town"
    builder.copy.clicks += 1
    assert choice.problem == ""
    assert len(workspace.draft.past) == steps + 1
    entry = value_at(workspace.draft, ("table", "columns", "home-town"))
    assert entry["hierarchy"] == value_at(workspace.draft, ("table", "columns", "town", "hierarchy"))
    assert workspace.data.problems == ()
