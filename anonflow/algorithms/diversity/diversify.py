"""Diversity as a step after any method: the rows that may be a person's show enough different sensitive values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.assembly import Assembly
from anonflow.algorithms.concealment.expansion import unloaded
from anonflow.algorithms.diversity.refusal import CONFIDENCE, refusal_at_least, refusal_at_most
from anonflow.algorithms.diversity.target import (
    DIVERSITIES,
    check_parameters,
    sensitive_column,
    targets_of,
)
from anonflow.algorithms.diversity.widen_matches import widened
from anonflow.algorithms.diversity.within_partition import (
    WAYS,
    Diverse,
    Request,
    diverse_partition,
)
from anonflow.algorithms.method import Outcome, Partition
from anonflow.criteria.boundaries import beyond_cells
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.kernels.costs import load
from anonflow.option import is_finite
from anonflow.partition import kept_apart, limited, unbounded
from anonflow.release.randomness import checked_seed, derived_seed
from anonflow.table import Table
from anonflow.table.records import Records, matches_among

STEP = 2
"""The part of a seed's stream that this step uses; algorithms use 0, the draw 1."""


def diversify(
    anon: Anonymization,
    criterion: str = "l-diversity",
    *,
    column: str | None = None,
    w: float = 0.15,
    risk: float = 0.01,
    seed: int | None = None,
    way: str = "classes",
    **parameters: float | None,
) -> Anonymization:
    """Make the sensitive values on the rows that may be a person's diverse, before the draw, partition by partition.

    Parameters
    ----------
    anon : Anonymization
        Of any method; it stays as it is. One that was diversified before keeps what it has: for several sensitive
        columns, diversify for one after the other.
    criterion : str
        ``p-sensitivity`` (p distinct values), ``l-diversity`` (none has a share above 1/l), ``entropy-l-diversity``,
        ``recursive-l-diversity`` (c, l), ``t-closeness`` (t), ``beta-likeness`` and ``enhanced-beta-likeness`` (beta),
        ``delta-disclosure`` (delta) or ``alpha-k-anonymity`` (alpha).
    column : str, optional
        The sensitive column; the only one without it.
    w : float
        Has no effect: weighing losses by sensitive values would tell them.
    risk : float
        Of the way blind: the chance that a draw fails the criterion and must be refused.
    seed : int, optional
        Of throwaway draws, of what clusters start with, and of the order in which records are visited.
    way : {"classes", "blind"}
        Of k-regular results: all records become classes, which are united where values are not diverse; or the method
        runs again with more matches for everybody, which looks at nobody's value.
    **parameters
        What the criterion needs: its p, l, c, t, beta, delta or alpha.

    Returns
    -------
    Anonymization
        Its facts: ``diversity``, the criterion; ``widened``, how many classes united, records became classes, or pairs
        of records were widened; ``without_diversity``, how many records a method suppressed because their partition has
        too little; ``refusal``, an upper bound (confidence 95%) of the chance that a draw fails, 0 where
        no draw changes anything; ``k_member_gcp``, what diverse ``k-member`` loses, of freeform methods that became
        classes, and ``compared``, a sentence about losses before and after; ``promise``, what is promised, in words.

    Raises
    ------
    ParameterError
        If an argument is outside its domain, or names no criterion or column; or if the result was made with earlier releases.
    InfeasibleError
        If the whole table has less diversity, also without fewer than k suppressed records (with the largest feasible value), a partition or the suppressed records
        have less, records would go beyond ``max-width`` or ``max-set``, partitions are too small for the blind way, or the
        blind way would refuse more draws than `risk` says.

    Notes
    -----
    Values are counted on the k rows that list a record, never on rows that merely cover it: who runs the method again
    tells them apart. Classes are united along a tree that quasi-identifiers determine
    (:func:`anonflow.algorithms.diversity.merge_classes.united`), so that the reason for a union names nobody; graphs become
    classes or get more rows (:func:`anonflow.algorithms.diversity.within_partition.diverse_partition`). This loses more
    than steps that choose by values, whose reasons name people: :data:`anonflow.algorithms.diversity.target.PRICE` has figures,
    *What diversity promises* more of them.
    t-closeness measures against the whole table's distribution in every partition.

    Full-domain generalization and local recoding choose their levels again, among those that keep the criterion
    (:func:`anonflow.algorithms.recoding.full_domain.full_domain`); given `levels` stay. Whoever runs them again may learn more than the counts.

    Of the way blind, throwaway draws of the whole table say how often it would be refused. Publishing only draws that
    pass raises the probability of a match from 1/k to at most 1/(k(1 - refusal)).

    Results of k-concealment have neither classes nor lists: they are widened along the matches of the whole table
    (Tassa 2012, Algorithm 7), with the record's own value on its row. That holds only against attackers who cannot
    rerun the method.

    At least k suppressed records are a class like others; fewer are not published. A partition or boundary that has less
    diversity refuses the whole table: suppressing it alone would tell why.
    """
    if not isinstance(anon, Anonymization):
        raise ParameterError(f"diversify takes an Anonymization, not a {type(anon).__name__}")
    if anon.frozen is not None:
        raise ParameterError(
            "diversify would unite the cohorts of people who were published before; make the first release diverse"
        )
    return with_diverse_parts(
        anon, None, criterion, column=column, w=w, risk=risk, seed=seed, way=way, **parameters
    )


