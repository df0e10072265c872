# %% [markdown] tags=["reading"]
# # 11b Delays and duplicates: slow, and again
#
# ## Why
#
# "It was slow this morning." When, and for whom? "The p99 is 300 ms." Of which messages, and what of those that are
# still waiting? "Twice, again." Because it failed, because a member crashed, or because an operator set an offset back?
#
# When was a message slow, why was it delivered again, and what do repetitions cost? Each question has a popular number
# that is wrong.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [part a](11a-what-happened-to-each-message.ipynb). Afterwards you can
#
# - show when messages were slow, by their store time, and how many of them are not done yet;
# - explain why a percentile (百分位数) of several queues cannot be computed from the percentiles of each;
# - give each repeated delivery exactly one cause;
# - detect a storm of retries (重试风暴) in its first minute, and count its cost.

# %%
from collections import Counter

from pyspark.sql import functions

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.given.lab11.joins import (
    first_success,
    late_by_minute,
    stored_and_sent,
    with_calls_before,
)

# %%
from mqlab.course.given.lab11.trace_tables import (
    calls_in,
    rows_of_group,
    rows_with_calls,
    rows_with_trace,
)
from mqlab.course.given.lab11.written_day import written_day
from mqlab.course.teach.datasets import played_day
from mqlab.course.widgets import echo_chart, percentile_board
from mqlab.data.spark import session
from mqlab.lab.views import Bars, Curve, Table
from mqlab.lab.views.day_charts import Ecdf, Heat, Lines, Stacked
from mqlab.scales import time_text

# %% [markdown]
# ## The same day once more
#
# How long does an order wait for mail on the day of part a? Its wait begins when it is stored (`store_timestamp`, by
# the broker's clock) and ends with mail's first successful call. `late` has these times for each of mail's queues.

# %%
day = played_day()
spark = session()
told = calls_in(day.stores)
messages = spark.read.format("rocketmq").load(str(day.stores))
ms = functions.unix_millis("store_timestamp").alias("stored_ms")
stored = messages.where("topic = 'orders'").select(
    "msg_id", "broker_name", "queue_id", ms
)
place = {row["msg_id"]: row for row in stored.collect()}

# %%
late = {}
for call in told:
    if call["group_name"] == "mail" and call["status"] == "SUCCESS":
        unit = place[call["msg_id"]]
        queue = f"{unit['broker_name']}, queue {unit['queue_id']}"
        late.setdefault(queue, []).append(call["ended_ms"] - unit["stored_ms"])


