"""From generalized records to a published table: draw, carry the other columns along, shuffle, rebuild."""

from __future__ import annotations

import datetime
import hashlib
import warnings
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from anonflow.errors import DataError
from anonflow.release.certificate import Certificate, versions
from anonflow.release.columns import covering, told_by_columns
from anonflow.release.draw import draw_assignment, draw_permutation, permute_classes
from anonflow.release.earlier import Earlier
from anonflow.release.published import Release, ReleaseWarning
from anonflow.release.randomness import (
    DRAW_STEP,
    RandomWords,
    checked_secret,
    seed_of_table,
    warn_of_small_seed,
)
from anonflow.table.domain import WHOLE, number_text
from anonflow.table.linkage import Candidates
from anonflow.table.row_marks import KEY_LENGTH, Content, row_marks

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.generalization import Generalization
    from anonflow.table import Table

__all__ = ["Publishable", "plain_values", "publish", "publish_once"]

_EXACT = 1 << 53

# Which words the draws of an anonymization were made from: a second one is worth a warning.
_drawn: WeakKeyDictionary[Any, set[bytes | None]] = WeakKeyDictionary()


class Publishable(Protocol):
    """What a release is made of; an ``Anonymization`` is one."""

    table: Table
    algorithm: Any
    k: int
    generalization: Generalization
    matches: np.ndarray | None
    classes: np.ndarray | None
    suppressed: np.ndarray

    @property
    def guarantee(self) -> str:
        """The criterion that the method promises."""


