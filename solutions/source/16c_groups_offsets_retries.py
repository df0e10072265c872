# %% [markdown] tags=["reading"]
# # 16c Your broker: groups, offsets, retries
#
# ## Why
#
# Your broker stores orders and answers pulls. It does not know yet who is in a group, how far the group is, and what to
# do with an order that fails. "All of that fits into memory," says the team lead.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [second part](16b-pull-and-hold.ipynb), labs
# [04](04a-how-far-have-we-read.ipynb) and [07](07a-failure-takes-time.ipynb). Afterwards you can
#
# - write what a broker knows of a group, and save what must outlive it;
# - write the way of an order that fails, from its first retry to the dead letters.

# %%
import json

from mqlab.course import answer, check, hint, keep, mybroker, predict, reveal, show_me
from mqlab.lab.parts import copied
from mqlab.rocketmq.wire import record

# %% [exercise] lab16.groups
# ## Members and offsets
#
# ### Exercise 1: your groups
#
# Write `MyGroups`. Its `disk` has `replace(name, data)`, which writes a small file as a whole, and `load(name)`, which
# returns its bytes, or None. Members are in memory only: they send heartbeats, so a broker learns of them again.
#
# hint: A dictionary group -> members, and a dictionary (group, topic, queue) -> offset are enough.
# hint: JSON has no tuples as keys: write the key as one text, such as `f"{topic}@{group}@{queue_id}"`.
# hint: `save` is `self.disk.replace("config/myOffsets.json", json.dumps(…).encode())`, and `__init__` loads the same file.
# note: This is ConsumerManager and ConsumerOffsetManager. What was committed since the last save is gone after a crash: the
#   group reads it again (lab 04a).


# %%
# exercise: lab16.groups
class MyGroups:
    """Who is in a group, and how far it is."""

    ### BEGIN SOLUTION
    def __init__(self, disk) -> None:
        self.disk, self.groups = disk, {}
        self.offsets = json.loads(disk.load("config/myOffsets.json") or b"{}")

    def joined(self, group, member) -> None:
        """Comes again with each heartbeat."""
        self.groups.setdefault(group, set()).add(member)

    def left(self, group, member) -> None:
        self.groups.get(group, set()).discard(member)

    def members(self, group) -> list[str]:
        return sorted(self.groups.get(group, ()))

    def commit(self, group, topic, queue_id, queue_offset) -> None:
        self.offsets[f"{topic}@{group}@{queue_id}"] = queue_offset

    def committed(self, group, topic, queue_id) -> int:
        return self.offsets.get(f"{topic}@{group}@{queue_id}", -1)

    def save(self) -> None:
        self.disk.replace("config/myOffsets.json", json.dumps(self.offsets).encode())

    ### STARTER
    # def __init__(self, disk): ...
    # def joined(self, group, member): ...
    # def left(self, group, member): ...
    # def members(self, group): ...  # everybody, once
    # def commit(self, group, topic, queue_id, queue_offset): ...
    # def committed(self, group, topic, queue_id): ...  # -1 without a commit
    # def save(self): ...  # every five seconds
    ### END SOLUTION


# %%
check("lab16.groups")

# %% [belief] lab16.offsets_in_memory
# question: The members of a group know how far they are. Must the broker save it?
# claim: No; they report it again.
# refutation: The next owner of a queue asks the broker. What is not saved begins at the start after a crash.

# %% [belief] lab16.members_stay
# question: A member has left. Who notices?
# claim: Its queues stay with it until it comes back.
# refutation: The others do, because the list is shorter. A member that stays in the list keeps queues that nobody reads.

# %% [belief] lab16.zero_without_commit
# question: A group has never committed. What is its offset?
# claim: 0, the first message.
# refutation: -1: there is none. The client then decides where the group begins (lab 04b).

# %% [exercise] lab16.retries
# ## An order that fails
#
# ### Exercise 2: your retries
#
# Write `MyRetries`. Level n waits `delays_ms[n - 1]`, and level 0 means 3 plus the retries so far. `copied(unit)` is the
# copy to store: it has one more in `reconsume_times`, and takes properties of yours, such as `copied(unit, DUE="7")`.
#
# hint: `record.decode(unit).reconsume_times` says how often it came back. "dead" if that is `most` or more, or if the level
#   is below 0: the copy goes into `%DLQ%group`, queue 0.
# hint: A copy that waits must outlive the broker. Put it into a topic of your own, with its group and due time as
#   properties. Use one queue per level: then a queue is in the order of due times.
# hint: `look` goes over the levels. Whatever is due is put into `%RETRY%group`; remember per level how far you are, in a
#   file.
# note: This is SendMessageProcessor.consumerSendMsgBack with ScheduleMessageService: SCHEDULE_TOPIC_XXXX has a queue per
#   level for the same reason.


# %%
# exercise: lab16.retries
class MyRetries:
    """Copies of what failed: waiting, due, or dead."""

    ### BEGIN SOLUTION
    def __init__(self, store, disk, delays_ms) -> None:
        self.store, self.disk, self.delays_ms = store, disk, delays_ms
        self.moved = json.loads(disk.load("config/myRetries.json") or b"{}")

    def send_back(self, group, unit, level, most, now_ms) -> str:
        times = record.decode(unit).reconsume_times
        if times >= most or level < 0:
            self.store.put(f"%DLQ%{group}", 0, copied(unit))
            return "dead"
        level = min(level or 3 + times, len(self.delays_ms))
        due_ms = now_ms + self.delays_ms[level - 1]
        waits = copied(unit, MY_GROUP=group, MY_DUE=str(due_ms))
        self.store.put("WAITING_RETRIES", level, waits)
        return "retry"

    def look(self, now_ms) -> None:
        before = dict(self.moved)
        for level in range(1, len(self.delays_ms) + 1):
            number = self.moved.get(str(level), 0)
            for unit in self.store.get("WAITING_RETRIES", level, number, 32):
                waits = record.decode(unit).property_map
                if int(waits["MY_DUE"]) > now_ms:
                    break
                self.store.put(f"%RETRY%{waits['MY_GROUP']}", 0, unit)
                number += 1
            self.moved[str(level)] = number
        if self.moved != before:
            self.disk.replace("config/myRetries.json", json.dumps(self.moved).encode())

    ### STARTER
    # def __init__(self, store, disk, delays_ms): ...
    # def send_back(self, group, unit, level, most, now_ms): ...  # "retry" or "dead"
    # def look(self, now_ms): ...  # every second
    ### END SOLUTION


# %%
check("lab16.retries")

# %% [belief] lab16.retries_at_once
# question: An order has failed. When does its copy go into the retry topic?
# claim: At once; the consumer waits.
# refutation: When the delay of its level is over. Consumers do not wait, they read what is there.

# %% [belief] lab16.one_retry_more
# question: most is 2, and the message comes back with reconsume_times 2. Is it dead?
# claim: No; it is dead when it was given more often than that.
# refutation: It was retried 2 times, which is as often as allowed. Now it is dead.

# %% [belief] lab16.first_is_level_one
# question: A message fails for the first time, with level 0. Which delay does it wait for?
# claim: That of level 1.
# refutation: Level 0 means 3 plus the retries so far, so the first retry waits for level 3.

# %% [markdown] tags=["reading"]
# ## Next
#
# The fourth part puts your broker [on the wire](16d-on-the-wire.ipynb). All labs: [index](index.ipynb).
