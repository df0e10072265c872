"""The bits of the two flags, in words and as numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlab.rocketmq.wire import codes, sys_flag


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        (0, ""),
        (0x1, "compressed ZLIB"),
        (0x301, "compressed ZLIB"),
        (0x101, "compressed LZ4"),
        (0x205, "compressed ZSTD, prepared"),
        (0x8, "commit"),
        (0xC, "rollback"),
        (0x30, "born host IPv6, store host IPv6"),
        (0xC2, "multi tags, need unwrap, inner batch"),
        (0x401, "compressed unknown"),
    ],
)
def test_words(flag, words):
    assert sys_flag.describe(flag) == words


@given(st.integers(-(2**31), 2**31 - 1))
def test_transactions(flag):
    sys_flag.describe(flag)
    committed = sys_flag.with_transaction_type(flag, sys_flag.TRANSACTION_COMMIT)
    assert sys_flag.transaction_type(committed) == sys_flag.TRANSACTION_COMMIT
    assert sys_flag.with_transaction_type(committed, sys_flag.transaction_type(flag)) == flag


def test_pull_flags_of_real_clients():
    assert sys_flag.pull_sys_flag(suspend=True) == 2
    assert sys_flag.pull_sys_flag(suspend=True, commit_offset=True) == 3
    assert sys_flag.pull_sys_flag(suspend=True, commit_offset=True, subscription=True) == 7
    assert sys_flag.pull_sys_flag(lite=True) == 16


def test_code_names():
    assert codes.request_name(codes.RequestCode.SEND_MESSAGE_V2) == "SEND_MESSAGE_V2"
    assert codes.response_name(1500) == "GO_AWAY"
    assert (codes.request_name(9999), codes.response_name(9999)) == ("9999", "9999")
