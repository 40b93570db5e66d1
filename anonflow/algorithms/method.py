"""What an algorithm is given and what it returns: the same for every published method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.drawing.method_mark import Mark
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.state import Plan
from anonflow.loss import plan
from anonflow.option import Option, options_of
from anonflow.table.records import Records
from anonflow.table.schema import did_you_mean

if TYPE_CHECKING:
    from anonflow.algorithms.diversity.target import SensitiveValues

__all__ = ["Algorithm", "Outcome", "Partition", "Progress"]


@dataclass(frozen=True)
class Progress:
    """How far a method that works in rounds has come with a partition.

    Attributes
    ----------
    done, of : int
        Rounds done, and rounds at most.
    loss : float
        Sum over the partition's records of the loss that the method lowers, as it is now.
    """

    done: int
    of: int
    loss: float


@dataclass(frozen=True, eq=False)
class Partition:
    """The records an algorithm works on, and how it is to judge a generalization.

    Attributes
    ----------
    records : Records
        P records; domains are those of the whole table.
    loss : str
        Name of the information loss to be kept low.
    rng : numpy.random.Generator
        The partition's own generator; algorithms use no other randomness.
    sensitive : SensitiveValues or None
        What classes are to keep besides k, for methods that choose by it (`diverse`).
    watch : callable, optional
        Called with a :class:`Progress` between the rounds of a method that works in rounds. What it raises ends the
        method: nothing of it is kept.
    """

    records: Records
    loss: str
    rng: np.random.Generator
    sensitive: SensitiveValues | None = None
    watch: Callable[[Progress], None] | None = None

    @property
    def n(self) -> int:
        """Number of records, P."""
        return self.records.n

    def take(self, index: np.ndarray) -> Partition:
        """Return some of its records, to be worked on alone.

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        sensitive = None if self.sensitive is None else self.sensitive.take(index)
        return replace(self, records=self.records.take(index), sensitive=sensitive)

    @cached_property
    def plan(self) -> Plan:
        """The information loss as the kernels take it."""
        return plan(self.records.domains, self.loss)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an algorithm makes of a partition of P records.

    Attributes
    ----------
    generalization : Generalization
        P generalized records; record j covers original j.
    matches : numpy.ndarray, shape (P, k), int32, or None
        Of k-regular methods: ``matches[j]`` are the positions of the originals that record j covers,
        ``matches[j, 0] == j``, and every original stands in k rows. A suppressed record's row is j and -1.
    classes : numpy.ndarray, shape (P,), int64, or None
        Of homogeneous methods: equivalence-class labels.
    suppressed : numpy.ndarray, shape (P,), bool
        Records that are published as ``*`` throughout.
    facts : dict
        What else is worth knowing, by name: numbers and words, never a cell's value.
    """

    generalization: Generalization
    matches: np.ndarray | None = None
    classes: np.ndarray | None = None
    suppressed: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.suppressed):
            object.__setattr__(self, "suppressed", np.zeros(self.generalization.n, bool))

    @classmethod
    def of_matches(cls, records: Records, matches: np.ndarray, **facts: Any) -> Outcome:
        """Return the outcome of a k-regular method: each record covers exactly its matches."""
        return cls(Generalization.join_of(records, matches), matches=matches.astype(np.int32), facts=facts)

    @classmethod
    def of_classes(
        cls, records: Records, classes: np.ndarray, suppressed: np.ndarray | None = None, **facts: Any
    ) -> Outcome:
        """Return the outcome of a homogeneous method: each record covers exactly its class."""
        generalization = Generalization.join_by_class(records, classes)
        if suppressed is None:
            return cls(generalization, classes=classes.astype(np.int64), facts=facts)
        generalization = generalization.with_suppressed(suppressed)
        return cls(generalization, classes=classes.astype(np.int64), suppressed=suppressed, facts=facts)


@dataclass(frozen=True)
class Algorithm:
    """A published method, and all that anything else knows of it.

    Attributes
    ----------
    name : str
    run : callable
        ``run(partition, k, **options) -> Outcome``; options are keyword-only, and declared there
        (:mod:`anonflow.option`).
    family : str
        ``freeform``, ``k-concealment``, ``clustering``, ``recoding`` or ``pattern``.
    paper : str
        Where it is described.
    guarantee : str
        The criterion that every result meets.
    complexity : str
        Time for n records, or for partitions of P.
    summary : str
        When to choose it, in one line.
    colour, shape : str, optional
        How it is drawn: ``#rrggbb`` and a name of ``drawing.method_mark.SHAPES``; a look by its name without them.
    small : bool, optional
        Whether it is for small tables or partitions only.
    hides : bool, optional
        Whether a value is published as it is or hidden, never in between (patterns).
    fixed_cells : bool, optional
        Whether cells are chosen for a column, and may be wider than what their class needs (levels).
    diverse : bool, optional
        Whether it keeps diversity itself, where its partition has sensitive values; else classes are united afterwards.
    needs_hierarchies : bool, optional
        Whether it refuses categorical columns without a hierarchy.
    whole_table : bool, optional
        Whether it works on all records at once: then partition sizes are not for it.
    without_boundaries : str, optional
        The method that this one is where boundaries are not kept; then it refuses to do without them.
    effort : str, optional
        The option, a whole number, with which its time grows in proportion: a budget of seconds is turned into it.
    complete : callable, optional
        Of the options: whether every record must have a place, so that none may be suppressed beside the method.
    effort_needs : mapping, optional
        Values of other options without which the effort changes nothing.
    effort_takes : mapping, optional
        Values of other options that go with an effort above 0, where the caller leaves them open.
    linear : bool, optional
        Whether its time grows in proportion to the records, beyond some 1,000 of them.
    """

    name: str
    run: Callable[..., Outcome]
    family: str
    paper: str
    guarantee: str
    complexity: str
    summary: str
    colour: str = ""
    shape: str = ""
    small: bool = False
    hides: bool = False
    fixed_cells: bool = False
    diverse: bool = False
    needs_hierarchies: bool = False
    whole_table: bool = False
    without_boundaries: str | None = None
    effort: str | None = None
    complete: Callable[[Mapping[str, Any]], bool] | None = None
    effort_needs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    effort_takes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    linear: bool = False

    @property
    def options(self) -> Mapping[str, Option]:
        """The method's own options by name, as its function declares them."""
        return options_of(self.run)

    @property
    def look(self) -> Mark:
        """Its colour and shape."""
        return Mark(self.colour, self.shape) if self.colour and self.shape else Mark.by_name(self.name)

    def rests_on_seed(self, options: Mapping[str, Any]) -> bool:
        """Return whether whoever finds the seed again learns the rows: records are published with their own values."""
        return bool({**self.options, **options}.get("randomized", False))

    def effort_under(self, options: Mapping[str, Any]) -> str | None:
        """Return the option of effort, where it changes something with these options; else None."""
        chosen = {name: option.default for name, option in self.options.items()} | dict(options)
        changes = all(chosen.get(name) == value for name, value in self.effort_needs.items())
        return self.effort if changes else None

    def aggregate_problem(self, column: str) -> str | None:
        """Return what is wrong with publishing a column as the mean or median of its classes; None if the method makes classes."""
        if self.guarantee == "k-anonymity":
            return None
        return (
            f"{self.name}: column {column!r} is to be published as the mean or median of a class, and this method makes none; "
            "take mdav, mondrian or another method of classes, or leave aggregate out of the schema"
        )

    def levels_problem(self, column: str) -> str | None:
        """Return what is wrong with a categorical column without a hierarchy; None if the method does not need levels."""
        if not self.needs_hierarchies:
            return None
        return (
            f"{self.name}: no hierarchy for {column!r}; give it one under `hierarchy:`, or declare `kind: suppression`, which "
            "publishes a value or hides it"
        )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the method does not have, and values that they may not be.

        Raises
        ------
        ParameterError
            Naming the option, and the nearest known one or what it must be.
        """
        for name, value in options.items():
            if name not in self.options:
                known = tuple(self.options) or ("none",)
                raise ParameterError(f"{self.name}: unknown option {name!r}{did_you_mean(name, known)}")
            problem = self.options[name].problem(value)
            if problem is not None:
                raise ParameterError(f"{self.name}: {name} {problem}")

    def check_complete(self, options: Mapping[str, Any], left: int) -> None:
        """Refuse records that boundaries or limits leave without a place where the options want one for each.

        Raises
        ------
        InfeasibleError
            If there are any.
        """
        if left and self.complete is not None and self.complete(options):
            raise InfeasibleError(
                f"{self.name}: {left} rows have no place within their boundaries or limits, so not every row can follow a "
                "pattern; widen them, lower k, or let rows be suppressed with fallback none or all"
            )

    def symmetric(self, options: Mapping[str, Any]) -> bool:
        """Return whether with these options matches are reciprocal."""
        return any(
            option.symmetric and options.get(name, option.default) is True
            for name, option in self.options.items()
        )

    def partition_size(self, size: int | None, k: int, options: Mapping[str, Any]) -> int | None:
        """Return the partition size to cut with: an even one where an odd partition would need k + 1 matches.

        Parameters
        ----------
        size : int or None
            At least k.
        k : int
        options : mapping

        Returns
        -------
        int or None
            With a table of an even number of records no partition is odd, with another one exactly one is (within
            boundaries: at most one in each boundary class). None for a method of the whole table.
        """
        if self.whole_table:
            return None
        if size is not None and k % 2 == 0 and size % 2 == 1 and size > k and self.symmetric(options):
            return size - 1
        return size
