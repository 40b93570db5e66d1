"""The measures by name, each as work on partitions that is combined and finished once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Annotated, Any, Literal

import numpy as np

from anonflow import loss as losses
from anonflow.criteria.graph import consistency_graph
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.option import Option, options_of
from anonflow.table import Records, Schema, Table, equal_columns
from anonflow.table.arrow import pandas_frame
from anonflow.table.schema import did_you_mean
from anonflow.utility import bounds, usefulness
from anonflow.utility import queries as counting
from anonflow.utility.subject import Part, part_of
from anonflow.utility.violations import beyond_cells

__all__ = [
    "MEASURES",
    "Measure",
    "MeasureRequest",
    "asked",
    "class_sums",
    "combine",
    "finalize",
    "finish_sums",
    "measure",
    "measure_names",
    "measures_by_class",
    "measures_by_record",
    "partial",
]


@dataclass(frozen=True)
class Measure:
    """One measure: what it needs of the whole table, what a partition adds, and the number in the end.

    Attributes
    ----------
    prepare : callable
        ``prepare(records, k, **options)`` gives what the others take; options are keyword-only, and declared there
        (:mod:`anonflow.option`).
    chunk : callable
        ``chunk(prepared, part)``: small beside its partition, or as large as its matches.
    finish : callable
        ``finish(prepared, chunks)``.
    sentence : str
        What it is.
    better : {"lower", "higher", ""}
        Which of two numbers is better; neither where it judges nothing by itself.
    adds_up : bool
        Whether a partition's chunk is a few numbers, wherever its rows are.
    rows : callable or None
        ``rows(domains, n, **options)``: the positions of the few originals that it looks at beforehand. Then
        ``prepare(records, k, n, **options)`` is given these only.
    """

    prepare: Callable[..., Any]
    chunk: Callable[[Any, Part], Any]
    finish: Callable[[Any, list[Any]], float | int]
    sentence: str
    better: Literal["lower", "higher", ""] = "lower"
    adds_up: bool = False
    rows: Callable[..., np.ndarray] | None = None

    @property
    def options(self) -> Mapping[str, Option]:
        """Its options by name."""
        return options_of(self.prepare)


@dataclass(frozen=True)
class _ClassMeasure(Measure):
    """A measure of classes.

    Of results without classes it may be another number, which only ``finish`` gives (discernibility).
    ``sums(prepared, chunks)`` is what some classes add, if each of them is in these chunks with all its parts;
    ``of_sums`` makes the number of the sums of all classes.
    """

    sums: Callable[[Any, list[Any]], tuple[float, ...]] = field(kw_only=True)
    of_sums: Callable[[Any, list[tuple[float, ...]]], float | int] = field(kw_only=True)


@dataclass(frozen=True)
class MeasureRequest:
    """Measures that were asked for, ready for partitions of their table (it can be pickled).

    Attributes
    ----------
    prepared : dict
        Name -> what the measure needs of the whole table.
    """

    prepared: dict[str, Any]


def measure_names() -> tuple[str, ...]:
    """The names of all measures."""
    return tuple(MEASURES)


def measure(
    table: Any,
    subject: Any,
    measures: str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any] = (
        "gcp",
        "usefulness",
        "row-types",
    ),
    *,
    k: int | None = None,
    schema: Schema | Mapping[str, Any] | str | PathLike[str] | None = None,
    **options: Any,
) -> dict[str, float | int]:
    """Measure what an anonymization or a release is still good for.

    Parameters
    ----------
    table : Table, or frame
        n originals; a frame, of pandas or one that speaks Arrow's PyCapsule interface, with its `schema`.
    subject : Anonymization, Release, Generalization or frame
        What was made of them.
    measures : str, sequence or mapping
        Names, or ``{name: {option: value}}``; see Notes.
    k : int, optional
        For measures that need it; the subject's own without it.
    schema : Schema, mapping or path, optional
        Where the originals are a frame.
    **options
        Options for all measures asked for that have them, such as ``numeric=["age"]``.

    Returns
    -------
    dict of str -> float or int
        In the order asked for.

    Raises
    ------
    ParameterError
        If a name or an option is unknown, a measure is asked for twice, or needs a k that nobody says.
    DataError
        If the subject does not go with the table.
    SchemaError, HierarchyError
        If a frame does not go with its schema.

    Notes
    -----
    A class is a set of equal generalized records; suppressed records are one.

    ``gcp`` (``ncp``), ``lm``, ``entropy`` (``em``), ``height`` (``il``), ``suppressions``
        Information loss, :func:`anonflow.loss.information_loss`.
    ``usefulness``
        Loukides and Shao (2007), Bredereck 2013's Definitions 3 to 5: the mean over classes of the sum over QI columns of
        the attribute diversity of the class's originals: (max - min) / (table's max - min) for a numeric
        attribute, else distinct values / the table's distinct values (not minus one). 0 to q, less is
        better. Option ``numeric``: the columns that count as numeric, those of kind numeric without it.
        The originals of a heterogeneous class are all records that its members match. Of k-concealment only
        what is covered is known: there the diversity is that of the table's values that a cell covers.
        A missing number counts as any number.
    ``row-types``, ``average-class-size``, ``min-class-size``, ``max-class-size``
        Number of classes and their sizes.
    ``c-avg``
        LeFevre et al. (2006): (n / classes) / k, also of heterogeneous releases.
    ``discernibility``
        Bayardo and Agrawal (2005): the sum over classes of at least k of size^2, plus n times the size of
        smaller ones. Where no equivalence classes are known, the sum over generalized records of the number
        of originals that each covers, which is the same where classes cover nobody else.
    ``query-error``
        Random COUNT queries on one to three QIs (:func:`anonflow.utility.queries.draw_queries`), answered
        from the release as if each value in a range or set were equally likely; the median of
        ``|answer - truth| / max(truth, 1)``. Options ``queries`` (200) and ``seed`` (0). Values are counted, not
        widths: a range over a gap is not spread into the gap.
    ``lower-bound``
        What no release of the table with this k can have as its GCP
        (:func:`anonflow.utility.bounds.lower_bound`). Options ``loss`` (``ncp``; not entropy) and ``effort`` (1).
    ``partition-lower-bound``
        The same for this partitioning only: the mean over records of what their partition alone can lose least; a
        record in no partition is suppressed. Of an anonymization, whose partitions are known. The same options;
        without effort (0, the usual), records are compared in pairs only.
    ``suppressed``, ``stars``
        Suppressed records; cells published as ``*``, hidden positions of a code one by one.
    ``violations``
        Constraint violations of Miller 2008: cells generalized beyond the boundary of their own original's value,
        or wider than ``max-width`` or ``max-set``; one (record, QI) cell counts once, suppressed records not
        at all. Of an anonymization, whose rows know their originals; a release's do not.
    """
    table = Table.of(table, schema, "measure")
    subject = pandas_frame(subject)
    part = part_of(table, subject)
    if k is None:
        k = getattr(subject, "k", None) or getattr(getattr(subject, "certificate", None), "k", None)
    ready = asked(table.records, measures, k, **options)
    return finalize(ready, _chunks(ready, part))


def asked(
    records: Records,
    measures: str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any],
    k: int | None = None,
    *,
    n: int | None = None,
    take: Callable[[np.ndarray], Records] | None = None,
    **options: Any,
) -> MeasureRequest:
    """Look at the whole table once, for measures of its partitions.

    Parameters
    ----------
    records : Records
        All n originals; or, of a table in pieces, a few that have every value.
    measures, k, options
        As :func:`measure` takes them.
    n : int, optional
        Originals, where they are not all at hand.
    take : callable, optional
        Positions -> the originals there, likewise.

    Raises
    ------
    ParameterError
        As :func:`measure`.
    """
    wanted = _wanted(measures)
    for option in options:
        if not any(option in MEASURES[name].options for name in wanted):
            known = tuple(dict.fromkeys(o for name in wanted for o in MEASURES[name].options)) or ("none",)
            raise ParameterError(f"unknown option {option!r} of these measures{did_you_mean(option, known)}")
    prepared = {}
    for name, own in wanted.items():
        one = MEASURES[name]
        for option in own:
            if option not in one.options:
                raise ParameterError(
                    f"measure {name!r}: unknown option {option!r}{did_you_mean(option, tuple(one.options) or ('none',))}"
                )
        shared = {option: value for option, value in options.items() if option in one.options}
        mine = {**shared, **own}
        if one.rows is None:
            prepared[name] = one.prepare(records, k, **mine)
        else:
            many = records.n if n is None else n
            few = (take or records.take)(one.rows(records.domains, many, **mine))
            prepared[name] = one.prepare(few, k, many, **mine)
    return MeasureRequest(prepared)


def partial(
    ready: MeasureRequest, records: Records, subject: Any, partitions: Sequence[np.ndarray] | None = None
) -> dict[str, list[Any]]:
    """What a partition adds to each measure.

    Parameters
    ----------
    ready : MeasureRequest
    records : Records
        The partition's P originals.
    subject : Outcome or the like
        As in :func:`measure`; matches are positions in the partition.
    partitions : sequence of numpy.ndarray, optional
        Which of them each partition has, where they are several.

    Returns
    -------
    dict
        For :func:`combine` and :func:`finalize`.

    Raises
    ------
    ParameterError, DataError
        As :func:`measure`.
    """
    part = part_of(records, subject)
    return _chunks(ready, part if partitions is None else replace(part, partitions=partitions))


def combine(ready: MeasureRequest, parts: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Put what several partitions add together, in their order; also of what was combined before."""
    return {name: [one for part in parts for one in part[name]] for name in ready.prepared}


