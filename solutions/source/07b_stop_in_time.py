# %% [markdown] tags=["reading"]
# # 07b Giving up: stop in time
#
# ## Why
#
# In the [first part](07a-failure-takes-time.ipynb) the bank said no. But at 14:02 it said nothing, and at 14:13
# ninety-nine customers were charged a second time. An operator had restarted billing, "to be on the safe side".

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the first part up to *Where it waits*. Afterwards you can
#
# - write a listener that gives up in time and notifies a human;
# - say what an orderly failure, a hanging listener and a crashing process do, which is three different things;
# - keep one stuck order from replaying ninety-nine.

# %%
from collections import Counter

from mqlab import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    SUCCESS,
    SUSPEND_CURRENT_QUEUE_A_MOMENT,
    Message,
    play,
)
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import crash_matrix
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.timeline import after

# %% [markdown]
# ## The bank, once more
#
# The same bank, with one more word: `hang` means that no answer comes. `timeout_ms` is how long billing is prepared to
# wait.


# %% tags=["setup"]
class BankError(Exception):
    """The bank says no."""


def ask_bank(message, context, timeout_ms=36_000_000):
    """BankError: the bank refuses. TimeoutError: it does not answer in time."""
    words = message.properties.get("bank", "40").split()
    word = words[min(message.reconsume_times, len(words) - 1)]
    answer_ms = {"hang": 36_000_001, "no": 40}.get(word) or int(word)
    context.sleep(min(answer_ms, timeout_ms))
    if answer_ms > timeout_ms:
        raise TimeoutError(f"no answer for {message.keys} within {timeout_ms} ms")
    if word == "no":
        raise BankError(f"{message.keys} is refused")


# %% tags=["parameter"]
def billing(lab, listener, **settings):
    consumer = lab.push_consumer("billing", **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("30s")


def send_orders(lab, *banks):
    shop = lab.producer("shop")
    for number, bank in enumerate(banks):
        order = Message("orders", "книга 书 📚".encode(), keys=f"order-{number}")
        order.properties["bank"] = bank
        shop.send(order)


def simple(messages, context):
    ask_bank(messages[0], context)
    return CONSUME_SUCCESS


# %%
def deliveries(lab):
    """When, from where, and with what result billing's listener was called."""
    rows = lab.deliveries("billing", absences=False)  # calls only, nothing filtered
    for row in rows:
        yield {
            "after": after(row.started_ms - rows[0].started_ms),
            "read from": row.message_queue.topic,
            "queue_offset": row.queue_offset,
            "reconsume_times": row.reconsume_times,
            "status": row.status,
        }


no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Stop sooner
#
# Most services give up sooner, and want to know about it.

# %% [prediction] lab07.third
# A listener gives up with `if message.reconsume_times >= 2`. Its author says: "after three retries". How many retries
# has it made when it gives up?
#
# - 2: two
#   = `reconsume_times` counts the retries before: 0 at the first delivery, 2 at the third.
# - 3: three, as the author says {lab07.two_means_twice}
#   > There are three deliveries. The first one is not a retry.
# - 1: one
#   > At the second delivery `reconsume_times` is 1, and 1 >= 2 is false, so there is another one.
# note: Two retries, three deliveries.


# %%
def gives_up(messages, context):
    order = messages[0]
    try:
        ask_bank(order, context)
    except BankError:
        if order.reconsume_times >= 2:
            return CONSUME_SUCCESS  # no more of this
        return RECONSUME_LATER
    return CONSUME_SUCCESS


def impatient(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, gives_up)
    send_orders(lab, "no")
    lab.run_for("10m")


# %%
lab = play(impatient, seed=7, client=no_trace)
lab.waits(lab.deliveries("billing", absences=False)[0])

# %%
rows = list(deliveries(lab))
reveal("lab07.third", sum(row["read from"] == "%RETRY%billing" for row in rows))

# %% [markdown]
# Then the listener returns `CONSUME_SUCCESS`, to drop the order. Is there a dead letter?

# %%
lab.admin.query_dlq("billing")

# %% [markdown]
# There is none. Before you drop an order, store it where a human looks.

# %% [exercise] lab07.three
# ### Exercise 4: stop after three deliveries and store for a human
#
# `three_times(lab)` makes billing's listener. `lab.database("billing").connect()` is a connection of Python's `sqlite3`
# to a database with this table:
#
# `CREATE TABLE for_a_human (msg_id TEXT PRIMARY KEY, body BLOB NOT NULL)`
#
# `with connection: connection.execute(sql, values)` writes and commits; `values` is a tuple, such as
# `(message.msg_id,)`. `ask_bank` is the one above. Of the lab, use only `database`. Billing may be killed between two
# deliveries, or right after it has stored an order, before the broker learns of its success. A function that returns a
# function looks like this:
#
# ```python
# def outer(lab):
#     def inner(messages, context):
#         ...  # may use lab
#
#     return inner
# ```
#
# hint: `try: ask_bank(message, context), except BankError: …` The third delivery is the one with reconsume_times 2.
# hint: Before that, return RECONSUME_LATER. At the third failure, store the order, then return CONSUME_SUCCESS. For
#   RocketMQ the order is done; for the human it begins.
# hint: If billing crashes after it has stored the order and before the broker knows of CONSUME_SUCCESS, the third
#   delivery is repeated. `"INSERT OR IGNORE INTO for_a_human VALUES (?, ?)"` does nothing if the msg_id is there
#   already.
# note: Storing and then acknowledging is at least once; acknowledging and then storing would be at most once. The
#   primary key makes the repetition harmless.


# %%
# exercise: lab07.three
def three_times(lab):
    """Makes a listener: asks the bank at each of at most three deliveries.

    What the bank refuses three times is in for_a_human then, and does not come again.
    """
    ### BEGIN SOLUTION
    database = lab.database("billing")

    def listener(messages, context):
        message = messages[0]
        try:
            ask_bank(message, context)
        except BankError:
            if message.reconsume_times < 2:
                return RECONSUME_LATER
            with database.connect() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO for_a_human VALUES (?, ?)",
                    (message.msg_id, message.body),
                )
        return CONSUME_SUCCESS

    return listener
    ### END SOLUTION


