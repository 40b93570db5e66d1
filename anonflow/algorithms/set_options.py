"""Sets of columns that others may know, each by itself: the options of methods that protect them, and what they promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.method import Partition
from anonflow.criteria.guarantee import sets_text
from anonflow.criteria.set_counts import named_sets, set_problems
from anonflow.errors import ParameterError
from anonflow.option import Option, is_finite
from anonflow.table import Domain, Records
from anonflow.table.schema import did_you_mean

Sets = Annotated[Any, Option("Sets of columns that others may know, each by itself", lists=True)]
Problems = Callable[[Sequence[Domain] | None, Mapping[str, Any]], Iterator[tuple[str, str]]]
Of = Annotated[int | None, Option("Or all sets of so many columns", least=1, most=64)]
Importance = Annotated[Any, Option("Importance of columns", mapping=True)]

MOST_RANKS = 4
"""Classes are made by weights for so many numbers of importance above the least one; greater ones have the greatest weight."""


def sets_problems(
    domains: Sequence[Domain] | None, options: Mapping[str, Any], *, always: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the option and the problem of sets of columns, and their importance, that do not go with each other or with the columns.

    Parameters
    ----------
    domains : sequence of Domain or None
    options : mapping
    always : bool, optional
        Whether the method takes sets of columns where none is named.
    """
    names = None if domains is None else columns_of(domains)
    yield from set_problems(options.get("sets"), options.get("of"), names)
    importance = options.get("importance")
    if importance is None:
        return
    if not isinstance(importance, Mapping):
        yield "importance", "importance maps columns to numbers, such as {age: 2, sex: 1}"
        return
    for name, value in importance.items():
        if names is not None and name not in names:
            hint = did_you_mean(str(name), names)
            yield "importance", f"importance of {str(name)[:40]!r}, which is no quasi-identifier{hint}"
        elif not is_finite(value):
            yield "importance", f"the importance of {str(name)[:40]!r} must be a number"
    if not always and options.get("sets") is None and options.get("of") is None:
        yield "importance", "importance goes with sets or of; name sets of columns, or leave it out"


def with_sets(problems: Problems) -> Problems:
    """Return a method's check of its options, with that of its sets of columns."""

    def all_problems(
        domains: Sequence[Domain] | None, options: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        yield from problems(domains, options)
        yield from sets_problems(domains, options)

    return all_problems


def columns_of(domains: Sequence[Domain]) -> list[str]:
    """Return the published columns of coded quasi-identifiers, in their order."""
    return list(dict.fromkeys(domain.column for domain in domains))


def qis_of(domains: Sequence[Domain], chosen: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the positions of the coded quasi-identifiers of each set of columns."""
    return [[a for a, domain in enumerate(domains) if domain.column in names] for names in chosen]


def promise_of_sets(sets: Any, chosen: Sequence[Sequence[str]], rows: str) -> str:
    """Return the guarantee of sets of columns, as a release names it."""
    promised = f"of={len(chosen[0])}" if sets is None else f"sets={sets_text(chosen)}"
    return f"key-sets({promised}, hidden=any, rows={rows})"


def sets_of(records: Records, sets: Any, of: int | None, importance: Any, subject: str) -> list[list[str]]:
    """Return the sets of columns that are named; none where there are none.

    Raises
    ------
    ParameterError
        If the sets are not sets of columns, the importance is none of these, or the table has a unit column.
    """
    if sets is None and of is None and importance is None:
        return []
    for _, problem in sets_problems(records.domains, {"sets": sets, "of": of, "importance": importance}):
        raise ParameterError(problem, subject=subject)
    if records.units is not None:
        raise ParameterError(
            "sets of columns count rows, and the table says which rows are the same person's; make one row of each person first",
            subject=subject,
        )
    return named_sets(sets, of, columns_of(records.domains))


def weighted(part: Partition, sets: Any, of: int | None, importance: Any, subject: str) -> Partition:
    """Return the records with weights by which classes differ least in important columns.

    Raises
    ------
    ParameterError
        As :func:`sets_of`.
    """
    sets_of(part.records, sets, of, importance, subject)
    if not importance:
        return part
    domains = part.records.domains
    numbers = [float(importance.get(domain.column, 0)) for domain in domains]
    rank = np.minimum(np.unique(numbers, return_inverse=True)[1], MOST_RANKS).tolist()
    # a factor that a hundred less important columns together do not outweigh
    heavy = [
        replace(domain, weight=domain.weight * 100.0**r) for domain, r in zip(domains, rank, strict=True)
    ]
    return replace(part, records=replace(part.records, domains=tuple(heavy)))
