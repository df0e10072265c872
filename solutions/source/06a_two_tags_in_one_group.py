# %% [markdown] tags=["reading"]
# # 06a Tags: two tags in one group
#
# ## Why
#
# Billing wants the orders that are `paid`, shipping those that are `shipped`. On Monday both start to run in one
# consumer group, "to save a group". On Tuesday customers call: they were not charged, and their books were not sent.
# There is no error in the logs, and monitoring says that the group's lag is 0.
#
# The meeting next morning knows why:
#
# - "The broker compares tags, so each of us got what we asked for."
# - "A consumer says in every pull which tag it wants."
# - "I have seen the picture: each gets its own tag from its own queues, so we lost exactly half."
# - "No lag, nothing lost."
# - "`mqadmin consumerStatus` would have warned us."
#
# None of the five is true. You build an alarm that would have rung on Monday.

# %% [markdown] tags=["reading"]
# ## Objectives
#
# About {minutes} minutes. You need [lab 00](00-a-messages-day.ipynb). Afterwards you can
#
# - say which of two filters drops a message, and what it compares;
# - predict which member gets what when the members of a group disagree, in both settings of the client;
# - notice such a group within three minutes, without a false alarm during a deployment.

# %%
from collections import Counter

from mqlab import CONSUME_SUCCESS, RECONSUME_LATER, Message, play
from mqlab.course import answer, check, hint, old_questions, predict, reveal, show_me
from mqlab.course.widgets import tag_trap_board
from mqlab.lab.views import Bars, Table
from mqlab.lab.views.fates import show_fates

# %%
old_questions("lab06")

# %% tags=["setup"]
from mqlab.rocketmq.wire.java_hash import string_hash as java_hash

# %% [markdown]
# ## A tag is a number
#
# A producer may give a message one **tag** (标签). A consumer subscribes to a topic with a **tag expression**: `paid`, or
# `paid || shipped`, or `*` for everything. An entry of a consume queue has eight bytes for the tag. No text fits into
# those, so RocketMQ stores the **hash code** (标签哈希) that Java has for the text:

# %%
[(tag, java_hash(tag)) for tag in ("paid", "shipped", "Aa", "BB")]


# %% [markdown]
# Let billing want `Aa`, and let the shop send both `Aa` and `BB`:


# %% tags=["parameter"]
def succeeds(messages, context):
    return CONSUME_SUCCESS


def member(lab, name, wants, listener=succeeds, **settings):
    consumer = lab.push_consumer("order-service", name=name, **settings)
    consumer.subscribe("orders", wants)
    consumer.on_messages(listener)
    consumer.start()
    lab.run_for("5s")
    return consumer


# %%
def send_orders(lab, *tags):
    """One order of each tag for each of the topic's queues, which take turns."""
    shop = lab.producer("shop")
    queues = len(shop.fetch_publish_message_queues("orders"))
    for tag in tags:
        for number in range(queues):
            shop.send(Message("orders", b"a book", tags=tag, keys=f"{tag}-{number}"))
    lab.run_for("1m")


# %% tags=["parameter"]
def one_member(lab, wants, *tags):
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    member(lab, "billing", wants)
    send_orders(lab, *tags)


no_trace = {"enable_trace": False}  # nothing but orders in the log

# %% [prediction] lab06.colliding
# Billing subscribes to `Aa`. An order arrives with the tag `BB`, which has the same code. What happens to it?
#
# - delivered: billing's listener gets it; for RocketMQ the two tags are one
#   > That would be true if there were only the code. But the message carries its tag as text, and the client reads it.
# - broker: the broker leaves it where it is, because `BB` is not `Aa` {lab06.broker_reads_text}
#   > The broker reads only the number in the queue entry. To read the text it would have to fetch every message from
#   > the log, which is the work that the number saves.
# - client: the broker sends it, and billing's client drops it before the listener is called
#   = The broker compares numbers, the client compares texts.
# note: The two filters belong together: a coarse and fast one at the broker, an exact one in the client.

# %%
lab = play(lambda lab: one_member(lab, "Aa", "Aa", "BB", "Cc"), seed=7, client=no_trace)
show_fates(lab, "order-service")

