"""The shell's door: commands, exit statuses, progress to stderr, results to stdout."""

from anonflow.cli.main import main

__all__ = ["main"]
