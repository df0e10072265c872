"""Moving a group's offsets: the codes, what the broker does, when members notice, which door to take.

Mirrors: AdminBrokerProcessor.resetOffset, Broker2Client.resetOffset, ConsumerOffsetManager.
"""

from __future__ import annotations

from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, MessageQueue
from mqlab.errors import BrokerError
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.command import RemotingCommand
from mqlab.rocketmq.wire.record import decode_all
from tests.lab.scenarios.stories import (
    Seen,
    Tool,
    changes,
    config,
    delivered,
    frames,
    member,
    quiet_lab,
    row,
    send,
    send_many,
)

RESET, COMMIT, QUERY, PULL = 222, 15, 14, 11
PULLED: dict[str, Any] = {
    "consumerGroup": "rg",
    "topic": "orders",
    "queueId": 0,
    "maxMsgNums": 32,
    "suspendTimeoutMillis": 15_000,
    "subVersion": 0,
    "subscription": "*",
    "expressionType": "TAG",
    "commitOffset": 0,
    "sysFlag": 4,
}
WITH_COMMIT = 5  # COMMIT_OFFSET and SUBSCRIPTION


class Stored:
    """The fact sheet's topic: 4 queues x 20 messages, 10 before ``between_ms`` and 10 after; group rg is known."""

    def __init__(self, **settings: Any) -> None:
        self.lab = quiet_lab(seed=61, **settings)
        self.lab.create_topic("orders")
        producer = self.lab.producer("shop")
        self.between_ms = 0
        for half in range(2):
            for queue in range(4):
                send(producer, *["заказ 订单 💳"] * 10, queue=queue)
            self.lab.run_for("1s")
            self.between_ms = self.between_ms or self.lab.now_ms
            assert half in (0, 1)
        self.lab.admin.create_and_update_subscription_group_config("rg")
        self.tool = Tool(self.lab)

    def reset(self, **fields: Any) -> RemotingCommand:
        asked = {"topic": "orders", "group": "rg", "timestamp": -1, "isForce": True, **fields}
        return self.tool.ask(RESET, **{name: value for name, value in asked.items() if value is not None})

    def targets(self, **fields: Any) -> list[int]:
        answer = self.reset(**fields)
        assert answer.code == 0, answer.remark
        table = java_json.loads((answer.body or b"").decode())["offsetTable"]
        return [
            offset for _, offset in sorted((java_json.loads(key)["queueId"], value) for key, value in table.items())
        ]

    def commit(self, offset: int) -> RemotingCommand:
        return self.tool.ask(COMMIT, consumerGroup="rg", topic="orders", queueId=0, commitOffset=offset)

    def query(self, queue: int = 0) -> int:
        return int(self.tool.ask(QUERY, consumerGroup="rg", topic="orders", queueId=queue).ext_fields["offset"])

    def pull(self, offset: int, **more: Any) -> RemotingCommand:
        return self.tool.ask(PULL, **{**PULLED, "queueOffset": offset, **more})


def test_now_is_a_time_and_minus_one_is_the_end() -> None:
    stored = Stored()
    admin = stored.lab.admin
    assert admin.reset_offset_by_timestamp("orders", "rg", "now").queues[0].target_offset == 20
    asked = [each.about.ext_fields["timestamp"] for each in frames(stored.lab, RESET)]
    assert asked == [str(admin_ms) for admin_ms in map(int, asked)] and int(asked[0]) > stored.between_ms
    admin.skip_accumulated_message("orders", "rg")
    assert frames(stored.lab, RESET)[-1].about.ext_fields["timestamp"] == "-1"


def test_guard_rails_that_mqadmin_lacks() -> None:
    """Lag, cold reads, a live group and the whole log are told before anything is done."""
    stored = Stored(memory="1KB")
    lab = stored.lab
    stored.targets(timestamp=-1)
    member(lab, "rg")
    lab.run_for("30s")
    plan = lab.admin.reset_offset_by_timestamp("orders", "rg", 0, dry_run=True)
    assert (plan.again, plan.skipped, plan.applied) == (80, 0, False)
    told = " | ".join(plan.warnings)
    assert "the group is live" in told and "4 of 4 queues begin on disk" in told and "80 messages" in told
    assert [row_.consumer_offset for row_ in plan.queues] == [20] * 4 and stored.query() == 20  # nothing was done
    for dry_run in (True, False):
        with pytest.raises(BrokerError, match="Group typo does not exist"):
            lab.admin.reset_offset_by_timestamp("orders", "typo", 0, dry_run=dry_run)
    assert "typo" not in lab.broker().groups  # nor made by asking for it


