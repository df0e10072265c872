"""The messages of apache.rocketmq.v2, built from a table of field numbers.

Mirrors: rocketmq-proto 2.0.4. Fields are proto3's; the numbers are what is on the wire.

    "2 name"                 a string        "1 code int32"        another type
    "3 topics* Resource"     repeated        "4 tag?"              optional: whether it is set can be asked
    "2 user_properties map"  strings by string

Enums are written as int32: the bytes are the same, and a value that is not known here stays what it is.
Fields that are not in the table (newer clients send some) are kept and ignored.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2

from mqlab.rocketmq.wire.java_numbers import parse_int

PACKAGE = "apache.rocketmq.v2"

FIELDS = {
    "Status": "1 code int32, 2 message",
    "Resource": "1 resource_namespace, 2 name",
    "Address": "1 host, 2 port int32",
    "Endpoints": "1 scheme int32, 2 addresses* Address",
    "Broker": "1 name, 2 id int32, 3 endpoints Endpoints",
    "MessageQueue": "1 topic Resource, 2 id int32, 3 permission int32, 4 broker Broker, 5 accept_message_types* int32",
    "FilterExpression": "1 type int32, 2 expression",
    "SubscriptionEntry": "1 topic Resource, 2 expression FilterExpression",
    "Assignment": "1 message_queue MessageQueue",
    "Digest": "1 type int32, 2 checksum",
    "DeadLetterQueue": "1 topic, 2 message_id",
    "SystemProperties": "1 tag?, 2 keys*, 3 message_id, 4 body_digest Digest, 5 body_encoding int32, "
    "6 message_type int32, 7 born_timestamp Timestamp, 8 born_host, 9 store_timestamp? Timestamp, 10 store_host, "
    "11 delivery_timestamp? Timestamp, 12 receipt_handle?, 13 queue_id int32, 14 queue_offset? int64, "
    "15 invisible_duration? Duration, 16 delivery_attempt? int32, 17 message_group?, 18 trace_context?, "
    "19 orphaned_transaction_recovery_duration? Duration, 20 dead_letter_queue? DeadLetterQueue",
    "Message": "1 topic Resource, 2 user_properties map, 3 system_properties SystemProperties, 4 body bytes",
    "ExponentialBackoff": "1 initial Duration, 2 max Duration, 3 multiplier float",
    "CustomizedBackoff": "1 next* Duration",
    "RetryPolicy": "1 max_attempts int32, 2 exponential_backoff ExponentialBackoff, "
    "3 customized_backoff CustomizedBackoff",
    "Publishing": "1 topics* Resource, 2 max_body_size int32, 3 validate_message_type bool",
    "Subscription": "1 group? Resource, 2 subscriptions* SubscriptionEntry, 3 fifo? bool, 4 receive_batch_size? int32, "
    "5 long_polling_timeout? Duration",
    "UA": "1 language int32, 2 version, 3 platform, 4 hostname",
    "Metric": "1 on bool, 2 endpoints? Endpoints",
    "Settings": "1 client_type? int32, 2 access_point? Endpoints, 3 backoff_policy? RetryPolicy, "
    "4 request_timeout? Duration, 5 publishing Publishing, 6 subscription Subscription, 7 user_agent UA, "
    "8 metric Metric",
    "QueryRouteRequest": "1 topic Resource, 2 endpoints Endpoints",
    "QueryRouteResponse": "1 status Status, 2 message_queues* MessageQueue",
    "SendMessageRequest": "1 messages* Message",
    "SendResultEntry": "1 status Status, 2 message_id, 3 transaction_id, 4 offset int64, 5 recall_handle",
    "SendMessageResponse": "1 status Status, 2 entries* SendResultEntry",
    "QueryAssignmentRequest": "1 topic Resource, 2 group Resource, 3 endpoints Endpoints",
    "QueryAssignmentResponse": "1 status Status, 2 assignments* Assignment",
    "ReceiveMessageRequest": "1 group Resource, 2 message_queue MessageQueue, 3 filter_expression FilterExpression, "
    "4 batch_size int32, 5 invisible_duration? Duration, 6 auto_renew bool, 7 long_polling_timeout? Duration, "
    "8 attempt_id?",
    "ReceiveMessageResponse": "1 status Status, 2 message Message, 3 delivery_timestamp Timestamp",
    "AckMessageEntry": "1 message_id, 2 receipt_handle",
    "AckMessageRequest": "1 group Resource, 2 topic Resource, 3 entries* AckMessageEntry",
    "AckMessageResultEntry": "1 message_id, 2 receipt_handle, 3 status Status",
    "AckMessageResponse": "1 status Status, 2 entries* AckMessageResultEntry",
    "ForwardMessageToDeadLetterQueueRequest": "1 group Resource, 2 topic Resource, 3 receipt_handle, 4 message_id, "
    "5 delivery_attempt int32, 6 max_delivery_attempts int32",
    "ForwardMessageToDeadLetterQueueResponse": "1 status Status",
    "HeartbeatRequest": "1 group? Resource, 2 client_type int32",
    "HeartbeatResponse": "1 status Status",
    "EndTransactionRequest": "1 topic Resource, 2 message_id, 3 transaction_id, 4 resolution int32, 5 source int32, "
    "6 trace_context",
    "EndTransactionResponse": "1 status Status",
    "NotifyClientTerminationRequest": "1 group? Resource",
    "NotifyClientTerminationResponse": "1 status Status",
    "ChangeInvisibleDurationRequest": "1 group Resource, 2 topic Resource, 3 receipt_handle, "
    "4 invisible_duration Duration, 5 message_id",
    "ChangeInvisibleDurationResponse": "1 status Status, 2 receipt_handle",
    "RecallMessageRequest": "1 topic Resource, 2 recall_handle",
    "RecallMessageResponse": "1 status Status, 2 message_id",
    "ThreadStackTrace": "1 nonce, 2 thread_stack_trace?",
    "VerifyMessageResult": "1 nonce",
    "RecoverOrphanedTransactionCommand": "1 message Message, 2 transaction_id",
    "PrintThreadStackTraceCommand": "1 nonce",
    "VerifyMessageCommand": "1 nonce, 2 message Message",
    "TelemetryCommand": "1 status? Status, 2 settings Settings, 3 thread_stack_trace ThreadStackTrace, "
    "4 verify_message_result VerifyMessageResult, "
    "5 recover_orphaned_transaction_command RecoverOrphanedTransactionCommand, "
    "6 print_thread_stack_trace_command PrintThreadStackTraceCommand, 7 verify_message_command VerifyMessageCommand",
}

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _FIELD.TYPE_STRING,
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "bool": _FIELD.TYPE_BOOL,
    "bytes": _FIELD.TYPE_BYTES,
    "float": _FIELD.TYPE_FLOAT,
}
_WELL_KNOWN = {"Duration": "google.protobuf.Duration", "Timestamp": "google.protobuf.Timestamp"}


def _add_field(message: Any, text: str) -> None:
    number, name, *rest = text.split()
    kind = rest[0] if rest else "string"
    field = message.field.add(number=parse_int(number), name=name.rstrip("?*"), label=_FIELD.LABEL_OPTIONAL)
    if kind == "map":
        entry = message.nested_type.add(name="UserPropertiesEntry")
        entry.options.map_entry = True
        _add_field(entry, "1 key")
        _add_field(entry, "2 value")
        field.label, field.type = _FIELD.LABEL_REPEATED, _FIELD.TYPE_MESSAGE
        field.type_name = f".{PACKAGE}.{message.name}.UserPropertiesEntry"
        return
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{_WELL_KNOWN.get(kind, f'{PACKAGE}.{kind}')}"
    if name.endswith("*"):
        field.label = _FIELD.LABEL_REPEATED
    elif name.endswith("?"):
        field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")


def _classes() -> dict[str, Any]:
    # A pool of its own: a program may have loaded the official client's descriptors of the same names.
    pool = descriptor_pool.DescriptorPool()
    for known in (duration_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="mqlab/apache_rocketmq_v2", package=PACKAGE, syntax="proto3")
    file.dependency.extend(["google/protobuf/duration.proto", "google/protobuf/timestamp.proto"])
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            _add_field(message, text)
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in FIELDS}


CLASSES = _classes()


def make(name: str, /, **fields: Any) -> Any:
    """A message; a field that is None is left out.

    >>> make("Resource", name="orders").SerializeToString()
    b'\\x12\\x06orders'
    """
    return CLASSES[name](**{field: value for field, value in fields.items() if value is not None})


def milliseconds_of(moment: Any) -> int:
    """A Duration or a Timestamp in ms."""
    milliseconds: int = moment.seconds * 1_000 + moment.nanos // 1_000_000
    return milliseconds


def moment(ms: int) -> dict[str, int]:
    """Milliseconds as the fields of a Duration or a Timestamp."""
    return {"seconds": ms // 1_000, "nanos": ms % 1_000 * 1_000_000}