def finalize(ready: MeasureRequest, combined: dict[str, list[Any]]) -> dict[str, float | int]:
    """The measures of the whole table.

    Classes of different partitions that are published alike are one: the result is that of :func:`measure` on
    the whole table (sums of floats up to their order).
    """
    return {
        name: MEASURES[name].finish(prepared, combined[name]) for name, prepared in ready.prepared.items()
    }


def class_sums(ready: MeasureRequest, combined: Mapping[str, list[Any]]) -> dict[str, tuple[float, ...]]:
    """What some classes add to the measures of :func:`measures_by_class`, each of them here with all its parts.

    Parameters
    ----------
    ready : MeasureRequest
    combined : mapping
        As :func:`combine` gives it; measures that are not there are left out.
    """
    return {name: _BY_CLASS[name].sums(ready.prepared[name], chunks) for name, chunks in combined.items()}


def finish_sums(
    ready: MeasureRequest, sums: Sequence[Mapping[str, tuple[float, ...]]]
) -> dict[str, float | int]:
    """The measures of the whole table from :func:`class_sums` of all its classes."""
    return {
        name: _BY_CLASS[name].of_sums(ready.prepared[name], [one[name] for one in sums]) for name in sums[0]
    }


def measures_by_record() -> tuple[str, ...]:
    """The names of the measures that add up over records: of a partition they are a number or two."""
    return tuple(name for name, one in MEASURES.items() if one.adds_up)


