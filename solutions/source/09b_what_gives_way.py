# %% [markdown] minutes=2 tags=["reading"]
# # Lab 09b: What gives way
#
# ## Why
#
# The same Black Friday, 20:40. Billing has thirty instances now, and each call takes longer than before. Somebody gives the
# calls a time limit of three seconds, "so that they do not hang". A minute later not one order is charged any more. At 21:30
# the shop sells no more than on any Tuesday, and still nothing is charged. At 22:00 they restart everything, and it works.
#
# Five sentences from that evening:
#
# - "The database is slow, so ask it from more instances."
# - "A time limit protects us."
# - "When the peak is over, it gets better by itself."
# - "An hour of lag or a minute of lag, the broker hands it out as fast."
# - "Printing takes eight seconds. We start it and go on."
#
# None of them is true.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 09a](09a-falling-behind.ipynb). When you are done you can
#
# - tell from a monitor's rows which limit a group has met, and name the row that proves it;
# - say why time limits can make an overload stay, and build a brake that lets it pass;
# - say when a lag feeds itself, and give a slow step a topic of its own without losing anything.

# %%
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import backlog_tank
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


# %% [markdown] minutes=14
# ## One database for all
#
# Each call of billing computes for 50 ms and then waits 950 ms for a query. The database works on eight queries at a time: it
# has eight *slots*. Whoever finds them taken waits for one.

# %% [prediction] lab09.rule_of_cores
# One instance, one core. The rule of the handbook, C * (T1 + T2) / T1, says 20 threads. How many calls end in a second with
# them?
#
# - 20: twenty; the rule holds
#   > It holds for cores. Here a call needs a slot as well, and of those there are eight.
# - 8: about eight
#   = Eight slots, and a query takes a second, nearly. The other threads stand in front of the database.
# - 10: ten; half of the threads wait at any time
#   > More than half wait: for a slot. What ends in a second is what the slots can do.
# note: The rule asks how many threads keep the cores busy. Nothing in it knows of a database, and nothing in RocketMQ does.

# %%
at_once = {
    threads: backlog_tank(threads=threads, slots=8, recorded={})
    for threads in (4, 8, 20)
}
most = {
    threads: max(row["done"] for row in tank.run.seconds)
    for threads, tank in at_once.items()
}
Bars({f"{threads} threads": done for threads, done in most.items()}, unit="calls")

# %%
reveal("lab09.rule_of_cores", "8" if most[20] <= 10 else "20")

# %% [markdown]
# These are the calls that ended in the best second of each run. What do the threads do that the slots cannot serve? The table
# of limits knows how long a call stood at each:

# %%
at_once[20].limits()

# %% [prediction] lab09.more_instances
# Three instances of 20 threads, so 60 threads, and the same database. The lag of the peak is …
#
# - third: a third of what it was
#   > Three times as many threads ask the same eight slots.
# - same: what it was
#   = The slots are the limit, and there are as many of them as before.
# - zero: nearly nothing
#   > A second has eight queries, whoever asks for them.
# note: The queue has only moved: from the broker, where it is a lag that anybody can see, into the database, where it is a
#   longer call.

# %%
three = backlog_tank(instances=3, threads=20, slots=8, recorded={})
lags = {"1 instance": at_once[20].largest_lag, "3 instances": three.largest_lag}
Bars(lags, unit="messages behind")

# %%
alike = abs(three.largest_lag - at_once[20].largest_lag) <= 0.2 * three.largest_lag
reveal("lab09.more_instances", "same" if alike else "third")

# %% [markdown]
# Play with it. Change slots, threads and instances, and look which limit binds:

# %% tags=["explorer"]
backlog_tank(slots=8)