def publish(
    anonymization: Publishable,
    seed: int | bytes | str | None = None,
    *,
    step: int = DRAW_STEP,
    rehearsal: bool = False,
) -> Release:
    """Draw one assignment, shuffle, and build what is published.

    Parameters
    ----------
    anonymization : Anonymization
        n generalized records of a table.
    seed : int, bytes or str, optional
        A secret (see :class:`RandomWords`) that makes the same release of the same table again; the operating
        system's randomness without it.
    step : int
        Separates draws that share a seed.
    rehearsal : bool
        Whether this draw is for a test and will not be published: it warns of nothing, and does not count as a
        first draw.

    Returns
    -------
    Release
        n rows. All published columns that are no quasi-identifiers travel together from one original to a
        row: along an assignment drawn from the matches, by a uniform permutation inside each class, or, where
        a method has neither, with the record's own. Fewer than k suppressed records have ``*`` there.

    Raises
    ------
    ParameterError
        If the seed is none that can be used.
    VerificationError
        If the matches are not regular.

    Warns
    -----
    SeedWarning
        If the seed is an integer below 2^64.
    ReleaseWarning
        If the method says that this result should not be released; if another column, or several together, are nearly
        unique, stand in the table's order or follow from quasi-identifiers, which undoes the shuffle; or if a release
        of this anonymization was drawn before with other words: who has both can intersect them.

    Notes
    -----
    O(nk + n log n) expected time, and O(n) for each column.
    """
    import pandas as pd

    table, n = anonymization.table, anonymization.generalization.n
    if seed is not None:
        seed = checked_secret(seed)
        content = Content.of(table.frame, [str(name) for name in table.frame.columns])
        words = RandomWords(seed_of_table(seed, content.to_bytes()), step)
    else:
        words = RandomWords(None, step)
    if not rehearsal:
        warn_of_small_seed(seed, stacklevel=3)
        _warn_of_second_draw(anonymization, seed, step)
        weak = (getattr(anonymization, "facts", None) or {}).get("warning")
        if weak:
            warnings.warn(f"{weak}", ReleaseWarning, stacklevel=3)
    suppressed = np.asarray(anonymization.suppressed, bool)
    hidden = 0 < int(suppressed.sum()) < anonymization.k
    origin = _assignment(anonymization, suppressed, words)
    order = draw_permutation(n, words)
    published = anonymization.generalization.take(order).decode(suppressed=suppressed[order])
    columns: dict[str, Any] = {}
    for name in table.frame.columns:
        if name in published.columns:
            columns[str(name)] = published[name].array
            continue
        cells = table.frame[name]
        columns[str(name)] = plain_values(
            cells, origin[order], hidden=suppressed[order] if hidden else None, name=str(name)
        )
    if not rehearsal:
        _warn_of_columns(anonymization, suppressed, order, origin[order], hidden)
    frame = pd.DataFrame(columns, index=pd.RangeIndex(n))
    key = words.lanes("marks", 0, 2 * KEY_LENGTH // 8).tobytes().hex()[:KEY_LENGTH]
    marks = row_marks(frame, list(columns), key)
    certificate = replace(_certificate(anonymization, suppressed, order), row_marks=marks, key=key)
    return Release(frame, certificate, origin[order])


def publish_once(
    anonymization: Publishable, owner: str | PathLike[str], seed: int | bytes | str | None = None
) -> Release:
    """:func:`publish`, and keep in the owner's folder whom the release is about.

    Parameters
    ----------
    anonymization : Anonymization
    owner : path
    seed : int, bytes or str, optional

    Raises
    ------
    ParameterError, VerificationError
        As :func:`publish`.
    DataError, AnonflowError
        If the folder cannot be read or written to.

    Warns
    -----
    ReleaseWarning
        As :func:`publish`; and if people are in an earlier release from this folder, how many.
    """
    release = publish(anonymization, seed)
    earlier = Earlier(owner)
    overlap = earlier.overlap(anonymization.table, release)
    if overlap:
        warnings.warn(overlap.sentence(), ReleaseWarning, stacklevel=3)
    earlier.keep(anonymization.table, release)
    return release


def _assignment(source: Publishable, suppressed: np.ndarray, words: RandomWords) -> np.ndarray:
    """The original whose other columns each generalized record is published with, shape (n,), int64."""
    n = len(suppressed)
    if source.matches is not None:
        origin = draw_assignment(source.matches, words)
    elif source.classes is not None:
        origin = permute_classes(np.where(suppressed, -1, source.classes), words)
    else:
        origin = np.arange(n, dtype=np.int64)
    hidden = np.flatnonzero(suppressed)
    if len(hidden) and source.classes is None:
        if (origin[hidden] != hidden).any():
            raise DataError("suppressed records have matches besides themselves; give each a row of its own")
        origin[hidden] = hidden[permute_classes(np.zeros(len(hidden), np.int8), words, hidden)]
    return origin


def _certificate(source: Publishable, suppressed: np.ndarray, order: np.ndarray) -> Certificate:
    n = len(suppressed)
    hidden = np.flatnonzero(suppressed)
    if source.matches is not None:
        lists = np.sort(source.matches[order[~suppressed[order]]], axis=1)  # by published row
        given = lists >= 0
        flat, sizes = lists[given], given.sum(axis=1)
        row_list = np.zeros(n, np.int64)
        row_list[~suppressed[order]] = np.arange(len(lists))
    elif source.classes is not None:
        labels = np.where(suppressed, -1, source.classes)
        kinds, member = np.unique(labels, return_inverse=True)
        flat = np.argsort(member, kind="stable")
        sizes = np.bincount(member, minlength=len(kinds))
        row_list = member[order]
        hidden = hidden[:0]
    else:
        flat, sizes = np.empty(0, np.int64), np.zeros(1, np.int64)
        row_list = np.zeros(n, np.int64)
    if len(hidden):
        row_list[suppressed[order]] = len(sizes)
        flat, sizes = np.concatenate([flat, hidden]), np.append(sizes, len(hidden))
    return Certificate(
        int(source.k),
        str(source.guarantee),
        str(getattr(source.algorithm, "name", source.algorithm)),
        row_list.astype(np.int32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        flat.astype(np.int32),
        versions(),
    )


# ---------------------------------------------------------------------------------------- plain values


def plain_values(
    cells: pd.Series,
    order: np.ndarray,
    *,
    hidden: np.ndarray | None = None,
    name: str = "",
    text: bool = False,
) -> Any:
    """A column's values in another order, rebuilt so that nothing of the original column comes along.

    Parameters
    ----------
    cells : pandas.Series, n values
    order : numpy.ndarray, shape (n,), integer
        Which value each row gets.
    hidden : numpy.ndarray, shape (n,), bool, optional
        Rows that get ``*`` instead; the column is text then.
    name : str
        The column, for messages.
    text : bool
        Whether to make it text also where all values are numbers: of a part of a column, others may be none.

    Returns
    -------
    numpy.ndarray or pandas array, n values
        Truth values and numbers where all values are (missing ones: NaN), else text; missing text is missing.

    Raises
    ------
    DataError
        If the cells are lists or other values that are no single value, or text that is no Unicode.
    """
    import pandas as pd

    try:
        at, distinct = pd.factorize(cells)
    except TypeError:
        raise DataError(f"column {name!r}: has lists or other values that are no single value") from None
    at = at[order]
    values = [value.item() if isinstance(value, np.generic) else value for value in list(distinct)]
    missing = at < 0
    if hidden is None and not text:
        numbers = _numbers(values, bool(missing.any()))
        if numbers is not None:
            return numbers[at]  # a missing one, -1, is the NaN at the end
    shown = [_text(value) for value in values]
    try:
        "".join(shown).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"column {name!r}: has characters that no file can hold; correct its encoding"
        ) from None
    texts = np.array([*shown, None], object)[at]
    if hidden is not None:
        texts[hidden] = WHOLE
    return pd.array(texts, dtype="str")


def _numbers(values: list[Any], missing: bool) -> np.ndarray | None:
    """The values as plain numbers, NaN last if any is missing; None where they must be text."""
    kinds = {type(value) for value in values}
    if kinds == {bool} and not missing:
        return np.array(values, bool)
    if kinds == {int} and not missing and all(-(1 << 63) <= value < 1 << 63 for value in values):
        return np.array(values, np.int64)
    if not kinds or not kinds <= {int, float}:
        return None
    if any(isinstance(value, int) and abs(value) > _EXACT for value in values):
        return None
    return np.array([*values, np.nan], np.float64)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)


# -------------------------------------------------------------------------------------------- warnings


def _warn_of_second_draw(source: Publishable, seed: int | bytes | None, step: int) -> None:
    mark = None
    if seed is not None:
        mark = hashlib.blake2b(repr((type(seed), seed, step)).encode()).digest()
    before = _drawn.setdefault(source, set())
    if before and (mark is None or mark not in before):
        warnings.warn(
            "a release of this anonymization was drawn before; publish only one of them, "
            "or the two can be intersected",
            ReleaseWarning,
            stacklevel=4,
        )
    before.add(mark)


def _warn_of_columns(
    source: Publishable, suppressed: np.ndarray, order: np.ndarray, shown: np.ndarray, hidden: bool
) -> None:
    """Warn of what the other columns tell of the rows as they are published."""
    if source.matches is not None:
        candidates = Candidates.of_matches(source.matches, suppressed).take(order)
    elif source.classes is not None:
        candidates = Candidates.of_classes(np.where(suppressed, -1, source.classes)).take(order)
    else:
        candidates = covering(source.table, source.generalization, order)
    if hidden:  # suppressed records' other columns are not published
        candidates = candidates.without(suppressed[order])
    for sentence in told_by_columns(source.table, shown, candidates, source.k):
        warnings.warn(sentence, ReleaseWarning, stacklevel=4)
