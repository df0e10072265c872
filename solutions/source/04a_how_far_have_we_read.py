# %% [markdown] tags=["reading"]
# # 04a Offsets: how far have we read
#
# ## Why
#
# 11:40. One order hangs, number 2101. The two thousand orders after it are paid, and no alarm sounds. At 11:52 an
# operator restarts billing for a new certificate. At 11:53 two thousand customers are charged a second time.
#
# The meeting next morning knows why:
#
# - "The offset is the last message consumed. It was at 4101, and the restart lost it."
# - "When the listener has returned, the broker knows. It must have forgotten."
# - "The broker got no acknowledgement and sent everything again."
# - "There is a limit of two thousand messages, which stops such a thing."
# - "A synchronous commit would have waited for the broker's answer."
#
# None of the five is true. The number behind this incident is kept in three places. In the [second
# part](04b-beginning-again.ipynb) an operator moves it by hand.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb). Afterwards you can
#
# - name a group's offset after any history, and say which process knows it;
# - say exactly which messages are redelivered when a consumer, a broker or both crash;
# - write the class that decides it, and run it in a consumer that is killed at any step.

# %%
from mqlab import CONSUME_SUCCESS, Message, MessageQueue, play
from mqlab.course import (
    answer,
    check,
    hint,
    mybroker,
    old_questions,
    predict,
    reveal,
    show_me,
)
from mqlab.course.widgets import crash_matrix, offset_strip
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.timeline import after
from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue

# %%
old_questions("lab04")

# %% [markdown]
# ## One number
#
# Each message of a queue has a number, its queue offset (队列位点). How far a group has read is one more number per queue:
# the group's offset (消费位点). Here an order says how long it takes:


# %% tags=["setup"]
def work(messages, context):
    context.sleep(messages[0].properties.get("takes", "20ms"))
    return CONSUME_SUCCESS


def send_orders(lab, *takes):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for duration in takes:
        shop.send(Message("orders", b"a book", properties={"takes": duration}))


def billing(lab, **settings):
    consumer = lab.push_consumer("billing", **settings)
    consumer.subscribe("orders", "*")
    consumer.on_messages(work)
    consumer.start()
    return consumer


# %% [prediction] lab04.one_past
# Twelve orders, 0 to 11, and all of them are done. What is the group's offset?
#
# - 11: 11, the last order that was consumed {lab04.newest_consumed}
#   > The offset is where to resume, not what was read last: with 11, order 11 would be redelivered.
# - 12: 12, the next order to read
#   = Both numbers are one past the end: the group's offset, and the queue's own largest offset, at which the next order
#   = will be stored.
# - 0: 0; an offset moves when a member leaves
#   > It moves with every order that is done. Leaving only triggers an immediate report.
# note: A group that has read everything has an offset equal to the queue's largest, and a lag of 0.


# %%
def all_done(lab):
    send_orders(lab, *["200ms"] * 12)
    billing(lab)
    lab.run_for("20s")


no_trace = {"enable_trace": False}  # nothing but orders in the log
lab = play(all_done, seed=7, client=no_trace)
lab.how_far("billing", "orders")

# %%
orders = next(row for row in lab.progress("billing") if row.topic == "orders")
print("the queue's largest offset:", orders.broker_offset)
print("the group's offset:        ", orders.consumer_offset, "  lag:", orders.lag)
reveal("lab04.one_past", orders.consumer_offset)

# %% [markdown]
# Elsewhere you may read that a pull's `nextBeginOffset` is "the consumer's offset + 1". Pull the twelve orders by hand
# and compare:

# %%
queue = MessageQueue("orders", "broker-a", 0)
puller = lab.pull_consumer("operator")
pulled = puller.pull(queue, "*", 0, max_nums=32)
print(
    "nextBeginOffset",
    pulled.next_begin_offset,
    "  the group's offset",
    orders.consumer_offset,
)

# %% [markdown]
# ## The smallest that is not done
#
# Billing has twenty threads, so it works on the twelve orders at the same time, and they end in any order. Now order 3
# hangs.

# %% [prediction] lab04.smallest
# Orders 0 to 2 and 4 to 11 are done, and order 3 is still in the listener. All twelve came with one pull. What is the
# group's offset?
#
# - 12: 12; the last order that was consumed is 11 {lab04.last_consumed}
#   > A restart would then begin at 12, and order 3 would never be paid.
# - 3: 3, the smallest that is not done
#   = Orders done after order 3 do not count yet.
# - 0: 0; a pull counts when all of it is done {lab04.smallest_of_pull}
#   > Pulls do not matter for the offset. Billing takes the smallest of all orders of the queue that it still holds,
#   > whichever pull brought them.
# note: One number cannot say "all but one". It says how far everything is done without a gap.


