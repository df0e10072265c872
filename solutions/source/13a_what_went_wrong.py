# %% [markdown] tags=["reading"]
# # 13a Post-mortem: what went wrong
#
# ## Why
#
# It is twenty past midnight, and the telephone rings. "Something was wrong yesterday," says the duty manager. "Six
# people have given me six different stories. At eight I need to know: what, from when to when, which messages, and who.
# I have put the disks of the three brokers on your machine."
#
# You have stored messages, committed offsets, and the clients' trace of each call. One of your colleagues is right, one
# cannot know what she says, and four make the usual mistakes of midnight.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 07a](07a-failure-takes-time.ipynb), [lab 04b](04b-beginning-again.ipynb) and a
# little pandas. Afterwards you can
#
# - find from disks alone which messages were lost, late, or delivered twice, and exclude false positives;
# - determine when harm (损害) began and ended, which differs from when the trouble did;
# - distinguish a process from its group, and known facts from guesses;
# - write a first triage (分诊) of a day that you have never seen.

# %%
import tempfile
from pathlib import Path

import pandas

from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.given.lab13.day_answers import with_day
from mqlab.course.given.lab13.signs import table_of_signs
from mqlab.course.widgets.boards.war_room import Claim, claim_board, war_room
from mqlab.data.traffic import capstone
from mqlab.data.traffic.day_facts import facts_of
from mqlab.data.traffic.day_watch import again_of
from mqlab.lab.views import Bars, Histogram, Table

# %%
old_questions("lab13")

# %%
from mqlab.scales import SECOND, time_text

# %% [markdown]
# ## Yesterday's disks
#
# Each name generates another day, with three incidents and two things that only look like incidents:


# %%
folder = Path(tempfile.mkdtemp(prefix="mqlab-lab13-"))
MESSAGES, BROKERS = 40_000, 3


def disks_of(name):
    """The day of a name; its tables."""
    made = capstone(name, b"the practice of lab 13", MESSAGES, BROKERS)
    made.write(folder / name)
    return made, facts_of(folder / name)


made, facts = disks_of("night 2410")
facts

# %% [markdown]
# Five tables, read from the brokers' files without Spark. (For a hundred million messages, the pipeline of [lab
# 10](10a-spark-reads-the-broker.ipynb) makes such tables.)
#
# | table | one row per | what you will use |
# |---|---|---|
# | `facts.messages` | stored message, without trace | `topic`, `tags`, `keys`, `msg_id`, `stored_ms`, `sender` |
# | `facts.calls` | call of a listener and message in it | `group`, `msg_id`, `client`, `started_ms`, `ended_ms`, `status` |
# | `facts.life` | order message and group | `reads`, `calls`, `successes`, `stored_ms`, `first_ms`, `done_ms`, `dead` |
# | `facts.offsets` | group and queue | `committed`, `end` |
# | `facts.damaged` | unreadable trace entry | empty today |
#
# Times are ms since 1970, as the broker writes them; a missing event is NaN. `reads` is false where a group does not
# subscribe to the message's tag. `done_ms` is the end of the first successful call. `client` and `sender` are addresses
# of processes. A call that never ended has the status `NO_RESULT`. One order of the morning, as the groups saw it:

# %% tags=["parameter"]
ORDER = 200  # another number is another message
one = facts.messages[facts.messages["topic"] == "orders"].iloc[ORDER]
seen = facts.life[facts.life["msg_id"] == one["msg_id"]]
Table(
    {
        "group": row.group,
        "tag": row.tags,
        "reads": row.reads,
        "calls": row.calls,
        "stored": time_text(row.stored_ms, SECOND),
        "done": "" if pandas.isna(row.done_ms) else time_text(row.done_ms, SECOND),
    }
    for row in seen.itertuples()
)

# %% [markdown]
# On the wall of the operators' room hangs a calendar of planned work:


# %%
def shown(at_ms):
    return time_text(at_ms, SECOND)


Table(
    {
        "what": entry["what"],
        "group": entry["group"],
        "key": entry.get("key", ""),
        "from": shown(entry["since"]),
        "to": shown(entry["until"]),
    }
    for entry in made.calendar
)

