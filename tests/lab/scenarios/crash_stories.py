"""Small stories of sending, consuming, committing, giving back and transactions, and what must hold after any crash.

Each story leaves a ``Ledger`` on its Lab: what was acknowledged to the program that sent it. ``check`` looks whether
every acknowledged message was consumed with success or lies in the dead letters, and is still in its topic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mqlab import COMMIT_MESSAGE, CONSUME_SUCCESS, RECONSUME_LATER, ROLLBACK_MESSAGE, SUCCESS, Lab, Message
from mqlab.errors import MqlabError

SAFE: dict[str, Any] = {
    "client": {"enable_trace": False},
    "broker": {
        "flush_disk_type": "SYNC_FLUSH",
        "message_delay_level": "1s 2s",
        "transaction_time_out": 1_000,
        "transaction_check_interval": 5_000,
    },
}
"""Settings under which an acknowledgement is a promise; short delays keep the stories short."""

GROUP, TOPIC = "billing", "orders"
RECOVERY = "75s"  # a silent broker is noticed by pulls after 30 s, by the route poll and the rebalance 50 s later


@dataclass
class Ledger:
    """Message ids that were acknowledged, and those that must never be seen."""

    acknowledged: list[str] = field(default_factory=list)
    rolled_back: list[str] = field(default_factory=list)


Story = Callable[[Lab], None]


def opened(lab: Lab) -> Ledger:
    """A topic with one queue; the Lab gets its ledger."""
    lab.ledger = Ledger()  # type: ignore[attr-defined]
    lab.create_topic(TOPIC, read_queue_nums=1, write_queue_nums=1)
    return lab.ledger  # type: ignore[attr-defined, no-any-return]


def member(lab: Lab, listener: Any, *, name: str = "billing-1", orderly: bool = False) -> Any:
    """A started consumer of the topic from its beginning.

    Under CONSUME_FROM_LAST_OFFSET a new group may skip a message that comes between its two questions to the broker.
    """
    begin = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
    consumer = lab.push_consumer(GROUP, name=name, max_reconsume_times=2, **begin)
    consumer.subscribe(TOPIC)
    (consumer.on_messages_orderly if orderly else consumer.on_messages)(listener)
    try:
        consumer.start()
    except MqlabError:
        if consumer.is_up:  # its broker was away: an operator starts it once more
            lab.kill(consumer)
            lab.start(consumer)
    return consumer


def send(lab: Lab, producer: Any, body: str) -> None:
    """Send once; only what was answered SEND_OK counts."""
    try:
        result = producer.send(Message(TOPIC, body.encode(), keys=body))
    except MqlabError:
        return
    if result.send_status == "SEND_OK":
        lab.ledger.acknowledged.append(result.msg_id)  # type: ignore[attr-defined]


def succeed(messages: Any, context: Any) -> str:
    """A listener that is content."""
    return CONSUME_SUCCESS


def sending(lab: Lab) -> None:
    """Three messages, one after another, to a consumer that is ready."""
    opened(lab)
    member(lab, succeed)
    lab.run_for("2s")
    producer = lab.producer("shop")
    for body in ("один", "二", "💳"):
        send(lab, producer, body)
    lab.run_for(RECOVERY)


def consuming(lab: Lab) -> None:
    """Messages that are there before the consumer, consumed slowly enough for the crash to find some under way."""

    def slowly(messages: Any, context: Any) -> str:
        context.sleep("300ms")
        return CONSUME_SUCCESS

    opened(lab)
    producer = lab.producer("shop")
    for body in ("один", "二", "💳"):
        send(lab, producer, body)
    member(lab, slowly)
    lab.run_for(RECOVERY)


def committing(lab: Lab) -> None:
    """A consumer commits, leaves, and another one goes on where it was."""
    opened(lab)
    consumer = member(lab, succeed)
    producer = lab.producer("shop")
    lab.run_for("2s")
    send(lab, producer, "до")
    lab.run_for("12s")  # with the timers of the client's and of the broker's offsets
    try:
        consumer.shutdown()
    except MqlabError:
        pass
    send(lab, producer, "после")
    member(lab, succeed, name="billing-2")
    lab.run_for(RECOVERY)


def giving_back(lab: Lab) -> None:
    """One message fails once and one always: it ends in the dead letters."""

    def listener(messages: Any, context: Any) -> str:
        message = messages[0]
        bad = message.keys == "☠" or message.reconsume_times == 0
        return RECONSUME_LATER if bad else CONSUME_SUCCESS

    opened(lab)
    member(lab, listener)
    lab.run_for("22s")  # the retry queue is read from here on
    producer = lab.producer("shop")
    for body in ("раз", "☠"):
        send(lab, producer, body)
    lab.run_for("90s")


def in_order(lab: Lab) -> None:
    """The same under the broker's queue lock."""
    opened(lab)
    member(lab, lambda messages, context: SUCCESS, orderly=True)
    lab.run_for("2s")
    producer = lab.producer("shop")
    for body in ("один", "二"):
        send(lab, producer, body)
    lab.run_for("140s")  # a lock of a dead owner lasts a minute


