"""The report of a run: one HTML page that may be published with the release.

It has column names and counts, never a cell's value, and it contacts no other machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from anonflow import __version__, utility
from anonflow.algorithms.registry import look_of
from anonflow.criteria.guarantee import promises_one_in_k
from anonflow.criteria.registry import CRITERIA, criterion_of, promise_of
from anonflow.criteria.verification import Finding
from anonflow.drawing import plots
from anonflow.drawing.fragments import Fragment, or_dash
from anonflow.drawing.frontier import risk_and_loss
from anonflow.drawing.heat_map import heat_map
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.flows.flow import Flow
from anonflow.engine.report.attacks import publishable
from anonflow.engine.report.card import ReleaseCard
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.loss.costs import at_most_above, rounded_down
from anonflow.table import Table
from anonflow.utility.analyses.association import associations_of
from anonflow.utility.frontier import frontier

if TYPE_CHECKING:
    from jinja2 import Environment, Template

LIMITS = (
    "A value that all k candidates share is known: k-anonymity alone does not hide it. Ask for diversity where "
    "that matters.",
    "One row is taken to be one person, unless a column has the role unit: a person with several rows has less protection than k says.",
    "Two releases about the same people, or two draws of one table, can be intersected. Publish once, or let each release go on from those before it.",
    "Only the columns that are named as quasi-identifiers are generalized; the others keep their values, on another row.",
)


def limits_of(*guarantees: str) -> list[str]:
    """Return the attacks that these guarantees do not prevent, a sentence each."""
    warnings = [criterion.warning for criterion in map(criterion_of, guarantees) if criterion is not None]
    return [*LIMITS, *dict.fromkeys(warning for warning in warnings if warning)]


PATTERNS = 60
"""Patterns of suppression that a report shows."""

MEANS = (
    "{}: the cells are means or medians of classes. Their variance is smaller than that of people's numbers, and so are "
    "standard errors and p-values that are computed from them. The information loss leaves them out. An attacker who knows the numbers of all others in a class computes the last one from a mean."
)
"""Remarks for the reader about such columns."""

HEADER = ("run", "records", "GCP", "usefulness", "suppressed", "seconds", "checks")

BOUNDED = ("no release below", "above the least")
"""Columns of the table of runs where lower bounds are measured: the bound, and how far above the least loss the GCP is at most."""

OWNERS = (*BOUNDED, "usefulness")
"""Columns of the table of runs that are counted on values which no published cell shows: on the owner's page alone."""


def render(flow: Flow, table: Table, report: RunReport, seconds: float) -> str:
    """Return the report of a flow as an HTML page.

    Parameters
    ----------
    flow : Flow
    table : Table
    report : RunReport
    seconds : float
        What the run took.

    Returns
    -------
    str
    """
    published = flow.published
    # figures of other runs than the published one could tell what its cells hide
    results = report.results if published is None else (report.results[published.number],)
    detail_results = list(results)[:1]
    # only this one of the report's warnings: the others belong to the owner, and would help an attacker
    attacks = publishable(report.attacks, bool(detail_results) and detail_results[0].listed)
    return page(
        flow.name,
        results,
        detail_results,
        table.n,
        columns_of(table),
        (*left_out_of(table), *of_means(table)),
        seconds,
        attacks=attacks,
        card=report.card,
    )


def comparison(table: Table, report: RunReport) -> str:
    """Return the page of a comparison: runs, checks, GCP against k, the risk-utility frontier, and losses of analyses.

    It belongs to the owner: the loss of an analysis is measured against the originals.

    Parameters
    ----------
    table : Table
    report : RunReport
        Of :func:`anonflow.engine.compare.compared`.

    Returns
    -------
    str
        HTML; names and numbers, never a cell's value.
    """
    return page(
        report.flow,
        report.results,
        [],
        table.n,
        columns_of(table),
        of_means(table),
        report.seconds,
        owner=True,
    )