# %% [markdown]
# ## Lost, late, or twice
#
# A slow listener alone harms no customer, nor does a failed call with a successful retry. So define harm first. A
# message is harmed in a group that reads its tag, if it is
#
# | word | means |
# |---|---|
# | **lost** | it was never consumed and never will be: it is a dead letter, or the offset passed it |
# | **late** | it was consumed more than five minutes after it was stored; or it still waits at midnight, after more than five minutes |
# | **twice** | a call began after another call of the same message, which succeeded or never ended |
#
# The harm of an incident lasts
#
# - **from** when its first harmed message was stored (for *twice*: when the first needless call began)
# - **until** the last one was consumed, given up, or called again.
#
# A message is given up when its dead letter is stored, or, without a call, when it is stored itself. One that still
# waits is harmed until midnight.
#
# You may use these helpers in all exercises:


# %% tags=["setup"]
MIDNIGHT = 1_731_369_600_000  # the end of the day, in ms
FIVE_MINUTES = 300_000


def repeated(facts):
    """The calls of a message that had succeeded before, or had not ended."""
    return facts.calls[again_of(facts.calls)]


def dead_letters(facts):
    """The messages of %DLQ% topics, with their group."""
    topic = facts.messages["topic"]
    rows = facts.messages[topic.str.startswith("%DLQ%")]
    return rows.assign(group=rows["topic"].str.removeprefix("%DLQ%"))


# %%
def only(rows, pairs):
    """The rows of these messages. pairs: {group: [msg_id]}"""
    wanted = [(group, one) for group, ids in pairs.items() for one in ids]
    here = pandas.MultiIndex.from_frame(rows[["group", "msg_id"]])
    return rows[here.isin(wanted)]


def by_group(rows):
    """{group: [msg_id]} of some rows."""
    return {group: sorted(set(ids)) for group, ids in rows.groupby("group")["msg_id"]}


# %% [markdown]
# The **war room** shows the rest of the day: one group, in steps of five minutes, with one cursor through all charts.
# Choose a group, click into the charts, and note at the cursor what you notice. The number to the right of a chart is
# its value at the cursor. It draws no conclusion and raises no alarm.

# %% tags=["explorer"]
room = war_room(facts, group="billing", at="12:30")
room

# %% [prediction] lab13.repaired
# Billing's listener took many times as long as usual, until it was repaired at 13:03. From then on it was as fast as
# ever. Nothing failed. When was the last message handled that was more than five minutes late?
#
# - at_once: at 13:03 {lab13.repaired_is_over}
#   > When the cause is gone, messages still wait, and each new one waits behind them. Harm ends when the last harmed
#   > message is consumed, given up, or called again; if one still waits, it ends at midnight.
# - five: at 13:08, five minutes later
#   > The length of the backlog does not depend on your five minutes. It ends when the listener has processed it along
#   > with the new messages.
# - later: half an hour later, or more
#   = The listener had to process the backlog along with the new messages.
# note: A post-mortem has two pairs of times: the trouble, and the harm. Customers know the second.

# %%
life = facts.life.query("reads")
late = life[life["done_ms"] - life["stored_ms"] > 300_000]
last_late = int(late.loc[late["group"] == "billing", "done_ms"].max())
minutes_after = (last_late - made.asked.model.start_ms) / 60_000 - (13 * 60 + 3)
waited = (late["done_ms"] - late["stored_ms"]) / 60_000
Histogram(
    waited,
    title=f"Wait of late messages; the last was handled at {shown(last_late)}",
    unit="min",
)

# %%
kinds = {minutes_after > 20: "later", minutes_after < 2: "at_once"}
reveal("lab13.repaired", kinds.get(True, "five"))

# %% [prediction] lab13.planned
# The deploy of shipping took place at the time in the calendar. What harm did it do?
#
# - nobody: none; it was planned
#   > A plan states when, not how: the deploy killed the processes.
# - twice: some messages were handled twice
#   = A killed process handled these messages, and its successor handled them again.
# - lost: some messages were lost
#   > A group that loses its processes loses no message: its offsets do not advance on their own.
# note: The processes were killed before they had stored their offsets, so their successors began at older ones. Other
#   days have a planned deploy without harm. The calls distinguish them, not the calendar.
# later: -

# %%
again = repeated(facts)
in_the_hour = (again["started_ms"] - made.asked.model.start_ms) // 3_600_000
Bars(
    {
        f"{group}, from {hour:02}:00": len(rows)
        for (group, hour), rows in again.groupby(["group", in_the_hour])
    },
    title="Calls that were one too many",
    unit="calls",
)

