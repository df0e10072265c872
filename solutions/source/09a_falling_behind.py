# %% [markdown] tags=["reading"]
# # 09a Capacity: falling behind
#
# ## Why
#
# Black Friday, 20:10. The lag of `billing` grows by 40,000 messages per minute. The team doubles the instances, and
# nothing changes. They double the threads: the calls get slower, and some time out. At 21:00 the traffic is normal
# again, and the team promises that all will be well in ten minutes. It takes until midnight.
#
# Five sentences from that evening:
#
# - "More consumers help."
# - "More threads cannot hurt, they only wait."
# - "Each of our machines has two cores, so two threads."
# - "The lag is 120,000 and we do 10,000 per minute, so it takes twelve minutes."
# - "The night was quiet, so we have reserves."
#
# None of them is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 03a](03a-who-reads-which-queue.ipynb) and [lab 05a](05a-many-at-a-time.ipynb).
# Afterwards you can
#
# - compute from two times of a call how many threads an instance needs, and its rate then;
# - predict when a lag will be gone, and which promise not to make;
# - size a group for a curve of traffic, and see it play a day.

# %%
from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.widgets import backlog_tank
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.charts import Curve

no_trace = {"enable_trace": False}

# %%
old_questions("lab09")

# %% [markdown]
# ## Threads: a call takes a second
#
# One instance has ten threads. A call computes for 50 ms, then waits 950 ms for the bank. Three messages per second
# arrive, then fifteen for half a minute, then three again.

# %% [prediction] lab09.little
# The machine computes for only a twentieth of each call. How many messages can the group process per second?
#
# - 20: twenty; the core needs 50 ms for each
#   > The core could. But a call keeps its thread while it waits, and there are ten threads.
# - 15: as many as arrive; waiting costs nothing
#   > Waiting costs a thread. Ten threads with calls of a second finish ten per second.
# - 10: ten
#   = There are ten threads, and each call keeps one for a second.
# note: This is Little's law: calls in progress = calls per second x seconds per call.
# later: -

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
# Little's law and the run:


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
# The bank needs twice as long. Set `WAIT` to `"1950ms"` and run the cell. How many messages can the group process per
# second?
#
# wrong same: Ten per second would need ten calls of a second. How long does a call take now?
# wrong threads: More time per call cannot finish more calls.
# wrong: Little's law: the ten threads are the calls in progress, and a call takes 0.05 + 1.95 s.
# note: The system that your threads wait for sets your rate.

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

# %% [markdown]
# ## How many threads?
#
# In mqlab, `context.compute` needs a core of its machine and `context.sleep` only its thread. 160 orders wait. How many
# per second can one instance with two cores process?


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
# A call computes for 100 ms and waits for 300 ms, on two cores. From how many threads on does another thread change
# nothing?
#
# - 2: from two on; one for each core {lab09.one_a_core}
#   > While its one thread waits, three quarters of the time, a core is idle.
# - 8: from eight on
#   = A call computes for a quarter of its time, so four threads keep one core busy, and eight keep two.
# - never: there is no such number; more threads do more
#   > Only until both cores are busy all the time, as they are with eight threads.
# note: Handbooks write C * (T1 + T2) / T1: cores, times the whole call, divided by its computing part. It is advice
#   about cores. RocketMQ's pool has 20 threads by default.

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
# The third curve has its knee only at eighty threads.

# %% [prediction] lab09.worse
# The calls that compute and wait have eight threads, and get thirty-two. What changes?
#
# - nothing: nothing; the additional threads only wait
#   > They wait inside a call, and its time counts: for the consume timeout, the database's timeout and the caller.
# - longer: each call takes longer
#   = As many calls end per second, and four times as many are in progress. By Little's law each takes four times as
#   = long.
# - faster: each call is a little faster
#   > The cores are already busy. Additional calls wait for them.
# note: A real machine also pays for switching threads and for their memory.
# later: -

# %%
took = {threads: ms for threads, (_, ms) in runs["computes and waits"].items()}
Bars({f"threads: {threads}": ms for threads, ms in took.items()}, unit="ms a call")

# %%
reveal("lab09.worse", "longer" if took[32] > 1.5 * took[8] else "nothing")

# %% [answer] lab09.fewest
# ### Your turn: find a knee
#
# Calls compute for 50 ms and wait for 200 ms, on two cores. Change `TRIED` until you know the fewest threads with which
# the rate reaches its maximum.
#
# wrong largest: That is the largest number you tried. Does a smaller one do as much?
# wrong: Look for the first bar that is as long as the last one.
# note: 2 * (50 + 200) / 50 = 10. Rule and run agree, because only cores are scarce here.

