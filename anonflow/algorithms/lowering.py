"""Classes for sets of columns: cells of a class are published as they were wherever each set alone still has k equal rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.method import Outcome, Partition
from anonflow.criteria.guarantee import sets_text
from anonflow.criteria.set_counts import named_sets, set_problems
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.loss import cell_costs
from anonflow.option import Option
from anonflow.partition import bounded, limited
from anonflow.table.domain import Domain
from anonflow.table.records import Records, equal_columns, rank_within

Sets = Annotated[Any, Option("Sets of columns that others may know, each by itself", lists=True)]
Problems = Callable[[Sequence[Domain] | None, Mapping[str, Any]], Iterator[tuple[str, str]]]
Of = Annotated[int | None, Option("Or all sets of so many columns", least=1, most=64)]


def sets_problems(domains: Sequence[Domain] | None, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the option and the problem of sets of columns that do not go with each other or with the columns."""
    names = None if domains is None else columns_of(domains)
    yield from set_problems(options.get("sets"), options.get("of"), names)


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


def promise_of_sets(sets: Any, chosen: Sequence[Sequence[str]], rows: str) -> str:
    """Return the guarantee of sets of columns, as a release names it."""
    promised = f"of={len(chosen[0])}" if sets is None else f"sets={sets_text(chosen)}"
    return f"key-sets({promised}, hidden=any, rows={rows})"


def for_sets(part: Partition, k: int, outcome: Outcome, sets: Any, of: int | None, subject: str) -> Outcome:
    """Return classes with as few generalized cells as sets of columns need; the classes themselves where no set is named.

    Each cell is that of its class or the record's own. On each set of columns a row whose values there are those of at least k
    people may be published as it is. Any other one has its class's cells there, and so have at least k rows of its class.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    outcome : Outcome
        Classes of at least k records, of these records.
    sets : list of lists of str or None
    of : int or None
    subject : str
        The method, for errors.

    Returns
    -------
    Outcome
        With neither matches nor classes. Further facts: `guarantee`, with the sets; `lowered_cells`, published as they were
        where the class has a wider one.

    Raises
    ------
    ParameterError
        If the sets are not sets of columns, or the table has a unit column.

    Notes
    -----
    On a set, at least k people with the same values, or k of one class, have rows that cover all of them: so everybody has k rows
    and every row k people, and all of these lie on complete matchings. Fewer than k suppressed records stay as they are, and all
    of them where there are boundaries or limits; k or more are a class. Sets with most rare rows come first; of a class the rows join that this costs least. O(s n log n) for s sets, O(q n) memory.
    """
    if sets is None and of is None:
        return outcome
    records = part.records
    if records.units is not None:
        raise ParameterError(
            "sets of columns count rows, and the table says which rows are the same person's; make one row of each person first",
            subject=subject,
        )
    names = columns_of(records.domains)
    for _, problem in set_problems(sets, of, names):
        raise ParameterError(problem, subject=subject)
    chosen = named_sets(sets, of, names)
    suppressed = outcome.suppressed
    rows = np.flatnonzero(~suppressed)
    if suppressed.sum() >= k and not (limited(records) or bounded(records)):
        rows = np.arange(records.n)  # a class; under limits a record is suppressed whole, or not at all
    own = Generalization.of(records)
    columns = [[a for a, domain in enumerate(records.domains) if domain.column == name] for name in names]
    sets_at = []
    for of_set in chosen:
        places = [names.index(name) for name in of_set]
        sets_at.append((np.array(places), [a for c in places for a in columns[c]]))
    weight = np.array([domain.weight for domain in records.domains])[:, None]
    more = weight * (cell_costs(outcome.generalization, part.loss) - cell_costs(own, part.loss))
    classes = outcome.generalization.classes() if outcome.classes is None else outcome.classes
    wide = np.zeros((len(names), records.n), bool)
    wide[:, suppressed] = True
    wide[:, rows] = _wide(
        [(places, np.flatnonzero(_rare(records, at, k)[rows])) for places, at in sets_at],
        np.array([more[at].sum(axis=0) for at in columns])[:, rows],
        np.unique(np.where(suppressed, -1, classes)[rows], return_inverse=True)[1],
        k,
    )
    cells = outcome.generalization.take(np.arange(records.n))
    lowered = 0
    for at, keep in zip(columns, wide, strict=True):
        lowered += int(_write(cells, own, at, np.flatnonzero(~keep)).sum())
    facts = outcome.facts | {
        "guarantee": promise_of_sets(sets, chosen, "matches"),
        "lowered_cells": lowered,
    }
    return Outcome(cells, suppressed=suppressed & cells.suppressed_rows(), facts=facts)


def _rare(records: Records, at: Sequence[int], k: int) -> np.ndarray:
    """Return which records have values that fewer than k have, on some quasi-identifiers, shape (n,), bool."""
    label = equal_columns(records.codes[:, at].T, records.n)
    return np.asarray(np.bincount(label)[label] < k)


def _wide(
    sets: Sequence[tuple[np.ndarray, np.ndarray]], prices: np.ndarray, classes: np.ndarray, k: int
) -> np.ndarray:
    """Return which cells are the class's, shape (q, n), bool.

    Parameters
    ----------
    sets : sequence of tuple of numpy.ndarray
        Columns, and the rows whose values there are rare.
    prices : numpy.ndarray, shape (q, n), float64
        How much more the class's cell costs.
    classes : numpy.ndarray, shape (n,), int64
        Labels 0.. of classes of at least k.
    k : int
    """
    wide = np.zeros(prices.shape, bool)
    for at, rows in sorted(sets, key=lambda rare: -len(rare[1])):
        count = np.bincount(classes[rows], minlength=int(classes.max(initial=0)) + 1)
        company = np.flatnonzero((count > 0)[classes] & (count < k)[classes])
        company = np.setdiff1d(company, rows, assume_unique=True)
        cost = np.where(wide[at][:, company], 0.0, prices[at][:, company]).sum(axis=0)
        order = company[np.lexsort((company, cost, classes[company]))]
        joining = order[rank_within(classes[order]) < (k - count)[classes[order]]]
        wide[at[:, None], rows] = True
        wide[at[:, None], joining] = True
    return wide


def _write(cells: Generalization, own: Generalization, at: Sequence[int], rows: np.ndarray) -> np.ndarray:
    """Give some rows their own cells in a column, in place; return which of them have another cell now, shape (rows,), bool."""
    changed = np.zeros(len(rows), bool)
    for a in at:
        if a in own.layout.row_of_range:
            t = own.layout.row_of_range[a]
            pairs = [(cells.lo[t : t + 1], own.lo[t : t + 1]), (cells.hi[t : t + 1], own.hi[t : t + 1])]
        else:
            words = slice(*own.layout.offset[own.layout.place_of_set[a] : own.layout.place_of_set[a] + 2])
            pairs = [(cells.bits[words], own.bits[words])]
        for target, source in pairs:
            changed |= (target[:, rows] != source[:, rows]).any(axis=0)
            target[:, rows] = source[:, rows]
    return changed
