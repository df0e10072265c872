"""A day with everything that can happen to a message, played by the broker and clients of this package, trace on.

    orders   two brokers with two queues each, about 400 messages      notes   a topic that no group reads
    billing  reads paid and shipped; retries, an exception, a dead letter, a call that never returns
    audit    reads all; killed in the middle of a call; its offsets are set back to 0 in the fifth minute
    mail     reads paid and shipped, a call takes 300 ms; a member is killed before it commits; a member of an older
             release reads paid alone; the group is off for a while, and its offsets are then set to the end
    quiet    reads all, without a trace
    shop     an answer is lost, a batch has one id, messages are delayed, one half message is committed, one rolled back

The seed changes tags, gaps and which messages fail; every cause occurs with every seed. What is true of the day is
what the Lab saw, ``mqlab.course.given.lab11.played_truth``, and never what the trace says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqlab.errors import RemotingError
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.statuses import COMMIT_MESSAGE, CONSUME_SUCCESS, RECONSUME_LATER, ROLLBACK_MESSAGE
from mqlab.rocketmq.wire.message import Message

ORDERS, NOTES = "orders", "notes"
BROKERS = ("broker-a", "broker-b")
BILLING, AUDIT, MAIL, QUIET = "billing", "audit", "mail", "quiet"
READS = {BILLING: "paid || shipped", AUDIT: "*", MAIL: "paid || shipped", QUIET: "*"}
OLD_RELEASE = "paid"
TAGS = ("paid", "shipped", "created")
TEXTS = ("order paid", "заказ оплачен", "订单已付款", "🚚📦")
POISON, FAILS_TWICE, RAISES, NEVER_BACK, KILLED, DELAYED, LATE, SENT_TWICE, COMMITTED, ROLLED_BACK, TRIED_AGAIN = (
    "яд-1",
    "k-3",
    "k-4",
    "k-never",
    "k-killed",
    "k-delayed",
    "k-late",
    "k-twice",
    "k-committed",
    "k-rolled-back",
    "k-tried-again",
)
MAX_RECONSUME_TIMES = 2
UNCOMMITTED = 3  # messages that are read twice when the member of mail is killed
FAILING_SHARE = 0.08  # of the orders of the day: billing fails once with them


@dataclass(slots=True)
class Story:
    """The day while it is played: the Lab, its clients, the ids of what was sent, and when people interfered."""

    lab: Lab
    random: random.Random
    shop: Any = None
    members: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    seen: dict[tuple[str, str], int] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    reset_at_ms: int = 0

    def times(self, group: str, keys: str) -> int:
        """How often this group has had these keys, this time included."""
        self.seen[group, keys] = self.seen.get((group, keys), 0) + 1
        return self.seen[group, keys]

    def send(self, keys: str, tags: str = "paid", **more: Any) -> None:
        """Send one order; without an answer it is sent again, as a sender does that cannot know that it was stored."""
        text = TEXTS[len(self.ids) % len(TEXTS)]
        message = Message(ORDERS, f"{keys} {text}".encode(), tags=tags, keys=keys, **more)
        try:
            self.ids[keys] = self.shop.send(message).msg_id
        except RemotingError:
            self.ids[keys] = self.shop.send(message).msg_id

    def orders(self, count: int, gap_ms: int, tags: tuple[str, ...] = TAGS) -> None:
        """A number of orders, ``gap_ms`` apart on average."""
        for _ in range(count):
            keys = f"order-{len(self.ids)}"
            if self.random.random() < FAILING_SHARE:
                self.failing.add(keys)
            self.send(keys, self.random.choice(tags))
            self.lab.run_for(self.random.randrange(gap_ms // 2, gap_ms * 3 // 2))


def play_story(directory: str | Path, seed: int = 11) -> Story:
    """Play the day into a directory with one store per broker, and return it with its Lab."""
    lab = Lab(seed=seed, directory=str(directory), brokers=list(BROKERS))
    lab.create_topic(ORDERS, read_queue_nums=2, write_queue_nums=2)
    lab.create_topic(NOTES, read_queue_nums=1, write_queue_nums=1)
    story = Story(lab, random.Random(seed))
    _open_groups(story)
    for part in (_morning, _lost_answer, _killed_in_a_call, _offsets_set_back, _deploy, _older_release, _off, _evening):
        part(story)
    return story


def _open_groups(story: Story) -> None:
    lab = story.lab
    story.shop = lab.producer("shop")
    listeners = {BILLING: _billing(story), AUDIT: _audit(story), MAIL: _mail, QUIET: _at_once}
    for name, group in ((BILLING, BILLING), (AUDIT, AUDIT), ("mail-1", MAIL), ("mail-2", MAIL), (QUIET, QUIET)):
        settings = {"enable_trace": False} if group == QUIET else {"max_reconsume_times": MAX_RECONSUME_TIMES}
        story.members[name] = _member(lab, group, READS[group], listeners[group], name=name, **settings)


def _member(lab: Lab, group: str, expression: str, listener: Callable[..., Any], **settings: Any) -> Any:
    member = lab.push_consumer(group, **settings)
    member.subscribe(ORDERS, expression)
    member.on_messages(listener)
    member.start()
    return member


def _at_once(messages: Any, context: Any) -> Any:
    return CONSUME_SUCCESS


def _mail(messages: Any, context: Any) -> Any:
    context.sleep("300ms")
    return CONSUME_SUCCESS


def _billing(story: Story) -> Callable[[Any, Any], Any]:
    def billing(messages: Any, context: Any) -> Any:
        for message in messages:
            times = story.times(BILLING, message.keys)
            context.sleep("20ms")
            fails = message.keys == POISON or (message.keys in (FAILS_TWICE, TRIED_AGAIN) and times <= 2)
            if fails or (message.keys in story.failing and times == 1):
                return RECONSUME_LATER
            if message.keys == RAISES and times == 1:
                raise ValueError("касса не отвечает")
            if message.keys == NEVER_BACK:
                context.sleep("100h")
        return CONSUME_SUCCESS

    return billing


def _audit(story: Story) -> Callable[[Any, Any], Any]:
    def audit(messages: Any, context: Any) -> Any:
        for message in messages:
            if message.keys == KILLED and story.times(AUDIT, message.keys) == 1:
                context.sleep("20s")
        return CONSUME_SUCCESS

    return audit


class _Decides:
    """A transaction listener: one order is paid, the other one is not."""

    def execute_local_transaction(self, message: Any, arg: Any) -> Any:
        return COMMIT_MESSAGE if message.keys == COMMITTED else ROLLBACK_MESSAGE

    def check_local_transaction(self, message: Any) -> Any:
        return self.execute_local_transaction(message, None)


def _morning(story: Story) -> None:
    """Tags in turn, failures, a poisoned message, a batch, a topic without a reader, a delay, two transactions."""
    for number in range(12):
        story.send(f"k-{number}", TAGS[number % 3])
    story.send(POISON)
    batch = [Message(ORDERS, b"in a batch", tags="paid", keys=f"b-{n}") for n in range(3)]
    story.shop.send_batch([*batch, *(Message(ORDERS, b"alike", tags="paid") for _ in range(2))])
    story.shop.send(Message(NOTES, "заметка 笔记 📝".encode(), keys="n-1"))
    story.send(DELAYED, delay_time_level=3)
    till = story.lab.transaction_producer("till", _Decides())
    for keys in (COMMITTED, ROLLED_BACK):
        sent = till.send_message_in_transaction(Message(ORDERS, b"paid in parts", tags="paid", keys=keys))
        story.ids[keys] = sent.msg_id
    story.lab.run_for("2m")  # all retries are over, and the poisoned message is a dead letter


def _lost_answer(story: Story) -> None:
    for broker in BROKERS:  # wherever the message goes, the first answer is lost
        story.lab.drop(broker, story.shop, count=1)
    story.send(SENT_TWICE)
    story.lab.run_for("10s")


def _killed_in_a_call(story: Story) -> None:
    story.send(KILLED, "created")
    story.lab.run_for("3s")
    story.lab.kill(story.members[AUDIT])
    story.lab.run_for("1s")
    story.lab.start(story.members[AUDIT])
    story.lab.run_for("1m")


def _offsets_set_back(story: Story) -> None:
    story.reset_at_ms = story.lab.now_ms
    story.lab.admin.reset_offset_by_timestamp(ORDERS, AUDIT, 0)
    story.lab.run_for("1m")


def _deploy(story: Story) -> None:
    """A member of mail is killed after it has consumed and before it commits: the other one reads the same again."""
    story.orders(140, 400)
    while _uncommitted(story, "mail-1") < UNCOMMITTED:
        story.orders(12, 20, ("paid", "shipped"))
        story.lab.run_for("400ms")  # its calls are over, and its next commit comes within five seconds
    story.lab.kill(story.members["mail-1"])
    story.lab.run_for("10s")
    story.lab.start(story.members["mail-1"])
    story.orders(40, 400)


def _uncommitted(story: Story, member: str) -> int:
    """How many messages this member has consumed that its broker does not know of."""
    committed = {(row.broker, row.topic, row.queue_id): row.consumer_offset for row in story.lab.progress(MAIL)}
    queues = [
        (row.message_queue, row.queue_offset)
        for row in story.lab.deliveries(MAIL, absences=False)
        if row.client == member and row.ended_ms is not None
    ]
    return sum(offset >= committed.get((q.broker_name, q.topic, q.queue_id), 0) for q, offset in queues)


def _older_release(story: Story) -> None:
    """A third member reads fewer tags: its queues lose the others, until it is shut down."""
    old = _member(story.lab, MAIL, OLD_RELEASE, _mail, name="mail-old")
    story.lab.run_for("40s")
    story.orders(90, 300)
    story.lab.run_for("10s")
    old.shutdown()
    story.lab.run_for("40s")
    story.orders(20, 300)


def _off(story: Story) -> None:
    """The whole group is off; an operator sets its offsets to the end before it comes back."""
    story.lab.run_for("10s")
    for name in ("mail-1", "mail-2"):
        story.members[name].shutdown()
    story.orders(30, 300, ("paid", "shipped"))
    story.lab.run_for("1s")
    story.lab.admin.skip_accumulated_message(ORDERS, MAIL)
    for name in ("mail-3", "mail-4"):
        story.members[name] = _member(story.lab, MAIL, READS[MAIL], _mail, name=name)
    story.lab.run_for("30s")
    story.orders(20, 300)


def _evening(story: Story) -> None:
    """A call that does not return holds an offset; the last message waits for two hours after the day has ended."""
    story.lab.run_for("30s")
    story.send(NEVER_BACK)
    for number in range(6):
        story.send(f"after-{number}")
    story.send(LATE, delay_time_level=18)
    story.send(TRIED_AGAIN)
    story.lab.run_for("30s")  # once more after 10 s; the time after that has not come
