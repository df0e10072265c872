"""What the offset strip can do: end calls of a listener, let time pass, crash the client, the broker or both.

    OffsetSettings            threads, batch, messages, intervals and limits ─▶ settings of a broker and a consumer
    Action("finish", …)       one action, checked
    OffsetLab                 a Lab with one queue; every call of its listener waits until an action ends it

ProcessQueue, offset store, pull loop and offset table are those of mqlab; nothing of their rules is repeated here.
A message that comes back from the retry topic is finished at once. Left out: several queues, failing calls, order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.counts import counted
from mqlab.course.widgets.boards.time_machine.facts import OFFSETS_FILE
from mqlab.course.widgets.frame.acting import arguments_of
from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.durations import exact_text, milliseconds
from mqlab.errors import UsageError
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.promises import Promise
from mqlab.rocketmq.wire.message import Message, MessageQueue
from mqlab.rocketmq.wire.names import RETRY_PREFIX

if TYPE_CHECKING:
    from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue

BROKER, CONSUMER, GROUP, TOPIC = "broker-a", "billing-1", "billing", "orders"
QUEUE = MessageQueue(TOPIC, BROKER, 0)
CLIENT_PERSIST, BROKER_PERSIST = "client.offset_persist", "offset.persist"  # kinds of steps
FINISH_MS, ARRIVE_MS, SETTLE_MS = 10, 5, 1_000
STARTED_WITHIN_MS = 60_000
CRASHES = ("client", "broker", "both")
LIMITS = {
    "threads": (1, 64),
    "batch": (1, 32),
    "messages": (1, 240),
    "span": (1, 65_535),
    "count": (1, 65_535),
    "size": (1, 1_024),
    "pull_batch": (1, 32),
    "body": (1, 100_000),
}


@dataclass(frozen=True, slots=True)
class OffsetSettings:
    """What the learner may change. Raises UsageError for numbers out of range.

    ``threads`` is consumeThreadMin, ``batch`` consumeMessageBatchMaxSize, ``persist_ms`` the client's
    persistConsumerOffsetInterval, ``broker_persist_ms`` the broker's flushConsumerOffsetInterval; ``span``, ``count``
    and ``size`` (MiB) are the limits of flow control, ``body`` the bytes of each message.
    """

    threads: int = 20
    batch: int = 1
    messages: int = 24
    persist_ms: int = 5_000
    broker_persist_ms: int = 5_000
    span: int = 2_000
    count: int = 1_000
    size: int = 100
    pull_batch: int = 32
    body: int = 100

    def __post_init__(self) -> None:
        for name, (lowest, highest) in LIMITS.items():
            must_be_whole(name, getattr(self, name), lowest, highest)
        for name in ("persist_ms", "broker_persist_ms"):
            if not 1_000 <= getattr(self, name) <= 600_000:
                raise UsageError(f"{name[:-3]} must be from 1 s to 10 min, got {exact_text(getattr(self, name))}")

    def consumer(self) -> dict[str, Any]:
        """The consumer's settings under RocketMQ's names."""
        return {
            "consume_thread_min": self.threads,
            "consume_thread_max": max(self.threads, 20),
            "consume_message_batch_max_size": self.batch,
            "persist_consumer_offset_interval": self.persist_ms,
            "consume_concurrently_max_span": self.span,
            "pull_threshold_for_queue": self.count,
            "pull_threshold_size_for_queue": self.size,
            "pull_batch_size": self.pull_batch,
            "consume_from_where": "CONSUME_FROM_FIRST_OFFSET",
            "enable_trace": False,
        }


@dataclass(frozen=True, slots=True)
class OffsetAction:
    """One action: its verb and its arguments. Raises UsageError for a verb or an argument that does not exist."""

    verb: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        defaults = {verb: values for verb, (*_, values) in VERBS.items()}
        values = arguments_of("the offset strip", self.verb, self.arguments, defaults)
        _check(self.verb, values)
        object.__setattr__(self, "arguments", values)

    @property
    def code(self) -> str:
        """The action as a call of the strip's method."""
        if self.verb == "finish":
            return f"strip.finish({', '.join(map(str, self.arguments['messages']))})"
        _, defaults = VERBS[self.verb]
        changed = [f"{name}={value!r}" for name, value in self.arguments.items() if value != defaults[name]]
        if self.verb in ("wait", "crash"):
            changed = [repr(value) for value in self.arguments.values()]
        return f"strip.{self.verb}({', '.join(changed)})"