# %% [exercise] lab09.bottleneck
# ### Exercise 4: the limit, and the row that proves it
#
# Four groups have fallen behind, each for another reason. A monitor has taken samples at the end of each second. Write
# `bottleneck(tables)`; `tables` is a dictionary of three lists of rows, each row a dictionary:
#
# | table | columns | one row per |
# |---|---|---|
# | `"instances"` | second, instance, queues, threads, cores, in_calls, computing | second and instance |
# | `"database"` | second, slots, in_use, waiting | second |
# | `"lag"` | second, arrived, done, behind | second |
#
# `in_calls` threads are in a call, and `computing` of those calls have a core. Look at the seconds with `behind` of 20 or
# more, and ask in this order: is the **database** full, with calls that wait for a slot? Has an instance no **queues**, while
# the others have no thread left? Are all **cores** of the instances computing? Otherwise it is the **threads**.
#
# Return a tuple `(limit, table, row)`: one of `"database"`, `"queues"`, `"cores"`, `"threads"`; the table in which it shows;
# and the number of a row of that table, counted from 0, that shows it in one of those seconds. A limit is what is so in nearly
# all of those seconds: a core can be busy for a moment in any group.
#
# hint: `late = {row["second"] for row in tables["lag"] if row["behind"] >= 20}`. Then only rows whose second is in `late`.
# hint: For each limit count the rows of late seconds that show it. It is the limit if nearly all do, say nine of ten; for
#   queues one row of an instance with 0 is enough, for that does not change.
# hint: Walk with `enumerate(tables["instances"])`, so that you still have the number of the row.
# note: At work on Monday: three numbers beside the lag, in this order. Sessions that wait in the database, queues of each
#   instance (`mqadmin consumerProgress -g billing -s true` names the owner of each queue), and how busy the cores are.
#   `ConsumerRunningInfo` has the threads of an instance and what its calls take.


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
# claim: More threads.
# refutation: A call keeps its thread while it waits for a slot of the database or for a core, so threads are all busy with
#   every limit. They are the limit only if nothing else is: look at the database, the queues and the cores first.

# %% [belief] lab09.one_moment
# question: In one sample all cores of an instance compute. Are cores the limit?
# claim: Yes; it has been seen.
# refutation: What is busy for half of the time, a core or the database, is busy in half of the samples. A limit is busy in
#   nearly all seconds in which many messages wait.

# %% [belief] lab09.full_is_limit
# question: In nearly all samples every slot of the database is in use, and no call waits for one. Is the database the limit?
# claim: Yes, because it is full.
# refutation: A database with as many slots as there are calls is full, and more slots would change nothing. It is the limit
#   only while calls wait for a slot.

# %% [belief] lab09.nobody_idle
# question: Two instances have all their threads in calls, and a third has no queue. What is the limit?
# claim: The threads of the two.
# refutation: A third instance stands beside them and has nothing to do, because a queue belongs to one instance and there are
#   too few of them. Look at the column queues.

# %% [belief] lab09.any_row
# question: The database is the limit. Which row proves it?
# claim: Any row of its table.
# refutation: A row proves what it shows: at the beginning the database has free slots. Name a row in which it is full, from a
#   second in which messages wait.

# %% [markdown] minutes=20
# ## A time limit
#
# The team gives each call three seconds. What they do not know: a query that nobody waits for any more goes on in the
# database. It keeps its slot until it is done.


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
# Six orders a second come, for twenty seconds twelve, and then six again. Eight a second can be done.


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
# The same with a time limit of three seconds. The peak ends in second 40. What is answered between second 100 and 110?
#
# - 60: sixty, what comes; the peak is over
#   > The peak is over. Its queries are not: each of them still takes a second of a slot.
# - 80: eighty, what the slots can do; there is a lag to work off
#   > The slots are all busy, that is true. But for whom?
# - 0: nothing
#   = Every slot works on a query whose caller has gone. Whoever asks now waits behind all of them, for more than three seconds.
# note: And what was too late comes again: after 10 s, after 30 s, and so on. With the retries more is asked than can be done,
#   although no more is sold than on any Tuesday. It ends only when less is asked than the slots can do, for as long as the old queries take.

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
# With the limit of three seconds: the run with 40 threads is there, and the cell plays 8; try 16, 24 and 32 as well. Each takes
# a second or more to play. Which is the largest of the five numbers with which no call is too late?
#
# wrong slots: With eight nothing waits at all. Some may wait, as long as their turn comes within the limit.
# wrong largest: With as many, calls are too late: look at their column.
# wrong: The largest number of those you tried whose calls are never too late.
# note: In front of the last one stand all the others; eight of them are served each second. A limit on what may wait, not on
#   how long, keeps an overload harmless: it stays in the broker, as a lag, and nobody's work is thrown away.


