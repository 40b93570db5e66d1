"""A table without its records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from anonflow.table import Domain, Schema

__all__ = ["Outline"]


@dataclass(frozen=True, eq=False)
class Outline:
    """A table without its records: the data that a report needs.

    Attributes
    ----------
    n, dropped : int
        Records, and those left out for a missing value.
    columns : tuple of str
        The published ones, in the table's order.
    unnamed : tuple of str
        Columns of the source that the schema does not name.
    schema : Schema
    domains : tuple of Domain
    filtered : int
        Rows of the source that a preparation step leaves out.
    """

    n: int
    dropped: int
    columns: tuple[str, ...]
    unnamed: tuple[str, ...]
    schema: Schema
    domains: tuple[Domain, ...]
    filtered: int = 0

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns, and no rows."""
        return pd.DataFrame(columns=pd.Index(self.columns, dtype="str"))
