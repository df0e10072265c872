"""What a student reads whose listener cannot be called as a consumer calls it, and what is taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.course.kit import World
from mqlab.course.kit.days import Day, Learner, Reads, Sends, Topics
from mqlab.course.teach.exercises import Finding
from mqlab.rocketmq.wire.message import Message


class Order:
    key = "order-1"

    def message(self) -> Message:
        return Message("orders", b"a book", keys=self.key)


def day(seed: int, makes: bool) -> Day:
    reads = Reads("billing", "orders", Learner("made", makes=makes), ready_after="1s")
    return Day((Topics(("orders",)), reads, Sends([Order()], every="1s")))


MAKES = World("labxx.makes", "made(lab)", points=1, about="a day", day=lambda seed: day(seed, True), promises=[])
IS_ONE = World(
    "labxx.is_one", "made(messages, context)", points=1, about="a day", day=lambda seed: day(seed, False), promises=[]
)


def told(asked: Any, answer: Any) -> Finding | None:
    return asked.case(1).run({"made": answer})  # type: ignore[no-any-return]


class Listener:
    def consume_message(self, messages: Any, context: Any) -> str:
        return "CONSUME_SUCCESS"


class Narrow:
    def consume_message(self, messages: Any) -> str:
        return "CONSUME_SUCCESS"


@pytest.mark.parametrize(
    "listener", [lambda messages, context: "CONSUME_SUCCESS", Listener(), Listener, lambda *all: 1]
)
def test_functions_objects_and_classes_are_listeners(listener: Any) -> None:
    assert told(MAKES, lambda lab: listener) is None and told(IS_ONE, listener) is None


@pytest.mark.parametrize(
    ("answer", "rule", "expected", "found"),
    [
        (
            lambda lab: lambda message: 1,
            "made returns a listener: it is called with",
            "(messages, context)",
            "(message)",
        ),
        (lambda lab: Narrow(), "it is called with a list of messages", "(messages, context)", "(messages: 'Any')"),
        (lambda lab: Narrow, "it is called with a list of messages", "(messages, context)", "(self, messages: 'Any')"),
        (lambda messages, context: 1, "made gets the lab and returns a listener", "(lab)", "(messages, context)"),
        (lambda lab: None, "made returns a listener: the inner function", "a function", None),
    ],
)
def test_another_form_is_told_with_its_parameters(answer: Any, rule: str, expected: str, found: object) -> None:
    finding = told(MAKES, answer)
    assert finding is not None and rule in finding.rule
    assert finding.expected == expected and str(finding.found).startswith(str(found))
    assert "TypeError" not in f"{finding.rule} {finding.found}"


def test_a_listener_by_itself_is_told_as_such() -> None:
    finding = told(IS_ONE, lambda messages: "CONSUME_SUCCESS")
    assert finding is not None and finding.rule.startswith("made is a listener: it is called with")
