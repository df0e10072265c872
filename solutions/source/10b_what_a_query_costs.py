# %% [markdown] tags=["reading"]
# # 10b Spark costs: what a query costs
#
# ## Why
#
# Every morning at six a job follows each order through yesterday's log. It has 64 cores and takes ten minutes. On
# Monday it gets 256 cores and takes eight. "Spark does not scale," says the manager who pays for them.
#
# You find out what the other cores were doing, and repair the job. You also measure what a tag costs the broker, and
# what failures cost the disk.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [first part](10a-spark-reads-the-broker.ipynb). Afterwards you can
#
# - compute what a group's tags cost the broker, and how often failures came back;
# - read a plan: what is scanned, where rows move, which task does all the work (数据倾斜, skew);
# - join a log with its queues and offsets, and compare how many rows each way moves;
# - decide when Spark pays, and when DuckDB, polars or pandas do.

# %%
import pathlib
import shutil
import sys
import tempfile
import time

from pyspark.sql import functions
from tqdm import tqdm

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.teach.datasets import small_day
from mqlab.data import arrow
from mqlab.data.spark import messages as messages_of
from mqlab.data.spark import plan_of, rows_of, session, stages_of
from mqlab.data.traffic import write
from mqlab.lab.views import Bars, Table
from mqlab.rocketmq.wire import record

# %% [markdown]
# ## The day, once more
#
# Spark takes 5 to 20 seconds to start, and writing the day takes some more. **This one number is the size of everything
# below**.

# %% tags=["nbval-ignore-output"]
MESSAGES = 200_000
folder = tempfile.TemporaryDirectory(prefix="mqlab-lab10-")
size = {"messages": MESSAGES, "brokers": 2, "commit_log_bytes": 64 << 20}
with tqdm(total=MESSAGES, unit=" messages", file=sys.stdout, leave=False) as bar:
    day = write(f"{folder.name}/day", seed=7, **size, progress=bar.update)

# %% tags=["parameter"]
spark = session()
path = str(day.directory)
messages = spark.read.format("rocketmq").load(path)
used = {"topic": "orders", "columns": "broker_name,queue_id,physical_offset,keys,tags"}
events = spark.read.format("rocketmq").options(**used).load(path)
events.select("keys", "tags", "queue_id").show(3, truncate=False)

# %% [markdown]
# ## What a tag costs
#
# The group `notification` wants `shipped || refunded || cancelled`. The broker scans **all** entries of the queues and
# delivers those whose tag matches (消息过滤). How selective (选择性) is that?

# %%
tags = dict(map(tuple, events.groupBy("tags").count().collect()))
by_count = sorted(tags.items(), key=lambda item: -item[1])
Bars(by_count, title="Orders by tag", unit="messages")

# %% [exercise] lab10.cost
# ### Exercise 1: what a tag costs, queue by queue
#
# DataFrame in, DataFrame out, without mqlab's ready-made queries (`mqlab.data.spark.pipeline`,
# `mqlab.data.spark.report`). `rows_of(cost, small_day(), "orders", ["paid"])` tries your function on 3,000 messages.
#
# Complete `cost`: for each queue of a topic, how many messages the broker scans, and how many of them match. You decide
# what a queue is and what is counted.
#
# hint: Group by broker_name and queue_id. `looked_at` and `matched` are two counts of the same rows.
# hint: `functions.count("*")` counts every row; `functions.count("tags")` leaves out those without tags.
# hint: Count with a condition: `functions.count_if(is_wanted)`. A `where` before `groupBy` would drop rows that you
#   must count.
# note: The broker reads entry after entry and compares tag codes. Filtered messages cost no network, but they are not
#   free.


# %%
# exercise: lab10.cost
def cost(messages, topic, tags):
    """What each queue of a topic costs a group that wants some tags (a list of texts).

    Columns: broker_name, queue_id, looked_at (messages the broker goes through), matched
    (those with one of the tags).
    """
    of_topic = messages.where(functions.col("topic") == topic)
    is_wanted = functions.col("tags").isin(tags)
    ### BEGIN SOLUTION
    queues = of_topic.groupBy("broker_name", "queue_id")
    looked_at = functions.count("*")
    matched = functions.count_if(is_wanted)
    ### STARTER
    # queues = of_topic.groupBy("queue_id")  # does it name one queue?
    # looked_at = ...  # the messages that the broker goes through
    # matched = ...
    ### END SOLUTION
    return queues.agg(looked_at.alias("looked_at"), matched.alias("matched"))


# %%
check("lab10.cost")

# %% [belief] lab10.tag_in_text
# question: A group wants the tag paid. Does it get a message with the tag unpaid?
# claim: Yes; paid is found in it.
# refutation: Only messages with a tag of the list match. Tags are compared as a whole, letter by letter: neither unpaid
#   nor Paid is paid.

