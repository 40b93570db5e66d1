"""Columns that follow from quasi-identifiers: link each row to the candidate that its other columns fit best.

Figures, 600 records of Adult with five quasi-identifiers, greedy, k = 5 (1/k = 0.20): a copy of age, or the year of
birth, names 0.74 of the rows' people, an education code 0.47, an age band 0.34. The tests generate such a table. The release cannot stop it: columns
are published as they are. What must hold is that the model is as strong as the attack (within 0.03), says which
column it is, at the draw, in attackers and as a criterion, and finds nothing where there is nothing (below 0.25).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import risk
from anonflow.candidate_lists import Candidates
from anonflow.release import Release, ReleaseWarning
from anonflow.release import columns as columns_of_release
from anonflow.table.identification import linkage
from anonflow.table.identification.linkage import Link

N, K = 600, 5
QI = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "education": {"role": "quasi-identifier", "kind": "categorical"},
    "town": {"role": "quasi-identifier", "kind": "categorical"},
    "sex": {"role": "quasi-identifier", "kind": "categorical"},
}


def people(n: int = N, seed: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": np.clip(rng.normal(40, 13, n), 17, 90).astype(int),
            "education": rng.choice([f"level {i}" for i in range(12)], n, p=np.arange(1, 13) / 78),
            "town": rng.choice(list("abcdef"), n),
            "sex": rng.choice(["f", "m"], n),
        }
    )


def columns(frame: pd.DataFrame) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {
        "copy": frame["age"],
        "born": 2020 - frame["age"],
        "band": [f"{10 * (age // 10)}s" for age in frame["age"]],
        "code": frame["education"].str[6:].astype(int) * 7,
        "note": [f"seen at {age} years, {sex}" for age, sex in zip(frame["age"], frame["sex"], strict=True)],
        "time": pd.Timestamp("1990-01-01T12:00") - pd.to_timedelta(365 * frame["age"], "D"),
        "zoned": (
            pd.Timestamp("1990-01-01T12:00+05:30") - pd.to_timedelta(365 * frame["age"], "D")
        ).dt.as_unit("us"),
        "noise": rng.integers(20, 60, len(frame)),
    }


def drawn(names: list[str], k: int = K, method: str = "greedy") -> tuple[af.Table, Any, Release, list[str]]:
    frame = people()
    frame = frame.assign(**{name: columns(frame)[name] for name in names})
    table = af.Table(frame, QI | {name: {"role": "insensitive"} for name in names})
    anonymization = af.anonymize(table, method, k=k)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = anonymization.release(seed=2**127 + 1)
    return table, anonymization, release, [str(warning.message) for warning in caught]


def naive(table: af.Table, release: Release, follows: dict[Any, Any], name: str, of: str) -> float:
    """The attacker who knows the dependence itself: guess among the candidates that fit exactly."""
    right = []
    certificate = release.certificate
    assert certificate is not None
    value, source = release.frame[name].tolist(), table.frame[of].tolist()
    for row in range(table.n):
        fits = sum(follows[source[i]] == value[row] for i in certificate.of(row).tolist())
        right.append(1 / fits)
    return float(np.mean(right))


@pytest.mark.parametrize(
    ("name", "of"), [("copy", "age"), ("born", "age"), ("band", "age"), ("code", "education")]
)
def test_the_model_is_as_strong_as_the_attack(name: str, of: str) -> None:
    table, _, release, _ = drawn([name])
    follows = dict(zip(table.frame[of], table.frame[name], strict=True))
    strength = naive(table, release, follows, name, of)
    row = af.attack(table, release, "linkable-columns", k=K).iloc[0]
    assert strength - 0.03 <= row["success"] <= strength + 0.03
    declared = af.attack(table, release, {"linkable-columns": {"declared": [name]}}, k=K).iloc[0]
    assert declared["success"] == pytest.approx(strength)
    assert row["at_risk"] > 0


def test_linkage_wins_by_a_copy_where_other_attackers_see_nothing() -> None:
    table, _, release, answer = drawn(["copy"])
    risks = af.attack(table, release, k=K).set_index("attacker")
    assert risks.loc["linker", "success"] <= 1 / K + 1e-9
    assert risks.loc["linkable-columns", "success"] > 0.5
    assert any("'copy' follows from 'age'" in sentence for sentence in answer)


@pytest.mark.parametrize("method", ["greedy", "mondrian", "k-concealment"])
def test_the_draw_warns_with_the_number(method: str) -> None:
    _, _, _, answer = drawn(["copy", "noise"], method=method)
    messages = [sentence for sentence in answer if "follows" in sentence]
    assert len(messages) == 1
    assert "'copy'" in messages[0]
    assert "instead of 0.20" in messages[0]


def test_times_follow_with_a_zone_or_without() -> None:
    _, _, plain, warnings_seen = drawn(["time"])
    _, _, zoned, same = drawn(["zoned"])
    for name, sentences in (("time", warnings_seen), ("zoned", same)):
        assert any(f"'{name}' follows from 'age'" in sentence for sentence in sentences)
        assert not any("timezones" in sentence for sentence in sentences)
    assert sorted(plain.frame["time"] + "+05:30") == sorted(zoned.frame["zoned"])


def test_free_text_that_repeats_a_quasi_identifier() -> None:
    table, _, release, answer = drawn(["note"])
    assert any("'note' follows from 'age'" in sentence for sentence in answer)
    assert af.attack(table, release, "linkable-columns", k=K)["success"][0] > 0.5


def test_a_column_that_uses_no_quasi_identifier_is_named_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        columns_of_release,
        "linkage",
        lambda *arguments: [Link("note", np.ones(len(arguments[3].row_list)), ())],
    )
    table = af.Table(
        pd.DataFrame({"age": [1, 2, 3, 4], "note": [1, 1, 2, 2]}),
        {"age": QI["age"], "note": {"role": "insensitive"}},
    )
    (sentence,) = columns_of_release.told_by_columns(
        table, range(4), Candidates.of_classes(np.zeros(4, np.int64)), 4
    )
    assert sentence.startswith("column 'note' leads back to people: ")


def test_a_column_that_says_nothing_is_not_named() -> None:
    table, _, release, answer = drawn(["noise"])
    assert answer == []
    row = af.attack(table, release, "linkable-columns", k=K).iloc[0]
    assert row["success"] < 0.25
    assert row["at_risk"] == 0


def test_the_criterion_and_the_attacker_are_one_model() -> None:
    table, anonymization, release, _ = drawn(["band", "code"])
    checked = af.verify(table, release, {"linkable-columns": 0.5}, k=K, certificate=release.certificate)
    assert [finding.parameters["column"] for finding in checked] == ["band", "code", None]
    rows = af.attack(table, release, {"linkable-columns": {"threshold": 0.5}}, k=K).iloc[0]
    assert checked.findings[-1].failed == rows["at_risk"] > 0
    assert not checked
    assert f"{rows['success']:.3f} on average" in checked.findings[-1].detail
    check = af.verify(table, release, "linkable-columns(threshold=1, column=code)", k=K)
    assert check
    assert len(check) == 1
    with pytest.raises(af.errors.ParameterError, match=r"at least 0\.2"):
        af.verify(table, release, {"linkable-columns": 0.1}, k=K)
    with pytest.raises(af.errors.ParameterError, match="needs threshold"):
        af.verify(table, release, "linkable-columns", k=K)
    with pytest.raises(af.errors.ParameterError, match="not a published column"):
        af.verify(table, release, "linkable-columns(threshold=0.5, column=age)", k=K)
    with pytest.raises(af.errors.ParameterError, match="draw it first"):
        af.verify(table, anonymization, {"linkable-columns": 0.5}, k=K)


def test_a_dependence_is_looked_for_once_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The draw's warning, the attacker and the criterion ask for the same columns; another table has dependences of its own."""
    codings, searched = linkage._codings, []

    def counted(texts: Any, codes: np.ndarray, domains: Any) -> Any:
        searched.append(codes)
        return codings(texts, codes, domains)

    monkeypatch.setattr(linkage, "_codings", counted)
    for tables in (1, 2):
        table, _, release, sentences = drawn(["born", "noise"])
        first, again = (af.attack(table, release, "linkable-columns", k=K) for _ in range(2))
        assert first.equals(again)
        assert af.verify(
            table, release, [{"linkable-columns": {"threshold": 1}}], certificate=release.certificate
        )
        assert any("'born'" in sentence for sentence in sentences)
        assert len(searched) == 2 * tables


