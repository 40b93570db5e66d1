"""k-regularity: k disjoint assignments of originals to published rows."""

from __future__ import annotations

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.matching.max_flow import largest_flow
from anonflow.criteria.verification import Finding
from anonflow.hierarchy.wording import plural


def k_regular(evidence: Evidence) -> Finding:
    """Return whether the graph of who could be whom contains a k-regular one.

    With matches or a certificate in O(nk); else by maximum flow.

    Raises
    ------
    ParameterError
        If k is not known.
    DataError
        If the consistency graph is too large.
    """
    if evidence.listing is not None:
        return regular_by_listing(evidence, evidence.listing)
    return regular_by_flow(evidence)


def regular_by_flow(evidence: Evidence) -> Finding:
    """Check k-regularity from the consistency graph alone.

    A k-regular subgraph exists if and only if a flow of n k fits through the graph with capacity one for an
    edge and k for a record (Murakami 2018, section 3.1, Figure 4). Equal records are merged, exactly: an edge
    between m and c copies has capacity m c. Exempt rows (fewer than k, ``*`` throughout) take up to k from one
    original: in every draw, each other row is a given person's with probability 1/k at most.

    Raises
    ------
    ParameterError, DataError
        As :func:`k_regular`.
    """
    k = evidence.need_k("k-regular")
    graph = evidence.graph
    people, copies = graph.originals.count, graph.published.count
    # k assignments without a common edge: each pair of an original and a row is used at most once, copies counted
    capacity = people[graph.end] * copies[graph.box]
    degree = min(k, evidence.n + 1)  # no row has more than n matches, and a very large k would overflow
    # fewer than k suppressed rows may take one original up to k times: any other row is a given person's with 1/k at most still
    capacity[evidence.exempt_box[graph.box]] *= degree
    flow = largest_flow(people * degree, copies * degree, graph.end, graph.box, capacity, need=degree)
    total = evidence.n * degree
    detail = f"maximum flow {flow.value:,} of {total:,}"
    lacking = np.flatnonzero(flow.unmet)
    failing = graph.published.positions(lacking, flow.unmet[lacking])
    if len(failing):
        short = np.flatnonzero(flow.unsent)
        count = int(np.minimum(flow.unsent[short], people[short]).sum())
        detail += f"; {plural(count, 'original', 'have')} too few matches as well"
    return Finding.of("k-regular", failing, "published", detail, {"k": k})


def regular_by_listing(evidence: Evidence, listing: Candidates) -> Finding:
    """Check k-regularity from the matches that the owner claims, O(nk).

    Every row covers the distinct originals that it lists, and at both ends of every entry the same number,
    at least k, of entries meets: then each connected component is regular and has k disjoint assignments.
    Rows that cover everything and list fewer than k are suppressed: no other row lists their originals, and they are
    either a class of at least k or publish nothing.

    Raises
    ------
    ParameterError
        If k is not known.
    """
    k = evidence.need_k("k-regular")
    claim = "certificate" if evidence.certified else "matches"
    parameters = {"k": k}
    bad = listing.strangers(evidence.n)
    if bad.any():
        detail = f"the {claim} list originals that do not exist, or one twice"
        return Finding.of("k-regular", bad, "published", detail, parameters)
    bad = evidence.uncovered.copy()
    uncovered = int(bad.sum())
    degree = listing.sizes
    if len(degree) and (degree == degree[0]).all() and degree[0] >= k:
        uneven = evidence.listed != degree[0]
        if uneven.any():
            bad |= listing.any(lambda row, original: uneven[original])
    else:
        bad |= _irregular(evidence, listing, k)
    parts = [f"each row against its {claim}"]
    if uncovered:
        parts.append(
            f"{plural(uncovered, 'row', 'do')} not cover an original that {'it lists' if uncovered == 1 else 'they list'}"
        )
    if bad.sum() > uncovered:
        parts.append(f"{plural(int(bad.sum()) - uncovered, 'row', 'are')} not in k = {k} assignments")
    return Finding.of("k-regular", bad, "published", "; ".join(parts), parameters)


def _irregular(evidence: Evidence, listing: Candidates, k: int) -> np.ndarray:
    """Return rows of a listing with unequal degrees that are in no regular component, and not correctly suppressed."""
    n = evidence.n
    degree, back = listing.sizes, evidence.listed
    alone = evidence.suppressed & (degree < k)
    # a component has one degree, at least k, on both sides: then it is a sum of assignments (König)
    bad = ~alone & (degree < k)
    bad |= ~alone & listing.any(lambda row, original: back[original] != degree[row])
    if alone.any():
        listed, shared = (listing.take(at).counts(n) > 0 for at in (alone, ~alone))
        few = int(alone.sum()) < k
        wrong = int(listed.sum()) != int(alone.sum()) or (listed & shared).any() or (degree[alone] == 0).any()
        if wrong:
            bad |= alone
        elif few:
            bad |= alone & ~evidence.blank
    return bad


K_REGULAR = Criterion(
    name="k-regular",
    check=k_regular,
    sentence="The graph of who covers whom contains k perfect matchings without a common edge.",
    promise="Every published row has k originals that could be its own. The true one was drawn, so that each has "
    "probability exactly 1/k, also for an attacker who knows the quasi-identifiers of everybody in the table.",
    warning="An attacker who knows for certain which rows belong to some people can exclude choices for others: "
    "heterogeneous generalization loses more by this than classes of equal rows do.",
    covers_k=True,
    also={"k-regularity": {}},
)