def page(
    name: str,
    results: tuple[RunResult, ...],
    detail_results: list[RunResult],
    records: int,
    columns: list[tuple[str, str, str]],
    warnings: tuple[str, ...],
    seconds: float,
    *,
    attacks: list[dict[str, Any]] | None = None,
    card: ReleaseCard | None = None,
    owner: bool = False,
) -> str:
    """Return the page of some runs over one table.

    Parameters
    ----------
    name : str
        Of the flow.
    results : tuple of RunResult
        All runs.
    detail_results : list of RunResult
        Those that are shown in detail.
    records : int
    columns : list of (str, str, str)
        Name, role and kind of every published column.
    warnings : tuple of str
    seconds : float
    attacks : list of dict, optional
        Rows of :func:`anonflow.attack` that may be published.
    card : ReleaseCard, optional
        Stands on top.
    owner : bool, optional
        Whether it belongs to the owner and shows the loss of analyses, lower bounds, usefulness, and the loss on the domain
        of the originals. These are measured against the originals: an attacker who knows the quasi-identifiers could use
        them to decide between two tables, to learn the originals' associations, or a value that no published cell shows.

    Returns
    -------
    str
    """
    template = template_named("report.html.j2")
    first = detail_results[0] if detail_results else None
    passed = sum(bool(finding.holds) for result in results for finding in result.findings)
    checks = sum(len(result.findings) for result in results)
    guarantees = list(dict.fromkeys(result.guarantee for result in results))
    k = first.k if first is not None and len(results) == 1 else None
    promises = [promise_of(guarantee, k) for guarantee in guarantees]
    return template.render(
        title=f"{name}: how the table was anonymized",
        lead=_lead(results, first, records),
        cards=[] if first is None or len(results) > 1 else _cards(first, seconds),
        header=_header(results, owner),
        rows=[_row(result, _bounded(results), owner) for result in results],
        frontier=_frontier(results, owner),
        analyses=_analyses(results) if owner else None,
        associations=[(result.name, _association(result)) for result in results] if owner else [],
        card=None if card is None else card.published,
        checked=f"{passed} of {checks} hold.",
        findings=[
            (result.name, finding.criterion, finding.holds, how_of(finding, owner))
            for result in results
            for finding in result.findings
        ],
        details=[detail_of(result, len(results) > 1) for result in detail_results if result.problem is None],
        columns=columns,
        attacks=[
            (
                row["attacker"],
                row["knows"],
                f"{100 * row['success']:.1f}%",
                f"{100 * row['worst']:.1f}%",
                f"{row['at_risk']:,}",
            )
            for row in attacks or ()
        ],
        sentences=[row["sentence"] for row in attacks or ()],
        warnings=warnings,
        promise=" ".join([*filter(None, promises), *_of_diversity(results)])
        or "The checks above name what each method promises.",
        limits=limits_of(*guarantees),
        version=__version__,
        flow=name,
    )


WITHOUT_FIGURES = ("covers", "k-regular", "aggregates")
"""Criteria that need the originals, and whose findings have no figure of theirs if they hold."""


def how_of(finding: Finding, owner: bool = False) -> str:
    """Return how a criterion was checked; of what counts values that no published cell shows, the figures are the owner's."""
    criterion = CRITERIA.get(finding.criterion)
    public = (
        finding.holds is None
        or criterion is None
        or (
            criterion.need(finding.parameters) == "rows"
            or (finding.holds and criterion.name in WITHOUT_FIGURES)
        )
    )
    sets = finding.parameters.get("sets")
    return (finding.detail if owner or public else "") or (
        "" if sets is None else f"{sets}: "
    ) + "from the data"


def template_named(name: str) -> Template:
    """Return a template of this folder, with its includes; everything in it is escaped."""
    return _templates().get_template(name)


@cache
def _templates() -> Environment:
    """Return all templates: each is compiled once, which takes as long as a report of a small table."""
    from jinja2 import Environment, FunctionLoader

    room = files("anonflow.engine.report")
    loader = FunctionLoader(lambda file: room.joinpath(file).read_text(encoding="utf-8"))
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=loader)
    environment.filters |= {"plural": plural, "verb_of": verb_of}
    return environment


def _of_diversity(results: Sequence[RunResult]) -> list[str]:
    """Return the promise of diversified runs, a sentence each."""
    return [
        f"{sentence}."
        for sentence in dict.fromkeys(promise for result in results for promise in result.promises)
    ]


def _lead(results: tuple[RunResult, ...], first: RunResult | None, records: int) -> str:
    if len(results) > 1 or first is None:
        return f"{plural(records, 'record')}, {len(results)} runs."
    criterion = criterion_of(first.guarantee)
    where = " on the named sets of columns" if criterion is not None and criterion.of_sets else ""
    return (
        f"{plural(records, 'record')}, each hidden{where} among k = {first.k} by the method {first.algorithm}, "
        f"which guarantees: {first.guarantee}."
    )


