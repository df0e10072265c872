"""The stories of test_verify without what went wrong in them: nothing gets a name."""

from __future__ import annotations

from typing import Any

from mqlab import COMMIT_MESSAGE, CONSUME_SUCCESS, ROLLBACK_MESSAGE, UNKNOWN, Message
from tests.lab.scenarios.stories import quiet_lab
from tests.lab.views.test_verify import billing, one_queue, orders


def test_not_lost_when_the_log_is_flushed_before_it_is_acknowledged() -> None:
    lab = one_queue(broker={"flush_disk_type": "SYNC_FLUSH"})
    orders(lab, 4)
    lab.power_off("broker-a")
    lab.start("broker-a")
    lab.run_for("1m")
    orders(lab, 3)
    billing(lab)
    lab.run_for("1m")
    assert lab.verify("billing").is_clean and lab.verify("billing").messages == 7


def test_not_done_twice_when_the_member_shuts_down_in_order() -> None:
    lab = one_queue()
    consumer = billing(lab)
    orders(lab, 5)
    lab.run_for("3s")  # consumed, not yet committed, as in the story of the kill
    consumer.shutdown()
    billing(lab, name="billing-2")
    lab.run_for("30s")
    assert lab.verify("billing").is_clean


def test_not_skipped_when_members_want_the_same_tags() -> None:
    lab = quiet_lab(seed=13)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    for name in ("billing-1", "billing-2"):
        billing(lab, name=name, tags="paid || new")
    lab.run_for("40s")
    orders(lab, 10, tags="paid")
    orders(lab, 10, tags="new")
    orders(lab, 5, tags="other")
    lab.run_for("1m")
    assert lab.verify("billing").is_clean and lab.verify("billing").messages == 25


def test_not_stuck_when_it_only_takes_long_or_nobody_is_there() -> None:
    lab = one_queue()

    def half_a_minute(messages: Any, context: Any) -> str:
        context.sleep("30s")
        return CONSUME_SUCCESS

    consumer = billing(lab, half_a_minute)
    orders(lab, 3)
    lab.run_for("20s")
    assert lab.verify("billing").is_clean
    lab.run_for("20s")
    consumer.shutdown()
    orders(lab, 2)
    lab.run_for("5m")
    assert lab.verify("billing").is_clean  # a group without members waits, it is not stuck


def test_delayed_and_transactional_messages_are_judged_in_their_own_topic() -> None:
    lab = one_queue()
    billing(lab, tags="paid")
    ids = orders(lab, 2, tags="paid", delay_time_level=2)
    orders(lab, 2, tags="new", delay_time_level=2)

    class Bank:
        def execute_local_transaction(self, message: Message, arg: Any) -> str:
            return COMMIT_MESSAGE if arg else ROLLBACK_MESSAGE

        def check_local_transaction(self, message: Message) -> str:
            return UNKNOWN

    pay = lab.transaction_producer("pay", Bank())
    for commits in (True, False):
        pay.send_message_in_transaction(Message("orders", "付款".encode(), tags="paid"), commits)
    lab.run_for("1m")
    verdict = lab.verify("billing")
    assert verdict.is_clean and verdict.messages == 5
    delivered = [row.msg_id for row in lab.deliveries("billing", absences=False)]
    assert len(delivered) == 3 and set(ids) <= set(delivered)
