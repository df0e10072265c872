# %% [markdown] minutes=2 tags=["reading"]
# # Lab 09a: Falling behind
#
# ## Why
#
# Black Friday, 20:10. The lag of `billing` grows by 40,000 messages a minute. The team doubles the instances: nothing
# changes. They double the threads: now the calls are slower, and some time out. At 21:00 the traffic is back to normal, and
# somebody promises the shop that all will be well in ten minutes. It takes until midnight.
#
# Five sentences from that evening:
#
# - "More consumers help."
# - "More threads cannot hurt, they only wait."
# - "Each of our machines has two cores, so two threads."
# - "The lag is 120,000 and we do 10,000 a minute, so it takes twelve minutes."
# - "The night was quiet, so we have reserves."
#
# None of them is true.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 03a](03a-who-reads-which-queue.ipynb) and [lab 05a](05a-many-at-a-time.ipynb). When
# you are done you can
#
# - say from two times of a call how many threads an instance needs, and what it can do then;
# - say when a lag will be gone, and which promise not to make;
# - size a group for a curve of traffic, and see it play a day.

# %%
from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import backlog_tank
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.charts import Curve

no_trace = {"enable_trace": False}

# %% [markdown] minutes=12
# ## A call takes a second
#
# One instance with ten threads. Each call computes for 50 ms and then waits 950 ms for the bank. Three messages a second come
# in, for half a minute fifteen, then three again.

# %% [prediction] lab09.little
# The machine computes for one twentieth of a call only. How many messages can the group do in a second?
#
# - 20: twenty; the core needs 50 ms for each
#   > The core could. But a call keeps its thread while it waits as well, and there are ten threads.
# - 15: as many as come; waiting costs nothing
#   > Waiting costs a thread. Ten threads, each with a call of a second: ten a second end.
# - 10: ten
#   = Ten threads, and each call keeps one for a second.
# note: This is Little's law: calls in progress = calls a second x seconds of a call. Ten in progress, one second: ten a second.

# %%
tank = backlog_tank(threads=10, compute="50ms", wait="950ms", recorded={})
most_done = max(row["done"] for row in tank.run.seconds)
reveal("lab09.little", "10" if most_done <= 10 else "15")

# %%
Curve(
    {
        "arrived": [(row["second"], row["arrived"]) for row in tank.run.seconds],
        "done": [(row["second"], row["done"]) for row in tank.run.seconds],
        "lag": [(row["second"], row["lag"]) for row in tank.run.seconds],
    },
    x="second",
    y="messages",
)

# %% [markdown]
# Hold Little's law against the run: for some seconds of the peak, how many calls were in progress, and how many ended?


# %%
def in_progress(calls, ms):
    return sum(call.begun_ms <= ms < call.ended_ms for call in calls)


calls = tank.run.calls
mean_s = sum(call.ended_ms - call.begun_ms for call in calls) / len(calls) / 1000
Table(
    [
        {
            "second": second,
            "in progress": in_progress(calls, second * 1000),
            "ended in it": tank.run.seconds[second - 1]["done"],
            "mean call, s": round(mean_s, 3),
        }
        for second in (20, 40, 50, 60, 110)
    ]
)

# %% [answer] lab09.slower
# ### Your turn: a slower bank
#
# The bank needs twice as long. Set `WAIT` to `"1950ms"` and run the cell. How many messages can the group do in a second?
#
# wrong same: Ten a second would need ten calls that take a second. How long does a call take now?
# wrong threads: More time for a call cannot end more calls.
# wrong: Little's law: calls in progress are the ten threads, and a call takes 0.05 + 1.95 s.
# note: Half as many, though no core works harder. Whoever waits on your threads decides how much you can do.

# %% tags=["parameter"]
WAIT = "950ms"

slower_bank = backlog_tank(threads=10, wait=WAIT, recorded={})
slower_bank.table()

# %%
### BEGIN SOLUTION
slower_bank = backlog_tank(threads=10, wait="1950ms", recorded={})
answer("lab09.slower", 5, slower_bank)
### STARTER
# answer("lab09.slower", ..., slower_bank)
### END SOLUTION

