"""Half messages, their ends, op messages and check-backs.

Mirrors: TransactionalMessageServiceImpl, EndTransactionProcessor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqlab.rocketmq.broker.transaction_check import DoneHalves
from mqlab.rocketmq.wire import names, record
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.ids import parse_offset_msg_id
from mqlab.rocketmq.wire.record import Record
from tests.rocketmq.broker.world import BareClient, World

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


def prepare(client: BareClient, body: bytes = "перевод".encode(), **named: str) -> dict[str, Any]:
    """Send a half message; the fields that END_TRANSACTION needs."""
    answer = client.put(
        "payments",
        body,
        queue_id=2,
        more={"sysFlag": 4},
        TRAN_MSG="true",
        PGROUP="pay",
        WAIT="true",
        **{"UNIQ_KEY": "U", "TAGS": "t", **named},
    )
    assert answer.code == ResponseCode.SUCCESS
    _, physical_offset = parse_offset_msg_id(answer.ext_fields["msgId"])
    return {
        "producerGroup": "pay",
        "tranStateTableOffset": int(answer.ext_fields["queueOffset"]),
        "commitLogOffset": physical_offset,
        "msgId": "U",
        "fromTransactionCheck": False,
    }


def end(client: BareClient, half: dict[str, Any], state: int, **more: Any) -> RemotingCommand:
    return client.ask(37, **{**half, "commitOrRollback": state, **more})


def real(world: World) -> list[Record]:
    world.run_for(10)
    return world.messages("payments", 2)


def halves(world: World) -> list[Record]:
    return world.messages(names.HALF_TOPIC)


def ops(world: World) -> list[Record]:
    return world.messages(names.OP_HALF_TOPIC)


def checks(client: BareClient) -> list[RemotingCommand]:
    return [command for command in client.received if command.code == RequestCode.CHECK_TRANSACTION_STATE]


def test_a_half_message_waits_unseen_by_consumers(world: World, client: BareClient) -> None:
    prepare(client)
    assert real(world) == []
    (half,) = halves(world)
    assert half.sys_flag & 0xC == 0 and half.body.decode() == "перевод"
    assert (half.property_map["REAL_TOPIC"], half.property_map["REAL_QID"]) == ("payments", "2")
    assert half.property_map["__transactionId__"] == "U"


def test_a_commit_makes_the_message_real(world: World, client: BareClient) -> None:
    half = prepare(client)
    assert end(client, half, COMMIT).code == ResponseCode.SUCCESS
    (message,) = real(world)
    assert message.sys_flag & 0xC == COMMIT and message.queue_id == 2
    assert message.prepared_transaction_offset == half["commitLogOffset"]
    assert message.property_map == halves(world)[0].property_map
    world.run_for(6_000)
    (op,) = ops(world)
    assert op.body == b"0," and op.properties == b"WAIT\x01true\x02TAGS\x01d\x02"
    assert op.born_host == op.store_host


def test_a_rollback_leaves_nothing_but_an_op_message(world: World, client: BareClient) -> None:
    half = prepare(client)
    ended = end(client, half, ROLLBACK)
    assert (ended.code, ended.remark) == (ResponseCode.SUCCESS, "not set any response code")
    world.run_for(6_000)
    assert real(world) == [] and [op.body for op in ops(world)] == [b"0,"]


def test_a_second_commit_stores_the_message_twice_and_its_half_is_named_twice(world: World, client: BareClient) -> None:
    half = prepare(client)
    assert end(client, half, COMMIT).code == end(client, half, COMMIT).code == ResponseCode.SUCCESS
    assert len(real(world)) == 2 and world.broker.state.half_states.state_of(0) == "COMMITTED"
    world.run_for(6_000)
    assert [op.body for op in ops(world)] == [b"0,0,"] and len(world.broker.state.half_states) == 0


def test_unknown_changes_nothing_and_oneway_is_enough(world: World, client: BareClient) -> None:
    half = prepare(client)
    client.tell(37, **half, commitOrRollback=UNKNOWN)
    assert real(world) == []
    client.tell(37, **half, commitOrRollback=COMMIT)
    assert len(real(world)) == 1


@pytest.mark.parametrize("wrong", [{"producerGroup": "other"}, {"tranStateTableOffset": 7}, {"commitLogOffset": 3}])
def test_an_end_that_does_not_fit_its_half(world: World, client: BareClient, wrong: dict[str, Any]) -> None:
    half = prepare(client)
    assert end(client, half, COMMIT, **wrong).code == ResponseCode.SYSTEM_ERROR
    assert real(world) == []


def op_times(world: World) -> list[int]:
    """When each op message was stored, ms since the broker started."""
    return [op.store_timestamp - world.broker.started_ms for op in ops(world)]


def test_op_messages_name_what_was_done_until_the_writer_wakes(world: World, client: BareClient) -> None:
    for number in range(5):
        end(client, prepare(client, UNIQ_KEY=f"U{number}"), COMMIT if number % 2 else ROLLBACK)
    world.run_for(5_800)
    assert ops(world) == []  # at 3 s, 3 s had not passed since the first end
    world.run_for(200)
    assert [op.body for op in ops(world)] == [b"0,1,2,3,4,"]
    end(client, prepare(client), COMMIT)
    world.run_for(6_000)
    assert [op.body for op in ops(world)] == [b"0,1,2,3,4,", b"5,"]
    assert op_times(world) == [6_000, 9_000]


def test_after_idle_time_the_op_message_waits_for_the_writers_next_wake_only(world: World, client: BareClient) -> None:
    end(client, prepare(client), COMMIT)
    world.run_for(20_000 - (world.sim.now_ms - world.broker.started_ms))
    end(client, prepare(client), COMMIT)
    world.run_for(4_000)
    assert op_times(world) == [6_000, 21_000]


def test_a_writer_woken_because_much_waits_counts_its_wakes_from_there(tmp_path: Path) -> None:
    world = World(tmp_path, transaction_op_msg_max_size=5)
    client = world.client()
    for _ in range(3):
        end(client, prepare(client), ROLLBACK)
    world.run_for(10)
    woken = op_times(world)[0]
    end(client, prepare(client), ROLLBACK)
    world.run_for(3_100)
    assert [op.body for op in ops(world)] == [b"0,1,2,", b"3,"] and 0 < woken < 1_000
    assert op_times(world) == [woken, woken + 3_000]


def test_many_done_halves_are_named_before_their_time(tmp_path: Path) -> None:
    world = World(tmp_path, transaction_op_msg_max_size=20)
    client = world.client()
    for number in range(12):
        end(client, prepare(client, UNIQ_KEY=f"U{number}"), ROLLBACK)
    world.run_for(10)
    assert b"".join(op.body for op in ops(world)) == b"0,1,2,3,4,5,6,7,8,9,"


def test_the_broker_can_refuse_transactions(tmp_path: Path) -> None:
    client = World(tmp_path, reject_transaction_message=True).client()
    answer = client.put("payments", TRAN_MSG="true", PGROUP="pay")
    assert answer.code == ResponseCode.NO_PERMISSION


def test_open_halves_are_counted_and_kept_in_a_file(world: World, client: BareClient) -> None:
    first = prepare(client)
    prepare(client)
    metrics = world.broker.transaction_metrics
    assert metrics.count("payments") == 2
    end(client, first, COMMIT)
    assert metrics.count("payments") == 1
    world.restart_broker()
    assert world.broker.transaction_metrics.count("payments") == 1


def test_a_late_end_is_refused_when_the_message_brought_its_own_immunity(world: World, client: BareClient) -> None:
    half = prepare(client, CHECK_IMMUNITY_TIME_IN_SECONDS="5")
    world.run_for(6_000)
    assert end(client, half, COMMIT).code == ResponseCode.ILLEGAL_OPERATION
    assert end(client, half, COMMIT, fromTransactionCheck=True).code == ResponseCode.SUCCESS


def test_an_immunity_below_the_time_out_does_not_make_an_end_late(world: World, client: BareClient) -> None:
    half, late = (prepare(client, CHECK_IMMUNITY_TIME_IN_SECONDS="1") for _ in range(2))
    world.run_for(5_000)
    assert end(client, half, COMMIT).code == ResponseCode.SUCCESS
    world.run_for(1_000)
    assert end(client, late, COMMIT).code == ResponseCode.ILLEGAL_OPERATION


def test_a_producer_is_asked_about_an_old_half_message(world: World, client: BareClient) -> None:
    client.heartbeat("pay")
    prepare(client)
    world.run_for(40_000)
    (question,) = checks(client)
    fields = question.ext_fields
    assert question.is_oneway and fields["topic"] == names.HALF_TOPIC and fields["bname"] == "broker-a"
    assert (fields["msgId"], fields["transactionId"], fields["tranStateTableOffset"]) == ("U", "U", "1")
    shown = record.decode(question.body or b"")
    assert (shown.topic, shown.queue_id, shown.body.decode()) == ("payments", 2, "перевод")
    assert (shown.queue_offset, shown.physical_offset) == (1, int(fields["commitLogOffset"]))
    assert shown.property_map["WAIT"] == "false" and shown.property_map["TRANSACTION_CHECK_TIMES"] == "1"
    assert [half.property_map.get("TRANSACTION_CHECK_TIMES") for half in halves(world)] == [None, "1"]


def answer_check(client: BareClient, state: int) -> RemotingCommand:
    fields = checks(client)[-1].ext_fields
    return client.ask(
        37,
        producerGroup="pay",
        tranStateTableOffset=fields["tranStateTableOffset"],
        msgId="U",
        commitLogOffset=fields["commitLogOffset"],
        commitOrRollback=state,
        fromTransactionCheck=True,
    )


def test_a_commit_after_a_check_ends_the_transaction_for_good(world: World, client: BareClient) -> None:
    client.heartbeat("pay")
    prepare(client)
    world.run_for(31_000)
    assert answer_check(client, COMMIT).code == ResponseCode.SUCCESS
    world.run_for(300_000)
    assert len(checks(client)) == 1 and len(real(world)) == 1
    assert world.broker.offset_table.query(names.TRANSACTION_GROUP, names.HALF_TOPIC, 0) == 2
    assert world.broker.offset_table.query(names.TRANSACTION_GROUP, names.OP_HALF_TOPIC, 0) == 1
    assert not [event for event in world.sim.upcoming(50) if event.kind.startswith("transaction")]


def test_a_finished_transaction_is_not_asked_about_once_its_op_message_is_written(tmp_path: Path) -> None:
    """With a time-out below the 3 s of the op writer, which wakes in the same ms as the check."""
    world = World(tmp_path, transaction_check_interval=1_000, transaction_time_out=1_000)
    client = world.client()
    client.heartbeat("pay")
    world.run_for(3_500)
    end(client, prepare(client), COMMIT)
    asked = 0
    for _ in range(120):
        world.run_for(100)
        if len(checks(client)) > asked:
            asked = len(checks(client))
            assert answer_check(client, COMMIT).code == ResponseCode.SUCCESS
            last_ms = world.sim.now_ms
    assert asked == 4  # one a second, until the op writer wakes
    assert last_ms < ops(world)[0].store_timestamp + 100


def test_a_young_half_message_is_left_alone(world: World, client: BareClient) -> None:
    client.heartbeat("pay")
    world.run_for(25_000)
    prepare(client)
    world.run_for(6_000)
    assert checks(client) == [] and len(halves(world)) == 1
    world.run_for(30_000)
    assert len(checks(client)) == 1


def test_after_fifteen_checks_it_is_given_up(world: World, client: BareClient) -> None:
    client.heartbeat("pay")
    prepare(client)
    for _ in range(20):
        world.run_for(30_000)
        client.heartbeat("pay")
    assert len(checks(client)) == 15
    (moved,) = world.messages(names.CHECK_MAX_TIME_TOPIC)
    assert moved.property_map["TRANSACTION_CHECK_TIMES"] == "15" and moved.property_map["REAL_TOPIC"] == "payments"
    assert real(world) == [] and world.broker.transaction_metrics.count("payments") == 0
    assert not [event for event in world.sim.upcoming(50) if event.kind.startswith("transaction")]


def test_limits_of_checks_and_times_are_settings(tmp_path: Path) -> None:
    world = World(tmp_path, transaction_check_max=2, transaction_check_interval=4_000, transaction_time_out=1_000)
    client = world.client()
    client.heartbeat("pay")
    prepare(client)
    world.run_for(60_000)
    assert len(checks(client)) == 2 and len(world.messages(names.CHECK_MAX_TIME_TOPIC)) == 1


def test_without_a_producer_checks_count_and_nobody_is_asked(world: World, client: BareClient) -> None:
    prepare(client)
    world.run_for(95_000)
    told = world.changes("transaction.checked")
    assert [values["times"] for values in told] == [1, 2, 3] and {values["asked"] for values in told} == {None}


def test_producers_of_the_group_are_asked_in_turn(world: World, client: BareClient) -> None:
    second = world.client("client-2")
    for _ in range(4):
        client.heartbeat("pay")
        second.heartbeat("pay")
        if not halves(world):
            prepare(client)
        world.run_for(30_000)
    assert (len(checks(client)), len(checks(second))) == (2, 2)


def test_done_halves_are_passed_over_and_open_ones_asked_about(world: World, client: BareClient) -> None:
    client.heartbeat("pay")
    made = [prepare(client, UNIQ_KEY=f"U{number}") for number in range(4)]
    end(client, made[1], COMMIT)
    end(client, made[3], ROLLBACK)
    world.run_for(35_000)
    assert [question.ext_fields["msgId"] for question in checks(client)] == ["U0", "U2"]


def test_a_half_under_its_own_immunity_does_not_hold_up_the_others(world: World, client: BareClient) -> None:
    client.heartbeat("pay")
    prepare(client, UNIQ_KEY="patient", CHECK_IMMUNITY_TIME_IN_SECONDS="50")
    prepare(client, UNIQ_KEY="old")
    world.run_for(35_000)
    assert [question.ext_fields["msgId"] for question in checks(client)] == ["old"]
    assert halves(world)[2].property_map["TRAN_PREPARED_QUEUE_OFFSET"] == "0"
    world.run_for(30_000)
    assert "patient" in [question.ext_fields["msgId"] for question in checks(client)]


def test_an_end_that_names_an_immune_halfs_first_form_after_it_moved_is_not_noticed(
    world: World, client: BareClient
) -> None:
    """As in RocketMQ: op messages below the half offset are passed over, so the moved form is asked about once more."""
    client.heartbeat("pay")
    half = prepare(client, CHECK_IMMUNITY_TIME_IN_SECONDS="60")
    world.run_for(35_000)
    assert len(halves(world)) == 2
    assert end(client, half, COMMIT).code == ResponseCode.SUCCESS
    world.run_for(90_000)
    assert len(checks(client)) >= 1 and len(real(world)) == 1


def test_an_idle_broker_has_no_transaction_timer(world: World, client: BareClient) -> None:
    client.put("orders")
    world.run_for(60_000)
    assert not [event for event in world.sim.upcoming(50) if event.kind.startswith("transaction")]


def test_checks_go_on_after_a_restart(world: World, client: BareClient) -> None:
    prepare(client)
    world.restart_broker()
    client.heartbeat("pay")
    world.run_for(35_000)
    assert len(checks(client)) == 1


def test_what_was_done_when_the_broker_stopped_is_not_checked_again(world: World, client: BareClient) -> None:
    end(client, prepare(client), COMMIT)
    world.restart_broker()
    client.heartbeat("pay")
    world.run_for(70_000)
    assert checks(client) == [] and [op.body for op in ops(world)] == [b"0,"]


def op(queue_offset: int, text: str, tag: str = "d") -> Record:
    return Record(
        names.OP_HALF_TOPIC, text.encode(), properties=f"TAGS\x01{tag}\x02".encode(), queue_offset=queue_offset
    )


def test_op_offsets_advance_over_what_is_used_up_without_a_gap() -> None:
    done = DoneHalves(10)
    for message in (op(0, "3,4,"), op(1, "10,11,"), op(2, "12,"), op(3, "мусор,,x,"), op(4, "10,", tag="z")):
        done.read(message)
    assert done.advanced(0) == 1
    assert done.take(12) and not done.take(12) and not done.take(99)
    assert done.advanced(0) == 1
    assert done.take(10) and done.take(11)
    assert done.advanced(0) == 5 and done.advanced(2) == 5
