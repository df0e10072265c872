# %% [markdown] tags=["reading"]
# # 15a POP consumption: leased, not owned
#
# ## Why
#
# On Friday evening a member of `billing` lost its database connection during a call. It kept its queues until Monday,
# and no other member could read them.
#
# With RocketMQ 5's *POP* no queue belongs to a member. A member that asks gets messages on *lease*, for an *invisible
# time*, and acknowledges each. What is not acknowledged in time comes back.
#
# "So everything is simpler now", says the team:
#
# - "The lag is 0, so the work is done."
# - "A successful listener means that the message was processed once."
# - "When the lease ends, the message is back in its queue."
# - "An ack of a lost lease is refused."
# - "A stuck consumer still blocks its queue."
# - "When a member joins, messages move to it."
#
# None of them is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 04a](04a-how-far-have-we-read.ipynb); [lab 08c](08c-at-any-second.ipynb) shows the
# timer wheel that POP is built on. Afterwards you can
#
# - say what a group has out at any moment, and why its lag does not show it;
# - predict whether an ack counts, and what happens to a message without one;
# - build a lease table that loses nothing, wherever its broker is killed.

# %%
from collections import Counter

from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.widgets import lease_board
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.rocketmq5.lease_bars import show_leases

no_trace = {"enable_trace": False}  # only orders in the log
RETRY = "%RETRY%billing_orders"  # where lost leases go

# %%
old_questions("lab15")

# %% [markdown]
# ## Receive and acknowledge: the lease of a message
#
# With RocketMQ 5's `SimpleConsumer`, `receive` pops messages for an invisible time, and `ack` says that one of them is
# done. There is no listener and no rebalance.


# %%
def shop_sells(lab, count, queues=1):
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    shop = lab.producer("shop")
    for number in range(count):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    return shop


def billing(lab):
    consumer = lab.simple_consumer("billing", await_duration="2s")
    consumer.subscribe("orders")
    consumer.start()
    return consumer


def takes_five(lab):
    shop_sells(lab, 5)
    billing(lab).receive(16, "30s")
    lab.run_for("5s")


# %% [prediction] lab15.lag_zero
# The member has received five orders and has acknowledged none. What is the group's lag?
#
# - 5: 5; no order is done
#   > The broker counts what it has handed out. It does not wait for the acks.
# - 0: 0
#   = The committed offset moves when messages are handed out. RocketMQ shows lag 0 and inflight 0.
# - none: there is no lag; the group has no offset
#   > It has one. The broker needs to know which messages were never handed out.
# note: At work: with POP, an alarm on the lag alone never rings while consumers fail. Watch the retry topic as well.
# later: A POP consumer has received five orders and has acknowledged none. What is the group's lag?

# %%
five = play(takes_five, seed=7, client=no_trace)
five.progress("billing")

# %%
reveal("lab15.lag_zero", str(sum(row["lag"] for row in five.progress("billing"))))

# %% [markdown]
# RocketMQ has no command that shows what is out. This lab has one:

# %%
five.leases("billing")

# %% [markdown]
# The broker stores a *check point* per pop and queue: group, queue, offsets, and when the lease ends. The check point
# is a timed message, and so is an ack. So a broker that is killed still knows its leases.

# %%
show_leases(five, "billing", title="five leases of one pop")

# %% [exercise] lab15.out_now
# ### Exercise 1: what is out?
#
# Write `out_now(pops, acks, now_ms)`. Everything in both lists happened before `now_ms`.
#
# - `pops` is a list of `(popped_ms, invisible_ms, queue, offsets)`, such as `(1000, 30000, "orders 0", [4, 5, 7])`.
# - `acks` is a list of `(acked_ms, queue, offset, popped_ms)`. The last number names the lease that the ack belongs to.
#
# A lease runs from `popped_ms` until `popped_ms + invisible_ms`, and is over at that moment. A message may be popped a
# second time while its first lease still runs.
#
# Return a sorted list of `(queue, offset, until_ms)`, one row per lease that still runs and was not acknowledged.
#
# hint: Make a set of `(queue, offset, popped_ms)` from the acks.
# hint: Go through the pops and their offsets. Skip a pop with `popped_ms + invisible_ms <= now_ms`.
# hint: Append `(queue, offset, popped_ms + invisible_ms)` if the set does not have the lease, and sort at the end.
# note: The name of a lease travels with the message, as the property `POP_CK`. At work: keep the message object until
#   you acknowledge it; its id alone is not enough.


