"""Risk in the population from which a table was sampled: who is unique there, and how often a link is right."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd

from anonflow.criteria.classes import are_classes, is_of_classes, person_cells, person_keys
from anonflow.criteria.evidence import Evidence, collect, collect_alone, subject_of
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.option import Option
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import THRESHOLD, AttackerKind, Success, percent
from anonflow.table import Schema, Table
from anonflow.table.identification.population import Estimate, check_fraction, dankar, individual_risk
from anonflow.table.sampling_weights import sampling_fraction

_WIDTH = 100
"""Characters of a line of sentences, at most."""


@dataclass(frozen=True, eq=False, repr=False)
class PopulationRisk:
    """Estimates about the population from which a sample was drawn; see :func:`population_risk`.

    Attributes
    ----------
    records : int
        n, the number of records of the sample.
    people : float
        N, the number of people of the population: the sum of the weights, or n / fraction.
    chosen : Estimate or None
        Population uniques by the model that Dankar's rule picks; None if the models' assumptions do not hold.
    estimates : tuple of Estimate
        An estimate by each model.
    refused : str
        Why no model was tried; empty if they were.
    risks : numpy.ndarray, shape (n,), float64
        The individual risk of each record (Benedetti and Franconi 1998), for the owner only.
    fraction : float or None
        n / N of a simple random sample; None if weights are unequal.
    of_people : bool
        Whether people are counted, each with all rows: True if the schema has a unit.
    """

    records: int
    people: float
    chosen: Estimate | None
    estimates: tuple[Estimate, ...]
    refused: str
    risks: np.ndarray
    fraction: float | None = None
    of_people: bool = False

    @property
    def expected(self) -> float:
        """How many records are expected to be linked correctly."""
        return float(self.risks.sum())

    @property
    def average(self) -> float:
        """The mean of the individual risks."""
        return float(self.risks.mean())

    def above(self, threshold: float = THRESHOLD) -> float:
        """Return the share of records whose individual risk is greater than a threshold."""
        # equal to the threshold, but for rounding, is not above it
        return float((self.risks > threshold + 1e-12).mean())

    def frame(self) -> pd.DataFrame:
        """Return the models side by side: model, uniques, low, high, share of the population, chosen, and why."""
        rows = [
            (e.model, e.uniques, e.low, e.high, e.uniques / self.people, e is self.chosen, e.why)
            for e in self.estimates
        ]
        return pd.DataFrame(rows, columns=["model", "uniques", "low", "high", "share", "chosen", "why"])

    def sentences(self) -> list[str]:
        """Return the estimates as sentences of counts and rates."""
        if self.chosen is None:
            sentences = [f"Unique people of the population are not estimated: {self.refused}."]
        elif not self.chosen.is_there:
            sentences = [
                "How many people of the population are unique is not estimable by any of the models."
            ]
        else:
            best = self.chosen
            share = percent(min(best.uniques / self.people, 1.0))
            sentences = [
                f"About {best.uniques:,.0f} of {plural(round(self.people), 'person')} of the population "
                f"{verb_of(round(best.uniques), 'are')} unique ({share}; between "
                f"{best.low:,.0f} and {best.high:,.0f} {best.why}), by the model {best.model} that Dankar's rule picks."
            ]
        people = plural(self.records, "person" if self.of_people else "record")
        sentences.append(
            f"{self.expected:,.1f} of {people} are expected to be linked correctly by an attacker who does not know "
            f"who is in the sample: {percent(self.average)} on average, {percent(float(self.risks.max()))} at most."
        )
        return sentences

    def __repr__(self) -> str:
        lines = [
            f"  {e.model}: "
            + (f"{e.uniques:,.1f} ({e.low:,.1f} to {e.high:,.1f} {e.why})" if e.is_there else e.why)
            for e in self.estimates
        ]
        sentences = [
            textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
            for text in self.sentences()
        ]
        return "\n".join(["PopulationRisk", *sentences, *lines])


def population_risk(
    table: Table | Schema, release: Any = None, *, fraction: float | None = None
) -> PopulationRisk:
    """Return population uniques and every record's individual risk, on the original keys or on a release's classes.

    Parameters
    ----------
    table : Table or Schema
        The sample, or only the schema of the release.
    release : Release, Anonymization, pandas.DataFrame or path, optional
        A release of classes; by default the quasi-identifiers of the table are used.
    fraction : float, optional
        n / N of a simple random sample, above 0 and at most 1; by default the table's column with the role ``weight`` is used.

    Returns
    -------
    PopulationRisk
        The models Zayatz, Pitman and SNB, and the one that Dankar's rule picks, assume a simple random sample: with unequal
        weights they are refused, and only the individual risks remain. "Not estimable" does not mean 0. If the table has
        units, people are counted: all rows of a person are one key. A release alone does not say whose its rows are, so
        rows are counted there.

    Raises
    ------
    ParameterError
        If there is neither a fraction nor a weight, or both; if the fraction is outside its domain; or if the release is
        not of classes, which the models need.
    DataError
        If a weight is missing, not a number, or below 1; or if the release cannot be read.
    """
    if release is None:
        if not isinstance(table, Table):
            raise ParameterError("population_risk needs a table, or a release with its schema")
        return _risk(table, person_keys(table, table.records.classes()), fraction, "")
    return _risk_of_rows(table, _evidence(table, release), fraction)


def _risk(
    table: Table | Schema,
    cells: tuple[np.ndarray, np.ndarray | None],
    fraction: float | None,
    refused: str,
) -> PopulationRisk:
    """Return the risk from the cell and the weight of each record or person; without models, if `refused` says why."""
    labels, weights = cells
    of_people = isinstance(table, Table) and table.unit is not None
    if fraction is not None and weights is not None:
        raise ParameterError("the table has a weight; leave the sampling fraction out, or the weight's role")
    sizes = np.bincount(labels)
    n = len(labels)
    if weights is not None:
        people: np.ndarray = np.bincount(labels, weights)
        fraction = sampling_fraction(weights)
    elif fraction is not None:
        people = sizes / check_fraction(fraction)
    else:
        raise ParameterError(
            "a population needs a sampling fraction, such as fraction=0.05, or a column of the role weight"
        )
    risks = individual_risk(sizes, people)[labels]
    total = float(people.sum())
    if fraction is None:
        refused = "the weights are unequal, and the models assume a simple random sample"
    if fraction is None or refused:
        return PopulationRisk(n, total, None, (), refused, risks, fraction, of_people)
    chosen, estimates = dankar(sizes, fraction)
    return PopulationRisk(n, total, chosen, tuple(estimates), "", risks, fraction, of_people)


def _risk_of_rows(table: Table | Schema, evidence: Evidence, fraction: float | None) -> PopulationRisk:
    """Return the risk of a release of classes.

    Raises
    ------
    ParameterError
        If it is not of classes.
    """
    if not are_classes(evidence):
        raise ParameterError(
            "the rows of this release overlap and are no classes (freeform, or hidden cells beside shown ones): models of a population need "
            "classes; use the table itself, or a release of classes"
        )
    refused = "" if is_of_classes(evidence) else _OVERLAPPING
    return _risk(table, person_cells(evidence), fraction, refused)


_OVERLAPPING = "classes of this release overlap, and the models need cells that do not; use the table itself"


def _evidence(table: Table | Schema, release: Any) -> Evidence:
    published = subject_of(release, table)
    if published.frame is None:
        if not isinstance(table, Table):
            raise ParameterError("an anonymization is looked at against its table, or drawn first")
        return collect(table, published, published.k or 2, None)
    if isinstance(table, Schema):
        return collect_alone(published.frame, table, 2)
    certificate = getattr(published, "certificate", None)
    return collect(table, published, published.k or 2, certificate, another_tool=certificate is None)


@dataclass(frozen=True)
class Population(
    AttackerKind,
    name="population",
    of_classes=True,
    of_population=True,
    usual_where=lambda context: (
        context.table.schema.weight_column in context.frame.columns and are_classes(context.evidence)
    ),
    does="knows the population's size",
    reads_rows_alone=True,
    knows="a person's quasi-identifiers, and from how large a population the table was sampled",
):
    """Links rows to people of the population, without knowing who is in the sample.

    Parameters
    ----------
    fraction : float, optional
        n / N of a simple random sample; by default the table's column with the role ``weight`` is used.
    threshold : float
        People with a larger risk are counted.
    """

    fraction: Annotated[float | None, Option("Sampling fraction", above=0, most=1)] = None
    threshold: Annotated[float, Option("Threshold", above=0, most=1)] = THRESHOLD

    def __post_init__(self) -> None:
        if self.fraction is not None:
            check_fraction(self.fraction)
        super().__post_init__()

    def schema_problem(self, schema: Schema) -> str | None:
        """Return that there is neither a fraction nor a weight, or both."""
        weight = schema.weight_column
        if self.fraction is None and weight is None:
            return (
                "'population' needs a sampling fraction, such as {population: {fraction: 0.05}}, or a column of the role "
                "weight"
            )
        if self.fraction is not None and weight is not None:
            return f"'population': column {weight!r} is a weight; leave the sampling fraction out, or the weight's role"
        return None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(n) and the fits of the models.

        Raises
        ------
        ParameterError
            If there is neither a fraction nor a weight, or the release is not of classes.
        DataError
            If a weight is not valid.
        """
        of = context.table if context.schema is None else context.schema
        estimate = _risk_of_rows(of, context.evidence, self.fraction)
        return Success(
            estimate.records, estimate.average, float(estimate.risks.max()),
            int((estimate.risks > self.threshold + 1e-12).sum()), 1 / context.k,
            " ".join(estimate.sentences()),
        )  # fmt: skip
