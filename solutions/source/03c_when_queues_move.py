# %% [markdown] tags=["reading"]
# # 03c Handover: when queues move
#
# ## Why
#
# On Monday at 9:00 two instances of billing joined, [queues moved](03b-what-a-change-moves.ipynb), and for half a
# minute orders were charged twice. Nothing had failed or crashed. "A queue never has two readers", says the meeting.
# "Clustering means that a message is consumed once."

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](03a-who-reads-which-queue.ipynb), not the second. Afterwards you
# can
#
# - find two processes with one client id;
# - say who learns of a join, a crash and a power cut, and how long a queue is without a reader;
# - make two members work on one message, and say what protects you and what does not.

# %%
from collections import Counter

from mqlab import CONSUME_SUCCESS, SUCCESS, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import allocation_board
from mqlab.lab.views import Bars, Table

# %% [markdown]
# ## A slow billing
#
# Billing takes four seconds for each order, because it asks a bank. `ordered` is for orderly consumption (顺序消费):


# %% tags=["setup"]
def pays(messages, context):
    context.sleep("4s")
    return CONSUME_SUCCESS


def pays_in_order(messages, context):
    context.sleep("4s")
    return SUCCESS


def start(lab, name, listener=pays, ordered=False, **settings):
    consumer = lab.push_consumer("billing", name=name, **settings)
    consumer.subscribe("orders", "*")
    if ordered:
        consumer.on_messages_orderly(pays_in_order)
    else:
        consumer.on_messages(listener)
    consumer.start()
    return consumer


# %% tags=["parameter"]
def group(lab, instances, queues=8, **settings):
    """A group at work for half a minute, so that everything has settled."""
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    for number in range(1, instances + 1):
        start(lab, f"billing-{number}", **settings)
    lab.run_for("31s")


def orders(lab, a_second=4, seconds=10):
    rates = [("0s", a_second), (f"{seconds}s", 0)]
    shop = lab.producer("shop")
    lab.traffic(
        shop,
        rates=rates,
        message=lambda n: Message("orders", b"a book", keys=f"order-{n}"),
    )


no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Two processes, one client id
#
# A client id is `address@instance name`. RocketMQ makes it unique with the process's number and a clock, unless you set
# the instance name. With such a configuration on two machines whose containers have the same address, two instances
# have one id, and RocketMQ accepts both.

# %% [prediction] lab03.one_id
# Three processes read eight queues with AVG. Two of them have the same client id. How many queues have no reader?
#
# - 0: none; the second of the two is refused, or takes over from the first
#   > The broker refuses neither. It keeps connections, and lists the id twice.
# - 3: three
#   = The list has three entries. Both processes find their id at the first of the two equal entries, so both read the
#   = first block, and the second block has no reader.
# - 4: four; the broker counts two members, so each has four queues
#   > The list has three entries, one for each connection. The shares are thirds.
# note: Two processes read the same three queues at the same time, for as long as both run.


# %%
def copied(lab):
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    quick = {"listener": lambda messages, context: CONSUME_SUCCESS}
    same = {"client_ip": "172.17.0.2", "instance_name": "billing"}
    start(lab, "billing-1", **quick, **same)
    start(lab, "billing-2", **quick, **same)
    start(lab, "billing-3", client_ip="172.17.0.3", **quick)
    lab.run_for("31s")
    shop = lab.producer("shop")
    for number in range(80):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("10s")


lab = play(copied, seed=7, client=no_trace)
read = Counter(row.client for row in lab.deliveries("billing", absences=False))
Bars(dict(sorted(read.items())), unit="orders", title="eighty orders were sent")

# %%
rows = [row for row in lab.progress("billing") if row.topic == "orders"]
reveal("lab03.one_id", sum(not row.client for row in rows))

# %%
lab.progress("billing")

# %% [markdown]
# An operator's tool shows this much of it (`mqadmin consumerConnection`):

# %%
lab.admin.examine_consumer_connection_info("billing")

