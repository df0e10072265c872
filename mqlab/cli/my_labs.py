"""The learner's own copies of the labs, in the folder ``my-labs``: the originals, next to it or in the package, stay.

``mqlab lab`` (and so ``make lab``) makes them before JupyterLab starts, and opens the copy of the index. All notebooks
are copied, so every link from one to another leads to a copy.

    no copy yet                            copied
    a copy that was never changed          copied again when the original is another one now
    a copy that was worked in              left alone

``draw_progress`` writes into the copy of the index, between its marks, how far the learner is on each path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

from mqlab.course.material import COPIES, labs_for
from mqlab.whole_files import whole_file

KEPT = ".originals.json"
INDEX = "index.ipynb"
MARK = re.compile(r"(<!-- progress (\w+) -->)[^<]*(<!-- end -->)")
BAR_BLOCKS = 8


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
            # A copy whose bytes are those that were written here was never saved by the learner.
            now = hashlib.sha256(copy.read_bytes()).hexdigest() if copy.is_file() else ""
            untouched = now != "" and now == kept.get(original.name)
            if not copy.exists() or (untouched and _unmarked(copy.read_bytes()) != _unmarked(data)):
                with whole_file(copy) as draft:
                    draft.write_bytes(data)
                written.append(copy)
                kept[original.name] = hashlib.sha256(data).hexdigest()
    finally:  # an error after some copies: those are known as untouched all the same
        _keep(folder / KEPT, kept)
    return written


def _unmarked(page: bytes) -> str:
    return MARK.sub(r"\1\3", page.decode("utf-8", "replace"))


def _kept(path: Path) -> dict[str, str]:
    try:
        digests = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(digest) for name, digest in digests.items()} if isinstance(digests, dict) else {}


def draw_progress(root: Path) -> bool:
    """Write the progress on each path into the copy of the index, if there is one. Returns whether it changed.

    Nothing but what is between the marks changes, so a copy that was never edited still counts as one.
    """
    folder = root / COPIES
    page = folder / INDEX
    before = page.read_bytes() if page.is_file() else b""
    if not MARK.search(before.decode("utf-8", "replace")) or not os.access(page, os.W_OK):
        return False
    from mqlab.course.grading.submissions.progress import progress_on_paths

    done = progress_on_paths(folder)
    drawn = MARK.sub(
        lambda match: match[1] + _bar(*done[match[2]]) + match[3] if match[2] in done else match[0],
        before.decode("utf-8"),
    ).encode("utf-8")
    if drawn == before:
        return False
    kept = _kept(folder / KEPT)
    with whole_file(page) as draft:
        draft.write_bytes(drawn)
    if hashlib.sha256(before).hexdigest() == kept.get(INDEX):
        kept[INDEX] = hashlib.sha256(drawn).hexdigest()
        _keep(folder / KEPT, kept)
    return True


def _bar(done: int, of: int) -> str:
    """As many full blocks as are done of all; the first from the first answer on, the last with the last one.

    >>> _bar(0, 58), _bar(1, 58), _bar(29, 58), _bar(58, 58)
    ('not begun', '▰▱▱▱▱▱▱▱ 1 of 58', '▰▰▰▰▱▱▱▱ 29 of 58', '▰▰▰▰▰▰▰▰ 58 of 58')
    """
    if not done:
        return "not begun"
    full = max(1, BAR_BLOCKS * done // of)
    return f"{'▰' * full}{'▱' * (BAR_BLOCKS - full)} {done} of {of}"


def _keep(path: Path, kept: dict[str, str]) -> None:
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")
