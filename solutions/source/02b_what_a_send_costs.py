# %% [markdown] tags=["reading"]
# # 02b Sending: what a send costs
#
# ## Why
#
# 16:40, the same afternoon. Each put on broker-b takes three seconds. The team looks for a setting that helps:
#
# - "RocketMQ sends to the fastest broker, doesn't it? Then it will avoid broker-b."
# - "We send asynchronously. That never waits, and it cannot lose anything."
# - "A send that fails has not been stored, so we send it again."
# - "With round robin a slow broker fills the producer's buffer."
#
# By evening some customers are charged twice, and three orders of the shop's database reached no other system. You send
# one order in four ways, and remove the answer, the shop or the broker on its way.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 02a](02a-who-knows-what.ipynb). Afterwards you can
#
# - say to which queue a message goes, and what a slow broker changes about that;
# - say for each way to send which failures are retried, and where;
# - read a send's error as what it is: *I do not know*;
# - write a shop whose orders and messages agree wherever its process crashes.

# %%
from collections import Counter

from mqlab import Message, every_crash, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.errors import MqlabError
from mqlab.lab.views import Bars, Curve, Table

# %% [markdown]
# ## Which queue
#
# A producer sends the next message to the next queue, broker by broker.


# %% tags=["parameter"]
no_trace = {"enable_trace": False}  # nothing but orders in the log


def order(number):
    return Message("orders", b"a book", keys=f"order-{number}")


def shop_and_topic(lab, **settings):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    return lab.producer("shop", **settings)


# %%
def eight_orders(lab):
    shop = shop_and_topic(lab)
    lab.went = [shop.send(order(number)).message_queue for number in range(8)]


lab = play(eight_orders, seed=7, brokers=2, client=no_trace)
Table(
    {"order": number, "broker": queue.broker_name, "queue": queue.queue_id}
    for number, queue in enumerate(lab.went)
)

# %% [markdown]
# Now three brokers, with every frame to and from broker-b delayed by 400 ms.


# %% tags=["parameter"]
def one_is_slow(lab, delay="400ms", count=60, **settings):
    shop = shop_and_topic(lab, **settings)
    shop.send(order(-1))
    lab.slow("broker-b", delay)
    lab.sends = []
    for number in range(count):
        began_ms = lab.now_ms
        result = shop.send(order(number))
        lab.sends.append((result.message_queue.broker_name, lab.now_ms - began_ms))
        lab.run_for("250ms")


def went_to(lab):
    return dict(sorted(Counter(broker for broker, _ in lab.sends).items()))


# %% [prediction] lab02.default
# The shop has RocketMQ's default settings. How many of 60 orders go to broker-b?
#
# - few: only a few, until the producer notices how slow it is
#   > It could measure that, but `sendLatencyFaultEnable` is off by default. The bars show an even split.
# - third: about a third
#   = Round robin ignores how long an answer takes. Only a failure makes the producer try elsewhere, and a slow answer
#   = is not a failure.
# - more: more than a third, because the others are done sooner
#   > Round robin does not know which broker has answered. The bars show an even split.
# note: The default spreads evenly, so every third order waits.
# later: One of three brokers, broker-b, takes seconds for each put. The shop has RocketMQ's default settings. How
#   many of 60 orders go to broker-b?

# %%
lab = play(one_is_slow, seed=7, brokers=3, client=no_trace)
Bars(
    went_to(lab),
    unit="orders",
    title=f"default: {sum(ms for _, ms in lab.sends) / 1000:.1f} s of waiting",
)

# %%
slow = went_to(lab)["broker-b"]
reveal("lab02.default", "few" if slow < 12 else "third" if slow < 27 else "more")

# %% [markdown]
# With `send_latency_fault_enable=True` the producer keeps a table (故障延迟规避) of how long each broker's last answer took.

# %% [prediction] lab02.fastest_broker
# broker-a answers after 2 ms, broker-c after 42 ms, broker-b after 802 ms. The latency table is on. Where do the orders
# go?
#
# - fastest: almost all to broker-a, the fastest {lab02.fastest}
#   > The table does not choose the fastest. It bans a broker for a time that depends on its latency class, and uses the
#   > others in turn. Below 550 ms no broker is banned.
# - round: half each to broker-a and broker-c, and now and then one to broker-b
#   = 802 ms belongs to the class that begins at 550 ms, so the ban is two seconds. Then broker-b gets one more try.
# - never: broker-b gets nothing any more
#   > It is banned only for two seconds. The next order then tests whether it has recovered.
# note: Textbooks say "the queue with the least delay, ties round robin". RocketMQ makes no such choice.


# %%
def two_kinds_of_slow(lab):
    lab.slow("broker-c", "20ms")
    one_is_slow(lab, send_latency_fault_enable=True)


