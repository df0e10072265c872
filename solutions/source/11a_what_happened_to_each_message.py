# %% [markdown] tags=["reading"]
# # 11a Message lives: what happened to each message
#
# ## Why
#
# Monday morning, three tickets. Support: "A customer got the same letter twice." Accounting: "Some letters never went
# out." Operations: "Impossible. The lag is 0, everything has been consumed."
#
# All three are right. The log shows what was stored. The trace topic (消息轨迹) shows which listener was called with it,
# and when. A file of offsets shows how far each group is. You combine them until each message has a life that you can
# look up.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 10a](10a-spark-reads-the-broker.ipynb) for Spark, [lab
# 06a](06a-two-tags-in-one-group.ipynb) for tags and [lab 07a](07a-failure-takes-time.ipynb) for retries. Afterwards you
# can
#
# - read the trace of clients, old and new, and keep damaged entries;
# - join the two halves of each call (调用), and find calls that never returned;
# - decide for each message and group whether it was consumed, dead, pending, filtered or lost;
# - measure how much of that you would still know with a part of the trace missing.

# %%
from collections import Counter

from pyspark.sql import functions

from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.given.lab11 import pipeline_rows
from mqlab.course.given.lab11.joins import halves_of_calls
from mqlab.course.given.lab11.known_of_orders import known_of_each_order
from mqlab.course.given.lab11.lag_board import offsets_in

# %%
old_questions("lab11")

# %%
from mqlab.course.given.lab11.trace_tables import (
    FEWEST,
    FIELDS,
    NUMBERS,
    calls_in,
    entries_in,
    rows_of_calls,
    rows_of_life,
    trace_bodies,
)
from mqlab.course.given.lab11.written_day import written_day
from mqlab.course.teach.datasets import played_day
from mqlab.data.spark import session
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.day_charts import Stacked

# %% [markdown]
# ## A day with every kind of trouble
#
# `played_day` plays a day with every kind of trouble in a Lab and leaves the stores of two brokers. A shop sends
# orders. `billing` and `audit` read them, `mail` sends letters about paid or shipped ones, and `quiet` reads them with
# its trace switched off.

# %% tags=["picture"]
day = played_day()
spark = session()
messages = spark.read.format("rocketmq").load(str(day.stores))
per_topic = dict(map(tuple, messages.groupBy("topic").count().collect()))
Bars(sorted(per_topic.items()), title="What is in the logs", unit="messages")

# %% [markdown]
# The lag (消费堆积) of a queue is the offset of its next message, minus the offset that the group has committed:

# %%
queue = ["broker_name", "topic", "queue_id"]
last = functions.max("queue_offset").alias("last")
ends = {
    tuple(row)[:3]: row["last"] + 1
    for row in messages.groupBy(queue).agg(last).collect()
}
lag = Counter()
for row in offsets_in(day.stores):
    if row["topic"] == "orders":
        behind = ends[tuple(row[name] for name in queue)] - row["committed"]
        lag[row["group_name"]] += behind
Bars(lag, title="Behind at the end of the day", unit="messages")

# %% [prediction] lab11.lag_zero
# Mail is not behind: it has committed the end of every queue. It wants the 280 orders that are paid or shipped. How
# many of these did no member of mail ever get?
#
# - none: none; the lag is 0 {lab11.passed_is_done}
#   > The offset shows mail's position in its queues, not what happened to earlier messages: an operator can set an
#   > offset, and a member can skip messages. Only a call shows that a member got the message.
# - few: one to nine; something is always lost
#   > More than nine. If an offset is set ahead, or two members read with different tags, all messages of that time are
#   > lost.
# - many: ten or more
#   = No member got them, and no number of the broker shows it.
# note: You will find each of them, with its key, so the letters can still be sent.
# later: -

# %% [markdown]
# ## Trace entries: the diary of the clients
#
# A client with `enableMsgTrace` writes an entry when it has sent a message (`Pub`), calls a listener (`SubBefore`),
# gets the listener's result (`SubAfter`), or ends a transaction (`EndTransaction`). Ten entries, or those of half a
# second, are sent as one message to the topic `RMQ_SYS_TRACE_TOPIC`. Here is one; `·` stands for the byte 0x01, which
# ends a field, and a new line for 0x02, which ends an entry:

# %% tags=["parameter"]
NUMBER = 18  # which of the trace messages: try others
bodies = [message["body"] for message in trace_bodies(day.stores)]
print(bodies[NUMBER].decode().replace("\x01", " · ").replace("\x02", "\n"))

