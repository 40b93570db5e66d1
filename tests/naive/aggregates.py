"""Means and medians of classes, computed exactly, and what a mean tells of a class's members."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import median


def class_value(numbers: Sequence[float], aggregate: str) -> Fraction:
    """The exact mean or median of some numbers."""
    exact = [Fraction(number) for number in numbers]
    return Fraction(median(exact)) if aggregate == "median" else sum(exact, Fraction(0)) / len(exact)


def possible_members(domain: Sequence[float], size: int, mean: float) -> list[float]:
    """The numbers of a domain that a member of a class with this size and mean may have, by the domain's ends alone."""
    low, high = min(domain), max(domain)
    return [x for x in domain if low * (size - 1) + x <= size * mean <= high * (size - 1) + x]


def squared_distance(numbers: Sequence[float], published: Sequence[float]) -> float:
    """Squared distances of numbers from published ones, over those from their mean."""
    mean = sum(numbers) / len(numbers)
    within = sum((x - v) ** 2 for x, v in zip(numbers, published, strict=True))
    return within / sum((x - mean) ** 2 for x in numbers)


def variance(numbers: Sequence[float]) -> float:
    """The variance of all these numbers."""
    mean = sum(numbers) / len(numbers)
    return sum((x - mean) ** 2 for x in numbers) / len(numbers)