# %%
def one_hangs(lab):
    takes = ["200ms"] * 12
    takes[3] = "40s"
    send_orders(lab, *takes)
    billing(lab)
    lab.run_for("20s")


lab = play(one_hangs, seed=7, client=no_trace)
lab.how_far("billing", "orders")

# %%
stands_at = lab.how_far("billing", "orders").standings[0].at_broker
reveal("lab04.smallest", stands_at)

# %% [markdown]
# After 40 seconds order 3 is also done:

# %%
lab.run_for("30s")
lab.how_far("billing", "orders")

# %% [markdown]
# The class that decides this is `ProcessQueue`; a consumer has one for each queue that it owns. Pulled messages are put
# in, finished messages are removed, and each removal returns the offset the group may move to:

# %% tags=["picture"]
cache = ProcessQueue()
cache.put_message(pulled.msg_found_list[:4])
for number in (1, 2, 0, 3):
    offset = cache.remove_message([pulled.msg_found_list[number]])
    print("order", number, "is done: the group may move to", offset)

# %% [markdown]
# When nothing is left, the answer is one past the largest that was put in: 4, not 3.

# %% [exercise] lab04.committed
# ### Exercise 1: the offset after any history
#
# `history` is what happened in one queue, as a list of pairs:
#
# - `("pulled", 7)`: billing has received order 7;
# - `("done", 7)`: order 7 is finished;
# - `("report", 0)`: billing reports its offset to the broker (the 0 means nothing).
#
# At the beginning the broker has `start`. If billing filters by tag, some offsets are never pulled. Which offset does
# the broker have at the end?
#
# hint: The broker knows only the last report. Orders finished after the last report do not count.
# hint: Go through the history with two sets, pulled and done. At each report: what is pulled and not done?
# hint: `left = pulled - done`; at a report: `offset = min(left)` if something is left, else `max(pulled) + 1`, and
#   `start` as long as nothing was pulled. Return the offset of the last report, or start.
# note: This one number is all that survives of billing's knowledge. At work: if a lag does not shrink while messages
#   are consumed, one message is not done; the offset says which.


# %%
# exercise: lab04.committed
def committed(start, history):
    """The offset that the broker has at the end of a history of (what, offset) pairs."""
    ### BEGIN SOLUTION
    held, pulled, done = start, set(), set()
    for what, offset in history:
        if what == "pulled":
            pulled.add(offset)
        elif what == "done":
            done.add(offset)
        elif pulled:
            held = min(pulled - done, default=max(pulled) + 1)
    return held
    ### END SOLUTION


# %%
check("lab04.committed")

# %% [belief] lab04.counts
# question: What does an offset count?
# claim: Consumed messages.
# refutation: An offset does not count messages: it is a position in the queue.

# %% [belief] lab04.without_gaps
# question: Order 5 is done. Which offset does billing wait for next?
# claim: 6.
# refutation: The offset jumps over what was never pulled, because a filter leaves gaps. The next offset to wait for is
#   the smallest one that was pulled and is not done.

# %% [markdown]
# ## Who knows it, and since when
#
# The offset moves in billing's memory as soon as an order is done.

# %% [prediction] lab04.report
# A listener has returned `CONSUME_SUCCESS`. When does the broker know?
#
# - at once: billing acknowledges each order, and the broker answers {lab04.known_at_once}
#   > No request does that: RocketMQ has no acknowledgement per message. Billing reports one offset every 5 seconds.
# - 5: within 5 seconds, when billing reports its offsets
#   = A timer of the consumer, `persist_consumer_offset_interval`; the first report comes 10 seconds after its start.
# - 15: when the next pull asks for more, after 15 seconds at most
#   > A pull also carries the offset, and that counts as a report. But the timer comes first.
# note: A report is one number per queue, however many orders were done in between.


# %%
def one_after_the_other(lab):
    send_orders(
        lab, *[f"{1 + 2 * number}s" for number in range(12)]
    )  # 1 s, 3 s, 5 s, …
    billing(lab)
    lab.run_for("32s")


# %%
places = {
    "offset.updated": "in memory",
    "offset.committed": "at the broker",
    "offset.persisted": "in the file",
}


def moves(lab):
    """Every move of the offset in orders, and each write of the broker's file."""
    for kind, place in places.items():
        for step, values in lab.journal.changes(kind):
            topic = getattr(values.get("queue"), "topic", values.get("topic", "orders"))
            if topic == "orders":
                offset = values.get("commit_offset", values.get("queue_offset"))
                ms = step.now_ms - lab.began_ms
                yield {"ms": ms, "after": after(ms), "where": place, "next": offset}


# %% tags=["picture"]
lab = play(one_after_the_other, seed=7, client=no_trace)
rows = sorted(moves(lab), key=lambda row: row["ms"])
Table(rows, columns=["after", "where", "next"])

