"""The house rules: what every module, docstring, flow and command of the project keeps."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
from ruamel.yaml import YAML

import anonflow
from anonflow.algorithms.registry import REGISTRY
from anonflow.cli.command_line import COMMANDS
from anonflow.criteria.guarantee import OF_CLASSES, OF_MATCHES
from tests import ROOT
from tests.cases.reach import reached, reads_a_clock, starts
from tests.cases.runs import shell
from tests.cases.sources import MODULES, PACKAGE, TESTS, forget_trees, nodes_of, place, tree_of

__all__ = ["forget_trees"]

FLOWS = sorted((ROOT / "flows").glob("*.yaml"))
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))

COMPILERS = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "generated_jit", "stencil"}
SORTING = {
    *("sort", "argsort", "lexsort", "partition", "argpartition", "searchsorted", "digitize", "unique"),
    *("median", "nanmedian", "percentile", "nanpercentile", "quantile", "nanquantile"),
}
VAGUE = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
LATE = (
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "panel",
    "bokeh",
    "distributed",
    "dask",
    "ortools",
    "ruamel",
    "requests",
    "matplotlib",
)
"""What a run does not need: no import of `anonflow.engine` brings it, which takes tenths of a second each."""
HEAVY = {"numpy", "pandas", "scipy", "pyarrow", "numba", "ortools", "dask", "distributed", "panel", "bokeh"}


# ------------------------------------------------------------------------------ modules and imports


def test_imports_keep_the_contracts() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command as lint; lint()",
            "--no-cache",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_room_hides_behind_the_package() -> None:
    """The lazy public names would let an import point up unseen: rooms import rooms, never the front door."""
    results = []
    for path in MODULES:
        if path == PACKAGE / "__init__.py":
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Import):
                bad = [alias.name for alias in node.names if alias.name == "anonflow"]
            elif isinstance(node, ast.ImportFrom) and node.module == "anonflow" and not node.level:
                rooms = {child.stem if child.suffix else child.name for child in PACKAGE.iterdir()}
                bad = [alias.name for alias in node.names if alias.name not in rooms | {"__version__"}]
            else:
                continue
            results += [f"{place(path)}:{node.lineno} {name}" for name in bad]
    assert results == []


def test_nobody_compares_guarantees_with_names() -> None:
    """What follows from a guarantee is answered by `criteria.guarantee` alone."""
    places = []
    for path in MODULES:
        for node in nodes_of(path):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if any(
                isinstance(side, ast.Constant) and side.value in OF_CLASSES | OF_MATCHES for side in sides
            ):
                places.append(f"{place(path)}:{node.lineno}")
    assert places == []


def test_endings_of_parquet_files_are_in_one_place() -> None:
    named = [
        place(path)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and node.value == ".pq"
    ]
    assert named == ["anonflow/table/files/parquet_metadata.py"]


def test_ortools_is_loaded_by_who_solves_with_it() -> None:
    """Its oldest version warns when it is loaded, and most methods do without it."""
    early = []
    for path in MODULES:
        for node in tree_of(path).body:
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            early += [place(path) for name in names if (name or "").split(".")[0] == "ortools"]
    assert early == []


def test_only_the_switchboard_compiles() -> None:
    results = []
    for path in MODULES:
        if path == PACKAGE / "kernels" / "jit.py":
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                raw = node.value.id in {"numba", "nb"} and node.attr in COMPILERS
            elif isinstance(node, ast.ImportFrom):
                raw = (node.module or "").split(".")[0] == "numba" and any(
                    alias.name in COMPILERS for alias in node.names
                )
            else:
                continue
            if raw:
                results.append(f"{place(path)}:{node.lineno}")
    assert results == []


@cache
def _compiled(path: Path) -> set[str]:
    """The functions of a module that have a compiled twin."""
    return {
        node.args[0].id
        for node in nodes_of(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "jit"
        and isinstance(node.args[0], ast.Name)
    }


def test_kernels_sort_by_functions_of_their_own() -> None:
    """numba's are closures that differ in nothing but their cells: see anonflow/kernels/cache.py."""
    result, jitted = [], 0
    for path in MODULES:
        compiled = _compiled(path)
        jitted += len(compiled)
        for function in tree_of(path).body:
            if isinstance(function, ast.FunctionDef) and function.name in compiled:
                result += [f"{place(path)}:{line} {name}" for line, name in _sorting(function)]
    assert result == []
    assert jitted > 50


