"""Broadcasting and the local offset file.

Mirrors: LocalFileOffsetStore.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.client.consuming.local_offset_store import offsets_text, parse_offsets
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import MessageQueue
from tests.rocketmq.client.conftest import Recorder, World, send


def broadcasting(world: World, listener: Any, directory: Path, **settings: Any) -> Any:
    return world.consumer(
        listener=listener, message_model="BROADCASTING", local_offset_store_dir=str(directory), **settings
    )


def test_every_member_gets_every_message_and_failures_are_given_up(world: World, tmp_path: Path) -> None:
    world.create_topic("orders", 2)
    good, bad = Recorder(world), Recorder(world, "RECONSUME_LATER")
    broadcasting(world, good, tmp_path)
    broadcasting(world, bad, tmp_path, name="billing-2")
    world.run_for(3_000)
    send(world.producer(), "orders", "раз", "два", "三")
    world.run_for(60_000)
    assert sorted(good.bodies) == sorted(bad.bodies) == sorted(["раз", "два", "三"])
    assert len(world.notes("message.given_up")) == 3
    for code in (
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.CONSUMER_SEND_MSG_BACK,
    ):
        assert world.requests(code) == []
    pulls = world.requests(RequestCode.PULL_MESSAGE)
    assert {pull.about.ext_fields["sysFlag"] for pull in pulls} == {"2"}
    assert {pull.about.ext_fields["topic"] for pull in pulls} == {"orders"}


def test_the_file_is_written_every_five_seconds_and_read_at_the_next_start(world: World, tmp_path: Path) -> None:
    world.create_topic("orders", 1)
    first, second = Recorder(world), Recorder(world)
    consumer = broadcasting(world, first, tmp_path, instance_name="DEFAULT")
    world.run_for(3_000)
    send(world.producer(), "orders", "a", "b")
    path = tmp_path / consumer.client_id / "billing" / "offsets.json"
    world.run_for(1_000)
    assert not path.exists()
    world.run_for(8_000)
    assert parse_offsets(path.read_text()) == {MessageQueue("orders", "broker-a", 0): 2}
    consumer.shutdown()
    assert consumer.client_id.endswith("@DEFAULT")
    path_of_next = tmp_path / "10.0.0.5@DEFAULT" / "billing" / "offsets.json"
    path_of_next.parent.mkdir(parents=True)
    path_of_next.write_text(path.read_text())
    again = broadcasting(world, second, tmp_path, name="billing-2", instance_name="DEFAULT")
    assert again.client_id == "10.0.0.5@DEFAULT"
    send(world.producer("shop-2"), "orders", "c")
    world.run_for(10_000)
    assert second.bodies == ["c"]
    assert (path_of_next.parent / "offsets.json.bak").exists()


@pytest.mark.parametrize("setting", ["instance_name", "unit_name"])
@pytest.mark.parametrize("name", ["../../outside", "a/b", "a\\b", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(world: World, tmp_path: Path, setting: str, name: str) -> None:
    world.create_topic("orders", 1)
    with pytest.raises(UsageError, match="cannot name the folder"):
        broadcasting(world, Recorder(world), tmp_path / "offsets", **{setting: name})
    world.run_for(12_000)
    assert not list(tmp_path.rglob("offsets*"))


QUEUES = {MessageQueue("tags", "broker-a", 1): 15, MessageQueue("tags", "broker-a", 0): 15}


def test_the_text_is_fastjsons_with_an_object_as_key() -> None:
    expected = (Path(__file__).parents[1] / "conformance" / "fixtures" / "broadcast-offsets.json").read_text()
    assert offsets_text(QUEUES) == expected
    assert parse_offsets(expected) == QUEUES
    with pytest.raises(json.JSONDecodeError):
        json.loads(expected)


def test_names_with_quotes_and_other_letters_survive() -> None:
    odd = {MessageQueue('т"о\\п', "брокер 🚀", 3): 2**40}
    assert parse_offsets(offsets_text(odd)) == odd


@pytest.mark.parametrize("damage", ["", "{", '{"offsetTable":[]}', '{"offsetTable":{{"queueId":1}:5}}', "\x00" * 50])
def test_a_damaged_file_falls_back_to_its_backup(world: World, tmp_path: Path, damage: str) -> None:
    world.create_topic("orders", 1)
    folder = tmp_path / "10.0.0.3@billing-1" / "billing"
    folder.mkdir(parents=True)
    (folder / "offsets.json").write_text(damage)
    (folder / "offsets.json.bak").write_text(offsets_text({MessageQueue("orders", "broker-a", 0): 1}))
    send(world.producer(), "orders", "a", "b")
    listener = Recorder(world)
    consumer = broadcasting(world, listener, tmp_path, instance_name="billing-1")
    assert consumer.client_id == "10.0.0.4@billing-1"  # the producer has .3
    consumer.shutdown()
    target = tmp_path / "10.0.0.5@billing-1" / "billing"
    target.parent.mkdir()
    folder.rename(target)
    broadcasting(world, listener, tmp_path, name="billing-2", instance_name="billing-1")
    world.run_for(5_000)
    assert listener.bodies == ["b"]


@pytest.mark.parametrize("cut", range(0, 160, 7))
def test_every_truncation_is_a_clear_error(cut: int) -> None:
    text = offsets_text(QUEUES)
    assert cut < len(text)
    with pytest.raises((CorruptionError, ValueError)):
        parse_offsets(text[:cut])
