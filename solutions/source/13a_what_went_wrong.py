# %% [markdown] minutes=3 tags=["reading"]
# # Lab 13a: What went wrong
#
# ## Why
#
# It is twenty past midnight, and the telephone rings. "Something was wrong yesterday," says the duty manager. "Six people
# have told me what, and each of them something else. At eight I need to know: what, from when to when, which messages,
# and who. I have put the disks of the three brokers on your machine."
#
# There is no log of a program, no dashboard, and nobody awake to ask. There are files: what was stored, which offsets the
# groups have committed, and the trace that clients wrote about each call of their listeners. That is enough. One of your
# colleagues is right, one cannot know what she says, and four are wrong in ways in which everybody is wrong at midnight.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 07a](07a-failure-takes-time.ipynb), [lab 04b](04b-beginning-again.ipynb) and a little
# pandas. When you are done you can
#
# - say from disks alone which messages were lost, late, or given twice, and leave out what only looks so;
# - say when harm (损害) began and when it ended, which is not when the trouble did;
# - tell a process from its group, and what is known from what is guessed;
# - write a first triage (分诊) of a day that you have never seen.

# %%
import tempfile
from pathlib import Path

import pandas

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.given.lab13.day_answers import with_day
from mqlab.course.given.lab13.signs import table_of_signs
from mqlab.course.widgets.boards.war_room import Claim, claim_board, war_room
from mqlab.data.traffic import capstone
from mqlab.data.traffic.day_facts import facts_of
from mqlab.data.traffic.day_watch import again_of
from mqlab.lab.views import Bars, Histogram, Table

# %%
from mqlab.scales import SECOND, time_text

# %% [markdown] minutes=7
# ## Yesterday's disks
#
# The day is made, not recorded, so you can have as many as you like. Each name gives another one, with three incidents and
# two things that only look like incidents. This takes a few seconds:


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
# Five tables, read from the brokers' files without Spark. (At home, with a hundred million messages, the pipeline of
# [lab 10](10a-spark-reads-the-broker.ipynb) makes such tables.)
#
# | table | one row per | what you will use |
# |---|---|---|
# | `facts.messages` | stored message, trace left out | `topic`, `tags`, `keys`, `msg_id`, `stored_ms`, `sender` |
# | `facts.calls` | call of a listener and message in it | `group`, `msg_id`, `client`, `started_ms`, `ended_ms`, `status` |
# | `facts.life` | order message and group | `reads`, `calls`, `successes`, `stored_ms`, `first_ms`, `done_ms`, `dead` |
# | `facts.offsets` | group and queue | `committed`, `end` |
# | `facts.damaged` | unreadable trace entry | empty today |
#
# Times are ms since 1970, as the broker writes them; what never happened is NaN. `reads` is false where a group does not
# subscribe to the message's tag. `done_ms` is the end of the first call that succeeded. `client` and `sender` are addresses
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
# On the wall of the operators' room hangs a calendar of what had been planned:


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

# %% [markdown] minutes=35
# ## Lost, late, or twice
#
# Nobody is harmed by a slow listener as such, nor by a failed call that a retry has healed. So let us say once what harm is.
# A message harms somebody in a group that reads its tag, if it is
#
# | word | means |
# |---|---|
# | **lost** | it was never consumed, and nobody will read it any more: it is a dead letter, or the offset went past it |
# | **late** | it was consumed more than five minutes after it was stored; or it still waits at midnight, for more than five minutes |
# | **twice** | a call began after another call of the same message, which succeeded or never ended |
#
# And the harm of an incident lasts **from** when its first harmed message was stored (for *twice*: when the first needless call
# began) **until** the last one was consumed, given up, or called again. A message is given up when its dead letter is stored.
# One that was never called is given up when it is stored, and one that still waits has harmed until midnight.
#
# These helpers are yours to use in all exercises:


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
# The **war room** has the rest of the day: one group, five minutes by five minutes, and one cursor through all charts.
# Choose a group, click into the charts, and note at the cursor what strikes you. The number at the right of a chart is its
# value at the cursor. It draws no conclusion, and does not ring.

# %% tags=["explorer"]
room = war_room(facts, group="billing", at="12:30")
room

