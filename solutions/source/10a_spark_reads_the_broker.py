# %% [markdown] minutes=2 tags=["reading"]
# # Lab 10a: Spark reads the broker
#
# ## Why
#
# "Which of our queues is the full one, and why?" A broker answers that for one topic at a time, and only for now. The
# question of the morning after is another: how many messages of which topic were in which queue, on all brokers, last
# week? And whose were they?
#
# "Give the topic four times as many queues," says a colleague, "then each is a quarter as full." At the end of this part
# you will know what to say to that, with numbers. The answer lies in files: a broker's commit log is a table, and this
# lab reads it with Apache Spark.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need Python and the words of [lab 00](00-a-messages-day.ipynb), and of Spark what `groupBy`
# means. Java need not be installed: if this machine has none, mqlab brings its own.
#
# When you are done you can
#
# - read the stores of a cluster as one Spark DataFrame (数据框), a row a message, and decode no more than you use;
# - find the hot queue (热点队列) and the hot key behind it;
# - say what more queues do about it, and what they do not.
#
# The [second part](10b-what-a-query-costs.ipynb) is about what queries, tags and failures cost.

# %%
import sys
import tempfile
import time

from pyspark.sql import Observation, Window, functions
from tqdm import tqdm

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.teach.datasets import real_store, small_day
from mqlab.data.spark import plan_of, rows_of, session
from mqlab.data.traffic import write
from mqlab.lab.views import Bars, Curve, Table, ranked

# %% [markdown] minutes=9
# ## A morning's work
#
# The shop sends orders to a topic of four queues and letters to a topic of two. Billing cannot handle every tenth order
# at the first try, and returns `RECONSUME_LATER` for it: try me again later (重试).


# %% tags=["parameter"]
def send_everything(lab):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    lab.create_topic("letters", read_queue_nums=2, write_queue_nums=2)
    shop = lab.producer("shop")
    for n in range(30):
        body = f"заказ {n} 订单 🎁".encode()
        shop.send(Message("orders", body, tags="paid", keys=f"order-{n}"))
    for n in range(12):
        shop.send(Message("letters", b"Dear customer, ...", keys=f"letter-{n}"))


# %%
FAILS = 1  # so often billing fails with every tenth order


def bill(messages, context):
    number = int(messages[0].keys.removeprefix("order-"))
    fails = number % 10 == 0 and messages[0].reconsume_times < FAILS
    return RECONSUME_LATER if fails else CONSUME_SUCCESS


def work(lab):
    send_everything(lab)
    billing = lab.push_consumer("billing")
    billing.subscribe("orders", "*")
    billing.on_messages(bill)
    billing.start()
    lab.run_for("10m")


# %% [prediction] lab10.copies
# The shop sends 30 orders and 12 letters. Billing fails three of the orders once and handles them at the second try. How
# many messages does Spark find in the commit log?
#
# - 42: what the shop has sent; a retry is the old message, read again
#   > The old message is not read again. The broker stores a copy that waits, and later another one that is delivered.
# - 45: one more for each failure
#   > You have counted the copy that is delivered again. Before it, another copy was stored to wait for its time.
# - 48: two more for each failure
#   = One copy waits in SCHEDULE_TOPIC_XXXX; when its time has come, another one is stored in %RETRY%billing.
# note: Not every message in a log is an event. Who counts events counts one topic.

# %% [markdown]
# `session()` starts Spark with settings that suit a notebook. The first call takes 5 to 20 seconds. From then on the
# data source is called `rocketmq`, and its path is a store directory: this Lab's, or that of a real broker. (Message
# trace is off: with it, clients would send a diary of their own to the broker, and this page counts letters and orders.)

# %%
lab = play(work, seed=7, client={"enable_trace": False})
spark = session()
messages = spark.read.format("rocketmq").load(str(lab.store().directory))
per_topic = dict(map(tuple, messages.groupBy("topic").count().collect()))
Bars(sorted(per_topic.items()), title="What is in the log", unit="messages")

# %%
reveal("lab10.copies", messages.count())

# %% [markdown]
# Two of the four topics were not made by the shop. Follow one order that failed: it is stored three times, each time as
# a message of its own with its own place in the log. The copies carry the id of the first as one of their properties.

