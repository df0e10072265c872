"""The stores under a path: one, or those of several brokers side by side.

Mirrors: storePathRootDir, of which every broker has one. Lab 10 reads a cluster's stores as one table.

    run/broker-a/                     commitlog/ is in it, or checkpoint or abort: this store, named broker-a
    run/broker-a/store/               likewise; a folder named store takes the name of the one above
    run/                              none of them: the stores in its folders, by name: broker-a, broker-b, broker-c
    file:/run, file:///run            the same as /run; s3a://, hdfs:// and the like are refused: files are mapped

Left out: deeper folders. Other files and folders are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqlab.errors import UsageError

LOG, STORE = "commitlog", "store"
MARKS = (LOG, "checkpoint", "abort")  # a store that was never written to has no log yet

StorePath = str | os.PathLike[str]

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://([^/]*))?(/.*|$)", re.DOTALL)  # one letter would be a drive


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """One broker's store: its absolute directory, and the broker_name of its rows."""

    directory: str
    broker_name: str


def find_stores(paths: StorePath | Sequence[StorePath], broker_names: Sequence[str] = ()) -> list[StoreFolder]:
    """The stores under these paths, in the order of the paths, those of one folder by name.

    ``broker_names`` name them in that order. Raises UsageError for a path that is not of this machine or has no store,
    when two stores would have one name, and when there are not as many names as stores.
    """
    # 1. The directories, one per store.
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    directories = [directory for path in several for directory in _directories(local_path(os.fspath(path)))]
    if broker_names and len(broker_names) != len(directories):
        raise UsageError(
            f"{len(broker_names)} broker names for {len(directories)} stores", hint=f"stores: {', '.join(directories)}"
        )
    # 2. Their names: two stores of one name could not be told apart in the table.
    names = list(broker_names) or [broker_name_of(directory) for directory in directories]
    directory_of: dict[str, str] = {}
    for name, directory in zip(names, directories, strict=True):
        if name in directory_of:
            raise UsageError(
                f"two stores are named {name!r}: {directory_of[name]} and {directory}",
                hint="leave one out, or name them: broker_names=[...], for Spark option('brokerName', 'a,b')",
            )
        directory_of[name] = directory
    return [StoreFolder(directory, name) for name, directory in directory_of.items()]


def local_path(path: str) -> str:
    """The path without ``file:`` before it. Raises UsageError for one of another file system or machine.

    >>> local_path("file:///run/broker-a"), local_path("file:/run/broker-a"), local_path("run/broker-a")
    ('/run/broker-a', '/run/broker-a', 'run/broker-a')
    """
    uri = _URI.fullmatch(path)
    if uri is None or os.path.exists(path):
        return path
    scheme, host, rest = uri.groups()
    if scheme.lower() == "file" and rest and (host or "localhost") == "localhost":
        return str(rest)
    other = f"the machine {host!r}" if scheme.lower() == "file" else f"the file system {scheme!r}"
    raise UsageError(
        f"cannot read {path!r}: expected a local path, found one of {other}",
        hint="only local paths are read, because the files of a store are mapped into memory: copy the store (hdfs dfs "
        "-get, aws s3 cp --recursive) or mount it, and give that folder; on a cluster every machine must see it "
        "under the same path",
    )


def _directories(path: str) -> list[str]:
    """The store directories under one path."""
    top = Path(os.path.abspath(path))
    if not top.is_dir():
        raise UsageError(
            f"there is no store directory {path!r}",
            hint="give the directory that holds commitlog/ (storePathRootDir of a broker), or one of several such",
        )
    own = _store_in(top)
    below = [own] if own else [store for child in sorted(top.iterdir()) if (store := _store_in(child))]
    if not below:
        raise UsageError(
            f"no commit log in {path!r}",
            hint="give the directory that holds commitlog/ (storePathRootDir of a broker), or one of several such",
        )
    return [str(store) for store in below]


def _store_in(folder: Path) -> Path | None:
    """The folder itself when it is a store, or its ``store``; None for anything else."""
    return next((path for path in (folder, folder / STORE) if any((path / mark).exists() for mark in MARKS)), None)


def broker_name_of(directory: str) -> str:
    """The broker name of a store: the name of its folder, or of the one above a folder named store.

    >>> broker_name_of("run/broker-a/store"), broker_name_of("run/broker-b/")
    ('broker-a', 'broker-b')
    """
    path = Path(directory)
    return path.parent.name if path.name == STORE and path.parent.name else path.name