# %% [prediction] lab13.repaired
# Billing's listener took many times as long as usual, until somebody repaired it at 13:03. From then on it was as quick as
# ever. Nothing failed. When was the last message handled that was more than five minutes late?
#
# - at_once: at 13:03 {lab13.repaired_is_over}
#   > When the cause is gone, messages still wait, and each new one waits behind them. Harm ends when the last harmed message
#   > is consumed, given up, or called again; if one still waits, it ends at midnight.
# - five: at 13:08, five minutes later
#   > The backlog does not know of your five minutes. It is gone when the listener has worked it off, beside what is new.
# - later: half an hour later, or more
#   = The backlog had to be worked off, beside what was new.
# note: A post-mortem has two pairs of times: when something was wrong, and when somebody was harmed. Customers know the second.

# %%
life = facts.life.query("reads")
late = life[life["done_ms"] - life["stored_ms"] > 300_000]
last_late = int(late.loc[late["group"] == "billing", "done_ms"].max())
minutes_after = (last_late - made.asked.model.start_ms) / 60_000 - (13 * 60 + 3)
waited = (late["done_ms"] - late["stored_ms"]) / 60_000
Histogram(waited, title=f"Late; the last one at {shown(last_late)}", unit="min")

# %%
kinds = {minutes_after > 20: "later", minutes_after < 2: "at_once"}
reveal("lab13.repaired", kinds.get(True, "five"))

# %% [prediction] lab13.planned
# The deploy of shipping is in the calendar, at the time at which it took place. Whom did it harm?
#
# - nobody: nobody, it was planned
#   > A plan says when, and not how. These processes were killed before they had stored their offsets, so those that took over
#   > began at older ones.
# - twice: some messages were handled twice
#   = The processes were killed before they had stored their offsets. Those that took over began at older ones.
# - lost: some messages were lost
#   > A group that loses its processes loses no message: offsets do not go forward by themselves.
# note: A planned deploy without harm is on other days. What tells them apart is not in the calendar but in the calls.

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
# Write `when`. It gets the tables of a day and whom **one** incident harmed, as `{group: [msg_id]}`. It returns the beginning and
# the end of the harm, in ms. It will be asked about incidents of all kinds, on days that you have not seen. An answer is
# good when it shares four fifths of its time with the truth, or is a minute away at each end. The check reads days that have
# incidents of all kinds, which takes three to five seconds.
#
# hint: Three sorts of rows: those of `only(facts.life, harmed)` that are lost or late, those of `only(repeated(facts), harmed)`,
#   and those of `only(dead_letters(facts), harmed)`. A list of beginnings, a list of ends.
# hint: A message may have been late for one reason and called twice for another. Rows of `life` count only where the message
#   was not consumed, or more than five minutes after it was stored.
# hint: Ends: `done_ms` of the late ones, `stored_ms` of dead letters, `started_ms` of repeated calls, `stored_ms` of what was
#   never called, and `MIDNIGHT` if one was called, was not consumed and is not dead.
# note: Now you have the first line of the report. Note that neither time is one at which somebody noticed anything.


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
# question: The files say 1731306600000. Which time is that in the report?
# claim: What the clock on my wall shows then.
# refutation: Your times are whole hours away from the right ones. The ms of a store are UTC: a time zone that creeps in moves
#   everything, and the report must name the one it uses.

# %% [belief] lab13.first_alarm
# question: When does an incident begin?
# claim: When somebody notices it.
# refutation: Harm begins when the first harmed message is stored, or the first needless call begins. It is noticed later: when
#   a late message is done, or a dead letter comes.

# %% [markdown] minutes=14
# ## What six people say
#
# All times are UTC, as in the files. Somebody in Shanghai has to take eight hours off what her watch showed.

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
# Begin with what everybody looks at first, the lag (消费堆积) of each group at midnight:


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
#   > A lag of 0 says that a group's offset is at the end of its queues. It does not say what happened to the messages that
#   > the offset went past: filtered out by a wrong subscription, skipped by a reset, or dead. Ask for each message whether a
#   > call of it succeeded.
# - some: some, though the lag is 0
#   = An offset that is at the end has gone past these messages, and that is all it says.
# - lag: as many as analytics is behind
#   > Those wait, and nobody has called them lost: analytics writes no trace, and the calendar says that it was switched off.
# note: The lag counts what will be read. What was passed by is not in it.

# %%
never = life[life["successes"] == 0]
lost_by_group = never.groupby("group").size().to_dict()
Bars(lost_by_group, title="Never handled", unit="messages")

# %%
reveal("lab13.lag_zero", "some" if len(never) else "none")

