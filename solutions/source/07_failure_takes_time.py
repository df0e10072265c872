# %% [markdown]
# # Lab 07: Failure takes time
#
# ## Why
#
# 14:02. The bank does not answer for one order out of a hundred. The other ninety-nine are paid within seconds. At 14:12
# somebody restarts billing, to be on the safe side. At 14:13 ninety-nine customers are charged a second time.
#
# The meeting next morning knows why:
#
# - "No status came, so RocketMQ sent it again at once."
# - "Retries start after one second. That was too fast for the bank."
# - "It is in the retry topic, the property `RETRY_TOPIC` says so."
# - "After 4 hours and 46 minutes it would have been gone anyway."
# - "And we do stop after three retries: `if message.reconsume_times >= 2`."
#
# None of the five sentences is true. In this lab you see what happens instead, with a watch in your hand, and you write a
# billing service to which that morning cannot happen.

# %% [markdown]
# ## Objectives
#
# About 180 minutes, in two sittings if you like: *Stop sooner* is a good place to come back to. You need
# [lab 00](00-a-messages-day.ipynb); the bytes of [lab 01](01-what-the-broker-writes.ipynb) help, but you can do without.
# When you are done you can
#
# - say when a failed message comes back, where it is meanwhile, and what is written in it;
# - find a dead letter and give it back to the right group, once;
# - say what an orderly failure, a hanging listener and a dying process do, which is three different things;
# - write a listener that gives up in time and holds nobody up.

# %%
from mqlab import (
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    SUCCESS,
    SUSPEND_CURRENT_QUEUE_A_MOMENT,
    Message,
    play,
)
from mqlab.teach import check, hint, predict, reveal
from mqlab.views import Table
from mqlab.views.timeline import Timeline, after

# %% [markdown]
# ## The bank
#
# Billing has to ask a bank for the money of each order. Our bank is a function. What it does to an order is written in
# the order itself, a word for each try, so that you can make it as bad as you like: `no 40` means that it refuses at the
# first try and pays after 40 ms at the second; `hang` means that no answer comes. The last word is for all later tries
# as well, so a single `no` is a no for ever. `reconsume_times` says how many tries there were before this one.


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


# %% [markdown]
# And this is how a day begins here: billing starts, half a minute passes, then the shop sends one order for each
# behaviour of the bank. (In this half minute billing finds out about a second topic that it reads; it takes 21 seconds to
# do so. You will meet it soon.)


# %%
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


# %% [markdown]
# ## One failure
#
# A listener says "not now" by returning `RECONSUME_LATER`. An exception says the same, and so does returning nothing. The
# order then goes back to the broker, which keeps it for a while (消息回退, 消息重试). How long? The broker has a table of delays,
# level 1 to level 18 (延迟级别):
#
# `1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h`
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.first_retry", 10)
### STARTER
# predict("lab07.first_retry", ...)
### END SOLUTION

# %%
### BEGIN SOLUTION
predict("lab07.retry_topic", "orders")
### STARTER
# predict("lab07.retry_topic", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
def simple(messages, context):
    ask_bank(messages[0], context)
    return CONSUME_SUCCESS


def one_failure(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "no 40")
    lab.run_for("20s")


# %%
def deliveries(lab):
    """When, from where, and with what result billing's listener was called."""
    rows = lab.deliveries("billing", absences=False)  # calls only, nothing filtered
    for row in rows:
        yield {
            "after": after(row.started_ms - rows[0].started_ms),
            "read from": row.message_queue.topic,
            "queue_offset": row.queue_offset,
            "topic it sees": row.topic,
            "reconsume_times": row.reconsume_times,
            "status": row.status,
        }


no_trace = {"enable_trace": False}  # nothing but orders in the log
lab = play(one_failure, seed=7, client=no_trace)
Table(deliveries(lab))

