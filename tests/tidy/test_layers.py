"""Imports run one way: down the floors, and from wing to wing as listed; each exception stands with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.sources import PACKAGE, WINGS, Import, Module, assert_none, imports, modules, parse, room_of

# A wing may import these others; ground files at the top of mqlab serve all of them.
MAY_USE = {
    "rocketmq": set(),
    "lab": {"rocketmq"},
    "cluster": {"rocketmq", "lab"},
    "data": {"rocketmq", "lab", "cluster"},
    "course": {"rocketmq", "lab", "cluster", "data"},
    "cli": {"rocketmq", "lab", "cluster", "data", "course"},
}
assert set(MAY_USE) == {*WINGS, "cli"}

# Bottom up. Rooms of one floor never import each other, except where the floor is one of those TOGETHER.
TOGETHER, APART = False, True
FLOORS = [
    (
        TOGETHER,
        {"browser", "counts", "errors", "durations", "extras", "lazy_names", "notebook", "scales", "whole_files"},
    ),
    (
        TOGETHER,
        {
            "rocketmq.ports",
            "rocketmq.promises",
            "rocketmq.settings",
            "rocketmq.signals",
            "rocketmq.state_table",
            "rocketmq.stats_item",
        },
    ),
    (TOGETHER, {"rocketmq", "rocketmq.wire", "rocketmq.filter"}),
    (APART, {"rocketmq.answers", "rocketmq.machine"}),
    (APART, {"rocketmq.store", "rocketmq.remoting"}),
    (APART, {"rocketmq.broker", "rocketmq.client", "rocketmq.nameserver"}),
    (APART, {"rocketmq.admin"}),
    (APART, {"lab.runtime"}),
    (APART, {"cluster.runtime"}),
    (APART, {"cluster.grpc"}),
    (APART, {"lab.views"}),
    (APART, {"lab"}),
    (APART, {"lab.inspector", "lab.parts", "data.arrow"}),
    (APART, {"lab.world", "cluster.serving", "cluster.connected"}),
    (APART, {"lab.simulation", "data.traffic", "data.spark"}),
    (APART, {"cluster", "cluster.testing", "data"}),
    (APART, {"course.widgets"}),
    (
        TOGETHER,
        {
            "course.material",
            "course.teach",
            "course.kit",
            "course.cases",
            "course.given",
            "course.mybroker",
            "course.words",
        },
    ),
    (APART, {"course"}),
    (APART, {"course.grading"}),
    (APART, {"course.site"}),
    (TOGETHER, {"cli"}),
]
FLOOR = {room: height for height, (_, rooms) in enumerate(FLOORS) for room in rooms}

# The code of nodes meets the outside through its ports alone: not even the files and the clock of this machine.
NODES = {f"rocketmq.{room}" for room in ("wire", "filter", "remoting", "store", "broker", "client", "nameserver")}
MACHINE = "rocketmq.machine"
# modules that import the machine all the same: why
DOORS = {
    "mqlab.rocketmq.store.standalone": "MessageStore.open(): a store that no broker drives has real files",
    "mqlab.rocketmq.store.reading.store_reader": "a store is read from the disk unless other files are given",
}

# Drivers know nothing of nodes, and pictures are drawn from values: of RocketMQ's rooms they use these alone.
USES_OF_ROCKETMQ = {
    "lab.runtime": {"rocketmq.ports", "rocketmq.promises", "rocketmq.machine", "rocketmq.wire"},
    "cluster.runtime": {"rocketmq.ports", "rocketmq.promises"},
    "lab.views": {"rocketmq.ports", "rocketmq.wire", "rocketmq.filter"},
}

# arrow and spark read stores through the reading half alone, so that a Spark worker starts fast
READS_STORES = ("mqlab.rocketmq.wire", "mqlab.rocketmq.ports", "mqlab.rocketmq.store.reading", "mqlab.data")
# these parts of spark do more: a worker imports the first two only when a read or a write needs them, the others never
BEYOND_STORES = (
    "mqlab.data.spark.live",
    "mqlab.data.spark.store_sink",
    "mqlab.data.spark.report",
    "mqlab.data.spark.pipeline.biographies",
)


def climbs(module: Module, found: Import) -> str | None:
    """Why this import is not allowed from here by its direction; None if it is."""
    if found.target.split(".")[0] != "mqlab" or module.room == "":  # mqlab/__init__.py names what notebooks need
        return None
    target = room_of(found.target)
    if target in (module.room, ""):  # "import mqlab" alone costs nothing
        return None
    if target not in FLOOR:
        return f"'{found.target}' is in no floor of this test"
    wing = target.partition(".")[0]
    if wing in MAY_USE and wing != module.wing and wing not in MAY_USE.get(module.wing, set()):
        return f"{found.target} is in the wing {wing}, which {module.wing} may not use"
    is_reader = module.room in ("data.arrow", "data.spark") and not module.name.startswith(BEYOND_STORES)
    if is_reader and wing in MAY_USE and not found.target.startswith(READS_STORES):
        return f"{module.room} may only read stores, it imports {found.target}"
    if wing == "rocketmq" and target not in USES_OF_ROCKETMQ.get(module.room, {target}):
        return f"{module.room} may not use {target}"
    if FLOOR[target] > FLOOR[module.room]:
        return f"{found.target} is above {module.room}"
    if FLOOR[target] == FLOOR[module.room] and FLOORS[FLOOR[target]][0] is APART:
        return f"{found.target} is beside {module.room}"
    if module.room in NODES and target == MACHINE and module.name not in DOORS:
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
    used = {module.name for module in modules() for i in imports(module) if room_of(i.target) == MACHINE}
    assert not set(DOORS) - used


def test_the_package_shows_at_most_eight_folders() -> None:
    assert {module.wing for module in modules() if module.path.parent != PACKAGE} == set(MAY_USE)


@pytest.mark.parametrize(
    ("name", "source", "refused"),
    [
        ("mqlab.rocketmq.store.a", "import mqlab.rocketmq.broker.broker", True),
        ("mqlab.rocketmq.store.a", "from mqlab.lab import views", True),
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
