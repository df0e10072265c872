"""Plans for a learner's own broker: of what is drawn, that which its parts are asked to do.

    on_own_parts(draw(17))    one master, no slaves, billing and audit, sends, crashes and bad networks

Transactions, orderly and popping groups, delays and deleted topics are mqlab's own business; a plan without them stays
a plan.
"""

from __future__ import annotations

from dataclasses import replace

from mqlab.lab.simulation.plan import Event, RunPlan
from mqlab.lab.simulation.scene import AUDIT, BILLING, MINE, ORDERS

ALONE = {"brokers": 1, "replicas": 0, "name_servers": 1, "two_copies": False, "small_files": False, "sync_flush": True}
DOES = ("send", "kill", "power_off", "partition", "slow", "drop", "join", "leave")


def on_own_parts(plan: RunPlan) -> RunPlan:
    """The plan as it is run on the parts in the folder mybroker."""
    members = [member for member in plan.members if member["group"] in (BILLING, AUDIT)]
    names = {"broker-a", "nameserver-1", "shop-1", *(member["name"] for member in members)}
    events = [event for event in plan.events if _fits(event, names)]
    return replace(plan, world={**plan.world, **ALONE, MINE: True}, members=members, events=events)


def _fits(event: Event, names: set[str]) -> bool:
    if event["do"] == "send":
        return bool(event["topic"] == ORDERS and event.keys().isdisjoint(("delay", "due")))
    if event["do"] == "join":
        fits = event["member"]["group"] in (BILLING, AUDIT)
        names |= {event["member"]["name"]} if fits else set()
        return fits
    return event["do"] in DOES and {event.get("node", "broker-a"), event.get("other", "broker-a")} <= names
