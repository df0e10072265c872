from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.widgets import TagTrapBoard, tag_trap_board
from mqlab.course.widgets.boards.tag_trap.board import every_choice
from mqlab.course.widgets.boards.tag_trap.runs import TagTrapSettings, play_tags
from mqlab.errors import MqlabError, UsageError
from mqlab.lab.parts import OwnParts
from mqlab.rocketmq.wire.java_hash import string_hash
from tests.lab.parts.brokers.rocketmq_shape import MyPulls

BROKER, CLIENT, DELIVERED = "dropped by the broker", "dropped by the client", "delivered"


def board(**settings: Any) -> TagTrapBoard:
    return tag_trap_board(recorded=(), **settings)


def outcomes(shown: TagTrapBoard) -> list[str]:
    return [str(row.outcome) for row in shown.lanes()]


def test_by_default_the_broker_filters_all_queues_by_the_newest_subscription() -> None:
    newest_is_shipping = board(last="shipping")
    assert [(row.member, row.queues, row.received) for row in newest_is_shipping.members()] == [
        ("billing", [0, 1], 0),
        ("shipping", [2, 3], 2),
    ]
    assert outcomes(newest_is_shipping) == [BROKER, CLIENT] * 2 + [BROKER, DELIVERED] * 2
    assert {(row["broker filter"], row.whose) for row in newest_is_shipping.lanes()} == {("shipped", "shipping")}
    assert outcomes(board(last="billing")) == [DELIVERED, BROKER] * 2 + [CLIENT, BROKER] * 2
    # Nothing tells an operator: every offset has moved on, also past what the client dropped.
    assert newest_is_shipping.lag == 0 and all(row.moved_ms is not None for row in newest_is_shipping.lanes())
    assert max(row.moved_ms for row in newest_is_shipping.lanes() if row.outcome == CLIENT) > 10_000


def test_the_member_that_joined_first_rebalances_last_and_has_the_newer_version() -> None:
    shown = board()
    versions = {row.member: row.version_ms for row in shown.members()}
    assert versions["billing"] > versions["shipping"] and shown.run.kept["order-service"]["whose"] == "billing"


def test_with_the_expression_in_the_pull_each_gets_its_own_of_its_queues() -> None:
    shown = board(post_subscription_when_pull=True, last="shipping")
    assert outcomes(shown) == [DELIVERED, BROKER] * 2 + [BROKER, DELIVERED] * 2
    assert {row["broker filter"] for row in shown.lanes()} == {"paid", "shipped"}
    assert shown.nobody() == ["shipped-0", "shipped-1", "paid-2", "paid-3"]


def test_colliding_tags_pass_the_broker_and_are_told_apart_by_the_client() -> None:
    shown = board(billing="Aa", shipping="BB")
    assert {row.code for row in shown.lanes()} == {string_hash("Aa")} == {string_hash("BB")}
    assert outcomes(shown) == [DELIVERED, CLIENT] * 2 + [CLIENT, DELIVERED] * 2


def test_the_highest_version_wins_and_not_the_last_heartbeat() -> None:
    shown = board(ahead="billing", last="shipping")
    last = shown.heartbeats()[-1]
    assert (last.member, last.kept) == ("shipping", "billing")
    assert outcomes(shown) == [DELIVERED, BROKER] * 2 + [CLIENT, BROKER] * 2


def test_a_group_for_each_loses_nothing_and_neither_do_equal_subscriptions() -> None:
    two = board(groups=2)
    assert [row.received for row in two.members()] == [4, 4] and two.nobody() == [] and two.lag == 0
    both = "paid || shipped"
    assert board(billing=both, shipping=both).nobody() == []
    assert board(billing="*", shipping="*", sent=("a", "b", "c")).summary.startswith("12 orders: billing received 6")


def test_the_popular_picture_is_right_only_with_the_expression_in_the_pull() -> None:
    def differing(shown: TagTrapBoard) -> int:
        lanes = shown.data()["now"]["lanes"]
        return sum(claim != (outcome == DELIVERED) for *_, outcome, _, claim in lanes)

    assert differing(board(post_subscription_when_pull=True)) == 0
    assert differing(board()) == 2
    assert differing(board(billing="Aa", shipping="BB")) == 0


def test_the_page_plays_again_and_a_cell_reads_what_it_shows() -> None:
    shown = board()
    shown.set("lane", 5)
    wish = {**TagTrapSettings(post_subscription_when_pull=True).as_json(), "sent": ["paid"]}
    answer = shown.asked("play", wish)
    assert [lane[9] for lane in answer["lanes"]] == [DELIVERED] * 2 + [BROKER] * 2
    assert shown.settings.post_subscription_when_pull and shown.settings.sent == ("paid",)
    assert len(shown.table()) == 4 and shown.state == {"lane": 5, "compare": False}
    assert shown.play(groups=2).state["lane"] == 1


def test_a_page_without_a_kernel_has_every_combination_of_the_given_tags() -> None:
    shown = tag_trap_board(billing="new", shipping="old")
    pairs = {(each.billing, each.shipping) for each in shown._recorded}
    assert pairs == {("new", "old"), ("Aa", "BB")} and len(shown._recorded) == len(set(shown._recorded)) == 24
    assert len(every_choice((("new", "old"),))) == 12
    few = tag_trap_board(recorded=(TagTrapSettings(groups=2),))
    assert [run["settings"]["groups"] for run in few.data()["recorded"]] == [2]


def test_the_same_settings_are_played_once() -> None:
    assert play_tags(TagTrapSettings(groups=2)) is play_tags(TagTrapSettings(groups=2))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"billing": "||"}, "a tag expression without tags"),
        ({"shipping": 5}, "shipping must be a tag expression"),
        ({"last": "shop"}, "last is a member or nobody"),
        ({"ahead": "shop"}, "ahead is a member or nobody"),
        ({"groups": 3}, "groups is 1 or 2"),
        ({"post_subscription_when_pull": 1}, "True or False"),
        ({"sent": "paid"}, "sent is a list of tags"),
        ({"sent": ["paid", " "]}, "sent is a list of tags"),
        ({"sent": list("abcdefg")}, "at most 6 tags"),
        ({"tags": "paid"}, "no setting 'tags'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    shown = board()
    with pytest.raises(MqlabError, match=words):
        shown.play(**wrong)
    with pytest.raises(UsageError, match="cannot answer"):
        shown.asked("stop", {})


def test_on_a_learners_pulls_the_trap_is_the_same() -> None:
    own = tag_trap_board(parts=OwnParts(pulls=MyPulls))
    assert outcomes(own) == outcomes(board())
    assert own.data()["recorded"] == []
    # A held pull that sleeps through what is filtered moves its offset only when its time is over.
    assert max(row.moved_ms for row in own.lanes()) > 10_000 > max(row.moved_ms for row in board().lanes())
