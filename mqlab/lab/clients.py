"""The client half of a Lab: each producer and consumer is a node of its own, named after its group.

Mirrors: one Java process per client. Lab verbs with front_door.md's names.

    lab.push_consumer("billing")                       billing-1, client id 10.0.0.4@billing-1
    lab.push_consumer("billing", name="billing-2")     the second member of the group
    lab.producer("billing")                            billing-producer-1: a producer of the same name is none of them

Left out: several clients in one process (they would share one connection; give them one node each and see more).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.errors import ClientError, UsageError
from mqlab.lab.cluster import name_server_addresses
from mqlab.lab.handles import NodeHandle
from mqlab.lab.state import LabState
from mqlab.ports import Ports
from mqlab.runtime.files import RealFiles

if TYPE_CHECKING:
    from mqlab.admin import Admin
    from mqlab.client import TransactionProducer

CLIENT_ROLES = ("producer", "consumer", "tool")
ADMIN = "admin"


class ClientVerbs(LabState):
    """The verbs of a Lab that make clients."""

    def producer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A started producer of a group; settings have DefaultMQProducer's names in snake_case."""
        from mqlab.client import Producer

        return self._client("producer", group, name, 2, Producer, settings, start=True)

    def transaction_producer(self, group: str, listener: Any, *, name: str | None = None, **settings: Any) -> Any:
        """A started producer of half messages; the listener executes and checks the local transaction."""
        from mqlab.client import TransactionProducer

        def make(ports: Ports, group: str, servers: list[str], **settings: Any) -> TransactionProducer:
            return TransactionProducer(ports, group, servers, listener, **settings)

        return self._client("producer", group, name, 2, make, settings, start=True)

    def push_consumer(self, group: str, *, name: str | None = None, cores: int = 2, **settings: Any) -> Any:
        """A push consumer of a group, not started; settings have DefaultMQPushConsumer's names in snake_case."""
        from mqlab.client import PushConsumer

        return self._client("consumer", group, name, cores, PushConsumer, settings)

    def pull_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A started consumer that pulls when told, one request at a time. Mirrors DefaultMQPullConsumer."""
        from mqlab.client import PullConsumer

        return self._client("consumer", group, name, 2, PullConsumer, settings, start=True)

    def pull_consumer_schedule_service(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A pull consumer that calls back for each queue, not started. Mirrors MQPullConsumerScheduleService."""
        from mqlab.client import PullConsumerScheduleService

        return self._client("consumer", group, name, 2, PullConsumerScheduleService, settings)

    def lite_pull_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A consumer to poll, not started. Mirrors DefaultLitePullConsumer."""
        from mqlab.client import LitePullConsumer

        return self._client("consumer", group, name, 2, LitePullConsumer, settings)

    @property
    def admin(self) -> Admin:
        """The operator's tool: mqadmin's verbs, asked from a node of its own that is made when first needed."""
        from mqlab.admin import Admin

        if ADMIN not in self.handles:
            servers, files = name_server_addresses(self), RealFiles()
            self.handles[ADMIN] = NodeHandle(
                ADMIN, "tool", files, self.world.add_node(ADMIN, files), lambda ports: Admin(ports, servers)
            )
        tool: Admin = self.handles[ADMIN].node
        return tool

    def _client(
        self,
        kind: str,
        group: str,
        name: str | None,
        cores: int,
        make: Callable[..., Any],
        settings: dict[str, Any],
        *,
        start: bool = False,
    ) -> NodeHandle:
        if cores < 1:
            raise UsageError(f"a client runs on at least one core, not {cores}")
        name = _free_name(self.handles, kind, group, name)
        files = RealFiles()
        servers = name_server_addresses(self)
        wanted = {**self.client_settings, **settings}
        if kind == "consumer":
            wanted.setdefault("local_offset_store_dir", str(self.directory / "offsets"))  # broadcasting's own files
        ports = self.world.add_node(name, files, cores=cores)
        try:
            handle = NodeHandle(name, kind, files, ports, lambda ports: make(ports, group, servers, **wanted))
            self.handles[name] = handle
            if start:
                handle.start()
        except Exception:  # a wrong setting or name: the cell that mends it finds the name free
            self.handles.pop(name, None)
            self.world.forget_node(name)
            raise
        return handle


def _free_name(handles: Mapping[str, NodeHandle], kind: str, group: str, wanted: str | None) -> str:
    """``wanted``, else group-1, and beside a client of the other kind group-consumer-1 (or -producer-1).

    UsageError when the name belongs to another node, ClientError when this group has a client of that name already.
    """
    name = wanted or f"{group}-1"
    holder = handles.get(name)
    if holder is not None and wanted is None and holder.role in CLIENT_ROLES and holder.role != kind:
        name = f"{group}-{kind}-1"
        holder = handles.get(name)
    if holder is None:
        return name
    if holder.role == kind and holder.node.group == group:
        raise ClientError(
            f"The {kind} group[{group}] has been created before, specify another name please.",
            hint=f'a second instance needs a name: name="{group}-2"; a cell that runs twice needs play(story)',
        )
    raise UsageError(f"the name {name!r} is taken: {holder.status} is a {holder.role}", hint=f'name="{group}-2"')


def shutdown_all(state: LabState) -> None:
    """Shut down what runs: clients first, then slaves, masters, name servers."""
    for roles in (CLIENT_ROLES, ("slave",), ("broker",), ("name server",)):
        for handle in list(state.handles.values()):
            if handle.role in roles and handle.is_up:
                handle.shutdown()
