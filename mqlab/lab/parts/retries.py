"""A learner's retries in a broker: what becomes of a message that a consumer sends back, now and in the next life.

CONSUMER_SEND_MSG_BACK ─▶ MyRetries.send_back ─▶ "dead": a copy in %DLQ%group     "retry": a copy that waits
every second ─▶ MyRetries.look ─▶ copies whose time has come enter %RETRY%group
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.lab.parts.broken import anything, ask, broken
from mqlab.lab.parts.doors import StoreToWrite
from mqlab.rocketmq.broker.send_back import SendBackHandler
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Handler, Reply
from mqlab.rocketmq.remoting.requests import text, whole_long, whole_or
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.record import Record, decode, encode

RETRY, DEAD = "retry", "dead"
WORDS = f'"{RETRY}" or "{DEAD}"'
FIRST_LEVEL, LOOK_MS = 3, 1_000
NOTED_MS = 10_000
"""How long a part may take to note that a copy has come: RocketMQ saves delayOffset.json every ten seconds."""

DEAD_RULE = "A message is dead when it was redelivered as often as allowed, or when its level is below 0; else it waits"
DLQ_RULE = "A dead message has a copy in %DLQ%group, queue 0, before send_back returns, and no other copy"
EARLY_RULE = (
    "A retry does not come before its time: the delay of its level; level 0 means 3 and one more per retry, and a "
    "level past the table's end means the last"
)
LATE_RULE = "Retries come: at the first look after its time, a copy is in %RETRY%group, queue 0, also after a crash"
TWICE_RULE = "A message that was sent back once is redelivered once; only what came just before a crash may come again"
GROUP_RULE = "A copy goes to %RETRY% of the group that has sent the message back, and to no other group"
COPY_RULE = "The copy has the message's body and properties, and a reconsume_times one greater"


@dataclass(slots=True)
class PendingRetry:
    """A retry that is to come: the group, the message, from when and until when.

    ``repeats``: it may come twice, because a crash was just after it, or because two members have sent it back.
    ``came_ms``: when it came, as far as it has.
    """

    group: str
    record: Record
    due_ms: int
    latest_ms: int
    repeats: bool = False
    came_ms: int = -1


@dataclass(slots=True)
class SentBack:
    """What outlives a broker's process: the retries to come, those that came, and when the part looked last.

    ``power_cuts``: how many there were on its machine.
    """

    waiting: list[PendingRetry] = field(default_factory=list)
    came: list[PendingRetry] = field(default_factory=list)
    looked_ms: int = 0
    power_cuts: int = 0

    def new_life(self, power_cuts: int) -> None:
        """A restart. A kill takes the notes that were not written yet, a power cut all that were not synced."""
        was_cut, self.power_cuts = power_cuts > self.power_cuts, power_cuts
        for retry in self.came:
            retry.repeats = was_cut or self.looked_ms - retry.came_ms <= NOTED_MS


class PartRetries:
    """A learner's retries, judged by what they put into the store."""

    def __init__(
        self, part: Any, store: StoreToWrite, memory: SentBack, delays_ms: Sequence[int], now_ms: Callable[[], int]
    ) -> None:
        self._part, self._store, self._memory = part, store, memory
        self._delays_ms, self._now_ms = delays_ms, now_ms

    def send_back(self, group: str, record: Record, level: int, most: int) -> str:
        """What the part makes of a message that failed."""
        unit, now_ms = encode(record), self._now_ms()
        arguments = (group, unit, level, most, now_ms)
        self._store.puts.clear()
        answer = ask("MyRetries.send_back", self._part.send_back, *arguments, fits=_is_word, form=WORDS)
        right = DEAD if record.reconsume_times >= most or level < 0 else RETRY
        if answer != right:
            raise broken("MyRetries.send_back", DEAD_RULE, arguments, right, answer)
        if right == DEAD:
            queues = [(topic, queue_id) for topic, queue_id, _ in self._store.puts]
            if queues != [(names.dlq_topic(group), 0)]:
                raise broken("MyRetries.send_back", DLQ_RULE, arguments, [(names.dlq_topic(group), 0)], queues)
            self._is_copy("MyRetries.send_back", arguments, record, decode(self._store.puts[0][2]))
        else:
            level = min(level or FIRST_LEVEL + record.reconsume_times, len(self._delays_ms))
            self._waits(group, record, now_ms + self._delays_ms[level - 1])
            self._came("MyRetries.send_back", arguments)
        return right

    def _waits(self, group: str, record: Record, due_ms: int) -> None:
        twin = next(
            (retry for retry in self._memory.waiting if retry.group == group and _twins(retry.record, record)), None
        )
        if twin is None:
            self._memory.waiting.append(PendingRetry(group, record, due_ms, due_ms))
        else:
            twin.latest_ms, twin.repeats = max(twin.latest_ms, due_ms), True

    def look(self) -> None:
        """Let the part move what is due."""
        now_ms = self._memory.looked_ms = self._now_ms()
        self._store.puts.clear()
        ask("MyRetries.look", self._part.look, now_ms, fits=anything, form="nothing")
        self._came("MyRetries.look", (now_ms,))
        late = [retry for retry in self._memory.waiting if retry.latest_ms <= now_ms]
        if late:
            expected = f"{_name(late[0].record)} in {names.retry_topic(late[0].group)}, queue 0"
            raise broken("MyRetries.look", LATE_RULE, (now_ms,), expected, "it is not there")

    def _came(self, method: str, arguments: tuple[Any, ...]) -> None:
        """Judge the copies that were put into retry topics."""
        for topic, queue_id, unit in self._store.puts:
            group = names.group_of(topic) if topic.startswith(names.RETRY_PREFIX) else None
            if group is None or queue_id != 0:  # consumers read queue 0 alone
                continue
            copy = decode(unit)
            waits = next(
                (retry for retry in self._memory.waiting if retry.group == group and _same(retry.record, copy)), None
            )
            before = next(
                (retry for retry in self._memory.came if retry.group == group and _same(retry.record, copy)), None
            )
            if waits is None and (before is None or not before.repeats):
                is_of_another_group = any(_same(retry.record, copy) for retry in self._memory.waiting)
                rule = GROUP_RULE if is_of_another_group else TWICE_RULE if before is not None else COPY_RULE
                raise broken(method, rule, arguments, "a copy of a message that waits", _name(copy))
            if waits is not None:
                if self._now_ms() < waits.due_ms:
                    early_ms = waits.due_ms - self._now_ms()
                    raise broken(method, EARLY_RULE, arguments, _name(waits.record), f"{early_ms} ms too early")
                self._is_copy(method, arguments, waits.record, copy)
                waits.came_ms = self._now_ms()
                self._memory.waiting.remove(waits)
                self._memory.came.append(waits)

    def _is_copy(self, method: str, arguments: tuple[Any, ...], original: Record, copy: Record) -> None:
        lacks = {name for name in original.property_map if name != p.DELAY} - copy.property_map.keys()
        times = original.reconsume_times + 1
        if copy.body != original.body or lacks or copy.reconsume_times != times:
            answer = f"reconsume_times {copy.reconsume_times}, without {sorted(lacks) or 'nothing'}"
            raise broken(method, COPY_RULE, arguments, f"{_name(original)} with reconsume_times {times}", answer)