def _cards(result: RunResult, seconds: float) -> list[tuple[str, str]]:
    return [
        (f"{result.records:,}", "records"),
        (str(result.k), "k"),
        (or_dash(result.published_gcp), "information loss (GCP)"),
        (f"{result.suppressed:,}", "suppressed"),
        (result.checks, "checks passed"),
        (f"{seconds:.1f} s", "in all"),
    ]


def _bounded(results: Sequence[RunResult]) -> bool:
    """Return whether the flow measures lower bounds."""
    return any("lower-bound" in result.measures for result in results)


def _header(results: Sequence[RunResult], owner: bool) -> list[str]:
    columns = list(HEADER)
    if _bounded(results):
        at = HEADER.index("GCP") + 1
        columns[at:at] = BOUNDED
    return [name for name in columns if owner or name not in OWNERS]


def _gcp(result: RunResult, owner: bool) -> float | None:
    """Return the GCP: the owner's is on the domain of the originals."""
    return result.measures.get("gcp") if owner else result.published_gcp


def _row(result: RunResult, bounded: bool, owner: bool) -> list[str]:
    row = result.row()
    return [
        result.name,
        f"{result.records:,}",
        or_dash(_gcp(result, owner)),
        *(
            [
                or_dash(rounded_down(row.get("lower-bound"))),
                at_most_above(row.get("lower-bound-excess")) or "–",
            ]
            if bounded and owner
            else []
        ),
        *([or_dash(row["usefulness"])] if owner else []),
        f"{result.suppressed:,}",
        f"{result.seconds:.2f}",
        result.checks,
    ]


def detail_of(result: RunResult, several: bool) -> dict[str, Any]:
    """Return the pictures of one run: its losses, cells, sizes and patterns."""
    columns = result.published
    counted = [column for column in columns if not math.isnan(column.loss)]
    regular = result.kind == "matches"
    return {
        "of": f" · {result.name}" if several else "",
        "gcp": or_dash(result.published_gcp),
        "losses": plots.bars(
            [column.column for column in counted],
            [column.loss for column in counted],
            "Information loss by column",
        )
        if counted
        else "",
        "without": ", ".join(column.column for column in columns if column not in counted),
        "cells": plots.stacked(
            [column.column for column in columns],
            [column.shares for column in columns],
            "Cells as they were, generalized, hidden",
        ),
        "sizes_title": "Matches of each published row" if regular else "Class sizes",
        "sizes_text": _sizes_text(result, regular),
        "sizes": plots.columns(result.sizes, "Class sizes", "matches" if regular else "size of the class")
        if len(result.sizes) > 1
        else "",
        "patterns": _patterns(result),
    }


def _analyses(results: Sequence[RunResult]) -> dict[str, Any] | None:
    """Return the losses of analyses: a row for each number of the measures of analyses, a column for each run."""
    rows = []
    for name in utility.measures_of_analyses():
        measure = utility.MEASURES[name]
        keys = dict.fromkeys(
            key for result in results for key in utility.numbers_of_measure(name, result.measures)
        )
        for key in keys:
            # the measure decides which of two numbers is better, not its further numbers
            beside = key in {f"{name}-{part}" for part in ("null", "originals", "majority")}
            better = "" if beside else f"{measure.better} is better"
            rows.append((key, better, [or_dash(result.measures.get(key)) for result in results]))
    return {"runs": [result.name for result in results], "rows": rows} if rows else None


def _association(result: RunResult) -> Markup:
    """Return how strongly columns are associated, in the originals and in the release, if that was measured."""
    anonymization = result.anonymization
    if anonymization is None or "association" not in result.measures:
        return Markup("")
    associations = associations_of(anonymization.table, anonymization)
    return heat_map(
        associations.columns,
        associations.before,
        associations.after,
        "Association of columns before and after",
    )


def _patterns(result: RunResult) -> dict[str, Any] | None:
    """Return the grid of a pattern-guided run: the columns that are hidden together, and in how many rows."""
    anonymization = result.anonymization
    if anonymization is None or not anonymization.algorithm.hides:
        return None
    used, counts = np.unique(anonymization.generalization.whole().T, axis=0, return_counts=True)
    order = np.lexsort([-counts, used.sum(axis=1)])[:PATTERNS]
    return {
        "names": [domain.name for domain in anonymization.table.domains],
        "rows": [(["*" if hidden else "·" for hidden in used[at]], f"{int(counts[at]):,}") for at in order],
        "more": len(used) - len(order),
        "without": int(anonymization.facts.get("rows_without_pattern", 0)),
    }


