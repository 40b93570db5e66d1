"""Schema and Table: a frame of people, coded for the kernels, with the values of the codes."""

from anonflow.table.domain import Domain
from anonflow.table.frame import Table
from anonflow.table.records import Records, equal_columns
from anonflow.table.row_marks import row_marks
from anonflow.table.schema import Column, Schema

__all__ = ["Column", "Domain", "Records", "Schema", "Table", "equal_columns", "row_marks"]
