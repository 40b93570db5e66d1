"""Local suppression for sets of columns: cells are hidden, or generalized, until each set alone names nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Annotated, Any, Literal

import numpy as np

from anonflow.algorithms.lowering import narrowed_for_sets, write_cells
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.recoding.full_domain import Widths
from anonflow.algorithms.recoding.key_set_search import CellLevels, KeySetSearch
from anonflow.algorithms.recoding.lattice import ColumnLevels, column_levels
from anonflow.algorithms.set_options import Importance, Of, Sets, promise_of_sets, sets_problems
from anonflow.criteria.set_counts import named_sets
from anonflow.errors import ParameterError, errors_of
from anonflow.generalization import Generalization
from anonflow.loss import LOSSES, cell_costs, measure_named
from anonflow.option import Option
from anonflow.partition import limited, too_few
from anonflow.table import Domain, Records, equal_columns

NAME = "local-suppression"

MOST_PATTERNS = 5_000
"""Combinations of hidden columns that are tried for the bound of the hidden cells."""


def option_problems(
    domains: Sequence[Domain] | None, options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the option and the problem of each that does not go with another one or with the columns."""
    yield from sets_problems(domains, options, always=True)
    if domains is None:
        return
    records = Records(tuple(domains), np.zeros((0, len(domains)), np.int32))
    numeric = {domain.column for domain in domains if domain.kind == "numeric"}
    widths, levels = options.get("widths"), options.get("levels")
    if isinstance(levels, Mapping):
        levels = {name: level for name, level in levels.items() if name not in numeric}
    for option, arguments in (("widths", (widths, None)), ("levels", (None, levels))):
        try:
            _levelled_columns(records, *arguments)
        except ParameterError as error:
            yield option, error.text


def local_suppression(
    part: Partition,
    k: int,
    *,
    sets: Sets = None,
    of: Of = None,
    importance: Importance = None,
    rows: Annotated[Literal["matches", "compatible"], Option("Rows that may be a person's")] = "matches",
    generalize: Annotated[bool, Option("Generalize before hiding")] = False,
    levels: Annotated[Any, Option("Lowest levels", mapping=True)] = None,
    widths: Widths = None,
) -> Outcome:
    """Hide cells until, on each set of columns, k rows may be every person's and every row may be k people's.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    sets : list of lists of str, optional
        Columns that an attacker may know together.
    of : int, optional
        Instead of `sets`: all sets of so many quasi-identifiers; 2 where both are left out.
    importance : mapping, optional
        Column -> number, 0 where none is given. A cell is hidden only where hiding all less important cells of its row is not enough.
    rows : {"matches", "compatible"}, optional
        ``matches``: of rows and people that are compatible only those count that lie on a complete matching of the set, because whoever knows
        everybody there excludes the others. ``compatible`` counts all of them, and hides a little less.
    generalize : bool, optional
        Whether a cell is raised along the levels of its column before it is hidden. The levels are those of ``full-domain``: nodes of a
        hierarchy, intervals of numbers, last positions of a code. A set of categories has none in between.
    levels : mapping, optional
        Column -> the level at which it is published at least, as ``full-domain`` names it: the whole column is recoded first.
    widths : mapping, optional
        Numeric column -> widths of its intervals, each a multiple of the one before.

    Returns
    -------
    Outcome
        With neither matches nor classes. Facts: `guarantee`, with the sets; `hidden_cells`, those of suppressed records among them;
        `generalized_cells`, above their lowest level, but not hidden; `matching_cells`, raised for complete matchings alone; `hidden_cells_bound`, the fewest hidden cells that any result has,
        where cells are hidden only and nothing bounds them.

    Raises
    ------
    ParameterError
        If an option does not go with the columns, or the table has a unit column.
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    The task is that of mu-Argus and of ``localSuppression`` of sdcMicro with ``combs`` (Hundepool 2012), the condition is stricter. A row is
    compatible with a person on a set if each of its cells there is hidden, or is the person's value or a node above it. mu-Argus counts rows
    that agree with each other, ``*`` with all; that lets the only row with a rare value stand beside rows that hide theirs.

    Raising a cell lowers no count. First each row gets the cheapest combination of raised cells under which the row is compatible with k
    people on each set; where these combinations are too many, single cells that lower most deficits for their price. Then cells of any
    rows are raised until everybody is compatible with k rows. At last cells are lowered wherever nothing breaks, important and expensive
    ones first: in the end none of them can be lower. Of small tables, single cells are raised where others can be lowered instead for no
    more. The fewest hidden cells of each row by itself, added up, are the bound.
    O(P m) for each set and step of the search, with sets of m columns; memory O(P) for each set.

    Complete matchings (Tassa 2012, Definition 6, on each set): everybody's own row is one; another row is a person's in one of them where it lies
    in the same strongly connected component. Rows of people who lack matches hide more of the set.

    Whoever knows more columns than a set has may find fewer rows. Whoever runs the method again learns from a hidden cell that its value is
    probably rare.
    """
    if part.n < k:
        raise too_few(part.n, k)
    records = part.records
    if records.units is not None:
        raise ParameterError(
            "counts rows, and the table says which rows are the same person's; make one row of each person first",
            subject=NAME,
        )
    options = {"sets": sets, "of": of, "importance": importance, "widths": widths}
    for _, problem in option_problems(records.domains, options):
        raise ParameterError(problem, subject=NAME)
    columns = _levelled_columns(records, widths, levels, generalize)
    names = [column.name for column in columns]
    chosen = named_sets(sets, of, names)
    cells = [
        column.cells(records, part.loss, float((importance or {}).get(column.name, 0))) for column in columns
    ]
    search = KeySetSearch(
        cells, [[names.index(name) for name in columns] for columns in chosen], k, rows == "matches"
    )
    search.run()
    search.suppress_rest()
    whole = np.array([column.whole for column in cells])[:, None]
    generalization = Generalization.of(records).with_suppressed(np.ones(records.n, bool))
    for column, level in zip(columns, search.level, strict=True):
        column.write(generalization, records, level)
    suppressed = np.asarray(generalization.hidden().all(axis=0))
    hidden = (search.level == whole) & (search.first < whole)
    facts: dict[str, Any] = {
        "guarantee": promise_of_sets(sets, chosen, rows),
        "hidden_cells": int(hidden.sum()),
        "generalized_cells": int(((search.level > search.first) & ~hidden).sum()),
    }
    if rows == "matches":
        facts["matching_cells"] = search.matching_cells
    if not generalize and all(column.highest == column.whole or column.constant for column in cells):
        facts["hidden_cells_bound"] = _fewest(search)
    exempt = suppressed & (suppressed.sum() < k)
    generalization = generalization.with_suppressed(suppressed)
    generalization = narrowed_for_sets(records, generalization, chosen, k, rows, exempt)
    return Outcome(generalization, suppressed=suppressed, facts=facts)


