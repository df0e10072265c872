# %% [markdown] tags=["reading"]
# # 09b Overload: what gives way
#
# ## Why
#
# The same Black Friday, 20:40. Billing has thirty instances now, and each call takes longer than before. An operator
# gives the calls a time limit of three seconds, "so that they do not hang". A minute later not one order is charged. At
# 21:30 the shop sells no more than on any Tuesday, and still nothing is charged. At 22:00 they restart everything, and
# it works.
#
# Five sentences from that evening:
#
# - "The database is slow, so ask it from more instances."
# - "A time limit protects us."
# - "When the peak is over, it recovers on its own."
# - "The broker delivers an hour of lag as fast as a minute of lag."
# - "Printing takes eight seconds. We start it and continue."
#
# None of them is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 09a](09a-falling-behind.ipynb). Afterwards you can
#
# - read from a monitor's rows which limit a group has met, and name the row that proves it;
# - explain why time limits can make an overload stay, and build a brake that ends it;
# - recognise a lag that feeds itself, and give a slow step its own topic without losing anything.

# %%
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import backlog_tank
from mqlab.errors import ClientError
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.charts import Curve

no_trace = {"enable_trace": False}


# %%
def a_book(number):
    return Message("orders", b"a book")


def billing_with(lab, listener, queues=4, threads=20, **settings):
    """One instance of billing, started and with its queues."""
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    pool = {"consume_thread_min": threads, "consume_thread_max": threads}
    billing = lab.push_consumer("billing", name="billing-1", **pool, **settings)
    billing.subscribe("orders", "*")
    billing.on_messages(listener)
    billing.start()
    lab.run_for("25s")
    return billing


# %% [markdown]
# ## One database for all
#
# Each call of billing computes for 50 ms and then waits 950 ms for a query. The database runs eight queries at a time:
# it has eight *slots*. Other queries wait for one.

# %% [prediction] lab09.rule_of_cores
# For one instance with one core, the handbook's rule C * (T1 + T2) / T1 yields 20 threads. How many calls end per
# second with them?
#
# - 20: twenty; the rule holds
#   > It holds for cores. Here a call also needs a slot, and there are eight.
# - 8: about eight
#   = There are eight slots, and a query takes nearly a second. The other threads wait for the database.
# - 10: ten; half of the threads wait at any time
#   > More than half wait for a slot. The slots limit the rate.
# note: The rule asks how many threads keep the cores busy. It ignores the database, and so does RocketMQ.
# later: -

# %%
at_once = {
    threads: backlog_tank(threads=threads, slots=8, recorded={})
    for threads in (4, 8, 20)
}
most = {
    threads: max(row["done"] for row in tank.run.seconds)
    for threads, tank in at_once.items()
}
Bars({f"threads: {threads}": done for threads, done in most.items()}, unit="calls")

# %%
reveal("lab09.rule_of_cores", "8" if most[20] <= 10 else "20")

# %% [markdown]
# Where do the other threads wait? How long a call waited at each limit:

# %%
at_once[20].limits()

# %% [prediction] lab09.more_instances
# Three instances have 60 threads in total, with the same database. How large is the lag of the peak, compared with one
# instance?
#
# - third: a third of what it was
#   > Three times as many threads ask the same eight slots.
# - same: what it was
#   = The slots are the limit, and their number is the same.
# - zero: nearly nothing
#   > The database still finishes eight queries per second.
# note: The queue has moved from the broker, where it is a visible lag, into the database, where it is a longer call.
# later: -

# %%
three = backlog_tank(instances=3, threads=20, slots=8, recorded={})
lags = {"1 instance": at_once[20].largest_lag, "3 instances": three.largest_lag}
Bars(lags, unit="messages behind")

# %%
alike = abs(three.largest_lag - at_once[20].largest_lag) <= 0.2 * three.largest_lag
reveal("lab09.more_instances", "same" if alike else "third")

# %% [markdown]
# Change slots, threads and instances, and watch which limit binds:

# %% tags=["explorer"]
backlog_tank(slots=8)

