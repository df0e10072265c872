"""What the exercises forbid of mqlab: the parts that would answer them. See ``Exercise.forbids``.

An exercise that is not named here forbids nothing: no part of mqlab takes its arguments and gives its answer. A verb of
a Lab or of its admin is forbidden by its function: an answer's Lab then lacks it.
"""

from __future__ import annotations

WHOLE_BROKER = (
    "mqlab.rocketmq.admin",
    "mqlab.data.arrow",
    "mqlab.rocketmq.broker",
    "mqlab.cli",
    "mqlab.lab.inspector",
    "mqlab.lab.world",
    "mqlab.rocketmq.nameserver",
    "mqlab.data.spark",
    "mqlab.rocketmq.store",
    "mqlab.data.traffic",
    "mqlab.course.widgets",
)
"""An answer that may use a broker, a store, or a reader of stores can have files written and read for it."""

UNIT_READERS = (
    "mqlab.rocketmq.wire.record.decode",
    "mqlab.rocketmq.wire.record.decode_all",
    "mqlab.rocketmq.wire.record.check",
    "mqlab.rocketmq.wire.record.field_map",
    "mqlab.rocketmq.wire.record_layout.measure",
    "mqlab.rocketmq.wire.record_layout.check_body",
    "mqlab.rocketmq.wire.message.decode_messages",
    "mqlab.rocketmq.wire.message.MessageExt.from_record",
    "mqlab.rocketmq.wire.properties.decode",
    "mqlab.rocketmq.wire.layout.number_fields",
)
ENTRY_READERS = (
    "mqlab.rocketmq.wire.units.decode_cq",
    "mqlab.rocketmq.wire.units.cq_field_map",
    "mqlab.rocketmq.wire.layout.number_fields",
)
INDEX_READERS = (
    "mqlab.rocketmq.wire.units.index_header_field_map",
    "mqlab.rocketmq.wire.units.index_slot_field_map",
    "mqlab.rocketmq.wire.units.index_entry_field_map",
    "mqlab.rocketmq.wire.layout.number_fields",
)
TIMER_READERS = (
    "mqlab.rocketmq.wire.timer_units.decode_timer_unit",
    "mqlab.rocketmq.wire.timer_units.slots_in",
    "mqlab.rocketmq.wire.layout.number_fields",
)
HASHES = (
    "mqlab.rocketmq.wire.java_hash.string_hash",
    "mqlab.rocketmq.wire.java_hash.tags_code",
    "mqlab.rocketmq.wire.java_hash.index_key_hash",
    "mqlab.rocketmq.wire.java_hash.hash_map_order",
    "mqlab.rocketmq.wire.java_hash.utf16_units",
    "mqlab.rocketmq.filter.tags.parse",
)
TAG_FILTERS = ("mqlab.rocketmq.filter.tags", "mqlab.rocketmq.client.consuming.subscriptions")
POPS = (*WHOLE_BROKER, "mqlab.rocketmq.wire.pop")
RESETS = ("mqlab.rocketmq.admin.offset_resets",)
DEATHS = ("mqlab.lab.world.faults.Faults.kill", "mqlab.lab.world.faults.Faults.power_off")
TRUTHS = ("mqlab.data.traffic.trouble.capstone", "mqlab.data.traffic.trouble.truth")
DAY_TABLES = ("mqlab.data.traffic.day_facts", "mqlab.course.given.lab11.played_truth")
REPORTS = ("mqlab.data.spark.pipeline", "mqlab.data.spark.report")

