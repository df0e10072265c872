from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from mqlab.course.widgets import AllocationBoard, allocation_board
from mqlab.course.widgets.boards.allocation import HandoverRun, HandoverSettings, fewest_moves, play_handover
from mqlab.errors import UsageError
from mqlab.rocketmq.client.allocate import AveragelyByCircle

JOINS = [("join", "billing-4"), ("join", "billing-5"), ("leave", "billing-2")]


def board(*arguments: Any, **settings: Any) -> AllocationBoard:
    return allocation_board(*arguments, recorded={}, **settings)


def counts(shown: AllocationBoard) -> list[int]:
    owners = shown.owners().column("owner")
    return [owners.count(member) for member in shown.members]


def test_average_gives_contiguous_blocks_and_the_first_members_one_more() -> None:
    shown = board(queues=8, members=3)
    assert shown.owners().column("owner") == ["billing-1"] * 3 + ["billing-2"] * 3 + ["billing-3"] * 2
    assert shown.change(strategy="AVG_BY_CIRCLE").owners().column("owner")[:4] == [
        "billing-1",
        "billing-2",
        "billing-3",
        "billing-1",
    ]


def test_the_surplus_of_every_topic_goes_to_the_same_members() -> None:
    assert counts(board(queues=4, members=3, topics=1)) == [2, 1, 1]
    shown = board(queues=4, members=3, topics=5)
    assert counts(shown) == [10, 5, 5] and shown.fairness == 5


def test_members_beyond_the_queues_have_nothing() -> None:
    assert counts(board(queues=2, members=4)) == [1, 1, 0, 0]


def test_a_history_is_counted_moment_by_moment() -> None:
    shown = board(history=JOINS)
    table = shown.table()
    assert table.column("change") == ["at the beginning", "billing-4 joins", "billing-5 joins", "billing-2 leaves"]
    assert table.column("moved") == [0, 5, 1, 5] and table.column("fewest moves") == [0, 2, 1, 2]
    assert (shown.moved, shown.churn, shown.fairness) == (11, 11 / 5, 1)
    ring = next(row for row in shown.compare() if row.strategy == "CONSISTENT_HASH")
    assert ring.moved < 11 and ring.fairness > 1  # it moves little and divides badly


def test_on_the_ring_only_the_queues_of_who_left_move() -> None:
    shown = board("CONSISTENT_HASH", members=5, history=[("leave", "billing-2")])
    owners = shown.owners()
    assert {row.before for row in owners if row.moved} == {"billing-2"}
    assert all(row.moved == (row.before == "billing-2") for row in owners)


def test_a_restart_under_another_name_is_a_leave_and_a_join() -> None:
    shown = board(members=3, history=[("rename", "billing-1", "billing-9")])
    assert shown.members == ["billing-2", "billing-3", "billing-9"] and shown.moved == 8


def test_more_virtual_nodes_divide_better() -> None:
    few, many = (board("CONSISTENT_HASH", queues=64, members=4, virtual_nodes=count) for count in (1, 200))
    assert few.fairness > 2 * many.fairness
    points = [row for row in few.ring() if row.what == "member"]
    assert [point.name for point in points] == sorted(
        few.members, key=lambda name: [p.name for p in points].index(name)
    )
    hashes = few.ring().column("hash")
    assert len(points) == 4 and hashes == sorted(hashes)


def test_rooms_a_strategy_that_serves_them_and_one_that_falls_back() -> None:
    brokers = ["room1@broker-a", "room2@broker-b"]
    only = board("MACHINE_ROOM", brokers=brokers, queues=2, members=2, consumeridcs=["room1"])
    assert only.owners().column("owner") == ["billing-1", "billing-2", "", ""]
    near = board(
        "MACHINE_ROOM_NEARBY", brokers=brokers, queues=2, members=2, rooms={"billing-1": "room1", "billing-2": "room2"}
    )
    assert near.owners().column("owner") == ["billing-1"] * 2 + ["billing-2"] * 2
    near.leave("billing-2")
    assert near.owners().column("owner") == ["billing-1"] * 4  # a room without members is shared by all


