"""The interface of the published methods: what an algorithm gets and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from anonflow.algorithms.diversity.target import SensitiveValues
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.registry import CRITERIA
from anonflow.drawing.method_mark import Mark
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.kernels.costs import load
from anonflow.kernels.state import Plan, State, copy_state
from anonflow.loss import plan
from anonflow.option import Option, options_of
from anonflow.table import Domain, Records
from anonflow.table.named_settings import LEVELS
from anonflow.table.schema import did_you_mean

MOST_EFFORT = 10_000
"""The most rounds, kicks, passes or restarts of a method, and the greatest effort that a budget chooses."""


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
    """The records an algorithm works on, and the information loss that it lowers.

    Attributes
    ----------
    records : Records
        P records; domains are those of the whole table.
    loss : str
        Name of the information loss to be kept low.
    generator : numpy.random.Generator, or callable
        The partition's generator, or what returns it: most methods need none, and its seed is a hash of the records.
    sensitive : SensitiveValues or None
        What classes must keep besides k, for methods that consider it (`diverse`).
    watch : callable, optional
        Called with a :class:`Progress` between the rounds of a method that works in rounds. If it raises, the method
        ends without a result.
    is_over : callable, optional
        Called after each unit of the effort of a method that `ends_early`: if it returns True, the method ends with the result
        so far.
    """

    records: Records
    loss: str
    generator: np.random.Generator | Callable[[], np.random.Generator]
    sensitive: SensitiveValues | None = None
    watch: Callable[[Progress], None] | None = None
    is_over: Callable[[], bool] | None = None

    @property
    def n(self) -> int:
        """Number of records, P."""
        return self.records.n

    @property
    def rng(self) -> np.random.Generator:
        """The partition's generator; algorithms use no other randomness."""
        generator = self.generator
        return generator if isinstance(generator, np.random.Generator) else generator()

    def take(self, index: np.ndarray) -> Partition:
        """Return some of its records as a partition of their own.

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        sensitive = None if self.sensitive is None else self.sensitive.take(index)
        return replace(self, records=self.records.take(index), sensitive=sensitive)

    @cached_property
    def plan(self) -> Plan:
        """The information loss in the kernels' form."""
        return plan(self.records.domains, self.loss)

    def first_assignment(self, k: int) -> tuple[State, State, np.ndarray, np.ndarray]:
        """Return where assignments begin: each record is its own first match.

        Returns
        -------
        origin : State
            The originals.
        joined : State
            The generalized records so far: copies of them.
        assigned : numpy.ndarray, shape (P, k), int32
            Rows of each original; the first column is filled.
        matches : numpy.ndarray, shape (P, k), int32
            Originals of each generalized record; the first column is filled.
        """
        origin = self.originals()
        assigned, matches = np.empty((2, self.n, k), np.int32)
        assigned[:, 0] = matches[:, 0] = np.arange(self.n)
        return origin, copy_state(origin), assigned, matches

    def originals(self) -> State:
        """Return each record as its own generalized record, in the kernels' form; O(P q)."""
        generalization = Generalization.of(self.records)
        return load(self.plan, generalization.lo, generalization.hi, generalization.bits)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of an algorithm for a partition of P records.

    Attributes
    ----------
    generalization : Generalization
        P generalized records; record j covers original j.
    matches : numpy.ndarray, shape (P, k), int32, or None
        Of k-regular methods: ``matches[j]`` are the positions of the originals that record j covers,
        ``matches[j, 0] == j``, and every original occurs in k rows. A suppressed record's row is j and -1.
    classes : numpy.ndarray, shape (P,), int64, or None
        Of homogeneous methods: equivalence-class labels.
    suppressed : numpy.ndarray, shape (P,), bool
        Records that are published as ``*`` throughout.
    facts : dict
        Further facts by name: numbers and words, never a cell's value.
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
    """A published method, with everything that other modules know about it.

    Attributes
    ----------
    name : str
    run : callable
        ``run(partition, k, **options) -> Outcome``; options are keyword-only, and declared there
        (:mod:`anonflow.option`).
    family : str
        ``freeform``, ``k-concealment``, ``clustering``, ``recoding`` or ``pattern``.
    paper : str
        The paper that describes it.
    guarantee : str
        The criterion that every result meets.
    complexity : str
        Time for n records, or for partitions of P.
    summary : str
        When to choose it, in one line.
    colour, shape : str, optional
        How it is drawn: ``#rrggbb`` and a name of ``drawing.method_mark.SHAPES``; by default derived from its name.
    small : bool, optional
        Whether it is for small tables or partitions only.
    hides : bool, optional
        Whether a value is published as it is or hidden, never in between (patterns).
    fixed_cells : bool or callable, optional
        Whether cells are chosen for a column, and may be wider than what their class needs (levels); a callable, of the
        options.
    diverse : bool or callable, optional
        Whether it keeps diversity itself, where its partition has sensitive values; else classes are united afterwards. A
        callable, of the options.
    keeps_limits : bool, optional
        Whether it publishes a value that a limit forbids to hide, or suppresses the record, whatever it runs on.
    needs_hierarchies : bool, optional
        Whether it refuses categorical columns without a hierarchy.
    whole_table : bool, optional
        Whether it works on all records at once; then it has no partition size.
    without_boundaries : str, optional
        The method that equals this one without boundaries; this one then refuses to run without them.
    effort : str, optional
        The option, a whole number, to which its time is proportional: a budget of seconds determines it.
    ends_early : bool, optional
        Whether it may end after any unit of its effort, or of what comes before: the result is then that of a run with this
        effort, and the facts with the names of these options say it.
    complete : callable, optional
        Of the options: whether every record must have a place, so that none may be suppressed beside the method.
    without_pattern : callable, optional
        Records, which of them are suppressed, options -> how many of these follow no pattern, provided that they are at least
        k; it adds up over partitions. Only where rows follow patterns.
    option_problems : callable, optional
        Domains, options -> the option and the problem of each that does not go with another one or with the columns. Before the
        table is read, the domains stand in for its own (:func:`anonflow.table.coding.stand_in`), or are None.
    effort_needs : mapping, optional
        Values of other options without which the effort changes nothing.
    effort_takes : mapping, optional
        Values of other options that go with an effort above 0, where the caller leaves them open.
    effort_before : mapping, optional
        The least values of options that a budget raises to their defaults before it takes any effort, where the caller leaves them
        open.
    memory : callable, optional
        Domains, records of a partition, k, options -> bytes that it takes, where they can be more than the table's own.
    linear : bool, optional
        Whether its time grows in proportion to the records, beyond some 2,000 of them.
    slow_or_quick : callable, optional
        k, records of a partition, options -> two mappings of options: values with which the time may grow with the square of the
        records, and values with which it does not; None where the method takes the second ones anyway.
    together : callable, optional
        ``together(partition, starts, k, **options) -> list of Outcome, or None``: what `run` returns for each of several partitions
        that lie one after the other, in less time; None where these options have no quicker way. Only of methods that use no
        randomness.
    variants : tuple of mapping, optional
        Options with which a search tries it.
    gone : mapping, optional
        Options, or values as ``option: value``, that earlier versions had -> what to do without them.
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
    fixed_cells: bool | Callable[[Mapping[str, Any]], bool] = False
    diverse: bool | Callable[[Mapping[str, Any]], bool] = False
    keeps_limits: bool = False
    needs_hierarchies: bool = False
    whole_table: bool = False
    without_boundaries: str | None = None
    effort: str | None = None
    ends_early: bool = False
    complete: Callable[[Mapping[str, Any]], bool] | None = None
    without_pattern: Callable[[Records, np.ndarray, Mapping[str, Any]], int] | None = None
    option_problems: (
        Callable[[Sequence[Domain] | None, Mapping[str, Any]], Iterator[tuple[str, str]]] | None
    ) = None
    effort_needs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    effort_takes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    effort_before: Mapping[str, int] = field(default_factory=dict, hash=False)
    memory: Callable[[Sequence[Domain], int, int, Mapping[str, Any]], int] | None = None
    linear: bool = False
    together: Callable[..., list[Outcome] | None] | None = None
    slow_or_quick: (
        Callable[[int, int, Mapping[str, Any]], tuple[Mapping[str, Any], Mapping[str, Any]] | None] | None
    ) = None
    variants: tuple[Mapping[str, Any], ...] = field(default=({},), hash=False)
    gone: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def options(self) -> Mapping[str, Option]:
        """The method's own options by name, as its function declares them."""
        return options_of(self.run)

    @property
    def look(self) -> Mark:
        """Return its colour and shape."""
        return Mark(self.colour, self.shape) if self.colour and self.shape else Mark.by_name(self.name)

    def rests_on_seed(self, options: Mapping[str, Any]) -> bool:
        """Return whether the seed reveals the rows, because records are published with their own values."""
        return bool({**self.options, **options}.get("randomized", False))

    def effort_under(self, options: Mapping[str, Any]) -> str | None:
        """Return the option of effort, where it changes something with these options; else None."""
        chosen = {name: option.default for name, option in self.options.items()} | dict(options)
        changes = all(chosen.get(name) == value for name, value in self.effort_needs.items())
        return self.effort if changes else None

    def efforts(self, options: Collection[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the values of options that are open, with the least effort and with any above 0."""
        least = {name: value for name, value in self.effort_before.items() if name not in options}
        takes = {name: self.options[name].default for name in least} | dict(self.effort_takes)
        return least, {name: value for name, value in takes.items() if name not in options}

    def memory_for(self, domains: Sequence[Domain], n: int, k: int, options: Mapping[str, Any]) -> int:
        """Return about how many bytes a partition of n records takes; 0 of a method that does not say.

        Parameters
        ----------
        domains : sequence of Domain
        n, k : int
        options : mapping
            The method's own; those left out are its defaults.
        """
        if self.memory is None:
            return 0
        chosen = {name: option.default for name, option in self.options.items()} | dict(options)
        return self.memory(domains, n, k, chosen)

    def most_records(
        self, domains: Sequence[Domain], n: int, k: int, options: Mapping[str, Any], memory: int
    ) -> int:
        """Return the records of the largest partition that takes at most so many bytes, n at most; O(log n).

        Parameters
        ----------
        domains : sequence of Domain
        n, k : int
        options : mapping
        memory : int
        """
        low, high = 0, n
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.memory_for(domains, middle, k, options) <= memory
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    def aggregate_problem(self, column: str) -> str | None:
        """Return why a column cannot be published as the mean or median of its classes; None if the method makes classes."""
        if promises_classes(self.guarantee):
            return None
        return (
            f"{self.name}: column {column!r} is to be published as the mean or median of a class, and this method makes none; "
            "take mdav, mondrian or another method of classes, or leave aggregate out of the schema"
        )

    @property
    def of_sets(self) -> bool:
        """Whether it promises something for sets of columns, and nothing for all of them together."""
        return CRITERIA[self.guarantee].of_sets

    def under(self, options: Mapping[str, Any]) -> Algorithm:
        """Return the method as it is with these options: with sets of columns it promises k on each of them alone.

        It then makes no classes, and works on all records: values that are rare in a partition may be frequent in the table.
        """
        if self.of_sets or all(options.get(name) is None for name in ("sets", "of")):
            return self
        return replace(self, guarantee="key-sets", diverse=False, whole_table=True)

    @property
    def diversity_problem(self) -> str | None:
        """Why its results cannot be made diverse; None if they can."""
        if not self.of_sets:
            return None
        return (
            f"{self.name} does not say which rows may be a person's, only how many on each set of columns, so their sensitive values "
            "cannot be made diverse; leave diversify out, or take another method"
        )

    def levels_problem(self, column: str) -> str | None:
        """Return why a categorical column without a hierarchy is a problem; None if the method does not need levels."""
        if not self.needs_hierarchies:
            return None
        return (
            f"{self.name}: no hierarchy for {column!r}; give it one "
            + LEVELS
            + ", which publishes a value or hides it"
        )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the method does not have, and values outside their domain.

        Raises
        ------
        ParameterError
            Naming the option, and the nearest known one or what it must be.
        """
        for name, value in options.items():
            if (gone := self.gone_problem(name, value)) is not None:
                raise ParameterError(f"{self.name}: {gone}")
            if name not in self.options:
                names = tuple(self.options) or ("none",)
                raise ParameterError(f"{self.name}: unknown option {name!r}{did_you_mean(name, names)}")
            problem = self.options[name].problem(value)
            if problem is not None:
                raise ParameterError(f"{self.name}: {name} {problem}")

    def gone_problem(self, name: str, value: Any) -> str | None:
        """Return what to do about an option, or its value, that only earlier versions had; None of any other."""
        for text in (name, f"{name}: {value}"):
            if text in self.gone:
                return f"{text!r} is gone; {self.gone[text]}"
        return None

    def check_complete(self, options: Mapping[str, Any], left: int) -> None:
        """Raise an error if boundaries or limits leave records without a match or class, and the options require one for each.

        Raises
        ------
        InfeasibleError
            If there are any.
        """
        if left and self.complete is not None and self.complete(options):
            raise InfeasibleError(
                f"{self.name}: {plural(left, 'row', 'have')} no place within the boundaries or limits, "
                "so not every row can follow a pattern; widen them, lower k, or let rows be suppressed with fallback none or all"
            )

    def whole_facts(
        self, records: Records, suppressed: np.ndarray, k: int, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the facts of a whole table that are no sums over partitions.

        Parameters
        ----------
        records : Records
            n records.
        suppressed : numpy.ndarray, shape (n,), bool
        k : int
        options : mapping
            The method's own, among others.

        Returns
        -------
        dict
            `rows_without_pattern` where rows follow patterns: of fewer than k suppressed rows, all.
        """
        if self.without_pattern is None:
            return {}
        hidden = int(suppressed.sum())
        few = hidden < k
        return {"rows_without_pattern": hidden if few else self.without_pattern(records, suppressed, options)}

    def has_fixed_cells(self, options: Mapping[str, Any]) -> bool:
        """Return whether cells may be wider than what their class needs with these options."""
        return self.fixed_cells if isinstance(self.fixed_cells, bool) else self.fixed_cells(options)

    def is_diverse(self, options: Mapping[str, Any]) -> bool:
        """Return whether it keeps diversity itself with these options."""
        return self.diverse if isinstance(self.diverse, bool) else self.diverse(options)

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