# %% [markdown]
# The meaning of a field depends on the entry's kind, field 0. `FIELDS` has the numbers of the fields, and `FEWEST` the
# least number of fields per kind:

# %%
names = list(dict.fromkeys(name for columns in FIELDS.values() for name in columns))
Table(
    {"kind": kind, "fewest": FEWEST[kind], **{n: FIELDS[kind].get(n) for n in names}}
    for kind in FIELDS
)

# %% [markdown]
# A trace has entries of all releases in use:
#
# - A `Pub` entry of an old client has 13 fields: its `success` is field 12.
# - A `SubAfter` entry of an old client has 6 fields: it ends with its keys, and has no time and no group.
# - Some releases write more fields at the end of an entry, such as the client's address.
# - Java writes `null` for a missing value. True and false are the words `true` and `false`.

# %% [exercise] lab11.entries
# ### Exercise 1: take a body apart
#
# Write `entries`. It takes the body of one trace message (bytes), and returns a list of dictionaries, one per entry in
# order, in plain Python without Spark. Each has all these keys: `position` (0, 1, …), `kind`, `time_ms`, `group_name`,
# `request_id`, `msg_id`, `keys`, `cost_ms`, `retry_times`, `success` and `reason`.
#
# - The columns of `NUMBERS` are integers, `success` is `True` or `False`, the others are strings. A missing field, and
#   `null`, is `None`. An entry without keys has the keys `""`.
# - An unreadable entry is kept, with its position and a `reason`; everything else of it is `None`. A good entry has the
#   reason `None`.
# - The first that is true is the reason: `"no end mark"` (the body ends inside it), `"unknown kind"`, `"too short"`
#   (fewer fields than `FEWEST`), `"not a number"` (a field of `NUMBERS` is not all digits).
#
# hint: Split the bytes at 0x02 first, and only then decode each piece. After the last 0x02 there is nothing, or an
#   entry that was cut.
# hint: `piece.decode("utf-8", "replace").split("\x01")` gives the fields of an entry even if it ends inside a letter.
#   Then find the reason; without one, go through `FIELDS[kind].items()`.
# hint: A missing field (`at >= len(field)`) is None. `field[at].isdigit()` checks for digits. Compare `field[at] ==
#   "true"`; `bool("false")` is True, as for every string that is not empty.
# note: You can now read 2,259 entries of this day, and locate damaged ones.


# %%
# exercise: lab11.entries
def entries(body):
    """The entries of a trace body: a list of dictionaries."""
    ### BEGIN SOLUTION
    columns = ["position", "kind", "time_ms", "group_name", "request_id", "msg_id"]
    columns += ["keys", "cost_ms", "retry_times", "success", "reason"]
    *whole, rest = body.split(b"\x02")
    rows = []
    for position, piece in enumerate([*whole, rest] if rest else whole):
        field = piece.decode("utf-8", "replace").split("\x01")
        at = {n: i for n, i in FIELDS.get(field[0], {}).items() if i < len(field)}
        if field[0] == "Pub" and len(field) == 13:
            at["success"] = 12
        row, reason = {}, None
        if position == len(whole):
            reason = "no end mark"
        elif field[0] not in FIELDS:
            reason = "unknown kind"
        elif len(field) < FEWEST[field[0]]:
            reason = "too short"
        elif not all(field[at[name]].isdigit() for name in NUMBERS if name in at):
            reason = "not a number"
        else:
            row = {name: field[i] for name, i in at.items() if field[i] != "null"}
            row |= {name: int(row[name]) for name in NUMBERS if name in row}
            if "success" in row:
                row["success"] = row["success"] == "true"
            row["kind"] = field[0]
        rows.append(
            dict.fromkeys(columns) | row | {"position": position, "reason": reason}
        )
    return rows
    ### END SOLUTION


# %%
check("lab11.entries")

# %% [belief] lab11.rest_is_nothing
# question: What is an entry without an end mark?
# claim: Nothing to report; only whole entries count.
# refutation: A cut body has lost entries, and the result must show it. The piece after the last 0x02 is a row with the
#   reason "no end mark".

# %% [belief] lab11.rest_is_whole
# question: May the last entry be read without its end mark?
# claim: Yes; if all fields are there, it is as good as the others.
# refutation: Its last field may be incomplete: 17672256 may be the beginning of 1767225600045. Without its 0x02 an
#   entry is not read, and has the reason "no end mark".

# %% [belief] lab11.false_is_true
# question: What is bool("false")?
# claim: It is False.
# refutation: bool of a string is True unless the string is empty. success is True where the string is "true", and False
#   otherwise.

