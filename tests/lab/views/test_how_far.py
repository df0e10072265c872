"""How far a group has read, drawn: each message's state and the three places that remember an offset."""

from __future__ import annotations

from mqlab import CONSUME_SUCCESS, Lab, Message, play
from mqlab.lab.views.how_far import BAR_CHARACTERS, HowFar, QueueStanding
from mqlab.rocketmq.wire.message import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


def standing(lab: Lab) -> QueueStanding:
    (one,) = lab.how_far("billing", "orders").standings
    return one


def story(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(8):
        shop.send(Message("orders", b"a book", properties={"takes": "1h" if number == 3 else "1s"}))

    def work(messages: object, context: object) -> str:
        context.sleep(messages[0].properties["takes"])  # type: ignore[attr-defined, index]
        return CONSUME_SUCCESS

    consumer = lab.push_consumer("billing", consume_thread_min=4, consume_thread_max=4)
    consumer.subscribe("orders", "*")
    consumer.on_messages(work)
    consumer.start()
    lab.run_for("4s")


def test_the_three_places_and_the_states_of_a_stuck_queue() -> None:
    lab = play(story, seed=1, client={"enable_trace": False})
    early = standing(lab)
    assert early.running and 3 in early.running and early.at_broker is None and early.in_file is None
    lab.run_for("20s")
    one = standing(lab)
    assert one.finished == frozenset({0, 1, 2, 4, 5, 6, 7}) and one.running == frozenset({3})
    assert (one.in_memory, one.at_broker, one.in_file) == (3, 3, 3)


def test_a_dead_member_runs_nothing_and_remembers_nothing() -> None:
    lab = play(story, seed=1, client={"enable_trace": False})
    lab.run_for("20s")
    lab.kill("billing-1")
    one = standing(lab)
    assert one.running == frozenset() and one.in_memory is None and one.at_broker == 3


def test_what_is_given_again_is_not_finished_any_more() -> None:
    lab = play(story, seed=1, client={"enable_trace": False})
    lab.run_for("20s")
    lab.kill("billing-1")
    lab.start("billing-1")
    lab.run_until("listener.started")
    lab.run_for("200ms")
    assert {4, 5} <= standing(lab).running


def test_one_message_among_thousands_stays_visible() -> None:
    every = frozenset(range(4_000)) - {17}
    picture = HowFar([QueueStanding(QUEUE, 0, 4_000, 4_000, every, frozenset({17}), 17, 17, 0)])
    bar = str(picture).splitlines()[1]
    assert len(bar) == BAR_CHARACTERS and "▤" in bar
    assert "17: in a listener" in picture.svg() and "next is 17" in picture.svg()
    assert picture.table()[0].in_file == 0


def test_an_empty_queue_and_no_queue_at_all() -> None:
    empty = QueueStanding(QUEUE, 0, 0, 0, frozenset(), frozenset(), None, None, None)
    assert "nothing stored" in str(HowFar([empty])) and "in memory: nothing" in HowFar([empty]).svg()
    assert str(HowFar([], title="how far")) == "how far\nno queues"