# %% [markdown] minutes=24
# ## How many threads?
#
# So more threads. In mqlab computing and waiting are apart: `context.compute` needs a core of its machine, `context.sleep` only
# its thread. 160 orders wait; how many a second does one instance with two cores do?


# %%
def orders_wait(lab):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    shop = lab.producer("shop")
    for _ in range(160):
        shop.send(Message("orders", b"a book"))


# %%
def backlog(lab, ended, threads, compute_ms, wait_ms, cores):
    orders_wait(lab)
    pool = {"consume_thread_min": threads, "consume_thread_max": threads}
    billing = lab.push_consumer("billing", cores=cores, **pool)
    billing.subscribe("orders", "*")

    def pay(messages, context):
        begun_ms = lab.now_ms
        context.compute(compute_ms)
        if wait_ms:
            context.sleep(wait_ms)
        ended.append((lab.now_ms, lab.now_ms - begun_ms))
        return CONSUME_SUCCESS

    billing.on_messages(pay)
    billing.start()
    lab.run_until(lambda: len(ended) == 160, limit="10m")


# %%
def measured(threads, compute_ms, wait_ms, cores=2):
    """Calls a second from the first to the last, and ms of a call in the middle half."""
    ended = []
    times = (threads, compute_ms, wait_ms, cores)
    play(lambda lab: backlog(lab, ended, *times), seed=7, client=no_trace)
    began_ms = min(at_ms - ms for at_ms, ms in ended)
    took_s = (ended[-1][0] - began_ms) / 1000
    return round(160 / took_s, 1), sum(ms for _, ms in ended[40:120]) // 80


# %% [prediction] lab09.knee
# A call computes for 100 ms and waits for 300 ms. Two cores. From how many threads on does one more thread change nothing?
#
# - 2: from two on; one for each core {lab09.one_a_core}
#   > While its one thread waits, a core has nothing to do: three quarters of the time. It could serve others meanwhile.
# - 8: from eight on
#   = A call computes for a quarter of its time, so four threads keep a core busy, and eight two of them.
# - never: there is no such number; more threads do more
#   > As long as they wait. With eight threads both cores compute all the time, and cores do not get more.
# note: It is the rule C * (T1 + T2) / T1 of many handbooks: cores, times the whole call, by its computing part. It is advice
#   about cores; RocketMQ knows nothing of it, its pool has 20 threads unless you say otherwise.

# %%
KINDS = {
    "computes": (200, 0),
    "computes and waits": (100, 300),
    "waits": (10, 390),
}
runs = {
    name: {threads: measured(threads, *times) for threads in (1, 2, 4, 8, 16, 32)}
    for name, times in KINDS.items()
}

# %%
Curve(
    {
        name: [(n, rate) for n, (rate, _) in found.items()]
        for name, found in runs.items()
    },
    x="threads",
    y="calls a second",
    log_x=True,
)

# %%
rates = {threads: rate for threads, (rate, _) in runs["computes and waits"].items()}
knee_at_8 = rates[4] < 0.9 * rates[8] and rates[16] < 1.05 * rates[8]
reveal("lab09.knee", "8" if knee_at_8 else "2")

# %% [markdown]
# The first line bends at two threads, the second at eight, the third not at all: its knee is at eighty.

# %% [prediction] lab09.worse
# The calls that compute and wait have eight threads, and get thirty-two. What changes?
#
# - nothing: nothing; the further threads only wait
#   > They wait inside a call. Its clock runs: for the consume timeout, for the database's, for the one who waits for it.
# - longer: each call takes longer
#   = As many calls end in a second, and four times as many are in progress: Little's law says four times as long.
# - faster: each call is a little faster
#   > The cores are busy already. Whoever joins waits for them.
# note: A real machine is worse: it also pays for switching between threads and for their memory, which mqlab leaves out.

# %%
took = {threads: ms for threads, (_, ms) in runs["computes and waits"].items()}
Bars({f"{threads} threads": ms for threads, ms in took.items()}, unit="ms a call")

