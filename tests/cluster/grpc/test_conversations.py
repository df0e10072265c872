"""What the official clients and a raw one asked a real 5.3.3 proxy, asked again: the answers are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlab.cluster.grpc.sending import FrontSending
from tests.cluster.grpc.conversations import Conversation

TOPICS = (("gn", "NORMAL"), ("gx", "NORMAL"), ("gf", "FIFO"), ("gy", "FIFO"), ("gd", "DELAY"), ("gt", "TRANSACTION"))
DEADLINE_PASSED = 1  # the first call of the Python client, which came before the proxy was ready


def conversation(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch, queues: int) -> Conversation:
    """A world like the recorded one, before the recording began."""
    # The recorded broker looked at its half messages just before the recorded question.
    played = Conversation(directory, name, recall_message_enable=True, transaction_check_interval=5_000)
    for topic, kind in (*TOPICS, ("gu", "UNSPECIFIED")):
        played.topic(topic, kind, queues)
    played.group("pg-rawfifo", consume_message_orderly=True, retry_max_times=3)
    played.group("pg-fifo", consume_message_orderly=True, retry_max_times=1)
    played.group("pg-push", retry_max_times=2)
    played.group("pg-simple")
    played.world.run_for(100)
    played.store_what_was_there()
    monkeypatch.setattr(FrontSending, "_queue", played.recorded_queue)
    return played


def test_a_raw_client_is_refused_answered_and_misled_as_by_5_3_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its changed handles acknowledge nothing, its leases are not renewed, a message of another topic becomes dead."""
    played = conversation(tmp_path, "raw", monkeypatch, 1)
    played.left_ms[8] = 3_000
    played.world.client("one before").put("gd", b"b", TIMER_DELIVER_MS="5")
    played.play()
    assert len(played.calls) == 163
    # 22: the id of a batch is made up by the front. 146: three leases that ended together come back in any order.
    assert set(played.differences()) == {"22 SendMessage", "146 ReceiveMessage"}
    back = [[each.message.body for each in side] for side in (played.calls[146].wanted, played.calls[146].got)]
    assert sorted(back[0]) == sorted(back[1])


def test_the_python_client_hears_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = conversation(tmp_path, "python", monkeypatch, 2)
    played.play(first=DEADLINE_PASSED + 1)
    # 67, 73: the recorded proxy had stored a second message when it answered the pop that the first had woken.
    assert set(played.differences()) == {"67 ReceiveMessage", "73 ReceiveMessage"}


@pytest.mark.parametrize(
    ("name", "calls", "more_was_there"),
    [("java", 75, (8, 10)), ("node", 18, (5,))],
)
def test_the_java_and_the_node_client_hear_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, calls: int, more_was_there: tuple[int, ...]
) -> None:
    played = conversation(tmp_path, name, monkeypatch, 2)
    played.play()
    assert len(played.calls) == calls
    assert not played.differences(offsets_apart=more_was_there)
