"""mqlab's clients in real time against a served cluster."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mqlab
from mqlab import COMMIT_MESSAGE, CONSUME_SUCCESS, ROLLBACK_MESSAGE, Message
from mqlab.cluster.connected import Cluster
from mqlab.cluster.serving import Server
from mqlab.errors import BrokerError, RemotingError, UsageError
from tests.cluster.serving.served import server_in

PATIENCE = 120.0  # seconds


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_in(tmp_path_factory.mktemp("served"), brokers=2) as server:
        server.wait_until_registered()
        yield server


@pytest.fixture
def cluster(served: Server) -> Iterator[Cluster]:
    with mqlab.connect(str(served.plan.name_server)) as cluster:
        yield cluster


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this did not happen in time"
        time.sleep(0.02)


class Seen:
    """A listener that keeps what it was called with."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.threads: set[str] = set()

    def __call__(self, messages: Any, context: Any) -> str:
        self.threads.add(threading.current_thread().name)
        self.bodies += [message.body for message in messages]
        return CONSUME_SUCCESS


def consuming(cluster: Cluster, group: str, topic: str, expression: str = "*", **settings: Any) -> Seen:
    seen = Seen()
    consumer = cluster.push_consumer(group, consume_from_where="CONSUME_FROM_FIRST_OFFSET", **settings)
    consumer.subscribe(topic, expression)
    consumer.on_messages(seen)
    consumer.start()
    return seen


def test_what_is_sent_is_consumed_by_tag_and_progress_is_committed_at_the_end(served: Server) -> None:
    with mqlab.connect(str(served.plan.name_server)) as cluster:
        producer = cluster.producer("shop")
        for number in range(20):
            producer.send(Message("tagged", b"%d" % number, tags="paid" if number % 2 else "shipped"))
        seen = consuming(cluster, "tag-readers", "tagged", "paid")
        eventually(lambda: len(seen.bodies) == 10)
        assert sorted(map(int, seen.bodies)) == list(range(1, 20, 2))
        assert all("ConsumeMessageThread" in name for name in seen.threads)
    with mqlab.connect(str(served.plan.name_server)) as cluster:
        (of_topic,) = [row for row in cluster.admin.lag("tag-readers") if row.topic == "tagged"]
        assert of_topic.lag == 0


def test_one_way_asynchronous_and_batched_messages_arrive(cluster: Cluster) -> None:
    producer = cluster.producer("ways")
    producer.send(Message("ways", b"one by one"))
    producer.send_oneway(Message("ways", b"one way"))
    assert producer.send_async(Message("ways", b"asynchronous")).result().send_status == "SEND_OK"
    assert producer.send_batch([Message("ways", b"batch 1"), Message("ways", b"batch 2")]).send_status == "SEND_OK"
    seen = consuming(cluster, "way-readers", "ways")
    eventually(lambda: len(seen.bodies) == 5)


def test_a_message_that_is_too_large_is_refused_and_the_next_one_taken(cluster: Cluster) -> None:
    producer = cluster.producer("strangers", max_message_size=8 << 20, send_msg_timeout="5s")
    with pytest.raises(BrokerError, match="13"):
        producer.send(Message("large", random.Random(7).randbytes(5 << 20)))
    assert producer.send(Message("large", b"small")).send_status == "SEND_OK"


def test_half_messages_are_committed_and_rolled_back(cluster: Cluster) -> None:
    class Decide:
        def execute_local_transaction(self, message: Message, arg: Any) -> str:
            return COMMIT_MESSAGE if arg else ROLLBACK_MESSAGE

        def check_local_transaction(self, message: Message) -> str:
            return COMMIT_MESSAGE

    producer = cluster.transaction_producer("payments", Decide())
    producer.send_message_in_transaction(Message("money", b"yes"), True)
    producer.send_message_in_transaction(Message("money", b"no"), False)
    seen = consuming(cluster, "money-readers", "money")
    eventually(lambda: seen.bodies == [b"yes"])


