"""The labs in JupyterLite: notebooks as they are handed out, with words where a browser does something else.

files/labs/…          the notebooks that run in a browser, progress.ipynb
lab/index.html        opens them; the first line says what is missing where a browser has no JSPI
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from mqlab.course.material import JUPYTERLAB
from mqlab.course.site.materials import Materials
from mqlab.course.site.repository import repository, with_links
from mqlab.errors import MqlabError, UsageError

FILES_NOTE = (
    "**In the browser:** files cannot have holes here. A store that is opened without sizes has log files of 16 MiB "
    "instead of 1 GiB, and index files of 50,000 slots and 200,000 entries. Everything else is the same."
)
SPARK_NOTE = (
    "**In the browser:** there is no Spark here, so the cells of this lab do not run. The first page of this site has "
    "the lab to read, with what its cells show. To work in it, [install mqlab]({}#readme) and run `make lab`."
)
INDEX_NOTE = (
    "**In the browser:** your copies of the notebooks stay in this browser, not in a folder. There is no terminal: "
    "[progress](progress.ipynb) shows how far you are. *Interrupt Kernel* stops nothing here; if a cell does not end, "
    "choose *Kernel > Restart Kernel*."
)
NOTES = {
    "01a": FILES_NOTE,
    "01c": FILES_NOTE + " Packages that decompress LZ4 are missing, so one message cannot be read.",
    "02c": FILES_NOTE,
    **dict.fromkeys(("10a", "10b", "11a", "11b", "12a", "12b", "13a", "13b"), SPARK_NOTE.format(repository())),
    "index": INDEX_NOTE,
}
INSTEAD = {
    "02c": {
        "process, address = server(folder.name)": """\
# A browser has no processes, so no server is started here. On a computer the shop got these answers within 2 ms:
said, waited = ["SEND_OK", "Send [3] times, still failed, cost [1]ms, Topic"], 0.002
Table([{"order": 1, "told": said[0]}, {"order": 2, "told": said[1].partition(",")[0]}])"""
    },
    "16d": {
        'process, addresses = serving.served(home, "--record", frames, *grpc)': """\
# A browser has no processes, so no server is started here. On a computer it listens at addresses of these kinds:
["brokers", "grpc", "namesrv"]""",
        'with mqlab.connect(addresses["namesrv"]) as cluster:': """\
# A browser has no connections to a server. On a computer, with lab 16's solution, the shop and billing saw this:
told, got, works = ["SEND_OK"] * 4, [f"order-{n}" for n in range(4)], True
Table({"the shop is told": status, "billing gets": key} for status, key in zip(told, got, strict=True))""",
        'popped = apaches_client(addresses["grpc"]) if has_grpc else "the client is not here"': """\
# A browser has no client of Apache's. On a computer that has it, it gets these orders:
popped = ["order-0", "order-1", "order-2", "order-3", "order-9"]
popped""",
        "process.terminate()": """\
# A browser has no server whose frames could be written down. These reach your broker in a run in virtual time:
mine = ("SEND_MESSAGE_V2", "PULL_MESSAGE", "QUERY_CONSUMER_OFFSET")
with contextlib.chdir(home):
    recorded = play(joins_late, seed=7, client=no_trace, parts=yours)
rows = [row for row in recorded.journal.of("frame") if row.about_text.startswith(mine)]
Table(
    {"at_ms": row.now_ms, "frame": row.about_text, "node": row.node}
    for row in rows[:12]
)""",
    },
}
"""What a browser cannot run: a line of such a cell -> the cell's second form. Those cells are no answers."""

PROGRESS = """from pathlib import Path

from mqlab.course.grading.submissions.progress import progress, table

table(progress(Path(".")))"""
ABOUT_PROGRESS = (
    "# How far am I?\n\nRun the cell. It reads the notebooks that you saved in this browser: what you predicted, tried "
    "and passed. Hidden checks run at grading. *File > Download* gives a notebook that `mqlab grade` takes."
)
NEEDED = ["ipykernel", "comm", "pyodide-kernel", "ipython", "piplite"]
CONFIG = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {
        "appName": "mqlab",
        "exposeAppInBrowser": True,
        "enableServiceWorkerCache": True,
        "settingsOverrides": json.loads((JUPYTERLAB / "overrides.json").read_text("utf-8")),
        "litePluginSettings": {
            "@jupyterlite/pyodide-kernel-extension:kernel": {
                "disablePyPIFallback": True,
                "loadPyodideOptions": {"packages": NEEDED},
            }
        },
    },
}
NO_JSPI = (
    "This browser cannot run the labs: it has no WebAssembly promise integration (JSPI), which Chrome and Edge have "
    "from version 137. The pages and boards work here."
)
WARNING = f"""<script>
if (!("Suspending" in WebAssembly)) addEventListener("DOMContentLoaded", () => {{
  const words = document.createElement("p");
  words.setAttribute("role", "alert");
  words.style = "position:fixed;z-index:9999;top:0;left:0;right:0;margin:0;padding:1em;background:#fff3cd;color:#000";
  words.textContent = {json.dumps(NO_JSPI)};
  const link = document.createElement("a");
  link.href = "../index.html";
  link.style = "color:inherit;text-decoration:underline";
  link.textContent = "To the first page";
  words.append(" ", link);
  document.body.append(words);
}});
</script>
"""
KEEPS = """<script>
// The service worker keeps what it hears of. What this page asked for before there was one is given to it here.
performance.setResourceTimingBufferSize(2000);
navigator.serviceWorker?.ready.then(async () => {
  if (!navigator.serviceWorker.controller)
    await new Promise((goOn) => navigator.serviceWorker.addEventListener("controllerchange", goOn, { once: true }));
  const kept = await caches.open("precache");
  const asked = performance.getEntriesByType("resource").map((entry) => entry.name);
  for (const url of new Set([location.href, new URL("../index.html", location).href, ...asked]))
    if (url.startsWith(location.origin) && !(await kept.match(url))) await kept.add(url).catch(() => undefined);
});
</script>
"""


