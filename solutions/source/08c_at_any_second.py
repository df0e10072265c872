# %% [markdown] tags=["reading"]
# # 08c Timed messages: at any second
#
# ## Why
#
# An auction of the shop ends at a given second, and bidders want a reminder ten minutes before. With the eighteen
# levels of [lab 08a](08a-later.ipynb) each would take several hops. RocketMQ 5 has *timed* messages: you write
# `deliver_at`, and the broker delivers the message then.
#
# Six sentences are on the board:
#
# - "A timed message waits in its own topic."
# - "The wheel is in memory, so a restart loses it."
# - "A delay of four days is fine."
# - "Two messages of one second arrive in the order of their times."
# - "If the wheel's files are lost, all reminders are lost."
# - "Recall answered yes, so the reminder is gone."
#
# None of them is true.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 08a](08a-later.ipynb); the bytes of [lab 01a](01a-what-the-broker-writes.ipynb)
# help. Afterwards you can
#
# - say when a timed message is delivered, and how late it may be;
# - read a slot of the wheel from the broker's files, and rebuild a wheel that is lost;
# - say what a recall takes back, and which of three files must never be deleted.

# %%
import shutil
from collections import Counter
from struct import unpack

from mqlab import Message, play
from mqlab.course import answer, check, hint, predict, reveal, show_me
from mqlab.course.widgets import wheel_board
from mqlab.errors import BrokerError, RemotingError
from mqlab.lab.views import Table
from mqlab.lab.views.rocketmq5.timer_wheel import show_wheel

no_trace = {"enable_trace": False}  # only reminders in the log
TIMER = "rmq_sys_wheel_timer"  # the broker's own topic
SECOND = 1_000

# %% [markdown]
# ## The timer topic: where a timed message waits
#
# A message is timed if it has `deliver_at` (a moment in ms) or `delay` (a duration), the property `TIMER_DELIVER_MS` or
# `TIMER_DELAY_MS`.


# %%
def topic(lab):
    lab.create_topic("reminders", read_queue_nums=1, write_queue_nums=1)


def remind(key, **when):
    return Message("reminders", b"it ends soon", keys=key, **when)


def one_reminder(lab):
    topic(lab)
    lab.producer("shop").send(remind("auction-0", delay="30s"))
    lab.run_for("5s")


# %% [prediction] lab08.timed_where
# A reminder with a delay of 30 s was sent five seconds ago. Which topic is it in?
#
# - reminders: in `reminders`, hidden until its time has come
#   > A consume queue cannot hide an entry. Consumers would get the reminder now.
# - level: in `SCHEDULE_TOPIC_XXXX`, in the queue of level 4, which is 30 s
#   > Levels and the timer wheel are two mechanisms. A timed message never passes the levels.
# - wheel: in `rmq_sys_wheel_timer`
#   = The broker stores it under its own topic first. The wheel only remembers where it is in the commit log.
# - nowhere: in no topic; it is in the broker's memory
#   > The commit log has it. Memory alone would not survive a crash.
# note: At work: `mqadmin topicStatus -t rmq_sys_wheel_timer` shows how many messages were ever timed.

# %%
waits = play(one_reminder, seed=7, client=no_trace)
stored = {
    name: [message.keys for message in waits.store().messages(name)]
    for name in ("reminders", TIMER)
}
show_wheel(waits, title="what the wheel knows of the reminder")

# %%
reveal("lab08.timed_where", "wheel" if stored[TIMER] else "reminders")

# %%
(waiting,) = waits.store().messages(TIMER)
names = ("TIMER_DELAY_MS", "TIMER_OUT_MS", "REAL_TOPIC", "REAL_QID")
Table(
    [{name: waiting.properties[name] for name in names}],
    title="the broker's own properties",
)