# %% [exercise] lab09.bottleneck
# ### Exercise 4: the limit, and the row that proves it
#
# A monitor sampled four slow groups at the end of each second. Write `bottleneck(tables)`; `tables` is a dictionary of
# three lists of rows, each row a dictionary:
#
# | table | columns | one row per |
# |---|---|---|
# | `"instances"` | second, instance, queues, threads, cores, in_calls, computing | second and instance |
# | `"database"` | second, slots, in_use, waiting | second |
# | `"lag"` | second, arrived, done, behind | second |
#
# `in_calls` threads are in a call, and `computing` of those calls have a core. In seconds with `behind` of 20 or more,
# ask in this order:
#
# 1. Is the **database** full, with calls that wait for a slot?
# 2. Does an instance own no **queues** while the others have no free threads?
# 3. Are all **cores** of the instances computing?
# 4. Otherwise it is the **threads**.
#
# Return a tuple `(limit, table, row)`:
#
# - one of `"database"`, `"queues"`, `"cores"`, `"threads"`, the one that is saturated in nearly all of those seconds;
# - the table that shows it;
# - the number, from 0, of a row of that table that shows it in one of those seconds.
#
# hint: Start with `late = {row["second"] for row in tables["lag"] if row["behind"] >= 20}`, and use only rows of those
#   seconds.
# hint: For each limit count the late rows that show it: nearly all must, say nine of ten. For queues one row of an
#   instance with 0 is enough, because that does not change.
# hint: Walk with `enumerate(tables["instances"])` to keep the number of the row.
# note: At work: put three numbers next to the lag: waiting sessions in the database, queues per instance (`mqadmin
#   consumerProgress -g billing -s true`), and how busy the cores are.


# %%
# exercise: lab09.bottleneck
def bottleneck(tables):
    """The limit, the table in which it shows, and the number of a row that proves it."""
    ### BEGIN SOLUTION
    late = {row["second"] for row in tables["lag"] if row["behind"] >= 20}

    def rows(table, shows):
        all_late = [
            (n, row) for n, row in enumerate(tables[table]) if row["second"] in late
        ]
        seen = [n for n, row in all_late if shows(row)]
        return seen, len(seen) >= 0.9 * len(all_late)

    full, always = rows(
        "database", lambda row: row["in_use"] == row["slots"] and row["waiting"]
    )
    if always:
        return "database", "database", full[0]
    idle, _ = rows("instances", lambda row: row["queues"] == 0)
    if idle:
        return "queues", "instances", idle[0]
    busy, always = rows("instances", lambda row: row["computing"] == row["cores"])
    if always:
        return "cores", "instances", busy[0]
    taken, _ = rows("instances", lambda row: row["in_calls"] == row["threads"])
    return "threads", "instances", taken[0]
    ### END SOLUTION


# %%
check("lab09.bottleneck")

# %% [belief] lab09.threads_busy
# question: All threads of a group are in calls. What does it need?
# claim: It needs more threads.
# refutation: A call keeps its thread while it waits for a slot or a core, so threads are busy with every limit. Check
#   the database, the queues and the cores first.

# %% [belief] lab09.one_moment
# question: In one sample all cores of an instance compute. Are cores the limit?
# claim: Yes; the sample shows it.
# refutation: A core or database that is busy half of the time is busy in half of the samples. A limit is busy in nearly
#   all seconds with many waiting messages.

# %% [belief] lab09.full_is_limit
# question: In nearly all samples every slot of the database is in use, and no call waits for one. Is the database the
#   limit?
# claim: Yes, because it is full.
# refutation: A database with as many slots as calls is full, and more slots would change nothing. It is the limit only
#   while calls wait for a slot.

# %% [belief] lab09.nobody_idle
# question: Two instances have all their threads in calls, and a third has no queue. What is the limit?
# claim: The threads of the two.
# refutation: The third instance is idle, because a queue belongs to one instance and there are too few. Look at the
#   column queues.

# %% [belief] lab09.any_row
# question: The database is the limit. Which row proves it?
# claim: Any row of its table.
# refutation: At the beginning the database has free slots. Name a row in which it is full, from a second with waiting
#   messages.

# %% [markdown]
# ## A time limit
#
# The team limits each call to three seconds. But an abandoned query continues in the database, and keeps its slot until
# it is done.


