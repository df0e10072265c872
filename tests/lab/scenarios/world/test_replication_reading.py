"""Who is read, the master or a slave, when the log outgrows memory.

Mirrors: PullMessageProcessor, PullAPIWrapper.recalculatePullFromWhichNode.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from mqlab import Lab
from mqlab.rocketmq.wire.command import RemotingCommand
from tests.lab.scenarios.stories import Seen, Tool, changes, frames, member, send_many
from tests.lab.scenarios.world.replicas import MASTER, SLAVE, UNIT, fill, pair, pull, queue_range

MAX = 591
READING: dict[str, Any] = {"slave_read_enable": True}


def told(answer: RemotingCommand) -> tuple[int, int, int, int]:
    """Code, suggested broker id, next offset, messages."""
    fields = answer.ext_fields
    messages = len(answer.body or b"") // UNIT
    return answer.code, int(fields["suggestWhichBrokerId"]), int(fields["nextBeginOffset"]), messages


def late_slave(ratio: int = 40, *, slave: dict[str, Any] | None = None, **broker: Any) -> tuple[Lab, Tool]:
    """591 messages in queue 0 of the master; the slave joined late and has 431..591."""
    lab = pair(broker={"access_message_in_memory_max_ratio": ratio, **broker}, replica=slave or READING)
    lab.create_topic("T")
    lab.kill(SLAVE)
    lab.lose_disk(SLAVE)
    fill(lab, 4 * MAX)
    lab.start(SLAVE)
    lab.run_for("70s")
    assert (queue_range(lab, MASTER), queue_range(lab, SLAVE)) == ((0, MAX), (431, MAX))
    return lab, Tool(lab)


@pytest.fixture(scope="module")
def warm() -> tuple[Lab, Tool]:
    return late_slave()


@pytest.fixture(scope="module")
def cold() -> tuple[Lab, Tool]:
    """Ratio 0 at the master and, less its ten points, at the slave: nothing but the very end counts as in memory."""
    return late_slave(0, slave={**READING, "access_message_in_memory_max_ratio": 10}, **READING)


def test_a_master_with_enough_memory_suggests_itself(warm: tuple[Lab, Tool]) -> None:
    assert told(pull(warm[1], MASTER, 0)) == (0, 0, 32, 32)


def test_without_slave_read_enable_cold_reads_are_small_and_stay() -> None:
    _lab, tool = late_slave(0)
    assert told(pull(tool, MASTER, 0)) == (0, 0, 8, 8)


@pytest.mark.parametrize(
    ("offset", "expected"), [(0, (0, 1, 8, 8)), (MAX - 5, (0, 1, MAX, 5)), (MAX + 9, (21, 0, MAX, 0))]
)
def test_a_cold_master_suggests_its_slave(cold: tuple[Lab, Tool], offset: int, expected: tuple[int, ...]) -> None:
    assert told(pull(cold[1], MASTER, offset)) == expected


def test_a_scan_that_matches_nothing_suggests_as_well(cold: tuple[Lab, Tool]) -> None:
    assert told(pull(cold[1], MASTER, 0, subscription="no-such-tag")) == (20, 1, MAX, 0)


@pytest.mark.parametrize("offset", [0, 430])
def test_below_its_smallest_offset_a_slave_says_try_again(warm: tuple[Lab, Tool], offset: int) -> None:
    answer = pull(warm[1], SLAVE, offset)
    assert told(answer) == (20, 0, offset, 0) and answer.remark == "OFFSET_TOO_SMALL"


def test_a_slave_reads_what_it_has(warm: tuple[Lab, Tool]) -> None:
    assert told(pull(warm[1], SLAVE, 431)) == (0, 0, 463, 32)


def test_at_its_end_a_slave_answers_or_holds_as_a_master_does(warm: tuple[Lab, Tool]) -> None:
    lab, tool = warm
    began_ms = lab.now_ms
    assert pull(tool, SLAVE, MAX).code == 19 and lab.now_ms - began_ms <= 4
    held = pull(tool, SLAVE, MAX, sysFlag=6, suspendTimeoutMillis=5_000)
    assert held.code == 19 and 5_000 <= lab.now_ms - began_ms <= 10_100  # looked at every 5 s


def test_above_its_end_a_slave_says_try_again(warm: tuple[Lab, Tool]) -> None:
    answer = pull(warm[1], SLAVE, 600)
    assert told(answer) == (20, 0, 600, 0) and answer.remark == "OFFSET_OVERFLOW_BADLY"


def test_a_cold_slave_suggests_itself(cold: tuple[Lab, Tool]) -> None:
    assert told(pull(cold[1], SLAVE, 500)) == (0, 1, 508, 8)


def test_offset_check_in_slave_corrects_as_a_master_does() -> None:
    _lab, tool = late_slave(slave={**READING, "offset_check_in_slave": True})
    assert told(pull(tool, SLAVE, 0)) == (21, 0, 431, 0)
    assert told(pull(tool, SLAVE, 9999)) == (21, 0, MAX, 0)


def test_a_slave_that_may_not_be_read_says_busy() -> None:
    _lab, tool = late_slave(slave={"slave_read_enable": False})
    answer = pull(tool, SLAVE, 500)
    assert answer.code == 2 and answer.remark and answer.remark.startswith("[REJECTREQUEST]")


def test_the_group_says_which_slave() -> None:
    lab = pair(broker={**READING, "access_message_in_memory_max_ratio": 0}, replicas=2)
    lab.create_topic("T")
    fill(lab, 80)
    tool = Tool(lab)
    groups = lab.broker(MASTER).groups
    group = groups.find("g")
    groups.update(dataclasses.replace(group, which_broker_when_consume_slowly=2))
    assert told(pull(tool, MASTER, 0))[1] == 2
    groups.update(dataclasses.replace(group, broker_id=1))
    assert told(pull(tool, MASTER, 20)) == (19, 1, 20, 0)  # nothing was scanned: the group's own id


def catching_up(**settings: Any) -> tuple[Lab, Seen]:
    """A group that begins 400 messages behind while 16 KiB of the log count as in memory."""
    lab = pair(memory="16KB", broker=READING, **settings)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send_many(lab.producer("shop"), 400, queue=0)
    lab.run_for("65s")  # the slave knows the topic
    seen = Seen(lab)
    member(lab, "billing", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lab.run_for("10s")
    return lab, seen


def pulled_at(lab: Lab, broker: str) -> list[tuple[int, int]]:
    """Offset and flags of each pull of billing's queue that a broker got."""
    return [
        (int(record.about.ext_fields["queueOffset"]), int(record.about.ext_fields["sysFlag"]))
        for record in frames(lab, 11, to=broker)
        if record.about.ext_fields["topic"] == "orders"
    ]


