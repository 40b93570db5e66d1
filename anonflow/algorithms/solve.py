"""Run a method on one partition, with a stream of random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from anonflow.algorithms.diversity.target import SensitiveValues
from anonflow.algorithms.limits.enforce import run_within_limits
from anonflow.algorithms.method import Algorithm, Outcome, Partition, Progress
from anonflow.algorithms.soundness import check_form, check_outcome
from anonflow.errors import InfeasibleError
from anonflow.partition import limited
from anonflow.release.randomness import derived_seed
from anonflow.table import Records

STEP = 0
"""The part of a seed's stream that algorithms use; the draw uses another part."""


def solve(
    method: Algorithm,
    records: Records,
    k: int,
    loss: str,
    generator: np.random.Generator | Callable[[], np.random.Generator],
    options: Mapping[str, Any],
    watch: Callable[[Progress], None] | None = None,
    sensitive: SensitiveValues | None = None,
    *,
    is_over: Callable[[], bool] | None = None,
    check: bool = True,
) -> Outcome:
    """Run a method on one partition. All drivers call this function, here and on a cluster.

    `check` is False for a caller that checks the results of several partitions by :func:`check_together`, which takes less time.

    Raises
    ------
    ParameterError
        If an option has a value that the method refuses.
    InfeasibleError
        If the partition has no solution.
    AnonflowError
        If the result is wrong, because of a bug (:func:`anonflow.algorithms.soundness.check_outcome`).
    """
    records = records.at_floor()
    part = Partition(records, loss, generator, sensitive, watch, is_over)
    outcome = (
        run_within_limits(method, part, k, options) if limited(records) else method.run(part, k, **options)
    )
    if check:
        check_outcome(method, records, k, loss, options, outcome)
    else:
        check_form(method, records.n, outcome)
    return outcome


def solve_together(
    method: Algorithm, records: Records, sizes: Sequence[int], k: int, loss: str, options: Mapping[str, Any]
) -> list[Outcome] | None:
    """Run a method on several partitions at once; None where it has no quicker way than one after the other.

    Parameters
    ----------
    method : Algorithm
    records : Records
        Those of the partitions, one after the other.
    sizes : sequence of int
        Of each.
    k, loss, options
        As :func:`solve` takes them.

    Returns
    -------
    list of Outcome or None
        To be checked together.
    """
    if method.together is None or len(sizes) < 2 or min(sizes) < k or limited(records):
        return None
    part = Partition(records.at_floor(), loss, _no_generator)
    outcomes = method.together(part, np.cumsum([0, *sizes]), k, **options)
    if outcomes is not None:
        for size, outcome in zip(sizes, outcomes, strict=True):
            check_form(method, size, outcome)
    return outcomes


def _no_generator() -> np.random.Generator:
    raise TypeError("each partition has a generator of its own")


def check_together(
    method: Algorithm,
    records: Records,
    parts: Sequence[np.ndarray],
    k: int,
    loss: str,
    options: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    whole: Outcome,
) -> None:
    """Check the results of several partitions, joined where they have matches or classes.

    Others are checked one by one: together, the rows of a partition would count for another.

    Parameters
    ----------
    method : Algorithm
    records : Records
    parts : sequence of numpy.ndarray
        Positions of each partition's records; together all of them.
    k, loss, options
        As :func:`solve` takes them.
    outcomes : sequence of Outcome
        Of each partition.
    whole : Outcome
        These as one.

    Raises
    ------
    AnonflowError
        As :func:`anonflow.algorithms.soundness.check_outcome`.
    """
    records = records.at_floor()
    if whole.matches is not None or whole.classes is not None:
        check_outcome(method, records, k, loss, options, whole)
        return
    for at, outcome in zip(parts, outcomes, strict=True):
        check_outcome(method, records.take(at), k, loss, options, outcome)


def in_a_partition(error: InfeasibleError, partitions: int) -> InfeasibleError:
    """Return the error of a partition; it says that it is about one of them, if there are several."""
    if partitions == 1:
        return error
    return InfeasibleError(f"{error.text} (in one of {partitions:,} partitions)", subject=error.subject)


def partition_generator(entropy: int, partition: int, records: Records) -> Callable[[], np.random.Generator]:
    """Return what makes the generator of a partition when it is first needed, and returns the same one again."""
    return cache(partial(partition_rng, entropy, partition, records))


def partition_rng(entropy: int, partition: int, records: Records | None = None) -> np.random.Generator:
    """Return the generator of one partition: its stream depends on the partition's number and records alone.

    Parameters
    ----------
    entropy : int
        The run's seed.
    partition : int
        The partition's number; -1 for the order of the partitions.
    records : Records, optional
        Its records: with the same seed, other records get other random choices, so these choices do not reveal those.
    """
    step_seed = derived_seed(entropy, "algorithms")
    if records is not None:
        # else the same seed would make the same choices in two tables, and one's result would tell about the other's
        step_seed = derived_seed(step_seed, f"records {records.fingerprint()}")
    return np.random.default_rng(np.random.SeedSequence(step_seed, spawn_key=(STEP, partition + 1)))