# %%
fates = {fate.tag: fate.words for fate in show_fates(lab, "order-service").fates}
where = {"✓ billing": "delivered", "✕ broker": "broker", "✕ client": "client"}
reveal("lab06.colliding", where[fates["BB"]])

# %% [markdown]
# This is the entry of the `BB` order. The broker's filter reads only its last eight bytes:

# %%
lab.store().queue("orders", 0).hexdump(1)

# %% [answer] lab06.in_vain
# ### Your turn: sent for nothing
#
# Billing wants `paid` now. Change `OTHER` to a tag (letters only) that travels to billing's client for nothing, and run
# the cell. How many orders did the broker send only for the client to drop them?
#
# wrong all: That is every order of the topic. The `paid` ones were not dropped.
# wrong delivered: Those are the `paid` orders, which arrived.
# wrong: Count the boxes that say *✕ client*.
# note: Nothing shows them: they cost the network, and no listener gets them. Among tags that developers choose such a
#   pair is rare. Do not make a tag of what a customer types into a form.

# %% tags=["parameter"]
OTHER = "shipped"

vain = play(lambda lab: one_member(lab, "paid", "paid", OTHER), seed=7, client=no_trace)
show_fates(vain, "order-service")

# %%
### BEGIN SOLUTION
vain = play(
    lambda lab: one_member(lab, "paid", "paid", "qBid"), seed=7, client=no_trace
)
answer("lab06.in_vain", 2, vain)
### STARTER
# answer("lab06.in_vain", ..., vain)
### END SOLUTION

# %% [exercise] lab06.collide
# ### Exercise 1: a tag that collides
#
# Java's code is computed letter by letter:
#
# `code = 31 * code + ord(letter)`
#
# So a letter counts 31 times as much as the letter after it. `collide(tag)` returns another tag of the same length with
# the same code, letters only (a to z, A to Z). It is enough to change two neighbours. The check uses only tags that
# have such a pair (`zz`, for one, has none). `java_hash` is the function above.
#
# hint: Raise one letter by 1. The code is then larger by 31 times what the next letter counts. What must the next
#   letter lose?
# hint: `chr(ord(tag[at]) + 1)` and `chr(ord(tag[at + 1]) - 31)` are the new pair. The other way, -1 and +31, also
#   works. Not every pair gives two letters: try all positions, `for at in range(len(tag) - 1)`.
# hint: For each position and each step in (1, -1): pair = chr(ord(tag[at]) + step) + chr(ord(tag[at + 1]) - 31 * step);
#   if `pair.isascii() and pair.isalpha()`, return `tag[:at] + pair + tag[at + 2:]`.
# note: This is `String.hashCode`, kept by the broker in `MessageExtBrokerInner.tagsString2tagsCode`; the exact
#   comparison is in the client's `PullAPIWrapper.processPullResult`. At work: a tag is one of a few words that you
#   chose. Put ids of customers into a key or a property.


# %%
# exercise: lab06.collide
def collide(tag):
    """Another tag of the same length, letters only, with the same java_hash."""
    ### BEGIN SOLUTION
    for at in range(len(tag) - 1):
        for step in (1, -1):
            pair = chr(ord(tag[at]) + step) + chr(ord(tag[at + 1]) - 31 * step)
            if pair.isascii() and pair.isalpha():
                return tag[:at] + pair + tag[at + 2 :]
    ### END SOLUTION


# %%
check("lab06.collide")

# %% [markdown]
# ## What a pull carries
#
# Where does the broker learn what billing wants?

# %% [prediction] lab06.pull_carries
# Billing subscribes to `paid`, with default settings. What does its pull say about the tag?
#
# - paid: the text `paid`
#   > Only if `postSubscriptionWhenPull` is set, which it is not. Pulls of a lite pull consumer do carry it.
# - code: the code 3433164
#   > The code is in the heartbeat, together with the text. The pull has neither.
# - version: nothing, only the version of its subscription
#   = A number of milliseconds: when billing made its subscription. The rest is known from the heartbeat.
# note: The subscription goes to the broker in a heartbeat (心跳), and the broker keeps it for the group. Remember that.


