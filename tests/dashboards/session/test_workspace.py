"""One user's state behind the screens: no browser, no server."""

from __future__ import annotations

import gzip
import io
import itertools
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from anonflow import datasets, strict_yaml
from anonflow.cli import main
from anonflow.engine import attempt
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import AnonflowError, DataError, FlowError, ParameterError

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards import Limits, Workspace
from anonflow.dashboards.session import open_table
from anonflow.dashboards.session.files.folders import SessionFolders
from anonflow.dashboards.session.starts import Starts
from anonflow.dashboards.work import jobs, screen_work
from anonflow.dashboards.work.fair_queue import FairQueue
from tests.cases.drafts import open_flow, problems_of, put_at, value_at
from tests.dashboards.conftest import Hand

WAIT = 300.0


@pytest.fixture
def workspace() -> Any:
    item = Workspace()
    yield item
    item.close()


def opened(item: Workspace, n: int = 200, **more: Any) -> Workspace:
    item.opener.open_dataset("census_like", n=n, seed=3, **more)
    return item


def upload(folder: Path, frame: pd.DataFrame, name: str = "people.csv") -> Path:
    path = folder / f"upload-{name}"
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


# ------------------------------------------------------------------------------------- opening a table


def test_before_a_table_is_open_nothing_can_run(workspace: Workspace) -> None:
    assert workspace.data.table is None
    workspace.data.refresh()
    assert "open one first" in workspace.data.problems[0]
    with pytest.raises(FlowError, match="open one first"):
        workspace.start()


def test_it_says_no_cell_of_itself(workspace: Workspace) -> None:
    frame = pd.DataFrame({"town": ["Qxz"] * 3 + ["Rxz"] * 3, "illness": ["Sxz"] * 6})
    tree = {"nested": {"*": ["Qxz", "Rxz"]}}
    columns = {"town": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": tree}}
    workspace.opener.open_frame(frame, columns)
    workspace.draft.set_ks([2])
    workspace.start()
    workspace.wait(WAIT)
    assert len(workspace.runs.finished) == 1
    for shown in (workspace, workspace.draft, workspace.runs.finished[0], workspace.publish(1)):
        assert "xz" not in repr(shown), type(shown)


def test_a_flow_with_attackers_and_a_matrix_opens_runs_and_is_resumed(workspace: Workspace) -> None:
    text = """
flow: attacked
version: 1
table:
  source: {dataset: census_like, n: 60, seed: 3}
  columns:
    Age: {role: quasi-identifier, kind: numeric}
    Salary-class: {role: sensitive}
steps:
  - anonymize: {algorithm: greedy, k: 3}
  - draw: {}
  - attack: [prosecutor]
matrix:
  anonymize.k: [3, 4]
publish: {run: {anonymize.k: 3}, table: out/x.csv, report: out/x.html}
"""
    open_flow(workspace, text)
    assert workspace.data.problems == ()
    workspace.start()
    workspace.wait(WAIT)
    assert len(workspace.runs.finished) == 2
    publication = workspace.publish(workspace.runs.finished[0].id)
    assert len(publication.release.frame) == 60
    open_flow(workspace, workspace.draft.text())  # as a server that was lost left it
    assert workspace.data.problems == ()


def test_a_built_in_table_opens_ready_to_run(workspace: Workspace) -> None:
    opened(workspace, 400)
    assert len(workspace.data.frame) == 400
    assert workspace.data.source == SourceSpec(dataset="census_like", n=400, seed=3)
    assert workspace.data.table.n == 400
    assert workspace.data.problems == ()
    assert workspace.data.algorithms == ["greedy"]
    assert workspace.data.ks == [10]
    assert value_at(workspace.draft, ("partition", "size")) == 250


@pytest.mark.parametrize("name", ["freeform_example", "zip_example", "location_example", "patients_example"])
def test_tiny_tables_start_with_a_k_that_they_can_have(workspace: Workspace, name: str) -> None:
    workspace.opener.open_dataset(name)
    assert workspace.data.problems == ()


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "../../etc/Ünder der;Bank.csv"])
def test_an_uploaded_file_is_moved_into_the_session(workspace: Workspace, tmp_path: Path, name: str) -> None:
    frame = datasets.census_like(50, seed=1)
    path = upload(tmp_path, frame, "people.parquet" if name.endswith("parquet") else "people.csv")
    workspace.opener.open_file(name, path)
    assert not path.exists()
    kept = [item for item in workspace.folder.iterdir() if item.is_file()]
    assert len(kept) == 1
    assert kept[0].name == workspace.data.source.file
    assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(workspace.folder.stat().st_mode) == 0o700
    assert len(workspace.data.frame) == 50
    assert workspace.data.problems == ()
    workspace.close()
    assert not workspace.folder.exists()


