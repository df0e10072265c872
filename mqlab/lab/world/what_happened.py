"""What a Lab shows: rows and static pictures, each made from the journal or from the tables of the nodes.

Mirrors: mqadmin and the Dashboard, for a world that keeps everything.

    deliveries  progress  leases  pulls rows (mqlab.lab.views.Table)
    timeline  space_time  offset_strip  how_far  diagram   pictures, each also as a table
    snapshot  changes           what differs between two moments
    verify                      named anomalies of a group
    kinds                       the meaning of the kinds in the journal

The verbs of mqadmin are in lab.admin.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.lab.runtime.collector import collecting_rarely
from mqlab.lab.runtime.kinds import CHANGE_KINDS, PERIODIC_KINDS, STEP_KINDS
from mqlab.lab.world.handles import BROKERS, NodeHandle
from mqlab.lab.world.state import LabState

if TYPE_CHECKING:
    from mqlab.lab.views import Table
    from mqlab.lab.views.diagram import Diagram
    from mqlab.lab.views.how_far import HowFar
    from mqlab.lab.views.offset_strip import OffsetStrip
    from mqlab.lab.views.queue_owners import QueueOwners
    from mqlab.lab.views.timeline import Timeline
    from mqlab.lab.views.verdict import Verdict
    from mqlab.lab.world.progress import QueueOffsets

DELIVERY_COLUMNS = [
    "msg_id",
    "topic",
    "message_queue",
    "queue_offset",
    "client",
    "started_ms",
    "ended_ms",
    "status",
    "reconsume_times",
]
LEASE_COLUMNS = ["leased_until_ms", "acked_ms", "revived_ms"]

Snapshot = dict[str, Any]


class WhatHappened(LabState):
    """The verbs of a Lab that show."""

    @collecting_rarely()
    def deliveries(self, group: str, *, absences: bool = True) -> Table:
        """One row per delivery to a listener of a group, in order of beginning; then the undelivered messages.

        ``absences=False`` leaves out the latter (FILTERED_BY_BROKER, NOT_PULLED), which are read from the stores. If a
        listener raised an error, there is a column ``error``: the traceback, cut to the learner's lines. A popping
        group has ``leased_until_ms``, ``acked_ms`` (an ack that counts) and ``revived_ms`` (stored again) as well.
        """
        from mqlab.lab.views import Table

        rows = self.delivery_book.of(group)
        if absences:
            from mqlab.lab.world.absences import absences as absences_of

            rows = rows + absences_of(self, group)
        leased = LEASE_COLUMNS if any(row.leased_until_ms for row in rows) else []
        columns = [*DELIVERY_COLUMNS, *leased, *(["error"] if any(row.error for row in rows) else [])]
        return Table(rows, columns=columns, title=f"deliveries of {group}", empty=self._no_rows(group))

    def leases(self, group: str) -> Table:
        """One row per message that a popping group has out now: message_queue queue_offset popped_ms until_ms left_ms.

        ``progress`` counts these as consumed, as RocketMQ does.
        """
        from mqlab.lab.views import Table
        from mqlab.lab.world.cluster import readable_brokers
        from mqlab.lab.world.leases import leases_of

        rows = [row for name, broker in readable_brokers(self) for row in leases_of(name, broker, group)]
        columns = ["message_queue", "queue_offset", "popped_ms", "until_ms", "left_ms"]
        return Table(rows, columns=columns, title=f"what {group} has out", empty="nothing is out")

    def progress(self, group: str) -> Table:
        """One row per queue: broker_offset consumer_offset pull_offset lag inflight client last_timestamp.

        The title names brokers that are down and cannot be read from a slave either.
        """
        from mqlab.lab.views import Table
        from mqlab.lab.world.progress import progress_rows

        rows = progress_rows(self, group)
        return Table(rows, title=f"progress of {group}{self._not_here(rows)}", empty=self._no_rows(group))

    def _not_here(self, rows: list[QueueOffsets]) -> str:
        """The brokers whose queues are missing, in brackets."""
        there = [row.broker for row in rows]
        down = [handle for handle in self.handles.values() if handle.role == "broker" and not handle.is_up]
        missing = [handle.status for handle in down if handle.name not in there]
        return f" (not here: {', '.join(missing)})" if missing else ""

    def _no_rows(self, group: str) -> str:
        """The text of an empty table of a group: no rows yet, or no such group."""
        groups = {handle.node.group: None for handle in self.handles.values() if handle.role == "consumer"}
        names = list(dict.fromkeys([*groups, *self.delivery_book.wishes]))
        return "no rows" if group in names else f"no consumer of this Lab is in group {group!r}; its groups are {names}"

    def pulls(self, group: str, *, retries: bool = False) -> Table:
        """One row per pull of a group: what it asked for, how long it was held, the broker's filter, what came.

        Times in ms, None while there is no answer; ``retries`` adds the pulls of the group's retry topic. See Pull in
        mqlab.lab.views.pulls for the columns.
        """
        from mqlab.lab.views import Table
        from mqlab.lab.views.pulls import pulls

        rows = pulls(self.journal, group, retries=retries)
        return Table(rows, title=f"pulls of {group}", empty=self._no_rows(group))

    def upcoming(self, count: int = 5) -> Table:
        """The next deadlines and arrivals in order, to predict from: rows of due_ms, in_ms, node, kind."""
        from mqlab.lab.views import Table

        rows = [
            {"due_ms": e.due_ms, "in_ms": e.due_ms - self.now_ms, "node": e.node.name, "kind": e.kind}
            for e in self.simulation("upcoming").upcoming(max(count, 0))
        ]
        return Table(rows, columns=["due_ms", "in_ms", "node", "kind"], title=f"upcoming at {self.now_ms}")

    def kinds(self) -> Table:
        """Every kind of step and of change in a journal: rows with the meaning and the number in this journal."""
        from mqlab.lab.views import Table

        seen = Counter(record.kind for record in self.journal)
        seen.update(change.kind for record in self.journal for change in record.changes)
        rows = [
            {"kind": kind, "of": of, "meaning": meaning, "periodic": kind in PERIODIC_KINDS, "seen": seen[kind]}
            for of, kinds in (("step", STEP_KINDS), ("change", CHANGE_KINDS))
            for kind, meaning in kinds.items()
        ]
        return Table(rows, title="kinds of the journal")

    def timeline(
        self, message: str | None = None, *, first_step: int = 0, last_step: int | None = None, scale: str = "rows"
    ) -> Timeline:
        """The journal (between two steps) as a static picture, of one message (its msg_id) or of all.

        ``scale`` is "rows", or "linear" or "log" for time to scale. ``.table()`` has the same as rows.
        If the journal has dropped steps, the picture begins after them.
        """
        from mqlab.lab.views.moments import moments
        from mqlab.lab.views.timeline import Timeline

        dropped = self.journal.dropped
        title = f"from step {dropped} on: earlier steps were dropped" if dropped > first_step else ""
        shown = moments(self.journal, message, first_step, last_step)
        if message is not None and all(moment.kind in ("fault", "mended") for moment in shown):
            title = f"no message {message!r} in these steps"
        return Timeline(shown, title=title, scale=scale)

    def space_time(
        self, first_step: int = 0, last_step: int | None = None, *, only: Collection[str] = (), scale: str = "rows"
    ) -> Timeline:
        """Every frame between two steps as an arrow from node to node; ``scale`` as in ``timeline``.

        ``only``: names of requests, such as HEART_BEAT; other frames, and what they changed, are left out.
        """
        from mqlab.lab.views.moments import space_time

        return space_time(self.journal, first_step, last_step, only=only, scale=scale)

    def offset_strip(self, group: str) -> OffsetStrip:
        """The offsets of a group on each queue: smallest, committed, pulled and largest offset as a strip."""
        from mqlab.lab.views.offset_strip import OffsetStrip
        from mqlab.lab.world.progress import progress_rows

        rows = progress_rows(self, group)
        return OffsetStrip(rows, title=f"offsets of {group}{self._not_here(rows)}")

    def queue_owners(
        self, group: str, *, from_ms: int | None = None, until_ms: int | None = None, queues: Iterable[int] = ()
    ) -> QueueOwners:
        """The owners of each queue of a group over time, and the calls of listeners: a picture over time.

        Times are the Lab's clock (``lab.now_ms``), from the first queue taken until now by default. ``queues``: only
        those with these queue ids.
        """
        from mqlab.lab.views.queue_owners import QueueOwners
        from mqlab.lab.world.ownership import calls, spans

        members = {
            name: handle
            for name, handle in self.handles.items()
            if handle.role == "consumer" and handle.node.group == group
        }
        brokers = sum(handle.role == "broker" for handle in self.handles.values())
        wanted = {str(number) for number in queues}

        def chosen(queue: str) -> bool:
            return not wanted or queue.rpartition(" ")[2] in wanted

        return QueueOwners(
            (span for span in spans(self.journal, group, members, brokers) if chosen(span.queue)),
            (call for call in calls(self.delivery_book.of(group), brokers) if chosen(call.queue)),
            start_ms=from_ms,
            end_ms=self.now_ms if until_ms is None else until_ms,
        )

    def how_far(self, group: str, topic: str) -> HowFar:
        """What of a topic a group has finished, message by message, and the offset in the three places that remember.

        The places are the owner's memory, the broker's table and the broker's file. Mirrors RemoteBrokerOffsetStore,
        ConsumerOffsetManager and consumerOffset.json; RocketMQ shows them at no single place.
        """
        from mqlab.lab.views.how_far import HowFar
        from mqlab.lab.world.how_far import standings

        return HowFar(standings(self, group, topic), title=f"how far {group} has read {topic}")

    def diagram(self) -> Diagram:
        """The nodes and their open connections, with the master of each slave and with labels of replication links."""
        from mqlab.lab.views.diagram import Diagram

        nodes = {name: f"{_title(handle)} {self.world.nodes[name].ip}" for name, handle in self.handles.items()}
        replication = {handle.node.ha_address for handle in self.handles.values() if handle.role in BROKERS}
        edges: dict[tuple[str, str], str] = {}
        for client, server, address in self.world.network.open_links():
            label = "copies the log of" if address in replication else edges.get((client, server), "")
            edges[client, server] = label
        return Diagram(nodes, [(client, server, label) for (client, server), label in edges.items()])

    def verify(self, group: str, *, stuck_after: str | int = "1m") -> Verdict:
        """What went wrong for a group: LOST, SKIPPED, DUPLICATED, REDELIVERED, OUT_OF_ORDER, STUCK.

        A message that was popped is judged by its leases: it may also be LEASED_TWICE.
        """
        from mqlab.lab.views.verdict import verify

        book = self.delivery_book
        wishes, broadcasting = book.wishes.get(group, {}), group in book.broadcasting
        return verify(self.journal, group, stuck_after=stuck_after, broadcasting=broadcasting, wishes=wishes)

    def snapshot(self) -> Snapshot:
        """Offsets, tables and files of all brokers that are up as one flat dict, which ``changes`` compares."""
        snapshot: Snapshot = {}
        for name, handle in self.handles.items():
            if handle.role in BROKERS and handle.is_up:
                snapshot.update(_tables_of(name, handle.node))
                snapshot.update(_files_of(name, Path(handle.node.store.directory)))
        return snapshot

    def changes(self, before: Snapshot) -> Table:
        """The differences from a snapshot: rows of what, before, after; None where there was or is no such entry."""
        from mqlab.lab.views import Table

        if not isinstance(before, dict):
            raise UsageError(f"{before!r} is not a snapshot", hint="before = lab.snapshot(), then lab.changes(before)")
        now = self.snapshot()
        rows = [
            {"what": what, "before": before.get(what), "after": now.get(what)}
            for what in sorted(before.keys() | now.keys())
            if before.get(what) != now.get(what)
        ]
        return Table(rows, columns=["what", "before", "after"], title="changes")


def _title(handle: NodeHandle) -> str:
    """Name and state of a node; of a slave also its master."""
    return f"{handle.status} slave of {handle.node.config.broker_name}" if handle.role == "slave" else handle.status


def _tables_of(name: str, broker: Any) -> Snapshot:
    tables: Snapshot = {f"{name} commit log end": broker.store.max_physical_offset}
    # One flat entry per offset or setting, so that two snapshots are compared entry by entry.
    for topic, queue_ids in broker.store.topics().items():
        for queue_id in queue_ids:
            tables[f"{name} queue {topic} {queue_id}"] = broker.store.max_offset(topic, queue_id)
    for topic in broker.topics:
        tables[f"{name} topic {topic}"] = broker.topics[topic].write_queue_nums
    for key, queues in broker.offset_table.items():
        for queue_id, commit_offset in queues.items():
            tables[f"{name} committed {key} {queue_id}"] = commit_offset
    for group in broker.consumers:
        tables[f"{name} members {group}"] = ", ".join(broker.consumers[group].client_ids)
    return tables


def _files_of(name: str, directory: Path) -> Snapshot:
    return {
        f"{name} file {path.relative_to(directory).as_posix()}": _fingerprint(path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file() and path.name not in ("lock", "abort")
    }


def _fingerprint(content: bytes) -> str:
    return f"{len(content)} B {zlib.crc32(content):08x}"