# %% [belief] lab11.counted_from_the_end
# question: May fields be counted from the end of an entry?
# claim: Yes; keys are the last field of a SubBefore entry.
# refutation: Some releases write more at the end of an entry. Count from the beginning, as FIELDS does: keys are field
#   7 of a SubBefore entry, whatever follows.

# %% [belief] lab11.null_is_text
# question: What does the string null mean in a trace?
# claim: It is a string like others.
# refutation: Java writes null for a missing value. It is None; no message has the key "null".

# %% [belief] lab11.one_release
# question: Where is the flag success of a Pub entry?
# claim: In field 13, in all releases.
# refutation: A Pub entry of an old client has 13 fields, numbered from 0, so there is no field 13. Its success is its
#   field 12.

# %% [belief] lab11.enough_fields
# question: When can an entry be read?
# claim: When it has enough fields.
# refutation: A field of NUMBERS must also be a number. A damaged one has the reason "not a number". Do not guess it,
#   leave it out, or throw away the rest of the body.

# %% [belief] lab11.body_is_text
# question: Can a trace body be decoded as a whole?
# claim: Yes; it is UTF-8.
# refutation: Only whole entries are. A cut body may end inside a letter, and then decode raises UnicodeDecodeError for
#   all of it. Split the bytes, and decode each entry with "replace".

# %% [answer] lab11.cut
# ### Your turn: a full disk
#
# Only the first `CUT` bytes of this body exist. Change `CUT`, anything from 450 to 1,200. How many entries can still be
# read?
#
# wrong rows: You have also counted the row without an end mark. It is kept, but it cannot be read.
# wrong: Count the rows whose reason is None.
# note: One missing byte at the wrong place costs one call.

# %% tags=["parameter"]
### BEGIN SOLUTION
CUT = 700
### STARTER
# CUT = 400  # yours to change
### END SOLUTION

try:
    cut = list(entries(bodies[0][:CUT]))
    reasons = Counter(row["reason"] or "read" for row in cut)
except Exception:
    cut, reasons = [], {}  # exercise 1 is open
Bars(reasons, title=f"{CUT} bytes", unit="entries")

# %%
### BEGIN SOLUTION
answer("lab11.cut", reasons["read"], bodies[0], CUT)
### STARTER
# answer("lab11.cut", ..., bodies[0], CUT)
### END SOLUTION

# %% [markdown]
# ## Two halves of a call
#
# In the evening, billing is called with the order `k-never`. Its listener waits for a database, and still waits when
# the day is over.

# %% [prediction] lab11.stuck
# How many entries of the trace are about billing's call with `k-never`?
#
# - none: none; an entry is written when the call is over {lab11.every_call_ends}
#   > The client writes SubBefore before it calls the listener. So a listener that never returns has a beginning and no
#   > end. Your join must keep beginnings without an end.
# - one: one, its beginning
#   = SubBefore was written before the listener was called. SubAfter would follow its return.
# - two: two; when the client gives up, it writes the end
#   > This client does not give up: its consumeTimeout is 15 minutes, and even then the message goes back to the broker
#   > while the listener keeps waiting.
# note: A call without an end matters most, and an inner join throws it away.
# later: -

# %%
about_it = [
    row
    for row in entries_in(day.stores)
    if (row["group_name"], row["keys"]) == ("billing", "k-never")
]
Table(
    {name: row[name] for name in ("kind", "time_ms", "request_id", "keys")}
    for row in about_it
)

# %%
reveal("lab11.stuck", {0: "none", 1: "one"}.get(len(about_it), "two"))

# %% [markdown]
# Both entries of a call have its `request_id`, and the `msg_id` of the message. A call with a batch has an entry of
# each kind per message, all with one `request_id`. A retried message has one `msg_id` and several requests.
#
# `cost_ms` is the time of the whole call divided by the number of its messages. A client without an answer re-sends its
# trace message, so the same message (`trace_msg_id`) may be stored twice, with the same entries at the same positions.

