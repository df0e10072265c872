"""Kinds of units that need no Spark to be told: what waits in the timer topic, and POP's own messages."""

from __future__ import annotations

import pyarrow
import pytest

from mqlab.data.spark.pipeline.log_units import PLAIN
from mqlab.data.spark.pipeline.message_kinds import messages_in
from mqlab.data.spark.pipeline.schemas import MESSAGES
from mqlab.data.spark.small_tables import arrow_schema


@pytest.mark.parametrize(
    ("topic", "real_topic", "kind", "user_topic", "parked"),
    [
        ("rmq_sys_wheel_timer", "orders", "normal", "orders", True),
        ("rmq_sys_wheel_timer", "rmq_sys_REVIVE_LOG_LabCluster", "system", None, True),
        ("rmq_sys_REVIVE_LOG_LabCluster", None, "system", None, False),
        ("orders", "orders", "normal", "orders", False),
    ],
)
def test_timed_units_are_parked_messages_of_their_topic(
    topic: str, real_topic: str | None, kind: str, user_topic: str | None, parked: bool
) -> None:
    schema = arrow_schema(MESSAGES)
    columns = {
        name: pyarrow.nulls(1, schema.field(name).type if name in schema.names else pyarrow.int64()) for name in PLAIN
    }
    columns |= {"topic": pyarrow.array([topic]), "keys": pyarrow.array([""]), "total_size": pyarrow.array([100])}
    properties = {"REAL_TOPIC": pyarrow.array([real_topic], pyarrow.string())}
    nothing = pyarrow.nulls(1, pyarrow.string())
    row = messages_in(columns, lambda name: properties.get(name, nothing), schema).to_pylist()[0]
    assert (row["kind"], row["user_topic"], row["parked"]) == (kind, user_topic, parked)
