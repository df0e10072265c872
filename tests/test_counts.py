"""A number and its noun agree."""

from __future__ import annotations

import pytest

from mqlab.counts import counted


@pytest.mark.parametrize(
    ("things", "one"),
    [
        ("messages", "1 message"),
        ("retries", "1 retry"),
        ("processes", "1 process"),
        ("queue entries", "1 queue entry"),
        ("times charged", "1 time charged"),
        ("copies in the retry topic", "1 copy in the retry topic"),
        ("acknowledged orders lost", "1 acknowledged order lost"),
        ("ms a call", "1 ms a call"),
        ("s until the queues move", "1 s until the queues move"),
        ("% of the messages", "1 % of the messages"),
        ("", "1"),
    ],
)
def test_one_is_singular_and_two_are_plural(things: str, one: str) -> None:
    assert counted(1, things) == one
    assert counted(2, things) == f"2 {things}".rstrip()
