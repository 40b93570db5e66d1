"""Releases that other tools made: checked, described and attacked, with the original and without."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError, ParameterError
from anonflow.risk import Journalist, Presence
from anonflow.risk.register import RegisterCounts
from tests.cases.runs import shell
from tests.checks import adjacency
from tests.naive import risk as naive
from tests.strategies import loop

QI = {"role": "quasi-identifier"}
REGIONS = {"*": {"North": ["Hull", "York"], "South": ["Bath", "Dover"]}}
SCHEMA: dict[str, Any] = {
    "name": {"role": "identifier"},
    "age": {**QI, "kind": "numeric"},
    "sex": {**QI, "kind": "categorical"},
    "town": {**QI, "kind": "hierarchy", "hierarchy": {"nested": REGIONS}},
    "zip": {**QI, "kind": "positions"},
    "ill": {"role": "sensitive"},
}
NAMES = ["age", "sex", "town", "zip"]


def originals(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "age": rng.integers(20, 100, n),
            "sex": rng.choice(["F", "M"], n),
            "town": rng.choice(["Hull", "York", "Bath", "Dover"], n),
            "zip": rng.choice(["101", "102", "201"], n),
            "ill": rng.choice(["flu", "cold", "cough"], n),
        }
    )


def in_the_manner_of_arx(frame: pd.DataFrame) -> pd.DataFrame:
    """Half-open intervals in French brackets, labels of a hierarchy, masked codes; small classes are all ``*``."""
    shown = frame[["age", "sex", "town", "zip", "ill"]].copy()
    shown["age"] = [f"[{a // 20 * 20}, {a // 20 * 20 + 20}[" if a < 80 else ">=80" for a in frame["age"]]
    shown["town"] = ["North" if t in ("Hull", "York") else "South" for t in frame["town"]]
    shown["zip"] = [z[0] + "**" for z in frame["zip"]]
    return with_small_classes(shown, ["*"] * 4)


def in_the_manner_of_sdcmicro(frame: pd.DataFrame) -> pd.DataFrame:
    """Recoded ranges with dashes, towns recoded, local suppression as NA; rows that stay unique are deleted."""
    shown = frame[["age", "sex", "town", "zip", "ill"]].copy()
    shown["age"] = [f"{a // 40 * 40}-{a // 40 * 40 + 39}" for a in frame["age"]]
    shown["town"] = ["North" if t in ("Hull", "York") else "South" for t in frame["town"]]
    shown["zip"] = "NA"
    return shown[shown.groupby(NAMES)["ill"].transform("size") >= 18].reset_index(drop=True)


def in_the_manner_of_amnesia(frame: pd.DataFrame) -> pd.DataFrame:
    """Ranges with spaced dashes of a hierarchy's level, hidden cells as (null), values as they are."""
    shown = frame[["age", "sex", "town", "zip", "ill"]].copy()
    shown["age"] = [f"{a // 40 * 40} - {a // 40 * 40 + 39}" for a in frame["age"]]
    shown["town"] = "(null)"
    shown["zip"] = "*"
    return shown.sample(frac=1, random_state=3).reset_index(drop=True)


def with_small_classes(shown: pd.DataFrame, cells: list[str], least: int = 4) -> pd.DataFrame:
    small = shown.groupby(NAMES)["ill"].transform("size") < least
    shown.loc[small, NAMES] = cells
    return shown.sample(frac=1, random_state=2).reset_index(drop=True)


MANNERS = {
    "arx": in_the_manner_of_arx,
    "sdcmicro": in_the_manner_of_sdcmicro,
    "amnesia": in_the_manner_of_amnesia,
}


def counted(release: pd.DataFrame) -> Counter[tuple[str, ...]]:
    return Counter(map(tuple, release[NAMES].astype(str).to_numpy().tolist()))


@loop("manner", MANNERS)
def test_against_the_original(manner: str) -> None:
    frame = originals()
    table, release = af.Table(frame, SCHEMA), MANNERS[manner](frame)
    k = min(counted(release).values())
    check = af.verify(table, release, k=k, another_tool=True)
    check.raise_if_failed()
    assert [finding.criterion for finding in check] == ["covers", "k-anonymity"]
    deleted = len(frame) - len(release)
    assert (deleted > 0) == (manner == "sdcmicro")
    if deleted:
        assert f"{deleted} of 240 originals have no row: suppressed by deletion" in check["covers"].detail
        assert any(f"{deleted} of 240 records are not in the release" in remark for remark in check.remarks)
    assert not af.verify(table, release, ["covers", "k-anonymity"], k=k + 1, another_tool=True)
    # nobody's age is there twice as high: the rows no longer cover
    wrong = release.copy()
    wrong.loc[wrong.index[0], "age"] = "200-300"
    assert not af.verify(table, wrong, "covers", k=k, another_tool=True)
    # as a release of ours it is refused: a second way of writing could mark rows
    if deleted:
        assert not af.verify(table, release, "covers", k=k)
    else:
        with pytest.raises(DataError, match="another tool"):
            af.verify(table, release, "covers", k=k)


