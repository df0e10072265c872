# %% [markdown]
# # mqlab: the labs
#
# Take a message broker apart: Apache RocketMQ (消息队列) in plain Python, with the same files on disk, the same frames on
# the wire and the same decisions. You can stop it in a notebook, step through it, play it again and break it.
#
# | path | time | done | pages | afterwards you can |
# |---|---|---|---|---|
# {paths}
#
# Choose a path and take its pages in order. In a terminal, `mqlab lab --path evening` opens its first page. The times
# are for a learner who works alone and does every exercise. `mqlab lab` and `mqlab progress` draw what is done.

# %% [markdown]
# ## How a lab works
#
# - **Shift+Enter** runs a cell and selects the next. Work from the top. Every lab also runs from top to bottom as it is
#   (*Run > Run All Cells*).
# - `predict(...)` asks you before the lab shows what happens. Run the cell and click your answer, or write it into the
#   cell, as in `predict("lab00.audit", "3")`. You may change it until the run has shown what happens.
# - A cell that begins with `# exercise:` is yours. Write the function, run the cell, then the `check(...)` under it. It
#   says "not started", or that your answer passes, or which rule it breaks and where this shows first.
# - `hint("lab00.find")` gives the first of three hints; run it again for the next one.
# - After a failed check, `show_me("lab00.find")` shows the call that went wrong, with expected and found side by side.
#   After a passed one, `check("lab00.find", more=20)` tries twenty worlds that you have not seen.
# - *Your turn* cells have something to change: a time, a fault, a seed. Then `answer(...)` checks what you say about
#   your own run.
# - A run is a **story** with a seed: the same story and seed give the same world again, to the byte. So try things out.
#   Whatever you do to a world, run the cell with its `play` again, and the world is as it was.
# - If a cell does not end, *Kernel > Interrupt Kernel* stops it, and a `check(...)` then names the line of your code
#   that was running. (A listener in an endless loop needs two interrupts.)
# - To begin again from the start: *Kernel > Restart Kernel and Run All Cells*.
#
# The notebooks that you have open are your own copies, in the folder `my-labs`; the originals in `labs` stay as they
# are. In a terminal (*File > New > Terminal*), `mqlab progress` shows what you have predicted, tried and checked so
# far.
#
# If something does not work, open a terminal (*File > New > Terminal*) and run `mqlab doctor`. It says what is there,
# what is missing, and what does not work without each missing part.

