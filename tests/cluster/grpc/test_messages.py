"""The table of field numbers, read against the official client's own messages, and the queue of a message group."""

from __future__ import annotations

import json

import pytest
from google.protobuf.descriptor import FieldDescriptor
from rocketmq.grpc_protocol import definition_pb2, service_pb2

from mqlab.cluster.grpc.messages import CLASSES, make
from mqlab.cluster.grpc.sending import queue_of_group
from tests.cluster.grpc.conversations import RECORDED

ENUM = FieldDescriptor.TYPE_ENUM
INT32 = FieldDescriptor.TYPE_INT32


def official(name: str) -> type:
    return next(found for file in (definition_pb2, service_pb2) if (found := getattr(file, name, None)) is not None)


@pytest.mark.parametrize("name", [name for name in CLASSES if not name.endswith("Backoff")])
def test_every_field_has_the_number_and_the_type_of_the_official_client(name: str) -> None:
    theirs = official(name).DESCRIPTOR.fields_by_name
    for field in CLASSES[name].DESCRIPTOR.fields:
        other = theirs.get(field.name)
        assert other is not None and other.number == field.number
        assert field.type == (INT32 if other.type == ENUM else other.type)
        assert field.is_repeated == other.is_repeated and field.has_presence == (other.has_presence)


def test_a_field_that_is_not_known_is_kept() -> None:
    newer = service_pb2.ChangeInvisibleDurationRequest(message_id="m", suspend=True)
    here = CLASSES["ChangeInvisibleDurationRequest"].FromString(newer.SerializeToString())
    assert here.message_id == "m" and here.SerializeToString() == newer.SerializeToString()


def test_what_is_none_is_left_out() -> None:
    assert not make("SystemProperties", tag=None).HasField("tag")
    assert make("SystemProperties", tag="").HasField("tag")


def test_a_message_group_has_the_queue_that_guava_gives_it() -> None:
    for group, values in json.loads((RECORDED / "message_group_queue.json").read_text("utf-8")).items():
        assert [queue_of_group(group, queues) for queues in range(1, 17)] == values["buckets"]
