# %% [markdown] tags=["reading"]
# # 14 Simulation: find the bug
#
# ## Why
#
# Three warehouses run three clusters: Tunis, Turin and Warsaw. Each has its own release, patched by an employee who has
# left. Every few days one of them raises an alarm: a message is lost, or two were handled at once. The meeting next
# morning knows why:
#
# - "It never happens twice, so it must be the network."
# - "The alarm says LOST, so the store has lost it."
# - "Right before it, the broker was killed. That is the cause."
# - "We have read the code for two days. It looks right."
#
# The clusters run your mqlab, with one thing changed in memory. With a seed that replays the same bad day, and a time
# machine, you find **on which day, at which step and which rule** each breaks.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need labs [01](01a-what-the-broker-writes.ipynb), [04](04a-how-far-have-we-read.ipynb)
# and [07](07a-failure-takes-time.ipynb). Afterwards you can
#
# - replay a failure until you understand it, and follow one message through it;
# - shorten the schedule (故障剧本) of a failure (收缩), without knowing its cause;
# - state what must hold (不变式) at every step, and find the first step at which it does not;
# - distinguish a cause (根因) from its consequences, and a quiet day from a sound system.

# %%
from collections import Counter

from mqlab import play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.given.lab14.hunting import hunt, message_ids
from mqlab.lab.simulation.planted import cluster, history
from mqlab.lab.views import Bars, Table

# %%
old_questions("lab14")

# %% [markdown]
# ## A day in Bern
#
# We practise with a fourth cluster, Bern. A cluster has numbered days, and the number is the seed (随机种子) of everything:
# messages, faults and their times, every delay. A day has about twenty events. `billing` reads the topic `orders` with
# two members, and `ledger` reads `steps` in order (顺序消费).

# %%
bern = cluster("Bern")
day = bern.day(1)


def events_table(events):
    rows = []
    for number, event in enumerate(events):
        known = ("at", "do", "number", "topic", "node", "fails", "sleep", "for")
        rows.append({"event": number} | {name: event.get(name, "") for name in known})
    return Table(rows)


events_table(day.events)

# %% [markdown]
# A send has its message's number, how often its listener will refuse it (99: always), and how many ms each call takes.
# A message of `billing` is tried three times: once, and after two retries it is dead (死信). A fault ends after `for` ms.
# After the last event all faults end, and the cluster has more than a minute to settle. Then the monitoring compares
# acknowledged, stored and handled messages. These are the lines of its **alarm** (告警):
#
# | line | means |
# |---|---|
# | LOST | an acknowledged message is in no log, or a stored one was neither finished nor is it dead |
# | PASSED | a group's offset has passed a message that no listener had given back |
# | ORDER, TOGETHER | in `ledger`: a message finished before an earlier one; two of a queue in listeners at once |
# | TRIED | a retry too early or too many, or a message that is dead too early |

# %% tags=["parameter"]
DAY = 1  # yours to change: 0, 1, 2, 3, …
today = bern.day(DAY)
alarm = bern.alarm(today)
for line in alarm:
    print(line)
Bars(
    {f"day {number}": len(bern.alarm(bern.day(number))) for number in range(3)},
    title="Lines of the alarm",
    unit="lines",
)

# %% [prediction] lab14.again
# You play day 1 of Bern once more. What does the monitoring report?
#
# - same: the same lines
#   = The seed decides everything that happens, so the defect shows in the same step again. That is the purpose of a
#   = simulation.
# - other: other lines, or none: such a failure comes and goes
#   > In production it does, because the order of events cannot be repeated. Here the order is the seed.
# - more: more lines, because the first run has left something behind
#   > Each run has its own Lab with its own files.
# note: FoundationDB, TigerBeetle and others are tested like this: network, disks and clock are simulated, and a failure
#   is a number on a piece of paper.
# later: -

# %%
first, second = (bern.play(day).journal.digest() for _ in range(2))
print(first, second, sep="\n")
again = bern.alarm(day)
reveal("lab14.again", "same" if first == second else "other")

# %% [markdown]
# ## What happened to message 9?
#
# The alarm names message 9: stored, and `billing` never finished it. What happened to it? All copies of a message share
# its id. This is the day from its point of view:

# %%
lab = bern.play(day)
ids = message_ids(lab)  # number of a message -> its id
lab.timeline(ids[9])

# %% [markdown]
# To a program, the day is a list of rows, `history(lab)`.

