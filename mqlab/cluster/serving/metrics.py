"""What a served process counts, as Prometheus text, under RocketMQ 5's metric names.

Mirrors: BrokerMetricsManager with the Prometheus exporter (metricsExporterType=PROM).

    GET http://127.0.0.1:5557/metrics      rocketmq_messages_in_total{cluster="…",node_id="broker-a",topic="orders"} 17

prometheus_client writes the text and listens; each scrape asks the nodes once, between two of their steps.
Left out: histograms of latencies and sizes, figures of POP and timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.cluster.runtime.address import Address
from mqlab.cluster.runtime.tcp import cannot_listen
from mqlab.extras import need
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.broker.tables import stats
from mqlab.rocketmq.wire import names

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from mqlab.cluster.serving.server import Server

Row = tuple[dict[str, str], float]


class ServerMetrics:
    """The collector of one server, for prometheus_client's registry."""

    def __init__(self, server: Server) -> None:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        self._server = server
        self._kinds = CounterMetricFamily, GaugeMetricFamily  # a scrape needs no file: none may be left to open

    def collect(self) -> Iterable[Metric]:
        """All metrics, read on the server's loop."""
        metrics: list[Metric] = self._server.on_loop(lambda: list(self._collected()))
        return metrics

    def describe(self) -> Iterable[Metric]:
        """Nothing: the names are known by the first scrape."""
        return ()

    def _collected(self) -> Iterator[Metric]:
        server = self._server
        rows: dict[tuple[Any, str, str], list[Row]] = {}

        def put(kind: Any, name: str, about: str, value: float, **labels: str) -> None:
            rows.setdefault((kind, name, about), []).append((labels, value))

        counter, gauge = (partial(put, kind) for kind in self._kinds)
        for broker in server.brokers:
            _put_broker(broker, counter, gauge)
        peers = server.loop.peers
        gauge("mqlab_connections", "open connections", len(peers.connections))
        counter("mqlab_received_bytes", "bytes from all peers", peers.received_bytes)
        counter("mqlab_sent_bytes", "bytes to all peers", peers.sent_bytes)
        counter("mqlab_failures", "errors that left a handler", server.loop.failures)
        for reason, count in sorted(peers.closed_for.items()):
            counter("mqlab_closed_connections", "connections that the server closed", count, reason=reason)
        for (kind, name, about), samples in rows.items():
            metric = kind(name, about, labels=sorted(samples[0][0]))
            for labels, value in samples:
                metric.add_metric([labels[label] for label in sorted(labels)], value)
            yield metric


def _put_broker(broker: Broker, counter: Callable[..., None], gauge: Callable[..., None]) -> None:
    """The metrics of one broker: its store, its topics, its groups."""
    own = {"cluster": broker.config.broker_cluster_name, "node_id": broker.config.broker_name}
    gauge("rocketmq_broker_permission", "4 reads, 2 writes", broker.config.broker_permission, **own)
    gauge("rocketmq_topic_number", "topics", len(broker.topics), **own)
    gauge("rocketmq_consumer_group_number", "consumer groups", len(broker.groups), **own)
    log_bytes = broker.store.max_physical_offset - broker.store.min_physical_offset
    gauge("rocketmq_storage_size", "bytes of log", log_bytes, **own)
    gauge(
        "rocketmq_storage_dispatch_behind_bytes",
        "bytes of log that consumers do not see yet",
        broker.store.dispatch_behind_bytes,
        **own,
    )
    gauge("mqlab_failed_parts", "parts that have failed and are tried again", len(broker.store.failures), **own)
    gauge(
        "rocketmq_storage_flush_behind_bytes",
        "bytes that are not synced",
        broker.store.max_physical_offset - broker.store.flushed_offset,
        **own,
    )
    for topic in [
        config.topic_name for config in broker.topics.values() if not broker.topics.is_system(config.topic_name)
    ]:
        total = broker.stats.total
        counter(
            "rocketmq_messages_in",
            "messages stored",
            total(stats.TOPIC_PUT_NUMS, topic),
            topic=topic,
            **own,
        )
        counter(
            "rocketmq_throughput_in",
            "bytes stored",
            total(stats.TOPIC_PUT_SIZE, topic),
            topic=topic,
            **own,
        )
    for topic, group, messages, size, lag in _of_groups(broker):
        labels = {**own, "topic": topic, "consumer_group": group}
        counter("rocketmq_messages_out", "messages that pulls got", messages, **labels)
        counter("rocketmq_throughput_out", "bytes that pulls got", size, **labels)
        gauge("rocketmq_consumer_lag_messages", "messages after the group's offset", lag, **labels)


def _of_groups(broker: Broker) -> Iterator[tuple[str, str, int, int, int]]:
    """Topic, group, messages got, bytes got and lag of each group that has an offset."""
    for key, queues in broker.offset_table.items():
        topic, _, group = key.partition("@")
        if "@" in group or names.is_system_topic(topic):
            continue
        lag = sum(max(broker.store.max_offset(topic, queue) - offset, 0) for queue, offset in queues.items())
        messages = broker.stats.total(stats.GROUP_GET_NUMS, key)
        yield topic, group, messages, broker.stats.total(stats.GROUP_GET_SIZE, key), lag


def serve_metrics(server: Server, host: str, port: int) -> int:
    """Answer scrapes at ``http://host:port/metrics``, on a thread of its own. Returns the port.

    UsageError when the address is in use or not of this machine.
    """
    need("cluster")
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(ServerMetrics(server))
    try:
        listening, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise cannot_listen(Address(host, port), error) from error
    return int(listening.server_address[1])
