"""What a broker remembers: topics, groups, members, offsets, filters, locks and counters, one table per file.

A table knows the clock, its settings and nothing else of the broker. Tables that are kept on the disk have
``encode`` and ``decode``, and a ConfigSaver follows their changes.
"""
