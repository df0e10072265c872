"""Tag expressions.

Mirrors: FilterAPI.buildSubscriptionData.
"""

from __future__ import annotations

import pytest

from mqlab.errors import FilterError
from mqlab.rocketmq.filter import tags


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_everything(expression: str | None) -> None:
    parsed = tags.parse(expression)
    assert parsed.passes_all
    assert parsed.sub_string == "*"
    assert parsed.matches_code(42)
    assert parsed.matches_text(None)


@pytest.mark.parametrize(
    ("expression", "texts", "codes"),
    [
        ("TagA", ("TagA",), (2598919,)),
        ("TagA || TagB", ("TagA", "TagB"), (2598919, 2598920)),
        (" TagA||  TagB ||", ("TagA", "TagB"), (2598919, 2598920)),
        ("TagA |||| TagB", ("TagA", "TagB"), (2598919, 2598920)),
        ("TagA|TagB", ("TagA|TagB",), (-1051832611,)),
        ("|| ||", (), ()),
        (" ", (), ()),
        (" * ", ("*",), (42,)),
        ("* || TagA", ("*", "TagA"), (42, 2598919)),
        ("订单", ("订单",), (1129459,)),
        ("\tTagA\x00 ||　TagA", ("TagA", "　TagA"), (2598919, -1534076921)),  # Java trims to U+0020 only
        ("TagA || TagA", ("TagA",), (2598919,)),
        ("Aa || BB", ("Aa", "BB"), (2112,)),
    ],
)
def test_parts(expression: str, texts: tuple[str, ...], codes: tuple[int, ...]) -> None:
    parsed = tags.parse(expression)
    assert (parsed.tags_set, parsed.code_set) == (texts, codes)
    assert not parsed.passes_all


def test_only_bars_are_an_error() -> None:
    with pytest.raises(FilterError, match="without tags"):
        tags.parse("||")


def test_no_parts_match_no_code() -> None:
    assert not tags.parse("|| ||").matches_code(0)


def test_colliding_hashes_pass_the_broker_and_not_the_client() -> None:
    parsed = tags.parse("Aa")
    assert parsed.matches_code(tags.parse("BB").code_set[0])
    assert not parsed.matches_text("BB")
    assert parsed.matches_text("Aa")


def test_a_code_is_compared_by_its_low_32_bits() -> None:
    parsed = tags.parse("polygenelubricants")
    assert parsed.matches_code(-2147483648)
    assert parsed.matches_code(0x80000000)
    assert not parsed.matches_code(0)
