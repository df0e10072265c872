# %% [markdown] tags=["reading"]
# # 02c Queue numbers: sixteen queues, then eight
#
# ## Why
#
# A week later the topic has sixteen queues, and eight would do. "We made sixteen out of eight last spring, so we can
# make eight out of sixteen. It is one command." At noon an operator types it. For half a minute some orders cannot be
# sent. In the evening 148 orders are missing from the day's report, in queues that no consumer reads any more. And for
# some other orders *shipped* overtook *paid*.
#
# - "A topic with permission 4 takes no message."
# - "The orders that were in queues 8 to 15 move, the others stay where they are."
# - "The numbers are changed, so everybody uses the new ones."

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 02a](02a-who-knows-what.ipynb). Afterwards you can
#
# - write a selector (队列选择器) that other programs agree with;
# - say what a topic's permission and its two numbers of queues change, and for whom;
# - take queues away from a running topic without losing a message or a sale;
# - start a server of your own and send to it.

# %%
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mqlab
from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.errors import MqlabError
from mqlab.lab.views import Bars, Table
from mqlab.rocketmq.wire.java_hash import string_hash as java_hash

# %% [markdown]
# ## One order, one queue
#
# Only a queue keeps messages in order, so all events of an order go to the queue that a **selector** computes from its
# id. RocketMQ's `SelectMessageQueueByHash`: the absolute value of the id's Java hash, modulo the number of queues.


# %% tags=["parameter"]
no_trace = {"enable_trace": False}  # nothing but orders in the log


def order(number, step="created"):
    return Message("orders", b"a book", tags=step, keys=f"order-{number}")


def sends_by_hash(lab, queues=8, orders=400):
    lab.create_topic("orders", read_queue_nums=queues, write_queue_nums=queues)
    shop = lab.producer("shop")
    lab.queue = {}
    for number in range(orders):
        result = shop.send(order(number), selector="HASH", arg=f"order-{number}")
        lab.queue[f"order-{number}"] = result.message_queue.queue_id


# %% [prediction] lab02.moves
# A topic with eight queues gets four more. For which share of the orders does the next event go to **another** queue?
#
# - none: none; the new queues are for new orders
#   > The selector does not know which orders are new. It divides by 12 now.
# - third: a third, so that the new queues get their share {lab02.only_removed}
#   > Orders in queues that stay move as well: the remainder is computed again for every order, and most get another
#   > one.
# - most: two thirds
#   = A remainder modulo 8 and one modulo 12 agree for only a third of all numbers.
# note: With 8 and 9 it would be eight of nine. As long as old events wait in the old queue, new ones may overtake them.

# %%
eight = play(sends_by_hash, seed=7, client=no_trace).queue
twelve = play(lambda lab: sends_by_hash(lab, 12), seed=7, client=no_trace).queue
moved_now = sum(eight[one] != twelve[one] for one in eight)
Bars(
    {"stay": len(eight) - moved_now, "move": moved_now},
    unit="orders",
    title="8 queues, then 12",
)

# %%
share = moved_now / len(eight)
reveal("lab02.moves", "none" if share < 0.05 else "third" if share < 0.5 else "most")

# %% [exercise] lab02.selector
# ### Exercise 1: one queue per order, and which orders move
#
# Write two functions.
#
# - `selector(queues, message, arg)` is called for each event of the shop; `arg` is the order's id. It returns one of
#   `queues`. The payment service is a Java program that uses `SelectMessageQueueByHash`, and both must choose the same
#   queue. `java_hash(text)` is Java's `hashCode`, which may be negative.
# - `moved(orders, before, after)` gets order ids and two numbers of queues. It returns a list of the orders whose queue
#   differs after the change.
#
# hint: The number of queues is `len(queues)`. Two programs that share only the order's id must compute the same queue.
# hint: `abs(java_hash(arg)) % len(queues)` is the index in the list. Without `abs`, Python and Java divide negative
#   numbers differently.
# hint: For `moved`, compute the index twice, with `before` and with `after`, and keep the orders for which they differ.
# note: `SelectMessageQueueByHash.select`. (It divides first and takes `Math.abs` of Java's remainder, with the same
#   result.) At work: drain keyed messages before you change the number of queues; and never use Python's
#   `hash("order-1")`, which differs in each process.

# %% tags=["picture"]
Table(
    {
        "order": one,
        "java_hash": java_hash(one),
        "queue of 8": eight[one],
        "of 12": twelve[one],
    }
    for one in list(eight)[:5]
)