@dataclass(frozen=True, eq=False)
class _RecodedColumn:
    """A published column with the cells that its values have at each level.

    Attributes
    ----------
    name : str
    qis : tuple of int
        Its coded quasi-identifiers.
    levels : ColumnLevels or None
        None where a value is published or hidden, and has no runs of its own.
    may_hide : bool
    """

    name: str
    qis: tuple[int, ...]
    levels: ColumnLevels | None
    may_hide: bool

    def cells(self, records: Records, loss: str, importance: float) -> CellLevels:
        """Return what the search needs: which records a cell of each level covers, and its price."""
        domains = [records.domains[a] for a in self.qis]
        codes = [records.codes[:, a] for a in self.qis]
        n = records.n
        everything = Generalization.of(records.take(np.zeros(1, np.int64))).with_suppressed(np.ones(1, bool))
        costs = cell_costs(everything, loss)[:, 0]
        total = sum(domain.weight for domain in records.domains)
        shares = [domain.weight / total for domain in domains]
        highest_price = sum(share * costs[a] for share, a in zip(shares, self.qis, strict=True))
        labels, prices = [], []
        if self.levels is None or max(domain.size for domain in domains) < 2:
            labels.append(equal_columns([] if self.levels else codes, n))
            prices.append(np.zeros(n))
        else:
            run_costs = LOSSES[measure_named(loss)].run_costs
            for level in range(len(self.levels.labels)):
                parts, price = [], np.zeros(n)
                for domain, code, share, lo, hi in zip(
                    domains, codes, shares, self.levels.lo, self.levels.hi, strict=True
                ):
                    parts += [lo[level][code], hi[level][code], code < 0]
                    if domain.size > 1:
                        price += share * np.asarray(run_costs(domain, lo[level], hi[level]), np.float64)[code]
                labels.append(equal_columns(parts, n))
                prices.append(price)
        if self.may_hide and self.levels is not None:
            labels, prices = labels[:-1], prices[:-1]
        highest = len(labels) if self.may_hide else len(labels) - 1
        labels.append(np.zeros(n, np.int64))
        prices.append(np.full(n, highest_price))
        missing = np.zeros(n, bool)
        if any(domain.has_missing and not domain.has_codes for domain in domains):
            missing = codes[0] < 0
        first = np.where(missing, len(labels) - 1, 0)
        return CellLevels(np.array(labels, np.int32), np.array(prices), first, highest, importance)

    def write(self, cells: Generalization, records: Records, level: np.ndarray) -> None:
        """Write the cells of these levels, in place; the last one is left as it is: everything."""
        if self.levels is None:
            write_cells(cells, Generalization.of(records), self.qis, np.flatnonzero(level == 0))
            return
        rows = np.flatnonzero(level < len(self.levels.labels) - self.may_hide)
        self.levels.write(cells, records, level[rows], rows)