class PartSendBack(SendBackHandler):
    """The handler of CONSUMER_SEND_MSG_BACK over a learner's retries."""

    def __init__(self, state: BrokerState, retries: PartRetries) -> None:
        self._state = state
        self._retries = retries

    def handler(self, otherwise: Handler) -> Handler:
        """The handler; ``otherwise`` refuses what cannot be sent back."""

        def handle(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
            state, group_name = self._state, text(request, "group")
            group = state.groups.find(group_name)
            original = state.store.message_at(whole_long(request, "offset"))
            if group is None or original is None or group.retry_queue_nums <= 0:
                otherwise(channel, request, reply)
                return
            state.topics.create_on_send_back(names.retry_topic(group_name), group.retry_queue_nums)
            state.topics.create_on_send_back(names.dlq_topic(group_name), 1)
            level = whole_or(request, "delayLevel", 0)
            became = self._retries.send_back(group_name, original, level, self._max_tries(group, request))
            kind = "message.dead" if became == DEAD else "message.sent_back"
            properties = original.property_map
            state.ports.note(
                kind,
                group=group_name,
                topic=names.dlq_topic(group_name) if became == DEAD else names.retry_topic(group_name),
                msg_id=properties.get(p.UNIQ_KEY),
                origin_msg_id=properties.get(p.ORIGIN_MESSAGE_ID) or original.offset_msg_id,
                reconsume_times=original.reconsume_times + 1,
                **({"by": "send_back"} if became == DEAD else {"delay_level": level or FIRST_LEVEL}),
            )
            reply(request.reply())

        return handle


def _same(original: Record, copy: Record) -> bool:
    """Whether a copy is this message's next retry, as far as its unique id says."""
    return original.property_map.get(p.UNIQ_KEY) == copy.property_map.get(p.UNIQ_KEY) and (
        copy.reconsume_times == original.reconsume_times + 1
    )


def _twins(first: Record, second: Record) -> bool:
    """Whether two sent back messages have the same next retry."""
    same_id = first.property_map.get(p.UNIQ_KEY) == second.property_map.get(p.UNIQ_KEY)
    return same_id and first.reconsume_times == second.reconsume_times


def _name(record: Record) -> str:
    return record.property_map.get(p.KEYS) or record.property_map.get(p.UNIQ_KEY) or record.topic


def _is_word(value: object) -> bool:
    return value in (RETRY, DEAD)
