"""Synthetic people with the attributes of the CENSUS table with which Doka 2015 and Murakami 2018 measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from anonflow.datasets.generated import Records, Seed, draw, generator, text_column
from anonflow.errors import ParameterError
from anonflow.option import check_whole, is_finite

if TYPE_CHECKING:
    import pandas as pd

CARDINALITIES = {
    "Age": 79,
    "Gender": 2,
    "Education": 17,
    "Marital": 6,
    "Race": 9,
    "Workclass": 10,
    "Country": 83,
    "Occupation": 51,
}
"""Distinct values of each quasi-identifier, as Doka 2015's Table 2 has them."""

_GENDERS = ["Male", "Female"]
_MARITAL = [
    "Married, spouse present",
    "Married, spouse absent",
    "Separated",
    "Divorced",
    "Widowed",
    "Never married",
]
_RACES = [
    "White",
    "Black",
    "American Indian",
    "Alaska Native",
    "Other tribes",
    "Asian",
    "Pacific Islander",
    "Other race",
    "Two or more races",
]
_WORKCLASSES = [
    "Private for profit",
    "Private non-profit",
    "Local government",
    "State government",
    "Federal government",
    "Self-employed",
    "Self-employed incorporated",
    "Unpaid family worker",
    "Unemployed",
    "Not in labour force",
]
_SALARIES = [
    "under 10K",
    "10K to 20K",
    "20K to 30K",
    "30K to 40K",
    "40K to 50K",
    "50K to 65K",
    "65K to 80K",
    "80K to 100K",
    "100K to 150K",
    "over 150K",
]
# countries of birth by region, the more frequent ones first
_COUNTRIES = (
    ("United States", "Puerto Rico"),
    (
        *("Mexico", "El Salvador", "Cuba", "Guatemala", "Dominican Republic", "Colombia", "Honduras"),
        *("Ecuador", "Peru", "Brazil", "Nicaragua", "Venezuela", "Argentina", "Guyana", "Costa Rica"),
        *("Panama", "Bolivia", "Chile", "Uruguay", "Paraguay"),
    ),
    (
        *("Philippines", "India", "China", "Vietnam", "Korea", "Japan", "Taiwan", "Iran", "Pakistan"),
        *("Hong Kong", "Laos", "Thailand", "Cambodia", "Iraq", "Israel", "Lebanon", "Turkey", "Bangladesh"),
        *("Indonesia", "Syria", "Jordan", "Malaysia", "Afghanistan"),
    ),
    (
        *("Germany", "Canada", "England", "Poland", "Italy", "Russia", "Ukraine", "Portugal", "Ireland"),
        *("Greece", "France", "Romania", "Scotland", "Netherlands", "Hungary", "Spain", "Yugoslavia"),
        *("Sweden", "Austria", "Czechoslovakia", "Norway", "Denmark", "Belgium", "Australia"),
    ),
    (
        *("Jamaica", "Haiti", "Nigeria", "Trinidad", "Egypt", "Ethiopia", "Ghana", "Barbados", "Kenya"),
        *("South Africa", "Liberia", "Morocco", "Cape Verde", "Bahamas"),
    ),
)
_REGION_SHARE = (0.855, 0.068, 0.040, 0.025, 0.012)
# label, least schooling that is usual (1..17), share of women, relative size
_OCCUPATIONS = (
    ("Chief executives", 14, 0.25, 8),
    ("Financial managers", 13, 0.5, 14),
    ("Education managers", 15, 0.6, 8),
    ("Other managers", 12, 0.4, 60),
    ("Accountants", 13, 0.6, 20),
    ("Business specialists", 13, 0.5, 24),
    ("Software developers", 14, 0.25, 20),
    ("Computer support", 12, 0.3, 12),
    ("Mathematicians", 16, 0.4, 2),
    ("Architects", 15, 0.25, 5),
    ("Engineers", 14, 0.12, 22),
    ("Technicians", 11, 0.2, 10),
    ("Natural scientists", 16, 0.4, 6),
    ("Social scientists", 16, 0.55, 4),
    ("Social workers", 14, 0.75, 14),
    ("Clergy", 14, 0.2, 4),
    ("Lawyers", 17, 0.35, 10),
    ("Legal assistants", 12, 0.8, 5),
    ("University teachers", 17, 0.45, 11),
    ("School teachers", 14, 0.75, 45),
    ("Teaching assistants", 10, 0.9, 11),
    ("Librarians", 15, 0.8, 3),
    ("Artists and designers", 12, 0.5, 12),
    ("Journalists", 14, 0.5, 4),
    ("Physicians", 17, 0.35, 9),
    ("Pharmacists", 16, 0.5, 3),
    ("Nurses", 12, 0.92, 28),
    ("Therapists", 15, 0.75, 6),
    ("Health technicians", 11, 0.75, 22),
    ("Health aides", 8, 0.88, 24),
    ("Firefighters", 10, 0.05, 4),
    ("Police officers", 11, 0.15, 12),
    ("Guards", 9, 0.25, 10),
    ("Cooks", 6, 0.4, 24),
    ("Waiting staff", 8, 0.75, 26),
    ("Cleaners", 5, 0.45, 38),
    ("Child care", 8, 0.95, 17),
    ("Hairdressers", 9, 0.85, 9),
    ("Retail supervisors", 10, 0.45, 35),
    ("Cashiers", 7, 0.75, 34),
    ("Sales agents", 11, 0.45, 40),
    ("Secretaries", 10, 0.96, 42),
    ("Office clerks", 10, 0.75, 60),
    ("Postal workers", 10, 0.4, 7),
    ("Farm workers", 3, 0.2, 12),
    ("Construction workers", 7, 0.03, 60),
    ("Mechanics", 9, 0.04, 42),
    ("Machine operators", 7, 0.35, 55),
    ("Drivers", 8, 0.1, 45),
    ("Movers and packers", 7, 0.25, 40),
    ("Armed forces", 11, 0.12, 6),
)
_BANDS = np.array([20, 25, 35, 45, 55, 65, 75])
_SCHOOLING = np.array([5, 9, 11, 13, 15])
_NOT_WORKING = len(_WORKCLASSES) - 1
_COMPLETE = 20_000


