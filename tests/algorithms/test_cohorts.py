"""A table that is published every year: cohorts stay or are divided, newcomers are apart, and every world was tried."""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import AnonflowWarning, DataError, InfeasibleError, ParameterError, VerificationError
from anonflow.release import Earlier, Release, ReleaseWarning, write_release
from tests.cases.released_twice import NAMED, people
from tests.cases.runs import shell
from tests.naive.repeated import Published, connected, left, linked, most_worlds
from tests.strategies import examples

LEAST = 2
SHARES: dict[Any, Fraction] = {
    value: Fraction(1, number + 2) for number, value in enumerate([*range(12), *"uvwxyz"])
}


EVERYBODY = cache(people)
"""The people, drawn once for all years."""


def year(numbers: list[int], t: int, people_of: int = 400) -> af.Table:
    """The table of a year: everybody grows older, and some move."""
    frame = EVERYBODY(people_of).iloc[numbers]
    moved = (np.array(numbers) + t) % 3 == 0
    work = np.where(moved, "d", frame["work"])
    return af.Table(frame.assign(age=frame["age"] + t, work=work), NAMED)


def published(table: af.Table, release: Release) -> tuple[list[frozenset[int]], list[int]]:
    """The people of each row's list, and whose other columns the row has."""
    number = table.identifiers["name"].str.removeprefix("person ").astype(int).to_numpy()
    assert release.certificate is not None
    assert release.truth is not None
    lists = [frozenset(number[release.certificate.of(row)].tolist()) for row in range(table.n)]
    return lists, number[release.truth].tolist()


def seen(several: list[tuple[list[frozenset[int]], list[int]]], tied: bool) -> list[Published]:
    """What an attacker sees who links all rows of a person; of matches, which rows were not drawn again."""
    years: list[Published] = []
    for lists, truth in several:
        ties = {
            row: next(
                (t, before.shown.index(person)) for t, before in enumerate(years) if person in before.shown
            )
            for row, person in enumerate(truth)
            if tied and any(person in before.shown for before in years)
        }
        years.append(Published(lists, truth, ties))
    return years


