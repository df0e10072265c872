"""Held pulls: woken by a suiting message at once, by others at the next 5 s check, by time after 15 to 20 s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mqlab.rocketmq.broker.long_polling import HELD_PULL, HeldPull, HeldPulls
from mqlab.rocketmq.state_table import IllegalMove
from mqlab.rocketmq.wire.command import request
from tests.rocketmq.broker.fake_clock import FakeClock


class OnlyCode:
    """Passes one tag hash, and messages whose region is eu."""

    needs_properties = True

    def __init__(self, code: int) -> None:
        self.code = code

    def matches_code(self, tags_code: int) -> bool:
        return tags_code == self.code

    def matches_properties(self, properties: Mapping[str, str]) -> bool:
        return properties.get("region", "eu") == "eu"


class Holder:
    """A hold table with a fake clock; ``woken`` is what ran again and when (ms after the start)."""

    def __init__(self, period_ms: int = 5_000) -> None:
        self.clock = FakeClock()
        self.start_ms = self.clock.now_ms()
        self.woken: list[tuple[str, int]] = []
        self.max_offset = 7
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.held = HeldPulls(
            self.clock,
            lambda topic, queue_id: self.max_offset,
            check_period_ms=period_ms,
            note=lambda kind, **values: self.told.append((kind, values)),
        )

    def _run_again(self, pull: HeldPull) -> None:
        self.woken.append((pull.group, self.clock.now_ms() - self.start_ms))

    def hold(
        self, group: str, *, offset: int = 7, code: int = 5, timeout_ms: int = 15_000, channel: Any = None
    ) -> None:
        now_ms = self.clock.now_ms()
        pull = HeldPull(
            "订单",
            0,
            offset,
            group,
            request(11),
            channel,
            lambda answer: None,
            OnlyCode(code),
            now_ms,
            timeout_ms,
            self._run_again,
        )
        self.held.hold(pull)


def test_a_suiting_message_wakes_at_once_and_only_once() -> None:
    holder = Holder()
    holder.clock.run_for(1_200)
    holder.hold("billing")
    holder.held.arrived("订单", 0, 8, 5, {"region": "eu"})
    assert holder.woken == [("billing", 1_200)] and len(holder.held) == 0
    holder.clock.run_for(60_000)
    assert holder.woken == [("billing", 1_200)]


def test_an_unsuiting_message_wakes_at_the_next_check() -> None:
    holder = Holder()
    holder.clock.run_for(1_200)
    holder.hold("by tag")
    holder.hold("by property")
    holder.held.arrived("订单", 0, 8, 6, {"region": "eu"})
    holder.clock.run_for(100)
    holder.held.arrived("订单", 0, 9, 5, {"region": "us"})
    holder.clock.run_for(60_000)
    assert holder.woken == [("by tag", 5_000), ("by property", 5_000)]


def test_nothing_wakes_at_the_first_check_after_fifteen_seconds() -> None:
    holder = Holder()
    for held_after_ms in (0, 1, 4_999):
        holder.clock.run_for(held_after_ms)
        holder.hold(str(holder.clock.now_ms() - holder.start_ms))
    holder.clock.run_for(60_000)
    assert holder.woken == [("0", 15_000), ("1", 20_000), ("5000", 20_000)]


def test_a_message_behind_the_wanted_offset_and_another_queue_wake_nobody() -> None:
    holder = Holder()
    holder.hold("billing")
    holder.held.arrived("订单", 0, 7, 5, None)
    holder.held.arrived("订单", 1, 8, 5, None)
    holder.held.arrived("заказы", 0, 8, 5, None)
    assert holder.woken == [] and holder.held.held()[0].queue_offset == 7


def test_what_was_readable_when_held_is_looked_at_by_the_next_check() -> None:
    holder = Holder()
    holder.max_offset = 9
    holder.clock.run_for(600)
    holder.hold("billing")
    assert holder.clock.armed() == [("pull.recheck", 4_400)]


def test_short_polling_is_a_shorter_hold_on_a_shorter_grid() -> None:
    holder = Holder(period_ms=1_000)
    holder.clock.run_for(300)
    holder.hold("billing", timeout_ms=1_000)
    holder.clock.run_for(10_000)
    assert holder.woken == [("billing", 2_000)]


def test_pulls_of_a_closed_channel_are_forgotten() -> None:
    holder = Holder()
    gone, here = object(), object()
    holder.hold("gone", channel=gone)
    holder.hold("here", channel=here)
    holder.held.drop(gone)  # type: ignore[arg-type]
    assert [pull.group for pull in holder.held.held()] == ["here"]
    holder.held.clear()
    holder.clock.run_for(60_000)
    assert holder.woken == [] and holder.clock.armed() == []


def test_what_happens_is_told() -> None:
    holder = Holder()
    holder.hold("billing")
    holder.clock.run_for(15_000)
    assert [(kind, values.get("why")) for kind, values in holder.told] == [
        ("pull.held", None),
        ("pull.woken", "timeout"),
    ]


def test_a_pull_moves_by_its_table() -> None:
    holder = Holder()
    holder.hold("billing")
    [pull] = holder.held.held()
    assert pull.state == "HELD"
    holder.held.arrived("订单", 0, 8, 6, {})
    assert pull.state == "DUE"
    holder.held.arrived("订单", 0, 9, 5, {})
    assert pull.state == "WOKEN"
    with pytest.raises(IllegalMove, match="the event 'timeout' is not legal in the state WOKEN"):
        _ = HELD_PULL[pull.state, "timeout"]


def test_a_pull_of_a_closed_channel_is_dropped() -> None:
    holder, channel = Holder(), object()
    holder.hold("billing", channel=channel)
    [pull] = holder.held.held()
    holder.held.drop(channel)  # type: ignore[arg-type]
    assert pull.state == "DROPPED" and len(holder.held) == 0