# %%
def ask(message, context, lab, limit_ms):
    """A query of a second. After limit_ms its caller goes; the query does not."""
    database = lab.resource("database")

    def query():
        with database:
            context.sleep("1s")

    began_ms, work = lab.now_ms, context.start(query)
    while not work.done and lab.now_ms < began_ms + limit_ms:
        context.sleep("200ms")
    if not work.done:
        raise TimeoutError("no answer from the database")


# %% [markdown]
# Six orders per second arrive, for twenty seconds twelve, and then six again. The database can process eight per
# second.


# %%
def evening(lab, threads, limit_ms, count):
    """Billing charges and counts; then two minutes of traffic begin."""
    lab.resource("database", slots=8)

    def charge(messages, context):
        try:
            ask(messages[0], context, lab, limit_ms)
        except TimeoutError:
            count["too late"] += 1
            raise
        count["answered"] += 1
        return CONSUME_SUCCESS

    billing_with(lab, charge, threads=threads)
    rates = [("0s", 6), ("20s", 12), ("40s", 6), ("120s", 0)]
    lab.traffic(lab.producer("shop"), rates=rates, message=a_book)


# %%
def played(threads, limit_ms=10**9):
    """Rows of ten seconds: answered, too late, and how many queries wait."""
    rows = []

    def story(lab):
        count = {"answered": 0, "too late": 0}
        evening(lab, threads, limit_ms, count)
        for second in range(10, 121, 10):
            before = dict(count)
            lab.run_for("10s")
            row = {name: count[name] - before[name] for name in count}
            waiting = lab.resource("database").waiting
            rows.append({"second": second, **row, "waiting": waiting})

    play(story, seed=7, client=no_trace)
    return rows


# %%
patient = played(threads=40)
Table(patient, title="40 threads that wait as long as it takes")

# %% [prediction] lab09.time_limit
# The run is repeated with a time limit of three seconds. The peak ends in second 40. How many calls are answered
# between second 100 and 110?
#
# - 60: sixty, all that arrive; the peak is over
#   > The peak is over, but each of its queries still takes a second of a slot.
# - 80: eighty, what the slots can do; there is a lag to process
#   > The slots are all busy, but for which callers?
# - 0: nothing
#   = Every slot works on an abandoned query. New queries wait behind them for more than three seconds.
# note: Late calls are redelivered after 10 s, after 30 s, and so on, so demand exceeds the capacity even with a
#   Tuesday's sales. It ends only when demand stays below the capacity until the old queries are done.
# later: -

# %%
limited = played(threads=40, limit_ms=3_000)
Table(limited, title="40 threads, a time limit of 3 s")

# %%
Curve(
    {
        "patient": [(row["second"], row["answered"]) for row in patient],
        "with a time limit": [(row["second"], row["answered"]) for row in limited],
    },
    x="second",
    y="answered in ten seconds",
)

# %%
late_row = next(row for row in limited if row["second"] == 110)
reveal("lab09.time_limit", "0" if late_row["answered"] == 0 else "60")

# %% [answer] lab09.most_threads
# ### Your turn: how many threads may wait?
#
# The limit is three seconds. Try 8, 16, 24, 32 and 40 threads. What is the largest of the five numbers with which no
# call is too late?
#
# wrong slots: With eight no call waits. Some may wait, as long as their turn comes within the limit.
# wrong largest: With that many, calls are too late: look at their column.
# wrong: The largest number of those you tried whose calls are never too late.
# note: Eight of the waiting calls are served per second. A limit on how many wait, rather than how long, keeps an
#   overload harmless: it stays in the broker as a lag, and no work is thrown away.


# %%
def calls_too_late(rows):
    return sum(row["too late"] for row in rows)


# %% tags=["parameter"]
TRIED = (8,)

too_late = {
    threads: calls_too_late(played(threads, limit_ms=3_000)) for threads in TRIED
} | {40: calls_too_late(limited)}
Bars({f"threads: {threads}": n for threads, n in too_late.items()}, unit="too late")

# %%
### BEGIN SOLUTION
tried = too_late | {
    threads: calls_too_late(played(threads, limit_ms=3_000)) for threads in (16, 24, 32)
}
answer("lab09.most_threads", max(n for n in tried if tried[n] == 0), tried)
### STARTER
# answer("lab09.most_threads", ..., too_late)
### END SOLUTION