# %%
in_memory = {row["next"]: row["ms"] for row in rows if row["where"] == "in memory"}
at_broker = [row for row in rows if row["where"] == "at the broker"]
late = [row["ms"] - in_memory[row["next"]] for row in at_broker[1:]]
waits_s = max(late) / 1000
print(f"a done order is reported after {waits_s:.1f} s at most; the first report apart")
reveal("lab04.report", 5 if waits_s <= 5 else 15)

# %% [markdown]
# The third place is a file that the broker writes every 5 seconds if something has changed, `consumerOffset.json`:

# %%
print((lab.directory / "broker-a" / "config" / "consumerOffset.json").read_text())

# %% [markdown]
# The report, `UPDATE_CONSUMER_OFFSET`, is one-way: billing does not learn whether it arrived. Elsewhere you may read
# that the answer to a commit has `minOffset`, `maxOffset` and `nextBeginOffset`; those three are in the answer to a
# **pull**:

# %% tags=["picture"]
report = lab.journal.of("offset.committed")[0]
lab.space_time(report.cause, report.step + 1)

# %%
answers = [step.about for step in lab.journal.of("message.pulled")]
print(answers[0].ext_fields)

# %% [markdown]
# Does a synchronous commit wait for an answer? Measure a lite pull consumer's `commit_sync`:

# %%
lab = play(all_done, seed=7, client=no_trace)
lite, table = lab.lite_pull_consumer("report"), lab.broker("broker-a").offset_table
lite.start()
lite.assign([queue])
lite.seek(queue, 0)
read, before_ms = len(lite.poll()), lab.now_ms
lite.commit_sync()
print("messages read:", read, "  commit_sync took", lab.now_ms - before_ms, "ms")
print("the broker knows:", table.queues_of("report", "orders"))
lab.run_for("15s")
print("15 seconds later:", table.queues_of("report", "orders"))

# %% [markdown]
# `commit_sync` only notes the offset in the client's memory. The timer reports it later, one-way.

# %% [answer] lab04.interval
# ### Your turn: report more often
#
# Set `persist_consumer_offset_interval` to one second and run the cell. How many different offsets of `orders` does the
# broker store in the 32 seconds? (Count the rows "at the broker".)
#
# wrong default: That is the number with the default of five seconds.
# wrong memory: Those are the moves in memory. Several of them fall between two reports.
# wrong: Count the rows of the table whose place is "at the broker".
# note: Billing sends more requests, and a restart repeats one second of work instead of five. It always repeats
#   something, because between two reports only billing knows.

# %% tags=["parameter"]
INTERVAL = "5s"


def reports(lab):
    send_orders(lab, *[f"{1 + 2 * number}s" for number in range(12)])
    billing(lab, persist_consumer_offset_interval=INTERVAL)
    lab.run_for("32s")


reported = play(reports, seed=7, client=no_trace)
rows = sorted(moves(reported), key=lambda row: row["ms"])
Table(
    [row for row in rows if row["where"] == "at the broker"], columns=["after", "next"]
)

# %%
### BEGIN SOLUTION
INTERVAL = "1s"
answer("lab04.interval", 9, play(reports, seed=7, client=no_trace))
### STARTER
# answer("lab04.interval", ..., reported)
### END SOLUTION

# %% [markdown]
# ## What a crash costs
#
# Twenty orders: the first takes one second, the second two, and so on. The three places after nineteen and a half
# seconds:


# %%
def crash(*nodes):
    def story(lab):
        send_orders(lab, *[f"{1 + number}s" for number in range(20)])
        lab.run_for("3300ms")
        billing(lab)
        lab.run_for("19600ms")
        for node in nodes:
            lab.kill(node)
        if nodes:
            lab.run_for("2s")
        for node in reversed(nodes):
            lab.start(node)

    return story


lab = play(crash(), seed=7, client=no_trace)
lab.how_far("billing", "orders")

# %% [markdown]
# Three crashes are possible. First the broker's process is killed at this moment and started again two seconds later.

# %% [prediction] lab04.broker_dies
# The broker dies with 15 in its table and 13 in its file. Billing keeps running. How many finished orders does billing
# get again?
#
# - 5: five, 13 to 17; the broker has only its file {lab04.broker_forgets}
#   > The file is what a broker knows after a crash, but a running consumer does not ask the broker where to read.
# - 0: none
#   = Billing still has its memory. It keeps pulling from its own position, and its next report corrects the broker.
# - 18: all eighteen; without its table the broker begins at 0
#   > The file is there, and it says 13.
# note: The broker's offset matters only to the queue's next owner: a restarted consumer, or another member.

# %%
lab = play(crash("broker-a"), seed=7, client=no_trace)
lab.how_far("billing", "orders")

# %% [markdown]
# And billing?

# %%
lab.run_for("20s")