def test_who_is_refused() -> None:
    stored = Stored()
    unknown = stored.reset(group="nobody")
    assert (unknown.code, unknown.remark) == (26, "Group nobody does not exist")
    unknown = stored.reset(topic="NOPE")
    assert (unknown.code, unknown.remark) == (17, "Topic NOPE does not exist")


def test_the_table_of_targets() -> None:
    stored = Stored()
    between = stored.between_ms
    for timestamp, expected in ((-1, 20), (-5, 20), (1 << 50, 20), (between, 10), (0, 0)):
        assert stored.targets(timestamp=timestamp) == [expected] * 4
    for offset in (7, 20, 21):
        assert stored.targets(queueId=0, offset=offset) == [offset] and stored.query() == offset
    for offset in (22, -2):
        answer = stored.reset(queueId=0, offset=offset)
        assert (answer.code, answer.remark) == (1, f"Target offset {offset} not in consume queue range [0-20]")
    assert stored.targets(queueId=0, offset=-1, timestamp=between) == [10]
    assert stored.targets(queueId=9, timestamp=between) == [0] and stored.query(9) == 0
    answer = stored.reset(queueId=9, offset=3)
    assert (answer.code, answer.remark) == (1, "Target offset 3 not in consume queue range [0-0]")
    assert stored.targets(queueId=-3, timestamp=between) == [10] * 4
    stored.targets(timestamp=-1)
    assert stored.targets(timestamp=between, isForce=False) == [10] * 4  # ignored: no rule about direction
    assert stored.targets(timestamp=between, isForce=None) == [10] * 4


def test_a_pending_reset_swallows_commits_until_a_pull_takes_it() -> None:
    stored = Stored()
    stored.commit(15)
    stored.targets(queueId=0, offset=10)
    assert stored.query() == 10
    ignored = stored.commit(3)
    assert (ignored.code, ignored.remark, stored.query()) == (0, "Offset has been previously reset", 10)
    moved = stored.pull(15)
    assert (moved.code, moved.ext_fields["nextBeginOffset"]) == (21, "10")
    assert (stored.commit(3).code, stored.query()) == (0, 3)  # from here on old progress counts again
    found = stored.pull(15)
    assert (found.code, len(decode_all(found.body or b""))) == (0, 5)
    stored.commit(100)
    assert stored.query() == 100  # stored as it is


def test_a_commit_that_rides_on_the_pull_that_takes_the_reset_wins() -> None:
    stored = Stored()
    stored.targets(queueId=0, offset=10)
    moved = stored.pull(18, sysFlag=WITH_COMMIT, commitOffset=18)
    assert (moved.code, moved.ext_fields["nextBeginOffset"], stored.query()) == (21, "10", 18)


def test_one_beyond_the_end_is_pulled_back() -> None:
    stored = Stored()
    stored.targets(queueId=0, offset=21)
    assert stored.pull(20).ext_fields["nextBeginOffset"] == "21"
    badly = stored.pull(21)
    assert (badly.code, badly.ext_fields["nextBeginOffset"]) == (21, "20")


def test_the_mark_dies_with_the_broker_and_the_offset_stays() -> None:
    stored = Stored()
    stored.commit(15)
    stored.targets(queueId=0, offset=10)
    stored.lab.run_for("11s")  # the table is written
    stored.lab.kill("broker-a")
    stored.lab.start("broker-a")
    stored.lab.run_for("1s")
    assert stored.query() == 10
    assert stored.commit(15).remark is None and stored.query() == 15  # an online group's next commit wins


