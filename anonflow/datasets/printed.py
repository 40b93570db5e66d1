"""The small example tables that the papers print, and their anonymized tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.errors import ParameterError
from anonflow.option import check_whole

if TYPE_CHECKING:
    import pandas as pd

# --- Doka 2015 ------------------------------------------------------------------------------------------


def freeform_example() -> pd.DataFrame:
    """Return eight people t0..t7 with age and salary (Doka 2015, Table 1).

    Returns
    -------
    pandas.DataFrame, shape (8, 2), int64
        Columns ``Age``, ``Salary`` (thousands); index ``t0``..``t7``.
    """
    import pandas as pd

    return pd.DataFrame(
        {"Age": [59, 57, 39, 28, 41, 37, 40, 53], "Salary": [25, 27, 47, 41, 20, 59, 35, 34]},
        index=pd.Index([f"t{row}" for row in range(8)]),
    )


def freeform_example_anonymized() -> pd.DataFrame:
    """Return the generalized records t'0..t'7 of :func:`freeform_example` (Doka 2015, Table 1, bottom left).

    Returns
    -------
    pandas.DataFrame, shape (8, 2), text
        Row i stands in the place of original i.
    """
    return _text_frame(
        ("Age", "Salary"),
        "53-59 25-34 / 53-59 25-34 / 28-39 41-59 / 28-41 20-59 / "
        "40-59 20-35 / 28-39 41-59 / 39-41 20-47 / 40-57 27-35",
        [f"t{row}" for row in range(8)],
    )


def freeform_example_matches() -> np.ndarray:
    """Return the three originals that each generalized record matches (Doka 2015, Table 1, right half).

    Returns
    -------
    numpy.ndarray, shape (8, 3), int32
        Row j begins with j, then the others in increasing order. The paper's left half has a misprint
        (t4 -> t'2 for t'3); the right half is 3-regular and derives every range.
    """
    rows = [(0, 1, 7), (1, 0, 7), (2, 3, 5), (3, 4, 5), (4, 0, 6), (5, 2, 3), (6, 2, 4), (7, 1, 6)]
    return np.array(rows, np.int32)


# --- Murakami 2018 --------------------------------------------------------------------------------------


def zip_example() -> pd.DataFrame:
    """Return seven people with name, zip code, gender, country and the sensitive income (Murakami 2018, Table 1).

    Returns
    -------
    pandas.DataFrame, shape (7, 5)
        ``Name``, ``Zip code``, ``Gender``, ``Country`` text, ``Income`` int64; index ``r1``..``r7``.
    """
    frame = zip_example_public()
    frame["Income"] = [10_000, 5_000, 1_500, 3_000, 30_000, 20_000, 40_000]
    return frame


def zip_example_public() -> pd.DataFrame:
    """Return what an attacker knows: names with quasi-identifiers (Murakami 2018, Table 2).

    Returns
    -------
    pandas.DataFrame, shape (7, 4), text
    """
    return _text_frame(
        ("Name", "Zip code", "Gender", "Country"),
        "Alan 94221 M US / Betiina 94112 F US / Christina 94121 F US / Devola 94111 M Canada / "
        "Edmond 94222 M Canada / Flora 94122 F UK / Georgia 93111 M Canada",
        _SEVEN,
    )


def zip_example_private() -> pd.DataFrame:
    """Return quasi-identifiers with incomes, without names (Murakami 2018, Table 3).

    Returns
    -------
    pandas.DataFrame, shape (7, 4)
    """
    return zip_example().drop(columns="Name")


def zip_example_global() -> pd.DataFrame:
    """Return global recoding: the same positions hidden in every record; 28 asterisks (Murakami 2018, Table 4).

    Returns
    -------
    pandas.DataFrame, shape (7, 3), text
        ``Zip code``, ``Gender``, ``Country``; row i stands in the place of original i.
    """
    text = "9*2** M * / 9*1** F * / 9*1** F * / 9*1** M * / 9*2** M * / 9*1** F * / 9*1** M *"
    return _text_frame(_ZIP, text, _SEVEN)


def zip_example_local() -> pd.DataFrame:
    """Return local recoding: homogeneous classes; 15 asterisks (Murakami 2018, Table 5).

    Returns
    -------
    pandas.DataFrame, shape (7, 3), text
    """
    text = "9422* M * / 941** F * / 941** F * / 9*111 M Canada / 9422* M * / 941** F * / 9*111 M Canada"
    return _text_frame(_ZIP, text, _SEVEN)


def zip_example_heterogeneous(mended: bool = True) -> pd.DataFrame:
    """Return heterogeneous recoding; 12 asterisks (Murakami 2018, Table 6).

    Parameters
    ----------
    mended : bool
        True: with r3 ``941** F US`` and r6 ``9412* F *``, which has a 2-regular graph with as many asterisks. False: the
        table as printed, which has no such graph, because its r3 (``941*1 F US``) covers only itself.

    Returns
    -------
    pandas.DataFrame, shape (7, 3), text
    """
    third, sixth = ("941** F US", "9412* F *") if mended else ("941*1 F US", "941** F *")
    text = f"9422* M * / 941*2 F * / {third} / 9*111 M Canada / 9422* M * / {sixth} / 9*111 M Canada"
    return _text_frame(_ZIP, text, _SEVEN)


# --- Miller 2008 ----------------------------------------------------------------------------------------


def location_tree() -> dict[str, Any]:
    """Return the hierarchy of locations (Miller 2008, Figure 2).

    Returns
    -------
    dict
        As :meth:`anonflow.Hierarchy.from_nested` takes it. The tree is unbalanced, because California has no level
        above its cities.
    """
    return {
        "United States": {
            "West Coast": {"California": ["San Diego", "Los Angeles"]},
            "Midwest": {"Kansas": ["Wichita", "Kansas City"], "Nebraska": ["Lincoln"]},
        }
    }


def location_boundary() -> tuple[str, ...]:
    """Return the maximum allowed generalizations, which the figure marks by asterisks (Miller 2008, Figure 2).

    Returns
    -------
    tuple of str
    """
    return ("California", "Kansas", "Midwest")


def location_example() -> pd.DataFrame:
    """Return seven people (Miller 2008, Figure 3).

    Returns
    -------
    pandas.DataFrame, shape (7, 8)
        ``Name``, ``SSN`` (identifiers), ``Age`` int64, ``Location``, ``Sex``, ``Race`` (quasi-identifiers),
        ``Diagnosis`` and ``Income`` int64 (sensitive); index ``r1``..``r7``.
    """
    frame = _text_frame(
        ("Name", "SSN", "Age", "Location", "Sex", "Race", "Diagnosis", "Income"),
        "Alice 123456789 32 San_Diego M W AIDS 17000 / Bob 323232323 30 Los_Angeles M W Asthma 68000 / "
        "Charley 232345656 42 Wichita M W Asthma 80000 / Dave 333333333 30 Kansas_City M W Asthma 55000 / "
        "Eva 666666666 35 Lincoln F W Diabetes 23000 / John 214365879 20 Lincoln M B Asthma 55000 / "
        "Casey 909090909 25 Wichita F B Diabetes 23000",
        _SEVEN,
    )
    return frame.astype({"Age": "int64", "Income": "int64"})


def location_example_masked(which: str) -> pd.DataFrame:
    """Return one of two 2-anonymous tables for :func:`location_example` (Miller 2008, Figure 4).

    Parameters
    ----------
    which : {"MM1", "MM2"}
        MM1 breaks the boundary in three cells (r3, r4, r7), MM2 in none.

    Returns
    -------
    pandas.DataFrame, shape (7, 4), text
        ``Age``, ``Location``, ``Sex``, ``Race``; row i stands in the place of original i (the figure's (b)
        lists r7 before r5).

    Raises
    ------
    ParameterError
        If `which` is neither of the two.
    """
    rows = {
        "MM1": "30-32 California M W / 30-32 California M W / 30-42 Midwest * W / 30-42 Midwest * W / "
        "30-42 Midwest * W / 20-25 Midwest * B / 20-25 Midwest * B",
        "MM2": "30-32 California M W / 30-32 California M W / 25-42 Kansas * * / 25-42 Kansas * * / "
        "20-35 Lincoln * * / 20-35 Lincoln * * / 25-42 Kansas * *",
    }
    if which not in rows:
        raise ParameterError("which must be 'MM1' or 'MM2'")
    return _text_frame(("Age", "Location", "Sex", "Race"), rows[which], _SEVEN)


# --- Tassa 2012 -----------------------------------------------------------------------------------------


def patients_example() -> pd.DataFrame:
    """Return five patients (Tassa 2012, Table 1(a)).

    Returns
    -------
    pandas.DataFrame, shape (5, 4)
        ``name``, ``age`` int64, ``zipcode`` and the sensitive ``disease``.
    """
    frame = _text_frame(
        ("name", "age", "zipcode", "disease"),
        "Alice 30 10055 Measles / Bob 21 10055 Flu / Carol 21 10023 Angina / David 55 10165 Flu / "
        "Eve 47 10224 Diabetes",
    )
    return frame.astype({"age": "int64"})


def patients_trees() -> dict[str, dict[str, Any]]:
    """Return the hierarchy of zip codes in Tassa 2012, Table 1: digits are hidden from the right.

    Returns
    -------
    dict
        ``zipcode`` -> tree, as :meth:`anonflow.Hierarchy.from_nested` takes it.
    """
    return {"zipcode": {"10***": {"100**": ["10055", "10023"], "10165": None, "10224": None}}}


def patients_anonymized() -> pd.DataFrame:
    """Return a 2-anonymization of :func:`patients_example` (Tassa 2012, Table 1(b)).

    Returns
    -------
    pandas.DataFrame, shape (5, 2), text
    """
    text = "21-30 100** / 21-30 100** / 21-30 100** / 47-55 10*** / 47-55 10***"
    return _text_frame(("age", "zipcode"), text)


def patients_concealed() -> pd.DataFrame:
    """Return a 2-concealment of :func:`patients_example` (Tassa 2012, Table 1(c)).

    Returns
    -------
    pandas.DataFrame, shape (5, 2), text
    """
    text = "21-30 10055 / 21 100** / 21-30 100** / 47-55 10*** / 47-55 10***"
    return _text_frame(("age", "zipcode"), text)


def concealment_examples(k: int) -> dict[str, pd.DataFrame]:
    """Return a generalization for each region of Figure 1 (Tassa 2012, Appendix A).

    Parameters
    ----------
    k : int
        At least 3: for k = 2 every k-concealed table is (k,1), so ``concealed`` does not exist.

    Returns
    -------
    dict of str -> pandas.DataFrame
        Columns ``value`` (one categorical quasi-identifier) and ``generalized`` (the published cell of that record:
        a value, a set ``{1|2}`` sorted by text, or ``*``). The keys, and the class of each table:

        - ``anonymous``: k-anonymous;
        - ``(1,k)``: (1,k), not (k,1), not k-concealed (region 1);
        - ``(k,1)``: (k,1), not (1,k);
        - ``(k,k)``: (k,k) and k-concealed, not k-anonymous (region 2);
        - ``concealed``: k-concealed, not (k,1) (region 3);
        - ``(k,k)-only``: (k,k), not k-concealed (region 4).

    Raises
    ------
    ParameterError
        If k is not a whole number of at least 3.

    Notes
    -----
    In the paper's (k,k) example row i has the set without i, which does not cover its own record. Here the
    sets are moved by one row, so that row i lacks the value after i.
    """
    check_whole(k, 3, "k must be a whole number of at least 3 for the examples of Tassa 2012's appendix")
    values = [str(value) for value in range(1, k + 2)]
    every = set(values)
    first, last = {values[0]}, {values[-1]}
    a = [f"a{value}" for value in range(1, k + 2)]
    b = [f"b{value}" for value in range(1, k + 1)]
    fourth = [{a[0], *b[:-1]}, *(k - 1) * [set(a)], set(a[1:]), *k * [set(b)]]
    return {
        "anonymous": _printed_sets(values, [every] * (k + 1)),
        "(1,k)": _printed_sets(values, [first, *[every] * (k - 1), every - first]),
        "(k,1)": _printed_sets(values, [every - last, *[every - first] * k]),
        "(k,k)": _printed_sets(values, [every - {values[(row + 1) % (k + 1)]} for row in range(k + 1)]),
        "concealed": _printed_sets(values, [set(values[: k - 1]), *[every] * k]),
        "(k,k)-only": _printed_sets([*a, *b], fourth),
    }


# --- how they are stored --------------------------------------------------------------------------------

_SEVEN = [f"r{row}" for row in range(1, 8)]
_ZIP = ("Zip code", "Gender", "Country")


def _text_frame(columns: tuple[str, ...], text: str, index: list[str] | None = None) -> pd.DataFrame:
    """Return a frame of text from rows separated by " / ", cells by blanks; a blank in a cell is "_"."""
    import pandas as pd

    from anonflow.table.forms.text_columns import text_array

    rows = [[cell.replace("_", " ") for cell in row.split()] for row in text.split(" / ")]
    cells = {name: text_array(row[at] for row in rows) for at, name in enumerate(columns)}
    return pd.DataFrame(cells, index=index)


def _printed_sets(values: list[str], sets: list[set[str]]) -> pd.DataFrame:
    import pandas as pd

    from anonflow.table.forms.text_columns import text_array
    from anonflow.table.published.published_cells import WHOLE, set_text

    def published(members: set[str]) -> str:
        return WHOLE if len(members) == len(values) else set_text(sorted(members))

    texts = [published(members) for members in sets]
    return pd.DataFrame({"value": text_array(values), "generalized": text_array(texts)})
