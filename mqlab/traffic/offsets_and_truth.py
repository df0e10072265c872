"""What a store's making finds out on the way: how far groups have read, and what the incidents did.

Mirrors: ConsumerOffsetManager's table, and an operator's notes after a bad day. Lab 13's grading reads the notes.

    committed offset   of a group and queue: the first message not done with at the end of the day, else the queue's end
                       analytics counts by the hour and has not begun with what came after 22:30
    truth              an incident's plan and what it came to: messages, keys, places, counts

Left out: offsets in between; the pipeline rebuilds them from the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mqlab.traffic.day import MINUTE_MS
from mqlab.traffic.deliveries import SUCCESS, Deliveries, Parked, Stored
from mqlab.traffic.draws import Array
from mqlab.traffic.incidents import Incident
from mqlab.traffic.model import GROUPS, TAGS, TRACED
from mqlab.wire.ids import offset_msg_id
from mqlab.wire.names import retry_topic

if TYPE_CHECKING:
    from mqlab.traffic.broker_store import BrokerStore
    from mqlab.traffic.slice_messages import Slice

COUNTED_UNTIL = 22 * 60 + 30  # minute of the day
_NEVER = np.int64(1 << 62)


class Outcomes:
    """Collects while a store is made."""

    def __init__(self, store: BrokerStore) -> None:
        self._store = store
        self._undone = np.full((len(TRACED), store.numbers.orders), _NEVER)
        self._failed = np.zeros(len(TRACED), np.int64)
        self._dead = np.zeros(len(TRACED), np.int64)
        self._slow = np.zeros(len(TRACED), np.int64)
        self._most_lag_ms = np.zeros(len(TRACED), np.int64)
        self._counted_until_ms = store.day.start_ms + COUNTED_UNTIL * MINUTE_MS
        self._counted = np.zeros(store.numbers.orders, np.int64)
        self._delivered = np.zeros(18, np.int64)
        self._hot_orders = self._burst_orders = 0
        self._singled_out: dict[str, dict[str, Any]] = {}
        self.first_ms = self.last_ms = 0

    def note(self, made: Deliveries, parked: Parked | None, stored: Stored, slice_made: Slice) -> None:
        """A round of deliveries of one group."""
        if not len(made):
            return
        group = int(made.group[0])
        end_ms = self._store.day.end_ms
        unfinished = np.flatnonzero((made.end_ms >= end_ms) | ~made.returned)
        unfinished = unfinished[(made.tries[unfinished] == 0) & ~made.extra[unfinished]]
        rows = made.row[unfinished]
        np.minimum.at(self._undone[group], stored.queue_id[rows], stored.queue_offset[rows])
        window = self._window("failing_consumer", group)
        if window is not None:
            inside = (made.start_ms >= window.start_ms) & (made.start_ms < window.end_ms)
            self._failed[group] += int((inside & (made.code != SUCCESS)).sum())
        if parked is not None:
            self._dead[group] += int(((parked.level == 0) & (parked.stored_ms < end_ms)).sum())
        window = self._window("slow_consumer", group)
        if window is not None:
            first = made.tries == 0
            lag = np.where(first & ~made.extra, made.start_ms - stored.stored_ms[made.row], 0)
            self._most_lag_ms[group] = max(int(self._most_lag_ms[group]), int(lag.max(initial=0)))
            self._slow[group] += int((made.end_ms - made.start_ms >= 1_000).sum())

    def placed(self, made: Slice, physical_offsets: Array) -> None:
        """The order messages of a slice have their places."""
        store = self._store
        for incident in store.incidents:
            inside = (made.born_ms >= incident.start_ms) & (made.born_ms < incident.end_ms)
            if incident.kind == "hot_key":
                self._hot_orders += int((inside & (made.kind == 0) & (made.customer == incident.customer)).sum())
            elif incident.kind == "burst":
                self._burst_orders += int((inside & (made.kind == 0)).sum())
        counted = made.queue_id[made.stored_ms < self._counted_until_ms]
        self._counted += np.bincount(counted, minlength=len(self._counted))
        message = made.order * 8 + made.kind
        offsets = store.queues.offsets(made.queue_id)
        stuck = (made.queue_id == store.fixed.stuck_queue) & (offsets == store.fixed.stuck_offset)
        for kind, rows in (("poison_message", message == store.fixed.poison), ("stuck_message", stuck)):
            for row in np.flatnonzero(rows).tolist():
                self._singled_out[kind] = self._described(made, row, int(physical_offsets[row]), int(offsets[row]))

    def _described(self, made: Slice, row: int, physical_offset: int, queue_offset: int) -> dict[str, Any]:
        store = self._store
        one = slice(row, row + 1)
        unique = store.clients.ids(made.sender[one], made.born_ms[one], made.counter[one])[0]
        texts = store.units.texts
        host = store.clients.broker_host(store.broker)
        return {
            "msg_id": bytes(unique).decode(), "offset_msg_id": offset_msg_id(host, physical_offset),
            "key": f"O{bytes(texts.order(made.order[one])[0]).decode()}", "tag": TAGS[int(made.kind[row])],
            "queue_id": int(made.queue_id[row]), "queue_offset": queue_offset, "physical_offset": physical_offset,
            "stored_ms": int(made.stored_ms[row]),
        }  # fmt: skip

    def came_back(self, levels: Array) -> None:
        """Scheduled copies were delivered to their retry topics, of these levels (0 is level 1)."""
        self._delivered += np.bincount(levels, minlength=len(self._delivered))

    def slice_ended(self, first_ms: int, last_ms: int) -> None:
        """Store times of a slice's first and last unit."""
        self.first_ms = self.first_ms or first_ms
        self.last_ms = last_ms

    def _window(self, kind: str, group: int) -> Incident | None:
        found = [i for i in self._store.incidents if i.kind == kind and i.group == TRACED[group].name]
        return found[0] if found else None

    # ── at the end ──

    def committed(self) -> dict[str, dict[int, int]]:
        """``topic@group`` -> queue -> committed offset, as consumerOffset.json holds it."""
        store = self._store
        ends = {place: int(end) for place, end in zip(store.queues.places, store.queues.ends, strict=True)}
        table: dict[str, dict[int, int]] = {}
        for number, group in enumerate(GROUPS):
            queues = sorted(queue for topic, queue in ends if topic == group.topic)
            offsets = {queue: ends[group.topic, queue] for queue in queues}
            if group.traced:
                undone = self._undone[number].tolist()
                offsets = {queue: min(end, undone[queue]) for queue, end in offsets.items()}
            elif group.name == "analytics":
                offsets = {queue: int(count) for queue, count in enumerate(self._counted.tolist())}
            table[f"{group.topic}@{group.name}"] = offsets
            retries = retry_topic(group.name)
            table[f"{retries}@{group.name}"] = {0: ends.get((retries, 0), 0)}
        return table

    def delivered(self) -> list[int]:
        """Of each queue, by number: where the schedule goes on (0 for queues that are none of its)."""
        store = self._store
        delivered = np.zeros(len(store.queues.places), np.int64)
        first = store.numbers.schedule
        delivered[first : first + len(self._delivered)] = self._delivered
        return [int(count) for count in delivered]

    def truth(self) -> list[dict[str, Any]]:
        """The incidents that can be seen in this store, with what they came to."""
        return [{**incident.told(self._store.asked), **self._came_to(incident)} for incident in self._store.incidents]

    def _came_to(self, incident: Incident) -> dict[str, Any]:
        store = self._store
        number = next((n for n, group in enumerate(TRACED) if group.name == incident.group), 0)
        if incident.kind == "burst":
            return {"orders": self._burst_orders}
        if incident.kind == "hot_key":
            customer = np.array([incident.customer])
            return {
                "key": f"C{bytes(store.units.texts.customer(customer)[0]).decode()}", "orders": self._hot_orders,
                "queue_id": int(store.orders.queues(customer)[0]),
            }  # fmt: skip
        if incident.kind == "slow_consumer":
            return {"slow_deliveries": int(self._slow[number]), "most_lag_ms": int(self._most_lag_ms[number])}
        if incident.kind == "failing_consumer":
            return {"failed_deliveries": int(self._failed[number]), "dead_letters_of_the_day": int(self._dead[number])}
        if incident.kind == "inconsistent_tags":
            return {"messages_not_delivered": int(store.consumers.lost[number])}
        if incident.kind == "wrong_reset":
            return {"messages_delivered_again": int(store.consumers.repeated[number])}
        return self._singled_out.get(incident.kind, {})
