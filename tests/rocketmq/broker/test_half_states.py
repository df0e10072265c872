"""The states of half messages that have ended: what the broker remembers until an op message names them."""

from __future__ import annotations

import pytest

from mqlab.rocketmq.broker.tables.half_states import HALF_MESSAGE, HalfStates
from mqlab.rocketmq.state_table import IllegalMove


def test_an_ended_half_message_is_remembered_until_it_is_named() -> None:
    halves = HalfStates()
    assert halves.state_of(12) == "PREPARED"
    assert halves.move(12, "commit") == "COMMITTED" and halves.move(13, "roll back") == "ROLLED_BACK"
    assert (halves.state_of(12), halves.state_of(13), len(halves)) == ("COMMITTED", "ROLLED_BACK", 2)
    assert halves.move(12, "name") == "NAMED" and halves.move(13, "name") == "NAMED"
    assert len(halves) == 0


def test_a_check_does_not_end_a_half_message_whose_op_message_is_still_to_come() -> None:
    halves = HalfStates()
    halves.move(12, "commit")
    assert halves.move(12, "store again") == "COMMITTED" and halves.move(12, "give up") == "COMMITTED"
    assert halves.move(13, "store again") == "REPLACED" and halves.move(14, "give up") == "GIVEN_UP"
    assert len(halves) == 1


def test_an_op_message_names_only_what_has_ended() -> None:
    with pytest.raises(IllegalMove, match="the event 'name' is not legal in the state PREPARED"):
        HalfStates().move(12, "name")


def test_states_that_are_in_the_log_alone_lead_nowhere() -> None:
    assert {state for state, _ in HALF_MESSAGE}.isdisjoint({"NAMED", "REPLACED", "GIVEN_UP"})