# %% [markdown]
# `TIMER_OUT_MS` is the moment that the broker computed: the wish, rounded down to a whole second. If the wish is a
# whole second already, the broker takes the second before.
#
# At the end of a step of `timer_precision_ms`, by default 1,000, the broker delivers what belongs to the step. Two
# auctions end ten seconds from now: one at the full second, the other a millisecond later.

# %% [prediction] lab08.timed_when
# When are the two reminders delivered?
#
# - same: both at the full second
#   > The later one would be a millisecond early. The wheel is never early.
# - exact: each at its own millisecond
#   > The wheel knows seconds. Its steps end only once per second.
# - apart: the first at the full second, the other a second later
#   = A millisecond past the full second belongs to the next step, which ends a second later.
# - level: both at the next check, 100 ms later at most
#   > That is how the delay levels of lab 08a work. The wheel's step is a second.
# note: A timed message is up to one step late and never early. For full seconds the delay is nearly zero.
# later: -


# %%
def two_auctions(lab):
    topic(lab)
    shop = lab.producer("shop")
    end = lab.now_ms // SECOND * SECOND + 10 * SECOND
    shop.send(remind("at the second", deliver_at=end))
    shop.send(remind("1 ms later", deliver_at=end + 1))
    lab.run_for("15s")


def lateness(lab):
    return {
        message.keys: message.store_timestamp
        - int(message.properties["TIMER_DELIVER_MS"])
        for message in lab.store().messages("reminders")
    }


# %%
two = play(two_auctions, seed=7, client=no_trace)
late_ms = lateness(two)
Table(
    [{"reminder": key, "late_ms": ms} for key, ms in late_ms.items()],
    title="how late they came",
)

# %%
reveal("lab08.timed_when", "apart" if late_ms["1 ms later"] == 999 else "exact")

# %% [answer] lab08.precision
# ### Your turn: a finer wheel
#
# Set `PRECISION` to 100 and run the cell. How many milliseconds late is the reminder now that ends 250 ms past the full
# second?
#
# wrong second: That is how late it was with a precision of 1,000.
# wrong never: The broker still works in steps, of 100 ms now. The wish is 50 ms into a step.
# wrong: Read the number from the table of the cell that you have changed.
# note: The wheel has 1,209,600 slots whatever the precision is. Steps of 100 ms cover ten times less time.

# %% tags=["parameter"]
PRECISION = 1_000


def quarter_past(lab):
    topic(lab)
    end = lab.now_ms // SECOND * SECOND + 10 * SECOND
    lab.producer("shop").send(remind("250 ms later", deliver_at=end + 250))
    lab.run_for("15s")


finer = play(
    quarter_past, seed=7, client=no_trace, broker={"timer_precision_ms": PRECISION}
)
Table(
    [{"reminder": key, "late_ms": ms} for key, ms in lateness(finer).items()],
    title=f"with steps of {PRECISION} ms",
)

# %%
### BEGIN SOLUTION
finest = play(quarter_past, seed=7, client=no_trace, broker={"timer_precision_ms": 100})
answer("lab08.precision", lateness(finest)["250 ms later"], finest)
### STARTER
# answer("lab08.precision", ..., finer)
### END SOLUTION

# %% [markdown]
# ## The wheel: a slot per second, a list per slot
#
# Two files let the broker find what is due:
#
# - `timerwheel` has 1,209,600 slots of 32 bytes, 14 days of seconds. The slot of a second has the number `second %
#   1_209_600`.
# - `timerlog` has a unit of 52 bytes per timed message: where the message waits in the commit log, and the position of
#   the slot's previous unit.
#
# So a slot is the head of a linked list, like a slot of the index in lab 01b. (The clock of this lab begins at slot 0,
# by chance.)


# %%
def many_auctions(lab):
    topic(lab)
    shop = lab.producer("shop")
    end = lab.now_ms // SECOND * SECOND + 10 * SECOND
    for number, second in enumerate((0, 5, 1, 0, 1, 1, 8)):
        wish = end + second * SECOND + 500
        shop.send(remind(f"auction-{number}", deliver_at=wish))
        lab.run_for("300ms")
    lab.run_for("3s")


