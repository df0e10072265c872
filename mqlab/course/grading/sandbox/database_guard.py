"""What an answer may do to a Lab's database: SQL on that one file, within bounds, and nothing with other files.

Like the rights of a database user, but there are no users and passwords. Answers that keep their results in a table,
as those of lab 07 do, use it.

    connection.execute("INSERT ..")       yes, waiting for locks as the world does
    ATTACH, VACUUM INTO, load_extension   no: they reach other files
    PRAGMA                                those that read, and those that change this connection only
    a query without end                   interrupted

The database stays on the judge's side: its locks, its waiting and its rollback at a kill are the simulation's own, and
what is judged at the end is a file that no answer can open.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator
from typing import Any

PRAGMAS = {
    "foreign_keys",
    "foreign_key_list",
    "table_info",
    "table_list",
    "table_xinfo",
    "index_list",
    "index_info",
    "user_version",
    "journal_mode",
    "synchronous",
    "busy_timeout",
    "integrity_check",
    "quick_check",
}
JOURNAL_MODES = {"DELETE", "WAL", "TRUNCATE", "PERSIST", "MEMORY"}
REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
MAX_STEPS = 2_000
STEP_INSTRUCTIONS = 10_000
MAX_VALUE_BYTES = 1 << 20
MAX_PAGES = 4_096


READ_AHEAD_ROWS = 1_000


class Cursor:
    """A cursor that has read its first rows ahead.

    The judge keeps what an answer was given, and a query that is not read to its end would hold its lock for ever: of a
    cursor without a reference, Python frees it at once, and so it is in a notebook.
    """

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self._rows: deque[Any] = deque(cursor.fetchmany(READ_AHEAD_ROWS))

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    @property
    def description(self) -> Any:
        return self._cursor.description

    def execute(self, *args: Any) -> Cursor:
        """As sqlite3's."""
        return self._again(self._cursor.execute(*args))

    def executemany(self, *args: Any) -> Cursor:
        """As sqlite3's."""
        return self._again(self._cursor.executemany(*args))

    def fetchone(self) -> Any:
        """The next row, or None."""
        return self._rows.popleft() if self._rows else self._cursor.fetchone()

    def fetchmany(self, size: int = 1) -> list[Any]:
        """So many rows at most."""
        rows = [self._rows.popleft() for _ in range(min(size, len(self._rows)))]
        return rows + self._cursor.fetchmany(size - len(rows)) if len(rows) < size else rows

    def fetchall(self) -> list[Any]:
        """All rows that are left."""
        rows, self._rows = [*self._rows, *self._cursor.fetchall()], deque()
        return rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())

    def close(self) -> None:
        """As sqlite3's."""
        self._rows.clear()
        self._cursor.close()

    def _again(self, cursor: sqlite3.Cursor) -> Cursor:
        self._rows = deque(cursor.fetchmany(READ_AHEAD_ROWS))
        return self


def guarded(connection: sqlite3.Connection) -> sqlite3.Connection:
    """The same connection, restricted to what an answer may do."""
    connection.execute(f"PRAGMA max_page_count = {MAX_PAGES}")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    connection.set_authorizer(_may)
    steps = 0

    def too_long() -> bool:
        nonlocal steps
        steps += 1
        return steps > MAX_STEPS

    # SQLite calls it every so many instructions, and interrupts the query when it returns True.
    connection.set_progress_handler(too_long, STEP_INSTRUCTIONS)
    return connection


def _may(action: int, first: Any, second: Any, database: Any, trigger: Any) -> int:
    if action in REFUSED:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA:
        name, value = str(first).lower(), second
        if name not in PRAGMAS or (name == "journal_mode" and value and str(value).upper() not in JOURNAL_MODES):
            return sqlite3.SQLITE_DENY
    # Both functions can make SQLite run code from outside.
    if action == sqlite3.SQLITE_FUNCTION and str(second).lower() in ("load_extension", "fts3_tokenizer"):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
