"""A learner's pulls in a broker: what PULL_MESSAGE asks, what is held, and when it is answered.

    PULL_MESSAGE ─▶ MyPulls.pull ─▶ an answer, or None: held
    a message arrives ─▶ MyPulls.arrived ─▶ [(number, answer), …]        every second ─▶ MyPulls.look ─▶ the same

An answer is (units, next_offset). Each is judged against the store; who subscribes by SQL is answered by mqlab's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mqlab.counts import counted
from mqlab.lab.parts.broken import ask, broken, is_whole
from mqlab.lab.parts.doors import StoreToRead
from mqlab.rocketmq.broker.broadcast_offsets import BroadcastOffsets
from mqlab.rocketmq.broker.long_polling import HeldPulls
from mqlab.rocketmq.broker.pulling import PullHeader, Pulling
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.consumer_filters import TAG_TYPES
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answer
from mqlab.rocketmq.wire import names, sys_flag
from mqlab.rocketmq.wire.codes import ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.property_names import TAGS
from mqlab.rocketmq.wire.record import decode

OFFERED_RULE = "Every message whose tag is wanted is offered, in order, from the offset asked for: none is left out"
FILTER_RULE = "Only messages with a wanted tag are given; no tags at all means every message"
MOST_RULE = "A pull gets at most as many messages as it asks for"
NEXT_RULE = (
    "next_offset is one past the last message that was examined, given or filtered: the next pull begins there, and "
    "never before what this one has seen"
)
OUTSIDE_RULE = "A pull past the end of the queue is answered at once, without messages; next_offset is the queue's end"
AT_ONCE_RULE = "A pull that finds a wanted message is answered at once, and so is one that does not wait"
WAKE_RULE = "A held pull is answered as soon as a wanted message can be read"
OVER_RULE = "A held pull is answered when its time is over, even with nothing"
HELD_RULE = "Only a held pull can be answered, and only once"
ANSWER = "(a list of units, next_offset), or None to hold the pull"
ANSWERS = "a list of (number, (units, next_offset))"


@dataclass(slots=True)
class HeldByPart:
    """A pull that a part holds, and how it is answered."""

    asked: dict[str, Any]
    reply: Callable[[tuple[list[bytes], int], str], None]


class PartPulls:
    """A learner's pulls, with what they hold."""

    def __init__(self, part: Any, store: StoreToRead, now_ms: Callable[[], int]) -> None:
        self._part, self._store, self._now_ms = part, store, now_ms
        self.held: dict[int, HeldByPart] = {}
        self.asked_by: dict[int, dict[str, Any]] = {}  # of pulls that the part has just said to hold

    def hold(self, number: int, asked: dict[str, Any], reply: Callable[[tuple[list[bytes], int], str], None]) -> None:
        """Keep what the part holds, and how it is answered."""
        self.asked_by.pop(number, None)
        self.held[number] = HeldByPart(asked, reply)

    def pull(self, number: int, asked: dict[str, Any]) -> tuple[list[bytes], int] | None:
        """The part's answer to a pull; None: it holds it."""
        arguments = (number, dict(asked), self._now_ms())
        answer = ask("MyPulls.pull", self._part.pull, *arguments, fits=_is_answer, form=ANSWER)
        if answer is not None:
            return self._judged("MyPulls.pull", arguments, asked, answer)
        waits = asked["until_ms"] > self._now_ms()
        if not waits or self._wanted(asked, self._end(asked)) or not 0 <= asked["queue_offset"] <= self._end(asked):
            rule = AT_ONCE_RULE if 0 <= asked["queue_offset"] <= self._end(asked) else OUTSIDE_RULE
            raise broken("MyPulls.pull", rule, arguments, "an answer", "None")
        self.asked_by[number] = asked
        return None

    def arrived(self, topic: str, queue_id: int) -> None:
        """Let the part answer the pulls that a new message wakes."""
        if not self.held:
            return
        asked = (topic, queue_id)
        self._answer("arrived", asked, "arrived")
        for number, held in self.held.items():
            if (held.asked["topic"], held.asked["queue_id"]) == asked and self._wanted(
                held.asked, self._end(held.asked)
            ):
                raise broken("MyPulls.arrived", WAKE_RULE, asked, f"an answer to pull {number}", "it is still held")

    def look(self) -> None:
        """Let the part answer the pulls whose time is over."""
        now_ms = self._now_ms()
        self._answer("look", (now_ms,), "timeout")
        for number, held in self.held.items():
            if held.asked["until_ms"] <= now_ms:
                raise broken("MyPulls.look", OVER_RULE, (now_ms,), f"an answer to pull {number}", "it is still held")

    def _answer(self, method: str, arguments: tuple[Any, ...], why: str) -> None:
        name = f"MyPulls.{method}"
        offered = ask(name, getattr(self._part, method), *arguments, fits=_are_answers, form=ANSWERS)
        for number, answer in offered:
            held = self.held.pop(number, None)
            if held is None:
                raise broken(name, HELD_RULE, arguments, f"one of {list(self.held)}", number)
            held.reply(self._judged(name, arguments, held.asked, answer), why)

    def _judged(
        self, name: str, arguments: tuple[Any, ...], asked: dict[str, Any], answer: Any
    ) -> tuple[list[bytes], int]:
        offered, next_offset = list(answer[0]), answer[1]
        offset, end = asked["queue_offset"], self._end(asked)
        if not 0 <= offset <= end:
            if offered or next_offset != min(max(offset, 0), end):
                raise broken(name, OUTSIDE_RULE, arguments, ([], min(max(offset, 0), end)), answer)
            return offered, next_offset
        if len(offered) > asked["most"]:
            raise broken(name, MOST_RULE, arguments, counted(asked["most"], "messages"), len(offered))
        for unit in offered:
            if not _wants(asked, unit):
                raise broken(name, FILTER_RULE, arguments, f"tags {asked['tags']}", _tag(unit))
        if not offset <= next_offset <= end or (next_offset == offset < end):
            raise broken(name, NEXT_RULE, arguments, f"{min(offset + 1, end)} to {end}", next_offset)
        passed = self._wanted(asked, next_offset)
        if offered != passed[: len(offered)] or len(passed) > len(offered):
            rule = NEXT_RULE if len(offered) > len(passed) else OFFERED_RULE
            raise broken(
                name, rule, arguments, f"messages {_numbers(passed)}", f"{_numbers(offered)}, then {next_offset}"
            )
        return offered, next_offset

    def _wanted(self, asked: dict[str, Any], end: int) -> list[bytes]:
        """What a pull wants of the messages from its offset up to ``end``."""
        offset, units = asked["queue_offset"], list[bytes]()
        while 0 <= offset < end:  # one read brings 32 at most
            read = self._store.get(*_queue(asked), offset, end - offset)
            units += read
            offset += len(read)
        return [unit for unit in units if _wants(asked, unit)]

    def _end(self, asked: dict[str, Any]) -> int:
        return self._store.max_offset(*_queue(asked))


