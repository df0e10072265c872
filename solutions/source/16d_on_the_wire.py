# %% [markdown] tags=["reading"]
# # 16d Your broker: on the wire
#
# ## Why
#
# Your store, pulls, groups and retries are called by mqlab, politely, in Python. A client is not polite. It opens a
# connection, sends a number and some text fields, and waits. Before the last hundred lines, five sentences:
#
# - "An idle group asks for messages all the time; that is its traffic."
# - "Each request gets its answer before the next one is read."
# - "No offset is offset 0."
# - "A client can tell that this is not RocketMQ."
# - "It has passed all checks, so it is right."
#
# None of the five is true. At the end, programs that know nothing of this course send and consume through your code.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need lab [00](00-a-messages-day.ipynb); the parts [16a](16a-a-log-and-its-queues.ipynb),
# [16b](16b-pull-and-hold.ipynb) and [16c](16c-groups-offsets-retries.ipynb) are yours where you kept them, and mqlab's
# own where not. Afterwards you can
#
# - say which six requests carry nearly all of a group's life, and what each answer promises;
# - write their handlers, and serve your broker to clients on real connections;
# - let random faults look for what no check has found, and read the small case that is left.

# %%
import contextlib
import importlib.util
import json
import time
from collections import Counter

import mqlab
from mqlab import CONSUME_SUCCESS, Message, play
from mqlab.cluster.connected import Recording
from mqlab.course import answer, check, hint, keep, mybroker, predict, reveal, show_me
from mqlab.course.given.lab16 import random_days, serving
from mqlab.course.widgets import explore
from mqlab.lab.parts import unit_of
from mqlab.lab.views import Bars, Table

no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [markdown]
# ## Six codes
#
# A request is a frame: a code, header fields as text, a body. RocketMQ has nearly two hundred codes. A group that reads
# two empty queues for a minute and a half needs a handful of them:


# %%
def idle(persist="5s"):
    def story(lab):
        lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        consumer = lab.push_consumer(
            "billing", persist_consumer_offset_interval=persist
        )
        consumer.subscribe("orders", "*")
        consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
        consumer.start()
        lab.run_for("90s")

    return story


# %%
def requests(lab):
    """How often each request reached the broker."""
    names = [
        row.about_text.split(" #")[0]
        for row in lab.journal.of("frame")
        if row.node == "broker-a"
    ]
    return Counter(name for name in names if not name.endswith("answer"))


# %% [prediction] lab16.idle_traffic
# Nothing is sent, nothing is consumed. Which request does this broker get most often?
#
# - pulls: pulls; a consumer asks all the time
#   > A pull is held for up to 15 s (lab 06b), so each queue needs four a minute.
# - heartbeats: heartbeats, to say that billing is alive
#   > One every 30 s, and one when it starts.
# - offsets: reports of offsets that have not changed
#   = Every five seconds, one for each queue and for the retry queue, whether or not anything moved.
# note: A pull is cheap as long as it is held. What repeats on a timer is what adds up, in every client and for every
#   queue.

# %%
quiet = play(idle(), seed=7, client=no_trace)
counted = requests(quiet)
kinds = {
    "PULL_MESSAGE": "pulls",
    "HEART_BEAT": "heartbeats",
    "UPDATE_CONSUMER_OFFSET": "offsets",
}
Bars(counted, unit="requests", title="90 idle seconds")

# %%
reveal("lab16.idle_traffic", kinds[max(kinds, key=lambda name: counted[name])])

# %% [answer] lab16.fewer_reports
# ### Your turn: fewer reports
#
# Increase `PERSIST`, in whole seconds, until this group sends fewer reports of offsets than pulls. How many reports does
# it send then in 90 seconds?
#
# wrong pulls: That is the number of pulls.
# wrong: Read the bar of UPDATE_CONSUMER_OFFSET in your own run.
# note: At work: what a crash repeats grows with this number (lab 04a). Thousands of groups with thousands of queues are
#   the reason to change it.

# %% tags=["parameter"]
PERSIST = 5

reporting = play(idle(f"{PERSIST}s"), seed=7, client=no_trace)
Bars(requests(reporting), unit="requests", title=f"a report every {PERSIST} s")

# %%
### BEGIN SOLUTION
reporting = play(idle("20s"), seed=7, client=no_trace)
answer("lab16.fewer_reports", requests(reporting)["UPDATE_CONSUMER_OFFSET"], reporting)
### STARTER
# answer("lab16.fewer_reports", ..., reporting)
### END SOLUTION

