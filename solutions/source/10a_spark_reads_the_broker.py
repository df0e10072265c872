# %% [markdown] tags=["reading"]
# # 10a Spark reads the broker: hot queues and hot keys
#
# ## Why
#
# "Which of our queues is full, and why?" A broker answers that for one topic, and only for now. How many messages of
# which topic were in which queue, on all brokers, last week? And which customers sent them?
#
# "Give the topic four times as many queues," says a colleague, "then each is a quarter as full." You will answer with
# numbers: a broker's commit log is a table, and this lab reads it with Apache Spark.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need Python, the terms of [lab 00](00-a-messages-day.ipynb), and Spark's `groupBy`. You
# do not need Java: if this machine has none, mqlab brings its own.
#
# Afterwards you can
#
# - read the stores of a cluster as one Spark DataFrame, one row per message, and decode no more than you use;
# - find the hot queue (热点队列) and the hot key that causes it;
# - explain what more queues change about it, and what they do not.
#
# The [second part](10b-what-a-query-costs.ipynb) is about what queries, tags and failures cost.

# %%
import sys
import tempfile
import time

from pyspark.sql import Observation, Window, functions
from tqdm import tqdm

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.teach.datasets import real_store, small_day
from mqlab.data.spark import plan_of, rows_of, session
from mqlab.data.traffic import write
from mqlab.lab.views import Bars, Curve, Table, ranked

# %%
old_questions("lab10")

# %% [markdown]
# ## A morning's work
#
# The shop sends orders to a topic of four queues and letters to a topic of two. Billing fails with every tenth order at
# the first attempt and returns `RECONSUME_LATER`: deliver it again later (重试).


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
# The shop sends 30 orders and 12 letters. Billing fails three of the orders once and processes them at the second
# attempt. How many messages does Spark find in the commit log?
#
# - 42: what the shop has sent; a retry is the old message, read again
#   > The broker does not re-read the old message. It stores a copy that waits, and later another one that is delivered.
# - 45: one more for each failure
#   > You have counted the redelivered copy. Before it, the broker stored another copy that waits for its time.
# - 48: two more for each failure
#   = One copy waits in SCHEDULE_TOPIC_XXXX; when its time has come, another one is stored in %RETRY%billing.
# note: Not every message in a log is an event. To count events, count one topic only.

# %% [markdown]
# `session()` starts Spark; the first call takes 5 to 20 seconds. The data source is called `rocketmq`, and its path is
# a store directory, of this Lab or of a real broker. (Message trace is off.)

# %%
lab = play(work, seed=7, client={"enable_trace": False})
spark = session()
messages = spark.read.format("rocketmq").load(str(lab.store().directory))
per_topic = dict(map(tuple, messages.groupBy("topic").count().collect()))
Bars(sorted(per_topic.items()), title="What is in the log", unit="messages")

# %%
reveal("lab10.copies", messages.count())

# %% [markdown]
# Follow one failed order. The copies carry the id of the first as one of their properties.

# %%
life = messages.where("keys = 'order-10'").orderBy("physical_offset")
origin = "substring(properties['ORIGIN_MESSAGE_ID'], -8) AS origin_ends_with"
id_ends = "substring(offset_msg_id, -8) AS id_ends_with"
life.selectExpr("topic", "physical_offset", "reconsume_times", id_ends, origin).show()

# %% [markdown]
# Is the count right? Spark has read the commit log; the broker counts entries in its queues, another file ([lab
# 00](00-a-messages-day.ipynb)).

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
# Change `FAILS` to a number from 2 to 5, so that billing fails more often with the same three orders.
#
# How many messages are in the log now, in all topics?
#
# wrong sent: The shop has sent that many. Each failure stores copies, and they are also in the log.
# wrong once: You have counted one copy per failure. Each failure stores two: one waits, one is delivered.
# wrong: Add up the bars: 42 messages that were sent, and two for each of the 3 * FAILS failures.
# note: A failing service stores messages. If one message in ten fails three times, the log grows by 0.1 * 3 * 2 = 60
#   percent.

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
# And a real broker? The labs contain files that RocketMQ 5.3.3 has written. The same line reads them, and finds the
# broker's own topics: `RMQ_SYS_…` for message trace and transactions, `%DLQ%…` for messages that failed too often
# (死信队列).

