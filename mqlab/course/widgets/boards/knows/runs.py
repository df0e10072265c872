"""Two brokers, a shop that sends, billing that reads; something happens to broker-b; who believes what, when.

    kill         its process ends, its connections close        power_off    its machine falls silent
    partition    nameserver-1 no longer hears from it           wipe         an operator takes its write permission away
    queues       the topic gets eight queues on it              joins        it is new: it starts in this moment

Beliefs are looked up in the nodes' own tables every half a second; nothing is computed from a rule.
Left out: slaves, several topics.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.course.widgets.frame.whole_numbers import must_be_whole
from mqlab.errors import UsageError
from mqlab.lab.world.lab import play
from mqlab.rocketmq.client.instance.routes import publish_queues
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.bodies import PERM_READ, PERM_WRITE, QueueData
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

TOPIC, GROUP, SHOP = "orders", "billing", "shop"
BROKERS = ("broker-a", "broker-b")
HAPPENS = ("kill", "power_off", "partition", "wipe", "queues", "joins")
QUEUES, MORE_QUEUES = 4, 8
BEFORE_MS, WATCHED_MS, AFTER_MS, LOOK_MS = 30_000, 3_000, 150_000, 500
A_SECOND, SEED = 1, 7
SECONDS = {"poll_s": (5, 120), "register_s": (10, 60)}


@dataclass(frozen=True, slots=True)
class KnowsSettings:
    """What the learner may change. ``poll_s``: how often clients ask for routes; ``register_s``: brokers register.

    Raises UsageError for values out of range.
    """

    happens: str = "kill"
    name_servers: int = 1
    poll_s: int = 30
    register_s: int = 30

    def __post_init__(self) -> None:
        if self.happens not in HAPPENS:
            raise UsageError(f"happens must be one of {', '.join(HAPPENS)}, got {self.happens!r}")
        for name, (least, most) in {"name_servers": (1, 2), **SECONDS}.items():
            must_be_whole(name, getattr(self, name), least, most)


class Belief(NamedTuple):
    """Since ``ms`` (0: it happened) an observer believes that each broker has so many queues; 0: it does not know it.

    The queues of a name server are (read, write), those of the shop are for writing, those of billing for reading.
    """

    ms: int
    observer: str
    queues: tuple[tuple[int, int], ...]


class Send(NamedTuple):
    """One send of the shop; ``tried``: the broker of its first attempt, ``stored``: the one that has it, or ""."""

    began_ms: int
    ended_ms: int
    tried: str
    stored: str


@dataclass(frozen=True, slots=True)
class KnowsRun:
    """What happened: each change of a belief, and every send. ``asks``: client -> the name server that it asks."""

    settings: KnowsSettings
    beliefs: tuple[Belief, ...]
    sends: tuple[Send, ...]
    asks: Mapping[str, str]

    @property
    def observers(self) -> list[str]:
        """The name servers, the shop, billing."""
        return list(dict.fromkeys(belief.observer for belief in self.beliefs))

    def believes(self, observer: str, ms: int) -> Belief:
        """What an observer believes at a moment. UsageError for one that does not exist."""
        mine = [belief for belief in self.beliefs if belief.observer == observer]
        if not mine:
            raise UsageError(f"nobody is called {observer!r}", hint=", ".join(self.observers))
        return [belief for belief in mine if belief.ms <= ms or belief is mine[0]][-1]

    def since(self, observer: str) -> int | None:
        """When an observer first changed its mind after it happened, in ms; None if it never did."""
        return next((belief.ms for belief in self.beliefs if belief.observer == observer and belief.ms > 0), None)


class _SendBook:
    """A hook of the shop's producer: every send, when it has ended."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.sends: list[tuple[int, int, str, str]] = []

    def send_message_before(self, context: Any) -> None:
        """Nothing: the context knows when it began."""

    def send_message_after(self, context: Any) -> None:
        """One send has its answer, or none in time."""
        result = context.send_result
        stored = "" if result is None else result.message_queue.broker_name
        self.sends.append((context.started_ms, self.lab.now_ms, context.queue.broker_name, stored))


