"""What a Lab shows of its stores: the copies of a message, where it waits, pages not synced, and a map of the files.

Mirrors: queryMsgByUniqueKey of mqadmin, which lists the copies of a message; the rest no tool of RocketMQ shows.

    copies(message)       its units in the logs: original, waiting, retry, dead
    waits(message)        its deliveries and the waits between them, on an axis of durations
    unsynced("broker-a")  the pages that a power cut would undo
    store_map(message)    log, queues and index side by side, one message lit up

A message is given as its msg_id, or as what has one: a SendResult, a MessageExt, a row of deliveries.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.lab.runtime.crash_files import PAGE, CrashFiles, Unsynced
from mqlab.lab.world.handles import BROKERS, NodeHandle
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.wire import property_names
from mqlab.rocketmq.wire.names import DLQ_PREFIX, HALF_TOPIC, OP_HALF_TOPIC, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC

if TYPE_CHECKING:
    from mqlab.lab.inspector.inspector import StoreInspector
    from mqlab.lab.views import Table
    from mqlab.lab.views.page_grid import FilePages, PageGrid
    from mqlab.lab.views.store_map import StoreMap
    from mqlab.lab.views.waits import MessageWaits
    from mqlab.rocketmq.wire.message import MessageExt

COPY_COLUMNS = [
    "place",
    "topic",
    "queue_id",
    "queue_offset",
    "reconsume_times",
    "role",
    "store_timestamp",
    "broker",
]
ROLES = {SCHEDULE_TOPIC: "waiting", TIMER_TOPIC: "waiting", HALF_TOPIC: "half", OP_HALF_TOPIC: "mark of a half"}


class StoredVerbs(LabState):
    """The verbs of a Lab that show what is in its stores."""

    def copies(self, message: Any = None) -> Table:
        """Every unit of one message in the brokers' logs, in order of storing; of all messages without an argument.

        Rows of place (physical offset), topic, queue_id, queue_offset, reconsume_times, role, store_timestamp, broker.
        The role is ``original``, ``waiting`` (for its delay), ``retry``, ``dead`` or ``half`` (of a transaction).
        """
        from mqlab.lab.views import Table

        rows = [
            {
                "place": unit.physical_offset,
                "topic": unit.topic,
                "queue_id": unit.queue_id,
                "queue_offset": unit.queue_offset,
                "reconsume_times": unit.reconsume_times,
                "role": role_of(unit.topic),
                "store_timestamp": unit.store_timestamp,
                "broker": broker,
            }
            for broker, unit in self._units(message)
        ]
        title = "copies of all messages" if message is None else f"copies of {message_id(message)}"
        return Table(rows, columns=COPY_COLUMNS, title=title, empty="no unit of it is in the logs")

    def _units(self, message: Any) -> list[tuple[str, MessageExt]]:
        """(broker, unit) in order of storing."""
        key = None if message is None else message_id(message)
        units = [
            (handle.name, unit)
            for handle in self.handles.values()
            if handle.role == "broker"
            for unit in self._store(handle).messages(key=key)
            if key is None or unit.msg_id == key
        ]
        return sorted(units, key=lambda unit: (unit[1].store_timestamp, unit[0], unit[1].physical_offset))

    @staticmethod
    def _store(handle: NodeHandle) -> StoreInspector:
        from mqlab.lab.inspector.inspector import StoreInspector

        return StoreInspector(handle.node.store.directory)

    def waits(self, message: Any, *, group: str | None = None, scale: str = "log") -> MessageWaits:
        """The deliveries of one message to a group and its waits between them; ``scale`` is "log" or "linear".

        ``group`` may be left out while only one group got the message. UsageError if it must be named.
        """
        from mqlab.lab.views.waits import ListenerCall, MessageWaits, Wait

        msg_id = message_id(message)
        # 1. The deliveries of one group.
        every = [row for row in self.delivery_book.of_message(msg_id) if row.started_ms is not None]
        groups = list(dict.fromkeys(row.group for row in every))
        if group is None and len(groups) > 1:
            raise UsageError(f"{msg_id} was delivered to {len(groups)} groups", hint=f'group="{groups[0]}"')
        group = group or (groups[0] if groups else "")
        calls = [
            ListenerCall(row.started_ms, row.ended_ms, row.status, row.reconsume_times, row.client)
            for row in every
            if row.group == group and row.started_ms is not None
        ]
        # 2. Each waiting unit, up to the unit that was stored when its delay was over.
        units = [unit for _, unit in self._units(message)]
        waits, dead_ms = [], None
        for number, unit in enumerate(units):
            if role_of(unit.topic) == "waiting" and _is_for(unit, group):
                real = unit.properties.get(property_names.REAL_TOPIC)
                later = (unit.store_timestamp for unit in units[number + 1 :] if unit.topic == real)
                waits.append(Wait(unit.store_timestamp, next(later, None), f"{unit.topic} {unit.queue_id}"))
            elif unit.topic == DLQ_PREFIX + group:
                dead_ms = unit.store_timestamp
        return MessageWaits(
            calls, waits, dead_ms=dead_ms, now_ms=self.now_ms, scale=scale, title=f"{msg_id} in {group or 'no group'}"
        )

    def unsynced(self, broker: str | None = None) -> PageGrid:
        """The pages that are written and not synced, file by file, of one broker or of all: a power cut undoes them.

        ``.table()`` has one row per page. Needs the simulated driver, whose disks can lose what is not synced.
        """
        from mqlab.lab.views.page_grid import PageGrid

        self.simulation("unsynced")
        every = [handle for handle in self.handles.values() if handle.role in BROKERS]
        chosen = every if broker is None else [self.handle_of(broker, *BROKERS)]
        files: list[FilePages] = []
        names: list[str] = []
        for handle in chosen:
            prefix = f"{handle.name}: " if len(chosen) > 1 else ""
            pages, others = _pages_of(handle, prefix)
            files += pages
            names += others
        where = chosen[0].name if len(chosen) == 1 else "all brokers"
        return PageGrid(files, others=names, title=f"pages of {where} at {self.now_ms - self.began_ms} ms")

    def store_map(self, message: Any = None, *, broker: str = "broker-a", topic: str | None = None) -> StoreMap:
        """The log, the queues and the index of a broker side by side, with their arrows; one message is lit up."""
        key = None if message is None else message_id(message)
        return self._store(self.handle_of(broker, *BROKERS)).map(key, topic=topic)


def message_id(message: Any) -> str:
    """The unique id of a message given as text, SendResult, MessageExt or row. UsageError if it has none."""
    msg_id = message if isinstance(message, str) else getattr(message, "msg_id", None)
    if not msg_id or not isinstance(msg_id, str):
        raise UsageError(f"{message!r} has no msg_id", hint="give a msg_id, a SendResult or a message")
    return msg_id


def role_of(topic: str) -> str:
    """What a unit is for, by its topic.

    >>> role_of("orders"), role_of("SCHEDULE_TOPIC_XXXX"), role_of("%RETRY%billing"), role_of("%DLQ%billing")
    ('original', 'waiting', 'retry', 'dead')
    """
    if topic.startswith(RETRY_PREFIX):
        return "retry"
    if topic.startswith(DLQ_PREFIX):
        return "dead"
    return ROLES.get(topic, "original")


def _is_for(unit: MessageExt, group: str) -> bool:
    """Whether a waiting unit waits for this group: its own delay concerns all, a retry only the group it is for."""
    real = unit.properties.get(property_names.REAL_TOPIC, "")
    return not real.startswith(RETRY_PREFIX) or real == RETRY_PREFIX + group


def _pages_of(handle: NodeHandle, prefix: str) -> tuple[list[FilePages], list[str]]:
    """The files of a broker's store with their pages, and the names that are not synced."""
    from mqlab.lab.views.page_grid import FilePages

    files, directory = handle.files, Path(handle.node.store.directory)
    assert isinstance(files, CrashFiles)
    unsynced: dict[str, list[Unsynced]] = {}
    for change in files.unsynced():
        unsynced.setdefault(change.path, []).append(change)
    file_pages = []
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        if not path.stat().st_size or path.name in ("lock", "abort"):
            continue
        changes = unsynced.get(str(path.absolute()), [])
        pages = [change.page for change in changes if change.kind == "page"]
        kinds = {change.kind for change in changes}
        file_pages.append(
            FilePages(
                prefix + path.relative_to(directory).as_posix(),
                -(-path.stat().st_size // PAGE),
                max(written_pages(path), max(pages, default=-1) + 1),
                tuple(pages),
                whole="content" in kinds,
                note="its name is not synced either" if kinds & {"create", "rename"} else "",
            )
        )
    known = {str(path.absolute()) for path in directory.rglob("*") if path.is_file()}
    names = [
        f"{prefix}{change.kind} {Path(path).relative_to(directory.absolute()).as_posix()}"
        for path, changes in unsynced.items()
        if path not in known and Path(path).is_relative_to(directory.absolute())
        for change in changes
        if change.kind in ("create", "rename", "remove") and Path(path) != directory.absolute()
    ]
    return file_pages, names


def written_pages(path: Path) -> int:
    """How many pages of a file there are up to the last one that is not all zeros."""
    content, empty = path.read_bytes(), bytes(PAGE)
    count = -(-len(content) // PAGE)
    while count and content[(count - 1) * PAGE : count * PAGE] == empty[: len(content) - (count - 1) * PAGE]:
        count -= 1
    return count
