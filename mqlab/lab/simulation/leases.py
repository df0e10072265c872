"""Timed messages and a popping group in the random runs: which runs have them, and what must hold there.

Mirrors: nothing of RocketMQ. They are drawn apart from everything else: what a seed meant before, it means still, and a
run with leases is that run with more messages and more members.

    LOST         answered SEND_OK, and no listener was successful with it: POP has no dead letters
    EARLY        handled before its delivery time
    TWICE        nothing failed, and listeners were successful with it twice
    HELD         nothing failed, and it was given out while another lease of it ran
    COUNT        nothing failed, and reconsume_times is not how often it had failed
    LEFT         a lease that nothing ends

RocketMQ promises none of it when a disk fails (a revival that cannot be stored is dropped) or when a broker's clock is
set back (what is due in between waits for the wheel's next turn, a fortnight later): such runs get no leases.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

from mqlab.lab.simulation.calm import Events, is_calm
from mqlab.lab.simulation.notes import Notes
from mqlab.lab.simulation.scene import AUDIT, BILLING, LEASED, LEASING, ORDERS, TAGS
from mqlab.lab.views.histories.lease_verdict import LEASED_TWICE
from mqlab.lab.views.verdict import LOST, SKIPPED, STUCK
from mqlab.lab.world.lab import Lab

SHARE = 0.5
FIRST_NUMBER = 400
MOST_MESSAGES = 12  # a member has as many threads: no message waits for one until its lease is over
DUE_MS = (700, 2_000, 5_500, 14_000, 14_001)
UNSUITED = ("disk_full", "disk_fails")
Row = dict[str, Any]
"""A member or an event of a plan"""


def draw_leases(seed: int, events: list[Row], length_ms: int) -> tuple[list[Row], list[Row]]:
    """More members and more events for the run of a seed, both empty for a run without leases."""
    rng = Random(f"leases for {seed}")
    if rng.random() >= SHARE or not _is_suited(events):
        return [], []
    members = [
        {"name": f"{LEASING}-{number}", "group": LEASING, "batch": 1, "threads": MOST_MESSAGES}
        for number in range(1, rng.randint(1, 2) + 1)
    ]
    more = [_message(rng, FIRST_NUMBER + number, length_ms) for number in range(rng.choice((6, MOST_MESSAGES)))]
    if not is_calm(events) and rng.random() < 0.5:
        for_ms = rng.choice((800, 3_000, 12_000))
        node = rng.choice(members)["name"]
        more.append({"at": rng.randrange(length_ms), "for": for_ms, "do": "kill", "node": node})
    return members, more


def _is_suited(events: list[Row]) -> bool:
    skewed = any(event["do"] == "skew_clock" and event["node"].startswith("broker") for event in events)
    return not skewed and not any(event["do"] in UNSUITED for event in events)


def _message(rng: Random, number: int, length_ms: int) -> Row:
    topic = rng.choices((LEASED, ORDERS), (5, 1))[0]
    event: Row = {"at": rng.randrange(length_ms), "do": "send", "number": number, "topic": topic}
    event |= {"fails": rng.choices((0, 1, 2), (8, 2, 1))[0], "sleep": rng.choice((0, 0, 300, 6_000)), "size": 10}
    event["tag"] = rng.choice(TAGS)
    if topic == ORDERS or rng.random() < 0.5:
        event["due"] = rng.choice(DUE_MS)
    return event


def wrong_leases(lab: Lab, notes: Notes, members: Events, events: Events) -> Iterator[tuple[str, str]]:
    """Broken promises about leases and timed messages: kind, and what is wrong."""
    if not any(member["group"] == LEASING for member in members):
        return
    calls: dict[int, list[tuple[int, int]]] = defaultdict(list)
    done: Counter[int] = Counter()
    for call in sorted(notes.calls, key=lambda call: call.began):
        if call.group == LEASING:
            calls[call.number].append((call.began_ms, call.reconsume_times))
            done[call.number] += call.good
    calm = is_calm(events)
    for number in sorted(calls if calm else ()):
        tries = [again for _, again in calls[number]]
        if done[number] > 1:
            yield "TWICE", f"listeners of {LEASING} were successful with message {number} {done[number]} times"
        if tries != list(range(len(tries))):
            yield "COUNT", f"message {number} came with reconsume_times {tries}"
    yield from early_deliveries(notes, events)
    for lease in lab.leases(LEASING):
        yield "LEFT", f"{lease['message_queue']} {lease['queue_offset']} is on lease until {lease['until_ms']}"
    for anomaly in lab.verify(LEASING, stuck_after="5m"):
        if calm and anomaly.kind == LEASED_TWICE:
            yield "HELD", f"{anomaly.msg_id}: {anomaly.why} (step {anomaly.step})"
        elif anomaly.kind in (LOST, SKIPPED, STUCK) and not anomaly.why.startswith("it was stored, the log ended"):
            yield "VERIFY", f"{LEASING}: {anomaly.kind} {anomaly.msg_id}: {anomaly.why} (step {anomaly.step})"


def early_deliveries(notes: Notes, events: Events) -> Iterator[tuple[str, str]]:
    """Timed messages that a listener got before their time."""
    due_ms = {sent.number: sent.due_ms for sent in notes.sent if sent.due_ms is not None}
    if any(event["do"] == "skew_clock" for event in events):
        return
    for call in notes.calls:
        if call.group in (LEASING, BILLING, AUDIT) and call.began_ms < due_ms.get(call.number, 0):
            early_ms = due_ms[call.number] - call.began_ms
            yield "EARLY", f"{call.group} got message {call.number} {early_ms} ms before its time"
