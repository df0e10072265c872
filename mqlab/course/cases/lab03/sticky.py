"""lab03.sticky: the learner's own strategy, judged by long histories and inside real consumers.

    sticky(queues, members) -> {member: its queues}     each member calls it alone, with equal sorted lists

    1  ten histories of 40 joins and leaves, 32 or 64 queues, 2 to 8 members    even after each change; few moves
    2  the same lists once more, in another order                               the same answers: no memory
       the last one in another process                                          the same answer: no hash() of a text
    3  a group of real consumers: joins, a leave, a death                       one owner each, even, nothing lost

AVG moves about 1.6 times what it must, AVG_BY_CIRCLE 2.7 times; the hash ring moves little and is far from even.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.counts import counted
from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.cases.lab03.histories import client_id, had_to_move, moved, walk
from mqlab.course.kit import World
from mqlab.course.kit.calls import marked
from mqlab.course.kit.days import Day, Does, Played
from mqlab.course.teach.exercises import Call, Finding
from mqlab.course.teach.lives import elsewhere
from mqlab.durations import calendar
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.message import Message, MessageQueue

GROUP = "billing"
HISTORIES, CHANGES = 10, 40
BOUND = 1.3
SETTLED = "25s"  # a member that was not notified looks every 20 s
FORM_RULE = "sticky returns a dictionary: each member of the list, and the list of the queues it gets"
MEMBERS_RULE = "The dictionary has an entry for each member of the list, even for one that gets no queue"
TWICE_RULE = "Every queue has one owner: this one is given to two members"
NOBODY_RULE = "Every queue has an owner: this one has none"
FOREIGN_RULE = "Only queues of the list can be given out"
EVEN_RULE = "After each change the members' numbers of queues differ by at most one"
MOVES_RULE = (
    f"Over all histories, at most {BOUND} times as many queues may change their owner as had to: a member "
    "that stays should keep what it has, even if another joins or leaves before it in the list"
)
MEMORY_RULE = (
    "Each member computes alone, in a process of its own that may have started a minute ago: the same two lists must "
    "give the same answer, whatever was asked before. An answer with a memory differs from member to member"
)
HASH_RULE = (
    "Each member computes in a process of its own. Asked in another process, this answer gives other owners, so a "
    "queue has two owners or none. hash() of a text differs from process to process, hashlib and zlib.crc32 do not"
)
LAB_RULE = "In the group of consumers: once a change has settled, each queue is read by one member, and shares are even"
LOST_RULE = "In the group of consumers every message must be delivered"


class Faulty(Exception):
    """The answer's dictionary cannot be used."""

    def __init__(self, rule: str, expected: object, found: object) -> None:
        super().__init__(rule)
        self.rule, self.expected, self.found = rule, expected, found


def owners(answer: Any, queues: Sequence[MessageQueue], members: Sequence[str]) -> dict[MessageQueue, str]:
    """Queue -> member, from the answer's dictionary. Faulty says what is wrong with it."""
    if not isinstance(answer, Mapping) or not all(isinstance(share, list | tuple) for share in answer.values()):
        raise Faulty(FORM_RULE, "{member: [queue, …], …}", answer)
    if set(answer) != set(members):
        raise Faulty(MEMBERS_RULE, sorted(members), sorted(map(str, answer)))
    owner_of: dict[MessageQueue, str] = {}
    known = set(queues)
    for member, mine in answer.items():
        for queue in mine:
            if not isinstance(queue, MessageQueue) or queue not in known:
                raise Faulty(FOREIGN_RULE, "queues of the list", queue)
            if queue in owner_of:
                raise Faulty(TWICE_RULE, owner_of[queue], f"{queue!r}: {owner_of[queue]} and {member}")
            owner_of[queue] = member
    missing = [queue for queue in queues if queue not in owner_of]
    if missing:
        raise Faulty(NOBODY_RULE, "an owner", f"{missing[0]!r}: nobody")
    return owner_of


