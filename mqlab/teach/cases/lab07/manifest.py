"""What lab 07 asks: predictions that five beliefs about failure get wrong, and six exercises over days that go wrong.

    lab07.rewrite   a message that failed         ─▶ the unit that the broker writes for it
    lab07.schedule  a table of levels, a limit    ─▶ level and second of every retry
    lab07.redrive   dead letters, a producer      ─▶ back to their group, once each
    lab07.three     a bank that refuses           ─▶ a listener: three deliveries, then a human
    lab07.stuck     a bank that hangs             ─▶ a listener that holds nobody up
    lab07.killer    an order that kills billing   ─▶ a listener that remembers across its own death

The days are in days and bank, the replies to a wrong answer in judges. Reference and known-wrong answers are not in
this package.
"""

from __future__ import annotations

from dataclasses import replace

from mqlab.teach.cases.lab07 import days, judges, listeners, retries
from mqlab.teach.exercises import Case, Exercise, Manifest, Prediction


def _redrive_case(seed: int) -> Case:
    name = f"dead letters of a bad day, seed {seed}"
    return Case(name, lambda answers: judges.judge_redrive(days.redriven(answers, seed)))


PREDICTIONS = (
    Prediction(
        "lab07.first_retry",
        "The broker's table of delays begins with `1s 5s 10s 30s 1m 2m`. An order fails for the first time. After how "
        "many seconds does billing get it again?",
        "The first retry waits for level 3 of the table, 10 seconds. Levels 1 and 2 are for those who send a delayed "
        "message themselves; a retry never uses them unless the listener asks for them.",
    ),
    Prediction(
        "lab07.retry_topic",
        "The copy of the failed order has a property `RETRY_TOPIC`. What does it hold?",
        "`RETRY_TOPIC` holds the topic that the message was sent to. The client reads it back before it calls the "
        "listener, so a listener never sees the retry topic. Where a waiting copy goes is another property: "
        "`REAL_TOPIC`.",
        (
            ("orders", "the topic that the order was sent to"),
            ("%RETRY%billing", "the topic in which billing finds its retries"),
            ("SCHEDULE_TOPIC_XXXX", "the topic in which the copy waits"),
        ),
    ),
    Prediction(
        "lab07.calls",
        "`max_reconsume_times` is not set: 16 retries. An order fails whatever billing does. How often is the listener "
        "called with it?",
        "Sixteen retries are seventeen deliveries: `reconsume_times` 0 to 16.",
    ),
    Prediction(
        "lab07.minutes",
        "A handbook says: 16 retries, 4 hours 46 minutes (286 minutes). You look at your watch at the first delivery "
        "and again at the last. How many whole minutes have passed?",
        "Levels 3 to 18 add up to 17,140 seconds: 4 h 45 min 40 s. The broker looks every 100 ms, which adds a second "
        "or two in all. Somebody has rounded up, and many have copied it.",
    ),
    Prediction(
        "lab07.resent",
        "An operator gives the dead letter back to billing. Its `reconsume_times` was 17. With which one does the "
        "listener get it now?",
        "The operator's tool sends a new message: it has not been tried yet. The same sixteen retries lie before it, "
        "and the dead letter itself is still in its queue.",
    ),
    Prediction(
        "lab07.third",
        'A listener gives up with `if message.reconsume_times >= 2`. Its author says: "after three retries". How many '
        "retries has it made when it gives up?",
        "Two retries, three deliveries. `reconsume_times` is what happened before: 0 at the first delivery, 2 at the "
        "third.",
    ),
    Prediction(
        "lab07.orderly",
        "Billing reads in order. Its listener answers `SUSPEND_CURRENT_QUEUE_A_MOMENT` for order-0, again and again. "
        "order-1 is behind it in the queue. When does order-1 get its turn?",
        "Order means that nothing overtakes. An orderly failure stops its queue, tries again here every second, and by "
        "default does so for ever: `max_reconsume_times` of an orderly consumer is 2,147,483,647.",
        (
            ("at once", "order-0 goes to the retry topic, the queue goes on"),
            ("after 16", "after 16 retries order-0 is a dead letter, the queue goes on"),
            ("never", "not as long as order-0 fails"),
        ),
    ),
    Prediction(
        "lab07.no_status",
        "A listener hangs and gives no status at all. When does billing get the order again?",
        "No status is no failure: nobody knows of it. Only the consumer itself looks, every 15 minutes, for messages "
        "that its listener has held for more than 15 minutes, and gives them back with level 3. So: after 15 to 30 "
        "minutes, and 10 seconds.",
        (
            ("at once", "the broker waits for a status for a moment, then it sends again"),
            ("10 seconds", "it is treated as a failure: level 3"),
            ("half an hour", "after 15 to 30 minutes"),
            ("never", "as long as the process lives, nothing happens"),
        ),
    ),
    Prediction(
        "lab07.restart",
        "One of a hundred orders hangs, the other ninety-nine were paid ten minutes ago. Then billing is restarted. "
        "How many orders does its listener get in the new life?",
        "A group's offset in a queue is one number: the first message that is not done. It stood at the order that "
        "hung, and everything behind it came again.",
    ),
    Prediction(
        "lab07.killed",
        "An order makes billing's process crash each time its listener gets it; billing is restarted each time. What "
        "is `reconsume_times` at the sixth delivery?",
        "The count is raised when a message is given back, and a dead process gives nothing back. So the limit of 16 "
        "is never reached: this goes on for ever, and no dead letter tells anybody.",
    ),
    Prediction(
        "lab07.sends",
        "`retry_times_when_send_failed` is 2, and the shop waits 500 ms for each answer. The broker stores an order, "
        "but its answers are lost. How many times is the order in the log?",
        "Two retries are three sends here too. To the broker they are three messages: it stores each, and compares no "
        "`UNIQ_KEY`.",
    ),
)

