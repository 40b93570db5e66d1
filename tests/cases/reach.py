"""What tests reach: calls in a test itself, or in helpers and fixtures that it uses, whichever of our modules they stand in.

It is read off the source. A helper is known by its name, wherever that name is used; what an object does is not followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tests.cases.sources import tree_of

Unit = tuple[Path, str]
"""A function, class or assignment at the top of a module; "" for all other statements there."""

_TIMES = ("time", "monotonic", "perf_counter", "process_time", "thread_time", "sleep")
CLOCKS = {
    *(f"time.{name}" for name in _TIMES),
    *(f"time.{name}_ns" for name in _TIMES),
    *("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow", "datetime.date.today"),
    *("asyncio.sleep", "pandas.Timestamp.now", "pandas.Timestamp.today"),
}
SLEEPS = ".wait_for_timeout"
"""A method of pages in a browser."""
SHORT = "waits less than five minutes"
"""``x.wait(60)``, ``x.join(5)`` and ``timeout=5``: a kernel that other processes compile beside takes minutes on a busy machine."""
PROCESSES = {"subprocess", "multiprocessing", "pty"}
STARTS = {
    *("os.fork", "os.posix_spawn", "os.kill", "os.killpg", "signal.alarm", "asyncio.create_subprocess_exec"),
    *("threading.Thread", "threading.Timer", "concurrent.futures.ProcessPoolExecutor"),
}
"""An event that the test sets itself, and a pool of threads that works through a list, have an end on any machine."""
_CODE = "code: "
_IN_CODE = re.compile(rf"\btime\.({'|'.join(_TIMES)})(_ns)?\(|\bfrom time import|\.now\(")
_MENTIONS: tuple[type, ...] = (
    ast.Name,
    ast.Attribute,
    ast.arg,
    ast.Constant,
    ast.Call,
    ast.Import,
    ast.ImportFrom,
)


def reads_a_clock(use: str) -> bool:
    """Whether a dotted name is a clock or sleeps, a text is code that does, or a call waits a short time."""
    return use in CLOCKS or use == SHORT or use.endswith(SLEEPS) or use.startswith(_CODE)


def starts(use: str) -> bool:
    """Whether a dotted name starts a process or a thread, or sends a signal."""
    return use.split(".")[0] in PROCESSES or use in STARTS


class Module:
    """The units of a module, and what they use: dotted names, parameters, which name fixtures, and code in texts."""

    def __init__(self, path: Path, dotted: str) -> None:
        self.path, self.dotted = path, dotted
        self.units: dict[str, list[ast.stmt]] = {}
        self.uses: dict[str, set[str]] = {}
        self._imported: dict[str, str] = {}
        mentions: list[tuple[str, ast.AST]] = []
        for statement in tree_of(path).body:
            parts = [node for node in ast.walk(statement) if isinstance(node, _MENTIONS)]
            for title in _titles(statement):
                self.units.setdefault(title, []).append(statement)
                mentions += [(title, node) for node in parts]
            for node in parts:
                self._import(node)
        for title, node in mentions:
            self.uses.setdefault(title, set()).add(self._use(node))

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                self._imported[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _use(self, node: ast.AST) -> str:
        match node:
            case ast.Name(id=name):
                return self._imported.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{self._use(value)}.{attr}"
            case ast.arg(arg=name):
                return name
            case ast.Constant(value=str(text)) if _IN_CODE.search(text):
                return _CODE + text
            case ast.Call(func=ast.Attribute(attr="wait" | "join"), args=[limit]) if _is_short(limit):
                return SHORT
            case ast.Call(keywords=more) if any(
                each.arg == "timeout" and _is_short(each.value) for each in more
            ):
                return SHORT
        return ""

    def is_marked(self, unit: str, marker: str) -> bool:
        """Whether a unit, or the whole module, has ``pytest.mark.MARKER``."""
        texts = [ast.unparse(node) for node in self.units.get("pytestmark", [])]
        for node in self.units[unit]:
            texts += map(ast.unparse, getattr(node, "decorator_list", []))
        return any(re.search(rf"\bmark\.{marker}\b", text) for text in texts)

    def runs_by_itself(self, unit: str) -> bool:
        """Whether nobody names a unit: a test, a hook, an automatic fixture, a statement that runs at import."""
        if unit.startswith(("test_", "Test", "pytest_")):
            return True
        if not unit:
            return not all(isinstance(node, ast.If) for node in self.units[unit])  # __name__ == "__main__"
        decorators = [each for node in self.units[unit] for each in getattr(node, "decorator_list", [])]
        return any("autouse=True" in ast.unparse(each) for each in decorators)


def _is_short(limit: ast.expr) -> bool:
    return isinstance(limit, ast.Constant) and isinstance(limit.value, int | float) and 0 < limit.value < 300


def _titles(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Import() | ast.ImportFrom():
            return []
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return [""]


def reached(
    paths: Iterable[Path], root: Path, wanted: Sequence[Callable[[str], bool]], marker: str
) -> list[dict[Path, set[str]]]:
    """For each wish, the tests without a marker that come to what it wants, by file; automatic fixtures are among them."""
    modules = {path: Module(path, _dotted(path, root)) for path in paths}
    by_dotted = {module.dotted: module for module in modules.values()}
    users: dict[Unit, set[Unit]] = {}
    for path, module in modules.items():
        for unit, uses in module.uses.items():
            for use in uses:
                for used in _units_named(use, module, modules, by_dotted):
                    users.setdefault(used, set()).add((path, unit))
    results = []
    for is_wanted in wanted:
        tainted = {
            (path, unit)
            for path, module in modules.items()
            for unit, uses in module.uses.items()
            if any(map(is_wanted, uses))
        }
        waiting = list(tainted)
        while waiting:
            more = users.get(waiting.pop(), set()) - tainted
            tainted |= more
            waiting += more
        result: dict[Path, set[str]] = {}
        for path, unit in tainted:
            if modules[path].runs_by_itself(unit) and not modules[path].is_marked(unit, marker):
                result.setdefault(path, set()).add(unit)
        results.append(result)
    return results


def _dotted(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def _units_named(
    use: str, module: Module, modules: dict[Path, Module], by_dotted: dict[str, Module]
) -> Iterator[Unit]:
    """The units of our modules that a use in a module stands for."""
    parts = use.split(".")
    if parts[0] in module.units:
        yield module.path, parts[0]
        return
    for at in range(1, len(parts)) if parts[0] == "tests" else ():
        home = by_dotted.get(".".join(parts[:at]))
        if home is not None and parts[at] in home.units:
            yield home.path, parts[at]
    if len(parts) == 1 and use:
        for folder in module.path.parents:
            above = modules.get(folder / "conftest.py")
            if above is not None and use in above.units:
                yield above.path, use
                return
