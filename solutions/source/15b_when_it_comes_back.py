# %% [markdown] tags=["reading"]
# # 15b POP redelivery: when it comes back
#
# ## Why
#
# `billing` pops now, and the operators have new questions. An order whose lease was ten seconds came back after more
# than twelve. Another came back although it was acknowledged. One failed for an hour and then vanished, without a dead
# letter.
#
# Six sentences:
#
# - "When the lease is over, the message comes at once."
# - "A consumer that waits for messages gets it in the same millisecond."
# - "After I ask for more time, I can acknowledge with the message I had."
# - "The invisible time must be as long as our slowest call."
# - "After sixteen failures it is a dead letter."
# - "An acknowledged message never comes again."
#
# None of them is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [part a](15a-leased-not-owned.ipynb). Afterwards you can
#
# - predict when a message without an ack is delivered again, and to whom;
# - choose an invisible time from what repeats and waits cost;
# - settle a revive queue as the broker does, and say what a killed broker delivers twice.

# %%
import json
from collections import Counter

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.rocketmq5.lease_bars import show_leases

no_trace = {"enable_trace": False}  # only orders in the log
RETRY = "%RETRY%billing_orders"  # where lost leases go

# %% [markdown]
# ## Revival: from the end of a lease to the next delivery
#
# When the time of a check point has come, the wheel delivers it to the *revive topic*. A service reads that topic once
# a second and looks for check points without acks.


# %%
def shop_sells(lab, count):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(count):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))


def billing(lab, waits="1s"):
    consumer = lab.simple_consumer("billing", await_duration=waits)
    consumer.subscribe("orders")
    consumer.start()
    return consumer


# %%
def forgets_one(lab, waits="1s"):
    shop_sells(lab, 1)
    consumer = billing(lab, waits)
    consumer.receive(1, "10s")  # and no ack
    while not (again := consumer.receive(1, "10s")):
        pass
    came_ms.append(lab.now_ms - lab.began_ms)
    consumer.ack(again[0])


# %% [prediction] lab15.when_back
# The lease is 10 s long. The consumer asks for messages all the time. After how many seconds does it get the order
# again?
#
# - 10: after 10 s, at the end of the lease
#   > Then its check point only comes to the revive topic. The broker settles it when it has seen two seconds of later
#   > acks, and its rounds add up to two seconds more.
# - 13: after 12 to 15 s
#   = The broker settles a check point when it has seen two seconds of later acks. Its rounds add up to two seconds more.
# - 20: after 20 s; the wheel checks at the next full lease
#   > The wheel has steps of a second, whatever the lease is.
# - 30: after 30 s, at the next rebalance
#   > Nothing is divided with POP. The message is there for any member that asks.
# note: Between the end of the lease and the revival, an ack is still accepted and counts as long as it is read before.
#   Do not build on that.
# later: A POP consumer does not acknowledge an order whose lease is 10 s long, and asks for messages all the time.
#   After how many seconds does it get the order again?

# %%
came_ms = []
forgot = play(forgets_one, seed=7, client=no_trace)
show_leases(forgot, "billing", title="a lease of 10 s without an ack")

# %%
reveal("lab15.when_back", "13" if 12_000 <= came_ms[0] <= 15_000 else "10")

# %% [markdown]
# Most clients let the broker *hold* their pop until a message comes, for 15 s.

# %% [prediction] lab15.held
# The same, but each `receive` waits up to 15 s. The retry message is stored after about 12 s, while a pop is held. When
# does the consumer get the order?
#
# - same: after about 12 s; a message that arrives wakes the held pop
#   > That is true for messages of `orders`. This one arrives in the retry topic, and in 5.3.3 the broker cannot tell
#   > from its name whose pops wait for it.
# - end: after about 15 s, when the held pop is over
#   = In 5.3.3 the broker cannot tell the topic from the name of a retry topic, so no pop is woken. At its end, each pop
#   = checks once more.
# - 30: after 30 s, with the second pop
#   > At its end the held pop looks into the queues once more, and finds the order.
# note: `enableRetryTopicV2` has names that can be read back. At work: the retry delay that users see is lease + 2 to 4 s
#   + up to the poll time.
# later: -


