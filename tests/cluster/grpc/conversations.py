"""Recorded conversations of gRPC clients with a real 5.3.3 proxy, played to a front in virtual time and compared.

Every message is compared field by field. Apart: times of this world, log offsets, the revive queue, ports of peers.
A receipt handle of the recording stands for the one that this world gave for the same message.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from mqlab.cluster.grpc.clients import Caller
from mqlab.cluster.grpc.codes import StatusError
from mqlab.cluster.grpc.conversion import property_map_of
from mqlab.cluster.grpc.front import RECEIVE, TELEMETRY, GrpcFront
from mqlab.cluster.grpc.messages import CLASSES, milliseconds_of
from mqlab.cluster.grpc.state import FrontConfig
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.wire import property_names as p
from mqlab.rocketmq.wire.bodies import SubscriptionGroupConfig, TopicConfig
from tests.rocketmq.broker.world import World

RECORDED = Path(__file__).parent / "recorded"
GRPC_PORT = 38081  # of the recorded proxy
PEER = "127.0.0.1:57314"
HANDLE = re.compile(r"\d+ \d{10,} \d+ \d+ [012] \S+ \d+ \d+( \d+)*")


@dataclass(frozen=True)
class Line:
    """One message of a call: ``at`` ms after the recording began."""

    at: int
    call: int
    method: str
    kind: str
    message: Any
    metadata: dict[str, str]
    problem: str = ""


def lines(name: str) -> list[Line]:
    """A recording, in its order."""
    text = gzip.decompress((RECORDED / f"grpc_{name}.jsonl.gz").read_bytes()).decode()
    found = []
    for entry in map(json.loads, text.splitlines()):
        method, kind = entry["method"], entry["kind"]
        message = None
        if "bytes" in entry and kind in ("request", "response"):
            name = TELEMETRY + "Command" if method == TELEMETRY else method + kind.capitalize()
            if name in CLASSES:
                message = CLASSES[name].FromString(base64.b64decode(entry["bytes"]))
        problem = entry.get("details", "") if kind == "error" else ""
        found.append(Line(entry["at"], entry["call"], method, kind, message, entry.get("metadata") or {}, problem))
    return found


def began_ms(recording: list[Line]) -> int:
    """When a recording began, by the first answer that says when it was given."""
    for line in recording:
        if line.kind == "response" and line.method == RECEIVE and line.message.HasField("delivery_timestamp"):
            return milliseconds_of(line.message.delivery_timestamp) - line.at
    raise AssertionError("no answer has a time")


@dataclass
class Call:
    """What came of one call: in the recording, and here."""

    method: str
    request: Any = None
    wanted: list[Any] = field(default_factory=list)
    got: list[Any] = field(default_factory=list)
    wanted_problem: str = ""
    got_problem: str = ""


class Conversation:
    """A world with a front to which a recording is played. ``skip``: calls that are left out."""

    def __init__(self, directory: Path, name: str, *, as_in_5_3_3: bool = True, **settings: Any) -> None:
        self.recording = lines(name)
        self.began_ms = began_ms(self.recording)
        first_ms = self.began_ms + self.recording[0].at
        self.world = World(directory, start_ms=first_ms - 60_000, broker_cluster_name="LabCluster", **settings)
        ports = self.world.sim.add_node("grpc", RealFiles())
        config = FrontConfig(GRPC_PORT, (self.world.broker.registration.name_servers[0],), as_in_5_3_3)
        self.front = GrpcFront(ports, [self.world.broker], config)
        self.calls: dict[int, Call] = {}
        self.left_ms: dict[int, int] = {}
        self._handles: dict[str, str] = {}
        self._callers: dict[int, Caller] = {}
        self._streams: dict[int, Any] = defaultdict(list)

    def topic(self, name: str, kind: str, queues: int) -> None:
        """Create a topic for one kind of messages."""
        self.world.broker.topics.update(TopicConfig(name, queues, queues), {"+message.type": kind})

    def group(self, name: str, **settings: Any) -> None:
        """Create a consumer group."""
        self.world.broker.groups.update(SubscriptionGroupConfig(name, **settings))

    def store_what_was_there(self) -> None:
        """Store the messages that clients of the recording received and did not send, each in its place."""
        sent = {
            message.system_properties.message_id
            for line in self.recording
            if line.method == "SendMessage" and line.kind == "request" and line.message is not None
            for message in line.message.messages
        }
        there = {}
        for line in self.recording:
            if line.method == RECEIVE and line.kind == "response" and line.message.HasField("message"):
                message = line.message.message
                system = message.system_properties
                if system.message_id not in sent and system.delivery_attempt == 1:
                    there[message.topic.name, system.queue_id, system.queue_offset] = message
        client = self.world.client("filler")
        for (topic, queue_id, _), message in sorted(there.items(), key=lambda item: item[0]):
            stored = property_map_of(message, PEER)
            stored.pop(p.RECONSUME_TIME)
            born = {"bornTimestamp": milliseconds_of(message.system_properties.born_timestamp)}
            client.put(topic, message.body, queue_id=queue_id, more=born, **stored)

    def recorded_queue(self, topic: str, system: Any) -> tuple[Broker, int]:
        """The queue that the recorded proxy picked: chance where there is no message group."""
        received = [
            line.message.message.system_properties
            for line in self.recording
            if line.method == RECEIVE and line.kind == "response" and line.message.HasField("message")
        ]
        found = [
            each.queue_id for each in received if each.message_id == system.message_id and each.delivery_attempt < 2
        ]
        return self.world.broker, found[0] if found else 0

    def play(self, first: int = 0, last: int = 1 << 30, left_out: tuple[int, ...] = ()) -> None:
        """Play the calls with these numbers, at their times."""
        for line in self.recording:
            if not first <= line.call <= last or line.call in left_out:
                continue
            self._until(self.began_ms + line.at)
            self._play(line)
        self.world.run_for(30_000)

    def _until(self, moment_ms: int) -> None:
        self.world.run_for(max(0, moment_ms - self.world.sim.now_ms))

    def _play(self, line: Line) -> None:
        call = self.calls.setdefault(line.call, Call(line.method))
        if line.call not in self._callers:
            client_id, language = (line.metadata.get(f"x-mq-{name}", "") for name in ("client-id", "language"))
            self._callers[line.call] = Caller(client_id, language, PEER, self.left_ms.get(line.call))
        caller = self._callers[line.call]
        if line.kind == "response":
            call.wanted.append(line.message)
            self._learn(call)
        elif line.kind == "error":
            call.wanted_problem = line.problem
            if line.method == TELEMETRY:
                self.front.telemetry.closed(caller, call.got.append)
        elif line.kind == "request" and line.message is not None:
            call.request = self._with_own_handles(line.message)
            self._ask(line, call, caller)

    def _ask(self, line: Line, call: Call, caller: Caller) -> None:
        if line.method == TELEMETRY:
            try:
                self.front.telemetry.take(call.request, caller, call.got.append)
            except StatusError as refusal:
                call.got_problem = refusal.text
        elif line.method == RECEIVE:
            self.front.receive(call.request, caller).then(lambda received: call.got.extend(received.responses()))
        else:
            self.front.answer(line.method, call.request, caller).then(call.got.append)

    def _learn(self, call: Call) -> None:
        """Which handle of this world stands for a recorded one: the same message, or the same answer."""
        for wanted, got in zip(call.wanted, call.got, strict=False):
            if call.method == "ChangeInvisibleDuration" and wanted.receipt_handle:
                self._handles[wanted.receipt_handle] = got.receipt_handle
        by_id = {_id_and_place(each): each for each in call.got if call.method == RECEIVE and each.HasField("message")}
        for wanted in call.wanted:
            if call.method == RECEIVE and wanted.HasField("message"):
                got = by_id.get(_id_and_place(wanted))
                if got is not None:
                    handle = wanted.message.system_properties.receipt_handle
                    self._handles[handle] = got.message.system_properties.receipt_handle

    def _with_own_handles(self, request: Any) -> Any:
        own = type(request)()
        own.CopyFrom(request)
        if hasattr(own, "receipt_handle"):
            own.receipt_handle = self._handles.get(own.receipt_handle, own.receipt_handle)
        if hasattr(own, "entries"):
            for entry in own.entries:
                entry.receipt_handle = self._handles.get(entry.receipt_handle, entry.receipt_handle)
        return own

    def differences(self, offsets_apart: tuple[int, ...] = ()) -> dict[str, Any]:
        """Where an answer is not the recorded one, by number and method of its call.

        ``offsets_apart``: sends to topics of the broker's own, in which the recorded broker had more messages.
        """
        found = {}
        for number, call in self.calls.items():
            if call.request is None:
                continue  # too large to be recorded
            wanted, got = ([_comparable(each) for each in side if each is not None] for side in (call.wanted, call.got))
            if number in offsets_apart:
                for response in (*wanted, *got):
                    response["entries"][0].pop("offset", None)
            if call.method == RECEIVE:
                wanted, got = (sorted(side, key=json.dumps) for side in (wanted, got))
            if wanted != got:
                found[f"{number} {call.method}"] = {"wanted": wanted, "got": got}
            elif call.wanted_problem and call.got_problem and call.wanted_problem != call.got_problem:
                found[f"{number} {call.method}"] = {"wanted": call.wanted_problem, "got": call.got_problem}
        return found


def _id_and_place(response: Any) -> tuple[str, int, int]:
    system = response.message.system_properties
    return system.message_id, system.queue_id, system.queue_offset


def _comparable(message: Any) -> Any:
    return _without_own(MessageToDict(message, preserving_proto_field_name=True))


def _without_own(value: Any, name: str = "") -> Any:
    """A message without what is a world's own."""
    if isinstance(value, dict):
        left_out = ("store_timestamp", "store_host")
        return {key: _without_own(each, key) for key, each in value.items() if key not in left_out}
    if isinstance(value, list):
        return [_without_own(each, name) for each in value]
    if name == "delivery_timestamp":
        return "a time"
    if name == "receipt_handle" and HANDLE.fullmatch(value):
        start, _, invisible, revive, kind, broker, queue, *rest = value.split()
        zero = rest[1:-1]  # of 5.3.3's changed handle
        # The lease of an orderly message is counted from its pop: it depends on when the request came.
        length = round(int(invisible), -2) if revive == "999" else int(invisible)
        return [start, length, revive == "999", kind, broker, queue, rest[0], zero]
    if name == "host":
        return "an address"
    if name == "born_host":
        return re.sub(r":\d+$", ":port", value)
    return value