# %%
real = spark.read.format("rocketmq").load(str(real_store("clean")))
per_topic = dict(map(tuple, real.groupBy("topic").count().collect()))
Bars(sorted(per_topic.items()), title="The log of a real broker", unit="messages")

# %% [markdown]
# ## A day of a platform
#
# `write` makes what brokers of an order platform would have on disk after a day: orders that are created, paid,
# shipped, refunded or cancelled, stock levels, consumer groups with their retries, and the clients' message trace
# (消息轨迹) in `RMQ_SYS_TRACE_TOPIC`. Same seed, same bytes.
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
# A directory of stores is read as one table with one row per message, and each message has the name of its broker. Its
# columns (a unit is a message as it is stored in the log, with all numbers around its body):

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

# %% [markdown]
# ## Options: say what you read
#
# A query rarely needs all columns of all messages. With options, the source skips the rest before it decodes anything:
#
# | option | for example | effect |
# |---|---|---|
# | `topic` | `orders,stock` | messages of these topics only |
# | `queues` | `0,3` | messages of queues with these ids only |
# | `startTime`, `endTime` | `1731283725547` | stored at this time or later; stored before this time (ms since 1970) |
# | `columns` | `tags,keys` | only these are decoded and passed to Spark |

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
# Write `read_options`. It takes what a query needs and returns the options of the read as a dictionary of strings, such
# as `options` above. It is plain Python, without Spark. (mqlab's ready-made queries, `mqlab.data.spark.pipeline` and
# `mqlab.data.spark.report`, are not available in the exercises of this lab.)
#
# hint: Five options: topic, queues, startTime, endTime, columns. Values are strings: join lists with commas.
# hint: columns names only what the query uses afterwards. The source selects by topic, queue and time before it decodes
#   anything.
# hint: Pass times in ms since the epoch; the read ends before endTime. `",".join(map(str, queues))` makes a string of a
#   list of numbers.
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
# claim: The list [0, 3], or its str.
# refutation: An option is one string: join the names or numbers of a list with commas.

# %% [belief] lab10.both_included
# question: A read has endTime=1731283725547. Does it contain a message of that very millisecond?
# claim: Yes; both ends are included.
# refutation: startTime and endTime are store times in ms: the read begins at startTime and ends before endTime. So two
#   consecutive reads share no message.

# %% [belief] lab10.end_is_one_less
# question: A query ends before 12:00:00.000. What is its endTime?
# claim: 11:59:59.999, the last millisecond that it includes.
# refutation: endTime is the first millisecond that the read leaves out. One less loses the messages of a millisecond.

# %% [belief] lab10.unix_seconds
# question: In which unit are startTime and endTime?
# claim: In seconds, like Unix times.
# refutation: startTime and endTime are store times in ms, as the broker writes them. A time in seconds is in January
#   1970.

# %% [belief] lab10.selecting_is_reading
# question: A query counts the messages of topic orders, and uses their tags. Which columns does it read?
# claim: topic and tags; a column that selects must be read.
# refutation: tags alone: the source selects by topic, queue and time before it decodes a column.

# %% [belief] lab10.called_as_column
# question: What is the option called that chooses queues?
# claim: queue_id, like the column.
# refutation: The options have the names of the table: topic, queues, startTime, endTime, columns.

# %% [markdown]
# ## What a filter reads
#
# Most queries use `where`. Does the source learn of it?

# %% [prediction] lab10.read_again
# `messages` has been counted once. What of the log does Spark decode for `messages.where("topic = 'stock'").count()`?
#
# - nothing: nothing; the first count has decoded it
#   > A DataFrame is a recipe, not its result. Each action reads the log again, unless you call `cache()`.
# - stock: the messages of stock; the filter is handed to the source {lab10.pushed}
#   > Only a source that asks for filters gets them, and this one does not. The filter sees decoded rows only. Look for
#   > the word stock in the scan of the plan.
# - all: all messages, once more
#   = Each action begins at the log, and the filter comes after the source.
# note: Options let the source skip the decoding; Parquet (or `cache`) keeps decoded rows.
# later: `messages` is a DataFrame over a commit log and has been counted once. What of the log does Spark decode for
#   `messages.where("topic = 'stock'").count()`?