# %% [markdown]
# ## The client's own brake
#
# Messages that have no thread yet wait in the client. When it has enough of them, it delays its pulls by 50 ms at a
# time. Per queue it checks: more than 1,000 messages (`pullThresholdForQueue`), more than 100 MiB, or more than 2,000
# between the first and the last. This cell has 40 instead of 1,000:


# %%
def slow_billing(lab, held, threshold, seconds=20):
    """400 orders at once, ten threads, calls of a second. held: what the client has."""

    def charge(messages, context):
        context.sleep("1s")
        return CONSUME_SUCCESS

    brake = {"pull_threshold_for_queue": threshold}
    billing = billing_with(lab, charge, queues=1, threads=10, **brake)
    shop = lab.producer("shop")
    for number in range(400):
        shop.send(a_book(number))
    (cache,) = [one for q, one in billing.process_queues.items() if q.topic == "orders"]
    for tenth in range(seconds * 10):
        lab.run_for("100ms")
        held.append((tenth / 10, cache.msg_count))


# %% [prediction] lab09.held
# The brake is set to 40, and a pull brings up to 32. How many messages does the client hold at most?
#
# - 40: forty
#   > The client checks before it pulls. 40 is not above 40, so it pulls 32 more.
# - 72: more than forty, but not more than 72
#   = At 40 it still pulls up to 32. From 41 on it waits until some are done.
# - 400: four hundred; the brake is for orderly consumers
#   > It is for both. Orderly consumers only skip the check of the distance.
# note: `DefaultMQPushConsumerImpl.pullMessage` checks *more than*. Each queue has its own brake, so four queues hold
#   four times as many (`pullThresholdForTopic` divides one among them).

# %%
held = []
lab = play(lambda lab: slow_billing(lab, held, threshold=40), seed=7, client=no_trace)
put_off = len(lab.journal.of("pull.flow_control"))
print(f"{max(n for _, n in held)} at most; pulls put off {put_off} times")
Curve({"held by the client": held}, x="second", y="messages")

# %%
reveal("lab09.held", "72" if 40 < max(n for _, n in held) <= 72 else "40")

# %% [answer] lab09.second_brake
# ### Your turn: a wider brake
#
# Set `THRESHOLD` to 100 and run the cell. How many messages does the client hold at most?
#
# wrong exactly: With exactly 100 it would pull once more. Read the number under the cell.
# wrong: Read the number under the cell: it is the largest that the client ever held.
# note: Messages held by the client still count as lag. But if this process crashes, all of them are redelivered, and no
#   other member can help meanwhile. A wide brake is not a fast one.

# %% tags=["parameter"]
THRESHOLD = 40

wider = []
play(
    lambda lab: slow_billing(lab, wider, THRESHOLD, seconds=8), seed=7, client=no_trace
)
print(f"the client held {max(n for _, n in wider)} messages at most")
Curve({"held by the client": wider}, x="second", y="messages")

# %%
### BEGIN SOLUTION
wider = []
play(lambda lab: slow_billing(lab, wider, 100, seconds=8), seed=7, client=no_trace)
answer("lab09.second_brake", max(n for _, n in wider), 100, wider)
### STARTER
# answer("lab09.second_brake", ..., THRESHOLD, wider)
### END SOLUTION

# %% [markdown]
# ## A lag that feeds itself
#
# A broker keeps the end of its log in memory. A pull for older messages gets 8 instead of 32 ([lab
# 06b](06b-what-a-filter-passes-over.ipynb)). The group and the broker are in two cities, 200 ms apart one way.
# Twenty-four messages per second arrive, and a listener takes no time. What can go wrong?


# %%
def a_large_book(number):
    return Message("orders", b"a book of " + b"x" * 1_000)


def after_a_pause(lab, pause, lags, queues=1):
    """The group is suspended for so long, and then continues."""

    billing = billing_with(lab, lambda *_: CONSUME_SUCCESS, queues=queues)
    rates = [("0s", 24), ("70s", 0)]
    lab.traffic(lab.producer("shop"), rates=rates, message=a_large_book)
    lab.run_for("5s")
    billing.suspend()
    lab.run_for(pause)
    billing.resume()
    for second in range(0, 60, 5):
        lab.run_for("5s")
        lags.append((second + 5, sum(row.lag for row in lab.progress("billing"))))


