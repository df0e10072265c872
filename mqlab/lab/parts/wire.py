"""A learner's handlers in a broker: requests and answers as they are on the wire, six codes in one table.

HANDLERS = {310: send, 11: pull, 36: send_back, 14: committed, 15: commit, 38: members}

handler(broker, request) ─▶ (code, fields, body)        None: the pull is held, and the handler runs again later
    broker     store  pulls  groups  retries  now_ms()      message_id(physical_offset)
    request    code  fields  body  client  number  answer
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mqlab.lab.parts.broken import ask, broken, is_whole
from mqlab.lab.parts.doors import StoreToWrite
from mqlab.lab.parts.groups import PartGroups
from mqlab.lab.parts.pulls import PartPulls, asked_of, pull_code
from mqlab.lab.parts.retries import PartRetries
from mqlab.rocketmq.broker.pulling import PullHeader
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Reply
from mqlab.rocketmq.remoting.requests import Answering
from mqlab.rocketmq.wire import ids
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import RemotingCommand, java_text
from mqlab.rocketmq.wire.record import decode
from mqlab.rocketmq.wire.sys_flag import PULL_COMMIT_OFFSET

SEND, PULL = int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.PULL_MESSAGE)
SEND_BACK, LIST = int(RequestCode.CONSUMER_SEND_MSG_BACK), int(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
QUERY, UPDATE = int(RequestCode.QUERY_CONSUMER_OFFSET), int(RequestCode.UPDATE_CONSUMER_OFFSET)
DEFAULT_RETRIES = 16
CODES = (
    SEND,
    PULL,
    SEND_BACK,
    QUERY,
    UPDATE,
    LIST,
)
ANSWER = "(code, fields, body): a whole number, a dictionary, bytes or None"
TABLE_RULE = "HANDLERS maps the six request codes to functions (broker, request)"
SENT_RULE = (
    "An answer with code 0 to a send names the queueId and the queueOffset at which the message is stored, which is in "
    "the queue that the send names, and the msgId of its place in the log"
)
HELD_RULE = "A handler returns None for a pull that MyPulls holds, and for no other request"
ASKED_RULE = "A handler asks MyPulls and MyRetries for what its request says, and asks once"
COMMITS_RULE = (
    "UPDATE_CONSUMER_OFFSET moves the group to its commitOffset, and a pull whose sysFlag & 1 is set does so as well; "
    "no other request commits"
)
TOLD_RULE = (
    "QUERY_CONSUMER_OFFSET of a group that has committed gets code 0 and the offset that MyGroups gives, which may be 0"
)
LISTED_RULE = "GET_CONSUMER_LIST_BY_GROUP tells each member all members: JSON with their list as consumerIdList"
PULLED_RULE = (
    "A pull is answered with what MyPulls gives: the units; code 0 with units, else 21 outside of the queue, 19 if "
    "nothing is new, 20 if nothing was wanted; nextBeginOffset, minOffset 0, maxOffset, suggestWhichBrokerId 0"
)


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
    """What a handler may use of its broker: the parts, the time, and the id of a message at a place of the log.

    What its parts were asked is judged when the handler has answered.
    """

    store: StoreToWrite
    pulls: WirePulls
    groups: WireGroups
    retries: WireRetries
    now_ms: Callable[[], int]
    message_id: Callable[[int], str]

    def begin(self) -> None:
        """A request comes: forget what was asked for the one before."""
        for noted in (self.store.puts, self.pulls.asked, self.pulls.answers, self.groups.asked, self.retries.asked):
            noted.clear()


class WirePulls:
    """The pulls as a handler asks them. ``asked`` and ``answers`` are of the request under way."""

    def __init__(self, pulls: PartPulls) -> None:
        self._pulls = pulls
        self.asked: list[object] = []
        self.answers: list[tuple[list[bytes], int] | None] = []

    def pull(self, number: int, pull: dict[str, Any]) -> tuple[list[bytes], int] | None:
        """The part's answer to a pull; None: it holds it."""
        self.asked.append(pull)
        self.answers.append(self._pulls.pull(number, pull))
        return self.answers[-1]


class WireGroups:
    """The groups as a handler asks them. ``asked`` are the commits of the request under way."""

    def __init__(self, groups: PartGroups) -> None:
        self._groups = groups
        self.asked: list[object] = []
        self.committed, self.members = groups.committed, groups.members

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """Note the commit, and pass it on."""
        self.asked.append((group, topic, queue_id, queue_offset))
        self._groups.commit(group, topic, queue_id, queue_offset)


