"""What the exercises forbid of mqlab: the parts that would answer them. See ``Exercise.forbids``.

An exercise that is not named here forbids nothing: no part of mqlab takes its arguments and gives its answer. A verb of
a Lab or of its admin is forbidden by its function: an answer's Lab then lacks it.
"""

from __future__ import annotations

WHOLE_BROKER = (
    "mqlab.admin", "mqlab.arrow", "mqlab.broker", "mqlab.cli", "mqlab.inspector", "mqlab.lab", "mqlab.nameserver",
    "mqlab.spark", "mqlab.store", "mqlab.traffic", "mqlab.widgets",
)  # fmt: skip
"""Who may use a broker, a store, or a reader of stores, can have files written and read instead of doing it."""

UNIT_READERS = (
    "mqlab.wire.record.decode", "mqlab.wire.record.decode_all", "mqlab.wire.record.check",
    "mqlab.wire.record.field_map", "mqlab.wire.record_layout.measure", "mqlab.wire.record_layout.check_body",
    "mqlab.wire.message.decode_messages", "mqlab.wire.message.MessageExt.from_record",
    "mqlab.wire.properties.decode", "mqlab.wire.layout.number_fields",
)  # fmt: skip
ENTRY_READERS = (
    "mqlab.wire.units.decode_cq", "mqlab.wire.units.cq_field_map", "mqlab.wire.layout.number_fields",
)  # fmt: skip
INDEX_READERS = (
    "mqlab.wire.units.index_header_field_map", "mqlab.wire.units.index_slot_field_map",
    "mqlab.wire.units.index_entry_field_map", "mqlab.wire.layout.number_fields",
)  # fmt: skip
HASHES = (
    "mqlab.wire.java_hash.string_hash", "mqlab.wire.java_hash.tags_code", "mqlab.wire.java_hash.index_key_hash",
    "mqlab.wire.java_hash.hash_map_order", "mqlab.wire.java_hash.utf16_units", "mqlab.filter.tags.parse",
)  # fmt: skip
TAG_FILTERS = ("mqlab.filter.tags", "mqlab.client.consuming.subscriptions")
RESETS = ("mqlab.admin.offset_resets",)
DEATHS = ("mqlab.lab.faults.Faults.kill", "mqlab.lab.faults.Faults.power_off")
TRUTHS = ("mqlab.traffic.trouble.capstone", "mqlab.traffic.trouble.truth")
DAY_TABLES = ("mqlab.traffic.day_facts", "mqlab.teach.played_truth")
REPORTS = ("mqlab.spark.pipeline", "mqlab.spark.report")

FORBIDS = {
    "lab00.find": (*WHOLE_BROKER, *ENTRY_READERS, *UNIT_READERS),
    "lab01.unit": (*WHOLE_BROKER, *UNIT_READERS),
    "lab01.tags": (*WHOLE_BROKER, *HASHES),
    "lab01.lookup": (*WHOLE_BROKER, *ENTRY_READERS),
    "lab01.index": (*WHOLE_BROKER, *INDEX_READERS),  # index_key_hash is given
    "lab01.torn": (*WHOLE_BROKER, *UNIT_READERS),  # the lab's own whole_unit is given
    "lab01.rebuild": (*WHOLE_BROKER, "mqlab.wire.units.encode_cq"),  # record.decode and tags_code are given
    "lab02.believes": (*WHOLE_BROKER, "mqlab.client"),
    "lab02.selector": ("mqlab.client.sending.queue_selection",),
    "lab02.scale_in": RESETS,
    "lab02.strategy": ("mqlab.client.sending.fault_strategy",),
    "lab03.average": ("mqlab.client.allocate", "mqlab.wire.shares"),
    "lab03.circle": ("mqlab.client.allocate", "mqlab.wire.shares"),
    "lab03.ring": ("mqlab.client.allocate", "mqlab.wire.shares"),
    "lab03.fairness": ("mqlab.widgets.allocation",),
    "lab03.churn": ("mqlab.widgets.allocation",),
    "lab03.sticky": ("mqlab.client.allocate", "mqlab.wire.shares"),
    "lab03.twins": ("mqlab.admin.diagnosis", "mqlab.admin.connections.consumer_status"),
    "lab03.two_owners": (*DEATHS, *RESETS),
    "lab04.process_queue": ("mqlab.client.consuming.process_queue",),
    "lab04.committed": (*WHOLE_BROKER, "mqlab.client"),
    "lab04.crash_cost": (*WHOLE_BROKER, "mqlab.client"),
    "lab04.plan_reset": RESETS,
    "lab06.who_gets": (*WHOLE_BROKER, *TAG_FILTERS),  # java_hash is given, and in lab06.collide too
    "lab06.scan": WHOLE_BROKER,
    "lab06.detector": ("mqlab.admin.diagnosis", "mqlab.admin.connections.consumer_status"),
    "lab06.three_valued": (*WHOLE_BROKER, "mqlab.filter.sql", "mqlab.filter.sql_values"),
    "lab08.due": WHOLE_BROKER,
    "lab09.bottleneck": ("mqlab.widgets.backlog.limits",),
    "lab09.size": ("mqlab.lab", "mqlab.widgets"),
    "lab07.rewrite": WHOLE_BROKER,
    "lab07.schedule": WHOLE_BROKER,
    **dict.fromkeys(
        ("lab10.fullest", "lab10.options", "lab10.busiest", "lab10.cost", "lab10.parts", "lab10.failures"), REPORTS
    ),
    "lab11.entries": (
        *REPORTS,
        *DAY_TABLES,
        "mqlab.teach.trace_tables.read_entries",
        "mqlab.teach.trace_tables.entries_in",
    ),
    "lab11.calls": (*REPORTS, *DAY_TABLES, "mqlab.teach.trace_tables.calls_of", "mqlab.teach.trace_tables.calls_in"),
    **dict.fromkeys(("lab11.life", "lab11.slow_when", "lab11.why_again", "lab11.storm"), (*REPORTS, *DAY_TABLES)),
    "lab12.lag_now": REPORTS,
    "lab14.shrink": ("mqlab.simulation.shrinking",),
    "lab14.finding": ("mqlab.simulation.planted",),
    **dict.fromkeys(
        ("lab13.when", "lab13.whom", "lab13.why", "lab13.triage", "lab13.repair", "lab13.alarm"), (*REPORTS, *TRUTHS)
    ),
}
