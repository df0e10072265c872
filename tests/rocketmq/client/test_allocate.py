"""The six allocation strategies: every vector of the release.

Mirrors: AllocateMessageQueueStrategy and its classes.
"""

from __future__ import annotations

import pytest

from mqlab.errors import UsageError
from mqlab.rocketmq.client.allocate import ConsistentHash, md5_u32, strategy
from mqlab.rocketmq.wire.message import MessageQueue


def queues(count: int, broker: str = "broker-a", topic: str = "TopicTest") -> list[MessageQueue]:
    return [MessageQueue(topic, broker, number) for number in range(count)]


def members(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def shares(name: str, of: list[MessageQueue], ids: list[str], **options: object) -> str:
    """``c0:0,1 c1:-``: what each member gets."""
    chosen = strategy(name, **options)
    parts = []
    for member in ids:
        mine = chosen.allocate("g", member, of, ids)
        parts.append(f"{member}:" + (",".join(str(queue.queue_id) for queue in mine) or "-"))
    return " ".join(parts)


TABLE = [
    (8, 3, "c0:0,1,2 c1:3,4,5 c2:6,7", "c0:0,3,6 c1:1,4,7 c2:2,5"),
    (10, 4, "c0:0,1,2 c1:3,4,5 c2:6,7 c3:8,9", "c0:0,4,8 c1:1,5,9 c2:2,6 c3:3,7"),
    (3, 5, "c0:0 c1:1 c2:2 c3:- c4:-", "c0:0 c1:1 c2:2 c3:- c4:-"),
    (4, 2, "c0:0,1 c1:2,3", "c0:0,2 c1:1,3"),
    (
        16,
        5,
        "c0:0,1,2,3 c1:4,5,6 c2:7,8,9 c3:10,11,12 c4:13,14,15",
        "c0:0,5,10,15 c1:1,6,11 c2:2,7,12 c3:3,8,13 c4:4,9,14",
    ),
    (7, 3, "c0:0,1,2 c1:3,4 c2:5,6", "c0:0,3,6 c1:1,4 c2:2,5"),
    (6, 4, "c0:0,1 c1:2,3 c2:4 c3:5", "c0:0,4 c1:1,5 c2:2 c3:3"),
    (8, 2, "c0:0,1,2,3 c1:4,5,6,7", "c0:0,2,4,6 c1:1,3,5,7"),
    (1, 2, "c0:0 c1:-", "c0:0 c1:-"),
    (5, 1, "c0:0,1,2,3,4", "c0:0,1,2,3,4"),
]


@pytest.mark.parametrize(("queue_count", "member_count", "avg", "circle"), TABLE)
def test_avg_and_circle_table(queue_count: int, member_count: int, avg: str, circle: str) -> None:
    assert shares("AVG", queues(queue_count), members(member_count)) == avg
    assert shares("AVG_BY_CIRCLE", queues(queue_count), members(member_count)) == circle


def test_two_brokers() -> None:
    both = queues(4) + queues(4, "broker-b")
    avg = [strategy("AVG").allocate("g", member, both, members(3)) for member in members(3)]
    assert avg == [both[0:3], both[3:6], both[6:8]]
    circle = [strategy("AVG_BY_CIRCLE").allocate("g", member, both, members(3)) for member in members(3)]
    assert circle == [[both[0], both[3], both[6]], [both[1], both[4], both[7]], [both[2], both[5]]]


RING = [
    (8, 1, "c0:0,1,2,3,4,5,6,7"),
    (8, 2, "c0:1,6 c1:0,2,3,4,5,7"),
    (8, 3, "c0:1 c1:0,3,4,5,7 c2:2,6"),
    (8, 4, "c0:1 c1:0,4,5,7 c2:6 c3:2,3"),
    (8, 5, "c0:1 c1:0,4,7 c2:6 c3:2,3 c4:5"),
    (10, 2, "c0:1,6,9 c1:0,2,3,4,5,7,8"),
    (10, 3, "c0:1,9 c1:0,3,4,5,7,8 c2:2,6"),
    (10, 4, "c0:1,9 c1:0,4,5,7,8 c2:6 c3:2,3"),
    (16, 2, "c0:1,6,9,10,12,15 c1:0,2,3,4,5,7,8,11,13,14"),
    (16, 3, "c0:1,9,12 c1:0,3,4,5,7,8 c2:2,6,10,11,13,14,15"),
    (16, 4, "c0:1,9,12 c1:0,4,5,7,8 c2:6,10,11,13,14,15 c3:2,3"),
    (16, 5, "c0:1,9,12 c1:0,4,7,8 c2:6,10,13,14 c3:2,3 c4:5,11,15"),
]


@pytest.mark.parametrize(("queue_count", "member_count", "expected"), RING)
def test_consistent_hash_table(queue_count: int, member_count: int, expected: str) -> None:
    assert shares("CONSISTENT_HASH", queues(queue_count), members(member_count)) == expected


@pytest.mark.parametrize(
    ("virtual_nodes", "first", "second"),
    [(10, [0, 1, 3, 5, 6], [2, 4, 7]), (1, [0, 3, 5, 6], [1, 2, 4, 7]), (100, [0, 1, 4, 7], [2, 3, 5, 6]), (0, [], [])],
)
def test_consistent_hash_with_other_virtual_nodes(virtual_nodes: int, first: list[int], second: list[int]) -> None:
    ids = ["192.168.3.10@DEFAULT", "192.168.3.11@DEFAULT"]
    ring = ConsistentHash(virtual_nodes)
    got = [[q.queue_id for q in ring.allocate("g", member, queues(8), ids)] for member in ids]
    assert got == [first, second]


def test_consistent_hash_points() -> None:
    assert [md5_u32(str(queue)) for queue in queues(4)] == [1987926524, 4291349817, 853506239, 3652785994]
    assert [md5_u32(f"c0-{k}") for k in range(3)] == [2316876094, 4137623405, 1646399601]


def test_owner_changes_of_consistent_hash_are_only_what_must_move() -> None:
    def owners(ids: list[str]) -> dict[int, str]:
        ring = ConsistentHash()
        return {queue.queue_id: member for member in ids for queue in ring.allocate("g", member, queues(8), ids)}

    before = owners(["c0", "c1", "c2"])
    joined = owners(["c0", "c1", "c2", "c3"])
    assert {q: (before[q], joined[q]) for q in before if before[q] != joined[q]} == {3: ("c1", "c3"), 2: ("c2", "c3")}
    left = owners(["c0", "c2"])
    assert {q for q in before if before[q] != left[q]} == {q for q in before if before[q] == "c1"}


ROOMS = queues(4, "room1@broker-a") + queues(4, "room2@broker-b") + queues(2, "broker-c")


@pytest.mark.parametrize(
    ("rooms", "count", "expected"),
    [
        (["room1"], 1, ["R0R1R2R3"]),
        (["room1"], 3, ["R0R3", "R1", "R2"]),
        (["room1"], 5, ["R0", "R1", "R2", "R3", ""]),
        (["room1", "room2"], 3, ["R0R1S2", "R2R3S3", "S0S1"]),
        (["room1", "room2"], 5, ["R0S1", "R1S2", "R2S3", "R3", "S0"]),
        (["room9"], 2, ["", ""]),
    ],
)
def test_machine_room(rooms: list[str], count: int, expected: list[str]) -> None:
    chosen = strategy("MACHINE_ROOM", consumeridcs=rooms)
    letter = {"room1@broker-a": "R", "room2@broker-b": "S"}
    got = [
        "".join(f"{letter[q.broker_name]}{q.queue_id}" for q in chosen.allocate("g", member, ROOMS, members(count)))
        for member in members(count)
    ]
    assert got == expected


class BeforeDash:
    def broker_deploy_in(self, queue: MessageQueue) -> str:
        return queue.broker_name.split("-")[0]

    def consumer_deploy_in(self, client_id: str) -> str:
        return client_id.split("-")[0]


NEARBY = queues(4, "A-b1") + queues(4, "B-b1") + queues(5, "C-b1")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["A-c0", "A-c1", "B-c0"], ["A0A1C0C1", "A2A3C2C3", "B0B1B2B3C4"]),
        (["A-c0", "A-c1", "B-c0", "D-c0"], ["A0A1C0C1", "A2A3C2", "B0B1B2B3C3", "C4"]),
        (["A-c0"], ["A0A1A2A3B0B1B2B3C0C1C2C3C4"]),
        (["D-c0", "D-c1"], ["A0A1B0B1C0C1C2", "A2A3B2B3C3C4"]),
    ],
)
def test_machine_room_nearby(ids: list[str], expected: list[str]) -> None:
    chosen = strategy("MACHINE_ROOM_NEARBY", inner="AVG", machine_room_resolver=BeforeDash())
    assert chosen.name == "MACHINE_ROOM_NEARBY-AVG"
    got = ["".join(f"{q.broker_name[0]}{q.queue_id}" for q in chosen.allocate("g", m, NEARBY, ids)) for m in ids]
    assert got == expected


