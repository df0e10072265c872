"""One queue after the other, in order, under a lock that the broker keeps.

Mirrors: ConsumeMessageOrderlyService, RebalanceLockManager.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mqlab import SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT, Lab
from mqlab.rocketmq.wire import java_json
from tests.lab.scenarios.stories import (
    Seen,
    changes,
    delivered,
    frames,
    member,
    moments,
    owned,
    quiet_lab,
    row,
    send,
    send_many,
)

LOCK, UNLOCK, SEND = 41, 42, 310
SUSPEND = SUSPEND_CURRENT_QUEUE_A_MOMENT


def orders(lab: Lab, *bodies: str, queues: int = 1) -> Lab:
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    if bodies:
        send(lab.producer("shop"), *bodies)
    return lab


def locked(record: Any) -> list[int]:
    body = java_json.loads(record.about.body.decode())
    return sorted(queue["queueId"] for queue in body["mqSet"] if queue["topic"] == "orders")


def test_locks_are_asked_for_one_by_one_and_renewed_together_every_twenty_seconds() -> None:
    lab = orders(quiet_lab(), queues=3)
    consumer = member(lab, "billing", Seen(lab, SUCCESS), orderly=True)
    lab.run_for("90s")
    asked = frames(lab, LOCK)
    assert [queues for queues in map(locked, asked) if queues][:3] == [[0], [1], [2]]
    renewals = [one.now_ms for one in asked if locked(one) == [0, 1, 2]]
    assert {later - earlier for earlier, later in itertools.pairwise(renewals)} == {20_000}
    locks = lab.broker().queue_locks["billing"]
    assert {lock.client_id for lock in locks.values()} == {consumer.client_id}


def test_shutdown_unlocks_and_the_next_member_goes_on_at_once() -> None:
    lab = orders(quiet_lab(), *"abcd")
    first = member(lab, "billing", Seen(lab, SUCCESS), orderly=True)
    lab.run_for("20s")
    second = member(lab, "billing", Seen(lab, SUCCESS), name="billing-2", orderly=True)
    lab.run_for("30s")
    assert owned(first) == [0] and owned(second) == []
    first.shutdown()
    lab.run_for("2s")
    assert len(frames(lab, UNLOCK)) == 1 and owned(second) == [0]


def test_after_a_kill_the_lock_must_run_out_first() -> None:
    lab = orders(quiet_lab(), "a")
    first = member(lab, "billing", Seen(lab, SUCCESS), orderly=True)
    second = member(lab, "billing", Seen(lab, SUCCESS), name="billing-2", orderly=True)
    lab.run_for("30s")
    assert owned(first) == [0]
    lab.kill(first)
    killed_ms = lab.now_ms
    lab.run_until(lambda: owned(second) == [0], limit="2m")
    assert 40_000 <= lab.now_ms - killed_ms <= 61_100  # 60 s after the last renewal, which was at most 20 s ago


def test_a_broker_that_restarts_has_forgotten_all_locks() -> None:
    lab = orders(quiet_lab())
    consumer = member(lab, "billing", Seen(lab, SUCCESS), orderly=True)
    lab.run_for("30s")
    lab.kill("broker-a")
    lab.start("broker-a")
    assert "billing" not in lab.broker().queue_locks
    lab.run_for("40s")
    assert "billing" in lab.broker().queue_locks and owned(consumer) == [0]


def test_a_member_cut_off_stops_after_thirty_seconds_and_its_broker_gives_the_queue_away_after_sixty() -> None:
    lab = orders(quiet_lab())
    first_seen, second_seen = Seen(lab, SUCCESS, takes="1s"), Seen(lab, SUCCESS, takes="1s")
    first = member(lab, "billing", first_seen, orderly=True)
    second = member(lab, "billing", second_seen, name="billing-2", orderly=True)
    lab.run_for("10s")
    send_many(lab.producer("shop"), 200, queue=0)
    lab.run_for("20s")
    lab.partition(first, "broker-a")
    cut_ms = lab.now_ms
    lab.run_for("6m")
    last_of_first = max(first_seen.times_ms)
    assert 10_000 <= last_of_first - cut_ms <= 32_000
    assert min(second_seen.times_ms) > last_of_first + 1_000
    assert [message.queue_offset for message in second_seen.messages][-1] == 199
    assert owned(second) == [0]


def test_broadcasting_in_order_needs_no_lock() -> None:
    lab = orders(quiet_lab(), *"abc")
    both = [Seen(lab, SUCCESS), Seen(lab, SUCCESS)]
    for number, seen in enumerate(both):
        member(
            lab,
            "audit",
            seen,
            name=f"audit-{number}",
            orderly=True,
            message_model="BROADCASTING",
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        )
    lab.run_for("10s")
    assert [seen.bodies for seen in both] == [list("abc")] * 2
    assert frames(lab, LOCK) == []


def test_a_failure_stops_its_queue_for_a_second_and_keeps_the_order() -> None:
    lab = orders(quiet_lab(), queues=2)
    seen = Seen(lab, SUCCESS, SUSPEND, SUSPEND, SUCCESS)
    producer = lab.producer("shop")
    send(producer, *"abc", queue=0)
    member(lab, "billing", seen, orderly=True)
    lab.run_for("10s")
    assert seen.bodies == ["a", "b", "b", "b", "c"]
    assert [message.reconsume_times for message in seen.messages[1:4]] == [2, 2, 2]  # one object, counted up in memory
    waits = [later - earlier for earlier, later in zip(seen.times_ms, seen.times_ms[1:], strict=False)]
    assert waits == [0, 1_000, 1_000, 0]
    send(producer, "x", queue=1)
    lab.run_for("1s")
    assert seen.bodies[-1] == "x"


def test_by_default_it_is_tried_for_ever_and_blocks_its_queue_only() -> None:
    lab = orders(quiet_lab(), queues=2)
    producer = lab.producer("shop")

    def poison(messages: Any, context: Any) -> str:
        return SUSPEND if messages[0].body == b"poison" else SUCCESS

    seen = Seen(lab, poison)
    member(lab, "billing", seen, orderly=True)
    lab.run_for("5s")
    send(producer, "poison", "behind it", queue=0)
    send(producer, "elsewhere", queue=1)
    lab.run_for("10m")
    assert seen.bodies.count("poison") == pytest.approx(600, abs=2)
    assert "behind it" not in seen.bodies and "elsewhere" in seen.bodies
    assert row(lab, "billing", 0).lag == 2
    assert frames(lab, 36) == []  # nothing is sent back


def test_after_max_reconsume_times_it_goes_to_the_dead_letters_at_once_and_the_queue_goes_on() -> None:
    lab = orders(quiet_lab(), "poison ☠", "behind it")

    def listener(messages: Any, context: Any) -> str:
        return SUSPEND if messages[0].body.startswith(b"poison") else SUCCESS

    seen = Seen(lab, listener)
    member(lab, "billing", seen, orderly=True, max_reconsume_times=3)
    lab.run_for("30s")
    assert seen.bodies == ["poison ☠"] * 4 + ["behind it"]
    assert seen.times_ms[-1] - seen.times_ms[0] < 3_100
    (dead,) = lab.broker().store.get("%DLQ%billing", 0, 0).records()
    assert (dead.body.decode(), dead.reconsume_times, dead.property_map["RETRY_TOPIC"]) == ("poison ☠", 4, "orders")
    assert lab.broker().store.max_offset("%RETRY%billing", 0) == 0
    assert row(lab, "billing").lag == 0


def test_the_count_lives_in_the_process_and_starts_anew_in_another() -> None:
    lab = orders(quiet_lab(), "poison")
    first, second = Seen(lab, SUSPEND), Seen(lab, SUSPEND)
    consumer = member(lab, "billing", first, orderly=True, max_reconsume_times=10)
    lab.run_for("6s")
    consumer.shutdown()
    member(lab, "billing", second, name="billing-2", orderly=True, max_reconsume_times=10)
    lab.run_for("4s")
    counts = [one.reconsume_times for one in delivered(lab, "billing")]
    assert counts == [*range(len(first.times_ms)), *range(len(second.times_ms))] and len(second.times_ms) > 1


@pytest.mark.parametrize(("asked", "rests_ms"), [("3s", 3_000), (1, 10), ("10m", 30_000), (-1, 200)])
def test_the_rest_is_the_listeners_wish_between_ten_ms_and_thirty_seconds(asked: Any, rests_ms: int) -> None:
    lab = orders(quiet_lab(), "a")

    def listener(messages: Any, context: Any) -> str:
        context.suspend_current_queue_time_millis = asked
        return SUSPEND

    seen = Seen(lab, listener, SUCCESS)
    member(lab, "billing", seen, orderly=True, suspend_current_queue_time_millis="200ms")
    lab.run_for("1m")
    assert seen.times_ms[1] - seen.times_ms[0] == rests_ms


def test_without_auto_commit_the_listener_commits_and_rolls_back() -> None:
    lab = orders(quiet_lab(), *"abcd")
    script = iter([SUCCESS, SUCCESS, "ROLLBACK", SUCCESS, SUCCESS, "COMMIT", SUCCESS])

    def listener(messages: Any, context: Any) -> str:
        context.auto_commit = False
        return next(script)

    seen = Seen(lab, listener)
    consumer = member(lab, "billing", seen, orderly=True)
    lab.run_for("30s")
    assert seen.bodies == ["a", "b", "c", "a", "b", "c", "d"]
    assert seen.times_ms[3] - seen.times_ms[2] == 1_000
    assert row(lab, "billing").consumer_offset == 3  # d was good, but is not committed
    consumer.shutdown()
    member(lab, "billing", again := Seen(lab, SUCCESS), name="billing-2", orderly=True)
    lab.run_for("10s")
    assert again.bodies == ["d"]


def test_with_auto_commit_commit_and_rollback_mean_success() -> None:
    lab = orders(quiet_lab(), *"abc")
    seen = Seen(lab, "COMMIT", "ROLLBACK", SUCCESS)
    member(lab, "billing", seen, orderly=True)
    lab.run_for("15s")
    assert seen.bodies == ["a", "b", "c"] and row(lab, "billing").lag == 0


def test_one_thread_a_queue_and_queues_side_by_side() -> None:
    lab = orders(quiet_lab(), queues=4)
    producer = lab.producer("shop")
    for queue in range(4):
        send(producer, *(f"{queue}-{number}" for number in range(5)), queue=queue)
    seen = Seen(lab, SUCCESS, takes="1s")
    member(lab, "billing", seen, orderly=True)
    lab.run_for("20s")
    rows = delivered(lab, "billing")
    assert rows[-1].ended_ms - rows[0].started_ms == pytest.approx(5_000, abs=20)  # 20 s of work, four at a time
    for queue in range(4):
        of_queue = [body for body in seen.bodies if body.startswith(f"{queue}-")]
        assert of_queue == [f"{queue}-{number}" for number in range(5)]


def test_a_thread_lets_others_on_after_a_minute() -> None:
    lab = orders(quiet_lab(), queues=2)
    producer = lab.producer("shop")
    send(producer, *(f"0-{number}" for number in range(100)), queue=0)
    send(producer, *(f"1-{number}" for number in range(3)), queue=1)
    seen = Seen(lab, SUCCESS, takes="1s")
    member(lab, "billing", seen, orderly=True, consume_thread_min=1, consume_thread_max=1)
    lab.run_for("4m")
    of_queue_1 = [at for at, body in enumerate(seen.bodies) if body.startswith("1-")]
    assert of_queue_1 == [61, 62, 63]
    assert sorted(seen.bodies) == sorted([f"0-{n}" for n in range(100)] + [f"1-{n}" for n in range(3)])


def test_expiry_does_not_apply() -> None:
    lab = orders(quiet_lab(), "slow")
    seen = Seen(lab, SUCCESS, takes="40m")
    member(lab, "billing", seen, orderly=True, consume_timeout="1m")
    lab.run_for("50m")
    assert seen.bodies == ["slow"] and moments(lab, "message.expired") == []


def test_a_listener_is_waited_for_before_its_queue_moves() -> None:
    lab = orders(quiet_lab(), queues=2)
    member(lab, "billing", slow := Seen(lab, SUCCESS, takes="8s"), orderly=True)
    lab.run_for("3s")
    send(lab.producer("shop"), "long", queue=1)
    lab.run_for("1s")
    member(lab, "billing", other := Seen(lab, SUCCESS), name="billing-2", orderly=True)
    lab.run_for("90s")
    assert slow.bodies == ["long"]
    assert next(one.status for one in delivered(lab, "billing")) in ("SUCCESS", "RESULT_DISCARDED")
    assert len(other.bodies) <= 1 and changes(lab, "queue.unlocked")