# %% [markdown]
# ## A table of handlers
#
# Your broker's front door is a dictionary: request code to function. `handler(broker, request)` returns a code, a
# dictionary of header fields, and a body. `broker` has your four parts and `now_ms()`; `request` has `fields`, `body`,
# `client`, `number`, `tags` and `answer`. All fields are text.
#
# | code | request | fields that you need |
# |---|---|---|
# | 310 | SEND_MESSAGE_V2 | `b` topic, `e` queue id; `unit_of` makes the unit |
# | 11 | PULL_MESSAGE | see below |
# | 36 | CONSUMER_SEND_MSG_BACK | `group`, `offset` (a place), `delayLevel`, `maxReconsumeTimes` |
# | 14, 15 | QUERY_, UPDATE_CONSUMER_OFFSET | `consumerGroup`, `topic`, `queueId`; `commitOffset` |
# | 38 | GET_CONSUMER_LIST_BY_GROUP | `consumerGroup` |

# %% [prediction] lab16.while_held
# A pull finds nothing. Your handler gives it to `broker.pulls`, which holds it, and returns None. What does the client
# get meanwhile?
#
# - empty: an empty answer, and the messages later
#   > There is one answer to a request. An empty one would end the pull.
# - nothing: nothing; other requests on the same connection are answered in between
#   = Each answer carries the number of its request, so answers may come in any order.
# - blocked: nothing, and the connection is blocked until the pull ends
#   > Then heartbeats of the same client would be blocked as well.
# note: None means *later*. The handler runs again with `request.answer` when a message comes, or the time is over.

# %%
held = play(idle(), seed=7, client=no_trace)
reached = [row.about_text for row in held.journal.of("frame") if row.node == "broker-a"]
pulls_begin = next(i for i, text in enumerate(reached) if "PULL_MESSAGE" in text)
others = [text for text in reached[pulls_begin:] if "HEART_BEAT" in text]
held.space_time(only=("PULL_MESSAGE", "HEART_BEAT"))

# %%
reveal("lab16.while_held", "nothing" if others else "blocked")

# %% [markdown]
# The fields of a pull, and what its answer must say:
#
# | field | meaning |
# |---|---|
# | `topic`, `queueId`, `queueOffset`, `maxMsgNums` | what is asked for |
# | `sysFlag` & 1, `commitOffset` | the group commits, on the way |
# | `sysFlag` & 2, `suspendTimeoutMillis` | the pull may be held that long |
# | answer code 0, 19, 20, 21 | found; nothing new; nothing wanted, continue; not an offset of this queue |
# | `nextBeginOffset`, `minOffset`, `maxOffset` | where to continue, and the queue's ends |
# | `suggestWhichBrokerId` | 0, the master |

# %% [exercise] lab16.handlers
# ### Exercise 1: your handlers
#
# Write the six functions. Answers that carry nothing are `(0, {}, None)`. Bodies are bytes: units one after another for
# a pull, JSON for the list of members, `{"consumerIdList": […]}`. A group without a committed offset gets code 22. A send
# is answered with `msgId` (`broker.message_id(place)`), `queueId` and `queueOffset`.
#
# hint: Begin with 15 and 14. They are one call of `broker.groups` each; turn `queueId` and `commitOffset` into numbers
#   with `int`.
# hint: A pull: commit if `sysFlag & 1`. Then `broker.pulls.pull(request.number, {"topic": …, "queue_id": …,
#   "queue_offset": …, "most": …, "tags": request.tags, "until_ms": …})`, where `until_ms` is now plus the suspend time
#   if `sysFlag & 2`, and now otherwise. If it returns None, return None.
# hint: When the pull runs again, `request.answer` is `(units, next_offset)`: do not commit or ask again. The code is 0
#   with units; else 21 if `queueOffset` is not within 0 and `maxOffset`; else 19 if the next offset is `queueOffset`;
#   else 20.
# note: You have written `SendMessageProcessor`, `PullMessageProcessor`, `ConsumerManageProcessor` in their smallest form.
#   Everything else of RocketMQ's two hundred codes is administration, transactions, POP, and replication.


# %%
# exercise: lab16.handlers
### BEGIN SOLUTION
def send(broker, request) -> tuple:
    fields = request.fields
    unit = unit_of(fields, request.body, request.client, broker.now_ms())
    queue_offset, place = broker.store.put(fields["b"], int(fields["e"]), unit)
    stored = {"queueId": int(fields["e"]), "queueOffset": queue_offset}
    return 0, {"msgId": broker.message_id(place), **stored}, None


