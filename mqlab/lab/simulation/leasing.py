"""Random days of one broker with timed messages and a group that pops: what must hold, and what a defect breaks.

Mirrors: nothing of RocketMQ; like mqlab.lab.simulation.running, smaller, with promises of its own.

    LOST      answered SEND_OK, and no listener was successful with it
    EARLY     handled before its delivery time
    LATE      a calm day: handled long after its time
    HELD      a calm day: given out again while its lease ran
    TWICE     a calm day: a listener was successful with it twice
    COUNT     a calm day: reconsume_times is not how often it had failed
    LEFT      leases that nothing ends
    DAMAGED   what the inspector finds

A calm day has no fault. On others the broker is killed, loses its power or is restarted, and consumers are killed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from mqlab.lab.simulation.model import Wrong
from mqlab.lab.simulation.notes import harmless
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.wire.message import Message

GROUP, TOPIC = "leasing", "leased"
LEASE_MS = 10_000
SETTLE_MS = 120_000
LATE_MS = 1_500
Fit = Callable[[str, Any], None]


@dataclass(slots=True)
class LeasingDay:
    """One drawn day: messages as (at, number, delay or None, how often it fails, how long it takes), and faults."""

    seed: int
    merges: bool
    messages: list[tuple[int, int, int | None, int, int]]
    faults: list[tuple[int, str, str, int]]

    @property
    def is_calm(self) -> bool:
        """Whether nothing breaks."""
        return not self.faults


def draw_leasing(seed: int) -> LeasingDay:
    """The day of a seed; one in three is calm."""
    rng = Random(f"leasing {seed}")
    moments = [rng.randrange(20_000) for _ in range(6)]  # several at once: a pop then takes more than one
    messages = [
        (
            rng.choice(moments) + rng.randrange(3),
            number,
            rng.choice((None, None, 700, 2_000, 5_500, 14_000, 14_001)),
            rng.choices((0, 1, 2), (8, 2, 1))[0],
            rng.choice((0, 0, 300, 6_000, 9_000)),
        )
        for number in range(rng.choice((8, 20)))
    ]
    faults = []
    if seed % 3:
        for _ in range(rng.randint(1, 4)):
            node = rng.choice(("broker-a", "broker-a", f"{GROUP}-1", f"{GROUP}-2"))
            kind = rng.choice(("kill", "power_off", "restart")) if node == "broker-a" else "kill"
            faults.append((rng.randrange(1_000, 24_000), kind, node, rng.choice((200, 3_000, 9_000))))
    return LeasingDay(seed, rng.random() < 0.3, sorted(messages), sorted(faults))


@dataclass(slots=True)
class LeasingRun:
    """One played day, with the programs' own notes."""

    day: LeasingDay
    sent: dict[int, tuple[int, int]] = field(default_factory=dict)  # number -> answered, to be delivered
    successes: Counter[int] = field(default_factory=Counter)
    calls: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))  # at, reconsume_times
    stopped: list[str] = field(default_factory=list)
    lab: Lab | None = None

    def story(self, lab: Lab) -> None:
        """The day, then a while in which everything works."""
        self.lab = lab
        lab.create_topic(TOPIC, read_queue_nums=2, write_queue_nums=2)
        lab.admin.set_message_request_mode(TOPIC, GROUP)
        for number in (1, 2):
            self._join(f"{GROUP}-{number}")
        producer = lab.producer("lessor", retry_times_when_send_failed=0)
        begin_ms = lab.now_ms
        actions: list[tuple[int, Callable[[], Any]]] = [
            (message[0], partial(self._send, producer, message)) for message in self.day.messages
        ]
        for at_ms, kind, node, for_ms in self.day.faults:
            actions.append((at_ms, partial(self._break, kind, node)))
            actions.append((at_ms + for_ms, partial(self._mend, node)))
        for at_ms, action in sorted(actions, key=lambda timed: timed[0]):
            lab.run_for(max(0, begin_ms + at_ms - lab.now_ms))
            harmless(action)
        for node in ("broker-a", f"{GROUP}-1", f"{GROUP}-2"):
            self._mend(node)
        lab.run_for(SETTLE_MS)

    def _join(self, name: str) -> None:
        assert self.lab is not None
        consumer = self.lab.push_consumer(
            GROUP,
            name=name,
            client_rebalance=False,
            pop_invisible_time=LEASE_MS,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        )
        consumer.subscribe(TOPIC)
        consumer.on_messages(self._listener)
        consumer.start()

    def _send(self, producer: Any, message: tuple[int, int, int | None, int, int]) -> None:
        assert self.lab is not None
        _, number, delay_ms, fails, takes_ms = message
        due_ms = self.lab.now_ms + (delay_ms or 0)
        body = f"{number} {fails} {takes_ms}".encode()
        pending = producer.send_async(Message(TOPIC, body, deliver_at=None if delay_ms is None else due_ms))
        lab = self.lab

        def answered(result: Any) -> None:
            if result.send_status == "SEND_OK":
                self.sent[number] = lab.now_ms, due_ms

        pending.then(answered, lambda error: None)

    def _listener(self, messages: Any, context: Any) -> str:
        assert self.lab is not None
        (message,) = messages
        number, fails, takes_ms = (int(part) for part in message.body.decode().split())
        self.calls[number].append((self.lab.now_ms, message.reconsume_times))
        if takes_ms:
            context.sleep(takes_ms)
        if message.reconsume_times < fails:
            return "RECONSUME_LATER"
        self.successes[number] += 1
        return "CONSUME_SUCCESS"

    def _break(self, kind: str, node: str) -> None:
        assert self.lab is not None
        if not self.lab.handles[node].is_up:
            return
        if kind == "restart":
            harmless(self.lab.handles[node].shutdown)
            self.stopped.append(node)
        (self.lab.power_off if kind == "power_off" else self.lab.kill)(node)

    def _mend(self, node: str) -> None:
        assert self.lab is not None
        if not self.lab.handles[node].is_up:
            self.lab.start(node)
            if node in self.stopped:  # what was stopped cleanly does not begin by itself
                self.stopped.remove(node)
                self.lab.handles[node].start()

    def wrong(self) -> Iterator[Wrong]:
        """Every broken promise."""
        assert self.lab is not None
        for number, (_, due_ms) in sorted(self.sent.items()):
            calls = self.calls[number]
            if not self.successes[number]:
                yield Wrong("LOST", f"message {number} was acknowledged, and no listener was successful with it")
            if calls and calls[0][0] < due_ms:
                yield Wrong("EARLY", f"message {number} was handled {due_ms - calls[0][0]} ms before its time")
            if self.day.is_calm and calls and calls[0][0] > due_ms + LATE_MS:
                yield Wrong("LATE", f"message {number} was handled {calls[0][0] - due_ms} ms after its time")
            if self.day.is_calm and self.successes[number] > 1:
                yield Wrong("TWICE", f"listeners were successful with message {number} {self.successes[number]} times")
            if self.day.is_calm and [tries for _, tries in calls] != list(range(len(calls))):
                yield Wrong("COUNT", f"message {number} came with reconsume_times {[tries for _, tries in calls]}")
        yield from self._held()
        if len(self.lab.leases(GROUP)):
            yield Wrong("LEFT", f"{len(self.lab.leases(GROUP))} leases are left")
        for problem in self.lab.store("broker-a").problems(deep=True):
            yield Wrong("DAMAGED", str(problem))

    def _held(self) -> Iterator[Wrong]:
        """A place that was given out again while its lease ran; after a crash the broker may not know of a lease."""
        assert self.lab is not None
        if not self.day.is_calm:
            return
        until: dict[tuple[str, str], int] = {}
        for record, values in self.lab.journal.changes("message.popped"):
            for part in values["offsets"].split(";"):
                kind, queue, offsets = part.split(" ")
                for offset in offsets.split(","):
                    spot = f"{kind} {queue}", offset
                    if record.now_ms < until.get(spot, 0):
                        yield Wrong("HELD", f"{spot} was given out again before its lease was over")
                    until[spot] = values["pop_time"] + values["invisible_time"]


def run_leasing(seed: int, fit: Fit | None = None) -> list[Wrong]:
    """Play the day of a seed, perhaps with a defect fitted into every node, and judge it."""
    day = draw_leasing(seed)
    run = LeasingRun(day)

    def story(lab: Lab) -> None:
        if fit is not None:
            lab.fit_nodes(fit)
        run.story(lab)

    settings = {
        "flush_disk_type": "SYNC_FLUSH",
        "timer_roll_window_slot": 6,
        "timer_enable_retry_until_success": True,
        "enable_pop_buffer_merge": day.merges,
    }
    try:
        run.lab = play(story, seed=seed, broker=settings)
        return list(run.wrong())
    except Exception as error:
        return [Wrong("CRASH", f"{type(error).__name__}: {error}")]
