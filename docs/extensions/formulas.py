"""Formulas as MathML: docutils translates the TeX, every current browser draws it, and nothing is loaded."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.util import logging

LOG = logging.getLogger(__name__)


def _mathml(node: nodes.Element, block: bool) -> str:
    tex = node.astext()
    try:
        return latex2mathml.tex2mathml(tex, as_block=block)
    except (MathError, SyntaxError, ValueError) as error:
        LOG.warning("a formula that cannot be drawn: %s (%s)", tex, error, location=node)
        return f"<code>{tex}</code>"


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def _block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
