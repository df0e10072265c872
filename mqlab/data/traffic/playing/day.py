"""A short day played through the real runtime: the same model, with producers, brokers and listeners that really run.

Mirrors: the clients of such a platform. Lab 10 compares it with a written day.

    the order and stock messages of a written day ──▶ sent again by producers, at their times, the day shortened
    listeners     some ms each, rare failures, and the effects of the incidents
    incidents     a listener that sleeps, fails or never returns; a member with fewer tags; a reset by an operator

    play(messages=300, seed=7).lab        a Lab at the end of the day: journal, deliveries, timelines, stores

Incidents really happen here and are not computed: the lag of a slow consumer is caused by its threads.

Left out: kinds that only a written day knows (see ``PLAYED``), and magnitudes of one member.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mqlab.data.traffic.day import DAY_MS
from mqlab.data.traffic.model import (
    GROUPS,
    ON_REQUEST,
    ORDERS,
    PRODUCER_OF,
    PRODUCERS,
    STOCK,
    TAGS,
    Asked,
    Group,
    TrafficModel,
)
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.trouble.incidents import KINDS, incidents_of
from mqlab.data.traffic.writing.run import make_store
from mqlab.errors import UsageError
from mqlab.lab.inspector.inspector import StoreInspector
from mqlab.lab.world.lab import Lab
from mqlab.lab.world.lab import play as play_story
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS, RECONSUME_LATER
from mqlab.rocketmq.wire.java_hash import crc32
from mqlab.rocketmq.wire.message import Message, MessageExt

_WARM_UP_MS = 60_000  # groups have found their queues by then
_AFTER_MS = 120_000
_A_LONG_TIME = "30d"
_WAREHOUSE = "wms"
PLAYED = (*KINDS, "campaign", "big_customer")
_WRITTEN_ONLY = ("member", "percent", "cost_ms")  # fields of an Incident


@dataclass(frozen=True, slots=True)
class PlayedDay:
    """A Lab at the end of its day, what went wrong in it (times of the Lab), and where the stores are."""

    lab: Lab
    incidents: tuple[Incident, ...]
    sent: int

    @property
    def stores(self) -> dict[str, Path]:
        """Broker name -> store directory."""
        handles = self.lab.handles.items()
        return {name: Path(self.lab.store(name).directory) for name, h in handles if h.role == "broker"}

    def __repr__(self) -> str:
        kinds = ", ".join(incident.kind for incident in self.incidents) or "nothing went wrong"
        return f"<played day: {self.sent} messages sent; {kinds}>"


def play(
    *,
    messages: int = 300,
    seed: int = 7,
    brokers: int = 1,
    minutes: int = 10,
    directory: str | os.PathLike[str] | None = None,
    model: TrafficModel | None = None,
    incidents: tuple[str, ...] | None = None,
    **lab_settings: Any,
) -> PlayedDay:
    """Play a day of about ``messages`` stored messages, shortened to ``minutes`` of virtual time, on a fresh Lab.

    ``incidents``: kinds (default: the seed chooses). Stores are under ``directory``, which is kept; other keywords are
    Lab's. Raises UsageError as ``write`` does, and for what only a written day has.
    """
    used = (model or TrafficModel()).changed(commit_log_bytes=1 << 24, consume_queue_bytes=20_000)
    if incidents is not None:
        used = used.changed(incidents=incidents)
    asked = Asked(messages, 1, seed, used)
    for name in ON_REQUEST:
        if getattr(used, name):
            raise UsageError(
                f"{name} cannot be played, only written", hint="write the day with mqlab.data.traffic.write"
            )
    for incident in incidents_of(asked):
        _must_be_played(incident)
    story = _Story(asked, minutes, _messages(asked))
    lab = play_story(story.play, seed=seed, brokers=brokers, directory=directory, **lab_settings)
    return PlayedDay(lab, tuple(story.incidents), story.sent)


def _must_be_played(incident: Incident) -> None:
    """Raises UsageError for an incident that only a written day knows."""
    if incident.kind not in PLAYED:
        raise UsageError(
            f"{incident.kind} cannot be played, only written", hint=f"the kinds to play are {', '.join(PLAYED)}"
        )
    named = [name for name in _WRITTEN_ONLY if getattr(incident, name) is not None]
    if named:
        raise UsageError(
            f"a played {incident.kind} concerns the whole group, but {', '.join(named)} is given",
            hint="leave it out, or write the day with mqlab.data.traffic.write",
        )


def _messages(asked: Asked) -> list[MessageExt]:
    """The messages that producers send on this day, in the order of a written day's log."""
    with tempfile.TemporaryDirectory(prefix="mqlab-day-") as folder:
        make_store(asked, 0, f"{folder}/day")
        stored = StoreInspector(f"{folder}/day").messages()
        return [message for message in stored if message.topic in (ORDERS, STOCK)]