# %%
def pull_of(consumer_type, **settings):
    def story(lab):
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        if consumer_type == "push":
            member(lab, "billing", "paid", **settings)
        else:
            lite = lab.lite_pull_consumer("order-service", **settings)
            lite.subscribe("orders", "paid")
            lite.start()
            lab.run_for("5s")

    lab = play(story, seed=7, client=no_trace)
    frames = [step.about for step in lab.journal.of("frame") if step.about is not None]
    pulls = [frame.ext_fields for frame in frames if "sysFlag" in frame.ext_fields]
    return next(fields for fields in pulls if fields.get("topic") == "orders")


# %%
names = ["topic", "queueId", "queueOffset", "sysFlag", "subscription", "subVersion"]
kinds = {
    "push": pull_of("push"),
    "push, post_subscription_when_pull": pull_of(
        "push", post_subscription_when_pull=True
    ),
    "lite pull": pull_of("lite pull"),
}
Table(
    [
        {"consumer": kind} | {name: fields.get(name) for name in names}
        for kind, fields in kinds.items()
    ]
)

# %%
carries = "paid" if "subscription" in kinds["push"] else "version"
reveal("lab06.pull_carries", carries)

# %% [markdown]
# The 4 in `sysFlag` (6 is 4 + 2, and a lite pull's 22 is 16 + 4 + 2) says that a text is in the request. Without it the
# broker uses the text of the last heartbeats. Here are billing's first heartbeats, and its pulls, which the broker
# holds (the bars):

# %%
lab = play(lambda lab: one_member(lab, "paid"), seed=7, client=no_trace)
beats = [step.step for step in lab.journal if step.of("subscription.changed")]
shown = ("HEART_BEAT", "PULL_MESSAGE")
lab.space_time(beats[0], beats[0] + 30, only=shown)

# %% [markdown]
# ## One group, two tags
#
# Now the incident. Four queues; billing joins, then shipping. Each queue gets one `paid` and one `shipped` order. First
# with `post_subscription_when_pull=True`: every pull carries its own text.


# %% tags=["parameter"]
def one_group(
    lab, billing="paid", shipping="shipped", tags=("paid", "shipped"), **more
):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    member(lab, "billing", billing, **more)
    member(lab, "shipping", shipping, **more)
    lab.run_for("10s")
    send_orders(lab, *tags)


# %% [prediction] lab06.popular
# The text is in the pull. Of eight orders, how many does neither member get?
#
# - 0: none; for each order there is a member that wants it
#   > The group as a whole wants it, but only one member reads a queue. An order in the other member's queue is never
#   > pulled by the member that wants it.
# - 4: four; each member gets its own tag of its own queues
#   = Billing reads two queues and gets their `paid` orders. The `shipped` ones in them are passed over, for the whole
#   = group.
# - 2: two
#   > Count by queues: billing's two queues hold two `shipped` orders, shipping's two hold two `paid` ones.
# note: This is the picture that blogs show: half is lost.
# later: -

# %%
lab = play(
    lambda lab: one_group(lab, post_subscription_when_pull=True),
    seed=7,
    client=no_trace,
)
show_fates(lab, "order-service")


# %%
def nobody_got(lab):
    fates = show_fates(lab, "order-service").fates
    return [fate for fate in fates if fate.status != "CONSUME_SUCCESS"]


reveal("lab06.popular", len(nobody_got(lab)))

# %% [markdown]
# But `post_subscription_when_pull` is *off* by default:

# %% [prediction] lab06.default
# Default settings. Shipping subscribed last. What does billing get?
#
# - own: the `paid` orders of its queues, as before {lab06.popular_picture}
#   > That needs a filter of billing's own at the broker. The pull does not carry one, and the broker has one
#   > subscription for the whole group.
# - both: all orders of its queues; the broker adds the members' tags up {lab06.tags_add_up}
#   > The broker keeps one expression per group and topic, that of the highest version. It adds nothing up.
# - nothing: nothing at all
#   = The broker filters billing's pulls with `shipped`, and billing's client drops what arrives.
# note: The broker drops billing's tag, and billing's client drops the other one. Between the two filters nothing is
#   left.
# later: Two members of one group subscribe to different tags with default settings, billing to `paid`, then shipping
#   to `shipped`. What does billing get?