# %%
def two_cities(pause, queues=1, memory="512KB"):
    lags = []
    play(
        lambda lab: after_a_pause(lab, pause, lags, queues),
        seed=7,
        client=no_trace,
        network={"latency": "200ms"},
        memory=memory,
    )
    return lags


# %%
short = two_cities("3s")
Curve({"a pause of 3 s": short}, x="second after the pause", y="messages behind")

# %% [markdown]
# Five seconds after its end the pause has no effect any more: about 25 messages are on their way at any time.

# %% [prediction] lab09.longer_pause
# After a pause of 3 seconds the lag soon returns to normal. Now the group pauses for 20 seconds. When is the lag as
# before?
#
# - soon: after some seconds; 32 per round trip is far more than arrives
#   > Only from memory. The group first needs messages that are 20 seconds old and now only on disk.
# - long: after about seven times as long; the lag is seven times as large
#   > That would be true if the broker answered as fast as before.
# - never: never, while as many messages arrive
#   = From disk it gets 8 per 400 ms, 20 per second, and 24 per second arrive. So it never reaches the messages in
#   = memory.
# note: The brake is in `DefaultMessageStore.getMessage`: 40 % of the machine's memory, then
#   `maxTransferCountOnMessageInDisk`. It protects groups that keep up from groups that do not.
# later: -

# %%
long_pause = two_cities("20s")
in_memory = two_cities("20s", memory="100MB")
Curve(
    {
        "a pause of 3 s": short,
        "a pause of 20 s": long_pause,
        "20 s, all in memory": in_memory,
    },
    x="second after the pause",
    y="messages behind",
)

# %% [markdown]
# The lag shrinks only when the traffic ends. With everything in the broker's memory, the same pause is over in seconds.

# %%
while_it_comes = dict(long_pause)
grows = while_it_comes[40] > while_it_comes[20] > 100
reveal("lab09.longer_pause", "never" if grows else "soon")

# %% [answer] lab09.more_queues
# ### Your turn: another round trip
#
# The client pulls each queue separately, so each has its own eight per 400 ms. Try 1, 2 and 3 queues in `QUEUES`. What
# is the fewest with which less than 50 messages are behind 40 seconds after the long pause?
#
# wrong one: With one queue it never catches up: 20 per second are fewer than 24.
# wrong most: It is enough, but is it the fewest?
# wrong: Check each number of queues in turn, from 1 on.
# note: Other ways out: a slave that serves old messages (`slaveReadEnable`), a group near the broker, more memory, or a
#   skip ([lab 04b](04b-beginning-again.ipynb)). More consumers do not help: a queue has one owner.

# %% tags=["parameter"]
QUEUES = (1,)

by_queues = {queues: dict(two_cities("20s", queues)) for queues in QUEUES}
Bars(
    {f"queues: {queues}": lags[40] for queues, lags in by_queues.items()},
    unit="messages behind",
)

# %%
### BEGIN SOLUTION
found = {queues: dict(two_cities("20s", queues)) for queues in (1, 2)}
answer("lab09.more_queues", 2, found)
### STARTER
# answer("lab09.more_queues", ..., by_queues)
### END SOLUTION

# %% [markdown]
# ## A slow step of its own
#
# After the charge an invoice is printed, which takes eight seconds per page. "We start it and continue":


# %%
def starts_and_goes_on(lab, printed):
    def charge(messages, context):
        def print_page():
            context.sleep("8s")
            printed.append(messages[0].keys)

        context.start(print_page)
        return CONSUME_SUCCESS

    billing_with(lab, charge, queues=1)
    shop = lab.producer("shop")
    for number in range(6):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
        lab.run_for("1s")


# %%
def killed(lab, printed):
    starts_and_goes_on(lab, printed)
    lab.run_for("3s")
    lab.kill("billing-1")
    lab.run_for("3s")
    lab.start("billing-1")
    lab.run_for("40s")


