"""The three questions about a release, with controls held out before anonymizing: a run of its own."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.anonymize import Anonymization
from anonflow.engine.report.card import plausible, same_way, sample_of
from anonflow.engine.report.drawn_values import with_drawn_values
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.release import Release, publish
from anonflow.release.randomness import derived_seed
from anonflow.risk import Answer, AttackContext, three_questions

SAMPLE = 8_000
"""Records that are halved, at most: whole partitions of a larger table."""


def held_out(anonymization: Anonymization, release: Release, seed: int) -> tuple[Answer, ...]:
    """Hold out half of the people, release the others in the same way, and attack both halves.

    Parameters
    ----------
    anonymization : Anonymization
        The published anonymization: its method, parameters and diversity are used again.
    release : Release
        Drawn from it, with the truth.
    seed : int
        128 bits. The halves, the draw and the attacks are made from it.

    Returns
    -------
    tuple of Answer

    Raises
    ------
    ParameterError
        If half of the people are too few for the method, one partition, or the lists of the rows, are too large, or people
        cannot be drawn from the cells.

    Notes
    -----
    The people are those of a plausible table (:func:`plausible`), their quasi-identifiers are drawn from the published cells
    (:func:`with_drawn_values`), and the release of the half is discarded: the figures reveal nothing about identities, nor a
    value that no cell shows, and may be published. A half has somewhat more loss than the complete table. People
    are held out with all their rows, and with their household: otherwise a control would be in the release by another
    row.
    """
    held_out_seed = derived_seed(seed, "held out")
    dealt = plausible(anonymization, AttackContext.of(anonymization.table, release), held_out_seed)
    if dealt is None:
        raise ParameterError("the rows list too many people")
    rng = np.random.default_rng(held_out_seed)
    dealt = with_drawn_values(dealt, rng)
    few = sample_of(dealt, held_out_seed, SAMPLE)
    if few is None:
        raise ParameterError(f"one partition has more than {SAMPLE:,} records")
    person = next((labels for labels in (few.household, few.unit) if labels is not None), np.arange(few.n))
    groups = int(person.max()) + 1
    chosen = np.zeros(groups, bool)
    chosen[rng.permutation(groups)[: groups // 2]] = True
    half = chosen[person]
    inside, outside = few.take(np.flatnonzero(half)), few.take(np.flatnonzero(~half))
    try:
        of_half = same_way(anonymization, inside, held_out_seed)
    except InfeasibleError as error:
        raise ParameterError(f"half of the people cannot be released alike: {error.message}") from None
    return three_questions(inside, publish(of_half, held_out_seed, rehearsal=True).frame, outside, rng)
