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
from anonflow.criteria.registry import CRITERIA
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
