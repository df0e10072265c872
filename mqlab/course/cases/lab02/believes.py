"""lab02.believes: which brokers a client believes in, given what reached the name server and when the client asked.

What is right is what a real route table answers, with RocketMQ's rule for clients: an answer without any broker of the
topic ("no route") changes nothing at a client.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import Pure, Slip
from mqlab.course.kit.shapes import Difference
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.nameserver.routes import BrokerRegistration, RouteTable
from mqlab.rocketmq.wire.bodies import DataVersion, TopicConfig

TOPIC, CLUSTER = "orders", "DefaultCluster"
EXPIRY_S, REGISTER_S, SCAN_S, POLL_S = 120, 30, 5, 30
REGISTERED, CLOSED, SCAN, ASKED = "registered", "closed", "scan", "asked"

Event = tuple[int, str, str]

ASKED_RULE = "A client knows only the last answer that it got; nothing notifies it in between"
WHOSE_RULE = "Each client asks for itself: the answer that another one got changes nothing for it"
SORTED_RULE = "The names are in alphabetical order, each of them once"
LATER_RULE = "What happens after t is not known at t; what happens at t is"


def answered(events: Sequence[Event], who: str, t: int) -> list[str]:
    """What a real route table would have told a client until t."""
    now = [0]
    table = RouteTable(lambda: now[0])
    channels: dict[str, Any] = {}
    believed: list[str] = []
    for second, what, name in events:
        if second > t:
            break
        now[0] = second * 1000
        if what == REGISTERED:
            channels[name] = object()
            topics = {topic: TopicConfig(topic, 4, 4) for topic in (TOPIC, "TBW102")}
            table.register(
                BrokerRegistration(CLUSTER, f"{name}:10911", name, 0, "", topics, DataVersion(), channel=channels[name])
            )
        elif what == CLOSED:
            table.channel_closed(channels[name])
        elif what == SCAN:
            table.expire()
        elif name == who:
            route = table.route(TOPIC)
            believed = believed if route is None else sorted(data.broker_name for data in route.broker_datas)
    return believed


def believed(
    events: Sequence[Event],
    who: str,
    t: int,
    *,
    at_once: bool = False,
    polite: bool = False,
    scans: bool = True,
    expiry: int = EXPIRY_S,
    inclusive: bool = False,
    forgets: bool = False,
    anybody: bool = False,
) -> list[str]:
    """The same, computed; the keywords are misunderstandings.

    ``at_once``: the client hears of changes at once. ``polite``: a closed connection waits for the 120 s. ``scans``:
    silence counts at a scan only. ``forgets``: no broker at all is an answer like any other.
    """
    last: dict[str, int] = {}
    held: list[str] = []
    for second, what, name in events:
        if second > t:
            break
        if what == REGISTERED:
            last[name] = second
        elif what == CLOSED and not polite:
            last.pop(name, None)
        if what == SCAN or not scans:
            silent = [broker for broker in last if second - last[broker] > expiry - inclusive]
            for broker in silent:
                del last[broker]
        if at_once or (what == ASKED and (anybody or name == who)):
            held = sorted(last) if last or forgets else held
    return held


def _day(rng: random.Random, ends: dict[str, tuple[int, str]], until: int) -> list[Event]:
    """Registrations every 30 s until each broker's end ("closed" or silence), scans, two clients that ask."""
    events: list[tuple[int, int, str, str]] = []
    scan = rng.randrange(SCAN_S)
    for number, (name, (end, how)) in enumerate(sorted(ends.items(), reverse=True)):
        # Some registrations fall on the second of a scan, so that 120 s of silence can be exactly 120 s.
        first = scan + SCAN_S * rng.randrange(2) + number * SCAN_S
        events += [(second, 0, REGISTERED, name) for second in range(first, min(end, until), REGISTER_S)]
        if how == CLOSED and end < until:
            events.append((end, 1, CLOSED, name))
    events += [(second, 2, SCAN, "") for second in range(scan, until, SCAN_S)]
    for client in ("billing", "shop"):
        events += [(second, 3, ASKED, client) for second in range(rng.randrange(15, POLL_S), until, POLL_S)]
    return [(second, what, name) for second, _, what, name in sorted(events)]


def _call(events: list[Event], who: str, t: int, about: str) -> Call:
    return Call(events=events, who=who, t=t, right=answered(events, who, t), about=about)


def _asks(events: Sequence[Event], who: str) -> list[int]:
    return [second for second, what, name in events if (what, name) == (ASKED, who)]


def killed(rng: random.Random) -> list[Call]:
    """A broker's connection closes; asked before and after the client's next poll, which comes before the next scan."""
    while True:
        end = rng.randint(41, 58)
        events = _day(rng, {"broker-a": (999, ""), "broker-b": (end, CLOSED)}, 100)
        events = [event for event in events if event[:2] != (end, ASKED)]
        asks = _asks(events, "shop")
        after = next(second for second in asks if second > end)
        if all(what != SCAN for second, what, _ in events if end < second <= after):
            break
    about = f"broker-b's connection closes after {end} s"
    return [_call(events, "shop", t, about) for t in (end, after - 1, after + 1, asks[0] - 1)]


def silent(rng: random.Random) -> list[Call]:
    """A broker falls silent; asked at each poll from 90 s of silence on."""
    end = rng.randint(36, 66)
    events = _day(rng, {"broker-a": (999, ""), "broker-b": (end, "")}, 240)
    last = max(second for second, what, name in events if (what, name) == (REGISTERED, "broker-b"))
    about = f"broker-b registers for the last time after {last} s"
    return [
        _call(events, who, ask, about) for who in ("shop", "billing") for ask in _asks(events, who) if ask > last + 85
    ]


