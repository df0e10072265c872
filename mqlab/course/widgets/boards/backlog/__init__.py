"""The backlog tank: traffic that a group cannot keep up with, and which of its limits is the one that binds.

Lab 09 asks with it what more instances, threads, cores, queues or slots change, and how long catching up takes.

    runs.py      the story in a Lab, played with the learner's settings, and what happened
    limits.py    how busy each limit was while messages waited, and which one binds
    recorded.py  the runs of a page without a kernel, kept in mqlab/course/widgets/keep_runs
    tank.py      the explorer
"""