# %%
check("lab07.three")

# %% [belief] lab07.lives_long_enough
# question: A listener counts failures in a dictionary. Does it count to three?
# claim: Yes: a process lives long enough.
# refutation: The process may restart between two deliveries. reconsume_times counts the retries before this delivery,
#   and comes with the message.

# %% [belief] lab07.first_is_1
# question: What is reconsume_times at the first delivery?
# claim: 1.
# refutation: 0: it counts retries. An order gets three deliveries before it is given up.

# %% [belief] lab07.storing_is_enough
# question: An order is stored for a human. Does the status still matter?
# claim: No.
# refutation: It does: after RECONSUME_LATER the order is redelivered. This was the third delivery, and it is the last.

# %% [belief] lab07.third_comes_once
# question: How often does the third delivery come?
# claim: Once.
# refutation: A consumer may crash after it has stored something and before the broker knows. Then the delivery is
#   repeated, and storing twice must be harmless.

# %% [belief] lab07.dead_letters_are_read
# question: An order is among the dead letters. Who looks at it?
# claim: A human.
# refutation: No human, unless you read them out. Store an order that failed three times for a human, with its body.

# %% [belief] lab07.body_is_text
# question: What is a body?
# claim: A text.
# refutation: Bytes. A human gets the body as it came: store message.body itself, bytes, not a text made of it.

# %% [belief] lab07.success_unsaid
# question: A listener returns nothing, and has raised nothing. How does the consumer treat that?
# claim: A success.
# refutation: As a retry. When the bank has paid, the order is done: return CONSUME_SUCCESS.

# %% [markdown]
# ## Break it: killed between storing and acknowledging
#
# Two listeners give an order up at its first refusal. One stores it and returns `CONSUME_SUCCESS`. The other returns
# first, keeps the order in its memory, and stores it when it is called the next time, twelve seconds later.

# %% [prediction] lab07.crash
# billing is killed once, at some moment, and started again a second later. Which of the two can lose the order, so that
# no human learns of it?
#
# - later: the one that acknowledges first
#   = Once the broker knows of its success, the order is never redelivered. If the process crashes before its next call,
#   = the order is gone.
# - first: the one that stores first
#   > If it crashes before the broker knows of its success, the order is redelivered and stored again. The primary key
#   > makes that harmless.
# - both: both, if the moment is bad enough
#   > The one that stores first has no such moment: until the broker knows of the success, the order is redelivered.
# - none: neither; an order that was not handled to its end is redelivered
#   > The broker does not know what a listener still plans to do. It only gets `CONSUME_SUCCESS`.
# note: First store, then acknowledge. Whatever is acknowledged first can get lost.
# later: Of two listeners one pays and then acknowledges an order, the other acknowledges first and pays later.
#   billing is killed once, at some moment, and started again. Which of the two can lose the order, so that no human
#   learns of it?


