"""The page Data without a browser: what its columns are, hints, uploads that come in chunks."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from anonflow import datasets
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import DataError
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.forms import numbers
from tests.naive.uniqueness import unique_on

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.app import STEPS, App
from anonflow.dashboards.components.markup import unique_bars
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.data.column_form import NOT_PUBLISHED, ColumnChoice, about_datasets, read_type
from anonflow.dashboards.data.screen import GROWS, OWN, SHOWN, DataScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work import screen_work
from anonflow.dashboards.work.user_limits import Limits
from tests.cases.drafts import value_at
from tests.dashboards.conftest import Hand
from tests.dashboards.data.uploading import send

PEOPLE = "id,age,city,zip,born,income\n" + "".join(
    f"{i},{20 + (i % 4 if i < 50 else i)},{['Athens', 'Volos', 'Patras'][i % 3]},104{i % 4}1,19{60 + i % 2}-01-02,"
    f"{'poor' if i % 2 else 'rich'}\n"
    for i in range(60)
).replace("23,Athens", ",Athens")


@pytest.fixture
def workspace() -> Workspace:
    return Workspace(limits=Limits(upload_bytes=200_000, rows=1_000))


def opened(
    workspace: Workspace, tmp_path: Path, text: str = PEOPLE, name: str = "people.csv"
) -> ColumnChoice:
    (tmp_path / "given").write_text(text, encoding="utf-8")
    choice = ColumnChoice(workspace)
    workspace.opener.open_file(name, tmp_path / "given")
    return choice


def test_the_first_guess_stands_in_the_table(workspace: Workspace, tmp_path: Path) -> None:
    choice = opened(workspace, tmp_path)
    rows = choice.rows.set_index("column")
    assert list(rows.index) == ["id", "age", "city", "zip", "born", "income"]
    assert list(rows["type"]) == ["number", "number", "text", "number", "date", "text"]
    assert rows.loc["id", "role"] == "identifier"
    assert rows.loc["income", "role"] == "sensitive"
    assert rows.loc["age", "kind"] == "numeric"
    assert rows.loc["age", "missing"] == int(workspace.data.frame["age"].isna().sum()) > 0
    assert rows.loc["age", "no value"] == "value"
    assert rows.loc["city", "no value"] == ""  # nothing is missing: nothing to say
    assert rows.loc["city", "distinct"] == 3
    assert workspace.data.problems == ()


def test_long_texts_take_the_room_that_is_left(workspace: Workspace, tmp_path: Path) -> None:
    screen = DataScreen(workspace=workspace)
    opened(workspace, tmp_path)
    columns = {column.get("field"): column for column in screen.columns.get_root().configuration["columns"]}
    assert {name for name, column in columns.items() if "widthGrow" in column} == set(GROWS)
    for name, column in columns.items():
        if name in GROWS:
            assert column["minWidth"] == SHOWN[name][1]
            assert "width" not in column
    widths = {column.field: column.width for column in screen.columns.get_root().columns}
    assert all(widths[name] == (0 if name in GROWS else SHOWN[name][1]) for name in SHOWN)


def test_each_choice_is_one_step_that_can_be_undone(workspace: Workspace, tmp_path: Path) -> None:
    choice = opened(workspace, tmp_path)
    before = workspace.draft.document
    assert not workspace.draft.can_undo
    assert choice.choose("city", "role", "sensitive")
    assert value_at(workspace.draft, ("table", "columns", "city")) == {"role": "sensitive"}
    assert choice.rows.set_index("column").loc["city", "kind"] == ""
    assert choice.choose("born", "kind", "suppression")
    workspace.draft.undo()
    assert choice.rows.set_index("column").loc["born", "kind"] == "numeric"
    workspace.draft.undo()
    assert workspace.draft.document == before
    assert choice.rows.set_index("column").loc["city", "role"] == "quasi-identifier"
    assert not workspace.draft.can_undo


def test_a_column_may_be_left_out(workspace: Workspace, tmp_path: Path) -> None:
    choice = opened(workspace, tmp_path)
    assert choice.choose("city", "role", NOT_PUBLISHED)
    assert "city" not in value_at(workspace.draft, ("table", "columns"))
    assert choice.rows.set_index("column").loc["city", "role"] == NOT_PUBLISHED
    assert choice.choose("city", "role", "quasi-identifier")
    assert value_at(workspace.draft, ("table", "columns", "city", "kind")) == "categorical"


@pytest.mark.parametrize(
    ("column", "start"),
    [("age", "intervals"), ("zip", "positions"), ("city", "nested")],
)
def test_kind_hierarchy_comes_with_a_hierarchy_to_start_from(
    workspace: Workspace, tmp_path: Path, column: str, start: str
) -> None:
    choice = opened(workspace, tmp_path)
    assert choice.choose(column, "kind", "hierarchy")
    assert start in value_at(workspace.draft, ("table", "columns", column, "hierarchy"))
    assert workspace.data.problems == ()
    assert workspace.data.table is not None


def test_a_built_in_table_gives_its_own_hierarchy(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    workspace.opener.open_dataset("patients_example")
    choice.choose("zipcode", "kind", "categorical")
    assert choice.choose("zipcode", "kind", "hierarchy")
    known = datasets.schema("patients_example", hierarchies=True)["zipcode"]["hierarchy"]
    assert value_at(workspace.draft, ("table", "columns", "zipcode", "hierarchy")) == known


@pytest.mark.parametrize(
    ("column", "field", "value", "says"),
    [
        ("city", "role", "king", "a role is one of"),
        ("city", "kind", "tree", "a kind is one of"),
        ("city", "no value", "suppress", "without a value, kind categorical can value, refuse, drop"),
        ("income", "no value", "drop", "for quasi-identifiers only"),
        ("nobody", "role", "sensitive", "no such column"),
        ("city", "distinct", 3, "only role, kind"),
        ("city", "role", None, "a role is one of"),
    ],
)
def test_what_cannot_be_chosen_is_said_and_changes_nothing(
    workspace: Workspace, tmp_path: Path, column: str, field: str, value: object, says: str
) -> None:
    choice = opened(workspace, tmp_path)
    before = workspace.draft.document
    assert not choice.choose(column, field, value)
    assert says in choice.refusal
    assert workspace.draft.document == before
    choice.choose("born", "role", "insensitive")
    assert choice.refusal == ""


def test_a_kind_that_the_values_do_not_have_is_a_problem_before_run(
    workspace: Workspace, tmp_path: Path
) -> None:
    choice = opened(workspace, tmp_path)
    choice.choose("city", "kind", "numeric")
    assert workspace.data.table is None
    assert "city" in " ".join(workspace.data.problems)
    assert choice.sentence()  # the counts do not need a valid table


def test_unique_records_as_columns_are_added(workspace: Workspace, tmp_path: Path) -> None:
    choice = opened(workspace, tmp_path)
    names = choice.quasi_identifiers
    rows = [tuple(map(str, row)) for row in workspace.data.frame[list(names)].itertuples(index=False)]
    counts = [unique_on(rows, a + 1) for a in range(len(names))]
    assert [many for _, many, _, _ in choice.bars] == counts
    n = len(workspace.data.frame)
    assert (
        choice.sentence()
        == f"{counts[-1]:,} records ({100 * counts[-1] / n:.1f}%) are unique on these quasi-identifiers."
    )
    for name in names:
        choice.choose(name, "role", "insensitive")
    assert choice.bars == []
    assert "choose at least one" in choice.sentence()


def test_markup_of_bars_holds_no_markup_of_a_header() -> None:
    markup = unique_bars([("<img src=x onerror=alert(1)>", 3, "1%", 0.01)])
    assert "<img" not in markup
    assert "&lt;img" in markup


def test_back_to_the_first_guess(workspace: Workspace, tmp_path: Path) -> None:
    choice = opened(workspace, tmp_path)
    guessed = value_at(workspace.draft, ("table", "columns"))
    for column in choice.quasi_identifiers:
        assert choice.choose(column, "role", "sensitive")
    assert choice.quasi_identifiers == ()
    choice.infer()
    assert value_at(workspace.draft, ("table", "columns")) == guessed


def test_built_in_tables_are_made_inside_the_caps() -> None:
    workspace = Workspace(limits=Limits(rows=1_000, columns=20))
    for request in ({"n": 1_001}, {"n": 100, "q": 21}):
        with pytest.raises(DataError, match="at most"):
            workspace.opener.open_dataset("random_normal", **request)
    workspace.opener.open_dataset("random_normal", n=100, q=20)
    assert workspace.data.frame.shape == (100, 20)
    workspace.close()


def test_the_type_of_a_column_is_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_type(pd.Series(["1", "2.5"]).dropna())[0] == "number"
    assert read_type(pd.Series(["2020-01-01", None]).dropna())[0] == "date"
    assert read_type(pd.Series([True, False]).dropna())[0] == "truth value"
    assert read_type(pd.Series(["a", "1"]).dropna())[0] == "text"
    assert read_type(pd.Series([None, None], dtype=object).dropna())[0] == "empty"
    assert read_type(pd.Series([float("inf"), 1.0]).dropna())[0] == "text"
    monkeypatch.setattr(
        numbers, "other_form", lambda *texts: pytest.fail("nobody reads in which form they are")
    )
    assert read_type(pd.Series(["1/2/2020", "2/2/2020"]))[0] == "text"


def test_tables_that_need_a_download_say_so() -> None:
    descriptions = about_datasets()
    assert set(descriptions) == set(datasets.names())
    away = datasets.describe().set_index("name")["available"]
    for name, text in descriptions.items():
        assert ("needs a download" in text) == (not away[name])


# ------------------------------------------------------------------------------------------ uploads


def dropper_to(
    folder: Path, most: int | None = None
) -> tuple[DiskDropper, list[tuple[str, bytes]], list[str]]:
    taken: list[tuple[str, bytes]] = []
    refused: list[str] = []
    place: Any = SimpleNamespace(folder=folder, limits=Limits(upload_bytes=most))
    dropper = DiskDropper(
        place, lambda name, path: taken.append((name, path.read_bytes())), refused.append, "a file"
    )
    return dropper, taken, refused


def test_chunks_are_put_together_on_disk(tmp_path: Path) -> None:
    dropper, taken, refused = dropper_to(tmp_path)
    send(dropper, "a.csv", PEOPLE.encode())
    assert taken == [("a.csv", PEOPLE.encode())]
    assert refused == []
    assert dropper.value == {}  # nothing is kept in memory
    assert list(tmp_path.iterdir()) == []


def test_an_oversize_upload_stops_at_the_cap(tmp_path: Path) -> None:
    dropper, taken, refused = dropper_to(tmp_path, most=1000)
    send(dropper, "a.csv", b"x" * 5000)
    assert taken == []
    assert len(refused) == 1
    assert "larger than 0.0 MB" in refused[0] or "larger than" in refused[0]
    assert list(tmp_path.iterdir()) == []
    send(dropper, "b.csv", b"x" * 1000)  # the next one is taken
    assert [name for name, _ in taken] == ["b.csv"]


@pytest.mark.parametrize("chunks", [[1, 3], [1, 2, 2], [2], [1, 2, 999]])
def test_chunks_out_of_order_are_no_file(tmp_path: Path, chunks: list[int]) -> None:
    dropper, taken, _ = dropper_to(tmp_path)
    data = b"0123456789" * 30
    pieces = max(chunks)
    if pieces > 6:
        data = data + b"x" * 50 * pieces
    send(dropper, "a.csv", data, chunks=chunks)
    assert taken == []


def test_a_broken_event_is_refused(tmp_path: Path) -> None:
    dropper, taken, refused = dropper_to(tmp_path)
    dropper._process_event(SimpleNamespace(event_name="upload_event", data={"name": "a"}))
    assert taken == []
    assert "try again" in refused[0]


def hostile(tmp_path: Path) -> dict[str, bytes]:
    frame = pd.DataFrame({"a": range(1001), "b": ["x"] * 1001})
    frame.to_parquet(tmp_path / "long.parquet")
    nested = pd.DataFrame({"a": [[1], [2]], "b": [1, 2]})
    nested.to_parquet(tmp_path / "nested.parquet")
    # one text, a thousand times: in the file once
    pd.DataFrame({"a": ["x" * 5_000] * 1000, "b": ["y"] * 1000}).to_parquet(tmp_path / "bomb.parquet")
    wide = ",".join(f"c{i}" for i in range(3000)) + "\n" + ",".join("1" for _ in range(3000)) + "\n"
    return {
        "table.xlsx": b"PK\x03\x04",
        "table": b"a,b\n1,2\n",
        "broken.parquet": b"PAR1" + b"nonsense" * 50,
        "empty.csv": b"",
        "header.csv": b"a,b\n",
        "binary.csv": bytes(range(256)) * 20,
        "bomb.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 200_000),
        "no.csv.gz": b"this is not gzip",
        "long.csv": b"a,b\n" + b"1,2\n" * 1001,
        "long.parquet": (tmp_path / "long.parquet").read_bytes(),
        "nested.parquet": (tmp_path / "nested.parquet").read_bytes(),
        "bomb.parquet": (tmp_path / "bomb.parquet").read_bytes(),
        "ragged.csv": b"a,b\n1,2,3\n4\n",
        "twice.csv": b"a,a\n1,2\n",
        "nameless.csv": b"a,\n1,2\n",
        "wide.csv": wide.encode(),
        "../../etc/passwd": b"root:x:0:0\n",
    }


def test_hostile_uploads_are_one_sentence_and_change_nothing(
    workspace: Workspace, hand: Hand, tmp_path: Path
) -> None:
    screen = DataScreen(workspace=workspace)
    screen.way.value = OWN
    before = set(workspace.folder.iterdir())
    for name, content in hostile(tmp_path).items():
        screen.wrong.object = ""
        screen.wrong.visible = False
        send(screen.dropper, name, content, size=100_000)
        hand.do_all()
        assert workspace.data.frame is None, name
        assert screen.wrong.visible, name
        assert "Not opened" in screen.wrong.object, name
        assert "\n" not in screen.wrong.object, name
        assert str(workspace.folder) not in screen.wrong.object, name
        assert set(workspace.folder.iterdir()) == before, (name, "nothing stays behind")


def test_a_very_wide_table_is_refused_before_it_is_read(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        pytest.fail("a hundred thousand columns take the server half a minute")

    monkeypatch.setattr("anonflow.dashboards.session.files.table_sources.read_frame", read)
    (tmp_path / "given").write_text('"one\nname";' + ";".join(f"c{i}" for i in range(10_000)) + "\n")
    with pytest.raises(DataError, match="10,001 columns"):
        workspace.opener.open_file("wide.csv", tmp_path / "given", delimiter=";")


def test_an_upload_opens_and_the_message_goes(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    send(screen.dropper, "bad.csv", b"")
    screen.reading.wait(300)
    assert screen.wrong.visible
    screen.missing.value = "?, NA"
    screen.delimiter.value = ";"
    send(screen.dropper, "good.csv", PEOPLE.replace(",", ";").replace("Volos", "NA").encode(), size=1000)
    screen.reading.wait(300)
    assert not screen.wrong.visible
    assert len(workspace.data.frame) == 60
    assert workspace.data.frame["city"].isna().sum() == 20
    assert workspace.data.source == SourceSpec(csv="good.csv", delimiter=";", missing=("?", "NA"))
    assert len(screen.first.value) == 60
    assert list(screen.columns.value["column"]) == list(workspace.data.frame.columns)
    assert f"{screen.choice.unique()[-1]:,} records (" in screen.sentence.object


def test_the_screen_opens_built_in_tables_with_their_options(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    screen.dataset.value = "census_like"
    screen._options["n"].value = 300
    screen.open.clicks += 1
    assert workspace.data.source == SourceSpec(dataset="census_like", n=300)
    assert len(workspace.data.frame) == 300
    assert "unique on these quasi-identifiers" in screen.sentence.object
    screen._options["n"].value = 5000  # beyond this server's rows
    screen.open.clicks += 1
    assert len(workspace.data.frame) == 300
    assert "at most 1,000" in screen.wrong.object


def test_whatever_replaces_work_asks(workspace: Workspace, tmp_path: Path, hand: Hand) -> None:
    """Runs and edits are given up when their user says so, and nothing else of the session changes until then."""
    screen = DataScreen(workspace=workspace)
    assert screen.open.color == "primary"
    screen.dataset.value = "census_like"
    screen._options["n"].value = 40
    screen.open.clicks += 1
    assert not screen._question.visible  # nothing is lost
    first = workspace.data.table_name
    workspace.draft.set_algorithms(["mondrian"])
    workspace.start()
    hand.do_all()
    assert screen.open.color == "default"
    files = sorted(workspace.folder.iterdir())
    ways: list[Callable[[], None]] = [
        lambda: setattr(screen.open, "clicks", screen.open.clicks + 1),
        lambda: send(screen.dropper, "people.csv", PEOPLE.encode(), size=100_000),
        lambda: send(screen.projects, "a.anonflow.zip", workspace.save_project(), size=100_000),
    ]
    for way in ways:
        way()
        assert screen._question.visible
        assert f"closes {first}: its settings and 1 run are given up" in screen.replaced.object
        send(screen.dropper, "hierarchy_age.csv", b"20,*\n", size=100_000)  # dropped with it: it waits
        screen.keep_open.clicks += 1
        assert not screen._question.visible
        assert (workspace.data.table_name, len(workspace.runs.finished)) == (first, 1)
        assert sorted(workspace.folder.iterdir()) == files
        assert not screen.dropped.visible
        assert not list(workspace.place.path.glob("upload-*")) + list(workspace.place.path.glob("shelved-*"))
    ways[1]()
    screen.replace.clicks += 1
    hand.do_all()
    assert (workspace.data.table_name, workspace.runs.finished) == ("people.csv", [])
    send(screen.dropper, "hierarchy_city.csv", b"Athens,*\nVolos,*\nPatras,*\n", size=100_000)
    assert value_at(workspace.draft, ("table", "columns", "city", "hierarchy")) is not None
    assert not workspace.has_work  # what came with the table is none
    workspace.data.set_column("city", role="insensitive")
    screen.open.clicks += 1
    assert "closes people.csv: its settings are given up" in screen.replaced.object


def test_another_file_with_the_same_columns_has_its_own_counts(workspace: Workspace) -> None:
    screen = DataScreen(workspace=workspace)
    for name, text in (("a.csv", "x,y\n1,1\n1,2\n"), ("b.csv", "x,y\n1,a\n2,b\n3,\n")):
        send(screen.dropper, name, text.encode(), size=100_000)
        screen.reading.wait(300)
    shown = screen.columns.value.set_index("column")
    assert shown.loc["y", ["type", "distinct", "missing"]].tolist() == ["text", 2, 1]
    assert shown.loc["x", "distinct"] == 3


def test_every_column_has_its_counts_whatever_its_values_are(workspace: Workspace) -> None:
    """Nothing but blanks, and numbers whose range is beyond the largest number: warnings are errors in tests."""
    screen = DataScreen(workspace=workspace)
    large = [1.7e308, -1.7e308, *range(50)]
    lines = ["blank,large", *(f",{number}" for number in large)]
    send(screen.dropper, "odd.csv", "\n".join(lines).encode(), size=100_000)
    screen.reading.wait(300)
    shown = screen.columns.value.set_index("column")
    assert shown.loc["blank", ["distinct", "missing"]].tolist() == [0, len(large)]
    assert shown.loc["large", ["distinct", "missing"]].tolist() == [len(large), 0]


@pytest.mark.parametrize("written", ["{:%Y-%m-%d}", "{:%Y-%m-%dT%H:%M:%S}"])
def test_a_picture_of_dates_counts_those_of_equal_spans(
    workspace: Workspace, tmp_path: Path, written: str
) -> None:
    days = pd.date_range("2024-01-01", periods=200, freq="D")
    rows = "".join(f"{i},{written.format(day)}\n" for i, day in enumerate(days))
    (tmp_path / "stays").write_text(f"stay,admitted\n{rows}", encoding="utf-8")
    choice = ColumnChoice(workspace)
    workspace.opener.open_file("stays.csv", tmp_path / "stays")
    assert choice.about()["admitted"].heights == (10.0,) * 20


def test_edits_in_the_table_reach_the_draft_and_come_back(workspace: Workspace, tmp_path: Path) -> None:
    screen = DataScreen(workspace=workspace)
    (tmp_path / "given").write_text(PEOPLE, encoding="utf-8")
    workspace.opener.open_file("people.csv", tmp_path / "given")
    screen._edited(SimpleNamespace(row=2, column="role", value="sensitive"))
    assert value_at(workspace.draft, ("table", "columns", "city")) == {"role": "sensitive"}
    assert screen.columns.value["role"].iloc[2] == "sensitive"
    screen._edited(SimpleNamespace(row=2, column="role", value="nonsense"))
    assert screen.refusal.visible
    assert screen.columns.value["role"].iloc[2] == "sensitive"
    workspace.draft.undo()
    assert screen.columns.value["role"].iloc[2] == "quasi-identifier"
    assert not screen.trouble.visible
    screen._edited(SimpleNamespace(row=2, column="kind", value="numeric"))
    assert screen.trouble.visible
    assert "city" in screen.trouble.object
    workspace.draft.undo()
    assert not screen.trouble.visible
    screen._edited(SimpleNamespace(row=99, column="role", value="sensitive"))  # no such row: nothing


def test_titles_of_the_first_rows_are_no_markup(workspace: Workspace, tmp_path: Path) -> None:
    screen = DataScreen(workspace=workspace)
    (tmp_path / "given").write_text('"<b onclick=x>a</b>",b\n1,2\n3,4\n', encoding="utf-8")
    workspace.opener.open_file("x.csv", tmp_path / "given")
    assert next(iter(screen.first.titles.values())).startswith("&lt;b")


def test_a_table_without_a_guess_at_quasi_identifiers_is_opened_to_be_edited(
    workspace: Workspace, tmp_path: Path
) -> None:
    choice = opened(workspace, tmp_path, "id,same\n" + "".join(f"{i},x\n" for i in range(30)))
    assert workspace.data.table is None
    assert workspace.data.problems != ()
    assert "choose at least one" in choice.sentence()
    assert choice.choose("id", "role", "quasi-identifier")
    assert choice.choose("id", "kind", "numeric")
    assert workspace.data.problems == ()


def test_no_table_no_rows(workspace: Workspace) -> None:
    choice = ColumnChoice(workspace)
    assert choice.sentence() == ""


def test_a_file_is_read_aside_while_everybody_else_is_answered(tmp_path: Path, hand: Hand) -> None:
    item, other = Workspace(), Workspace()
    screen = DataScreen(workspace=item)
    path = item.folder / "upload-1"
    path.write_text("age,city\n" + "".join(f"{20 + i % 50},Athens\n" for i in range(60)))
    screen._open_file("people.csv", path)  # as the drop area does, on the event loop
    assert item.data.frame is None
    assert screen.reading.busy
    other.opener.open_dataset("census_like", n=40)  # on the same loop, meanwhile
    assert len(other.data.frame) == 40
    hand.do_all()
    assert not screen.reading.busy
    assert len(item.data.frame) == 60
    assert item.starts.status.startswith("60 records")
    assert sorted(place.name for place in item.folder.iterdir()) == ["people.csv"]
    # what is no table is said in a sentence, and nothing of it is kept
    path.write_bytes(b"\x00\xff" * 50)
    screen._open_file("broken.csv", path)
    hand.do_all()
    assert "broken.csv" in screen.wrong.object
    assert not list(item.folder.glob("*broken*")) + list(item.folder.glob("upload*"))
    item.close()
    other.close()


def test_while_a_large_table_is_coded_nothing_is_called_wrong(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_work, "FEW", 30)
    workspace = Workspace(aside=True)
    screen, app = DataScreen(workspace=workspace), App(workspace=workspace)
    workspace.opener.open_dataset("census_like", n=60, seed=3)
    assert not screen.trouble.visible
    assert "Counting" in screen.sentence.object or "unique" in screen.sentence.object
    assert app.bar.troubles == 0
    assert app.at_work.line.visible
    assert workspace.data.coder.doing == "coding the table"
    for step in ("Risk", "Protect", "Compare"):
        app.step = STEPS.index(step)
    hand.do_all()
    assert "unique on these quasi-identifiers" in screen.sentence.object
    assert not screen.trouble.visible
    assert not app.at_work.line.visible
    workspace.close()


def test_a_file_in_another_encoding_is_refused_in_the_words_of_the_screen(tmp_path: Path) -> None:
    workspace = Workspace()
    screen = DataScreen(workspace=workspace)
    path = workspace.folder / "upload-1"
    path.write_bytes(b"town,age\n" + b"Gen\xe8ve,31\n" * 5)
    screen.encoding.value = "utf-8"
    screen._open_file("latin.csv", path)
    screen.reading.wait(300)
    assert "How the CSV file is written" in screen.wrong.object
    assert "source" not in screen.wrong.object
    screen.encoding.value = ""
    screen._read_again()
    screen.reading.wait(300)
    assert set(workspace.data.frame["town"]) == {"Genève"}
    workspace.close()


def coded(workspace: Workspace, tmp_path: Path) -> ColumnChoice:
    """Incomes of which some are codes, and one is an error."""
    rows = "".join(
        f"{20 + i % 30},{'N' if i % 6 == 0 else 'R' if i % 7 == 0 else 100 * i}\n" for i in range(60)
    )
    (tmp_path / "wages").write_text(f"age,income\n{rows}", encoding="utf-8")
    choice = ColumnChoice(workspace)
    workspace.opener.open_file("wages.csv", tmp_path / "wages")
    choice.choose("age", "role", "quasi-identifier")
    choice.choose("income", "role", "quasi-identifier")
    return choice


def test_codes_beside_numbers_are_typed_and_shown(workspace: Workspace, tmp_path: Path) -> None:
    choice = coded(workspace, tmp_path)
    choice.choose("income", "role", "quasi-identifier")
    choice.choose("income", "kind", "categorical")
    assert not choice.choose("income", "codes", "N, R")
    assert "choose the kind numeric first" in choice.refusal
    assert choice.choose("income", "kind", "numeric")  # the codes that are there are proposed with it
    assert choice.rows.set_index("column").loc["income", "codes"] == "N, R"
    assert workspace.data.problems == ()
    assert choice.choose("income", "codes", "N")
    assert value_at(workspace.draft, ("table", "columns", "income", "codes")) == ["N"]
    assert workspace.data.table is None  # R is no number
    assert any("income" in problem for problem in workspace.data.problems)
    assert choice.choose("income", "codes", " N ,R, ")
    assert value_at(workspace.draft, ("table", "columns", "income", "codes")) == ["N", "R"]
    assert [domain.kind for domain in workspace.data.table.domains] == ["numeric", "numeric", "codes"]
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    assert [run.result.ok for run in workspace.runs.finished] == [True]
    assert choice.choose("income", "codes", "")
    assert value_at(workspace.draft, ("table", "columns", "income", "codes")) is None


def test_numbers_in_a_form_with_codes_become_sensitive(workspace: Workspace, tmp_path: Path) -> None:
    """Their form stayed and their codes went, so that the table could not be used."""
    rows = "".join(f"{20 + i % 30};{'N' if i % 6 == 0 else f'{i} 100'}\n" for i in range(60))
    (tmp_path / "wages").write_text(f"age;paid\n{rows}", encoding="utf-8")
    choice = ColumnChoice(workspace)
    workspace.opener.open_file("wages.csv", tmp_path / "wages")
    assert choice.choose("paid", "role", "quasi-identifier")
    before = choice.rows.set_index("column").loc["paid"]
    assert (before["codes"], before["form"]) == ("N", 'thousands: " "')
    for role in ("sensitive", "quasi-identifier", "insensitive"):
        assert choice.choose("paid", "role", role)
        assert workspace.data.problems == (), role
    assert choice.choose("paid", "role", "quasi-identifier")
    assert list(choice.rows.set_index("column").loc["paid"]) == list(before)


def written_by_people(workspace: Workspace, tmp_path: Path) -> ColumnChoice:
    """Amounts with decimal commas, days before months."""
    rows = "".join(f"{100 + n},5;{n + 1}.{n % 12 + 1}.2013\n" for n in range(28))
    (tmp_path / "wages").write_text(f"income;hired\n{rows}", encoding="utf-8")
    choice = ColumnChoice(workspace)
    workspace.opener.open_file("wages.csv", tmp_path / "wages")
    return choice


def test_the_form_of_numbers_and_dates_is_guessed_shown_and_typed(
    workspace: Workspace, tmp_path: Path
) -> None:
    choice = written_by_people(workspace, tmp_path)
    assert choice.rows.set_index("column")["form"].to_dict() == {
        "income": 'decimal: ","',
        "hired": "dates: d.m.y",
    }
    assert choice.choose("hired", "role", "sensitive")
    assert value_at(workspace.draft, ("table", "columns", "hired")) == {"role": "sensitive", "dates": "d.m.y"}
    assert choice.choose("hired", "role", "identifier")
    assert value_at(workspace.draft, ("table", "columns", "hired")) == {"role": "identifier"}
    assert choice.choose("income", "role", "quasi-identifier")
    choice.choose("income", "role", "quasi-identifier")
    assert choice.choose("income", "kind", "categorical")
    assert choice.choose("income", "kind", "numeric")
    assert choice.rows.set_index("column").loc["income", "form"] == 'decimal: ","'
    assert workspace.data.table.domains[0].labels[0] == "100.5"
    assert choice.choose("income", "form", "")
    assert workspace.data.table is None
    assert any(
        'type decimal: "," under Form, on the screen Data' in problem for problem in workspace.data.problems
    )
    assert choice.choose("income", "form", ' decimal: ",", write: source')
    assert value_at(workspace.draft, ("table", "columns", "income", "write")) == "source"
    assert workspace.data.table is not None


def test_the_separators_of_the_source_are_those_of_its_numbers(workspace: Workspace, tmp_path: Path) -> None:
    rows = "".join(f"{n}.{n}00;Ulm\n{n}.234;Bonn\n" for n in range(1, 10))
    (tmp_path / "two").write_text(f"pay;city\n{rows}", encoding="utf-8")
    workspace.opener.open_file("two.csv", tmp_path / "two", shape=CsvShape(thousands="."))
    workspace.data.set_column("pay", role="quasi-identifier", kind="numeric")
    assert workspace.data.problems == ()
    assert workspace.data.table.domains[0].labels[0] == "1100"


@pytest.mark.parametrize(
    ("column", "text", "says"),
    [
        ("income", "a comma", "has the words decimal"),
        ("income", "decimal: ;", "decimal is one of"),
        ("income", "decimal: x", "decimal is one of"),
        ("income", "kind: numeric", "has the words decimal"),
        ("hired", "dates: d.m.y", "for columns that are published"),
    ],
)
def test_a_form_that_cannot_be_is_one_sentence(
    workspace: Workspace, tmp_path: Path, column: str, text: str, says: str
) -> None:
    choice = written_by_people(workspace, tmp_path)
    choice.choose("hired", "role", "identifier")
    before = workspace.draft.document
    assert not choice.choose(column, "form", text)
    assert says in choice.refusal
    assert workspace.draft.document == before


@pytest.mark.parametrize(
    ("text", "says"),
    [("N, 9", "a code is a number"), ("N, N", "a code is listed twice"), ("-9", "a code is a number")],
)
def test_codes_that_cannot_be_are_one_sentence(
    workspace: Workspace, tmp_path: Path, text: str, says: str
) -> None:
    choice = coded(workspace, tmp_path)
    choice.choose("income", "role", "quasi-identifier")
    choice.choose("income", "kind", "numeric")
    before = workspace.draft.document
    assert not choice.choose("income", "codes", text)
    assert says in choice.refusal
    assert workspace.draft.document == before
    screen = DataScreen(workspace=workspace)
    assert screen.columns.value.set_index("column").loc["income", "codes"] == "N, R"
    assert "codes" in screen.columns.editors
