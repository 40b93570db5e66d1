"""The command line: every command of ``anonflow``, and the options before it."""

from __future__ import annotations

from typing import Annotated

import typer

from anonflow import __version__
from anonflow.cli import commands
from anonflow.cli.dashboard import dashboard
from anonflow.cli.init import init
from anonflow.cli.streams import say

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Anonymize tables of people with published methods, and prove the result from the data alone.",
)

COMMANDS = (
    commands.run,
    commands.plan,
    commands.validate,
    commands.schema,
    commands.prepare,
    commands.verify,
    commands.describe,
    commands.attack,
    commands.risk,
    commands.compare,
    commands.search,
    commands.algorithms,
    commands.datasets,
    dashboard,
    init,
)
"""In the order of ``anonflow --help``; a command has the name of its function."""


def _version(flag: bool) -> None:
    if flag:
        say(f"anonflow {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


for command in COMMANDS:
    app.command()(command)