# %% [belief] lab03.one_id_in_the_world
# question: Two groups have a member with the same client id. Is that a pair of twins?
# claim: Yes: a client id must be there only once in the whole cluster.
# refutation: Queues are divided within a group. One process with a consumer in each of two groups has one id, and does
#   no harm.

# %% [exercise] lab03.twins
# ### Exercise 7: find the twins
#
# `admin.examine_consumer_connection_info(group).connections` are the members of a group; each has `client_id` and
# `client_addr`. Write `twins`. For each id that two or more members of one group share, it returns a tuple: the group,
# the id, and the list of all their addresses. An id in two groups is harmless, because queues are divided within a group.
#
# hint: For each group make a dictionary: client_id -> list of client_addr.
# hint: `by_id.setdefault(member.client_id, []).append(member.client_addr)`; a new dictionary for each group.
# hint: Ids with two addresses or more are twins: append `(group, client_id, addresses)`.
# note: ConsumerGroupInfo's table is keyed by channel, so both are in it; ClientConfig.buildMQClientId made the ids. At
#   work: run this as an alarm after each deployment.


# %%
# exercise: lab03.twins
def twins(admin, groups):
    """The members with one client id.

    Returns a list of tuples: (group, client_id, [client_addr, client_addr, ...]).
    """
    ### BEGIN SOLUTION
    found = []
    for group in groups:
        by_id = {}
        for member in admin.examine_consumer_connection_info(group).connections:
            by_id.setdefault(member.client_id, []).append(member.client_addr)
        for client_id, addresses in by_id.items():
            if len(addresses) > 1:
                found.append((group, client_id, addresses))
    return found
    ### END SOLUTION


# %%
check("lab03.twins")

# %% [markdown]
# ## A third instance
#
# Two members share four queues. A third one starts and sends a heartbeat (心跳). The broker notifies the others that the
# list of members has changed, and each computes its share again (重平衡).

# %% [prediction] lab03.pause
# The third member gets queue 3 from the second. How long after its start does a listener get a new order of queue 3, at
# the earliest?
#
# - 0: at once; the queue has a reader at every moment
#   > The old owner lets go within milliseconds. The new one needs a second until its first round, and half a second
#   > until its first pull.
# - 1: after one to two seconds
#   = The new member's first round comes after about a second, and its first pull 500 ms later.
# - 20: after 20 seconds, at the next round of the timer
#   > The timer is for members that were not notified. The broker notified these.
# note: The pause is short, but every queue that moves has it. AVG moved more of them than it had to.
# later: A third member joins billing and gets queue 3 from the second one. How long after its start does a listener
#   get a new order of queue 3, at the earliest?


# %%
def quickly(messages, context):
    context.sleep("100ms")
    return CONSUME_SUCCESS


def third(lab):
    group(lab, 2, queues=4, listener=quickly)
    shop = lab.producer("shop")
    start(lab, "billing-3", quickly)
    joined.append(lab.now_ms)
    for _ in range(40):
        shop.send(Message("orders", b"a book"))
        lab.run_for("100ms")


joined = []
lab = play(third, seed=7, client=no_trace)
lab.queue_owners("billing", from_ms=joined[-1] - 500, until_ms=joined[-1] + 3_500)

