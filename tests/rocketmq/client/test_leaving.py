"""A member that leaves has no queue afterwards, at whatever moment it leaves."""

from __future__ import annotations

import pytest

from mqlab import CONSUME_SUCCESS, SUCCESS, Lab


@pytest.mark.parametrize("orderly", [False, True])
def test_a_member_that_leaves_during_a_round_takes_no_queue_after_it(orderly: bool) -> None:
    """A round asks brokers for each new queue, so it goes on while the brokers are told that the member has left."""
    lab = Lab(seed=3, brokers=2, client={"enable_trace": False})
    lab.create_topic("orders")
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    if orderly:
        consumer.on_messages_orderly(lambda messages, context: SUCCESS)
    else:
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    lab.run_until(lambda: len(consumer.state.process_queues) >= 2, limit="1m")
    consumer.shutdown()
    left_at = lab.journal.next_step
    lab.run_for("1m")
    assert not consumer.state.process_queues
    pulls = [r for r in lab.journal if r.step > left_at and r.node == "broker-a" and "PULL_MESSAGE" in str(r)]
    assert pulls == []