# %%
# exercise: lab15.out_now
def out_now(pops, acks, now_ms):
    """What a group has out: [(queue, offset, until_ms)]."""
    ### BEGIN SOLUTION
    done = {(queue, offset, popped_ms) for _, queue, offset, popped_ms in acks}
    rows = []
    for popped_ms, invisible_ms, queue, offsets in pops:
        until_ms = popped_ms + invisible_ms
        if until_ms <= now_ms:
            continue
        for offset in offsets:
            if (queue, offset, popped_ms) not in done:
                rows.append((queue, offset, until_ms))
    return sorted(rows)
    ### END SOLUTION


# %%
check("lab15.out_now")

# %% [belief] lab15.any_ack
# question: A message was popped twice, and the first lease was acknowledged. Is the message still out?
# claim: No, it was acknowledged.
# refutation: An ack belongs to one lease, named by its popped_ms. The second lease runs until its own ack, or its end.

# %% [belief] lab15.one_lease
# question: A message was popped a second time while its first lease still ran. How many leases has it?
# claim: One, the latest.
# refutation: Two, each with an end of its own: a second pop does not end the first lease, and each lease counts.

# %% [belief] lab15.offset_is_a_name
# question: An ack has offset 7. Which message is done?
# claim: The one with offset 7.
# refutation: Each queue has an offset 7 of its own. A lease is named by queue, offset and popped_ms together.

# %% [belief] lab15.ack_is_an_offset
# question: Offset 7 is acknowledged. What about offsets 4 and 5 of the same pop?
# claim: They are done; an ack says how far the group has got.
# refutation: With pulls an offset covers all messages before it. With POP each message needs an ack of its own.

# %% [belief] lab15.lease_without_end
# question: A message was popped an hour ago and never acknowledged. Is it out?
# claim: Yes, until a consumer acknowledges it.
# refutation: Its lease ended at popped_ms + invisible_ms. After that, the broker delivers the message to the group
#   again.

# %% [belief] lab15.out_at_its_end
# question: It is exactly popped_ms + invisible_ms. Does the lease still run?
# claim: Yes, that is its last millisecond.
# refutation: The lease is over at that moment: the client and the broker both compare with >=.

# %% [markdown]
# ## The end of a lease: where the message goes
#
# Four orders were received for ten seconds; one is acknowledged.


# %%
def lets_go(lab):
    shop_sells(lab, 4)
    consumer = billing(lab)
    first, *rest = consumer.receive(4, "10s")
    consumer.ack(first)
    lab.run_for("15s")
    return consumer, rest


# %% [prediction] lab15.back_in_queue
# Fifteen seconds later: where are the three orders without an ack?
#
# - queue: back in the queue of `orders`, at their old offsets
#   > The group's offset there has passed them, and it never moves back. The log is not changed either.
# - end: at the end of the queue of `orders`
#   > Another group that reads `orders` would then get them twice.
# - retry: copies of them are in the retry topic `%RETRY%billing_orders`
#   = The broker stores each of them again, for this group alone, with one more in `reconsume_times`.
# - consumer: still with the consumer, until it acknowledges or goes away
#   > The broker does not ask the consumer. The clock ended the leases.
# note: They are stored again in the retry topic, so their order is lost: what comes back is behind everything that was
#   handed out meanwhile.
# later: Three orders of a queue were popped with a lease of 10 s and never acknowledged. Where are they fifteen
#   seconds later?

# %%
gone = play(lambda lab: lets_go(lab) and None, seed=7, client=no_trace)
again = [message.keys for message in gone.store().messages(RETRY)]
reveal("lab15.back_in_queue", "retry" if len(again) == 3 else "queue")

# %%
show_leases(gone, "billing", title="three leases end, three copies are stored")

# %% [markdown]
# The copies come three seconds after the end of the leases ([part b](15b-when-it-comes-back.ipynb) shows why). What if
# the consumer acknowledges then?

# %% [prediction] lab15.late_ack
# The consumer acknowledges one of the three, five seconds after its lease ended. What does the broker answer?
#
# - refused: an error; the lease is over
#   > The broker does not look whether the lease still runs, nor whether there ever was one.
# - done: success, and it removes the copy
#   > The copy has a place of its own in the log. The ack names the old lease.
# - nothing: success, and the copy is delivered all the same
#   = Every ack that names an existing queue and offset is answered 0. This one has no effect.
# note: At work: an ack that was answered with success proves nothing. Only the order in your own table does.
# later: A POP consumer acknowledges an order five seconds after its lease ended. What does the broker answer?


