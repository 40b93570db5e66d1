"""Run a method on a table, partition by partition."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from anonflow.algorithms.anonymization import Anonymization
from anonflow.algorithms.assembly import gathered
from anonflow.algorithms.budget import (
    AHEAD,
    AUTO,
    ENDING,
    Choice,
    Deadline,
    check_automatic,
    check_budget,
    choose,
    choose_method,
    first_method,
)
from anonflow.algorithms.cohorts import anonymized_again
from anonflow.algorithms.method import Algorithm, Outcome, Progress
from anonflow.algorithms.pilots import LOOK, TimedTable, run_pilots
from anonflow.algorithms.registry import algorithm_named
from anonflow.algorithms.solve import (
    check_together,
    in_a_partition,
    partition_generator,
    partition_rng,
    solve,
    solve_together,
)
from anonflow.drawing.countdown import Countdown
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.loss import measure_named
from anonflow.option import check_whole
from anonflow.partition import MOST_RECORDS, bounded, divided, limited, too_few, unbounded
from anonflow.release.randomness import checked_seed, warn_of_small_seed
from anonflow.table import Records, Schema, Table
from anonflow.threads import default_threads, results_of

CHECKED = 8_192
"""The most records of partitions that are checked together, about."""

GROUPS, FEW_GROUPS = 8, 2
"""The fewest groups of them for a thread; with few, threads may wait for the last ones, so only where groups are solved in one call."""


def anonymize(
    table: Any,
    algorithm: str = "greedy",
    k: int = 10,
    *,
    partition_size: int | str | None = None,
    order: str = "lexicographic",
    loss: str = "ncp",
    seed: int | bytes | str | None = None,
    workers: int | None = None,
    boundaries: bool = True,
    budget: float | None = None,
    guarantee: str | None = None,
    watch: Callable[[Progress], None] | None = None,
    schema: Schema | Mapping[str, Any] | str | PathLike[str] | None = None,
    earlier: Any = None,
    people: int | None = None,
    **options: Any,
) -> Anonymization:
    """Generalize a table so that nobody in it can be singled out among fewer than k.

    Parameters
    ----------
    table : Table, or frame
        n records. A frame is one of pandas, or speaks Arrow's PyCapsule interface (polars, DuckDB, pyarrow).
    algorithm : str
        A name of :func:`anonflow.algorithms`; or ``"auto"``, which takes the one that loses least in the `budget` under
        the `guarantee`, with its partition size and options (:func:`anonflow.algorithms.budget.choose_method`). The
        result's ``algorithm`` and ``parameters`` say which, and make the same result again.
    k : int
        At least 2, at most n.
    partition_size : int or "auto", optional
        Records in a partition, which is processed alone; by default the whole table. ``"auto"`` takes the largest
        with which the method is expected to keep the `budget` (Doka 2015, section 8.1); ``parameters`` says which,
        and the same number makes the same result again.
    order : {"lexicographic", "input", "random"}
        The order along which the table is cut into partitions.
    loss : str
        The information loss to keep low.
    seed : bytes, str or int, optional
        For methods that use randomness; the same seed gives the same bits whatever the workers. Of methods whose
        secrecy rests on it (k-concealment) it is a secret as that of a release, 128 bits.
    workers : int, optional
        Threads; by default as many as there are processors, for partitions of at most 1,000 records as a rule at most four
        (:func:`anonflow.threads.default_threads`).
    boundaries : bool, optional
        Whether the method works inside the schema's boundaries. Then records that too few others may be
        generalized with are suppressed, and no value goes beyond its boundary. Without, the criterion
        ``boundary`` counts how many do.
    budget : float, optional
        Seconds, of methods that have an effort (`kicks` of ``two-phase``, and of classes with ``improve="chains"``), or
        with ``partition_size="auto"``. The method is timed on a few partitions of this table, and partition size and
        effort are what is expected to keep the budget (:mod:`anonflow.algorithms.budget`); ``two-phase`` on a whole
        table is measured while it runs, and ends with the budget. ``parameters`` says the numbers, which make the same result again. ``facts["fits_budget"]`` is whether it is expected to be kept,
        ``facts["picked"]`` the choice in words.
    guarantee : {"k-regular", "k-anonymity"}, optional
        Of the method ``"auto"``, and needed there.
    watch : callable, optional
        Called with a :class:`anonflow.algorithms.method.Progress` between the rounds of a method that works in rounds,
        in the thread of the partition. What it raises ends the run: nothing is kept.
    schema : Schema, mapping or path, optional
        Of a frame; a table has its own.
    earlier : path or list of paths, optional
        The owner's folders in which earlier releases of the same people were kept, the oldest first. People of classes and components
        that nobody left are published again in them, newcomers among themselves, and the others are held back
        (:func:`anonflow.algorithms.cohorts.anonymized_again`): the result's table lacks these.
    people : int, optional
        With `earlier`, of methods of classes: how many people's rows may be a person's, in all releases together. k without it; with fewer, a
        class can be divided when somebody left it.
    **options
        The method's own options.

    Returns
    -------
    Anonymization

    Raises
    ------
    DataError, SchemaError, HierarchyError
        If a frame does not go with its schema.
    ParameterError
        If a name, k, the partition size, the budget, the guarantee, the seed or an option is unknown or outside its domain.
    InfeasibleError
        If no release with this k exists.

    Notes
    -----
    Boundaries: Miller 2008, section 4, for every method. The records are divided into the classes of the maximum
    allowed microdata, and partitions are cut inside a class. That loses nothing: a match lies on a cycle of
    the generalization graph, along which all boundaries are equal. Classes of fewer than k records are
    suppressed; ``facts["beyond_boundaries"]`` is how many records that are.
    """
    table = Table.of(table, schema, "anonymize")
    measure = measure_named(loss)
    if algorithm == AUTO and isinstance(algorithm, str):
        for _, problem in check_automatic(guarantee, partition_size, budget, options):
            raise ParameterError(problem)
        assert guarantee is not None, "check_automatic has checked it"
        seconds = check_budget(AUTO, budget)
        method = first_method(guarantee)
    else:
        method = algorithm_named(algorithm)
        method.check_options(options)
        method = method.under(options)
        if guarantee is not None:
            raise ParameterError(
                f"only the method auto takes a guarantee; leave it out, {method.name} has its own"
            )
        seconds = check_budget(partition_size, budget, method.effort_under(options))
    k = check_k(k, table.n)
    if earlier is not None:
        settings: dict[str, Any] = {
            "partition_size": partition_size, "order": order, "loss": loss, "workers": workers, "boundaries": boundaries,
            "budget": budget, "guarantee": guarantee, "watch": watch, **options,
        }  # fmt: skip
        again = anonymized_again(
            table,
            earlier,
            people,
            method,
            k,
            boundaries,
            measure,
            lambda part: anonymize(part, algorithm, k, seed=seed, **settings),
        )
        again.parameters.setdefault("loss", measure)
        again.rerun = lambda other: anonymize(
            table, algorithm, k, seed=other, earlier=earlier, people=people, **settings
        )
        return again
    if people is not None:
        raise ParameterError("people goes with earlier; leave it out in the first release")
    if workers is not None:
        words = "workers must be a whole number of at least 1, or None for one for each processor"
        workers = check_whole(workers, 1, words)
    # the algorithms' stream and the draw's are derived from it apart: neither tells anything about the other
    entropy = checked_seed(seed)
    # nothing but the seed hides who is whose then, and a small one can be searched
    if method.rests_on_seed(options):
        warn_of_small_seed(seed)
    records = within(table.records, method, boundaries)
    choice: Choice | None = None
    named = frozenset(options)
    size: int | None
    if seconds is None:
        size = check_size(partition_size)
    else:
        if guarantee is not None:
            choice = choose_method(guarantee, records, k, seconds, workers, order=order, loss=measure)
            method = algorithm_named(choice.algorithm)
        else:
            cut = AUTO if isinstance(partition_size, str) else check_size(partition_size)
            choice = choose(
                method, records, k, seconds, workers, size=cut, order=order, loss=measure, options=options
            )
        size, options = choice.size, dict(choice.options)
    size = method.partition_size(size, k, options)
    index, outside = divided(records, size, k, order, partition_rng(entropy, -1))
    method.check_complete(options, len(outside))
    threads = workers or default_threads([size], method.together is not None)
    is_over: Deadline | None = None
    least: Mapping[str, Any] = {}
    if (
        choice is not None
        and choice.open_effort
        and method.ends_early
        and len(index) == 1
        and not limited(records)
    ):
        # the time is measured while it runs: more than what a stretch of the table could tell
        is_over = Deadline(ENDING * choice.left)
        least, greatest = method.efforts(named)
        options |= {name: greatest[name] for name in least}
        options[choice.open_effort] = AHEAD * max(options[choice.open_effort], 1)

    def solve_part(at: int) -> Outcome:
        part = records.take(index[at])
        generator = partition_generator(entropy, at, part)
        try:
            return solve(method, part, k, measure, generator, options, watch, is_over=is_over, check=False)
        except InfeasibleError as error:
            raise in_a_partition(error, len(index)) from None

    def solve_group(group: slice) -> list[Outcome]:
        sizes = [len(part) for part in index[group]]
        together = records.take(np.concatenate(index[group]))
        solved = solve_together(method, together, sizes, k, measure, options)
        solved = solved or [solve_part(at) for at in range(len(index))[group]]
        parts = np.split(np.arange(together.n), np.cumsum(sizes[:-1]))
        whole = solved[0] if len(solved) == 1 else gathered(records.domains, solved, parts, together.n)
        check_together(method, together, parts, k, measure, options, solved, whole)
        return solved

    outcomes: list[Outcome] = []
    smaller = len(index) == 1 and len(index[0]) > 250 and not method.whole_table
    hint = f" on {len(index[0]):,} records at once; partition_size=250 takes less time" if smaller else ""
    # a deadline says itself when the run ends
    expect = (
        None
        if is_over is not None
        else partial(_expected, method, records, k, index, measure, options, threads)
    )
    countdown = Countdown(f"{method.name}, k = {k}", len(index), hint=hint, expect=expect)
    # checks of many small partitions at once: a check of each would take longer than solving it
    groups = groups_of_partitions(index, threads * (FEW_GROUPS if method.together else GROUPS))
    with closing(results_of(solve_group, groups, threads, countdown.wait)) as results:
        for solved in results:
            outcomes += solved
            for _ in solved:
                countdown.step()
    if choice is not None and is_over is not None:
        units = outcomes[0].facts.get(choice.open_effort)
        if units is None:  # a tiny table takes no effort
            options = dict(choice.options)
        else:
            options |= {choice.open_effort: units}
            options |= {} if units else {name: outcomes[0].facts[name] for name in least}
        # the effort that was made, not the one that was allowed: a second run with these numbers repeats the result
        choice = replace(choice, options=options)
    parameters: dict[str, Any] = {"loss": measure, "partition_size": size, "order": order, **options}
    if not boundaries:
        parameters["boundaries"] = False
    if choice is not None:
        parameters["budget"] = choice.budget
    whole = gathered(table.domains, outcomes, index, table.n)
    anonymization = assemble(table, method, k, index, whole, parameters)
    if choice is not None:
        anonymization.facts.update(choice.facts())
    return anonymization


def groups_of_partitions(index: Sequence[np.ndarray], least: int) -> list[slice]:
    """Return which partitions are checked together: neighbours of some thousand records, in about `least` groups or more."""
    ends = np.cumsum([0, *map(len, index)])[1:]
    most = min(CHECKED, max(1, sum(map(len, index)) // least))
    starts = np.flatnonzero(np.diff((ends - 1) // most, prepend=-1)).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise([*starts, len(index)])]


def _expected(
    method: Algorithm,
    records: Records,
    k: int,
    index: Sequence[np.ndarray],
    loss: str,
    options: Mapping[str, Any],
    threads: int,
) -> float | None:
    """Return the seconds that a method is expected to take on these partitions; None if no stretch of them has a result."""
    largest = max(index, key=len)
    timed = TimedTable(np.array([len(largest)]), (), lambda cut: records.take(largest[cut]))
    try:
        model = run_pilots(method, timed, k, loss=loss, options=options, seconds=LOOK)
    except InfeasibleError:
        return None
    return model.expected(*np.unique([len(part) for part in index], return_counts=True), threads).wall


def assemble(
    table: Table,
    method: Algorithm,
    k: int,
    index: Sequence[np.ndarray],
    whole: Outcome,
    parameters: Mapping[str, Any],
) -> Anonymization:
    """Return the result of a method from the outcome of all partitions.

    Parameters
    ----------
    table : Table
        n records.
    method : Algorithm
    k : int
    index : sequence of numpy.ndarray, int64
        Table positions of each partition's records; records in none are suppressed.
    whole : Outcome
        Of all records.
    parameters : mapping

    Raises
    ------
    InfeasibleError
        If the table has boundaries or limits and every record is suppressed.
    """
    beyond = table.n - sum(map(len, index))
    if beyond:
        whole.facts["beyond_boundaries"] = beyond
    whole.facts.update(method.whole_facts(table.records, whole.suppressed, k, parameters))
    generalization = whole.generalization
    if whole.classes is not None and method.has_fixed_cells(parameters):
        # only here is known which values all records hide, and only so has a level the same cells in all partitions
        generalization = generalization.narrowed(table.records)
    if parameters.get("boundaries", True) and whole.suppressed.all():
        limits = (table.domains[a].column for a in limited(table.records))
        names = ", ".join(map(repr, dict.fromkeys([*bounded(table.records), *limits])))
        if names:
            raise InfeasibleError(
                f"{method.name}: nothing can be published within the boundaries of {names}; allow wider "
                "generalizations, lower k, or do without boundaries"
            )
    return Anonymization(
        table,
        method,
        k,
        generalization,
        matches=whole.matches,
        classes=whole.classes,
        suppressed=whole.suppressed,
        facts=dict(whole.facts),
        parameters=dict(parameters),
        partitions=tuple(index),
        anonymize=anonymize,
    )


def within(records: Records, method: Algorithm, boundaries: bool) -> Records:
    """Return the records as a method is to see them: with their boundaries, or without.

    Raises
    ------
    ParameterError
        If `boundaries` is not a bool, the method needs boundaries, or a column is to be published as the mean of classes that
        the method does not make.
    """
    if not isinstance(boundaries, bool):
        raise ParameterError("boundaries must be True or False")
    for domain in records.domains:
        problem = method.aggregate_problem(domain.column) if domain.aggregate is not None else None
        if problem is not None:
            raise ParameterError(problem)
    if boundaries:
        return records
    if method.without_boundaries is not None:
        raise ParameterError(
            f"{method.name} keeps boundaries; without them it is {method.without_boundaries}"
        )
    return unbounded(records)


def check_k(k: int, n: int) -> int:
    """Return a usable k for n records.

    Raises
    ------
    ParameterError
        If k is no integer of at least 2.
    InfeasibleError
        If k is greater than n.
    """
    k = check_whole(k, 2, "k must be a whole number of at least 2")
    if k > n:
        raise too_few(n, k)
    return k


def check_size(size: Any) -> int | None:
    """Return a usable partition size; None for the whole table.

    Raises
    ------
    ParameterError
        If it is no integer of at least 1, nor None.
    """
    if size is None:
        return None
    words = "partition_size must be a whole number of at least k, or None for the whole table"
    return min(check_whole(size, 1, words), MOST_RECORDS)