wheel = play(many_auctions, seed=7, client=no_trace)
show_wheel(wheel, title="two slots with several units, two with one")

# %% [markdown]
# `last` names the newest unit, and each arrow is the number `previous` of a unit. The 32 bytes of the first slot and
# the 52 bytes of its newest unit, as numbers:

# %%
number, slot = next(iter(wheel.store().timer_slots().items()))
units = dict(wheel.store().timer_units())
Table(
    [{"slot": number, **slot._asdict()}, {"slot": "", **units[slot.last]._asdict()}],
    columns=["slot", *slot._fields, *units[slot.last]._fields],
    title="a slot, and the unit that its last names",
)

# %% [markdown]
# `time` is the slot's second. `num` counts messages minus recalls, so it is not the length of the list. Neither slot
# nor unit stores milliseconds.

# %% [prediction] lab08.one_second
# The shop sends a reminder for 10.900 s, then one for 10.100 s. Which one is delivered first?
#
# - due: the one for 10.100 s; its time is first
#   > Both are in the slot of second 10. The slot is a list and has no milliseconds to sort by.
# - sent: the one for 10.900 s; it was sent first
#   = The list of a slot is in the order of the timer log. Both are stored at the end of the step.
# - newest: the one for 10.100 s; the list begins with the newest unit
#   > The broker reads the list from its newest unit, then delivers from the oldest.
# note: A real broker reads a slot with three threads and stores with three more, so it promises no order at all within
#   a second. At work: put a number into the message if the order matters.


# %%
def one_second(lab):
    topic(lab)
    shop = lab.producer("shop")
    end = lab.now_ms // SECOND * SECOND + 10 * SECOND
    for ms in (900, 100):
        shop.send(remind(f"10.{ms}", deliver_at=end + ms))
    lab.run_for("15s")


same = play(one_second, seed=7, client=no_trace)
order = [message.keys for message in same.store().messages("reminders")]
reveal("lab08.one_second", "sent" if order == ["10.900", "10.100"] else "due")

# %% [exercise] lab08.due_at
# ### Exercise 1: what is due in this second?
#
# Write `due_at(read_wheel, read_log, second)`.
#
# - `read_wheel(position, size)` returns bytes of the file `timerwheel`: slots of 32 bytes, which are `time` and `first`
#   and `last` (i64 each), `num` and `magic` (i32 each). A slot that was never used is zeros.
# - `read_log(position, size)` returns bytes of the timer log: units of 52 bytes, which are `size` i32, `previous` i64,
#   `magic` i32, `write_ms` i64, `delay_ms` i32, `place` i64, `size in the log` i32, `hash` i32, `0` i64.
# - `second` is the second that has come, such as 1,767,225,653.
#
# Return a list of `(place, size)`, one row per unit of that second, the oldest first. `place` and `size` say where the
# message waits in the commit log. Numbers are big-endian.
#
# hint: The slot is at byte `second % 1_209_600 * 32` of the wheel. `unpack(">qqqii", …)` gives its five numbers.
# hint: If the slot's `time` is another second, nothing is due. Otherwise begin with the unit at `last`:
#   `unpack(">iqiqiqiiq", read_log(position, 52))`.
# hint: Follow `previous` until it is -1, append `(place, size)` of each unit, and return the list reversed.
# note: You have written `TimerMessageStore.dequeue`. Its cost does not depend on how many messages wait for later.


# %%
# exercise: lab08.due_at
def due_at(read_wheel, read_log, second):
    """Where the messages of a second wait: [(place, size)], oldest first."""
    ### BEGIN SOLUTION
    slot = unpack(">qqqii", read_wheel(second % 1_209_600 * 32, 32))
    rows = []
    position = slot[2] if slot[0] == second else -1
    while position != -1:
        unit = unpack(">iqiqiqiiq", read_log(position, 52))
        rows.append((unit[5], unit[6]))
        position = unit[1]
    return rows[::-1]
    ### END SOLUTION