# %%
lab = play(one_group, seed=7, client=no_trace)
show_fates(lab, "order-service")

# %%
got = Counter(
    fate.tag
    for fate in show_fates(lab, "order-service").fates
    if fate.words == "✓ billing"
)
reveal("lab06.default", "both" if len(got) == 2 else "own" if got else "nothing")

# %% [markdown]
# Six of eight are lost, and billing has done nothing since Monday. Which of the two loses is decided by the **version**
# (`subVersion`): the time, by the member's own clock, at which it made its subscription. It makes a new one whenever
# the queues are divided again. The broker keeps the expression with the highest version. What it got, one after
# another:

# %%
Table(
    {
        "at": f"{(step.now_ms - lab.began_ms) / 1000:.3f} s",
        "heartbeat of": values["client"],
        "the group now wants": values["subscriptions"]["orders"],
    }
    for step, values in lab.journal.changes("subscription.changed")
)

# %% [markdown]
# Shipping joined, and both made a new version within milliseconds. Which one is last is a race of two clocks.

# %% [answer] lab06.widen
# ### Your turn: save billing's own orders
#
# Leave the setting as it is, and leave billing at `paid`. Change `SHIPPING`, so that billing gets the `paid` orders of
# its own queues again. How many of the eight orders does neither member get then?
#
# wrong six: That is the number with `shipped` alone. Billing must get something.
# wrong none: Look at billing's queues: billing itself still drops the `shipped` orders in them.
# wrong: Count the boxes without ✓.
# note: The broker lets through what the newest subscription names, so that one must name everything. Each member drops
#   the rest on its own. So billing's queues still lose what shipping wants. One group, one expression: only that rule
#   has no exception.

# %% tags=["parameter"]
SHIPPING = "shipped"

widened = play(lambda lab: one_group(lab, shipping=SHIPPING), seed=7, client=no_trace)
show_fates(widened, "order-service")

# %%
### BEGIN SOLUTION
widened = play(
    lambda lab: one_group(lab, shipping="paid || shipped"), seed=7, client=no_trace
)
answer("lab06.widen", 2, widened)
### STARTER
# answer("lab06.widen", ..., widened)
### END SOLUTION

# %% [answer] lab06.trap
# ### Your turn: two tags with one code
#
# Each order is a lane: through the broker's filter, through the client's, and then delivered, or not. The triangle at
# its end means that the group's offset has passed it. Leave the setting as it is, give billing the tag `Aa` and
# shipping the tag `BB`, guess what will happen, and press *Play*.
#
# How many of the eight orders does neither member get now?
#
# wrong six: That is the number for `paid` and `shipped`. What does the broker's filter compare?
# wrong none: Each order has a member that wants it, but not every one is in a queue that this member reads.
# wrong: Play it with `Aa` and `BB`, and count the lanes that do not end in delivered.
# note: Four, as in the popular picture, but for another reason: to the broker both tags are one number, so the newest
#   subscription also lets through what the older one wants. The client does the rest.

# %% tags=["explorer"]
board = tag_trap_board(last="shipping")
board

# %%
### BEGIN SOLUTION
board.play(billing="Aa", shipping="BB")
answer("lab06.trap", 4, board)
### STARTER
# answer("lab06.trap", ..., board)
### END SOLUTION

# %% [markdown]
# ### A retry has no tag
#
# All members share the group's retry topic, and each reads it with `*`.


# %% tags=["parameter"]
def fails_once(messages, context):
    first = messages[0].reconsume_times == 0
    return RECONSUME_LATER if first else CONSUME_SUCCESS


def retried(lab, fails_at="shipping"):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    with_text = {"post_subscription_when_pull": True}
    for name, wants in (("billing", "paid"), ("shipping", "shipped")):
        listener = fails_once if name == fails_at else succeeds
        member(lab, name, wants, listener=listener, **with_text)
        lab.run_for("25s")
    send_orders(lab, "paid", "shipped")