def pull(broker, request) -> tuple | None:
    fields = request.fields
    topic, queue_id = fields["topic"], int(fields["queueId"])
    offset, flag = int(fields["queueOffset"]), int(fields["sysFlag"])
    result = request.answer
    if result is None:
        if flag & 1:
            commit(broker, request)
        waits_ms = int(fields["suspendTimeoutMillis"]) if flag & 2 else 0
        asked = {"topic": topic, "queue_id": queue_id, "queue_offset": offset}
        asked |= {"most": int(fields["maxMsgNums"]), "tags": request.tags}
        asked["until_ms"] = broker.now_ms() + waits_ms
        result = broker.pulls.pull(request.number, asked)
        if result is None:
            return None
    units, next_offset = result
    end = broker.store.max_offset(topic, queue_id)
    outside = not 0 <= offset <= end
    code = 0 if units else 21 if outside else 19 if next_offset == offset else 20
    ends = {"nextBeginOffset": next_offset, "minOffset": 0, "maxOffset": end}
    return code, {**ends, "suggestWhichBrokerId": 0}, b"".join(units)


def send_back(broker, request) -> tuple:
    fields = request.fields
    level = int(fields.get("delayLevel", 0))
    most = int(fields.get("maxReconsumeTimes", 16))
    place = int(fields["offset"])
    became = broker.retries.send_back(fields["group"], place, level, most)
    return (1 if became is None else 0), {}, None


def committed(broker, request) -> tuple:
    fields = request.fields
    queue = fields["topic"], int(fields["queueId"])
    offset = broker.groups.committed(fields["consumerGroup"], *queue)
    return (0, {"offset": offset}, None) if offset >= 0 else (22, {}, None)


def commit(broker, request) -> tuple:
    fields = request.fields
    queue = fields["topic"], int(fields["queueId"])
    broker.groups.commit(fields["consumerGroup"], *queue, int(fields["commitOffset"]))
    return 0, {}, None


def members(broker, request) -> tuple:
    listed = broker.groups.members(request.fields["consumerGroup"])
    return 0, {}, json.dumps({"consumerIdList": listed}).encode()


HANDLERS = {310: send, 11: pull, 36: send_back, 14: committed, 15: commit, 38: members}
### STARTER
# def send(broker, request): ...  # 310: store it, and say where
# def pull(broker, request): ...  # 11: messages, or None while the pull is held
# def send_back(broker, request): ...  # 36: code 1 if there is no such message
# def committed(broker, request): ...  # 14: code 22 if nobody knows
# def commit(broker, request): ...  # 15: a group is so far
# def members(broker, request): ...  # 38: who shares the queues
# HANDLERS = ...  # {310: send, 11: pull, 36: send_back, 14: …, 15: …, 38: …}
### END SOLUTION

# %%
check("lab16.handlers")

# %% [belief] lab16.flag_is_a_number
# question: A pull has sysFlag 3. Does it commit?
# claim: No, only sysFlag 1 does.
# refutation: Each bit is a question of its own: 3 is 1 and 2, so it commits and may be held. Test it with `&`.

# %% [belief] lab16.every_pull_commits
# question: A pull names a commitOffset. Is it committed?
# claim: Yes, that is why it is there.
# refutation: Only if the bit 1 of sysFlag is set. Without it the client has no offset, and the field says nothing.

# %% [belief] lab16.asked_again
# question: A held pull is woken, and its handler runs with request.answer. What does it do?
# claim: It asks MyPulls again.
# refutation: It sends the answer that is there. Asked again, the pull would be held a second time.

# %% [belief] lab16.handlers_answer_at_once
# question: A pull finds nothing. What does its handler return?
# claim: An answer without messages.
# refutation: None, while MyPulls holds the pull.

# %% [belief] lab16.sent_back_by_itself
# question: CONSUMER_SEND_MSG_BACK was answered with 0. Which process delivers the message again?
# claim: The client does.
# refutation: The broker, with the copy that MyRetries keeps. No other process remembers it.

# %% [belief] lab16.received_is_stored
# question: When may a send be answered with 0?
# claim: When the request has arrived.
# refutation: When the message is in the store: the shop forgets it then.

# %% [belief] lab16.place_is_the_offset
# question: A send is answered with queueOffset. Which number is that?
# claim: Where the message is in the log.
# refutation: Its number in its queue. The place is in the message id.

