"""Tables that are generated from a formula or a seed."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike, fspath
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from anonflow.errors import DataError, ParameterError
from anonflow.option import Option, check_whole, is_finite
from anonflow.whole_file import as_path

if TYPE_CHECKING:
    import pandas as pd

Records = Annotated[int, Option("records", least=1)]

Seed = Annotated[int, Option("seed of the generator (no secret)", least=0)]

_ARTIFICIAL = (
    (0.7, 0.3),
    (0.3, 0.3, 0.2, 0.2),
    (0.25, 0.25, 0.4, 0.1),
    (*6 * (0.07,), *10 * (0.04,), *9 * (0.02,)),
    10 * (0.1,),
    (0.05, 0.05, 0.5, 0.3, 0.1),
)


def artificial(n: Records = 5000, seed: Seed = 0) -> pd.DataFrame:
    """Return the artificial table of the k-concealment paper (Tassa 2012, section 9): six independent attributes.

    Parameters
    ----------
    n : int
        Number of records; 5,000 in the paper.
    seed : int
        Seed of the generator; the paper's own table is not published.

    Returns
    -------
    pandas.DataFrame, shape (n, 6), text
        Columns ``A1`` to ``A6`` with 2, 4, 4, 25, 10 and 5 values named ``a1``, ``a2``, ... O(n).

    Raises
    ------
    ParameterError
        If n is not a positive whole number, or the seed not a non-negative one.
    """
    rng = generator(n, seed)
    columns = {}
    for number, weights in enumerate(_ARTIFICIAL, 1):
        labels = [f"a{value}" for value in range(1, len(weights) + 1)]
        columns[f"A{number}"] = text_column(labels, draw(rng, np.array([weights]), np.zeros(n, np.intp)))
    return _frame(columns)


def artificial_hierarchies() -> dict[str, dict[str, Any]]:
    """Return the permissible subsets of :func:`artificial` as nested trees (Tassa 2012, section 9); A5, A6 are unbalanced.

    Returns
    -------
    dict
        Column -> tree, as :meth:`anonflow.Hierarchy.from_nested` takes it. Inner nodes are named by their
        first and last value, such as ``a1..a6``; the root is ``*``.
    """

    def run(first: int, last: int) -> list[str]:
        return [f"a{value}" for value in range(first, last + 1)]

    return {
        "A1": {"*": run(1, 2)},
        "A2": {"*": {"a1..a2": run(1, 2), "a3..a4": run(3, 4)}},
        "A3": {"*": {"a1..a2": run(1, 2), "a3..a4": run(3, 4)}},
        "A4": {
            "*": {
                "a1..a12": {"a1..a6": run(1, 6), "a7..a12": run(7, 12)},
                "a13..a25": {"a13..a18": run(13, 18), "a19..a25": run(19, 25)},
            }
        },
        "A5": {
            "*": {
                "a1..a5": {"a1..a2": run(1, 2), "a3..a4": run(3, 4), "a5": None},
                "a6..a10": {"a6..a7": run(6, 7), "a8..a9": run(8, 9), "a10": None},
            }
        },
        "A6": {"*": {"a1..a2": run(1, 2), "a3..a5": {"a3": None, "a4..a5": run(4, 5)}}},
    }


def random_normal(
    n: Records = 100_000,
    q: Annotated[int, Option("columns", least=1)] = 10,
    sd: Annotated[float, Option("standard deviation", least=0)] = 1.0,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Return independent normal numbers rounded to integers (Murakami 2018, section 4: "Random_100k" and the others).

    Parameters
    ----------
    n : int
        Number of records; 100,000 to 10,000,000 in the paper.
    q : int
        Number of quasi-identifiers; 10 in the paper.
    sd : float
        Standard deviation before rounding; 1.0 or 1.5 in the paper.
    seed : int

    Returns
    -------
    pandas.DataFrame, shape (n, q), int64
        Columns ``q1`` to ``q{q}``: N(0, sd^2) rounded to the nearest integer, ties to even. O(nq).

    Raises
    ------
    ParameterError
        If n or q is not a positive whole number, the seed not a non-negative one, or sd not positive.

    Notes
    -----
    The paper gives the deviation, but not how numbers become values; we chose to round to integers.
    """
    import pandas as pd

    (values,) = _normal_blocks(n, q, sd, seed, n)
    return pd.DataFrame(values, columns=pd.Index(_normal_names(q), dtype="str"))