lab = play(two_kinds_of_slow, seed=7, brokers=3, client=no_trace)
Bars(
    went_to(lab),
    unit="orders",
    title=f"with the table: {sum(ms for _, ms in lab.sends) / 1000:.1f} s of waiting",
)

# %%
got = went_to(lab)
few = got.get("broker-b", 0) < 12
happened = (
    "never"
    if "broker-b" not in got
    else "fastest"
    if got["broker-c"] < 12
    else "round"
    if few
    else ""
)
reveal("lab02.fastest_broker", happened)

# %% [answer] lab02.ban
# ### Your turn: a longer ban
#
# Change `DELAY` (it counts once for the request and once for the answer) so that broker-b is banned for **five**
# seconds after each answer. Answer with the number of orders of 60 that then go to it.
#
# wrong two: That is how many there are with a ban of two seconds.
# wrong: Count them in the line under the cell.
# note: From 1,800 ms on the ban is 5 s. The slower a broker is, the longer its ban, and the later the producer notices
#   its recovery.

# %% tags=["parameter"]
DELAY = "400ms"


def banned(lab):
    one_is_slow(lab, DELAY, send_latency_fault_enable=True)


longer = play(banned, seed=7, brokers=3, client=no_trace)
print(went_to(longer), "longest answer:", max(ms for _, ms in longer.sends), "ms")

# %%
### BEGIN SOLUTION
DELAY = "1s"
longer = play(banned, seed=7, client=no_trace, brokers=3)
answer("lab02.ban", went_to(longer)["broker-b"], longer)
### STARTER
# answer("lab02.ban", ..., longer)
### END SOLUTION

# %% [exercise] lab02.strategy
# ### Exercise 1: a table of bans
#
# Write the class `MyFaults`. The producer of the shop uses it (`mq_fault_strategy=`). It is made without arguments, and
# has three methods:
#
# | method | what it does |
# |---|---|
# | `update(broker_name, latency_ms, now_ms, *, isolation, reachable)` | called when a send has ended: bans the broker for the time of its class, from `now_ms` on. A later update never makes a ban shorter |
# | `is_available(broker_name, now_ms)` | True if no ban is running; at the moment of its end a ban is over |
# | `is_reachable(broker_name)` | what `reachable` was at the last update; True if there was none |
#
# The class of a latency is the largest entry of `LATENCY_MAX` that it has **reached**; the ban is the entry of
# `NOT_AVAILABLE` at the same index, and 0 below all of them. `isolation=True` means that the send has failed: then the
# broker is banned as if it had taken 10,000 ms, however long it took.
#
# hint: Keep two dictionaries: broker -> the ms at which its ban ends, and broker -> reachable.
# hint: For the class, go through the table from its end: the first threshold with `latency_ms >= threshold` counts.
# hint: `self.ends[name] = max(self.ends.get(name, 0), now_ms + duration)`. The `max` is what keeps a quick answer from
#   ending a ban.
# note: `LatencyFaultToleranceImpl` with `MQFaultStrategy.computeNotAvailableDuration`. The producer asks `is_available`
#   first; if no broker is available it asks `is_reachable`, and if none is reachable it takes the next queue. At work:
#   switch `sendLatencyFaultEnable` on where brokers may become slow. It bans slow brokers; it does not choose fast
#   ones.


# %% tags=["setup"]
LATENCY_MAX = (50, 100, 550, 1800, 3000, 5000, 15000)
NOT_AVAILABLE = (0, 0, 2000, 5000, 6000, 10000, 30000)

# %% tags=["picture"]
Table(
    {"latency from (ms)": low, "ban (ms)": ban}
    for low, ban in zip(LATENCY_MAX, NOT_AVAILABLE, strict=True)
)


# %%
# exercise: lab02.strategy
class MyFaults:
    """A ban for each broker that was slow or failed."""

    ### BEGIN SOLUTION
    def __init__(self):
        self.ends, self.reachable = {}, {}

    def update(self, broker_name, latency_ms, now_ms, *, isolation, reachable):
        took_ms = 10_000 if isolation else latency_ms
        duration = 0
        for low, ban in zip(LATENCY_MAX, NOT_AVAILABLE, strict=True):
            if took_ms >= low:
                duration = ban
        self.ends[broker_name] = max(self.ends.get(broker_name, 0), now_ms + duration)
        self.reachable[broker_name] = reachable

    def is_available(self, broker_name, now_ms):
        return now_ms >= self.ends.get(broker_name, 0)

    def is_reachable(self, broker_name):
        return self.reachable.get(broker_name, True)

    ### END SOLUTION


# %%
check("lab02.strategy")