def census_like(n: Records = 20_000, seed: Seed = 0) -> pd.DataFrame:
    """Return synthetic people with the attributes of the CENSUS table of Doka 2015 and Murakami 2018; nobody in it is real.

    Parameters
    ----------
    n : int
        Number of records; 500,000 in Doka 2015 and Murakami 2018.
    seed : int

    Returns
    -------
    pandas.DataFrame, shape (n, 9)
        ``Age`` (17 to 95) and ``Education`` (level 1 to 17) int64; ``Gender``, ``Marital``, ``Race``,
        ``Workclass``, ``Country`` (of birth), ``Occupation`` text; the sensitive ``Salary-class`` text with
        10 values. From n = 20,000 on each of the 79, 2, 17, 6, 9, 10, 83 and 51 values occurs. O(n).

    Raises
    ------
    ParameterError
        If n is not a positive whole number, or the seed not a non-negative one.

    Notes
    -----
    Only the cardinalities are those of the papers' table. Skew and correlation are ours: schooling depends
    on age and region of birth, marital status on age and gender, work on schooling and gender, salary on all
    of these. So a loss that is measured here is not comparable with the figures of the papers.
    """
    import pandas as pd

    rng = generator(n, seed)
    same = np.zeros(n, np.intp)
    age = draw(rng, _ages(), same)
    band = np.searchsorted(_BANDS, age + 17, side="right")
    gender = draw(rng, _genders(), age)
    country = draw(rng, _countries(), same)
    region = _region_of()[country]
    race = draw(rng, _races(), region)
    education = draw(rng, _educations(), band * len(_COUNTRIES) + region)
    schooling = np.searchsorted(_SCHOOLING, education + 1, side="right")
    marital = draw(rng, _maritals(), band * 2 + gender)
    workclass = draw(rng, _workclasses(), band * 6 + schooling)
    occupation = draw(rng, _occupations(), (schooling * 2 + gender) * 2 + (workclass == _NOT_WORKING))
    salary = draw(
        rng, _salaries(), ((schooling * 8 + band) * 2 + gender) * 2 + (workclass >= _NOT_WORKING - 1)
    )
    if n >= _COMPLETE:
        codes = (age, gender, education, marital, race, workclass, country, occupation)
        for column, size in zip(codes, CARDINALITIES.values(), strict=True):
            _plant_absent(rng, column, size)
    countries = [name for names in _COUNTRIES for name in names]
    return pd.DataFrame(
        {
            "Age": (age + 17).astype(np.int64),
            "Gender": text_column(_GENDERS, gender),
            "Education": (education + 1).astype(np.int64),
            "Marital": text_column(_MARITAL, marital),
            "Race": text_column(_RACES, race),
            "Workclass": text_column(_WORKCLASSES, workclass),
            "Country": text_column(countries, country),
            "Occupation": text_column([row[0] for row in _OCCUPATIONS], occupation),
            "Salary-class": text_column(_SALARIES, salary),
        }
    )


