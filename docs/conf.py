"""How the documentation is built: `sphinx-build -W -b html docs docs/build`.

Nothing is fetched, neither while it is built nor when it is read: no fonts, scripts or styles from elsewhere,
formulas as MathML. The notebooks are shown as they are stored; running them is a test of its own.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE / "extensions")]

import anonflow  # noqa: E402

project = "anonflow"
author = "The anonflow developers"
project_copyright = f"2026, {author}"
version = release = anonflow.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "formulas",  # docs/extensions: TeX to MathML
    "from_the_code",  # docs/extensions: tables that are read off the package
]
exclude_patterns = ["build", "extensions", "style", "**/.ipynb_checkpoints"]

# ---------------------------------------------------------------------------------------- Markdown
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# --------------------------------------------------------------------------------------- notebooks
nb_execution_mode = "off"
nb_ipywidgets_js = {}  # its default loads scripts from elsewhere
nb_merge_streams = True
nb_code_prompt_show = "Show the solution"  # nothing else is folded
nb_code_prompt_hide = "Hide the solution"

# ------------------------------------------------------------------------------------------- API
autodoc_typehints = "none"  # the docstrings say more than the annotations
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_preprocess_types = False

# -------------------------------------------------------------------------------------------- HTML
html_theme = "furo"
html_title = "anonflow"
html_static_path = ["style"]
html_favicon = "style/favicon.svg"
html_css_files = ["anonflow.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {
        "color-brand-primary": "#0b5c8a",
        "color-brand-content": "#0b5c8a",
        "color-brand-visited": "#0b5c8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6fb9e6",
        "color-brand-content": "#6fb9e6",
        "color-brand-visited": "#6fb9e6",
    },
}
pygments_style = "tango"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"


def _bring_notebooks() -> None:
    """Sphinx reads what lies in its own folder: lay copies of the notebooks beside their index pages."""
    for folder, target in (("notebooks", "tutorials"), ("notebooks/papers", "papers")):
        for stale in (HERE / target).glob("*.ipynb"):
            if not (ROOT / folder / stale.name).exists():
                stale.unlink()
        for notebook in sorted((ROOT / folder).glob("*.ipynb")):
            copy = HERE / target / notebook.name
            if not copy.exists() or copy.read_bytes() != notebook.read_bytes():
                shutil.copyfile(notebook, copy)


_bring_notebooks()