# %% [exercise] lab11.calls
# ### Exercise 2: a row for each call
#
# Complete `calls`. It takes all entries of a day as a DataFrame: the columns of exercise 1, and `broker_name` and
# `trace_msg_id` of the trace message. It returns one row per call and message in it:
#
# | column | is |
# |---|---|
# | `group_name`, `request_id`, `msg_id`, `keys`, `retry_times` | those of the `SubBefore` entry |
# | `started_ms` | when the listener was called |
# | `ended_ms` | `time_ms` of the `SubAfter` entry; an old client has none: `started_ms + cost_ms` |
# | `status` | `SUCCESS` or `FAILED`, depending on `success`, and `NO_RESULT` without an end |
#
# `halves_of_calls` returns the two halves (`halves_of_calls??` shows it); how they meet is yours. `rows_of_calls(calls,
# day.stores)` tries it on this day. The check plays its own day, which takes some seconds the first time.
#
# hint: The same `trace_msg_id` and `position` is the same entry: `dropDuplicates` takes a list of columns.
# hint: Join them by `["request_id", "msg_id"]`, and keep the beginnings without an end: the third argument of `join` is
#   "left".
# hint: After the join `success` is NULL without an end: `functions.when(functions.col("success").isNull(),
#   "NO_RESULT")`, then `.when("success", "SUCCESS")` and `.otherwise("FAILED")`. `functions.coalesce` takes the first
#   value that is not NULL.
# note: `mqadmin queryMsgTraceById` does this for one message. You have done it for all.


# %%
# exercise: lab11.calls
def calls(entries):
    """Each call with a message, as a DataFrame."""
    ### BEGIN SOLUTION
    once = entries.dropDuplicates(["trace_msg_id", "position"])
    ### STARTER
    # once = entries  # is each entry there once?
    ### END SOLUTION
    before, after = halves_of_calls(once)
    success = functions.col("success")
    by_cost = functions.col("started_ms") + functions.col("cost_ms")
    ### BEGIN SOLUTION
    both = before.join(after, ["request_id", "msg_id"], "left")
    ended = functions.coalesce("back_ms", by_cost)
    status = functions.when(success.isNull(), "NO_RESULT")
    status = status.when(success, "SUCCESS").otherwise("FAILED")
    ### STARTER
    # both = ...  # by which columns do the halves meet, and which rows are kept?
    # ended = functions.col("back_ms")  # of an old client as well?
    # status = ...  # success is NULL without an end
    ### END SOLUTION
    return both.select(*before.columns, ended.alias("ended_ms"), status.alias("status"))


# %%
check("lab11.calls")

# %% [belief] lab11.id_names_a_call
# question: Which entries belong to one call?
# claim: Those with one msg_id.
# refutation: A retried message has the same msg_id in each of its calls, so each beginning meets every end and the rows
#   multiply. Join by request_id, which names the call, and msg_id.

# %% [belief] lab11.request_is_message
# question: What does a request_id name?
# claim: A message that was passed to a listener.
# refutation: A request_id names a call, which may have a batch of messages: joined by request_id alone, 4 messages
#   become 16 rows. Join by request_id and msg_id.

# %% [belief] lab11.stored_once
# question: How often is an entry in the trace topic?
# claim: Once, because each entry is sent once.
# refutation: A client without an answer re-sends its trace message, and then the topic has it twice. The same
#   trace_msg_id and position is the same entry: count it once.

# %% [belief] lab11.cost_is_length
# question: What is cost_ms of a SubAfter entry?
# claim: How long the call has lasted.
# refutation: In a call with several messages it is the time of the call divided by their number. time_ms is when it was
#   over. An old client does not record it; use started_ms + cost_ms for that client only.

# %% [belief] lab11.old_tells_when
# question: When was a call of an old client over?
# claim: It cannot be known.
# refutation: An old client records how long the call took: started_ms + cost_ms.

# %% [belief] lab11.no_end_is_failure
# question: Has a call failed that did not return?
# claim: Yes, it has failed.
# refutation: A call that did not return may have done its work or not. It is NO_RESULT, not FAILED.

# %% tags=["picture"]
try:
    your_calls = rows_of_calls(calls, day.stores)
    by_status = Counter(f"{row['group_name']}: {row['status']}" for row in your_calls)
except Exception:
    by_status = {}  # exercise 2 is open
Bars(sorted(by_status.items()), title="Calls of the day", unit="calls")

# %% [markdown]
# Is it also right for a platform? `written_day` writes a day of 200,000 as two brokers would have left it, and puts log
# and trace into tables that Spark reads fast. `big.entries` are the entries of its trace, and the function is yours:

# %% tags=["nbval-ignore-output"]
big = written_day()

# %%
try:
    counted = calls(big.entries).groupBy("group_name", "status").count().collect()
except Exception:
    counted = []
by_status = {f"{row['group_name']}: {row['status']}": row["count"] for row in counted}
Bars(sorted(by_status.items()), title="Calls of a platform", unit="calls")