@dataclass(slots=True)
class _Story:
    """The day as a story; times of the day are shortened to times of the Lab."""

    asked: Asked
    minutes: int
    messages: list[MessageExt]
    incidents: list[Incident] = field(default_factory=list)
    sent: int = 0
    _begin_ms: int = 0
    _stuck: tuple[bytes, str | None] | None = None
    _poison: tuple[bytes, str | None] | None = None
    _consumers: dict[str, list[Any]] = field(default_factory=dict)

    def play(self, lab: Lab) -> None:
        """Start all clients, send each message at its time, let the incidents happen, wait for messages in flight."""
        model = self.asked.model
        self._begin_ms = lab.now_ms + _WARM_UP_MS
        self.incidents = [self._moved(incident) for incident in incidents_of(self.asked)]
        self._stuck, self._poison = self._single_out("stuck_message"), self._single_out("poison_message")
        # 1. Topics, then groups, then producers; groups have a minute to find their queues.
        for topic, queues in ((ORDERS, model.queues), (STOCK, model.stock_queues)):
            lab.create_topic(topic, read_queue_nums=queues, write_queue_nums=queues)
        for group in GROUPS:
            self._consumers[group.name] = [self._consumer(lab, group, number) for number in (1, 2)]
        producers = {name: lab.producer(name) for name in (*PRODUCERS, _WAREHOUSE)}
        # 2. Everything with a time, in order: incidents and messages.
        due = [step for incident in self.incidents for step in self._steps(lab, incident)]
        due += [(self._at(m.born_timestamp), partial(self._send, producers, m)) for m in self.messages]
        for due_ms, act in sorted(due, key=lambda step: step[0]):
            if due_ms > lab.now_ms:
                lab.run_for(due_ms - lab.now_ms)
            act()
        lab.run_for(max(0, self._at(model.start_ms + DAY_MS) - lab.now_ms) + _AFTER_MS)

    def _at(self, day_ms: int) -> int:
        passed_ms = day_ms - self.asked.model.start_ms
        return self._begin_ms + passed_ms * self.minutes * 60_000 // DAY_MS

    def _moved(self, incident: Incident) -> Incident:
        back_ms = None if incident.back_ms is None else incident.back_ms * self.minutes * 60_000 // DAY_MS
        # The broker is left out: the day has one broker's messages, which any broker of the Lab may store.
        return replace(
            incident,
            start_ms=self._at(incident.start_ms),
            end_ms=self._at(incident.end_ms),
            broker=None,
            back_ms=back_ms,
        )

    def _send(self, producers: dict[str, Any], message: MessageExt) -> None:
        self.sent += 1
        copy = Message(message.topic, message.body, tags=message.tags, keys=message.keys)
        if message.topic == STOCK:
            producers[_WAREHOUSE].send_async(copy)
            return
        producer = producers[PRODUCERS[PRODUCER_OF[TAGS.index(message.tags or "")]]]
        # As in a written day, an order's customer chooses the queue; so one customer's events stay in order.
        customer = int((message.keys or "").rpartition("C")[2])
        producer.send_async(copy, selector=lambda queues, _, arg: queues[arg % len(queues)], arg=customer)

    def _consumer(self, lab: Lab, group: Group, number: int) -> Any:
        consumer = lab.push_consumer(
            group.name,
            name=f"{group.name}-{number}",
            max_reconsume_times=group.max_reconsume_times,
            enable_trace=group.traced,
            consume_thread_min=2,
            consume_thread_max=2,
            consume_timeout=_A_LONG_TIME,
        )
        consumer.subscribe(group.topic, group.expression)
        consumer.on_messages(self._listener(lab, group))
        consumer.start()
        return consumer

    def _listener(self, lab: Lab, group: Group) -> Callable[[Any, Any], str]:
        mine = [incident for incident in self.incidents if incident.group == group.name]
        few = self.asked.model.failing_of_1024
        is_billing, stuck, poison = group.name == "billing", self._stuck, self._poison

        def listener(messages: Any, context: Any) -> str:
            message = messages[0]
            happening = {i.kind for i in mine if i.start_ms <= lab.now_ms < i.end_ms}
            context.sleep("6s" if "slow_consumer" in happening else "20ms")
            this = (message.body, message.tags)
            if is_billing and this == stuck:
                context.sleep(_A_LONG_TIME)
            if "failing_consumer" in happening:
                raise ConnectionError("支付服务 is down, попробуйте позже 🔌")
            # The check sum of the body decides, not a random number: a seed must give the same day.
            fails = message.reconsume_times == 0 and crc32(message.body) % 1024 < few
            if fails or (is_billing and this == poison):
                return RECONSUME_LATER
            return CONSUME_SUCCESS

        return listener

    def _single_out(self, kind: str) -> tuple[bytes, str | None] | None:
        """Body and tag of the message an incident is about: the first that the group reads after its time."""
        for incident in self.incidents:
            if incident.kind == kind:
                tags = next(group.tags for group in GROUPS if group.name == incident.group)
                for message in self.messages:
                    if message.tags in tags and self._at(message.born_timestamp) >= incident.start_ms:
                        return message.body, message.tags
        return None

    def _steps(self, lab: Lab, incident: Incident) -> list[tuple[int, Callable[[], Any]]]:
        """(time, action) of what an operator does during the incident."""
        group = incident.group or ""
        if incident.kind == "wrong_reset":
            back_to_ms = incident.start_ms - (incident.back_ms or 0)
            return [(incident.start_ms, lambda: lab.admin.reset_offset_by_timestamp(ORDERS, group, back_to_ms))]
        if incident.kind != "inconsistent_tags":
            return []
        usual = next(g for g in GROUPS if g.name == group)
        odd = Group(group, usual.topic, usual.tags[:1], usual.traced, usual.max_reconsume_times)

        def put_right() -> None:
            self._consumers[group][2].shutdown()
            for consumer in self._consumers[group][:2]:  # they subscribe again, so that their expression counts
                lab.kill(consumer)
                lab.start(consumer)

        joins = (incident.start_ms, lambda: self._consumers[group].append(self._consumer(lab, odd, 3)))
        return [joins, (incident.end_ms, put_right)]
