# %% [markdown]
# # The explorers: worlds to play with
#
# Here are the boards of the labs side by side, without exercises, each over a real run of the broker. Run a cell, do
# what *Try* says, and then whatever you like. You cannot break anything: run the cell again, and the world is as it
# was.
#
# All of them work with the keyboard alone (Tab, arrow keys, Enter). Your code can read what you choose: `.state` is
# your choice, `.table()` the facts as a table. All labs are in the [index](index.ipynb).

# %%
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course.teach.datasets import played_day
from mqlab.course.widgets import (
    allocation_board,
    backlog_tank,
    console,
    crash_matrix,
    echo_chart,
    explore,
    knows_board,
    lanes_board,
    lease_board,
    log_xray,
    long_poll_scope,
    offset_strip,
    percentile_board,
    retry_clock,
    tag_trap_board,
    watermark_board,
    wheel_board,
)

# %% [markdown]
# ## A day to look at
#
# A shop sends some orders, and group `billing` reads them. One order fails, is tried once more, fails again, and is
# dead, because `billing` allows one retry.


# %%
def day(lab, orders=4, bad="order-2"):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    billing = lab.push_consumer("billing", max_reconsume_times=1)
    billing.subscribe("orders", "*")
    billing.on_messages(
        lambda read, _: RECONSUME_LATER if read[0].keys == bad else CONSUME_SUCCESS
    )
    billing.start()
    shop = lab.producer("shop", enable_trace=False)
    for number in range(1, orders + 1):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("30s")


# %% [markdown]
# ## Time machine
#
# The story under a slider: which node sent what to which, next to the log, the queues and the offsets at that moment. A
# click on a moment or on a message highlights everything that belongs to it.
#
# **Try:** drag *Stop* to the first failure and look for the copy of `order-2` in the log. Then go to an early stop. Under
# *More settings* choose *kill* and `billing-1`, press *Make this fault*, and see what differs first. Or write another
# order into *bad* and press *Play again*.

# %% tags=["explorer"]
machine = explore(day, seed=7)
machine

# %% [markdown]
# ## Log X-ray
#
# A store with every file visible: the log, the queues, the index with its chains, the checkpoint, and the pages of
# memory that are not on the disk yet. Three messages are stored, and one of them has its entry in a queue.
#
# **Try:** press *Next* until all three have an entry. Open *More settings* and cut the power, then press *Next* to
# start the broker again. Which messages are left? Change the flush policy to `SYNC_FLUSH`: all steps are done again.
# What does the power cut lose now?

# %% tags=["explorer"]
xray = log_xray()
xray

# %% [markdown]
# ## Retry clock
#
# One order that the bank refuses, on an axis of log time: every delivery, where the order waits between them, and when
# it is dead. The pin is your prediction, at one minute.
#
# **Try:** move the pin to where you expect the third delivery when the listener asks for level 1, then set *Level
# asked* to 1 and press *Play*. Then tick *In order*, set *Max retries* to -1 and play again: when is it dead?

# %% tags=["explorer"]
clock = retry_clock(max_retries=3, prediction="1m")
clock

# %% [markdown]
# ## Allocation board
#
# Eight queues and three members of a group; then one joins and one leaves. The grid shows the owner of each queue and
# what has just moved; the ring shows where CONSISTENT_HASH looks.
#
# **Try:** restart `billing-1` under the name `billing-9`, as a deployment does, and see how many queues move under each
# strategy. Choose CONSISTENT_HASH and, under *More settings*, drag *Virtual nodes* from 1 to 100. Then untick *Members
# are notified*, press *Play the group*, and read how long queue 6 had two owners.

# %% tags=["explorer"]
allocation = allocation_board(history=[("join", "billing-4"), ("leave", "billing-2")])
allocation

# %% [markdown]
# ## Offset strip
#
# One queue and a consumer whose calls wait for you: a click on a message ends its call. The strip shows what is
# finished and cached, and the offset in the client's memory, in the broker's table and in its file.
#
# **Try:** the client has just been killed, and some messages are read again. Go back to step 2 and finish other
# messages, so that exactly seven are redelivered: `len(strip.redelivered())`. Then kill the broker alone. Is anything
# redelivered? And after *Crash both*?

# %% tags=["explorer"]
strip = offset_strip()
strip