def paid_twice(lab):
    """Orders whose listener has ended well more than once."""
    rows = lab.deliveries("billing", absences=False)
    done = [row.queue_offset for row in rows if row.status == "CONSUME_SUCCESS"]
    return sorted({offset for offset in done if done.count(offset) > 1})


print("paid twice:", paid_twice(lab))
reveal("lab04.broker_dies", len(paid_twice(lab)))

# %%
lab.how_far("billing", "orders")

# %% [markdown]
# Now billing dies at the same moment, and then both die.

# %% [prediction] lab04.who_dies
# Orders end one after the other, billing reports every 5 seconds, and the broker writes its file every 5 seconds. Which
# crash causes the most redeliveries?
#
# - consumer: billing's; only its memory knows everything
#   > Billing's memory is lost, but the broker still has the last report. Its table is newer than its file.
# - both: both at once, as when one machine runs both and fails
#   = Only the file is left. It is up to 5 seconds older than the table, which is up to 5 seconds older than the memory.
# - same: it is the same for both, because the broker's table is its file {lab04.file_at_once}
#   > The file is written every 5 seconds. Reports since the last write are in the table only.
# note: A power cut of the broker's machine can lose even more: a file that was written may not be on the disk yet (lab
#   01c).

# %%
again = {}
for name, nodes in {
    "the broker": ["broker-a"],
    "billing": ["billing-1"],
    "both": ["billing-1", "broker-a"],
}.items():
    lab = play(crash(*nodes), seed=7, client=no_trace)
    lab.run_for("40s")
    again[name] = len(paid_twice(lab))
Bars(again, title="orders paid twice when … dies", unit="orders")

# %%
most = max(again, key=again.get)
reveal("lab04.who_dies", "same" if again["billing"] == again["both"] else most)

# %% [answer] lab04.strip
# ### Your turn: exactly four
#
# Twelve orders, eight threads, and no call ends before you end it. Click orders to finish them, let time pass, let
# billing report, and crash whichever process you like.
#
# The board starts with a crash: orders 1 and 2 were finished, billing was killed, and both are redelivered. Go back
# with "Undo", and make billing read exactly **four** finished orders again.
#
# wrong unfinished: That counts unfinished orders as well. Count only orders that were finished before the crash.
# wrong: The number is in the board's part "What comes again".
# note: For instance: finish 1 to 4, leave 0 alone, crash billing. Or finish 0 to 3 and crash before the report.

# %% tags=["explorer"]
two_again = [("finish", {"messages": [1, 2]}), "crash"]
strip = offset_strip(threads=8, messages=12, actions=two_again)
strip

# %%
### BEGIN SOLUTION
strip = offset_strip(threads=8, messages=12, actions=[])
strip.finish(1, 2, 3, 4).crash("client")
answer("lab04.strip", len(strip.redelivered()), strip)
### STARTER
# answer("lab04.strip", ..., strip)
### END SOLUTION

# %% [exercise] lab04.crash_cost
# ### Exercise 2: what is redelivered
#
# Times are milliseconds since billing's start. You get
#
# - `pulled`: the offsets that billing has received;
# - `done`: when each finished order was done;
# - `reports`: when billing reported its offset to the broker;
# - `writes`: when the broker wrote its file;
# - `dies`: `"consumer"`, `"broker"` or `"both"`. Everything is then started again.
#
# Before billing's start, table and file had the smallest of `pulled`. Return the offsets of the finished orders that
# billing gets again, sorted.
#
# hint: First compute the offset in billing's memory at any moment: the smallest of pulled that is not done at that
#   time, else one past the largest.
# hint: The consumer dies: the broker has the memory of the last report. Both die: the file has what had been reported
#   when it was last written; look for the last report that is not after that write. The broker dies: no consumer
#   restarts.
# hint: `told(t)`: memory at the last report that is <= t, or min(pulled) without one. consumer: `told(infinity)`; both:
#   `told(last write)`, or min(pulled) without a write. Return the sorted done offsets that are not smaller.
# note: At work: before you restart a consumer on purpose, shut it down gracefully. It reports its offsets on the way
#   out, and nothing that was finished in order is redelivered.


# %%
# exercise: lab04.crash_cost
def crash_cost(pulled, done, reports, writes, dies):
    """Offsets of the orders that were finished before the crash and come again.

    pulled: [offset]. done: {offset: ms}. reports, writes: [ms]. dies: who.
    """
    ### BEGIN SOLUTION
    if dies == "broker":
        return []

    def in_memory(moment):
        left = [one for one in pulled if done.get(one, moment + 1) > moment]
        return min(left, default=max(pulled) + 1)

    def told(until):
        earlier = [moment for moment in reports if moment <= until]
        return in_memory(max(earlier)) if earlier else min(pulled)

    if dies == "consumer":
        begin = told(float("inf"))
    else:
        begin = told(max(writes)) if writes else min(pulled)
    return sorted(offset for offset in done if offset >= begin)
    ### END SOLUTION