@pytest.mark.parametrize("wrong", ["twice", "outside"])
def test_a_claim_that_lists_somebody_twice_hides_nothing(wrong: str) -> None:
    """A forged claim may not spread the probability over copies of one candidate, nor over people who are not there."""
    table, _, release, _ = drawn(["copy"])
    assert release.certificate is not None
    lists = np.stack([release.certificate.of(row) for row in range(table.n)])
    more = lists[:, :1] if wrong == "twice" else np.full((table.n, 1), table.n + 7)
    criterion = "linkable-columns(threshold=0.6)"
    true = af.verify(table, release.frame, [criterion], certificate=lists, k=K)
    forged = af.verify(
        table, release.frame, [criterion, "k-regular"], certificate=np.hstack([lists, more]), k=K
    )
    assert forged[criterion.partition("(")[0]].detail == true.findings[0].detail
    assert not forged["k-regular"].holds


def test_all_columns_together_find_more_than_each() -> None:
    table, _, release, _ = drawn(["band", "code"])
    alone = [
        af.attack(table, release, {"linkable-columns": {"column": name}}, k=K)["success"][0]
        for name in ("band", "code")
    ]
    assert af.attack(table, release, "linkable-columns", k=K)["success"][0] > max(alone) + 0.05


def test_no_pair_counts_for_itself() -> None:
    """Unique random values depend on nothing, although each stands beside its own record in the table."""
    table, _, release, _ = drawn(["noise"])
    frame = table.frame.assign(noise=np.random.default_rng(0).permutation(N) * 1.5)
    own = af.Table(frame, QI | {"noise": {"role": "insensitive"}})
    with pytest.warns(ReleaseWarning, match="nearly unique"):
        release = af.anonymize(own, "mondrian", k=K).release(seed=2**127)
    assert af.attack(own, release, risk.LinkableColumns(), k=K)["success"][0] < 0.21