# %% [belief] lab02.success_frees
# question: A banned broker answers quickly. Is its ban over?
# claim: Yes; it has recovered.
# refutation: A ban ends only when its time is over. An update may make it longer, never shorter, and a quick answer is
#   an update like any other.

# %% [belief] lab02.bans_add_up
# question: A broker is banned for 5 s, and 1 s later an update bans it for 2 s. When is it available again?
# claim: After 7 s; the second ban follows the first.
# refutation: Each ban begins at its own update, and the one that ends last counts; bans do not add up.

# %% [belief] lab02.banned_is_reachable
# question: A broker is avoided. What does is_reachable say?
# claim: True: avoiding it is about speed only.
# refutation: What the last update said of it. An update after a failed send says that it is not reachable.

# %% [belief] lab02.above_the_threshold
# question: A send took exactly as long as one of the table's thresholds. In which class is it?
# claim: In the one before: it is not above the threshold.
# refutation: In the threshold's own class: the table is searched from its end for the first threshold that the time has
#   reached.

# %% [belief] lab02.failed_counts_as_it_took
# question: A send to a broker fails at once. For how long is the broker avoided?
# claim: According to the time that the send took: not at all.
# refutation: A failure is reported with isolation=True, which replaces the measured time by 10 s: the class of 5,000
#   ms, and a ban of 10 s.

# %% [markdown]
# ## Four ways, and what they cost
#
# A hundred orders, 5 ms for a frame.


# %% tags=["parameter"]
def sync(shop, orders):
    for one in orders:
        shop.send(one)


def asynchronous(shop, orders):
    for pending in [shop.send_async(one) for one in orders]:
        pending.result()


# %%
def oneway(shop, orders):
    for one in orders:
        shop.send_oneway(one)


def batch(shop, orders, size=20):
    for first in range(0, len(orders), size):
        shop.send_batch(orders[first : first + size])


WAYS = {"sync": sync, "async": asynchronous, "one-way": oneway, "batch of 20": batch}


# %%
def hundred(lab, way):
    shop = shop_and_topic(lab)
    shop.send(order(-1))
    began_ms = lab.now_ms
    way(shop, [order(number) for number in range(100)])
    lab.took_ms = lab.now_ms - began_ms
    lab.run_for("2s")


# %%
took = {
    name: play(
        lambda lab, way=way: hundred(lab, way),
        seed=7,
        client=no_trace,
        network={"latency": "5ms"},
    ).took_ms
    for name, way in WAYS.items()
}
Bars(took, unit="ms until the program continues")

# %% [markdown]
# A synchronous send waits for its answer.

# %% [prediction] lab02.buffer
# broker-b is slow: three seconds per answer. The shop sends synchronously, round robin. Where do orders pile up?
#
# - buffer: in the producer's buffer, until it is full
#   > A synchronous send has no buffer. The caller waits for the answer before it calls again; the bars show one send
#   > under way.
# - caller: in front of the shop: the caller of `send` waits, and the next order is not even begun
#   = At most one send is under way. The callers' work piles up, such as requests of customers.
# - broker: at broker-b
#   > This thread sends it only one request at a time.
# note: Only asynchronous sends have a queue in the client (50,000 tasks, then the send is rejected), and a limit of
#   sends under way if `enableBackpressureForAsyncMode` is on.


# %%
def one_after_the_other(lab, shop):
    for number in range(30):
        lab.begun = number + 1
        shop.send(order(number), timeout="10s")
        lab.ended += 1


def all_at_once(lab, shop):
    for number in range(30):
        lab.begun = number + 1
        sending = shop.send_async(order(number), timeout="10s")
        sending.then(lambda result: ended(lab), lambda error: ended(lab))


def ended(lab):
    lab.ended += 1


# %%
def under_way(lab, program):
    """How many sends were begun and not answered, looked at ten times a second."""
    shop = shop_and_topic(lab)
    shop.send(order(-1))
    lab.slow("broker-b", "1500ms")
    lab.begun = lab.ended = lab.most = 0
    lab.start_work(shop, program, lab, shop)
    for _ in range(30):
        lab.run_for("100ms")
        lab.most = max(lab.most, lab.begun - lab.ended)


# %%
most = {
    name: play(
        lambda lab, program=program: under_way(lab, program), seed=7, brokers=2
    ).most
    for name, program in {"sync": one_after_the_other, "async": all_at_once}.items()
}
Bars(most, unit="sends under way, at most", title="a broker with 3 s per answer")

# %%
reveal("lab02.buffer", "caller" if most["sync"] == 1 else "buffer")

# %% [markdown]
# A batch (批量消息) is one request and one queue. The producer refuses some combinations, such as messages with different
# `WAIT` properties (one sender waits for the disk, the other does not):


# %% tags=["parameter"]
def is_taken(shop, messages):
    try:
        return shop.send_batch(messages).send_status
    except MqlabError as error:
        return error.text


