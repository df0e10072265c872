"""What stories are told with: members of groups, messages, an operator's tool, and questions to a Lab.

Message trace is off in these stories (``QUIET``), so that every frame is one of the story's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mqlab import CONSUME_SUCCESS, Lab, Message, MessageQueue
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.remoting import Remoting
from mqlab.rocketmq.wire import java_json
from mqlab.rocketmq.wire.command import RemotingCommand, request
from mqlab.rocketmq.wire.message import MessageExt, SendResult

QUIET: Mapping[str, Any] = {"client": {"enable_trace": False}}
BROKER_A = "broker-a"
BODY = "заказ 订单 💳"


def quiet_lab(**settings: Any) -> Lab:
    """A Lab without message trace."""
    return Lab(**{**QUIET, **settings})


class Seen:
    """A listener that notes what it is given and answers from a script, of which the last answer stays.

    An answer is a status, None, an exception to raise, or a function of (messages, context) that returns a status.
    """

    def __init__(self, lab: Lab, *answers: Any, takes: str | int = 0) -> None:
        self.lab = lab
        self.answers = list(answers) or [CONSUME_SUCCESS]
        self.takes = takes
        self.messages: list[MessageExt] = []
        self.times_ms: list[int] = []
        self.batches: list[int] = []

    def __call__(self, messages: Sequence[MessageExt], context: Any) -> Any:
        self.messages.extend(messages)
        self.times_ms.extend([self.lab.now_ms] * len(messages))
        self.batches.append(len(messages))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if self.takes:
            context.sleep(self.takes)
        if isinstance(answer, Exception):
            raise answer
        return answer(messages, context) if callable(answer) else answer

    @property
    def bodies(self) -> list[str]:
        """The bodies as text, in the order in which the listener got them."""
        return [message.body.decode() for message in self.messages]


def member(
    lab: Lab,
    group: str,
    listener: Any = None,
    *,
    topic: str = "orders",
    tags: str | None = "*",
    sql: str | None = None,
    name: str | None = None,
    orderly: bool = False,
    start: bool = True,
    **settings: Any,
) -> Any:
    """A push consumer of one topic, started."""
    consumer = lab.push_consumer(group, name=name, **settings)
    consumer.subscribe(topic, None if sql is not None else tags, sql=sql)
    (consumer.on_messages_orderly if orderly else consumer.on_messages)(listener or Seen(lab))
    if start:
        consumer.start()
    return consumer


def to_queue(number: int) -> Callable[[Sequence[MessageQueue], Message, Any], MessageQueue]:
    """A selector that picks the n-th of the offered queues."""
    return lambda queues, message, arg: queues[number]


def send(producer: Any, *bodies: str, topic: str = "orders", queue: int | None = None, **more: Any) -> list[SendResult]:
    """Send messages one after another, all to one queue if told so."""
    chosen = {} if queue is None else {"selector": to_queue(queue)}
    return [producer.send(Message(topic, body.encode(), **more), **chosen) for body in bodies]


def send_many(producer: Any, count: int, *, topic: str = "orders", queue: int | None = None, **more: Any) -> None:
    """Send many messages in batches of 100, numbered in their bodies; without a queue, each batch to the next one."""
    target = None if queue is None else MessageQueue(topic, BROKER_A, queue)
    for start in range(0, count, 100):
        numbers = range(start, min(start + 100, count))
        producer.send_batch([Message(topic, f"{BODY} {number}".encode(), **more) for number in numbers], target)


def owned(consumer: Any, topic: str = "orders") -> list[int]:
    """The ids of the queues of a topic that a member owns now."""
    return [queue.queue_id for queue in consumer.message_queues if queue.topic == topic]


def frames(lab: Lab, code: int, to: str | None = None) -> list[Any]:
    """The steps in which a node got a request of a code."""
    return [
        record
        for record in lab.journal
        if record.kind == "frame"
        and record.about is not None
        and record.about.code == code
        and not record.about.is_response
        and to in (None, record.node)
    ]


def changes(lab: Lab, kind: str, **like: Any) -> list[dict[str, Any]]:
    """The journal's changes of a kind whose values are as given."""
    return [
        values
        for _, values in lab.journal.changes(kind)
        if all(values.get(name) == value for name, value in like.items())
    ]


def moments(lab: Lab, kind: str, **like: Any) -> list[int]:
    """When changes of a kind happened: ms since the Lab began."""
    return [
        record.now_ms - lab.began_ms
        for record, values in lab.journal.changes(kind)
        if all(values.get(name) == value for name, value in like.items())
    ]


def delivered(lab: Lab, group: str) -> list[Any]:
    """The deliveries to a group's listeners in the order they began, without the messages that no listener got."""
    return list(lab.deliveries(group, absences=False))


def row(lab: Lab, group: str, queue_id: int = 0, topic: str = "orders") -> Any:
    """The progress of a group on one queue."""
    (found,) = [one for one in lab.progress(group) if (one.topic, one.queue_id) == (topic, queue_id)]
    return found


def total_lag(lab: Lab, group: str) -> int:
    """How many messages a group is behind on all its queues."""
    return sum(int(one.lag) for one in lab.progress(group))


def config(lab: Lab, name: str, broker: str = BROKER_A) -> Any:
    """A configuration file of a broker, read."""
    return java_json.loads((lab.directory / broker / "config" / name).read_text("utf-8"))


class Tool:
    """A machine that asks brokers and name servers like mqadmin does, frame by frame."""

    def __init__(self, lab: Lab, name: str = "tool") -> None:
        self.lab = lab
        self.ports = lab.world.add_node(name, RealFiles())
        self.told: list[RemotingCommand] = []
        handlers = {40: lambda channel, command, reply: self.told.append(command)}
        self.remoting = Remoting(self.ports, handlers)

    def ask(self, code: int, body: bytes | None = None, *, to: str = "", **fields: Any) -> RemotingCommand:
        """Ask and wait; ``to`` is an address, broker-a's unless given."""
        address = to or self.lab.broker().address
        command = request(code, body, **fields)
        return self.ports.workers.call(lambda: self.remoting.invoke(address, command))

    def commit(self, group: str, queue_id: int, commit_offset: int, topic: str = "orders") -> int:
        """Store an offset of a group as any client could; the response code."""
        fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id, "commitOffset": commit_offset}
        return self.ask(15, **fields).code

    def members(self, group: str, broker: str = BROKER_A) -> list[str]:
        """The client ids of a group as a broker knows them, sorted."""
        answer = self.ask(38, consumerGroup=group, to=self.lab.broker(broker).address)
        return sorted(java_json.loads((answer.body or b"{}").decode())["consumerIdList"])


def one_order(listener_of: Callable[[Lab], Any], *statements: str) -> Callable[[Lab], None]:
    """A story: billing, with a database that the statements prepare, meets one order and has a minute for it."""

    def story(lab: Lab) -> None:
        with lab.database("billing").connect() as connection:
            for statement in statements:
                connection.execute(statement)
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        consumer = lab.push_consumer("billing")
        consumer.subscribe("orders")
        consumer.on_messages(listener_of(lab))
        consumer.start()
        lab.run_for("1s")
        lab.producer("shop").send(Message("orders", BODY.encode(), keys="order-1"))
        lab.run_for("60s")

    return story
