"""Lab 16: manifest, the exercises' form (form), their days (orders, store, pulls, groups, retries, handlers).

An answer is one cell that defines the class; for lab16.handlers it defines six functions and the table under them:

    # exercise: lab16.store          # exercise: lab16.handlers
    class MyStore: …                 def send(broker, request): …
                                     HANDLERS = {310: send, 11: pull, 36: send_back, 14: committed, 15: commit, 38: …}

In a starter each method's body is ``...``; next to methods that are given, it raises NotImplementedError. The lab's own
cells above it import what an answer uses: copied, placed, stored_ms, tag_of, unit_of of mqlab.lab.parts; record of
mqlab.rocketmq.wire (decode, check, blank, BLANK_SIZE); tags_code of mqlab.rocketmq.wire.java_hash; json and struct.
One call of the disk reads or writes at most 1 << 19 bytes (Disk's AT_ONCE): a log file that is read as a whole has that
size or less. Right answers of all five: tests/lab/parts/brokers/rocketmq_shape.py.
"""

from mqlab.course.cases.lab16.manifest import MANIFEST

__all__ = ["MANIFEST"]
