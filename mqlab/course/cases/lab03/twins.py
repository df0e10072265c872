"""lab03.twins: which processes have one client id? Found in what an operator's tool shows of some groups.

    a group of three    10.0.0.3@billing   from 10.0.0.6:50001   ─┐ one id, two processes
                        10.0.0.3@billing   from 10.0.0.7:50001   ─┘
                        10.0.0.4@billing   from 10.0.0.8:50001     the same name on another machine: no twin
                        10.0.0.3@audit     from 10.0.0.9:50001     another name on the same machine: no twin

An id that two groups have is harmless, too: queues are divided within a group.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure, Slip, tuple_of
from mqlab.course.kit.shapes import Difference, difference
from mqlab.course.teach.exercises import Call
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS

GROUPS = ("audit", "billing", "press", "stock")
PAIR = [tuple_of("pair", group=str, client_id=str, addresses=[str])]
PAIR_RULE = (
    "Members of one group whose client_id is the same, two or more, are twins: one tuple for each such id, with the "
    "addresses of all of them"
)
WITHIN_RULE = "Queues are divided within a group: an id that two groups have is not a pair. Look at each group alone"
ADDRESSES_RULE = "The addresses of an id are the client_addr of all members that have it, each with its port"

Members = list[tuple[str, str]]  # client_ip and instance_name of each


def _groups(rng: random.Random) -> dict[str, Members]:
    """The members of each group: three or five, with ids that differ in one half only; some groups have twins."""
    members_of: dict[str, Members] = {}
    shared = f"172.17.0.{rng.randint(2, 9)}"
    with_twins = rng.sample(GROUPS[:-1], 2)
    for group in GROUPS:
        members = [(shared, "app"), (f"10.0.0.{rng.randint(20, 90)}", "app"), (shared, f"app-{rng.randint(2, 9)}")]
        if group in with_twins:
            # The first has two pairs; in the other, three have one id.
            members += rng.sample(members, 2) if group == with_twins[0] else 2 * rng.sample(members, 1)
        rng.shuffle(members)
        members_of[group] = members
    return members_of


def _world(seed: int, groups: dict[str, Members]) -> Lab:
    """All of them online."""

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
        for group, members in groups.items():
            for number, (address, instance) in enumerate(members, 1):
                consumer = lab.push_consumer(group, name=f"{group}-{number}", client_ip=address, instance_name=instance)
                consumer.subscribe("orders", "*")
                consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
                consumer.start()
        lab.run_for("3s")

    return play(story, seed=seed, brokers=2, client={"enable_trace": False})


def _pairs(lab: Lab, groups: Sequence[str]) -> list[tuple[str, str, list[str]]]:
    pairs = []
    for group in groups:
        members = lab.admin.examine_consumer_connection_info(group).connections
        by_id: dict[str, list[str]] = {}
        for member in members:
            by_id.setdefault(member.client_id, []).append(member.client_addr)
        pairs += [(group, client_id, sorted(addresses)) for client_id, addresses in by_id.items() if len(addresses) > 1]
    return sorted(pairs)


def twins_calls(seed: int) -> list[Call]:
    """One world; asked about all groups, and about those without twins."""
    rng = random.Random(f"lab03.twins {seed}")
    groups = _groups(rng)
    lab = _world(seed, groups)
    right = _pairs(lab, GROUPS)
    harmless = [group for group in GROUPS if group not in {pair[0] for pair in right}]
    return [
        Call(admin=lab.admin, groups=list(GROUPS), right=right, about="four groups"),
        Call(admin=lab.admin, groups=harmless, right=[], about="groups without twins"),
    ]


def _sorted(pairs: list[Any]) -> list[Any]:
    return sorted((group, client_id, sorted(addresses)) for group, client_id, addresses in pairs)


def _compared(call: Call, answer: list[Any]) -> Difference | None:
    """Neither the order of the pairs nor that of the addresses matters."""
    return difference(PAIR, call.right, _sorted(answer))


def _members(call: Call, group: str) -> list[Any]:
    return list(call["admin"].examine_consumer_connection_info(group).connections)


def _by(call: Call, part: Callable[[str], str]) -> list[tuple[str, str, list[str]]]:
    """Members of a group that agree in a part of their id, as they are met."""
    twins = []
    for group in call["groups"]:
        members: dict[str, list[Any]] = {}
        for member in _members(call, group):
            members.setdefault(part(member.client_id), []).append(member)
        for same in members.values():
            if len(same) > 1:
                twins.append((group, same[0].client_id, [member.client_addr for member in same]))
    return twins


def _rule(call: Call, answer: list[Any], seen: Difference) -> str:
    """An address of another group's member says what is wrong."""
    for group, _, addresses in answer:
        ours = {member.client_addr for member in _members(call, group)} if group in call["groups"] else set(addresses)
        if not ours.issuperset(addresses) and all(":" in address for address in addresses):
            return WITHIN_RULE
    return ""


def _over_all_groups(call: Call) -> list[tuple[str, str, list[str]]]:
    """One table for all groups: the group is that of the first member of an id."""
    members: dict[str, list[tuple[str, str]]] = {}
    for group in call["groups"]:
        for member in _members(call, group):
            members.setdefault(member.client_id, []).append((group, member.client_addr))
    return [
        (same[0][0], client_id, [address for _, address in same])
        for client_id, same in members.items()
        if len(same) > 1
    ]


def _without_ports(call: Call) -> list[tuple[str, str, list[str]]]:
    pairs = _by(call, lambda client_id: client_id)
    return [
        (group, client_id, [address.partition(":")[0] for address in addresses])
        for group, client_id, addresses in pairs
    ]


TWINS = Pure(
    "lab03.twins",
    "twins(admin, groups)",
    points=3,
    about="groups in a cluster",
    calls=twins_calls,
    returns=PAIR,
    compares=_compared,
    explain=_rule,
    rules={"addresses": ADDRESSES_RULE, "": PAIR_RULE, "number": PAIR_RULE},
    forbids=FORBIDS["lab03.twins"],
    slips=[
        Slip(
            "same machine",
            lambda call: _by(call, lambda client_id: client_id.partition("@")[0]),
            "Several members may run on one machine: the whole client_id must be the same, not its address alone",
        ),
        Slip(
            "same name",
            lambda call: _by(call, lambda client_id: client_id.partition("@")[2]),
            "The name after the @ may be the same on all machines: the whole client_id must be the same",
        ),
        Slip(
            "over all groups",
            _over_all_groups,
            WITHIN_RULE,
            "lab03.one_id_in_the_world",
        ),
        Slip("without ports", _without_ports, ADDRESSES_RULE),
    ],
)