# %%
def calls_too_late(rows):
    return sum(row["too late"] for row in rows)


# %% tags=["parameter"]
TRIED = (8,)

too_late = {
    threads: calls_too_late(played(threads, limit_ms=3_000)) for threads in TRIED
} | {40: calls_too_late(limited)}
Bars({f"{threads} threads": n for threads, n in too_late.items()}, unit="too late")

# %%
### BEGIN SOLUTION
tried = too_late | {
    threads: calls_too_late(played(threads, limit_ms=3_000)) for threads in (16, 24, 32)
}
answer("lab09.most_threads", max(n for n in tried if tried[n] == 0), tried)
### STARTER
# answer("lab09.most_threads", ..., too_late)
### END SOLUTION

# %% [markdown] minutes=12
# ## The client's own brake
#
# Where does a message wait that no thread has time for? In the client, until it has enough of them. Then its pulls are put off,
# 50 ms at a time. It looks at what it still holds of a queue: more than 1,000 messages (`pullThresholdForQueue`), more than
# 100 MiB, or a distance of more than 2,000 between the first and the last. Here with 40 instead of 1,000:


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
# The brake is set to 40, a pull brings up to 32. How many messages does the client hold at most?
#
# - 40: forty
#   > The client looks before it pulls. With 40 it is not above 40, and pulls 32 more.
# - 72: more than forty, but not more than 72
#   = With 40 it still pulls, and gets up to 32. From 41 on it waits until some are done.
# - 400: four hundred; the brake is for orderly consumers
#   > It is for both. Only the distance between first and last is not looked at in order.
# note: The check is `DefaultMQPushConsumerImpl.pullMessage`, and it is strict: *more than*. With four queues it is four times
#   as many, for each queue has a brake of its own (`pullThresholdForTopic` divides one among them).

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
# note: What is held is gone from nobody's view: it counts as lag until it is done and committed. But if this process dies, all
#   of it is delivered again, and nobody else can help with it meanwhile. A wide brake is not a fast one.

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

# %% [markdown] minutes=16
# ## A lag that feeds itself
#
# A broker keeps the end of its log in memory. Who asks for something older gets 8 messages at a time instead of 32 (you have
# seen it in [lab 06b](06b-what-a-filter-passes-over.ipynb)). The group and the broker are in two cities: 200 ms, one way.
# Twenty-four messages a second come, and a listener takes no time. What can go wrong?


# %%
def a_large_book(number):
    return Message("orders", b"a book of " + b"x" * 1_000)


def after_a_pause(lab, pause, lags, queues=1):
    """The group is suspended for so long, and then goes on."""

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
# Five seconds after its end nothing is left of the pause: some 25 messages are on their way at any time.

# %% [prediction] lab09.longer_pause
# The group is stopped for 3 seconds: soon the lag is as before. Now it is stopped for 20 seconds. When is the lag as before?
#
# - soon: after some seconds; 32 in each round trip is far more than comes
#   > From memory. What the group needs first is 20 seconds old, and lies only on the disk by now.
# - long: after about seven times as long; the lag is seven times as large
#   > That would be so if the broker answered as fast as before.
# - never: never, while as many messages come
#   = From the disk it gets 8 in each 400 ms, 20 a second. 24 a second come. So it stays behind what is in memory, for good.
# note: The brake is in `DefaultMessageStore.getMessage`: 40 % of the machine's memory, then
#   `maxTransferCountOnMessageInDisk`. A broker protects those who keep up from those who do not.

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
# The traffic ends about 45 seconds after the long pause. Only then does the lag get smaller. With a broker that has all of it in
# memory the same pause is over in seconds: it is the eight messages that make the difference.

