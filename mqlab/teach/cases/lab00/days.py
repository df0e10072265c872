"""The days for lab 00's exercises, each made from a seed.

half_read     orders between letters; one group stopped half-way        ─▶ lab00.find
working_day   orders now and then; a fast group and a late, slow one    ─▶ lab00.timeline, lab00.crash
"""

from __future__ import annotations

import random

from mqlab.lab.lab import Lab, play
from mqlab.teach.cases.story_parts import one_queue, reader
from mqlab.wire.message import Message

BODIES = ("книга", "三本书", "🎁🎁", "a lamp", "чай с лимоном", "one very long order " * 20)
GROUPS = ("audit", "billing")


def half_read(seed: int) -> Lab:
    """Orders between letters; audit stops half-way, billing reads everything, press reads only letters."""
    rng = random.Random(f"lab00.find {seed}")

    def story(lab: Lab) -> None:
        # 1. A producer that mixes both topics, so that places in the log and in a queue differ.
        one_queue(lab, "orders", "letters")
        shop = lab.producer("shop")

        def send(count: int) -> None:
            for _ in range(count):
                topic = rng.choice(("letters", "orders"))
                shop.send(Message(topic, rng.choice(BODIES).encode(), tags=rng.choice(("paid", "已支付"))))
            shop.send(Message("orders", rng.choice(BODIES).encode()))

        send(rng.randint(2, 5))
        audit = reader(lab, "audit", "orders", lambda: 5)
        lab.run_for("12s")
        # 2. audit leaves: it does not read what is sent from here on.
        audit.shutdown()
        send(rng.randint(2, 5))
        reader(lab, "billing", "orders", lambda: 5)
        reader(lab, "press", "letters", lambda: 5)
        lab.run_for("20s")

    return play(story, seed=seed)


def working_day(seed: int, end_ms: int) -> Lab:
    """Orders that come now and then; billing is there from the start, audit comes later and is slower."""
    rng = random.Random(f"lab00.day {seed}")

    def story(lab: Lab) -> None:
        start_ms = lab.now_ms
        one_queue(lab, "orders")
        shop = lab.producer("shop")
        reader(lab, "billing", "orders", lambda: rng.randint(20, 900))
        for number in range(8):
            lab.run_for(rng.randint(300, 3000))
            shop.send(Message("orders", rng.choice(BODIES).encode(), keys=f"order-{number}"))
            if number == 2:
                reader(lab, "audit", "orders", lambda: rng.randint(500, 4000))
        lab.run_for(max(start_ms + end_ms - lab.now_ms, 1))

    return play(story, seed=seed)