# %%
def stored_again_ms(lab):
    copy, *_ = lab.store().messages(RETRY)
    return copy.store_timestamp - lab.began_ms


came_ms = []
holds = play(lambda lab: forgets_one(lab, "15s"), seed=7, client=no_trace)
print(f"stored again after {stored_again_ms(holds):,} ms, received: {came_ms[0]:,}")
reveal("lab15.held", "end" if 14_000 < came_ms[0] < 16_000 else "same")

# %% [answer] lab15.poll
# ### Your turn: waiting in the retry topic
#
# Set `WAITS` to `"40s"` and run the cell. How many whole seconds does the order wait in the retry topic before it is
# received?
#
# wrong none: A retry message wakes no held pop.
# wrong whole: That is when it is received, counted from the start.
# wrong: Subtract the time of storing from the time of receiving, in whole seconds.
# note: A longer poll time saves requests and delays every retry. The Java client polls for 15 s.

# %% tags=["parameter"]
WAITS = "1s"

came_ms = []
polls = play(lambda lab: forgets_one(lab, WAITS), seed=7, client=no_trace)
back = stored_again_ms(polls)
Bars(
    {"lease": 10_000, "until stored again": back, "until received": came_ms[0]},
    unit="ms",
    title=f"a receive waits for {WAITS}",
)

# %%
### BEGIN SOLUTION
came_ms = []
longer = play(lambda lab: forgets_one(lab, "40s"), seed=7, client=no_trace)
waited = (came_ms[0] - stored_again_ms(longer)) // 1000
answer("lab15.poll", waited, longer)
### STARTER
# answer("lab15.poll", ..., polls)
### END SOLUTION

# %% [markdown]
# ## Invisible time and work time: how long a lease should be
#
# A short lease repeats work; a long one keeps the messages of a process that died. A consumer can also ask for more
# time, with `change_invisible_duration`.


# %%
def asks_for_more(lab):
    shop_sells(lab, 1)
    consumer = billing(lab)
    (order,) = consumer.receive(1, "10s")
    first_handle = order.properties["POP_CK"]
    lab.run_for("8s")
    consumer.change_invisible_duration(order, "20s")
    lab.run_for("5s")
    order.properties["POP_CK"] = first_handle  # a copy from before the change
    consumer.ack(order)
    lab.run_for("30s")


# %% [prediction] lab15.old_handle
# A program takes an order, asks for 20 s more, and acknowledges with the copy of the message that it made before. What
# happens?
#
# - done: the order is done; the message is the same
#   > The broker does not know messages. It knows leases, and this one is over.
# - refused: the ack is refused
#   > No ack of an existing offset is refused.
# - again: the ack has no effect, and the order is delivered again
#   = A longer lease is a new lease with a new handle, and the ack of the old one. The copy has the old handle.
# note: At work: after a change, use the message object that the client updated.
# later: A POP program takes an order, asks for 20 s more, and acknowledges with the copy of the message that it made
#   before. What happens?

# %%
more = play(asks_for_more, seed=7, client=no_trace)
again = list(more.store().messages(RETRY))
show_leases(more, "billing", title="10 s, then 20 s more, and an ack of the old lease")

# %%
reveal("lab15.old_handle", "again" if again else "done")

# %% [markdown]
# Asking for more time needs a thread of its own. Most teams choose one invisible time for all calls instead, from
# measured work times.