# %%
def batches(lab):
    shop, flagged = shop_and_topic(lab), Message("orders", b"a book")
    flagged.properties["TRAN_MSG"] = "true"
    hasty = Message("orders", b"x", wait_store_msg_ok=False)
    tried = {
        "two orders": [order(1), order(2)],
        "one of them delayed": [order(3), Message("orders", b"x", delay_time_level=3)],
        "of two topics": [order(4), Message("other", b"a book")],
        "of a retry topic": [Message("%RETRY%billing", b"a book")],
        "one waits for the disk": [order(5), hasty],
        "with a transaction flag": [flagged],
    }
    lab.said = {name: is_taken(shop, messages) for name, messages in tried.items()}


# %% tags=["picture"]
lab = play(batches, seed=7, client=no_trace)
Table({"batch": name, "answer": said} for name, said in lab.said.items())

# %% [markdown]
# No code checks the flag of the last one. Both orders of the first batch show the same `msg_id`, which is that of the
# batch, so search for a key instead.

# %% [markdown]
# ## What is retried
#
# A synchronous send makes up to three attempts (`retryTimesWhenSendFailed=2`). How many do the others make, and where?
# One broker of two is killed:


# %% tags=["parameter"]
def first_queue(queues, message, arg):
    return queues[0]  # a queue of broker-a


TRIES = {
    "sync": lambda shop: shop.send(order(1)),
    "async": lambda shop: shop.send_async(order(1)).result(),
    "one-way": lambda shop: shop.send_oneway(order(1)),
    "sync, selector": lambda shop: shop.send(order(1), selector=first_queue),
    "async, selector": lambda shop: shop.send_async(
        order(1), selector=first_queue
    ).result(),
}


# %%
def said_by(send, shop):
    try:
        result = send(shop)
        return "nothing" if result is None else result.send_status
    except MqlabError as error:
        return type(error).__name__


# %%
def broker_a_fails(lab, way, fault):
    shop = shop_and_topic(lab)
    until_next_is(lab, shop, "broker-a")
    fault(lab)
    lab.first = lab.journal.next_step
    lab.said = said_by(TRIES[way], shop)
    lab.run_for("5s")


def until_next_is(lab, shop, broker):
    """Send until the next order would go to this broker."""
    while shop.send(order(-1)).message_queue.broker_name == broker:
        pass
    while shop.send(order(-1)).message_queue.broker_name != broker:
        pass


# %%
def attempts(lab):
    """The brokers that were tried since the fault, in order."""
    return [
        values["message_queue"].broker_name
        for record in lab.journal[lab.first :]
        for values in (
            change.values for change in record.changes if change.kind == "message.sent"
        )
    ]


# %%
def tried(fault, **settings):
    rows = []
    for way in TRIES:
        lab = play(
            lambda lab, way=way: broker_a_fails(lab, way, fault),
            seed=7,
            brokers=2,
            client=no_trace,
            **settings,
        )
        tries = ", ".join(attempts(lab))
        rows.append({"way": way, "attempts": tries, "the shop gets": lab.said})
    return rows


# %% [prediction] lab02.async_retries
# The order would go to broker-a, whose process has just been killed. It is sent with `send_async`. What happens?
#
# - error: an error; retries are for synchronous sends
#   > Asynchronous sends have their own retries, also two (`retryTimesWhenSendAsyncFailed`). The table's row has more
#   > than one attempt.
# - same: it is tried again at broker-a, three times in all
#   > That happens with a selector or a given queue. A plain asynchronous send chooses another broker.
# - other: it is tried again, at broker-b
#   = Its first attempt fails at once, and the second goes to another broker, like that of a synchronous send.
# note: Two textbook sentences are wrong: that asynchronous sends are not retried, and that they stay on their broker.
# later: broker-a has just been killed, broker-b runs. An order that would go to broker-a is sent with `send_async`.
#   What happens?

# %% tags=["picture"]
killed = tried(lambda lab: lab.kill("broker-a"))
Table(killed, title="broker-a is killed")

# %%
row = killed[1]
happened = (
    "other"
    if row["attempts"].endswith("broker-b")
    else "same"
    if "," in row["attempts"]
    else "error"
)
reveal("lab02.async_retries", happened)

# %% [prediction] lab02.with_selector
# Now the order is sent with a selector, so that it keeps its queue. Which of the two ways to send is tried again?
#
# - none: neither is tried again, because the queue is given
#   > That is true for the synchronous one. The last row shows the asynchronous one.
# - sync: the synchronous one is tried three times
#   > `sendSelectImpl` makes one attempt, as the table shows.
# - async: the asynchronous one is tried three times, always at the same broker; the synchronous one once
#   = If you send with a selector, handle failures yourself; the two ways differ in how often they try.
# note: With a selector and a dead broker, some orders cannot be sent until the route has changed.
# later: The broker of the selected queue has just been killed. An order is sent with a selector, once synchronously
#   and once with `send_async`. Which of the two is tried again?

