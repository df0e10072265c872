# %% [markdown] minutes=2 tags=["reading"]
# # Lab 13b: What now
#
# ## Why
#
# It is six in the morning, and the [first part](13a-what-went-wrong.ipynb) is in the report. "Good," says the duty manager. "And
# now? The letters have to go out before eight. And I want to be told next time, before a customer tells me."
#
# "Set the offsets back to noon," says somebody, "then everything comes again." That is true, and it is what happened to somebody
# else last year: everything came again.

# %% [markdown] minutes=1 tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the first part. When you are done you can
#
# - plan a repair, count its deliveries before it runs, and carry it out on a copy;
# - say which dead letters may be sent again, and which may not;
# - write an alarm (告警) that rings in time, and is quiet on a good day.

# %%
import tempfile
from collections import Counter
from pathlib import Path

import pandas

from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.given.lab13.alarm_league import league
from mqlab.course.given.lab13.day_answers import rung, with_day, with_moments
from mqlab.course.widgets.boards.war_room import replay
from mqlab.data.traffic import alarm_day, capstone
from mqlab.data.traffic.day_facts import facts_of
from mqlab.data.traffic.day_watch import watched
from mqlab.data.traffic.playing.repairing import Plan, carry_out
from mqlab.lab.views import Bars, Curve, Table

# %%
from mqlab.scales import time_text

# %% [markdown] minutes=4
# ## The same night, smaller
#
# A repair is carried out in a Lab, so the night has 12,000 messages here. Notification lost letters: a third member had joined with
# fewer tags, and the offset went past what it did not subscribe to.

# %%
folder = Path(tempfile.mkdtemp(prefix="mqlab-lab13-"))
made = capstone("night 2410", b"the practice of lab 13", 12_000, 3)
made.write(folder / "night")
facts = facts_of(folder / "night")
life = facts.life.query("reads")
lost = life[(life["successes"] == 0) & ~life["dead"]]
Bars(lost.groupby("broker").size().to_dict(), title="Lost letters", unit="letters")

# %% [markdown] minutes=45
# ## A plan, before it is carried out
#
# An operator can do three things about a group, and a `Plan` has all three:
#
# | part of the plan | what it does | in RocketMQ |
# |---|---|---|
# | `offsets` | sets the group's offset in a queue, while nobody reads | `mqadmin resetOffsetByTime`, for one queue with `-b`, `-q` and `-o` |
# | `again` | sends a dead letter back to its group, as a new message | here `lab.admin.resend_dlq`; the dashboard's page of dead letters hands it to one member |
# | `skip` | a list of messages that the listener acknowledges without doing anything | a table that your listener looks into |
#
# A reset to a moment is a plan too: the offset of each queue is that of the first message that was stored then.


# %%
def reset_to(known, group, clock):
    """All queues of a group at a moment of the day: a plan."""
    minute = int(clock[:2]) * 60 + int(clock[3:])
    at_ms = made.asked.model.start_ms + minute * 60_000
    rows = known.life[
        (known.life["group"] == group) & (known.life["stored_ms"] >= at_ms)
    ]
    first = rows.groupby(["group", "broker", "queue_id"])["queue_offset"].min()
    return Plan({place: int(offset) for place, offset in first.items()})


# %% [prediction] lab13.reset_twice
# Notification lost its first letter at 12:41. Its offsets are set back to 12:30, and it reads to the end. What comes, besides the
# lost letters?
#
# - nothing: nothing else; what was handled is not handled again {lab13.reset_is_repair}
#   > Broker and client know an offset, and not which messages behind it were handled. All letters since that moment come, and those
#   > that were handled come a second time, unless somebody passes over them.
# - again: all letters since then that were handled, a second time
#   = An offset is a number: whatever stands behind it is delivered, handled or not.
# - some: some that were handled, those of the same queues
#   > All queues lost something, and in each of them everything behind the offset comes.
# note: A reset is a tool for groups whose listeners are idempotent, and for nobody else.

# %% tags=["picture"]
plan = reset_to(facts, "notification", "12:30")
shown = replay(facts, plan)
shown

# %%
reveal("lab13.reset_twice", "again" if shown.again > 100 else "nothing")