def test_semicolons_are_found(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    datasets.census_like(20, seed=1).to_csv(path, index=False, sep=";")
    workspace.opener.open_file("a.csv", path)
    assert workspace.data.source == SourceSpec(csv="a.csv", delimiter=";")
    assert problems_of(workspace.draft) == ()


def test_caps_on_uploads_and_rows(tmp_path: Path) -> None:
    item = Workspace(limits=Limits(upload_bytes=4000, rows=60))
    try:
        frame = datasets.census_like(200, seed=1)
        with pytest.raises(DataError, match="MB"):
            item.opener.open_file("people.csv", upload(tmp_path, frame))
        with pytest.raises(DataError, match=r"200 records.*at most 60"):
            item.opener.open_file("people.parquet", upload(tmp_path, frame[["Gender"]], "people.parquet"))
        with pytest.raises(DataError, match="200 records"):
            item.opener.open_dataset("census_like", n=200)
        with pytest.raises(DataError, match="1,000,000,000 records"):
            item.opener.open_dataset("census_like", n=1_000_000_000)  # refused before it is made
        packed = tmp_path / "bomb.csv.gz"
        packed.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 100_000))
        assert packed.stat().st_size < 4000
        with pytest.raises(DataError, match="MB"):
            item.opener.open_file("bomb.csv.gz", packed)
        assert item.data.frame is None
        assert list(item.folder.iterdir()) == []
    finally:
        item.close()


def test_errors_name_no_path_of_the_server(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "empty.csv"
    path.write_text("")
    with pytest.raises(DataError, match=r"empty\.csv: is empty") as caught:
        workspace.opener.open_file("empty.csv", path)
    assert str(workspace.folder) not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert list(workspace.folder.iterdir()) == []
    path.write_text("x")
    with pytest.raises(DataError, match="rename or convert"):
        workspace.opener.open_file("table.exe", path)


# ------------------------------------------------------------------------------------ editing the draft


def test_columns_are_edited_as_one_step_and_undone(workspace: Workspace) -> None:
    opened(workspace)
    table = workspace.data.table
    workspace.data.set_column("Age", role="insensitive")
    assert workspace.data.table is not table
    assert "Age" not in workspace.data.table.qi_columns
    assert value_at(workspace.draft, ("table", "columns", "Age")) == {"role": "insensitive"}
    workspace.draft.undo()
    assert "Age" in workspace.data.table.qi_columns
    workspace.draft.redo()
    workspace.data.set_column("Age", role="quasi-identifier")
    assert value_at(workspace.draft, ("table", "columns", "Age", "kind")) == "numeric"
    workspace.data.set_column("Age", boundary={"width": 20})
    workspace.data.set_column("Age", kind="categorical")  # a boundary of widths does not go with it
    assert value_at(workspace.draft, ("table", "columns", "Age")) == {
        "role": "quasi-identifier",
        "kind": "categorical",
    }
    assert workspace.data.problems == ()
    with pytest.raises(ParameterError):
        workspace.data.set_column("none of them", role="sensitive")


def test_the_table_is_not_coded_again_for_other_edits(workspace: Workspace) -> None:
    opened(workspace)
    table = workspace.data.table
    workspace.draft.set_ks([5])
    workspace.draft.set_algorithms(["greedy", "mondrian"])
    assert workspace.data.table is table


def test_methods_and_ks_live_in_the_draft(workspace: Workspace) -> None:
    opened(workspace)
    workspace.draft.set_algorithms(["mondrian", "greedy"])
    workspace.draft.set_ks([10, 5])
    assert value_at(workspace.draft, ("matrix",)) == {
        "anonymize.algorithm": ["mondrian", "greedy"],
        "anonymize.k": [5, 10],
    }
    assert (workspace.data.algorithms, workspace.data.ks) == (["mondrian", "greedy"], [5, 10])
    assert workspace.draft.flow().runs[0].name == "mondrian k=5"
    workspace.draft.undo()
    assert workspace.data.ks == [10]
    workspace.draft.set_algorithms(["nh"])
    assert value_at(workspace.draft, ("matrix",)) is None
    assert value_at(workspace.draft, ("steps", "anonymize", "algorithm")) == "nh"
    with pytest.raises(ParameterError):
        workspace.draft.set_ks([])


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda item: item.draft.set_ks([500]), "500"),
        (lambda entry: entry.draft.set_algorithms(["gredy"]), "gredy"),
        (lambda element: element.data.set_column("Age", kind="hierarchy"), "hierarchy"),
        (lambda space: put_at(space.draft, ("partition", "size"), 5), "smaller than k"),
        (
            lambda space: put_at(
                space.draft,
                ("steps", "diversify"),
                {"criterion": "l-diversity", "column": "Salary-class", "l": 60},
            ),
            "60",
        ),
        (lambda space: put_at(space.draft, ("table", "source", "n"), 10), "another table"),
    ],
)
def test_what_cannot_work_is_said_before_it_is_run(workspace: Workspace, edit: Any, text: str) -> None:
    opened(workspace)
    edit(workspace)
    assert any(text in problem for problem in workspace.data.problems), workspace.data.problems
    with pytest.raises(AnonflowError):
        workspace.start()
    workspace.draft.undo()
    assert workspace.data.problems == ()