# %%
reveal("lab13.planned", "twice" if len(again) else "nobody")

# %% [exercise] lab13.when
# ### Exercise 1: from when to when
#
# Write `when`. It takes the tables of a day and the messages that **one** incident harmed, as `{group: [msg_id]}`. It
# returns the beginning and the end of the harm, in ms. An answer is good if it shares four fifths of its time with the
# truth, or is within a minute at each end. The check reads days with incidents of all kinds, which takes three to five
# seconds.
#
# hint: Three sorts of rows: those of `only(facts.life, harmed)` that are lost or late, those of `only(repeated(facts),
#   harmed)`, and those of `only(dead_letters(facts), harmed)`. Make a list of beginnings and a list of ends.
# hint: A message may have been late for one reason and called twice for another. Rows of `life` count only where the
#   message was not consumed, or more than five minutes after it was stored.
# hint: Ends: `done_ms` of the late ones, `stored_ms` of dead letters, `started_ms` of repeated calls, `stored_ms` of
#   messages without a call, and `MIDNIGHT` if one was called, was not consumed and is not dead.
# note: This is the first line of the report. Nothing was noticed at either time.


# %%
# exercise: lab13.when
def when(facts, harmed):
    """Since when and until when an incident has harmed: two times in ms."""
    ### BEGIN SOLUTION
    life = only(facts.life, harmed)
    again = only(repeated(facts), harmed)
    dead = only(dead_letters(facts), harmed)
    never = life["done_ms"].isna()
    late = life["done_ms"] - life["stored_ms"] > FIVE_MINUTES
    since = [*life.loc[never | late, "stored_ms"], *again["started_ms"]]
    until = [*life.loc[late, "done_ms"], *dead["stored_ms"], *again["started_ms"]]
    until += list(life.loc[never & (life["calls"] == 0), "stored_ms"])
    if (never & (life["calls"] > 0) & ~life["dead"]).any():
        until.append(MIDNIGHT)
    return int(min(since)), int(max(until))
    ### END SOLUTION


# %%
check("lab13.when")

# %% [belief] lab13.local_time
# question: The files contain 1731306600000. Which time is that in the report?
# claim: The time on my wall clock.
# refutation: The ms of a store are UTC. A time zone shifts all times by whole hours, and the report must name the one
#   it uses.

# %% [belief] lab13.first_alarm
# question: When does an incident begin?
# claim: When it is noticed.
# refutation: Harm begins when the first harmed message is stored, or the first needless call begins. It is noticed
#   later: when a late message is done, or a dead letter is stored.

# %% [markdown]
# ## What six people say
#
# All times are UTC, as in the files. In Shanghai, subtract eight hours from your watch.

# %%
CLAIMS = (
    Claim("Chloé", "Nothing of notification is lost: its lag is 0."),
    Claim("Олег", "Shipping has three dead letters: three parcels are lost."),
    Claim(
        "陈静", "Billing was slow until 13:03, and nobody was billed late after that."
    ),
    Claim("José", "The deploy of shipping went as planned, so it harmed nobody."),
    Claim("Noah", "Analytics lets thousands lie on purpose: it was switched off."),
    Claim("佐藤", "Somebody started a third process of notification by hand."),
)
board = claim_board(facts, CLAIMS)
board

# %% [markdown]
# Begin with the usual first look, the lag (消费堆积) of each group at midnight:


# %%
def lag(known):
    rows = known.offsets
    return (rows["end"] - rows["committed"]).groupby(rows["group"]).sum().to_dict()


Bars(lag(facts), title="Behind at midnight", unit="messages")

# %% [prediction] lab13.lag_zero
# Billing, shipping and notification have nothing left to read. How many messages that one of them subscribes to did its
# listener never handle?
#
# - none: none, there is nothing left {lab13.lag_zero}
#   > A lag of 0 means that a group's offset is at the end of its queues. The messages before it may have been filtered
#   > out by a wrong subscription, skipped by a reset, or dead. Check for each message whether a call of it succeeded.
# - some: some, though the lag is 0
#   = An offset at the end has passed these messages, and it shows nothing more.
# - lag: as many as analytics is behind
#   > Those wait: analytics writes no trace, and by the calendar it was switched off.
# note: The lag counts messages that will be read, not those that were passed.
# later: -

# %%
never = life[life["successes"] == 0]
lost_by_group = never.groupby("group").size().to_dict()
Bars(lost_by_group, title="Never handled", unit="messages")

