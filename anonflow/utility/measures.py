"""The measures by name. Each computes a part for each partition, combines the parts, and finishes once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Annotated, Any, Literal

import numpy as np

from anonflow import loss as losses
from anonflow.criteria.boundaries import beyond_cells
from anonflow.criteria.matching.graph import consistency_graph
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.loss.costs import excess_of
from anonflow.option import Option, check_whole, options_of
from anonflow.strict_yaml.names import did_you_mean, unknown
from anonflow.table import Records, Schema, Table, equal_columns
from anonflow.table.arrow import pandas_frame
from anonflow.utility import bounds, spread, usefulness
from anonflow.utility import queries as counting
from anonflow.utility.analyses.association import association
from anonflow.utility.analyses.comparison import TABLES, Comparison, by_group, comparison_of
from anonflow.utility.analyses.learning import classification, propensity
from anonflow.utility.analyses.marginals import k_marginals, pair_distance
from anonflow.utility.analyses.questions import question, regression
from anonflow.utility.spread import SpreadOf
from anonflow.utility.subject import Part, part_of


@dataclass(frozen=True)
class Measure:
    """One measure: its data from the whole table, the part of a partition, and the final number.

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
        What it measures.
    better : {"lower", "higher", ""}
        Which of two numbers is better; neither if the measure alone does not decide it.
    adds_up : bool
        Whether a partition's chunk is only a few numbers.
    cost : str
        How its work grows.
    extra : str
        The extra that it needs besides the base install.
    needs : str
        An option that must be given.
    of_covers : bool
        Whether, of results without classes, it counts the records of the whole table that generalized records cover.
    of_sensitive : bool
        Whether, without an option that says otherwise, it is about a sensitive column.
    parts : tuple of str
        Suffixes of further numbers that it gives, as ``NAME-SUFFIX``.
    rows : callable or None
        ``rows(domains, n, **options)``: the positions of the few originals that it looks at beforehand. Then
        ``prepare(records, k, n, **options)`` is given these only.
    """

    prepare: Callable[..., Any]
    chunk: Callable[[Any, Part], Any]
    finish: Callable[[Any, list[Any]], float | int | dict[str, float]]
    sentence: str
    better: Literal["lower", "higher", ""] = "lower"
    adds_up: bool = False
    rows: Callable[..., np.ndarray] | None = None
    cost: str = "O(n q)"
    extra: str = ""
    needs: str = ""
    parts: tuple[str, ...] = ()
    of_covers: bool = False
    of_sensitive: bool = False

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
class _AnalysisMeasure(Measure):
    """A measure that compares originals and plausible tables: it needs all rows at once."""


@dataclass(frozen=True)
class MeasureRequest:
    """Requested measures, prepared for partitions of their table (it can be pickled).

    Attributes
    ----------
    prepared : dict
        Name -> what the measure needs of the whole table.
    """

    prepared: dict[str, Any]


def measure_names() -> tuple[str, ...]:
    """Return the names of all measures."""
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
    """Measure the utility of an anonymization or a release.

    Parameters
    ----------
    table : Table, or frame
        n originals; a frame, of pandas or one that speaks Arrow's PyCapsule interface, with its `schema`.
    subject : Anonymization, Release, Generalization or frame
        The anonymization or release of these originals.
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
        In the order asked for; a measure that gives several numbers has them as ``NAME-SUFFIX`` after its own.

    Raises
    ------
    ParameterError
        If a name or an option is unknown, a measure is asked for twice, or needs an unknown k; if a formula
        or a condition names columns that are not there, or a subgroup has too few people.
    DataError
        If the subject does not go with the table.
    AnonflowError
        If a measure needs a package that is not installed (the extra ``utility``).
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
        A missing number may be any number of the table's range.
    ``row-types``, ``average-class-size``, ``min-class-size``, ``max-class-size``
        Number of classes and their sizes.
    ``c-avg``
        LeFevre et al. (2006): (n / classes) / k, also of heterogeneous releases.
    ``discernibility``
        Bayardo and Agrawal (2005): the sum over classes of at least k of size^2, plus n times the size of
        smaller ones. Where no equivalence classes are known, the sum over generalized records of the number
        of originals that each covers, which is the same where classes cover nobody else.
    ``query-error``
        Random COUNT queries on one to three QIs (:func:`anonflow.utility.queries.prepared`), answered
        from the release as if each value in a range or set were equally likely; the median of
        ``|answer - truth| / max(truth, 1)``. Options ``queries`` (200) and ``seed`` (0). Values are counted, not
        widths: a range over a gap is not spread into the gap.
    ``lower-bound``
        A lower bound of the GCP of all releases of the table with this k
        (:func:`anonflow.utility.bounds.lower_bound`); of a k-regular result or of classes, of all k-regular and k-anonymous
        ones, which is higher. Of these also ``-excess``, by which share of the bound the loss is above it: the loss is at most so much
        above the least there is (0.43 is 43%); not where the bound is 0. Options ``loss`` (``ncp``; not entropy) and ``effort`` (1).
    ``partition-lower-bound``
        The same for this partitioning only: the mean over records of the least loss of their partition; a
        record in no partition is suppressed. Only for an anonymization, whose partitions are known. The same options;
        without effort (0, the usual), records are compared in pairs only.
    ``suppressed``, ``stars``
        The number of suppressed records; of cells published as ``*``, where each hidden position of a code counts.
    ``violations``
        Constraint violations of Miller 2008: cells generalized beyond the boundary of their own original's value,
        or wider than ``max-width`` or ``max-set``; one (record, QI) cell counts once, suppressed records not
        at all. Only for an anonymization: the rows of a release do not show their originals.
    ``usefulness-of-all-rows``
        ``usefulness`` with suppressed rows: each is a class of its own, as diverse as the whole table. ``usefulness``
        counts all of them as one class among many, so a run that hides most rows may have the best number.

    The following are computed from plausible tables (:func:`anonflow.plausible`), as many as the option ``tables`` says
    (5), drawn with the option ``seed`` (0); an anonymization is drawn for this purpose. Every
    published column is in them, and a suppressed row counts as lost. With the option ``by``, a column, there is also
    ``NAME-worst-by-COLUMN``: the measure for the subgroup with the worst value; every subgroup needs 50 people.

    ``k-marginals``, ``k-marginals-3``
        NIST's SDNist: 1000 (1 - mean total variation distance) over the marginal tables of two or three columns (at
        most 100 of them, always the same ones); numbers in 20 intervals, equally full. 1000 is best.
    ``pair-distance``
        The mean total variation distance of all pairs of columns; ``-worst`` of the worst pair.
    ``association``
        The mean absolute change of how strongly two columns go together
        (:func:`anonflow.utility.analyses.association.matrices`); ``-worst`` the largest.
    ``propensity``
        pMSE of a classification tree that tells originals and release apart (Woo and others, 2009; Snoke and others,
        2018): 0 to 0.25; ``-null``, the same between pairs of plausible tables. Extra ``utility``.
    ``regression``
        Option ``formula``, such as ``income ~ age + education``: the overlap of the 95% intervals of its coefficients
        (Karr and others, 2006), of originals and release; ``-coverage``, the share of the originals' coefficients that
        lie in the release's intervals for them; ``-signs``, of the coefficients whose interval from the originals is without 0,
        the share that keeps its sign. Extra ``utility``.
    ``classification``
        The accuracy of a random forest that learned from the release, on originals that it has not seen; ``-originals``
        if it learned from originals, ``-majority`` always the most frequent value. Option ``target``: the column, the
        first sensitive one without it. Extra ``utility``.
    ``question``
        The relative error (at most 1) of the answer to the user's own question: option ``where``, a condition as
        :func:`anonflow.count` takes it, and ``among``, another one, for a share; in Python also a function of a table
        that gives a number. ``-truth`` and ``-answer``.
    """
    table = Table.of(table, schema, "measure")
    subject = pandas_frame(subject)
    part = replace(part_of(table, subject), table=table, subject=subject)
    if k is None:
        k = getattr(subject, "k", None) or getattr(getattr(subject, "certificate", None), "k", None)
    ready = asked(table.records, measures, k, **options)
    return finalize(ready, _chunks(ready, part))


def asked(
    records: Records,
    measures: str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any],
    k: int | None = None,
    **options: Any,
) -> MeasureRequest:
    """Look at the whole table once, for measures of its partitions.

    Parameters
    ----------
    records : Records
        All n originals.
    measures, k, options
        As :func:`measure` takes them.

    Raises
    ------
    ParameterError
        As :func:`measure`.
    """
    prepared = {}
    for name, settings in read_measures(measures, options).items():
        measure = MEASURES[name]
        if measure.rows is None:
            prepared[name] = measure.prepare(records, k, **settings)
        else:
            few = records.take(measure.rows(records.domains, records.n, **settings))
            prepared[name] = measure.prepare(few, k, records.n, **settings)
    return MeasureRequest(prepared)


def partial(
    ready: MeasureRequest, records: Records, subject: Any, partitions: Sequence[np.ndarray] | None = None
) -> dict[str, list[Any]]:
    """Return the part of a partition for each measure.

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
    """Combine the parts of several partitions in their order; combined parts can be combined again."""
    return {name: [chunk for part in parts for chunk in part[name]] for name in ready.prepared}