# %% [prediction] lab13.dead_letters
# Three of these are dead letters (死信) of shipping: it has refused them six times each. How many customers wait for a parcel
# in vain?
#
# - three: three {lab13.tests_count}
#   > Look at whose orders they are before you wake somebody. The calendar names a key: orders with this key are a load
#   > test's, and the group refuses them on purpose.
# - none: none, as far as the disks tell
#   = The orders have the key that the calendar names. Shipping refuses what a load test orders, as it should.
# - unknown: nobody can know that
#   > The dead letter has the keys of the message that it was, and the calendar is there to be read.
# note: A dead letter is a fact. That somebody is harmed by it is a conclusion, and it needs a second look.

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

# %% [markdown] minutes=35
# ## Exactly whom
#
# The duty manager does not want a number. She wants the orders, so that somebody can write to each customer. One name too many
# is an apology for nothing, one too few is somebody who hears nothing.

# %% [exercise] lab13.whom
# ### Exercise 2: whom
#
# Write `whom`. It gets the tables of a day and its calendar, and returns everybody who was harmed on it, by whatever
# incident: `{group: [msg_id]}`. What a load test has ordered harms nobody when it is refused. An answer is good when what it has
# in common with the truth is 99 percent of both together.
#
# hint: Begin with `facts.life[facts.life["reads"]]`. A row can be lost, or late; `repeated(facts)` has those that came twice.
# hint: Not consumed is `done_ms.isna()`. It is harm if the message is dead, or was stored before `MIDNIGHT - FIVE_MINUTES`; except
#   for the dead letters whose keys hold the key of a load test: `entry.get("key")` of the calendar's entries.
# hint: `by_group(pandas.concat([lost_or_late[columns], repeated(facts)[columns]]))` with columns `["group", "msg_id"]` makes the
#   answer of rows.
# note: That was the list of the letters to write. It has no kind of incident in it: whoever is harmed does not care.


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
# claim: Yes, nobody has handled it.
# refutation: A group that does not subscribe to a tag is not called with it, and misses nothing. Only messages whose tag it
#   reads can be lost.

# %% [belief] lab13.retry_is_harm
# question: The first call of a message failed, and a retry a minute later succeeded. Was somebody harmed?
# claim: Yes, the call failed.
# refutation: A retry has healed it within five minutes, and that is what retries are for. It is neither lost nor late, and the
#   second call is not one too many, because the first did not succeed.

# %% [belief] lab13.consumed_is_well
# question: A message was consumed. Is all well with it?
# claim: Yes, it is done.
# refutation: Consumed is not all: it can be consumed more than five minutes late, or a second time. Both are harm by the words
#   of the table.

# %% [belief] lab13.dead_is_done
# question: Some dead letters are those of a load test. And the others?
# claim: A dead letter was refused on purpose, so none of them counts.
# refutation: A dead letter without the key of a load test is a message that nobody will handle any more: it is lost. And what was
#   called, is not dead and not done still waits.

# %% [belief] lab13.one_broker
# question: Where is the day?
# claim: In the store of broker-a.
# refutation: Nothing of one broker is in your answer. Each broker has messages, calls and dead letters of its own, and the day is
#   all of them.

# %% [answer] lab13.another_night
# ### Your turn: another night
#
# Choose a name of your own. How many messages did the most harmful of its three incidents harm?
#
# wrong all: That is everybody who was harmed on that day. Its three incidents are in different groups, or in the sender.
# wrong: Look at the bars, which are made with your exercise 2. A message that was stored twice (one id, two rows of orders) belongs to
#   the sender, in whatever group it came twice.
# note: Each name has a day of its own. In class you get one for your name, made with a secret that only your course has.

# %% tags=["parameter"]
### BEGIN SOLUTION
NAME = "night of Анна"
### STARTER
# NAME = "night 2410"  # yours to change
### END SOLUTION

other_night = disks_of(NAME)
try:
    harmed = whom(other_night[1], other_night[0].calendar) or {}
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

# %% [markdown] minutes=30
# ## Who did it
#
# "Billing was slow" is not enough at eight o'clock: which machine do we switch off? A group is several processes, and often one
# of them is at fault. Then it stands out among its like: the others did at the same time what they do on every day.