# %%
many = {row["way"]: row["attempts"].count("broker-a") for row in killed}
happened = (
    "sync"
    if many["sync, selector"] > 1
    else "async"
    if many["async, selector"] > 1
    else "none"
)
reveal("lab02.with_selector", happened)

# %% [markdown]
# Now broker-a answers with an error: its disk is full.

# %% [prediction] lab02.refused
# Which sends are retried at broker-b now?
#
# - both: the synchronous and the asynchronous one; an error is an error
#   > An asynchronous send is retried only after transport errors. This is an answer.
# - sync: the synchronous one alone
#   = It is retried after error answers with certain codes, such as this one, SERVICE_NOT_AVAILABLE. An asynchronous
#   = send passes any answer on.
# - neither: neither; the broker has answered
#   > A synchronous send checks the code of the answer: eight codes mean *try another broker*.
# note: A synchronous send tries another broker after the codes 1, 2, 14, 16, 17, 204, 205 and 1500. With any other (an
#   illegal message, say) even a synchronous send fails at once.
# later: -


# %% tags=["parameter"]
def full_disk(lab):
    lab.run_for("2m")
    lab.disk_full("broker-a")
    lab.run_for("30s")


refused = tried(full_disk)
Table(refused, title="broker-a refuses")

# %%
elsewhere = {row["way"] for row in refused if row["attempts"].endswith("broker-b")}
happened = (
    "both" if "async" in elsewhere else "sync" if "sync" in elsewhere else "neither"
)
reveal("lab02.refused", happened)

# %% [answer] lab02.no_retry
# ### Your turn: no second attempt
#
# Play `tried` with a killed broker-a once more, and with a setting of the shop such that a synchronous send makes
# **one** attempt. Answer with the text in the last column of the row `sync`.
#
# wrong ok: With one attempt, the order does not reach broker-b. Is the setting among those of the client?
# wrong: Copy the text of the last column.
# note: Set `retryTimesWhenSendFailed=0` where a duplicate order is worse than an error.

# %% tags=["parameter"]
SETTINGS = {"enable_trace": False, "retry_times_when_send_failed": 2}


def once(lab):
    broker_a_fails(lab, "sync", lambda lab: lab.kill("broker-a"))


single = play(once, seed=7, brokers=2, client=SETTINGS)
print(attempts(single), single.said)

# %%
### BEGIN SOLUTION
SETTINGS["retry_times_when_send_failed"] = 0
single = play(once, seed=7, client=SETTINGS, brokers=2)
answer("lab02.no_retry", single.said, single)
### STARTER
# answer("lab02.no_retry", ..., single)
### END SOLUTION

# %% [markdown]
# ## What an answer means, and what its absence means
#
# One frame is lost: the broker's answer. The order is stored.


# %% tags=["parameter"]
def lost_answer(lab, **settings):
    shop = shop_and_topic(lab, **settings)
    shop.send(order(0))
    lab.drop("broker-a", "shop-1")
    lab.said = said_by(TRIES["sync"], shop)
    lab.run_for("5s")


def stored(lab, broker="broker-a"):
    return [
        one for one in lab.store(broker).messages("orders") if one.keys != "order-0"
    ]


# %% [prediction] lab02.error
# The shop sends order-1 synchronously; the answer is lost. What result does the shop get, and how many copies are
# stored?
#
# - error_none: an error, and none is stored
#   > The request arrived and was stored. Only its answer was lost.
# - error_one: an error, and one is stored
#   = The first attempt waits for three seconds, the limit of the whole call. An error of a send means *I do not know*.
# - ok_two: SEND_OK, and two are stored: it was tried again
#   > A second attempt needs remaining time, and by default one attempt may use all of it.
#   > `send_msg_max_timeout_per_request` limits an attempt.
# note: `sendMsgTimeout` (3 s) is for all attempts together. A silent broker therefore costs the whole call.

# %%
lab = play(lost_answer, seed=7, client=no_trace)
Bars(
    {"answered SEND_OK": int(lab.said == "SEND_OK"), "stored": len(stored(lab))},
    unit="orders",
    title=lab.said,
)

# %%
ok = lab.said == "SEND_OK"
reveal("lab02.error", "ok_two" if ok else f"error_{'one' if stored(lab) else 'none'}")

# %% [markdown]
# A program that reads the error as *not stored* sends again: two orders with two ids. If the **producer** retries,
# there are two copies with one id (`send_msg_max_timeout_per_request` limits a single attempt):

