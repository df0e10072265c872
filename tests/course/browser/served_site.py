"""The site as a reader has it: a plain static server on loopback, and a Chromium that reaches nothing else."""

from __future__ import annotations

import functools
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.course.browser.conftest import BROWSERS

ONLY_LOOPBACK = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
PATIENCE_MS = 240_000  # a machine with other tests on it starts a kernel of 30 MB slowly
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm"}

NOTEBOOK = "jupyterapp.shell.currentWidget"
RUN = """async ([code]) => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const heard = [];
  const future = kernel.requestExecute({ code });
  future.onIOPub = (message) => {
    if (message.header.msg_type === "stream") heard.push(message.content.text);
    if (message.header.msg_type === "error") heard.push(`${message.content.ename}: ${message.content.evalue}`);
  };
  await future.done;
  return heard.join("");
}"""
RUN_CELLS = """async ([first, last]) => {
  const notebook = jupyterapp.shell.currentWidget;
  for (let at = first; at < last; at++) {
    notebook.content.activeCellIndex = at;
    notebook.content.deselectAll();
    await jupyterapp.commands.execute("notebook:run-cell");
  }
}"""


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = SimpleHTTPRequestHandler.extensions_map | TYPES
    sent: dict[str, int]

    def send_header(self, keyword: str, value: str) -> None:
        super().send_header(keyword, value)
        if keyword == "Content-Length":
            self.sent[self.path.partition("?")[0]] = int(value)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # what is there without this server is in the site's own cache
        super().end_headers()

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@contextmanager
def served(folder: Path, sent: dict[str, int] | None = None) -> Iterator[str]:
    """The address at which a folder is served. ``sent`` gets the paths that are asked for, and their bytes."""
    kind = type("Serving", (_Quiet,), {"sent": {} if sent is None else sent})
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(kind, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def reader(chromium: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page of a Chromium of its own, of the same kind, and the addresses elsewhere that it asks for."""
    path = next(filter(None, map(shutil.which, BROWSERS)))
    browser = chromium.browser_type.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu", ONLY_LOOPBACK])
    page = browser.new_page(viewport={"width": 1300, "height": 1000})
    page.set_default_timeout(PATIENCE_MS)
    foreign: list[str] = []

    def asked(request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1", "data:", "blob:")):
            foreign.append(request.url)

    page.on("request", asked)
    yield page, foreign
    browser.close()


def open_lab(page: Any, address: str, name: str) -> None:
    """Opens a notebook of the site to work in, and waits until it is shown; others may be open from the last visit."""
    page.goto(f"{address}/lab/index.html?path=labs/{name}")
    page.wait_for_function(f"window.jupyterapp?.shell?.currentWidget?.context?.path === 'labs/{name}'")
    page.wait_for_function(f"{NOTEBOOK}.content.widgets?.length > 1")


def has_a_kernel(page: Any) -> None:
    """Waits until the notebook that was opened is shown and its kernel does nothing."""
    page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.content?.widgets?.length > 1")
    page.wait_for_function(f"{NOTEBOOK}.sessionContext.session?.kernel?.status === 'idle'")


def write(page: Any, at: int, source: str) -> None:
    """Give a cell this source."""
    page.evaluate(f"([at, text]) => {NOTEBOOK}.content.widgets[at].model.sharedModel.setSource(text)", [at, source])


def save(page: Any) -> None:
    """Save the notebook, as Ctrl+S does."""
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")


def run_code(page: Any, code: str) -> str:
    """What code prints in the notebook's kernel, and the error that it ends with."""
    heard: str = page.evaluate(RUN, [code])
    return heard


def run_cells(page: Any, first: int, last: int) -> None:
    """Run cells one after the other, as Shift+Enter does."""
    page.evaluate(RUN_CELLS, [first, last])


def notebook_of(page: Any) -> dict[str, Any]:
    """The notebook as the page would save it."""
    saved: dict[str, Any] = json.loads(page.evaluate(f"JSON.stringify({NOTEBOOK}.content.model.toJSON())"))
    return saved


def errors_of(notebook: dict[str, Any]) -> list[str]:
    """Each cell that ended with an error that it is not allowed to end with."""
    return [
        f"{cell['id']}: {output['ename']}: {output['evalue'][:200]}"
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        if output["output_type"] == "error" and "raises-exception" not in cell["metadata"].get("tags", ())
    ]
