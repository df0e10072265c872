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
from typing import Any

PRAGMAS = {
    "foreign_keys", "foreign_key_list", "table_info", "table_list", "table_xinfo", "index_list", "index_info",
    "user_version", "journal_mode", "synchronous", "busy_timeout", "integrity_check", "quick_check",
}  # fmt: skip
JOURNAL_MODES = {"DELETE", "WAL", "TRUNCATE", "PERSIST", "MEMORY"}
REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
MAX_STEPS = 2_000
STEP_INSTRUCTIONS = 10_000
MAX_VALUE_BYTES = 1 << 20
MAX_PAGES = 4_096


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