# %% tags=["picture"]
lab = play(
    lambda lab: lost_answer(lab, send_msg_max_timeout_per_request=1000),
    seed=7,
    client=no_trace,
)
Table(
    {"keys": one.keys, "msg_id": one.msg_id, "queue": one.queue_id, "status": lab.said}
    for one in stored(lab)
)

# %% [markdown]
# An answer may also have another status than SEND_OK. This broker has a slave, and each order must be on both:


# %% tags=["parameter"]
TWO_COPIES = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 2}
patient = {"enable_trace": False, "send_msg_timeout": 10_000}


def slave_is_down(lab):
    shop = shop_and_topic(lab)
    lab.results = [("both run", shop.send(order(1)))]
    lab.kill(lab.slaves()[0].name)
    lab.results += [("the slave is down", shop.send(order(2)))]


# %% [prediction] lab02.who_says
# The slave is killed. Which status of order-2 does the shop get, from which machine, and is the order stored?
#
# - refused: an error; the broker stores nothing without its slave
#   > It stores first, and then waits for the slave. A stored message stays in the log.
# - slave: a status from the slave, FLUSH_SLAVE_TIMEOUT; the order is stored on the master
#   > The slave is dead. And a slave never answers a producer; the master does.
# - master: a status from the **master**, FLUSH_SLAVE_TIMEOUT; the order is stored on the master
#   = The master waits 3 s for the slave to report its position, and then reports the missing confirmation.
# note: With RocketMQ's defaults on both sides the shop never sees this status: its own time-out of 3 s comes first.
# later: A master with `SYNC_MASTER` waits for its slave, and the slave is killed. Which status of order-2 does the
#   shop get, from which machine, and is the order stored?

# %%
lab = play(slave_is_down, seed=7, replicas=1, broker=TWO_COPIES, client=patient)
Table(
    {"when": when, "send_status": one.send_status, "stored at": one.queue_offset}
    for when, one in lab.results
)

# %%
there = "order-2" in [one.keys for one in lab.store().messages("orders")]
silent = not lab.slaves()[0].is_up
reveal("lab02.who_says", "refused" if not there else "master" if silent else "slave")

# %% [markdown]
# All statuses mean *stored*. `retry_another_broker_when_not_store_ok` makes the producer try the next broker anyway. It
# is a setting of the producer, so the last cell, which gives it to a broker, is refused:


# %%
def not_ok(lab, **settings):
    shop = shop_and_topic(lab, **settings)
    until_next_is(lab, shop, "broker-a")
    lab.kill(lab.slaves("broker-a")[0].name)
    lab.result = shop.send(order(1))


# %% tags=["picture"]
rows = []
for again in (False, True):
    setting = {"retry_another_broker_when_not_store_ok": again}
    pairs = {"brokers": 2, "replicas": 1, "broker": TWO_COPIES, "client": patient}
    lab = play(lambda lab, setting=setting: not_ok(lab, **setting), seed=7, **pairs)
    both = [*stored(lab), *stored(lab, "broker-b")]
    copies = sum(one.keys == "order-1" for one in both)
    status = lab.result.send_status
    rows.append({"setting": again, "status": status, "copies of order-1": copies})
Table(rows, title="retry_another_broker_when_not_store_ok")

# %%
try:
    play(slave_is_down, seed=7, broker={"retry_another_broker_when_not_store_ok": True})
except MqlabError as error:
    print(error)

# %% [markdown]
# What if the broker's machine loses power? By default the broker answers before its disk has the order (lab 01).

# %% tags=["parameter"]
FLUSH = "ASYNC_FLUSH"


def power_cut(lab):
    shop = shop_and_topic(lab)
    lab.told = [shop.send(order(number)).send_status for number in range(1, 6)]
    lab.power_off("broker-a")
    lab.run_for("1s")
    lab.start("broker-a")
    lab.run_for("5s")


# %% [answer] lab02.flush
# ### Your turn: SEND_OK and gone
#
# Five orders, five times SEND_OK, then the power is cut. Change `FLUSH` so that all five are there afterwards. How many
# are there **without** the change?
#
# wrong five: That is with the change.
# wrong: Set FLUSH back, and count again.
# note: `flushDiskType=SYNC_FLUSH` makes each send wait for the disk. The alternative is two copies in memory, as above:
#   two machines rarely lose power at the same time.

# %% tags=["parameter"]
survivors = play(power_cut, seed=7, client=no_trace, broker={"flush_disk_type": FLUSH})
print(survivors.told, len(stored(survivors)), "stored")

# %%
### BEGIN SOLUTION
FLUSH = "SYNC_FLUSH"
survivors = play(power_cut, seed=7, broker={"flush_disk_type": FLUSH}, client=no_trace)
answer("lab02.flush", 0, survivors)
### STARTER
# answer("lab02.flush", ..., survivors)
### END SOLUTION

