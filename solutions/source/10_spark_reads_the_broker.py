# %% [markdown]
# # Lab 10: Spark reads the broker
#
# ## Why
#
# "Which of our queues is the full one, and why?" A broker answers that for one topic at a time, and only for now. The
# question of the morning after is another: how many messages of which topic were in which queue, on all brokers, last
# week; whose were they; what did they cost? The answer lies in files. A broker's commit log is a table; this lab reads
# it with Apache Spark.
#
# ## Objectives
#
# About two hours. You need Python and the words of [lab 00](00-a-messages-day.ipynb); [lab
# 01](01a-what-the-broker-writes.ipynb) opens the same files byte by byte. Of Spark, what `groupBy` means. Java need not
# be installed: if this machine has none, mqlab brings its own.
#
# When you are done you can
#
# - read the stores of a cluster as one Spark DataFrame (数据框), a row a message, and decode no more than you use;
# - find the hot queue (热点队列), the hot key behind it, what a tag costs, and how often failures came back;
# - read a plan: what is scanned, where rows move, which task does the work of all (数据倾斜, skew);
# - say when Spark is worth it, and when DuckDB, polars or pandas are.

# %%
from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.teach import predict, reveal
from mqlab.views import Table

# %% [markdown]
# ## A morning's work
#
# The shop sends orders to a topic of four queues and letters to a topic of two. Billing cannot handle every tenth order
# at the first try, and returns `RECONSUME_LATER` for it: try me again later (重试).


# %%
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
def bill(messages, context):
    number = int(messages[0].keys.removeprefix("order-"))
    fails = number % 10 == 0 and messages[0].reconsume_times == 0
    return RECONSUME_LATER if fails else CONSUME_SUCCESS


def work(lab):
    send_everything(lab)
    billing = lab.push_consumer("billing")
    billing.subscribe("orders", "*")
    billing.on_messages(bill)
    billing.start()
    lab.run_for("60s")


# %% [markdown]
# ## Predict

# %%
### BEGIN SOLUTION
predict("lab10.copies", 48)
### STARTER
# predict("lab10.copies", ...)
### END SOLUTION

# %% [markdown]
# ## Run
#
# `session()` starts Spark with settings that suit a notebook; the first call takes some seconds. From then on the data
# source is called `rocketmq`, and its `path` is a store directory: this Lab's, or that of a real broker. (Message trace
# is off: with it, clients would send a diary of their own to the broker, and this page counts letters and orders.)
#
# A row is a message. These are its columns, each with what it means; this lab needs half of them. (A unit is a
# message as it stands in the log, with all numbers around its body.)

# %%
from mqlab.spark import session

lab = play(work, seed=7, client={"enable_trace": False})
spark = session()
messages = spark.read.format("rocketmq").load(str(lab.store().directory))
Table(
    {
        "column": column.name,
        "type": column.dataType.simpleString(),
        "meaning": column.metadata["comment"],
    }
    for column in messages.schema
)

# %%
per_queue = messages.groupBy("topic", "queue_id").count().orderBy("topic", "queue_id")
per_queue.show(truncate=False)

# %%
reveal("lab10.copies", messages.count())

# %% [markdown]
# ## Look
#
# Two topics in the list were not made by the shop. Follow one order that failed: it is stored three times, each time as
# a message of its own, with its own place in the log (`physical_offset`).

# %%
life = messages.where("keys = 'order-10'").orderBy("physical_offset")
shown = ["topic", "queue_id", "queue_offset", "physical_offset", "reconsume_times"]
life.select(*shown).show(truncate=False)

# %% [markdown]
# How does one know what a copy is a copy of? `offset_msg_id` is made of the broker's address and the place in the log, so
# it is another one for each of the three. But the copies carry that of the first, as one of their properties.

# %%
origin = "properties['ORIGIN_MESSAGE_ID'] AS origin"
life.selectExpr("topic", "offset_msg_id", origin).show(truncate=False)

# %% [markdown]
# Is the count right? Spark has read the commit log; the broker counts entries in its queues. These are two files, written
# one after the other (lab 00), so let us compare the two.

# %%
rows = per_queue.collect()
in_log = {(row["topic"], row["queue_id"]): row["count"] for row in rows}
in_queue = {(q.topic, q.queue_id): q.max_offset for q in lab.store().queues()}
Table(
    {
        "topic": key[0],
        "queue_id": key[1],
        "log": in_log.get(key),
        "queue": in_queue[key],
    }
    for key in sorted(in_queue)
)