# %% [belief] lab10.reads_little
# question: A queue has 1,000 entries, 20 of them with the tag. How many does the broker scan?
# claim: It scans those 20; it reads what it delivers.
# refutation: The broker scans every entry of a queue to find the matches: looked_at counts all of them.

# %% [belief] lab10.no_match_no_cost
# question: A queue has no message with the tag. What does it cost?
# claim: Nothing, so it has no row.
# refutation: A queue without a match costs as much as any other: it has a row, with matched 0.

# %% [belief] lab10.untagged_unseen
# question: Does the broker scan a message without tags?
# claim: No; there is nothing to compare.
# refutation: The broker also scans messages without tags; count of a column leaves NULL out.

# %% [belief] lab10.id_once
# question: A sender got no answer and sent its message again. How often does the broker scan it?
# claim: Once, because both have the same msg_id.
# refutation: Twice: each is an entry of the queue. looked_at counts entries, not ids.

# %% [belief] lab10.one_queue_0
# question: How many queues with the number 0 does a broker have?
# claim: It has one.
# refutation: Other topics have queues with the same numbers: count messages of the given topic only.

# %% [belief] lab10.count_condition
# question: What does count of a condition count?
# claim: The rows in which it is true.
# refutation: count of a condition also counts where it is false; count_if counts only where it is true.

# %% [belief] lab10.first_tag
# question: A group subscribes to paid || created. Which messages does it get?
# claim: Those with the tag paid.
# refutation: tags is a list: a message with any one of these tags matches.

# %% [answer] lab10.looked
# ### Your turn: another group
#
# Change `WANTED` to one or two tags from the bars above, and run the cell.
#
# How many messages does the broker scan per message that your group gets? (With one decimal: 3.4)
#
# wrong share: That is the matching share. Divide the other way: scanned by matching.
# wrong all: That is how many it scans in total. Divide it by those that match.
# wrong: Divide the longer bar by the shorter one.
# note: A group that wants one message in fifty makes the broker scan fifty for each that it gets.

# %%
### BEGIN SOLUTION
WANTED = ["cancelled"]
### STARTER
# WANTED = ["shipped", "refunded", "cancelled"]  # yours to change
### END SOLUTION

