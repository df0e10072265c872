"""What the exercises forbid of mqlab: the parts that would answer them. See ``Exercise.forbids``.

An exercise that is not named here forbids nothing: no part of mqlab takes its arguments and gives its answer.
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
REPORTS = ("mqlab.spark.pipeline", "mqlab.spark.report")

FORBIDS = {
    "lab00.find": (*WHOLE_BROKER, *ENTRY_READERS, *UNIT_READERS),
    "lab01.unit": (*WHOLE_BROKER, *UNIT_READERS),
    "lab01.tags": (*WHOLE_BROKER, *HASHES),
    "lab01.lookup": (*WHOLE_BROKER, *ENTRY_READERS),
    "lab01.index": (*WHOLE_BROKER, *INDEX_READERS),  # index_key_hash is given
    "lab01.torn": (*WHOLE_BROKER, *UNIT_READERS),  # the lab's own whole_unit is given
    "lab01.rebuild": (*WHOLE_BROKER, "mqlab.wire.units.encode_cq"),  # record.decode and tags_code are given
    "lab07.rewrite": WHOLE_BROKER,
    "lab07.schedule": WHOLE_BROKER,
    **dict.fromkeys(
        ("lab10.fullest", "lab10.options", "lab10.busiest", "lab10.cost", "lab10.parts", "lab10.failures"), REPORTS
    ),
}
