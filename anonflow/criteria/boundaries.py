"""Limits to generalization: boundaries, widths, and patterns of suppression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.matching.covers import unmatched
from anonflow.criteria.matching.max_flow import unmet
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.option import Option
from anonflow.table import Domain, Records
from anonflow.table.level_cells import RunsAtLevel, cells_at

_HIDDEN = frozenset("*1☆")
_SHOWN = frozenset("0-_.□")


def boundary(evidence: Evidence) -> Finding:
    """Return whether no value is generalized beyond its boundary, and no row beyond its limits.

    Of an anonymization, row i is compared with original i: a violation is one cell (Miller 2008, Definition 5).
    Of a release, a perfect matching must exist along edges that break no boundary and whose other columns
    are equal; with a certificate, along edges that it lists. ``max-width`` and ``max-set`` are limits of the
    rows themselves. Suppressed rows, ``*`` throughout, break nothing (Miller 2008, section 4).

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.criteria.matching.covers.covers`.
    """
    domains = evidence.records.domains
    bounded = [domain.name for domain in domains if domain.bound is not None]
    limited = [domain.name for domain in domains if domain.limit is not None]
    if not bounded and not limited:
        return Finding.of("boundary", np.empty(0, np.int64), "", "the schema sets no boundary")
    over = _over_limit(evidence.records.domains, evidence.published, evidence.suppressed)
    counts = {domain.name: int(over[a].sum()) for a, domain in enumerate(domains) if over[a].any()}
    failing: np.ndarray = np.asarray(over.any(axis=0))
    how = "each row's width and number of values"
    if bounded and evidence.own:
        every = np.arange(evidence.n)
        beyond = _beyond(evidence.records, evidence.published, every, every, evidence.suppressed)
        for a, domain in enumerate(domains):
            if beyond[a].any():
                counts[domain.name] = counts.get(domain.name, 0) + int(beyond[a].sum())
        failing |= beyond.any(axis=0)
        how = "each cell against its own original's boundary"
    elif bounded:
        failing[_unmatched(evidence)] = True
        how = "a perfect matching along edges within the boundaries"
    counted = ", ".join(f"{name} {count}" for name, count in counts.items())
    detail = how + (f"; cells beyond: {counted}" if counted else "")
    return Finding.of("boundary", failing, "published", detail)


def beyond_cells(
    records: Records, published: Generalization, suppressed: np.ndarray | None = None
) -> np.ndarray:
    """Return which cells break a boundary or a limit, shape (q, n), bool.

    Parameters
    ----------
    records : Records
        n originals; their domains say what is allowed.
    published : Generalization
        n generalized records; row i is original i's. A method that ran without boundaries has other domains of the same values.
    suppressed : numpy.ndarray, shape (n,), bool, optional
        Suppressed records; those that cover everything without it.

    Notes
    -----
    Miller 2008, Definition 5. Suppressed records break nothing; nor does the ``*`` of a record without a number
    break a boundary, as nothing else covers it. O(n q).
    """
    hidden = published.suppressed_rows() if suppressed is None else suppressed
    every = np.arange(records.n)
    return _over_limit(records.domains, published, hidden) | _beyond(records, published, every, every, hidden)


def _over_limit(domains: Sequence[Domain], published: Generalization, suppressed: np.ndarray) -> np.ndarray:
    """Return cells wider than ``max-width`` or with more values than ``max-set``, shape (q, n), bool."""
    layout, counts = published.layout, published.counts()
    over = np.zeros((len(domains), published.n), bool)
    for t, a in enumerate(layout.ranges):
        domain = domains[a]
        if domain.limit is not None:
            lo, hi = published.lo[t], published.hi[t]
            sound = lo <= hi
            points = domain.exact_points
            over[a, sound] = points[hi[sound]] - points[lo[sound]] > domain.limit
    for t, a in enumerate(layout.sets):
        limit = domains[a].limit
        if limit is not None:
            over[a] = counts[t] > limit
    over[:, suppressed] = False
    return over


def _beyond(
    records: Records, published: Generalization, original: np.ndarray, row: np.ndarray, suppressed: np.ndarray
) -> np.ndarray:
    """Return, for pairs of an original and a row, the cells beyond the original's boundary; (q, E), bool."""
    beyond = np.zeros((len(records.domains), len(row)), bool)
    for t, a in enumerate(published.layout.ranges):
        bound = records.domains[a].bound
        if bound is not None:
            code = records.codes[original, a]
            allowed = bound[code]  # code -1, no value, is exempt
            outside = (published.lo[t, row] < allowed[:, 0]) | (published.hi[t, row] > allowed[:, 1])
            beyond[a] = outside & (code >= 0)
    beyond[:, suppressed[row]] = False
    return beyond


def _unmatched(evidence: Evidence) -> np.ndarray:
    """Return published rows without an original in a largest matching within the boundaries."""
    if evidence.certified and evidence.listing is not None:
        listing = evidence.listing
        bad = listing.strangers(evidence.n) | (listing.sizes == 0)
        if bad.any():
            return np.flatnonzero(bad)
        right, original = listing.pairs()
        left = original.astype(np.int64)
        bad = evidence.uncovered
        fit = (
            ~_beyond(evidence.records, evidence.published, left, right, evidence.suppressed).any(axis=0)
            & ~bad[right]
        )
        if evidence.rest is not None:
            fit &= (evidence.rest[0][left] == evidence.rest[1][right]) | evidence.exempt[right]
        ones = np.ones(evidence.n, np.int64)
        return np.flatnonzero(unmet(ones, ones, left[fit], right[fit]))
    graph = evidence.graph
    original, row = graph.originals.first[graph.end], graph.published.first[graph.box]
    within: np.ndarray = ~np.asarray(
        _beyond(evidence.records, evidence.published, original, row, evidence.suppressed).any(axis=0)
    )
    return unmatched(evidence, within)


def read_patterns(patterns: Any, domains: Sequence[Domain]) -> np.ndarray | None:
    """Return patterns of suppression as a matrix.

    Parameters
    ----------
    patterns : None, "all", or iterable
        Each pattern is a text with a mark for each QI in schema order (``*``, ``1`` or ``☆`` suppressed;
        ``-``, ``_``, ``.``, ``0`` or ``□`` kept), q truth values, or the names of the suppressed columns.
    domains : tuple of Domain

    Returns
    -------
    numpy.ndarray, shape (p, q), bool, or None
        None where every pattern is allowed.

    Raises
    ------
    ParameterError
        If a pattern has another form (the error names its number in the list).
    """
    if patterns is None or (isinstance(patterns, str) and patterns == "all"):
        return None
    if isinstance(patterns, str) or not isinstance(patterns, Iterable):
        raise ParameterError("patterns are 'all' or a list of patterns, such as ['-*-', '**-']")
    q = len(domains)
    columns = list(dict.fromkeys(domain.column for domain in domains))
    spread = np.array([columns.index(domain.column) for domain in domains])
    rows = []
    for at, entry in enumerate(patterns):
        marks: list[bool] | None = None
        if isinstance(entry, str) and set(entry) <= _HIDDEN | _SHOWN:
            marks = [mark in _HIDDEN for mark in entry]
        elif not isinstance(entry, str) and isinstance(entry, Iterable):
            members = list(entry)
            if all(isinstance(member, str) for member in members):
                column_names = {*columns, *(domain.name for domain in domains)}
                if set(members) <= column_names:
                    marks = [domain.column in members or domain.name in members for domain in domains]
            elif all(member in (0, 1) for member in members):
                marks = [bool(member) for member in members]
        if marks is None or len(marks) not in (q, len(columns)):
            raise ParameterError(
                f"pattern {at + 1} is no pattern of {q} quasi-identifiers; write a mark for each, "
                "* suppressed and - kept, or name the suppressed columns"
            )
        rows.append(np.array(marks, bool) if len(marks) == q else np.array(marks, bool)[spread])
    return np.array(rows, bool).reshape(len(rows), q)


def _meets(
    stars: np.ndarray,
    predicates: Mapping[Any, Any],
    domains: Sequence[Domain],
    either: np.ndarray,
    loose: np.ndarray,
) -> np.ndarray:
    """Return whether rows of suppression marks (n, q) meet predicates.

    QIs of one value, and the marks of `loose` (n, q), are ignored.
    """
    sure = stars & ~loose

    def at(names: Any) -> list[int]:
        qi_names = [names] if isinstance(names, str) else list(names)
        for name in qi_names:
            if not any(name in (domain.name, domain.column) for domain in domains):
                raise ParameterError(f"patterns name {name!r}, which is not a quasi-identifier")
        return [
            a for a, d in enumerate(domains) if (d.name in qi_names or d.column in qi_names) and not either[a]
        ]

    def groups(value: Any) -> list[list[str]]:
        return (
            [list(value)]
            if all(isinstance(group, str) for group in value)
            else [list(group) for group in value]
        )

    good = np.ones(len(stars), bool)
    for key, value in predicates.items():
        match str(key).replace("_", "-"):
            case "at-most":
                good &= sure.sum(axis=1) <= value
            case "never":
                good &= ~sure[:, at(value)].any(axis=1)
            case "together":
                for group in groups(value):
                    good &= stars[:, at(group)].all(axis=1) | ~sure[:, at(group)].any(axis=1)
            case "at-most-one-of":
                for group in groups(value):
                    good &= sum(sure[:, at(name)].any(axis=1).astype(np.int64) for name in group) <= 1
            case "fallback":
                continue
            case other:
                raise ParameterError(f"patterns have no predicate {other!r}")
    if predicates.get("fallback") == "all":
        good |= stars[:, ~either].all(axis=1)
    return good


LEVELS = "levels"
"""The key of patterns that say at which level each column is published."""


def _at_levels(evidence: Evidence, named: Any) -> np.ndarray:
    """Return whether rows are published at levels that a pattern names, shape (n,), bool; other columns show values.

    Parameters
    ----------
    evidence : Evidence
    named : mapping
        Column -> level, or levels.

    Raises
    ------
    ParameterError
        If it is not such a mapping, or names an unknown quasi-identifier or level.
    """
    published = evidence.published
    domains, layout = published.domains, published.layout
    columns = dict.fromkeys(domain.column for domain in domains)
    texts = isinstance(named, Mapping) and all(
        isinstance(levels, str) or all(isinstance(level, str) for level in levels)
        for levels in named.values()
        if isinstance(levels, str | Sequence)
    )
    if (
        not isinstance(named, Mapping)
        or not texts
        or not all(isinstance(v, str | Sequence) for v in named.values())
    ):
        raise ParameterError(
            'patterns have levels of another form; write {levels: {column: "level 1"}} or {levels: {column: [values, "*"]}}'
        )
    for column in named:
        if column not in columns:
            raise ParameterError(f"patterns name {str(column)[:40]!r}, which is no quasi-identifier")
    whole, single, loose = published.whole(), _single(evidence), _without_number(evidence)
    row_of = layout.row_of_range
    fits = np.ones(published.n, bool)
    for column in columns:
        qis = [a for a, domain in enumerate(domains) if domain.column == column]
        levels = named.get(column, "values")
        of_column = np.zeros(published.n, bool)
        for level in [levels] if isinstance(levels, str) else levels:
            at_level = np.ones(published.n, bool)
            for a, cells in zip(qis, cells_at([domains[a] for a in qis], level), strict=True):
                if isinstance(cells, RunsAtLevel):
                    # intervals end at values of records that do not hide them
                    narrowed = cells.narrowed(_ends(published, a)) if domains[a].kind == "numeric" else cells
                    at_level &= narrowed.hold(published.lo[row_of[a]], published.hi[row_of[a]])
                    widest = ((cells.lo[:-1] == 0) & (cells.hi[:-1] == domains[a].size - 1)).any()
                    at_level &= ~whole[a] | loose[a] | widest
                else:
                    at_level &= single[a] if cells.share == 0 else whole[a]
            of_column |= at_level
        fits &= of_column
    return fits


def _ends(published: Generalization, a: int) -> np.ndarray:
    """Return the codes at which ranges of a QI end that are not ``*``, ascending."""
    t = published.layout.row_of_range[a]
    lo, hi = published.lo[t], published.hi[t]
    visible = ~published.hidden()[a] & (lo <= hi)
    return np.unique([lo[visible], hi[visible]])


def _without_number(evidence: Evidence) -> np.ndarray:
    """Return which cells may be ``*`` because a record has no number, which only ``*`` covers; shape (q, n), bool."""
    loose = np.zeros((len(evidence.published.domains), evidence.n), bool)
    for a, domain in enumerate(evidence.published.domains):
        if domain.has_missing:
            loose[a] = evidence.records.codes[:, a] < 0 if evidence.own else True
    return loose


def _single(evidence: Evidence) -> np.ndarray:
    """Return which cells are a value as it is, shape (q, n), bool."""
    published, loose = evidence.published, _without_number(evidence)
    layout = published.layout
    single = np.zeros((len(published.domains), published.n), bool)
    for t, a in enumerate(layout.ranges):
        domain, lo, hi = published.domains[a], published.lo[t], published.hi[t]
        empty = lo > hi
        if domain.floor is not None:
            at = np.where(empty | (lo >= domain.size), 0, lo)
            single[a] = (domain.floor[at, 0] == lo) & (domain.floor[at, 1] == hi)
        single[a] |= (lo == hi) | (empty & domain.has_codes)
        if domain.has_missing:
            single[a] |= (lo == 0) & (hi == domain.size - 1) & loose[a]
    counts = published.counts()
    for t, a in enumerate(layout.sets):
        single[a] = counts[t] == 1
    return single


def pattern(
    evidence: Evidence,
    *,
    patterns: Annotated[Any, Option("Patterns")] = None,
    fallback: Annotated[Literal["none", "all", "strict"] | None, Option("Rows that no pattern fits")] = None,
) -> Finding:
    """Return whether every cell is a value or ``*``, and the ``*`` of every row are one of the patterns.

    Where patterns say at which level columns are published, a row may have its cells at these levels instead.
    Rows that are ``*`` throughout are suppressed ones. They follow a pattern where one hides everything and
    they are at least k. Others are counted; they fail only where `fallback` is ``strict``: then every row has
    to follow a pattern. On a QI of one value either mark fits (Bredereck 2013, Definition 2), and on a numeric one where a
    record has no number: ``*`` is all that covers it. In a release these rows are unknown: any ``*`` of such a column
    may be one.

    Parameters
    ----------
    evidence : Evidence
    patterns : "all", mapping or sequence, optional
        The patterns, as the method takes them; by default those of the method's call.
    fallback : {"none", "all", "strict"}, optional
        The treatment of rows that no pattern can take, unless predicates say it.

        ``all``: the pattern that hides everything is allowed, too.

    Raises
    ------
    ParameterError
        If the patterns or `fallback` cannot be read, the patterns name two fallbacks, or k is not known where it is needed.
    """
    # a number and the code beside it are one cell
    columns = [a for a, domain in enumerate(evidence.published.domains) if domain.kind != "codes"]
    domains = [evidence.published.domains[a] for a in columns]
    if fallback is None and patterns is None:
        fallback = evidence.fallback
    entries = patterns if patterns is not None else evidence.patterns
    predicates: list[Mapping[Any, Any]] = []
    if isinstance(entries, Mapping):
        predicates, entries = [entries], []
    elif isinstance(entries, Sequence) and any(isinstance(entry, Mapping) for entry in entries):
        predicates = [entry for entry in entries if isinstance(entry, Mapping)]
        entries = [entry for entry in entries if not isinstance(entry, Mapping)]
    allowed = read_patterns(entries, domains)
    by_patterns = {str(entry["fallback"]) for entry in predicates if "fallback" in entry}
    named = {fallback, *by_patterns} - {None}
    levelled = [entry for entry in predicates if LEVELS in entry]
    predicates = [entry for entry in predicates if LEVELS not in entry]
    if named - {"none", "all", "strict"}:
        raise ParameterError("fallback is 'strict', 'all' or 'none'")
    if len(by_patterns) > 1:
        raise ParameterError(
            f"patterns name fallback {' and '.join(map(repr, sorted(by_patterns)))}; name one"
        )
    if "all" in named and allowed is not None:
        allowed = np.concatenate([allowed, np.ones((1, len(domains)), bool)])
    whole, single = evidence.published.whole(), _single(evidence)
    for a, domain in enumerate(evidence.published.domains):
        if domain.has_codes:
            whole[a] &= whole[a + 1]
            single[a] &= single[a + 1]
    whole, single, without_number = whole[columns], single[columns], _without_number(evidence)[columns]
    at_levels = np.zeros(evidence.n, bool)
    for entry in levelled:
        at_levels |= _at_levels(evidence, entry[LEVELS])
    failing = ~(whole | single).all(axis=0) & ~at_levels
    partial = int(failing.sum())
    strange = 0
    blank = evidence.suppressed
    unlisted = np.zeros(evidence.n, bool)
    if allowed is not None:
        either = np.array([domain.size == 1 for domain in domains])
        stars = (whole & ~either[:, None]).T
        loose = stars & without_number.T
        both = np.unique(np.concatenate([allowed & ~either, stars]), axis=0, return_inverse=True)[1].ravel()
        other = ~np.isin(both[len(allowed) :], both[: len(allowed)])
        unsure = np.flatnonzero(other & loose.any(axis=1))
        kinds, kind = np.unique(np.hstack([stars, loose])[unsure], axis=0, return_inverse=True)
        marks, free = np.hsplit(kinds, 2)
        fits = [
            bool((((allowed & ~either) == marks[at]) | free[at]).all(axis=1).any())
            for at in range(len(kinds))
        ]
        other[unsure] = ~np.array(fits, bool)[kind.ravel()]
        for predicate in predicates:
            try:
                other &= ~_meets(stars, predicate, domains, either, loose)
            except TypeError:
                raise ParameterError(
                    "patterns have a predicate of another form; write {at-most: 2}, {never: [column]}, "
                    "{together: [column, column]} or {at-most-one-of: [column, column]}"
                ) from None
        other &= ~at_levels
        unlisted = blank & other
        other &= ~blank
        strange = int((other & ~failing).sum())
        failing |= other
    strict = "strict" in named
    if blank.any() and (strict or evidence.k is not None) and blank.sum() < evidence.need_k("pattern"):
        unlisted = blank
    parts = [
        "every cell is a value or *"
        if not levelled
        else "every cell is a value, * or of a level that a pattern names"
    ]
    if partial:
        parts.append(f"{plural(partial, 'row', 'have')} other generalizations")
    if strange:
        parts.append(f"{plural(strange, 'row', 'are')} suppressed in none of the patterns")
    if unlisted.any():
        rows = int(unlisted.sum())
        parts.append(f"{plural(rows, 'row', 'are')} hidden whole and {verb_of(rows, 'follow')} no pattern")
        if strict:
            failing |= unlisted
    return Finding.of("pattern", failing, "published", "; ".join(parts))


BOUNDARY = Criterion(
    name="boundary",
    check=boundary,
    sentence="No value is generalized beyond its boundary, and no row beyond its limits.",
    adds_up=False,
    also={"constrained-k-anonymity": {}},
)

PATTERN = Criterion(
    name="pattern",
    check=pattern,
    sentence="Every cell is a value or *, or at a level that a pattern names, and every row follows one of the patterns.",
    adds_up=False,
    of_method=True,
)
