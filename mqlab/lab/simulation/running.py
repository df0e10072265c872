"""Plays a plan on a Lab: members start, work and faults happen by the clock, then everything is repaired and settles.

Mirrors: nothing of RocketMQ; the faults are the verbs of mqlab.lab.world.faults.

    tell(plan, lab)    the story         run(plan)    its outcome: what is wrong, the Lab, the notes

What raises an error that is not one of mqlab's own is wrong, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from mqlab.errors import MqlabError
from mqlab.lab.parts import FOLDER, parts_in
from mqlab.lab.parts.broken import BrokenPart
from mqlab.lab.simulation.model import Wrong, judge, unsettled
from mqlab.lab.simulation.notes import Notes, body_of, harmless
from mqlab.lab.simulation.plan import Event, RunPlan
from mqlab.lab.simulation.scene import (
    AUDIT,
    LEASE_MS,
    LEASED,
    LEASING,
    LEDGER,
    LEVELS_MS,
    MINE,
    MOST_RETRIES,
    ORDERS,
    PASSING,
    SMALL_LOG,
    STEPS,
    TAGS,
    TOPICS,
)
from mqlab.lab.world.handles import BROKERS
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from mqlab.rocketmq.wire.message import Message

SETTLE_MS, SETTLE_LIMIT_MS = 45_000, 400_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: ``wrong`` is empty when every promise was kept."""

    plan: RunPlan
    wrong: list[Wrong]
    lab: Lab | None
    notes: Notes


def lab_settings(plan: RunPlan) -> dict[str, Any]:
    """The keywords of Lab for the world of a plan."""
    world = plan.world
    broker: dict[str, Any] = {
        "message_delay_level": " ".join(f"{delay_ms // 1000}s" for delay_ms in LEVELS_MS),
        "transaction_time_out": 2_000,
        "transaction_op_batch_interval": 500,
        "transaction_check_interval": 5_000,
        "flush_disk_type": "SYNC_FLUSH" if world["sync_flush"] else "ASYNC_FLUSH",
    }
    if world["two_copies"]:
        broker |= {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2, "slave_timeout": 1_000}
    if world["small_files"]:
        broker |= {"mapped_file_size_commit_log": SMALL_LOG, "mapped_file_size_consume_queue": 200}
    if world_has_leases(plan):
        broker |= {"timer_roll_window_slot": 6, "timer_enable_retry_until_success": True}
    return {
        **({"parts": parts_in(Path(FOLDER))} if world.get(MINE) else {}),
        "brokers": world["brokers"],
        "replicas": world["replicas"],
        "name_servers": world["name_servers"],
        "broker": broker,
        "client": {"enable_trace": False},
        "network": {"latency": f"{world['latency']}ms"},
    }


def world_has_leases(plan: RunPlan) -> bool:
    """Whether a group of the plan pops."""
    return any(member["group"] == LEASING for member in plan.members)


def run(plan: RunPlan) -> Outcome:
    """Play a plan to its end and judge it."""
    run = Run(plan)
    try:
        lab = play(run.story, **plan.settings)
    except BrokenPart as error:
        return Outcome(plan, [Wrong("PART", str(error))], None, run.notes)
    except MqlabError as error:
        return Outcome(plan, [Wrong("ERROR", f"{type(error).__name__}: {error}")], None, run.notes)
    except Exception as error:
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        where = f"{frame.tb_frame.f_code.co_name}:{frame.tb_lineno}" if frame else ""
        return Outcome(plan, [Wrong("CRASH", f"{type(error).__name__}: {error} in {where}")], None, run.notes)
    return Outcome(plan, judge(lab, run.notes, plan), lab, run.notes)


def tell(plan: RunPlan, lab: Lab) -> None:
    """The run as a story."""
    Run(plan).story(lab)


class TransactionBank:
    """Ends transactions as their message's body says: at once, or when it is asked."""

    def execute_local_transaction(self, message: Message, arg: Any) -> str:
        """What the producer reports: nothing yet when the broker shall ask."""
        end = message.body.split(b"|")[3].decode()
        return "UNKNOW" if end.startswith("ask") else self.check_local_transaction(message)

    def check_local_transaction(self, message: Message) -> str:
        """What the producer answers when it is asked."""
        return "COMMIT_MESSAGE" if message.body.split(b"|")[3].endswith(b"commit") else "ROLLBACK_MESSAGE"


