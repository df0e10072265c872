"""Two readers of one queue, played in a Lab: one whose pulls the broker holds, one that asks every n milliseconds.

Lab 06 changes the settings with the long-poll scope (mqlab.course.widgets.boards.long_poll.scope).

    PollSettings     rate of arrivals, suspend time, batch, latency of the network, interval of the naive one, rare tag
    play_polls       the story in the simulation ─▶ PollRun: arrivals with both latencies, pulls, polls

The first reader is a lite pull consumer: RocketMQ's push consumer runs the same loop, with 15 s as a constant. Nothing
is computed from a rule: all times are those of frames in the journal. Left out: several queues, and a listener.
"""

from __future__ import annotations

import contextlib
import functools
import random
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from mqlab.errors import LimitReached, UsageError
from mqlab.lab.views.pulls import Pull, pulls
from mqlab.lab.world.lab import play
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.parts import OwnParts
    from mqlab.lab.world.lab import Lab

TOPIC, RARE, COMMON = "orders", "rare", "common"
HELD_GROUP, NAIVE_GROUP = "held", "asking"
SPAN_MS, DRAIN_MS = 30_000, 30_000
MOST_PER_SECOND, MOST_BATCH, MOST_RARE = 20, 32, 100
LEAST_INTERVAL_MS, LONGEST_MS, MOST_LATENCY_MS = 20, 30_000, 500
SEED = 304  # of its arrivals at 0.1 a second one comes after 19 s: a hold ends before
CALM_CLIENT = {"enable_trace": False, "poll_name_server_interval": "10m"}