class OffsetLab:
    """A Lab with one queue and one consumer, whose listener's calls end when an action says so.

    ``waiting``: the calls that run now, by message. ``lives``: the first offset of each life of the consumer; of the
    present one ``began_ms``, ``pulled`` (the offset after the last pulled) and ``expired`` (sent back by the sweep).
    """

    def __init__(self, settings: OffsetSettings) -> None:
        self.settings = settings
        self.code: list[tuple[str, ...]] = []
        self.waiting: dict[int, Promise[None]] = {}
        self.batches: dict[int, tuple[int, ...]] = {}
        self.lives: list[int] = []
        self.began_ms = self.pulled = 0
        self.expired: set[int] = set()
        self.lab = Lab(seed=7, broker={"flush_consumer_offset_interval": settings.broker_persist_ms})
        self.lab.world.watchers.append(self._look)
        # 1. The messages are stored first; the shop leaves, its timers would only cost time.
        self.lab.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
        shop = self.lab.producer("shop", enable_trace=False)
        for number in range(settings.messages):
            shop.send(Message(TOPIC, bytes(settings.body), keys=f"order-{number}"))
        shop.shutdown()
        # 2. Then the consumer, up to its first pulls.
        self.consumer = self.lab.push_consumer(GROUP, **settings.consumer())
        self.consumer.subscribe(TOPIC, "*")
        self.consumer.on_messages(self._listener)
        self.consumer.start()
        self.run_until_owned(1)

    @property
    def process_queue(self) -> ProcessQueue | None:
        """The consumer's ProcessQueue of the queue; None while it does not own it."""
        queue: ProcessQueue | None = self.consumer.process_queues.get(QUEUE)
        return queue

    def do(self, action: OffsetAction) -> str:
        """Do one action; returns what happened in words. When it raises, the Lab must not be used any more."""
        words: str = VERBS[action.verb][0](self, **action.arguments)
        self.code.append((action.code,))
        return words

    def due_ms(self, kind: str) -> int | None:
        """How long until the next step of a kind; None when none is armed."""
        due = [row.in_ms for row in self.lab.upcoming(1_000) if row.kind == kind and row.node in (BROKER, CONSUMER)]
        return min(due) if due else None

    def offsets(self) -> tuple[int | None, int | None, int | None]:
        """The next offset in the consumer's memory, in the broker's table and in consumerOffset.json; None: none."""
        consumer, broker = self.lab.handles[CONSUMER], self.lab.handles[BROKER]
        memory = consumer.node.offset_store.clone_offset_table().get(QUEUE) if consumer.is_up else None
        table = broker.node.offset_table.offset_table.get(f"{TOPIC}@{GROUP}", {}).get(0) if broker.is_up else None
        store = self.lab.store(BROKER)
        try:
            saved = (store.config(OFFSETS_FILE) or {}).get("offsetTable") or {}
        finally:
            store.close()
        in_file = {int(queue_id): offset for queue_id, offset in saved.get(f"{TOPIC}@{GROUP}", {}).items()}
        return memory, table, in_file.get(0)

    def finished(self) -> dict[int, list[int]]:
        """When each message's calls have ended with success in a process that still owned the queue, in ms."""
        finished: dict[int, list[int]] = {}
        for row in self.lab.deliveries(GROUP, absences=False):
            if row.message_queue == QUEUE and row.status == "CONSUME_SUCCESS":
                finished.setdefault(row.queue_offset, []).append(row.ended_ms)
        return finished

    def run_until_owned(self, life: int) -> None:
        """Let time pass until the consumer has its queue, for the n-th time, and has pulled."""
        self.lab.run_until(lambda: len(self.lives) >= life, limit=STARTED_WITHIN_MS)
        self.lab.run_for(SETTLE_MS)

    def end_calls(self, offsets: Sequence[int]) -> None:
        """End the calls of these messages; a call ends for its whole batch."""
        for gate in dict.fromkeys(self.waiting[offset] for offset in offsets):
            gate.resolve(None)
        self.lab.run_for(FINISH_MS)

    def _listener(self, messages: Any, context: Any) -> str:
        if context.message_queue.topic.startswith(RETRY_PREFIX):
            return "CONSUME_SUCCESS"
        offsets = tuple(message.queue_offset for message in messages)
        gate: Promise[None] = Promise()
        for offset in offsets:
            self.waiting[offset] = gate
            self.batches[offset] = offsets
        self.lab.world.wait_for(gate)
        for offset in offsets:
            self.waiting.pop(offset, None)
        return "CONSUME_SUCCESS"

    def _look(self, record: Any, change: Any) -> None:
        values = change.values
        if change.kind == "queue.added" and values["queue"] == QUEUE:
            self.lives.append(values["next_offset"])
            self.began_ms, self.pulled = record.now_ms, values["next_offset"]
            self.expired.clear()
        elif change.kind == "message.expired" and values["queue"] == QUEUE:
            self.expired.add(values["queue_offset"])
        elif change.kind == "message.pulled" and values["queue"] == QUEUE:
            self.pulled = values["next_offset"]