# %% [markdown]
# ## Tag-trap board
#
# Two services share a consumer group. `billing` wants `paid` orders, `shipping` those that are `shipped`. Every order
# is a lane: through the broker's filter, which knows hash codes, and the client's, which knows the text. The triangle
# means that the group's offset has passed it.
#
# **Try:** show the popular picture next to what happens. Let *shipping* subscribe again: what does monitoring show?
# Tick *post_subscription_when_pull*, then give each service its own group. With a kernel, subscribe to `Aa` and `BB`,
# and let the clock of *billing* run a minute ahead.

# %% tags=["explorer"]
trap = tag_trap_board()
trap

# %% [markdown]
# ## Long-poll scope
#
# Two readers of one queue, for half a minute. The broker holds the pulls of the first until a message arrives; the
# second asks every second. Dashed bars are held pulls; the mark at their end shows what woke them.
#
# **Try:** let the second ask so often that its messages wait no longer than those of held pulls. How many requests does
# that take? Then make the tag rare (every 20th of 4 a second): what wakes the pull now? Look at a mark with *100 ms
# around it*.

# %% tags=["explorer"]
scope = long_poll_scope()
scope

# %% [markdown]
# ## Backlog tank
#
# Two minutes of traffic, for half a minute more than the group can do. Above is what arrives and what is done, below
# the lag; the table shows how busy each limit was. A call computes for 50 ms and waits for 950 ms.
#
# **Try:** what is the smallest number of threads with which no message waits? Give the database 8 slots: what do more
# threads change, or three instances? Then look at the run with six instances and four queues. With a kernel, draw a
# curve of your own.

# %% tags=["explorer"]
tank = backlog_tank()
tank

# %% [markdown]
# ## Lanes
#
# Six orders, each created, paid and shipped, in the queues of one topic. Each bar is a call of billing's listener, in
# its thread; ▲ marks an event that began before the previous one of its order was done.
#
# **Try:** how many threads keep the order? Make it orderly, with three queues: how many threads work now? Then let
# order-1 fail for ever. Which orders wait, with one queue, with three, and with lanes?

# %% tags=["explorer"]
lanes = lanes_board()
lanes

# %% [markdown]
# ## What each process believes
#
# There are two brokers, a shop that sends, and billing, which reads. Something happens to broker-b; the bars show what
# each process believes about it, until it learns something else.
#
# **Try:** kill broker-b, then cut its power. Which process learns of it, and how much later? Take two name servers, and
# let one of them not hear from broker-b: which of them is right, and where are orders that no consumer reads?

# %% tags=["explorer"]
knows = knows_board()
knows

# %% [markdown]
# ## Orders on lease
#
# With POP no queue belongs to a member: it gets orders on lease and acknowledges each. A lease that ends without an ack
# brings its order back.
#
# **Try:** move to 1 s. What is the lag, and how many orders are done? Let the first member hang: when does the other
# one get its orders? Make a call take 8 s and a lease last 5 s: which order is ever done?

# %% tags=["explorer"]
leases = lease_board()
leases

# %% [markdown]
# ## The timer wheel
#
# A slot per second, and each slot a list in the timer log. The wheel turns, and what is due is delivered.
#
# **Try:** move to 5 s and walk through the slots. Why does one of them have two units? Choose a window of 6 s: which
# reminder is stored most often on its way? Which of the three files may be lost?

# %% tags=["explorer"]
turning = wheel_board()
turning

# %% [markdown]
# ## Crash matrix
#
# Two ways to note that an order was paid. The process is killed before every line of the listener in turn and restarted
# a second later, and each cell shows how that run ended. An order may be delivered twice, but must be paid once.


# %%
def paying(listener):
    def story(lab):
        with lab.database("bank").connect() as connection:
            connection.execute("create table paid (key text)")
            connection.execute("create table seen (key text primary key)")
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        billing = lab.push_consumer("billing", enable_trace=False)
        billing.subscribe("orders", "*")
        billing.on_messages(listener(lab))
        billing.start()
        lab.run_for("1s")
        lab.producer("shop", enable_trace=False).send(
            Message("orders", b"a book", keys="1")
        )
        lab.run_for("60s")

    return story