# %%
first, second = lab.deliveries("billing", absences=False)
reveal("lab07.first_retry", (second.started_ms - first.ended_ms) // 1000)

# %% [markdown]
# ### Look
#
# The second delivery was read from another topic, `%RETRY%billing`: the **retry topic** (重试队列) of the group. Every group
# has one, from its first heartbeat on, and every member reads it beside its own topics. Yet the listener was told
# `orders`. `reconsume_times` (重试次数) is 0 at the first delivery and 1 at the second.
#
# This is why our day begins with half a minute of waiting. A group that is new to the cluster has no retry topic before its
# first heartbeat, and begins to read it when it divides its queues for the second time, 21 seconds after it started. An
# order that fails in the first seconds of a new group therefore comes back after twenty seconds, not ten: at a real
# cluster, and here. When the group starts again, its retry topic is there, and ten seconds are ten seconds.
#
# Where was the order in between? Follow it down:

# %%
lab.timeline(first.msg_id)

# %% [markdown]
# Count the blue squares "stored": the broker wrote three units for two deliveries. (A unit is one message as it stands in
# the commit log, at the byte that is its place.) Here they are in the order of the log, and then the properties that say
# what they are for:


# %%
def copies(lab):
    """The units of the log: where each is, and for which try."""
    for unit in lab.store().messages():
        place = {"place": unit.physical_offset, "topic": unit.topic}
        yield place | {
            "queue_id": unit.queue_id,
            "reconsume_times": unit.reconsume_times,
        }


Table(copies(lab))


# %%
def bookkeeping(lab):
    """What is written in each unit about retries."""
    names = ["RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "DELAY"]
    names += ["REAL_TOPIC", "REAL_QID", "WAIT"]
    for unit in lab.store().messages():
        told = {name: unit.properties.get(name) for name in names}
        if told["ORIGIN_MESSAGE_ID"]:
            told["ORIGIN_MESSAGE_ID"] = "…" + told["ORIGIN_MESSAGE_ID"][-4:]
        yield {"place": unit.physical_offset} | told


Table(bookkeeping(lab))

# %%
waiting = next(unit for unit in lab.store().messages("SCHEDULE_TOPIC_XXXX"))
reveal("lab07.retry_topic", waiting.properties["RETRY_TOPIC"])

# %% [markdown]
# 1. the order as the shop sent it;
# 2. a copy that **waits**, in a topic of the broker's own (延迟主题), `SCHEDULE_TOPIC_XXXX`. `DELAY` is its level, 3; queue 2
#    is the one for level 3. `REAL_TOPIC` and `REAL_QID` say where it goes when its time has come;
# 3. a copy of the copy in the retry topic, which billing reads like any other message.
#
# `ORIGIN_MESSAGE_ID` is the `offset_msg_id` of the unit that failed first: the broker's address and a place in its log, of
# which you see the last digits. `WAIT` says whether somebody waits until the unit is safe on the disk: the shop did, for
# a copy nobody does.
#
# The order as it was sent is done. Look for *billing: next of orders 0 is 1* in the timeline: billing's offset (消费位点) in
# `orders` has moved behind the order while its copy still waits. A retry holds nobody up. That is the point of the whole
# machinery, and the thing to remember for the end of this lab.
#
# ### Where does it wait?
#
# Each level has a queue of its own. All messages of a queue wait equally long, so the first one stored is the first one
# due, and the broker needs to look at one entry a queue. When is it due? A queue's entry has 20 bytes: the place of a unit,
# its size, and eight bytes that elsewhere hold a hash of the message's tag. In this topic they hold a time:

# %%
from mqlab.views.hexdump import Hexdump

entry = lab.store().queue("SCHEDULE_TOPIC_XXXX", 2).hexdump(0)
due_ms = entry.fields[2].value
print("stored", waiting.store_timestamp, " due", due_ms)
print("waits ", due_ms - waiting.store_timestamp, "ms")
Hexdump(entry.fields)


# %% [markdown]
# This is why there are eighteen levels and not any delay you like. A producer may use them too, with
# `delay_time_level=`. All of them, and one that does not exist:


# %%
def all_levels(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, lambda messages, context: CONSUME_SUCCESS)
    shop = lab.producer("shop")
    for level in [*range(1, 19), 99]:
        order = Message("orders", b"a book", keys=f"level-{level}")
        order.delay_time_level = level
        shop.send(order)
    lab.run_for("2h")
    lab.run_for("1s")


lab = play(all_levels, seed=7, client=no_trace)


# %%
def waiting_times(lab):
    arrived = {}
    for unit in lab.store().messages("orders"):
        arrived[unit.keys] = unit.store_timestamp
    for unit in lab.store().messages("SCHEDULE_TOPIC_XXXX"):
        waited = after(arrived[unit.keys] - unit.store_timestamp)
        yield {"asked": unit.keys, "queue_id": unit.queue_id, "waited": waited}


Table(waiting_times(lab))

# %% [markdown]
# Level 99 became level 18. Some waited up to 100 ms longer than they should: the broker looks ten times a second.

# %% [markdown]
# ### Step through a failure
#
# **Step** goes on to the next thing that happened in the first story, **Back** takes it back. Under each stop stand the
# three queues that take part, as they are in their files at that moment. Find the stop at which billing is done with the
# order in `orders` and the order is nowhere but in the waiting queue.

# %% tags=["explorer"]
from mqlab.views.queue import show_queue
from mqlab.widgets import explore


def queues_now(lab):
    places = [("orders", 0), ("SCHEDULE_TOPIC_XXXX", 2), ("%RETRY%billing", 0)]
    there = lab.store().topics()
    return [show_queue(lab, *place) for place in places if place[0] in there]


explorer = explore(one_failure, seed=7, show=queues_now, client=no_trace)
explorer

# %% [markdown]
# The same stops as a table, for a page that cannot be clicked:

# %%
explorer.stepper.table()

# %% [markdown]
# It is the stop with *in memory: next of orders 0 is 1*. Billing tells the broker five seconds later.
#
# ### Until it is dead
#
# Now an order that the bank will never pay, and a consumer that allows two retries (`max_reconsume_times=2`). All units
# of the log:


# %%
def hopeless(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple, max_reconsume_times=2)
    send_orders(lab, "no")
    lab.run_for("1m")


lab = play(hopeless, seed=7, client=no_trace)
Table(copies(lab))

# %%
Table(bookkeeping(lab))

# %% [markdown]
# After its second retry the order failed once more and became a **dead letter** (死信): the last unit. No waiting this
# time, it goes there at once. See which properties change from failure to failure, and which are set once and stay.
#
# ### Exercise 1: build the send-back rewrite
#
# To give a message back, the consumer sends `CONSUMER_SEND_MSG_BACK` with four things: the place of the message, its
# group, its `max_reconsume_times`, and a level. The level is 0, unless the listener has asked for another one
# (`context.delay_level_when_next_consume`). Write what the broker does then:
#
# | | it waits | it is dead |
# |---|---|---|
# | when | else | it had its `max_reconsume_times` retries, or the level is below 0 |
# | level | 0: the broker decides, 3 + `reconsume_times`; else as asked; never above 18 | |
# | topic and queue | `SCHEDULE_TOPIC_XXXX`, the level's | `%DLQ%` and the group, 0 |
#
# The rest is in the two tables above: compare a message with the copy that came of it. What is not in them stays as it is
# in the message.


# %%
# exercise: lab07.rewrite
def give_back(message, group, max_reconsume_times, delay_level):
    """The unit that the broker writes for a message given back.

    message: as it stands in the log: topic, reconsume_times, properties, offset_msg_id.
    Returns a tuple of four: topic, queue_id, reconsume_times, properties (all texts).
    """
    ### BEGIN SOLUTION
    properties = dict(message.properties)
    properties.setdefault("RETRY_TOPIC", message.topic)
    properties.setdefault("ORIGIN_MESSAGE_ID", message.offset_msg_id)
    properties["WAIT"] = "false"
    count = message.reconsume_times
    if count >= max_reconsume_times or delay_level < 0:
        properties["DELAY"] = "0"
        return f"%DLQ%{group}", 0, count + 1, properties
    level = min(delay_level or 3 + count, 18)
    properties["DELAY"] = str(level)
    properties["REAL_TOPIC"] = f"%RETRY%{group}"
    properties["REAL_QID"] = "0"
    return "SCHEDULE_TOPIC_XXXX", level - 1, count + 1, properties
    ### END SOLUTION


# %%
check("lab07.rewrite")

# %% [markdown]
# ## The whole schedule
#
# The same order, and nothing configured. Take your time for the two questions: all you need is the table of delays, and
# which of them comes first.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.calls", 17)
### STARTER
# predict("lab07.calls", ...)
### END SOLUTION

# %%
### BEGIN SOLUTION
predict("lab07.minutes", 285)
### STARTER
# predict("lab07.minutes", ...)
### END SOLUTION

# %% [markdown]
# ### Run
#
# Five hours, in virtual time.


# %%
def five_hours(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "no")
    lab.run_for("5h")


lab = play(five_hours, seed=7, client=no_trace)
Table(deliveries(lab))

# %%
rows = lab.deliveries("billing", absences=False)
reveal("lab07.calls", len(rows))

# %%
whole_ms = rows[-1].started_ms - rows[0].started_ms
print("from the first delivery to the last:", after(whole_ms))
reveal("lab07.minutes", whole_ms // 60_000)

# %% [markdown]
# ### Look
#
# Only the moments at which the listener is called, a waiting copy is released, and the order dies:

# %%
kinds = ("listener.started", "message.delivered_late", "message.dead")
history = lab.timeline(rows[0].msg_id).moments
Timeline([moment for moment in history if moment.kind in kinds])

# %% [markdown]
# ### Exercise 2: compute the whole schedule
#
# The table is a setting of the broker (`messageDelayLevel`), the number of retries one of the consumer
# (`maxReconsumeTimes`; -1, the default, means 16). Write `schedule` for any table and any number. The listener fails at
# once, and the broker is punctual.


# %%
# exercise: lab07.schedule
def schedule(levels, max_reconsume_times):
    """When a message that always fails is retried.

    levels: a text such as "1s 5s 10s 30s 1m"; units s, m, h, d. Returns a list with a
    tuple for each retry: (its delay level, whole seconds since the first failure).
    """
    ### BEGIN SOLUTION
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    delays = [int(text[:-1]) * units[text[-1]] for text in levels.split()]
    retries = 16 if max_reconsume_times == -1 else max_reconsume_times
    planned, second = [], 0
    for failed in range(retries):
        level = min(3 + failed, len(delays))
        second += delays[level - 1]
        planned.append((level, second))
    return planned
    ### END SOLUTION


# %%
check("lab07.schedule")

# %% [markdown]
# ## Dead letters
#
# Nobody was told that the order is dead. It lies in a topic of its own, `%DLQ%billing` (死信队列), that came into being
# with this first dead letter, and nobody reads it. Somebody has to go and look. `lab.admin` has the verbs of RocketMQ's
# command line tool, `mqadmin`:

# %%
from mqlab.views.message import MessageView

(dead,) = lab.admin.query_dlq("billing")
print("five hours ago its id was", rows[0].msg_id)
MessageView(dead)

# %% [markdown]
# Its id is the same: the unique id (`UNIQ_KEY`) stays over all copies; only `offset_msg_id`, a place, is another one for
# each. Let us say that the bank has changed its mind, and an operator gives the order back.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.resent", 0)
### STARTER
# predict("lab07.resent", ...)
### END SOLUTION

# %% [markdown]
# ### Run

# %%
before = len(lab.deliveries("billing", absences=False))
given_back = lab.admin.resend_dlq("billing", dead.msg_id)
lab.run_for("1m")
given_back

# %%
new = lab.deliveries("billing", absences=False)[before:]
reveal("lab07.resent", new[0].reconsume_times)

# %%
Table(new, columns=["started_ms", "message_queue", "reconsume_times", "status"])

# %% [markdown]
# The bank has not changed its mind, and here we go again, in the retry topic, for 4 h 45 min. And then?

# %%
lab.run_for("5h")
names = ["queue_offset", "store_timestamp", "physical_offset", "msg_id"]
letters = lab.admin.query_dlq("billing")
Table({name: getattr(letter, name) for name in names} for letter in letters)

# %% [markdown]
# Two dead letters with one id: **the old one is still there**. A queue of dead letters is a log, too; nothing is taken out
# of it.
#
# ### Exercise 3: redrive a queue of dead letters (死信重投)
#
# Billing had a bug, it is repaired, and the dead letters are to be given back. Write it yourself, with nothing but a
# producer: to give a message back is to send a message. Beware:
#
# - *audit* reads `orders` as well, and has handled all of them.
# - Some messages have died twice.
# - Some died in a time when billing read in order. An orderly consumer gives up by sending a new message to the retry
#   topic, with two properties for the broker to compare: `RECONSUME_TIME` and `MAX_RECONSUME_TIMES`. They are still there.
#
# `Message(topic, body, properties=...)` makes a message with all properties at once: tags, keys and id are among them.


# %%
# exercise: lab07.redrive
def redrive(dead, producer, group):
    """Give each message among the dead letters back to its group, once.

    dead: all letters of %DLQ%group, oldest first (topic, body, properties, msg_id).
    Sends with producer.send(message); returns nothing.
    """
    ### BEGIN SOLUTION
    former_life = {
        "RECONSUME_TIME",
        "MAX_RECONSUME_TIMES",
        "DELAY",
        "REAL_TOPIC",
        "REAL_QID",
    }
    for letter in {letter.msg_id: letter for letter in dead}.values():
        kept = {
            name: value
            for name, value in letter.properties.items()
            if name not in former_life
        }
        producer.send(Message(f"%RETRY%{group}", letter.body, properties=kept))
    ### END SOLUTION


# %%
check("lab07.redrive")

# %% [markdown]
# ## Stop sooner
#
# Almost five hours are a long time for a customer. Most services give up sooner, and want to know about it.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.third", 2)
### STARTER
# predict("lab07.third", ...)
### END SOLUTION

# %% [markdown]
# ### Run


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
rows = list(deliveries(lab))
Table(rows)

# %%
reveal("lab07.third", sum(row["read from"] == "%RETRY%billing" for row in rows))

# %% [markdown]
# Three deliveries: one, and two retries. And then `CONSUME_SUCCESS`, to be rid of the order: RocketMQ now believes that
# all is well, and nobody will ever hear of it again. It has to be stored first, where a human looks.
#
# ### Exercise 4: stop after three deliveries and store for a human
#
# `three_times(lab)` makes billing's listener. `lab.database("billing").connect()` is a connection of Python's `sqlite3` to
# a database with this table:
#
# `CREATE TABLE for_a_human (msg_id TEXT PRIMARY KEY, body BLOB NOT NULL)`
#
# `with connection: connection.execute(sql, values)` writes and commits. Be prepared for the worst: billing may be killed
# right after it has stored an order, before the broker hears of its success. A function that makes a function looks so:
#
# ```python
# def outer(lab):
#     def inner(messages, context):
#         ...  # may use lab, too
#
#     return inner
# ```


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

# %% [markdown]
# ## In order, a failure is something else
#
# Some messages must not overtake each other: *created*, *paid*, *shipped*. For them there is orderly consumption
# (顺序消费): one message of a queue at a time, and the listener answers `SUCCESS` or `SUSPEND_CURRENT_QUEUE_A_MOMENT` (挂起). What
# would the retry topic do to their order?
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.orderly", "never")
### STARTER
# predict("lab07.orderly", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
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
# ### Look
#
# Once a second, from the queue itself: nothing goes to the broker and nothing is written. How do you see that?

# %%
Table(copies(lab))

# %% [markdown]
# Two units, as sent. So the count is nowhere but in the memory of this consumer. What if it is restarted?

# %%
lab.kill("billing-1")
lab.start("billing-1")
lab.run_for("30s")
Table(list(deliveries(lab))[len(rows) - 2 : len(rows) + 2])

# %% [markdown]
# It begins at 0 again. With a limit, `max_reconsume_times=3`, the queue goes on:


# %%
def orderly_three(lab):
    orderly(lab, max_reconsume_times=3)


lab = play(orderly_three, seed=7, client=no_trace)
Table(deliveries(lab))

# %%
letter = lab.admin.query_dlq("billing")[0]
wanted = ("RETRY_TOPIC", "RECONSUME_TIME", "MAX_RECONSUME_TIMES")
print({name: letter.properties[name] for name in wanted})

# %% [markdown]
# order-0 is a dead letter, without a single wait of ten seconds. And order-1 was paid although order-0 never was: if that
# is wrong for your orders, do not set the limit.

# %% [markdown]
# ## No answer at all
#
# Back to 14:02. The bank does not refuse, it does not answer. The listener does not fail, it does not return.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.no_status", "half an hour")
### STARTER
# predict("lab07.no_status", ...)
### END SOLUTION

# %% [markdown]
# ### Run
#
# order-0 hangs at its first try only. (billing has twenty threads: the others do not have to wait for it.)


# %%
def hanging(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "hang 40", "40", "40")
    lab.run_for("35m")


lab = play(hanging, seed=7, client=no_trace)
Table(deliveries(lab))

# %%
rows = lab.deliveries("billing", absences=False)
first = next(row for row in rows if row.status == "RUNNING")
second = next(row for row in rows if row.reconsume_times == 1)
minutes = (second.started_ms - first.started_ms) / 60_000
print(f"delivered again after {minutes:.1f} minutes")
reveal("lab07.no_status", "half an hour" if 15 <= minutes <= 31 else "never")

# %% [markdown]
# ### Look
#
# `RUNNING` stands for a call that has not returned. Why half an hour? Billing looks 15 minutes after its own
# start: order-0 came 30 seconds later, so it is not 15 minutes old yet. At the next look, another 15 minutes later, it is.
#
# And where was the offset of the group meanwhile? It says which message is the first that is not done, so it cannot pass
# order-0 (the first row is from before the order came; the second is about the retry topic, which is empty):

# %%
moves = [
    {"after": after(step.now_ms - first.started_ms), **values}
    for step, values in lab.journal.changes("offset.updated")
]
Table(moves, columns=["after", "queue", "commit_offset", "before"])

# %% [markdown]
# It jumped from 0 to 3 half an hour later, when the consumer's own sweep (消费超时, `consumeTimeout`) had given order-0 back.
# The sweep does not stop the hanging call: one of the twenty threads is still waiting for the bank.
#
# ### Predict
#
# 14:12, ten minutes after it began. A hundred orders now, one of them hangs.

# %%
### BEGIN SOLUTION
predict("lab07.restart", 100)
### STARTER
# predict("lab07.restart", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
def that_day(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
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
# Not a retry: nothing was given back, so `reconsume_times` is 0 and nothing waits. And the order that hung hangs again.

# %%
paid = [row.msg_id for row in rows if row.status == "CONSUME_SUCCESS"]
print("charged twice:", len(paid) - len(set(paid)), "customers")
columns = ["topic", "broker_offset", "consumer_offset", "lag"]
Table(lab.progress("billing"), columns=columns)

# %% [markdown]
# One minute after the restart the offset of the group (`consumer_offset`) is still 0, at the order that hangs. What would
# one more restart do?

# %% [markdown]
# ### Exercise 5: keep one stuck message from replaying ninety-nine
#
# `pay` is billing's listener. Now the bank promises: it answers within 3 seconds, or not at all. You promise: whenever
# billing dies, only orders of the last 15 seconds come again. The consumer reports its offset every 5 seconds, so no call
# of the listener may take longer than 10. Nothing may get lost.


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

# %% [markdown]
# ## Break it: the order that kills its process
#
# An order makes billing crash: a bug in a library, too little memory. The machine starts it again, as good machines do.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.killed", 0)
### STARTER
# predict("lab07.killed", ...)
### END SOLUTION

# %% [markdown]
# ### Run


# %%
def killer(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing(lab, simple)
    send_orders(lab, "400")
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
units = list(lab.store().messages())
print(len(rows), "deliveries, and", len(units), "unit in the log")
reveal("lab07.killed", rows[5]["reconsume_times"])

# %% [markdown]
# ### Look
#
# Twenty crashes, no retry, no dead letter. It is not even slow: there is no wait of ten seconds, as nothing was given back.
# Had billing died with nineteen other orders in its threads, they would have come again as well, each time.
#
# ### Exercise 6: survive the order that kills its process
#
# `never_again(lab)` makes billing's listener, anew in each life of the process: your cell is run again, and its variables
# are what they were when it was first run. All that `lab` has here is `database`, and the one of exercise 4 has a second
# table:
#
# `CREATE TABLE started (msg_id TEXT PRIMARY KEY, times INTEGER NOT NULL)`
#
# What a dying process has not committed is rolled back, and none of its code runs any more, no `finally` either. There is
# one thread here, so only one order is ever under way. Some orders are refused several times, some are hit by a crash
# once or twice by chance: these are no killers.


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

# %% [markdown]
# ## Break it: the broker is away
#
# Billing wants to give an order back, and nobody takes it. First it asks the broker, then it tries to send the order to
# the retry topic as a new message, and then it keeps the order and tries again itself, every five seconds:


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

# %% [markdown]
# As long as it is read from `orders`, the order is in billing's memory only, and holds the offset. At the fourth try the
# broker is back, and takes the order. But look at the count behind it: the broker knows its own unit of the log only, and
# there the order had not been retried. What billing counted in its memory is forgotten.

# %% [markdown]
# ## The shop retries as well
#
# A producer that gets no answer sends again (发送重试): `retry_times_when_send_failed=2` is its default. Here the broker takes
# every order, but its answers are lost on the way, and the shop waits at most 500 ms for each of them.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab07.sends", 3)
### STARTER
# predict("lab07.sends", ...)
### END SOLUTION

# %% [markdown]
# ### Run
#
# order-0 is sent while all is well; then three answers are lost.


# %%
def lost_answers(**settings):
    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        shop = lab.producer("shop", retry_times_when_send_failed=2, **settings)
        shop.send(Message("orders", b"a book", keys="order-0"))
        lab.run_for("5s")
        lab.drop("broker-a", "shop-1", count=3)
        try:
            print(shop.send(Message("orders", b"a book", keys="order-1")))
        except Exception as error:
            print(type(error).__name__, error)
        lab.run_for("1s")

    return play(story, seed=7, client=no_trace)


# %%
def stored(lab):
    for unit in lab.store().messages("orders"):
        yield {"keys": unit.keys, "place": unit.physical_offset, "msg_id": unit.msg_id}


lab = lost_answers(send_msg_max_timeout_per_request=500)
Table(stored(lab))

# %%
reveal("lab07.sends", sum(unit["keys"] == "order-1" for unit in stored(lab)))

# %% [markdown]
# Each of the three is stored, each will be delivered, and all have one unique id: that is how billing can notice. Now the
# same with a shop as it comes, without the 500 ms:

# %%
lab = lost_answers()
Table(stored(lab))

# %% [markdown]
# One attempt, no retry: by default the time limit of 3 seconds is for the whole call, and the first lost answer uses it
# up. Either way the shop gets an error for an order that is stored: an error means *not known*, not *no*.

# %% [markdown]
# ## What this does not prove
#
# - **Time is virtual.** The order of events and the delays are RocketMQ's; a real broker under load is late by more than
#   100 ms, and a level's queue that is full of messages takes time to empty.
# - **The bank pays twice if it is asked twice.** None of the listeners here is idempotent (幂等). Retries, restarts and
#   lost answers all need it: lab 04.
# - **A kill is not a power cut.** Under `ASYNC_FLUSH` the machine's death can take waiting copies along (lab 01).
# - **Not modelled:** POP consumption, in which the broker itself keeps an invisible time for each message, and the timer
#   wheel, which knows delays of any length. [What is not modelled](not-modelled.ipynb) has the whole list.
# - `lab.admin.resend_dlq` sends to the retry topic. RocketMQ's Dashboard hands a dead letter to one online consumer
#   directly instead, and leaves no trace when that fails again.

# %% [markdown]
# ## RocketMQ does it so
#
# | what | where in RocketMQ |
# |---|---|
# | a listener's result | `ConsumeMessageConcurrentlyService.processConsumeResult` |
# | giving back | `DefaultMQPushConsumerImpl.sendMessageBack`, request `CONSUMER_SEND_MSG_BACK` (36) |
# | the rewrite | `AbstractSendMessageProcessor.consumerSendMsgBack` |
# | waiting | `HookUtils.handleScheduleMessage`, `ScheduleMessageService` |
# | the listener sees the original topic | `DefaultMQPushConsumerImpl.resetRetryAndNamespace` |
# | giving back as a new message | `sendMessageBackAsNormalMessage`, at the broker `SendMessageProcessor.handleRetryAndDLQ` |
# | in order | `ConsumeMessageOrderlyService.processConsumeResult`, `checkReconsumeTimes` |
# | the sweep | `ProcessQueue.cleanExpiredMsg` |
# | the producer's retries | `DefaultMQProducerImpl.sendDefaultImpl` |
#
# Where you may read it differently:
#
# | you may read | it is |
# |---|---|
# | 16 retries take 4 h 46 min | 4 h 45 min 40 s, and 17 deliveries |
# | retries come after 1 s, 5 s, 10 s, … | after 10 s, 30 s, 1 min, …: level 3 is the first |
# | without a status the message is sent again at once | after 15 to 30 minutes, by the consumer's own sweep; if the process dies, from the offset, with the same count |
# | `RETRY_TOPIC` holds the retry topic | the original topic |
# | `reconsume_times >= 2` means three retries | two retries, three deliveries |
# | the retry topic is `%RETRY%group@group` | `%RETRY%group`; the form with `@` is a key of the offset table |
# | dead letters cannot be consumed | they can since 4.9.2: subscribe to `%DLQ%group` like to any topic |
# | after 16 failures a message is dropped | it is in `%DLQ%group`, until its log file goes |
# | the group's `retryMaxTimes` decides | the Java client sends its own number, which wins |
# | an orderly failure goes to the retry topic | it stays where it is, once a second, without end |

# %% [markdown]
# ## Reflect
#
# - Your bank is away for two hours every Sunday night. Which orders are paid when, and which are dead on Monday?
# - A retry overtakes: order-1 is paid while order-0 waits. For which of your messages does that matter?
# - The five sentences of the meeting: for each, what would you show your colleagues?
# - Somebody proposes `consumeTimeout = 1` minute instead of exercise 5. What does it change, and what not?

# %% [markdown]
# ## Next
#
# You know how long a failure takes. Everything here went through the commit log, so the log can tell how much of a day was
# retries: in [lab 10](10-spark-reads-the-broker.ipynb) Spark counts them. Before it:
# [lab 01](01-what-the-broker-writes.ipynb), if you have not opened the files yet. All labs: [index](index.ipynb).