# %% tags=["parameter"]
def store(billing_db, row):
    sql = "REPLACE INTO for_a_human VALUES (?, ?)"
    with billing_db.connect() as connection:
        connection.execute(sql, row)


def where_it_is(lab):
    connection = lab.database("billing").connect()
    rows = connection.execute("SELECT msg_id FROM for_a_human").fetchall()
    return "with a human" if rows else "lost"


# %%
def gives_up_listener(billing_db, stores_first):
    class Listener:  # each life of billing makes a new one
        def __init__(self):
            self.later = []

        def consume_message(self, messages, context):
            while self.later:
                store(billing_db, self.later.pop())
            try:
                ask_bank(messages[0], context)
            except BankError:
                self.later.append((messages[0].msg_id, messages[0].body))
                if stores_first:
                    store(billing_db, self.later.pop())
            return CONSUME_SUCCESS

    return Listener


# %%
def gives_up_at_once(stores_first):
    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        billing_db = lab.database("billing")
        table = "for_a_human (msg_id TEXT PRIMARY KEY, body BLOB NOT NULL)"
        with billing_db.connect() as connection:
            connection.execute(f"CREATE TABLE {table}")
        billing(lab, gives_up_listener(billing_db, stores_first))
        shop = lab.producer("shop")
        for bank in ("no", "40"):
            shop.send(Message("orders", b"a book", properties={"bank": bank}))
            lab.run_for("12s")

    return story


# %% [markdown]
# Each cell of the matrix is a run of its own, in which billing is killed just before one of its steps. Choose a cell
# that says *lost*: what happened around the kill?

# %% tags=["explorer"]
variants = {
    "acknowledge, then store": gives_up_at_once(stores_first=False),
    "store, then acknowledge": gives_up_at_once(stores_first=True),
}
matrix = crash_matrix(
    variants,
    node="billing-1",
    outcome=where_it_is,
    only=lambda point: 88 <= point.number < 110,  # between the two deliveries
    seed=7,
    client=no_trace,
)
matrix

# %%
matrix.table()

# %%
lost = {row.variant for row in matrix.cells() if row.outcome == "lost"}
answers = {"acknowledge, then store": "later", "store, then acknowledge": "first"}
both = "both" if len(lost) == 2 else "none"
reveal("lab07.crash", answers[lost.pop()] if len(lost) == 1 else both)

# %% [markdown]
# ## In order, a failure is something else
#
# *Created*, *paid* and *shipped* must not overtake each other. In orderly consumption (顺序消费) one message of a queue is
# handled at a time, and the listener returns `SUCCESS` or `SUSPEND_CURRENT_QUEUE_A_MOMENT` (挂起).

# %% [prediction] lab07.orderly
# Billing reads in order. Its listener returns `SUSPEND_CURRENT_QUEUE_A_MOMENT` for order-0, again and again. order-1 is
# the next one in the queue. When does order-1 get its turn?
#
# - at once: order-0 goes to the retry topic, and the queue continues
#   > Then order-1 would overtake order-0, which orderly consumption excludes.
# - after 16: after 16 retries order-0 is a dead letter, and the queue continues
#   > Sixteen is the default of concurrent consumption. For an orderly consumer it is 2,147,483,647.
# - never: not as long as order-0 fails
#   = Order means that nothing overtakes.
# note: An orderly failure stops its queue and is tried again here every second, by default for ever.


# %% tags=["parameter"]
def in_order(messages, context):
    try:
        ask_bank(messages[0], context)
    except BankError:
        return SUSPEND_CURRENT_QUEUE_A_MOMENT
    return SUCCESS


def orderly(lab, **settings):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages_orderly(in_order)
    consumer.start()
    lab.run_for("30s")
    send_orders(lab, "no", "40")
    lab.run_for("30m")


