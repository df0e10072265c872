"""The laboratory: worlds of brokers and clients, their drivers and faults, what happened in them, and how it looks.

    world         the Lab of a notebook: nodes, stories, faults, deliveries
    runtime       drivers: time, network, files, workers
    inspector     a store directory to look at
    views         tables, pictures, timelines
    simulation    random faults, judged by promises

It uses mqlab.rocketmq, and draws the answers of its admin verbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqlab.rocketmq.answers import draw_answers_with

if TYPE_CHECKING:
    from mqlab.lab.views.table import Table


def _table_of(rows: Sequence[Any], title: str) -> Table:
    from mqlab.lab.views.table import Table

    return Table(rows, title=title)


draw_answers_with(_table_of)