def put_lite(out: Path, source: Path, notebooks: list[Path], fetched: Materials) -> None:
    """Write JupyterLite to ``out`` from the folder ``source``, in which ``static/pyodide`` is already.

    Raises MqlabError with JupyterLite's last words if it fails.
    """
    contents = source / "files"
    (contents / "labs").mkdir(parents=True)
    for path in notebooks:
        notebook = in_a_browser(path.name, json.loads(path.read_text("utf-8")))
        (contents / "labs" / path.name).write_text(json.dumps(notebook, ensure_ascii=False, indent=1), "utf-8")
    (contents / "labs" / "progress.ipynb").write_text(json.dumps(progress_notebook()), "utf-8")
    (source / "jupyter-lite.json").write_text(json.dumps(CONFIG), "utf-8")
    extensions = [
        str(path) for name in ("anywidget", "jupyterlab_widgets") for path in fetched.wheels.glob(f"{name}-*")
    ]
    build = {
        "contents": ["files"],
        "apps": ["lab"],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "cache_dir": str(source / ".cache"),
        "federated_extensions": extensions,
        "ignore_sys_prefix": True,  # whatever else this environment's JupyterLab has
    }
    kernel = {"extra_labextensions_path": [str(fetched.builder / "share" / "jupyter" / "labextensions")]}
    config = {"LiteBuildConfig": build, "FederatedExtensionAddon": kernel}
    (source / "jupyter_lite_config.json").write_text(json.dumps(config), "utf-8")
    _build(source, out, fetched)
    shutil.copyfile(out / "icon-120x120.png", out / "lab" / "favicon.ico")  # its own one has 320 kB
    page = out / "lab" / "index.html"
    narrow = f"<script>{(JUPYTERLAB / 'narrow.js').read_text('utf-8')}</script>"
    page.write_text(page.read_text("utf-8").replace("<head>", "<head>" + WARNING + KEEPS + narrow, 1), "utf-8")


def _build(source: Path, out: Path, fetched: Materials) -> None:
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--lite-dir", str(source), "--output-dir", str(out)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(fetched.builder), os.environ.get("PYTHONPATH", "")])),
    }
    run = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if run.returncode or not (out / "lab" / "index.html").is_file():
        raise MqlabError("JupyterLite was not built: " + "\n".join((run.stdout + run.stderr).splitlines()[-12:]))


def in_a_browser(name: str, notebook: dict[str, Any]) -> dict[str, Any]:
    """A lab's notebook with the words of NOTES after its first cell, and the second form of what a browser cannot run.

    Its other cells and all ids are as they were, but links to files of the repository lead there. Raises UsageError if
    such a cell is not there once.
    """
    part = re.split("[-.]", name)[0]
    for line, other in INSTEAD.get(part, {}).items():
        cells = [cell for cell in notebook["cells"] if line in "".join(cell["source"])]
        if len(cells) != 1:
            raise UsageError(f"{name} has {len(cells)} cells with {line!r}: a browser needs another form of one")
        cells[0]["source"] = other
    if part in NOTES:
        note = {"cell_type": "markdown", "id": "in-a-browser", "metadata": {}, "source": NOTES[part]}
        notebook["cells"].insert(1, note)
    return with_links(notebook)


def progress_notebook() -> dict[str, Any]:
    """The page of progress: one cell, which reads the notebooks that this browser keeps."""
    code = {"cell_type": "code", "id": "progress", "metadata": {}, "source": PROGRESS, "outputs": []}
    about = {"cell_type": "markdown", "id": "about", "metadata": {}, "source": ABOUT_PROGRESS}
    return {
        "cells": [about, code | {"execution_count": None}],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},  # without it JupyterLite asks which kernel to take
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
