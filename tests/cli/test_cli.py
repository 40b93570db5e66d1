"""The shell: what it prints where, and the exit status of every way to end."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anonflow as af
from anonflow import cli, engine
from anonflow.cli.command_line import COMMANDS
from tests import ROOT
from tests.cases.flow_files import COLUMNS, REPORTED, everything_in, people, write_flow
from tests.cases.runs import shell


def process(*arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "anonflow", *map(str, arguments)],
        cwd=settings.pop("cwd", ROOT),
        env={**os.environ, "PYTHONPATH": str(ROOT), **settings.pop("env", {})},
        capture_output=True,
        text=True,
        check=False,
        **settings,
    )


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "people.schema.yaml"
    path.write_text(
        "columns:\n  age: {role: quasi-identifier, kind: numeric}\n"
        "  city: {role: quasi-identifier, kind: categorical}\n  income: {role: sensitive}\n"
    )
    return path


def test_run_prints_a_short_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = shell(capsys, "run", write_flow(tmp_path, publish=REPORTED))
    assert status == 0
    lines = out.splitlines()
    assert lines[0].split("  ")[0] == "method"
    for word in ("records", "k", "GCP", "usefulness", "checks passed", "seconds"):
        assert word in lines[0]
    assert lines[2].split()[:3] == ["greedy", "3", "60"]
    assert "2/2" in lines[2]
    assert out.count("published ") == 3  # the table, its description, the report
    assert "for the owner alone" in out
    assert "anonymizing 3 partitions" in err
    # what is lost is said before the attackers and the card are computed
    steps = [f"loss: GCP {lines[2].split()[3]}", "drawing", "judging the release", "writing"]
    assert [line for line in err.splitlines() if line in steps] == steps
    assert "s in all" in lines[-1]
    assert "seconds: those of a method on each partition, added up" in lines


def test_risk_says_that_it_shows_some_sets_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"c{number}" for number in range(5)]
    schema = "columns:\n" + "".join(
        f"  {name}: {{role: quasi-identifier, kind: categorical}}\n" for name in names
    )
    (tmp_path / "s.yaml").write_text(schema)
    (tmp_path / "t.csv").write_text(
        "\n".join([",".join(names), "a,b,c,d,e", "a,c,c,e,e", "b,b,b,b,b"]) + "\n"
    )
    _, out, _ = shell(capsys, "risk", tmp_path / "t.csv", "--schema", tmp_path / "s.yaml")
    assert "the first 20 of 25 sets; --json lists all" in out
    _, out, _ = shell(capsys, "risk", tmp_path / "t.csv", "--schema", tmp_path / "s.yaml", "--columns", 1)
    assert "sets;" not in out


def test_risk_shows_the_sets_where_the_weights_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person's rows have different weights: the sets of columns need none. Whoever names a fraction asks for the population."""
    (tmp_path / "t.csv").write_text(
        "who,age,w\n" + "".join(f"p{at // 2},{20 + at},{1 + at % 3}\n" for at in range(40))
    )
    (tmp_path / "s.yaml").write_text(
        "columns:\n  who: {role: unit}\n  age: {role: quasi-identifier, kind: numeric}\n  w: {role: weight}\n"
    )
    command = ("risk", tmp_path / "t.csv", "--schema", tmp_path / "s.yaml")
    status, out, err = shell(capsys, *command)
    assert status == 0
    assert out.splitlines()[0].startswith("columns")
    assert "the population is left out: column 'w': 20 units have rows of different weights" in err
    assert shell(capsys, *command, "--fraction", "0.1")[0] == 2