# %%
lab = play(orderly, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
ids = set(rows.column("msg_id"))
print(len(rows), "deliveries in half an hour, of", len(ids), "order")
Table(list(deliveries(lab))[:4])

# %%
turn = "never" if len(ids) == 1 else "after 16"
reveal("lab07.orderly", turn)

# %% [markdown]
# order-0 is redelivered once a second, from the queue itself. The log holds two units, as sent:

# %%
from mqlab.lab.views.queue import show_queue

show_queue(lab, "orders")

# %% [markdown]
# So the count is only in the consumer's memory. What if it is restarted?

# %%
lab.kill("billing-1")
lab.start("billing-1")
lab.run_for("30s")
Table(list(deliveries(lab))[len(rows) - 2 : len(rows) + 2])

# %% [answer] lab07.limit
# ### Your turn: a limit for the head of the queue
#
# With `max_reconsume_times` the queue continues. Change `LIMIT` to a number of your own from 4 to 20 and run the cell.
# How many deliveries of order-0 were there?
#
# wrong retries: That is your limit, which counts retries. The first delivery is not a retry.
# wrong both: You have counted the delivery of order-1 as well.
# wrong: Count the rows of queue_offset 0 in the table.
# note: One delivery and LIMIT retries, a second apart. Then order-0 is a dead letter, and order-1 was paid although
#   order-0 never was. If that is wrong for your orders, do not set the limit.

# %% tags=["parameter"]
LIMIT = 3


def limited(lab):
    orderly(lab, max_reconsume_times=LIMIT)


limited_day = play(limited, seed=7, client=no_trace)
Table(deliveries(limited_day))

# %%
### BEGIN SOLUTION
answer("lab07.limit", 4, limited_day)
### STARTER
# answer("lab07.limit", ..., limited_day)
### END SOLUTION

# %%
letter = limited_day.admin.query_dlq("billing")[0]
wanted = ("RETRY_TOPIC", "RECONSUME_TIME", "MAX_RECONSUME_TIMES")
print({name: letter.properties[name] for name in wanted})

# %% [markdown]
# ## No answer at all
#
# Back to 14:02: the bank does not answer, so the listener does not return.

# %% [prediction] lab07.no_status
# A listener hangs and returns no status at all. When does billing get the order again?
#
# - at once: the broker waits for a status for a moment, then it sends again {lab07.sent_again}
#   > The broker does not wait for a status. It has answered a pull, and does not know what the client does with the
#   > messages.
# - 10 seconds: it is treated as a failure, level 3
#   > A missing status is not a failure. The listener has not returned, so nothing is sent back.
# - half an hour: after 15 to 30 minutes
#   = Every 15 minutes the consumer itself looks for messages that its listener has held for more than 15 minutes.
# - never: as long as the process runs, nothing happens
#   > Almost. But the consumer has a sweep that checks the clock.
# note: The sweep sends such a message back with level 3. So it is redelivered after 15 to 30 minutes, and 10 seconds.

# %% [markdown]
# order-0 hangs at its first try only. (billing has twenty threads, so the others need not wait for it.)


# %%
def hanging(lab, **settings):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple, **settings)
    send_orders(lab, "hang 40", "40", "40")
    lab.run_for("35m")


lab = play(hanging, seed=7, client=no_trace)
Table(deliveries(lab))


# %%
def minutes_until_again(lab):
    rows = lab.deliveries("billing", absences=False)
    first = next(row for row in rows if row.status == "RUNNING")
    second = next(row for row in rows if row.reconsume_times == 1)
    return (second.started_ms - first.started_ms) / 60_000


minutes = minutes_until_again(lab)
print(f"delivered again after {minutes:.1f} minutes")
reveal("lab07.no_status", "half an hour" if 15 <= minutes <= 31 else "never")

# %% [markdown]
# `RUNNING` is a call that has not returned even now. Why half an hour? Billing sweeps 15 minutes after its own start.
# order-0 came 30 seconds later, so it is old enough only at the next sweep.

# %% [answer] lab07.sweep
# ### Your turn: sweep more often
#
# `consume_timeout` is a setting of the consumer. Set it to one minute. After how many whole seconds is order-0
# redelivered?
#
# wrong one_minute: The order was 30 seconds old at the first sweep, after one minute. That is not more than a minute.
# wrong without_level: That is the moment of the sweep. It sends the order back, and then the order waits for level 3.
# wrong: Subtract the time of the first delivery from that of the second, in seconds.
# note: Between one and two timeouts, and the delay of level 3. A shorter timeout also sends back orders that are only
#   slow, and they are then handled twice.

# %% tags=["parameter"]
CONSUME_TIMEOUT = "15m"

swept_day = play(lambda lab: hanging(lab, consume_timeout=CONSUME_TIMEOUT), seed=7)
Table(deliveries(swept_day))

# %%
### BEGIN SOLUTION
swept_day = play(lambda lab: hanging(lab, consume_timeout="1m"), seed=7)
answer("lab07.sweep", 100, swept_day)
### STARTER
# answer("lab07.sweep", ..., swept_day)
### END SOLUTION

# %% [markdown]
# And the group's offset meanwhile? It cannot pass order-0:

# %%
lab = play(hanging, seed=7, client=no_trace)
sent = lab.deliveries("billing", absences=False)[0].started_ms
moves = [
    {"after": after(step.now_ms - sent), **values}
    for step, values in lab.journal.changes("offset.updated")
    if step.now_ms >= sent and values["queue"].topic == "orders"
]
Table(moves, columns=["after", "queue", "commit_offset", "before"])

