"""`mqlab doctor`: what is installed on this machine, what each missing part switches off, and how to get it.

It is the first thing to run when something does not work.

    part      required  what it is for
    python    yes       everything                 java      Spark: lab 10
    kernel    yes       notebooks                  dot       Graphviz pictures (without it: text)
    disk      yes       stores, environments       sandbox   grading answers of other people
    memory              Spark's default heap       browser   the tests that click through a lab
    explorers           faults, forks and other settings in explorers

It repairs nothing; it only reports.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from mqlab.errors import MqlabError
from mqlab.extras import install

MEGABYTE = 1 << 20
DISK_MEGABYTES = 500  # a few stores of labs 01 and 10, and Spark's shuffle files
MEMORY_MEGABYTES = 3072  # Spark's heap of 2 GiB, its Python workers and a notebook
PROBE_SECONDS = 20
NAME_COLUMNS = 9
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "firefox")
MAC_BROWSERS = ("Google Chrome", "Chromium", "Firefox", "Microsoft Edge", "Safari")


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """One line of the report. ``found`` is what was found; the last two are empty if nothing is missing."""

    name: str
    present: bool
    required: bool
    found: str
    switches_off: str = ""
    get: str = ""


def package_command(debian: str, fedora: str, mac: str) -> str:
    """The command that installs a system package on this machine; the arguments are its names on three systems."""
    if sys.platform == "darwin":
        return f"brew install {mac}" if mac else ""
    if shutil.which("apt-get"):
        return f"sudo apt-get install -y {debian}"
    if shutil.which("dnf"):
        return f"sudo dnf install -y {fedora}"
    return f"install {debian} with your system's package manager"


def check_python() -> InstalledPart:
    """The interpreter that runs this."""
    version = platform.python_version()
    fits = (3, 11) <= sys.version_info[:2] < (3, 14)
    python = f"{version} at {sys.executable}"
    return (
        InstalledPart("python", fits, True, python)
        if fits
        else InstalledPart(
            "python",
            False,
            True,
            python,
            "everything: 3.11, 3.12 or 3.13 is needed",
            "make clean env PYTHON=python3.12",
        )
    )


def check_kernel() -> InstalledPart:
    """JupyterLab and the kernel that notebooks ask for."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager
    except ImportError:
        return InstalledPart("kernel", False, True, "JupyterLab is not installed", "all notebooks", install("course"))
    spec = KernelSpecManager().find_kernel_specs().get("python3")
    if spec is None:
        return InstalledPart(
            "kernel", False, True, "JupyterLab without a python3 kernel", "all notebooks", install("course")
        )
    return InstalledPart("kernel", True, True, f"python3 at {spec}")


def check_java() -> InstalledPart:
    """The Java that Spark would run on."""
    off = "Spark: labs 10 to 13"
    try:
        from mqlab.data.spark.java import find_java

        java = find_java()
    except MqlabError as error:
        return InstalledPart("java", False, False, error.text, off, error.hint)
    return InstalledPart("java", True, False, f"{java.version} from {java.source} at {java.java}")


def check_explorers() -> InstalledPart:
    """What the live form of explorers needs."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return InstalledPart("explorers", True, False, f"anywidget {version('anywidget')}")
    except PackageNotFoundError:
        off = "faults, forks and other settings in explorers; their static form is shown instead"
        return InstalledPart("explorers", False, False, "anywidget is not installed", off, install("course"))


def check_dot() -> InstalledPart:
    """Graphviz's layout program."""
    dot = shutil.which("dot")
    if dot:
        return InstalledPart("dot", True, False, f"Graphviz at {dot}")
    return InstalledPart(
        "dot",
        False,
        False,
        "no Graphviz program 'dot'",
        "pictures laid out by Graphviz; their text is shown instead",
        package_command("graphviz", "graphviz", "graphviz"),
    )


