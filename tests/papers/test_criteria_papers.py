"""The papers' own small examples, with the corrections of their misprints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.criteria import collect, consistency_graph, match_edges, subject_of, verify
from anonflow.errors import SchemaError
from anonflow.generalization import Generalization
from anonflow.table import Table
from tests.cases.criteria import anonymization
from tests.naive.criteria import Case, edge_counts
from tests.strategies import loop

SEVEN = ["covers", "k-anonymity", "(1,k)", "(k,1)", "(k,k)", "k-concealment", "k-regular"]


def holds(table: Table, subject: Any, k: int) -> dict[str, bool]:
    return {finding.criterion: finding.holds for finding in verify(table, subject, SEVEN, k=k)}


# ------------------------------------------------------------------------- freeform generalization


def freeform() -> tuple[Table, pd.DataFrame, np.ndarray]:
    original = pd.DataFrame(
        {"Age": [59, 57, 39, 28, 41, 37, 40, 53], "Salary": [25, 27, 47, 41, 20, 59, 35, 34]}
    )
    schema = {name: {"role": "quasi-identifier", "kind": "numeric"} for name in original}
    ranges = "53-59/25-34 53-59/25-34 28-39/41-59 28-41/20-59 40-59/20-35 28-39/41-59 39-41/20-47 40-57/27-35"
    rows = [cell.split("/") for cell in ranges.split()]
    published = pd.DataFrame(rows, columns=["Age", "Salary"], dtype="str")
    matches = [[0, 1, 7], [1, 0, 7], [2, 3, 5], [3, 4, 5], [4, 0, 6], [5, 2, 3], [6, 2, 4], [7, 1, 6]]
    return Table(original, schema), published, np.array(matches, np.int32)


def test_paper_1_table_1_is_3_regular() -> None:
    table, published, matches = freeform()
    boxes = Generalization.join_of(table.records, matches)
    shown = boxes.decode()
    # the printed 20-59 spans the domain, which has one way to be written
    published = published.replace({"Salary": {"20-59": "*"}})
    assert shown.equals(published)
    for frame in (published, shown):
        assert holds(table, frame, 3) == {name: name != "k-anonymity" for name in SEVEN}
        assert verify(table, frame, ["covers", "k-regular"], k=3, certificate=matches)
    assert verify(table, anonymization(boxes, 3, matches=matches))["k-regular"].holds
    assert not verify(table, published, ["k-regular"], k=4)


def test_paper_1_table_1_covers_more_than_it_matches() -> None:
    table, published, matches = freeform()
    graph = consistency_graph(table.records, Generalization.parse(published, table.domains))
    covered = graph.degrees()[1][graph.published.label]
    assert (covered >= 3).all()
    assert covered[[3, 4]].tolist() == [5, 5]
    assert covered.sum() > matches.size


# ------------------------------------------------------------------------- low information loss

PEOPLE = """94221 M US 10000
94112 F US 5000
94121 F US 1500
94111 M Canada 3000
94222 M Canada 30000
94122 F UK 20000
93111 M Canada 40000"""
GLOBAL = "9*2** M *|9*1** F *|9*1** F *|9*1** M *|9*2** M *|9*1** F *|9*1** M *"
LOCAL = "9422* M *|941** F *|941** F *|9*111 M Canada|9422* M *|941** F *|9*111 M Canada"
PRINTED = "9422* M *|941*2 F *|941*1 F US|9*111 M Canada|9422* M *|941** F *|9*111 M Canada"
MENDED = "9422* M *|941*2 F *|941** F US|9*111 M Canada|9422* M *|9412* F *|9*111 M Canada"


def low_loss(text: str) -> tuple[Table, pd.DataFrame]:
    names = ["Zip code", "Gender", "Country", "Income"]
    original = pd.DataFrame([line.split() for line in PEOPLE.splitlines()], columns=names, dtype="str")
    schema: dict[str, Any] = {
        "Zip code": {"role": "quasi-identifier", "kind": "positions"},
        "Gender": {"role": "quasi-identifier", "kind": "suppression"},
        "Country": {"role": "quasi-identifier", "kind": "suppression"},
        "Income": {"role": "sensitive"},
    }
    rows = [row.split() for row in text.split("|")]
    published = pd.DataFrame(rows, columns=names[:3], dtype="str")
    published["Income"] = original["Income"]
    return Table(original, schema), published


@pytest.mark.parametrize(
    ("text", "stars", "regular", "anonymous"),
    [
        (GLOBAL, 28, True, True),
        (LOCAL, 15, True, True),
        (PRINTED, 12, False, False),
        (MENDED, 12, True, False),
    ],
    ids=["table 4", "table 5", "table 6", "table 6 mended"],
)
def test_paper_2_tables(text: str, stars: int, regular: bool, anonymous: bool) -> None:
    table, published = low_loss(text)
    assert table.q == 7
    assert text.count("*") == stars
    check = verify(table, published, ["covers", "k-regular", "k-anonymity"], k=2)
    assert check["covers"].holds
    assert check["k-regular"].holds == regular
    assert check["k-anonymity"].holds == anonymous


def test_paper_2_table_6_as_printed_names_the_row() -> None:
    table, published = low_loss(PRINTED)
    finding = verify(table, published, "k-regular", k=2)["k-regular"]
    assert (finding.failed, finding.side, finding.positions) == (1, "published", (2,))
    assert "13 of 14" in finding.detail
    shuffled = published.iloc[[4, 2, 0, 1, 6, 5, 3]].reset_index(drop=True)
    assert verify(table, shuffled, "k-regular", k=2)["k-regular"].positions == (1,)


# ------------------------------------------------------------------------- constrained k-anonymity

PLACES = {
    "West Coast": {"California": ["San Diego", "Los Angeles"]},
    "Midwest": {"Kansas": ["Wichita", "Kansas City"], "Nebraska": ["Lincoln"]},
}
FIRST = """30-32 California M W/30-32 California M W/30-42 Midwest * W/30-42 Midwest * W/30-42 Midwest * W
20-25 Midwest * B/20-25 Midwest * B""".replace("\n", "/")
SECOND = """30-32 California M W/30-32 California M W/25-42 Kansas * */25-42 Kansas * */20-35 Lincoln * *
20-35 Lincoln * */25-42 Kansas * *""".replace("\n", "/")


def constrained(text: str) -> tuple[Table, Generalization]:
    names = ["Age", "Location", "Sex", "Race"]
    original = pd.DataFrame(
        {
            "Age": [32, 30, 42, 30, 35, 20, 25],
            "Location": [
                "San Diego",
                "Los Angeles",
                "Wichita",
                "Kansas City",
                "Lincoln",
                "Lincoln",
                "Wichita",
            ],
            "Sex": list("MMMMFMF"),
            "Race": list("WWWWWBB"),
        }
    )
    schema: dict[str, Any] = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in names}
    schema["Age"]["kind"] = "numeric"
    schema["Location"].update(
        kind="hierarchy",
        hierarchy={"nested": {"United States": PLACES}},
        boundary=["California", "Kansas", "Midwest"],
    )
    table = Table(original, schema)
    frame = pd.DataFrame([row.split() for row in text.split("/")], columns=names, dtype="str")
    return table, Generalization.parse(frame, table.domains)


def test_paper_3_figure_4_has_three_violating_cells_and_none() -> None:
    table, first = constrained(FIRST)
    check = verify(table, anonymization(first, 2), ["covers", "k-anonymity", "boundary"])
    assert [finding.holds for finding in check] == [True, True, False]
    assert check["boundary"].failed == 3
    assert check["boundary"].positions == (2, 3, 6)
    assert "Location 3" in check["boundary"].detail
    table, second = constrained(SECOND)
    assert verify(table, anonymization(second, 2), ["covers", "k-anonymity", "boundary"])


def test_paper_3_figure_4_as_a_release() -> None:
    """Without positions: no matching within the boundaries leaves fewer than three rows over."""
    rng = np.random.default_rng(0)
    for text, failed in ((FIRST, 3), (SECOND, 0)):
        table, result = constrained(text)
        frame = result.decode().iloc[rng.permutation(7)].reset_index(drop=True)
        check = verify(table, frame, ["covers", "boundary"], k=2)
        assert check["covers"].holds
        assert check["boundary"].failed == failed


def test_a_boundary_that_is_no_node_is_refused() -> None:
    with pytest.raises(SchemaError, match="boundary"):
        Table(
            pd.DataFrame({"a": ["Lincoln", "Wichita"]}),
            {
                "a": {
                    "role": "quasi-identifier",
                    "kind": "hierarchy",
                    "hierarchy": {"nested": {"United States": PLACES}},
                    "boundary": ["Nowhere"],
                }
            },
        )


# ------------------------------------------------------------------------- k-concealment


def test_paper_4_table_1() -> None:
    original = pd.DataFrame(
        {
            "age": [30, 21, 21, 55, 47],
            "zipcode": ["10055", "10055", "10023", "10165", "10224"],
            "disease": ["Measles", "Flu", "Angina", "Flu", "Diabetes"],
        }
    )
    table = Table(
        original,
        {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "zipcode": {"role": "quasi-identifier", "kind": "positions"},
            "disease": {"role": "sensitive"},
        },
    )
    ages = ["21-30", "21-30", "21-30", "47-55", "47-55"]
    b = pd.DataFrame({"age": ages, "zipcode": ["100**"] * 3 + ["10***"] * 2, "disease": original["disease"]})
    assert all(holds(table, b, 2).values())
    c = b.copy()
    c.loc[0, "zipcode"], c.loc[1, "age"] = "10055", "21"
    assert holds(table, c, 2) == {name: name != "k-anonymity" for name in SEVEN}


def sets(n: int, rows: list[list[int]]) -> tuple[Table, pd.DataFrame]:
    """One attribute with the values 1..n, one record each; rows are sets of values."""
    values = [f"{value:02d}" for value in range(1, n + 1)]
    table = Table(pd.DataFrame({"A": values}), {"A": {"role": "quasi-identifier", "kind": "categorical"}})
    texts = [
        "*" if len(row) == n else "{" + "|".join(f"{value:02d}" for value in sorted(row)) + "}"
        for row in rows
    ]
    texts = [text[1:-1] if text.startswith("{") and "|" not in text else text for text in texts]
    return table, pd.DataFrame({"A": texts}, dtype="str")


def appendix(k: int) -> dict[str, tuple[int, list[list[int]]]]:
    """The generalizations of the proofs of Propositions 5 and 7 by the region of Figure 1 that they are in."""
    every = list(range(1, k + 2))

    def without(value: int) -> list[int]:
        return [other for other in every if other != value]

    a, b = list(range(1, k + 2)), list(range(k + 2, 2 * k + 2))
    return {
        "k-anonymity": (k + 1, [every] * (k + 1)),
        "only (1,k)": (k + 1, [[1]] + [every] * (k - 1) + [without(1)]),
        "only (k,1)": (k + 1, [without(k + 1)] + [without(1)] * k),
        "concealed (k,k)": (k + 1, [without(value) for value in every]),
        "concealed, not (k,1)": (k + 1, [every[: k - 1]] + [every] * k),
        "(k,k), not concealed": (
            2 * k + 1,
            [[1, *b[:-1]]] + [a] * (k - 1) + [a[1:]] + [b] * k,
        ),
    }


REGIONS = {  # k-anonymity, (1,k), (k,1), k-concealment
    "k-anonymity": (True, True, True, True),
    "only (1,k)": (False, True, False, False),
    "only (k,1)": (False, False, True, False),
    "concealed (k,k)": (False, True, True, True),
    "concealed, not (k,1)": (False, True, False, True),
    "(k,k), not concealed": (False, True, True, False),
}


@loop("k", [3, 4, 5])
@loop("region", REGIONS)
def test_paper_4_appendix(region: str, k: int) -> None:
    n, rows = appendix(k)[region]
    table, frame = sets(n, rows)
    result = holds(table, frame, k)
    assert result["covers"]  # g_(k,k) by a matching: its row i does not cover record i
    request = ("k-anonymity", "(1,k)", "(k,1)", "k-concealment")
    assert tuple(result[name] for name in request) == REGIONS[region]
    assert result["(k,k)"] == (result["(1,k)"] and result["(k,1)"])
    graph = [[value in row for row in rows] for value in range(1, n + 1)]
    if n <= 7:
        case = Case(graph, [tuple(row) for row in rows], k)
        assert (case.k_anonymity(), case.one_k(), case.k_one(), case.concealment()) == REGIONS[region]
        assert case.regular() == result["k-regular"]


@pytest.mark.slow
def test_paper_4_every_region_by_generation() -> None:
    """Random graphs and variations of the proofs' fall into every region at k = 3; one is empty at k = 2."""
    rng = np.random.default_rng(4)
    for k, empty in ((2, {(False, True, False, True)}), (3, set())):
        seen = set()
        for _ in range(3000):
            n = int(rng.integers(k, 7))
            if rng.random() < 0.1:  # an example of the proofs, shuffled, perhaps with one edge more
                size, lists = appendix(k)[str(rng.choice(list(REGIONS)))]
                graph = np.array([[value in row for row in lists] for value in range(1, size + 1)])
                graph = graph[rng.permutation(size)][:, rng.permutation(size)]
                n = size
                if rng.random() < 0.5:
                    graph[rng.integers(n), rng.integers(n)] = True
            else:
                graph = (rng.random((n, n)) < rng.choice([0.3, 0.5, 0.7])) | np.eye(n, dtype=bool)
            rows = [tuple(np.flatnonzero(column).tolist()) for column in graph.T]
            case = Case(graph.tolist(), rows, k)
            region = (case.k_anonymity(), case.one_k(), case.k_one(), case.concealment())
            if region not in seen:
                seen.add(region)
                table, frame = sets(n, [[value + 1 for value in row] for row in rows])
                result = holds(table, frame, k)
                request = ("k-anonymity", "(1,k)", "(k,1)", "k-concealment")
                assert tuple(result[name] for name in request) == region
        assert set(REGIONS.values()) - seen == empty
        assert seen - set(REGIONS.values()) <= {(False, False, False, False)}


