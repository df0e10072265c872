"""A file of Spark's classes as the JVM has them in memory, with which the next session starts in half the time.

This is the JDK's class-data sharing.

    first session    no archive     -XX:ArchiveClassesAtExit=KEY.PID.part     written by the JVM when it ends
    next session     KEY.PID.part   becomes KEY.jsa                           -XX:SharedArchiveFile=KEY.jsa

`make env` has the first one made (mqlab.spark.first_archive). KEY names this Java and these jars. The JVM checks an
archive itself and starts without one that does not fit. MQLAB_SPARK_SHARED_CLASSES=0 switches it off; with =read an
archive that is there is used, and none is written; with =/FOLDER it is looked for in that folder alone, which is only
read. Left out: executors on other machines; those of this one read it (mqlab.spark.session).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path

from mqlab.spark.java import cache_directory, shim_directory
from mqlab.whole_files import whole_file

SWITCH, OFF, READ_ONLY = "MQLAB_SPARK_SHARED_CLASSES", "0", "read"
WRITTEN_AFTER_S = 60  # the JVM writes an archive without a pause; one that was not touched for this long is complete
ARCHIVES_KEPT = 2
FREE_BYTES = 2 << 30  # an archive has some 170 MB: none is written to a disk that is nearly full
DUMP_SECONDS = 120
QUIET = "-Xlog:disable"  # it would list each of the hundreds of classes that cannot be archived


def folder_of_archives() -> Path:
    """The folder of all archives of this user, which may not be there yet. Raises OSError where no cache can be."""
    return cache_directory() / "spark-classes"


def jars_of_pyspark() -> Path:
    """The folder of the classes with which every JVM of Spark starts."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def options(java: Path, jars: Path, directory: Path) -> list[str]:
    """The JVM options that use the archive in ``directory``, or that have it written when the JVM ends."""
    switch = os.environ.get(SWITCH, "")
    if switch == OFF:
        return []
    if os.path.isabs(switch):
        return reading(java, jars, Path(switch))
    key = archive_key(java, jars)
    directory.mkdir(parents=True, exist_ok=True)
    archive = promote(directory, key)
    if switch == READ_ONLY and not archive.exists():
        return []
    base = base_archive(java, directory)
    if archive.exists():
        return _using(archive, base)
    # No archive fits yet: this JVM writes one when it ends, if the disk has room.
    status = os.statvfs(directory)
    if status.f_bavail * status.f_frsize < FREE_BYTES:
        return []
    written = directory / f"{key}.{os.getpid()}.part"
    return [QUIET, *([f"-XX:SharedArchiveFile={base}"] if base else []), f"-XX:ArchiveClassesAtExit={written}"]


def reading(java: Path, jars: Path, directory: Path) -> list[str]:
    """The JVM options that use the archive in ``directory`` if one fits; the JVM writes none."""
    archive = directory / f"{archive_key(java, jars)}.jsa"
    if os.environ.get(SWITCH) == OFF or not archive.exists():
        return []
    return _using(archive, base_archive(java, directory))


def _using(archive: Path, base: Path | None) -> list[str]:
    return [QUIET, f"-XX:SharedArchiveFile={base}:{archive}" if base else f"-XX:SharedArchiveFile={archive}"]


def archive_key(java: Path, jars: Path) -> str:
    """A name that changes when the Java, what is run in its place, or the jars do."""
    parts = [f"{path}:{path.stat().st_mtime_ns}" for path in (java.resolve(), jars)]
    if (shim := shim_directory(java) / "bin" / "java").exists():  # it changes the class path
        parts.append(shim.read_text("utf-8"))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def promote(directory: Path, key: str) -> Path:
    """Make a whole ``.part`` the archive if there is none, remove what is old, and return the archive's path."""
    archive = directory / f"{key}.jsa"
    whole = [path for path in directory.glob("*.part") if time.time() - path.stat().st_mtime > WRITTEN_AFTER_S]
    for part in whole:
        if part.name.startswith(key) and not archive.exists():
            part.replace(archive)
        else:
            # Another session's archive came first, or this part belongs to another Java.
            part.unlink(missing_ok=True)
    for old in sorted(directory.glob("*.jsa"), key=lambda path: path.stat().st_mtime)[:-ARCHIVES_KEPT]:
        if old != archive:
            old.unlink(missing_ok=True)
    return archive


def base_archive(java: Path, directory: Path) -> Path | None:
    """An archive of Java's own classes for a Java that came without it, written once; None where none is needed."""
    home = java.resolve().parent.parent
    target = directory / f"base-{hashlib.sha256(str(home).encode()).hexdigest()[:16]}.classes"
    if (home / "lib" / "server" / "classes.jsa").exists():
        return None
    if target.exists():
        return target
    try:
        with whole_file(target) as draft:
            subprocess.run(
                [java, f"-XX:SharedArchiveFile={draft}", "-Xshare:dump", QUIET],
                capture_output=True,
                timeout=DUMP_SECONDS,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        return None
    return target
