"""Which messages a subscription wants: tags, and SQL92 expressions over properties.

Mirrors: the filter module of RocketMQ and FilterAPI.
Left out: class filters.
"""
