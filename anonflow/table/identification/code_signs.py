"""Signs of codes that look like numbers or short texts: their names, zeros in front, check digits; and how to publish them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from anonflow.hierarchy.prefixes import classification_lengths, signs_of
from anonflow.table.identification.column_signs import name_words

_CLASSIFICATIONS = {
    "icd": "icd-10",
    "nace": "nace",
    "noga": "nace",
    "naf": "nace",
    "ateco": "nace",
    "naics": "naics",
    "isco": "isco",
    "nuts": "nuts",
    "zip": "zip",
    "zipcode": "zip",
}
"""Words of names, with the classification that their codes may belong to."""

_NAMES = {
    *_CLASSIFICATIONS,
    "zcta", "plz", "postcode", "postal", "ward", "employer", "establishment", "plant", "branch", "station", "clinic", "district",
    "county", "municipality", "gemeinde", "kreis", "commune", "comune", "municipio", "gmina", "region", "state", "province",
    "tract", "block", "puma", "fips", "geoid", "lau", "ags", "industry", "branche", "beruf", "occupation", "profession", "sic",
    "soc", "isced", "drg", "ops", "cpt", "hcpcs", "atc", "pzn", "ndc", "cpa", "cpv", "code", "codigo", "código", "codice", "kod",
    "schluessel", "schlüssel", "indp", "occp", "naicsp", "socp", "pobp", "lanp", "ancp", "st", "statefip", "countyfip",
}  # fmt: skip
"""Last words of names whose values, if they have digits, are codes."""

_MOST = 0.9
"""The share of values that must look like codes."""

_LOOK = re.compile(r"(?=.*[0-9])(?!-?[0-9]*[.,][0-9]+$)[A-Za-z0-9]\S*")
"""One word with a digit, and no number with a fraction."""

_LONGEST = 20
"""Characters of a code."""

_MOST_POSITIONS = 10
"""The most characters of codes whose positions are hidden one by one."""

_LEVELS = 4
"""The most prefixes of codes that belong to no classification."""

_LEAST_CHECKED = 5
"""Distinct numbers with a check digit are so many at least, and have 8 digits."""


_AMOUNTS = {
    "age", "alter", "edad", "hour", "stunde", "hora", "heure", "minute", "day", "tag", "dia", "jour", "week", "woche", "semana", "semaine",
    "month", "monat", "mes", "mois", "year", "jahr", "ano", "annee",
}  # fmt: skip
"""Words of names whose numbers are amounts and times, even if they have zeros in front."""

_ENDINGS = {"code", "cd", "no", "nr", "num", "number", "key", "kz"}
"""Words after such a name: ward no, state code."""


def amount_name(name: str) -> bool:
    """Return whether a name is that of an amount or a time, however few its numbers are."""
    return bool(set(name_words(name)) & _AMOUNTS)


def code_name(name: str, texts: Sequence[str]) -> bool:
    """Return whether a column has codes because of its name, and values that look like codes.

    Parameters
    ----------
    name : str
    texts : sequence of str
        Its distinct values, without blanks.
    """
    words = name_words(name)
    for word in words:
        system = _CLASSIFICATIONS.get(word)
        if system is not None and classification_lengths(system, texts) is not None:
            return True
    ends = (
        words[-1:]
        if words[-1:] and words[-1] in _NAMES
        else words[-2:-1]
        if set(words[-1:]) & _ENDINGS
        else []
    )
    if not (set(ends) & _NAMES or set(words) & set(_CLASSIFICATIONS)):
        return False
    good = sum(bool(_LOOK.fullmatch(text)) and len(text) <= _LONGEST for text in texts)
    return bool(texts) and good >= _MOST * len(texts)


def code_values(name: str, texts: Sequence[str]) -> bool:
    """Return whether digits begin with zeros, or all numbers end with a check digit: codes, unless the name is that of an amount.

    Parameters
    ----------
    name : str
        Of the column.
    texts : sequence of str
        Distinct, without blanks.
    """
    if amount_name(name) or not texts or not all(re.fullmatch("[0-9]+", t) for t in texts):
        return False
    if any(text[0] == "0" and len(text) > 1 for text in texts):
        return True
    checked = len(texts) >= _LEAST_CHECKED and len({len(text) for text in texts}) == 1 and len(texts[0]) >= 8
    return checked and any(all(_checks(text, weighted) for text in texts) for weighted in _WEIGHTED)


_WEIGHTED = (lambda digit: 3 * digit, lambda digit: 2 * digit - 9 * (digit > 4))
"""What every second digit counts from the right: in trade numbers (GTIN), and by Luhn's check digit."""


def _checks(text: str, weighted: Any) -> bool:
    digits = [int(digit) for digit in reversed(text)]
    return (sum(digits[::2]) + sum(map(weighted, digits[1::2]))) % 10 == 0


def code_texts(values: pd.Series) -> list[str]:
    """Return the distinct values of a column as texts; none where a number has a fraction."""
    distinct = values.drop_duplicates()
    if pd.api.types.is_float_dtype(values.dtype):  # whole numbers beside blanks are floats in pandas
        numbers = distinct.to_numpy(dtype=np.float64, na_value=np.nan)
        return [f"{number:.0f}" for number in numbers] if (numbers == np.floor(numbers)).all() else []
    return [str(value) for value in distinct]


def code_entry(name: str, texts: Sequence[str], missing: bool) -> dict[str, Any]:
    """Return the kind, and the hierarchy, by which codes are published.

    Parameters
    ----------
    name : str
        Of the column.
    texts : sequence of str
        Its distinct values, without blanks.
    missing : bool
        Whether there are blanks.

    Returns
    -------
    dict
        Codes of a classification, if the name says which, and codes of several lengths: below their prefixes. Codes of one length:
        positions, if they are short and none is missing. Numbers of up to three digits that have no zeros in front: categories,
        because their digits say nothing about them one by one.
    """
    lengths = {len(text) for text in texts}
    for word in name_words(name):
        system = _CLASSIFICATIONS.get(word)
        plain = system == "zip" and len(lengths) == 1 and not missing
        if system is not None and not plain and _goes(texts, classification_lengths(system, texts)):
            return _prefixes(system)
    if any("*" in text for text in texts):
        return {"kind": "suppression"}
    padded = any(text[:1] == "0" for text in texts)
    if max(lengths) <= 3 and not padded and all(text.isdigit() for text in texts):
        return {"kind": "categorical"}
    if len(lengths) == 1 and not missing and max(lengths) <= _MOST_POSITIONS:
        return {"kind": "positions"}
    shortest = min(len(signs_of(text)) for text in texts)
    levels = list(range(1, min(max(shortest, 1), _LEVELS) + 1))
    return _prefixes(levels) if _goes(texts, levels) else {"kind": "suppression"}


def _goes(texts: Sequence[str], lengths: Sequence[int] | None) -> bool:
    """Return whether a code is longer than the shortest prefix."""
    return lengths is not None and max(len(signs_of(text)) for text in texts) > lengths[0]


def _prefixes(lengths: Any) -> dict[str, Any]:
    return {"kind": "hierarchy", "hierarchy": {"prefixes": {"lengths": lengths}}}