# %%
check("lab08.due_at")

# %% [belief] lab08.slot_is_its_second
# question: The slot of a second is not empty. What is due in that second?
# claim: The list of that slot.
# refutation: The wheel has turned: 14 days ago another second had the same slot. Compare the slot's time with the
#   second first.

# %% [belief] lab08.num_counts
# question: How long is the list of a slot?
# claim: As long as its num says.
# refutation: A recall marker is a unit as well, and it counts -1. The list ends where previous is -1.

# %% [belief] lab08.list_is_a_run
# question: Which units of the timer log belong to a slot?
# claim: Those between its first and its last.
# refutation: Units of other seconds were appended between them. Only the chain of previous leads from unit to unit.

# %% [belief] lab08.ends_are_all
# question: Which units does a slot name?
# claim: All of its units, the first and the last.
# refutation: A slot names the two ends of a list. The units between them are found by following previous from the last.

# %% [belief] lab08.newest_first
# question: In which order are the messages of a slot delivered?
# claim: In the order of the list, so the newest is first.
# refutation: The list leads from the newest unit to the oldest. The broker reverses it and delivers the oldest first.

# %% [markdown]
# ## The roll window: long delays
#
# The commit log deletes its files after 72 hours, whatever waits in them.

# %% [prediction] lab08.four_days
# The shop sends a reminder with a delay of four days. What happens?
#
# - fine: it is stored, and delivered in four days
#   > The wheel has 14 days, but the broker accepts delays up to `timer_max_delay_sec` only.
# - shorter: it is stored, and delivered in three days, the longest delay there is
#   > Levels beyond the table are shortened. A delay beyond the maximum is refused.
# - refused: the send fails
#   = `timer_max_delay_sec` is three days. The broker answers MESSAGE_ILLEGAL.
# - lost: it is stored, and lost after three days, when its file is deleted
#   > The maximum is there to prevent that.
# note: The maximum can be raised. A time in the past is delivered at once, without an error.


# %%
def four_days(lab):
    topic(lab)
    try:
        lab.producer("shop").send(remind("auction-0", delay="4d"))
        outcome.append("fine")
    except BrokerError as error:
        print(error)
        outcome.append("refused")


outcome = []
play(four_days, seed=7, client=no_trace)
reveal("lab08.four_days", outcome[0])

# %% [markdown]
# The wheel never holds a message for more than its *roll window*, which is two days by default. If a message is due
# later, the broker takes a slot on the way there. When that slot is due, it stores the message in the timer topic
# again, in a new file, and checks again.
#
# Here the window is six seconds.

# %% [prediction] lab08.rolls
# The window is 6 s, and a reminder is due in 20 s. How often is it stored in the timer topic?
#
# - 1: once
#   > Then its copy in the log would be as old as the whole delay.
# - 3: three times, at 0, 6 and 12 s
#   > At 12 s there are still 8 s to wait, which is more than the window.
# - 4: four times
#   = The hops end where less than a window is left. A hop that would leave a very short rest is only half a window
#   = long.
# - 20: twenty times, once per second
#   > The wheel reads a slot when it is due, not every message every second.
# note: A longer delay costs one more unit per window. With the usual two days, a reminder in three days costs one more.
# later: The timer's window is 6 s, and a reminder is due in 20 s. How often is it stored in the timer topic?


# %%
def due_in_20_s(lab):
    topic(lab)
    lab.producer("shop").send(remind("auction-0", delay="20s"))
    lab.run_for("25s")


def rolled(window):
    small = {"timer_roll_window_slot": window}
    return play(due_in_20_s, seed=7, client=no_trace, broker=small)


six = rolled(6)
show_wheel(six, title="one reminder, a window of 6 s")

