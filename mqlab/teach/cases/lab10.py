"""What lab 10's first page asks: one prediction about what lies in a log besides the messages that were sent.

Mirrors: nothing in RocketMQ. Lab 10.

    lab10.copies     thirty orders, three of which fail once  ->  messages in the commit log

Left out: exercises; they come with the pages that follow.
"""

from __future__ import annotations

from mqlab.teach.exercises import Manifest, Prediction

PREDICTIONS = (
    Prediction(
        "lab10.copies",
        "The shop sends 30 orders and 12 letters. Billing fails three of the orders once and handles them at the "
        "second try. How many messages does Spark find in the commit log?",
        "A retry is not the old message read again. The broker stores a copy to wait in SCHEDULE_TOPIC_XXXX and, when "
        "its time has come, another one in %RETRY%billing: two more messages for each failure.",
    ),
)

MANIFEST = Manifest("lab10", PREDICTIONS, ())
