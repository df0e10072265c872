"""Two listeners that charge for an order: one may charge twice when its process dies, the other never."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab import CONSUME_SUCCESS, Lab
from mqlab.lab.world.state import CrashPoint
from tests.lab.scenarios.stories import QUIET, one_order

__all__ = ["QUIET", "VARIANTS", "charges", "lines_only"]


def charging(listener_of: Callable[[Lab], Any]) -> Callable[[Lab], None]:
    """A story: billing charges for one order."""
    return one_order(listener_of, "create table charges (key text)", "create table done (key text primary key)")


def two_commits(lab: Lab) -> Any:
    def listener(messages: Any, context: Any) -> str:
        connection, key = lab.database("billing").connect(), messages[0].keys
        if not connection.execute("select 1 from done where key = ?", (key,)).fetchone():
            connection.execute("insert into charges values (?)", (key,))
            connection.commit()
            connection.execute("insert into done values (?)", (key,))
            connection.commit()
        return CONSUME_SUCCESS

    return listener


def one_commit(lab: Lab) -> Any:
    def listener(messages: Any, context: Any) -> str:
        connection, key = lab.database("billing").connect(), messages[0].keys
        if connection.execute("insert or ignore into done values (?)", (key,)).rowcount:
            connection.execute("insert into charges values (?)", (key,))
        connection.commit()
        return CONSUME_SUCCESS

    return listener


def charges(lab: Lab) -> str:
    """How a run ended."""
    ((count,),) = lab.database("billing").connect().execute("select count(*) from charges").fetchall()
    return f"charged {count} times"


def lines_only(point: CrashPoint) -> bool:
    """The points inside the listener."""
    return point.kind == "line"


VARIANTS = {"two commits": charging(two_commits), "one commit": charging(one_commit)}
