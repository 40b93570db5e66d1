"""Numbers with codes and blanks: a range that may also be a code, or missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import DataError, ParameterError, SchemaError
from anonflow.generalization import Generalization
from anonflow.table import Schema, Table
from anonflow.table.published.notation import readers_of
from tests.checks import SOON, TAKE_EVERY_KIND, check_release, check_result
from tests.strategies import loop

QI = {"role": "quasi-identifier"}
INCOME = {**QI, "kind": "numeric", "missing": "value", "codes": ["N", "R"]}


def people(n: int = 40, seed: int = 0, **entry: Any) -> Table:
    rng = np.random.default_rng(seed)
    income = rng.integers(10, 60, n).astype(str).astype(object)
    income[rng.random(n) < 0.2] = "N"
    income[rng.random(n) < 0.1] = "R"
    income[rng.random(n) < 0.1] = None
    frame = pd.DataFrame(
        {"income": income, "sex": rng.choice(["f", "m"], n), "age": rng.integers(20, 60, n), "ill": rng.choice(["a", "b", "c"], n)}
    )  # fmt: skip
    columns = {
        "income": INCOME | entry,
        "sex": {**QI, "kind": "categorical"},
        "age": {**QI, "kind": "numeric"},
    }
    return Table(frame, {**columns, "ill": {"role": "sensitive"}})


def alone(cells: list[Any], **entry: Any) -> Table:
    return Table(pd.DataFrame({"income": pd.array(cells, dtype=object)}), {"income": INCOME | entry})


def published(table: Table, rows: list[list[int]]) -> list[str]:
    """What some rows together are published as."""
    width = max(map(len, rows))
    matches = np.array([row + [-1] * (width - len(row)) for row in rows])
    texts: list[str] = Generalization.join_of(table.records, matches).decode()["income"].tolist()
    return texts


CELLS = ["53", "59", "56", "N", "R", None]


def test_ranges_with_codes_are_written_in_their_notation() -> None:
    table = alone(CELLS)
    rows = [
        [0],
        [0, 1],
        [0, 1, 3],
        [0, 3, 4],
        [3],
        [3, 4],
        [5],
        [5, 4],
        [0, 5],
        [0, 1, 3, 4],
        [0, 1, 3, 4, 5],
    ]
    texts = ["53", "53-59", "53-59|N", "53|N|R", "N", "{N|R}", "", "{|R}", "53|", "53-59|N|R", "*"]
    assert published(table, rows) == texts
    # what is published is read back, by whoever checks it, too
    frame = pd.DataFrame({"income": texts})
    again = Generalization.parse(frame, table.domains, canonical=True)
    assert again.decode()["income"].tolist() == texts


def test_covers_numbers_or_the_code() -> None:
    table = alone(CELLS)
    read = Generalization.parse(
        pd.DataFrame({"income": ["53-56|N", "{N|R}", "53-59", "*", "", "54-55"]}), table.domains
    )
    own = Generalization.of(table.records)
    covered = [own.take(np.full(6, i)) for i in range(6)]
    result = np.array([read.covers(item) for item in covered]).T.astype(int).tolist()
    #         53 59 56  N  R  blank
    assert result == [
        [1, 0, 1, 1, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0],
    ]  # fmt: skip


@loop(
    "text",
    ["N|53", "53|N|N", "53|R|N", "{53|N}", "53-59|X", "{N}", "{R|N}", "059|N", "53-53|N", "53 |N", "53|N|R||", "53-59|N|R|", "{}", "|N", "1-90|N", "54-58|R|N"],
)  # fmt: skip
def test_one_way_to_write_it(text: str) -> None:
    table = alone(CELLS)
    with pytest.raises(DataError, match="1 cell is no generalization"):
        Generalization.parse(pd.DataFrame({"income": [text]}), table.domains, canonical=True)


def test_a_range_with_an_end_that_nobody_has() -> None:
    table = alone(CELLS)
    read = Generalization.parse(pd.DataFrame({"income": ["54-58|N"]}), table.domains, canonical=True)
    assert read.covers(Generalization.of(table.records).take(np.array([2]))).all()


@loop("share", [0.5, 0.25])
def test_the_loss_is_that_of_the_formula(share: float) -> None:
    table = alone(CELLS, **{"code-weight": share})
    rows = [[0], [3], [3, 4], [0, 3], [0, 2], [0, 2, 4], [0, 1, 3, 4, 5]]
    boxes = Generalization.join_of(table.records, np.array([row + [-1] * (5 - len(row)) for row in rows]))
    members = [1, 1, 2, 2, 1, 2, 4]  # of number, N, R, blank
    widths = [0, 0, 0, 0, 3, 3, 6]
    expected = [(1 - share) * w / 6 + share * (c - 1) / 3 for w, c in zip(widths, members, strict=True)]
    assert af.loss.record_costs(boxes, "ncp") == pytest.approx(expected)


def test_a_column_without_codes_is_numeric() -> None:
    table, plain = (
        alone(["1", "2", "5"]),
        Table(pd.DataFrame({"income": ["1", "2", "5"]}), {"income": {**QI, "kind": "numeric"}}),
    )
    assert [d.kind for d in table.domains] == ["numeric"]
    assert table.domains[0].weight == plain.domains[0].weight
    assert published(table, [[0, 2], [0, 1]]) == published(plain, [[0, 2], [0, 1]]) == ["*", "1-2"]


def test_blanks_alone_numbers_and_dates() -> None:
    frame = pd.DataFrame(
        {"age": [30.0, np.nan, 40.0, 35.0], "born": ["1990-01-02", "N", "1991-01-01", "1990-05-01"]}
    )
    table = Table(
        frame,
        {
            "age": {**QI, "kind": "numeric", "missing": "value"},
            "born": {**QI, "kind": "numeric", "codes": ["N"]},
        },
    )
    result = Generalization.join_of(table.records, np.array([[0, 1], [1, 1], [0, 3]])).decode()
    assert result["age"].tolist() == ["30|", "", "30-35"]
    assert result["born"].tolist() == ["1990-01-02|N", "N", "1990-01-02/1990-05-01"]


@pytest.mark.parametrize("algorithm", TAKE_EVERY_KIND)
@loop("k", [4])
def test_every_method_keeps_its_promise(algorithm: str, k: int) -> None:
    table = people()
    anon = af.anonymize(table, algorithm, k=k, seed=7, **SOON.get(algorithm, {}))
    check_result(anon, k)
    assert af.verify(table, anon, ["covers", "guarantee"], k=k)
    release = anon.release(seed=2**127 + k)
    check_release(anon, release)
    assert af.verify(table, release, ["covers", anon.guarantee], k=k)
    assert af.verify(table, release, ["covers", anon.guarantee], k=k, certificate=release.certificate)
    if not REGISTRY[algorithm].hides and algorithm != "local-suppression":  # they hide cells, and widen none
        assert release.frame["income"].str.contains("|", regex=False).any()


def reads(text: str, value: str | None) -> bool:
    """Whether a cell may stand for a number, a code or a blank, read without the package."""
    if text == "*" or text == ("" if value is None else value):
        return True
    ends = re.fullmatch(r"(\d+)-(\d+)", text)
    return bool(ends and value not in ("N", "R", None) and int(ends[1]) <= int(str(value)) <= int(ends[2]))


@pytest.mark.parametrize("algorithm", ["full-domain", "local-recoding"])
@loop("k", [2, 3, 6])
@loop("seed", [0, 1, 2])
def test_levels_of_numbers_leave_codes_as_they_are(algorithm: str, k: int, seed: int) -> None:
    columns = {"income": INCOME, "sex": {**QI, "kind": "suppression"}, "age": {**QI, "kind": "numeric"}}
    frame = people(60, seed).frame[list(columns)]
    table = Table(frame, columns)
    anon = af.anonymize(table, algorithm, k=k, seed=7)
    check_result(anon, k)
    assert af.verify(table, anon, ["covers", "guarantee"], k=k)
    own = [None if pd.isna(cell) else str(cell) for cell in frame["income"]]
    cells = anon.frame()["income"].tolist()
    assert all(map(reads, cells, own))
    release = anon.release(seed=2**127 + k)
    check_release(anon, release)
    rows = release.frame[list(columns)].astype(str)
    shown = rows[~(rows == "*").all(axis=1)]
    assert len(shown) > table.n // 2
    assert (shown.value_counts() >= k).all()  # every class has k rows
    people_of = zip(own, frame["sex"], frame["age"].astype(str), anon.suppressed, strict=True)
    for income, sex, age, is_hidden in people_of:  # and everybody who is not hidden k rows
        fit = [
            reads(a, income) and b in ("*", sex) and reads(c, age)
            for a, b, c in rows.itertuples(index=False, name=None)
        ]
        assert sum(fit) >= (1 if is_hidden else k)


@loop("levels", [{"income": "width 20"}, {"income": "values"}, {"income": "*"}])
def test_a_level_of_numbers_with_codes_can_be_fixed(levels: dict[str, str]) -> None:
    table = alone(["11", "15", "31", "33", "N", "N", None, None])
    anon = af.anonymize(table, "full-domain", k=2, limit=1, levels=levels, widths={"income": [20]})
    cells = {
        "width 20": ["11-15", "11-15", "31-33", "31-33", "N", "N", "", ""],
        "values": ["*"] * 4 + ["N", "N", "", ""],
        "*": ["*"] * 8,
    }
    assert anon.frame()["income"].tolist() == cells[levels["income"]]


def test_mondrian_cuts_numbers_where_codes_are_few() -> None:
    cells = [str(number) for number in range(20)] + ["N"]
    table = alone(cells)
    anon = af.anonymize(table, "mondrian", k=5)
    check_result(anon, 5)
    assert sorted(set(anon.frame()["income"])) == ["0-9|N", "10-19"] or anon.loss() < 0.4


@pytest.mark.slow
@loop("loss", ["ncp", "lm", "entropy", "height", "suppressions"])
def test_every_loss_and_every_measure(loss: str) -> None:
    table = people()
    anon = af.anonymize(table, "two-phase", k=3, loss=loss, seed=1)
    check_result(anon, 3)
    names = ["gcp", "usefulness", "row-types", "c-avg", "query-error", "violations", "lower-bound"]
    measures = af.measure(table, anon, names)
    assert all(np.isfinite(value) for value in measures.values() if isinstance(value, float))
    if loss != "entropy":  # it is not monotone, and has no bound
        assert anon.lower_bound() <= anon.loss(loss) + 1e-12


def test_attackers_and_the_card() -> None:
    table = people()
    release = af.anonymize(table, "hungarian", k=4, seed=1).release(seed=2**127)
    results = af.attack(table, release)
    assert results["attacker"].tolist()
    assert (results["success"].dropna() <= 1).all()


@loop(
    ("entry", "sentence"),
    [
        ({"codes": ["N", 9]}, "a code is a number, which a range would cover; recode it"),
        ({"codes": ["-9"]}, "a code is a number"),
        ({"codes": ["10-20"]}, "a code is a number"),
        ({"codes": ["2020-01-01"]}, "a code is a number"),
        ({"codes": "N"}, "codes are a list of texts"),
        ({"codes": []}, "codes are a list of texts"),
        ({"codes": [" N"]}, "without outer spaces"),
        ({"codes": [""]}, "for blank cells say missing: value"),
        ({"codes": ["N", "N"]}, "listed twice"),
        ({"kind": "categorical", "codes": ["N"]}, "codes go with kind numeric, not categorical"),
        ({"missing": "suppress"}, "missing: suppress does not go with codes"),
        ({"max-width": 5}, "does not go with codes"),
        ({"boundary": {"width": 5}}, "does not go with codes"),
        ({"code-weight": 1}, "between 0 and 1"),
        ({"codes": None, "missing": "drop", "code-weight": 0.3}, "code-weight goes with codes"),
    ],
)
def test_codes_that_cannot_be_used_are_refused(entry: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(sentence)):
        Schema({"income": INCOME | entry})


def test_refusal_stays_the_default() -> None:
    frame = pd.DataFrame({"income": [1.0, None]})
    with pytest.raises(DataError, match="1 missing value; say missing: suppress, drop or value"):
        Table(frame, {"income": {**QI, "kind": "numeric"}})
    with pytest.raises(DataError, match="1 value is no number"):
        Table(pd.DataFrame({"income": ["1", "X", "N"]}), {"income": {**INCOME, "missing": "refuse"}})
    with pytest.raises(DataError, match="1 missing value"):
        Table(pd.DataFrame({"income": ["1", None, "N"]}), {"income": {**INCOME, "missing": "refuse"}})
    with pytest.raises(DataError, match="no number at all"):
        Table(pd.DataFrame({"income": ["N", None]}), {"income": INCOME})


def test_the_schema_reads_back() -> None:
    schema = Schema({"income": INCOME | {"code-weight": 0.25}})
    assert (
        Schema(schema.to_mapping()).to_mapping()
        == schema.to_mapping()
        == {"income": INCOME | {"code-weight": 0.25}}
    )


def test_the_advisor_proposes_codes() -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(10, 900, 200).astype(str).astype(object)
    cells[:12], cells[20:30] = "N", None
    (advice,) = list(Schema.advise(pd.DataFrame({"distance": cells})).itertuples())
    assert advice.role == "quasi-identifier"
    assert advice.kind == "numeric"
    assert "mixed with 1 code, published" in advice.reasons
    assert Schema.infer(pd.DataFrame({"distance": cells})).to_mapping() == {
        "distance": {**QI, "kind": "numeric", "codes": ["N"], "missing": "value"}
    }
    cells[5] = "tpyo"  # a slip is no code
    assert Schema.infer(pd.DataFrame({"distance": cells}))["distance"].kind == "categorical"


def test_other_notations() -> None:
    table = people(30)
    income = table.frame["income"]
    frame = table.frame[["income", "sex", "age"]].copy()
    frame["income"] = [
        "N"
        if cell == "N"
        else "[0, 100["
        if isinstance(cell, str) and cell.isdigit()
        else "[0, 100)|N|R|"
        if pd.isna(cell)
        else "{N,R}"
        for cell in income
    ]
    frame["age"] = "20-59"
    frame["sex"] = "*"
    readers = readers_of(table.domains, {})
    parsed = Generalization.parse(frame, table.domains, readers=readers)
    assert parsed.covers(Generalization.of(table.records)).sum() >= (~income.isna()).sum()


def test_a_release_alone() -> None:
    table = people(60)
    release = af.anonymize(table, "mondrian", k=4, seed=1).release(seed=2**127)
    schema = Schema(
        {
            "income": INCOME,
            "sex": {**QI, "kind": "categorical"},
            "age": {**QI, "kind": "numeric"},
            "ill": {"role": "sensitive"},
        }
    )
    assert af.verify(schema, release.frame, ["k-anonymity"], k=4)


FLOW = """
flow: codes
version: 1
table:
  source: {csv: people.csv, pieces: PIECES}
  columns:
    income: {role: quasi-identifier, kind: numeric, missing: value, codes: [N, R]}
    sex: {role: quasi-identifier, kind: categorical}
    age: {role: quasi-identifier, kind: numeric}
    ill: {role: sensitive}
