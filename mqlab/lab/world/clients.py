"""The clients of a Lab: each producer and consumer is a node of its own, named after its group.

Mirrors: one Java process per client. The verbs of a Lab's clients.

    lab.push_consumer("billing")                       billing-1, client id 10.0.0.4@billing-1
    lab.push_consumer("billing", name="billing-2")     the second member of the group
    lab.producer("billing")                            billing-producer-1: a producer with the name of a consumer group

Left out: several clients in one process, which would share one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.errors import ClientError, UsageError
from mqlab.lab.world.cluster import name_server_addresses
from mqlab.lab.world.handles import NodeHandle
from mqlab.lab.world.state import LabState
from mqlab.rocketmq.machine.files import RealFiles
from mqlab.rocketmq.ports import Ports

if TYPE_CHECKING:
    from mqlab.rocketmq.admin import Admin
    from mqlab.rocketmq.client import TransactionProducer

CLIENT_ROLES = ("producer", "consumer", "tool")
ADMIN = "admin"


class ClientVerbs(LabState):
    """The verbs of a Lab that create clients."""

    def producer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A started producer of a group; settings have DefaultMQProducer's names in snake_case."""
        from mqlab.rocketmq.client import Producer

        return self._client("producer", group, name, 2, Producer, self._with_parts("producer", settings), start=True)

    def transaction_producer(self, group: str, listener: Any, *, name: str | None = None, **settings: Any) -> Any:
        """A started producer of half messages; the listener executes and checks the local transaction."""
        from mqlab.rocketmq.client import TransactionProducer

        def make(ports: Ports, group: str, servers: list[str], **settings: Any) -> TransactionProducer:
            return TransactionProducer(ports, group, servers, listener, **settings)

        return self._client("producer", group, name, 2, make, self._with_parts("producer", settings), start=True)

    def push_consumer(self, group: str, *, name: str | None = None, cores: int = 2, **settings: Any) -> Any:
        """A push consumer of a group, not started; settings have DefaultMQPushConsumer's names in snake_case."""
        from mqlab.rocketmq.client import PushConsumer

        return self._client("consumer", group, name, cores, PushConsumer, self._with_parts("consumer", settings))

    def pull_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A started consumer that pulls on request, one request at a time. Mirrors DefaultMQPullConsumer."""
        from mqlab.rocketmq.client import PullConsumer

        return self._client("consumer", group, name, 2, PullConsumer, settings, start=True)

    def pull_consumer_schedule_service(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A pull consumer that calls back for each queue, not started. Mirrors MQPullConsumerScheduleService."""
        from mqlab.rocketmq.client import PullConsumerScheduleService

        return self._client("consumer", group, name, 2, PullConsumerScheduleService, settings)

    def lite_pull_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A consumer to poll, not started. Mirrors DefaultLitePullConsumer."""
        from mqlab.rocketmq.client import LitePullConsumer

        return self._client("consumer", group, name, 2, LitePullConsumer, self._with_parts("consumer", settings))

    def simple_consumer(self, group: str, *, name: str | None = None, **settings: Any) -> Any:
        """A consumer that receives on lease and acknowledges each message, not started. Mirrors SimpleConsumer."""
        from mqlab.rocketmq.client import SimpleConsumer

        return self._client("consumer", group, name, 2, SimpleConsumer, settings)

    def start_work(self, client: NodeHandle | str, function: Callable[..., Any], *args: Any) -> Any:
        """Begin a function as a program of a client's process: it is interleaved with all others and dies with it.

        ``result()`` of what this gives waits for its end. In a listener, ``context.start`` does the same.
        """
        from mqlab.rocketmq.client.consuming.started_work import WorkStarter

        handle = self.node_handle(client)
        if handle.role not in CLIENT_ROLES[:2]:
            raise UsageError(
                f"{handle.name} is a {handle.role}: only a producer's or a consumer's process has programs"
            )
        return WorkStarter(handle.ports, handle.group).start(function, args)

    @property
    def admin(self) -> Admin:
        """The operator's tool with mqadmin's verbs. It is a node of its own, created at the first use."""
        from mqlab.rocketmq.admin import Admin

        if ADMIN not in self.handles:
            servers, files = name_server_addresses(self), RealFiles()
            self.handles[ADMIN] = NodeHandle(
                ADMIN, "tool", files, self.world.add_node(ADMIN, files), lambda ports: Admin(ports, servers)
            )
        tool: Admin = self.handles[ADMIN].node
        return tool

    def _with_parts(self, kind: str, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of a client, with the learner's parts where nothing else is set."""
        if not self.parts.names:
            return settings
        from mqlab.lab.parts.of_clients import client_settings

        return {**client_settings(self.parts, kind), **settings}

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
        # 1. Check the arguments before a machine is added.
        if cores < 1:
            raise UsageError(f"cores must be 1 or more, got {cores}")
        name = _free_name(self.handles, kind, group, name)
        files = RealFiles()
        servers = name_server_addresses(self)
        all_settings = {**self.client_settings, **settings}
        if kind == "consumer":
            # a broadcasting consumer keeps its offsets in a file of its own
            all_settings.setdefault("local_offset_store_dir", str(self.directory / "offsets"))
        # 2. A machine of its own. If the client cannot be created on it, the machine is removed again.
        ports = self.world.add_node(name, files, cores=cores)
        try:
            build = self.fitted(kind, lambda ports: make(ports, group, servers, **all_settings))
            handle = NodeHandle(name, kind, files, ports, build)
            self.handles[name] = handle
            if start:
                handle.start()
        except Exception:  # after a wrong setting or name, the corrected cell can use the same name
            self.handles.pop(name, None)
            self.world.forget_node(name)
            raise
        return handle


def _free_name(handles: Mapping[str, NodeHandle], kind: str, group: str, wish: str | None) -> str:
    """``wish``, else group-1; if a client of the other kind has that name, group-consumer-1 (or -producer-1).

    UsageError when the name belongs to another node, ClientError when this group has a client of that name already.
    """
    name = wish or f"{group}-1"
    holder = handles.get(name)
    if holder is not None and wish is None and holder.role in CLIENT_ROLES and holder.role != kind:
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
    """Shut down all nodes that are up: clients first, then slaves, masters and name servers."""
    for roles in (CLIENT_ROLES, ("slave",), ("broker",), ("name server",)):
        for handle in list(state.handles.values()):
            if handle.role in roles and handle.is_up:
                handle.shutdown()