# %%
reveal("lab09.worse", "longer" if took[32] > 1.5 * took[8] else "nothing")

# %% [answer] lab09.fewest
# ### Your turn: find a knee
#
# Calls that compute for 50 ms and wait for 200 ms, two cores. Change `TRIED` until you have found it: which is the fewest
# number of threads with which the rate is at its top?
#
# wrong largest: That is the largest number you tried. Does a smaller one do as much?
# wrong: Read the table below: the first row whose rate is that of the last row.
# note: 2 * (50 + 200) / 50 = 10. The rule and the run agree, because cores are all that is scarce here.

# %% tags=["parameter"]
TRIED = (2, 4, 32)

tried = {threads: measured(threads, 50, 200)[0] for threads in TRIED}
Bars(
    {f"{threads} threads": rate for threads, rate in tried.items()},
    unit="calls a second",
)

# %%
### BEGIN SOLUTION
found = {threads: measured(threads, 50, 200)[0] for threads in (8, 9, 10, 11, 32)}
answer("lab09.fewest", 10, found)
### STARTER
# answer("lab09.fewest", ..., tried)
### END SOLUTION

# %% [exercise] lab09.threads
# ### Exercise 1: the knee
#
# Write `threads(cores, compute_ms, wait_ms)`. It returns a pair: the fewest threads of one instance that can keep all its
# cores busy, and how many calls end in a second then, rounded down. `compute_ms` is at least 1.
#
# hint: The rule is `cores * (compute_ms + wait_ms) / compute_ms`. Half a thread is none: round up.
# hint: With the cores busy all the time, a core ends `1000 / compute_ms` calls in a second.
# hint: `-(-a // b)` is a divided by b, rounded up.
# note: RocketMQ does not do this for you: `DefaultMQPushConsumer.consumeThreadMin` is 20, and `ConsumeMessageConcurrentlyService`
#   makes its pool of it. At work on Monday: measure T1 (CPU time) and T2 of your slowest listener, and compare with your setting.


