"""The folder ``static/pyodide`` of the site: the interpreter, the wheels, and the list of what needs which of them.

    pyodide.asm.mjs       with the fix of two lines below
    pyodide.asm.wasm      packed with gzip, because few servers pack it: 3.5 MB instead of 9.6
    *.tar.bz2             each wheel without what no page reads, packed as a whole: two thirds of the wheel's bytes; the
                          name has the digest, so that no cache takes an old one for it
    pyodide-lock.json     a package for each of them; ``import mqlab`` in a cell loads mqlab and what it depends on

Pyodide reads the list before a cell runs, so no notebook needs a cell that installs something.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.metadata
import io
import json
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mqlab.course.material import DATASETS, PACKAGE, SHIPPED
from mqlab.course.site.materials import PYODIDE, PYTHON, Materials
from mqlab.errors import UsageError

INTERPRETER = ("python_stdlib.zip", "package.json")
PROGRAM = "pyodide.asm.wasm"
PACKED = f"{PROGRAM}.packed"
"""Not .gz: some servers say of such a file that it is to be unpacked on the way."""
KERNELS_WHEELS = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/static/pypi"
OTHER_WIDGETS = "widgetsnbextension-3"
"""JupyterLite has stand-ins for two versions; ipywidgets 8 goes with the other one."""
JEDI = "0.20.1"
READ_BY_SPARK = ("small-day.tar.xz",)
"""Archives that no lab in a page reads."""
IN_THE_PAGE = {
    "sys_platform": "emscripten",
    "platform_system": "Emscripten",
    "os_name": "posix",
    "python_version": PYTHON,
    "extra": "",
}

UNREAD = (
    "*.data/*",
    "*/labextension/*",
    "*/nbextension/*",
    "*/tests/*",
    "*/sphinxext*",
    "wcwidth/table_grapheme_overrides/_known_*",
)
"""What no page reads of a wheel: copies of extensions that JupyterLite has, and widths in certain terminals."""
LEXERS = re.compile(
    "__init__|_mapping|_(css|lilypond|scheme)_builtins|css|data|html|javascript|jvm|lilypond|lisp|markup|perl|python"
    "|ruby|shell|special"
)
"""Pygments has 1 MB of languages; IPython imports these."""

SAVES = "const stackState=new StackState;return{threadState,stackState,suspender:suspenderGlobal.value}"
RESTORES = "function restoreState(state){state.stackState.restore();"
STACKS = {
    SAVES: "const stackState=new StackState;const at=threadState+52>>>2;const currentFrame=HEAPU32[at];HEAPU32[at]=0;"
    "return{threadState,stackState,currentFrame,suspender:suspenderGlobal.value}",
    RESTORES: RESTORES + "HEAPU32[state.threadState+52>>>2]=state.currentFrame;",
}
"""Pyodide 314.0.7 dies in the collector and in a tracer while a stack waits: the waiting stack's frames are still those
of its thread (Pyodide's issue 6464, fixed upstream after this release). To be dropped with the next release."""
ASKS, STREAMS = f'_(e+"{PROGRAM}")', "WebAssembly.instantiateStreaming(n,s)"
UNPACKS = {
    ASKS: f'_(e+"{PACKED}")',
    STREAMS: 'WebAssembly.instantiateStreaming(n.then(r=>new Response(r.body.pipeThrough(new DecompressionStream("gzip"'
    ')),{headers:{"Content-Type":"application/wasm"}})),s)',
}
MENDS = {"pyodide.asm.mjs": STACKS, "pyodide.mjs": UNPACKS}


def put_python(out: Path, fetched: Materials, datasets: Path) -> None:
    """Fill ``out``, which must not exist. Raises UsageError for a Pyodide that the fix does not fit.

    ``datasets``: the folder with the archives that labs read.
    """
    out.mkdir(parents=True)
    for name in INTERPRETER:
        shutil.copyfile(fetched.pyodide / name, out / name)
    for name, mends in MENDS.items():
        (out / name).write_text(mended((fetched.pyodide / name).read_text("utf-8"), mends), "utf-8")
    (out / PACKED).write_bytes(gzip.compress((fetched.pyodide / PROGRAM).read_bytes(), mtime=0))

    wheels = [*fetched.wheels.glob("*.whl"), *(fetched.builder / KERNELS_WHEELS).glob("*.whl")]
    for wheel in wheels:
        if not wheel.name.startswith(OTHER_WIDGETS):
            put_lean(wheel, out)
    shipped = f"mqlab/{(SHIPPED / DATASETS).relative_to(PACKAGE).as_posix()}"
    read = {f"{shipped}/{path.name}": path for path in datasets.iterdir() if path.name not in READ_BY_SPARK}
    _write_wheel(out, "mqlab", _package(PACKAGE) | read, _every_need("mqlab"))
    # IPython runs without jedi, but what installs it does not; a wheel of nothing stands for 5 MB of completions.
    _write_wheel(out, "jedi", {}, [], version=JEDI)
    # markupsafe's wheels are compiled, but each has the same functions in Python.
    pure = Path(str(files("markupsafe")))
    _write_wheel(out, "markupsafe", {f"markupsafe/{name}": pure / name for name in ("__init__.py", "_native.py")}, [])

    lock = json.loads((fetched.pyodide / "pyodide-lock.json").read_text("utf-8"))
    lock["packages"] = packages(sorted(out.glob("*.whl")))
    (out / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")


def mended(program: str, mends: dict[str, str]) -> str:
    """Pyodide's program with each fix applied. Raises UsageError if one of them does not fit exactly once."""
    for before, after in mends.items():
        if program.count(before) != 1:
            raise UsageError(
                f"this is not the program of Pyodide {PYODIDE}: a line that must be changed is in it "
                f"{program.count(before)} times",
                hint="another release may have the change already; see mqlab/course/site/python.py",
            )
        program = program.replace(before, after)
    return program


def put_lean(wheel: Path, out: Path) -> None:
    """A wheel without what no page reads of it."""
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED) as lean:
        for name in archive.namelist():
            if is_read(name):
                lean.writestr(zipfile.ZipInfo(name), archive.read(name), zipfile.ZIP_DEFLATED)


def is_read(name: str) -> bool:
    """Whether a page may read this file of a wheel."""
    folder, _, file = name.rpartition("/")
    is_other_language = folder == "pygments/lexers" and not LEXERS.fullmatch(file.removesuffix(".py"))
    return not is_other_language and not any(fnmatch(name, pattern) for pattern in UNREAD)


def packages(wheels: list[Path]) -> dict[str, Any]:
    """The packages of Pyodide's list: name, file, digest, what can be imported, and what else of the list it needs.

    Each wheel becomes a file that has its digest in its name.
    """
    described = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            about = next(name for name in names if name.endswith(".dist-info/METADATA"))
            metadata = HeaderParser().parsestr(archive.read(about).decode())
            data = packed_whole(archive)
        digest = hashlib.sha256(data).hexdigest()
        name, version, *_ = wheel.name.split("-")
        file = wheel.with_name(f"{name}-{version}-0{digest[:12]}.tar.bz2")
        file.write_bytes(data)
        wheel.unlink()
        described[canonicalize_name(metadata["Name"])] = (file.name, digest, metadata, names)
    return {
        name: {
            "name": name,
            "version": metadata["Version"],
            "file_name": file_name,
            "install_dir": "site",
            "sha256": digest,
            "package_type": "package",
            "imports": sorted(set(_imported(names))),
            "depends": sorted(_needed(metadata.get_all("Requires-Dist") or []) & described.keys()),
            "unvendored_tests": False,
        }
        for name, (file_name, digest, metadata, names) in described.items()
    }


def packed_whole(wheel: zipfile.ZipFile) -> bytes:
    """The files of a wheel as a .tar.bz2, the same bytes each time. Pyodide unpacks both, and no .tar.xz."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:bz2") as archive:
        for name in wheel.namelist():
            data = wheel.read(name)
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return whole.getvalue()


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
    """The files of a package that a page reads, by their names in a wheel."""
    names = {path.relative_to(folder.parent).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path for name, path in names.items() if "__pycache__" not in path.parts and is_read(name)}


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