def backlog(**settings: Any) -> tuple[Lab, Any, Seen]:
    """401 messages in 4 queues, all cached by a push consumer that takes 2 s for each with 20 threads."""
    lab = quiet_lab(seed=63, **settings)
    lab.create_topic("orders")
    producer = lab.producer("shop")
    for queue in range(4):
        send_many(producer, 101 if queue == 0 else 100, queue=queue)
    lab.run_for("1s")
    seen = Seen(lab, takes="2s")
    consumer = member(lab, "rg", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    return lab, consumer, seen


def test_a_push_group_skips_when_its_held_pulls_return() -> None:
    lab, _, seen = backlog()
    lab.run_for("11s")
    given = len(seen.messages)
    lab.admin.skip_accumulated_message("orders", "rg")
    assert [row(lab, "rg", queue).consumer_offset for queue in range(4)] == [101, 100, 100, 100]  # at once
    lab.run_for("60s")
    later = len(seen.messages) - given
    assert 0 < later <= 200  # the cache is worked off until the pull comes back, then nothing
    assert len(seen.messages) < 401 and len({(m.queue_id, m.queue_offset) for m in seen.messages}) == len(seen.messages)
    assert len(lab.verify("rg").of("SKIPPED")) == 401 - len(seen.messages)
    assert [row(lab, "rg", queue).lag for queue in range(4)] == [0] * 4


def test_a_push_group_goes_back_within_the_hold() -> None:
    lab = quiet_lab(seed=64)
    lab.create_topic("orders")
    send_many(lab.producer("shop"), 40)
    lab.run_for("1s")
    seen = Seen(lab)
    member(lab, "rg", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("51s")
    assert len(seen.messages) == 40
    began_ms = lab.now_ms
    lab.admin.reset_offset_by_timestamp("orders", "rg", 0)
    lab.run_for("40s")
    assert len(seen.messages) == 80 and seen.times_ms[40] - began_ms <= 20_000
    assert changes(lab, "offset.reset")


def test_a_lite_consumer_moves_its_reading_position_only() -> None:
    lab = quiet_lab(seed=65)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send_many(lab.producer("shop"), 101, queue=0)
    lab.run_for("1s")
    queue = MessageQueue("orders", "broker-a", 0)
    lite = lab.lite_pull_consumer("rg", auto_commit_interval_millis="1s")
    lite.assign([queue])
    lite.start()
    while lite.poll("2s"):
        pass
    lab.run_for("10s")
    lite.poll("1s")
    assert lite.committed(queue) == 101
    began_ms = lab.now_ms
    lab.admin.reset_offset_of_queue("orders", "rg", "broker-a", 0, 5)
    batch: list[Any] = []
    while not batch:
        batch = lite.poll("1s")
    assert [message.queue_offset for message in batch] == list(range(5, 15))
    assert 1_000 < lab.now_ms - began_ms <= 25_000  # the rest of the hold
    assert lite.committed(queue) == 101  # its own word, until a later poll
    while lite.poll("2s"):
        pass
    lab.run_for("10s")
    assert lite.committed(queue) == 101 == row(lab, "rg").consumer_offset


def test_the_old_way_needs_stored_offsets_and_somebody_online() -> None:
    stored = Stored(broker={"use_server_side_reset_offset": False})
    assert stored.reset().remark == "THe consumer group <rg> not exist"
    for queue in range(4):
        stored.tool.ask(COMMIT, consumerGroup="rg", topic="orders", queueId=queue, commitOffset=5)
    offline = stored.reset(timestamp=0)
    assert offline.code == 206
    assert offline.remark == "Consumer not online, so can not reset offset, Group: rg Topic: orders Timestamp: 0"


@pytest.mark.parametrize(("force", "expected"), [(False, [5, 5, 5, 5]), (True, [20, 20, 20, 20])])
def test_force_is_the_permission_to_move_forward(force: bool, expected: list[int]) -> None:
    stored = Stored(broker={"use_server_side_reset_offset": False})
    for queue in range(4):
        stored.tool.ask(COMMIT, consumerGroup="rg", topic="orders", queueId=queue, commitOffset=5)
    member(stored.lab, "rg", Seen(stored.lab, takes="1h"))
    stored.lab.run_for("3s")
    assert stored.targets(timestamp=-1, isForce=force) == expected


def test_members_wait_ten_seconds_and_go_on_from_there() -> None:
    stored = Stored(broker={"use_server_side_reset_offset": False})
    lab = stored.lab
    seen = Seen(lab)
    member(lab, "rg", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("30s")
    assert len(seen.messages) == 80
    began_ms = lab.now_ms
    assert stored.targets(timestamp=stored.between_ms) == [10] * 4
    lab.run_for("30s")
    assert len(seen.messages) == 120 and 10_000 <= seen.times_ms[80] - began_ms <= 12_000
    assert {message.queue_offset for message in seen.messages[80:]} == set(range(10, 20))


def test_a_bare_commit_to_an_online_group_is_overwritten_without_a_redelivery() -> None:
    lab = quiet_lab(seed=66)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    seen = Seen(lab)
    member(lab, "rg", seen)
    lab.run_for("11s")
    send(lab.producer("shop"), *["x"] * 23)
    lab.run_for("20s")
    began_ms = lab.now_ms
    Tool(lab).commit("rg", 0, 3)
    assert row(lab, "rg").consumer_offset == 3
    lab.run_until(lambda: row(lab, "rg").consumer_offset == 23, limit="1m")
    assert lab.now_ms - began_ms <= 5_000 and len(seen.messages) == 23


def test_a_bare_commit_to_an_offline_group_counts() -> None:
    lab = quiet_lab(seed=67)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send(lab.producer("shop"), *["x"] * 10)
    lab.admin.create_and_update_subscription_group_config("rg")
    Tool(lab).commit("rg", 0, 7)
    member(lab, "rg")
    lab.run_for("10s")
    assert [each.queue_offset for each in delivered(lab, "rg")] == [7, 8, 9]


def test_a_group_never_seen_is_made_first() -> None:
    stored = Stored()
    assert stored.reset(group="new").code == 26
    stored.lab.admin.create_and_update_subscription_group_config("new")
    assert stored.targets(group="new", timestamp=-1) == [20] * 4
    stored.lab.run_for("11s")
    assert config(stored.lab, "consumerOffset.json")["offsetTable"]["orders@new"] == {0: 20, 1: 20, 2: 20, 3: 20}
    member(stored.lab, "new", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    stored.lab.run_for("30s")
    assert not delivered(stored.lab, "new")


def test_a_retry_backlog_is_skipped_in_its_own_topic() -> None:
    lab = quiet_lab(seed=68)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    seen = Seen(lab, "RECONSUME_LATER")
    consumer = member(lab, "rg", seen)
    send(lab.producer("shop"), *["x"] * 3)
    lab.run_for("8s")
    lab.kill(consumer)
    lab.run_for("30s")  # the copies lie in %RETRY%rg
    plan = lab.admin.skip_accumulated_message("%RETRY%rg", "rg")
    assert plan.skipped == 3 and lab.broker().store.max_offset("%RETRY%rg", 0) == 3
    assert row(lab, "rg", topic="%RETRY%rg").consumer_offset == 3


def test_broadcasting_members_move_and_write_their_file() -> None:
    lab = quiet_lab(seed=69)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    seen = Seen(lab, CONSUME_SUCCESS)
    member(lab, "rg", seen, message_model="BROADCASTING")
    lab.run_for("5s")
    send(lab.producer("shop"), *["x"] * 6)
    lab.run_for("20s")
    lab.admin.create_and_update_subscription_group_config("rg")
    lab.admin.reset_offset_by_timestamp("orders", "rg", 0)
    lab.run_for("60s")
    assert len(seen.messages) == 12
    files = list((lab.directory / "offsets").rglob("offsets.json"))
    assert len(files) == 1 and ":6" in files[0].read_text("utf-8")


def test_one_queue_to_zero_which_the_tool_refuses_silently() -> None:
    stored = Stored()
    stored.targets(timestamp=-1)
    assert stored.lab.admin.reset_offset_of_queue("orders", "rg", "broker-a", 0, 0) == 0
    assert [stored.query(queue) for queue in range(4)] == [0, 20, 20, 20]