# %% [markdown]
# It jumped when the sweep (消费超时, `consumeTimeout`) had sent order-0 back.
#
# Now 14:12, ten minutes after it began. A hundred orders have arrived, and one of them hangs.

# %% [prediction] lab07.restart
# One of a hundred orders hangs, and the other ninety-nine were paid ten minutes ago. Then billing is restarted. How
# many orders does its listener get after the restart?
#
# - 1: one, the order that hung
#   > The broker does not know which ninety-nine are done. It knows one number per queue.
# - 100: all of them
#   = The group's offset was at the order that hung, and everything from there on is redelivered.
# - 0: none; the order that hung is still within its fifteen minutes
#   > The process that was stopped had counted those fifteen minutes.
# note: A group's offset in a queue is one number: the first message that is not done.


# %%
def that_day(lab, listener=simple):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, listener)
    send_orders(lab, "hang", *["40"] * 99)
    lab.run_for("10m")
    lab.kill("billing-1")
    lab.run_for("5s")
    lab.start("billing-1")
    lab.run_for("1m")


# %%
lab = play(that_day, seed=7, client=no_trace)
killed = lab.journal.of("fault.killed")[0].now_ms
rows = lab.deliveries("billing", absences=False)
second_life = [row for row in rows if row.started_ms > killed]
reveal("lab07.restart", len(second_life))

# %%
columns = ["started_ms", "queue_offset", "reconsume_times", "status"]
Table(second_life[:4], columns=columns)

# %% [markdown]
# These are not retries: `reconsume_times` is 0. And the order that hung hangs again.

# %%
paid = Counter(row.msg_id for row in rows if row.status == "CONSUME_SUCCESS")
charged = Counter(f"times charged: {times}" for times in paid.values())
Bars(charged, title="customers")

# %%
columns = ["topic", "broker_offset", "consumer_offset", "lag"]
Table(lab.progress("billing"), columns=columns)

# %% [markdown]
# One minute after the restart the group's `consumer_offset` is still 0, at the order that hangs. One more restart would
# charge the ninety-nine a third time.

# %% [exercise] lab07.stuck
# ### Exercise 5: keep one stuck message from replaying ninety-nine
#
# `pay` is billing's listener. The bank now promises to answer within 3 seconds, or not at all. You promise that,
# whenever billing crashes, only orders of the last 15 seconds are redelivered. The consumer reports its offset every 5
# seconds, so no call of the listener may take longer than 10. Nothing may get lost. You have `ask_bank` with its
# `timeout_ms`; the settings of the consumer stay as they are.
#
# hint: No setting takes a message away from a listener that hangs. So do not hang: which argument of ask_bank helps?
# hint: How long? Longer than the bank may take when all is well (3 seconds), and so short that the offset moves soon
#   (10 seconds at most).
# hint: `ask_bank(message, context, timeout_ms=5000)` raises TimeoutError. Return RECONSUME_LATER then: the order waits
#   at the broker, its queue continues, and the offset follows.
# note: In the retry topic a message can wait without holding up others. Everything that can hang needs a time limit of
#   your own: the consumer's consumeTimeout comes half an hour later, when the harm is done.


# %%
# exercise: lab07.stuck
def pay(messages, context):
    """Asks the bank for messages[0]; what it does not answer comes again later."""
    ### BEGIN SOLUTION
    try:
        ask_bank(messages[0], context, timeout_ms=5_000)
    except TimeoutError:
        return RECONSUME_LATER
    return CONSUME_SUCCESS
    ### END SOLUTION


# %%
check("lab07.stuck")

# %% [belief] lab07.slow_is_stuck
# question: The bank has not answered for a second. Does it hang?
# claim: Yes.
# refutation: The bank takes up to 3 seconds: a shorter time limit fails orders that are only slow.

# %% [belief] lab07.minute_is_short
# question: What is a short time limit for the bank?
# claim: A minute.
# refutation: A message without a result holds the offset of its queue: after a restart, a minute of orders is delivered
#   again.

# %% [belief] lab07.hanging_is_done
# question: The bank has not answered in time. What does the listener return?
# claim: CONSUME_SUCCESS: it did its part.
# refutation: CONSUME_SUCCESS means that the order is done: return it only when the bank has paid.

# %% [belief] lab07.retry_at_once
# question: The bank did not answer. What is better than a retry in ten seconds?
# claim: One here and now.
# refutation: It keeps the message without a result. Whenever billing crashes, only the last 15 seconds may be
#   redelivered, so no call may take longer than 10.

