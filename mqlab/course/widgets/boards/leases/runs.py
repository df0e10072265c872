"""Eight orders, one or two popping members with a thread each; the first one works, hangs or dies.

    works    every call takes work_s          hangs    its first call never returns      dies    its process is killed

Leases, acks and revivals are read from the journal, calls from the deliveries.
Left out: several brokers, simple consumers, orderly pops.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.errors import UsageError
from mqlab.lab.views.rocketmq5.lease_bars import MessageLeases, show_leases
from mqlab.lab.world.lab import play
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

TOPIC, GROUP = "orders", "billing"
HAPPENS = ("works", "hangs", "dies")
ORDERS, QUEUES, SEED = 8, 2, 7
WATCHED_MS, DIES_MS = 90_000, 2_500
NUMBERS = {"members": (1, 2), "lease_s": (5, 60), "work_s": (1, 20)}


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """What the learner may change. ``lease_s``: the invisible time; ``work_s``: how long a call takes.

    Raises UsageError for values out of range.
    """

    happens: str = "works"
    members: int = 2
    lease_s: int = 10
    work_s: int = 2

    def __post_init__(self) -> None:
        if self.happens not in HAPPENS:
            raise UsageError(f"happens must be one of {', '.join(HAPPENS)}, got {self.happens!r}")
        for name, (least, most) in NUMBERS.items():
            must_be_whole(name, getattr(self, name), least, most)


@dataclass(slots=True)
class LeaseCall:
    """One call of a listener: whose, when (ms after the start), and what became of it; ``ended_ms`` None: it hangs."""

    order: str
    member: str
    started_ms: int
    ended_ms: int | None
    status: str


@dataclass(slots=True)
class LeaseRun:
    """A run: the leases of each order, every call, and ms are counted from the first lease."""

    settings: LeaseSettings
    messages: list[MessageLeases]
    start_ms: int
    calls: list[LeaseCall] = field(default_factory=list)

    def done_ms(self, order: str) -> int | None:
        """When an order was done in time for the first time; None if it never was."""
        ends = [call.ended_ms for call in self.calls if call.order == order and call.status == CONSUME_SUCCESS]
        return min((end for end in ends if end is not None), default=None)


@functools.lru_cache(maxsize=256)
def play_leases(settings: LeaseSettings) -> LeaseRun:
    """Play the story; the same settings give the same run."""
    lab = play(functools.partial(_story, settings=settings), seed=SEED, client={"enable_trace": False})
    picture = show_leases(lab, GROUP)
    names = {message.msg_id: str(message.keys) for message in lab.store().messages(TOPIC)}
    began_ms = picture.start_ms
    calls = [
        LeaseCall(
            names[row["msg_id"]],
            row["client"],
            row["started_ms"] - began_ms,
            None if row["ended_ms"] is None else row["ended_ms"] - began_ms,
            row["status"],
        )
        for row in lab.deliveries(GROUP, absences=False)
    ]
    return LeaseRun(settings, sorted(picture.messages, key=lambda message: message.name), began_ms, calls)


def _story(lab: Lab, settings: LeaseSettings) -> None:
    lab.create_topic(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    lab.admin.set_message_request_mode(TOPIC, GROUP, "POP")
    shop = lab.producer("shop")
    for number in range(ORDERS):
        shop.send(Message(TOPIC, b"a book", keys=f"order-{number}"))
    names = [f"{GROUP}-{number}" for number in range(1, settings.members + 1)]
    for name in names:
        consumer = lab.push_consumer(
            GROUP,
            name=name,
            client_rebalance=False,
            pop_invisible_time=f"{settings.lease_s}s",
            pop_batch_nums=1,
            pop_threshold_for_queue=ORDERS,  # a member that hangs goes on popping, but not for ever
            consume_thread_min=1,
            consume_thread_max=1,
        )
        consumer.subscribe(TOPIC, "*")
        consumer.on_messages(_listener(name, settings))
        consumer.start()
    lab.run_for(DIES_MS)
    if settings.happens == "dies":
        lab.kill(names[0])
    lab.run_for(WATCHED_MS - DIES_MS)


def _listener(name: str, settings: LeaseSettings) -> Callable[[Any, Any], str]:
    hangs = settings.happens == "hangs" and name == f"{GROUP}-1"

    def pay(messages: Any, context: Any) -> str:
        context.sleep("1h" if hangs else f"{settings.work_s}s")
        return CONSUME_SUCCESS

    return pay
