"""A group that falls behind, played in a Lab: a curve of traffic, and consumers with threads, cores and a database.

Lab 09 changes the settings with the backlog tank (mqlab.course.widgets.boards.backlog.tank).

    TankSettings     traffic per step of 10 s; instances, threads, cores; T1 computing, T2 waiting; queues, slots, batch
    play_tank        the story in the simulation ─▶ TankRun: every call with its waits, the lag by the second

Cores and waiting are simulated apart: a computing call needs a core of its machine, a waiting one only its thread and,
if the database has slots, one of those. Nothing is computed from a rule: calls are timed where they happen. Left out:
time-outs, failing calls, and disks that get slow.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import UsageError
from mqlab.lab.world.lab import play
from mqlab.rocketmq.wire.message import Message

if TYPE_CHECKING:
    from mqlab.lab.world.lab import Lab

TOPIC, GROUP, DATABASE = "orders", "billing", "database"
STEP_S, STEPS = 10, 12
TRAFFIC_S = STEP_S * STEPS
PLAYED_S = 2 * TRAFFIC_S
MOST_PER_SECOND, MOST_MESSAGES = 60, 3_000
MOST = {
    "instances": 16,
    "threads": 200,
    "cores": 16,
    "compute_ms": 2_000,
    "wait_ms": 5_000,
    "queues": 32,
    "slots": 500,
    "batch": 32,
    "pull_interval_ms": 10_000,
}
LEAST = {"compute_ms": 0, "wait_ms": 0, "slots": 0, "pull_interval_ms": 0}
SEED = 7
# No trace, and few timers: none of them moves a call. Offsets are committed as often as always.
CALM_CLIENT = {"enable_trace": False, "poll_name_server_interval": "10m"}


@dataclass(frozen=True, slots=True)
class TankSettings:
    """What the learner may change; times in ms. Raises UsageError for values out of range.

    ``traffic`` holds the messages a second of each step of 10 s, two minutes in all. A call computes ``compute_ms``
    (T1) on a core for each of its messages and waits ``wait_ms`` (T2) once for the database, with one of its ``slots``
    (0: as many as are asked for). ``threads`` and ``cores`` are those of each instance. ``batch`` is
    ``consume_message_batch_max_size``; only messages of one pull come in one call, and between two pulls of a queue
    there are ``pull_interval_ms``.
    """

    traffic: tuple[int, ...] = (3, 3, 3, 15, 15, 15, 3, 3, 3, 3, 3, 3)
    instances: int = 1
    threads: int = 10
    cores: int = 1
    compute_ms: int = 50
    wait_ms: int = 950
    queues: int = 4
    slots: int = 0
    batch: int = 1
    pull_interval_ms: int = 0

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            _check(name, getattr(self, name), LEAST.get(name, 1), most)
        if len(self.traffic) != STEPS:
            raise UsageError(f"traffic has {STEPS} numbers, one for each {STEP_S} s, got {len(self.traffic)}")
        for rate in self.traffic:
            _check("traffic", rate, 0, MOST_PER_SECOND)
        count = sum(self.traffic) * STEP_S
        if count > MOST_MESSAGES:
            raise UsageError(f"{count} messages are too many to play at once: at most {MOST_MESSAGES}")
        if self.compute_ms + self.wait_ms == 0:
            raise UsageError("a call that takes no time never falls behind", hint='compute="50ms"')

    def as_json(self) -> dict[str, Any]:
        """The settings by name, as JSON has them."""
        return {**asdict(self), "traffic": list(self.traffic)}


def _check(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number, got {value!r}")
    if not least <= value <= most:
        raise UsageError(f"{name} must be between {least} and {most}, got {value}")


class BatchCall(NamedTuple):
    """One call of a listener with ``messages`` messages; all times are ms after the traffic began.

    The first of them stored, begun, ``computed_ms`` its computation over, ``entered_ms`` it had a slot of the database,
    ended.
    """

    instance: str
    stored_ms: int
    begun_ms: int
    computed_ms: int
    entered_ms: int
    ended_ms: int
    messages: int = 1


@dataclass(frozen=True, slots=True)
class TankRun:
    """What happened. ``seconds``: at the end of each second arrived and done in it, lag and the committed lag.

    ``lag`` counts what is stored and not done; ``committed_lag`` is what monitoring shows: committed every 5 s, and up
    to the first message of a queue that is not done. ``owned``: instance -> how many queues. ``left``: not done at the
    end of the play. ``took_ms``: for each message the time from its store to the end of its call, sorted.
    """

    settings: TankSettings
    calls: tuple[BatchCall, ...]
    seconds: tuple[dict[str, int], ...]
    owned: dict[str, int]
    left: int
    took_ms: tuple[int, ...]


@functools.lru_cache(maxsize=64)
def play_tank(settings: TankSettings) -> TankRun:
    """Play the story with these settings; the same settings are played once."""
    seen = _Seen([], [], [])
    lab = play(functools.partial(_falling_behind, settings=settings, seen=seen), seed=SEED, client=CALM_CLIENT)
    return _what_happened(lab, settings, seen)


class _Seen(NamedTuple):
    """What is noted while the story is played: every call, each message's time, and when the traffic began."""

    calls: list[BatchCall]
    took_ms: list[int]
    began: list[int]


