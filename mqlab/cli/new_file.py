"""The type of options that name a file to write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class NewFile(click.Path):
    """A file to write, whether it exists or not. A missing folder is refused before any work is done."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path of the file."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"{path} cannot be written: there is no folder {path.parent}; make it first", param, ctx)
        return path
