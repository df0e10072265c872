"""Commit logs for tests, written unit by unit from records, with file ends as RocketMQ leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mqlab.rocketmq.wire.record import Record, blank, encode

TEXTS = ["order", "заказ оплачен", "订单已付款", "🚚📦 delivered", ""]


def write_log(directory: Path, records: Sequence[Record], file_size: int = 4096, start: int = 0) -> list[Record]:
    """A store directory with these records in its commit log, and the records as they were written."""
    folder = directory / "commitlog"
    folder.mkdir(parents=True)
    written = []
    name, content = start, b""
    for record in records:
        unit = encode(replace(record, physical_offset=name + len(content)))
        if len(content) + len(unit) + 8 > file_size:
            rest = file_size - len(content)
            (folder / f"{name:020}").write_bytes(content + blank(rest) + bytes(rest - 8))
            name, content = name + file_size, b""
            unit = encode(replace(record, physical_offset=name))
        written.append(replace(record, physical_offset=name + len(content), total_size=len(unit)))
        content += unit
    (folder / f"{name:020}").write_bytes(content + bytes(file_size - len(content)))
    return written


def some_records(count: int) -> list[Record]:
    """Records of a few topics and queues, IPv4 and IPv6 hosts, with and without properties and bodies."""
    found = []
    for number in range(count):
        text = TEXTS[number % len(TEXTS)]
        tags = f"TAGS\x01tag-{number % 3}\x02" if number % 4 else ""
        found.append(
            Record(
                topic=["orders", "заказы", "订" * 20, "long-" * 28][number % 4],
                body=text.encode() * (number % 5),
                queue_id=number % 4,
                queue_offset=number // 4,
                flag=-number,
                born_timestamp=1_700_000_000_000 + number,
                store_timestamp=1_700_000_000_500 + number,
                born_host=("2001:db8::7", 40_000 + number) if number % 3 == 1 else ("10.0.0.9", 40_000 + number),
                store_host=("::1", 10911) if number % 5 == 2 else ("10.0.0.1", 10911),
                reconsume_times=number % 2,
                properties=f"{tags}KEYS\x01k{number} {text}\x02UNIQ_KEY\x01U{number:04}".encode(),
            )
        )
    return found
