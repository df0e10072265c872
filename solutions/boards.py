"""Boards in saved outputs: their data stay as they were recorded, their JavaScript is today's."""

from __future__ import annotations

import html
import re
from typing import Any

from mqlab.course.widgets.frame.board import page_script

BOX = re.compile(
    r'(<div class="mqlab-board" data-mqlab="(?P<name>(?P<module>\w+)-[0-9a-f]{8})"[^>]* aria-label="(?P<label>[^"]*)">'
    r'.*?<script type="module">).*?(?=</script></div>)',
    re.DOTALL,
)


def with_todays_boards(page: str) -> str:
    """HTML in which every board has the module that the package has now. UsageError for a board that is gone."""
    return BOX.sub(
        lambda box: box[1] + page_script(box["module"], box["name"], html.unescape(box["label"])),
        page,
    )


def renewed(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs of a cell, their boards renewed."""
    for output in outputs:
        data = output.get("data", {})
        if "text/html" in data:
            data["text/html"] = with_todays_boards("".join(data["text/html"])).splitlines(keepends=True)
    return outputs
