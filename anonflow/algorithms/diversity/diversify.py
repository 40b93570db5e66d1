"""Diversity as a step after any method: what is published shows enough sensitive values for everybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.concealment.expansion import unloaded
from anonflow.algorithms.diversity.merge_classes import united
from anonflow.algorithms.diversity.target import (
    Target,
    check_parameters,
    sensitive_codes,
    sensitive_column,
    target_of,
)
from anonflow.algorithms.diversity.widen_matches import Shown, widened
from anonflow.algorithms.method import Partition
from anonflow.algorithms.seeds import checked_seed, derived_seed
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.state import State, take
from anonflow.partition import boundary_classes, limited, unbounded
from anonflow.table import Table
from anonflow.utility.violations import beyond_cells

__all__ = ["check_diversity", "diversify"]

STEP = 2
"""The part of a seed's stream that this step uses; algorithms use 0, the draw 1."""


def check_diversity(table: Table, criterion: str, column: str | None = None, **parameters: Any) -> Target:
    """Refuse a diversity that no release of a table can have, before any work is done.

    Parameters
    ----------
    table : Table
    criterion : str
    column : str, optional
    **parameters
        As :func:`diversify` takes them.

    Raises
    ------
    ParameterError
        If the criterion, the column or a parameter cannot be used.
    InfeasibleError
        If the whole table has less diversity; with the largest feasible value.
    """
    column = sensitive_column(column, tuple(table.sensitive), tuple(table.other_columns))
    check_parameters(criterion, parameters)
    codes, values, numeric = sensitive_codes(table, column)
    target = target_of(criterion, parameters, codes, values, numeric)
    target.refuse(np.bincount(codes, minlength=values), column)
    return target


def diversify(
    anon: Anonymization,
    criterion: str = "l-diversity",
    *,
    column: str | None = None,
    p: int | None = None,
    l: float | None = None,
    c: float | None = None,
    t: float | None = None,
    w: float = 0.15,
    risk: float = 0.01,
    seed: int | None = None,
) -> Anonymization:
    """Generalize further, until the rows that may be a person's show diverse sensitive values.

    Parameters
    ----------
    anon : Anonymization
        Of any method; it stays as it is.
    criterion : str
        ``p-sensitivity`` (p distinct values), ``l-diversity`` (none has a share above 1/l), ``entropy-l-diversity``,
        ``recursive-l-diversity`` (c, l) or ``t-closeness`` (t).
    column : str, optional
        The sensitive column; the only one without it.
    p, l, c, t : number, optional
        What the criterion needs.
    w : float
        Of classes: weight of the information loss against diversity (paper 4, equation 10).
    risk : float
        Of k-regular results: the chance, as if rows were drawn independently, that the release fails the criterion
        and must be refused. Less risk, more loss.
    seed : int, optional
        For the random order in which records are visited.

    Returns
    -------
    Anonymization
        ``facts["diversity"]`` says the criterion, ``facts["widened"]`` how many pairs of records were widened for each
        other, or how many classes united.

    Raises
    ------
    ParameterError
        If something is none that can be used.
    InfeasibleError
        If the whole table has less diversity (with the largest feasible value), everything would be suppressed, or
        records would go beyond ``max-width`` or ``max-set``.

    Notes
    -----
    Classes are united (paper 4, Algorithm 8). Results of k-concealment are widened along their matches (Algorithm 7),
    with the record's own value on its row. A k-regular result shows its values only after the draw, of which there is
    one: it is widened beforehand, without looking at the draw, by what each row may show, so that the release keeps
    the criterion but for the chance `risk`; verify it (``af.verify``) and refuse it if it does not. What it is widened
    by are covers, not matches: the values on all rows that cover a record count, yet each match is still the true one
    with probability 1/k, and who runs the method again tells matches from covers.

    Suppressed records, where they are at least k, are a class like others; fewer show nothing. Within boundaries, what
    cannot be made diverse is suppressed.
    """
    if not isinstance(anon, Anonymization):
        raise ParameterError(f"diversify takes an Anonymization, not a {type(anon).__name__}")
    for name, share in (("w", w), ("risk", risk)):
        good = isinstance(share, int | float) and not isinstance(share, bool) and 0 <= share <= 1
        if not good or (name == "risk" and not 0 < share < 1):
            raise ParameterError(f"diversify: {name} is a number between 0 and 1")
    table = anon.table
    parameters = {"p": p, "l": l, "c": c, "t": t}
    name = sensitive_column(column, tuple(table.sensitive), tuple(table.other_columns))
    target = check_diversity(table, criterion, name, **parameters)
    codes, values, _ = sensitive_codes(table, name)
    step = _Step(anon, target, codes, values, float(w), float(risk), seed)
    made = step.of_classes() if step.homogeneous else step.of_matches()
    _check_limits(anon, made)
    said = {"criterion": criterion, "column": name, **target.parameters}
    made.parameters["diversify"] = said
    made.facts["diversity"] = criterion
    return made