# %%
def acks_too_late(lab):
    consumer, rest = lets_go(lab)
    consumer.ack(rest[0])  # raises if it is refused
    outcome.append("done")
    came = consumer.receive(16, "30s")
    if rest[0].keys in [message.keys for message in came]:
        outcome[0] = "nothing"
    for message in came:
        consumer.ack(message)


# %%
outcome = []
too_late = play(acks_too_late, seed=7, client=no_trace)
show_leases(too_late, "billing", title="an ack after the end of its lease")

# %%
reveal("lab15.late_ack", outcome[0])

# %% [answer] lab15.shortest
# ### Your turn: the shortest lease
#
# This consumer takes eight seconds per order. Change `LEASE` (whole seconds): how many seconds is the shortest lease
# with which the order is received only once?
#
# wrong work: Try a shorter one. An ack soon after the end of its lease is still read before the message is revived.
# wrong longer: Try a lease that is as long as the work, and shorter ones.
# wrong: Count the leases in the picture. One second less must give several.
# note: The broker revives a message two seconds after the end of its lease, so an ack that is less than two seconds late
#   counts. Do not build on that: a push consumer does not even send such an ack.

# %% tags=["parameter"]
LEASE = 3


def eight_seconds_each(lab, lease):
    shop_sells(lab, 1)
    consumer = billing(lab)
    while lab.now_ms - lab.began_ms < 60_000:
        for message in consumer.receive(1, f"{lease}s"):
            lab.run_for("8s")  # the work
            consumer.ack(message)


short = play(lambda lab: eight_seconds_each(lab, LEASE), seed=7, client=no_trace)
show_leases(short, "billing", title=f"leases of {LEASE} s")

# %%
### BEGIN SOLUTION
once = play(lambda lab: eight_seconds_each(lab, 6), seed=7, client=no_trace)
answer("lab15.shortest", 6, once)
### STARTER
# answer("lab15.shortest", ..., short)
### END SOLUTION

# %% [markdown]
# ## Push consumers that pop: success that does not count
#
# A push consumer pops if its `client_rebalance` is False and the group's *request mode* is POP. It sends the acks
# itself.


# %%
def popping(lab, listener, name=None, **settings):
    lab.admin.set_message_request_mode("orders", "billing", "POP")
    consumer = lab.push_consumer(
        "billing", name=name, client_rebalance=False, **settings
    )
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    consumer.start()


def outlasts_its_lease(lab):
    shop_sells(lab, 1)

    def pay(messages, context):
        context.sleep("13s")
        return CONSUME_SUCCESS

    popping(lab, pay, pop_invisible_time="10s")
    lab.run_for("90s")


# %% [prediction] lab15.success_once
# The listener takes 13 s and returns CONSUME_SUCCESS. The invisible time is 10 s. How often is it called in 90 s?
#
# - once: once; it was successful
#   > The client compares the times after the call. The lease was over, so it sends no ack.
# - twice: twice; the second time the broker sees that it is a repeat
#   > The second call takes 13 s as well, and its result is dropped for the same reason.
# - more: again and again, until the call is shorter than the lease
#   = Each success comes too late and is dropped. The message is redelivered with a higher `reconsume_times`.
# note: The log of the client has no error. At work: compare the p99 of your listener with `popInvisibleTime`.
# later: A popping listener takes 13 s and returns CONSUME_SUCCESS. The invisible time is 10 s. How often is it
#   called in 90 s?

# %%
slow = play(outlasts_its_lease, seed=7, client=no_trace)
slow_calls = slow.deliveries("billing", absences=False)
show_leases(slow, "billing", title="a listener of 13 s on leases of 10 s")

# %%
reveal("lab15.success_once", {1: "once", 2: "twice"}.get(len(slow_calls.rows), "more"))

# %%
slow_calls

# %% [markdown]
# Friday's incident: two members, one thread each; the first one hangs in its first call for ever. The shop sells 41
# orders to four queues.


# %%
def friday(lab, pops):
    shop_sells(lab, 41, queues=4)

    def pay_of(name):
        def pay(messages, context):
            context.sleep("1h" if name == "billing-1" else "100ms")
            return CONSUME_SUCCESS

        return pay

    for name in ("billing-1", "billing-2"):
        member(lab, name, pay_of(name), pops)
    lab.run_for("3m")


