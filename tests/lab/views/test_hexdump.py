from __future__ import annotations

import re

from mqlab.lab.views.hexdump import Hexdump
from mqlab.lab.views.message import MessageView
from mqlab.rocketmq.wire import properties, record
from mqlab.rocketmq.wire.layout import Field
from mqlab.rocketmq.wire.record import Record

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


def test_the_table_has_every_property_of_a_message() -> None:
    raw = properties.encode(
        {"UNIQ_KEY": "0A000003" * 4, "CLUSTER": "DefaultCluster", "KEYS": "order-1", "WAIT": "true"}
    )
    (row,) = Hexdump([Field("properties", 0, len(raw), raw, raw, "name 0x01 value 0x02")]).table()
    assert row.value.endswith("KEYS=order-1 WAIT=true")


def test_in_html_each_field_has_a_number_a_border_and_its_value_where_the_pointer_rests() -> None:
    html = str(dump().html())
    names = dump().table().column("field")
    for number, name in enumerate(names, 1):
        if dump().fields[number - 1].raw:
            assert f"<sup>{number}</sup>" in html and f'title="{number} {name} = ' in html
        assert f">{name}</td>" in html  # never by looks alone
    assert 'title="4 queue_id = 2"' in html or "queue_id = 2" in html
    assert "border:1px solid" in html and "&lt;已支付&gt;" in html and "<已支付>" not in html


def test_neighbouring_fields_differ_in_grey_and_ink_is_the_themes() -> None:
    kinds = re.findall(r'<span class="(plain|shaded)[^"]*" title="(\d+) ', str(dump().html()))
    assert kinds and all((kind == "shaded") == (int(number) % 2 == 0) for kind, number in kinds)
    assert "color:#" not in re.sub(r"--mq-[^;}]*", "", str(dump().html()))


def test_a_field_over_two_lines_is_open_at_its_ends_and_numbered_once() -> None:
    html = str(Hexdump([Field("body", 0, 20, b"x" * 20, b"x" * 20, "a body")]).html())
    assert re.findall(r'<span class="([^"]*)"', html) == ["plain off", "plain off", "plain on", "plain on"]
    assert html.count("<sup>1</sup>") == 1


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