# %% [prediction] lab13.third
# Notification has two processes beside each of the three brokers. From 12:40 to 14:34 letters vanished, but only some. What will
# a table of its processes and their calls in that time show?
#
# - alike: six processes, all alike
#   > Then the whole group would have lost letters of that kind all day. Look for a difference: in calls, in time, in who is there.
# - idle: six processes, and one of them is hardly called
#   > An idle process leaves its messages in its queues, and the lag would grow. These messages were passed by.
# - third: more than six processes
#   = Beside each broker a third member was there, in that time only. It subscribed to fewer tags, and the broker takes the latest
#   = subscription for the whole group.
# note: Who started them is not on the disks. A third member with fewer tags is a finding; a person is a guess.

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
# What stands out depends on the kind of incident. These are the kinds that your days have:
#
# | kind | what happened | whom it can point to |
# |---|---|---|
# | `slow_consumer` | the listener took several times as long | one process beside each broker, or all of the group |
# | `failing_consumer` | the listener failed, for some minutes | the same |
# | `inconsistent_tags` | a member joined that subscribes to fewer tags | the member that joined |
# | `stuck_message` | a call that never returned | the process that was called |
# | `killed_listener` | calls hung, and the process was killed, several times | that process |
# | `lost_answer` | answers to a sender were lost, it sent again | the sender |
# | `deploy` | processes were killed in turn, before they stored their offsets | nobody: all of them, by a plan |
# | `wrong_reset`, `skipped` | somebody set the group's offsets back, or to the end | nobody: a person, who is not on the disks |
# | `poison_message` | a message that fails at each try | nobody: the message |

# %% [exercise] lab13.why
# ### Exercise 3: who
#
# Write `why`. It gets the tables of a day and a finding: a dictionary with `kind`, `group` (`""` for `lost_answer`), `since` and
# `until`, which are the times of the harm. It returns the addresses of the processes that did it, as in the columns `client`
# and `sender`; an empty list if no process stands out among those of its group.
#
# hint: Take the calls of the group in the time, and ask for each client what the kind says: how long its calls took, share of
#   calls that failed, calls with `NO_RESULT`. For `lost_answer`: who has sent the messages that are stored twice?
# hint: Slow compared with what? With the same client outside the time. The harm lasts longer than the slowness, so a mean may
#   hide it: compare the slowest tenth, `quantile(0.9)`. If all of the group's clients are slow, or fail, none stands out.
# hint: The member that joined was there before the first message vanished and after the last one: its calls lie within half an
#   hour around the time. The others have calls all day.
# note: An address is something one can act on. An empty list is an answer too: look for a plan, a person, or a message.


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
# refutation: These are all processes of the group that were at work. Compare them with each other, and each with itself at other
#   times: only those that stand out did it, and if none does, no process did.

# %% [belief] lab13.all_alike
# question: A group's processes run the same program. Can one of them be at fault?
# claim: No, they are all alike.
# refutation: One process stands out: its calls are slower, fail, or never end, or it was not there at other times. The same program
#   runs with another configuration, on another machine, or in another version.

# %% [belief] lab13.reader_did_it
# question: Messages were handled twice. Where is the process that did it?
# claim: Among the group's processes, for they handled them.
# refutation: These messages are stored twice. Their readers handled what is there; look at who has sent them.

# %% [belief] lab13.busiest
# question: Which process is at fault?
# claim: The one with the most calls in that time.
# refutation: Many calls are no fault: whoever does the work of another has many. Look for what only the one at fault did: slow
#   calls, failed ones, calls without an end.

# %% [belief] lab13.in_doubt
# question: A process was called with a message, and after its death another one was. Who did it?
# claim: Both had the message.
# refutation: Some of these did nothing wrong: they were given what another had left. Name those whose calls never ended, were slow or
#   failed in that time, and nobody in doubt.