# %% [exercise] lab15.invisible_for
# ### Exercise 1: choose the invisible time
#
# Write `invisible_for(work_ms, deaths, choices, repeat_cost, wait_cost)`.
#
# - `work_ms`: how long each call of a month took, in ms.
# - `deaths`: how many times a process died in the middle of a call; its message waits until the lease is over.
# - `choices`: the invisible times to choose from, in ms, in any order.
# - `repeat_cost`: what one repeated call costs. A call is repeated if it takes as long as the lease or longer.
# - `wait_cost`: what it costs if one message waits for one second.
#
# The cost of a choice is `repeats * repeat_cost + deaths * wait_cost * seconds of the choice`. Return the choice that
# costs least; if two cost the same, the shorter one.
#
# hint: Count the repeats of one choice: `sum(took >= choice for took in work_ms)`.
# hint: Write a function `cost(choice)` that returns `(cost, choice)`, so that equal costs are ordered by the choice.
# hint: Return `min(choices, key=cost)`. Divide the choice by 1,000 for its seconds.
# note: At work: measure the tail of your calls first. A mean hides the calls that repeat.


# %%
# exercise: lab15.invisible_for
def invisible_for(work_ms, deaths, choices, repeat_cost, wait_cost):
    """The invisible time that costs least, in ms."""

    ### BEGIN SOLUTION
    def cost(choice):
        repeats = sum(took >= choice for took in work_ms)
        waits = deaths * wait_cost * choice / 1000
        return repeats * repeat_cost + waits, choice

    return min(choices, key=cost)
    ### END SOLUTION


# %%
check("lab15.invisible_for")

# %% [belief] lab15.mean_is_enough
# question: Calls take five seconds on average. Which lease do they need?
# claim: A little more than five seconds.
# refutation: Half of the calls, or a long tail of them, take longer than the mean, and each of those is repeated.

# %% [belief] lab15.longest_work
# question: Which lease is always right?
# claim: One that is longer than the longest call.
# refutation: With a lease longer than the longest call nothing repeats, but every message of a process that died waits
#   that long. Compare both costs.

# %% [belief] lab15.short_is_safe
# question: Is a short lease the safe choice?
# claim: Yes, lost messages come back soon.
# refutation: So do messages that are being worked on. Each call that takes as long as the lease is done twice.

# %% [belief] lab15.just_in_time
# question: A call took exactly as long as the lease. Was its ack in time?
# claim: Yes, just in time.
# refutation: At its end the lease is over: the client drops a result when now - popTime >= invisibleTime.

# %% [belief] lab15.nobody_dies
# question: Do deaths of processes matter for the choice?
# claim: No, they are rare.
# refutation: The wait after a death is as long as the lease. With enough deaths, or expensive seconds, a shorter lease
#   is better.

# %% [markdown]
# ## The revive queue: check points and acks
#
# Here are the messages of a revive queue, in the order of their delivery. A check point (`ck`) and its `ack` carry the
# start offset and the pop time of their lease.


# %%
def two_pops(lab):
    shop_sells(lab, 5)
    consumer = billing(lab)
    first = consumer.receive(3, "10s")
    consumer.ack(first[1])
    second = consumer.receive(2, "20s")
    for order in second:
        consumer.ack(order)
    lab.run_for("30s")


# %%
pops = play(two_pops, seed=7, client=no_trace)
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"
Table(
    [
        {"kind": unit.tags, "revive queue": unit.queue_id, **json.loads(unit.body)}
        for unit in pops.store().messages(REVIVE)
    ],
    columns=["kind", "revive queue", "q", "so", "pt", "it", "d", "ao"],
    title="the revive topic",
)

# %%
show_leases(pops, "billing", title="the same leases: three, then two")

# %% [markdown]
# `q` is the queue, `so` the start offset, `d` the distances from it, `pt` the pop time, `it` the invisible time, `ao`
# the acknowledged offset. The broker stops at the first check point that it cannot settle yet, and begins there the
# next time.

