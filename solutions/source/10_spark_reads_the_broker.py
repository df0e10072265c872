# %% [markdown]
# # Lab 10: Spark reads the broker
#
# ## Why
#
# "Which of our queues is the full one?" A broker answers that for one topic at a time, and only for now. The question of
# the morning after is another: how many messages of which topic were in which queue, on all brokers, last week? The answer
# lies in files. A broker's commit log is a table; this lab reads it with Apache Spark.
#
# This is the lab's first page: how many messages for each topic and queue.
#
# ## Objectives
#
# About 20 minutes. You need Python and the words of [lab 00](00-a-messages-day.ipynb); of Spark, what `groupBy` means.
# Java need not be installed: if this machine has none, mqlab brings its own.
#
# When you are done you can
#
# - read a broker's store as a Spark DataFrame (数据框), one row a message;
# - count messages for each topic and queue, and check the answer against the broker's own;
# - say why there are more messages in the log than were sent.

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

# %%
from mqlab.spark import session

lab = play(work, seed=7, client={"enable_trace": False})
spark = session()
messages = spark.read.format("rocketmq").load(str(lab.store().directory))
messages.printSchema()

# %%
per_queue = messages.groupBy("topic", "queue_id").count().orderBy("topic", "queue_id")
per_queue.show(truncate=False)

# %%
reveal("lab10.copies", messages.count())

# %% [markdown]
# ## Look
#
# Two topics in the list were not made by you. Follow one order that failed: it is stored three times, each time as a
# message of its own, with its own place in the log.

# %%
life = messages.where("keys = 'order-10'").orderBy("physical_offset")
shown = ["topic", "queue_id", "queue_offset", "physical_offset", "reconsume_times"]
life.select(*shown).show(truncate=False)

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
# ## What this does not prove
#
# - **That Spark is needed.** For a log of this size it is far too much: pandas reads it before Spark has started. Spark's
#   case is many brokers, more data than memory, and the same code on a cluster.
# - **What is being written now.** A read is a snapshot: it ends where the log ended when it was planned.
#
# ## RocketMQ does it so
#
# | what you saw | where in RocketMQ |
# |---|---|
# | one row a message | `CommitLog`, decoded by `MessageDecoder` |
# | entries in a queue | `ConsumeQueue`, `getMaxOffsetInQueue`; `mqadmin topicStatus` prints them |
# | copies that wait | `ScheduleMessageService` and the topic `SCHEDULE_TOPIC_XXXX`, a queue a delay level |
# | copies to try again | `AbstractSendMessageProcessor.consumerSendMsgBack` and the topic `%RETRY%billing` |
#
# ## Reflect
#
# - A service fails one message in ten, three times on average. By how much does the log grow?
# - Which of the counts above would change if billing had never been started?
#
# ## Next
#
# All labs: [index](index.ipynb).
