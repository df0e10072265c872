"""A small day with everything that can happen to a message, played by mqlab's own runtime with its trace on.

orders on two brokers; billing reads paid || shipped, audit reads all, quiet writes no trace; notes has no reader
retries, dead letters, an exception, an order stored twice (its answer was lost), a batch under one id, a delayed
message and one whose time has not come, a listener killed in the middle, one that never comes back, offsets set back
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message
from mqlab.errors import RemotingError

TAGS = ("paid", "shipped", "created")
TEXTS = ("order paid", "заказ оплачен", "订单已付款", "🚚📦")
BILLING, AUDIT, QUIET = "billing", "audit", "quiet"
POISON, FAILS_TWICE, RAISES, NEVER_BACK, KILLED, DELAYED, LATE, SENT_TWICE = (
    "яд-1",
    "k-3",
    "k-4",
    "k-never",
    "k-killed",
    "k-delayed",
    "k-late",
    "k-twice",
)


@dataclass
class Told:
    """One delivery as the Lab saw it."""

    group: str
    msg_id: str
    retry_times: int
    started_ms: int
    ended_ms: int | None
    status: str


@dataclass
class World:
    """The stores and what the Lab says of them."""

    directory: Path
    told: list[Told]
    ids: dict[str, str]
    offsets: dict[tuple[str, str, str, int], int]
    reset_at_ms: int


def play_day(directory: Path) -> World:
    """Play it, and return what it left and what is true of it."""
    lab = Lab(seed=11, directory=str(directory), brokers=["broker-a", "broker-b"])
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    lab.create_topic("notes", read_queue_nums=1, write_queue_nums=1)
    seen: dict[tuple[str, str], int] = {}
    ids: dict[str, str] = {}

    def billing(messages, context):  # type: ignore[no-untyped-def]
        for message in messages:
            times = seen[BILLING, message.keys] = seen.get((BILLING, message.keys), 0) + 1
            context.sleep("20ms")
            if message.keys == POISON or (message.keys == FAILS_TWICE and times <= 2):
                return RECONSUME_LATER
            if message.keys == RAISES and times == 1:
                raise ValueError("касса не отвечает")
            if message.keys == NEVER_BACK:
                context.sleep("100h")
        return CONSUME_SUCCESS

    def audit(messages, context):  # type: ignore[no-untyped-def]
        for message in messages:
            times = seen[AUDIT, message.keys] = seen.get((AUDIT, message.keys), 0) + 1
            if message.keys == KILLED and times == 1:
                context.sleep("20s")
        return CONSUME_SUCCESS

    shop = lab.producer("shop")
    consumers = {}
    for group, expression, listener in ((BILLING, "paid || shipped", billing), (AUDIT, "*", audit)):
        consumers[group] = lab.push_consumer(group, max_reconsume_times=2)
        consumers[group].subscribe("orders", expression)
        consumers[group].on_messages(listener)
        consumers[group].start()
    quiet = lab.push_consumer(QUIET, enable_trace=False)
    quiet.subscribe("orders", "*")
    quiet.on_messages(lambda messages, context: CONSUME_SUCCESS)
    quiet.start()

    def send(keys: str, tags: str = "paid", **more: object) -> None:
        text = TEXTS[len(ids) % len(TEXTS)]
        message = Message("orders", f"{keys} {text}".encode(), tags=tags, keys=keys, **more)  # type: ignore[arg-type]
        try:
            ids[keys] = shop.send(message).msg_id
        except RemotingError:  # no answer: the sender cannot know that it was stored
            ids[keys] = shop.send(message).msg_id

    for number in range(12):
        send(f"k-{number}", TAGS[number % 3])
    send(POISON)
    batch = [Message("orders", b"in a batch", tags="paid", keys=f"b-{n}") for n in range(3)]
    batch += [Message("orders", b"alike", tags="paid") for _ in range(2)]
    shop.send_batch(batch)
    shop.send(Message("notes", "заметка 笔记 📝".encode(), keys="n-1"))
    send(DELAYED, delay_time_level=3)
    lab.run_for("2m")  # all retries are over, the poison is a dead letter
    for broker in ("broker-a", "broker-b"):  # wherever it goes, the first answer is lost
        lab.drop(broker, shop, count=1)
    send(SENT_TWICE)
    lab.run_for("10s")
    send(KILLED, "created")
    lab.run_for("3s")
    lab.kill(consumers[AUDIT])
    lab.run_for("1s")
    lab.start(consumers[AUDIT])
    lab.run_for("1m")
    reset_at_ms = lab.now_ms
    lab.admin.reset_offset_by_timestamp("orders", AUDIT, 0)
    lab.run_for("1m")
    send(NEVER_BACK)
    for number in range(6):
        send(f"after-{number}")
    send(LATE, delay_time_level=18)
    lab.run_for("30s")
    told = [
        Told(group, row.msg_id, row.reconsume_times, row.started_ms, row.ended_ms, row.status)
        for group in (BILLING, AUDIT, QUIET)
        for row in lab.deliveries(group)
        if row.started_ms is not None
    ]
    offsets = {
        (row.broker, row.topic, group, row.queue_id): row.consumer_offset
        for group in (BILLING, AUDIT, QUIET)
        for row in lab.progress(group)
    }
    return World(directory, told, ids, offsets, reset_at_ms)


if __name__ == "__main__":
    import sys

    world = play_day(Path(sys.argv[1]))
    for row in world.told:
        print(row)
    print(world.ids, world.offsets)
