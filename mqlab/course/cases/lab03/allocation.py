"""Lab 03's exercises in which a learner writes RocketMQ's own strategies: blocks, cards, a ring of hashes.

    average(queues, members, me)               AllocateMessageQueueAveragely
    circle(queues, members, me)                AllocateMessageQueueAveragelyByCircle
    ring(queues, members, me, virtual_nodes)   AllocateMessageQueueConsistentHash

What is right is what RocketMQ's classes answered (vectors); graded are groups that no file of the release has.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab03 import wrong_divisions as wrong
from mqlab.course.cases.lab03.vectors import BROKERS, Vector, client_id, drawn, owners_of, vectors
from mqlab.course.kit import ANY, OneOf, Pure, Slip
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.wire.message import MessageQueue

BLOCK_RULE = (
    "With AVG each member gets a block of neighbours: as many queues as the division gives, and the first members one "
    "more while there is a remainder"
)
CIRCLE_RULE = "With AVG_BY_CIRCLE queue number k belongs to member number k % (number of members)"
RING_RULE = (
    "A queue belongs to the first point of the ring whose hash is not below the queue's own; after the last "
    "point the ring begins again"
)
STRANGER_RULE = "A member that is not in the list (its heartbeat has not arrived yet) gets nothing: return []"
ORDER_RULE = "These are the right queues in another order: keep the order in which the queues were given"
CALLS = 5
AT_A_POINT = (
    ("10.0.0.4@1454", "orders-54761"),
    ("10.0.0.20@1382", "orders-52585"),
    ("10.0.0.33@1021", "orders-2674"),
    ("10.0.0.105@1344", "orders-8034"),
    ("10.0.0.167@1218", "orders-40424"),
)
"""A member and a topic: one of its first three points has the very hash of one of the topic's first four queues."""
PUBLIC_SEEDS = (1, 2)


def _place(call: Call, seen: object) -> str:
    queues, members = len(call["queues"]), len(call["members"])
    words = f"{queues} queue{'s' if queues != 1 else ''}, {members} member{'s' if members != 1 else ''}"
    words += f", asked for {call['me']}"
    return f"{call.about}: {words}" if call.about else words


def _shown(part: str, value: Any) -> object:
    """Queues as broker and number: the topic is the same in all of them."""
    if not isinstance(value, list):
        return value
    return [f"{queue.broker_name}/{queue.queue_id}" if isinstance(queue, MessageQueue) else queue for queue in value]


def calls_of(strategy: str, chosen: Sequence[Vector], rng: random.Random, with_stranger: bool = True) -> list[Call]:
    """Calls of the first, the last and another member of each vector, and one of a member that is not in the list."""
    calls = []
    for vector in chosen:
        asking = dict.fromkeys((vector.members[0], vector.members[-1], rng.choice(vector.members)))
        calls += [_call(strategy, vector, member, "") for member in asking]
    if with_stranger:
        # In this vector every member has queues, so no share is like that of a stranger.
        full = next((vector for vector in chosen if uneven(vector)), chosen[0])
        calls.append(_call(strategy, full, "10.0.9.9@not-there-yet", "a member that the broker does not know"))
    return calls


def _call(strategy: str, vector: Vector, me: str, about: str) -> Call:
    arguments: dict[str, Any] = {"queues": list(vector.queues), "members": list(vector.members), "me": me}
    if strategy == "CONSISTENT_HASH":
        arguments["virtual_nodes"] = vector.virtual_nodes
    return Call(right=vector.mine(strategy, me), about=about, **arguments)


def uneven(vector: Vector) -> bool:
    """At least two queues for each member, and the division leaves a remainder."""
    share, extra = divmod(len(vector.queues), len(vector.members))
    return len(vector.members) > 2 and share > 1 and extra > 0


def crowded(vector: Vector) -> bool:
    """Fewer queues than members."""
    return len(vector.queues) < len(vector.members)