# %% tags=["parameter"]
TRIED = (2, 4, 32)

tried = {threads: measured(threads, 50, 200)[0] for threads in TRIED}
Bars(
    {f"threads: {threads}": rate for threads, rate in tried.items()},
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
# Write `threads(cores, compute_ms, wait_ms)`. It returns a pair: the fewest threads with which one instance can keep
# all its cores busy, and how many calls then end per second, rounded down. `compute_ms` is at least 1.
#
# hint: The rule is `cores * (compute_ms + wait_ms) / compute_ms`. Round up to whole threads.
# hint: A core that is always busy ends `1000 / compute_ms` calls per second.
# hint: `-(-a // b)` is a divided by b, rounded up.
# note: RocketMQ does not compute this: `DefaultMQPushConsumer.consumeThreadMin` is 20, and
#   `ConsumeMessageConcurrentlyService` makes a pool of that size. At work: measure T1 (CPU time) and T2 of your slowest
#   listener, and compare.


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

# %% [belief] lab09.full_never_ends
# question: As many messages come as a group can process. Is there a lag for ever?
# claim: Yes, for nothing is left to catch up with.
# refutation: Only if there was one before. A lag that was 0 stays 0 while no more comes than can be processed.

# %% [belief] lab09.long_is_for_ever
# question: A group has a lag of a thousand messages, and processes one more in each second than come. Does the lag end?
# claim: No, that is too little.
# refutation: It ends after a thousand seconds. Whatever is processed beyond what comes shortens the lag, however little
#   it is.

# %% [belief] lab09.down
# question: The rule yields 8.67 threads. How many threads is that?
# claim: Eight.
# refutation: With the number rounded down, a core is idle part of the time. Round up to keep all cores busy.

# %% [belief] lab09.float_is_exact
# question: Three cores, T1 = 30, T2 = 100. What is `math.ceil(3 * (1 + 100 / 30))`?
# claim: 13, because 3 * 130 / 30 is 13.
# refutation: Most fractions have no exact float. A product that should be an integer may lie a little above it, and
#   `math.ceil` adds one. Multiply first and divide integers: `-(-a // b)`.

# %% [belief] lab09.waits_only
# question: A call computes for T1 and waits for T2. How many threads does a core need?
# claim: T2 / T1, one for each computation that fits into the waiting.
# refutation: While one thread waits, T2 / T1 others compute, and the waiting thread also counts: T1 + T2.

# %% [belief] lab09.by_threads
# question: The number of threads was rounded up. How many calls end per second?
# claim: Threads divided by the time of a call.
# refutation: At the knee the cores are the limit, and rounding the threads up makes no core faster. A second has 1000 *
#   cores / T1 computations.

# %% [belief] lab09.core_waits
# question: How many calls does a busy core end per second?
# claim: 1000 / (T1 + T2), because a call takes that long.
# refutation: One thread ends that many. A core serves other threads while one waits, and ends 1000 / T1.

# %% [markdown]
# ## More instances
#
# There are four queues. The team adds instances of two threads each, up to eight of them.

# %% [prediction] lab09.instances
# The lag at the peak is too large with four instances. How large is it with eight?
#
# - half: about half; twice as many threads work
#   > Four of them get no queue. A queue belongs to one instance of a group, and there are four queues.
# - same: the same
#   = There are four queues, and each belongs to one instance. The fifth instance and all others have nothing to read.
# - larger: larger; they take each other's messages
#   > They take nothing from each other. Four of them have nothing to do.
# note: Handbooks write nodes = peak / rate of a node. But queues are the upper limit, and they are whole: the busiest
#   of three nodes with four queues has as much to do as each of two.
# later: -

# %%
sizes = (1, 2, 3, 4, 6, 8)
groups = {n: backlog_tank(instances=n, threads=2, recorded={}) for n in sizes}
Bars(
    {f"instances: {n}": group.largest_lag for n, group in groups.items()},
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
# wrong working: That many have a queue.
# wrong: Read the row "queues" of the table: how many of the five own one?
# note: No log reports it. The idle instance sends heartbeats, and costs what the others cost.

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
# Draw a curve, change a setting, and watch which limit binds:

# %% tags=["explorer"]
backlog_tank()

# %% [markdown]
# ## When is the lag gone?
#
# The first tank processes ten per second, and after the peak three per second arrive. When the peak ends, about 150
# messages wait.

# %% [prediction] lab09.over
# How long does it take until the lag is as before the peak?
#
# - 15: 15 s; 150 messages at ten per second {lab09.lag_by_rate}
#   > Three messages per second keep arriving. Only the rest of the capacity reduces the lag.
# - 21: about 21 s; 150 at seven per second
#   = Of ten per second, three are new arrivals. Seven per second are left for the lag.
# - 30: 30 s; as long as it took to grow
#   > It grew by five per second and shrinks by seven. The two times are independent.
# note: Lag is a number of messages. Time is lag divided by the *remaining* capacity. If none remains, the lag never
#   ends.
# later: -

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
# - `traffic` is a list of messages per second, one number per ten seconds. The last rate continues for ever; it does
#   not exceed the capacity.
# - `capacity` is how many messages per second the group can process.
#
# In each second, add the arrivals, then process at most `capacity` messages; the rest is the lag. Return a pair: the
# largest lag, and the second (counted from 1) at whose end the lag has become 0 for good. Return 0 for it if there
# never is a lag, and `None` if the lag never ends.
#
# hint: In each second, `lag = max(0, lag + rate - capacity)`. The rate of second s, counted from 0, is `traffic[min(s
#   // 10, len(traffic) - 1)]`.
# hint: Remember the last second that ended with a lag above 0. The next one is the answer.
# hint: After the curve, stop when the lag is 0. If the last rate equals the capacity and there is a lag, return None.
# note: Monitoring shows committed offsets (`ConsumeStats.computeTotalDiff`), up to five seconds old. At work: put
#   capacity minus arrivals next to the lag on your dashboard; promise by that number.


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
# refutation: An idle second is gone. The lag is never below 0, and no capacity is saved up.

# %% [belief] lab09.first_time
# question: The lag has become 0. Is it over?
# claim: Yes; that is the second asked for.
# refutation: Another peak comes, and the lag returns. Give the second after which it stays at 0.

# %% [belief] lab09.curve_ends
# question: The curve of traffic ends and there is a lag. Will it end?
# claim: No; it still exists when the curve ends.
# refutation: The last rate continues, and any capacity above it shrinks the lag.

# %% [markdown]
# ## Several messages per call
#
# The listener gets up to eight messages per call (`consume_message_batch_max_size`). It computes for each, and waits
# for the bank once. Five threads read the first tank's traffic.

# %% [prediction] lab09.full_calls
# Five threads with one message each finish five per second; 15 arrive in the peak. How large is the lag with up to
# eight messages per call?
#
# - gone: gone; five calls with eight messages each are as good as forty {lab09.batch_is_full}
#   > The calls are not full. A call has messages of one pull, and the broker answers a pull as soon as there is one
#   > message.
# - smaller: smaller; when messages have to wait, the calls become fuller
#   > Messages wait in the client, already split into calls.
# - same: the same
#   = Messages arrive one by one, and each answers a pull.
# note: A call contains messages of *one pull* only. A pull brings many if many are stored already: after a pause, or
#   with a pull interval.
# later: -


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
# The pull interval has a price: a message also waits for its pull. Try `"5s"`.

# %%
one, eight, _ = (row["largest lag"] for row in fuller)
reveal("lab09.full_calls", "same" if abs(eight - one) < 0.1 * one else "smaller")

# %% [markdown]
# ## A size for a day

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
# Write `size(traffic, compute_ms, wait_ms, cores, queues, pull_interval_ms, goal_ms, budget)`. It returns `(instances,
# threads, batch)`: threads per instance, and messages per call at most. The check *plays* two days with it, in about
# five seconds. The bill must fit, and 99 of 100 messages must be done within `goal_ms` after they were stored.
#
# - `traffic` are twelve rates, messages per second for ten seconds each.
# - A call of n messages takes `n * compute_ms + wait_ms`.
# - A queue is pulled again `pull_interval_ms` after its last pull; 0 means at once, and then messages arrive one by
#   one.
#
# For the busiest instance at the peak (a failed check shows this bill of limits with your numbers):
#
# | limit | needed | available |
# |---|---|---|
# | cores, ms per second | its messages per second · `compute_ms` | `1000 * cores` |
# | threads | its calls per second · ms per call / 1000 | `threads` |
# | time, ms | `pull_interval_ms` + ms per call | `goal_ms` |
# | money | `instances * (20 + threads)` | `budget` |
#
# Your answer may not use the tank or the Lab.
#
# hint: Cores first. Of `queues` queues the busiest of n instances has `-(-queues // n)`, and gets that fraction of the
#   peak. Take the fewest instances whose cores have some room left; messages do not arrive evenly.
# hint: Then time. In the peak a pull brings `max(traffic) * pull_interval_ms / (1000 * queues)` messages. A larger batch
#   has no effect, and a smaller one may be needed to keep within the goal.
# hint: Then threads: more than needed, because messages arrive by chance. Your bill shows how many you can pay for.
# note: `AllocateMessageQueueAveragely` assigns whole queues, and `submitConsumeRequest` splits a pull's messages into
#   calls. At work: divide your peak by queues first. If one queue's share is too much for an instance, no size helps.


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
# question: Traffic changes over a day. Which rate must a group be able to process?
# claim: The average of the day.
# refutation: While traffic is above the average the lag grows, and the peak misses a time goal.

# %% [belief] lab09.even_load
# question: Eight queues and three instances. How is the load shared?
# claim: Evenly; each has a third.
# refutation: A queue belongs to one instance: two of them have three queues, and their load.

# %% [belief] lab09.threads_for_instances
# question: An instance does not keep up. Are more threads as good as another instance?
# claim: Yes; a thread does the work of an instance.
# refutation: Threads share the cores of their instance. Beyond the knee, only another instance adds capacity.

# %% [belief] lab09.one_a_queue
# question: A topic has eight queues. How many instances should the group have?
# claim: Eight; one per queue is always right.
# refutation: Queues are the upper limit, not what the traffic needs. You also pay for idle instances.

# %% [belief] lab09.only_computing
# question: For how long does a call need its thread?
# claim: While it computes.
# refutation: A call also keeps its thread while it waits: for T1 + T2.

# %% [belief] lab09.batch_is_free
# question: How many messages should a call have at most?
# claim: As many as possible; a batch costs nothing.
# refutation: It costs time. The first message of a call is done only when the whole call has ended.

# %% [belief] lab09.a_thread_each
# question: Twenty messages per second arrive, and each call waits a second. How many threads?
# claim: At least twenty; a thread for each waiting message.
# refutation: A call waits once for all of its messages. If a pull brings five, a quarter of the threads are enough.

# %% [markdown]
# ## Break it: one instance less
#
# Four instances survive the peak. How bad are three, with three quarters of the cores? And two?

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
    {f"instances: {n}": group.behind_s for n, group in hold.items()},
    unit="seconds behind",
)

# %% [markdown]
# One of the three instances has two queues, like each of the two, and is behind for just as long. More queues, such as
# 12 or 24, spread more evenly.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **A thread costs nothing here.** Real threads cost memory and switches; the curve falls again beyond its knee.
# - **All calls are alike.** A slow real call keeps the offset of its queue ([lab 04a](04a-how-far-have-we-read.ipynb)).
# - **The bank never gets slower.** `slots=8` in the board shows the effect of a shared database.
# - **Not modelled:** disk time, network bandwidth, garbage collection. [The whole list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the pool of a concurrent consumer, 20 threads unless set | `ConsumeMessageConcurrentlyService`, `consumeThreadMin` |
# | its unlimited queue of waiting calls, so that `consumeThreadMax` changes nothing | `LinkedBlockingQueue` in the same class |
# | whole queues per instance | `AllocateMessageQueueAveragely` |
# | calls of one pull's messages, at most `consumeMessageBatchMaxSize` | `ConsumeMessageConcurrentlyService.submitConsumeRequest` |
# | the brake of a client that has 1,000 messages of a queue | `pullThresholdForQueue`, `DefaultMQPushConsumerImpl.pullMessage` |
# | what monitoring calls lag | `ConsumeStats.computeTotalDiff`: broker offset minus committed offset |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | the thread count is C * (T1 + T2) / T1 | advice about cores, in no line of the source; it ignores a database behind the calls |
# | a larger batch makes a group faster | only if pulls bring several messages: set `pullInterval`, or have a backlog |
# | nodes = peak / rate of a node | at least; add whole queues and a reserve, and no more nodes than queues work |
# | the pool grows to 64 threads | it stays at its minimum ([lab 05a](05a-many-at-a-time.ipynb)) |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab09.first_look
# **1.** The lag grows. Which three numbers do you ask for before you change anything?
#
# answer: T1 and T2 of a call, how busy the cores are, and how many instances own a queue. Busy cores need instances,
#   idle cores with busy threads need threads, idle instances need queues. If calls have become longer, find out what
#   they wait for.

# %% [reflection] lab09.promise
# **2.** Traffic is at nine tenths of the capacity, and there is an hour's worth of lag. What do you promise?
#
# answer: A tenth of the capacity is left for the lag, so an hour of lag takes about nine to ten hours. Or the shop
#   skips it ([lab 04b](04b-beginning-again.ipynb)), and lists what will never be processed.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 09b](09b-what-gives-way.ipynb): many instances wait for one database. All labs: [index](index.ipynb).