# %%
reveal("lab08.rolls", str(len(list(six.store().messages(TIMER)))))

# %% [answer] lab08.copies
# ### Your turn: five copies
#
# Change `WINDOW` until the timer topic has exactly five copies of the reminder that is due in 20 s. Which window is it?
#
# wrong equal: 20 divided by 5 is a good guess for hops of one window each, but the first copy is stored at once.
# wrong: The answer is the window of your own run, in seconds.
# note: A small window writes more, a large one needs files that live longer. Two days fit into the 72 hours of a file.

# %% tags=["parameter"]
WINDOW = 6

hops = rolled(WINDOW)
print(len(list(hops.store().messages(TIMER))), "copies")
show_wheel(hops)

# %%
### BEGIN SOLUTION
five = rolled(4)
answer("lab08.copies", 4, five)
### STARTER
# answer("lab08.copies", ..., hops)
### END SOLUTION

# %% [markdown]
# ## Recall: taking a reminder back
#
# The answer to the send had a `recall_handle`, and `producer.recall` sends it to the broker. (`recall_message_enable`
# is off by default.) A log cannot erase, so the broker stores a *marker*: a timed message for the same slot that names
# its victim. When the slot is due, markers are read first.

# %% [prediction] lab08.recall_yes
# The answer to a send was lost, so the shop's program sent the same message again, three seconds later. Then it
# recalled the message, and the broker answered yes. The delay was 20 s both times. What is delivered?
#
# - nothing: nothing; the broker said yes
#   > Yes means that a marker was stored. It finds victims in its own slot only.
# - first: the first copy
#   = Each send was 20 s ahead, so the two copies have two slots. The handle, and the marker, belong to the second one.
# - both: both copies; a recall cannot reach what is already in the wheel
#   > The marker is in the slot of the second copy, and it is read before the copy.
# note: With `deliver_at` in place of `delay`, both copies are in one slot, and the marker removes both. At work: set a
#   moment if you may have to recall, and still check in the listener.


# %%
def cancelled(lab, **when):
    topic(lab)
    shop = lab.producer("shop")
    shop.send(remind("auction-1"))
    reminder = remind("auction-0", **when)
    lab.drop("broker-a", "shop-1")
    try:
        shop.send(reminder)
    except RemotingError as error:
        print(error)
    answered = shop.send(reminder)
    shop.recall("reminders", answered.recall_handle)  # raises if it is refused


# %%
def waiting_for(lab, seconds, **when):
    cancelled(lab, **when)
    lab.run_for(f"{seconds}s")


recall = {"recall_message_enable": True}
two_slots = play(
    lambda lab: waiting_for(lab, 2, delay="20s"), seed=7, client=no_trace, broker=recall
)
show_wheel(two_slots, title="two copies in two slots, and one marker")

# %%
recalled = play(
    lambda lab: waiting_for(lab, 30, delay="20s"),
    seed=7,
    client=no_trace,
    broker=recall,
)
came = [
    message.store_timestamp
    for message in recalled.store().messages("reminders")
    if message.keys == "auction-0"
]
reveal("lab08.recall_yes", {0: "nothing", 1: "first", 2: "both"}[len(came)])

# %% [answer] lab08.recall_late
# ### Your turn: a recall that is too late
#
# Eight reminders are due at the same full second, 10 s from now. The shop recalls one of them every 200 ms, the first
# `EARLY` ms before that second. Set `EARLY` to 1,500 and run the cell. How many of the eight are delivered?
#
# wrong none: The broker refused some of the recalls.
# wrong one_step: Count the rows of the table whose recall was refused.
# wrong: Count the keys in `reminders` of your own run.
# note: The last second belongs to the slot that is being read. A marker for it would come too late, so the broker
#   refuses.


# %%
def told_of_recall(shop, handle):
    try:
        shop.recall("reminders", handle)
    except BrokerError:
        return "refused"
    return "yes"