# %%
# exercise: lab02.selector
def selector(queues, message, arg):
    """One of the queues, the same for all events of an order."""
    ### BEGIN SOLUTION
    return queues[abs(java_hash(arg)) % len(queues)]
    ### END SOLUTION


def moved(orders, before, after):
    """The orders that have another queue when the number of queues changes."""
    ### BEGIN SOLUTION
    return [
        one
        for one in orders
        if abs(java_hash(one)) % before != abs(java_hash(one)) % after
    ]
    ### END SOLUTION


# %%
check("lab02.selector")

# %% [belief] lab02.one_queue
# question: How do all events of an order get into one queue?
# claim: All orders go to one queue.
# refutation: One queue for all orders keeps everything in order, but has only one reader. Spread the orders, each by
#   its own id.

# %% [belief] lab02.stays
# question: The topic has another number of queues. Where do the next events of an old order go?
# claim: To the queue that the order always had.
# refutation: No table says where an order was. RocketMQ's selector divides by the current number of queues, and so must
#   yours, or the two programs disagree.

# %% [belief] lab02.any_hash
# question: Which hash should a selector use?
# claim: Any, if equal ids get equal numbers.
# refutation: The one that all producers of the topic use. A program with another hash puts events of the same order
#   into another queue.

# %% [belief] lab02.hash_is_positive
# question: hash is Java's. Is hash % queues the number of a queue?
# claim: Yes, a number from 0 on.
# refutation: A Java hash may be negative, and then Java's % is negative. Drop the sign first, as
#   `SelectMessageQueueByHash` does.

# %% [answer] lab02.fewest_move
# ### Your turn: the smallest change
#
# The topic needs more than eight queues. Change `AFTER` (from 9 to 32) so that as **few** orders move as possible.
# Answer with that number of queues.
#
# wrong nine: 9 is the smallest change of the number, but it moves eight of nine orders.
# wrong: Try numbers that are related to 8.
# note: With twice the number, about half of the orders stay. If you need more queues, double them.

# %% tags=["parameter"]
AFTER = 12

other = {one: abs(java_hash(one)) % AFTER for one in eight}
print(sum(eight[one] != other[one] for one in eight), "of", len(eight), "orders move")

# %%
### BEGIN SOLUTION
AFTER = 16
other = {name: abs(java_hash(name)) % AFTER for name in eight}
answer("lab02.fewest_move", AFTER, eight, other)
### STARTER
# answer("lab02.fewest_move", ..., eight, other)
### END SOLUTION

# %% [markdown]
# ## What a permission does
#
# A topic has a permission (权限) on each broker: 4 to read, 2 to write, 6 for both. An operator wants to close it to new
# orders, and sets 4.


