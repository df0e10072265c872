from __future__ import annotations

from mqlab.views.hexdump import Hexdump
from mqlab.views.message import MessageView
from mqlab.wire import properties, record
from mqlab.wire.record import Record

UNIT = record.encode(
    Record(
        "订单",
        "готово 🙂".encode(),
        queue_id=2,
        queue_offset=7,
        physical_offset=4096,
        born_timestamp=1767225600012,
        store_timestamp=1767225600013,
        properties=properties.encode({"KEYS": "order-1", "TAGS": "<已支付>"}),
    )
)


def dump() -> Hexdump:
    return Hexdump(record.field_map(UNIT), base=4096, title="Unit 4096")


def test_every_byte_of_a_unit_is_shown_once_and_named() -> None:
    lines = [line for line in str(dump()).splitlines() if line.endswith("|")]
    digits = "".join(line[10:57].replace(" ", "") for line in lines)
    assert digits == UNIT.hex()
    table = dump().table()
    assert sum(table.column("size")) == len(UNIT)
    assert table.column("offset")[0] == 4096 and "total_size" in table.column("field")


def test_values_are_readable() -> None:
    values = {row.field: row.value for row in dump().table()}
    assert values["topic"] == "订单" and values["body"] == "готово 🙂"
    assert values["store_timestamp"].startswith("2026-01-01 00:00:00.013")
    assert "KEYS=order-1" in values["properties"] and values["store_host"].startswith("127.0.0.1:10911")


def test_html_colours_bring_their_own_ink_and_text_is_escaped() -> None:
    html = str(dump().html())
    assert html.count("background-color:") == html.count(";color:#1f2430")
    assert "&lt;已支付&gt;" in html and "<已支付>" not in html
    for name in ("total_size", "queue_offset", "properties"):
        assert f">{name}</td>" in html  # never colour alone


def test_the_middle_of_a_long_body_is_left_out_of_the_dump_only() -> None:
    unit = record.encode(Record("orders", b"x" * 100_000))
    view = Hexdump(record.field_map(unit))
    assert len(str(view).splitlines()) < 60 and "          …" in str(view).splitlines()
    assert {row.field: row.size for row in view.table()}["body"] == 100_000


def test_nothing_to_dump() -> None:
    assert str(Hexdump([])) == "no bytes"


def test_a_message_shows_its_facts_and_properties() -> None:
    view = MessageView(record.decode(UNIT))
    facts = {row.fact: row.value for row in view.table()}
    assert facts["body"] == "готово 🙂  (17 bytes)"
    assert facts["queue_offset"] == "7" and facts["property KEYS"] == "order-1"
    assert "reconsume_times" not in facts  # says nothing
    assert "&lt;已支付&gt;" in str(view.html())
    assert "订单" in str(view)
