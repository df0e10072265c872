"""`mqlab lab`: start JupyterLab on the index of the labs and print its address once it answers.

    mqlab lab ── starts ──> jupyterlab (a process of its own) ── answers on /api ──> address printed, browser opened
       Ctrl-C ── SIGTERM ──> ends it and its kernels

Options after ``--`` go to JupyterLab unchanged.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import click

import mqlab.errors
from mqlab.cli.my_labs import copy_labs, draw_progress
from mqlab.course.material import COPIES, JUPYTERLAB, LABS, working_root

FIRST_PORT, PORTS_TRIED = 8888, 50
ANY_PORT = range(18_000, 20_000)
"""No system gives one of them to a connection before JupyterLab listens at it."""
START_SECONDS = 120


def first_page(root: Path, path: str = "") -> str:
    """The page that JupyterLab opens first: the first one of a path, or the index; the copy, else the original.

    UsageError for an unknown path.
    """
    name = "index.ipynb"
    if path:
        from mqlab.course.words.paths import path_named, path_parts

        name = path_parts(path_named(path))[0].page
    for page in (f"{COPIES}/{name}", f"{LABS}/{name}", LABS):
        if (root / page).exists():
            return f"/lab/tree/{page}"
    return "/lab"


@contextlib.contextmanager
def page_template(static: Path) -> Iterator[list[str]]:
    """JupyterLab's options for its own page with one script more, which closes the file list where there is no room.

    No option without that page in ``static``, as in a JupyterLab of another form.
    """
    page = static / "index.html"
    text = page.read_text("utf-8") if page.is_file() else ""
    if "</body>" not in text:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="mqlab-lab-") as folder:
        script = (JUPYTERLAB / "narrow.js").read_text("utf-8")
        changed = text.replace("</body>", f"<script>{script}</script></body>", 1)
        (Path(folder) / page.name).write_text(changed, "utf-8")
        yield [f"--LabApp.templates_dir={folder}", "--LabApp.expose_app_in_browser=True"]


def choose_port(ip: str, wanted: int | None) -> int:
    """``wanted`` if it is free (0: any), or the first free port from 8888 on. UsageError if none can be used."""
    usual = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED)
    for port in usual if wanted is None else [wanted] if wanted else random.sample(ANY_PORT, PORTS_TRIED):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ip, port))
            except OSError as error:
                reason = error.strerror
                continue
            chosen: int = probe.getsockname()[1]
            return chosen
    taken = f"port {wanted}" if wanted is not None else f"ports {FIRST_PORT} to {FIRST_PORT + PORTS_TRIED - 1}"
    raise mqlab.errors.UsageError(
        f"{taken} cannot be used: {reason}", hint="give another --port (make lab PORT=9000), or 0 for any free one"
    )


def server_command(root: Path, ip: str, port: int, page: str, extra: tuple[str, ...]) -> list[str]:
    """The command line of the JupyterLab process; its token goes through the environment, which others cannot list."""
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--ServerApp.root_dir={root}",
        f"--ServerApp.ip={ip}",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--LabApp.default_url={page}",
        "--Application.log_level=WARN",
        f"--LabApp.app_settings_dir={JUPYTERLAB}",  # overrides.json: no question about news on the first page
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # as in a container; JupyterLab refuses to run as root without it
        command.append("--allow-root")
    return [*command, *extra]


def wait_until_it_answers(server: subprocess.Popen[bytes], ip: str, port: int) -> None:
    """Return once ``/api`` answers. MqlabError if the process ends or does not answer in time."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise mqlab.errors.MqlabError(f"JupyterLab ended with code {server.returncode}; see its messages above")
        connection = http.client.HTTPConnection(ip, port, timeout=5)
        try:
            connection.request("GET", "/api")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise mqlab.errors.MqlabError(f"JupyterLab did not answer on {ip}:{port} within {START_SECONDS} s")


def may_open_browser() -> bool:
    """Whether a browser started here would appear in front of the user: not over ssh, not without a display."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def stop(server: subprocess.Popen[bytes]) -> None:
    """End JupyterLab and its kernels; kill it if it does not end in 15 s."""
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


@click.command(short_help="Open JupyterLab on the labs.", context_settings={"ignore_unknown_options": True})
@click.option("--port", type=click.IntRange(0, 65535), help="The port; 0: any free one. Default: 8888 or the next.")
@click.option("--ip", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option("--path", default="", metavar="NAME", help="Open the first page of a path of the index, as evening.")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED)
def lab(port: int | None, ip: str, no_browser: bool, path: str, extra: tuple[str, ...]) -> None:
    """Open JupyterLab on the index of the labs and print its address. You work in copies, in the folder my-labs.

    Options after -- go to JupyterLab. Ctrl-C ends it. On a machine without a display the address is only printed.

    Example:  mqlab lab --path evening
    """
    # 1. Choose the folder, the port and the token; the learner works in copies.
    root = working_root(Path.cwd())
    copy_labs(root)
    draw_progress(root)
    page = first_page(root, path)
    chosen = choose_port(ip, port)
    token = os.environ.get("JUPYTER_TOKEN") or secrets.token_hex(16)
    local = "127.0.0.1" if ip in ("0.0.0.0", "", "*") else ip
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends it like Ctrl-C
    # 2. A session of its own: Ctrl-C reaches only this process, which then ends the server and its kernels in order.
    # Its terminals find `mqlab`, also when the environment is not activated.
    commands = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "JUPYTER_TOKEN": token, "PATH": commands}
    with page_template(Path(sys.prefix) / "share" / "jupyter" / "lab" / "static") as options:
        command = server_command(root, ip, chosen, page, (*options, *extra))
        server = subprocess.Popen(command, env=environment, start_new_session=True)
        # 3. The address is printed only when the server answers there.
        try:
            wait_until_it_answers(server, local, chosen)
            address = f"http://{local}:{chosen}{page}?token={token}"
            click.echo(f"The labs are at\n\n    {address}\n\nCtrl-C here ends them.")
            if not no_browser and may_open_browser():
                webbrowser.open(address)
            server.wait()
        except KeyboardInterrupt:
            click.echo("Ending.", err=True)
        finally:
            stop(server)
    # 4. SIGTERM is our own way to end it; any other code is a failure of JupyterLab.
    if server.returncode not in (0, -signal.SIGTERM):
        raise mqlab.errors.MqlabError(f"JupyterLab ended with code {server.returncode}")