class Run:
    """One play of a plan, with its notes."""

    def __init__(self, plan: RunPlan) -> None:
        self.plan = plan
        self.notes = Notes()
        self.lab: Lab
        self.producers: dict[str, Any] = {}
        self.left: list[str] = []
        self.stopped: list[str] = []
        self.down_ms: dict[str, int] = {}

    def story(self, lab: Lab) -> None:
        """Members start, events happen, faults end, dust settles."""
        self.begin(lab)
        self.act()
        # The dust settles.
        self.mend()
        lab.run_for(SETTLE_MS)
        waited_ms = SETTLE_MS
        while unsettled(lab, self.notes) and waited_ms < SETTLE_LIMIT_MS:
            self.wake()
            lab.run_for(15_000)
            waited_ms += 15_000

    def begin(self, lab: Lab) -> None:
        """The topics, the members, the producers."""
        self.lab = lab
        self.notes.now_ms = lambda: lab.now_ms
        lab.world.on_change["offset.committed"] = self._committed
        queues = self.plan.world["queues"]
        for topic in (ORDERS, STEPS, PASSING):
            lab.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
        if world_has_leases(self.plan):
            lab.create_topic(LEASED, read_queue_nums=queues, write_queue_nums=queues)
            lab.admin.set_message_request_mode(LEASED, LEASING)
        for member in self.plan.members:
            self._join(member)
        self.producers = {"plain": lab.producer("shop"), "bank": lab.transaction_producer("pay", TransactionBank())}

    def act(self) -> None:
        """Events and ends of faults, by the clock. Verbs that wait may make later ones late."""
        lab = self.lab
        begin_ms = lab.now_ms
        for at_ms, action in self._actions():
            lab.run_for(max(0, begin_ms + at_ms - lab.now_ms))
            harmless(action)

    def _actions(self) -> list[tuple[int, Callable[[], Any]]]:
        actions: list[tuple[int, Callable[[], Any]]] = []
        for event in self.plan.events:
            begin = getattr(self, f"_{event['do']}")
            actions.append((event["at"], partial(begin, event)))
            end = getattr(self, f"_end_{event['do']}", None)
            if end is not None:
                actions.append((event["at"] + event["for"], partial(end, event)))
        return sorted(actions, key=lambda timed: timed[0])

    def _committed(self, record: Any, values: dict[str, Any]) -> None:
        self.notes.committed(record.node, values)

    def _join(self, event: Event) -> None:
        member = event.get("member", event)
        group, name = member["group"], member["name"]
        more: dict[str, Any] = {}
        if group == LEASING:
            more = {"client_rebalance": False, "pop_invisible_time": LEASE_MS}
        elif group != LEDGER:
            more = {"max_reconsume_times": MOST_RETRIES, "consume_message_batch_max_size": member["batch"]}
        consumer = self.lab.push_consumer(
            group,
            name=name,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            consume_thread_min=member["threads"],
            consume_thread_max=member["threads"],
            **more,
        )
        for topic in TOPICS[group]:
            consumer.subscribe(topic, TAGS[0] if group == AUDIT else "*")
        listener = self.notes.listener(group, name, orderly=group == LEDGER)
        (consumer.on_messages_orderly if group == LEDGER else consumer.on_messages)(listener)
        harmless(consumer.start)

    def _leave(self, event: Event) -> None:
        handle = self.lab.handles.get(event["node"])
        if handle is not None and handle.is_up:
            self.left.append(handle.name)
            handle.shutdown()

    def _send(self, event: Event) -> None:
        producer, topic = self.producers["plain"], event["topic"]
        if not producer.is_up:
            return
        due_ms = self.lab.now_ms + event["due"] if "due" in event else None
        key = str(event["number"])
        message = Message(topic, body_of(event), tags=event.get("tag"), keys=key, deliver_at=due_ms)
        if event.get("delay"):
            message.delay_time_level = event["delay"]
        choice = {"selector": "HASH", "arg": event["key"]} if "key" in event else {}
        pending = producer.send_async(message, **choice)
        pending.then(self._answered(event), lambda error: None)

    def _answered(self, event: Event) -> Callable[[Any], None]:
        began_ms = self.lab.now_ms
        due_ms = began_ms + event["due"] if "due" in event else None

        def note(result: Any) -> None:
            alone = self.plan.world["two_copies"] and self._is_without_copy(result, began_ms)
            self.notes.answered(event, self.lab.now_ms, result, is_without_copy=alone, due_ms=due_ms)

        return note

    def _is_without_copy(self, result: Any, began_ms: int) -> bool:
        """Whether the slave cannot have had a message that was sent at ``began_ms`` and is acknowledged now."""
        if result.send_status != "SEND_OK":
            return False
        slave = f"{result.message_queue.broker_name}-s1"
        down_ms = self.down_ms.get(slave, -1)
        if not self._is_up(slave) or down_ms >= began_ms:
            return 0 <= down_ms < began_ms  # dead all the time; else it may have died after it had the message
        physical_offset = parse_offset_msg_id(result.offset_msg_id)[1]
        return bool(self.lab.handles[slave].node.store.max_physical_offset <= physical_offset)

    def _transact(self, event: Event) -> None:
        producer = self.producers["bank"]
        if producer.is_up:
            message = Message(event["topic"], body_of(event), tags=event.get("tag"), keys=str(event["number"]))
            note = self._answered(event)
            note(producer.send_message_in_transaction(message))

    def _renew_topic(self, event: Event) -> None:
        topic, queues = event["topic"], self.plan.world["queues"]
        harmless(lambda: self.lab.admin.delete_topic(topic))
        self.lab.run_for(500)
        harmless(lambda: self.lab.admin.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues))
        self.lab.run_for(500)
        self.notes.renewed_ms[topic] = self.lab.now_ms

    def _is_up(self, name: str) -> bool:
        return name in self.lab.handles and self.lab.handles[name].is_up

    def _kill(self, event: Event) -> None:
        if self._is_up(event["node"]):
            self.down_ms[event["node"]] = self.lab.now_ms
            self.lab.kill(event["node"])

    def _power_off(self, event: Event) -> None:
        if self._is_up(event["node"]):
            self.down_ms[event["node"]] = self.lab.now_ms
            share, rng = event.get("keep", 0.0), Random(self.plan.seed)
            self.lab.power_off(event["node"], keep=lambda unsynced: rng.random() < share)

    def _end_kill(self, event: Event) -> None:
        if event["node"] in self.lab.handles and not self._is_up(event["node"]):
            self._start(event["node"])

    _end_power_off = _end_kill

    def _start(self, name: str) -> None:
        if self.lab.handles[name].role in BROKERS:  # no operator starts a broker on a disk that fails
            self.lab.disk_fails(name, None)
        self.lab.start(name)
        if name in self.stopped:  # a node that was stopped gracefully is not started again
            self.stopped.remove(name)
            self.lab.handles[name].start()

    def _restart(self, event: Event) -> None:
        """A node is stopped in good order; its process ends, too."""
        if not self._is_up(event["node"]) or event["node"] in self.left:
            return
        try:
            self.lab.handles[event["node"]].shutdown()
        finally:
            self.stopped.append(event["node"])
            self._kill(event)

    _end_restart = _end_kill

    def _brokers(self) -> list[str]:
        return [name for name, handle in self.lab.handles.items() if handle.role == "broker"]

    def _blackout(self, event: Event) -> None:
        for name in self._brokers():
            self._power_off({**event, "node": name})

    def _end_blackout(self, event: Event) -> None:
        for name in self._brokers():
            self._end_kill({**event, "node": name})

    def _partition(self, event: Event) -> None:
        self.lab.partition(event["node"], event["other"])

    def _end_partition(self, event: Event) -> None:
        self.lab.heal()

    def _slow(self, event: Event) -> None:
        self.lab.slow(event["node"], event["delay"])

    def _end_slow(self, event: Event) -> None:
        self.lab.slow(event["node"], 0)

    def _drop(self, event: Event) -> None:
        self.lab.drop(event["node"], event["other"], event["count"])

    def _skew_clock(self, event: Event) -> None:
        self.lab.skew_clock(event["node"], event["skew"])

    def _end_skew_clock(self, event: Event) -> None:
        self.lab.skew_clock(event["node"], 0)

    def _slow_disk(self, event: Event) -> None:
        if self._is_up(event["node"]):
            self.lab.slow_disk(event["node"], event["for"])

    def _disk_fails(self, event: Event) -> None:
        self.lab.disk_fails(event["node"], event["at_what"])

    def _end_disk_fails(self, event: Event) -> None:
        self.lab.disk_fails(event["node"], None)

    def _disk_full(self, event: Event) -> None:
        self.lab.disk_full(event["node"], 0.95)

    def _end_disk_full(self, event: Event) -> None:
        self.lab.disk_full(event["node"], 0)

    def mend(self) -> None:
        """Every fault ends. Servers come back first, because clients ask them at their start."""
        lab = self.lab
        lab.heal()
        lab.world.network.drop_no_more()
        for name, handle in list(lab.handles.items()):
            lab.slow(name, 0)
            lab.skew_clock(name, 0)
            if handle.role in BROKERS:
                lab.disk_full(name, 0)
                lab.disk_fails(name, None)
        for roles in (("name server",), ("broker",), ("slave",), ("producer", "consumer")):
            for name, handle in list(lab.handles.items()):
                if handle.role in roles and not handle.is_up:
                    harmless(partial(self._start, name))
            lab.run_for(1_000)
        self.wake()

    def wake(self) -> None:
        """An operator starts members that gave up at their start; a producer at work learns of its brokers again."""
        for name, handle in list(self.lab.handles.items()):
            if handle.role == "consumer" and name not in self.left and handle.is_up and not handle.is_running:
                self.lab.kill(name)
                harmless(partial(self._start, name))
        for producer in self.producers.values():
            harmless(partial(producer.fetch_publish_message_queues, ORDERS))
