"""Spoiled releases: refused whenever brute force refuses them, and always with the certificate, position named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.release import Certificate, Release, publish
from anonflow.table import Table, row_marks
from tests.naive import concealment
from tests.naive import criteria as naive
from tests.strategies import TREE, city_tree, loop, seeded

N, K = 40, 4
SEED = 2**127

Mutation = Callable[[pd.DataFrame, Table, Release, np.random.Generator], tuple[pd.DataFrame, set[int]]]


def people(**more: Any) -> Table:
    rng = np.random.default_rng(8)
    qi = {"role": "quasi-identifier"}
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 40, N).astype(str),
            "job": rng.choice(list("pqrs"), N),
            "city": rng.choice(["San Diego", "Los Angeles", "Wichita", "Topeka", "Lincoln"], N),
            "ill": [f"s{i % 7}" for i in rng.permutation(N)],
        },
        dtype="str",
    )
    return Table(
        frame,
        {
            "age": {**qi, "kind": "numeric"},
            "job": {**qi, "kind": "categorical"},
            "city": {**qi, "kind": "hierarchy", "hierarchy": city_tree(), **more},
            "ill": {"role": "sensitive"},
        },
    )


def bounded() -> Table:
    return people(boundary=["West", "Midwest"])


def originals_of(release: Release, row: int) -> int:
    assert release.truth is not None
    return int(release.truth[row])


def test_drawn_originals_are_a_claim_that_is_checked() -> None:
    """Whatever a release says of them, the verdict is the same."""
    table = people()
    release = publish(af.anonymize(table, "greedy", k=K), SEED, rehearsal=True)
    truth = release.truth
    assert truth is not None
    spoiled, _ = swap(release.frame, table, release, np.random.default_rng(1))
    far = truth.copy()
    far[0] = 2**50
    claims: list[Any] = [
        None, truth[::-1], truth[:-1], np.append(truth, N), -truth, far, np.zeros(N, int), truth.astype(float),
        truth.astype(np.uint64), truth.astype(str), truth[:, None], truth.tolist(), 7,
    ]  # fmt: skip
    for claim in claims:
        claimed = replace(release, truth=claim)
        assert af.verify(table, claimed, "covers", certificate=release.certificate)
        assert not af.verify(
            table, replace(claimed, frame=spoiled), "covers", certificate=release.certificate
        )


def wide_rows(frame: pd.DataFrame) -> list[int]:
    """Rows whose age is a range."""
    return [i for i, text in enumerate(frame["age"].astype(str)) if "-" in text or text == "*"]


def narrow(frame: pd.DataFrame, table: Table, release: Release, rng: np.random.Generator) -> Any:
    """One cell shrinks to the value of the row's own original."""
    spoiled = frame.copy()
    rows = wide_rows(frame)
    row = int(rng.choice(rows))
    spoiled["age"] = spoiled["age"].astype("str")
    spoiled.loc[row, "age"] = table.frame["age"].iloc[originals_of(release, row)]
    return spoiled, {row}


def drop(frame: pd.DataFrame, table: Table, release: Release, rng: np.random.Generator) -> Any:
    """One row is gone."""
    row = int(rng.integers(N))
    return frame.drop(index=row).reset_index(drop=True), {row}


def duplicate(frame: pd.DataFrame, table: Table, release: Release, rng: np.random.Generator) -> Any:
    """One row stands in the place of another one."""
    spoiled = frame.copy()
    while True:
        i, j = (int(v) for v in rng.choice(N, 2, replace=False))
        if not (frame.iloc[i] == frame.iloc[j]).all():
            break
    spoiled.iloc[j] = frame.iloc[i]
    return spoiled, {j}


def add(frame: pd.DataFrame, table: Table, release: Release, rng: np.random.Generator) -> Any:
    """One row stands there twice."""
    return pd.concat([frame, frame.iloc[[int(rng.integers(N))]]], ignore_index=True), {N}


def swap(frame: pd.DataFrame, table: Table, release: Release, rng: np.random.Generator) -> Any:
    """Two rows change their quasi-identifiers, and keep the rest."""
    spoiled = frame.copy()
    names = list(table.qi_columns)
    while True:
        i, j = (int(v) for v in rng.choice(N, 2, replace=False))
        if (
            not (frame.loc[i, names] == frame.loc[j, names]).all()
            and frame.loc[i, "ill"] != frame.loc[j, "ill"]
        ):
            break
    spoiled.loc[[i, j], names] = frame.loc[[j, i], names].to_numpy()
    return spoiled, {i, j}