class PartPulling(Pulling):
    """The handler of PULL_MESSAGE over a learner's pulls."""

    def __init__(
        self, state: BrokerState, held_pulls: HeldPulls, broadcast: BroadcastOffsets, pulls: PartPulls
    ) -> None:
        super().__init__(state, held_pulls, broadcast)
        self._pulls = pulls
        self._number = 0

    def pull_message(self, channel: Channel, request: RemotingCommand, reply: Reply) -> Answer:
        """PULL_MESSAGE: the checks are mqlab's, what is read and what is held the part's."""
        header, state = PullHeader.of(request), self._state
        group, _ = self._checked(header, request, channel)
        subscription, _ = self._subscription(header, group)
        is_reset = state.offset_table.has_reset(header.group, header.topic, header.queue_id)
        if subscription.expression_type not in TAG_TYPES or is_reset:
            return super().pull_message(channel, request, reply)
        asked = asked_of(header, sorted(subscription.tags_set), state.now_ms())
        self._number += 1
        if header.sys_flag & sys_flag.PULL_COMMIT_OFFSET:
            state.offset_table.commit(header.group, header.topic, header.queue_id, header.commit_offset)
        answer = self._pulls.pull(self._number, asked)
        queue_place = {"group": header.group, "topic": header.topic, "queue_id": header.queue_id}
        if answer is not None:
            return self._wire(request, header, answer)

        def woken(ended: tuple[list[bytes], int], why: str) -> None:
            state.ports.note("pull.woken", **queue_place, why=why)
            reply(self._wire(request, header, ended))

        self._pulls.hold(self._number, asked, woken)
        state.ports.note("pull.held", **queue_place, queue_offset=header.queue_offset)
        return None

    def tags_of(self, channel: Channel, request: RemotingCommand) -> list[str]:
        """The tags that a pull's group wants; [] for all. Refused for a group or topic that may not be read."""
        header = PullHeader.of(request)
        group, _ = self._checked(header, request, channel)
        return sorted(self._subscription(header, group)[0].tags_set)

    def _wire(self, request: RemotingCommand, header: PullHeader, answer: tuple[list[bytes], int]) -> RemotingCommand:
        units, next_offset = answer
        end = self._state.store.max_offset(header.topic, header.queue_id)
        self._state.offset_table.pulled(header.group, header.topic, header.queue_id, next_offset)
        return request.reply(
            pull_code(header.queue_offset, units, next_offset, end),
            None,
            b"".join(units) or None,
            suggestWhichBrokerId=names.MASTER_ID,
            nextBeginOffset=next_offset,
            minOffset=0,
            maxOffset=end,
        )


