"""All consume queues of a store, and the number the next message of each queue gets.

Mirrors: org.apache.rocketmq.store.queue.ConsumeQueueStore and QueueOffsetOperator. Lab 01 lists them.

    consumequeue/<topic>/<queueId>/<20 digits>
    queues["orders"][0]          ConsumeQueue       what consumers see: up to its max
    next_offsets["orders", 0]    57                 what the next put gets: ahead of the queue until dispatch catches up

Left out: RocksDB, batch and light queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mqlab.rocketmq.ports import Files
from mqlab.rocketmq.store.config import StoreConfig
from mqlab.rocketmq.store.consumequeue import ConsumeQueue, Judge


class ConsumeQueues:
    """The queues in ``directory``; a queue is made when its first message is dispatched."""

    def __init__(self, files: Files, directory: str, config: StoreConfig) -> None:
        self._files = files
        self.directory = directory
        self.config = config
        self.queues: dict[str, dict[int, ConsumeQueue]] = {}
        self.next_offsets: dict[tuple[str, int], int] = {}
        self._judge: Judge | None = None
        self._floor: Callable[[str], int] | None = None

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for of_topic in self.queues.values():
            yield from of_topic.values()

    def load(self) -> None:
        """Find the queues; folders without a number as name are ignored. Raises StoreError as MappedFileQueue does."""
        if not self._files.exists(self.directory):
            return
        for topic in self._files.list(self.directory):
            if not self._files.is_dir(f"{self.directory}/{topic}"):
                continue
            names = self._files.list(f"{self.directory}/{topic}")
            for queue_id in sorted(int(name) for name in names if name.isascii() and name.isdigit()):
                self.find_or_create(topic, queue_id).load()

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue; None when no message was dispatched to it."""
        try:
            return self.queues[topic][queue_id]
        except KeyError:
            return None

    def find_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue; a new one has no files yet. Mirrors findOrCreateConsumeQueue."""
        of_topic = self.queues.setdefault(topic, {})
        queue = of_topic.get(queue_id)
        if queue is None:
            size = self.config.mapped_file_size_consume_queue
            queue = of_topic[queue_id] = ConsumeQueue(self._files, self.directory, topic, queue_id, size)
            queue.judge = self._judge
            if self._floor is not None:
                queue.max_physical_offset = max(-1, self._floor(topic))
        return queue

    def set_judge(self, judge: Judge | None) -> None:
        """Set what decides about units whose queue offset is not the next one of their queue; None: no decision."""
        self._judge = judge
        for queue in self:
            queue.judge = judge

    def set_floor(self, floor: Callable[[str], int]) -> None:
        """Units of a topic that end at or before this physical offset are not put any more (-1: all are)."""
        self._floor = floor
        for queue in self:
            queue.max_physical_offset = max(queue.max_physical_offset, floor(queue.topic))

    def take_floor_away(self) -> None:
        """Remove the limit, and remove queues that were only made for units that were not put."""
        floor, self._floor = self._floor, None
        for queue in list(self):
            if floor is not None and floor(queue.topic) >= 0 and not queue.files.mapped_files:
                self.delete_queue(queue)

    @property
    def max_physical_offset(self) -> int:
        """The furthest end of a dispatched message over all queues; -1 without any."""
        return max((queue.max_physical_offset for queue in self), default=-1)

    def recover_next_offsets(self, min_physical_offset: int) -> None:
        """Number on from what is dispatched, correct each queue's first offset. Mirrors recoverTopicQueueTable."""
        self.next_offsets = {(queue.topic, queue.queue_id): queue.max_queue_offset for queue in self}
        pre_blank_counts = "pre_blank_counts" in self.config.sharp_edges
        for queue in self:
            queue.correct_min_offset(min_physical_offset, pre_blank_counts=pre_blank_counts)

    def topics(self) -> dict[str, list[int]]:
        return {topic: sorted(of_topic) for topic, of_topic in self.queues.items() if of_topic}

    def delete_topic(self, topic: str) -> bool:
        """Delete the topic's queues; its messages stay in the commit log until it is cleaned. False when unknown."""
        of_topic = self.queues.pop(topic, None)
        if of_topic is None:
            return False
        for queue in of_topic.values():
            queue.destroy()
            self.next_offsets.pop((topic, queue.queue_id), None)
        if self._files.exists(f"{self.directory}/{topic}"):
            self._files.remove_tree(f"{self.directory}/{topic}")
        self._files.sync_directory(self.directory)
        return True

    def delete_queue(self, queue: ConsumeQueue) -> None:
        """Delete one queue; its numbering begins again at 0."""
        queue.destroy()
        self.next_offsets.pop((queue.topic, queue.queue_id), None)
        of_topic = self.queues[queue.topic]
        del of_topic[queue.queue_id]
        if not of_topic:
            self.delete_topic(queue.topic)

    def destroy(self) -> None:
        """Delete every queue (the commit log is empty)."""
        for topic in list(self.queues):
            self.delete_topic(topic)

    def close(self) -> None:
        for queue in self:
            queue.close()

    def __repr__(self) -> str:
        return f"<ConsumeQueues {len(self.queues)} topics, {sum(len(q) for q in self.queues.values())} queues>"
