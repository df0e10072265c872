"""Builds the whole site from a folder with ``labs``, ``solutions`` and ``datasets``."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from mqlab.course.material import DATASETS
from mqlab.course.site.board_pages import put_boards
from mqlab.course.site.front import front_page
from mqlab.course.site.lite import put_lite
from mqlab.course.site.materials import materials
from mqlab.course.site.pages import put_pages
from mqlab.course.site.python import put_python
from mqlab.errors import UsageError

LABS = ("00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "14", "15", "16")
"""What runs in a browser: the labs without Spark."""


def build(
    out: Path,
    root: Path,
    labs: tuple[str, ...] = LABS,
    kept: Path | None = None,
    say: Callable[[str], object] = lambda text: None,
) -> None:
    """Write the site to ``out``, which is replaced if it is a site. ``root``: the folder with the course's files.

    ``kept``: where the materials are (mqlab.course.site.materials). Raises UsageError for a lab that does not run in a
    browser and for a folder that holds something else.
    """
    unknown = [lab for lab in labs if lab not in LABS]
    if unknown:
        raise UsageError(f"lab {unknown[0]} does not run in a browser", hint=f"those do: {', '.join(LABS)}")
    if out.exists() and any(out.iterdir()) and not (out / "jupyter-lite.json").is_file():
        raise UsageError(f"{out} is not empty and holds no site", hint="choose a new folder")
    if not (root / "solutions").is_dir():
        raise UsageError(f"{root} is not a clone of mqlab: the site needs its labs, solutions and datasets")
    fetched = materials(kept)
    left_out = tuple(lab for lab in LABS if lab not in labs)  # Spark's labs are in: other labs have links to them
    notebooks = [path for path in sorted((root / "labs").glob("*.ipynb")) if not path.name.startswith(left_out)]
    with tempfile.TemporaryDirectory() as folder:
        source, site = Path(folder) / "source", Path(folder) / "site"
        put_python(source / "static" / "pyodide", fetched, root / DATASETS)
        say("JupyterLite")
        put_lite(site, source, notebooks, fetched)
        say("pages")
        put_pages(site / "pages", root)
        say("boards")
        put_boards(site / "boards")
        (site / "index.html").write_text(front_page(root, labs), "utf-8")
        if out.exists():
            shutil.rmtree(out)
        shutil.copytree(site, out)