# %% [belief] lab16.pulls_commit
# question: A pull carries a commit as well. What is left for UPDATE_CONSUMER_OFFSET?
# claim: Nothing.
# refutation: Not every pull carries one, and a held pull is late. The client reports every 5 seconds.

# %% [belief] lab16.limits_of_its_own
# question: A client sends a message back with maxReconsumeTimes 2. How many retries does it get?
# claim: 16, as always.
# refutation: 2. A handler asks its parts for what the request says.

# %% [belief] lab16.list_of_one
# question: A member asks for the list of its group. Who is in it?
# claim: The member that asks.
# refutation: All members. Each divides the queues by the same list; with a list of one, each takes all queues.

# %% [markdown]
# Keep it: `keep("lab16.handlers")`. What follows works in a copy of your folder `mybroker`, so nothing that you try can
# harm it. `mybroker.fill()` has added mqlab's own for what is missing there.

# %%
home = serving.copy_of_mybroker(globals())
with contextlib.chdir(home):
    yours = mybroker.parts()
mybroker.table(home)

# %% [markdown]
# ## No offset is not offset 0
#
# Five orders wait. A *new* group starts with default settings, which say `CONSUME_FROM_LAST_OFFSET`. Its client asks
# your handler 14, which answers code 22.

# %% [prediction] lab16.twenty_two
# On RocketMQ such a group read *all* 200 orders of an hour-old topic (lab 04b). How many of the five does it read on
# your broker?
#
# - 5: five, as on RocketMQ
#   > RocketMQ's broker does not answer 22 here: where nothing was deleted yet, it answers *0*.
# - 0: none; it begins at the end
#   = Code 22 lets the client decide, and its setting says *last*. RocketMQ's answer 0 takes that decision away.
# - 1: one, the last
#   > *Last* means after the last: such a group begins with the next order.
# note: Two brokers, the same client, the same settings, and one answer of six makes the difference.


# %% tags=["setup"]
def joins_late(lab):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for number in range(5):
        shop.send(Message("orders", b"a book", keys=f"order-{number}"))
    lab.run_for("2s")
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders", "*")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    lab.run_for("20s")


# %%
def read_with(changed):
    """How many orders the new group reads; ``changed`` has handlers in place of yours."""
    table = {**yours.handlers, **changed} if yours.handlers else None
    with contextlib.chdir(home):
        parts = mybroker.parts(handlers=table)
    lab = play(joins_late, seed=7, client=no_trace, parts=parts)
    return len(lab.deliveries("billing", absences=False))


# %%
# While the exercise is open, this is mqlab's own broker, which answers as RocketMQ does.
reveal("lab16.twenty_two", read_with({}))

# %% [answer] lab16.answers_zero
# ### Your turn: answer as RocketMQ does
#
# Change `nothing_known` so that it answers offset 0 with code 0 for every group and queue. How many of the five
# orders does the new group read?
#
# wrong none: With code 22 it reads none. Return `(0, {"offset": 0}, None)`.
# wrong: Run the cell after your change, and read the number.
# note: RocketMQ answers 0 only while the queue still has its first message in memory; later it answers 22. So a new
#   group reads all of a young topic, and nothing of an old one.


# %% tags=["parameter"]
def nothing_known(broker, request):
    return 22, {}, None


new_group_reads = read_with({14: nothing_known})
new_group_reads

# %%
### BEGIN SOLUTION
new_group_reads = read_with({14: lambda broker, request: (0, {"offset": 0}, None)})
answer("lab16.answers_zero", 5, new_group_reads)
### STARTER
# answer("lab16.answers_zero", ..., new_group_reads)
### END SOLUTION

# %% [markdown]
# ## Real connections
#
# `mqlab serve --parts mybroker` puts your broker behind a TCP port, on this machine alone. `--record` writes every frame
# to a file, `--grpc` opens a second door for RocketMQ's 5.x clients.

# %% [prediction] lab16.notices
# A client that was written for RocketMQ connects to your broker. How does it notice that this is not RocketMQ?
#
# - version: by the version in each answer
#   > A frame has a version, which your handlers do not even see. Clients decide nothing by it here.
# - check: it asks the name server, which knows
#   > The name server knows an address and a list of topics. It does not check what a broker is.
# - never: it does not
#   = It sees frames. A broker that answers as RocketMQ does is RocketMQ to it.
# note: That is how brokers are replaced, tested and faked at work: by the interface, not by the name.


