"""In a notebook, an answer that uses what does the exercise for it gets a message; no other does."""

from __future__ import annotations

import cProfile
import importlib
import pstats
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course.cases.forbids import RESETS
from mqlab.course.teach import exercises
from mqlab.course.teach.checking import CheckFailed, check
from mqlab.course.teach.exercises import Case, Exercise, Finding, Manifest
from mqlab.course.teach.forbidden import Forbidden, refuse_named, run_watched
from mqlab.errors import NotGiven
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.java_hash import tags_code
from mqlab.rocketmq.wire.message import MessageExt
from mqlab.rocketmq.wire.record import Record

UNIT = record.encode(Record("orders", b"letter"))
FORBIDS = (
    "mqlab.rocketmq.wire.record.decode",
    "mqlab.rocketmq.wire.message.MessageExt.from_record",
    "mqlab.rocketmq.wire.java_hash.tags_code",
    "mqlab.rocketmq.store",
)
IMPORTS = (
    "from mqlab.rocketmq.wire import record\nfrom mqlab.rocketmq.wire.record import decode\n"
    "from mqlab.rocketmq.store import MessageStore\n"
)

NAMED = {
    "a function": "def answer(unit):\n    return decode(unit).topic\n",
    "an attribute": "def answer(unit):\n    return record.decode(unit).topic\n",
    "an alias": "read = decode\ndef answer(unit):\n    return read(unit).topic\n",
    "where it is not run": "def answer(unit):\n    return 'orders' if unit else decode(unit).topic\n",
    "imported inside": (
        "def answer(unit):\n    from mqlab.rocketmq.wire.record import encode, decode as d\n    return d(unit).topic\n"
    ),
    "in a helper": "def help(unit):\n    return decode(unit)\ndef answer(unit):\n    return help(unit).topic\n",
    "in a lambda": "def answer(unit):\n    return (lambda data: record.decode(data).topic)(unit)\n",
    "a class of a package": "def answer(unit):\n    return MessageStore.open('x')\n",
    "a package": (
        "def answer(unit):\n    import mqlab.rocketmq.store.message_store as all\n    return all.MessageStore\n"
    ),
    "in a method": "class Answer:\n    def __call__(self, unit):\n        return decode(unit).topic\nanswer = Answer\n",
}
CALLED = {
    "importlib": (
        "import importlib\n"
        "def answer(unit):\n    return importlib.import_module('mqlab.rocketmq.wire.record').decode(unit).topic\n"
    ),
    "sys.modules": (
        "import sys\ndef answer(unit):\n    return sys.modules['mqlab.rocketmq.wire.record'].decode(unit).topic\n"
    ),
    "getattr": "def answer(unit):\n    return getattr(record, 'dec' + 'ode')(unit).topic\n",
    "a higher function": "def answer(unit):\n    return record.decode_all(unit)[0].topic\n",
    "a table": "BY_NAME = {'read': decode}\ndef answer(unit):\n    return BY_NAME['read'](unit).topic\n",
    "through map": "import sys\ndef answer(unit):\n    return list(map(vars(record)['decode'], [unit]))[0].topic\n",
    "exec": (
        "def answer(unit):\n"
        "    exec('from mqlab.rocketmq.wire.record import decode as d; d(u)', {'u': unit})\n    return 'orders'\n"
    ),
    "and kept quiet": (
        "import sys\ndef answer(unit):\n"
        "    try:\n        return sys.modules['mqlab.rocketmq.wire.record'].decode(unit).topic\n"
        "    except Exception:\n        return 'orders'\n"
    ),
    "a class of a package": (
        "import sys\ndef answer(unit):\n    return sys.modules['mqlab.rocketmq.store'].StoreConfig().flush_disk_type\n"
    ),
    "under a cache": (
        "import sys\ndef answer(unit):\n    return sys.modules['mqlab.rocketmq.wire.java_hash'].tags_code('new')\n"
    ),
}


def answer_of(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(IMPORTS + source, "<a cell of test_forbidden>", "exec"), names)
    return {"answer": names["answer"]}


def case(judge: Callable[[Any], object] = lambda found: None) -> Case:
    def run(answers: Any) -> Finding | None:
        right = record.decode(UNIT).topic, tags_code("x")  # the judge itself uses what is forbidden
        assert right == ("orders", 120)
        found = answers["answer"](UNIT)
        return None if found == "orders" else Finding("It is the topic", "the result", "orders", found)

    return Case("one unit", run)


@pytest.mark.parametrize("way", NAMED)
def test_what_the_code_names_is_found_before_it_runs(way: str) -> None:
    with pytest.raises(NotGiven):
        refuse_named(answer_of(NAMED[way]), FORBIDS)


@pytest.mark.parametrize("way", CALLED)
def test_what_is_called_is_found_under_every_name(way: str) -> None:
    answers = answer_of(CALLED[way])
    with pytest.raises(NotGiven):
        run_watched(case(), answers, FORBIDS)
    if way != "a class of a package":
        run_watched(case(), answers, ())


