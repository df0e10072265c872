"""A learner's groups in a broker: who is a member, and how far each group is, before and after a crash.

    HEART_BEAT ─▶ MyGroups.joined       a connection ends, UNREGISTER_CLIENT ─▶ MyGroups.left
    GET_CONSUMER_LIST_BY_GROUP ─▶ MyGroups.members
    a commit ─▶ MyGroups.commit         a group asks where to go on ─▶ MyGroups.committed
    every 5 s, and at the end ─▶ MyGroups.save

What the broker's own tables say is what is right; the part's answers are those that clients get.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqlab.lab.parts.broken import anything, ask, broken, is_whole
from mqlab.rocketmq.broker.state import BrokerState
from mqlab.rocketmq.remoting.endpoint import Channel, Handler, Reply
from mqlab.rocketmq.remoting.requests import text
from mqlab.rocketmq.wire import bodies
from mqlab.rocketmq.wire.command import RemotingCommand

MEMBERS_RULE = (
    "members lists each client that has joined and not left, once, in this life of the broker; every member is told "
    "the same list"
)
COMMIT_RULE = "committed is the offset of the last commit for this group and queue; -1 for one that never committed"
PASSED_RULE = "A group's offset never passes what the group has committed: messages in between would be lost to it"
SAVED_RULE = "What was saved is there in the next life: offsets begin at the last save or later"

Key = tuple[str, str, int]


@dataclass(slots=True)
class Committed:
    """What outlives a broker's process: the last commit of each queue, and the last one that was saved."""

    last: dict[Key, int] = field(default_factory=dict)
    saved: dict[Key, int] = field(default_factory=dict)


class PartGroups:
    """A learner's groups next to the broker's own tables."""

    def __init__(self, part: Any, state: BrokerState, memory: Committed) -> None:
        self._part, self._state, self._memory = part, state, memory
        self._known: dict[str, set[str]] = {}
        self._fresh: set[Key] = set()  # committed in this life
        table = state.offset_table
        self._commit, self._query = table.commit, table.query
        table.commit, table.query = self.commit, self.committed  # type: ignore[method-assign]

    def commit(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """A group is so far: into the broker's table, and to the part."""
        self._commit(group, topic, queue_id, queue_offset)
        key = (group, topic, queue_id)
        if self._query(*key) != queue_offset:  # a reset waits: the commit was ignored
            return
        ask("MyGroups.commit", self._part.commit, *key, queue_offset, fits=anything, form="nothing")
        self._memory.last[key] = queue_offset
        self._fresh.add(key)

    def committed(self, group: str, topic: str, queue_id: int) -> int:
        """Where a group goes on: what the part says, unless an operator has moved it."""
        key, table = (group, topic, queue_id), self._state.offset_table
        if table.has_reset(*key):
            return self._query(*key)
        answer = int(ask("MyGroups.committed", self._part.committed, *key, fits=is_whole, form="a whole number"))
        last, saved = self._memory.last.get(key, -1), self._memory.saved.get(key, -1)
        if key in self._fresh or last == -1:
            if answer != last:
                raise broken("MyGroups.committed", COMMIT_RULE, key, last, answer)
        elif answer > max(last, saved):  # a group may have gone back after the save
            raise broken("MyGroups.committed", PASSED_RULE, key, f"{max(last, saved)} at most", answer)
        elif answer < min(last, saved):
            raise broken("MyGroups.committed", SAVED_RULE, key, f"{min(last, saved)} or later", answer)
        if answer >= 0:
            self._commit(*key, answer)  # the broker's own table was read from its own file
        return answer

    def check(self) -> None:
        """At the start of a life: every offset is between what was saved and what was committed."""
        for key in list(self._memory.last):
            self._memory.last[key] = self.committed(*key)

    def heard(self) -> None:
        """After a heartbeat, an UNREGISTER_CLIENT or a closed channel: the part learns who is there and who is not."""
        for group in [*self._known, *(name for name, _ in self._state.consumers.items() if name not in self._known)]:
            now = self._right(group)
            for member in sorted(now):
                ask("MyGroups.joined", self._part.joined, group, member, fits=anything, form="nothing")
            for member in sorted(self._known.get(group, set()) - now):
                ask("MyGroups.left", self._part.left, group, member, fits=anything, form="nothing")
            self._known[group] = now

    def members(self, group: str) -> list[str]:
        """The members of a group, as the part lists them."""
        answer = ask("MyGroups.members", self._part.members, group, fits=_are_names, form="a list of client ids")
        if sorted(answer) != sorted(self._right(group)):
            raise broken("MyGroups.members", MEMBERS_RULE, (group,), sorted(self._right(group)), answer)
        return list(answer)

    def _right(self, group: str) -> set[str]:
        entry = self._state.consumers.get(group)
        return set() if entry is None else set(entry.client_ids)

    def save(self) -> None:
        """Let the part write what must outlive the process."""
        ask("MyGroups.save", self._part.save, fits=anything, form="nothing")
        self._memory.saved = dict(self._memory.last)

    def list_members(self, otherwise: Handler) -> Handler:
        """The handler of GET_CONSUMER_LIST_BY_GROUP; ``otherwise`` answers for a group without members."""

        def handle(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
            group = text(request, "consumerGroup")
            if self._state.consumers.get(group) is None:
                otherwise(channel, request, reply)
            else:
                reply(request.reply(body=bodies.consumer_ids_to_json(self.members(group))))

        return handle

    def hearing(self, handler: Handler) -> Handler:
        """A handler after which the part learns who is there."""

        def handle(channel: Channel, request: RemotingCommand, reply: Reply) -> None:
            handler(channel, request, reply)
            self.heard()

        return handle


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