# %% [markdown]
# ## Break it: the order that kills its process
#
# An order makes billing crash, through a bug or too little memory. The machine starts it again.

# %% [prediction] lab07.killed
# An order makes billing's process crash each time its listener gets it; billing is restarted each time. What is
# `reconsume_times` at the sixth delivery?
#
# - 5: five; it was delivered five times before {lab07.deliveries_count}
#   > Delivered, but never sent back. The count rises when a message is sent back.
# - 0: zero
#   = A crashed process sends nothing back, so the count does not rise.
# - 16: sixteen; a crash counts as the last failure
#   > A crash does not count: no request leaves a crashed process.
# note: The limit of 16 is never reached. This continues for ever, without a dead letter to warn you.


# %% tags=["parameter"]
def killer(lab, others=0):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "400", *["400"] * others)
    for _ in range(20):
        lab.run_until("listener.started")
        lab.run_for("200ms")  # in the middle of its work
        lab.kill("billing-1")
        lab.run_for("2s")
        lab.start("billing-1")


lab = play(killer, seed=7, client=no_trace)
rows = list(deliveries(lab))
Table(rows[:6])

# %%
reveal("lab07.killed", rows[5]["reconsume_times"])

# %%
print(len(rows), "deliveries, and this in the log:")
show_queue(lab, "orders")

# %% [markdown]
# Twenty crashes, no retry, no dead letter, no wait.

# %% [answer] lab07.others
# ### Your turn: the others in its threads
#
# The killer is not alone: `OTHERS` orders of other customers are in billing's threads when it crashes. Change the
# number (up to 19) and run the cell. How often was the last of them delivered?
#
# wrong once: It was also in the middle of its work when the process crashed. Look at the rows of its queue_offset.
# wrong all_rows: Those are the rows of all orders together. Count those of the last queue_offset only.
# wrong: Count the rows with the highest queue_offset in `rows`.
# note: As often as the killer itself. A crash takes down whatever is in the threads, and no count grows for any of
#   them.

# %% tags=["parameter"]
OTHERS = 0

killer_day = play(lambda lab: killer(lab, OTHERS), seed=7, client=no_trace)
rows = list(deliveries(killer_day))
Table(rows[-2 * (OTHERS + 1) :])

# %%
### BEGIN SOLUTION
killer_day = play(lambda lab: killer(lab, 3), seed=7, client=no_trace)
answer("lab07.others", 20, killer_day)
### STARTER
# answer("lab07.others", ..., killer_day)
### END SOLUTION

# %% [exercise] lab07.killer
# ### Exercise 6: survive the order that kills its process
#
# `never_again(lab)` makes billing's listener at each start of the process, with new variables. Use only `lab.database`;
# the one of exercise 4 has a second table:
#
# `CREATE TABLE started (msg_id TEXT PRIMARY KEY, times INTEGER NOT NULL)`
#
# A crash rolls back what is not committed, and no code runs any more, not even `finally`. There is one thread. Orders
# that are refused several times, or hit by a crash once or twice by chance, are not killers. An order that a human has
# must not be tried again.
#
# hint: reconsume_times will not help. Count yourself, in the table `started`: what is committed there before the bank
#   is asked is still there after a restart.
# hint: Three steps, three transactions: raise times and commit; ask the bank; whatever the result, delete the row. A
#   row that is found with times 3 means: three deliveries began and none ended.
# hint: `with connection: connection.execute("INSERT INTO started VALUES (?, 1) ON CONFLICT (msg_id) DO UPDATE SET times
#   = times + 1", (message.msg_id,))` is the first step. Read times before it: at 3, store the order for a human and
#   = return CONSUME_SUCCESS without asking the bank. Let the row stay, because the delivery may be repeated.
# note: One write before each message is the price. Many pay it only for redelivered messages, or look at the crash
#   reports instead. You must do one of the two: the broker never will.


# %%
# exercise: lab07.killer
def never_again(lab):
    """Makes a listener: an order that three deliveries began and none ended is stored
    in for_a_human, and the bank is not asked again. All others are paid, however
    often they are refused.
    """
    ### BEGIN SOLUTION
    database = lab.database("billing")
    begin = (
        "INSERT INTO started VALUES (?, 1)"
        " ON CONFLICT (msg_id) DO UPDATE SET times = times + 1"
    )

    def listener(messages, context):
        message, connection = messages[0], database.connect()

        def commit(sql, *values):
            with connection:
                return connection.execute(sql, (message.msg_id, *values)).fetchall()

        rows = commit("SELECT times FROM started WHERE msg_id = ?")
        if rows and rows[0][0] >= 3:
            commit("INSERT OR IGNORE INTO for_a_human VALUES (?, ?)", message.body)
            return CONSUME_SUCCESS
        commit(begin)
        status = CONSUME_SUCCESS
        try:
            ask_bank(message, context)
        except BankError:
            status = RECONSUME_LATER
        commit("DELETE FROM started WHERE msg_id = ?")
        return status

    return listener
    ### END SOLUTION