# ------------------------------------------------------------------------------------------------ runs


def test_a_run_with_a_change_is_chosen_also_if_it_is_over_at_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(workspace, n=60).draft.set_algorithms(["mondrian"])
    workspace.start()
    workspace.wait(300)
    begin = Starts._begin

    def to_its_end(self: Starts, *arguments: Any) -> None:
        begin(self, *arguments)
        self.wait(300)

    monkeypatch.setattr(Starts, "_begin", to_its_end)
    for number, change in enumerate(
        [workspace.starts.apply, lambda run, _: workspace.starts.run_again(run)], start=2
    ):
        change(1, [(("steps", "anonymize", "k"), 7)])
        assert workspace.runs.chosen == number == len(workspace.runs.finished)
    workspace.draft.set_ks([4])
    workspace.start()
    assert (workspace.runs.chosen, len(workspace.runs.finished)) == (3, 4)  # the next one is not


def test_runs_arrive_one_by_one_and_the_source_is_not_read_again(
    workspace: Workspace, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(workspace, 400)
    monkeypatch.setattr(datasets, "load", lambda *a, **k: pytest.fail("read again"))
    workspace.draft.set_algorithms(["greedy", "mondrian"])
    workspace.draft.set_ks([5, 10])
    seen: list[int] = []
    names = set()
    shares: list[dict[str, float]] = []
    workspace.runs.param.watch(lambda event: seen.append(len(event.new)), "finished")
    running: list[bool] = []
    workspace.starts.param.watch(lambda event: running.append(event.new), "running")
    workspace.starts.param.watch(lambda event: shares.append(event.new), "progress")
    workspace.start()
    assert workspace.runs.finished == []
    names.update(hand.names)
    hand.do_all()
    workspace.wait(0)
    assert running == [True, False]
    assert not workspace.starts.running
    assert seen == [1, 2, 3, 4]
    assert names == {"anonflow-slot"}
    assert {run.name for run in workspace.runs.finished} == {
        "greedy k=5", "greedy k=10", "mondrian k=5", "mondrian k=10",
    }  # fmt: skip
    assert [run.id for run in workspace.runs.finished] == [1, 2, 3, 4]
    assert all(run.ok and run.result.anonymization is not None for run in workspace.runs.finished)
    assert workspace.runs.chosen == 1
    assert len({run.seed for run in workspace.runs.finished}) == 4
    assert set(shares[0]) == {run.name for run in workspace.runs.finished}
    assert workspace.starts.status.startswith("Done: 4 runs in")
    assert workspace.runs.finished[0].row()["id"] == 1
    workspace.runs.choose(3)
    assert workspace.runs.chosen == 3
    with pytest.raises(ParameterError):
        workspace.runs.choose(99)


def test_a_run_that_fails_is_a_row_that_says_why_and_the_others_go_on(workspace: Workspace) -> None:
    opened(workspace)
    workspace.draft.set_algorithms(["k-concealment", "greedy"])
    options = {"k-concealment": {"q": 100_000}}
    put_at(workspace.draft, ("steps", "anonymize", "options"), options)
    workspace.start()
    workspace.wait(WAIT)
    assert len(workspace.runs.finished) == 2
    broken, fine = sorted(workspace.runs.finished, key=lambda run: run.ok)
    assert broken.result.algorithm == "k-concealment"
    assert "q is at most" in broken.result.problem
    assert fine.ok
    assert workspace.runs.chosen == fine.id


def three_methods() -> Workspace:
    """Three runs of ten partitions each, for a queue that does one at a time."""
    item = opened(Workspace(line=FairQueue(1)), 200)
    put_at(item.draft, ("partition",), {"size": 20})
    item.draft.set_algorithms(["mondrian", "greedy", "nh"])
    item.draft.set_ks([5])
    return item


def test_cancel_keeps_what_is_done(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "PAUSE", 0.0)  # every change of the progress is told
    item = three_methods()
    shares: list[float] = []

    def look(event: Any) -> None:
        share = event.new.get("greedy k=5", 0.0)
        if 0.0 < share < 1.0 and not shares:
            shares.append(share)
            item.starts.cancel()

    item.starts.param.watch(look, "progress")
    item.start()
    hand.do_all()
    assert shares, "it was at work when it was cancelled"
    assert item.starts.status == "Cancelled: 1 of 3 runs was done and is kept."
    assert not item.starts.running
    assert item.starts.progress == {}
    assert [run.name for run in item.runs.finished] == ["mondrian k=5"]
    # and what is left can be started again
    item.start()
    hand.do_all()
    assert [run.name for run in item.runs.finished[1:]] == ["greedy k=5", "nh k=5"]
    item.close()


def test_a_run_that_waits_is_cancelled_before_it_begins(hand: Hand) -> None:
    item = three_methods()
    item.start()
    item.starts.cancel()
    assert item.starts.status == "Cancelled: no run was done."
    assert not item.starts.running
    hand.do_all()
    assert item.runs.finished == []
    assert item.turns.line.waiting == item.turns.line.busy == 0
    item.close()


@pytest.mark.parametrize("is_stopped", [True, False], ids=["while it works", "when it is over"])
def test_a_run_that_takes_too_long_is_stopped_and_says_so(
    hand: Hand, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    """Its timer stops it; a run that ends before its timer is heard has taken too long all the same."""
    clock = itertools.count(0.0, 7.0)

    class Timer(SimpleNamespace):
        def start(self) -> None:
            assert self.seconds == 0.3
            if is_stopped:
                self.work()

        def cancel(self) -> None:
            pass

    timers = SimpleNamespace(
        Lock=threading.Lock, Timer=lambda seconds, work: Timer(seconds=seconds, work=work)
    )
    monkeypatch.setattr(attempt, "threading", timers)
    monkeypatch.setattr(attempt, "perf_counter", lambda: next(clock))
    item = opened(Workspace(limits=Limits(seconds=0.3), line=FairQueue(1)))
    try:
        item.start()
        hand.do_all()
        assert "stopped after 0.3 s" in item.runs.finished[0].result.problem
        assert not item.runs.finished[0].ok
        assert item.runs.chosen is None
        with pytest.raises(ParameterError, match="no result"):
            item.publish(1)
    finally:
        item.close()


def test_a_queue_is_fair_and_says_where_one_stands(hand: Hand) -> None:
    line = FairQueue(1)
    users = [Workspace(line=line) for _ in range(3)]
    order: list[int] = []
    try:
        for number, item in enumerate(users):
            opened(item, 120)
            item.draft.set_ks([2, 3, 4])
            item.runs.param.watch(lambda event, number=number: order.append(number), "finished")
        line.join("somebody", lambda: None, lambda: None)
        for item, place in zip(users, ("1st", "2nd", "3rd"), strict=True):
            item.start()
            assert f"you are {place} in the queue" in item.starts.status
        assert (line.waiting, line.busy, line.ended) == (9, 1, 0)
        hand.do_all()
        # three runs each, and nobody waits for more than one run of each of the others
        assert order == [0, 1, 2] * 3
        assert (line.waiting, line.busy, line.ended) == (0, 0, 10)
    finally:
        for item in users:
            item.close()


def test_a_user_with_many_runs_does_not_keep_the_others_waiting(hand: Hand) -> None:
    line = FairQueue(1)
    many, few = (opened(Workspace(line=line), 60) for _ in range(2))
    ended: list[str] = []
    for item, name in ((many, "many"), (few, "few")):
        item.runs.param.watch(lambda event, name=name: ended.append(name), "finished")
    many.draft.set_ks([2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    many.start()
    few.start()
    hand.do_all()
    assert len(ended) == 11
    assert ended.index("few") == 1
    for item in (many, few):
        item.close()


def test_changes_reach_params_through_schedule_alone(hand: Hand) -> None:
    waiting: list[Any] = []
    item = Workspace(schedule=waiting.append)
    try:
        opened(item)
        item.start()
        hand.do_all()
        assert item.runs.finished == []
        while waiting:
            waiting.pop(0)()
        assert len(item.runs.finished) == 1
        assert not item.starts.running
    finally:
        item.close()


# ---------------------------------------------------------------------------------------- publishing


@pytest.mark.parametrize(
    "algorithm",
    ["mondrian", *(pytest.param(name, marks=pytest.mark.slow) for name in ("greedy", "k-concealment", "nh"))],
)
def test_the_flow_file_and_the_seed_repeat_the_release_bit_by_bit(
    workspace: Workspace, tmp_path: Path, algorithm: str
) -> None:
    frame = datasets.census_like(300, seed=5)
    workspace.opener.open_file("people.csv", upload(tmp_path, frame))
    workspace.draft.set_algorithms([algorithm, "sort-greedy"])
    workspace.draft.set_ks([4, 6])
    workspace.start()
    workspace.wait(WAIT)
    run = next(run for run in workspace.runs.finished if run.name == f"{algorithm} k=6")
    publication = workspace.publish(run.id)
    assert publication.ok
    assert {finding.criterion for finding in publication.findings} >= {"covers"}
    assert "seed" not in publication.flow
    assert publication.seed.strip() not in publication.flow + publication.report.decode()
    home = tmp_path / "elsewhere"
    home.mkdir()
    (home / "people.csv").write_bytes((workspace.folder / "people.csv").read_bytes())
    (home / "flow.yaml").write_text(publication.flow, encoding="utf-8")
    (home / "seed").write_text(publication.seed, encoding="ascii")
    with pytest.raises(SystemExit) as end:
        main(["run", str(home / "flow.yaml"), "--seed-file", str(home / "seed"), "--quiet"])
    assert end.value.code == 0
    assert (home / "out" / "people.csv").read_bytes() == publication.tables[".csv"]
    again = workspace.publish(run.id)
    assert again.tables[".csv"] == publication.tables[".csv"]
    assert again.warnings == publication.warnings
    assert pd.read_parquet(io.BytesIO(publication.tables[".parquet"])).shape == (300, 9)
    proof = home / "owner" / strict_yaml.loads(publication.flow).data["flow"] / "certificate.npz"
    (home / "theirs.npz").write_bytes(publication.certificate)
    from anonflow.release.certificate import Certificate

    ours, theirs = Certificate.load(proof), Certificate.load(home / "theirs.npz")
    assert (ours.originals == theirs.originals).all()


def test_nothing_is_handed_out_when_a_check_fails(workspace: Workspace) -> None:
    opened(workspace)
    put_at(
        workspace.draft,
        ("steps", "verify"),
        ["covers", {"p-sensitivity": {"column": "Salary-class", "p": 40}}],
    )
    workspace.start()
    workspace.wait(WAIT)
    publication = workspace.publish(workspace.runs.finished[0].id)
    assert not publication.ok
    assert publication.tables == {}
    assert publication.report == publication.certificate == b""
    assert any(not finding.holds for finding in publication.findings)


# ------------------------------------------------------------------------------- flows from strangers


@pytest.mark.parametrize(
    "source",
    ["{csv: /etc/passwd}", "{csv: ../people.csv}", "{csv: a/../../b.csv}", "{parquet: 'C:\\x.parquet'}"],
)
def test_a_flow_names_no_file_outside_its_folder(workspace: Workspace, source: str) -> None:
    text = f"""
flow: a
version: 1
table:
  source: {source}
  columns: {{a: {{role: quasi-identifier, kind: categorical}}}}
steps: [{{anonymize: {{algorithm: greedy, k: 2}}}}]
"""
    with pytest.raises(FlowError, match="outside the folder"):
        open_flow(workspace, text)


def test_a_flow_names_no_hierarchy_register_or_target_outside(workspace: Workspace) -> None:
    text = """
flow: a
version: 1
table:
  source: {csv: a.csv}
  columns:
    a: {role: quasi-identifier, kind: hierarchy, hierarchy: /etc/passwd}
    b: {role: quasi-identifier, kind: hierarchy, hierarchy: {csv: ../secret.csv}}
steps:
  - anonymize: {algorithm: greedy, k: 2}
  - attack: [{journalist: {population: ~/../x.csv}}]
publish: {table: ../../x.csv, report: /x.html}
"""
    with pytest.raises(FlowError) as caught:
        open_flow(workspace, text)
    assert len(caught.value.problems) == 5
    assert "passwd" not in str(caught.value)


def test_a_link_leads_nowhere(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n2\n")
    (workspace.folder / "in.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(FlowError, match="outside the folder"):
        open_flow(
            workspace,
            "flow: a\nversion: 1\ntable: {source: {csv: in.csv}, columns: "
            "{a: {role: quasi-identifier, kind: categorical}}}\nsteps: [{anonymize: {algorithm: greedy, k: 2}}]\n",
        )


def test_a_flow_goes_on_where_it_was(workspace: Workspace, tmp_path: Path) -> None:
    workspace.opener.open_file("people.csv", upload(tmp_path, datasets.census_like(60, seed=2)))
    workspace.draft.set_algorithms(["greedy", "nh"])
    workspace.data.set_column("Race", role="insensitive")
    text = workspace.draft.text()
    workspace.data.set_column("Race", role="quasi-identifier")
    open_flow(workspace, text)
    assert workspace.data.algorithms == ["greedy", "nh"]
    assert "Race" not in workspace.data.table.qi_columns
    other = Workspace()
    try:
        open_flow(other, text)  # the file is not theirs
        assert other.data.frame is None
        assert other.opener.waits_for == "people.csv"
    finally:
        other.close()


# --------------------------------------------------------------------------------------- coded aside


@pytest.fixture
def coded(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> list[bool]:
    """For each table that is coded, whether that was done aside; 30 records are few."""
    aside: list[bool] = []
    code = open_table.code

    def watched(*args: Any) -> Any:
        aside.append(hand.is_working)
        return code(*args)

    monkeypatch.setattr(screen_work, "FEW", 30)
    monkeypatch.setattr(open_table, "code", watched)
    return aside


def test_many_records_are_coded_in_another_thread(hand: Hand, coded: list[bool]) -> None:
    opened = Workspace(aside=True)
    opened.opener.open_dataset("census_like", n=60, seed=3)
    assert opened.data.coding
    assert opened.data.table is None
    assert opened.data.problems == (open_table.CODING,)
    assert opened.data.algorithms == ["greedy"]
    with pytest.raises(FlowError, match="being coded"):
        opened.start()
    assert hand.names == ["anonflow-aside"]
    hand.do_all()
    assert not opened.data.coding
    assert opened.data.problems == ()
    first = opened.data.table
    assert first.n == 60

    # an edit of the columns: what was coded is shown until the new one is there
    opened.data.set_column("Education", role="insensitive")
    assert opened.data.coding
    assert opened.data.table is first
    opened.draft.set_ks([3])  # an edit of something else meanwhile
    assert opened.data.ks == [3]
    assert opened.data.problems == (open_table.CODING,)
    opened.data.set_column(
        "Gender", role="insensitive"
    )  # and another of the columns: the first is not shown any more
    hand.do_all()
    assert set(first.qi_columns) - set(opened.data.table.qi_columns) == {"Education", "Gender"}
    assert not opened.data.problems

    # what is undone is coded aside, too
    opened.draft.undo()
    assert opened.data.coding
    hand.do_all()
    assert set(first.qi_columns) - set(opened.data.table.qi_columns) == {"Education"}

    # columns that cannot be used are said when they are known
    opened.data.set_column("Marital", kind="numeric")
    hand.do_all()
    assert opened.data.table is None
    assert "Marital" in opened.data.problems[0]
    assert all(coded)
    opened.close()
    assert not opened.data.coding


def test_few_records_are_coded_at_once(coded: list[bool]) -> None:
    opened = Workspace(aside=True)
    opened.opener.open_dataset("census_like", n=30, seed=3)
    assert not opened.data.coding
    assert opened.data.table.n == 30
    assert coded == [False]
    opened.close()


def test_another_table_is_not_run_by_what_waited_for_the_first(hand: Hand, coded: list[bool]) -> None:
    opened = Workspace(aside=True)
    opened.opener.open_dataset("census_like", n=60, seed=3)
    hand.do_all()
    opened.start()
    hand.do_all()
    opened.wait()
    (first,) = opened.runs
    opened.data.set_column("Education", role="insensitive")
    opened.starts.apply(first.id, [(("steps", "anonymize", "k"), 3)])
    assert opened.data.coding
    opened.opener.open_dataset("census_like", n=70, seed=3)
    hand.do_all()
    opened.wait()
    assert opened.data.table.n == 70
    assert list(opened.runs) == []
    assert not opened.starts.running
    opened.close()


def test_a_table_that_is_closed_while_it_is_coded_does_not_come_back(hand: Hand, coded: list[bool]) -> None:
    opened = Workspace(aside=True)
    opened.opener.open_dataset("census_like", n=60, seed=3)
    opened.close()
    hand.do_all()
    assert coded == []  # nobody waits for it
    assert opened.data.table is None
    assert opened.data.frame is None


def test_what_coding_does_not_foresee_is_a_problem_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_work, "FEW", 30)

    def fails(*args: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(open_table, "code", fails)
    opened = Workspace(aside=True)
    opened.opener.open_dataset("census_like", n=60, seed=3)
    opened.wait(WAIT)
    assert not opened.data.coding
    assert "not enough memory" in opened.data.problems[0]
    opened.close()


def test_an_edit_that_leaves_the_table_tells_nobody_of_a_table(workspace: Workspace) -> None:
    opened(workspace)
    tables: list[object] = []
    workspace.data.param.watch(lambda event: tables.append(event.new), "table")
    workspace.draft.set_ks([4])
    workspace.draft.set_algorithms(["mondrian"])
    assert tables == []
    workspace.data.set_column("Age", weight=2)
    assert len(tables) == 1
    assert tables[0] is workspace.data.table


# --------------------------------------------------------------------------- no draw until one passes


def rerun(workspace: Workspace) -> int:
    """The seed of another run of the draft."""
    workspace.start()
    workspace.wait(WAIT)
    return workspace.runs.finished[-1].seed


def test_a_draft_that_runs_again_draws_the_same_release_until_one_holds(workspace: Workspace) -> None:
    opened(workspace).draft.set_algorithms(["mondrian"])
    first = rerun(workspace)
    assert rerun(workspace) == first
    workspace.runs.delete(1)
    workspace.runs.delete(2)
    assert rerun(workspace) == first, "a run that was deleted came back with another draw"
    workspace.draft.set_ks([7])
    assert rerun(workspace) != first
    opened(workspace).draft.set_algorithms(["mondrian"])
    assert rerun(workspace) == first, "a table that was opened again got another draw"
    workspace.runs.note_drawn("the table", workspace.runs.finished[-1])
    assert rerun(workspace) != first


def test_the_seed_of_a_draft_outlives_its_server(tmp_path: Path) -> None:
    first = opened(Workspace(place=SessionFolders(home=tmp_path / "home").begin("a key")))
    first.draft.set_algorithms(["mondrian"])
    seed = rerun(first)
    first.runs.delete(1)
    first.close(keep=True)
    again = Workspace(place=SessionFolders(home=tmp_path / "home").begin("a key"))
    again.opener.resume()
    assert rerun(again) == seed
    again.close()