# %%
check("lab04.crash_cost")

# %% [belief] lab04.all_is_repeated
# question: Is everything that is redelivered paid twice?
# claim: Yes.
# refutation: Only what was finished before the crash. An order that was under way comes again, and is paid once.

# %% [belief] lab04.broker_knows_all
# question: Billing dies. What does the broker know about the orders done last?
# claim: What billing knew.
# refutation: What the last report said. The consumer's memory dies with it.

# %% [markdown]
# ## 2101
#
# The morning of the story: 4,102 orders in one queue, and order 2101 hangs.

# %% [prediction] lab04.restart
# Ten minutes later billing is restarted. How many orders are paid twice?
#
# - 0: none; they were acknowledged long ago
#   > RocketMQ keeps no acknowledgement per message. It keeps one number, which was 2101 all the time.
# - 2000: all two thousand after it
#   = The offset was 2101, and the restarted billing begins there.
# - 32: at most one pull, 32 orders
#   > Billing kept reading for ten minutes. The offset ignores how many pulls that took.
# note: Billing reported every 5 seconds, and each report said 2101.
# later: One order hangs in billing's listener, and two thousand orders after it are paid. Ten minutes later billing
#   is restarted. How many orders are paid twice?


# %% tags=["parameter"]
def that_morning(lab, count=4102, hangs=2101, **settings):
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    shop = lab.producer("shop")
    for first in range(0, count, 100):
        numbers = range(first, min(first + 100, count))
        batch = [Message("orders", b"a book", keys=f"order-{n}") for n in numbers]
        for number, order in zip(numbers, batch, strict=True):
            order.properties["takes"] = "10h" if number == hangs else "20ms"
        shop.send_batch(batch)
    billing(lab, **settings)
    lab.run_for("10m")


lab = play(that_morning, seed=7, client=no_trace)
lab.how_far("billing", "orders")

# %%
lab.kill("billing-1")
lab.run_for("5s")
lab.start("billing-1")
lab.run_for("1m")
print(len(paid_twice(lab)), "orders are paid twice")
reveal("lab04.restart", len(paid_twice(lab)))

# %% [markdown]
# Did the broker resend anything during the ten minutes? And are finished orders gone from it? Ask the deliveries, and
# the log:

# %%
deliveries = lab.deliveries("billing", absences=False)
of_2101 = [row for row in deliveries if row.queue_offset == 2101]
columns = ["queue_offset", "started_ms", "ended_ms", "status", "reconsume_times"]
Table(of_2101, columns=columns)

# %%
stored = sum(1 for _ in lab.store().messages("orders"))
print(stored, "orders are in the log; every one of them was read at least once")

# %% [markdown]
# **The broker sends nothing on its own**: a consumer pulls from an offset. And reading deletes nothing; the log keeps
# an order until its file is 72 hours old.

# %% [markdown]
# ## The limit of two thousand
#
# Three settings stop a consumer's pulls: `pull_threshold_for_queue` (1,000 messages), `pull_threshold_size_for_queue`
# (100 MiB), and `consume_concurrently_max_span` (2,000), the distance between the first and the last message that it
# holds.

# %% [prediction] lab04.span
# Order 100 hangs, and 5,900 orders follow it. The span limit is 2,000. How many of them does billing read?
#
# - 2000: 2,000; then it stops until order 100 is done
#   > Pulling stops while the limit is exceeded. But the span covers only what billing still holds, and finished orders
#   > leave.
# - 5900: all 5,900
#   = Finished orders leave the cache. When only order 100 is left, the span is 0, and billing pulls again.
# - 1000: 1,000, the number limit
#   > That limit also counts only orders that billing holds; finished orders do not count.
# note: The limit does not bound what is redelivered after a crash: here it would be 5,900 orders.

# %%
lab = play(lambda lab: that_morning(lab, 6001, 100), seed=7, client=no_trace)
lab.how_far("billing", "orders")

# %%
rows = lab.deliveries("billing", absences=False)
behind = sum(row.queue_offset > 100 and row.status == "CONSUME_SUCCESS" for row in rows)
reveal("lab04.span", behind)

# %% [markdown]
# The limits were still reached. Each time a limit stopped a due pull, billing checked again after 50 ms:

# %%
stops = lab.journal.changes("pull.flow_control")
reasons = [values["reason"] for _, values in stops]
Bars({one: reasons.count(one) for one in sorted(set(reasons))}, title="pulls put off")

# %%
columns = ["after", "reason", "count", "span"]
first_ms = stops[0][0].now_ms
by_span = [
    {"after": after(step.now_ms - first_ms), **values}
    for step, values in stops
    if values["reason"] == "span"
]
Table(by_span[:5], columns=columns)

