"""Two consumers and their tags, played in a Lab: where each message is dropped, and by whose filter.

Lab 06 changes the settings with the tag-trap board (mqlab.course.widgets.boards.tag_trap.board).

    TagTrapSettings     expressions, tags sent, who subscribes last, whose clock is ahead, setting, one or two groups
    play_tags           the story in the simulation ─▶ TagTrapRun: lanes, members, heartbeats, lag

Nothing is computed from a rule: lanes are read from pulls and deliveries of the run, versions from the broker's table.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.errors import UsageError
from mqlab.lab.views.pulls import Pull, pulls
from mqlab.lab.world.lab import play
from mqlab.rocketmq.filter import tags
from mqlab.rocketmq.wire.bodies import HeartbeatData
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.parts import OwnParts
    from mqlab.lab.world.lab import Lab

TOPIC, QUEUES, AHEAD = "orders", 4, "1m"
MEMBERS = ("billing", "shipping")
SHARED_GROUP = "order-service"
NOBODY = "nobody"
MOST_TAGS = 6
# No trace: its messages would be in the way. A route is asked for once.
CALM_CLIENT = {"enable_trace": False, "poll_name_server_interval": "10m"}


@dataclass(frozen=True, slots=True)
class TagTrapSettings:
    """What the learner may change. Raises UsageError or FilterError for values that no consumer accepts.

    ``billing`` and ``shipping`` are the tag expressions of the two members, ``sent`` the tags of the orders (empty:
    those that the expressions name). ``last`` subscribes once more after both have joined, which gives it the newest
    version. Without it the version is that of the last rebalance: here the first member's, because the broker tells it
    of the second one. With RocketMQ it is a race; it was so in three of four joins with 5.3.3. ``ahead`` has a clock
    that is a minute ahead. ``groups`` is 1 (both in one) or 2 (one for each).
    """

    billing: str = "paid"
    shipping: str = "shipped"
    sent: tuple[str, ...] = ()
    last: str = NOBODY
    ahead: str = NOBODY
    post_subscription_when_pull: bool = False
    groups: int = 1

    def __post_init__(self) -> None:
        for name in ("last", "ahead"):
            if getattr(self, name) not in (NOBODY, *MEMBERS):
                raise UsageError(f"{name} is a member or nobody, got {getattr(self, name)!r}", hint="billing, shipping")
        for name in MEMBERS:
            if not isinstance(getattr(self, name), str):
                raise UsageError(f"{name} must be a tag expression, got {getattr(self, name)!r}", hint='"paid || new"')
            tags.parse(getattr(self, name))
        if isinstance(self.groups, bool) or self.groups not in (1, 2):
            raise UsageError(f"groups is 1 or 2, got {self.groups!r}")
        if not isinstance(self.post_subscription_when_pull, bool):
            raise UsageError(f"post_subscription_when_pull is True or False, got {self.post_subscription_when_pull!r}")
        if not all(isinstance(tag, str) and tag.strip() for tag in self.sent):
            raise UsageError(f"sent is a list of tags, got {self.sent!r}", hint='sent=("paid", "shipped")')
        if len(self.tags_sent) > MOST_TAGS:
            raise UsageError(f"at most {MOST_TAGS} tags are sent, got {len(self.tags_sent)}")

    @property
    def tags_sent(self) -> tuple[str, ...]:
        """The tags of the orders: each queue gets one order of each."""
        named = [tag for name in MEMBERS for tag in tags.parse(getattr(self, name)).tags_set]
        return tuple(dict.fromkeys(self.sent or named)) or ("paid", "shipped")

    def group_of(self, member: str) -> str:
        """The group in which a member consumes."""
        return SHARED_GROUP if self.groups == 1 else member

    def as_json(self) -> dict[str, Any]:
        """The settings by name, as JSON has them."""
        return {**asdict(self), "sent": list(self.sent)}


@dataclass(frozen=True, slots=True)
class TagTrapRun:
    """What happened. Times are ms since the Lab began; ``lag`` is what monitoring shows at the end.

    ``lanes``: one per message and group: message, tag, code (in the queue entry), queue, offset, group, member (who
    pulled it), filter (the broker's), whose (a member, or "the request"), broker and client (True: let it through;
    None: did not see it), received, moved_ms (how long after storing the group's offset was past it; None: it is not).
    ``members``: member, group, expression, version_ms (its own), queues, received. ``kept``: group -> whose, expression
    and version_ms in the broker's table. ``heartbeats``: at_ms, member, version_ms, kept (the owner afterwards).
    """

    settings: TagTrapSettings
    lanes: tuple[dict[str, Any], ...]
    members: tuple[dict[str, Any], ...]
    kept: dict[str, dict[str, Any]]
    heartbeats: tuple[dict[str, Any], ...]
    lag: int


@dataclass(slots=True)
class _Seen:
    """What the story notes on its way: consumers, the broker's table at each change, when sending began."""

    consumers: dict[str, Any] = field(default_factory=dict)
    tables: list[tuple[int, str, str, int]] = field(default_factory=list)  # step, group, expression, version
    sending_step: int = 0


@functools.lru_cache(maxsize=256)
def play_tags(settings: TagTrapSettings) -> TagTrapRun:
    """Play the story with these settings; the same settings are played once."""
    return play_tags_on(None, settings)


def play_tags_on(parts: OwnParts | None, settings: TagTrapSettings) -> TagTrapRun:
    """Plays the story on a learner's parts, such as MyPulls in the broker. Raises BrokenPart for one that is wrong."""
    seen = _Seen()
    story = functools.partial(_two_services, settings=settings, seen=seen)
    lab = play(story, seed=7, client=CALM_CLIENT, parts=parts)
    return _what_happened(lab, settings, seen)


def _two_services(lab: Lab, settings: TagTrapSettings, seen: _Seen) -> None:
    """Both services join, one after the other; then every queue gets an order of each tag."""
    # 1. Every change of the broker's table of subscriptions is read where it happens.
    lab.create_topic(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)

    def look(record: Any, change: Any) -> None:
        if change.kind == "subscription.changed":
            subscription = lab.broker().consumers[change.values["group"]].subscriptions.get(TOPIC)
            if subscription is not None:
                version_ms = subscription.sub_version - lab.began_ms
                seen.tables.append((record.step, change.values["group"], subscription.sub_string, version_ms))

    lab.world.watchers.append(look)

    # 2. Each service takes everything that reaches its listener.
    for name in MEMBERS:
        post = settings.post_subscription_when_pull
        consumer = lab.push_consumer(settings.group_of(name), name=name, post_subscription_when_pull=post)
        if settings.ahead == name:
            lab.skew_clock(name, AHEAD)
        consumer.subscribe(TOPIC, getattr(settings, name))
        consumer.on_messages(lambda messages, context: "CONSUME_SUCCESS")
        seen.consumers[name] = consumer
        consumer.start()
        lab.run_for("1s")
    lab.run_for("25s")  # pulls that the first member holds on queues it has lost are over by then

    # 3. One of them may subscribe once more, to the same tags: that is a new version.
    if settings.last != NOBODY:
        seen.consumers[settings.last].subscribe(TOPIC, getattr(settings, settings.last))
        lab.run_for("1s")

    # 4. The orders; then the slowest way on for an offset: a hold of 20 s and a commit of 5 s.
    seen.sending_step = lab.journal.next_step
    shop = lab.producer("shop")
    for queue in sorted(shop.fetch_publish_message_queues(TOPIC)):
        for tag in settings.tags_sent:
            shop.send(Message(TOPIC, b"a book", tags=tag, keys=f"{tag}-{queue.queue_id}"), queue)
    shop.shutdown()
    lab.run_for("30s")
    lab.world.watchers.remove(look)


def _what_happened(lab: Lab, settings: TagTrapSettings, seen: _Seen) -> TagTrapRun:
    groups = list(dict.fromkeys(settings.group_of(name) for name in MEMBERS))
    members = []
    for name in MEMBERS:
        consumer = seen.consumers[name]
        queues = sorted(queue.queue_id for queue in consumer.process_queues if queue.topic == TOPIC)
        version_ms = consumer.state.subscriptions[TOPIC].sub_version - lab.began_ms
        members.append(
            {
                "member": name,
                "group": settings.group_of(name),
                "expression": getattr(settings, name),
                "version_ms": version_ms,
                "queues": queues,
            }
        )
    kept: dict[str, dict[str, Any]] = {}
    for group in groups:
        _, _, expression, version_ms = [table for table in seen.tables if table[1] == group][-1]
        kept[group] = {"whose": _owner(members, group, version_ms), "expression": expression, "version_ms": version_ms}
    lanes = [lane for group in groups for lane in _lanes(lab, group, kept[group]["whose"], settings)]
    for member in members:
        member["received"] = sum(lane["received"] for lane in lanes if lane["member"] == member["member"])
    lag = sum(row.lag for group in groups for row in lab.progress(group))
    heartbeats = _heartbeats(lab, seen, members)
    return TagTrapRun(settings, tuple(lanes), tuple(members), kept, tuple(heartbeats), lag)


def _owner(members: list[dict[str, Any]], group: str, version_ms: int) -> str:
    """The member of a group whose subscription has this version."""
    return next(
        (member["member"] for member in members if member["group"] == group and member["version_ms"] == version_ms),
        NOBODY,
    )


def _lanes(lab: Lab, group: str, owner: str, settings: TagTrapSettings) -> list[dict[str, Any]]:
    """One row per stored order: the pull that passed its entry, and what became of it there."""
    # 1. What the group did: pulls that came to an end, deliveries, commits.
    passed: dict[tuple[int, int], Pull] = {}
    for passing in pulls(lab.journal, group):
        for offset in range(passing.from_offset, passing.next_offset or 0):
            passed.setdefault((passing.queue_id, offset), passing)
    received = {
        (row.message_queue.queue_id, row.queue_offset)
        for row in lab.deliveries(group, absences=False)
        if row.started_ms is not None and row.status == "CONSUME_SUCCESS"
    }
    commits = [
        (record.now_ms, values)
        for record, values in lab.journal.changes("offset.committed")
        if values["group"] == group and values["topic"] == TOPIC
    ]

    # 2. What is stored: the entry holds the hash code of the tag, the unit the tag itself.
    lanes = []
    store = lab.broker().store
    for queue in range(QUEUES):
        for offset in range(store.max_offset(TOPIC, queue)):
            unit = store.consume_queue_unit(TOPIC, queue, offset)
            record = store.message_at(unit.physical_offset)
            pull = passed.get((queue, offset))
            by_request = pull is not None and settings.post_subscription_when_pull
            broker = None if pull is None else offset in pull.found
            moved = [
                at_ms for at_ms, values in commits if values["queue_id"] == queue and values["queue_offset"] > offset
            ]
            lanes.append(
                {
                    "message": record.property_map["KEYS"],
                    "tag": record.property_map["TAGS"],
                    "code": unit.tags_code,
                    "queue": queue,
                    "offset": offset,
                    "group": group,
                    "member": "" if pull is None else pull.client,
                    "filter": pull and pull.filter_text,
                    "whose": pull.client if pull is not None and by_request else owner,
                    "broker": broker,
                    "client": offset in pull.kept if pull is not None and broker else None,
                    "received": (queue, offset) in received,
                    "moved_ms": moved[0] - record.store_timestamp if moved else None,
                }
            )
    return lanes


def _heartbeats(lab: Lab, seen: _Seen, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The heartbeats of the members before the orders were sent, and whose subscription the broker had afterwards."""
    versions = {}  # version -> member, also of versions that a later one has replaced
    rows = []
    for record in lab.journal:
        if record.step >= seen.sending_step:
            break
        if record.about is None or record.about.code != RequestCode.HEART_BEAT or record.about.flag & 1:
            continue
        beat = HeartbeatData.from_json(record.about.body)
        member = beat.client_id.rsplit("@", 1)[-1]
        for consumer in beat.consumer_data_set:
            for subscription in consumer.subscription_data_set:
                if subscription.topic == TOPIC:
                    version_ms = subscription.sub_version - lab.began_ms
                    versions[consumer.group_name, version_ms] = member
                    table = [row for row in seen.tables if row[0] <= record.step and row[1] == consumer.group_name]
                    rows.append(
                        {
                            "at_ms": record.now_ms - lab.began_ms,
                            "member": member,
                            "group": consumer.group_name,
                            "version_ms": version_ms,
                            "kept": versions[consumer.group_name, table[-1][3]],
                        }
                    )
    return rows
