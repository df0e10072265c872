"""Imports run one way. What is loaded late, from above, is listed one by one with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.sources import Import, Module, assert_none, imports, modules, parse

# Bottom up. In a floor marked APART the rooms never import each other.
TOGETHER, APART = False, True
FLOORS = [
    (TOGETHER, {"errors", "promises", "ports", "durations", "notebook"}),
    (TOGETHER, {"wire", "filter"}),
    (APART, {"store", "remoting"}),
    (APART, {"broker", "client", "nameserver"}),
    (TOGETHER, {"runtime", "admin"}),
    (APART, {"views", "arrow"}),
    (APART, {"traffic", "spark"}),
    (APART, {"teach", "widgets"}),
    (APART, {"grading"}),
    (TOGETHER, {"cli"}),
]
FLOOR = {room: height for height, (_, rooms) in enumerate(FLOORS) for room in rooms}

# (module, what it loads from above, only when called): why
LATE = {
    ("mqlab.store.inspector", "mqlab.runtime.read_only_files"): "StoreInspector(directory) opens real files by itself",
    ("mqlab.store.inspector", "mqlab.views.hexdump"): "StoreInspector.hexdump(physical_offset)",
    ("mqlab.store.inspector", "mqlab.views.table"): "StoreInspector.tree()",
    ("mqlab.store.message_listing", "mqlab.views.table"): "StoreInspector.messages() at the end of a cell",
    ("mqlab.store.queue_reader", "mqlab.views.hexdump"): "StoreInspector.queue(topic, id).hexdump(offset)",
    ("mqlab.store.queue_reader", "mqlab.views.table"): "StoreInspector.queue(topic, id).table()",
    ("mqlab.store.index_reader", "mqlab.views.hexdump"): "StoreInspector.index.hexdump(name, entry)",
    ("mqlab.store.message_store", "mqlab.runtime.standalone"): "MessageStore.open() brings real files and a clock",
    ("mqlab.admin.answers", "mqlab.views"): "an answer of lab.admin is shown as a Table",
    ("mqlab.runtime.looking", "mqlab.views"): "deliveries, progress and the like are shown as a Table",
    ("mqlab.runtime.looking", "mqlab.views.moments"): "lab.timeline() and lab.space_time()",
    ("mqlab.runtime.looking", "mqlab.views.timeline"): "lab.timeline()",
    ("mqlab.runtime.looking", "mqlab.views.offset_strip"): "lab.offset_strip(group)",
    ("mqlab.runtime.looking", "mqlab.views.diagram"): "lab.diagram()",
    ("mqlab.runtime.looking", "mqlab.views.verify"): "lab.verify(group)",
}

# arrow and spark read stores through the record format alone, so that a Spark worker starts fast
STORE_READERS = {"errors", "durations", "notebook", "wire", "store", "arrow", "spark"}


def climbs(module: Module, found: Import) -> str | None:
    """Why this import is not allowed from here by its direction; None if it is."""
    parts = found.target.split(".")
    if parts[0] != "mqlab" or module.room == "":  # mqlab/__init__.py names what notebooks need
        return None
    target = parts[1] if len(parts) > 1 else ""
    if target in (module.room, ""):  # "import mqlab" alone costs nothing
        return None
    if target not in FLOOR:
        return f"'{found.target}' is in no floor of this test"
    if module.room in ("arrow", "spark") and target not in STORE_READERS:
        return f"{module.room} may only read stores, it imports {found.target}"
    if FLOOR[target] > FLOOR[module.room]:
        return f"{found.target} is above {module.room}"
    if FLOOR[target] == FLOOR[module.room] and FLOORS[FLOOR[target]][0] is APART:
        return f"{found.target} is beside {module.room}"
    return None


def objections(module: Module) -> list[str]:
    found = []
    for imported in imports(module):
        why = climbs(module, imported)
        if why and not (imported.lazy and listed(module.name, imported.target)):
            late = " (inside a function: list it in LATE)" if imported.lazy else ""
            found.append(f"{module.at(imported.line)}: {why}{late}")
    return found


def listed(module: str, target: str) -> bool:
    return (module, target) in LATE


def test_every_room_stands_on_a_floor() -> None:
    assert {module.room for module in modules()} - {""} <= set(FLOOR)


def test_imports_run_one_way() -> None:
    assert_none(line for module in modules() for line in objections(module))


def test_what_is_listed_as_late_is_still_there() -> None:
    there = {(module.name, found.target) for module in modules() for found in imports(module) if found.lazy}
    assert not set(LATE) - there


@pytest.mark.parametrize(
    ("name", "source", "refused"),
    [
        ("mqlab.store.a", "import mqlab.broker.broker", True),
        ("mqlab.store.a", "from mqlab import views", True),
        ("mqlab.store.a", "from mqlab.remoting import endpoint", True),
        ("mqlab.broker.a", "from mqlab.client.producer import Producer", True),
        ("mqlab.broker.a", "from ..client import producer", True),
        ("mqlab.broker.a", "def f():\n    import mqlab.views.table", True),
        ("mqlab.broker.a", "if TYPE_CHECKING:\n    from mqlab.views.table import Table", True),
        ("mqlab.spark.a", "from mqlab.runtime.lab import Lab", True),
        ("mqlab.wire.a", "import mqlab.unheard_of", True),
        ("mqlab.broker.a", "from mqlab.store.message_store import MessageStore", False),
        ("mqlab.filter.a", "from mqlab.wire import record", False),
        ("mqlab.spark.a", "from mqlab.arrow import columns\nimport pyspark", False),
    ],
)
def test_the_rule_sees_what_it_should(name: str, source: str, refused: bool) -> None:
    assert bool(objections(parse(name, Path(__file__), source))) is refused
