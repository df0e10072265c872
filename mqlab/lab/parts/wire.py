"""A learner's handlers in a broker: requests and answers as they are on the wire, six codes in one table.

HANDLERS = {310: send, 11: pull, 36: send_back, 14: committed, 15: commit, 38: members}

handler(broker, request) ─▶ (code, fields, body)        None: the pull is held, and the handler runs again later
    broker     store  pulls  groups  retries  now_ms()      message_id(physical_offset)
    request    code  fields  body  client  number  answer
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mqlab.lab.parts.broken import ask, broken, is_whole
from mqlab.lab.parts.doors import StoreToWrite
from mqlab.lab.parts.groups import PartGroups
from mqlab.lab.parts.pulls import PartPulls
from mqlab.lab.parts.retries import PartRetries
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answering
from mqlab.rocketmq.wire import ids
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import RemotingCommand, java_text
from mqlab.rocketmq.wire.record import decode

SEND, PULL = int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.PULL_MESSAGE)
CODES = (
    SEND,
    PULL,
    int(RequestCode.CONSUMER_SEND_MSG_BACK),
    int(RequestCode.QUERY_CONSUMER_OFFSET),
    int(RequestCode.UPDATE_CONSUMER_OFFSET),
    int(RequestCode.GET_CONSUMER_LIST_BY_GROUP),
)
ANSWER = "(code, fields, body): a whole number, a dictionary, bytes or None"
TABLE_RULE = "HANDLERS maps the six request codes to functions (broker, request)"
SENT_RULE = "An answer with code 0 to a send names the queueId and the queueOffset at which the message is stored"
HELD_RULE = "A handler returns None only for a pull that MyPulls holds"


@dataclass(slots=True)
class WireRequest:
    """A request: its code, header fields by name, body, the client's address.

    ``number`` is what MyPulls knows a pull by, ``tags`` are those that its group wants ([]: all), ``answer`` is what
    ended it, when it was held.
    """

    code: int
    fields: dict[str, str]
    body: bytes
    client: str
    number: int = 0
    tags: list[str] = field(default_factory=list)
    answer: tuple[list[bytes], int] | None = None


@dataclass(slots=True)
class WireBroker:
    """What a handler may use of its broker: the parts, the time, and the id of a message at a place of the log."""

    store: StoreToWrite
    pulls: PartPulls
    groups: PartGroups
    retries: WireRetries
    now_ms: Callable[[], int]
    message_id: Callable[[int], str]


class WireRetries:
    """The retries as a handler asks them."""

    def __init__(self, retries: PartRetries, state: BrokerState) -> None:
        self._retries, self._state = retries, state

    def send_back(self, group: str, physical_offset: int, level: int, most: int) -> str | None:
        """What becomes of the message at that place of the log; None if there is none."""
        record = self._state.store.message_at(physical_offset)
        return None if record is None else self._retries.send_back(group, record, level, most)


@dataclass(slots=True)
class PartHandlers:
    """A learner's table of handlers in a broker."""

    table: Mapping[int, Callable[..., Any]]
    broker: WireBroker
    state: BrokerState
    pulls: PartPulls
    numbers: list[int] = field(default_factory=lambda: [0])

    def handlers(self, before: Mapping[int, Callable[..., list[str] | None]]) -> dict[int, Answering]:
        """The handlers of the six codes. ``before``: what the broker does first, such as making a topic."""
        if not isinstance(self.table, Mapping) or any(not callable(self.table.get(code)) for code in CODES):
            raise broken("HANDLERS", TABLE_RULE, (), list(CODES), self.table)
        return {code: self._handler(code, before.get(code)) for code in CODES}

    def _handler(self, code: int, first: Callable[..., list[str] | None] | None) -> Answering:
        def handle(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
            tags: list[str] = []
            if first is not None:
                tags = first(channel, request) or []
            self.numbers[0] += 1
            fields, body = dict(request.ext_fields), bytes(request.body or b"")
            asked = WireRequest(code, fields, body, channel.remote_address, self.numbers[0], tags)
            answer = self._asked(asked)
            if answer is not None:
                reply(self._wire(request, asked, answer))
                return
            held = self.pulls.asked_by.get(asked.number)
            if held is None:
                raise broken(f"HANDLERS[{code}]", HELD_RULE, (), ANSWER, None)

            def woken(ended: tuple[list[bytes], int], why: str) -> None:
                asked.answer = ended
                self.state.ports.note("pull.woken", why=why, **_place(asked))
                again = self._asked(asked)
                if again is None:
                    raise broken(f"HANDLERS[{code}]", HELD_RULE, (), ANSWER, None)
                reply(self._wire(request, asked, again))

            self.pulls.hold(asked.number, held, woken)
            self.state.ports.note("pull.held", queue_offset=held["queue_offset"], **_place(asked))

        return handle

    def _asked(self, asked: WireRequest) -> tuple[int, dict[str, Any], bytes | None] | None:
        name = f"HANDLERS[{asked.code}]"
        handler = self.table[asked.code]
        answer: tuple[int, dict[str, Any], bytes | None] | None
        answer = ask(name, handler, self.broker, asked, fits=_is_wire_answer, form=ANSWER)
        return answer

    def _wire(self, request: RemotingCommand, asked: WireRequest, answer: Any) -> RemotingCommand:
        code, fields, body = answer
        if asked.code == SEND and code == 0:
            self._is_stored(asked, fields)
        wire = request.reply(code, None, body)
        wire.ext_fields.update({name: java_text(value) for name, value in fields.items() if value is not None})
        return wire

    def _is_stored(self, asked: WireRequest, fields: Mapping[str, Any]) -> None:
        """SENT_RULE: the last message of that queue is the one that was sent."""
        queue = asked.fields["b"], int(fields.get("queueId", -1))
        stored = [unit for topic, unit in self.broker.store.puts if topic == queue[0]]
        self.broker.store.puts.clear()
        offset = fields.get("queueOffset")
        if len(stored) != 1 or decode(stored[0]).body != asked.body or offset != self.broker.store.last_offset:
            where = (queue[0], queue[1], offset)
            raise broken(f"HANDLERS[{SEND}]", SENT_RULE, where, f"queueOffset {self.broker.store.last_offset}", fields)


def _place(asked: WireRequest) -> dict[str, Any]:
    fields = asked.fields
    return {"group": fields["consumerGroup"], "topic": fields["topic"], "queue_id": int(fields["queueId"])}


def message_ids(state: BrokerState) -> Callable[[int], str]:
    """What gives the id of the message at a place of a broker's log."""
    return lambda physical_offset: ids.offset_msg_id(state.identity.store_host, physical_offset)


def _is_wire_answer(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, tuple | list) or len(value) != 3:
        return False
    code, fields, body = value
    return is_whole(code) and isinstance(fields, dict) and (body is None or isinstance(body, bytes))
