"""Texts cut to columns: accents belong to their letter, emoji take two, a long body is not measured over and over."""

from __future__ import annotations

import pytest

from mqlab.lab.views import text_width
from mqlab.lab.views.text_width import cut, width


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("é" * 100, 6, "é" * 5 + "…"),
        ("e\u0301" * 100, 6, "e\u0301" * 5 + "…"),
        ("订单" * 100, 6, "订单…"),
        ("💳" * 100, 7, "💳💳💳…"),
        ("👍🏽 ok ❤️ fine", 8, "👍🏽 ok …"),
        ("заказ", 5, "заказ"),
        ("", 3, ""),
    ],
)
def test_a_text_is_cut_between_letters(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown
    assert width(shown) <= columns


def test_a_long_text_is_measured_as_often_as_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def counted(text: str) -> int:
        measured[-1] += 1
        return width(text)

    monkeypatch.setattr(text_width, "width", counted)
    for length in (1_000, 1_000_000):
        measured.append(0)
        assert cut("x" * length, 48) == "x" * 47 + "…"
    assert measured[0] == measured[1]
