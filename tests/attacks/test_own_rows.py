"""A file whose rows were shuffled, but whose matches were never drawn: every row carries its own record's values.

Who runs the method again knows which record each row was made from, and so everybody's values. Figures: 1.0 of the rows are
named by it, while every criterion holds and the order of the rows says nothing; 1/k after a draw. It cannot be read off
the file, so the verifier may only remark on it, and only where the method is run again: a warning below p = 1e-6. It must
stay silent about real releases (0 of 40), also where a draw decides about whole cycles at once (k = 2).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import risk
from anonflow.criteria.order import chance
from anonflow.errors import ParameterError
from tests.cases.runs import shell

SCHEMA = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "work": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


def table(n: int = 160, seed: int = 1) -> af.Table:
    rng = np.random.default_rng(seed)
    ages, work = rng.integers(18, 80, n), rng.choice(list("abcd"), n)
    return af.Table(pd.DataFrame({"age": ages, "work": work, "ill": rng.choice(list("uvwxyz"), n)}), SCHEMA)


def undrawn(people: af.Table, k: int = 4, seed: int = 3, **options: object) -> pd.DataFrame:
    """What a careless owner publishes: everybody's own row, shuffled."""
    own = af.anonymize(people, "greedy", k=k, **options).frame().assign(ill=people.frame["ill"])
    return own.sample(frac=1, random_state=seed).reset_index(drop=True)


def test_own_rows_are_remarked_on_where_the_method_is_run_again() -> None:
    people = table()
    file = undrawn(people)
    check = af.verify(people, file, ["covers", "k-regular"], k=4)
    assert check  # from the file alone nothing is wrong, and nothing can be
    assert len(check.remarks) == 1
    seen = risk.own_rows_test(people, file, af.anonymize(people, "greedy", k=4))
    assert (seen.rows, seen.found, seen.shown) == (160, 160, 160)
    assert seen.expected < 80
    assert seen.drawn < 1e-6 < seen.shuffled
    (remark,) = seen.remarks()
    assert "160 of 160" in remark
    row = af.attack(people, file, risk.OwnRows(af.anonymize(people, "greedy", k=4)), k=4).iloc[0]
    assert row["success"] == 1.0
    assert row["at_risk"] == 160
    assert row["baseline"] == seen.expected / 160


@pytest.mark.parametrize(
    ("k", "method", "seeds"),
    [
        (4, "greedy", 3),
        *(
            pytest.param(*other, 10, marks=pytest.mark.slow)
            for other in ((2, "greedy"), (3, "nh"), (4, "greedy"), (5, "hungarian"))
        ),
    ],
)
def test_real_releases_are_not_suspected(k: int, method: str, seeds: int) -> None:
    for seed in range(seeds):
        people = table(40, seed)
        anon = af.anonymize(people, method, k=k)
        seen = risk.own_rows_test(people, anon.release().frame, anon)
        assert seen.remarks() == ()
        assert seen.found == seen.rows


@pytest.mark.parametrize("change", [lambda at: at, lambda at: at[::-1], lambda at: np.roll(at, 50)])
def test_a_drawn_file_in_an_order_of_its_records(change: object) -> None:
    people = table()
    anon = af.anonymize(people, "greedy", k=4)
    release = anon.release()
    text, place = (
        f[["age", "work"]].astype(str).agg("|".join, axis=1) for f in (anon.frame(), release.frame)
    )
    rank = place.map({t: i for i, t in enumerate(text)})
    order = change(np.argsort(rank.to_numpy(), kind="stable"))  # type: ignore[operator]
    remarks = risk.own_rows_test(people, release.frame.iloc[order], anon).remarks()
    assert len(remarks) == 1
    assert "neighbouring rows" in remarks[0]


def test_a_file_against_the_order_of_the_table() -> None:
    people = table()
    backwards = af.anonymize(people, "greedy", k=4).frame().assign(ill=people.frame["ill"])[::-1]
    _, order, values = af.verify(people, backwards.reset_index(drop=True), ["covers"], k=4).remarks
    assert "against the original table's order" in order
    assert "own records' values" in values


def test_what_another_run_does_not_make_is_counted() -> None:
    people = table()
    seen = risk.own_rows_test(people, undrawn(people), af.anonymize(people, "greedy", k=4, partition_size=40))
    assert seen.found < seen.rows
    assert f"{seen.found:,} of 160" in seen.remarks()[0]


@pytest.mark.slow
def test_only_components_are_looked_at_and_equal_rows_are_taken_together() -> None:
    people = table(2_600, 5)
    file = undrawn(people, partition_size=100)
    seen = risk.own_rows_test(people, file, af.anonymize(people, "greedy", k=4, partition_size=100))
    assert 1_000 < seen.rows < 2_600
    assert seen.drawn < 1e-6
    same = table(60)
    same.frame["age"] = 30
    same = af.Table(same.frame, SCHEMA)
    anon = af.anonymize(same, "greedy", k=4)
    seen = risk.own_rows_test(same, anon.release().frame, anon)
    assert seen.remarks() == ()