def check_sandbox() -> InstalledPart:
    """bubblewrap, started once: it may be installed and still not be allowed to run."""
    off = "grading other people's answers in a sandbox"
    # 1. Is there a bubblewrap at all?
    if sys.platform != "linux":
        return InstalledPart(
            "sandbox", False, False, f"bubblewrap does not run on {platform.system()}", off, "grade on Linux"
        )
    bwrap = shutil.which("bwrap")
    get = package_command("bubblewrap", "bubblewrap", "")
    if bwrap is None:
        return InstalledPart("sandbox", False, False, "no bubblewrap program 'bwrap'", off, get)
    # 2. Start it once in new namespaces: many systems install it but do not allow ordinary users to use it.
    try:
        tried = subprocess.run(
            [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return InstalledPart("sandbox", False, False, f"{bwrap} does not run: {error}", off, get)
    if tried.returncode:
        said = tried.stderr.strip() or f"exit code {tried.returncode}"
        return InstalledPart(
            "sandbox", False, False, f"{bwrap} does not run: {said}", off, "allow user namespaces for bwrap"
        )
    return InstalledPart("sandbox", True, False, f"bubblewrap at {bwrap}")


def check_browser() -> InstalledPart:
    """A browser that can open the labs."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return InstalledPart("browser", True, False, path)
    if sys.platform == "darwin":
        for name in MAC_BROWSERS:
            application = Path("/Applications") / f"{name}.app"
            if application.exists():
                return InstalledPart("browser", True, False, str(application))
    return InstalledPart(
        "browser",
        False,
        False,
        "no browser on this machine",
        "the tests marked browser; the labs are still served: open the printed address from another machine",
        package_command("chromium", "chromium", "--cask chromium"),
    )


def check_disk() -> InstalledPart:
    """Free space in the current folder's file system."""
    free = shutil.disk_usage(Path.cwd()).free // MEGABYTE
    enough = free >= DISK_MEGABYTES
    off = "" if enough else f"labs that write stores need about {DISK_MEGABYTES} MB"
    return InstalledPart(
        "disk", enough, True, f"{free:,} MB free at {Path.cwd()}", off, "" if enough else "free some space"
    )


def check_memory() -> InstalledPart:
    """The machine's memory."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MEGABYTE
    except (ValueError, OSError):
        return InstalledPart("memory", True, False, "unknown on this system")
    enough = total >= MEMORY_MEGABYTES
    off = "" if enough else "Spark with its default heap of 2 GiB"
    get = "" if enough else "session(**{'spark.driver.memory': '1g'})"
    return InstalledPart("memory", enough, False, f"{total:,} MB", off, get)


CHECKS: tuple[Callable[[], InstalledPart], ...] = (
    check_python,
    check_kernel,
    check_explorers,
    check_java,
    check_dot,
    check_sandbox,
    check_browser,
    check_disk,
    check_memory,
)


def examine() -> list[InstalledPart]:
    """All parts, in the order shown. Takes about a second, because it starts some programs to see whether they run."""
    return [check() for check in CHECKS]


def as_text(parts: list[InstalledPart]) -> str:
    """The report for people: mark, part, what was found; below a missing part, its remedy."""
    lines = []
    for part in parts:
        mark = "ok  " if part.present else "MISS" if part.required else "none"
        lines.append(f"{mark}  {part.name:<{NAME_COLUMNS}} {part.found}")
        if not part.present:
            lines.append(f"      {'':<{NAME_COLUMNS}} switches off: {part.switches_off}")
            lines.append(f"      {'':<{NAME_COLUMNS}} to get it:    {part.get}")
    return "\n".join(lines)


@click.command(short_help="Show what is installed and what each missing part switches off.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout and nothing else.")
def doctor(as_json: bool) -> None:
    """Show what is installed on this machine, what each missing part switches off, and how to get it.

    Exit code 0 if everything required is present, 1 if not.

    Example:  mqlab doctor --json
    """
    parts = examine()
    ready = all(part.present for part in parts if part.required)
    if as_json:
        click.echo(json.dumps({"ready": ready, "parts": [asdict(part) for part in parts]}, ensure_ascii=False))
    else:
        click.echo(as_text(parts))
        click.echo("Ready." if ready else "Not ready: see the lines marked MISS.", err=True)
    raise click.exceptions.Exit(0 if ready else 1)
