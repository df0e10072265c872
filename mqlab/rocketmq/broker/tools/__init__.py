"""What mqadmin and dashboards ask a broker: statistics, offsets, topics, connected clients, settings, the store.

Producers and consumers ask some of it too (min and max offsets, one message by its id).
"""