# %% tags=["parameter"]
def billing_reads(lab, takes="1ms", **settings):
    def billing(messages, context):
        context.sleep(takes)
        return CONSUME_SUCCESS

    consumer = lab.push_consumer("billing", **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(billing)
    consumer.start()
    lab.run_for("5s")


# %%
def tells(shop, message):
    try:
        return shop.send(message).send_status
    except MqlabError as error:
        return error.text.partition(":")[0]


# %%
def no_more(lab, perm=4):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    shop = lab.producer("shop")
    billing_reads(lab)
    shop.send(order(0))
    lab.admin.update_topic("orders", perm=perm)
    lab.said = []
    for number in range(1, 6):
        told = tells(shop, order(number))
        lab.said.append({"after (s)": (number - 1) * 12, "the shop is told": told})
        lab.run_for("12s")
    lab.read = [row.status for row in lab.deliveries("billing")].count(CONSUME_SUCCESS)


# %% [prediction] lab02.perm
# The shop sends another order at once, and then one every 12 s. What happens to them?
#
# - refused: the broker refuses all of them; the topic is not writable
#   > The broker stores what arrives. The permission is part of the route, and it is the client that obeys it.
# - late: the first ones are stored; once the shop has fetched the route, it finds no queue to send to
#   = A permission takes effect at a client when it next fetches the route. Until then the broker stores what it sends.
# - all: all are stored; a permission is for new topics
#   > The shop obeys it as soon as it knows.
# note: To keep messages out **now**, stop the producers.
# later: An operator takes the write permission from a topic (`perm=4`). The shop sends an order at once, and then
#   one every 12 s. What happens to them?

# %% tags=["picture"]
lab = play(no_more, seed=7, client=no_trace)
Table(lab.said, title=f"permission 4; billing has read {lab.read}")

# %%
ok = [row["the shop is told"] == "SEND_OK" for row in lab.said]
reveal("lab02.perm", "all" if all(ok) else "late" if ok[0] else "refused")

# %% [answer] lab02.perm_two
# ### Your turn: to write and not to read
#
# Set `PERM` so that the shop can keep sending, and billing soon gets nothing more. Answer with the number.
#
# wrong four: 4 allows reading, not writing.
# wrong both: 6 allows both.
# wrong: It is one of 0, 2, 4 and 6.
# note: With 2, orders wait in their queues until 6 is set again. What billing had already read stays read.

# %% tags=["parameter"]
PERM = 4

kept = play(lambda lab: no_more(lab, PERM), seed=7, client=no_trace)
print([row["the shop is told"] for row in kept.said], kept.read, "read")

# %%
### BEGIN SOLUTION
PERM = 2
kept = play(lambda lab: no_more(lab, PERM), client=no_trace, seed=7)
answer("lab02.perm_two", PERM, kept)
### STARTER
# answer("lab02.perm_two", ..., kept)
### END SOLUTION

# %% [markdown]
# ## Sixteen queues, then eight
#
# A topic has **two** numbers, and both are in the route. Producers write to queues 0 to `write_queue_nums` - 1,
# consumers read queues 0 to `read_queue_nums` - 1.


# %% tags=["parameter"]
def selling(lab, takes="1100ms"):
    lab.create_topic("orders", read_queue_nums=16, write_queue_nums=16)
    shop = lab.producer("shop")
    for number in range(200):
        shop.send(order(f"old-{number}"))
    billing_reads(
        lab, takes, consume_thread_min=4, consume_thread_max=4, pull_batch_size=4
    )
    lab.shop = lab.traffic(shop, rates=[("0s", 2)], message=order)
    lab.run_for("25s")


# %%
def consumed(lab):
    rows = lab.deliveries("billing")
    return {row.msg_id for row in rows if row.status == CONSUME_SUCCESS}


def closing(lab):
    lab.run_for("40s")
    lab.shop.stop()
    lab.run_for("3m")
    stored = lab.store().messages("orders")
    lab.unread = [one for one in stored if one.msg_id not in consumed(lab)]


# %%
def one_command(lab):
    selling(lab)
    lab.admin.update_topic("orders", read_queue_nums=8, write_queue_nums=8)
    closing(lab)


# %% [prediction] lab02.reverse
# An operator runs `update_topic(read_queue_nums=8, write_queue_nums=8)` while the shop sells and billing has a backlog.
# What goes wrong?
#
# - nothing: nothing; shrinking is the reverse of growing
#   > A new queue is empty, so its absence harms nothing. A queue that goes may hold messages, and producers may still
#   > know it.
# - sends: for up to half a minute some sends fail
#   > Yes, and that is the half that gets noticed.
# - unread: what is in queues 8 to 15 is not read any more
#   > Yes, and sends fail as well.
# - both: both of these
#   = The shop sends to the removed queues until it next fetches the route. Billing stops reading them when it fetches
#   = its own.
# note: Nothing is deleted: the messages are in the log, in queues that no route names. Set the old number of read
#   queues within the three days that the log is kept, and they can be read again.

# %%
lab = play(one_command, seed=7, client=no_trace)
Bars(
    {"sends that failed": lab.shop.failed, "orders that nobody reads": len(lab.unread)},
    title="one command",
)

# %%
failing, lost = lab.shop.failed > 0, len(lab.unread) > 0
happened = (
    "both"
    if failing and lost
    else "sends"
    if failing
    else "unread"
    if lost
    else "nothing"
)
reveal("lab02.reverse", happened)

# %% [markdown]
# The group's lag does not show the unread orders, because it is a sum over the queues of the route:

# %% tags=["picture"]
queues = sorted({one.queue_id for one in lab.unread})
Table(
    [
        {
            "unread in queues": ", ".join(map(str, queues)),
            "orders": len(lab.unread),
            "lag of billing": lab.admin.examine_consume_stats(
                "billing", "orders"
            ).total_diff,
        }
    ]
)

# %% [answer] lab02.back_again
# ### Your turn: get them back
#
# Set `READ` so that billing reads what was stranded. The cell waits for two minutes. How many orders are unread after
# that?
#
# wrong before: That is the number before the repair.
# wrong: Run the cell with a READ that includes queues 8 to 15 again.
# note: The group's offsets of these queues were kept, so nothing is read twice and nothing is left out.

# %% tags=["parameter"]
READ = 8


def repaired(lab):
    one_command(lab)
    lab.admin.update_topic("orders", read_queue_nums=READ)
    lab.run_for("2m")
    lab.left = sum(one.msg_id not in consumed(lab) for one in lab.unread)


repair = play(repaired, seed=7, client=no_trace)
print(repair.left, "orders are still unread")

# %%
### BEGIN SOLUTION
READ = 16
repair = play(repaired, client=no_trace, seed=7)
answer("lab02.back_again", repair.left, repair)
### STARTER
# answer("lab02.back_again", ..., repair)
### END SOLUTION

# %% [exercise] lab02.scale_in
# ### Exercise 2: no failed send, no message left behind
#
# Write the story `scale_in(lab)`. When it begins, the shop sells two orders a second on `orders`, and two groups read:
# `billing` and `reports`. Either may have a backlog. When it returns, the topic has eight queues to write and eight to
# read. The story has ten minutes, and must return at most 90 seconds after queues 8 to 15 are drained.
#
# Use `lab.admin` and `lab.run_for`; do not set offsets. No send may fail, and both groups must consume every order. The
# check plays three such days, in about five seconds.
#
# hint: Which of the two numbers must go first? Think of a message that is in queue 12.
# hint: After the write number has changed, the shop may send to queue 12 for another 30 s. After that, nothing arrives
#   in queues 8 to 15 any more, and both groups will finish reading them.
# hint: `lab.admin.examine_consume_stats(group, "orders").queues` has a row per queue with `message_queue`,
#   `broker_offset` and `consumer_offset`. Check every few seconds whether the two offsets are equal in queues 8 to 15
#   of both groups.
# note: `updateTopic` with `-w 8`, then `consumerProgress`, then `-r 8`. Brokers take messages for queues below the
#   larger of the two numbers (`AbstractSendMessageProcessor.msgCheck`), which makes the first step safe. At work: list
#   the groups with `queryTopicConsumeByWho`; a forgotten group also has a backlog.

# %% tags=["picture"]
lab = play(selling, seed=7, client=no_trace)
rows = [row for row in lab.progress("billing") if row.topic == "orders"]
Bars({f"queue {row.queue_id}": row.lag for row in rows}, unit="orders behind")


# %%
# exercise: lab02.scale_in
def scale_in(lab):
    """Eight queues of sixteen; nothing is lost, no send fails."""
    ### BEGIN SOLUTION
    lab.admin.update_topic("orders", write_queue_nums=8)
    lab.run_for("35s")  # until the shop has asked for the route
    while behind(lab):
        lab.run_for("5s")
    lab.admin.update_topic("orders", read_queue_nums=8)


def behind(lab):
    """What the two groups have not read of queues 8 to 15."""
    rows = [
        row
        for group in ("billing", "reports")
        for row in lab.admin.examine_consume_stats(group, "orders").queues
    ]
    return sum(
        row.broker_offset - row.consumer_offset
        for row in rows
        if row.message_queue.queue_id >= 8
    )
    ### END SOLUTION


# %%
check("lab02.scale_in")

# %% [belief] lab02.numbers_alone
# question: How does a topic of sixteen queues get eight?
# claim: One command sets both numbers; shrinking is the reverse of growing.
# refutation: A queue that goes may be written to for another 30 s, and what is in it must be read first. Set the write
#   number, wait until the shop has fetched the route and both groups have read queues 8 to 15, and then set the read
#   number.

# %% [belief] lab02.routes_at_once
# question: The write number is 8. Which process still writes to queue 12?
# claim: None.
# refutation: The shop fetches the route every 30 s, and writes to queue 12 until then. Wait that long before the read
#   number changes, however empty the queues look.

# %% [belief] lab02.drained_somewhere
# question: When may the read queues go?
# claim: When the producers have stopped using them; or when the group that I look at has read them.
# refutation: A queue may go when every group has read all of it. Compare the offsets of both groups in queues 8 to 15
#   instead of waiting by the clock.

# %% [belief] lab02.lag_of_all_queues
# question: When are the queues that go drained?
# claim: When the lag of both groups is 0.
# refutation: Under traffic the lag of the queues that stay is never 0 for long. Only the lag of the queues that go must
#   be 0.

# %% [belief] lab02.no_writer_is_done
# question: No producer writes to queues 8 to 15 any more. Is the topic smaller?
# claim: Yes, the rest happens on its own.
# refutation: The members keep reading sixteen queues until read_queue_nums is also 8, and you may set that only when
#   those queues are drained.

# %% [markdown]
# ## Outside a Lab
#
# `mqlab serve` starts a name server and a broker in a process of their own, over TCP and in real time, for any RocketMQ
# client. Here on free ports:


# %% tags=["parameter"]
def server(folder):
    """A process with a name server and a broker, and the name server's address."""
    ports = Path(folder) / "ports.json"
    free = ["--namesrv", "127.0.0.1:0", "--broker", "127.0.0.1:0"]
    command = [sys.executable, "-m", "mqlab.cli", "serve", *free, "--port-file", ports]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)
    until = time.monotonic() + 30
    while not (ports.exists() and ports.read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    return process, json.loads(ports.read_text())["namesrv"]


# %% [prediction] lab02.served
# The shop sends an order. Then the server's process is killed (`kill -9`), and the shop sends another one. What does
# that send return, and how soon?
#
# - waits: a time-out, after three seconds
#   > That would be true if the machine had lost its power. The operating system closes the connections of a killed
#   > process.
# - at_once: an error, at once
#   = The connection is closed, a new one is refused, and there is no other broker to try.
# - ok: SEND_OK; the client keeps the order and sends it when the server is back
#   > A producer keeps nothing. That is what the outbox of the second part is for.
# note: The same code follows the same rules: what you have seen in simulated time holds here.

# %% tags=["picture"]
folder = tempfile.TemporaryDirectory()
process, address = server(folder.name)
with mqlab.connect(address) as cluster:
    shop = cluster.producer("shop")
    said = [tells(shop, order(1))]
    process.kill()
    process.wait()
    began = time.monotonic()
    said.append(tells(shop, order(2)))
    waited = time.monotonic() - began
folder.cleanup()
Table([{"order": 1, "told": said[0]}, {"order": 2, "told": said[1].partition(",")[0]}])

# %%
happened = "ok" if said[1] == "SEND_OK" else "waits" if waited > 2 else "at_once"
reveal("lab02.served", happened)

# %% [markdown]
# In a terminal, `mqlab serve --store run` keeps its messages in a folder; `mqlab console 127.0.0.1:9876` shows them
# (`docs/serving.md`).

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Two orders a second** do not show how long a drain takes in your cluster. That depends on the backlog of the
#   slowest group.
# - **The order of events** across a change of queues is not kept, even by the safe way: *paid* may wait in queue 12
#   while *shipped* is read from queue 4. If you need it, stop the producers, drain, change, and start them again.
# - **One broker.** With several, set the numbers on each, one after another.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the selector by hash | `SelectMessageQueueByHash` |
# | queues to write, queues to read | `TopicConfig.writeQueueNums`, `readQueueNums`; `topicRouteData2TopicPublishInfo`, `…SubscribeInfo` |
# | a broker takes queues below the larger number | `AbstractSendMessageProcessor.msgCheck` |
# | a pull needs a queue below the read number | `PullMessageProcessor` |
# | permissions | `PermName`: 4 read, 2 write, 1 inherit; obeyed by clients |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | "expansion": 16 queues become 8 | a shrink; writing ends first, reading last |
# | wait until the queues are empty | and for at least 30 s, and for all groups |
# | perm=4 stops writes at once | when producers next fetch the route; the broker does not check it |
# | more queues are harmless | not for keyed messages: most keys move |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab02.growing
# **1.** And eight to sixteen? What can go wrong when a topic grows?
#
# answer: Producers may learn of the new queues up to 50 s before consumers read them, so orders wait a little. A group
#   reads a new queue from its beginning, because its first message is young. To be safe, set the read number first and
#   the write number half a minute later. Keyed messages move, as when the topic shrinks.

# %% [reflection] lab02.forgotten
# **2.** A topic was shrunk the wrong way a week ago. How do you find out?
#
# answer: From the queue files: `mqlab inspect` (or the directory `consumequeue/orders`) shows queues 8 to 15 with a
#   maximal offset beyond the group's. The lag does not show it. Setting the read number back recovers the messages that
#   retention has not deleted yet.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Lab 03](03a-who-reads-which-queue.ipynb) asks which member reads a message. All labs: [index](index.ipynb).