# %% [answer] lab13.again
# ### Your turn: another moment
#
# Nobody needs a reset to half past twelve. Choose another `MOMENT`, later or much earlier. How many letters would notification
# get a second time?
#
# wrong first: Those come for the first time: they are the lost ones, and why you do this.
# wrong all: That is everything that comes. How much of it had been handled?
# wrong: The line above the bars says it: for the first time, and again.
# note: There is no moment that is right: where lost and handled letters lie side by side, no offset divides them.

# %% tags=["parameter"]
### BEGIN SOLUTION
MOMENT = "14:00"
### STARTER
# MOMENT = "12:30"  # yours to change
### END SOLUTION

another = replay(facts, reset_to(facts, "notification", MOMENT))
another

# %%
### BEGIN SOLUTION
answer("lab13.again", another.again, another, MOMENT)
### STARTER
# answer("lab13.again", ..., another, MOMENT)
### END SOLUTION

# %% [exercise] lab13.repair
# ### Exercise 5: the repair
#
# Write `repair`. It gets the tables of a day, its findings as in exercise 4, and the calendar. It returns a dictionary with three
# lists: `offsets` of `(group, broker, queue_id, offset)`, and `again` and `skip` of `(group, msg_id)`. Your plan is carried out
# in a Lab on a copy of the stores. Then
#
# - every message that was not handled is delivered once, dead letters included, if they can be handled now;
# - nothing that was handled is delivered again;
# - dead letters of a group come in the order in which their messages were stored;
# - nothing is sent again whose cause lives: a poison message fails at every try, and shipping refuses a load test's orders.
#
# hint: Offsets: take what is read, not handled and not dead. For each group, broker and queue, the smallest `queue_offset` of it is
#   where to begin.
# hint: Skip: in the queues that you set back, everything from that offset on that was handled or is dead; a dead letter comes by
#   `again`, or not at all.
# hint: Again: dead letters, sorted by `stored_ms`, without the groups that have a finding `poison_message`, and without those whose
#   keys hold the key of a load test.
# note: You have written what a runbook rarely has: the list of what must not happen again. It is longer than the repair.


# %%
# exercise: lab13.repair
def repair(facts, findings, calendar):
    """A plan: {"offsets": [...], "again": [...], "skip": [...]}."""
    ### BEGIN SOLUTION
    queue = ["group", "broker", "queue_id"]
    life = facts.life[facts.life["reads"]]
    handled = life["successes"] > 0
    begin = life[~handled & ~life["dead"]].groupby(queue)["queue_offset"].min()
    life = life.join(begin.rename("begin"), on=queue)
    behind = life["queue_offset"] >= life["begin"]
    skip = life[behind & (handled | life["dead"])]
    tests = {entry["key"] for entry in calendar if entry.get("key")}
    of_a_test = [bool(tests & set(keys.split())) for keys in life["keys"]]
    poisoned = {group for kind, group in findings if kind == "poison_message"}
    fails = pandas.Series(of_a_test, index=life.index) | life["group"].isin(poisoned)
    again = life[life["dead"] & ~fails].sort_values("stored_ms")
    return {
        "offsets": [(*place, int(offset)) for place, offset in begin.items()],
        "again": list(zip(again["group"], again["msg_id"], strict=True)),
        "skip": list(zip(skip["group"], skip["msg_id"], strict=True)),
    }
    ### END SOLUTION


# %%
check("lab13.repair")

# %% [belief] lab13.resend_all
# question: There are dead letters in the morning. What do you do with them?
# claim: Send all of them again; at worst they fail again.
# refutation: These fail again, at every try: a load test's orders are refused on purpose, and a poison message has not changed since
#   yesterday. First the cause, then the letter.

# %% [belief] lab13.resend_is_repair
# question: Which messages does a repair have to bring back?
# claim: The dead letters; they are all that is lost.
# refutation: These messages are in no dead letter queue. The offset went past them, and it has to be set back for them.

# %% [belief] lab13.any_order
# question: In which order are dead letters sent again?
# claim: In any order, they are separate messages.
# refutation: An order that is cancelled before it is paid is another order. Send the dead letters of a group again in the order in
#   which their messages were stored.

# %% [markdown]
# What does your plan do on the night above? Before anything is done, the replay counts. Then the plan is carried out: a Lab
# takes copies of the three stores, sets the offsets, and starts the groups again. (Until exercise 5 is solved, it is the reset.)

