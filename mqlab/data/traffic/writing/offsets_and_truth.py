"""Facts collected while a store is written: how far the groups have read, and what the incidents did.

Mirrors: ConsumerOffsetManager's table, and an operator's notes after a bad day.

    committed offset   of a group and queue: the first message not finished at the end of the day, else the queue's end
                       analytics counts by the hour and has not begun with what came after 22:30
    truth              an incident's plan and its effect: messages, keys, places, counts

Left out: offsets in between; the pipeline rebuilds them from the trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mqlab.data.traffic.clients import address, consumer
from mqlab.data.traffic.day import MINUTE_MS
from mqlab.data.traffic.deliveries import SUCCESS, Deliveries, DeliveryColumns, Parked
from mqlab.data.traffic.draws import Array
from mqlab.data.traffic.model import TAGS, TRACED
from mqlab.data.traffic.trouble.harm import Harm
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.writing.beside_orders.half_queue import HalfQueue
from mqlab.data.traffic.writing.slice_messages import Slice
from mqlab.data.traffic.writing.store_state import LEVELS, WrittenStore
from mqlab.rocketmq.wire.ids import offset_msg_id
from mqlab.rocketmq.wire.names import HALF_TOPIC, OP_HALF_TOPIC, TRANSACTION_GROUP, retry_topic

COUNTED_UNTIL = 22 * 60 + 30  # minute of the day
_NEVER = np.int64(1 << 62)


class Outcomes:
    """Collects outcomes slice by slice; ``committed``, ``delivered`` and ``truth`` are asked at the end."""

    def __init__(self, state: WrittenStore) -> None:
        self._state = state
        queue_count = state.numbers.orders
        self._first_unfinished = np.full((len(TRACED), queue_count), _NEVER)
        self._failed = np.zeros(len(TRACED), np.int64)
        self._dead = np.zeros(len(TRACED), np.int64)
        self._slow = np.zeros(len(TRACED), np.int64)
        self._max_lag_ms = np.zeros(len(TRACED), np.int64)
        offs = [incident.start_ms for incident in state.incidents if incident.kind == "group_off"]
        self._counted_until_ms = min([state.day.start_ms + COUNTED_UNTIL * MINUTE_MS, *offs])
        self.harm = Harm(state)
        self._counted = np.zeros(queue_count, np.int64)
        self._delivered = np.zeros(LEVELS, np.int64)
        self._orders = [0] * len(state.incidents)  # that an incident is about
        self._twice = 0
        self._singled_out: dict[str, dict[str, Any]] = {}
        self.first_ms = self.last_ms = 0
        self.half_queue: HalfQueue | None = None  # of a day with transactions

    def note(self, deliveries: Deliveries, parked: Parked | None, stored: DeliveryColumns) -> None:
        """Count one round of deliveries of one group."""
        if not len(deliveries):
            return
        group = int(deliveries.group[0])
        end_ms = self._state.day.end_ms
        # 1. A first try that has not ended holds the group's offset of its queue back. Later tries are read from the
        #    retry topic, what is delivered again lies before the offset or is finished by another process.
        unfinished = np.flatnonzero((deliveries.end_ms >= end_ms) | ~deliveries.returned)
        unfinished = unfinished[(deliveries.tries[unfinished] == 0) & ~deliveries.extra[unfinished]]
        unfinished = unfinished[~deliveries.replaced[unfinished]]
        rows = deliveries.row[unfinished]
        np.minimum.at(self._first_unfinished[group], stored.queue_id[rows], stored.queue_offset[rows])
        # 2. Failures inside the incident, dead letters of the whole day.
        incident = self._incident("failing_consumer", group)
        if incident is not None:
            inside = (deliveries.start_ms >= incident.start_ms) & (deliveries.start_ms < incident.end_ms)
            self._failed[group] += int((inside & (deliveries.code != SUCCESS)).sum())
        if parked is not None:
            self._dead[group] += int(((parked.level == 0) & (parked.stored_ms < end_ms)).sum())
        # 3. How late first tries were, and how many calls took a second or longer.
        if self._incident("slow_consumer", group) is not None:
            is_first = (deliveries.tries == 0) & ~deliveries.extra
            lag_ms = np.where(is_first, deliveries.start_ms - stored.stored_ms[deliveries.row], 0)
            self._max_lag_ms[group] = max(int(self._max_lag_ms[group]), int(lag_ms.max(initial=0)))
            self._slow[group] += int((deliveries.end_ms - deliveries.start_ms >= 1_000).sum())

    def placed(self, messages: Slice, physical_offsets: Array) -> None:
        """Count the order messages of a slice, once their places are known."""
        state = self._state
        for number, incident in enumerate(state.incidents):
            created = (messages.sent_ms >= incident.start_ms) & (messages.sent_ms < incident.end_ms)
            created &= (messages.kind == 0) & (messages.repeats == np.arange(len(created)))
            if incident.kind in ("hot_key", "load_test", "big_customer"):
                created &= messages.customer == incident.customer
            if incident.kind in ("hot_key", "load_test", "big_customer", "burst", "campaign"):
                self._orders[number] += int(created.sum())
            elif incident.kind == "lost_answer":
                self._twice += int((messages.repeats != np.arange(len(created))).sum())
        # What the group analytics has counted by the end of the day: its committed offsets.
        counted = messages.queue_id[messages.stored_ms < self._counted_until_ms]
        self._counted += np.bincount(counted, minlength=len(self._counted))
        offsets = state.queues.offsets(messages.queue_id)
        is_poison = messages.order * 8 + messages.kind == state.fixed.poison
        is_stuck = (messages.queue_id == state.fixed.stuck_queue) & (offsets == state.fixed.stuck_offset)
        for kind, rows in (("poison_message", is_poison), ("stuck_message", is_stuck)):
            for row in np.flatnonzero(rows).tolist():
                self._singled_out[kind] = self._described(messages, row, int(physical_offsets[row]), int(offsets[row]))

    def _described(self, messages: Slice, row: int, physical_offset: int, queue_offset: int) -> dict[str, Any]:
        state = self._state
        row_slice = slice(row, row + 1)
        unique = state.clients.ids(
            messages.sender[row_slice], messages.made_ms[row_slice], messages.counter[row_slice]
        )[0]
        host = state.clients.broker_host(state.broker)
        return {
            "msg_id": bytes(unique).decode(),
            "offset_msg_id": offset_msg_id(host, physical_offset),
            "key": f"O{bytes(state.texts.order(messages.order[row_slice])[0]).decode()}",
            "tag": TAGS[int(messages.kind[row])],
            "queue_id": int(messages.queue_id[row]),
            "queue_offset": queue_offset,
            "physical_offset": physical_offset,
            "stored_ms": int(messages.stored_ms[row]),
        }

    def came_back(self, levels: Array) -> None:
        """Count scheduled copies that were delivered to their retry topics, by level (0 is level 1)."""
        self._delivered += np.bincount(levels, minlength=len(self._delivered))

    def slice_ended(self, first_ms: int, last_ms: int) -> None:
        """Keep the store times of a slice's first and last unit."""
        self.first_ms = self.first_ms or first_ms
        self.last_ms = last_ms

    def _incident(self, kind: str, group: int) -> Incident | None:
        """This group's incident of a kind, if there is one."""
        matching = (i for i in self._state.incidents if i.kind == kind and i.group == TRACED[group].name)
        return next(matching, None)

    def committed(self) -> dict[str, dict[int, int]]:
        """``topic@group`` -> queue -> committed offset, as in consumerOffset.json."""
        queues = self._state.queues
        ends = {queue: int(end) for queue, end in zip(queues.places, queues.ends, strict=True)}
        table: dict[str, dict[int, int]] = {}
        for number, group in enumerate(self._state.asked.model.groups):
            queue_ids = sorted(queue for topic, queue in ends if topic == group.topic)
            offsets = {queue: ends[group.topic, queue] for queue in queue_ids}
            if group.traced:
                first_unfinished = self._first_unfinished[number].tolist()
                offsets = {queue: min(end, first_unfinished[queue]) for queue, end in offsets.items()}
            elif group.name == "analytics":
                offsets = {queue: int(count) for queue, count in enumerate(self._counted.tolist())}
            table[f"{group.topic}@{group.name}"] = offsets
            # Every group reads its own retry topic to the end.
            retries = retry_topic(group.name)
            table[f"{retries}@{group.name}"] = {0: ends.get((retries, 0), 0)}
        if self.half_queue is not None:
            table[f"{HALF_TOPIC}@{TRANSACTION_GROUP}"] = {0: self.half_queue.offset}
            table[f"{OP_HALF_TOPIC}@{TRANSACTION_GROUP}"] = {0: self.half_queue.op_offset}
        return table

    def delivered(self) -> list[int]:
        """By queue number, the offset where the schedule goes on (0 for queues of other topics)."""
        delivered = np.zeros(len(self._state.queues.places), np.int64)
        first = self._state.numbers.schedule
        delivered[first : first + len(self._delivered)] = self._delivered
        return [int(count) for count in delivered]

    def truth(self) -> list[dict[str, Any]]:
        """The incidents that can be seen in this store, with their effect."""
        state = self._state
        return [
            {**incident.public_fields(state.asked), **self._effect(number, incident), "harmed": harmed.counts}
            for number, (incident, harmed) in enumerate(zip(state.incidents, self.harm.of, strict=True))
        ]

    def _effect(self, own: int, incident: Incident) -> dict[str, Any]:
        state = self._state
        number = next((n for n, group in enumerate(TRACED) if group.name == incident.group), 0)
        if incident.kind in ("burst", "campaign"):
            return {"orders": self._orders[own]}
        # Keys and places are those that a reader of the store can look up.
        if incident.kind in ("hot_key", "load_test", "big_customer"):
            customer = np.array([incident.customer])
            return {
                "key": state.texts.customer_key(incident.customer or 0),
                "orders": self._orders[own],
                "queue_id": int(state.orders.queues(customer)[0]),
            }
        if incident.kind in ("clock_skew", "lost_answer") and incident.client is not None:
            stored_twice = {"messages_stored_twice": self._twice} if incident.kind == "lost_answer" else {}
            return {"client": address(state.broker, incident.client), **stored_twice}
        if incident.kind == "killed_listener" and incident.member is not None:
            return {"client": address(state.broker, int(consumer(number, incident.member, 0)))}
        if incident.kind == "slow_consumer":
            return {"slow_deliveries": int(self._slow[number]), "most_lag_ms": int(self._max_lag_ms[number])}
        if incident.kind == "failing_consumer":
            return {"failed_deliveries": int(self._failed[number]), "dead_letters_of_the_day": int(self._dead[number])}
        if incident.kind == "inconsistent_tags":
            return {"messages_not_delivered": int(state.consumers.lost[number])}
        if incident.kind == "wrong_reset":
            return {"messages_delivered_again": int(state.consumers.repeated[number])}
        return self._singled_out.get(incident.kind, {})
