"""The criterion covers: every published row covers an original of its own and has the other columns of an original."""

from __future__ import annotations

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.matching.graph import Bipartite, DistinctRows, merge, runs
from anonflow.criteria.matching.max_flow import largest_flow, matched_all, unmet
from anonflow.criteria.verification import Finding
from anonflow.hierarchy.wording import plural, verb_of

_ROWS = 1 << 15
"""Rows whose lists are looked at together."""


def covers(evidence: Evidence) -> Finding:
    """Return whether every generalized record covers its own original.

    Of an anonymization, row i is compared with original i in O(nq). Of a release, a perfect matching must
    exist over edges whose other published columns are equal; fewer than k rows may be ``*`` in every column. Where
    records were deleted, every row needs an original of its own, and as many originals are left over.
    With a certificate only its edges count.

    Raises
    ------
    ParameterError
        If some rows are ``*`` throughout and k is not known.
    DataError
        If the consistency graph is too large.
    """
    if evidence.own:
        wrong = ~evidence.own_covers
        return Finding.of("covers", wrong, "published", "each row against its own original")
    crowd = int(evidence.blank.sum())
    remark = f"; {plural(crowd, 'row', 'are')} * throughout" if crowd else ""
    if crowd and not evidence.exempt.any():
        remark += f", allowed for fewer than k = {evidence.k}"
    if evidence.certified and evidence.listing is not None:
        failing, claim = _covers_listed(evidence, evidence.listing)
        return Finding.of("covers", failing, "published", claim + remark)
    failing = unmatched(evidence)
    detail = "a perfect matching by the quasi-identifiers"
    if evidence.rest is not None:
        detail += " and the other columns"
    if evidence.deleted:
        lacking = (
            f"{evidence.deleted:,} of {plural(evidence.n, 'original')} {verb_of(evidence.deleted, 'have')}"
        )
        detail += f"; {lacking} no row: suppressed by deletion"
    return Finding.of("covers", failing, "published", detail + remark)


def unmatched(evidence: Evidence, keep: np.ndarray | None = None) -> np.ndarray:
    """Return published rows that are left without an original by a largest matching, over edges whose other published columns are equal.

    Parameters
    ----------
    evidence : Evidence
    keep : numpy.ndarray, shape (E,), bool, optional
        Which edges of the consistency graph count; all without it.

    Returns
    -------
    numpy.ndarray, int64
        Their positions, in O(E log E) and a maximum flow on distinct lists of edges.

    Raises
    ------
    ParameterError, DataError
        As :func:`covers`.
    """
    graph = evidence.graph
    if evidence.rest is None:
        originals, published = graph.originals, graph.published
        left, right, edge_mask = graph.end, graph.box, keep
    else:
        originals = merge([graph.originals.label, evidence.rest[0]], evidence.n)
        published = merge([graph.published.label, evidence.rest[1]], evidence.rows)
        left, right, at = _with_equal_rest(evidence, evidence.rest, originals, published)
        edge_mask = None if keep is None else keep[at]
    if edge_mask is not None:
        left, right = left[edge_mask], right[edge_mask]
    lacks = unmet(originals.count, published.count, left, right)
    lacking = np.flatnonzero(lacks)
    return published.positions(lacking, lacks[lacking])


