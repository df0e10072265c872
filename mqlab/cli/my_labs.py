"""The learner's own copies of the labs, in the folder ``my-labs``: the originals, beside it or in the package, stay.

``mqlab lab`` (and so ``make lab``) makes them before JupyterLab starts, and opens the copy of the index. All notebooks
are copied, so every link from one to another leads to a copy.

    no copy yet                            copied
    a copy that was never changed          copied again when the original is another one now
    a copy that was worked in              left alone
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from mqlab.course.material import COPIES, labs_for
from mqlab.whole_files import whole_file

KEPT = ".originals.json"


def copy_labs(root: Path) -> list[Path]:
    """Bring the copies of a folder's labs up to date. Returns what was written; nothing without an index to copy."""
    originals, folder = labs_for(root), root / COPIES
    if not (originals / "index.ipynb").is_file() or not os.access(root, os.W_OK):
        return []
    folder.mkdir(exist_ok=True)
    kept = _kept(folder / KEPT)
    written = []
    try:
        for original in sorted(originals.glob("*.ipynb")):
            copy, data = folder / original.name, original.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            # A copy whose bytes are those that were written here was never saved by the learner.
            untouched = copy.is_file() and hashlib.sha256(copy.read_bytes()).hexdigest() == kept.get(original.name)
            if not copy.exists() or (untouched and kept[original.name] != digest):
                with whole_file(copy) as draft:
                    draft.write_bytes(data)
                written.append(copy)
                kept[original.name] = digest
    finally:  # an error after some copies: those are known as untouched all the same
        (folder / KEPT).write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
    return written


def _kept(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(digest) for name, digest in found.items()} if isinstance(found, dict) else {}
