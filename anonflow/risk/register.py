"""Compare a register of the population with a release: how many people of the register each published row covers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from anonflow.criteria import consistency_graph
from anonflow.criteria.matching.graph import Bipartite
from anonflow.criteria.matching.max_flow import MaxFlow, can_be_left_out, largest_flow
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy import number_text
from anonflow.table import Schema, Table
from anonflow.table.arrow import pandas_frame
from anonflow.table.domain import missing_cells
from anonflow.table.per_unit import first_labels
from anonflow.table.prepare import Preparation
from anonflow.table.published.notation import readers_of


def check_register(
    names: Iterable[str], schema: Schema, steps: Preparation, known: Iterable[str] | None = None
) -> None:
    """Refuse a register without the columns of the comparison.

    Parameters
    ----------
    names : iterable of str
        Its columns, as they are in its file.
    schema : Schema
        Of the table that was released.
    steps : Preparation
        The preparation steps of the register.
    known : iterable of str, optional
        The quasi-identifiers that are needed; all of the schema without it.

    Raises
    ------
    ParameterError
        If it lacks some.
    """
    present = list(names)
    now = steps.renamed(present)
    after = {now.get(name, name) for name in present}
    needed = schema.quasi_identifiers if known is None else known
    lacking = [name for name in needed if name not in after]
    if lacking:
        raise ParameterError(
            f"the population lacks the columns {', '.join(map(repr, lacking))}; a register has every quasi-identifier: add "
            "them, or give another file"
        )


def register_table(register: Any, schema: Schema, known: Iterable[str] | None = None) -> Table:
    """Return a register coded by the schema, so that errors are found before there is a release.

    Parameters
    ----------
    register : pandas.DataFrame
    schema : Schema
        With the steps before.
    known : iterable of str, optional
        As for :func:`check_register`.

    Raises
    ------
    ParameterError
        If it is not a frame, has no people, or lacks a column.
    DataError, HierarchyError
        If a value does not fit its column.
    """
    needed = schema.quasi_identifiers if known is None else known
    return Table(*_prepared_register(register, schema, schema.preparation, needed))


def _prepared_register(
    register: Any, schema: Schema, steps: Preparation, needed: Iterable[str]
) -> tuple[pd.DataFrame, Schema]:
    """Return the needed columns of a register after the preparation steps, and their schema."""
    register = pandas_frame(register)
    if not isinstance(register, pd.DataFrame):
        raise ParameterError("the population is a pandas DataFrame with the table's quasi-identifiers")
    names = list(needed)
    check_register(register.columns, schema, steps, names)
    if not len(register):
        raise ParameterError("the population has no people; give a register with at least one")
    plain = schema.prepared()
    register_schema = Schema({name: plain[name] for name in names}, folder=schema.folder)
    return steps.apply(register, partial=True)[names], register_schema


@dataclass(frozen=True, eq=False)
class RegisterFits:
    """How many people of a register the rows of a table or a release fit, by the quasi-identifiers.

    Attributes
    ----------
    people : int
        Number of people of the register.
    of_row : numpy.ndarray, shape (rows,), int64
        How many people of the register each row covers.
    """

    people: int
    of_row: np.ndarray

    @property
    def single(self) -> int:
        """Rows that fit exactly one person."""
        return int((self.of_row == 1).sum())

    @property
    def nobody(self) -> int:
        """Rows that fit nobody: their people are not in the register, or are written in another way there."""
        return int((self.of_row == 0).sum())

    @property
    def average(self) -> float:
        """The mean chance of naming a row's person: 1 / people that it fits, 0 where it fits nobody."""
        chance = np.where(self.of_row > 0, 1.0 / np.maximum(self.of_row, 1), 0.0)
        return float(chance.mean()) if len(chance) else 0.0