# %%
has_grpc = all(importlib.util.find_spec(name) for name in ("grpc", "rocketmq"))
grpc = ("--grpc", "127.0.0.1:0") if has_grpc else ()
frames = home / "frames.jsonl"
process, addresses = serving.served(home, "--record", frames, *grpc)
sorted(addresses)


# %%
def sells_and_bills(cluster):
    """Four orders through your broker: what the shop is told, and what billing gets."""
    queues = {"read_queue_nums": 2, "write_queue_nums": 2}
    cluster.admin.create_topic("orders", **queues, confirm=True)
    shop = cluster.producer("shop")
    orders = [Message("orders", b"a book", keys=f"order-{n}") for n in range(4)]
    told = [shop.send(order).send_status for order in orders]
    first = {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"}
    billing, got = cluster.push_consumer("billing", **first), []
    billing.subscribe("orders", "*")
    billing.on_messages(lambda orders, _: got.append(orders[0].keys) or CONSUME_SUCCESS)
    billing.start()
    wait_until(lambda: len(got) >= 4)
    return told, sorted(got)


# %%
def wait_until(condition, seconds=25):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)


# %% tags=["picture"]
with mqlab.connect(addresses["namesrv"]) as cluster:
    told, got = sells_and_bills(cluster)
works = set(told) == {"SEND_OK"} and len(got) >= 4
Table(
    {"the shop is told": status, "billing gets": key}
    for status, key in zip(told, got, strict=False)
)

# %%
reveal("lab16.notices", "never" if works else "check")

# %% [markdown]
# The client is mqlab's, and speaks RocketMQ's protocol over a socket. Apache's own Python client speaks another one,
# gRPC, and *pops* (lab 15a). If this computer has it, it uses your broker now:


# %%
def apaches_client(endpoint):
    """One order from Apache's Python client; then all orders, popped by it."""
    import rocketmq as apache

    config = apache.ClientConfiguration(endpoint, apache.Credentials())
    order = apache.Message()
    order.topic, order.body, order.keys = "orders", b"from Apache's", "order-9"
    shop = apache.Producer(config, ("orders",))
    shop.startup()
    shop.send(order)
    shop.shutdown()
    everything = {"orders": apache.FilterExpression("*")}
    return popped_by(apache.SimpleConsumer(config, "audit", everything, 5))


# %%
def popped_by(audit):
    audit.startup()
    orders = []
    wait_until(lambda: orders.extend(audit.receive(32, 30) or []) or len(orders) >= 5)
    for order in orders:
        audit.ack(order)
    audit.shutdown()
    return sorted(key for order in orders for key in order.keys)


# %%
popped = apaches_client(addresses["grpc"]) if has_grpc else "the client is not here"
popped

# %% [markdown]
# Java's client does the same: `make interop` in a clone of mqlab runs it on three brokers of other learners. Here are
# the frames that your handlers answered:

# %% tags=["nbval-ignore-output"]
process.terminate()
process.wait()
mine = ("SEND_MESSAGE_V2", "PULL_MESSAGE", "QUERY_CONSUMER_OFFSET")
rows = [row for row in Recording.open(frames).table() if row["frame"].endswith(mine)]
Table(rows[:12], columns=["at_ms", "frame", "opaque", "bytes", "fields"])

# %% [markdown]
# ## Random faults
#
# Your broker has passed every check. So had others that lost messages. `mqlab sim --mine --seeds 100` plays a hundred
# days that no author has thought of: kills, power cuts, lost frames, members that come and go. Here are the first few:

# %% tags=["parameter"]
SEEDS = 6

outcomes = random_days.days(home, SEEDS)
for outcome in outcomes:
    for wrong in outcome.wrong[:1]:
        print(f"seed {outcome.plan.seed}: {wrong}")
kept = sum(not outcome.wrong for outcome in outcomes)
Bars(
    {f"seed {day.plan.seed}": len(day.notes.sent) for day in outcomes},
    unit="messages acknowledged",
    title=f"{kept} of {SEEDS} days broke no promise",
)

# %% [prediction] lab16.found_by
# Your group class is replaced by one whose `save` does nothing. A promise is broken only if the broker crashes after a
# commit that was "saved". How many random days does it take until one notices?
#
# - hundreds: hundreds; the right accident is rare
#   > Days with crashes are drawn often, and every one after a few seconds of work notices.
# - few: fewer than ten
#   = Each day has several faults, and mqlab checks the promise at every start of the broker.
# - never: never; the clients report their offsets again
#   > Running clients do. The rule asks for what was saved, and a member that was restarted needs it.
# note: Random faults find what is wrong often. What goes wrong in one of a million days needs another method.