# %%
rows = lab.deliveries("billing", absences=False)
first = next(row for row in rows if row.client == "billing-3")
reveal("lab03.pause", (first.started_ms - joined[-1]) // 1000)

# %% [markdown]
# The same second as calls between nodes. The old owner reports its offset (消费位点) when it lets go; the new one begins
# there.

# %%
steps = [record.step for record in lab.journal if record.now_ms >= joined[-1] - 2]
lab.space_time(steps[0], steps[36])

# %% [markdown]
# ## Which changes the broker announces
#
# "The broker detects every change and notifies at once." Does it?

# %% [prediction] lab03.more_queues
# An operator doubles the queues of `orders`, from 8 to 16. When do the members read the new queues?
#
# - 0: at once; the broker notifies the group
#   > The broker notifies a group when its members or their topics change. The number of queues is neither.
# - 30: after half a minute or so
#   = They fetch the route every 30 seconds, and compute their share at the next round, every 20 seconds.
# - never: when they are restarted
#   > The route is polled, so no restart is needed.
# note: At most 30 + 20 seconds. What producers write into the new queues meanwhile waits there.

# %% [prediction] lab03.power
# The machine of one member loses its power. When do other members read its queues?
#
# - a second: after a second, as if its process had been killed
#   > A process that is killed closes its connections, because its machine still works. Here nothing is closed.
# - 20 seconds: after 20 seconds, when the others compute their share
#   > They do, but the broker's list still contains the dead member.
# - two minutes: after about two minutes
#   = The broker removes a member that has sent nothing for 120 seconds.
# note: Heartbeats come every 30 seconds, the broker scans its list every 10 seconds, and it allows 120 seconds without
#   one.


# %% tags=["parameter"]
def more_queues(lab):
    lab.admin.update_topic("orders", read_queue_nums=16, write_queue_nums=16)


def other_tags(lab):
    lab.handles["billing-1"].subscribe("orders", "paid")


CHANGES = {
    "a member joins": lambda lab: start(lab, "billing-3"),
    "a member is shut down": lambda lab: lab.handles["billing-2"].shutdown(),
    "a member is killed": lambda lab: lab.kill("billing-2"),
    "a machine loses its power": lambda lab: lab.power_off("billing-2"),
    "the topic gets more queues": more_queues,
    "a member changes its tags": other_tags,
}


# %%
def until_settled(change, **broker):
    """Seconds from a change until no queue moves any more; None if none moved."""

    def story(lab):
        group(lab, 2)
        begins.append(lab.now_ms)
        change(lab)
        lab.run_for("4m")

    begins = []
    lab = play(story, seed=7, client=no_trace, broker=broker)
    moves = [*lab.journal.changes("queue.added"), *lab.journal.changes("queue.dropped")]
    after = [step.now_ms - begins[0] for step, _ in moves if step.now_ms >= begins[0]]
    return round(max(after) / 1000, 2) if after else None


# %%
settled = {name: until_settled(change) for name, change in CHANGES.items()}
print("moved nothing:", *(name for name, seconds in settled.items() if seconds is None))
shown = {name: seconds for name, seconds in settled.items() if seconds is not None}
Bars(shown, unit="s", title="from the change until the last queue has moved")

# %%
slowest = settled["the topic gets more queues"]
reveal("lab03.more_queues", "never" if slowest is None else 30 if slowest > 20 else 0)

# %%
dark = settled["a machine loses its power"]
names = {1: "a second", 20: "20 seconds", 120: "two minutes"}
reveal("lab03.power", names[min(names, key=lambda seconds: abs(seconds - dark))])

# %% [markdown]
# A change of tags notifies no member (lab 06). A notice can get lost, or be switched off for a group. Then every member
# finds out at its next round. Members do not wait for each other: the new member takes its share at once, while the old
# ones still read it.

# %% [answer] lab03.deaf
# ### Your turn: no notices
#
# The broker notifies no member. The third member joins `PAUSE` seconds after the others have settled. Find a whole
# number of seconds, from 0 to 20, with which some queue has two owners for more than 15 seconds. Answer with how many
# seconds it had two owners.
#
# wrong pause: That is `PAUSE`. The question is how long the two bars of one queue overlap.
# wrong: Read it from the picture: from the moment at which billing-3 owns the queue until the other one lets go, in
#   whole seconds.
# note: The timer of the old owner decides: up to 20 seconds. Your listeners must tolerate this, because notices are
#   best effort.

# %% tags=["parameter"]
PAUSE = 2


def nobody_is_told(pause):
    def story(lab):
        group(lab, 2, queues=4)
        lab.run_for(f"{pause}s")
        start(lab, "billing-3")
        lab.run_for("30s")

    silent = {"notify_consumer_ids_changed_enable": False}
    return play(story, seed=7, client=no_trace, broker=silent)


deaf = nobody_is_told(PAUSE)
deaf.queue_owners("billing", from_ms=deaf.now_ms - 31_000)

# %%
### BEGIN SOLUTION
deaf = nobody_is_told(11)
answer("lab03.deaf", 18, deaf)
### STARTER
# answer("lab03.deaf", ..., deaf)
### END SOLUTION

# %% [markdown]
# ## Two owners
#
# Now Monday's deployment: two instances join three others while orders arrive all the time. Every member is notified,
# and nothing fails.

# %% [prediction] lab03.twice
# Forty orders arrive while the two instances join. How many of them are charged twice?
#
# - none: none; a queue has one reader, and the old one commits its offset before it lets go {lab03.one_reader}
#   > It reports the offset up to which everything is done. An order that is still in its listener is not done. The new
#   > owner gets it, and the old listener continues.
# - some: those that were with a listener of a queue that moved
#   = The old owner finishes them, but its results no longer count.
# - all: all forty
#   > Most queues stayed where they were, or had nothing in a listener.
# note: A message is consumed at least once. A group tends towards one reader per message; it does not guarantee it at
#   every moment.
# later: -


# %%
def deployment(lab, ordered=False):
    group(lab, 3, ordered=ordered)
    orders(lab)
    lab.run_for("6s")
    for number in (4, 5):
        start(lab, f"billing-{number}", ordered=ordered)
    lab.run_for("60s")


lab = play(deployment, seed=7, client=no_trace)
begins = next(iter(lab.deliveries("billing", absences=False))).started_ms
two_queues = lab.queue_owners(
    "billing", from_ms=begins - 1_000, until_ms=begins + 25_000, queues=(2, 5)
)
two_queues

# %%
charged = Counter(row.msg_id for row in lab.deliveries("billing", absences=False))
print(Counter(charged.values()))
twice = sum(times > 1 for times in charged.values())
how_many = "none" if twice == 0 else "all" if twice == len(charged) else "some"
reveal("lab03.twice", how_many)

# %% [markdown]
# A call continues after its queue has moved, because the client does not interrupt a listener. When it returns, its
# result is thrown away (`RESULT_DISCARDED`):

# %%
rows = [
    row for row in lab.deliveries("billing", absences=False) if charged[row.msg_id] > 1
]
Table(
    {
        "queue": row.message_queue.queue_id,
        "offset": row.queue_offset,
        "client": row.client,
        "started": f"+{(row.started_ms - begins) / 1000:.1f} s",
        "ended": f"+{(row.ended_ms - begins) / 1000:.1f} s",
        "reconsume_times": row.reconsume_times,
        "status": row.status,
    }
    for row in sorted(rows, key=lambda row: (row.message_queue, row.queue_offset))[:6]
)

# %% [exercise] lab03.two_owners
# ### Exercise 8: one message, two members
#
# Write the smallest story in which one stored message (the same entry of the same queue, `reconsume_times` 0) is with
# two members at the same time: the second call begins before the first has ended. Do without a kill, a power cut, a
# reset, a failing listener and broadcasting. You get an empty Lab: make a topic, members of one group, a producer, and
# let time pass. `start(lab, "billing-1", listener)` from above makes a member.
#
# ```python
# def listener(messages, context):
#     context.sleep("10s")  # it takes ten seconds
#     return CONSUME_SUCCESS
# ```
#
# hint: The first member must be at work on an order of a queue that moves. How long must its listener take?
# hint: A topic with two queues; one member, which gets both; two orders, so that there is one in each queue. Then the
#   second member.
# hint: Listeners of 20 s. Start the first member, `lab.run_for("5s")`, send, `lab.run_for("1s")`, start the second,
#   `lab.run_for("60s")`. The second member begins two seconds after its start.
# note: ProcessQueue.setDropped makes the result worthless, in ConsumeMessageConcurrentlyService.processConsumeResult.
#   At work: what protects you is the unique row in your own database (lab 04), not the broker.


# %%
# exercise: lab03.two_owners
def two_owners(lab):
    """A story: one stored message is with two members of a group at a time."""
    ### BEGIN SOLUTION

    def slow(messages, context):
        context.sleep("20s")
        return CONSUME_SUCCESS

    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    start(lab, "billing-1", slow)
    lab.run_for("5s")
    seller = lab.producer("shop")
    for _ in range(2):
        seller.send(Message("orders", b"two books"))
    lab.run_for("1s")
    start(lab, "billing-2", slow)
    lab.run_for("60s")
    ### END SOLUTION


# %%
check("lab03.two_owners")

# %% [markdown]
# ## In order, with a lock
#
# An orderly group has a lock (队列锁) for each queue at the broker, and a member reads a queue only with the lock. The
# same deployment, in order:

# %% [prediction] lab03.in_order
# Are orders charged twice now?
#
# - no: no; with the lock a queue has one reader at every moment
#   > It has one reader, yes. But the old owner's last result is still thrown away, and the order is then redelivered to
#   > the new one.
# - at a time: yes, and some are with two members at a time
#   > The lock prevents that: the old owner releases it only when its listener has returned.
# - one after the other: yes, but one after the other
#   = The lock keeps two listeners apart. It does not make the old result count.
# note: Orderly consumption protects the order. It does not make anything exactly once.
# later: -

# %%
ordered = play(lambda lab: deployment(lab, ordered=True), seed=7, client=no_trace)
in_order = ordered.queue_owners(
    "billing", from_ms=begins - 1_000, until_ms=begins + 40_000, queues=(2, 5)
)
in_order

# %%
by_entry = {}
for row in ordered.deliveries("billing", absences=False):
    place = (row.message_queue, row.queue_offset)
    by_entry.setdefault(place, []).append((row.started_ms, row.ended_ms))
again = [sorted(calls) for calls in by_entry.values() if len(calls) > 1]
both = any(one[1] > other[0] for one, other in again)
twice_in_order = "at a time" if both else "one after the other" if again else "no"
reveal("lab03.in_order", twice_in_order)

# %% [markdown]
# ## The window on a board
#
# The controls are at the foot of the board, under *While a queue changes hands, in a running group*.

# %% [answer] lab03.window
# ### Your turn: short calls, and no notices
#
# "Our listeners take a tenth of a second. It will not happen to us." Play the running group with calls of 100 ms, a
# member that joins, and members that are not notified. How many messages do two members get? (`window.twice()` has a
# row for each.)
#
# wrong queues: That is how often a queue had two owners. The question is how many messages both got.
# wrong: Count the rows of `window.twice()` after you have played it.
# note: Short calls make duplicates rare while queues move in milliseconds. They do nothing about the twenty seconds of
#   members that were not notified.

# %% tags=["explorer"]
window = allocation_board("AVG", queues=8, members=2)
window

# %%
### BEGIN SOLUTION
window.play(change="join", call="100ms", told=False)
answer("lab03.window", len(window.twice()), window)
### STARTER
# answer("lab03.window", ..., window)
### END SOLUTION

# %% [markdown]
# ## Two brokers, two lists
#
# A member asks any one of the topic's brokers for the list of members. Each broker knows the members that send it
# heartbeats. Here billing-2 cannot reach broker-b for a while. After two minutes broker-b has forgotten billing-2,
# broker-a has not, and billing-1 believes whichever it asks:

# %% tags=["parameter"]
LASTS = "4m"


def two_lists(lab):
    group(lab, 2, queues=2)
    lab.partition("billing-2", "broker-b")
    lab.run_for(LASTS)


lab = play(two_lists, seed=7, brokers=2, client=no_trace)
for name in ("broker-a", "broker-b"):
    print(name, "knows", lab.broker(name).consumers["billing"].client_ids)
lab.queue_owners("billing", from_ms=lab.now_ms - 240_000)

# %% [markdown]
# Each round, every 20 seconds, is a toss of a coin: the queues of broker-b have one owner or two.

# %% [markdown]
# ## Break it: half a deployment
#
# The team prefers AVG_BY_CIRCLE and rolls it out, one member after another. At noon two of three have it:

# %% tags=["parameter"]
STRATEGIES = ["AVG_BY_CIRCLE", "AVG_BY_CIRCLE", "AVG"]


def half_a_deployment(lab):
    lab.create_topic("orders", read_queue_nums=8, write_queue_nums=8)
    for number, name in enumerate(STRATEGIES, 1):
        start(lab, f"billing-{number}", allocate_message_queue_strategy=name)
    lab.run_for("2m")


lab = play(half_a_deployment, seed=7, client=no_trace)
lab.queue_owners("billing")

# %%
rows = [row for row in lab.progress("billing") if row.topic == "orders"]
Table({"queue": row.queue_id, "read by": row.client or "nobody"} for row in rows)

# %% [markdown]
# This does not settle, because RocketMQ never compares the members' strategies. Try other combinations in `STRATEGIES`.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Every queue's pause was counted in virtual time.** A real network adds to it, and so does a broker under load.
# - **Nothing here is idempotent (幂等).** Duplicates were counted, not prevented. Lab 04 prevents them.
# - **The 120 seconds are the broker's setting** `channelExpiredTimeout`, the 20 seconds a system property of the
#   client. Shorter ones cost false alarms and more requests.
# - **The members divided the queues.** RocketMQ 5 can also let the broker do it (`clientRebalance=false`), and has POP
#   ([lab 15a](15a-leased-not-owned.ipynb)), in which a queue may have several readers.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | a round | `RebalanceImpl.doRebalance`, `updateProcessQueueTableInRebalance`; every 20 s in `RebalanceService` |
# | who is there | `ConsumerManager`, `ConsumerGroupInfo`; `ClientHousekeepingService` scans every 10 s |
# | notifying the others | `DefaultConsumerIdsChangeListener`, request `NOTIFY_CONSUMER_IDS_CHANGED` (40), one way |
# | letting go | `RebalancePushImpl.removeUnnecessaryMessageQueue`: reports the offset; in order, unlocks after the listener |
# | the new owner's beginning | `RebalancePushImpl.computePullFromWhereWithException` |
# | a result that counts for nothing | `ConsumeMessageConcurrentlyService`: `processQueue.isDropped()` |
# | locks | `RebalanceLockManager`, 60 s; the client renews them every 20 s |
# | the client id | `ClientConfig.buildMQClientId`: clientIP, instanceName, unitName |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | the broker detects every change and notifies at once | joins, leaves and topics that are added or removed; queues are found by polling (30 + 20 s), tags are not; a notice may get lost |
# | a queue has one consumer at any time | when everything has settled; while queues move, or members see different lists, it may have two or none |
# | clustering: each message is consumed once | at least once |
# | orderly consumption cannot deliver twice | not to two at the same time; one after the other it can |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab03.monday
# **1.** The meeting's four sentences: what would you show your colleagues?
#
# answer: *Averaging is fair*: the bars of Monday, 40 % and nothing, because two topics begin with the same member.
#   *Enough virtual nodes*: twelve queues on a ring with 20 of them, nine for one member. *Never two readers*: the two
#   overlapping bars of one queue, and the calls marked below them. *Consumed once*: the count of deliveries per order,
#   with the same queue offset and reconsume_times 0.

# %% [reflection] lab03.quiet
# **2.** You must add two instances at noon. How do you do it with as few double charges as possible?
#
# answer: Shorten the time in which results can be discarded: use short listeners, or pause the members (`suspend`) and
#   let the listeners finish before the new ones start. Start both at once, so that queues move once. And keep the
#   unique row in the database, because a notice may get lost or a process may crash, and then none of this helps.

# %% [markdown] tags=["reading"]
# ## Next
#
# The new owner begins at the offset that the old one has reported. Who stores it when, and what is redelivered after a
# crash? That is lab 04. All labs: [index](index.ipynb).
