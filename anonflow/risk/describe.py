"""Describe a release by its rows alone: classes, risks, diversity, and the limits of each figure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.criteria.classes import class_rows, is_of_classes
from anonflow.criteria.diversity.diversity import Spread, earth_mover, spread
from anonflow.criteria.evidence import Evidence, collect, collect_alone, subject_of
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import is_finite
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import THRESHOLD
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.risk.register import RegisterCounts
from anonflow.table import Schema, Table

_ALONE = "the original: whom the rows cover, who was left out"
_CLASSES = "rows that differ and yet cover the same person; in a freeform release these are many"
_PEOPLE = "what an attacker knows beside the quasi-identifiers"
_SENSITIVE = "what other columns, and other sources, say of the value"


@dataclass(frozen=True)
class Figure:
    """One number.

    Attributes
    ----------
    name : str
    value : float
    column : str
        "" where it is about all of them.
    unseen : str
        The limits of the number.
    """

    name: str
    value: float
    column: str = ""
    unseen: str = ""


@dataclass(frozen=True, repr=False)
class Description:
    """The figures of a release, as :func:`describe` gives them.

    Attributes
    ----------
    figures : tuple of Figure
    remarks : tuple of str
        How cells were read, and other remarks.
    """

    figures: tuple[Figure, ...]
    remarks: tuple[str, ...]

    def __iter__(self) -> Iterator[Figure]:
        return iter(self.figures)

    def __getitem__(self, name: str | tuple[str, str]) -> float:
        key = (name, "") if isinstance(name, str) else name
        for figure in self.figures:
            if (figure.name, figure.column) == key:
                return figure.value
        raise ParameterError(f"no figure {key[0]!r}; there are {', '.join(f.name for f in self.figures)}")

    def frame(self) -> pd.DataFrame:
        """Return the figures as a table: figure, column, value, not seen."""
        rows = [(f.name, f.column, f.value, f.unseen) for f in self.figures]
        return pd.DataFrame(rows, columns=["figure", "column", "value", "not seen"])

    def to_json(self) -> str:
        """Return the figures and remarks as a JSON text; what is infinite is null."""
        figures = [
            {
                "figure": f.name,
                "column": f.column,
                "value": f.value if math.isfinite(f.value) else None,
                "not_seen": f.unseen,
            }
            for f in self.figures
        ]
        return json.dumps({"figures": figures, "remarks": list(self.remarks)}, indent=2, ensure_ascii=False)

    def __repr__(self) -> str:
        lines = [
            f"  {f.name}{f' of {f.column}' if f.column else ''}: {f.value:.6g} (not seen: {f.unseen})"
            for f in self.figures
        ]
        return "\n".join(["Description of a release", *lines, *(f"  {remark}" for remark in self.remarks)])


def describe(
    table: Table | Schema,
    release: Any,
    *,
    register: pd.DataFrame | None = None,
    threshold: float = THRESHOLD,
) -> Description:
    """Describe the rows of a release of any tool.

    Parameters
    ----------
    table : Table or Schema
        The originals; without them the release's schema.
    release : Release, pandas.DataFrame or path
        Cells in any of the usual notations (:mod:`anonflow.table.published.notation`); it may have fewer rows than the original.
    register : pandas.DataFrame, optional
        People of the population with the quasi-identifiers: k-map, delta-presence, the journalist's and the marketer's
        risk are counted on it.
    threshold : float
        Rows of a greater risk than this are counted.

    Returns
    -------
    Description
        Rows and classes; the prosecutor's risk (1 / size of a class) and the share of rows above the threshold; the
        marketer's (classes / rows). Where the originals show that rows are no classes, as in a freeform release, these three are
        the risks of people, as :func:`anonflow.attack` says them. Of each sensitive column p, l, entropy l, t, beta and delta that
        hold. Every figure names its limits. Counts and rates only.

    Raises
    ------
    ParameterError
        If the threshold is not a probability, an anonymization was not drawn, or the register lacks a quasi-identifier.
    DataError
        If the release does not match the schema, has more rows than the original, or cannot be read.

    Notes
    -----
    Risks are those of El Emam and Dankar (2008): prosecutor, journalist, marketer. Rows that hide every quasi-identifier are
    no class, and are counted apart. O(n q log n), and of a register O(edges).
    """
    if not is_finite(threshold) or not 0 < threshold <= 1:
        raise ParameterError(
            "describe: the threshold must be a probability above 0 and at most 1, such as 0.09"
        )
    published = subject_of(release, table)
    if published.frame is None:
        raise ParameterError("describe takes a release: draw the anonymization first, with release()")
    frame = published.frame
    if isinstance(table, Schema):
        evidence = collect_alone(frame, table, 2)
        schema = table
    else:
        if published.rows > table.n or not published.rows:
            raise ParameterError(
                f"the release has {plural(published.rows, 'row')} and the table {plural(table.n, 'record')}"
            )
        evidence = collect(table, published, 2, None, another_tool=True)
        schema = table.schema
    unseen = _ALONE if evidence.alone else "who was left out, and why" if evidence.deleted else _CLASSES
    risks = None
    if isinstance(table, Table):
        with suppress(DataError):  # the consistency graph is too large: equal rows are counted
            if not is_of_classes(evidence):
                risks = _risks_of_people(AttackContext.of(table, release, 2, another_tool=True), threshold)
    figures = [*_of_class_sizes(evidence, threshold, unseen, risks)]
    if register is not None:
        originals = None if isinstance(table, Schema) else table
        classes = None
        if originals is not None and originals.unit is not None and is_of_classes(evidence):
            classes = class_rows(evidence)
        figures += _of_register(RegisterCounts.of(frame, schema, register, originals, classes), threshold)
    for name in evidence.others:
        if schema[str(name)].role == "sensitive":
            figures += _of_column(spread(evidence, str(name), "class"), str(name))
    remarks = list(evidence.remarks)
    if risks is None and any(figure.name == "smallest class" and figure.value == 1 for figure in figures):
        remarks.append(
            "some rows are equal to no other; if the release is freeform, counting equal rows says nothing about it: ask its "
            "owner for the verifier's answer against the original"
        )
    return Description(tuple(figures), tuple(remarks))


def _risks_of_people(context: AttackContext, threshold: float) -> tuple[float, float, float]:
    """Return the largest risk, the share of people with a greater one than the threshold, and the marketer's, where rows are no classes."""
    risk = PeopleAtRisk.guessing(context, context.shown_people, context.smallest_classes())
    share = risk.above(threshold) / max(len(risk.chance), 1)
    return risk.worst, share, PeopleAtRisk.guessing(context, context.people, context.covering()).mean


