"""The function `attack`: run attackers on a release and return their success as a frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any

import pandas as pd

from anonflow.criteria.evidence import subject_of
from anonflow.criteria.repeated import released_people
from anonflow.errors import ParameterError
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import Attacker, AttackerKind, Success
from anonflow.risk.attackers.by_keys import ByKeys, ByKeySets, checked_sets
from anonflow.risk.attackers.counting import Counter
from anonflow.risk.attackers.disclosive import Disclosive
from anonflow.risk.attackers.downcoding import Downcoding
from anonflow.risk.attackers.insiders import Clerk, Insider, Replayer
from anonflow.risk.attackers.intersection import Intersection
from anonflow.risk.attackers.linkable import LinkableColumns
from anonflow.risk.attackers.linkers import Homogeneity, Journalist, Linker, Marketer, Presence, Prosecutor
from anonflow.risk.attackers.minimality import Minimality
from anonflow.risk.attackers.own_rows import OwnRows
from anonflow.risk.attackers.people import Unit
from anonflow.risk.attackers.population import Population
from anonflow.risk.attackers.refinement import Refinement
from anonflow.risk.attackers.simulator import Simulator
from anonflow.table import Schema, Table
from anonflow.table.identification.earlier import Earlier
from anonflow.table.schema import did_you_mean
from anonflow.whole_file import as_path

ATTACKERS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        Prosecutor,
        Journalist,
        Presence,
        Marketer,
        Linker,
        Unit,
        LinkableColumns,
        Insider,
        Replayer,
        OwnRows,
        Simulator,
        Clerk,
        Intersection,
        Homogeneity,
        Minimality,
        Disclosive,
        Population,
        Counter,
        Downcoding,
        Refinement,
        ByKeySets,
    )
}
"""Every attacker by its name."""

OF_ROWS = tuple(name for name, kind in ATTACKERS.items() if kind.reads_rows_alone)
OF_THE_ROW = tuple(name for name, kind in ATTACKERS.items() if kind.points_at_row)
WITH_REGISTER = tuple(name for name, kind in ATTACKERS.items() if kind.takes_register)
OF_SETS = tuple(name for name, kind in ATTACKERS.items() if kind.of_sets)
"""Those of them who read the rows alone, point at a row, take a register, stand for others by sets of columns (:class:`AttackerKind`)."""

COLUMNS = (
    "attacker",
    "knows",
    "targets",
    "success",
    "low",
    "high",
    "baseline",
    "worst",
    "at_risk",
    "sentence",
)

_ROWS_ALONE = "Only equal rows are counted: which other rows cover the same people, as in a freeform release, the original shows."

REVEALING = "columns"
"""The columns that an attacker uses besides the quasi-identifiers."""

HOUSEHOLD_COLUMNS = ("households", "household_success", "household_worst")
"""More columns, where the schema has households."""

KEYS = "keys"
"""One more column, where attackers know some quasi-identifiers only: which."""


def attack(
    table: Any,
    release: Any,
    attackers: Any = None,
    *,
    k: int | None = None,
    certificate: Any = None,
    seed: int | None = None,
    earlier: Sequence[Any] | None = None,
    register: pd.DataFrame | None = None,
    another_tool: bool = False,
    sets: Sequence[Sequence[str]] | None = None,
    schema: Schema | Mapping[str, Any] | str | PathLike[str] | None = None,
) -> pd.DataFrame:
    """Run attackers on a release and return how often each wins.

    Parameters
    ----------
    table : Table, Schema, or frame
        The n originals, a frame with its `schema`; without them the release's schema: then attackers who need no original are tried.
    release : Release, Anonymization, pandas.DataFrame or path
        What is attacked. An anonymization is drawn for this purpose, and that draw is not published.
    attackers : name, attacker, mapping, or list of them, optional
        Names of ``risk.ATTACKERS``, with parameters ``{insider: {c: 3}}``, or objects with ``name``, ``knows``
        and ``attack(context)``. By default all that can attack this table and release.
    k : int, optional
        The k that the release promises; by default the release's own.
    certificate : Certificate, optional
        The result of running the method again; a release has its own.
    seed : int, optional
        Seed for drawing the people who are attacked, if an attacker takes a sample.
    earlier : list of releases, optional
        Other releases of the same people, as the attacker ``intersection`` takes them: it is tried, too. Or the owner's folders in which
        they were kept: then the attacker ``linker`` has them all, sees which rows are one person's, and is tried, too; the table may have
        people who were held back.
    register : pandas.DataFrame, optional
        People of the population, for the attackers who take one: they are tried, too.
    another_tool : bool
        Whether another tool made the release: other notations, and deleted records (:func:`anonflow.verify`).
    sets : list of lists of str, optional
        Sets of quasi-identifiers that others may know, each by itself, such as ``[["age", "sex"], ["zip"]]``: every
        attacker is tried with each of them, without a certificate.
    schema : Schema, mapping or path, optional
        Where the original is a frame.

    Returns
    -------
    pandas.DataFrame
        A row for each attacker: its name, what it `knows`, number of `targets`, its `success` rate, `low` and
        `high` of a rate that was counted on some people or along one draw, with confidence 95% (an expectation over
        everybody is exact: both are the rate), the `baseline` it must not beat, its `worst` probability of
        finding one person, how many are `at_risk` (found more often than the baseline says), and a `sentence`
        in plain words. Where the schema has households also how many `households` there are, and the probability that
        somebody of one is named: `household_success` on average, `household_worst` at most. Where attackers know some
        quasi-identifiers only, `keys` says which; `columns` lists those that an attacker uses besides, the most revealing first.
        Counts and rates only.

    Raises
    ------
    ParameterError
        If an attacker is unknown, lacks what it needs, or k is not known; if a set has a column that is no
        quasi-identifier.
    SchemaError, HierarchyError
        If the frame of the originals does not go with its schema.
    DataError
        If the release cannot be read, does not cover the table, or covers too much to be listed.

    Notes
    -----
    Success is an expectation over the attacker's own guesses and over the draw where that can be computed, and
    counted against the truth, which the release keeps in memory only, where it cannot. Targets are people: with a column
    of the role ``unit`` somebody with several rows is found by any of them (:class:`anonflow.risk.attackers.people.PeopleAtRisk`).
    """
    if schema is not None:
        table = Table.of(table, schema, "attack")
    if not isinstance(table, Table | Schema):
        raise ParameterError(
            "attack takes an anonflow.Table; make one with af.Table(frame, schema), or say schema= of a frame"
        )
    folders, others = _of_owners(earlier)
    if folders and isinstance(table, Schema):
        raise ParameterError(
            "an owner's folder of earlier releases says who is in them: attack needs the original table, too"
        )
    if folders and isinstance(table, Table):
        published = subject_of(release, table)
        # people who were held back have no row: the others are attacked
        if published.frame is not None and published.rows < table.n:
            table = released_people(table, published.frame, folders)
    context = AttackContext.of(table, release, k, certificate, seed, another_tool)
    if folders:
        context = replace(context, earlier=folders)
    key_sets = () if sets is None else checked_sets(sets)
    chosen: list[Attacker]
    if attackers is not None:
        chosen = attackers_of(attackers, register)
    elif key_sets:  # of each set the same, which are those of fewer columns
        chosen = usual(context.with_keys(key_sets[0]), publishable=True)
    else:
        chosen = usual(context)
    if attackers is None and register is not None:
        chosen += attackers_of(WITH_REGISTER, register)
    if key_sets:
        chosen = [ByKeys(attacker, keys) for keys in key_sets for attacker in chosen]
    if folders:
        names = {tried.name for tried in chosen}
        chosen += [kind() for name, kind in ATTACKERS.items() if kind.of_earlier and name not in names]
    if others is not None:
        chosen += [kind(others) for kind in ATTACKERS.values() if kind.takes_releases]
    if context.schema is not None:
        for tried in chosen:
            if tried.name not in OF_ROWS:
                raise ParameterError(
                    f"{tried.name}: needs the original table; without it there are {', '.join(OF_ROWS)}"
                )
    rows = [row_of(attacker, attacker.attack(context)) for attacker in chosen]
    if context.schema is not None:
        rows = [
            {**row, "sentence": f"{row['sentence']} {_ROWS_ALONE}"} if row["attacker"] in OF_THE_ROW else row
            for row in rows
        ]
    return frame_of(rows)


def _of_owners(earlier: Any) -> tuple[list[Any], list[Any] | None]:
    """Return the owner's folders among earlier releases, and the other ones; None where no others are named."""
    named = [] if earlier is None else [earlier] if isinstance(earlier, str | PathLike) else list(earlier)
    folders = [
        release for release in named if isinstance(release, str | PathLike) and _is_of_an_owner(release)
    ]
    others = [release for release in named if all(release is not folder for folder in folders)]
    return folders, others if others or (earlier is not None and not folders) else None