def test_machine_room_nearby_needs_rooms_and_its_parts() -> None:
    class Nowhere(BeforeDash):
        def consumer_deploy_in(self, client_id: str) -> str:
            return ""

    with pytest.raises(UsageError, match="no machine room for client A-c0"):
        strategy("MACHINE_ROOM_NEARBY", inner="AVG", machine_room_resolver=Nowhere()).allocate(
            "g", "A-c0", NEARBY, ["A-c0"]
        )
    with pytest.raises(UsageError, match="needs an inner strategy"):
        strategy("MACHINE_ROOM_NEARBY", inner=None, machine_room_resolver=BeforeDash())


def test_config_gives_its_list_for_every_topic() -> None:
    fixed = queues(2)
    assert strategy("CONFIG", message_queue_list=fixed).allocate("g", "", [], []) == fixed


@pytest.mark.parametrize("name", ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"])
def test_what_a_strategy_refuses(name: str) -> None:
    chosen = strategy(name)
    for arguments in [("", queues(1), ["c0"]), ("c0", [], ["c0"]), ("c0", queues(1), [])]:
        with pytest.raises(UsageError, match="is empty"):
            chosen.allocate("g", *arguments)
    assert chosen.allocate("g", "stranger", queues(1), ["c0"]) == []


def test_a_duplicated_client_id_makes_avg_lose_queues() -> None:
    doubled = ["c0", "c0", "c1"]
    chosen = strategy("AVG")
    assert [q.queue_id for q in chosen.allocate("g", "c0", queues(8), doubled)] == [0, 1, 2]
    assert [q.queue_id for q in chosen.allocate("g", "c1", queues(8), doubled)] == [6, 7]


def test_unknown_strategies_and_options_are_named() -> None:
    with pytest.raises(UsageError, match="one of AVG, AVG_BY_CIRCLE"):
        strategy("AVERAGE")
    with pytest.raises(UsageError, match="virtual_node_cnt"):
        strategy("CONSISTENT_HASH", virtual_node_cnt=-1)
    with pytest.raises(UsageError, match=r"cannot be made(.|\n)*no options"):
        strategy("AVG", rooms=3)
    with pytest.raises(UsageError, match=r'(.|\n)*strategy\("MACHINE_ROOM", consumeridcs=\.\.\.\)'):
        strategy("MACHINE_ROOM")
    with pytest.raises(UsageError, match="a list of rooms, not 'room1'"):
        strategy("MACHINE_ROOM", consumeridcs="room1")


def test_queues_sort_as_rocketmq_sorts_them() -> None:
    names = ["broker-a", "broker-2", "broker-10"]
    assert [q.broker_name for q in sorted(MessageQueue("T", name, 0) for name in names)] == [
        "broker-10",
        "broker-2",
        "broker-a",
    ]
    assert [q.queue_id for q in sorted(MessageQueue("T", "b", number) for number in (10, 2))] == [2, 10]