# %% [answer] lab11.again
# ### Your turn: called again
#
# `told` is the correct table of calls. Set `GROUP` to `audit` or `mail`. How many calls did its messages have in
# addition to their first ones? Identify a message by `msg_id` and `keys` together, because the messages of a sent batch
# share one `msg_id`.
#
# wrong retries: These are the calls whose retry_times is not 0. A message can also be delivered again unchanged, after
#   an offset was set back or a member crashed before it committed.
# wrong all: That is all its calls, including the first ones.
# wrong: Take the number of its calls, minus the number of different (msg_id, keys).
# note: None of them was a retry. The second part explains each.

# %% tags=["parameter"]
told = calls_in(day.stores)
### BEGIN SOLUTION
GROUP = "audit"
### STARTER
# GROUP = "billing"  # yours to change
### END SOLUTION

of_message = Counter(
    (row["msg_id"], row["keys"]) for row in told if row["group_name"] == GROUP
)
Bars(
    sorted(Counter(of_message.values()).items()),
    title="Calls a message",
    unit="messages",
)

# %%
### BEGIN SOLUTION
answer("lab11.again", sum(of_message.values()) - len(of_message), told, GROUP)
### STARTER
# answer("lab11.again", ..., told, GROUP)
### END SOLUTION

# %% [markdown]
# ## A life for each message
#
# A failed message is stored several times: a copy waits in `SCHEDULE_TOPIC_XXXX`, another one is delivered from the
# group's retry topic, and the last one is a dead letter (死信). All have the `msg_id` of the first. `units` shows for
# each unit what it is (`kind`), whether it waits (`parked`), and for which group it was stored again.

# %%
from mqlab.data.spark.pipeline import message_kinds

units = message_kinds.messages(messages).where("kind != 'trace'")
units = units.toArrow().to_pylist()
calls_told = pipeline_rows.deliveries(told)
committed = pipeline_rows.offsets(offsets_in(day.stores))
kinds = Counter(f"{u['kind']}{', parked' if u['parked'] else ''}" for u in units)
Bars(kinds, title="Units that are not trace", unit="units")

# %% [markdown]
# The life of one order. Type another key: `яд-1`, `k-4`, `k-never`, `k-killed` or `k-twice`. Click an event for its
# details; the time between two events is above the line.

# %% tags=["explorer"]
from mqlab.course.widgets import biography_board

biography_board(units, calls_told, offsets=committed, key="k-3")

# %% [markdown]
# A message has one of five outcomes in a group; the first that is true counts:
#
# | outcome | when |
# |---|---|
# | `consumed` | one of its calls in this group was a `SUCCESS`, whatever other calls were |
# | `dead` | a copy of it is in `%DLQ%` and the group's name |
# | `pending` | there was a call, or the group's committed offset is not yet past it |
# | `lost` (丢失) | the offset is past it, no call, and the group gets messages with this tag at other times |
# | `filtered` (过滤) | the offset is past it, no call, and the group never gets messages with this tag |
#
# Which tags does a group get? The trace has no tags, but the log has:

# %%
orders = messages.where("topic = 'orders'")
tag_of = {(row["msg_id"], row["keys"] or ""): row["tags"] for row in orders.collect()}
gets = Counter(
    (row["group_name"], tag_of.get((row["msg_id"], row["keys"]))) for row in told
)
Bars({f"{g}, {tag}": n for (g, tag), n in sorted(gets.items())}, unit="calls")

# %% [markdown]
# An order is a message of the topic `orders`, identified by `msg_id` and `keys`. A repeated send has stored it twice: it is
# one order, at its first offset. The groups are those that have calls and have committed an offset for the order's
# queue. `known_of_each_order` joins what is known of each (`known_of_each_order??` shows it).

# %% [exercise] lab11.life
# ### Exercise 3: the outcome of each order
#
# Write `life`. It takes three DataFrames and returns a row per order and group: `group_name`, `msg_id`, `keys`, `calls`
# (the group's number of calls with it), and `outcome` as in the table above.
#
# - `messages`: the logs without the trace (`keys` is `""` where a message has none);
# - `calls`, as exercise 2 returns them;
# - `committed`: the offset of the next message that a group will read, per queue.
#
# The joins are given: `known_of_each_order(messages, calls, committed)` returns a row per order and group with
# `queue_offset`, `committed`, `calls`, `succeeds` (1 if a call succeeded), `dead`, and `gets` (the group gets messages
# with this tag). After its left joins, NULL means none. The question that decides is yours: which rule comes first?
# `rows_of_life(life, day.stores)` tries it.
#
# hint: Begin with `rows = known_of_each_order(messages, calls, committed)`. `functions.coalesce("calls",
#   functions.lit(0))` is the number of calls.
# hint: One chain of `functions.when(…, "consumed").when(…, "dead")…` in the order of the table; `.otherwise("filtered")`
#   at its end.
# hint: An order is pending if it had a call, or if `queue_offset >= committed`. What is left is lost or filtered; `gets`
#   decides, and it is NULL for no.
# note: Every order now has an outcome in every group, and the three tickets have their answers.