def finalize(ready: MeasureRequest, combined: dict[str, list[Any]]) -> dict[str, float | int]:
    """Return the measures of the whole table.

    Classes of different partitions with equal cells are one class: the result is that of :func:`measure` on
    the whole table (sums of floats up to their order).
    """
    numbers: dict[str, float | int] = {}
    for name, prepared in ready.prepared.items():
        value = MEASURES[name].finish(prepared, combined[name])
        if isinstance(value, dict):
            numbers |= {f"{name}-{suffix}" if suffix else name: number for suffix, number in value.items()}
        else:
            numbers[name] = value
    return numbers


def class_sums(ready: MeasureRequest, combined: Mapping[str, list[Any]]) -> dict[str, tuple[float, ...]]:
    """Return the sums of some classes for the measures of :func:`measures_by_class`; each class has all its parts here.

    Parameters
    ----------
    ready : MeasureRequest
    combined : mapping
        As :func:`combine` gives it; measures that are not there are left out.
    """
    return {name: _BY_CLASS[name].sums(ready.prepared[name], chunks) for name, chunks in combined.items()}


def classes_of_bucket(chunk: Any, bucket: int, buckets: int) -> Any:
    """Return the part of a chunk of a measure of classes whose classes are in a bucket; equal classes are in the same one.

    Parameters
    ----------
    chunk : dict or tuple
        As the measure's ``chunk`` gives it.
    bucket, buckets : int
    """
    keys = chunk["keys"] if isinstance(chunk, dict) else chunk[0]
    at = keys[0].view(np.uint64) % np.uint64(buckets) == np.uint64(bucket)
    if isinstance(chunk, dict):
        return usefulness.taken(chunk, at)
    return (keys[:, at], chunk[1][at], *chunk[2:])