# %% [markdown]
# The plan (执行计划) shows what is scanned. `plan_of` prints it in shorter lines than `frame.explain()`. Read it from the
# bottom: each line uses the lines below it.

# %%
stock = messages.where("topic = 'stock'").select("queue_id")
print(plan_of(stock))

# %%
narrow = spark.read.format("rocketmq").options(topic="stock", columns="queue_id")
print(plan_of(narrow.load(path)))

# %% [markdown]
# The first scan names all columns and does not mention `stock`: the filter is above it. A plan shows what Spark will
# do. To see what it did, an `Observation` counts the rows that pass it; this one is between the source and the filter.


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
# What is the gain? Both lines count the same messages. (Times differ per run and machine; read the ratio.)


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
# With `where`, the source decodes 100 percent of the log's messages. How many percent (a whole number) does it decode
# with your options?
#
# wrong all: `where` decodes that much. With the option `topic`, the source skips all other topics.
# wrong others: That is what it skips.
# wrong: Divide the shorter bar by the longer one, times 100, rounded.
# note: The smaller the share, the more an option gains. The bytes are read in any case, because a log has all topics in
#   one file. You save the decoding, and the transfer of the rows to Spark.

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

# %% [markdown]
# ## The hot queue
#
# Each customer belongs to one of the two brokers. The producers choose one of its eight queues by a hash of the
# customer's number, because the events of a customer must stay in order.

# %% [prediction] lab10.even
# The hash of a customer's number always selects the same of 8 queues. With thousands of customers, how full is the
# fullest queue of orders, compared with the mean?
#
# - even: within 10 % of it; a hash spreads evenly {lab10.spread}
#   > A hash spreads customers evenly, but not messages: a few customers cause many of them (Zipf's law), and each of
#   > these makes its queue a hot one.
# - more: clearly fuller, less than twice as full
#   = Customers are spread evenly, their messages are not.
# - twice: twice as full, or more
#   > Not on this day: the hottest customers fill a good part of a queue, not one and a half queues.
# note: The skew depends on how much the busiest customers send, not on how many customers there are.


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
# From here on your answers are functions: DataFrame in, DataFrame out. `rows_of(function, path)` reads a store, calls
# one, and collects its rows; the checks use it with their own stores. An answer may use the `messages` that it gets and
# the lab's imports and functions. Try yours first on a small day of 3,000 messages: `rows_of(fullest, small_day())`.
#
# Complete `fullest`: for each topic, its fullest queue. Counting and ranking are given. You decide which columns name a
# queue, and how the queues of a topic are ranked.
#
# hint: `queue` is a tuple of column names. Every broker has its own queue 0, and so has every topic.
# hint: The window takes the first row of each topic by `fullest_first`, a tuple of names and of expressions such as
#   `functions.desc("messages")`.
# hint: `(functions.desc("messages"), "broker_name", "queue_id")` breaks ties as required.
# note: A broker reports this for one topic at a time. You needed no bodies, keys or times.


# %%
# exercise: lab10.fullest
def fullest(messages):
    """The fullest queue of each topic, the broker's own topics too.

    Columns: topic, broker_name, queue_id, messages. Of equally full queues take the first
    by broker_name, then by queue_id.
    """
    ### BEGIN SOLUTION
    queue = ("topic", "broker_name", "queue_id")
    fullest_first = (functions.desc("messages"), "broker_name", "queue_id")
    ### STARTER
    # queue = ("topic", "queue_id")  # do these name one queue?
    # fullest_first = ...  # the columns by which the queues of a topic are ranked
    ### END SOLUTION
    counts = messages.groupBy(*queue).agg(functions.count("*").alias("messages"))
    of_topic = Window.partitionBy("topic").orderBy(*fullest_first)
    counts = counts.withColumn("rank", functions.row_number().over(of_topic))
    return counts.where("rank = 1").drop("rank")


# %%
check("lab10.fullest")

# %% [belief] lab10.queue_number
# question: Which messages are in queue 3 of a topic?
# claim: Those with queue_id 3.
# refutation: A queue is topic, broker_name and queue_id together. Every broker has its own queue 0.

# %% [belief] lab10.highest_offset
# question: The highest offset of a queue is 399. How many messages does it have?
# claim: It has 400, one more than its highest offset.
# refutation: Count messages, not offsets: queue_offset keeps counting when retention deletes the beginning of a queue.