# %%
# exercise: lab11.life
def life(messages, calls, committed):
    """What became of each order in each group, as a DataFrame."""
    ### BEGIN SOLUTION
    col = functions.col
    rows = known_of_each_order(messages, calls, committed)
    # The first that is true.
    number = functions.coalesce("calls", functions.lit(0))
    outcome = functions.when(col("succeeds") == 1, "consumed")
    outcome = outcome.when(col("dead"), "dead")
    is_left = col("queue_offset") >= col("committed")
    outcome = outcome.when((number > 0) | is_left, "pending")
    outcome = outcome.when(col("gets"), "lost").otherwise("filtered")
    return rows.select(
        "group_name", "msg_id", "keys", number.alias("calls"), outcome.alias("outcome")
    )
    ### END SOLUTION


# %%
check("lab11.life")

# %% [belief] lab11.only_called
# question: Which messages belong in a table of lives?
# claim: Those of the trace; nothing happened to the others.
# refutation: You are looking for the others. Start from the orders and the groups, and add the calls by a left join: a
#   message without a call has a row, with 0 calls.

# %% [belief] lab11.copies_are_messages
# question: What is a unit in a retry topic or in the dead letters?
# claim: It is another message.
# refutation: A unit in a retry topic or in the dead letters is a copy of a failed order, with the same msg_id, and
#   belongs to that order's life. Only units in the topic orders have their own row.

# %% [belief] lab11.unit_is_message
# question: How many orders are two units of the topic orders with one msg_id and the same keys?
# claim: They are two orders.
# refutation: Two units of the topic orders with one msg_id and the same keys are one order. Its sender got no answer
#   and sent it again. It has one row, at its first offset.

# %% [belief] lab11.called_is_done
# question: A listener was called with a message. Is it consumed?
# claim: Yes; the listener has it.
# refutation: A call may fail or never return. A message is consumed if one of its calls has the status
#   SUCCESS.

# %% [belief] lab11.one_name
# question: What identifies a message in a log?
# claim: Its msg_id alone, or its keys alone.
# refutation: Both together. The messages of a sent batch have one msg_id, and several messages have the keys of one
#   order: group by msg_id and keys, and join by both.

# %% [belief] lab11.last_call_counts
# question: A message was consumed, was redelivered, and failed. Is it consumed?
# claim: No; the last call decides.
# refutation: A later failed call does not undo the work. One SUCCESS among the calls is enough for consumed.

# %% [belief] lab11.one_fate
# question: Billing has consumed an order. Is it consumed?
# claim: Yes, for all groups.
# refutation: What billing has consumed may wait for another group. Each group reads each message independently: join
#   the calls by group_name, msg_id and keys.

# %% [belief] lab11.passed_is_filtered
# question: The offset is past a message, and there was no call. Why?
# claim: The group does not want its tag.
# refutation: A message that was passed without a call was filtered only if the group never gets its tag. Where it gets
#   the tag at other times, this one is lost: its offset was set ahead, or a member with another subscription skipped
#   it.

# %% [belief] lab11.passed_is_lost
# question: The offset is past a message, and there was no call. Is it lost?
# claim: Yes, always.
# refutation: If the group's members never get a tag, the group does not read it. Such a message is filtered, and
#   nothing is missing.

# %% tags=["picture"]
try:
    your_lives = rows_of_life(life, day.stores)
    outcomes = Counter(f"{row['group_name']}: {row['outcome']}" for row in your_lives)
except Exception:
    your_lives, outcomes = [], {}  # exercise 3 is open
Bars(sorted(outcomes.items()), title="What became of the orders", unit="orders")

# %% [markdown]
# Look for an order that mail has lost. Does anything in its biography show the loss?

# %% tags=["explorer"]
ends = pipeline_rows.lives(your_lives, units)
biography_board(units, calls_told, ends, committed, key="k-never")

# %% [markdown]
# Is it true? The Lab saw every call, with or without a trace. `day.lives` is what it saw.

# %%
true_lives = [row for row in day.lives if row.outcome != "waiting" and row.traced]
seen = Counter(f"{row.consumer_group}: {row.outcome}" for row in true_lives)
Table(
    {"group and outcome": name, "the Lab saw": seen[name], "you say": outcomes[name]}
    for name in sorted(seen | outcomes)
)