# %%
while_it_comes = dict(long_pause)
grows = while_it_comes[40] > while_it_comes[20] > 100
reveal("lab09.longer_pause", "never" if grows else "soon")

# %% [answer] lab09.more_queues
# ### Your turn: another round trip
#
# Each queue is pulled by itself, so each has its own eight in 400 ms. Try 1, 2 and 3 queues in `QUEUES`. What is the fewest
# with which less than 50 messages are behind 40 seconds after the long pause?
#
# wrong one: With one queue it never catches up: 20 a second are fewer than 24.
# wrong most: It is enough, but is it the fewest?
# wrong: Look at each number of queues in turn, from 1 on.
# note: Other ways out, at work: a slave that serves old messages (`slaveReadEnable`: the broker then suggests it), a group near
#   the broker, more memory, or a skip ([lab 04b](04b-beginning-again.ipynb)). More consumers in the group are none: a queue has
#   one owner.

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

# %% [markdown] minutes=24
# ## A slow step of its own
#
# After the charge an invoice is printed: eight seconds a page. "We start it and go on":


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
# Six orders come, one a second. Three seconds after the last one billing is killed, and started again. How many of the six
# pages come out in the end?
#
# - all: six; what was not done comes again
#   > RocketMQ gives again what is not committed. Their listener had said CONSUME_SUCCESS, so they were committed.
# - fewer: fewer than six
#   = What was said to be done is committed within five seconds. The pages of those orders were in a process that is dead.
# - none: none; all work of a process is lost with it
#   > The first pages were out before it died, and the last orders were not committed yet: they came again.
# note: CONSUME_SUCCESS is a promise: this is done, or it is stored somewhere else. "It has begun" is neither.

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
# Give printing a topic and a group of its own. Write `safe_async(send, print_page)`. It returns two listeners, each a function
# `(messages, context)`: the first is billing's, for the topic `orders`; the second is printing's, for the topic `invoices`.
#
# - No call of billing takes longer than a second; `print_page(message, context)` takes eight.
# - `send(message)` sends and returns when the broker has stored it. It may raise `ClientError`; then nothing was stored.
# - A page has the order's `keys` and `body`. Every order is printed, wherever a process dies, and once if nothing fails.
#
# hint: The first listener sends `Message("invoices", body, keys=...)` and returns CONSUME_SUCCESS only after `send` has returned.
# hint: An exception that leaves a listener counts as RECONSUME_LATER: the order comes again ten seconds later. So do not catch
#   what `send` raises.
# hint: The second listener calls print_page itself and then returns CONSUME_SUCCESS. It may take its time: it has its own group.
# note: In RocketMQ this is a second topic and a `DefaultMQPushConsumer` of another group: its own offsets, its own threads, its
#   own lag in the monitor. At work on Monday: look for `executor.submit` in listeners, and ask what happens to that queue when
#   the process ends.


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
# question: A listener has started the slow step beside its call, or has not waited for its send. May it say CONSUME_SUCCESS?
# claim: Yes: it is under way.
# refutation: CONSUME_SUCCESS moves the offset past the order. What is only under way dies with its process, and nobody gives it
#   again: wait until send has returned, for then it is stored in the broker.

# %% [belief] lab09.send_is_sure
# question: What may a listener do when its send fails?
# claim: Catch the exception, and go on.
# refutation: A send that failed has stored nothing. Let the exception leave the listener, or return RECONSUME_LATER: then the
#   order comes again and is sent again.

# %% [belief] lab09.printer_says_done
# question: The second listener has the invoice. When is it done?
# claim: When the page has been started.
# refutation: The slow step has moved, not its rule: the second group, too, says CONSUME_SUCCESS only when the page is out. Until
#   then the broker keeps the invoice for it.