def from_vectors(strategy: str) -> Callable[[int], list[Call]]:
    """Calls of a seed: some vectors that leave a remainder, one with fewer queues than members, some of any kind."""

    def drawn(seed: int) -> list[Call]:
        rng = random.Random(f"lab03 {strategy} {seed}")
        known = vectors() if seed in PUBLIC_SEEDS else unknown(rng)
        chosen = rng.sample([vector for vector in known if uneven(vector)], 3)
        chosen += rng.sample([vector for vector in known if crowded(vector)], 1)
        chosen += rng.sample(known, CALLS - len(chosen))
        chosen.sort(key=lambda vector: len(vector.queues))  # what is told first should be small
        calls = calls_of(strategy, chosen, rng)
        if strategy != "CONSISTENT_HASH":
            return calls
        return [*calls, _around_the_end(known, rng), _at_a_point(rng)]

    return drawn


def unknown(rng: random.Random) -> tuple[Vector, ...]:
    """As many vectors as the release has, and none of them."""
    return tuple(drawn(rng) for _ in vectors())


def _around_the_end(known: tuple[Vector, ...], rng: random.Random) -> Call:
    """A member that owns a queue after the last point of the ring."""
    vector, owner = rng.choice(_wrapped(known))
    return _call("CONSISTENT_HASH", vector, owner, "a queue after the last point")


def _at_a_point(rng: random.Random) -> Call:
    """A member one of whose points has the hash of a queue, which the next point would not give it."""
    owner, topic = rng.choice(AT_A_POINT)
    queues = tuple(MessageQueue(topic, BROKERS[0], number) for number in range(4))
    while True:
        members = tuple(sorted({owner, *(client_id(rng) for _ in range(3))}))
        points = sorted((wrong.first_four(f"{member}-{k}"), member) for member in members for k in range(3))
        hashes = {wrong.first_four(str(queue)) for queue in queues}
        number = next(number for number, (point, _) in enumerate(points) if point in hashes)
        if points[(number + 1) % len(points)][1] != owner:
            break
    vector = Vector(queues, members, 3, owners_of(queues, members, 3))
    return _call("CONSISTENT_HASH", vector, owner, "a queue with the hash of a point")


def _wrapped(known: tuple[Vector, ...]) -> list[tuple[Vector, str]]:
    pairs = []
    for vector in known:
        last = max(wrong.first_four(f"{member}-{k}") for member in vector.members for k in range(vector.virtual_nodes))
        for queue, owner in zip(vector.queues, vector.owners["CONSISTENT_HASH"], strict=True):
            if wrong.first_four(str(queue)) > last and len(vector.members) > 1:
                pairs.append((vector, owner))
    return pairs


def _is_reordered(call: Call, answer: Any) -> bool:
    return isinstance(answer, list) and answer != call.right and sorted(answer) == sorted(call.right)


def _explained(rule: str) -> Callable[[Call, Any, Any], str]:
    def explain(call: Call, answer: Any, seen: Any) -> str:
        if call["me"] not in call["members"]:
            return STRANGER_RULE
        return ORDER_RULE if _is_reordered(call, answer) else rule

    return explain


def _slip(name: str, would: Callable[[Call], Any], says: str, belief: str = "") -> Slip:
    """A slip whatever a member gets that is not in the list: who is wrong about that as well is told so after this."""

    def would_here(call: Call) -> Any:
        value = would(call)
        values = value if isinstance(value, OneOf) else (value,)
        return value if call["me"] in call["members"] else OneOf((*values, ANY))

    return Slip(name, would_here, says, belief)


