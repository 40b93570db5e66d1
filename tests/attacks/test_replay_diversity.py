"""Running the method again undoes what only widens rows: the matches that it finds must not give values away.

The attacker knows everybody's quasi-identifiers, runs the method on them, and so recovers the rows that list each person,
whatever else covers them. Where these rows show one value it names that value. An oracle tells it which published row
is which generalized record, more than it could find out itself.

Before: Adult, 600 records, greedy, k = 5, p = 2: it named the values of more than 200 people, every one of them correctly,
while ``verify`` said that p-sensitivity holds. Now: nobody's candidates share a value on the lists that the release was
drawn along, and along the replayed graph the attacker is right as often as the people beside somebody have the value that it names.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import datasets
from anonflow.errors import InfeasibleError
from anonflow.release import RandomWords, Release
from anonflow.release.draw import draw_permutation
from anonflow.release.randomness import seed_of_table
from anonflow.table.row_marks import Content

SEED = 2**127 + 11
K = 5


def census() -> tuple[af.Table, str]:
    """Two thirds of 600 made-up people share one value."""
    frame = datasets.census_like(600, seed=4)
    rng = np.random.default_rng(9)
    frame["Salary-class"] = np.where(rng.random(600) < 0.7, "low", "high")
    return af.Table(frame, datasets.schema("census_like")), "Salary-class"


@pytest.fixture(params=["census", pytest.param("adult", marks=pytest.mark.data)])
def table(request: Any) -> tuple[af.Table, str]:
    if request.param == "census":
        return census()
    request.getfixturevalue("data_folder")
    frame = datasets.adult(complete=True).iloc[:600].reset_index(drop=True)
    return af.Table(frame, datasets.schema("adult")), "salary-class"


def replayed(table: af.Table, release: Release, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whom the attacker is sure of, whether it is right about them, and how many of those beside them have that value.

    Each of shape (n,): bool, bool, and a share. Beside a person are all others on the rows that list it: their values follow
    quasi-identifiers as its own does, and say what anybody could guess without its record.
    """
    matches = af.anonymize(table, "greedy", K).matches
    assert matches is not None
    # the oracle: row r is generalized record order[r]
    content = Content.of(table.frame, [str(name) for name in table.frame.columns])
    order = draw_permutation(table.n, RandomWords(seed_of_table(SEED, content.to_bytes())))
    shown = pd.factorize(release.frame[column])[0]
    of_record = np.empty(table.n, np.int64)
    of_record[order] = shown
    values = [set() for _ in range(table.n)]  # type: list[set[int]]
    for j, listed in enumerate(matches):
        for i in listed[listed >= 0]:
            values[i].add(int(of_record[j]))
    own = pd.factorize(pd.concat([release.frame[column], table.frame[column]]))[0][table.n :]
    sure = np.array([len(value) == 1 for value in values])
    right = np.array([own[i] in item for i, item in enumerate(values)])
    beside: list[set[int]] = [set() for _ in range(table.n)]
    for listed in matches.tolist():
        for i in listed:
            beside[i].update(listed)
    share = np.zeros(table.n)
    for i in np.flatnonzero(sure):
        others = own[list(beside[i] - {i})]
        share[i] = np.isin(others, list(values[i])).mean()
    return sure, sure & right, share


@pytest.mark.slow
@pytest.mark.data
def test_blind_is_refused_where_values_follow_the_quasi_identifiers(data_folder: Path) -> None:
    frame = datasets.adult(complete=True).iloc[:600].reset_index(drop=True)
    anon = af.anonymize(af.Table(frame, datasets.schema("adult")), "greedy", K)
    with pytest.raises(
        InfeasibleError, match=r"throwaway draws would be refused with 43 rows for each person"
    ):
        af.diversify(anon, "p-sensitivity", p=2, seed=1, way="blind")


@pytest.mark.parametrize("way", ["classes", "blind"])
def test_a_replay_names_no_values(table: tuple[af.Table, str], way: str) -> None:
    people, column = table
    if (way, column) == ("blind", "salary-class"):
        pytest.skip("refused: the test above")
    anon = af.anonymize(people, "greedy", K)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diverse = af.diversify(anon, "p-sensitivity", p=2, column=column, seed=1, way=way)
        release = diverse.release(seed=SEED)
    # who runs all of it again knows the lists that were drawn along
    assert release.certificate is not None
    lists = [release.certificate.of(row) for row in range(people.n)]
    shown: list[set[Any]] = [set() for _ in range(people.n)]
    for listed, value in zip(lists, release.frame[column]):
        for i in listed:
            shown[i].add(value)
    assert min(map(len, shown)) >= 2
    # the verifier and the attacker say the same
    claim = {"p-sensitivity": {"p": 2, "column": column}}
    assert af.verify(people, release, ["covers", "k-regular", claim])
    result = af.attack(people, release, {"homogeneity": {"column": column}}).iloc[0]
    assert result["at_risk"] == 0
    # who runs the method alone is sure of some people, and right about them as about those beside them
    sure, right, share = replayed(people, release, column)
    if sure.sum() >= 20:
        usual = share[sure].mean()
        spare = 4 * np.sqrt(usual * (1 - usual) / sure.sum())
        assert right.sum() / sure.sum() <= usual + spare


def test_without_diversity_the_attacker_and_the_verifier_agree(table: tuple[af.Table, str]) -> None:
    """Greedy alone promises no diversity: the attack works, and verifier, attacker and attack count the same people."""
    people, column = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = af.anonymize(people, "greedy", K).release(seed=SEED)
    sure, right, _ = replayed(people, release, column)
    assert sure.sum() > 50
    assert (sure == right).all()
    claim = {"p-sensitivity": {"p": 2, "column": column}}
    finding = af.verify(people, release, claim).findings[0]
    result = af.attack(people, release, {"homogeneity": {"column": column}}).iloc[0]
    assert finding.failed == result["at_risk"] == sure.sum()


def test_from_covers_alone_the_verifier_says_what_that_is_worth(
    table: tuple[af.Table, str], tmp_path: Path
) -> None:
    people, column = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        diverse = af.diversify(af.anonymize(people, "greedy", K), "p-sensitivity", p=2, column=column, seed=1)
        release = diverse.release(seed=SEED)
    path = tmp_path / "release.csv"
    release.write(path)
    claim = {"p-sensitivity": {"p": 2, "column": column}}
    words = "holds only against attackers who cannot rerun the method"
    assert words in af.verify(people, path, claim, k=K).findings[0].detail
    certified = af.verify(people, path, claim, k=K, certificate=release.certificate).findings[0]
    assert certified.holds
    assert words not in certified.detail
