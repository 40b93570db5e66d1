"""The app for ``panel serve``: on one's own machine, without the gateway and the caps of ``anonflow dashboard``."""

import panel as pn

from anonflow.dashboards.app import application, extension
from anonflow.dashboards.components.theme import Theme

if pn.state.served:
    extension()
    pn.config.design = Theme
    application().servable(title="anonflow")