# %%
def member(lab, name, listener, pops):
    one = {"consume_thread_min": 1, "consume_thread_max": 1}
    if pops:
        return popping(lab, listener, name, pop_invisible_time="10s", **one)
    consumer = lab.push_consumer("billing", name=name, **one)
    consumer.subscribe("orders", "*")
    consumer.on_messages(listener)
    return consumer.start()


# %% [prediction] lab15.stuck
# How many of the 41 orders are done after three minutes?
#
# - same: about half, with push and with POP; the stuck member has its share
#   > With POP it has a share as well, but only on lease. The leases end without its help.
# - pop: about half with push, all of them with POP
#   = A stuck member keeps its queues for ever. It keeps its leases for ten seconds.
# - push: all with push, half with POP; a rebalance moves the queues
#   > The stuck member still sends heartbeats, so there is no rebalance.
# note: The stuck member keeps popping, and its leases end again and again. So POP is slower here, but nothing is stuck.
# later: -


# %%
def done_of(lab):
    rows = lab.deliveries("billing", absences=False)
    return len({row["msg_id"] for row in rows if row["status"] == CONSUME_SUCCESS})


done = {}
for pops, name in ((False, "push"), (True, "POP")):
    day = play(lambda lab, pops=pops: friday(lab, pops), seed=7, client=no_trace)
    done[name] = done_of(day)
Bars(done, unit="orders done", title="one of two members is stuck")

# %%
reveal("lab15.stuck", "pop" if done["POP"] == 41 > done["push"] else "same")

# %% [markdown]
# Let `billing-1` hang, or kill it, and move through the time: what is handed out, what is done, what is coming back?

# %% tags=["explorer"]
lease_board(happens="hangs")

# %% [answer] lab15.stuck_for
# ### Your turn: how long does the stuck member delay an order?
#
# Set `HANGS` to `"25s"`: the first call of `billing-1` now takes 25 seconds, and all others take 100 ms. How many of the
# 41 orders are delivered to a listener more than once?
#
# wrong none: The first call itself took longer than its lease.
# wrong all: Orders that `billing-2` popped are done within their leases.
# wrong: Count the ids with more than one row in the deliveries of your own run.
# note: What `billing-1` had popped and not begun came back as well, but no listener had seen it: the client skips a
#   message whose lease is over before the call.

# %% tags=["parameter"]
HANGS = "1h"


def hangs_once(lab, how_long):
    shop_sells(lab, 41, queues=4)
    waits = {"billing-1": [how_long], "billing-2": []}

    def pay_of(name):
        def pay(messages, context):
            context.sleep(waits[name].pop() if waits[name] else "100ms")
            return CONSUME_SUCCESS

        return pay

    for name in waits:
        member(lab, name, pay_of(name), pops=True)
    lab.run_for("3m")


# %%
def repeated(lab):
    rows = lab.deliveries("billing", absences=False)
    times = Counter(row["msg_id"] for row in rows)
    return sum(count > 1 for count in times.values())


hung = play(lambda lab: hangs_once(lab, HANGS), seed=7, client=no_trace)
Bars(
    Counter(row["client"] for row in hung.deliveries("billing", absences=False)),
    unit="calls",
    title=f"the first call takes {HANGS}",
)

# %%
### BEGIN SOLUTION
brief = play(lambda lab: hangs_once(lab, "25s"), seed=7, client=no_trace)
answer("lab15.stuck_for", repeated(brief), brief)
### STARTER
# answer("lab15.stuck_for", ..., hung)
### END SOLUTION

# %% [markdown]
# ## Members that join: no rebalance of messages
#
# Every 20 seconds a popping client asks the broker which queues it may pop: *all of them* by default
# (`popShareQueueNum` -1).


# %%
def joins(lab, more=0):
    def pay(messages, context):
        context.sleep("2s")
        return CONSUME_SUCCESS

    shop = shop_sells(lab, 1, queues=4)
    member(lab, "billing-1", pay, pops=True)
    lab.run_for("25s")
    for number in range(1, 21):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    member(lab, "billing-2", pay, pops=True)
    lab.run_for("2s")
    for number in range(21, 21 + more):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("3m")


