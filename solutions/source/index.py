# %% [markdown]
# # mqlab: the labs
#
# How does a message broker work inside? Here is one to take apart: Apache RocketMQ (消息队列) small enough to read, with
# the same files on disk, the same frames on the wire and the same decisions, running inside a notebook. You can stop it,
# step through it, play it again and break it.
#
# | lab | what it opens | you need | minutes |
# |---|---|---|---|
# | [00 A message's day](00-a-messages-day.ipynb) | send, store, pull, consume, acknowledge; two groups read one topic; a crash | Python | 60 |
# | [01 What the broker writes](01-what-the-broker-writes.ipynb) | commit log, queue, index, checkpoint byte by byte; flush, power cut, recovery, retention; a real broker's files | lab 00 | 120 |
# | [07 Failure takes time](07-failure-takes-time.ipynb) | retries and their eighteen levels, dead letters, orderly failure, a listener that hangs, an order that kills its process | lab 00 | 180 |
# | [10 Spark reads the broker](10-spark-reads-the-broker.ipynb) | a cluster's logs as one table: hot queues and keys, what a tag costs, how often failures came back, plans, skew, Parquet | lab 00, some Spark | 120 |
#
# Begin with lab 00. Beside the labs: the [glossary](glossary.ipynb) (术语表) has every term in English and Chinese with
# RocketMQ's own name for it, and [What is not modelled](not-modelled.ipynb) says what of RocketMQ is not here, and why.

# %% [markdown]
# ## How a lab works
#
# - **Shift+Enter** runs a cell and goes on to the next. Work from the top; every lab also runs from top to bottom as it
#   is (*Run > Run All Cells*).
# - `predict(...)` asks before it shows. Replace the `...` by your answer; it is locked, so that you can compare.
# - A cell that begins with `# exercise:` is yours. Write the function, run the cell, then the `check(...)` under it. It
#   says "not started", or which rule your answer breaks and where that shows first, or that it passes.
# - `hint("lab00.find")` gives the first of three hints, and when run again the next.
# - A run is a **story** with a seed: the same story and seed give the same world again, to the byte. So try things: whatever
#   you do to a world, run the cell with its `play` again, and it is as it was.
# - A cell does not end? *Kernel > Interrupt Kernel* stops it, and a `check(...)` then names the line of yours that it was in.
#   (A listener in a loop without end takes two interrupts.)
# - To begin again from nothing: *Kernel > Restart Kernel and Run All Cells*.
#
# Something does not work? Open a terminal (*File > New > Terminal*) and run `mqlab doctor`: it says what is there, what is
# missing, and what each missing part switches off.