# %%
def recalls(lab, early):
    topic(lab)
    shop = lab.producer("shop")
    end = lab.now_ms // SECOND * SECOND + 10 * SECOND
    sent = [shop.send(remind(f"auction-{n}", deliver_at=end)) for n in range(8)]
    for n, answered in enumerate(sent):
        lab.run_for(max(end - early + 200 * n - lab.now_ms, 1))
        told = told_of_recall(shop, answered.recall_handle)
        rows.append({"reminder": f"auction-{n}", "recalled": told})
    lab.run_for("12s")


# %% tags=["parameter"]
EARLY = 9_000

rows = []
race = play(lambda lab: recalls(lab, EARLY), seed=7, client=no_trace, broker=recall)
Table(rows, title=f"recalled from {EARLY} ms before the end on")

# %%
### BEGIN SOLUTION
late = play(lambda lab: recalls(lab, 1_500), seed=7, client=no_trace, broker=recall)
answer("lab08.recall_late", len(list(late.store().messages("reminders"))), late)
### STARTER
# answer("lab08.recall_late", ..., race)
### END SOLUTION

# %% [markdown]
# ## Lost files: wheel, log and check file
#
# A third file, `config/timercheck`, says up to which slot the wheel was read, and which message of the timer topic is
# the next to get a place. All three are written once a second.
#
# Three of six reminders are delivered, three wait. Then the broker is killed, and an operator deletes "the temporary
# files of the timer" before the restart.


# %%
def six_reminders(lab):
    topic(lab)
    shop = lab.producer("shop")
    for number in range(6):
        delay = "3s" if number < 3 else "25s"
        shop.send(remind(f"auction-{number}", delay=delay))
    lab.run_for("8s")


# %%
def without(lab, deleted):
    six_reminders(lab)
    lab.kill("broker-a")
    for name in deleted:
        path = lab.directory / "broker-a" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    lab.start("broker-a")
    lab.run_for("30s")


# %%
def times_delivered(lab):
    counts = Counter(message.keys for message in lab.store().messages("reminders"))
    return [counts[f"auction-{number}"] for number in range(6)]


# %% [prediction] lab08.which_file
# Which one of the three files loses reminders when it is deleted?
#
# - wheel: `timerwheel`, because it has all the slots
#   > Slots can be computed from the units of the timer log. You will do that in exercise 2.
# - log: `timerlog`
#   = The check file says that these messages have their places already, so the broker does not give them new ones.
# - check: `config/timercheck`, because the broker then knows nothing
#   > A broker without it begins with the first message of the timer topic. That repeats reminders and loses none.
# - all: any of them; each is needed
#   > The messages are in the commit log. Two of the three files can be made again from what is left.
# note: The danger is a file that says "done" about work whose result is gone.
# later: A broker keeps timed messages. Which one of these files loses reminders when it is deleted?

# %%
FILES = ("timerwheel", "timerlog", "config/timercheck")
results = {}
for name in FILES:
    harmed = play(lambda lab, name=name: without(lab, [name]), seed=7, client=no_trace)
    results[name] = times_delivered(harmed)
Table(
    [
        {"deleted": name, "the first three": times[:3], "the waiting three": times[3:]}
        for name, times in results.items()
    ],
    title="how often each reminder was delivered",
)

# %%
lost = [name for name, times in results.items() if 0 in times]
keys = dict(zip(FILES, ("wheel", "log", "check"), strict=True))
reveal("lab08.which_file", keys[lost[0]] if len(lost) == 1 else "all")

# %% [answer] lab08.all_gone
# ### Your turn: delete all three
#
# Put all three names into `DELETED` and run the cell. How many deliveries are there in all?
#
# wrong lost: Without the check file the broker begins with the first message of the timer topic, and none is lost.
# wrong once: The broker has forgotten which reminders it had delivered.
# wrong: Add the six numbers of your own run.
# note: All three deleted is better than one deleted: nothing claims that the work was done. Some reminders repeat, so
#   the listener must know them.