# %% [answer] lab04.span_of
# ### Your turn: a small span
#
# 300 orders, and order 20 hangs. The first pull brings orders 0 to 31. Find the largest `SPAN` with which billing does
# not pull again immediately.
#
# wrong just_that: With that limit billing pulls again: a span of 31 is not greater than 31.
# wrong count: 32 is the number of orders; the span is the distance between the first and the last.
# wrong: Look at the first line: as long as billing stops after its first pull, it says 32. Increase SPAN until the line
#   says more, and answer with the value before that.
# note: Pulling stops only when the span is greater than the limit, and the span covers only what is cached. An orderly
#   consumer does not check the span.

# %% tags=["parameter"]
SPAN = 10


def small(lab):
    that_morning(lab, 300, 20, consume_concurrently_max_span=SPAN)


spanned = play(small, seed=7, client=no_trace)
first_stop = spanned.journal.of("pull.flow_control")[0].step
brought = [
    values["messages"]
    for step, values in spanned.journal.changes("message.pulled")
    if step.step <= first_stop
]
print("orders pulled before the first stop:", sum(brought))
spanned.how_far("billing", "orders")

# %%
### BEGIN SOLUTION
answer("lab04.span_of", 30, spanned)
### STARTER
# answer("lab04.span_of", ..., spanned)
### END SOLUTION

# %% [markdown]
# ## A call that never ends
#
# Order 2101 would have hung for ten hours. Every 15 minutes (`consume_timeout`) billing sends back orders that have
# been in the listener for more than 15 minutes, and continues without them (lab 07b shows the retry). The broker never
# checks.

# %% [prediction] lab04.sweep
# Twenty orders of one queue hang. How many does the first check that finds them send back?
#
# - 20: all twenty; all have been there for too long
#   > That would be a burst of requests. A check sends back at most 16 orders per queue.
# - 16: sixteen
#   = From the head of the queue, one after the other, 16 at most. The others wait for the next check.
# - 1: one, the first of the queue
#   > Only the first one holds the offset back, but then the next one becomes the head, and so on, up to 16.
# note: The check looks at the head alone. A stuck order behind one that is only slow has to wait.


# %%
def twenty_hang(lab):
    send_orders(lab, *["100h"] * 20)
    billing(lab)
    lab.run_for("50m")


def given_back(lab):
    """In which minute billing gave back how many orders."""
    counts = {}
    for step, values in lab.journal.changes("message.expired"):
        if values["queue"].topic == "orders":
            minute = f"minute {(step.now_ms - lab.began_ms) // 60_000}"
            counts[minute] = counts.get(minute, 0) + 1
    return counts


# %%
lab = play(twenty_hang, seed=7, client=no_trace)
Bars(given_back(lab), title="given back", unit="orders")

# %%
reveal("lab04.sweep", next(iter(given_back(lab).values())))

# %% [markdown]
# Why minute 30? At the first check, 15 minutes after billing's start, the orders had been there for slightly less. So
# it takes between one timeout and two.

# %% [answer] lab04.live
# ### Your turn: a shorter timeout while billing runs
#
# Billing starts with a `consume_timeout` of 10 minutes. One minute later an operator sets it to `THEN`. Set `THEN` to
# two minutes. In which minute is the order sent back?
#
# wrong two: That would be right if both settings were re-read. The period of the checks is fixed when billing starts.
# wrong twenty: That would be right if the new number were not read at all: at minute 10 the order has been there for
#   less than ten minutes.
# wrong: Look at the bar: in which minute is it?
# note: The period is fixed at the start; the limit is re-read at every check. A shorter timeout helps a little at once.
#   For more frequent checks you must restart billing, at the cost you know.

# %% tags=["parameter"]
THEN = "10m"


def changed(lab):
    send_orders(lab, "100h")
    consumer = billing(lab, consume_timeout="10m")
    lab.run_for("1m")
    consumer.configure(consume_timeout=THEN)
    lab.run_for("25m")


timed = play(changed, seed=7, client=no_trace)
Bars(given_back(timed), title="given back", unit="orders")

# %%
### BEGIN SOLUTION
THEN = "2m"
answer("lab04.live", 10, play(changed, seed=7, client=no_trace))
### STARTER
# answer("lab04.live", ..., timed)
### END SOLUTION

# %% [markdown]
# mqlab's consumer has a setting that RocketMQ lacks, `message_timeout`: one timer per call, exact to the millisecond.
# Compare the offsets after ten minutes:

# %%
for settings in ({}, {"message_timeout": "30s"}):
    lab = play(
        lambda lab, own=settings: that_morning(lab, 300, 20, **own),
        seed=7,
        client=no_trace,
    )
    standing = lab.how_far("billing", "orders").standings[0]
    print(
        settings or "as RocketMQ does it",
        "-> offset",
        standing.at_broker,
        "after ten minutes",
    )