# %% [belief] lab10.greatest_struct
# question: Two queues are equally full. Which of them does the greatest struct (messages, broker_name, queue_id) name?
# claim: The first of them.
# refutation: Of equally full queues, take the first by broker_name, then by queue_id. The greatest struct is the last
#   of them.

# %% [belief] lab10.one_for_all
# question: How many rows does the answer have?
# claim: One: the fullest queue.
# refutation: Every topic has one row, including the broker's own topics.

# %% [belief] lab10.equal_is_free
# question: Two queues of a topic are equally full. Which one is the fullest?
# claim: Either one, or both.
# refutation: Of equally full queues take one: the first by broker_name, then by queue_id. Without a full order Spark
#   may take another one in the next run.

# %% [belief] lab10.sorted_downwards
# question: A window is ordered by messages. Which row is its first?
# claim: The one with the most messages.
# refutation: To get the fullest queue first, sort the count downwards with functions.desc. Otherwise the emptiest comes
#   first.

# %% [belief] lab10.count_of_column
# question: What does count("tags") count?
# claim: The rows of the group.
# refutation: messages is the number of messages in the queue: count("*") counts them all, count of a column leaves NULL
#   out.

# %% [markdown]
# ### Four times as many queues
#
# Now the colleague's proposal: the same day, with 32 queues per broker instead of 8.

# %% [prediction] lab10.more_queues
# The topic gets four times as many queues. How full is the fullest queue then, compared with now?
#
# - quarter: about a quarter as full
#   > That is true of the mean. A single customer makes the fullest queue full, and a customer's messages are all in one
#   > queue.
# - less: less full, but far more than a quarter
#   = The other customers move out; the hot one stays together, and its queue stays hot.
# - same: as full as before; more queues change nothing
#   > They do change something: the other customers of that queue are spread over more queues.
# note: More queues remove a hot customer's neighbours. They do not divide the customer.
# later: -

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
# Compared with the mean, the fullest queue is hotter than before.
#
# **A good place to stop.** The rest of this part takes half an hour. When you come back, *Run > Run All Above Selected
# Cell* restores everything.

# %% [markdown]
# ## The hot key
#
# Which customer is it? The keys of each message name its customer. (From here on we read what we use.)

# %%
used = {"topic": "orders", "columns": "broker_name,queue_id,physical_offset,keys,tags"}
events = spark.read.format("rocketmq").options(**used).load(path)
in_order = events.orderBy("broker_name", "physical_offset")
in_order.select("keys", "tags", "queue_id").show(5, truncate=False)

# %% [exercise] lab10.busiest
# ### Exercise 3: the hot key
#
# Complete `busiest`: the customers with the most messages in the topic `orders`. `messages` has all topics, and all
# columns of the table above. Splitting and counting are given. You decide which messages count, and which keys are
# customers.
#
# hint: Look at a few: `messages.select("topic", "keys").show(truncate=False)`. One string holds several keys.
# hint: After `explode` there is a row per key, in the column key. A copy in another topic is not another event.
# hint: `messages.where("topic = 'orders'")`, and `functions.col("key").startswith("C")`.
# note: The customer decides the queue, so the hot key makes the hot queue.


# %%
# exercise: lab10.busiest
def busiest(messages, most):
    """The customers with the most messages in the topic orders; most is how many to list.

    Columns: customer, messages. Of equals take the first by name. Keys stand in any
    order; a customer's begins with C.
    """
    ### BEGIN SOLUTION
    counted = messages.where("topic = 'orders'")
    is_customer = functions.col("key").startswith("C")
    ### STARTER
    # counted = messages  # does each of them count?
    # is_customer = ...  # a condition on the column key
    ### END SOLUTION
    key = functions.explode(functions.split("keys", " ")).alias("key")
    customers = counted.select(key).where(is_customer)
    customers = customers.groupBy(functions.col("key").alias("customer"))
    counts = customers.agg(functions.count("*").alias("messages"))
    return counts.orderBy(functions.desc("messages"), "customer").limit(most)


# %%
check("lab10.busiest")

# %% [belief] lab10.all_are_events
# question: Which messages of the log are about a customer's orders?
# claim: All that have the customer among their keys.
# refutation: A copy in a retry topic or a waiting copy is not another event: count the topic orders only.