@loop("manner", MANNERS)
def test_without_the_original(manner: str) -> None:
    release, schema = MANNERS[manner](originals()), af.Schema(SCHEMA)
    k = min(counted(release).values())
    requests = ["k-anonymity", "l-diversity(l=1)", "t-closeness(t=0.9)", "k-regular", "covers", "boundary"]
    check = af.verify(schema, release, requests, k=k)
    assert [finding.holds for finding in check] == [True, True, True, None, None, None]
    assert "not seen: the original, whom the rows cover, who was left out" in check["k-anonymity"].detail
    assert "needs the original table" in check["covers"].detail
    assert not check
    assert af.verify(schema, release, k=k)
    assert not af.verify(schema, release, k=k + 1)
    with pytest.raises(ParameterError, match="per=matches needs the original"):
        af.verify(schema, release, "l-diversity(l=2, per=matches)", k=k)


@loop("manner", MANNERS)
def test_pycanon_gives_the_same_k_l_and_t(manner: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pycanon import anonymity

        release = MANNERS[manner](originals())
        text = release.astype(str)
        theirs = {
            "smallest class": anonymity.k_anonymity(text, NAMES),
            "p (distinct values)": anonymity.l_diversity(text, NAMES, ["ill"]),
            "entropy l": anonymity.entropy_l_diversity(text, NAMES, ["ill"]),
            "beta": anonymity.basic_beta_likeness(text, NAMES, ["ill"]),
            "t (distance)": anonymity.t_closeness(text, NAMES, ["ill"]),
            "l (1 / largest share)": 1 / anonymity.alpha_k_anonymity(text, NAMES, ["ill"])[0],
        }
    description = af.describe(af.Schema(SCHEMA), release)
    ours = {name: description[name if name == "smallest class" else (name, "ill")] for name in theirs}
    ours["entropy l"] = float(int(ours["entropy l"]))  # pyCANON tells it in whole numbers
    assert ours == pytest.approx(theirs, abs=2e-3)


def test_figures_are_counts_of_classes() -> None:
    release = in_the_manner_of_arx(originals())
    sizes = counted(release)
    hidden = sizes.pop(("*",) * 4)
    description = af.describe(af.Schema(SCHEMA), release, threshold=0.2)
    rows = sum(sizes.values())
    assert description["rows"] == len(release) == rows + hidden
    assert description["hidden rows"] == hidden
    assert description["classes"] == len(sizes)
    assert description["smallest class"] == min(sizes.values())
    assert description["largest class"] == max(sizes.values())
    assert description["highest prosecutor risk"] == pytest.approx(1 / min(sizes.values()))
    assert description["marketer risk"] == pytest.approx(
        sum(size * (1 / size) for size in sizes.values()) / rows
    )
    above = sum(size for size in sizes.values() if 1 / size > 0.2)
    assert description["share of rows with a risk above 0.2"] == pytest.approx(above / rows)
    assert all(figure.unseen for figure in description)
    assert "not seen" in repr(description)
    assert json.loads(description.to_json())["figures"][0]["value"] == len(release)
    with pytest.raises(ParameterError, match="no figure"):
        description["k"]


@loop("hidden", [0, 3, 60])
@loop("overlapping", [False, True])
def test_the_prosecutors_risk_is_one_figure(hidden: int, overlapping: bool) -> None:
    """Classes of 5, 8 and 20 rows beside hidden ones: hidden rows cover everybody, and are no class."""
    ages = np.concatenate([np.repeat([22, 23, 35, 48], [3, 2, 8, 20]), np.full(hidden, 90)])
    cells = np.repeat(["20-29", "20-39" if overlapping else "30-39", "40-49", "*"], [5, 8, 20, hidden])
    frame = pd.DataFrame({"age": ages, "ill": np.resize(["flu", "cold"], len(ages))})
    release = frame.assign(age=cells)
    schema = {"age": {**QI, "kind": "numeric"}, "ill": {"role": "sensitive"}}
    table = af.Table(frame, schema)
    description = af.describe(table, release)
    assert description["highest prosecutor risk"] == 1 / 5
    assert description["smallest class"] == 5
    assert description["hidden rows"] == hidden
    for subject in (table, table.schema):
        row = af.attack(subject, release, "prosecutor", k=5, another_tool=True).iloc[0]
        assert row["worst"] == pytest.approx(1 / 5)
        if not overlapping:
            assert row["targets"] == 33
            assert row["success"] == pytest.approx(3 / 33)
        assert (f"hidden rows, which are left out: {hidden}." in row["sentence"]) == (hidden > 0)
    everything = frame.assign(age="*")
    assert af.describe(table, everything)["highest prosecutor risk"] == pytest.approx(1 / len(frame))
    row = af.attack(table, everything, "prosecutor", k=5).iloc[0]
    assert (row["worst"], row["success"]) == pytest.approx((1 / len(frame), 1 / len(frame)))


@loop("algorithm", ["greedy", "k-concealment"])
def test_risks_of_a_freeform_release_beside_its_original_are_those_of_its_attackers(algorithm: str) -> None:
    """Rows that differ cover the same person: counting equal rows would say 1, whatever the release."""
    table = af.Table(originals(), SCHEMA)
    anon = af.anonymize(table, algorithm, k=4, seed=3)
    release = anon.release(seed=2**127)
    described = af.describe(table, release, threshold=0.2)
    rows = af.attack(table, release, ["prosecutor", "marketer"]).set_index("attacker")
    assert described["highest prosecutor risk"] == pytest.approx(rows.loc["prosecutor", "worst"])
    assert described["marketer risk"] == pytest.approx(rows.loc["marketer", "success"])
    covering = adjacency(table.records, anon.generalization).sum(axis=1)
    assert described["highest prosecutor risk"] == pytest.approx(1 / covering.min())
    assert described["share of rows with a risk above 0.2"] == pytest.approx(
        (1 / covering > 0.2 + 1e-12).mean()
    )
    assert "equal to no other" not in " ".join(described.remarks)


def test_a_run_with_hidden_rows_says_the_same_risk_everywhere(tmp_path: Path) -> None:
    frame = originals()
    frame.loc[:30, "age"] = 200 + 17 * np.arange(31)  # these are hidden
    table = af.Table(frame, SCHEMA)
    anon = af.anonymize(table, "pattern-guided", k=20, seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = anon.release(seed=2**127)
    hidden = int((release.frame[NAMES] == "*").all(axis=1).sum())
    assert hidden > 1
    release.frame.to_csv(tmp_path / "release.csv", index=False)
    described = af.describe(table, release)["highest prosecutor risk"]
    assert described == 1 / min(counted(release.frame[(release.frame[NAMES] != "*").any(axis=1)]).values())
    for subject in (release, tmp_path / "release.csv"):
        row = af.attack(table, subject, "prosecutor", k=20).iloc[0]
        assert row["worst"] == pytest.approx(described)
        assert 0 < row["success"] < row["worst"]
    card = af.release_card(anon, release, prices=False)
    assert f"the probability is {100 * described:g}%" in next(
        line.says for line in card.lines if line.name == "measured"
    )


@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(1, 6))
def test_who_could_be_absent_by_every_assignment(seed: int, rows: int, people: int) -> None:
    """Ranges that overlap against all ways of giving each row another person that it covers."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, rows)
    high = low + rng.integers(0, 4, rows)
    age = rng.integers(0, 9, people)
    release = pd.DataFrame({"age": [f"{a}-{b}" if a < b else str(a) for a, b in zip(low, high, strict=True)]})
    schema = af.Schema({"age": {**QI, "kind": "numeric"}})
    counts = RegisterCounts.of(release, schema, pd.DataFrame({"age": age}))
    covers = (low[:, None] <= age) & (age <= high[:, None])
    expected = naive.could_be_absent(covers)
    assert (counts.unlisted == 0) is (expected is not None)
    assert counts.could_be_absent.tolist() == (expected or [True] * people)


def test_somebody_who_cannot_be_absent_is_counted_though_rows_overlap() -> None:
    """Attack: three rows that overlap, and a register of three whom each could fit: all three are in the table."""
    schema = af.Schema({"age": {**QI, "kind": "numeric"}})
    release = pd.DataFrame({"age": ["20-40", "20-30", "30-50"]})
    register = pd.DataFrame({"age": [25, 28, 35, 90]})
    row = af.attack(schema, release, Presence(register), k=2).iloc[0]
    assert (row["success"], row["worst"], row["at_risk"]) == (0.75, 1.0, 3)
    assert "1 is absent for certain; 3 cannot be absent, and each of the others" in row["sentence"]
    assert af.describe(schema, release, register=register)["people who could not be absent"] == 3
    more = pd.DataFrame({"age": [25, 28, 35, 38, 90]})
    row = af.attack(schema, release, Presence(more), k=2).iloc[0]
    assert (row["success"], row["worst"], row["at_risk"]) == (0.0, 0.6, 0)
    fewer = af.attack(schema, release, Presence(register.iloc[[0, 2]]), k=2)["sentence"][0]
    assert "At least 1 row is of nobody in the register" in fewer


def test_a_register_says_k_map_and_delta_presence() -> None:
    """Every count by hand: people of the register that a row's cells fit, rows over people of each class."""
    register = pd.DataFrame({"age": [25, 25, 35, 36, 37, 61], "sex": list("FFMMMF")})
    schema = af.Schema({"age": {**QI, "kind": "numeric"}, "sex": {**QI, "kind": "categorical"}})
    release = pd.DataFrame({"age": ["[20, 30[", "[20, 30[", "[30, 40[", "[30, 40["], "sex": list("FFMM")})
    description = af.describe(schema, release, register=register)
    assert description["k of the k-map"] == 2
    assert description["highest journalist risk"] == 0.5
    assert description["marketer risk by the register"] == pytest.approx((2 / 2 + 2 / 3) / 4)
    assert description["highest delta-presence"] == 1.0
    assert description["lowest delta-presence"] == 0.0
    attacks = af.attack(schema, release, [Journalist(register), Presence(register)], k=2)
    assert attacks["worst"].tolist() == [0.5, 1.0]
    # of the journalist the mean over the rows; the two of 25 are in it for sure
    assert attacks["success"].tolist() == pytest.approx([(2 / 2 + 2 / 3) / 4, 2 / 6])
    assert attacks["baseline"].tolist() == [0.5, pytest.approx(4 / 6)]
    overlapping = release.assign(age=["[20, 40[", "[20, 30[", "[30, 40[", "[30, 40["], sex="*")
    sentence = af.attack(schema, overlapping, Presence(register), k=2)["sentence"][0]
    assert "1 is absent for certain; each of the others could be absent" in sentence
    for wrong, words in (
        (register[["age"]], "lacks the columns 'sex'"),
        (register[:0], "no people"),
        ([1], "DataFrame"),
    ):
        with pytest.raises(ParameterError, match=words):
            af.describe(schema, release, register=wrong)  # type: ignore[arg-type]


def test_attackers_without_the_original_and_with_deletions() -> None:
    frame = originals()
    release = in_the_manner_of_sdcmicro(frame)
    sizes = counted(release)
    alone = af.attack(af.Schema(SCHEMA), release, k=4)
    assert alone["attacker"].tolist() == ["prosecutor", "marketer", "homogeneity"]
    assert alone["worst"][0] == pytest.approx(1 / min(sizes.values()))
    assert alone["success"][1] == pytest.approx(len(sizes) / len(release))
    both = af.attack(af.Table(frame, SCHEMA), release, k=4, another_tool=True)
    assert both["attacker"].tolist() == ["prosecutor", "marketer", "homogeneity"]
    assert both["targets"][0] == len(release)  # whole classes were deleted: nothing tells of their people
    assert both["worst"][0] == pytest.approx(alone["worst"][0])
    with pytest.raises(ParameterError, match="linker: needs the original table"):
        af.attack(af.Schema(SCHEMA), release, "linker", k=4)
    with pytest.raises(ParameterError, match="needs a row of every record"):
        af.attack(af.Table(frame, SCHEMA), release, "linker", k=4, another_tool=True)
    with pytest.raises(ParameterError, match="rows and the table"):
        af.attack(af.Table(frame, SCHEMA), release, k=4)


def test_rows_that_hide_all_of_ours_need_no_company() -> None:
    schema = af.Schema({"age": {**QI, "kind": "numeric"}, "ill": {"role": "sensitive"}})
    rows = pd.DataFrame({"age": ["20-30"] * 3 + ["*"], "ill": ["a", "b", "a", "*"]})
    assert af.verify(schema, rows, k=3)
    shows = rows.assign(ill=["a", "b", "a", "b"])  # whoever fits nowhere else is on this row, and has b
    check = af.verify(schema, shows, k=3)
    assert not check
    assert any(
        "1 row hides every quasi-identifier and shows other columns" in remark for remark in check.remarks
    )


def test_rows_that_hide_every_column_are_left_out_however_many() -> None:
    schema = af.Schema({"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}})
    rows = pd.DataFrame({"age": ["1-2"] * 4 + ["*"] * 10, "ill": ["a", "b"] * 2 + ["*"] * 10})
    description = af.describe(schema, rows)
    assert description["rows that say nothing"] == 10
    assert description["largest class"] == description["smallest class"] == 4


@loop(
    ("change", "words"),
    [
        (lambda r: r.assign(name="x"), "the schema says identifier"),
        (lambda r: r.drop(columns="age"), "'age': missing from the release"),
        (lambda r: pd.concat([r, r[["age"]]], axis=1), "'age': appears 2 times"),
        (lambda r: r[:0], "no rows"),
    ],
)  # fmt: skip
def test_bad_releases_are_one_sentence(change: Any, words: str) -> None:
    release = change(in_the_manner_of_arx(originals()))
    for ask in (af.verify, af.attack):
        with pytest.raises((DataError, ParameterError), match=words):
            ask(af.Schema(SCHEMA), release, k=2)
    with pytest.raises((DataError, ParameterError), match=words):
        af.describe(af.Schema(SCHEMA), release)


def test_columns_without_a_name_in_the_schema_are_said() -> None:
    release = in_the_manner_of_arx(originals()).assign(shoe=4)
    check = af.verify(af.Schema(SCHEMA), release, k=2)
    assert any("does not name, and that were not checked: 'shoe'" in remark for remark in check.remarks)


def test_more_rows_than_people_fail() -> None:
    frame = originals()
    release = in_the_manner_of_arx(frame)
    longer = pd.concat([release, release[:1]])
    assert not af.verify(af.Table(frame, SCHEMA), longer, k=2, another_tool=True)
    with pytest.raises(ParameterError, match="241 rows"):
        af.describe(af.Table(frame, SCHEMA), longer)
    with pytest.raises(ParameterError, match="draw"):
        af.describe(af.Table(frame, SCHEMA), af.anonymize(af.Table(frame, SCHEMA), "mondrian", k=4))
    for wrong in (0, "high", None, True, float("nan")):
        with pytest.raises(ParameterError, match="threshold must be a probability above 0 and at most 1"):
            af.describe(af.Schema(SCHEMA), release, threshold=wrong)  # type: ignore[arg-type]


def test_the_shell_checks_a_release_of_another_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = originals()
    frame.to_csv(tmp_path / "people.csv", index=False)
    release = in_the_manner_of_arx(frame)
    release.to_csv(tmp_path / "release.csv", index=False, sep=";")
    (tmp_path / "schema.yaml").write_text(json.dumps({"columns": SCHEMA}))
    common = ["--release", tmp_path / "release.csv", "--schema", tmp_path / "schema.yaml", "--delimiter", ";"]
    k = min(counted(release).values())
    status, out, err = shell(capsys, "verify", *common, "--k", k)
    assert status == 0, err
    assert "not seen: the original" in out
    status, out, _ = shell(capsys, "verify", *common, "--k", k + 1, "--json")
    assert status == 1
    assert not json.loads(out)["holds"]
    frame.to_csv(tmp_path / "people.csv", index=False, sep=";")
    whole = ["--original", tmp_path / "people.csv", "--another-tool"]
    status, out, err = shell(capsys, "verify", *common, *whole, "--k", k)
    assert status == 0, err
    assert "covers" in out
    assert "intervals in brackets" in err
    status, out, _ = shell(capsys, "describe", *common, "--register", tmp_path / "people.csv")
    assert status == 0
    assert "k of the k-map" in out
    status, out, _ = shell(capsys, "describe", *common, "--json")
    assert json.loads(out)["figures"][0]["value"] == 240
    status, out, _ = shell(capsys, "attack", *common, "--k", k, "--register", tmp_path / "people.csv")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()[2:]] == [
        "prosecutor", "marketer", "homogeneity", "journalist", "presence",
    ]  # fmt: skip
    status, _, err = shell(capsys, "attack", *common, "--k", k, "--attacker", "journalist")
    assert status == 2
    assert "needs a population" in err
    assert "--register" in err
    status, _, err = shell(capsys, "verify", *common, "--k", k, "--certificate", tmp_path / "none.npz")
    assert status == 2
    assert "give --original, too" in err
