"""Tables of the UCI repository, from your own folder or fetched once; their content is always checked."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from anonflow.datasets.generated import text_column
from anonflow.errors import DataError, ParameterError
from anonflow.option import Option

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "ANONFLOW_DATA"
"""The environment variable that names a folder with the files."""

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
"""The addresses from which the files are fetched."""

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "salary-class",
)
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_HIERARCHIES = (
    *("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country"),
    "salary-class",
)

NURSERY = {
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
}
"""The attributes of Nursery and their values, in the order of the UCI file."""

_CMC_COLUMNS = (
    *("wife_age", "wife_education", "husband_education", "children_born", "wife_religion"),
    *("wife_working", "husband_occupation", "SOL_index", "media_exposure", "contraceptive_method_use"),
)
_CMC_NUMBERS = ("wife_age", "children_born")


@dataclass(frozen=True)
class _Source:
    """A file: its names in a folder, its address, and the checksum of its content.

    The checksum is that of the records: lines without outer blanks, blanks after commas, empty lines,
    comment and header lines; so a mirror with a header has the same checksum as the file of UCI.
    """

    local: tuple[str, ...]
    url: str
    columns: tuple[str, ...]
    sha256: str


_ADULT_TRAIN = _Source(
    ("adult/adult.data", "adult.data"),
    "adult/adult.data",
    ADULT_COLUMNS,
    "b43511ac80486a00e4f35d1c3d76a3cec2c89246510a76a4e455d7e45d4fb4b9",
)
_ADULT_TEST = _Source(
    ("adult/adult.test", "adult.test"),
    "adult/adult.test",
    ADULT_COLUMNS,
    "71fd403984ab7267cc109ed0b680d2b449cc09f5a843ba90ca2ac038f1e51f79",
)
_CMC = _Source(
    ("uci/cmc.csv", "cmc/cmc.data", "cmc.csv", "cmc.data"),
    "cmc/cmc.data",
    _CMC_COLUMNS,
    "bcea7e5e7436379a37f1ccf076c9cf672cc1a9e3e09efb90bfb6d6ef1cba734c",
)
_NURSERY = _Source(
    ("uci/nursery.csv", "nursery/nursery.data", "nursery.csv", "nursery.data"),
    "nursery/nursery.data",
    (*NURSERY, "classification"),
    "ed63762eabd18af61fdb96fb86439a911d04abceed9be122093033aefdd0581e",
)
_SOURCES: Mapping[str, tuple[_Source, ...]] = {
    "adult": (_ADULT_TRAIN, _ADULT_TEST),
    "cmc": (_CMC,),
    "nursery": (_NURSERY,),
}


def adult(
    part: Annotated[Literal["train", "test", "all"], Option("part")] = "train",
    complete: Annotated[bool, Option("only complete rows")] = False,
) -> pd.DataFrame:
    """Return UCI Adult: people of the US census of 1994, and whether they earned more than 50,000 dollars.

    Parameters
    ----------
    part : {"train", "test", "all"}
        The 32,561 records of ``adult.data``, the 16,281 of ``adult.test``, or both one after the other.
    complete : bool
        Leave out records with a ``?``: 30,162 of train, 45,222 of all remain.

    Returns
    -------
    pandas.DataFrame, shape (n, 15)
        ``age``, ``fnlwgt``, ``education-num``, ``capital-gain``, ``capital-loss``, ``hours-per-week`` int64, the
        rest text. An unknown value is the text ``?``; the dots after the test labels are removed.

    Raises
    ------
    ParameterError
        If `part` is not one of the three, or `complete` is not a bool.
    DataError
        If the files are not in the folder that ANONFLOW_DATA names and cannot be fetched, or have other content.

    Notes
    -----
    Becker, B. and Kohavi, R. (1996), Adult, UCI Machine Learning Repository, CC BY 4.0.
    """
    parts = {"train": (_ADULT_TRAIN,), "test": (_ADULT_TEST,), "all": (_ADULT_TRAIN, _ADULT_TEST)}
    if part not in parts:
        raise ParameterError("part must be 'train', 'test' or 'all'")
    if not isinstance(complete, bool):
        raise ParameterError("complete must be true or false")
    rows = [row for source in parts[part] for row in _source_rows(source)]
    if complete:
        rows = [row for row in rows if "?" not in row]
    cells = dict(zip(ADULT_COLUMNS, zip(*rows, strict=True), strict=True))
    cells["salary-class"] = tuple(label.rstrip(".") for label in cells["salary-class"])
    return _frame(cells, _ADULT_NUMBERS)


def adult_hierarchies() -> dict[str, str]:
    """Return the hierarchy files for Adult that are in the folder that ANONFLOW_DATA names.

    Returns
    -------
    dict of str -> str
        Column -> path of a CSV file (``;``, leaf to root). They have no leaf ``?``: they go with
        ``adult(complete=True)``. Empty without the folder.
    """
    folder = _folder()
    if folder is None:
        return {}
    paths = {name: folder / "hierarchies" / "adult" / f"adult_hierarchy_{name}.csv" for name in _HIERARCHIES}
    return {name: str(path) for name, path in paths.items() if path.is_file()}


def cmc() -> pd.DataFrame:
    """Return UCI Contraceptive Method Choice: 1,473 couples of the Indonesian survey of 1987.

    Returns
    -------
    pandas.DataFrame, shape (1473, 10)
        ``wife_age`` and ``children_born`` int64; the others, coded by digits, text.

    Raises
    ------
    DataError
        If the file is not in the folder that ANONFLOW_DATA names and cannot be fetched, or has other content.

    Notes
    -----
    Lim, T.-S. (1997), Contraceptive Method Choice, UCI Machine Learning Repository, CC BY 4.0.
    """
    cells = dict(zip(_CMC_COLUMNS, zip(*_source_rows(_CMC), strict=True), strict=True))
    return _frame(cells, _CMC_NUMBERS)


def nursery(classification: Annotated[bool | None, Option("with the classification")] = None) -> pd.DataFrame:
    """Return UCI Nursery: every combination of eight attributes of applications to nursery schools.

    Parameters
    ----------
    classification : bool, optional
        Whether the table has the class column, which needs the file. True: always. False: never. None: only if
        the file is already there (nothing is fetched).

    Returns
    -------
    pandas.DataFrame, shape (12960, 8) or (12960, 9), text
        Generated, in the row order of UCI: the last attribute changes first.

    Raises
    ------
    ParameterError
        If `classification` is neither a bool nor None.
    DataError
        If `classification` is True and the file is not in the folder that ANONFLOW_DATA names and cannot be fetched,
        or has other content.

    Notes
    -----
    Rajkovic, V. (1989), Nursery, UCI Machine Learning Repository, CC BY 4.0.
    """
    if classification not in (None, True, False):
        raise ParameterError("classification must be true, false or left out")
    cells = dict(zip(NURSERY, zip(*itertools.product(*NURSERY.values()), strict=True), strict=True))
    if classification or (classification is None and on_disk("nursery")):
        cells["classification"] = tuple(row[-1] for row in _source_rows(_NURSERY))
    return _frame(cells)


def on_disk(name: str) -> bool:
    """Return whether a table's files are in the folder that ANONFLOW_DATA names, or were fetched before.

    Parameters
    ----------
    name : {"adult", "cmc", "nursery"}

    Raises
    ------
    KeyError
        If the table has no file.
    """
    return all(_local(source) is not None or _fetched(source).is_file() for source in _SOURCES[name])


# --- reading and checking -------------------------------------------------------------------------------


def _folder() -> Path | None:
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def _local(source: _Source) -> Path | None:
    folder = _folder()
    if folder is None:
        return None
    paths = (folder / (name + end) for name in source.local for end in ("", ".gz"))
    return next((path for path in paths if path.is_file()), None)


def _fetched(source: _Source) -> Path:
    """Return the path at which pooch keeps the file."""
    # pooch.os_cache without importing pooch, which is slow, only to see whether a file is there
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "anonflow" / Path(source.url).name


def _source_rows(source: _Source) -> list[list[str]]:
    path = _local(source) or _fetch(source)
    lines = _lines(path, source.columns[0])
    if hashlib.sha256("\n".join(lines).encode()).hexdigest() != source.sha256:
        raise DataError(
            f"{path.name}: not the file of the UCI repository (checksum differs); remove {path} or replace it"
        )
    return [line.split(",") for line in lines]


def _lines(path: Path, first: str) -> list[str]:
    """Return the records of a file as texts, without header, comments and blanks."""
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = gzip.decompress(data)
        text = data.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name}: cannot be read; remove {path} or replace it") from error
    lines = [line.strip().replace(", ", ",") for line in text.splitlines()]
    return [line for line in lines if line and line[0] != "|" and not line.startswith(first + ",")]


def _fetch(source: _Source) -> Path:
    path = _fetched(source)
    if path.is_file():
        return path
    import pooch  # type: ignore[import-untyped]

    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            UCI + source.url,
            known_hash=None,  # the records are checked instead, whatever their file ends with
            fname=path.name,
            path=path.parent,
            downloader=pooch.HTTPDownloader(timeout=30),
        )
    except Exception as error:  # whatever the network, requests or the disk may come up with
        raise DataError(
            f"{path.name}: not in the folder that {FOLDER} names, and cannot be fetched from {UCI + source.url}; "
            f"download it and name its folder in {FOLDER}"
        ) from error
    lines = _lines(path, source.columns[0])
    if hashlib.sha256("\n".join(lines).encode()).hexdigest() != source.sha256:
        path.unlink()
        raise DataError(
            f"{path.name}: what {UCI + source.url} sends is another file (checksum differs); "
            f"get the original and name its folder in {FOLDER}"
        )
    return path


def _frame(cells: Mapping[str, Sequence[str]], numbers: Sequence[str] = ()) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, Any] = {}
    for name, texts in cells.items():
        if name in numbers:
            columns[name] = np.array([int(text) for text in texts], np.int64)
        else:
            labels = list(dict.fromkeys(texts))
            code_of = {label: code for code, label in enumerate(labels)}
            columns[name] = text_column(labels, np.array([code_of[text] for text in texts], np.intp))
    return pd.DataFrame(columns)