# %%
# exercise: lab09.threads
def threads(cores, compute_ms, wait_ms):
    """The fewest threads that keep the cores busy, and calls a second with them."""
    ### BEGIN SOLUTION
    fewest = -(-cores * (compute_ms + wait_ms) // compute_ms)
    per_second = 1000 * cores // compute_ms
    return fewest, per_second
    ### END SOLUTION


# %%
check("lab09.threads")

# %% [belief] lab09.down
# question: The rule says 8.67 threads. How many are that?
# claim: Eight.
# refutation: With the number rounded down a core is idle for a part of the time. The fewest that keep all cores busy is the
#   number rounded up.

# %% [belief] lab09.float_is_exact
# question: Three cores, T1 = 30, T2 = 100. What is `math.ceil(3 * (1 + 100 / 30))`?
# claim: 13, because 3 * 130 / 30 is 13.
# refutation: A float has no exact value for most fractions, so a product that should be a whole number may lie a little above
#   it, and `math.ceil` makes one more of that. Multiply first and divide whole numbers: `-(-a // b)`.

# %% [belief] lab09.waits_only
# question: A call computes for T1 and waits for T2. How many threads does a core need?
# claim: T2 / T1, one for each computation that fits into the waiting.
# refutation: While one thread waits, T2 / T1 others compute, and the one that waits is a thread, too. The whole call counts,
#   T1 + T2.

# %% [belief] lab09.by_threads
# question: The number of threads was rounded up. How many calls end in a second?
# claim: Threads divided by the time of a call.
# refutation: At the knee the cores are the limit. Rounding the threads up makes no core faster, and each call then waits a
#   moment for one. A second has 1000 * cores / T1 computations.

# %% [belief] lab09.core_waits
# question: How many calls does a busy core end in a second?
# claim: 1000 / (T1 + T2), for a call takes that long.
# refutation: That is what one thread ends. A core serves other threads while one waits, and ends 1000 / T1.

# %% [markdown] minutes=16
# ## More instances
#
# Four queues. The team adds instances of two threads each, up to eight of them.

# %% [prediction] lab09.instances
# The lag at the peak is too large with four instances. With eight it is …
#
# - half: about half; twice as many threads work
#   > Four of them get no queue. A queue belongs to one instance of a group, and there are four queues.
# - same: the same
#   = There are four queues, and a queue belongs to one instance. The fifth and all after it have nothing to read.
# - larger: larger; they take each other's messages
#   > They take nothing from each other. Four of them simply have nothing to do.
# note: Nodes = peak / rate of a node, says the handbook. And not more than queues; and the busiest node has a whole number of
#   queues: of three nodes with four queues one has as much to do as each of two.

# %%
sizes = (1, 2, 3, 4, 6, 8)
groups = {n: backlog_tank(instances=n, threads=2, recorded={}) for n in sizes}
Bars(
    {f"{n} instances": group.largest_lag for n, group in groups.items()},
    unit="messages behind",
)

# %%
lags = {n: group.largest_lag for n, group in groups.items()}
reveal("lab09.instances", "same" if abs(lags[8] - lags[4]) < 0.2 * lags[4] else "half")

# %% [answer] lab09.idle
# ### Your turn: a fifth instance
#
# Set `INSTANCES` to 5 and run the cell. How many of them have nothing to do?
#
# wrong none: Count the queues that each of them owns.
# wrong working: That is how many have a queue.
# wrong: Read the row "queues" of the table: how many of the five own one?
# note: And nothing says so: it is connected, it sends heartbeats, and it costs what the others cost.

# %% tags=["parameter"]
INSTANCES = 3

fifth = backlog_tank(instances=INSTANCES, threads=2, recorded={})
fifth.table()

# %%
### BEGIN SOLUTION
fifth = backlog_tank(instances=5, threads=2, recorded={})
answer("lab09.idle", 1, fifth)
### STARTER
# answer("lab09.idle", ..., fifth)
### END SOLUTION

# %% [markdown]
# Now play with it. Draw a curve, change what you like, and look which limit binds:

# %% tags=["explorer"]
backlog_tank()

# %% [markdown] minutes=22
# ## When is it over?
#
# Back to the first tank: ten a second can be done, and after the peak three a second come. When the peak ends, about 150
# messages wait.

# %% [prediction] lab09.over
# How long does it take until the lag is as before the peak?
#
# - 15: 15 s; 150 messages at ten a second {lab09.lag_by_rate}
#   > Meanwhile messages keep coming, three a second. Only what is left of the capacity works on the lag.
# - 21: about 21 s; 150 at seven a second
#   = Ten a second are done, three of them are those that come meanwhile: seven a second are left for the lag.
# - 30: 30 s; as long as it took to grow
#   > It grew by five a second and shrinks by seven. How long it took to grow says nothing about that.
# note: Lag is a number of messages. Time is lag divided by what is *left* of the capacity. With nothing left it never ends.

# %%
after = [row for row in tank.run.seconds if row["second"] > 60]
at_peak = after[0]["lag"]
over = next(row["second"] for row in after if row["lag"] <= 5)
print(f"{at_peak} behind in second 61, over in second {over}")
Curve(
    {"lag": [(row["second"], row["lag"]) for row in tank.run.seconds]},
    x="second",
    y="messages",
)

# %%
reveal("lab09.over", "21" if 19 <= over - 60 <= 26 else "15")

# %% [exercise] lab09.catch_up
# ### Exercise 2: when will it be over?
#
# Write `catch_up(traffic, capacity)`.
#
# - `traffic` is a list of messages a second, one number for each ten seconds. After the last ten seconds its rate goes on for
#   ever; it is not above the capacity.
# - `capacity` is how many messages a second the group can do.
#
# Go second by second: what arrives is added, then at most `capacity` messages are done; what is left is the lag. Return a
# pair: the largest lag, and the second (counted from 1) at whose end the lag has become 0 for good. That is 0 if there never
# is a lag, and `None` if it never goes.
#
# hint: In each second, `lag = max(0, lag + rate - capacity)`; the rate of second s, counted from 0, is
#   `traffic[min(s // 10, len(traffic) - 1)]`.
# hint: Remember the last second that ended with a lag above 0. The one after it is the answer.
# hint: After the curve, stop when the lag is 0. If the last rate equals the capacity and there is a lag, return None.
# note: Monitoring shows what is committed (`ConsumeStats.computeTotalDiff`), up to five seconds old. At work on Monday: put
#   capacity minus arrivals beside the lag on your dashboard; that is what a promise can be made of.


# %%
# exercise: lab09.catch_up
def catch_up(traffic, capacity):
    """The largest lag, and the second in which it is gone for good."""
    ### BEGIN SOLUTION
    lag, largest, second, last = 0, 0, 0, 0
    while second < 10 * len(traffic) or lag > 0:
        rate = traffic[min(second // 10, len(traffic) - 1)]
        if second >= 10 * len(traffic) and rate >= capacity:
            return largest, None
        lag = max(0, lag + rate - capacity)
        largest = max(largest, lag)
        second += 1
        if lag > 0:
            last = second
    return largest, last + 1 if last else 0
    ### END SOLUTION


# %%
check("lab09.catch_up")

# %% [belief] lab09.saved_up
# question: The night was quiet. What does the group have for the morning's peak?
# claim: A reserve: what it could have done at night.
# refutation: A second in which nothing was to be done is gone. The lag is never below 0, and no capacity is saved up.

# %% [belief] lab09.first_time
# question: The lag has become 0. Is it over?
# claim: Yes; that is the second asked for.
# refutation: Another peak comes, and the lag with it. Asked for is the second from which on it stays 0.

# %% [belief] lab09.curve_ends
# question: The curve of traffic ends and there is a lag. Will it go?
# claim: No: it has not gone when the curve ends.
# refutation: The last rate goes on, and if the capacity is above it, the lag gets smaller. It only never goes if nothing is
#   left of the capacity.

# %% [markdown] minutes=4
# ## Several messages in a call
#
# The bank takes several charges at once, and one wait will do for all of them. So the listener gets up to eight messages in a
# call (`consume_message_batch_max_size`). It computes for each, and waits once. Five threads read the first tank's traffic.

# %% [prediction] lab09.full_calls
# Five threads with one message each end five a second; 15 come in the peak. With up to eight messages in a call, the lag is …
#
# - gone: gone; five calls with eight messages each are as good as forty {lab09.batch_is_full}
#   > The calls are not full. A call has messages of one pull, and a pull is answered as soon as there is one message.
# - smaller: smaller; when messages have to wait, the calls become fuller
#   > Messages wait in the client, already cut into calls. A pull does not wait until a thread is free.
# - same: the same
#   = Messages come one by one, each answers a pull, and so each call has one message.
# note: Only what *one pull* brought can be in one call. A pull brings many when many are stored already: after a break, or if the
#   client waits between two pulls.


# %%
def of_five_threads(name, **way):
    tank = backlog_tank(threads=5, recorded={}, **way)
    return {
        "a call has": name,
        "on average": tank.per_call,
        "largest lag": tank.largest_lag,
    }


# %% tags=["parameter"]
PULL_INTERVAL = "1s"

seldom = {"batch": 8, "pull_interval": PULL_INTERVAL}
fuller = [
    of_five_threads("1 in a call"),
    of_five_threads("up to 8", batch=8),
    of_five_threads(f"up to 8, every {PULL_INTERVAL}", **seldom),
]
Table(fuller)

# %% [markdown]
# The pull interval has a price: a message waits for its pull, too. Try `"5s"`.

# %%
one, eight, _ = (row["largest lag"] for row in fuller)
reveal("lab09.full_calls", "same" if abs(eight - one) < 0.1 * one else "smaller")

# %% [markdown] minutes=26
# ## A size for a day
#
# Now all of it at once: what each instance can do, whole queues, and money. With a goal, too, for a queue in front of busy
# threads is time for somebody.

# %%
tight = backlog_tank(
    traffic=[4] * 3 + [22] * 3 + [4] * 6,
    instances=2,
    threads=8,
    batch=1,
    compute="120ms",
    wait="400ms",
    pull_interval=0,
    recorded={},
)
took_ms = tight.run.took_ms
print(f"99 of 100 within {took_ms[len(took_ms) * 99 // 100]:,} ms")
tight.table()

# %% [exercise] lab09.size
# ### Exercise 3: a size that holds
#
# Write `size(traffic, compute_ms, wait_ms, cores, queues, pull_interval_ms, goal_ms, budget)`. It returns `(instances, threads,
# batch)`: the threads of each instance, and the most messages of a call. The day is then *played* with your size; the check
# plays two of them, which takes some five seconds:
#
# - `traffic` are twelve rates, messages a second for ten seconds each. A call computes `compute_ms` for each of its messages and
#   then waits `wait_ms` once; each instance has `cores` cores, and the topic `queues` queues.
# - A queue is pulled again `pull_interval_ms` after its last pull; 0 means at once, and then messages come one by one.
# - 99 of 100 messages are done within `goal_ms` after they were stored.
# - An instance costs 20, each of its threads 1. The bill is at most `budget`.
#
# The tank and the Lab are not for your answer to use; to try a size by hand, use the cell above.
#
# hint: Of `queues` queues the busiest of n instances has `-(-queues // n)`: so many `queues`-ths of the peak are its share. Take
#   the fewest instances for which the share times `compute_ms` is below about nine tenths of `1000 * cores`.
# hint: In the peak a pull brings `max(traffic) * pull_interval_ms / (1000 * queues)` messages. A larger batch does nothing, and
#   a smaller one may be needed: `pull_interval_ms + batch * compute_ms + wait_ms` should be well below the goal.
# hint: Then threads for the share: calls a second (share / batch) times the seconds of a call, and a fifth more for chance.
# note: `AllocateMessageQueueAveragely` hands out whole queues, and `submitConsumeRequest` cuts what a pull brought into calls. At
#   work on Monday: divide your peak by queues first. If one queue's share is more than an instance can do, no size helps.


# %%
# exercise: lab09.size
def size(
    traffic, compute_ms, wait_ms, cores, queues, pull_interval_ms, goal_ms, budget
):
    """Instances, threads of each, and the most messages of a call."""
    ### BEGIN SOLUTION
    for instances in range(1, queues + 1):
        share = max(traffic) * -(-queues // instances) / queues
        if share * compute_ms <= 900 * cores:
            break
    bundle = max(1, max(traffic) * pull_interval_ms // (1000 * queues))
    room_ms = 0.8 * goal_ms - pull_interval_ms - wait_ms
    batch = max(1, min(bundle, int(room_ms // compute_ms)))
    call_ms = batch * compute_ms + wait_ms
    threads = int(share / batch * call_ms * 1.2 / 1000) + 1
    return instances, threads, batch
    ### END SOLUTION


# %%
check("lab09.size")

# %% [belief] lab09.average_day
# question: Traffic changes over a day. Which rate does a group have to do?
# claim: The average of the day.
# refutation: While traffic is above the average the lag grows, and a goal for it is missed in the peak.

# %% [belief] lab09.even_load
# question: Eight queues and three instances. How is the load shared?
# claim: Evenly; each has a third.
# refutation: A queue belongs to one instance: two of them have three queues, and the load of three.

# %% [belief] lab09.threads_for_instances
# question: An instance does not keep up. Are more threads as good as another instance?
# claim: Yes: a thread does the work of an instance.
# refutation: Threads share the cores of their instance. From the knee on, only another instance adds capacity.

# %% [belief] lab09.one_a_queue
# question: A topic has eight queues. How many instances should the group have?
# claim: Eight: one for each queue is always right.
# refutation: Queues are the most that can work, not what the traffic needs. What no message needs is paid for all the same.

# %% [belief] lab09.only_computing
# question: For how long does a call need its thread?
# claim: While it computes.
# refutation: A call keeps its thread while it waits, too: for T1 + T2.

# %% [belief] lab09.batch_is_free
# question: How many messages should a call have at most?
# claim: As many as possible: a batch costs nothing.
# refutation: It costs time. The first message of a call is done when the last one is computed and the whole call has ended.

# %% [belief] lab09.a_thread_each
# question: Twenty messages a second come, and each call waits a second. How many threads?
# claim: Twenty at least: a thread for each message that waits.
# refutation: A call waits once for all of its messages. If a pull brings five, a quarter of the threads or fewer will do.

# %% [markdown] minutes=3
# ## Break it: one instance less
#
# Four queues and calls that compute: four instances hold the peak. How bad are three, when three quarters of the cores are
# still there? And two?

# %%
hold = {
    n: backlog_tank(
        traffic=[4] * 3 + [22] * 3 + [4] * 6,
        instances=n,
        threads=4,
        compute="120ms",
        wait="400ms",
        recorded={},
    )
    for n in (4, 3, 2)
}
Bars(
    {f"{n} instances": group.behind_s for n, group in hold.items()},
    unit="seconds behind",
)

# %% [markdown]
# One of the three has two queues, as each of the two has: it is behind as long as they are. The others have time and may not
# help. More queues, such as 12 or 24, can be shared out more evenly.

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **A thread costs nothing here.** Real threads cost memory and switches; the curve falls again behind its knee.
# - **All calls are alike.** Real ones are not, and the slow one of a hundred keeps the offset of its queue
#   ([lab 04a](04a-how-far-have-we-read.ipynb)).
# - **The bank never gets slower.** It has as many slots as are asked for in the questions above. `slots=8` in the board shows
#   what a shared database does to the rule.
# - **Not modelled:** time on the disk and on the network's wires, garbage collection.
#   [What is not modelled](not-modelled.ipynb) has the whole list.

# %% [markdown] minutes=3 tags=["reading"]
# ## RocketMQ does it so
#
# | what | where in RocketMQ |
# |---|---|
# | the pool of a concurrent consumer, 20 threads unless set | `ConsumeMessageConcurrentlyService`, `consumeThreadMin` |
# | its queue of waiting calls without a limit, so that `consumeThreadMax` changes nothing | `LinkedBlockingQueue` in the same class |
# | whole queues for each instance | `AllocateMessageQueueAveragely` |
# | calls of what one pull brought, `consumeMessageBatchMaxSize` at most | `ConsumeMessageConcurrentlyService.submitConsumeRequest` |
# | the brake of a client that has 1,000 messages of a queue | `pullThresholdForQueue`, `DefaultMQPushConsumerImpl.pullMessage` |
# | what monitoring calls lag | `ConsumeStats.computeTotalDiff`: broker offset minus committed offset |
#
# Where you may read it differently:
#
# | you may read | it is |
# |---|---|
# | the thread count is C * (T1 + T2) / T1 | advice about cores, in no line of the source; with a database behind the calls that is no rule |
# | a larger batch makes a group faster | only if pulls bring several messages: set `pullInterval` as well, or have a backlog |
# | nodes = peak / rate of a node | at least; whole queues and a reserve come on top, and no more nodes than queues work |
# | the pool grows to 64 threads | it stays at its minimum ([lab 05a](05a-many-at-a-time.ipynb)) |

# %% [markdown] minutes=3 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab09.first_look
# **1.** The lag grows. Which three numbers do you ask for before anybody changes anything?
#
# answer: How long a call takes and how much of it computes (T1 and T2); how busy the cores are; and how many instances own a
#   queue. Busy cores ask for instances, idle cores with all threads in calls for threads, idle instances for queues. And if
#   calls have become longer than they were, ask whom they wait for: then neither helps.

# %% [reflection] lab09.promise
# **2.** Traffic is at nine tenths of the capacity, and there is an hour's worth of lag. What do you promise?
#
# answer: A tenth of the capacity is left for the lag: an hour of lag takes about nine to ten hours. Or somebody decides to
#   skip it ([lab 04b](04b-beginning-again.ipynb)), and says which messages will never be done.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# [Lab 09b](09b-what-gives-way.ipynb): what gives way when many instances wait for one database. All labs:
# [index](index.ipynb).