# %% [prediction] lab06.retry_tag
# A `shipped` order fails at shipping. Which member's listener gets the retry?
#
# - shipping: shipping's; only shipping subscribed to `shipped`
#   > Shipping subscribed to it in the topic `orders`. The retry is in another topic, which is read with `*`.
# - owner: the listener of the member that reads the retry topic's queue, whatever its tags
#   = The retry topic has one queue per broker, and one member reads it. Here that is billing.
# - nobody: none; the tags differ, so it is filtered out
#   > In the retry topic nothing is filtered out: every member reads it with `*`.
# note: One member reads the retry queue of a broker, whatever its tags. So a listener may get a tag that it never
#   asked for, even when all settings look right.
# later: Two members of one group subscribe to different tags, billing to `paid`, shipping to `shipped`. A `shipped`
#   order fails at shipping. Which member's listener gets the retry?

# %%
lab = play(retried, seed=7, client=no_trace)
tags = {message.msg_id: message.tags for message in lab.store().messages("orders")}
rows = [
    {
        "tag": tags[row.msg_id],
        "read from": row.message_queue.topic,
        "client": row.client,
        "reconsume_times": row.reconsume_times,
        "status": row.status,
    }
    for row in lab.deliveries("order-service", absences=False)
]
Table(rows)

# %%
again = {row["client"] for row in rows if row["reconsume_times"] == 1}
reveal("lab06.retry_tag", "owner" if again == {"billing"} else "shipping")

# %% [answer] lab06.retries_go
# ### Your turn: which member gets billing's retry?
#
# `FAILS_AT` is the member whose orders fail once. Change it to `"billing"` and run the cell. How many retries go to a
# member that did not subscribe to their tag?
#
# wrong all: All of them go to billing, and this time billing wants them.
# wrong: Compare the columns `tag` and `client` of the rows with reconsume_times 1.
# note: None, by luck: billing's client id comes first, so billing reads the retry topic's only queue. With other names
#   it might be shipping.

# %% tags=["parameter"]
FAILS_AT = "shipping"

failing = play(lambda lab: retried(lab, FAILS_AT), seed=7, client=no_trace)
tags = {message.msg_id: message.tags for message in failing.store().messages("orders")}
Table(
    {
        "tag": tags[row.msg_id],
        "client": row.client,
        "reconsume_times": row.reconsume_times,
    }
    for row in failing.deliveries("order-service", absences=False)
)

# %%
### BEGIN SOLUTION
failing = play(lambda lab: retried(lab, "billing"), seed=7, client=no_trace)
answer("lab06.retries_go", 0, failing)
### STARTER
# answer("lab06.retries_go", ..., failing)
### END SOLUTION

# %% [exercise] lab06.who_gets
# ### Exercise 2: which member gets what
#
# Write `who_gets(members, messages, text_in_pull)`. All heartbeats have arrived; ignore retries.
#
# - `members`: name -> `{"tags": ["paid"], "version": 512, "queues": [0, 1]}`; `tags` may be `["*"]`.
# - `messages`: key -> `(queue_id, tag)`.
# - `text_in_pull`: the setting `post_subscription_when_pull`.
#
# Return a tuple of two: a dictionary name -> list of the keys that this member receives, with every member in it; and
# the list of the keys that no member receives. Both are in the order of `messages`. The members' queues do not overlap.
# You may use `java_hash`, but not mqlab's own filters.
#
# hint: Two functions first: does the broker let a tag through for a list of tags (by code), and does a member keep it
#   (by text)? `"*" in tags` means yes, for both.
# hint: With the text in the pull, the broker filters with the member's own tags. Without it, with those of the member
#   with the highest version: `max(members.values(), key=lambda one: one["version"])`.
# hint: For each message and each member: `queue_id in member["queues"] and passes(tag, filter) and keeps(tag,
#   member["tags"])`. What no member has received goes into the second list.
# note: The broker's half is `PullMessageProcessor` and `ConsumerManager.registerConsumer` (the table with one
#   subscription per group and topic), the client's is `PullAPIWrapper.processPullResult`. At work: compare the
#   subscriptions of all members of your groups on Monday. That is exercise 3.


