"""Units of consume queues as columns: what the real store lists, and what the plain reader says of any file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.data.arrow.queues import QueueRange, plan_queues, read_queue_range, read_queue_units, tags_of
from mqlab.data.arrow.stores import find_stores
from mqlab.errors import UsageError
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.message import Message
from mqlab.rocketmq.wire.units import CQ_UNIT, CQ_UNIT_SIZE, PREBLANK

Rows = list[tuple[Any, ...]]


def by_the_plain_reader(directory: Path, broker_name: str) -> Rows:
    return [
        (broker_name, queue.topic, queue.queue_id, offset, *unit)
        for queue in StoreInspector(str(directory)).queues()
        for offset, unit in queue.units()
    ]


def rows_of(directory: Path, **chosen: Any) -> Rows:
    return [tuple(row.values()) for row in read_queue_units(directory, **chosen).to_pylist()]


@pytest.mark.parametrize("name", ["clean", "killed", "edges", "edges-killed"])
def test_queues_of_the_real_broker(
    real_store: Callable[[str], Path], expected: Callable[[str], dict[str, Any]], name: str
) -> None:
    rows = rows_of(real_store(name))
    assert rows == by_the_plain_reader(real_store(name), name)
    listed = [
        (name, queue["topic"], queue["queueId"], queue["minOffset"] + number, *unit)
        for queue in expected(name)["queues"]
        for number, unit in enumerate(queue["units"])
    ]
    assert sorted(rows) == sorted(listed)


@given(
    units=st.lists(
        st.sampled_from([PREBLANK, bytes(CQ_UNIT_SIZE)])
        | st.builds(CQ_UNIT.pack, st.integers(0, 1 << 50), st.integers(-5, 1 << 20), st.integers(-(2**63), 2**63 - 1)),
        max_size=60,
    ),
    torn=st.binary(max_size=CQ_UNIT_SIZE - 1),
    size=st.sampled_from([1, 7, 100]),
)
def test_any_files_as_the_plain_reader_reads_them(
    tmp_path_factory: pytest.TempPathFactory, units: list[bytes], torn: bytes, size: int
) -> None:
    store = tmp_path_factory.mktemp("q") / "b"
    folder = store / "consumequeue" / "订单" / "3"
    folder.mkdir(parents=True)
    (store / "commitlog").mkdir()
    for first in range(0, len(units), size):
        content = b"".join(units[first : first + size])
        content += torn if first + size >= len(units) else b""
        (folder / f"{first * CQ_UNIT_SIZE:020}").write_bytes(content)
    assert rows_of(store) == by_the_plain_reader(store, "b")


def test_tags_are_chosen_by_their_codes(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "broker-a")) as store:
        for number in range(30):
            tag = ["paid", "отправлен", "退款", "Aa", "BB"][number % 5]
            store.put(Message(["orders", "заказы"][number % 2], b"x", tags=tag))
    codes = [row[6] for row in rows_of(tmp_path, tags="paid || 退款")]
    assert sorted(codes) == sorted([tags_code("paid"), tags_code("退款")] * 6)
    assert len(rows_of(tmp_path, tags="Aa")) == 12  # BB has the same code
    assert {row[1] for row in rows_of(tmp_path, topics=["заказы"])} == {"заказы"}
    assert rows_of(tmp_path, queues=[1]) == []
    with pytest.raises(UsageError, match=r"no topic 'nothing'[\s\S]*topics are orders, заказы"):
        rows_of(tmp_path, topics=["nothing"])
    assert len(rows_of(tmp_path, tags="*")) == 30


@pytest.mark.parametrize("expression", ["paid ||", "|| paid", "paid || *"])
def test_what_is_no_tag_expression(expression: str) -> None:
    with pytest.raises(UsageError, match=r"paid \|\| shipped"):
        tags_of(expression)


def test_a_file_that_was_cut_after_it_was_planned(tmp_path: Path) -> None:
    with MessageStore.open(str(tmp_path / "b")) as store:
        for _ in range(9):
            store.put(Message("orders", b"x"))
    ranges: list[QueueRange] = [where for store in find_stores(tmp_path) for where in plan_queues(store)]
    path = Path(ranges[0].path)
    path.write_bytes(path.read_bytes()[: 4 * CQ_UNIT_SIZE + 7])
    assert [batch.num_rows for where in ranges for batch in read_queue_range(where)] == [4]
