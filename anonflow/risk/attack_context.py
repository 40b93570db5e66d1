"""The data of attackers: a release and its originals, and, only to evaluate them, the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.criteria import Bipartite, collect, match_edges, subject_of
from anonflow.criteria.classes import class_sizes
from anonflow.criteria.evidence import Evidence, collect_alone
from anonflow.criteria.guarantee import promises_classes
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.release import RandomWords, Release, draw_assignment, publish
from anonflow.table import Schema, Table
from anonflow.table.files.metadata_file import read_metadata

PAIRS = 20_000_000
"""The most pairs of an original and a row that are listed one by one."""


@dataclass(frozen=True, eq=False)
class AttackContext:
    """A release under attack.

    Attributes
    ----------
    table : Table
        The n originals.
    frame : pandas.DataFrame
        The published table, n rows.
    k : int
        The promised k.
    truth : numpy.ndarray, shape (n,), int64, or None
        For each published row the original whose other columns it carries. No attacker uses it: it only decides who won.
    certificate : Certificate or None
        What an attacker who knows all quasi-identifiers and the method learns by running it again.
    path : pathlib.Path or None
        The published file.
    anonymization : Anonymization or None
    rng : numpy.random.Generator
        Chooses samples of people.
    guarantee : str or None
        The criterion that the method promises, where that is known.
    elsewhere : numpy.ndarray, shape (n,), int64, or None
        Where all this is a part of a larger release: how many of the other rows that are not hidden cover each original.
    some_keys : bool
        Whether attackers know some of the quasi-identifiers only.
    schema : Schema or None
        Without an original: the evidence of the release alone, whose own rows replace the original.
    another_tool : bool
        Whether the rows may be written in another notation, and records may have been deleted.
    earlier : path, list of paths, or None
        The owner's folders of the earlier releases of these people: attackers who know the method have these releases, too.
    """

    table: Table
    frame: pd.DataFrame
    k: int
    truth: np.ndarray | None = None
    certificate: Any = None
    path: Path | None = None
    anonymization: Any = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    guarantee: str | None = None
    elsewhere: np.ndarray | None = None
    some_keys: bool = False
    schema: Schema | None = None
    another_tool: bool = False
    earlier: Any = None

    @property
    def is_whole(self) -> bool:
        """Whether the originals are there, and a row of each."""
        return self.schema is None and not self.deleted

    @property
    def reads_ranges(self) -> bool:
        """Whether it is known which originals each row covers: of a mean or median only the certificate says so."""
        return self.is_whole and not self.evidence.hides_ranges

    @classmethod
    def of(
        cls,
        table: Table | Schema,
        subject: Any,
        k: int | None = None,
        certificate: Any = None,
        seed: int | None = None,
        another_tool: bool = False,
    ) -> AttackContext:
        """Return the context of a release, of a file, or of an anonymization, which is drawn for it.

        Parameters
        ----------
        table : Table or Schema
            The originals; without them the release's schema.
        subject : Anonymization, Release, pandas.DataFrame or path
        k : int, optional
            By default the subject's, the certificate's, or that of the description beside a file.
        certificate : Certificate, optional
        seed : int, optional
            Of the samples, and of the draw of an anonymization.
        another_tool : bool
            Whether another tool made the release.

        Raises
        ------
        ParameterError
            If k is not known, or the release has another number of rows.
        DataError
            If a file cannot be read.
        """
        path = Path(subject) if isinstance(subject, str | PathLike) else None
        anonymization = subject if hasattr(subject, "generalization") else None
        published = subject_of(subject, table)
        metadata = None if path is None else read_metadata(path, ignore_others=True)
        k = k or published.k or getattr(certificate, "k", None) or getattr(metadata, "k", None)
        if k is None:
            raise ParameterError("attacking needs k, which the release promises; give it, for example k=10")
        if isinstance(table, Schema):
            if published.frame is None:
                raise ParameterError(
                    "without the original only a release can be attacked; draw the anonymization first, with release()"
                )
            alone = collect_alone(published.frame, table, int(k))
            rows, rng = alone.table.frame, np.random.default_rng(seed)
            return cls(alone.table, rows, int(k), path=path, rng=rng, schema=table, another_tool=True)
        fewer = another_tool and 0 < published.rows < table.n and published.frame is not None
        if certificate is not None and not hasattr(certificate, "complete"):
            raise ParameterError("certificate is an anonflow Certificate: load it from the owner's folder")
        if published.rows != table.n and not fewer:
            raise ParameterError(
                f"the release has {plural(published.rows, 'row')} and the table {plural(table.n, 'record')}"
            )
        if anonymization is not None:
            subject = publish(anonymization, seed, rehearsal=True)
        if isinstance(subject, Release):
            frame, truth = subject.frame, subject.truth
            certificate = certificate or subject.certificate
        else:
            frame, truth = published.published_rows(), None
        rng = np.random.default_rng(seed)
        return cls(
            table, frame, int(k), truth, certificate, path, anonymization, rng, published.guarantee,
            another_tool=another_tool,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of people."""
        return self.table.n

    def sensitive_column(self, column: str | None) -> str:
        """Return the sensitive column that an attacker wants: the only one of the table, if it names none.

        Raises
        ------
        ParameterError
            If there is no such column, or several to choose from.
        """
        if column is None:
            if len(self.table.sensitive) != 1:
                raise ParameterError(
                    f"the table has {len(self.table.sensitive)} sensitive columns; say which one: column=..."
                )
            return self.table.sensitive[0]
        if column not in self.table.other_columns or column not in self.frame.columns:
            raise ParameterError(f"{column!r} is not a published column besides the quasi-identifiers")
        return column

    @cached_property
    def evidence(self) -> Evidence:
        """Originals and published rows over the same domains."""
        if self.schema is not None:
            return collect_alone(self.frame, self.schema, self.k)
        subject = replace(subject_of(self.frame), guarantee=self.guarantee)
        evidence = collect(self.table, subject, self.k, self.certificate, another_tool=self.another_tool)
        claim = evidence.listing
        if claim is not None:
            wrong = claim.strangers(self.n)
            if wrong.any() or evidence.uncovered.any():
                raise DataError(
                    "the certificate is not that of these rows: it lists people whom they do not cover; use the one that "
                    "was made with the release"
                )
        return evidence

    def with_keys(self, keys: Sequence[str]) -> AttackContext:
        """Return the same release for attackers who know some of the quasi-identifiers only, and not the method.

        Parameters
        ----------
        keys : sequence of str

        Raises
        ------
        ParameterError
            If one of them is not a quasi-identifier.

        Notes
        -----
        Of a part of a release, `elsewhere` stays: rows that cover somebody on all quasi-identifiers do so on some, so that
        risks are rather too high than too low.
        """
        schema = self.table.schema if self.schema is None else self.schema
        for name in keys:
            if name not in schema.quasi_identifiers:
                role_there = f"is {schema[name].role}" if name in schema else "is not in the schema"
                raise ParameterError(
                    f"key sets are of quasi-identifiers, and {str(name)[:40]!r} {role_there}; make it one in the schema, or leave it out"
                )
        named = tuple(name for name in schema.quasi_identifiers if name in keys)
        if named not in self._with_keys:
            unknown = [name for name in schema.quasi_identifiers if name not in keys]
            # without the certificate: it lists matches by all quasi-identifiers, which these attackers do not know
            context = self._with_keys[named] = replace(
                self,
                some_keys=bool(unknown),
                table=self.table.with_keys(named),
                frame=self.frame.drop(columns=unknown, errors="ignore"),
                schema=None if self.schema is None else self.schema.without(unknown),
                certificate=None,
                anonymization=None,
                guarantee=None,
                earlier=None,
            )
            # of the whole rows, not of the known columns alone
            vars(context).update(hidden=self.hidden, has_classes=self.has_classes)
        return self._with_keys[named]

    @cached_property
    def _with_keys(self) -> dict[tuple[str, ...], AttackContext]:
        return {}

    def without_truth(self, rng: np.random.Generator) -> AttackContext:
        """Return the same release without the true rows, with random numbers of its own; its rows are not read again.

        Parameters
        ----------
        rng : numpy.random.Generator
        """
        other = replace(self, truth=None, rng=rng)
        if "evidence" in vars(self):  # says nothing about the truth
            vars(other)["evidence"] = self.evidence
        return other

    @property
    def deleted(self) -> int:
        """How many records have no row."""
        return self.n - len(self.frame)

    @cached_property
    def graph(self) -> Bipartite:
        """The graph of the rows and the originals that they cover; equal ones are merged."""
        return self.evidence.graph

    @cached_property
    def matches(self) -> np.ndarray:
        """Whether each edge of the graph lies on a perfect matching, shape (E,), bool."""
        if self.deleted:
            raise ParameterError("this attacker needs a row of every record; some were deleted")
        if self._of_means:
            raise ParameterError(
                "for means and medians this attacker needs the certificate, which says whom they cover"
            )
        edges = match_edges(self.evidence)
        if edges is None:
            raise DataError("the release does not cover the table: nobody can be attacked; verify it first")
        return edges

    @cached_property
    def listing(self) -> Candidates | None:
        """The rows' matches that the certificate lists, None without one that lists them."""
        if self.certificate is None or not self.certificate.complete:
            return None
        return self.evidence.listing

    @cached_property
    def people(self) -> np.ndarray:
        """Originals with published rows, shape (p,), int64.

        Fewer than k suppressed records have none: their rows are ``*`` throughout.
        """
        # originals that no row covers were certainly deleted: nothing is published about them
        if self.deleted:
            return np.flatnonzero(self.covering())
        exempt_owners = self._owners(self.evidence.exempt)
        return np.arange(self.n) if exempt_owners is None else np.setdiff1d(np.arange(self.n), exempt_owners)

    @cached_property
    def hidden(self) -> np.ndarray:
        """Which rows hide all quasi-identifiers, shape (rows,), bool; none of them if all rows do, for they are a class then."""
        hidden = self.evidence.suppressed
        return np.zeros_like(hidden) if hidden.all() else hidden

    @cached_property
    def shown_people(self) -> np.ndarray:
        """Originals with a published row that is not hidden, as far as that is known, shape (p,), int64."""
        hidden_owners = self._owners(self.hidden)
        if hidden_owners is None:
            hidden_owners = np.flatnonzero(self.likeliest(~self.hidden) == 0)
        return np.setdiff1d(self.people, hidden_owners)

    def _owners(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the originals of some rows, a mask; None if nothing says whose they are."""
        if self.schema is not None or not rows.any():
            return np.flatnonzero(rows)
        if self.truth is not None:
            return self.truth[rows]
        if self.listing is not None:
            row, original = self.listing.pairs()
            return original[rows[row]]
        return None

    @cached_property
    def has_classes(self) -> bool:
        """Whether the rows are classes: by their guarantee, or by their cells if they are k-anonymous or cover nobody twice."""
        evidence = self.evidence
        if evidence.alone or evidence.guarantee is not None:
            return evidence.alone or promises_classes(evidence.guarantee)
        if class_sizes(evidence)[~self.hidden].min(initial=self.n) >= self.k:
            return True
        shows = np.bincount(self.graph.published.label, ~self.hidden, self.graph.published.size) > 0
        return not bool((np.bincount(self.graph.end[shows[self.graph.box]], minlength=1) > 1).any())

    def smallest_classes(self) -> np.ndarray:
        """Return the size of the smallest class that may be each original's, shape (n,), int64; hidden rows are no class.

        Of other rows, of means, and for attackers who know some columns, it is the number of rows that cover each original.
        """
        covering = self.covering()
        if self._of_means or self.some_keys or not self.has_classes:
            return covering
        chance = self.likeliest(np.where(self.hidden, 0.0, 1.0 / class_sizes(self.evidence)))
        return np.where(chance > 0, np.rint(1.0 / np.where(chance > 0, chance, 1.0)), covering).astype(
            np.int64
        )

    def _edges_in_question(self, graph: Bipartite) -> np.ndarray:
        """Return which edges lead to a row that may be an original's, shape (E,), bool.

        Hidden rows cover everybody. They do not count where others are enough: at least one of a class, k of other rows.
        """
        published = graph.published
        hides = np.bincount(published.label, self.hidden, published.size)[graph.box] > 0
        visible_rows = np.bincount(
            graph.end, np.where(hides, 0, published.count[graph.box]), graph.originals.size
        )
        return ~hides | (visible_rows < (1 if self.has_classes else self.k))[graph.end]

    def _rows_in(self, graph: Bipartite) -> np.ndarray:
        """Return how many rows may be each original's, shape (n,), int64."""
        counts = np.where(self._edges_in_question(graph), graph.published.count[graph.box], 0)
        rows: np.ndarray = np.bincount(graph.end, counts, graph.originals.size).astype(np.int64)
        return rows[graph.originals.label]

    @cached_property
    def row_candidates(self) -> Candidates:
        """The originals that each row may be of: of the certificate, else whoever it covers.

        Of more than 20 million pairs of a row and an original, lists are the components of the graph.
        """
        if self._of_means:
            return Candidates.of_classes(self.evidence.classes)
        if self.listing is not None:
            return self.listing
        graph = self.graph.only(self._edges_in_question(self.graph))
        if graph.degrees()[1].sum() > PAIRS:
            lists = Candidates.of_lists(np.diff(graph.start), graph.end)
            return Candidates.of_classes(lists.components(graph.originals.size)[graph.originals.label])
        return graph.lists()

    def covering(self) -> np.ndarray:
        """Return how many rows cover each original, shape (n,), int64; hidden rows do not count beside others.

        For a release that shows means without the ranges behind them, this is the size of each person's class: the attacker is
        assumed to find the right class by its means.
        """
        if self._of_means:
            return class_sizes(self.evidence)
        counts = self._rows_in(self.graph)
        return counts if self.elsewhere is None else counts + self.elsewhere

    def likeliest(self, chance: np.ndarray) -> np.ndarray:
        """Return for each original, shape (n,), the largest figure, shape (rows,), of the rows that cover it."""
        graph = self.graph
        of_box, of_end = np.zeros(graph.published.size), np.zeros(graph.originals.size)
        np.maximum.at(of_box, graph.published.label, chance)
        np.maximum.at(of_end, graph.end, of_box[graph.box])
        return of_end[graph.originals.label]

    def candidates(self) -> np.ndarray:
        """Return the number of candidate rows of each original, for an attacker who knows all originals and the method, shape (n,), int64.

        Raises
        ------
        DataError
            If the release does not cover the table.
        """
        if self._of_means:
            return class_sizes(self.evidence)
        counts = self._rows_in(self.graph.only(self.matches))
        if self.listing is not None:
            counts = np.minimum(counts, self.listing.counts(self.n))
        return counts

    @cached_property
    def _of_means(self) -> bool:
        """Whether cells are means or medians, nobody lists who is in a class, and every record has a row."""
        return self.evidence.hides_ranges and not self.deleted

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of an original and a row that may be its: original, row, each shape (e,), int64.

        Those of the certificate where there is one, else of all perfect matchings.
        """
        lists = self.listing
        if lists is None:
            graph = self.graph.only(self.matches)
            if int(graph.degrees()[1] @ graph.published.count) > PAIRS:
                raise ParameterError(
                    f"more than {PAIRS:,} pairs of a person and a row; attack a part of the table"
                )
            lists = graph.lists()
        rows, originals = lists.pairs()
        return originals.astype(np.int64), rows.astype(np.int64)

    def judged(self) -> np.ndarray:
        """Return a truth for the evaluation: the real one, or one drawn like the release's, shape (n,), int64.

        Raises
        ------
        ParameterError
            If there is neither.
        """
        if self.truth is not None:
            return self.truth
        if self.listing is None:
            raise ParameterError(
                "this attacker needs the true rows; give the release as it was made, or its certificate"
            )
        sizes = self.listing.sizes
        row, original = self.listing.pairs()
        matches = np.full((self.n, int(sizes.max())), -1, np.int64)
        matches[row, np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)] = original
        return draw_assignment(matches, RandomWords(self.rng.bytes(32)))
