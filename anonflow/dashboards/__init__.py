"""Screens over the engine: state in params, one flow behind all of them, no logic of their own."""

from anonflow.dashboards.draft import Draft

__all__ = ["Draft"]
