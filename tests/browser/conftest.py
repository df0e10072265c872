"""A JupyterLab for each theme over its own copy of the labs, and a Chromium to look at it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
START_SECONDS = 300
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {
        "windowingMode": "none"
    },  # every cell is in the page, also below its fold
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},  # no pop-ups
}


@dataclass(frozen=True)
class JupyterLab:
    """A running server: ``address`` with its token, and the folder it serves."""

    address: str
    token: str
    folder: Path

    def url(self, path: str) -> str:
        return f"{self.address}/lab/tree/{path}?token={self.token}&reset"


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def start(folder: Path, theme: str) -> tuple[JupyterLab, subprocess.Popen[bytes]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = folder.parent / "settings"
    for name, values in (SETTINGS | {"@jupyterlab/apputils-extension/themes": {"theme": theme}}).items():
        path = settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), "utf-8")
    environment = os.environ | {
        "JUPYTER_TOKEN": "browser-test",
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder.parent / "workspaces"),
        "JUPYTER_CONFIG_DIR": str(folder.parent / "config"),
    }
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.root_dir={folder}",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--Application.log_level=ERROR",
    ]  # fmt: skip
    server = subprocess.Popen(command, cwd=folder, env=environment)
    lab = JupyterLab(f"http://127.0.0.1:{port}", "browser-test", folder)
    deadline = time.monotonic() + START_SECONDS
    while not answers(f"{lab.address}/api?token={lab.token}"):
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.2)
        if server.returncode is not None or time.monotonic() > deadline:
            server.kill()
            raise RuntimeError("JupyterLab did not start; see its messages above")
    return lab, server


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
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def jupyterlab_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], JupyterLab]]:
    """``jupyterlab_in(theme)``: the theme's server, started when it is first asked for."""
    started: dict[str, tuple[JupyterLab, subprocess.Popen[bytes]]] = {}

    def of(theme: str) -> JupyterLab:
        if theme not in started:
            folder = tmp_path_factory.mktemp("jupyterlab") / "served"
            shutil.copytree(ROOT / "labs", folder / "labs", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
            shutil.copytree(ROOT / "datasets", folder / "datasets")
            started[theme] = start(folder, theme)
        return started[theme][0]

    yield of
    for _, server in started.values():
        server.terminate()
    for _, server in started.values():
        server.wait(START_SECONDS)


def end_kernels(lab: JupyterLab, path: str = "") -> None:
    """Ends the kernel of a notebook, as after a night; without a path those of all notebooks."""
    sessions = f"{lab.address}/api/sessions"
    with urllib.request.urlopen(f"{sessions}?token={lab.token}") as answer:
        found = json.loads(answer.read())
    for session in (one for one in found if path in ("", one["path"])):
        ended = urllib.request.Request(f"{sessions}/{session['id']}?token={lab.token}", method="DELETE")
        urllib.request.urlopen(ended).close()


@pytest.fixture(
    params=["JupyterLab Light", pytest.param("JupyterLab Dark", marks=pytest.mark.long)], ids=["light", "dark"]
)
def jupyterlab(request: pytest.FixtureRequest, jupyterlab_in: Callable[[str], JupyterLab]) -> Iterator[JupyterLab]:
    """JupyterLab in one theme; no two tests open the same notebook of the same theme. Its kernels end with the test."""
    lab = jupyterlab_in(request.param)
    yield lab
    end_kernels(lab)  # one that was left in an endless loop would compute on beside all other tests
