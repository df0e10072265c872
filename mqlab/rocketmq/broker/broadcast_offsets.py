"""How far the slowest member of a broadcasting group has pulled, committed every 5 s for clients that move to a proxy.

Mirrors: BroadcastOffsetManager; entries ``topic@group@broadcast`` of the consumer offset table.

    topic, group         client        queue -> last pull
    tags, g-broadcast    ip@DEFAULT    {0: 15, 1: 12}         the smallest offset of each queue is committed

RocketMQ commits every 5 s. Here the next tick is armed only when a position has changed, or when a client that has left
stops to count.

Left out: the starting positions that a proxy asks for; a direct client reads its own file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.broker.tables.consumers import CONSUME_PASSIVELY
from mqlab.rocketmq.broker.tables.offsets import BROADCAST_SUFFIX
from mqlab.rocketmq.ports import Deadline, next_on_grid
from mqlab.rocketmq.remoting.endpoint import Channel

COMMIT_PERIOD_MS = 5_000


@dataclass(slots=True)
class PulledPositions:
    """The last pull offset of one client on each queue of a topic, and when the newest of them came."""

    queues: dict[int, int] = field(default_factory=dict)
    updated_ms: int = 0


class BroadcastOffsets:
    """The positions of broadcasting clients; the smallest of each queue is committed."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._started_ms = state.now_ms()
        self._positions: dict[tuple[str, str], dict[str, PulledPositions]] = {}
        self._deadline: Deadline | None = None

    def pulled(self, group: str, topic: str, queue_id: int, queue_offset: int, channel: Channel) -> None:
        """Remember a client's pull; positions only grow. Mirrors updateBroadcastPulledOffset."""
        if not self._state.config.enable_broadcast_offset_store:
            return
        members = self._state.consumers.get(group)
        if members is None or not members.is_broadcasting or members.consume_type != CONSUME_PASSIVELY:
            return
        # Positions are kept per client id, so that a new connection of a client goes on with them.
        member = members.members.get(channel)
        if member is None:
            return
        clients = self._positions.setdefault((topic, group), {})
        positions = clients.setdefault(member.client_id, PulledPositions())
        positions.updated_ms = self._state.now_ms()
        if queue_offset > positions.queues.get(queue_id, -1):
            positions.queues[queue_id] = queue_offset
            self._arm()

    def stop(self) -> None:
        """Commit nothing more."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _arm(self, due_ms: int = 0) -> None:
        if self._deadline is None:
            due_ms = next_on_grid(max(due_ms, self._state.now_ms() + 1), COMMIT_PERIOD_MS, self._started_ms)
            self._deadline = self._state.ports.clock.call_at(due_ms, self._commit_smallest, "offset.broadcast")

    def _commit_smallest(self) -> None:
        """Commit the smallest position of each queue and forget clients that left long ago. Mirrors scanOffsetData."""
        self._deadline = None
        config = self._state.config
        now_ms = self._state.now_ms()
        ends_ms: list[int] = []  # when clients that have left stop to count
        for (topic, group), clients in list(self._positions.items()):
            members = self._state.consumers.get(group)
            smallest: dict[int, int] = {}
            # 1. A client counts while it is connected, and for some time after it has left.
            for client_id, positions in list(clients.items()):
                online = members is not None and members.member(client_id) is not None
                silent_ms = now_ms - positions.updated_ms
                if online or silent_ms < config.broadcast_offset_expire_second * 1_000:
                    for queue_id, queue_offset in positions.queues.items():
                        smallest[queue_id] = min(smallest.get(queue_id, queue_offset), queue_offset)
                # 2. It is forgotten later than it stops to count, so that a short absence loses nothing.
                limit_s = config.broadcast_offset_expire_max_second if online else config.broadcast_offset_expire_second
                if silent_ms >= limit_s * 1_000:
                    del clients[client_id]
                elif not online:
                    ends_ms.append(positions.updated_ms + limit_s * 1_000)
            if not clients:
                del self._positions[topic, group]
            # 3. The slowest client decides.
            for queue_id, queue_offset in smallest.items():
                self._state.offset_table.commit(group + BROADCAST_SUFFIX, topic, queue_id, queue_offset)
        if ends_ms:
            self._arm(min(ends_ms))

    def __repr__(self) -> str:
        return f"<BroadcastOffsets: {len(self._positions)} of topic and group>"
