"""The result of every method: a table and its generalized records, for the owner's eyes only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.method import Algorithm
from anonflow.algorithms.recoding.lattice_part import lattice_part
from anonflow.algorithms.recoding.lattice_view import lattice_view
from anonflow.algorithms.view import anonymization_view
from anonflow.criteria.registry import CRITERIA
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.loss import information_loss, measure_named
from anonflow.loss.costs import at_most_above, excess_of, rounded_down
from anonflow.release import Release, assignments, publish_once
from anonflow.table import Table
from anonflow.utility.bounds import covers_at_least, is_regular, lower_bound
from anonflow.utility.subject import part_of

DRAWN = 50_000
"""The most records of a table whose lattice a notebook draws: the picture counts some dozens of nodes again."""


@dataclass(eq=False, repr=False)
class Anonymization:
    """A table and its generalized records. It belongs to the owner; it is not yet a release.

    Attributes
    ----------
    table : Table
    algorithm : Algorithm
    k : int
    generalization : Generalization
        n generalized records; record i is the one of original i.
    matches : numpy.ndarray, shape (n, k), int32, or None
        Originals that each generalized record matches, ``matches[j, 0] == j``; None for methods without a
        k-regular graph. A suppressed record's row is j and -1.
    classes : numpy.ndarray, shape (n,), int64, or None
        Equivalence-class labels of homogeneous methods; suppressed records share one.
    suppressed : numpy.ndarray, shape (n,), bool
    facts : dict
        What the method reports about its partitions, by name.
    parameters : dict
        The arguments of the call: loss, partition size and the method's own options.
    partitions : tuple of numpy.ndarray, int64, or None
        Table positions of the records of each partition; records in none are suppressed. None where it is not known.
    anonymize : callable or None
        The function that computed it, with the arguments of :func:`anonflow.anonymize`; :meth:`again` calls it again.
    replay : callable or None
        Of a result that depends on sensitive values: what the same steps with the same seeds make of a table with other ones.
    rerun : callable or None
        Of such a result: what the same steps make of the same table with another seed; :meth:`again` calls it.
    frozen : numpy.ndarray, shape (n,), bool, or None
        Of a table that was published before: records whose cohort stays. Of matches they are not drawn again: each has its own columns.
    earlier : path or list of paths, or None
        The owner's folders of the earlier releases of such a table.
    """

    table: Table
    algorithm: Algorithm
    k: int
    generalization: Generalization
    _: KW_ONLY
    matches: np.ndarray | None
    classes: np.ndarray | None
    suppressed: np.ndarray
    facts: dict[str, Any]
    parameters: dict[str, Any]
    partitions: tuple[np.ndarray, ...] | None = None
    anonymize: Callable[..., Anonymization] | None = None
    replay: Callable[[Table], Anonymization] | None = None
    rerun: Callable[[int | bytes | str | None], Anonymization] | None = None
    frozen: np.ndarray | None = None
    earlier: Any = None
    _bounds: dict[tuple[str, float], float | None] = field(default_factory=dict, init=False)

    @property
    def n(self) -> int:
        """Number of records."""
        return self.generalization.n

    @property
    def guarantee(self) -> str:
        """The criterion that the method promises."""
        return str(self.facts.get("guarantee") or self.algorithm.guarantee)

    def frame(self) -> pd.DataFrame:
        """Return the generalized records beside their originals: row i is original i's. For the owner's eyes only.

        Returns
        -------
        pandas.DataFrame, shape (n, QI columns), text
            QI columns in schema order, with the table's index.
        """
        return self.published.decode(index=self.table.index, suppressed=self.suppressed)

    @property
    def published(self) -> Generalization:
        """The generalized records as their cells are published: with means or medians where the schema says so."""
        return self.generalization.aggregated(self.table.records, self.classes, self.suppressed)

    def loss(self, measure: str = "gcp") -> float:
        """Return information loss: the mean over records of the weighted mean over QIs.

        Parameters
        ----------
        measure : str
            ``gcp`` (``ncp``), ``lm``, ``entropy``, ``height`` or ``suppressions``.

        Raises
        ------
        ParameterError
            If the measure is unknown.
        """
        return float(information_loss(self.generalization, measure))

    def lower_bound(self, measure: str | None = None, *, effort: float = 1.0) -> float | None:
        """Return a lower bound of the loss of all releases of this table with this k, for every method and every partition size.

        Computed at the first call and kept: O(n^2 q) or less, 30,162 records of 8 QIs in some seconds.

        Parameters
        ----------
        measure : str, optional
            As in :meth:`loss`; by default the loss that the method minimized.
        effort : float, optional
            A greater effort searches longer for a higher bound; 0 does not search.

        Returns
        -------
        float or None
            None for entropy, for which no such bound is known; and where a generalized record covers fewer
            than k originals, which k-concealment does not forbid: the bound is that of releases where none does.

        Raises
        ------
        ParameterError
            If the measure is unknown or the effort negative.

        Notes
        -----
        :func:`anonflow.utility.bounds.lower_bound`. Of a k-regular result and of classes it is the bound of all k-regular and
        k-anonymous releases, from prices of records. With more effort than the usual one, the prices begin where this result's own sets
        of k allow it; they hold for all releases all the same. Of others it takes for each record the least cost of covering itself and
        k - 1 others, regardless of all other records: this holds for (k,1)-anonymous releases, too. A suppressed record
        has the highest cost of all. The bound ignores partitions and boundaries, which only raise the loss.
        """
        measure_name = measure_named(str(self.parameters.get("loss", "ncp")) if measure is None else measure)
        if (measure_name, effort) not in self._bounds:
            self._bounds[measure_name, effort] = (
                self._searched_bound(measure_name, effort) if self.is_bounded else None
            )
        return self._bounds[measure_name, effort]

    def _searched_bound(self, measure: str, effort: float) -> float | None:
        part = part_of(self.table.records, self)
        return lower_bound(part.records, self.k, measure, effort, is_regular(part, self.k), part.candidates)

    @property
    def is_bounded(self) -> bool:
        """Whether every generalized record covers at least k originals, so that :meth:`lower_bound` holds."""
        if self.guarantee in CRITERIA and CRITERIA[self.guarantee].covers_k:
            return True
        return covers_at_least(self.table.records, self.generalization, self.k)

    @property
    def is_regular(self) -> bool:
        """Whether records, but for suppressed ones, have k matches each or are in classes of at least k."""
        return is_regular(part_of(self.table.records, self), self.k)

    def summary(self) -> str:
        """Return a sentence with the table's loss and the lower bound of the loss with this k.

        Returns
        -------
        str
            Such as ``GCP 0.0300, no k-regular or k-anonymous release can be below 0.0210, so it is at most 43% above the
            least``; without the second half where there is no bound. For a diversified result it also names the loss of diverse ``k-member`` and the guarantee; for a
            result with a budget, the choice that was made.
        """
        measure_name = measure_named(str(self.parameters.get("loss", "ncp")))
        sentences = [self.facts[name] for name in ("compared", "promise", "picked") if name in self.facts]
        return ". ".join(
            [
                _sentence(
                    measure_name, self.loss(measure_name), self.lower_bound(measure_name), self.is_regular
                ),
                *sentences,
            ]
        )

    def assignments(self) -> np.ndarray:
        """Return the matches as disjoint assignments, every match in exactly one: see :func:`anonflow.release.assignments`.

        Raises
        ------
        ParameterError
            If the method makes no k-regular matches.
        """
        if self.matches is None:
            raise ParameterError(
                f"{self.algorithm.name} makes no matches that could be divided into assignments; greedy does"
            )
        return assignments(self.matches)

    def again(self, seed: int | bytes | str | None = None) -> Anonymization:
        """Return the same method with the same parameters on the same table, with another seed; a diverse result is diverse again.

        Parameters
        ----------
        seed : bytes, str or int, optional

        Raises
        ------
        InfeasibleError
            If there is no solution with this seed.
        ParameterError
            If the result does not come from :func:`anonflow.anonymize`.
        """
        if self.rerun is not None:
            return self.rerun(seed)
        if self.anonymize is None:
            raise ParameterError(
                "this result does not say which method made it; call anonflow.anonymize again"
            )
        # what the budget chose is among them: the same choice again, without pilots
        settings = {name: value for name, value in self.parameters.items() if name != "budget"}
        settings.setdefault("partition_size", None)  # who names none cut nothing
        return self.anonymize(self.table, self.algorithm.name, self.k, seed=seed, **settings)

    def of_table(self, table: Table) -> Anonymization:
        """Return what the same steps with the same seeds make of a table whose sensitive values alone are others.

        Parameters
        ----------
        table : Table

        Raises
        ------
        InfeasibleError
            If this table does not have the diversity.
        """
        return replace(self, table=table) if self.replay is None else self.replay(table)

    def release(
        self, seed: int | bytes | str | None = None, *, owner: str | PathLike[str] | None = None
    ) -> Release:
        """Draw one assignment, shuffle the rows, and build the published table.

        Draw once: to draw until a check passes would bias the draw.

        Parameters
        ----------
        seed : bytes, str or int, optional
            A secret makes the same release of the same table again: at least 16 bytes, at least 32 hexadecimal
            digits, or an integer of as many bits; the operating system's randomness without it.
        owner : path, optional
            The owner's folder: keyed marks of the people are kept there, so that a later release of the same or
            overlapping people warns, in every process. Without it only a second release of this object warns.

        Raises
        ------
        ParameterError
            If the seed cannot be used.
        DataError
            If the owner's folder cannot be used.
        VerificationError
            If this result was made with earlier releases, and those in the folder are others.

        Warns
        -----
        SeedWarning
            If the seed is an integer below 2^64: an attacker can find it by trying all of them.
        ReleaseWarning
            If published columns are nearly unique, monotone or follow from quasi-identifiers, or a release was drawn
            before; if people of this table are in an earlier release that the owner's folder knows. Without `owner`: if this result goes on
            from earlier releases, or an owner's folder with releases lies beside the file of the table.
        """
        return publish_once(self, owner, seed)

    def __repr__(self) -> str:
        hidden, without = int(self.suppressed.sum()), self.facts.get("rows_without_pattern")
        # not computed for a repr: on large tables it takes seconds
        bound = next(
            (bound for (measure_name, _), bound in self._bounds.items() if measure_name == "ncp"), None
        )
        return (
            f"Anonymization({self.algorithm.name}, k={self.k}, {self.n} records, "
            + _sentence("ncp", self.loss("ncp"), bound, bound is not None and self.is_regular)
            + (f", {hidden} suppressed" if hidden else "")
            + (f", {without} without a pattern)" if without else ")")
        )

    def _repr_html_(self) -> str:
        numbers = [
            ("k", self.k),
            ("records", f"{self.n:,}"),
            ("guarantee", self.guarantee),
            ("information loss (GCP)", f"{self.loss('ncp'):.4f}"),
            ("suppressed", f"{int(self.suppressed.sum()):,}"),
        ]
        if without := self.facts.get("rows_without_pattern"):
            numbers.append(("without a pattern", f"{without:,}"))
        picture = None
        if self.algorithm.is_diverse(self.parameters) and self.n <= DRAWN:
            part = lattice_part(self)
            picture = None if part is None else lattice_view(part)
        return anonymization_view(
            self.algorithm.name, numbers, self.table, self.published, self.suppressed, self, picture
        )


def _sentence(measure: str, loss: float, bound: float | None, regular: bool) -> str:
    name = "GCP" if measure == "ncp" else measure
    if bound is None:
        return f"{name} {loss:.4f}"
    releases = "no k-regular or k-anonymous release" if regular else "no release with this k"
    excess = at_most_above(excess_of(loss, bound))
    above = f", so it is {excess} above the least" if excess else ""
    return f"{name} {loss:.4f}, {releases} can be below {rounded_down(bound):.4f}{above}"
