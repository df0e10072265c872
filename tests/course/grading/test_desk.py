"""Answers called from the judge's side of the wall: values, objects, errors, time, death."""

from __future__ import annotations

import contextlib
import inspect
import re
import time

import pytest

from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.sandbox import answer_process
from mqlab.course.grading.sandbox.values import AnswerError, NotPlain
from mqlab.course.teach.lives import anew
from tests.course.grading.conftest import HASTY


def test_functions_are_called_by_value(desk: Desk) -> None:
    names = desk.load("lab.a", "def twice(value, times=2):\n    return [value] * times\n", ["twice", "other"])
    assert list(names) == ["twice"]
    twice = names["twice"]
    assert twice("订单🙂") == ["订单🙂", "订单🙂"] and twice(b"x", times=1) == [b"x"]
    assert str(inspect.signature(twice)) == "(value, times=Ellipsis)" and twice.__name__ == "twice"
    given = [1]
    twice(given)
    assert given == [1]


def test_plain_names_are_values(desk: Desk) -> None:
    assert desk.load("lab.a", "LIMIT = (1, b'x')\n", ["LIMIT"]) == {"LIMIT": (1, b"x")}


def test_classes_and_their_objects(desk: Desk) -> None:
    source = (
        "class Box:\n"
        "    def __init__(self, first):\n        self.items = [first]\n"
        "    def put(self, item):\n        self.items.append(item)\n        return self\n"
        "    def __len__(self):\n        return len(self.items)\n"
        "    def __contains__(self, item):\n        return item in self.items\n"
        "    def __getitem__(self, index):\n        return self.items[index]\n"
        "    def __call__(self):\n        return 'called'\n"
        "    def __eq__(self, other):\n        return True\n"
    )
    kind = desk.load("lab.a", source, ["Box"])["Box"]
    box = kind("a")
    assert inspect.isclass(kind) and isinstance(box, kind) and kind.__name__ == "Box"
    box.put("b")
    box.colour = "red"
    assert box.items == ["a", "b"] and len(box) == 2 and "b" in box and box[1] == "b"
    assert box.colour == "red" and box() == "called" and not hasattr(box, "nothing")
    assert box != 7 and box != kind("a")


def test_what_an_answer_raises_is_raised_here_with_its_own_lines(desk: Desk) -> None:
    source = "class Own(Exception): pass\ndef bad(x):\n    return x[5]\ndef own():\n    raise Own('hm')\n"
    names = desk.load("lab.a", source, ["bad", "own"])
    with pytest.raises(IndexError) as error:
        names["bad"]([])
    assert 'File "<answer lab.a>", line 3' in error.value.answer_trace  # type: ignore[attr-defined]
    assert "worker.py" not in error.value.answer_trace  # type: ignore[attr-defined]
    with pytest.raises(AnswerError, match="Own: hm"):
        names["own"]()


def test_an_exception_that_holds_an_object_is_told_in_words_and_without_sparks_plan(desk: Desk) -> None:
    source = (
        "class AnalysisException(Exception):\n"
        "    def getSqlState(self):\n        return '42703'\n"
        "    def __str__(self):\n        return self.args[0]\n"
        "def ask(x):\n    raise AnalysisException('no column `тема`;\\n+- RelationV2[topic#1]', object())\n"
    )
    with pytest.raises(AnswerError) as error:
        desk.load("lab.a", source, ["ask"])["ask"](1)
    assert str(error.value).endswith("AnalysisException: no column `тема`")
    trace = error.value.answer_trace  # type: ignore[attr-defined]
    assert trace.splitlines()[-1] == "AnalysisException: no column `тема`"


def test_a_cell_that_raises_says_so(desk: Desk) -> None:
    with pytest.raises(SyntaxError):
        desk.load("lab.a", "def broken(:\n", ["broken"])
    with pytest.raises(NameError):
        desk.load("lab.b", "x = nowhere\n", ["x"])
    assert desk.load("lab.c", "y = 1\n", ["y"]) == {"y": 1}


def test_answers_see_each_other_and_the_set_up(desk: Desk) -> None:
    desk.load("set-up 0", "import struct\n")
    desk.load("lab.a", "def size():\n    return struct.calcsize('>qiq')\n", ["size"])
    assert desk.load("lab.b", "def twice():\n    return 2 * size()\n", ["twice"])["twice"]() == 40


@pytest.mark.parametrize("value", ["(n for n in [1])", "open('/dev/null')", "object()", "'x' * 2_000_000"])
def test_what_cannot_cross_is_refused(desk: Desk, value: str) -> None:
    give = desk.load("lab.a", f"def give():\n    return {value}\n", ["give"])["give"]
    with pytest.raises(NotPlain, match=r"lab\.a: "):
        give()