@functools.lru_cache(maxsize=256)
def play_knows(settings: KnowsSettings) -> KnowsRun:
    """Play the story with these settings; the same settings are played once."""
    looks: list[tuple[int, str, tuple[tuple[int, int], ...]]] = []
    books: list[_SendBook] = []
    asks: dict[str, str] = {}
    lab = play(
        functools.partial(_story, settings=settings, looks=looks, books=books, asks=asks),
        seed=SEED,
        brokers=list(BROKERS),
        name_servers=settings.name_servers,
        broker={"register_name_server_period": settings.register_s * 1000},
        client={"enable_trace": False, "poll_name_server_interval": f"{settings.poll_s}s"},
    )
    zero_ms = lab.now_ms - AFTER_MS
    latest: dict[str, tuple[tuple[int, int], ...]] = {}
    beliefs = []
    for now_ms, observer, queues in looks:
        if latest.get(observer) != queues:
            # A call of the operator takes some ms; a look is named by the half second that it belongs to.
            beliefs.append(Belief(round((now_ms - zero_ms) / LOOK_MS) * LOOK_MS, observer, queues))
            latest[observer] = queues
    sends = tuple(Send(began - zero_ms, ended - zero_ms, *brokers) for began, ended, *brokers in books[0].sends)
    return KnowsRun(settings, tuple(beliefs), sends, asks)


def _story(lab: Lab, settings: KnowsSettings, looks: list[Any], books: list[_SendBook], asks: dict[str, str]) -> None:
    # 1. The topic on both brokers. One that joins later has it, too, and is not there yet.
    lab.create_topic(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    if settings.happens == "joins":
        lab.kill(BROKERS[1])
    shop = lab.producer(SHOP)
    books.append(_SendBook(lab))
    shop.register_send_message_hook(books[0])
    consumer = lab.push_consumer(GROUP)
    consumer.subscribe(TOPIC)
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    lab.traffic(shop, rates=[("0s", A_SECOND)], message=lambda number: Message(TOPIC, b"a book"))
    # 2. A calm beginning. All are watched a little before it happens, and long after.
    lab.run_for(BEFORE_MS)
    for part_ms in (WATCHED_MS, AFTER_MS):
        if part_ms == AFTER_MS:
            _happens(lab, settings.happens)
        for _ in range(part_ms // LOOK_MS):
            lab.run_for(LOOK_MS)
            looks += [(lab.now_ms, name, queues) for name, queues in _beliefs(lab, shop, consumer, settings)]
    addresses = {lab.name_server(name).address: name for name in _name_servers(settings)}
    asks.update(
        {
            name: addresses.get(client.client.cluster.name_servers.chosen or "", "")
            for name, client in ((SHOP, shop), (GROUP, consumer))
        }
    )


def _happens(lab: Lab, what: str) -> None:
    broker = BROKERS[1]
    if what == "kill":
        lab.kill(broker)
    elif what == "power_off":
        lab.power_off(broker)
    elif what == "partition":
        lab.partition(broker, "nameserver-1")
    elif what == "wipe":
        lab.admin.wipe_write_perm(broker)
    elif what == "queues":
        lab.admin.update_topic(TOPIC, brokers=broker, read_queue_nums=MORE_QUEUES, write_queue_nums=MORE_QUEUES)
    else:
        lab.start(broker)


def _name_servers(settings: KnowsSettings) -> list[str]:
    return [f"nameserver-{number}" for number in range(1, settings.name_servers + 1)]


def _queues_told(data: QueueData | None) -> tuple[int, int]:
    """The queues of a broker that a name server tells those who read and those who write."""
    if data is None:
        return 0, 0
    return data.read_queue_nums if data.perm & PERM_READ else 0, data.write_queue_nums if data.perm & PERM_WRITE else 0


def _beliefs(lab: Lab, shop: Any, consumer: Any, settings: KnowsSettings) -> list[tuple[str, tuple[Any, ...]]]:
    """Each observer's queues of each broker, from its own tables."""
    beliefs = []
    for name in _name_servers(settings):
        routes = lab.name_server(name).routes
        held = [routes.queue_data(TOPIC, broker) if broker in routes.brokers else None for broker in BROKERS]
        beliefs.append((name, tuple(_queues_told(route) for route in held)))
    route = shop.client.cluster.routes.topic_route_table.get(TOPIC)
    writable = publish_queues(TOPIC, route) if route else []
    counts = [sum(queue.broker_name == broker for queue in writable) for broker in BROKERS]
    beliefs.append((SHOP, tuple((0, count) for count in counts)))
    owned = [queue for queue in consumer.message_queues if queue.topic == TOPIC]
    counts = [sum(queue.broker_name == broker for queue in owned) for broker in BROKERS]
    beliefs.append((GROUP, tuple((count, 0) for count in counts)))
    return beliefs