def test_what_has_no_own_rows_is_refused() -> None:
    people = table(40)
    anon = af.anonymize(people, "greedy", k=4)
    frame = anon.release().frame
    for method in ("mondrian", "k-concealment"):
        with pytest.raises(ParameterError, match="freeform"):
            risk.own_rows_test(people, frame, af.anonymize(people, method, k=4))
    with pytest.raises(ParameterError, match="numbers of rows"):
        risk.own_rows_test(people, frame[1:], anon)
    with pytest.raises(ParameterError, match="no other column"):
        risk.own_rows_test(people, frame.drop(columns="ill"), anon)
    with pytest.raises(ParameterError, match="own-rows: give"):
        af.attack(people, frame, "own-rows", k=4)


def test_events_that_come_together_are_no_small_chance() -> None:
    """Fifteen cycles that are kept whole, or not at all: all fifteen have a chance of 1 in 32,768."""
    rng = np.random.default_rng(0)
    drawn = (rng.integers(0, 2, (999, 15)).sum(axis=1) * 10).tolist()
    assert chance(150, drawn) > 1e-6
    assert chance(150, (rng.random((999, 150)) < 0.5).sum(axis=1).tolist()) < 1e-6


def written(folder: Path, people: af.Table, release: pd.DataFrame) -> list[object]:
    people.frame.to_csv(folder / "a.csv", index=False)
    release.to_csv(folder / "r.csv", index=False)
    lines = "".join(f"  {name}: {json.dumps(column)}\n" for name, column in SCHEMA.items())
    (folder / "s.yaml").write_text("columns:\n" + lines)
    return [
        "verify",
        "--original",
        folder / "a.csv",
        "--release",
        folder / "r.csv",
        "--schema",
        folder / "s.yaml",
    ]


def test_the_shell_runs_the_method_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = table(80)
    command = [*written(tmp_path, people, undrawn(people)), "--k", 4, "--criterion", "covers"]
    status, _, err = shell(capsys, *command)
    assert status == 0
    assert "records that they were made from" not in err
    status, out, err = shell(capsys, *command, "--algorithm", "greedy", "--json")
    assert status == 0  # a remark, and no verdict
    assert "records that they were made from" in err
    assert any("made from" in remark for remark in json.loads(out)["remarks"])
    for more, text in (
        (["--algorithm", "gredy"], "unknown algorithm"),
        (["--algorithm", "mondrian"], "freeform"),
        (["--algorithm", "greedy", "--another-tool"], "--original"),
    ):
        status, _, err = shell(capsys, *command, *more)
        assert status == 2
        assert text in err
    shorter = written(tmp_path, people, undrawn(people)[1:])
    assert shell(capsys, *shorter, "--k", 4, "--algorithm", "greedy")[0] == 1


PUBLISH = """
import sys, anonflow as af
folder = sys.argv[1]
table = af.Table.read(folder + "/a.csv", schema=folder + "/s.yaml")
release = af.anonymize(table, "greedy", k=4).release()
release.certificate.save(folder + "/c.npz")
release.write(folder + "/r.csv")
"""


@pytest.mark.slow
def test_one_process_publishes_and_another_one_verifies_from_files_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*written(tmp_path, table(80), pd.DataFrame({"age": ["1"]}))]
    command += [
        "--k",
        4,
        "--criterion",
        "covers",
        "--criterion",
        "k-regular",
        "--json",
        "--algorithm",
        "greedy",
    ]

    subprocess.run([sys.executable, "-c", PUBLISH, str(tmp_path)], check=True)
    status, out, err = shell(capsys, *command)
    answer = json.loads(out)
    assert (status, answer["holds"], len(answer["remarks"])) == (0, True, 1), err
    assert "cannot be read off a file" in err
    status, out, _ = shell(capsys, *command, "--certificate", tmp_path / "c.npz")
    assert (status, json.loads(out)["holds"]) == (0, True)

    # without its other columns: what the certificate says cannot be compared, and that is no pass
    release = pd.read_csv(tmp_path / "r.csv", dtype=str)
    release.drop(columns="ill").to_csv(tmp_path / "r.csv", index=False)
    (tmp_path / "r.csv-metadata.json").unlink()  # which would say so
    status, out, err = shell(capsys, *command[:-2], "--certificate", tmp_path / "c.npz")
    answer = json.loads(out)
    assert (status, answer["holds"]) == (1, False)
    assert [item["holds"] for item in answer["checks"]] == [True, True, None]
    assert "certificate: not checked" in err

    people = af.Table.read(tmp_path / "a.csv", schema=tmp_path / "s.yaml")
    undrawn(people).to_csv(tmp_path / "r.csv", index=False)
    af.anonymize(people, "greedy", k=4).release().certificate.save(tmp_path / "c.npz")
    status, out, err = shell(capsys, *command)
    assert (status, len(json.loads(out)["remarks"])) == (0, 2)
    assert "(p = " in err
    # that is no row that the certificate was made with
    status, out, _ = shell(capsys, *command, "--certificate", tmp_path / "c.npz")
    assert (status, json.loads(out)["checks"][-1]["holds"]) == (1, False)
    # one row missing: status 1; no such file: status 2
    pd.read_csv(tmp_path / "r.csv", dtype=str)[1:].to_csv(tmp_path / "r.csv", index=False)
    assert shell(capsys, *command)[0] == 1
    (tmp_path / "r.csv").unlink()
    assert shell(capsys, *command)[0] == 2