# %% [exercise] lab15.revive
# ### Exercise 2: one round of revival
#
# Write `revive(units, seen_ms)`. `units` are the units of one revive queue, oldest first:
#
# - `("ck", queue, start, popped_ms, invisible_ms, distances)`: a pop gave out the messages `start + distance`.
# - `("ack", queue, start, popped_ms, offset)`: one of them is done. `queue`, `start` and `popped_ms` name the pop. An
#   ack counts only for a check point before it.
#
# `seen_ms` is how far the broker has read: a check point is settled if `seen_ms` is **more than** 2,000 ms past the end
# of its lease. The round ends at the first check point that is not settled, whatever comes after it.
#
# Return `(back, settled)`:
#
# - `back` is the list of `(queue, offset)` that go to the retry topic, in the order of the check points and distances.
# - `settled` is the number of check points that this round has settled.
#
# hint: Go through the units with their numbers. For a check point, look for its acks in `units[number + 1:]`.
# hint: `break` at the first check point with `seen_ms - popped_ms - invisible_ms <= 2000`.
# hint: A settled check point counts even if all of its messages were acknowledged.
# note: You have written `PopReviveService.mergeAndRevive`. Its progress is the committed offset of
#   `CID_RMQ_SYS_REVIVE_GROUP`.


# %%
# exercise: lab15.revive
def revive(units, seen_ms):
    """One round: what goes back, and how many check points are settled."""
    ### BEGIN SOLUTION
    back, settled = [], 0
    for number, (kind, queue, start, popped_ms, *rest) in enumerate(units):
        if kind != "ck":
            continue
        invisible_ms, distances = rest
        if seen_ms - popped_ms - invisible_ms <= 2000:
            break
        later = units[number + 1 :]
        name = ("ack", queue, start, popped_ms)
        done = {unit[4] for unit in later if tuple(unit[:4]) == name}
        offsets = [start + distance for distance in distances]
        back += [(queue, offset) for offset in offsets if offset not in done]
        settled += 1
    return back, settled
    ### END SOLUTION


# %%
check("lab15.revive")

# %% [belief] lab15.unsettled_is_skipped
# question: The first check point of a queue is not settled yet, the next one is. What does the round do?
# claim: It settles the next one and comes back for the first.
# refutation: The progress of a round is one offset. The round ends at the first check point that is not settled.

# %% [belief] lab15.lease_end_is_enough
# question: A lease has just ended without an ack. Does its message go back now?
# claim: Yes, the lease is over.
# refutation: Acks of the last moment may still be on their way through the wheel. The broker waits until it has seen
#   more than two seconds past the end.

# %% [belief] lab15.ack_names_the_offset
# question: An ack has the queue and the offset of a message. Is that enough to settle it?
# claim: Yes, they name the message.
# refutation: The message may have been popped before. An ack counts for the check point with its start and pop time.

# %% [belief] lab15.ack_of_the_pop
# question: A check point has four messages, and there is an ack. What goes back?
# claim: Nothing, the pop was acknowledged.
# refutation: The ack has one offset. The other three messages go to the retry topic.

# %% [belief] lab15.ack_before_its_point
# question: An ack is in the queue before its check point. Does it count?
# claim: Yes, the two belong together.
# refutation: The round reads from the front. When it meets the ack, it knows no such check point and ignores it.

# %% [belief] lab15.neighbours
# question: A pop gave four messages from offset 10 on. Which offsets do they have?
# claim: 10, 11, 12 and 13.
# refutation: The filter may have left some out. The distances of the check point say which ones were given.

# %% [belief] lab15.settled_is_given_back
# question: All messages of a check point were acknowledged. Does it count as settled?
# claim: No, there was nothing to do.
# refutation: A check point whose messages were all acknowledged is settled as well, and the round's progress moves past
#   it. Otherwise it would be read for ever.

# %% [markdown]
# ## Failing for ever: an order that never succeeds
#
# After a failure a push consumer changes the invisible time, to 10 s, then 30 s, 1 min, 2 min … The client checks the
# limit of 16 retries.


