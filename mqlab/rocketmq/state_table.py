"""A state machine as a table: which events are legal in which state, and which state follows.

    CONSUMER_LIFE = StateTable("a consumer's life", "CREATE_JUST", [("CREATE_JUST", "start", "START_FAILED"), ...])
    state = CONSUMER_LIFE[state, "start"]         one look-up, without a function call; IllegalMove when it is not legal

The code takes every new state from its table, so the table cannot say anything else than the code does. The diagrams in
docs/state-machines.md are made from the same tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn


class IllegalMove(RuntimeError):
    """An event that the table does not allow in the current state. It is a defect in the code that moved."""


class StateTable(dict[tuple[str, str], str]):
    """(state, event) -> the next state. ``start`` is the state in which every new object is.

    >>> door = StateTable("a door", "SHUT", [("SHUT", "open", "OPEN"), ("OPEN", "shut", "SHUT")])
    >>> door["SHUT", "open"], door.states
    ('OPEN', ['SHUT', 'OPEN'])
    >>> door["OPEN", "open"]
    Traceback (most recent call last):
    mqlab.rocketmq.state_table.IllegalMove: a door: the event 'open' is not legal in the state OPEN, legal is: shut
    """

    def __init__(self, name: str, start: str, moves: Iterable[tuple[str, str, str]]) -> None:
        super().__init__({(state, event): target for state, event, target in moves})
        self.name = name
        self.start = start

    @property
    def states(self) -> list[str]:
        """All states, the first one first, then in the order of the table."""
        named = [name for (state, _), target in self.items() for name in (state, target)]
        return list(dict.fromkeys([self.start, *named]))

    def __missing__(self, move: tuple[str, str]) -> NoReturn:
        state, event = move
        legal = [known for source, known in self if source == state]
        raise IllegalMove(
            f"{self.name}: the event {event!r} is not legal in the state {state}, legal is: "
            f"{', '.join(legal) or 'nothing'}"
        )

    def diagram(self) -> str:
        """The table as a Mermaid state diagram: one arrow per pair of states, with the events on it."""
        arrows: dict[tuple[str, str], list[str]] = {}
        for (state, event), target in self.items():
            arrows.setdefault((state, target), []).append(event)
        lines = ["stateDiagram-v2", f"    [*] --> {self.start}"]
        lines += [f"    {state} --> {target}: {', '.join(events)}" for (state, target), events in arrows.items()]
        # A state that nothing leaves is an end of the diagram.
        sources = {state for (state, _), target in self.items() if target != state}
        return "\n".join([*lines, *(f"    {state} --> [*]" for state in self.states if state not in sources)])

    def __repr__(self) -> str:
        return f"<StateTable {self.name}: {', '.join(self.states)}>"
