"""deFinetti attacks (Kifer, 2009): learn from all classes which quasi-identifiers go with which sensitive value, then guess inside each.

Figures, 600 records in classes of at least 5 (mondrian), a sensitive value that depends on age: the likeliest candidate by a model
learnt from the release itself has 0.18 on average, by the class alone 0.14. k-anonymity does not promise to stop it; the
attacker ``linkable-columns`` must not be weaker than it at finding rows (within 0.02), and must say so at the draw.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

import anonflow as af

K = 5


def table() -> af.Table:
    rng = np.random.default_rng(11)
    n = 600
    age = rng.integers(18, 90, n)
    sex = rng.choice(["f", "m"], n)
    # six illnesses, each most frequent at some age
    ill = np.clip((age - 18 + rng.normal(0, 6, n)) // 12, 0, 5).astype(int)
    frame = pd.DataFrame(
        {"age": age, "sex": sex, "town": rng.choice(list("abcdefgh"), n), "ill": [f"i{x}" for x in ill]}
    )
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "sex": {"role": "quasi-identifier", "kind": "categorical"},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
        "ill": {"role": "sensitive"},
    }
    return af.Table(frame, schema)


def definetti(people: af.Table, release: af.release.Release) -> float:
    """The probability of the likeliest candidate of each row, from age and illness learnt off the release, iterated."""
    assert release.certificate is not None
    n = people.n
    bins = (people.frame["age"].to_numpy() - 18) // 6
    values, shown = np.unique(release.frame["ill"], return_inverse=True)
    lists = [release.certificate.of(row) for row in range(n)]
    weight = [np.full(len(some), 1 / len(some)) for some in lists]
    for _ in range(10):
        counts = np.ones((12, len(values)))
        for row in range(n):
            np.add.at(counts[:, shown[row]], bins[lists[row]], weight[row])
        # the released classes with everybody spread inside: P(ill | age bin)
        share = counts / counts.sum(axis=1, keepdims=True)
        for row in range(n):
            fit = share[bins[lists[row]], shown[row]]
            weight[row] = fit / fit.sum()
    return float(np.mean([item.max() for item in weight]))


def test_what_is_learnt_from_the_release_is_not_overlooked() -> None:
    people = table()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        release = af.anonymize(people, "mondrian", k=K).release(seed=2**127)
    learnt = definetti(people, release)
    row = af.attack(people, release, "linkable-columns", k=K).iloc[0]
    assert release.certificate is not None
    uniform = np.mean([1 / len(release.certificate.of(row)) for row in range(people.n)])
    assert learnt > uniform + 0.01
    assert row["success"] > learnt - 0.02