# %%
assert in_log == in_queue, "the log and its queues disagree"

# %% [markdown]
# And a real broker? The labs come with files that RocketMQ 5.3.3 has written. The same line reads them, and finds
# topics of the broker's own: `RMQ_SYS_…` for message trace and for transactions, `%DLQ%…` for messages that nobody could
# handle (死信队列).

# %%
from mqlab.teach.datasets import real_store

real = spark.read.format("rocketmq").load(str(real_store("clean")))
real.groupBy("topic").count().orderBy("topic").show(100, truncate=False)

# %% [markdown]
# ## A day of a platform
#
# Forty-eight messages are a toy. `mqlab traffic` writes what brokers of an order platform would have on their disks
# after a day: orders that are created, paid, shipped, refunded or cancelled, stock levels, consumer groups with their
# retries, and in `RMQ_SYS_TRACE_TOPIC` the diary of the clients (消息轨迹, message trace). Same seed, same bytes. Two
# hundred thousand messages take a few seconds; **this one number is the size of everything below**. Run the lab again
# with 2_000_000 afterwards: on two cores that took under five minutes, 2.4 GB of memory and 1.5 GB of disk. Then expect
# ten times the disk, and ten times the minutes, of 20_000_000.

# %%
import tempfile

from mqlab.traffic import write

MESSAGES = 200_000
folder = tempfile.TemporaryDirectory(prefix="mqlab-lab10-")
size = {"messages": MESSAGES, "brokers": 2, "commit_log_bytes": 64 << 20}
day = write(f"{folder.name}/day", seed=7, **size)
Table({"topic": topic, "messages": count} for topic, count in day.topics.items())

# %% [markdown]
# Two brokers, two store directories, with log files of 64 MB (RocketMQ's have 1 GB). A directory of stores is read as
# one table; each broker's messages bear its name.

# %%
path = str(day.directory)
messages = spark.read.format("rocketmq").load(path)
per_topic = messages.groupBy("broker_name", "topic").count()
per_topic.orderBy("topic", "broker_name").show(truncate=False)

# %% [markdown]
# ## The hot queue
#
# Each customer belongs to one of the two brokers. There the producers choose the queue by a hash of the customer's number,
# always the same of eight, because the events of a customer have to stay in order.
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab10.even", "more")
### STARTER
# predict("lab10.even", ...)
### END SOLUTION

# %% [markdown]
# ### Run and look

# %%
queues = messages.where("topic = 'orders'").groupBy("broker_name", "queue_id").count()
fill = sorted(tuple(row) for row in queues.collect())
mean = sum(count for *_, count in fill) / len(fill)
Table(
    {
        "broker": broker,
        "queue": queue,
        "messages": count,
        "of the mean": round(count / mean, 2),
        "": "█" * round(20 * count / mean),
    }
    for broker, queue, count in fill
)

# %%
fullness = max(count for *_, count in fill) / mean
reveal("lab10.even", "even" if fullness <= 1.1 else "more" if fullness < 2 else "twice")

# %% [markdown]
# ### Build
#
# Your answers in this lab are functions: DataFrame in, DataFrame out. `rows_of(function, path)` reads a store, calls
# one, and collects its rows; the checks use it with stores of their own. So an answer works with the `messages` it is
# given; the lab's imports and functions are there for it, other names are not when it is graded. Try yours in a cell of
# your own first, on this day or, faster, on a small one of 3,000 messages: `rows_of(fullest, small_day())`.

# %%
from pyspark.sql import Window, functions

from mqlab.spark import rows_of
from mqlab.teach import check, hint
from mqlab.teach.datasets import small_day


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

# %% [markdown]
# ## Read no more than you use
#
# A message has many columns, and a body. Counting queues needs two of them. Who tells the source?
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab10.read_again", "all")
### STARTER
# predict("lab10.read_again", ...)
### END SOLUTION

# %% [markdown]
# ### Run and look
#
# The plan (执行计划) says what is scanned. `frame.explain()` prints it, in long lines; `plan_of` says the same in short
# ones. Read it from below: what a line needs stands under it.

# %%
from mqlab.spark import plan_of