def write_random_normal(
    path: str | PathLike[str],
    n: int = 100_000,
    q: int = 10,
    sd: float = 1.0,
    seed: int = 0,
    rows: int = 1 << 17,
) -> None:
    """Write the table of :func:`random_normal` as a Parquet file, block by block.

    Parameters
    ----------
    path : path
    n, q, sd, seed
        As :func:`random_normal` takes them: the file has the same rows.
    rows : int
        Rows of a block, which is a row group of the file; O(rows q) memory for any n.

    Raises
    ------
    ParameterError
        As :func:`random_normal`, or if `rows` is not a positive whole number.
    DataError
        If the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_whole(rows, 1, "rows must be a whole number of at least 1")
    file = as_path(path)
    blocks = _normal_blocks(n, q, sd, seed, rows)
    fields = pa.schema([(name, pa.int64()) for name in _normal_names(q)])
    try:
        with pq.ParquetWriter(fspath(file), fields) as writer:
            for block in blocks:
                writer.write_batch(pa.RecordBatch.from_arrays(list(block.T.copy()), schema=fields))
    except OSError as error:
        raise DataError(f"{fspath(path)}: cannot be written: {error.strerror or 'no room'}") from None


def _normal_names(q: int) -> list[str]:
    return [f"q{column}" for column in range(1, q + 1)]


def _normal_blocks(n: int, q: int, sd: float, seed: int, rows: int) -> Iterator[np.ndarray]:
    """Return the rows in blocks; the generator's numbers come row after row, so the size of blocks does not change them."""
    rng = generator(n, seed)
    check_whole(q, 1, "q must be a whole number of at least 1")
    if not is_finite(sd) or not sd > 0:
        raise ParameterError("sd must be a positive number")

    def block(count: int) -> np.ndarray:
        numbers = rng.standard_normal((count, q))
        numbers *= sd
        return np.rint(numbers, out=numbers).astype(np.int64)

    return (block(min(rows, n - start)) for start in range(0, n, rows))


def theorem4(m: int) -> pd.DataFrame:
    """Return a table on which the pattern-guided heuristic is off by a factor of m - 1 (Bredereck 2013, proof of Theorem 4).

    The table has k = m rows of ones, and for each column i another m - 1 rows of ones with a unique symbol in
    column i. With k = m and the patterns of :func:`theorem4_patterns` the heuristic suppresses (m - 1) m^2
    cells, and m^2 are enough. (The paper's proof says m; its sum gives m - 1.)

    Parameters
    ----------
    m : int
        Number of columns, and k; at least 2.

    Returns
    -------
    pandas.DataFrame, shape (m * m, m), text
        Columns ``c1`` to ``c{m}``.

    Raises
    ------
    ParameterError
        If m is not a whole number of at least 2.
    """
    import pandas as pd

    from anonflow.table.forms.text_columns import text_array

    check_whole(m, 2, "m must be a whole number of at least 2")
    cells = np.full((m * m, m), "1", dtype=object)
    for column in range(m):
        for extra in range(m - 1):
            row = m + column * (m - 1) + extra
            cells[row, column] = f"u{row}"
    names = [f"c{column}" for column in range(1, m + 1)]
    return pd.DataFrame({name: text_array(cells[:, at]) for at, name in enumerate(names)})


def theorem4_patterns(m: int) -> list[tuple[str, ...]]:
    """Return the patterns for :func:`theorem4`: each single column, none, and all.

    Returns
    -------
    list of tuple of str
        The columns that each pattern suppresses; m + 2 patterns.

    Raises
    ------
    ParameterError
        If m is not a whole number of at least 2.
    """
    check_whole(m, 2, "m must be a whole number of at least 2")
    names = [f"c{column}" for column in range(1, m + 1)]
    return [*((name,) for name in names), (), tuple(names)]


MOST_RECORDS = 10**9
"""The most records of a generated table."""


def generator(n: int, seed: int) -> np.random.Generator:
    """Return a generator for n records.

    Raises
    ------
    ParameterError
        If n is not a positive whole number or too large, or the seed not a non-negative whole number.
    """
    for name, number, least in (("n", n, 1), ("seed", seed, 0)):
        check_whole(number, least, f"{name} must be a whole number of at least {least}")
    if n > MOST_RECORDS:
        raise ParameterError(f"n must be at most {MOST_RECORDS:,}")
    return np.random.default_rng(seed)


def draw(rng: np.random.Generator, weights: np.ndarray, context: np.ndarray) -> np.ndarray:
    """Return one value for each record from the distribution that its context names.

    Parameters
    ----------
    rng : numpy.random.Generator
    weights : numpy.ndarray, shape (c, D), float64
        Non-negative, not all zero in a row; a row need not add up to 1.
    context : numpy.ndarray, shape (n,), integer
        Rows of `weights`.

    Returns
    -------
    numpy.ndarray, shape (n,), intp
        Values 0..D-1. O(n log(cD)).

    Raises
    ------
    IndexError
        If a record names a context that has no weights.
    """
    contexts, size = weights.shape
    if len(context) and not 0 <= int(context.min()) <= int(context.max()) < contexts:
        raise IndexError("a context without weights")
    below = np.cumsum(weights, axis=1)
    below /= below[:, -1:]
    # shifted by c, the cumulated shares of context c lie in (c, c + 1], so one search serves all contexts
    shelves = np.arange(contexts)[:, None] + below
    slots = np.searchsorted(shelves.ravel(), context + rng.random(len(context)), side="right")
    # rounding of a large context plus a share may exceed the end of its interval
    return np.minimum(slots - np.asarray(context) * size, size - 1)


def text_column(labels: list[str], codes: np.ndarray) -> Any:
    """Return text cells from codes: plain values without a category type."""
    from anonflow.table.forms.text_columns import text_array

    return text_array(labels).take(codes)


def _frame(columns: dict[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)