def _sorting(function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Calls of what sorts inside numba: functions of numpy, methods of arrays, and ``sorted``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr in SORTING:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id == "sorted":
            yield node.lineno, node.id


def test_a_sort_is_recognized() -> None:
    lines = [
        *("np.sort(x)", "np.argsort(x)[0]", "x[1:].sort()", "x.argsort()", "numpy.partition(x, 2)"),
        *("np.searchsorted(x, 3)", "np.median(x)", "sorted(x)"),
    ]
    missed = []
    for line in lines:
        text = f"def kernel(x):\n    y = {line}\n    sort(y)\n    order = stable_order(x)"
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        if [at for at, _ in _sorting(function)] != [2]:
            missed.append(line)
    assert missed == []


def test_nothing_prints() -> None:
    results = [
        f"{place(path)}:{node.lineno}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert results == []


def test_names_say_what_is_inside() -> None:
    vague = {place(path): VAGUE & {*path.parts, path.stem} for path in MODULES + TESTS}
    assert {file: words for file, words in vague.items() if words} == {}


EMPTY = {
    *("one", "made", "found", "told", "said", "asked", "given", "what", "here"),
    *("thing", "things", "stuff", "data2", "tmp", "res", "foo"),
}
PROMISED = {
    ("anonflow/errors.py", "found"),  # AnonflowError(found=...)
    ("anonflow/engine/execution/result.py", "said"),  # a result of `af.run`, and a key of project files
    ("anonflow/dashboards/session/project.py", "said"),
    ("anonflow/risk/attackers/own_rows.py", "found"),  # a result of `af.risk.own_rows_test`
    ("anonflow/utility/measures.py", "asked"),
    ("anonflow/algorithms/diversity/target.py", "each"),
    ("anonflow/algorithms/method.py", "done"),  # Progress
    ("anonflow/algorithms/pilots.py", "kept"),
    ("anonflow/algorithms/recoding/lattice.py", "more"),
    ("anonflow/analysis/models.py", "known"),
    ("anonflow/criteria/evidence.py", "own"),
    ("anonflow/dashboards/app.py", "kept"),
    ("anonflow/dashboards/components/released_before.py", "known"),
    ("anonflow/dashboards/components/shown_part.py", "shown"),
    ("anonflow/dashboards/protect/expected_card.py", "known"),
    ("anonflow/dashboards/protect/settings.py", "more"),
    ("anonflow/engine/execution/events.py", "done"),  # keys of events
    ("anonflow/errors.py", "shown"),
    ("anonflow/kernels/freeform/chains.py", "taken"),
    ("anonflow/risk/attackers/minimality.py", "own"),
    ("anonflow/risk/attackers/own_rows.py", "shown"),  # a result of `af.risk.own_rows_test`
    ("anonflow/risk/register.py", "known"),
    ("anonflow/strict_yaml/names.py", "known"),
    ("anonflow/strict_yaml/reading.py", "known"),
    ("anonflow/utility/subject.py", "own"),
}
"""Names that others use, and fields: file and name."""


PRONOUNS = {"own", "each", "kept", "known", "shown", "done", "mine", "more", "many", "wanted", "taken"}
"""Pronouns and participles, which say nothing of what a variable or a parameter holds; a function may be called so, and what is public stays."""


def _empty_names(nodes: Iterable[ast.AST], of_variables: Set[str] = EMPTY) -> Iterator[tuple[int, str]]:
    """Lines and names of variables, parameters, attributes and functions that do not say what they hold."""
    for node in nodes:
        words: Set[str] = EMPTY
        match node:
            case ast.FunctionDef(name=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                pass
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                words = of_variables
            case _:
                continue
        if name.strip("_") in words:
            yield getattr(node, "lineno", 0), name


@pytest.mark.parametrize(
    ("files", "of_variables"),
    [(MODULES, EMPTY | PRONOUNS), pytest.param(TESTS, EMPTY, marks=pytest.mark.slow)],
    ids=["package", "tests"],
)
def test_variables_are_named_for_what_they_hold(files: list[Path], of_variables: Set[str]) -> None:
    wrong = []
    for path in files:
        file = place(path)
        for line, name in _empty_names(nodes_of(path), of_variables):
            if (file, name) not in PROMISED:
                wrong.append(f"{file}:{line}: {name}")
    assert wrong == []


def test_names_that_say_nothing_are_seen() -> None:
    lines = [
        *("made = 1", "self._said = 1", "def told(): ...", "lambda one: one", "for found in (): ..."),
        *("def work(*given): ...", "with open(file) as here: ..."),
    ]
    assert [line for line in lines if len(list(_empty_names(ast.walk(ast.parse(line))))) != 1] == []
    pronouns = list(_empty_names(ast.walk(ast.parse("def done(own): each.kept = more = own")), PRONOUNS))
    assert sorted(name for _, name in pronouns) == ["more", "own"]


def test_variables_of_notebooks_are_named_for_what_they_hold() -> None:
    wrong = []
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for at, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                nodes = ast.walk(ast.parse("".join(cell["source"])))
                names = [name for _, name in _empty_names(nodes)]
                wrong += [f"{place(path)}, cell {at}: {name}" for name in names]
    assert wrong == []


def test_no_path_of_one_machine() -> None:
    paths = re.compile(r"(?<![\w.])/(?:work|root|home|opt|Users)/\w")
    files = [*MODULES, *TESTS, *FLOWS, *ROOT.glob("*.md"), *ROOT.glob("*.toml"), *ROOT.glob("*.y*ml")]
    files += [ROOT / ".ci" / "run", *NOTEBOOKS]
    results = [
        f"{place(path)}:{number}"
        for path in files
        if path != Path(__file__).resolve()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if paths.search(line)
    ]
    assert results == []


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imported(path: Path, names: set[str]) -> set[str]:
    """The modules that a module imports, wherever in it: inside a function and for type checkers, too."""
    result = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            result |= below & names or {node.module}
    return result & names


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Whatever is left when modules that import nothing of the rest are taken away, again and again."""
    left = {_dotted(path): path for path in MODULES if path != PACKAGE / "__init__.py"}
    imports = {name: _imported(path, set(left)) - {name} for name, path in left.items()}
    assert sum(map(len, imports.values())) > 500
    while True:
        free = {name for name, needed in imports.items() if not needed}
        if not free:
            break
        imports = {name: needed - free for name, needed in imports.items() if name not in free}
    assert imports == {}


def test_a_watcher_of_the_screens_has_its_reason() -> None:
    """What is shown says what it depends on (`param.depends`, `pn.bind`): a watcher is an exception, with a comment above it."""
    without = []
    for path in MODULES:
        if "dashboards" in path.parts:
            lines = path.read_text(encoding="utf-8").splitlines()
            for at, line in enumerate(lines):
                if ".watch(" in line and not lines[at - 1].strip().startswith(("#", "self.param.watch(")):
                    without.append(f"{place(path)}:{at + 1}")
    assert without == []


def test_what_a_screen_depends_on_is_heard() -> None:
    """Of `a.b` beside `a.c.d` in one `param.depends`, param takes a change of `a.b` for another object without a `c`, and says nothing of it."""
    mixed = []
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "param.depends":
                names = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
                parents = {str(name).rpartition(".")[0] for name in names}
                mixed += [
                    f"{place(path)}:{node.lineno}: {parent}"
                    for parent in parents - {""}
                    if any(other.startswith(f"{parent}.") for other in parents)
                ]
    assert mixed == []


def test_a_class_name_stands_for_one_class() -> None:
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(f"{place(path)}:{node.lineno}")
    assert len(places) > 200
    assert {name: result for name, result in places.items() if len(result) > 1} == {}


EACH_ROOM_HAS_ONE = {"__init__", "model", "registry", "screen", "texts", "view"}
ON_SEVERAL_FLOORS = {
    "costs": "those of a loss, and those of joins in kernels, which are the same, rounded",
    "diversity": "the criteria, and the form that asks for one",
    "frontier": "what it is, and how it is drawn",
    "linkable": "the criterion, and the attacker that it holds off",
    "minimality": "the excess of a step, and the attacker who has it",
    "population": "its estimates, and the attacker who has them",
    "publish": "from results to a table, and from a run to files",
}


def test_a_module_name_stands_for_one_concept() -> None:
    """A kernel has the name of a module, or a room, that drives it; others share a name only where they share the concept."""
    kernels = {_dotted(path): path for path in MODULES if path.is_relative_to(PACKAGE / "kernels")}
    places: dict[str, list[str]] = {}
    driven: dict[str, set[str]] = {name: set() for name in kernels}
    for path in MODULES:
        if _dotted(path) not in kernels:
            places.setdefault(path.stem, []).append(place(path))
            for name in _imported(path, set(kernels)):
                driven[name] |= {path.stem, path.parent.stem}
    repeated = {name for name, result in places.items() if len(result) > 1}
    for name, path in kernels.items():
        if path.stem in places and path.stem not in driven[name]:
            repeated.add(path.stem)
    assert repeated - EACH_ROOM_HAS_ONE == set(ON_SEVERAL_FLOORS)
    stems = Counter(path.stem for path in kernels.values())
    assert [name for name, number in stems.items() if number > 1 and name != "__init__"] == []
    texts = [place(path) for path in MODULES if path.stem == "texts"]
    assert [name for name in texts if not name.startswith("anonflow/dashboards/")] == []


def test_an_algorithm_lies_in_a_file_of_its_name() -> None:
    for name, algorithm in REGISTRY.items():
        assert algorithm.run.__module__.split(".")[-1] == name.replace("-", "_")


def _is_command(path: Path, name: str) -> bool:
    """Whether a function is a command of the shell; its docstring is its help text."""
    return path.parent == PACKAGE / "cli" and name in {command.__name__ for command in COMMANDS}


MOST_BY_POSITION = 8


def test_nobody_counts_to_nine_positional_arguments() -> None:
    """A call with so many cannot be read: an object, or names. Compiled kernels have no other way; shell commands have options."""
    results = []
    for path in MODULES:
        compiled = _compiled(path)
        for node in nodes_of(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name in compiled:
                continue
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            if len(set(names) - {"self", "cls"}) > MOST_BY_POSITION and not _is_command(path, node.name):
                results.append(f"{place(path)}:{node.lineno} {node.name}")
    assert results == []


# -------------------------------------------------------------------------------------- docstrings


def _decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The last part of the name of each decorator: `property`, `setter`, `overload`, ..."""
    plain = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
    return {item.attr if isinstance(item, ast.Attribute) else getattr(item, "id", "") for item in plain}


def _public_functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function or method without a leading underscore.

    A method belongs to a class without a leading underscore; properties and overloads are left out.
    """
    for node in tree_of(path).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            owner, functions = "", [node]
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            owner = node.name + "."
            functions = [
                item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        else:
            continue
        for function in functions:
            if function.name.startswith("_") or _decorators(function) & {
                "property",
                "cached_property",
                "setter",
                "overload",
            }:
                continue
            yield f"{place(path)}:{function.lineno} {owner}{function.name}", function


def _raised(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The classes that a function raises itself, by name; not those of functions defined inside it."""
    raised = set()
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            names = [part.id for part in ast.walk(node.exc.func) if isinstance(part, ast.Name)]
            raised |= {name for name in names if name.endswith("Error") or name == "Cancelled"}
        if isinstance(node, ast.Try) and node.handlers:  # what the body raises may be caught here
            waiting += [*node.handlers, *node.orelse, *node.finalbody]
        else:
            waiting += ast.iter_child_nodes(node)
    return raised


def test_public_functions_document_what_they_raise() -> None:
    """They have a docstring; it names what the function raises, and has no Raises section that is empty.

    A shell command's docstring is its help text: such a function is let off.
    """
    wrong = []
    for path in MODULES:
        for name, function in _public_functions(path):
            text = ast.get_docstring(function)
            if _is_command(path, function.name):
                continue
            section = re.search(
                r"^Raises\n-{3,}\n(.*?)(?=\n\n\S+\n-{3,}|\Z)", text or "", re.MULTILINE | re.DOTALL
            )
            named = set(re.findall(r"\w+", section[1])) if section else set()
            if text is None or (section and section[1].startswith("None")) or _raised(function) - named:
                wrong.append(name)
    assert wrong == []


# ---------------------------------------------------------------------------------- the public face


def test_names_are_listed_where_they_are_public() -> None:
    """In packages and `errors`; elsewhere a name without an underscore is for other modules, and no list repeats it."""
    listing = [
        place(path)
        for path in MODULES
        if path.name not in ("__init__.py", "errors.py")
        and any(isinstance(node, ast.Name) and node.id == "__all__" for node in nodes_of(path))
    ]
    assert listing == []


def test_public_names_resolve() -> None:
    assert set(anonflow.__all__) == {"__version__", *anonflow._HOMES}
    assert set(anonflow.__all__) <= set(dir(anonflow))
    for name in anonflow.__all__:
        assert getattr(anonflow, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        anonflow.anonymise  # noqa: B018


@pytest.mark.slow
def test_the_algorithms_are_a_room_and_a_call() -> None:
    """`af.algorithms()` works whoever imported the room before."""
    code = """
        import importlib, sys
        for first in ("import anonflow.algorithms.registry", "af.anonymize", "af.algorithms"):
            for name in [name for name in sys.modules if name.split(".")[0] == "anonflow"]:
                del sys.modules[name]
            af = importlib.import_module("anonflow")
            assert "anonflow.algorithms" not in sys.modules
            exec(first)
            assert "greedy" in set(af.algorithms()["name"]), first
    """
    subprocess.run([sys.executable, "-c", dedent(code)], cwd=ROOT, check=True)


def test_import_is_light() -> None:
    """How long it takes is a benchmark."""
    code = (
        "import json, sys\n"
        "before = set(sys.modules)\n"
        "import anonflow\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    modules = json.loads(out.stdout)
    assert "anonflow" in modules
    assert {module.split(".")[0] for module in modules} & HEAVY == set()
    assert len(modules) < 60  # those of the standard library


def test_the_engine_brings_nothing_that_a_run_does_not_need() -> None:
    code = "import json, sys, anonflow.engine; print(json.dumps(list(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert [name for name in LATE if name in json.loads(out.stdout)] == []


# ------------------------------------------------------------------------- files that must agree


def _requirements() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    everything = [item for extra in extras.values() for item in extra]
    return {"python" + project["requires-python"], *project["dependencies"], *everything}


def test_environment_says_what_the_project_says() -> None:
    conda = YAML(typ="safe").load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    pip = [item["pip"] for item in conda if isinstance(item, dict)]
    named = [item for item in conda if isinstance(item, str) and item != "pip"] + [
        name for names in pip for name in names
    ]
    # conda-forge's own names, and its dask has the dataframe part in it
    theirs = {
        "ortools": "ortools-python",
        "dask[dataframe]": "dask",
        "duckdb": "python-duckdb",
        "build": "python-build",
    }
    ours = []
    for requirement in _requirements():
        name, sign, version = requirement.partition(">=")
        ours.append(theirs.get(name, name) + sign + version)
    assert sorted(named) == sorted(ours)


def _readme_commands() -> list[str]:
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    return [
        line.strip()
        for block in blocks
        for line in block.splitlines()
        if line.startswith("python3.11 -m venv")
    ]


def test_ci_runs_the_commands_of_the_readme() -> None:
    commands = _readme_commands()
    assert len(commands) == 2
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    quickstart, install, tests = (
        re.search(rf"^readme_{name}\(\) {{\n    (.*)\n}}", run, re.M)[1]
        for name in ("quickstart", "install", "tests")
    )
    assert commands == [quickstart, f"{install} && {tests}"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_flows_validate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = shell(capsys, "validate", *FLOWS)
    assert len(FLOWS) > 5
    assert (status, err) == (0, "")


def test_version_is_said_once() -> None:
    report = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    assert report is not None
    assert report[1] == anonflow.__version__
    assert find_spec("anonflow") is not None
    assert (PACKAGE / "py.typed").exists()


MEASURING = ("tests/benchmarks", "tests/papers")


def test_no_test_module_imports_another() -> None:
    """What several share lies beside them, or in tests/cases; benchmarks, too, are for those alone who measure."""
    shared = []
    for path in TESTS:
        measures = path.parent.relative_to(ROOT).as_posix() in MEASURING
        closed = "test_" if measures else ("test_", "bench_")
        for module in re.findall(
            r"^\s*from (tests\.\S+) import", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            if any(part.startswith(closed) for part in module.split(".")):
                shared.append(f"{place(path)}: {module}")
    assert shared == []


NO_ROOM = {
    "attacks": "attacks on releases and servers, each against a claim of ours",
    "benchmarks": "speed",
    "browser": "screens in a real browser",
    "cases": "what tests of several rooms share",
    "docs": "documentation and the files for installing",
    "faults": "full disks, killed processes, lost workers",
    "journeys": "users' jobs from the first command to the last figure",
    "mutants": "a sample of faults in the package, each to be noticed by a test",
    "naive": "slow references that import nothing from anonflow",
    "papers": "what papers print, and their workbooks",
}
"""Folders of tests that mirror no room of the package, and what each holds."""
TESTED_ELSEWHERE = {"kernels/classes": "algorithms/classes"}
"""Rooms of three modules or more whose tests stand with the modules that drive them."""


def _folders(top: Path, files: list[Path]) -> Iterator[str]:
    """Folders below `top` that hold one of `files`, and all folders above them."""
    for file in files:
        for folder in file.relative_to(top).parents[:-1]:
            yield folder.as_posix()


def test_tests_mirror_the_rooms_of_the_package() -> None:
    tests = ROOT / "tests"
    tested = set(_folders(tests, TESTS))
    rooms = Counter(
        file.parent.relative_to(PACKAGE).as_posix() for file in MODULES if file.stem != "__init__"
    )
    without_room = {name for name in tested if not (PACKAGE / name).is_dir()}
    assert without_room == set(NO_ROOM)
    beside = {file.relative_to(tests).with_name(file.stem.removeprefix("test_")).as_posix() for file in TESTS}
    assert {
        name for name, number in rooms.items() if number >= 3 and name not in tested | beside | {"."}
    } == set(TESTED_ELSEWHERE)
    assert set(TESTED_ELSEWHERE.values()) <= tested


def test_papers_are_named_by_author_and_year() -> None:
    """And what the code cites of our own pages is there."""
    numbered = re.compile(r"\b[Pp]apers?\s+[1-5]\b|\b[Ss]pecifications(?:\.md)?,\s+section")
    cited = re.compile(r"docs/reference/departures\.md,\s+([\w][\w -]*?)(?=[.;:)\n]|,)")
    text = (ROOT / "docs" / "reference" / "departures.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## (.+)$", text, re.M))
    wrong = []
    for path in sorted([*(ROOT / "anonflow").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]):
        page = path.read_text(encoding="utf-8")
        wrong += [f"{path.name}: {result}" for result in numbered.findall(page)]
        wrong += [
            f"{path.name}: no heading {results!r}"
            for results in cited.findall(page)
            if results not in headings
        ]
    assert wrong == []


YEAR = re.compile(r"(?<![-\d/.`'])\b(?:1[89]|20)\d\d\b(?![-\d/.]\d?\d)")
OTHER_YEARS = re.compile(r"(since|census of|survey of|September|[RVS]\. \() ?$")
"""What stands before a year that is no paper's: where time begins, of a survey, of a data set with its licence."""


def _cited_papers(text: str, listed: dict[str, list[str]]) -> Iterator[tuple[str, bool]]:
    """Each year that a text cites with what stands before it, and whether an author of that year stands there."""
    text = " ".join(text.split())
    for year in YEAR.finditer(text):
        before = text[max(0, year.start() - 130) : year.start()]
        if not OTHER_YEARS.search(before):
            authors = listed.get(year[0], [])
            yield before[-60:] + year[0], any(re.search(rf"\b{author}\b", before) for author in authors)


def test_cited_papers_stand_on_the_page_of_papers() -> None:
    """Those of docstrings, and those that methods name: first author and year."""
    listed: dict[str, list[str]] = {}
    page = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")
    for author, year in re.findall(r"^\| ([^|\d\n]+) (\d{4}) \|", page, re.M):
        listed.setdefault(year, []).append(author)
    assert list(_cited_papers("Berge 1957; Berge 1958; days since 1970", listed)) == [
        ("Berge 1957", True),
        ("Berge 1957; Berge 1958", False),
    ]
    results = [
        (f"{place(path)}:{node.lineno}: {citation}", stands)
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for citation, stands in _cited_papers(node.value, listed)
    ]
    assert len(results) > 100
    assert [citation for citation, stands in results if not stands] == []


# ------------------------------------------------------------------------- what a busy machine spoils

MEASURES = ("tests/benchmarks/", "tests/papers/", "tests/mutants/")
"""Folders that measure: their figures are no verdict of the quick tests."""
CLOCKS_WITHOUT_MARKER: dict[str, str] = {
    "measures how long a method takes": """
        tests/attacks/test_simulated_seeds.py""",
    "waits for a server, a cluster, another process or a thread": """
        tests/dashboards/server/test_proxy.py tests/dashboards/server/test_serving.py""",
    "gives files and certificates an age": """
        tests/engine/test_stores.py""",
}
"""Why tests read a clock or sleep without the marker `machine`, and their files."""
PROCESSES_WITHOUT_MARKER: dict[str, str] = {
    "a fresh interpreter runs to its end: what it imports, prints or has in memory": """
        tests/algorithms/freeform/test_freeform_edges.py tests/algorithms/freeform/test_optimal.py tests/attacks/test_own_rows.py
        tests/attacks/test_released_before.py tests/dashboards/work/test_compiling.py
        tests/datasets/test_datasets.py tests/docs/test_readme.py tests/drawing/test_notebook_views.py
        tests/engine/test_stores.py tests/kernels/test_cache.py tests/kernels/test_jit.py
        tests/release/test_leaks.py tests/strict_yaml/test_strict_yaml.py tests/test_declarations.py
        tests/test_system.py""",
    "the shell's statuses and streams are those of a process": """
        tests/cli/test_bad_input.py tests/cli/test_cli.py tests/faults/test_streams.py""",
    "another program runs to its end: bash, Sphinx, systemd, R, pip": """
        tests/docs/test_deploy.py tests/docs/test_docs.py tests/docs/test_docs_build.py
        tests/docs/test_r_snippet.py tests/test_ci.py""",
    "a server answers": """
        tests/dashboards/server/test_proxy.py tests/dashboards/server/test_serving.py""",
    "processes are killed, or several run at once": """
        tests/engine/owner/test_full_disk.py tests/faults/test_interrupted.py tests/faults/test_storage.py""",
    "threads run at once": """
        tests/widgets/test_explorer.py""",
}
"""Why tests start processes or threads without the marker `machine`, and their files."""


def _off_the_list(
    tests: dict[Path, set[str]], reasons: dict[str, str]
) -> tuple[dict[str, set[str]], set[str]]:
    """Tests whose file is not in a table, and files that need not be in it any more."""
    listed = " ".join(reasons.values()).split()
    assert len(listed) == len(set(listed))
    by_file = {place(path): names for path, names in tests.items()}
    return {file: by_file[file] for file in by_file.keys() - listed}, set(listed) - by_file.keys()


@pytest.mark.slow
def test_what_depends_on_the_machine_has_its_marker() -> None:
    """No other test reads a clock, sleeps, waits less than five minutes, or starts a process or a thread, nor does what it uses."""
    examples = Path(__file__).resolve()
    in_a_browser = "tests/browser/"  # its conftest.py gives all tests the marker
    files = [
        path for path in TESTS if path != examples and not place(path).startswith((*MEASURES, in_a_browser))
    ]
    clocks, processes = reached(files, ROOT, [reads_a_clock, starts], "machine")
    assert _off_the_list(clocks, CLOCKS_WITHOUT_MARKER) == ({}, set())
    assert _off_the_list(processes, PROCESSES_WITHOUT_MARKER) == ({}, set())


def test_clocks_are_seen_wherever_they_stand(tmp_path: Path) -> None:
    files = {
        "tests/conftest.py": "import time\ndef slept():\n    time.sleep(1)\ndef quiet(): ...",
        "tests/room/helper.py": "from time import monotonic as now\ndef wait():\n    now()\nclass Timer:\n    at = wait",
        "tests/room/test_seen.py": """
            import datetime, time
            import pytest
            from tests.room import helper
            from tests.room.helper import Timer
            CODE = "import time; time.sleep(3)"
            def inner(): time.perf_counter()
            def test_itself(): datetime.datetime.now()
            def test_by_fixture(slept): ...
            def test_by_helper(): helper.wait()
            def test_by_class(): Timer()
            def test_by_function(): inner()
            def test_by_code(): print(CODE)
            def test_by_page(page): page.wait_for_timeout(3)
            def test_by_limit(event): event.wait(timeout=5)
            def test_by_second(thread): thread.join(5)
            @pytest.fixture(autouse=True)
            def automatic(): inner()
            class TestAll:
                async def test_inside(self): await helper.wait()
            @pytest.mark.machine
            def test_marked(): inner()
            def test_quiet(quiet): time.gmtime(0)
            def test_patient(event): event.wait(0), event.wait(300), " ".join(event)
            def test_with_its_own(monkeypatch): monkeypatch.setattr(time, "time", lambda: 3)
            """,
        "tests/room/test_marked.py": """
            import time
            from pytest import mark
            pytestmark = [mark.slow, mark.machine]
            def test_all_are(): time.sleep(1)
            """,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
    ((file, seen),) = reached([tmp_path / name for name in files], tmp_path, [reads_a_clock], "machine")[
        0
    ].items()
    assert file.name == "test_seen.py"
    assert seen == {
        *("test_itself", "test_by_fixture", "test_by_helper", "test_by_class", "test_by_function"),
        *("test_by_code", "test_by_page", "test_by_limit", "test_by_second", "automatic", "TestAll"),
    }