# %% [markdown]
# ## An order and its message
#
# An order is a row in the shop's database, and a message for all other services: two writes in two systems, and the
# process may crash between them. `lab.start_work` runs a function as part of the shop's process:


# %% tags=["parameter"]
ORDERS = (
    "CREATE TABLE IF NOT EXISTS orders (order_key TEXT PRIMARY KEY, body BLOB NOT NULL)"
)


def commit_then_send(lab, shop):
    with lab.database("shop").connect() as connection:
        connection.execute("INSERT INTO orders VALUES ('order-1', x'00')")
    shop.send(order(1))
    return "sold"


# %%
def send_then_commit(lab, shop):
    with lab.database("shop").connect() as connection:
        connection.execute("INSERT INTO orders VALUES ('order-1', x'00')")
        shop.send(order(1))
    return "sold"


# %%
def one_sale(lab, program):
    shop = shop_and_topic(lab)
    shop.fetch_publish_message_queues("orders")
    with lab.database("shop").connect() as connection:
        connection.execute(ORDERS)
    lab.start_work(shop, program, lab, shop)
    lab.run_for("5s")


# %%
def outcome(lab):
    with lab.database("shop").connect() as connection:
        sold = connection.execute("SELECT count(*) FROM orders").fetchone()[0]
    sent = sum(1 for _ in lab.store().messages("orders"))
    return {
        (0, 0): "no order",
        (1, 1): "both",
        (1, 0): "order without message",
        (0, 1): "message without order",
    }[sold, sent]


# %% [prediction] lab02.which_first
# The shop's process is killed before each line of the sale. Which order of the two writes is safe?
#
# - commit: commit, then send; then a message is never invented {lab02.commit_then_send}
#   > If the process dies in between, the order never gets its message, and the database does not show that one is
#   > missing.
# - send: send inside the transaction; if the send fails, it is rolled back {lab02.send_first}
#   > If the process dies after the send and before the commit, there is a message about an order that does not exist.
# - neither: neither
#   = Whichever comes first, a crash after it leaves the two systems in disagreement.
# note: Two systems without a common transaction cannot change together. But one of them can record what it still owes
#   the other.
# later: A shop writes to its database and sends a message, and its process may be killed before each line. Which
#   order of the two is safe?


# %%
def deaths(program):
    """One run for each line before which the shop's process can die."""
    return every_crash(
        lambda lab: one_sale(lab, program),
        node="shop-1",
        restart_after=None,
        only=lambda point: point.kind == "line",
        seed=7,
        client=no_trace,
    )


# %%
found = {
    program.__name__: Counter(map(outcome, deaths(program)))
    for program in (commit_then_send, send_then_commit)
}

# %% tags=["picture"]
names = ("no order", "both", "order without message", "message without order")
Table(
    {"program": name, **{one: counts.get(one, 0) for one in names}}
    for name, counts in found.items()
)

# %%
safe = [name for name, counts in found.items() if set(counts) <= {"no order", "both"}]
happened = (
    {"commit_then_send": "commit", "send_then_commit": "send"}[safe[0]]
    if safe
    else "neither"
)
reveal("lab02.which_first", happened)

# %% [exercise] lab02.outbox
# ### Exercise 2: an outbox
#
# Write the class `Outbox`. The shop's process makes `Outbox(lab, shop)` at each start; `lab` has only `database`.
#
# | method | called |
# |---|---|
# | `place_order(key, body)` | once per order; never repeated. It returns immediately, even while no broker answers |
# | `relay()` | every second, by one thread of the process, as long as it runs. It may raise; it is called again |
#
# The database has the tables `orders (order_key, body)` and `outbox (order_key, body, sent)`; `sent` starts
# at 0. A message goes to the topic `orders`, with the order's key as `keys` and the same body.
#
# The process is killed before every line, and restarted; a broker may be slow or away. In the end, each row of `orders`
# has a message, each message a row, and no message is resent needlessly.
#
# hint: Whatever must survive a crash must be in the database, written in the same transaction as the order.
# hint: `relay` reads the rows with `sent = 0`, sends each, and marks it when the send has succeeded. If it dies in
#   between, the order is sent twice. That is allowed; marking before sending is not.
# hint: `with self.database.connect() as connection:` commits at its end. Two inserts in one such block in
#   `place_order`; in `relay` a send first, and then a separate block that sets `sent = 1`.
# note: The transactional outbox (本地消息表). RocketMQ's own answer is the half message (`TransactionMQProducer`), lab 08.
#   At work: readers must tolerate duplicates, so give each message its own key; and monitor the age of the oldest
#   unmarked row.


