"""The body of a batch send request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.errors import CorruptionError, UsageError
from mqlab.rocketmq.wire import batch, properties
from mqlab.rocketmq.wire.batch import BatchItem

CAPTURED = bytes.fromhex(
    "000000620000000000000000000000000000000662617463683000464b45595301623002554e49515f4b45590137463030"
    "30303031324431323546464432423237363533364643454430303033025741495401747275650254414753015461674102"
)


def test_the_item_of_the_fact_sheet():
    item = bytes.fromhex("00000022000000000000000000000000000000026230000a54414753015461674102")
    assert batch.encode([BatchItem(0, b"b0", b"TAGS\x01TagA\x02")]) == item
    assert batch.decode(item) == [BatchItem(0, b"b0", b"TAGS\x01TagA\x02")]


def test_a_captured_item():
    (item,) = batch.decode(CAPTURED)
    assert item.body == b"batch0"
    assert properties.decode(item.properties) == {
        "KEYS": "b0",
        "UNIQ_KEY": "7F0000012D125FFD2B276536FCED0003",
        "WAIT": "true",
        "TAGS": "TagA",
    }
    assert batch.encode([item]) == CAPTURED


items = st.builds(BatchItem, st.integers(-(2**31), 2**31 - 1), st.binary(max_size=30), st.binary(max_size=30))


@given(st.lists(items, max_size=4))
def test_what_is_written_is_read(given_items):
    data = batch.encode(given_items)
    assert batch.decode(data) == given_items
    edges = {0}
    for item in given_items:
        edges.add(max(edges) + len(batch.encode([item])))
    for length in range(len(data)):
        if length in edges:
            assert batch.decode(data[:length]) == given_items[: sorted(edges).index(length)]
        else:
            with pytest.raises(CorruptionError) as caught:
                batch.decode(data[:length])
            assert caught.value.offset is not None


@given(st.binary(max_size=80) | items.map(lambda item: batch.encode([item])), st.integers(0, 79), st.integers(0, 255))
def test_any_bytes(data, position, value):
    damaged = bytearray(data)
    if position < len(damaged):
        damaged[position] = value
    try:
        batch.decode(bytes(damaged))
    except CorruptionError as error:
        assert error.expected is not None and error.found is not None


@pytest.mark.parametrize("item", [BatchItem(2**31, b"", b""), BatchItem(0, b"", bytes(32_768))])
def test_what_does_not_fit_is_refused(item):
    with pytest.raises(UsageError, match="does not fit"):
        batch.encode([item])
