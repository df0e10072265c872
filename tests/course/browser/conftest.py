"""One JupyterLab over its own copy of the labs, and one page of Chromium in which its notebooks are opened in turn."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.site.build import build
from mqlab.course.site.materials import materials
from mqlab.errors import MqlabError

ROOT = Path(__file__).resolve().parents[3]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--js-flags=--single-threaded"]
"""With one thread for JavaScript: pages compute beside other tests, and several threads cost them more time in all."""

START_SECONDS = 300
FIRST_PORT = 17_888  # JupyterLab takes another one near it if it is taken
PATIENCE_MS = 120_000
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {
        "windowingMode": "none"
    },  # every cell is in the page, also below its fold
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},  # no pop-ups
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},  # the next test finds a notebook as it was
}
SERVER = {
    "LabApp": {"expose_app_in_browser": True},  # for what a student does in the file browser and in the menus
    "LanguageServerManager": {"autodetect": False},  # it starts Node a dozen times to look for language servers
}
PAGE = {"buildCheck": False, "disabledExtensions": {"@jupyterlab/extensionmanager-extension": True}}
"""Both look at each load of the page whether something could be built or installed, and start Node for that."""

CLOSE_ALL = """() => {
  for (const widget of [...jupyterapp.shell.widgets("main")]) {
    if (widget.context?.model) widget.context.model.dirty = false;  // or it asked whether to save
    widget.close();
  }
}"""
OPEN = """async (path) => {
  const widget = await jupyterapp.commands.execute("docmanager:open", { path });
  await widget.context.sessionContext.ready;
}"""
CHANGE_THEME = """async (theme) => {
  await jupyterapp.restored;
  if (document.body.dataset.jpThemeName === theme) return;
  await jupyterapp.commands.execute("apputils:change-theme", { theme });
}"""


@dataclass
class JupyterLab:
    """A running server, the folder it serves, and the page that shows it.

    To load the page takes ten times as long as to open a notebook in it, so all tests have the same one.
    """

    address: str
    token: str
    folder: Path
    theme: str = ""
    page: Any = None

    def open(self, browser: Any, path: str) -> Any:
        """The page, with this notebook open, its kernel started, and no other notebook."""
        if self.page is None or self.page.is_closed():
            self.page = browser.new_page(viewport={"width": 1280, "height": 900})
            self.page.set_default_timeout(PATIENCE_MS)
            self.load("")
        self.page.evaluate(CHANGE_THEME, self.theme)
        self.page.locator(f"body[data-jp-theme-name='{self.theme}']").wait_for(state="attached")
        self.page.evaluate(CLOSE_ALL)
        self.page.evaluate(OPEN, path)
        self.is_idle()
        return self.page

    def load(self, path: str) -> None:
        """The page loaded anew, as in a new window, with this notebook open."""
        self.page.goto(f"{self.address}/lab{'/tree/' if path else ''}{path}?token={self.token}&reset")
        self.page.wait_for_function("window.jupyterapp")
        if path:
            self.is_idle()

    def leave(self) -> None:
        """Close what is open, unsaved, and end all kernels: one in an endless loop would compute beside all tests."""
        if self.page is not None and not self.page.is_closed():
            self.page.evaluate(CLOSE_ALL)
        end_kernels(self)

    def is_idle(self) -> None:
        """Waits until the kernel has nothing to do; the whole page is not searched, for it has all cells of a lab."""
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def start(folder: Path) -> tuple[JupyterLab, subprocess.Popen[bytes]]:
    settings = folder.parent / "settings"
    for name, values in SETTINGS.items():
        path = settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), "utf-8")
    config = folder.parent / "config"
    config.mkdir()
    (config / "jupyter_server_config.json").write_text(json.dumps(SERVER), "utf-8")
    (config / "labconfig").mkdir()
    (config / "labconfig" / "page_config.json").write_text(json.dumps(PAGE), "utf-8")
    environment = os.environ | {
        "JUPYTER_TOKEN": "browser-test",
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder.parent / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTER_RUNTIME_DIR": str(folder.parent / "runtime"),
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={FIRST_PORT}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--Application.log_level=ERROR",
    ]
    server = subprocess.Popen(command, cwd=folder, env=environment)
    told = folder.parent / "runtime" / f"jpserver-{server.pid}.json"
    deadline = time.monotonic() + START_SECONDS
    while not (told.exists() and answers(f"{address_in(told)}/api?token=browser-test")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.2)
        if server.returncode is not None or time.monotonic() > deadline:
            server.kill()
            raise RuntimeError("JupyterLab did not start; see its messages above")
    return JupyterLab(address_in(told), "browser-test", folder), server


def address_in(told: Path) -> str:
    """Where a server listens, by the file that it writes; empty while it writes."""
    with contextlib.suppress(ValueError):
        return f"http://127.0.0.1:{json.loads(told.read_text('utf-8'))['port']}"
    return ""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The machine's own Chromium; the test is skipped where there is none."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium here: looked for " + ", ".join(BROWSERS))
    playwright_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (make env brings it)"
    )
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def jupyterlab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterLab]:
    folder = tmp_path_factory.mktemp("jupyterlab") / "served"
    shutil.copytree(ROOT / "labs", folder / "labs", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    shutil.copytree(ROOT / "datasets", folder / "datasets")
    lab, server = start(folder)
    yield lab
    server.terminate()
    server.wait(START_SECONDS)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a course that has lab 00 and the pages around it."""
    try:
        materials()
    except MqlabError as missing:
        pytest.skip(f"the site's materials cannot be had here: {missing.text}")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "labs", folder / "labs", ignore=shutil.ignore_patterns("0[1-9]*", "1[0-9]*"))
    for name in ("solutions", "datasets"):
        (folder / name).symlink_to(ROOT / name)
    build(folder / "out", folder, ("00",))
    return folder / "out"


def end_kernels(lab: JupyterLab) -> None:
    """As after a night."""
    sessions = f"{lab.address}/api/sessions"
    with urllib.request.urlopen(f"{sessions}?token={lab.token}") as answer:
        found = json.loads(answer.read())
    for session in found:
        ended = urllib.request.Request(f"{sessions}/{session['id']}?token={lab.token}", method="DELETE")
        urllib.request.urlopen(ended).close()


@pytest.fixture(
    params=["JupyterLab Light", pytest.param("JupyterLab Dark", marks=pytest.mark.long)], ids=["light", "dark"]
)
def jupyterlab(request: pytest.FixtureRequest, jupyterlab_server: JupyterLab) -> Iterator[JupyterLab]:
    """JupyterLab in one theme; what a test opens is closed after it."""
    jupyterlab_server.theme = request.param
    yield jupyterlab_server
    jupyterlab_server.leave()


failed_call = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[failed_call] = item.stash.get(failed_call, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def a_failure_leaves_pictures(request: pytest.FixtureRequest, chromium: Any, tmp_path: Path) -> Iterator[None]:
    """Of every page that was open when a test failed; they lie with the test's other files."""
    yield
    if request.node.stash.get(failed_call, False):
        for number, page in enumerate(page for context in chromium.contexts for page in context.pages):
            page.screenshot(path=tmp_path / f"page-{number}.png")
            page.close()  # what comes after it begins with a new one