class Bank:
    """Commits "да" and rolls back "нет", at once and when it is asked again."""

    def execute_local_transaction(self, message: Message, arg: Any) -> str:
        return self.check_local_transaction(message)

    def check_local_transaction(self, message: Message) -> str:
        return COMMIT_MESSAGE if message.keys == "да" else ROLLBACK_MESSAGE


def transactions(lab: Lab) -> None:
    """One transaction that is committed and one that is rolled back."""
    ledger = opened(lab)
    member(lab, succeed)
    lab.run_for("2s")
    producer = lab.transaction_producer("pay", Bank())
    for word in ("да", "нет"):
        try:
            result = producer.send_message_in_transaction(Message(TOPIC, word.encode(), keys=word))
        except MqlabError:
            continue
        if result.send_status == "SEND_OK":
            (ledger.acknowledged if word == "да" else ledger.rolled_back).append(result.msg_id)
    for _ in range(4):
        lab.run_for("25s")
        if producer.is_up:  # a producer that goes on working knows its brokers again, and can be asked
            producer.fetch_publish_message_queues(TOPIC)


STORIES: dict[str, Story] = {
    "send": sending,
    "consume": consuming,
    "commit": committing,
    "send-back": giving_back,
    "orderly": in_order,
    "transaction": transactions,
}


def broken_promises(lab: Lab) -> list[str]:
    """What is wrong after a run, in words; nothing when every acknowledged message is where it should be."""
    if not all(handle.is_up for handle in lab.handles.values()):
        lab.run_for("60s")  # it crashed in the story's last second
    ledger: Ledger = lab.ledger  # type: ignore[attr-defined]
    done = {row.msg_id for row in lab.deliveries(GROUP, absences=False) if row.status in (CONSUME_SUCCESS, SUCCESS)}
    store = lab.broker().store
    kept = {topic: _unique_keys(store, topic) for topic in (TOPIC, f"%DLQ%{GROUP}")}
    wrong = []
    for msg_id in ledger.acknowledged:
        if msg_id not in kept[TOPIC]:
            wrong.append(f"{msg_id} is acknowledged and not stored")
        if msg_id not in done and msg_id not in kept[f"%DLQ%{GROUP}"]:
            wrong.append(f"{msg_id} is acknowledged and was never consumed")
    wrong += [f"{msg_id} was rolled back and is seen" for msg_id in ledger.rolled_back if msg_id in kept[TOPIC]]
    wrong += [f"queue {row.topic} {row.queue_id} lags by {row.lag}" for row in lab.progress(GROUP) if row.lag]
    return wrong


def _unique_keys(store: Any, topic: str) -> set[str]:
    return {
        record.property_map["UNIQ_KEY"]
        for queue_id in store.topics().get(topic, ())
        for record in store.get(topic, queue_id, store.min_offset(topic, queue_id), 1_000).records()
    }
