"""A register of the population against a release: how many of its people each published row covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from anonflow.criteria import consistency_graph
from anonflow.criteria.graph import Bipartite
from anonflow.criteria.max_flow import MaxFlow, can_be_left_out, largest_flow
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Schema, Table
from anonflow.table.arrow import pandas_frame
from anonflow.table.notation import readers_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["RegisterCounts"]


@dataclass(frozen=True, eq=False)
class RegisterCounts:
    """Who of a register could be on which row, by the quasi-identifiers.

    Attributes
    ----------
    people : int
        In the register.
    of_row : numpy.ndarray, shape (rows,), int64
        How many people of the register each published row covers.
    of_person : numpy.ndarray, shape (people,), int64
        How many published rows cover each person of the register.
    row_label : numpy.ndarray, shape (rows,), int64
        Equal for rows that cover the same values.
    is_of_classes : bool
        Whether nobody is covered by rows of two classes: only then a class's share says who is present.
    graph : Bipartite
        Which distinct rows cover which distinct people.
    """

    people: int
    of_row: np.ndarray
    of_person: np.ndarray
    row_label: np.ndarray
    is_of_classes: bool
    graph: Bipartite = field(repr=False)

    @classmethod
    def of(
        cls, frame: pd.DataFrame, schema: Schema, register: pd.DataFrame, originals: Table | None = None
    ) -> RegisterCounts:
        """Compare the rows of a release with a register.

        Parameters
        ----------
        frame : pandas.DataFrame
            The published rows, in whatever notation.
        schema : Schema
            With the kinds and hierarchies of the original.
        register : pandas.DataFrame
            With every quasi-identifier, a row a person; prepared by the steps that the schema or the originals have.
        originals : Table, optional
            Where it is there, its values are added to the domains, that ranges between them are read alike.

        Raises
        ------
        ParameterError
            If the register is no frame, is empty, or lacks a quasi-identifier.
        DataError
            If a value of the register is in no hierarchy, or the rows cannot be read.

        Notes
        -----
        O(edges between distinct people and distinct rows).
        """
        import pandas as pd

        register = pandas_frame(register)
        if not isinstance(register, pd.DataFrame):
            raise ParameterError("the population is a pandas DataFrame with the table's quasi-identifiers")
        steps = schema.preparation if originals is None else originals.preparation
        register = steps.apply(register, partial=True)
        names = list(schema.quasi_identifiers)
        lacking = [name for name in names if name not in register.columns]
        if lacking:
            raise ParameterError(f"the population lacks the columns {', '.join(map(repr, lacking))}")
        if not len(register):
            raise ParameterError("the population has no people; give a register with at least one")
        known = Schema({name: schema[name] for name in names}, folder=schema.folder)
        both = register[names]
        if originals is not None:
            both = pd.concat([originals.frame[names], both], ignore_index=True)
        table = Table(both, known)
        before = 0 if originals is None else originals.n
        people = table.records.take(np.arange(before, table.n))
        readers = readers_of(table.domains, {name: schema[name].notation for name in names})
        graph = consistency_graph(people, Generalization.parse(frame, table.domains, readers=readers))
        rows, persons = graph.degrees()[1], graph.degrees()[0]
        return cls(
            people.n,
            rows[graph.published.label],
            persons[graph.originals.label],
            graph.published.label,
            bool((np.bincount(graph.end, minlength=1) <= 1).all()),
            graph,
        )

    @cached_property
    def presence(self) -> np.ndarray:
        """Of each class of rows, the share of the people it covers that have a row, shape (classes,), float64.

        Nobody covered: 1, as whoever is on such a row is in no register.
        """
        _, first, size = np.unique(self.row_label, return_index=True, return_counts=True)
        return np.minimum(1.0, size / np.maximum(self.of_row[first], 1))

    @cached_property
    def _assignment(self) -> MaxFlow:
        """As many rows as possible, each with another person that it covers."""
        graph = self.graph
        people, rows = graph.originals.count, graph.published.count
        most = np.minimum(people[graph.end], rows[graph.box])
        return largest_flow(people, rows, graph.end, graph.box, most)

    @property
    def unlisted(self) -> int:
        """At least so many rows are of people whom the register does not have: no assignment gives all rows a person of it.

        Raises
        ------
        DataError
            If the graph is too large for a flow.
        """
        return int(self._assignment.unmet.sum())

    @cached_property
    def could_be_absent(self) -> np.ndarray:
        """Without whom all rows could be other people's, shape (people,), bool.

        Raises
        ------
        DataError
            If the graph is too large for a flow.

        Notes
        -----
        A person must be present if every assignment of the rows to different people of the register, each covered by its
        row, has the person. Whoever is covered could be present, as well: he takes the place of the one on that row. Where
        some row is of nobody in the register, the others may be, too, and everybody could be absent. One maximum flow.
        """
        if self.unlisted:
            return np.ones(self.people, bool)
        graph = self.graph
        spared: np.ndarray = can_be_left_out(graph.end, graph.box, self._assignment)[graph.originals.label]
        return spared