# %%
rows = history(lab)
Bars(Counter(row["what"] for row in rows), title=f"{len(rows)} rows", unit="rows")

# %%
for row in rows[24:34]:
    print(row)

# %% [markdown]
# All rows have `step`, `ms`, `node` and `what`. Other keys:
#
# | `what` | other keys |
# |---|---|
# | `message.stored` | `queue`, `offset`, `start`, `end` (bytes of the log), `id` |
# | `store.flushed` | `end`: this node's log is on disk (刷盘) up to this byte |
# | `message.dispatched` | `queue`, `offset`: the entry in the consume queue is written |
# | `message.sent` | `queue`, `offset`, `status`, `id`: the producer's result |
# | `message.pulled` | `group`, `queue`, `first`, `next`, `offsets`: asked from, continues at, what came |
# | `listener.started`, `listener.returned` | `group`, `queue`, `call`, `offsets`, `ids`, and `status` when it has returned |
# | `result.discarded` | `group`, `queue`, `call`, `offsets`, `ids`: the queue had moved to another member |
# | `message.sent_back`, `message.dead` | `group`, `id`, `retries`: what the broker's copy counts |
# | `offset.updated`, `offset.committed` | `group`, `queue`, `offset`: in the member's memory, in the broker's table |
# | `queue.added`, `queue.dropped` | `group`, `queue`, and `next`, where the member begins |
# | `queue.locked`, `queue.unlocked` | `group`, `queue`, `member` |
# | `fault.killed`, `fault.powered_off`, `fault.start` | none: `node` crashed, or restarted |
#
# A queue is one string of three words: topic, broker, number.

# %% [exercise] lab14.follow
# ### Exercise 1: follow a message
#
# Write `follow`. It takes the rows of a day and the id of a message, and returns the steps with a row about it, each
# step once, in order. A row is about a message
#
# - if its `id` is the message's, or its `ids` contain it;
# - if it is `message.dispatched` or `message.pulled` and names a place of the message. A place is a queue with an
#   offset. It contains what was stored there **last**: after a power cut, numbers of messages that the disk did not
#   keep may be given again.
#
# A retried message has copies in other queues. They have its id, and their own places.
#
# hint: Walk through the rows once. Keep a dictionary: (queue, offset) -> id of what was stored there last.
# hint: `message.stored` sets `at[row["queue"], row["offset"]] = row["id"]`. Rows that name a place have one `offset`
#   (dispatched) or several `offsets` (pulled).
# hint: Collect the ids of each row in a set: `{row.get("id"), *row.get("ids", ())}`, and for the two kinds with places
#   add `at.get((queue, offset))` for each offset. If `msg_id` is in the set, append the step, unless it is already the
#   last one.
# note: A trace is made of this. In production the rows come from five machines whose clocks differ; here they have a
#   number.


# %%
# exercise: lab14.follow
def follow(rows, msg_id):
    """The steps at which a row is about the message, in order."""
    ### BEGIN SOLUTION
    at, steps = {}, []
    for row in rows:
        about = {row.get("id"), *row.get("ids", ())}
        if row["what"] == "message.stored":
            at[row["queue"], row["offset"]] = row["id"]
        elif row["what"] in ("message.dispatched", "message.pulled"):
            offsets = row["offsets"] if "offsets" in row else [row["offset"]]
            about |= {at.get((row["queue"], offset)) for offset in offsets}
        if msg_id in about and row["step"] not in steps[-1:]:
            steps.append(row["step"])
    return steps
    ### END SOLUTION


# %%
check("lab14.follow")

# %% [belief] lab14.one_id
# question: A listener was called with three messages at once. How many of them is the row about?
# claim: One: each row is about one message.
# refutation: About all three: a row is about every message whose id is in its `ids`.

# %% [belief] lab14.cut_empties
# question: A broker has lost its power. Which message is at a place that was used before?
# claim: None, until something is stored there again.
# refutation: What the disk has kept is still there, and is pulled again later. Only storing changes a place.

# %% [belief] lab14.rows_have_ids
# question: How do you find all that happened to a message?
# claim: By its id; every row about it has it.
# refutation: Queues do not know ids. A row of a dispatch or a pull names a place, and the message is at that place.

# %% [belief] lab14.offset_is_place
# question: Where is offset 1?
# claim: There is one message with offset 1.
# refutation: Every queue counts independently. A place is a queue and an offset together.