# %%
def two_commits(lab):
    def listener(messages, context):
        bank, key = lab.database("bank").connect(), messages[0].keys
        found = bank.execute("select 1 from seen where key = ?", (key,)).fetchone()
        if not found:
            bank.execute("insert into paid values (?)", (key,))
            bank.commit()
            bank.execute("insert into seen values (?)", (key,))
            bank.commit()
        return CONSUME_SUCCESS

    return listener


# %%
def one_commit(lab):
    def listener(messages, context):
        bank, key = lab.database("bank").connect(), messages[0].keys
        row = bank.execute("insert or ignore into seen values (?)", (key,))
        if row.rowcount:
            bank.execute("insert into paid values (?)", (key,))
        bank.commit()
        return CONSUME_SUCCESS

    return listener


# %% [markdown]
# **Try:** choose a cell where the order was paid twice and press *Open in the time machine*. Between which two lines
# did the process crash, and what did the second delivery find?


# %%
def paid(lab):
    (count,) = (
        lab.database("bank").connect().execute("select count(*) from paid").fetchone()
    )
    return f"paid {count} times" if count != 1 else "paid once"


# %% tags=["explorer"]
matrix = crash_matrix(
    {"two commits": paying(two_commits), "one commit": paying(one_commit)},
    node="billing-1",
    outcome=paid,
    only=lambda point: point.kind == "line",
)
matrix

# %% [markdown]
# ## Echo chart
#
# A day on which much goes wrong, played in a Lab. Each call is counted twice: when its message was stored, and when the
# group was called with it.
#
# **Try:** what reaches audit long after it was stored? Choose `late` and audit, then `retry` and billing: which of the
# two is a column, and why? Click a cell and read its calls.

# %% tags=["explorer"]
busy = played_day()
stored = {(life.msg_id, life.keys): life for life in busy.lives}
calls = [
    {
        "group_name": call.consumer_group,
        "keys": call.keys,
        "cause": call.cause or "first",
        "started_ms": call.started_ms,
        "stored_ms": stored[call.msg_id, call.keys].stored_ms,
        "broker_name": call.place[0],
    }
    for call in busy.calls
    if (call.msg_id, call.keys) in stored
]
echoes = echo_chart(calls, group="audit", stretch_s=30)
echoes

# %% [markdown]
# ## Percentile board
#
# How long billing's and mail's messages waited for their calls. A group keeps the shape of its curve, whatever its
# size.
#
# **Try:** move the sizes. Between which two values does the p99 of all messages move? When is it the mean of the two?

# %% tags=["explorer"]
waited = {
    group: [c["started_ms"] - c["stored_ms"] for c in calls if c["group_name"] == group]
    for group in ("billing", "mail", "audit")
}
percentiles = percentile_board(waited, first="billing", second="mail", percent=99)
percentiles

# %% [markdown]
# ## Watermark board
#
# A job scans the same day every two minutes and counts by minute and broker. Broker-b is not seen before the fourth
# scan.
#
# **Try:** which delay counts every message? What does it keep for that? What does the mode `complete` keep?

# %% tags=["explorer"]
begin = min(call["stored_ms"] for call in calls)
looks = [[], [], [], [], []]
messages = {(call["keys"], call["stored_ms"]): call for call in calls}
for call in messages.values():
    at = min(4, (call["stored_ms"] - begin) // 120_000)
    if call["broker_name"] == "broker-b":
        at = max(at, 3)
    looks[at].append(
        {"store_timestamp": call["stored_ms"], "broker_name": call["broker_name"]}
    )
watermark = watermark_board(looks, delay_min=0, window_min=1)
watermark

# %% [markdown]
# ## Console
#
# The pages of RocketMQ Dashboard over the day from above. Under each table's title is the verb of `lab.admin` that
# returned it. A change shows what it would do; *Do it* does it.
#
# **Try:** open group `billing` and read what happened to `order-2` in its dead letter. Preview the resending of that
# letter, do it, and let the Lab run for 30 s: how many dead letters are there now, and why? Then reset `billing` on
# `orders` to the first message.

# %% tags=["explorer"]
lab = play(day, seed=7)
board = console(lab)
board

# %% [markdown]
# `board.changes()` lists what you have done with it. For the files of a broker, or the directory of a Lab, there is
# `console("DIR")`; in a terminal, `mqlab console DIR` opens it in the browser, without a notebook. Neither changes a
# file.

# %%
board.changes()