# %%
reveal("lab13.lag_zero", "some" if len(never) else "none")

# %% [prediction] lab13.dead_letters
# Three of these are dead letters (死信) of shipping: it has refused them six times each. How many customers wait for a
# parcel that never comes?
#
# - three: three {lab13.tests_count}
#   > First check whose orders they are. The calendar names a key: orders with this key are a load test's, and the group
#   > refuses them on purpose.
# - none: none, as far as the disks show
#   = The orders have the key that the calendar names. Shipping refuses a load test's orders, as it should.
# - unknown: that cannot be known
#   > The dead letter has the keys of its original message, and you have the calendar.
# note: A dead letter is a fact. Harm is a conclusion, and it needs a second look.
# later: -

# %%
dead = never[never["dead"]]
test_keys = {entry["key"] for entry in made.calendar if entry.get("key")}
for_the_test = [bool(test_keys & set(keys.split())) for keys in dead["keys"]]
Table(
    {
        "group": row.group,
        "keys": row.keys,
        "stored": shown(row.stored_ms),
        "load test": mine,
    }
    for row, mine in zip(dead.itertuples(), for_the_test, strict=True)
)

# %%
reveal("lab13.dead_letters", "none" if all(for_the_test) else "three")

# %% [markdown]
# ## Exactly which messages
#
# The duty manager wants the orders rather than a number, because each customer gets a letter.

# %% [exercise] lab13.whom
# ### Exercise 2: whom
#
# Write `whom`. It takes the tables of a day and its calendar, and returns all messages harmed on it, by any incident:
# `{group: [msg_id]}`. Refused orders of a load test are no harm. An answer is good if its intersection with the truth
# is 99 percent of their union.
#
# hint: Begin with `facts.life[facts.life["reads"]]`. A row can be lost, or late; `repeated(facts)` has the repeated
#   ones.
# hint: Not consumed is `done_ms.isna()`. It is harm if the message is dead, or was stored before `MIDNIGHT -
#   FIVE_MINUTES`; except dead letters whose keys contain the key of a load test: `entry.get("key")` of the calendar's
#   entries.
# hint: `by_group(pandas.concat([lost_or_late[columns], repeated(facts)[columns]]))` with columns `["group", "msg_id"]`
#   makes the answer of rows.
# note: That is the list of letters to write. The kind of incident does not matter to a customer.


# %%
# exercise: lab13.whom
def whom(facts, calendar):
    """Everybody who was harmed on a day: {group: [msg_id]}."""
    ### BEGIN SOLUTION
    tests = {entry["key"] for entry in calendar if entry.get("key")}
    life = facts.life[facts.life["reads"]]
    of_a_test = [bool(tests & set(keys.split())) for keys in life["keys"]]
    meant = life["dead"] & pandas.Series(of_a_test, index=life.index)
    over = life["dead"] | (life["stored_ms"] < MIDNIGHT - FIVE_MINUTES)
    never = life["done_ms"].isna() & over & ~meant
    late = life["done_ms"] - life["stored_ms"] > FIVE_MINUTES
    columns = ["group", "msg_id"]
    harmed = [life.loc[never | late, columns], repeated(facts)[columns]]
    return by_group(pandas.concat(harmed))
    ### END SOLUTION


# %%
check("lab13.whom")

# %% [belief] lab13.filtered_is_lost
# question: A group was never called with a message. Is the message lost for it?
# claim: Yes; the group has not handled it.
# refutation: A group that does not subscribe to a tag is not called with it, and misses nothing. Only messages whose
#   tag it reads can be lost.

# %% [belief] lab13.retry_is_harm
# question: The first call of a message failed, and a retry a minute later succeeded. Was there harm?
# claim: Yes; the call failed.
# refutation: The retry succeeded within five minutes, so the message is neither lost nor late. The second call is not
#   needless, because the first did not succeed.

# %% [belief] lab13.consumed_is_well
# question: A message was consumed. Is all well with it?
# claim: Yes; it is done.
# refutation: A message may have been consumed more than five minutes late, or twice. Both are harm by the table.

# %% [belief] lab13.dead_is_done
# question: Some dead letters are those of a load test. And the others?
# claim: A dead letter was refused on purpose, so none of them counts.
# refutation: A dead letter without the key of a load test is lost: it will never be handled. And a called message that
#   is neither dead nor done still waits.