@pytest.mark.parametrize(("method", "k"), [("k-member", 4), ("greedy", 2)])
@examples(40)
@given(data=st.data())
def test_sequences_leave_everybody_enough_people(
    method: str, k: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Three releases of at most 12 people; each world that fits them is tried, by who links all rows, and by illnesses alone."""
    folder = tmp_path_factory.mktemp("owner")
    several = []
    options: dict[str, Any] = {"partition_size": 4} if method == "greedy" else {}
    for t in range(3):
        numbers = sorted(data.draw(st.sets(st.integers(0, 11), min_size=6), label=f"year {t}"))
        table = year(numbers, t)
        try:
            if t == 0:
                anon = af.anonymize(table, method, k=k, **options)
            else:
                shared = {"people": LEAST} if method == "k-member" else {}
                anon = af.anonymize(table, method, k=k, earlier=folder, **shared, **options)
        except (InfeasibleError, DataError):
            return  # nobody of this table can be published, or nobody is in an earlier one
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = anon.release(seed=2**127 + t, owner=folder)
        assert af.verify(anon.table, release, ["covers", "guarantee"], certificate=release.certificate)
        several.append(published(anon.table, release))
        if t:
            assert af.verify(anon.table, release, [{"repeated": {"earlier": folder, "people": LEAST}}])
    tied = method == "greedy"
    years = seen(several, tied)
    if max(map(len, connected(years))) > 8:
        return
    for chances in linked(years).values():
        assert max(chances.values()) * LEAST <= 1
    unlinked = [replace(each, shown=people()["ill"].to_numpy()[each.shown]) for each in years]
    if most_worlds(unlinked) < 2_000:
        for each in left(unlinked, SHARES).values():
            assert len(each.rows) >= LEAST
            assert each.likeliest_row * LEAST <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize(
    ("method", "k", "least"), [("k-member", 8, 2), ("k-member", 8, 3), ("k-member", 4, 2), ("greedy", 2, 2)]
)
def test_of_eight_people_whoever_leaves_or_comes_back_all_worlds_leave_enough(
    method: str, k: int, least: int, tmp_path: Path
) -> None:
    """Each set of people who stay in the second year, and of these and others who are there in the third."""
    options: dict[str, Any] = {"partition_size": 4} if method == "greedy" else {}
    left_to_all = {} if method == "greedy" else {"people": least}
    first = tmp_path / "first"
    anon = af.anonymize(year(list(range(8)), 0), method, k=k, **options)
    begun = published(anon.table, anon.release(seed=2**127, owner=first))
    tried = 0
    # the same people are there in many sequences
    table_of = cache(lambda number, members: year([*members], number))

    def goes_on(number: int, people_of_year: tuple[int, ...], before: Path) -> tuple[Path, list[Any]]:
        """A folder in which the release of a year lies beside those before it, and the release; nothing where there is none."""
        folder = tmp_path / f"year {number}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(before, folder)
        table = table_of(number, people_of_year)
        try:
            again = af.anonymize(table, method, k=k, earlier=folder, **options, **left_to_all)
        except InfeasibleError:
            return folder, []  # nobody of this table can be published
        return folder, [published(again.table, again.release(seed=2**127 + number, owner=folder))]

    for second in (part for size in (5, 6, 7) for part in combinations(range(8), size)):
        folder, released = goes_on(1, second, first)
        for third in (second[1:], tuple(range(8))):
            several = [begun, *released, *goes_on(2, third, folder)[1]]
            for chances in linked(seen(several, method == "greedy")).values():
                assert max(chances.values()) * least <= 1
            tried += len(several) > 1
    assert tried > 10


def first_release(
    folder: Path, method: str = "k-member", k: int = 5, numbers: Any = range(100), **options: Any
) -> Any:
    anon = af.anonymize(year(list(numbers), 0), method, k=k, **options)
    anon.release(seed=2**127, owner=folder)
    return anon


def names(table: af.Table) -> set[str]:
    return set(table.identifiers["name"])


def test_classes_stay_and_newcomers_are_apart(tmp_path: Path) -> None:
    first = first_release(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "published columns|column", AnonflowWarning)
        second = af.anonymize(year(list(range(120)), 1), "k-member", k=5, earlier=tmp_path)
        release = second.release(seed=2**127, owner=tmp_path)
    assert {name: second.facts[name] for name in ("persisting", "newcomers", "held_back")} == {
        "persisting": 100, "newcomers": 20, "held_back": 0,
    }  # fmt: skip
    then = first.classes[:100]
    now = second.classes
    assert len({*zip(then.tolist(), now[:100].tolist(), strict=True)}) == len(set(then.tolist()))
    assert not set(now[:100].tolist()) & set(now[100:].tolist())
    assert af.verify(second.table, release, ["covers", "guarantee", {"repeated": {"earlier": tmp_path}}])


def test_of_a_class_that_somebody_left_nobody_is_published_until_it_can_be_divided(tmp_path: Path) -> None:
    """Class {0..9}: with people = 5 one may leave, four more are held back; with 6 all nine are."""
    first_release(tmp_path, k=10, numbers=range(10))
    later = year(list(range(1, 30)), 1)
    divided = af.anonymize(later, "k-member", k=10, people=5, earlier=tmp_path)
    assert divided.facts["persisting"] == 5
    assert divided.facts["held_back"] == 4
    assert divided.facts["newcomers"] == 20
    whole = af.anonymize(later, "k-member", k=10, people=6, earlier=tmp_path)
    assert whole.facts["persisting"] == 0
    assert whole.facts["held_back"] == 9
    divided.release(seed=2**127, owner=tmp_path)
    third = af.anonymize(later, "k-member", k=10, people=5, earlier=tmp_path)
    assert names(third.table) == names(divided.table)  # who was held back stays so
    back = af.anonymize(year(list(range(30)), 2), "k-member", k=10, people=5, earlier=tmp_path)
    assert back.facts["persisting"] == 30  # the whole rest of the class may come back
    with pytest.raises(VerificationError, match="anonymize again with earlier="):
        whole.release(seed=2**127, owner=tmp_path)


def test_whoever_is_held_back_leaves_the_others_the_narrowest_class(tmp_path: Path) -> None:
    """Of eleven who stay each is tried; other columns say nothing about it."""
    schema = {"name": NAMED["name"], "age": NAMED["age"], "pay": NAMED["age"], "ill": NAMED["ill"]}
    rng = np.random.default_rng(5)
    frame = people(12).assign(age=rng.integers(0, 100, 12), pay=0)
    first = af.anonymize(af.Table(frame, schema), "k-member", k=12)
    first.release(seed=2**127, owner=tmp_path)
    rest = af.Table(frame.iloc[1:], schema)
    again = af.anonymize(rest, "k-member", k=11, people=2, earlier=tmp_path)
    assert again.facts["held_back"] == 1
    ages = again.table.frame["age"]
    widths = [np.ptp(np.delete(frame["age"].to_numpy()[1:], i)) for i in range(11)]
    assert np.ptp(ages) == min(widths) < np.ptp(frame["age"].to_numpy()[1:])
    other = rest.frame.assign(name=rest.identifiers["name"], ill=np.roll(rest.frame["ill"], 3))
    assert names(
        af.anonymize(af.Table(other, schema), "k-member", k=11, people=2, earlier=tmp_path).table
    ) == names(again.table)


def test_components_of_matches_keep_lists_and_columns(tmp_path: Path) -> None:
    first = first_release(tmp_path, "greedy", k=3, partition_size=10)
    release = first.release(seed=2**127)
    second = af.anonymize(year(list(range(5, 130)), 1), "greedy", k=3, partition_size=10, earlier=tmp_path)
    again = second.release(seed=2**126, owner=tmp_path)
    assert 0 < second.facts["persisting"] < 95
    before = dict(zip(*reversed(published(first.table, release)), strict=True))
    after = dict(zip(*reversed(published(second.table, again)), strict=True))
    old = {person: after[person] for person in after if person < 100}
    assert len(old) == second.facts["persisting"]
    assert old == {person: before[person] for person in old}
    assert second.rerun is not None
    assert names(second.again(seed=5).table) == names(second.table)


def test_a_release_from_before_is_read_once_for_each_that_goes_on_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of a million people is a file of many megabytes."""
    first_release(tmp_path)
    looks: list[str] = []
    look = np.lib.npyio.NpzFile.__getitem__

    def counted(file: Any, name: str) -> Any:
        looks.append(name)
        return look(file, name)

    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", counted)
    again = af.anonymize(year(list(range(120)), 1), "k-member", k=5, earlier=tmp_path)
    assert len(looks) == len(set(looks)) > 3
    looks.clear()
    again.release(seed=2**127, owner=tmp_path)
    # once for what all leave, once to see whether this one is there
    assert max(map(looks.count, looks)) == 2


def test_the_intersection_attacker_gains_nothing(tmp_path: Path) -> None:
    """It has both releases, and knows who is the same person by the index."""
    first = first_release(tmp_path, k=10, numbers=range(200))
    before = first.table, first.release(seed=2**127)
    table = year(list(range(5, 220)), 1)
    plain = af.anonymize(table, "k-member", k=10)
    again = af.anonymize(table, "k-member", k=10, people=4, earlier=tmp_path)
    plain_rows, rows = (
        af.attack(each.table, release, earlier=[before]).set_index("attacker")
        for each, release in (
            (plain, plain.release(seed=2**127)),
            (again, again.release(seed=2**127, owner=tmp_path)),
        )
    )
    gain = [
        each.loc["intersection", "success"] - each.loc["intersection", "baseline"]
        for each in (plain_rows, rows)
    ]
    assert gain[0] > 0.03
    assert gain[1] < 0.01


def test_cohorts_beyond_a_boundary_or_limit_are_held_back(tmp_path: Path) -> None:
    """People of a class whose ages lie in one interval of ten years now, but not next year."""
    frame = people(300)
    limits = NAMED | {"age": NAMED["age"] | {"boundary": {"width": 10}}}
    first = af.anonymize(af.Table(frame, limits), "k-member", k=3)
    first.release(seed=2**127, owner=tmp_path)
    older = af.Table(frame.assign(age=frame["age"] + 1), limits)
    second = af.anonymize(older, "k-member", k=3, earlier=tmp_path)
    published = first.table.identifiers["name"][~first.suppressed]
    assert 0 < second.facts["persisting"] < len(published)
    assert af.verify(second.table, second, ["boundary"])
    group = dict(zip(first.table.identifiers["name"], first.classes.tolist(), strict=True))
    again = {group[name] for name in second.table.identifiers["name"]}
    apart = {
        label
        for label in set(group.values())
        if older.frame["age"][first.classes == label].floordiv(10).nunique() > 1
    }
    assert not again & apart
    free = af.anonymize(older, "k-member", k=3, earlier=tmp_path, boundaries=False)
    assert free.facts["persisting"] >= len(published)
    few = pd.concat(
        [
            older.frame.assign(name=frame["name"]),
            pd.DataFrame({"name": ["a", "b", "c"], "age": [1, 31, 61], "work": "a", "ill": "u"}),
        ]
    )
    joined = af.anonymize(af.Table(few, limits), "k-member", k=3, earlier=tmp_path)
    assert joined.facts["newcomers"] == 0
    narrow = NAMED | {"age": NAMED["age"] | {"max-width": 2}}
    second = af.anonymize(
        af.Table(older.frame.assign(name=frame["name"]), narrow), "k-member", k=3, earlier=tmp_path
    )
    assert af.verify(second.table, second, ["boundary"])


def test_suppressed_people_of_a_release_of_matches_are_held_back(tmp_path: Path) -> None:
    """They were a class of more than k."""
    limits = NAMED | {"age": NAMED["age"] | {"boundary": {"width": 1}}}
    frame = people(300)
    first = af.anonymize(af.Table(frame, limits), "greedy", k=3, partition_size=9)
    suppressed = int(first.suppressed.sum())
    assert 4 < suppressed < 300
    first.release(seed=2**127, owner=tmp_path)
    again = af.anonymize(
        af.Table(frame, limits), "greedy", k=3, partition_size=9, earlier=tmp_path, boundaries=False
    )
    assert again.facts["held_back"] == suppressed
    assert af.verify(again.table, again.release(seed=2**127, owner=tmp_path), ["covers", "k-regular"])


def test_another_years_table_may_have_other_columns(tmp_path: Path) -> None:
    first_release(tmp_path, k=10)
    table = year(list(range(100)), 1)
    wider = table.frame.assign(name=table.identifiers["name"], city=list("pqrst") * 20, pay=range(100))
    schema = NAMED | {
        "city": {"role": "quasi-identifier", "kind": "categorical"},
        "pay": {"role": "sensitive"},
    }
    again = af.anonymize(af.Table(wider, schema), "k-member", k=10, earlier=tmp_path)
    assert again.facts["persisting"] == 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = again.release(seed=2**127, owner=tmp_path)
    request = {"repeated": {"earlier": tmp_path, "values": 10, "column": "pay"}}
    assert af.verify(again.table, release, ["covers", "guarantee", request])


def second_year(folder: Path) -> tuple[af.Table, af.Anonymization]:
    """The whole table of a second year, and its anonymization that goes on from the first one, with some people held back."""
    first_release(folder, k=10)
    whole = year(list(range(7, 103)), 1)
    return whole, af.anonymize(whole, "k-member", k=10, people=4, earlier=folder)


def test_a_published_file_is_verified_with_the_whole_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The owner's folder says who was held back."""
    folder = tmp_path / "owner"
    whole, again = second_year(folder)
    release = again.release(seed=2**127, owner=folder)
    assert again.facts["held_back"] > 0
    request = {"repeated": {"earlier": folder, "people": 4}}
    for subject in (release, release.frame):
        result = af.verify(
            whole, subject, ["covers", "guarantee", request], k=4, certificate=release.certificate
        )
        assert [finding.criterion for finding in result.findings] == ["covers", "k-anonymity", "repeated"]
        assert result
        assert any("people of the table were held back" in remark for remark in result.remarks)
    assert not af.verify(whole, release, ["covers", "guarantee"])
    write_release(release, tmp_path / "out.csv")
    whole.frame.assign(name=whole.identifiers["name"]).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text("columns: " + json.dumps(NAMED))
    status, _, text = shell(
        capsys, "verify", "--original", tmp_path / "people.csv", "--release", tmp_path / "out.csv", "--schema",
        tmp_path / "schema.yaml", "--k", "4", "--criterion", "covers", "--criterion", f"repeated(earlier={folder},people=4)",
    )  # fmt: skip
    assert status == 0, text


def test_without_the_owners_folder_a_release_of_the_next_year_warns(tmp_path: Path) -> None:
    """It would be neither checked nor remembered."""
    first_release(tmp_path, k=10)
    second = af.anonymize(year(list(range(100)), 1), "k-member", k=10, earlier=tmp_path)
    with pytest.warns(ReleaseWarning, match=r"neither checked nor remembered: .* release\(owner=FOLDER\)"):
        second.release(seed=2**127)


def test_one_that_goes_on_sees_what_is_kept_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is kept when the other one looks: whoever is kept last looks once more, and what is refused is not kept."""
    first, table = year([*range(100)], 0), year([*range(100)], 1)
    af.anonymize(first, "k-member", k=10).release(seed=2**127, owner=tmp_path)
    anon = af.anonymize(table, "k-member", k=10, earlier=tmp_path, people=4)
    keep = Earlier.keep

    def meanwhile(place: Earlier, *arguments: Any) -> Any:
        monkeypatch.setattr(Earlier, "keep", keep)
        with pytest.warns(ReleaseWarning, match="100 of 100 people are in an earlier release"):
            af.anonymize(table, "mondrian", k=7).release(seed=2**126, owner=tmp_path)
        return keep(place, *arguments)

    monkeypatch.setattr(Earlier, "keep", meanwhile)
    with pytest.raises(VerificationError, match="may leave people fewer than k = 4 people"):
        anon.release(seed=2**127, owner=tmp_path)
    assert Earlier(tmp_path).kept == 2


def test_newcomers_whose_names_are_written_otherwise_are_counted(tmp_path: Path) -> None:
    """They are published with other people than before, and each of their rows is in both releases."""
    af.anonymize(year([*range(100)], 0), "k-member", k=10).release(seed=2**127, owner=tmp_path)
    frame = people().iloc[:120]
    odd = (
        frame["name"]
        .where(frame.index >= 30, frame["name"].str.upper())
        .where(frame.index >= 15, frame["name"] + " ")
    )
    second = af.anonymize(
        af.Table(frame.assign(name=odd), NAMED), "k-member", k=10, earlier=tmp_path, people=4
    )
    with pytest.warns(
        ReleaseWarning,
        match=r"30 newcomers are in an earlier release if spaces and capitals of 'name' do not",
    ):
        second.release(seed=2**127, owner=tmp_path)


def test_people_whose_numbers_are_written_otherwise_are_counted(tmp_path: Path) -> None:
    """`007` of one year may be another person than `7` of the next, who then stays in a class that is not theirs."""
    frame = people().iloc[:100]
    numbers = pd.Series([f"{number:03}" for number in range(100)], index=frame.index)
    first = af.anonymize(af.Table(frame.assign(name=numbers), NAMED), "k-member", k=10)
    first.release(seed=2**127, owner=tmp_path)
    same = af.anonymize(first.table, "k-member", k=10, earlier=tmp_path, people=4)
    assert "warning" not in same.facts
    odd = numbers.where(frame.index >= 30, numbers.astype(int).astype(str))
    second = af.anonymize(
        af.Table(frame.assign(name=odd), NAMED), "k-member", k=10, earlier=tmp_path, people=4
    )
    with pytest.warns(
        ReleaseWarning,
        match="of 30 people only the number is the same, and 'name' was written differently, as 007 and 7",
    ):
        second.release(seed=2**127, owner=tmp_path)


def test_attackers_have_all_earlier_releases(tmp_path: Path) -> None:
    """The linker, of a release that goes on and of a plain one, beside the attacker who tries every world."""
    several = []
    for t in range(2):
        table = year(list(range(t, 10 + 2 * t)), t)  # one left, and two joined
        plain = af.anonymize(table, "k-member", k=3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            release = plain.release(seed=2**127 + t, owner=tmp_path)
        several.append(published(table, release))
    beliefs = left(seen(several, tied=False))
    counts = np.array([len(beliefs[number].rows) for number in range(1, 12)])
    row = af.attack(table, release, "linker", earlier=[tmp_path]).iloc[0]
    assert row["success"] == pytest.approx((1 / counts).mean())
    assert row["worst"] == pytest.approx((1 / counts).max())
    assert row["at_risk"] == (counts < 3).sum() > 0
    assert "has 2 releases of these people" in row["sentence"]
    assert "1 person is in earlier releases only" in row["sentence"]
    sentence = f"all releases together leave {(counts < 3).sum()} people fewer than k, and {(counts < 2).sum()} nobody else"
    assert any(sentence in str(warning.message) for warning in caught)


def test_the_shell_attacks_with_all_earlier_releases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Folders of releases, or a flow's own folder in one; of the year's whole table, some of which was held back."""
    folder = tmp_path / "owner"
    whole, again = second_year(folder)
    assert again.facts["held_back"] > 0
    release = again.release(seed=2**127, owner=folder)
    write_release(release, tmp_path / "out.csv")
    whole.frame.assign(name=whole.identifiers["name"]).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text("columns: " + json.dumps(NAMED))
    (folder / "people").mkdir()
    line = (
        "attack", "--original", tmp_path / "people.csv", "--release", tmp_path / "out.csv", "--schema",
        tmp_path / "schema.yaml", "--k", "4", "--attacker", "linker", "--json",
    )  # fmt: skip
    row = af.attack(again.table, release, "linker", earlier=folder).iloc[0]
    assert "An attacker who has 2 releases of these people" in row["sentence"]
    for named in (folder, folder / "people"):
        status, text, _ = shell(capsys, *line, "--earlier", named)
        assert status == 0
        (answer,) = json.loads(text)
        assert answer["sentence"] == row["sentence"]
        assert answer["worst"] == pytest.approx(row["worst"])
    write_release(release, tmp_path / "before.csv")
    part = af.Table(again.table.frame.assign(name=again.table.identifiers["name"]), NAMED)
    part.frame.assign(name=part.identifiers["name"]).to_csv(tmp_path / "people.csv", index=False)
    status, text, _ = shell(capsys, *line, "--earlier", tmp_path / "before.csv", "--earlier", folder)
    assert status == 0
    assert [row["attacker"] for row in json.loads(text)] == ["linker", "intersection"]
    # whichever attackers are named, one has the releases; without the original nobody can
    named = af.attack(again.table, release, "prosecutor", earlier=folder)
    assert named["attacker"].tolist() == ["prosecutor", "linker"]
    assert "2 releases of these people" in named["sentence"][1]
    with pytest.raises(ParameterError, match="says who is in them: attack needs the original table"):
        af.attack(whole.schema, release, k=4, earlier=folder)
    for wrong, words in (
        (tmp_path, "has no earlier release"),
        (tmp_path / "nothing", "has no earlier release"),
        (tmp_path / "nothing.csv", "nothing.csv"),
    ):
        status, _, text = shell(capsys, *line, "--earlier", wrong)
        assert status != 0
        assert words in " ".join(text.split())
        assert text.count("\n") == 1


def test_a_release_in_another_folder_goes_on_with_the_key_and_needs_the_folders_before_it(
    tmp_path: Path,
) -> None:
    a, b, c = (tmp_path / name for name in "abc")
    first_release(a, k=10)
    first_release(c, k=10)
    second = af.anonymize(year(list(range(3, 100)), 1), "k-member", k=10, people=4, earlier=a)
    with pytest.raises(VerificationError, match="has another key than"):
        second.release(seed=2**127, owner=c)
    second.release(seed=2**127, owner=b)
    later = year(list(range(100)), 2)
    with pytest.raises(
        DataError, match="go on from 1 earlier releases that are in none of the folders named"
    ):
        af.anonymize(later, "k-member", k=10, people=4, earlier=b)
    third = af.anonymize(later, "k-member", k=10, people=4, earlier=[a, b])
    assert third.facts["persisting"] == 100
    third.release(seed=2**127, owner=b)
    plain = af.anonymize(later, "k-member", k=10).release(seed=2**126)
    Earlier(a).keep(later, plain)
    with pytest.raises(VerificationError, match="anonymize again with earlier="):
        third.release(seed=2**127, owner=b)


def test_a_quasi_identifier_is_in_no_year_a_column_that_is_published_as_it_is(tmp_path: Path) -> None:
    """The attacker knows it of everybody, in the year before or after."""
    first_release(tmp_path, k=10)
    with_name = people().iloc[:100]
    shown = {"name": NAMED["name"], "age": NAMED["age"], "work": {"role": "sensitive"}}
    with pytest.raises(
        DataError,
        match=r"'work' is a quasi-identifier in the release of .*, and published as it is in this table",
    ):
        af.anonymize(af.Table(with_name, shown), "k-member", k=10, earlier=tmp_path)
    hidden = NAMED | {"ill": {"role": "quasi-identifier", "kind": "categorical"}}
    with pytest.raises(
        DataError,
        match=r"'ill' is published as it is in the release of .*, and a quasi-identifier in this table",
    ):
        af.anonymize(af.Table(with_name, hidden), "k-member", k=10, earlier=tmp_path)


def test_newcomers_who_are_too_few_wait(tmp_path: Path) -> None:
    first_release(tmp_path)
    second = af.anonymize(year(list(range(103)), 1), "k-member", k=5, earlier=tmp_path)
    assert second.facts["newcomers"] == 0
    assert second.facts["held_back"] == 3
    assert "100 people are published again and 0 for the first time, 3 are held back" in second.summary()


def test_what_the_choice_looks_at_is_no_value(tmp_path: Path) -> None:
    first_release(tmp_path, k=10)
    table = year(list(range(7, 150)), 1)
    other = table.with_others({"ill": np.random.default_rng(1).permutation(table.frame["ill"])})
    a, b = (
        af.anonymize(each, "k-member", k=10, people=4, seed=3, earlier=tmp_path) for each in (table, other)
    )
    assert names(a.table) == names(b.table)
    pd.testing.assert_frame_equal(a.frame(), b.frame())


def test_wrong_input_is_named(tmp_path: Path) -> None:
    first_release(tmp_path)
    table = year(list(range(100)), 1)
    for method, options, words in (
        ("k-member", {"people": 6}, "at least 2 and at most k = 5"),
        ("k-member", {"people": 1}, "at least 2 and at most k = 5"),
        ("greedy", {}, "cohorts cannot be carried over"),
        ("greedy", {"people": 4}, "leave it out"),
        ("k-concealment", {}, "makes neither classes nor matches"),
        ("pattern-guided", {}, "makes neither classes nor matches"),
    ):
        with pytest.raises(ParameterError, match=words):
            af.anonymize(table, method, k=5, earlier=tmp_path, **options)
    with pytest.raises(ParameterError, match="people goes with earlier"):
        af.anonymize(table, "k-member", k=5, people=3)
    with pytest.raises(InfeasibleError, match="fewer than 50 people whose rows may be theirs"):
        af.anonymize(table, "k-member", k=50, earlier=tmp_path)
    again = af.anonymize(table, "k-member", k=5, earlier=tmp_path)
    with pytest.raises(ParameterError, match="cohorts"):
        af.diversify(again, "p-sensitivity", p=2)
    with pytest.raises(InfeasibleError, match="nobody of this table can be published"):
        af.anonymize(year([0, 1, 2, 3, 4], 1), "k-member", k=5, earlier=tmp_path)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize(
    ("method", "k", "options"), [("k-member", 4, {}), ("greedy", 2, {"partition_size": 4})]
)
def test_a_correction_keeps_everybody_and_all_worlds(
    method: str, k: int, options: dict[str, Any], tmp_path: Path
) -> None:
    """Ages and illnesses of the first release were wrong, and nobody left: every world that fits both is tried."""
    first = af.anonymize(year(list(range(8)), 0), method, k=k, **options)
    several = [published(first.table, first.release(seed=2**127, owner=tmp_path))]
    right = first.table.frame.assign(
        name=first.table.identifiers["name"], age=first.table.frame["age"] % 7 + 30, ill=list("uvwxyzuv")
    )
    second = af.anonymize(af.Table(right, NAMED), method, k=k, earlier=tmp_path, **options)
    assert second.facts["persisting"] == 8
    assert second.facts["held_back"] == 0
    release = second.release(seed=2**126, owner=tmp_path)
    assert af.verify(second.table, release, ["covers", "guarantee", {"repeated": {"earlier": tmp_path}}])
    several.append(published(second.table, release))
    for each in left(seen(several, tied=method == "greedy")).values():
        assert each.likeliest_row * k <= 1


def test_whoever_was_wrongly_in_a_release_has_left_in_its_correction(tmp_path: Path) -> None:
    first_release(tmp_path, k=10)
    corrected = af.anonymize(year(list(range(1, 100)), 0), "k-member", k=10, people=4, earlier=tmp_path)
    assert corrected.facts["held_back"] == 3
    assert Earlier(tmp_path).history().people_left.min() >= 10


def test_samples_of_a_register_leave_enough_people(tmp_path: Path) -> None:
    """Whoever is not in a sample has left; of a class, people in no sample but the first come back together or not at all."""
    numbers, held = np.random.default_rng(3).permutation(200), []
    for t, part in enumerate((numbers[:120], numbers[40:160], numbers[20:140], numbers)):
        more = {"earlier": tmp_path, "people": 3} if t else {}
        anon = af.anonymize(year(sorted(part.tolist()), t), "k-member", k=12, **more)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            anon.release(seed=2**127 + t, owner=tmp_path)
        history = Earlier(tmp_path).history()
        assert len(history.releases) == t + 1
        assert history.people_left.min() >= 3
        held.append(len(part) - anon.table.n)
    assert held[0] == 0 < min(held[1], held[2])
    assert held[3] == 0


def test_another_k_columns_and_codes_in_a_later_year(tmp_path: Path) -> None:
    """Each is published, as lists of people alone count; what cannot be is refused with the reason."""
    first_release(tmp_path, k=12, numbers=range(120))
    table = year(list(range(120)), 1)
    named = table.frame.assign(name=table.identifiers["name"])
    tree = {"kind": "hierarchy", "hierarchy": {"nested": {"*": {"ab": ["A", "b"], "cd": ["c", "d"]}}}}
    frames: list[tuple[pd.DataFrame, dict[str, Any], dict[str, Any]]] = [
        (named, NAMED, {"k": 30, "people": 12}),  # of newcomers
        (named, NAMED, {"k": 3, "people": 3}),
        (named.drop(columns="work"), {name: NAMED[name] for name in ("name", "age", "ill")}, {"k": 12}),
        (named.drop(columns="ill"), {name: NAMED[name] for name in ("name", "age", "work")}, {"k": 12}),
        (named.replace({"work": {"a": "A"}, "ill": {"u": "U"}}), NAMED, {"k": 12}),
        (named.replace({"work": {"a": "A"}}), NAMED | {"work": NAMED["work"] | tree}, {"k": 12}),
        (named.assign(age=named["age"] * 12), NAMED, {"k": 12}),  # months
    ]
    for frame, schema, options in frames:
        again = af.anonymize(af.Table(frame, schema), "k-member", earlier=tmp_path, **options)
        assert again.facts["persisting"] == 120, options
        assert af.verify(again.table, again, ["covers", "guarantee"])
    for frame, schema, words in (
        (named.drop(columns="name").assign(id=range(120)), {"id": NAMED["name"]}, "recognized by 'name', those of this table by 'id'"),
        (named.assign(name=named["name"].str.upper()), NAMED, "nobody of this table is in an earlier release"),
        (named, {"name": NAMED["name"], "ill": NAMED["work"]}, "'ill' is published as it is in the release of .*, and a quasi-identifier in this table"),
    ):  # fmt: skip
        with pytest.raises(DataError, match=words):
            af.anonymize(af.Table(frame, {"age": NAMED["age"]} | schema), "k-member", k=12, earlier=tmp_path)


def test_components_stay_only_with_the_same_k(tmp_path: Path) -> None:
    first_release(tmp_path, "greedy", k=5, partition_size=10)
    with pytest.raises(ParameterError, match="has k = 5; its components stay only with the same k"):
        af.anonymize(year(list(range(100)), 1), "greedy", k=4, earlier=tmp_path)


def test_two_plain_releases_cannot_be_mended(tmp_path: Path) -> None:
    first_release(tmp_path)
    table = year(list(range(100)), 7)
    release = af.anonymize(table, "k-member", k=5).release(seed=2**127)
    Earlier(tmp_path).keep(table, release)
    with pytest.raises(InfeasibleError, match="no further release mends that; lower people, or"):
        af.anonymize(year(list(range(100)), 8), "k-member", k=5, earlier=tmp_path)