FORBIDS = {
    "lab00.find": (*WHOLE_BROKER, *ENTRY_READERS, *UNIT_READERS),
    "lab01.unit": (*WHOLE_BROKER, *UNIT_READERS),
    "lab01.tags": (*WHOLE_BROKER, *HASHES),
    "lab01.lookup": (*WHOLE_BROKER, *ENTRY_READERS),
    "lab01.index": (*WHOLE_BROKER, *INDEX_READERS),  # index_key_hash is given
    "lab01.torn": (*WHOLE_BROKER, *UNIT_READERS),  # the lab's own whole_unit is given
    "lab01.rebuild": (*WHOLE_BROKER, "mqlab.rocketmq.wire.units.encode_cq"),  # record.decode and tags_code are given
    "lab02.believes": (*WHOLE_BROKER, "mqlab.rocketmq.client"),
    "lab02.selector": ("mqlab.rocketmq.client.sending.queue_selection",),
    "lab02.scale_in": RESETS,
    "lab02.strategy": ("mqlab.rocketmq.client.sending.fault_strategy",),
    "lab03.average": ("mqlab.rocketmq.client.allocate", "mqlab.rocketmq.wire.shares"),
    "lab03.circle": ("mqlab.rocketmq.client.allocate", "mqlab.rocketmq.wire.shares"),
    "lab03.ring": ("mqlab.rocketmq.client.allocate", "mqlab.rocketmq.wire.shares"),
    "lab03.fairness": ("mqlab.course.widgets.boards.allocation",),
    "lab03.churn": ("mqlab.course.widgets.boards.allocation",),
    "lab03.sticky": ("mqlab.rocketmq.client.allocate", "mqlab.rocketmq.wire.shares"),
    "lab03.twins": ("mqlab.rocketmq.admin.diagnosis", "mqlab.rocketmq.admin.connections.consumer_status"),
    "lab03.two_owners": (*DEATHS, *RESETS),
    "lab04.process_queue": ("mqlab.rocketmq.client.consuming.process_queue",),
    "lab04.committed": (*WHOLE_BROKER, "mqlab.rocketmq.client"),
    "lab04.crash_cost": (*WHOLE_BROKER, "mqlab.rocketmq.client"),
    "lab04.plan_reset": RESETS,
    "lab06.who_gets": (*WHOLE_BROKER, *TAG_FILTERS),  # java_hash is given, and in lab06.collide too
    "lab06.scan": WHOLE_BROKER,
    "lab06.detector": ("mqlab.rocketmq.admin.diagnosis", "mqlab.rocketmq.admin.connections.consumer_status"),
    "lab06.three_valued": (*WHOLE_BROKER, "mqlab.rocketmq.filter.sql", "mqlab.rocketmq.filter.sql_values"),
    "lab08.due": WHOLE_BROKER,
    "lab08.due_at": (*WHOLE_BROKER, *TIMER_READERS),
    "lab08.rebuild": (*WHOLE_BROKER, *TIMER_READERS),
    "lab09.bottleneck": ("mqlab.course.widgets.boards.backlog.limits",),
    "lab09.size": ("mqlab.lab.world", "mqlab.course.widgets"),
    "lab07.rewrite": WHOLE_BROKER,
    "lab07.schedule": WHOLE_BROKER,
    **dict.fromkeys(
        ("lab10.fullest", "lab10.options", "lab10.busiest", "lab10.cost", "lab10.parts", "lab10.failures"), REPORTS
    ),
    "lab11.entries": (
        *REPORTS,
        *DAY_TABLES,
        "mqlab.course.given.lab11.trace_tables.read_entries",
        "mqlab.course.given.lab11.trace_tables.entries_in",
    ),
    "lab11.calls": (
        *REPORTS,
        *DAY_TABLES,
        "mqlab.course.given.lab11.trace_tables.calls_of",
        "mqlab.course.given.lab11.trace_tables.calls_in",
    ),
    **dict.fromkeys(("lab11.life", "lab11.slow_when", "lab11.why_again", "lab11.storm"), (*REPORTS, *DAY_TABLES)),
    "lab12.lag_now": REPORTS,
    **dict.fromkeys(("lab15.out_now", "lab15.lease_table", "lab15.invisible_for", "lab15.revive"), POPS),
    "lab14.shrink": ("mqlab.lab.simulation.shrinking",),
    "lab14.finding": ("mqlab.lab.simulation.planted",),
    **dict.fromkeys(
        ("lab13.when", "lab13.whom", "lab13.why", "lab13.triage", "lab13.repair", "lab13.alarm"), (*REPORTS, *TRUTHS)
    ),
}
