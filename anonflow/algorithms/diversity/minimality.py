"""The minimality attack: what the reason for a change reveals, enumerated on small tables, sampled on tables of any size."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.anonymization import Anonymization
from anonflow.algorithms.diversity.diversify import diversify
from anonflow.algorithms.diversity.target import sensitive_codes, sensitive_column
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.risk.attackers.minimality import MOST, beliefs, exchanged, lists_of, ways

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
    if ways(codes, [np.arange(anon.n)]) > most:
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
        label = lists_of(diverse)
        if label is None:
            raise _DrawDecides
        rows = diverse.frame().astype(str).to_numpy().tolist()
        groups = {int(group): np.flatnonzero(label == group).tolist() for group in np.unique(label)}
        groups[-1] = []
        file = sorted(
            (tuple(rows[people[0]]), tuple(sorted(values[i] for i in people)))
            for people in groups.values()
            if people
        )
        return (tuple(file),), [groups[int(group)] for group in label]

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

    The attacker is that of :func:`minimality_excess`. It exchanges values inside the published classes, runs the step again,
    and keeps the exchanges after which a person's class is published as it was (:class:`anonflow.risk.Minimality`).

    Parameters
    ----------
    anon : Anonymization
        Before it was made diverse; it looks at no values. Of any size.
    criterion : str
    column : str, optional
    seed : int
        Of :func:`anonflow.algorithms.diversity.diversify.diversify`, and of the exchanges.
    exchanges : int
        How many are tried at random, where there are more than `MOST`; the step runs once for each.
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
    name = sensitive_column(column, tuple(anon.table.sensitive), tuple(anon.table.other_columns))
    diverse = diversify(anon, criterion, column=name, seed=seed, **parameters)
    share, probability = np.full(anon.n, np.nan), np.full(anon.n, np.nan)
    same = np.zeros(anon.n, np.int64)
    for belief in exchanged(diverse, name, exchanges, np.random.default_rng(seed)) or []:
        share[belief.people], same[belief.people] = belief.shares[belief.own], belief.same
        if belief.same:
            probability[belief.people] = belief.chance[np.arange(len(belief.own)), belief.own]
    return pd.DataFrame({"share": share, "probability": probability, "kept": same})


def _with_values(anon: Anonymization, name: str, codes: np.ndarray, values: Sequence[int]) -> Anonymization:
    """Return the result with other sensitive values, given as codes."""
    cells = anon.table.frame[name]
    example = {int(code): cells.iloc[at] for at, code in enumerate(codes)}
    dealt = pd.Series([example[int(code)] for code in values], cells.index, cells.dtype)
    return anon.of_table(anon.table.with_others({name: dealt}))


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
    listed = publish(values)[1]
    belief = beliefs(
        np.array(values),
        [np.arange(len(values))],
        lambda dealt: [publish(tuple(dealt.tolist()))[0]],
        0,
        np.random.default_rng(0),
        math.inf,
    )[0]
    shares = np.zeros_like(belief.chance)
    for i, people in enumerate(listed):
        # of some people nothing is published
        others = belief.own[people] if people else belief.own
        shares[i] = np.bincount(others, minlength=len(belief.values)) / len(others)
    return float((belief.chance - shares).max())
