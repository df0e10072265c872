"""Played on paper first, then run: each docstring says what paper says, each test compares it with the run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, every_crash, play
from tests.lab.scenarios.stories import Seen, changes, delivered, member, quiet_lab, row, send, send_many

QUIET: dict[str, Any] = {"client": {"enable_trace": False}}


def pulled(lab: Lab) -> list[int]:
    """How many messages each pull of orders brought."""
    return [one["messages"] for one in changes(lab, "message.pulled") if one["queue"].topic == "orders"]


@pytest.mark.parametrize(("memory", "most"), [(None, 32), ("20KB", 8)])
def test_cold_reads_bring_eight_messages_a_pull_instead_of_thirty_two(memory: str | None, most: int) -> None:
    """On paper: 200 messages, 32 a pull from memory: 7 pulls (6 x 32 + 8). From disk 8 a pull: 192 = 24 x 8, if only
    the last few lie in memory; the last pull takes what is left, and more than 8 when it reaches the warm end.
    """
    lab = quiet_lab(seed=41, memory=memory)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    send(lab.producer("shop"), *["订" * 300] * 200)
    lab.run_for("1s")
    member(lab, "billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET", pull_batch_size=32)
    lab.run_for("30s")
    batches = pulled(lab)
    assert sum(batches) == 200 and batches[0] == most
    if memory is None:
        assert batches == [32] * 6 + [8]
    else:
        assert set(batches[:-1]) == {8} and batches[-1] >= 8


def test_cold_reads_slow_a_group_down() -> None:
    """On paper: a pull costs a round trip of 2 x 20 ms. 1000 messages are 32 pulls from memory, 125 from disk (8
    each), so reading cold takes about 125/32 = 3.9 times as long when the listener costs nothing; more than twice,
    surely.
    """

    def took_ms(memory: str | None) -> int:
        lab = quiet_lab(seed=42, memory=memory, network={"latency": "20ms"})
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        send_many(lab.producer("shop"), 1_000, queue=0)
        lab.run_for("1s")
        seen = Seen(lab)
        member(lab, "billing", seen, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        began_ms = lab.now_ms
        lab.run_until(lambda: len(seen.messages) == 1_000)
        return lab.now_ms - began_ms

    assert took_ms("2KB") > 2 * took_ms(None)


def test_one_stuck_message_holds_the_offset_while_a_hundred_later_ones_finish() -> None:
    """On paper: 101 messages, number 0 sleeps for an hour, the other 19 threads finish the hundred behind it. The
    offset is the smallest unfinished one: 0. So lag 101 though one message is missing, one STUCK, and after a kill
    all hundred are done again.
    """
    lab = quiet_lab(seed=43)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)

    def listener(messages: Any, context: Any) -> str:
        if messages[0].keys == "stuck":
            context.sleep("1h")
        return CONSUME_SUCCESS

    member(lab, "billing", listener)
    producer = lab.producer("shop")
    send(producer, "застрял", keys="stuck")
    send(producer, *[f"订单 {number}" for number in range(100)])
    lab.run_for("2m")
    assert sum(one.status == CONSUME_SUCCESS for one in delivered(lab, "billing")) == 100
    seen = row(lab, "billing")
    assert (seen.broker_offset, seen.consumer_offset, seen.lag) == (101, 0, 101)
    assert lab.verify("billing").counts() == {"STUCK": 1}
    lab.kill("billing-1")
    lab.start("billing-1")
    lab.run_for("2m")
    assert len(lab.verify("billing").of("DUPLICATED")) == 100  # the price of an offset that did not move


@pytest.mark.parametrize("post", [False, True])
def test_two_members_with_different_tags_never_share_the_work(post: bool) -> None:
    """On paper: 40 messages, half paid, half new, 10 in each of 4 queues; each member owns 2 queues. Each brings its
    own expression along (post): 2 of 4 queues hold half of each tag, so 10 and 10 and the other 20 are skipped. The
    broker's one subscription counts (not post): whoever told it last gets the 10 of its two queues; the other's
    queues are filtered by the wrong tag and the client drops what comes: 0. Then 30 are skipped.
    """
    lab = quiet_lab(seed=44)
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    paid, new = Seen(lab), Seen(lab)
    member(lab, "billing", paid, name="billing-1", tags="paid", post_subscription_when_pull=post)
    member(lab, "billing", new, name="billing-2", tags="new", post_subscription_when_pull=post)
    lab.run_for("40s")
    producer = lab.producer("shop")
    for number in range(40):
        send(producer, f"{number}", tags=("paid", "new")[number // 4 % 2], queue=number % 4)
    lab.run_for("2m")
    got = len(paid.messages), len(new.messages)
    assert {message.tags for message in paid.messages} <= {"paid"}
    assert {message.tags for message in new.messages} <= {"new"}
    if post:  # each gets its own tag, of its own two queues: half of everything is nobody's
        assert got == (10, 10)
    else:  # the broker knows one subscription; the member it is not of gets nothing
        assert sorted(got) == [0, 10]
    assert len(lab.verify("billing").of("SKIPPED")) == 40 - sum(got)


def test_sixteen_queues_become_eight_without_a_loss() -> None:
    """On paper: writers first. write=8, read=16: producers move to queues 0..7 within 30 s, the members still read
    all 16. Lag 0 on 8..15, then read=8. Nothing is lost; the other way round queues 8..15 would keep what nobody
    reads.
    """
    lab = quiet_lab(seed=45)
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=16)
    seen = Seen(lab)
    member(lab, "billing", seen)
    producer = lab.producer("shop")
    lab.run_for("5s")
    bodies = [f"заказ {number}" for number in range(96)]
    send(producer, *bodies[:48])
    lab.admin.update_topic("orders", write_queue_nums=8)  # first the writers leave ...
    lab.run_for("35s")  # ... when they have asked for the route again
    queues = {result.message_queue.queue_id for result in send(producer, *bodies[48:])}
    assert queues == set(range(8))
    lab.run_for("20s")
    behind = [one for one in lab.admin.examine_consume_stats("billing", "orders").queues if one.lag]
    assert not behind  # ... the rest is read ...
    lab.admin.update_topic("orders", read_queue_nums=8)  # ... and then the readers may leave too
    lab.run_for("2m")
    assert sorted(seen.bodies) == sorted(bodies)
    assert lab.verify("billing").is_clean


def between_consuming_and_committing(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    member(lab, "billing")
    producer = lab.producer("shop")
    for number in range(10):
        producer.send(Message("orders", f"订单 {number} 💳".encode()))
    lab.run_for("1m")


def test_a_consumer_killed_between_consuming_and_committing_does_it_all_again() -> None:
    """On paper: ten messages are done within a second, the offset goes to the broker every 5 s after the first 10 s.
    Killed in between, all ten are done again; killed one step after the commit, none.
    """
    whole = play(between_consuming_and_committing, seed=46, **QUIET)
    assert whole.verify("billing").is_clean
    last = [record.step for record in whole.journal.of("listener.returned")][-1]
    committed = next(record.step for record in whole.journal.of("offset.committed"))
    assert last < committed

    def kill_and_start(lab: Lab) -> None:
        lab.kill("billing-1")
        lab.start("billing-1")

    lab = play(between_consuming_and_committing, seed=46, faults={last + 1: kill_and_start}, **QUIET)
    assert len(lab.verify("billing").of("DUPLICATED")) == 10
    later = play(between_consuming_and_committing, seed=46, faults={committed + 1: kill_and_start}, **QUIET)
    assert later.verify("billing").is_clean  # a step after the commit it costs nothing


def pay_once(lab: Lab, messages: Any) -> None:
    """Pay and remember the order in one transaction; the unique row refuses the second time."""
    with lab.database("bank").connect() as connection:
        try:
            connection.execute("insert into paid values (?)", (messages[0].keys,))
        except sqlite3.IntegrityError:
            return
        connection.execute("update account set balance = balance - 10")


def pay_and_forget(lab: Lab, messages: Any) -> None:
    """Pay, in a transaction that knows nothing of the order."""
    with lab.database("bank").connect() as connection:
        connection.execute("update account set balance = balance - 10")


def pay_then_remember(lab: Lab, messages: Any) -> None:
    """Pay and remember in two transactions: between them is a place to die."""
    with lab.database("bank").connect() as connection:
        known = connection.execute("select 1 from paid where id = ?", (messages[0].keys,)).fetchone()
    if known:
        return
    with lab.database("bank").connect() as connection:
        connection.execute("update account set balance = balance - 10")
    with lab.database("bank").connect() as connection:
        connection.execute("insert into paid values (?)", (messages[0].keys,))


def payments(pay: Callable[[Lab, Any], None]) -> Callable[[Lab], None]:
    """Two orders of 10 from an account of 100, paid by a listener."""

    def story(lab: Lab) -> None:
        with lab.database("bank").connect() as connection:
            connection.executescript(
                "create table paid (id text unique); create table account (balance int);"
                "insert into account values (100)"
            )
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)

        def listener(messages: Any, context: Any) -> str:
            pay(lab, messages)
            return CONSUME_SUCCESS

        member(lab, "billing", listener)
        send(lab.producer("shop"), "付款 💳", keys="заказ-1")
        send(lab.handles["shop-1"], "付款 💳", keys="заказ-2")
        lab.run_for("40s")

    return story


def balances(pay: Callable[[Lab, Any], None]) -> dict[str, int]:
    """What is left of the 100 after each run in which billing-1 is killed before another line of its listener."""
    found = {}
    for lab in every_crash(
        payments(pay),
        node="billing-1",
        restart_after="2s",
        seed=47,
        only=lambda point: point.kind == "line",
        client={"enable_trace": False},
    ):
        with lab.database("bank").connect() as connection:
            found[str(lab.crash_point)] = connection.execute("select balance from account").fetchone()[0]
        assert {row.status for row in delivered(lab, "billing")} >= {CONSUME_SUCCESS}, str(lab.crash_point)
    return found


def test_a_payment_service_killed_before_every_line_of_its_listener() -> None:
    """On paper: before the commit of its transaction a kill undoes everything, after it the unique row refuses the
    second time: 80 whatever the line. Without the row every kill between a commit and the offset's pays again: below
    80. With the row in a transaction of its own there is one such place for each order: between the two.
    """
    right = balances(pay_once)
    assert len(right) >= 10 and set(right.values()) == {80}
    forgetful = balances(pay_and_forget)
    assert min(forgetful.values()) < 80 <= max(forgetful.values())
    apart = balances(pay_then_remember)
    wrong = [where for where, balance in apart.items() if balance != 80]
    assert wrong and {apart[where] for where in wrong} == {70}
    assert all("pay_then_remember" in where for where in wrong) and len(wrong) < len(apart)


def seconds_for(messages: int, threads: int, slots: int | None) -> float:
    """Virtual seconds from the first listener call to the last one's end; each waits 200 ms for the database."""
    lab = quiet_lab(seed=48)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    database = lab.resource("db", slots=slots or messages)

    def listener(batch: Any, context: Any) -> str:
        with database:
            context.sleep("200ms")
        return CONSUME_SUCCESS

    send_many(lab.producer("shop"), messages, queue=0)
    lab.run_for("1s")
    member(
        lab,
        "billing",
        listener,
        consume_thread_min=threads,
        consume_thread_max=threads,
        consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    )
    lab.run_for("2m")
    rows = delivered(lab, "billing")
    assert len(rows) == messages and {row.status for row in rows} == {CONSUME_SUCCESS}
    took_ms: int = max(row.ended_ms for row in rows) - min(row.started_ms for row in rows)
    return took_ms / 1000


@pytest.mark.parametrize(("threads", "slots", "paper_s"), [(20, None, 10), (40, None, 5), (20, 10, 20), (40, 10, 20)])
def test_the_threads_formula_holds_until_the_database_has_ten_slots(
    threads: int, slots: int | None, paper_s: int
) -> None:
    """On paper: messages x time / threads. 1000 x 0.2 s / 20 = 10 s, with 40 threads 5 s. A database of 10 slots is a
    pool of 10: 1000 x 0.2 s / 10 = 20 s, and twice the threads change nothing but the queue before it.
    """
    assert seconds_for(1_000, threads, slots) == pytest.approx(paper_s, rel=0.05)
