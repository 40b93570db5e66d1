"""Attackers: none beats 1/k by quasi-identifiers, each wins where it should, and the truth stays with the owner."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import risk
from anonflow.algorithms import REGISTRY
from anonflow.errors import ParameterError
from anonflow.release import RandomWords, Release
from anonflow.release.randomness import DRAW_STEP, checked_secret, seed_of_table
from anonflow.release.rows import drawn_originals
from anonflow.risk.attack import COLUMNS
from anonflow.risk.attacker import wilson
from anonflow.table.row_marks import Content
from tests.cases.tables import mixed, sampled
from tests.checks import SOON, TAKE_EVERY_KIND
from tests.naive import risk as naive
from tests.strategies import examples, loop

STRONG = [name for name in TAKE_EVERY_KIND if REGISTRY[name].guarantee in ("k-regular", "k-anonymity")]
QUIET = pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")


def by_name(frame: pd.DataFrame) -> dict[str, Any]:
    return {row["attacker"]: row for row in frame.to_dict("records")}


def read_as(frame: pd.DataFrame) -> list[str]:
    """Each row as one text."""
    return ["/".join(cells) for cells in zip(*(frame[name].astype(str) for name in frame), strict=True)]


def graph_table(covers: np.ndarray) -> tuple[af.Table, Release]:
    """A table of n people, and a release whose row j covers the originals of ``covers[j]`` and is person j's."""
    n = len(covers)
    names = [f"p{i:02d}" for i in range(n)]
    table = af.Table(
        pd.DataFrame({"who": names, "ill": [f"s{i}" for i in range(n)]}),
        {"who": {"role": "quasi-identifier", "kind": "categorical"}, "ill": {"role": "sensitive"}},
    )
    cells = []
    for row in covers:
        members = [names[i] for i in np.flatnonzero(row)]
        cells.append(
            "*" if len(members) == n else members[0] if len(members) == 1 else "{" + "|".join(members) + "}"
        )
    frame = pd.DataFrame({"who": cells, "ill": [f"s{i}" for i in range(n)]})
    return table, Release(frame, None, np.arange(n))


def in_quarters() -> np.ndarray:
    """The first graph of four records with four perfect matchings whose edges lie on three of them or on one."""
    for code in range(1 << 16):
        covers = np.array([(code >> b) & 1 for b in range(16)], bool).reshape(4, 4)
        if not covers.diagonal().all() or covers.sum() < 8:
            continue
        matchings = naive.matchings(covers)
        if len(matchings) != 4:
            continue
        shares = naive.probabilities(covers)[covers]
        if set(np.round(shares, 9)) == {0.25, 0.75}:
            return covers
    raise AssertionError("there is no such graph")


# ------------------------------------------------------------------------------------- no more than 1/k


@QUIET
@pytest.mark.parametrize("algorithm", sorted(STRONG))
@loop("k", [2, 5])
def test_nobody_beats_one_in_k_by_quasi_identifiers(algorithm: str, k: int) -> None:
    for table in (mixed(40), sampled("nursery", 60)):
        options = SOON.get(algorithm, {})
        anon = af.anonymize(table, algorithm, k=k, seed=3, **options)
        release = anon.release(seed=2**127)
        result = by_name(af.attack(table, release, ["prosecutor", "marketer", "linker", "order"], seed=1))
        for name in ("prosecutor", "marketer", "linker"):
            assert result[name]["success"] <= 1 / k + 1e-12, name
            assert result[name]["worst"] <= 1 / k + 1e-12, name
            assert result[name]["at_risk"] == 0, name
        hits = result["order"]
        assert wilson(hits["success"], hits["targets"], 4.0)[0] <= 1 / k
        assert hits["at_risk"] == 0


def drawn(anon: Any, seed: int) -> np.ndarray:
    """The original that goes with each generalized record in the release of a seed, before the rows are shuffled; (n,)."""
    content = Content.of(anon.table.frame, [str(name) for name in anon.table.frame.columns])
    words = RandomWords(seed_of_table(checked_secret(seed), content.to_bytes()), DRAW_STEP)
    return drawn_originals(anon.matches, anon.classes, np.asarray(anon.suppressed, bool), words)


