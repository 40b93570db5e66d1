"""The minimality attack: what the reason for a change reveals, enumerated on small tables, sampled on tables of any size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.algorithms.anonymization import Anonymization
from anonflow.algorithms.diversity.diversify import diversify
from anonflow.algorithms.diversity.target import sensitive_codes, sensitive_column
from anonflow.algorithms.diversity.within_partition import components
from anonflow.errors import InfeasibleError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST", "Published", "enumerated_excess", "minimality_excess", "minimality_shares"]

MOST = 2_000
"""The most ways to assign a table's values to its people that are tried."""

Published = tuple[Hashable, Sequence[Sequence[int]]]
"""A published file, and for each person the people whose rows list it."""


def minimality_excess(
    anon: Anonymization,
    criterion: str = "l-diversity",
    *,
    column: str | None = None,
    seed: int = 0,
    most: int = MOST,
    **parameters: Any,
) -> float | None:
    """Return how much an attacker gains, about a person's value, by knowing how the release was made diverse.

    The attacker knows everybody's quasi-identifiers, the method with its seeds, and which values are in the table; each
    way to assign them to people is equally likely. The attacker runs method and step for every way, and keeps the ways
    that give the published file.

    Parameters
    ----------
    anon : Anonymization
        Before it was made diverse; it looks at no values.
    criterion : str
    column : str, optional
    seed : int
        Of :func:`anonflow.algorithms.diversity.diversify.diversify`.
    most : int
        The most ways to assign the values that are tried.
    **parameters
        Others that ``diversify`` takes.

    Returns
    -------
    float or None
        Largest difference, over people and values, of the value's probability for this attacker and its share on the
        rows that list the person: 0 is nothing. None is "not bounded": the table is too large, or a draw changes
        what rows show, so that files are not as likely as each other.

    Raises
    ------
    ParameterError
        As ``diversify``.
    InfeasibleError
        If this table cannot be made diverse with these arguments.

    Notes
    -----
    Minimality: Wong, Fu, Wang and Pei, VLDB 2007; Cormode, Srivastava, Li and Li, PVLDB 3, 2010. Exact, in as many runs
    of the step as there are ways.
    """
    if not isinstance(anon, Anonymization):
        raise ParameterError(f"minimality_excess takes an Anonymization, not a {type(anon).__name__}")
    name = sensitive_column(column, tuple(anon.table.sensitive), tuple(anon.table.other_columns))
    codes, _, _ = sensitive_codes(anon.table, name)
    if _ways(Counter(codes.tolist())) > most:
        return None

    def publish(values: tuple[int, ...]) -> Published:
        try:
            diverse = diversify(
                _with_values(anon, name, codes, values), criterion, column=name, seed=seed, **parameters
            )
        except InfeasibleError:
            if values == tuple(codes.tolist()):
                raise
            return ("refused",), [[] for _ in values]
        listed = _lists(diverse)
        if listed is None:
            raise _DrawDecides
        rows = diverse.frame().astype(str).to_numpy().tolist()
        groups = {tuple(people): None for people in listed}
        file = sorted(
            (tuple(rows[people[0]]), tuple(sorted(values[i] for i in people))) for people in groups if people
        )
        return (tuple(file),), listed

    try:
        return enumerated_excess(tuple(codes.tolist()), publish)
    except _DrawDecides:
        return None