AVERAGE = Pure(
    "lab03.average",
    "average(queues, members, me)",
    points=2,
    about="answers of AllocateMessageQueueAveragely",
    calls=from_vectors("AVG"),
    seeds=PUBLIC_SEEDS,
    returns=[MessageQueue],
    rules=BLOCK_RULE,
    explain=_explained(BLOCK_RULE),
    place_of=_place,
    shows=_shown,
    forbids=FORBIDS["lab03.average"],
    slips=[
        _slip(
            "dealt",
            wrong.dealt,
            "These queues are dealt one by one, which is AVG_BY_CIRCLE. " + BLOCK_RULE,
            "lab03.one_by_one",
        ),
        _slip(
            "rest to the last",
            wrong.rest_to_the_last,
            "The last member does not take the whole remainder: the first members get one queue more each",
        ),
        _slip(
            "last have more",
            wrong.last_ones_have_more,
            "The members with one more queue are the first ones of the list; here it is others that have more",
        ),
        _slip(
            "rest to nobody",
            wrong.rest_to_nobody,
            "Queues are left over that no member reads: also hand out the remainder of the division",
        ),
        _slip(
            "rounded up",
            wrong.rounded_up,
            "Only as many members as the remainder says get one more. If all get it, the queues run out too early",
        ),
        _slip(
            "extra at the end",
            wrong.extra_at_the_end,
            "A member's queues are one block without a gap: its additional queue comes directly after its others",
        ),
    ],
)

CIRCLE = Pure(
    "lab03.circle",
    "circle(queues, members, me)",
    points=2,
    about="answers of AllocateMessageQueueAveragelyByCircle",
    calls=from_vectors("AVG_BY_CIRCLE"),
    seeds=PUBLIC_SEEDS,
    returns=[MessageQueue],
    rules=CIRCLE_RULE,
    explain=_explained(CIRCLE_RULE),
    place_of=_place,
    shows=_shown,
    forbids=FORBIDS["lab03.circle"],
    slips=[
        _slip("blocks", wrong.in_blocks, "This is a block of neighbours, which is AVG. " + CIRCLE_RULE),
        _slip(
            "again for each broker",
            wrong.anew_for_each_broker,
            "Dealing does not begin again with each broker: the list of all queues is dealt once, and a queue's number "
            "in it counts, not its queue_id, which begins at 0 on each broker",
        ),
        _slip("shifted", wrong.shifted_by_one, "Members are counted from 0: the first one gets the first queue"),
    ],
)

RING = Pure(
    "lab03.ring",
    "ring(queues, members, me, virtual_nodes)",
    points=4,
    about="answers of AllocateMessageQueueConsistentHash",
    calls=from_vectors("CONSISTENT_HASH"),
    seeds=PUBLIC_SEEDS,
    returns=[MessageQueue],
    rules=RING_RULE,
    explain=_explained(RING_RULE),
    place_of=_place,
    shows=_shown,
    forbids=FORBIDS["lab03.ring"],
    slips=[
        _slip(
            "one point",
            wrong.one_point,
            'A member is on the ring virtual_nodes times: hash f"{member}-{k}" for k = 0, 1, …',
            "lab03.one_point",
        ),
        _slip("point before", wrong.point_before, "This is the point before the queue. " + RING_RULE),
        _slip(
            "no wrap",
            wrong.no_wrap,
            "Queues after the last point have no owner here: the ring begins again, so they belong to its first",
        ),
        _slip("nodes from one", wrong.nodes_from_one, "The virtual nodes of a member are numbered from 0"),
        _slip(
            "other names",
            wrong.other_names,
            'A virtual node is the hash of f"{member}-{k}", with a hyphen between the id and the number',
        ),
        _slip(
            "always ten", wrong.always_ten, "Ten is the default of RocketMQ; here virtual_nodes says how many there are"
        ),
        _slip(
            "another piece",
            wrong.another_piece,
            "The hash is the first four bytes of the MD5 digest, as a big-endian number",
        ),
        _slip(
            "another key",
            wrong.queue_by_its_repr,
            "A queue's key is str(queue), exactly as RocketMQ writes it: MessageQueue [topic=…, brokerName=…, "
            "queueId=…]",
        ),
    ],
)
