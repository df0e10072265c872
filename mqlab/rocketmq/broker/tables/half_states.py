"""What the broker knows of half messages that have been ended but are not named by an op message yet.

Mirrors: the deleteContext of TransactionalMessageServiceImpl, which holds the same offsets.

    state          what is in the log
    PREPARED       the half message, in the half topic
    COMMITTED      also the real message
    ROLLED_BACK    nothing more: the broker only remembers it
    NAMED          also an op message that names the half message: checks pass over it
    REPLACED       a copy at the end of the half queue, which is PREPARED; this one is passed over
    GIVEN_UP       a copy in TRANS_CHECK_MAX_TIME_TOPIC

The check reads the log. As long as no op message names an ended half message, the check may store it again and ask its
producer again. A second commit stores the real message a second time; RocketMQ does the same.

The last three states are in the log alone. If a producer ends a half message that is in one of them, the broker treats
it as PREPARED.
"""

from __future__ import annotations

from mqlab.rocketmq.state_table import StateTable

PREPARED, COMMITTED, ROLLED_BACK = "PREPARED", "COMMITTED", "ROLLED_BACK"
NAMED, REPLACED, GIVEN_UP = "NAMED", "REPLACED", "GIVEN_UP"

COMMIT, ROLL_BACK, NAME, STORE_AGAIN, GIVE_UP = "commit", "roll back", "name", "store again", "give up"

HALF_MESSAGE = StateTable(
    "the life of a half message",
    PREPARED,
    [
        (PREPARED, COMMIT, COMMITTED),
        (PREPARED, ROLL_BACK, ROLLED_BACK),
        (PREPARED, STORE_AGAIN, REPLACED),
        (PREPARED, GIVE_UP, GIVEN_UP),
        (COMMITTED, NAME, NAMED),
        (COMMITTED, COMMIT, COMMITTED),
        (COMMITTED, ROLL_BACK, ROLLED_BACK),
        (COMMITTED, STORE_AGAIN, COMMITTED),
        (COMMITTED, GIVE_UP, COMMITTED),
        (ROLLED_BACK, NAME, NAMED),
        (ROLLED_BACK, COMMIT, COMMITTED),
        (ROLLED_BACK, ROLL_BACK, ROLLED_BACK),
        (ROLLED_BACK, STORE_AGAIN, ROLLED_BACK),
        (ROLLED_BACK, GIVE_UP, ROLLED_BACK),
    ],
)


class HalfStates:
    """The ended half messages by their offset in the half queue; every other one counts as PREPARED.

    >>> halves = HalfStates()
    >>> halves.move(12, "commit"), halves.state_of(12), halves.move(12, "name"), len(halves)
    ('COMMITTED', 'COMMITTED', 'NAMED', 0)
    """

    def __init__(self) -> None:
        self._ended: dict[int, str] = {}

    def state_of(self, half_offset: int) -> str:
        """The state of a half message as far as the broker remembers it."""
        return self._ended.get(half_offset, PREPARED)

    def move(self, half_offset: int, event: str) -> str:
        """The state that follows the event. Raises IllegalMove for an event that the table does not allow."""
        state = HALF_MESSAGE[self.state_of(half_offset), event]
        if state in (COMMITTED, ROLLED_BACK):
            self._ended[half_offset] = state
        else:
            self._ended.pop(half_offset, None)
        return state

    def __len__(self) -> int:
        return len(self._ended)

    def __repr__(self) -> str:
        return f"<HalfStates: {len(self)} ended and not named by an op message>"
