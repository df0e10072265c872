"""The signs of lab 13: what each kind of incident leaves behind in the tables of a day, in the order of a search.

the notebook shows them before its triage; a finding about a triage names the sign of what was missed
"""

from __future__ import annotations

from mqlab.lab.views.table import Table

SIGNS = {
    "lost_answer": "one id at two places in the topic orders; the groups that read it handle it twice",
    "stuck_message": "a call without an end, of a message that was never consumed",
    "skipped": "never called, all tags of the group, for some minutes",
    "inconsistent_tags": "never called, some tags of the group only; the others were called meanwhile",
    "wrong_reset": "called again, some of them an hour or more after they were stored",
    "deploy": "called again, within minutes, by processes on all machines",
    "killed_listener": "called again, within minutes; all calls without an end are those of one process",
    "poison_message": "one message, which failed at each call",
    "failing_consumer": "most of the harmed messages failed at least once",
    "slow_consumer": "late, and most of them never failed",
}
"""Kind -> its sign."""


def table_of_signs() -> Table:
    """One row per kind."""
    return Table([{"kind": kind, "sign": sign} for kind, sign in SIGNS.items()], title="Signs")