# %%
def poison(lab, most):
    shop_sells(lab, 1)
    lab.admin.set_message_request_mode("orders", "billing", "POP")
    consumer = lab.push_consumer(
        "billing", client_rebalance=False, max_reconsume_times=most
    )
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: RECONSUME_LATER)
    consumer.start()
    lab.run_for("15m")


# %% [prediction] lab15.poison
# A group allows two retries. Its listener fails every time. Where is the order in the end?
#
# - dlq: in the dead-letter queue `%DLQ%billing`
#   > The broker moves a message there only when it is sent back, and POP does not send back.
# - retry: in the retry topic, and it comes for ever
#   > The client counts. It acknowledges what came too often.
# - gone: it was acknowledged, and no group will get it any more
#   = The popping Java client acknowledges a message that came too often. There is no dead letter.
# note: Only the proxy of RocketMQ 5 forwards to a dead-letter topic. At work: with POP over remoting, store the poison
#   yourself before the last retry.
# later: A popping push consumer allows two retries. Its listener fails every time. Where is the order in the end?

# %%
dropped = play(lambda lab: poison(lab, 2), seed=7, client=no_trace)
topics = sorted({message.topic for message in dropped.store().messages()})
dlq = "%DLQ%billing" in topics
given_up = dropped.journal.changes("message.given_up")
reveal("lab15.poison", "dlq" if dlq else "gone" if given_up else "retry")

# %%
show_leases(dropped, "billing", title="three calls, then it is gone")

# %% [answer] lab15.third_wait
# ### Your turn: how long until the third call?
#
# Set `MOST` to 4 and run the cell. How many whole seconds are between the beginning of the second call and the beginning
# of the third?
#
# wrong push: That is the delay the client asked for. Revival and the held pop come on top.
# wrong first: That is the wait between the first call and the second.
# wrong: Subtract `started_ms` of the second row from that of the third, in whole seconds.
# note: With pulls, retry delays are the levels of lab 07. With POP, the client chooses them, and each one is late by the
#   revival and the poll.

# %% tags=["parameter"]
MOST = 1

