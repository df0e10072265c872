"""The gRPC front of a served process, imported only where it is asked for.

Mirrors: ProxyStartup in local mode, which starts a broker and its proxy in one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqlab.cluster.runtime import EventLoop
from mqlab.cluster.serving.plan import ServingPlan
from mqlab.rocketmq.broker import Broker
from mqlab.rocketmq.ports import Ports

if TYPE_CHECKING:
    from mqlab.cluster.grpc.service import GrpcService


def start_front(
    plan: ServingPlan, loop: EventLoop, ports: Ports, brokers: Sequence[Broker], pem: tuple[bytes, bytes] | None
) -> GrpcService:
    """Listen at the address of the plan, on the loop's own thread. MissingExtra without grpcio."""
    from mqlab.cluster.grpc.front import GrpcFront
    from mqlab.cluster.grpc.service import GrpcService
    from mqlab.cluster.grpc.state import FrontConfig

    assert plan.grpc is not None
    config = FrontConfig(plan.grpc.port, plan.name_servers, plan.grpc_as_in_5_3_3)
    service = GrpcService(GrpcFront(ports, brokers, config), loop.loop, brokers[0].state.users)
    service.start(str(plan.grpc), pem)
    return service