# %% [prediction] lab09.start_and_go
# Six orders arrive, one per second. Three seconds after the last one, billing is killed and restarted. How many of the
# six pages are printed in the end?
#
# - all: six; the broker redelivers unfinished orders
#   > RocketMQ redelivers only uncommitted messages. The listener had returned CONSUME_SUCCESS, so they were committed.
# - fewer: fewer than six
#   = Acknowledged orders are committed within five seconds. Their pages were in the crashed process.
# - none: none; all work of a process is lost with it
#   > The first pages were out before the crash, and the last orders were not yet committed, so they were redelivered.
# note: CONSUME_SUCCESS promises that the work is done or stored elsewhere. "It has begun" is neither.
# later: -

# %%
pages = []
lab = play(lambda lab: killed(lab, pages), seed=7, client=no_trace)
Bars({f"order-{n}": pages.count(f"order-{n}") for n in range(6)}, unit="pages")

# %%
missing = 6 - len(set(pages))
reveal("lab09.start_and_go", "fewer" if 0 < missing < 6 else "all")

# %% [exercise] lab09.safe_async
# ### Exercise 5: safely later
#
# Give printing its own topic and group. Write `safe_async(send, print_page)`. It returns two listeners, each a function
# `(messages, context)`: billing's for the topic `orders`, then printing's for the topic `invoices`.
#
# - No call of billing takes longer than a second; `print_page(message, context)` takes eight.
# - `send(message)` returns when the broker has stored it. It may raise `ClientError`; then nothing was stored.
# - A page has the order's `keys` and `body`. Every order is printed despite any crash, and once if nothing fails.
#
# hint: The first listener sends `Message("invoices", body, keys=...)` and returns CONSUME_SUCCESS only after `send` has
#   returned.
# hint: An exception that leaves a listener counts as RECONSUME_LATER: the order is redelivered ten seconds later. So do
#   not catch what `send` raises.
# hint: The second listener calls print_page itself and then returns CONSUME_SUCCESS. It may be slow, because it has its
#   own group.
# note: In RocketMQ this is a second topic and a `DefaultMQPushConsumer` of another group, with its own offsets, threads
#   and lag. At work: look for `executor.submit` in listeners, and ask what happens to that queue in a crash.


# %%
# exercise: lab09.safe_async
def safe_async(send, print_page):
    """Two listeners: billing's, which hands the page over, and printing's."""

    ### BEGIN SOLUTION
    def billing(messages, context):
        for order in messages:
            send(Message("invoices", order.body, keys=order.keys))
        return CONSUME_SUCCESS

    def printing(messages, context):
        for invoice in messages:
            print_page(invoice, context)
        return CONSUME_SUCCESS

    return billing, printing
    ### END SOLUTION


# %%
check("lab09.safe_async")

# %% [belief] lab09.started_is_done
# question: A listener has started the slow step in another thread, or does not wait for its send. May it return
#   CONSUME_SUCCESS?
# claim: Yes; the work is under way.
# refutation: CONSUME_SUCCESS moves the offset past the order, so unfinished work is lost in a crash. Return it after
#   send has returned, because then the broker has stored the message.

# %% [belief] lab09.send_is_sure
# question: What may a listener do when its send fails?
# claim: Catch the exception and continue.
# refutation: A failed send has stored nothing. Let the exception leave the listener, or return RECONSUME_LATER: then
#   the order is redelivered and sent again.

# %% [belief] lab09.printer_says_done
# question: The second listener has the invoice. When is it done?
# claim: When the page has been started.
# refutation: The rule moves with the slow step: the second group also returns CONSUME_SUCCESS only when the page is
#   out. Until then the broker keeps the invoice.

# %% [belief] lab09.body_is_enough
# question: An order is sent on as an invoice. What goes with it?
# claim: Its body.
# refutation: Its keys must also go with it: you find the order by them in the table of printed pages and with
#   `queryMsgByKey`. A re-sent message is a new message and has only what you set.

# %% [belief] lab09.one_for_both
# question: An order is charged now and printed later. How many listeners does it pass?
# claim: It passes one.
# refutation: It passes two, in two groups. Each group has its own offset, so the fast one is done while the slow one
#   still works.

# %% [belief] lab09.prints_itself
# question: Where is the page printed?
# claim: In billing's own call, as before.
# refutation: If billing prints, each of its calls takes eight seconds and keeps its thread and its queue's offset. Only
#   the second listener may print.

# %% [markdown]
# ## An adaptive brake
#
# A fixed number of threads is also a brake if the number of slots stays the same. Tonight a part of the database fails
# and recovers.

