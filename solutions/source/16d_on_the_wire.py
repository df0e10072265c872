# %% [markdown] tags=["reading"]
# # 16d Your broker: on the wire
#
# ## Why
#
# You have a store, pulls, groups and retries. A client that was not written here knows none of them. It knows request
# codes.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need the [third part](16c-groups-offsets-retries.ipynb). Afterwards you can write the six
# handlers with which an unmodified client sends and consumes.

# %%
import json

from mqlab.course import answer, check, hint, keep, mybroker, predict, reveal, show_me
from mqlab.lab.parts import unit_of

# %% [exercise] lab16.handlers
# ## Six codes
#
# ### Exercise 1: the table of handlers
#
# Write a function for each of the six codes, and the table `HANDLERS`. Each gets `(broker, request)` and returns `(code,
# header fields, body)`. `request` has `fields` (all values are strings), `body`, `client`, `number`, `tags` and
# `answer`. `broker` has `store`, `pulls`, `groups`, `retries`, `now_ms()` and `message_id(physical_offset)`.
#
# hint: A send: `unit_of(fields, body, client, now_ms)` makes the unit; topic and queue are `fields["b"]` and `fields["e"]`.
#   Answer `msgId`, `queueId` and `queueOffset`.
# hint: A pull runs twice: first with `request.answer` None, and returns None if `broker.pulls.pull(number, pull)` does;
#   then with the answer. 0 means found, 19 nothing new, 20 all filtered, 21 outside of the queue.
# hint: Bit 1 of a pull's `sysFlag` says that `commitOffset` is to be committed, bit 2 that it may wait
#   `suspendTimeoutMillis`.
# note: This is NettyRemotingServer's table of processors. Whoever answers six codes like RocketMQ is a RocketMQ for its
#   clients.


# %%
# exercise: lab16.handlers
### BEGIN SOLUTION
def send(broker, request):
    fields = request.fields
    unit = unit_of(fields, request.body, request.client, broker.now_ms())
    queue_offset, place = broker.store.put(fields["b"], int(fields["e"]), unit)
    stored = {"queueId": int(fields["e"]), "queueOffset": queue_offset}
    return 0, {"msgId": broker.message_id(place), **stored}, None


def pull(broker, request):
    fields, answered = request.fields, request.answer
    topic, queue_id = fields["topic"], int(fields["queueId"])
    offset, flag = int(fields["queueOffset"]), int(fields["sysFlag"])
    # 1. Asked for the first time: commit, then answer or hold.
    if answered is None:
        if flag & 1:
            commit(broker, request)
        waits_ms = int(fields["suspendTimeoutMillis"]) if flag & 2 else 0
        asked = {"topic": topic, "queue_id": queue_id, "queue_offset": offset}
        asked |= {"most": int(fields["maxMsgNums"]), "tags": request.tags}
        asked |= {"until_ms": broker.now_ms() + waits_ms}
        answered = broker.pulls.pull(request.number, asked)
        if answered is None:
            return None
    # 2. The answer.
    units, next_offset = answered
    end = broker.store.max_offset(topic, queue_id)
    outside = not 0 <= offset <= end
    code = 0 if units else 21 if outside else 19 if next_offset == offset else 20
    where = {"nextBeginOffset": next_offset, "minOffset": 0, "maxOffset": end}
    return code, {**where, "suggestWhichBrokerId": 0}, b"".join(units)


def send_back(broker, request):
    fields = request.fields
    level = int(fields.get("delayLevel", 0))
    most = int(fields.get("maxReconsumeTimes", 16))
    place = int(fields["offset"])
    became = broker.retries.send_back(fields["group"], place, level, most)
    return (1 if became is None else 0), {}, None


def committed(broker, request):
    fields = request.fields
    queue = fields["topic"], int(fields["queueId"])
    offset = broker.groups.committed(fields["consumerGroup"], *queue)
    return (0, {"offset": offset}, None) if offset >= 0 else (22, {}, None)


def commit(broker, request):
    fields = request.fields
    queue = fields["topic"], int(fields["queueId"])
    broker.groups.commit(fields["consumerGroup"], *queue, int(fields["commitOffset"]))
    return 0, {}, None


def members(broker, request):
    listed = broker.groups.members(request.fields["consumerGroup"])
    return 0, {}, json.dumps({"consumerIdList": listed}).encode()


HANDLERS = {310: send, 11: pull, 36: send_back, 14: committed, 15: commit, 38: members}
### STARTER
# HANDLERS = ...  # {310: …, 11: …, 36: …, 14: …, 15: …, 38: …}
### END SOLUTION

# %%
check("lab16.handlers")

# %% [belief] lab16.place_is_the_offset
# question: A send is answered with queueOffset. Which number is that?
# claim: Where the message is in the log.
# refutation: Its number in its queue. The place is in the message id.

# %% [belief] lab16.pulls_commit
# question: A pull carries a commit as well. What is left for UPDATE_CONSUMER_OFFSET?
# claim: Nothing.
# refutation: Not every pull carries one, and a held pull is late. The client reports every 5 seconds.

# %% [belief] lab16.list_of_one
# question: A member asks for the list of its group. Who is in it?
# claim: The member that asks.
# refutation: All members. Each divides the queues by the same list; with a list of one, each takes all queues.

# %% [markdown] tags=["reading"]
# ## Next
#
# All labs: [index](index.ipynb).
