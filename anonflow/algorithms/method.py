"""What an algorithm is given and what it returns: the same for every published method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.state import Plan
from anonflow.loss import plan
from anonflow.table.records import Records
from anonflow.table.schema import did_you_mean

__all__ = ["Algorithm", "Outcome", "Partition"]


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
    sensitive : numpy.ndarray, shape (P,), int64, or None
        Codes of the sensitive column, for methods that look at it.
    """

    records: Records
    loss: str
    rng: np.random.Generator
    sensitive: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of records, P."""
        return self.records.n

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
        """The outcome of a k-regular method: each record covers exactly its matches."""
        return cls(Generalization.join_of(records, matches), matches=matches.astype(np.int32), facts=facts)

    @classmethod
    def of_classes(
        cls, records: Records, classes: np.ndarray, suppressed: np.ndarray | None = None, **facts: Any
    ) -> Outcome:
        """The outcome of a homogeneous method: each record covers exactly its class."""
        generalization = Generalization.join_by_class(records, classes)
        if suppressed is None:
            return cls(generalization, classes=classes.astype(np.int64), facts=facts)
        generalization = generalization.with_suppressed(suppressed)
        return cls(generalization, classes=classes.astype(np.int64), suppressed=suppressed, facts=facts)


@dataclass(frozen=True)
class Algorithm:
    """A published method.

    Attributes
    ----------
    name : str
    run : callable
        ``run(partition, k, **options) -> Outcome``; options are keyword-only.
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
    """

    name: str
    run: Callable[..., Outcome]
    family: str
    paper: str
    guarantee: str
    complexity: str
    summary: str

    @property
    def options(self) -> Mapping[str, Any]:
        """The method's own options and their defaults."""
        parameters = inspect.signature(self.run).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def rests_on_seed(self, options: Mapping[str, Any]) -> bool:
        """Whether whoever finds the seed again learns the rows: records are published with their own values."""
        return bool({**self.options, **options}.get("randomized", False))

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the method does not have.

        Raises
        ------
        ParameterError
            Naming the option and the nearest known one.
        """
        unknown = [name for name in options if name not in self.options]
        if unknown:
            known = tuple(self.options) or ("none",)
            raise ParameterError(
                f"{self.name}: unknown option {unknown[0]!r}{did_you_mean(unknown[0], known)}"
            )
