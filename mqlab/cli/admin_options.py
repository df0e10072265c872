"""The options of `mqlab admin`, with the letters and names that mqadmin has for them.

Mirrors: the buildCommandlineOptions of mqadmin's SubCommands.

    OPTIONS["topic"]     -t orders, required
    OPTIONS["any_…"]     the same, and without it nothing is narrowed or changed

A verb takes mqadmin's letters and long names; an older long name of mqlab's own is there as well. A broker is given by
its name or by its address. Left out: mqadmin's -c, the name of a cluster: without -b a verb means all brokers of the
name server; and what tests/cli/test_mqadmin_options.py lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mqlab.durations import moment_ms

END_MS = (1 << 63) - 1
USER_TYPES = click.Choice(["Super", "Normal"], case_sensitive=False)
GROUP = ("-g", "--group", "--groupName", "group")
BROKER = ("-b", "--broker", "--brokerAddr", "--brokerName", "broker")
A_TIME = "ms since the epoch or UTC as 2026-01-31#23:59:59:999"


def _as_ms(ctx: click.Context, param: click.Parameter, value: str) -> int:
    return moment_ms(value)


OPTIONS: dict[str, Callable[[Any], Any]] = {
    "topic": click.option("-t", "--topic", "--topicName", "topic", required=True, help="The topic."),
    "topic_too": click.option(
        "-t", "--topic", expose_value=False, help="Not needed, but mqadmin asks for it: the id names one message."
    ),
    "any_topic": click.option("-t", "--topic", help="Only this topic."),
    "group": click.option(*GROUP, required=True, help="The consumer group."),
    "any_group": click.option(*GROUP, help="Only this group."),
    "key": click.option("-k", "--msgKey", "--key", "key", required=True, help="A key of the message."),
    "id": click.option("-i", "--msgId", "--id", "msg_id", required=True, help="The message's id."),
    "broker": click.option(*BROKER, default="broker-a", show_default=True, help="The broker's name, or its HOST:PORT."),
    "queue": click.option("-i", "--queueId", "-q", "--queue", "queue_id", type=int, required=True, help="The queue."),
    "offset": click.option("-o", "--offset", "queue_offset", type=int, required=True, help="The queue offset."),
    "from": click.option(
        "-b",
        "--beginTimestamp",
        "--from",
        "begin_ms",
        callback=_as_ms,
        default="0",
        help=f"Only messages stored at this time or later: {A_TIME}.",
    ),
    "to": click.option(
        "-e",
        "--endTimestamp",
        "--to",
        "end_ms",
        callback=_as_ms,
        default=str(END_MS),
        help=f"Only messages stored at this time or earlier: {A_TIME}.",
    ),
    "any_broker": click.option(*BROKER, help="Only at this broker: its name, or its HOST:PORT."),
    "read": click.option("-r", "--readQueueNums", "read_queue_nums", type=int, default=8, show_default=True),
    "write": click.option("-w", "--writeQueueNums", "write_queue_nums", type=int, default=8, show_default=True),
    "perm": click.option(
        "-p", "--perm", type=click.IntRange(0, 7), default=6, show_default=True, help="4 reads, 2 writes."
    ),
    "from_group": click.option(
        "-s", "--srcGroup", "-g", "--group", "group", required=True, help="The group whose offsets are taken."
    ),
    "to_group": click.option("-d", "--destGroup", "to_group", required=True, help="The group that gets the offsets."),
    "mode": click.option(
        "-m", "--mode", type=click.Choice(["PULL", "POP"]), required=True, help="How it gets messages."
    ),
    "share": click.option(
        "-q",
        "--popShareQueueNum",
        "pop_share_queue_num",
        type=int,
        default=-1,
        show_default=True,
        help="With how many members each member shares its queues; -1: with all.",
    ),
    "user": click.option("-u", "--username", required=True, help="The user's name."),
    "password": click.option("-p", "--password", prompt=True, hide_input=True, help="Asked for when it is not given."),
    "any_password": click.option("-p", "--password", help="The new password."),
    "type": click.option("-t", "--userType", "user_type", type=USER_TYPES, default="Normal", show_default=True),
    "any_type": click.option("-t", "--userType", "user_type", type=USER_TYPES, help="The new type."),
    "any_status": click.option(
        "-s", "--userStatus", "user_status", type=click.Choice(["enable", "disable"]), help="The new status."
    ),
    "filter": click.option("-f", "--filter", default="", help="Only users whose names contain this."),
    "time": click.option("-s", "--timestamp", required=True, help=f"now, -1 for the end, or {A_TIME}."),
}

YES = click.option("--yes", is_flag=True, help="Change the cluster without asking.")
