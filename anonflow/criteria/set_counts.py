"""Sets of columns that attackers may know, each by itself: equal rows, or rows and people that are compatible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Annotated, Any, Literal

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.guarantee import sets_of_text
from anonflow.criteria.matching.concealment import match_edges
from anonflow.criteria.matching.graph import consistency_graph
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.option import Option
from anonflow.table import Records, equal_columns
from anonflow.table.row_marks import coded_texts
from anonflow.table.schema import did_you_mean

MOST_SETS = 5_000
"""The most sets of columns."""


def set_problems(sets: Any, of: Any, names: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the option and the problem of sets of columns that cannot be used.

    Parameters
    ----------
    sets : object
        A list of lists of columns; None where `of` says it.
    of : int or None
        All sets of so many columns.
    names : sequence of str or None
        The columns that there are; None where they are not known.
    """
    if sets is None:
        if names is None or of is None:
            return []
        if of > len(names):
            return [("of", f"of is {of}, and there are {len(names)} quasi-identifiers")]
        if comb(len(names), of) > MOST_SETS:
            return [("of", f"takes at most {MOST_SETS:,} sets; lower of, or name the sets")]
        return []
    if of is not None:
        return [("of", "take either sets or of, not both")]
    lists = isinstance(sets, list | tuple) and bool(sets)
    if not lists or not all(isinstance(columns, list | tuple) and columns for columns in sets):
        return [("sets", "sets is a list of lists of columns, such as [[age, sex], [zip]]")]
    problems = [] if len(sets) <= MOST_SETS else [f"takes at most {MOST_SETS:,} sets"]
    seen: set[frozenset[str]] = set()
    for columns in sets:
        words, columns = ", ".join(map(str, columns))[:80], list(map(str, columns))
        if len(set(columns)) < len(columns):
            problems.append(f"the set {words} has a column twice")
        if frozenset(columns) in seen:
            problems.append(f"the set {words} occurs twice")
        seen.add(frozenset(columns))
        for name in columns:
            if names is not None and name not in names:
                hint = did_you_mean(name, tuple(names))
                problems.append(f"{name[:40]!r} in a set is no quasi-identifier{hint}")
    return [("sets", problem) for problem in problems]


def named_sets(sets: Any, of: int | None, names: Sequence[str]) -> list[list[str]]:
    """Return the sets of columns: those that are named, also as a guarantee has them, or all of so many columns; two where nothing is said."""
    if isinstance(sets, str):
        return sets_of_text(sets)
    if sets is not None:
        return [[str(name) for name in columns] for columns in sets]
    return [list(columns) for columns in combinations(names, min(2, len(names)) if of is None else of)]


def on_columns(
    records: Records, rows: Generalization, columns: Sequence[str]
) -> tuple[Records, Generalization]:
    """Return the same people and rows on some columns alone."""
    layout = rows.layout
    at = [a for a, domain in enumerate(records.domains) if domain.column in columns]
    ranges = [layout.row_of_range[a] for a in at if a in layout.row_of_range]
    words = [word for a in at if a in layout.words for word in range(len(rows.bits))[layout.words[a]]]
    domains = tuple(records.domains[a] for a in at)
    people = Records(domains, np.ascontiguousarray(records.codes[:, at]))
    return people, Generalization(domains, rows.lo[ranges], rows.hi[ranges], rows.bits[words])