def _is_of_an_owner(path: str | PathLike[str]) -> bool:
    """Return whether a path is no release: an owner's folder, with releases or not, or no file at all."""
    place = as_path(path)
    if place.is_dir():
        return bool(Earlier.of(place).kept) or not any(place.glob("*.parquet"))
    return not place.exists() and not place.suffix


def frame_of(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows of :func:`row_of` as :func:`attack` gives them."""
    further_columns = [
        name for name in (*HOUSEHOLD_COLUMNS, KEYS, REVEALING) if any(name in row for row in rows)
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS, *further_columns])


def row_of(attacker: Attacker, success: Success) -> dict[str, Any]:
    """Return a success as a row of :func:`attack`'s frame."""
    low, high = success.interval
    row = {
        "attacker": attacker.name,
        "knows": attacker.knows,
        "targets": success.targets,
        "success": success.rate,
        "low": low,
        "high": high,
        "baseline": success.baseline,
        "worst": success.worst,
        "at_risk": success.at_risk,
        "sentence": success.sentence,
    }
    homes = success.households
    if homes is not None:
        row |= dict(zip(HOUSEHOLD_COLUMNS, (homes.number, homes.mean, homes.worst), strict=True))
        row["sentence"] = f"{success.sentence} {homes.sentence()}"
    if isinstance(attacker, ByKeys):
        row[KEYS] = ", ".join(attacker.keys)
    if success.columns:
        row[REVEALING] = list(success.columns)
    return row


def is_publishable(row: Mapping[str, Any]) -> bool:
    """Return whether the figures of an attacker are counted on the rows and their lists alone."""
    kind = ATTACKERS.get(row["attacker"])
    by_all_keys = not isinstance(row.get(KEYS), str)  # other keys have no lists
    return kind is not None and by_all_keys and not (kind.needs_truth or kind.needs_originals)


def attackers_of(named: Any, register: pd.DataFrame | None = None) -> list[Attacker]:
    """Return attackers from names, mappings and objects.

    Parameters
    ----------
    named : name, attacker, mapping, or iterable of them
    register : pandas.DataFrame, optional
        For those who take one and were not given theirs.

    Raises
    ------
    ParameterError
        If an attacker is unknown, or does not have one of the parameters.
    """
    if isinstance(named, str | Mapping | AttackerKind) or hasattr(named, "attack"):
        named = [named]
    if not isinstance(named, Iterable):
        raise ParameterError("attackers are names such as ['prosecutor', 'linker'], or attacker objects")
    chosen = [attacker for item in named for attacker in _of_item(item, register)]
    if not chosen:
        raise ParameterError("no attacker is named; name some, such as ['prosecutor', 'linker']")
    return chosen


def _of_item(item: Any, register: pd.DataFrame | None) -> list[Attacker]:
    read = partial(attackers_of, register=register)
    if isinstance(item, AttackerKind):
        return item.members(read)
    if hasattr(item, "attack"):
        return [item]
    named: Mapping[Any, Any] = item if isinstance(item, Mapping) else {item: {}}
    attackers: list[Attacker] = []
    for name, parameters in named.items():
        if not isinstance(name, str) or name not in ATTACKERS:
            raise ParameterError(f"unknown attacker {name!r}{did_you_mean(name, tuple(ATTACKERS))}")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise ParameterError(f"{name}: parameters are a mapping such as {{c: 3}}")
        if not parameters and register is not None and ATTACKERS[name].takes_register:
            parameters = {"population": register}
        try:
            kind = ATTACKERS[name](**{str(key): value for key, value in (parameters or {}).items()})
        except TypeError:
            raise ParameterError(f"{name}: {ATTACKERS[name].asked_for()}") from None
        attackers += kind.members(read)
    return attackers


def usual(context: AttackContext, publishable: bool = False) -> list[Attacker]:
    """Return the attackers that are possible with the available data.

    Parameters
    ----------
    context : AttackContext
    publishable : bool
        Whether to leave out those whose rate uses the truth.
    """
    schema = context.table.schema
    columns = [
        name
        for name in context.table.other_columns
        if schema[name].role == "sensitive" and name in context.frame.columns
    ]
    chosen: list[Attacker] = []
    for kind in ATTACKERS.values():
        if (
            kind.usual_where is not None
            and not (publishable and kind.needs_truth)
            and kind.usual_where(context)
        ):
            chosen += [kind(name) for name in columns] if kind.of_each_column else [kind()]
    return chosen
