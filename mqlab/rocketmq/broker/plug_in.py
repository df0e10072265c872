"""What may take the place of a broker's store and of its handlers. mqlab.lab.parts plugs in a learner's parts.

Mirrors: the message store plug-ins of MessageStoreFactory, and registerProcessor.

    Broker(…, plug_in=one) ─▶ one.settings ─▶ one.store ─▶ one.handlers ─▶ one.start … one.arrived … one.stop
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.rocketmq.broker.broadcast_offsets import BroadcastOffsets
from mqlab.rocketmq.broker.long_polling import HeldPulls
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Handler
from mqlab.rocketmq.store.message_store import MessageStore


class PlugIn:
    """One broker's plug-in, across all lives of its process. This one leaves everything as it is."""

    @property
    def store_kind(self) -> type[MessageStore]:
        """The class of the store; made as MessageStore is."""
        return MessageStore

    def handlers(
        self, state: BrokerState, held_pulls: HeldPulls, broadcast: BroadcastOffsets, table: Mapping[int, Handler]
    ) -> Mapping[int, Handler]:
        """The handlers by request code, where ``table`` has the broker's own."""
        return table

    def start(self) -> None:
        """The broker has started: timers may be armed."""

    def arrived(self, topic: str, queue_id: int) -> None:
        """A message of a queue became readable."""

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone, and its clients with it."""

    def stop(self) -> None:
        """The broker stops: what is in memory goes to its file."""


NOTHING_PLUGGED_IN = PlugIn()
