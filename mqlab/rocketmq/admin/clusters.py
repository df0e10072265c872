"""Clusters and name servers: which brokers there are, what may be written where, what the name servers keep.

Mirrors: mqadmin clusterList, wipeWritePerm, addWritePerm, updateKvConfig; requests 106, 205, 327, 100 to 102, 219.

    cluster  broker  id  address            in_tps  out_tps   of a minute
    asked: one name server                  changed: every name server of the list, one after another

Left out: several controllers, broker containers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqlab.rocketmq.admin.requests import AdminNode, value_of
from mqlab.rocketmq.admin.steps import at_each
from mqlab.rocketmq.answers import Rows
from mqlab.rocketmq.wire.codes import RequestCode
from mqlab.rocketmq.wire.java_numbers import parse_int


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """One broker process as registered at a name server; id 0 is the master. Mirrors a line of clusterList."""

    cluster: str
    broker: str
    broker_id: int
    address: str


@dataclass(frozen=True, slots=True)
class WritePerm:
    """How many topics of a broker changed their permission at one name server."""

    name_server: str
    broker: str
    topics_changed: int


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A name and its value as a string."""

    name: str
    value: str


def examine_broker_cluster_info(admin: AdminNode) -> Rows[BrokerAddress]:
    """Every broker process of every cluster."""
    known = admin.cluster_info().broker_addr_table
    rows = [
        BrokerAddress(data.cluster, name, broker_id, address)
        for name, data in sorted(known.items())
        for broker_id, address in sorted(data.broker_addrs.items())
    ]
    return Rows(rows, "brokers")


def wipe_write_perm(admin: AdminNode, broker: str) -> Rows[WritePerm]:
    """Remove the write permission of a broker's topics from the routes at every name server: producers stop using it.

    The broker still accepts messages; when it registers a changed topic, that topic gets its permission back.
    """
    return _permission(admin, RequestCode.WIPE_WRITE_PERM_OF_BROKER, "wipeTopicCount", broker)


def add_write_perm(admin: AdminNode, broker: str) -> Rows[WritePerm]:
    """Restore the write permission at every name server."""
    return _permission(admin, RequestCode.ADD_WRITE_PERM_OF_BROKER, "addTopicCount", broker)


def _permission(admin: AdminNode, code: RequestCode, counted: str, broker: str) -> Rows[WritePerm]:
    admin.brokers(broker)
    rows = []

    def change(address: str) -> None:
        answer = admin.ask(address, code, brokerName=broker)
        rows.append(WritePerm(address, broker, parse_int(answer.ext_fields.get(counted) or "0")))

    _at_each_name_server(admin, code, change)
    return Rows(rows, f"write permission of {broker}")


def _at_each_name_server(admin: AdminNode, code: RequestCode, change: Callable[[str], object]) -> None:
    servers = sorted(admin.name_servers.addresses)
    at_each(code.name.lower(), [(f"name server {address}", address) for address in servers], change)


def put_kv_config(admin: AdminNode, namespace: str, key: str, value: str) -> None:
    """Store a value at every name server."""
    code = RequestCode.PUT_KV_CONFIG
    _at_each_name_server(
        admin, code, lambda address: admin.ask(address, code, namespace=namespace, key=key, value=value)
    )


def get_kv_config(admin: AdminNode, namespace: str, key: str) -> str:
    """A stored value; BrokerError with code 22 when there is none."""
    answer = admin.ask_name_server(RequestCode.GET_KV_CONFIG, namespace=namespace, key=key)
    return answer.ext_fields["value"]


def delete_kv_config(admin: AdminNode, namespace: str, key: str) -> None:
    """Delete a value at every name server."""
    code = RequestCode.DELETE_KV_CONFIG
    _at_each_name_server(admin, code, lambda address: admin.ask(address, code, namespace=namespace, key=key))


def get_kv_list_by_namespace(admin: AdminNode, namespace: str) -> Rows[KeyValue]:
    """All values of a namespace."""
    body = value_of(admin.ask_name_server(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace=namespace))
    rows = [KeyValue(name, str(value)) for name, value in (body.get("table") or {}).items()]
    return Rows(rows, f"values of {namespace}")
