"""Every command and snippet of the documentation runs, page by page, in the order in which it is read.

What cannot run here says why on the page, and shows up as a skipped test with that reason.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ruamel.yaml import YAML

import anonflow as af
from anonflow import cli
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.flows.spec import FlowSpec
from anonflow.release import randomness
from anonflow.table import Schema
from tests import ROOT
from tests.docs.doc_pages import RUN, SHOWN, Block, Page, blocks_of, pages

PAGES = pages()
BLOCKS = [block for page in PAGES for block in page.blocks]
CLUSTER = "docs/how-to/run-on-a-cluster.md"
NOT_RUN = [block for block in BLOCKS if "not run" in block.orders]

BASE: dict[str, Any] = {
    "flow": "page",
    "version": 1,
    "table": {"source": {"dataset": "census_like", "n": 300}, "columns": af.datasets.schema("census_like")},
    "steps": [{"anonymize": {"algorithm": "greedy", "k": 5}}],
}
"""What a part of a flow is put into to be checked."""


def _runs(page: Page) -> bool:
    return any(b.language in RUN and "not run" not in b.orders for b in page.blocks)


SEED_BYTES = 16
"""A method's seed has so many; a page's release is drawn with others."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.name,
            marks=[pytest.mark.slow] * page.slow + [pytest.mark.machine] * (page.name == CLUSTER),
        )
        for page in PAGES
        if _runs(page)
    ],
)
def test_every_snippet_runs(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(tmp_path, in_processes=page.name in ("README.md", CLUSTER))
    monkeypatch.chdir(reader.folder)
    monkeypatch.setenv("COLUMNS", reader.environment["COLUMNS"])
    if page.one_draw:
        words, seeds = np.random.default_rng(1), np.random.default_rng(2)
        monkeypatch.setattr(
            randomness,
            "os",
            SimpleNamespace(urandom=lambda size: (seeds if size == SEED_BYTES else words).bytes(size)),
        )
    for block in page.blocks:
        reader.read(block)


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_what_is_not_run_is_well_formed(block: Block) -> None:
    if block.language == "python":
        ast.parse(block.text, filename=block.place)
    elif block.language == "bash":
        subprocess.run(["bash", "-n", "-c", block.text], check=True, capture_output=True)
    elif block.language == "yaml":
        assert list(YAML(typ="safe").load_all(block.text))
    assert len(block.orders["not run"]) > 8, "say why"
    pytest.skip(block.orders["not run"])


def test_every_block_says_what_it_is() -> None:
    assert {block.place for block in BLOCKS if block.language not in (*RUN, *SHOWN)} == set()
    outputs = {block.place for block in BLOCKS if "output" in block.orders and block.language != "text"}
    assert outputs == set(), "what is printed is text"


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        text = (ROOT / page.name).read_text(encoding="utf-8")
        text = re.sub(r"```.*?```", "", text, flags=re.S)
        for link in re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", text):
            assert ((ROOT / page.name).parent / link).exists(), f"{page.name}: {link}"


class Reader:
    """Somebody who follows a page: one folder, one Python session, one shell command after the other.

    A block of nothing but commands of ours calls them in this process, if that is enough.
    """

    def __init__(self, home: Path, in_processes: bool = False) -> None:
        self.in_processes = in_processes
        self.folder = home / "page"
        self.folder.mkdir()
        shutil.copytree(ROOT / "flows", self.folder / "flows", ignore=shutil.ignore_patterns("owner"))
        tools = home / "tools"
        tools.mkdir()
        for name, command in (("anonflow", "-m anonflow"), ("python", "")):
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n', encoding="utf-8")
            tool.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
        }
        self.session: dict[str, Any] = {"__name__": "__page__"}
        self.printed = ""

    def read(self, block: Block) -> None:
        """Do what a block says, and see that it works."""
        if "save" in block.orders:
            path = self.folder / block.orders["save"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if "not run" in block.orders:
            return
        if "output" in block.orders:
            self._compare(block)
        elif block.language == "python":
            self._python(block)
        elif block.language == "bash":
            self._bash(block)
        elif block.language == "yaml":
            self._yaml(block)

    def _python(self, block: Block) -> None:
        code = compile("\n" * block.line + block.text, block.page, "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, self.session)
        self.printed = out.getvalue()

    def _bash(self, block: Block) -> None:
        commands = None if self.in_processes else commands_of(block.text)
        status, out, err = self._process(block.text) if commands is None else self._calls(commands)
        wanted = int(block.orders.get("fails", "0"))
        assert status == wanted, f"{block.place}\n{out}\n{err}"
        self.printed = out if wanted == 0 else out + err

    def _calls(self, commands: list[list[str]]) -> tuple[int, str, str]:
        out, err, status = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for words in commands:
                with pytest.raises(SystemExit) as left:
                    cli.main(words)
                status = int(left.value.code or 0)
                if status:
                    break
        return status, out.getvalue(), err.getvalue()

    def _process(self, text: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def _yaml(self, block: Block) -> None:
        """A flow, a schema, or a part of either."""
        data = YAML(typ="safe").load(block.text)
        assert isinstance(data, dict), f"{block.place}: a mapping"
        path = self.folder / block.orders.get("save", "block.yaml")
        path.write_text(block.text, encoding="utf-8")
        if "flow" in data:
            load_flow(path)
        elif set(data) == {"columns"}:
            Schema.read(path)
        elif set(data) <= set(FlowSpec.model_fields):
            whole = copy.deepcopy(BASE)
            for key, value in data.items():
                if key == "table":
                    whole["table"].update(value)
                else:
                    whole[key] = value
            if "steps" in data and "anonymize" not in data["steps"][0]:
                whole["steps"] = [*BASE["steps"], *data["steps"]]
            with path.open("w", encoding="utf-8") as stream:
                YAML(typ="safe").dump(whole, stream)
            load_flow(path)
        else:
            Schema(data)

    def _compare(self, block: Block) -> None:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(block.text, self.printed, options)
        assert same, f"{block.place}: the page says\n{block.text}\nbut it is\n{self.printed}"


def commands_of(text: str) -> list[list[str]] | None:
    """The words after `anonflow` on each line of a block, or None where bash has to read it."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.startswith("anonflow ") or re.search(r"[]|&;<>$`*?~(){}#![]", line):
            return None
        commands.append(shlex.split(line)[1:])
    return commands


# ------------------------------------------------------------------------------- the runner itself


def test_commands_alone_need_no_shell() -> None:
    assert commands_of("anonflow run \\\n  'a b.yaml' --k 5\nanonflow datasets\n") == [
        ["run", "a b.yaml", "--k", "5"],
        ["datasets"],
    ]
    for text in ("anonflow run x >y", "K=2 anonflow run x", "ls", "anonflow run $X", "anonflow run *.yaml"):
        assert commands_of(text) is None


def _page_of(text: str) -> list[Block]:
    return blocks_of("page.md", text)


def test_slow_pages_are_no_part_of_the_quick_tests() -> None:
    slow = {page.name for page in PAGES if page.slow}
    assert CLUSTER in slow
    assert "docs/index.md" not in slow


def test_blocks_are_found_with_their_orders() -> None:
    text = "a\n\n<!-- not run: needs a cluster -->\n```bash\nls\n```\n\n- b\n\n  ```python\n  x = 1\n  ```\n```{note}\nc\n```\n"
    shell, python = _page_of(text)
    assert (shell.language, shell.orders, shell.line) == ("bash", {"not run": "needs a cluster"}, 4)
    assert (python.language, python.text, python.orders) == ("python", "x = 1\n", {})
    with pytest.raises(ValueError, match="unknown order"):
        _page_of("<!-- notrun: x -->\n```bash\nls\n```\n")
    with pytest.raises(ValueError, match="not closed"):
        _page_of("```bash\nls\n")


WRONG = {
    "an error of Python": "```python\nassert False\n```\n",
    "a warning": "```python\nimport warnings\nwarnings.warn('a')\n```\n",
    "a status of bash": "```bash\nfalse | true\n```\n",
    "a status of ours": "```bash\nanonflow validate missing.yaml\n```\n",
    "a part of a flow": "```yaml\npartition: {sise: 250}\n```\n",
    "a schema": "```yaml\nage: {role: quasi-identifer}\n```\n",
    "an output": "```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n",
}


def test_the_runner_finds_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for name, text in WRONG.items():
        with subtests.test(name):
            home = tmp_path / name
            home.mkdir()
            reader = Reader(home)
            monkeypatch.chdir(reader.folder)
            *before, wrong = [block for block in _page_of(text) if block.orders or block.language != "text"]
            for block in before:
                reader.read(block)
            with pytest.raises((AssertionError, UserWarning, af.errors.AnonflowError)):
                reader.read(wrong)


def test_anonflow_is_installed_from_a_clone_or_by_an_extra() -> None:
    """It is in no package index: only an installed anonflow can be named to pip, to add an extra."""
    bare = re.compile(r"pip install [^`\n]*(?<![\w/.'\-])anonflow(?![\w\[/.-])")
    assert bare.search("pip install anonflow dask-jobqueue")
    assert not bare.search("pip install 'anonflow[stats]'")
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "anonflow").rglob("*.py")]
    wrong = [f"{file.name}: {line}" for file in files for line in bare.findall(file.read_text("utf-8"))]
    assert wrong == []


def test_messages_of_the_troubleshooting_page_are_those_of_the_package() -> None:
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.M)
    package = " ".join("\n".join(map(_texts, (ROOT / "anonflow").rglob("*.py"))).split())
    assert len(quoted) > 8
    assert [text for text in quoted if text not in package] == []


def _texts(path: Path) -> str:
    """The texts of a module, without its docstrings' quotes and places to fill in."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return "\n".join(str(n.value) for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def test_building_the_site_is_left_to_ci() -> None:
    """It takes long and needs the extra `docs`: no part of the quick tests."""
    marks = ast.parse((ROOT / "tests" / "docs" / "test_docs_build.py").read_text(encoding="utf-8"))
    (text,) = [
        node for node in marks.body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)
    ]
    assert "pytest.mark.slow" in ast.unparse(text)
    section = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "tests/docs/test_docs_build.py" in section
    assert ".[docs]" in section
