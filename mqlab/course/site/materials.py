"""What the site and the slides are built from and mqlab does not have: fetched once, pinned by hash, kept in a cache.

    FOLDER/pyodide/     npm's pyodide: the interpreter and its standard library, without packages
    FOLDER/wheels/      pure wheels for the page           wheels_of_the_page.txt
    FOLDER/builder/     jupyterlite, installed apart       wheels_of_the_builder.txt
    slides-VERSION/     npm's reveal.js                    for the slides alone

A folder that is complete is used without a network.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import platformdirs

from mqlab.errors import MqlabError, UsageError

PYODIDE = "314.0.7"
PYODIDE_SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
REVEAL = "6.0.2"
REVEAL_SHA256 = "2f0c20bfb02447a198a1ebe8a8c097a5437d035caa38f2820bf4ba887a3eac91"
PYTHON = "3.14"
"""The version of Python in that Pyodide."""


@dataclass(frozen=True, slots=True)
class Materials:
    """Where the three kinds are."""

    pyodide: Path
    wheels: Path
    builder: Path


def materials(folder: Path | None = None) -> Materials:
    """What is in the folder (default: the cache of this user); what is missing is fetched.

    Raises MqlabError where npm or pip is missing or cannot fetch, UsageError for an archive that is another one.
    """
    folder = folder or _cache() / f"site-{_pins()}"
    fetched = Materials(folder / "pyodide", folder / "wheels", folder / "builder")
    for part, fetch in ((fetched.pyodide, _pyodide), (fetched.wheels, _wheels), (fetched.builder, _builder)):
        _fetched(part, fetch)
    return fetched


def reveal_js(folder: Path | None = None) -> Path:
    """Returns the folder of npm's reveal.js (default: in the cache of this user). Raises what ``materials`` raises."""
    return _fetched((folder or _cache() / f"slides-{REVEAL}") / "reveal.js", _reveal)


def _cache() -> Path:
    return platformdirs.user_cache_path("mqlab", appauthor=False)


def _fetched(part: Path, fetch: Callable[[Path], None]) -> Path:
    """The part, fetched where it is missing: as a whole or not at all."""
    if not part.is_dir():
        part.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=part.parent) as draft:
            fetch(Path(draft) / part.name)
            try:
                (Path(draft) / part.name).rename(part)
            except OSError:  # another build was faster
                if not part.is_dir():
                    raise
    return part


def listed(name: str) -> str:
    """One of the two lists of wheels, as pip reads it."""
    return files("mqlab.course.site").joinpath(name).read_text("utf-8")


def _pins() -> str:
    whole = PYODIDE_SHA256 + listed("wheels_of_the_page.txt") + listed("wheels_of_the_builder.txt")
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def _pyodide(out: Path) -> None:
    _from_npm("pyodide", PYODIDE, PYODIDE_SHA256, out)


def _reveal(out: Path) -> None:
    _from_npm("reveal.js", REVEAL, REVEAL_SHA256, out)


def _from_npm(package: str, version: str, sha256: str, out: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise MqlabError(f"npm is missing: npm's package {package} is needed", hint="install Node.js, which has npm")
    folder = out.parent
    _run([npm, "pack", "--silent", f"{package}@{version}"], folder)
    archive = folder / f"{package}-{version}.tgz"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != sha256:
        raise UsageError(f"{package} {version} of this registry has other bytes: sha256 {digest}")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (folder / "package").rename(out)


def _wheels(out: Path) -> None:
    out.mkdir()
    only = ["--only-binary", ":all:", "--platform", "any", "--abi", "none", "--python-version", PYTHON]
    _pip(["download", *only, "--dest", str(out)], "wheels_of_the_page.txt", out.parent)


def _builder(out: Path) -> None:
    _pip(["install", "--target", str(out)], "wheels_of_the_builder.txt", out.parent)


def _pip(arguments: list[str], wheels: str, folder: Path) -> None:
    """pip of this environment; one made by uv has none, and borrows it."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
        pip = [sys.executable, "-m", "pip"]
    else:
        pip = ["uv", "tool", "run", "pip", "--python", sys.executable]
    wanted = folder / wheels
    wanted.write_text(listed(wheels), "utf-8")
    always = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "-r", str(wanted)]
    _run([*pip, *arguments, *always], folder)


def _run(command: list[str], folder: Path) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise MqlabError(f"{command[0]} is missing") from None
    except subprocess.CalledProcessError as failed:
        why = (failed.stderr.strip() or failed.stdout.strip()).splitlines()[-1:]
        raise MqlabError(f"{' '.join(command[:4])} failed: {''.join(why)}", hint="is there a network?") from None