# %% [belief] lab09.body_is_enough
# question: An order is sent on as an invoice. What goes with it?
# claim: Its body.
# refutation: Its keys as well: by them it is found again, in the table of printed pages and with `queryMsgByKey`. A message that is
#   sent on is a new message, and has only what it is given.

# %% [belief] lab09.one_for_both
# question: How many listeners does an order pass that is charged now and printed later?
# claim: One.
# refutation: Two, in two groups: each has its own offset, so the fast one is done while the slow one still works.

# %% [belief] lab09.prints_itself
# question: Where is the page printed?
# claim: In billing's own call, as before.
# refutation: Then each call of billing takes eight seconds, and holds its thread and the offset of its queue for so long. Only
#   the second listener may print.

# %% [markdown] minutes=26
# ## A brake that knows nothing
#
# Back to the database. A fixed number of threads is a brake as well, if one knows the number of slots, and if it stays. Tonight
# it does not: a part of the database fails and comes back.

# %% [prediction] lab09.fixed_gate
# Eight slots become two. Of ten calls that are let in at a time, how many wait?
#
# - 2: two, as before
#   > With two slots only two of them are served.
# - 8: eight
#   = Two are served, eight wait. A call takes five seconds now instead of one or two, and that can be seen from outside.
# - 10: ten
#   > Two slots still work.
# note: Little's law the other way round: calls in progress, by the seconds of a call, is what ends in a second. If ten are in
#   progress and each takes five seconds, two end in a second: so there are two slots, though nobody has told.


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
# - `ask(message, context)` asks the database and returns when the answer is there. After eight seconds it raises TimeoutError.
# - `now()` is the time in ms. A query takes `usual_ms` when it need not wait. How many slots there are nobody tells: eight at
#   first, two for a while, and then eight again.
# - Billing has thirty threads. Never may more than `most_waiting` calls wait in the database, ten seconds after a change; no call
#   may be too late; and nothing is given back: the lag waits in the broker.
# - While messages wait, the slots have work: of what two can do four fifths is done, and nine tenths of what eight can do, within
#   a minute after they are back.
#
# A listener may wait for its turn: `while ...: context.sleep("100ms")`. Between two waits nobody else runs, so a plain variable
# (`nonlocal`) can count who is inside.
#
# hint: Keep two numbers: `inside`, how many calls ask now, and `limit`, how many may. Wait while `inside >= limit`.
# hint: After an answer: it took `took` ms while `together` calls were inside. By Little's law so many of them were served:
#   `together * usual_ms / took`. Let in that many, and two more, so that the limit can grow.
# hint: Count `inside` down in a `finally`. The limit is 1 at least.
# note: RocketMQ has no such brake: its own looks at what the client holds, not at whom the listener waits for. What you wrote
#   is how adaptive concurrency limits work. At work on Monday: find the number of connections that all your instances together
#   may open, and compare it with what the database can do at a time.


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
# question: The database has become slow. Who makes the calls wait?
# claim: The database: it has a queue of its own.
# refutation: In its queue stands whoever asked, also when its caller has gone. With thirty threads more calls stand there than
#   it can serve within the time limit, and the work for those who are too late is thrown away. Let fewer in.

# %% [belief] lab09.same_gate
# question: How many calls may be let in at a time?
# claim: A fixed number, as many as the database has slots.
# refutation: The number of slots has changed and nobody has told. With a fixed number most calls wait now. What an answer took
#   tells it: let in what was served, and a little more.

# %% [belief] lab09.give_back
# question: There is no room for one more call. What does the listener return?
# claim: RECONSUME_LATER; then it comes again when there is room.
# refutation: A message that is given back comes again after 10 s, then 30 s, then a minute, and after 16 times it is a dead
#   letter. It is not refused by anybody: let it wait in its thread, and the rest in the broker.

# %% [belief] lab09.late_is_done
# question: A call was too late for its order. What does the listener return?
# claim: CONSUME_SUCCESS; trying again would only add to the load.
# refutation: Then nobody asks for this order again, and it was never charged. With a brake no call is too late, and every order
#   is answered in its turn.