# %%
findings = [
    ("slow_consumer", "billing"),
    ("inconsistent_tags", "notification"),
    ("deploy", "shipping"),
]
try:
    yours = Plan.of(repair(facts, findings, made.calendar))
except Exception:
    yours = plan  # exercise 5 is open
replay(facts, yours)

# %%
done = carry_out(folder / "night", yours)
handled = set(
    life.loc[life["successes"] > 0, ["group", "msg_id"]].itertuples(
        index=False, name=None
    )
)
comes = {
    "for the first time": sum(pair not in handled for pair in done.done),
    "again": sum(pair in handled for pair in done.done),
    "failed": len(done.failed),
}
Bars(comes, title="Carried out", unit="calls")

# %% [markdown] minutes=45
# ## Before a customer tells us
#
# Suppose somebody had watched that day. Every five minutes a collector writes a row for each group and tag, with what can be known
# then, and never more:
#
# | column | is |
# |---|---|
# | `minute`, `group`, `tag` | when and whose; analytics and warehouse write no trace, and have one row each, with the tag `""` |
# | `stored`, `called`, `failed` | messages stored; calls begun; calls that ended without success, in the five minutes |
# | `again` | calls of the five minutes that were one too many |
# | `lag` | messages stored by now and not consumed by now |
# | `waiting`, `oldest_s` | messages that no listener was called with by now; how long the oldest has waited |
# | `running_s` | for how long the oldest unfinished call has been running |


# %%
def moments_of(number, quiet):
    """A day to try an alarm on, as it was watched; and its truth."""
    day = alarm_day(number, b"the practice of lab 13", quiet=quiet, messages=16_000)
    day.write(folder / f"{number} {quiet}")
    known = facts_of(folder / f"{number} {quiet}")
    return [list(moment.rows) for moment in watched(known)], day.truth()


# %% [prediction] lab13.lag_rings
# "Ring if a lag is greater than 100," says the runbook. How often does that ring on a good day?
#
# - never: never, nothing goes wrong
#   > Look at analytics in the evening: it lets its messages lie, as on each day.
# - evening: in the evening, as on each evening
#   = Analytics lets its messages lie from half past ten. Nobody minds, except whoever is called.
# - noon: at noon, when most orders come
#   > Groups that keep up have no lag, however many orders come.
# note: An alarm that rings each evening is switched off in the second week, and nobody tells the one who needs it.

# %% [markdown]
# Here is a good day. Look at the other quantities, too:

# %% tags=["parameter"]
QUANTITY = "lag"  # or failed, again, waiting, oldest_s
good_day, _ = moments_of(1, quiet=True)
values = [max(row[QUANTITY] for row in rows) for rows in good_day]
hours = [rows[0]["minute"] / 60 for rows in good_day]
Curve(
    list(zip(hours, values, strict=True)),
    title=f"{QUANTITY} of a good day",
    x="hour of the day",
    y="largest of all groups",
)