def with_diverse_parts(
    anon: Anonymization,
    parts: DiverseParts | None,
    criterion: str,
    *,
    column: str | None,
    w: float,
    risk: float,
    seed: int | None,
    way: str,
    **parameters: float | None,
) -> Anonymization:
    """Return :func:`diversify` where the outcome of every partition is there already.

    Parameters
    ----------
    anon : Anonymization
    parts : DiverseParts or None
        With the outcome of every partition; None: they are computed here.
    criterion, column, w, risk, seed, way, **parameters
        As :func:`diversify` takes them.

    Raises
    ------
    ParameterError, InfeasibleError
        As :func:`diversify`.
    """
    for name, share in (("w", w), ("risk", risk)):
        if not is_finite(share) or not 0 <= share <= 1 or (name == "risk" and share == 1):
            raise ParameterError(f"{name} is a number between 0 and 1", subject="diversify")
    if way not in WAYS:
        raise ParameterError(f"way is {' or '.join(WAYS)}", subject="diversify")
    if anon.algorithm.diversity_problem is not None:
        raise ParameterError(anon.algorithm.diversity_problem, subject="diversify")
    table = anon.table
    name = sensitive_column(column, tuple(table.sensitive), tuple(table.other_columns))
    request = {
        "criterion": criterion,
        "column": name,
        **check_parameters(criterion, parameters),
    }
    DIVERSITIES[criterion].target.check_k(name, int(table.frame[name].nunique(dropna=False)), anon.k)
    earlier = [
        other_request for other_request in anon.parameters.get("diversified", ()) if other_request != request
    ]
    step = _TableDiversification(anon, [*earlier, request], float(risk), seed, way)
    diverse = step.run(parts)
    _check_limits(anon, diverse)
    diverse.parameters["diversify"] = request
    diverse.parameters["diversified"] = [*earlier, request]
    diverse.facts["diversity"] = criterion
    settings = {"column": name, "w": w, "risk": risk, "seed": step.entropy, "way": way, **parameters}
    diverse.replay = partial(_replayed, anon, criterion, settings)
    diverse.rerun = partial(_rerun, anon, criterion, settings)
    return diverse


def _replayed(
    anon: Anonymization, criterion: str, settings: Mapping[str, Any], table: Table
) -> Anonymization:
    """Return the step on a table with other sensitive values."""
    return diversify(anon.of_table(table), criterion, **settings)


def _rerun(
    anon: Anonymization, criterion: str, settings: Mapping[str, Any], seed: int | bytes | str | None
) -> Anonymization:
    """Return the method and the step with another seed."""
    return diversify(anon.again(seed), criterion, **{**settings, "seed": seed})


