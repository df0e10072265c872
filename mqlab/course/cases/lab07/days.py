"""Days of failure for two of lab 07's exercises, each made from a seed.

    rewrite   orders that fail, each asking for levels of its own   ─▶ the units that the broker wrote for them
    schedule  one order that always fails, any table of levels      ─▶ when the broker parked it, and how long

Days with a bank are in bank, that of the dead letters in redrive.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any

from mqlab.course.cases.story_parts import one_queue
from mqlab.course.teach.exercises import Call
from mqlab.lab.world.lab import Lab, play
from mqlab.rocketmq.client.statuses import RECONSUME_LATER
from mqlab.rocketmq.wire import names
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.message import Message, MessageExt

GROUP = "billing"
RETRY, DEAD = names.retry_topic(GROUP), names.dlq_topic(GROUP)
RETRY_TOPIC_READ_AFTER = "25s"  # a new group reads its retry topic from its second rebalance on
QUICK_LEVELS = " ".join(["1s"] * 18)
DEFAULT_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
BODIES = ("книга", "三本书", "🎁🎁", "a lamp", "чай с лимоном")


def told(story: Callable[[Lab], None], seed: int, **broker: Any) -> Lab:
    """Play a story without message trace."""
    return play(story, seed=seed, broker=broker, client={"enable_trace": False})


def start_billing(lab: Lab, listener: Any, *, name: str = "billing-1", orderly: bool = False, **settings: Any) -> Any:
    """A started consumer of billing, played until it reads its retry topic."""
    consumer = lab.push_consumer(GROUP, name=name, **settings)
    consumer.subscribe("orders", "*")
    (consumer.on_messages_orderly if orderly else consumer.on_messages)(listener)
    consumer.start()
    lab.run_for(RETRY_TOPIC_READ_AFTER)
    return consumer


def sent_back(seed: int, retries: int | None = None) -> list[Call]:
    """Orders that always fail; at each try the listener asks for another level, some for none.

    One call for each message given back: what is right is the unit that the broker wrote. ``retries``: 1 to 3 if not
    given.
    """
    rng = random.Random(f"lab07.rewrite {seed}")
    most = rng.choice((1, 2, 3)) if retries is None else retries

    def listener(messages: Sequence[MessageExt], context: Any) -> str:
        asked = messages[0].properties["asks"].split()
        context.delay_level_when_next_consume = int(asked[messages[0].reconsume_times])
        return RECONSUME_LATER

    def story(lab: Lab) -> None:
        one_queue(lab, "orders")
        start_billing(lab, listener, max_reconsume_times=most)
        shop = lab.producer("shop")
        asks = ["0 0 0 0", "0 0 0 0", "-1", f"{rng.randint(1, 18)} 0 0 0", "99 0 0 0", f"0 {rng.choice((-1, 7))} 0 0"]
        # The last failure may ask for a level as well: the message is dead all the same.
        asks.append(" ".join([*["0"] * most, str(rng.randint(1, 18))]))
        rng.shuffle(asks)
        for number, asked in enumerate(asks):
            own = {"asks": asked, "region": rng.choice(("Сибирь", "华东"))}
            body = rng.choice(BODIES).encode()
            shop.send(Message("orders", body, tags="paid", keys=f"order-{number}", properties=own))
        lab.run_for("10s")

    # 1. Quick levels, so that all retries are over after ten seconds.
    lab = told(story, seed, message_delay_level=QUICK_LEVELS)
    # 2. The journal connects each request of the client with the unit that the broker stored for it.
    returned = []
    for record in lab.journal:
        stored = record.of("message.stored")
        if stored and record.about is not None and record.about.code == RequestCode.CONSUMER_SEND_MSG_BACK:
            fields = record.about.ext_fields
            original = lab.store().message_at(int(fields["offset"]))
            written = lab.store().message_at(stored[0].values["physical_offset"])
            assert original is not None and written is not None
            level, limit = int(fields["delayLevel"]), int(fields["maxReconsumeTimes"])
            about = (
                f"{original.keys} of {original.topic}, reconsume_times {original.reconsume_times}, "
                f"max_reconsume_times {limit}, level asked {level}: its copy"
            )
            right = (written.topic, written.queue_id, written.reconsume_times, written.properties)
            given_back = Call(
                message=original, group=GROUP, max_reconsume_times=limit, delay_level=level, right=right, about=about
            )
            returned.append(given_back)
    return returned


def retry_plan(seed: int) -> list[Call]:
    """Seed 0 is RocketMQ's default; others have a short table, sometimes shorter than the first retry's level.

    Then a table whose last level is days long, and a limit of more than sixteen retries.
    """
    rng = random.Random(f"lab07.schedule {seed}")
    chosen = [rng.choice(("1s", "3s", "8s", "15s", "40s", "1m", "2m")) for _ in range(rng.randint(2, 7))]
    levels, most = (DEFAULT_LEVELS, -1) if seed == 0 else (" ".join(chosen), rng.choice((-1, 0, 1, 3, 5, 8)))
    # The wait of the last retry is read and not played, so a level of days costs nothing.
    with_days = f"1s 4s {rng.randint(11, 59)}s {rng.randint(2, 9)}d"
    return [
        planned(levels, most, seed),
        planned(with_days, 2, seed),
        planned("1s 2s 3s", rng.randint(17, 20), seed),
    ]


@functools.cache
def planned(levels: str, max_reconsume_times: int, seed: int = 0) -> Call:
    """Play an order that always fails until its last retry is parked, and read the plan from the schedule topic.

    Each plan is played once: a learner checks again and again, and the default one takes almost five hours of the Lab.
    """
    most = 16 if max_reconsume_times == -1 else max_reconsume_times

    def story(lab: Lab) -> None:
        one_queue(lab, "orders")
        start_billing(lab, lambda messages, context: RECONSUME_LATER, max_reconsume_times=max_reconsume_times)
        lab.producer("shop").send(Message("orders", "книга".encode()))
        lab.run_for("1s")
        for _ in range(most - 1):
            lab.run_until("message.sent_back", limit="10d")  # first the broker stores it, then the client knows
            lab.run_for("10ms")

    lab = told(story, seed, message_delay_level=levels)
    retries, elapsed_ms = [], 0
    for message in lab.store().messages(names.SCHEDULE_TOPIC):
        unit = lab.store().queue(names.SCHEDULE_TOPIC, message.queue_id).unit(message.queue_offset)
        assert unit is not None
        elapsed_ms += unit.tags_code - message.store_timestamp  # in this topic, the tag code is the time when it is due
        retries.append((message.queue_id + 1, elapsed_ms // 1000))
    return Call(levels=levels, max_reconsume_times=max_reconsume_times, right=retries)