# %%
def in_minutes(rows, name):
    """A column of a table by the minute, with the minutes counted from the first one."""
    rows = sorted(rows, key=lambda row: row["minute_ms"])
    numbers = [(row["minute_ms"] - rows[0]["minute_ms"]) // 60_000 for row in rows]
    return {
        f"minute {at}": row[name] or 0 for at, row in zip(numbers, rows, strict=True)
    }


# %% [prediction] lab11.two_queues
# One queue has a p99 of 60 ms, another one of 600 ms: 99 of 100 of its messages are done in that time. What is the p99
# of both queues together?
#
# - mean: 330 ms, the mean of the two {lab11.percentiles_add}
#   > The mean of two percentiles is not a percentile. It would be the same if the slow queue had a thousand messages or
#   > three. Take the percentile of the times of all messages.
# - larger: 600 ms, the larger one
#   > It is never more than that. But a few slow messages may be among the one in a hundred that a p99 leaves out.
# - unknown: anything from 60 to 600 ms; these two numbers are not enough
#   = It depends on how many messages each queue has, and on all their times.
# note: So keep times per queue, or counts of times in ranges. A percentile over the union needs those.

# %% [markdown]
# Each curve shows which share of a queue's messages was done within a time; the thick one is the union. The fast queue
# has 1,000 messages. Move the sliders; you can also choose mail's own queues.

# %% tags=["explorer"]
queues = {
    "fast": [60 * n / 990 for n in range(1, 1_001)],
    "slow": [600 * n / 990 for n in range(1, 1_001)],
    **late,
}
percentile_board(queues, first_size=1_000, second_size=20, percent=99)


# %%
def together(count):
    """p99 of the fast queue and a slow one with so many messages."""
    return percentile_board(queues, second_size=count).together


p99_of_both = {
    f"{count:,} slow ones": round(together(count)) for count in (5, 20, 1_000)
}
Bars(p99_of_both, title="p99 of both queues", unit="ms")

# %%
reveal("lab11.two_queues", "unknown" if together(5) != together(1_000) else "mean")

# %% [markdown]
# ## When was it slow?
#
# A dashboard shows the p99 of the messages that were *done* in each minute. When the listener hangs, no message is
# done, and the dashboard is green. So group by the minute in which a message was *stored*. Next to it, show how many of
# that minute are not done at all.

# %% [exercise] lab11.slow_when
# ### Exercise 4: by the minute of storing
#
# Repair `slow_when`. It takes `messages`, everything in the logs except the trace; `calls` of one group, as in part a;
# and `tags`, a list of the tags that the group wants. It returns a row per minute in which such an order was stored:
#
# | column | is |
# |---|---|
# | `minute_ms` | the beginning of the minute, in ms since 1970 |
# | `orders` | how many orders (`msg_id` and `keys`) with one of the tags were stored first in it |
# | `waiting` | the share of them without a successful call, from 0 to 1 |
# | `p50_ms`, `p99_ms` | `functions.percentile` of the times from storing to the end of the first successful call; NULL if none is done |
#
# An order is stored first when its first unit in the topic `orders` is stored, by `store_timestamp`. **Three lines are
# wrong**, and `waiting` is missing. `rows_of_group(slow_when, day.stores, "mail", ["paid", "shipped"])` tries it.
#
# hint: Whose clock is `born_timestamp`, and when is a message born that its sender had to send three times?
# hint: `done` has a row per finished order only. Which third argument of `join` keeps the others? And in which minute
#   is an order that is not done?
# hint: `functions.expr("stored_ms div 60000 * 60000")` is the minute. The mean of
#   `functions.col("done_ms").isNull().cast("double")` is the share that waits.
# note: Read `waiting` first. A minute with a good p99 and half of its orders waiting is the worst of the day.


# %%
# exercise: lab11.slow_when
def slow_when(messages, calls, tags):
    """How long orders waited, by the minute in which they were stored, as a DataFrame."""
    same, col = ["msg_id", "keys"], functions.col
    wanted = messages.where("topic = 'orders'").where(col("tags").isin(tags))
    ### BEGIN SOLUTION
    at = functions.unix_millis("store_timestamp")
    ### STARTER
    # at = functions.unix_millis("born_timestamp")
    ### END SOLUTION
    orders = wanted.groupBy(*same).agg(functions.min(at).alias("stored_ms"))
    ### BEGIN SOLUTION
    rows = orders.join(first_success(calls), same, "left")
    minute = functions.expr("stored_ms div 60000 * 60000")
    waiting = functions.avg(col("done_ms").isNull().cast("double"))
    ### STARTER
    # rows = orders.join(first_success(calls), same)
    # minute = functions.expr("done_ms div 60000 * 60000")
    # waiting = ...  # the share of orders that are not done
    ### END SOLUTION
    return late_by_minute(rows, minute, waiting)


# %%
check("lab11.slow_when")

# %% [belief] lab11.done_when_slow
# question: To which minute does a slow message belong?
# claim: To the minute in which it was done.
# refutation: By then the trouble is over, and during it no message is done and nothing shows. A message belongs to the
#   minute in which it was stored.

# %% [belief] lab11.done_ones_tell
# question: Which messages does a percentile of waiting times need?
# claim: Those that are done; the others have no time.
# refutation: Unfinished messages have waited longest. Count them in orders, and their share in waiting: without them
#   the worst minute looks best.

# %% [belief] lab11.born_starts_clock
# question: When does a message begin to wait?
# claim: At its born_timestamp.
# refutation: born_timestamp comes from the sender's clock, which may be wrong by minutes, and includes its attempts to
#   send. The broker's store_timestamp is one clock for all of its messages.

# %% [belief] lab11.copy_starts_clock
# question: A message failed twice. Since when has it waited?
# claim: Since its last copy was stored.
# refutation: The customer has waited since the order was stored. Copies in the retry and schedule topics are later:
#   take the unit in the topic orders.

# %% tags=["picture"]
try:
    slow = rows_of_group(slow_when, day.stores, "mail", ["paid", "shipped"])
except Exception:
    slow = []  # exercise 4 is open
shares = {name: 100 * share for name, share in in_minutes(slow, "waiting").items()}
Bars(shares, title="Orders for mail that are not done", unit="%")

# %% [answer] lab11.slow_minute
# ### Your turn: the worst minute of a group
#
# Set `GROUP` to `billing` or `audit`, and `TAGS` to what it reads: billing wants paid and shipped, audit all three
# tags. In which minute (minute 0 is the first) was the largest p99 of the group?
#
# wrong: Take the row with the largest p99_ms, and count its minute from that of the first row.
# note: For billing it is a minute with failures: a retry waits ten seconds at first, then thirty.

# %% tags=["parameter"]
### BEGIN SOLUTION
GROUP, TAGS = "billing", ["paid", "shipped"]
### STARTER
# GROUP, TAGS = "mail", ["paid", "shipped"]  # yours to change
### END SOLUTION

try:
    yours = rows_of_group(slow_when, day.stores, GROUP, TAGS)
except Exception:
    yours = []
worst = in_minutes(yours, "p99_ms")
Bars(worst, title=f"p99 of {GROUP}", unit="ms")

# %%
### BEGIN SOLUTION
minute = int(max(worst, key=worst.get).removeprefix("minute "))
answer("lab11.slow_minute", minute, yours, GROUP)
### STARTER
# answer("lab11.slow_minute", ..., yours, GROUP)
### END SOLUTION

# %% [markdown]
# ## Why again?
#
# Here are the calls of a group: the row is the time of storing, the column the time of the call. A call that comes at
# once is on the diagonal; one to the right of it is late or repeated. Click a cell for its calls:

# %% tags=["explorer"]
echoes = [{**call, "stored_ms": place[call["msg_id"]]["stored_ms"]} for call in told]
echo_chart(echoes, group="audit", stretch_s=60)

# %% [prediction] lab11.again_why
# After some minutes an operator set audit's offsets back to the beginning. How many of these repeated calls have a
# `retry_times` above 0?
#
# - all: all; a redelivered message has been retried {lab11.again_is_retry}
#   > retry_times counts failures: the copy in the retry topic has it. Here nothing failed, and the broker delivered the
#   > same unit again. The call before each of them had succeeded.
# - some: some, those that had failed before
#   > None of audit's calls has failed.
# - none: none of them
#   = Nothing failed. The client asked for old offsets, and the broker delivered the same units again.
# note: A listener that relies on `reconsumeTimes > 0` to find duplicates finds only its own failures.
# later: -

# %%
audit = [call for call in told if call["group_name"] == "audit"]
again = len(audit) - len({(call["msg_id"], call["keys"]) for call in audit})
retried = sum(call["retry_times"] > 0 for call in audit)
Bars({"called again": again, "with retry_times": retried}, title="audit", unit="calls")

# %%
happened = "none" if retried == 0 else "all" if retried == again else "some"
reveal("lab11.again_why", happened)

# %% [exercise] lab11.why_again
# ### Exercise 5: one cause for each call
#
# Complete `why_again`. It takes `messages` and `calls` as in part a. It returns a row per call with a message that has
# keys: `group_name`, `request_id`, `msg_id`, `keys` and `cause`. Order the calls of one group with one message
# (`msg_id` and `keys`) by `started_ms`. The first that is true is the cause of a call:
#
# | cause | when |
# |---|---|
# | `first` | there was no call before it |
# | `retry` (重试) | its `retry_times` is larger than in every call before it |
# | `resend` | there were fewer calls before it than units of this message in the topic `orders` |
# | `no_result` | the call just before it did not return (`ended_ms` is NULL) |
# | `soon` | it began 60 s or less after the end of the call just before it: a queue went to another member |
# | `late` | anything else: an operator has set an offset back |
#
# `with_calls_before` adds `before` (the number of calls before), `most` (their largest `retry_times`), `end_before`
# (the `ended_ms` of the last of them) and `units` (in `orders`). The questions are yours. `rows_with_calls(why_again,
# day.stores)` tries it.
#
# hint: One chain: `cause = cause.when(<condition>, "retry")`, and so on; `.otherwise("late")` ends it.
# hint: A condition compares columns: `col("retry_times") > col("most")`. `col("end_before").isNull()` finds a call that
#   did not return.
# hint: `col("before") < col("units")` is a resend; `col("started_ms") - col("end_before") <= 60_000` is soon.
# note: The causes of a group add up to its calls: no duplicate is counted twice, and none is left over.


# %%
# exercise: lab11.why_again
def why_again(messages, calls):
    """Each call with a message, and why it came, as a DataFrame."""
    col, call = functions.col, ["group_name", "request_id", "msg_id", "keys"]
    rows = with_calls_before(messages, calls)
    cause = functions.when(col("before") == 0, "first")
    ### BEGIN SOLUTION
    cause = cause.when(col("retry_times") > col("most"), "retry")
    cause = cause.when(col("before") < col("units"), "resend")
    cause = cause.when(col("end_before").isNull(), "no_result")
    is_soon = col("started_ms") - col("end_before") <= 60_000
    cause = cause.when(is_soon, "soon").otherwise("late")
    ### STARTER
    # cause = ...  # and then?
    ### END SOLUTION
    return rows.select(*call, cause.alias("cause"))


# %%
check("lab11.why_again")

# %% [belief] lab11.time_tells
# question: Does the time between two calls show why a message was redelivered?
# claim: Yes; soon after is a retry or a rebalance, much later is a reset.
# refutation: A retry of a high level comes after two hours, one of level 3 after ten seconds. First check retry_times,
#   how often the order was stored, and whether the call before returned.

# %% [belief] lab11.sent_once
# question: How often is an order stored?
# claim: Once; all further calls are the consumer's fault.
# refutation: A sender without an answer stores it twice, and each unit is delivered once. Until there were as many
#   calls as units in the topic orders, it is a resend.

# %% [belief] lab11.died_is_soon
# question: A process was killed in a call, and the message was redelivered. What is the cause?
# claim: A rebalance, like every second call that comes soon.
# refutation: The call before it did not return: no_result. Without an end there is no time after the end either.

# %% [belief] lab11.groups_repeat
# question: Two groups were called with one message. Was it delivered again?
# claim: Yes; it was delivered twice.
# refutation: Once to each, because every group reads every message. Put the group into the window, along with msg_id
#   and keys.

# %% tags=["picture"]
try:
    causes = rows_with_calls(why_again, day.stores)
except Exception:
    causes = []  # exercise 5 is open
parts = {}
for row in causes:
    if row["cause"] != "first":
        parts.setdefault(row["group_name"], Counter())[row["cause"]] += 1
Stacked(parts, title="Calls after the first, by cause")

# %% [markdown]
# Look at the echoes one by one with your causes: choose `retry` and billing, or `soon` and mail.

# %% tags=["explorer"]
names = ("request_id", "msg_id", "keys")
cause_of = {tuple(row[name] for name in names): row["cause"] for row in causes}
for call in echoes:
    call["cause"] = cause_of.get(tuple(call[name] for name in names))
echo_chart(echoes, group="billing", stretch_s=30)

# %% [markdown]
# Is it true? The Lab saw every call, and knows its unit:

# %%
saw = Counter((c.consumer_group, c.cause) for c in day.calls if c.cause and c.keys)
Table(
    {"group": g, "cause": c, "the Lab saw": n, "you say": parts.get(g, {}).get(c)}
    for (g, c), n in sorted(saw.items())
    if g != "quiet"
)

# %% [markdown]
# A correct table differs from the Lab's in two places. A member of mail was killed before its trace was sent, so these
# calls have no result. And after audit's offsets were set back, the order that was stored twice was read twice again.
# The Lab knows the unit of each call.

# %% [markdown]
# ## The storm
#
# A listener fails from 11:00 to 11:20, with every message. One message arrives per second. Each failure stores two
# copies: one waits, and one is delivered (see [lab 07a](07a-failure-takes-time.ipynb)).

# %% [prediction] lab11.last_echo
# At 11:20 the listener recovers. When is the last retry delivered?
#
# - once: at 11:20
#   > The copies wait for their time, whatever the listener does meanwhile.
# - soon: within ten minutes
#   = A message that fails at 11:00 waits longer and longer: at 11:15:40 it fails once more, and then it waits for six
#   = minutes.
# - night: at 15:46, after all sixteen retries
#   > Only if it keeps failing. The first retry after 11:20 succeeds.
# note: The echo of a failure is about as long as the pause that the oldest message has reached: longer failures have
#   longer echoes.
# later: -

# %% tags=["parameter"]
FAILS_MIN = 20  # so many minutes long does the listener fail: try 5, 60
WAITS_S = [10, 30, *(60 * n for n in range(1, 11)), 1200, 1800, 3600, 7200]


def retries_of(first_s):
    """When the retries of a message are delivered whose first call is at this second."""
    at, times = first_s, []
    for wait in WAITS_S:
        if at >= FAILS_MIN * 60:
            break
        at += wait
        times.append(at)
    return times


# %% tags=["picture"]
every = [at for first_s in range(FAILS_MIN * 60) for at in retries_of(first_s)]
by_minute = Counter(at // 60 for at in every)
Curve(sorted(by_minute.items()), title="Retries", x="minutes after 11:00", y="a minute")

# %%
last_min = max(every) / 60
at_twenty = "soon" if FAILS_MIN <= last_min < FAILS_MIN + 10 else "night"
reveal("lab11.last_echo", at_twenty)

# %% [markdown]
# An order of the played day that failed once in billing, and succeeded in the two other groups:

# %% [prediction] lab11.once_failed
# Three groups read an order. It fails once, in billing, and then succeeds. How many calls does this order cause?
#
# - two: two, the call and its retry {lab11.one_group}
#   > Those are billing's. Audit and mail were also called with it, because each group reads every message. Count calls
#   > with their group_name.
# - four: four
#   = Three first calls, one for each group, and one retry.
# - six: six; all three groups are called again
#   > The copy is in %RETRY%billing, and only billing reads that.
# note: A message costs one call per group, plus the retries of each failing group. If three groups call one failing
#   bank, all three retry.

# %%
once = next(
    call for call in told if call["retry_times"] and call["keys"].startswith("order-")
)
its_calls = [call for call in told if call["msg_id"] == once["msg_id"]]
columns = ["group_name", "retry_times", "started_ms", "status"]
Table([{name: call[name] for name in columns} for call in its_calls])

# %%
in_words = {2: "two", 4: "four", 6: "six"}
reveal("lab11.once_failed", in_words[len(its_calls)])

# %% [markdown]
# Each stored message causes one call per group, plus the retries (重试放大). Try it: how many groups read the messages?

# %% tags=["parameter"]
GROUPS = 3  # groups that read each message: try 1, 10
retries_each = len(every) / (60 * FAILS_MIN)
calls_each = {
    f"{failing} of {GROUPS} groups fail": round(GROUPS + failing * retries_each, 1)
    for failing in range(GROUPS + 1)
}
Bars(calls_each, title="Calls with each message of the storm", unit="calls")

# %% [exercise] lab11.storm
# ### Exercise 6: the storm by the minute
#
# Repair `storm`. It takes `messages`, everything in the logs including trace, and `calls` of all groups, as in part a.
# It returns a row per minute in which anything but trace was stored. A unit belongs to the minute of its
# `store_timestamp`.
#
# | column | is |
# |---|---|
# | `minute_ms` | the beginning of the minute, in ms since 1970 |
# | `stored` | how many units were stored in it, in all topics but `RMQ_SYS_TRACE_TOPIC` |
# | `retries` | how many of them in topics whose names begin with `%RETRY%` |
# | `share` | `retries / stored` |
# | `sent` | how many messages (`msg_id` and `keys`) were sent in it: their first unit in a topic of an application was stored then |
# | `calls_each` | all calls with these messages, of every group and at any time, divided by `sent`; NULL if nothing was sent |
#
# The name of an application's topic begins neither with `%` nor with `RMQ_SYS_`, and is not `SCHEDULE_TOPIC_XXXX`.
# **Four lines are wrong**, and `each` is missing; `stored_and_sent` adds up by the minute. `rows_with_trace(storm,
# day.stores)` tries it.
#
# hint: Compare the first three lines with the table: which units count, when does a copy burden the broker, and which
#   topics does a listener read again?
# hint: `sent` has a row per message, `called` only those with a call. Which join keeps the others?
# hint: `functions.sum("called")` is NULL if no message of the minute was called: `functions.coalesce(…,
#   functions.lit(0))`, divided by `functions.count("*")`.
# note: An alarm on the share rings in the first minute of a storm; the mean of the day would ring in the afternoon. The
#   share shows when the broker had the work, calls_each which messages made it.


# %%
# exercise: lab11.storm
def storm(messages, calls):
    """Retries in what was stored, and the calls of what was sent, by the minute."""
    col, same, count = functions.col, ["msg_id", "keys"], functions.count("*")
    ### BEGIN SOLUTION
    units = messages.where("topic != 'RMQ_SYS_TRACE_TOPIC'")
    at = functions.expr("unix_millis(store_timestamp) div 60000 * 60000")
    again = col("topic").startswith("%RETRY%").cast("int")
    ### STARTER
    # units = messages
    # at = functions.expr("unix_millis(born_timestamp) div 60000 * 60000")
    # again = col("topic").startswith("%").cast("int")
    ### END SOLUTION
    rows, sent = stored_and_sent(units.withColumn("minute_ms", at), again)
    called = calls.groupBy(*same).agg(count.alias("called"))
    ### BEGIN SOLUTION
    sent = sent.join(called, same, "left")
    each = functions.coalesce(functions.sum("called"), functions.lit(0)) / count
    ### STARTER
    # sent = sent.join(called, same)
    # each = ...  # calls with each message of the minute
    ### END SOLUTION
    sent = sent.groupBy("minute_ms").agg(count.alias("sent"), each.alias("calls_each"))
    return rows.join(sent, "minute_ms", "left").fillna({"sent": 0})


# %%
check("lab11.storm")

# %% [belief] lab11.waiting_is_retry
# question: Which units of a log are retries?
# claim: Those in the retry topics and those that wait in SCHEDULE_TOPIC_XXXX.
# refutation: One failure stores two copies, a waiting one and a delivered one: together they count each retry twice. A
#   unit in a %RETRY% topic was redelivered; a waiting one may also be an ordinary delayed message.

# %% [belief] lab11.dead_is_retry
# question: Is a dead letter a retry?
# claim: Yes; it is the last one.
# refutation: A dead letter ends the retries, and no listener is called with it. The group re-reads only topics that
#   begin with %RETRY%.

# %% [belief] lab11.trace_is_load
# question: What is the whole for the share of retries?
# claim: Everything in the log.
# refutation: More than half of this log is trace, written about the others. With it, the same storm looks half as bad
#   when trace is on: leave RMQ_SYS_TRACE_TOPIC out.

# %% [belief] lab11.born_is_stored
# question: To which minute does a retry belong?
# claim: To that of its born_timestamp.
# refutation: A copy keeps the born_timestamp of the first message, perhaps hours ago. The broker had the work when it
#   stored the copy: store_timestamp.

# %% [belief] lab11.cost_when_called
# question: In which minute does a call count for what its message cost?
# claim: In the minute of the call.
# refutation: A retry comes minutes later, among other messages: then those look costly, and the failing ones look
#   cheap. A call belongs to the minute in which its message was stored first, whenever it came.

# %% [belief] lab11.uncalled_left_out
# question: A message was stored, and no listener was called with it. Does it count in the calls of a message?
# claim: No; without a call there is nothing to count.
# refutation: A message without a call is in sent, with 0 calls. An inner join with the calls drops it, and the other
#   messages look as if each had more.

# %% [belief] lab11.mean_is_enough
# question: Is the share of retries of a whole day a good alarm?
# claim: Yes; it is more stable.
# refutation: In the mean of a day, twenty minutes of storm are one part in seventy-two. Each minute has its own share.

# %% tags=["picture"]
try:
    minutes = rows_with_trace(storm, day.stores)
except Exception:
    minutes = []  # exercise 6 is open
shares = {name: 100 * share for name, share in in_minutes(minutes, "share").items()}
Bars(shares, title="Share of retries in what was stored", unit="%")

# %% tags=["picture"]
each = in_minutes(minutes, "calls_each")
Bars(each, title="Calls with each message, by the minute of storing", unit="calls")

# %% [markdown]
# The messages of the first minutes cost most, but hardly because of their retries: audit has read them twice since its
# offsets were set back.

# %% [answer] lab11.longer
# ### Your turn: a longer failure
#
# Set `FAILS_MIN` above to 60 or 120 and run the cells from there. How many retries are delivered for each message that
# failed, on average, rounded to one decimal?
#
# wrong all: That is the number of all retries. Divide by the messages: one per second, for FAILS_MIN minutes.
# wrong: Divide the number of retries by the number of messages that came while the listener failed, and round to one
#   decimal.
# note: Waits grow, so a failure that lasts six times as long costs far less than six times as many calls per message.
#   That is the purpose of the eighteen levels.

# %%
### BEGIN SOLUTION
FAILS_MIN = 60
retries = [at for second in range(3_600) for at in retries_of(second)]
answer("lab11.longer", round(len(retries) / 3_600, 1), retries, FAILS_MIN)
### STARTER
# answer("lab11.longer", ..., every, FAILS_MIN)
### END SOLUTION

# %% [markdown]
# ## The day of a platform
#
# This day has 200,000 messages. Six things went wrong, and one process's clock is wrong all day. Your functions get
# `big.messages` and `big.calls`; the groups are `billing`, `shipping` and `notification`.

# %% tags=["nbval-ignore-output"]
big = written_day()

# %% [prediction] lab11.slow_until
# From 10:00 to 11:00 billing's listener is slow: each call takes seconds. At 11:00 it recovers. Which messages are
# called more than five minutes after they were stored?
#
# - hour: those that were stored from 10:00 to 11:00
#   > The first ones were still served in time, because the queues were empty at ten. And at eleven the queues are full.
# - longer: those that were stored from some minutes after 10:00 until some time after 11:00
#   = The queue must grow before a message waits for five minutes. At eleven there is a backlog, and later messages wait
#   = behind it.
# - end: those of the last minutes before 11:00
#   > The listener falls behind from the first minute on. How long does it take to be five minutes behind?
# note: The trouble ends when the listener recovers; the harm ends when the backlog is gone. A dashboard by store time
#   shows the harm.

# %% [markdown]
# Another echo chart, of one group and twelve hours: a row is the half hour of storing, a column that of the call.
# Prompt calls are on the diagonal. A slow listener bends it, and an offset reset leaves a column. Try the other groups.

# %%
stored = big.messages.where("topic = 'orders'").groupBy("msg_id")
stored_ms = functions.min(functions.unix_millis("store_timestamp"))
stored = stored.agg(stored_ms.alias("stored_ms"))


def echoes_of(group, since_h, until_h):
    """Calls of a group, by the half hours of storing (row) and of the call (column)."""
    its = big.calls.where(f"group_name = '{group}'").join(stored, "msg_id")
    half = "% 86400000 div 1800000"
    both = functions.expr(f"stored_ms {half}"), functions.expr(f"started_ms {half}")
    cells = {tuple(row)[:2]: row[2] for row in its.groupBy(*both).count().collect()}
    halves = {time_text(at * 1_800_000): at for at in range(2 * since_h, 2 * until_h)}
    return {
        row: {column: cells.get((at, to)) for column, to in halves.items()}
        for row, at in halves.items()
    }


# %% tags=["parameter", "picture"]
ECHOES_OF, SINCE_H, UNTIL_H = "billing", 8, 20  # try notification, shipping
Heat(
    echoes_of(ECHOES_OF, SINCE_H, UNTIL_H),
    title=f"{ECHOES_OF}: stored at (row), called at (column)",
)

# %%
late_by = big.calls.where("group_name = 'billing' AND retry_times = 0")
late_by = late_by.join(stored, "msg_id").where("started_ms - stored_ms > 300000")
late_by = late_by.where("hour(timestamp_millis(stored_ms)) BETWEEN 9 AND 13")
first, last = late_by.selectExpr(
    "date_format(timestamp_millis(min(stored_ms)), 'HH:mm')",
    "date_format(timestamp_millis(max(stored_ms)), 'HH:mm')",
).first()
print(f"stored from {first} to {last}: called more than five minutes later")
reveal("lab11.slow_until", "longer" if first > "10:00" and last > "11:00" else "hour")

# %% [markdown]
# 39 minutes of the day, one by one, with the calls of one message in four. At four o'clock billing's listener fails:
# each line next to the diagonal is the wait of one more retry.

# %% tags=["explorer"]
SINCE, ZOOMED = "16:00", "billing"  # try 10:00; try shipping at 16:00
since_ms = int(SINCE[:2]) * 3_600_000 + int(SINCE[3:]) * 60_000
within = f"% 86400000 BETWEEN {since_ms} AND {since_ms + 39 * 60_000 - 1}"
part = big.calls.where(f"group_name = '{ZOOMED}'").join(stored, "msg_id")
part = part.where(f"stored_ms {within} AND started_ms {within}")
part = part.where("crc32(msg_id) % 4 = 0")
echo_chart(part.toPandas().to_dict("records"), group=ZOOMED, stretch_s=60)

# %% [markdown]
# When was it slow? One line per group, by the minute of storing. A minute has about fifty messages of a group, so a
# single retry after ten seconds is its p99: a thin spike. The second picture shows the share of messages without a
# call, for groups that have any.

# %%
TAGS_OF = {
    "billing": ["created", "paid"],
    "shipping": ["paid", "cancelled"],
    "notification": ["shipped", "refunded", "cancelled"],
}
slow_of = {}
for group, tags in TAGS_OF.items():
    of_group = big.calls.where(f"group_name = '{group}'")
    try:
        slow_of[group] = slow_when(big.messages, of_group, tags).collect()
    except Exception:
        slow_of[group] = []  # exercise 4 is open


# %%
def over_the_day(rows, name, factor=1):
    """The value of each minute, by its beginning."""
    return {
        row["minute_ms"]: None if row[name] is None else factor * row[name]
        for row in sorted(rows, key=lambda row: row["minute_ms"])
    }


# %% tags=["picture"]
Lines(
    {group: over_the_day(rows, "p99_ms") for group, rows in slow_of.items()},
    title="p99 by the minute of storing",
    unit="ms",
)

# %% tags=["picture"]
Lines(
    {
        group: over_the_day(rows, "waiting", 100)
        for group, rows in slow_of.items()
        if any(row["waiting"] for row in rows)
    },
    title="Not done, by the minute of storing",
    unit="%",
)

# %% [markdown]
# Next, how much was redelivered, and why? And how large was the storm?

# %% tags=["picture"]
try:
    why = why_again(big.messages, big.calls).groupBy("group_name", "cause")
    why = why.agg(functions.countDistinct("msg_id"))
    again_for = {(row[0], row[1]): row[2] for row in why.collect()}
except Exception:
    again_for = {}  # exercise 5 is open
repeated = {}
for (group, cause), count in sorted(again_for.items()):
    if cause != "first":
        repeated.setdefault(group, {})[cause] = count
Stacked(repeated, title="Messages that came again, by cause")

# %% [answer] lab11.for_nothing
# ### Your turn: what was it good for?
#
# A retry repeats failed work. The other causes repeat finished work. Set `CAUSE` to `late`, `soon` or `resend`. How
# many messages were redelivered for this cause, in all groups together?
#
# wrong: Add up the bars.
# note: late: an operator set offsets back at six in the evening. soon: a deploy at nine killed processes before they
#   had stored their offsets. resend: a sender got no answer between nine and ten in the morning. None of the three
#   shows an error. soon has two more than the incident log. One message was stored twice and failed, so its copies were
#   retried soon after each other. The other had failed before the deploy.

# %% tags=["parameter"]
### BEGIN SOLUTION
CAUSE = "late"
### STARTER
# CAUSE = "retry"  # yours to change
### END SOLUTION

came = {group: n for (group, cause), n in again_for.items() if cause == CAUSE}
Bars(sorted(came.items()), title=f"Again because of: {CAUSE}", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab11.for_nothing", sum(came.values()), big, CAUSE)
### STARTER
# answer("lab11.for_nothing", ..., big, CAUSE)
### END SOLUTION

# %% tags=["picture"]
try:
    stormy = storm(big.with_trace, big.calls).collect()
except Exception:
    stormy = []  # exercise 6 is open
Lines(
    {"retries": over_the_day(stormy, "share", 100)},
    title="Share of retries in what was stored, by the minute",
    unit="%",
)

# %% [markdown]
# Is it true? The generator of the day knows which messages it harmed: late (more than five minutes after storing),
# twice, or never. The wrong clock harmed none; see below.

# %%
Table(
    {
        "what": told_by["kind"].replace("_", " "),
        "where": told_by["group"] or told_by["client"],
        "from": time_text(told_by["start_ms"]),
        "until": time_text(told_by["end_ms"]),
        "harm until": time_text(told_by["harm_until_ms"]),
        **{way: told_by[way] for way in ("lost", "late", "twice")},
    }
    for told_by in big.truth()
    if told_by["harmed"]
)

# %% [markdown]
# ## Break it: a wrong clock
#
# `started_ms` and `ended_ms` come from the client's clock, `store_timestamp` from the broker's. What if the clock of
# audit's machine is slow?

# %% [prediction] lab11.skew
# Audit's clock is 90 s behind. How many of its calls seem to end before their message was stored?
#
# - none: none; percentiles are differences, and differences do not depend on the clock
#   > They do when the two times come from two clocks. A difference within one clock, from started_ms to ended_ms, stays
#   > right.
# - most: most of them
#   = All that were done within 90 seconds.
# - half: about half; errors of clocks cancel out
#   > One clock has one error, and it goes in one direction.
# note: A time below zero shows the fault. With the clock 90 s ahead everything only looks slow: compare the clients of
#   one group with each other.

# %% tags=["parameter"]
SKEW_S = 90  # try -90, 1
skewed = []
for call in told:
    if call["group_name"] == "audit" and call["ended_ms"] is not None:
        done_ms = call["ended_ms"] - 1_000 * SKEW_S
        skewed.append((done_ms - place[call["msg_id"]]["stored_ms"]) / 1_000)
Ecdf({"audit": skewed}, title="Audit, by a wrong clock", unit="s", log=False)

# %%
behind = [
    (c["ended_ms"] or 0) - 90_000 < place[c["msg_id"]]["stored_ms"] for c in audit
]
part = sum(behind) / len(behind)
Bars(
    {"before storing": sum(behind), "after it": len(behind) - sum(behind)}, unit="calls"
)

# %%
reveal("lab11.skew", "none" if part == 0 else "most" if part > 0.7 else "half")

# %% [markdown]
# One process of the platform has such a clock. It is a sender with a fast clock: its messages seem to be stored before
# they were born. Which one is it?

# %%
ahead = functions.expr("unix_millis(born_timestamp) - unix_millis(store_timestamp)")
early = big.messages.where("topic = 'orders'").where(ahead > 0)
by_host = early.groupBy("broker_name", "born_host").agg(
    functions.count("*").alias("messages"), functions.max(ahead).alias("most ms ahead")
)
Table([row.asDict() for row in by_host.collect()])

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That two messages of one minute waited for the same reason.** A minute is a place to look, not a cause.
# - **That `late` was a person.** A group that begins at the first offset also re-reads, and so does one whose broker
#   lost its offsets.
# - **That retries were useless work.** Most of them succeeded. The log shows their cost, not what they saved.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what you saw | where it is |
# |---|---|
# | two copies for each failure | `SendMessageProcessor.consumerSendMsgBack`, `ScheduleMessageService` |
# | waits of retries | `MessageStoreConfig.messageDelayLevel`; retry n has level n + 2 |
# | offsets set back | `mqadmin resetOffsetByTime`, `AdminBrokerProcessor.resetOffset` |
# | a sender that sends again | `DefaultMQProducerImpl.sendDefaultImpl`, `retryTimesWhenSendFailed` |
# | times of client and broker | `bornTimestamp`, `storeTimestamp` of `MessageExt` |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab11.green_board
# **4.** The dashboard showed a p99 of 310 ms all morning, and mail had lost sixty orders. How?
#
# answer: It showed the times of finished orders. Lost orders have no time at all. Show the unfinished share next to
#   every percentile.

# %% [reflection] lab11.idempotent
# **5.** Which of the causes can you abolish, and which must a listener live with?
#
# answer: A resend can be made rare, and a reset can be announced. But a process may crash after its work and before its
#   commit, and then the message is redelivered. A listener must know what it has done, by the key of the order (lab
#   04b).

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 12a](12a-every-number-twice.ipynb) asks while the brokers are at work. All labs: [index](index.ipynb).
