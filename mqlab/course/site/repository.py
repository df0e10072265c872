"""Links of notebooks to files that are in the repository and not in the site."""

from __future__ import annotations

import importlib.metadata
from typing import Any


def repository() -> str:
    """The address of the repository: the setting ``Repository`` of ``[project.urls]``."""
    labelled: list[str] = importlib.metadata.metadata("mqlab").get_all("Project-URL") or []
    return dict(line.split(", ", 1) for line in labelled)["Repository"]


def with_links(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook, in which a link out of the folder of labs leads to the file in the repository."""
    there = f"]({repository()}/blob/main/"
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and "](../" in source:
            cell["source"] = source.replace("](../", there)
    return notebook