# %% [belief] lab13.one_broker
# question: Where is the day stored?
# claim: In the store of broker-a.
# refutation: Each broker has its own messages, calls and dead letters, and the day is all of them. An answer from one
#   store lacks the others.

# %% [answer] lab13.another_night
# ### Your turn: another night
#
# Choose your own name. How many messages did the most harmful of its three incidents harm?
#
# wrong all: Those are all messages harmed on that day. Its three incidents are in different groups, or in the sender.
# wrong: Look at the bars, which your exercise 2 makes. A message that was stored twice (one id, two rows of orders)
#   belongs to the sender, in whatever group it was repeated.
# note: Each name has its own day. In class you get one for your name, made with your course's secret.

# %% tags=["parameter"]
### BEGIN SOLUTION
NAME = "night of Анна"
### STARTER
# NAME = "night 2410"  # yours to change
### END SOLUTION

other_night = disks_of(NAME)
try:
    harmed = dict(whom(other_night[1], other_night[0].calendar) or {})
except Exception:
    harmed = {}  # exercise 2 is open
orders = other_night[1].messages.query("topic == 'orders'")
twice = set(orders[orders["msg_id"].duplicated()]["msg_id"])
counts = {group: len(set(ids) - twice) for group, ids in harmed.items()}
counts["stored twice by its sender"] = sum(
    len(set(ids) & twice) for ids in harmed.values()
)
Bars(counts, title=f"Harmed in the {NAME}", unit="messages")

# %%
### BEGIN SOLUTION
answer("lab13.another_night", max(counts.values()), other_night, NAME)
### STARTER
# answer("lab13.another_night", ..., other_night, NAME)
### END SOLUTION

# %% [markdown]
# ## Which process did it
#
# "Billing was slow" is not enough at eight o'clock: which machine do we switch off? A group is several processes, and
# often only one is at fault. Then it differs from the others, which behaved as on every day.


# %% [prediction] lab13.third
# Notification has two processes next to each of the three brokers. From 12:40 to 14:34 some letters vanished, but not
# all. What does a table of its processes and their calls in that time show?
#
# - alike: six processes, all alike
#   > Then the whole group would have lost letters of that kind all day. Look for a difference: in calls, in time, in
#   > members.
# - idle: six processes, and one of them is hardly called
#   > An idle process leaves its messages in its queues, and the lag would grow. Here the offset passed the messages.
# - third: more than six processes
#   = The calls have nine addresses, and three of them appear in that time only.
# note: Next to each broker a third member ran. It subscribed to fewer tags, and the broker takes the latest subscription
#   for the whole group. A third member with fewer tags is a finding; who started it is a guess.
# later: -

# %% tags=["parameter"]
GROUP, SINCE, UNTIL = "notification", "12:39", "14:35"


def minute_of(clock):
    return int(clock[:2]) * 60 + int(clock[3:])


calls = facts.calls[facts.calls["group"] == GROUP]
minute = (calls["started_ms"] - made.asked.model.start_ms) // 60_000
inside = minute.between(minute_of(SINCE), minute_of(UNTIL))
clients = sorted(set(calls["client"]))

# %%
took_ms = calls["ended_ms"] - calls["started_ms"]
Table(
    {
        "client": client,
        "calls in the time": int((mine & inside).sum()),
        "before and after": int((mine & ~inside).sum()),
        "ms per call": round(took_ms[mine & inside].mean()),
    }
    for client in clients
    for mine in [calls["client"] == client]
)

# %%
strangers = [
    client for client in clients if not ((calls["client"] == client) & ~inside).any()
]
reveal("lab13.third", "third" if len(strangers) == BROKERS else "alike")

# %% [markdown]
# The sign depends on the kind of incident. Your days have these kinds:
#
# | kind | what happened | culprit |
# |---|---|---|
# | `slow_consumer` | the listener took several times as long | one process next to each broker, or all of the group |
# | `failing_consumer` | the listener failed, for some minutes | the same |
# | `inconsistent_tags` | a member joined that subscribes to fewer tags | the member that joined |
# | `stuck_message` | a call that never returned | the process that was called |
# | `killed_listener` | calls hung, and the process was killed, several times | that process |
# | `lost_answer` | answers to a sender were lost, it sent again | the sender |
# | `deploy` | processes were killed in turn, before they stored their offsets | none: all of them, by a plan |
# | `wrong_reset`, `skipped` | an operator set the group's offsets back, or to the end | none: a person, who is not on the disks |
# | `poison_message` | a message that fails at each attempt | none: the message |