# %%
life = messages.where("keys = 'order-10'").orderBy("physical_offset")
origin = "substring(properties['ORIGIN_MESSAGE_ID'], -8) AS origin_ends_with"
id_ends = "substring(offset_msg_id, -8) AS id_ends_with"
life.selectExpr("topic", "physical_offset", "reconsume_times", id_ends, origin).show()

# %% [markdown]
# Is the count right? Spark has read the commit log; the broker counts entries in its queues. These are two files, written
# one after the other ([lab 00](00-a-messages-day.ipynb)), so let us compare the two.

# %%
counted = messages.groupBy("topic", "queue_id").count().collect()
in_log = {(row["topic"], row["queue_id"]): row["count"] for row in counted}
in_queue = {
    (queue.topic, queue.queue_id): queue.max_offset for queue in lab.store().queues()
}
Table(
    {
        "topic": key[0],
        "queue_id": key[1],
        "log": in_log.get(key),
        "queue": in_queue[key],
    }
    for key in sorted(in_queue)
)

# %% [answer] lab10.amplify
# ### Your turn: a worse morning
#
# Change `FAILS` to a number from 2 to 5, so that billing fails more often with the same three orders. Say first what you
# expect, then run the cell.
#
# How many messages are in the log now, all topics together?
#
# wrong sent: That is what the shop has sent. Each failure stores copies, and they are in the log too.
# wrong once: You have counted one copy for each failure. Each failure stores two: one waits, one is delivered.
# wrong: Add up the bars. In numbers: 42 messages that were sent, and two for each of the 3 * FAILS failures.
# note: A service that fails stores messages. One message in ten that fails three times makes the log of its topic longer by
#   0.1 * 3 * 2 = 60 percent.

# %%
### BEGIN SOLUTION
FAILS = 3
### STARTER
# FAILS = 1  # yours to change
### END SOLUTION

