"""Small faults in the package's code: where they can be, and which of them make the sample."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = 38
"""The sample's seed: with it, a fault belongs to the sample by its own name, so that other changes leave it there."""

ROOMS = (
    "criteria",
    "release",
    "risk",
    "loss",
    "kernels",
    "algorithms",
    "hierarchy",
    "table",
    "engine",
    "dashboards",
)
"""Rooms of the package with an equal share of the sample; of the dashboards only the models, which a browser does not need."""

_TURNED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_CHECKS = ("check", "_check", "raise_", "refuse", "_refuse", "require", "_require")


@dataclass(frozen=True)
class Fault:
    """One fault: the text between two byte offsets of a file is replaced.

    Parameters
    ----------
    path : str
        The file, from the checkout.
    function : str
        The function or class around it, with a dotted name; empty in the module's body.
    kind : str
        What is changed: ``compare``, ``index``, ``weight``, ``check``, ``sort``, ``seed`` or ``logic``.
    before, after : str
        The changed piece of code and its replacement.
    occurrence : int
        How many equal changes the function has before this.
    start, end : int
        Byte offsets of the piece.
    line : int
        Line number of the piece.
    """

    path: str
    function: str
    kind: str
    before: str
    after: str
    occurrence: int
    start: int
    end: int
    line: int

    @property
    def name(self) -> str:
        """The fault's name, in which no line number occurs."""
        change = f"{' '.join(self.before.split())} -> {' '.join(self.after.split())}"
        return f"{self.path}::{self.function} {self.kind} {self.occurrence}: {change}"

    @property
    def room(self) -> str:
        """The room of the package."""
        return self.path.split("/")[1].removesuffix(".py")

    def entered(self, source: bytes) -> str:
        """Return the dotted name of the function whose call runs the fault; empty where importing the file does."""
        names: list[str] = []
        nodes: list[ast.AST] = list(ast.parse(source).body)
        called = False
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                if node.body[0].lineno <= self.line <= (node.end_lineno or 0):
                    names.append(node.name)
                    called = not isinstance(node, ast.ClassDef)
                    nodes = list(node.body)
            else:
                nodes += ast.iter_child_nodes(node)
        return ".".join(names) if called else ""

    def put_into(self, source: bytes) -> bytes:
        """Return a file's content with the fault."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def faults_of(path: str, source: str) -> list[Fault]:
    """Return all faults that a file can have, in the order of their places."""
    tree = ast.parse(source)
    starts = [0]
    for text in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    faults: list[Fault] = []
    count: defaultdict[tuple[str, ...], int] = defaultdict(int)
    for function, node in _code(tree, ""):
        for kind, piece, replacement in _changes(node):
            start = starts[piece.lineno - 1] + piece.col_offset
            end = starts[piece.end_lineno - 1] + piece.end_col_offset  # type: ignore[operator]
            before = source.encode()[start:end].decode()
            if isinstance(replacement, ast.stmt):
                after = ast.unparse(replacement)
            else:
                after = f"({ast.unparse(replacement)})"
            key = (function, kind, before, after)
            faults.append(Fault(path, function, kind, before, after, count[key], start, end, piece.lineno))
            count[key] += 1
    return faults


def sample(root: Path, number: int) -> list[Fault]:
    """Return the sample: from each room an equal number of faults, and of each kind equally many while there are."""
    chosen: list[Fault] = []
    for room in ROOMS:
        waiting: defaultdict[str, list[Fault]] = defaultdict(list)
        for path in _files(root, room):
            place = path.relative_to(root).as_posix()
            for fault in faults_of(place, path.read_text(encoding="utf-8")):
                waiting[fault.kind].append(fault)
        for faults in waiting.values():
            faults.sort(key=_rank, reverse=True)
        share: list[Fault] = []
        while len(share) < number // len(ROOMS):
            for kind in sorted(waiting):
                if waiting[kind]:
                    share.append(waiting[kind].pop())
        chosen += share[: number // len(ROOMS)]
    return chosen


def _rank(fault: Fault) -> bytes:
    return hashlib.sha256(f"{SEED} {fault.name}".encode()).digest()


def _files(root: Path, room: str) -> list[Path]:
    paths = sorted((root / "anonflow" / room).rglob("*.py"))
    if room == "dashboards":
        others = {"screen.py", "app.py", "__init__.py"}
        rooms = {"components", "server", "session"}
        paths = [path for path in paths if path.name not in others and path.parent.name not in rooms]
    return paths


def _code(node: ast.AST, function: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield each node that runs, with the name of the function around it: no annotations, decorators or type checks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            name = f"{function}.{child.name}".lstrip(".")
            for statement in child.body:
                yield name, statement
                yield from _code(statement, name)
        elif isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield function, child.value
                yield from _code(child.value, function)
        elif not isinstance(child, ast.arguments | ast.arg | ast.Import | ast.ImportFrom | ast.JoinedStr):
            yield function, child
            yield from _code(child, function)


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.stmt | ast.expr, ast.stmt | ast.expr]]:
    """Yield the kind of each fault that a node can have, the piece it replaces and the replacement."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _TURNED:
        yield "compare", node, ast.Compare(node.left, [_TURNED[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "logic", node, ast.BoolOp(other, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "logic", node, node.operand
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Sub) and _is_number(node.right, 1):
            yield "index", node, node.left
        elif isinstance(node.op, ast.Mult) and not (
            isinstance(node.left, ast.Constant | ast.List | ast.Tuple) or isinstance(node.right, ast.Constant)
        ):
            yield "weight", node, node.left
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant | ast.Slice):
        part = node.slice if isinstance(node.slice, ast.Constant) else node.slice.lower
        if part is not None and _is_number(part, 0, 1):
            yield "index", part, ast.Constant(part.value + 1)  # type: ignore[attr-defined]
    elif isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
        yield "check", node.test, ast.Constant(False)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        name = _called(node.value)
        if name.startswith(_CHECKS):
            yield "check", node, ast.Pass()
        elif name == "sort":
            yield "sort", node, ast.Pass()
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.stmt | ast.expr, ast.stmt | ast.expr]]:
    name = _called(node)
    if name == "sorted":
        yield "sort", node, ast.Call(ast.Name("list"), node.args[:1], [])
    elif name in ("sort", "sort_values") and node.args and _is_numpy(node.func):
        yield "sort", node, node.args[0]
    elif name == "argsort" and node.args and _is_numpy(node.func):
        yield "sort", node, ast.parse(f"np.arange(len({ast.unparse(node.args[0])}))", mode="eval").body
    elif name == "lexsort" and node.args:
        yield "sort", node, ast.parse(f"np.arange(len(({ast.unparse(node.args[0])})[0]))", mode="eval").body
    elif name == "default_rng" and node.args and not isinstance(node.args[0], ast.Constant):
        yield "seed", node.args[0], ast.Constant(0)
    elif name in ("lanes", "derived_seed", "RandomWords") and len(node.args) > 1:
        yield "seed", node.args[1], ast.Constant(0)  # one key, purpose or step for all
    for keyword in node.keywords:
        if (
            keyword.arg == "spawn_key"
            and isinstance(keyword.value, ast.Tuple)
            and len(keyword.value.elts) > 1
        ):
            first = keyword.value.elts[:1]
            yield "seed", keyword.value, ast.Tuple([*first, ast.Constant(0)], ast.Load())


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _is_numpy(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "np"


def _is_number(node: ast.expr | None, *values: int) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value in values