# %% [belief] lab09.one_is_safe
# question: How many calls may be let in, if the database must not be hurt?
# claim: One at a time; that cannot hurt.
# refutation: It hurts the orders: seven a second come, and one is done. Let in as many as are served.

# %% [belief] lab09.stays_small
# question: The database has its slots again. Who notices?
# claim: The limit is what it was found to be.
# refutation: A limit that only gets smaller stays small when all is well again. Let in a little more than is served: if there is
#   room, answers stay fast, and the limit grows.

# %% [belief] lab09.stop_all
# question: Answers take longer than usual. What does the brake do?
# claim: It stops everything for a while, so that the database can recover.
# refutation: Two slots work as well as before. Whoever sends nothing leaves them idle, and the lag grows faster. Hold back what
#   would only wait.

# %% [markdown] minutes=3
# ## Break it: impatience
#
# The evening once more, with eight threads, which nothing could harm. This time the team is impatient: a query takes a second,
# and the limit is 700 ms.

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
# No query is answered in time, and ever more of them wait in the database for nobody. A limit has to be longer than the work, with
# the wait that is allowed.

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **Every query takes a second here.** Real ones differ, and a few slow ones can fill all slots.
# - **A real database gets slower the more it does at a time.** Ours serves eight as well as one, and queues the rest in order.
# - **Some drivers cancel a query when its caller goes.** Then less is wasted. Find out whether yours does.
# - **A cold read costs nothing but its smaller answer here.** The time of the disk, and what it takes from others, is not
#   modelled. [What is not modelled](not-modelled.ipynb) has the whole list.

# %% [markdown] minutes=3 tags=["reading"]
# ## RocketMQ does it so
#
# | what | where in RocketMQ |
# |---|---|
# | pulls put off by 50 ms: more than 1,000 messages or 100 MiB of a queue held | `DefaultMQPushConsumerImpl.pullMessage`, `pullThresholdForQueue`, `pullThresholdSizeForQueue` |
# | the same for a distance above 2,000, not in order | `consumeConcurrentlyMaxSpan`, `ProcessQueue.getMaxSpan` |
# | 32 messages from memory, 8 from the disk | `maxTransferCountOnMessageInMemory`, `maxTransferCountOnMessageInDisk` |
# | what counts as memory: 40 % of it | `accessMessageInMemoryMaxRatio`, `DefaultMessageStore.checkInDiskByCommitOffset` |
# | a slave is suggested to who reads old messages | `slaveReadEnable`, `suggestWhichBrokerId` |
#
# Where you may read it differently:
#
# | you may read | it is |
# |---|---|
# | flow control protects the database | it looks at what the client holds; whom the listener waits for it does not know |
# | the thread count is C * (T1 + T2) / T1 | advice about cores: with eight slots behind the calls, twenty threads did what eight do |
# | a pull brings `pullBatchSize` messages | up to as many from memory, 8 from the disk |

# %% [markdown] minutes=3 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab09.whom_to_ask
# **1.** Calls of billing take four times as long as in the morning, and all threads are busy. What do you look at before you change
# anything?
#
# answer: Whom the calls wait for: sessions that are waiting in the database, and how many it serves at a time. If they wait there,
#   more threads or instances only make the queue in it longer. Little's law gives the number served: calls in progress by the
#   seconds of a call.

# %% [reflection] lab09.how_to_end_it
# **2.** Nothing is answered in time any more, and the traffic is as on any day. How do you end it?
#
# answer: Ask less than can be served until the old queries are done: suspend the consumers, or take most threads away
#   (`updateCorePoolSize`), and let the lag wait in the broker, where it costs nothing. Then add them again a few at a time. A longer
#   time limit for the callers helps as well; more consumers make it worse.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# [Lab 10a](10a-spark-reads-the-broker.ipynb) reads a cluster's logs as one table. All labs: [index](index.ipynb).
