"""mqlab: Apache RocketMQ in plain Python that can be stopped, stepped, replayed and broken.

    from mqlab import Lab, Message, MessageQueue, play, CONSUME_SUCCESS, RECONSUME_LATER

The names below are what a notebook needs; each is imported when first used, so that ``import mqlab`` costs nothing.
Left out: everything that a notebook imports from another wing (mqlab.rocketmq.store, mqlab.course.teach,
mqlab.data.spark, …).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.lazy_names import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mqlab.cluster.connected import connect
    from mqlab.lab.world.crashes import every_crash
    from mqlab.lab.world.lab import Lab, play
    from mqlab.rocketmq.client.statuses import (
        COMMIT,
        COMMIT_MESSAGE,
        CONSUME_SUCCESS,
        RECONSUME_LATER,
        ROLLBACK,
        ROLLBACK_MESSAGE,
        SUCCESS,
        SUSPEND_CURRENT_QUEUE_A_MOMENT,
        UNKNOW,
        UNKNOWN,
    )
    from mqlab.rocketmq.wire.message import Message, MessageExt, MessageQueue

__all__ = [
    "COMMIT",
    "COMMIT_MESSAGE",
    "CONSUME_SUCCESS",
    "RECONSUME_LATER",
    "ROLLBACK",
    "ROLLBACK_MESSAGE",
    "SUCCESS",
    "SUSPEND_CURRENT_QUEUE_A_MOMENT",
    "UNKNOW",
    "UNKNOWN",
    "Lab",
    "Message",
    "MessageExt",
    "MessageQueue",
    "connect",
    "every_crash",
    "play",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "rocketmq.client.statuses": (
            "COMMIT",
            "COMMIT_MESSAGE",
            "CONSUME_SUCCESS",
            "RECONSUME_LATER",
            "ROLLBACK",
            "ROLLBACK_MESSAGE",
            "SUCCESS",
            "SUSPEND_CURRENT_QUEUE_A_MOMENT",
            "UNKNOW",
            "UNKNOWN",
        ),
        "cluster.connected": ("connect",),
        "lab.world.crashes": ("every_crash",),
        "lab.world.lab": ("Lab", "play"),
        "rocketmq.wire.message": ("Message", "MessageExt", "MessageQueue"),
    },
)
