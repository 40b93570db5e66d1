"""The verifier's input: originals, published rows, and what is known about their relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.matching.claim import uncovered
from anonflow.criteria.matching.graph import Bipartite, consistency_graph
from anonflow.errors import DataError, ParameterError
from anonflow.generalization import Generalization
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.table import Column, Records, Schema, Table, equal_columns
from anonflow.table.arrow import pandas_frame
from anonflow.table.published.notation import HIDDEN, Notation, hidden_rows, readers_of
from anonflow.table.published.published_cells import rows_of_stars
from anonflow.table.published.release_forms import plain_release
from anonflow.table.row_marks import coded_texts, joint_codes
from anonflow.table.schema import UNPUBLISHED


@dataclass(frozen=True, eq=False)
class Subject:
    """What is verified, attacked or measured: an anonymization or a release, with the data that it has.

    Attributes
    ----------
    rows : int
        Number of generalized records.
    generalization : Generalization or None
        Of an anonymization: row i is the generalized record of original i.
    frame : pandas.DataFrame or None
        Of a release: published text, in random order; as categories where it is on disk.
    suppressed : numpy.ndarray, shape (n,), bool, or None
    listing : Candidates or None
        The matches of an anonymization.
    k : int or None
    guarantee : str or None
    classes : numpy.ndarray, shape (n,), int64, or None
        The equivalence classes of an anonymization, where its method makes them.
    partitions : sequence of numpy.ndarray, int64, or None
        Positions of each partition's records, of an anonymization.
    patterns : object
        The patterns of a pattern-guided method.
    fallback : object
        Likewise, for rows that no pattern can take.
    certificate : Certificate or None
        The owner's certificate, which a release in memory has.
    truth : numpy.ndarray, shape (rows,), integer, or None
        The original whose other columns each row has, as a release in memory says: a claim that is checked.
    arrays : Arrays
        Where arrays of its size are made.
    """

    rows: int
    generalization: Generalization | None
    frame: pd.DataFrame | None
    suppressed: np.ndarray | None = None
    listing: Candidates | None = None
    k: int | None = None
    guarantee: str | None = None
    classes: np.ndarray | None = None
    partitions: Sequence[np.ndarray] | None = None
    patterns: Any = None
    fallback: Any = None
    certificate: Any = None
    truth: np.ndarray | None = None
    arrays: Arrays = IN_MEMORY

    def published_rows(self) -> pd.DataFrame:
        """Return the published rows.

        Raises
        ------
        ParameterError
            If it is an anonymization: that has its original.
        """
        if self.frame is None:
            raise ParameterError(
                "an anonymization has its original: verify it against its table, or draw it first"
            )
        return self.frame


def given_patterns(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments ``patterns`` and ``fallback`` of a method's call.

    Parameters
    ----------
    parameters : mapping
        Of an anonymization; the method's own may be under ``options``.
    """
    options = parameters.get("options") or {}
    settings = {name: parameters.get(name) or options.get(name) for name in ("patterns", "fallback")}
    return {name: value for name, value in settings.items() if value is not None}


def subject_of(subject: Any, table: Table | Schema | None = None) -> Subject:
    """Tell what kind of thing is to be verified.

    Parameters
    ----------
    subject : Anonymization, Release, Subject, pandas.DataFrame or path
        Anything with a ``generalization``, or with a ``frame`` that is a DataFrame, will do.
    table : Table or Schema, optional
        Whose schema says how a file without a description is written. Rows of a file are where its arrays are.

    Raises
    ------
    ParameterError
        If it is none of them.
    DataError
        If a file cannot be read.
    """
    if isinstance(subject, Subject):
        return subject
    arrays = table.arrays if isinstance(table, Table) else IN_MEMORY
    if isinstance(subject, str | PathLike):
        subject = plain_release(subject, table.schema if isinstance(table, Table) else table, arrays=arrays)
    described = subject_in_memory(subject, arrays)
    if described is None:
        raise ParameterError(
            f"cannot verify a {type(subject).__name__}; give an anonymization, a release, its frame or its file"
        )
    return described