def test_pull_and_lite_pull_consumers_read_the_same_messages(cluster: Cluster) -> None:
    producer = cluster.producer("pulls")
    for number in range(12):
        producer.send(Message("pulled", b"%d" % number))
    puller = cluster.pull_consumer("pull-readers")
    queues = puller.fetch_subscribe_message_queues("pulled")
    found = [message.body for queue in queues for message in puller.pull(queue, "*", 0).msg_found_list or []]
    lite = cluster.lite_pull_consumer("lite-readers", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    lite.subscribe("pulled")
    lite.start()
    polled: list[bytes] = []

    def poll() -> bool:
        polled.extend(message.body for message in lite.poll("200ms"))
        return len(polled) == 12

    eventually(poll)
    assert sorted(found) == sorted(polled)


def test_two_members_share_the_queues_and_each_message_goes_to_one(cluster: Cluster) -> None:
    cluster.admin.create_topic("shared", confirm=True)
    first = cluster.push_consumer("sharers", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    second = cluster.push_consumer("sharers", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    for consumer in (first, second):
        consumer.subscribe("shared")
        consumer.on_messages(Seen())
        consumer.start()
    assert first.client_id != second.client_id

    def is_shared() -> bool:
        owned = [{queue for queue in each.message_queues if queue.topic == "shared"} for each in (first, second)]
        return len(owned[0]) == len(owned[1]) > 0 and not owned[0] & owned[1]

    eventually(is_shared)


def test_a_listener_may_send(cluster: Cluster) -> None:
    for topic in ("first", "second"):  # a consumer finds a topic that comes later by its route poll, after 30 s
        cluster.admin.create_topic(topic, confirm=True)
    producer = cluster.producer("forwards")
    producer.send(Message("first", b"pass me on"))

    def forward(messages: Any, context: Any) -> str:
        context.sleep("5ms")
        for message in messages:
            producer.send(Message("second", message.body))
        return CONSUME_SUCCESS

    consumer = cluster.push_consumer("forwarders", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("first")
    consumer.on_messages(forward)
    consumer.start()
    seen = consuming(cluster, "second-readers", "second")
    eventually(lambda: seen.bodies == [b"pass me on"])


def test_what_changes_a_cluster_asks_for_a_second_word(cluster: Cluster) -> None:
    cluster.admin.create_topic("mine", confirm=True)
    with pytest.raises(UsageError, match="its messages cannot be read any more") as refused:
        cluster.admin.delete_topic("mine")
    assert "confirm=True" in str(refused.value)
    cluster.admin.examine_topic_route_info("mine")
    cluster.admin.delete_topic("mine", confirm=True)


def test_nobody_listens_there() -> None:
    with pytest.raises(RemotingError, match=r"no name server answers at 127\.0\.0\.1:1") as refused:
        mqlab.connect("127.0.0.1:1")
    assert "mqlab serve" in str(refused.value)
    with pytest.raises(UsageError, match="is not an address"):
        mqlab.connect("nowhere")
    with pytest.raises(UsageError, match="no address of a name server"):
        mqlab.connect("")


def test_a_closed_cluster_says_so_and_closing_twice_is_harmless(served: Server) -> None:
    cluster = mqlab.connect(str(served.plan.name_server))
    producer = cluster.producer("late")
    cluster.close()
    cluster.close()
    with pytest.raises(UsageError, match="closed"):
        cluster.producer("later")
    with pytest.raises(BaseException, match=r"closed|not running|shut"):
        producer.send(Message("orders", b"too late"))


def test_an_unknown_host_is_not_refused() -> None:
    with pytest.raises(RemotingError, match="unknown host") as failed:
        mqlab.connect("no.such.host.invalid:9876")
    assert "refused" not in failed.value.text and failed.value.code == "connect"


@pytest.mark.parametrize("text", ["127.0.0.1:9876,127.0.0.1:9877", "http://127.0.0.1:9876", "a b:1", "127.0.0.1"])
def test_what_is_not_an_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        mqlab.connect(text)
