"""From a seed to a plan: which cluster, which members, which messages, which faults.

Mirrors: nothing of RocketMQ.

What is drawn stays within what RocketMQ promises. A master with slaves loses its process but not its power: its slaves
may have copied what its own disk did not keep, and RocketMQ does not repair that. Without synchronous flushing no power
is cut. A full disk comes with large files alone: RocketMQ deletes the oldest files of a full disk, consumed or not.
"""

from __future__ import annotations

from random import Random
from typing import Any

from mqlab.lab.simulation.leases import draw_leases
from mqlab.lab.simulation.plan import Event, RunPlan
from mqlab.lab.simulation.scene import AUDIT, BILLING, LEDGER, ORDERS, PASSING, STEPS, TAGS

LONGEST_MS = 45_000
KINDS = {
    "kill": 5,
    "power_off": 4,
    "restart": 2,
    "blackout": 1,
    "partition": 3,
    "slow": 2,
    "drop": 3,
    "skew_clock": 2,
    "slow_disk": 2,
    "disk_full": 1,
}
"""Kinds of faults and how often they come. A blackout takes the power of all brokers, a restart is graceful."""


def draw(seed: int) -> RunPlan:
    """The plan of a seed; the same seed gives the same plan."""
    rng = Random(seed)
    world = _world(rng)
    length_ms = rng.choice((8_000, 20_000, LONGEST_MS))
    members = _members(rng)
    events = [*_work(rng, length_ms), *_comings(rng, members, length_ms)]
    # One run in six has no fault: queues in order are handed over while their listeners run.
    if rng.random() < 1 / 6:
        events += _handovers(rng, members, length_ms)
    else:
        events += _faults(rng, world, members, length_ms)
        events += _cuts_while_the_disk_hangs(rng, world, length_ms)
        events += _failing_disks(Random(f"disks of {seed}"), world, length_ms)
    leasing, leases = draw_leases(seed, events, length_ms)
    return RunPlan(seed, world, [*members, *leasing], sorted([*events, *leases], key=lambda event: event["at"]))


def _handovers(rng: Random, members: list[dict[str, Any]], length_ms: int) -> list[Event]:
    """Slow listeners in order, and a member that joins while they run."""
    model = next(member for member in members if member["group"] == LEDGER)
    events: list[Event] = []
    for heir in range(2):
        join_ms = rng.randrange(2_000, length_ms)
        events.append({"at": join_ms, "do": "join", "member": {**model, "name": f"{LEDGER}-heir-{heir}"}})
        for number in range(100 + 10 * heir, 110 + 10 * heir):
            event = {"at": join_ms - rng.randrange(1_500), "do": "send", "number": number, "topic": STEPS, "fails": 0}
            events.append(event | {"sleep": rng.choice((500, 1_000, 2_000)), "key": rng.randrange(4), "size": 0})
    return events


def _cuts_while_the_disk_hangs(rng: Random, world: dict[str, Any], length_ms: int) -> list[Event]:
    """The moment at which a disk's promises count: messages come while it hangs, then the power goes."""
    if not world["sync_flush"] or world["replicas"] or rng.random() < 0.6:
        return []
    begin_ms, node = rng.randrange(length_ms), "broker-a"
    events: list[Event] = [{"at": begin_ms, "for": 2_000, "do": "slow_disk", "node": node}]
    for number in range(200, 206):
        topic = {"topic": ORDERS, "fails": 0, "sleep": 0, "size": rng.choice((10, 900, 6_000)), "tag": rng.choice(TAGS)}
        events.append({"at": begin_ms + rng.randrange(1, 1_000), "do": "send", "number": number, **topic})
    cut = {"at": begin_ms + rng.randrange(500, 1_500), "for": 3_000, "do": "power_off", "node": node}
    return [*events, cut | {"keep": rng.choice((0.0, 0.5))}]


def _failing_disks(rng: Random, world: dict[str, Any], length_ms: int) -> list[Event]:
    """A part that no answer needs: dispatch, flushes and files of tables fail while messages come, and work again."""
    if rng.random() < 0.6:
        return []
    begin_ms, node, lasts_ms = rng.randrange(length_ms), "broker-a", rng.choice((1_500, 6_000, 12_000))
    topic, size = {"topic": ORDERS, "fails": 0, "sleep": 0, "tag": TAGS[0]}, rng.choice((10, 900))
    events: list[Event] = [{"at": begin_ms, "for": lasts_ms, "do": "disk_fails", "node": node}]
    events[0]["at_what"] = rng.choice(("flush", "open", "open"))
    for number in range(300, 306):
        sent_at = begin_ms + rng.randrange(1, lasts_ms + 2_000)
        events.append({"at": sent_at, "do": "send", "number": number, "size": size, **topic})
    return events


def _world(rng: Random) -> dict[str, Any]:
    replicas = rng.choice((0, 0, 1))
    return {
        "brokers": rng.choice((1, 2)),
        "replicas": replicas,
        "name_servers": rng.choice((1, 2)),
        "queues": rng.choice((1, 2, 3)),
        "sync_flush": rng.random() < 0.8,
        "two_copies": bool(replicas) and rng.random() < 0.6,
        "small_files": rng.random() < 0.5,
        "latency": rng.choice((1, 1, 5)),
    }


