"""The console's pages: what RocketMQ Dashboard shows, each part with the verb of ``lab.admin`` that answered it.

Mirrors: the pages Cluster, Topic, Consumer and Message of RocketMQ Dashboard.

    cluster              brokers with their rates, addresses, name servers, producers
    topics, topic        kinds, queues and messages; one topic's route, queues, settings, groups, newest messages
    groups, group        members and lag; one group's progress, subscriptions member by member, problems, dead letters
    messages, message    the newest ones; one message with its properties, its state in each group, its trace

A verb that fails leaves its part with the error's text, and the other parts as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.boards.console.section import PageSection, found_row, section
from mqlab.errors import MqlabError, UsageError
from mqlab.lab.views.table import Table, shown_value
from mqlab.rocketmq.admin.connections import online_members
from mqlab.rocketmq.admin.groups import groups_at
from mqlab.rocketmq.wire import names, property_names

if TYPE_CHECKING:
    from mqlab.rocketmq.admin import Admin
    from mqlab.rocketmq.wire.message import MessageExt

NEWEST = 40


def cluster(admin: Admin, _: str = "") -> list[PageSection]:
    """The brokers, their addresses, the name servers and the connected producers."""
    servers = [{"name_server": address} for address in sorted(admin.name_servers.addresses)]
    return [
        section("Brokers", "cluster_list()", admin.cluster_list, "no broker is registered"),
        section("Addresses", "examine_broker_cluster_info()", admin.examine_broker_cluster_info),
        section("Name servers", "", lambda: servers),
        section("Producers", "get_all_producer_info()", admin.get_all_producer_info, "no producer is connected"),
    ]


def topics(admin: Admin, _: str = "") -> list[PageSection]:
    """Every topic: its kind, its queues, how many messages it has and when the newest was stored."""
    verb = "fetch_all_topic_list()"
    listed = section("All topics", verb, lambda: _topic_rows(admin), choose="kind", first="NORMAL")
    return [listed]


def _topic_rows(admin: Admin) -> list[dict[str, Any]]:
    rows = []
    for name in admin.fetch_all_topic_list():
        row: dict[str, Any] = {"topic": name.topic, "kind": name.kind}
        try:
            queues = admin.examine_topic_route_info(name.topic).queue_datas
            row |= {
                "brokers": len(queues),
                "read_queues": sum(data.read_queue_nums for data in queues),
                "write_queues": sum(data.write_queue_nums for data in queues),
                "perm": ", ".join(sorted({str(data.perm) for data in queues})),
            }
            stats = admin.examine_topic_stats(name.topic)
            newest = max((stat.last_update_timestamp for stat in stats), default=0)
            stored = sum(stat.max_offset - stat.min_offset for stat in stats)
            row |= {"messages": stored, "last_timestamp": newest or None}
        except MqlabError as error:
            row["problem"] = str(error)
        rows.append(row)
    return rows


def topic(admin: Admin, name: str) -> list[PageSection]:
    """One topic: route, queues, settings at every broker, the groups that read it, its newest messages."""
    return [
        section("Route", f"examine_topic_route_info({name!r})", lambda: admin.examine_topic_route_info(name)),
        section("Queues", f"examine_topic_stats({name!r})", lambda: _without_topic(admin.examine_topic_stats(name))),
        section(
            "Groups that read it",
            f"query_topic_consume_by_who({name!r})",
            lambda: _readers(admin, name),
            "no group is online for it or has offsets of it",
        ),
        section("Settings", f"examine_topic_config({name!r}, broker)", lambda: _topic_settings(admin, name)),
        section(
            "Newest messages",
            f"query_message_by_offset({name!r}, broker, queue_id, queue_offset)",
            lambda: [found_row(message) for message in newest_messages(admin, name)],
            "no messages",
        ),
    ]


def _without_topic(rows: Any) -> list[dict[str, Any]]:
    """Rows with a queue: broker and queue id as columns of their own, as the page names the topic already."""
    queue_rows = []
    for row in rows:
        values = {field.name: getattr(row, field.name) for field in fields(row)}
        queue = values.pop("message_queue")
        queue_rows.append({"broker": queue.broker_name, "queue_id": queue.queue_id, **values})
    return queue_rows


def _readers(admin: Admin, name: str) -> list[dict[str, Any]]:
    rows = []
    for reader in admin.query_topic_consume_by_who(name):
        stats = admin.examine_consume_stats(reader, name)
        members = len(online_members(admin, reader))
        rows.append({"group": reader, "members": members, "lag": stats.total_diff, "inflight": stats.total_inflight})
    return rows


def _topic_settings(admin: Admin, name: str) -> list[dict[str, Any]]:
    rows = []
    for broker, _ in admin.brokers_of(name):
        config = admin.examine_topic_config(name, broker)
        rows += [
            {"broker": broker, "setting": field.name, "value": getattr(config, field.name)} for field in fields(config)
        ]
    return rows


def newest_messages(admin: Admin, name: str) -> list[MessageExt]:
    """The newest message of each queue of a topic, newest first, at most 40."""
    messages = []
    for stats in list(admin.examine_topic_stats(name))[:NEWEST]:
        if stats.max_offset > stats.min_offset:
            queue = stats.message_queue
            position = queue.broker_name, queue.queue_id, stats.max_offset - 1
            messages.append(admin.query_message_by_offset(name, *position))
    return sorted(messages, key=_newest_first)


def _newest_first(message: MessageExt) -> tuple[int, str]:
    return -message.store_timestamp, message.offset_msg_id


def groups(admin: Admin, _: str = "") -> list[PageSection]:
    """Every group: members, how it consumes, lag, messages pulled and not confirmed, dead letters."""
    listed = section("All groups", "query_all_groups()", lambda: _group_rows(admin), "no group")
    return [listed]


def _group_rows(admin: Admin) -> list[dict[str, Any]]:
    rows = []
    for name in admin.query_all_groups():
        row: dict[str, Any] = {"group": name}
        try:
            members = online_members(admin, name)
            stats = admin.examine_consume_stats(name)
            row |= {
                "members": len(members),
                "lag": stats.total_diff,
                "inflight": stats.total_inflight,
                "consume_tps": stats.consume_tps,
                "dead_letters": _stored(admin, names.dlq_topic(name)),
            }
        except MqlabError as error:
            row["problem"] = str(error)
        rows.append(row)
    return rows


def _stored(admin: Admin, topic_name: str) -> int:
    """The number of messages in a topic; 0 if there is no such topic."""
    if topic_name not in {listed.topic for listed in admin.fetch_all_topic_list()}:
        return 0
    return sum(stat.max_offset - stat.min_offset for stat in admin.examine_topic_stats(topic_name))


def group(admin: Admin, name: str) -> list[PageSection]:
    """One group: lag by topic, progress by queue, members, what each subscribes to, problems, letters, settings."""
    return [
        section("Lag", f"lag({name!r})", lambda: [_without_group(row) for row in admin.lag(name)], "no offsets"),
        section("Progress", f"examine_consume_stats({name!r})", lambda: admin.examine_consume_stats(name)),
        section(
            "Members",
            f"examine_consumer_connection_info({name!r})",
            lambda: admin.examine_consumer_connection_info(name),
        ),
        section(
            "Subscriptions, member by member",
            f"get_consumer_running_info({name!r}, client_id)",
            lambda: subscriptions(admin, name),
        ),
        section("Problems", f"consumer_problems({name!r})", lambda: admin.consumer_problems(name), "none found"),
        section(
            "Dead letters",
            f"query_dlq({name!r})",
            lambda: [found_row(message) for message in admin.query_dlq(name)],
            resend=name,
        ),
        section(
            "Settings", f"examine_subscription_group_config({name!r}, broker)", lambda: _group_settings(admin, name)
        ),
    ]


def _without_group(row: Any) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name != "group"}


def subscriptions(admin: Admin, name: str) -> PageSection:
    """What each online member subscribes to, as it says itself, and whether that is what the first member says."""
    rows: list[dict[str, Any]] = []
    expected: Mapping[str, tuple[str, str]] | None = None
    differ = 0
    members = admin.examine_consumer_connection_info(name).connections
    for member in members:
        wanted = admin.get_consumer_running_info(name, member.client_id).subscriptions
        own = {subscription.topic: (subscription.sub_string, subscription.expression_type) for subscription in wanted}
        expected = own if expected is None else expected
        # A topic that only the first member has differs, too.
        differ += own != expected
        for topic in sorted({*own, *expected}):
            expression, kind = own.get(topic, (None, None))
            same = own.get(topic) == expected.get(topic)
            word = "first member" if own is expected else "same" if same else "≠ differs"
            rows.append(
                {
                    "client_id": member.client_id,
                    "topic": topic,
                    "expression": expression,
                    "type": kind,
                    "compared": word,
                }
            )
    verdict = f"Consistent: all {len(members)} members subscribe to the same."
    if len(members) == 1:
        verdict = "One member: nothing to compare."
    if differ:
        verdict = f"Not consistent: {differ} of {len(members)} members differ from the first. A group must agree."
    verb = f"get_consumer_running_info({name!r}, client_id)"
    return PageSection("Subscriptions, member by member", verb, Table(rows), notes=(verdict,))


def _group_settings(admin: Admin, name: str) -> list[dict[str, Any]]:
    rows = []
    for broker, address in admin.brokers():
        # Asking for the settings of a group that a broker does not have would create it there.
        if name in groups_at(admin, address):
            config = admin.examine_subscription_group_config(name, broker)
            rows += [
                {"broker": broker, "setting": field.name, "value": getattr(config, field.name)}
                for field in fields(config)
            ]
    return rows


def messages(admin: Admin, _: str = "") -> list[PageSection]:
    """The newest message of each queue of the topics that users made, newest first."""
    verb = "query_message_by_offset(topic, broker, queue_id, queue_offset)"
    newest = section("The newest message of each queue", verb, lambda: _newest_rows(admin), "no messages")
    return [newest]


def _newest_rows(admin: Admin) -> list[dict[str, Any]]:
    topics = [listed.topic for listed in admin.fetch_all_topic_list() if listed.kind == "NORMAL"]
    messages = [message for name in topics for message in newest_messages(admin, name)]
    return [found_row(message) for message in sorted(messages, key=_newest_first)]


FACTS = (
    "msg_id",
    "offset_msg_id",
    "topic",
    "broker_name",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "store_size",
    "born_timestamp",
    "store_timestamp",
    "sys_flag",
    "flag",
    "reconsume_times",
    "prepared_transaction_offset",
)


def message(admin: Admin, offset_msg_id: str) -> list[PageSection]:
    """One message: what is stored of it, its properties, its state in each group, its trace."""
    try:
        stored = admin.view_message(offset_msg_id)
    except MqlabError as error:
        return [PageSection("What is stored", f"view_message({offset_msg_id!r})", error=str(error))]
    # A column's name says how its values are shown, so each fact becomes a text here.
    facts = [{"field": name, "value": shown_value(name, getattr(stored, name))} for name in (*FACTS, "body")]
    facts += [
        {"field": name, "value": ":".join(map(str, getattr(stored, name)))} for name in ("born_host", "store_host")
    ]
    own = [{"property": name, "value": value} for name, value in stored.properties.items()]
    traced = "nothing: a client traces with enable_trace=True, and its trace arrives up to half a second later"
    return [
        section("What is stored", f"view_message({offset_msg_id!r})", lambda: facts),
        section("Properties", "", lambda: own),
        *_origin(admin, stored),
        section(
            "In each group",
            "message_track_detail(message)",
            lambda: _track(admin, stored),
            "no group is online for its topic or has offsets of it",
        ),
        section("Trace", f"view_trace({stored.msg_id!r})", lambda: admin.view_trace(stored.msg_id), traced),
    ]


def _origin(admin: Admin, stored: MessageExt) -> list[PageSection]:
    """The message that a retry or a dead letter is a copy of; no section for a message that is not a copy."""
    origin = stored.properties.get(property_names.ORIGIN_MESSAGE_ID)
    if origin is None:
        return []
    return [section("Copy of", f"view_message({origin!r})", lambda: [found_row(admin.view_message(origin))])]


def _track(admin: Admin, stored: MessageExt) -> Any:
    """A copy is tracked through the message that it is a copy of."""
    origin = stored.properties.get(property_names.ORIGIN_MESSAGE_ID)
    return admin.message_track_detail(stored if origin is None else admin.view_message(origin))


PAGES: Mapping[str, Callable[[Admin, str], list[PageSection]]] = {
    "cluster": cluster,
    "topics": topics,
    "topic": topic,
    "groups": groups,
    "group": group,
    "messages": messages,
    "message": message,
}
OF_ONE_THING = ("topic", "group", "message")


def page_of(admin: Admin, page: str, name: str = "") -> list[PageSection]:
    """The sections of a page, asked now. UsageError for a page that does not exist or lacks the name of its thing."""
    if page not in PAGES:
        raise UsageError(f"the console has no page {page!r}", hint=f"has: {', '.join(PAGES)}")
    if page in OF_ONE_THING and not name:
        raise UsageError(f"the page {page!r} needs a name", hint=f'console.open("{page}", "…")')
    return PAGES[page](admin, name)