# %% [markdown]
# ## All parts
#
# | lab | what it opens | you need | time |
# |---|---|---|---|
# | [00 Message flow: a message's day](00-a-messages-day.ipynb) | send, store, pull, consume, acknowledge; two groups read one topic; a crash | Python | {minutes:00} |
# | [01a Commit log: what the broker writes](01a-what-the-broker-writes.ipynb) | queue and commit log, byte by byte; what is written when | lab 00 | {minutes:01a} |
# | [01b Offsets and index: finding a message](01b-finding-a-message.ipynb) | offsets, files that roll, the index and its chains | lab 01a | {minutes:01b} |
# | [01c Durability: what survives](01c-what-survives.ipynb) | flush, power cut, torn pages, recovery, retention; a real broker's files | lab 01a | {minutes:01c} |
# | [02a Routes: who knows what](02a-who-knows-what.ipynb) | name servers, routes, a broker that crashes, falls silent or joins; topics that no operator created | lab 00 | {minutes:02a} |
# | [02b Sending: what a send costs](02b-what-a-send-costs.ipynb) | which queue, four ways to send, what is retried, what an answer means, an outbox | lab 02a | {minutes:02b} |
# | [02c Queue numbers: sixteen queues, then eight](02c-sixteen-queues-then-eight.ipynb) | one queue per order, permissions, queues taken away under traffic, a real server | lab 02a | {minutes:02c} |
# | [03a Queue allocation: who reads which queue](03a-who-reads-which-queue.ipynb) | AVG, AVG_BY_CIRCLE, rooms; who does too much, and why | lab 00 | {minutes:03a} |
# | [03b Rebalance: what a change moves](03b-what-a-change-moves.ipynb) | the hash ring and its virtual nodes, fairness and churn, a strategy of your own in real consumers | lab 03a | {minutes:03b} |
# | [03c Handover: when queues move](03c-when-queues-move.ipynb) | who learns of a join or a crash, queues with two readers or none, one client id twice | lab 03a | {minutes:03c} |
# | [04a Offsets: how far have we read](04a-how-far-have-we-read.ipynb) | the offset of a group and the three places that remember it; what a crash costs | lab 00 | {minutes:04a} |
# | [04b Resets: beginning again](04b-beginning-again.ipynb) | resets, where a group begins, a consumer that charges once, a group that is stuck | lab 04a | {minutes:04b} |
# | [05a Concurrency: many at a time](05a-many-at-a-time.ipynb) | a pool of threads, a part of a batch, work in parallel with a listener | lab 00 | {minutes:05a} |
# | [05b Order: one at a time](05b-one-at-a-time.ipynb) | order by key, the lock of a queue, a head that never succeeds, commits by hand, lanes | lab 05a | {minutes:05b} |
# | [06a Tags: two tags in one group](06a-two-tags-in-one-group.ipynb) | tags as numbers, two filters, members that disagree, how to notice it | lab 00 | {minutes:06a} |
# | [06b Filters: what a filter passes over](06b-what-a-filter-passes-over.ipynb) | scans, held pulls, lag that is not real, SQL and unknown, a change of tags under traffic | lab 06a | {minutes:06b} |
# | [07a Retries: failure takes time](07a-failure-takes-time.ipynb) | retries and their eighteen levels, where a message waits, dead letters and the way back | lab 00 | {minutes:07a} |
# | [07b Giving up: stop in time](07b-stop-in-time.ipynb) | a listener that gives up, orderly failure, a call that hangs, an order that kills its process | lab 07a | {minutes:07b} |
# | [08a Delayed messages: later](08a-later.ipynb) | where a delayed message waits, crashes and tables of levels, any delay out of eighteen, cancelling what is unpaid | lab 04b | {minutes:08a} |
# | [08b Transactions: or not at all](08b-or-not-at-all.ipynb) | half messages, when the broker asks which process, every crash of shop and broker, compared with an outbox | lab 08a | {minutes:08b} |
# | [08c Timed messages: at any second](08c-at-any-second.ipynb) | the timer wheel and its three files, long delays, recall, a wheel that is lost | lab 08a | {minutes:08c} |
# | [09a Capacity: falling behind](09a-falling-behind.ipynb) | threads for two times of a call, instances and queues, when a lag is over, a size for a day | labs 03a and 05a | {minutes:09a} |
# | [09b Overload: what gives way](09b-what-gives-way.ipynb) | one database for all, time limits that make an overload stay, the client's brake, cold reads, slow steps | lab 09a | {minutes:09b} |
# | [10a Spark reads the broker: hot queues and hot keys](10a-spark-reads-the-broker.ipynb) | a cluster's logs as one table; options of a read; the hot queue, the hot key, and what more queues change | lab 00, some Spark | {minutes:10a} |
# | [10b Spark costs: what a query costs](10b-what-a-query-costs.ipynb) | what a tag costs, where rows move, skew, how often failures came back, Parquet and other readers | lab 10a | {minutes:10b} |
# | [11a Message lives: what happened to each message](11a-what-happened-to-each-message.ipynb) | three tickets; the trace of clients, calls that never came back, what was lost although the lag is 0 | labs 10a, 06a and 07a | {minutes:11a} |
# | [11b Delays and duplicates: slow, and again](11b-slow-and-again.ipynb) | when orders were slow, by the minute of storing; one cause for each repeated call; storms of retries | lab 11a | {minutes:11b} |
# | [12a Exactly once: every number twice](12a-every-number-twice.ipynb) | a stream over stores that grow; checkpoints, a sink that is killed before every line, lag in messages and in seconds | labs 10a and 04a | {minutes:12a} |
# | [12b Watermarks: what comes late](12b-what-comes-late.ipynb) | counts of a broker that was cut off; watermarks, what a stream keeps, messages stored twice, calls that never answer | lab 12a | {minutes:12b} |
# | [13a Post-mortem: what went wrong](13a-what-went-wrong.ipynb) | a bad day from its disks alone: whom it harmed, from when to when, which process did it, what only looks like trouble | labs 04b and 07a, some pandas | {minutes:13a} |
# | [13b Repair and alarm: what now](13b-what-now.ipynb) | a repair that is counted, carried out and judged by deliveries; an alarm that rings in time and is quiet on good days | lab 13a | {minutes:13b} |
# | [14 Simulation: find the bug](14-find-the-bug.ipynb) | three clusters with one defect each: seeds, a schedule made short, rules that hold at every step, a cause and its consequences | labs 01, 04 and 07 | {minutes:14} |
# | [15a POP consumption: leased, not owned](15a-leased-not-owned.ipynb) | messages on lease, acks, what lag 0 hides, stuck and joining members, a lease table that survives a crash | labs 04a and 08c | {minutes:15a} |
# | [15b POP redelivery: when it comes back](15b-when-it-comes-back.ipynb) | revival, held pops, how long a lease should be, poison without a dead letter, a killed broker | lab 15a | {minutes:15b} |
# | [16a Your broker: a log and its queues](16a-a-log-and-its-queues.ipynb) | a store of your own: put, dispatch, get, recovery; every crash; RocketMQ reads its files | labs 00 and 01 | {minutes:16a} |
# | [16b Your broker: pull and hold](16b-pull-and-hold.ipynb) | pulls of your own: filter, answer or hold, wake; the boards of lab 06 on them | labs 16a and 06 | {minutes:16b} |
# | [16c Your broker: groups, offsets, retries](16c-groups-offsets-retries.ipynb) | groups and retries of your own: members, offsets, delays, dead letters | labs 16b, 04 and 07 | {minutes:16c} |
# | [16d Your broker: on the wire](16d-on-the-wire.ipynb) | six request codes: unmodified clients send and consume through your broker | lab 16c | {minutes:16d} |
#
# There are three more pages. The [explorers](explorers.ipynb) are a tour of what can be clicked and dragged, without
# exercises. The [glossary](glossary.ipynb) (术语表) has every term in English and Chinese with RocketMQ's own name for it.
# [What is not modelled](not-modelled.ipynb) lists the parts of RocketMQ that are missing here, and why.