worse_morning = play(work, seed=7, client={"enable_trace": False})
worse = spark.read.format("rocketmq").load(str(worse_morning.store().directory))
per_topic = dict(map(tuple, worse.groupBy("topic").count().collect()))
Bars(sorted(per_topic.items()), title="What is in the log", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab10.amplify", 60, worse_morning)
### STARTER
# answer("lab10.amplify", ..., worse_morning)
### END SOLUTION

# %% [markdown]
# And a real broker? The labs come with files that RocketMQ 5.3.3 has written. The same line reads them, and finds
# topics of the broker's own: `RMQ_SYS_…` for message trace and for transactions, `%DLQ%…` for messages that nobody could
# handle (死信队列).

# %%
real = spark.read.format("rocketmq").load(str(real_store("clean")))
per_topic = dict(map(tuple, real.groupBy("topic").count().collect()))
Bars(sorted(per_topic.items()), title="The log of a real broker", unit="messages")

# %% [markdown] minutes=3
# ## A day of a platform
#
# Forty-eight messages are a toy. `write` makes what brokers of an order platform would have on their disks after a day:
# orders that are created, paid, shipped, refunded or cancelled, stock levels, consumer groups with their retries, and in
# `RMQ_SYS_TRACE_TOPIC` the diary of the clients (消息轨迹, message trace). Same seed, same bytes.
#
# **This one number is the size of everything below**. If you have time, run the lab again with 2_000_000 afterwards.

# %% tags=["nbval-ignore-output"]
MESSAGES = 200_000
folder = tempfile.TemporaryDirectory(prefix="mqlab-lab10-")
size = {"messages": MESSAGES, "brokers": 2, "commit_log_bytes": 64 << 20}
with tqdm(total=MESSAGES, unit=" messages", file=sys.stdout, leave=False) as bar:
    day = write(f"{folder.name}/day", seed=7, **size, progress=bar.update)

# %%
Bars(day.topics.items(), title="A day, two brokers", unit="messages")

# %% [markdown]
# There are two brokers, so two store directories. A directory of stores is read as one table; each message has the name
# of its broker. A row is a message. These are its columns; this lab needs half of them. (A unit is a message as it stands
# in the log, with all numbers around its body.)

# %%
path = str(day.directory)
messages = spark.read.format("rocketmq").load(path)
Table(
    {
        "column": column.name,
        "type": column.dataType.simpleString(),
        "meaning": column.metadata["comment"],
    }
    for column in messages.schema
)

# %% [markdown] minutes=13
# ## Say what you read
#
# A query rarely needs all columns of all messages. The source takes options, and leaves out what they do not name before
# it decodes anything:
#
# | option | for example | what it says |
# |---|---|---|
# | `topic` | `orders,stock` | messages of these topics only |
# | `queues` | `0,3` | messages of queues with these ids only |
# | `startTime`, `endTime` | `1731283725547` | stored at this time or later; stored before this time (ms since 1970) |
# | `columns` | `tags,keys` | these are decoded and handed to Spark, no others |

# %%
options = {"topic": "orders,stock", "queues": "0,3", "columns": "topic,queue_id"}
few = spark.read.format("rocketmq").options(**options).load(path)
per_queue = (
    few.groupBy("topic", "queue_id").count().orderBy("topic", "queue_id").collect()
)
Bars(
    {f"{topic}, queue {queue}": count for topic, queue, count in map(tuple, per_queue)}
)

# %% [exercise] lab10.options
# ### Exercise 1: read no more than the query uses
#
# Write `read_options`. It gets what a query needs and returns the options of the read as a dictionary of texts, such as
# `options` above. It is plain Python: no Spark is needed. (What mqlab itself has for ready-made queries,
# `mqlab.data.spark.pipeline` and `mqlab.data.spark.report`, stays closed in all exercises of this lab.)
#
# hint: Five options: topic, queues, startTime, endTime, columns. Values are strings: lists are joined by commas.
# hint: columns names those that the query uses afterwards. The source selects by topic, queue and time before it decodes
#   anything, so these need not be in columns for that.
# hint: Times are ms since the epoch as they are given; endTime itself is not part of the read. `",".join(map(str, queues))`
#   makes a text of a list of numbers.
# note: Why does Spark not do this for you? The next section shows it.


# %%
# exercise: lab10.options
def read_options(topic, queues, begin_ms, end_ms, columns):
    """The options of a read that decodes no more than a query uses, as a dictionary.

    The query looks at messages of one topic, in a list of queue ids, stored at begin_ms
    or later and before end_ms; it uses a list of columns.
    """
    ### BEGIN SOLUTION
    return {
        "topic": topic,
        "queues": ",".join(str(queue_id) for queue_id in queues),
        "startTime": str(begin_ms),
        "endTime": str(end_ms),
        "columns": ",".join(columns),
    }
    ### END SOLUTION


# %%
check("lab10.options")

# %% [belief] lab10.list_is_option
# question: A read needs queues 0 and 3. What is the value of the option queues?
# claim: The list [0, 3], or what str makes of it.
# refutation: An option is one string: the names or numbers of a list are joined by commas.

# %% [belief] lab10.both_included
# question: A read has endTime=1731283725547. Is a message of that very millisecond part of it?
# claim: Yes: from and to are both included.
# refutation: startTime and endTime are store times in ms: read from startTime on, and before endTime. So two reads
#   that meet at one time share no message.

# %% [belief] lab10.unix_seconds
# question: In which unit are startTime and endTime?
# claim: In seconds, as times of Unix are.
# refutation: startTime and endTime are store times in ms, as the broker writes them: a time in seconds is in January
#   1970.

# %% [belief] lab10.selecting_is_reading
# question: A query counts the messages of topic orders, and uses their tags. Which columns does it read?
# claim: topic and tags: what selects has to be read.
# refutation: tags alone: the source selects by topic, queue and time before it decodes a column.

# %% [belief] lab10.called_as_column
# question: What is the option called that chooses queues?
# claim: queue_id, as the column.
# refutation: The options have the names of the table: topic, queues, startTime, endTime, columns.

# %% [markdown] minutes=10
# ## What a filter reads
#
# Everybody writes `where`. Does the source hear of it?

# %% [prediction] lab10.read_again
# `messages` has been counted once. Now `messages.where("topic = 'stock'").count()` is asked for. What of the log does
# Spark decode?
#
# - nothing: nothing; that was done for the first count
#   > A DataFrame is a recipe, not its result. Each action goes through the log again, unless you say `cache()`.
# - stock: the messages of stock; the filter is handed to the source {lab10.pushed}
#   > Only a source that asks for filters gets them, and this one does not. The filter looks at rows that were decoded
#   > already. Look for the word stock in the scan of the plan.
# - all: all messages, once more
#   = Each action begins at the log, and the filter stands behind the source.
# note: Options tell the source what not to decode; Parquet (or `cache`) keeps what was decoded.

# %% [markdown]
# The plan (执行计划) says what is scanned. `frame.explain()` prints it, in long lines; `plan_of` says the same in short
# ones. Read it from below: what a line needs stands under it.

# %%
stock = messages.where("topic = 'stock'").select("queue_id")
print(plan_of(stock))

# %%
narrow = spark.read.format("rocketmq").options(topic="stock", columns="queue_id")
print(plan_of(narrow.load(path)))

# %% [markdown]
# The first scan names all columns, and there is no word of `stock` in it: the filter stands above. A plan says what will
# be done. What was done? An `Observation` counts the rows that pass by it; this one stands between the source and the
# filter.


# %% tags=["picture"]
def count_where(frame, condition):
    seen = Observation()
    passing = frame.observe(seen, functions.count("*").alias("rows"))
    return {"counted": passing.where(condition).count(), "decoded": seen.get["rows"]}


first = count_where(messages, "topic = 'stock'")
again = count_where(messages, "topic = 'stock'")
told = count_where(narrow.load(path), "true")
asked = {"where": first, "where, once more": again, "options": told}
decoded = {way: rows["decoded"] for way, rows in asked.items()}
Bars(decoded, title=f"Decoded to count {first['counted']:,} messages", unit="messages")

# %%
meant = {MESSAGES: "all", told["decoded"]: "stock", 0: "nothing"}
reveal("lab10.read_again", meant[again["decoded"]])

# %% [markdown]
# How much is it worth? Both lines count the same messages. (Times differ from run to run and from machine to machine:
# read the ratio.)


# %% tags=["nbval-ignore-output"]
def seconds(action):
    began = time.perf_counter()
    action()
    return round(time.perf_counter() - began, 2)


wide_s = seconds(lambda: stock.groupBy("queue_id").count().collect())
narrow_s = seconds(lambda: narrow.load(path).groupBy("queue_id").count().collect())
Bars({"all columns, where": wide_s, "options": narrow_s}, unit="s")

# %% [answer] lab10.share
# ### Your turn: another topic
#
# Change `TOPIC` to another topic of the day (see the bars of the day above) and run the cell.
#
# With `where`, the source decodes 100 percent of the log's messages. How many percent (a whole number) does it decode with
# your options?
#
# wrong all: That is what `where` decodes. With the option `topic`, the source leaves out all other topics.
# wrong others: That is what it leaves out.
# wrong: Divide the shorter bar by the longer one, times 100, rounded.
# note: The smaller the share, the more an option is worth. Note that the bytes are read in any case: a log has all topics in
#   one file. What is saved is the decoding, and the way of the rows to Spark.

# %%
### BEGIN SOLUTION
TOPIC = "orders"
### STARTER
# TOPIC = "stock"  # yours to change
### END SOLUTION

chosen = spark.read.format("rocketmq").options(topic=TOPIC, columns="queue_id")
by_where = count_where(messages, functions.col("topic") == TOPIC)["decoded"]
by_option = count_where(chosen.load(path), "true")["decoded"]
Bars({"where": by_where, f"topic={TOPIC}": by_option}, title="Decoded", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab10.share", 56, by_option, by_where, TOPIC)
### STARTER
# answer("lab10.share", ..., by_option, by_where, TOPIC)
### END SOLUTION

# %% [markdown] minutes=25
# ## The hot queue
#
# Each customer belongs to one of the two brokers. There the producers choose the queue by a hash of the customer's number,
# always the same of eight, because the events of a customer have to stay in order.

# %% [prediction] lab10.even
# A customer always gets the same queue of 8, by the hash of its number. With thousands of customers, how full is the
# fullest queue of orders, compared with the mean?
#
# - even: within 10 % of it; a hash spreads evenly {lab10.spread}
#   > It spreads customers evenly. Messages it does not: a few customers cause a large part of them (Zipf's law), and each
#   > of these makes its queue a hot one.
# - more: clearly fuller, less than twice as full
#   = Customers are spread evenly, their messages are not.
# - twice: twice as full, or more
#   > Not on this day: the hottest customers fill a good part of a queue, not one and a half queues.
# note: How uneven it is depends on how much the busiest customers send, not on how many customers there are.


# %%
def fill_of(path):
    """How many orders are in each queue: {"broker-a, queue 0": 6399, ...}"""
    used = {"topic": "orders", "columns": "broker_name,queue_id"}
    orders = spark.read.format("rocketmq").options(**used).load(str(path))
    rows = orders.groupBy("broker_name", "queue_id").count().collect()
    return {
        f"{broker}, queue {queue}": count
        for broker, queue, count in sorted(map(tuple, rows))
    }


fill = fill_of(path)
Bars(fill, title="Orders in each queue", unit="messages")

# %%
mean = sum(fill.values()) / len(fill)
fullness = max(fill.values()) / mean
print(
    f"mean {mean:,.0f}, fullest {max(fill.values()):,}: {fullness:.2f} times the mean"
)
reveal("lab10.even", "even" if fullness <= 1.1 else "more" if fullness < 2 else "twice")

# %% [exercise] lab10.fullest
# ### Exercise 2: the hot queue
#
# Your answers from here on are functions: DataFrame in, DataFrame out. `rows_of(function, path)` reads a store, calls
# one, and collects its rows; the checks use it with stores of their own. So an answer works with the `messages` it is
# given; the lab's imports and functions are there for it, other names are not when it is graded. Try yours in a cell of
# your own first, on a small day of 3,000 messages: `rows_of(fullest, small_day())`.
#
# Write `fullest`: for each topic, its fullest queue. All of Spark is yours.
#
# hint: `groupBy("topic", "broker_name", "queue_id").count()` is the number of messages of each queue. What is left is one
#   row for each topic.
# hint: A window does it: `Window.partitionBy("topic").orderBy(...)`. `functions.row_number().over(window)` is 1 for the row
#   you want.
# hint: `orderBy(functions.desc("messages"), "broker_name", "queue_id")` settles equal counts as asked.
# note: A broker can tell you this for one topic at a time. Note what you did not need: the bodies, the keys, the times.


# %%
# exercise: lab10.fullest
def fullest(messages):
    """The fullest queue of each topic, the broker's own topics too.

    Columns: topic, broker_name, queue_id, messages. Of equally full queues take the first
    by broker_name, then by queue_id.
    """
    ### BEGIN SOLUTION
    counts = messages.groupBy("topic", "broker_name", "queue_id")
    counts = counts.agg(functions.count("*").alias("messages"))
    order = (functions.desc("messages"), "broker_name", "queue_id")
    place = functions.row_number().over(Window.partitionBy("topic").orderBy(*order))
    return counts.withColumn("place", place).where("place = 1").drop("place")
    ### END SOLUTION


# %%
check("lab10.fullest")

# %% [belief] lab10.queue_number
# question: Which messages are in queue 3 of a topic?
# claim: Those with queue_id 3.
# refutation: A queue is topic, broker_name and queue_id together. Every broker has a queue 0 of its own.

# %% [belief] lab10.highest_offset
# question: The highest offset of a queue is 399. How many messages does it have?
# claim: 400: one more than its highest offset.
# refutation: Count messages, not offsets: queue_offset goes on counting when retention deletes the beginning of a
#   queue.

# %% [belief] lab10.greatest_struct
# question: Two queues are equally full. Which of them does the greatest struct (messages, broker_name, queue_id)
#   name?
# claim: The first of them.
# refutation: Of equally full queues, take the first by broker_name, then by queue_id: the greatest struct is the last
#   of them.

# %% [belief] lab10.one_for_all
# question: How many rows does the answer have?
# claim: One: the fullest queue.
# refutation: Every topic has one row, the broker's own topics too.

# %% [belief] lab10.equal_is_free
# question: Two queues of a topic are equally full. Which one is the fullest?
# claim: Either one, or both.
# refutation: Of equally full queues take one: the first by broker_name, then by queue_id. Without a full order Spark may take
#   another one in the next run.

# %% [belief] lab10.sorted_downwards
# question: A window is ordered by messages. Which row is its first?
# claim: The one with the most messages.
# refutation: The fullest queue comes first when the count is sorted downwards, with functions.desc. Otherwise the
#   emptiest does.

# %% [belief] lab10.count_of_column
# question: What does count("tags") count?
# claim: The rows of the group.
# refutation: messages is how many messages the queue has: count("*") counts them all, count of a column leaves NULL
#   out.

# %% [markdown]
# ### Four times as many queues
#
# Now the colleague's proposal. We write the same day again, with 32 queues for each broker instead of 8: the same orders
# of the same customers at the same times.

# %% [prediction] lab10.more_queues
# The topic gets four times as many queues. How full is the fullest queue then, compared with the fullest one now?
#
# - quarter: about a quarter as full
#   > That is true of the mean. The fullest queue is full because of a customer, and a customer's messages are all in one
#   > queue.
# - less: less full, but far more than a quarter
#   = The other customers move out; the hot one stays together, and its queue stays hot.
# - same: as full as before; more queues change nothing
#   > Something they do change: the other customers of that queue are spread over more queues now.
# note: More queues take away a hot customer's neighbours. They do not divide the customer.

# %%
more = write(f"{folder.name}/queues-32", seed=7, queues=32, **size)
more_fill = fill_of(more.directory)
heights = {}
for name, filled in (("8 queues", fill), ("32 queues", more_fill)):
    heights[f"{name}: mean"] = round(sum(filled.values()) / len(filled))
    heights[f"{name}: fullest"] = max(filled.values())
Bars(heights, title="Orders in a queue", unit="messages")

# %%
ratio = heights["32 queues: fullest"] / heights["8 queues: fullest"]
happened = "quarter" if ratio < 0.33 else "less" if ratio < 0.9 else "same"
reveal("lab10.more_queues", happened)

# %% [markdown]
# The mean is a quarter of what it was. The fullest queue is not: compared with the mean, it is hotter than before.
#
# **A good place to stop.** The rest of this part takes half an hour. When you come back, *Run > Run All Above Selected
# Cell* brings everything back.

# %% [markdown] minutes=25
# ## The hot key
#
# Who is it? Each message says whose it is, in its keys. (From here on we read what we use.)

# %%
used = {"topic": "orders", "columns": "broker_name,queue_id,physical_offset,keys,tags"}
events = spark.read.format("rocketmq").options(**used).load(path)
in_order = events.orderBy("broker_name", "physical_offset")
in_order.select("keys", "tags", "queue_id").show(5, truncate=False)

# %% [exercise] lab10.busiest
# ### Exercise 3: the hot key
#
# Write `busiest`: the customers with the most messages in the topic `orders`. `messages` has all topics, and all columns of
# the table above. All of Spark is yours.
#
# hint: Look at a few: `messages.select("topic", "keys").show(truncate=False)`. One text holds several keys.
# hint: `functions.explode(functions.split("keys", " "))` makes a row of each key. Which of them are customers? And which
#   messages should be counted at all?
# hint: Keep `topic = 'orders'` first; then keys that begin with C; groupBy, count, orderBy the count downwards and then the
#   customer, limit.
# note: The customer decides the queue, so the hot key is why one queue is hot.


# %%
# exercise: lab10.busiest
def busiest(messages, most):
    """The customers with the most messages in the topic orders; most is how many to list.

    Columns: customer, messages. Of equals take the first by name. Keys stand in any
    order; a customer's begins with C.
    """
    ### BEGIN SOLUTION
    orders = messages.where("topic = 'orders'")
    keys = orders.select(
        functions.explode(functions.split("keys", " ")).alias("customer")
    )
    mine = keys.where(functions.col("customer").startswith("C")).groupBy("customer")
    counts = mine.agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages"), "customer").limit(most)
    ### END SOLUTION


# %%
check("lab10.busiest")

# %% [belief] lab10.all_are_events
# question: Which messages of the log are about a customer's orders?
# claim: All that have the customer among their keys.
# refutation: A copy in a retry topic, or a waiting copy, is not another event: count the topic orders only.

# %% [belief] lab10.every_key
# question: Which key occurs most often?
# claim: The busiest customer.
# refutation: Orders and other things have keys as well: a customer is a key that begins with C.

# %% [belief] lab10.one_key
# question: What is in the column keys?
# claim: The message's key.
# refutation: KEYS holds several keys with blanks between them, in any order: split it, and a customer is a key that
#   begins with C.

# %% [belief] lab10.second_key
# question: Which of a message's keys is the customer?
# claim: The second.
# refutation: Keys stand in any order, and there may be one or three: a customer is a key that begins with C.

# %% [belief] lab10.order_is_event
# question: A customer has 10 orders. How many events is that?
# claim: Ten: one for each order.
# refutation: messages is how many messages are about the customer: an order of theirs has several, and all of them
#   count.

# %% [markdown]
# And all the others? Rank the customers by their messages, and draw both axes logarithmic. By Zipf's law (齐普夫定律) the
# second customer of a broker has half of what its first has, the tenth a tenth: a straight line. (We have two brokers, so
# there are two of each.)

# %%
customer = functions.regexp_extract("keys", "C[0-9]+", 0).alias("customer")
customers = dict(map(tuple, events.groupBy(customer).count().collect()))
Curve(
    ranked(customers),
    title=f"{len(customers):,} customers",
    x="rank of the customer",
    y="messages",
    log_x=True,
    log_y=True,
)

# %% [answer] lab10.floor
# ### Your turn: as many queues as you like
#
# Change `QUEUES` to a number from 40 to 64 and run the cell. Compare the fullest queue with the busiest customers.
#
# However many queues you give the topic: how many messages does the fullest queue hold at least?
#
# wrong fullest: That is the fullest queue of your run. With still more queues it could become a little emptier, until one
#   customer is alone in it.
# wrong mean: That is the mean. It goes down with every queue that you add; the fullest queue does not.
# wrong: Who is in the fullest queue? All messages of a customer are in one queue: see the lower bars.
# note: The messages of the busiest customer: they are in one queue, whatever its number. To divide them you need another
#   key, such as the order, and then the customer's events are not in order any more.

# %% tags=["nbval-ignore-output"]
### BEGIN SOLUTION
QUEUES = 64
### STARTER
# QUEUES = 32  # yours to change
### END SOLUTION

with tqdm(total=MESSAGES, unit=" messages", file=sys.stdout, leave=False) as bar:
    target = f"{folder.name}/queues-{QUEUES}"
    more = write(target, seed=7, queues=QUEUES, **size, progress=bar.update)
your_fill = fill_of(more.directory)
top_queues = sorted(your_fill.items(), key=lambda item: -item[1])[:4]
top_customers = sorted(customers.items(), key=lambda item: -item[1])[:4]
Bars([*top_queues, *top_customers], title=f"{QUEUES} queues a broker", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab10.floor", max(customers.values()), customers, your_fill)
### STARTER
# answer("lab10.floor", ..., customers, your_fill)
### END SOLUTION

# %% [markdown] minutes=3 tags=["reading"]
# ## What this does not prove
#
# - **What is being written now.** A read is a snapshot: it ends where the log ended when it was planned.
# - **What consumers did.** A log says what was stored and what came back. Who got which message when is told by the
#   trace topic.
# - **That the generated day is a real one.** It obeys Zipf's law and has the incidents of its seed, because somebody
#   wrote it so. The bytes are a broker's; the shop is invented.

# %% [markdown] minutes=2 tags=["reading"]
# ## RocketMQ does it so
#
# | what you saw | where in RocketMQ |
# |---|---|
# | one row a message | `CommitLog`, decoded by `MessageDecoder` |
# | entries in a queue | `ConsumeQueue`, `getMaxOffsetInQueue`; `mqadmin topicStatus` prints them |
# | copies that wait | `ScheduleMessageService` and the topic `SCHEDULE_TOPIC_XXXX`, a queue a delay level |
# | copies to try again | `AbstractSendMessageProcessor.consumerSendMsgBack` and the topic `%RETRY%billing` |
# | a customer's queue | `MessageQueueSelector`, `SelectMessageQueueByHash` |
# | keys with blanks between | `MessageConst.KEY_SEPARATOR`; each key is an entry of the index |
#
# RocketMQ has connectors for Spark that consume from a running broker. Nothing of that is used here: the files are
# enough, and reading them disturbs nobody's offsets.

# %% [markdown] minutes=5 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab10.never_started
# **1.** Which of the counts of the first page would change if billing had never been started?
#
# answer: The copies: nothing would be in `SCHEDULE_TOPIC_XXXX` and in `%RETRY%billing`. The 42 messages that the shop has
#   sent would be the same. The log does not depend on who reads, except where a reader gives something back.

# %% [reflection] lab10.which_helps
# **2.** Your hot customer is half of a queue. More queues, more consumers, more threads: which of them helps, and why?
#
# answer: None divides one customer, as long as that customer has one queue. More queues take away its neighbours. More
#   consumers help only while there are more queues than consumers. More threads help where order within the customer is
#   not needed and the listener spends its time waiting. Otherwise the customer's key must be divided, and with it the
#   order.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# You have found the full queue, and the reason. What did your queries cost, and what does a group cost that wants one
# message in ten? [The second part](10b-what-a-query-costs.ipynb). All labs: [index](index.ipynb).