fails = play(lambda lab: poison(lab, MOST), seed=7, client=no_trace)
starts = [row["started_ms"] for row in fails.deliveries("billing", absences=False)]
Bars(
    {f"call {number}": (ms - starts[0]) // 1000 for number, ms in enumerate(starts, 1)},
    unit="s after the first",
    title=f"max_reconsume_times={MOST}",
)

# %%
### BEGIN SOLUTION
four = play(lambda lab: poison(lab, 4), seed=7, client=no_trace)
starts = [row["started_ms"] for row in four.deliveries("billing", absences=False)]
answer("lab15.third_wait", (starts[2] - starts[1]) // 1000, four)
### STARTER
# answer("lab15.third_wait", ..., fails)
### END SOLUTION

# %% [markdown]
# ## A killed broker: delivered twice, although acknowledged
#
# Check points and acks are in the log. The group's offset is in a file that is written ten seconds after a start and
# every five seconds from then on. A consumer takes four orders and acknowledges two. Then the broker is killed and
# started again.


# %%
def killed(lab, after):
    shop_sells(lab, 4)
    consumer = billing(lab)
    orders = consumer.receive(4, "10s")
    for order in orders[:2]:
        consumer.ack(order)
    lab.run_for(after)
    lab.kill("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("2s")
    while lab.now_ms - lab.began_ms < 60_000:
        for order in consumer.receive(8, "60s"):
            came.append(order.keys)
            consumer.ack(order)


# %% [prediction] lab15.kill9
# The broker is killed one second after the acks. Which orders are received again, and how often in all?
#
# - two: the two without an ack, once each
#   > That is true after a graceful stop. After this kill the file has no offset yet, so the acknowledged orders are
#   > handed out again as well.
# - four: all four, once each
#   > The check point is in the log as well, and it brings two of them once more.
# - six: all four from the queue, and the two without an ack once more from the retry topic
#   = The file has no offset yet, so the queue is handed out from its beginning. The old check point is settled as well.
# note: At work: an ack does not protect against a repeat. Idempotent consumers are needed with POP as much as with pulls.
# later: -

# %%
came = []
soon = play(lambda lab: killed(lab, "1s"), seed=7, client=no_trace)
times = Counter(came)
Bars(dict(sorted(times.items())), unit="times again", title="killed after a second")

# %%
reveal("lab15.kill9", {2: "two", 4: "four", 6: "six"}[len(came)])

# %% [answer] lab15.killed_later
# ### Your turn: kill it later
#
# Set `AFTER` to `"12s"` and run the cell. How many deliveries come after the restart now?
#
# wrong six: The offset is written every five seconds from the tenth on, so the file has it now.
# wrong none: Two orders were never acknowledged.
# wrong: Count the list `came` of your own run.
# note: A second can decide whether acknowledged orders are delivered again. You cannot choose the second.

# %% tags=["parameter"]
AFTER = "1s"

came = []
later = play(lambda lab: killed(lab, AFTER), seed=7, client=no_trace)
Bars(dict(sorted(Counter(came).items())), unit="times again", title=f"after {AFTER}")

# %%
### BEGIN SOLUTION
came = []
later_on = play(lambda lab: killed(lab, "12s"), seed=7, client=no_trace)
answer("lab15.killed_later", len(came), later_on)
### STARTER
# answer("lab15.killed_later", ..., later)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## Orderly pop: one message group at a time
#
# The 5.x clients know *message groups*: orders with the same group are consumed in order. The proxy pops them with
# `order=true`, and the broker then works differently:
#
# - There is no check point and no retry topic. A queue is blocked while a message of its last pop is out.
# - The committed offset stays at the first message that was not acknowledged.
# - When the block ends, the same messages are delivered again from there, in order.
# - The counts are in `config/consumerOrderInfo.json`, every ten seconds. A killed broker forgets some.
#
# A stuck message of one group then blocks its whole queue, as in lab 05b.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **An idle broker.** Where the timer wheel is behind, revivals are late as well.
# - **Remoting clients only.** The proxy renews leases, checks handles by the clock and has dead letters.
# - **Not modelled:** the proxy's own queues, POP on RocksDB. [The whole list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | rounds of revival | `PopReviveService.consumeReviveMessage`, `mergeAndRevive` |
# | a copy for the group | `PopReviveService.reviveRetry`, `KeyBuilder.buildPopRetryTopic` |
# | a longer lease | `ChangeInvisibleTimeProcessor` |
# | held pops | `PopLongPollingService` |
# | steps after a failure | `ConsumeMessagePopConcurrentlyService`, `popDelayLevel` |
# | orderly pop | `ConsumerOrderInfoManager` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | redelivered when the invisible time is over | 2.0 to 4.3 s later, and up to the poll time later still |
# | after maxReconsumeTimes: dead letter | the Java client acknowledges and drops it |
# | retry delays are delay levels | the client's own steps: 10 s, 30 s, 1 min … |
# | POP is at least once, so acks are safe | an acknowledged message is delivered again when a broker is killed soon after |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab15.own_dead_letters
# **1.** Your group pops, and poison must not vanish. What do you write into the listener?
#
# answer: At the limit of `reconsume_times` the listener sends the message to a topic of your own, waits for the answer,
#   and only then returns success. If the send fails, it returns RECONSUME_LATER.

# %% [reflection] lab15.renew
# **2.** Which is better: a long invisible time, or a short one that the listener renews?
#
# answer: Renewing finds a dead process sooner and lets long calls end. It needs a thread, and each renewal is a check
#   point and an ack in the log. A process that hangs but still renews keeps its message for ever.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 14](14-find-the-bug.ipynb) hides a defect in a cluster for you to find. All labs: [index](index.ipynb).