# %%
FORGETS = """
from mqlab.course.cases.lab16.right import RightGroups


class MyGroups(RightGroups):
    def save(self):
        pass
"""
forgetful = random_days.with_groups(home, FORGETS)
failed = random_days.first_broken(forgetful, most=40)
found_by = "never" if failed is None else "few" if failed.plan.seed < 9 else "hundreds"
print(f"day {failed.plan.seed}, {len(failed.plan.events)} events:\n{failed.wrong[0]}")

# %%
reveal("lab16.found_by", found_by)

# %% [markdown]
# That day is long. `shrink` leaves out one event after another, as long as the same kind of promise is broken:

# %%
small = random_days.made_small(forgetful, failed)
Table(
    {"at_ms": event["at"], "event": event["do"], "node": event.get("node", "shop-1")}
    for event in small.events
)

# %% [markdown]
# Here is the day in the time machine. It opens at the beginning. Its last stop is the step at which the promise was
# broken: go there, and back from it.

# %% tags=["explorer"]
with contextlib.chdir(forgetful):
    machine = explore(small.story, **small.settings)
machine

# %% [answer] lab16.how_small
# ### Your turn: another defect
#
# Change `DEFECT`: let `committed` add 1 to what the right class returns. Run the cell. How many events are left after
# shrinking?
#
# wrong all: That is the day before shrinking. Print the length of `left.events`.
# wrong: Read the number that the cell prints after your change.
# note: A defect that needs no fault leaves no fault: nothing but what makes the broker answer the question.

# %% tags=["parameter"]
DEFECT = """
from mqlab.course.cases.lab16.right import RightGroups


class MyGroups(RightGroups):
    def committed(self, group, topic, queue_id):
        return super().committed(group, topic, queue_id)
"""


# %%
def smallest(defect):
    """The broken day, and what is left of it."""
    folder = random_days.with_groups(home, defect)
    outcome = random_days.first_broken(folder, most=3)
    if outcome is None:
        return None, None
    left = random_days.made_small(folder, outcome)
    print(len(outcome.plan.events), "events, after shrinking", len(left.events))
    return outcome.plan, left


day, left = smallest(DEFECT)

# %%
### BEGIN SOLUTION
day, left = smallest(DEFECT.rstrip() + " + 1\n")
answer("lab16.how_small", len(left.events), day, left)
### STARTER
# answer("lab16.how_small", ..., day, left)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **One thread.** Your handlers run one after another. RocketMQ's run in pools of threads, and lock what they share.
# - **One broker, no slave.** Replication (HA), transactions, orderly locks and POP are mqlab's own around your parts.
# - **A hundred days.** Random faults that found nothing are not a proof. They are what Jepsen and TigerBeetle do, with
#   many more days.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | code to handler | `BrokerController.registerProcessor`, `NettyRemotingAbstract.processorTable` |
# | answers in any order | `opaque`, `ResponseFuture` |
# | send | `SendMessageProcessor`, `SendMessageRequestHeaderV2` |
# | pull, and the answer's code | `PullMessageProcessor`, `PullMessageResponseHeader` |
# | offsets, members | `ConsumerManageProcessor` |
# | offset 0 of a young queue | `ConsumerManageProcessor.queryConsumerOffset` |

# %% [markdown] tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab16.which_promise
# **1.** Which of your 400 lines must not change without a review, and why?
#
# answer: Those that decide what is written before an answer: `put` before SEND_OK, the copy before "retry", `sync` in
#   `flush`, and the offset that is saved unchanged. A mistake elsewhere makes the broker slow or repeats a message. A
#   mistake there loses one without notice.

# %% [reflection] lab16.what_is_left
# **2.** What would you need for a second machine, and which promise changes first?
#
# answer: A slave that copies the log, and an answer that waits for it (SYNC_MASTER). Then "SEND_OK is stored" means two
#   machines. No log says which of them is the master after a failure: that needs a controller, and so consensus.

# %% [markdown] tags=["reading"]
# ## Next
#
# You have written a broker that unmodified clients use, and you have broken it on purpose. What is left is to read the
# one that you have imitated: each *How RocketMQ does it* of these labs names the class. All labs:
# [index](index.ipynb).