@dataclass(frozen=True, slots=True)
class PollSettings:
    """What the learner may change; times in ms. Raises UsageError for values out of range.

    ``rate`` is the mean of arrivals a second (0.1 to 20), ``suspend_ms`` how long the broker may hold a pull,
    ``batch`` the most messages of one answer, ``latency_ms`` one way through the network, ``interval_ms`` how often
    the naive reader asks. ``rare`` n: both want the tag of every n-th message only; 0: they want all.
    """

    rate: float = 1.0
    suspend_ms: int = 15_000
    batch: int = 32
    latency_ms: int = 1
    interval_ms: int = 1_000
    rare: int = 0

    def __post_init__(self) -> None:
        ranges = {
            "rate": (0.1, MOST_PER_SECOND),
            "suspend_ms": (1, LONGEST_MS),
            "batch": (1, MOST_BATCH),
            "latency_ms": (0, MOST_LATENCY_MS),
            "interval_ms": (LEAST_INTERVAL_MS, LONGEST_MS),
            "rare": (0, MOST_RARE),
        }
        for name, (least, most) in ranges.items():
            value = getattr(self, name)
            whole = name == "rate" or isinstance(value, int)
            if isinstance(value, bool) or not isinstance(value, int | float) or not whole:
                raise UsageError(f"{name} must be a number, got {value!r}")
            if not least <= value <= most:
                raise UsageError(f"{name} must be between {least} and {most}, got {value}")

    def as_json(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PollRun:
    """What happened. Times are ms after the traffic began, which lasts ``SPAN_MS``.

    ``arrivals``: offset, tag, wanted, stored_ms, and for both readers the ms until it was with the client (held_ms,
    naive_ms; None: not wanted, or not yet). ``held`` and ``naive`` are the pulls that were under way in that time.
    """

    settings: PollSettings
    arrivals: tuple[dict[str, Any], ...]
    held: tuple[Pull, ...]
    naive: tuple[Pull, ...]

    def requests(self, reader: tuple[Pull, ...]) -> int:
        """How many pulls a reader began while the traffic lasted."""
        return sum(0 <= pull.asked_ms < SPAN_MS for pull in reader)


@dataclass(slots=True)
class _Asking:
    """The naive reader: where it is, and whether its last pull is still under way."""

    offset: int = 0
    waits: bool = False


@functools.lru_cache(maxsize=64)
def play_polls(settings: PollSettings) -> PollRun:
    """Play the story with these settings; the same settings are played once."""
    return play_polls_on(None, settings)


def play_polls_on(parts: OwnParts | None, settings: PollSettings) -> PollRun:
    """Plays the story on a learner's parts, such as MyPulls in the broker. Raises BrokenPart for one that is wrong."""
    began: list[int] = []
    network = {"latency": settings.latency_ms}
    story = functools.partial(_two_readers, settings=settings, began=began)
    lab = play(story, seed=SEED, client=CALM_CLIENT, network=network, parts=parts)
    return _what_happened(lab, settings, began[0])


def _two_readers(lab: Lab, settings: PollSettings, began: list[int]) -> None:
    """Both readers wait at the end of the queue; then messages arrive at random moments for half a minute."""
    # 1. One queue, and the reader whose pulls are held.
    lab.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
    tag = RARE if settings.rare else "*"
    shop = lab.producer("shop")
    queue = shop.fetch_publish_message_queues(TOPIC)[0]
    # No program polls the messages out of its cache, so its limit must be out of the way.
    held = lab.lite_pull_consumer(
        HELD_GROUP,
        name=HELD_GROUP,
        pull_batch_size=settings.batch,
        broker_suspend_max_time_millis=settings.suspend_ms,
        consumer_timeout_millis_when_suspend=LONGEST_MS + 30_000,
        pull_threshold_for_all=1_000_000,
        pull_threshold_for_queue=10_000,
    )
    held.set_sub_expression_for_assign(TOPIC, tag)
    held.start()
    held.assign([queue])
    lab.run_for("5s")

    # 2. The one that asks: never while its last pull is under way, so that it reads nothing twice.
    naive = lab.pull_consumer(NAIVE_GROUP, name=NAIVE_GROUP)
    asking = _Asking()

    def answered(result: Any) -> None:
        asking.waits, asking.offset = False, result.next_begin_offset

    def ask() -> None:
        if not asking.waits:
            asking.waits = True
            naive.pull_async(queue, tag, asking.offset, settings.batch).then(answered)

    # 3. Both begin; the story ends when both have all that they want, or after as long again.
    began.append(lab.now_ms)
    since_ms = lab.now_ms - lab.began_ms
    left = dict.fromkeys((HELD_GROUP, NAIVE_GROUP), _send(lab, shop, settings, since_ms))

    def look(record: Any, change: Any) -> None:
        if change.kind == "message.pulled":
            left[change.values["group"]] -= change.values["messages"]

    lab.world.watchers.append(look)
    for asks_ms in range(0, SPAN_MS + DRAIN_MS, settings.interval_ms):
        lab.at(since_ms + asks_ms, ask)
    lab.run_for(SPAN_MS)
    with contextlib.suppress(LimitReached):
        lab.run_until(lambda: not any(left.values()), limit=DRAIN_MS)
    lab.world.watchers.remove(look)


def _send(lab: Lab, shop: Any, settings: PollSettings, since_ms: int) -> int:
    """Messages at random moments (even ones could happen to fit an interval); the number of those that are wanted."""
    draw = random.Random(SEED)
    at_ms, number, wanted = draw.expovariate(settings.rate) * 1000, 0, 0
    while at_ms < SPAN_MS:
        number += 1
        is_rare = settings.rare > 0 and number % settings.rare == 0
        wanted += is_rare or not settings.rare
        message = Message(TOPIC, b"a book", tags=RARE if is_rare else COMMON, keys=f"order-{number}")
        lab.at(since_ms + int(at_ms), functools.partial(shop.send_async, message))
        at_ms += draw.expovariate(settings.rate) * 1000
    return wanted


def _what_happened(lab: Lab, settings: PollSettings, start_ms: int) -> PollRun:
    # 1. The pulls of both readers, their times from the beginning of the traffic on.
    readers = []
    for group in (HELD_GROUP, NAIVE_GROUP):
        every = [_since(pull, start_ms) for pull in pulls(lab.journal, group)]
        readers.append(tuple(pull for pull in every if pull.answered_ms is None or pull.answered_ms >= 0))
    came = [{offset: pull.answered_ms for pull in reader for offset in pull.found} for reader in readers]

    # 2. The messages, as they are in the queue.
    arrivals = []
    for message in lab.store().messages(topic=TOPIC):
        stored_ms, offset = message.store_timestamp - start_ms, message.queue_offset
        held_ms, naive_ms = (answers.get(offset) for answers in came)
        arrivals.append(
            {
                "offset": offset,
                "tag": message.tags,
                "wanted": not settings.rare or message.tags == RARE,
                "stored_ms": stored_ms,
                "held_ms": None if held_ms is None else held_ms - stored_ms,
                "naive_ms": None if naive_ms is None else naive_ms - stored_ms,
            }
        )
    return PollRun(settings, tuple(arrivals), *readers)


def _since(pull: Pull, start_ms: int) -> Pull:
    """The same pull with times from the beginning of the traffic on."""
    left_ms = None if pull.left_ms is None else pull.left_ms - start_ms
    answered_ms = None if pull.answered_ms is None else pull.answered_ms - start_ms
    asked_ms, arrived_ms = pull.asked_ms - start_ms, pull.arrived_ms - start_ms
    return replace(pull, asked_ms=asked_ms, arrived_ms=arrived_ms, left_ms=left_ms, answered_ms=answered_ms)
