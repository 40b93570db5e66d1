"""What follows from a guarantee is answered in one place."""

from __future__ import annotations

from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.guarantee import (
    OF_CLASSES,
    OF_MATCHES,
    promised_criteria,
    promises_classes,
    promises_matches,
)
from anonflow.criteria.registry import CRITERIA, promise_of
from tests.strategies import loop


@loop(
    ("guarantee", "criteria", "classes", "matches"),
    [
        (None, [], False, False),
        ("", [], False, False),
        ("k-anonymity", ["k-anonymity"], True, False),
        (" k-anonymity  and boundary", ["k-anonymity", "boundary"], True, False),
        ("boundary; k-regular", ["boundary", "k-regular"], False, True),
        ("k-concealment", ["k-concealment"], False, False),
        ("alpha-k-anonymity", ["alpha-k-anonymity"], False, False),
    ],
)
def test_a_guarantee_is_read(
    guarantee: str | None, criteria: list[str], classes: bool, matches: bool
) -> None:
    assert promised_criteria(guarantee) == criteria
    assert promises_classes(guarantee) is classes
    assert promises_matches(guarantee) is matches


def test_methods_guarantee_criteria() -> None:
    promised = {name for method in REGISTRY.values() for name in promised_criteria(method.guarantee)}
    assert promised <= set(CRITERIA)
    assert promised >= OF_CLASSES | OF_MATCHES


def test_a_promise_to_be_signed_has_its_number() -> None:
    with_a_promise = [name for name in CRITERIA if promise_of(name)]
    assert [name for name in with_a_promise if "12" not in promise_of(name, 12)] == []
    assert [
        name for name in with_a_promise if " k " in promise_of(name, 12) or "/k" in promise_of(name, 12)
    ] == []
    assert promise_of("k-anonymity", 12) == (
        "Every published row is one of at least 12 rows with the same quasi-identifiers."
    )
