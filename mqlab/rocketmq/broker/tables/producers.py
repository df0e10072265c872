"""The producers: the clients of each producer group, needed to ask one of them about an open transaction.

Mirrors: ProducerManager.

    group     channels in the order they joined      asked next
    pay       ch 3 10.0.0.7@one, ch 5 10.0.0.8@two    ch 5
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mqlab.rocketmq.broker.tables.consumers import Member
from mqlab.rocketmq.broker.tables.table import BrokerTable
from mqlab.rocketmq.remoting.endpoint import Channel

TRIES_FOR_OPEN_CHANNEL = 3  # ProducerManager.GET_AVAILABLE_CHANNEL_RETRY_COUNT


class ProducerTable(BrokerTable[str, Mapping[Channel, Member]]):
    """group -> channel -> client. Mirrors ProducerManager."""

    def __init__(self, now_ms: Callable[[], int], *, note: Callable[..., None] = lambda *_, **__: None) -> None:
        self._now_ms = now_ms
        self._note = note
        self._entries: dict[str, dict[Channel, Member]] = {}
        self._turn = 0

    def register(self, group: str, member: Member) -> None:
        """Register one producer entry of a heartbeat. Mirrors registerProducer."""
        members = self._entries.setdefault(group, {})
        current = members.get(member.channel)
        if current is None:
            members[member.channel] = member
            self._note("producer.joined", group=group, client=member.client_id)
        else:
            current.last_update_ms = self._now_ms()

    def unregister(self, group: str, channel: Channel) -> None:
        """A client leaves the group. Mirrors unregisterProducer."""
        members = self._entries.get(group, {})
        member = members.pop(channel, None)
        if member is not None:
            self._note("producer.left", group=group, client=member.client_id)
        if not members:
            self._entries.pop(group, None)

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone: its client leaves every group."""
        for group in list(self._entries):
            self.unregister(group, channel)

    def available_channel(self, group: str) -> Channel | None:
        """The open channel of the next member in turn; None if three are closed. Mirrors getAvailableChannel."""
        channels = list(self._entries.get(group, {}))
        for _ in range(min(TRIES_FOR_OPEN_CHANNEL, len(channels))):
            # The turn is shared by all groups, as in RocketMQ.
            self._turn += 1
            channel = channels[self._turn % len(channels)]
            if channel.is_open:
                return channel
        return None

    def find(self, client_id: str) -> Member | None:
        """A client's member entry in any group."""
        for members in self._entries.values():
            for member in members.values():
                if member.client_id == client_id:
                    return member
        return None

    def expire(self, timeout_ms: int) -> list[Channel]:
        """Remove clients without a heartbeat for ``timeout_ms``; returns their channels, which are to be closed."""
        now_ms = self._now_ms()
        silent = []
        for group in list(self._entries):
            for member in list(self._entries.get(group, {}).values()):
                if now_ms - member.last_update_ms > timeout_ms:
                    silent.append(member.channel)
                    self.unregister(group, member.channel)
        return silent

    def oldest_update_ms(self) -> int | None:
        """The time of the oldest last heartbeat of a client, None without clients."""
        last_heard_ms = [member.last_update_ms for members in self._entries.values() for member in members.values()]
        return min(last_heard_ms, default=None)

    def __repr__(self) -> str:
        return f"<ProducerTable: {sum(map(len, self._entries.values()))} clients of {len(self._entries)} groups>"
