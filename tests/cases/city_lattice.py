"""The lattice of a city, an age and a code, each of its nodes priced one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.naive.lattice import best_node
from tests.strategies import CITIES

PARENT = {
    "San Diego": "West",
    "Los Angeles": "West",
    "Wichita": "Kansas",
    "Topeka": "Kansas",
    "Lincoln": "Lincoln",
}


STATE_LEVEL = {**PARENT, "Wichita": "Midwest", "Topeka": "Midwest", "Lincoln": "Midwest"}


LEAVES = {"West": 2, "Kansas": 2, "Midwest": 3, "*": 5, **dict.fromkeys(CITIES, 1)}


def reference(
    rows: list[tuple[str, int, str]], k: int, limit: float, values: Any = (), diverse: Any = bool
) -> tuple[float, int] | None:
    """The least sum of LM over the nodes of the lattice of city, age (widths 2 and 4) and code, tried one by one."""
    _, ages, codes = (list(column) for column in zip(*rows, strict=True))
    present = sorted(set(ages))
    first = [{code[p] for code in codes} for p in (0, 1)]

    def interval(width: int) -> Any:
        def cell(value: str) -> str:
            inside = [age for age in present if age // width == int(value) // width]
            whole = len(inside) == len(present) and len(present) > 1
            return "*" if whole else f"{inside[0]}-{inside[-1]}"

        return cell

    def hidden(count: int) -> Any:
        def cell(value: str) -> str:
            # a position with one character is published as it is
            return "".join("*" if p >= 2 - count and len(first[p]) > 1 else value[p] for p in (0, 1))

        return cell

    def cost(column: int, cell: str) -> float:
        if column == 0:
            return (LEAVES[cell] - 1) / 4 / 4
        if column == 1:
            if cell == "*":
                return 1 / 4 if len(present) > 1 else 0.0
            low, _, high = cell.partition("-")
            inside = [age for age in present if int(low) <= age <= int(high or low)]
            return (len(inside) - 1) / max(1, len(present) - 1) / 4
        return sum((len(first[p]) > 1) * (cell == "*" or cell[p] == "*") for p in (0, 1)) / 4

    levels = [
        [lambda v: v, PARENT.__getitem__, STATE_LEVEL.__getitem__, lambda v: "*"],
        [interval(1), interval(2), interval(4), lambda v: "*"],
        [hidden(0), hidden(1), hidden(2)],
    ]
    texts = [(city, str(age), code) for city, age, code in rows]
    return best_node(texts, levels, cost, k, int(limit * len(rows) + 1e-9), values, diverse)


ROWS = st.lists(
    st.tuples(st.sampled_from(CITIES), st.integers(20, 29), st.sampled_from(["00", "01", "10", "11"])),
    min_size=4,
    max_size=24,
)