# %%
never = seen["mail: lost"]
reveal("lab11.lag_zero", "none" if never == 0 else "few" if never < 10 else "many")

# %% [answer] lab11.lost_when
# ### Your turn: which letters?
#
# Accounting asks for one kind of letters at a time. Set `TAG` to `paid` or to `shipped`. How many orders with this tag
# are lost for mail?
#
# wrong filtered: Created orders are filtered: mail never wanted them. Look for lost.
# wrong all: That is all that mail has lost. Count those with your tag.
# wrong: Among the rows of mail whose outcome is lost, count those whose tag in the log is TAG.
# note: If one tag loses more than the other, a member of the group subscribes to fewer tags, for example one of an
#   older release. If an offset was set ahead, all tags lose.

# %% tags=["parameter"]
### BEGIN SOLUTION
TAG = "shipped"
### STARTER
# TAG = "created"  # yours to change
### END SOLUTION

fates = Counter(
    row["outcome"]
    for row in your_lives
    if row["group_name"] == "mail" and tag_of[row["msg_id"], row["keys"]] == TAG
)
Bars(sorted(fates.items()), title=f"Orders that are {TAG}, in mail", unit="orders")

# %%
### BEGIN SOLUTION
answer("lab11.lost_when", fates["lost"], day.lives, TAG)
### STARTER
# answer("lab11.lost_when", ..., day.lives, TAG)
### END SOLUTION

# %% [markdown]
# ## The same tickets, on a platform
#
# No Lab saw the platform's day. There `notification` sends letters about orders that are shipped, refunded or
# cancelled. Your `life` gets `big.messages`, `big.calls` and `big.committed`. It makes a life for each of some 110,000
# messages in each of three groups.

# %%
try:
    lives = life(big.messages, big.calls, big.committed).cache()
    counted = lives.groupBy("group_name", "outcome").count().collect()
except Exception:
    lives, counted = None, []
platform = {}
for group, outcome, count in sorted(map(tuple, counted)):
    platform.setdefault(group, {})[outcome] = count
Stacked(platform, title="What became of the platform's messages")

# %% [markdown]
# Nothing is pending, and yet some letters were never sent. When were their orders stored, and which are they?

# %% tags=["parameter", "picture"]
OUTCOME, BY = "lost", "hour"  # try consumed, filtered; and tags in the place of hour
lost_by = {}
if lives is not None:
    stored = big.messages.where("topic = 'orders'").selectExpr(
        "msg_id", "tags", "date_format(store_timestamp, 'HH:00') AS hour"
    )
    asked = lives.where(f"group_name = 'notification' AND outcome = '{OUTCOME}'")
    rows = asked.join(stored, "msg_id").groupBy(BY).count().collect()
    lost_by = dict(sorted(map(tuple, rows)))
Bars(lost_by, title=f"notification: {OUTCOME}, by {BY}", unit="messages")

# %% [answer] lab11.letters
# ### Your turn: the letters of a platform
#
# How many letters did notification lose on this day?
#
# wrong: Count the rows of notification whose outcome is lost: the picture above has them, if OUTCOME is lost.
# note: From twelve to two a third member ran, of an older release. It subscribed to `shipped` alone, and the broker
#   takes the latest subscription for the whole group. No alarm was red on that day. You have the list.

# %%
### BEGIN SOLUTION
answer("lab11.letters", sum(lost_by.values()), big)
### STARTER
# answer("lab11.letters", ..., big)
### END SOLUTION

# %% [markdown]
# ## Break it: gaps in the trace
#
# A client that cannot send a trace message throws it away. With `forgets=10` every tenth of them is lost.

# %% [prediction] lab11.trace_gap
# Audit has consumed all its orders. Every tenth trace message is missing. How does your table of lives change?
#
# - same: not at all; trace is a diary and decides nothing
#   > Nothing else shows that a listener was called. An unrecorded call looks like no call.
# - pending: some orders of audit are pending
#   > Only where the end of a call is missing but not its beginning. Both halves of a short call are mostly in one
#   > message.
# - lost: some orders of audit are lost
#   = The offset is past them, and no call is known. A real loss looks the same.
# note: So "lost" means that no call was recorded. First check how complete the trace is.
# later: -

# %% tags=["picture"]
try:
    with_gaps = rows_of_life(life, day.stores, forgets=10)
except Exception:
    with_gaps = []
gaps = Counter(f"{row['group_name']}: {row['outcome']}" for row in with_gaps)
Bars(sorted(gaps.items()), title="Every tenth trace message is missing", unit="orders")