def measures_by_class() -> tuple[str, ...]:
    """The names of the measures that add up over classes, wherever these were made."""
    return tuple(_BY_CLASS)


def _chunks(ready: MeasureRequest, part: Part) -> dict[str, list[Any]]:
    return {name: [MEASURES[name].chunk(prepared, part)] for name, prepared in ready.prepared.items()}


def _wanted(measures: Any) -> dict[str, dict[str, Any]]:
    """Name -> its own options."""
    if isinstance(measures, str | Mapping):
        measures = [measures]
    if not isinstance(measures, Sequence):
        raise ParameterError("measures are names, or mappings of a name to its options")
    wanted: dict[str, dict[str, Any]] = {}
    for one in measures:
        entries = one.items() if isinstance(one, Mapping) else [(one, {})]
        for name, own in entries:
            if not isinstance(name, str) or name not in MEASURES:
                raise ParameterError(f"unknown measure {name!r}{did_you_mean(name, measure_names())}")
            if own is not None and not isinstance(own, Mapping):
                raise ParameterError(f"measure {name!r}: options are a mapping such as {{option: value}}")
            if name in wanted:
                raise ParameterError(f"measure {name!r} is asked for twice")
            wanted[name] = dict(own or {})
    return wanted


# --- information loss, suppressions ---------------------------------------------------------------------


