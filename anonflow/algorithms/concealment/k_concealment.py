"""k-concealment and its weaker relatives (Tassa 2012)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from anonflow.algorithms.concealment.components import concealed
from anonflow.algorithms.concealment.even_start import even_matches, evenly_dealt, evenly_started
from anonflow.algorithms.concealment.expansion import (
    DistinctRecords,
    expanded,
    optimal,
    randomly_expanded,
    unloaded,
)
from anonflow.algorithms.concealment.reassignment import exchanged
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import mend_jit
from anonflow.option import Option
from anonflow.partition import too_few

TARGETS = {
    "(k,1)": "(k,1)",
    "(1,k)": "(1,k)",
    "(k,k)": "(k,k)",
    "concealment": "k-concealment",
    "(k,1)-concealment": "(k,k)",
    "(k,k)-concealment": "k-concealment",
}
"""The targets, and the criterion that verifies the result of each."""

Start = Literal["even", "expansion"]

Target = Literal["concealment", "(k,1)", "(1,k)", "(k,k)", "(k,1)-concealment", "(k,k)-concealment"]

WEAK = (
    "a release that is only {criterion} is for study: an attacker who knows everybody's quasi-identifiers can exclude rows "
    "until fewer than k are left; use target='concealment'"
)
NOT_RANDOM = (
    "without randomness, an attacker who knows the method and everybody's quasi-identifiers runs it again and learns "
    "each person's row; use randomized=True"
)

EXACT = (
    "the exact choice of records has no randomness: an attacker who knows the method and everybody's quasi-identifiers "
    "runs it again and learns most rows; use exact=False and randomized=True"
)


def k_concealment(
    part: Partition,
    k: int,
    *,
    target: Annotated[Target, Option("Stop at")] = "concealment",
    randomized: Annotated[bool, Option("Randomized")] = True,
    start: Annotated[Start | None, Option("Start from")] = None,
    q: Annotated[int | None, Option("Neighbours to choose from", least=1)] = None,
    near: Annotated[Literal["expansion", "pairs"], Option("Which neighbours")] = "expansion",
    exact: Annotated[bool, Option("Best start of all")] = False,
    improve: Annotated[Literal["none", "chains"], Option("Even start improved by")] = "none",
    time_limit: Annotated[float, Option("Time limit (seconds)", least=0, below=1e9)] = 60.0,
) -> Outcome:
    """Return generalized records such that each original has at least k matches among them.

    Each record is generalized with k - 1 others ((k,1)), records are widened until each original is covered by k of
    them ((k,k)), and then until each original has k matches: rows with which a perfect matching of the covers exists.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
        At most P.
    target : str, optional
        What every record must have; all but k-concealment are for study, and weaker.

        ``concealment``; ``(k,1)``, ``(1,k)`` and ``(k,k)`` stop earlier and are for study; ``(k,1)-concealment``
        asks for k matches of each generalized record, ``(k,k)-concealment`` for both.
    randomized : bool, optional
        Chooses at random among near records: without it, matches can be guessed from the result.

        From an even start, rows are drawn for originals. From expansion, that chooses between its result and a random
        one among `q` neighbours (Algorithm 6), originals are visited in random orders, and rows are exchanged. Only
        one of these should be released.
    start : {"even", "expansion"}, optional
        Even: no row belongs to a person with more than 5/(4k) probability. Expansion: as in the paper; some rows belong
        to a person with a higher one.

        Even (:func:`anonflow.algorithms.concealment.even_start.evenly_started`) without it, unless something of
        expansion is asked for: `q`, ``near="pairs"``, `exact`, no randomness, or another target.
    q : int, optional
        Of expansion: 2 (k - 1) without it; more hide better and lose more. At most P - 1.
    near : {"expansion", "pairs"}, optional
        Expansion: those that share a small box, and less is lost. Pairs: as in the paper.

        ``expansion`` are those with which it would go on beyond k records, ``pairs`` those whose pairs with the
        record cost least.
    exact : bool, optional
        Tries every k - 1 others for each record: tiny tables only (Algorithm 1).
    improve : {"none", "chains"}, optional
        Chains: the even start begins with the graph of ``two-phase``, for 3 to 8% less loss in more time.

        The bound on what is likely stays: it holds for any regular graph. The benchmark ``concealment`` has the figures.
    time_limit : float, optional
        Seconds after which an exact choice ends with an error. The compilation of kernels in a first run is not counted.

    Returns
    -------
    Outcome
        Without matches or classes. Facts: the criterion that holds (`guarantee`), `warning` if the result should not
        be released, and how many times records were widened for (1,k) and for matches.

    Raises
    ------
    ParameterError
        If q is out of range, the table is too large for an exact choice, or an even start or its chains contradict the
        other options.
    InfeasibleError
        If there are fewer than k records, or an exact choice takes longer than the limit.

    Notes
    -----
    Tassa 2012: Algorithms 1 to 6; the even start is ours, in O(k P^2 q) time. From expansion, O(P^2 q) for the neighbours and the (1,k)-anonymizer, O(k) steps of expansion over the
    nearest of them, and O(E) for the components of the E pairs of who covers whom; memory O(P (q + k) + E).

    The k matches are not equally likely, and who could count all perfect matchings would know how likely each is. The
    paper assumes that nobody can; approximately it takes polynomial time (Jerrum, Sinclair, Vigoda, 2004), and so does
    running the method with other seeds (200 records of Adult, k = 5 with 1/k = 0.20, 300 replays,
    :class:`anonflow.risk.Simulator`, means of three releases). With expansion this identifies the row of 0.36 of the
    people (0.56 without the exchange of rows, which the paper does not have) at a GCP of 0.107; with an even start, of
    0.22 and never of more than 0.25, at a GCP of 0.101. A k-regular method has 0.20 exactly: ``greedy`` at a GCP of
    0.106. A record that is widened may cover more originals than the one meant: all these edges count
    (docs/reference/departures.md, k-concealment).

    Neighbours nearest by pairs lie in all directions, and few of them share a small box: on Adult with hierarchies
    (k = 100, LM) that loses 0.248 where neighbours by expansion lose 0.197, not randomized 0.174. There are as many
    choices either way.
    """
    n = part.n
    if k > n:
        raise too_few(n, k)
    merged = DistinctRecords.of(part)
    neighbours = _neighbours(q, k, n)
    of_expansion = q is not None or near == "pairs" or exact or not randomized or target != "concealment"
    if improve == "chains" and (of_expansion or start == "expansion"):
        raise ParameterError(
            "k-concealment: improve='chains' is for the even start; leave it out, or leave start='expansion' and its options out"
        )
    if start == "even" and of_expansion:
        raise ParameterError(
            "k-concealment: start='even' needs target='concealment' and randomized=True, and cannot be combined with q, "
            "near='pairs' or exact; use start='expansion' for these"
        )
    if start != "expansion" and not of_expansion:
        return _even(merged, k, improve == "chains")
    if target == "(1,k)":
        boxes = merged.own()
    elif exact:
        boxes = optimal(merged, k, time_limit)
    elif randomized:
        boxes = randomly_expanded(merged, k, neighbours, part.rng, near == "pairs")
    else:
        boxes = merged.spread(expanded(merged, k))
    facts: dict[str, object] = {"guarantee": TARGETS[target]}
    if target != "(k,1)":
        order = merged.visits(part.rng if randomized else None)
        facts["widened_to_cover"] = int(mend_jit(part.plan, merged.state, order, k, boxes))
    if target.endswith("concealment"):
        sides = {"concealment": "o", "(k,1)-concealment": "g", "(k,k)-concealment": "og"}[target]
        visits = part.rng.permutation(n) if randomized else np.arange(n)
        facts["widened_to_match"] = concealed(part.plan, merged, boxes, k, sides, visits)
    if not target.endswith("concealment") or target == "(k,1)-concealment":
        facts["warning"] = WEAK.format(criterion=TARGETS[target])
    elif not randomized or exact:
        facts["warning"] = NOT_RANDOM if not exact else EXACT
    generalization = unloaded(part.records, part.plan, boxes)
    generalization = generalization.join(Generalization.of(part.records))
    if randomized:
        generalization = exchanged(merged, boxes, generalization, part.rng)
    return Outcome(generalization, facts=facts)


def _even(merged: DistinctRecords, k: int, chained: bool) -> Outcome:
    """Return the outcome of an even start."""
    part = merged.part
    boxes, matches, covering, possible = evenly_started(merged, k, chained)
    generalization = unloaded(part.records, part.plan, boxes).join(Generalization.of(part.records))
    facts: dict[str, object] = {
        "guarantee": TARGETS["concealment"],
        "evenly_drawn": even_matches(k),
        "widened_to_cover": covering,
        "widened_to_match": possible,
    }
    return Outcome(evenly_dealt(merged, boxes, generalization, matches, part.rng), facts=facts)


def _neighbours(q: int | None, k: int, n: int) -> int:
    """Return how many neighbours a random choice is made from."""
    if q is None:
        return min(n - 1, 2 * (k - 1))
    if q < k:
        raise ParameterError(f"q must be a number of neighbours greater than k - 1 = {k - 1}")
    if q > n - 1:
        raise ParameterError(f"q is at most {n - 1}: there are no more neighbours in a partition of {n}")
    return int(q)


K_CONCEALMENT = Algorithm(
    name="k-concealment",
    run=k_concealment,
    family="k-concealment",
    paper="Tassa, Mazza, Gionis: k-Concealment: an alternative model of k-type anonymity. Trans. Data Privacy 5, 2012",
    guarantee="k-concealment",
    complexity="O(n P q) in partitions of P",
    summary="weaker promise, about as much loss as good classes: k rows that may be yours, not equally likely (none more than 5/(4k); at k = 5 an attacker who simulates seeds finds 22%)",
    colour="#b8609a",
    shape="diamond",
)