@dataclass(frozen=True, eq=False)
class RegisterCounts(RegisterFits):
    """The matches between the people of a register and the rows of a release.

    Attributes
    ----------
    of_person : numpy.ndarray, shape (people,), int64
        How many published rows cover each person of the register.
    is_of_classes : bool
        Whether no person is covered by rows of two classes: only then a class's share gives the presence.
    graph : Bipartite
        Which distinct rows cover which distinct people.
    person : numpy.ndarray, shape (m,), int64
        The person of each row of the register, 0.. .
    released : numpy.ndarray, shape (classes,), int64
        Number of people of each class of rows: as many as it has rows, or fewer if people have several.
    several_rows : bool
        Whether a person may have several rows of the release.
    """

    of_person: np.ndarray
    is_of_classes: bool
    graph: Bipartite = field(repr=False)
    person: np.ndarray = field(repr=False)
    released: np.ndarray = field(repr=False)
    several_rows: bool = False

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        schema: Schema,
        register: pd.DataFrame,
        originals: Table | None = None,
        classes: np.ndarray | None = None,
    ) -> RegisterCounts:
        """Compare the rows of a release with a register.

        Parameters
        ----------
        frame : pandas.DataFrame
            The published rows, in any notation.
        schema : Schema
            With the kinds and hierarchies of the original.
        register : pandas.DataFrame
            With every quasi-identifier, a row a person, or with the schema's column of units, several; prepared by the steps
            that the schema or the originals have.
        originals : Table, optional
            If given, its values are added to the domains, so that ranges between them are read in the same way.
        classes : numpy.ndarray, shape (n,), int64, optional
            A published row of the class of each original, or -1 if its row is suppressed. With units it shows how many people
            a class has.

        Raises
        ------
        ParameterError
            If the register is no frame, is empty, or lacks a quasi-identifier; or the rows show means or medians.
        DataError
            If a value of the register is in no hierarchy, a unit is blank, or the rows cannot be read.

        Notes
        -----
        O(edges between distinct people and distinct rows).
        """
        steps = schema.preparation if originals is None else originals.preparation
        owner = _owners(register, schema, steps)
        both, register_schema = _prepared_register(register, schema, steps, schema.quasi_identifiers)
        names = list(register_schema)
        if originals is not None:
            original_cells = originals.frame[names]
            # coded together: a published range also covers people whose value the table does not have
            both = pd.concat([original_cells, _as_typed(both, original_cells)], ignore_index=True)
        table = Table(both, register_schema)
        before = 0 if originals is None else originals.n
        people = table.records.take(np.arange(before, table.n))
        person = np.arange(people.n) if owner is None or len(owner) != people.n else owner
        readers = readers_of(table.domains, {name: schema[name].notation for name in names})
        published = Generalization.parse(frame, table.domains, readers=readers)
        if published.aggregates is not None:
            raise ParameterError(
                "the rows show means or medians, and a register does not say whom one covers; compare it with a release of "
                "ranges, made without `aggregate`"
            )
        graph = consistency_graph(people, published)
        label = graph.published.label
        released = np.bincount(label, minlength=graph.published.size)
        unit = None if originals is None else originals.unit
        if unit is not None and classes is not None:
            in_class = classes >= 0
            pairs = np.unique(np.stack([label[classes[in_class]], unit[in_class]]), axis=1)
            released = np.bincount(pairs[0], minlength=graph.published.size)
        covered = graph.people(person)
        return cls(
            int(person.max()) + 1,
            covered[label],
            np.bincount(person, graph.degrees()[0][graph.originals.label]).astype(np.int64),
            bool((np.bincount(graph.end, minlength=1) <= 1).all()),
            graph,
            person,
            released,
            schema.unit_column is not None,
        )

    @cached_property
    def presence(self) -> np.ndarray:
        """Return for each class of rows the share of the people whom it covers who have a row, shape (classes,), float64.

        1 for a class that covers nobody of the register.
        """
        of_class = self.graph.people(self.person)
        return np.minimum(1.0, self.released / np.maximum(of_class, 1))

    @cached_property
    def chance(self) -> np.ndarray:
        """Return the probability that each person of the register is in the table, by the likeliest class, shape (people,), float64."""
        of_end = np.zeros(self.graph.originals.size)
        np.maximum.at(of_end, self.graph.end, self.presence[self.graph.box])
        chance = np.zeros(self.people)
        np.maximum.at(chance, self.person, of_end[self.graph.originals.label])
        return chance

    @cached_property
    def _assignment(self) -> MaxFlow:
        """Assign as many rows as possible to different people whom they cover."""
        graph = self.graph
        people, rows = graph.originals.count, graph.published.count
        return largest_flow(people, rows, graph.end, graph.box)

    @property
    def unlisted(self) -> int:
        """Return the least number of rows that belong to people outside the register: no assignment gives them a person of it.

        Raises
        ------
        DataError
            If the graph is too large for a flow.
        """
        if self.several_rows:
            return int((self.of_row == 0).sum())
        return int(self._assignment.unmet.sum())

    @cached_property
    def could_be_absent(self) -> np.ndarray:
        """Return the people without whom all rows could belong to others, shape (people,), bool.

        Raises
        ------
        DataError
            If the graph is too large for a flow.

        Notes
        -----
        A person must be present if every assignment of the rows to different people of the register, each covered by its
        row, has the person. Each covered person could also be present, in place of the person on that row. If some row
        belongs to no person of the register, so may the others, and everybody could be absent. One maximum flow.

        Where a person may have several rows, all rows that two people are covered by can be one of them's: only who is alone
        on a row must be present.
        """
        spared = np.ones(self.people, bool)
        if self.unlisted:
            return spared
        graph = self.graph
        if not self.several_rows:
            left_out: np.ndarray = can_be_left_out(graph.end, graph.box, self._assignment)
            return left_out[graph.originals.label]
        alone = graph.people(self.person) == 1
        ends = graph.end[alone[graph.box]]
        must = np.zeros(graph.originals.size, bool)
        must[ends] = True
        spared[self.person[must[graph.originals.label]]] = False
        return spared


def _as_typed(register: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a register whose columns are numbers where those of the table are, and texts where they are texts.

    So a file of texts can be compared with a table of numbers. A text that is not a number stays, and is refused later.
    """
    typed = {}
    for name in frame.columns:
        cells, is_number = register[name], frame[name].dtype.kind in "iuf"
        if is_number and cells.dtype.kind not in "iuf":
            numbers = pd.to_numeric(cells.where(~missing_cells(cells)), errors="coerce")
            if (numbers.notna() | missing_cells(cells)).all():
                typed[name] = numbers
        elif cells.dtype.kind in "iuf" and frame[name].map(lambda value: isinstance(value, str)).any():
            typed[name] = cells.map(number_text, na_action="ignore").astype(object)
    return register.assign(**typed)


def _owners(register: Any, schema: Schema, steps: Preparation) -> np.ndarray | None:
    """Return the person of each row of a register, 0..; None if each row is a person."""
    frame = pandas_frame(register)
    unit = schema.unit_column
    if unit is None or not isinstance(frame, pd.DataFrame) or not len(frame):
        return None
    frame = steps.apply(frame, partial=True)
    return first_labels(frame[unit], unit) if unit in frame.columns else None