def _nothing(records: Records, k: int | None) -> None:
    return None


def _loss(name: str) -> Measure:
    def chunk(prepared: None, part: Part) -> tuple[float, int]:
        costs = losses.record_costs(part.generalization, name)
        return float(costs.sum()), len(costs)

    own = losses.LOSSES[losses.measure_named(name)]
    return Measure(_nothing, chunk, _mean_of_totals, f"Information loss: {own.label}.", adds_up=True)


def _mean_of_totals(prepared: Any, chunks: list[tuple[float, int]]) -> float:
    n = sum(count for _, count in chunks)
    return sum(total for total, _ in chunks) / n if n else 0.0


def _stars(prepared: None, part: Part) -> int:
    return losses.suppressed_cells(part.generalization)


def _suppressed(prepared: None, part: Part) -> int:
    return part.suppressed


def _violations(prepared: None, part: Part) -> int:
    if not part.own:
        raise ParameterError(
            "measure 'violations' compares each row with its own original; give the anonymization, or check "
            "the release with the criterion boundary"
        )
    return int(beyond_cells(part.records, part.generalization, part.hidden).sum())


def _sum(prepared: None, chunks: list[int]) -> int:
    return sum(chunks)


# --- classes --------------------------------------------------------------------------------------------


def _sizes_of(prepared: Any, part: Part) -> tuple[np.ndarray, np.ndarray]:
    return part.keys, part.sizes


