"""The picture of leases says what the journal says: acks in time and late, changes, revivals."""

from __future__ import annotations

from mqlab import Message, play
from mqlab.lab.views.rocketmq5.lease_bars import show_leases
from mqlab.lab.world.lab import Lab


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