# %%
# exercise: lab06.who_gets
def who_gets(members, messages, text_in_pull):
    """(member -> keys that it receives, keys that nobody receives)."""
    ### BEGIN SOLUTION
    newest = max(members.values(), key=lambda one: one["version"])

    def passes(tag, wanted):
        codes = [java_hash(one) for one in wanted]
        return "*" in wanted or java_hash(tag) in codes

    def keeps(tag, wanted):
        return "*" in wanted or tag in wanted

    received = {name: [] for name in members}
    nobody = []
    for key, (queue_id, tag) in messages.items():
        takers = [
            name
            for name, member in members.items()
            if queue_id in member["queues"]
            and passes(tag, member["tags"] if text_in_pull else newest["tags"])
            and keeps(tag, member["tags"])
        ]
        for name in takers:
            received[name].append(key)
        if not takers:
            nobody.append(key)
    return received, nobody
    ### END SOLUTION


# %%
check("lab06.who_gets")

# %% [markdown]
# Does the world agree with your function? A group with `Aa` and `BB`:


# %%
def group_of(lab):
    """members and messages, as who_gets takes them."""
    members = {}
    for each in lab.admin.examine_consumer_connection_info("order-service").connections:
        info = lab.admin.get_consumer_running_info("order-service", each.client_id)
        wish = next(one for one in info.subscriptions if one.topic == "orders")
        queues = [row.message_queue for row in info.queues]
        members[each.client_id.partition("@")[2]] = {
            "tags": list(wish.tags_set) or ["*"],
            "version": wish.sub_version,
            "queues": [queue.queue_id for queue in queues if queue.topic == "orders"],
        }
    stored = list(lab.store().messages("orders"))
    return members, {one.keys: (one.queue_id, one.tags) for one in stored}


# %% tags=["picture"]
lab = play(
    lambda lab: one_group(lab, "Aa", "BB", ("Aa", "BB")), seed=7, client=no_trace
)
print("your function:", who_gets(*group_of(lab), text_in_pull=False))
show_fates(lab, "order-service")

# %% [markdown]
# ## No alarm rings
#
# On Tuesday an operator looks at three places:

# %% [prediction] lab06.monitor
# The group has lost six of eight orders. Which of the three places shows that something is wrong?
#
# - lag: the lag; what was not consumed is still waiting
#   > An offset passes messages that are filtered out. For RocketMQ these orders are done, so nothing waits.
# - connection: the group's connections, `examine_consumer_connection_info`; they show what the members want
#   > They show the members, and one expression for the group, as if all members wanted that.
# - members: each member's own subscription, `get_consumer_running_info`
#   = Only the members know what they want. The broker has forgotten all but one.
# note: Lag counts entries after the offset. What two filters have dropped is before it.
# later: -

# %%
lab = play(one_group, seed=7, client=no_trace)
columns = ["topic", "queue_id", "broker_offset", "consumer_offset", "lag", "client"]
Table(lab.progress("order-service"), columns=columns)

# %%
lab.admin.examine_consumer_connection_info("order-service")


# %%
def wishes(lab, group="order-service"):
    for each in lab.admin.examine_consumer_connection_info(group).connections:
        info = lab.admin.get_consumer_running_info(group, each.client_id)
        start_ms = int(info.properties["PROP_CONSUMER_START_TIMESTAMP"])
        wish = next(one for one in info.subscriptions if one.topic == "orders")
        yield {
            "client_id": each.client_id,
            "running for (s)": (lab.now_ms - start_ms) // 1000,
            "wants": wish.sub_string,
            "tags_set": wish.tags_set,
            "sub_version": wish.sub_version,
        }


Table(wishes(lab))

# %%
lags = sum(row.lag for row in lab.progress("order-service"))
shown = {row["wants"] for row in wishes(lab)}
reveal("lab06.monitor", "lag" if lags else "members" if len(shown) > 1 else "none")

# %% [markdown]
# `mqadmin consumerStatus` compares the members (`lab.admin.consumer_problems`). But a deployment *makes* them differ
# for a while. Three members are replaced, one every ten seconds, from `paid` to `paid || shipped`:


# %% tags=["parameter"]
def deployment(lab, pause="10s"):
    lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4)
    old = [member(lab, f"billing-{number}", "paid") for number in (1, 2, 3)]
    lab.run_for("3m")
    for number, consumer in enumerate(old, 1):
        consumer.shutdown()
        member(lab, f"billing-{number}-new", "paid || shipped")
        lab.run_for(pause)
        yield (
            f"{number} of 3 replaced",
            len(lab.admin.consumer_problems("order-service")),
        )