def _plant_absent(rng: np.random.Generator, codes: np.ndarray, size: int) -> None:
    """Give each value that does not occur to a random record whose own value occurs more than once."""
    counts = np.bincount(codes, minlength=size)
    for value in np.flatnonzero(counts == 0):
        while counts[codes[row := int(rng.integers(len(codes)))]] < 2:
            pass
        counts[codes[row]] -= 1
        codes[row] = value
        counts[value] = 1


# --- the distributions: one row of weights for each context ---------------------------------------------


def _ages() -> np.ndarray:
    age = np.arange(17, 96)
    young = 0.9 + 0.25 * np.exp(-(((age - 42) / 12.0) ** 2))
    old = np.clip((97 - age) / 47.0, 0.0, 1.0) ** 1.3
    return np.minimum(young, 1.15 * old)[None, :]


def _genders() -> np.ndarray:
    women = 0.5 + 0.005 * np.maximum(np.arange(17, 96) - 58, 0)
    return np.stack([1 - women, women], axis=1)


def _countries() -> np.ndarray:
    shares = []
    for names, share in zip(_COUNTRIES, _REGION_SHARE, strict=True):
        falling = 1.0 / np.arange(1, len(names) + 1) ** (1.1 if len(names) > 2 else 6.0)
        shares.append(share * falling / falling.sum())
    return np.concatenate(shares)[None, :] + 0.0003


def _region_of() -> np.ndarray:
    return np.repeat(np.arange(len(_COUNTRIES)), [len(names) for names in _COUNTRIES])


def _races() -> np.ndarray:
    return np.array(
        [
            [0.81, 0.125, 0.006, 0.0009, 0.003, 0.016, 0.002, 0.015, 0.022],
            [0.47, 0.035, 0.006, 0.0002, 0.004, 0.003, 0.001, 0.43, 0.05],
            [0.13, 0.004, 0.001, 0.0001, 0.0005, 0.81, 0.008, 0.012, 0.035],
            [0.95, 0.008, 0.001, 0.0002, 0.0005, 0.008, 0.001, 0.008, 0.024],
            [0.11, 0.81, 0.002, 0.0002, 0.0005, 0.012, 0.001, 0.02, 0.045],
        ]
    )


def _educations() -> np.ndarray:
    level = np.arange(1, 18)
    usual = np.ones(17)
    usual[[8, 9, 10, 12, 13, 15, 16]] = [4.5, 2.0, 3.0, 3.5, 1.4, 0.7, 0.45]
    usual[:6] = [0.35, 0.2, 0.25, 0.35, 0.5, 0.6]
    peak = np.array([8.4, 10.2, 11.3, 11.3, 11.2, 10.6, 9.8, 9.2])
    shift = np.array([0.0, -3.4, 0.9, 0.4, -0.4])
    spread = np.array([1.0, 1.6, 2.7, 2.8, 2.9, 3.1, 3.2, 3.2])
    far = (level - (peak[:, None] + shift)[..., None]) / spread[:, None, None]
    return (usual * np.exp(-0.5 * far**2)).reshape(-1, 17) + 1e-5


def _maritals() -> np.ndarray:
    #            present absent separated divorced widowed never
    men = [
        [0.01, 0.01, 0.003, 0.002, 0.0005, 0.975],
        [0.15, 0.02, 0.01, 0.015, 0.001, 0.80],
        [0.50, 0.03, 0.02, 0.07, 0.002, 0.38],
        [0.66, 0.03, 0.025, 0.12, 0.005, 0.16],
        [0.71, 0.02, 0.022, 0.15, 0.01, 0.09],
        [0.75, 0.02, 0.018, 0.13, 0.03, 0.05],
        [0.75, 0.02, 0.012, 0.09, 0.09, 0.04],
        [0.66, 0.03, 0.006, 0.05, 0.22, 0.04],
    ]
    women = [
        [0.03, 0.02, 0.006, 0.004, 0.0005, 0.94],
        [0.24, 0.02, 0.02, 0.03, 0.001, 0.69],
        [0.55, 0.02, 0.035, 0.10, 0.005, 0.29],
        [0.66, 0.02, 0.038, 0.15, 0.015, 0.12],
        [0.66, 0.015, 0.03, 0.18, 0.035, 0.075],
        [0.63, 0.015, 0.02, 0.16, 0.12, 0.05],
        [0.52, 0.015, 0.01, 0.11, 0.31, 0.04],
        [0.27, 0.02, 0.004, 0.06, 0.60, 0.045],
    ]
    return np.stack([men, women], axis=1).reshape(-1, 6)