def _members(rng: Random) -> list[dict[str, Any]]:
    members = []
    for group, most in ((BILLING, 3), (LEDGER, 2), (AUDIT, 1)):
        for number in range(1, rng.randint(1, most) + 1):
            members.append(
                {
                    "name": f"{group}-{number}",
                    "group": group,
                    "batch": rng.choice((1, 1, 3)) if group == BILLING else 1,
                    "threads": rng.choice((1, 4, 20)),
                }
            )
    return members


def _work(rng: Random, length_ms: int) -> list[Event]:
    """Messages of all kinds: plain, delayed, in transactions; some are refused by their listener for a while."""
    events: list[Event] = []
    for number in range(rng.choice((6, 20, 50))):
        event: Event = {"at": rng.randrange(length_ms), "do": "send", "number": number}
        event["topic"] = rng.choices((ORDERS, STEPS, PASSING), (6, 3, 1))[0]
        event["fails"] = rng.choices((0, 1, 2, 99), (14, 2, 1, 1))[0]
        event["sleep"] = rng.choice((0, 0, 0, 20, 500, 2_000))
        event["size"] = rng.choice((0, 10, 900))
        event["tag"] = rng.choice(TAGS)
        if event["topic"] == ORDERS and rng.random() < 0.15:
            event["delay"] = rng.randint(1, 3)
        elif event["topic"] == ORDERS and rng.random() < 0.12:
            event["do"] = "transact"
            event["end"] = rng.choice(("commit", "rollback", "ask: commit", "ask: rollback"))
        elif event["topic"] == STEPS:
            event["key"] = rng.randrange(4)
            event["fails"] = min(event["fails"], 2)
        events.append(event)
    if rng.random() < 0.3:
        events.append({"at": rng.randrange(length_ms), "do": "renew_topic", "topic": PASSING})
    return events


def _comings(rng: Random, members: list[dict[str, Any]], length_ms: int) -> list[Event]:
    """Members that join later, leave in good order, or are killed and come back."""
    events: list[Event] = []
    for number in range(rng.choice((0, 0, 1, 2))):
        model = rng.choice(members)
        name = f"{model['group']}-late-{number}"
        events.append({"at": rng.randrange(length_ms), "do": "join", "member": {**model, "name": name}})
    for group in (BILLING, LEDGER):
        names = [member["name"] for member in members if member["group"] == group]
        if len(names) > 1 and rng.random() < 0.3:
            events.append({"at": rng.randrange(length_ms), "do": "leave", "node": names[-1]})
    return events


def _faults(rng: Random, world: dict[str, Any], members: list[dict[str, Any]], length_ms: int) -> list[Event]:
    masters = [f"broker-{letter}" for letter in "ab"[: world["brokers"]]]
    slaves = [f"{name}-s1" for name in masters] if world["replicas"] else []
    servers = [f"nameserver-{number + 1}" for number in range(world["name_servers"])]
    clients = [member["name"] for member in members]
    events = []
    for _ in range(rng.choice((0, 1, 2, 3, 5, 8))):
        event: Event = {"at": rng.randrange(length_ms), "for": rng.choice((50, 800, 3_000, 12_000, 35_000))}
        event["do"] = rng.choices(tuple(KINDS), tuple(KINDS.values()))[0]
        event["node"] = rng.choice([*masters, *masters, *slaves, *servers, *clients])
        event |= _details(rng, event, world, masters, slaves, [*masters, *slaves, *servers, *clients, "shop-1"])
        events.append(event)
    return events


def _details(
    rng: Random, event: Event, world: dict[str, Any], masters: list[str], slaves: list[str], every: list[str]
) -> Event:
    """What an event of its kind needs besides; a fault outside RocketMQ's promises becomes a weaker one."""
    what, node = event["do"], event["node"]
    disks = [*masters, *slaves]
    if what == "power_off":
        if node in disks and (not world["sync_flush"] or (node in masters and slaves)):
            return {"do": "kill"}
        return {"keep": rng.choice((0.0, 0.5))} if node in disks else {}
    if what == "blackout":
        weaker = not world["sync_flush"] or bool(slaves)
        return {"do": "kill", "node": masters[-1]} if weaker else {"node": masters[0], "keep": rng.choice((0.0, 0.5))}
    if what in ("partition", "drop"):
        other = rng.choice([name for name in every if name != node])
        return {"other": other, "count": rng.randint(1, 4)} if what == "drop" else {"other": other}
    if what == "slow":
        return {"delay": rng.choice((20, 300, 2_000))}
    if what == "skew_clock":
        return {"skew": rng.choice((-5_000, -200, 200, 5_000))}
    if what == "slow_disk":
        return {"node": node if node in disks else rng.choice(masters)}
    if what == "disk_full":
        return {"do": "slow_disk", "node": masters[0]} if world["small_files"] else {"node": rng.choice(masters)}
    return {}
