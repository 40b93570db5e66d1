"""The three questions about a release, with controls held out before anonymizing: a run of its own."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.seeds import derived_seed
from anonflow.engine.report.card import same_way, sample_of
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.release import publish
from anonflow.risk.three_questions import Answer, three_questions
from anonflow.table import Table

__all__ = ["SAMPLE", "held_out"]

SAMPLE = 8_000
"""Records that are halved, at most: whole partitions of a larger table."""


def held_out(anonymization: Anonymization, seed: int) -> tuple[Answer, ...]:
    """Hold out half of the people, release the others in the same way, and attack both halves.

    Parameters
    ----------
    anonymization : Anonymization
        What is published: its method, parameters and diversity are used again.
    seed : int
        128 bits. The halves, the draw and the attacks are made from it.

    Returns
    -------
    tuple of Answer

    Raises
    ------
    ParameterError
        If half of the people are too few for the method, or one partition is too large.

    Notes
    -----
    The release of the half is thrown away: nothing of the published one is used, so that the figures say nothing about its
    draw. A half is released with somewhat more loss than the whole. Where people have several rows, all rows of a person,
    and of a household, are on one side: else the controls would be in the release by their other rows.
    """
    own = derived_seed(seed, "held out")
    few = sample_of(anonymization, own, SAMPLE)
    if few is None:
        raise ParameterError(f"one partition has more than {SAMPLE:,} records")
    rng = np.random.default_rng(own)
    half = _half(few, rng)
    inside, outside = few.take(np.flatnonzero(half)), few.take(np.flatnonzero(~half))
    try:
        of_half = same_way(anonymization, inside, own)
    except InfeasibleError as error:
        raise ParameterError(
            f"half of the people cannot be released alike: {error.message.splitlines()[0]}"
        ) from None
    release = publish(of_half, own, rehearsal=True)
    return three_questions(inside, release.frame, outside, rng)


def _half(table: Table, rng: np.random.Generator) -> np.ndarray:
    """Which rows are released: about half of them, those of one person or household together, shape (n,), bool."""
    whose = table.unit if table.household is None else table.household
    half = np.zeros(table.n, bool)
    if whose is None:
        half[rng.permutation(table.n)[: table.n // 2]] = True
        return half
    labels = np.unique(whose, return_inverse=True)[1]
    sizes = np.bincount(labels)
    order = rng.permutation(len(sizes))
    chosen = np.zeros(len(sizes), bool)
    chosen[order[np.cumsum(sizes[order]) <= table.n // 2]] = True
    half[:] = chosen[labels]
    if not half.any():
        raise ParameterError("one person or household has more than half of the rows: the others are no half")
    return half
