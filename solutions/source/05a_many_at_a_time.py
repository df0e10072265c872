# %% [markdown] tags=["reading"]
# # 05a Concurrency: many at a time
#
# ## Why
#
# A customer gets an empty parcel. The log of the warehouse says: *shipped* at 10:00:00.150, *paid* at 10:00:00.300,
# *created* at 10:00:00.600. All three events of the order went to one queue, in the right order. Billing reads that
# queue with twenty threads.
#
# The meeting next morning knows why:
#
# - "A queue is first in, first out. It must have been the producer."
# - "Then we set the maximum of threads to 64, so that nothing has to wait."
# - "Our listener threw no exception, so RocketMQ knows that all was well."
# - "We hand the work to another thread and return at once. That is faster, and it is done anyway."
#
# None of the four helps. The [second part](05b-one-at-a-time.ipynb) puts the events back in order.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb). Afterwards you can
#
# - say how many calls of a listener run at once, and which settings decide that;
# - report a batch of which a part has failed, so that nothing is lost and little is done twice;
# - see whether a listener reports *done* for something that is not done.

# %%
from collections import Counter

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import (
    answer,
    check,
    hint,
    mybroker,
    old_questions,
    predict,
    reveal,
    show_me,
)
from mqlab.course.widgets import crash_matrix, lanes_board
from mqlab.lab.views import Bars, Curve, Table

# %%
old_questions("lab05")

# %% [markdown]
# ## Twenty threads and one queue
#
# The warehouse needs 600 ms to create an order, 300 ms to note that it is paid, and 150 ms to ship it. The shop sends
# the three events of an order, one after another, to the only queue of the topic.


# %% tags=["parameter"]
TAKES = {"created": "600ms", "paid": "300ms", "shipped": "150ms"}
no_trace = {"enable_trace": False}  # nothing but orders in the log


def warehouse(messages, context):
    for message in messages:
        context.sleep(TAKES[message.tags])
    return CONSUME_SUCCESS


# %%
def read(lab, listener=warehouse, name="billing-1", **settings):
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("25s")


def send_lives(lab, orders=1):
    shop = lab.producer("shop")
    for step in ("created", "paid", "shipped"):
        for number in range(orders):
            order = Message("orders", b"a book", tags=step, keys=f"order-{number}")
            shop.send(order)


# %% [prediction] lab05.fifo
# The three events are in one queue in the order in which they were sent. Which of them is done first?
#
# - created: *created*; a queue is first in, first out
#   > They leave the queue in this order. But each goes to a free thread, and three threads work at the same time.
# - paid: *paid*; the next one begins when a thread is free, and the second thread is faster
#   > Seventeen more threads are free: all three begin at the same moment.
# - shipped: *shipped*, because it takes the shortest time
#   = All three begin at once, each in a thread of its own. The shortest ends first.
# note: The queue is first in, first out. After it comes a pool of threads (线程池).
# later: The events *created*, *paid* and *shipped* of an order are in one queue in the order in which they were
#   sent. A concurrent listener needs the longest time for the first and the shortest for the last. Which of them is
#   done first?


# %% tags=["parameter"]
def one_order(lab, **settings):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    read(lab, **settings)
    send_lives(lab)
    lab.run_for("10s")


# %%
def calls(lab):
    """Each call of billing's listener, in ms after the first one began."""
    rows = lab.deliveries("billing", absences=False)
    tags = {one.msg_id: one.tags for one in lab.store().messages("orders")}
    return [
        {
            "event": tags[row.msg_id],
            "queue_offset": row.queue_offset,
            "begins": row.started_ms - rows[0].started_ms,
            "ends": row.ended_ms - rows[0].started_ms,
        }
        for row in rows
    ]


lab = play(one_order, seed=7, client=no_trace)
Table(calls(lab))

# %%
reveal("lab05.fifo", min(calls(lab), key=lambda call: call["ends"])["event"])

