"""The explorer: widgets that compare methods on a table in a notebook."""

try:
    import ipywidgets as _ipywidgets  # noqa: F401
except ImportError as error:
    raise ImportError(
        "the explorer needs widgets, which the base install leaves out: pip install 'anonflow[app]'"
    ) from error

from anonflow.widgets.exploration import Exploration, Finished
from anonflow.widgets.explorer import Explorer, explorer

__all__ = ["Exploration", "Explorer", "Finished", "explorer"]
