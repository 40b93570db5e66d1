"""Local recoding: full-domain generalization, applied again to the records that it suppressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.lowering import for_sets
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.recoding.full_domain import (
    TimeLimit,
    Widths,
    outcome_of,
    search,
)
from anonflow.algorithms.recoding.lattice import ColumnLevels, column_levels, option_problems
from anonflow.algorithms.set_options import Importance, Of, Sets, weighted, with_sets
from anonflow.errors import errors_of
from anonflow.generalization import Generalization
from anonflow.option import Option
from anonflow.partition import too_few
from anonflow.table.records import Records

NAME = "local-recoding"

Rounds = Annotated[int, Option("Rounds", least=1, most=1000)]


def local_recoding(
    part: Partition,
    k: int,
    *,
    rounds: Rounds = 100,
    widths: Widths = None,
    time_limit: TimeLimit = None,
    sets: Sets = None,
    of: Of = None,
    importance: Importance = None,
) -> Outcome:
    """Publish most records at one level of each column, and the suppressed ones in further rounds at other levels.

    In each round the levels are those of least loss over the records that are left, a suppressed record losing all.
    Records in classes of at least k are published at these levels; the others go into the next round, until all are
    published, fewer than k are left, or every one of them would be suppressed. `*` for all records of the table is a class.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    rounds : int, optional
        The most rounds; records left after the last one are suppressed.
    widths, time_limit : optional
        As of :func:`anonflow.algorithms.recoding.full_domain.full_domain`, of each round.
    sets : list of lists of str, optional
        Columns that others may know, each set by itself: cells are lowered as far as each set allows.

        See :func:`anonflow.algorithms.lowering.for_sets`.
    of : int, optional
        Instead of sets: all sets of so many columns.
    importance : mapping, optional
        Of sets: column -> number, 0 where none is given. Classes differ least in the columns with the greatest number, whose
        cells are lowered first.

    Returns
    -------
    Outcome
        With classes. Facts: `levels`, of the first round; `rounds`; `published_by_round`, how many records each
        published; `optimal`, whether each round's levels were proved to lose the least.

    Raises
    ------
    ParameterError
        If a column has no hierarchy, widths do not nest, or the lattice is too large.
    InfeasibleError
        If there are fewer than k records.

    Notes
    -----
    Prasser, Kohlmayer and Kuhn, "The importance of context" (2016) apply full-domain generalization again to what was
    suppressed; this one lets each round choose by the loss alone how many it leaves, where they bound the share. Never
    more loss than ``full-domain`` with a limit of 1. The levels of a round may be higher than those before in one column and
    lower in another; records of different rounds with the same cells are one class. Time of ``full-domain`` a round.

    Records that an earlier round would have published are in no later row: the attacker :class:`anonflow.risk.Refinement` rules
    their values out, and needs nobody's quasi-identifiers (Chhillar 2025).

    Diversity: a round publishes diverse classes only. Records left in the end are suppressed; if these are k or more
    and not diverse, :func:`anonflow.diversify` suppresses classes with them.
    """
    if part.n < k:
        raise too_few(part.n, k)
    records, heavy = part.records, weighted(part, sets, of, importance, NAME)
    everything = Generalization.of(records).with_suppressed(np.ones(records.n, bool))
    lo, hi, bits = everything.lo.copy(), everything.hi.copy(), everything.bits.copy()
    unpublished = np.arange(records.n)
    counts: list[int] = []
    facts: dict[str, Any] = {}
    optimal = True
    while len(unpublished) >= k and len(counts) < rounds:
        with errors_of(NAME, shared="full-domain"):
            lattice_search = search(heavy.take(unpublished), k, 1.0, widths, time_limit, pool=False)
        cells, _, small = lattice_search.lattice.published(lattice_search.best.node, k)
        hidden = small | cells.suppressed_rows()
        if counts or small.any() or not hidden.all():
            # `*` for all records is a class; for some of them it looks like the rows that are left
            small = hidden
        optimal &= lattice_search.bound >= lattice_search.best.loss
        facts = facts or {"levels": lattice_search.facts()["levels"]}
        if small.all():
            break
        rows = unpublished[~small]
        lo[:, rows], hi[:, rows] = cells.lo[:, ~small], cells.hi[:, ~small]
        bits[:, rows] = cells.bits[:, ~small]
        counts.append(len(rows))
        unpublished = unpublished[small]
    generalization = Generalization(records.domains, lo, hi, bits)
    if sets is None and of is None:
        generalization = generalization.narrowed(records)
    suppressed = np.zeros(records.n, bool)
    suppressed[unpublished] = True
    facts |= {"rounds": len(counts), "published_by_round": counts, "optimal": bool(optimal)}
    outcome = outcome_of(generalization, generalization.classes(), suppressed, facts)
    levels = () if sets is None and of is None else _levels(records, column_levels(records, widths))
    return for_sets(part, k, outcome, sets, of, importance, NAME, levels)


def _levels(records: Records, columns: Sequence[ColumnLevels]) -> list[Generalization]:
    """Return the records at each level above their values, columns of fewer levels at their last one."""
    levels = []
    for level in range(1, max(len(column.labels) for column in columns)):
        cells = Generalization.of(records)
        for column in columns:
            column.write(cells, records, min(level, len(column.labels) - 1))
        levels.append(cells)
    return levels


LOCAL_RECODING = Algorithm(
    name=NAME,
    run=local_recoding,
    family="recoding",
    paper="Prasser, Kohlmayer, Kuhn: The importance of context. Methods of Information in Medicine 55, 2016",
    guarantee="k-anonymity",
    complexity="O(r c n q) for r rounds",
    summary="full-domain, again and again for the records it suppressed: fewer hidden records, several levels a column",
    colour="#35523b",
    shape="square_pin",
    needs_hierarchies=True,
    whole_table=True,
    fixed_cells=True,
    diverse=True,
    option_problems=with_sets(option_problems),
)
