"""Files that are written whole or not at all: to a draft next to them, which is then renamed.

    with whole_file(Path("report.html")) as draft:       report.html.4711, renamed at the end of the block
        draft.write_text(page, "utf-8")

A crash or an error leaves the old file. Stores write their files through the Files port instead (store/config_files).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path, *, suffix: str | None = None) -> Iterator[Path]:
    """Yield the path of a draft in the same directory, which replaces the file when the block ends.

    An error in the block removes the draft and leaves the file as it was. The draft's name ends with the number of
    this process, so that two processes may write the same file; ``suffix`` gives it a fixed name instead.
    """
    draft = path.with_name(path.name + (f".{os.getpid()}" if suffix is None else suffix))
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
