"""The records as they were and as they are published, as texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.generalization import Generalization
from anonflow.table.records import Records
from anonflow.utility.distributions import MISSING, missing_of


def texts_of(records: Records) -> pd.DataFrame:
    """Return records as they would be published ungeneralized; a missing value is called so.

    Returns
    -------
    pandas.DataFrame, shape (n, QI columns), categorical
    """
    texts = Generalization.of(records).decode_categories()
    for name, without in missing_of(records).items():
        cells = texts[name].cat
        categories = cells.categories.append(pd.Index([MISSING]))
        codes = np.where(without, len(categories) - 1, cells.codes.to_numpy())
        texts[name] = pd.Categorical.from_codes(codes, categories)
    return texts


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """The records as they were and as they are published; for the owner's eyes only.

    Attributes
    ----------
    before, after : pandas.DataFrame, shape (n, QI columns), categorical
        Row i is record i.
    changed : numpy.ndarray, shape (n, QI columns), bool
        Whether a cell is published as something else.
    """

    before: pd.DataFrame
    after: pd.DataFrame
    changed: np.ndarray

    @classmethod
    def of(cls, anonymization: Any) -> BeforeAfter:
        """Compare the originals with their generalized records.

        Parameters
        ----------
        anonymization : Anonymization
        """
        before = texts_of(anonymization.table.records)
        after = anonymization.published.decode_categories(suppressed=anonymization.suppressed)
        changed = np.empty(before.shape, bool)
        for at, name in enumerate(before.columns):
            old, new = before[name].cat, after[name].cat
            same = new.categories.get_indexer(old.categories)  # the code after of each text before
            changed[:, at] = same[old.codes.to_numpy()] != new.codes.to_numpy()
        for name, without in missing_of(anonymization.table.records).items():
            # an empty cell that is published as one is a value that is kept
            same = after[name].cat.categories.get_indexer(pd.Index([""]))[0]
            at = list(before.columns).index(name)
            changed[without, at] = after[name].cat.codes.to_numpy()[without] != same
            after[name] = after[name].cat.rename_categories({"": MISSING}) if same >= 0 else after[name]
        return cls(before, after, changed)

    def containing(self, search: str, only_changed: bool = False) -> np.ndarray:
        """Return positions of the records in which a text occurs, before or after, whatever its case; O(n) a column."""
        mask = self.changed.any(axis=1) if only_changed else np.ones(len(self.before), bool)
        text = search.strip()
        if text:
            hit = np.zeros(len(self.before), bool)
            for frame in (self.before, self.after):
                for name in frame.columns:
                    cells = frame[name].cat
                    has = cells.categories.str.contains(text, case=False, regex=False)
                    hit |= np.asarray(has, bool)[cells.codes.to_numpy()]
            mask &= hit
        return np.flatnonzero(mask)
