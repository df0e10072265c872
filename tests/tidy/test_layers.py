"""Imports run one way, downwards; the code of nodes imports no driver; each exception is listed with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.sources import Import, Module, assert_none, imports, modules, parse

# Bottom up. Rooms of one floor never import each other, except those of the ground floor and of the bytes' floor.
TOGETHER, APART = False, True
FLOORS = [
    (
        TOGETHER,
        {
            "errors",
            "promises",
            "ports",
            "durations",
            "lazy_names",
            "notebook",
            "scales",
            "signals",
            "state_table",
            "stats_item",
            "whole_files",
        },
    ),
    (TOGETHER, {"wire", "filter"}),
    (APART, {"runtime"}),
    (APART, {"views"}),
    (APART, {"inspector"}),
    (APART, {"store", "remoting"}),
    (APART, {"broker", "client", "nameserver"}),
    (APART, {"admin", "arrow"}),
    (APART, {"lab", "serving", "connected"}),
    (APART, {"traffic", "spark", "simulation"}),
    (APART, {"widgets"}),
    (APART, {"teach"}),
    (APART, {"grading"}),
    (TOGETHER, {"cli"}),
]
FLOOR = {room: height for height, (_, rooms) in enumerate(FLOORS) for room in rooms}

# The code of nodes meets the outside through its ports alone: it imports neither drivers nor pictures.
NODES = {"wire", "filter", "remoting", "store", "broker", "client", "nameserver"}
DRIVERS = {"runtime", "views"}
# (module, what it imports all the same): why
DOORS = {
    (
        "mqlab.rocketmq.store.standalone",
        "mqlab.lab.runtime",
    ): "MessageStore.open(): a store that no broker drives has real files",
}

# arrow and spark read stores through the reading half alone, so that a Spark worker starts fast
STORE_READERS = {"errors", "durations", "notebook", "scales", "whole_files", "wire", "inspector", "arrow", "spark"}
# these parts of spark do more: a worker imports the first two only when a read or a write needs them, the others never
BEYOND_STORES = (
    "mqlab.data.spark.live",
    "mqlab.data.spark.store_sink",
    "mqlab.data.spark.report",
    "mqlab.data.spark.pipeline.biographies",
)


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
    is_reader = module.room in ("arrow", "spark") and not module.name.startswith(BEYOND_STORES)
    if is_reader and target not in STORE_READERS:
        return f"{module.room} may only read stores, it imports {found.target}"
    if FLOOR[target] > FLOOR[module.room]:
        return f"{found.target} is above {module.room}"
    if FLOOR[target] == FLOOR[module.room] and FLOORS[FLOOR[target]][0] is APART:
        return f"{found.target} is beside {module.room}"
    if module.room in NODES and target in DRIVERS and (module.name, f"mqlab.{target}") not in DOORS:
        return f"{module.room} is code of nodes, {found.target} a driver: it comes through a port (or list it in DOORS)"
    return None


def objections(module: Module) -> list[str]:
    reasons = ((imported.line, climbs(module, imported)) for imported in imports(module))
    return [f"{module.at(line)}: {why}" for line, why in reasons if why]


def test_every_room_stands_on_a_floor() -> None:
    assert {module.room for module in modules()} - {""} <= set(FLOOR)


def test_imports_run_one_way() -> None:
    assert_none(line for module in modules() for line in objections(module))


def test_every_listed_door_is_still_used() -> None:
    used = {(module.name, ".".join(i.target.split(".")[:2])) for module in modules() for i in imports(module)}
    assert not set(DOORS) - used


@pytest.mark.parametrize(
    ("name", "source", "refused"),
    [
        ("mqlab.rocketmq.store.a", "import mqlab.rocketmq.broker.broker", True),
        ("mqlab.rocketmq.store.a", "from mqlab import views", True),
        ("mqlab.rocketmq.store.a", "from mqlab.rocketmq.remoting import endpoint", True),
        ("mqlab.rocketmq.broker.a", "from mqlab.rocketmq.client.producer import Producer", True),
        ("mqlab.rocketmq.broker.a", "from ..client import producer", True),
        ("mqlab.rocketmq.broker.a", "def f():\n    import mqlab.lab.views.table", True),
        ("mqlab.rocketmq.broker.a", "if TYPE_CHECKING:\n    from mqlab.lab.views.table import Table", True),
        ("mqlab.lab.runtime.a", "from mqlab.rocketmq.broker.broker import Broker", True),
        ("mqlab.lab.world.a", "from mqlab.lab.views.table import Table", False),
        ("mqlab.data.spark.a", "from mqlab.lab.world.lab import Lab", True),
        ("mqlab.data.spark.a", "from mqlab.cluster.connected import connect", True),
        ("mqlab.data.spark.live.a", "from mqlab.cluster.connected import connect", False),
        ("mqlab.rocketmq.wire.a", "import mqlab.unheard_of", True),
        ("mqlab.rocketmq.broker.a", "from mqlab.rocketmq.store.message_store import MessageStore", False),
        ("mqlab.rocketmq.filter.a", "from mqlab.rocketmq.wire import record", False),
        ("mqlab.data.spark.a", "from mqlab.data.arrow import columns\nimport pyspark", False),
    ],
)
def test_the_rule_sees_what_it_should(name: str, source: str, refused: bool) -> None:
    assert bool(objections(parse(name, Path(__file__), source))) is refused