def finish_sums(
    ready: MeasureRequest, sums: Sequence[Mapping[str, tuple[float, ...]]]
) -> dict[str, float | int]:
    """Return the measures of the whole table from :func:`class_sums` of all its classes."""
    return {
        name: _BY_CLASS[name].of_sums(ready.prepared[name], [part[name] for part in sums]) for name in sums[0]
    }


def measures_by_record() -> tuple[str, ...]:
    """Return the names of the measures that add up over records: of a partition they are a number or two."""
    return tuple(name for name, measure in MEASURES.items() if measure.adds_up)


def measures_by_class() -> tuple[str, ...]:
    """Return the names of the measures that add up over classes."""
    return tuple(_BY_CLASS)


def measures_of_analyses() -> tuple[str, ...]:
    """Return the names of the measures that compare originals and plausible tables: they need all rows at once."""
    return tuple(name for name, measure in MEASURES.items() if isinstance(measure, _AnalysisMeasure))


def numbers_of_measure(name: str, numbers: Mapping[str, float | int]) -> dict[str, float | int]:
    """Return the numbers of one measure, its own and its further ones, from all measured numbers."""
    part_keys = {f"{name}-{part}" for part in MEASURES[name].parts}
    return {
        key: value
        for key, value in numbers.items()
        if key == name or key in part_keys or key.startswith(f"{name}-worst-by-")
    }