partition: {order: lexicographic, size: 10}
steps:
  - anonymize: {algorithm: greedy, k: 3}
  - draw: {}
  - verify: [covers, guarantee]
  - measure: [gcp, usefulness]
  - attack: [prosecutor, insider]
publish: {table: out/TABLE.csv}
"""


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_in_pieces_as_in_memory(tmp_path: Path) -> None:
    people(60).frame.to_csv(tmp_path / "people.csv", index=False)
    texts = []
    for pieces in ("false", "true"):
        flow = tmp_path / f"{pieces}.yaml"
        flow.write_text(FLOW.replace("PIECES", pieces).replace("TABLE", pieces))
        report = af.run(flow, seed=2**127)
        assert report.ok
        texts.append(
            (
                (tmp_path / "out" / f"{pieces}.csv").read_text(),
                float(report.runs["gcp"].iloc[0]),
                float(report.runs["usefulness"].iloc[0]),
            )
        )
    assert texts[0] == texts[1]
    assert "|N" in texts[0][0]


def test_published_cells_as_numbers() -> None:
    read = af.ranges(pd.Series(["53-59|N", "N", "53", "{N|R}", "*", ""]), (0, 90), codes=["N", "R", ""])
    assert read["low"].fillna(-1).tolist() == [53, -1, 53, -1, 0, -1]
    assert read["high"].fillna(-1).tolist() == [59, -1, 53, -1, 90, -1]
    assert read["number"].tolist() == [0.5, 0, 1, 0, 0.25, 0]


def test_what_is_told_of_the_release(tmp_path: Path) -> None:
    table = people(60)
    release = af.anonymize(table, "greedy", k=4, seed=1).release(seed=2**127)
    release.write(tmp_path / "release.csv")
    for read in (release, af.read_release(tmp_path / "release.csv", table.schema)):
        column = read.column("income")
        assert column.about.notation == "range-or-code"
        assert column.about.pattern is None
        assert "53-59|N" in column.about.sentences
        exact = column.cells.fillna("")[column.exact].unique()
        assert not any("|" in cell or "-" in cell or cell == "*" for cell in exact)
        texts = column.cells.fillna("")
        assert (column.low[texts == "N"].isna() & column.high[texts == "N"].isna()).all()
        assert column.low[texts.str.match("[0-9]")].notna().all()
        with pytest.raises(ParameterError, match="ask for low and high instead; its codes are in categories"):
            _ = column.values
        beside = column.categories
        assert beside.name == "income (code)"
        assert read.column("income (code)").members.equals(beside.members)
        has_code = texts.str.contains("N", regex=False)
        assert (column.contains("N") == (has_code | (texts == "*"))).all()
        low, high = column.low, column.high
        assert (column.contains(30) == ((low <= 30) & (high >= 30) | (texts == "*"))).all()
        both = texts.str.match(r"[0-9-]+\|N$")
        assert (column.share_of(["N"])[both] == 0.5).all()
        assert (column.share_of((-100, 1000))[both] == 0.5).all()
        least = column.share_of((0, 30))[both]
        inside = (np.minimum(high, 30) - np.maximum(low, 0) + 1).clip(0) / (high - low + 1)
        assert np.allclose(least, inside[both] / 2)
        assert 0 < least.mean() < 0.5
        assert (column.exact == texts.str.fullmatch("-?[0-9.]+|N|")).all()
        plain = read.to_frame("nullable")
        assert (plain["income"].notna() == texts.str.fullmatch("-?[0-9.]+")).all()
        assert (plain.loc[texts == "N", "income (code)"] == "N").all()
        assert (plain.loc[plain["income"].notna(), "income (code)"] == "number").all()
        spans = read.to_frame("interval")
        assert (spans["income"].isna() == low.isna()).all()
        with pytest.raises(ParameterError, match="has no codes beside numbers"):
            _ = read.column("sex").categories
