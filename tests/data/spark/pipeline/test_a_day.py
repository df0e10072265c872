"""The tables of a day against what the Lab itself saw: deliveries, lives, facts, suspicions."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

import pytest
from pyspark.testing import assertDataFrameEqual

from mqlab.data.spark import pipeline
from mqlab.data.spark.pipeline import group_facts, harmed_messages
from mqlab.data.spark.small_tables import collected
from mqlab.lab.inspector import StoreInspector
from tests.data.spark.pipeline.day import Day
from tests.data.spark.pipeline.world import (
    AUDIT,
    BILLING,
    DELAYED,
    FAILS_TWICE,
    KILLED,
    LATE,
    NEVER_BACK,
    POISON,
    QUIET,
    RAISES,
    SENT_TWICE,
    TAGS,
    Told,
)

pytestmark = pytest.mark.spark

A_MINUTE_MS = 60_000


def ms(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def traced(day: Day) -> list[Told]:
    return [told for told in day.world.told if told.group != QUIET]


def of_key(day: Day, group: str | None, keys: str) -> dict[str, Any]:
    (row,) = [r for r in day.rows("life") if r["consumer_group"] == group and r["keys"] == keys]
    return row


STATUS = {"CONSUME_SUCCESS": "SUCCESS", "RECONSUME_LATER": "FAILED", "RUNNING": "NO_RESULT"}


def test_every_delivery_the_lab_saw_is_a_row_and_no_other(day: Day) -> None:
    raised = day.world.ids[RAISES]
    truth = Counter(
        (
            t.group,
            t.msg_id,
            t.retry_times,
            t.started_ms,
            t.ended_ms,
            "EXCEPTION" if (t.msg_id, t.retry_times, t.group) == (raised, 0, BILLING) else STATUS[t.status],
        )
        for t in traced(day)
    )
    found = Counter(
        (r["consumer_group"], r["msg_id"], r["retry_times"], ms(r["started"]), ms(r["ended"]), r["status"])
        for r in day.rows("deliveries")
    )
    assert found == truth


def test_a_life_says_of_each_message_and_group_what_the_deliveries_say(day: Day) -> None:
    """Attempts, results and times, summed up in plain Python over what the Lab saw."""
    sums: dict[tuple[str, str], list[Told]] = defaultdict(list)
    for told in traced(day):
        sums[told.group, told.msg_id].append(told)
    lives: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in day.rows("life"):
        if row["consumer_group"] in (BILLING, AUDIT) and row["attempts"]:
            lives[row["consumer_group"], row["msg_id"]].append(row)
    assert lives.keys() == sums.keys()
    for key, theirs in sums.items():
        rows, good = lives[key], [t.ended_ms for t in theirs if t.status == "CONSUME_SUCCESS"]
        assert sum(row["attempts"] for row in rows) == len(theirs)
        assert sum(row["successes"] for row in rows) == len(good)
        assert sum(row["failures"] for row in rows) == sum(t.status == "RECONSUME_LATER" for t in theirs)
        assert sum(row["no_results"] for row in rows) == sum(t.ended_ms is None for t in theirs)
        assert min(ms(row["first_started"]) for row in rows) == min(t.started_ms for t in theirs)  # type: ignore[type-var]
        assert max(ms(row["last_started"]) for row in rows) == max(t.started_ms for t in theirs)  # type: ignore[type-var]
        assert {ms(row["consumed"]) for row in rows} == ({min(good)} if good else {None})


def test_every_message_has_one_row_in_every_group_that_reads_its_topic(day: Day) -> None:
    keys = [*day.world.ids, "b-0", "b-1", "b-2", ""]
    rows = Counter((row["consumer_group"], row["keys"]) for row in day.rows("life") if row["topic"] == "orders")
    assert rows == {(group, key): 1 for group in (BILLING, AUDIT, QUIET) for key in keys}
    (unread,) = [row for row in day.rows("life") if row["topic"] == "notes"]
    assert (unread["consumer_group"], unread["keys"], unread["outcome"]) == (None, "n-1", "pending")


@pytest.mark.parametrize(
    ("group", "keys", "outcome"),
    [
        (BILLING, FAILS_TWICE, "consumed"),
        (BILLING, RAISES, "consumed"),
        (BILLING, POISON, "dead"),
        (BILLING, NEVER_BACK, "pending"),
        (BILLING, "k-2", "filtered"),
        (BILLING, KILLED, "filtered"),
        (AUDIT, KILLED, "consumed"),
        (AUDIT, POISON, "consumed"),
        (AUDIT, LATE, "waiting"),
        (BILLING, LATE, "waiting"),
        (QUIET, "k-0", "untraced"),
        (AUDIT, DELAYED, "consumed"),
        (AUDIT, SENT_TWICE, "consumed"),
    ],
)
def test_outcomes(day: Day, group: str, keys: str, outcome: str) -> None:
    assert of_key(day, group, keys)["outcome"] == outcome


def test_retries_and_dead_letters_are_folded_into_their_original(day: Day) -> None:
    row = of_key(day, BILLING, FAILS_TWICE)
    # original, and twice: parked in SCHEDULE_TOPIC_XXXX, then in %RETRY%billing
    assert (row["attempts"], row["levels"], row["retries_stored"], row["units_stored"]) == (3, 3, 2, 5)
    assert row["latency_ms"] == ms(row["consumed"]) - ms(row["stored"]) > 40_000  # type: ignore[operator]
    dead = of_key(day, BILLING, POISON)
    assert (dead["attempts"], dead["failures"], dead["retries_stored"], dead["units_stored"]) == (3, 3, 2, 6)
    messages = {(r["kind"], r["parked"]): r for r in day.rows("messages") if r["msg_id"] == day.world.ids[POISON]}
    original = messages["normal", False]
    store = StoreInspector(day.world.directory / original["broker_name"])
    letter = messages["dead", False]
    assert (letter["consumer_group"], letter["user_topic"]) == (BILLING, "orders")
    assert letter["origin_msg_id"] == store.message_at(original["physical_offset"]).offset_msg_id  # type: ignore[union-attr]
    assert messages["retry", True]["topic"] == "SCHEDULE_TOPIC_XXXX"
    assert messages["retry", True]["user_topic"] == "orders"


def test_why_messages_came_again(day: Day) -> None:
    def causes(group: str, keys: str) -> dict[str, int]:
        row = of_key(day, group, keys)
        return {name[6:]: row[name] for name in row if name.startswith("again_") and row[name]}

    assert causes(BILLING, "k-0") == {}
    assert causes(BILLING, FAILS_TWICE) == {"retry": 2}
    assert causes(BILLING, SENT_TWICE) == {"resend": 1}
    assert causes(AUDIT, KILLED) == {"no_result": 1, "late": 1}
    assert causes(AUDIT, "k-0") == {"late": 1}
    assert causes(AUDIT, SENT_TWICE) == {"resend": 1, "late": 2}
    assert (of_key(day, AUDIT, SENT_TWICE)["copies"], of_key(day, AUDIT, SENT_TWICE)["members"]) == (2, 1)
    alike = of_key(day, AUDIT, "")
    assert (alike["copies"], alike["members"], alike["attempts"], alike["again_late"]) == (1, 2, 4, 2)
    told = {(r["consumer_group"], r["cause"]): r["deliveries"] for r in day.rows("duplicates")}
    assert told[BILLING, "retry"] == 2 + 1 + 2
    assert told[BILLING, "resend"] == told[AUDIT, "resend"] == told[AUDIT, "no_result"] == 1
    replayed = sum(t.started_ms >= day.world.reset_at_ms for t in traced(day) if t.group == AUDIT)
    assert told[AUDIT, "late"] == replayed - 7  # sent after the reset, read once


def test_lag_is_what_the_admin_says(day: Day) -> None:
    found = {
        (r["broker_name"], r["topic"], r["consumer_group"], r["queue_id"]): r["consumer_offset"]
        for r in day.rows("lag")
    }
    assert found == day.world.offsets
    ends = {
        (queue.topic, store.name, queue.queue_id): queue.max_offset
        for store in day.world.directory.iterdir()
        for queue in StoreInspector(store).queues()
    }
    for row in day.rows("lag"):
        end = ends.get((row["topic"], row["broker_name"], row["queue_id"]), 0)
        assert row["broker_offset"] == end
        assert row["lag"] == end - row["consumer_offset"]


def test_queues_are_those_of_the_stores(day: Day) -> None:
    found = {
        (r["broker_name"], r["topic"], r["queue_id"]): (r["min_offset"], r["max_offset"]) for r in day.rows("queues")
    }
    truth = {
        (store.name, queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset)
        for store in day.world.directory.iterdir()
        for queue in StoreInspector(store).queues()
        if queue.max_offset
    }
    assert found == truth


def test_groups_and_their_tags(day: Day) -> None:
    groups = {row["consumer_group"]: row for row in day.rows("groups")}
    messages = len(day.world.ids) + 5
    for group in (BILLING, AUDIT, QUIET):
        assert groups[group]["messages"] == messages
        outcomes = ("consumed", "dead", "pending", "filtered", "lost", "untraced", "waiting")
        assert sum(groups[group][outcome] for outcome in outcomes) == messages
    assert (groups[BILLING]["dead"], groups[BILLING]["pending"], groups[BILLING]["filtered"]) == (1, 1, 5)
    assert sum(groups[group]["lost"] for group in (BILLING, AUDIT, QUIET)) == 0
    assert groups[QUIET]["untraced"] == messages - 1
    ours = [told for told in traced(day) if told.group == BILLING]
    given = messages - groups[BILLING]["filtered"] - 1
    assert groups[BILLING]["amplification"] == pytest.approx(len(ours) / given)
    latencies = sorted(r["latency_ms"] for r in day.rows("life") if r["consumer_group"] == BILLING and r["consumed"])
    assert groups[BILLING]["max_latency_ms"] == latencies[-1]
    assert latencies[0] <= groups[BILLING]["p50_latency_ms"] <= latencies[-1]
    # The poison and the message that never came back are two of some twenty: nobody knows the slowest of a hundred.
    assert groups[BILLING]["p90_latency_ms"] is not None and groups[BILLING]["p99_latency_ms"] is None
    assert groups[AUDIT]["p99_latency_ms"] == groups[AUDIT]["max_latency_ms"]
    # The offsets do not imply the call that never came back, the one behind it in its queue, and the second copy's.
    assert groups[BILLING]["calls_implied"] == groups[BILLING]["calls_told"] == len(ours) - 3
    assert groups[BILLING]["coverage"] == groups[AUDIT]["coverage"] == 1 and groups[QUIET]["coverage"] is None
    tags = {(row["consumer_group"], row["tags"]): row["delivered_share"] for row in day.rows("group_tags")}
    assert tags[BILLING, "created"] == 0
    assert tags[BILLING, "shipped"] == 1
    assert {tag for group, tag in tags if group == AUDIT} == set(TAGS)
    assert all(group != QUIET for group, tag in tags)


def test_a_call_that_is_not_in_the_trace_shows_in_the_coverage(day: Day) -> None:
    """Without its only call a message looks lost; without one of three it does not, but fewer calls are told."""
    k_1, k_3 = day.world.ids["k-1"], day.world.ids[FAILS_TWICE]
    gone = f"consumer_group = 'billing' AND (msg_id = '{k_1}' OR (msg_id = '{k_3}' AND retry_times = 1))"
    left = day.table("deliveries").where(f"NOT ({gone})")
    life = pipeline.life(day.table("messages"), left, day.table("readers"), day.table("offsets")).cache()
    became = {row["keys"]: row["outcome"] for row in life.where("consumer_group = 'billing'").collect()}
    assert (became["k-1"], became[FAILS_TWICE], became["k-2"]) == ("lost", "consumed", "filtered")
    of_life = (group_facts.cells(life, A_MINUTE_MS), group_facts.percentiles_of_life(life, A_MINUTE_MS))
    made = group_facts.groups(*map(collected, of_life)).to_dict("records")
    groups = {row["consumer_group"]: row for row in made}
    whole = {row["consumer_group"]: row for row in day.rows("groups")}
    assert groups[BILLING]["lost"] == 1 and groups[BILLING]["calls_implied"] == whole[BILLING]["calls_implied"]
    assert groups[BILLING]["calls_told"] == whole[BILLING]["calls_told"] - 2 and groups[AUDIT]["coverage"] == 1
    (row,) = harmed_messages.lost(life).collect()
    assert (row["msg_id"], row["consumer_group"], row["tags"], row["of"]) == (k_1, BILLING, "shipped", 1)
    life.unpersist()


def test_dead_letters_are_listed_with_what_finds_them(day: Day) -> None:
    (letter,) = day.rows("dead_letters")
    assert (letter["consumer_group"], letter["topic"], letter["keys"]) == (BILLING, "orders", POISON)
    assert (letter["attempts"], letter["outcome"], letter["of"]) == (3, "dead", 1)
    life = of_key(day, BILLING, POISON)
    assert letter["stored"] == life["stored"] < letter["died"] and letter["msg_id"] == life["msg_id"]


def test_the_lag_in_time_is_that_of_the_message_to_be_read_next(day: Day) -> None:
    (behind,) = [row for row in day.rows("lag") if row["lag"]]
    held = of_key(day, BILLING, NEVER_BACK)
    assert (behind["broker_name"], behind["queue_id"]) == (held["broker_name"], held["queue_id"])
    assert behind["next_stored"] == held["stored"]
    end = max(row["store_timestamp"] for row in day.rows("messages") if row["broker_name"] == held["broker_name"])
    assert behind["behind_ms"] == ms(end) - ms(held["stored"]) > 0  # type: ignore[operator]
    assert {row["behind_ms"] for row in day.rows("lag") if not row["lag"]} == {0}


def test_latency_counts_what_was_not_consumed(day: Day) -> None:
    rows = [row for row in day.rows("latency") if row["consumer_group"] == BILLING]
    assert sum(row["messages"] for row in rows) == sum(row["consumed"] for row in rows) + 2  # poison, never back
    (last,) = [
        row for row in rows if row["stretch"] <= of_key(day, BILLING, NEVER_BACK)["stored"] and row["messages"] == 7
    ]
    assert (last["consumed"], last["p99_latency_ms"]) == (6, None) and last["p50_latency_ms"] > 0


def test_traffic_and_backlog_add_up(day: Day) -> None:
    sent = Counter[str]()
    for row in day.rows("traffic"):
        sent[row["topic"]] += row["messages"]
    assert sent == {"orders": len(day.world.ids) + 5 + 1 - 1, "notes": 1}  # one twice, one not visible yet
    for group, left in ((BILLING, 1), (AUDIT, 0)):  # the message that never came back
        rows = [row for row in day.rows("backlog") if row["consumer_group"] == group]
        assert [r["stretch"] for r in rows] == sorted(r["stretch"] for r in rows)
        assert rows[-1]["behind"] == sum(r["stored"] - r["done"] for r in rows) == left
        assert min(r["behind"] for r in rows) >= 0


def test_calls_producers_and_the_slowest(day: Day) -> None:
    calls = Counter[str]()
    for row in day.rows("calls"):
        calls[row["consumer_group"]] += row["calls"]
    assert calls == Counter(told.group for told in traced(day))
    (shop,) = [row for row in day.rows("producers") if row["topic"] == "orders"]
    assert (shop["producer_group"], shop["sends"]) == ("shop", len(day.world.ids) + 1)  # the batch is one send
    never, killed, *rest = day.rows("slowest")
    assert {never["keys"], killed["keys"]} == {NEVER_BACK, KILLED}
    assert rest[0]["cost_ms"] == 20


def test_keys_are_counted(day: Day) -> None:
    found = Counter[str]()
    for row in day.rows("keys"):
        found[row["message_key"]] += row["messages"]
    assert found[SENT_TWICE] == 2
    assert all(0 < row["share"] <= 1 and row["share_of_day"] <= row["share"] for row in day.rows("keys"))


def test_what_looks_wrong_is_told_and_nothing_else(day: Day) -> None:
    found = {(row["kind"], row["consumer_group"]): row for row in day.rows("suspicions")}
    assert found.keys() == {
        ("stuck message", BILLING),
        ("dead letters", BILLING),
        ("offset set back", AUDIT),
        ("sent twice", None),
    }
    stuck = found["stuck message", BILLING]
    assert stuck["subject"] == day.world.ids[NEVER_BACK]
    held = of_key(day, BILLING, NEVER_BACK)
    assert (stuck["queue_id"], stuck["broker_name"]) == (held["queue_id"], held["broker_name"])
    assert POISON in found["dead letters", BILLING]["told"]
    assert ms(found["offset set back", AUDIT]["since"]) >= day.world.reset_at_ms  # type: ignore[operator]


def test_the_trace_reads_whole(day: Day) -> None:
    assert day.table("trace").where("reason IS NOT NULL").count() == 0


def test_steps_alone_give_what_the_job_gave(day: Day) -> None:
    """As in a notebook: a table in, a table out."""
    made = pipeline.deliveries(day.table("trace"))
    assertDataFrameEqual(made, day.table("deliveries"))
    tables = [day.table(name) for name in ("messages", "deliveries", "readers", "offsets")]
    assertDataFrameEqual(pipeline.life(*tables), day.table("life"))


def test_steps_are_told_in_their_order(day: Day) -> None:
    assert day.told == [name for step in pipeline.STEPS for name in (step, step)]
    for step in pipeline.STEPS.values():
        assert list(day.out.glob(f"{step.folder}/*.parquet"))