# %% [markdown]
# How many run at once?

# %% [prediction] lab05.pool
# A member has `consume_thread_min=20` and `consume_thread_max=64`. 200 orders wait, and each takes a second. How many
# does it work on at the same time?
#
# - 64: 64; the pool grows when there is more work than threads
#   > A Java pool grows only when its waiting line is full. This line has no limit, so it is never full.
# - 20: 20
#   = The pool keeps its minimum for ever, because its waiting line has no limit. `consume_thread_max` has no effect.
# - 1: one; there is one queue
#   > One queue is pulled by one member. That member hands its messages to all of its threads.
# note: Textbooks say 20 and 60, or 20 and 64. In 5.3.3 both defaults are 20; in 4.4 the maximum was 64 and never
#   reached.


# %% tags=["parameter"]
def a_second(messages, context):
    context.sleep("1s")
    return CONSUME_SUCCESS


def backlog(lab, count=200, listener=a_second, **settings):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    shop = lab.producer("shop")
    for number in range(count):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    read(lab, listener, **settings)


# %%
def at_once(rows):
    """The largest number of calls under way at the same time."""
    begun = [(row.started_ms, 1) for row in rows]
    ended = [(row.ended_ms or 10**15, -1) for row in rows]
    now = most = 0
    for _, change in sorted(begun + ended):
        now += change
        most = max(most, now)
    return most


# %%
lab = play(
    lambda lab: backlog(lab, consume_thread_min=20, consume_thread_max=64),
    seed=7,
    client=no_trace,
)
reveal("lab05.pool", at_once(lab.deliveries("billing", absences=False)))

# %% [prediction] lab05.pools
# The group has two members, `billing-1` and `billing-2`, with 20 threads each. How many orders does it work on at the
# same time?
#
# - 20: 20; the pool belongs to the group
#   > Each consumer instance has a pool of its own, even if two of them are in one process.
# - 40: 40
#   = The pool belongs to the instance. With every member that joins, twenty more calls reach the database.
# note: A database gets threads times members. Remember that when you scale out.


# %% tags=["parameter"]
def two_members(lab):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    for number in (1, 2):
        read(lab, a_second, name=f"billing-{number}")
    shop = lab.producer("shop")
    for number in range(200):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("20s")


