"""The options of the data source rocketmq when it reads from a cluster, read and checked once.

Names as in Spark's own source for Kafka where the meaning is the same.

    nameServer             "host:9876", or several: "a:9876;b:9876"
    subscribe              "orders" or "orders,refunds"; retry topics and dead letters by their names (%DLQ%billing)
    tags                   "paid || shipped": only these, chosen by the broker; default: all
    columns                "topic,queue_id,..."; only these are made; all messages cross the network whole
    startingOffsets        earliest, latest, or {"orders": {"broker-a": {"0": 17, "1": "latest"}}} for some queues, the
                           others from the start; default: earliest
    endingOffsets          the same for the end of a batch; an offset is the first that is not read; default: latest
    startingTimestamp, endingTimestamp    instead: the first message stored at or after that time, ms or ISO 8601
    maxOffsetsPerTrigger   one batch of a stream reads at most so many offsets, at least one of each queue that has some
    failOnDataLoss         true (default): an error when messages were deleted before they were read; false: a warning
    consumerGroup          the name under which brokers see the pulls; default TOOLS_CONSUMER, as mqadmin
    accessKey, secretKey   user and password; default: MQLAB_ACCESS_KEY and MQLAB_SECRET_KEY of the environment

Left out: SQL expressions (use .where), patterns of topics.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mqlab.data.arrow.columns import COLUMNS, schema
from mqlab.data.spark.live.places import Places, places_of
from mqlab.data.spark.log_places import EARLIEST, LATEST
from mqlab.data.spark.option_values import known_options, number_of, switch_of, words_of
from mqlab.errors import FilterError, UsageError
from mqlab.rocketmq.filter import tags as tag_filter
from mqlab.rocketmq.wire import names

NAME_SERVER = "nameServer"
ACCESS = ("accessKey", "secretKey")
ENVIRONMENT = ("MQLAB_ACCESS_KEY", "MQLAB_SECRET_KEY")
READING = (
    NAME_SERVER,
    "subscribe",
    "tags",
    "columns",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "failOnDataLoss",
    "consumerGroup",
    *ACCESS,
)
OF_STREAMS, OF_BATCHES = ("maxOffsetsPerTrigger",), ("endingOffsets", "endingTimestamp")


@dataclass(frozen=True, slots=True)
class Servers:
    """Which cluster, and as whom."""

    name_servers: str
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """The options of one read; ``names`` are those that were given."""

    servers: Servers
    topics: tuple[str, ...]
    tags: tag_filter.TagFilter
    columns: tuple[str, ...]
    group: str
    starting: Places
    ending: Places
    max_offsets_per_trigger: int | None
    fail_on_data_loss: bool
    names: tuple[str, ...]

    def check_batch(self) -> None:
        """Raise UsageError for options that have a meaning in a stream only."""
        self._refuse(OF_STREAMS, "a batch", "endingOffsets says where a batch ends, or use readStream")

    def check_stream(self) -> None:
        """Raise UsageError for options that have no meaning in a stream."""
        self._refuse(OF_BATCHES, "a stream", "trigger(availableNow=True) ends on its own; .where(...) chooses by time")

    def _refuse(self, without_meaning: Sequence[str], where: str, hint: str) -> None:
        for name in without_meaning:
            if name in self.names:
                raise UsageError(f"{name} has no meaning in {where}", hint=hint)


def is_live(raw_options: Mapping[str, str]) -> bool:
    """Whether options name a cluster. Raises UsageError when they name a store as well."""
    lower = {name.lower() for name in raw_options}
    if NAME_SERVER.lower() not in lower:
        return False
    if lower & {"path", "paths"}:
        raise UsageError(
            "nameServer and a path are two places", hint="a running cluster has no path, a store no server"
        )
    return True


def parse_live(raw_options: Mapping[str, str]) -> LiveOptions:
    """Options as Spark passes them, names in any case. Raises UsageError that names the option and its values.

    >>> parse_live({"nameServer": "127.0.0.1:9876", "SUBSCRIBE": "orders, refunds"}).topics
    ('orders', 'refunds')
    """
    options = known_options(raw_options, READING)
    topics = tuple(dict.fromkeys(words_of(options, "subscribe")))
    if not topics:
        raise UsageError("no topic to read", hint='say which: .option("subscribe", "orders") or "orders,refunds"')
    columns = tuple(words_of(options, "columns")) or tuple(COLUMNS)
    schema(columns)
    limit = number_of(options, "maxOffsetsPerTrigger")
    if limit is not None and limit < 1:
        raise UsageError(f"option maxOffsetsPerTrigger is {limit}: expected 1 or more")
    starting = places_of(options, "startingOffsets", "startingTimestamp", topics, EARLIEST)
    ending = places_of(options, "endingOffsets", "endingTimestamp", topics, LATEST)
    return LiveOptions(
        servers_of(options),
        topics,
        _tags(options),
        columns,
        group_of(options, "consumerGroup", names.TOOLS_GROUP),
        starting or Places(EARLIEST),
        ending or Places(LATEST),
        limit,
        switch_of(options, "failOnDataLoss"),
        tuple(options),
    )


def servers_of(options: Mapping[str, str]) -> Servers:
    """The cluster and the user; a user of the environment when the options name none. Raises UsageError."""
    user = [options.get(name) or None for name in ACCESS]
    if user == [None, None]:
        user = [os.environ.get(name) or None for name in ENVIRONMENT]
    if None in user and user != [None, None]:
        raise UsageError("a user has a name and a password", hint="give both options accessKey and secretKey")
    if not options[NAME_SERVER].strip():
        raise UsageError("option nameServer is empty", hint='"127.0.0.1:9876", several with ";" between them')
    return Servers(options[NAME_SERVER], *user)


def _tags(options: Mapping[str, str]) -> tag_filter.TagFilter:
    try:
        return tag_filter.parse(options.get("tags"))
    except FilterError as error:
        raise UsageError(f"option tags: {error.text}", hint=error.hint) from error


def group_of(options: Mapping[str, str], name: str, default: str) -> str:
    """A consumer's or producer's group. Raises UsageError for a name that RocketMQ refuses."""
    group = options.get(name, default)
    problem = names.group_problem(group)
    if problem is not None:
        raise UsageError(f"option {name}: {problem}")
    return group