def _sizes_text(result: RunResult, regular: bool) -> str:
    if not result.sizes:
        return ""
    if len(result.sizes) == 1:
        size = result.sizes[0][0]
        if regular:
            return f"Each of the {result.records:,} published rows is drawn from {plural(size, 'original')}."
        return f"Every class has {plural(size, 'record')}."
    if regular:
        return "How many originals each published row is drawn from; one is a suppressed row, which says nothing."
    return "How many records are published in classes of each size."


def _frontier(results: tuple[RunResult, ...], owner: bool) -> Markup:
    """Return the pictures of GCP against k, if there are several, and of the risk-utility frontier."""
    visible_results = (
        results if owner else [replace(run, measures={"gcp": run.published_gcp}) for run in results]
    )
    runs = runs_with_gcp(visible_results)
    if len(runs) < 2:
        return Markup("")
    parts = []
    if len({run.k for run in runs}) > 1:
        parts += [Markup("<h2>Information loss against k</h2>"), gcp_against_k(runs)]
    picture, best = risk_and_gcp(runs)
    if best:
        others = [run.name for run in runs if not promises_one_in_k(run.guarantee)]
        sentence = (
            f" Not drawn: {', '.join(others)}. What they guarantee is no probability." if others else ""
        )
        parts += [
            Markup(
                "<h2>Risk and utility</h2><p>The risk is what is promised, one in k; down and to the left is better. No run "
                "beats those on the dashed line in both: {}.{}</p>"
            ).format(", ".join(best), sentence),
            picture,
        ]
    return Markup("").join(parts)


def runs_with_gcp(results: Sequence[RunResult]) -> list[RunResult]:
    """Return the runs that ended and measured GCP."""
    return [run for run in results if run.problem is None and run.measures.get("gcp") is not None]


def gcp_against_k(runs: Sequence[RunResult]) -> Fragment:
    """Return a picture of the GCP of some runs against k, a line for each method."""
    series: dict[str, list[tuple[float, float]]] = {}
    for run in sorted(runs, key=lambda run: run.k):
        series.setdefault(run.algorithm, []).append((float(run.k), float(run.measures["gcp"])))
    return plots.lines(series, "GCP against k", "k", "GCP, lower is better")


def risk_and_gcp(runs: Sequence[RunResult]) -> tuple[Markup, list[str]]:
    """Return a picture of the risk-utility frontier of the runs that promise one in k, and the names of the runs on it; empty without any."""
    runs = [run for run in runs if promises_one_in_k(run.guarantee)]
    if not runs:
        return Markup(""), []
    points = [(run.algorithm, run.name, 1 / run.k, float(run.measures["gcp"])) for run in runs]
    best = frontier([risk for *_, risk, _ in points], [gcp for *_, gcp in points]).tolist()
    looks = {run.algorithm: look_of(run.algorithm) for run in runs}
    picture = risk_and_loss(points, best, "risk, 1/k", "GCP, lower is better", looks)
    return picture, [points[at][1] for at in best]


def left_out_of(table: Table) -> tuple[str, ...]:
    """Return the reasons why rows of the source are not in the table, a sentence each."""
    sentences = (
        (table.dropped, "record", " with a missing value", "."),
        (table.filtered, "row", "", " by a filter before."),
    )
    return tuple(
        f"{plural(count, noun)}{which} {verb_of(count, 'were')} left out{end}"
        for count, noun, which, end in sentences
        if count
    )


def of_means(table: Table) -> tuple[str, ...]:
    """Return the remark about columns that are published as means or medians, a sentence or none."""
    names = [name for name, column in table.schema.columns.items() if column.aggregate is not None]
    return (MEANS.format(", ".join(names)),) if names else ()


def columns_of(table: Table) -> list[tuple[str, str, str]]:
    """Return name, role and kind of every published column."""
    columns = []
    for name in table.frame.columns:
        column = table.schema[name]
        kind = column.kind or ""
        if column.aggregate is not None:
            kind = f"{kind}, published as the {column.aggregate} of a class"
        columns.append((str(name), column.role, kind))
    return columns
