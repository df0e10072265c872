"""What the programs of a run saw, written down outside of mqlab's own tables: the model judges by these notes alone.

Mirrors: the log of an application.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mqlab.errors import MqlabError

Place = tuple[str, str, int, int]
"""(topic, broker, queue id, queue offset)"""
OK_WORDS = {True: ("SUCCESS", "SUSPEND_CURRENT_QUEUE_A_MOMENT"), False: ("CONSUME_SUCCESS", "RECONSUME_LATER")}


def number_of(body: bytes) -> int:
    """The number of the message with this body."""
    return int(bytes(body).split(b"|", 1)[0])


def body_of(event: dict[str, Any]) -> bytes:
    """A body that tells its listener what to do: number | refusals | ms of work | end of the transaction | padding."""
    words = (event["number"], event.get("fails", 0), event.get("sleep", 0), event.get("end", ""))
    return ("|".join(map(str, words)) + "|" + "x" * int(event.get("size", 0))).encode()


@dataclass(frozen=True, slots=True)
class AnsweredSend:
    """A message that was answered SEND_OK."""

    number: int
    place: Place
    at_ms: int
    event: dict[str, Any]
    is_without_copy: bool = False
    """Two copies were demanded, and the slave did not have it when the answer came."""
    due_ms: int | None = None
    """When it is to be delivered, for a timed message."""


@dataclass(frozen=True, slots=True)
class ReturnedCall:
    """A message in a listener that came back: ``order`` counts calls and commits of the whole run."""

    order: int
    group: str
    number: int
    place: Place
    good: bool
    reconsume_times: int
    began: int
    node: str
    began_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset as a broker took it over."""

    order: int
    group: str
    topic: str
    broker: str
    queue_id: int
    offset: int


@dataclass
class Notes:
    """Everything that programs saw, in order."""

    sent: list[AnsweredSend] = field(default_factory=list)
    calls: list[ReturnedCall] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    renewed_ms: dict[str, int] = field(default_factory=dict)
    refusals: dict[tuple[str, int], int] = field(default_factory=dict)
    clock: int = 0
    now_ms: Callable[[], int] = field(default=lambda: 0, compare=False)

    def tick(self) -> int:
        """The next number in the order of the run."""
        self.clock += 1
        return self.clock

    def answered(
        self,
        event: dict[str, Any],
        now_ms: int,
        result: Any,
        *,
        is_without_copy: bool = False,
        due_ms: int | None = None,
    ) -> None:
        """Note an answer to a send, if it is a promise."""
        if result.send_status == "SEND_OK":
            queue = result.message_queue
            position = (queue.topic, queue.broker_name, queue.queue_id, result.queue_offset)
            self.sent.append(AnsweredSend(event["number"], position, now_ms, event, is_without_copy, due_ms))

    def committed(self, node: str, values: dict[str, Any]) -> None:
        """Note an offset that a broker took over from a member."""
        topic, broker, queue_id = values["topic"], node, values["queue_id"]
        self.commits.append(Commit(self.tick(), values["group"], topic, broker, queue_id, values["queue_offset"]))

    def listener(self, group: str, node: str, *, orderly: bool) -> Callable[[Sequence[Any], Any], str]:
        """A listener that does what the bodies tell it and notes what it did just before it returns."""
        good_word, bad_word = OK_WORDS[orderly]

        def listen(messages: Sequence[Any], context: Any) -> str:
            good, began, began_ms = True, self.tick(), self.now_ms()
            for message in messages:
                named, fails, sleep_ms, *_ = bytes(message.body).split(b"|")
                if int(sleep_ms):
                    context.sleep(int(sleep_ms))
                good = good and not self._refuses(group, int(named), int(fails), message, orderly)
            for message in messages:
                position = (message.topic, message.broker_name, message.queue_id, message.queue_offset)
                number, tried = number_of(message.body), message.reconsume_times
                times = began, node, began_ms, self.now_ms()
                self.calls.append(ReturnedCall(self.tick(), group, number, position, good, tried, *times))
            return good_word if good else bad_word

        return listen

    def _refuses(self, group: str, number: int, fails: int, message: Any, orderly: bool) -> bool:
        if not orderly:
            return bool(message.reconsume_times < fails)
        before = self.refusals.get((group, number), 0)
        self.refusals[group, number] = before + 1
        return before < fails


def harmless(action: Callable[[], Any]) -> Any:
    """Do something that faults may forbid; None if they did."""
    try:
        return action()
    except MqlabError:
        return None
