"""The orderly lock table: who gets a queue, when a lock runs out, what is forgotten."""

from __future__ import annotations

from mqlab.rocketmq.broker.tables.queue_locks import QueueLocks
from mqlab.rocketmq.wire.message import MessageQueue

Q0, Q1, Q2 = (MessageQueue("заказы", "broker-a", queue_id) for queue_id in range(3))


class Now:
    ms = 0

    def __call__(self) -> int:
        return self.ms


def test_first_come_first_served_per_queue_and_group() -> None:
    locks = QueueLocks(Now())
    assert locks.try_lock("billing", [Q0, Q1], "one") == [Q0, Q1]
    assert locks.try_lock("billing", [Q1, Q2], "two") == [Q2]
    assert locks.try_lock("audit", [Q0], "two") == [Q0]
    assert locks.holder("billing", Q0) == "one" and locks.holder("billing", Q2) == "two"


def test_a_lock_lives_sixty_seconds_after_its_last_renewal() -> None:
    now = Now()
    locks = QueueLocks(now)
    locks.try_lock("billing", [Q0], "one")
    now.ms = 60_000
    assert locks.try_lock("billing", [Q0], "two") == []
    assert locks.try_lock("billing", [Q0], "one") == [Q0]
    now.ms = 120_000
    assert locks.try_lock("billing", [Q0], "two") == []
    now.ms = 120_001
    assert locks.holder("billing", Q0) is None and locks.all_expired("billing")
    assert locks.try_lock("billing", [Q0], "two") == [Q0]
    assert locks.try_lock("billing", [Q0], "one") == []


def test_only_the_holder_unlocks() -> None:
    locks = QueueLocks(Now())
    locks.try_lock("billing", [Q0], "one")
    locks.unlock("billing", [Q0], "two")
    assert locks.holder("billing", Q0) == "one" and not locks.all_expired("billing")
    locks.unlock("billing", [Q0, Q1], "one")
    assert locks.holder("billing", Q0) is None and locks.all_expired("billing")


def test_a_group_without_locks_has_all_expired() -> None:
    assert QueueLocks(Now()).all_expired("nobody")


def test_the_table_reads_like_a_mapping_and_tells_its_changes() -> None:
    told = []
    locks = QueueLocks(Now(), note=lambda kind, **values: told.append((kind, values["client"])))
    locks.try_lock("billing", [Q0, Q1], "one")
    locks.try_lock("billing", [Q0], "one")
    locks.unlock("billing", [Q1], "one")
    assert list(locks) == ["billing"] and list(locks["billing"]) == [Q0]
    assert repr(locks) == "<QueueLocks: 1 queues of 1 groups>"
    assert told == [("queue.locked", "one"), ("queue.locked", "one"), ("queue.unlocked", "one")]