# %%
check("lab07.killer")

# %% [belief] lab07.human_is_failure
# question: An order is stored for a human. Which status does the listener return?
# claim: RECONSUME_LATER, because the order has not been paid.
# refutation: An order that a human has is done for billing, so the listener returns CONSUME_SUCCESS. RECONSUME_LATER
#   delivers it again and again, until it is in the dead letters as well.

# %% [belief] lab07.counted_at_the_end
# question: When do you write down that a delivery has killed the process?
# claim: When it has ended.
# refutation: A crashed process cannot write. Only what is written and committed before the bank is asked survives.

# %% [belief] lab07.memory_survives
# question: A listener keeps a count in a variable. Is it there when billing is started again?
# claim: Yes: the module or the function still has it.
# refutation: A restarted process has nothing of its former run: only what is written and committed before the bank is
#   asked survives.

# %% [belief] lab07.refusal_counts
# question: The bank refuses an order. Does that delivery count?
# claim: Yes: it did not end well.
# refutation: Only deliveries without a result count: a refusal is a result, and so is success.

# %% [belief] lab07.row_can_go
# question: An order is stored for a human. Can its count be deleted?
# claim: Yes: it is done.
# refutation: Billing may crash before the broker knows of the success. An order that a human has is not tried again,
#   even if it is delivered again.

# %% [belief] lab07.one_strike
# question: A delivery was begun and not ended. Was it the order's fault?
# claim: Yes.
# refutation: Any order may be under way when a process crashes. An order gets three deliveries, and the bank is asked
#   at each.

# %% [belief] lab07.one_transaction
# question: Count and work belong together. Where does the count go?
# claim: Into the transaction of the work.
# refutation: A transaction that does not end is rolled back, and the count with it: it must be committed before the
#   bank is asked.

# %% [belief] lab07.former_lives
# question: How does billing know what it got before it was restarted?
# claim: It looks up the deliveries.
# refutation: A process has no such list. Of the lab, an answer has database and nothing else.

# %% [belief] lab07.more_than_three
# question: Three deliveries have begun and not ended. What does the fourth do?
# claim: It tries once more: three is not more than three.
# refutation: Three deliveries that began and did not end are enough: the fourth stores the order and does not ask the
#   bank.

# %% [belief] lab07.executed_is_stored
# question: connection.execute has inserted a row. Is it in the database?
# claim: Yes.
# refutation: When it is committed. Only what is written and committed before the bank is asked survives.

# %% [markdown]
# ## Break it: the broker is away
#
# Billing wants to send an order back, but cannot reach the broker. First it calls the broker, then it tries to send the
# order to the retry topic as a new message, and then it keeps the order and tries again on its own, every five seconds:


# %%
def broker_away(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "no")
    lab.run_until("listener.started")
    lab.kill("broker-a")
    lab.run_for("14s")
    lab.start("broker-a")
    lab.run_for("1m")


lab = play(broker_away, seed=7, client=no_trace)
Table(deliveries(lab))

# %%
lab.waits(lab.deliveries("billing", absences=False)[0])

# %% [markdown]
# At the fourth try the broker is back. But look at the count after that: the broker knows only its own unit of the log.
# What billing counted in its memory is forgotten.

# %% [markdown]
# ## The shop retries as well
#
# A producer that gets no answer sends again (发送重试): `retry_times_when_send_failed=2` is its default. Here the broker
# stores every order, but its answers are lost on the way, and the shop waits at most 500 ms for each of them.

# %% [prediction] lab07.sends
# The broker stores an order, but all its answers are lost. The shop has `retry_times_when_send_failed=2`. How many
# times is the order in the log?
#
# - 3: three times
#   = Two retries are three sends here too.
# - 2: twice
#   > There are two retries, and the first attempt before them.
# - 1: once; the broker recognises the `UNIQ_KEY`
#   > To the broker they are three messages. It stores each, and compares no `UNIQ_KEY`.
# note: All three have one unique id, by which billing can recognise them.