def _finish(world: OffsetLab, messages: Sequence[int]) -> str:
    for offset in messages:
        if offset not in world.waiting:
            raise UsageError(f"message {offset} is not in a call of the listener", hint=_why_not(world, offset))
    ended = sorted({other for offset in messages for other in world.batches[offset]})
    before = world.offsets()[0]
    world.end_calls(messages)
    return f"{ranges(ended)} finished; {_memory_words(world, before)}"


def _finish_all(world: OffsetLab, but: Sequence[int]) -> str:
    before, ended = world.offsets()[0], 0
    while ready := [offset for offset in world.waiting if not set(world.batches[offset]) & set(but)]:
        world.end_calls(ready)
        ended += len(ready)
    if not ended:
        raise UsageError("no call of the listener can be ended", hint="all that run are in but=, or none runs")
    return (
        f"{counted(ended, 'messages')} finished{f', all but {ranges(but)}' if but else ''}; "
        f"{_memory_words(world, before)}"
    )


def _why_not(world: OffsetLab, offset: int) -> str:
    queue = world.process_queue
    if queue is not None and offset in queue.msg_tree_map:
        return f"it waits in the cache for a thread: {counted(world.settings.threads, 'threads')}, each with one call"
    if not 0 <= offset < world.settings.messages:
        return f"the messages are 0 to {world.settings.messages - 1}"
    if queue is not None and offset > queue.queue_offset_max:
        return "it is not pulled yet"
    return f"it is finished; in a call now: {ranges(sorted(world.waiting)) or 'none'}"


def _memory_words(world: OffsetLab, before: int | None) -> str:
    now = world.offsets()[0]
    queue = world.process_queue
    first = None if queue is None else queue.msg_tree_map.first_offset()
    held = "nothing is cached any more" if first is None else f"the smallest still cached is {first}"
    return f"{held}: the offset in memory " + (f"stays {now}" if now == before else f"moves to {now}")


def _wait(world: OffsetLab, duration: str) -> str:
    before = world.offsets()
    world.lab.run_for(duration)
    return f"{exact_text(milliseconds(duration))} passed: {_moved_words(before, world.offsets())}"


