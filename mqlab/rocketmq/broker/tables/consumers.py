"""The consumers: the members of each group that are connected now, and the subscriptions of the group.

Mirrors: ConsumerManager and ConsumerGroupInfo.

    group      channels (members)                   subscriptions: topic -> expression, subVersion
    billing    ch 7  10.0.0.5@one   heard 12:00:30   orders            paid || shipped   1795…446
               ch 9  10.0.0.6@two   heard 12:00:29   %RETRY%billing    *                 1795…301

    There is one subscription per group and topic: the highest subVersion counts, a lower or equal one is ignored.
    Topics that a heartbeat does not name are removed: it carries all subscriptions of the member, or says that it
    carries none of them (V2).

Left out: the proxy's members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.remoting.endpoint import Channel
from mqlab.rocketmq.signals import Signal
from mqlab.rocketmq.wire.bodies import SubscriptionData

BROADCASTING = "BROADCASTING"
CONSUME_ACTIVELY, CONSUME_PASSIVELY = "CONSUME_ACTIVELY", "CONSUME_PASSIVELY"


@dataclass(slots=True, eq=False)
class Member:
    """One client on one channel, as in its last heartbeat. Mirrors ClientChannelInfo."""

    channel: Channel
    client_id: str
    language: str
    version: int
    last_update_ms: int


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """The members and subscriptions of one group on this broker. Mirrors ConsumerGroupInfo."""

    name: str
    consume_type: str
    message_model: str
    consume_from_where: str
    members: dict[Channel, Member] = field(default_factory=dict)
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)

    @property
    def client_ids(self) -> list[str]:
        """The client ids of all members; an id that is there twice has two connections."""
        return [member.client_id for member in self.members.values()]

    @property
    def is_broadcasting(self) -> bool:
        """True when every member consumes everything."""
        return self.message_model == BROADCASTING

    def member(self, client_id: str) -> Member | None:
        """The first member with this client id."""
        return next((member for member in self.members.values() if member.client_id == client_id), None)

    def update_subscriptions(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Use the subscriptions of one member; True if a topic was added or removed (an expression does not count)."""
        changed = False
        by_topic: dict[str, SubscriptionData] = {}
        for fresh in subscriptions:
            by_topic[fresh.topic] = fresh
            current = self.subscriptions.get(fresh.topic)
            if current is None:
                self.subscriptions[fresh.topic] = fresh
                changed = True
            elif fresh.sub_version > current.sub_version:
                self.subscriptions[fresh.topic] = fresh
        # A heartbeat has all topics of its member: what is missing is no longer subscribed.
        for topic in [topic for topic in self.subscriptions if topic not in by_topic]:
            del self.subscriptions[topic]
            changed = True
        return changed


class ConsumerTable(BrokerTable[str, ConsumerGroup]):
    """group -> members and subscriptions. Mirrors ConsumerManager.

    ``members_changed(group)`` asks for a notice to all members; ``registered(group name, subscriptions)`` follows
    every heartbeat; ``removed(group name)`` follows when the last member has left.
    """

    def __init__(
        self,
        now_ms: Callable[[], int],
        *,
        note: Callable[..., None] = lambda *_, **__: None,
    ) -> None:
        self._now_ms = now_ms
        self.members_changed: Signal[[ConsumerGroup]] = Signal()
        self.registered: Signal[[str, list[SubscriptionData]]] = Signal()
        self.removed: Signal[[str]] = Signal()
        self._note = note
        self._entries: dict[str, ConsumerGroup] = {}

    def register(
        self,
        name: str,
        member: Member,
        *,
        consume_type: str,
        message_model: str,
        consume_from_where: str,
        subscriptions: list[SubscriptionData] | None,
        notify: bool = True,
    ) -> bool:
        """Register one entry of a heartbeat; True if the members or the topics of the group have changed.

        Type, model and starting point are those of the last heartbeat. ``subscriptions`` None: those of the group stay.
        Mirrors registerConsumer and registerConsumerWithoutSub.
        """
        group = self._entries.get(name)
        if group is None:
            group = self._entries[name] = ConsumerGroup(name, consume_type, message_model, consume_from_where)
        group.consume_type, group.message_model = consume_type, message_model
        group.consume_from_where = consume_from_where
        # 1. The member itself, then the subscriptions that it shares with its group.
        joined = self._joined(group, member)
        before = list(group.subscriptions.values())
        topics_changed = subscriptions is not None and group.update_subscriptions(subscriptions)
        if list(group.subscriptions.values()) != before:
            self._note("subscription.changed", group=name, subscriptions=_expressions(group), client=member.client_id)
        # 2. A notice makes the members rebalance; broadcasting members consume every queue anyway.
        if (joined or topics_changed) and notify and not group.is_broadcasting:
            self.members_changed(group)
        if subscriptions is not None:
            self.registered(name, subscriptions)
        return joined or topics_changed

    def unregister(self, name: str, channel: Channel, *, notify: bool = True) -> None:
        """A client leaves the group; the members get a notice even if it was not one of them.

        Mirrors unregisterConsumer.
        """
        group = self._entries.get(name)
        if group is None:
            return
        self._left(group, channel, "unregistered")
        if notify and not group.is_broadcasting:
            self.members_changed(group)

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone: its member leaves every group. Mirrors doChannelCloseEvent."""
        for group in list(self._entries.values()):
            if self._left(group, channel, "channel closed") and not group.is_broadcasting:
                self.members_changed(group)

    def expire(self, timeout_ms: int) -> list[Channel]:
        """Remove members without a heartbeat for ``timeout_ms``; returns their channels, which are to be closed.

        No member is notified, as in RocketMQ. Mirrors scanNotActiveChannel.
        """
        silent = []
        now_ms = self._now_ms()
        for group in list(self._entries.values()):
            for member in [member for member in group.members.values() if now_ms - member.last_update_ms > timeout_ms]:
                silent.append(member.channel)
                self._left(group, member.channel, "expired")
        return silent

    def oldest_update_ms(self) -> int | None:
        """The time of the oldest last heartbeat of a member, None without members."""
        last_heard_ms = [member.last_update_ms for group in self._entries.values() for member in group.members.values()]
        return min(last_heard_ms, default=None)

    def groups_subscribing(self, topic: str) -> list[str]:
        """The groups that have members now and subscribe to the topic. Mirrors queryTopicConsumeByWho."""
        return [group.name for group in self._entries.values() if topic in group.subscriptions]

    def _joined(self, group: ConsumerGroup, member: Member) -> bool:
        current = group.members.get(member.channel)
        if current is None:
            group.members[member.channel] = member
            self._note("member.joined", group=group.name, client=member.client_id, members=len(group.members))
        else:
            current.client_id = member.client_id
            current.last_update_ms = self._now_ms()
        return current is None

    def _left(self, group: ConsumerGroup, channel: Channel, why: str) -> bool:
        member = group.members.pop(channel, None)
        if member is None:
            return False
        self._note("member.left", group=group.name, client=member.client_id, why=why, members=len(group.members))
        if not group.members:
            del self._entries[group.name]
            self.removed(group.name)
        return True

    def __repr__(self) -> str:
        members = sum(len(group.members) for group in self._entries.values())
        return f"<ConsumerTable: {members} members of {len(self._entries)} groups>"


def _expressions(group: ConsumerGroup) -> dict[str, str]:
    return {topic: subscription.sub_string for topic, subscription in group.subscriptions.items()}