# %%
alarms = []
lab = play(lambda lab: alarms.extend(deployment(lab)), seed=7, client=no_trace)
Bars(dict(alarms), title="problems reported during a deployment that goes well")

# %% [markdown]
# False alarms: RocketMQ means to wait until things have settled, but it checks the start of the *first* member only
# (`ConsumerRunningInfo.analyzeSubscription`). If an alarm rings at every deployment, operators turn it off.

# %% [exercise] lab06.detector
# ### Exercise 3: an alarm for subscriptions
#
# `differing(admin, group, now_ms)` is called every 10 seconds. Of `admin`, which is `lab.admin`, you need
# `examine_consumer_connection_info(group)` and `get_consumer_running_info(group, client_id)`; the function `wishes`
# above shows what they return. Return a list of pairs of client ids, one for every two members that differ wrongly, and
# `[]` if all is well.
#
# A difference is **wrong** when *both* members have run for more than two minutes. Report it within three minutes.
# During a deployment of ten members, ten seconds each, report nothing. `paid || shipped` and `shipped||paid` are the
# same subscription.
#
# hint: For each connection: its start (`int(info.properties["PROP_CONSUMER_START_TIMESTAMP"])`) and what it wants, in a
#   form that can be compared: `{one.topic: set(one.tags_set) for one in info.subscriptions}`.
# hint: Leave out the members that are younger than 120,000 ms, and compare every two of the others.
# hint: `itertools.combinations(settled, 2)` gives every two of them once. Return `[(one, other) for one, other in … if
#   wants[one] != wants[other]]`.
# note: RocketMQ's own check is `ConsumerRunningInfo.analyzeSubscription`, which only `mqadmin consumerStatus` calls. At
#   work: run a check like yours every minute, for every group. It needs only the admin client.


# %%
# exercise: lab06.detector
def differing(admin, group, now_ms):
    """Pairs of client ids that differ and have both run for over two minutes."""
    ### BEGIN SOLUTION
    settled = {}
    for member in admin.examine_consumer_connection_info(group).connections:
        info = admin.get_consumer_running_info(group, member.client_id)
        started_ms = int(info.properties["PROP_CONSUMER_START_TIMESTAMP"])
        if now_ms - started_ms > 120_000:
            settled[member.client_id] = {
                one.topic: set(one.tags_set) for one in info.subscriptions
            }
    names = sorted(settled)
    return [
        (one, other)
        for number, one in enumerate(names)
        for other in names[number + 1 :]
        if settled[one] != settled[other]
    ]
    ### END SOLUTION


# %%
check("lab06.detector")

# %% [markdown]
# ## Break it: one group, two topics
#
# A colleague concludes: "Different *tags* are the problem. We take different *topics*." Billing reads `orders`, returns
# reads `refunds`, and they share a group.

# %% [prediction] lab06.topics
# Eight orders and eight refunds are sent, four queues each. How many of the sixteen are consumed within two minutes?
#
# - 16: all; a topic belongs to one member, and the tags are `*`
#   > The group's queues are divided among all its members, including those that do not read the topic.
# - 8: eight
#   = Each topic's queues are divided among both members, and the member that does not want the topic never reads its
#   = half.
# - 0: none; the broker refuses such a group
#   > The broker takes every heartbeat. It refuses pulls for a topic that the last heartbeat did not name, and the
#   > client tries these again a second later.
# note: And it never settles: each member's heartbeat removes the other's topic. That counts as a change, so all divide
#   the queues again.
# later: -


# %% tags=["parameter"]
def two_topics(lab):
    for topic in ("orders", "refunds"):
        lab.create_topic(topic, read_queue_nums=4, write_queue_nums=4)
    for name, topic in (("billing", "orders"), ("returns", "refunds")):
        consumer = lab.push_consumer("order-service", name=name)
        consumer.subscribe(topic, "*")
        consumer.on_messages(succeeds)
        consumer.start()
        lab.run_for("5s")
    shop = lab.producer("shop")
    for number in range(16):
        shop.send(Message("orders" if number % 2 else "refunds", b"a book"))
    lab.run_for("2m")


