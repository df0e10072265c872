"""Yesterday's clicks: what the saved notebook of this kernel says that was chosen, read as data.

    a new kernel, Run All ── predict("lab00.audit") ──▶ kept_answer("lab00.audit") ── the notebook's file ──▶ "11:00"

Jupyter tells a kernel the path of its notebook in JPY_SESSION_NAME. Without it, or when the file cannot be read, there
is no kept answer, and the question is open. Nothing of the file is executed.
Left out: notebooks that are not saved as a file (a browser's own storage).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlab.course.teach.clicking import PREDICTION_MIME

PATH_IN = "JPY_SESSION_NAME"
LARGEST_FILE = 64 << 20  # bytes


def kept_answer(prediction_id: str) -> str | None:
    """The last answer that was given before the run, as text; None when the notebook keeps none."""
    path = os.environ.get(PATH_IN, "")
    return kept_answers(Path(path)).get(prediction_id) if path.endswith(".ipynb") else None


def kept_answers(path: Path) -> dict[str, str]:
    """The last answer before the run to each prediction that a notebook's file keeps; nothing if it cannot be read."""
    kept = [data for data in _kept(path) if data.get("before_reveal") is True]
    return {str(data.get("prediction")): str(data.get("answer")) for data in kept}


def _kept(path: Path) -> Iterator[dict[str, Any]]:
    """Every kept answer in a notebook's file, in the order of its cells."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            return
        text = path.read_text("utf-8")
        notebook = json.loads(text) if PREDICTION_MIME in text else {}  # parsing takes a browser seconds
    except (OSError, ValueError):
        return
    for cell in _list(notebook, "cells"):
        for output in _list(cell, "outputs"):
            bundle = output.get("data") if isinstance(output, dict) else None
            data = bundle.get(PREDICTION_MIME) if isinstance(bundle, dict) else None
            if isinstance(data, dict):
                yield data


def _list(value: Any, name: str) -> list[Any]:
    entries = value.get(name) if isinstance(value, dict) else None
    return entries if isinstance(entries, list) else []
