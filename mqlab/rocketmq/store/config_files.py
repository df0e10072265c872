"""One text file under ``config/``: saved so that a crash at any moment leaves the whole old or new text.

Mirrors: org.apache.rocketmq.common.ConfigManager (persist and load). Lab 00 reads the offsets it keeps.

    save(text)   topics.json.tmp <- text, synced      topics.json -> topics.json.bak      topics.json.tmp -> topics.json
    load()       topics.json, or if it is missing, empty or does not decode: topics.json.bak, or nothing at all
    damaged      a main file that does not decode is renamed to topics.json.damaged, and the good .bak is copied to its
                 place; the journal has a config.damaged with file, reason and the age of what was taken

Left out: version 5.3.4's order (rename to .bak first, then write in place), where a crash leaves a half-written text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mqlab.rocketmq.ports import Clock, Files, Note
from mqlab.rocketmq.store.reading.config_backups import DAMAGED, EMPTY, MISSING, Reading, read_with_backup, short
from mqlab.rocketmq.wire import java_json

T = TypeVar("T")


class ConfigFile:
    """A text file with a backup. ``path`` is the main file; its folder is made when first saved.

    ``note`` is told of damage; ``clock`` is the clock by which files are saved and age (without: the file system's).
    """

    __slots__ = ("_clock", "_files", "_note", "path")

    def __init__(self, files: Files, path: str, *, clock: Clock | None = None, note: Note | None = None) -> None:
        self._files = files
        self._clock = clock
        self._note = note
        self.path = path

    def save(self, text: str) -> None:
        """Replace the main file by ``text`` (UTF-8), synced; what it held becomes ``.bak``."""
        folder = self.path.rpartition("/")[0]
        if folder:
            self._make(folder)
        # The new text is on the disk before a name changes: each moment in between has a whole file to load.
        fresh = self.path + ".tmp"
        self._files.write(fresh, text.encode("utf-8", "surrogatepass"), sync=True)
        if self._clock is not None:
            self._files.set_modified_ms(fresh, self._clock.now_ms())
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
        reading = read_with_backup(self._files, self.path, parse)
        if reading.is_healed:
            self._heal(reading)
        return reading.value

    def _heal(self, reading: Reading[T]) -> None:
        """Announce that the main file could not be read, keep it, and put its backup into its place."""
        if self._note is not None:
            now_ms = self._clock.now_ms() if self._clock is not None else reading.saved_ms
            age = {"saved_ms": reading.saved_ms, "age_ms": max(now_ms - reading.saved_ms, 0)} if reading.taken else {}
            taken = short(reading.taken) if reading.taken else None
            self._note(
                "config.damaged", file=reading.file, reason=reading.problem, taken=taken, **age, text=reading.text()
            )
        if not reading.taken:
            return
        if reading.problem not in (MISSING, EMPTY):
            self._files.rename(self.path, self.path + DAMAGED)
        self._files.write(self.path, self._files.read(reading.taken), sync=True)
        self._files.set_modified_ms(self.path, reading.saved_ms)
        self._files.sync_directory(self.path.rpartition("/")[0] or ".")

    def __repr__(self) -> str:
        return f"<ConfigFile {self.path} {'there' if self._files.exists(self.path) else 'not saved yet'}>"