# %% [prediction] lab09.fixed_gate
# Eight slots become two, and the gate admits ten calls at a time. How many of them wait?
#
# - 2: two, as before
#   > Two slots serve only two of them.
# - 8: eight
#   = Two are served, eight wait. A call now takes five seconds instead of one or two, and the client can measure that.
# - 10: ten
#   > Two slots still work.
# note: Little's law, reversed: calls in progress divided by the seconds of a call is the rate. Ten in progress at five
#   seconds each make two per second, so there are two slots, though no message reports it.
# later: -


# %%
def ten_at_a_time(lab, took):
    database = lab.resource("database", slots=8)

    def charge(messages, context):
        began_ms = lab.now_ms
        with database:
            context.sleep("1s")
        took.append((began_ms, lab.now_ms - began_ms))
        return CONSUME_SUCCESS

    billing_with(lab, charge, threads=10)
    shop = lab.producer("shop")
    for number in range(260):
        shop.send(a_book(number))
    return database


# %%
def then_two_slots(lab, took):
    """Eight slots for fifteen seconds, then two."""
    database = ten_at_a_time(lab, took)
    lab.run_for("15s")
    database.resize(2)
    lab.run_for("30s")
    return database


# %%
took, gate = [], []
lab = play(lambda lab: gate.append(then_two_slots(lab, took)), seed=7, client=no_trace)
print(gate[0])
first_ms = took[0][0]
Curve(
    {"ms of a call": [((began - first_ms) / 1000, ms) for began, ms in took]},
    x="second in which it began",
    y="ms",
)

# %%
reveal("lab09.fixed_gate", gate[0].waiting)

# %% [exercise] lab09.brake
# ### Exercise 6: as much as it can do
#
# Write `brake(ask, now, usual_ms, most_waiting)`. It returns billing's listener, a function `(messages, context)`.
#
# - `ask(message, context)` asks the database and returns with the answer. After eight seconds it raises TimeoutError.
# - `now()` is the time in ms. A query takes `usual_ms` without waiting. You cannot ask for the number of slots: eight
#   at first, two for a while, then eight again.
# - Billing has thirty threads. From ten seconds after a change, at most `most_waiting` calls wait in the database. No
#   call may be too late, and no message is sent back: the lag waits in the broker.
# - While messages wait, the slots have work: you use at least four fifths of two slots, and nine tenths of eight within
#   a minute after they are back.
#
# A listener may wait for its turn: `while ...: context.sleep("100ms")`. Between two waits no other listener runs, so a
# plain variable (`nonlocal`) can count the calls inside.
#
# hint: Keep two numbers: `inside`, how many calls ask now, and `limit`, how many may. Wait while `inside >= limit`.
# hint: An answer took `took` ms while `together` calls were inside. By Little's law, `together * usual_ms / took` of
#   them were served. Admit that many, and two more, so that the limit can grow.
# hint: Count `inside` down in a `finally`. Keep the limit at 1 or more.
# note: RocketMQ's own brake checks what the client holds, not what the listener waits for. You have written an adaptive
#   concurrency limit. At work: compare the number of connections that all your instances may open with what the
#   database can do at a time.