def test_a_group_that_is_far_behind_moves_to_the_slave_and_comes_back() -> None:
    lab, seen = catching_up()
    at_master, at_slave = pulled_at(lab, MASTER), pulled_at(lab, SLAVE)
    assert at_master[0] == (0, 2)
    assert at_slave[0][0] == 8  # the first answer, eight messages from disk, suggested broker 1
    assert {flags & 1 for _, flags in at_slave} == {0}  # offsets are never committed there by the way
    assert at_master[1][0] > 250  # near the end of the log the slave suggests the master again
    assert sorted(message.queue_offset for message in seen.messages) == list(range(400))


def test_cold_reads_are_of_eight_and_warm_ones_of_thirty_two() -> None:
    lab, _ = catching_up()
    sizes = [values["messages"] for values in changes(lab, "message.pulled", group="billing") if values["messages"]]
    assert sizes[0] == 8 and set(sizes[:20]) == {8} and max(sizes) > 8


def test_a_pull_moved_to_the_slave_is_kept_until_an_answer_says_otherwise() -> None:
    lab, _ = catching_up(replica={"access_message_in_memory_max_ratio": 40})
    consumer = lab.handles["billing-1"]
    [queue] = [queue for queue in consumer.process_queues if queue.topic == "orders"]
    assert consumer.pull_api.pull_from_which_node[queue] == 0
    before = len(pulled_at(lab, SLAVE))
    send_many(lab.handles["shop-1"], 10, queue=0)
    lab.run_for("5s")
    assert len(pulled_at(lab, SLAVE)) == before


def test_a_user_can_pin_a_consumer_to_a_slave() -> None:
    lab = pair(broker=READING)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    lab.run_for("65s")
    seen = Seen(lab)
    consumer = member(lab, "billing", seen, start=False, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.pull_api.connect_broker_by_user, consumer.pull_api.default_broker_id = True, 1
    consumer.start()
    lab.run_for("3s")
    send_many(lab.producer("shop"), 20, queue=0)
    lab.run_for("5s")
    assert len(seen.messages) == 20
    assert pulled_at(lab, SLAVE) and not pulled_at(lab, MASTER)
