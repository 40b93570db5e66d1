"""From generalized records to a published table: draw, assign the other columns, shuffle, rebuild."""

from __future__ import annotations

import hashlib
import warnings
from os import PathLike
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.generalization import Generalization
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.release.certificate import Certificate, versions
from anonflow.release.columns import covering, told_by_columns
from anonflow.release.draw import draw_permutation
from anonflow.release.published import Release, ReleaseWarning
from anonflow.release.randomness import (
    DRAW_STEP,
    RandomWords,
    checked_secret,
    seed_of_table,
    warn_of_small_seed,
)
from anonflow.release.rows import blocks, candidates, drawn_originals
from anonflow.table import Table
from anonflow.table.identification.earlier import OWNER, Earlier
from anonflow.table.published.metadata import ReleaseMetadata, SeenCells
from anonflow.table.row_marks import KEY_LENGTH, Content, row_marks

# Which words the draws of an anonymization were made from: a second one is worth a warning.
_drawn: WeakKeyDictionary[Any, set[bytes | None]] = WeakKeyDictionary()


class Publishable(Protocol):
    """The input of a release; an ``Anonymization`` has it."""

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
    arrays: Arrays = IN_MEMORY,
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
        Whether this draw is for a test and will not be published: it gives no warnings and does not count as a first draw.
    arrays : Arrays
        Where the release and its certificate are.

    Returns
    -------
    Release
        n rows. All published columns besides the quasi-identifiers go together from one original to a row: along an
        assignment drawn from the matches, by a uniform permutation inside each class, or, where a method has neither,
        with the record's own. Fewer than k suppressed records have ``*`` there, where people have several rows fewer
        than k times the most rows of a person: otherwise all of them may be the rows of few people.

    Raises
    ------
    ParameterError
        If the seed cannot be used.
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
        _warn_of_hidden_ends(anonymization)
    suppressed = np.asarray(anonymization.suppressed, bool)
    relation = anonymization.matches, anonymization.classes, suppressed
    # fewer than k are no class to hide in: their other columns would be those of a few people
    hidden = 0 < int(suppressed.sum()) < anonymization.k * table.unit_rows
    frozen, parts = (getattr(anonymization, name, None) for name in ("frozen", "partitions"))
    origin = drawn_originals(*relation, words, frozen, parts or ())
    order = draw_permutation(n, words)
    names = [str(name) for name in table.frame.columns]
    cells = anonymization.generalization.aggregated(table.records, anonymization.classes, suppressed)
    frame = arrays.frame(blocks(cells, suppressed, origin, names, table.frame, order, hidden, arrays.rows))
    listed = candidates(*relation, order, arrays.empty)
    if not rehearsal:
        _warn_of_columns(anonymization, listed, suppressed[order], order, origin[order], hidden)
    # of the draw's words, so that a replay writes the same certificate
    key = words.lanes("marks", 0, 2 * KEY_LENGTH // 8).tobytes().hex()[:KEY_LENGTH]
    certificate = Certificate.of_candidates(
        int(anonymization.k),
        str(anonymization.guarantee),
        str(getattr(anonymization.algorithm, "name", anonymization.algorithm)),
        listed,
        versions=versions(),
        row_marks=row_marks(frame, names, key),
        key=key,
    )
    metadata = ReleaseMetadata.declared(table.schema, names, certificate.criterion, certificate.k)
    return Release(frame, certificate, origin[order], metadata.seeing(SeenCells.of(frame, metadata)), arrays)


def publish_once(
    anonymization: Publishable, owner: str | PathLike[str] | None, seed: int | bytes | str | None = None
) -> Release:
    """Call :func:`publish`, and store marks of the released people in the owner's folder.

    Parameters
    ----------
    anonymization : Anonymization
    owner : path or None
        Without it nothing is stored.
    seed : int, bytes or str, optional

    Raises
    ------
    ParameterError, VerificationError
        As :func:`publish`; and if the anonymization was made with earlier releases, and those in the folder are others.
    DataError, AnonflowError
        If the folder cannot be read or written to.

    Warns
    -----
    ReleaseWarning
        As :func:`publish`; and if people are in an earlier release from this folder, how many. Without a folder: if the anonymization
        goes on from earlier releases, or an owner's folder with releases lies beside the file of the table.
    """
    release = publish(anonymization, seed)
    people, folders = None, getattr(anonymization, "earlier", None)
    if owner is None:
        missing = _missing_memory(anonymization, release)
        if missing:
            warnings.warn(missing, ReleaseWarning, stacklevel=3)
        return release
    earlier, table = Earlier(owner), anonymization.table
    count = earlier.kept
    if folders is not None:
        people = earlier.check_left(table, release, folders)
    elif overlap := earlier.overlap(table, release):
        warnings.warn(overlap.sentence(), ReleaseWarning, stacklevel=3)
    _, missed = earlier.keep_and_check(table, release, count, people, folders)
    if missed is not None:
        warnings.warn(missed.sentence(), ReleaseWarning, stacklevel=3)
    return release


def _warn_of_hidden_ends(anonymization: Publishable) -> None:
    """Warn of intervals, chosen for a column, that end at a value of hidden cells alone: the release would publish this value."""
    if not getattr(anonymization.algorithm, "fixed_cells", False):
        return
    cells = anonymization.generalization
    narrowed = cells.narrowed(anonymization.table.records)
    wider = ((narrowed.lo != cells.lo) | (narrowed.hi != cells.hi)).any(axis=1)
    columns = [repr(cells.domains[a].column) for a in cells.layout.ranges[wider]]
    if columns:
        warnings.warn(
            f"intervals of {', '.join(columns)} end at a value that is hidden in every row that has it, and so tell that somebody has it; "
            "top-code or bottom-code, or round, before",
            ReleaseWarning,
            stacklevel=4,
        )


def _missing_memory(anonymization: Publishable, release: Release) -> str:
    """Return why a release without an owner's folder should have one; empty if nothing says so."""
    if getattr(anonymization, "earlier", None) is not None:
        return (
            "this release goes on from earlier ones, and is neither checked nor remembered: next year its people would not be recognized; "
            "name the owner's folder: release(owner=FOLDER)"
        )
    file = anonymization.table.file
    earlier = None if file is None else Earlier(file.parent / OWNER)
    if earlier is None or not earlier.kept or earlier.has(release):
        return ""
    overlap = earlier.overlap(anonymization.table, release)
    return (
        f"{earlier.path}: remembers releases, and this one is neither checked nor remembered there; name the folder: "
        "release(owner=FOLDER)" + (f"; {overlap.sentence()}" if overlap else "")
    )


# -------------------------------------------------------------------------------------------- warnings


def _warn_of_second_draw(source: Publishable, seed: int | bytes | None, step: int) -> None:
    mark = None
    if seed is not None:
        # a hash, because the seed is a secret and this lasts as long as the result
        mark = hashlib.blake2b(repr((type(seed), seed, step)).encode()).digest()
    before = _drawn.setdefault(source, set())
    # the same seed draws the same rows, which tell nothing more
    if before and (mark is None or mark not in before):
        warnings.warn(
            "a release of this anonymization was drawn before; publish only one of them, "
            "or the two can be intersected",
            ReleaseWarning,
            stacklevel=4,
        )
    before.add(mark)


def _warn_of_columns(
    source: Publishable,
    listed: Candidates,
    suppressed: np.ndarray,
    order: np.ndarray,
    origin: np.ndarray,
    hidden: bool,
) -> None:
    """Warn if the other columns reveal the people behind published rows."""
    if source.matches is None and source.classes is None:
        listed = covering(source.table, source.generalization, order)
    if hidden:  # suppressed records' other columns are not published
        listed = listed.without(suppressed)
    for sentence in told_by_columns(source.table, origin, listed, source.k):
        warnings.warn(sentence, ReleaseWarning, stacklevel=4)