# %% [markdown]
# The trace itself shows it. First its coverage (覆盖率): for how many of the orders before audit's offsets is there a
# call? Audit reads all tags, so it should be all. Second, a `SubAfter` without a `SubBefore` means that an entry is
# missing.


# %%
def coverage(forgets):
    """Share of the orders that audit's offsets have passed for which there is a call."""
    rows = calls_in(day.stores, forgets=forgets)
    called = {(c["msg_id"], c["keys"]) for c in rows if c["group_name"] == "audit"}
    return round(100 * len(called & tag_of.keys()) / len(tag_of), 1)


def ends_alone(forgets):
    """How many SubAfter entries have no SubBefore entry."""
    told = entries_in(day.stores, forgets=forgets)
    began = {row["request_id"] for row in told if row["kind"] == "SubBefore"}
    ended = {row["request_id"] for row in told if row["kind"] == "SubAfter"}
    return len(ended - began)


# %%
shares = {"nothing is missing": coverage(0), "every 10th message is": coverage(10)}
Bars(shares, title="Audit's orders with a call", unit="%")

# %%
reveal("lab11.trace_gap", "lost" if coverage(10) < coverage(0) else "same")

# %% [answer] lab11.alone
# ### Your turn: a worse network
#
# Set `EVERY` to 2, 3, 4 or 5: every N-th trace message is missing. How many calls end without a beginning?
#
# wrong begun: These calls have a beginning and no end. Some of them never ended.
# wrong: Count the request_ids of SubAfter entries that no SubBefore entry has; `ends_alone` does it.
# note: Write both numbers next to every table of lives: its coverage, and the halves that stand alone. If they are not
#   100 % and 0, "lost" is a guess.

# %% tags=["parameter"]
### BEGIN SOLUTION
EVERY = 3
### STARTER
# EVERY = 10  # yours to change
### END SOLUTION

alone = {f"1 in {n} missing": ends_alone(n) for n in (20, 10, EVERY)}
Bars(alone, title="Ends without a beginning", unit="calls")

# %%
### BEGIN SOLUTION
answer("lab11.alone", ends_alone(EVERY), day.stores, EVERY)
### STARTER
# answer("lab11.alone", ..., day.stores, EVERY)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That a consumed message has done its work.** `SUCCESS` is what the listener returned. Its effects are in the bank
#   and in the mailbox, see [lab 04b](04b-beginning-again.ipynb).
# - **That a lost message was never delivered.** Only a complete trace proves it.
# - **Anything about groups without a trace.** `quiet` has consumed all its orders, and no table here shows it.
# - **That clocks agree.** `started_ms` comes from the client's clock, `store_timestamp` from the broker's. The second
#   part has a client whose clock is wrong.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what you saw | where it is |
# |---|---|
# | entries and bodies | `TraceDataEncoder`, `TraceBean`, `TraceContext` |
# | ten entries or half a second, sent without waiting | `AsyncTraceDispatcher` |
# | before and after a listener | `ConsumeMessageTraceHookImpl` |
# | one message's trace | `mqadmin queryMsgTraceById -i MSG_ID`, and the dashboard's page *Message Trace* |
# | the outcome of one message in each group | `mqadmin queryMsgById`, `MessageTrack` and its `TrackType` |
# | committed offsets | `ConsumerOffsetManager`, `config/consumerOffset.json` |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab11.three_tickets
# **1.** Answer the three tickets in one sentence each.
#
# answer: Support: some messages had a second call that was not a retry, and you have their keys. Accounting: the orders
#   that are lost in mail had no call; here is the list, and the letters can be sent. Operations: the lag of 0 shows
#   mail's position, not what it has done.

# %% [reflection] lab11.track_type
# **2.** For `mqadmin` a message is CONSUMED when the group's offset is past it. When is that wrong?
#
# answer: When an offset was set ahead, when a member with other tags owned the queue, and when a failed message waits
#   in the retry topic: the offset passes all of them. It is right about the group's position, and knows nothing of the
#   message.

# %% [reflection] lab11.cheap
# **3.** Three of five messages in these logs are trace. A colleague wants to switch it off for the large groups. What
# do you lose, and what could you do instead?
#
# answer: You lose every answer of this lab for these groups; offsets remain. Trace can have its own topic on its own
#   brokers (customizedTraceTopic), a shorter retention, or one member in ten: then you know a share of the calls, and
#   which share.

# %% [markdown] tags=["reading"]
# ## Next
#
# [Part b](11b-slow-and-again.ipynb) asks *when* messages were slow and *why* they came again. All labs: [index](index.ipynb).