# %%
# exercise: lab09.brake
def brake(ask, now, usual_ms, most_waiting):
    """A listener that asks as much of the database as it can do."""
    ### BEGIN SOLUTION
    inside, limit = 0, 2

    def listener(messages, context):
        nonlocal inside, limit
        while inside >= limit:
            context.sleep("100ms")
        inside += 1
        together, began = inside, now()
        try:
            ask(messages[0], context)
        finally:
            inside -= 1
        took = max(now() - began, usual_ms)
        limit = max(1, together * usual_ms // took + 2)
        return CONSUME_SUCCESS

    return listener
    ### END SOLUTION


# %%
check("lab09.brake")

# %% [belief] lab09.no_brake
# question: The database has become slow. Where should the calls wait?
# claim: In the database; it has its own queue.
# refutation: Its queue also keeps abandoned queries. Thirty threads are more than it can serve within the time limit,
#   and the work for late callers is thrown away. Admit fewer.

# %% [belief] lab09.same_gate
# question: How many calls may be admitted at a time?
# claim: A fixed number, as many as the database has slots.
# refutation: The number of slots has changed without a notice, and with a fixed number most calls wait now. The time of
#   an answer reveals it: admit as many as were served, and a little more.

# %% [belief] lab09.give_back
# question: There is no room for one more call. What does the listener return?
# claim: RECONSUME_LATER; then the message is redelivered when there is room.
# refutation: A message that is sent back is redelivered after 10 s, 30 s, a minute, and after 16 times it is a dead
#   letter. Let it wait in its thread.

# %% [belief] lab09.late_is_done
# question: A call was too late for its order. What does the listener return?
# claim: CONSUME_SUCCESS; another attempt would only add to the load.
# refutation: Then this order is never charged. With a brake no call is too late, and every order is answered in its
#   turn.

# %% [belief] lab09.one_is_safe
# question: How many calls may be admitted without harm to the database?
# claim: One at a time; that cannot hurt.
# refutation: It hurts the orders: seven per second arrive, and one is processed. Admit as many as are served.

# %% [belief] lab09.stays_small
# question: The database has its slots again. How does the limit react?
# claim: The limit keeps the value it had found.
# refutation: A limit that only shrinks stays small after the recovery. Admit a little more than is served: if there is
#   room, answers stay fast, and the limit grows.

# %% [belief] lab09.stop_all
# question: Answers take longer than usual. What does the brake do?
# claim: It stops everything for a while, so that the database can recover.
# refutation: Two slots work as well as before. If you send nothing, they are idle and the lag grows faster. Hold back
#   only what would wait.

# %% [markdown]
# ## Break it: a limit that is too short
#
# Eight harmless threads. But a query takes a second, and this time the limit is 700 ms.

# %%
impatient = played(threads=8, limit_ms=700)
Curve(
    {
        name: [(row["second"], row[name]) for row in impatient]
        for name in ("answered", "too late", "waiting")
    },
    x="second",
    y="calls",
)

# %% [markdown]
# A limit must be longer than the work plus the allowed wait.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Every query takes a second here.** Real ones differ, and a few slow ones can fill all slots.
# - **A real database slows down under load.** Ours serves eight as well as one, and queues the rest in order.
# - **Some drivers cancel a query when its caller gives up.** Then less is wasted. Find out whether yours does.
# - **A cold read costs only its smaller answer here.** Disk time is not modelled. [The whole list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | pulls delayed by 50 ms: more than 1,000 messages or 100 MiB of a queue held | `DefaultMQPushConsumerImpl.pullMessage`, `pullThresholdForQueue`, `pullThresholdSizeForQueue` |
# | the same for a distance above 2,000, not in order | `consumeConcurrentlyMaxSpan`, `ProcessQueue.getMaxSpan` |
# | 32 messages from memory, 8 from the disk | `maxTransferCountOnMessageInMemory`, `maxTransferCountOnMessageInDisk` |
# | what counts as memory: 40 % of it | `accessMessageInMemoryMaxRatio`, `DefaultMessageStore.checkInDiskByCommitOffset` |
# | a slave is suggested to readers of old messages | `slaveReadEnable`, `suggestWhichBrokerId` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | flow control protects the database | it checks what the client holds, not what the listener waits for |
# | the thread count is C * (T1 + T2) / T1 | advice about cores: with eight slots behind the calls, twenty threads did what eight do |
# | a pull brings `pullBatchSize` messages | at most that many from memory, 8 from the disk |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab09.whom_to_ask
# **1.** Calls of billing take four times as long as in the morning, and all threads are busy. What do you check before
# you change anything?
#
# answer: Check what the calls wait for: waiting sessions in the database, and how many it serves at a time. If calls
#   wait there, more threads or instances only lengthen its queue. Little's law gives the rate: calls in progress
#   divided by the seconds of a call.

# %% [reflection] lab09.how_to_end_it
# **2.** No call is answered in time any more, and the traffic is normal. How do you end it?
#
# answer: Ask less than the database can serve until the old queries are done: suspend the consumers, or remove most
#   threads (`updateCorePoolSize`). The lag waits in the broker, where it costs nothing. Then add them again a few at a
#   time. A longer time limit also helps; more consumers make it worse.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 10a](10a-spark-reads-the-broker.ipynb) reads a cluster's logs as one table. All labs: [index](index.ipynb).