def test_commands_that_read_tables_name_all_formats(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("schema", "init", "prepare", "risk"):
        _, out, _ = shell(capsys, command, "--help")
        for name in ("CSV", "Parquet", "SPSS", "Stata", "SAS", "Excel"):
            assert name in out, (command, name)


def test_quiet_says_only_what_matters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = shell(capsys, "run", write_flow(tmp_path), "--quiet")
    assert status == 0
    assert err.splitlines() == ["warning: 1 column is not named by the flow and not published: zip"]


@pytest.mark.slow
def test_python_dash_m_and_the_entry_point(tmp_path: Path) -> None:
    """In a locale whose encoding has no dash and no multiplication sign."""
    plain = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = process("run", write_flow(tmp_path), cwd=tmp_path, env=plain)
    assert done.returncode == 0, done.stderr
    assert "published out/release.csv" in done.stdout
    assert process("--version").stdout == f"anonflow {af.__version__}\n"


def test_output_does_not_depend_on_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_flow(tmp_path)
    (tmp_path / "seed").write_text("12" * 20)
    names = set()
    for encoding in ("ascii", "utf-8", "latin-1"):
        out = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
        with pytest.raises(SystemExit) as caught:
            cli.main(["run", str(tmp_path / "flow.yaml"), "--again", "--seed-file", str(tmp_path / "seed")])
        sys.stdout.flush()
        assert caught.value.code == 0, encoding
        names.add(out.getvalue().decode(encoding).splitlines()[2].rsplit(maxsplit=1)[0])
    assert len(names) == 1


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_a_help_text_begins_with_what_the_command_does(command: Callable[..., int]) -> None:
    """To somebody at a shell: nothing is returned there."""
    does = {"Check", "Guess", "List", "Make", "Open", "Run", "Search", "Show", "Try"}
    assert str(command.__doc__).split()[0] in does


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "--help")
    assert status == 0
    for name in (
        "run",
        "plan",
        "validate",
        "schema",
        "verify",
        "compare",
        "search",
        "algorithms",
        "datasets",
        "dashboard",
    ):
        assert name in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["run"],
        ["run", "a.yaml", "b.yaml"],
        ["run", "a.yaml", "--workers", "many"],
        ["run", "a.yaml", "--no-such-option"],
        ["verify", "--original", "a.csv"],
        ["compare", "a.csv"],
        ["validate"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = shell(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "--help" in err


def test_validate_reports_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_flow(tmp_path)
    bad = tmp_path / "bad.yaml"
    bad.write_text("flow: x\nversion: 1\nsteps: 4\n")
    status, out, err = shell(capsys, "validate", good, bad)
    assert status == 2
    assert "test, 1 run, 2 quasi-identifiers" in out
    assert f"{bad}:3:8: 'steps' is a list" in err
    assert "'table' is missing" in err


def test_schema_writes_a_guess_that_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_flow(tmp_path)
    status, out, _ = shell(capsys, "schema", tmp_path / "people.csv")
    assert status == 0
    target = tmp_path / "guess.yaml"
    assert shell(capsys, "schema", tmp_path / "people.csv", "-o", target)[0] == 0
    assert target.read_text() == out
    assert set(af.Schema.read(target)) <= {"age", "city", "zip", "income"}
    assert shell(capsys, "schema", tmp_path / "people.csv", "-o", target)[0] == 2


def test_a_guessed_schema_is_read_back_whatever_columns_are_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A return ends a comment of a YAML file."""
    name = "town\rcolumns: {x: {role: sensitive}}"
    text = f'age,"{name}"\n' + "".join(f"{row},a{row % 3}\n" for row in range(30))
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    target = tmp_path / "schema.yaml"
    assert shell(capsys, "schema", tmp_path / "t.csv", "-o", target)[0] == 0
    assert list(af.Schema.of(target)) == ["age", name]


def test_a_schema_that_does_not_fit_the_disk_leaves_no_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.TextIOWrapper):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def opened(path: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
        return Full(real(path, f"{mode}b")) if mode in ("w", "x") else real(path, mode, *args, **more)

    real = Path.open
    monkeypatch.setattr(Path, "open", opened)
    target = tmp_path / "schema.yaml"
    status, _, err = shell(capsys, "schema", "--flow", "-o", target)
    assert status != 0
    assert "No space left" in err
    assert not target.exists()


def test_verify_a_release(tmp_path: Path, schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine.run(write_flow(tmp_path))
    arguments = ["--original", tmp_path / "people.csv", "--release", tmp_path / "out" / "release.csv"]
    status, out, _ = shell(capsys, "verify", *arguments, "--schema", schema, "--k", 3)
    assert status == 0
    assert "covers" in out
    certificate = next((tmp_path / "owner" / "test").glob("certificate*"))
    status, out, _ = shell(
        capsys, "verify", *arguments, "--schema", tmp_path / "flow.yaml", "--certificate", certificate,
        "--criterion", "covers", "--criterion", "k-regular", "--json",
    )  # fmt: skip
    assert status == 0
    answer = json.loads(out)
    assert answer["holds"]
    assert [check["criterion"] for check in answer["checks"]] == ["covers", "k-regular"]


@pytest.mark.parametrize("units", ["cap: 2", "recipes: {age: max, city: common, income: first}"])
def test_a_release_of_people_with_several_rows_is_verified_as_the_flow_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], units: str
) -> None:
    """The rows within a cap are drawn by the seed, which lies beside the certificate."""
    lines = people()
    rows = [f"patient,{lines[0]}", *(f"{at // 3},{line}" for at, line in enumerate(lines[1:]))]
    role = "unit" if "cap" in units else "identifier"
    flow = write_flow(
        tmp_path,
        data="\n".join(rows).encode(),
        source=f"{{csv: people.csv}}\n  units: {{unit: patient, {units}}}",
        columns=f"    patient: {{role: {role}}}\n{COLUMNS}",
        partition="{}",
        steps="  - draw: {}\n",
    )
    assert engine.run(flow).ok
    files = ["--original", tmp_path / "people.csv", "--release", tmp_path / "out" / "release.csv"]
    files += ["--schema", flow]
    certificate = tmp_path / "owner" / "test" / "certificate.npz"
    status, out, err = shell(capsys, "verify", *files, "--certificate", certificate)
    assert status == 0, out + err
    for command in ("verify", "attack"):
        status, _, err = shell(capsys, command, *files, "--k", 3)
        assert status == (2 if "cap" in units else 0), err
        assert ("the file in the owner's folder" in err) == ("cap" in units)
    assert shell(capsys, "risk", tmp_path / "people.csv", "--schema", flow)[0] == 0


def test_a_release_whose_only_column_is_named_like_a_number_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its description says that the first line names the column; of the original the caller says it."""
    flow = write_flow(
        tmp_path,
        data="\n".join(["7", *(str(at % 10) for at in range(60))]).encode(),
        source="{csv: people.csv, header: true}",
        columns='    "7": {role: quasi-identifier, kind: numeric}\n',
    )
    assert engine.run(flow).ok
    release = ["--release", tmp_path / "out" / "release.csv", "--schema", flow]
    for original in ([], ["--original", tmp_path / "people.csv"]):
        status, out, err = shell(
            capsys, "verify", *release, *original, "--criterion", "boundary" if original else "k-regular"
        )
        assert "looks like a record" not in err
        assert status == (0 if original else 1), out + err


def test_verify_finds_what_is_wrong(tmp_path: Path, schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_flow(tmp_path)
    frame = pd.read_csv(tmp_path / "people.csv", dtype=str)[["age", "city", "income"]]
    frame.to_csv(tmp_path / "raw.csv", index=False)
    status, out, err = shell(
        capsys, "verify", "--original", tmp_path / "people.csv", "--release", tmp_path / "raw.csv",
        "--schema", schema, "--k", 3, "--criterion", "k-anonymity",
    )  # fmt: skip
    assert status == 1
    assert "FAILS" in out
    assert "anonflow: k-anonymity: fails for" in err
    assert "Athens" not in out + err


def test_a_run_on_the_whole_table_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = write_flow(tmp_path, publish="", more="matrix:\n  partition.size: [20, null]\n")
    status, out, _ = shell(capsys, "run", flow)
    assert status == 0
    assert "greedy 20 " in out
    assert "greedy on the whole table " in out
    assert "None" not in out


def test_compare_prints_and_writes(tmp_path: Path, schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_flow(tmp_path)
    status, out, err = shell(
        capsys, "compare", tmp_path / "people.csv", "--schema", schema, "--k", "2,3",
        "--algorithms", "greedy", "--partition-size", 20, "--csv", tmp_path / "a" / "runs.csv",
        "--html", tmp_path / "b" / "runs.html", "--measure", "association", "--measure", "{query-error: {queries: 20}}",
    )  # fmt: skip
    assert status == 0
    assert len(out.splitlines()) == 5  # the header, a line under it, two runs, and what the seconds are
    assert "anonymizing 6 partitions" in err
    assert "loss: " not in err  # nothing follows the runs: the table has it
    assert pd.read_csv(tmp_path / "a" / "runs.csv")["k"].tolist() == [2, 3]  # in folders that were not there
    assert {"association", "query-error"} <= set(pd.read_csv(tmp_path / "a" / "runs.csv"))
    assert "What an analysis loses" in (tmp_path / "b" / "runs.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--measure", "association"], "--measure needs --csv or --html"),
        (["--measure", "asociation", "--csv", "r.csv"], "did you mean 'association'?"),
        (["--measure", "{association: {by}", "--csv", "r.csv"], "--measure"),
    ],
)
def test_a_wrong_measure_is_told_before_anything_runs(
    arguments: list[str], words: str, tmp_path: Path, schema: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write_flow(tmp_path)
    status, out, err = shell(capsys, "compare", tmp_path / "people.csv", "--schema", schema, *arguments)
    assert (status, out) == (2, "")
    assert words in err


def test_methods_and_data_sets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "algorithms")
    assert status == 0
    assert "greedy" in out
    assert {"greedy"} <= {row["name"] for row in json.loads(shell(capsys, "algorithms", "--json")[1])}
    status, out, _ = shell(capsys, "datasets")
    assert status == 0
    assert "census_like" in out
    assert "nursery" in {row["name"] for row in json.loads(shell(capsys, "datasets", "--json")[1])}


def test_infeasible_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_flow(tmp_path, partition="{}", anonymize="{algorithm: greedy, k: 100}")
    status, out, err = shell(capsys, "run", path, "--quiet")
    assert status == 1
    assert out == ""
    assert "60 records cannot hide among k = 100" in err
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}