# %% tags=["picture"]
Table(
    [
        {"table": "orders", "columns": "order_key, body", "written by": "place_order"},
        {
            "table": "outbox",
            "columns": "order_key, body, sent",
            "written by": "place_order, and relay (sent)",
        },
    ]
)


# %%
# exercise: lab02.outbox
class Outbox:
    """Orders and their messages, in agreement whatever dies."""

    ### BEGIN SOLUTION
    def __init__(self, lab, shop):
        self.database, self.shop = lab.database("shop"), shop

    def place_order(self, key, body):
        with self.database.connect() as connection:
            connection.execute("INSERT INTO orders VALUES (?, ?)", (key, body))
            connection.execute(
                "INSERT INTO outbox (order_key, body) VALUES (?, ?)", (key, body)
            )

    def relay(self):
        connection = self.database.connect()
        rows = connection.execute(
            "SELECT order_key, body FROM outbox WHERE sent = 0"
        ).fetchall()
        for key, body in rows:
            self.shop.send(Message("orders", body, keys=key))
            with connection:
                connection.execute(
                    "UPDATE outbox SET sent = 1 WHERE order_key = ?", (key,)
                )

    ### END SOLUTION


# %%
check("lab02.outbox")

# %% [belief] lab02.mark_first
# question: When is an outbox row marked as sent?
# claim: Before the send, so that it is not sent twice; or after it, whatever its result.
# refutation: If a row is marked before its send has succeeded, its message is never sent. Mark it after an answer that
#   confirms the send. One-way sends have no answer, and an exception is not one.

# %% [belief] lab02.marks_every_row
# question: `UPDATE outbox SET sent = 1` after the last send of a round. Which orders does it mark?
# claim: Those that were sent.
# refutation: A customer may place an order while `relay` sends others, and the UPDATE marks it too. Mark only what was
#   sent: `WHERE order_key = ?`.

# %% [belief] lab02.one_transaction_for_both
# question: The mark and the send are in one transaction. Do both happen, or none?
# claim: Yes, that is what a transaction is for.
# refutation: The broker is not part of it: a sent message stays sent when the mark is rolled back. And while the send
#   waits, the database is locked for all others.

# %% [belief] lab02.sent_again_and_again
# question: At least once: may a message be sent again whenever the shop reads its table?
# claim: Yes, the reader must tolerate duplicates.
# refutation: A reader tolerates a duplicate after a crash. A row that is never marked is sent in every round, for ever,
#   and the table only grows.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Times**: here the four ways differ by the network alone. In reality a batch saves most where messages are small.
# - **A slow disk** was a slow network here. To a producer the two look alike.
# - **The outbox** polls its table. With many orders per second, read the database's log instead.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | round robin, the last broker avoided | `TopicPublishInfo.selectOneMessageQueue` |
# | bans by latency class | `MQFaultStrategy`, `LatencyFaultToleranceImpl`; `sendLatencyFaultEnable` is off |
# | attempts, synchronous | `DefaultMQProducerImpl.sendDefaultImpl`, `retryResponseCodes` |
# | attempts of an asynchronous one | `MQClientAPIImpl.onExceptionImpl` |
# | one attempt with a selector | `sendSelectImpl` |
# | batches | `MessageBatch.generateFromList` |
# | statuses that are not SEND_OK | `CommitLog.handleDiskFlushAndHA`, `SendMessageProcessor.handlePutMessageResult` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | the queue with the least delay is chosen | brokers are banned by class, then round robin; and only if it is switched on |
# | asynchronous sends are not retried; or only on the same broker | twice, on another broker; on the same one with a queue or a selector |
# | every MQBrokerException is retried | only with the listed codes, and never for asynchronous sends |
# | retryAnotherBrokerWhenNotStoreOK=true in the broker's file | a property of the producer |
# | the slave answers with a status | the master reports that the slave has not confirmed |
# | a batch must not hold transaction messages | no code checks the flag; they are stored as ordinary messages |
# | SYNC_MASTER waits for its slave | only with `inSyncReplicas` of 2 or more; the default is 1 |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab02.again
# **1.** A send has failed with a time-out. Send again, or not?
#
# answer: You do not know whether it was stored. If readers recognise a second copy by its key, send again. If a
#   duplicate does harm, write the message into an outbox and let one relay send it. You cannot ask the broker: a search
#   by key finds only indexed messages.

# %% [reflection] lab02.which_way
# **2.** Which of the four ways for which message?
#
# answer: Sync where the next step depends on it. Async where each answer is handled, errors too. One-way for messages
#   that may be lost. A batch for many small messages of one topic that arrive together.

# %% [markdown] tags=["reading"]
# ## Next
#
# The [third part](02c-sixteen-queues-then-eight.ipynb) puts all events of an order into one queue, and then removes the
# queue. All labs: [index](index.ipynb).