def minimality_shares(
    anon: Anonymization,
    criterion: str = "l-diversity",
    *,
    column: str | None = None,
    seed: int = 0,
    exchanges: int = 100,
    **parameters: Any,
) -> pd.DataFrame:
    """Return how probable each person's value is for an attacker who knows how the release was made diverse, by sampling.

    The attacker is that of :func:`minimality_excess`. It exchanges values at random inside the published classes, runs
    the step again, and keeps the exchanges after which a person's class is published as it was.

    Parameters
    ----------
    anon : Anonymization
        Before it was made diverse; it looks at no values. Of any size.
    criterion : str
    column : str, optional
    seed : int
        Of :func:`anonflow.algorithms.diversity.diversify.diversify`, and of the exchanges.
    exchanges : int
        How many are tried; the step runs once for each.
    **parameters
        Others that ``diversify`` takes.

    Returns
    -------
    pandas.DataFrame
        One row a person: ``share``, of its value in its class; ``probability``, the share of the kept exchanges in which
        it has its value; ``kept``, how many these are. Where a draw changes what rows show, and for people of whom
        nothing is published, ``kept`` is 0 and ``probability`` missing.

    Raises
    ------
    ParameterError, InfeasibleError
        As ``diversify``.

    Notes
    -----
    Exact but for sampling if what happens in one class says nothing about another, as where classes are united along a tree.
    """
    if not isinstance(anon, Anonymization):
        raise ParameterError(f"minimality_shares takes an Anonymization, not a {type(anon).__name__}")
    import pandas as pd

    name = sensitive_column(column, tuple(anon.table.sensitive), tuple(anon.table.other_columns))
    codes, many, _ = sensitive_codes(anon.table, name)
    request = {"column": name, "seed": seed, **parameters}
    listed = _lists(diversify(anon, criterion, **request)) or [[] for _ in codes]
    groups = [np.array(people) for people in {tuple(people) for people in listed} if people]
    groups.sort(key=lambda people: int(people[0]))
    rng = np.random.default_rng(seed)
    share, right, kept = np.full(len(codes), np.nan), np.zeros(len(codes)), np.zeros(len(codes), np.int64)
    for people in groups:
        own = codes[people]
        share[people] = np.bincount(own, minlength=many)[own] / len(own)
    for _ in range(exchanges if groups else 0):
        dealt = codes.copy()
        for people in groups:
            dealt[people] = rng.permutation(codes[people])
        try:
            again = _lists(diversify(_with_values(anon, name, codes, dealt.tolist()), criterion, **request))
        except InfeasibleError:
            continue
        for people in groups:
            if again is not None and again[people[0]] == people.tolist():
                kept[people] += 1
                right[people] += dealt[people] == codes[people]
    probability = np.divide(right, kept, out=np.full(len(codes), np.nan), where=kept > 0)
    return pd.DataFrame({"share": share, "probability": probability, "kept": kept})


def _with_values(anon: Anonymization, name: str, codes: np.ndarray, values: Sequence[int]) -> Anonymization:
    """Return the result with other sensitive values, given as codes."""
    import pandas as pd

    cells = anon.table.frame[name]
    example = {int(code): cells.iloc[at] for at, code in enumerate(codes)}
    dealt = pd.Series([example[int(code)] for code in values], cells.index, cells.dtype)
    return replace(anon, table=anon.table.with_others({name: dealt}))


class _DrawDecides(Exception):
    """A draw changes what rows show: files are not as likely as each other."""


def enumerated_excess(values: tuple[int, ...], publish: Callable[[tuple[int, ...]], Published]) -> float:
    """Return the same for anything that makes one file from people's values.

    Parameters
    ----------
    values : tuple of int, length n
        The true ones.
    publish : callable
        File, and for each person the people whose rows list it.
    """
    file, listed = publish(values)
    times = np.zeros((len(values), max(values) + 1))
    total = 0
    for dealt in _deals(Counter(values), len(values)):
        if publish(dealt)[0] == file:
            total += 1
            times[np.arange(len(values)), dealt] += 1
    shares = np.zeros_like(times)
    for i, people in enumerate(listed):
        for other in people:
            shares[i, values[other]] += 1 / len(people)
        if not people:  # nothing is published of it
            shares[i] = np.bincount(values, minlength=times.shape[1]) / len(values)
    return float((times / total - shares).max())


def _ways(counts: Counter[int]) -> int:
    ways = math.factorial(counts.total())
    for count in counts.values():
        ways //= math.factorial(count)
    return ways


def _deals(counts: Counter[int], left: int) -> Iterator[tuple[int, ...]]:
    """Yield each way to assign values to `left` people once."""
    if not left:
        yield ()
        return
    for value in sorted(counts):
        if counts[value]:
            counts[value] -= 1
            for rest in _deals(counts, left - 1):
                yield (value, *rest)
            counts[value] += 1


def _lists(diverse: Anonymization) -> list[list[int]] | None:
    """For each person those whose rows list it; None where a draw changes what rows show.

    Of fewer than k suppressed records nothing is published.
    """
    if diverse.classes is not None:
        label = np.where(diverse.suppressed, -1, diverse.classes)
    elif diverse.matches is not None:
        label, complete = components(diverse.matches)
        if not complete.all():
            return None
        label = np.where(diverse.suppressed, -1, label)
    else:
        return None
    groups = {int(number): np.flatnonzero(label == number).tolist() for number in np.unique(label)}
    if len(groups.get(-1, ())) < diverse.k:
        groups[-1] = []
    return [groups[int(number)] for number in label]