# %% tags=["parameter"]
def lost_answers(count, **settings):
    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop", retry_times_when_send_failed=2, **settings)
        shop.send(Message("orders", b"a book", keys="order-0"))
        lab.run_for("5s")
        lab.drop("broker-a", "shop-1", count=count)
        try:
            print(shop.send(Message("orders", b"a book", keys="order-1")).send_status)
        except Exception as error:
            print(type(error).__name__, error)
        lab.run_for("1s")

    return play(story, seed=7, client=no_trace)


# %%
lab = lost_answers(3, send_msg_max_timeout_per_request=500)
show_queue(lab, "orders")

# %%
copies = [unit for unit in lab.store().messages("orders") if unit.keys == "order-1"]
print("unique ids:", {unit.msg_id for unit in copies})
reveal("lab07.sends", len(copies))

# %% [answer] lab07.send_ok
# ### Your turn: one lost answer
#
# Change `LOST` so that the shop gets `SEND_OK` in the end, and at least one answer is lost. How many times is order-1
# in the log now?
#
# wrong once: `SEND_OK` belongs to the last attempt. The ones before it were stored as well.
# wrong three: Count the units in the picture.
# wrong: Set LOST so that `SEND_OK` is printed, run the cell, and count the units of order-1 in the picture.
# note: `SEND_OK` means at least once, not exactly once. And an error means *not known*, not *no*.

# %% tags=["parameter"]
LOST = 3

lost_day = lost_answers(LOST, send_msg_max_timeout_per_request=500)
show_queue(lost_day, "orders")

# %%
### BEGIN SOLUTION
lost_day = lost_answers(1, send_msg_max_timeout_per_request=500)
answer("lab07.send_ok", 2, lost_day)
### STARTER
# answer("lab07.send_ok", ..., lost_day)
### END SOLUTION

# %% [markdown]
# Now the shop has default settings, without the 500 ms, and all answers are lost:

# %%
lab = lost_answers(3)
show_queue(lab, "orders")

# %% [markdown]
# One attempt, because the default time limit of 3 seconds is for the whole call, and the first lost answer uses it up.
# The shop gets an error for an order that is stored.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Time is virtual.** The order of events and the delays are RocketMQ's. A real broker under load is late by more
#   than 100 ms, and a level's queue that is full of messages takes time to empty.
# - **The bank pays twice if it is asked twice.** None of the listeners here is idempotent (幂等). Retries, restarts and
#   lost answers all need it.
# - **A kill is not a power cut.** Under `ASYNC_FLUSH` a power cut can lose waiting copies (lab 01).
# - **These worlds pull.** With POP ([lab 15a](15a-leased-not-owned.ipynb)), the broker itself keeps an invisible time
#   for each message, and the timer wheel ([lab 08c](08c-at-any-second.ipynb)) knows delays of any length.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | in order | `ConsumeMessageOrderlyService.processConsumeResult`, `checkReconsumeTimes` |
# | the sweep | `ProcessQueue.cleanExpiredMsg` |
# | giving back as a new message | `sendMessageBackAsNormalMessage`, at the broker `SendMessageProcessor.handleRetryAndDLQ` |
# | the producer's retries | `DefaultMQProducerImpl.sendDefaultImpl` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | without a status the message is sent again at once | after 15 to 30 minutes, by the consumer's own sweep; if the process crashes, from the offset, with the same count |
# | `reconsume_times >= 2` means three retries | two retries, three deliveries |
# | an orderly failure goes to the retry topic | it stays where it is, once a second, without end |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab07.meeting
# **1.** The five sentences of the meeting in the first part: for each, what would you show your colleagues?
#
# answer: *One second*: the axis of a retry, its first wait is 10 s. *The retry topic*: the property in the unit, which
#   says `orders`. *Gone after 4 h 46 min*: the dead letter, which is still in its queue. *Three retries*: the table of
#   the deliveries, two of which come from `%RETRY%billing`. *Sent again at once*: the call that is `RUNNING`, and the
#   offset that stays at it; the ninety-nine came from the restart.

# %% [reflection] lab07.one_minute
# **2.** A colleague proposes `consumeTimeout = 1` minute instead of exercise 5. What does it change, and what not?
#
# answer: The stuck order holds the offset for two minutes at most instead of thirty, so a restart replays less. It does
#   not free the thread: the call still hangs, and twenty such orders stop billing. And an order that takes 70 seconds
#   for a good reason is now handled twice.

# %% [markdown] tags=["reading"]
# ## Next
#
# The log can tell how much of a day was retries: in [lab 10](10a-spark-reads-the-broker.ipynb) Spark counts them. All
# labs: [index](index.ipynb).