# %% [exercise] lab13.why
# ### Exercise 3: who
#
# Write `why`. It takes the tables of a day and a finding: a dictionary with `kind`, `group` (`""` for `lost_answer`),
# `since` and `until`, the times of the harm. It returns the addresses of the processes at fault, as in the columns
# `client` and `sender`; an empty list if no process of the group stands out.
#
# hint: Take the group's calls in that time, and compute per client what the kind needs: duration of its calls, share of
#   failed calls, calls with `NO_RESULT`. For `lost_answer`: which sender has sent the messages that are stored twice?
# hint: Compare a slow client with itself outside that time. The harm lasts longer than the slowness, which hides in a
#   mean: compare the slowest tenth, `quantile(0.9)`. If all of the group's clients are slow, or fail, none stands out.
# hint: The member that joined was there before the first message vanished and after the last one: all its calls are
#   within half an hour of that time. The others have calls all day.
# note: You can act on an address. An empty list is also an answer: look for a plan, a person, or a message.


# %%
# exercise: lab13.why
def why(facts, finding):
    """The processes that did it: addresses; none where no process stands out."""
    ### BEGIN SOLUTION
    kind, since, until = finding["kind"], finding["since"], finding["until"]
    if kind == "lost_answer":
        orders = facts.messages[facts.messages["topic"] == "orders"]
        return sorted(set(orders.loc[orders["msg_id"].duplicated(), "sender"]))
    calls = facts.calls[facts.calls["group"] == finding["group"]]
    inside = calls["started_ms"].between(since, until)
    within, outside = calls[inside], calls[~inside]
    if kind in ("stuck_message", "killed_listener"):
        hung = (calls["status"] == "NO_RESULT") & (calls["started_ms"] <= until)
        return sorted(set(calls.loc[hung, "client"]))
    if kind == "inconsistent_tags":
        half_an_hour = 30 * 60_000
        near = calls["started_ms"].between(since - half_an_hour, until + half_an_hour)
        return sorted(set(calls.loc[near, "client"]) - set(calls.loc[~near, "client"]))
    if kind == "slow_consumer":

        def slowest_ms(rows):
            took_ms = rows["ended_ms"] - rows["started_ms"]
            return took_ms.groupby(rows["client"]).quantile(0.9)

        stands_out = slowest_ms(within) > 1.25 * slowest_ms(outside).reindex(
            sorted(set(within["client"]))
        )
    elif kind == "failing_consumer":
        failed = within["status"] != "SUCCESS"
        of_each = failed.groupby(within["client"])
        stands_out = (of_each.mean() > 0.1) & (of_each.sum() > 1)
    else:
        return []
    found = sorted(stands_out.index[stands_out])
    return found if len(found) < len(stands_out) else []
    ### END SOLUTION


# %%
check("lab13.why")

# %% [belief] lab13.whole_group
# question: Billing was slow. Who did it?
# claim: Billing did.
# refutation: To name the group is to name all its running processes. Compare them with each other, and each with itself
#   at other times. Only those that stand out are at fault; if none does, no process is.

# %% [belief] lab13.all_alike
# question: A group's processes run the same program. Can one of them be at fault?
# claim: No; they are all alike.
# refutation: One process stands out: its calls are slower, fail, or never end, or it was absent at other times. It may
#   have another configuration, machine, or version.

# %% [belief] lab13.reader_did_it
# question: Messages were handled twice. Where is the process at fault?
# claim: Among the group's processes, because they handled them.
# refutation: If messages are stored twice, their readers handled what is there; look at their sender.

# %% [belief] lab13.busiest
# question: Which process is at fault?
# claim: The one with the most calls in that time.
# refutation: A large number of calls is not a fault: a process may do another's work. Look for slow calls, failed ones,
#   and calls without an end.

# %% [belief] lab13.in_doubt
# question: A process was called with a message, and after its crash another one was. Which is at fault?
# claim: Both, because both had the message.
# refutation: Some processes only took over another's messages. Name only those whose calls never ended, were slow or
#   failed in that time.

# %% [markdown]
# ## Three findings, no more
#
# Now the first page of the report: what went wrong, the worst first. The war room has a place for your notes. Look at
# each group again before you write a program that does:

# %%
findings = war_room(facts, group="shipping", at="11:20")
findings.note("calls again, during the deploy")
findings.go("12:30", "billing").note("calls waited, none failed")
findings.go("13:30", "notification").note("some letters are never called")
findings.notes()

# %%
vanished = life[(life["group"] == "notification") & (life["calls"] == 0)]
of_tag = vanished.groupby("tags").size().to_dict()
Bars(of_tag, title="Letters that notification was never called with", unit="messages")

# %% [markdown]
# Ten kinds of incidents can happen on such a day, and each leaves a sign in the tables:

# %%
table_of_signs()

# %% [exercise] lab13.triage
# ### Exercise 4: triage
#
# Write `triage`. It takes the tables of a day, the result of a first look as `{group: [msg_id]}`, and the calendar.
# Return a list of findings `(kind, group)`, the most harmful first.
#
# - A first look contains the harmed messages, and the dead letters of a load test, if there was one.
# - The group of `lost_answer` is `""`.
# - Each day has three incidents, and no group has two. Find the kind of each by its sign in the table above.
# - A wrong finding costs as much as a right one gains. A wrong order costs a quarter.
#
# hint: First remove the load test's dead letters, by the calendar's key. Then those that are stored twice: if there are
#   any, that is one finding. The rest of each group is one incident.
# hint: Check the signs in the order of the table: a call without an end of a message that is not done, never called at
#   all, called again, failed, late.
# hint: *Never called*: take all messages of the group that were stored between the first and the last of them. If more
#   than half of each tag was never called, the group was stopped. *Called again*: `started_ms` minus the `stored_ms` of
#   the message.
# note: Every large operations team has such a triage. It finds known kinds only. In the second part you repair the day,
#   and write an alarm for the next one.


# %%
# exercise: lab13.triage
def triage(facts, seen, calendar):
    """What went wrong, the most harmful first: a list of (kind, group)."""
    ### BEGIN SOLUTION
    tests = {entry["key"] for entry in calendar if entry.get("key")}
    orders = facts.messages[facts.messages["topic"] == "orders"]
    stored_twice = set(orders.loc[orders["msg_id"].duplicated(), "msg_id"])
    life = only(facts.life[facts.life["reads"]], seen)
    of_a_test = [bool(tests & set(keys.split())) for keys in life["keys"]]
    life = life[~(life["dead"] & pandas.Series(of_a_test, index=life.index))]
    sent_again = life["msg_id"].isin(stored_twice)
    harms = {("lost_answer", ""): int(sent_again.sum())} if sent_again.any() else {}
    for group, mine in life[~sent_again].groupby("group"):
        harms[kind_of(facts, group, mine), group] = len(mine)
    return sorted(harms, key=harms.get, reverse=True)


def kind_of(facts, group, mine):
    """The kind of incident that has harmed these messages of a group."""
    calls = facts.calls[facts.calls["group"] == group]
    endless = calls[calls["status"] == "NO_RESULT"]
    not_done = mine[mine["done_ms"].isna()]
    if not_done["msg_id"].isin(endless["msg_id"]).any():
        return "stuck_message"
    uncalled = mine[mine["calls"] == 0]
    if len(uncalled):
        life = facts.life[(facts.life["group"] == group) & facts.life["reads"]]
        first, last = uncalled["stored_ms"].min(), uncalled["stored_ms"].max()
        then = life[life["stored_ms"].between(first, last)]
        gone = (then["calls"] == 0).groupby(then["tags"]).mean()
        return "skipped" if gone.min() > 0.5 else "inconsistent_tags"
    again = only(repeated(facts), {group: list(mine["msg_id"])})
    if len(again):
        stored_ms = again["msg_id"].map(mine.set_index("msg_id")["stored_ms"])
        if (again["started_ms"] - stored_ms).max() > 20 * 60_000:
            return "wrong_reset"
        return "killed_listener" if endless["client"].nunique() == 1 else "deploy"
    failed = calls[calls["status"] != "SUCCESS"]
    failed_ids = set(failed["msg_id"]) & set(mine["msg_id"])
    if len(failed_ids) * 2 > len(mine):
        return "failing_consumer" if len(mine) > 1 else "poison_message"
    return "slow_consumer"
    ### END SOLUTION


# %%
check("lab13.triage")

# %% [belief] lab13.tests_alarm
# question: A group has dead letters. Is that an incident?
# claim: Yes, and so it is a finding.
# refutation: A load test's orders and planned shutdowns look like trouble, but are not. The calendar has the test's
#   key: remove its dead letters before you look at a group.