def sentences(**cells: Any) -> list[str]:
    frame = people().assign(**cells)
    table = af.Table(frame, QI | {name: {"role": "insensitive"} for name in cells})
    anonymization = af.anonymize(table, "mondrian", k=K)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        anonymization.release(seed=2**127)
    return [str(warning.message) for warning in caught]


def test_four_columns_that_are_unique_together() -> None:
    rng = np.random.default_rng(5)
    answer = sentences(**{f"c{i}": rng.integers(12, size=N) for i in range(4)})
    assert len(answer) == 1
    assert "together are nearly unique" in answer[0]
    assert sentences(**{f"c{i}": rng.integers(2, size=N) for i in range(4)}) == []


def test_halves_lead_back_together_alone() -> None:
    frame = people()
    halves = {
        "gender": frame["sex"],
        "old": frame["age"] >= 40,
        "north": frame["town"].isin(list("abc")),
        "high": frame["education"].str[6:].astype(int) > 6,
    }
    assert sentences(**{name: halves[name] for name in ("gender", "old", "north")}) == []
    (answer,) = sentences(**halves)
    assert answer.startswith(
        "the columns 'gender', 'old', 'north', 'high' together lead back to people: they name a row's person"
    )
    assert answer.endswith("leave some of them out, or make them quasi-identifiers")


def test_sorted_but_for_one_exchange() -> None:
    cells = np.arange(N) // 60
    cells[[5, 500]] = cells[[500, 5]]
    assert any(
        "'ward' is monotone: its 10 values" in sentence and "but for 4 breaks" in sentence
        for sentence in sentences(ward=cells)
    )
    assert sentences(ward=np.random.default_rng(6).permutation(cells)) == []


def test_names_unique_for_49_percent() -> None:
    names = np.array([f"n{i}" for i in range(294)] + [f"m{i % 100}" for i in range(306)])
    answer = sentences(name=np.random.default_rng(7).permutation(names))
    assert any("'name' is nearly unique: 294 records" in sentence for sentence in answer)
