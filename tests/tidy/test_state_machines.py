"""docs/state-machines.md holds the state tables as the code has them. ``python -m tests.tidy.test_state_machines``
writes it anew."""

from __future__ import annotations

import importlib
import inspect

import pytest

from mqlab.rocketmq.state_table import IllegalMove, StateTable
from tests.tidy.sources import PACKAGE, ROOT, texts_of

PAGE = ROOT / "docs" / "state-machines.md"
HEAD = """# State machines

These tables are in the code, and the code takes every new state from them: an event that a table does not allow is an
error (`IllegalMove` of [`state_table.py`](../mqlab/rocketmq/state_table.py)). This page is made from the tables by
`python -m tests.tidy.test_state_machines`; a test keeps it equal to them.
"""


def tables() -> list[tuple[str, StateTable]]:
    """Module and table of every StateTable that a module of mqlab makes, by module."""
    found = []
    for module, _, text in texts_of(PACKAGE):
        if "= StateTable(" not in text:
            continue
        loaded = importlib.import_module(module)
        own = [value for name, value in inspect.getmembers(loaded) if isinstance(value, StateTable)]
        found += [(module, table) for table in own if f'"{table.name}"' in text]
    return sorted(found, key=lambda row: (row[0], row[1].name))


def about(module: str) -> str:
    """The first line of a module's docstring."""
    return (importlib.import_module(module).__doc__ or "").partition("\n")[0]


def page() -> str:
    parts = [HEAD]
    for module, table in tables():
        path = module.replace(".", "/") + ".py"
        rows = [f"| {state} | {event} | {target} |" for (state, event), target in table.items()]
        parts.append(
            f"\n## {table.name[0].upper()}{table.name[1:]}\n\n"
            f"{about(module)} The table is in [`{path}`](../{path}).\n\n"
            f"```mermaid\n{table.diagram()}\n```\n\n| state | event | next state |\n|---|---|---|\n"
            + "\n".join(rows)
            + "\n"
        )
    return "".join(parts)


def test_the_page_shows_the_tables_of_the_code() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it anew: python -m tests.tidy.test_state_machines"


def test_there_are_tables() -> None:
    assert len(tables()) >= 2


@pytest.mark.parametrize("table", [pytest.param(table, id=table.name) for _, table in tables()])
def test_every_state_of_a_table_can_be_reached(table: StateTable) -> None:
    reached, before = {table.start}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {target for (state, _), target in table.items() if state in reached}
    assert reached == set(table.states)


def test_an_event_that_is_not_in_the_table_is_an_error() -> None:
    lamp = StateTable("a lamp", "OFF", [("OFF", "switch", "ON"), ("ON", "switch", "OFF"), ("ON", "break", "BROKEN")])
    assert lamp["OFF", "switch"] == "ON"
    with pytest.raises(IllegalMove, match="a lamp: the event 'break' is not legal in the state OFF, legal is: switch"):
        lamp["OFF", "break"]
    with pytest.raises(IllegalMove, match="legal is: nothing"):
        lamp["BROKEN", "switch"]
    assert "BROKEN --> [*]" in lamp.diagram() and "ON --> OFF: switch" in lamp.diagram()


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
