"""The operator's verbs over a real cluster: what changes it asks for a second word.

    cluster.admin.consumer_progress()                                  only reads
    cluster.admin.reset_offset_by_timestamp(…, dry_run=True)           shows what would happen
    cluster.admin.delete_topic("orders")                               UsageError: say confirm=True
    cluster.admin.delete_topic("orders", confirm=True)                 does it

Left out: undoing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mqlab.errors import UsageError
from mqlab.rocketmq.admin import Admin

CHANGES = {
    "wipe_write_perm": "no producer can send to that broker any more",
    "add_write_perm": "producers send to that broker again",
    "put_kv_config": "every name server keeps the value",
    "delete_kv_config": "every name server forgets the value",
    "update_broker_config": "the broker uses the settings at once",
    "delete_expired_commit_log": "files of the log are deleted with the messages in them",
    "clean_expired_consumer_queue": "files of consume queues are deleted",
    "clean_unused_topic": "queues of topics without a configuration are deleted",
    "create_user": "a client that knows the password is let in",
    "update_user": "the user's new password, type and status count at once",
    "delete_user": "the user is no longer let in",
    "create_topic": "the brokers have the topic",
    "update_topic": "clients use the new queues and permissions after their next route poll",
    "delete_topic": "its messages cannot be read any more",
    "create_and_update_subscription_group_config": "the group has the new settings at once",
    "delete_subscription_group": "the group's settings are gone",
    "clone_group_offset": "the other group continues from there",
    "set_message_request_mode": "members of the group pop, or pull, from their next rebalance on",
    "reset_offset_by_timestamp": "messages are consumed again, or never",
    "skip_accumulated_message": "the backlog is never consumed",
    "reset_offset_of_queue": "messages of the queue are consumed again, or never",
    "consume_message_directly": "a running consumer is called with the message",
    "send_message": "consumers get the message",
    "resend_dlq": "the group gets its dead letters again",
}
"""Every verb that changes a cluster, and what follows from it."""


class GuardedAdmin(Admin):
    """lab.admin's verbs; those of CHANGES need ``confirm=True``, or ``dry_run=True`` where they have it."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return _asking(name, value) if name in CHANGES else value


def _asking(name: str, verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def asked(*args: Any, confirm: bool = False, **settings: Any) -> Any:
        if not confirm and not settings.get("dry_run"):
            arguments = ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in settings.items())])
            raise UsageError(
                f"admin.{name}({arguments}) changes the cluster: {CHANGES[name]}", hint="say confirm=True to do it"
            )
        return verb(*args, **settings)

    return asked