fits = sum(tags.get(tag, 0) for tag in WANTED)
bars = {"looked at": sum(tags.values()), " || ".join(WANTED): fits}
Bars(bars, title="What the broker does for this group", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab10.looked", round(sum(tags.values()) / fits, 1), tags, WANTED)
### STARTER
# answer("lab10.looked", ..., tags, WANTED)
### END SOLUTION

# %% [markdown]
# ## Where rows move
#
# Spark splits the logs into pieces, and a **task** (任务) reads each. Tasks run in parallel, one per core, and share
# nothing. To combine rows that belong together, Spark moves them from the tasks of one **stage** (阶段) to those of the
# next. The plan calls it `Exchange`; the usual name is shuffle (Shuffle, 混洗).

# %% [prediction] lab10.exchanges
# Count the messages of each queue, sorted by the count: `groupBy(...).count().orderBy("count")`. How often do rows move
# between tasks (`Exchange` in the plan)?
#
# - 0: never; each task counts and sorts its own
#   > The messages of a queue are in several pieces of the log. A task must add up the counts of all of them.
# - 1: once, to bring the messages of a queue together
#   > That is the first time. For the sort, small counts go to one task and large ones to another.
# - 2: twice
#   = Once to combine each queue's counts, once to sort them by ranges.
# note: Messages do not move. Every task counts its own first (`partial_count`), so only a few dozen rows move.

# %% tags=["nbval-ignore-output"]
counts = messages.groupBy("broker_name", "topic", "queue_id").count()
sorted_counts = counts.orderBy("count")
print(plan_of(sorted_counts))

# %% [markdown]
# From the bottom: each task scans its piece and counts it (`HashAggregate` with `partial_count`). `Exchange
# hashpartitioning` brings the counts of a queue to one task, which adds them up. `Exchange rangepartitioning` separates
# small and big counts, and each task sorts its own. `AdaptiveSparkPlan` means that Spark may improve the plan when it
# knows the number of rows.

# %%
reveal("lab10.exchanges", plan_of(sorted_counts).count("Exchange "))

# %% [answer] lab10.moves
# ### Your turn: another query
#
# Write another query: without the `orderBy`, with a `where` only, a `select("topic").distinct()`, or the count of a
# count.
#
# How often does `Exchange` occur in the plan of your query?
#
# wrong aggregates: You have counted the lines HashAggregate: each groupBy has one before the rows move and one after.
# wrong: Count the lines of the printed plan that have the word Exchange.
# note: A filter and a select move nothing. A groupBy, a distinct, a join and a sort do, unless the rows are already
#   together.

# %% tags=["parameter", "nbval-ignore-output"]
### BEGIN SOLUTION
query = messages.select("topic").distinct()
### STARTER
# query = messages.groupBy("topic").count().orderBy("count")  # yours to change
### END SOLUTION

print(plan_of(query))

# %%
### BEGIN SOLUTION
answer("lab10.moves", 1, plan_of(query))
### STARTER
# answer("lab10.moves", ..., plan_of(query))
### END SOLUTION

# %% [markdown]
# ## What each stage did
#
# `stages_of` runs a query and shows what Spark did: one row per stage, with its tasks and the rows that came from and
# went to other tasks. (Spark's own pages: `session(ui=True)`, at `spark.sparkContext.uiWebUrl`.)

# %% [prediction] lab10.rows_cross
# Back to the count of each queue, sorted. How many rows leave the first stage, which reads the logs?
#
# - all: as many as there are messages
#   > Then the plan would have no `partial_count`: every task adds up its own counts before rows move.
# - queues: as many as there are queues, one for each
#   > That is the length of the answer. But two tasks with different pieces of the log may see the same queue.
# - some: more than queues, and far fewer than messages
#   = Each task sends one row per queue that it has seen in its piece.
# note: A few small rows cost little to move. Moving the messages would be expensive.
# later: -

# %% tags=["nbval-ignore-output"]
stages = stages_of(sorted_counts.collect)
Table(stages.to_dict("records"))

# %%
crossed = int(stages.rows_out[0])
found = {crossed == sorted_counts.count(): "queues", crossed >= messages.count(): "all"}
reveal("lab10.rows_cross", found.get(True, "some"))

# %% [markdown]
# The first stage has a task per piece of the logs. Later stages have as many as Spark chooses for so few rows; the
# setting was `spark.sql.shuffle.partitions`. Change the query, and watch `rows_out`: `distinct()` of a few topics moves
# hardly anything, `distinct()` of all keys half the day.

# %% tags=["parameter", "nbval-ignore-output"]
QUERY = messages.select("keys").distinct()  # yours to change
done = stages_of(QUERY.count)
bars = {
    f"stage {row.stage}, tasks: {row.tasks}": row.rows_out for row in done.itertuples()
}
Bars(bars, title="Rows that left each stage", unit="rows")

# %% [markdown]
# ## A join: the log, its queues, and each group's offsets
#
# "Which orders has `analytics` not read yet?" The log has the orders; each group's offsets are in another file,
# `consumerOffset.json` (消费位点). Both have broker, topic and queue, so the two are joined by these. The data source
# `rocketmq-queues` reads the files next to the log.

# %%
place = ["broker_name", "topic", "queue_id"]
beside = spark.read.format("rocketmq-queues")
lag = beside.option("table", "lag").load(path)
waiting = lag.groupBy("group").agg(functions.sum("lag").alias("messages")).collect()
Bars(sorted(map(tuple, waiting)), title="Not read yet, by group", unit="messages")

# %% [prediction] lab10.join_moves
# The log has hundreds of thousands of messages, the group's offsets are about twenty rows. Rows of one queue must meet
# in one task. What must move for that, at least?
#
# - all: the messages and the offsets, to the tasks of their queues
#   > That is a sort-merge join, the only way when both tables are large. Here one of them is tiny.
# - offsets: the offsets only, a copy to every task
#   = In a broadcast join (广播连接) messages stay where they were read, and each task has all the offsets.
# - none: nothing; the two files are on the same disk
#   > Spark's tasks read different files and do not rely on a common disk. Spark must bring the rows together.
# note: Spark broadcasts automatically a table that it knows to be small. A source in Python cannot report its size, so
#   give the hint yourself.

# %%
GROUP = "analytics"  # or billing, shipping, ...
reached = lag.where(lag.group == GROUP).select(*place, "consumer_offset")
log = messages_of(path, columns=[*place, "queue_offset", "physical_offset", "keys"])


def unread(way):
    joined = log.join(reached.hint(way), place)
    return joined.where("queue_offset >= consumer_offset")


print(plan_of(unread("broadcast")))

# %% tags=["parameter", "nbval-ignore-output"]
moved = {way: stages_of(unread(way).count) for way in ("merge", "broadcast")}
bars = {f"{way} join": int(done.rows_out.sum()) for way, done in moved.items()}
Bars(bars, title=f"Rows that moved to find what {GROUP} has not read", unit="rows")

# %%
few = moved["broadcast"].rows_out.sum() * 100 < moved["merge"].rows_out.sum()
reveal("lab10.join_moves", "offsets" if few else "all")

# %% [markdown]
# The bars count rows that moved from task to task, without the copies of the offsets (about twenty rows per executor).
# In the plan of the broadcast join only `BroadcastExchange` is above the small side; print `plan_of(unread("merge"))`
# and find the two `Exchange hashpartitioning` with a `Sort` above each.
#
# A broadcast is not always possible. Every entry of a consume queue names a message by its offset in the log. **Is each
# of these messages there?** Now both tables have hundreds of thousands of rows, too many to copy.

# %% tags=["nbval-ignore-output"]
entries = beside.option("table", "units").load(path)
same_message = ["broker_name", "physical_offset"]
lost = entries.join(log, same_message, "left_anti")
checked = stages_of(lambda: print(lost.count(), "entries without a message"))
bars = {"entries": entries.count(), "rows moved": int(checked.rows_out.sum())}
Bars(bars, title="Queues against the log", unit="rows")

# %% [markdown]
# ## Break it: one task does all the work
#
# The six o'clock job must bring the messages of an order together. Its author chose the customer as the key. Sixteen
# parts, as for sixteen cores:


# %%
def key_of(letter):
    return functions.regexp_extract("keys", f"{letter}[0-9]+", 0)


def sizes_of(key, parts):
    part = functions.spark_partition_id().alias("part")
    rows = events.repartition(parts, key).groupBy(part).count().collect()
    found = dict(map(tuple, rows))
    return [found.get(number, 0) for number in range(parts)]


sizes = sizes_of(key_of("C"), 16)
bars = {f"part {number}": count for number, count in enumerate(sizes)}
Bars(bars, title="Parts by customer", unit="messages")

# %% [markdown]
# A stage ends with its last task, the one with the fullest part. This is what remains of the cores:

# %%
by_cores = {}
for cores in (16, 64, 256):
    fullest_part = max(sizes_of(key_of("C"), cores))
    by_cores[f"{cores} cores"] = round(sum(sizes) / fullest_part, 1)
Bars(by_cores, title="How many times as fast as one core, at most")

# %% [answer] lab10.cores
# ### Your turn: buy more cores
#
# Change `PARTS` to a number from 24 to 200: that many tasks of equal speed, each on its own core. The stage ends when
# the fullest part is done.
#
# How many times as fast as one core alone is it at most? (With one decimal.)
#
# wrong cores: That would be true if all parts were equally full. The stage waits for the fullest one.
# wrong uneven: That is how much fuller the fullest part is than the mean. Divide all messages by the fullest part.
# wrong: Divide the number of all messages by that of the fullest part.
# note: From some number on, more cores do not help: the fullest part is one customer, and it stays whole. That is what
#   the six o'clock job had bought.

# %%
### BEGIN SOLUTION
PARTS = 64
### STARTER
# PARTS = 16  # yours to change
### END SOLUTION

your_sizes = sizes_of(key_of("C"), PARTS)
fullest_first = sorted(your_sizes, reverse=True)
bars = {
    "all messages": sum(your_sizes),
    "mean": sum(your_sizes) / PARTS,
    "fullest part": max(your_sizes),
}
Bars(bars, title=f"{PARTS} parts by customer", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab10.cores", round(sum(your_sizes) / max(your_sizes), 1), your_sizes)
### STARTER
# answer("lab10.cores", ..., your_sizes)
### END SOLUTION

# %% [exercise] lab10.parts
# ### Exercise 2: even parts of whole orders
#
# Repair the job. Its line with the key is wrong, and the part is missing. `in_parts` gives each message of the topic
# `orders` a part, so that an order stays together and no part is much fuller than the others.
#
# hint: Which key gives even parts and keeps an order together? Neither the queue nor the customer does: look at the
#   fullest of each.
# hint: The order is the key that begins with O: `key_of("O")`. `functions.hash` of it spreads orders over all numbers.
# hint: `functions.pmod(functions.hash(order), functions.lit(parts))` is never negative. Avoid `rand()` and
#   `monotonically_increasing_id()`: the same question must have the same answer.
# note: `repartition(parts, key)` does this with your key. A key that is too coarse makes one task do the work of many,
#   and a stage lasts as long as its last task.


# %%
# exercise: lab10.parts
def in_parts(messages, parts):
    """A part, 0 to parts - 1, for each message of the topic orders.

    Columns: broker_name, physical_offset, part. All messages of an order are in one part;
    the fullest part holds at most 1.5 times the mean; asked again it says the same. An
    order's key begins with O.
    """
    orders = messages.where("topic = 'orders'")
    ### BEGIN SOLUTION
    key = key_of("O")
    part = functions.pmod(functions.hash(key), functions.lit(parts))
    ### STARTER
    # key = key_of("C")  # the key of the job of six o'clock
    # part = ...  # a number, 0 to parts - 1
    ### END SOLUTION
    return orders.select("broker_name", "physical_offset", part.alias("part"))


# %%
check("lab10.parts")

# %% [belief] lab10.chance_is_even
# question: How do you spread messages evenly over 16 parts?
# claim: With a random number for each.
# refutation: All messages of one order must be in one part, and chance ignores orders. Also, the same question must
#   have the same answer.

# %% [belief] lab10.place_spreads
# question: What of a message spreads best?
# claim: Its offset in the log, which is unique.
# refutation: All messages of one order must be in one part: otherwise following an order needs a shuffle.

# %% [belief] lab10.queues_are_even
# question: The broker has spread messages over queues. Are its queues good parts?
# claim: Yes; they are even already.
# refutation: The fullest part may hold at most 1.5 times the mean. Queues were chosen by customer, and a hot customer
#   fills one.

# %% [belief] lab10.same_keys
# question: Do all messages of an order have the same string in keys?
# claim: Yes; they are about the same order.
# refutation: Some name the customer first, some also a gift. All messages of one order must be in one part: find its
#   key in the string.

# %% [belief] lab10.left_join_adds_nothing
# question: How many rows does a left join return when the other table has several rows per key?
# claim: As many as the left table.
# refutation: A left join has a row per pair. Every message of the topic orders must be in exactly one part.

# %% [belief] lab10.hash_is_positive
# question: What is functions.hash(order) % 16?
# claim: A number from 0 to 15.
# refutation: A part is a number from 0 to parts - 1. A hash may be negative, and % keeps its sign; pmod does not.

# %% [markdown]
# ## A second cure: salt the hot key
#
# Often you cannot choose the key: to join messages with their customers, it is the customer. Then cut it: give each
# message a **piece** (加盐, salt), a number computed from its order, and take customer and piece together as the key.

# %% [prediction] lab10.salt
# Each customer is cut into 16 pieces, and there are 64 parts. How much smaller is the fullest part now?
#
# - sixteen: 16 times smaller: it held one customer
#   > The hot customer is in 16 parts now. But each of these parts also holds pieces of many others.
# - some: smaller, but less than 16 times
#   = A part cannot become smaller than its fair share, which the other customers fill.
# - none: as full as before; the messages are the same
#   > The messages of the hot customer go to 16 tasks instead of one.
# note: More pieces help until the fullest part is near the mean. Beyond that they only cost.
# later: -


# %%
def in_pieces(pieces):
    piece = functions.pmod(functions.hash(key_of("O")), functions.lit(pieces))
    return functions.struct(key_of("C").alias("customer"), piece.alias("piece"))


fullest = {f"cut into {n}": max(sizes_of(in_pieces(n), 64)) for n in (1, 4, 16)}
fullest["mean"] = round(sum(sizes) / 64)
Bars(fullest, title="The fullest of 64 parts", unit="messages")

# %%
smaller = fullest["cut into 1"] / fullest["cut into 16"]
kinds = ("none", "some", "sixteen")
reveal("lab10.salt", kinds[(smaller > 1.3) + (smaller > 14)])

# %% [markdown]
# It has a price. A message's piece can meet its customer only if the customer is there, so the other side of the join
# needs **a row for each piece of each customer**.

# %% [answer] lab10.pieces
# ### Your turn: the price of the pieces
#
# Change `PIECES` to a number from 2 to 50, but not 4, and run the cell: it joins all messages that have a customer with
# the customers, in pieces.
#
# How many rows of the customer table take part in this join?
#
# wrong customers: That is the number of customers. Each of them is needed once per piece.
# wrong messages: That is the side of the messages: they are cut, not copied.
# wrong: Multiply the number of customers by the number of pieces.
# note: The fullest part shrinks and the other table grows. At run time Spark can cut large parts automatically
#   (`spark.sql.adaptive.skewJoin.enabled`), from 256 MB on.

# %%
### BEGIN SOLUTION
PIECES = 16
### STARTER
# PIECES = 4  # yours to change
### END SOLUTION

cut = events.select("keys", in_pieces(PIECES).alias("key")).where("key.customer != ''")
names = cut.select("key.customer").distinct()
numbers = spark.range(PIECES).selectExpr("CAST(id AS int) AS piece")
copies = names.crossJoin(numbers).select(
    functions.struct("customer", "piece").alias("key")
)
joined = cut.join(copies.hint("merge"), "key")
sides = {"messages": cut.count(), "customers": names.count(), "joined": joined.count()}
Bars(sides, title=f"Messages and customers, {PIECES} pieces", unit="rows")

# %%
### BEGIN SOLUTION
answer("lab10.pieces", copies.count(), sides, PIECES)
### STARTER
# answer("lab10.pieces", ..., sides, PIECES)
### END SOLUTION

# %% [markdown]
# **A good place to stop.** The rest takes an hour and needs only the day. When you come back, run the cells of the
# sections *Objectives* and *The day, once more*, and continue below.

# %% [markdown]
# ## Retries: how often did it come back?
#
# The first part showed it: a failed message comes back as a new one, in `%RETRY%` and the group's name (重试主题). Until
# then another copy waits in `SCHEDULE_TOPIC_XXXX`. A message that fails too often ends in `%DLQ%` and the group's name
# (死信队列) and does not come back. All copies name their original in the property `ORIGIN_MESSAGE_ID`.

# %%
own = {
    topic: count
    for topic, count in day.topics.items()
    if topic[0] == "%" or topic[0] == "S"
}
Bars(sorted(own.items()), title="Copies of failed messages", unit="messages")

# %% [exercise] lab10.failures
# ### Exercise 3: how often did it come back?
#
# Complete `failures`: for each group, how many different messages came back to its retry topic, and how often in total.
# You decide which messages came back, and when two of them are copies of one.
#
# hint: Every attempt after the first is a separate message in %RETRY% and the group's name. Waiting copies are in
#   another topic, and dead letters in a third.
# hint: properties is a map: `functions.col("properties")["ORIGIN_MESSAGE_ID"]` names the message that a copy was made
#   of.
# hint: `came_back = functions.col("topic").startswith("%RETRY%")`.
# note: copies / messages is the retry amplification of a group: how many more deliveries a failed message costs. With
#   its waiting copy, each is two more messages on disk.


# %%
# exercise: lab10.failures
def failures(messages):
    """What came back to each group's retry topic.

    Columns: group_name, messages (different messages that came back at least once),
    copies (how often they did, together).
    """
    group = functions.replace("topic", functions.lit("%RETRY%"), functions.lit(""))
    ### BEGIN SOLUTION
    came_back = functions.col("topic").startswith("%RETRY%")
    message = functions.col("properties")["ORIGIN_MESSAGE_ID"]
    ### STARTER
    # came_back = ...  # a condition on the column topic
    # message = functions.col("keys")  # does it name one message?
    ### END SOLUTION
    different = functions.count_distinct(message).alias("messages")
    every = functions.count("*").alias("copies")
    copies = messages.where(came_back).groupBy(group.alias("group_name"))
    return copies.agg(different, every)


# %%
check("lab10.failures")

# %% [belief] lab10.key_is_message
# question: Two copies have the same keys. Are they copies of one message?
# claim: Yes; a key names one message.
# refutation: Copies of one message have one ORIGIN_MESSAGE_ID, whatever their number; keys may belong to many messages.

# %% [belief] lab10.copy_is_message
# question: A retry topic has six messages. How many messages have failed?
# claim: Six messages.
# refutation: Copies of one message have one ORIGIN_MESSAGE_ID, whatever their number: six copies may be of two
#   messages.

# %% [belief] lab10.retry_in_name
# question: Which topics are retry topics?
# claim: Those with RETRY in their names.
# refutation: A retry topic is %RETRY% and the name of its group. Another topic may have those letters in its name.

# %% [belief] lab10.dead_came_back
# question: What are the messages in %DLQ%billing?
# claim: They are the last retries.
# refutation: %DLQ% holds messages that will not be redelivered: they are neither retries nor a separate group.

# %% [belief] lab10.waiting_came_back
# question: A copy is in SCHEDULE_TOPIC_XXXX. Has it come back?
# claim: Yes, or it will in a moment.
# refutation: A copy in SCHEDULE_TOPIC_XXXX only waits: it reaches the retry topic later, and you would count it twice.

# %% [belief] lab10.counts_add_up
# question: What is the sum of reconsume_times of a message's copies?
# claim: How often it came back.
# refutation: copies is the number of messages in the group's retry topic: count("*"). Their reconsume_times count
#   earlier attempts: 1, 2 and 3 add up to 6.

# %% [markdown]
# ## Parquet, and an honest comparison
#
# The log is laid out for appending, row by row. If you ask the same question often, keep its columns in **Parquet**
# (列式存储格式): written once, each column can be read alone.


# %% tags=["parameter"]
def seconds(action):
    began = time.perf_counter()
    action()
    return round(time.perf_counter() - began, 2)


kept = ["topic", "broker_name", "queue_id", "store_timestamp", "total_size", "tags"]
table = spark.read.format("rocketmq").option("columns", ",".join(kept)).load(path)
target = f"{folder.name}/messages.parquet"
written_s = seconds(lambda: table.write.mode("overwrite").parquet(target))
parquet = spark.read.parquet(target)
f"{parquet.count():,} rows, {day.asked.messages:,} messages"

# %% [markdown]
# Messages and bytes per queue, in six ways. The first is a loop in Python over the log. All others but Parquet use one
# decoder, which turns the log into Arrow columns.

# %%
import duckdb
import pandas
import polars

by = ["topic", "broker_name", "queue_id"]
columns = [*by, "total_size"]


def with_a_loop():
    rows = []
    for store in day.stores.values():
        for log in sorted(store.glob("commitlog/*")):
            data, at = log.read_bytes(), 0
            while record.check(data, at, check_crc=False).kind == record.UNIT:
                unit = record.decode(data, at)
                rows.append((unit.topic, store.name, unit.queue_id, unit.total_size))
                at += unit.total_size
    return grouped(pandas.DataFrame(rows, columns=columns))


# %%
def grouped(frame):
    sums = frame.groupby(by).total_size.agg(["count", "sum"])
    return sums.reset_index().itertuples(index=False)


def with_pandas():
    return grouped(arrow.read_table(path, columns).to_pandas())


def with_duckdb():
    log = duckdb.arrow(arrow.read_batches(path, columns))
    sums = log.aggregate("topic, broker_name, queue_id, count(*), sum(total_size)")
    return sums.fetchall()


# %%
def with_polars():
    log = polars.from_arrow(arrow.read_table(path, columns))
    return log.group_by(by).agg(polars.len(), polars.col("total_size").sum()).rows()


def with_spark(frame):
    sums = frame.groupBy(by).agg(functions.count("*"), functions.sum("total_size"))
    return sums.collect()


reading = spark.read.format("rocketmq").option("columns", ",".join(columns)).load(path)
ways = {
    "a loop in Python, pandas": with_a_loop,
    "Spark on the log": lambda: with_spark(reading),
    "Spark on Parquet": lambda: with_spark(parquet),
    "pandas, same decoder": with_pandas,
    "DuckDB, same decoder": with_duckdb,
    "polars, same decoder": with_polars,
}

# %% [markdown]
# First, do they agree? Every count and sum is compared with the loop's.

# %% tags=["nbval-ignore-output"]
answers = {}
for way in tqdm(ways, unit="way", file=sys.stdout, leave=False):
    answers[way] = sorted(map(tuple, ways[way]()))

# %%
loop = answers["a loop in Python, pandas"]
Table(
    {"way": way, "rows": len(rows), "same": rows == loop}
    for way, rows in answers.items()
)

# %% [markdown]
# Spark has warmed up, and the files are in memory. Which way will be the fastest?

# %% tags=["nbval-ignore-output"]
times = {}
for way in tqdm(ways, unit="way", file=sys.stdout, leave=False):
    times[way] = seconds(ways[way])
times["(writing Parquet, once)"] = written_s
Bars(times, title="Messages and bytes of each queue", unit="s")

# %% [markdown]
# Compare the ranks, not the numbers. The loop makes the first way slow, not pandas. For a day of this size on one
# machine, pandas, DuckDB and polars need no cluster, and Parquet pays if you ask often enough. This picture cannot show
# Spark's case: the same lines on fifty brokers' disks and fifty machines.

# %% [markdown]
# ## Pushdown: what a format does for a condition
#
# A query states which rows and columns it wants. Which source uses that?

# %% [prediction] lab10.listens
# `where("topic = 'orders'").select("tags")` runs once on the Parquet files and once on the log, without any option.
# What is read?
#
# - both: two columns, of both
#   > Spark passes columns and conditions to Parquet's reader, but not to a source written in Python.
# - parquet: two columns of Parquet, and all 23 of the log
#   = Parquet's reader gets columns and condition. The log's source decodes everything, and Spark throws most of it
#   = away.
# - neither: all columns of both; Spark chooses afterwards
#   > That is true of a text file. A column of Parquet can be read alone, and Spark asks for those it needs.
# note: In the plan, see the list after `BatchScan` and `ReadSchema`, and `PushedFilters` for the condition (谓词下推).

# %% tags=["nbval-ignore-output"]
CONDITION = "topic = 'orders'"  # yours to change
for frame in (parquet, messages):
    print(plan_of(frame.where(CONDITION).select("tags")), "\n")

# %%
scanned = plan_of(messages.where(CONDITION).select("tags"))
of_parquet = plan_of(parquet.where(CONDITION).select("tags"))
all_read = "body_length" in scanned and "body_length" not in of_parquet
reveal("lab10.listens", "parquet" if all_read else "both")

# %% [markdown]
# For the log, use options, as in the first part. `mqlab.data.spark.messages` (here `messages_of`) derives them from a
# condition: topic, queues and times become options, and it reads only the columns that the query needs. Spark checks
# the whole condition again, so the answer is the same.

# %% tags=["parameter"]
asked = messages_of(path, where=CONDITION, columns="tags")
print(plan_of(asked))
by_hand = spark.read.format("rocketmq").option("columns", "topic,tags")
by_hand = by_hand.option("topic", "orders").load(path)
bars = {"without option": messages.count(), "option topic": by_hand.count()}
bars["the answer"] = asked.count()
Bars(bars, title="What leaves the source, and what is wanted", unit="messages")

# %% [markdown]
# Change `CONDITION`, and run both cells. The source handles all of `topic = 'orders' AND queue_id = 3`. `tags = 'paid'`
# is in Parquet's `PushedFilters`, but the source has no option for it, so Spark alone checks it. And `upper(topic) =
# 'ORDERS'` is pushed to no source: a function hides the column.

# %% [markdown]
# ## Break it: a wrong byte
#
# What if a disk returns a wrong byte? Every message in the log begins with four bytes for its size, and four that mark
# the beginning of a message, the magic number. Copy a log file, and change one byte of the second message's magic
# number.

# %% [prediction] lab10.torn
# One byte of the second message's magic number is wrong. What does Spark report when it counts the messages of that
# file?
#
# - one less: one message less than before
#   > Without the magic number, the reader finds neither this message nor the next one. A guessing reader would return a
#   > wrong number without a warning.
# - one: 1; it counts up to the wrong byte
#   > A log ends that way: no message begins there. But this is not the end of the log, and it contains more than zeros.
# - error: nothing; it stops with an error
#   = The error names file, offset, and what was expected there.
# note: A count that may be wrong is worse than no count.

# %% tags=["parameter"]
source = min(day.stores["broker-a"].glob("commitlog/*"))
torn = pathlib.Path(folder.name, "torn", "commitlog", source.name)
torn.parent.mkdir(parents=True, exist_ok=True)
shutil.copy(source, torn)
with torn.open("r+b") as file:
    size_of_first = int.from_bytes(file.read(4), "big")
    file.seek(size_of_first + 4)
    file.write(b"\xff")

# %%
try:
    damaged = spark.read.format("rocketmq").option("columns", "topic")
    counted = str(damaged.load(str(torn.parents[1])).count())
except Exception as error:
    said = next(line for line in str(error).splitlines() if "commitlog" in line)
    print(said[said.index("commitlog") :])
    counted = "error"

# %%
reveal("lab10.torn", counted if counted in ("1", "error") else "one less")

# %% [markdown]
# ## Break it: a bit in a body
#
# The next message depends on that byte. But most bytes of a log are bodies. Flip one bit in one of them.

# %% [prediction] lab10.flipped
# One bit in the body of one message is wrong. What does Spark report when it counts the messages of that file?
#
# - error: it stops with an error, as before
#   > To count, the source reads sizes and offsets, not bodies. An error comes when the body is read.
# - same: the same number as before, and no error
#   = The message is there, and its size and offset are right. The source does not check its body.
# - less: one less: a message with a wrong body does not count
#   > To find the error, a reader must read the body and compare its checksum (校验和).
# note: A checksum that is never compared finds nothing. Reading costs time, so each reader has to decide.

# %%
data = bytearray(source.read_bytes())
at, unit = 0, record.decode(data, 0)
while not unit.body:
    at += unit.total_size
    unit = record.decode(data, at)
first_byte = data.find(unit.body, at)
whole, flipped = (pathlib.Path(folder.name, name) for name in ("whole", "flipped"))
for store, flip in ((whole, 0), (flipped, 1)):
    data[first_byte] ^= flip
    (store / "commitlog").mkdir(parents=True, exist_ok=True)
    (store / "commitlog" / source.name).write_bytes(data)

# %% tags=["parameter"]
COLUMN = "topic"  # then try "keys", "body_crc", "body"
said = {
    store.name: messages_of(store, columns=COLUMN).count() for store in (whole, flipped)
}
Bars(said, title=f"Messages of one file, by {COLUMN}", unit="messages")

# %%
same = said["flipped"] == said["whole"]
reveal("lab10.flipped", "same" if same else "less")

# %% [markdown]
# Now read the bodies:

# %%
try:
    bodies = messages_of(flipped, columns="body")
    bodies.agg(functions.sum(functions.length("body"))).show()
except Exception as error:
    line = next(line for line in str(error).splitlines() if "commitlog" in line)
    print(line[line.index("commitlog") :])

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That Spark is needed.** For a log of this size it is too much: see the bars above. It pays with many brokers, more
#   data than memory, and the same code on a cluster.
# - **How long your job would take.** The parts show how evenly messages are divided, not how long one takes. A customer
#   with few messages may still be the slow one.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what you saw | where in RocketMQ |
# |---|---|
# | looked_at, matched | `ExpressionMessageFilter.isMatchedByConsumeQueue`; the tag code of the entry is compared |
# | copies that wait | `ScheduleMessageService` and the topic `SCHEDULE_TOPIC_XXXX`, a queue per delay level |
# | copies that are redelivered | `AbstractSendMessageProcessor.consumerSendMsgBack` and the topic `%RETRY%billing` |
# | what a group has not read | `ConsumerOffsetManager` (`consumerOffset.json`) and the end of each `ConsumeQueue` |
# | a wrong byte, a wrong bit | `CommitLog.checkMessageAndReturnSize`, with `checkCRC` for bodies; every recovery uses it |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab10.log_growth
# **1.** A service fails one message in ten, three times on average. By how much does the log grow?
#
# answer: Each failure adds two messages, a copy that waits and one that is delivered: 0.1 × 3 × 2 = 0.6. The log has
#   1.6 times as many messages.

# %% [reflection] lab10.six_o_clock
# **2.** The manager who pays asks why 256 cores are hardly faster than 64. What do you show?
#
# answer: The bars of the parts by customer, and the fullest among them. A stage lasts as long as its fullest part,
#   which is mostly one customer, however many parts there are. Then the same bars by order: all of one length.

# %% [reflection] lab10.one_log
# **3.** Would you rather have the day in one log of all topics, or in a file per topic? Consider writers and readers.
#
# answer: Writers want one file: one sequential write, whatever the number of topics. Readers of one topic want their
#   own file. RocketMQ chose the writer, and made the queues for the readers. You have seen the price: with the option
#   `topic` the source still reads all bytes of the log.

# %% [markdown] tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).
