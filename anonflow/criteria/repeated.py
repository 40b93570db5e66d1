"""Repeated: what a release and the earlier ones of the same people leave of each person together."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.option import Option
from anonflow.table import Table
from anonflow.table.identification.earlier import history_of, history_with

_NO_TRUTH = "needs a release in memory, or one that was kept in the owner's folder: a file does not say whose columns a row has"


def repeated(
    evidence: Evidence,
    *,
    earlier: Annotated[Any, Option("Owner's folder of the earlier releases")],
    people: Annotated[int | None, Option("People left", least=2)] = None,
    values: Annotated[int, Option("Sensitive values left", least=1)] = 1,
    column: Annotated[str | None, Option("Sensitive column")] = None,
) -> Finding:
    """Return whether this release and the earlier ones leave each person enough people whose rows may be theirs, and enough values.

    Parameters
    ----------
    evidence : Evidence
    earlier : path or list of paths
        The owner's folders in which earlier releases were kept, the oldest first.
    people : int, optional
        How many people's rows may be a person's, in all releases together; k without it.
    values : int, optional
        How many different values of the sensitive column these rows show, each in its last release.
    column : str, optional
        The sensitive column; the only one of the table without it.

    Raises
    ------
    ParameterError
        If k is not known, no folder is named, people of the table have several rows or no identifier; or if there is no such
        column, or it has fewer values.
    DataError
        If a folder is not that of the table's people, or cannot be read.

    Notes
    -----
    :class:`anonflow.table.identification.history.History` describes the attacker. Everybody who is in some release counts, those
    who left as well. The release itself may be in the folder already.
    """
    people = evidence.need_k("repeated") if people is None else people
    parameters: dict[str, Any] = {"people": people, "values": values}
    if evidence.frame is None or evidence.alone:
        return Finding("repeated", None, detail="needs a release and its original", parameters=parameters)
    history, marks = history_with(earlier, evidence.table, evidence)
    if history is None:
        return Finding("repeated", None, detail=_NO_TRUTH, parameters=parameters)
    people_left = history.people_left
    few = people_left < people
    detail = (
        f"{plural(len(history.releases), 'release', 'leave')} each of {plural(len(people_left), 'person')} at least "
        f"{plural(int(people_left.min()), 'person')} whose rows may be theirs, {people_left.mean():.1f} on average"
    )
    if values > 1:
        column = _sensitive(evidence, column, values)
        parameters["column"] = column
        different = history.values_left(column)
        few |= different < values
        detail += f", with at least {plural(int(different.min()), 'value')} of {column!r}"
    failing = history.of(marks, few)
    absent = int(few.sum()) - int(failing.sum())
    if absent:
        detail += f"; {plural(absent, 'person')} with fewer {verb_of(absent, 'are')} in earlier releases only"
    return Finding.of("repeated", failing, "original", detail, parameters, holds=not few.any())


def released_people(table: Table, frame: pd.DataFrame, earlier: Any) -> Table:
    """Return the people of a table who are in a release that was kept in an owner's folder; all of them if it is not there.

    Parameters
    ----------
    table : Table
        With those who were held back.
    frame : pandas.DataFrame
        The release.
    earlier : path or list of paths
        As :func:`repeated` takes it.

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.table.identification.earlier.history_of`.
    """
    place, history, marks = history_of(earlier, table)
    seal = place.seal_of(frame)
    for release in history.releases:
        if release.seal == seal:
            return table.take(np.flatnonzero(np.isin(marks, release.marks)))
    return table


def _sensitive(evidence: Evidence, column: str | None, values: int) -> str:
    """Return the sensitive column.

    Raises
    ------
    ParameterError
        If there is no such column, or it has fewer values.
    """
    names = evidence.table.sensitive
    if column is None and len(names) != 1:
        raise ParameterError(
            f"criterion 'repeated': the table has {len(names)} sensitive columns; say which one: column=..."
        )
    name = names[0] if column is None else column
    if name not in names:
        raise ParameterError(f"criterion 'repeated': {name!r} is not a sensitive column")
    different = int(evidence.table.frame[name].nunique(dropna=False))
    if values > different:
        raise ParameterError(
            f"criterion 'repeated': column {name!r} has {plural(different, 'value')}, so no release can leave {values}; lower values"
        )
    return name


REPEATED = Criterion(
    name="repeated",
    check=repeated,
    sentence="All releases of the same people together leave each person enough people whose rows may be theirs, and enough values.",
    adds_up=False,
    of_release=True,
)