def _with_equal_rest(
    evidence: Evidence,
    rest: tuple[np.ndarray, np.ndarray],
    originals: DistinctRows,
    published: DistinctRows,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return edges between distinct (record, other columns) on both sides, and each one's edge of the graph.

    For each published variant it goes through the shorter of two lists: the originals that its box covers, or the
    originals with its other columns.
    """
    graph = evidence.graph
    rest_of_original, rest_of_row = rest
    u_of, o_of = graph.originals.label[originals.first], rest_of_original[originals.first]
    b_of, p_of = graph.published.label[published.first], rest_of_row[published.first]
    labels = int(max(rest_of_original.max(initial=0), rest_of_row.max(initial=0))) + 1
    key = u_of * labels + o_of  # ascending: merge sorts
    by_rest = np.argsort(o_of, kind="stable")
    starts = np.searchsorted(o_of[by_rest], np.arange(labels + 1))
    blank = evidence.exempt_box[b_of]
    degree = np.diff(graph.start)[b_of]
    peers = np.where(blank, originals.size, np.diff(starts)[p_of])

    # two ways to the same edges: through the row's originals, or through those with its other columns, whichever are fewer
    short = ~blank & (degree <= peers)
    variant = np.flatnonzero(short)
    edge = runs(graph.start[b_of[variant]], degree[variant])
    right = np.repeat(variant, degree[variant])
    target_keys = graph.end[edge].astype(np.int64) * labels + p_of[right]
    left = np.minimum(np.searchsorted(key, target_keys), len(key) - 1)
    hit = key[left] == target_keys
    hits = [(left[hit], right[hit], edge[hit])]

    # b * U + u of every edge ascends, too
    edge_key = graph.box.astype(np.int64) * graph.originals.size + graph.end
    for rows, order, first in ((~blank & ~short, by_rest, starts), (blank, np.arange(len(key)), None)):
        variant = np.flatnonzero(rows)
        if not len(variant) or not graph.edges:
            continue
        begin = np.zeros(len(variant), np.int64) if first is None else first[p_of[variant]]
        left = order[runs(begin, peers[variant])]
        right = np.repeat(variant, peers[variant])
        target_keys = b_of[right] * graph.originals.size + u_of[left]
        edge = np.minimum(np.searchsorted(edge_key, target_keys), len(edge_key) - 1)
        hit = edge_key[edge] == target_keys
        hits.append((left[hit], right[hit], edge[hit]))
    lefts, rights, edges = (np.concatenate(part) for part in zip(*hits, strict=True))
    return lefts, rights, edges


def _covers_listed(evidence: Evidence, listing: Candidates) -> tuple[np.ndarray, str]:
    """Return rows that do not cover the originals that they list, or for which no own original is left among these."""
    claim = "each row against the originals that its certificate lists"
    bad, sizes = listing.strangers(evidence.n), listing.sizes
    if bad.any():
        return np.flatnonzero(bad | (sizes == 0)), claim
    bad = evidence.uncovered | (sizes == 0)
    claim += ", and a perfect matching along them"
    degree = sizes[0]
    if evidence.rest is None and (sizes == degree).all() and (evidence.listed == degree).all():
        return np.flatnonzero(bad), claim  # a regular bipartite graph has a perfect matching
    if not bad.any() and (_is_matching(evidence, listing) or _are_classes(evidence, listing)):
        return np.flatnonzero(bad), claim
    starts, left = _fitting(evidence, listing, bad)
    if not matched_all(starts, left, evidence.n):
        ones = np.ones(evidence.n, np.int64)
        right = np.repeat(np.arange(evidence.rows), np.diff(starts))
        bad |= unmet(ones, ones, left, right) > 0
    return np.flatnonzero(bad), claim


def _fitting(evidence: Evidence, listing: Candidates, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the originals that each row lists and whose other columns it may have; a bad row takes none from the others.

    Returns
    -------
    starts : numpy.ndarray, shape (rows + 1,), int64
    original : numpy.ndarray, integer
        Row r has ``original[starts[r] : starts[r + 1]]``.
    """
    rest = evidence.rest
    if rest is None and not bad.any():
        return np.append(0, np.cumsum(listing.sizes)), listing.pairs()[1]
    counts, parts = np.zeros(evidence.rows, np.int64), []
    for start in range(0, evidence.rows, _ROWS):
        row, original = listing.pairs(start, start + _ROWS)
        fit = ~bad[row]
        if rest is not None:
            fit &= (rest[0][original] == rest[1][row]) | evidence.exempt[row]
        part = counts[start : start + _ROWS]
        part[:] = np.bincount(row[fit] - start, minlength=len(part))
        parts.append(original[fit])
    return np.append(0, np.cumsum(counts)), np.concatenate(parts)


def _is_matching(evidence: Evidence, listing: Candidates) -> bool:
    """Return whether the drawn originals, where they are said, are a perfect matching along the lists: then none is searched."""
    truth, n = np.asarray(evidence.truth), evidence.n
    if truth.dtype.kind not in "iu" or truth.shape != (n,) or evidence.rows != n:
        return False
    if truth.min(initial=0) < 0 or truth.max(initial=0) >= n:
        return False
    drawn = np.zeros(n, bool)
    drawn[truth] = True
    if not drawn.all():
        return False
    fit = listing.any(lambda row, original: original == truth[row])
    if evidence.rest is not None:
        fit &= (evidence.rest[0][truth] == evidence.rest[1]) | evidence.exempt
    return bool(fit.all())


def _are_classes(evidence: Evidence, listing: Candidates) -> bool:
    """Return whether the lists divide the originals, and each has the other columns of its rows: then all of these match each other."""
    n, lists = evidence.n, np.diff(listing.offsets)
    if len(listing.originals) != n or (np.bincount(listing.originals, minlength=n) != 1).any():
        return False
    list_of = np.empty(n, np.int64)
    list_of[listing.originals] = np.repeat(np.arange(len(lists)), lists)
    of_originals, of_rows = evidence.rest or (np.zeros(n, np.int64), np.zeros(evidence.rows, np.int64))
    labels = int(max(of_originals.max(initial=0), of_rows.max(initial=0))) + 1
    return np.array_equal(
        np.sort(list_of * labels + of_originals),
        np.sort(listing.row_list.astype(np.int64) * labels + of_rows),
    )


def perfect_flow(evidence: Evidence) -> np.ndarray | None:
    """Return a perfect matching along the consistency graph: how often each edge is used, or None.

    Returns
    -------
    numpy.ndarray, shape (E,), int64, or None

    Raises
    ------
    ParameterError, DataError
        As :func:`covers`.
    """
    graph: Bipartite = evidence.graph
    if evidence.own and evidence.own_covers.all():
        edge_key = graph.box.astype(np.int64) * graph.originals.size + graph.end
        edge_of_row = graph.published.label * graph.originals.size + graph.originals.label
        return np.bincount(np.searchsorted(edge_key, edge_of_row), minlength=graph.edges).astype(np.int64)
    flow = largest_flow(graph.originals.count, graph.published.count, graph.end, graph.box)
    return flow.edge if flow.value == evidence.n else None


COVERS = Criterion(
    name="covers",
    check=covers,
    sentence="Every generalized record covers its own original.",
    needs="originals",
)