# %%
lab = play(two_topics, seed=7, client=no_trace)
failed = Counter(
    f"pulls refused, {values['error'].partition('  ')[0].lower()}"
    for _, values in lab.journal.changes("pull.failed")
)
Bars(
    {
        "changes of the group's topics": len(
            lab.journal.changes("subscription.changed")
        ),
        "rounds of dividing queues": len(lab.journal.changes("rebalance.done")),
        **failed,
    },
    title="two minutes of one group with two topics",
)

# %%
statuses = Counter(row.status for row in lab.deliveries("order-service"))
reveal("lab06.topics", statuses["CONSUME_SUCCESS"])

# %%
columns = ["topic", "queue_id", "broker_offset", "consumer_offset", "lag", "client"]
Table(lab.progress("order-service"), columns=columns)

# %% [markdown] tags=["reading"]
# ## What this does not prove
#
# - **Which member wins** is decided here by a simulated clock. On real machines it changes with every deployment, and
#   with every clock that is a little fast. Do not rely on it.
# - **The race of two heartbeats** is shown once, not measured.
# - **Lag 0 proves nothing**, here or anywhere, as soon as something is filtered.
# - **With POP**, RocketMQ's other way to consume ([lab 15a](15a-leased-not-owned.ipynb)), the broker divides the
#   queues. These worlds pull.

# %% [markdown] tags=["reading"]
# ## How RocketMQ does it
#
# | what | where in RocketMQ |
# |---|---|
# | a tag becomes a number | `MessageExtBrokerInner.tagsString2tagsCode`, `CommitLogDispatcherBuildConsumeQueue` |
# | the expression | `FilterAPI.buildSubscriptionData`, `SubscriptionData` |
# | the broker's filter | `ExpressionMessageFilter.isMatchedByConsumeQueue` |
# | the client's filter | `PullAPIWrapper.processPullResult` |
# | one subscription per group and topic | `ConsumerGroupInfo.updateSubscription` |
# | the text in the pull | `PullSysFlag`, `ClientConfig.postSubscriptionWhenPull` (false) |
# | a newer version after every division | `RebalancePushImpl.messageQueueChanged` |
# | a member about itself | `ConsumerRunningInfo`, `ConsumerManageProcessor` at the broker |
#
# What you may read elsewhere, and what is true:
#
# | you may read | it is |
# |---|---|
# | each member gets its own tag from its own queues | only with `postSubscriptionWhenPull=true`; by default the older subscription gets nothing |
# | the pull request carries the tag | a version; the text only when that setting is on, or from a lite pull consumer |
# | the last heartbeat wins | the highest `subVersion` wins, which is a client's clock |
# | the tag filter compares tags | the broker compares codes, the client texts |
# | `mqadmin consumerStatus` waits two minutes before it compares | after the start of the first member only |

# %% [markdown] tags=["reading"]
# ## Reflect

# %% [reflection] lab06.meeting
# **1.** The five sentences of the meeting: for each, what would you show your colleagues?
#
# answer: *The broker compares tags*: the eight bytes of the entry, and the order `BB` that reached a client that wants
#   `Aa`. *Says in every pull*: the pull's fields, without a `subscription`. *Exactly half*: the picture with the
#   default setting, six of eight. *No lag, nothing lost*: the same run's lag of 0. *consumerStatus would have warned
#   us*: its false alarms during a deployment; and it runs only when an operator calls it.

# %% [reflection] lab06.turn_it_on
# **2.** A colleague proposes: "We set `postSubscriptionWhenPull=true` everywhere, then two tags in one group are fine."
# Are they?
#
# answer: No. Each member then gets its own tag from its own queues, and half of everything is passed over by the member
#   that does not want it. The setting makes the loss predictable and smaller, and it still shows no lag. Two services
#   that want different things are two groups: a group costs a name and some offsets.

# %% [markdown] tags=["reading"]
# ## Next
#
# In the [second part](06b-what-a-filter-passes-over.ipynb) you see what filters do to the offset, to the broker's work
# and to the waiting time, and you change a running group's tags without losing an order. All labs:
# [index](index.ipynb).