def _chunks(ready: MeasureRequest, part: Part) -> dict[str, list[Any]]:
    return {name: [MEASURES[name].chunk(prepared, part)] for name, prepared in ready.prepared.items()}


def read_measures(measures: Any, shared: Mapping[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    """Return the measures that a user names, each with its options, as far as these can be checked without the table.

    Parameters
    ----------
    measures : str, sequence or mapping
        As :func:`measure` takes them.
    shared : mapping, optional
        Options for all of these measures that have them.

    Raises
    ------
    ParameterError
        If a name or an option is unknown, a measure is named twice, or an option has a value that it cannot have, or is absent
        where it is needed.
    """
    if isinstance(measures, str | Mapping):
        measures = [measures]
    if not isinstance(measures, Sequence):
        raise ParameterError("measures are names, or mappings of a name to its options")
    named: dict[str, dict[str, Any]] = {}
    for entry in measures:
        for name, options in entry.items() if isinstance(entry, Mapping) else [(entry, None)]:
            if not isinstance(name, str) or name not in MEASURES:
                raise ParameterError(unknown(str(name), measure_names(), "measure"))
            if options is not None and not isinstance(options, Mapping):
                raise ParameterError(f"measure {name!r}: options are a mapping such as {{option: value}}")
            if name in named:
                raise ParameterError(f"measure {name!r} is named twice; name it once")
            named[name] = dict(options or {})
    for option in shared or {}:
        if not any(option in MEASURES[name].options for name in named):
            option_names = tuple(dict.fromkeys(o for name in named for o in MEASURES[name].options)) or (
                "none",
            )
            raise ParameterError(
                f"unknown option {option!r} of these measures{did_you_mean(option, option_names)}"
            )
    return {name: _checked_measure_options(name, shared or {}, options) for name, options in named.items()}


def _checked_measure_options(
    name: str, shared: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a measure with those that it shares with others."""
    declared, needed = MEASURES[name].options, MEASURES[name].needs
    settings = {**{option: value for option, value in shared.items() if option in declared}, **options}
    for option, value in settings.items():
        problem = (
            declared[option].problem(value)
            if option in declared
            else unknown(option, tuple(declared) or ("none",), "option")
        )
        if problem is not None:
            place = f"{option} " if option in declared else ""
            raise ParameterError(f"measure {name!r}: {place}{problem}")
    if needed and not settings.get(needed):
        raise ParameterError(
            f"measure {name!r} needs the option {needed!r}, such as {{{name}: {{{needed}: {declared[needed].example}}}}}"
        )
    return settings


# --- information loss, suppressions ---------------------------------------------------------------------


def _nothing(records: Records, k: int | None) -> None:
    return None


def _loss_measure(name: str) -> Measure:
    def chunk(prepared: None, part: Part) -> tuple[float, int]:
        costs = losses.record_costs(part.generalization, name)
        return float(costs.sum()), len(costs)

    loss = losses.LOSSES[losses.measure_named(name)]
    return Measure(_nothing, chunk, _mean_of_totals, f"Information loss: {loss.label}.", adds_up=True)


def _mean_of_totals(prepared: Any, chunks: Sequence[tuple[float, ...]]) -> float:
    n = sum(count for _, count in chunks)
    return sum(total for total, _ in chunks) / n if n else 0.0


def _stars(prepared: None, part: Part) -> int:
    return losses.suppressed_cells(part.generalization)


def _suppressed(prepared: None, part: Part) -> int:
    return int(part.suppressed.sum())


def _violations(prepared: None, part: Part) -> int:
    if not part.own:
        raise ParameterError(
            "measure 'violations' compares each row with its own original; give the anonymization, or check "
            "the release with the criterion boundary"
        )
    return int(beyond_cells(part.records, part.generalization, part.hidden).sum())


def _own_spread(prepared: SpreadOf, part: Part) -> np.ndarray:
    if not part.own:
        raise ParameterError(
            "measure 'sse' compares each number with the one published in its place; give the anonymization, or ask for "
            "variance-kept"
        )
    return spread.chunk(prepared, part)


def _sum(prepared: None, chunks: list[int]) -> int:
    return sum(chunks)


# --- classes --------------------------------------------------------------------------------------------


def _sizes_of(prepared: Any, part: Part) -> tuple[np.ndarray, np.ndarray]:
    return part.keys, part.sizes


def _merged(chunks: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return sizes of the classes, equal ones of different partitions put together, shape (m,), int64."""
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
    """Return number of classes, their records, and the size of the smallest and of the largest."""
    sizes = _merged(chunks)
    if not len(sizes):
        return 0, 0, np.iinfo(np.int64).max, 0
    return len(sizes), int(sizes.sum()), int(sizes.min()), int(sizes.max())


def _mean_size(prepared: Any, counted: list[tuple[float, ...]]) -> float:
    return sum(part[1] for part in counted) / sum(part[0] for part in counted)


def _of_sizes(
    value: Callable[[Any, list[tuple[float, ...]]], float | int],
    sentence: str,
    better: Literal["lower", "higher", ""] = "lower",
) -> Measure:
    return _by_class(_nothing, _sizes_of, _count, value, sentence, better)


def _needed_k(measure: str, k: int | None) -> int:
    if k is None:
        raise ParameterError(f"measure {measure!r} needs k; give it, for example k=10")
    return check_whole(k, 1, "k must be a whole number of at least 1")


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
    return part.keys, part.sizes, part.homogeneous, part.generalization.take(part.first)


def _discernible_sums(prepared: _Discernible, chunks: list[tuple[Any, ...]]) -> tuple[int, int, int]:
    """Return sums over classes: of size squared for classes of at least k, the records of smaller ones, and all records."""
    sizes = _merged([(chunk[0], chunk[1]) for chunk in chunks])
    small = sizes < _needed_k("discernibility", prepared.k)
    return int((sizes[~small] ** 2).sum()), int(sizes[small].sum()), int(sizes.sum())


def _discernible(prepared: _Discernible, sums: list[tuple[float, ...]]) -> int:
    squares, small, n = (sum(int(part[at]) for part in sums) for at in range(3))
    return squares + n * small


def _discernibility(prepared: _Discernible, chunks: list[tuple[Any, ...]]) -> int:
    if all(homogeneous for _, _, homogeneous, _ in chunks):
        return _discernible(prepared, [_discernible_sums(prepared, chunks)])
    assert prepared.records is not None
    return sum(
        _covered_count(prepared.records, generalization, sizes) for _, sizes, _, generalization in chunks
    )


def _covered_count(records: Records, generalization: Generalization, sizes: np.ndarray) -> int:
    """Return how many originals generalized records cover in all, each counted `sizes` times."""
    graph = consistency_graph(records, generalization)
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


@dataclass(frozen=True)
class _Bounds:
    """A lower bound of a loss: of all releases with this k, and of those that are k-regular or have classes of k."""

    k: int
    loss: str
    alike: float
    regular: float


def _bound_prepare(
    records: Records,
    k: int | None,
    *,
    loss: Annotated[str, Option("Information loss")] = "ncp",
    effort: Annotated[float, Option("Effort", least=0)] = 1.0,
) -> _Bounds:
    k = _needed_k("lower-bound", k)
    both = bounds.lower_bounds(records, k, loss, effort)
    if both is None:
        raise ParameterError(
            "measure 'lower-bound': no bound is known for entropy, which may fall when more is covered"
        )
    return _Bounds(k, losses.measure_named(loss), *both)


def _bound_chunk(prepared: _Bounds, part: Part) -> tuple[bool, float, int]:
    costs = losses.record_costs(part.generalization, prepared.loss)
    return bounds.is_regular(part, prepared.k), float(costs.sum()), len(costs)


def _bound(prepared: _Bounds, chunks: list[tuple[bool, float, int]]) -> float | dict[str, float]:
    # of other results a record may cover fewer than k: they need not be above the bound
    if not all(regular for regular, _, _ in chunks):
        return prepared.alike
    bound = prepared.regular
    excess = excess_of(_mean_of_totals(None, [chunk[1:] for chunk in chunks]), bound)
    return {"": bound} if excess is None else {"": bound, "excess": excess}


def _queries_prepare(
    records: Records,
    k: int | None,
    n: int,
    *,
    queries: Annotated[int, Option("Number of queries", least=1, most=100_000)] = 200,
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
    # records in no partition are suppressed
    hidden = part.generalization.take(np.flatnonzero(beyond)).with_suppressed(
        np.ones(int(beyond.sum()), bool)
    )
    total += float(losses.record_costs(hidden, prepared.loss).sum())
    return total, part.records.n


_MODEL = "a model of the release: O((60 + 8 tables) n columns classes)"


@dataclass(frozen=True)
class _AnalysisRequest:
    """The options of a measure of an analysis."""

    tables: int
    seed: int
    by: str | None
    settings: dict[str, Any]


_TABLES = Annotated[
    int, Option("Plausible tables", least=2, sentence="Plausible tables that it is the mean over.")
]
_SEED = Annotated[
    int, Option("Seed of the tables", least=0, sentence="Of the plausible tables; never the release's.")
]
_BY = Annotated[
    str | None,
    Option("Subgroups by", sentence="A column: also the measure for the subgroup with the worst value."),
]


def _analysis_asked(
    records: Records, k: int | None, *, tables: _TABLES = TABLES, seed: _SEED = 0, by: _BY = None
) -> _AnalysisRequest:
    return _AnalysisRequest(tables, seed, by, {})


def _regression_asked(
    records: Records,
    k: int | None,
    *,
    formula: Annotated[
        str | None,
        Option(
            "Formula",
            sentence="The regression, such as `income ~ age + education`.",
            example="'income ~ age + education'",
        ),
    ] = None,
    tables: _TABLES = TABLES,
    seed: _SEED = 0,
    by: _BY = None,
) -> _AnalysisRequest:
    return _AnalysisRequest(tables, seed, by, {"formula": formula})


def _classification_asked(
    records: Records,
    k: int | None,
    *,
    target: Annotated[
        str | None,
        Option("Target", sentence="The column to be predicted; the first sensitive one without it."),
    ] = None,
    tables: _TABLES = TABLES,
    seed: _SEED = 0,
    by: _BY = None,
) -> _AnalysisRequest:
    return _AnalysisRequest(tables, seed, by, {"target": target})


def _question_asked(
    records: Records,
    k: int | None,
    *,
    where: Annotated[
        Any,
        Option(
            "Condition",
            sentence="Column -> a value, a list of values, or {from: , to: }; all must hold.",
            example="{age: {from: 30, to: 39}}",
        ),
    ] = None,
    among: Annotated[
        Any,
        Option(
            "Among",
            sentence="A condition: then the question is which share of those who meet it meet `where`.",
        ),
    ] = None,
    tables: _TABLES = TABLES,
    seed: _SEED = 0,
    by: _BY = None,
) -> _AnalysisRequest:
    return _AnalysisRequest(tables, seed, by, {"where": where, "among": among})


def _classified(comparison: Comparison, request: _AnalysisRequest, part: Part) -> dict[str, float]:
    target = request.settings["target"]
    if target is None:
        assert part.table is not None
        schema = part.table.schema
        sensitive = [name for name in part.table.other_columns if schema[name].role == "sensitive"]
        if not sensitive:
            raise ParameterError(
                "measure 'classification': the table has no sensitive column; name one with target"
            )
        target = sensitive[0]
    return classification(comparison, str(target), request.seed)


def _of_analysis(
    value: Callable[[Comparison, _AnalysisRequest, Part], dict[str, float]],
    sentence: str,
    better: Literal["lower", "higher"],
    *,
    cost: str,
    parts: tuple[str, ...] = (),
    extra: str = "",
    needs: str = "",
    of_sensitive: bool = False,
    prepare: Callable[..., _AnalysisRequest] | None = None,
) -> Measure:
    """Return a measure that compares originals and plausible tables: it needs all rows at once."""

    def chunk(request: _AnalysisRequest, part: Part) -> dict[str, float]:
        comparison = comparison_of(part, request.tables, request.seed)
        return by_group(comparison, request.by, lambda compared: value(compared, request, part), better)

    return _AnalysisMeasure(
        prepare or _analysis_asked,
        chunk,
        lambda request, chunks: chunks[0],
        sentence,
        better,
        cost=cost,
        extra=extra,
        needs=needs,
        of_sensitive=of_sensitive,
        parts=parts,
    )


def _without_hidden(part: Part) -> tuple[Part, int]:
    """Return the part without its suppressed rows, and how many these are."""
    rows = np.flatnonzero(~part.suppressed)
    if len(rows) == part.records.n:
        return part, 0
    listed = None if part.candidates is None else part.candidates.take(rows)
    visible_part = Part(part.records, part.generalization.take(rows), listed, part.homogeneous)
    return visible_part, part.records.n - len(rows)


def _all_rows_chunk(attributes: tuple[usefulness.Attribute, ...], part: Part) -> tuple[Any, int]:
    visible_part, hidden = _without_hidden(part)
    return (usefulness.chunk(attributes, visible_part) if visible_part.generalization.n else None), hidden


def _all_rows(attributes: tuple[usefulness.Attribute, ...], chunks: list[Any]) -> float:
    visible_chunks = [chunk for chunk, _ in chunks if chunk is not None]
    total, classes = usefulness.sums(attributes, visible_chunks) if visible_chunks else (0.0, 0)
    hidden = sum(count for _, count in chunks)
    whole = sum(1.0 for attribute in attributes if attribute.values is None or attribute.width)
    return (total + hidden * whole) / (classes + hidden)


MEASURES: dict[str, Measure] = {
    **{name: _loss_measure(name) for name in losses.names()},
    "usefulness": _by_class(
        _usefulness_prepare,
        usefulness.chunk,
        usefulness.sums,
        _mean_of_totals,
        "Mean over the classes of the sum of their columns' diversity: 0 to q. All suppressed rows are one class.",
    ),
    "usefulness-of-all-rows": Measure(
        _usefulness_prepare,
        _all_rows_chunk,
        _all_rows,
        "Usefulness with hidden rows counted: each suppressed row is a class as diverse as the table.",
    ),
    "row-types": _of_sizes(
        lambda prepared, counted: sum(part[0] for part in counted), "Number of classes.", "higher"
    ),
    "average-class-size": _of_sizes(_mean_size, "Mean size of a class."),
    "min-class-size": _of_sizes(
        lambda prepared, counted: min(part[2] for part in counted), "Size of the smallest class.", ""
    ),
    "max-class-size": _of_sizes(
        lambda prepared, counted: max(part[3] for part in counted), "Size of the largest class."
    ),
    "c-avg": _by_class(_c_avg_prepare, _sizes_of, _count, _c_avg, "Mean size of a class, divided by k."),
    "discernibility": _ClassMeasure(
        _Discernible,
        _discernibility_chunk,
        _discernibility,
        "Sum over the classes of their size squared; smaller ones than k count with all records.",
        of_covers=True,
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
        _bound_chunk,
        _bound,
        "A number that the GCP of no release of the table with this k can be below.",
        "",
        parts=("excess",),
    ),
    "partition-lower-bound": Measure(
        _partition_bound_prepare,
        _partition_bound,
        _mean_of_totals,
        "A number that the GCP of no release with this k can be below if the table is cut into these partitions.",
        "",
        adds_up=True,
    ),
    "sse": Measure(
        lambda records, k: SpreadOf(records),
        _own_spread,
        spread.squared_distance,
        "Squared distance of numbers from the published ones (class mean or median, or middle of the range), as a share of "
        "that from their mean: 0 to 1 for class means.",
        adds_up=True,
    ),
    "variance-kept": Measure(
        lambda records, k: SpreadOf(records),
        spread.chunk,
        spread.variance_kept,
        "Variance of the published numbers over that of the originals, mean over the columns: below 1 for class means.",
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
    "k-marginals": _of_analysis(
        lambda comparison, request, part: k_marginals(comparison, 2),
        "How alike the tables of two columns are, as NIST's SDNist scores it: 0 to 1000.",
        "higher",
        cost=_MODEL,
    ),
    "k-marginals-3": _of_analysis(
        lambda comparison, request, part: k_marginals(comparison, 3),
        "How alike the tables of three columns are, as NIST's SDNist scores it: 0 to 1000.",
        "higher",
        cost=_MODEL,
    ),
    "pair-distance": _of_analysis(
        lambda comparison, request, part: pair_distance(comparison),
        "Mean total variation distance of all pairs of columns: the share of people in a wrong cell.",
        "lower",
        cost=_MODEL,
        parts=("worst",),
    ),
    "association": _of_analysis(
        lambda comparison, request, part: association(comparison),
        "Mean absolute change of how strongly two columns go together (Cramer's V, correlation, correlation ratio).",
        "lower",
        cost=_MODEL,
        parts=("worst",),
    ),
    "propensity": _of_analysis(
        lambda comparison, request, part: propensity(comparison),
        "pMSE of a tree that tells the release from the originals: 0 to 0.25, beside its null.",
        "lower",
        cost=_MODEL + ", and a tree for each table",
        parts=("null",),
        extra="scikit-learn",
    ),
    "regression": _of_analysis(
        lambda comparison, request, part: regression(comparison, request.settings["formula"]),
        "Overlap of the confidence intervals of a regression, from the release and from the originals: 0 to 1.",
        "higher",
        cost=_MODEL + ", and a regression for each table",
        parts=("coverage", "signs"),
        needs="formula",
        prepare=_regression_asked,
    ),
    "classification": _of_analysis(
        _classified,
        "Accuracy on unseen originals of a classifier that learned from the release.",
        "higher",
        cost=_MODEL + ", and a random forest for each of three tables",
        parts=("originals", "majority"),
        extra="scikit-learn",
        of_sensitive=True,
        prepare=_classification_asked,
    ),
    "question": _of_analysis(
        lambda comparison, request, part: question(comparison, **request.settings),
        "Relative error of the answer to a question of the user's own: 0 to 1.",
        "lower",
        cost=_MODEL,
        parts=("truth", "answer"),
        needs="where",
        prepare=_question_asked,
    ),
}
"""Every measure by name."""

_BY_CLASS = {name: measure for name, measure in MEASURES.items() if isinstance(measure, _ClassMeasure)}
"""The measures that add up over classes."""