def diverse_part(
    records: Records,
    number: int,
    outcome: Outcome,
    values: np.ndarray,
    request: Request,
    entropy: int,
) -> Diverse:
    """Make a method's outcome of one partition diverse; all drivers call this function, here and on a cluster.

    Parameters
    ----------
    records : Records
        P records, as the method saw them: with their boundaries, or without.
    number : int
        Of the partition.
    outcome, values, request
        As :func:`~anonflow.algorithms.diversity.within_partition.diverse_partition` takes them.
    entropy : int
        The run's seed.

    Raises
    ------
    InfeasibleError
        As that function.
    """
    generalization, matches = outcome.generalization, outcome.matches
    if matches is not None:
        width = max(1, int((matches >= 0).sum(axis=1).max(initial=1)))
        matches = matches[:, :width].astype(np.int32)
    plain = Generalization(records.domains, generalization.lo, generalization.hi, generalization.bits)
    part = Partition(records, request.loss, diversity_rng(entropy, number, records))
    in_form = replace(
        outcome,
        generalization=plain.with_suppressed(outcome.suppressed),
        matches=matches,
        facts={},
    )
    return diverse_partition(part, in_form, values, request)


def diversity_rng(entropy: int, partition: int, records: Records) -> np.random.Generator:
    """Return the generator for one partition, -1 for the whole table; it depends on its arguments alone."""
    step_seed = derived_seed(derived_seed(entropy, "diversify"), f"records {records.fingerprint()}")
    return np.random.default_rng(np.random.SeedSequence(step_seed, spawn_key=(STEP, partition + 1)))


def _promise(request: Request, with_matches: bool, moves: bool, bound: float) -> str:
    """Return the guarantee of a result with classes or matches, as a sentence.

    Parameters
    ----------
    request : Request
    with_matches : bool
        Whether rows list people.
    moves : bool
        Whether a draw changes what some rows show.
    bound : float
        Upper bound of the chance that a draw is refused.
    """
    if request.way == "blind":
        rows = "the rows that list a person" if with_matches else "a person's class"
        knowledge = (
            f"an attacker who runs the method again knows a person's value with a probability equal to its share on {rows}, "
            "as long as values may be exchanged between people; the method did not look at them"
        )
    elif request.again or request.keep_apart:
        knowledge = (
            "an attacker who knows a person's class, but not why, knows the person's value with a probability equal to its "
            "share there; the method chose among classes by their values, so an attacker who runs it again may know values "
            "for certain (the attacker minimality measures it)"
        )
    else:
        knowledge = (
            "an attacker who runs the method again knows a person's value with a probability equal to its share in the "
            "person's class, as long as values may be exchanged between people; where united classes have different sizes "
            "it may be higher (the attacker minimality measures it)"
        )
    if not moves:
        return f"No draw changes what a person's rows show: {knowledge}"
    return (
        f"At most {bound:.2%} of draws are refused (confidence {CONFIDENCE:.0%}, {request.draws:,} throwaway "
        f"draws), so that a match is the true one with a probability of at most {1 / (request.k * (1 - bound)):.4f}: "
        f"{knowledge}"
        if bound < 1
        else f"Every draw is refused: {knowledge}"
    )


def _check_limits(anon: Anonymization, diverse: Anonymization) -> None:
    """Refuse classes that break ``max-width`` or ``max-set``: closing keeps boundaries only."""
    names = limited(anon.table.records)
    if not names or not anon.parameters.get("boundaries", True):
        return
    over = beyond_cells(anon.table.records, diverse.generalization, diverse.suppressed)[list(names)]
    records = int(over.any(axis=0).sum())
    if records:
        columns = ", ".join(repr(anon.table.domains[a].column) for a in names)
        raise InfeasibleError(
            f"{plural(records, 'record')} would be generalized beyond max-width or max-set "
            f"of {columns}; ask for less diversity, allow more, or give boundaries ({{width: w}}) instead",
            subject="diversify",
        )