def _check_limits(anon: Anonymization, made: Anonymization) -> None:
    """Widening knows boundaries, not ``max-width`` and ``max-set``: what breaks one of these is refused."""
    names = limited(anon.table.records)
    if not names or not anon.parameters.get("boundaries", True):
        return
    over = beyond_cells(anon.table.records, made.generalization, made.suppressed)[list(names)]
    if over.any():
        columns = ", ".join(repr(anon.table.domains[a].column) for a in names)
        raise InfeasibleError(
            f"diversify: {int(over.any(axis=0).sum())} records would be generalized beyond max-width or max-set "
            f"of {columns}; ask for less diversity, allow more, or give boundaries ({{width: w}}) instead"
        )


class _Step:
    """One diversification of one result."""

    def __init__(
        self,
        anon: Anonymization,
        target: Target,
        codes: np.ndarray,
        values: int,
        w: float,
        risk: float,
        seed: int | None,
    ) -> None:
        self.anon, self.target, self.codes, self.values, self.w, self.risk = (
            anon,
            target,
            codes,
            values,
            w,
            risk,
        )
        bounded = bool(anon.parameters.get("boundaries", True))
        records = anon.table.records
        self.zones = boundary_classes(records) if bounded else np.zeros(records.n, np.int64)
        own = derived_seed(checked_seed(seed), "diversify")
        rng = np.random.default_rng(np.random.SeedSequence(own, spawn_key=(STEP,)))
        self.part = Partition(records if bounded else unbounded(records), _measure(anon), rng)
        self.labels = self._labels()

    def _labels(self) -> np.ndarray | None:
        """Classes of equal records, also of methods that do not promise them but have made them."""
        if self.anon.classes is not None:
            return self.anon.classes
        if self.anon.matches is not None:
            return None
        labels = np.where(self.anon.suppressed, -1, self.anon.generalization.classes())
        sizes = np.unique(labels[~self.anon.suppressed], return_counts=True)[1]
        return labels if len(sizes) and sizes.min() >= self.anon.k else None

    @property
    def homogeneous(self) -> bool:
        """Whether there are classes."""
        return self.labels is not None

    # -------------------------------------------------------------------------------------- classes

    def of_classes(self) -> Anonymization:
        """Algorithm 8."""
        anon = self.anon
        assert self.labels is not None
        _, first, label = np.unique(
            np.where(anon.suppressed, -1, self.labels), return_index=True, return_inverse=True
        )
        if anon.suppressed.any():
            # its label is the lowest: it comes last
            label, first = (label - 1) % len(first), np.roll(first, -1)
            b = len(first) - 1
        else:
            b = len(first)
            first = np.append(first, 0)
        boxes = self._boxes(first, hidden=b)
        counts = np.zeros((b + 1, self.values), np.int64)
        np.add.at(counts, (label, self.codes), 1)
        zones = self.zones[first]
        if anon.algorithm.family == "pattern":
            zones = np.arange(b + 1)  # a union might follow no pattern: what fails is suppressed
        into, unions = united(self.part.plan, boxes, counts, zones, b, anon.k, self.target, self.w)
        classes = into[label]
        suppressed = classes == b
        if suppressed.all():
            raise InfeasibleError(
                "diversify: every record would have to be suppressed; ask for less diversity"
            )
        made = self._unloaded(take(boxes, classes)).with_suppressed(suppressed)
        classes = np.unique(classes, return_inverse=True)[1].astype(np.int64)
        return self._made(made, classes if anon.classes is not None else None, None, suppressed, unions)

    def _boxes(self, at: np.ndarray, hidden: int | None = None) -> State:
        made = self.anon.generalization.take(at)
        if hidden is not None:
            mask = np.zeros(len(at), bool)
            mask[hidden] = True
            made = made.with_suppressed(mask)
        return load(self.part.plan, made.lo, made.hi, made.bits)

    def _unloaded(self, boxes: State) -> Generalization:
        made = unloaded(self.anon.table.records, self.part.plan, boxes, self.zones)
        return made.join(self.anon.generalization)

    # -------------------------------------------------------------------------------------- matches

    def of_matches(self) -> Anonymization:
        """Algorithm 7."""
        anon, n = self.anon, self.anon.n
        suppressed = self._suppressed()
        everyone = np.arange(n)
        lists = everyone[:, None].astype(np.int32)
        matches = anon.matches
        if matches is not None:
            matches = matches.copy()
            matches[suppressed] = -1
            matches[suppressed, 0] = everyone[suppressed]
            lists = matches
        seen = np.ones(n, bool)
        if suppressed.sum() < anon.k:
            seen = ~suppressed
        made = anon.generalization.with_suppressed(suppressed)
        boxes = load(self.part.plan, made.lo, made.hi, made.bits)
        shown = Shown(self.codes, lists, seen, self.values)
        zones = np.where(suppressed, -1, self.zones)
        steps = widened(self.part, boxes, shown, zones, self.target, self.risk)
        made = self._unloaded(boxes).join(made)
        result = self._made(made, None, matches, suppressed, steps)
        if matches is not None:
            result.facts["extra_covers"] = True
        return result

    def _suppressed(self) -> np.ndarray:
        """Suppressed records, and those of zones that have too little diversity, until what is published can have it."""
        suppressed = self.anon.suppressed.copy()
        while True:
            left = np.unique(self.zones[~suppressed])
            if not len(left):
                raise InfeasibleError(
                    "diversify: every record would have to be suppressed; ask for less diversity, "
                    "or allow wider generalizations"
                )
            index = np.where(suppressed, len(left), np.searchsorted(left, self.zones))
            counts = np.zeros((len(left) + 1, self.values), np.int64)
            np.add.at(counts, (np.minimum(index, len(left)), self.codes), 1)
            lacking = self.target.gaps(counts) > 0
            lacking[-1] &= int(suppressed.sum()) >= self.anon.k
            if not lacking.any():
                return suppressed
            if not lacking[:-1].any():
                lacking[int(np.argmin(counts[:-1].sum(axis=1)))] = True  # the smallest zone joins them
            suppressed |= lacking[:-1][np.minimum(index, len(left) - 1)] & (index < len(left))

    def _made(
        self,
        generalization: Generalization,
        classes: np.ndarray | None,
        matches: np.ndarray | None,
        suppressed: np.ndarray,
        widened: int,
    ) -> Anonymization:
        anon = self.anon
        return Anonymization(
            anon.table,
            anon.algorithm,
            anon.k,
            generalization.with_suppressed(suppressed),
            matches=matches,
            classes=classes,
            suppressed=suppressed,
            facts={**anon.facts, "widened": widened},
            parameters=anon.parameters,
        )


def _measure(anon: Anonymization) -> str:
    found: Mapping[str, Any] = anon.parameters
    return str(found.get("loss", "ncp"))
