"""The folder ``static/pyodide`` of the site: the interpreter, the wheels, and the list of what needs which of them.

    pyodide.asm.mjs       with the mend of two lines below
    pyodide-lock.json     a package for each wheel; ``import mqlab`` in a cell loads mqlab and what it depends on

Pyodide reads the list before a cell runs, so no notebook needs a cell that installs something.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mqlab.course.site.materials import PYODIDE, PYTHON, Materials
from mqlab.errors import UsageError

INTERPRETER = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "package.json")
KERNELS_WHEELS = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi"
OTHER_WIDGETS = "widgetsnbextension-3"
"""JupyterLite has stand-ins for two versions; ipywidgets 8 goes with the other one."""
JEDI = "0.20.1"
IN_THE_PAGE = {
    "sys_platform": "emscripten",
    "platform_system": "Emscripten",
    "os_name": "posix",
    "python_version": PYTHON,
    "extra": "",
}

SAVES = "const stackState=new StackState;return{threadState,stackState,suspender:suspenderGlobal.value}"
RESTORES = "function restoreState(state){state.stackState.restore();"
MENDS = {
    SAVES: "const stackState=new StackState;const at=threadState+52>>>2;const currentFrame=HEAPU32[at];HEAPU32[at]=0;"
    "return{threadState,stackState,currentFrame,suspender:suspenderGlobal.value}",
    RESTORES: RESTORES + "HEAPU32[state.threadState+52>>>2]=state.currentFrame;",
}
"""Pyodide 314.0.7 dies in the collector and in a tracer while a stack waits: the waiting stack's frames are still those
of its thread (Pyodide's issue 6464, mended upstream after this release). To be dropped with the next release."""


def put_python(out: Path, fetched: Materials) -> None:
    """Fill ``out``, which must not exist. Raises UsageError for a Pyodide that the mend does not fit."""
    out.mkdir(parents=True)
    for name in INTERPRETER:
        shutil.copyfile(fetched.pyodide / name, out / name)
    program = out / "pyodide.asm.mjs"
    program.write_text(mended(program.read_text("utf-8")), "utf-8")

    wheels = [*fetched.wheels.glob("*.whl"), *(fetched.builder / KERNELS_WHEELS).glob("*.whl")]
    for wheel in wheels:
        if not wheel.name.startswith(OTHER_WIDGETS):
            shutil.copyfile(wheel, out / wheel.name)
    _write_wheel(out, "mqlab", _package(Path(str(files("mqlab")))), _every_need("mqlab"))
    # IPython runs without jedi, but what installs it does not; a wheel of nothing stands for 5 MB of completions.
    _write_wheel(out, "jedi", {}, [], version=JEDI)
    # markupsafe's wheels are compiled, but each has the same functions in Python.
    pure = Path(str(files("markupsafe")))
    _write_wheel(out, "markupsafe", {f"markupsafe/{name}": pure / name for name in ("__init__.py", "_native.py")}, [])

    lock = json.loads((fetched.pyodide / "pyodide-lock.json").read_text("utf-8"))
    lock["packages"] = packages(sorted(out.glob("*.whl")))
    (out / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")


def mended(program: str) -> str:
    """Pyodide's program with each mend applied. Raises UsageError if one of them does not fit exactly once."""
    for before, after in MENDS.items():
        if program.count(before) != 1:
            raise UsageError(
                f"this is not the program of Pyodide {PYODIDE}: a line that must be changed is in it "
                f"{program.count(before)} times",
                hint="another release may have the change already; see mqlab/course/site/python.py",
            )
        program = program.replace(before, after)
    return program


def packages(wheels: list[Path]) -> dict[str, Any]:
    """The packages of Pyodide's list: name, file, digest, what can be imported, and what else of the list it needs."""
    described = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            about = next(name for name in names if name.endswith(".dist-info/METADATA"))
            metadata = HeaderParser().parsestr(archive.read(about).decode())
        described[canonicalize_name(metadata["Name"])] = (wheel, metadata, names)
    return {
        name: {
            "name": name,
            "version": metadata["Version"],
            "file_name": wheel.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": sorted(set(_imported(names))),
            "depends": sorted(_needed(metadata.get_all("Requires-Dist") or []) & described.keys()),
            "unvendored_tests": False,
        }
        for name, (wheel, metadata, names) in described.items()
    }


def _needed(requirements: list[str]) -> set[str]:
    """The names of what a package requires in a page."""
    wanted = map(Requirement, requirements)
    return {
        canonicalize_name(requirement.name)
        for requirement in wanted
        if requirement.marker is None or requirement.marker.evaluate(IN_THE_PAGE)
    }


def _every_need(name: str) -> list[str]:
    """The names of all that a package may need, with any extra; those that are wheels of the page are loaded."""
    names = {Requirement(line).name for line in importlib.metadata.requires(name) or []}
    return sorted(names - {name})


def _imported(names: list[str]) -> Iterator[str]:
    for name in names:
        top, _, inside = name.partition("/")
        if inside.endswith(".py") and "." not in top:
            yield top
        elif not inside and top.endswith(".py"):
            yield top.removesuffix(".py")


def _package(folder: Path) -> dict[str, Path]:
    """The files of a package, by their names in a wheel."""
    return {
        f"{folder.name}/{path.relative_to(folder).as_posix()}": path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def _write_wheel(out: Path, name: str, contents: dict[str, Path], requires: list[str], version: str = "") -> None:
    """A pure wheel of files that are here, the same bytes each time."""
    version = version or importlib.metadata.version(name)
    about = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    texts = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(out / f"{name}-{version}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, data in [(inside, path.read_bytes()) for inside, path in contents.items()]:
            archive.writestr(zipfile.ZipInfo(inside), data, zipfile.ZIP_DEFLATED)
        for inside, text in texts.items():
            archive.writestr(zipfile.ZipInfo(inside), text, zipfile.ZIP_DEFLATED)
