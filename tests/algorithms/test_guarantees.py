"""Every method on every table keeps what it promises: the definition, the verifier, and the published table."""

from __future__ import annotations

from functools import cache

import pytest

import anonflow as af
from anonflow.algorithms.registry import REGISTRY
from anonflow.errors import InfeasibleError
from anonflow.table import Table
from tests.cases.tables import TABLES, sampled
from tests.checks import SOON, TAKE_EVERY_KIND, check_release, check_result
from tests.strategies import loop

K = (2, 3, 5)


@cache
def table(name: str) -> Table:
    return TABLES[name]()


EVERY = [
    pytest.param(algorithm, name, ks, marks=marks, id=f"{algorithm}-{name}-{'-'.join(map(str, ks))}")
    for i, algorithm in enumerate(TAKE_EVERY_KIND)
    for j, name in enumerate(TABLES)
    for quick in (K[-(i + j) % len(K)],)
    for ks, marks in (((quick,), ()), (tuple(k for k in K if k != quick), (pytest.mark.slow,)))
]
"""Every method on every table with each k; of these, each method on each table with one k is quick."""


# toy tables have sensitive values that nobody shares, which a release warns about
@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize(("algorithm", "name", "ks"), EVERY)
def test_every_method_on_every_table(algorithm: str, name: str, ks: tuple[int, ...]) -> None:
    for k in ks:
        keeps_its_promise(algorithm, name, k)


def keeps_its_promise(algorithm: str, name: str, k: int) -> None:
    people = table(name)
    if name == "location_example" and (k == 5 or (k == 3 and REGISTRY[algorithm].keeps_limits)):
        # its boundaries leave no class of five records, and of three only with a city generalized
        with pytest.raises(InfeasibleError, match="boundaries"):
            af.anonymize(people, algorithm, k=k)
        return
    anon = af.anonymize(people, algorithm, k=k, seed=7, **SOON.get(algorithm, {}))
    check_result(anon, k)
    assert af.verify(people, anon, ["covers", "guarantee"], k=k)
    release = anon.release(seed=2**127 + k)
    check_release(anon, release)
    assert af.verify(people, release, ["covers", anon.guarantee], k=k)
    assert af.verify(people, release, ["covers", anon.guarantee], k=k, certificate=release.certificate)


@pytest.mark.parametrize("algorithm", TAKE_EVERY_KIND)
def test_everybody_among_everybody(algorithm: str) -> None:
    """k = n works."""
    people = table("six")
    anon = af.anonymize(people, algorithm, k=people.n, seed=7, **SOON.get(algorithm, {}))
    check_result(anon, people.n)


# what promises something for sets of columns alone leaves few candidates on all of them, and says what follows
FOLLOWS = pytest.mark.filterwarnings("ignore:column .* follows from:anonflow.release.ReleaseWarning")


@pytest.mark.data
@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=[FOLLOWS] * REGISTRY[name].of_sets) for name in TAKE_EVERY_KIND],
)
@loop("name", ["adult", "cmc"])
def test_every_method_on_real_tables(algorithm: str, name: str, data_folder: object) -> None:
    people = sampled(name, 200)
    anon = af.anonymize(people, algorithm, k=5, partition_size=100, seed=7, **SOON.get(algorithm, {}))
    check_result(anon, 5)
    assert af.verify(people, anon.release(seed=9), ["covers", "guarantee"])