def test_a_configured_list_stays_when_its_member_leaves() -> None:
    shown = board("CONFIG", members=2, queues=4, history=[("leave", "billing-2"), ("join", "billing-3")])
    assert shown.owners().column("owner") == ["billing-1", "billing-1", "", ""]
    assert shown.table().column("without owner") == [0, 2, 2]


def every_queue_to_the_first(queues: Sequence[Any], client_ids: Sequence[str]) -> dict[str, Sequence[Any]]:
    return {client_ids[0]: queues}


def test_a_learners_own_strategy_is_asked_as_a_client_asks_it() -> None:
    shown = board(every_queue_to_the_first, members=2)
    assert counts(shown) == [8, 0] and shown.state["strategy"] == "every_queue_to_the_first"
    assert "every_queue_to_the_first" in shown.compare().column("strategy")
    same = board(AveragelyByCircle(), members=3).owners().column("owner")
    assert same == board("AVG_BY_CIRCLE", members=3).owners().column("owner")
    assert counts(board(lambda client_id, queues, client_ids: queues, members=2)) == [0, 0]  # every queue has two
    assert board(lambda client_id, queues, client_ids: queues).table().column("several owners") == [8]


def test_a_strategy_that_fails_says_for_whom() -> None:
    with pytest.raises(UsageError, match="raised KeyError: 'billing-2'") as raised:
        board(lambda client_id, queues, client_ids: {"billing-1": queues}[client_id], members=2)
    assert "billing-2 among billing-1, billing-2" in str(raised.value)
    fails_later = board(lambda c, queues, ids: queues[: 8 // (4 - len(ids))], members=2)
    owners = fails_later.data()["owners"]["<lambda>"]
    assert owners[0b1111] is None and owners[0b0001] is not None


def test_page_and_cell_share_the_history() -> None:
    shown = board(members=2)
    shown.join("billing-3").join("mailer")
    assert shown.state["history"] == [["join", "billing-3"], ["join", "mailer"]] and shown.position == 2
    shown.set("position", 1)
    assert shown.members == ["billing-1", "billing-2", "billing-3"]
    assert shown.leave("billing-1").state["history"] == [["join", "billing-3"], ["leave", "billing-1"]]
    assert shown.undo().position == 1
    shown.asked("history", {"changes": [["join", "new"]]})
    assert shown.members == ["billing-1", "billing-2", "new"] and "new" in shown.data()["known"]
    shown.asked("change", {"queues": 4, "topics": 2})
    assert len(shown.owners()) == 8


def test_the_page_holds_what_the_strategies_give_for_every_set_of_its_names() -> None:
    shown = board(members=3, queues=4)
    data = shown.data()
    assert data["every_set"] and len(data["sets"]) == 64
    names = data["known"]
    for key, name, nodes in (("AVG", "AVG", 10), ("CONSISTENT_HASH 5", "CONSISTENT_HASH", 5)):
        for chosen, owners in zip(data["sets"], data["owners"][key], strict=True):
            members = [each for place, each in enumerate(names) if chosen >> place & 1]
            expected = board(name, members=members, queues=4, virtual_nodes=nodes) if members else None
            given = [[each for place, each in enumerate(names) if mask >> place & 1] for mask in owners]
            assert given == ([[owner] for owner in expected.owners().column("owner")] if expected else [[]] * 4)
    larger = board(members=8).data()
    assert not larger["every_set"] and len(larger["sets"]) == 9


def test_fewest_moves_are_never_more_than_a_fair_strategy_makes() -> None:
    before = [("a",), ("a",), ("b",), ("b",), ("c",), ("c",)]
    assert fewest_moves(before, ["a", "b"]) == 2
    assert fewest_moves(before, ["a", "b", "c", "d"]) == 1
    assert fewest_moves([("a",)] * 4, ["a", "b"]) == 2  # an unfair division has more to move
    shown = board(queues=16, members=4, history=[("join", "billing-5"), ("join", "billing-6"), ("leave", "billing-1")])
    for row in shown.compare():
        if row.strategy in ("AVG", "AVG_BY_CIRCLE"):
            assert row.moved >= row["fewest moves"] > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"strategy": "AVERAGE"}, "no strategy 'AVERAGE'"),
        ({"strategy": 7}, "not an allocation strategy"),
        ({"queues": 0}, "queues must be a whole number from 1 to 64"),
        ({"queues": 64, "topics": 3}, "192 queues are too many"),
        ({"brokers": "broker-a"}, "brokers is a number or a list"),
        ({"members": 13}, "members must be from 1 to 12"),
        ({"members": ["a", "a"]}, "two members have one name"),
        ({"virtual_nodes": 0}, "virtual_nodes must be a whole number"),
        ({"history": [("join", "billing-1")]}, "change 1: 'billing-1' is a member already"),
        ({"history": [("leave", "x")]}, "change 1: 'x' is not a member"),
        ({"history": ["billing-4"]}, "change 1 is 'billing-4'"),
    ],
)
def test_wrong_settings_are_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        board(**wrong)
    shown = board()
    with pytest.raises(UsageError, match="no setting 'threads'"):
        shown.change(threads=3)
    with pytest.raises(UsageError, match="queues must be"):
        shown.change(queues=65)
    assert len(shown.owners()) == 8


