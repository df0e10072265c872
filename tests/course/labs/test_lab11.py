"""Lab 11: its tables against what a Lab saw, its predictions, and what is said to answers that are nearly right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.course import answer
from mqlab.course.cases.lab11.again import any_retry, why_again
from mqlab.course.cases.lab11.bodies import ENTRIES, entry
from mqlab.course.cases.lab11.calls import CALLS, joined
from mqlab.course.cases.lab11.days import day
from mqlab.course.cases.lab11.latency import percentile, slow_when
from mqlab.course.cases.lab11.life import LIFE, facts, life
from mqlab.course.cases.lab11.storm import STORM, storm, units_in
from mqlab.course.given.lab11 import trace_tables as trace
from mqlab.course.given.lab11.played_day import QUIET
from mqlab.course.teach.datasets import played_day
from mqlab.course.teach.exercises import manifest
from mqlab.course.words import refutation
from tests.course.teach.seeds import first_of

QUESTIONS = {question.id: question for question in manifest("lab11").predictions}


@pytest.mark.parametrize("seed", first_of(11, 3))
def test_calls_of_the_trace_are_those_that_the_lab_saw(seed: int) -> None:
    """A member that is killed takes the end of its last calls with it, so these two are no result."""
    played = played_day(seed)
    told = Counter(
        (call["group_name"], call["msg_id"], call["keys"], call["started_ms"]) for call in trace.calls_in(played.stores)
    )
    seen = Counter(
        (call.consumer_group, call.msg_id, call.keys, call.started_ms)
        for call in played.calls
        if call.consumer_group != QUIET
    )
    assert told == seen
    ended = {(call["msg_id"], call["started_ms"], call["ended_ms"]) for call in trace.calls_in(played.stores)}
    true = {(call.msg_id, call.started_ms, call.ended_ms) for call in played.calls if call.consumer_group != QUIET}
    assert all(end is None for _, _, end in ended - true) and len(ended - true) <= 4


@pytest.mark.parametrize("seed", first_of(11, 3, 4))
def test_lives_are_what_the_lab_saw(seed: int) -> None:
    played = played_day(seed)
    told = {(row["group_name"], row["msg_id"], row["keys"]): row["outcome"] for row in life(facts(str(played.stores)))}
    seen = {
        (row.consumer_group, row.msg_id, row.keys): row.outcome
        for row in played.lives
        if row.traced and row.outcome != "waiting"
    }
    assert told == seen and set(seen.values()) == {"consumed", "dead", "pending", "filtered", "lost"}


def test_the_trace_of_a_third_broker_changes_no_outcome() -> None:
    """What is sent again, and calls of what was consumed before, add calls alone."""
    apart = {(row["group_name"], row["msg_id"], row["keys"]): row for row in life(facts(str(played_day(1).stores)))}
    together = {(row["group_name"], row["msg_id"], row["keys"]): row for row in life(facts(day(1)))}
    assert {key: row["outcome"] for key, row in apart.items()} == {key: together[key]["outcome"] for key in apart}
    more = sum(together[key]["calls"] - row["calls"] for key, row in apart.items())
    assert more == 11 + 2  # the batches, and the retry that came again


def test_orders_of_a_third_broker_need_the_order_of_the_rules() -> None:
    """Dead and consumed, a failed call that the offset has passed, and the very order that is read next."""
    rows = [row for row in life(facts(day(1))) if row["keys"].startswith("order-c")]
    lives = {
        (row["group_name"], row["keys"]): (row["outcome"], row["calls"])
        for row in sorted(rows, key=lambda row: row["calls"], reverse=True)  # of two c0, the one with fewer calls
    }
    of_billing = [lives["billing", f"order-c{number}"] for number in range(5)]
    assert of_billing == [("pending", 1), ("consumed", 2), ("consumed", 2), ("pending", 0), ("pending", 0)]
    assert [lives["mail", f"order-c{number}"][0] for number in range(1, 5)] == ["lost", *["pending"] * 3]
    mail = Counter(row["outcome"] for row in rows if row["group_name"] == "mail" and row["keys"] == "order-c0")
    assert mail == {"dead": 1, "pending": 1}


def test_a_retry_that_is_delivered_again_is_late_and_soon_and_no_retry() -> None:
    known = facts(day(1))
    pairs = zip(why_again(known), why_again(known, any_retry), strict=True)
    assert {row["cause"] for row, wrong in pairs if row != wrong} >= {"soon", "late"}


def test_a_day_needs_all_of_its_situations() -> None:
    """Calls of several messages, without an end, of old clients; trace that was stored twice; messages tried again."""
    entries = trace.entries_in(day(1))
    calls = trace.calls_of(entries)
    assert sorted(Counter(call["request_id"] for call in calls).values())[-3:] == [3, 4, 4]
    assert {call["status"] for call in calls} == {"SUCCESS", "FAILED", "NO_RESULT"}
    assert any(entry["kind"] == "SubAfter" and entry["time_ms"] is None for entry in entries)
    assert len(entries) > len({(entry["trace_msg_id"], entry["position"]) for entry in entries})
    assert any(call["retry_times"] for call in calls)


@pytest.mark.parametrize("seed", first_of(11, 3))
def test_causes_of_calls_are_those_that_the_lab_saw(seed: int) -> None:
    """But for what the trace cannot know: ends that died with their member, and with which unit a call was."""
    played = played_day(seed)
    told = {
        (row["group_name"], row["msg_id"], row["keys"], row["request_id"]): row["cause"]
        for row in why_again(facts(str(played.stores)))
    }
    started = {call["request_id"]: call["started_ms"] for call in trace.calls_in(played.stores)}
    mine = Counter((*key[:3], started[key[3]], cause) for key, cause in told.items())
    true = Counter(
        (call.consumer_group, call.msg_id, call.keys, call.started_ms, call.cause or "first")
        for call in played.calls
        if call.keys and call.consumer_group != QUIET
    )
    different = {(seen[-1], thought[-1]) for seen in true - mine for thought in mine - true if seen[:4] == thought[:4]}
    assert (mine - true).total() <= 6 and different <= {("soon", "no_result"), ("late", "soon")}
    assert {"retry", "resend", "no_result", "soon", "late"} <= {key[-1] for key in mine}


def test_retries_and_slow_orders_of_the_day_are_in_their_minutes() -> None:
    played = played_day(11)
    minutes = storm(units_in(str(played.stores)), trace.calls_in(played.stores))
    retried = [call for call in played.calls if call.place[1].startswith("%RETRY%")]
    assert sum(row["retries"] for row in minutes) == len(retried) == 23
    rows = slow_when(facts(str(played.stores)), "mail", ["paid", "shipped"])
    lost = sum(row.outcome == "lost" and row.consumer_group == "mail" for row in played.lives)
    assert round(sum(row["orders"] * row["waiting"] for row in rows)) == lost
    assert sum(row["orders"] for row in rows) == 280


def test_each_call_with_an_order_is_counted_in_the_minute_in_which_the_order_was_sent() -> None:
    played = played_day(11)
    minutes = storm(units_in(str(played.stores)), trace.calls_in(played.stores))
    told = [call for call in played.calls if call.consumer_group != QUIET]
    sent = {(row.msg_id, row.keys) for row in played.lives if row.outcome != "waiting"}
    assert sum(row["sent"] for row in minutes) == len(sent)
    assert round(sum(row["sent"] * row["calls_each"] for row in minutes)) == len(told)


def test_a_message_that_was_stored_twice_and_one_without_calls_are_told_apart() -> None:
    (call,) = STORM.form.calls(1)
    units, calls = units_in(call["messages"]), trace.calls_in(call["messages"])
    (asleep,) = (row for row in call.right if not row["sent"])
    assert (asleep["share"], asleep["calls_each"]) == (1, None)
    rows = storm(units, [each for each in calls if not each["retry_times"]])
    assert judged(STORM, call, rows).rule.startswith("calls_each is the number of all calls")
    rows = storm(units, calls, sent=lambda topic: topic != "RMQ_SYS_TRACE_TOPIC")
    assert judged(STORM, call, rows).rule.startswith("sent counts messages in topics of applications")


def test_a_percentile_lies_between_two_values_as_in_spark() -> None:
    assert percentile([1, 2, 3, 4], 0.5) == 2.5 and percentile([7], 0.99) == 7 and percentile([], 0.5) is None
    assert percentile(range(101), 0.99) == 99


def test_every_nth_trace_message_can_be_left_out() -> None:
    stores = played_day(11).stores
    every = trace.trace_bodies(stores)
    kept = trace.entries_in(stores, forgets=10)
    assert {row["trace_msg_id"] for row in every[9::10]}.isdisjoint({row["trace_msg_id"] for row in kept})
    assert len({row["trace_msg_id"] for row in kept}) == len(every) - len(every) // 10


def test_a_body_of_each_kind_is_read() -> None:
    body = entry("SubBefore", 17, None, "billing", "R1", "M1", 2, "заказ") + entry(
        "SubAfter", "R1", "M1", 5, False, "заказ"
    )
    before, after = trace.read_entries(body)
    assert (before["time_ms"], before["retry_times"], before["keys"]) == (17, 2, "заказ")
    assert after["success"] is False and after["time_ms"] is None and after["group_name"] is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"Recall\x0117\x02", "unknown kind"),
        (b"SubBefore\x0117\x02", "too short"),
        (b"SubAfter\x01R", "no end mark"),
        (entry("SubBefore", "1x7", None, "g", "R", "M", 0, ""), "not a number"),
        (b"\x02", "unknown kind"),
    ],
)
def test_what_cannot_be_read_has_its_reason(body: bytes, reason: str) -> None:
    (row,) = trace.read_entries(body)
    assert row["reason"] == reason and {value for name, value in row.items() if name not in ("reason", "position")} == {
        None
    }


@pytest.mark.parametrize("cut", range(0, 120, 7))
def test_a_body_that_was_cut_anywhere_is_read(cut: int) -> None:
    body = b"".join(entry("SubBefore", 17, None, "billing", "R1", "M1", 2, "заказ 订单") for _ in range(2))
    rows = trace.read_entries(body[:cut])
    assert [row["position"] for row in rows] == list(range(len(rows)))


def test_a_call_that_is_joined_by_half_of_its_name_is_told_which_half_is_missing() -> None:
    (call,) = CALLS.form.calls(1)
    entries = trace.entries_in(str(call["entries"]))
    for by, belief in (["msg_id"], "lab11.id_names_a_call"), (["request_id"], "lab11.request_is_message"):
        found = judged(CALLS, call, joined(entries, by))
        assert found.rule == refutation(belief) and found.found == "two rows"
    twice = judged(CALLS, call, joined(entries, once=False))
    assert twice.rule == refutation("lab11.stored_once")


def test_a_copy_and_a_repeated_send_are_told_apart() -> None:
    (call,) = LIFE.form.calls(1)
    known = facts(call["messages"])
    orders = [((unit["msg_id"], unit["keys"]), unit) for unit in known.units if unit["topic"] == "orders"]
    assert judged(LIFE, call, life(known, orders=orders)).rule == refutation("lab11.unit_is_message")
    copies = [((unit["msg_id"], unit["keys"]), unit) for unit in known.units if unit["topic"].startswith("%RETRY%")]
    every = [*known.orders().items(), *copies]
    assert judged(LIFE, call, life(known, orders=every)).rule == refutation("lab11.copies_are_messages")


def judged(asked: Any, call: Any, rows: Any) -> Any:
    """The finding about an answer that gives these rows."""
    found = asked.form.judge({asked.form.name: None, asked.form.through: lambda *given: rows}, [call])
    assert found is not None
    return found


def test_a_body_that_ends_inside_a_letter_raises_for_those_who_decode_all_of_it() -> None:
    made = ENTRIES.form.make(1)
    broken = [call for call in made if raises(call["body"].decode)]
    assert [call.about for call in broken] == ["a body that ends inside a letter"]


def raises(function: Callable[[], object]) -> bool:
    try:
        function()
    except UnicodeDecodeError:
        return True
    return False


def test_beliefs_that_do_not_come_true_can_be_predicted() -> None:
    for question_id, belief in {
        "lab11.lag_zero": "none",
        "lab11.stuck": "two",
        "lab11.trace_gap": "same",
        "lab11.two_queues": "mean",
        "lab11.again_why": "all",
        "lab11.once_failed": "two",
        "lab11.last_echo": "night",
        "lab11.skew": "none",
    }.items():
        assert QUESTIONS[question_id].problem_with(belief) == ""


BODY = entry("Pub", *range(12)) + entry("SubBefore", *range(7))
MINUTES = [{"minute_ms": 60_000 * at, "p99_ms": p99} for at, p99 in ((7, None), (10, 9.0), (8, 5.0))]
TOLD = [
    {"group_name": "audit", "msg_id": msg_id, "keys": "", "retry_times": retries}
    for msg_id, retries in (("A", 0), ("A", 0), ("A", 1), ("B", 0))
]


@pytest.mark.parametrize(
    ("task", "value", "given", "state", "said"),
    [
        ("cut", 1, (BODY, len(BODY) - 3), "good", "One missing byte"),
        ("cut", 2, (BODY, len(BODY) - 3), "bad", "the row without an end mark"),
        ("cut", 2, (BODY, 400), "open", "change CUT first"),
        ("again", 2, (TOLD, "audit"), "good", "None of them was a retry"),
        ("again", 1, (TOLD, "audit"), "bad", "retry_times is not 0"),
        ("again", 4, (TOLD, "audit"), "bad", "all its calls"),
        ("again", 0, (TOLD, "billing"), "open", "change GROUP first"),
        ("slow_minute", 3, (MINUTES, "audit"), "good", "a retry waits"),
        ("slow_minute", 0, (MINUTES, "audit"), "bad", "count its minute"),
        ("slow_minute", 0, (MINUTES, "mail"), "open", "change GROUP first"),
        ("slow_minute", 0, ([], "audit"), "open", "exercise 4 comes first"),
        ("longer", 10.0, (range(36_000), 60), "good", "eighteen levels"),
        ("longer", 36_000, (range(36_000), 60), "bad", "the number of all retries"),
        ("longer", 7.7, (range(9_240), 20), "open", "change FAILS_MIN first"),
    ],
)
def test_your_turn_is_judged_by_what_the_learner_has_chosen(
    task: str, value: object, given: tuple[Any, ...], state: str, said: str
) -> None:
    reply = answer(f"lab11.{task}", value, *given)
    assert reply.state == state and said in f"{reply.headline} {reply.note}"


def test_your_turn_with_the_played_day() -> None:
    played = played_day(11)
    lost = sum(row.outcome == "lost" and row.tags == "paid" for row in played.lives)
    assert answer("lab11.lost_when", lost, played.lives, "paid").state == "good"
    assert answer("lab11.lost_when", 60, played.lives, "paid").state == "bad"
    assert answer("lab11.lost_when", 60, played.lives, "created").state == "open"
    assert answer("lab11.alone", 30, played.stores, 3).state == "good"
    assert answer("lab11.alone", 21, played.stores, 3).state == "bad"
    assert answer("lab11.alone", 21, played.stores, 10).state == "open"
