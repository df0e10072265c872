"""Where a kernel's widget meets the output that is saved: see frame/page/places.js for the page's half.

<div data-mqlab-place="3f0c…">      an output's box; a widget with this ``place`` takes it over
view_entry(widget)                  {} in Jupyter: what is saved is the box alone
                                    the widget's own entry in VS Code and Colab, whose outputs have windows of their own
"""

from __future__ import annotations

import os
import sys
from typing import Any

from markupsafe import Markup


def place_attribute(place_id: str) -> Markup:
    """The attribute of the box that the widget with this place takes over; "" for a box without a widget."""
    return Markup(' data-mqlab-place="{}"').format(place_id) if place_id else Markup("")


def view_entry(widget: Any) -> dict[str, Any]:
    """The widget's entry of a MIME bundle, where a page cannot find its widget in another way."""
    if "VSCODE_PID" not in os.environ and "google.colab" not in sys.modules:
        return {}
    shown = widget._repr_mimebundle_()
    # anywidget gives data and metadata (of which there is none); ipywidgets gives data alone.
    data: dict[str, Any] = shown[0] if isinstance(shown, tuple) else shown
    return {name: value for name, value in data.items() if name != "text/plain"}