def _persist(world: OffsetLab) -> str:
    due_ms = world.due_ms(CLIENT_PERSIST)
    if due_ms is None:
        raise UsageError("the client has no timer for its offsets", hint="wait until it runs again")
    before = world.offsets()
    world.lab.run_for(due_ms + ARRIVE_MS)
    return f"{exact_text(due_ms)} later the client sends its offsets: {_moved_words(before, world.offsets())}"


def _save(world: OffsetLab) -> str:
    due_ms = world.due_ms(BROKER_PERSIST)
    if due_ms is None:
        raise UsageError("the broker has nothing to write", hint="its table is as its file has it")
    before = world.offsets()
    world.lab.run_for(due_ms + ARRIVE_MS)
    return f"{exact_text(due_ms)} later the broker writes its file: {_moved_words(before, world.offsets())}"


def _moved_words(before: Sequence[int | None], after: Sequence[int | None]) -> str:
    places = ("in memory", "at the broker", "in the file")
    moves = [
        f"{name} {'nothing' if old is None else old} → {'nothing' if new is None else new}"
        for name, old, new in zip(places, before, after, strict=True)
        if old != new
    ]
    return ", ".join(moves) or "no offset moved"


def _crash(world: OffsetLab, who: str) -> str:
    lab, life = world.lab, len(world.lives) + 1
    memory, table, saved = world.offsets()
    # 1. Everything that dies, dies before anything starts again.
    if who != "broker":
        lab.kill(CONSUMER)
        world.waiting.clear()
    if who != "client":
        lab.kill(BROKER)
        lab.start(BROKER)
        lab.run_for(ARRIVE_MS)
    # 2. A client in a new process asks the broker where to begin. One that lives on knows it.
    if who == "broker":
        lab.run_for(SETTLE_MS)
        begins = (
            f"the broker begins with its file ({_told(saved)}); the client is alive and still knows {_told(memory)}"
        )
        return f"the broker was killed with {_told(table)} in its table and started again: {begins}"
    lab.start(CONSUMER)
    world.run_until_owned(life)
    killed = "the client was" if who == "client" else "client and broker were"
    return f"{killed} killed and started again: the queue is read from {world.lives[-1]} on"


def _told(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)


def ranges(offsets: Sequence[int]) -> str:
    """Offsets as ranges.

    >>> ranges([1, 2, 3, 5])
    '1 to 3, 5'
    """
    runs: list[list[int]] = []
    for offset in sorted(offsets):
        if runs and offset == runs[-1][1] + 1:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset])
    return ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in runs)


VERBS: dict[str, tuple[Callable[..., str], Mapping[str, Any]]] = {
    "finish": (_finish, {"messages": ()}),
    "finish_all": (_finish_all, {"but": ()}),
    "wait": (_wait, {"duration": "1s"}),
    "persist": (_persist, {}),
    "save": (_save, {}),
    "crash": (_crash, {"who": "client"}),
}


def _check(verb: str, values: dict[str, Any]) -> None:
    """UsageError for values that an action cannot have; lists become tuples."""
    for name in ("messages", "but"):
        if name in values:
            offsets = values[name]
            if isinstance(offsets, str) or not all(type(offset) is int for offset in offsets):
                raise UsageError(f"{verb}: {name} are whole numbers, got {offsets!r}")
            values[name] = tuple(offsets)
    if verb == "finish" and not values["messages"]:
        raise UsageError("finish: which messages?", hint="strip.finish(3, 4)")
    if verb == "wait" and not 0 < milliseconds(values["duration"]) <= milliseconds("1h"):
        raise UsageError("wait: at most an hour", hint='strip.wait("5s")')
    if verb == "crash" and values["who"] not in CRASHES:
        raise UsageError(f"crash: who is one of {', '.join(CRASHES)}, got {values['who']!r}")
