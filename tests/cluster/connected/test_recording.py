"""What passes over real connections is written down, and shown as a Lab's frames are."""

from __future__ import annotations

from pathlib import Path

import pytest

import mqlab
from mqlab import Message
from mqlab.cluster.connected import Recording
from mqlab.errors import UsageError
from tests.cluster.serving.served import server_in


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same conversation, recorded by the server and by the client."""
    directory = tmp_path_factory.mktemp("recorded")
    of_server, of_client = directory / "server.jsonl", directory / "client.jsonl"
    server = server_in(directory / "store")
    server.loop.record(of_server)
    with server:
        server.wait_until_registered()
        with mqlab.connect(str(server.plan.name_server), record=of_client) as cluster:
            cluster.producer("shop", instance_name="shop-1").send(Message("orders", b"hello", tags="paid"))
    return of_server, of_client


def test_both_ends_saw_the_same_send(recordings: tuple[Path, Path]) -> None:
    for path in recordings:
        rows = [row for row in Recording.open(path).table() if "SEND_MESSAGE_V2" in row["frame"]]
        assert [row["frame"] for row in rows] == ["SEND_MESSAGE_V2", "SUCCESS to SEND_MESSAGE_V2"]
        assert (rows[0]["sender"], rows[0]["receiver"]) == (rows[1]["receiver"], rows[1]["sender"])
        assert "topic=orders" in rows[0]["fields"]
        assert rows[0]["bytes"] == len(b"hello")


def test_clients_are_called_by_their_id_and_what_is_left_out_is_left_out_with_its_answers(
    recordings: tuple[Path, Path],
) -> None:
    found = Recording.open(recordings[0])
    sender = next(frame for frame in found.frames if frame.name == "SEND_MESSAGE_V2")
    told = any(frame.name == "HEART_BEAT" and frame.connection == sender.connection for frame in found.frames)
    assert sender.sender.endswith("@shop-1") if told else ":" in sender.sender
    few = found.table(without=("GET_ROUTEINFO_BY_TOPIC",))
    assert 0 < len(few) < len(found)
    assert not any("ROUTEINFO" in row["frame"] for row in few)
    with pytest.raises(UsageError, match="no request 'PULL'"):
        found.table(without=("PULL",))


def test_the_picture_has_the_frames_as_arrows(recordings: tuple[Path, Path]) -> None:
    picture = Recording.open(recordings[0]).timeline(without=("REGISTER_BROKER",))
    assert "SEND_MESSAGE_V2 orders" in str(picture)
    assert "broker-a" in picture.lanes


def test_a_recording_that_was_cut_is_read_up_to_there_and_other_files_are_refused(
    recordings: tuple[Path, Path], tmp_path: Path
) -> None:
    text = recordings[0].read_text("utf-8")
    cut = tmp_path / "cut.jsonl"
    for end in (0, 1, 40, len(text) // 2, len(text) - 3):
        cut.write_text(text[:end], "utf-8")
        assert len(Recording.open(cut)) <= len(Recording.open(recordings[0]))
    other = tmp_path / "other.txt"
    other.write_text("one\ntwo\nthree\n", "utf-8")
    with pytest.raises(UsageError, match="line 1 is not of a recording"):
        Recording.open(other)
    with pytest.raises(UsageError, match="cannot read"):
        Recording.open(tmp_path / "missing")


def test_bytes_that_are_no_frames_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "noise.jsonl"
    row = '{"at_ms": 1, "connection": 1, "from": "a:1", "to": "broker-a", "data": "R0VUIC8gSFRUUC8xLjE="}\n'
    path.write_text(row * 2, "utf-8")
    found = Recording.open(path)
    assert (len(found), found.broken) == (0, 1)
