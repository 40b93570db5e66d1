"""The verifier's door: subjects, criteria by name, answers, and errors that say what to do."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.candidate_lists import Candidates
from anonflow.criteria import CRITERIA, Finding, Verification, criteria_names, verify
from anonflow.criteria.classes import check_uniqueness
from anonflow.criteria.request import CriterionRequest, read_criteria
from anonflow.errors import DataError, ParameterError, VerificationError
from anonflow.generalization import Generalization
from anonflow.table import Table
from anonflow.table.sampling_weights import WeightSummary
from tests.cases.criteria import anonymization, regular_matches, release_frame
from tests.strategies import loop

QI = {"role": "quasi-identifier"}
SCHEMA: dict[str, Any] = {
    "age": {**QI, "kind": "numeric"},
    "work": {**QI, "kind": "categorical"},
    "zip": {**QI, "kind": "positions"},
    "pay": {"role": "sensitive"},
    "note": {"role": "insensitive"},
}


def people(n: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(17, 90, n),
            "work": rng.choice(["Private", "State-gov", "Never", "a|b"], n),
            "zip": rng.choice(["94221", "94112", "94121", "93111"], n),
            "pay": rng.integers(1, 4, n) * 1000.5,
            "note": rng.choice(["", "yes", "no"], n),
        }
    )
    return Table(frame, SCHEMA)


def regular(n: int = 60, k: int = 4, seed: int = 0) -> tuple[Table, Generalization, np.ndarray, pd.DataFrame]:
    """A table, its k-regular generalization, the matches, and a release drawn along them."""
    rng = np.random.default_rng(seed)
    table = people(n, seed)
    matches = regular_matches(rng, n, k)
    boxes = Generalization.join_of(table.records, matches)
    return table, boxes, matches, release_frame(table, boxes, rng, matches[:, rng.integers(k)])


# ------------------------------------------------------------------------------------------ subjects


def test_an_anonymization_a_release_a_frame_and_files(tmp_path: Path) -> None:
    table, result, matches, frame = regular()
    own = anonymization(result, 4, matches=matches, guarantee="k-regular", suppressed=np.zeros(60, bool))
    frame.to_csv(tmp_path / "r.csv", index=False)
    frame.to_parquet(tmp_path / "r.parquet", index=False)
    release = SimpleNamespace(frame=frame, certificate=SimpleNamespace(k=4, criterion="k-regular"))
    for subject in (own, release):
        assert verify(table, subject, ["covers", "guarantee"])
        assert [f.criterion for f in verify(table, subject)] == ["covers", "k-regular"]
    for subject in (frame, str(tmp_path / "r.csv"), tmp_path / "r.parquet"):
        check = verify(table, subject, ["covers", "k-regular"], k=4)
        assert check
        assert check["k-regular"].detail == "maximum flow 240 of 240"
    assert verify(table, result.decode(index=table.index), "k-regular", k=4)
    assert not verify(table, frame, "k-regular", k=40)


def test_a_table_from_a_file_and_a_release_from_a_file(tmp_path: Path) -> None:
    table, _, _, frame = regular()
    table.frame.to_csv(tmp_path / "original.csv", index=False)
    frame.to_csv(tmp_path / "release.csv", index=False)
    read = Table.read(tmp_path / "original.csv", SCHEMA)
    assert verify(read, tmp_path / "release.csv", ["covers", "k-regular"], k=4)
    assert verify(read, frame, "covers", k=4)
    assert verify(table, tmp_path / "release.csv", "covers", k=4)


def test_the_strongest_that_holds_is_reported() -> None:
    table, result, _, frame = regular()
    assert [f.criterion for f in verify(table, frame, k=4)] == ["covers", "k-regular"]
    classes = Generalization.join_by_class(table.records, np.arange(60) // 4)
    assert [f.criterion for f in verify(table, anonymization(classes, 4))] == ["covers", "k-anonymity"]
    itself = Generalization.of(table.records)
    check = verify(table, anonymization(itself, 4))
    assert [f.criterion for f in check] == ["covers", "k-anonymity", "k-regular", "k-concealment"]
    assert not check
    assert result.n == 60


def test_another_number_of_rows_fails_and_does_not_crash() -> None:
    table, result, matches, frame = regular()
    for wrong in (frame.iloc[1:], pd.concat([frame, frame.iloc[:1]]), frame.iloc[:0]):
        check = verify(table, wrong, ["covers", "k-regular", "k-anonymity"], k=4)
        assert not check
        assert [f.holds for f in check] == [False] * 3
        assert "rows" in check["covers"].detail
    assert not verify(table, frame.iloc[1:], k=4)
    ordered = result.decode()
    ordered["pay"], ordered["note"] = table.frame["pay"], table.frame["note"]
    dropped = ordered.drop(index=7).reset_index(drop=True)
    finding = verify(table, dropped, "k-regular", k=4, certificate=matches)["k-regular"]
    assert not finding.holds
    assert finding.positions[0] >= 7
    assert not verify(table, anonymization(result.take(np.arange(59)), 4))


def test_numbers_in_frames_are_read_as_text_is() -> None:
    table, result, _, _ = regular()
    frame = result.decode()
    plain = Generalization.of(table.records).decode()
    plain["age"] = plain["age"].astype(int)
    assert verify(table, plain, "covers", k=4)
    assert len(frame) == 60


# ------------------------------------------------------------------------------------------ mutations


def narrowed(boxes: Generalization, table: Table, j: int) -> Generalization:
    """The generalized record j shrunk to its own original on one QI where it is wider."""
    lo, bits, hi = boxes.lo.copy(), boxes.bits.copy(), boxes.hi.copy()
    own = Generalization.of(table.records)
    wider = np.flatnonzero(hi[:, j] > lo[:, j])
    if len(wider):
        t = int(wider[0])
        lo[t, j], hi[t, j] = own.lo[t, j], own.hi[t, j]
    else:
        bits[:, j] = own.bits[:, j]
    return Generalization(boxes.domains, lo, hi, bits)


def test_with_the_matches_every_narrowed_row_is_named() -> None:
    table, result, matches, _ = regular()
    for j in range(60):
        check = verify(table, anonymization(narrowed(result, table, j), 4, matches=matches), "k-regular")
        assert check["k-regular"].positions == (j,)


def test_with_the_certificate_mutations_are_named() -> None:
    table, result, matches, _ = regular()
    rng = np.random.default_rng(1)
    place = rng.permutation(60)
    frame = result.take(place).decode()
    listed = matches[place]
    for name in table.other_columns:
        frame[name] = table.frame[name].to_numpy()[listed[:, 2]]
    both = ["covers", "k-regular"]
    offsets = np.arange(61) * 4
    certificate = SimpleNamespace(
        offsets=offsets, originals=np.sort(listed, axis=1).ravel(), k=4, criterion="k-regular"
    )
    assert verify(table, frame, both, certificate=certificate)
    assert verify(table, frame, both, k=4, certificate=listed)
    assert not verify(table, frame, ["k-regular"], k=5, certificate=listed)

    cell = frame.copy()
    cell.loc[9, "age"] = str(table.frame["age"].iloc[listed[9, 0]])
    check = verify(table, cell, both, certificate=certificate)
    assert check["k-regular"].positions == check["covers"].positions == (9,)

    swapped = frame.copy()
    swapped.iloc[[3, 30]] = swapped.iloc[[30, 3]].to_numpy()
    assert set(verify(table, swapped, both, certificate=certificate)["k-regular"].positions) <= {3, 30}
    assert not verify(table, swapped, both, certificate=certificate)

    moved = frame.copy()
    moved.loc[5, "pay"] = 77.0
    assert verify(table, moved, "covers", certificate=certificate)["covers"].positions == (5,)
    assert verify(table, moved, "k-regular", certificate=certificate)
    assert not verify(table, moved, "covers", k=4)

    twice = listed.copy()
    twice[4, 1] = twice[4, 0]
    assert verify(table, frame, "k-regular", certificate=twice, k=4)["k-regular"].positions == (4,)
    outside = listed.copy()
    outside[4, 1] = 60
    assert verify(table, frame, "k-regular", certificate=outside, k=4)["k-regular"].positions == (4,)
    # two rows list the same original once more: its rows are not in k assignments
    uneven = listed.copy()
    wide = Generalization.join_of(table.records, uneven).with_suppressed(np.ones(60, bool))
    uneven[4, uneven[4] != place[4]] = np.setdiff1d(np.arange(60), uneven[4])[:3]
    assert not verify(table, anonymization(wide, 4, matches=uneven), "k-regular")


def test_a_certificate_about_something_else_is_refused() -> None:
    table, _, matches, frame = regular()
    for wrong in (matches[:59], np.zeros(5), SimpleNamespace(offsets=[0, 9], originals=[1]), "a"):
        with pytest.raises(DataError, match="certificate"):
            verify(table, frame, "k-regular", k=4, certificate=wrong)


def test_components_of_different_degrees_are_regular() -> None:
    """One odd partition may use k + 1 matches: rows of a matrix are filled up with -1."""
    table = people(9)
    matches = np.full((9, 4), -1)
    matches[:4] = [[j, (j + 1) % 4, (j + 2) % 4, -1] for j in range(4)]
    matches[4:] = [[4 + (j + t) % 5 for t in range(4)] for j in range(5)]
    boxes = Generalization.join_of(table.records, matches)
    assert verify(table, anonymization(boxes, 3, matches=matches), "k-regular")
    assert verify(table, anonymization(boxes, 3), "k-regular")
    assert not verify(table, anonymization(boxes, 4, matches=matches), "k-regular")
    matches[0, 2] = 4
    boxes = Generalization.join_of(table.records, matches)
    assert not verify(table, anonymization(boxes, 3, matches=matches), "k-regular")


# ------------------------------------------------------------------------------------------ suppression


def suppressed_few(s: int, k: int = 4, n: int = 40) -> tuple[Table, Any, pd.DataFrame, np.ndarray]:
    """s suppressed records beside a k-regular rest; their other columns are blank where s < k."""
    table = people(n, 3)
    matches = np.full((n, k), -1)
    matches[:, 0] = np.arange(n)
    rest = np.arange(s, n)
    matches[s:] = rest[regular_matches(np.random.default_rng(0), n - s, k)]
    mask = np.arange(n) < s
    boxes = Generalization.join_of(table.records, matches).with_suppressed(mask)
    frame = boxes.decode(suppressed=mask)
    for name in table.other_columns:
        frame[name] = table.frame[name].map(str, na_action="ignore")
        if s < k:
            frame.loc[mask, name] = "*"
    return table, anonymization(boxes, k, matches=matches, suppressed=mask), frame, matches


def test_fewer_than_k_suppressed_records_say_nothing() -> None:
    every = ["covers", "k-regular", "k-concealment", "(k,1)"]
    for s in (1, 3):
        table, own, frame, matches = suppressed_few(s)
        assert verify(table, own, every)
        assert verify(table, own, "k-regular")["k-regular"].holds
        assert verify(table, frame, every, k=4)
        assert verify(table, frame, ["covers", "k-regular"], k=4, certificate=matches)
        changed = frame.copy()
        for name in table.other_columns:
            changed[name] = table.frame[name].map(str, na_action="ignore")
        assert verify(table, changed, "covers", k=4)
        check = verify(table, changed, "k-regular", k=4, certificate=matches)
        assert check["k-regular"].positions == tuple(range(s))


def test_k_suppressed_records_are_a_class() -> None:
    table, own, frame, matches = suppressed_few(5)
    every = ["covers", "k-regular", "k-concealment"]
    assert verify(table, own, every)
    assert verify(table, frame, every, k=4)
    assert verify(table, frame, ["covers", "k-regular"], k=4, certificate=matches)
    blanked = frame.copy()
    blanked.loc[:4, list(table.other_columns)] = "*"
    finding = verify(table, blanked, "covers", k=4)["covers"]
    assert finding.positions == (0, 1, 2, 3, 4)
    assert "fewer than k" in finding.detail


def test_suppressed_rows_may_not_share_originals() -> None:
    table, own, _, matches = suppressed_few(2)
    shared = matches.copy()
    shared[1, 0] = 0
    own.matches = shared
    assert not verify(table, own, "k-regular")
    shared[1, 0] = 9
    assert not verify(table, own, "k-regular")


def test_blank_rows_need_k() -> None:
    table, _, frame, _ = suppressed_few(2)
    with pytest.raises(ParameterError, match="needs k"):
        verify(table, frame, "covers")


# ------------------------------------------------------------------------------------------ what is asked


def test_criteria_are_read_from_names_texts_and_mappings() -> None:
    assert read_criteria("covers", None) == [CriterionRequest("covers")]
    assert read_criteria(["(1, k)", "(k,k)-anonymity", "k-regularity"], None) == [
        CriterionRequest("(1,k)"),
        CriterionRequest("(k,k)"),
        CriterionRequest("k-regular"),
    ]
    three = CriterionRequest("l-diversity", {"l": 3, "column": "pay"})
    assert read_criteria("l-diversity(l=3, column=pay)", None) == [three]
    assert read_criteria([{"l-diversity": {"l": 3, "column": "pay"}}], None) == [three]
    assert read_criteria({"t-closeness": 0.2}, None) == [CriterionRequest("t-closeness", {"t": 0.2})]
    assert read_criteria("distinct-l-diversity(l=2)", None) == [CriterionRequest("p-sensitivity", {"p": 2})]
    assert read_criteria(["covers", "guarantee", "covers"], "k-regular") == [
        CriterionRequest("covers"),
        CriterionRequest("k-regular"),
    ]
    assert read_criteria("guarantee", "(k,1)") == [CriterionRequest("(k,1)")]
    assert set(criteria_names()) >= {"covers", "k-regular", "t-closeness", "boundary", "pattern"}


@loop(
    ("criteria", "message"),
    [
        ("k-regulr", "did you mean 'k-regular'"),
        ("nonsense", "known: covers"),
        ([], "no criterion"),
        (3, "name or a list"),
        ([3], "not int"),
        ("guarantee", "does not say"),
        ("l-diversity", "needs l"),
        ("l-diversity(l=x)", "needs l"),
        ("l-diversity(m=2)", "unknown parameter 'm'"),
        ("covers(k=2)", "takes no parameter"),
        ({"covers": 2}, "takes no parameter"),
        ("recursive-l-diversity(l=2.5, c=1)", "whole number"),
        ("p-sensitivity(p=2, per=row)", "must be one of class, matches"),
        ("p-sensitivity(p=2, column=age)", "not a published column"),
        ("t-closeness(t=0.1, distance=far)", "must be one of numeric, equal, hierarchy"),
        ("t-closeness(t=0.1, distance=hierarchy)", "needs a hierarchy"),
        ({"pattern": {"patterns": "-*-"}}, "list of patterns"),
        ({"pattern": {"patterns": ["-*"]}}, "pattern 1"),
        ({"pattern": {"patterns": [["age"], ["income"]]}}, "pattern 2"),
        ({"pattern": {"never": ["age", "income"]}}, "'income', which is not a quasi-identifier"),
        ("linkable-columns(threshold=0.5, column=age)", "'age' is not a published column besides"),
        (
            {"linkable-columns": {"threshold": 0.5, "declared": ["pay", "age"]}},
            "'age' is not a published column besides",
        ),
    ],
)
def test_what_cannot_be_asked(criteria: Any, message: str) -> None:
    table, _, _, frame = regular(12, 3)
    with pytest.raises(ParameterError, match=message):
        verify(table, frame, criteria, k=3)


@loop(
    ("fraction", "weights", "message"),
    [
        (None, None, "needs the sampling fraction"),
        (0.05, None, ""),
        (None, [20.0, 20.0], ""),
        (None, [20.0, 21.0], "the weights are unequal"),
        (0.05, [20.0, 20.0], "leave the sampling fraction out"),
    ],
)
def test_a_sample_has_a_fraction_or_equal_weights(
    fraction: float | None, weights: list[float] | None, message: str
) -> None:
    summary = None if weights is None else WeightSummary.of(np.array(weights))
    with pytest.raises(ParameterError, match=message) if message else nullcontext():
        check_uniqueness(fraction, summary)


def test_bad_subjects_and_k() -> None:
    table, _, _, frame = regular(12, 3)
    for k in (1, 0, -2, True, 2.0, "3"):
        with pytest.raises(ParameterError, match="k must be"):
            verify(table, frame, "covers", k=k)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="needs k"):
        verify(table, frame)
    with pytest.raises(ParameterError, match="cannot verify a int"):
        verify(table, 3, "covers")
    with pytest.raises(ParameterError, match="anonflow Table"):
        verify(frame, frame, "covers")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="release"):
        verify(table, "no-release.csv", "covers")


def test_a_column_that_does_not_fit_is_named() -> None:
    table, _, _, frame = regular(12, 3)
    cases = {
        "'age'": frame.drop(columns="age"),
        "'pay'": frame.drop(columns="pay"),
        "'name'": frame.assign(name="x"),
        "'work'": pd.concat([frame, frame[["work"]]], axis=1),
        "1 cell is": frame.assign(work=["Zebra", *frame["work"][1:]]),
    }
    for message, wrong in cases.items():
        with pytest.raises(DataError, match=message) as caught:
            verify(table, wrong, "covers", k=3)
        assert "Zebra" not in str(caught.value)


# ------------------------------------------------------------------------------------------ answers


def test_answers() -> None:
    table, _, _, frame = regular()
    worse = frame.copy()
    worse["work"] = "Never"
    check = verify(table, worse, ["covers", "k-regular"], k=4)
    assert not check
    assert len(check["covers"].positions) == 20 < check["covers"].failed
    shown = check.frame()
    assert list(shown) == ["criterion", "holds", "failed", "side", "positions", "detail"]
    assert shown["criterion"].tolist() == ["covers", "k-regular"]
    assert not shown["holds"].any()
    document = json.loads(check.to_json())
    assert document["holds"] is False
    assert document["checks"][0]["positions"] == list(check["covers"].positions)
    assert "NOT all hold" in repr(check)
    with pytest.raises(VerificationError) as caught:
        check.raise_if_failed()
    assert caught.value.exit_status == 1
    assert len(caught.value.problems) == 2
    good = verify(table, frame, "covers", k=4)
    assert good.raise_if_failed() is good
    assert "all hold" in repr(good)
    assert [finding.criterion for finding in good] == ["covers"]
    assert len(good) == 1
    assert pickle.loads(pickle.dumps(check)).to_json() == check.to_json()
    with pytest.raises(ParameterError, match="was not checked"):
        good["k-regular"]
    assert not Verification((), 3)


def test_answers_have_no_values() -> None:
    """Marker strings in every cell stay out of every answer and error."""
    rng = np.random.default_rng(2)
    mark = np.array([f"MARK{v}" for v in range(9)])
    frame = pd.DataFrame({"a": rng.choice(mark, 30), "b": rng.choice(mark, 30), "s": rng.choice(mark, 30)})
    schema = {
        "a": {**QI, "kind": "categorical"},
        "b": {**QI, "kind": "suppression"},
        "s": {"role": "sensitive"},
    }
    table = Table(frame, schema)
    boxes = Generalization.of(table.records)
    release = release_frame(table, boxes, rng)
    names = [name for name in criteria_names() if not CRITERIA[name].needed]
    requests = [
        *names,
        {"l-diversity": 3},
        {"t-closeness": 0.01},
        {"p-sensitivity": 3},
        {"entropy-l-diversity": 3},
        {"beta-likeness": 0.01},
        {"alpha-k-anonymity": 0.01},
    ]
    for subject in (release, anonymization(boxes, 3)):
        check = verify(table, subject, requests, k=3)
        assert "MARK" not in repr(check) + check.to_json() + check.frame().to_string()
        assert not check
    wrong = release.copy()
    wrong["b"] = "MARKother"
    with pytest.raises(DataError) as caught:
        verify(table, wrong, "covers", k=3)
    assert "MARK" not in str(caught.value)


def test_finding_of_a_mask_and_of_positions() -> None:
    assert Finding.of("c", np.array([False, True]), "original", "").positions == (1,)
    assert Finding.of("c", np.array([5, 2]), "original", "").positions == (2, 5)
    assert Finding.of("c", np.zeros(3, bool), "original", "").holds


def test_listing_from_certificates() -> None:
    matrix = np.array([[0, 1, -1], [1, 2, 0], [2, -1, -1]])
    listing = Candidates.of_claim(matrix)
    assert listing.offsets.tolist() == [0, 2, 5, 6]
    assert listing.originals.tolist() == [0, 1, 1, 2, 0, 2]
    assert listing.sizes.tolist() == [2, 3, 1]
