"""Steps that the stories of several labs' cases share.

A case plays a story of its own (see mqlab.course.teach.exercises); these functions are the steps that repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS


def one_queue(lab: Lab, *topics: str) -> None:
    """Topics of one queue each, so that every place is one number."""
    for topic in topics:
        lab.create_topic(topic, read_queue_nums=1, write_queue_nums=1)


def reader(lab: Lab, group: str, topic: str, work_ms: Callable[[], int], name: str | None = None) -> Any:
    """A started consumer of a group whose listener takes some time and always succeeds."""
    consumer = lab.push_consumer(group, name=name)

    def listener(messages: Sequence[Any], context: Any) -> str:
        context.sleep(work_ms())
        return CONSUME_SUCCESS

    consumer.subscribe(topic, "*")
    consumer.on_messages(listener)
    consumer.start()
    return consumer