# %% [markdown]
# In RocketMQ you must write such a timer yourself: exercise 2 of [lab 07b](07b-stop-in-time.ipynb).

# %% [markdown]
# ## Write it yourself
#
# A consumer accepts any class as a queue's cache, with the setting `process_queue=`.

# %% [exercise] lab04.process_queue
# ### Exercise 3: the cache of a queue
#
# Write four methods; the rest is given. A message has a `queue_offset`. Messages come in the order of their offsets,
# with gaps (a filter leaves some out). The same message may be put in twice, and they end in any order. Your class is
# first called alone, then it runs inside a consumer that is killed at many moments.
#
# hint: A dictionary offset -> message is enough. Which number must it remember in addition, for when everything is
#   removed?
# hint: remove_message: if nothing is there at all, -1. Else take the messages out; the smallest offset that is left, or
#   one past the largest that was ever put in.
# hint: `self.largest = max(self.largest, message.queue_offset)` in put_message; `return min(self.messages,
#   default=self.largest + 1)` in remove_message; max_span is `max(self.messages) - min(self.messages)`, 0 when empty.
# note: This is RocketMQ's ProcessQueue: putMessage, removeMessage, getMaxSpan. The real one has a TreeMap and a lock,
#   and your rule. At work: "we commit after each message" is never true of RocketMQ.


# %% tags=["setup"]
class Given:
    """What your class has already."""

    def __init__(self):
        self.messages = {}  # queue offset -> message
        self.largest = -1  # for the largest offset that was ever put in

    def contains_message(self, message):
        return message.queue_offset in self.messages

    def clear(self):
        self.messages.clear()

    @property
    def msg_count(self):
        return len(self.messages)

    @property
    def msg_size_mib(self):
        return sum(len(message.body) for message in self.messages.values()) >> 20


# %%
# exercise: lab04.process_queue
class MyProcessQueue(Given):
    """The messages of one queue that were pulled and are not done."""

    def put_message(self, messages):
        """Messages were pulled. Returns nothing."""
        ### BEGIN SOLUTION
        for message in messages:
            self.messages[message.queue_offset] = message
            self.largest = max(self.largest, message.queue_offset)
        ### END SOLUTION

    def remove_message(self, messages):
        """Messages are done. Returns the offset to move to; -1 if nothing was there."""
        ### BEGIN SOLUTION
        if not self.messages:
            return -1
        for message in messages:
            self.messages.pop(message.queue_offset, None)
        return min(self.messages, default=self.largest + 1)
        ### END SOLUTION

    def first_message(self):
        """The message with the smallest offset; None if nothing is there."""
        ### BEGIN SOLUTION
        return self.messages[min(self.messages)] if self.messages else None
        ### END SOLUTION

    def max_span(self):
        """The largest minus the smallest offset; 0 if nothing is there."""
        ### BEGIN SOLUTION
        return max(self.messages) - min(self.messages) if self.messages else 0
        ### END SOLUTION


# %%
check("lab04.process_queue")

# %% [belief] lab04.last_is_largest
# question: Everything is done. Where may the group move to?
# claim: One past what was removed last.
# refutation: One past the largest that was ever put in: what was removed last may be any of them.

# %% [belief] lab04.empty_moves
# question: A message is removed from an empty cache. Where may the group move to?
# claim: One past the largest.
# refutation: Nowhere: the cache was cleared, by a reset for instance, and it no longer controls the offset. It returns
#   -1.

# %% [belief] lab04.span_counts
# question: What is the span of a cache?
# claim: The number of its messages.
# refutation: The distance between its first and its last message, whatever is between them.

# %% [belief] lab04.works_it_out
# question: Which class says how far the group may move?
# claim: The consumer, which computes it.
# refutation: The cache, with what remove_message returns.

# %% [markdown]
# ### Lab 00's day on yours
#
# Press *Keep it for my broker* under the check: the class becomes `mybroker/process_queue.py`, next to this notebook, and
# `play(story, mine=True)` runs any story on what you kept. Here is lab 00's day on your class. (While the exercise is
# open it runs on mqlab's own; `mybroker.fill()` writes mqlab's parts for the labs that you skipped.)


# %% tags=["picture"]
def noon(lab):
    send_orders(lab, "200ms", "200ms", "200ms")
    billing(lab)
    lab.run_for("10s")


on_yours = play(
    noon,
    seed=7,
    client=no_trace,
    parts=mybroker.parts(process_queue=MyProcessQueue),
)
on_yours.timeline()

# %% [markdown]
# ## Break it: the largest that is done
#
# Two caches. One is RocketMQ's. The other reports the largest finished offset plus one, as in the meeting's first
# sentence. Of six orders, the second takes twelve seconds, and billing is killed at some moment and started again.

