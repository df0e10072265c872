"""The truth about a day: each incident, the processes behind it, and exactly the messages that it harmed.

Mirrors: a post mortem, written with all facts at hand.

    asked ─▶ the day of each broker, without its bytes ─▶ harm ─▶ one entry per incident, all brokers together

    kind  group  broker  queue_id      what and where; None where it does not apply
    client  clients                    "10.20.0.17:40259" of each process that did it; client only if there is one
    cause                              what went wrong, in a sentence
    start_ms  end_ms                   the trouble
    harm_since_ms  harm_until_ms       the harm: from when the first harmed message was stored (or the first needless
                                       repetition began) until the last one was consumed, given up, or repeated
    harmed  lost  late  twice          [[group, msg_id], ...] sorted, and how many in each way; see harm
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mqlab.data.traffic.broker_day import BrokerDay
from mqlab.data.traffic.clients import address
from mqlab.data.traffic.model import TRACED, Asked
from mqlab.data.traffic.trouble.harm import WAYS, Harm, Harmed
from mqlab.data.traffic.trouble.incident import Incident
from mqlab.data.traffic.trouble.incidents import incidents_of
from mqlab.data.traffic.writing.order_bodies import OrderBodies
from mqlab.data.traffic.writing.store_state import WrittenStore, open_state

CAUSES = {
    "burst": "many times the usual orders came for some minutes",
    "hot_key": "a third of the orders had the same customer",
    "slow_consumer": "the listener took several times as long as usual",
    "failing_consumer": "the listener failed, because what it depends on did",
    "poison_message": "the listener fails with this message at every try",
    "stuck_message": "the listener was called with this message and never returned",
    "inconsistent_tags": "a member joined that subscribes to fewer tags, and the broker takes the latest subscription",
    "wrong_reset": "an operator set the group's offsets back",
    "deploy": "the processes were killed in turn, before they had stored their offsets",
    "killed_listener": "the listener hung, and its process was killed",
    "lost_answer": "the broker's answers were lost, and the sender sent the messages again",
    "skipped": "the group was stopped, and its offsets were then set to the end",
    "trace_gap": "trace messages were lost; the messages themselves were consumed",
    "clock_skew": "the clock of a sender's machine is ahead",
    "campaign": "a campaign had been planned",
    "planned_deploy": "the processes were stopped in turn, after they had stored their offsets",
    "big_customer": "the customer that buys most does so every day",
    "group_off": "the group was switched off on purpose",
    "load_test": "the messages of a load test are refused on purpose",
}


def harm_of(asked: Asked, progress: Callable[[int], object] = lambda orders: None) -> list[dict[str, Any]]:
    """The incidents of a day and their harm, in the order in which they begin; no store is written.

    ``progress`` is called with numbers of orders. Takes about as long as the written day takes without its bytes.

    >>> from mqlab.data.traffic.model import TrafficModel
    >>> (told,) = harm_of(Asked(3_000, 1, 7, TrafficModel(incidents=("wrong_reset",))))
    >>> told["twice"] == len(told["harmed"]) > 0, told["client"]
    (True, None)
    """
    incidents = incidents_of(asked)
    everywhere = {incident: Harmed() for incident in incidents}
    clients: dict[Incident, list[str]] = {incident: [] for incident in incidents}
    quick = replace(asked, model=asked.model.changed(index=False))
    for broker in range(asked.brokers):
        state = open_state(quick, broker, directory="")
        for incident, harmed in zip(state.incidents, _lived(state, progress).of, strict=True):
            everywhere[incident].add(harmed)
            clients[incident] += [address(broker, number) for number in _processes(incident, state)]
    return [_told(incident, everywhere[incident], clients[incident], asked) for incident in incidents]


def _lived(state: WrittenStore, progress: Callable[[int], object]) -> Harm:
    """The harm of a broker's day."""
    harm, done = Harm(state), 0
    for part in BrokerDay(
        state, OrderBodies(state.orders, state.texts, state.broker, state.asked.model.cluster)
    ).slices():
        for number, (rounds, missed) in enumerate(part.groups):
            harm.note(number, rounds, missed, part.messages)
        state.queues.count(part.messages.queue_id)
        progress(part.after_last - done)
        done = part.after_last
    return harm


def _processes(incident: Incident, state: WrittenStore) -> list[int]:
    """The numbers of a broker's processes that did it; none where a setting, a person or the load did."""
    if incident.client is not None:
        return [incident.client]
    if incident.kind == "stuck_message":
        stuck = state.consumers.stuck_client
        return [] if stuck is None else [stuck]
    if incident.member is None:
        return []
    number = next(n for n, group in enumerate(TRACED) if group.name == incident.group)
    killed = incident.kind == "killed_listener"
    members = state.consumers.members[number]
    return members.processes(incident.member, incident.start_ms, incident.end_ms, killed=killed)


def _told(incident: Incident, harmed: Harmed, clients: list[str], asked: Asked) -> dict[str, Any]:
    pairs = sorted(map(list, harmed.pairs()))
    since_ms, until_ms = (harmed.since_ms, harmed.until_ms) if pairs else (incident.start_ms, incident.end_ms)
    return {
        "kind": incident.kind,
        "group": incident.group,
        "broker": None if incident.broker is None else asked.broker_name(incident.broker),
        "queue_id": incident.queue_id,
        "client": clients[0] if len(clients) == 1 else None,
        "clients": clients,
        "cause": CAUSES[incident.kind],
        "decoy": incident.decoy,
        "start_ms": incident.start_ms,
        "end_ms": incident.end_ms,
        "harm_since_ms": since_ms,
        "harm_until_ms": until_ms,
        "harmed": pairs,
        **{way: harmed.counts[way] for way in WAYS},
    }