@QUIET
@pytest.mark.slow
@pytest.mark.parametrize("algorithm", sorted(STRONG))
def test_the_draw_itself_is_one_in_k(algorithm: str) -> None:
    """Many draws of one anonymization: no row and original belong together more often than once in k."""
    table, k, draws = mixed(40), 4, 600
    options = SOON.get(algorithm, {})
    anon = af.anonymize(table, algorithm, k=k, seed=3, **options)
    together = np.zeros((40, 40))
    names = list(table.qi_columns)
    frame = pd.Series(read_as(anon.frame()[names]))
    label = {text: i for i, text in enumerate(dict.fromkeys(frame))}
    texts = frame.map(label).to_numpy()
    for seed in range(draws):
        origin = drawn(anon, seed)
        together[texts, origin] += 1
        if seed < 3:  # a release is such a draw, shuffled
            release = risk.AttackContext.of(table, anon, seed=seed)
            assert release.truth is not None
            rows = [label[text] for text in read_as(release.frame[names])]
            assert sorted(zip(rows, release.truth.tolist(), strict=True)) == sorted(
                zip(texts.tolist(), origin.tolist(), strict=True)
            )
    # rows that read the same are one choice for who looks at them, so at most their number times 1/k
    counts = frame.map(label).value_counts().sort_index().to_numpy()
    bound = np.minimum(counts / k, 1.0)
    most = together[: len(counts)].max(axis=1) / draws
    hidden = anon.suppressed.any()
    for rate, limit in zip(most, bound, strict=True):
        assert hidden or wilson(float(rate), draws, 4.5)[0] <= limit


# ------------------------------------------------------------------------------------------- counting


def test_a_graph_in_quarters() -> None:
    covers = in_quarters()
    shares = risk.match_probabilities(covers)
    assert set(np.round(shares[covers], 12)) == {0.25, 0.75}
    table, release = graph_table(covers)
    assert af.verify(table, release, ["k-concealment"], k=2)
    result = by_name(af.attack(table, release, ["counting", "linker"], k=2))
    assert result["counting"]["worst"] == pytest.approx(0.75)
    assert result["counting"]["at_risk"] >= 1
    assert result["linker"]["worst"] <= 0.5


@examples(60)
@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.booleans(), min_size=n * n, max_size=n * n)))
def test_counting_agrees_with_every_matching(cells: list[bool]) -> None:
    n = round(len(cells) ** 0.5)
    covers = np.array(cells).reshape(n, n) | np.eye(n, dtype=bool)
    np.testing.assert_allclose(risk.match_probabilities(covers), naive.probabilities(covers), atol=1e-12)


def test_counting_without_a_matching_and_out_of_reach() -> None:
    assert not risk.match_probabilities(np.zeros((3, 3), bool)).any()
    assert risk.match_probabilities(np.ones((18, 18), bool))[0, 0] == pytest.approx(1 / 18)
    with pytest.raises(ParameterError, match="at most 18"):
        risk.match_probabilities(np.ones((19, 19), bool))
    with pytest.raises(ParameterError, match="square"):
        risk.match_probabilities(np.ones((2, 3), bool))


# ------------------------------------------------------------------------------------------- insiders


@examples(40)
@given(st.data())
def test_what_an_insider_has_left(data: st.DataObject) -> None:
    n = data.draw(st.integers(3, 6))
    cells = data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    covers = np.array(cells).reshape(n, n) | np.eye(n, dtype=bool)
    table, release = graph_table(covers)
    c = data.draw(st.integers(0, n - 1))
    insider = risk.Insider(c, targets=n)
    context = risk.AttackContext.of(table, release, k=2, seed=5)
    left = insider._left(context)[1]
    again = np.random.default_rng(5)
    original, row = risk.AttackContext.of(table, release, k=2, seed=5).pairs
    for at, target in enumerate(again.permutation(np.arange(n)).tolist()):
        others = np.array(sorted(set(row[original == target]) - {target}), dtype=int)
        known = again.permutation(others)[:c].tolist()
        assert left[at] == naive.rows_left(covers, np.arange(n), target, known)