def _merged(chunks: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Sizes of the classes, equal ones of different partitions put together, shape (m,), int64."""
    if len(chunks) == 1:
        return chunks[0][1]
    keys = np.concatenate([keys for keys, _ in chunks], axis=1)
    sizes = np.concatenate([sizes for _, sizes in chunks])
    label = equal_columns(keys, keys.shape[1])
    return np.bincount(label, weights=sizes).astype(np.int64)


def _by_class(
    prepare: Callable[..., Any],
    chunk: Callable[[Any, Part], Any],
    sums: Callable[[Any, list[Any]], tuple[float, ...]],
    of_sums: Callable[[Any, list[tuple[float, ...]]], float | int],
    sentence: str,
    better: Literal["lower", "higher", ""] = "lower",
) -> Measure:
    def finish(prepared: Any, chunks: list[Any]) -> float | int:
        return of_sums(prepared, [sums(prepared, chunks)])

    return _ClassMeasure(prepare, chunk, finish, sentence, better, sums=sums, of_sums=of_sums)


def _count(prepared: Any, chunks: list[tuple[np.ndarray, np.ndarray]]) -> tuple[int, int, int, int]:
    """Number of classes, their records, and the size of the smallest and of the largest."""
    sizes = _merged(chunks)
    if not len(sizes):
        return 0, 0, np.iinfo(np.int64).max, 0
    return len(sizes), int(sizes.sum()), int(sizes.min()), int(sizes.max())


def _mean_size(prepared: Any, counted: list[tuple[float, ...]]) -> float:
    return sum(one[1] for one in counted) / sum(one[0] for one in counted)


def _of_sizes(
    value: Callable[[Any, list[tuple[float, ...]]], float | int],
    sentence: str,
    better: Literal["lower", "higher", ""] = "lower",
) -> Measure:
    return _by_class(_nothing, _sizes_of, _count, value, sentence, better)


def _needed_k(measure: str, k: int | None) -> int:
    if k is None:
        raise ParameterError(f"measure {measure!r} needs k; say which, for example k=10")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError("k must be a whole number of at least 1")
    return int(k)


def _c_avg_prepare(records: Records, k: int | None) -> int:
    return _needed_k("c-avg", k)


def _c_avg(k: int, counted: list[tuple[float, ...]]) -> float:
    return _mean_size(k, counted) / k


@dataclass(frozen=True, eq=False)
class _Discernible:
    """The originals, which tasks need not: they stay here where this travels."""

    records: Records | None
    k: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        return _Discernible, (None, self.k)


def _discernibility_chunk(prepared: _Discernible, part: Part) -> tuple[Any, ...]:
    first = np.unique(part.labels, return_index=True)[1]
    return part.keys, part.sizes, part.homogeneous, part.generalization.take(first)


def _discernible_sums(prepared: _Discernible, chunks: list[tuple[Any, ...]]) -> tuple[int, int, int]:
    """Of classes: the sum of size squared of those of at least k; records of smaller ones; all records."""
    sizes = _merged([(chunk[0], chunk[1]) for chunk in chunks])
    small = sizes < _needed_k("discernibility", prepared.k)
    return int((sizes[~small] ** 2).sum()), int(sizes[small].sum()), int(sizes.sum())


def _discernible(prepared: _Discernible, sums: list[tuple[float, ...]]) -> int:
    squares, small, n = (sum(int(one[at]) for one in sums) for at in range(3))
    return squares + n * small


def _discernibility(prepared: _Discernible, chunks: list[tuple[Any, ...]]) -> int:
    if all(homogeneous for _, _, homogeneous, _ in chunks):
        return _discernible(prepared, [_discernible_sums(prepared, chunks)])
    assert prepared.records is not None
    return sum(_covered(prepared.records, made, sizes) for _, sizes, _, made in chunks)


def _covered(records: Records, made: Generalization, sizes: np.ndarray) -> int:
    """How many originals generalized records cover in all, each counted `sizes` times."""
    graph = consistency_graph(records, made)
    copies = np.bincount(graph.published.label, weights=sizes, minlength=graph.published.size)
    return int(graph.degrees()[1].astype(np.float64) @ copies)


# --- the others -----------------------------------------------------------------------------------------


def _usefulness_prepare(
    records: Records,
    k: int | None,
    *,
    numeric: Annotated[Any, Option("Columns that count as numeric")] = None,
) -> tuple[usefulness.Attribute, ...]:
    return usefulness.attributes(records, numeric)


def _mean_of_sums(prepared: Any, sums: list[tuple[float, ...]]) -> float:
    return sum(total for total, _ in sums) / sum(count for _, count in sums)


def _bound_prepare(
    records: Records,
    k: int | None,
    *,
    loss: Annotated[str, Option("Information loss")] = "ncp",
    effort: Annotated[float, Option("Effort", least=0)] = 1.0,
) -> float:
    bound = bounds.lower_bound(records, _needed_k("lower-bound", k), loss, effort)
    if bound is None:
        raise ParameterError(
            "measure 'lower-bound': no bound is known for entropy, which may fall when more is covered"
        )
    return bound


def _queries_prepare(
    records: Records,
    k: int | None,
    n: int,
    *,
    queries: Annotated[int, Option("Number of queries", least=1)] = 200,
    seed: Annotated[int, Option("Seed of the queries", least=0)] = 0,
) -> tuple[counting.Query, ...]:
    return counting.prepared(records, n, queries, seed)


@dataclass(frozen=True)
class _Bound:
    """What :func:`anonflow.utility.bounds.lower_bound` is asked for, partition by partition."""

    k: int
    loss: str
    effort: float


def _partition_bound_prepare(
    records: Records,
    k: int | None,
    *,
    loss: Annotated[str, Option("Information loss")] = "ncp",
    effort: Annotated[float, Option("Effort", least=0)] = 0.0,
) -> _Bound:
    if not losses.LOSSES[losses.measure_named(loss)].monotone:
        raise ParameterError(
            "measure 'partition-lower-bound': no bound is known for entropy, which may fall when more is covered"
        )
    return _Bound(_needed_k("partition-lower-bound", k), losses.measure_named(loss), effort)


def _partition_bound(prepared: _Bound, part: Part) -> tuple[float, int]:
    if part.partitions is None:
        raise ParameterError(
            "measure 'partition-lower-bound' needs the partitions; give the anonymization, not its release"
        )
    total, beyond = 0.0, np.ones(part.records.n, bool)
    for at in part.partitions:
        beyond[at] = False
        total += bounds.least_total(part.records.take(at), prepared.k, prepared.loss, prepared.effort)
    # who lies in no partition is suppressed
    hidden = part.generalization.take(np.flatnonzero(beyond)).with_suppressed(
        np.ones(int(beyond.sum()), bool)
    )
    total += float(losses.record_costs(hidden, prepared.loss).sum())
    return total, part.records.n


MEASURES: dict[str, Measure] = {
    **{name: _loss(name) for name in losses.names()},
    "usefulness": _by_class(
        _usefulness_prepare,
        usefulness.chunk,
        usefulness.sums,
        _mean_of_sums,
        "Mean over the classes of the sum of their columns' diversity: 0 to q.",
    ),
    "row-types": _of_sizes(
        lambda prepared, counted: sum(one[0] for one in counted), "Number of classes.", "higher"
    ),
    "average-class-size": _of_sizes(_mean_size, "Mean size of a class."),
    "min-class-size": _of_sizes(
        lambda prepared, counted: min(one[2] for one in counted), "Size of the smallest class.", ""
    ),
    "max-class-size": _of_sizes(
        lambda prepared, counted: max(one[3] for one in counted), "Size of the largest class."
    ),
    "c-avg": _by_class(_c_avg_prepare, _sizes_of, _count, _c_avg, "Mean size of a class, divided by k."),
    "discernibility": _ClassMeasure(
        _Discernible,
        _discernibility_chunk,
        _discernibility,
        "Sum over the classes of their size squared; smaller ones than k count with all records.",
        sums=_discernible_sums,
        of_sums=_discernible,
    ),
    "query-error": Measure(
        _queries_prepare,
        counting.chunk,
        lambda prepared, chunks: counting.finalize(chunks),
        "Median relative error of random COUNT queries on one to three columns.",
        adds_up=True,
        rows=counting.anchors,
    ),
    "lower-bound": Measure(
        _bound_prepare,
        lambda prepared, part: None,
        lambda prepared, chunks: prepared,
        "What no release of the table with this k can have as its GCP.",
        "",
    ),
    "partition-lower-bound": Measure(
        _partition_bound_prepare,
        _partition_bound,
        _mean_of_totals,
        "What no release with this k can have as its GCP if the table is cut into these partitions.",
        "",
        adds_up=True,
    ),
    "suppressed": Measure(_nothing, _suppressed, _sum, "Suppressed records.", adds_up=True),
    "stars": Measure(_nothing, _stars, _sum, "Cells published as *.", adds_up=True),
    "violations": Measure(
        _nothing,
        _violations,
        _sum,
        "Cells generalized beyond the boundary of their original's value, or its limit.",
        adds_up=True,
    ),
}
"""Every measure by name."""

_BY_CLASS = {name: one for name, one in MEASURES.items() if isinstance(one, _ClassMeasure)}
"""Those that add up over classes, wherever these were made."""
