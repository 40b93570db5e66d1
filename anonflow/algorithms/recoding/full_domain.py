"""Full-domain generalization: the optimal level for each column, with a share of suppressed records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.recoding.lattice import Groups, Lattice, column_levels, fixed_levels, option_problems
from anonflow.errors import InfeasibleError
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.kernels.jit import method_clock
from anonflow.option import Option
from anonflow.partition import too_few
from anonflow.table.records import Records

Limit = Annotated[float, Option("Suppression limit", least=0, most=1, step=0.01)]
Levels = Annotated[Any, Option("Levels that are fixed", mapping=True)]
Widths = Annotated[
    Any,
    Option(
        "Widths of numeric columns",
        mapping=True,
        sentence="Numeric column -> widths of its intervals, each a multiple of the one before.",
    ),
]
TimeLimit = Annotated[
    float | None,
    Option(
        "Time limit (s)",
        least=0.001,
        time_limit=True,
        sentence="Seconds after which the search stops with its best levels; without it, the search ends with the optimum.",
    ),
]


def full_domain(
    part: Partition,
    k: int,
    *,
    limit: Limit = 0.05,
    levels: Levels = None,
    widths: Widths = None,
    time_limit: TimeLimit = None,
) -> Outcome:
    """Publish each column at one level of its hierarchy; the levels are those of least loss.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    limit : float, optional
        Share of the records that may be suppressed: those in classes of fewer than k, or that are not diverse.
    levels : mapping, optional
        Column -> the level at which it is published, as `facts` names it; the others are searched.

        Such as ``{"age": "width 10", "town": "level 1", "sex": "values", "race": "*"}``.
    widths : mapping, optional
        Numeric column -> widths of its intervals, each a multiple of the one before.

        Intervals begin at multiples of the width. Without it, widths that double, see
        :func:`anonflow.algorithms.recoding.lattice.column_levels`.
    time_limit : float, optional
        Seconds after which the search stops with its best levels; without it, the search ends with the optimum. The
        compilation of kernels in a first run is not counted.

    Returns
    -------
    Outcome
        With classes. Facts: `levels`, by column; `nodes` of the lattice, how many were `checked` and how many
        `pruned` without a check; `optimal`, whether no other node loses less, and `gap`, by how much a node that was
        not looked at may lose less, in the mean of a record.

    Raises
    ------
    ParameterError
        If a column has no hierarchy, widths do not nest, a column does not have a level, or the lattice is too large.
    InfeasibleError
        If there are fewer than k records, or `levels` suppress too many.

    Notes
    -----
    The optimum over the lattice of Samarati 2001 (IEEE TKDE 13(6)), found with predictive tagging: a path of nodes is
    searched by bisection, and every node below one that suppresses too many records is known to do so, too (El Emam
    et al. 2009, OLA; Kohlmayer et al. 2012, Flash). Departing from both, which compare all nodes that are left, nodes
    come in the order of a lower bound of their loss, a node raises the bounds of those below it by what its suppressed
    records cost there at least, and the search ends with the first bound that is not below the best loss. Suppressed
    records cost as everywhere here, all cells hidden. Above a node that suppresses too many records a highest such node
    is looked for, column by column; all below that are known, too. A node's classes are counted from those of a node
    below it.
    O(c t q) time for c checked nodes and t distinct records. In the end intervals of numbers are narrowed to values of records that
    are not suppressed, which the search does not price. Where the schema has boundaries, each boundary class is a
    table of its own.

    Diversity (Machanavajjhala et al. 2006; Li et al. 2007), where :func:`anonflow.diversify` asks for it: a class that lacks
    it is suppressed as one of fewer than k is, and suppressed records, where they are k or more, must be diverse as well.
    With suppression that is not monotone: a diverse class may be united with one that is not, so a higher node may
    suppress more, and a node that suppresses too many does not imply the same for nodes below it. We use only what
    holds. Unions of diverse classes are diverse, for every criterion here; so of a class that lacks diversity, every
    node below suppresses at least as many records as must go before the others are diverse (l-diversity: what its most
    frequent value has too many). Only where that many, with the records in classes of fewer than k, are above the limit
    are all nodes below tagged; their bounds rise by what so many records lose. At limit 0 one such class is enough, and
    tagging is that of Machanavajjhala et al. 2006, section 5. The optimum is exact in every case.
    """
    if part.n < k:
        raise too_few(part.n, k)
    lattice_search = search(part, k, limit, widths, time_limit, levels=levels)
    cells, labels, suppressed = lattice_search.lattice.published(lattice_search.best.node, k)
    cells = cells.with_suppressed(suppressed).narrowed(part.records)
    return outcome_of(cells, labels, suppressed, lattice_search.facts())


def outcome_of(
    generalization: Generalization, labels: np.ndarray, suppressed: np.ndarray, facts: dict[str, Any]
) -> Outcome:
    """Return the outcome of giving each record a class and the cells of its level.

    Suppressed records share a label, also with a class that hides all cells: the published rows cannot be told apart.
    """
    if suppressed.any():
        suppressed = suppressed | generalization.suppressed_rows()
    return Outcome(
        generalization.with_suppressed(suppressed),
        classes=np.where(suppressed, labels.max(initial=-1) + 1, labels),
        suppressed=suppressed,
        facts=facts,
    )


@dataclass(frozen=True, eq=False)
class LatticeSearch:
    """The result of a search of the lattice.

    Attributes
    ----------
    lattice : Lattice
    best : Groups
        The node of least loss, and its groups.
    checked : int
        Nodes whose groups were counted.
    bound : float
        No node that suppresses few enough loses less than this, in the sum over all records.
    """

    lattice: Lattice
    best: Groups
    checked: int
    bound: float

    def facts(self) -> dict[str, Any]:
        """Return the facts about the search."""
        nodes = self.lattice.bound.size
        gap = max(0.0, self.best.loss - self.bound) / max(1, self.lattice.records.n)
        return {
            "levels": self.lattice.level_labels(self.best.node),
            "nodes": nodes,
            "checked": self.checked,
            "pruned": nodes - self.checked,
            "optimal": bool(self.bound >= self.best.loss),
            "gap": gap,
        }


def search(
    part: Partition,
    k: int,
    limit: float,
    widths: Any = None,
    time_limit: float | None = None,
    pool: bool = True,
    levels: Any = None,
) -> LatticeSearch:
    """Return the node of least loss among those that suppress at most a share of the records.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    limit : float
        The share, in [0, 1].
    widths : mapping, optional
    time_limit : float, optional
        Seconds.
    pool : bool, optional
        Whether the suppressed records are published, so that they are to be diverse; not where they are recoded again.
    levels : mapping, optional
        Those that are fixed.

    Returns
    -------
    LatticeSearch
        Of nodes that lose equally much, the first by its bound, then by its levels; the highest node, if all lose everything.

    Raises
    ------
    ParameterError
        If a column has no levels, or there are too many nodes.
    InfeasibleError
        If boundaries leave no node that suppresses few enough, or whose classes are diverse.
    """
    until = np.inf if time_limit is None else method_clock() + time_limit
    columns = fixed_levels(column_levels(part.records, widths), levels)
    lattice = Lattice(part.records, columns, part.loss, part.sensitive)
    state = _KnownNodes(lattice, k, most_suppressed(part.records, limit), pool)
    proved = np.inf
    # by ascending bound: where one reaches the best loss, no later node is better
    for place in np.argsort(lattice.bound, axis=None, kind="stable").tolist():
        bound = float(lattice.bound.flat[place])
        if bound >= state.loss or (state.best is not None and method_clock() > until):
            proved = bound
            break
        if state.least.flat[place] < state.loss:
            state.visit(tuple(int(level) for level in np.unravel_index(place, lattice.shape)))
    if state.best is None:
        if state.mixed:
            raise InfeasibleError(
                "wherever few enough records are suppressed, the suppressed records are a class that is not diverse; ask for less "
                "diversity, lower `limit` or k, or allow wider generalizations",
                subject="full-domain",
            )
        less = "" if part.sensitive is None else "ask for less diversity, "
        raise InfeasibleError(
            f"no levels within {'the boundaries' if levels is None else '`levels`'} suppress at most {plural(state.most, 'record')}; raise `limit`, lower k, "
            f"{less}or allow wider generalizations",
            subject="full-domain",
        )
    best = state.best
    if np.isclose(best.loss, lattice.star * part.n, rtol=1e-12):
        # nothing is left of any record: then `*` for all is a class, and nobody is suppressed
        best = state.whole() or best
    return LatticeSearch(lattice, best, int(state.counted.sum()), min(proved, best.loss))


class _KnownNodes:
    """Bounds and results of the nodes during a search of the lattice.

    Attributes
    ----------
    least : numpy.ndarray, float64
        For each node a lower bound of its loss; infinite where it suppresses too many records.
    counted : numpy.ndarray, bool
        Nodes whose groups were counted.
    best : Groups or None
        The node of least loss so far.
    mixed : bool
        Whether a node was refused only because its suppressed records are not diverse.
    """

    def __init__(self, lattice: Lattice, k: int, most: int, pool: bool) -> None:
        self.lattice, self.k, self.most, self.pool = lattice, k, most, pool
        self.least = lattice.bound.copy()
        self.counted = np.zeros(lattice.shape, bool)
        self.best: Groups | None = None
        self.mixed = False

    @property
    def loss(self) -> float:
        """The least loss so far."""
        return np.inf if self.best is None else self.best.loss

    def visit(self, at: tuple[int, ...]) -> None:
        """Test whether a node is better than the best one, with as few counts as the nodes above it allow."""
        path = _path(at, self.lattice.bound, self.loss)
        step = len(path) - 1
        while not self.counted[at] and self.least[at] < self.loss:
            node = path[step]
            # from the top of the path down by halves: what is counted above bounds all nodes below
            step //= 2
            if not self.counted[node]:
                groups = self.count(node)
                if groups.below > self.most:
                    self.climb(groups)

    def count(self, node: tuple[int, ...], below: Groups | None = None) -> Groups:
        """Count the groups of a node, and derive bounds of the nodes below it."""
        groups = self.lattice.groups(np.array(node), self.k, below)
        self.counted[node] = True
        if groups.below <= self.most and groups.loss < self.loss:
            groups = self.lattice.diverse(groups, self.k, self.pool)
        under = tuple(slice(0, level + 1) for level in node)
        if groups.below > self.most:
            self.least[under] = np.inf
            return groups
        np.maximum(self.least[under], self.lattice.bound[under] + groups.more, out=self.least[under])
        if groups.suppressed <= self.most and groups.good and groups.loss < self.loss:
            self.best = groups
        self.mixed |= groups.suppressed <= self.most and not groups.good
        return groups

    def whole(self) -> Groups | None:
        """Return the groups of the highest node, if it suppresses nobody."""
        highest = tuple(levels - 1 for levels in self.lattice.shape)
        self.counted[highest] = True
        groups = self.lattice.diverse(self.lattice.groups(np.array(highest), self.k), self.k, self.pool)
        return groups if groups.good and not groups.suppressed else None

    def climb(self, groups: Groups) -> None:
        """Search, above a node that suppresses too many records, a highest node that does so, too: all nodes below it do.

        Columns of few levels are raised first. Each count starts from the groups of a node below, which are few.
        """
        node, shape = groups.node.tolist(), self.lattice.shape
        for c in sorted(range(len(shape)), key=shape.__getitem__):
            low, high = node[c], shape[c] - 1
            while low < high:
                middle = (low + high + 1) // 2
                above = (*node[:c], middle, *node[c + 1 :])
                if not self.counted[above] and np.isfinite(self.least[above]):
                    counted = self.count(above, groups)
                    groups = counted if counted.below > self.most else groups
                if np.isinf(self.least[above]):
                    low = middle
                else:
                    high = middle - 1
            node[c] = low


def most_suppressed(records: Records, limit: float) -> int:
    """Return how many records a share of them is, rounded down."""
    # a share such as 0.29 means 29 of 100, also if 0.29 * 100 is less in floats
    return int(np.floor(limit * records.n + 1e-9))


def _path(node: tuple[int, ...], bound: np.ndarray, best: float) -> list[tuple[int, ...]]:
    """Yield nodes from one upwards while their bound is below `best`, each next one by the level that raises it least."""
    path = [node]
    while True:
        above = [
            (*node[:c], level + 1, *node[c + 1 :])
            for c, level in enumerate(node)
            if level + 1 < bound.shape[c]
        ]
        above = [at for at in above if bound[at] < best]
        if not above:
            return path
        node = min(above, key=lambda at: float(bound[at]))
        path.append(node)


FULL_DOMAIN = Algorithm(
    name="full-domain",
    run=full_domain,
    family="recoding",
    paper="Samarati: Protecting respondents' identities in microdata release. IEEE TKDE 13(6), 2001",
    guarantee="k-anonymity",
    complexity="O(c n q) for c checked nodes",
    summary="one level for each column, as offices recode: read without explanation, much loss",
    colour="#5b6770",
    shape="square_pin",
    needs_hierarchies=True,
    whole_table=True,
    fixed_cells=True,
    diverse=True,
    option_problems=option_problems,
)