def edge(rng: random.Random) -> list[Call]:
    """Silence of exactly 120 s at a scan, and a client that asks between it and the next one."""
    last, other = rng.randint(8, 25), rng.randint(3, 7)
    asks = [last + EXPIRY_S + 2, last + EXPIRY_S + SCAN_S + 1]
    events: list[Event] = [(other, REGISTERED, "broker-a"), (last, REGISTERED, "broker-b")]
    events += [(other + REGISTER_S * number, REGISTERED, "broker-a") for number in range(1, 6)]
    events += [(last + EXPIRY_S + more, SCAN, "") for more in (-5, 0, 5)]
    events += [(second, ASKED, "shop") for second in (last + 1, asks[0], asks[1] + 2)]
    events += [(second, ASKED, "billing") for second in (last + 2, asks[1])]
    events.sort()
    about = f"broker-b registers once, after {last} s; a scan after {last + EXPIRY_S} s"
    return [_call(events, "shop", ask, about) for ask in (asks[0], asks[1], asks[1] + 2)]


def between(rng: random.Random) -> list[Call]:
    """A client asks after more than 120 s of silence, before the scan that would see it."""
    last = rng.randint(8, 25)
    events: list[Event] = [
        (last - 3, REGISTERED, "broker-a"),
        (last, REGISTERED, "broker-b"),
        (last + 1, ASKED, "shop"),
    ]
    events += [(last + 30 * number, REGISTERED, "broker-a") for number in range(1, 5)]
    events += [(last + more, SCAN, "") for more in (113, 118, 123)] + [(last + 121, ASKED, "shop")]
    events.sort()
    return [_call(events, "shop", last + 122, f"broker-b registers once, after {last} s; a scan after {last + 123} s")]


def soon(rng: random.Random) -> list[Call]:
    """Changes between an answer and the next scan; the first answer has one broker, and comes after "no route"."""
    first = rng.randint(2, 20)
    events: list[Event] = [
        (first, ASKED, "shop"),
        (first + 1, REGISTERED, "broker-a"),
        (first + 2, ASKED, "shop"),
        (first + 3, REGISTERED, "broker-b"),
        (first + 4, ASKED, "shop"),
        (first + 5, CLOSED, "broker-b"),
    ]
    about = f"broker-b registers after {first + 3} s, and its connection closes after {first + 5} s"
    return [_call(events, "shop", first + more, about) for more in (0, 2, 3, 5)]


def closed_late(rng: random.Random) -> list[Call]:
    """The connection of a silent broker closes after a scan has removed it."""
    last = rng.randint(8, 25)
    events: list[Event] = [(last, REGISTERED, "broker-b"), (last + 1, REGISTERED, "broker-a")]
    events += [(last + 1 + REGISTER_S * number, REGISTERED, "broker-a") for number in range(1, 5)]
    events += [(last + 122, SCAN, ""), (last + 124, CLOSED, "broker-b"), (last + 126, ASKED, "shop")]
    about = f"broker-b registers once, after {last} s; a scan removes it, and then its connection closes"
    return [_call(events, "shop", last + 126, about)]


def last_one(rng: random.Random) -> list[Call]:
    """Both brokers of the topic are gone; later one comes back."""
    first, second = sorted(rng.sample(range(31, 56), 2))
    ends = {"broker-a": (first, CLOSED), "broker-b": (second, CLOSED)}
    events = _day(rng, ends, 120)
    back = rng.randint(90, 94)
    events = sorted([*events, (back, REGISTERED, "broker-a")])
    about = f"connections close after {first} s and {second} s, broker-a registers again after {back} s"
    return [_call(events, "shop", t, about) for t in (second + 31, 119)]


def days(seed: int) -> list[Call]:
    """Calls of each kind."""
    rng = random.Random(f"lab02.believes {seed}")
    return [
        *killed(rng),
        *silent(rng),
        *edge(rng),
        *between(rng),
        *last_one(rng),
        *soon(rng),
        *closed_late(rng),
    ]


def _as(call: Call, **misread: Any) -> list[str]:
    return believed(call["events"], call["who"], call["t"], **misread)


def _at(call: Call, t: int) -> list[str]:
    return believed(call["events"], call["who"], t)


def _explain(call: Call, answer: list[str], seen: Difference) -> str:
    return SORTED_RULE if sorted(set(answer)) == call.right else ASKED_RULE


BELIEVES = Pure(
    "lab02.believes",
    "believes(events, who, t)",
    points=3,
    about="brokers that come and go",
    calls=days,
    returns=[str],
    explain=_explain,
    slips=[
        Slip("all of it", lambda call: _at(call, 10**6), LATER_RULE),
        Slip("before t", lambda call: _at(call, call["t"] - 1), LATER_RULE),
        Slip(
            "the name server's table", lambda call: _as(call, at_once=True, forgets=True), belief="lab02.told_at_once"
        ),
        Slip("told at once", lambda call: _as(call, at_once=True), belief="lab02.told_at_once"),
        Slip("a closed connection expires", lambda call: _as(call, polite=True), belief="lab02.closed_waits"),
        Slip("no answer empties", lambda call: _as(call, forgets=True), belief="lab02.nothing_left"),
        Slip("without scans", lambda call: _as(call, scans=False), belief="lab02.silence_is_seen"),
        Slip("30 s of silence", lambda call: _as(call, expiry=REGISTER_S), belief="lab02.one_missed"),
        Slip(
            "120 s are too many",
            lambda call: _as(call, inclusive=True),
            "After exactly 120 s a broker still counts as alive: more than 120 s of silence remove it",
        ),
        Slip("whoever asked", lambda call: _as(call, anybody=True), WHOSE_RULE),
    ],
    weights={"": 1},
    forbids=FORBIDS["lab02.believes"],
)