# %% [markdown] minutes=45
# ## Three findings, no more
#
# At last, the first page of the report: what went wrong, with the worst first. The war room has a place for what you have
# noticed. Look once more at each group before you write a program that does:

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
# Write `triage`. It gets the tables of a day, what a first look sees, as `{group: [msg_id]}`, and the calendar. What a first
# look sees is whom the incidents harmed, and beside them the dead letters of a load test, if there was one. Return a list of
# findings `(kind, group)`, the one that harmed most messages first. The group of `lost_answer` is `""`.
#
# Each day has three incidents, and no group has two. So the question is: which kind is it? Each kind leaves its sign, as the table above says.
#
# A wrong finding takes away what a right one gives. A wrong order costs a quarter.
#
# hint: First take away the load test's: dead letters with the calendar's key. Then those that are stored twice: if any of them is
#   seen, that is one finding. What is left of each group is one incident.
# hint: Go through the signs in the order of the table: a call without an end of a message that is not done, never called at all,
#   called again, failed, late.
# hint: *Never called*: take all messages of the group that were stored between the first and the last of them. If more than half
#   of each tag was never called, the group was stopped. *Called again*: `started_ms` minus the `stored_ms` of the message.
# note: There are triages of this kind in every large operations team. They find what was thought of. In the second part you will
#   repair the day, and write an alarm for the next one.


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
# refutation: What a load test has ordered, and what a plan has switched off, looks like trouble and is none. The calendar has the
#   key of the test: take its dead letters away before you look at a group.

# %% [belief] lab13.few_is_none
# question: Two messages of thousands were handled twice. Does that belong into the report?
# claim: No, such small numbers are noise.
# refutation: An incident is missing that harmed few. In these tables nothing happens by chance: a message that is harmed has a
#   cause. And two customers who were billed twice do not count themselves as noise.

# %% [belief] lab13.by_time
# question: In which order do findings stand?
# claim: As they happened.
# refutation: The most harmful comes first: whoever reads only one line must read that one. When each began is in its line.

# %% [answer] lab13.false_claims
# ### Your turn: the wall
#
# Ask the tables about each claim, and judge it: true, false, or cannot be told. The first two are done. How many of the six
# are false?
#
# wrong five: That somebody started a process is not false. It cannot be told: the disks show the process, and nobody's hand.
# wrong planned: The deploy took place as planned, and yet messages were handled twice: José says that it harmed nobody.
# wrong: Look at each claim to its end: a lag of 0, three dead letters of a test, the last late bill, the repeated calls.
# note: José has the facts right and the conclusion wrong. That is the most expensive kind of claim, for nobody checks it.

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

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **That the trace is complete.** It is a topic like others: a process that is killed takes its last half second with it, and a
#   broker may lose what was not flushed. Here a call without an end is one whose second half is missing, whatever the reason.
# - **That a harmed message harmed somebody.** A listener that handles a message twice may be idempotent
#   ([lab 04b](04b-beginning-again.ipynb)). The disks say what came, not what was done.
# - **That a cause is a reason.** You know which process. Why it had fewer tags is a question to people.

# %% [markdown] minutes=2 tags=["reading"]
# ## RocketMQ does it so
#
# | what you used | where it is |
# |---|---|
# | trace of each call, in two halves | `ConsumeMessageTraceHookImpl`, `TraceDataEncoder`: `SubBefore` and `SubAfter` |
# | where it is kept | the topic `RMQ_SYS_TRACE_TOPIC` |
# | one id for all copies of a message | the property `UNIQ_KEY`, made by `MessageClientIDSetter` |
# | committed offsets | `config/consumerOffset.json`, by `ConsumerOffsetManager` |
# | dead letters | `%DLQ%` and the group's name, by `SendMessageProcessor` when the tries are over |
# | the broker keeps one subscription of a group, the latest | `ConsumerManager.registerConsumer`, `ConsumerGroupInfo.updateSubscription` |

# %% [markdown] minutes=5 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab13.two_times
# **1.** The report says: "Incident from 12:08 to 13:03." Support has complaints from 13:30. Who is wrong?
#
# answer: Nobody; they speak of two things. From 12:08 to 13:03 the listener was slow. From 12:16, when the first message was
#   stored that was to be late, until 13:43, when the last of the backlog was done, customers were billed late. A report needs both,
#   and says which is which.

# %% [reflection] lab13.same_harm
# **2.** Two incidents of one day harmed the same message. In which list does it belong?
#
# answer: In the list of letters to write once, and in the finding of each incident. Whoever repairs one of them must know
#   that it is not repaired for this message. (On the days of this lab it does not happen: each harms another group.)

# %% [reflection] lab13.no_trace
# **3.** Analytics writes no trace. What could you say if it had lost messages?
#
# answer: From offsets alone, very little: how far it is, and at several moments how it got there, if somebody keeps old copies
#   of consumerOffset.json. A jump forward is a skip, a step back is a reset. What its listener did with each message cannot be told.

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# The [second part](13b-what-now.ipynb): a repair, and an alarm for the next time.
