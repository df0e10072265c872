# %% [markdown] minutes=2 tags=["reading"]
# # Lab 00: A message's day
#
# ## Why
#
# Friday, half past five. Billing is live; the audit service will be ready on Monday.
#
# "No problem," says one colleague, "audit starts on Monday, the messages will wait for it."
#
# "They will not," says another. "Billing acknowledges every message, and what is acknowledged is deleted."
#
# One of them is wrong, and the auditors would like to know which. In this lab you will not have to believe either: you
# will send messages to a broker, let a service acknowledge them, and then open the broker's own files and look.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need Python. You need to know nothing about message brokers, and nothing has to be installed:
# the whole cluster runs inside this notebook.
#
# When you are done you can
#
# - name the steps of a message's day, and say on which machine each happens;
# - find one message in the three files that know of it;
# - say what an *acknowledgement* is, who remembers it, and from when on;
# - say what a service gets again after a crash.

# %% [markdown] minutes=4 tags=["reading"]
# ## The world
#
# Five words are enough to begin with. (All others are in the [glossary](glossary.ipynb), in English and Chinese.)
#
# | word | Chinese,&nbsp;中&#8288;文 | what it is |
# |---|---|---|
# | **broker** | 消息服务器 | the machine that stores messages; ours is `broker-a` |
# | **name server** | 名称服务 | the machine that knows which broker has which topic |
# | **producer** | 生产者 | a program that sends messages; ours is the `shop` |
# | **topic** and **queue** | 主题, 队列 | messages of one kind go to a topic; a topic is made of queues. Ours has one queue, so that every picture stays small |
# | **consumer group** | 消费者组 | a service that reads a topic, on one machine or on many; ours are `billing` and `audit` |
#
# A demonstration in these labs is a **story**: a function that gets a `Lab`, which is a whole cluster with a clock of
# its own. `play(story, seed=7)` tells the story on a fresh cluster and gives it back to you, to be looked at. The same
# seed gives the same day, to the byte, as often as you like.

# %%
from mqlab import CONSUME_SUCCESS, Message, MessageQueue, play
from mqlab.teach import answer, check, hint, predict, reveal, show_me
from mqlab.views import Table

# %% [markdown] minutes=8
# ## Morning: three orders are sent
#
# Each `Message` has a topic, a body (bytes: the broker never looks inside) and, if you like, keys to find it by.

# %%
ORDERS = {"order-1": "книга", "order-2": "三本书", "order-3": "🎁 for Anna"}