# %%
lab = play(two_members, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
most = {
    name: at_once([row for row in rows if row.client == name])
    for name in ("billing-1", "billing-2")
}
Bars({**most, "both": at_once(rows)}, unit="calls at once")

# %%
reveal("lab05.pools", at_once(rows))

# %% [markdown]
# Six orders, eighteen events, one queue. Change the number of threads and the batch, and see which events overtake (▲).
# Then tick the box, so that one event fails again and again. Which events does that hold back?

# %% tags=["explorer"]
lanes_board()

# %% [answer] lab05.fewest
# ### Your turn: nothing overtakes
#
# How many threads may billing have at most, with one queue and a batch of 1, so that nothing overtakes? Set it, and
# answer with how many **seconds** all eighteen events then take, rounded to a whole number.
#
# wrong parallel: That is how long twenty threads take.
# wrong four: That is how long four threads take, and with those events overtake.
# wrong: The last event's time is in the table under the picture, and in `few.done_s`.
# note: One thread keeps the order, as long as nothing fails, but then the shop's orders wait for each other. The second
#   part does better.

# %% tags=["explorer"]
few = lanes_board(threads=4)
few

# %%
### BEGIN SOLUTION
few.play(threads=1)
answer("lab05.fewest", 6, few)
### STARTER
# answer("lab05.fewest", ..., few)
### END SOLUTION

# %% [markdown]
# ## No exception means success?
#
# `consume_message_batch_max_size` is 1 by default. With 8, the listener gets up to eight messages in one call and gives
# one answer for all of them. The bank refuses the third:


# %% tags=["parameter"]
def refused(message):
    return message.keys == "order-2" and message.reconsume_times == 0


def charges_all(messages, context):
    for message in messages:
        context.sleep("20ms")
        if refused(message):
            print(message.keys, "is refused")  # that is what logs are for
    return CONSUME_SUCCESS


# %%
def one_batch(lab, listener):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(8):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    read(lab, listener, consume_message_batch_max_size=8)
    lab.run_for("30s")


# %%
def charged(lab):
    """How often each order was charged, order-2 when it was not refused."""
    rows = lab.deliveries("billing", absences=False)
    keys = {one.msg_id: one.keys for one in lab.store().messages()}
    times = Counter()
    for row in rows:
        bad = keys[row.msg_id] == "order-2" and row.reconsume_times == 0
        times[keys[row.msg_id]] += not bad
    return dict(sorted(times.items()))


# %% [prediction] lab05.batch
# The listener logs that order-2 is refused. It raises nothing and returns `CONSUME_SUCCESS`. What happens to order-2?
#
# - again: it is redelivered, because it was not charged
#   > RocketMQ does not know what was charged. It knows what the listener returned.
# - never: it is never redelivered
#   = `CONSUME_SUCCESS` is for the whole batch. The offset passes all eight.
# - all: the whole batch is redelivered
#   > That would be `RECONSUME_LATER`, or an exception.
# note: The absence of an exception is not success, and the status is for a batch, not for a message.
# later: A listener gets several orders in one call and logs that order-2 is refused. It raises nothing and returns
#   `CONSUME_SUCCESS`. What happens to order-2?

# %%
lab = play(lambda lab: one_batch(lab, charges_all), seed=7, client=no_trace)
Bars(charged(lab), unit="times charged", title="one answer for eight orders")

# %%
often = charged(lab)
repeated = any(count > 1 for count in often.values())
reveal("lab05.batch", "again" if often["order-2"] else "all" if repeated else "never")

# %% [markdown]
# And with `RECONSUME_LATER` for the whole batch, seven customers are charged twice:


# %%
def all_again(messages, context):
    charges_all(messages, context)
    again = any(refused(message) for message in messages)
    return RECONSUME_LATER if again else CONSUME_SUCCESS


lab = play(lambda lab: one_batch(lab, all_again), seed=7, client=no_trace)
Bars(charged(lab), unit="times charged", title="RECONSUME_LATER for the batch")

# %% [markdown]
# Between the two there is `context.ack_index`: the **index of the last good message**, counted from 0. The messages
# after it are sent back one by one, and redelivered after ten seconds. It is used only with `CONSUME_SUCCESS`. By
# default it is 2,147,483,647, so that all are good.

# %% [exercise] lab05.partial
# ### Exercise 1: a part of a batch
#
# The bank has tried every order of a batch, one after another. `charged` is a list of True and False, in the order of
# the batch. `partial(charged)` returns a pair: the status, and the `ack_index` that the listener sets. Nothing that was
# not charged may be lost. As little as possible may be charged again.
#
# hint: Everything up to and including ack_index is taken as good. Which is the last message before the first refusal?
# hint: Count the True at the front. In `[True, True, False, True]` there are two, and the last of them has index 1.
# hint: `good = charged.index(False) if False in charged else len(charged)`, then `return CONSUME_SUCCESS, good - 1`.
#   With -1, everything is sent back.
# note: `ConsumeMessageConcurrentlyService.processConsumeResult` reads `ackIndex` and sends back everything after it;
#   with `RECONSUME_LATER` it uses -1. What was charged after the first refusal is redelivered here, so the bank must
#   know what it has charged. At work: stop at the first failure of a batch, or keep batches of 1.


# %%
# exercise: lab05.partial
def partial(charged):
    """(status, ack_index) for a batch of which the bank has charged some."""
    ### BEGIN SOLUTION
    good = charged.index(False) if False in charged else len(charged)
    return CONSUME_SUCCESS, good - 1
    ### END SOLUTION


# %%
check("lab05.partial")

# %% [belief] lab05.no_exception
# question: A listener has raised nothing and returns CONSUME_SUCCESS. What does RocketMQ take as done?
# claim: What was done.
# refutation: Every message up to ack_index, and by default that is the whole batch: a refused order in it is lost.

# %% [belief] lab05.ack_counts
# question: What is ack_index?
# claim: How many were good, or the place of the last good one.
# refutation: The index of the last message before the first refusal. Everything up to and including ack_index is taken
#   as good, even a refused message in between.

# %% [belief] lab05.all_or_nothing
# question: Of a batch of eight, one order was refused. What does the listener return?
# claim: RECONSUME_LATER.
# refutation: RECONSUME_LATER, and an ack_index of -1, send the whole batch back, including what was charged before the
#   refusal. Return CONSUME_SUCCESS, with the index of the last good message before it.

# %% [belief] lab05.one_less
# question: Messages 0, 1 and 2 are good. What is ack_index?
# claim: 1.
# refutation: ack_index is the index of the last good message itself, counted from 0. With one less, a message that was
#   charged is sent back and charged again.

# %% [answer] lab05.refusals
# ### Your turn: what is redelivered
#
# Make the bank refuse one order, so that exactly **five** of the eight are redelivered with the right `ack_index`.
# Answer with the number of the order.
#
# wrong next: Count the refused one as well: it is redelivered.
# wrong behind: Those before the refusal are good. You want five from the refusal on.
# wrong: The refused order and all after it are redelivered.
# note: 3, 4, 5, 6 and 7. One refusal early in a large batch repeats almost the whole batch.

# %% tags=["parameter"]
REFUSED = 2


def stops(messages, context):
    oks = [
        message.keys != f"order-{REFUSED}" or message.reconsume_times > 0
        for message in messages
    ]
    context.ack_index = (oks.index(False) if False in oks else len(oks)) - 1
    return CONSUME_SUCCESS


def one_refusal(lab):
    one_batch(lab, stops)


five = play(one_refusal, seed=7, client=no_trace)
again = [row for row in five.deliveries("billing") if row.reconsume_times == 1]
print("redelivered:", len(again))

# %%
### BEGIN SOLUTION
REFUSED = 3
five = play(one_refusal, seed=7)
answer("lab05.refusals", 3, five)
### STARTER
# answer("lab05.refusals", ..., five)
### END SOLUTION

# %% [markdown]
# ## Done anyway
#
# A call of the bank takes twenty seconds. "We hand it to another thread and return at once." `context.start(function,
# …)` does that here, as an `ExecutorService` does in Java.


# %% tags=["parameter"]
def slow_bank(key, context, done):
    context.sleep("20s")
    done.append(key)


def hands_over(done):
    def listener(messages, context):
        for message in messages:
            context.start(slow_bank, message.keys, context, done)
        return CONSUME_SUCCESS

    return listener


# %%
def handed_over(lab, done, kill_after="15s"):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    read(lab, hands_over(done))
    shop = lab.producer("shop")
    for number in range(8):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
        lab.run_for("1s")
    lab.run_for(kill_after)
    lab.kill("billing-1")
    lab.run_for("1s")
    lab.start("billing-1")
    lab.run_for("1m")


# %% [prediction] lab05.async
# Eight orders arrive, one a second. 15 seconds after the last one billing is killed and started again. The bank's
# answers to some orders had not come yet. Which orders are redelivered?
#
# - open: those without an answer
#   > RocketMQ does not know about those answers. The listener returned `CONSUME_SUCCESS` for all eight, and the offset
#   > has passed them.
# - none: none
#   = The offset has passed all eight. The work that was under way ended with the process, and no process will repeat
#   = it.
# - all: all eight
#   > Only if none of the eight successes had reached the broker. A report goes out every five seconds.
# note: "It is done anyway" is true until the first restart.
# later: A listener hands each order to the bank and returns `CONSUME_SUCCESS` without waiting for the bank's answer.
#   Eight orders arrive, one a second. Later billing is killed and started again, and some answers had not come.
#   Which orders are redelivered?

# %%
done = []
lab = play(lambda lab: handed_over(lab, done), seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
Bars(
    {
        "sent": 8,
        "said CONSUME_SUCCESS": len(rows),
        "done at the bank": len(set(done)),
        "lag": lab.progress("billing")[0].lag,
    },
    unit="orders",
)

# %%
twice = len(rows) - 8
reveal("lab05.async", "none" if not twice else "all" if twice == 8 else "open")

# %% [markdown]
# No error is in a log, and the lag is 0. Work may continue in parallel with a listener, but the listener must **wait
# for it** before it returns: `context.start(...)` returns an object whose `result()` waits.

# %% [answer] lab05.lost
# ### Your turn: how many are gone
#
# Kill billing **one** second after the last order (one second passes anyway: `KILL_AFTER` is added to it). How many
# orders are lost, neither done nor redelivered?
#
# wrong none: Compare what was sent with what is in `finished`.
# wrong eight: Some are redelivered: the last report of the offset, one every five seconds, was older than their
#   success.
# wrong: An order is lost if it is neither in `finished` nor delivered a second time.
# note: Some were redelivered, because the last report of the offset was older than their success. That is luck, not a
#   plan.

# %% tags=["parameter"]
KILL_AFTER = "15s"

finished = []
gone = play(lambda lab: handed_over(lab, finished, KILL_AFTER), seed=7, client=no_trace)
print(len(set(finished)), "done,", len(gone.deliveries("billing")), "deliveries")

# %%
### BEGIN SOLUTION
finished = []
gone = play(lambda lab: handed_over(lab, finished, "0s"), seed=7, client=no_trace)
answer("lab05.lost", 8 - len(set(finished)), gone, finished)
### STARTER
# answer("lab05.lost", ..., gone, finished)
### END SOLUTION

# %% [markdown]
# ## When nothing can be sent back
#
# A message that fails goes back to the broker. If the broker cannot be reached, the consumer tries to send the message
# as a producer would. But that may fail as well.

# %% [prediction] lab05.local
# Billing's listener returns `RECONSUME_LATER`, and the broker has just crashed. When is the listener called with this
# order again, and with which `reconsume_times`?
#
# - lost: never; a message that cannot be sent back is lost
#   > It is still in billing's cache, and the offset does not pass it.
# - broker: ten seconds after the broker is back, with `reconsume_times` 1
#   > The broker does not know of the failure. The message is not sent back a second time.
# - here: five seconds later, in the same process, with `reconsume_times` 1
#   = A message that cannot be sent back is consumed again here, every five seconds, until it succeeds or can be sent
#   = back.
# note: This is the only retry of a concurrent listener that never leaves the process.


# %% tags=["parameter"]
def cut_off(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)

    def listener(messages, context):
        if messages[0].reconsume_times == 0:
            lab.kill("broker-a")
        ok = messages[0].reconsume_times >= 3
        return CONSUME_SUCCESS if ok else RECONSUME_LATER

    read(lab, listener)
    lab.producer("shop").send(Message("orders", b"a book", keys="order-0"))
    lab.run_for("1m")
    lab.start("broker-a")
    lab.run_for("1m")


# %%
lab = play(cut_off, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
Table(
    {
        "after (s)": (row.started_ms - rows[0].started_ms) / 1000,
        "read from": row.message_queue.topic,
        "reconsume_times": row.reconsume_times,
        "status": row.status,
    }
    for row in rows
)

# %%
resubmitted = lab.journal.of("consume.resubmit")
here = bool(resubmitted) and rows[1].message_queue.topic == "orders"
reveal("lab05.local", "here" if here else "broker" if len(rows) > 1 else "lost")

# %% [markdown]
# Both ways fail at once here. With a silent broker both wait for their time-outs first. The step of the journal is
# `consume.resubmit`:

# %% tags=["picture"]
step = resubmitted[0].step
lab.space_time(step - 3, step + 3)

# %% [markdown]
# ## More threads cannot hurt
#
# The listener now asks a database that has four connections for 100 ms. A hook (钩子) of the consumer is called before
# and after each call of the listener, and measures how long it took.


# %% tags=["parameter"]
class Stopwatch:
    def __init__(self, lab, times):
        self.lab, self.times, self.begun = lab, times, {}

    def consume_message_before(self, context):
        self.begun[context.messages[0].msg_id] = self.lab.now_ms

    def consume_message_after(self, context):
        begun_ms = self.begun[context.messages[0].msg_id]
        self.times.append(self.lab.now_ms - begun_ms)


# %%
def asks_database(lab):
    database = lab.resource("database", slots=4)

    def listener(messages, context):
        with database:
            context.sleep("100ms")
        return CONSUME_SUCCESS

    return listener


# %%
def busy(lab, threads, times):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    shop = lab.producer("shop")
    for number in range(200):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    pool = {"consume_thread_min": threads, "consume_thread_max": threads}
    consumer = lab.push_consumer("billing", **pool)
    consumer.subscribe("orders", "*")
    consumer.on_messages(asks_database(lab))
    consumer.register_consume_message_hook(Stopwatch(lab, times))
    consumer.start()
    lab.run_for("60s")


# %% [prediction] lab05.threads
# The pool gets 64 threads instead of 4. The database still has four connections. What happens to the 200 orders?
#
# - sooner: they are done sooner, up to sixteen times as fast
#   > The database does four at a time. The other sixty threads wait for it.
# - same: they take as long as before, and so does each call
#   > The orders take as long as before, yes. But a call begins when a thread takes it, and now it waits inside the
#   > call.
# - longer: they take as long as before, but each call takes many times as long
#   = The waiting line has moved from the pool into the listener. There the consume timeout runs, and a process that
#   = stops has 64 open calls instead of four.
# note: If one resource is the limit, more of another does not help. Lab 09 measures which one it is.
# later: A group's pool gets 64 threads instead of 4. Its database still has four connections. What happens to the
#   200 orders that wait?


# %%
def measured(threads):
    times = []
    lab = play(lambda lab: busy(lab, threads, times), seed=7, client=no_trace)
    rows = lab.deliveries("billing", absences=False)
    took = max(row.ended_ms for row in rows) - min(row.started_ms for row in rows)
    return took / 1000, max(times)


# %%
runs = {threads: measured(threads) for threads in (1, 2, 4, 8, 16, 64)}
Curve(
    {
        "all done after (s)": [(n, took) for n, (took, _) in runs.items()],
        "longest call (s)": [(n, worst / 1000) for n, (_, worst) in runs.items()],
    },
    x="threads",
    y="seconds",
    log_x=True,
)

# %%
sooner = runs[64][0] < 0.8 * runs[4][0]
longer = runs[64][1] > 4 * runs[4][1]
reveal("lab05.threads", "sooner" if sooner else "longer" if longer else "same")

# %% [markdown]
# ## Break it: one thread, one failure
#
# On your board one thread kept the order. So the team gives billing one thread. Once, the warehouse is busy when it
# should create the order, and the listener returns `RECONSUME_LATER`.


# %% tags=["parameter"]
FAILS = "created"


def busy_once(messages, context):
    context.sleep(TAKES[messages[0].tags])
    first = messages[0].reconsume_times == 0
    return RECONSUME_LATER if first and messages[0].tags == FAILS else CONSUME_SUCCESS


def one_failure(lab):
    one_thread = {"consume_thread_min": 1, "consume_thread_max": 1}
    one_order(lab, listener=busy_once, **one_thread)
    lab.run_for("20s")


# %%
lab = play(one_failure, seed=7, client=no_trace)
rows = lab.deliveries("billing", absences=False)
Table([{**call, "says": rows[n].status} for n, call in enumerate(calls(lab))])

# %% [markdown]
# *created* was sent back, the thread took *paid* and *shipped*, and ten seconds later *created* was redelivered, out of
# `%RETRY%billing`. Sending one event back lets the others overtake it. Set `FAILS` to each of the others: with one of
# the three the order is kept.

# %% [markdown]
# ## The same day on yours
#
# Twenty threads finish in any order, and the cache of lab 04a must still find the offset. Here is that lab's day for
# your twenty threads: six orders, the second takes twelve seconds, and billing is killed before each of its steps from
# 75 to 109. Every order is paid in the end. If you kept `MyProcessQueue` in lab 04a, the cache is yours. If not, it is
# mqlab's own.


# %%
def as_long_as_it_says(messages, context):
    context.sleep(messages[0].tags)
    return CONSUME_SUCCESS


def six_orders(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for seconds in (1, 12, 1, 1, 1, 1):
        shop.send(Message("orders", b"a book", tags=f"{seconds}s"))
    read(lab, as_long_as_it_says)
    lab.run_for("25s")


def paid(lab):
    rows = lab.deliveries("billing", absences=False)
    done = {row.queue_offset for row in rows if row.status == CONSUME_SUCCESS}
    return f"{len(done)} of 6 orders are paid"


# %% tags=["explorer"]
on_yours = crash_matrix(
    {"the cache in mybroker": six_orders},
    node="billing-1",
    outcome=paid,
    only=lambda point: 75 <= point.number < 110,
    seed=7,
    client=no_trace,
    parts=mybroker.parts(process_queue=...),  # ...: the one you kept, or mqlab's own
)
on_yours

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Which event overtakes** depends on how long each call takes. Here that is a number in a table. In reality it
#   changes from call to call, which is why a test with one thread finds nothing.
# - **Twenty threads** is the default of the Java client. Other clients have other pools and defaults.
# - **No time passes in the broker or in the client itself** in these worlds, only in listeners.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the pool and its unlimited waiting line | `ConsumeMessageConcurrentlyService`, `LinkedBlockingQueue` |
# | batches | `consumeMessageBatchMaxSize` (1) of what a pull brought (`pullBatchSize`, 32) |
# | what is good | `processConsumeResult`, `ConsumeConcurrentlyContext.ackIndex` |
# | send-back, then a send of its own | `sendMessageBack`, `DefaultMQPushConsumerImpl.sendMessageBack` |
# | again here after 5 s | `submitConsumeRequestLater` |
# | hooks | `ConsumeMessageHook`; message trace is one (`ConsumeMessageTraceHookImpl`) |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | 20 threads, up to 60 (or 64) | the minimum, for ever; 20 and 20 since 4.5.1, 20 and 64 in 4.4.0 and before |
# | a pool per group | per consumer instance |
# | no exception means success | the status and `ack_index` mean success; `null` and an exception mean `RECONSUME_LATER` |
# | what cannot be sent back is retried here | only when the consumer's own send has also failed; then after 5 s, with `reconsumeTimes` one higher |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab05.meeting
# **1.** The four sentences of the meeting: for each, what would you show your colleagues?
#
# answer: *First in, first out*: the table with `queue_offset` and `ends`. *64 threads*: the run with 64 and at most 20
#   calls at once. *No exception*: the bar of order-2 with 0 charges. *Done anyway*: eight successes, lag 0, and fewer
#   than eight at the bank.

# %% [reflection] lab05.batches
# **2.** When is a batch of more than 1 worth it?
#
# answer: When one call for many is much cheaper than many calls: a multi-row insert, a bulk request. Then do it in one
#   transaction. If you handle the messages one by one, a batch saves nothing and makes every failure larger.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](05b-one-at-a-time.ipynb) the events of an order wait for each other. All labs:
# [index](index.ipynb).
