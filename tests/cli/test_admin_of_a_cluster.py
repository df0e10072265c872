"""`mqlab admin -n` and `mqlab console HOST:PORT`: a served cluster is asked, and changed only after a question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

import mqlab
from mqlab import Message
from mqlab.cli import main
from mqlab.cli.admin_verbs import CHANGES
from mqlab.cli.console import board_over
from mqlab.cluster.connected.guarded_admin import CHANGES as GUARDED
from mqlab.cluster.serving import Server
from mqlab.errors import RemotingError, UsageError
from mqlab.rocketmq.admin import Admin
from tests.cluster.serving.served import server_in


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_in(tmp_path_factory.mktemp("served")) as server:
        server.wait_until_registered()
        with mqlab.connect(str(server.plan.name_server)) as cluster:
            cluster.admin.create_topic("orders", read_queue_nums=1, write_queue_nums=1, confirm=True)
            producer = cluster.producer("shop")
            for number in range(6):
                producer.send(Message("orders", b"%d" % number, keys=f"order-{number}"))
            puller = cluster.pull_consumer("billing")
            (queue,) = puller.fetch_subscribe_message_queues("orders")
            puller.update_consume_offset(queue, 4)
        yield server


def run(served: Server, verb: str, *options: str, answer: str = "") -> Result:
    return CliRunner().invoke(main, ["admin", verb, "-n", str(served.plan.name_server), *options], input=answer)


def lag_of(served: Server) -> int:
    found = json.loads(run(served, "consumerProgress", "-g", "billing", "--json").stdout)
    return sum(row["lag"] for row in found["queues"])


def test_a_cluster_is_asked_with_the_same_verbs(served: Server) -> None:
    rows = json.loads(run(served, "topicStatus", "-t", "orders", "--json").stdout)
    assert [row["max_offset"] for row in rows] == [6]
    assert "broker-a" in run(served, "clusterList").stdout


def test_a_broker_may_be_given_by_its_address_as_mqadmin_does(served: Server) -> None:
    address = served.plan.brokers[0].address
    for verb in ("brokerStatus", "getBrokerConfig"):
        found = run(served, verb, "-b", address)
        assert (found.exit_code, found.stderr) == (0, "")
    assert run(served, "updateTopic", "-t", "here", "-b", address, "--yes").exit_code == 0
    assert run(served, "topicConfig", "-t", "here", "-b", address).stdout.count("here")
    nowhere = run(served, "brokerStatus", "-b", "127.0.0.1:1")
    assert (nowhere.exit_code, f"there are broker-a at {address}" in nowhere.stderr) == (2, True)


def test_a_reset_shows_what_it_would_do_asks_and_does_it(served: Server) -> None:
    before = lag_of(served)
    looked = run(served, "resetOffsetByTime", "-t", "orders", "-g", "billing", "-s", "0", "--dry-run")
    refused = run(served, "resetOffsetByTime", "-t", "orders", "-g", "billing", "-s", "0", answer="n\n")
    assert (looked.exit_code, refused.exit_code) == (0, 1)
    assert "nothing was changed" in refused.stderr
    assert lag_of(served) == before
    done = run(served, "resetOffsetByTime", "-t", "orders", "-g", "billing", "-s", "0", answer="y\n")
    assert (done.exit_code, lag_of(served)) == (0, 6)
    assert run(served, "skipAccumulatedMessage", "-t", "orders", "-g", "billing", "--yes").exit_code == 0
    assert lag_of(served) == 0


def test_a_topic_is_made_and_deleted_after_a_question(served: Server) -> None:
    assert run(served, "updateTopic", "-t", "mine", "-r", "2", "-w", "2", answer="n\n").exit_code == 1
    assert "mine" not in run(served, "topicList").stdout
    assert run(served, "updateTopic", "-t", "mine", "-r", "2", "-w", "2", "--yes").exit_code == 0
    assert "mine" in run(served, "topicList").stdout
    assert run(served, "deleteTopic", "-t", "mine", "--yes").exit_code == 0
    assert "mine" not in run(served, "topicList").stdout


def test_wrong_questions_have_an_answer(served: Server) -> None:
    neither = CliRunner().invoke(main, ["admin", "topicList"])
    both = CliRunner().invoke(main, ["admin", "topicList", ".", "-n", "127.0.0.1:1"])
    nobody = CliRunner().invoke(main, ["admin", "topicList", "-n", "127.0.0.1:1"])
    assert (neither.exit_code, both.exit_code, nobody.exit_code) == (2, 2, 1)
    assert "a directory, or a cluster with -n" in neither.stderr
    assert "no name server answers" in nobody.stderr


def test_the_console_looks_at_a_cluster(served: Server) -> None:
    board = board_over(str(served.plan.name_server))
    try:
        assert "The cluster of" in board.where
        assert board.data()["can_wait"] is False
        assert board.open("topic", "orders").sections()["Queues"].column("max_offset") == [6]
        board.preview_reset("orders", "billing", "first")
        board.confirm()
        assert lag_of(served) == 6
    finally:
        board.lab.close()
    with pytest.raises(UsageError, match="is not a directory"):
        board_over("nowhere")
    with pytest.raises(RemotingError):
        board_over("127.0.0.1:1")


def test_every_verb_that_changes_is_guarded_in_python_too() -> None:
    def called(verb: Any) -> set[str]:
        return {name for name in verb.answer.__code__.co_names if hasattr(Admin, name)}

    assert set().union(*(called(verb) for verb in CHANGES.values())) <= set(GUARDED)


def test_dead_letters_of_which_one_is_refused_end_with_code_1_and_the_others_are_sent(served: Server) -> None:
    store = served.brokers[0].store
    with mqlab.connect(str(served.plan.name_server)) as cluster:
        cluster.admin.create_and_update_subscription_group_config("tax", confirm=True)
        for topic in ("%DLQ%tax", "%RETRY%tax"):
            cluster.admin.create_topic(topic, read_queue_nums=1, write_queue_nums=1, confirm=True)
        for body in (b"1", b"x" * 2_000, b"3"):
            cluster.admin.send_message(Message("%DLQ%tax", body), confirm=True)
    usual, store._max_body = store._max_body, 1_000
    first = run(served, "resendDeadLetters", "-g", "tax", "--yes")
    store._max_body = usual
    second = run(served, "resendDeadLetters", "-g", "tax", "--yes")
    third = run(served, "resendDeadLetters", "-g", "tax", "--yes")
    assert first.exit_code == 1 and "resend_dlq: 2 of 3 steps were done" in first.stderr
    assert first.stderr.count("SEND_OK as ") == 2 and "at most 1000 are allowed" in first.stderr
    assert (second.exit_code, second.stdout.count("SEND_OK"), third.stdout.count("SEND_OK")) == (0, 1, 0)