# %% [belief] lab10.topic_begins_so
# question: A broker has the topics orders and orders-eu. Which messages are in the topic orders?
# claim: Those whose topic begins with orders.
# refutation: A topic is its whole name. Compare it with equals.

# %% [belief] lab10.every_key
# question: Which key occurs most often?
# claim: The busiest customer.
# refutation: Orders and other things also have keys: a customer is a key that begins with C.

# %% [belief] lab10.one_key
# question: What is in the column keys?
# claim: The message's key.
# refutation: KEYS holds several keys separated by spaces, in any order. Split it; a customer is a key that begins with
#   C.

# %% [belief] lab10.second_key
# question: Which of a message's keys is the customer?
# claim: The second.
# refutation: Keys have any order, and there may be one or three: a customer is a key that begins with C.

# %% [belief] lab10.name_is_number
# question: C10 and C9 have equally many messages. Which of them is first by name?
# claim: C9, because 9 is less than 10.
# refutation: C10. Names are compared letter by letter, and 1 comes before 9.

# %% [belief] lab10.order_is_event
# question: A customer has 10 orders. How many events is that?
# claim: Ten; one for each order.
# refutation: messages is the number of messages about the customer: an order has several, and all of them count.

# %% [markdown]
# And all the others? Rank the customers by their messages, and draw both axes logarithmic. By Zipf's law (齐普夫定律) the
# second customer of a broker has half of what its first has, the tenth a tenth: a straight line. (Two brokers, so two
# of each.)

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
# How many messages does the fullest queue hold at least, however many queues the topic has?
#
# wrong fullest: That is the fullest queue of your run. With more queues it could shrink a little, until one customer is
#   alone in it.
# wrong mean: That is the mean. It falls with every additional queue; the fullest queue does not.
# wrong: Which customer is in the fullest queue? All messages of a customer are in one queue: see the lower bars.
# note: It holds the messages of the busiest customer, which are in one queue, whatever its number. To divide them you
#   need another key, such as the order. Then the customer's events are no longer in order.

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

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **What is being written now.** A read is a snapshot: it ends where the log ended when it was planned.
# - **What consumers did.** A log shows what was stored and what came back. The trace topic shows which client got which
#   message, and when.
# - **That the generated day is a real one.** It was written to obey Zipf's law and has the incidents of its seed. The
#   bytes are a broker's; the shop is invented.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what you saw | where in RocketMQ |
# |---|---|
# | one row per message | `CommitLog`, decoded by `MessageDecoder` |
# | entries in a queue | `ConsumeQueue`, `getMaxOffsetInQueue`; `mqadmin topicStatus` prints them |
# | copies that wait | `ScheduleMessageService` and the topic `SCHEDULE_TOPIC_XXXX`, a queue per delay level |
# | copies that are redelivered | `AbstractSendMessageProcessor.consumerSendMsgBack` and the topic `%RETRY%billing` |
# | a customer's queue | `MessageQueueSelector`, `SelectMessageQueueByHash` |
# | keys separated by spaces | `MessageConst.KEY_SEPARATOR`; each key is an entry of the index |
#
# RocketMQ has connectors for Spark that consume from a running broker. This lab uses none: the files are enough, and
# reading them changes no consumer's offsets.

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab10.never_started
# **1.** Which of the counts of the first page would change if billing had never been started?
#
# answer: The copies: `SCHEDULE_TOPIC_XXXX` and `%RETRY%billing` would be empty. The 42 messages of the shop would be
#   the same. The log depends on a reader only where the reader sends something back.

# %% [reflection] lab10.which_helps
# **2.** Your hot customer fills half of a queue. More queues, more consumers, more threads: which of them helps, and
# why?
#
# answer: None divides one customer while that customer has one queue. More queues remove its neighbours. More consumers
#   help only while there are more queues than consumers. More threads help where order within the customer is not
#   needed and the listener mostly waits. Otherwise divide the customer's key, and with it the order.

# %% [markdown] tags=["reading"]
# ## Next
#
# What did your queries cost, and what does a group cost that wants one message in ten? [The second
# part](10b-what-a-query-costs.ipynb). All labs: [index](index.ipynb).
