"""A store directory to look at: its files are read and never changed, whether a store has them open or not.

RocketMQ has no such tool. Lab 01 looks at stores with it.

    StoreInspector   messages, queues, index, checkpoint, tree, map, hexdumps, problems

What reads the files is mqlab.rocketmq.store.reading; this package shows what was read.
"""

from mqlab.lab.inspector.inspector import StoreInspector

__all__ = ["StoreInspector"]
