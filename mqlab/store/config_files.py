"""One text file under ``config/``: saved so that a crash at any moment leaves the whole old or new text.

Mirrors: org.apache.rocketmq.common.ConfigManager (persist and load). Lab 00 reads the offsets it keeps.

    save(text)   topics.json.tmp <- text, synced      topics.json -> topics.json.bak      topics.json.tmp -> topics.json
    load()       topics.json, or if it is missing, empty or does not decode: topics.json.bak, or nothing at all
    damaged      a main file that does not decode is renamed to topics.json.damaged, so that the next save cannot
                 push it over the good .bak

Left out: version 5.3.4's order (rename to .bak first, then write in place), where a crash leaves a half-written text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mqlab.errors import CorruptionError
from mqlab.ports import Files
from mqlab.wire import java_json

T = TypeVar("T")


class ConfigFile:
    """A text file with a backup. ``path`` is the main file; its folder is made when first saved."""

    __slots__ = ("_files", "path")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def save(self, text: str) -> None:
        """Replace the main file by ``text`` (UTF-8), synced; what it held becomes ``.bak``."""
        folder = self.path.rpartition("/")[0]
        if folder:
            self._make(folder)
        # The new text is on the disk before a name changes: each moment in between has a whole file to load.
        fresh = self.path + ".tmp"
        self._files.write(fresh, text.encode("utf-8", "surrogatepass"), sync=True)
        if self._files.exists(self.path) and self._files.size(self.path):  # an empty one must not replace a backup
            self._files.rename(self.path, self.path + ".bak")
        self._files.rename(fresh, self.path)
        if folder:
            self._files.sync_directory(folder)

    def _make(self, folder: str) -> None:
        """Make the folder, and sync its name, so that a power cut does not remove it with the file."""
        if not self._files.exists(folder):
            self._files.make_directory(folder)
            parent = folder.rpartition("/")[0]
            if parent:
                self._files.sync_directory(parent)

    def load(self) -> str | None:
        """The text last saved, unchanged; None when nothing was saved yet. See ``load_as``."""
        loaded = self.load_as(lambda text: (text, java_json.loads(text)))
        return None if loaded is None else loaded[0]

    def load_as(self, parse: Callable[[str], T]) -> T | None:
        """What ``parse`` makes of the main file, else of ``.bak``; None when neither is there (or both are empty).

        ``parse`` raises any exception for damaged text. Raises CorruptionError when no file that exists can be read.
        """
        problems: list[str] = []
        for path in (self.path, self.path + ".bak"):
            if not self._files.exists(path):
                continue
            data = self._files.read(path)
            if not data.strip():
                continue
            try:
                return parse(data.decode("utf-8"))
            except Exception as error:  # any error of any parser
                problems.append(f"{path}: {error}")
                if path == self.path:
                    self._files.rename(path, path + ".damaged")
        if problems:
            raise CorruptionError(
                "neither the configuration file nor its backup can be read: " + "; ".join(problems),
                where=self.path,
                hint="repair or remove the file; what it held starts again from the defaults",
            )
        return None

    def __repr__(self) -> str:
        return f"<ConfigFile {self.path} {'there' if self._files.exists(self.path) else 'not saved yet'}>"