stock = messages.where("topic = 'stock'").select("queue_id")
print(plan_of(stock))

# %% [markdown]
# The scan at the bottom names all columns, and there is no word of `stock` in it: the filter stands above and looks at
# rows that were decoded already. So say it to the source, with options.

# %%
narrow = spark.read.format("rocketmq").options(topic="stock", columns="queue_id")
print(plan_of(narrow.load(path)))

# %% [markdown]
# A plan says what will be done. What was done? An `Observation` counts the rows that pass by it; this one stands between
# the source and the filter.

# %%
from pyspark.sql import Observation


def count_where(frame, condition):
    seen = Observation()
    passing = frame.observe(seen, functions.count("*").alias("rows"))
    return {"counted": passing.where(condition).count(), "decoded": seen.get["rows"]}


first = count_where(messages, "topic = 'stock'")
again = count_where(messages, "topic = 'stock'")
told = count_where(narrow.load(path), "true")
asked = {"where": first, "where, once more": again, "options": told}
Table({"asked by": way, **rows} for way, rows in asked.items())

# %%
meant = {MESSAGES: "all", told["decoded"]: "stock", 0: "nothing"}
reveal("lab10.read_again", meant[again["decoded"]])

# %% [markdown]
# How much is it worth? Both lines count the same messages. (Times differ from run to run and from machine to machine:
# read the ratio.)

# %% tags=["nbval-ignore-output"]
import time


def seconds(action):
    began = time.perf_counter()
    action()
    return round(time.perf_counter() - began, 2)


wide_s = seconds(lambda: stock.groupBy("queue_id").count().collect())
narrow_s = seconds(lambda: narrow.load(path).groupBy("queue_id").count().collect())
Table([{"read": "all columns, where", "s": wide_s}, {"read": "options", "s": narrow_s}])

# %% [markdown]
# ### Build
#
# | option | for example | what it says |
# |---|---|---|
# | `topic` | `orders,stock` | messages of these topics only |
# | `queues` | `0,3` | messages of queues with these ids only |
# | `startTime`, `endTime` | `1731283725547` | stored at this time or later; stored before this time (ms since 1970) |
# | `columns` | `tags,keys` | these are decoded and handed to Spark, no others |


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

# %% [markdown]
# ## The hot key
#
# Why is one queue fuller than the others? A producer that wants the events of a customer in order sends them to one
# queue, chosen by the customer. Each message says whose it is, in its keys. (We read what we use, too, from here on.)

# %%
used = {"topic": "orders", "columns": "broker_name,queue_id,physical_offset,keys,tags"}
events = spark.read.format("rocketmq").options(**used).load(path)
first = events.orderBy("broker_name", "physical_offset")
first.select("keys", "tags", "queue_id").show(5, truncate=False)


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

# %% [markdown]
# ## What a tag costs
#
# The group `notification` wants `shipped || refunded || cancelled`. The broker goes through **all** entries of the queues
# for it and delivers those whose tag fits (消息过滤). How selective (选择性) is that?

# %%
tags = events.groupBy("tags").count().collect()
total = sum(row["count"] for row in tags)
Table(
    {
        "tag": row["tags"],
        "messages": row["count"],
        "share": f"{row['count'] / total:.1%}",
    }
    for row in sorted(tags, key=lambda row: -row["count"])
)

# %% [markdown]
# Add up the lines of the three tags: that share of the topic the group wants. How is it in each queue?


# %%
# exercise: lab10.cost
def cost(messages, topic, tags):
    """What each queue of a topic costs a group that wants some tags (a list of texts).

    Columns: broker_name, queue_id, looked_at (messages the broker goes through), matched
    (those with one of the tags).
    """
    ### BEGIN SOLUTION
    is_wanted = functions.col("tags").isin(tags)
    queues = messages.where(functions.col("topic") == topic).groupBy(
        "broker_name", "queue_id"
    )
    looked_at = functions.count("*").alias("looked_at")
    return queues.agg(looked_at, functions.count_if(is_wanted).alias("matched"))
    ### END SOLUTION


# %%
check("lab10.cost")

# %% [markdown]
# ## Where rows move
#
# Spark cuts the logs into pieces and has each read by a **task** (任务). Tasks run side by side, one a core, and know
# nothing of each other. So what belongs together has to be brought together: rows move from the tasks of one **stage**
# (阶段) to those of the next. The plan calls it `Exchange`, and everybody else a shuffle (洗牌).
#
# ### Predict

