"""Tables in which every quasi-identifier has levels: Adult with the hierarchies that ARX publishes, and heart records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

import anonflow as af
from anonflow import datasets

QI = {"role": "quasi-identifier"}

AGES = {
    "18-39": {"18-29": ["18-24", "25-29"], "30-39": ["30-34", "35-39"]},
    "40-59": {"40-49": ["40-44", "45-49"], "50-59": ["50-54", "55-59"]},
    "60 or older": {"60-69": ["60-64", "65-69"], "70 or older": ["70-74", "75-79", "80 or older"]},
}
RACES = {
    "White": None,
    "not White": ["American Indian/Alaskan Native", "Asian", "Black", "Hispanic", "Other"],
}
DIABETIC = {"any Yes": ["Yes", "Yes (during pregnancy)"], "any No": ["No", "No, borderline diabetes"]}
HEART_TREES = {"AgeCategory": AGES, "Race": RACES, "Diabetic": DIABETIC}
HEART_NUMBERS = ("BMI", "PhysicalHealth", "MentalHealth")


def adult_levels(folder: Path, n: int | None = None) -> af.Table:
    """The 30,162 complete records of Adult's training part, eight quasi-identifiers, ages with ARX's bands, too."""
    schema = datasets.schema("adult", hierarchies=True)
    tree = folder / "hierarchies" / "adult" / "adult_hierarchy_age.csv"
    schema["age"] = {**QI, "kind": "hierarchy", "hierarchy": str(tree)}
    frame = datasets.adult(complete=True).iloc[:n]
    return af.Table(frame.assign(age=frame["age"].astype(str)), schema)


def heart_levels(folder: Path, n: int | None = None) -> af.Table:
    """319,795 answers to a health survey, twelve quasi-identifiers: three numbers, three trees, six of two values."""
    frame = pd.read_csv(folder / "large" / "heart_2020_cleaned.csv.gz", dtype=str, nrows=n).iloc[:, :12]
    frame = frame.assign(**{name: frame[name].astype(float) for name in HEART_NUMBERS})
    schema: dict[str, Any] = {}
    for name in frame:
        if name in HEART_NUMBERS:
            schema[name] = {**QI, "kind": "numeric"}
        elif name in HEART_TREES:
            schema[name] = {**QI, "kind": "hierarchy", "hierarchy": {"nested": {"*": HEART_TREES[name]}}}
        else:
            schema[name] = {**QI, "kind": "suppression"}
    return af.Table(frame, schema)
