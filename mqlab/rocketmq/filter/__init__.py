"""Which messages a subscription selects: tags, and SQL92 expressions over properties.

Mirrors: the filter module of RocketMQ and FilterAPI.
Left out: class filters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.rocketmq.filter.sql import Expression


def compile_sql(text: str) -> Expression:
    """Compile an SQL92 expression. Raises FilterError. The parser is imported here: few groups filter with SQL.

    >>> compile_sql("price > 10").evaluate({"price": "12"})
    True
    """
    from mqlab.rocketmq.filter import sql

    return sql.compile(text)
