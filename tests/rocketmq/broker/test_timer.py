"""Timed messages in a running broker: when they come, what a crash does to them, and what each lost file means."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from pathlib import Path

import pytest

from mqlab.lab.runtime.crash_files import CrashFiles
from mqlab.rocketmq.store.config import StoreConfig
from tests.rocketmq.broker.world import SMALL_STORE, BareClient, World

SHORT_WINDOW = dataclasses.replace(SMALL_STORE, timer_roll_window_slot=6)


def _bodies(world: World, topic: str = "tm") -> list[bytes]:
    return [record.body for record in world.messages(topic)]


@pytest.mark.parametrize(("precision_ms", "poll_ms"), [(1000, 100), (100, 10)])
def test_a_message_is_late_by_up_to_a_precision_and_a_poll_and_never_early(
    tmp_path: Path, precision_ms: int, poll_ms: int
) -> None:
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, timer_precision_ms=precision_ms))
    client = world.client()
    base = world.sim.now_ms // 1000 * 1000 + 5_000
    for after in (0, 1, 50, 99, 100, 149, 999):
        client.put("tm", str(base + after).encode(), TIMER_DELIVER_MS=str(base + after))
    world.run_for(9_000)
    stored = world.messages("tm")
    assert len(stored) == 7
    for record in stored:
        late_ms = record.store_timestamp - int(record.body)
        assert 0 <= late_ms <= precision_ms + poll_ms
    assert next(r for r in stored if r.body == str(base).encode()).store_timestamp - base <= poll_ms


def test_empty_seconds_cost_no_step(world: World, client: BareClient) -> None:
    client.put("tm", TIMER_DELAY_SEC="86400")
    world.run_for(3_000)
    before = len(world.sim.journal.of("timer.dequeue"))
    world.run_for(86_000_000)
    assert len(world.sim.journal.of("timer.dequeue")) == before == 0
    world.run_for(500_000)
    assert len(world.sim.journal.of("timer.dequeue")) == 1 and len(_bodies(world)) == 1


def test_messages_of_one_slot_come_in_the_order_of_their_log(world: World, client: BareClient) -> None:
    deliver = str(world.sim.now_ms // 1000 * 1000 + 4_000)
    for body in (b"1", b"2", b"3"):
        client.put("tm", body, TIMER_DELIVER_MS=deliver)
    world.run_for(6_000)
    assert _bodies(world) == [b"1", b"2", b"3"]


def test_a_far_message_rolls_until_it_is_near(tmp_path: Path) -> None:
    world = World(tmp_path, store=SHORT_WINDOW)
    client = world.client()
    client.put("tm", b"far", TIMER_DELAY_SEC="19")
    client.put("tm", b"near", TIMER_DELAY_SEC="7")
    world.run_for(25_000)
    times = {record.body: record.property_map.get("TIMER_ROLL_TIMES") for record in world.messages("tm")}
    assert times in ({b"far": "2", b"near": "1"}, {b"far": "3", b"near": "1"})
    assert Counter(record.body for record in world.messages("rmq_sys_wheel_timer"))[b"near"] == 2


def test_a_message_beside_its_time_is_delivered_at_once(world: World, client: BareClient) -> None:
    """A message whose slot was read while it waited for the enqueue thread, as after a long stop."""
    client.put("tm", TIMER_DELAY_SEC="1")
    world.restart_broker(clean=False)
    world.run_for(10_000)
    assert len(_bodies(world)) == 1


def test_recall_drops_the_message_and_its_marker(tmp_path: Path) -> None:
    world = World(tmp_path, store=SHORT_WINDOW, recall_message_enable=True)
    client = world.client()
    handles = [
        client.put("tm", body, TIMER_DELAY_SEC="15").ext_fields["recallHandle"]
        for body in (b"stays", b"goes", b"rolled")
    ]
    assert client.ask(370, producerGroup="pg", topic="tm", recallHandle=handles[1]).code == 0
    world.run_for(9_000)
    assert client.ask(370, producerGroup="pg", topic="tm", recallHandle=handles[2]).code == 0
    world.run_for(20_000)
    assert _bodies(world) == [b"stays"]
    assert [values["msg_id"] is not None for values in world.changes("timer.recalled")] == [True, True]


def test_a_marker_whose_slot_was_read_says_success_and_does_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, recall_message_enable=True)
    client = world.client()
    deliver_ms = world.sim.now_ms // 1000 * 1000 + 3_000
    handle = client.put("tm", TIMER_DELIVER_MS=str(deliver_ms)).ext_fields["recallHandle"]
    world.run_for(deliver_ms - 5 - world.sim.now_ms)
    # The handle names the second before, which has passed: RocketMQ says so although the message is still to come.
    late = client.ask(370, producerGroup="pg", topic="tm", recallHandle=handle)
    assert (late.code, late.remark) == (604, "recall failed, timestamp invalid")
    world.run_for(5_000)
    assert len(_bodies(world)) == 1


@pytest.mark.parametrize("end", ["clean", "killed"])
def test_a_restart_keeps_what_waits(tmp_path: Path, end: str) -> None:
    world = World(tmp_path)
    client = world.client()
    for seconds in (2, 20, 90_000):
        client.put("tm", str(seconds).encode(), TIMER_DELAY_SEC=str(seconds))
    world.run_for(1_500)
    world.restart_broker(clean=end == "clean")
    world.run_for(10_000)
    assert _bodies(world) == [b"2"]
    world.run_for(20_000)
    assert _bodies(world) == [b"2", b"20"]
    world.run_for(90_000_000)
    assert _bodies(world) == [b"2", b"20", b"90000"]


@pytest.mark.parametrize(
    ("lost", "counts"),
    [
        ("timerwheel", {b"a": 1, b"b": 1, b"done": 1}),
        ("timerlog", {b"done": 1}),  # the check file says that they were enqueued
        ("config/timercheck", {b"a": 2, b"b": 2, b"done": 3}),
    ],
)
def test_what_each_lost_file_means(tmp_path: Path, lost: str, counts: dict[bytes, int]) -> None:
    world = World(tmp_path)
    client = world.client()
    client.put("tm", b"done", TIMER_DELAY_SEC="2")
    for body in (b"a", b"b"):
        client.put("tm", body, TIMER_DELAY_SEC="20")
    world.run_for(6_000)
    assert _bodies(world) == [b"done"]
    path = Path(world.directory) / "broker-a" / lost
    world.broker.shutdown()
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        os.remove(file)
    world.restart_broker(clean=False)
    world.run_for(30_000)
    assert Counter(_bodies(world)) == counts


def test_a_power_cut_loses_no_timed_message_that_was_flushed(tmp_path: Path) -> None:
    files = CrashFiles()
    store = dataclasses.replace(SMALL_STORE, flush_disk_type="SYNC_FLUSH")
    world = World(tmp_path, store=store, files=files)
    client = world.client()
    for number in range(12):
        assert client.put("tm", str(number).encode(), TIMER_DELAY_MS=str(1_500 + 700 * number)).code == 0
        world.run_for(400)
        if number % 3 == 2:
            world.restart_broker(clean=False, power_cut=True)
    world.run_for(20_000)
    assert set(_bodies(world)) == {str(number).encode() for number in range(12)}


def test_a_put_that_fails_is_tried_three_times_more_and_then_dropped(tmp_path: Path) -> None:
    for keep_trying in (False, True):
        config = dataclasses.replace(SMALL_STORE, timer_enable_retry_until_success=keep_trying)
        world = World(tmp_path / str(keep_trying), store=config)
        client = world.client()
        client.put("tm", b"first", TIMER_DELAY_SEC="2")
        client.put("tm", b"second", TIMER_DELAY_SEC="2")
        world.run_for(300)
        world.broker.store.admission.set_disk_full(True)
        world.run_for(6_000)
        assert len(world.sim.journal.of("timer.retry")) >= 3
        world.broker.store.admission.set_disk_full(False)
        world.run_for(4_000)
        dropped = [values["reason"] for values in world.changes("timer.dropped")]
        if keep_trying:
            assert _bodies(world) == [b"first", b"second"] and not dropped
        else:
            assert dropped and all(reason == "not stored after 3 retries" for reason in dropped)


def test_a_half_message_with_a_timer_never_reaches_its_topic(world: World, client: BareClient) -> None:
    answer = client.put("tm", b"half", TIMER_DELAY_SEC="4", TRAN_MSG="true", PGROUP="pg", UNIQ_KEY="K1")
    commit_log_offset = int(answer.ext_fields["msgId"][16:], 16)
    ended = client.ask(
        37,
        producerGroup="pg",
        tranStateTableOffset=answer.ext_fields["queueOffset"],
        commitLogOffset=commit_log_offset,
        commitOrRollback=8,
        msgId="K1",
        transactionId="K1",
        fromTransactionCheck=False,
    )
    assert ended.code == 0
    world.run_for(60_000)
    assert _bodies(world) == [] and _bodies(world, "RMQ_SYS_TRANS_HALF_TOPIC")


def test_runtime_info_has_the_timers_lines(world: World, client: BareClient) -> None:
    client.put("tm", TIMER_DELAY_SEC="30")
    world.run_for(2_000)
    table = world.broker.state.timer.status()
    assert table == {"timerReadBehind": 0, "timerOffsetBehind": 0, "timerCongestNum": 1}
    assert b'"timerCongestNum":"1"' in client.ask(28).body


def test_a_message_without_its_moment_stops_the_wheel_unless_unknown_errors_are_skipped(tmp_path: Path) -> None:
    for skips in (False, True):
        config: StoreConfig = dataclasses.replace(SMALL_STORE, timer_skip_unknown_error=skips)
        world = World(tmp_path / str(skips), store=config)
        client = world.client()
        client.put("rmq_sys_wheel_timer", b"not timed")
        client.put("tm", b"timed", TIMER_DELAY_SEC="2")
        world.run_for(6_000)
        assert _bodies(world) == ([b"timed"] if skips else [])
        assert len(world.changes("timer.problem")) == (0 if skips else 1)


def test_a_broker_that_was_off_for_a_week_lost_what_was_due_before(tmp_path: Path) -> None:
    world = World(tmp_path)
    client = world.client()
    client.put("tm", b"lost", TIMER_DELAY_SEC="600")
    client.put("tm", b"kept", TIMER_DELAY_SEC="150000")
    world.run_for(2_000)
    world.broker.shutdown()
    world.run_for(700_000_000)
    world.restart_broker(clean=False)
    world.run_for(5_000)
    assert _bodies(world) == [b"kept"]


def test_a_power_cut_after_a_kill_keeps_what_the_killed_process_had_not_synced(tmp_path: Path) -> None:
    """Found by random days: the file of the timer log was made by a process that was killed before it flushed."""
    files = CrashFiles()
    world = World(tmp_path, store=dataclasses.replace(SMALL_STORE, flush_disk_type="SYNC_FLUSH"), files=files)
    client = world.client()
    client.put("tm", b"waits", TIMER_DELAY_SEC="30")
    world.run_for(300)
    world.restart_broker(clean=False)
    client.put("tm", b"later", TIMER_DELAY_SEC="40")
    world.run_for(3_000)
    world.restart_broker(clean=False, power_cut=True)
    world.run_for(60_000)
    assert set(_bodies(world)) == {b"later", b"waits"}  # the first one twice: no check file says that it was enqueued