# %% [prediction] lab04.naive
# What can go wrong with the cache that reports the largest that is done?
#
# - twice: more orders are paid twice
#   > Fewer are, because its offset is further ahead. The price is an order that is never paid.
# - lost: an order is never paid
#   = If billing dies while an earlier order is under way, the restarted billing begins past it.
# - nothing: nothing, as long as there is one consumer
#   > One consumer that dies at a bad moment is enough: then an order is never paid.
# note: At least once costs repetitions. They are the price for not losing the order in the middle.
# later: A cache reports the largest offset that is done, whatever is still open below it. What can go wrong?


# %%
class LargestDone(ProcessQueue):
    """Wrong on purpose."""

    def remove_message(self, messages):
        super().remove_message(messages)
        return max(message.queue_offset for message in messages) + 1


def six_orders(cache):
    def story(lab):
        send_orders(lab, "1s", "12s", "1s", "1s", "1s", "1s")
        billing(lab, process_queue=cache)
        lab.run_for("30s")

    return story


# %%
def outcome(lab):
    rows = lab.deliveries("billing", absences=False)
    done = [row.queue_offset for row in rows if row.status == "CONSUME_SUCCESS"]
    never = [offset for offset in range(6) if offset not in done]
    return f"order {never[0]} is never paid" if never else "all are paid"


# %% tags=["explorer"]
matrix = crash_matrix(
    {
        "smallest left": six_orders(ProcessQueue),
        "largest done": six_orders(LargestDone),
    },
    node="billing-1",
    outcome=outcome,
    only=lambda point: 75 <= point.number < 110,  # from the first order that is done
    seed=7,
    client=no_trace,
)
matrix

# %%
matrix.table()

# %%
lost = [row.variant for row in matrix.cells() if not row.good]
reveal("lab04.naive", "lost" if set(lost) == {"largest done"} else "nothing")

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Time is virtual.** The order of events and the timers are RocketMQ's. How long a report or a file write takes is
#   not measured here.
# - **A kill is not a power cut.** A killed broker's file keeps what was written. After a power cut the file may be
#   older or truncated (then `consumerOffset.json.bak` is read).
# - **One queue, one member.** When a queue changes its owner, the same rules decide what is redelivered: [second
#   part](04b-beginning-again.ipynb), and lab 03.
# - **One offset per queue is how pulling works.** With POP, RocketMQ 5's other way to consume, the broker keeps an
#   acknowledgement per message: [lab 15a](15a-leased-not-owned.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the smallest that is left | `ProcessQueue.removeMessage`, called by `ConsumeMessageConcurrentlyService.processConsumeResult` |
# | the offset in memory, and the reports | `RemoteBrokerOffsetStore.updateOffset`, `persistAll` |
# | the table and the file | `ConsumerOffsetManager.commitOffset`, `persist` (a timer of `BrokerController`) |
# | the offset that a pull carries along | `DefaultMQPushConsumerImpl.pullMessage`, `PullMessageProcessor.tryCommitOffset` |
# | the limits of the cache | `DefaultMQPushConsumerImpl.pullMessage` |
# | the check for stuck messages | `ProcessQueue.cleanExpiredMsg`; it skips messages without a start time, and removes with `removeMessage`, which keeps the counters right |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | the offset is the newest message that was consumed | the first offset that is not done: everything before it is done |
# | the smallest of the batch is committed | the smallest of all messages that are cached of the queue |
# | when the cache is empty, the offset is `queueOffsetMax` | `queueOffsetMax` + 1 |
# | a commit is answered with `minOffset`, `maxOffset`, `nextBeginOffset` | a commit has no answer; these three are in the answer to a pull |
# | a commit changes the table and the file | the table at once, the file up to 5 seconds later |
# | a synchronous commit waits for the broker | `commitSync` only notes the offset in the client; the report is one-way |
# | without an acknowledgement the broker sends again | it sends nothing; the queue's next owner pulls from the offset |
# | the broker deletes what was acknowledged | only an offset moves |
# | 2,000 unfinished messages stop the consumer | a span above 2,000 of what is still cached delays pulls, 50 ms at a time |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab04.certificate
# **1.** You must change the certificate today, and order 2101 hangs. What do you do before you restart billing?
#
# answer: A graceful shutdown does not help, because its report would also say 2101. Wait until the check has sent order
#   2101 back (half an hour at most), or make the call end. Then the offset jumps, and a restart five seconds later
#   repeats next to nothing. And make billing idempotent, because the next restart may be unplanned (second part).

# %% [reflection] lab04.every_message
# **2.** A colleague proposes to report after every message instead of every five seconds. What would it change, and
# what not?
#
# answer: After a crash of billing, up to five seconds less of finished work would be redelivered, for one request per
#   message. For 2101 nothing would change: the reported number would be the same. It would not give exactly once
#   either, because the process can still die between the work and its report.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](04b-beginning-again.ipynb) an operator makes a group begin somewhere else. All labs:
# [index](index.ipynb).
