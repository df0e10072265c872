"""What a board of lags is made of: the messages of stores, and how far groups say they are.

Lab 12 uses it.

    stores ── rocketmq ──▶ messages                                        ┐
    config/consumerOffset.json of each ──▶ committed, one row per queue    ┴─▶ lag_now(messages, committed) ─▶ rows

Mirrors: what mqadmin consumerProgress asks a broker for, read from its files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqlab.data.arrow.stores import find_stores
from mqlab.rocketmq.store import config_texts

OFFSETS_FILE = "consumerOffset.json"
COMMITTED = "broker_name STRING, group_name STRING, topic STRING, queue_id INT, committed BIGINT"


def offsets_in(path: str | Path) -> list[dict[str, Any]]:
    """The committed offsets of the stores under a path, as their files have them: one row per group and queue."""
    rows = []
    for store in find_stores((str(path),)):
        text = Path(store.directory, "config", OFFSETS_FILE).read_text("utf-8")
        for key, queues in sorted(config_texts.decode(OFFSETS_FILE, text)["offsetTable"].items()):
            topic, _, group = key.rpartition("@")
            for queue_id, committed in sorted(queues.items()):
                rows.append(
                    {
                        "broker_name": store.broker_name,
                        "group_name": group,
                        "topic": topic,
                        "queue_id": int(queue_id),
                        "committed": committed,
                    }
                )
    return rows


def rows_of_board(
    function: Callable[..., Any], path: str | Path, offsets: str | Path | None = None
) -> list[dict[str, Any]]:
    """The rows of ``function(messages, committed)`` for the stores under a path, as they are now.

    ``offsets``: stores whose files of offsets are read instead, such as a copy that was made a moment later.
    Raises UsageError when the function returns anything but a DataFrame.
    """
    from mqlab.data.spark import rows_of, session

    committed = offsets_in(path if offsets is None else offsets)
    return rows_of(function, path, session().createDataFrame(committed, COMMITTED))