def move(frame: pd.DataFrame, table: Table, release: Release, rng: np.random.Generator) -> Any:
    """One sensitive value becomes one that none of the row's originals has."""
    spoiled = frame.copy()
    certificate = release.certificate
    assert certificate is not None
    while True:
        row = int(rng.integers(N))
        present = set(table.frame["ill"].iloc[certificate.of(row)])
        others = sorted(set(table.frame["ill"]) - present)
        if others:
            break
    spoiled.loc[row, "ill"] = str(rng.choice(others))
    return spoiled, {row}


MUTATIONS: dict[str, Mutation] = {f.__name__: f for f in (narrow, drop, duplicate, add, swap, move)}

PATTERNS = [list(pattern) for size in range(3) for pattern in combinations(("age", "job", "city"), size)]

METHODS: dict[str, tuple[str, Callable[[], Table], Any]] = {
    "k-regular": ("greedy", people, "k-regular"),
    "k-anonymity": ("mondrian", people, "k-anonymity"),
    "(1,k)": ("greedy", people, "(1,k)"),
    "(k,1)": ("greedy", people, "(k,1)"),
    "(k,k)": ("greedy", people, "(k,k)"),
    "k-concealment": ("hungarian", people, "k-concealment"),
    "boundary": ("greedy", bounded, "boundary"),
    "pattern": ("pattern-guided", people, {"pattern": {"patterns": PATTERNS}}),
    "l-diversity": ("mondrian", people, {"l-diversity": {"l": 1.2, "column": "ill"}}),
    "p-sensitivity": ("mondrian", people, {"p-sensitivity": {"p": 2, "column": "ill"}}),
    "entropy": ("mondrian", people, {"entropy-l-diversity": {"l": 1.4, "column": "ill"}}),
    "recursive": ("mondrian", people, {"recursive-l-diversity": {"l": 2, "c": 4.0, "column": "ill"}}),
    "t-closeness": ("mondrian", people, {"t-closeness": {"t": 0.9, "column": "ill"}}),
}
OPTIONS: dict[str, dict[str, Any]] = {"pattern": {"patterns": PATTERNS}}


def refuses(table: Table, frame: pd.DataFrame, criterion: Any) -> bool:
    """Whether brute force refuses a release: another number of rows, no cover, or the criterion."""
    if len(frame) != table.n:
        return True
    names = list(table.qi_columns)
    rows = frame[names].astype(str).to_numpy().tolist()
    graph = naive.graph_of(
        table.frame[names].to_numpy().tolist(),
        rows,
        ["numeric", "categorical", "hierarchy"],
        [None, None, naive.leaves_below(TREE["*"])],
    )
    blank = [all(cell == "*" for cell in row) for row in rows]
    case = naive.Case(graph, rows, K, (list(table.frame["ill"]), list(frame["ill"])), blank)
    if naive.largest_matching(case._with_rest(graph)) < table.n:
        return True
    name, request = next(iter(criterion.items())) if isinstance(criterion, dict) else (criterion, {})
    if name == "k-regular":
        return not case.regular()
    if name == "k-anonymity":
        return not case.k_anonymity()
    if name == "(1,k)":
        return not case.one_k()
    if name == "(k,1)":
        return not case.k_one()
    if name == "(k,k)":
        return not case.k_k()
    if name == "k-concealment":
        matches = concealment.matches_of(np.array(graph, bool))
        return matches is None or not case._enough(matches.tolist())
    if name == "boundary":
        return any(row[2] == "*" for row, all_blank in zip(rows, blank) if not all_blank)
    if name == "pattern":
        stars = [[names[j] for j, cell in enumerate(row) if cell == "*"] for row in rows]
        return any(star not in PATTERNS for star, all_blank in zip(stars, blank) if not all_blank)
    ill, whole = list(frame["ill"]), list(table.frame["ill"])
    if case.k_anonymity():
        shown = case.shown("class", ill)
    else:  # without classes a person's rows are those of the matches
        matches = concealment.matches_of(np.array(graph, bool))
        assert matches is not None
        shown = [
            [ill[j] for j in range(table.n) if matches[i, j] and not case.exempt[j]] for i in range(table.n)
        ]
    holds: dict[str, Callable[[list[str]], bool]] = {
        "l-diversity": lambda values: naive.frequency(values, request["l"]),
        "p-sensitivity": lambda values: naive.distinct(values, request["p"]),
        "entropy-l-diversity": lambda values: naive.entropy(values, request["l"]),
        "recursive-l-diversity": lambda values: naive.recursive(values, request["l"], request["c"]),
        "t-closeness": lambda values: naive.emd_equal(values, whole) <= request["t"] + 1e-12,
    }
    return not all(holds[name](values) for values in shown)


