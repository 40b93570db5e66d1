"""What is delivered for operators: read as its program reads it, and run as far as it can be here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import anonflow
from tests import ROOT

DEPLOY = ROOT / "deploy"


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile and their arguments."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word: str) -> str:
    return [rest for name, rest in instructions() if name == word][-1]


def read(name: str) -> Any:
    return YAML(typ="safe").load((DEPLOY / name).read_text(encoding="utf-8"))


def accepted(arguments: list[str]) -> None:
    """The command takes these arguments: every option is one of its own."""
    from typer.main import get_command

    from anonflow.cli.command_line import app

    command = get_command(app)
    name, *rest = arguments
    command.commands[name].make_context(name, rest, resilient_parsing=False)  # type: ignore[attr-defined]


def test_the_image_is_slim_and_nobody_in_it_is_root() -> None:
    known = {
        "FROM",
        "COPY",
        "RUN",
        "ENV",
        "USER",
        "WORKDIR",
        "VOLUME",
        "EXPOSE",
        "HEALTHCHECK",
        "CMD",
    }
    assert {word for word, _ in instructions()} <= known
    for base in (rest for word, rest in instructions() if word == "FROM"):
        assert re.match(r"docker\.io/library/python:3\.1\d-slim", base), base
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", last("USER"))
    order = [word for word, _ in instructions()]
    assert "RUN" not in order[len(order) - order[::-1].index("USER") :]
    # Dask's chart gives a container its program as arguments: an image with a program of its own would take them for its options
    assert "ENTRYPOINT" not in order
    program, *arguments = json.loads(last("CMD"))
    assert program == "anonflow"
    accepted(arguments)
    probe = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert probe[0] == "python"
    compile(probe[2], "healthcheck", "exec")
    # what must not be in an image does not get into what is built of it
    ignored = (DEPLOY / "Containerfile.containerignore").read_text().split()
    assert {".git", "owner", "out"} <= set(ignored)


@pytest.mark.slow
def test_the_steps_of_the_image_run_in_a_clean_root(tmp_path: Path) -> None:
    """Its RUN lines, with the folders of the image below a temporary one; what is needed is taken from here."""
    shutil.copytree(
        ROOT,
        tmp_path / "src",
        ignore=shutil.ignore_patterns(".git", ".venv", "out", "notebooks", "tests", "__pycache__"),
    )
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    for word, rest in instructions():
        if word != "RUN":
            continue
        line = re.sub(r"/(opt|src|srv|var)\b", rf"{tmp_path}/\1", rest).replace(
            f"{tmp_path}/srv{tmp_path}", ""
        )
        line = line.replace("/src[app]", "/src")
        line = line.replace("python -m venv", f"{sys.executable} -m venv")
        if os.geteuid() != 0:
            line = line.replace("-o 10001 -g 10001", "")
        line = line.replace("pip install", "pip install --no-deps --disable-pip-version-check")
        done = subprocess.run(
            ["sh", "-c", line],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": ""},
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    program = tmp_path / "opt" / "anonflow" / "bin" / "anonflow"
    done = subprocess.run(
        [program, "--version"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": packages},
        cwd=tmp_path,
        timeout=300,
    )
    assert done.stdout.startswith("anonflow "), done.stderr
    assert (tmp_path / "srv" / "anonflow").stat().st_mode & 0o777 == 0o700


def test_the_services_are_hardened_and_their_commands_are_taken() -> None:
    document = read("compose.yaml")
    services = document["services"]
    assert set(services) == {"proxy", "dashboard", "scheduler", "worker"}
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service["user"].startswith("0"), name
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in document["volumes"] or source in ("./nginx.conf", "./users"), volume
    assert services["worker"]["deploy"]["replicas"] == 2
    assert document["networks"]["inside"]["internal"] is True
    # only the proxy is reached from elsewhere, and only its address is believed
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    program, *command = services["dashboard"]["command"]
    assert program == "anonflow"
    accepted(command)
    believed = command[command.index("--proxy-address") + 1]
    assert services["proxy"]["networks"]["inside"]["ipv4_address"] == believed
    assert (
        f"proxy_pass http://dashboard:{command[command.index('--port') + 1]};"
        in (DEPLOY / "nginx.conf").read_text()
    )
    for name, main in (("scheduler", "dask_scheduler"), ("worker", "dask_worker")):
        cli = import_module(f"distributed.cli.{main}").main
        program, kind, *arguments = services[name]["command"]
        assert (program, kind) == ("dask", name)
        assert "entrypoint" not in services[name]
        cli.make_context(main, list(arguments), resilient_parsing=True)
        known = {
            option for parameter in cli.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word for word in arguments if word.startswith("--")} <= known


def test_the_values_of_the_chart_have_its_keys() -> None:
    values = read("dask-values.yaml")
    assert set(values) == {"scheduler", "worker", "jupyter", "webUI"}
    assert values["jupyter"]["enabled"] is False
    for name in ("scheduler", "worker"):
        part = values[name]
        assert part["securityContext"]["runAsNonRoot"] is True
        assert part["resources"]["limits"] == part["resources"]["requests"]
        assert part["image"]["repository"].endswith("/anonflow")
    assert values["worker"]["threads_per_worker"] == 1


def test_the_unit_starts_what_the_command_takes() -> None:
    text = (DEPLOY / "anonflow-dashboard.service").read_text(encoding="utf-8").replace("\\\n", " ")
    program, *arguments = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1].split()
    assert program.endswith("/anonflow")
    accepted(arguments)
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes", "KillMode=control-group"):
        assert line in text


def sessions_of(command: list[str]) -> str:
    return command[command.index("--sessions") + 1]


def test_sessions_outlive_a_planned_stop_of_each_service() -> None:
    """A private /tmp of systemd is emptied with each stop, and the file system of a container goes with it."""
    text = (DEPLOY / "anonflow-dashboard.service").read_text(encoding="utf-8").replace("\\\n", " ")
    command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1].split()
    state = re.search(r"^StateDirectory=(.*)$", text, re.MULTILINE)[1]
    assert sessions_of(command).startswith(f"/var/lib/{state}/")
    volumes = json.loads(last("VOLUME"))
    services = read("compose.yaml")["services"]
    places = [volume.partition(":")[2] for volume in services["dashboard"]["volumes"]]
    for command, kept in ((json.loads(last("CMD")), volumes), (services["dashboard"]["command"], places)):
        assert any(sessions_of(command).startswith(f"{place}/") for place in kept)
    page = (ROOT / "docs" / "how-to" / "host-the-dashboard.md").read_text(encoding="utf-8")
    unit = page.partition("ExecStart=")[2].partition("Restart=")[0].split()
    writable = re.search(r"^ReadWritePaths=(.*)$", page, re.MULTILINE)[1]
    assert sessions_of(unit).startswith(f"{writable}/")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "anonflow-dashboard.service"
    text = (DEPLOY / unit.name).read_text(encoding="utf-8")
    unit.write_text(re.sub(r"(?<=^ExecStart=)\S+", sys.executable, text, flags=re.MULTILINE))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=300
    )
    wrong = [line for line in done.stderr.splitlines() if unit.name in line and "Unknown" in line]
    assert wrong == []


def test_the_action_runs_the_verifier_and_takes_no_input_as_code() -> None:
    document = read("verify-action/action.yml")
    assert document["runs"]["using"] == "composite"
    for step in document["runs"]["steps"]:
        assert "${{" not in step["run"], "what is given goes through the environment, or it would run as code"
    last_step = document["runs"]["steps"][-1]
    assert set(last_step["env"].values()) == {
        f"${{{{ inputs.{name} }}}}" for name in document["inputs"] if name != "version"
    }
    assert document["inputs"]["version"]["default"] == anonflow.__version__
    words = re.sub(r"\s+", " ", last_step["run"].replace("\\\n", " ")).split()
    accepted([word.replace('"$K"', "5") for word in words[words.index("anonflow") + 1 :]])