# %% [prediction] lab15.rebalance
# A member with one thread has popped twenty orders, and each takes 2 s. Its leases are 10 s long. A second member joins
# right then. How many of the twenty does the second member get before a lease ends?
#
# - half: about half; they are divided again
#   > Nothing is divided. All twenty are on lease to the first member.
# - 0: none
#   = A lease is not taken back. The second member gets new messages, and those whose leases have ended.
# - all: all that the first one has not begun
#   > The broker does not know what a client has begun.
# note: With push, queues move, and the new owner starts at the committed offset: what the old owner holds is processed
#   twice. With POP nothing moves, and what waits too long comes back.

# %%
joined = play(joins, seed=7, client=no_trace)
calls = joined.deliveries("billing", absences=False)
leases_end_ms = joined.began_ms + 35_000
early = [
    row
    for row in calls
    if row["client"] == "billing-2" and row["started_ms"] < leases_end_ms
]
reveal("lab15.rebalance", str(len(early)))

# %%
Bars(
    Counter(f"{row['client']}: {row['status']}" for row in calls),
    unit="calls",
    title="a member joins",
)

# %% [answer] lab15.joined
# ### Your turn: what does the second member get?
#
# Set `MORE` to 8: two seconds after `billing-2` has joined, the shop sells eight more orders. How many different orders
# does the listener of `billing-2` get in three minutes?
#
# wrong none: Orders that are sold after it joined are on lease to no member yet.
# wrong new: It shares the new ones with `billing-1`, which still pops. Whose are the leases that ended?
# wrong: Count the ids in the deliveries of `billing-2` in your own run, each once.
# note: Some of them are new, the others had been with `billing-1`. Nothing was divided: each message went to the member
#   whose request reached the broker first.

# %% tags=["parameter"]
MORE = 0

new_ones = play(lambda lab: joins(lab, MORE), seed=7, client=no_trace)
Bars(
    Counter(row["client"] for row in new_ones.deliveries("billing", absences=False)),
    unit="calls",
    title=f"{MORE} more orders after a member joined",
)

# %%
### BEGIN SOLUTION
eight = play(lambda lab: joins(lab, 8), seed=7, client=no_trace)
rows = eight.deliveries("billing", absences=False)
got = {row["msg_id"] for row in rows if row["client"] == "billing-2"}
answer("lab15.joined", len(got), eight)
### STARTER
# answer("lab15.joined", ..., new_ones)
### END SOLUTION

# %% [markdown]
# ## A lease table that survives a crash
#
# Whatever your table keeps in its attributes is gone when the broker is killed. The log stays.

# %% [exercise] lab15.lease_table
# ### Exercise 2: the lease table
#
# Write a class `LeaseTable(write, read)`. `write(record)` appends a record of plain values (a tuple, a list, a
# dictionary) to a log on disk; `read()` returns all records, oldest first. The table has three methods:
#
# - `lease(queue, offsets, now_ms, invisible_ms)`: these messages are out from `now_ms` on.
# - `ack(queue, offset, popped_ms)`: the lease that began at `popped_ms` is done. If there is no such lease, or it is
#   over, nothing happens.
# - `expired(now_ms)`: returns `[(queue, offset)]` for every lease that is over and was not acknowledged, ordered by the
#   end of the lease, then by queue and offset. What was returned once is never returned again.
#
# Between any two calls the check throws your object away and makes a new one on the same log.
#
# hint: Keep a dictionary `(queue, offset, popped_ms) -> until_ms`. `lease` adds to it, `ack` removes from it.
# hint: Write one record per call before you change the dictionary: `("lease", queue, offsets, now_ms, invisible_ms)`,
#   `("ack", queue, offset, popped_ms)` and `("expired", now_ms)`.
# hint: `__init__` goes through `read()` and makes the same changes again, without writing. Put the changes into a method
#   of their own.
# note: You have written the core of `PopBufferMergeService` and `PopReviveService`. RocketMQ's records are check points
#   and acks, and its third record is the offset of the revive group.


