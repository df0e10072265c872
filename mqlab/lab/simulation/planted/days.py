"""The days of a cluster with a defect: members, messages and faults, drawn from the cluster's name and a number.

Mirrors: nothing of RocketMQ. A day is a small plan of mqlab.lab.simulation: one broker, two topics, three members or
more.

    orders   billing (concurrent): some calls are slow, some refuse a message once, twice or always
    steps    ledger (in order)
    faults   the broker's process is killed, its power is cut, its disk hangs; a member is killed, with its broker or
             without; another member joins
"""

from __future__ import annotations

from random import Random

from mqlab.lab.simulation.plan import Event, RunPlan
from mqlab.lab.simulation.scene import BILLING, LEDGER, ORDERS, STEPS, TAGS

LENGTH_MS = 16_000
MESSAGES = 16
BROKER = "broker-a"
WORLD = {
    "brokers": 1,
    "replicas": 0,
    "name_servers": 1,
    "queues": 2,
    "sync_flush": True,
    "two_copies": False,
    "small_files": False,
    "latency": 1,
}
FAULTS = (
    "kill the broker",
    "cut the power",
    "hang the disk",
    "kill a member",
    "kill a member with its broker",
    "join billing",
    "join ledger",
)


def draw_day(rng: Random, seed: int) -> RunPlan:
    """A day, and the seed of its Lab; the same random numbers give the same day."""
    members = [
        {"name": f"{group}-{number}", "group": group, "batch": 1, "threads": 4}
        for group, number in ((BILLING, 1), (BILLING, 2), (LEDGER, 1))
    ]
    events = [*_messages(rng), *_faults(rng)]
    return RunPlan(seed, dict(WORLD), members, sorted(events, key=lambda event: event["at"]))


def _messages(rng: Random) -> list[Event]:
    events: list[Event] = []
    for number in range(MESSAGES):
        topic = rng.choices((ORDERS, STEPS), (3, 2))[0]
        event: Event = {"at": rng.randrange(LENGTH_MS), "do": "send", "number": number, "topic": topic}
        event["fails"] = rng.choices((0, 1, 2, 99), (10, 3, 1, 2))[0]
        event["sleep"] = rng.choice((0, 20, 700, 2_500))
        event["size"] = rng.choice((10, 300, 900))
        event["tag"] = rng.choice(TAGS)
        if topic == STEPS:
            event |= {"key": rng.randrange(3), "fails": min(event["fails"], 2)}
        events.append(event)
    return events


def _faults(rng: Random) -> list[Event]:
    events: list[Event] = []
    for number, what in enumerate(rng.sample(FAULTS, rng.choice((2, 2, 3, 4)))):
        begin_ms = rng.randrange(2_000, LENGTH_MS)
        if what == "kill the broker":
            events += _while_a_message_fails(rng, begin_ms)
        elif what == "cut the power":
            events.append({"at": begin_ms, "for": 2_500, "do": "power_off", "node": BROKER, "keep": 0.0})
        elif what == "hang the disk":
            events += _while_the_disk_hangs(rng, begin_ms)
        elif what == "kill a member":
            node = rng.choice((f"{BILLING}-1", f"{BILLING}-2", f"{LEDGER}-1"))
            events.append({"at": begin_ms, "for": 1_500, "do": "kill", "node": node})
        elif what == "kill a member with its broker":
            node = rng.choice((f"{BILLING}-1", f"{LEDGER}-1"))
            events.append({"at": begin_ms, "for": 2_500, "do": "kill", "node": BROKER})
            events.append({"at": begin_ms + 100, "for": 3_500, "do": "kill", "node": node})
        else:
            events += _while_one_joins(rng, begin_ms, what.split()[1], number)
    return events


def _while_a_message_fails(rng: Random, at: int) -> list[Event]:
    """Its listener refuses it when the broker is away."""
    event = {"at": at - 1_000, "do": "send", "number": 40, "topic": ORDERS, "fails": 1, "sleep": 2_000}
    return [event | {"size": 10, "tag": TAGS[0]}, {"at": at, "for": 7_000, "do": "kill", "node": BROKER}]


def _while_the_disk_hangs(rng: Random, at: int) -> list[Event]:
    events: list[Event] = [{"at": at, "for": 1_500, "do": "slow_disk", "node": BROKER}]
    for number in range(20, 23):
        event = {"at": at + rng.randrange(1, 1_000), "do": "send", "number": number, "topic": ORDERS, "fails": 0}
        events.append(event | {"sleep": 20, "size": 10, "tag": TAGS[0]})
    if rng.random() < 0.7:
        events.append({"at": at + 1_100, "for": 2_500, "do": "power_off", "node": BROKER, "keep": 0.0})
    return events


def _while_one_joins(rng: Random, at: int, group: str, number: int) -> list[Event]:
    member = {"name": f"{group}-late-{number}", "group": group, "batch": 1, "threads": 4}
    events: list[Event] = [{"at": at, "do": "join", "member": member}]
    topic = ORDERS if group == BILLING else STEPS
    for sent in range(30, 34):
        event = {"at": at - rng.randrange(1_500), "do": "send", "number": sent, "topic": topic, "fails": 0}
        events.append(event | {"sleep": 2_500, "size": 10, "tag": TAGS[0], "key": rng.randrange(3)})
    return events