def test_a_failed_check_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_flow(tmp_path, steps="  - verify: [{p-sensitivity: {p: 40, column: income}}]\n")
    status, out, err = shell(capsys, "run", path)
    assert status == 1
    assert "0/1" in out
    assert "published" not in out
    assert "nothing was published" in err


def test_a_bug_is_one_line_and_status_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("Athens")

    monkeypatch.setattr("anonflow.engine.flows.source.read", broken)
    path = write_flow(tmp_path)
    status, _, err = shell(capsys, "run", path, "--quiet")
    assert status == 3
    assert len(err.splitlines()) == 1
    assert "a bug in anonflow: KeyError at" in err
    assert "report" in err
    assert "Athens" not in err
    assert "Traceback" in shell(capsys, "--debug", "run", path, "--quiet")[2]


def test_a_full_disk_is_status_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **settings: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules["anonflow.engine.publish"], "write_table", full)
    status, _, err = shell(capsys, "run", write_flow(tmp_path), "--quiet")
    assert status == 3
    assert "No space left" in err
    assert not list((tmp_path / "out").glob("*"))


def test_a_schema_is_guessed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guess and reasons come from one look at each column."""
    from anonflow.table import infer

    (tmp_path / "people.csv").write_text("age,name\n" + "".join(f"{i % 9},n{i}\n" for i in range(40)))
    looked_at: list[str] = []
    look = infer._advice
    monkeypatch.setattr(infer, "_advice", lambda name, *cells: looked_at.append(name) or look(name, *cells))
    status, out, _ = shell(capsys, "schema", tmp_path / "people.csv")
    assert status == 0
    assert "# age: " in out
    assert looked_at == ["age", "name"]


def test_seed_file_and_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_flow(tmp_path)
    (tmp_path / "seed").write_text("ab" * 16 + "\n")
    releases = []
    for more in (["--seed-file", tmp_path / "seed"], ["--replay", tmp_path / "owner" / "test"]):
        assert shell(capsys, "run", path, "--quiet", *more)[0] == 0
        releases.append((tmp_path / "out" / "release.csv").read_bytes())
    assert releases[0] == releases[1]
    both = ["--seed-file", tmp_path / "seed", "--replay", tmp_path / "owner" / "test"]
    assert shell(capsys, "run", path, *both)[0] == 2


def test_progress_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", str(write_flow(tmp_path)), "--json"])
    assert caught.value.code == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert lines[0]["event"] == "flow-started"
    assert lines[-1] == {
        "event": "flow-done",
        "at": lines[-1]["at"],
        "ok": True,
        "seconds": lines[-1]["seconds"],
    }
    assert sum(line["event"] == "partition-done" for line in lines) == 3


def test_the_schema_of_flows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["schema", "--flow"])
    assert caught.value.code == 0
    assert json.loads(capsys.readouterr().out)["title"] == "anonflow flow"
    for wrong in (["schema"], ["schema", "--flow", str(write_flow(tmp_path))]):
        with pytest.raises(SystemExit) as caught:
            cli.main(wrong)
        assert caught.value.code == 2


def test_errors_in_the_schema_of_a_flow_name_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = tmp_path / "flow.yaml"
    flow.write_text("flow: f\ntable: {columns: {age: {role: quasi, kind: numeric}, city: {role: public}}}\n")
    (tmp_path / "people.csv").write_text("age,city\n1,Ulm\n")
    people = str(tmp_path / "people.csv")
    with pytest.raises(SystemExit) as caught:
        cli.main(["verify", "--original", people, "--release", people, "--schema", str(flow), "--k", "2"])
    assert caught.value.code == 2
    err = capsys.readouterr().err
    for name in ("age", "city"):
        assert f"{flow}: column {name!r}: unknown role" in err


@pytest.mark.slow
@pytest.mark.machine
def test_processes_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = write_flow(tmp_path)
    (tmp_path / "seed").write_text("ab" * 16)
    arguments = ("run", flow, "--seed-file", tmp_path / "seed", "--workers", 1)
    assert shell(capsys, *arguments)[0] == 0
    release = (tmp_path / "out" / "release.csv").read_bytes()
    done = process(*arguments, "--scheduler", "processes", "--fresh", "--again")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out" / "release.csv").read_bytes() == release


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_ctrl_c_is_130_and_nothing_is_left(tmp_path: Path, scheduler: str) -> None:
    """All processes of the terminal get it, once a partition is done."""
    write_flow(
        tmp_path,
        source="{dataset: census_like, n: 30000}",
        columns=(
            "    Age: {role: quasi-identifier, kind: numeric}\n"
            "    Country: {role: quasi-identifier, kind: categorical}\n"
            "    Occupation: {role: quasi-identifier, kind: categorical}\n"
        ),
        partition="{size: 2000}",
        anonymize="{algorithm: greedy, k: 50}",
    )
    running = subprocess.Popen(
        [
            sys.executable, "-m", "anonflow", "run", "flow.yaml",
            "--scheduler", scheduler, "--workers", "1", "--log-level", "debug",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )  # fmt: skip
    with running:
        assert running.stderr is not None
        lines = []
        for line in running.stderr:
            lines.append(line)
            if line.startswith("debug: partition"):
                break
        assert running.poll() is None, lines
        os.killpg(running.pid, signal.SIGINT)
        rest = running.stderr.read()
        assert running.wait(30) == 130, rest
    assert "interrupted; nothing was published" in rest
    assert "Traceback" not in rest
    # nothing is published; what was done stays with the owner
    left = {name for name in everything_in(tmp_path) if not name.startswith("owner")}
    assert left == {"flow.yaml", "people.csv"}


@pytest.mark.slow
@pytest.mark.data
def test_adult_from_the_shell(
    tmp_path: Path,
    data_folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "flows").mkdir()
    shutil.copy(ROOT / "flows" / "adult.yaml", tmp_path / "flows")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANONFLOW_DATA", str(data_folder))
    status, out, err = shell(capsys, "run", "flows/adult.yaml")
    assert status == 0, err
    row = out.splitlines()[2].split()
    assert row[:3] == ["greedy", "10", "30162"]
    assert float(row[3]) <= 0.045
    assert {"out/adult.parquet", "out/adult.html", "flows/owner/adult/seed"} <= everything_in(tmp_path)


def test_the_shell_begins_without_the_engine() -> None:
    """What is wrong with a process, such as a working folder that is gone, is said before numba is imported."""
    code = "import sys, anonflow.cli.exit_status; print([n for n in ('numba', 'anonflow.engine') if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_describe_says_what_a_receiver_sees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = shell(capsys, "run", write_flow(tmp_path), "--quiet")
    release = tmp_path / "out" / "release.csv"
    assert f"{release.name}-metadata.json" in out
    status, out, _ = shell(capsys, "describe", release)
    assert status == 0
    for words in (
        "rows",
        "k-regular, k = 3",
        "ranges",
        "not published",
        "can be answered:",
        "cannot be answered:",
    ):
        assert words in out
    status, out, _ = shell(capsys, "describe", release, "--json")
    assert status == 0
    assert json.loads(out) == af.read_release(release).summary().to_mapping()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "describe takes a RELEASE, or --release with --schema"),
        (["r.csv", "--release", "r.csv"], "describe takes a RELEASE, or --release with --schema"),
        (["--release", "r.csv"], "--release needs --schema"),
        (["r.csv", "--original", "o.csv"], "a receiver has neither"),
        (
            ["r.csv"],
            "no description says what its cells mean; give the schema, or put r.csv-metadata.json beside it",
        ),
    ],
)
def test_describe_is_told_one_thing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("a\n1\n")
    status, _, err = shell(capsys, "describe", *arguments)
    assert status == 2
    assert text in err


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ANONFLOW_COMPLETE", f"source_{name}")
    status, script, _ = shell(capsys)
    assert status == 0
    assert f"complete_{name}" in script
    monkeypatch.setenv("_ANONFLOW_COMPLETE", f"complete_{name}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    for typed, wanted in (("anonflow ru", "run"), ("anonflow compare --me", "--measure")):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
        status, out, _ = shell(capsys)
        assert status == 0
        assert wanted in out


def test_a_table_without_a_quasi_identifier_has_a_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no schema yet: somebody must say what others may know."""
    file = tmp_path / "people.csv"
    file.write_text("name,email\n" + "".join(f"Ann {at},ann{at}@example.org\n" for at in range(30)))
    status, out, _ = shell(capsys, "schema", file)
    assert status == 0
    assert "# No column looks like a quasi-identifier" in out
    assert out.count("role: identifier") == 2
    assert shell(capsys, "schema", file, "--json")[0] == 0