def played(**settings: Any) -> HandoverRun:
    return play_handover(HandoverSettings(**settings))


def test_a_joiner_works_on_messages_that_the_former_owner_has_not_finished() -> None:
    run = played()
    assert {each["what"] for each in run.overlaps} == {"no owner", "two at work"}
    for each in run.overlaps:
        if each["what"] == "two at work":
            assert 400 < each["to_ms"] - each["from_ms"] < 3_000  # the first pull comes after half a second
    for message in run.twice:
        calls = [
            call
            for call in run.calls
            if (call["queue"], call["queue_offset"]) == (message["queue"], message["queue_offset"])
        ]
        assert [call["member"] for call in calls] == message["members"]
    assert run.twice and not played(call_ms=200).twice


def test_without_a_notification_a_queue_has_two_owners_until_the_next_round() -> None:
    both = [each for each in played(told=False).overlaps if each["what"] == "two owners"]
    assert [each["queue"] for each in both] == [6, 7]
    assert all(5_000 < each["to_ms"] - each["from_ms"] <= 20_000 for each in both)


@pytest.mark.parametrize("told", [True, False])
def test_in_order_the_brokers_lock_keeps_two_owners_apart(told: bool) -> None:
    assert {each["what"] for each in played(orderly=True, told=told).overlaps} == {"no owner"}


def test_after_a_kill_that_nobody_is_told_of_queues_have_no_owner() -> None:
    gaps = [each for each in played(change="kill", told=False).overlaps if each["what"] == "no owner"]
    assert [each["queue"] for each in gaps] == [4, 5, 6, 7]
    assert all(each["from_ms"] == 0 and each["to_ms"] > 5_000 for each in gaps)


def test_the_board_plays_the_strategy_that_it_shows() -> None:
    shown = board("AVG_BY_CIRCLE")
    shown.play(call="1s")
    assert shown.run is not None and shown.run.settings == HandoverSettings("AVG_BY_CIRCLE", call_ms=1_000)
    assert shown.run is play_handover(shown.run.settings) and len(shown.spans()) > 8
    assert shown.data()["runs"][0]["name"] == "as played"
    mine = board(every_queue_to_the_first)
    assert not mine.play().twice() and {row.member for row in mine.spans()} == {"billing-1"}
    with pytest.raises(UsageError, match="CONFIG is not played"):
        shown.change(strategy="CONFIG").play()
    with pytest.raises(UsageError, match="change must be one of"):
        shown.change(strategy="AVG").play(change="sleep")
    with pytest.raises(UsageError, match="call_ms must be"):
        shown.play(call="1h")
