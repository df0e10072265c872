"""The verbs of a Lab and of a store that show what the files hold."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Lab, Message, play
from mqlab.errors import UsageError

SMALL_INDEX = {"max_hash_slot_num": 5, "max_index_num": 40}


def orders(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop", enable_trace=False)
    for number in range(4):
        shop.send(Message("orders", "книга".encode(), tags="paid", keys=f"order-{number}"))
    lab.run_for("100ms")


def dies(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    for group in ("audit", "billing"):
        consumer = lab.push_consumer(group, enable_trace=False, max_reconsume_times=1)
        consumer.subscribe("orders", "*")
        result = CONSUME_SUCCESS if group == "audit" else RECONSUME_LATER
        consumer.on_messages(lambda messages, context, result=result: result)
        consumer.start()
    lab.run_for("30s")
    lab.producer("shop", enable_trace=False).send(Message("orders", "订单".encode(), keys="заказ-1"))
    lab.run_for("1m")


@pytest.fixture(scope="module")
def written() -> Iterator[Lab]:
    with play(orders, seed=7, broker=SMALL_INDEX) as lab:
        yield lab


@pytest.fixture(scope="module")
def dead() -> Iterator[Lab]:
    with play(dies, seed=7) as lab:
        yield lab


def test_copies_of_a_message_in_order_with_their_roles(dead: Lab) -> None:
    row = dead.deliveries("billing")[0]
    copies = dead.copies(row)
    assert copies.column("role") == ["original", "waiting", "retry", "dead"]
    assert copies.column("reconsume_times") == [0, 1, 1, 2]
    assert copies.column("topic") == ["orders", "SCHEDULE_TOPIC_XXXX", "%RETRY%billing", "%DLQ%billing"]
    assert copies == dead.copies(row.msg_id) and len(dead.copies()) == 4
    assert not len(dead.copies("0000"))
    with pytest.raises(UsageError, match="no msg_id"):
        dead.copies(7)


def test_waits_of_a_message_are_between_its_deliveries(dead: Lab) -> None:
    row = dead.deliveries("billing")[0]
    waits = dead.waits(row, group="billing")
    assert waits.table().column("what") == ["delivery", "wait", "delivery", "dead"]
    (wait,) = waits.waits
    assert wait.where == "SCHEDULE_TOPIC_XXXX 2" and 10_000 <= (wait.until_ms or 0) - wait.from_ms <= 10_200
    assert dead.waits(row, group="audit").waits == [] and dead.waits(row, group="audit").dead_ms is None
    with pytest.raises(UsageError) as refused:
        dead.waits(row)  # two groups got it
    assert "group=" in str(refused.value.hint)
    assert dead.waits(row, group="billing", scale="linear").scale == "linear"


def test_what_is_not_synced_is_what_a_power_cut_undoes() -> None:
    with play(orders, seed=7, broker={**SMALL_INDEX, "flush_disk_type": "ASYNC_FLUSH"}) as lab:
        grid = lab.unsynced("broker-a")
        log = next(file for file in grid.files if file.path == "commitlog/00000000000000000000")
        assert log.unsynced == (0,) and ("commitlog/00000000000000000000", 0) in [
            (row.file, row.page) for row in grid.table()
        ]
        lab.run_for("11s")  # less than four pages are flushed every ten seconds
        synced = next(file for file in lab.unsynced().files if file.path == log.path)
        assert synced.unsynced == () and synced.written == 1
        with pytest.raises(UsageError):
            lab.unsynced("shop-1")


def test_a_map_shows_the_store_as_its_readers_do(written: Lab) -> None:
    second = list(written.store().messages())[1]
    drawn = written.store_map(second)
    assert [unit.physical_offset for unit in drawn.units] == [m.physical_offset for m in written.store().messages()]
    assert drawn.lit == {second.physical_offset}
    assert drawn.queues == {
        "orders 0": [(n, unit.physical_offset) for n, unit in written.store().queue("orders", 0).units()]
    }
    entries = written.store().index.entries()
    assert [(entry.number, entry.slot, entry.previous) for entry in drawn.index] == [
        (row.entry, row.slot, row.previous) for row in entries
    ]
    assert written.store().map("order-2").lit and not written.store().map().lit
    assert [unit.name for unit in written.store().map(topic="orders").units] == ["orders 0"] * 4


def test_hexdumps_have_the_place_in_their_file(written: Lab) -> None:
    store = written.store()
    entry = store.queue("orders", 0).hexdump(1)
    assert (
        entry.base == 20 and entry.table()[0].offset == 20 and entry.title.startswith("entry 1 of orders 0, in file 0")
    )
    index = store.index
    assert index.hexdump().base == 0 and "index_count" in str(index.hexdump())
    assert index.hexdump(slot=3).base == 40 + 4 * 3 and index.hexdump(entry=2).base == 40 + 4 * 5 + 20 * 2
    checkpoint = store.checkpoint_hexdump()
    assert [field.name for field in checkpoint.fields] == list(store.checkpoint() or {})
    assert [field.value for field in checkpoint.fields] == list((store.checkpoint() or {}).values())
    for wrong in ({"slot": 5}, {"slot": -1}, {"entry": 0}, {"entry": 99}, {"name": "nowhere"}):
        with pytest.raises(UsageError):
            index.hexdump(**wrong)  # type: ignore[arg-type]


def test_a_chain_is_what_a_query_reads(written: Lab) -> None:
    chain = written.store().index.chain("orders", "order-2")
    mine = [row.physical_offset for row in chain if row.is_hash]
    assert mine == list(written.store().index.candidates("orders", "order-2")) and len(mine) == 1
    numbers = chain.column("entry")
    assert chain.column("previous") == [*numbers[1:], 0] and "= slot " in chain.title


def test_a_store_without_an_index_or_a_checkpoint_says_so(tmp_path: object) -> None:
    from mqlab.lab.inspector import StoreInspector

    empty = StoreInspector(str(tmp_path))
    for ask in (empty.checkpoint_hexdump, empty.index.hexdump, empty.index.entries):
        with pytest.raises(UsageError, match="yet"):
            ask()
    assert str(empty.map()).endswith("an empty log")


def test_a_store_is_there_as_long_as_somebody_looks_at_it() -> None:
    gc.freeze()  # what other tests have left is not looked through: it takes a second
    store = play(orders).store()  # nobody keeps the Lab
    gc.collect()
    assert len(list(store.messages("orders"))) == 4
    folder = Path(store.directory)
    del store
    gc.collect()
    assert not folder.exists()
