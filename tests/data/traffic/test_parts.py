"""The parts: draws, the day, texts, shapes, places in the log; each against a plain loop."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mqlab.data.traffic.clients import Clients
from mqlab.data.traffic.day import DAY_MS, MINUTE_MS, Burst, OrdersDay
from mqlab.data.traffic.draws import Draws, Zipf
from mqlab.data.traffic.model import Asked
from mqlab.data.traffic.writing.columns.body_crcs import write_body_sums
from mqlab.data.traffic.writing.columns.byte_templates import Stretch, TemplateShape, slot
from mqlab.data.traffic.writing.columns.text_columns import digits, hexadecimal, joined, moments, table
from mqlab.data.traffic.writing.log_files import Log, QueueFiles
from mqlab.data.traffic.writing.message_shapes import HEAD_SIZE
from mqlab.errors import StoreError
from mqlab.rocketmq.wire.ids import UniqueIdMaker
from mqlab.rocketmq.wire.java_hash import crc32
from mqlab.rocketmq.wire.record import blank


def test_draws_are_the_same_for_ever() -> None:
    """Written down: other numbers would make other stores of the same seed."""
    assert [int(bits) for bits in Draws(7, 2).bits(3, np.array([0, 1, -1, 10**12]))] == PINNED
    assert Draws(7, 2).one(3, 1000) == PINNED[0] % 2**32 * 1000 >> 32


PINNED = [2768184089833218884, 15619379855792295887, 496195146793418411, 886401778223082825]


def test_zipf_follows_its_law() -> None:
    counts = np.bincount(Zipf(5_000).ranks(Draws(1, 0).bits(0, np.arange(200_000))), minlength=5_000)
    harmonic = sum(1 / rank for rank in range(1, 5_001))
    for rank in (0, 1, 9, 99):
        assert counts[rank] == pytest.approx(200_000 / (rank + 1) / harmonic, rel=0.15)
    assert (counts[2_500:] > 0).mean() > 0.3


def test_a_day_has_a_wave_and_a_burst() -> None:
    day, orders = OrdersDay(10**12, 100_000, (Burst(600, 10, 8),)), np.arange(100_000)
    times = day.time_ms(orders, Draws(1, 0).bits(0, orders))
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 10**12 and times[-1] < 10**12 + DAY_MS
    minutes = np.bincount((times - 10**12) // MINUTE_MS, minlength=1440)
    assert minutes[20 * 60] > 8 * minutes[4 * 60]
    assert minutes[605] > 6 * minutes[595]
    for passed_ms in (0, 1, 600 * MINUTE_MS, 605 * MINUTE_MS + 777, DAY_MS):
        assert abs(day.orders_before(passed_ms) - int((times < 10**12 + passed_ms).sum())) <= 60


def test_a_day_of_few_orders() -> None:
    day = OrdersDay(10**12, 3)
    assert 10**12 <= day.time_ms(np.arange(3)).min() <= day.time_ms(np.arange(4)).max() < 10**12 + DAY_MS


def test_texts_of_numbers() -> None:
    numbers = np.array([0, 7, 9_999, 10_000, 123_456_789_012])
    assert [bytes(t).decode() for t in digits(numbers, 12).tolist()] == [f"{n:012d}" for n in numbers.tolist()]
    assert [bytes(t).decode() for t in hexadecimal(numbers, 16).tolist()] == [f"{n:016X}" for n in numbers.tolist()]
    times = np.array([1_700_000_000_456, 1_731_369_599_999, 1_731_283_200_000])
    assert [bytes(t).decode() for t in moments(times).tolist()] == [str(t) for t in times.tolist()]
    assert moments(times[:0]).tolist() == []
    assert bytes(joined(table(2)[[5]], table(1)[[7]])[0]) == b"057"


def test_ids_are_those_of_the_makers() -> None:
    start_ms = 1_731_283_200_000
    clients = Clients(4, start_ms)
    ids = clients.ids(np.array([3, 3]), np.array([start_ms + 5, start_ms + DAY_MS - 1]), np.array([10, 65_535]))
    host = Clients.host(4, 3)[0]
    first = bytes(ids[0]).decode()
    maker = UniqueIdMaker(host, int(first[8:12], 16), int(first[12:20], 16), counter=10)
    assert first == maker.next(start_ms + 5)
    assert bytes(ids[1]).decode().endswith("FFFF")


def test_stretches_of_classes_are_laid_side_by_side() -> None:
    kinds = [TemplateShape(f"<{name}:{slot('n', 4)}>".encode()) for name in ("a", "имя", "数")]
    stretch, classes = Stretch(kinds), np.array([2, 0, 1, 1, 0])
    places = np.concatenate(([0], np.cumsum(stretch.sizes[classes])))
    buffer = np.zeros(int(places[-1]), np.uint8)
    stretch.put(buffer, places[:-1], classes, {"n": digits(np.arange(5), 4)})
    assert buffer.tobytes().decode() == "<数:0000><a:0001><имя:0002><имя:0003><a:0004>"


def naive_places(sizes: list[int], end: int, file_size: int) -> tuple[list[int], list[int]]:
    places, blanks = [], []
    for size in sizes:
        if size + 8 > file_size - end % file_size:
            blanks.append(end)
            end += file_size - end % file_size
        places.append(end)
        end += size
    return places, blanks


def test_places_are_those_of_one_unit_after_the_other(tmp_path) -> None:
    rng = np.random.default_rng(1)
    for trial in range(40):
        log = Log(str(tmp_path / str(trial)), 1_000)
        end = 0
        for _ in range(6):
            sizes = rng.integers(91, 993, int(rng.integers(1, 9)))
            places, blanks = log.places(sizes)
            assert (places.tolist(), blanks) == naive_places(sizes.tolist(), end, 1_000)
            log.append(np.zeros(int(places[-1] + sizes[-1]) - end, np.uint8), blanks)
            end = int(places[-1] + sizes[-1])
            assert log.end == end
        log.close()
        for at in blanks:
            file = tmp_path / str(trial) / "commitlog" / f"{at - at % 1000:020d}"
            assert file.stat().st_size == 1_000
            assert file.read_bytes()[at % 1000 : at % 1000 + 8] == blank(1_000 - at % 1000)


def test_a_unit_larger_than_a_file_is_refused(tmp_path) -> None:
    with pytest.raises(StoreError, match="does not fit"):
        Log(str(tmp_path), 1_000).places(np.array([100, 993]))


def test_queue_offsets_count_up_in_each_queue(tmp_path) -> None:
    queues = QueueFiles(str(tmp_path), [("a", 0), ("a", 1), ("b", 0)], 60)
    assert queues.offsets(np.array([0, 2, 0, 0, 2])).tolist() == [0, 0, 1, 2, 1]
    numbers = np.array([2, 0, 2])
    queues.append(numbers, np.array([0, 100, 200]), np.array([100, 100, 90]), np.array([1, -2, 3]))
    assert queues.ends.tolist() == [1, 0, 2]
    assert queues.offsets(np.array([2, 1, 0, 2])).tolist() == [2, 0, 1, 3]
    queues.close()
    file = tmp_path / "consumequeue" / "b" / "0" / f"{0:020d}"
    assert file.read_bytes().hex() == f"{0:016x}{100:08x}{1:016x}{200:016x}{90:08x}{3:016x}" + "00" * 20
    assert not (tmp_path / "consumequeue" / "a" / "1").exists()


def test_body_sums() -> None:
    bodies = ["Привет 🚀".encode(), b"x", json.dumps({"名": "前"}).encode(), bytes(range(256)) * 9]
    buffer = np.frombuffer(b"".join(bytes(HEAD_SIZE) + body + b"tail" for body in bodies), np.uint8).copy()
    sizes = np.array([len(body) for body in bodies])
    places = np.cumsum(sizes + HEAD_SIZE + 4) - sizes - HEAD_SIZE - 4
    sums = write_body_sums(buffer, places, sizes)
    assert sums.tolist() == [crc32(body) for body in bodies]
    assert [int.from_bytes(buffer[at + 8 : at + 12].tobytes(), "big") for at in places] == sums.tolist()


def test_broker_names_and_shares() -> None:
    asked = Asked(10_007, 10, 1)
    assert [asked.broker_name(n) for n in (0, 9, 25, 26, 27, 701)] == [
        "broker-a",
        "broker-j",
        "broker-z",
        "broker-aa",
        "broker-ab",
        "broker-zz",
    ]
    assert sum(asked.messages_of(n) for n in range(10)) == 10_007