# %%
too_many = [
    rows[0]["minute"] for rows in good_day if max(row["lag"] for row in rows) > 100
]
Bars(
    {
        f"from {hour}:00": sum(minute // 60 == hour for minute in too_many)
        for hour in range(18, 25)
    },
    title="Moments at which it rings",
)

# %%
hours_of_ringing = {minute // 60 for minute in too_many}
first_hour = min(hours_of_ringing, default=0)
by_day = {first_hour >= 20: "evening", not too_many: "never"}
reveal("lab13.lag_rings", by_day.get(True, "noon"))

# %% [markdown]
# And the other way: a bad day, on which a group loses messages and its lag tells nothing. What rises?

# %%
bad_day, truth = moments_of(3, quiet=False)
told = truth["incidents"][0]
Table(
    {
        "kind": told["kind"],
        "group": told["group"],
        "harm from": time_text(told["harm_since_ms"]),
        "until": time_text(told["harm_until_ms"]),
        "messages": len(told["harmed"]),
    }
    for _ in range(1)
)

# %% tags=["picture"]
RISES = "oldest_s"  # or failed, again, waiting, lag
of_group = [
    max(row[RISES] for row in rows if row["group"] == told["group"]) for rows in bad_day
]
Curve(
    list(zip(hours, of_group, strict=True)),
    title=f"{RISES} of {told['group']}",
    x="hour of the day",
    y=RISES,
)

# %% [exercise] lab13.alarm
# ### Exercise 6: the alarm
#
# Write `alarm`. It gets what is known so far: a list with the rows of each moment, the latest last. It returns whether to ring
# now. It is asked every five minutes of a day, and it is good if it
#
# - rings within ten minutes of the beginning of the harm, on bad days of six kinds: slow and failing listeners, vanished
#   tags, a reset, a skip, a deploy that kills;
# - never rings before, and never on a good day, although there are campaigns and planned deploys.
#
# `rung(alarm, bad_day)` tries it on the day above: the moments at which it rings.
#
# hint: `so_far[-1]` are the rows of now. Most kinds show themselves in one moment.
# hint: Two columns are 0, or nearly, on a good day: `again`, and `oldest_s`, which stays under a minute or two. Lost
#   messages wait for ever.
# hint: For failing listeners compare `failed` with `called` of the same row: a few failures are everyday life, half of all calls is
#   not.
# note: It rings for what customers feel: waiting, failing, and getting twice. None of it is a lag.


# %%
# exercise: lab13.alarm
def alarm(so_far):
    """Whether to ring now."""
    ### BEGIN SOLUTION
    for row in so_far[-1]:
        fails = row["failed"] >= 5 and row["failed"] * 2 > row["called"]
        if row["again"] >= 1 or row["oldest_s"] >= 200 or fails:
            return True
    return False
    ### END SOLUTION


# %%
check("lab13.alarm")

# %% [belief] lab13.lag_alarm
# question: When does an alarm ring?
# claim: When a lag is greater than a number.
# refutation: It rings on good evenings: analytics lets its messages lie from half past ten, and nobody is harmed. A lag says how
#   much is left, and not whether anybody waits for it.

# %% [belief] lab13.end_of_day
# question: When is it certain that a message is lost?
# claim: In the evening, when all others are done.
# refutation: It rings more than ten minutes after the harm began. An alarm that waits until all is certain is a report. Ask what
#   can be known now, such as how long the oldest message has waited.

# %% [belief] lab13.failures_only
# question: What shows that something is wrong?
# claim: Calls that fail.
# refutation: It never rings on this day, because no call fails: messages that are never called, or called twice, do not fail. Look at
#   what waits and at what comes again, too.

# %%
try:
    when_it_rings = rung(alarm, bad_day)
except Exception:
    when_it_rings = []  # exercise 6 is open
by_hour = Counter(f"{time_text(at_ms)[:2]}:00" for at_ms in when_it_rings)
Bars(sorted(by_hour.items()), title="Your alarm on the bad day", unit="rings")

# %% [markdown]
# One day says little. Thirty-two days were watched and recorded: twenty good ones, and two of each kind. A bad day is heard if it
# rings within ten minutes of the beginning of the harm. What rings before that, or on a good day, is a false alarm. Here is your alarm
# beside rules from other people's runbooks, one with a number of yours, and what the model answer reaches:

# %% tags=["parameter", "picture"]
WAITS_S = 600  # ring if somebody waits for longer: try 30, 200


def waits(so_far):
    """Ring if a message has waited for more than WAITS_S seconds."""
    return any(row["oldest_s"] > WAITS_S for row in so_far[-1])


league({"yours": alarm, f"one waits for {WAITS_S} s": waits})

# %% [markdown] minutes=2 tags=["reading"]
# ## What this does not prove
#
# - **That the repair is right tomorrow.** While a plan is carried out here, nobody sends. On a running cluster new messages come, and
#   a group that is stopped for the repair makes them late.
# - **That the alarm finds what it was not made for.** It was tried on six kinds. Reality has a seventh.
# - **That a skip list is free.** Somebody has to build it into the listener, before it is needed.

# %% [markdown] minutes=4 tags=["reading"]
# ## Reflect
#
# Say your answer aloud or write it down, then open the model answer.

# %% [reflection] lab13.idempotent
# **1.** With which property of notification's listener would the repair have been one command?
#
# answer: If it were idempotent: if it remembered which letters it has written, as in lab 04b. Then a reset to noon would have brought
#   the lost ones, and nothing twice.

# %% [reflection] lab13.who_is_called
# **2.** The alarm rings at 12:50. What has to be in its message so that somebody can act on it?
#
# answer: Group and tag, what is measured and its usual value, since when, the oldest message's id, and a link to the page of the
#   group. Not: the word "critical".

# %% [markdown] minutes=1 tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).