def test_a_hanging_answer_is_stopped_and_the_others_go_on(desk: Desk) -> None:
    good = desk.load("lab.good", "def good():\n    return 1\n", ["good"])["good"]
    hang = desk.load(
        "lab.hang",
        "import time\ndef hang():\n    while True:\n        try:\n            while True: time.sleep(0.01)\n"
        "        except: pass\n",
        ["hang"],
        HASTY,
    )["hang"]
    began = time.monotonic()
    with pytest.raises(AnswerStopped, match="no answer within 1 s"):
        hang()
    with pytest.raises(AnswerStopped):
        hang()
    assert time.monotonic() - began < 30  # seconds; the desk's own limit is 60
    assert good() == 1
    assert [incident["kind"] for incident in desk.incidents] == ["timeout"]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("import os; os._exit(7)", "died", "exit code 7"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "died", "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "died", "SIGSEGV"),
        (
            'forge(b\'{"op": "return", "call": 1, "value": 1}\\n\')',
            "garbled",
            "more than one answer|something other",
        ),
    ],
)
def test_death_and_forgery_end_one_exercise_only(desk: Desk, body: str, kind: str, words: str) -> None:
    good = desk.load("lab.good", "def good(x):\n    return x\n", ["good"])["good"]
    helper = (
        "import os\ndef forge(line):\n    for number in range(3, 30):\n"
        "        try:\n            os.write(number, line)\n        except OSError:\n            pass\n"
    )
    bad = desk.load("lab.bad", f"{helper}def bad():\n    {body}\n", ["bad"])["bad"]
    with pytest.raises(AnswerStopped) as stopped:
        bad()
    assert stopped.value.kind == kind
    assert re.search(words, str(stopped.value))
    assert good(3) == 3


@pytest.mark.parametrize("line", [b"SECRET SECRET\n", b'{"op": "SECRET"}\n', b"[]\n" * 3, b"\xff\n"])
def test_what_broke_the_protocol_is_not_quoted_and_always_the_same(desk: Desk, line: bytes) -> None:
    source = (
        "import os\ndef bad():\n    for number in range(3, 30):\n"
        f"        try:\n            os.write(number, {line!r})\n        except OSError:\n            pass\n"
    )
    bad = desk.load("lab.bad", source, ["bad"])["bad"]
    with pytest.raises(AnswerStopped) as stopped:
        bad()
    assert str(stopped.value) == "lab.bad: it wrote something other than an answer"


def test_objects_are_lost_with_their_process(desk: Desk) -> None:
    source = "class Box:\n    def put(self):\n        return 1\n"
    box = desk.load("lab.box", source, ["Box"])["Box"]()
    bad = desk.load("lab.bad", "def bad():\n    import os; os._exit(0)\n", ["bad"])["bad"]
    with pytest.raises(AnswerStopped):
        bad()
    with pytest.raises(AnswerStopped, match="lost with its process"):
        box.put()


def test_a_cell_that_never_ends_stops_its_exercise(desk: Desk) -> None:
    with pytest.raises(AnswerStopped):
        desk.load("lab.loop", "while True: pass\n", ["x"], HASTY)
    assert desk.load("lab.next", "x = 1\n", ["x"]) == {"x": 1}