def _levelled_columns(
    records: Records, widths: Any = None, levels: Any = None, generalize: bool = True
) -> list[_RecodedColumn]:
    """Return the columns with their levels, from the lowest one that is allowed.

    Raises
    ------
    ParameterError
        If widths do not nest, or a column or a level does not exist.
    """
    domains = records.domains
    qis: dict[str, list[int]] = {}
    for a, domain in enumerate(domains):
        qis.setdefault(domain.column, []).append(a)
    plain = {domain.column for domain in domains if domain.shape == "set" or domain.has_codes}
    leveled = [a for a, domain in enumerate(domains) if domain.column not in plain]
    part = Records(tuple(domains[a] for a in leveled), records.codes[:, leveled])
    with errors_of(NAME, shared="full-domain"):
        columns_by_name = {column.column: column for column in column_levels(part, widths)}
        if levels is not None and not isinstance(levels, Mapping):
            raise ParameterError("levels maps columns to levels, such as {age: width 10}", subject=NAME)
    for name, label in (levels or {}).items():
        if name not in columns_by_name:
            why = "is published or hidden, and has no levels" if name in plain else "is no quasi-identifier"
            raise ParameterError(f"levels names {str(name)[:40]!r}, which {why}", subject=NAME)
        if label not in columns_by_name[name].labels:
            raise ParameterError(
                f"column {name!r} has no level {str(label)[:40]!r}; its levels are "
                f"{', '.join(columns_by_name[name].labels)}",
                subject=NAME,
            )
    narrow = {domains[a].column for a in limited(records)} | {
        domain.column for domain in domains if domain.bound is not None
    }
    columns = []
    for name, at in qis.items():
        if name in plain:
            columns.append(_RecodedColumn(name, tuple(at), None, name not in narrow))
            continue
        column = columns_by_name[name]
        last = len(column.labels) - 1
        may_hide = last > 0 and all(
            (lo[-1] <= 0).all() and (hi[-1] >= domains[a].size - 1).all()
            for a, lo, hi in zip(at, column.lo, column.hi, strict=True)
        )
        first = column.labels.index(levels[name]) if levels and name in levels else 0
        level_indexes = list(range(first, last + 1)) if generalize else [first, *([last] if may_hide else [])]
        if not generalize and first == last:
            level_indexes = [first]
        columns.append(
            _RecodedColumn(name, tuple(at), replace(column.take(level_indexes), qis=tuple(at)), may_hide)
        )
    return columns


def _fewest(search: KeySetSearch) -> int:
    """Return the fewest cells that must be hidden so that each row is compatible with k people, whatever the others do."""
    q = len(search.columns)
    failing = np.arange(search.n)
    total = trials = 0
    for size in range(q + 1):
        if not len(failing) or trials + comb(q, size) > MOST_PATTERNS:
            return total + size * len(failing)
        trials += comb(q, size)
        good = np.zeros(len(failing), bool)
        for hidden in combinations(range(q), size):
            good |= search.fits([(c, search.columns[c].whole) for c in hidden])[failing]
        total += size * int(good.sum())
        failing = failing[~good]
    return total


LOCAL_SUPPRESSION = Algorithm(
    name=NAME,
    run=local_suppression,
    family="recoding",
    paper="Hundepool et al.: Statistical disclosure control. Wiley, 2012",
    guarantee="key-sets",
    complexity="O(t s n) for s sets and t combinations of hidden columns that are tried",
    summary="hides single cells until nobody is named by any of the combinations of columns that you name; no promise beyond these",
    colour="#35523b",
    shape="hex",
    whole_table=True,
    fixed_cells=True,
    keeps_limits=True,
    option_problems=option_problems,
)