# %%
### BEGIN SOLUTION
predict("lab10.exchanges", 2)
### STARTER
# predict("lab10.exchanges", ...)
### END SOLUTION

# %% tags=["nbval-ignore-output"]
counts = messages.groupBy("broker_name", "topic", "queue_id").count()
sorted_counts = counts.orderBy("count")
print(plan_of(sorted_counts))

# %% [markdown]
# From below: each task scans its piece and counts what is in it (`HashAggregate` with `partial_count`); `Exchange
# hashpartitioning` brings the counts of a queue to one task, which adds them up (`HashAggregate` again); `Exchange
# rangepartitioning` brings small counts to one task and big ones to another, and each sorts its own (`Sort`).
# `AdaptiveSparkPlan` on top means that Spark may do better when it has seen how many rows there are.

# %%
reveal("lab10.exchanges", plan_of(sorted_counts).count("Exchange "))

# %% [markdown]
# ## Break it: one task does the work of all
#
# Which customers fill the hot queues? All messages about a customer are in one queue of one broker.


# %%
def key_of(letter):
    return functions.regexp_extract("keys", f"{letter}[0-9]+", 0)


customer = key_of("C").alias("customer")
whose = events.groupBy("broker_name", "queue_id", customer).count()
whose.orderBy(functions.desc("count"), "customer").show(5)

# %% [markdown]
# To tell the story of every order, its messages must come together. Which key brings them? A customer's orders are
# together anyway, so why not the customer? Here are sixteen parts; each would be a task's work.

# %%
by_customer = events.repartition(16, customer)
part = functions.spark_partition_id().alias("part")
sizes = by_customer.groupBy(part).count().orderBy(functions.desc("count")).collect()
sizes = [row["count"] for row in sizes]
print("fullest:", sizes[:3], "mean:", round(sum(sizes) / 16), "emptiest:", sizes[-1])

# %% [markdown]
# A stage ends with its last task. Whoever gets the fullest part is still at work when all others are done, however many
# cores there are. A day of ten times as many messages changes nothing: a customer's share stays what it is.


# %%
# exercise: lab10.parts
def in_parts(messages, parts):
    """A part, 0 to parts - 1, for each message of the topic orders.

    Columns: broker_name, physical_offset, part. All messages of an order are in one part;
    the fullest part holds at most 1.5 times the mean; asked again it says the same. An
    order's key begins with O.
    """
    ### BEGIN SOLUTION
    orders = messages.where("topic = 'orders'")
    order = functions.regexp_extract("keys", "O[0-9]+", 0)
    part = functions.pmod(functions.hash(order), functions.lit(parts))
    return orders.select("broker_name", "physical_offset", part.alias("part"))
    ### END SOLUTION


# %%
check("lab10.parts")

# %% [markdown]
# ## How often did it come back?
#
# The first page showed it: a message that fails comes back as a new one, in `%RETRY%` and the group's name (重试队列).
# Until then another copy waits in `SCHEDULE_TOPIC_XXXX`; who fails too often ends in `%DLQ%` and the group's name (死信队列)
# and does not come back. All copies name the message they were made of: `ORIGIN_MESSAGE_ID`. What do failures cost a
# group?


# %%
# exercise: lab10.failures
def failures(messages):
    """What came back to each group's retry topic.

    Columns: group_name, messages (different messages that came back at least once),
    copies (how often they did, together).
    """
    ### BEGIN SOLUTION
    copies = messages.where(functions.col("topic").startswith("%RETRY%"))
    group = functions.replace("topic", functions.lit("%RETRY%"), functions.lit(""))
    origin = functions.col("properties")["ORIGIN_MESSAGE_ID"]
    different = functions.count_distinct(origin).alias("messages")
    every = functions.count("*").alias("copies")
    return copies.groupBy(group.alias("group_name")).agg(different, every)
    ### END SOLUTION


# %%
check("lab10.failures")

# %% [markdown]
# ## Parquet, and an honest comparison
#
# The log is laid out for appending, row by row. For the same question asked again and again, keep its columns in
# **Parquet** (列式存储): written once, a column can then be read alone.

