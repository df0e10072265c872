"""The boards of commit orders: what each way leaves behind when the shop or the broker dies is found by playing it."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from mqlab import COMMIT_MESSAGE, ROLLBACK_MESSAGE, Message
from mqlab.course.widgets.boards.crash_matrix.commit_orders import commit_matrix
from mqlab.errors import UsageError


def database_then_send(shop: Any, database: Any, order: str) -> None:
    with database.connect() as rows:
        rows.execute("INSERT INTO money VALUES (?)", (order,))
    shop.send(Message("orders", b"a book", keys=order))


class DatabaseFirst:
    def __init__(self, database: Any) -> None:
        self.database = database

    def execute_local_transaction(self, message: Any, arg: Any) -> str:
        with self.database.connect() as rows:
            rows.execute("INSERT INTO money VALUES (?)", (message.keys,))
        return COMMIT_MESSAGE

    def check_local_transaction(self, message: Any) -> str:
        with self.database.connect() as rows:
            known = rows.execute("SELECT 1 FROM money WHERE order_key = ?", (message.keys,)).fetchone()
        return COMMIT_MESSAGE if known else ROLLBACK_MESSAGE


class CommitFirst(DatabaseFirst):
    def execute_local_transaction(self, message: Any, arg: Any) -> str:
        return COMMIT_MESSAGE

    def afterwards(self, message: Any) -> None:
        with self.database.connect() as rows:
            rows.execute("INSERT INTO money VALUES (?)", (message.keys,))


@functools.cache
def ends(way: Any, dies: str) -> dict[str, int]:
    table = commit_matrix({"way": way}, dies=dies).table()
    return {row.outcome: row.points for row in table}


def test_two_lines_lose_the_message_when_the_shop_dies_between_them() -> None:
    assert set(ends(database_then_send, "shop-1")) == {"neither", "money, no message", "both"}


@pytest.mark.parametrize("dies", ["shop-1", "broker-a"])
def test_database_then_commit_agrees_wherever_one_of_them_dies(dies: str) -> None:
    found = ends(DatabaseFirst, dies)
    assert set(found) <= {"neither", "both", "both, the message twice"} and {"neither", "both"} <= set(found)
    assert ("both, the message twice" in found) == (dies == "broker-a")


def test_commit_then_database_sends_a_message_without_money() -> None:
    assert "message, no money" in ends(CommitFirst, "shop-1")


@pytest.mark.parametrize("dies", ["shop-1", "broker-a"])
def test_each_outcome_has_a_sign_of_its_own(dies: str) -> None:
    matrix = commit_matrix({"database first": DatabaseFirst, "COMMIT first": CommitFirst}, dies=dies)
    signs = matrix.symbols()
    assert len(set(signs.values())) == len(signs) >= 3
    good = {sign for outcome, sign in signs.items() if outcome in ("neither", "both", "both, the message twice")}
    assert "✓" in good and good.isdisjoint("①②③④⑤⑥⑦⑧⑨")


def test_nothing_else_can_die() -> None:
    with pytest.raises(UsageError, match="dies names the shop or the broker"):
        commit_matrix({"way": database_then_send}, dies="shop")
