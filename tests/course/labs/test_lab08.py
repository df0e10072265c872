"""Lab 08: the judge agrees with a broker, days are what they are about, and wrong answers of other kinds are told."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import COMMIT_MESSAGE, CONSUME_SUCCESS, UNKNOW, Message, play
from mqlab.course.cases.lab08 import cancelling, commits, counting, delays, relay, wheel
from mqlab.course.kit.promises import COMMIT_RULE
from mqlab.course.teach.exercises import manifest
from mqlab.course.words import refutation
from mqlab.errors import UsageError
from mqlab.lab.world.lab import Lab
from tests.course.teach.notebook_answers import finding_of, reference

EXERCISES = {one.id.partition(".")[2]: one for one in manifest("lab08").exercises}
found = functools.partial(finding_of, "lab08")
TRACE_OFF = {"enable_trace": False}


def offsets_on_disk(lab: Lab) -> dict[int, int]:
    """What delayOffset.json says; empty when it is not there yet."""
    for path in lab.directory.rglob("delayOffset.json"):
        table = path.read_text("utf-8").partition('"offsetTable"')[2]
        return {int(level): int(offset) for level, offset in re.findall(r"(\d+):(\d+)", table)}
    return {}


@pytest.mark.parametrize("down_after", [9, 13, 17, 26])
def test_a_broker_delivers_what_the_judge_says(down_after: int) -> None:
    """Killed at four moments, with levels in use of which one is beyond the table."""
    lives: list[Any] = []
    levels = (1, 5, 10, 12)

    def story(lab: Lab) -> None:
        began = lab.now_ms
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(down_after * 2):
            shop.send(Message("orders", b"x", keys=f"{number}", delay_time_level=number % 4 + 2))
            lab.run_for("500ms")
        lab.kill("broker-a")
        lives.append((began, lab.now_ms, {}))
        lab.run_for("3s")
        saved = offsets_on_disk(lab)
        up_ms = lab.now_ms
        lab.start("broker-a")
        lab.run_for("20s")
        lives.append((up_ms, lab.now_ms, saved))

    lab = play(story, seed=3, client=TRACE_OFF, broker={"message_delay_level": "1s 5s 10s 12s"})
    waited = list(lab.store().messages("SCHEDULE_TOPIC_XXXX"))
    waited.sort(key=lambda one: one.physical_offset)
    stored = [(one.store_timestamp, int(one.properties["DELAY"])) for one in waited]
    numbers = {one.keys: number for number, one in enumerate(waited)}
    came = sorted((one.store_timestamp, numbers[one.keys]) for one in lab.store().messages("orders"))
    expected = sorted((ms, number) for number, ms in delays.deliveries(stored, levels, lives))
    assert [number for _, number in came] == [number for _, number in expected]
    assert all(abs(mine - its) <= 100 for (mine, _), (its, _) in zip(expected, came, strict=True))


def test_each_life_matters_in_some_call() -> None:
    for seed in range(5):
        calls = delays.shapes_of_days(seed)
        assert len(calls[2].right) > len({number for number, _ in calls[2].right}), "something comes twice"
        assert any(level > len(calls[0]["levels"]) for _, level in calls[0]["stored"])


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda stored, levels, lives: None, "due returned nothing"),
        (lambda stored, levels, lives: 5, "due returns a list"),
        (lambda stored, levels, lives: [], delays.ROWS_RULE),
        (lambda stored, levels, lives: [(n, 0) for n in range(len(stored))], delays.TIME_RULE),
    ],
)
def test_other_answers_to_due_are_told(answer: Any, rule: str) -> None:
    assert rule in found("due", due=answer).rule


def test_a_hundred_milliseconds_more_are_taken() -> None:
    def late(stored: Any, levels: Any, lives: Any) -> Any:
        return [[number, ms + 60] for number, ms in delays.deliveries(stored, levels, lives)]

    assert EXERCISES["due"].case(4).run({"due": late}) is None


def test_the_longest_level_first_is_the_fewest() -> None:
    for seconds, fewest in enumerate(relay.fewest()[:4_000]):
        left, count = seconds, 0
        while left:
            left -= max(level for level in delays.STANDARD if level <= left)
            count += 1
        assert count == fewest


def returns_nothing(send: Any, now: Any, levels: Any) -> Any:
    return lambda messages, context: None


def drops_all(send: Any, now: Any, levels: Any) -> Any:
    return lambda messages, context: CONSUME_SUCCESS


def copies_all(send: Any, now: Any, levels: Any) -> Any:
    def listener(messages: Any, context: Any) -> str:
        (got,) = messages
        send(Message(got.properties["target"], got.body, keys=got.keys, properties=dict(got.properties)))
        return CONSUME_SUCCESS

    return listener


def sends_twice(send: Any, now: Any, levels: Any) -> Any:
    right = reference("lab08.any_delay")["any_delay"](lambda message: (send(message), send(message)), now, levels)
    return right


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda send: None, relay.MADE_RULE),
        (lambda send, now, levels: None, relay.MADE_RULE),
        (lambda send, now, levels: lambda messages: None, relay.MADE_RULE),
        (returns_nothing, relay.RULES["one of CONSUME_SUCCESS"]),
        (copies_all, relay.RULES["is used by system"]),
        (drops_all, relay.LOST_RULE),
    ],
)
def test_other_relays_are_told(answer: Any, rule: str) -> None:
    assert rule in found("any_delay", any_delay=answer).rule


def test_a_relay_that_sends_twice_is_stopped_and_told() -> None:
    finding = found("any_delay", any_delay=sends_twice)
    assert finding.rule in (refutation("lab08.floor"), refutation("lab08.second_by_second")) or "once" in finding.rule


def test_a_busy_moment_has_every_kind_and_ends_right() -> None:
    day = cancelling.busy_moment(3).play(reference("lab08.cancel_unpaid"), 3)
    kinds = [order.how for order in day.orders.values()]
    assert {kinds.count(one) for one in set(kinds)} == {2} and len(set(kinds)) == 4
    state = dict(day.rows("SELECT order_key, state FROM orders"))
    for order in day.orders.values():
        assert state[order.key] == ("cancelled" if order.how == cancelling.UNPAID else "paid")


def keeps_open(lab: Any, ask_bank: Any) -> Any:
    def close(messages: Any, context: Any) -> str:
        if not ask_bank(messages[0], context):
            tables = lab.database("shop").connect()
            tables.execute("UPDATE orders SET state = 'cancelled' WHERE order_key = ?", (messages[0].keys,))
        return CONSUME_SUCCESS

    return close


def nobody(lab: Any, ask_bank: Any) -> Any:
    return lambda messages, context: CONSUME_SUCCESS


def closed(lab: Any, ask_bank: Any) -> Any:
    def close(messages: Any, context: Any) -> str:
        with lab.database("shop").connect() as tables:
            tables.execute("UPDATE orders SET state = 'closed'")
        return CONSUME_SUCCESS

    return close


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda lab: None, cancelling.MADE_RULE),
        (lambda lab, ask_bank: None, cancelling.MADE_RULE),
        (keeps_open, "Commit what you write"),
        (nobody, cancelling.STILL_RULE),
        (closed, cancelling.STATE_RULE),
    ],
)
def test_other_ways_to_cancel_are_told(answer: Any, rule: str) -> None:
    assert rule in found("cancel_unpaid", cancel_unpaid=answer).rule


def test_the_rules_are_about_what_a_run_stores_and_sends() -> None:
    """Declined and dying at once: what no public case has alone."""
    outbox, half = counting.costs(3, 1, 2)
    assert outbox == (4, 4, 6) and half == (3 + 2 + 2, 3 + 1 + 2 * 2, 4)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda orders, declined, died: None, "returned nothing"),
        (lambda orders, declined, died: {"outbox": (0, 0, 0)}, "half"),
        (lambda orders, declined, died: {"outbox": (0, 0, 0), "half": (0, 0, 0)}, counting.MESSAGES_RULE),
    ],
)
def test_other_counts_are_told(answer: Any, words: str) -> None:
    finding = found("outbox_or_half", outbox_or_half=answer)
    assert words in f"{finding.rule} {finding.expected} {finding.first_wrong}"


def changed(**methods: Any) -> Callable[[Any, Any], Any]:
    """The reference listener with other methods."""

    def transaction(lab: Any, ask_bank: Any) -> Any:
        right = reference("lab08.transaction")["transaction"](lab, ask_bank)

        class Other:
            execute_local_transaction = right.execute_local_transaction
            check_local_transaction = right.check_local_transaction

        for name, method in methods.items():
            setattr(Other, name, staticmethod(lambda *given, method=method: method(right, *given)))
        return Other()

    return transaction


def leaves_open(lab: Any, ask_bank: Any) -> Any:
    def execute(right: Any, message: Any, arg: Any) -> str:
        ask_bank(message)
        tables = lab.database("shop").connect()
        tables.execute("UPDATE accounts SET balance = balance - ?", (int(message.properties["amount"]),))
        return COMMIT_MESSAGE

    return changed(execute_local_transaction=execute)(lab, ask_bank)


def raises(right: Any, *given: Any) -> str:
    raise ValueError("no such order")


@pytest.mark.parametrize(
    ("answer", "rule", "shown"),
    [
        (lambda lab: None, commits.MADE_RULE, "(lab)"),
        (lambda lab, ask_bank: None, commits.MADE_RULE, None),
        (changed(execute_local_transaction=raises), commits.ERROR_RULE, "ValueError: no such order"),
        (changed(check_local_transaction=raises), commits.CHECK_RULE, "ValueError: no such order"),
        (changed(execute_local_transaction=lambda *given: "ROLLBACK_MESSAGE"), commits.NOTHING_RULE, None),
        (changed(execute_local_transaction=lambda *given: True), commits.ERROR_RULE, None),
        (changed(check_local_transaction=lambda *given: "ROLLBACK_MESSAGE"), commits.ROW_RULE, None),
        (leaves_open, COMMIT_RULE, None),
        (lambda lab, ask_bank: reference("lab08.transaction")["transaction"](lab, print), commits.BANK_RULE, None),
    ],
)
def test_other_listeners_are_told(answer: Any, rule: str, shown: str | None) -> None:
    finding = found("transaction", transaction=answer)
    assert finding.rule == rule and shown in (None, finding.found)


def test_unknow_where_there_is_no_row_is_as_good_as_the_fence() -> None:
    def check_local_transaction(right: Any, lab: Any, message: Any) -> str:
        with lab.database("shop").connect() as tables:
            row = "SELECT 1 FROM transactions WHERE order_key = ?"
            return COMMIT_MESSAGE if tables.execute(row, (message.keys,)).fetchone() else UNKNOW

    def transaction(lab: Any, ask_bank: Any) -> Any:
        patient = changed(check_local_transaction=lambda right, message: check_local_transaction(right, lab, message))
        return patient(lab, ask_bank)

    names = {"transaction": transaction}
    assert EXERCISES["transaction"].case(3).run(names) is None


def test_a_rows_number_and_time_are_told_apart() -> None:
    finding = found(
        "due",
        due=lambda stored, levels, lives: [(ms, number) for number, ms in delays.deliveries(stored, levels, lives)],
    )
    assert finding.rule == delays.PAIR_RULE


def test_a_reminder_without_its_key_has_arrived_without_it() -> None:
    def any_delay(send: Any, now: Any, levels: Any) -> Any:
        def nameless(message: Any) -> Any:
            message.keys = None
            return send(message)

        return reference("lab08.any_delay")["any_delay"](nameless, now, levels)

    assert found("any_delay", any_delay=any_delay).rule == relay.KEPT_RULE


def closes(execute: Any = None, before: Any = None) -> Any:
    """The reference, whose connections run something else instead of, or before, what it executes."""

    def cancel_unpaid(lab: Any, ask_bank: Any) -> Any:
        def close(messages: Any, context: Any) -> str:
            for order in messages:
                with lab.database("shop").connect() as tables:
                    if before:
                        tables.execute(before)
                    if ask_bank(order, context):
                        continue
                    where = "WHERE order_key = ? AND state = 'unpaid'"
                    if tables.execute(f"UPDATE orders SET state = 'cancelled' {where}", (order.keys,)).rowcount == 1:
                        item = "item = (SELECT item FROM orders WHERE order_key = ?)"
                        tables.execute(execute or f"UPDATE stock SET free = free + 1 WHERE {item}", (order.keys,))
            return CONSUME_SUCCESS

        return close

    return cancel_unpaid


def test_one_free_item_is_not_one_more() -> None:
    one = "UPDATE stock SET free = 1 WHERE item = (SELECT item FROM orders WHERE order_key = ?)"
    assert found("cancel_unpaid", cancel_unpaid=closes(one)).rule == cancelling.FREE_RULE


def test_payments_do_not_wait_for_the_bank() -> None:
    finding = found("cancel_unpaid", cancel_unpaid=closes(before="BEGIN IMMEDIATE"))
    assert finding.rule == cancelling.BEFORE_RULE


def test_a_payment_between_two_lines_is_seen() -> None:
    """Nothing waits between the SELECT and the UPDATE; the customer pays all the same."""

    def cancel_unpaid(lab: Any, ask_bank: Any) -> Any:
        def close(messages: Any, context: Any) -> str:
            order = messages[0]
            if ask_bank(order, context):
                return CONSUME_SUCCESS
            with lab.database("shop").connect() as tables:
                state = tables.execute("SELECT state FROM orders WHERE order_key = ?", (order.keys,)).fetchone()[0]
                if state == "unpaid":
                    tables.execute("UPDATE orders SET state = 'cancelled' WHERE order_key = ?", (order.keys,))
                    item = "item = (SELECT item FROM orders WHERE order_key = ?)"
                    tables.execute(f"UPDATE stock SET free = free + 1 WHERE {item}", (order.keys,))
            return CONSUME_SUCCESS

        return close

    finding = found("cancel_unpaid", cancel_unpaid=cancel_unpaid)
    assert finding.belief == "lab08.look_then_cancel" and finding.first_wrong.startswith(
        "the customer pays before line"
    )


def test_a_wheel_and_its_log_are_what_the_judge_says() -> None:
    """A broker's own files: rolled, recalled and woven lists; the judge's rebuild gives the broker's slots."""

    def story(lab: Lab) -> None:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop")
        for number in range(12):
            sent = shop.send(Message("orders", b"x", keys=f"{number}", delay=f"{6 + number * 7 % 20}s"))
            lab.run_for("200ms")
        shop.recall("orders", sent.recall_handle)
        lab.run_for("3s")

    settings = {"recall_message_enable": True, "timer_roll_window_slot": 15}
    lab = play(story, seed=3, client=TRACE_OFF, broker=settings)
    log = b"".join(path.read_bytes() for path in sorted((lab.directory / "broker-a" / "timerlog").iterdir()))
    slots = lab.store().timer_slots()
    assert wheel.rebuilt(log, 0) == {number: tuple(slot)[:3] for number, slot in slots.items()}
    names = reference("lab08.due_at")
    with (lab.directory / "broker-a" / "timerwheel").open("rb") as file:

        def read_wheel(position: int, size: int) -> bytes:
            file.seek(position)
            return file.read(size)

        for slot in slots.values():
            due = names["due_at"](read_wheel, lambda position, size: log[position : position + size], slot.time)
            waiting = [one.physical_offset for one in lab.store().messages("rmq_sys_wheel_timer")]
            assert due and {place for place, _ in due} <= set(waiting)


def test_scanning_the_timer_log_or_its_wheel_is_reported() -> None:
    def due_at(read_wheel: Any, read_log: Any, second: int) -> Any:
        for position in range(0, 520, 52):
            read_log(position, 52)
        return reference("lab08.due_at")["due_at"](read_wheel, read_log, second)

    assert found("due_at", due_at=due_at).rule == wheel.MANY_READS_RULE
    with pytest.raises(UsageError, match="much more than a slot"):
        wheel.WheelFiles().read_wheel(0, 38_707_200)


def test_the_wheel_has_turned_in_every_case() -> None:
    for seed in range(5):
        calls = list(wheel.seconds_of_a_wheel(seed))
        assert any(call.right == [] and call.given.list_of(call["second"]) for call in calls)
        assert max(len(call.right) for call in calls) >= 3
