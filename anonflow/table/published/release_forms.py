"""The cells of a release in the form of the source: 1,25-2,5 for 1.25-2.5; written so, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike, fspath

import pandas as pd

from anonflow.errors import DataError
from anonflow.hierarchy.wording import plural
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.files.metadata_file import read_metadata
from anonflow.table.forms.date_forms import DateForm
from anonflow.table.forms.text_forms import Form
from anonflow.table.published.metadata import ReleaseMetadata
from anonflow.table.published.published_cells import WHOLE, Range, coded_parts, coded_text
from anonflow.table.schema import Schema
from anonflow.table.spreadsheets import changed_texts, read_published
from anonflow.whole_file import as_path


def forms_of(about: ReleaseMetadata | None) -> dict[str, Form]:
    """Return column -> the form in which a release writes it, of those that are not written plainly."""
    return {} if about is None else {c.name: c.form for c in about.columns if c.form is not None}


def in_source_forms(frame: pd.DataFrame, forms: Mapping[str, Form]) -> pd.DataFrame:
    """Return a published frame with the cells of some columns in the form of the source.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of plain cells; columns of numbers stay.
    forms : mapping
        Column -> form.
    """
    changed = {name: changed_texts(frame[name], partial(_written, form=form)) for name, form in forms.items()}
    return frame.assign(**changed) if changed else frame


def plain_release(
    path: str | PathLike[str],
    schema: Schema | None = None,
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    arrays: Arrays = IN_MEMORY,
) -> pd.DataFrame:
    """Return the cells of a published file as :func:`read_published` does, plain where its description names a form.

    Parameters
    ----------
    path : path
    schema : Schema, optional
        Of the release: where no description is beside the file, a column whose cells all have the form that the schema says is
        read in it.
    delimiter, encoding : str
        Of a CSV file that another tool wrote.
    arrays : Arrays
        Where its columns are.

    Raises
    ------
    DataError
        If the file or the description cannot be read, or cells are not written as the description says.
    """
    metadata = read_metadata(as_path(path), ignore_others=True)
    shape = CsvShape(header=None if metadata is None else True, blank_rows=True)
    frame = read_published(path, delimiter=delimiter, encoding=encoding, shape=shape, arrays=arrays)
    forms = forms_of(metadata)
    if metadata is None and schema is not None:
        forms = {c.name: c.release_form for c in schema.columns.values() if c.release_form is not None}
    changed, problems = {}, []
    for name, form in forms.items():
        if name not in frame.columns:
            continue
        plain = changed_texts(frame[name], partial(_plain_cells, form=form))
        wrong = int((plain.isna() & frame[name].notna()).sum())
        if wrong and metadata is None:
            continue
        if wrong:
            problems.append(
                f"column {name!r}: {plural(wrong, 'cell', 'are')} not written with {form.words}, as the description says"
            )
        changed[name] = plain
    if problems:
        raise DataError.collected(f"{fspath(path)}: does not match its description", problems)
    return frame.assign(**changed) if changed else frame


def _written(texts: list[str], form: Form) -> list[str | None]:
    """Return published cells in a form; ``*``, codes and sets of codes stay."""
    cells: list[str | None] = []
    for text in texts:
        run, codes = coded_parts(text)
        ends = _range(run, form)
        cells.append(text if ends is None else coded_text(ends.written(form.cell), codes))
    return cells


def _range(run: str | None, form: Form) -> Range | None:
    """Return a plain run of numbers, or of dates, of what the form is about; None of ``53-53``, which nobody publishes."""
    ends = None if run is None else Range.read(run)
    return (
        ends if ends is not None and ends.text == run and ends.dates == isinstance(form, DateForm) else None
    )


def _plain_cells(texts: list[str], form: Form) -> list[str | None]:
    """Return cells of a form as plain ones; None for a number or date that is written otherwise."""
    dates = isinstance(form, DateForm)
    parts = [(None, ()) if text in ("", WHOLE) else coded_parts(text) for text in texts]
    cuts = [[] if run is None else list(Range.cuts(run, dates=dates)) for run, _ in parts]
    # all at once: patterns of dates take milliseconds to compile
    ends = list(dict.fromkeys(end for pairs in cuts for pair in pairs for end in pair))
    plain = dict(zip(ends, form.read(ends).plain.tolist(), strict=True))
    cells: list[str | None] = []
    for text, (run, codes), pairs in zip(texts, parts, cuts, strict=True):
        ranges = [
            Range(plain[low], plain[high], dates)
            for low, high in pairs
            if plain[low] is not None and plain[high] is not None
        ]
        same = next((read for read in ranges if read.written(form.cell) == run), None)
        if same is not None:
            cells.append(coded_text(same.text, codes))
        else:
            cells.append(None if run is not None and (codes or _range(run, form) is not None) else text)
    return cells