def subject_in_memory(subject: Any, arrays: Arrays = IN_MEMORY) -> Subject | None:
    """Return an anonymization, the outcome of a method, a release or its frame as a subject; None for anything else.

    Parameters
    ----------
    subject : object
    arrays : Arrays, optional
        Where arrays of the size of a frame are made.
    """
    frame = pandas_frame(subject)
    if isinstance(frame, pd.DataFrame):
        return Subject(len(frame), None, frame, arrays=arrays)
    certificate = getattr(subject, "certificate", None)
    k = getattr(subject, "k", None) or getattr(certificate, "k", None)
    guarantee = getattr(subject, "guarantee", None) or getattr(certificate, "criterion", None)
    generalization = getattr(subject, "generalization", None)
    if isinstance(generalization, Generalization):
        matches = getattr(subject, "matches", None)
        return Subject(
            generalization.n,
            generalization,
            None,
            getattr(subject, "suppressed", None),
            None if matches is None else Candidates.of_claim(matches, generalization.n),
            k,
            guarantee,
            getattr(subject, "classes", None),
            getattr(subject, "partitions", None),
            **given_patterns(getattr(subject, "parameters", None) or {}),
        )
    frame = getattr(subject, "frame", None)
    if not isinstance(frame, pd.DataFrame):
        return None
    return Subject(
        len(frame),
        None,
        frame,
        k=k,
        guarantee=guarantee,
        certificate=certificate,
        truth=getattr(subject, "truth", None),
        arrays=getattr(subject, "arrays", IN_MEMORY),
    )


@dataclass(frozen=True, eq=False)
class Evidence:
    """Originals and published rows over the same domains.

    Attributes
    ----------
    table : Table
    records : Records
        n originals.
    published : Generalization
        n published rows.
    own : bool
        Whether published row i is known to be the row of original i.
    frame : pandas.DataFrame or None
        The published table.
    suppressed : numpy.ndarray, shape (n,), bool
        Published rows that are ``*`` in every quasi-identifier; of an anonymization, suppressed records.
    listing : Candidates or None
        Originals that each published row matches, claimed by the owner.
    certified : bool
        Whether the listing is a certificate for a release.
    k : int or None
    patterns, fallback : object
    guarantee : str or None
        The criterion that the method promises, where that is known.
    certificate : Certificate, matrix of matches, or None
        The certificate of the draw: the caller's, else the one that the release has.
    overall : mapping or None
        Of a part of a table: column -> how often each text occurs in the whole table. It must never be printed.
    alone : bool
        Whether there is no original table: the published rows are used instead of it.
    remarks : tuple of str
        How another tool's release was read.
    truth : numpy.ndarray, shape (rows,), integer, or None
        As of :class:`Subject`.
    """

    table: Table
    records: Records
    published: Generalization
    own: bool
    frame: pd.DataFrame | None
    suppressed: np.ndarray
    listing: Candidates | None
    certified: bool
    k: int | None
    patterns: Any = None
    fallback: Any = None
    guarantee: str | None = None
    certificate: Any = None
    overall: Mapping[str, Mapping[str, int]] | None = None
    alone: bool = False
    remarks: tuple[str, ...] = ()
    truth: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of originals."""
        return self.records.n

    @property
    def rows(self) -> int:
        """Number of published rows: n, but for records that were deleted."""
        return self.published.n

    @property
    def deleted(self) -> int:
        """How many records have no row in the release."""
        return self.n - self.rows

    def need_k(self, criterion: str) -> int:
        """k, for a criterion that cannot do without it.

        Raises
        ------
        ParameterError
            If nobody has said it.
        """
        if self.k is None:
            raise ParameterError(f"criterion {criterion!r} needs k; give it, for example k=10")
        return self.k

    @cached_property
    def lists(self) -> Candidates | None:
        """The originals that each row was drawn from, by the certificate; None without one that lists them."""
        if self.certified or self.certificate is None:
            return self.listing if self.certified else None
        return Candidates.of_claim(self.certificate, self.n)

    @property
    def hides_ranges(self) -> bool:
        """Whether cells are means or medians and no certificate lists the members of a class: what such a cell covers is unknown then."""
        return self.published.aggregates is not None and not self.own and self.lists is None

    @cached_property
    def drawn_classes(self) -> np.ndarray | None:
        """The class that each row was drawn in, by the certificate, shape (n,); None without one, or without classes.

        Two classes may have equal cells: an attacker who runs the method again can distinguish them.
        """
        label = getattr(self.certificate, "row_list", None)
        if label is None or not promises_classes(self.guarantee):
            return None
        return np.unique(label, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def exempt(self) -> np.ndarray:
        """Blank rows that are exempt from k-anonymity: all of them if they are fewer than k, else none.

        Where units have several rows, fewer than k times the most rows of a unit.
        """
        blanks = int(self.blank.sum())
        if not blanks:
            return self.blank
        if blanks < self.need_k("covers") * self.table.unit_rows:
            return self.blank
        return np.zeros(self.rows, bool)

    @cached_property
    def classes(self) -> np.ndarray:
        """Labels of published rows by equal quasi-identifiers, shape (n,), int64."""
        if self.frame is None:
            return self.published.classes()
        frame = self.frame
        return equal_columns(
            (coded_texts(frame[name], {}, False) for name in self.table.qi_columns), self.rows
        )

    @cached_property
    def others(self) -> tuple[str, ...]:
        """Published columns of the release that are not quasi-identifiers."""
        if self.frame is None:
            return ()
        return tuple(name for name in self.table.other_columns if name in self.frame.columns)

    @cached_property
    def blank(self) -> np.ndarray:
        """Blank published rows: ``*`` in every column, or suppressed records; (n,), bool."""
        blank = self.suppressed.copy()
        if not blank.any() or self.frame is None:
            return blank
        if self.certified and self.listing is not None and self.k is not None:
            # only records with too few matches are suppressed: others may have "*" as a value
            blank &= self.listing.sizes < self.k * self.table.unit_rows
            return np.asarray(blank & rows_of_stars(self.frame, self.others)) if self.others else blank
        if not self.others:
            return blank
        hidden, stars = (rows_of_stars(frame, self.others) for frame in (self.frame, self.table.frame))
        if not self.alone and hidden.sum() == stars.sum():  # as many people have "*" as their value
            return np.zeros(self.rows, bool)
        return np.asarray(blank & hidden)

    @cached_property
    def rest(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Labels of the originals' and of the published rows' other columns, equal where all of them are.

        Two arrays of shapes (n,) and (rows,), int64; None where no other column is published.
        """
        if self.frame is None or not self.others:
            return None
        originals, rows = self.table.frame, self.frame
        labels = (np.concatenate(joint_codes(originals[name], rows[name])[1:]) for name in self.others)
        joint = next(labels) if len(self.others) == 1 else equal_columns(labels, self.n + self.rows)
        return joint[: self.n], joint[self.n :]

    @cached_property
    def graph(self) -> Bipartite:
        """The consistency graph; exempt rows are vertices of their own, suppressed ones where boundaries matter."""
        apart = self.exempt
        if any(domain.bound is not None for domain in self.records.domains):
            # a row that shows the only value of a column covers as much and is not suppressed
            apart = apart.astype(np.int64) + self.suppressed
        return consistency_graph(self.records, self.published, apart if apart.any() else None)

    @cached_property
    def exempt_box(self) -> np.ndarray:
        """Whether each distinct generalized record of the graph is an exempt row, shape (v,), bool."""
        return self.exempt[self.graph.published.first]

    @cached_property
    def listed(self) -> np.ndarray:
        """How many rows list each original, shape (n,), int64."""
        assert self.listing is not None
        return self.listing.counts(self.n)

    @cached_property
    def uncovered(self) -> np.ndarray:
        """Whether each published row does not cover an original that is listed for it, shape (rows,), bool; O(E q)."""
        assert self.listing is not None
        return uncovered(self.listing, self.records, self.published)

    @cached_property
    def own_covers(self) -> np.ndarray:
        """Whether each published row covers the original at its position, shape (n,), bool."""
        return self.published.covers(Generalization.of(self.records))