def morning(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for key, body in ORDERS.items():
        shop.send(Message("orders", body.encode(), keys=key))
        lab.run_for("20ms")


lab = play(morning, seed=7)
lab.timeline()

# %% [markdown]
# Read the picture from top to bottom; the left column is the time since the first line. Three times the same happens:
#
# 1. The shop sends a request to the broker (an arrow; the words on it are the request's name in RocketMQ).
# 2. The broker **writes the message** at the end of one long file, the **commit log** (提交日志), and says at which byte.
# 3. In a step of its own it writes an **entry** for the message into the queue. The entry is small; it only says where
#    the message lies. Consumers find messages by these entries.
# 4. The answer `SUCCESS` arrives at the shop. The broker has the message, so the shop may forget it. (The answer did not
#    wait for step 3: it was on its way while the entry was written.)
#
# Nobody drew this picture: it is made from the journal of the run you have just made. "The same as text" under it is for
# those who cannot see it, or would rather search.

# %% [markdown] minutes=10
# ## Three files know your message
#
# The broker is an ordinary program with ordinary files. These are the ones that matter today:

# %%
folders = ("commitlog", "consumequeue", "config/consumerOffset")
Table(row for row in lab.store().tree() if row.path.startswith(folders))

# %% [markdown]
# **First file: the commit log.** Every message of every topic, one behind the other. Take the second order. This is all
# that the broker has stored of it:

# %%
from mqlab.views.message import MessageView

first, second, third = lab.store().messages("orders")
MessageView(second)

# %% [markdown]
# And these are the bytes that say it. Each colour is one field, and the table under the bytes names them in the same
# order. Look for the body, the topic, and the three numbers that say where the message belongs: `queue_id`,
# `queue_offset`, `physical_offset`.

# %%
lab.store().hexdump(second.physical_offset)

# %% [markdown]
# **Second file: the consume queue** (消费队列). Twenty bytes a message, nothing else. The first eight are the place in
# the commit log: compare them with the `physical_offset` above. The number of an entry is the message's **queue offset**
# (队列偏移量): 0, 1, 2, …

# %%
from pathlib import Path

from mqlab.views.hexdump import Hexdump
from mqlab.wire.units import cq_field_map

queue_file = Path(lab.store().directory, "consumequeue/orders/0/00000000000000000000")
place = 20 * second.queue_offset
Hexdump(cq_field_map(queue_file.read_bytes(), place), base=place)

# %% [markdown]
# **Third file: `config/consumerOffset.json`.** It says how far each group has read. It does not exist yet: nobody has
# read anything.

# %% [markdown] minutes=4
# ## Reading by hand
#
# To read is to **pull** (拉取): a client names a queue, the offset to begin at, and how many messages it would like. It
# gets messages, and the offset at which to go on.


# %%
def pull(offset):
    answer = puller.pull(MessageQueue("orders", "broker-a", 0), "*", offset, max_nums=2)
    got = ", ".join(message.keys for message in answer.msg_found_list or ())
    return {
        "from": offset,
        "status": answer.pull_status,
        "got": got,
        "go on at": answer.next_begin_offset,
    }


lab = play(morning, seed=7)
puller = lab.pull_consumer("curious")
Table([pull(0), pull(2), pull(0)])

# %% [markdown]
# The third pull asks for the same as the first and gets the same. The broker did not hand the messages out, it showed
# them. Where a reader stands is the reader's own business, so far.

# %% [markdown] minutes=15
# ## Noon: billing reads
#
# ### Predict
#
# A service reads with a **listener**: a function that gets messages and returns `CONSUME_SUCCESS` when it is done with
# them. That is the acknowledgement (确认). Before you run anything, answer two questions. Run the cell under a question
# and click; you may change your mind until the run has shown what happens.

# %% [prediction] lab00.after_ack
# Three orders are stored. Billing reads all three and acknowledges them. How many are in the commit log then?
#
# - 3: all three; nothing is taken out
#   = The log never loses a message because somebody has read it.
# - 0: none; what is acknowledged is deleted
#   > A classic RabbitMQ queue works so. Here the log is written at its end and nowhere else: no acknowledgement changes
#   > what is in it.
# - 1: one; the last order stays until the next one comes
#   > The last order is nothing special to the log. All of them lie where they were written.
# note: An acknowledgement moves a number, it deletes nothing. Messages go when their file is old (72 hours by
#   default), read or unread.

# %% [prediction] lab00.known_when
# Billing's listener has returned CONSUME_SUCCESS. When does the broker know?
#
# - at once: the answer goes to the broker with each message
#   > A request for each message would double the traffic. Look at billing's lane: after the listener returns, nothing
#   > leaves it for seconds.
# - later: seconds later, in one report for all messages so far
#   = One number says it for all orders at once.
# - never: the broker gets no report at all
#   > It does get one: look for UPDATE_CONSUMER_OFFSET in the timeline. Without it, billing would begin from the start
#   > again after every restart.
# note: The client keeps its progress in memory and reports it every 5 seconds, the first time after 10. In between, the
#   broker knows less than the client.

# %% [markdown]
# ### Run
#
# The listener takes 200 ms for an order. `context.sleep` passes virtual time: a whole day in these labs takes you no
# longer than a blink.


# %%
def handle(messages, context):
    context.sleep("200ms")
    return CONSUME_SUCCESS


def read_orders(lab, group):
    consumer = lab.push_consumer(group)
    consumer.subscribe("orders", "*")
    consumer.on_messages(handle)
    consumer.start()
    return consumer


# %%
def noon(lab):
    morning(lab)
    read_orders(lab, "billing")
    lab.run_for("30s")


lab = play(noon, seed=7)
columns = ["queue_offset", "client", "started_ms", "ended_ms", "status"]
Table(lab.deliveries("billing"), columns=columns)

# %% [markdown]
# ### Look
#
# One row a delivery: which message went to which client, when, and what the listener said. Now the question that the
# two colleagues argued about. How many messages are in the commit log?

# %%
in_the_log = list(lab.store().messages("orders"))
reveal("lab00.after_ack", len(in_the_log))

# %% [markdown]
# All of them. And they are where they were:

# %%
from mqlab.views.queue import show_queue

show_queue(lab, "orders")

# %% [markdown]
# An acknowledgement deletes nothing. It moves a number: *billing reads 3 next*. That number is the group's **offset**
# (消费位点), and it always means the **next** message to read, not the last one read.
#
# Here is the whole day of the second order, from the shop to that number.

# %%
lab.timeline(second.msg_id)

# %% [markdown]
# Follow billing's lane. It got the orders as an answer to a `PULL_MESSAGE` of its own: nothing is pushed, it asks. Then
# the listener runs and returns, and the client notes the new offset *in memory*. Only much later does a request go to the
# broker, `UPDATE_CONSUMER_OFFSET`, one for all three orders. How much later?

# %%
returned = lab.journal.changes("listener.returned")[-1][0].now_ms
committed = lab.journal.changes("offset.committed")[0][0].now_ms
waited = committed - returned
print(f"The broker knew {waited} ms after the last listener had returned.")
reveal("lab00.known_when", "later" if waited > 1000 else "at once")

# %% [markdown]
# And this is the third file, read into a dictionary: for each topic and group, one number a queue.

# %%
lab.store().config("consumerOffset.json")["offsetTable"]

# %% [markdown] minutes=15
# ## Evening: audit arrives late
#
# ### Predict
#
# It is Monday: billing has acknowledged everything long ago, and audit starts for the first time.

# %% [prediction] lab00.audit
# Audit starts a minute after billing has acknowledged all three orders. How many of them does audit get?
#
# - 3: all three
#   = Audit has a number of its own, and it begins at 0.
# - 0: none; billing has consumed them
#   > Billing has moved its own number. Nothing else in the broker says that an order was read, so nothing keeps audit
#   > from reading it.
# - new ones: none of these; a group that is late gets what is sent from now on
#   > Some groups do begin at the end: new groups on a topic whose first messages are gone or no longer in memory. These
#   > orders are all there, so audit begins at the first (lab 04).
# note: Each group has a position of its own in the same queue. What billing has read is not gone for audit.

# %% [markdown]
# ### Run, and look


# %%
def evening(lab):
    noon(lab)
    lab.run_for("30s")
    read_orders(lab, "audit")
    lab.run_for("5s")


lab = play(evening, seed=7)
reveal("lab00.audit", len(lab.deliveries("audit")))

# %% [markdown]
# Audit gets every order, as if billing did not exist: each group has its own number in the same queue. Where is audit's?

# %%
show_queue(lab, "orders")

# %% [markdown]
# Not there. Audit has handled everything, but its client has not reported yet, so the broker knows nothing of it. Thirty
# seconds later it does:


# %%
def night(lab):
    evening(lab)
    lab.run_for("30s")


lab = play(night, seed=7)
show_queue(lab, "orders")

# %%
names = ["topic", "client", "broker_offset", "consumer_offset", "lag"]
Table([*lab.progress("billing"), *lab.progress("audit")], columns=names)

# %% [markdown]
# `broker_offset` is the number that the next message of the queue will get, `consumer_offset` the next one that the group
# reads. Between them lie the messages that the group has not read: the **lag** (消费堆积).
#
# The rows of `%RETRY%billing` and `%RETRY%audit` are the groups' own **retry topics** (重试队列), where a message goes
# when a listener fails. Lab 07 is about them; today nothing fails. (A `consumer_offset` of -1 says that the group has not
# reported on that queue yet: a new group begins to read its retry topic 21 seconds after its start.)
#
# And this is who has a connection to whom. Every client talks to the name server, to learn where the topic is, and to the
# broker. The shop knows nothing of billing and audit, nor they of each other.

# %% tags=["nbval-ignore-output"]
lab.diagram()

# %%
lab.diagram().table()

# %% [markdown]
# ### Step through the day
#
# Now you drive. **Step** goes on to the next thing that happened, **Back** takes it back, the player runs, and the
# slider jumps. (Tab moves between them, Space presses, arrow keys move the slider.) Each stop is the world itself,
# replayed up to that moment, so what you see in the queue is what is in its file.
#
# Find the stop at which a message is stored but not yet in the queue. Find the stop at which billing has handled an
# order and the broker does not know it.

# %% tags=["explorer"]
from mqlab.widgets import explore


def queue_now(lab):
    return [show_queue(lab, "orders")] if "orders" in lab.store().topics() else []


explorer = explore(night, seed=7, show=queue_now)
explorer

# %% [markdown]
# The same stops as a table, for a page that cannot be clicked:

# %%
explorer.stepper.table()

# %% [markdown] minutes=40
# ## Build
#
# Two exercises now, a third after the crash. `check(...)` tries your function on days that you have not seen. When you
# are stuck, `hint("lab00.find")` gives you the first of three hints; asking is free.

# %% [exercise] lab00.find
# ### Exercise 1: find your message in three files
#
# Write `find`. It gets what you have looked at above, as plain bytes:
#
# - `entries`: the consume queue file of queue 0. Entry *n* has 20 bytes: the place in the log (8), the size of the
#   message's unit (4), a tag code (8); big-endian, which `struct` calls `">"`.
# - `log`: the commit log file.
# - `offset_table`: the third file, as `{"orders@billing": {0: 3}, …}`: group's next offset, for each queue.
#
# hint: An entry of the queue file is 20 bytes, so entry n begins at byte 20 * n. Which of its bytes are a place?
# hint: struct.unpack_from(">qiq", entries, 20 * queue_offset) reads a place (8 bytes), a size (4) and a tag code (8).
#   The unit is that many bytes of the log, from that place.
# hint: offset_table.get(f"orders@{group}", {}).get(0, 0) is what a group reads next from queue 0. It is past message
#   n when that is greater than n; equal means: this one comes next.
# note: You have just done by hand what the broker does for every pull: entry, place, unit. And you have seen that a
#   group is nothing but a number in a small file.

# %%
import struct


# %%
# exercise: lab00.find
def find(queue_offset, entries, log, offset_table):
    """Where is message number queue_offset, and who is past it?

    Returns a tuple of three: its physical offset, the bytes of its unit in the log,
    and those of the groups "audit" and "billing" that are past it, in this order.
    """
    ### BEGIN SOLUTION
    place, size, _ = struct.unpack_from(">qiq", entries, 20 * queue_offset)
    past = []
    for group in ("audit", "billing"):
        reads_next = offset_table.get(f"orders@{group}", {}).get(0, 0)
        if reads_next > queue_offset:
            past.append(group)
    return place, log[place : place + size], past
    ### END SOLUTION


# %%
check("lab00.find")

# %% [exercise] lab00.timeline
# ### Exercise 2: read the timeline
#
# Write `read_day`. It gets the rows of a timeline, as you get them here, and answers three questions about one message
# and one group. Each row is a dictionary; what the journal wrote down is under `"values"`.
#
# hint: Three kinds of rows are enough: message.stored, listener.started and offset.committed. Print the values of one
#   row of each.
# hint: message.stored contains the message's queue_offset. You need it to recognise the commit that passes it: a
#   commit names a group and a queue_offset, not a message.
# hint: One commit may pass several messages at once. Look for the first offset.committed of the group whose
#   queue_offset is greater than the message's; next(..., None) gives None where there is none.
# note: Between seen and known lie seconds in which only the consumer's memory knows. Everything about duplicates
#   happens there.

# %%
from pprint import pprint

rows = lab.timeline().table().to_dicts()
for kind in ("message.stored", "listener.started", "offset.committed"):
    row = next(row for row in rows if row["kind"] == kind)
    names = ("now_ms", "node", "kind", "values")
    pprint({name: row[name] for name in names}, sort_dicts=False)


# %%
# exercise: lab00.timeline
def read_day(rows, msg_id, group):
    """When was the message stored, when did the group first see it,
    and when did the broker first know that the group is past it?

    Returns a tuple of three times (now_ms); None for what did not happen.
    """
    ### BEGIN SOLUTION
    stored_ms = seen_ms = known_ms = offset = None
    for row in rows:
        kind, values, now_ms = row["kind"], row["values"], row["now_ms"]
        if kind == "message.stored" and values["msg_id"] == msg_id:
            stored_ms, offset = now_ms, values["queue_offset"]
        if offset is None or values.get("group") != group:
            continue
        if kind == "listener.started" and values["msg_id"] == msg_id:
            seen_ms = seen_ms or now_ms
        if kind == "offset.committed" and values["queue_offset"] > offset:
            known_ms = known_ms or now_ms
    return stored_ms, seen_ms, known_ms
    ### END SOLUTION


# %%
check("lab00.timeline")

# %% [markdown] minutes=15
# ## Break it
#
# Billing starts, handles all three orders, and three seconds later its process is killed. Ten seconds after that it is
# started again.

# %% [prediction] lab00.again
# Billing has handled all three orders and is killed 3 seconds after it started. It is started again. How many orders
# does its listener get in its second life?
#
# - 3: all three again
#   = The first report would have left after 10 seconds; the process lived for 3.
# - 0: none; it has acknowledged all of them
#   > The acknowledgements were noted in the memory of the process that died. The broker had heard of none of them.
# - 1: one; the order that it was working on
#   > It was working on nothing: all three were done. What counts is what the broker was told, and that was nothing.
# note: The broker had no report yet, so the group goes on from the beginning. At least once means: be ready to see a
#   message again.


# %%
def crash(lab):
    morning(lab)
    read_orders(lab, "billing")
    lab.run_for("3s")
    lab.kill("billing-1")
    lab.run_for("10s")
    lab.start("billing-1")
    lab.run_for("15s")


lab = play(crash, seed=7)
Table(lab.deliveries("billing"), columns=[*columns, "reconsume_times"])

# %%
killed = lab.journal.of("fault.killed")[0].now_ms
reveal("lab00.again", sum(row.started_ms > killed for row in lab.deliveries("billing")))

# %% [markdown]
# Three customers have now paid twice, unless billing is prepared for it. Nobody made a mistake: the broker delivered
# what, to its knowledge, had not been handled. This promise is called **at least once** (至少一次).
#
# `reconsume_times` is 0 in every row: to the broker these are first deliveries, not retries. A service cannot tell from
# the message that it has seen it before. It has to remember on its own; lab 04 shows how.

# %%
lab.timeline(second.msg_id)

# %% [answer] lab00.lives
# ### Your turn
#
# Billing died before it had reported anything. Give it a longer life: change `LIVES` to something between 9 and 16
# seconds, and run the cell. Then say what you see, in place of the dots below.
#
# How many orders does billing get again in your run?
#
# wrong both: That is every delivery, of both lives. The second life begins after the longest pause in `started_ms`.
# wrong: Count the rows of the second life only: those that started after the kill. There may be none.
# note: The client reports 10 seconds after its start. A life that ends before that is forgotten as a whole; one that
#   ends later has reported all three orders. Nothing in between happens with so few orders.

# %%
### BEGIN SOLUTION
LIVES = "12s"
### STARTER
# LIVES = "3s"  # yours to change
### END SOLUTION


def longer_life(lab):
    morning(lab)
    read_orders(lab, "billing")
    lab.run_for(LIVES)
    lab.kill("billing-1")
    lab.run_for("10s")
    lab.start("billing-1")
    lab.run_for("15s")


lab = play(longer_life, seed=7)
Table(lab.deliveries("billing"), columns=columns)

# %%
### BEGIN SOLUTION
answer("lab00.lives", 0, lab)
### STARTER
# answer("lab00.lives", ..., lab)
### END SOLUTION

# %% [markdown]
# And the broker? Kill it too. What it has written stays: its files are still there, and it reads them when it starts.


# %%
def broker_crash(lab):
    noon(lab)
    lab.kill("broker-a")
    lab.run_for("5s")
    lab.start("broker-a")
    lab.run_for("40s")


lab = play(broker_crash, seed=7)
show_queue(lab, "orders")

# %% [exercise] lab00.crash
# ### Exercise 3: say where each group stands after a crash
#
# All consumers are killed at the same moment. You get the rows of the timeline up to that moment, and the names of the
# groups. What will each group read next from the queue when it is started again?
#
# hint: Two kinds of rows speak of progress: offset.updated (whose memory?) and offset.committed (whose memory?). Only
#   one of them is left when the consumer is dead.
# hint: Go through the rows in order and keep, for each group, the queue_offset of its latest offset.committed.
# hint: Begin with {group: 0 for group in groups}: a group that never reported begins at 0. The queue_offset of a
#   commit is already the next one to read: add nothing.
# note: That number, and nothing else, decides what is delivered again. Lab 04 is about keeping it small.


# %%
# exercise: lab00.crash
def stand(rows, groups):
    """What will each group read next, after all consumers were killed?

    Returns a dictionary {group: queue offset}. The topic has one queue; a group of
    which the broker was never told anything begins at 0.
    """
    ### BEGIN SOLUTION
    told = dict.fromkeys(groups, 0)
    for row in rows:
        if row["kind"] == "offset.committed" and row["values"]["group"] in told:
            told[row["values"]["group"]] = row["values"]["queue_offset"]
    return told
    ### END SOLUTION


# %%
check("lab00.crash")

# %% [markdown] minutes=3 tags=["reading"]
# ## What this does not prove
#
# - **Messages do not stay for ever.** The broker deletes whole files of its log, by default when they are 72 hours old
#   (at 04:00), sooner when the disk is full, and it does not ask who has read them. From Friday to Monday the orders
#   do wait; much longer they would not. Lab 01 lets you see it.
# - **A killed process is not a pulled plug.** `kill` leaves what the process had written with the operating system. What
#   a power cut takes depends on when the broker forces its file to disk (lab 01).
# - **One queue, one broker, one consumer a group.** With several, order and sharing become questions (labs 02, 03, 05).
# - **That audit got the old orders has a condition.** A new group begins at the start of a queue while the queue's first
#   message is still there and in memory; on an old topic it begins at the *end* unless it asks for more (lab 04).
# - **The network and the clock are simulated,** the files and the frames are not: other tools can read them.

# %% [markdown] minutes=3 tags=["reading"]
# ## RocketMQ does it so
#
# | step | where in RocketMQ |
# |---|---|
# | the shop sends | `DefaultMQProducer.send`, request `SEND_MESSAGE_V2` |
# | the broker writes | `SendMessageProcessor`, `CommitLog.asyncPutMessage` |
# | the entry in the queue | `DefaultMessageStore.ReputMessageService`, `ConsumeQueue` |
# | billing fetches | `DefaultMQPushConsumerImpl.pullMessage`, `PullMessageProcessor`: a *push* consumer pulls, and the broker holds the pull until something comes (`PullRequestHoldService`) |
# | billing is done | `ConsumeMessageConcurrentlyService.processConsumeResult`, `RemoteBrokerOffsetStore.updateOffset` |
# | the broker is told | `RemoteBrokerOffsetStore.persistAll`: after 10 s, then every 5 s; also along with the next pull |
# | the broker remembers | `ConsumerOffsetManager`, written to `consumerOffset.json` every 5 s |
#
# Where you may read it differently: "the broker pushes" (it answers pulls), "the broker marks a message as consumed" (it
# has no such mark; a group is one number a queue), "an ack deletes" (true for a classic RabbitMQ queue, not here).

# %% [markdown] minutes=5 tags=["reading"]
# ## Reflect
#
# There is no check for these. Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab00.ten_groups
# **1.** Ten groups read the same topic. What does the tenth cost the broker in disk space?
#
# answer: Almost nothing: one number for each queue in `consumerOffset.json`, and a retry topic, which stays empty while
#   no listener fails. The messages are stored once, however many groups read them. (What the tenth group does cost is
#   reading: network and, if it is far behind, disk reads.)

# %% [reflection] lab00.every_message
# **2.** Billing reports its offset every 5 seconds. What would you gain, and what would it cost, to report after each
# message?
#
# answer: After a crash you would get back one message instead of seconds of them. It would cost a request for each
#   message, and the broker would note a new number each time. Duplicates would become fewer, not none: the process can
#   die between the work and the report. So the listener must cope with a message that it has seen in any case, and then
#   a report every few seconds is enough.

# %% [reflection] lab00.other_broker
# **3.** The colleague who was wrong had a good reason to be. Which broker had they used before?
#
# answer: Probably RabbitMQ with classic queues, or another broker whose queue belongs to one service: there a message is
#   removed when it is acknowledged, and a second service needs a queue of its own, which gets copies from the moment on
#   at which it is bound. Audit would have come too late.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# You have found one message in three files. [Lab 01](01a-what-the-broker-writes.ipynb) opens all of them, cuts the power,
# and reads what a real RocketMQ broker left behind. Other programs can read the same files: in
# [lab 10](10-spark-reads-the-broker.ipynb) Spark counts them. All labs: [index](index.ipynb).
