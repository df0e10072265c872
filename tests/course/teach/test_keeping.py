"""Answers that are kept: the file, what is taken along, what is refused, and worlds that run on it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import mybroker
from mqlab.course.teach.keeping import is_filled, source_of, written
from mqlab.course.teach.passed import Passed
from mqlab.course.teach.said import AskedWrongly, Said
from mqlab.errors import UsageError
from tests.course.teach.notebook_answers import names_after, reference
from tests.lab.parts.brokers import rocketmq_shape

CACHE = "lab04.process_queue"
REMEMBERS = "SEEN = []\nLIMIT = 3\nclass MyProcessQueue:\n    def put(self):\n        SEEN.append(LIMIT)\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "mybroker"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def orders(lab: object) -> None:
    lab.create_topic("orders")  # type: ignore[attr-defined]
    shop = lab.producer("shop")  # type: ignore[attr-defined]
    for _ in range(6):
        shop.send(Message("orders", b"a book"))
    billing = lab.push_consumer("billing")  # type: ignore[attr-defined]
    billing.subscribe("orders", "*")
    billing.on_messages(lambda messages, context: CONSUME_SUCCESS)
    billing.start()
    lab.run_for("20s")  # type: ignore[attr-defined]


def test_a_kept_answer_is_a_module_with_its_lab_and_its_base_class(here: Path) -> None:
    written(CACHE, reference(CACHE))
    from mybroker import process_queue  # type: ignore[import-not-found]

    text = (here / "mybroker" / "process_queue.py").read_text("utf-8")
    assert text.startswith('"""lab04.process_queue, kept 20') and "class Given:" in text
    assert process_queue.MyProcessQueue().max_span() == 0


def test_a_kept_file_is_replaced_only_when_asked_and_then_kept_beside(here: Path) -> None:
    written(CACHE, reference(CACHE))
    with pytest.raises(AskedWrongly, match="there already"):
        written(CACHE, reference(CACHE))
    written(CACHE, reference(CACHE), again=True)
    assert sorted(path.name for path in (here / "mybroker").glob("process*")) == [
        "process_queue-1.py",
        "process_queue.py",
    ]


def test_an_answer_that_remembers_in_another_cell_is_not_kept() -> None:
    names = names_after(
        CACHE, "SEEN = []\nLIMIT = 3\nclass MyProcessQueue:\n    def put(self):\n        SEEN.append(LIMIT)\n"
    )
    with pytest.raises(AskedWrongly, match="uses SEEN, list of another cell"):
        source_of(CACHE, "MyProcessQueue", names)
    names["SEEN"] = ()
    assert "LIMIT = 3" in source_of(CACHE, "MyProcessQueue", names)


def test_a_local_name_is_not_taken_for_a_name_of_the_notebook() -> None:
    names = names_after(
        CACHE, "messages = [1]\nclass MyProcessQueue:\n    def put(self, messages):\n        return messages\n"
    )
    assert "[1]" not in source_of(CACHE, "MyProcessQueue", names)


def test_the_missing_parts_are_filled_with_mqlabs_own_and_say_so(here: Path) -> None:
    written(CACHE, reference(CACHE))
    mybroker.fill(CACHE)
    folder = here / "mybroker"
    assert is_filled(folder / "sticky.py") and not is_filled(folder / "process_queue.py")
    assert [(row.part, row.whose) for row in mybroker.table(here)] == [
        ("strategy", "mqlab's"),
        ("sticky", "mqlab's"),
        ("process_queue", "yours"),
    ]
    written("lab03.sticky", reference("lab03.sticky"))  # takes the place of what was filled in
    assert not is_filled(folder / "sticky.py")


def test_a_filled_broker_has_pulls_groups_and_retries_for_its_handlers(here: Path) -> None:
    mybroker.fill()
    parts = mybroker.parts(handlers=rocketmq_shape.HANDLERS)
    assert [kind.__name__ for kind in (parts.pulls, parts.groups, parts.retries)] == [
        "RightPulls",
        "RightGroups",
        "RightRetries",
    ]
    assert parts.store is None and len(play(orders, mine=True).deliveries("billing", absences=False)) == 6


def test_filling_names_what_is_yours_what_was_filled_in_and_what_needs_no_file(here: Path) -> None:
    written(CACHE, reference(CACHE))
    assert dict(mybroker.fill("lab03.sticky").facts) == {
        "yours": "process_queue",
        "filled in": "strategy",
        "needs no file": "sticky, store, pulls, groups, retries, handlers: mqlab's own runs",
    }
    expected = ("strategy, sticky, pulls, groups, retries", "store, handlers: mqlab's own runs")
    for _ in range(2):  # the second call finds everything and says the same
        facts = dict(mybroker.fill().facts)
        assert (facts["filled in"], facts["needs no file"]) == expected


def test_a_world_runs_on_the_kept_parts(here: Path) -> None:
    with pytest.raises(UsageError, match="no part in mybroker"):
        play(orders, mine=True)
    written(CACHE, reference(CACHE))
    mybroker.fill()
    lab = play(orders, mine=True)
    assert len(lab.deliveries("billing", absences=False)) == 6
    assert lab.parts.process_queue.__module__ == "mybroker.process_queue"


def test_the_store_and_the_pulls_of_lab_16_are_kept_and_carry_a_day(here: Path) -> None:
    written("lab16.store", reference("lab16.store"))
    written("lab16.pulls", reference("lab16.pulls"))
    assert [(row.part, row.whose) for row in mybroker.table(here)] == [("store", "yours"), ("pulls", "yours")]
    lab = play(orders, mine=True)
    assert len(lab.deliveries("billing", absences=False)) == 6
    assert lab.parts.store.__module__ == "mybroker.store" and lab.parts.pulls.__module__ == "mybroker.pulls"
    assert len(list(lab.store().messages("orders"))) == 6  # the inspector reads what it has written


class Starter:
    def put(self, topic: str, queue_id: int, unit: bytes) -> None: ...


class Begun:
    def put(self, topic: str, queue_id: int, unit: bytes) -> tuple[int, int]:
        return 0, 0


def test_a_part_of_the_notebook_takes_its_place_once_it_is_begun(here: Path) -> None:
    assert mybroker.parts(store=Starter).names == []
    assert mybroker.parts(store=Begun).store is Begun
    written(CACHE, reference(CACHE))
    assert mybroker.parts(store=Begun).names == ["process_queue", "store"]
    assert mybroker.parts(store=Starter).names == ["process_queue"]
    with pytest.raises(AskedWrongly, match="there is no part 'stores'"):
        mybroker.parts(stores=Begun)


def test_a_check_that_passes_offers_to_keep(here: Path) -> None:
    said = Passed.of(Said("good", "passes"), CACHE, reference(CACHE))
    assert "mybroker/process_queue.py" in str(said._kept().html())
    assert "there already" in str(said._kept().html())


def test_a_table_of_functions_is_kept_with_them() -> None:
    cell = "SENT = 0\ndef send(broker, request):\n    return SENT, {}, None\nHANDLERS = {310: send, 11: send}\n"
    names = names_after(CACHE, cell)
    kept: dict[str, object] = {}
    exec(source_of("lab16.handlers", "HANDLERS", names), kept)
    table = kept["HANDLERS"]
    assert isinstance(table, dict) and list(table) == [310, 11] and table[310](None, None) == (0, {}, None)