def _workclasses() -> np.ndarray:
    working = np.array([0.60, 0.55, 0.56, 0.52, 0.48, 0.42])  # share in private firms, by schooling
    other = np.array(
        [
            [0.03, 0.03, 0.01, 0.005, 0.10, 0.01, 0.004, 0.07],
            [0.04, 0.05, 0.02, 0.01, 0.08, 0.015, 0.003, 0.05],
            [0.05, 0.06, 0.03, 0.02, 0.07, 0.025, 0.002, 0.035],
            [0.07, 0.08, 0.05, 0.03, 0.06, 0.03, 0.002, 0.025],
            [0.10, 0.12, 0.07, 0.04, 0.06, 0.05, 0.001, 0.015],
            [0.14, 0.15, 0.11, 0.05, 0.08, 0.06, 0.001, 0.01],
        ]
    )
    idle = np.array([0.55, 0.25, 0.15, 0.14, 0.17, 0.35, 0.78, 0.93])
    jobs = np.concatenate([working[:, None], other], axis=1)
    jobs /= jobs.sum(axis=1, keepdims=True)
    lazy = np.clip(idle[:, None] * np.linspace(1.25, 0.8, 6), 0.02, 0.985)
    table = np.concatenate([(1 - lazy)[..., None] * jobs, lazy[..., None]], axis=2)
    return table.reshape(-1, 10)


def _occupations() -> np.ndarray:
    level = np.array([3, 7, 10, 12, 14, 16.5])
    usual = np.array([row[1] for row in _OCCUPATIONS], float)
    women = np.array([row[2] for row in _OCCUPATIONS])
    size = np.array([row[3] for row in _OCCUPATIONS], float)
    above = level[:, None] - usual
    fit = np.exp(-0.5 * (np.where(above < 0, above / 1.3, above / 3.5)) ** 2) + 0.003
    shares = np.stack([1 - women, women])
    working = size * fit[:, None, :] * shares
    working /= working.sum(axis=2, keepdims=True)
    # the census keeps the last occupation of people out of the labour force; fewer of these are known, and more are unskilled
    idle = working * np.where(usual <= 10, 2.0, 1.0)
    return np.stack([working, idle], axis=2).reshape(-1, len(_OCCUPATIONS))


def _salaries() -> np.ndarray:
    bracket = np.arange(len(_SALARIES))
    schooling = np.array([0.8, 1.6, 2.7, 3.6, 5.2, 6.6])[:, None, None, None]
    band = np.array([-2.2, -1.3, 0.0, 0.7, 1.0, 0.8, 0.0, -0.6])[:, None, None]
    gender = np.array([0.35, -0.75])[:, None]
    idle = np.array([0.0, -2.4])
    peak = schooling + band + gender + idle
    return (np.exp(-0.5 * ((bracket - peak[..., None]) / 1.7) ** 2) + 1e-4).reshape(-1, len(_SALARIES))


def census_years(n: int = 1_000, years: int = 3, turnover: float = 0.1, seed: int = 0) -> list[pd.DataFrame]:
    """Return a register of synthetic people in some years: they grow older, move on, leave, and newcomers take their places.

    Parameters
    ----------
    n : int
        People of each year.
    years : int
    turnover : float
        The share of people who leave each year, 0 to 1.
    seed : int

    Returns
    -------
    list of pandas.DataFrame, shape (n, 10)
        As :func:`census_like` gives it, for each year, with a ``number`` of each person, int64, which stays. Ages grow by one; marital status
        changes for 3% of people a year, the occupation for 10%, the workclass for 5%, the salary for 20%, to those of others.

    Raises
    ------
    ParameterError
        If n or years is not a positive whole number, the turnover not a share, or the seed not a non-negative whole number.
    """
    import pandas as pd

    check_whole(years, 1, "years must be a whole number of at least 1")
    if not is_finite(turnover) or not 0 <= turnover <= 1:
        raise ParameterError("turnover must be a share between 0 and 1")
    rng = generator(n, seed)
    pool = census_like(2 * n + int(n * turnover * (years - 1)), seed=seed)
    others = census_like(len(pool), seed=seed + 1)
    pool.insert(0, "number", np.arange(len(pool)))
    members, following, register = np.arange(n), n, []
    for _ in range(years):
        register.append(pool.iloc[members].reset_index(drop=True))
        pool["Age"] = pool["Age"] + 1
        for name, share in _CHANGES.items():
            moved = rng.random(len(pool)) < share
            drawn = others[name].to_numpy()[rng.integers(0, len(others), len(pool))]
            pool[name] = pd.Series(np.where(moved, drawn, pool[name]), index=pool.index)
        stays = rng.random(len(members)) >= turnover
        new = np.arange(following, following + int((~stays).sum()))
        following += len(new)
        members = np.concatenate([members[stays], new])
    return register


_CHANGES = {"Marital": 0.03, "Occupation": 0.1, "Workclass": 0.05, "Salary-class": 0.2}
"""The share of people for whom a column changes each year."""