# %% [belief] lab14.one_place
# question: In how many places is a message stored?
# claim: In one, where it was first stored.
# refutation: A retried message is stored again: while it waits, and in the retry topic. Each copy has its own place.

# %% [belief] lab14.place_for_ever
# question: A place has a message. Can it have another one later?
# claim: No; a log is never overwritten.
# refutation: The log is not, but a number may be given again after a power cut or by a broken store. From then on the
#   place means the message that was stored there last.

# %% [prediction] lab14.when_wrong
# The alarm reports that message 9 is lost. When did something go wrong first?
#
# - end: at the end of the day, when the monitoring found it
#   > That is when it was noticed. The compared state had existed for a long time.
# - fault: when the power was cut {lab14.fault_is_cause}
#   > A fault may happen, be it a power cut or a kill: acknowledged messages are on disk, and come back with the log.
#   > The first wrong step is the first one that a sound cluster would not do.
# - stored: when message 9 was stored, and its send was answered SEND_OK
#   = From then on two messages have one place, and a reader at offset 0 can get only one of them.
# note: Message 9 got message 0's number, although message 0 was on disk. The alarm names lost messages. The first wrong
#   thing is a number, which it does not mention.
# later: -

# %% tags=["picture"]
stored = [row for row in rows if row["what"] == "message.stored"]
given = {}
for twice in stored:
    place = twice["queue"], twice["offset"]
    if place in given:
        break
    given[place] = twice
print("given before:", given[place])
print("given again: ", twice)

# %%
reveal("lab14.when_wrong", "stored" if twice["id"] == ids[9] else "end")

# %% [markdown]
# ## The time machine
#
# Move through the same day. *Seed* is the number of the day, *follow* the number of a message whose rows are next to
# each stop, *first events* the number of events played. Each of them replays the day. Choose a stop with the slider,
# and click on an item to highlight everything related to it.

# %% [answer] lab14.twice
# ### Your turn: another day
#
# Choose another day of Bern, 2 or 3, with *seed*. What is the first step at which its store gives a number for the
# second time? Rows of one message are next to the picture: follow one that the day's alarm names, then the one at its
# place.
#
# wrong last: That is the last wrong step of this day. Look for the first.
# wrong: Look at the first messages that are stored after the broker's restart: which offset do they get, and which did
#   their queue already have?
# note: One line of a recovery is wrong, and it shows seconds later, in another message. Nothing in that step looks like
#   an error.

# %% tags=["explorer"]
machine = hunt(bern, day=1, follow=9)
machine

# %%
### BEGIN SOLUTION
machine.play_again(seed=2)
answer("lab14.twice", 317, machine)
### STARTER
# answer("lab14.twice", ..., machine)
### END SOLUTION

# %% [markdown]
# ## Shrink the schedule
#
# There are nineteen events. You can find out which of them matter without knowing the cause: leave some out, play, and
# see whether the alarm still comes. A run takes half a second.

# %% tags=["parameter"]
faults = [event for event in day.events if event["do"] != "send"]
sends = [event for event in day.events if event["do"] == "send"]
tries = {
    "all": day.events,
    "no faults": sends,
    "faults only": faults,
    "first half": day.events[:9],
    "second half": day.events[9:],
}
alarms = {name: len(bern.alarm(day, events)) for name, events in tries.items()}
Bars(alarms, title="Lines of the alarm", unit="lines")

# %% [prediction] lab14.how_many
# You leave out events until the alarm needs every one that remains. How many of the 19 events remain?
#
# - most: fifteen or more; everything hangs together
#   > It may seem that way, because each message delays all others a little. But few of them matter.
# - few: ten or fewer
#   = A number is given twice, and a reader has passed it. Little is needed for that.
# - fault: one, the power cut {lab14.faults_are_causes}
#   > Faults alone raise no alarm: look at the bars. Without a message, nothing can get lost.
# note: A message before the power cut, the power cut and a few messages after it remain. A short failure is worth more
#   than a long one: you can read it, and it becomes a test.
# later: -

