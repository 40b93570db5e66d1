"""Spoiled releases: refused whenever brute force refuses them, and always with the certificate, position named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.release import Release, publish
from anonflow.table import Table
from tests.naive import criteria as naive
from tests.strategies import TREE, city_tree

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

METHODS: dict[str, tuple[str, Callable[[], Table], Any]] = {
    "k-regular": ("greedy", people, "k-regular"),
    "k-anonymity": ("mondrian", people, "k-anonymity"),
    "(k,k)": ("greedy", people, "(k,k)"),
    "k-concealment": ("hungarian", people, "k-concealment"),
    "boundary": ("greedy", bounded, "boundary"),
    "l-diversity": ("mondrian", people, {"l-diversity": {"l": 1.2, "column": "ill"}}),
    "p-sensitivity": ("mondrian", people, {"p-sensitivity": {"p": 2, "column": "ill"}}),
    "t-closeness": ("mondrian", people, {"t-closeness": {"t": 0.9, "column": "ill"}}),
}


def refuses(table: Table, frame: pd.DataFrame, criterion: Any) -> bool | None:
    """Whether brute force refuses a release: another number of rows, no cover, or the criterion; None: not asked."""
    if len(frame) != table.n:
        return True
    names = list(table.qi_columns)
    below = naive.leaves_below(TREE["*"])
    graph = naive.graph_of(
        table.frame[names].to_numpy().tolist(),
        frame[names].astype(str).to_numpy().tolist(),
        ["numeric", "categorical", "hierarchy"],
        [None, None, below],
    )
    blank = [False] * table.n
    rest = table.frame["ill"].to_numpy(), frame["ill"].to_numpy()
    carrying = [
        [edge and rest[0][i] == rest[1][j] for j, edge in enumerate(row)] for i, row in enumerate(graph)
    ]
    if naive.largest_matching(carrying) < table.n:
        return True
    if criterion == "k-regular":
        return naive.regular_flow(graph, K, blank) != table.n * K
    if criterion == "k-anonymity":
        sizes = frame[names].astype(str).groupby(names)[names[0]].transform("size")
        return bool((sizes < K).any())
    if criterion == "(k,k)":
        matrix = np.array(graph, bool)
        return bool((matrix.sum(axis=0) < K).any() or (matrix.sum(axis=1) < K).any())
    return None


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("name", METHODS)
def test_spoiled_releases_are_refused(name: str, mutation: str) -> None:
    algorithm, make, criterion = METHODS[name]
    table = make()
    anon = af.anonymize(table, algorithm, k=K, seed=1)
    rng = np.random.default_rng(sum(map(ord, name + mutation)))
    refused = 0
    for at in range(12):
        release = publish(anon, SEED + at, rehearsal=True)
        frame = release.frame
        for column in table.qi_columns:
            frame[column] = frame[column].astype("str")
        asked = ["covers", criterion]
        if at == 0:
            assert af.verify(table, frame, asked, k=K)
            assert af.verify(table, frame, asked, k=K, certificate=release.certificate)
        spoiled, rows = MUTATIONS[mutation](frame, table, release, rng)
        plain = af.verify(table, spoiled, asked, k=K)
        wanted = refuses(table, spoiled, criterion)
        if wanted is not None:
            assert bool(plain) == (not wanted)
        if mutation in ("drop", "add"):
            assert not plain
            assert not af.verify(table, spoiled, asked, k=K, certificate=release.certificate)
            refused += 1
            continue
        certified = af.verify(
            table, spoiled, ["covers", promised(anon), criterion], k=K, certificate=release.certificate
        )
        refused += not certified
        if not certified:
            named = {
                p
                for finding in certified
                if not finding.holds
                for p in finding.positions
                if finding.side == "published"
            }
            # a copy may itself be as good as what it replaced: then it is another row that finds no original left
            assert named & rows or (named and mutation == "duplicate"), (named, rows)
        else:
            # nothing is wrong with it: every row still covers what its certificate lists, and carries one of theirs
            assert mutation in ("duplicate", "swap")
            assert plain
    assert refused >= 10


def promised(anon: Any) -> str:
    return str(anon.guarantee)
