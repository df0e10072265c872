"""POP's requests of a raw client, in their order and at their times, answered as a real 5.3.3 broker did.

Every recorded exchange is sent again by one of these tests, and its answer compared: code, remark, each header field,
and what the messages in it are. Apart are pop times, the revive queue (a counter of the recorded broker), the order in
which queues were read (at random), and the lists of 222, whose keys are no JSON in RocketMQ.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.cluster.serving.plan import VIP_DISTANCE
from mqlab.rocketmq.broker.request_table import NOT_AT_THE_SECOND_PORT
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire.bodies import SubscriptionData, TopicConfig
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.record import decode_all
from tests.rocketmq.broker.replayed import Exchange, differences, exchanges
from tests.rocketmq.broker.world import SMALL_STORE, World

EXCHANGES = exchanges("pop_exchanges")
BEGAN_MS = EXCHANGES[0].sent_ms
APART = ("popTime", "reviveQid")
LEASES, ORDERLY_AND_REFUSED, V2, BUFFERED = range(35), range(35, 69), (93, 94), (95,)
COUNTED = [number for number, sent in enumerate(EXCHANGES) if sent.request.ext_fields.get("consumerGroup") == "go1"]
MODES = [number for number, sent in enumerate(EXCHANGES) if sent.request.code in (400, 401, 402)]
SET_BACK = (91, 92)
BIG = dataclasses.replace(SMALL_STORE, mapped_file_size_commit_log=1 << 20)


def _world(directory: Path, **settings: Any) -> World:
    return World(directory, store=BIG, start_ms=BEGAN_MS - 60_000, broker_cluster_name="LabCluster", **settings)


def _topic(world: World, name: str, queues: int = 1, perm: int = 6) -> None:
    world.broker.create_topic(TopicConfig(name, read_queue_nums=queues, write_queue_nums=queues, perm=perm))


def _fill(world: World) -> None:
    """What the recorded client had sent before."""
    client = world.client("filler")
    for name in ("t2", "t3", "t4", "t5", "t6"):
        _topic(world, name)
        client.put(name, b"m", **({"TAGS": "red"} if name == "t2" else {}))
    _topic(world, "t7", 4)
    for queue_id in range(4):
        client.put("t7", b"m", queue_id=queue_id)
    _topic(world, "t8")
    for number in range(40):
        client.put("t8", b"s%d" % number, TAGS="red" if number in (3, 17, 30) else "blue")
    _topic(world, "b1")
    for _ in range(12):
        client.put("b1", b"m")
    _topic(world, "o1")
    for _ in range(6):
        client.put("o1", b"m")
    _topic(world, "n1", 2)
    _topic(world, "n2", 1, perm=2)
    _topic(world, "r1", 4)
    _topic(world, "a1")
    for _ in range(5):
        client.put("a1", b"m")


class Replay:
    """Sends recorded requests at their times; handles name this world's pop times."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = world.client()
        host, _, port = world.broker.address.rpartition(":")
        self.second_port = f"{host}:{int(port) - VIP_DISTANCE}"
        world.broker.remoting.listen(self.second_port, without=NOT_AT_THE_SECOND_PORT)
        self.answers: list[tuple[Exchange, Promise[RemotingCommand]]] = []
        self._times: dict[str, str] = {}

    def until(self, moment_ms: int) -> None:
        self.world.run_for(max(0, moment_ms - self.world.sim.now_ms))
        for exchange, answer in self.answers:
            recorded_time = exchange.response.ext_fields.get("popTime")
            if recorded_time and recorded_time != "0" and answer.done:
                self._times[recorded_time] = answer.result().ext_fields.get("popTime", "")

    def send(self, exchange: Exchange) -> None:
        """Send it at its time, or as soon as those are answered that were answered before it in the recording."""
        self.until(exchange.sent_ms - 1)
        before = [answer for other, answer in self.answers if other.sent_ms + other.took_ms <= exchange.sent_ms]
        for _ in range(150):
            if all(answer.done for answer in before):
                break
            self.until(self.world.sim.now_ms + 2)
        self.until(self.world.sim.now_ms)
        if exchange.note == "orderly pop 4":
            self._acknowledge_what_is_out()
        fields = dict(exchange.request.ext_fields)
        if "extraInfo" in fields:
            fields["extraInfo"] = re.sub(
                r"\d{13}", lambda found: self._times.get(found[0], found[0]), fields["extraInfo"]
            )
        to = self.second_port if exchange.note == "pop on the VIP port" else None
        self.answers.append((exchange, self.client.send(exchange.request.code, exchange.request.body, to=to, **fields)))

    def _acknowledge_what_is_out(self) -> None:
        """The recorded client acknowledged the three messages of its last orderly pop in between."""
        (pop_time,) = {info.pop_time for info in [self.world.broker.state.order_infos.get("o1", "go1", 0)] if info}
        for offset in (2, 3, 4):
            extra = f"0 {pop_time} 8000 999 0 broker-a 0 {offset}"
            self.client.ask(200051, consumerGroup="go1", topic="o1", queueId=0, offset=offset, extraInfo=extra)

    def wrong(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for number, (exchange, answer) in enumerate(self.answers):
            if not answer.done:
                found[f"{number} {exchange.note}"] = "no answer"
                continue
            got, wanted = answer.result(), exchange.response
            apart = list(APART)
            mine, real = (int(each.ext_fields.get("invisibleTime", 0)) for each in (got, wanted))
            if exchange.note.startswith("orderly change") and abs(mine - real) < 50:
                apart.append("invisibleTime")  # from the pop to the request: it depends on how long both took
            if exchange.request.ext_fields.get("queueId") == "-1":
                for name in ("startOffsetInfo", "msgOffsetInfo"):
                    parts = [each.ext_fields.get(name, "").split(";") for each in (got, wanted)]
                    if sorted(parts[0]) == sorted(parts[1]):
                        apart.append(name)
            difference = differences(_without_addresses(got), _without_addresses(wanted), apart=apart)
            if exchange.request.code == 200050:
                shapes = _messages(got), _messages(wanted)
                if shapes[0] != shapes[1]:
                    difference["messages"] = shapes
            if difference:
                found[f"{number} {exchange.note}"] = difference
        return found


def _messages(answer: RemotingCommand) -> list[tuple[Any, ...]]:
    """What the messages of an answer to a pop are; queues sorted, since each pop begins with another one."""
    return sorted(
        (
            unit.queue_id,
            unit.queue_offset,
            unit.topic,
            unit.property_map.get("TAGS"),
            unit.reconsume_times,
            sorted({"POP_CK", "1ST_POP_TIME"} & unit.property_map.keys()),
        )
        for unit in decode_all(answer.body or b"")
    )


def _without_addresses(command: RemotingCommand) -> RemotingCommand:
    remark = re.sub(r"/[\d.]+:\d+", "/address", command.remark) if command.remark else command.remark
    remark = re.sub(r"broker\[[\d.]+\]", "broker[address]", remark) if remark else remark
    return dataclasses.replace(command, remark=remark)


def _play(world: World, numbers: range, events: dict[int, Callable[[], None]]) -> Replay:
    replay = Replay(world)
    due = dict(events)
    for number in numbers:
        exchange = EXCHANGES[number]
        for at_ms in sorted(moment for moment in due if BEGAN_MS + moment <= exchange.sent_ms):
            replay.until(BEGAN_MS + at_ms)
            due.pop(at_ms)()
        replay.send(exchange)
    replay.until(BEGAN_MS + 200_000)
    return replay


def test_pops_acks_changes_and_their_refusals(tmp_path: Path) -> None:
    world = _world(tmp_path)
    _fill(world)
    replay = _play(world, LEASES, {300: lambda: _topic(world, "t7", 2)})
    wrong = replay.wrong()
    # The retry message of a v1 topic wakes nobody: the held pop is answered at its end, with it.
    assert not wrong
    held = next(answer.result() for exchange, answer in replay.answers if exchange.note.startswith("held pop, woken"))
    assert held.ext_fields["startOffsetInfo"] == "1 0 0"


def test_orderly_pops_notifications_and_what_is_refused(tmp_path: Path) -> None:
    world = _world(tmp_path)
    _fill(world)
    sender = world.client("sender")
    events = {111_915: lambda: sender.put("n1", b"wakes", queue_id=1)}
    replay = _play(world, ORDERLY_AND_REFUSED, {key: _ignore(event) for key, event in events.items()})
    assert not replay.wrong()


def test_orderly_pops_count_what_comes_again(tmp_path: Path) -> None:
    world = _world(tmp_path)
    _fill(world)
    replay = Replay(world)
    for number in COUNTED:
        replay.send(EXCHANGES[number])
    replay.until(BEGAN_MS + 200_000)
    assert not replay.wrong() and len(COUNTED) >= 15


def test_request_modes_and_assignments(tmp_path: Path) -> None:
    world = _world(tmp_path)
    _fill(world)
    world.run_for(BEGAN_MS + 120_000 - world.sim.now_ms)
    for client_id in ("c1", "c2", "c3"):
        member = world.client(client_id)
        member.heartbeat("gr", SubscriptionData(topic="r1", sub_string="*"), client_id=client_id)
    replay = Replay(world)
    for number in MODES:
        replay.send(EXCHANGES[number])
    replay.until(BEGAN_MS + 200_000)
    assert not replay.wrong()
    for exchange, answer in replay.answers:
        if exchange.request.code != 401:
            assert _assigned(answer.result()) == _assigned(exchange.response), exchange.note


def _assigned(answer: RemotingCommand) -> Any:
    """The value of a body; queues sorted, since RocketMQ lists them in the order of a Java HashSet."""
    value = json.loads(answer.body or b"null")
    queues = value.get("messageQueueAssignments") if isinstance(value, dict) else None
    return value if queues is None else sorted(queues, key=lambda each: each["messageQueue"]["queueId"])


def test_every_exchange_is_sent_again() -> None:
    parts = LEASES, ORDERLY_AND_REFUSED, COUNTED, MODES, SET_BACK, V2, BUFFERED
    assert {number for part in parts for number in part} == set(range(len(EXCHANGES)))


def test_an_offset_that_is_set_back(tmp_path: Path) -> None:
    world = _world(tmp_path)
    _fill(world)
    world.run_for(BEGAN_MS + 187_000 - world.sim.now_ms)
    assert _pop(world, "ga", "a1", initMode=0).ext_fields["msgOffsetInfo"] == "0 0 0,1,2,3,4"
    replay = Replay(world)
    replay.send(EXCHANGES[SET_BACK[0]])
    replay.until(world.sim.now_ms + 5)
    assert _pop(world, "ga", "a1", maxMsgNums=1).ext_fields["msgOffsetInfo"] == "0 0 2"
    replay.send(EXCHANGES[SET_BACK[1]])
    replay.until(world.sim.now_ms + 20)
    assert not replay.wrong()
    (_, answer) = replay.answers[1]
    assert [*json.loads(answer.result().body)["offsetTable"].values()] == [1]
    assert EXCHANGES[SET_BACK[1]].response.body.endswith(b'"topic":"a1"}:1}}')
    assert _pop(world, "ga", "a1").ext_fields["msgOffsetInfo"] == "0 0 1,2,3,4"


def test_a_pop_with_the_merge_buffer(tmp_path: Path) -> None:
    world = _world(tmp_path, enable_pop_buffer_merge=True)
    _topic(world, "a3")
    sender = world.client("filler")
    for _ in range(5):
        sender.put("a3", b"m")
    replay = Replay(world)
    replay.send(EXCHANGES[95])
    replay.until(world.sim.now_ms + 100)
    assert not replay.wrong() and len(_messages(EXCHANGES[95].response)) == 5


def test_a_v2_retry_message_wakes_a_held_pop(tmp_path: Path) -> None:
    world = _world(tmp_path, enable_retry_topic_v2=True, retrieve_message_from_pop_retry_topic_v1=False)
    client = world.client()
    _topic(world, "a2")
    client.put("a2", b"m")
    popped = _pop(world, "ga2", "a2", invisibleTime=5_000)
    assert popped.ext_fields["startOffsetInfo"] == "0 0 0"
    held = client.send(200050, **_fields(world, "ga2", "a2", invisibleTime=20_000, pollTime=30_000))
    world.run_for(15_000)
    assert held.done
    wanted = EXCHANGES[V2[0]].response
    assert not differences(held.result(), wanted, apart=APART) and _messages(held.result()) == _messages(wanted)
    ack = client.ask(
        200051,
        consumerGroup="ga2",
        topic="%RETRY%ga2+a2",
        queueId=0,
        offset=0,
        extraInfo=f"0 {held.result().ext_fields['popTime']} 20000 1 2 broker-a 0 0",
    )
    assert not differences(ack, EXCHANGES[V2[1]].response)


def test_a_broker_without_the_wheel_refuses_pops(tmp_path: Path) -> None:
    world = World(tmp_path, store=dataclasses.replace(BIG, timer_wheel_enable=False))
    _topic(world, "t2")
    answer = _pop(world, "g", "t2")
    assert answer.code == 1
    assert (
        answer.remark
        == f"the broker[{world.broker.ports.ip}] pop message is forbidden because timerWheelEnable is false"
    )


def test_a_slave_gives_messages_and_keeps_nothing(tmp_path: Path) -> None:
    master = World(tmp_path, store=BIG, broker_name="broker-a")
    _topic(master, "sl2")
    sender = master.client()
    for _ in range(4):
        sender.put("sl2", b"m")
    master.broker.shutdown()
    slave = World(tmp_path, store=dataclasses.replace(BIG, broker_role="SLAVE"), broker_id=1)
    pops = [_pop(slave, "gsl2", "sl2", maxMsgNums=2, invisibleTime=4_000) for _ in range(2)]
    asked = exchanges("slave_exchanges")
    recorded = {each.note: each.response for each in asked}
    for answer in pops:  # the same messages again and again
        assert not differences(answer, recorded["pop asked of a slave"], apart=APART)
    extra = f"0 {pops[0].ext_fields['popTime']} 4000 0 0 broker-a 0 0"
    client = slave.client()
    common = {"consumerGroup": "gsl2", "topic": "sl2", "queueId": 0, "extraInfo": extra}
    assert not differences(client.ask(200051, offset=0, **common), recorded["ack asked of a slave"])
    changed = client.ask(200053, offset=1, invisibleTime=9_000, **common)
    assert not differences(changed, recorded["change asked of a slave"])
    slave.broker.state.change_config(dataclasses.replace(slave.broker.config, recall_message_enable=True))
    for exchange in asked[:2]:  # a topic that it does not know, and a recall
        fields = {**exchange.request.ext_fields, "bornTime": slave.sim.now_ms}
        assert not differences(client.ask(exchange.request.code, **fields), exchange.response)
    assert len(asked) == 5


def _ignore(event: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        event()

    return run


def _fields(world: World, group: str, topic: str, **more: Any) -> dict[str, Any]:
    return {
        "consumerGroup": group,
        "topic": topic,
        "queueId": -1,
        "maxMsgNums": 32,
        "invisibleTime": 60_000,
        "pollTime": 0,
        "bornTime": world.sim.now_ms,
        "initMode": 1,
        "order": "false",
        "exp": "*",
        "expType": "TAG",
        **more,
    }


def _pop(world: World, group: str, topic: str, **more: Any) -> RemotingCommand:
    return world.client(f"popper-{len(world.sim.nodes)}").ask(200050, **_fields(world, group, topic, **more))