# %% tags=["parameter"]
DELETED = ["timerlog"]

careful = play(lambda lab: without(lab, DELETED), seed=7, client=no_trace)
Table(
    [
        {"reminder": f"auction-{number}", "delivered": times}
        for number, times in enumerate(times_delivered(careful))
    ],
    title=f"without {', '.join(DELETED)}",
)

# %%
### BEGIN SOLUTION
bare = play(lambda lab: without(lab, FILES), seed=7, client=no_trace)
answer("lab08.all_gone", sum(times_delivered(bare)), bare)
### STARTER
# answer("lab08.all_gone", ..., careful)
### END SOLUTION

# %% [markdown]
# Here are six reminders, and the wheel turns. Walk through the slots, choose a smaller window, recall `auction-3`, and
# lose one of the three files: which slots, which units of the log, and which reminders are left?

# %% tags=["explorer"]
wheel_board(lost="timerlog")

# %% [exercise] lab08.rebuild
# ### Exercise 2: rebuild the wheel
#
# The file `timerwheel` is lost. Write `rebuild(log, start)`, which computes its slots.
#
# - `log` is the rest of the timer log as bytes: units of 52 bytes as in exercise 1. Files in front of it were deleted.
# - `start` is the position of the first byte of `log` in the whole timer log.
#
# The log ends before the first unit whose `size` is not 52, or whose `magic` is not between 0 and 15. A unit belongs to
# the second `(write_ms + delay_ms) // 1000`.
#
# Return a dictionary: the number of the slot, `second % 1_209_600` -> `(second, first, last)`. `first` and `last` are
# the positions of its oldest and newest unit in the whole timer log. If two seconds share a slot, the later one in the
# log has it.
#
# hint: Read units with `unpack(">iqiqiqiiq", log[at : at + 52])` for `at` in `range(0, len(log) - 51, 52)`.
# hint: The position of a unit is `start + at`. Stop at the first unit that is not whole; do not skip it.
# hint: If the slot has no row, or a row of another second, its row becomes `(second, position, position)`. Otherwise
#   only `last` changes.
# note: You have written `TimerMessageStore.recoverAndRevise`. Only `num` cannot be computed, so RocketMQ leaves it as
#   it was.


# %%
# exercise: lab08.rebuild
def rebuild(log, start):
    """The wheel that belongs to a timer log: {slot number: (second, first, last)}."""
    ### BEGIN SOLUTION
    slots = {}
    for at in range(0, len(log) - 51, 52):
        unit = unpack(">iqiqiqiiq", log[at : at + 52])
        if unit[0] != 52 or not 0 <= unit[2] <= 15:
            break
        second = (unit[3] + unit[4]) // 1000
        slot = second % 1_209_600
        first = start + at
        if slot in slots and slots[slot][0] == second:
            first = slots[slot][1]
        slots[slot] = (second, first, start + at)
    return slots
    ### END SOLUTION


# %%
check("lab08.rebuild")

# %% [belief] lab08.slot_of_the_write
# question: A unit says when it was written. Which slot is it in?
# claim: In that of the second in which it was written.
# refutation: A message is in the slot of the second when it is due, which is write_ms + delay_ms.

# %% [belief] lab08.slots_of_ms
# question: write_ms and delay_ms are milliseconds. What is the number of the slot?
# claim: Their sum modulo 1,209,600.
# refutation: A slot stands for a second. Divide by 1,000 before you take the remainder.

# %% [belief] lab08.parts_are_seconds
# question: A unit was written at 700 ms of a second, with a delay of 5,600 ms. How many seconds later is its slot?
# claim: Five; each number is rounded down to seconds.
# refutation: Six: 700 and 5,600 are 6,300 ms. Add first, then divide.