def _suppressed_in_words(before: int, after: int, partitions: int) -> str:
    """Return how many more records are suppressed for diversity, as a clause that follows the losses; empty for none.

    Parameters
    ----------
    before, after : int
        Suppressed records of the method, and of its diverse result.
    partitions : int
        Parts of the table that were made diverse.

    Notes
    -----
    Not apart: those of partitions that have less diversity, and those that join them so that the suppressed ones are diverse. Who knows
    everybody's partition could tell by the two numbers which partitions have few values.
    """
    count = after - before
    if count <= 0:
        return ""
    advice = "; larger partitions have more" if partitions > 1 else ""
    return f"; {plural(count, 'more record', 'are')} suppressed for diversity{advice}"


class DiverseParts:
    """The diverse outcomes of partitions as one, and their figures added up.

    Parameters
    ----------
    assembly : Assembly
        An empty one.

    Attributes
    ----------
    refused : numpy.ndarray, shape (draws,), bool
        Throwaway draws that fail for some record.
    moves : bool
        Whether a draw changes what some rows show.
    steps, lost : int
        As of :class:`Diverse`.
    number : int
        Partitions.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self.number = 0
        self.refused = np.zeros(1, bool)
        self.moves = False
        self.steps = self.lost = 0

    def add(self, part: int, diverse: Diverse) -> None:
        """Write the outcome of a partition."""
        self._assembly.add(part, [diverse.outcome])
        self.number += 1
        self.refused = self.refused | diverse.refused
        self.moves |= bool(diverse.open)
        self.steps += diverse.steps
        self.lost += diverse.lost

    def whole(self) -> Outcome:
        """Return the outcome of all records."""
        return self._assembly.whole()

    @property
    def refusal(self) -> float:
        """An upper bound of the chance that a draw is refused; 0 where no draw changes anything."""
        if not self.moves and not self.refused.any():
            return 0.0
        return refusal_at_most(int(self.refused.sum()), len(self.refused))


class _TableDiversification:
    """One diversification of one result."""

    def __init__(
        self,
        anon: Anonymization,
        requested: Sequence[Mapping[str, Any]],
        risk: float,
        seed: int | None,
        way: str,
    ) -> None:
        self.anon, self.way, self.risk = anon, way, risk
        self.entropy = checked_seed(seed)
        self.bounded = bool(anon.parameters.get("boundaries", True))
        records = anon.table.records
        self.records = records if self.bounded else unbounded(records)
        self.zones = kept_apart(self.records)
        self.loss = str(anon.parameters.get("loss", "ncp"))
        options = {name: anon.parameters[name] for name in anon.algorithm.options if name in anon.parameters}
        hidden = int(anon.suppressed.sum())
        # fewer than k suppressed records are no class
        spare = anon.k - 1 if anon.algorithm.is_diverse(options) else hidden if hidden < anon.k else 0
        self.targets, self.values = targets_of(anon.table, requested, spare)
        if way == "blind" and anon.matches is None and anon.classes is None:
            raise ParameterError(
                "the way blind needs a method with matches or classes; use the way classes",
                subject="diversify",
            )
        method = anon.algorithm.name, self.loss, anon.parameters
        self.request = Request.of(self.targets, anon.n, anon.k, method, way, risk)

    def run(self, parts: DiverseParts | None) -> Anonymization:
        labels = self._labels()
        if self.anon.matches is None and labels is None:
            return self._of_covers()
        if parts is None:
            index = self._index()
            parts = DiverseParts(Assembly(self.records.domains, self.anon.n, index))
            for number, at in enumerate(index):
                outcome = self._outcome(at, labels)
                few, values = self.records.take(at), self.values[at]
                parts.add(number, diverse_part(few, number, outcome, values, self.request, self.entropy))
        if self.way == "blind":
            self._check_blind(parts.refused)
        return self._assembled(parts)

    def _check_blind(self, refused: np.ndarray) -> None:
        """Refuse the way blind where too many throwaway draws of the whole table fail, shape (draws,), bool."""
        if refusal_at_least(int(refused.sum()), len(refused)) > self.risk:
            raise InfeasibleError(
                f"{int(refused.sum())} of {len(refused)} throwaway draws would be refused with "
                f"{self.request.rows:,} rows for each person, because values follow the quasi-identifiers; "
                "use the way classes, or ask for less diversity",
                subject="diversify",
            )

    def _index(self) -> Sequence[np.ndarray]:
        if self.anon.partitions is not None and (
            self.anon.classes is not None or self.anon.matches is not None
        ):
            return self.anon.partitions
        return [np.flatnonzero(self.zones == zone) for zone in np.unique(self.zones)]

    def _labels(self) -> np.ndarray | None:
        """Return classes of equal records, also of methods that do not promise them but have made them."""
        if self.anon.classes is not None:
            return self.anon.classes
        if self.anon.matches is not None:
            return None
        labels = np.where(self.anon.suppressed, -1, self.anon.generalization.classes())
        sizes = np.unique(labels[~self.anon.suppressed], return_counts=True)[1]
        return labels if len(sizes) and sizes.min() >= self.anon.k else None

    def _outcome(self, at: np.ndarray, labels: np.ndarray | None) -> Outcome:
        """Return the method's outcome of a partition."""
        anon = self.anon
        generalization, suppressed = anon.generalization.take(at), anon.suppressed[at]
        if anon.matches is None:
            return Outcome(
                generalization, classes=None if labels is None else labels[at], suppressed=suppressed
            )
        return Outcome(generalization, matches=matches_among(anon.matches, at), suppressed=suppressed)

    # ------------------------------------------------------------------------------------ assembly

    def _assembled(self, parts: DiverseParts) -> Anonymization:
        anon = self.anon
        whole = parts.whole()
        matches, classes, suppressed = whole.matches, whole.classes, whole.suppressed
        self._check_suppressed(suppressed)
        if matches is not None:
            matches[suppressed] = -1
            matches[suppressed, 0] = np.flatnonzero(suppressed)
        if classes is not None and suppressed.any():  # they are the first class here
            classes += 1
            classes[suppressed] = 0
        facts: dict[str, Any] = {"widened": parts.steps, "refusal": parts.refusal}
        if self.request.again:
            facts |= whole.facts
        result = self._anonymization(
            whole.generalization, classes if anon.classes is not None else None, matches, suppressed, facts
        )
        if matches is not None and self.way != "blind":
            result.facts["k_member_gcp"] = result.loss("ncp")
        if parts.lost:
            result.facts["without_diversity"] = parts.lost
        result.facts["compared"] += _suppressed_in_words(
            int(anon.suppressed.sum()), int(suppressed.sum()), parts.number
        )
        result.facts["promise"] = _promise(
            self.request, anon.matches is not None, parts.moves, result.facts["refusal"]
        )
        return result

    def _check_suppressed(self, suppressed: np.ndarray) -> None:
        """Refuse k or more suppressed records that are not diverse, because others that join them would tell their values; and all of them."""
        hidden = int(suppressed.sum())
        counts = self.targets.counts(self.values[suppressed], np.zeros(hidden, np.int64), 1)
        if hidden >= self.anon.k and self.targets.gaps(counts)[0] > 0:
            raise InfeasibleError(
                "the suppressed records have less diversity than is asked for; ask for less, use larger partitions, "
                "or change the options so that fewer records are suppressed",
                subject="diversify",
            )
        if hidden == self.anon.n:
            raise InfeasibleError(
                "classes with less diversity than is asked for are suppressed, and none is left; ask for less diversity, "
                "use larger partitions, or allow wider generalizations",
                subject="diversify",
            )

    # -------------------------------------------------------------------------------------- covers

    def _of_covers(self) -> Anonymization:
        """Run Algorithm 7 on the whole table: covers reach across partitions."""
        anon = self.anon
        part = Partition(self.records, self.loss, diversity_rng(self.entropy, -1, self.records))
        suppressed = anon.suppressed.copy()
        while True:
            suppressed = self._without_hopeless(suppressed)
            generalization = anon.generalization.with_suppressed(suppressed)
            boxes = load(part.plan, generalization.lo, generalization.hi, generalization.bits)
            row_values = np.zeros((anon.n, self.targets.size), np.int64)
            if suppressed.sum() >= anon.k:
                shown_rows = np.arange(anon.n)
            else:
                shown_rows = np.flatnonzero(~suppressed)
            for column in self.values.T:
                row_values[shown_rows, column[shown_rows]] = 1
            steps, failing = widened(part, boxes, row_values, self.zones, suppressed, self.targets)
            if not failing.any():
                break
            lost = np.isin(self.zones, self.zones[failing & ~suppressed])
            if not (lost & ~suppressed).any():  # suppressed records fail: the smallest zone joins them
                zones, sizes = np.unique(self.zones[~suppressed], return_counts=True)
                lost = self.zones == zones[int(np.argmin(sizes))]
            suppressed = suppressed | lost
        generalization = unloaded(self.records, part.plan, boxes, self.zones).join(generalization)
        result = self._anonymization(generalization, None, None, suppressed, {"widened": steps})
        result.facts["compared"] += _suppressed_in_words(
            int(anon.suppressed.sum()), int(suppressed.sum()), len(np.unique(self.zones))
        )
        result.facts["promise"] = (
            "Values are counted on rows that cover a person on a complete matching: "
            "this holds only against attackers who cannot rerun the method"
        )
        return result

    def _without_hopeless(self, suppressed: np.ndarray) -> np.ndarray:
        """Return the suppressed records, and the zones with too little diversity, until the remaining records can be diverse."""
        suppressed = suppressed.copy()
        while True:
            live_zones = np.unique(self.zones[~suppressed])
            if not len(live_zones):
                raise InfeasibleError(
                    "boundaries with less diversity than is asked for are suppressed, with whole others until the suppressed "
                    "records are diverse, and none is left; ask for less diversity, or allow wider boundaries",
                    subject="diversify",
                )
            index = np.where(suppressed, len(live_zones), np.searchsorted(live_zones, self.zones))
            counts = np.zeros((len(live_zones) + 1, self.targets.size), np.int64)
            np.add.at(counts, (np.minimum(index, len(live_zones))[:, None], self.values), 1)
            lacking = self.targets.gaps(counts) > 0
            lacking[-1] &= int(suppressed.sum()) >= self.anon.k
            if not lacking.any():
                return suppressed
            if not lacking[:-1].any():
                lacking[int(np.argmin(counts[:-1].sum(axis=1)))] = True  # the smallest zone joins them
            suppressed |= lacking[:-1][np.minimum(index, len(live_zones) - 1)] & (index < len(live_zones))

    def _anonymization(
        self,
        generalization: Generalization,
        classes: np.ndarray | None,
        matches: np.ndarray | None,
        suppressed: np.ndarray,
        facts: Mapping[str, Any],
    ) -> Anonymization:
        anon = self.anon
        table_generalization = Generalization(
            anon.table.domains, generalization.lo, generalization.hi, generalization.bits
        ).with_suppressed(suppressed)
        if classes is not None and anon.algorithm.has_fixed_cells(anon.parameters):
            # whoever is suppressed for diversity may alone have a value at which an interval ends
            table_generalization = table_generalization.narrowed(anon.table.records)
        result = replace(
            anon,
            generalization=table_generalization,
            matches=matches,
            classes=classes,
            suppressed=suppressed,
            facts={**anon.facts, **facts},
            parameters=dict(anon.parameters),
        )
        result.facts.update(anon.algorithm.whole_facts(self.records, suppressed, anon.k, anon.parameters))
        # of classes that k-member made of a graph, the method has no part in the loss any more
        of_k_member = matches is not None and self.way != "blind"
        result.facts["compared"] = (
            f"GCP {result.loss('ncp'):.4f}, {anon.loss('ncp'):.4f} before it was made diverse"
            + (", as much as diverse k-member, whose classes these are" if of_k_member else "")
        )
        return result