# %% [exercise] lab14.shrink
# ### Exercise 2: shrink
#
# Write `shrink`. It takes a list of events and a function: `fails(events)` plays a schedule and returns whether it goes
# wrong. Return a schedule that goes wrong and from which no single event can be left out. Its events are some of those
# given, in their order. Runs are expensive: **at most 60 runs** for 64 events, so leave out many at a time while that
# works. Do not assume that one event is the cause: it may matter only together with another one.
#
# hint: Try to leave out a half, then quarters, eighths, … and finally single events. Drop what you can at once.
# hint: Walk over the list with `size` events at a time: `shorter = events[:start] + events[start + size:]`. If it
#   fails, continue with it at the same start; otherwise advance by `size`. At the end of the list, halve `size`.
# hint: With size 1, repeat the round until it has left out nothing: `while True: … if size == 1 and not cut: return
#   events`.
# note: This is ddmin, delta debugging (Zeller and Hildebrandt, 2002), in its simplest form. `git bisect` is a special
#   case, for histories in which one commit is the cause.


# %%
# exercise: lab14.shrink
def shrink(events, fails):
    """A schedule that still fails, and from which no single event can be left out."""
    ### BEGIN SOLUTION
    size = len(events) // 2
    while True:
        start, cut = 0, False
        while start < len(events):
            shorter = events[:start] + events[start + size :]
            if fails(shorter):
                events, cut = shorter, True
            else:
                start += size
        if size == 1 and not cut:
            return events
        size = max(1, size // 2)
    ### END SOLUTION


# %%
check("lab14.shrink")

# %% [belief] lab14.one_half
# question: Is a failure always in one half of a schedule or in the other?
# claim: Yes; play both, and continue with the one that fails.
# refutation: A failure may need an event of each half, and then neither fails alone. Leave a part out and keep
#   everything else.

# %% [belief] lab14.once_needed
# question: An event could not be left out. Do you have to try it again?
# claim: No; it is needed.
# refutation: An event may be needed only together with another one that is left out later. Continue until a whole round
#   leaves out nothing.

# %% [belief] lab14.one_at_a_time
# question: How do you find out which of 64 events are needed?
# claim: Try each of them.
# refutation: To try each event takes a run per event, and most are needless. Leave out 32 at a time, then 16, and so
#   on: when few matter, few runs are enough.

# %% [markdown]
# Now your `shrink` on day 1 of Bern: two dozen runs.

# %% tags=["picture"]
runs = []


def bern_fails(events):
    runs.append(len(events))
    return bool(bern.alarm(day, events))


try:
    small = shrink(day.events, bern_fails) or day.events
except Exception:
    small = day.events  # exercise 2 is open
Bars({f"run {number}": count for number, count in enumerate(runs, 1)}, title="Events")

# %%
events_table(small)

# %%
# What remains, if exercise 2 is open: five messages and the power cut.
numbers = (0, 11, 3, 7, 2)
few = [e for e in day.events if e.get("number") in numbers or e["do"] == "power_off"]
for line in bern.alarm(day, few):
    print(line)
reveal("lab14.how_many", "few" if bern.alarm(day, few) else "most")

# %% [markdown]
# Read this alarm: another message is lost. Shrinking only checks that *something* goes wrong, so it may slip from one
# failure to the next. To avoid that, let `fails` compare the same kind of line, or the same broken rule.

# %% [prediction] lab14.kill_too
# In the short schedule the broker's power is cut. We kill its process instead, at the same time and for as long. Does
# the alarm come?
#
# - yes: yes, the broker recovers in both cases
#   > It does, with the same defect. But a killed process closes its connections, so senders give up at once. After a
#   > power cut their messages arrive when the broker is back. So the queue that would count again gets no message.
# - no: no
#   = Senders notice a kill and give up at once, so the queue that would count again gets no second message. The defect
#   = is the same; an alarm also needs a suitable day.
# note: A defect without an alarm still exists. Remember that for the last section.
# later: -

# %% tags=["parameter"]
INSTEAD = "kill"  # or "slow_disk", or "power_off" as before
other = [e if e["do"] == "send" else {**e, "do": INSTEAD} for e in few]
outcomes = {"power_off": bern.alarm(day, few), INSTEAD: bern.alarm(day, other)}
Bars({name: len(lines) for name, lines in outcomes.items()}, title="Lines of the alarm")

# %%
killed = [e if e["do"] == "send" else {**e, "do": "kill"} for e in few]
reveal("lab14.kill_too", "yes" if bern.alarm(day, killed) else "no")

# %% [markdown]
# ## The first wrong step
#
# An alarm compares the end with the beginning. Between them are about a thousand steps, and only one is the first wrong
# one. To find it you need rules that hold at *every* step (不变式). These nine are enough for everything that can happen
# here:
#
# | rule | component | what must hold at every step | allowed |
# |---|---|---|---|
# | `acknowledged` | store | after SEND_OK a message is on disk, up to its last byte | other answers than SEND_OK, before it is there |
# | `dispatched` | store | units get their queue entries in the order of the log, each of them, and only from the disk | |
# | `numbered` | store | the offsets of a queue have no gap, and none is given twice | again, if a power cut took the unit before it was on disk |
# | `committed` | broker | an offset in the broker's table is not beyond what some member of the group had in its memory | smaller ones, after a crash |
# | `locked` | broker | an ordered queue has one holder, as long as the holder lives and has not given it back | another one after that |
# | `tried` | broker | a message goes back with `retries` 1 and 2, and is dead with 3 | |
# | `finished` | client | a member's offset passes no message that it was given and has neither finished nor given back | |
# | `pulled` | client | a pull brings all offsets from `first` to `next`, and begins where the last one of this member ended | further back; anywhere, once the queue was dropped or added, or the member crashed |
# | `in order` | client | `ledger` has one call at a time in a queue, and gets the next message when the one before has succeeded | |

# %% [exercise] lab14.first_wrong_step
# ### Exercise 3: the first wrong step
#
# Write `first_wrong_step` for four of them: `acknowledged`, `committed`, `tried` and `pulled`. It takes the rows of a
# day and returns the name of the rule that is broken first, and the step at which this shows: `("tried", 642)`. If none
# of the four is broken it returns `(None, None)`. These rows show a broken rule:
#
# | rule | the row |
# |---|---|
# | `acknowledged` | a `message.sent` |
# | `committed` | an `offset.committed` |
# | `tried` | a `message.sent_back` or `message.dead` |
# | `pulled` | a `message.pulled` |
#
# The check uses days of unknown clusters, and days of sound ones.
#
# hint: One loop over the rows, and a dictionary per rule: how far a node's log is on disk; the end of the unit at each
#   place; the largest offset that a member of (group, queue) had; where the last pull of (node, group, queue) ended.
# hint: The broker of a queue is `row["queue"].split()[1]`. A place that was never stored has the end 0. An offset that
#   no member had is 0.
# hint: pulled: `row["offsets"] != list(range(row["first"], row["next"]))` is a gap, and so is a `first` larger than
#   where the last pull ended. Forget that end when the queue is added or dropped, and forget all ends of a node that
#   crashes.
# note: You have written what Jepsen calls a checker. mqlab's own simulation has one that found real mistakes of mqlab,
#   see docs/simulation.md.


# %%
# exercise: lab14.first_wrong_step
def first_wrong_step(rows):
    """(rule, step) where one of the four rules is broken first, or (None, None)."""
    ### BEGIN SOLUTION
    on_disk, end, had, ended = {}, {}, {}, {}
    for row in rows:
        what, node, queue = row["what"], row["node"], row.get("queue", "")
        of_group, of_member = (row.get("group"), queue), (node, row.get("group"), queue)
        if what == "store.flushed":
            on_disk[node] = row["end"]
        elif what == "message.stored":
            end[queue, row["offset"]] = row["end"]
        elif what == "message.sent" and row["status"] == "SEND_OK":
            broker = queue.split()[1]
            if end.get((queue, row["offset"]), 0) > on_disk.get(broker, 0):
                return "acknowledged", row["step"]
        elif what == "offset.updated":
            had[of_group] = max(had.get(of_group, 0), row["offset"])
        elif what == "offset.committed":
            if row["offset"] > had.get(of_group, 0):
                return "committed", row["step"]
        elif what in ("message.sent_back", "message.dead"):
            if (what == "message.dead") != (row["retries"] > 2):
                return "tried", row["step"]
        elif what in ("queue.added", "queue.dropped"):
            ended.pop(of_member, None)
        elif what in ("fault.killed", "fault.powered_off"):
            ended = {place: one for place, one in ended.items() if place[0] != node}
        elif what == "message.pulled":
            whole = row["offsets"] == list(range(row["first"], row["next"]))
            if not whole or row["first"] > ended.get(of_member, row["first"]):
                return "pulled", row["step"]
            ended[of_member] = max(row["next"], ended.get(of_member, 0))
    return None, None
    ### END SOLUTION


# %%
check("lab14.first_wrong_step")

# %% [belief] lab14.last_is_cause
# question: A rule is broken in many steps. Which of them shows the cause?
# claim: The last one, right before the alarm.
# refutation: The first one. Later ones may be consequences: return as soon as a rule is broken.

# %% [belief] lab14.every_answer_promises
# question: A producer gets FLUSH_DISK_TIMEOUT. What does it promise?
# claim: That the message is on disk, because the send did not fail.
# refutation: Only SEND_OK promises that a message is on disk. With FLUSH_DISK_TIMEOUT it is written, and the disk was
#   too slow.

# %% [belief] lab14.written_is_safe
# question: A message is in the log. Is it safe?
# claim: Yes; it is written.
# refutation: Written is not on disk. Under SYNC_FLUSH, the broker may answer SEND_OK only when store.flushed has
#   reached the end of the unit.

# %% [belief] lab14.offset_is_done
# question: A group has committed 5. Which messages are done?
# claim: Those up to 5.
# refutation: An offset names the next message to read: 5 means that 0 to 4 are done. An offset equal to a member's is
#   allowed.

# %% [belief] lab14.retries_are_calls
# question: Two retries are allowed. With which count is a message dead?
# claim: It is dead with 2.
# refutation: The first delivery is not a retry: copies with 1 and 2 are the two retries, and the dead letter counts 3.

# %% [belief] lab14.again_is_wrong
# question: A member pulls an offset that it had already. What is wrong?
# claim: The message is delivered twice.
# refutation: Nothing. The promise is at least once, and a late answer may bring messages again. Only a gap is wrong.

# %% [belief] lab14.owner_for_ever
# question: A queue goes to another member and comes back. Where does its first owner's next pull begin?
# claim: Where its last pull ended.
# refutation: At the group's current offset. A member's knowledge of a queue ends when the queue is dropped or added, or
#   when the member crashes.

# %% [belief] lab14.one_disk
# question: A unit of broker-b gets SEND_OK. On which disk must it be?
# claim: On the disk, up to that byte.
# refutation: Each broker has its own log and disk, and offsets in two logs cannot be compared. Check the disk of the
#   queue's broker.

# %% [belief] lab14.one_group
# question: billing is at offset 5 in a queue. May audit have 5 in the broker's table?
# claim: Yes; a queue has one offset.
# refutation: Each group has its own offset in each queue. Only an offset that a member of the same group had is
#   allowed.

# %% [belief] lab14.all_forget
# question: A member crashes. Whose next pull may begin anywhere?
# claim: That of any member, because the group is divided again.
# refutation: Only the next pull of the crashed member may begin anywhere. The others keep what they know of their
#   queues until these are dropped or added.

# %% [markdown]
# Now your function meets an unknown cluster, Wuhan. You choose the day.

# %% tags=["picture", "parameter"]
WUHAN_DAYS = range(4)
wuhan = cluster("Wuhan")


def found_by_you(it, number):
    try:
        return first_wrong_step(history(it.play(it.day(number))))
    except Exception:
        return None  # exercise 3 is open


Table(
    {
        "day": number,
        "lines of the alarm": len(wuhan.alarm(wuhan.day(number))),
        "first wrong step": str(found_by_you(wuhan, number)),
    }
    for number in WUHAN_DAYS
)

# %% [answer] lab14.quiet
# ### Your turn: a quiet day
#
# Find a day of Wuhan on which the monitoring raises no alarm, although a rule is broken. Which day is it?
#
# wrong sound: On this day there is no alarm, but no rule is broken either.
# wrong loud: On this day there is an alarm. Look for a quiet one.
# wrong: Set QUIET to the day that you mean and run the cell: it must be the day that you answer.
# note: The group's offset was too far for a moment, and no member began there. Next time one will. A quiet day is not a
#   sound system.

# %% tags=["parameter"]
### BEGIN SOLUTION
QUIET = 3
### STARTER
# QUIET = 0  # yours to change
### END SOLUTION
quiet_alarm = wuhan.alarm(wuhan.day(QUIET))
quiet_lab = wuhan.play(wuhan.day(QUIET))
print(len(quiet_alarm), "lines;", found_by_you(wuhan, QUIET))

# %%
### BEGIN SOLUTION
answer("lab14.quiet", QUIET, quiet_alarm, quiet_lab)
### STARTER
# answer("lab14.quiet", ..., quiet_alarm, quiet_lab)
### END SOLUTION

# %% [markdown]
# ## In which component?
#
# A cluster's code has three components: store, broker, client. To find the one at fault, roll back (回滚) one after the
# other to the sound release, and play the same day.

# %% [prediction] lab14.rolled_back
# The alarm of Turin, day 2: `LOST: message 40 is stored, billing never finished it`. The sound release of which
# component silences it?
#
# - store: the store, because a message is lost {lab14.alarm_names_the_cause}
#   > The alarm reports that the message is stored. LOST names what is missing at the end, not its cause.
# - broker: the broker, because it did not deliver the message
#   > With a sound broker the same message is lost.
# - client: the client
#   = A member passed the message, and a sound client does not.
# note: The message is in the log and in its queue, so store and broker did their part. A rollback narrows a cause from
#   a million lines to one component without reading any of them. It needs a reproducible failure.
# later: -

# %% tags=["parameter"]
PATIENT, SICK_DAY = "Turin", 2  # yours to change
it = cluster(PATIENT)
sick = it.day(SICK_DAY)
for line in it.alarm(sick):
    print(line)
rooms = {
    room: len(it.rolled_back(room).alarm(sick))
    for room in ("store", "broker", "client")
}
Bars(rooms, title="Lines of the alarm, with the sound release of", unit="lines")

# %%
turin = cluster("Turin")
silent = [r for r in rooms if not turin.rolled_back(r).alarm(turin.day(2))]
reveal("lab14.rolled_back", silent[0])

# %% [answer] lab14.room
# ### Your turn: the component of Oslo
#
# Oslo is an unknown cluster. Choose a day on which it has an alarm, and roll back one component after the other. The
# sound release of which component silences the alarm? Answer with its name.
#
# wrong loud: With the sound release of this component the alarm still comes, so the defect is in another one.
# wrong last: With the sound release of this component the alarm still comes, so the defect is in another one.
# wrong: Answer with "store", "broker" or "client".
# note: Three runs exclude six of the nine rules. At work: roll back one component at a time, and play the same load.

# %% tags=["parameter", "picture"]
### BEGIN SOLUTION
ROLLED_BACK_DAY = 1
### STARTER
# ROLLED_BACK_DAY = 0  # yours to change
### END SOLUTION
oslo = cluster("Oslo")
oslo_alarm = oslo.alarm(oslo.day(ROLLED_BACK_DAY))
oslo_rooms = {
    room: len(oslo.rolled_back(room).alarm(oslo.day(ROLLED_BACK_DAY))) for room in rooms
}
Bars({"as it is": len(oslo_alarm), **oslo_rooms}, title="Oslo: lines of the alarm")

# %%
### BEGIN SOLUTION
answer("lab14.room", "broker", oslo_alarm, oslo_rooms)
### STARTER
# answer("lab14.room", ..., oslo_alarm, oslo_rooms)
### END SOLUTION

# %% [markdown]
# ## Three clusters
#
# Tunis, Turin, Warsaw: each has a different defect. One way that works:
#
# 1. Play days until there is an alarm.
# 2. Roll back one component after the other: three runs exclude six of the nine rules.
# 3. Shrink the day, and read the rest. It shows *what* must happen. (The short schedule has other steps than the day.)
# 4. Return to the whole day in the time machine, follow the message that the alarm names, and go backwards until
#    everything is right.

# %% tags=["parameter", "picture"]
SEARCHED, DAYS = "Tunis", range(4)  # yours to change
searched = cluster(SEARCHED)
Bars(
    {f"day {one}": len(searched.alarm(searched.day(one))) for one in DAYS},
    title=f"{SEARCHED}: lines of the alarm",
)

# %% tags=["explorer"]
room_of_proof = hunt(cluster("Tunis"), day=1)
room_of_proof

# %% [markdown]
# You can also select rows: by node, by kind, by queue, between two steps.


# %% tags=["picture", "parameter"]
def chosen_rows(lab, *, node="", what="", queue="", begin=0, end=10**6):
    rows = [
        row
        for row in history(lab)
        if node in row["node"]
        and what in row["what"]
        and queue in row.get("queue", "")
        and begin <= row["step"] <= end
    ]
    names = list(dict.fromkeys(name for row in rows for name in row if name != "ids"))
    return Table({name: row.get(name, "") for name in names} for row in rows)


chosen_rows(lab, node="broker-a", queue="orders", begin=170, end=230)

# %% [prediction] lab14.short_step
# You have shrunk a day, and found the first wrong step of the short schedule. Which step is it in the whole day?
#
# - same: the same, because the same thing happens
#   > The same thing happens, after other things. Steps are counted over everything that happens in the cluster.
# - other: another one
#   = Fewer messages are fewer steps, and times also shift. Find the same *rows* in the whole day.
# note: The full day also has different delays. A short schedule shows what is needed, and the day shows when.

# %%
short_rows = history(bern.play(day, few))
again_at = {}
for name, these in {"whole": rows, "short": short_rows}.items():
    seen = set()
    for row in these:
        place = row["what"] == "message.stored" and (row["queue"], row["offset"])
        if place and place in seen:
            again_at[name] = row["step"]
            break
        seen.add(place)
Bars(again_at, title="Bern: a number is given twice in step")

# %%
reveal("lab14.short_step", "same" if len(set(again_at.values())) == 1 else "other")

# %% [exercise] lab14.finding
# ### Exercise 4: three findings
#
# Write `finding`. It takes no arguments, and returns your findings: per cluster a tuple of a day, a step and the name
# of a rule. On that day the rule is broken first at that step, and no other rule earlier. Any day is right on which the
# cluster's own defect shows first.
#
# hint: Which component? Roll back. Then three rules are left per cluster. Warsaw's alarm is rare: try four days.
# hint: Tunis: compare `message.stored` with `message.dispatched`, in the order of the log. Turin: follow the message
#   from its failed call on, its copy and the offset. Warsaw: `chosen_rows(…, what="queue.")`.
# hint: The step is that of the forbidden row: a dispatch of a later unit, an `offset.updated` beyond a message that is
#   neither finished nor given back, a `queue.locked` for a second member.
# note: With day, step and rule, a developer finds the line within minutes. You have not read any.


# %%
# exercise: lab14.finding
def finding():
    """{"Tunis": (day, step, rule), "Turin": …, "Warsaw": …}"""
    ### BEGIN SOLUTION
    return {
        "Tunis": (0, 274, "dispatched"),
        "Turin": (2, 264, "finished"),
        "Warsaw": (1, 306, "locked"),
    }
    ### END SOLUTION


# %%
check("lab14.finding")

# %% [belief] lab14.any_breach
# question: A rule is broken in many steps. Which one names a finding?
# claim: Any of them; each shows the defect.
# refutation: The rule is broken here, but not for the first time. Go back: only before the first step is everything
#   right.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **That the rest is right.** A defect that breaks none of the nine rules stays unseen, however many days you play.
#   mqlab's simulation draws far more than these days, but only faults that its authors thought of.
# - **That real failures are like this.** Here one defect is active all the time. Two defects that hide each other need
#   more than three roll-backs.
# - **That a component whose roll-back silences the alarm is guilty.** Another release is also faster or slower, and may
#   hide a race. Here the sound release does the same steps.
# - **That you could do it in production.** There you have no seed, but logs of five machines and one chance.

# %% [markdown] tags=["reading"]
# ## Where else this technique is used
#
# | what you did | where it is done |
# |---|---|
# | a run from a seed | FoundationDB's simulation, TigerBeetle's VOPR, here `mqlab sim --seed 17` |
# | a schedule made short | ddmin; QuickCheck and Hypothesis shrink in the same way; `mqlab sim` does it before it reports |
# | rules over a history | Jepsen's checkers (Knossos, Elle); here [`model.py`](../mqlab/lab/simulation/model.py) |
# | defects on purpose | mutation testing: do your tests find them? mqlab has fifty of its own |
# | where RocketMQ keeps these rules | `CommitLog`, `ReputMessageService`, `ConsumeQueue.correctMinOffset`, `RebalanceLockManager`, `ProcessQueue` |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab14.no_seed
# **1.** A customer has no seed, and the failure came once. What do you ask for first?
#
# answer: For data that does not change any more: the brokers' files, with commit log, queues and `consumerOffset.json`,
#   and the logs of all members with their times. The files show places, numbers and offsets, so you can check
#   `numbered` and `dispatched`. For the other rules you need a trace of what members did.

# %% [reflection] lab14.always_on
# **2.** Which of the nine rules could run in production all the time?
#
# answer: Those that one machine can check from a few numbers: `pulled`, `in order` and `tried` in a member or broker,
#   `dispatched` in a store. `acknowledged` and `finished` as assertions in the code. `committed` needs both ends, so a
#   trace and a job that joins it.

# %% [reflection] lab14.test
# **3.** You have repaired Warsaw. What do you leave behind?
#
# answer: The short schedule as a test that fails with the old code, and the rule as a check in the simulation. Then a
#   seed finds the next violation before a customer does.

# %% [markdown] tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).
