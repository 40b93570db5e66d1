"""The Python files of the project as trees, parsed once for all tests of a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT

PACKAGE = ROOT / "anonflow"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def place(path: Path) -> str:
    """The path below the checkout."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


@pytest.fixture(scope="module", autouse=True)
def forget_trees() -> Iterator[None]:
    """A process that runs other tests afterwards does not keep them."""
    yield
    nodes_of.cache_clear()
    tree_of.cache_clear()
