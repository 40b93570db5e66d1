"""The search space: methods with their options, partition sizes, ways to diversity, and ks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anonflow.algorithms.method import Algorithm
from anonflow.algorithms.registry import REGISTRY, algorithm_named
from anonflow.criteria.guarantee import promises_matches
from anonflow.engine.search.best_first import ladder
from anonflow.engine.search.trials import Candidate, SearchTarget, Setup
from anonflow.errors import ParameterError
from anonflow.option import check_whole

KS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)
"""The ks that are tried, as far as the target and the table allow."""

SIZES = (100, 250, 1_000)
"""Records in a partition, besides the whole table."""

SMALL = 200
"""Records up to which methods for small tables are tried, if none is named; on larger tables they are not expected to finish."""

BLIND = (("way", "blind"),)
"""With diversity, for k-regular methods: more matches for everybody, besides the flow's setting."""


@dataclass(frozen=True)
class Space:
    """The search space; empty parts are chosen by the table.

    Attributes
    ----------
    algorithms : tuple of str
    ks : tuple of int
    sizes : tuple of int or None
        Records in a partition; None is the whole table.
    options : mapping
        Method -> its options, in place of those that it is tried with otherwise.
    diversities : tuple of mapping
        Steps diversify that are tried in place of the flow's; an empty mapping is the flow's own, or none.

    Raises
    ------
    ParameterError
        If a name, a k, a size or an option is invalid.
    """

    algorithms: tuple[str, ...] = ()
    ks: tuple[int, ...] = ()
    sizes: tuple[int | None, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    diversities: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for name in self.algorithms:
            algorithm_named(name)
        for name, options in self.options.items():
            algorithm_named(name).check_options(options)
        for k in self.ks:
            check_whole(k, 2, "k must be whole numbers of at least 2")
        for size in self.sizes:
            if size is not None:
                words = "partition_size must be whole numbers of at least 2, or None for the whole table"
                check_whole(size, 2, words)

    def setups(self, n: int, least: int, diverse: bool) -> tuple[Setup, ...]:
        """Return the setups for a table of n records, with ks of at least `least`.

        Parameters
        ----------
        n : int
        least : int
        diverse : bool
            Whether the flow has a step diversify.
        """
        names = self.algorithms or tuple(
            name
            for name, method in REGISTRY.items()
            if (n <= SMALL or not method.small) and not method.of_sets
        )
        setups: dict[Setup, None] = {}
        for name in names:
            method = REGISTRY[name]
            sizes: Sequence[int | None] = self.sizes or (*SIZES, None)
            if method.whole_table or (method.linear and not self.sizes):
                sizes = (None,)
            variants = (self.options[name],) if name in self.options else method.variants
            ways = self._ways(method, diverse)
            for size in sizes:
                if size is not None and (size >= n or size < least):
                    size = None
                for options in variants:
                    for way in ways:
                        setups[Setup(name, size, tuple(sorted(options.items())), way)] = None
        return tuple(setups)

    def _ways(self, method: Algorithm, diverse: bool) -> tuple[tuple[tuple[str, Any], ...], ...]:
        """Return the ways to diversity of a method: each step as it is, and where it leaves open how, another way."""
        ways: dict[tuple[tuple[str, Any], ...], None] = {}
        for step in self.diversities or ({},):
            pairs = tuple(step.items())
            ways[pairs] = None
            if (step or diverse) and promises_matches(method.guarantee) and "way" not in step:
                ways[(*pairs, *BLIND)] = None
        return tuple(ways)

    def candidates(self, n: int, target: SearchTarget, diverse: bool) -> tuple[Candidate, ...]:
        """Return all candidates for a table of n records.

        Raises
        ------
        ParameterError
            If the table has too few records for the risk of the target, or for every k that it leaves.
        """
        if target.risk is not None and target.risk * n < 1.0 - 1e-9:
            raise ParameterError(
                f"risk {target.risk:g} is less than 1 in {n:,}, and a table of {n:,} records hides nobody among more; raise it to "
                f"at least {math.ceil(1e6 / n) / 1e6:g}",
                subject="target",
            )
        least = target.least_k
        ks = (
            tuple(sorted({k for k in self.ks if k <= n}))
            if self.ks
            else ladder(least, max(n // 2, least), KS)
        )
        ks = tuple(k for k in ks if k <= n)
        if not ks:
            raise ParameterError(
                f"search: a table of {n} records has too few for every k that is left; raise the risk, or name a smaller k"
            )
        return tuple(
            Candidate(setup, k)
            for setup in self.setups(n, ks[0], diverse)
            for k in ks
            if setup.size is None or setup.size >= k
        )