def key_sets(
    evidence: Evidence,
    *,
    sets: Annotated[Any, Option("Sets of columns that others may know, each by itself")] = None,
    of: Annotated[int | None, Option("Or all sets of so many columns", least=1, most=64)] = None,
    hidden: Annotated[Literal["value", "any"], Option("What * stands for")] = "value",
    rows: Annotated[Literal["compatible", "matches"], Option("Rows that may be a person's")] = "compatible",
) -> list[Finding]:
    """Check k on each of several sets of columns that attackers may know; return a finding for each set.

    Parameters
    ----------
    evidence : Evidence
    sets : list of lists of str, optional
        Published columns, quasi-identifiers or not; with ``any`` quasi-identifiers. Or a text such as ``[age+sex|zip]``.
    of : int, optional
        Instead of `sets`: all sets of so many quasi-identifiers; 2 where both are left out.
    hidden : {"value", "any"}, optional
        ``value``: ``*`` is a value like others, and at least k rows read the same on each set. ``any``: ``*`` stands for any value.
        On each set every person is compatible with at least k rows, and every row with at least k people.
    rows : {"compatible", "matches"}, optional
        Of ``any``. ``matches``: only rows and people count that are matched in a complete matching on the set; whoever knows everybody
        there excludes the others.

    Raises
    ------
    ParameterError
        If k is not known, or the sets are not lists of published columns.
    DataError
        If the consistency graph of a set is too large.

    Notes
    -----
    ``any`` is (k,k) on each set (Tassa 2012, Definition 4), and so needs the original. Rows that agree with each other are not
    enough: of a rare value that is shown beside hidden ones, the only row is still that of the only person who has it.
    """
    k = evidence.need_k("key-sets")
    if isinstance(sets, str) and sets.startswith("["):
        sets = sets_of_text(sets)
    if isinstance(sets, list | tuple) and all(isinstance(columns, list | tuple) for columns in sets):
        sets = list(dict.fromkeys(tuple(dict.fromkeys(map(str, columns))) for columns in sets))
    frame = evidence.frame if evidence.frame is not None else evidence.published.decode()
    columns = evidence.table.qi_columns
    for name, problem in set_problems(sets, of, columns if sets is None or hidden == "any" else None):
        raise ParameterError(f"criterion 'key-sets': {problem}", subject=name)
    chosen = named_sets(sets, of, columns)
    for name in (name for columns in chosen for name in columns):
        if name not in frame.columns:
            raise ParameterError(f"criterion 'key-sets': {name[:40]!r} is not a published column")
    if hidden == "any":
        return [_compatible(evidence, columns, k, rows) for columns in chosen]
    return [_equal(evidence, frame, columns, k) for columns in chosen]


def _equal(evidence: Evidence, frame: Any, columns: Sequence[str], k: int) -> Finding:
    """Return whether every row is one of k that read the same on a set."""
    labels = equal_columns([coded_texts(frame[name], {}, False) for name in columns], len(frame))
    sizes = np.bincount(labels)[labels]
    failing = (sizes < k) & ~evidence.exempt
    smallest = int(sizes.min(initial=len(frame)))
    words = f"{', '.join(columns)}: the smallest class has {plural(smallest, 'row')}"
    return Finding.of("key-sets", failing, "published", words, {"k": k, "sets": ", ".join(columns)})


def _compatible(evidence: Evidence, columns: Sequence[str], k: int, rows: str) -> Finding:
    """Return whether every person has k rows on a set, and every row k people."""
    parameters = {"k": k, "sets": ", ".join(columns), "hidden": "any", "rows": rows}
    people_there, rows_there = on_columns(evidence.records, evidence.published, columns)
    if rows == "matches":
        part = replace(evidence, records=people_there, published=rows_there)
        edges = match_edges(part)
        if edges is None:
            words = f"{', '.join(columns)}: there is no complete matching"
            return Finding.of("key-sets", np.arange(evidence.n), "original", words, parameters)
        graph, match = part.graph.only(edges), "matched with"
    else:
        graph, match = consistency_graph(people_there, rows_there), "compatible with"
    of_person, of_row = graph.degrees()
    words = (
        f"{', '.join(columns)}: every person is {match} at least {plural(int(of_person.min(initial=evidence.n)), 'row')}, "
        f"every row with at least {plural(int(of_row.min(initial=evidence.n)), 'person')}"
    )
    people = graph.originals.positions(np.flatnonzero(of_person < k))
    allowed = int(evidence.exempt.sum())
    if len(people) and allowed:
        words += f"; {plural(allowed, 'suppressed record', 'need')} none"
        people = (
            people[~evidence.exempt[people]]
            if evidence.own
            # a release does not say who is suppressed: as many people may have too few rows
            else people[: len(people) * (len(people) > allowed)]
        )
    if len(people):
        return Finding.of("key-sets", people, "original", words, parameters)
    failing = np.zeros(evidence.rows, bool)
    failing[graph.published.positions(np.flatnonzero(of_row < k))] = True
    return Finding.of("key-sets", failing & ~evidence.exempt, "published", words, parameters)


def _needs(parameters: Mapping[str, Any]) -> Literal["rows", "everybody"]:
    return "everybody" if parameters.get("hidden") == "any" else "rows"


KEY_SETS = Criterion(
    name="key-sets",
    check=key_sets,
    sentence="On each of several sets of columns, every published row is one of at least k rows that read the same; or, with "
    "hidden: any, every person is compatible with at least k rows and every row with at least k people.",
    promise="On each of the named sets of columns, every person is compatible with at least k published rows, and every row with "
    "at least k people, also where whoever knows everybody there excludes what lies on no complete matching; a hidden cell is "
    "compatible with every value.",
    warning="Whoever knows more columns of a person than a set has may find fewer than k rows, or one: each row shows the other columns "
    "of its own person. A cell is hidden because its value is rare, so the k rows are not equally likely.",
    adds_up=False,
    needs="rows",
    needs_with=_needs,
    of_covers=True,
    of_sets=True,
)