@dataclass(slots=True)
class StickyDay(Played):
    """The day: what the histories showed, and what the consumers owned after each change."""

    finding: Finding | None = None
    moved: int = 0
    needed: int = 0
    queues: int = 0
    settled: list[tuple[int, str, dict[str, list[int]]]] = field(default_factory=list)


class Strategy:
    """The learner's function as a strategy of a consumer."""

    name = "STICKY"

    def __init__(self, sticky: Any) -> None:
        self._sticky = sticky

    def allocate(
        self, group: str, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """This member's queues."""
        owner_of = owners(self._sticky(list(queues), list(client_ids)), queues, client_ids)
        return [queue for queue, owner in owner_of.items() if owner == client_id]


def _played_histories(seed: int) -> Does:
    def play(day: StickyDay) -> None:
        rng = random.Random(f"lab03.sticky {seed}")
        for number in range(1, HISTORIES + 1):
            if day.finding is None:
                count = rng.choice((32, 64))
                queues = [MessageQueue("orders", "broker-a", queue_id) for queue_id in range(count)]
                _one_history(day, number, queues, list(walk(rng, CHANGES)))

    return Does(play)


def _one_history(day: StickyDay, number: int, queues: list[MessageQueue], moments: list[list[str]]) -> None:
    """Ask for each moment; then ask for some of them again."""
    answered: list[dict[MessageQueue, str]] = []
    for change, members in enumerate(moments):
        where = f"history {number} of {len(queues)} queues, after {change} changes, {len(members)} members"
        owner_of = _asked(day, queues, members, where)
        if owner_of is None:
            return
        numbers = Counter(dict.fromkeys(members, 0))
        numbers.update(owner_of.values())
        if max(numbers.values()) - min(numbers.values()) > 1:
            found_counts = [numbers[member] for member in members]
            day.finding = Finding(EVEN_RULE, where, _even(len(queues), len(members)), found_counts)
            return
        if answered:
            day.moved += moved(answered[-1], owner_of)
            day.needed += had_to_move(answered[-1], members)
        answered.append(owner_of)
    # A function of the two lists alone answers a second time as it did the first time.
    for change in (len(moments) // 2, 1, len(moments) - 1):
        again = _asked(day, queues, moments[change], f"history {number}, change {change} asked once more")
        if again is not None and again != answered[change]:
            changed = moved(answered[change], again)
            where = f"history {number}, the members after {change} changes, asked once more"
            day.finding = Finding(
                MEMORY_RULE,
                where,
                "the same owners",
                counted(changed, "queues have another owner", "queue has another owner"),
            )
        if day.finding is not None:
            return
    if number == 1:
        _asked_elsewhere(day, queues, moments[-1], answered[-1])


def _asked_elsewhere(
    day: StickyDay, queues: list[MessageQueue], members: list[str], here: dict[MessageQueue, str]
) -> None:
    """Ask the answer of another process for lists that were answered in this one."""
    about = f"{len(queues)} queues, {len(members)} members, asked in another process"
    there = _asked(day, queues, members, about, elsewhere(day.answers["sticky"]))
    if there is not None and there != here:
        actual = counted(moved(here, there), "queues have another owner", "queue has another owner")
        day.finding = Finding(HASH_RULE, about, "the same owners", actual)


def _even(queues: int, members: int) -> list[int]:
    share, extra = divmod(queues, members)
    return [share + (number < extra) for number in range(members)]


def _asked(
    day: StickyDay, queues: list[MessageQueue], members: list[str], where: str, sticky: Any = None
) -> dict[MessageQueue, str] | None:
    """What the answer says to these lists; None if it is faulty, and then the day has the finding."""
    call = Call(queues=list(queues), members=list(members), about=where)
    with marked(call):
        answer = (sticky or day.answers["sticky"])(list(queues), list(members))
    try:
        return owners(answer, queues, members)
    except Faulty as faulty:
        day.finding = Finding(faulty.rule, where, faulty.expected, faulty.found)
        return None


def day(seed: int) -> Day:
    """The histories; then a group of consumers with the learner's strategy, through joins, a leave and a death."""
    rng = random.Random(f"lab03.sticky consumers {seed}")
    queues = rng.choice((8, 12))
    events = ["join", "leave", "die"]
    rng.shuffle(events)
    events = ["join", *events, "join"]
    return Day((_played_histories(seed), Does(lambda day: _group(day, queues, events, rng))), kind=StickyDay)


def _group(day: StickyDay, queues: int, events: Sequence[str], rng: random.Random) -> None:
    """Nothing is played if the histories were wrong already."""
    if day.finding is not None or day.moved > BOUND * day.needed:
        return
    lab, day.queues = day.lab, queues
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    names = [f"{GROUP}-{number}" for number in range(1, 10)]
    rng.shuffle(names)
    present: list[str] = []

    def join() -> str:
        present.append(names.pop())
        address = client_id(rng, 0).partition("@")[0]
        consumer = lab.push_consumer(
            GROUP, name=present[-1], client_ip=address, allocate_message_queue_strategy=Strategy(day.answers["sticky"])
        )
        consumer.subscribe("orders", "*")
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
        return f"{present[-1]} has joined"

    def leave() -> str:
        gone = present.pop(rng.randrange(len(present)))
        lab.node_handle(gone).shutdown()
        return f"{gone} has left"

    def die() -> str:
        gone = present.pop(rng.randrange(len(present)))
        lab.kill(gone)
        return f"{gone} was killed"

    join()
    join()
    for event in events:
        about = {"join": join, "leave": leave, "die": die}[event]()
        _send(day, queues)
        lab.run_for(SETTLED)
        day.settled.append((lab.now_ms, about, {name: _owned(day, name) for name in present}))
    _send(day, queues)
    lab.run_for(SETTLED)


def _send(day: StickyDay, count: int) -> None:
    shop = day.producer("shop")
    for _ in range(count):
        sent = shop.send(Message("orders", b"a book"))
        day.sent[sent.msg_id] = sent


def _owned(day: StickyDay, name: str) -> list[int]:
    queues = day.lab.node_handle(name).message_queues
    return [queue.queue_id for queue in queues if queue.topic == "orders"]


def _histories_are_even(day: StickyDay) -> Finding | None:
    return day.finding


def _few_moves(day: StickyDay) -> Finding | None:
    if day.moved <= BOUND * day.needed:
        return None
    where = f"{HISTORIES} histories of {CHANGES} changes: {day.needed} queues had to move"
    return Finding(
        MOVES_RULE,
        where,
        f"at most {int(BOUND * day.needed)} moved",
        f"{day.moved} moved, {day.moved / day.needed:.2f} times what had to",
    )


def _each_queue_has_one_owner(day: StickyDay) -> Finding | None:
    for at_ms, about, owned in day.settled:
        every = sorted(number for mine in owned.values() for number in mine)
        sizes = [len(mine) for mine in owned.values()]
        if every != list(range(len(every))) or len(every) != day.queues or max(sizes) - min(sizes) > 1:
            where = f"at {calendar(at_ms)}, {SETTLED} after {about}"
            return Finding(LAB_RULE, where, _even(day.queues, len(sizes)), owned, lab=day.lab)
    return None


def _nothing_is_lost(day: StickyDay) -> Finding | None:
    got = {row.msg_id for row in day.deliveries(GROUP)}
    missing = [sent for msg_id, sent in day.sent.items() if msg_id not in got]
    if not missing:
        return None
    where = f"{missing[0].message_queue!r}, offset {missing[0].queue_offset}"
    return Finding(LOST_RULE, where, "a delivery", "none", lab=day.lab)


STICKY = World(
    "lab03.sticky",
    "sticky(queues, members)",
    points=6,
    about="ten histories, and a group of consumers",
    day=day,
    promises=[_histories_are_even, _few_moves, _each_queue_has_one_owner, _nothing_is_lost],
    seeds=(1,),
    forbids=FORBIDS["lab03.sticky"],
)
