"""Which queues this member owns: asks who else is there, lets the strategy divide, drops and adds the difference.

Mirrors: RebalanceImpl.

    for each subscribed topic
        queues  known readable queues                    from the route
        members asked of one random broker (38)          brokers may know different members for a moment
        target  strategy(group, me, sorted, sorted)      each member computes alone
        drop    owned but not in target, or not pulled for 120 s
        add     in target but not owned: (orderly: lock it) remove its offset, find the first offset, start pulling

What happens to a queue that comes or goes is the consumer's part (QueueKeeper).

With client_rebalance=false the broker divides instead (broker_rebalance).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mqlab.errors import MqlabError
from mqlab.rocketmq.client.allocate import AllocateStrategy
from mqlab.rocketmq.client.consuming.broker_rebalance import BrokerRebalance
from mqlab.rocketmq.client.consuming.member_state import MemberState
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue, move, new_process_queue
from mqlab.rocketmq.promises import Flow, Promise, flow
from mqlab.rocketmq.wire.java_hash import sorted_as_java
from mqlab.rocketmq.wire.message import MessageQueue
from mqlab.rocketmq.wire.names import RETRY_PREFIX

LOCK_AGAIN_MS = 500


class QueueKeeper(Protocol):
    """What a consumer does with a queue that comes or goes."""

    repairs_expired_pulls: bool

    def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> Promise[bool]: ...

    def compute_pull_from(self, queue: MessageQueue) -> Promise[int]: ...

    def lock_queue(self, queue: MessageQueue) -> Promise[bool]: ...

    def remove_offset(self, queue: MessageQueue) -> None: ...

    def is_pull_expired(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool: ...

    def queue_added(self, queue: MessageQueue, process_queue: ProcessQueue, next_offset: int) -> None: ...

    def message_queue_changed(
        self, topic: str, queues: list[MessageQueue], mine: list[MessageQueue]
    ) -> Promise[None]: ...


class Rebalance:
    """Keeps the queues of one consumer (``state.process_queues``) as the strategy divides them.

    ``wake_later(delay_ms)`` asks for another round soon.
    """

    def __init__(
        self,
        state: MemberState[Any],
        strategy: AllocateStrategy,
        keeper: QueueKeeper,
        wake_later: Callable[[int], None],
    ) -> None:
        self._state = state
        self._ports = state.ports
        self._keeper = keeper
        self._wake_later = wake_later
        self.strategy = strategy
        self._round: Promise[bool] | None = None
        self.by_broker: BrokerRebalance | None = None  # set before the start when the broker divides the queues

    @flow
    def do_rebalance(self, *, orderly: bool) -> Flow[bool]:
        """One round over all topics; True when this member owns the queues it should."""
        # 1. Rounds never overlap: another one may wait for a broker's answer.
        while self._round is not None:
            yield self._round
        this_round: Promise[bool] = Promise()
        self._round = this_round
        # 2. Each topic for itself; one that fails leaves the others to their turn.
        balanced = True
        for topic in list(self._state.subscriptions):
            try:
                balanced = bool((yield self._rebalance_topic(topic, orderly))) and balanced
            except MqlabError as error:
                self._ports.note("rebalance.failed", group=self._state.group, topic=topic, error=error.text)
                balanced = False
        # 3. Queues of topics that are no longer subscribed.
        self._drop_unsubscribed()
        self._round = None
        this_round.resolve(balanced)
        self._ports.note(
            "rebalance.done",
            group=self._state.group,
            client=self._ports.node,
            balanced=balanced,
            queues=sorted(self._state.process_queues),
        )
        return balanced

    @flow
    def _rebalance_topic(self, topic: str, orderly: bool) -> Flow[bool]:
        # 1. Broadcasting: every member reads every queue, there is nothing to divide.
        if self._state.is_broadcasting:
            queues = self._state.topic_subscribe_info.get(topic)
            if queues is None:
                yield self._keeper.message_queue_changed(topic, [], [])
                return True
            changed = yield self._update(topic, queues, orderly=False)
            if changed:
                yield self._keeper.message_queue_changed(topic, queues, queues)
            return self._working(topic) == queues
        if self.by_broker is not None:
            assigned: list[MessageQueue] | None = yield self.by_broker.assigned(topic)
            if assigned is not None and (yield self._update(topic, assigned, orderly)):
                yield self._keeper.message_queue_changed(topic, assigned, assigned)
            return assigned is not None
        # 2. Clustering: the queues and the members to divide them among.
        # Read before asking: a route that comes meanwhile counts in the next round.
        queues = self._state.topic_subscribe_info.get(topic)
        members = yield self._state.cluster.consumer_ids(topic, self._state.group)
        if queues is None and not topic.startswith(RETRY_PREFIX):
            yield self._keeper.message_queue_changed(topic, [], [])
        if queues is None or members is None:
            return True
        # 3. This member's share. Every member sorts in the same way, so that all come to the same division.
        try:
            target = self._allocate(queues, sorted_as_java(members))
        except Exception as error:  # a strategy is a learner's code: the old assignment stays
            self._ports.note("rebalance.failed", group=self._state.group, topic=topic, error=f"{error}")
            return False
        if (yield self._update(topic, target, orderly)):
            yield self._keeper.message_queue_changed(topic, queues, target)
        return self._working(topic) == sorted(target)

    def _allocate(self, queues: Sequence[MessageQueue], members: list[str]) -> list[MessageQueue]:
        """This member's share of both sorted lists (queues are sorted when their route comes)."""
        mine = self.strategy.allocate(self._state.group, self._state.cluster.client_id, list(queues), members)
        return list(dict.fromkeys(mine))

    @flow
    def _update(self, topic: str, target: Sequence[MessageQueue], orderly: bool) -> Flow[bool]:
        """Make the owned queues of a topic equal to the target; True when anything changed."""
        changed = yield self._drop(topic, target)
        all_locked = True
        for queue in target:
            if queue in self._state.process_queues:
                continue
            # In order, a queue is added only with the broker's lock: its former owner may still consume it.
            if orderly and not (yield self._keeper.lock_queue(queue)):
                all_locked = False
                continue
            if (yield self._add(queue)):
                changed = True
        if not all_locked:
            self._wake_later(LOCK_AGAIN_MS)
        return bool(changed)

    @flow
    def _drop(self, topic: str, target: Sequence[MessageQueue]) -> Flow[bool]:
        # 1. Mark them all first: their pull loops and listeners see at once that they are not owned any more.
        mine = dict.fromkeys(target)
        leaving = []
        for queue, process_queue in self._state.process_queues.items():
            if queue.topic != topic:
                continue
            expired = self._keeper.repairs_expired_pulls and self._keeper.is_pull_expired(queue, process_queue)
            if queue not in mine or expired:
                move(process_queue, "drop")
                leaving.append((queue, process_queue, "pull expired" if queue in mine else "not mine"))
        # 2. Let them go one by one; one in order may have to wait for its listener until the next round.
        changed = False
        for queue, process_queue, reason in leaving:
            if (yield self._keeper.remove_unnecessary(queue, process_queue)):
                if self._state.process_queues.get(queue) is process_queue:
                    del self._state.process_queues[queue]
                self._note_dropped(queue, reason)
                changed = True
        return changed

    @flow
    def _add(self, queue: MessageQueue) -> Flow[bool]:
        self._keeper.remove_offset(queue)
        process_queue = new_process_queue(self._state.config.process_queue, self._ports.clock.now_ms())
        move(process_queue, "lock")
        # Without a certain first offset it is not added: a wrong one would skip or repeat messages.
        try:
            next_offset: int = yield self._keeper.compute_pull_from(queue)
        except MqlabError as error:
            self._ports.note("queue.no_offset", group=self._state.group, queue=queue, error=error.text)
            return False
        if next_offset < 0 or queue in self._state.process_queues:
            return False
        self._state.process_queues[queue] = process_queue
        self._ports.note(
            "queue.added", group=self._state.group, client=self._ports.node, queue=queue, next_offset=next_offset
        )
        self._keeper.queue_added(queue, process_queue, next_offset)
        return True

    def remove_process_queue(self, queue: MessageQueue) -> Promise[bool]:
        """Drop one queue now, without waiting for a round (removeProcessQueue)."""
        process_queue = self._state.process_queues.pop(queue, None)
        if process_queue is None:
            return Promise.of(False)
        move(process_queue, "drop")
        self._note_dropped(queue, "removed")
        return self._keeper.remove_unnecessary(queue, process_queue)

    def _drop_unsubscribed(self) -> None:
        for queue in [queue for queue in self._state.process_queues if queue.topic not in self._state.subscriptions]:
            move(self._state.process_queues.pop(queue), "drop")
            self._note_dropped(queue, "not subscribed")

    @flow
    def round_is_over(self) -> Flow[None]:
        """Wait for the round that is under way, if there is one."""
        if self._round is not None:
            yield self._round

    def drop_all(self) -> None:
        """Mark every owned queue as dropped and remove them all (at shutdown)."""
        for process_queue in self._state.process_queues.values():
            move(process_queue, "drop")
        self._state.process_queues.clear()

    def _note_dropped(self, queue: MessageQueue, reason: str) -> None:
        self._ports.note("queue.dropped", group=self._state.group, client=self._ports.node, queue=queue, reason=reason)

    def _working(self, topic: str) -> list[MessageQueue]:
        owned = self._state.process_queues.items()
        return sorted(queue for queue, held in owned if queue.topic == topic and not held.dropped)

    def __repr__(self) -> str:
        state = self._state
        return f"<Rebalance of {state.group}: {len(state.process_queues)} queues, {len(state.subscriptions)} topics>"
