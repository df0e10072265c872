"""When a table of the broker goes to its file: at once, or at the next tick of RocketMQ's timer if it changed.

Mirrors: BrokerController's scheduled persist tasks and ConfigManager.

    table changed ──▶ one deadline at the next tick of the grid (first + n * period) ──▶ save, nothing armed
    table idle    ──▶ no deadline at all

    save refused   the file is a failed part: saved again every second, and what the table is asked to keep is refused

Where RocketMQ writes the file every period whether or not it changed, mqlab writes the same bytes only when it did.
"""

from __future__ import annotations

from collections.abc import Callable

from mqlab.rocketmq.ports import Clock, Deadline, next_on_grid
from mqlab.rocketmq.store.config_files import ConfigFile
from mqlab.rocketmq.store.failures import Failures

FIRST_PERSIST_MS = 10_000


class ConfigSaver:
    """Keeps one file in step with one table. ``period_ms`` None: every change is saved at once.

    The grid starts ``first_ms`` after ``start()``. ``kind`` names the deadline, ``saved_kind`` the journal's change.
    ``ready`` is called before a timed save and before the last one; while it returns False, the next tick tries again.
    """

    def __init__(
        self,
        clock: Clock,
        file: ConfigFile,
        encode: Callable[[], str],
        decode: Callable[[str], None],
        failures: Failures,
        *,
        first_ms: int = FIRST_PERSIST_MS,
        period_ms: int | None = None,
        kind: str = "config.persist",
        saved_kind: str = "config.persisted",
        ready: Callable[[], bool] = lambda: True,
        save_at_stop: bool = True,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._clock = clock
        self._file = file
        self._encode = encode
        self._decode = decode
        self._failures = failures
        self._part = file.path.rpartition("/")[2]
        self._first_ms = first_ms
        self._period_ms = period_ms
        self._kind = kind
        self._saved_kind = saved_kind
        self._ready = ready
        self._save_at_stop = save_at_stop
        self._note = note
        self._origin_ms: int | None = None
        self._deadline: Deadline | None = None
        self._dirty = False

    def load(self) -> None:
        """Load the table from the file, or from its backup if the file cannot be read."""
        self._file.load_as(self._decode)

    def start(self) -> None:
        """Begin to save on the timer; earlier changes are due at the first tick."""
        self._origin_ms = self._clock.now_ms() + self._first_ms
        if self._dirty:
            self._arm()

    def changed(self) -> None:
        """Save now or at the next tick, because the table has changed.

        Raises PartFailed when it must be saved now and cannot be: the client that asked for the change learns it.
        """
        self._dirty = True
        if self._period_ms is None:
            self.save()
            self._failures.must_work(self._part)
        elif self._origin_ms is not None:
            self._arm()

    def save(self) -> None:
        """Write the file now; one that cannot be written is a failed part, and is written again until it can."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._failures.attempt(self._part, self._write)

    def _write(self) -> None:
        self._file.save(self._encode())
        self._dirty = False
        self._note(self._saved_kind, file=self._part)

    def stop(self) -> None:
        """The broker stops cleanly: write the file for the last time, if this table's file is written then."""
        # Changes of tables that come later, while the broker stops, arm no timer any more.
        self._origin_ms = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._save_at_stop and self._ready():
            self.save()

    def _arm(self, from_ms: int = 0) -> None:
        if self._deadline is None and self._origin_ms is not None and self._period_ms is not None:
            # The timer of RocketMQ ticks always; here only the tick that has something to save is armed.
            earliest_ms = max(self._clock.now_ms(), self._origin_ms, from_ms)
            due_ms = next_on_grid(earliest_ms, self._period_ms, self._origin_ms)
            self._deadline = self._clock.call_at(due_ms, self._tick, self._kind)

    def _tick(self) -> None:
        self._deadline = None
        if self._ready():
            self.save()
        else:
            self._arm(self._clock.now_ms() + 1)

    def __repr__(self) -> str:
        return f"<ConfigSaver {self._file.path}{' changed' if self._dirty else ''}>"