def _of_class_sizes(
    evidence: Evidence, threshold: float, unseen: str, risks: tuple[float, float, float] | None
) -> list[Figure]:
    hidden_rows = evidence.blank if evidence.suppressed.all() else evidence.suppressed
    labels = evidence.classes[~hidden_rows]
    sizes = np.bincount(np.unique(labels, return_inverse=True)[1]) if len(labels) else np.zeros(0, np.int64)
    of_row = np.repeat(sizes, sizes)
    rows = int(sizes.sum())
    limits = unseen if risks is None else _PEOPLE
    if risks is None:
        above = float((1 / of_row > threshold + 1e-12).mean()) if rows else 0.0
        risks = float(1 / sizes.min()) if rows else 0.0, above, len(sizes) / rows if rows else 0.0
    highest, above, marketer = risks
    figures = [
        Figure("rows", evidence.rows, unseen="nothing"),
        Figure("rows that say nothing", int(evidence.blank.sum()), unseen="why they were hidden"),
        Figure("hidden rows", int(hidden_rows.sum()), unseen="why they were hidden"),
        Figure("classes", len(sizes), unseen=_CLASSES),
        Figure("smallest class", int(sizes.min(initial=rows)), unseen=unseen),
        Figure("mean class", float(sizes.mean()) if rows else 0.0, unseen=unseen),
        Figure("largest class", int(sizes.max(initial=0)), unseen=unseen),
        Figure("rows that read like no other", int((sizes == 1).sum()), unseen=unseen),
        Figure("highest prosecutor risk", highest, unseen=limits),
        Figure(f"share of rows with a risk above {threshold:g}", above, unseen=limits),
        Figure("marketer risk", marketer, unseen=limits),
    ]
    if not evidence.alone:
        figures.append(Figure("deleted records", evidence.deleted, unseen="which ones"))
    hidden = "whether a whole domain is hidden in other words"
    for name in evidence.table.qi_columns:
        cells = evidence.frame[name] if evidence.frame is not None else None
        if cells is not None:
            figures.append(Figure("distinct cells", int(cells.nunique(dropna=False)), str(name), hidden))
    return figures


def _of_register(counts: RegisterCounts, threshold: float) -> list[Figure]:
    people = np.maximum(counts.of_row, 1)
    outside = "people whom the register does not have"
    figures = [
        Figure("k of the k-map", int(counts.of_row.min()), unseen=outside),
        Figure("rows that nobody of the register fits", counts.nobody, unseen=outside),
        Figure("highest journalist risk", float((1 / people).max()), unseen=outside),
        Figure(
            f"share of rows with a journalist risk above {threshold:g}",
            float((1 / people > threshold + 1e-12).mean()),
            unseen=outside,
        ),
        Figure("marketer risk by the register", float((1 / people).mean()), unseen=outside),
    ]
    if counts.is_of_classes:
        absent = int((counts.of_person == 0).sum())
        low = 0.0 if absent else float(counts.presence.min())
        figures += [
            Figure("lowest delta-presence", low, unseen=outside),
            Figure("highest delta-presence", float(counts.presence.max()), unseen=outside),
        ]
    else:
        figures.append(
            Figure("people who could not be absent", int((~counts.could_be_absent).sum()), unseen=outside)
        )
    return figures


def _of_column(value_spread: Spread, name: str) -> list[Figure]:
    """Return the strongest parameters that hold of a sensitive column, by the definitions of the criteria."""
    sizes = value_spread.sizes
    counts = value_spread.counts.tocsr()[np.flatnonzero(sizes)]
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return []
    starts, group = counts.indptr[:-1], np.repeat(np.arange(len(sizes)), np.diff(counts.indptr))
    share = counts.data / sizes[group]
    top = np.maximum.reduceat(counts.data, starts) / sizes
    entropy = np.exp(-np.add.reduceat(share * np.log(share), starts))
    usual = (value_spread.overall / max(int(value_spread.overall.sum()), 1))[counts.indices]
    ratio = np.divide(share, usual, out=np.full(len(share), np.inf), where=usual > 0)
    lacking = bool((np.diff(counts.indptr) < int((value_spread.overall > 0).sum())).any())
    values = {
        "p (distinct values)": float(np.diff(counts.indptr).min()),
        "l (1 / largest share)": float(1 / top.max()),
        "entropy l": float(entropy.min()),
        "t (distance)": float(earth_mover(value_spread).max()),
        "beta": max(float(ratio.max()) - 1, 0.0),
        "delta": math.inf if lacking else float(np.abs(np.log(ratio)).max()),
        "rows whose class has one value": float(sizes[top >= 1].sum()),
    }
    return [Figure(figure, value, name, _SENSITIVE) for figure, value in values.items()]
