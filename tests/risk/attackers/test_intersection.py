"""The attacker who has several releases of the same people, beside its definition and beside who tries every world."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import anonflow as af
from anonflow.errors import ParameterError
from anonflow.release import Release
from anonflow.table.identification.earlier import Earlier
from tests.cases.released_twice import NAMED, SCHEMA, people
from tests.naive.repeated import Published, left

pytestmark = pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")


def released(seed: int, releases: int = 2, n: int = 8) -> tuple[af.Table, list[Release]]:
    """A small table, and several draws of it in classes of other sizes."""
    table = af.Table(people(n, seed=seed), SCHEMA)
    return table, [
        af.anonymize(table, "k-member", k=k, seed=seed).release(seed=2**127 + 10 * seed + k)
        for k in (2, 3, 4)[:releases]
    ]


def seen(release: Release) -> Published:
    """What the attacker sees of a release: the illness, which stays the same of each person, of each row."""
    assert release.certificate is not None
    lists = [frozenset(release.certificate.of(row).tolist()) for row in range(len(release.frame))]
    return Published(lists, release.frame["ill"].tolist())


def by_definition(years: list[Published], truth: list[str]) -> float:
    """Each value weighs its share among the person's rows in each release, divided by its share in the table but once.

    A release that leaves a person no value is of another value than theirs is now: it says nothing.
    """
    share = {value: Fraction(count, len(truth)) for value, count in Counter(truth).items()}
    right = Fraction(0)
    for person, own in enumerate(truth):
        weights = share
        for each in years:
            shown = [row for row, members in zip(each.shown, each.lists, strict=True) if person in members]
            left_over = {
                value: weight * Fraction(shown.count(value), len(shown)) / share[value]
                for value, weight in weights.items()
            }
            weights = left_over if any(left_over.values()) else weights
        best = [value for value, weight in weights.items() if weight == max(weights.values())]
        right += Fraction(int(own in best), len(best))
    return float(right / len(truth))


@pytest.mark.parametrize("releases", [2, 3])
def test_its_success_is_that_of_its_definition_and_its_certainty_that_of_all_worlds(releases: int) -> None:
    """On small tables. Whoever tries all worlds is certain of these people as well, and on average right more often."""
    rates, exact = [], []
    for seed in range(12):
        table, draws = released(seed, releases)
        years, truth = [seen(each) for each in draws], table.frame["ill"].tolist()
        row = af.attack(table, draws[0], "linker", earlier=draws[1:]).iloc[-1]
        assert row["attacker"] == "intersection"
        assert row["success"] == pytest.approx(by_definition(years, truth))
        beliefs = left(years)
        certain = [person for person, each in beliefs.items() if len(each.values) == 1]
        assert all(beliefs[person].values == {truth[person]} for person in certain)
        assert row["at_risk"] <= len(certain)
        rates.append(row["success"])
        exact.append(float(sum(each.likeliest_value for each in beliefs.values()) / table.n))
    assert np.mean(rates) <= np.mean(exact) + 0.05
    assert max(rates) > 0.5


def test_values_of_an_earlier_year_have_the_shares_of_this_one() -> None:
    """Illnesses that changed since are rarer or more frequent in the table that is attacked."""
    rates = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        table, (now, before) = released(seed, n=12)
        ill = before.frame["ill"].to_numpy()
        changed = np.where(rng.random(12) < 0.4, rng.choice(ill, 12), ill)
        before = replace(before, frame=before.frame.assign(ill=changed))
        row = af.attack(table, now, "linker", earlier=[before]).iloc[-1]
        rates.append(row["success"])
        assert row["success"] == pytest.approx(
            by_definition([seen(now), seen(before)], table.frame["ill"].tolist())
        )
    assert len(set(rates)) > 1


def test_releases_are_intersected_beside_an_owners_folder(tmp_path: Path) -> None:
    table = af.Table(people(8), NAMED)
    now, before = (af.anonymize(table, "k-member", k=k).release(seed=2**127 + k) for k in (2, 3))
    Earlier(tmp_path).keep(table, before)

    def attackers(*earlier: Path | Release) -> list[str]:
        names: list[str] = af.attack(table, now, "linker", earlier=list(earlier))["attacker"].tolist()
        return names

    assert attackers(before) == attackers(tmp_path, before) == ["linker", "intersection"]
    assert attackers(tmp_path) == ["linker"]
    with pytest.raises(ParameterError, match="name at least one earlier release"):
        attackers()