# %%
kept = ["topic", "broker_name", "queue_id", "store_timestamp", "total_size", "tags"]
table = spark.read.format("rocketmq").option("columns", ",".join(kept)).load(path)
target = f"{folder.name}/messages.parquet"
written_s = seconds(lambda: table.write.mode("overwrite").parquet(target))
parquet = spark.read.parquet(target)
f"{parquet.count():,} rows, {day.asked.messages:,} messages"

# %% [markdown]
# One question, six ways: messages and bytes of each queue. The first is a loop in Python over the log. All others but
# Parquet use one decoder, which turns the log into Arrow columns without such a loop.

# %%
import duckdb
import pandas
import polars

from mqlab import arrow
from mqlab.wire import record

by = ["topic", "broker_name", "queue_id"]
columns = [*by, "total_size"]


# %%
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


def grouped(frame):
    sums = frame.groupby(by).total_size.agg(["count", "sum"])
    return sums.reset_index().itertuples(index=False)


# %%
def with_pandas():
    return grouped(arrow.read_table(path, columns).to_pandas())


def with_duckdb():
    log = duckdb.arrow(arrow.read_batches(path, columns))
    sums = log.aggregate("topic, broker_name, queue_id, count(*), sum(total_size)")
    return sums.fetchall()


def with_polars():
    log = polars.from_arrow(arrow.read_table(path, columns))
    return log.group_by(by).agg(polars.len(), polars.col("total_size").sum()).rows()


# %%
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
# First, do they agree? Every count and every sum is compared with the loop's.

# %%
answers = {way: sorted(map(tuple, run())) for way, run in ways.items()}
loop = answers["a loop in Python, pandas"]
Table(
    {"way": way, "rows": len(rows), "same": rows == loop}
    for way, rows in answers.items()
)

# %% [markdown]
# Now that each has run once, Spark has warmed up and the files are in memory, how long does it take?

# %% tags=["nbval-ignore-output"]
times = {way: seconds(run) for way, run in ways.items()}
times["(writing Parquet, once)"] = written_s
Table({"way": way, "seconds": took} for way, took in times.items())

# %% [markdown]
# Read the order, not the numbers. What makes the first way slow is not pandas, it is the loop. On one machine and a day
# of this size pandas, DuckDB and polars need no cluster to beat Spark on the log, and Parquet pays when a question is
# asked often enough. Spark's case is what this table cannot show: the same lines on fifty brokers' disks and fifty
# machines, data beyond memory, a table that goes on while messages arrive (lab 12).

# %% [markdown]
# ## Break it: a byte is wrong
#
# What if a disk returned a wrong byte? Every message in the log begins with four bytes for its size, and four that say
# "here a message begins", the magic number. Copy a log file, change one byte of the second message's magic number, count.

# %%
import pathlib
import shutil

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
    damaged.load(str(torn.parents[1])).count()
except Exception as error:
    said = next(line for line in str(error).splitlines() if "commitlog" in line)
    print(said[said.index("commitlog") :])

# %% [markdown]
# The read stops and says where: file, place, what was expected. A reader that skipped it would have given you a number,
# and nobody would know that it is wrong.
#
# ## What this does not prove
#
# - **That Spark is needed.** For a log of this size it is too much: see the table above. Its case is many brokers, more
#   data than memory, and the same code on a cluster.
# - **What is being written now.** A read is a snapshot: it ends where the log ended when it was planned.
# - **What consumers did.** A log says what was stored and what came back. Who got which message when is told by the
#   trace topic, and that is another lab.
# - **That the generated day is a real one.** It obeys Zipf's law and has the incidents of its seed, because somebody
#   wrote it so. The bytes are a broker's; the shop is invented.
#
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
# | looked at, matched | `ExpressionMessageFilter.isMatchedByConsumeQueue`; the tag code of the entry is compared |
#
# RocketMQ has connectors for Spark that consume from a running broker. Nothing of that is used here: the files are
# enough, and reading them disturbs nobody's offsets.
#
# ## Reflect
#
# - A service fails one message in ten, three times on average. By how much does the log grow?
# - Which of the counts of the first page would change if billing had never been started?
# - Your hot customer is half of a queue. More queues, more consumers, more threads: which of them helps, and why?
# - Where would you rather have the day: in one log of all topics, or in a file a topic? Think of who writes and who reads.
#
# ## Next
#
# All labs: [index](index.ipynb).
