"""A learner's parts plugged into one broker, for all lives of its process.

Broker(…, plug_in=BrokerPlug(parts))      the store is PartStore, handlers are those over the parts
what the parts had to keep outlives a crash here, so that the next life can be judged by it
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from mqlab.errors import StoreError, UsageError
from mqlab.lab.parts.broken import BrokenPart, anything, ask
from mqlab.lab.parts.disk import Disk
from mqlab.lab.parts.doors import StoreToRead, StoreToWrite
from mqlab.lab.parts.folder import OwnParts
from mqlab.lab.parts.groups import Committed, PartGroups
from mqlab.lab.parts.pulls import PartPulling, PartPulls
from mqlab.lab.parts.retries import LOOK_MS, PartRetries, PartSendBack, SentBack
from mqlab.lab.parts.store import PartStore
from mqlab.lab.parts.stored import StoredUnits
from mqlab.lab.parts.wire import (
    PULL,
    SEND,
    SEND_BACK,
    PartHandlers,
    WireBroker,
    WireGroups,
    WirePulls,
    WireRetries,
    message_ids,
)
from mqlab.rocketmq.broker.broadcast_offsets import BroadcastOffsets
from mqlab.rocketmq.broker.long_polling import HeldPulls
from mqlab.rocketmq.broker.plug_in import PlugIn
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.remoting.endpoint import Channel, Handler, Reply
from mqlab.rocketmq.remoting.requests import answering, text, whole_or
from mqlab.rocketmq.store.config import parse_delay_levels
from mqlab.rocketmq.store.message_store import MessageStore
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.command import RemotingCommand

SAVE_EVERY = 5  # looks


class BrokerPlug(PlugIn):
    """The plug-in of one broker."""

    def __init__(self, parts: OwnParts) -> None:
        self._parts = parts
        self._stored, self._committed, self._sent_back = StoredUnits(), Committed(), SentBack()
        self._lives: dict[str, int] = {}
        self._cuts = 0
        self._pulls: PartPulls | None = None
        self._groups: PartGroups | None = None
        self._retries: PartRetries | None = None
        self._looks = 0

    @property
    def store_kind(self) -> type[MessageStore]:
        """PartStore bound to this plug; MessageStore without a learner's store."""
        if self._parts.store is None:
            return MessageStore
        plug = self

        class OwnStore(PartStore):
            """The store of this broker."""

            memory = plug._stored

            def make(self) -> Any:
                return plug._born("store", "MyStore")

            def was_cut(self) -> bool:
                cuts = _power_cuts_of(self.files)
                cut, plug._cuts = cuts > plug._cuts, cuts
                return cut

        return OwnStore

    def _born(self, field: str, name: str) -> Any:
        """A part for the next life of the broker."""
        part = getattr(self._parts, field)
        self._lives[field] = self._lives.get(field, 0) + 1
        return part if self._lives[field] == 1 else self._parts.renew(name, part)

    def handlers(
        self, state: BrokerState, held_pulls: HeldPulls, broadcast: BroadcastOffsets, table: Mapping[int, Handler]
    ) -> Mapping[int, Handler]:
        """The handlers of this life: the broker's own, with those over the learner's parts in their place."""
        code, handlers = RequestCode, dict(table)
        self._state = state
        disk = Disk(state.ports.files, state.store.directory)
        self._pulls = self._groups = self._retries = None
        pulling = None
        if self._parts.pulls is not None:
            door = StoreToRead(state.store)
            part = ask("MyPulls", self._born("pulls", "MyPulls"), door, fits=anything, form="an object")
            self._pulls = PartPulls(part, door, state.now_ms)
            pulling = PartPulling(state, held_pulls, broadcast, self._pulls)
            handlers[code.PULL_MESSAGE] = handlers[code.LITE_PULL_MESSAGE] = answering(pulling.pull_message)
        if self._parts.groups is not None:
            part = ask("MyGroups", self._born("groups", "MyGroups"), disk, fits=anything, form="an object")
            groups = self._groups = PartGroups(part, state, self._committed)
            asked = code.GET_CONSUMER_LIST_BY_GROUP
            handlers[asked] = answering(groups.list_members(handlers[asked]))
            for asked in (code.HEART_BEAT, code.UNREGISTER_CLIENT):
                handlers[asked] = groups.hearing(handlers[asked])
        if self._parts.retries is not None:
            self._plug_retries(state, disk, handlers)
        if self._parts.handlers is not None:
            handlers |= self._wired(state, pulling)
        return handlers

    def _plug_retries(self, state: BrokerState, disk: Disk, handlers: dict[int, Handler]) -> None:
        door, delays_ms = StoreToWrite(state.store), parse_delay_levels(state.store.config.message_delay_level)
        kind = self._born("retries", "MyRetries")
        part = ask("MyRetries", kind, door, disk, list(delays_ms), fits=anything, form="an object")
        self._sent_back.new_life(_power_cuts_of(state.ports.files))
        self._retries = PartRetries(part, door, self._sent_back, delays_ms, state.now_ms)
        handlers[SEND_BACK] = answering(PartSendBack(state, self._retries).handler(handlers[SEND_BACK]))

    def _wired(self, state: BrokerState, pulling: PartPulling | None) -> dict[int, Handler]:
        """The learner's own table over the learner's own parts."""
        own = self._born("handlers", "HANDLERS")
        if pulling is None or self._pulls is None or self._groups is None or self._retries is None:
            raise UsageError("handlers need pulls, groups and retries", hint="docs/your-broker.md says what they do")
        retries, store = WireRetries(self._retries, state), StoreToWrite(state.store)
        pulls, groups = WirePulls(self._pulls), WireGroups(self._groups)
        broker = WireBroker(store, pulls, groups, retries, state.now_ms, message_ids(state))
        own_table = PartHandlers(own, broker, state, self._pulls)

        def make_topic(channel: Channel, request: RemotingCommand) -> None:
            topic = text(request, "b")
            if topic not in state.topics:
                state.topics.create_on_send(topic, text(request, "c"), whole_or(request, "d", 4) or 4, 0)

        def make_retry_topic(channel: Channel, request: RemotingCommand) -> None:
            group = text(request, "group")
            state.topics.create_on_send_back(names.retry_topic(group), 1)
            state.topics.create_on_send_back(names.dlq_topic(group), 1)

        def wanted_tags(channel: Channel, request: RemotingCommand) -> list[str]:
            return pulling.tags_of(channel, request)

        before = {SEND: make_topic, PULL: wanted_tags, SEND_BACK: make_retry_topic}
        return {code: answering(handle) for code, handle in own_table.handlers(before).items()}

    def start(self) -> None:
        """Look at what is due, every second."""
        if self._groups is not None:
            self._groups.check()
        self._arm()

    def _arm(self) -> None:
        if any((self._pulls, self._groups, self._retries)):
            self._state.ports.clock.call_later(LOOK_MS, self._look, "part.look")

    def _look(self) -> None:
        if not self._state.is_running:
            return
        self._looks += 1
        self._arm()
        if self._pulls is not None:
            self._pulls.look()
        if self._retries is not None:
            self._retries.look()
        if self._groups is not None:
            self._groups.heard()
            if self._looks % SAVE_EVERY == 0:
                self._groups.save()

    def arrived(self, topic: str, queue_id: int) -> None:
        """A message of a queue became readable."""
        if self._pulls is not None:
            self._pulls.arrived(topic, queue_id)

    def channel_closed(self, channel: Channel) -> None:
        """A connection is gone."""
        if self._groups is not None and self._state.is_running:
            self._groups.heard()

    def stop(self) -> None:
        """The broker stops."""
        if self._groups is not None:
            with contextlib.suppress(BrokenPart):
                self._groups.save()


class ServingPlug(BrokerPlug):
    """The plug-in of a broker for real clients: a part that breaks a rule fails its request, and the broker goes on."""

    def handlers(
        self, state: BrokerState, held_pulls: HeldPulls, broadcast: BroadcastOffsets, table: Mapping[int, Handler]
    ) -> Mapping[int, Handler]:
        """The handlers, each of which raises an error that is logged and answered."""
        handlers = super().handlers(state, held_pulls, broadcast, table)
        return {code: _failing(handler) for code, handler in handlers.items()}


def _power_cuts_of(files: Files) -> int:
    """How often the machine of these files has lost its power; 0 for a real one, which does not count."""
    return getattr(files, "power_cuts", 0)


def _failing(handler: Handler) -> Handler:
    def handle(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
        try:
            handler(channel, request, reply)
        except BrokenPart as failure:
            raise StoreError(str(failure), hint="repair the part, and start the broker again") from failure

    return handle
