"""Which messages a subscription selects: tags, and SQL92 expressions over properties.

Mirrors: the filter module of RocketMQ and FilterAPI.
Left out: class filters.
"""
