"""The Python that Spark starts for its workers: this one, without the packed copy of PySpark that Spark puts before it.

    PYTHONPATH as Spark makes it      pyspark.zip : py4j-src.zip : spark-core.jar : what was there
    as the workers get it             what was there                                ── PySpark as it is installed

A module in a zip file is compiled again in each process, and Spark starts a process for each kind of work: the first
query of a session pays it four times. So Spark is given a script of a few lines in the user's cache in place of Python.
Left out: machines of a cluster elsewhere, where that script is not; a PySpark that Python finds only by a changed
sys.path. They get this Python as it is.
"""

from __future__ import annotations

import hashlib
import os
import site
import sys
import sysconfig
from pathlib import Path

from mqlab.data.spark.java import cache_directory
from mqlab.whole_files import whole_file

SCRIPT = """\
#!/bin/sh
# Runs Python without the packed copies of PySpark and Py4J in PYTHONPATH: both are installed, and compiled already.
set -f
IFS=:
kept=
for entry in $PYTHONPATH; do
  case $entry in
    */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
    *) kept=$kept${{kept:+:}}$entry ;;
  esac
done
export PYTHONPATH="$kept"
exec '{python}' "$@"
"""


def worker_python() -> str:
    """What Spark's workers on this machine run as Python: the script, or Python itself where that will not do."""
    if os.name != "posix" or not _is_installed("pyspark") or not _is_installed("py4j"):
        return sys.executable
    name = hashlib.sha256(sys.executable.encode()).hexdigest()[:12]
    try:
        script = write_script(sys.executable, cache_directory() / f"python-{name}")
    except OSError:
        return sys.executable
    # A cache may lie where nothing can be run.
    return str(script) if os.access(script, os.X_OK) else sys.executable


def write_script(python: str, folder: Path) -> Path:
    """Write ``folder/python``, which runs ``python``, and return its path. Raises OSError where it cannot."""
    script = folder / "python"
    text = SCRIPT.format(python=python.replace("'", "'\\''"))
    if not script.exists() or script.read_text("utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(script) as draft:
            draft.write_text(text, "utf-8")
            draft.chmod(0o755)
    return script


def _is_installed(package: str) -> bool:
    """Whether every process of this Python finds the package that this process has: it lies where packages do."""
    file = __import__(package).__file__
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    if site.ENABLE_USER_SITE:
        folders.add(site.getusersitepackages())
    return file is not None and str(Path(file).parent.parent) in folders
