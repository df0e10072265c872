"""No bytes make a reader raise anything but its own errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mqlab.errors import StoreError
from mqlab.rocketmq.store import MessageStore
from mqlab.rocketmq.wire.codes import RequestCode, ResponseCode
from mqlab.rocketmq.wire.message import Message
from tests.fuzz.__main__ import broken_by, tried
from tests.fuzz.guided import guided
from tests.fuzz.mutations import from_script
from tests.fuzz.readers import READERS, Reader, store_readers
from tests.fuzz.requests import REQUESTS
from tests.rocketmq.broker.world import World

EVERY = [pytest.param(reader, id=reader.name) for reader in (*READERS, *store_readers(), REQUESTS)]


@pytest.mark.parametrize("reader", EVERY)
def test_a_reader_reads_its_samples(reader: Reader) -> None:
    assert reader.samples()
    for sample in reader.samples():
        reader.read(sample)


@pytest.mark.parametrize("reader", EVERY)
def test_any_bytes_are_read_or_refused(reader: Reader) -> None:
    @settings(
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=max(12, 120 // reader.slow),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(max_size=33))
    def any_bytes(script: bytes) -> None:
        try:
            reader.read(from_script(reader.samples(), script))
        except reader.refuses:
            pass

    any_bytes()


@pytest.mark.long
@pytest.mark.parametrize("reader", EVERY)
def test_many_bytes_are_read_or_refused(reader: Reader) -> None:
    assert tried(reader, 40_000 // reader.slow, seed=1) == 0


@pytest.mark.long
@pytest.mark.parametrize("reader", EVERY)
def test_bytes_led_by_coverage_are_read_or_refused(reader: Reader) -> None:
    pytest.importorskip("atheris", reason="needs Atheris: install the extra, for example uv pip install -e '.[fuzz]'")
    stands, said = guided(reader.name, inputs=20_000)
    assert stands, said[-4_000:]


def test_a_defect_is_told_with_its_script() -> None:
    def read(data: bytes) -> int:
        return data[3]

    assert "IndexError" in broken_by(Reader("short", lambda: [b"abcd"], read), [b"abcd"], bytes([0, 0, 0, 1, 0]))[1]


def test_a_topic_has_not_more_queues_than_answers_can_list(tmp_path: Path) -> None:
    """A question for its numbers would take all of the broker's time."""
    client = World(tmp_path).client()
    asked = {"topic": "wide", "readQueueNums": 2**31 - 1, "writeQueueNums": 4, "perm": 6}
    answer = client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, **asked, topicFilterType="SINGLE_TAG")
    assert answer.code == ResponseCode.INVALID_PARAMETER and "65,535 queues" in (answer.remark or "")


@pytest.mark.parametrize("code", [RequestCode.SET_MESSAGE_REQUEST_MODE, RequestCode.QUERY_ASSIGNMENT])
def test_a_body_that_is_no_json_is_refused(code: RequestCode, tmp_path: Path) -> None:
    answer = World(tmp_path).client().ask(code, b'{"topic":')
    assert answer.code == ResponseCode.SYSTEM_ERROR and "not JSON" in (answer.remark or "")


def test_a_log_file_that_was_cut_is_told_when_it_is_full(tmp_path: Path) -> None:
    """Behind its last unit are fewer bytes than a BLANK needs, which appending never leaves."""
    sizes = {"mapped_file_size_commit_log": 4_096}
    with MessageStore.open(str(tmp_path), **sizes) as store:
        end = [store.put(Message("orders", bytes(500), keys=f"order-{at}")) for at in range(3)][-1]
    path = tmp_path / "commitlog" / f"{0:020}"
    path.write_bytes(path.read_bytes()[: end.physical_offset + end.size + 5])
    with MessageStore.open(str(tmp_path), **sizes) as store:
        with pytest.raises(StoreError, match="5 of them after the last unit"):
            store.put(Message("orders", bytes(500)))
        assert store.max_physical_offset == end.physical_offset + end.size