# %%
# exercise: lab15.lease_table
class LeaseTable:
    """Leases of a group, kept in a log."""

    ### BEGIN SOLUTION
    def __init__(self, write, read):
        self.write, self.leases = write, {}
        for verb, *arguments in read():
            getattr(self, "do_" + verb)(*arguments)

    def lease(self, queue, offsets, now_ms, invisible_ms):
        self.write(("lease", queue, list(offsets), now_ms, invisible_ms))
        self.do_lease(queue, offsets, now_ms, invisible_ms)

    def ack(self, queue, offset, popped_ms):
        self.write(("ack", queue, offset, popped_ms))
        self.do_ack(queue, offset, popped_ms)

    def expired(self, now_ms):
        self.write(("expired", now_ms))
        return self.do_expired(now_ms)

    def do_lease(self, queue, offsets, now_ms, invisible_ms):
        for offset in offsets:
            self.leases[queue, offset, now_ms] = now_ms + invisible_ms

    def do_ack(self, queue, offset, popped_ms):
        self.leases.pop((queue, offset, popped_ms), None)

    def do_expired(self, now_ms):
        ends = sorted((until_ms, *key) for key, until_ms in self.leases.items())
        over = [end for end in ends if end[0] <= now_ms]
        for _, queue, offset, popped_ms in over:
            del self.leases[queue, offset, popped_ms]
        return [(queue, offset) for _, queue, offset, _ in over]

    ### END SOLUTION


# %%
check("lab15.lease_table")

# %% [belief] lab15.order_of_the_calls
# question: Two leases end at the same moment. In which order does `expired` return their messages?
# claim: In the order in which they were leased.
# refutation: By queue and offset. Then the answer does not depend on who asked first.

# %% [belief] lab15.lease_in_memory
# question: The broker was killed. Which process still knows which messages are out?
# claim: The consumers; they acknowledge them or not.
# refutation: A consumer that died as well acknowledges nothing. If the lease is not in the log, the message is lost to
#   its group.

# %% [belief] lab15.ack_in_memory
# question: Does an ack need a record of its own?
# claim: No; the lease is removed, and that is enough.
# refutation: Without a record an ack removes the lease from memory only. A table that is made again from the log finds
#   the lease without its ack, and returns a message that is done.

# %% [belief] lab15.revived_again
# question: expired has returned a message. Must the table remember that?
# claim: No, the lease is over.
# refutation: The log still has the lease. Without a record of the round, the next table on that log returns it again.

# %% [belief] lab15.any_handle
# question: An ack comes for a message that was leased a second time. What ends?
# claim: The lease that runs now.
# refutation: The ack names the lease that began at popped_ms. If that one is over, the ack has no effect on the other.

# %% [belief] lab15.ack_ends_the_pop
# question: One of four messages of a pop was acknowledged. What about the others?
# claim: The pop is done.
# refutation: Each message of a pop has its own lease. The others are over in time, and must be returned.

# %% [belief] lab15.over_before_its_end
# question: A lease of 10 s began at 1,000 ms. When is it over?
# claim: At the moment at which expired is called.
# refutation: A lease of 10 s that began at 1,000 ms is over at 11,000 ms. A call of expired with an earlier time must
#   not return it.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **One broker.** Clients pop at the master; a slave's leases are lost.
# - **Check points in the log.** With `enable_pop_buffer_merge` a broker keeps young check points in memory. A killed
#   broker then hands the messages out again.
# - **Not modelled:** the implementation of POP on RocksDB, and limits of messages in flight.
#   [The whole list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | pop, and its check points | `PopMessageProcessor`, `PopCheckPoint` |
# | the name of a lease | `ExtraInfoUtil`, property `POP_CK` |
# | ack | `AckMessageProcessor`, `AckMsg` |
# | check points in memory | `PopBufferMergeService`, `enablePopBufferMerge` |
# | lost leases | `PopReviveService` |
# | the popping push consumer | `ConsumeMessagePopConcurrentlyService` |
# | which member may pop which queues | `QueryAssignmentProcessor`, `setConsumeMode` of mqadmin |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | lag 0: everything is consumed | everything is handed out |
# | an unacknowledged message returns to its queue | a copy goes to `%RETRY%group_topic` |
# | an ack fails if the lease is over | it is answered 0 and has no effect |
# | check points are matched in memory | off by default: every pop and every ack is a message in the log |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab15.when_push
# **1.** What can a push consumer with queues of its own do that POP cannot?
#
# answer: It keeps the order of a queue, and it costs one offset for many messages. For a pop of one message there are
#   four more units in the log.

# %% [reflection] lab15.which_alarm
# **2.** The lag tells nothing about a popping group. Which numbers do?
#
# answer: The rate of messages in the retry topic, the `reconsume_times` that listeners see, and the age of the oldest
#   lease (here `lab.leases`).

# %% [markdown] tags=["reading"]
# ## Next
#
# The [second part](15b-when-it-comes-back.ipynb): when a message comes back, how often, and how long a lease should be.
# All labs: [index](index.ipynb).