def collect(
    table: Table,
    subject: Subject,
    k: int | None,
    certificate: Any,
    overall: Mapping[str, Mapping[str, int]] | None = None,
    another_tool: bool = False,
) -> Evidence:
    """Code originals and published rows over the same domains.

    Parameters
    ----------
    table : Table
        n originals.
    subject : Subject
        With n rows.
    k : int, optional
    certificate : Certificate, or matrix of matches, optional
    overall : mapping, optional
        As :class:`Evidence` has it.
    another_tool : bool
        Whether the rows may be written in another notation than ours.

    Raises
    ------
    DataError
        If published columns are missing, or have cells that are not in the notation of generalizations, or are not in
        the schema; or if a certificate is about another number of rows.
    """
    # a k-concealed release has no matches to list: its certificate has k and the criterion only
    certified = certificate is not None and bool(getattr(certificate, "complete", True))
    listing = Candidates.of_claim(certificate, subject.rows) if certified else subject.listing
    drawn = certificate if certificate is not None else subject.certificate
    if len(getattr(drawn, "row_list", range(subject.rows))) != subject.rows:
        drawn = None  # of another release
    common = {
        "listing": listing,
        "certified": certified,
        "k": k,
        "patterns": subject.patterns,
        "fallback": subject.fallback,
        "overall": overall,
    }
    common["truth"] = subject.truth
    common["certificate"] = drawn if getattr(drawn, "complete", True) else None
    common["guarantee"] = subject.guarantee or getattr(certificate, "criterion", None)
    if subject.generalization is not None:
        suppressed = subject.suppressed
        if suppressed is None:
            suppressed = np.zeros(subject.rows, bool)
        generalization = subject.generalization
        return Evidence(table, table.records, generalization, True, None, suppressed, **common)
    frame = subject.published_rows()
    _check_columns(table, frame)
    if another_tool:
        notations = {name: table.schema[name].notation for name in table.qi_columns}
        readers = readers_of(table.domains, notations)
        published = Generalization.parse(frame, table.domains, readers=readers)
        suppressed = hidden_rows(frame, readers)
        common["remarks"] = tuple(remark for reader in readers for remark in reader.remarks())
        return Evidence(table, table.records, published, False, frame, suppressed, **common)
    published = Generalization.parse(frame, table.domains, canonical=True, empty=subject.arrays.empty)
    if common["certificate"] is not None and published.aggregates is not None:
        published = spanning_lists(
            published, table.records, Candidates.of_claim(common["certificate"], subject.rows)
        )
    suppressed = rows_of_stars(frame, table.qi_columns)
    return Evidence(table, table.records, published, False, frame, suppressed, **common)