def asked_of(header: PullHeader, tags: list[str], now_ms: int) -> dict[str, Any]:
    """What a part is asked: queue, offset, how many messages, the tags ([]: all), and until when it may wait."""
    waits_ms = header.suspend_timeout_ms if header.sys_flag & sys_flag.PULL_SUSPEND else 0
    return {
        "topic": header.topic,
        "queue_id": header.queue_id,
        "queue_offset": header.queue_offset,
        "most": header.max_msg_nums,
        "tags": tags,
        "until_ms": now_ms + waits_ms,
    }


def pull_code(asked: int, units: list[bytes], next_offset: int, end: int) -> int:
    """The response code of an answer.

    >>> int(pull_code(3, [b"unit"], 4, 5)), int(pull_code(3, [], 5, 5)), int(pull_code(3, [], 3, 5))
    (0, 20, 19)
    >>> int(pull_code(9, [], 5, 5))
    21
    """
    if units:
        return ResponseCode.SUCCESS
    if not 0 <= asked <= end:
        return ResponseCode.PULL_OFFSET_MOVED
    return ResponseCode.PULL_NOT_FOUND if next_offset == asked else ResponseCode.PULL_RETRY_IMMEDIATELY


def _queue(asked: dict[str, Any]) -> tuple[str, int]:
    return asked["topic"], asked["queue_id"]


def _tag(unit: bytes) -> str | None:
    return decode(unit).property_map.get(TAGS)


def _wants(asked: dict[str, Any], unit: bytes) -> bool:
    return not asked["tags"] or _tag(unit) in asked["tags"]


def _numbers(units: list[bytes]) -> list[int]:
    return [decode(unit).queue_offset for unit in units]


def _is_answer(value: Any) -> bool:
    return value is None or _is_given(value)


def _is_given(value: Any) -> bool:
    is_pair = isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], list | tuple)
    return is_pair and is_whole(value[1]) and all(isinstance(unit, bytes) for unit in value[0])


def _are_answers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(pair, tuple | list) and len(pair) == 2 and is_whole(pair[0]) and _is_given(pair[1]) for pair in value
    )
