"""Pictures of owners: a grid of moments, a hash ring, and who owned what when."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from mqlab import CONSUME_SUCCESS, Lab, Message, play
from mqlab.errors import UsageError
from mqlab.lab.views.hash_ring import HashRing
from mqlab.lab.views.owners_grid import OwnersGrid, short_names
from mqlab.lab.views.picture import Picture
from mqlab.lab.views.queue_owners import GivenMessage, Ownership, QueueOwners
from mqlab.rocketmq.client.allocate import strategy

GRID = OwnersGrid(
    [
        ("before", {0: "billing-1", 1: "billing-2", 2: None}),
        ("after", {0: "billing-3", 1: "billing-2", 2: "billing-2"}),
    ],
    title="订单 <&>",
)
RING = HashRing([(1 << 30, "a"), (1 << 31, "b"), (3 << 30, "a")], [("0", 5), ("1", (3 << 30) + 1)], title="a ring")
OWNERS = QueueOwners(
    [
        Ownership("orders 2", "billing-1", 0, 5_000),
        Ownership("orders 10", "billing-2", 100, None),
        Ownership("orders 2", "billing-2", 4_000, 9_000),
    ],
    [GivenMessage("orders 2", "billing-1", 7, 1_000, 6_000), GivenMessage("orders 2", "billing-2", 7, 4_500, None)],
    end_ms=10_000,
)


@pytest.mark.parametrize("picture", [GRID, RING, OWNERS], ids=lambda one: type(one).__name__)
def test_it_is_drawn_inside_its_card_with_a_text_twin_and_a_table(picture: Picture) -> None:
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == str(picture) and "the same as text" in bundle["text/html"]
    root = ElementTree.fromstring(picture.svg())
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    for node in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= int(node.get("x", "")) <= width and 0 <= int(node.get("y", "")) <= height
    assert len(picture.table()) > 1 and repr(picture).count("\n") == 0


def test_a_grid_counts_moves_and_who_has_nothing() -> None:
    assert GRID.moved(0) == [] and GRID.moved(1) == [0, 2]
    assert GRID.counts(0) == [1, 1] and GRID.counts(1) == [2, 1]
    idle = OwnersGrid([("now", {0: "a-1"}, ["a-1", "a-2"])])
    assert idle.counts(0) == [1, 0] and "1 0" in str(idle)


def test_short_names_are_numbers_where_endings_are_the_same() -> None:
    assert short_names(["10.0.0.1@app", "10.0.0.2@app"]) == {"10.0.0.1@app": "1", "10.0.0.2@app": "2"}


def test_a_ring_begins_again_behind_its_last_point() -> None:
    assert RING.owned("a") == ["0", "1"] and RING.owned("b") == []
    assert RING.shares() == {"a": 0.75, "b": 0.25}
    with pytest.raises(UsageError, match="without points"):
        HashRing([])


def test_a_ring_of_rocketmqs_strategy_has_its_owners() -> None:
    ids = ["c0", "c1", "c2"]
    ring = HashRing(strategy("CONSISTENT_HASH").ring(ids))
    assert len(ring.points) == 30 and abs(sum(ring.shares().values()) - 1) < 1e-9


def test_owners_in_the_order_of_queue_numbers_and_messages_given_twice() -> None:
    assert OWNERS.lanes() == [("orders 2", "billing-1"), ("orders 2", "billing-2"), ("orders 10", "billing-2")]
    assert OWNERS.twice() == {("orders 2", 7)} and str(OWNERS).count("given to two members") == 2


def group(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    for number in (1, 2, 3, 4):
        consumer = lab.push_consumer("billing", name=f"billing-{number}")
        consumer.subscribe("orders", "*")
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
    lab.run_for("30s")
    lab.producer("shop").send(Message("orders", b"x"))
    lab.handles["billing-1"].shutdown()
    lab.run_for("5s")
    lab.kill("billing-2")
    lab.run_for("5s")


def test_a_lab_shows_who_owned_what_through_a_shutdown_and_a_kill() -> None:
    lab = play(group, seed=1)
    shown = lab.queue_owners("billing")
    ended = {one.member: one.until_ms for one in shown.spans if one.until_ms is not None}
    assert {"billing-1", "billing-2"} <= set(ended)
    open_now = {(one.queue, one.member) for one in shown.spans if one.until_ms is None}
    assert open_now == {
        (f"orders {queue.queue_id}", name)
        for name in ("billing-3", "billing-4")
        for queue in lab.handles[name].message_queues
        if queue.topic == "orders"
    }
    assert len(open_now) == 4 and len(shown.calls) == 1
    late = lab.queue_owners("billing", from_ms=lab.now_ms - 1_000, queues=(0, 1))
    assert {one.queue for one in late.spans} == {"orders 0", "orders 1"} and not late.calls


def test_labels_of_queues_with_nearly_the_same_hash_do_not_lie_on_each_other() -> None:
    crowd = HashRing([(1, "a")], [(str(number), (1 << 30) + number) for number in range(4)])
    texts = re.findall(r'<text[^>]* x="([\d.]+)"[^>]* y="([\d.]+)"[^>]*>\d</text>', crowd.svg())
    assert len(texts) == len(set(texts)) == 4
    assert all(abs(float(x) - float(y)) >= 11 for (x, _), (y, _) in combinations(texts, 2))
