"""(1,k), (k,1), (k,k) and k-concealment: how many candidates, or matches, a record has."""

from __future__ import annotations

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.matching.covers import perfect_flow
from anonflow.criteria.matching.max_flow import cyclic_edges
from anonflow.criteria.verification import Finding
from anonflow.hierarchy.wording import plural


def match_edges(evidence: Evidence) -> np.ndarray | None:
    """Return which edges of the consistency graph lie on a perfect matching.

    Returns
    -------
    numpy.ndarray, shape (E,), bool, or None
        None if there is no perfect matching at all. One maximum flow, then O(E).

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.criteria.matching.covers.covers`.

    Notes
    -----
    Definition 6 and Algorithm 4 of Tassa 2012. With copies merged, an edge stands for all pairs of copies, and by
    symmetry either all of them are matches or none is.
    """
    flow = perfect_flow(evidence)
    if flow is None:
        return None
    graph = evidence.graph
    sizes = graph.originals.size, graph.published.size
    return cyclic_edges(*sizes, graph.end, graph.box, flow > 0)


def covered_by_k(evidence: Evidence) -> Finding:
    """Check (1,k): every original is covered by at least k published rows (Tassa 2012, Definition 4).

    Raises
    ------
    ParameterError, DataError
        As :func:`concealment`.
    """
    graph = evidence.graph
    k = evidence.need_k("(1,k)")
    return _originals("(1,k)", evidence, np.ones(graph.edges, bool), k, "rows that cover an original")


def covers_k(evidence: Evidence) -> Finding:
    """Check (k,1): every published row covers at least k originals (Tassa 2012, Definition 4).

    Raises
    ------
    ParameterError, DataError
        As :func:`concealment`.
    """
    graph = evidence.graph
    k = evidence.need_k("(k,1)")
    degree = graph.degrees()[1]
    few = np.flatnonzero((degree < k) & ~evidence.exempt_box)
    failing = graph.published.positions(few)
    detail = f"at least {plural(int(degree.min()), 'original', 'are')} covered by a row"
    return Finding.of("(k,1)", failing, "published", detail, {"k": k})


def two_sided(evidence: Evidence) -> Finding:
    """Check (k,k): both (1,k) and (k,1) (Tassa 2012, Definition 4).

    Raises
    ------
    ParameterError, DataError
        As :func:`concealment`.
    """
    original_side, row_side = covered_by_k(evidence), covers_k(evidence)
    # a finding names positions of one side only
    worst = row_side if original_side.holds else original_side
    detail = f"(1,k): {original_side.detail}; (k,1): {row_side.detail}"
    return Finding(
        "(k,k)",
        original_side.holds and row_side.holds,
        worst.failed,
        worst.side,
        worst.positions,
        detail,
        dict(worst.parameters),
    )


def concealment(evidence: Evidence) -> Finding:
    """Check k-concealment: every original has at least k matches (Tassa 2012, Definition 6).

    A match is a published row on an edge of a perfect matching. Where fewer than k rows are ``*`` throughout,
    it is enough that all originals have k matches among the other rows, but for those suppressed records (of
    an anonymization), or but for as many originals as there are such rows (of a release).

    Raises
    ------
    ParameterError
        If k is not known.
    DataError
        If the consistency graph is too large.
    """
    k = evidence.need_k("k-concealment")
    matches = match_edges(evidence)
    if matches is None:
        everyone = np.arange(evidence.n)
        return Finding.of("k-concealment", everyone, "original", "there is no perfect matching", {"k": k})
    return _originals("k-concealment", evidence, matches, k, "matches of an original")


def _short(evidence: Evidence, edges: np.ndarray, copies: np.ndarray, k: int) -> np.ndarray:
    """Return which originals have fewer than k published rows along the edges, shape (n,), bool."""
    graph = evidence.graph
    few = np.bincount(graph.end, copies[graph.box] * edges, graph.originals.size) < k
    return few[graph.originals.label]


def _originals(criterion: str, evidence: Evidence, edges: np.ndarray, k: int, counted: str) -> Finding:
    """Return the finding of a criterion that wants k rows along the edges for every original."""
    copies = evidence.graph.published.count
    failing = _short(evidence, edges, copies, k)
    detail = f"{counted}, counted in the consistency graph"
    allowed = int(evidence.exempt.sum())
    if allowed and failing.any():
        # fewer than k suppressed rows cover everybody, but hide nobody: they do not count as candidates
        failing = _short(evidence, edges, np.where(evidence.exempt_box, 0, copies), k)
        if evidence.own:
            failing &= ~evidence.exempt
            detail += f"; {allowed} suppressed records need none"
        else:
            detail += f"; {plural(int(failing.sum()), 'original', 'have')} fewer, {plural(allowed, 'row', 'are')} * throughout"
            # as many originals may have been suppressed, and the rows do not say which: no more may fail
            if failing.sum() <= allowed:
                failing[:] = False
    return Finding.of(criterion, failing, "original", detail, {"k": k})


_NO_MATCHES = (
    "A row that covers a person need not be a match: an attacker who knows who is in the table can exclude rows that lie "
    "on no complete matching, and may be left with one row. Publish k-concealment or a k-regular release instead."
)

COVERED_BY_K = Criterion(
    name="(1,k)",
    check=covered_by_k,
    sentence="Every original is covered by at least k published rows.",
    promise="Every original is covered by at least k published rows.",
    warning=_NO_MATCHES,
    also={"(1,k)-anonymity": {}},
)

COVERS_K = Criterion(
    name="(k,1)",
    check=covers_k,
    sentence="Every published row covers at least k originals.",
    promise="Every published row covers at least k originals.",
    warning=_NO_MATCHES,
    covers_k=True,
    also={"(k,1)-anonymity": {}},
)

TWO_SIDED = Criterion(
    name="(k,k)",
    check=two_sided,
    sentence="Both (1,k) and (k,1).",
    promise="Every original is covered by at least k published rows, and every published row covers at least k originals.",
    warning=_NO_MATCHES,
    covers_k=True,
    also={"(k,k)-anonymity": {}},
)

K_CONCEALMENT = Criterion(
    name="k-concealment",
    check=concealment,
    sentence="Every original has at least k matches: rows on a perfect matching of who covers whom.",
    promise="Every original could be matched with at least k published rows in some complete matching; nothing is "
    "promised about how likely each of them is.",
    warning="The matches of a k-concealed record are not equally likely. An attacker who ran the method with other seeds, in "
    "polynomial time, named the right row for 0.22 of the people at k = 5 from an even start, which allows at most 5/(4k), "
    "and for 0.36 from the paper's, where 1/k is 0.20.",
    of_covers=True,
)
