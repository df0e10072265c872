"""What one worker may use: time, memory, processes, file size; and what judging an exercise may cost the judge.

Like ulimit. An exercise may ask for more in its ``limits``.

    seconds   of the worker's own processor time for one call of the judge, nested calls included
    total_seconds   for all calls of one exercise       memory_mb   address space of each process
    clock_times   so many times as long may both take on the clock
    processes   threads included                        file_mb   the largest file it may write
    open_files  at a time, sockets included             scratch_mb   room in /tmp, the only place to write
    scratch_files   in /tmp, empty ones included: bubblewrap cannot limit them, so the judge looks and ends the worker
    lab_steps   of all worlds of one exercise           lab_seconds   of the judge's processor time for it
    lab_memory_mb   memory of the judge's own process, address space without files

The share of the processor is not limited: run fewer jobs with -j.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mqlab.errors import UsageError

CPU_SECONDS = 7_200
"""Of one process. The judge's own measure ends an answer long before; this ends what hides from it."""
COUNTS_PER_NAMESPACE = (5, 14)
"""The Linux release since which RLIMIT_NPROC counts inside a user namespace only."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a worker; see the module's picture."""

    seconds: float = 10.0
    total_seconds: float = 60.0
    clock_times: float = 10.0
    memory_mb: int = 1024
    processes: int = 8
    file_mb: int = 16
    open_files: int = 256
    scratch_mb: int = 64
    scratch_files: int = 20_000
    lab_steps: int = 2_000_000
    lab_seconds: float = 60.0
    lab_memory_mb: int = 2_048

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Limits:
        """Limits by name over the defaults. UsageError for an unknown name or a value that is not a positive number."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name, value in settings.items():
            if name not in known:
                raise UsageError(f"there is no limit {name!r}", hint=f"limits are {', '.join(sorted(known))}")
            if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
                raise UsageError(f"the limit {name} must be a positive number, not {value!r}")
        return cls(**settings)

    def widest(self, other: Limits) -> Limits:
        """The larger of each limit: one worker serves all exercises of a lab."""
        pairs = {field.name: max(getattr(self, field.name), getattr(other, field.name)) for field in FIELDS}
        return Limits(**pairs)


SPARK = Limits(
    seconds=240,
    total_seconds=900,
    clock_times=3,
    memory_mb=16_384,
    processes=512,
    file_mb=512,
    open_files=4_096,
    scratch_mb=1_024,
    lab_seconds=600,
    lab_memory_mb=8_192,
)
"""What an answer needs that starts a JVM: memory that is reserved and not used, threads, jars, shuffle files."""

FIELDS = dataclasses.fields(Limits)


def apply(limits: Limits, processes_outside: int) -> None:
    """Apply the limits to this process and its children, for good. Limits that the system does not have are skipped."""
    import resource

    mb = 1 << 20
    wanted = {
        "RLIMIT_AS": limits.memory_mb * mb,
        "RLIMIT_CPU": CPU_SECONDS,
        "RLIMIT_FSIZE": limits.file_mb * mb,
        "RLIMIT_NPROC": limits.processes + processes_outside,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }
    for name, value in wanted.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))
    with contextlib.suppress(OSError):  # when memory runs out, this process is the one to go
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")


def bind_judge(limits: Limits) -> None:
    """Limit the memory of the judging process. The hard limit stays: a worker's own limit may be higher."""
    import resource

    with contextlib.suppress(AttributeError, ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (limits.lab_memory_mb << 20, hard))


def processes_outside(user_id: int, *, own_namespace: bool) -> int:
    """How many of the user's threads a limit on processes counts besides the worker's own.

    None of them where the kernel counts per user namespace (Linux 5.14) and the worker has one.
    """
    if not own_namespace:
        return _threads_of(user_id)
    release = platform.release().split(".")
    with contextlib.suppress(ValueError, IndexError):
        if platform.system() == "Linux" and (int(release[0]), int(release[1])) >= COUNTS_PER_NAMESPACE:
            return 0
    return _threads_of(user_id)


def _threads_of(user_id: int) -> int:
    count = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == user_id:
                    count += len(os.listdir(f"/proc/{entry.name}/task"))
    return count or 512