@pytest.mark.parametrize(
    "source",
    [
        "def answer(unit):\n    return unit[-13:-7].decode() and 'orders'\n",  # bytes.decode is another decode
        "def answer(unit):\n    return 'orders' if record.LAYOUT and record.encode else ''\n",
        "def decode(unit):\n    return 'orders'\ndef answer(unit):\n    return decode(unit)\n",
    ],
)
def test_other_answers_are_left_in_peace(source: str) -> None:
    answers = answer_of(source)
    refuse_named(answers, FORBIDS)
    assert run_watched(case(), answers, FORBIDS) is None


def test_what_mqlab_imports_when_an_answer_calls_it_is_not_the_answers_doing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``lab.admin`` does, in a kernel that has not used it yet: the forbidden module runs its own text."""
    (forbidden,) = RESETS
    monkeypatch.setattr(
        importlib.import_module("mqlab.rocketmq.admin"), "offset_resets", importlib.import_module(forbidden)
    )
    monkeypatch.delitem(sys.modules, forbidden)
    answers = answer_of("def answer(unit):\n    return admin(unit)\n")
    answers["answer"].__globals__["admin"] = lambda unit: importlib.import_module(forbidden) and "orders"
    assert run_watched(case(), answers, RESETS) is None
    assert forbidden in sys.modules


def test_names_stand_for_functions_methods_and_whole_packages() -> None:
    forbidden = Forbidden(FORBIDS)
    assert forbidden.name_of(record.decode) == "mqlab.rocketmq.wire.record.decode"
    assert forbidden.name_of(MessageExt.from_record) == "mqlab.rocketmq.wire.message.MessageExt.from_record"
    assert forbidden.name_of(importlib.import_module("mqlab.rocketmq.store.config")) == "mqlab.rocketmq.store"
    assert forbidden.name_of(record) == forbidden.name_of(record.encode) == forbidden.name_of(7) == ""


def test_check_says_so_in_kind_words(monkeypatch: pytest.MonkeyPatch) -> None:
    hints = ("look", "think", "almost")
    asked = Exercise("lab99.topic", "Topic", 1, ("answer",), lambda seed: case(), (1,), hints, "note", forbids=FORBIDS)
    monkeypatch.setattr(exercises, "manifest", lambda lab: Manifest(lab, (), (asked,)))
    for source in (NAMED["a function"], CALLED["getattr"], CALLED["and kept quiet"]):
        with pytest.raises(CheckFailed) as failed:
            check("lab99.topic", answer_of(source))
        told = failed.value.said.text()
        assert (
            "mqlab.rocketmq.wire.record.decode cannot be used in this exercise: it does what you are asked to write"
            in told
        )
        assert "Write it with Python itself and with what the exercise gives you" in told
    assert check("lab99.topic", answer_of("def answer(unit):\n    return 'orders'\n")).state == "good"


def test_who_counts_calls_goes_on_counting_while_an_answer_is_watched() -> None:
    counted: list[str] = []

    def work(answers: Any) -> None:
        answers["answer"](UNIT)

    def answer(unit: bytes) -> str:
        return "orders"

    sys.setprofile(lambda frame, event, argument: counted.append(frame.f_code.co_name))
    try:
        run_watched(Case("one", work), {"answer": answer}, FORBIDS)
    finally:
        sys.setprofile(None)
    assert {"work", "answer"} <= set(counted)


def test_a_profile_of_a_check_has_the_answer_and_the_check_still_watches_it() -> None:
    """As ``%prun check(...)`` in a notebook."""
    profile = cProfile.Profile()
    right = answer_of("def answer(unit):\n    return 'orders'\n")
    assert profile.runcall(run_watched, case(), right, FORBIDS) is None
    assert {"run_watched", "answer"} <= {name for _, _, name in pstats.Stats(profile).stats}
    for way in CALLED:
        with pytest.raises(NotGiven):
            profile.runcall(run_watched, case(), answer_of(CALLED[way]), FORBIDS)
    assert sys.getprofile() is None and sys.gettrace() is None


CONSOLE = {
    "a cell's call": "    return board.preview_reset('orders', 'billing', 'first')\n",
    "the page's question, whose errors are words": (
        "    return board.answer('preview', {'kind': 'reset', 'topic': 'orders', 'group': 'billing', 'to': 'first'})\n"
    ),
}


@pytest.mark.parametrize("way", CONSOLE)
def test_the_console_is_no_way_to_a_forbidden_verb(way: str) -> None:
    source = "from mqlab.course.widgets import console\ndef answer(lab):\n    board = console(lab)\n" + CONSOLE[way]
    lab = play(billing_has_read, seed=7)
    asked = Case("one group", lambda answers: answers["answer"](lab) and None)
    assert run_watched(asked, answer_of(source), ()) is None
    with pytest.raises(NotGiven, match="offset_resets"):
        run_watched(asked, answer_of(source), RESETS)


def billing_has_read(lab: Any) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    lab.producer("shop").send(Message("orders", b"a book"))
    lab.run_for("20s")