def test_paper_1_figure_3_is_concealed_and_not_regular() -> None:
    """Four assignments, edges in three of them and edges in one: matches, but not equally likely."""
    rows = [[1, 2, 3, 4], [1, 2], [1, 3], [1, 4]]
    total, counts = edge_counts([[value in row for row in rows] for value in range(1, 5)])
    assert (total, counts[1][1], counts[0][1], counts[1][0]) == (4, 3, 1, 1)
    table, frame = sets(4, rows)
    result = holds(table, frame, 2)
    assert result["k-concealment"]
    assert not result["k-regular"]
    evidence = collect(table, subject_of(frame), 2, None)
    matches = match_edges(evidence)
    assert matches is not None
    assert matches.all()
    assert evidence.graph.edges == 10


# ------------------------------------------------------------------------- pattern-guided


def test_paper_5_patterns() -> None:
    original = pd.DataFrame({"a": list("xxxy"), "b": list("1122"), "c": list("pqrs")})
    schema = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in original}
    table = Table(original, schema)
    published = pd.DataFrame({"a": list("xx**"), "b": list("1122"), "c": list("****")})
    assert verify(table, published, ["covers", "k-anonymity", "pattern"], k=2)
    request = {"pattern": {"patterns": ["--*", "*-*"]}}
    assert verify(table, published, ["covers", request], k=2)
    finding = verify(table, published, {"pattern": {"patterns": ["--*", "**-"]}}, k=2)["pattern"]
    assert (finding.failed, finding.positions) == (2, (2, 3))
    named = {"pattern": {"patterns": [["c"], ["a", "c"]]}}
    assert verify(table, published, named, k=2)
    bits = {"pattern": {"patterns": [[0, 0, 1], (True, False, True)]}}
    assert verify(table, published, bits, k=2)