# %% [belief] lab08.magic_between
# question: A unit has the magic 0, another one 15. Are they whole?
# claim: No, for a magic is between the two.
# refutation: Recovery accepts 0 and 15, too: such a unit is whole.

# %% [belief] lab08.log_ends_with_zeros
# question: A log ends with the last byte of a unit. Is this unit whole?
# claim: No, a log ends with zeros or with a torn unit.
# refutation: It is whole, for all its bytes are there. Zeros come after it only while its file has room.

# %% [belief] lab08.torn_unit_is_skipped
# question: A unit in the middle of the log is damaged. Which units count?
# claim: All whole ones, before and after it.
# refutation: The log ends at the first unit that is not whole. What follows it may be older than the crash, so recovery
#   cuts it off.

# %% [belief] lab08.slot_keeps_its_first
# question: The wheel has turned, and a new second takes a slot. Where does its list begin?
# claim: At the slot's first, as before.
# refutation: The list of fourteen days ago is over. With another second, first and last both become the new unit.

# %% [belief] lab08.oldest_slot_stays
# question: Two seconds, fourteen days apart, have the same slot. Which of them keeps it?
# claim: The one that was there first.
# refutation: The old one was delivered long ago. The second that comes later in the log takes the slot.

# %% [belief] lab08.place_in_the_file
# question: The older files of the timer log are gone. At which position does the first file that is left begin?
# claim: At 0, like any file.
# refutation: Positions count from the beginning of the whole log. The file's name says where it begins, which is start
#   here.

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **One order within a slot.** RocketMQ's threads keep no order there.
# - **One broker.** A slave never delivers from its wheel. When its master is gone, reminders wait.
# - **Half messages.** A timed half message is committed, and never delivered.
# - **Not modelled:** several timer threads, the RocksDB timeline of later versions. [The whole
#   list](not-modelled.ipynb).

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | the change of the topic before the put | `HookUtils.handleScheduleMessage`, `transformTimerMessage` |
# | a place in the wheel, and the roll | `TimerMessageStore.doEnqueue` |
# | the list of a slot | `TimerMessageStore.dequeue`, `TimerDequeueGetMessageService` |
# | the files | `TimerWheel`, `TimerLog`, `TimerCheckpoint` |
# | slots from the log | `TimerMessageStore.recoverAndRevise`, `TimerWheel.reviseSlot` |
# | the marker of a recall | `RecallMessageProcessor`, property `TIMER_DEL_UNIQKEY` |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | hierarchical wheels of milliseconds, seconds and minutes | one wheel of seconds; far messages are stored again per window |
# | a precision of milliseconds | up to a second late, never early |
# | delays up to 40 days | three days by default, else MESSAGE_ILLEGAL |
# | recall removes the message | recall stores a marker; yes says no more than that |
# | the wheel is lost, so the messages are lost | the wheel can be rebuilt from the timer log |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab08.wheel_or_levels
# **1.** A reminder after exactly ten minutes: level 14 or a timed message?
#
# answer: Both work. A level is up to 100 ms late and keeps the order of its queue. A timed message may be a second
#   late, but it can be recalled, and it needs no table that every broker shares.

# %% [reflection] lab08.why_roll
# **2.** Why does the broker not keep a far message in the wheel until it is due? The wheel has fourteen days.
#
# answer: The wheel only knows where the message is in the commit log, and after 72 hours that file is deleted. Each
#   roll makes a younger unit.

# %% [reflection] lab08.wheel_and_check
# **3.** The timer log is lost and the check file is not. How could an operator save the waiting reminders?
#
# answer: By deleting the check file as well. The broker then begins with the first message of the timer topic in the
#   commit log. Delivered reminders are delivered again, so the listeners must be idempotent.

# %% [markdown] tags=["reading"]
# ## Next
#
# In [lab 09](09a-falling-behind.ipynb) the consumers fall behind. The leases of [lab 15](15a-leased-not-owned.ipynb)
# are timed messages. All labs: [index](index.ipynb).