def spanning_lists(published: Generalization, records: Records, listing: Candidates) -> Generalization:
    """Return the same with the ranges behind means and medians, because an attacker who runs the method again knows the members of a class.

    Parameters
    ----------
    published : Generalization
        As it was read.
    records : Records
        n originals.
    listing : Candidates
        Of a release of classes: the members of each row's.

    Returns
    -------
    Generalization
        Unchanged if the listing belongs to other people.
    """
    if listing.strangers(records.n).any() or not listing.sizes.all():
        return published
    original, starts = listing.pairs()[1], np.cumsum(listing.sizes) - listing.sizes
    lo, hi = published.lo.copy(), published.hi.copy()
    row_of = published.layout.row_of_range
    for a, values in published.by_aggregate():
        has_number = ~np.isnan(values)
        for ends, original_ends, join in zip(
            (lo, hi), records.ends(a), (np.minimum, np.maximum), strict=True
        ):
            ends[row_of[a], has_number] = join.reduceat(original_ends[original], starts)[has_number]
    return replace(published, lo=lo, hi=hi)


def collect_alone(frame: pd.DataFrame, schema: Schema, k: int | None) -> Evidence:
    """Return the evidence of a release without its original: its own rows replace the original.

    Parameters
    ----------
    frame : pandas.DataFrame
        The published rows, by whatever tool.
    schema : Schema
        Kinds and hierarchies do not matter: cells are compared as texts.
    k : int, optional

    Raises
    ------
    DataError
        If the release lacks columns, has identifiers, no rows, or a column twice.
    """
    names = [str(name) for name in frame.columns]
    columns = schema.prepared().columns
    problems = [
        f"column {name!r}: appears {names.count(name)} times in the release"
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    problems += [
        f"column {name!r}: is in the release, and the schema says {columns[name].role}; remove it first"
        for name in names
        if name in columns and columns[name].role in UNPUBLISHED
    ]
    problems += [
        f"column {name!r}: missing from the release" for name in schema.quasi_identifiers if name not in names
    ]
    if problems:
        raise DataError.collected("the release does not match the schema", problems)
    texts = {
        name: Column(name, "quasi-identifier", "suppression", missing="value") if column.kind else column
        for name, column in columns.items()
        if name in names
    }
    table = Table(frame, Schema(texts, folder=schema.folder))
    notations = {}
    for name in table.qi_columns:
        notation = columns[name].notation or Notation()
        # no number is written so
        words: tuple[str, ...] = ("", *HIDDEN) if columns[name].kind == "numeric" else ()
        if columns[name].has_codes:
            code_texts = {*columns[name].codes, *([""] if columns[name].missing == "value" else [])}
            words = tuple(word for word in words if word not in code_texts)
        notations[name] = Notation(notation.ranges, (*notation.hidden, *words))
    suppressed = hidden_rows(frame, readers_of(table.domains, notations))
    unknown = [name for name in names if name not in columns]
    remarks = (_UNNAMED.format(", ".join(map(repr, unknown))),) if unknown else ()
    return Evidence(
        table, table.records, Generalization.of(table.records), False, table.frame, suppressed, None, False, k,
        alone=True, remarks=remarks,
    )  # fmt: skip


_UNNAMED = "the release has columns that the schema does not name, and that were not checked: {}"


def _check_columns(table: Table, frame: pd.DataFrame) -> None:
    names = [str(name) for name in frame.columns]
    repeated = sorted({name for name in names if names.count(name) > 1})
    problems = [f"column {name!r}: appears {names.count(name)} times in the release" for name in repeated]
    strange = [name for name in names if name not in table.frame.columns]
    problems += [
        f"column {name!r}: is in the release, but the schema does not publish it" for name in strange
    ]
    others = table.other_columns
    absent = [name for name in others if name not in names]
    if len(absent) < len(others):
        problems += [f"column {name!r}: missing from the release" for name in absent]
    if problems:
        raise DataError.collected("the release does not match the schema", problems)