# %% [belief] lab13.few_is_none
# question: Two messages of thousands were handled twice. Does that belong in the report?
# claim: No; such small numbers are noise.
# refutation: An incident that harmed few is still an incident. In these tables nothing happens by chance: a harmed
#   message has a cause. And two customers who were billed twice are not noise.

# %% [belief] lab13.by_time
# question: In which order are findings listed?
# claim: In the order in which they happened.
# refutation: The most harmful comes first, because some readers read only one line. Each line has its beginning.

# %% [answer] lab13.false_claims
# ### Your turn: the wall
#
# Check each claim against the tables, and judge it: true, false, or cannot be told. The first two are done. How many of
# the six are false?
#
# wrong five: That a person started a process is not false. It cannot be told: the disks show only the process.
# wrong planned: The deploy took place as planned, and yet messages were handled twice: José claims that it did no harm.
# wrong: Read each claim to its end: a lag of 0, three dead letters of a test, the last late bill, the repeated calls.
# note: José has the facts right and the conclusion wrong. That is the most expensive kind of claim, because it is never
#   checked.

# %%
board.ask("Chloé", lambda known: f"never handled: {lost_by_group}")
board.judge("Chloé", "false")
board.ask("Олег", lambda known: f"{sum(for_the_test)} of {len(dead)} are a test's")
board.judge("Олег", "false")
### BEGIN SOLUTION
board.ask("陈静", lambda known: f"the last late one at {shown(last_late)}")
board.judge("陈静", "false")
board.ask("José", lambda known: f"{len(repeated(known))} calls too many")
board.judge("José", "false")
board.ask("Noah", lambda known: [one["what"] for one in made.calendar])
board.judge("Noah", "true")
board.ask("佐藤", lambda known: f"there were {len(strangers)} more, until 14:35")
board.judge("佐藤", "cannot be told")
### STARTER
# # board.ask("陈静", lambda known: …) and so on
### END SOLUTION
board

# %%
### BEGIN SOLUTION
answer("lab13.false_claims", 4, board)
### STARTER
# answer("lab13.false_claims", ..., board)
### END SOLUTION

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That the trace is complete.** A killed process loses its last half second of trace, and a broker may lose what was
#   not flushed. Here a call without an end lacks its second half, whatever the reason.
# - **That a harmed message harmed a customer.** A listener that handles a message twice may be idempotent ([lab
#   04b](04b-beginning-again.ipynb)).
# - **That a cause is a reason.** You know which process. Ask people why it had fewer tags.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what you used | where it is |
# |---|---|
# | trace of each call, in two halves | `ConsumeMessageTraceHookImpl`, `TraceDataEncoder`: `SubBefore` and `SubAfter` |
# | where it is kept | the topic `RMQ_SYS_TRACE_TOPIC` |
# | one id for all copies of a message | the property `UNIQ_KEY`, made by `MessageClientIDSetter` |
# | committed offsets | `config/consumerOffset.json`, by `ConsumerOffsetManager` |
# | dead letters | `%DLQ%` and the group's name, by `SendMessageProcessor` after the last attempt |
# | the broker keeps one subscription of a group, the latest | `ConsumerManager.registerConsumer`, `ConsumerGroupInfo.updateSubscription` |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab13.two_times
# **1.** The report says: "Incident from 12:08 to 13:03." Support has complaints from 13:30. Which is wrong?
#
# answer: Neither; they describe different things. From 12:08 to 13:03 the listener was slow. Customers were billed late
#   from 12:16, when the first late message was stored, until 13:43, when the backlog was gone. A report needs both,
#   labelled.

# %% [reflection] lab13.same_harm
# **2.** Two incidents of one day harmed the same message. In which list does it belong?
#
# answer: In the list of letters once, and in the finding of each incident. If you repair one incident, this message is
#   not yet repaired.

# %% [reflection] lab13.no_trace
# **3.** Analytics writes no trace. What could you say if it had lost messages?
#
# answer: From offsets alone, very little: its position, and its history if there are old copies of consumerOffset.json.
#   A jump forward is a skip, a step back is a reset. You cannot tell what its listener did with each message.

# %% [markdown] tags=["reading"]
# ## Next
#
# The [second part](13b-what-now.ipynb): a repair, and an alarm for the next time.