@QUIET
def test_the_security_left_of_equal_records_and_of_freeform() -> None:
    table, k = sampled("nursery", 240), 6
    equal = af.anonymize(table, "mondrian", k=k)
    free = af.anonymize(table, "hungarian", k=k, seed=1)
    curves = {}
    for anon in (equal, free):
        frame = af.attack(table, anon, [risk.Insider(c) for c in range(k)], seed=2)
        curves[anon.algorithm.name] = frame
        assert (frame["success"].diff().dropna() > 0).all()
        assert frame["worst"].iloc[0] <= 1 / k + 1e-12
    # equal records hide among k - c; a freeform graph may hide among fewer, and k - 1 known rows tell all
    assert (curves["mondrian"]["worst"] <= curves["mondrian"]["baseline"] + 1e-12).all()
    assert curves["hungarian"]["worst"].iloc[-1] == 1.0
    assert (curves["hungarian"]["success"] >= curves["hungarian"]["baseline"] - 1e-12).all()


@loop("k", [3, 5, 7])
def test_reciprocal_graphs_keep_k_minus_c(k: int) -> None:
    """A symmetric k-regular graph: person i is covered by row j exactly if person j is by row i."""
    n = 24
    rng = np.random.default_rng(k)
    covers = np.eye(n, dtype=bool)
    for shift in 1 + rng.permutation(n // 2 - 1)[: (k - 1) // 2]:
        covers |= np.roll(np.eye(n, dtype=bool), shift, axis=1) | np.roll(
            np.eye(n, dtype=bool), -shift, axis=1
        )
    assert (covers.sum(axis=1) == k).all()
    order = rng.permutation(n)
    covers = covers[np.ix_(order, order)]
    table, release = graph_table(covers)
    frame = af.attack(table, release, [risk.Insider(c, targets=n) for c in range(k)], k=k, seed=2)
    assert (frame["worst"] <= frame["baseline"] + 1e-12).all()
    # a ring is as regular and not reciprocal: the same knowledge opens it further
    ring = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n < k
    table, release = graph_table(ring)
    freer = af.attack(table, release, [risk.Insider(c, targets=n) for c in range(k)], k=k, seed=2)
    assert freer["success"].iloc[-1] == 1.0


# ------------------------------------------------------------------------------------- order and seeds


def ring(n: int, k: int) -> tuple[af.Table, Any]:
    table = sampled("nursery", n)
    return table, af.anonymize(table, "greedy", k=k, seed=1)


@QUIET
def test_shuffling_defeats_the_order_attacker() -> None:
    table, anon = ring(400, 5)
    release = anon.release(seed=2**127)
    assert release.truth is not None
    beaten = by_name(af.attack(table, release, "order"))["order"]
    assert beaten["at_risk"] == 0
    back = np.argsort(release.truth)
    for rows in (back, back[::-1]):
        frame = release.frame.iloc[rows].reset_index(drop=True)
        lazy = Release(frame, None, release.truth[rows])  # a certificate is of the rows' order
        result = by_name(af.attack(table, lazy, "order", k=5, certificate=None))["order"]
        assert result["success"] == 1.0
        assert result["at_risk"] == 400
    # the original's positions, and other numbers that grow with them
    for numbers in (release.truth, 7 + 3 * release.truth):
        index = Release(release.frame.set_index(pd.Index(numbers)), release.certificate, release.truth)
        result = by_name(af.attack(table, index, "order"))["order"]
        assert result["success"] == 1.0
        assert "an index" in result["sentence"]


def test_the_nearest_candidate_is_by_position() -> None:
    """Neighbours exchanged places: nobody stands where they were, but of two candidates the nearer one is right."""
    table = af.Table(
        pd.DataFrame({"age": [0, 1, 2, 3] * 2}), {"age": {"role": "quasi-identifier", "kind": "numeric"}}
    )
    truth = np.array([1, 0, 3, 2, 5, 4, 7, 6])
    rows = table.frame.iloc[truth].reset_index(drop=True)
    result = by_name(af.attack(table, Release(rows, None, truth), "order", k=2))["order"]
    assert result["success"] == 1.0


@QUIET
def test_a_file_that_tells_is_said(tmp_path: Path) -> None:
    table, anon = ring(60, 3)
    release = anon.release(seed=2**127)
    release.write(tmp_path / "ours.parquet")
    changed = release.frame.copy()
    changed["parents"] = changed["parents"].astype("category")
    changed.to_parquet(tmp_path / "told.parquet")
    texts = {}
    for name in ("ours", "told"):
        context = replace(risk.AttackContext.of(table, release), path=tmp_path / f"{name}.parquet")
        texts[name] = risk.Clerk().attack(context).sentence
    assert "carries" not in texts["ours"]
    assert "metadata" in texts["told"]
    assert "statistics" in texts["told"]
    changed.attrs["note"] = "x"
    context = risk.AttackContext.of(table, Release(changed, None, release.truth), k=3)
    assert "lists of categories" in risk.Clerk().attack(context).sentence
    assert "notes" in risk.Clerk().attack(context).sentence


@QUIET
def test_stars_that_list_k_people_hide_nobody_where_no_other_column_is_published() -> None:
    """Fewer than k rows are * throughout, but no record is suppressed: everybody has a row, and is attacked."""
    born = [1920, 1922, 1940, 1980, 1981, 1990, 2000, 2024]
    table = af.Table(pd.DataFrame({"born": born}), {"born": {"role": "quasi-identifier", "kind": "numeric"}})
    anon = af.anonymize(table, "nh", k=5, seed=1)
    release = anon.release(seed=2**127)
    assert not anon.suppressed.any()
    assert 0 < release.frame["born"].eq("*").sum() < 5
    context = risk.AttackContext.of(table, release.frame, certificate=release.certificate)
    assert context.people.tolist() == list(range(8))
    assert risk.Insider(1).attack(context).targets == 8
    assert af.verify(table, release.frame, certificate=release.certificate)


@QUIET
def test_names_of_files_and_tasks() -> None:
    """Numbers in names that are the originals' positions would tell; those of the engine's tasks do not."""
    table, anon = ring(60, 3)
    release = anon.release(seed=2**127)
    assert release.truth is not None
    messages = [f"part-7-record-{i}" for i in release.truth]
    result = by_name(af.attack(table, release, risk.Clerk(messages)))["order"]
    assert result["success"] == 1.0
    ours = [f"match-0-{p}" for p in range(60)]
    assert by_name(af.attack(table, release, risk.Clerk(ours)))["order"]["at_risk"] == 0


@QUIET
def test_whoever_is_at_risk_by_the_order_is_so_by_its_interval() -> None:
    """The best of several ways of guessing counts, so the interval is wider: it lies above 1/k only where people are at risk."""
    table, anon = ring(24, 8)
    release = anon.release(seed=2**127)
    context = risk.AttackContext.of(table, release)
    assert release.truth is not None
    verdicts = set()
    for right in range(25):
        guesses = np.roll(release.truth, 1)
        guesses[:right] = release.truth[:right]
        success = risk.Clerk([f"record-{i}" for i in guesses]).attack(context)
        assert (success.at_risk > 0) == (success.interval[0] > 1 / 8)
        verdicts.add(success.at_risk > 0)
    assert verdicts == {False, True}


@QUIET
def test_a_guessed_seed_gives_everybody_away() -> None:
    table, anon = ring(60, 3)
    weak, strong = anon.release(seed=42), anon.release()
    result = by_name(af.attack(table, weak, risk.Replayer(range(38, 48), anon)))["replay"]
    assert result["success"] == 1.0
    assert result["at_risk"] == 60
    beaten = by_name(af.attack(table, strong, risk.Replayer(range(38, 48), anon)))["replay"]
    assert beaten["success"] <= 1 / 3 + 1e-12
    assert beaten["at_risk"] == 0


# ------------------------------------------------------------------------------- registers and values


def two_ages() -> tuple[af.Table, Release]:
    frame = pd.DataFrame({"age": [20, 21, 30, 31], "ill": ["flu", "flu", "flu", "gout"]})
    table = af.Table(
        frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    )
    out = pd.DataFrame({"age": ["20-21", "20-21", "30-31", "30-31"], "ill": ["flu", "flu", "gout", "flu"]})
    return table, Release(out, None, np.array([1, 0, 3, 2]))


def test_a_journalist_needs_a_register() -> None:
    table, release = two_ages()
    register = pd.DataFrame({"age": [20, 21, 21, 22, 30, 31, 99]})
    result = by_name(af.attack(table, release, risk.Journalist(register), k=2))["journalist"]
    assert result["worst"] == pytest.approx(1 / 2)  # two people for the rows 30-31, three for 20-21
    assert result["success"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert "41.7% on average" in result["sentence"]
    assert "7 people" in result["sentence"]
    with pytest.raises(ParameterError, match="population"):
        af.attack(table, release, "journalist", k=2)
    with pytest.raises(ParameterError, match="'age'"):
        af.attack(table, release, risk.Journalist(register.rename(columns={"age": "old"})), k=2)


def test_a_value_that_all_candidates_share() -> None:
    table, release = two_ages()
    result = by_name(af.attack(table, release, "homogeneity", k=2))["homogeneity"]
    assert result["success"] == 0.5
    assert result["at_risk"] == 2
    assert "75.0%" in result["sentence"]
    assert "flu" not in result["sentence"]
    with pytest.raises(ParameterError, match="not a published column"):
        af.attack(table, release, {"homogeneity": {"column": "pay"}}, k=2)


@QUIET
@pytest.mark.parametrize("algorithm", ["greedy", "mondrian", "k-member", "k-concealment"])
def test_the_attacker_and_the_criterion_count_the_same_people(algorithm: str, tmp_path: Path) -> None:
    """Of a release in memory, of its file, and of its file with the certificate."""
    counted = set()
    for seed in range(4):
        frame = af.datasets.census_like(60, seed=seed)
        frame["ill"] = np.random.default_rng(seed).choice(["flu", "cold", "gout"], 60, p=[0.7, 0.2, 0.1])
        table = af.Table(frame, {**af.datasets.schema("census_like"), "ill": {"role": "sensitive"}})
        release = af.anonymize(table, algorithm, 3, seed=seed).release(seed=2**127 + seed)
        path = tmp_path / f"{seed}.csv"
        release.write(path)
        for subject, certificate in ((release, None), (path, None), (path, release.certificate)):
            claim = {"p-sensitivity": {"p": 2, "column": "ill"}}
            finding = af.verify(table, subject, claim, k=3, certificate=certificate).findings[0]
            attacker = {"homogeneity": {"column": "ill"}}
            result = af.attack(table, subject, attacker, k=3, certificate=certificate).iloc[0]
            assert finding.failed == result["at_risk"]
            alone = algorithm == "k-concealment" or (certificate is None and subject is path)
            assert ("as far as the rows alone tell" in result["sentence"]) == alone
            counted.add(int(result["at_risk"]))
    assert len(counted) > 1


def test_a_release_that_hides_nothing() -> None:
    table, release = two_ages()
    bare = Release(table.frame.copy(), None, np.arange(4))
    result = by_name(af.attack(table, bare, ["prosecutor", "marketer", "linker", "order", "counting"], k=2))
    assert all(result[name]["success"] == 1.0 for name in result)
    assert all(result[name]["worst"] == 1.0 for name in result)
    assert all(result[name]["at_risk"] == 4 for name in result if name != "order")  # four are few
    honest = by_name(af.attack(table, release, ["prosecutor", "linker"], k=2))
    assert honest["prosecutor"]["success"] == 0.5
    assert honest["linker"]["at_risk"] == 0


# ------------------------------------------------------------------------------------------- the door


@QUIET
def test_what_can_be_attacked(tmp_path: Path) -> None:
    table, anon = ring(60, 3)
    release = anon.release(seed=2**127)
    release.write(tmp_path / "r.csv")
    columns = list(COLUMNS)
    for subject, more in (
        (anon, {}),
        (release, {}),
        (release.frame, {"k": 3}),
        (tmp_path / "r.csv", {"k": 3}),
        (str(tmp_path / "r.csv"), {"certificate": release.certificate}),
    ):
        frame = af.attack(table, subject, seed=1, **more)
        assert list(frame.columns) == columns
        assert {"prosecutor", "marketer", "linker"} <= set(frame["attacker"])
        assert ((frame["low"] <= frame["success"]) & (frame["success"] <= frame["high"])).all()
        assert frame["sentence"].str.endswith(".").all()
    assert "insider" in set(af.attack(table, tmp_path / "r.csv", certificate=release.certificate)["attacker"])


def test_attacking_is_no_second_draw(recwarn: pytest.WarningsRecorder) -> None:
    table, anon = ring(60, 3)
    af.attack(table, anon)
    anon.release(seed=2**127)
    af.attack(table, anon, risk.Replayer(range(3)))
    assert not [warning for warning in recwarn if "drawn before" in str(warning.message)]


def test_a_seed_attacks_the_same_people() -> None:
    table, anon = ring(240, 6)
    first, second = (af.attack(table, anon, {"insider": {"c": 2, "targets": 20}}, seed=9) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


@loop(
    ("attacker", "words"),
    [
        ("prosecuter", "did you mean 'prosecutor'"),
        ([], "no attacker is named"),
        (7, "names such as"),
        ({"insider": {"d": 1}}, "parameters c and targets"),
        ({"prosecutor": {"d": 1}}, "has no parameters"),
        ({"insider": 3}, "a mapping such as"),
        ({"insider": {"c": -1}}, "at least 0"),
        ([None], "unknown attacker"),
    ],
)
def test_who_is_no_attacker_is_refused(attacker: Any, words: str) -> None:
    table, release = two_ages()
    with pytest.raises(ParameterError, match=words):
        af.attack(table, release, attacker, k=2)


def test_what_cannot_be_judged_is_refused() -> None:
    table, release = two_ages()
    with pytest.raises(ParameterError, match="needs k"):
        af.attack(table, release)
    with pytest.raises(ParameterError, match="needs the true rows"):
        af.attack(table, release.frame, "order", k=2)
    with pytest.raises(ParameterError, match="needs the true rows"):
        af.attack(table, release.frame, "insider", k=2)
    with pytest.raises(ParameterError, match="3 rows and the table 4"):
        af.attack(table, release.frame.iloc[:3], k=2)
    with pytest.raises(ParameterError, match=r"af\.Table"):
        af.attack(release.frame, release, k=2)  # type: ignore[arg-type]


@QUIET
def test_the_truth_stays_in_memory(tmp_path: Path) -> None:
    _, anon = ring(60, 3)
    release = anon.release(seed=2**127)
    assert release.truth is not None
    assert pickle.loads(pickle.dumps(release)).truth is None
    assert "truth" not in repr(release)
    release.write(tmp_path / "r.parquet")
    assert af.read_release(tmp_path / "r.parquet", anon.table.schema).truth is None
    own = np.flatnonzero(release.truth == np.arange(60))
    assert len(own) < 20


def test_wilsons_interval_has_its_published_ends() -> None:
    assert wilson(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert wilson(0.0, 10)[0] == 0.0
    assert wilson(1.0, 10)[1] == 1.0
    assert wilson(0.3, 0) == (0.0, 1.0)


def test_k_is_that_of_the_description_beside_a_file(tmp_path: Path) -> None:
    frame = af.datasets.census_like(60, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    af.anonymize(table, "mondrian", k=4, seed=1).release(seed=1 << 100).write(tmp_path / "r.csv")
    described, same = (af.attack(table, tmp_path / "r.csv", "prosecutor", k=k, seed=1) for k in (None, 4))
    pd.testing.assert_frame_equal(described, same)
    (tmp_path / "r.csv-metadata.json").unlink()
    with pytest.raises(ParameterError, match="needs k"):
        af.attack(table, tmp_path / "r.csv", "prosecutor")