def _falling_behind(lab: Lab, settings: TankSettings, seen: _Seen) -> None:
    """The group first, then two minutes of traffic, then as long as it takes, two minutes more at most."""
    lab.create_topic(TOPIC, read_queue_nums=settings.queues, write_queue_nums=settings.queues)
    database = lab.resource(DATABASE, slots=settings.slots) if settings.slots else None

    # 1. What a call does, timed where it happens.
    def listener(messages: Any, context: Any, instance: str) -> str:
        begun_ms = lab.now_ms
        if settings.compute_ms:
            context.compute(settings.compute_ms * len(messages))
        computed_ms = entered_ms = lab.now_ms
        if settings.wait_ms and database is not None:
            with database:
                entered_ms = lab.now_ms
                context.sleep(settings.wait_ms)
        elif settings.wait_ms:
            context.sleep(settings.wait_ms)
        times = (messages[0].store_timestamp, begun_ms, computed_ms, entered_ms, lab.now_ms)
        call = BatchCall(instance, *(ms - seen.began[0] for ms in times))
        seen.calls.append(call._replace(messages=len(messages)))
        seen.took_ms.extend(lab.now_ms - message.store_timestamp for message in messages)
        return "CONSUME_SUCCESS"

    # 2. The members, and a while until every queue has its owner.
    reading = {
        "consume_thread_min": settings.threads,
        "consume_thread_max": settings.threads,
        "consume_message_batch_max_size": settings.batch,
        "pull_interval": settings.pull_interval_ms,
    }
    for number in range(1, settings.instances + 1):
        name = f"{GROUP}-{number}"
        member = lab.push_consumer(GROUP, name=name, cores=settings.cores, **reading)
        member.subscribe(TOPIC)
        member.on_messages(functools.partial(listener, instance=name))
        member.start()
    lab.run_for("25s")

    # 3. Traffic.
    shop = lab.producer("shop")
    seen.began.append(lab.now_ms)
    rates = [(f"{step * STEP_S}s", float(rate)) for step, rate in enumerate(settings.traffic)]
    lab.traffic(shop, rates=[*rates, (f"{TRAFFIC_S}s", 0.0)], message=lambda number: Message(TOPIC, b"a book"))
    lab.run_for(f"{TRAFFIC_S}s")
    for _ in range(TRAFFIC_S, PLAYED_S, STEP_S):
        if sum(row.lag for row in lab.progress(GROUP)) == 0:
            break
        lab.run_for(f"{STEP_S}s")


def _what_happened(lab: Lab, settings: TankSettings, seen: _Seen) -> TankRun:
    calls, began_ms = seen.calls, seen.began[0]
    # 1. What was stored and what was committed, second by second.
    stored = [
        record.now_ms - began_ms for record, values in lab.journal.changes("message.stored") if values["topic"] == TOPIC
    ]
    commits = [
        (record.now_ms - began_ms, values["queue_id"], values["queue_offset"])
        for record, values in lab.journal.changes("offset.committed")
        if values["group"] == GROUP and values["topic"] == TOPIC
    ]
    length = (lab.now_ms - began_ms) // 1000
    arrived = Counter(ms // 1000 for ms in stored)
    done: Counter[int] = Counter()
    for call in calls:
        done[call.ended_ms // 1000] += call.messages

    # 2. Both lags: of what is not done, and of what is not committed.
    seconds, lag, committed, next_commit = [], 0, dict.fromkeys(range(settings.queues), 0), 0
    total = 0
    for second in range(length):
        lag += arrived[second] - done[second]
        total += arrived[second]
        while next_commit < len(commits) and commits[next_commit][0] < (second + 1) * 1000:
            committed[commits[next_commit][1]] = commits[next_commit][2]
            next_commit += 1
        seconds.append(
            {
                "second": second + 1,
                "arrived": arrived[second],
                "done": done[second],
                "lag": lag,
                "committed_lag": total - sum(committed.values()),
            }
        )
    owned = Counter(
        handle.name
        for handle in lab.handles.values()
        if handle.role == "consumer"
        for queue in handle.node.process_queues
        if queue.topic == TOPIC
    )
    names = [f"{GROUP}-{number}" for number in range(1, settings.instances + 1)]
    owners = {name: owned[name] for name in names}
    return TankRun(settings, tuple(calls), tuple(seconds), owners, lag, tuple(sorted(seen.took_ms)))
