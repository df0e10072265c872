"""The picture of leases says what the journal says: acks in time and late, changes, revivals."""

from __future__ import annotations

import re

import pytest

from mqlab import Message, play
from mqlab.lab.views.picture import text_pixels
from mqlab.lab.views.rocketmq5.lease_bars import LeaseBars, show_leases
from mqlab.lab.world.lab import Lab
from mqlab.rocketmq.client.consuming import popped


def four_ends(lab: Lab) -> None:
    """Acknowledged; changed and then acknowledged with the old handle; lost and acknowledged late; still out."""
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(4):
        shop.send(Message("orders", b"x", keys=f"order-{number}"))
    consumer = lab.simple_consumer("billing", await_duration="1s")
    consumer.subscribe("orders")
    consumer.start()
    first, second, third = consumer.receive(3, "5s")
    consumer.ack(first)
    old_handle = second.properties["POP_CK"]
    consumer.change_invisible_duration(second, "20s")
    second.properties["POP_CK"] = old_handle
    consumer.ack(second)
    lab.run_for("9s")
    consumer.ack(third)
    consumer.receive(1, "30s")
    lab.run_for("1s")


def test_each_end_of_a_lease_is_drawn_and_told() -> None:
    lab = play(four_ends, seed=7, client={"enable_trace": False})
    picture = show_leases(lab, "billing", title="four ends")
    ends = {message.name: [span.words for span in message.spans] for message in picture.messages}
    assert ends["order-0"] == ["acknowledged"]
    assert ends["order-1"] == ["changed", "runs"] and len(picture.messages[1].late_acks) == 1
    assert ends["order-2"][0] == "ended" and len(picture.messages[2].revived) == 1
    assert len(picture.messages[2].late_acks) == 1
    assert sum(map(len, ends.values())) == len(picture.table().rows)
    assert "late ack" in picture.text() and picture.svg() and "four ends" in picture.alt
    assert str(show_leases(lab, "nobody")) == "nothing was popped"


def test_a_popped_message_is_noted_in_its_own_queue_and_so_is_a_revived_one() -> None:
    lab = play(four_ends, seed=7, client={"enable_trace": False})
    places = [(row["message_queue"].topic, row["message_queue"].queue_id) for row in lab.deliveries("billing")]
    assert set(places) == {("orders", 0), ("%RETRY%billing_orders", 0)}
    assert "NOT_PULLED" not in [row["status"] for row in lab.deliveries("billing") if row["queue_offset"] < 3]


def test_orderly_pops_are_no_leases_of_single_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = popped.command.request
    monkeypatch.setattr(
        popped.command,
        "request",
        lambda code, *body, **fields: ask(code, *body, **fields | ({"order": True} if "order" in fields else {})),
    )
    lab = play(takes_two, seed=7, client={"enable_trace": False})
    revive_queues = [values["revive_queue"] for _, values in lab.journal.changes("message.popped")]
    assert revive_queues == [999] and len(lab.journal.changes("message.acked")) == 1
    assert not lab.leases("billing").rows and not show_leases(lab, "billing").messages
    monkeypatch.undo()
    usual = play(takes_two, seed=7, client={"enable_trace": False})
    assert len(usual.leases("billing").rows) == 1 and len(show_leases(usual, "billing").messages) == 2


def takes_two(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for _ in range(2):
        shop.send(Message("orders", b"x"))
    consumer = lab.simple_consumer("billing", await_duration="1s", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")
    consumer.start()
    consumer.ack(consumer.receive(2, "30s")[0])
    lab.run_for("1s")


def test_the_legend_is_inside_the_picture() -> None:
    drawn = LeaseBars([], start_ms=0, end_ms=1_000).svg()
    (width,) = re.findall(r'viewBox="0 0 (\d+) ', drawn)
    (begins,) = re.findall(r'<text x="([\d.]+)"[^>]*>the lease ends<', drawn)
    assert float(begins) + text_pixels("the lease ends") <= float(width)
