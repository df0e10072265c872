"""lab06.who_gets: members of one group with different tags; who receives what, and what no member receives.

The filters are those of the broker and the client (mqlab.rocketmq.filter.tags). A test plays such groups in a Lab and
compares.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.kit import OneOf, Pure, Slip, tuple_of
from mqlab.course.teach.exercises import Call
from mqlab.rocketmq.filter import tags
from mqlab.rocketmq.wire.java_hash import string_hash

Members = Mapping[str, Mapping[str, Any]]  # name -> {"tags": …, "version": …, "queues": …}
Messages = Mapping[str, tuple[int, str]]  # key -> (queue id, tag)
Received = tuple[dict[str, list[str]], list[str]]

WINNER_RULE = (
    "By default the broker has one subscription for the group, the one with the highest version, and filters the pulls "
    "of all members with it"
)
POPULAR_RULE = (
    "Each its own tag of its own queues is the popular picture, which is true only when the pull carries "
    "the text. By default the broker filters for all members with the subscription of the highest version; "
    "it does not ask the member or add tags up"
)
TEXT_RULE = "When the pull carries its text, the broker filters with that text and the versions do not matter"
CLIENT_RULE = "What the broker lets through is filtered once more by the member, with its own tags, as text"
HASH_RULE = (
    "The broker compares hash codes: a message whose tag has the same code as a subscribed tag passes, and "
    "the member that wants it gets it after all"
)
QUEUES_RULE = "A member receives messages of its own queues only, whatever the broker would let through"
STAR_RULE = "A member with * takes every tag, but it only sees what the broker's filter has let through"
MEMBERS_RULE = "Every member is in the dictionary, with an empty list if it receives nothing; no other name is"
ORDER_RULE = "These are the right keys in another order: the keys of each member are in the order of the messages"
NOBODY_RULE = "List what no member has received, in the order of the messages"


def asked(member: Mapping[str, Any]) -> tags.TagFilter:
    """A member's subscription, as broker and client read it."""
    return tags.parse(" || ".join(member["tags"]))


def received(
    members: Members,
    messages: Messages,
    text_in_pull: bool,
    *,
    winner: str = "",
    by_text: bool = False,
    client_filters: bool = True,
    all_queues: bool = False,
) -> Received:
    """What each member receives, and what none does. The keywords are misunderstandings."""
    newest = winner or max(members, key=lambda name: members[name]["version"])
    got: dict[str, list[str]] = {name: [] for name in members}
    for key, (queue_id, tag) in messages.items():
        for name, member in members.items():
            if queue_id not in member["queues"] and not all_queues:
                continue
            at_broker = asked(member if text_in_pull else members[newest])
            passes = at_broker.matches_text(tag) if by_text else at_broker.matches_code(string_hash(tag))
            if passes and (not client_filters or asked(member).matches_text(tag)):
                got[name].append(key)
    nobody = [key for key in messages if not any(key in keys for keys in got.values())]
    return got, nobody


def group_call(members: Members, messages: Messages, text_in_pull: bool, about: str) -> Call:
    """The call for a group, with the right value."""
    setting = "the text in the pull" if text_in_pull else "the default setting"
    return Call(
        members=members,
        messages=messages,
        text_in_pull=text_in_pull,
        right=received(members, messages, text_in_pull),
        about=f"{about}, {setting}",
    )


def _members(wishes: Sequence[Sequence[str]], versions: Sequence[int], queues: int) -> Members:
    """Members with these tags, each with a contiguous block of queues, as AVG gives them."""
    share = queues // len(wishes)
    return {
        f"member-{number}": {
            "tags": list(wish),
            "version": version,
            "queues": list(range(share * (number - 1), share * number)),
        }
        for number, (wish, version) in enumerate(zip(wishes, versions, strict=True), 1)
    }


def _messages(rng: random.Random, names: Sequence[str], queues: int) -> Messages:
    """Each tag in each queue, shuffled."""
    places = [(queue_id, tag) for queue_id in range(queues) for tag in names]
    rng.shuffle(places)
    return {f"order-{number}": spot for number, spot in enumerate(places)}


def two_tags(rng: random.Random, text_in_pull: bool) -> Call:
    """The incident: two members, two tags, versions by lot."""
    versions = rng.sample(range(100, 1000), 2)
    return group_call(
        _members((["paid"], ["shipped"]), versions, 4), _messages(rng, ("paid", "shipped"), 4), text_in_pull, "two tags"
    )


def colliding(rng: random.Random, text_in_pull: bool) -> Call:
    """Members whose tags have one code; one of the two is the newest."""
    wishes, versions = [["Aa"], ["BB"], ["paid"]], sorted(rng.sample(range(100, 1000), 3))
    rng.shuffle(wishes)
    newest = rng.choice([index for index, wish in enumerate(wishes) if wish != ["paid"]])
    versions.insert(newest, versions.pop())
    members = _members(wishes, versions, 6)
    return group_call(members, _messages(rng, ("Aa", "BB", "paid"), 6), text_in_pull, "Aa and BB among the tags")