EXERCISES = (
    replace(
        retries.REWRITE,
        title="Build the send-back rewrite",
        hints=(
            "Decide first where the copy goes: dead when `message.reconsume_times >= max_reconsume_times` or "
            "`delay_level < 0`. Start from `dict(message.properties)`, so that what you do not touch stays.",
            "RETRY_TOPIC and ORIGIN_MESSAGE_ID are set only if they are not there yet: `properties.setdefault(name, "
            "value)` does that. `message.topic` and `message.offset_msg_id` are the values for a first failure.",
            "`level = min(delay_level or 3 + message.reconsume_times, 18)`. A waiting copy: topic "
            'SCHEDULE_TOPIC_XXXX, queue level - 1, DELAY `str(level)`, REAL_TOPIC `f"%RETRY%{group}"`, REAL_QID "0". '
            'A dead one: `f"%DLQ%{group}"`, queue 0, DELAY "0". Both: WAIT "false".',
        ),
        note="This is AbstractSendMessageProcessor.consumerSendMsgBack. Note what it is not: the broker does not "
        "remember the failure anywhere else. A retry is a message like any other.",
    ),
    replace(
        retries.SCHEDULE,
        title="Compute the whole schedule",
        hints=(
            '`levels.split()` are the delays. Level 1 is number 0 of the list. Turn "5m" into seconds: '
            '`int(text[:-1])` times the value of `{"s": 1, "m": 60, "h": 3600, "d": 86400}` for `text[-1]`.',
            "The failure of the delivery with reconsume_times r waits for level 3 + r, or for the last one if the "
            "table is shorter. There is a wait for r = 0, 1, …, as many as there may be retries.",
            "`retries = 16 if max_reconsume_times == -1 else max_reconsume_times`; `for r in range(retries)`: `level "
            "= min(3 + r, last)`; second += the delay of that level; append (level, second).",
        ),
        note="With sixteen retries a message may be four and three quarter hours late. If your business cannot wait so "
        "long, set max_reconsume_times, and think about what shall happen to those that are left.",
    ),
    Exercise(
        "lab07.redrive",
        "Redrive a queue of dead letters",
        4,
        ("redrive",),
        _redrive_case,
        (1, 2),
        (
            'To which topic? orders belongs to every group, `f"%RETRY%{group}"` to this one alone.',
            "`Message(topic, body, properties=...)` takes all properties at once, tags, keys and id included. Leave "
            "out those that describe its former attempts: RECONSUME_TIME and MAX_RECONSUME_TIMES above all; DELAY, "
            "REAL_TOPIC, REAL_QID too. Keep RETRY_TOPIC and UNIQ_KEY.",
            "`for letter in {letter.msg_id: letter for letter in dead}.values():` takes each message once, though it "
            "may have died twice. Then `producer.send(Message(topic, letter.body, properties=kept))`.",
        ),
        "Before you do this to a real queue: is the bug fixed? A redrive of ten thousand letters to a broken consumer "
        "is ten thousand more failures, seventeen times each.",
    ),
    replace(
        listeners.THREE,
        title="Stop after three deliveries and store for a human",
        hints=(
            "`try: ask_bank(message, context), except BankError: …` The third delivery is the one with "
            "reconsume_times 2.",
            "Before that, return RECONSUME_LATER. At the third failure: store it, then return CONSUME_SUCCESS. For "
            "RocketMQ the order is done; for the human it begins.",
            "billing may die between storing and CONSUME_SUCCESS being known to the broker; then the third delivery "
            'comes again. `"INSERT OR IGNORE INTO for_a_human VALUES (?, ?)"` does nothing if the msg_id is there '
            "already.",
        ),
        note=(
            "Storing and then acknowledging is at least once; acknowledging and then storing would be at most once. "
            "The primary key makes the repetition harmless."
        ),
    ),
    replace(
        listeners.STUCK,
        title="Keep one stuck message from replaying ninety-nine",
        hints=(
            "Nobody can take a message away from a listener that hangs. So do not hang: which argument of ask_bank "
            "helps?",
            "How long? Longer than the bank may take when all is well (3 seconds), and so short that the offset moves "
            "on soon (10 seconds at most).",
            "`ask_bank(message, context, timeout_ms=5000)` raises TimeoutError. Return RECONSUME_LATER then: the "
            "order waits with the broker, its queue goes on, and the offset follows.",
        ),
        note=(
            "The retry topic is where a message can wait without holding up others. Everything that can hang needs a "
            "time limit of your own: the consumer's consumeTimeout comes half an hour later, when the harm is done."
        ),
    ),
    replace(
        listeners.KILLER,
        title="Survive the order that kills its process",
        hints=(
            "reconsume_times will not help. Count yourself, in the table `started`: what is committed there before the "
            "bank is asked is still there in the next life.",
            "Three steps, three transactions: raise times and commit; ask the bank; whatever the result, delete the "
            "row. A row that is found with times 3 means: three deliveries began and none ended.",
            '`with connection: connection.execute("INSERT INTO started VALUES (?, 1) ON CONFLICT (msg_id) DO UPDATE '
            'SET times = times + 1", (message.msg_id,))` is the first step. Read times before it: at 3, store the '
            "order for a human and return CONSUME_SUCCESS without asking the bank; let the row stay, the delivery may "
            "come again.",
        ),
        note=(
            "One write before each message is the price. Many pay it only for messages that are redelivered, or look "
            "at the crash reports instead. But somebody has to look: the broker never will."
        ),
    ),
)

MANIFEST = Manifest("lab07", PREDICTIONS, EXERCISES)