@cache
def anonymized(name: str) -> tuple[Table, Any]:
    algorithm, make, _ = METHODS[name]
    table = make()
    return table, af.anonymize(table, algorithm, k=K, seed=1, **OPTIONS.get(name, {}))


@seeded(5, 3)
@loop("mutation", MUTATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_spoiled_releases_are_refused(name: str, mutation: str, seeds: range) -> None:
    criterion = METHODS[name][2]
    table, anon = anonymized(name)
    rng = np.random.default_rng(sum(map(ord, name + mutation)))
    refused = 0
    for at in seeds:
        release = publish(anon, SEED + at, rehearsal=True)
        assert release.certificate is not None
        frame = release.frame
        for column in table.qi_columns:
            frame[column] = frame[column].astype("str")
        requests = ["covers", criterion]
        if at == 0:
            assert af.verify(table, frame, requests, k=K)
            assert af.verify(table, frame, requests, k=K, certificate=release.certificate)
        spoiled, rows = MUTATIONS[mutation](frame, table, release, rng)
        plain = af.verify(table, spoiled, requests, k=K)
        assert bool(plain) != refuses(table, spoiled, criterion)
        if mutation in ("drop", "add"):
            assert not plain
            certified = af.verify(table, spoiled, requests, k=K, certificate=release.certificate)
            assert not certified
            if (
                mutation == "add"
                or not (frame.iloc[min(rows)] == frame.iloc[min(min(rows) + 1, N - 1)]).all()
            ):
                assert {p for finding in certified for p in finding.positions} == rows
            refused += 1
            continue
        certified = af.verify(table, spoiled, requests, k=K, certificate=release.certificate)
        refused += not certified
        # along the lists alone a copy may be as good as what it replaced: the marks tell it apart, and where
        assert set(certified["certificate"].positions) == rows
        strict = af.verify(
            table,
            spoiled,
            ["covers", promised(anon)],
            k=K,
            certificate=replace(release.certificate, row_marks=None),
        )
        if not strict:
            named = {p for f in strict if not f.holds for p in f.positions if f.side == "published"}
            assert named & rows or (named and mutation == "duplicate"), (named, rows)
        else:
            assert mutation in ("duplicate", "swap")
            assert plain
    assert refused == len(seeds)


def promised(anon: Any) -> str:
    return str(anon.guarantee)


@pytest.mark.parametrize("name", ["r.csv", "r.parquet"])
def test_a_certificate_knows_its_rows_in_a_file(name: str, tmp_path: Path) -> None:
    table = people()
    release = publish(af.anonymize(table, "greedy", k=K, seed=1), SEED, rehearsal=True)
    assert release.certificate is not None
    release.certificate.save(tmp_path / "c.npz")
    kept = Certificate.load(tmp_path / "c.npz")
    release.write(tmp_path / name)
    check = af.verify(table, tmp_path / name, ["covers"], certificate=kept)
    assert check
    assert [finding.criterion for finding in check] == ["covers"]
    # two whole rows in each other's place: the same table, and not the one that was published
    swapped = release.frame.iloc[[1, 0, *range(2, N)]].reset_index(drop=True)
    Release(swapped).write(tmp_path / f"swapped-{name}")
    check = af.verify(table, tmp_path / f"swapped-{name}", ["covers"], certificate=kept)
    assert not check
    assert check["certificate"].positions == (0, 1)
    # the same rows without the owner's certificate are as good as before
    assert af.verify(table, tmp_path / f"swapped-{name}", ["covers", "k-regular"], k=K)


def test_marks_need_their_key() -> None:
    frame = pd.DataFrame({"a": ["1", "b", "b"], "b": [1.0, 2.5, 2.5]})
    marks = row_marks(frame, ["a", "b"], "k" * 16)
    assert marks[1] == marks[2] != marks[0]
    assert (marks == row_marks(frame.astype("str"), ["b", "a"], "k" * 16)).all()
    assert (marks != row_marks(frame, ["a", "b"], "l" * 16)).all()
    assert (marks != row_marks(frame.assign(b=[2, 1, 3]), ["a", "b"], "k" * 16)).all()


def shorter(certificate: Certificate) -> Certificate:
    """The certificate whose first list lacks an original."""
    offsets = certificate.list_offsets.copy()
    offsets[1:] -= 1
    return replace(certificate, list_offsets=offsets, list_originals=certificate.list_originals[1:])


@pytest.mark.parametrize("method", ["hungarian", "two-phase", "mondrian", "k-member"])
def test_a_list_that_is_one_short_fails(tmp_path: Path, method: str) -> None:
    """Attack: the weaker criterion that still holds stands in for what was promised."""
    table = people()
    release = publish(af.anonymize(table, method, k=K), seed=SEED)
    assert release.certificate is not None
    short = shorter(release.certificate)
    assert af.verify(table, release.frame, certificate=release.certificate)
    release.write(tmp_path / "r.csv")
    for subject in (release.frame, tmp_path / "r.csv"):
        check = af.verify(table, subject, certificate=short)
        assert not check
        named = "certificate" if release.certificate.criterion == "k-anonymity" else "k-regular"
        assert check[named].holds is False


def narrowed(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows, one of which is narrowed until two people fit it."""
    names = list(table.qi_columns)
    texts = frame.astype(object)
    for row in range(len(frame)):
        for i, j in combinations(range(table.n), 2):
            cells = table.frame.iloc[[i, j]]
            low, high = sorted(float(value) for value in cells["age"])
            if cells["job"].nunique() > 1 or cells["city"].nunique() > 1 or low == high:
                continue
            spoiled = texts.copy()
            spoiled.loc[row, names] = [f"{low:g}-{high:g}", cells["job"].iloc[0], cells["city"].iloc[0]]
            fits = (
                table.frame["age"].astype(float).between(low, high)
                & (table.frame["job"] == cells["job"].iloc[0])
                & (table.frame["city"] == cells["city"].iloc[0])
            )
            if fits.sum() == 2 and af.verify(table, spoiled, "covers"):
                return spoiled
    raise AssertionError("no row can be narrowed")


def test_what_is_promised_is_checked_not_the_weaker_that_holds(tmp_path: Path) -> None:
    """Attack: a row of a k-regular release is narrowed until two people fit it, and k-concealment still holds."""
    table = people()
    release = publish(af.anonymize(table, "hungarian", k=K), seed=SEED)
    release.write(tmp_path / "r.csv")
    assert af.verify(table, tmp_path / "r.csv")
    spoiled = narrowed(table, release.frame)
    spoiled.to_csv(tmp_path / "r.csv", index=False)
    check = af.verify(table, tmp_path / "r.csv")
    assert not check
    assert check["k-regular"].holds is False
    assert not af.verify(table, tmp_path / "r.csv", "covers")["description"].holds


@pytest.mark.parametrize("method", ["hungarian", "mondrian", "k-concealment"])
@pytest.mark.parametrize("hidden", [1, K - 1])
def test_few_hidden_rows_that_show_a_value_are_not_passed(tmp_path: Path, method: str, hidden: int) -> None:
    """Attack: whoever is missing among the other rows is found among these."""
    table = people()
    release = publish(af.anonymize(table, method, k=K), seed=SEED)
    spoiled = release.frame.astype(object)
    spoiled.loc[range(hidden), list(table.qi_columns)] = "*"
    release.write(tmp_path / "r.csv")
    spoiled.to_csv(tmp_path / "r.csv", index=False)
    for subject in (spoiled, tmp_path / "r.csv"):
        check = af.verify(table, subject, k=K)
        assert not check
        (finding,) = [each for each in check if each.criterion == "suppressed"]
        assert f"{hidden} rows" in finding.detail or hidden == 1
    spoiled.loc[range(hidden), "ill"] = "*"
    assert all(each.criterion != "suppressed" for each in af.verify(table, spoiled, k=K))