def three_members(rng: random.Random, text_in_pull: bool) -> Call:
    """Three members with several tags, some in common."""
    wishes = [["paid", "shipped"], ["paid"], ["created", "paid"]]
    rng.shuffle(wishes)
    members = _members(wishes, rng.sample(range(100, 1000), 3), 6)
    return group_call(members, _messages(rng, ("paid", "shipped", "created"), 6), text_in_pull, "three members")


def with_a_star(rng: random.Random, text_in_pull: bool) -> Call:
    """One member wants everything; it is the newest or it is not."""
    members = _members((["*"], ["paid"]), rng.sample(range(100, 1000), 2), 4)
    return group_call(members, _messages(rng, ("paid", "shipped"), 4), text_in_pull, "a member with *")


def newest_by_a_digit(rng: random.Random, text_in_pull: bool) -> Call:
    """Two tags of which one is a part of the other, versions of different lengths, and a queue that nobody reads."""
    versions = [rng.randint(997, 999), rng.randint(1_000, 1_009)]
    wishes = [["unpaid"], ["paid"]]
    if rng.random() < 0.5:
        versions.reverse()
    members = _members(wishes, versions, 4)
    return group_call(members, _messages(rng, ("paid", "unpaid"), 5), text_in_pull, "queue 4 without a reader")


def groups(seed: int) -> list[Call]:
    """Every kind of group, in both settings."""
    rng = random.Random(f"lab06.who_gets {seed}")
    kinds = (two_tags, colliding, three_members, with_a_star, newest_by_a_digit)
    return [kind(rng, text_in_pull) for text_in_pull in (False, True) for kind in kinds]


def _as(call: Call, **misread: Any) -> Received:
    arguments = dict(call.arguments)
    return received(**(arguments | misread))  # type: ignore[arg-type]


def _oldest(call: Call) -> str:
    members: Members = call["members"]
    return min(members, key=lambda name: members[name]["version"])


def _of_another_member(call: Call) -> OneOf:
    """The first or the last member of the group wins, or the largest version read as a text."""
    members: Members = call["members"]
    by_text = max(members, key=lambda name: str(members[name]["version"]))
    return OneOf(_as(call, winner=name) for name in (next(iter(members)), list(members)[-1], by_text))


def _explain(call: Call, answer: Any, seen: Any) -> str:
    got, _ = answer
    if got == call.right[0]:
        return NOBODY_RULE
    members, messages, text_in_pull = call["members"], call["messages"], call["text_in_pull"]
    if got.keys() != members.keys():
        return MEMBERS_RULE
    if all(sorted(keys) == sorted(call.right[0][name]) for name, keys in got.items()):
        return ORDER_RULE
    foreign = [
        (name, key)
        for name, keys in got.items()
        for key in keys
        if name in members and key in messages and messages[key][0] not in members[name]["queues"]
    ]
    if foreign:
        return QUEUES_RULE
    unasked = any(
        not asked(members[name]).matches_text(messages[key][1])
        for name, keys in got.items()
        if name in members
        for key in keys
        if key in messages
    )
    if unasked:
        return CLIENT_RULE
    wrong = [member["tags"] for name, member in members.items() if got[name] != call.right[0][name]]
    if ["*"] in wrong:
        return STAR_RULE
    if text_in_pull:
        return TEXT_RULE
    if any(member["tags"] == ["*"] for member in members.values()):
        return STAR_RULE
    return HASH_RULE if any("Aa" in member["tags"] for member in members.values()) else WINNER_RULE


WHO_GETS = Pure(
    "lab06.who_gets",
    "who_gets(members, messages, text_in_pull)",
    points=3,
    about="groups with different tags",
    calls=groups,
    returns=tuple_of(received={str: [str]}, nobody=[str]),
    explain=_explain,
    rules=NOBODY_RULE,
    slips=[
        # An answer that adds the tags up gets the same numbers, because the client filters again: no belief is named.
        Slip("the popular picture", lambda call: _as(call, text_in_pull=True), POPULAR_RULE),
        Slip("the oldest wins", lambda call: _as(call, winner=_oldest(call)), WINNER_RULE),
        Slip("another wins", _of_another_member, WINNER_RULE),
        Slip("the broker compares texts", lambda call: _as(call, by_text=True), HASH_RULE, "lab06.broker_reads_text"),
        Slip("nobody filters again", lambda call: _as(call, client_filters=False), CLIENT_RULE),
        Slip("all queues", lambda call: _as(call, all_queues=True), QUEUES_RULE),
    ],
    weights={"": 1, "the default setting": 2, "the text in the pull": 1, "tags with one code": 1},
    forbids=FORBIDS["lab06.who_gets"],
)