def test_interrupting_the_judge_leaves_no_half_conversation(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    echo = desk.load("lab.a", "def echo(x):\n    return x\n", ["echo"])["echo"]
    assert echo(1) == 1

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(answer_process.AnswerProcess, "_read_line", interrupted)
    with pytest.raises(KeyboardInterrupt):
        echo(2)
    monkeypatch.undo()
    assert echo(3) == 3


def test_what_one_exercise_leaves_behind_is_not_laid_at_anothers_door(desk: Desk) -> None:
    echo = desk.load("lab.a", "def echo(x):\n    return x\n", ["echo"])["echo"]
    source = "import sys\ndef spoil():\n    sys.spoiled = 1\ndef spoiled():\n    return hasattr(sys, 'spoiled')\n"
    spoiler = desk.load("lab.b", source, ["spoil", "spoiled"])
    spoiler["spoil"]()
    desk.begin("lab.b")
    assert spoiler["spoiled"]() is True
    desk.begin("lab.a")
    assert echo(7) == 7 and spoiler["spoiled"]() is False


def test_cells_that_each_define_a_helper_do_not_disturb_each_other(desk: Desk) -> None:
    desk.load("set-up 0", "def helper():\n    return 'given'\ndef given():\n    return helper()\n")
    answers = {}
    for name in ("a", "b", "c"):
        source = f"def helper():\n    return '{name}'\ndef {name}():\n    return helper(), given()\n"
        answers |= desk.load(f"lab.{name}", source, [name])
    answers |= desk.load("lab.d", "def d():\n    return helper()\n", ["d"])
    desk.begin("lab.a")
    assert [answers[name]() for name in "abc"] == [("a", "given"), ("b", "given"), ("c", "given")]
    assert answers["d"]() == "given"


def test_a_name_that_a_cell_lacks_is_the_nearest_answer_above(desk: Desk) -> None:
    names = {}
    for name, source in (
        ("a", "size = lambda: 'a'\n"),
        ("b", "size = lambda: 'b'\n"),
        ("c", "def c():\n    return size(), list('x'), below()\n"),
        ("d", "def size(): return 'd'\ndef below(): return size()\nlist = None\ndef d(): return c()\n"),
    ):
        names |= desk.load(f"lab.{name}", source, [name, "size"])
    assert names["c"]() == names["d"]() == ("b", ["x"], "d")


def test_a_cell_changes_the_variables_of_its_own(desk: Desk) -> None:
    source = "count = 0\ndef {}():\n    global count\n    count += 1\n    return count\n"
    first = desk.load("lab.a", source.format("a"), ["a"])["a"]
    second = desk.load("lab.b", source.format("b"), ["b"])["b"]
    assert [first(), first(), second(), first()] == [1, 2, 1, 3]


def test_a_callable_object_is_an_answer_and_outlives_its_process(desk: Desk) -> None:
    source = (
        "class Total:\n    def __call__(self, numbers):\n        return sum(numbers)\n"
        "    def twice(self, numbers):\n        return 2 * self(numbers)\n"
        "total = Total()\n"
    )
    total = desk.load("lab.total", source, ["total"])["total"]
    other = desk.load("lab.other", "def other():\n    return 1\n", ["other"])["other"]
    assert other() == 1 and total([1, 2]) == 3
    desk.begin("lab.total")
    assert total([1, 2]) == 3 and total.twice([1]) == 2
    assert desk.load("lab.user", "def use(call):\n    return call([4])\n", ["use"])["use"](total) == 4


REMEMBERS = """
import sys
kept = {"calls": 0}
def remember(kept_here=[]):
    kept["calls"] += 1
    kept_here.append(1)
    sys.calls = getattr(sys, "calls", 0) + 1
    return kept["calls"], len(kept_here), sys.calls
class Box:
    def put(self):
        return remember()
"""


def test_each_life_begins_where_all_cells_were_run_and_nothing_was_called(desk: Desk) -> None:
    other = desk.load("lab.other", "def other():\n    return 7\n", ["other"])["other"]
    names = desk.load("lab.a", REMEMBERS, ["remember", "Box"])
    remember = names["remember"]
    assert [remember(), remember()] == [(1, 1, 1), (2, 2, 2)]
    for _ in range(3):
        desk.renew("lab.a")
        assert [remember(), remember()] == [(1, 1, 1), (2, 2, 2)]
    box = names["Box"]()
    desk.renew("lab.a")
    with pytest.raises(AnswerStopped, match="lost with its process"):
        box.put()
    assert names["Box"]().put() == (1, 1, 1) and other() == 7
    late = desk.load("lab.late", "def late():\n    return remember()\n", ["late"])["late"]
    desk.renew("lab.a")
    assert late() == (1, 1, 1)


@pytest.mark.parametrize(
    ("body", "words"),
    [("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), 9)", "SIGKILL"), ("os.kill(os.getppid(), 9)", "")],
)
def test_an_answer_that_dies_in_a_life_is_over_and_the_others_go_on(desk: Desk, body: str, words: str) -> None:
    good = desk.load("lab.good", "def good():\n    return 1\n", ["good"])["good"]
    bad = desk.load("lab.bad", f"import os\ndef bad():\n    {body}\n", ["bad"])["bad"]
    desk.renew("lab.bad")
    if words:
        with pytest.raises(AnswerStopped, match=words):
            bad()
        with pytest.raises(AnswerStopped, match=words):
            desk.renew("lab.bad")
    else:
        with contextlib.suppress(AnswerStopped):
            bad()
    desk.begin("lab.good")
    assert good() == 1


TABLE = """
CALLS = []
def count(number):
    CALLS.append(number)
    return len(CALLS)
HANDLERS = {310: count, "last": lambda number: CALLS[-1]}
"""


def test_the_functions_of_a_table_have_further_lives(desk: Desk) -> None:
    handlers = desk.load("lab.a", TABLE, ["HANDLERS"])["HANDLERS"]
    assert (handlers[310](7), handlers[310](8), handlers["last"](0)) == (1, 2, 8)
    again = anew(handlers, "HANDLERS")
    assert list(again) == [310, "last"] and again[310](9) == 1 and handlers["last"](0) == 9