class WireRetries:
    """The retries as a handler asks them. ``asked`` is of the request under way."""

    def __init__(self, retries: PartRetries, state: BrokerState) -> None:
        self._retries, self._state = retries, state
        self.asked: list[object] = []

    def send_back(self, group: str, physical_offset: int, level: int, most: int) -> str | None:
        """What becomes of the message at that place of the log; None if there is none."""
        self.asked.append((group, physical_offset, level, most))
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
            self.broker.begin()
            came_ms = self.broker.now_ms()
            answer = self._asked(asked)
            self._passed_on(asked, request, came_ms)
            self._moves(asked)
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
        if asked.code == PULL:
            self._is_pulled(asked, answer)
        if asked.code == QUERY:
            self._is_told(asked, code, fields)
        if asked.code == LIST and code == 0:
            self._is_listed(asked, body)
        wire = request.reply(code, None, body)
        wire.ext_fields.update({name: java_text(value) for name, value in fields.items() if value is not None})
        return wire

    def _passed_on(self, asked: WireRequest, request: RemotingCommand, came_ms: int) -> None:
        """ASKED_RULE: what a handler has asked of its part is what the request says, at any moment since it came."""
        fields = asked.fields
        rights: list[list[Any]]
        if asked.code == PULL:
            questions = self.broker.pulls.asked
            moments = range(came_ms, self.broker.now_ms() + 1)
            rights = [[asked_of(PullHeader.of(request), asked.tags, now_ms)] for now_ms in moments]
        elif asked.code == SEND_BACK:
            questions = self.broker.retries.asked
            most = int(fields.get("maxReconsumeTimes", DEFAULT_RETRIES))
            rights = [[(fields["group"], int(fields["offset"]), int(fields.get("delayLevel", 0)), most)]]
        else:
            return
        if questions not in rights:
            raise broken(f"HANDLERS[{asked.code}]", ASKED_RULE, (), rights[0], questions)

    def _moves(self, asked: WireRequest) -> None:
        """COMMITS_RULE: what a handler has committed is what its request says."""
        fields, rights = asked.fields, list[object]()
        if asked.code == UPDATE or (asked.code == PULL and int(fields["sysFlag"]) & PULL_COMMIT_OFFSET):
            queue = fields["topic"], int(fields["queueId"])
            rights.append((fields["consumerGroup"], *queue, int(fields["commitOffset"])))
        if self.broker.groups.asked != rights:
            raise broken(f"HANDLERS[{asked.code}]", COMMITS_RULE, (), rights, self.broker.groups.asked)

    def _is_told(self, asked: WireRequest, code: int, fields: Mapping[str, Any]) -> None:
        """TOLD_RULE. What a group without a commit is told is the handler's choice: RocketMQ sometimes says 0, too."""
        queue = asked.fields["topic"], int(asked.fields["queueId"])
        offset = self.broker.groups.committed(asked.fields["consumerGroup"], *queue)
        right = {"offset": offset}
        if offset >= 0 and (code != 0 or _differs(fields, right)):
            raise broken(f"HANDLERS[{QUERY}]", TOLD_RULE, (), (0, right), (code, fields))

    def _is_stored(self, asked: WireRequest, fields: Mapping[str, Any]) -> None:
        """SENT_RULE: what was put since the request came is the message that was sent, and its answer says where."""
        store, queue = self.broker.store, (asked.fields["b"], int(asked.fields["e"]))
        queue_offset, physical_offset = store.last
        right = {"queueId": queue[1], "queueOffset": queue_offset, "msgId": self.broker.message_id(physical_offset)}
        stored = [(topic, queue_id, decode(unit).body) for topic, queue_id, unit in store.puts]
        if stored != [(*queue, asked.body)] or _differs(fields, right):
            puts = ", ".join(f"{topic} {queue_id}" for topic, queue_id, _ in stored) or "nothing"
            raise broken(f"HANDLERS[{SEND}]", SENT_RULE, queue, right, f"{fields}, and put into {puts}")

    def _is_pulled(self, asked: WireRequest, answer: Any) -> None:
        """PULLED_RULE: the answer on the wire is that of MyPulls."""
        code, fields, body = answer
        of_the_part = asked.answer if asked.answer is not None else self.broker.pulls.answers[-1]
        if of_the_part is None:
            raise broken(f"HANDLERS[{PULL}]", HELD_RULE, (), None, answer)
        (units, next_offset), offset = of_the_part, int(asked.fields["queueOffset"])
        end = self.state.store.max_offset(asked.fields["topic"], int(asked.fields["queueId"]))
        right = {"nextBeginOffset": next_offset, "minOffset": 0, "maxOffset": end, "suggestWhichBrokerId": 0}
        right_code, wire = int(pull_code(offset, units, next_offset, end)), b"".join(units)
        if code != right_code or (body or b"") != wire or _differs(fields, right):
            raise broken(f"HANDLERS[{PULL}]", PULLED_RULE, (), (right_code, right, wire), answer)

    def _is_listed(self, asked: WireRequest, body: bytes | None) -> None:
        """LISTED_RULE: the body names the group's members, as the broker's own table has them."""
        group = self.state.consumers.get(asked.fields["consumerGroup"])
        right = [] if group is None else sorted(group.client_ids)
        try:
            is_right = sorted(json.loads(body or b"")["consumerIdList"]) == right
        except (ValueError, TypeError, KeyError):
            is_right = False
        if not is_right:
            raise broken(f"HANDLERS[{LIST}]", LISTED_RULE, (), {"consumerIdList": right}, str(body))


def _differs(fields: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether one of these fields would be another on the wire."""
    return any(str(fields.get(name)) != str(value) for name, value in right.items())


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
