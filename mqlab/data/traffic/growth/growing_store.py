"""The files of a store that grows: a prefix of a finished store, unit by unit, in RocketMQ's own order.

Mirrors: CommitLog.putMessage, ReputMessageService and the timer that saves consumerOffset.json, seen from outside.

    up_to(moment)     log (whole units, BLANK at the end of a file) ─▶ consume queues ─▶ consumerOffset.json
    half_unit()       the first half of the next unit: what a broker leaves that is killed while it writes
    delete_oldest()   the first file of the log, and the queue files that point to nothing else

A directory that has a log is taken over: it is recovered as a broker does when it starts, and goes on from there.
Files have their full size from the start and are filled from the front. Left out: key indexes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from mqlab.data.traffic.growth.commits import committed
from mqlab.data.traffic.growth.plans import GrowthPlan
from mqlab.errors import UsageError
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.store import MessageStore, config_texts
from mqlab.rocketmq.store.checkpoint import Checkpoint
from mqlab.rocketmq.wire.bodies import DataVersion
from mqlab.rocketmq.wire.units import CQ_UNIT_SIZE
from mqlab.whole_files import whole_file

LOG, QUEUES, CONFIG, ABORT = "commitlog", "consumequeue", "config", "abort"
FIXED_TABLES = ("topics.json", "subscriptionGroup.json")
OFFSETS = "consumerOffset.json"


class GrowingStore:
    """A store at some moment of its plan; ``now_ms`` only grows. A new one makes its directory."""

    def __init__(self, plan: GrowthPlan, directory: Path) -> None:
        self.plan, self.directory = plan, directory
        self.done = 0  # units that are in the store
        self.now_ms = plan.first_ms - 1
        self._end = 0  # physical offset after the last of them
        self._cut_off_until_ms = 0
        self._file_size = _file_size(plan.source / LOG)
        if (directory / LOG).exists():
            self._recover()
        else:
            self._begin()

    def _begin(self) -> None:
        (self.directory / CONFIG).mkdir(parents=True)
        for name in (name for name in FIXED_TABLES if (self.plan.source / CONFIG / name).exists()):
            shutil.copyfile(self.plan.source / CONFIG / name, self.directory / CONFIG / name)
        (self.directory / LOG).mkdir()
        (self.directory / ABORT).touch()
        (self.directory / "lock").write_bytes(b"lock")
        self._save_offsets()

    def _recover(self) -> None:
        """Open and close the store as a broker that starts does; every whole unit is kept."""
        with MessageStore.open(str(self.directory)) as store:
            self._end = store.max_physical_offset
        units = self.plan.units
        self.done = int(np.searchsorted(units["place"] + units["size"], self._end, side="right"))
        self.now_ms = max(self.now_ms, int(units["stored_ms"][self.done - 1])) if self.done else self.now_ms
        (self.directory / ABORT).touch()

    @property
    def log_start(self) -> int:
        """Where the log begins: later than 0 once files were deleted."""
        return min((int(path.name) for path in (self.directory / LOG).iterdir()), default=0)

    @property
    def log_end(self) -> int:
        return self._end

    def up_to(self, moment_ms: int) -> None:
        """Append everything that was stored up to a moment; nothing while the store is cut off."""
        self.now_ms = max(self.now_ms, moment_ms)
        if self.now_ms < self._cut_off_until_ms:
            return
        times = self.plan.units["stored_ms"]
        self._append(int(np.searchsorted(times, self.now_ms, side="right")))
        self._save_offsets()

    def cut_off(self, duration_ms: int) -> None:
        """Readers do not see what is stored from now on, for a while; then all of it is there at once."""
        self._cut_off_until_ms = self.now_ms + duration_ms

    def next_file_ms(self) -> int | None:
        """When the first unit of the next log file is stored; None when the day ends in this file."""
        places = self.plan.units["place"]
        number = int(np.searchsorted(places, self._end - self._end % self._file_size + self._file_size))
        return None if number == len(places) else int(self.plan.units["stored_ms"][number])

    def half_unit(self) -> None:
        """Write the first half of the next unit, if there is one."""
        if self.done < len(self.plan.units):
            unit = self.plan.units[self.done]
            self._copy(LOG, self._end, int(unit["place"]) + int(unit["size"]) // 2)

    def delete_oldest(self) -> str:
        """Delete the first file of the log, as retention does; its name. Raises UsageError for the last one."""
        files = sorted(path.name for path in (self.directory / LOG).iterdir())
        if len(files) < 2:
            raise UsageError(
                f"{self.directory.name} has one log file, which is being written", hint="roll() begins the next one"
            )
        (self.directory / LOG / files[0]).unlink()
        self._delete_queue_files(int(files[1]))
        return files[0]

    def close(self) -> None:
        """Leave the store as a broker does that was stopped in good order."""
        self._save_checkpoint()
        (self.directory / ABORT).unlink(missing_ok=True)

    def _append(self, until: int) -> None:
        """Units up to number ``until`` of the plan: first their bytes in the log, then their units in the queues."""
        units = self.plan.units[self.done : until]
        if not len(units):
            return
        end = int(units["place"][-1] + units["size"][-1])
        self._copy(LOG, self._end, end)
        for number in np.unique(units["queue"]).tolist():
            topic, queue_id = self.plan.queues[number]
            offsets = units["queue_offset"][units["queue"] == number]
            begin, after = (int(offset) * CQ_UNIT_SIZE for offset in (offsets[0], offsets[-1] + 1))
            self._copy(f"{QUEUES}/{topic}/{queue_id}", begin, after)
        self.done, self._end = until, end

    def _copy(self, folder: str, begin: int, end: int) -> None:
        """Copy bytes from offset to offset, over as many files as they are in."""
        source, target = self.plan.source / folder, self.directory / folder
        target.mkdir(parents=True, exist_ok=True)
        size = self._file_size if folder == LOG else _file_size(source)
        while begin < end:
            start = begin - begin % size
            count = min(end, start + size) - begin
            with open(source / f"{start:020d}", "rb") as finished:
                data = os.pread(finished.fileno(), count, begin - start)
            # A file that exists is opened as it is: readers have mapped it.
            with open(os.open(target / f"{start:020d}", os.O_RDWR | os.O_CREAT, 0o644), "r+b") as file:
                if os.fstat(file.fileno()).st_size != size:
                    file.truncate(size)
                os.pwrite(file.fileno(), data, begin - start)
            begin += count

    def _delete_queue_files(self, log_start: int) -> None:
        for path in sorted((self.directory / QUEUES).glob("*/*/*")):
            newest = sorted(path.parent.iterdir())[-1]
            data = path.read_bytes()
            last_place = int.from_bytes(data[-CQ_UNIT_SIZE : -CQ_UNIT_SIZE + 8], "big")
            if path != newest and last_place < log_start:
                path.unlink()

    def _save_offsets(self) -> None:
        version = DataVersion(1, 0, self.now_ms).to_value()
        value = {"dataVersion": version, "offsetTable": committed(self.plan.commits, self.now_ms)}
        with whole_file(self.directory / CONFIG / OFFSETS, suffix=".tmp") as draft:
            draft.write_text(config_texts.encode(OFFSETS, value), "utf-8")

    def _save_checkpoint(self) -> None:
        checkpoint = Checkpoint(RealFiles(), f"{self.directory}/checkpoint")
        stored_ms = int(self.plan.units["stored_ms"][self.done - 1]) if self.done else 0
        checkpoint.physic_msg_timestamp = checkpoint.logics_msg_timestamp = stored_ms
        checkpoint.flush()


def _file_size(folder: Path) -> int:
    return next(folder.iterdir()).stat().st_size
